"""The theorems B1 to B10: their values, their assumptions, and that nothing ever violates them."""

import dataclasses
import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import references
import rue
from conftest import many
from rue.compiled import Kernel
from rue.regret.bounds.facts import reach
from rue.regret.bounds.perceptron import perceptron_bound, separable_bound
from rue.regret.bounds.statement import Assumption, Bound
from rue.regret.bounds.upper import bounds
from rue.runs.replay import trace

U = 2.0
D = 3  # features
_resolve = Kernel.resolve


# Forty combinations on short streams would take minutes to compile.
pytestmark = pytest.mark.usefixtures("interpreted_module")


@pytest.fixture
def compiled(interpreted_module, monkeypatch):
    """The kernels as users run them."""
    monkeypatch.setattr(Kernel, "resolve", _resolve)


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
    steep = first(bounds(trace(rue.OGD("hinge", rue.Ball(U), "strong:100"), X, y)), "B7", "worst case")
    assert steep.value == pytest.approx(2 * U * G * 30)
    assert steep.constants["B7"] > steep.value


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
    assert first(found, "B8", "data").value == pytest.approx(0.5 * ((g**2).sum(1) / (lambda_ * np.cumsum(alpha))).sum())
    big = np.linalg.norm(Z, axis=1).max()
    G = big + min(big, np.sqrt(lambda_)) if project else 2 * big
    plain = 2 * 50 if weighting == "t" else 1 + np.log(50)
    count = (alpha**2 / np.cumsum(alpha)).sum() if weighted else plain
    assert first(found, "B8", "worst case").value == pytest.approx(G**2 / (2 * lambda_) * count)
    assert all(bound.met for bound in found)


def test_b8_counts_a_start_far_from_0():
    X, y = stream(8, "classify", rows=20, scale=1.0)
    X /= np.linalg.norm(X, axis=1).max(initial=1e-9)
    big = np.linalg.norm(with_ones(X), axis=1).max()
    centre = np.array([0.0, 0.0, 0.0, 1.0])
    for lambda_, size in ((5.0, 1.0), (0.8, big / 0.8), (0.1, 3.0)):  # the start, L·X/λ, the ball's farthest point
        made = trace(rue.OGD(rue.Regularised(rue.Hinge(), lambda_), rue.Ball(2, centre)), X, y)
        worst = first(bounds(made), "B8", "worst case")
        assert worst.constants["G"] == pytest.approx(big + lambda_ * size)
        assert worst.met


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
        far = max(np.linalg.norm(K.project(v) - w) for v in rng.normal(size=(300, 3)) * 10)
        assert far <= reach(K, w) + 1e-9
        if not isinstance(K, rue.Intersection):
            assert reach(K, w) <= far * 1.1
    assert reach(rue.Orthant(), np.zeros(3)) == math.inf


# Nothing violates them: D1, D2 and the true regret stay below every bound whose assumptions are met.

SETS = {
    "ball": rue.Ball(U),
    "small ball": rue.Ball(1e-3),
    "off centre": rue.Ball(1.5, [0.1, -0.2, 0.3, 1.0]),
    "box": rue.Box(-0.5, 1),
    "simplex": rue.Simplex(),
    "l1 ball": rue.L1Ball(U),
}
LEARNERS = {
    "hinge, ball, theory": lambda: rue.OGD("hinge", SETS["ball"]),
    "hinge, small ball, sqrt": lambda: rue.OGD("hinge", SETS["small ball"], "sqrt:0.5"),
    "logistic, ball, fixed": lambda: rue.OGD("logistic", SETS["ball"], "fixed:0.1"),
    "absolute, ball, horizon": lambda: rue.OGD("absolute", SETS["ball"], rue.Horizon(60)),
    "hinge, box, horizon": lambda: rue.OGD("hinge", SETS["box"], rue.Horizon(60, G=100.0)),
    "square, ball, theory": lambda: rue.OGD("square", SETS["ball"]),
    "square, ball, sqrt": lambda: rue.OGD("square", SETS["ball"], "sqrt:0.01"),
    "square, ball, theory X": lambda: rue.OGD("square", SETS["ball"], rue.Theory(X=30.0)),
    "huber, off centre, sqrt": lambda: rue.OGD("huber", SETS["off centre"], "sqrt:2"),
    "absolute, box, theory": lambda: rue.OGD("absolute", SETS["box"]),
    "square, box, theory": lambda: rue.OGD("square", SETS["box"]),
    "hinge, ball, 1/t": lambda: rue.OGD("hinge", SETS["ball"], "strong:1"),
    "quantile, simplex, sequence": lambda: rue.OGD("quantile", SETS["simplex"], rue.Sequence([1.0, 0.5, 0.2])),
    "poisson, simplex, adaptive": lambda: rue.AdaptiveOGD("poisson", SETS["simplex"]),
    "linear, l1 ball, adaptive": lambda: rue.AdaptiveOGD("linear", SETS["l1 ball"], factor=0.3),
    "squared hinge, ball, adaptive": lambda: rue.AdaptiveOGD("squared-hinge", SETS["ball"]),
    "hinge, box, adagrad": lambda: rue.AdaGrad("hinge", SETS["box"]),
    "square, box, adagrad": lambda: rue.AdaGrad("square", SETS["box"], rate=0.3),
}
each = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


