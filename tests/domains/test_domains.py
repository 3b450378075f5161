from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rue
from rue.errors import DataError, SettingsError
from rue.registry import registered

D = 4
CENTRE = [1.0, -2.0, 0.5, 0.0]
LOWER, UPPER = [-1.0, 0.0, -3.0, 2.0], [1.0, 0.0, 0.5, 2.5]
NORMAL = [1.0, -2.0, 0.5, 3.0]


@dataclass(frozen=True)
class Case:
    """A set in four coordinates, what cvxpy calls it, and its diameter."""

    domain: Any
    constraints: Any
    diameter: float


def narrow(w):
    return [w >= -1, w <= 2]


CASES = {
    "reals": Case(rue.Reals(), lambda w: [], math.inf),
    "ball": Case(rue.Ball(1.5), lambda w: [cp.norm2(w) <= 1.5], 3.0),
    "ball-off-centre": Case(rue.Ball(0.7, CENTRE), lambda w: [cp.norm2(w - np.array(CENTRE)) <= 0.7], 1.4),
    "box": Case(rue.Box(-1, 2), narrow, 3 * math.sqrt(D)),
    "box-of-vectors": Case(
        rue.Box(LOWER, UPPER),
        lambda w: [w >= np.array(LOWER), w <= np.array(UPPER)],
        float(np.linalg.norm(np.subtract(UPPER, LOWER))),
    ),
    "box-half-open": Case(rue.Box(LOWER, math.inf), lambda w: [w >= np.array(LOWER)], math.inf),
    "orthant": Case(rue.Orthant(), lambda w: [w >= 0], math.inf),
    "halfspace": Case(rue.Halfspace(NORMAL, -0.5), lambda w: [np.array(NORMAL) @ w <= -0.5], math.inf),
    "hyperplane": Case(rue.Hyperplane(NORMAL, 2.0), lambda w: [np.array(NORMAL) @ w == 2.0], math.inf),
    "simplex": Case(rue.Simplex(), lambda w: [w >= 0, cp.sum(w) == 1], math.sqrt(2)),
    "simplex-of-3": Case(rue.Simplex(3.0), lambda w: [w >= 0, cp.sum(w) == 3], 3 * math.sqrt(2)),
    "l1-ball": Case(rue.L1Ball(1.2), lambda w: [cp.norm1(w) <= 1.2], 2.4),
}
MEETS = {
    "ball-orthant": Case(rue.Intersection(rue.Ball(1), rue.Orthant()), lambda w: [cp.norm2(w) <= 1, w >= 0], 2.0),
    "box-hyperplane": Case(
        rue.Intersection(rue.Box(-1, 2), rue.Hyperplane(NORMAL, 2.0)),
        lambda w: [*narrow(w), np.array(NORMAL) @ w == 2.0],
        3 * math.sqrt(D),
    ),
    "simplex-box-halfspace": Case(
        rue.Intersection(rue.Simplex(), rue.Box(0.05, 0.6), rue.Halfspace(NORMAL, 1.0)),
        lambda w: [w >= 0.05, w <= 0.6, cp.sum(w) == 1, np.array(NORMAL) @ w <= 1.0],
        0.55 * math.sqrt(D),
    ),
    "balls": Case(
        rue.Intersection(rue.Ball(2), rue.Ball(1.5, CENTRE)),
        lambda w: [cp.norm2(w) <= 2, cp.norm2(w - np.array(CENTRE)) <= 1.5],
        3.0,
    ),
}
ALL = {**CASES, **MEETS}
each = pytest.mark.parametrize("name", sorted(CASES))
every = pytest.mark.parametrize("name", sorted(ALL))
BOUNDED = [name for name in sorted(ALL) if ALL[name].diameter < math.inf]
ATTAINED = [name for name in BOUNDED if name in CASES]
numbers = st.floats(-50, 50, allow_subnormal=True)
points = hnp.arrays(np.float64, D, elements=numbers)


