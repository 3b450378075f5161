"""C1 to C7: lower bounds and bad cases, as opponents to play against."""

from __future__ import annotations

import itertools
import math

import numpy as np

from rue.games import (
    AbsoluteAdversary,
    FlipFlop,
    Game,
    MarginAdversary,
    NumberFromDistribution,
    NumberGuessing,
    OrthogonalAdversary,
    RandomSigns,
    play,
    play_many,
)
from rue.learners import OGD, AdaptiveOGD, FollowTheLeader, Perceptron
from rue.proofs.base import Comparison, Outcome, theorem, worst
from rue.proofs.data import Given
from rue.regret.bounds.perceptron import separable_bound
from rue.steps import Horizon, Sqrt, Strong

__all__ = ["C1", "C2", "C3", "C4", "C5", "C6", "C7"]


@theorem(
    "margin adversary: n ≤ d basis vectors, γ = 1/√n, label = minus the learner's sign: n mistakes from any "
    "deterministic learner, on data separable with margin γ by a unit vector",
    source="notes 001, Theorem 15.1",
    misprint="001 prints n = ⌈1/γ²⌉ with γ²n ≤ 1: it is ⌊1/γ²⌋, unless 1/γ² is whole.",
)
def C1(rng: np.random.Generator) -> Outcome:
    """Two learners, and a margin for which the printed number is impossible."""
    mistakes, margins = [], []
    for n in (1, 7, 25):
        for learner in (Perceptron(), OGD("hinge", "ball:2", Sqrt(float(rng.random()) + 0.1))):
            game = play(learner, MarginAdversary(n, n + 2), n)
            mistakes.append((float(game.mistakes or 0), float(n)))
            examples = np.array([part.x for part in game.rounds])
            margins.append((float((game.labels * (examples @ game.witness)).min()), 1.0 / math.sqrt(n)))
            margins.append((float(np.linalg.norm(game.witness)), 1.0))
    gamma = 0.6
    n = math.ceil(1.0 / gamma**2)
    widest = 1.0 / float(np.linalg.norm(separable_bound(np.eye(n), np.ones(n), intercept=False).comparator))
    words = (
        "The Perceptron and OGD erred on every one of 1, 7 and 25 basis vectors, which a unit vector separates with "
        f"margin 1/√n. For γ = 0.6 the printed number is ⌈1/γ²⌉ = {n}: {n} basis vectors have no margin above "
        f"{widest:.4f}, and by B2 the Perceptron makes at most 1/γ² = {1.0 / gamma**2:.3g} mistakes on any data of "
        "that margin."
    )
    return words, [
        worst("mistakes", "≥", mistakes),
        worst("margin and norm of the separator", "=", margins),
        Comparison("widest margin of ⌈1/γ²⌉ basis vectors against γ = 0.6", widest, "<", gamma),
        Comparison("the printed ⌈1/γ²⌉ against B2's limit 1/γ²", float(n), ">", 1.0 / gamma**2),
        Comparison("⌊1/γ²⌋ against the same", float(math.floor(1.0 / gamma**2)), "≤", 1.0 / gamma**2),
    ]


@theorem(
    "orthogonal adversary, linear losses on the ball, d ≥ 2, sees w_t: g_t ⟂ Σ_{i<t} g_i, ‖g_t‖ = L, ⟨g_t, w_t⟩ ≥ 0: "
    "regret ≥ U·L·√T = ½·D·L·√T against every learner",
    source="notes 002, Theorem 5.1",
    misprint="002, Theorem 5.1 claims (LD/2)√T for every V: it is attained on a ball with d ≥ 2, and false on a "
    "segment (C3).",
)
def C2(rng: np.random.Generator) -> Outcome:
    """Four learners, in few dimensions and in more."""
    T, U, L = 600, 2.0, float(rng.random()) + 0.5
    pairs, sums = [], []
    for d in (2, 5):
        for learner in (
            OGD("linear", f"ball:{U}", Sqrt(math.sqrt(2.0) * U / L)),
            OGD("linear", f"ball:{U}", Horizon(T, G=L)),
            AdaptiveOGD("linear", f"ball:{U}"),
            FollowTheLeader("linear", f"ball:{U}"),
        ):
            game = play(learner, OrthogonalAdversary(d, L), T)
            pairs.append((float(game.regret or math.nan), U * L * math.sqrt(T)))
            sums.append((float(np.linalg.norm(game.gradients.sum(axis=0))), L * math.sqrt(T)))
    words = (
        f"OGD with two steps, adaptive OGD and the leader played {T} rounds in 2 and in 5 dimensions: each had to "
        "regret."
    )
    return words, [worst("regret", "≥", pairs), worst("‖Σg_t‖ against L√T", "=", sums)]


