"""The best point in hindsight against an independent conic solver, liblinear and closed forms."""

import itertools
import math
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.svm import LinearSVC

import rue
from conftest import many
from rue.domains import Ball, Box, Halfspace, Intersection, Interval, L1Ball, Orthant, Reals, Simplex
from rue.errors import BadExample, DataError, SettingsError
from rue.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Linear,
    Logistic,
    PerceptronLoss,
    Poisson,
    Quantile,
    Square,
    SquaredHinge,
)
from rue.regret.hindsight.comparator import Comparator, best_in_hindsight, hindsight_path
from rue.regret.hindsight.conjugates import terms_of
from rue.regret.hindsight.program import Hindsight, read_stream

LOSSES = [
    Square(),
    Absolute(),
    Hinge(),
    PerceptronLoss(),
    Logistic(),
    SquaredHinge(),
    Huber(0.7),
    Quantile(0.3),
    EpsilonInsensitive(0.2),
    Poisson(),
    Linear(),
]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def conic_loss(loss, p, y):
    z, r = cp.multiply(y, p), p - y
    return {
        Square: lambda: cp.square(r),
        Absolute: lambda: cp.abs(r),
        Hinge: lambda: cp.pos(1 - z),
        PerceptronLoss: lambda: cp.pos(-z),
        Logistic: lambda: cp.logistic(-z),
        SquaredHinge: lambda: cp.square(cp.pos(1 - z)),
        Huber: lambda: 0.5 * cp.huber(r, loss.delta),
        Quantile: lambda: cp.maximum(-loss.tau * r, (1 - loss.tau) * r),
        EpsilonInsensitive: lambda: cp.pos(cp.abs(r) - loss.epsilon),
        Poisson: lambda: cp.exp(p) - z,
        Linear: lambda: z,
    }[type(loss)]()


def conic_domain(K, u):
    if isinstance(K, Ball):
        return [cp.norm(u - (K.centre if K.centre.size else 0)) <= K.radius]
    if isinstance(K, Box):
        low, high = np.broadcast_to(K.lower, u.size), np.broadcast_to(K.upper, u.size)
        below, above = np.isfinite(low), np.isfinite(high)
        return [u[below] >= low[below], u[above] <= high[above]]
    if isinstance(K, Halfspace):
        return [K.normal @ u <= K.offset]
    if isinstance(K, Intersection):
        return [constraint for member in K.members for constraint in conic_domain(member, u)]
    return {
        Orthant: lambda: [u >= 0],
        Simplex: lambda: [u >= 0, cp.sum(u) == K.total],
        L1Ball: lambda: [cp.norm1(u) <= K.radius],
        Reals: list,
    }[type(K)]()


def conic_minimiser(Z, y, weights, loss, K, lambda_):
    """The minimiser as Clarabel finds it, or None; it may lie a little outside K."""
    u = cp.Variable(Z.shape[1])
    total = cp.sum(cp.multiply(weights, conic_loss(loss, Z @ u, y)))
    total += lambda_ * weights.sum() / 2 * cp.sum_squares(u)
    problem = cp.Problem(cp.Minimize(total), conic_domain(K, u))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the solver's remarks on its accuracy
        try:
            problem.solve(solver="CLARABEL")
        except cp.SolverError:
            return None
    return u.value if problem.status == "optimal" else None


def total_loss(u, Z, y, weights, loss, lambda_):
    each = (w * loss.value(float(p), float(label)) for w, p, label in zip(weights, Z @ u, y, strict=True))
    return math.fsum(each) + lambda_ * weights.sum() / 2 * float(u @ u)


def design(X, intercept):
    Z = X.toarray() if sparse.issparse(X) else X
    return np.hstack([np.ones((Z.shape[0], 1)), Z]) if intercept else Z


