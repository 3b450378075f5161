"""B17, E1 to E3: alarms, the coverage of quantiles and of intervals, and calibration."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rue.domains import Reals
from rue.intervals.tracker import DEBT, DOUBLINGS, KAPPA, ROUNDS, SLOTS, cover, debts
from rue.learners import OGD
from rue.losses import Quantile
from rue.proofs.base import Comparison, Outcome, theorem, worst
from rue.regret.risk.alarms import EVERY, Alarm
from rue.runs.learn import learn
from rue.steps import Fixed

__all__ = ["B17", "E1", "E2", "E3"]


@theorem(
    "alarms, losses in [0, B]: every b rounds a confidence sequence for the mean is started (B14, both sides, level "
    "1 − α), those of like age thinned; alarm when a later one lies wholly above what an earlier one is or was. While "
    "the conditional mean does not rise, the expected number of rounds until an alarm is ≥ b(1/α − 1)",
    source="none of the notes (Shekhar and Ramdas 2024)",
)
def B17(rng: np.random.Generator) -> Outcome:
    """How often a sequence misses its mean, losses that fall, and losses that rise."""
    alpha, missed, sequences = 0.1, 0, 0
    for _ in range(60):
        mean, alarm = float(rng.choice([0.05, 0.3, 0.5])), Alarm(EVERY * (1.0 / alpha - 1.0))
        out: set[float] = set()
        for _ in range(30):
            alarm.enter(rng.random(EVERY) < mean)
            if alarm.changes:
                break
            out |= {first for first, low, high in alarm.intervals().tolist() if not low <= mean <= high}
        missed, sequences = missed + len(out), sequences + alarm.seen // EVERY
    falling = Alarm(1e4)
    falling.enter(rng.random(8000) < np.repeat([0.8, 0.4, 0.2, 0.1], 2000))
    rising = Alarm(1e6)
    rising.enter(rng.random(4000) < np.repeat([0.1, 0.5], 2000))
    found = rising.changes[0].round - 2000 if rising.changes else math.inf
    words = (
        f"{sequences:,} sequences of level 0.9 were looked at every {EVERY} rounds; the share that ever missed the "
        "mean is at most α, on which the promise rests. A loss that only falls raises no alarm, and a rise from 0.1 to "
        "0.5 is found soon."
    )
    room = 3.0 * math.sqrt(alpha * (1.0 - alpha) / sequences)
    return words, [
        Comparison("share of sequences that ever miss their mean", missed / sequences, "≤", alpha + room),
        Comparison("alarms while the loss falls", float(len(falling.changes)), "=", 0.0),
        Comparison("rounds until a rise from 0.1 to 0.5 is found", float(found), "≤", 400.0),
        Comparison("rounds that Alarm(1e6) promises on average", EVERY * (1.0 / rising.alpha - 1.0), "≥", 1e6),
    ]


@theorem(
    "coverage is in the certificate: for quantile loss at level τ, whose slope at p = y is 0, S of the intercept is "
    "#{y < p} − τ(T − #{y = p}), and S of a 0/1 feature is the same over the rows where it is 1; the sums of a "
    "window are the window's",
    source="none of the notes (Gibbs and Candès 2021)",
)
def E1(rng: np.random.Generator) -> Outcome:
    """S of runs whose labels often equal the prediction."""
    pairs, groups, windows = [], [], []
    for tau in (0.1, 0.5, 0.9):
        X = (rng.random((400, 3)) < [0.2, 0.5, 0.9]).astype(np.float64)
        y = rng.integers(-2, 3, size=400) * 0.5
        run = learn(X, y, learner=OGD(Quantile(tau), Reals(), Fixed(0.5), intercept=True))
        below, ties = (y < run.predictions).astype(float), (y == run.predictions).astype(float)
        counted = below - tau * (1.0 - ties)
        S = run.ledger.S
        pairs.append((S[0], counted.sum()))
        groups += [(S[1 + j], counted[X[:, j] == 1.0].sum()) for j in range(3)]
        of_windows = run.ledger.windows.columns()[0][:, 0]
        for sum_of_window, window in zip(of_windows, run.windows, strict=True):
            windows.append((sum_of_window, counted[window.first - 1 : window.last].sum()))
    words = (
        "400 rounds of OGD with quantile loss at three levels, labels on a grid so that predictions hit them: S of the "
        "intercept and of each 0/1 feature is the count of labels below the prediction less τ times those not equal; "
        "so it is for each window."
    )
    return words, [
        worst("S of the intercept", "=", pairs),
        worst("S of 0/1 features", "=", groups),
        worst("S of the intercept in a window", "=", windows),
    ]


def _moves(rng: np.random.Generator) -> dict[str, Callable[[float, float, int], float]]:
    """Opponents that choose the label after they have seen the interval."""
    return {
        "always above": lambda low, high, t: high + 1.0,
        "inside, then above": lambda low, high, t: high + 1.0 if t // 150 % 2 else 0.4 * low + 0.6 * high,
        "ever further": lambda low, high, t: high + 0.5 * abs(high) + 1.0 if t % 3 == 0 else 0.0,
        "heavy tails": lambda low, high, t: float(rng.standard_cauchy()),
    }


def _played(move: Callable[[float, float, int], float], alpha: float, T: int) -> tuple[float, float, float]:
    """The largest debt in proportion to its bound, the debt at the end, and the bound without the run's scales."""
    memory, alphas, yes = np.zeros((1, len(SLOTS))), np.array([alpha]), np.ones(1, dtype=np.bool_)
    ends, low, high, share = np.array([[1.0]]), np.empty((1, 1)), np.empty((1, 1)), 0.0
    for t in range(T):
        cover(memory.copy(), alphas, -ends, ends, np.zeros(1), ~yes, low, high)
        cover(memory, alphas, -ends, ends, np.array([move(float(low[0, 0]), float(high[0, 0]), t)]), yes, low, high)
        share = max(share, abs(memory[0, DEBT]) / max(1.0, debts(memory, alphas)[0]))
    v, m = alpha * (1.0 - alpha), memory[0]
    return share, abs(m[DEBT]), math.sqrt(2.0 * v * m[ROUNDS] * math.log1p(3 * 2**20 / KAPPA)) + 1.0 + m[DOUBLINGS]