def task(learner):
    return "count" if isinstance(learner.loss, rue.CountLoss) else learner.loss.task


def require_certified(make, X, y, weights=None):
    """D1 ≤ every bound that is met; returns which were."""
    made = trace(make(), X, y, weights)
    K = make().domain
    certified = d1(made, X if weights is None else X[weights > 0], K)
    slack = made.tolerance(reach(K, np.zeros(D + 1)))
    met = []
    for bound in bounds(made, regret=certified):
        assert bound.value >= 0.0
        assert bound.holds == (None if not bound.met else certified <= bound.value + slack), bound
        assert bound.holds is not False, (bound, certified)
        met += [(bound.theorem, bound.form)] * bound.met
    return met


@pytest.mark.soak
@each
def test_d1_is_below_every_bound_whose_assumptions_are_met(make):
    met = set()
    for seed in range(many(40, 2000)):
        X, y = stream(seed, task(make()))
        if isinstance(make().loss, rue.Poisson):
            X = np.clip(X, -5, 5)
        weights = np.random.default_rng(seed).choice([0.0, 0.3, 1.0, 5.0], len(y)) if seed % 4 == 0 else None
        met |= set(require_certified(make, X, y, weights))
    made = trace(make(), *stream(0, task(make())))
    assert met == {(bound.theorem, bound.form) for bound in bounds(made)}  # each was met somewhere


@pytest.mark.soak
@each
def test_d1_is_below_the_bounds_when_labels_are_chosen_against_the_learner(make):
    if task(make()) == "count":
        return
    for seed in range(many(3, 100)):
        require_certified(make, *hostile(make, seed))


rows = st.lists(
    st.tuples(*[st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.0, -1e4, 1e-4])] * D, st.sampled_from([-1.0, 1.0])), max_size=9
)


@pytest.mark.soak
@each
@settings(max_examples=many(25, 1000))
@given(examples=rows)
def test_d1_is_below_the_bounds_on_whatever_hypothesis_finds(make, examples):
    table = np.array(examples).reshape(-1, D + 1)
    labels = np.abs(table[:, D]) if task(make()) == "count" else table[:, D]
    X = np.clip(table[:, :D], -5, 5) if task(make()) == "count" else table[:, :D]
    require_certified(make, X, labels)


def best(loss, K, Z, y, alpha, lambda_=0.0):
    """min over K of Σ α(ℓ + (λ/2)‖u‖²), by a conic solver."""
    u = cp.Variable(Z.shape[1])
    p = Z @ u
    losses = {
        "hinge": lambda: cp.pos(1 - cp.multiply(y, p)),
        "logistic": lambda: cp.logistic(-cp.multiply(y, p)),
        "absolute": lambda: cp.abs(p - y),
        "square": lambda: cp.square(p - y),
    }
    total = cp.sum(cp.multiply(alpha, losses[loss]())) + 0.5 * lambda_ * float(alpha.sum()) * cp.sum_squares(u)
    sets = {
        rue.Reals: list,
        rue.Ball: lambda: [cp.norm(u) <= K.radius],
        rue.Box: lambda: [u >= K.lower[0], u <= K.upper[0]],
    }
    problem = cp.Problem(cp.Minimize(total), sets[type(K)]())
    return float(problem.solve(solver=cp.CLARABEL))