def random_stream(rng, loss):
    """Small streams of many kinds: duplicate, constant, empty and ill-scaled columns, T < d, one label, weights 0."""
    T, d = int(rng.choice([1, 2, 5, 20, 60])), int(rng.choice([1, 3, 6, 10]))
    X = rng.normal(size=(T, d)) * rng.choice([1e-3, 1.0, 1.0, 1.0, 30.0])
    kind = rng.integers(7)
    if kind == 0 and d > 1:
        X[:, 1] = X[:, 0]
    elif kind == 1:
        X[:, 0] = 2.0
    elif kind == 2:
        X *= rng.random(X.shape) < 0.3
    elif kind == 3:
        X *= 10.0 ** rng.integers(-3, 3, size=d)
    scores = X @ rng.normal(size=d) + rng.normal(size=T) * rng.choice([0.0, 1.0])
    if loss.task == "classify":
        y = np.where(scores > 0, 1.0, -1.0)
    elif isinstance(loss, Poisson):
        y = rng.poisson(rng.choice([0.2, 2.0]), size=T).astype(float)
        X *= 2.0 / max(1.0, np.abs(X).max())
    else:
        y = scores * rng.choice([0.01, 1.0, 100.0])
    if kind == 4:
        y[:] = 0.0 if isinstance(loss, Poisson) else 1.0
    weights = rng.random(T) * (rng.random(T) < 0.8) * rng.choice([1.0, 50.0]) if rng.random() < 0.4 else None
    return (sparse.csr_matrix(X) if rng.random() < 0.5 else X), y, weights


def ragged_box(rng, d):
    low, high = -rng.random(d), 3.0 * rng.random(d)
    high[rng.random(d) < 0.3] = np.inf
    low[rng.random(d) < 0.2] = -np.inf
    if np.isfinite(low[0]):
        high[0] = low[0]
    return Box(low, high)


DOMAINS = {
    "ball": lambda rng, d: (Ball(float(rng.choice([0.1, 1.0, 10.0, 100.0]))), float(rng.choice([0.0, 0.1]))),
    "ball elsewhere": lambda rng, d: (Ball(float(rng.choice([0.1, 1.0, 10.0])), 3.0 * rng.normal(size=d)), 0.0),
    "box": lambda rng, d: (Box(-1.0, 2.0), float(rng.choice([0.0, 0.1]))),
    "orthant": lambda rng, d: (Orthant(), float(rng.choice([0.0, 0.1]))),
    "reals and ridge": lambda rng, d: (Reals(), float(10.0 ** rng.integers(-4, 2))),
    "reals": lambda rng, d: (Reals(), 0.0),
    "simplex": lambda rng, d: (Simplex(float(rng.choice([1.0, 5.0]))), float(rng.choice([0.0, 0.1]))),
    "l1 ball": lambda rng, d: (L1Ball(float(rng.choice([0.5, 5.0]))), float(rng.choice([0.0, 0.1]))),
    "ragged box": lambda rng, d: (ragged_box(rng, d), float(rng.choice([0.0, 0.1]))),
}


