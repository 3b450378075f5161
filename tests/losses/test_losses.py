from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import rue
from rue.compiled import kernel
from rue.errors import SettingsError
from rue.registry import registered

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
ANY, SIGNS, COUNTS = "any real number", "−1 or +1", "a number ≥ 0"


@dataclass(frozen=True)
class Case:
    """A loss beside its formulas from docs/theory.md, its kinks (p, slope there) for a label, and its facts."""

    loss: Any
    value: Any
    slope: Any
    labels: str
    kinks: Any = lambda y: []
    lipschitz: float | None = None
    smooth: float | None = None
    strong: float = 0.0


def margin(f):
    return lambda p, y: f(y * p)


TAU, DELTA, EPS = 0.9, 0.75, 0.3
CASES = {
    "square": Case(rue.Square(), lambda p, y: (p - y) ** 2, lambda p, y: 2 * (p - y), ANY, smooth=2.0, strong=2.0),
    "absolute": Case(
        rue.Absolute(),
        lambda p, y: np.abs(p - y),
        lambda p, y: np.sign(p - y),
        ANY,
        lambda y: [(y, 0.0)],
        lipschitz=1.0,
    ),
    "hinge": Case(
        rue.Hinge(),
        margin(lambda z: np.maximum(0, 1 - z)),
        lambda p, y: np.where(y * p <= 1, -y, 0.0),
        SIGNS,
        lambda y: [(y, -y)],
        lipschitz=1.0,
    ),
    "perceptron": Case(
        rue.PerceptronLoss(),
        margin(lambda z: np.maximum(0, -z)),
        lambda p, y: np.where(y * p <= 0, -y, 0.0),
        SIGNS,
        lambda y: [(0.0, -y)],
        lipschitz=1.0,
    ),
    "logistic": Case(
        rue.Logistic(),
        margin(lambda z: np.logaddexp(0, -z)),
        lambda p, y: -y * special.expit(-y * p),
        SIGNS,
        lipschitz=1.0,
        smooth=0.25,
    ),
    "squared-hinge": Case(
        rue.SquaredHinge(),
        margin(lambda z: np.maximum(0, 1 - z) ** 2),
        lambda p, y: -2 * y * np.maximum(0, 1 - y * p),
        SIGNS,
        smooth=2.0,
    ),
    "linear": Case(rue.Linear(), lambda p, y: y * p, lambda p, y: y + 0 * p, ANY),
    "huber": Case(
        rue.Huber(DELTA),
        lambda p, y: special.huber(DELTA, p - y),
        lambda p, y: np.clip(p - y, -DELTA, DELTA),
        ANY,
        lipschitz=DELTA,
        smooth=1.0,
    ),
    "quantile": Case(
        rue.Quantile(TAU),
        lambda p, y: np.maximum(TAU * (y - p), (TAU - 1) * (y - p)),
        lambda p, y: np.where(p < y, -TAU, np.where(p > y, 1 - TAU, 0.0)),
        ANY,
        lambda y: [(y, 0.0)],
        lipschitz=TAU,
    ),
    "epsilon-insensitive": Case(
        rue.EpsilonInsensitive(EPS),
        lambda p, y: np.maximum(0, np.abs(p - y) - EPS),
        lambda p, y: np.where(np.abs(p - y) > EPS, np.sign(p - y), 0.0),
        ANY,
        lambda y: [(EPS + y, 0.0), (y - EPS, 0.0)] if y == 0 else [],  # y ± ε is exact at 0 only
        lipschitz=1.0,
    ),
    "poisson": Case(rue.Poisson(), lambda p, y: np.exp(p) - y * p, lambda p, y: np.exp(p) - y, COUNTS),
}
NAMES = sorted(CASES)
TRIED = {ANY: [0.0, 1.0, -2.6, 7.25], SIGNS: [-1.0, 1.0], COUNTS: [0.0, 1.0, 4.5]}
each = pytest.mark.parametrize("name", NAMES)
predictions = st.floats(-30, 30)


def labels_of(case):
    return TRIED[case.labels]


def test_every_registered_loss_has_a_case():
    assert set(registered("loss")) == {*CASES, "zero-one"}
    assert all(type(CASES[name].loss) is registered("loss")[name] for name in NAMES)


