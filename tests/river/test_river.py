"""`rue.river`: River's own checks, many rows against one by one, its evaluation, and certificates of its models."""

import datetime as dt
import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import river
import rue
from river import checks, compose, datasets, evaluate, linear_model, metrics, naive_bayes, preprocessing
from rue.learners import one_example as intake
from rue.reports.explaining import explain, weights_of
from rue.river import RueClassifier, RueRegressor, certify, scores


def table(n=60, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)) * [1.0, 10.0, 0.1, 5.0], columns=["c", "a", "d", "b"])
    score = X["a"] + X["b"] + rng.normal(size=n)
    if classes == 0:
        return X, score
    if classes == 2:
        return X, score > 0
    return X, pd.Series(np.array(["x", "y", "z"])[np.searchsorted([-5.0, 5.0], score)])


def rows(X, y):
    return [({k: v for k, v in x.items() if v == v}, label) for x, label in zip(X.to_dict("records"), y, strict=True)]


def logistic():
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


MODELS = [made(maps=maps) for made in (RueClassifier, RueRegressor) for maps in (None, "default")]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}-{model.maps}")
def test_every_check_of_river(model):
    skipped = model._unit_test_skips()
    assert not skipped
    names = set()
    for check in checks.yield_checks(model):
        names.add(check.__name__)
        # Features are numbered as they first occur, and by these numbers maps are hashed and trees split.
        if model.maps is None or check.__name__ != "check_shuffle_features_no_impact":
            check(model.clone())
    wanted = {"check_learn_many_matches_learn_one", "check_predict_many_matches_predict_one", "check_debug_one"}
    if isinstance(model, RueClassifier):
        wanted |= {"check_predict_proba_many_matches_predict_proba_one", "check_classifier_tracks_seen_labels"}
    has = {*dir(checks.common), *dir(checks.clf)}  # the first that we take, 0.22, had fewer
    assert wanted & has <= names
    assert wanted <= has or river.__version__ < "0.25"


def test_memory_is_the_models_own_and_not_the_compilers():
    model = RueClassifier(maps=None)
    X, y = table()
    model.learn_many(X, y)
    assert 200 * 4 < model._raw_memory_usage < 200_000
    assert model._memory_usage.endswith("KiB")


CASES = [(RueClassifier, 2), (RueClassifier, 3), (RueRegressor, 0)]


@pytest.mark.parametrize(("made", "classes"), CASES)
def test_many_rows_are_the_loop_to_the_last_bit(made, classes):
    X, y = table(classes=classes)
    weights = pd.Series(np.random.default_rng(1).choice([0.0, 1.0, 2.5], size=len(y)))
    weights[0] = 0.0
    one, many = made(), made()
    for (x, label), w in zip(rows(X, y), weights, strict=True):
        one.learn_one(x, label, w=w)
    columns = ["c", "a", "d", "b"]
    for begin, end in itertools.pairwise([0, 1, 2, 20, 21, 60]):
        many.learn_many(X[columns][begin:end], y[begin:end], w=weights[begin:end])
        if end > 2:
            columns = columns[1:] + columns[:1]  # once the names are known, the order of columns does not matter
    assert many.learner == one.learner
    assert pickle.dumps(many) == pickle.dumps(one)
    said = many.predict_many(X)
    assert said.index.equals(X.index)
    assert said.tolist() == [one.predict_one(x) for x, _ in rows(X, y)]
    if classes:
        chances = many.predict_proba_many(X)
        assert chances.to_dict("records") == [one.predict_proba_one(x) for x, _ in rows(X, y)]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("made", "classes"), CASES)
