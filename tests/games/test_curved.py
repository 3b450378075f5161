"""Rounds that tell their strong convexity (Theorem 4.7 by the round), and the same function in every round."""

import numpy as np
import pytest
from scipy.optimize import minimize

import rue

T, D = 80, 3


class Parabolas(rue.Opponent):
    """ℓ_t(w) = (μ_t/2)‖w − z_t‖² + ⟨c_t, w⟩, with a μ_t that the round tells."""

    d = D

    def __init__(self, mu, seed=0, told=1.0):
        rng = np.random.default_rng(seed)
        self.mu, self.told = np.asarray(mu, dtype=float), told
        self.Z, self.C = rng.normal(size=(len(mu), D)), rng.normal(size=(len(mu), D))

    def value(self, i, w):
        return self.mu[i] / 2 * (w - self.Z[i]) @ (w - self.Z[i]) + self.C[i] @ w

    def gradient(self, i, w):
        return self.mu[i] * (w - self.Z[i]) + self.C[i]

    def begin(self, setting):
        def reveal(move):
            i = move.t - 1
            mu = None if self.told is None else self.told * self.mu[i]
            return rue.ConvexRound(lambda w: self.value(i, w), lambda w: self.gradient(i, w), mu)

        return reveal

    def best(self, U):
        """min over the ball of Σ ℓ_t: a parabola, so the mean of its pieces, moved back onto the ball."""
        B = self.mu.sum()
        u = (self.mu @ self.Z - self.C.sum(axis=0)) / B
        u = u * min(1.0, U / np.linalg.norm(u))
        return sum(self.value(i, u) for i in range(len(self.mu)))


def varying(seed):
    rng = np.random.default_rng(seed)
    mu = np.where(rng.random(T) < 0.3, 0.0, 3.0 * rng.random(T))
    mu[0] = 0.4
    return mu


@pytest.mark.parametrize("seed", range(4))
def test_the_step_is_one_over_the_sum_of_the_curvatures(seed, interpreted):
    mu, U = varying(seed), 2.0
    opponent = Parabolas(mu, seed)
    game = rue.play(rue.OGD("linear", f"ball:{U}", "strong:5"), opponent, T)  # σ = 5 is not what the rounds tell
    w, points, squares = np.zeros(D), [], []
    for t in range(T):
        points.append(w)
        g = opponent.gradient(t, w)
        squares.append(g @ g)
        w = w - g / mu[: t + 1].sum()
        w = w * min(1.0, U / np.linalg.norm(w))
    np.testing.assert_allclose(game.points, points, atol=1e-12)
    value = 0.5 * (np.array(squares) / np.cumsum(mu)).sum()
    (bound,) = game.bounds
    assert (bound.theorem, bound.holds) == ("B8", True)
    assert bound.value == pytest.approx(value)
    regret = game.loss - opponent.best(U)
    assert regret <= value
    low, high = game.regret_interval
    assert low - 1e-9 <= regret <= high + 1e-9
    assert high == pytest.approx(regret)  # of parabolas D2 is the regret
    assert high <= value + 1e-9


def test_rounds_that_tell_nothing_are_stepped_by_sigma(interpreted):
    opponent = Parabolas(np.ones(T), told=None)
    game = rue.play(rue.OGD("linear", "ball:2", "strong:5"), opponent, T)
    w = np.zeros(D)
    for t in range(3):
        np.testing.assert_allclose(game.points[t], w, atol=1e-12)
        w = w - opponent.gradient(t, w) / (5 * (t + 1))
        w = w * min(1.0, 2 / np.linalg.norm(w))


def test_other_steps_do_not_care(interpreted):
    told, silent = (
        rue.play(rue.OGD("linear", "ball:2", "sqrt:0.5"), Parabolas(np.ones(T), told=told), T) for told in (1.0, None)
    )
    assert (told.points == silent.points).all()


def test_a_round_that_tells_too_much_is_refused(interpreted):
    with pytest.raises(rue.DataError, match=r"below the parabola .* that the loss is so strongly convex"):
        rue.play(rue.OGD("linear", "ball:2", "strong:1"), Parabolas(np.ones(T), told=1.5), T)


