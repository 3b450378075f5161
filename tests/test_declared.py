"""A subclass that changes the mathematics of a built-in gets a right answer or a refusal, never the built-in's."""

import dataclasses
import math

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

import rue
from rue.declared import Declared
from rue.domains import Ball, Box, Domain, Halfspace, Hyperplane, Intersection, L1Ball, Orthant, Reals, Simplex
from rue.games import play
from rue.games.adversaries import MarginAdversary
from rue.games.opponents import ExampleRound
from rue.learners.gradient import Gradient
from rue.learners.leader import Leader
from rue.learners.mixture.standing import standing
from rue.losses import Loss
from rue.registry import registered

pytestmark = pytest.mark.usefixtures("interpreted")

LOSSES = {name: made for name, made in registered("loss").items() if made().convex}
T, D = 24, 2


def changed(made, factor=2.0, shift=0.0):
    """A subclass of a loss that is `factor` times as large, and higher by `shift`."""
    base = made()

    def value(self, p, y):
        return factor * base.value(p, y) + shift

    def slope(self, p, y):
        return factor * base.slope(p, y)

    return rue.parameter(type(f"Other{made.__name__}", (made,), {"value": value, "slope": slope}))()


def stream(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, D))
    y = X @ [1.0, -0.5] + rng.normal(size=T)
    if loss.task == "classify":
        y = np.where(y > 0.0, 1.0, -1.0)
    elif not loss.accepts(-1.0):
        y = np.round(np.abs(y))
    return X, y


def total(loss, X, y, u):
    return math.fsum(loss.value(float(x @ u), float(label)) for x, label in zip(X, y, strict=True))


def least(loss, X, y, radius):
    """min over the disc of that radius, by a fine grid and scipy from its best points."""
    angles, sizes = np.linspace(0.0, 2.0 * math.pi, 41), np.linspace(0.0, radius, 15)
    grid = [s * np.array([math.cos(a), math.sin(a)]) for a in angles for s in sizes]
    best = sorted(grid, key=lambda u: total(loss, X, y, u))[:2]

    def at(v):
        size = max(1.0, float(np.linalg.norm(v)) / radius)
        return total(loss, X, y, v / size)

    return min(float(minimize(at, u, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9}).fun) for u in best)


@pytest.mark.parametrize("name", LOSSES)
def test_a_subclass_keeps_no_fact_of_the_loss_it_changes(name):
    loss = changed(LOSSES[name])
    assert not [fact for fact in Loss.FACTS if loss.declares(fact)]
    assert [fact for fact in Loss.FACTS if LOSSES[name]().declares(fact)]


@pytest.mark.parametrize("factor", [0.5, 3.0])
@pytest.mark.parametrize("name", LOSSES)
def test_certificates_of_a_changed_loss_are_true(name, factor):
    loss = changed(LOSSES[name], factor)
    X, y = stream(loss)
    truth = {radius: least(loss, X, y, radius) for radius in (0.5, 3.0)}
    scale = np.abs(X).max(axis=0)
    in_largest = {radius: least(loss, X / scale, y, radius) for radius in (0.5, 3.0)}
    predictions = np.random.default_rng(1).normal(size=T)
    for radius in truth:
        shown = rue.certify(X, y, predictions, loss=loss, radius=radius, intercept=False, witnesses=[radius, 1.0])
        assert shown.comparator_loss_at_least <= truth[radius] + 1e-5 * (1.0 + abs(truth[radius]))
        options = {"units": "largest", "witnesses": radius, "intercept": False, "radius": radius}
        shown = rue.certify(X, y, predictions, loss=loss, **options)
        assert shown.comparator_loss_at_least <= in_largest[radius] + 1e-5 * (1.0 + abs(in_largest[radius]))
        best = rue.best_in_hindsight(X, y, loss=loss, radius=radius, intercept=False, tolerance=1e-3)
        room = 1e-5 * (1.0 + abs(truth[radius]))
        assert best.at_least - room <= truth[radius] <= best.value + room
    with pytest.raises(rue.SettingsError, match="curvature"):
        rue.certify(X, y, predictions, loss=loss, radius=1.0, curvature=True)


@pytest.mark.parametrize("name", LOSSES)
def test_learning_and_auditing_with_a_changed_loss(name):
    loss = changed(LOSSES[name])
    X, y = stream(loss)
    run = rue.learn(X, y, learner=rue.OGD(loss, "ball:1", "adaptive", intercept=False))
    audit = rue.audit(run, X, y)
    wanted = least(loss, X, y, 1.0)
    low, high = audit.comparator_loss
    assert low - 1e-4 * (1.0 + abs(wanted)) <= wanted <= high + 1e-4 * (1.0 + abs(wanted))
    assert audit.passed