@each
def test_value_and_slope_are_the_formulas(name):
    case, rng = CASES[name], np.random.default_rng(0)
    ps = np.concatenate([np.linspace(-25, 25, 401), rng.normal(0, 2, 300), rng.normal(0, 1e-6, 50)])
    for y in labels_of(case):
        got = np.array([case.loss.value(float(p), y) for p in ps])
        np.testing.assert_allclose(got, case.value(ps, y), rtol=1e-13, atol=1e-14)
        got = np.array([case.loss.slope(float(p), y) for p in ps])
        np.testing.assert_allclose(got, case.slope(ps, y), rtol=1e-13, atol=1e-14)


@kernel
def at_once(loss, first, many, values, slopes, p, y):
    loss.at_once(first, many, values, slopes, p, y)


@each
def test_values_and_slopes_at_once(name):
    """As one by one, but for the last digits of a loss that has a way of its own; the places around are left alone."""
    case, rng = CASES[name], np.random.default_rng(1)
    p = np.concatenate([rng.normal(0, 3, 37), [0.0, 1e-9, -1e-9, 30.0, -30.0, 700.0, -700.0], rng.normal(0, 1e-3, 9)])
    for y in labels_of(case):
        values, slopes = np.full(p.size, 7.0), np.full(p.size, 7.0)
        at_once(case.loss, 2, p.size - 3, values, slopes, p, np.full(p.size, y))
        for found, one in ((values, case.loss.value), (slopes, case.loss.slope)):
            wanted = np.array([one(float(x), y) for x in p[2:-1]])
            np.testing.assert_allclose(found[2:-1], wanted, rtol=1e-15)
            assert found[[0, 1, -1]].tolist() == [7.0] * 3


def test_a_loss_made_of_another_is_its_own_at_once():
    @rue.parameter
    class Half(rue.Logistic):
        def value(self, p, y):
            return 0.5 * math.log1p(math.exp(-y * p))

    values, slopes = np.empty(4), np.empty(4)
    Half().at_once(0, 4, values, slopes, np.array([0.0, 1.0, -1.0, 2.0]), np.ones(4))
    assert values.tolist() == [Half().value(p, 1.0) for p in (0.0, 1.0, -1.0, 2.0)]
    assert slopes.tolist() == [rue.Logistic().slope(p, 1.0) for p in (0.0, 1.0, -1.0, 2.0)]


@each
@settings(deadline=None, max_examples=60)
@given(p=predictions, h=st.floats(1e-5, 1e-4), at=st.integers(0, 3))
def test_slope_is_the_derivative_away_from_kinks(name, p, h, at):
    case = CASES[name]
    ys = labels_of(case)
    y = ys[at % len(ys)]
    near = [y, 1 / y if y else 0.0, 0.0, y + EPS, y - EPS, y + DELTA, y - DELTA]
    if any(abs(p - k) < 3 * h for k in near):
        return
    up, down = case.loss.value(p + h, y), case.loss.value(p - h, y)
    slope = case.loss.slope(p, y)
    size = abs(up) + abs(down) + abs(slope)
    assert abs((up - down) / (2 * h) - slope) <= 1e-6 * (1 + abs(slope)) + 4e-16 * size / h


@each
def test_the_subgradient_chosen_at_each_kink(name):
    case = CASES[name]
    for y in labels_of(case):
        for p, slope in case.kinks(y):
            assert case.loss.slope(p, y) == slope, (p, y)


@each
@settings(deadline=None, max_examples=100)
@given(p=predictions, q=predictions, share=st.floats(0, 1), at=st.integers(0, 3))
def test_convex_and_above_its_tangents(name, p, q, share, at):
    case = CASES[name]
    ys = labels_of(case)
    y, loss = ys[at % len(ys)], case.loss
    a, b = loss.value(p, y), loss.value(q, y)
    slack = 1e-12 * (1 + abs(a) + abs(b) + abs(loss.slope(p, y) * (q - p)))
    assert loss.value((1 - share) * p + share * q, y) <= (1 - share) * a + share * b + slack
    assert b >= a + loss.slope(p, y) * (q - p) - slack


