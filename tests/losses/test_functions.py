"""`convexity`: the modulus it finds against what is known, for losses, functions of a point, and other norms."""

import math

import numpy as np
import pytest

import rue

A = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]])


def square(w):
    return 0.5 * w @ w


# Over what is known: the smallest ‖v‖₂²/‖v‖² over directions v, which random pairs come near to from above.
@pytest.mark.parametrize(
    ("norm", "d", "known"), [(2, 3, 1.0), (1, 1, 1.0), (math.inf, 3, 1.0), (1, 2, 0.5), (1.5, 1, 1.0)]
)
def test_half_the_square_in_several_norms(norm, d, known):
    found = rue.convexity(square, lambda w: w, d=d, norm=norm, trials=2000)
    assert found.convex
    assert known - 1e-6 <= found.modulus <= known * 1.02
    assert found.strongly(known)
    assert not found.strongly(1.05 * known)


def test_a_quadratic_is_as_strongly_convex_as_its_smallest_eigenvalue():
    least = float(np.linalg.eigvalsh(A)[0])
    found = rue.convexity(lambda w: 0.5 * w @ A @ w, lambda w: A @ w, d=3, trials=3000)
    assert least - 1e-9 <= found.modulus <= 1.02 * least
    assert found.strongly(least)
    # The criterion f − (α/2)‖x‖² convex says the same.
    for alpha, convex in ((least, True), (1.05 * least, False)):
        assert rue.convexity(lambda w: 0.5 * w @ A @ w, d=3, trials=3000, less=alpha).convex is convex


def test_entropy_on_the_simplex_is_strongly_convex_in_the_first_norm():
    """Pinsker's inequality; it is sharp where both points lie near the middle of two coordinates."""

    def entropy(w):
        return float(np.sum(w * np.log(np.maximum(w, 1e-300))))

    found = rue.convexity(entropy, d=2, domain="simplex", norm=1, trials=4000)
    assert found.strongly(1.0)
    assert found.modulus < 1.05
    assert not rue.convexity(entropy, d=2, domain="simplex", norm=1, trials=4000).strongly(1.1)


@pytest.mark.parametrize(
    ("loss", "known"),
    [(rue.Square(), 2.0), (rue.Hinge(), 0.0), (rue.Logistic(), 0.0), (rue.Huber(0.5), 0.0), (rue.Poisson(), 0.0)],
    ids=repr,
)
def test_losses(loss, known):
    found = rue.convexity(loss)
    assert found.convex
    assert found.counterexample is None
    assert found.modulus == pytest.approx(known, abs=1e-3)
    assert rue.convexity(loss, less=known).convex
    assert not rue.convexity(loss, less=known + 0.05).convex


def test_a_loss_of_ones_own():
    @rue.parameter
    class Own(rue.Loss):
        def value(self, p, y):
            return abs(p - y) + 0.15 * (p - y) ** 2

        def slope(self, p, y):
            return math.copysign(1.0, p - y) + 0.3 * (p - y)

    found = rue.convexity(Own())
    assert found.modulus == pytest.approx(0.3, rel=1e-3)
    assert (found.strongly(0.3), found.strongly(0.31)) == (True, False)
    assert "strongly with μ up to 0.3 with respect to ‖·‖_2" in str(found)


@pytest.mark.parametrize(
    "f", [rue.ZeroOne(), lambda w: -float(w @ w), lambda w: math.sin(w[0]), lambda w: float(np.prod(w))]
)
def test_what_is_not_convex_is_refuted_by_a_pair(f):
    found = rue.convexity(f, d=1 if isinstance(f, rue.Loss) else 2)
    assert not found.convex
    assert found.modulus < 0
    x, y = found.counterexample
    value = (lambda p: max(f.value(float(p[0]), s) for s in (-1.0, 1.0))) if isinstance(f, rue.Loss) else f
    shares = np.linspace(0.01, 0.99, 99)
    if not isinstance(f, rue.Loss):  # it is one indeed
        assert any(value(s * x + (1 - s) * y) > s * value(x) + (1 - s) * value(y) for s in shares)
    assert str(found).startswith("not convex: the inequality fails between")