def tolerance(name):
    return 1e-9 if name in CASES else 1e-6  # Dykstra's residual is allowed more


def solved(objective, constraints):
    problem = cp.Problem(objective, constraints)
    with warnings.catch_warnings():  # "may be inaccurate" is what the comparison will tell
        warnings.simplefilter("ignore", UserWarning)
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def test_every_registered_domain_has_a_case():
    assert {type(case.domain) for case in CASES.values()} | {registered("domain")["interval"]} == set(
        registered("domain").values()
    )


@every
@pytest.mark.parametrize("seed", range(3))
def test_the_projection_is_what_cvxpy_finds(name, seed):
    case = ALL[name]
    w = np.random.default_rng(seed).normal(0, [0.3, 2, 10][seed], D)
    u = cp.Variable(D)
    solved(cp.Minimize(cp.sum_squares(u - w)), case.constraints(u))
    np.testing.assert_allclose(case.domain.project(w), u.value, atol=2e-6 * (1 + np.abs(w).max()))


@pytest.mark.parametrize("name", sorted(set(BOUNDED) | {"halfspace", "hyperplane", "orthant"}))
@pytest.mark.parametrize("seed", range(3))
def test_the_support_is_what_cvxpy_finds(name, seed):
    case = ALL[name]
    v = np.random.default_rng(10 + seed).normal(0, 2, D)
    u = cp.Variable(D)
    if name in ("halfspace", "hyperplane"):
        v = np.array(NORMAL) * (1.0 + seed if name == "halfspace" else 1.0 - seed)
    if name == "orthant":
        v = -np.abs(v)
    exact = solved(cp.Maximize(v @ u), case.constraints(u))
    if name in CASES:
        assert case.domain.support(v) == pytest.approx(exact, rel=1e-6, abs=1e-6)
    else:
        assert case.domain.support(v) >= exact - 1e-6
        assert case.domain.support(v) == min(part.support(v) for part in case.domain.members)


@pytest.mark.parametrize(
    ("domain", "v", "expected"),
    [
        (rue.Reals(), [0, 0], 0.0),
        (rue.Reals(), [0, 1e-300], math.inf),
        (rue.Orthant(), [-1, 0], 0.0),
        (rue.Orthant(), [-1, 1e-300], math.inf),
        (rue.Halfspace([1, 2], 3), [2, 4], 6.0),
        (rue.Halfspace([1, 2], 3), [-2, -4], math.inf),
        (rue.Halfspace([1, 2], 3), [2, 4.001], math.inf),
        (rue.Halfspace([1, 2], 3), [0, 0], 0.0),
        (rue.Hyperplane([1, 2], 3), [-2, -4], -6.0),
        (rue.Hyperplane([1, 2], 3), [2, 0], math.inf),
        (rue.Box(-math.inf, 2), [0, 3], 6.0),
        (rue.Box(-math.inf, 2), [-1, 3], math.inf),
        (rue.Box([0, -1], [1, math.inf]), [5, 0], 5.0),
        (rue.Ball(2, [3, 4]), [3, 4], 35.0),
        (rue.Simplex(2), [-3, -1], -2.0),
        (rue.L1Ball(2), [-3, 1], 6.0),
        (rue.Interval(-1, 5), [-2], 2.0),
    ],
    ids=repr,
)
def test_supports_by_hand(domain, v, expected):
    assert domain.support(v) == pytest.approx(expected, rel=1e-14)
    assert domain.support(np.array(v, dtype=np.float64)) == pytest.approx(expected, rel=1e-14)