@pytest.mark.parametrize("name", ["logistic", "square", "hinge"])
def test_a_mixture_under_a_changed_loss_keeps_its_price(name):
    loss = changed(LOSSES[name], 5.0)
    X, y = stream(loss)
    for learner in (rue.Mixture(loss), rue.Mixture(members=["ogd", "adagrad"], loss=loss)):
        predictions = learner.run(X, y)
        found = standing(learner)
        lost = math.fsum(loss.value(float(p), float(label)) for p, label in zip(predictions, y, strict=True))
        assert found.loss == pytest.approx(lost, rel=1e-9)
        assert found.price <= found.price_at_most * (1.0 + 1e-9) + 1e-9


@pytest.mark.parametrize("name", LOSSES)
def test_a_shift_below_zero_is_refused_or_said(name):
    loss = changed(LOSSES[name], 1.0, -100.0)
    if LOSSES[name].nonnegative:
        with pytest.raises(rue.SettingsError, match="never negative"):
            rue.OGD(loss, "ball:1", "adaptive")
    else:
        rue.OGD(loss, "ball:1", "adaptive")


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in ("linear",)])
@pytest.mark.parametrize("method", ["value", "slope"])
def test_a_value_without_its_slope_is_refused(name, method):
    one = getattr(changed(LOSSES[name], 3.0), method).__func__
    other = rue.parameter(type("Torn", (LOSSES[name],), {method: one}))()
    X, y = stream(other)
    for use in (
        lambda: rue.OGD(other, "ball:1", "adaptive"),
        lambda: rue.certify(X, y, np.zeros(T), loss=other, radius=1.0),
        lambda: rue.best_in_hindsight(X, y, loss=other, radius=1.0),
    ):
        with pytest.raises(rue.SettingsError, match="Torn"):
            use()


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("quadratic", True),
        ("log_odds", True),
        ("linear", True),
        ("log_mean", True),
        ("rosenblatt", True),
        ("depends_on", "margin"),
        ("per_mistake", 9.0),
        ("smooth", 0.1),
        ("strongly_convex", 9.0),
        ("lipschitz", 0.1),
        ("conjugate", lambda self, g, y: g * y),
        ("slope_range", lambda self, y: (-0.1, 0.1)),
        ("pieces", lambda self, y: (np.ones_like(y), [-1.0], 2.0, [y], 0.0)),
        ("prox", lambda self, p, y, a: p + 1.0),
        ("exp_concave", lambda self, low, high: 100.0),
    ],
)
def test_a_false_fact_is_refused(fact, value):
    """Of 3·(p − y)², whose facts these are not."""
    half = changed(rue.Square, 3.0)
    false = rue.parameter(type("False_", (type(half),), {fact: value}))()
    with pytest.raises(rue.SettingsError, match="False_"):
        rue.certify(np.eye(2), [1.0, 2.0], [0.0, 0.0], loss=false, radius=1.0)


def test_facts_declared_anew_hold_and_are_used():
    @rue.parameter
    class Tripled(rue.Square):
        smooth = 6.0
        strongly_convex = 6.0

        def value(self, p, y):
            return 3.0 * (p - y) * (p - y)

        def slope(self, p, y):
            return 6.0 * (p - y)

        def conjugate(self, g, y):
            return g * y + g * g / 12.0

        def second_derivative(self, p, y):
            return np.full_like(p, 6.0)

    X, y = stream(Tripled())
    best = rue.best_in_hindsight(X, y, loss=Tripled(), radius=1.0, intercept=False)
    wanted = rue.best_in_hindsight(X, y, loss="square", radius=1.0, intercept=False)
    assert best.interval == pytest.approx(np.multiply(3.0, wanted.interval), rel=1e-5)
    assert not Tripled().quadratic


def test_a_mixin_revokes_as_a_subclass_does():
    class Scaled:
        def value(self, p, y):
            return 5.0 * (p - y) * (p - y)

        def slope(self, p, y):
            return 10.0 * (p - y)

    mixed = rue.parameter(type("Mixed", (Scaled, rue.Square), {}))()
    assert not mixed.quadratic
    assert mixed.smooth is None


def test_new_defaults_change_nothing():
    @rue.parameter
    class Median(rue.Quantile):
        tau: float = 0.7

    @rue.parameter
    class Unit(rue.Ball):
        radius: float = 1.0

    assert Median().declares("conjugate")
    assert Median().lipschitz == 0.7
    assert Unit().centred_radius == 1.0


def test_a_property_in_the_place_of_a_field_revokes():
    class Odd(rue.Ball):
        @property
        def radius(self):
            return 7.0

    assert not [fact for fact in Domain.FACTS if inspect_declares(Odd, fact)]


def inspect_declares(cls, fact):
    return Declared.declares(object.__new__(cls), fact)


