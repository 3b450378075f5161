"""What broke silently in respected libraries, each a test that rue does the right thing; the rows of STYLE's table."""

import copy
import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from snippets import Page

import rue
from rue.registry import registered

RNG = np.random.default_rng(7)
X = np.round(RNG.standard_normal((60, 5)), 3) * (RNG.random((60, 5)) < 0.6)
Y = np.where(X @ RNG.standard_normal(5) + 0.3 * RNG.standard_normal(60) > 0, 1.0, -1.0)
OGD = rue.OGD("hinge", "ball:2", step="sqrt:0.7")


def fresh(learner):
    return copy.deepcopy(learner)


def points_played(learner, rows, labels):
    """w_1, …, w_{T+1}."""
    points = [np.zeros(rows.shape[1] + 1)]
    for x, label in zip(rows, labels, strict=True):
        learner.update(x, label)
        points.append(learner.point.copy())
    return np.array(points)


def test_a_gradient_that_contradicts_the_value_or_a_minimum_that_is_not_at_the_label():
    for name, make in registered("loss").items():
        loss = make()
        labels = (-1.0, 1.0) if isinstance(loss, rue.MarginLoss) else (0.0, 1.0, 3.0)
        if name == "zero-one":  # for evaluation: it has no slope
            continue
        for y in labels:
            for p in (-2.3, -0.41, 0.17, 0.77, 1.9, 4.2):
                h = 1e-6
                numeric = (loss.value(p + h, y) - loss.value(p - h, y)) / (2 * h)
                assert loss.slope(p, y) == pytest.approx(numeric, abs=1e-4), (name, p, y)
            if loss.task == "regress" and name not in ("linear", "poisson"):
                assert loss.value(y, y) == 0.0 <= min(loss.value(y + d, y) for d in (-1.0, -0.01, 0.01, 1.0)), name

    @rue.parameter
    class Contradiction(rue.Loss):
        def value(self, p, y):
            return (p - y) * (p - y)

        def slope(self, p, y):
            return p - y

    @rue.parameter
    class Shifted(rue.Loss):
        def value(self, p, y):
            return (p - y - 1.0) * (p - y - 1.0)

        def slope(self, p, y):
            return 2.0 * (p - y - 1.0)

    with pytest.raises(rue.CheckFailed, match="slope"):
        rue.checks.check_loss(Contradiction())
    with pytest.raises(rue.CheckFailed, match="at p = y = -1 it is 1, and 0 elsewhere"):
        rue.checks.check_loss(Shifted())


def test_a_decaying_step_that_is_ignored(interpreted):
    learner = rue.OGD("linear", "reals", step="sqrt:0.5", intercept=False)
    moves = []
    for t in range(1, 30):
        before = learner.point.copy() if t > 1 else np.zeros(1)
        learner.update([1.0], 1.0)  # a slope of 1 in every round
        moves.append(float((before - learner.point)[0]))
    assert np.allclose(moves, 0.5 / np.sqrt(np.arange(1, 30)), rtol=1e-12)


def test_an_average_that_changes_nothing_or_is_of_the_wrong_points(interpreted):
    for average, alphas in (("uniform", np.ones(60)), ("t", np.arange(1, 61))):
        learner = rue.OGD("hinge", "ball:2", step="sqrt:0.7", average=average)
        played = points_played(learner, X, Y)
        wanted = alphas @ played[:-1] / alphas.sum()  # w_1..w_T
        assert np.allclose(learner.average, wanted, atol=1e-12)
        assert not np.allclose(learner.average, alphas @ played[1:] / alphas.sum(), atol=1e-3)
        assert not np.allclose(learner.average, learner.point, atol=1e-3)
        x = X[0]
        assert learner.predict(x, average=True) == pytest.approx(wanted[0] + wanted[1:] @ x, abs=1e-12)


def test_a_gradient_that_is_applied_one_visit_late(interpreted):
    rows = np.c_[np.ones(60), X]
    w, squares, wanted = np.zeros(6), np.zeros(6), []
    for x, y in zip(rows, Y, strict=True):
        wanted.append(w @ x)
        g = -y / (1 + math.exp(y * (w @ x))) * x
        squares += g * g
        w = w - 0.5 * g / (1 + np.sqrt(squares))
    assert np.allclose(rue.AdaGrad("logistic").run(X, Y), wanted, atol=1e-12)
    assert wanted[1] != 0.0  # the first example has moved the second prediction


