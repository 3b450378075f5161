"""The theorems B1 to B10: their values, their assumptions, and that nothing ever violates them."""

import math

import cvxpy as cp
import numpy as np
import pytest
import references
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import rue
from conftest import many
from rue.regret.bounds import Bound, bounds, perceptron_bound, separable_bound, trace
from rue.regret.facts import reach
from rue.regret.statement import Assumption

U = 2.0
D = 3  # features


def stream(seed, task, rows=None, scale=None):
    """Streams of very different kinds: scales, sparsity, repeated rows, drift, one label only, few rows."""
    rng = np.random.default_rng(seed)
    n = rows or int(rng.choice([1, 2, 3, 10, 60]))
    X = rng.normal(size=(n, D)) * (scale or rng.choice([1e-6, 1e-2, 1.0, 30.0, 1e5]))
    X *= rng.random((n, D)) < rng.choice([0.3, 1.0])
    if rng.random() < 0.3:
        X[:] = X[:1]
    y = X @ rng.normal(size=D) + rng.normal(size=n) * rng.choice([0.0, 1.0])
    if rng.random() < 0.3:
        y[n // 2 :] *= -1.0
    y = np.where(y > 0, 1.0, -1.0) if task == "classify" else y
    y = np.abs(y) if task == "count" else y
    if rng.random() < 0.3:
        y = np.sort(y)
    if rng.random() < 0.2:
        y[1::2] *= -1.0 if task != "count" else 1.0
    return X, y


def hostile(make, seed, rows=12):
    """Labels chosen after the prediction is seen, against its sign."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(rows // 3 + 1, D)), 3, axis=0)[:rows]
    y = np.ones(rows)
    for t in range(rows):
        p = trace(make(), X[: t + 1], y[: t + 1]).predictions[-1]
        y[t] = -1.0 if p > 0 else 1.0
    return X, y


def with_ones(X):
    return np.hstack([np.ones((len(X), 1)), X])


def first(found, theorem, form):
    (bound,) = [bound for bound in found if (bound.theorem, bound.form) == (theorem, form)]
    return bound


def d1(made, X, K):
    """A + h_K(−S), from the slopes of the run."""
    return float(made.slopes @ made.predictions) + K.support(-(made.slopes @ with_ones(X)))


# Formulas, against plain NumPy.


def played(X, y, c, w_eta):
    """Gradients by hand: rows of α·(slope·x + λw), from a reference run."""
    return np.array([a * s * x for x, a, s in zip(X, c, w_eta, strict=True)])


@pytest.mark.parametrize("weighted", [False, True])
def test_b3_and_b6_on_the_ball(weighted):
    X, y = stream(3, "classify", rows=60, scale=1.0)
    c = np.linspace(0.5, 2.0, 60) if weighted else np.ones(60)
    Z = with_ones(X)
    run = references.descent(
        Z, y, c, references.LOSSES["hinge"][1], references.ball(U), np.zeros(D + 1), lambda t: 0.5 / np.sqrt(t)
    )
    slope = references.LOSSES["hinge"][1](run.p, y)
    g = np.linalg.norm(c[:, None] * slope[:, None] * Z, axis=1)
    G = (c * np.linalg.norm(Z, axis=1)).max()
    found = bounds(trace(rue.OGD("hinge", rue.Ball(U), "sqrt:0.5"), X, y, c))
    eta, last = 0.5 / np.sqrt(np.arange(1, 61)), np.flatnonzero(g)[-1]
    assert first(found, "B3", "worst case").value == pytest.approx((2 * U**2 / 0.5 + G**2 * 0.5) * np.sqrt(60))
    assert first(found, "B6", "data").value == pytest.approx(4 * U**2 / (2 * eta[last]) + (eta * g**2).sum() / 2)
    assert first(found, "B6", "worst case").value == pytest.approx(4 * U**2 / (2 * eta[last]) + G**2 * eta.sum() / 2)
    assert all(bound.met for bound in found)
    assert ("weight" in found[0].words) == weighted


def test_b3_and_b4_at_the_step_of_theory():
    X, y = stream(4, "regress", rows=40, scale=1.0)
    y = np.clip(y, -U, U)
    found = bounds(trace(rue.OGD("square", rue.Ball(U)), X, y))
    big = np.linalg.norm(with_ones(X), axis=1).max()
    assert first(found, "B3", "worst case").value == pytest.approx(U * 4 * U * big**2 * np.sqrt(8 * 40))
    b4 = first(found, "B4", "worst case")
    assert b4.value == pytest.approx(40 * 8 * (U * big) ** 2 * np.sqrt(2 / 40))
    assert b4.constants["a round"] == pytest.approx(8 * (U * big) ** 2 * np.sqrt(2 / 40))
    assert all(bound.met for bound in found)


def test_b5_fixed_and_tuned():
    X, y = stream(5, "classify", rows=50, scale=1.0)
    X /= 2 * np.linalg.norm(X, axis=1).max()
    Z, G = with_ones(X), 1.2
    run = references.descent(
        Z, y, np.ones(50), references.LOSSES["logistic"][1], references.ball(U), np.zeros(D + 1), lambda t: 0.3
    )
    g2 = (references.LOSSES["logistic"][1](run.p, y)[:, None] * Z) ** 2
    found = bounds(trace(rue.OGD("logistic", rue.Ball(U), "fixed:0.3"), X, y))
    assert first(found, "B5", "data").value == pytest.approx(U**2 / 0.6 + 0.15 * g2.sum())
    largest = np.linalg.norm(Z, axis=1).max()
    assert first(found, "B5", "worst case").value == pytest.approx(U**2 / 0.6 + 0.15 * largest**2 * 50)
    tuned = bounds(trace(rue.OGD("logistic", rue.Ball(U), rue.Horizon(50, G=G)), X, y))
    assert first(tuned, "B5", "tuned").value == pytest.approx(U * G * np.sqrt(50))
    assert first(tuned, "B5", "worst case").value == pytest.approx(U * G * np.sqrt(50))
    box = bounds(trace(rue.OGD("logistic", rue.Box(-1, 1), rue.Horizon(50, X=G)), X, y))
    assert first(box, "B5", "tuned").value == pytest.approx(2 * np.sqrt(D + 1) * G * np.sqrt(50))
    assert all(bound.met for bound in found + tuned + box)


def test_b6_closed_forms():
    X, y = stream(6, "classify", rows=80, scale=1.0)
    G, diameter = np.linalg.norm(with_ones(X), axis=1).max(), 2 * np.sqrt(D + 1)
    found = bounds(trace(rue.OGD("hinge", rue.Box(-1, 1), rue.Theory(X=G)), X, y))
    assert first(found, "B6", "tuned").value == pytest.approx(np.sqrt(2) * diameter * G * np.sqrt(80))
    assert first(found, "B6", "worst case").value <= first(found, "B6", "tuned").value
    slower = bounds(trace(rue.OGD("hinge", rue.Box(-1, 1), rue.Sqrt(diameter / G)), X, y))
    assert first(slower, "B6", "worst case").value <= 1.5 * diameter * G * np.sqrt(80)


def test_b7_is_no_guarantee_and_says_so():
    X, y = stream(7, "classify", rows=30, scale=1.0)
    G = np.linalg.norm(with_ones(X), axis=1).max()
    b7 = first(bounds(trace(rue.OGD("hinge", rue.Ball(U), "strong:1"), X, y)), "B7", "worst case")
    raw = G**2 / 2 * (1 + np.log(30)) + (2 * U) ** 2 / 2 * 30
    assert b7.constants["B7"] == pytest.approx(raw)
    assert b7.value == pytest.approx(min(raw, 2 * U * G * 30))
    assert b7.met
    assert "no guarantee" in str(b7)


@pytest.mark.parametrize("weighting", ["uniform", "t"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("project", [False, True])
def test_b8_for_the_svm(weighting, weighted, project):
    X, y = stream(8, "classify", rows=50, scale=1.0)
    c, lambda_, Z = np.linspace(0.5, 2.0, 50) if weighted else np.ones(50), 0.2, with_ones(X)
    onto = references.ball(1 / np.sqrt(lambda_)) if project else references.anywhere
    slope = references.LOSSES["hinge"][1]
    run = references.strong(Z, y, c, slope, onto, np.zeros(D + 1), lambda_, by_time=weighting == "t")
    alpha = c * (np.arange(1, 51) if weighting == "t" else 1.0)
    points = np.array([w for _, w, _ in run.rounds])
    g = alpha[:, None] * (slope(run.p, y)[:, None] * Z + lambda_ * points)
    made = trace(rue.SVM(lambda_, weighting, project=project), X, y, c)
    found = bounds(made)
    assert np.allclose(made.gradient_squares, (g**2).sum(1))
    assert np.allclose(made.point_squares, (points**2).sum(1))
    assert first(found, "B8", "data").value == pytest.approx(
        0.5 * ((g**2).sum(1) / (lambda_ * np.cumsum(alpha))).sum()
    )
    big = np.linalg.norm(Z, axis=1).max()
    G = big + min(big, np.sqrt(lambda_)) if project else 2 * big
    if weighted:
        count = (alpha**2 / np.cumsum(alpha)).sum()
    else:
        count = 2 * 50 if weighting == "t" else 1 + np.log(50)
    assert first(found, "B8", "worst case").value == pytest.approx(G**2 / (2 * lambda_) * count)
    assert all(bound.met for bound in found)


def test_b9_and_its_factors():
    X, y = stream(9, "regress", rows=50, scale=1.0)
    Z = with_ones(X)
    run = references.adaptive(
        Z, y, np.ones(50), references.LOSSES["square"][1], references.ball(U), np.zeros(D + 1), 2 * U
    )
    total = ((2 * (run.p - y))[:, None] * Z).ravel() @ ((2 * (run.p - y))[:, None] * Z).ravel()
    found = bounds(trace(rue.AdaptiveOGD("square", rue.Ball(U)), X, y))
    assert first(found, "B9", "data").value == pytest.approx(np.sqrt(2) * 2 * U * np.sqrt(total))
    assert first(found, "B6", "data").value <= first(found, "B9", "data").value * (1 + 1e-12)
    half = trace(rue.AdaptiveOGD("square", rue.Ball(U), factor=0.5), X, y)
    assert first(bounds(half), "B9", "data").value == pytest.approx(
        2 * U * np.sqrt(half.gradient_squares.sum()) * (2 + 0.5) / np.sqrt(2)
    )


@pytest.mark.parametrize(("rate", "beta"), [(None, None), (0.3, 0.5), (0.3, None)])
def test_a10_on_the_box(rate, beta):
    X, y = stream(10, "classify", rows=50, scale=1.0)
    low, high = np.array([-1.0, -0.5, 0.0, -2.0]), np.array([1.0, 0.5, 3.0, 1.0])
    made = trace(rue.AdaGrad("hinge", rue.Box(low, high), rate=rate, beta=beta), X, y)
    (bound,) = bounds(made)
    r, b = (np.full(4, rate), 1.0 if beta is None else beta) if rate else ((high - low) / np.sqrt(2), 0.0)
    start = np.clip(0.0, low, high)
    slope = references.LOSSES["hinge"][1]
    run = references.adagrad(with_ones(X), y, np.ones(50), slope, references.box(low, high), start, r, b)
    sums = ((slope(run.p, y)[:, None] * with_ones(X)) ** 2).sum(0)
    wanted = ((high - low) ** 2 * (b + np.sqrt(sums)) / (2 * r) + r * np.sqrt(sums)).sum()
    if rate is None:
        assert wanted == pytest.approx(np.sqrt(2) * ((high - low) * np.sqrt(sums)).sum())
    assert bound.value == pytest.approx(wanted)
    assert bound.theorem == "A10"
    assert bound.met


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("domain", ["interval:-1,2", "reals"])
def test_b10_is_an_equality(weighted, domain):
    rng = np.random.default_rng(11)
    for rows in (1, 2, 50):
        y, c = rng.uniform(-1, 2, rows), rng.uniform(0.1, 3, rows) if weighted else np.ones(rows)
        exact, worst = bounds(trace(rue.FollowTheLeader("square", domain), np.empty((rows, 0)), y, c))
        past = [0.0] + [np.average(y[:t], weights=c[:t]) for t in range(1, rows)]
        best = np.average(y, weights=c)
        regret = (c * (y - past) ** 2).sum() - (c * (y - best) ** 2).sum()
        assert exact.observed == pytest.approx(regret)
        assert exact.value == pytest.approx(regret)
        assert exact.holds
        assert worst.holds
        if not weighted:
            assert exact.value == pytest.approx(((y - past) ** 2 / np.arange(1, rows + 1)).sum())
            length = 3.0 if domain != "reals" else max(y.max(), 0) - min(y.min(), 0)
            assert worst.value == pytest.approx(length**2 * (1 + np.log(rows)))


def test_b10_needs_ones_labels_inside_and_squares():
    columns = np.array([[1.0], [-1.0], [1.0]])
    negative = bounds(trace(rue.FollowTheLeader("square", intercept=False), columns, [1.0, 2.0, 3.0]))
    assert all(bound.holds is None for bound in negative)
    outside = bounds(trace(rue.FollowTheLeader("square", "interval:0,1"), np.empty((2, 0)), [0.5, 2.0]))
    assert all(bound.holds is None for bound in outside)
    assert "0 to 2" in outside[0].words
    (linear,) = bounds(trace(rue.FollowTheLeader("linear", rue.Ball(U)), np.eye(3), [1.0, -1.0, 1.0]))
    assert linear.value == math.inf
    assert linear.holds is None


def test_reach():
    rng = np.random.default_rng(12)
    domains = [rue.Ball(2), rue.Ball(1, [1, 2, 3]), rue.Box(-1, 2), rue.Box([0, 0, 0], [1, 2, 3])]
    domains += [rue.Simplex(2), rue.L1Ball(1.5), rue.Intersection(rue.Ball(2), rue.Halfspace([1, 0, 0], 0.5))]
    for K in domains:
        w = K.project(rng.normal(size=3))
        far = max(np.linalg.norm(K.project(v) - w) for v in rng.normal(size=(4000, 3)) * 10)
        assert far <= reach(K, w) + 1e-9
        if not isinstance(K, rue.Intersection):
            assert reach(K, w) <= far * 1.1
    assert reach(rue.Orthant(), np.zeros(3)) == math.inf
