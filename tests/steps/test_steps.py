from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rue
from rue.errors import SettingsError
from rue.registry import registered
from rue.steps import Derived, Seen

ROOT2 = math.sqrt(2.0)


# The formulas.


@pytest.mark.parametrize(
    ("step", "formula"),
    [
        (rue.Fixed(0.3), lambda t, mass, largest, gradients: 0.3),
        (rue.Sqrt(0.3), lambda t, mass, largest, gradients: 0.3 * t**-0.5),
        (rue.Strong(0.3), lambda t, mass, largest, gradients: 1 / (0.3 * mass)),
        (rue.Sequence([1, 0.5, 0.25]), lambda t, mass, largest, gradients: [1, 0.5, 0.25, 0.25][min(t, 4) - 1]),
        (rue.Adaptive(0.5, 6), lambda t, mass, largest, gradients: 0.5 * (6 / ROOT2) / math.sqrt(gradients)),
        (Derived(5.0, 2.0, 1), lambda t, mass, largest, gradients: 5 / (2 * largest * math.sqrt(t))),
        (Derived(5.0, 2.0, 1, 100), lambda t, mass, largest, gradients: 5 / (2 * largest * 10)),
    ],
    ids=lambda x: "" if callable(x) else repr(x),
)
@settings(deadline=None, max_examples=50)
@given(
    t=st.integers(1, 10**9), mass=st.floats(1e-3, 1e9), largest=st.floats(1e-3, 1e9), gradients=st.floats(1e-6, 1e12)
)
def test_formulas(step, formula, t, mass, largest, gradients):
    expected = formula(t, mass, largest, gradients)
    assert step.eta(float(t), Seen(mass, largest, gradients)) == pytest.approx(expected, rel=1e-14)


def test_no_move_before_anything_was_seen():
    assert rue.Adaptive(1, 6).eta(1.0, Seen(1.0, 0.0, 0.0)) == 0.0
    assert Derived(5.0, 2.0, 1).eta(1.0, Seen(1.0, 0.0, 0.0)) == 0.0


def test_what_is_measured():
    assert Derived(1.0, 1.0, 1).measure(3.0, 4.0) == 6.0
    assert Derived(1.0, 1.0, 2).measure(3.0, 4.0) == 12.0
    assert rue.Sqrt(1).measure(3.0, 4.0) == 0.0


@pytest.mark.parametrize(
    ("build", "words"),
    [
        *[
            (lambda make=make, value=value: make(value), f"{make.__name__}: {field} must be positive and finite, not ")
            for make, field in ((rue.Fixed, "value"), (rue.Sqrt, "value"), (rue.Strong, "sigma"))
            for value in (0, -1, math.inf)
        ],
        (lambda: rue.Sqrt(math.nan), "Sqrt: value must be a number, not nan."),
        (lambda: rue.Sqrt("big"), "Sqrt: value must be a number, not 'big'."),
        (lambda: rue.Sequence([]), "Sequence: every step must be positive and finite"),
        (lambda: rue.Sequence([1, 0]), "Sequence: every step must be positive and finite"),
        (lambda: rue.Sequence([1, math.nan]), "Sequence: values must be a number or a list of numbers"),
        (lambda: rue.Sequence([1, math.inf]), "Sequence: every step must be positive and finite"),
        (lambda: rue.Adaptive(0), "Adaptive: factor must be positive and finite"),
        (lambda: rue.Adaptive(1, -1), "Adaptive: factor must be positive and finite, diameter ≥ 0 and finite."),
        (lambda: rue.Horizon(0), "Horizon: T must be a number of rounds, at least 1, not 0.0."),
        (lambda: rue.Horizon(math.inf), "Horizon: T must be a number of rounds"),
        (lambda: rue.Horizon(9, G=-1), "Horizon: the bounds G and X must be positive and finite."),
        (lambda: rue.Theory(G=-1), "Theory: the bounds G and X must be positive and finite."),
        (lambda: rue.Theory(X=math.inf), "Theory: the bounds G and X must be positive and finite."),
        (lambda: rue.Theory(X=math.nan), "Theory: X must be a number, not nan."),
    ],
)
def test_settings_that_make_no_sense(build, words):
    with pytest.raises(SettingsError) as caught:
        build()
    assert str(caught.value).startswith(words)


# What theory resolves to (A9): for each loss on each domain.

