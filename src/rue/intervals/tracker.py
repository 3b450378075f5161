"""The tracker of E2 (b): widens intervals of any origin so that nearly the wished share of labels falls into them.

An interval [lo_t, hi_t] from any forecaster has the score s_t = max(lo_t − y_t, y_t − hi_t), which is above 0 where the
label is outside. It is widened by c_t on both sides (narrowed where c_t < 0). With α the wished share of misses, v =
α(1 − α), D_t = Σ_{i<t} (miss_i − α) the debt, R_t the largest abs(s) so far, ρ_t a running mean of abs(s), at least
2⁻²⁰R_t, and b_t a running (1 − α)-quantile of the scores with abs(b_t) ≤ R_t:

    c_t = b_t + κ ρ_t sgn(D_t)(e^{D_t²/(2vt)} − 1),  no more than 2R_t and no less than −2R_t,

where κ = 0.1. Beyond the debt h_t = √(2vt ln(1 + 3R_t/(κρ_t))) it is ±2R_t; a round whose abs(s) is more than that is
called a doubling, and so is one in which the label lies exactly at the end there (or numbers round so). So, whatever
the labels and the forecaster, with N doublings until round T,

    abs(Σ_{t≤T} (miss_t − α)) ≤ max_{t≤T} h_t + 1 + N,

which is at most √(2vT ln(1 + 3·2²⁰/κ)) + 1 + N (docs/theory.md, E2).

Two kinds of rounds are hits but no part of the debt, because no interval could be narrower: those in which all scores
have been 0 so far, and those in which the interval is a single point and the label is that point.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import inline, kernel

__all__ = ["DOUBLINGS", "FREE", "HITS", "KAPPA", "SEEN", "SLOTS", "TERMS", "cover", "cover_sets", "debts"]

DEBT, ROUNDS, REACH, SCALE, GUESS, HIGHEST, DOUBLINGS, FREE, SEEN, HITS = SLOTS = range(10)
"""D, t, R, ρ, b, the largest h_t, N, rounds outside the debt, labels, and those inside."""
TERMS = ("debt", "rounds", "reach", "scale", "guess", "highest", "doublings", "free", "seen", "hits")
KAPPA = 0.1
LEAST = 2.0**-20
"""ρ is at least this share of R."""
TINY = 1e-290
"""R is at least this once a score is not 0: a share of it is still a number."""
FORGETTING = 0.01
"""The rate of ρ, once there have been a hundred scores."""
QUICKNESS = 0.02
"""By how much of ρ the guess moves, at most: 0.01 and 0.05 had interval scores within 1 % on bike and elec2."""


@inline
def _scale(m: Any) -> Any:
    """ρ_t."""
    return max(m[SCALE], LEAST * m[REACH])


@inline
def _widening(m: Any, alpha: Any) -> Any:
    """c_t, before the label is known."""
    if not m[REACH] > 0.0:
        return 0.0
    z = m[DEBT] * m[DEBT] / (2.0 * alpha * (1.0 - alpha) * (m[ROUNDS] + 1.0))
    away = KAPPA * _scale(m) * math.expm1(min(z, 100.0))  # e^17 would do
    c = m[GUESS] + (away if m[DEBT] > 0.0 else -away)
    return min(2.0 * m[REACH], max(-2.0 * m[REACH], c))


@inline
def _note(m: Any, alpha: Any, s: Any, hit: Any, free: Any, beyond: Any) -> None:
    """Enter a round: its score, whether the label was inside, and whether it is outside the debt.

    `beyond` says that c_t was ±2R_t and yet on the wrong side of the label: with doublings, all that moves D_t further.
    """
    m[SEEN] += 1.0
    m[HITS] += 1.0 if hit else 0.0
    free = free or (hit and s == 0.0 and m[REACH] == 0.0)
    if free:
        m[FREE] += 1.0
    else:
        m[ROUNDS] += 1.0
        v, reach = alpha * (1.0 - alpha), m[REACH]
        if reach > 0.0:
            h = math.sqrt(2.0 * v * m[ROUNDS] * math.log1p(3.0 * reach / (KAPPA * _scale(m))))
            m[HIGHEST] = max(m[HIGHEST], h)
        m[DOUBLINGS] += 1.0 if beyond or abs(s) > 2.0 * reach else 0.0
        m[DEBT] += (0.0 if hit else 1.0) - alpha
    m[REACH] = max(m[REACH], abs(s), TINY if s != 0.0 else 0.0)
    m[SCALE] += max(FORGETTING, 1.0 / m[SEEN]) * (abs(s) - m[SCALE])
    b = m[GUESS] + QUICKNESS * _scale(m) * ((1.0 if s > m[GUESS] else 0.0) - alpha)
    m[GUESS] = min(m[REACH], max(-m[REACH], b))


@kernel
def cover(memory: Any, alphas: Any, lo: Any, hi: Any, y: Any, labelled: Any, lower: Any, upper: Any) -> None:
    """Widen intervals, a row for each round and a column for each level, the levels rising; then see the label.

    The interval of a level contains that of the level before: where it would not, it is extended to it. A level that
    has had far too many hits (c_t = −2R_t, or nothing left of its interval) takes that of the level before. An endpoint
    is infinite where an interval has one side.
    """
    for i in range(y.size):
        for k in range(alphas.size):
            m, alpha = memory[k], alphas[k]
            a, b = min(lo[i, k], hi[i, k]), max(lo[i, k], hi[i, k])
            c = _widening(m, alpha)
            low, high = a - c, b + c
            if k > 0 and (low > high or (c <= -2.0 * m[REACH] and m[REACH] > 0.0)):
                low, high = lower[i, k - 1], upper[i, k - 1]
            elif low > high:
                low = high = 0.5 * a + 0.5 * b
            if k > 0:
                low, high = min(low, lower[i, k - 1]), max(high, upper[i, k - 1])
            lower[i, k], upper[i, k] = low, high
            if labelled[i] and not math.isnan(a + b - y[i]):
                hit, most = low <= y[i] <= high, 2.0 * m[REACH]
                beyond = c >= most if not hit else k == 0 and c <= -most  # later levels are extended to the first
                _note(m, alpha, max(a - y[i], y[i] - b), hit, hit and low == high, beyond)


@kernel
def cover_sets(memory: Any, alpha: Any, scores: Any, least: Any, labelled: Any, thresholds: Any) -> None:
    """The thresholds c_t of sets of classes {k: s_k ≤ c_t}, from the scores of the labels that came.

    `least` is the score of the most probable class, which is in every set. NaN is the score of a class that had never
    come before, which is in no set: a miss that the promise allows for as it does for a doubling.
    """
    m = memory[0]
    for i in range(scores.size):
        c = _widening(m, alpha)
        thresholds[i] = c
        s = scores[i]
        if labelled[i] and math.isnan(s):
            m[SEEN] += 1.0
            m[ROUNDS] += 1.0
            m[DOUBLINGS] += 1.0
            m[DEBT] += 1.0 - alpha
        elif labelled[i]:
            hit = s <= c or s == least
            _note(m, alpha, s, hit, hit and c < least, not hit and c >= 2.0 * m[REACH])


def debts(memory: Any, alphas: Any) -> Any:
    """By how much the number of misses may differ from α times the rounds, by proof, for each level.

    A level that may be extended to the one before it, because intervals of several levels do not cross, can have as
    many hits more as the other's debt swings: 2(α_k/α_{k−1}) times the other's number.
    """
    bounds = memory[:, HIGHEST] + 1.0 + memory[:, DOUBLINGS]
    for k in range(1, len(bounds)):
        bounds[k] += 2.0 * alphas[k] / alphas[k - 1] * bounds[k - 1]
    return np.where(memory[:, ROUNDS] > 0.0, bounds, 0.0)