@pytest.mark.parametrize("kind", DOMAINS)
@each_loss
def test_the_interval_holds_the_conic_optimum_and_is_narrow(loss, kind):
    for seed in range(many(2, 300)):
        rng = np.random.default_rng([seed, LOSSES.index(loss), list(DOMAINS).index(kind)])
        X, y, weights = random_stream(rng, loss)
        intercept = bool(rng.random() < 0.6)
        K, lambda_ = DOMAINS[kind](rng, X.shape[1] + intercept)
        best = best_in_hindsight(X, y, loss=loss, domain=K, lambda_=lambda_, weights=weights, intercept=intercept)
        Z, mass = design(X, intercept), np.ones(len(y)) if weights is None else weights
        assert K.contains(best.point)
        rounding = 1e-9 * float(mass @ (1.0 + np.abs(y) + np.abs(Z @ best.point)))
        assert best.value == pytest.approx(total_loss(best.point, Z, y, mass, loss, lambda_), rel=1e-9, abs=rounding)
        assert best.at_least <= best.value
        unbounded = isinstance(loss, Linear) and best.at_least == -math.inf
        assert unbounded or best.gap <= 2e-6 * max(abs(best.value), 1e-3 * float(mass @ (1.0 + np.abs(y))))
        u = conic_minimiser(Z, y, mass, loss, K, lambda_)
        assert not (unbounded and u is not None)
        if u is not None:
            theirs = total_loss(K.project(u), Z, y, mass, loss, lambda_)
            assert best.at_least <= theirs + rounding
            assert best.value <= theirs + 3e-6 * abs(theirs) + 1e-6 * float(mass @ (1.0 + np.abs(y)))


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not isinstance(loss, Linear)], ids=repr)
def test_any_slopes_give_a_lower_bound(loss):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 4))
    y = np.where(rng.random(30) < 0.5, -1.0, 1.0) if loss.task == "classify" else rng.poisson(2.0, 30) * 1.0
    weights = rng.random(30) + 0.1
    for K, lambda_ in [(Ball(2.0), 0.0), (Box(-1.0, 0.5), 0.3), (Simplex(2.0), 0.0), (L1Ball(1.0), 0.2)]:
        problem = Hindsight(X, y, weights, loss, lambda_, K, False)
        floor = min(problem.value(K.project(2.0 * rng.normal(size=4))) for _ in range(300))
        low, high = loss.slope_range(y)
        for _ in range(50):
            g = weights * np.clip(3.0 * rng.normal(size=30), low, high)
            assert problem.lower(g, problem.pull(g), np.zeros(4)) <= floor


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not isinstance(loss, Linear)], ids=repr)
def test_the_conjugate_is_the_largest_g_p_minus_loss(loss):
    grid = np.linspace(-40.0, 40.0, 80_001)
    labels = (-1.0, 1.0) if loss.task == "classify" else (0.5, 3.0)
    for y in labels:
        values = np.array([loss.value(p, y) for p in grid])
        low, high = loss.slope_range(np.array([y]))
        for share in (0.02, 0.3, 0.7, 0.98):
            g = max(float(np.max(low)), -3.0) * (1.0 - share) + min(float(np.min(high)), 3.0) * share
            found = loss.conjugate(np.array([g]), np.array([y]))[0]
            assert found == pytest.approx(np.max(g * grid - values), abs=1e-5)
        steps = np.array([loss.slope(p, y) for p in (0.3 + 1e-5, 0.3 - 1e-5)])
        if (bend := loss.second_derivative(np.array([0.3]), y)) is not None:
            assert bend[0] == pytest.approx((steps[0] - steps[1]) / 2e-5, rel=1e-4)
        terms = terms_of(loss, np.full(grid.size, y), np.full(grid.size, 2.0))
        if terms is not None:
            each = terms.slopes(grid, 1e-12)
            parts = each * (terms.orientation * grid - terms.kink) - 0.5 * terms.gamma * each * each
            assert parts.sum(axis=0) == pytest.approx(2.0 * values, abs=1e-6)


def signs(T=300, d=4, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, d))
    return X, np.where(X @ rng.normal(size=d) + noise * rng.normal(size=T) > 0, 1.0, -1.0)


def test_liblinear_finds_the_same_support_vector_machine():
    X, y = signs()
    lambda_ = 0.01
    svm = LinearSVC(loss="hinge", C=1.0, fit_intercept=False, tol=1e-8, max_iter=10**6, random_state=0)
    Z = design(X, True)
    svm.fit(Z, y, sample_weight=np.full(len(y), 1.0 / (lambda_ * len(y))))
    best = best_in_hindsight(X, y, loss=rue.Regularised("hinge", lambda_))
    theirs = total_loss(svm.coef_[0], Z, y, np.ones(len(y)), Hinge(), lambda_)
    assert best.lambda_ == lambda_
    assert best.at_least <= theirs
    assert best.value <= theirs * (1.0 + 1e-6)
    assert np.allclose(best.point, svm.coef_[0], atol=1e-2)