@pytest.mark.soak
@pytest.mark.parametrize("loss", ["hinge", "logistic", "absolute", "square"])
@pytest.mark.parametrize("K", [rue.Ball(U), rue.Box(-0.5, 1)], ids=["ball", "box"])
@pytest.mark.parametrize("step", ["theory", "fixed:0.05", "adaptive", "strong:1"])
def test_the_true_regret_is_below_every_bound_and_below_d1(loss, K, step):
    for seed in range(many(2, 20)):
        X, y = stream(seed, "classify" if loss in ("hinge", "logistic") else "regress", rows=25, scale=1.0)
        made = trace(rue.OGD(loss, K, step), X, y)
        regret = float(made.losses.sum()) - best(loss, K, with_ones(X), y, np.ones(25))
        assert regret <= d1(made, X, K) + 1e-6
        found = bounds(made, regret=regret)
        assert found
        assert all(bound.holds is not False for bound in found)
        assert any(bound.holds for bound in found)


def d2(made, X):
    """D2: A_0 − ⟨S_0, u*⟩ + ½(q − B‖u*‖²) at u* = Π_K(−S_0/B), with the rounds' α."""
    g = made.alphas / made.weights * made.slopes
    A, S, B = g @ made.predictions, g @ with_ones(X), made.lambda_ * made.alphas.sum()
    q = made.lambda_ * (made.alphas * made.point_squares).sum()
    u = made.domain.project(-S / B)
    return float(A - S @ u + 0.5 * (q - B * (u @ u)))


STRONG = {
    "svm": (lambda: rue.SVM(0.1), "hinge"),
    "svm projected": (lambda: rue.SVM(0.1, project=True), "hinge"),
    "svm t": (lambda: rue.SVM(0.1, "t"), "hinge"),
    "logistic, box": (lambda: rue.OGD(rue.Regularised(rue.Logistic(), 0.5), rue.Box(-0.5, 1)), "logistic"),
    "square, ball": (lambda: rue.OGD(rue.Regularised(rue.Square(), 0.5), rue.Ball(U), "strong:0.3"), "square"),
    "hinge, off centre": (lambda: rue.OGD(rue.Regularised(rue.Hinge(), 0.5), SETS["off centre"]), None),
}


@pytest.mark.soak
@pytest.mark.parametrize(("make", "loss"), STRONG.values(), ids=STRONG)
def test_d2_is_below_d1_and_b8_and_above_the_true_regret(make, loss):
    above = 0
    for seed in range(many(25, 1000)):
        X, y = stream(seed, make().loss.task, scale=(0.01, 1.0, 100.0)[seed % 3])
        if seed % 5 == 0 and make().loss.task == "classify":
            X, y = hostile(make, seed, rows=8)
        weights = np.random.default_rng(seed).choice([0.3, 1.0, 5.0], len(y)) if seed % 4 == 0 else None
        made = trace(make(), X, y, weights)
        certified, slack = d2(made, X), made.tolerance(reach(made.domain, np.zeros(D + 1)))
        found = bounds(made, regret=certified)
        assert [(bound.theorem, bound.form) for bound in found] == [("B8", "data"), ("B8", "worst case")]
        for bound in found:
            assert bound.met, bound
            assert certified <= bound.value + slack, (bound, certified)
        if made.domain.bounded and loss:  # D1 of the whole rounds, regulariser included
            g = made.alphas / made.weights * made.slopes
            full = trace_points(make(), X, y, made)
            S = g @ with_ones(X) + made.lambda_ * (made.alphas @ full)
            A = g @ made.predictions + made.lambda_ * (made.alphas * made.point_squares).sum()
            assert certified <= A + made.domain.support(-S) + slack
            above += A + made.domain.support(-S) > found[0].value
        if loss and seed < many(6, 60):
            penalties = 0.5 * made.lambda_ * (made.alphas * made.point_squares).sum()
            total = (made.alphas * made.losses).sum() + penalties
            regret = total - best(loss, made.domain, with_ones(X), y, made.alphas, made.lambda_)
            assert regret <= certified + 1e-5 * (1.0 + abs(total))
    assert above or not make().domain.bounded or not loss  # D1 ≤ B8 is false, as section 6 says


def trace_points(learner, X, y, made):
    """w_1 … w_T, played once more one by one."""
    points = []
    for x, label, weight in zip(X, y, made.weights, strict=True):
        if not learner.t:
            learner = type(learner)(learner.algorithm, intercept=True, d=D)
        points.append(learner.point)
        learner.update(x, label, weight)
    return np.array(points)