@every
@settings(deadline=None, max_examples=40)
@given(w=points, z=points)
def test_projections_are_inside_idempotent_nonexpansive_and_nearest(name, w, z):
    domain, tol = ALL[name].domain, tolerance(name)
    p, q = domain.project(w), domain.project(z)
    scale = 1 + np.linalg.norm(w) + np.linalg.norm(z)
    assert outside(name, p) <= tol * scale
    assert domain.contains(p, tolerance=tol)
    assert np.linalg.norm(domain.project(p) - p) <= tol * scale
    assert np.linalg.norm(p - q) <= np.linalg.norm(w - z) + tol * scale
    assert (w - p) @ (q - p) <= tol * scale**2  # q is a point u of the set
    if outside(name, w) <= 0:
        assert np.array_equal(p, w) or (name in ("hyperplane", *MEETS) or "simplex" in name)
        np.testing.assert_allclose(p, w, atol=tol * scale)


def outside(name, w):
    """How far the inequalities of the set are violated, written out; the sets' own methods are not asked."""
    n = np.array(NORMAL)
    return {
        "reals": lambda: 0.0,
        "ball": lambda: np.linalg.norm(w) - 1.5,
        "ball-off-centre": lambda: np.linalg.norm(w - CENTRE) - 0.7,
        "box": lambda: max(np.max(-1 - w), np.max(w - 2)),
        "box-of-vectors": lambda: max(np.max(LOWER - w), np.max(w - UPPER)),
        "box-half-open": lambda: np.max(LOWER - w),
        "orthant": lambda: np.max(-w),
        "halfspace": lambda: n @ w + 0.5,
        "hyperplane": lambda: abs(n @ w - 2),
        "simplex": lambda: max(np.max(-w), abs(np.sum(w) - 1)),
        "simplex-of-3": lambda: max(np.max(-w), abs(np.sum(w) - 3)),
        "l1-ball": lambda: np.sum(np.abs(w)) - 1.2,
        "ball-orthant": lambda: max(np.linalg.norm(w) - 1, np.max(-w)),
        "box-hyperplane": lambda: max(np.max(-1 - w), np.max(w - 2), abs(n @ w - 2)),
        "simplex-box-halfspace": lambda: max(np.max(0.05 - w), np.max(w - 0.6), abs(np.sum(w) - 1), n @ w - 1),
        "balls": lambda: max(np.linalg.norm(w) - 2, np.linalg.norm(w - CENTRE) - 1.5),
    }[name]()


@every
@settings(deadline=None, max_examples=40)
@given(w=points, v=points)
def test_the_support_bounds_every_point(name, w, v):
    domain = ALL[name].domain
    u = domain.project(w)
    assert domain.support(v) >= v @ u - tolerance(name) * (1 + np.linalg.norm(v) * (1 + np.linalg.norm(u)))


@pytest.mark.parametrize("name", ATTAINED)
@settings(deadline=None, max_examples=60)
@given(v=points)
@example(v=np.array([1.0, 1.0, 1.0, 1.0]))
@example(v=np.array([0.0, -3.0, 0.0, 0.0]))
def test_the_support_is_attained(name, v):
    domain = CASES[name].domain
    size = float(np.abs(v).max())
    assume(size > 1e-6)
    far = domain.project(v * (1e4 / size))  # argmax over K of ⟨v, u⟩, up to the curvature of a ball
    assert domain.support(v) <= v @ far + 2e-3 * np.linalg.norm(v)


@pytest.mark.parametrize("name", sorted(set(ATTAINED) | {"reals"}))
@settings(deadline=None, max_examples=30)
@given(theta=points)
def test_lowest_is_the_minimiser_of_a_linear_function(name, theta):
    domain = CASES[name].domain
    if not domain.declares("lowest"):
        return
    w = domain.start(D)
    if domain.lowest(theta, w):
        assert outside(name, w) <= 1e-9
        assert theta @ w == pytest.approx(-domain.support(-theta), rel=1e-9, abs=1e-9 * (1 + np.abs(theta).max()))
    elif name.startswith("simplex"):
        assert np.ptp(theta) == 0.0
    elif name.startswith("box"):
        assert not np.any(theta)
    else:
        assert theta @ theta == 0.0


@every
def test_diameters(name):
    case = ALL[name]
    assert case.domain.diameter(D) == pytest.approx(case.diameter, rel=1e-15)
    assert case.domain.bounded == (case.diameter < math.inf)


