"""Examples without a label: predicted, not learnt, and without influence on anything else."""

import io

import numpy as np
import pandas
import pytest
from scipy import sparse

import rue
from rue.runs.driver import Driver
from rue.streams import as_labels

LEARNERS = {
    "two classes": (None, lambda rng, n: rng.choice(["no", "yes"], n)),
    "numbers": (rue.OGD("square", "ball:3", average="uniform"), lambda rng, n: rng.normal(size=n)),
    "counts": (rue.OGD("poisson", "ball:1"), lambda rng, n: rng.poisson(2.0, n).astype(float)),
    "svm": (rue.SVM(0.1), lambda rng, n: rng.choice([-1.0, 1.0], n)),
    "four classes": (None, lambda rng, n: rng.choice(["a", "b", "c", "d"], n)),
}


def stream(which, matrix, n=40):
    """Features, labels with gaps, and which labels are missing."""
    rng = np.random.default_rng(sum(map(ord, which)))
    X, (learner, labels) = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.7), LEARNERS[which]
    missing = rng.random(n) < 0.3
    y = labels(rng, n).astype(object)
    y[missing] = None
    return matrix(X), y, missing, learner


@pytest.mark.parametrize("matrix", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("which", LEARNERS)
def test_a_run_is_that_of_the_labelled_rows(which, matrix, interpreted):
    X, y, missing, learner = stream(which, matrix)
    radius = {} if which == "four classes" else {"witnesses": 2.0}
    whole = rue.learn(X, y, learner=learner, **radius)
    alone = rue.learn(X[~missing], y[~missing].tolist(), learner=learner, **radius)
    assert whole.unlabelled == missing.sum() > 0
    assert whole.skipped == whole.refused == 0
    assert (whole.examples, whole.loss, whole.mistakes) == (alone.examples, alone.loss, alone.mistakes)
    assert whole.learner == alone.learner
    assert np.array_equal(whole.predictions[~missing], alone.predictions)
    assert np.array_equal(whole.losses[~missing], alone.losses)
    assert np.isnan(whole.losses[missing]).all()
    assert np.array_equal(whole.scored, ~missing)
    if which == "four classes":
        assert np.array_equal(whole.probabilities[~missing], alone.probabilities)
        assert np.isnan(whole.predictions[missing]).all()  # they would be about the class that came
    else:
        assert whole.certificate(radius=2.0) == alone.certificate(radius=2.0)
    for row in np.flatnonzero(missing)[3:6]:  # predicted by what had been learnt until then
        before = rue.learn(X[:row], y[:row].tolist(), learner=learner, task=whole.labels.task)
        said = before.learner.predict_many(X[row : row + 1])[0]
        if which == "four classes":
            known = before.labels.classes
            columns = [whole.labels.classes.index(name) for name in known]
            np.testing.assert_allclose(whole.probabilities[row, columns], said[1:], rtol=1e-12)
        elif before.labels == whole.labels:
            np.testing.assert_allclose(whole.predictions[row], said, rtol=1e-12)


def test_nothing_depends_on_the_blocks(interpreted):
    X, y, missing, _ = stream("two classes", np.asarray)
    whole = rue.learn(X, y)
    parts = rue.learn([rue.Block(X[i : i + 3], y[i : i + 3]) for i in range(0, 40, 3)])
    first = int(np.argmin(missing)) // 3 * 3  # nothing can be predicted before the first label has been read
    assert np.array_equal(parts.predictions[first:], whole.predictions[first:])
    assert (parts.learner, parts.loss, parts.unlabelled) == (whole.learner, whole.loss, whole.unlabelled)


def test_class_weights_count_labelled_rows_alone(interpreted):
    X, y, missing, _ = stream("two classes", np.asarray)
    blocks = [rue.Block(X[i : i + 4], y[i : i + 4]) for i in range(0, 40, 4)]
    blocks.insert(0, rue.Block(X[:3], [None] * 3))
    whole = rue.learn(blocks, class_weight="balanced")
    alone = rue.learn(X[~missing], y[~missing].tolist(), class_weight="balanced")
    assert (whole.learner, whole.loss, whole.unlabelled) == (alone.learner, alone.loss, 3 + missing.sum())


def test_labels_that_come_late(interpreted):
    X, y = np.ones((6, 1)), [np.nan, np.nan, np.nan, 2.5, np.nan, 1.5]
    run = rue.learn([rue.Block(X[:2], y[:2]), rue.Block(X[2:], y[2:])])
    assert run.labels.task == "regress"
    assert run.predictions[:4].tolist() == [0.0] * 4
    assert (run.unlabelled, run.examples, run.predictions.size) == (4, 2, 6)
    many = rue.learn([rue.Block(np.ones((70_000, 1)), [None] * 70_000), rue.Block(X, y)], learner="perceptron")
    assert np.isnan(many.predictions).sum() == 70_000  # nobody waits longer than 65,536 rows for the first label
    with pytest.raises(rue.DataError, match="every label is missing"):
        rue.learn(X, [None] * 6)


def test_missing_labels_in_any_form():
    forms = {
        (1.5, None, 2.0): [1.5, np.nan, 2.0],
        ("a", float("nan"), "b"): ["a", None, "b"],
        (True, None, False): [True, None, False],
    }
    for given, wanted in forms.items():
        for form in (list, lambda labels: np.array(labels, dtype=object), lambda labels: pandas.Series(labels).array):
            labels = as_labels(form(given)).tolist()
            assert all(
                a == b or (a is None and b is None) or (a != a and b != b) for a, b in zip(labels, wanted, strict=True)
            )
    nullable = as_labels(pandas.array([1, None, 3], dtype="Int64"))
    np.testing.assert_array_equal(nullable, [1.0, np.nan, 3.0])
    assert as_labels(["", "a"]).tolist() == ["", "a"]  # an array may have an empty word for a class; a table may not


def test_the_evidence_of_others_counts_labelled_rows_alone(interpreted):
    X, y, missing, _ = stream("svm", np.asarray)
    p = np.linspace(-1.0, 1.0, 40)
    numbers = as_labels(y)
    with_gaps = rue.certify(X, numbers, p, loss="hinge", radius=2)
    assert with_gaps == rue.certify(X[~missing], numbers[~missing], p[~missing], loss="hinge", radius=2)
    race = rue.race(X, numbers, learners=["ogd", "perceptron"])
    alone = rue.race(X[~missing], numbers[~missing], learners=["ogd", "perceptron"])
    assert (race.examples, race["ogd"].loss) == (alone.examples, alone["ogd"].loss)


def test_audits_and_traces_pass_over_them(interpreted):
    X, y, missing, _ = stream("svm", np.asarray)
    numbers = as_labels(y)
    run = rue.learn(X, numbers, learner=rue.OGD("hinge", "ball:2"))
    audit = rue.audit(run, X, numbers)
    assert audit.passed, [check for check in audit.checks if not check.holds]
    assert (
        audit.regret
        == rue.audit(
            rue.learn(X[~missing], numbers[~missing], learner=rue.OGD("hinge", "ball:2")),
            X[~missing],
            numbers[~missing],
        ).regret
    )
    assert run.examples == rue.trace(run, X, numbers).T


def test_a_model_counts_them_when_it_goes_on(tmp_path, interpreted):
    X, y, missing, _ = stream("two classes", np.asarray)
    run = rue.learn(X, y, learner="ogd")
    rue.save(run, tmp_path / "m.rue")
    assert rue.load(tmp_path / "m.rue").counts["unlabelled"] == missing.sum()
    driver = Driver.resume(run.learner, run.labels, run.evidence)
    driver.learn_all(X[:1], [None])
    assert (driver.unlabelled, driver.examples) == (1, run.examples)


def test_every_row_of_a_table_has_an_entry(interpreted):
    text = "a,y\n1,no\ninf,yes\n2,\n3,yes\nx,no\n4,no\n"
    table = pandas.read_csv(io.StringIO(text), dtype={"a": float}, na_values=["x"])
    table.loc[4, "a"] = np.inf
    run = rue.learn(table, y="y", bad="skip", learner=rue.OGD("logistic"))
    assert (run.skipped, run.unlabelled, run.examples) == (2, 1, 3)
    assert np.isnan(run.predictions).tolist() == [False, True, False, False, True, False]
    np.testing.assert_array_equal(run.y, [-1, np.nan, np.nan, 1, np.nan, -1])
