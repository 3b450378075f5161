"""B11 to B14: from one pass to examples still to come, and many learners mixed into one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.domains import Ball, Reals
from rue.errors import SettingsError
from rue.learners import OGD, SVM, Learner
from rue.losses import Hinge
from rue.proofs.base import Comparison, theorem, worst
from rue.proofs.data import hinge, population
from rue.regret import (
    best_in_hindsight,
    loss_range,
    mix,
    risk_always,
    risk_at_end,
    risk_curve,
    risk_of_ogd,
    risk_of_svm,
)
from rue.regret.risk.bounds import coverage
from rue.runs.learn import learn
from rue.steps import Fixed, Sqrt

__all__ = ["B11", "B12", "B13", "B14"]

Outcome = tuple[str, list[Comparison]]
"""What was done, in words, and what was compared."""


def _sampling(share: float, n: int) -> float:
    """Three standard errors of a share of n trials."""
    return 3.0 * math.sqrt(share * (1.0 - share) / n)


class _Drawn:
    """Streams drawn from a few examples, the averages that a learner makes of them, and their risk."""

    def __init__(self, rng: np.random.Generator, T: int, streams: int) -> None:
        self.X, self.y = population(rng)
        self.T, self.draws = T, rng.integers(0, len(self.y), size=(streams, T))

    def averages(self, learner: Learner) -> tuple[Any, Any]:
        """The average of every stream, and what the pass over it lost."""
        runs = [learn(self.X[drawn], self.y[drawn], learner=learner) for drawn in self.draws]
        return np.array([run.learner.average for run in runs]), np.array([run.loss for run in runs])

    def risk(self, W: Any, lambda_: float = 0.0) -> Any:
        """F, exactly."""
        losses = np.maximum(0.0, 1.0 - self.y * (np.atleast_2d(W) @ self.X.T)).mean(axis=1)
        return losses + 0.5 * lambda_ * (np.atleast_2d(W) ** 2).sum(axis=1)

    def best(self, lambda_: float) -> Any:
        """argmin of F(u) + (λ/2)‖u‖²."""
        return best_in_hindsight(self.X, self.y, loss="hinge", lambda_=lambda_, intercept=False).point


@theorem(
    "online to batch, i.i.d. rounds, in expectation: E F(Σα_t w_t/Σα_t) ≤ F(u) + E R_T(u)/Σα_t over the points played; "
    "hinge or logistic, R = X, η = 1/(R√T): R(‖u‖² + 1)/(2√T); α_t = 1/(R√t): R(‖u‖² + 1 + ln T)/(2Σ1/√t); A5: "
    "(G²/(2λ))(1 + ln T)/T; A6: 2G²/(λ(T+1))",
    source="notes 002, Theorem 3.1, Examples 3.2, 3.3, 3.4 and 4.12",
    misprint="002, Example 3.2 prints R(‖x*‖² + 1)/√T: valid but loose; it is /(2√T), which is attained at T = 1.",
)
def B11(rng: np.random.Generator) -> Outcome:
    """Means over streams drawn from examples whose risk is known."""
    T, n, lambda_ = 100, 100, 0.2
    drawn = _Drawn(rng, T, n)
    u = drawn.best(1.0 / math.sqrt(T))  # the best for F(u) + R‖u‖²/(2√T)
    norm, at_u = float(np.linalg.norm(u)), float(drawn.risk(u)[0])
    W, lost = drawn.averages(OGD("hinge", "reals", Fixed(1.0 / math.sqrt(T)), average="uniform", intercept=False))
    excess = drawn.risk(W) - at_u
    regret = np.array([hinge(drawn.X[one], drawn.y[one], u).sum() for one in drawn.draws])
    left = excess - (lost - regret) / T
    by_steps, _ = drawn.averages(OGD("hinge", "reals", Sqrt(1.0), average="steps", intercept=False))
    least = float(drawn.risk(drawn.best(lambda_), lambda_)[0])
    svm = [
        (float(drawn.risk(drawn.averages(SVM(lambda_, how, intercept=False))[0], lambda_).mean()) - least, how)
        for how in ("uniform", "t")
    ]
    one = OGD("hinge", "reals", Fixed(1.0), average="uniform", intercept=False)
    first = learn([[1.0]], [1.0], learner=one).learner
    attained = float(np.maximum(0.0, 1.0 - first.average[0])) - 0.0  # F(w̄) − F(u) with u = 1 on the example x = y = 1
    words = (
        f"{n} streams of {T} rounds were drawn from 40 examples, so the risk is known: the mean risk of the averaged "
        "points obeys every case. At T = 1 with x = y = R = 1 and u = 1 the average is w_1 = 0 and the excess is 1 = "
        "R(‖u‖² + 1)/(2√T): the constant ½ is attained, and the printed one is twice as large."
    )
    return words, [
        Comparison("mean excess risk", float(excess.mean()), "≤", risk_of_ogd(T, 1.0, norm).value),
        Comparison(
            "mean of F(w̄) − F(u) − R_T(u)/T, in standard errors",
            float(left.mean() / left.std() * math.sqrt(n)),
            "≤",
            3.0,
        ),
        Comparison(
            "with α_t = 1/√t",
            float(drawn.risk(by_steps).mean()) - at_u,
            "≤",
            risk_of_ogd(T, 1.0, norm, weighting="steps").value,
        ),
        *(
            Comparison(f"SVM, average '{how}'", seen, "≤", risk_of_svm(T, 1.0, lambda_, weighting=how).value)
            for seen, how in svm
        ),
        Comparison("excess at T = 1", attained, "=", risk_of_ogd(1, 1.0, 1.0).value),
        Comparison("the printed bound at T = 1", 2.0, ">", attained),
    ]


@theorem(
    "K learners mixed by exponential weights lose at most the best's loss plus: log loss, in probability: ln K, with "
    "example weights w_max ln K plus what the rounds that raise the largest weight cost beyond their mix loss; square "
    "loss on an interval of length B: 2B² ln K averaged, (B²/2) ln K by substitution; any convex loss of range B: "
    "B√((T/2) ln K) with T known, B√(T ln K) at any time; AdaHedge: twice the sum of its mixability gaps",
    source="none of the notes (Vovk 1990; Cesa-Bianchi and Lugosi 2006, chapters 2 and 3; de Rooij, van Erven, "
    "Grünwald and Koolen 2014)",
)
def B12(rng: np.random.Generator) -> Outcome:
    """Random columns, columns that lead in turn, and labels chosen against the mixture."""
    T, K, ln = 200, 6, math.log(6)
    signs = np.where(rng.random(T) < 0.5, 1.0, -1.0)
    turns = np.where((np.arange(T)[:, None] // 20) % K == np.arange(K), 1.0, -1.0) * signs[:, None]
    scores = [rng.normal(size=(T, K)) * 3.0, 4.0 * turns]
    forms: dict[str, list[tuple[float, float]]] = {}
    for P in scores:
        against = _against(P, 60)
        for q, y in ((P, signs), (P[:60], against)):
            n = len(y)
            clipped, ends = np.clip(q, -1.0, 1.0), (-1.0, 1.0)
            for name, mixed, price in (
                ("log loss", mix(q, y), ln),
                ("squares, averaged", mix(clipped, y, loss="square", method="average", interval=ends), 8.0 * ln),
                ("squares, by substitution", mix(clipped, y, loss="square", interval=ends), 2.0 * ln),
                ("T known", mix(clipped, y, loss="absolute", method="horizon", B=2.0), 2.0 * math.sqrt(n / 2.0 * ln)),
                ("any time", mix(clipped, y, loss="absolute", method="anytime", B=2.0), 2.0 * math.sqrt(n * ln)),
            ):
                forms.setdefault(name, []).append((mixed.total, float(mixed.totals.min()) + price))
            hedged = mix(q, y, loss="absolute", method="adahedge")
            forms.setdefault("AdaHedge", []).append((hedged.total, float(hedged.totals.min()) + hedged.price))
            forms.setdefault("AdaHedge's price", []).append((hedged.price, hedged.guarantee))
    words = (
        f"{K} columns of predictions, at random and leading in turn, for random labels and for labels chosen against "
        "the mixture: in every form the mixture's total loss is at most the best column's plus the price."
    )
    return words, [worst(name, "≤", pairs) for name, pairs in forms.items()]


def _against(P: Any, T: int) -> Any:
    """Labels that always contradict the mixture's prediction, which depends on the rounds before alone."""
    y = np.ones(T)
    for t in range(T):
        y[t] = -1.0 if float(mix(P[: t + 1], y[: t + 1]).predictions[t]) > 0.0 else 1.0
    return y