WIDTH = 4
DOMAINS = {
    "ball": (rue.Ball(3), 6.0),
    "ball off centre": (rue.Ball(3, [1, 0, 0, 0]), 6.0),
    "box": (rue.Box(-1, 2), 6.0),
    "box of sides": (rue.Box([0, 0, 0, 0], [1, 2, 2, 0]), 3.0),
    "simplex": (rue.Simplex(2), 2 * ROOT2),
    "l1-ball": (rue.L1Ball(2), 4.0),
    "intersection": (rue.Intersection(rue.Ball(3), rue.Orthant()), 6.0),
}
SLOPES = {  # the largest slope of each loss, None where there is none
    "hinge": 1.0,
    "logistic": 1.0,
    "perceptron": 1.0,
    "absolute": 1.0,
    "epsilon-insensitive": 1.0,
    "huber:0.5": 0.5,
    "quantile:0.9": 0.9,
    "quantile:0.2": 0.8,
    "square": None,
    "squared-hinge": None,
    "linear": None,
    "poisson": None,
}
on_each = pytest.mark.parametrize("where", sorted(DOMAINS))
with_each = pytest.mark.parametrize("loss", sorted(SLOPES))


def test_the_table_has_every_loss():
    assert {name.partition(":")[0] for name in SLOPES} == set(registered("loss")) - {"zero-one"}


@on_each
@with_each
def test_theory_resolves_to_the_step_of_a9(where, loss):
    domain, D = DOMAINS[where]
    step, words = rue.Theory().resolve(rue.make("loss", loss), domain, 0.0, WIDTH)
    ball = where.startswith("ball")
    L, X = SLOPES[loss], 7.0
    if L is not None:
        expected = ROOT2 * 3 / (L * X * 10) if ball else D / (ROOT2 * L * X * 10)
        assert step.eta(100.0, Seen(100.0, step.measure(1.0, X * X), 1e9)) == pytest.approx(expected, rel=1e-14)
        assert f"slopes of at most {L:g}" in words
        start = "step √2·U/(G√t) with U = 3 and G = " if ball else f"step D/(√2·G√t) with D = {D:g} and G = "
        assert words.startswith(start)
        assert words.endswith("(A9, B3)" if ball else "(A9, B6)")
    elif loss == "square" and where == "ball":
        expected = ROOT2 * 3 / (4 * 3 * X**2 * 10)  # G = 4UX²
        assert step.eta(100.0, Seen(100.0, step.measure(1.0, X * X), 1e9)) == pytest.approx(expected, rel=1e-14)
        assert words.startswith("step √2·U/(G√t) with U = 3 and G = 12·X², X the largest ‖x‖ so far, because ")
        assert "‖g‖ ≤ 4UX² when |y| ≤ UX" in words
    else:
        assert step == rue.Adaptive(1.0, D)
        assert step.eta(100.0, Seen(100.0, 1.0, 1e4)) == pytest.approx(D / ROOT2 / 100, rel=1e-14)
        assert words.startswith(f"step D/√2 over √Σ‖g‖² with D = {D:g}, which needs no bound on the gradients (A8, B9)")
        assert words.endswith("on this domain gives no bound G")


@on_each
@with_each
def test_a_gradient_bound_as_given_decides(where, loss):
    domain, D = DOMAINS[where]
    step, words = rue.Theory(G=5).resolve(rue.make("loss", loss), domain, 0.0, WIDTH)
    assert step == rue.Sqrt(D / ROOT2 / 5)
    assert "and G = 5, as given (A9, B" in words
    step, words = rue.Horizon(400, G=5).resolve(rue.make("loss", loss), domain, 0.0, WIDTH)
    assert step == rue.Fixed((3.0 if where.startswith("ball") else D) / (5 * 20))
    assert words.endswith("T = 400 and G = 5, as given (A9, B5)")


@on_each
@pytest.mark.parametrize("loss", ["hinge", "quantile:0.9", "square"])
def test_a_feature_bound_as_given(where, loss):
    domain, D = DOMAINS[where]
    made = rue.make("loss", loss)
    step, words = rue.Theory(X=7).resolve(made, domain, 0.0, WIDTH)
    if loss == "square" and where != "ball":
        assert step == rue.Adaptive(1.0, D)
        return
    G = 12 * 49.0 if loss == "square" else SLOPES[loss] * 7.0
    assert isinstance(step, rue.Sqrt)
    assert step.value == pytest.approx(D / ROOT2 / G, rel=1e-14)
    assert f"and G = {G:g}, " in words
    assert "X given" in words
    step, _ = rue.Horizon(400, X=7).resolve(made, domain, 0.0, WIDTH)
    assert isinstance(step, rue.Fixed)
    assert step.value == pytest.approx((3.0 if where.startswith("ball") else D) / (G * 20), rel=1e-14)