def test_b8_in_one_coordinate_counts_the_curvature_of_the_loss():
    y = np.random.default_rng(13).uniform(0, 1, 40)
    made = trace(rue.OGD("square", rue.Interval(0, 1), "strong:2", d=0), np.empty((40, 0)), y)
    regret = ((made.predictions - y) ** 2).sum() - ((y - y.mean()) ** 2).sum()
    found = bounds(made, regret=regret)
    assert all(bound.theorem == "B8" and bound.holds for bound in found)
    # 1/(2t) on squares is the leader (C5), so the data form is B10's equality.
    assert found[0].value == pytest.approx(regret)
    steep = bounds(trace(rue.OGD("square", rue.Interval(0, 1), "strong:3", d=0), np.empty((40, 0)), y))
    assert [bound.theorem for bound in steep] == ["B7", "B6"]


# Assumptions that fail are seen, and then nothing is claimed.


def failing(found):
    """The assumptions that fail, by theorem and form."""
    for bound in found:
        assert bound.holds is None or bound.met
    return {(bound.theorem, bound.form): [a.name for a in bound.assumptions if not a.met] for bound in found}


def test_a_bound_on_the_gradients_that_is_too_small_is_noticed():
    X, y = stream(20, "classify", rows=30, scale=1.0)
    found = bounds(trace(rue.OGD("hinge", rue.Ball(U), rue.Theory(G=1.0)), X, y), regret=0.0)
    names = failing(found)
    assert names["B3", "worst case"] == names["B6", "worst case"] == ["G"]
    assert names["B6", "data"] == []
    b3 = first(found, "B3", "worst case")
    assert b3.holds is None
    (G,) = [a for a in b3.assumptions if a.name == "G"]
    largest = np.sqrt(trace(rue.OGD("hinge", rue.Ball(U), rue.Theory(G=1.0)), X, y).gradient_squares.max())
    assert (G.assumed, G.observed, G.met) == (1.0, pytest.approx(largest), False)
    assert "G: assumed 1, observed" in str(b3)


def test_an_x_that_is_too_small_and_labels_too_large_are_noticed():
    X, y = np.array([[0.5], [2.0], [0.1]]), np.array([0.1, 1.9, 3.0])

    def make(X):
        return rue.OGD("square", rue.Ball(1), rue.Theory(X=X), intercept=False)

    assert failing(bounds(trace(make(1.0), X, y)))["B3", "worst case"] == ["X", "abs(y)", "G"]
    assert failing(bounds(trace(make(2.0), X, y)))["B3", "worst case"] == ["abs(y)"]
    assert failing(bounds(trace(make(2.0), X, y)))["B4", "worst case"] == ["abs(y)"]
    assert failing(bounds(trace(make(3.0), X, y)))["B3", "worst case"] == []
    hinge = bounds(trace(rue.OGD("hinge", rue.Ball(1), rue.Horizon(3, X=1.0), intercept=False), X, np.sign(y)))
    assert "X" in failing(hinge)["B5", "tuned"]


def test_labels_beyond_the_largest_row_so_far_are_noticed_even_if_later_rows_are_larger():
    """With X the largest ‖x‖ so far, abs(y_t) ≤ U·X must hold at time t, not only at the end."""
    X, y = np.array([[0.1], [0.1], [10.0]]), np.array([5.0, -5.0, 1.0])
    found = bounds(trace(rue.OGD("square", rue.Ball(1), intercept=False), X, y))
    names = failing(found)
    assert "abs(y), with X so far" in names["B4", "worst case"]
    assert "G" in names["B4", "worst case"]
    assert names["B3", "worst case"] == ["abs(y), with X so far", "G"]
    assert names["B6", "worst case"] == ["abs(y), with X so far", "G"]
    assert names["B6", "data"] == []
    (G,) = [a for a in first(found, "B3", "worst case").assumptions if a.name == "G"]
    assert G.observed < G.assumed  # small enough for the last X, not for the X of its round
    fine = bounds(trace(rue.OGD("square", rue.Ball(1), intercept=False), X[::-1], y[::-1]))
    assert not any(failing(fine).values())


def test_more_rounds_than_the_horizon_are_noticed():
    X, y = stream(21, "classify", rows=30, scale=1.0)
    names = {T: failing(bounds(trace(rue.OGD("hinge", rue.Ball(U), rue.Horizon(T, G=50)), X, y))) for T in (29, 30, 99)}
    assert names[29]["B5", "tuned"] == ["T"]
    assert names[30]["B5", "tuned"] == names[99]["B5", "tuned"] == []
    assert names[29]["B5", "worst case"] == []