@theorem(
    "risk of the uniform average, T fixed in advance, convex loss in [0, B], B known beforehand, i.i.d.: with "
    "probability ≥ 1 − δ, Risk(w̄) ≤ (1/T) Σ ℓ_t(w_t) + B√(ln(1/δ)/(2T)); t-weighted: B√(ln(1/δ)(2T+1)/(3T(T+1))); on "
    "a ball the hinge is bounded by 1 + UX; an unbounded loss gets no B13",
    source="notes 002, Example 3.13 (Cesa-Bianchi, Conconi and Gentile 2004)",
    misprint="002, Example 3.13 states no range: losses must lie in [0, B], and T must be fixed in advance.",
)
def B13(rng: np.random.Generator) -> Outcome:
    """Losses whose risk is known, and the printed slack on losses of a wide range."""
    n, T, delta, B = 500, 50, 0.1, 21.0
    coins = (rng.random((n, T)) < 0.5).astype(np.float64)
    failed = np.mean([risk_at_end(losses, 1.0, delta).value < 0.5 for losses in coins])
    by_t = np.mean([risk_at_end(losses, 1.0, delta, weighting="t").value < 0.5 for losses in coins])
    wide = np.mean([risk_at_end(B * losses, B, delta).value < B / 2.0 for losses in coins])
    printed = np.mean(B * coins.mean(axis=1) + math.sqrt(2.0 * math.log(2.0 / delta) / T) < B / 2.0)
    allowed = delta + _sampling(delta, n)
    slack = risk_at_end(coins[0], 1.0, delta, weighting="t").slack or math.nan
    words = (
        f"{n} streams of {T} tosses of a coin, a loss of 0 or B with risk B/2 whatever is played: the bound fails in "
        f"at most a share δ = {delta:g} of them. With B = 21, the range of the hinge for U = 20 and X = 1, the slack "
        f"printed without a range fails in {printed:.0%}."
    )
    return words, [
        Comparison("share of streams where the bound fails", float(failed), "≤", allowed),
        Comparison("the same, weighted by t", float(by_t), "≤", allowed),
        Comparison("the same with losses in [0, 21]", float(wide), "≤", allowed),
        Comparison("the printed slack on losses in [0, 21]", float(printed), ">", allowed),
        Comparison(
            "slack weighted by t", slack, "=", math.sqrt(math.log(1.0 / delta) * (2 * T + 1) / (3.0 * T * (T + 1)))
        ),
        Comparison("range of the hinge on the ball, U = 20, X = 1", loss_range(Hinge(), Ball(20.0), 1.0, d=1), "=", B),
        Comparison("refused on ℝ^d (1) or not (0)", float(_refused(coins[0])), "=", 1.0),
    ]


