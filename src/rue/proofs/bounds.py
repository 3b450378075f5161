"""B1 to B10: upper bounds on mistakes and on regret, on streams that are hostile to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.domains import Simplex
from rue.games import NumberGuessing, OrthogonalAdversary, play
from rue.learners import OGD, SVM, AdaptiveOGD, FollowTheLeader, Learner, Perceptron
from rue.proofs.base import Comparison, Outcome, theorem, worst
from rue.proofs.data import Given, classes, hinge, in_ball, linear_regret, streams
from rue.regret import best_in_hindsight, bounds, perceptron_bound
from rue.regret.bounds.perceptron import separable_bound
from rue.runs.learn import learn
from rue.runs.replay import trace
from rue.steps import Fixed, Sequence, Sqrt, Strong

__all__ = ["B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B9", "B10"]


def _bound(learner: Learner, X: Any, y: Any, name: str) -> tuple[float, float, float]:
    """Loss of a run, and its bounds of an identifier: from the data (if there is one) and in the worst case."""
    seen = trace(learner, X, y)
    values = {bound.form: bound.value for bound in bounds(seen) if bound.theorem == name and bound.met}
    total = float(seen.losses.sum())
    if seen.lambda_:
        total += 0.5 * seen.lambda_ * float(seen.point_squares.sum())
    return total, values.get("data", math.nan), values.get("worst case", math.nan)


@theorem(
    "Perceptron, any stream, every u, with H = Σ[1 − y_t⟨u, x_t⟩]₊ and a = ‖u‖X: M_T ≤ H + a²/2 + a√(H + a²/4) "
    "≤ H + a² + a√H",
    source="notes 000, equation (1) and the display after it; 003 and 004, 'solving for M_T' (the looser form)",
    misprint="000 prints ‖w_M‖‖u‖ ≥ M + Σ[…]₊ and max_{t≤m}: it is M − Σ[…]₊ and max_{t≤T}; the bound is right. 000's "
    "footnote has the hinge's kink at z = 0: it is at 1. 004 has X = max‖∇h_t‖: X ≥ it.",
)
def B1(rng: np.random.Generator) -> Outcome:
    """The smallest bound found, many other u, and the misprinted step of the proof."""
    least, every, right, printed = [], [], [], []
    for X, y in streams(rng, 300):
        run = learn(X, y, learner=Perceptron(intercept=False))
        M, size = float(run.mistakes or 0), float(np.linalg.norm(X, axis=1).max())
        bound = perceptron_bound(X, y, intercept=False)
        least.append((M, bound.value))
        wrong = y * run.predictions <= 0.0
        for u in (bound.comparator, *in_ball(rng, X.shape[1], 3.0, 20)):
            H, a = float(hinge(X, y, u).sum()), float(np.linalg.norm(u)) * size
            every.append((M, H + a * a / 2.0 + a * math.sqrt(H + a * a / 4.0)))
            every.append((every[-1][1], H + a * a + a * math.sqrt(H)))
            length = float(np.linalg.norm(run.learner.point) * np.linalg.norm(u))
            met = float(hinge(X, y, u)[wrong].sum())
            right.append((length, M - met))
            printed.append((length, M + met))
    words = (
        "The Perceptron learnt five streams of 300 examples, most of them not separable: its mistakes stay below the "
        "bound for the best u found and for 20 others each. The proof's printed step ‖w_M‖‖u‖ ≥ M + Σ[…]₊ fails; with "
        "a minus it holds."
    )
    refuted = min(printed, key=lambda pair: pair[0] - pair[1])
    return words, [
        worst("mistakes, for the best u", "≤", least),
        worst("mistakes for every u, and the sharp form against the notes'", "≤", every),
        worst("‖w_M‖‖u‖ ≥ M − Σ[…]₊", "≥", right),
        Comparison("‖w_M‖‖u‖ against the printed M + Σ[…]₊", refuted[0], "<", refuted[1]),
    ]


@theorem(
    "Perceptron, separable: M_T ≤ (‖u‖X)² for any u with all margins ≥ 1",
    source="notes 000, 'the Perceptron convergence theorem'; 003 and 004, the same",
)
def B2(rng: np.random.Generator) -> Outcome:
    """Separable streams, and the one on which it is attained."""
    pairs = []
    for margin in (0.3, 0.1, 0.03):
        X, y = classes(rng, 600, noise=0.0)
        u = rng.normal(size=4)
        u /= np.linalg.norm(u)
        z = X @ u
        X, y = X[np.abs(z) > margin], np.sign(z)[np.abs(z) > margin]
        run = learn(X, y, learner=Perceptron(intercept=False))
        pairs.append((float(run.mistakes or 0), separable_bound(X, y, intercept=False).value))
        pairs.append((pairs[-1][1], 1.0 / margin**2))
    game = play(Perceptron(), "margin:16")
    words = (
        "Streams that a unit vector separates with margin 0.3, 0.1 and 0.03: mistakes stay below the bound for the "
        "widest margin found, which stays below 1/margin²; and the margin adversary attains the bound."
    )
    return words, [
        worst("mistakes, and the bound against 1/margin²", "≤", pairs),
        Comparison("mistakes against the margin adversary, n = 16", float(game.mistakes or 0), "=", 16.0),
    ]


@theorem(
    "A2 on the ball, any η: R_T ≤ 2U²√T/η + G²η√T; with η = √2·U/G: R_T ≤ U·G·√(8T)",
    source="notes 000, equation (8); 003, equation (7); 004, equation (3)",
    misprint="000, 003 and 004 call abs(y − ⟨w,x⟩) linear: it is piecewise linear, and the bound cannot be improved "
    "there either.",
)
def B3(rng: np.random.Generator) -> Outcome:
    """Hostile examples with several η, and an adversary that looks."""
    T, U, pairs, formula = 400, 2.0, [], []
    for X, y in streams(rng, T):
        G = float(np.linalg.norm(X, axis=1).max())
        best = best_in_hindsight(X, y, loss="hinge", radius=U, intercept=False)
        for eta in (math.sqrt(2.0) * U / G, 0.1, 20.0):
            loss, _, value = _bound(OGD("hinge", f"ball:{U}", Sqrt(eta), intercept=False), X, y, "B3")
            pairs.append((loss - best.value, value))
            formula.append((value, (2.0 * U * U / eta + G * G * eta) * math.sqrt(T)))
    game = play(OGD("linear", f"ball:{U}", Sqrt(math.sqrt(2.0) * U)), OrthogonalAdversary(3), 2000)
    words = (
        f"OGD learnt five hostile streams of {T} examples with three steps each, and played 2000 rounds against the "
        "orthogonal adversary: no regret exceeds the bound."
    )
    return words, [
        worst("regret on examples", "≤", pairs),
        worst("rue's value against the formula", "=", formula),
        Comparison("regret in the game", float(game.regret or math.nan), "≤", U * math.sqrt(8.0 * 2000)),
    ]


@theorem(
    "B3 for square loss: abs(y_t) ≤ UX gives G = 4UX², and a regret of at most 8(UX)²√(2/T) per round",
    source="notes 000, after equation (8); 003, after (7); 004, after (3)",
)
def B4(rng: np.random.Generator) -> Outcome:
    """Labels as large as allowed."""
    T, U, pairs, formula = 400, 1.5, [], []
    for X, y in streams(rng, T):
        X = X / np.linalg.norm(X, axis=1).max()
        y = U * y * np.where(rng.random(T) < 0.5, 1.0, rng.random(T))
        best = best_in_hindsight(X, y, loss="square", radius=U, intercept=False)
        G = 4.0 * U
        loss, _, value = _bound(OGD("square", f"ball:{U}", Sqrt(math.sqrt(2.0) * U / G), intercept=False), X, y, "B4")
        pairs.append(((loss - best.value) / T, value / T))
        formula.append((value / T, 8.0 * U**2 * math.sqrt(2.0 / T)))
    words = f"OGD learnt five streams of {T} examples with square loss, X = 1 and labels up to U·X = {U:g}."
    return words, [
        worst("regret per round", "≤", pairs),
        worst("rue's value against the formula", "=", formula),
    ]


@theorem(
    "A3, fixed η: R_T(u) ≤ ‖u − w_1‖²/(2η) + (η/2) Σ‖g_t‖²; with η = D/(L√T): D·L·√T",
    source="notes 002, Lemma 2.23 summed, and Theorem 2.13",
    misprint="002, Theorem 2.13 prints η_t = D/(L√t) beside DL√T: that is for the fixed D/(L√T) (see B6).",
)
def B5(rng: np.random.Generator) -> Outcome:
    """Linear rounds, every u, and an adversary that looks."""
    T, U, pairs = 600, 1.5, []
    tuned = []
    for opponent in (
        Given(rng.normal(size=(T, 3))),
        OrthogonalAdversary(3),
        Given(np.repeat(rng.normal(size=(6, 3)), 100, 0)),
    ):
        for eta in (0.02, 2.0 * U / math.sqrt(T), 0.5):
            game = play(OGD("linear", f"ball:{U}", Fixed(eta)), opponent, T)
            spent = float((game.gradients**2).sum())
            pairs += [
                (game.regret_against(u), float(u @ u) / (2.0 * eta) + eta / 2.0 * spent)
                for u in (*in_ball(rng, 3, U, 20), -U * game.gradients.sum(0) / np.linalg.norm(game.gradients.sum(0)))
            ]
        L = game.gradient_bound
        game = play(OGD("linear", f"ball:{U}", Fixed(2.0 * U / (L * math.sqrt(T)))), opponent, T)
        tuned.append((float(game.regret or math.nan), 2.0 * U * L * math.sqrt(T)))
    words = (
        f"Three opponents, one of which sees the points, {T} linear rounds, three fixed steps: the regret against 21 "
        "points u each, the best one among them, stays below the bound."
    )
    return words, [worst("R_T(u)", "≤", pairs), worst("regret with η = D/(L√T)", "≤", tuned)]


@theorem(
    "A3, non-increasing η_t, diameter D: R_T ≤ D²/(2η_T) + ½ Σ η_t‖g_t‖²; with η_t = D/(L√t): (3/2)·D·L·√T; with "
    "D/(L√(2t)): √2·D·L·√T",
    source="notes 001, section 15.3 (the general sum); 002, Theorem 2.13 (misprinted)",
    misprint="002, Theorem 2.13 prints η_t = D/(L√t) beside DL√T: at T = 2 on a unit equilateral triangle the regret "
    "is 1.5 > √2; the decreasing step gives (3/2)DL√T. 001's proof has ∫_0^T, the sign of 1/η_{t−1} − 1/η_t and "
    "η_{T+1}: it is ∫_1^T, reversed, η_T.",
)
def B6(rng: np.random.Generator) -> Outcome:
    """Random rounds on a triangle, and the two rounds that refute the printed theorem."""
    T, side = 300, math.sqrt(0.5)
    K, far = Simplex(side), -1e3  # the triangle with vertices side·e_j, D = 1; labels far below make rounds linear
    pairs, tuned = [], []
    for X in (rng.normal(size=(T, 3)), np.repeat(rng.normal(size=(6, 3)), T // 6, axis=0)):
        L, t = float(np.linalg.norm(X, axis=1).max()), np.arange(1, T + 1)
        random_steps = np.sort(rng.random(T))[::-1] + 0.01
        for etas, factor in (
            (random_steps, 0.0),
            (1.0 / (L * np.sqrt(t)), 1.5),
            (1.0 / (L * np.sqrt(2.0 * t)), 2.0**0.5),
        ):
            p = learn(X, np.full(T, far), learner=OGD("absolute", K, Sequence(etas), intercept=False)).predictions
            regret = linear_regret(p, X, K.support)
            pairs.append((regret, 1.0 / (2.0 * etas[-1]) + 0.5 * float((etas * (X**2).sum(axis=1)).sum())))
            if factor:
                tuned.append((regret, factor * L * math.sqrt(T)))
    a, b, c = side * np.eye(3)
    G = np.array([a - b, b - c])
    regrets = []
    for etas in ([1.0, math.sqrt(0.5)], [math.sqrt(0.5)] * 2):
        learner = OGD("absolute", K, Sequence([10.0, *etas]), intercept=False)
        at_vertex = learn([b + c - a], [far], learner=learner).learner  # one round that ends at the vertex a
        p = learn(G, [far, far], learner=at_vertex).predictions
        regrets.append(linear_regret(p, G, K.support))
    words = (
        f"Linear rounds on a triangle of diameter 1, {T} random and repetitive ones with three sequences of steps, "
        "stay below the bound. Two rounds along its sides from a vertex, g_1 = a − b and g_2 = b − c, give with the "
        f"printed step D/(L√t) a regret of {regrets[0]:.4g}, more than the printed DL√2; the fixed step keeps it."
    )
    return words, [
        worst("regret", "≤", pairs),
        worst("regret with the tuned steps", "≤", tuned),
        Comparison("two rounds on the triangle, D/(L√t), against the printed DL√T", regrets[0], ">", math.sqrt(2.0)),
        Comparison("the same against (3/2)DL√T", regrets[0], "≤", 1.5 * math.sqrt(2.0)),
        Comparison("the same with the fixed D/(L√T) against DL√T", regrets[1], "≤", math.sqrt(2.0)),
    ]


@theorem(
    "A3 with η_t = 1/t, losses only convex: R_T ≤ (G²/2)(1 + ln T) + (D²/2)T, linear in T, so no guarantee",
    source="notes 001, section 15.3 ('we would be imposing the assumption that η_t = 1/t')",
    misprint="001 prints Σ 1/t ≤ 1 + ∫_0^T: it is ∫_1^T.",
)
def B7(rng: np.random.Generator) -> Outcome:
    """One turn is enough to make the regret grow with T."""
    regrets, pairs = [], []
    for T in (1000, 2000):
        G = np.where(np.arange(T) < T // 3, 1.0, -1.0)[:, None]
        game = play(OGD("linear", "ball:1", Strong(1.0)), Given(G), T)
        regrets.append(float(game.regret or math.nan))
        other = play(OGD("linear", "ball:1", Strong(1.0)), Given(rng.normal(size=(T, 1))), T)
        for one in (game, other):
            square = one.gradient_bound**2
            pairs.append((float(one.regret or math.nan), square / 2.0 * (1.0 + math.log(T)) + 2.0 * T))
    words = (
        "Slopes +1 for a third of the rounds, then −1: the step 1/t is soon too small to turn round, and the regret of "
        f"2000 rounds is {regrets[1] / regrets[0]:.3f} times that of 1000, as a bound linear in T allows."
    )
    return words, [
        worst("regret", "≤", pairs),
        Comparison("regret of 2000 rounds over that of 1000", regrets[1] / regrets[0], "≥", 1.9),
        Comparison("the regret of 1000 rounds, more than any √T bound of B3", regrets[0], ">", math.sqrt(8.0 * 1000)),
    ]


@theorem(
    "A4: R_T ≤ (G²/(2σ))(1 + ln T); in general ½ Σ ‖g_t‖²/Σ_{i≤t} σ_i",
    source="notes 000, last display; 001, end of section 15.3; 002, Theorem 4.7; 003 and 004, last display",
    misprint="003 and 004 print Σ_{t≤T} 1/t ≤ ln(T+1), false at T = 1 (1 > 0.69): it is 1 + ln T. 002, Theorem 4.7 has "
    "ln T, which is 0 at T = 1. 001 prints η_t = 1/α_t and G²/(2α²): it is 1/(αt) and G²/(2α).",
)
def B8(rng: np.random.Generator) -> Outcome:
    """SVMs on hostile streams, and one round that refutes the printed sums."""
    T, lambda_, data, worst_case = 400, 0.1, [], []
    for X, y in streams(rng, T):
        loss, seen, value = _bound(SVM(lambda_, intercept=False), X, y, "B8")
        best = best_in_hindsight(X, y, loss="hinge", lambda_=lambda_, intercept=False)
        data.append((loss - best.value, seen))
        G = 2.0 * float(np.linalg.norm(X, axis=1).max())
        worst_case.append((seen, value))
        worst_case.append((value, G**2 / (2.0 * lambda_) * (1.0 + math.log(T))))
    game = play(OGD("square", "interval:0,1", Strong(2.0)), NumberGuessing([1.0]), 1)
    R, G = float(game.regret or math.nan), game.gradient_bound
    words = (
        f"The SVM learnt five hostile streams of {T} examples: regret ≤ the bound from the gradients seen ≤ the worst "
        f"case. One round (w − 1)² from w_1 = 0, σ = 2, G = 2, has regret {R:g} = G²/(2σ): more than the printed sums "
        "allow."
    )
    return words, [
        worst("regret", "≤", data),
        worst("the bound from the data, and rue's worst case against the formula", "≤", worst_case),
        Comparison("one round against (G²/(2σ))(1 + ln 1)", R, "≤", G * G / 4.0),
        Comparison("one round against the printed (G²/(2σ)) ln(T+1)", R, ">", G * G / 4.0 * math.log(2.0)),
        Comparison("one round against the printed ln T", R, ">", 0.0),
        Comparison("one round against the printed G²/(2α²)", R, ">", G * G / 8.0),
    ]


@theorem(
    "A8: R_T ≤ √2·D·√(Σ‖g_t‖²)",
    source="notes 002, beside Theorem 2.13 ('could choose adaptive η_t', section 4.2.1)",
)
def B9(rng: np.random.Generator) -> Outcome:
    """Rounds of all sizes, and an adversary that looks."""
    T, U, pairs = 600, 2.0, []
    sizes = 10.0 ** rng.uniform(-3, 3, size=(T, 1))
    growing = np.geomspace(1e-3, 1e3, T)[:, None]
    turns = np.where(np.arange(T) < T // 2, 1.0, -1.0)[:, None] * np.ones(3)
    for G in (rng.normal(size=(T, 3)), sizes * rng.normal(size=(T, 3)), growing * turns, turns):
        game = play(AdaptiveOGD("linear", f"ball:{U}"), Given(G), T)
        pairs.append((float(game.regret or math.nan), math.sqrt(2.0) * 2.0 * U * math.sqrt(float((G**2).sum()))))
    game = play(AdaptiveOGD("linear", f"ball:{U}"), OrthogonalAdversary(3), T)
    pairs.append((float(game.regret or math.nan), math.sqrt(2.0) * 2.0 * U * math.sqrt(T)))
    words = (
        f"Five games of {T} linear rounds, with sizes over six orders of magnitude and against the orthogonal "
        "adversary."
    )
    return words, [worst("regret", "≤", pairs)]


@theorem(
    "A7, squares on an interval of length B that holds the labels: R_T = Σ (y_t − w_t)²/t ≤ B²(1 + ln T)",
    source="notes 002, Theorem 1.2 (as O(ln T))",
)
def B10(rng: np.random.Generator) -> Outcome:
    """Random numbers and the farthest ones, at every t."""
    T, exact, most = 500, [], []
    for numbers in ("random", "farthest", [0.0, 1.0], [1.0]):
        game = play(
            FollowTheLeader("square", "interval:0,1"), NumberGuessing(numbers), T, seed=int(rng.integers(1 << 30))
        )
        t = np.arange(1, T + 1)
        sums = np.cumsum((game.labels - game.points[:, 0]) ** 2 / t)
        exact += list(zip(game.regrets, sums, strict=True))
        most += list(zip(game.regrets, 1.0 + np.log(t), strict=True))
    words = (
        f"The leader guessed {T} numbers in four games, at random, the farthest, in turn and all 1; looked at after "
        "every round."
    )
    return words, [
        worst("regret against Σ (y_t − w_t)²/t", "=", exact),
        worst("regret against 1 + ln t", "≤", most),
    ]