def test_sparse_dense_blocks_and_weights_agree():
    X, y = signs(T=3000, d=80)
    X *= np.random.default_rng(1).random(X.shape) < 0.1
    weights = np.random.default_rng(2).integers(0, 3, size=3000) * 1.0
    for loss in ("logistic", "hinge"):
        one = best_in_hindsight(X, y, loss=loss, radius=3, weights=weights)
        two = best_in_hindsight(sparse.csr_matrix(X), y, loss=loss, radius=3, weights=weights)
        parts = [rue.Block(X[:1000], y[:1000], weights[:1000]), rue.Block(X[1000:], y[1000:], weights[1000:])]
        three = best_in_hindsight(parts, loss=loss, radius=3)
        repeated = np.repeat(np.arange(3000), weights.astype(int))
        four = best_in_hindsight(sparse.csr_matrix(X[repeated]), y[repeated], loss=loss, radius=3)
        for other in (two, three, four):
            assert max(one.at_least, other.at_least) <= min(one.value, other.value)
            assert other.gap <= 1e-6 * other.value


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared-hinge"])
def test_along_a_path_the_intervals_fall_and_agree_with_cold_solves(loss):
    X, y = signs()
    radii = [3.0, 0.1, 30.0, 1.0, 1.0]
    path = hindsight_path(X, y, radii, loss=loss)
    assert [best.domain.radius for best in path] == radii
    ordered = sorted(path, key=lambda best: best.domain.radius)
    for small, large in itertools.pairwise(ordered):
        assert small.value >= large.value
        assert small.at_least >= large.at_least
    for best in path:
        cold = best_in_hindsight(X, y, loss=loss, radius=best.domain.radius)
        again = best_in_hindsight(X, y, loss=loss, radius=best.domain.radius, start=cold.point)
        for other in (cold, again):
            assert max(best.at_least, other.at_least) <= min(best.value, other.value)
            assert other.gap <= 1e-6 * other.value
        assert again.value <= cold.value


def test_separable_logistic_data_have_an_infimum_that_no_point_attains():
    X, y = signs(noise=0.0)
    best = best_in_hindsight(X, y)
    assert not best.attained
    assert best.at_least == 0.0
    assert 0.0 < best.value < 1e-6
    assert "attained by none" in str(best)
    some = np.vstack([X, X[:1]]), np.append(y, -y[0])  # one contradiction: now the minimum exists
    assert best_in_hindsight(*some).attained


def test_a_row_that_can_be_fitted_ever_better_beside_others_that_cannot():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    best = best_in_hindsight(X, [1.0, -1.0, 1.0], intercept=False)
    assert not best.attained
    assert best.at_least <= 2.0 * math.log(2.0) <= best.value
    assert best.gap < 1e-5


def test_poisson_with_no_counts_and_hinge_with_a_margin():
    X = np.array([[1.0], [2.0]])
    best = best_in_hindsight(X, [0.0, 0.0], loss="poisson", intercept=False)
    assert not best.attained
    assert best.interval == pytest.approx((0.0, 0.0), abs=1e-5)
    best = best_in_hindsight(X, [1.0, 1.0], loss="hinge", intercept=False)
    assert best.attained
    assert best.interval == (0.0, 0.0)


def test_linear_losses_in_closed_form():
    X, g = np.array([[3.0, 0.0], [0.0, 4.0]]), [1.0, 1.0]
    best = best_in_hindsight(X, g, loss="linear", radius=2, intercept=False)
    assert best.value == pytest.approx(-10.0, rel=1e-12)
    assert best.gap < 1e-10
    assert best_in_hindsight(X, g, loss="linear", domain=Box(-1, 2), intercept=False).value == -7.0
    assert best_in_hindsight(X, g, loss="linear", domain=L1Ball(2), intercept=False).value == -8.0
    assert best_in_hindsight(X, g, loss="linear", domain=Orthant(), intercept=False).interval == pytest.approx((0, 0))
    ridge = best_in_hindsight(X, g, loss="linear", lambda_=0.5, intercept=False)
    assert ridge.value == pytest.approx(-12.5, rel=1e-12)
    free = best_in_hindsight(X, g, loss="linear", intercept=False)
    assert not free.attained
    assert free.at_least == -math.inf
    assert "no lower bound" in str(free)