def test_words_and_missing_values_in_dicts_and_in_frames(made, classes, tmp_path):
    X, y = table(classes=classes)
    X["wood"] = np.random.default_rng(1).choice(["oak", "ash", None], size=len(X))
    X.loc[[0, 5], "a"] = np.nan
    dicts = X.to_dict("records")
    one, many = made(), made()
    for x, label in zip(dicts, y, strict=True):
        one.learn_one(x, label)
    for begin, end in itertools.pairwise([0, 1, 20, 60]):
        many.learn_many(X[begin:end], y[begin:end])
    assert many.learner == one.learner
    assert set(one.learner.names.places) == {"a", "a=", "b", "c", "d", "wood=oak", "wood=ash", "wood="}
    predicted = [one.predict_one(x) for x in dicts]
    assert many.predict_many(X).tolist() == predicted
    rue.save(one, tmp_path / "m.rue")
    model = rue.load(tmp_path / "m.rue")
    for form in (X, dicts):
        assert model.predict(form, as_="label" if classes else "score").tolist() == predicted
    assert model.predict(dicts[0], as_="label" if classes else "score") == predicted[0]
    encoder, other = preprocessing.OneHotEncoder(drop_zeros=True), made()  # River's own way for words
    for (x, label), word in zip(rows(X.drop(columns="wood"), y), X["wood"], strict=True):
        encoder.learn_one({"wood": word})
        x |= encoder.transform_one({"wood": word})
        other.learn_one(x if "a" in x else x | {"a=": 1.0}, label)
    assert np.allclose(other.learner.predict(x), one.learner.predict(dicts[-1]), rtol=1e-9)


def test_features_that_come_and_go():
    one, many = RueRegressor(), RueRegressor()
    X, y = table(classes=0)
    for columns in (["a"], ["b", "a"], ["d"], ["c", "d", "a", "b"]):
        many.learn_many(X[columns], y)
        for x, label in rows(X[columns], y):
            one.learn_one(x, label)
    assert many.learner == one.learner
    strange = X.rename(columns={"a": "never seen"})
    assert many.predict_many(strange).tolist() == [one.predict_one(x) for x, _ in rows(strange, y)]
    assert one.predict_one({"never seen": 7.0}) == one.predict_one({})


def test_classes_come_when_they_come():
    X, y = table(classes=3)
    model = RueClassifier()
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert model.predict_proba_many(X).empty
    assert model.predict_many(X).tolist() == [None] * 60
    with pytest.raises(rue.DataError, match="nothing has been learnt"):
        model.model_  # noqa: B018
    seen = {}
    for x, label in rows(X, y):
        assert list(model.predict_proba_one(x)) == list(seen)
        model.learn_one(x, label)
        seen[label] = True
        assert math.isclose(sum(model.predict_proba_one(x).values()), 1.0)
    assert len(seen) == 3
    with pytest.raises(rue.DataError, match="features must be"):
        model.learn_one({"a": math.inf}, "new")
    assert list(model.predict_proba_one(x)) == list(seen)
    run = rue.learn(csr_matrix(X.to_numpy()), y.to_numpy())  # the columns in the same order as the names
    assert run.labels.classes == tuple(seen)
    right = run.predict(csr_matrix(X.to_numpy()[-1:]))[0]
    assert np.allclose(list(model.predict_proba_one(x).values()), right[1:] / right[1:].sum(), rtol=1e-12)


def test_two_classes_that_are_named_beforehand():
    X, y = table()
    yes_or_no, told = y.map({True: "yes", False: "no"}), RueClassifier(classes=("no", "yes"))
    plain = RueClassifier()
    assert told.predict_proba_one({"a": 1.0}) == {"no": 0.5, "yes": 0.5}
    for (x, label), (_, word) in zip(rows(X, y), rows(X, yes_or_no), strict=True):
        plain.learn_one(x, label)
        told.learn_one(x, word)
    assert told.learner == plain.learner
    assert isinstance(told.learner, rue.Learner)
    assert told.learner.loss == rue.Logistic()
    assert told.predict_proba_one(x)["yes"] == plain.predict_proba_one(x)[True]
    assert told.clone().classes == ("no", "yes")
    for bad in (("a",), ("a", "a"), "ab"):
        with pytest.raises(rue.SettingsError, match="classes are the two"):
            RueClassifier(classes=bad)
    with pytest.raises(rue.DataError, match="'maybe' is neither 'no' nor 'yes'"):
        told.learn_one(x, "maybe")
    with pytest.raises(rue.SettingsError, match="is for classes, not for numbers"):
        RueRegressor(loss="hinge")