@theorem(
    "random signs on a segment (d = 1, or two far points of any K): expected regret ≥ (√2/4)·D·L·√T, with equality at "
    "T = 2",
    source="notes 002, Theorem 5.1",
    misprint="002, Theorem 5.1 claims (LD/2)√T on every V: on a segment it is false for T ≥ 2, where (√2/4)LD√T is "
    "right.",
)
def C3(rng: np.random.Generator) -> Outcome:
    """All sequences of signs, random ones, and all slopes of a grid against one learner."""
    learner = OGD("linear", "interval:-1,1", Sqrt(1.0))
    exact = []
    for T in (2, 3, 4, 6):
        regrets = [
            play(learner, Given(np.array(signs)[:, None]), T).regret
            for signs in itertools.product((-1.0, 1.0), repeat=T)
        ]
        exact.append((float(np.mean([regret or 0.0 for regret in regrets])), math.sqrt(2.0) / 4.0 * 2.0 * math.sqrt(T)))
    drawn = np.array(
        [play(learner, RandomSigns(), 100, seed=int(seed)).regret for seed in rng.integers(1 << 30, size=100)],
        dtype=float,
    )
    error = 3.0 * float(drawn.std()) / math.sqrt(drawn.size)
    grid = np.linspace(-1.0, 1.0, 11)
    most = max(float(play(learner, Given([[a], [b]]), 2).regret or 0.0) for a, b in itertools.product(grid, grid))
    words = (
        "On [−1, 1], D = 2, L = 1: the mean regret over all sequences of 2, 3, 4 and 6 signs, and over 100 random "
        f"ones of 100. No two slopes of a grid force more than {most:.4g} on OGD with η = 1, where Theorem 5.1 as "
        "printed promises (LD/2)√2 = 1.414."
    )
    return words, [
        worst("expected regret, exactly", "≥", exact),
        Comparison("expected regret at T = 2", exact[0][0], "=", 1.0),
        Comparison(
            "mean regret of 100 rounds, plus three standard errors",
            float(drawn.mean()) + error,
            "≥",
            5.0 * math.sqrt(2.0),
        ),
        Comparison("the most two rounds force, against the printed (LD/2)√T", most, "<", math.sqrt(2.0)),
    ]