@on_each
@pytest.mark.parametrize("loss", ["hinge", "huber:0.5"])
def test_the_horizon_step(where, loss):
    domain, D = DOMAINS[where]
    step, words = rue.Horizon(400).resolve(rue.make("loss", loss), domain, 0.0, WIDTH)
    ball, L = where.startswith("ball"), SLOPES[loss]
    expected = 3 / (L * 7 * 20) if ball else D / (L * 7 * 20)  # U/(G√T), D/(G√T)
    for t in (1.0, 399.0):
        assert step.eta(t, Seen(t, step.measure(1.0, 49.0), 1e9)) == pytest.approx(expected, rel=1e-14)
    assert words.startswith(f"step {'U' if ball else 'D'}/(G√T) with {'U = 3' if ball else f'D = {D:g}'}, T = 400")
    assert words.endswith("(A9, B5)")


@on_each
@with_each
def test_strongly_convex_rounds_take_one_over_sigma_t(where, loss):
    step, words = rue.Theory().resolve(rue.make("loss", loss), DOMAINS[where][0], 0.25, WIDTH)
    assert step == rue.Strong(0.25)
    assert step.eta(8.0, Seen(8.0, 0.0, 0.0)) == 0.5
    assert words == "step 1/(σt) with σ = λ = 0.25, because the rounds are strongly convex (A4, B8)"


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: rue.OGD("hinge", "ball:10", "theory"),
            "step √2·U/(G√t) with U = 10 and G = X, the largest ‖x‖ so far, because hinge has slopes of at most 1 "
            "(A9, B3)",
        ),
        (
            lambda: rue.OGD("quantile:0.9", "box:-1,1", "theory", d=3),
            "step D/(√2·G√t) with D = 4 and G = 0.9·X, X the largest ‖x‖ so far, because quantile has slopes of at "
            "most 0.9 (A9, B6)",
        ),
        (
            lambda: rue.OGD("hinge", "box:-1,1", "theory"),
            "the step depends on the number of features, which the first example or d= will tell",
        ),
        (
            lambda: rue.OGD("hinge", "ball:2", "horizon:100"),
            "step U/(G√T) with U = 2, T = 100 and G = X, the largest ‖x‖ so far, because hinge has slopes of at most 1 "
            "(A9, B5)",
        ),
        (
            lambda: rue.OGD(rue.Regularised("hinge", 0.1), "reals"),
            "step 1/(σt) with σ = λ = 0.1, because the rounds are strongly convex (A4, B8)",
        ),
        (
            lambda: rue.AdaptiveOGD("square", "ball:2"),
            "step D/√2 over √Σ‖g‖² with D = 4, which needs no bound on the gradients (A8, B9)",
        ),
        (lambda: rue.OGD("hinge", "ball:2", "sqrt:0.5"), "step Sqrt(value=0.5) as given"),
    ],
)
def test_explain(build, words):
    assert build().explain() == words


def test_explain_tells_a_factor():
    halved = rue.OGD("hinge", "ball:2", rue.Adaptive(0.5)).explain()
    assert "0.5" in halved


def test_explain_says_each_thing_once():
    assert "X with X" not in rue.OGD("hinge", "ball:2", rue.Theory(X=3)).explain()
    assert "(B4) (A9" not in rue.OGD("square", "ball:2", "theory").explain()


@pytest.mark.parametrize("loss", ["squared-hinge", "epsilon-insensitive", "perceptron"])
def test_explain_calls_a_loss_by_its_name(loss):
    words = rue.OGD(loss, "ball:2", "theory").explain()
    assert f"{loss} " in words