def test_a_stream_is_learnt_as_the_library_learns_it():
    X, y = table()
    model, learner = RueClassifier(maps=None), rue.Mixture()
    for x, label in rows(X, y):
        p, chance = learner.predict(x), model.predict_proba_one(x)
        assert not chance or chance[True] == pytest.approx(1.0 / (1.0 + math.exp(-p)), rel=1e-12)
        learner.update(x, 1.0 if label else -1.0)
        model.learn_one(x, label)
    assert model.learner == learner
    learnt = dict(weights_of(model))
    assert set(learnt) == {"a", "b", "c", "d", "intercept"}
    assert explain(model, x).label is True
    assert model.debug_one(x) == str(explain(model, x))


# In River's evaluation.


def test_progressive_validation_with_moment_and_delay():
    data = list(datasets.Phishing().take(400))
    plain = evaluate.progressive_val_score(data, RueClassifier(), metrics.Accuracy())
    assert plain.get() > 0.85
    late = evaluate.progressive_val_score(data, RueClassifier(), metrics.LogLoss(), delay=20)
    start = dt.datetime(2026, 1, 1)
    timed = [(x, y, {}) for x, y in data]
    clock = itertools.count()
    moments = evaluate.progressive_val_score(
        [(x, y) for x, y, _ in timed],
        RueClassifier(),
        metrics.LogLoss(),
        moment=lambda x: start + dt.timedelta(minutes=next(clock)),
        delay=dt.timedelta(minutes=20),
    )
    assert moments.get() == late.get()
    model, total = RueClassifier(), 0.0
    for t, (x, y) in enumerate(data):  # an answer comes 20 questions later, before the question of that moment
        if t >= 20:
            model.learn_one(*data[t - 20])
        chance = model.predict_proba_one(x)
        total -= math.log(chance[y]) if chance else 0.0
    assert late.get() == pytest.approx(total / 380, rel=1e-9)
    assert late.get() < 0.5
    assert evaluate.progressive_val_score(data, RueClassifier(), metrics.LogLoss()).get() < late.get()


def test_in_a_pipeline():
    data = list(datasets.TrumpApproval().take(300))
    model = compose.Select("ordinal_date", "ipsos") | RueRegressor()
    assert evaluate.progressive_val_score(data, model, metrics.MAE()).get() < 1.0
    assert "ordinal_date" in model.debug_one(data[0][0])


# Certificates of River's models.


def by_hand(data, model, p_of):
    X = pd.DataFrame([x for x, *_ in data]).to_numpy()
    said = []
    for x, y, *_ in data:
        said.append(p_of(model, x))
        model.learn_one(x, y)
    return X, np.array(said)


def log_odds(model, x):
    chance = model.predict_proba_one(x)
    if not chance:
        return math.nan
    yes, no = (max(chance.get(name, 0.0), 1e-15) for name in (True, False))
    return math.log(yes / no)


