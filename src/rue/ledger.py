"""The accounts of a run: a function of the stream and of the predictions made before each update, of nothing else.

A ledger is written to inside the learning loop, or by `keep_accounts` from the predictions of any other model; either
way by the same compiled method, example by example, so the sums are the same bits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue._jit import kernel, values

__all__ = ["EXAMPLES", "LOSS", "MISTAKES", "WEIGHT", "A", "Ledger", "Silent", "keep_accounts", "open_ledger"]

EXAMPLES, WEIGHT, LOSS, MISTAKES, A = range(5)
TOGETHER = 64
"""How many rows are added to S at once."""


@values
class Silent(NamedTuple):
    """No accounts: for a pass that wants predictions and nothing else."""

    nothing: Any

    def room(self, size: Any) -> Any:
        return True

    def enter(self, loss: Any, row: Any, p: Any, y: Any, weight: Any, slope: Any) -> None:
        pass

    def gather(self, rows: Any, i: Any, g: Any) -> None:
        pass

    def close(self, rows: Any, end: Any) -> None:
        pass


@values
class Ledger(NamedTuple):
    """Sums over the examples scored, and the certificate's S = Σ g_t x_t (THEORY D1)."""

    sums: Any
    """The number of examples, Σ weight, Σ weight·ℓ, mistakes, and A = Σ g_t p_t with g_t = weight·slope."""
    S: Any
    waiting: Any
    """The g of the last few rows, which S does not have yet, and last how many they are."""

    def room(self, size: Any) -> Any:
        """Whether rows of `size` coordinates fit."""
        return size <= self.S.size

    def enter(self, loss: Any, row: Any, p: Any, y: Any, weight: Any, slope: Any) -> None:
        """Count one example into the sums."""
        self.sums[EXAMPLES] += 1.0
        self.sums[WEIGHT] += weight
        self.sums[LOSS] += weight * loss.value(p, y)
        self.sums[A] += weight * slope * p
        if y * p <= 0.0:
            self.sums[MISTAKES] += 1.0

    def gather(self, rows: Any, i: Any, g: Any) -> None:
        """S += g·x, x being row i, but not yet: many rows together take a fraction of the time of each by itself.

        The learner has its own tables in the cache; rows follow each other without a gap, and at the end is `close`.
        """
        waiting, many = self.waiting, int(self.waiting[TOGETHER])
        waiting[many] = g
        waiting[TOGETHER] = many + 1.0
        if many + 1 == TOGETHER:
            self.close(rows, i + 1)

    def close(self, rows: Any, end: Any) -> None:
        """Add what is waiting, of the rows before `end`."""
        waiting, many = self.waiting, int(self.waiting[TOGETHER])
        for k in range(many):
            if waiting[k] != 0.0:
                rows.row(end - many + k).add_afar(waiting[k], self.S)
        waiting[TOGETHER] = 0.0

    def grown(self, size: int) -> Ledger:
        """Room for at least `size` coordinates."""
        if size <= self.S.size:
            return self
        S = np.zeros(size)
        S[: self.S.size] = self.S
        return Ledger(self.sums, S, self.waiting)

    def merged(self, other: Ledger) -> Ledger:
        """The accounts of two parts of a stream together: everything just adds up."""
        size = max(self.S.size, other.S.size)
        return Ledger(self.sums + other.sums, self.grown(size).S + other.grown(size).S, np.zeros(TOGETHER + 1))


def open_ledger(size: int = 0) -> Ledger:
    """Accounts with nothing in them yet."""
    return Ledger(np.zeros(5), np.zeros(size), np.zeros(TOGETHER + 1))


@kernel
def keep_accounts(loss: Any, ledger: Any, rows: Any, y: Any, weights: Any, predictions: Any, begin: Any) -> Any:
    """Enter rows from `begin` on, scored by `predictions`.

    Returns the first row that cannot be entered, and how many were left out because their prediction is not a number
    (a learner refused them).
    """
    left_out, i, good = 0, begin, True
    size = rows.coordinates()
    if not ledger.room(size) or predictions.size < y.size:
        return begin, left_out
    while good and i < y.size:
        good = rows.sound(i)
        if good:
            weight, p, row = weights[i] if weights.size > 0 else 1.0, predictions[i], rows.row(i)
            good = loss.accepts(y[i]) and 0.0 <= weight < math.inf and row.ordered() and row.fits(size) and row.finite()
            scored = good and math.isfinite(p) and weight > 0.0
            if good and math.isnan(p):
                left_out += 1
            elif not math.isfinite(p):
                good = False
            slope = loss.slope(p, y[i]) if scored else 0.0
            if scored:
                ledger.enter(loss, row, p, y[i], weight, slope)
        if good:
            ledger.gather(rows, i, weight * slope)
            i += 1
    ledger.close(rows, i)
    return i, left_out