@settings(deadline=None, max_examples=300)
@given(p=st.floats(allow_nan=False, allow_infinity=False), y=st.sampled_from([-1.0, 1.0]))
def test_logistic_never_overflows(p, y):
    loss = rue.Logistic()
    value, slope = loss.value(p, y), loss.slope(p, y)
    assert math.isfinite(value)
    assert value >= 0.0
    assert 0.0 <= -y * slope <= 1.0
    assert value == pytest.approx(np.logaddexp(0, -y * p), rel=1e-14, abs=5e-324)
    # Below 1e-307 numbers are subnormal, and SciPy's expit, the reference, may flush them to 0 without wide vectors.
    assert slope == pytest.approx(-y * special.expit(-y * p), rel=1e-14, abs=1e-307)


@pytest.mark.parametrize("p", [-1e308, -800.0, 0.0, 800.0, 1e308])
def test_logistic_at_the_ends(p):
    loss = rue.Logistic()
    assert loss.value(p, 1.0) == pytest.approx(max(0.0, -p) if p else math.log(2), rel=1e-15)
    assert loss.slope(p, 1.0) == {-1e308: -1.0, -800.0: -1.0, 0.0: -0.5, 800.0: 0.0, 1e308: 0.0}[p]
    assert loss.value(p, -1.0) == loss.value(-p, 1.0)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"linear", "poisson"}))
def test_nonnegative_where_said(name):
    case = CASES[name]
    assert case.loss.nonnegative
    assert all(case.loss.value(float(p), y) >= 0 for y in labels_of(case) for p in np.linspace(-9, 9, 181))


def test_linear_and_poisson_may_be_negative():
    assert not rue.Linear().nonnegative
    assert rue.Linear().value(-1.0, 1.0) < 0
    assert not rue.Poisson().nonnegative
    assert rue.Poisson().value(2.0, 10.0) < 0


# The facts that theory asks for: true, and tight.


def slopes(case, p):
    return np.array([[case.loss.slope(float(q), y) for q in p] for y in labels_of(case)])


@each
def test_lipschitz_is_true_and_tight(name):
    case = CASES[name]
    assert case.loss.lipschitz == case.lipschitz
    largest = np.abs(slopes(case, np.linspace(-60, 60, 2401))).max()
    if case.lipschitz is None:
        p, y = {"linear": (0.0, 1e9), "poisson": (50.0, 0.0), "squared-hinge": (1e9, -1.0)}.get(name, (1e9, 0.0))
        assert case.loss.slope(p, y) > 1e8  # there is none to state
    else:
        assert case.lipschitz * (1 - 1e-12) <= largest <= case.lipschitz


@pytest.mark.parametrize(("tau", "largest"), [(0.1, 0.9), (0.5, 0.5), (0.7, 0.7)])
def test_lipschitz_of_the_quantile_loss(tau, largest):
    assert rue.Quantile(tau).lipschitz == largest == max(-rue.Quantile(tau).slope(0, 1), rue.Quantile(tau).slope(1, 0))


@each
def test_smoothness_is_true_and_tight(name):
    case, h = CASES[name], 1e-4
    p = np.concatenate([np.arange(-6, 6, h), np.arange(6, 14, 0.01)])
    rate = (np.abs(np.diff(slopes(case, p), axis=1)) / np.diff(p)).max()
    if name == "linear":
        assert rate == 0.0
        assert case.loss.smooth in (None, 0.0)
    elif case.smooth is None:
        assert case.loss.smooth is None
        assert rate > 0.4 / h * TAU if name != "poisson" else rate > 1e5  # a jump, or without bound
    else:
        assert case.loss.smooth == case.smooth
        assert case.smooth * (1 - 1e-6) <= rate <= case.smooth * (1 + 1e-6)


@each
def test_strong_convexity_is_true_and_tight(name):
    case = CASES[name]
    assert case.loss.strongly_convex == case.strong
    p = np.arange(-40, 40, 0.5)
    rate = np.diff(slopes(case, p), axis=1).min() / 0.5
    assert case.strong - 1e-12 <= rate <= case.strong + 1e-12


RANGES = [(0.0, 1.0), (-1.0, 1.0), (-3.0, 2.0), (2.0, 2.5), (-6.0, -5.9)]


def bends_up(loss, alpha, low, high):
    """The largest second difference of e^{−αℓ} over the range, in units of its step², over labels."""
    p = np.linspace(low, high, 201)
    ys = (-1.0, 1.0) if loss.task == "classify" else np.linspace(low, high, 21)
    e = np.array([[math.exp(-alpha * loss.value(float(q), float(y))) for q in p] for y in ys])
    scale = e.max(axis=1, keepdims=True)
    return (np.diff(e / scale, 2, axis=1) / (p[1] - p[0]) ** 2).max() / alpha