# What is refused, and the sentences.


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: rue.OGD("hinge", "reals", "theory"),
            "the step 'theory' needs a bounded domain and Reals() is not: give a domain such as rue.Ball(10), "
            "a step of your own such as 'sqrt:0.5', or a strongly convex loss, rue.Regularised(loss, 0.01).",
        ),
        (
            lambda: rue.OGD("hinge", "orthant"),
            "the step 'theory' needs a bounded domain and Orthant() is not: give a domain such as rue.Ball(10), "
            "a step of your own such as 'sqrt:0.5', or a strongly convex loss, rue.Regularised(loss, 0.01).",
        ),
        (
            lambda: rue.OGD("hinge", "reals", rue.Theory(G=3)),
            "the step 'theory' needs a bounded domain and Reals() is not: ",
        ),
        (
            lambda: rue.OGD("hinge", "reals", "horizon:100"),
            "the step 'horizon' needs a bounded domain and Reals() is not: ",
        ),
        (
            lambda: rue.OGD("hinge", rue.Box(0, math.inf), "horizon:100"),
            "the step 'horizon' needs a bounded domain and Box(lower=0.0, upper=inf) is not: ",
        ),
        (
            lambda: rue.OGD("hinge", "reals", "adaptive"),
            "the step 'adaptive' needs a bounded domain and Reals() is not: give a domain such as rue.Ball(10), or a "
            "diameter, rue.Adaptive(diameter=20).",
        ),
        (
            lambda: rue.OGD("linear", "ball:1", "horizon:100"),
            "the step 'horizon' needs a bound G on the gradients, which Linear() on Ball(radius=1.0) does not give: "
            "say it, rue.Horizon(T, G=…), or take step='adaptive', which needs none.",
        ),
        (lambda: rue.OGD("square", "box:-1,1", "horizon:100"), "the step 'horizon' needs a bound G on the gradients"),
        (
            lambda: rue.OGD(rue.Regularised("square", 0.1), "reals", "theory"),
            "OGD: with the step 1/(σt), Square() plus (λ/2)‖w‖² can explode on an unbounded domain, because its slope "
            "is unbounded: project, for example domain='ball:10' (A4).",
        ),
        (
            lambda: rue.OGD(rue.Regularised("square", 0.1), "reals", "strong:0.1"),
            "OGD: with the step 1/(σt), Square() ",
        ),
        (lambda: rue.OGD("hinge", "ball:1", 0.5), "OGD: step must be a rue.Step or a spec, not 0.5."),
        (
            lambda: rue.OGD("hinge", "ball:1", rue.Ball(1)),
            "OGD: step must be a rue.Step or a spec, not Ball(radius=1.0).",
        ),
    ],
)
def test_refusals(build, sentence):
    with pytest.raises(SettingsError) as caught:
        build()
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("domain", [rue.Simplex(), rue.Box(1, 1)], ids=repr)
@pytest.mark.parametrize("step", [rue.Theory(), rue.Theory(X=1), rue.Horizon(10, X=1), rue.Horizon(10)], ids=repr)
def test_a_domain_of_one_point_has_no_step_to_take(domain, step):
    learner = rue.OGD("hinge", domain, step, intercept=False, d=1)
    assert learner.point.tolist() == [1.0]


# The steps a learner realises, read off its points: linear losses of slope 1 in one dimension: w_t − w_{t+1} = η_t.

T = 60


def realised(step, domain="reals", loss="linear", x=None, y=None, weights=None):
    """η_t·weight_t for t = 1 … T − 1, read off the points played; `x` is 1 unless given."""
    learner = rue.OGD(loss, domain, step, intercept=False, d=1)
    x = np.ones(T) if x is None else x
    played = learner.run(x[:, None], np.ones(T) if y is None else y, weights) / x
    return -np.diff(played)


@rue.parameter
class CubeRoot(rue.Step):
    scale: float

    def eta(self, t, seen):
        return self.scale / t ** (1.0 / 3.0)


@rue.parameter
class ByMass(rue.Step):
    """Uses everything a step may see."""

    def eta(self, t, seen):
        return 1.0 / (t + seen.mass + seen.largest + seen.gradients)

    def watches(self):
        return True

    def measure(self, weight, square):
        return weight * square


