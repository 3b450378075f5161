"""Q1 to Q5: the protocol and its quantities."""

from __future__ import annotations

import numpy as np

from rue.games import ConvexRound, Move, Opponent, Setting, play
from rue.games.opponents import Reveal
from rue.learners import OGD, Perceptron
from rue.proofs.base import Comparison, Outcome, theorem, worst
from rue.proofs.data import Given, classes, descent, hinge, in_ball, streams
from rue.regret import best_in_hindsight
from rue.runs.learn import learn
from rue.steps import Sqrt

__all__ = ["Q1", "Q2", "Q3", "Q4", "Q5"]


def _slope(p: float, y: float) -> float:
    return -y if y * p <= 1.0 else 0.0


@theorem(
    "sequential risk = (1/T) Σ ℓ_t(w_t), each loss taken before the update that uses that example",
    source="notes 000, 'Sequential risk and regret'; 003, 'sequential risk'; 004, 'rischio sequenziale'",
)
def Q1(rng: np.random.Generator) -> Outcome:
    """Compared with descent written out; scoring after the update would flatter."""
    T, eta, U = 400, 0.7, 2.0
    X, y = classes(rng, T)
    run = learn(X, y, learner=OGD("hinge", f"ball:{U}", Sqrt(eta), intercept=False))
    p, points = descent(X, y, _slope, lambda t: eta / t**0.5, U)
    after = np.append(np.einsum("td,td->t", X[:-1], points[1:]), run.learner.predict(X[-1]))
    words = (
        f"OGD learnt {T} examples, and its risk is compared with that of descent written out, each example scored "
        "before it is learnt; scored afterwards, the same points would look better than they are."
    )
    return words, [
        Comparison("sequential risk", run.risk, "=", float(np.maximum(0.0, 1.0 - y * p).mean())),
        Comparison("the mean loss after the updates", float(np.maximum(0.0, 1.0 - y * after).mean()), "<", run.risk),
    ]


@theorem(
    "regret against u: R_T(u) = Σ ℓ_t(w_t) − Σ ℓ_t(u); the notes also divide it by T",
    source="notes 000 and 003, 'Our goal is to control the regret'; 001, section 15.3; 002, 'What is a winning "
    "strategy?'",
)
def Q2(rng: np.random.Generator) -> Outcome:
    """Of a game of linear losses, against many points, from the points played."""
    T, d = 300, 3
    G = rng.normal(size=(T, d))
    game = play(OGD("linear", "ball:2", Sqrt(0.5)), Given(G), T)
    points = in_ball(rng, d, 2.0, 50)
    sums = [float(np.sum(np.einsum("td,td->t", G, game.points - u))) for u in points]
    words = (
        f"OGD played {T} random linear rounds; its regret against {len(points)} points u is compared with "
        "Σ⟨g_t, w_t − u⟩ over the points it played, and divided by T with the difference of the mean losses."
    )
    return words, [
        worst("R_T(u)", "=", ((game.regret_against(u), total) for u, total in zip(points, sums, strict=True))),
        worst(
            "R_T(u)/T",
            "=",
            ((game.regret_against(u) / T, float(np.mean(game.losses) - np.mean(G @ u))) for u in points),
        ),
    ]