@pytest.mark.parametrize("mu", [-1.0, np.inf, "much"])
def test_what_is_no_curvature_is_refused(mu, interpreted):
    class Odd(rue.Opponent):
        d = 1

        def begin(self, setting):
            return lambda move: rue.ConvexRound(lambda w: w @ w, lambda w: 2 * w, mu)

    with pytest.raises(rue.DataError, match="round 1: strongly_convex must be a finite number ≥ 0, or None, not"):
        rue.play(rue.OGD("linear", "ball:2", "strong:1"), Odd(), 3)


def test_the_first_round_must_be_strongly_convex(interpreted):
    with pytest.raises(rue.DataError, match="round 1: its strongly_convex is 0, but the step 1/Σμ_i needs μ_1 > 0"):
        rue.play(rue.OGD("linear", "ball:2", "strong:1"), Parabolas(np.zeros(T)), T)


# The same function in every round: gradient descent.

A = np.array([[3.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]])
b = np.array([1.0, -2.0, 4.0])


def F(w):
    return 0.5 * w @ A @ w - b @ w


def gradient(w):
    return A @ w - b


@pytest.mark.parametrize(("domain", "U"), [("ball:2", 2.0), ("reals", np.inf)])
def test_it_is_projected_gradient_descent(domain, U, interpreted):
    game = rue.play(rue.OGD("linear", domain, "fixed:0.2"), rue.SameFunction(F, gradient, d=3), 200)
    w = np.zeros(3)
    for t in range(200):
        np.testing.assert_allclose(game.points[t], w, atol=1e-9)
        w = w - 0.2 * gradient(w)
        w = w * min(1.0, U / np.linalg.norm(w))
    constraint = {"type": "ineq", "fun": lambda w: 4.0 - w @ w}
    least = minimize(F, np.zeros(3), jac=gradient, constraints=[constraint] if np.inf > U else []).fun
    assert F(game.points[-1]) == pytest.approx(least, abs=1e-5)
    assert F(game.points.mean(axis=0)) - least <= game.regret_interval[1] / 200 + 1e-9  # Jensen


def test_its_step_by_theory_and_its_strong_convexity(interpreted):
    mu = float(np.linalg.eigvalsh(A)[0])
    game = rue.play(rue.OGD("linear", "ball:2", "strong:1"), rue.SameFunction(F, gradient, 3, None, mu), 100)
    assert game.points[1] == pytest.approx(b / mu * min(1.0, 2.0 / np.linalg.norm(b / mu)))
    assert game.bounds[0].holds
    by_theory = rue.play(rue.OGD("linear", "ball:2"), rue.SameFunction(F, gradient, 3, lipschitz=12.0), 100)
    assert by_theory.points[1] == pytest.approx(b * np.sqrt(2) * 2 / 12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((3.0, gradient), "SameFunction: value and subgradient must be functions of the point, not 3.0 and "),
        ((F, gradient, 0), "SameFunction: d must be a whole number, at least 1, not 0."),
        ((F, gradient, 3, -1.0), "SameFunction: lipschitz must be positive and finite, not -1.0."),
        ((F, gradient, 3, "L"), "SameFunction: lipschitz must be positive and finite, not 'L'."),
    ],
)
def test_a_function_that_is_none_is_refused(arguments, words):
    with pytest.raises(rue.SettingsError) as refused:
        rue.SameFunction(*arguments)
    assert str(refused.value).startswith(words)


def test_a_concave_function_is_refused_though_the_learner_never_moves():
    """−‖w‖² has gradient 0 at w_1 = 0: the learner stood still, and its regret was reported as 0."""
    concave = rue.SameFunction(lambda w: -float(w @ w), lambda w: -2.0 * w, d=2)
    with pytest.raises(rue.DataError, match=r"round 1: SameFunction\(d=2.*gives a subgradient that is none: at"):
        rue.play("ogd:domain=ball:1", concave, 10)