# Sets.

SETS = {
    "reals": Reals(),
    "ball": Ball(1.0),
    "off-centre": Ball(1.0, [0.3, -0.2]),
    "box": Box([-0.5, -1.0], [0.2, 0.7]),
    "orthant": Orthant(),
    "simplex": Simplex(1.0),
    "l1": L1Ball(1.0),
    "halfspace": Halfspace([1.0, 2.0], 0.3),
    "hyperplane": Hyperplane([1.0, 2.0], 0.3),
    "intersection": Intersection(Ball(1.0), Halfspace([1.0, 2.0], 0.3)),
}


def moved(base):
    """A subclass of a set's class that is the set shifted by 2 along every coordinate."""

    def onto(self, w, scratch):
        for j in range(w.size):
            w[j] -= 2.0
        off = base.onto(w, scratch)
        for j in range(w.size):
            w[j] += 2.0
        return off

    made = rue.parameter(type(f"Moved{type(base).__name__}", (type(base),), {"onto": onto, "dimension": 2}))
    return made(**{field: getattr(base, field) for field in type(base).__dataclass_fields__})


@pytest.mark.parametrize("name", SETS)
def test_certificates_on_a_moved_set_are_true_or_say_nothing(name):
    K, base = moved(SETS[name]), SETS[name]
    assert not [fact for fact in Domain.FACTS if K.declares(fact)]
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(T, 2)), rng.normal(size=T)
    inside = [K.project(rng.normal(size=2) * 3.0 + 2.0) for _ in range(60)]
    lowest = min(float(np.sum((X @ u - y) ** 2)) for u in inside)
    for options in ({}, {"witnesses": 3.0}, {"curvature": True}):
        try:
            shown = rue.certify(X, y, np.zeros(T), loss="square", domain=K, intercept=False, **options)
        except rue.SettingsError:
            continue
        assert shown.comparator_loss_at_least <= lowest * (1.0 + 1e-9)
    best = rue.best_in_hindsight(X, y, loss="square", domain=K, intercept=False, tolerance=1e-3)
    assert best.at_least <= lowest * (1.0 + 1e-9)
    assert np.linalg.norm(base.project(best.point - 2.0) - (best.point - 2.0)) <= 1e-8
    assert best.value == pytest.approx(float(np.sum((X @ best.point - y) ** 2)))


@pytest.mark.parametrize("name", SETS)
def test_learners_on_a_moved_set_stay_in_it_or_refuse(name):
    K, base = moved(SETS[name]), SETS[name]
    X, y = stream(rue.Hinge())
    makers = (
        lambda: rue.OGD("hinge", K, "fixed:0.1", intercept=False),
        lambda: rue.OGD("hinge", K, intercept=False),
        lambda: rue.AdaGrad("hinge", K, intercept=False),
        lambda: rue.FollowTheLeader("linear", K, intercept=False),
        lambda: rue.OGD(rue.Regularised(rue.Hinge(), 0.1), K, "strong:0.1", intercept=False),
    )
    learnt = 0
    for make in makers:
        try:
            learner = make()
        except rue.SettingsError:
            continue
        learner.run(X, y)
        learnt += 1
        w = learner.point - 2.0
        assert np.linalg.norm(base.project(w) - w) <= 1e-6
    assert learnt >= 1