def test_decay_of_the_features_present_only_and_results_that_depend_on_chunks_or_on_sparsity():
    learner = rue.SVM(0.1)
    whole = fresh(learner)
    predictions = whole.run(X, Y)

    seen = fresh(learner)
    seen.run(np.array([[1.0, 0.0], [0.0, 1.0]]), [1.0, 1.0])
    after = rue.SVM(0.1)
    after.run(np.array([[1.0, 0.0]]), [1.0])
    assert seen.point[1] == pytest.approx(after.point[1] * (1 - 1 / 2), rel=1e-12)  # shrunk though absent: 1 − ηλ

    for sizes in ([60], [1] * 60, [7, 13, 40]):
        parts, start = fresh(learner), 0
        said = []
        for size in sizes:
            said.append(parts.run(X[start : start + size], Y[start : start + size]))
            parts, start = pickle.loads(pickle.dumps(parts)), start + size  # resumed each time
        assert np.concatenate(said).tobytes() == predictions.tobytes()
        assert parts.point.tobytes() == whole.point.tobytes()
    one = fresh(learner)
    for x, y in zip(X, Y, strict=True):
        one.update(x, y)
    assert one.point.tobytes() == whole.point.tobytes()

    thin = fresh(learner)
    thin.run(sparse.csr_matrix(X), Y)
    assert np.allclose(thin.point, whole.point, atol=1e-12)  # the intercept, coordinate 0, too
    assert abs(whole.point[0]) > 1e-3


def test_the_same_bits_compiled_and_interpreted(monkeypatch):
    compiled = rue.SVM(0.1).run(X, Y)
    from rue.compiled import Kernel

    monkeypatch.setattr(Kernel, "resolve", lambda kernel, *args: kernel.interpreted)
    assert np.allclose(rue.SVM(0.1).run(X, Y), compiled, rtol=0, atol=1e-12)


def test_a_projection_that_measures_only_the_features_of_the_example(interpreted):
    learner = rue.OGD("hinge", "ball:1", step="fixed:0.9", intercept=False)
    for j in range(8):
        learner.update(([j], [1.0]), 1.0)  # each example has one feature of its own: each step alone stays in the ball
        assert np.linalg.norm(learner.point) <= 1 + 1e-12
    assert np.linalg.norm(learner.point) == pytest.approx(1.0)
    ball = rue.Ball(1)
    w, u = 3 * RNG.standard_normal(8), RNG.standard_normal(8)
    u /= 2 * np.linalg.norm(u)
    p = ball.project(w)
    assert np.allclose(ball.project(p), p, atol=1e-15)
    assert (w - p) @ (u - p) <= 1e-12


def test_settings_that_change_when_learning_goes_on_and_rows_that_are_shuffled(inside, tmp_path, interpreted):
    path, model = tmp_path / "s.csv", tmp_path / "m.rue"
    path.write_text("a,b,y\n" + "\n".join(f"{a},{b},{int(y)}" for (a, b), y in zip(X[:, :2], Y, strict=True)) + "\n")
    inside("learn", path, "--target", "y", "--learner", "ogd", "--loss", "hinge", "--model", model, "-q")
    said = inside("learn", path, "--resume", model, "--loss", "logistic", "-q", ok=2)
    assert "--loss contradicts --resume" in said.err
    inside("learn", path, "--resume", model, "--model", model, "-q")
    assert isinstance(rue.load(model).learner.loss, rue.Hinge)

    forwards, backwards = fresh(OGD).run(X, Y), fresh(OGD).run(X[::-1], Y[::-1])
    by_hand, w = [], np.zeros(6)
    for t, (x, y) in enumerate(zip(np.c_[np.ones(60), X], Y, strict=True), 1):
        by_hand.append(w @ x)
        w = w + 0.7 / math.sqrt(t) * y * x * (y * (w @ x) <= 1)
        w = w * min(1.0, 2 / max(np.linalg.norm(w), 1e-300))
    assert np.allclose(forwards, by_hand, atol=1e-12)  # row by row, in the order given
    assert not np.allclose(backwards[::-1], forwards)


def test_one_nan_that_poisons_the_model(interpreted):
    learner = fresh(OGD)
    learner.run(X, Y)
    before = learner.point.tobytes()
    for x, y in ((np.array([np.nan, 0, 0, 0, 0]), 1.0), (X[0], np.nan), (np.array([np.inf, 0, 0, 0, 0]), 1.0)):
        with pytest.raises(rue.DataError, match="finite|label"):
            learner.update(x, y)
        assert learner.point.tobytes() == before
    spoilt = X.copy()
    spoilt[10, 2] = np.nan
    run = rue.learn(spoilt, Y, learner=OGD, bad="skip")
    assert run.skipped == 1
    assert run.examples == 59
    clean = np.delete(np.arange(60), 10)
    assert run.learner.point.tobytes() == rue.learn(X[clean], Y[clean], learner=OGD).learner.point.tobytes()
    huge = X.copy()
    huge[10] = 1e300
    run = rue.learn(huge, Y, learner=rue.OGD("square", "reals", step="fixed:0.01"))
    assert np.isfinite(run.learner.point).all()
    assert run.refused >= 1


def test_snippets_of_the_docs_that_do_not_run(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Use it like this:\n\n```python\nimport rue\nrue.learn_everything()\n```\n")
    with pytest.raises(AttributeError, match="learn_everything"):
        list(Page(page, tmp_path, tmp_path).outputs())
    page.write_text("```console\n$ rue learn nowhere.csv --target y\n```\n")
    with pytest.raises(AssertionError, match="it left with 1, not 0"):
        list(Page(page, tmp_path, tmp_path).outputs())