@pytest.mark.parametrize("model", [logistic, naive_bayes.GaussianNB, RueClassifier], ids=["glm", "bayes", "rue"])
def test_any_classifier_certified_in_one_call(model, monkeypatch):
    monkeypatch.setattr("rue.river.certifying.ROWS", 64)
    data = list(datasets.Phishing().take(300))
    X, said = by_hand(data, model(), log_odds)
    signs = np.array([1.0 if y else -1.0 for _, y in data])
    right = rue.certify(X, signs, said, radius=5.0)
    told = certify(data, model(), radius=5.0)
    assert told.regret_at_most == pytest.approx(right.regret_at_most, rel=1e-6)
    assert told.loss_total == pytest.approx(right.loss_total, rel=1e-6)
    assert told.left_out == right.left_out == int(np.isnan(said).sum())
    steps = evaluate.iter_progressive_val_score(data, model(), metrics.LogLoss(), yield_predictions=True)
    yielded = rue.certify(X, signs, scores(steps), radius=5.0)
    assert yielded.regret_at_most == pytest.approx(told.regret_at_most, rel=1e-9)


@pytest.mark.usefixtures("interpreted")
def test_a_regressor_certified_exactly_and_with_late_labels():
    data = list(datasets.TrumpApproval().take(200))
    made = lambda: preprocessing.StandardScaler() | linear_model.LinearRegression()  # noqa: E731
    X, said = by_hand(data, made(), lambda model, x: model.predict_one(x))
    y = np.array([y for _, y in data])
    right = rue.certify(X, y, said, loss="square", domain="ball:2", curvature=True)
    told = certify(data, made(), domain="ball:2", curvature=True)
    assert told.regret_at_most == pytest.approx(right.regret_at_most, rel=1e-6)
    assert told.theorem == "D4"
    late = certify(data, made(), radius=2.0, delay=10)
    metric = evaluate.progressive_val_score(data, made(), metrics.MSE(), delay=10)
    assert late.loss_total / 200 == pytest.approx(metric.get(), rel=1e-9)
    assert late.loss_total > told.loss_total


def test_words_moments_weights_and_missing_values():
    start = dt.datetime(2026, 1, 1)
    data = [
        (
            {"n": float(i), "word": "ab"[i % 2], "gone": None, "when": start + dt.timedelta(hours=i)},
            i % 3 > 0,
            {"w": 2.0},
        )
        for i in range(30)
    ]
    model = compose.Select("n") | preprocessing.StandardScaler() | linear_model.LogisticRegression()
    asked, odds = model.clone(), []
    for x, y, _ in data:
        odds.append(log_odds(asked, x))
        asked.learn_one(x, y, w=2.0)
    X = np.array([[x["n"], x["word"] == "a", x["word"] == "b"] for x, *_ in data], dtype=float)
    signs = [1.0 if y else -1.0 for _, y, _ in data]
    right = rue.certify(X, signs, odds, radius=1.0, weights=np.full(30, 2.0))
    told = certify(data, model, radius=1.0, moment="when", delay=dt.timedelta(0))
    assert told.regret_at_most == pytest.approx(right.regret_at_most, rel=1e-9)
    with pytest.raises(rue.DataError, match="the feature 'when' is datetime"):
        certify(data, model.clone(), radius=1.0)