def test_a_wrong_subgradient_is_noticed():
    assert not rue.convexity(square, lambda w: 1.2 * w, d=2).convex
    assert rue.convexity(square, lambda w: w, d=2).convex


def test_functions_may_change_what_they_are_given():
    """`w *= 2` in f moved the points that were compared, and a convex function was refuted."""

    def f(w):
        w *= 2.0
        return float(w @ w) / 8.0

    def gradient(w):
        w += 0.0
        return w

    found = rue.convexity(f, gradient, d=2)
    assert found.convex
    assert found.modulus == pytest.approx(1.0, abs=1e-6)


def test_a_loss_is_tried_at_every_label():
    """Convex at the label 1 and at no other."""

    @rue.parameter
    class OneSided(rue.Loss):
        convex = True

        def value(self, p, y):
            return y * p * p

        def slope(self, p, y):
            return 2.0 * y * p

    assert not rue.convexity(OneSided()).convex


def test_a_spec_is_the_loss_it_names():
    assert rue.convexity("square").modulus == rue.convexity(rue.Square()).modulus


def test_indicators_are_convex_just_when_their_sets_are():
    indicator = rue.Indicator(rue.Ball(2)).value
    assert rue.convexity(indicator, d=2).convex
    assert not rue.convexity(lambda w: 0.0 if 1 <= w @ w <= 4 else math.inf, d=2, trials=2000).convex


def test_on_a_set_only():
    assert not rue.convexity(lambda w: float(w[0] ** 3)).convex
    assert rue.convexity(lambda w: float(w[0] ** 3), domain="orthant").convex
    assert rue.convexity(lambda w: float(w[0] ** 3), domain="interval:1,2").strongly(6.0)


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        ((3.0,), {}, "convexity: f must be a rue.Loss or a function of the point, not 3.0."),
        ((square,), {"norm": 0.5}, "convexity: norm must be a number p ≥ 1, or math.inf, not 0.5."),
        ((square,), {"domain": 3}, "convexity: domain must be a set such as rue.Ball(1), or a spec, not 3."),
        ((lambda w: math.inf,), {}, "convexity: f is +∞ wherever it was tried, or the set a single point"),
        ((square,), {"domain": "interval:1,1"}, "convexity: f is +∞ wherever it was tried, or the set a single point"),
        (
            (square,),
            {"domain": "interval:0,1", "d": 3},
            "convexity: Box(lower=0.0, upper=1.0, coordinates=1) has 1 coo",
        ),
        ((square,), {"trials": 0}, "convexity: trials must be a whole number ≥ 1, not 0."),
        ((square,), {"d": 1.5}, "convexity: d must be a whole number ≥ 1, not 1.5."),
        ((square,), {"seed": -1}, "convexity: seed must be a whole number ≥ 0, not -1."),
        ((square,), {"less": math.nan}, "convexity: less must be a finite number, not nan."),
        ((rue.Hinge,), {}, "convexity: f must be a rue.Loss or a function of the point, not"),
        ((lambda w: w,), {"d": 2}, "convexity: f must return one number, not an ndarray of shape (2,)."),
        ((lambda w: None,), {}, "convexity: f must return one number, not None."),
        ((square, 3), {}, "convexity: subgradient must be a function of the point, not 3."),
        ((square, lambda w: 2.0), {"d": 2}, "convexity: subgradient must return 2 finite numbers; at ["),
        ((square, lambda w: math.nan * w), {"d": 2}, "convexity: subgradient must return 2 finite numbers; at ["),
        ((lambda w: math.nan,), {}, "convexity: f is nan at"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, settings, words):
    with pytest.raises(rue.SettingsError) as refused:
        rue.convexity(*arguments, **settings)
    assert str(refused.value).startswith(words)
