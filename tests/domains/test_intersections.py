"""The best point in hindsight on intersections of sets, against cvxpy."""

import math

import cvxpy as cp
import numpy as np
import pytest

import rue
from rue.domains import Ball, Box, Halfspace, Hyperplane, Intersection, L1Ball, Orthant, Simplex

pytestmark = pytest.mark.usefixtures("interpreted")  # each combination of sets would be compiled


def member(kind, rng, z):
    """A set of a kind that contains z, and the same set as constraints."""
    d = z.size
    if kind == "ball":
        radius = rng.uniform(0.5, 3.0)
        centre = z + rng.normal(size=d) * radius / (2.0 * math.sqrt(d))
        radius = max(radius, 1.01 * float(np.linalg.norm(z - centre)))
        return Ball(radius, centre), lambda u: [cp.norm(u - centre) <= radius]
    if kind == "box":
        low, high = z - rng.uniform(0.0, 2.0, d), z + rng.uniform(0.0, 2.0, d)
        return Box(low, high), lambda u: [u >= low, u <= high]
    if kind == "l1":
        radius = float(np.abs(z).sum()) * rng.uniform(1.0, 2.0) + 1e-3
        return L1Ball(radius), lambda u: [cp.norm1(u) <= radius]
    if kind == "simplex":
        return Simplex(float(z.sum())), lambda u: [u >= 0, cp.sum(u) == float(z.sum())]
    if kind == "orthant":
        return Orthant(), lambda u: [u >= 0]
    normal = rng.normal(size=d)
    if kind == "hyperplane":
        offset = float(normal @ z)
        return Hyperplane(normal, offset), lambda u: [normal @ u == offset]
    offset = float(normal @ z) + rng.choice([0.0, rng.uniform(0.0, 1.0)])
    return Halfspace(normal, offset), lambda u: [normal @ u <= offset]


KINDS = ("ball", "box", "l1", "simplex", "orthant", "hyperplane", "halfspace")
BOUNDED = ("ball", "box", "l1", "simplex")
OBJECTIVES = {
    "linear": lambda p, y: y @ p,
    "square": lambda p, y: cp.sum_squares(p - y),
    "hinge": lambda p, y: cp.sum(cp.pos(1 - cp.multiply(y, p))),
    "absolute": lambda p, y: cp.norm1(p - y),
}


def drawn(seed):
    """A random intersection that is not empty, its constraints, and a stream whose gradients may lead far away."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5))
    z = rng.uniform(0.1, 1.5, d)
    kinds = [rng.choice(BOUNDED), *rng.choice(KINDS, int(rng.integers(1, 3)))]
    sets, constraints = zip(*(member(kind, rng, z) for kind in kinds), strict=True)
    X = rng.normal(size=(12, d)) * rng.choice([1.0, 1e3])
    return Intersection(*sets), constraints, X, rng


@pytest.mark.parametrize("part", range(5))
def test_the_interval_holds_the_truth_and_the_point_is_in_the_set(part, monkeypatch):
    """With few sweeps, so that Dykstra's algorithm often ends outside, and the test soon."""
    monkeypatch.setattr("rue.domains.intersection._SWEEPS", 500)
    tight = refused = 0
    for seed in range(40 * part, 40 * part + 40):
        K, constraints, X, rng = drawn(seed)
        loss, lambda_ = rng.choice(list(OBJECTIVES), p=[0.55, 0.15, 0.15, 0.15]), rng.choice([0.0, 0.1])
        y = np.sign(rng.normal(size=12)) if loss == "hinge" else rng.normal(size=12)
        u = cp.Variable(X.shape[1])
        total = OBJECTIVES[loss](X @ u, y) + 6.0 * lambda_ * cp.sum_squares(u)
        wanted = cp.Problem(cp.Minimize(total), [c for each in constraints for c in each(u)]).solve(solver="CLARABEL")
        options = {"lambda_": lambda_, "intercept": False, "tolerance": 1e-4}
        try:
            best = rue.best_in_hindsight(X, y, loss=loss, domain=K, **options)
        except rue.SettingsError as error:
            refused += "only just" in str(error)
            continue
        room = 1e-6 * (1.0 + abs(wanted) + float(np.abs(X).sum()))
        assert best.at_least - room <= wanted <= best.value + room, seed
        for each in K.members:
            off = float(np.linalg.norm(best.point - each.project(best.point)))
            assert off <= 1.01e-9 * (1.0 + float(np.linalg.norm(best.point))), (seed, off)
        tight += best.gap <= 1e-3 * (1.0 + abs(wanted))
        assert best.gap <= 1e-3 * (1.0 + abs(wanted)) or "gap" in best.note
    assert refused <= 2  # sets that meet at a flat angle
    assert tight >= 32