def test_a_horizon_step_that_follows_the_largest_row_is_not_fixed():
    X, y = np.array([[1.0], [5.0], [2.0]]), np.array([1.0, -1.0, 1.0])
    found = bounds(trace(rue.OGD("hinge", rue.Ball(U), rue.Horizon(3), intercept=False), X, y))
    assert failing(found)["B5", "tuned"] == failing(found)["B5", "data"] == ["η"]
    assert first(found, "B6", "data").met
    assert not any(failing(bounds(trace(rue.OGD("hinge", rue.Ball(U), rue.Horizon(3)), np.ones((3, 1)), y))).values())


def test_increasing_steps_are_noticed():
    X, y = np.ones((3, 1)), np.array([1.0, -1.0, 1.0])
    rising = bounds(trace(rue.OGD("absolute", rue.Ball(1), rue.Sequence([0.1, 0.1, 0.2])), X, y), regret=0.0)
    assert failing(rising) == {("B6", "data"): ["η_t"], ("B6", "worst case"): ["η_t"]}
    assert "higher in 1 rounds" in rising[0].words
    falling = bounds(trace(rue.OGD("absolute", rue.Ball(1), rue.Sequence([0.2, 0.1])), X, y), regret=0.0)
    assert all(bound.holds for bound in falling)


def test_rounds_that_do_not_move_may_have_any_step():
    """Before the first x that is not 0 the step of theory is 0: no increase that matters."""
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 1.0, -1.0])
    found = bounds(trace(rue.OGD("absolute", rue.Ball(1), intercept=False), X, y), regret=0.0)
    assert all(bound.holds for bound in found)


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: rue.OGD("hinge", rue.Ball(U)), {"B3"}),
        (lambda: rue.OGD("hinge", rue.Box(-1, 1)), {"B6 tuned"}),
        (lambda: rue.AdaptiveOGD("hinge", rue.Ball(U)), {"B9"}),
        (lambda: rue.AdaGrad("hinge", rue.Box(-1, 1)), {"A10"}),
        (lambda: rue.SVM(0.1), {"B8"}),
        (lambda: rue.OGD("hinge", rue.Ball(U), "strong:1"), {"B7"}),
        (lambda: rue.OGD("hinge", rue.Ball(U), "fixed:0.1"), set()),
        (lambda: rue.OGD("hinge", rue.Ball(U), rue.Horizon(20, G=50)), {"B5 tuned"}),
        (rue.Perceptron, {"B1", "B2"}),
    ],
)
def test_a_learner_that_had_learnt_before(make, wrong):
    X, y = stream(22, "classify", rows=40, scale=1.0)
    learner = make()
    learner.run(X[:20], y[:20])
    made = trace(learner, X[20:], y[20:])
    assert np.array_equal(made.start, learner.point)
    assert made.before == learner.t == 20
    found = bounds(made, regret=0.0)
    for bound in found:
        spoilt = bound.theorem in wrong or f"{bound.theorem} {bound.form}" in wrong
        assert bound.met == (not spoilt), bound
        assert (bound.holds is None) == spoilt
    if make().domain.bounded and not isinstance(make().domain, rue.Reals):
        certified = d1(made, X[20:], make().domain)
        assert all(certified <= bound.value + 1e-9 for bound in found if bound.met)
    if made.coordinate_squares is not None:
        g = made.slopes[:, None] * with_ones(X[20:])
        assert np.allclose(made.coordinate_squares, (g**2).sum(0))
    if made.step == rue.Fixed(0.1):
        data = first(found, "B5", "data")
        far = U + np.linalg.norm(learner.point)
        assert data.value == pytest.approx(far**2 / 0.2 + 0.05 * made.gradient_squares.sum())


def test_unbounded_domains_have_bounds_against_a_given_radius_only():
    X, y = stream(23, "classify", rows=40, scale=1.0)
    made = trace(rue.OGD("hinge", "reals", "fixed:0.1"), X, y)
    alone = bounds(made, regret=0.0)
    assert all(bound.value == math.inf and bound.holds is None for bound in alone)
    assert "give a radius" in alone[0].words
    certified = d1(made, X, rue.Ball(3))
    within = bounds(made, regret=certified, radius=3)
    assert first(within, "B5", "data").value == pytest.approx(9 / 0.2 + 0.05 * made.gradient_squares.sum())
    assert all(bound.holds for bound in within)
    for step in ("sqrt:0.1", rue.Adaptive(diameter=2.0)):
        found = bounds(trace(rue.OGD("hinge", "reals", step), X, y), regret=0.0, radius=3)
        assert all(bound.value == math.inf and bound.holds is None for bound in found)
    (free,) = bounds(trace(rue.AdaGrad("hinge"), X, y), regret=0.0)
    assert free.holds is None
    assert "bounded box" in free.words