@pytest.mark.parametrize("loss", [rue.Square(), rue.Logistic(), rue.SquaredHinge(), rue.Huber(5.0)], ids=repr)
def test_exp_concave_is_true_and_tight(loss):
    for low, high in RANGES:
        assert bends_up(loss, loss.exp_concave(low, high), low, high) <= 1e-9 / (high - low) ** 2
    assert any(bends_up(loss, 1.05 * loss.exp_concave(low, high), low, high) > 1e-4 for low, high in RANGES)


@pytest.mark.parametrize("name", ["absolute", "hinge", "perceptron", "linear", "quantile", "epsilon-insensitive"])
def test_piecewise_linear_losses_are_not_exp_concave(name):
    assert CASES[name].loss.exp_concave(-1.0, 1.0) is None
    assert CASES[name].loss.mixable(-1.0, 1.0) is None


def test_huber_is_exp_concave_on_its_quadratic_part_only():
    assert rue.Huber(2.0).exp_concave(0.0, 2.0) == 0.25
    assert rue.Huber(2.0).exp_concave(0.0, 2.1) is None


def substitute(predictions, weights, rate, low, high):
    """By how much the best single prediction exceeds the mixture of square losses, over the labels of the range."""

    def mixed(y):
        return -np.log(np.sum(weights * np.exp(-rate * (predictions - y) ** 2))) / rate

    p = (low + high) / 2 + (mixed(low) - mixed(high)) / (2 * (high - low))
    return max((p - y) ** 2 - mixed(y) for y in np.linspace(low, high, 41))


def test_mixability_of_square_loss_is_true_and_tight():
    rng, loss = np.random.default_rng(3), rue.Square()
    for low, high in RANGES:
        rate, B = loss.mixable(low, high), high - low
        assert rate == pytest.approx(2 / B**2, rel=1e-12)
        for _ in range(200):
            weights = rng.dirichlet(np.ones(4))
            assert substitute(rng.uniform(low, high, 4), weights, rate, low, high) <= 1e-13 * B**2
        close = (low + high) / 2 + 0.1 * B * np.array([-1, 1])
        assert substitute(close, np.array([0.5, 0.5]), 1.05 * rate, low, high) > 1e-6 * B**2


def test_mixing_probabilities_is_exact_for_logistic_loss_at_rate_one():
    loss, rng = rue.Logistic(), np.random.default_rng(4)
    assert loss.mixable(-100.0, 3.0) == 1.0
    ps, weights = rng.normal(0, 3, 5), rng.dirichlet(np.ones(5))
    p = special.logit(weights @ special.expit(ps))
    for y in (-1.0, 1.0):
        assert loss.value(p, y) == pytest.approx(-np.log(weights @ np.exp([-loss.value(q, y) for q in ps])))


@each
def test_labels(name):
    case = CASES[name]
    assert case.loss.labels == case.labels
    assert case.loss.task == ("classify" if case.labels == SIGNS else "regress")
    taken = {ANY: [0.0, -1.0, 1e308, -0.5], SIGNS: [1.0, -1.0], COUNTS: [0.0, 0.5, 1e308]}[case.labels]
    not_taken = {ANY: [], SIGNS: [0.0, 0.5, 2.0], COUNTS: [-1.0, -5e-324]}[case.labels]
    assert all(case.loss.accepts(y) for y in taken)
    assert not any(case.loss.accepts(y) for y in [*not_taken, math.nan, math.inf, -math.inf])


@settings(deadline=None, max_examples=200)
@given(p=st.floats(-1e300, 1e300), y=st.sampled_from([-1.0, 1.0]))
def test_hinge_and_logistic_bound_the_zero_one_loss(p, y):
    wrong = rue.ZeroOne().value(p, y)
    assert wrong == (1.0 if y * p <= 0 else 0.0)
    assert rue.Hinge().value(p, y) >= wrong
    assert rue.SquaredHinge().value(p, y) >= wrong
    assert rue.Logistic().value(p, y) / math.log(2) >= wrong * (1 - 1e-15)


