"""`rue.sklearn`: scikit-learn's own checks, and what they do not ask: order, bits, weights, certificates, threads."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import rue
import rue.sklearn
from rue.reports.explaining import weights_of
from rue.sklearn import (
    OGDClassifier,
    OGDRegressor,
    PerceptronClassifier,
    RueClassifier,
    RueRegressor,
    SVMClassifier,
)

SHUFFLED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "compares a shuffled stream with an ordered one"
    for kind in ("dense", "sparse")
}
ONE_PASS = {
    "check_class_weight_classifiers": "noise, weights of 1000 and 0.0001: one pass of a single rate is too short"
}
ALL = [getattr(rue.sklearn, name) for name in rue.sklearn.__all__]


def data(n=60, d=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.choice([0.0, 1.0, 10.0], size=(n, d))
    score = X @ rng.normal(size=d) + rng.normal(size=n)
    if classes == 0:
        return X, score
    return X, np.array(["ash", "beech", "cedar"])[
        np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    ]


def same(a, b):
    """Whether two estimators are in the same state, to the last bit."""
    mine, other = a.evidence_.ledger, b.evidence_.ledger
    alike = np.array_equal(mine.sums, other.sums) and np.array_equal(mine.S, other.S)
    return alike and a.evidence_.penalty == b.evidence_.penalty and a.learner_ == b.learner_


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: estimator.__name__)
def test_every_check_of_scikit_learn_but_the_two_that_shuffle(estimator):
    single_rate = estimator in (OGDClassifier, PerceptronClassifier, SVMClassifier)
    excused = SHUFFLED | (ONE_PASS if single_rate else {})
    results = check_estimator(estimator(), expected_failed_checks=excused, on_skip=None, on_fail=None)
    by_status = {}
    for result in results:
        by_status.setdefault(result["status"], set()).add(result["check_name"])
    assert "failed" not in by_status, by_status["failed"]
    assert by_status.pop("xfail") == set(excused)
    assert by_status.pop("skipped", set()) <= {"check_array_api_input"}  # needs SCIPY_ARRAY_API=1 in the environment
    assert set(by_status) == {"passed"}


# Order and weights, to the last bit. Two classes, more, and numbers, dense and sparse.

CASES = [(RueClassifier, 2), (RueClassifier, 3), (RueRegressor, 0), (SVMClassifier, 2)]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(("estimator", "classes"), CASES)
def test_pieces_of_any_size_are_one_call(estimator, classes, form):
    X, y = data(classes=classes)
    weights = np.random.default_rng(1).uniform(0.1, 3.0, size=len(y))
    X = form(X)
    whole = estimator().fit(X, y, sample_weight=weights)
    for cuts in ([1, 2, 3], [17, 18], range(1, 60)):
        pieces = estimator()
        for begin, end in zip([0, *cuts], [*cuts, 60], strict=True):
            told = {"classes": ["ash", "beech", "cedar"][:classes]} if classes else {}
            pieces.partial_fit(X[begin:end], y[begin:end], sample_weight=weights[begin:end], **told)
        assert same(whole, pieces)
    assert np.array_equal(whole.predict(X), pieces.predict(X))
    again = whole.fit(X, y, sample_weight=weights)
    assert same(again, pieces)  # `fit` begins anew


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(("estimator", "classes"), CASES)
def test_weight_0_is_leaving_the_example_out(estimator, classes, form):
    X, y = data(classes=classes, seed=2)
    weights = np.random.default_rng(3).choice([0.0, 1.0, 2.5], size=len(y))
    weights[0] = 0.0
    kept = weights > 0.0
    assert not classes or set(y[kept]) == set(y)
    zeros = estimator().fit(form(X), y, sample_weight=weights)
    without = estimator().fit(form(X)[kept], y[kept], sample_weight=weights[kept])
    assert same(zeros, without)
    assert np.array_equal(zeros.predict(X), without.predict(X))
    assert np.array_equal(zeros.coef_, without.coef_)
    assert not same(without, estimator().fit(form(X)[kept], y[kept]))  # so weights do matter


def test_a_fit_is_a_run_of_the_library_to_the_last_bit():
    X, y = data()
    y = (y == "beech").astype(int)
    run, model = rue.learn(X, y), RueClassifier().fit(X, y)
    assert model.learner_ == run.learner
    assert (model.risk_, model.loss_, model.mistakes_) == (run.risk, run.loss, run.mistakes)
    assert model.certificate_ == run.certificate()
    assert model.certificate(radius=3) == run.certificate(radius=3)
    assert np.array_equal(model.decision_function(X), run.predict(X))
    X, y = data(classes=0)
    run, model = rue.learn(X, y), RueRegressor().fit(X, y)
    assert model.learner_ == run.learner
    assert model.certificate_ == run.certificate()
    assert np.array_equal(model.predict(X), run.predict(X))
    X, y = data(classes=3)
    first = np.array([np.flatnonzero(y == name)[0] for name in ("ash", "beech", "cedar")])
    order = np.concatenate((first, np.delete(np.arange(len(y)), first)))  # numbered alike by both
    run, model = rue.learn(X[order], y[order]), RueClassifier().fit(X[order], y[order])
    assert model.learner_ == run.learner
    assert (model.risk_, model.mistakes_) == (run.risk, run.mistakes)
    assert np.allclose(model.predict_proba(X), run.predict(X)[:, 1:], rtol=1e-3)


def test_the_certificate_is_that_of_the_predictions():
    X, y = data(n=100)
    model, signs = PerceptronClassifier(), np.where(y == "beech", 1.0, -1.0)
    before = [0.0]
    model.partial_fit(X[:1], y[:1], classes=["ash", "beech"])
    for i in range(1, len(y)):
        before.append(model.decision_function(X[i : i + 1])[0])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    told = rue.certify(X, signs, before, loss="perceptron", radius=2.0)
    assert model.certificate(radius=2.0).regret_at_most == pytest.approx(told.regret_at_most, rel=1e-12)
    assert model.mistakes_ == int(np.sum(signs * before <= 0.0))
    svm = SVMClassifier().fit(X, y)
    assert svm.certificate_.theorem == "D2"
    assert svm.certificate_ == rue.learn(X, signs, learner=rue.SVM()).certificate()


def test_more_than_two_classes_have_no_certificate():
    model = RueClassifier().fit(*data(classes=3))
    assert not hasattr(model, "certificate_")
    with pytest.raises(rue.SettingsError, match="no certificate for more than two classes"):
        model.certificate(radius=1.0)
    assert model.mistakes_ > 0
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)


# What it predicts.


def test_linear_learners_predict_by_their_coefficients():
    X, y = data(n=80)
    for model in (OGDClassifier(), SVMClassifier(), OGDClassifier(intercept=False)):
        model.fit(X, y)
        assert np.allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0], rtol=1e-10)
        assert np.array_equal(model.predict(X), model.classes_[(model.decision_function(X) > 0).astype(int)])
        assert (model.intercept_[0] == 0.0) == (not model.intercept)
    run = rue.learn(X, np.where(y == "beech", 1, -1), learner=rue.SVM())
    assert np.array_equal(SVMClassifier().fit(X, y).coef_[0], run.learner.average[1:])
    X, y = data(n=80, classes=0)
    model = OGDRegressor().fit(X, y)
    assert np.allclose(model.predict(X), X @ model.coef_ + model.intercept_)


def test_probabilities():
    X, y = data()
    model = RueClassifier().fit(X, y)
    p = model.decision_function(X)
    assert np.allclose(model.predict_proba(X)[:, 1], 1.0 / (1.0 + np.exp(-p)))
    assert np.allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    X, y = data(classes=3)
    model = RueClassifier().fit(X, y)
    chances = model.predict_proba(X)
    assert np.allclose(chances.sum(axis=1), 1.0)
    assert np.allclose(np.exp(model.predict_log_proba(X)), chances)
    assert np.array_equal(model.decision_function(X).argmax(axis=1), chances.argmax(axis=1))
    assert np.array_equal(model.predict(X), model.classes_[chances.argmax(axis=1)])
    for model in (PerceptronClassifier(), SVMClassifier(), RueClassifier("hinge"), OGDClassifier("nonsense")):
        assert not hasattr(model, "predict_proba")
    assert hasattr(OGDClassifier(rue.Regularised(rue.Logistic(), 0.1)), "predict_proba")


def test_classes_that_have_not_come_share_what_is_reserved():
    X, y = data(classes=3)
    some = y != "beech"
    model = RueClassifier().partial_fit(X[some], y[some], classes=["ash", "beech", "cedar", "oak"])
    raw = model.learner_.predict_many(X)
    chances = model.predict_proba(X)
    assert np.allclose(chances[:, 1], raw[:, 0] / 2)
    assert np.allclose(chances[:, 3], raw[:, 0] / 2)
    assert np.allclose(chances[:, [0, 2]], raw[:, [1, 3]])
    assert model.coef_.shape == (4, 4)
    assert not model.coef_[[1, 3]].any()
    fresh = RueClassifier().partial_fit(X[:1], y[:1], classes=["ash", "beech", "cedar"], sample_weight=[0.0])
    assert np.allclose(fresh.predict_proba(X), 1 / 3)


@pytest.mark.usefixtures("interpreted")
def test_counts_are_predicted_by_their_mean():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)[np.random.default_rng(0).permutation(40)]
    y = np.where(X[:, 0] > 0, 20.0, 3.0)
    model = RueRegressor("poisson").fit(X, y)
    assert np.allclose(model.predict(X), np.exp(model.learner_.predict_many(X)))
    assert np.abs(model.predict(X) - y).max() < 3.0


def test_sparse_input_in_any_form_and_never_changed():
    X, y = data(d=6)
    clean = sparse.csr_matrix(X)
    messy = sparse.coo_matrix(
        (np.tile(clean.tocoo().data / 2, 2), (np.tile(clean.tocoo().row, 2), np.tile(clean.tocoo().col, 2))), X.shape
    )
    rows = sparse.csr_matrix(clean)
    rows.indices, rows.data = rows.indices.copy(), rows.data.copy()
    for i in range(len(y)):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        rows.indices[part], rows.data[part] = rows.indices[part][::-1], rows.data[part][::-1]
    rows.has_sorted_indices = rows.has_canonical_format = False
    untouched = rows.indices.copy()
    expected = RueClassifier().fit(clean, y)
    for form in (messy, rows, clean.tocsc(), sparse.csr_array(clean)):
        assert same(expected, RueClassifier().fit(form, y))
        assert np.array_equal(expected.decision_function(form), expected.decision_function(clean))
    assert np.array_equal(rows.indices, untouched)
    dense = RueClassifier().fit(X, y)
    assert np.allclose(dense.decision_function(X), expected.decision_function(X), rtol=1e-9)


def test_threads_may_predict_with_one_model():
    X, y = data(n=3000, d=20)
    model = RueClassifier().fit(X, y)
    parts = [X[i::8] for i in range(8)]
    expected = [model.decision_function(part) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            for told, right in zip(pool.map(model.decision_function, parts), expected, strict=True):
                assert np.array_equal(told, right)


# Among the tools of scikit-learn.


@pytest.mark.parametrize("frames", ["pandas", "polars"])
def test_in_a_pipeline_after_transformers_that_give_data_frames(frames):
    pd = pytest.importorskip(frames)
    X, y = data(n=80, d=2)
    table = pd.DataFrame({"size": X[:, 0], "age": X[:, 1], "wood": ["hard", "soft"] * 40})
    prepared = ColumnTransformer(
        [("words", OneHotEncoder(sparse_output=False), ["wood"]), ("numbers", StandardScaler(), ["size", "age"])]
    )
    pipeline = make_pipeline(prepared.set_output(transform=frames), RueClassifier()).fit(table, y)
    names = ["words__wood_hard", "words__wood_soft", "numbers__size", "numbers__age"]
    model = pipeline[-1]
    assert model.feature_names_in_.tolist() == names
    assert model.n_features_in_ == 4
    assert {name for name, _ in weights_of(model)} == {*names, "intercept"}
    matrix = np.asarray(prepared.fit_transform(table))
    assert same(model, RueClassifier().fit(matrix, y))
    assert pipeline.score(table, y) > 0.6
    with pytest.raises(ValueError, match="feature names"):
        model.predict(
            prepared.transform(table).rename({"numbers__age": "old"}, **{"axis": 1} if frames == "pandas" else {})
        )


def test_searched_validated_cloned_and_pickled():
    X, y = data(n=90)
    search = GridSearchCV(RueClassifier(), {"intercept": [True, False], "budget": [None]}, cv=3).fit(X, y)
    assert set(search.best_params_) == {"intercept", "budget"}
    found = cross_val_score(make_pipeline(StandardScaler(), RueRegressor()), *data(n=90, classes=0), cv=3)
    assert found.mean() > 0.3
    model = RueClassifier(budget=400, intercept=False)
    assert clone(model).get_params() == {
        "loss": "logistic",
        "budget": 400,
        "intercept": False,
        "class_weight": None,
        "interval": None,
        "maps": "default",
    }
    half = RueClassifier().fit(X[:45], y[:45])
    again = pickle.loads(pickle.dumps(half)).partial_fit(X[45:], y[45:])
    assert same(again, RueClassifier().fit(X, y))
    assert half.learner_.t == 45  # what went on was a copy
    X, y = data(n=60, classes=3)
    assert OneVsRestClassifier(PerceptronClassifier()).fit(X, y).predict(X).shape == (60,)


def test_models_read_from_a_mapped_file_can_go_on(tmp_path):
    joblib = pytest.importorskip("joblib")
    X, y = data()
    model = RueClassifier().fit(X[:40], y[:40])
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    assert same(mapped.partial_fit(X[40:], y[40:]), RueClassifier().fit(X, y))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("classes", [2, 3, 0])
def test_saved_and_loaded_predicts_the_same_and_goes_on(classes, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = data(classes=classes)
    table = pd.DataFrame(X, columns=["size", "age", "height", "width"])
    model = (RueClassifier() if classes else RueRegressor()).fit(table[:40], y[:40])
    rue.save(model, tmp_path / "m.rue")
    back = rue.load(tmp_path / "m.rue")
    if classes:
        assert np.array_equal(back.predict(X, as_="label"), model.predict(table))
        chances = back.predict(X, as_="probability")
        chances = np.column_stack((1 - chances, chances)) if classes == 2 else chances
        assert np.allclose(chances / chances.sum(axis=1, keepdims=True), model.predict_proba(table), rtol=1e-9)
    if classes != 3:
        assert np.array_equal(back.predict(X), (model.decision_function if classes else model.predict)(table))
    for form in (table, table[["width", "age", "size", "height"]], table.to_dict("records")):  # columns by their names
        assert np.array_equal(back.predict(form), back.predict(X))
    with pytest.raises(rue.DataError, match="the column 'height' is missing"):
        back.predict(table[["size", "age", "width"]])
    run = rue.learn(X[40:], y[40:], learner=back)
    model.partial_fit(table[40:], y[40:])
    assert run.learner == model.learner_
    assert (run.loss, run.names) == (model.loss_, dict(enumerate(table)))


@pytest.mark.usefixtures("interpreted")
def test_weights_of_a_pipeline_have_the_names_that_its_steps_give():
    pd = pytest.importorskip("pandas")
    X, y = data(n=80, d=2)
    table = pd.DataFrame({"size": X[:, 0], "age": X[:, 1], "wood": ["hard", "soft", "cork", "hard"] * 20})
    prepared = ColumnTransformer([("w", OneHotEncoder(), ["wood"]), ("n", StandardScaler(), ["size", "age"])])
    names = ["w__wood_cork", "w__wood_hard", "w__wood_soft", "n__size", "n__age"]
    chosen = SelectKBest(k=3)
    for pipeline in (
        make_pipeline(prepared, RueClassifier()),
        make_pipeline(prepared, make_pipeline(MaxAbsScaler(), OGDClassifier())),
        GridSearchCV(make_pipeline(prepared, OGDClassifier()), {"ogdclassifier__step": ["fixed:0.1"]}, cv=2),
        make_pipeline(prepared, chosen, OGDClassifier()),
    ):
        pipeline.fit(table, y)
        last = getattr(pipeline, "best_estimator_", pipeline)[-1]
        last = last[-1] if hasattr(last, "steps") else last
        wanted = [names[j] for j in chosen.get_support(indices=True)] if len(last.coef_[0]) == 3 else names
        weights = dict(weights_of(pipeline))
        assert weights.pop("intercept") == last.intercept_[0]
        assert weights == dict(zip(wanted, last.coef_[0], strict=True))
    silent = make_pipeline(FunctionTransformer(lambda table: table[["size", "age"]].to_numpy()), OGDClassifier())
    assert {name for name, _ in weights_of(silent.fit(table, y))} == {"intercept", "feature 0", "feature 1"}
    with pytest.raises(rue.SettingsError, match=r"give its last step, pipeline\[-1\]"):
        rue.save(silent, "m.rue")
    with pytest.raises(rue.DataError, match="this RueClassifier has not learnt anything yet"):
        rue.save(RueClassifier(), "m.rue")
    with pytest.raises(rue.SettingsError, match="of a pipeline give the last step, and the row as it gets it"):
        rue.explain(silent, table[:1])


# What is refused.


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda X, y: RueClassifier().partial_fit(X, y), "first call needs all the classes"),
        (lambda X, y: RueClassifier().fit(X, np.full(len(y), "ash")), "only one class"),
        (lambda X, y: RueClassifier("square").fit(X, y), "is for numbers, not for classes"),
        (lambda X, y: RueRegressor("hinge").fit(X, np.arange(len(y))), "is for classes, not for numbers"),
        (lambda X, y: RueClassifier().partial_fit(X, y, classes=["ash", "oak"]), "'beech'.* is none of the classes"),
        (lambda X, y: RueClassifier().fit(X, y).partial_fit(X, y, classes=["a", "b"]), "the classes are"),
        (
            lambda X, y: RueClassifier("hinge").fit(X, data(classes=3)[1]),
            "more than two classes are learnt with log loss",
        ),
        (lambda X, y: SVMClassifier().fit(X, data(classes=3)[1]), "Only binary classification is supported"),
        (lambda X, y: RueClassifier().fit(X, y, sample_weight=-np.ones(len(y))), "weight -1.0 is not"),
        (lambda X, y: RueClassifier(budget=1).fit(X, y), "bytes"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(act, sentence):
    with pytest.raises(ValueError, match=sentence):
        act(*data())


def test_what_is_too_large_is_refused_and_counted():
    X, y = data(n=30)
    X[4, 0] = 1e200
    model = RueClassifier().fit(X, y)
    assert model.refused_ == 1
    assert model.certificate_.left_out == 1
    assert model.learner_.t == 29


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_rue_is_imported_without_them_and_they_say_what_they_need():
    light = "import rue, sys; assert not {'sklearn', 'river', 'pandas', 'rue.sklearn', 'rue.river'} & set(sys.modules)"
    assert run_python(light).returncode == 0
    for module, package, extra in (("sklearn", "scikit-learn", "sklearn"), ("river", "River", "river")):
        done = run_python(f"import sys; sys.modules[{module!r}] = None; import rue.{module}")
        said = f"ImportError: rue.{module} needs {package}: pip install 'rue[{extra}]'."
        assert done.stderr.strip().splitlines()[-1] == said


def test_intervals_are_those_of_learn_and_go_on_with_partial_fit():
    X, y = data(300, classes=0)
    model = RueRegressor(interval=0.8).fit(X, y)
    run = rue.learn(X, y, interval=0.8)
    assert model.interval_ == run.interval
    lower, upper = model.predict_interval(X[:7])
    wanted = run.predict_interval(X[:7])
    assert np.array_equal(lower, wanted[0])
    assert np.array_equal(upper, wanted[1])
    parts = clone(model)
    for begin in range(0, 300, 50):
        parts.partial_fit(X[begin : begin + 50], y[begin : begin + 50])
        parts = pickle.loads(pickle.dumps(parts))
    assert parts.interval_ == model.interval_
    with pytest.raises(rue.SettingsError, match="without intervals"):
        RueRegressor().fit(X, y).predict_interval(X)


@pytest.mark.parametrize("classes", [2, 3])
def test_sets_of_classes(classes):
    X, y = data(300, classes=classes)
    model = RueClassifier(interval=0.8).fit(X, y)
    sets = model.predict_interval(X)
    assert sets.shape == (300, classes)
    assert sets[np.arange(300), model.predict_proba(X).argmax(axis=1)].all()
    assert model.interval_.covered >= 0.8 - model.interval_.promised_within
    assert model.interval_.examples == 300
