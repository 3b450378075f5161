"""Excess risk: how far the average of the points played may be from the best point, with high probability.

B13 and B14 bound the risk of the average by what the pass has paid. What the pass has paid is the regret and what u has
paid; that lies near the risk of u. So a bound on the regret is one on Risk(w̄) − Risk(u) (docs/theory.md, B18 and B19).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.errors import BadExample, DataError, SettingsError, shown
from rue.regret.risk.bernstein import deviation, variances
from rue.regret.risk.bounds import INDEPENDENT, RiskBound, column, require_delta, whole_rounds

__all__ = ["excess_always", "excess_at_end"]

FIXED_POINT = "u was fixed before the examples were drawn, as the point of least risk is"


def excess_at_end(regret: float, rounds: int, B: float, delta: float = 0.05) -> RiskBound:
    """B18: Risk(w̄) − Risk(u) ≤ R_T(u)/T + B√(2 ln(1/δ)/T) with probability ≥ 1 − δ, T fixed in advance.

    `regret` is R_T(u), or anything above it: a certificate (D1), a theorem's bound (B3). The point u must not depend on
    the examples. The one of least risk in the learner's domain does not, so with the regret against the whole domain
    this bounds the excess over the least risk there, though neither that point nor its risk is known. Losses lie in
    [0, B]. Lecture notes have 2B√(2 ln(2/δ)/T): two bounds of the form of B13 with more room than either needs.

    >>> print(excess_at_end(40.0, 10_000, B=1.0, delta=0.05))
    with probability at least 1 − 0.05, the risk of the uniform average of the points played, less that of a point u, is
    at most 0.0284775 (B18; regret a round 0.004 plus 0.0244775), if the examples are independent draws from one
    distribution, u was fixed before the examples were drawn, as the point of least risk is, the regret against u is at
    most 40, the loss is convex, the number of rounds was fixed in advance and all losses lie in [0, 1], known
    beforehand.

    Azuma's inequality for ℓ_t(w_t) − ℓ_t(u), in an interval of length 2B; docs/theory.md, B18.
    """
    T = _checked(regret, rounds, B, delta)
    slack = B * math.sqrt(-2.0 * math.log(delta) / T)
    return _bound("B18", regret, T, slack, B, delta, "the number of rounds was fixed in advance")


def excess_always(regret: float, rounds: int, B: float, delta: float = 0.05, *, differences: Any = None) -> RiskBound:
    """B19, at every t at once: Risk(w̄_t) − Risk(u) ≤ R_t(u)/t + (2B/t) S_t with probability ≥ 1 − δ.

    `regret` is R_t(u) after so many `rounds`. S_t is that of B14 for the rounds (ℓ_i(w_i) − ℓ_i(u) + B)/(2B). With
    their `differences` ℓ_i(w_i) − ℓ_i(u) it takes V_t from them, which is small where u and the points played lose
    about the same; without, as for the unknown point of least risk, the largest V_t that there can be, t/4 + ln(t +
    1). So one may look after every round.

    >>> bound = excess_always(40.0, 10_000, B=1.0)
    >>> bound.theorem, round(bound.value, 3)
    ('B19', 0.041)

    Howard, Ramdas, McAuliffe and Sekhon 2021, Theorem 4; docs/theory.md, B19.
    """
    T = _checked(regret, rounds, B, delta)
    V = T / 4.0 + math.log(T + 1.0) if differences is None else _variance(differences, T, B)
    slack = 2.0 * B / T * float(deviation(np.array([V]), delta)[0])
    return _bound("B19", regret, T, slack, B, delta)


def _variance(differences: Any, T: int, B: float) -> float:
    """V_T of the rounds (difference + B)/(2B)."""
    d = column(differences, "differences")
    if d.size != T:
        raise DataError(f"there are {d.size} differences, but {T} rounds: one difference a round.")
    outside = ~(np.abs(d) <= B * (1.0 + 1e-9))
    if outside.any():
        row = int(np.argmax(outside))
        raise BadExample(
            row,
            f"the difference {float(d[row]):g} lies outside [−B, B] with B = {B:g}, so losses do not lie in [0, B]: "
            "give the range that theory allows (`loss_range`), not what was seen.",
        )
    return float(variances((np.clip(d / B, -1.0, 1.0) + 1.0) / 2.0)[-1])


def _checked(regret: float, rounds: int, B: float, delta: float) -> int:
    require_delta(delta)
    if not isinstance(regret, int | float | np.number) or not math.isfinite(regret):
        raise SettingsError(f"the regret must be a finite number, not {shown(regret)}.")
    if not isinstance(B, int | float | np.number) or not 0.0 < B < math.inf:
        raise SettingsError(
            f"no risk bound without a range: B = {shown(B)}, where the largest value that the loss can take is wanted "
            "(`loss_range`), positive and finite."
        )
    return whole_rounds(rounds)


def _bound(theorem: str, regret: float, T: int, slack: float, B: float, delta: float, *more: str) -> RiskBound:
    about = "the risk of the uniform average of the points played, less that of a point u,"
    assumptions = (
        INDEPENDENT,
        FIXED_POINT,
        f"the regret against u is at most {regret:g}",
        "the loss is convex",
        *more,
        f"all losses lie in [0, {B:g}], known beforehand",
    )
    value = min(regret / T + slack, B)
    return RiskBound(
        theorem, value, about, T, assumptions, slack=slack, delta=float(delta), range=float(B), regret=regret / T
    )