@pytest.mark.parametrize("p", [0.0, -0.5])
def test_the_perceptron_loss_does_not_bound_the_zero_one_loss(p):
    assert rue.PerceptronLoss().value(p, 1.0) < rue.ZeroOne().value(p, 1.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rue.Huber(0), "Huber: delta must be positive and finite"),
        (lambda: rue.Huber(math.inf), "Huber: delta must be positive"),
        (lambda: rue.Quantile(0), "Quantile: tau must lie between 0 and 1"),
        (lambda: rue.Quantile(1), "Quantile: tau must lie between 0 and 1"),
        (lambda: rue.Quantile("high"), "Quantile: tau must be a number, not 'high'"),
        (lambda: rue.EpsilonInsensitive(-0.1), "EpsilonInsensitive: epsilon must be ≥ 0"),
        (lambda: rue.Regularised("hinge", 0), "Regularised: lambda_ must be positive"),
        (lambda: rue.Regularised("hinge", math.nan), "Regularised: lambda_ must be a number"),
    ],
)
def test_settings_that_make_no_sense(make, words):
    with pytest.raises(SettingsError) as caught:
        make()
    assert str(caught.value).startswith(words)


def test_the_indicator_of_a_set():
    indicator = rue.Indicator(rue.Ball(1))
    assert rue.Indicator("ball:1") == indicator
    assert rue.Indicator("interval:-1,1").value([1.5]) == math.inf
    with pytest.raises(
        rue.SettingsError, match=r"Indicator: domain must be a set such as rue.Ball\(1\), or a spec, not 3"
    ):
        rue.Indicator(3)
    assert indicator.value([0.6, 0.8]) == 0.0
    assert indicator.value([0.7, 0.8]) == math.inf


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        (
            rue.ZeroOne(),
            "OGD: ZeroOne() is not convex: it can be measured, not learnt with; hinge and logistic loss bound it.",
        ),
        (
            rue.Indicator(rue.Ball(2)),
            "OGD: the indicator of a set is a constraint: give the set as domain=Ball(radius=2.0).",
        ),
        (3.0, "OGD: loss must be a rue.Loss or a spec, not 3.0."),
        (None, "OGD: loss must be a rue.Loss or a spec, not None."),
        (rue.Ball(1), "OGD: loss must be a rue.Loss or a spec, not Ball(radius=1.0)."),
    ],
    ids=["zero-one", "indicator", "number", "none", "domain"],
)
def test_what_is_no_loss_to_learn_with(loss, sentence):
    with pytest.raises(SettingsError) as caught:
        rue.OGD(loss=loss)
    assert str(caught.value) == sentence


def test_the_zero_one_loss_by_name_and_inside_a_regulariser():
    for loss in ("zero-one", rue.Regularised("zero-one", 0.1), rue.Regularised(rue.ZeroOne(), 0.1)):
        with pytest.raises(SettingsError, match="not convex"):
            rue.OGD(loss=loss)


# The user's own.


@rue.parameter
class OwnHinge(rue.MarginLoss):
    lipschitz = 1.0

    def value(self, p, y):
        return max(0.0, 1.0 - y * p)

    def slope(self, p, y):
        return -y if y * p <= 1.0 else 0.0


@rue.parameter
class OwnQuantile(rue.Loss):
    tau: float = 0.5

    @property
    def lipschitz(self):
        return max(self.tau, 1.0 - self.tau)

    def value(self, p, y):
        return self.tau * (y - p) if p < y else (1.0 - self.tau) * (p - y)

    def slope(self, p, y):
        return (1.0 if p > y else 0.0) - self.tau if p != y else 0.0


@pytest.mark.parametrize(
    ("own", "built_in"), [(OwnHinge(), rue.Hinge()), (OwnQuantile(0.75), rue.Quantile(0.75))], ids=["hinge", "quantile"]
)
def test_the_users_own_loss_learns_like_its_built_in_twin(own, built_in):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3))
    y = np.sign(X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=200))
    a, b = (rue.OGD(loss=loss, domain="ball:2", step="theory") for loss in (own, built_in))
    assert a.run(X, y).tobytes() == b.run(X, y).tobytes()
    assert a.point.tobytes() == b.point.tobytes()
    assert np.any(a.point != 0.0)
    runs = [rue.learn(X, y, learner=rue.OGD(loss, "ball:2", "theory")) for loss in (own, built_in)]
    assert runs[0].loss == runs[1].loss
    assert runs[0].losses.tobytes() == runs[1].losses.tobytes()