def test_the_mean_and_the_median_on_an_interval():
    y = np.array([0.1, 0.2, 0.9])
    empty = np.zeros((3, 0))
    square = best_in_hindsight(empty, y, loss="square", domain=Interval(0, 1))
    assert square.point == pytest.approx([0.4], abs=1e-6)
    assert square.value == pytest.approx(((y - 0.4) ** 2).sum(), rel=1e-6)
    median = best_in_hindsight(empty, y, loss="absolute", domain=Interval(0, 1))
    assert median.value == pytest.approx(0.8, rel=1e-6)
    assert median.gap <= 1e-6


def test_weight_zero_changes_nothing_and_none_left_loses_nothing():
    X, y = signs(T=40)
    weights = np.where(np.arange(40) < 30, 1.0, 0.0)
    part = best_in_hindsight(X[:30], y[:30], radius=2)
    assert best_in_hindsight(X, y, radius=2, weights=weights).value == part.value
    nothing = best_in_hindsight(X, y, radius=2, weights=np.zeros(40))
    assert nothing.interval == (0.0, 0.0)
    assert "weight 0" in nothing.note


@pytest.mark.parametrize("loss", ["square", "logistic", "hinge"])
@pytest.mark.parametrize(
    "domain",
    [Halfspace([1.0, 1.0, 0.0, 1.0], -0.3), Intersection(Ball(1.0), Orthant()), Intersection("ball:1", "box:0,1")],
)
def test_other_domains_get_an_honest_interval(loss, domain):
    X, y = signs(T=60)
    best = best_in_hindsight(X, y, loss=loss, domain=domain, lambda_=0.1, intercept=False)
    assert domain.contains(best.point, 1e-6)
    u = conic_minimiser(X, y, np.ones(60), best.loss, domain, 0.1)
    theirs = total_loss(domain.project(u), X, y, np.ones(60), best.loss, 0.1)
    assert best.at_least <= theirs * (1.0 + 1e-9)
    assert best.value <= theirs * (1.0 + 1e-3)
    if isinstance(domain, Halfspace):
        assert best.gap <= 0.02 * best.value


@rue.parameter
class LogCosh(rue.Loss):
    lipschitz = 1.0
    smooth = 1.0

    def value(self, p, y):
        return abs(p - y) + math.log1p(math.exp(-2 * abs(p - y))) - math.log(2)

    def slope(self, p, y):
        return math.tanh(p - y)


@rue.parameter
class OwnAbsolute(rue.Loss):
    lipschitz = 1.0

    def value(self, p, y):
        return abs(p - y)

    def slope(self, p, y):
        return 1.0 if p > y else -1.0 if p < y else 0.0


def test_a_users_own_losses():
    X, y = signs(T=60)
    smooth = best_in_hindsight(X, y, loss=LogCosh(), radius=1)
    assert smooth.gap <= 1e-6 * smooth.value
    own = best_in_hindsight(X, y, loss=OwnAbsolute(), radius=1)
    known = best_in_hindsight(X, y, loss="absolute", radius=1)
    assert max(own.at_least, known.at_least) <= min(own.value, known.value)
    assert own.gap <= 0.05 * own.value


@pytest.mark.parametrize(("loss", "width"), [("logistic", 1e-4), ("hinge", 0.1)])
def test_many_columns(loss, width):
    rng = np.random.default_rng(0)
    X = sparse.random(400, 5000, 0.004, format="csr", random_state=rng)
    y = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    best = best_in_hindsight(X, y, loss=loss, radius=5)
    assert best.gap <= width * best.value


def test_huge_and_tiny_features():
    X, y = signs(T=50)
    for scale in (1e-8, 1e8):
        for loss in ("logistic", "hinge"):
            best = best_in_hindsight(X * scale, y, loss=loss, radius=1.0 / scale, intercept=False)
            same = best_in_hindsight(X, y, loss=loss, radius=1.0, intercept=False)
            assert best.gap <= 1e-6 * best.value
            assert best.value == pytest.approx(same.value, rel=2e-6)