def test_a_step_steeper_than_the_curvature_is_noticed():
    X, y = stream(24, "classify", rows=40, scale=1.0)
    made = trace(rue.OGD(rue.Regularised(rue.Hinge(), 0.1), rue.Ball(U), "strong:0.5"), X, y)
    names = failing(bounds(made))
    assert names["B8", "data"] == names["B8", "worst case"] == ["σ"]
    assert names["B7", "worst case"] == names["B6", "data"] == []


def test_a_projection_that_fell_short_is_noticed():
    X, y = stream(25, "classify", rows=20, scale=1.0)
    K = rue.Intersection(rue.Ball(1), rue.Halfspace([1.0, 2.0, 0.0, 1.0], 0.3), rue.Box(-0.4, 0.4))
    made = trace(rue.OGD("hinge", K), X, y)
    assert all(bound.met for bound in bounds(made))
    short = bounds(dataclasses.replace(made, residual=1e-3), regret=0.0)
    assert all(bound.holds is None for bound in short)
    assert "distance to K" in short[0].words


# The Perceptron.


def conic_mistakes(Z, y):
    """B1's sharp form minimised over s on a grid and then by iteration, by a conic solver."""
    X = np.linalg.norm(Z, axis=1).max()
    u, s = cp.Variable(Z.shape[1]), cp.Parameter(nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(y, Z @ u))) + s * cp.norm(u)))
    lowest = float(len(y))
    for part in (1.0, 0.8, 0.6, 0.4, 0.25, 0.1, 0.0, 0.0, 0.0):
        s.value = X * math.sqrt(part * len(y) if part else lowest)
        problem.solve(solver=cp.CLARABEL)
        H, a = np.maximum(0, 1 - y * (Z @ u.value)).sum(), np.linalg.norm(u.value) * X
        lowest = min(lowest, H + a**2 / 2 + a * math.sqrt(H + a**2 / 4))
    return lowest


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(many(6, 60)))
def test_b1_is_minimised_over_u(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(2, 60)), D)) * 10.0 ** rng.integers(-3, 4)
    y = np.where(X @ rng.normal(size=D) > 0, 1.0, -1.0) * np.where(rng.random(len(X)) < 0.1 * (seed % 3), -1, 1)
    bound, Z = perceptron_bound(X, y, intercept=seed % 2), with_ones(X) if seed % 2 else X
    H = np.maximum(0, 1 - y * (Z @ bound.comparator)).sum()
    a = np.linalg.norm(bound.comparator) * np.linalg.norm(Z, axis=1).max()
    sharp = H + a**2 / 2 + a * np.sqrt(H + a**2 / 4)
    assert bound.constants["sharp"] == pytest.approx(sharp, rel=1e-9)
    assert bound.constants["notes"] == pytest.approx(H + a**2 + a * np.sqrt(H))
    assert bound.value == math.floor(sharp + 1e-9 * (1 + sharp))
    assert conic_mistakes(Z, y) == pytest.approx(sharp, rel=1e-4)
    assert perceptron_bound(sparse.csr_matrix(X), y, intercept=seed % 2).value == bound.value


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(many(6, 60)))
def test_b2_finds_the_widest_margin(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(1, 60)), D))
    y = np.where(X @ [1.0, 2.0, 3.0] > 0, 1.0, -1.0)
    u = cp.Variable(D)
    least = cp.Problem(cp.Minimize(cp.norm(u)), [cp.multiply(y, X @ u) >= 1]).solve(solver=cp.CLARABEL)
    found = separable_bound(X, y, intercept=False)
    assert found.constants["‖u‖"] == pytest.approx(least, rel=1e-5)
    assert found.value == pytest.approx(math.floor((least * np.linalg.norm(X, axis=1).max()) ** 2), rel=1e-5, abs=1)
    assert (y * (X @ found.comparator)).min() >= 1 - 1e-12
    b1, b2 = bounds(trace(rue.Perceptron(intercept=False), X, y))
    assert (b1.theorem, b2.theorem) == ("B1", "B2")
    assert b1.holds
    assert b2.holds