def _quantile_steps(y: Any, tau: float, steps: Any) -> tuple[float, float]:
    """abs(S_0)/T of p ← p − η_t g_t, and its bound (B + η_1)/(η_T T) for labels in an interval of length B."""
    p, S = float(y[0]), 0.0
    for label, eta in zip(y, steps, strict=True):
        g = float(label < p) - tau if label != p else 0.0
        S, p = S + g, p - eta * g
    T = len(y)
    return abs(S) / T, (float(np.ptp(y)) + steps[0]) / (steps[-1] * T)


@theorem(
    "trackers with a promise on any data: (a) p ← p − η_t g_t with quantile loss, labels in an interval of length B, "
    "η_t non-increasing: abs(S_0)/T ≤ (B + η_1)/(η_T T); (b) an interval widened by c_t = b_t + κρ_t sgn(D_t)"
    "(e^{D_t²/(2vt)} − 1), D_t the debt Σ(miss − α), v = α(1 − α), ρ_t ≥ 2⁻²⁰R_t any scale, abs(b_t) ≤ R_t any guess, "
    "R_t the largest abs(score): abs(Σ(miss − α)) ≤ √(2vT ln(1 + 3·2²⁰/κ)) + 1 + N_T, N_T the rounds whose score was "
    "more than twice all before",
    source="none of the notes (a: Gibbs and Candès 2021; Angelopoulos, Barber and Bates 2024)",
)
def E2(rng: np.random.Generator) -> Outcome:
    """Labels chosen against the tracker, and at random."""
    T = 600
    labels = (rng.random(T), np.sort(rng.random(T)), (np.arange(T) % 2).astype(np.float64))
    steps = (np.full(T, 0.05), 0.2 / np.sqrt(np.arange(1.0, T + 1.0)))
    simple = [_quantile_steps(y, tau, eta) for y in labels for eta in steps for tau in (0.1, 0.9)]
    shares, ends = [], []
    for alpha in (0.05, 0.1, 0.5):
        for move in _moves(rng).values():
            share, debt, bound = _played(move, alpha, T)
            shares.append((share, 1.0))
            ends.append((debt, bound))
    words = (
        f"Four opponents that see the interval, at three levels, {T} rounds each: misses differ from αT by no more "
        "than the promise, at the end and at every round before; so do the quantile steps of (a), on labels in [0, 1]."
    )
    return words, [
        worst("abs(Σ(miss − α)) at the end", "≤", ends),
        worst("the same by the run's own scales, at the worst round, in proportion", "≤", shares),
        worst("(a): abs(S_0)/T", "≤", simple),
    ]


def _grouped(rng: np.random.Generator, T: int) -> Any:
    """A 0/1 feature, which a third of the rows have, and a number."""
    return np.column_stack([rng.random(T) < 1.0 / 3.0, rng.normal(size=T)]).astype(np.float64)


@theorem(
    "calibration: for logistic loss the slope is σ(p) − 1{y = +1}, so that S/T at the intercept is the mean "
    "probability less the share of positives, and S/N at a 0/1 feature its group's; for square loss S/(2T) is the mean "
    "of p − y",
    source="none of the notes: the slopes of the two losses",
)
def E3(rng: np.random.Generator) -> Outcome:
    """Calibration as a run reports it against means written down."""
    T, gaps, groups, bins = 800, [], [], []
    X = _grouped(rng, T)
    y = np.where(rng.random(T) < 1.0 / (1.0 + np.exp(-X @ [1.5, 1.0])), 1.0, -1.0)
    run = learn(X, y, learner=OGD("logistic", "ball:5"))
    chance, inside = 1.0 / (1.0 + np.exp(-run.predictions)), X[:, 0] == 1.0
    found = run.calibration()
    gaps.append((found.gap, float(chance.mean() - (y > 0).mean())))
    groups.append((found.groups[0].gap, float(chance[inside].mean() - (y[inside] > 0).mean())))
    for part in found.bins:
        within = (chance >= part.low) & (chance < part.high)
        bins.append((part.happened, float((y[within] > 0).mean())))
    z = X @ [2.0, -1.0] + rng.normal(size=T)
    square = learn(X, z, learner=OGD("square", "ball:5"))
    residual = square.predictions - z
    gaps.append((square.calibration().gap, float(residual.mean())))
    groups.append((square.calibration().groups[0].gap, float(residual[inside].mean())))
    words = (
        f"Classes and numbers, {T} rounds each: the mean prediction less the mean label, over all rows and over a "
        "group, is what the certificate's sums say, and the shares in tenths of the probability are those counted."
    )
    return words, [
        worst("S at the intercept against the means", "=", gaps),
        worst("S at a 0/1 feature against its group's means", "=", groups),
        worst("the share that happened in each tenth", "=", bins),
        Comparison("size of the group", found.groups[0].weight, "=", float(inside.sum())),
    ]