def test_the_case_that_was_wrong():
    """A linear loss: gradients lead 1e12 away, from where Dykstra's algorithm ended 0.19 outside."""
    K = Intersection(Ball(1.0), Box(-0.5, 2.0), Halfspace([1.0, 1.0, 1.0], 0.3))
    X = np.random.default_rng(3).normal(size=(40, 3)) * 3.0
    y = np.random.default_rng(4).normal(size=40)
    best = rue.best_in_hindsight(X, y, loss="linear", domain=K, intercept=False)
    u = cp.Variable(3)
    constraints = [cp.norm(u) <= 1, u >= -0.5, u <= 2, cp.sum(u) <= 0.3]
    wanted = cp.Problem(cp.Minimize(y @ (X @ u)), constraints).solve(solver="CLARABEL")
    assert best.interval == pytest.approx((wanted, wanted), abs=1e-4)
    assert K.contains(best.point, 1e-12)


@pytest.mark.parametrize(
    "K",
    [
        Intersection(Ball(1.0), Ball(1.0, [3.0, 0.0])),
        Intersection(Ball(1.0), Ball(1.0, [2.0001, 0.0])),
        Intersection(Halfspace([1.0, 0.0], -1.0), Orthant()),
        Intersection(Hyperplane([1.0, 1.0], 5.0), L1Ball(1.0)),
    ],
)
def test_sets_that_do_not_meet_are_refused(K):
    with pytest.raises(rue.SettingsError, match="not meet"):
        rue.best_in_hindsight(np.eye(2), [1.0, -1.0], loss="linear", domain=K, intercept=False)


def test_sets_that_touch_in_one_point(monkeypatch):
    """Either a sentence or a true interval: the only point is (1, 0)."""
    monkeypatch.setattr("rue.domains.intersection._SWEEPS", 500)
    K = Intersection(Ball(1.0), Ball(1.0, [2.0, 0.0]))
    try:
        best = rue.best_in_hindsight(np.eye(2), [1.0, -1.0], loss="square", domain=K, intercept=False)
    except rue.SettingsError:
        return
    assert best.at_least <= 1.0 + 1e-9
    assert best.value >= 1.0 - 1e-4
    assert K.contains(best.point, 1.01e-9)


def test_an_unbounded_intersection_says_what_is_not_known():
    """On {u ≥ 0} ∩ {u_1 ≥ 1} the linear loss 2·u_1 + u_2 is at least 2, which the members alone do not show."""
    K = Intersection(Orthant(), Halfspace([-1.0, 0.0], -1.0))
    best = rue.best_in_hindsight(np.eye(2), [2.0, 1.0], loss="linear", domain=K, intercept=False)
    assert best.at_least <= 2.0 + 1e-9 <= best.value + 2e-9
    assert best.at_least > -math.inf or "nothing is proved" in best.note


@pytest.mark.parametrize("seed", range(12))
def test_support_near_is_an_upper_bound_and_exact_at_the_maximiser(seed):
    K, constraints, X, _ = drawn(seed)
    v = X[0] / np.linalg.norm(X[0])
    u = cp.Variable(v.size)
    wanted = cp.Problem(cp.Maximize(v @ u), [c for each in constraints for c in each(u)]).solve(solver="CLARABEL")
    assert K.support_near(v, np.asarray(u.value)) == pytest.approx(wanted, abs=1e-4)
    for other in (X[1], np.zeros(v.size), 1e6 * X[2]):
        assert K.support_near(v, other) >= wanted - 1e-6


def test_regularised_certificates_on_an_intersection():
    """D2 asks for a maximum over the set; a point where Dykstra's algorithm merely ended is not one."""
    rng = np.random.default_rng(5)
    for seed in range(12):
        K, constraints, X, _ = drawn(100 + seed)
        y, p = np.sign(rng.normal(size=12)), rng.normal(size=12)
        loss = rue.Regularised(rue.Hinge(), 0.05)
        shown = rue.certify(X, y, p, loss=loss, domain=K, intercept=False)
        u = cp.Variable(X.shape[1])
        total = OBJECTIVES["hinge"](X @ u, y) + 12 * 0.025 * cp.sum_squares(u)
        wanted = cp.Problem(cp.Minimize(total), [c for each in constraints for c in each(u)]).solve(solver="CLARABEL")
        assert shown.comparator_loss_at_least <= wanted + 1e-6 * (1.0 + abs(wanted)), seed


def test_a_learner_whose_steps_are_far_too_long_stays_in_the_set():
    """The residual says that these were no projections, but the point is not left outside."""
    K = Intersection(Ball(1.0), Ball(1.0, [1.9, 0.0]))
    learner = rue.OGD("hinge", K, "fixed:10000", intercept=False)
    learner.run([[1.0, 2.0], [-3.0, 1.0], [0.5, -2.0]], [-1, 1, -1])
    assert learner.residual > 1e-6
    assert K.contains(learner.point, 1.01e-9)