def _refused(losses: Any) -> bool:
    try:
        risk_at_end(losses, loss_range(Hinge(), Reals(), 1.0, d=1))
    except SettingsError:
        return True
    return False


@theorem(
    "the same at every t at once: with probability ≥ 1 − δ, for all t, Risk(w̄_t) ≤ (1/t) Σ ℓ_i + (B/t) S_t, S_t the "
    "root of Σ_k π_k e^{λ_k S − ψ(λ_k) V_t} = 1/δ, with λ_k = 2^{−k/2}, π_k = 1/(k(k+1)), k = 1..40, ψ(λ) = −ln(1−λ) "
    "− λ, x̂_t = (B/2 + Σ_{i<t} ℓ_i)/t, V_t = Σ ((ℓ_i − x̂_i)/B)²",
    source="none of the notes (Howard, Ramdas, McAuliffe and Sekhon 2021, Theorem 4); compare notes 002, Example 3.13",
    misprint="002, Example 3.13 does not say that T must be fixed: looked at after every round, it fails more often.",
)
def B14(rng: np.random.Generator) -> Outcome:
    """How often it fails, the root put into its equation, and small losses."""
    n, delta, B = 200, 0.1, 3.0
    seen = coverage(n, 1000, delta, seed=int(rng.integers(1 << 30)))
    losses = B * rng.random(300)
    curve = risk_curve(losses, B, delta)
    t, k = np.arange(1, 301), np.arange(1, 41)
    guesses = (B / 2.0 + np.cumsum(losses) - losses) / t
    V = float((((losses - guesses) / B) ** 2).sum())
    S = (float(curve[-1]) - float(losses.mean())) * 300 / B
    rates = 2.0 ** (-k / 2.0)
    mass = float((np.exp(rates * S - (-np.log1p(-rates) - rates) * V) / (k * (k + 1.0))).sum())
    always, at_end = (f([0.0] * 10_000, 51.0, 0.05).slack or math.nan for f in (risk_always, risk_at_end))
    words = (
        f"{seen} In {n} streams the bound that holds at every t fails at some t in at most a share δ, where B13 "
        "looked at after every round fails more often."
    )
    return words, [
        Comparison("share of streams where it fails at some t", seen.always, "≤", delta + _sampling(delta, n)),
        Comparison("the same of B13, misused", seen.misused, ">", seen.always),
        Comparison("δ·Σ π_k e^{λ_k S − ψ_k V}", delta * mass, "=", 1.0),
        Comparison("slack after 10,000 losses of 0, B = 51, against B13's", always, "<", at_end),
    ]