@pytest.mark.parametrize("name", BOUNDED)
@settings(deadline=None, max_examples=40)
@given(w=points, z=points)
def test_the_diameter_bounds_every_distance(name, w, z):
    domain = ALL[name].domain
    between = np.linalg.norm(domain.project(w) - domain.project(z))
    assert between <= domain.diameter(D) * (1 + 1e-9)


FAR = np.array([1e9, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("ball", FAR, -FAR),
        ("ball-off-centre", FAR, -FAR),
        ("box", np.full(D, 1e9), np.full(D, -1e9)),
        ("box-of-vectors", np.full(D, 1e9), np.full(D, -1e9)),
        ("simplex", FAR / 1e7, FAR[::-1] / 1e7),
        ("simplex-of-3", FAR / 1e7, FAR[::-1] / 1e7),
        ("l1-ball", FAR / 1e7, -FAR / 1e7),
    ],
)
def test_the_diameter_is_attained(name, one, other):
    domain = CASES[name].domain
    assert np.linalg.norm(domain.project(one) - domain.project(other)) == pytest.approx(domain.diameter(D), rel=1e-7)


def test_diameters_in_one_coordinate():
    assert rue.Simplex(3).diameter(1) == 0.0
    assert rue.Box(-1, 3).diameter(1) == rue.Interval(-1, 3).diameter(1) == 4.0
    assert rue.L1Ball(3).diameter(1) == rue.Ball(3).diameter(1) == 6.0


@every
def test_the_start_is_the_projection_of_zero(name):
    domain = ALL[name].domain
    start = domain.start(D)
    assert start.shape == (D,)
    assert outside(name, start) <= tolerance(name)
    expected = np.array(CENTRE) if name == "ball-off-centre" else domain.project(np.zeros(D))
    assert np.array_equal(start, expected)


@every
def test_what_is_projected_is_left_alone(name):
    domain = ALL[name].domain
    w = np.full(D, 9.0)
    result = domain.project(w)
    assert np.array_equal(w, np.full(D, 9.0))
    assert not np.shares_memory(result, w)
    assert np.array_equal(domain.project([9, 9, 9, 9]), result)
    assert np.array_equal(domain.project(w.astype(np.float32)), result)


@each
def test_contains_what_is_inside_and_nothing_else(name):
    rng = np.random.default_rng(7)
    for _ in range(100):
        w = rng.normal(0, 1, D)
        if name == "hyperplane" or name.startswith("simplex"):
            assert not CASES[name].domain.contains(w)
        elif abs(outside(name, w)) > 1e-6 or name == "reals":
            assert CASES[name].domain.contains(w) == (outside(name, w) <= 0)


def test_contains_has_a_tolerance():
    assert rue.Ball(1).contains([1 + 1e-10])
    assert not rue.Ball(1).contains([1 + 1e-6])
    assert rue.Ball(1).contains([1 + 1e-6], tolerance=1e-5)


# The simplex and the ℓ1 ball against the sort that everyone writes.


def onto_simplex(w, total):
    u = np.sort(w)[::-1]
    sums = np.cumsum(u) - total
    k = np.arange(1, w.size + 1)
    rho = np.nonzero(u - sums / k > 0)[0][-1]
    return np.maximum(0, w - sums[rho] / (rho + 1))


def onto_l1_ball(w, radius):
    return w if np.abs(w).sum() <= radius else np.sign(w) * onto_simplex(np.abs(w), radius)