@pytest.mark.parametrize("loss", ["hinge", "absolute", "logistic"])
@pytest.mark.parametrize("stored", [np.array, sparse.csr_matrix])
def test_a_column_of_raw_dates_leaves_a_narrow_interval(loss, stored):
    """Seconds since 1970 beside numbers of size one: sums that allow for rounding term by term would say nothing."""
    rng = np.random.default_rng(1)
    many, radius = 3000, 5.0
    X = np.c_[1.7e9 + np.cumsum(rng.exponential(60.0, many)), rng.normal(size=(many, 3))]
    y = np.where(X[:, 1] + 0.5 * X[:, 2] + rng.normal(size=many) > 0.0, 1.0, -1.0)
    best = best_in_hindsight(stored(X), y, loss=loss, radius=radius)
    assert 0.0 <= best.gap <= 1e-4 * best.value
    u = cp.Variable(5)
    units = np.array([1.0, 1e-9, 1.0, 1.0, 1.0])  # which the solver needs, and in which the ball is an ellipsoid
    p = np.c_[np.ones(many), X] * units @ u
    z = cp.multiply(y, p)
    losses = {"hinge": cp.pos(1 - z), "absolute": cp.abs(p - y), "logistic": cp.logistic(-z)}
    found = cp.Problem(cp.Minimize(cp.sum(losses[loss])), [cp.norm(cp.multiply(units, u)) <= radius])
    assert found.solve(solver="CLARABEL") == pytest.approx(best.value, rel=1e-4)


@given(seed=st.integers(0, 10_000), loss=st.sampled_from([Hinge(), Absolute()]))
def test_the_sharpened_bound_stays_below_the_one_in_fractions(seed, loss):
    """Both losses have ℓ*(g) = g·y, so the bound is −Σ g_t y_t − U‖S‖: here with sums that are exact."""
    rng = np.random.default_rng(seed)
    pairs = 1e9 * rng.normal(size=(20, 3))  # of huge rows that hardly differ: large products, a small sum of them
    X, y = np.repeat(pairs, 2, axis=0) + 1e-3 * rng.normal(size=(40, 3)), np.tile([1.0, -1.0], 20)
    ball = Ball(5.0)
    problem = Hindsight(X, y, np.repeat(rng.uniform(0.1, 3.0, 20), 2), loss, 0.0, ball, True)
    u = np.zeros(4)
    g = problem.slopes(problem.predict(u))
    low, sharp = problem.lower(g, problem.pull(g), u), problem.sharpened(g, u)
    exactly = [Fraction(float(each)) for each in g]
    sums = [sum(a * Fraction(float(b)) for a, b in zip(exactly, x, strict=True)) for x in np.c_[np.ones(40), X, y].T]
    with localcontext() as context:
        context.prec = 60
        *S, labels = (Decimal(each.numerator) / Decimal(each.denominator) for each in sums)
        exact = -labels - Decimal(ball.radius) * sum(each * each for each in S).sqrt()
        assert 0.0 <= low < sharp
        assert exact - Decimal(3.0 * problem.allowance) <= Decimal(sharp) <= exact


def test_bad_arguments_are_refused_in_one_sentence():
    X, y = np.eye(2), [1.0, -1.0]
    for words, arguments in {
        "a radius or a domain, not both": {"radius": 1, "domain": "ball:1"},
        "tolerance must lie between 0 and 1": {"tolerance": 0.0},
        "lambda_ must be ≥ 0": {"lambda_": -1.0},
        "must be numbers": {"lambda_": "much"},
        "has a λ of its own": {"loss": rue.Regularised("hinge", 0.1), "lambda_": 0.1},
        "intercept must be True or False": {"intercept": 2},
        "not convex": {"loss": "zero-one"},
        "radius must be positive": {"radius": -1.0},
        "has 4 coordinates, but the point has 3": {"domain": Box([0.0] * 4, [1.0] * 4)},
        "must be a rue.Domain": {"domain": 3},
    }.items():
        with pytest.raises(SettingsError, match=words):
            best_in_hindsight(X, y, **arguments)
    with pytest.raises(SettingsError, match="give the radii"):
        hindsight_path(X, y, [])
    with pytest.raises(DataError, match="start must be 3 finite numbers"):
        best_in_hindsight(X, y, radius=1, start=[0.0])
    with pytest.raises(DataError, match="no examples"):
        best_in_hindsight(np.zeros((0, 2)), [], radius=1)
    with pytest.raises(BadExample, match="row 1"):
        best_in_hindsight(X, [1.0, 0.0], radius=1)
    with pytest.raises(BadExample, match="row 0"):
        best_in_hindsight(np.array([[np.nan, 0.0], [0.0, 1.0]]), y, radius=1)