def test_a_set_with_a_larger_support_of_its_own():
    """An ellipse made of a ball: D3 and D4 must not speak of the ball."""

    @rue.parameter
    class Ellipse(rue.Ball):
        def support(self, v):
            return self.radius * math.hypot(v[0], 5.0 * v[1])

        def onto(self, w, scratch):
            a = 5.0 * self.radius
            if math.hypot(w[0] / self.radius, w[1] / a) <= 1.0:
                return 0.0
            low, high = 0.0, a * math.hypot(w[0], w[1]) + 1.0
            for _ in range(200):
                t = 0.5 * (low + high)
                x, y = self.radius * w[0] / (self.radius**2 + t), a * w[1] / (a * a + t)
                low, high = (t, high) if x * x + y * y > 1.0 else (low, t)
            w[0] *= self.radius**2 / (self.radius**2 + high)
            w[1] *= a * a / (a * a + high)
            return 0.0

        bounded = True
        dimension = 2

        def diameter(self, d):
            return 10.0 * self.radius

    rng = np.random.default_rng(1)
    X = rng.normal(size=(T, 2))
    y = X @ [0.5, 4.0] + 0.1 * rng.normal(size=T)
    u = cp.Variable(2)
    wanted = cp.Problem(cp.Minimize(cp.sum_squares(X @ u - y)), [cp.norm(cp.multiply(u, [1.0, 0.2])) <= 1.0]).solve(
        solver="CLARABEL"
    )
    for options in ({}, {"witnesses": 5.0}, {"curvature": True}):
        shown = rue.certify(X, y, np.zeros(T), loss="square", domain=Ellipse(1.0), intercept=False, **options)
        assert shown.comparator_loss_at_least <= wanted * (1.0 + 1e-6)
    best = rue.best_in_hindsight(X, y, loss="square", domain=Ellipse(1.0), intercept=False)
    assert best.at_least - 1e-6 <= wanted <= best.value + 1e-6


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("support", lambda self, v: 0.1),
        ("diameter", lambda self, d: 0.1),
        ("centred_radius", 5.0),
        ("as_ball", lambda self, d: (np.zeros(d), 5.0)),
        ("sides", lambda self, d: (np.zeros(d), np.ones(d))),
        ("l1_radius", 1.0),
        ("simplex_total", 1.0),
        ("whole_space", True),
        ("bounded", True),
    ],
)
def test_a_false_fact_of_a_set_is_refused(fact, value):
    def onto(self, w, scratch):
        for j in range(w.size):
            w[j] = min(2.0, max(-2.0, w[j]))
        return 0.0

    false = rue.parameter(type("False_", (Domain,), {"onto": onto, fact: value}))()
    with pytest.raises(rue.SettingsError, match="False_"):
        rue.certify(np.eye(2), [1.0, 2.0], [0.0, 0.0], loss="square", domain=false, intercept=False)


# Steps, opponents, model files.


def test_a_step_of_ones_own_has_not_its_parents_theorem():
    @rue.parameter
    class Slow(rue.Strong):
        def eta(self, t, seen):
            return 1.0 / (100.0 * self.sigma * seen.mass)

    assert Slow(1.0).rule == ""
    X, y = stream(rue.Hinge())
    learner = rue.OGD(rue.Regularised(rue.Hinge(), 0.1), "ball:1", Slow(0.1), intercept=False)
    assert "B8" not in {bound.theorem for bound in rue.bounds(rue.trace(learner, X, y))}


def test_an_algorithm_of_ones_own_has_not_its_parents_theorems():
    """Gradient descent that goes uphill, the leader that stands still: the theorems of their parents are false."""

    def backwards(self, size, first=None, room=None):
        rule, point = Gradient.start(self, size, first, room)
        return dataclasses.replace(rule, step=rue.Fixed(1e-3)), point

    X, y = stream(rue.Hinge())
    settings = "OGD", rue.Hinge(), rue.Ball(1), rue.Fixed(0.1), rue.Uniform()
    same = rue.parameter(type("Same", (Gradient,), {}))(*settings)
    other = rue.parameter(type("Other", (Gradient,), {"start": backwards}))(*settings)
    assert {bound.theorem for bound in rue.bounds(rue.trace(rue.Learner(same), X, y))} >= {"B5"}
    assert rue.bounds(rue.trace(rue.Learner(other), X, y)) == []
    still = rue.parameter(type("Still", (Leader,), {"explain": lambda self, size: "it stands still"}))
    leader = rue.Learner(still("Still", rue.Linear(), rue.Interval(-1, 1), False), intercept=False)
    assert play(rue.FollowTheLeader("linear", "interval:-1,1"), "flip-flop", 10).forced is not None
    assert play(leader, "flip-flop", 10).forced is None


def test_an_opponent_that_plays_otherwise_forces_nothing():
    class Kind(MarginAdversary):
        def begin(self, setting):
            return lambda move: ExampleRound(np.eye(setting.d)[0], 1.0)

    game = play(rue.OGD("hinge", "ball:1", intercept=False), Kind(4), rounds=8)
    assert game.forced is None
    low, high = game.comparator_loss
    assert low <= 0.0 + 1e-6 <= high + 1e-5  # u = e_1 loses nothing


def test_a_subclass_is_never_saved_as_the_built_in(tmp_path):
    X, y = stream(rue.Square())
    loss = changed(rue.Square)
    run = rue.learn(X, y, learner=rue.OGD(loss, "ball:1", "adaptive"))
    path = tmp_path / "model.rue"
    rue.save(run, path)
    with pytest.raises(rue.RueError, match="OtherSquare"):
        rue.load(path)
    assert type(rue.load(path, known=[type(loss)]).learner.loss) is type(loss)
    run = rue.learn(X, y, learner=rue.OGD("square", moved(SETS["intersection"]), "fixed:0.1", intercept=False))
    with pytest.raises(rue.SettingsError, match="MovedIntersection"):
        rue.save(run, tmp_path / "other.rue")


def test_regularised_cannot_be_subclassed():
    with pytest.raises(rue.SettingsError, match="Regularised"):
        type("Elastic", (rue.Regularised,), {})