@settings(deadline=None, max_examples=120)
@given(
    w=hnp.arrays(
        np.float64,
        st.integers(1, 500),
        elements=st.one_of(st.sampled_from([-1.0, 0.0, 0.25, 1.0]), st.floats(-3, 3)),
        fill=st.sampled_from([0.0, 0.5, -2.0]),
    ),
    size=st.floats(0.01, 100),
)
@example(w=np.ones(500), size=1.0)
@example(w=np.zeros(500), size=1.0)
@example(w=np.repeat([0.3, 0.2], 250), size=1.0)
@example(w=np.linspace(0, 1, 500), size=0.01)
@example(w=2.0 ** -np.arange(0.0, 400.0), size=0.5)
@example(w=np.array([-0.0]), size=3.0)
def test_simplex_and_l1_ball_against_sorting(w, size):
    np.testing.assert_allclose(rue.Simplex(size).project(w), onto_simplex(w, size), rtol=1e-10, atol=1e-12 * (1 + size))
    np.testing.assert_allclose(rue.L1Ball(size).project(w), onto_l1_ball(w, size), rtol=1e-10, atol=1e-12 * (1 + size))


# Extreme sizes.


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-300, 1e-150, 1e10, 1e17, 1e150])
@pytest.mark.parametrize("name", ["ball", "ball-off-centre", "box", "box-of-vectors", "simplex", "l1-ball"])
def test_points_of_extreme_sizes_land_in_the_set(name, scale):
    for direction in ([1, -1, 1, -1], [1, 0, 0, 0], [3, 2, 2, 1], [0, 0, 0, -1]):
        p = CASES[name].domain.project(np.array(direction) * scale)
        assert np.isfinite(p).all()
        assert outside(name, p) <= 1e-6, (direction, p)


@pytest.mark.parametrize(
    "w", [[1e17, 0.0], [1e17, 1e17], [-1e150, 3e150], [1e8, 1e8 + 0.5], [1e-320, 0.9], [1e150, 0.3]]
)
def test_simplex_and_l1_ball_against_exact_fractions(w):
    exact = [float(x) for x in onto_simplex(np.array([Fraction(x) for x in w]), Fraction(1))]
    np.testing.assert_allclose(rue.Simplex().project(w), exact, atol=1e-9)
    size = [float(x) for x in onto_simplex(np.array([Fraction(abs(x)) for x in w]), Fraction(1))]
    if sum(map(abs, w)) > 1:
        np.testing.assert_allclose(rue.L1Ball(1).project(w), np.copysign(size, w), atol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150])
