"""B18 to B22: excess risk, stochastic optimisation of a stored set, gradient descent, rounds of varying curvature."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rue.games import ConvexRound, Opponent, SameFunction, Setting, play
from rue.learners import OGD
from rue.proofs.base import Comparison, Outcome, theorem, worst
from rue.proofs.data import hinge, in_ball, population
from rue.regret import best_in_hindsight, excess_always, excess_at_end
from rue.runs.learn import learn
from rue.runs.sampling import minimise
from rue.steps import Fixed, Strong

__all__ = ["B18", "B19", "B20", "B21", "B22"]


def _sampling(share: float, n: int) -> float:
    """Three standard errors of a share of n trials."""
    return 3.0 * math.sqrt(share * (1.0 - share) / n)


class _Tosses:
    """Of two players one loses B and the other nothing, by the toss of a coin: the same risk, and regret by chance."""

    def __init__(self, rng: np.random.Generator, B: float, T: int, n: int) -> None:
        self.differences = B * (2.0 * rng.integers(0, 2, size=(n, T)) - 1.0)
        self.regrets = self.differences.sum(axis=1)


@theorem(
    "risk against a point u fixed beforehand, T fixed, convex loss in [0, B], i.i.d.: with probability ≥ 1 − δ, "
    "Risk(w̄) ≤ R_T(u)/T + Risk(u) + B√(2 ln(1/δ)/T), hence the notes' R_T(u)/T + Risk(u) + 2B√(2 ln(2/δ)/T); with "
    "the regret against a whole set K it holds for the point of least risk in K",
    source="notes 002, Example 3.13 (second half)",
    misprint="002, Example 3.13 has no range: the slack 2√(2 ln(2/δ)/T) must be multiplied by B.",
)
def B18(rng: np.random.Generator) -> Outcome:
    """OGD on draws from a known population, and losses of which everything is chance."""
    n, T, delta, U = 60, 100, 0.1, 2.0
    X, y = population(rng)
    best = best_in_hindsight(X, y, loss="hinge", radius=U, intercept=False)
    least = float(hinge(X, y, best.point).mean())
    failed, excesses = [], []
    for drawn in rng.integers(0, len(y), size=(n, T)):
        learner = OGD("hinge", f"ball:{U}", Fixed(2.0 * U / math.sqrt(T)), average="uniform", intercept=False)
        run = learn(X[drawn], y[drawn], learner=learner)
        excess = float(hinge(X, y, run.learner.average).mean()) - least
        regret = run.loss - float(hinge(X[drawn], y[drawn], best.point).sum())
        failed.append(excess > excess_at_end(regret, T, 1.0 + U, delta).value)
        excesses.append((excess, excess_at_end(run.certificate(U).regret_at_most, T, 1.0 + U, delta).value))
    B, many, few = 21.0, 2000, 50
    tosses = _Tosses(rng, B, few, many)
    chance = np.mean([excess_at_end(R, few, B, delta).value < 0.0 for R in tosses.regrets])
    printed = np.mean(tosses.regrets / few + 2.0 * math.sqrt(2.0 * math.log(2.0 / delta) / few) < 0.0)
    slack = excess_at_end(0.0, T, B, delta).slack or math.nan
    wider = 2.0 * B * math.sqrt(2.0 * math.log(2.0 / delta) / T)
    words = (
        f"OGD learnt {n} streams of {T} draws from 40 examples: the risk of its average, less the least risk in the "
        "ball, stays below what the regret says, and below what the certificate alone says. Where a coin decides "
        f"which of two loses 21, regret is chance: the bound fails in a share of at most δ, the slack printed without "
        f"a range in {printed:.0%}."
    )
    return words, [
        worst("excess risk, against the bound from the run's certificate", "≤", excesses),
        Comparison("share of streams where it fails", float(np.mean(failed)), "≤", delta + _sampling(delta, n)),
        Comparison("the same of chance alone, B = 21", float(chance), "≤", delta + _sampling(delta, many)),
        Comparison("the printed slack, B = 21", float(printed), ">", delta + _sampling(delta, many)),
        Comparison("the slack", slack, "=", B * math.sqrt(2.0 * math.log(1.0 / delta) / T)),
        Comparison("the slack against the notes', times B", slack, "≤", wider),
    ]


@theorem(
    "the same at every t at once: with probability ≥ 1 − δ, for all t, Risk(w̄_t) ≤ R_t(u)/t + Risk(u) + (2B/t) S_t, "
    "S_t that of B14 for the rounds (ℓ_i(w_i) − ℓ_i(u) + B)/(2B); their V_t is at most t/4 + ln(t + 1), whatever u",
    source="none of the notes (Howard, Ramdas, McAuliffe and Sekhon 2021, Theorem 4); compare notes 002, Example 3.13",
)
def B19(rng: np.random.Generator) -> Outcome:
    """How often it fails at some t, and the largest V_t."""
    n, T, delta, B = 300, 400, 0.1, 3.0
    tosses, looked = _Tosses(rng, B, T, n), range(20, T + 1, 20)
    sums = tosses.differences.cumsum(axis=1)
    slacks = {t: excess_always(0.0, t, B, delta).slack or math.nan for t in looked}
    at_end = {t: excess_at_end(0.0, t, B, delta).slack or math.nan for t in looked}
    failed, misused = (
        float(np.mean(np.any([-sums[:, t - 1] / t > slack[t] for t in looked], axis=0))) for slack in (slacks, at_end)
    )
    known = []
    for differences in tosses.differences[:100]:
        value = excess_always(float(differences[:T].sum()), T, B, delta, differences=differences).slack or math.nan
        known.append((value, slacks[T]))
    variances = []
    for rounds in (*np.where(rng.random((50, T)) < rng.random((50, 1)), 1.0, 0.0), np.arange(T) % 2.0):
        t = np.arange(1, T + 1)
        V = np.cumsum((rounds - (0.5 + np.cumsum(rounds) - rounds) / t) ** 2)
        variances += [(V[k], (k + 1) / 4.0 + math.log(k + 2.0)) for k in (0, 1, 9, T - 1)]
    few = excess_always(0.0, 10_000, 1.0, differences=np.zeros(10_000)).slack or math.nan
    words = (
        f"{n} streams of {T} rounds in which regret is chance alone, looked at after every 20: the bound that holds at "
        f"every t fails at some t in a share of {failed:.3f}, B18 looked at so often in {misused:.3f}."
    )
    return words, [
        Comparison("share of streams where it fails at some t", failed, "≤", delta + _sampling(delta, n)),
        Comparison("the same of B18, misused", misused, ">", failed),
        worst("the slack from the differences against that without", "≤", known),
        worst("V_t against t/4 + ln(t + 1)", "≤", variances),
        Comparison("slack where u loses as much in every round, against B18's", few, "<", 0.024),
    ]


@theorem(
    "stochastic optimisation of F(u) = (1/N) Σ ℓ(⟨u, x_i⟩, y_i), examples drawn uniformly, subgradient descent from 0: "
    "E F(Ση_t w_t/Ση_t) ≤ F(u) + (‖u‖² + E Σ‖g_t‖²)/(2Ση_t), g_t the subgradient of η_t·ℓ_t; with η = 1/(R√T), slopes "
    "≤ 1: R/(2√T) + min_u F(u) + R‖u‖²/(2√T), a value that exists where F has no minimum",
    source="notes 002, Examples 3.2, 3.3 and 3.4",
    misprint="002, Example 3.2 prints R(‖x*‖² + 1)/√T: valid but loose (see B11). Example 3.3's bound has Σ‖g_t‖² "
    "where it is an expectation.",
)
def B20(rng: np.random.Generator) -> Outcome:
    """Means over draws from stored sets, one of them separable."""
    X, y = population(rng)
    X = 1.7 * X
    n, T, cases, seen = 30, 150, [], []
    for loss, weighting in (("hinge", "uniform"), ("hinge", "steps"), ("logistic", "uniform")):
        found = [minimise(X, y, loss=loss, rounds=T, weighting=weighting, seed=seed) for seed in range(n)]
        mean = float(np.mean([one.value for one in found]))
        seen.append((mean, float(np.mean([one.seen for one in found]))))
        cases.append((mean, found[0].bound))
    lambda_ = 1.7 / math.sqrt(T)
    regularised = best_in_hindsight(X, y, loss="logistic", lambda_=lambda_, intercept=False)
    u, formula = regularised.point, float(found[0].bound)
    F = float(np.logaddexp(0.0, -y * (X @ u)).mean())
    wanted = 1.7 / (2.0 * math.sqrt(T)) + F + 1.7 * float(u @ u) / (2.0 * math.sqrt(T))
    apart_X, apart_y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    growing = [minimise(apart_X, apart_y, loss="logistic", rounds=rounds, seed=1) for rounds in (100, 2500)]
    norms = [float(abs(one.regularised.point[0])) for one in growing]
    words = (
        f"{n} times {T} draws from 40 examples, hinge and logistic loss, both weightings: the mean of F at the "
        "averages obeys the bound from the gradients seen and the one from R. On a separable set, where logistic loss "
        f"has no minimum, the regularised value does: its point has norm {norms[0]:.2f} for 100 rounds and "
        f"{norms[1]:.2f} for 2500."
    )
    return words, [
        worst("mean of F, against the mean with Σ‖g_t‖²", "≤", seen),
        worst("mean of F, against the bound from R", "≤", cases),
        Comparison("rue's value against the formula, relative", formula / wanted, "=", 1.0),
        worst("F on the separable set", "≤", [(one.value, one.bound) for one in growing]),
        Comparison("the norm for 2500 rounds against that for 100", norms[1], ">", norms[0]),
    ]


@theorem(
    "(projected) gradient descent on a fixed convex F is OGD with the same function each round: F(w̄) − F(u) ≤ "
    "R_T(u)/T, so with η = D/(L√T) at most DL/√T; min_t F(w_t) is no larger",
    source="notes 001, section 15.2 ('Gradient Descent'); 000 and 003, 'Gradient descent is the workhorse'; 004, "
    "'discesa del gradiente'",
    misprint="001 writes u_t − y_t∇F(u_t): the symbol is the step η_t. 004 has ∇ℓ(w_t) > 0 where w_t is no minimum: ≠ "
    "0.",
)
def B21(rng: np.random.Generator) -> Outcome:
    """A piecewise linear function on a ball and a quadratic, against descent written out."""
    T, U, d = 300, 2.0, 3
    X, y = rng.normal(size=(15, d)), rng.normal(size=15)
    moved, excess, regrets = [], [], []
    for power in (1.0, 2.0):
        F, gradient = _residuals(X, y, power)
        L = max(float(np.linalg.norm(gradient(u))) for u in in_ball(rng, d, U, 400)) * 1.5
        game = play(OGD("linear", f"ball:{U}", Fixed(2.0 * U / (L * math.sqrt(T)))), SameFunction(F, gradient, d), T)
        w, written = np.zeros(d), []
        for _ in range(T):
            written.append(w)
            w = w - 2.0 * U / (L * math.sqrt(T)) * gradient(w)
            w = w * min(1.0, U / max(float(np.linalg.norm(w)), 1e-300))
        moved.append((float(np.abs(game.points - np.array(written)).max()), 0.0))
        loss = "absolute" if power == 1.0 else "square"
        best = best_in_hindsight(X, y, loss=loss, radius=U, intercept=False)
        least = F(best.point)
        mean = F(game.points.mean(axis=0))
        regrets += [(mean - least, (game.loss - T * least) / T), (float(game.losses.min()), float(game.losses.mean()))]
        excess.append((mean - least, 2.0 * U * game.gradient_bound / math.sqrt(T) * max(1.0, L / game.gradient_bound)))
    words = (
        f"{T} steps on the mean absolute and the mean square residual of 15 examples, on a ball of radius {U:g}: the "
        "points are those of descent written out, and the mean point's excess is at most regret over T, at most DL/√T."
    )
    return words, [
        worst("F at the mean point, less the least, against DL/√T", "≤", excess),
        worst("the same against R_T/T, and the best point against the mean loss", "≤", regrets),
        worst("distance to descent written out", "=", moved),
    ]


def _residuals(X: Any, y: Any, power: float) -> tuple[Callable[[Any], float], Callable[[Any], Any]]:
    """(1/N) Σ|⟨w, x⟩ − y|^power and a subgradient."""

    def value(w: Any) -> float:
        return float(np.mean(np.abs(X @ w - y) ** power))

    def gradient(w: Any) -> Any:
        r = X @ w - y
        return X.T @ (power * np.abs(r) ** (power - 1.0) * np.sign(r)) / len(y)

    return value, gradient


class _Parabolas(Opponent):
    """(μ_t/2)‖w − z_t‖² + ⟨c_t, w⟩, with a μ_t that each round tells; z_t flees from the point played."""

    def __init__(self, mu: Any, c: Any) -> None:
        self.mu, self.c, self.d = mu, c, c.shape[1]
        self.z = np.empty_like(c)

    def begin(self, setting: Setting) -> Callable[[Any], ConvexRound]:
        def reveal(move: Any) -> ConvexRound:
            i = move.t - 1
            mu, c = float(self.mu[i]), self.c[i]
            length = float(np.linalg.norm(move.point))
            self.z[i] = z = -move.point / length if length > 0.0 else np.ones_like(c)
            return ConvexRound(
                lambda w: 0.5 * mu * float((w - z) @ (w - z)) + float(c @ w), lambda w: mu * (w - z) + c, mu
            )

        return reveal


@theorem(
    "losses that are μ_t-strongly convex, μ_t told by each round, μ_1 > 0, any closed convex V: with η_t = 1/Σ_{i≤t} "
    "μ_i, R_T(u) ≤ ½ Σ ‖g_t‖²/Σ_{i≤t} μ_i; with μ_t = μ and ‖g_t‖ ≤ L it is (L²/(2μ))(1 + ln T)",
    source="notes 002, Theorem 4.7 and the η_t = 1/Σμ_i beside it",
    misprint="002, Theorem 4.7 has O((L²/μ) ln T), which is 0 at T = 1: it is 1 + ln T (see B8).",
)
def B22(rng: np.random.Generator) -> Outcome:
    """Parabolas whose curvature varies, some rounds linear, that flee from the point."""
    T, U, d, pairs, moved, values = 300, 1.5, 3, [], [], []
    for mu in (
        np.full(T, 0.5),
        np.where(rng.random(T) < 0.4, 0.0, 2.0 * rng.random(T)),
        np.geomspace(2.0, 1e-3, T),
        np.geomspace(1e-3, 2.0, T),
    ):
        mu[0] = max(float(mu[0]), 0.2)
        opponent = _Parabolas(mu, 0.3 * rng.normal(size=(T, d)))
        game = play(OGD("linear", f"ball:{U}", Strong(3.0)), opponent, T)
        sums, squares = np.cumsum(mu), (game.gradients**2).sum(axis=1)
        value = 0.5 * float((squares / sums).sum())
        u = (mu @ opponent.z - opponent.c.sum(axis=0)) / sums[-1]
        points = [u * min(1.0, U / float(np.linalg.norm(u))), *in_ball(rng, d, U, 20)]
        pairs += [(game.regret_against(u), value) for u in points]
        values.append((game.bounds[0].value, value))
        w = np.zeros(d)
        for t in range(T):
            moved.append((float(np.abs(game.points[t] - w).max()), 0.0))
            w = w - game.gradients[t] / sums[t]
            w = w * min(1.0, U / max(float(np.linalg.norm(w)), 1e-300))
    one = play(OGD("linear", "ball:1", Strong(1.0)), _Parabolas(np.array([2.0]), np.zeros((1, 1))), 1)
    constant = 0.5 * float((np.ones(T) / (0.5 * np.arange(1, T + 1))).sum())
    words = (
        f"Four games of {T} rounds on a ball against parabolas that flee from the point, of equal, random, falling and "
        "rising curvature, two fifths of the rounds of one of them linear: the best point and 20 others."
    )
    return words, [
        worst("R_T(u)", "≤", pairs),
        worst("rue's value against the formula", "=", values),
        worst("distance to the step 1/Σμ_i written out", "=", moved),
        Comparison("with μ_t = ½ and L = 1, against 1 + ln T", constant, "≤", 1.0 + math.log(T)),
        Comparison("one round against ½‖g_1‖²/μ_1", one.regret_against(np.ones(1)), "=", one.bounds[0].value),
        Comparison("one round against the printed ln T", one.regret_against(np.ones(1)), ">", 0.0),
    ]