def test_classes_by_other_names_and_other_losses():
    X, y = table()
    right = certify(rows(X, y), naive_bayes.GaussianNB(), radius=1.0)
    for yes, no in ((1, 0), (1, -1), ("yes", "no"), ("green", "red")):
        told = certify(rows(X, y.map({True: yes, False: no})), naive_bayes.GaussianNB(), radius=1.0)
        assert told.regret_at_most == pytest.approx(right.regret_at_most)
    hinge = certify(rows(X, y), linear_model.Perceptron(), loss="hinge", radius=1.0)
    mistakes = len(y) - round(
        evaluate.progressive_val_score(rows(X, y), linear_model.Perceptron(), metrics.Accuracy()).get() * len(y)
    )
    assert hinge.loss_total == 2.0 * mistakes  # of predictions that are −1 or +1


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda data: certify(data, logistic()), "give radius"),
        (lambda data: certify(data, logistic(), radius=1.0, domain="ball:1"), "give radius"),
        (lambda data: certify(data, logistic(), loss="square", radius=1.0), "does not fit a classifier"),
        (lambda data: certify(data, linear_model.LinearRegression(), loss="hinge", radius=1.0), "not fit a regressor"),
        (lambda data: certify([], logistic(), radius=1.0), "no prediction"),
        (lambda data: certify(rows(*table(classes=3)), naive_bayes.GaussianNB(), radius=1.0), "is neither"),
        (lambda data: scores([{"Step": 1}]), "yield_predictions=True"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(act, sentence):
    with pytest.raises(ValueError, match=sentence):
        act(rows(*table()))


def test_scores_of_what_river_yields():
    assert np.isnan(scores([{"Prediction": None}, {"Prediction": {}}])).all()
    assert scores([{"Prediction": 2.5}, {"Prediction": -1}]).tolist() == [2.5, -1.0]
    assert scores([{"Prediction": True}, {"Prediction": False}]).tolist() == [1.0, -1.0]
    assert scores([{"Prediction": "a"}, {"Prediction": "b"}], positive="b").tolist() == [-1.0, 1.0]
    assert scores([{"Prediction": {0: 0.25, 1: 0.75}}], positive=1).tolist() == [pytest.approx(math.log(3.0))]
    assert np.isfinite(scores([{"Prediction": {True: 1.0}}, {"Prediction": {False: 1.0}}])).all()


def test_streams_of_any_kind():
    X, y = table()
    told = certify(iter(rows(X, y)), RueClassifier(), radius=1.0)
    assert told == certify(rows(X, y), RueClassifier(), radius=1.0)


def test_names_beyond_the_limit_are_hashed_in_frames_as_in_dicts(monkeypatch):
    monkeypatch.setattr(intake, "OWN_NAMES", 3)
    monkeypatch.setattr(intake, "HASHED_NAMES", 4)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 12)), columns=[f"c{j}" for j in range(12)])
    y = pd.Series(X["c0"] + rng.normal(size=40))
    whole, single = RueRegressor(), RueRegressor()
    whole.learn_many(X[:30], y[:30])
    for (_, x), label in zip(X[:30].iterrows(), y[:30], strict=True):
        single.learn_one(x.to_dict(), label)
    predicted = [single.predict_one(x.to_dict()) for _, x in X[30:].iterrows()]
    assert np.allclose(whole.predict_many(X[30:]), predicted, rtol=1e-9)
    assert whole._learner.d == single._learner.d == 7
    narrow = RueRegressor()
    narrow.learn_many(X[["c0", "c1", "c2"]], y)  # no hashed name was learnt, so hashed names have weight 0
    assert np.array_equal(narrow.predict_many(X), narrow.predict_many(X[["c0", "c1", "c2"]]))


def test_intervals_one_by_one_are_those_of_many():
    X, y = table(200, classes=0)
    one, many = RueRegressor(interval=0.8), RueRegressor(interval=0.8)
    many.learn_many(X, y)
    inside = 0
    for x, label in rows(X, y):
        lower, upper = one.predict_interval(x)
        inside += lower <= label <= upper
        one.learn_one(x, label)
    found = one.interval_summary
    assert found == many.interval_summary
    assert found.covered == inside / 200
    assert abs(found.covered - 0.8) <= found.promised_within + found.free / 200
    assert one.clone().interval == 0.8
    with pytest.raises(rue.SettingsError, match=r"RueRegressor\(interval=0.9\)"):
        RueRegressor().predict_interval({"a": 1.0})


@pytest.mark.parametrize("classes", [2, 3])
def test_sets_one_by_one(classes):
    X, y = table(200, classes=classes)
    model, inside = RueClassifier(interval=0.8), 0
    assert model.predict_interval({"a": 1.0}) == set()
    for t, (x, label) in enumerate(rows(X, y)):
        inside += label in model.predict_interval(x) if t else classes == 2
        model.learn_one(x, label)
    found = model.interval_summary
    assert found.covered == inside / 200
    assert found.covered >= 0.8 - found.promised_within