@pytest.mark.parametrize("make", [rue.Ball, rue.L1Ball, rue.Simplex], ids=lambda make: make.__name__)
def test_sets_of_extreme_sizes_scale(make, scale):
    for w in ([3.0, 2.0, 0.5], [0.1, 0.2, 0.3], [9.0, 9.0, 9.0]):
        unit = make(1.0).project(w)
        np.testing.assert_allclose(make(scale).project(np.array(w) * scale) / scale, unit, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("domain", [rue.Ball(1), rue.L1Ball(1), rue.Simplex()], ids=repr)
def test_finite_points_are_never_called_infinite(domain):
    for w in ([1e200, 0.0], [1e308, 1e308], [-1e300, 1e300]):
        p = domain.project(w)
        assert np.linalg.norm(p) <= 1 + 1e-12
        assert p.max() >= 0.5


@pytest.mark.parametrize("name", sorted(set(ALL) - {"reals"}))
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_point_that_is_not_finite_is_refused(name, bad):
    if bad == math.inf and name in ("box", "box-of-vectors"):
        pytest.skip("min(1, ∞) = 1 is the nearest point")
    with pytest.raises(DataError, match="not finite"):
        ALL[name].domain.project([bad, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("domain", "w", "expected"),
    [
        (rue.Ball(2), 5, 2),
        (rue.Ball(2, [3]), 0, 1),
        (rue.Box(-1, 1), -3, -1),
        (rue.Interval(-1, 1), 0.25, 0.25),
        (rue.Orthant(), -3, 0),
        (rue.Halfspace([2], 3), 9, 1.5),
        (rue.Halfspace([-2], 3), 9, 9),
        (rue.Hyperplane([2], 3), -9, 1.5),
        (rue.Simplex(2), -7, 2),
        (rue.L1Ball(2), -7, -2),
        (rue.Reals(), -7, -7),
        (rue.Intersection(rue.Ball(3), rue.Orthant()), -7, 0),
    ],
    ids=repr,
)
def test_one_coordinate(domain, w, expected):
    assert domain.project([w]) == pytest.approx([expected], abs=1e-12)
    assert domain.project(w) == pytest.approx([expected], abs=1e-12)


# Intersections.


def test_intersections_are_flattened():
    ball, orthant, box = rue.Ball(1), rue.Orthant(), rue.Box(-1, 1)
    nested = rue.Intersection(rue.Intersection(ball, orthant), box)
    assert nested.members == [ball, orthant, box]
    assert nested == rue.Intersection(ball, orthant, box)
    assert nested != rue.Intersection(orthant, ball, box)
    assert hash(nested) == hash(rue.Intersection(ball, orthant, box))
    assert nested.scratch_rows == 4
    assert repr(nested) == "Intersection(Ball(radius=1.0), Orthant(), Box(lower=-1.0, upper=1.0))"


def test_the_number_of_coordinates_of_an_intersection():
    assert rue.Intersection(rue.Ball(1), rue.Orthant()).dimension is None
    assert rue.Intersection(rue.Ball(1), rue.Halfspace([1, 2, 3])).dimension == 3
    with pytest.raises(SettingsError, match="3 coordinates, but the point has 2"):
        rue.Intersection(rue.Ball(1), rue.Halfspace([1, 2, 3])).project([1, 2])


@pytest.mark.parametrize("name", sorted(MEETS))
@settings(deadline=None, max_examples=30)
@given(w=points)
def test_residuals_are_small_and_true(name, w):
    domain = MEETS[name].domain
    residual = domain.residual(w)
    assert 0.0 <= residual <= 1e-7
    p = domain.project(w)
    assert residual >= max(np.linalg.norm(p - part.project(p)) for part in domain.members) - 1e-15


@pytest.mark.parametrize(
    ("domain", "away"),
    [
        (rue.Intersection(rue.Ball(1), rue.Halfspace([1, 0], -3)), "2"),
        (rue.Intersection(rue.Orthant(), rue.Ball(1, [-2, -2])), "1.8"),
        (rue.Intersection(rue.Simplex(), rue.Hyperplane([1, 1], 2)), "0.71"),
    ],
    ids=repr,
)
def test_sets_that_do_not_meet_are_refused(domain, away):
    with pytest.raises(SettingsError) as caught:
        domain.start(2)
    assert str(caught.value) == (f"{domain!r}: the sets do not meet; the nearest point found is {away} away from one.")
    with pytest.raises(SettingsError, match="do not meet"):
        rue.OGD("hinge", domain, "sqrt:1", intercept=False, d=2)


@pytest.mark.parametrize(
    ("domain", "point"),
    [
        (rue.Intersection(rue.Ball(1, [3, 1]), rue.Halfspace([0, 1], 0)), [3, 0]),
        (rue.Intersection(rue.Ball(1, [3, 0]), rue.Ball(1, [3, 2])), [3, 1]),
        (rue.Intersection(rue.Box(1, 2), rue.Box(2, 3)), [2, 2]),
        (rue.Intersection(rue.Simplex(), rue.Box(0.5, 1)), [0.5, 0.5]),
    ],
    ids=repr,
)
def test_sets_that_touch_in_one_point_do_meet(domain, point):
    np.testing.assert_allclose(domain.start(2), point, atol=0.1)  # slow where curved sets only touch


def test_the_residual_of_sets_that_do_not_meet():
    assert rue.Intersection(rue.Ball(1), rue.Halfspace([1, 0], -3)).residual([0, 0]) >= 2 - 1e-6


# What cannot be built.


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: rue.Ball(-1), "Ball: radius must be positive and finite, not -1.0"),
        (lambda: rue.Ball(0), "Ball: radius must be positive and finite, not 0.0"),
        (lambda: rue.Ball(math.inf), "Ball: radius must be positive and finite, not inf"),
        (lambda: rue.Ball(math.nan), "Ball: radius must be a number, not nan"),
        (lambda: rue.Ball("wide"), "Ball: radius must be a number, not 'wide'"),
        (lambda: rue.Ball(None), "Ball: radius must be a number, not None"),
        (lambda: rue.Ball(1, [0, math.nan]), "Ball: centre must be a number or a list of numbers"),
        (lambda: rue.Ball(1, [0, math.inf]), "Ball: centre must be"),
        (lambda: rue.Ball(1, [[0, 1]]), "Ball: centre must be a number or a list of numbers"),
        (lambda: rue.Box(1, -1), "Box: lower must not exceed upper"),
        (lambda: rue.Box([0, 0], [1, -1]), "Box: lower must not exceed upper"),
        (lambda: rue.Box([0, 0], [1, 1, 1]), "Box: lower has 2 numbers and upper 3"),
        (lambda: rue.Box([], []), "Box: lower has 0 numbers"),
        (lambda: rue.Box([0, 0], 1, coordinates=3), "Box: "),
        (lambda: rue.Box(0, 1, coordinates=-1), "Box: "),
        (lambda: rue.Box(0, 1, coordinates=1.5), "Box: coordinates must be a whole number"),
        (lambda: rue.Box(math.nan, 1), "Box: lower must be a number"),
        (lambda: rue.Box(math.inf, math.inf), "Box: no number lies above +∞"),
        (lambda: rue.Box(-math.inf, -math.inf), "Box: no number lies above +∞ or below −∞"),
        (lambda: rue.Interval(2, 1), "Box: lower must not exceed upper"),
        (lambda: rue.Interval([0, 0], [1, 1]), ""),
        (lambda: rue.Halfspace([0, 0], 1), "Halfspace: normal must be finite and not 0"),
        (lambda: rue.Halfspace([1, math.nan]), "Halfspace: normal must be a number or a list"),
        (lambda: rue.Halfspace([1, math.inf]), "Halfspace: normal must be finite"),
        (lambda: rue.Halfspace([1, 1], math.inf), "Halfspace: normal must be finite and not 0, and offset finite"),
        (lambda: rue.Halfspace([]), "Halfspace: normal must be finite and not 0"),
        (lambda: rue.Hyperplane([0], 1), "Hyperplane: normal must be finite and not 0"),
        (lambda: rue.Hyperplane([1], -math.inf), "Hyperplane: normal must be finite"),
        (lambda: rue.Simplex(0), "Simplex: total must be positive and finite"),
        (lambda: rue.Simplex(math.inf), "Simplex: total must be positive"),
        (lambda: rue.L1Ball(-1), "L1Ball: radius must be positive and finite"),
        (lambda: rue.Intersection(), "Intersection: give two sets or more, not 0"),
        (lambda: rue.Intersection(rue.Ball(1)), "Intersection: give two sets or more, not 1"),
        (lambda: rue.Intersection(rue.Ball(1), 3), "Intersection: each member must be a domain"),
        (
            lambda: rue.Intersection(rue.Ball(1, [0, 0]), rue.Halfspace([1, 1, 1])),
            "Intersection: the sets have different numbers of coordinates, [2, 3]",
        ),
    ],
)
def test_settings_that_make_no_sense(build, words):
    with pytest.raises(SettingsError) as caught:
        build()
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("domain", "has"),
    [
        (rue.Ball(1, CENTRE), 4),
        (rue.Box(LOWER, UPPER), 4),
        (rue.Box(LOWER, 9), 4),
        (rue.Box(-1, 1, coordinates=4), 4),
        (rue.Interval(0, 1), 1),
        (rue.Halfspace(NORMAL), 4),
        (rue.Hyperplane(NORMAL), 4),
        (rue.Intersection(rue.Ball(1), rue.Halfspace(NORMAL)), 4),
    ],
    ids=repr,
)
def test_a_point_of_another_length_is_refused(domain, has):
    assert domain.dimension == has
    for act in (domain.project, domain.contains, lambda w: domain.start(len(w))):
        with pytest.raises(SettingsError, match=f"has {has} coordinates, but the point has 3"):
            act([1, 2, 3])