@pytest.mark.soak
def test_mistakes_are_counted_below_b1_whatever_the_stream():
    for seed in range(many(12, 300)):
        X, y = stream(seed, "classify") if seed % 3 else hostile(rue.Perceptron, seed)
        weights = np.full(len(y), 4.0) if seed % 4 == 1 else None
        made = trace(rue.Perceptron(), X, y, weights)
        b1, b2 = bounds(made)
        assert b1.observed == rue.learn(X, y, learner=rue.Perceptron()).mistakes
        assert b1.holds
        assert b2.holds is not False
        assert b1.value <= len(y)


def test_margin_adversary_forces_exactly_what_b2_allows():
    """C1: n basis vectors, each called wrong, are separable with ‖u‖X = √n."""
    n = 5
    b1, b2 = bounds(trace(rue.Perceptron(intercept=False), np.eye(n), [1, -1, 1, 1, -1]))
    assert (b1.value, b1.observed, b2.value) == (n, n, n)


@pytest.mark.parametrize("n", [2, 5, 16, 25, 49])
def test_b1_names_the_zero_comparator_where_no_other_is_better(n):
    """On a basis H + a²/2 + a√(H + a²/4) is n for every u = c·(1, …, 1) with c ≤ 1: rounding must not choose one."""
    bound = perceptron_bound(np.eye(n), np.where(np.arange(n) % 3, 1, -1), intercept=False)
    assert bound.constants["a"] == 0.0
    assert bound.constants["H"] == n
    assert not bound.comparator.any()


def test_unequal_weights_are_no_perceptron():
    X, y = stream(27, "classify", rows=10, scale=1.0)
    found = bounds(trace(rue.Perceptron(), X, y, np.arange(10.0)))
    assert all(bound.holds is None and "weights" in bound.words for bound in found)


def test_data_that_nothing_separates():
    found = separable_bound([[1.0], [1.0]], [1, -1])
    assert not found.met
    assert found.value == math.inf
    assert found.comparator is None
    assert perceptron_bound([[1.0], [1.0]], [1, -1]).value == 2.0


def test_empty_and_zero_rows():
    assert perceptron_bound(np.empty((0, 2)), []).value == 0.0
    assert separable_bound(np.empty((0, 2)), []).value == 0.0
    assert perceptron_bound(np.zeros((3, 2)), [1, -1, 1], intercept=False).value == 3.0
    assert not separable_bound(np.zeros((3, 2)), [1, -1, 1], intercept=False).met
    with pytest.raises(rue.DataError, match="finite features"):
        perceptron_bound([[math.nan]], [1])


# Replaying.


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_a_replay_is_the_run(kind, compiled):
    X, y = stream(30, "classify", rows=60, scale=1.0)
    c = np.random.default_rng(30).choice([0.0, 1.0, 2.5], 60)
    for make in (lambda: rue.SVM(0.1, "t"), rue.Perceptron):
        words = np.where(y > 0, "spam", "ham")
        run = rue.learn(kind(X), words, learner=make(), weights=c)
        made = trace(run, kind(X), words, c)
        assert np.array_equal(made.predictions, run.predictions[c > 0])
        assert np.array_equal(made.losses, run.losses[c > 0])
        assert run.examples == made.T
        assert np.allclose(made.norms, np.linalg.norm(with_ones(X), axis=1)[c > 0])
        assert np.array_equal(made.labels, run.y[c > 0])
        assert run.loss == pytest.approx((made.weights * made.losses).sum())
        cut = trace(run, [rue.Block(kind(X[i : i + 7]), words[i : i + 7], c[i : i + 7]) for i in range(0, 60, 7)])
        assert np.array_equal(cut.gradient_squares, made.gradient_squares)
        assert np.array_equal(cut.etas, made.etas)
        if made.features is not None:
            dense = made.features if kind is np.asarray else made.features.toarray()
            assert np.array_equal(dense, with_ones(X)[c > 0])


def test_etas_are_those_the_learner_used():
    X, y = stream(31, "classify", rows=30, scale=1.0)
    Z, slope = with_ones(X), references.LOSSES["hinge"][1]
    ball, zero, ones = references.ball(U), np.zeros(D + 1), np.ones(30)
    length = np.sqrt(2) * U
    for learner, run in [
        (rue.OGD("hinge", rue.Ball(U)), references.theory(Z, y, ones, slope, ball, zero, length, 1.0)),
        (rue.AdaptiveOGD("hinge", rue.Ball(U)), references.adaptive(Z, y, ones, slope, ball, zero, 2 * U)),
        (rue.SVM(0.2, "t"), references.strong(Z, y, ones, slope, references.anywhere, zero, 0.2, by_time=True)),
    ]:
        made = trace(learner, X, y)
        assert np.allclose(made.etas, [eta for _, _, eta in run.rounds], rtol=1e-9)
        assert learner.t == 0  # a copy learnt