@theorem(
    "flip-flop on [−1, 1], slopes −½ at t = 1, +1 at even t, −1 at odd t ≥ 3: FTL pays T − 1 − w_1/2, while u = 0 "
    "pays 0; OGD survives it (T = 1000: 43.9)",
    source="notes 002, 'Failure of FTL'",
    misprint="002 prints z_t = −1 at t = 1, 3, 5, … beside z_1 = −½, and a loss of T: −1 from t = 3 on, and T − 1 − "
    "w_1/2.",
)
def C4(rng: np.random.Generator) -> Outcome:
    """The leader, OGD, and the stream as printed."""
    T = 2 * int(rng.integers(300, 500))
    leader = FollowTheLeader("linear", "interval:-1,1")
    game, ogd = play(leader, FlipFlop(), T), play(OGD("linear", "interval:-1,1"), FlipFlop(), 1000)
    printed = play(leader, Given(np.tile([[-1.0], [1.0]], (T // 2, 1))), T)
    words = (
        f"The leader paid {game.loss:g} in {T} rounds and the point 0 nothing; OGD's regret after 1000 rounds is "
        f"{ogd.regret:.4g}, below its bound. With −1 at t = 1, as printed, the sums return to 0, and the leader pays "
        f"no more than {printed.loss:g}."
    )
    return words, [
        Comparison("loss of the leader", game.loss, "=", T - 1.0 - float(game.points[0, 0]) / 2.0),
        Comparison("loss of u = 0", game.loss_of([0.0]), "=", 0.0),
        Comparison(
            "regret of OGD after 1000 rounds",
            float(ogd.regret or math.nan),
            "≤",
            math.sqrt(2.0) * 2.0 * math.sqrt(1000.0),
        ),
        Comparison("the same, to a tenth", round(float(ogd.regret or math.nan), 1), "=", 43.9),
        Comparison("loss of the leader on the printed stream, against T − 1", printed.loss, "<", T - 1.0),
        Comparison("loss of the leader, against the printed T", game.loss, "<", float(T)),
    ]


@theorem(
    "number guessing, y_t ∈ [0, 1], squares: FTL gets O(ln T), OGD through linearisation O(√T) with the convex step "
    "and O(ln T) with the strongly convex one, which is FTL",
    source="notes 002, 'A Repeated-game Example', Theorem 1.2 and 'From Convex Losses to Linear Losses'",
)
def C5(rng: np.random.Generator) -> Outcome:
    """Three learners, two kinds of numbers."""
    T, logs, roots, difference = 800, [], [], 0.0
    for numbers in ("random", "farthest"):
        seed = int(rng.integers(1 << 30))
        leader = play(FollowTheLeader("square", "interval:0,1"), NumberGuessing(numbers), T, seed=seed)
        same = play(OGD("square", "interval:0,1", Strong(2.0)), NumberGuessing(leader.labels), T)
        convex = play(OGD("square", "interval:0,1"), NumberGuessing(numbers), T, seed=seed)
        logs += [(float(game.regret or math.nan), 1.0 + math.log(T)) for game in (leader, same)]
        roots.append((float(convex.regret or math.nan), math.sqrt(2.0) * 2.0 * math.sqrt(T)))
        difference = max(difference, float(np.abs(same.points - leader.points).max()))
    words = (
        f"{T} numbers, at random and the farthest from the guess: the leader and OGD with step 1/(2t) guess the same "
        "and stay below 1 + ln T; OGD with the convex step stays below √2·D·G·√T (on the farthest numbers it regrets "
        f"{roots[1][0]:.3g}, the leader {logs[2][0]:.3g})."
    )
    return words, [
        worst("regret of the leader and of OGD with 1/(2t)", "≤", logs),
        worst("regret of OGD with the convex step", "≤", roots),
        Comparison("largest difference between the leader and OGD with 1/(2t)", difference, "≤", 1e-9),
    ]


@theorem(
    "guessing a number Y from a distribution on [0, 1] with mean μ and variance σ², squares: E Σ(w_t − Y)² − σ²T = "
    "E Σ(w_t − μ)² ≥ 0, which is 0 for the strategy that plays the mean, and (w_1 − μ)² + σ²(1 + … + 1/(T − 1)) = o(T) "
    "for the leader, who does not know the distribution",
    source="notes 002, 'What is winning strategy?'",
)
def C6(rng: np.random.Generator) -> Outcome:
    """All sequences of five numbers with their probabilities, and many games."""
    T, values = 5, np.array([0.0, 0.5, 1.0])
    chance = rng.dirichlet(np.ones(3))
    drawn = NumberFromDistribution(values, chance)
    mu, price = float(chance @ values), float(chance @ values**2 - (chance @ values) ** 2) * T
    strategies = {
        "mean": lambda past: [mu],
        "leader": FollowTheLeader("square", "interval:0,1"),
        "OGD": OGD("square", "interval:0,1", Sqrt(0.3)),
    }
    expected, excess = {}, {}
    for name, strategy in strategies.items():
        paid, above = 0.0, 0.0
        for sequence in itertools.product(range(3), repeat=T):
            given = "interval:0,1" if name == "mean" else None
            game = play(strategy, NumberGuessing(values[list(sequence)]), T, domain=given)
            weight = float(np.prod(chance[list(sequence)]))
            paid, above = paid + weight * game.loss, above + weight * float(drawn.excess(game)[-1])
            first = float(game.points[0, 0])
        expected[name], excess[name] = paid, above
        if name == "leader":
            leader = (first - mu) ** 2 + price / T * sum(1.0 / s for s in range(1, T))
    many = play_many(lambda past: [mu], drawn, 50, games=200, seed=int(rng.integers(1 << 30)), domain="interval:0,1")
    off = abs(many.loss.mean - drawn.variance * 50) / many.loss.error
    words = (
        f"All {3**T} sequences of {T} numbers from {{0, ½, 1}}, weighted by their probability: playing the mean pays "
        f"σ²T = {price:.4g} on average, the leader {expected['leader']:.4g}, OGD {expected['OGD']:.4g}; and the excess "
        f"is Σ(w_t − μ)². In 200 games of 50 rounds the mean's mean loss is {off:.1f} standard errors from σ²T."
    )
    return words, [
        worst("expected loss against σ²T", "≥", [(paid, price) for paid in expected.values()]),
        Comparison("expected loss of playing the mean", expected["mean"], "=", price),
        worst("expected loss less σ²T against E Σ(w_t − μ)²", "=", [(expected[n] - price, excess[n]) for n in excess]),
        Comparison("the leader's excess", excess["leader"], "=", leader),
        Comparison("σ² of the opponent, times T", drawn.variance * T, "=", price),
        Comparison("distance of the mean loss of 200 games from σ²T, in standard errors", off, "≤", 5.0),
    ]


@theorem(
    "absolute losses abs(y_t − ⟨w, x_t⟩), ‖x_t‖ = X, on the ball of radius U: with abs(y_t) = UX they are linear on "
    "it, and for directions as in C2 every learner has a regret of at least U·X·√T, where B3 allows U·X·√(8T) and the "
    "step U/(X√T) has no more: it cannot be improved upon",
    source="notes 000, after equation (8); 003, after equation (7); 004, after equation (3)",
    misprint="000, 003 and 004 call abs(y − ⟨w, x⟩) linear: it is piecewise linear, and linear on the ball only where "
    "abs(y) ≥ U‖x‖.",
)
def C7(rng: np.random.Generator) -> Outcome:
    """Three learners and one of one's own, in few dimensions and in more; and coins where there is one."""
    T, U, X = 400, 2.0, float(rng.random()) + 0.5
    least, linear, exact, above = [], [], [], []
    for d in (2, 5):
        spot = U * np.eye(d)[0]
        for learner in (
            OGD("absolute", f"ball:{U}", Sqrt(math.sqrt(2.0) * U / X)),
            AdaptiveOGD("absolute", f"ball:{U}"),
            OGD("absolute", f"ball:{U}", Horizon(T, G=X)),
            lambda past, spot=spot: spot * (-1.0) ** len(past),
        ):
            own = f"ball:{U}" if callable(learner) else None
            game = play(learner, AbsoluteAdversary(d, X), T, domain=own)
            least.append((float(game.regret or math.nan), U * X * math.sqrt(T)))
            u = _on_sphere(rng, d, U)
            linear.append((game.loss_of(u), float(np.abs(game.labels).sum()) - float(_signed(game) @ u)))
            if not callable(learner):
                above.append((float(game.regret or math.nan), U * X * math.sqrt(8.0 * T)))
        exact.append(least[-2])
    coins = play_many(OGD("absolute", "ball:1"), AbsoluteAdversary(1), 100, games=60, seed=int(rng.integers(1 << 30)))
    assert coins.regret is not None
    words = (
        f"OGD with two steps, adaptive OGD and a learner that jumps from one end to the other played {T} absolute "
        "losses in 2 and in 5 dimensions: each had to regret U·X·√T, and OGD with the step U/(X√T) regrets no more. On "
        "a segment coins take the place of a third direction. As printed, abs(y − w) at y = 0 would be as large at w "
        "= 0 as on average at ±1."
    )
    return words, [
        worst("regret", "≥", least),
        worst("regret of OGD with U/(X√T)", "=", exact),
        worst("regret of OGD against B3", "≤", above),
        worst("loss of another point, against the linear function", "=", linear),
        Comparison(
            "mean regret on a segment, plus five standard errors",
            coins.regret.mean + 5.0 * coins.regret.error,
            "≥",
            math.sqrt(2.0) / 4.0 * 2.0 * 10.0,
        ),
        Comparison("abs(0 − 0), printed as linear, against the mean of abs(0 ± 1)", abs(0.0), "<", abs(1.0)),
    ]


def _on_sphere(rng: np.random.Generator, d: int, U: float) -> np.ndarray:
    u = rng.normal(size=d)
    return np.asarray(u * (U / np.linalg.norm(u)))


def _signed(game: Game) -> np.ndarray:
    """Σ sign(y_t) x_t."""
    return np.asarray(np.sign(game.labels) @ np.array([part.x for part in game.rounds]))