@pytest.mark.parametrize("domain", [rue.Ball(1, CENTRE), rue.Box(LOWER, UPPER), rue.Halfspace(NORMAL)], ids=repr)
def test_a_direction_of_another_length_is_refused(domain):
    with pytest.raises(SettingsError, match="has 4 coordinates"):
        domain.support([1.0, 2.0, 3.0])


def test_open_sets_take_any_number_of_coordinates():
    for domain in (rue.Reals(), rue.Ball(1), rue.Box(-1, 1), rue.Orthant(), rue.Simplex(), rue.L1Ball(1)):
        assert domain.dimension is None
        assert domain.start(7).shape == (7,)


# The user's own.


@rue.parameter
class OwnBox(rue.Domain):
    half: float
    bounded = True

    def onto(self, w, scratch):
        for j in range(w.size):
            w[j] = min(self.half, max(-self.half, w[j]))
        return 0.0

    def diameter(self, d):
        return 2.0 * self.half * math.sqrt(d)


@rue.parameter
class Symmetric(rue.Domain):
    """The points that read the same backwards; works in its scratch row."""

    scratch_rows = 1

    def onto(self, w, scratch):
        for j in range(w.size):
            scratch[0, j] = w[w.size - 1 - j]
        for j in range(w.size):
            w[j] = 0.5 * (w[j] + scratch[0, j])
        return 0.0