@theorem(
    "regret: R_T = Σ ℓ_t(w_t) − inf_{u∈K} Σ ℓ_t(u); it may be negative, and the infimum may not be attained",
    source="notes 000 and 003, definition of regret; 002, 'What is “winning strategy”?', Example 3.4 (an infinite "
    "minimiser)",
    misprint="001 writes min … =: u* for a point: it is the argmin. 004 wants the difference of the mean losses to be "
    "o(1): it is at most o(1), for regret may be negative.",
)
def Q3(rng: np.random.Generator) -> Outcome:
    """The infimum against a grid of points, a stream with negative regret, and one without a minimiser."""
    T, U = 200, 2.0
    X, y = classes(rng, T, 2)
    best = best_in_hindsight(X, y, loss="hinge", radius=U, intercept=False)
    radii, angles = np.meshgrid(np.linspace(0.0, U, 120), np.linspace(0.0, 2.0 * np.pi, 240))
    grid = np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=-1).reshape(-1, 2)
    least = float(np.maximum(0.0, 1.0 - y * (grid @ X.T)).sum(axis=1).min())
    changing = np.where(np.arange(T) < T // 2, 1.0, -1.0)
    run = learn(np.ones((T, 1)), changing, learner=OGD("hinge", f"ball:{U}", Sqrt(4.0), intercept=False))
    still = best_in_hindsight(np.ones((T, 1)), changing, loss="hinge", radius=U, intercept=False)
    separable = best_in_hindsight([[1.0], [-2.0]], [1, -1], loss="logistic", intercept=False)
    words = (
        f"The least hinge loss of {T} examples in a ball lies in a certified interval, below that of {len(grid):,} "
        "points of a grid; a learner that follows a change beats every fixed point, so its regret is negative; and on "
        "separable examples no point of ℝ attains the infimum 0 of the logistic loss."
    )
    return words, [
        Comparison("lower end of inf Σℓ_t(u)", best.at_least, "≤", least),
        Comparison("upper end of inf Σℓ_t(u)", best.value, "≤", least),
        Comparison("width of the interval", best.gap, "≤", 1e-5 * least),
        Comparison("regret of the learner that follows", run.loss - still.at_least, "<", 0.0),
        Comparison("an infimum attained (1) or not (0)", float(separable.attained), "=", 0.0),
        Comparison("the infimum, from above", separable.value, "≤", 1e-3),
    ]


@theorem(
    "mistakes: M_T = Σ 1{y_t⟨w_t, x_t⟩ ≤ 0}; a zero margin is a mistake",
    source="notes 000, 'A mistake bound for the Perceptron algorithm'; 003, after equation (9); 004, first display",
    misprint="003 counts 1{… < 0} in one sum: it is ≤ 0 throughout. 001 takes a convex loss of sign(⟨w,x⟩): the loss "
    "takes ⟨w,x⟩.",
)
def Q4(rng: np.random.Generator) -> Outcome:
    """Counted again, and the zero margins separately."""
    X, y = classes(rng, 300)
    X[::7] = 0.0
    run = learn(X, y, learner=Perceptron(intercept=False))
    z = y * run.predictions
    words = (
        "The Perceptron learnt 300 examples, every seventh of them empty, so that its margin is 0; w_1 = 0 errs on the "
        "first as well. The count printed with < 0 leaves these out."
    )
    return words, [
        Comparison("mistakes", float(run.mistakes or 0), "=", float(np.sum(z <= 0.0))),
        Comparison("mistakes as printed in 003, with < 0", float(np.sum(z < 0.0)), "<", float(run.mistakes or 0)),
        Comparison("zero margins among them", float(np.sum(z == 0.0)), "≥", float(len(X[::7]))),
    ]


class _Far(Opponent):
    """The distance to a point that is chosen far from where the learner stands."""

    d, lipschitz = 3, 1.0

    def begin(self, setting: Setting) -> Reveal:
        def reveal(move: Move) -> ConvexRound:
            z = setting.rng.normal(size=3)
            z = z if float(z @ move.point) < 0.0 else -z

            def value(w: np.ndarray) -> float:
                return float(np.linalg.norm(w - z))

            return ConvexRound(value, lambda w: (w - z) / max(value(w), 1e-300))

        return reveal


class _Hinges(Opponent):
    """Examples under the hinge loss, revealed as functions of the point."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        self.X, self.y, self.d = X, y, X.shape[1]

    def begin(self, setting: Setting) -> Reveal:
        def reveal(move: Move) -> ConvexRound:
            x, y = self.X[move.t - 1], self.y[move.t - 1]
            return ConvexRound(
                lambda w: max(0.0, 1.0 - y * float(x @ w)), lambda w: -y * x if y * float(x @ w) <= 1.0 else 0.0 * x
            )

        return reveal


@theorem(
    "the round in general: play w_t ∈ K; a convex ℓ_t is revealed by an adversary that may have seen w_t; pay "
    "ℓ_t(w_t); update from a subgradient. Linear prediction is the case ℓ_t(w) = ℓ(⟨w, x_t⟩, y_t)",
    source="notes 002, '(Projected) Online Gradient Descent' and 'Projected Online Subgradient Descent'; 000 and 003, "
    "the protocol",
    misprint="002 writes η in the subgradient step: it is η_t.",
)
def Q5(rng: np.random.Generator) -> Outcome:
    """Rounds of one's own against an adversary that looks, and examples played as functions of the point."""
    T, U = 300, 2.0
    game = play(OGD("linear", f"ball:{U}", Sqrt(U)), _Far(), T, seed=int(rng.integers(1 << 30)))
    X, y = streams(rng, T, 3)[2]
    learner = OGD("hinge", f"ball:{U}", Sqrt(0.7), intercept=False)
    run = learn(X, y, learner=learner)
    same = play(OGD("linear", f"ball:{U}", Sqrt(0.7)), _Hinges(X, y), T)
    difference = float(np.abs(np.einsum("td,td->t", X, same.points) - run.predictions).max())
    u = in_ball(rng, 3, U, 1)[0]
    words = (
        f"{T} rounds ‖w − z_t‖, z_t chosen after w_t was seen, cost OGD no more than B3 allows; and hinge losses of "
        f"{T} examples, revealed as functions of w, led it through the same points as the examples themselves."
    )
    return words, [
        Comparison("regret of the distances, from above", game.regret_interval[1], "≤", 3.0 * U * T**0.5),
        Comparison("largest difference of predictions", difference, "≤", 1e-12),
        Comparison("loss", same.loss, "=", run.loss),
        Comparison("loss of another point", same.loss_of(u), "=", float(hinge(X, y, u).sum())),
    ]