def test_refused_and_skipped_examples_are_no_rounds():
    X = np.array([[1.0], [1e300], [2.0], [math.nan], [3.0]])
    y = [1.0, 2.0, 3.0, 4.0, 5.0]
    run = rue.learn(X, y, learner=rue.OGD("square", rue.Ball(U), "sqrt:0.1"), bad="skip")
    assert (run.skipped, run.refused) == (1, 1)
    made = trace(run, X, y)
    assert np.array_equal(made.labels, [1.0, 3.0, 5.0])
    with pytest.raises(rue.BadExample):
        trace(rue.OGD("square", rue.Ball(U), "sqrt:0.1"), X, y)


def test_another_stream_than_the_runs_is_refused():
    X, y = stream(32, "classify", rows=30, scale=1.0)
    run = rue.learn(X, y, learner=rue.OGD("hinge"))
    with pytest.raises(rue.DataError, match="the stream it was made on"):
        trace(run, X + 1.0, y)
    with pytest.raises(rue.DataError, match="saw 30 examples, but here are 20"):
        trace(run, X[:20], y[:20])
    half = rue.OGD("hinge")
    half.run(X[:10], y[:10])
    with pytest.raises(rue.DataError, match="had learnt 10 examples before"):
        trace(rue.learn(X[10:], y[10:], learner=half), X[10:], y[10:])


@pytest.mark.parametrize("rows", [0, 1])
def test_no_rounds_and_one_round(rows):
    X, y = np.ones((rows, D)), np.ones(rows)
    learners = [*LEARNERS.values(), rue.SVM, rue.Perceptron, lambda: rue.FollowTheLeader("linear", rue.Ball(1))]
    for make in learners:
        made = trace(make(), X, y)
        assert rows == made.T
        assert {b.theorem for b in bounds(made)} == {b.theorem for b in bounds(trace(make(), np.ones((2, D)), [1, 1]))}
        for bound in bounds(made, regret=0.0):
            assert bound.value >= 0.0
            assert bound.holds is not False
            assert not math.isnan(bound.value)
            assert str(bound)


def test_a_violation_is_said():
    bound = Bound("B3", "worst case", 1.0, "R_T ≤ 1", (Assumption.limit("G", 1.0, 0.5),), {"G": 1.0}, 2.0, 1e-9)
    assert bound.holds is False
    assert str(bound) == "B3, worst case: R_T ≤ 1 = 1 with G = 1; observed 2: VIOLATED"
    assert Bound("B3", "data", 1.0, "R_T ≤ 1", (), {}, 1.0 + 1e-10, 1e-9).holds
    assert Bound("B3", "data", 1.0, "R_T ≤ 1").holds is None
    assert Assumption.limit("G", 1.0, 1.0 + 1e-13).met
    assert not Assumption.limit("G", 1.0, 1.0 + 1e-9).met


def test_the_words_of_weighted_bounds_are_those_of_their_values():
    """B7 and B10 with example weights: the statement printed is the weighted one, as its value is."""
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(9, 1)), rng.choice([-1.0, 1.0], 9), rng.uniform(0.5, 2.0, 9)
    strong = rue.OGD("hinge", rue.Ball(U), "strong:1")
    b7 = first(bounds(trace(strong.copy(), X, y)), "B7", "worst case")
    assert "(1 + ln T)" in b7.statement
    assert "α" not in b7.statement
    b7 = first(bounds(trace(strong, X, y, weights)), "B7", "worst case")
    assert b7.statement == "R_T ≤ min((G²/(2σ))·Σ 1/Σ_{i≤t} α_i + (σD²/2)·Σ α_t, DGT)"
    ones, leader = np.ones((9, 1)), rue.FollowTheLeader("square", rue.Box(-3, 3), intercept=False)
    plain = bounds(trace(leader.copy(), ones, y))
    assert [bound.statement for bound in plain] == ["R_T = Σ (y_t − w_t)²/t", "R_T ≤ B²(1 + ln T)"]
    weighted = bounds(trace(leader, ones, y, weights))
    shares = "Σ_{i≤t} α_i"
    assert weighted[0].statement == f"R_T = Σ α_t²(y_t − w_t)²/{shares}"
    assert weighted[1].statement == f"R_T ≤ B²·Σ α_t²/{shares}"
    assert weighted[0].value == pytest.approx(weighted[0].observed)