def test_the_result_reads_as_a_sentence():
    best = best_in_hindsight(np.eye(2), [1, -1], loss="hinge", radius=1, intercept=False)
    assert isinstance(best, Comparator)
    assert str(best).startswith("the best linear model of norm ≤ 1 loses 0.585786")
    assert best.gap == best.value - best.at_least
    assert read_stream(np.eye(2), [1, -1], None, Hinge())[2].tolist() == [1.0, 1.0]


@each_loss
def test_no_columns_no_room_and_numbers_at_their_end(loss):
    """Whatever the scales, an interval comes back, and it holds what a few points lose."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal(6)
    if loss.task == "classify":
        y = np.where(y > 0, 1.0, -1.0)
    if isinstance(loss, Poisson):
        y = rng.poisson(1.0, 6).astype(float)
    at_zero = sum(loss.value(0.0, label) for label in y.tolist())
    for options in ({"radius": 2.0}, {"domain": "reals"}, {"lambda_": 0.1}, {"domain": "box:-1,1"}):
        best = best_in_hindsight(np.zeros((6, 0)), y, loss=loss, intercept=False, **options)
        assert best.point.size == 0
        assert best.interval == pytest.approx((at_zero, at_zero))
    with pytest.raises(DataError, match="a simplex without coordinates has no points"):
        best_in_hindsight(np.zeros((6, 0)), y, loss=loss, intercept=False, domain="simplex")
    X = rng.standard_normal((6, 2))
    for radius in (5e-324, 1e-300, 1e-160):
        best = best_in_hindsight(X, y, loss=loss, radius=radius)
        assert best.value == pytest.approx(at_zero, abs=1e-12)
        assert best.gap <= 1e-6 * abs(best.value) + 1e-9
    for scale, radius in ((1e300, 1e-300), (1e150, 1.0), (1e-150, 1.0), (1e-300, 1e300)):
        for weight in (1.0, 1e150):
            best = best_in_hindsight(X * scale, y, loss=loss, radius=radius, weights=np.full(6, weight))
            assert best.at_least <= best.value <= weight * at_zero * (1 + 1e-9) + 1e-9
            assert np.linalg.norm(best.point) <= radius * (1 + 1e-9)
            assert str(best)


@pytest.mark.parametrize("radius", [0.0, -1.0, math.inf, math.nan])
def test_balls_that_are_none(radius):
    with pytest.raises(SettingsError, match="radius"):
        best_in_hindsight(np.eye(2), [1, -1], radius=radius)


def test_constant_and_equal_columns_one_row_and_no_weight():
    X, y = np.ones((5, 3)), np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    for loss in ("logistic", "hinge", "square"):
        one = best_in_hindsight(X, y, loss=loss, radius=2)
        alone = best_in_hindsight(X[:, :0], y, loss=loss, radius=4)  # ‖(1, 1, 1, 1)/2‖ = 1: p up to 2·2
        assert one.value == pytest.approx(alone.value, rel=1e-5)
        assert best_in_hindsight(X[:1], y[:1], loss=loss, radius=2).gap <= 1e-5
        assert best_in_hindsight(X, y, loss=loss, radius=2, weights=np.zeros(5)).interval == (0.0, 0.0)
    with pytest.raises(DataError, match="no examples"):
        best_in_hindsight(np.zeros((0, 2)), [], radius=1)