@rue.parameter
class Capped(rue.Loss):
    def value(self, p, y):
        return min(1.0, (p - y) ** 2)

    def slope(self, p, y):
        return 2.0 * (p - y) if abs(p - y) < 1.0 else 0.0


@rue.parameter
class Concave(rue.Loss):
    def value(self, p, y):
        return -((p - y) ** 2)

    def slope(self, p, y):
        return -2.0 * (p - y)


@rue.parameter
class HalfSlope(rue.Loss):
    def value(self, p, y):
        return (p - y) ** 2

    def slope(self, p, y):
        return p - y


@rue.parameter
class WrongSign(OwnHinge):
    def slope(self, p, y):
        return y if y * p <= 1.0 else 0.0


@rue.parameter
class NaNValue(rue.Loss):
    def value(self, p, y):
        return math.nan

    def slope(self, p, y):
        return 0.0


@rue.parameter
class NaNSlope(rue.Loss):
    def value(self, p, y):
        return abs(p - y)

    def slope(self, p, y):
        return math.nan if p > 20 else (1.0 if p > y else -1.0)


@rue.parameter
class NoSlope(rue.Loss):
    def value(self, p, y):
        return abs(p - y)


@rue.parameter
class Words(rue.Loss):
    def value(self, p, y):
        return "much"

    def slope(self, p, y):
        return 0.0


@rue.parameter
class Overflows(rue.Loss):
    def value(self, p, y):
        return math.exp(p * p)

    def slope(self, p, y):
        return 2.0 * p * math.exp(p * p)


@rue.parameter
class Picky(rue.Loss):
    def accepts(self, y):
        return False

    def value(self, p, y):
        return abs(p - y)

    def slope(self, p, y):
        return 1.0 if p > y else -1.0


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (Capped(), "Capped: it is not convex: at y = "),
        (Concave(), "Concave: it is not convex: at y = "),
        (HalfSlope(), "HalfSlope: its slope is not a subgradient of its value: at y = "),
        (WrongSign(), "WrongSign: its slope is not a subgradient of its value: at y = "),
        (NaNValue(), "NaNValue: value or slope is NaN "),
        (NaNSlope(), "NaNSlope: value or slope is NaN "),
        (NoSlope(), "NoSlope: value(p, y) and slope(p, y) must be numbers; "),
        (Words(), "Words: value(p, y) and slope(p, y) must be numbers; "),
        (Overflows(), "Overflows: value(p, y) and slope(p, y) must be numbers; "),
        (Picky(), "Picky: accepts() refuses every label tried; "),
    ],
    ids=lambda x: x.split(":")[0] if isinstance(x, str) else "",
)
def test_the_users_own_loss_is_checked(loss, words):
    for given_ in (loss, rue.Regularised(loss, 0.1)):
        with pytest.raises(SettingsError) as caught:
            rue.OGD(loss=given_, domain="ball:1", step="sqrt:1")
        assert str(caught.value).startswith(words)
        assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize("name", NAMES)
def test_the_built_in_losses_pass_the_check_of_the_users(name):
    from rue.losses.convexity import require_convex

    require_convex(CASES[name].loss)


@rue.parameter
class Interpreted(rue.Loss):
    lipschitz = 1.0

    def value(self, p, y):
        return abs(p - y)

    def slope(self, p, y):
        return float(json.loads("1")) if p > y else -1.0


@rue.parameter
class Allocates(rue.Loss):
    lipschitz = 1.0

    def value(self, p, y):
        return abs(p - y)

    def slope(self, p, y):
        return np.sign(np.array([p - y, 0.0]))[0]


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize("loss", [Interpreted(), Allocates()], ids=["objects", "allocation"])
def test_a_loss_that_cannot_be_compiled(loss):
    with pytest.raises(SettingsError) as caught:
        rue.OGD(loss=loss, domain="ball:1").run([[1.0]], [1.0])
    message = str(caught.value)
    assert message.startswith("the methods of ")
    assert type(loss).__name__ in message
    assert "could not be compiled" in message
    assert "plain arithmetic" in message
    assert "\n" not in message


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_the_message_about_a_loss_that_cannot_be_compiled_names_nothing_of_rues_own():
    with pytest.raises(SettingsError) as caught:
        rue.OGD(loss=Interpreted(), domain="ball:1").run([[1.0]], [1.0])
    assert "GradientRule" not in str(caught.value)
    assert "Lesson(rule)" not in str(caught.value)