t = np.arange(1, T)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("fixed:0.25", np.full(T - 1, 0.25)),
        ("sqrt:0.25", 0.25 / np.sqrt(t)),
        ("strong:2", 1 / (2 * t)),
        (rue.Sequence([1, 0.5, 0.125]), np.array([1, 0.5, *[0.125] * (T - 3)])),
        (rue.Adaptive(1, 0.5), 0.5 / ROOT2 / np.sqrt(t)),
        (rue.Adaptive(0.25, 0.5), 0.125 / ROOT2 / np.sqrt(t)),
        (CubeRoot(0.5), 0.5 / np.cbrt(t)),
        (ByMass(), 1 / (t + t + 1.0 + t)),
    ],
    ids=lambda x: "" if isinstance(x, np.ndarray) else repr(x),
)
def test_realised_steps(step, expected):
    np.testing.assert_allclose(realised(step), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (rue.Theory(G=100), ROOT2 * 10 / 100 / np.sqrt(t)),
        (rue.Horizon(T, G=10), np.full(T - 1, 10 / (10 * math.sqrt(T)))),
    ],
    ids=lambda x: "" if isinstance(x, np.ndarray) else repr(x),
)
def test_realised_steps_on_the_ball(step, expected):
    np.testing.assert_allclose(realised(step, "ball:10"), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("step", "expected"),
    [("theory", ROOT2 * 10 / np.sqrt(t)), ("horizon:60", np.full(T - 1, 10 / math.sqrt(60)))],
    ids=lambda x: "" if isinstance(x, np.ndarray) else x,
)
def test_realised_steps_with_the_largest_feature_so_far(step, expected):
    # A round that is no mistake (slope 0 at p = y = 0) still shows its ‖x‖, so G = 1000 from then on, then 2000.
    x = np.ones(T)
    x[0], x[30] = 1000.0, 2000.0
    y = np.full(T, -1e9)
    y[0] = 0.0
    G = np.where(t - 1 < 30, 1000.0, 2000.0)
    moves = realised(step, "ball:10", "absolute", x, y)
    assert moves[0] == 0.0
    np.testing.assert_allclose(moves[1:], (expected / G * x[:-1])[1:], rtol=1e-9)


def test_realised_steps_with_weights():
    weights = np.random.default_rng(0).uniform(0.1, 3.0, T)
    w, mass = weights[:-1], np.cumsum(weights)[:-1]
    np.testing.assert_allclose(realised("strong:2", weights=weights), w / (2 * mass), rtol=1e-10)
    np.testing.assert_allclose(realised("sqrt:0.25", weights=weights), 0.25 * w / np.sqrt(t), rtol=1e-10)
    squares = np.cumsum(weights**2)[:-1]
    np.testing.assert_allclose(
        realised(rue.Adaptive(1, 0.5), weights=weights), 0.5 / ROOT2 * w / np.sqrt(squares), rtol=1e-10
    )


def test_a_round_of_weight_zero_is_no_round():
    weights = np.ones(T)
    weights[5:9] = 0.0
    moves = realised("sqrt:0.25", weights=weights)
    assert not moves[5:9].any()
    np.testing.assert_allclose(moves[9:], 0.25 / np.sqrt(t[9:] - 4), rtol=1e-10)


def test_a_regularised_loss_takes_one_over_sigma_t():
    lambda_, w, points = 0.5, 0.0, []
    y = np.where(np.arange(T) % 3 == 0, -1.0, 1.0)
    for i in range(T):
        points.append(w)
        g = lambda_ * w - (y[i] if y[i] * w <= 1 else 0.0)
        w -= g / (lambda_ * (i + 1))
    learner = rue.OGD(rue.Regularised("hinge", lambda_), "reals", "theory", intercept=False, d=1)
    np.testing.assert_allclose(learner.run(np.ones((T, 1)), y), points, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(learner.point, [w], rtol=1e-10)


def test_steps_go_on_where_a_learner_stands():
    learner = rue.OGD("linear", "reals", "sqrt:0.25", intercept=False, d=1)
    parts = [learner.run(np.ones((n, 1)), np.ones(n)) for n in (7, 0, 1, T - 8)]
    np.testing.assert_allclose(-np.diff(np.concatenate(parts)), 0.25 / np.sqrt(t), rtol=1e-10)


class Undecorated(rue.Step):
    def eta(self, t, seen):
        return 1.0 / t


def test_a_step_without_the_decorator_is_refused_when_built():
    with pytest.raises(SettingsError, match=r"rue\.parameter"):
        rue.OGD("linear", "reals", Undecorated())


@rue.parameter
class Shrinking(rue.Step):
    """Depends on the domain, like theory does."""

    value: float = 0.0

    def eta(self, t, seen):
        return self.value / t

    def resolve(self, loss, domain, lambda_, d):
        return Shrinking(domain.diameter(d) / 100.0), "step D/(100t), my own"

    def refuse(self, loss, domain, lambda_):
        if not domain.bounded:
            raise SettingsError("Shrinking: not on this domain.")


def test_the_users_own_step_may_resolve_and_refuse():
    assert rue.OGD("linear", "ball:5", Shrinking()).explain() == "step D/(100t), my own"
    np.testing.assert_allclose(realised(Shrinking(), "ball:5"), 0.1 / t, rtol=1e-10)
    with pytest.raises(SettingsError, match="Shrinking: not on this domain"):
        rue.OGD("linear", "reals", Shrinking())
