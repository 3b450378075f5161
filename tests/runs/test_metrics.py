"""Metrics against scikit-learn's, in any block size, saved and merged."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rue
from forging import forge, reason
from rue.models.file import Model, load_model
from rue.models.merging import merge_models
from rue.reports.report import page, report
from rue.runs import scores as module
from rue.runs.driver import Driver
from rue.runs.metrics import Metrics
from sklearn import metrics as reference

LOGISTIC, SQUARE, POISSON = (rue.make("loss", name) for name in ("logistic", "square", "poisson"))
LOG_LOSS = rue.SoftmaxMixture().loss

pytestmark = pytest.mark.usefixtures("interpreted")


def entered(loss, y, weights, p, cuts=(), probabilities=None):
    """Metrics of predictions that come in blocks, cut before these rows."""
    metrics = Metrics()
    for rows in np.split(np.arange(y.size), cuts):
        part = None if probabilities is None else probabilities[rows]
        metrics.enter(loss, y[rows], weights[rows] if weights.size else weights, p[rows], part)
    return metrics


def two_classes(seed, n=400, distinct=None):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    p = rng.normal(size=n) + 0.7 * y
    return y, p if distinct is None else np.round(p * distinct) / distinct, rng.random(n) + 0.1


def several_classes(seed, n=300, classes=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(1, classes + 1, n).astype(float)
    probabilities = rng.dirichlet(np.ones(classes), n)
    guesses = 1 + probabilities.argmax(axis=1)
    own = probabilities[np.arange(n), y.astype(int) - 1]
    return y, np.where(guesses == y, own, -own), rng.random(n) + 0.1, probabilities, guesses


def same(a, b):
    """Whether two are the same to the last bit."""
    heads, arrays = zip(a.stored(), b.stored(), strict=True)
    return heads[0] == heads[1] and all(arrays[0][name].tobytes() == arrays[1][name].tobytes() for name in arrays[0])


@settings(max_examples=20)
@given(st.integers(0, 1000), st.booleans(), st.sampled_from([None, 2, 50]))
def test_two_classes_are_scikit_learns(seed, weighted, distinct):
    """Ties among the scores included; a score of 0 is a mistake, for which the reference is told the other class."""
    y, p, w = two_classes(seed, 60, distinct)
    y[:2], w = (1.0, -1.0), w if weighted else np.empty(0)
    found = entered(LOGISTIC, y, w, p, [1, 7, 30])
    masses = w if weighted else None
    predicted = np.where(p == 0.0, -y, np.where(p > 0.0, 1.0, -1.0))
    wanted = {
        "accuracy": reference.accuracy_score,
        "balanced_accuracy": reference.balanced_accuracy_score,
        "recall": reference.recall_score,
        "f1": reference.f1_score,
        "confusion": reference.confusion_matrix,
    }
    for name, function in wanted.items():
        assert found[name] == pytest.approx(function(y, predicted, sample_weight=masses)), name
    if (predicted > 0).any():
        assert found["precision"] == pytest.approx(reference.precision_score(y, predicted, sample_weight=masses))
    assert found["auc"] == pytest.approx(reference.roc_auc_score(y, p, sample_weight=masses))
    assert found["auc_error_at_most"] == 0.0


@pytest.mark.parametrize("most", [256, 16])
def test_the_error_of_the_area_is_within_its_bound(most, monkeypatch):
    """Of more scores than there is room for, at any scale; and the digits kept are as many as fit."""
    monkeypatch.setattr(module, "MOST", most)
    for scale in (1.0, 1e-200, 1e150):
        y, p, w = two_classes(int(most), 3000)
        found = entered(LOGISTIC, y, w, scale * p)
        sums = found.sums
        away = abs(found["auc"] - reference.roc_auc_score(y, p, sample_weight=w))
        assert 0.0 < away <= found["auc_error_at_most"] < (0.3 if most == 16 else 0.02)
        assert sums.counted()[0].size <= most
        assert np.unique(module._cut_to(scale * p, sums.digits + 1)).size > most


@settings(max_examples=8)
@given(st.lists(st.integers(0, 299), max_size=6), st.sampled_from([None, 30]), st.booleans())
def test_blocks_do_not_matter(cuts, distinct, weighted):
    """To the last bit, and what was recorded over time too; rows without a prediction or of weight 0 do not count."""
    y, p, w = two_classes(3, 300, distinct)
    w, p[[0, 17]] = w if weighted else np.empty(0), np.nan
    w[5:6] = 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST", 64)
        found, wanted = (entered(LOGISTIC, y, w, p, sorted(own)) for own in (cuts, []))
        assert same(found, wanted)
    assert wanted.examples == 298 - weighted
    y, p, w, chances, _ = several_classes(3)
    found, wanted = (entered(LOG_LOSS, y, w if weighted else w[:0], p, sorted(own), chances) for own in (cuts, []))
    assert same(found, wanted)
    found, wanted = (entered(SQUARE, y, w if weighted else w[:0], p, sorted(own)) for own in (cuts, []))
    assert same(found, wanted)


@pytest.mark.parametrize("classes", [3, 70])
def test_several_classes_are_scikit_learns(classes):
    y, p, w, chances, guesses = several_classes(0, 4000, classes)
    found = entered(LOG_LOSS, y, w, p, [1, 5, 1000], chances)
    assert found["accuracy"] == pytest.approx(reference.accuracy_score(y, guesses, sample_weight=w))
    assert found["balanced_accuracy"] == pytest.approx(reference.balanced_accuracy_score(y, guesses, sample_weight=w))
    names = ("precision", "recall", "f1")
    macro = reference.precision_recall_fscore_support(y, guesses, average="macro", sample_weight=w, zero_division=0.0)
    assert [found[name] for name in names] == pytest.approx(macro[:3])
    each = reference.precision_recall_fscore_support(y, guesses, sample_weight=w)
    assert [[own[name] for own in found["by_class"]] for name in (*names, "weight")] == [
        pytest.approx(list(wanted)) for wanted in each
    ]
    if classes == 3:
        assert found["confusion"] == pytest.approx(reference.confusion_matrix(y, guesses, sample_weight=w))
        areas = [reference.roc_auc_score(y == c, chances[:, c - 1], sample_weight=w) for c in (1, 2, 3)]
        assert 0.0 < found["auc_error_at_most"] < 0.01
        assert abs(found["auc"] - np.mean(areas)) <= found["auc_error_at_most"]
    else:
        assert found["confusion"] is found["auc"] is None
    unknown = entered(LOG_LOSS, y, w, p)  # which class a wrong prediction was is not known
    assert (unknown["accuracy"], unknown["recall"]) == (found["accuracy"], found["recall"])
    assert unknown["precision"] is unknown["confusion"] is unknown["auc"] is None


def test_a_class_that_comes_late_had_no_probability_before():
    """So all that came before it stands below its examples, whatever the order in which classes have numbers."""
    y, p, w, chances, _ = several_classes(4, 600, 3)
    y[:200] = np.minimum(y[:200], 2.0)
    chances[:201, 2] = 0.0
    found = entered(LOG_LOSS, y[:200], w[:200], p[:200], (), chances[:200, :2])
    found.enter(LOG_LOSS, y[200:], w[200:], p[200:], chances[200:])
    areas = [reference.roc_auc_score(y == c, chances[:, c - 1], sample_weight=w) for c in (1, 2, 3)]
    assert abs(found["auc"] - np.mean(areas)) <= found["auc_error_at_most"] < 0.02
    moved = found.sums.renumbered([3, 5, 1])
    assert moved.ranks[[1, 3], 0, 0] == pytest.approx(w.sum())  # classes that this part has not met
    assert moved.ranks[[2, 4, 0]].tobytes() == found.sums.ranks.tobytes()


@pytest.mark.parametrize("loss", [SQUARE, POISSON])
def test_numbers_are_scikit_learns(loss):
    """A Poisson model predicts the logarithm of what is compared with the label."""
    rng = np.random.default_rng(0)
    y, w, p = rng.poisson(3.0, 500) + 1e6 * (loss is SQUARE), rng.random(500) + 0.1, rng.normal(size=500)
    found = entered(loss, y.astype(float), w, p + y.mean() * (loss is SQUARE), [1, 100])
    shown = p + y.mean() if loss is SQUARE else np.exp(p)
    assert found["mae"] == pytest.approx(reference.mean_absolute_error(y, shown, sample_weight=w))
    assert found["rmse"] == pytest.approx(reference.root_mean_squared_error(y, shown, sample_weight=w))
    assert found["r2"] == pytest.approx(reference.r2_score(y, shown, sample_weight=w), rel=1e-6)


def test_what_does_not_exist_is_none():
    found = entered(LOGISTIC, np.array([1.0, 1.0]), np.empty(0), np.array([-1.0, -2.0]))
    assert (found["auc"], found["precision"], found["recall"], found["f1"]) == (None, None, 0.0, 0.0)
    assert entered(SQUARE, np.array([2.0]), np.empty(0), np.array([1.0]))["r2"] is None
    assert dict(Metrics()) == {}
    assert list(Metrics().over_time()) == ["examples"]


def test_over_time_is_that_of_every_prefix():
    y, p, w = two_classes(1, 100)
    course = entered(LOGISTIC, y, w, p).over_time()
    assert course["examples"].tolist() == [1, 2, 4, 8, 16, 32, 64]
    for at, value, area in zip(course["examples"], course["accuracy"], course["auc"], strict=True):
        assert value == pytest.approx(np.average(y[:at] * p[:at] > 0.0, weights=w[:at]))
        if np.unique(y[:at]).size == 2:
            assert area == pytest.approx(reference.roc_auc_score(y[:at], p[:at], sample_weight=w[:at]))
        else:
            assert np.isnan(area)


@pytest.mark.parametrize("loss", [LOGISTIC, LOG_LOSS, SQUARE])
def test_parts_merge_to_the_whole(loss, monkeypatch):
    """Of parts that went on from the same base; to the last bit where weights are 1. One part alone comes back."""
    monkeypatch.setattr(module, "MOST", 64)
    y, p, w = two_classes(2, 900)
    chances = None
    if loss is LOG_LOSS:
        y, p, w, chances, _ = several_classes(2, 900)
    rows = np.split(np.arange(900), [200, 500])
    for weights in (w[:0], w):
        enter = [
            (y[i], weights[i] if weights.size else weights, p[i], None if chances is None else chances[i]) for i in rows
        ]
        base, parts = Metrics(), []
        base.enter(loss, *enter[0])
        for own in enter[1:]:
            parts.append(entered(loss, y[rows[0]], enter[0][1], p[rows[0]], (), enter[0][3]))
            parts[-1].enter(loss, *own)
        merged, whole = base.merge(parts), entered(loss, y, weights, p, (), chances)
        assert merged.examples == 900
        for name, array in merged.sums.stored().items():
            np.testing.assert_allclose(array, whole.sums.stored()[name], rtol=1e-12 if weights.size else 1e-14)
        assert base.merge([parts[0], base]).sums.stored().keys() == parts[0].sums.stored().keys()
        alone = base.merge([base, parts[1]])
        assert all(
            a.tobytes() == b.tobytes()
            for a, b in zip(alone.sums.stored().values(), parts[1].sums.stored().values(), strict=True)
        )


def test_merged_models_have_merged_metrics():
    """Classes that parts have numbered in their own order are brought into one."""
    X, words = np.random.default_rng(0).normal(size=(60, 2)), np.array(list("abcacb" * 10))
    base = rue.learn(X[:2], words[:2], task="multiclass")
    parts = []
    for rows in (slice(2, 30), slice(31, 60)):  # one meets c first, the other a
        driver = Driver.resume(base.learner.copy(), base.labels, base.evidence.merge([]))
        driver.metrics = base.metrics.merge([])
        driver.learn_all(X[rows], words[rows])
        parts.append(Model(driver.learner, driver.evidence, driver.labels, metrics=driver.metrics))
    merged = merge_models(Model(base.learner, base.evidence, base.labels, metrics=base.metrics), parts)
    counts = dict(zip(merged.labels.classes, (own["weight"] for own in merged.metrics["by_class"]), strict=True))
    used = np.concatenate([words[:2], words[2:30], words[31:]])
    assert counts == {name: np.count_nonzero(used == name) for name in "abc"}


def test_a_run_of_several_classes_knows_what_it_predicted():
    """By the most probable class before each answer; in blocks, since probabilities are noted block by block."""
    X = np.random.default_rng(0).normal(size=(80, 2))
    words = np.array(list("abc"))[np.digitize(X[:, 0], [-0.5, 0.5])]
    run = rue.learn([rue.Block(X[:30], words[:30]), rue.Block(X[30:], words[30:])])
    classes = np.array(run.labels.classes)
    guesses = classes[np.argmax(run.probabilities[1:], axis=1)]  # before the first answer there is none
    wanted = reference.confusion_matrix(words[1:], guesses, labels=classes)
    assert run.metrics["confusion"] == wanted.tolist()
    assert run.metrics["accuracy"] == 1.0 - run.mistakes / 80


@pytest.mark.parametrize("task", ["classify", "multiclass", "regress"])
def test_a_model_file_goes_on_with_them(task, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = {"classify": X[:, 0] > 0.3, "multiclass": np.digitize(X[:, 0], [-0.5, 0.5]), "regress": X[:, 0] + 1.5}[task]
    w = rng.random(120) + 0.1
    whole, run = rue.learn(X, y, weights=w, task=task), rue.learn(X[:50], y[:50], weights=w[:50], task=task)
    rue.save(run, tmp_path / "m.rue")
    loaded = load_model(tmp_path / "m.rue")
    assert same(loaded.metrics, run.metrics)
    driver = Driver.resume(loaded.learner, loaded.labels, loaded.evidence)
    driver.metrics = loaded.metrics
    driver.learn_all(X[50:], y[50:], w[50:])
    assert same(driver.metrics, whole.metrics)


def test_impossible_metrics_are_refused_and_an_older_file_has_none(tmp_path):
    X, y = rue.census()
    rue.save(rue.learn(X[:30], y[:30], learner="ogd"), tmp_path / "m")

    def changed(name, change):
        return forge(tmp_path / "m", tmp_path / "x", lambda head, arrays: change(arrays[f"metrics.{name}"]))

    for name, value in (("masses", -1.0), ("scores", np.nan), ("digits", 99), ("times", 0), ("confusion", np.inf)):
        assert "impossible" in (why := reason(changed(name, lambda array, v=value: array.fill(v)))) or "fit" in why, (
            name
        )

    def older(head, arrays):
        head["format"] = 2
        del head["metrics"]
        for name in [name for name in arrays if name.startswith("metrics.")]:
            del arrays[name]

    model = load_model(forge(tmp_path / "m", tmp_path / "old", older))
    assert dict(model.metrics) == {}
    driver = Driver.resume(model.learner, model.labels, model.evidence)
    driver.learn_all(X[30:40], y[30:40])
    assert "of the last 10 examples" in page(report(driver))


def test_the_report_has_them_and_says_what_is_weighted():
    X, y = rue.census()
    X, y, w = X[:200], y[:200], np.where(y[:200] > 0, 3.0, 1.0)
    for weights in (None, w):
        driver = Driver("ogd")
        driver.learn_all(X, y, weights)
        summary = report(driver)
        json.dumps(summary, allow_nan=False)
        found, shown = summary["metrics"], page(summary)
        masses = np.ones(200) if weights is None else w
        p = rue.learn(X, y, weights=weights, learner="ogd").predictions
        assert found["accuracy"] == pytest.approx(np.average(p * y > 0.0, weights=masses))
        assert np.sum(found["confusion"]) == pytest.approx(summary["weight_total"])
        assert found["over_time"]["examples"][-1] == 128
        assert f"accuracy {found['accuracy']:.2%}" in shown
        assert f"ROC AUC {found['auc']:.4f}" in shown
        assert ("each counted once whatever its weight" in shown) == (weights is not None)


def test_race_and_audit_say_that_mistakes_are_not_weighted():
    X, y, w = [[1.0], [-1.0], [2.0], [-2.0]], [1, -1, 1, -1], [1.0, 2.0, 1.0, 3.0]
    for weights in (None, w):
        raced = str(rue.race(X, y, weights=weights, learners=["ogd"]))
        audited = str(rue.audit("ogd", X, y, weights=weights))
        assert ("errors count each example once" in raced) == (weights is not None)
        assert ("each counted once whatever its weight" in audited) == (weights is not None)