class Undecorated(rue.Domain):
    def onto(self, w, scratch):
        return 0.0


@pytest.fixture(scope="module")
def examples():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    return X, np.sign(X @ [1.0, -2.0, 0.5])


def test_the_users_own_domain_learns_like_its_built_in_twin(examples):
    X, y = examples
    own, built_in = (rue.OGD("hinge", domain, "theory") for domain in (OwnBox(0.4), rue.Box(-0.4, 0.4)))
    np.testing.assert_allclose(own.run(X, y), built_in.run(X, y), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(own.point, built_in.point, rtol=1e-12, atol=1e-12)
    assert np.abs(own.point).max() == 0.4
    assert own.explain() == built_in.explain()


def test_the_users_own_domain_with_scratch(examples):
    X, y = examples
    assert np.array_equal(Symmetric().project([1.0, 2.0, 5.0]), [3.0, 2.0, 3.0])
    learner = rue.OGD("hinge", Symmetric(), "sqrt:0.5", intercept=False)
    learner.run(X, y)
    assert learner.point[0] == learner.point[2] != 0.0
    assert Symmetric().support([0.0, 0.0]) == 0.0
    assert Symmetric().support([0.0, 1.0]) == math.inf
    assert Symmetric().diameter(3) == math.inf
    with pytest.raises(SettingsError, match="no scratch rows"):
        rue.Intersection(rue.Ball(1), Symmetric())


def test_the_users_own_domain_in_an_intersection():
    both = rue.Intersection(OwnBox(0.4), rue.Simplex())
    np.testing.assert_allclose(both.project([5.0, 0.0, 0.0]), [0.4, 0.3, 0.3], atol=1e-9)


def test_the_users_own_unbounded_domain_has_no_step_by_theory():
    with pytest.raises(SettingsError, match=r"needs a bounded domain and Symmetric\(\) is not"):
        rue.OGD("hinge", Symmetric(), "theory")


def test_a_domain_without_the_decorator_is_refused_when_built():
    with pytest.raises(SettingsError, match=r"rue\.parameter"):
        rue.OGD("hinge", Undecorated(), "sqrt:1")


@pytest.mark.parametrize("domain", [3, None, rue.Hinge(), [1, 2]], ids=repr)
def test_what_is_no_domain(domain):
    with pytest.raises(SettingsError, match=r"OGD: domain must be a rue.Domain or a spec, not "):
        rue.OGD("hinge", domain)