class Undecorated(rue.Loss):
    lipschitz = 1.0

    def value(self, p, y):
        return abs(p - y)

    def slope(self, p, y):
        return 1.0 if p > y else -1.0


def test_a_loss_without_the_decorator_is_refused_when_built():
    with pytest.raises(SettingsError, match=r"rue\.parameter"):
        rue.OGD(loss=Undecorated(), domain="ball:1")


@rue.parameter
class Clips(OwnHinge):
    def clip(self, z):
        return min(1.0, max(-1.0, z))

    def slope(self, p, y):
        return self.clip(-y) if y * p <= 1.0 else 0.0


def test_a_helper_method_with_a_name_of_rues_and_other_arguments():
    found = rue.OGD(loss=Clips(), domain="ball:1", step="fixed:0.1").run([[1.0], [2.0], [1.0]], [1.0, -1.0, 1.0])
    w, wanted = np.zeros(2), []
    for x, y in zip(([1.0, 1.0], [1.0, 2.0], [1.0, 1.0]), (1.0, -1.0, 1.0), strict=True):
        p = float(w @ x)
        wanted.append(p)
        w -= 0.1 * Clips().slope(p, y) * np.array(x)
        w /= max(1.0, np.linalg.norm(w))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("loss", [rue.Square(), rue.Huber(1.0)], ids=repr)
def test_a_range_of_length_zero_asks_for_no_division(loss):
    for rate in (loss.exp_concave(1.0, 1.0), loss.mixable(1.0, 1.0)):
        assert rate is None or rate > 0.0


@rue.parameter
class Sinks(rue.Loss):
    def value(self, p, y):
        return (p - y) ** 2 - 100.0

    def slope(self, p, y):
        return 2.0 * (p - y)


@rue.parameter
class Boasts(rue.Loss):
    lipschitz = 1.0

    def value(self, p, y):
        return (p - y) ** 2

    def slope(self, p, y):
        return 2.0 * (p - y)


@rue.parameter
class BendsFarOut(rue.Loss):
    def value(self, p, y):
        return min(abs(p - y), 100.0)

    def slope(self, p, y):
        if abs(p - y) > 100.0:
            return 0.0
        return 1.0 if p > y else -1.0


@pytest.mark.parametrize(
    ("loss", "words"),
    [(Sinks(), "say nonnegative = False"), (Boasts(), "more than its lipschitz"), (BendsFarOut(), "not convex")],
)
def test_a_false_fact_is_refused_because_certificates_rest_on_it(loss, words):
    with pytest.raises(SettingsError, match=words):
        rue.OGD(loss, "ball:1")
    with pytest.raises(SettingsError, match=words):
        rue.certify(np.eye(2), [1.0, 2.0], [0.0, 0.0], loss=loss, radius=1)


@pytest.mark.parametrize("loss", [rue.Quantile(0.9), rue.Quantile(0.05), rue.Absolute(), rue.Square()], ids=repr)
def test_closed_implicit_steps_are_those_of_the_bisection(loss):
    """Where an implicit step arrives minimises a·ℓ(q, y) + ½(q − p)², and is what the base class finds by halving."""
    rng = np.random.default_rng(0)
    for p, y, a in zip(rng.normal(size=300), rng.normal(size=300), rng.exponential(size=300) ** 3, strict=True):
        q = loss.prox(p, y, a)
        assert q == pytest.approx(rue.Loss.prox(loss, p, y, a), abs=1e-12 * (1.0 + abs(p) + abs(y) + a))
        aim = a * loss.value(q, y) + 0.5 * (q - p) ** 2
        for other in (p, y, q + 1e-4, q - 1e-4, *rng.normal(size=5)):
            assert aim <= a * loss.value(other, y) + 0.5 * (other - p) ** 2 + 1e-12
    assert loss.prox(1.0, 1.0, 0.7) == 1.0
    assert loss.prox(-2.0, 3.0, 0.0) == -2.0
