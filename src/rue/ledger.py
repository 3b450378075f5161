"""The accounts of a run: a function of the stream and of the predictions made before each update, of nothing else.

A ledger is written to inside the learning loop, or by `keep_accounts` from the predictions of any other model; either
way by the same compiled method, example by example, so the sums are the same bits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue._intrinsics import fetch
from rue._jit import kernel, values

__all__ = ["EXAMPLES", "LOSS", "MISTAKES", "WEIGHT", "A", "Ledger", "Silent", "keep_accounts", "open_ledger"]

EXAMPLES, WEIGHT, LOSS, MISTAKES, A = range(5)
_SOON = np.uint64(40)


@values
class Silent(NamedTuple):
    """No accounts: for a pass that wants predictions and nothing else."""

    nothing: Any

    def room(self, size: Any) -> Any:
        return True

    def enter(self, loss: Any, row: Any, p: Any, y: Any, weight: Any, slope: Any) -> None:
        pass

    def expect(self, row: Any) -> None:
        pass

    def gather(self, row: Any, g: Any) -> None:
        pass

    def gather_beside(self, row: Any, g: Any, scale: Any, w: Any) -> None:
        row.add(scale, w)


@values
class Ledger(NamedTuple):
    """Sums over the examples scored, and the certificate's S = Σ g_t x_t (THEORY D1)."""

    sums: Any
    """The number of examples, Σ weight, Σ weight·ℓ, mistakes, and A = Σ g_t p_t with g_t = weight·slope."""
    S: Any

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

    def expect(self, row: Any) -> None:
        """Have fetched what `gather` will need for the features a little further on."""
        if row.followed(_SOON):
            for k in range(row.lo, row.hi):
                fetch(self.S, row.place(k + _SOON))

    def gather(self, row: Any, g: Any) -> None:
        """S += g·x."""
        if g != 0.0:
            row.add(g, self.S)

    def gather_beside(self, row: Any, g: Any, scale: Any, w: Any) -> None:
        """S += g·x and w += scale·x, in one go over the row; fetched ahead, which halves a wide pass."""
        if row.followed(_SOON):
            for k in range(row.lo, row.hi):
                fetch(self.S, row.place(k + _SOON))
                fetch(w, row.place(k + _SOON))
        if g != 0.0:
            row.add_both(scale, w, g, self.S)
        else:
            row.add(scale, w)

    def grown(self, size: int) -> Ledger:
        """Room for at least `size` coordinates."""
        if size <= self.S.size:
            return self
        S = np.zeros(size)
        S[: self.S.size] = self.S
        return Ledger(self.sums, S)

    def merged(self, other: Ledger) -> Ledger:
        """The accounts of two parts of a stream together: everything just adds up."""
        size = max(self.S.size, other.S.size)
        return Ledger(self.sums + other.sums, self.grown(size).S + other.grown(size).S)


def open_ledger(size: int = 0) -> Ledger:
    """Accounts with nothing in them yet."""
    return Ledger(np.zeros(5), np.zeros(size))


@kernel
def keep_accounts(loss: Any, ledger: Any, rows: Any, y: Any, weights: Any, predictions: Any, begin: Any) -> Any:
    """Enter rows from `begin` on, scored by `predictions`.

    Returns the first row that cannot be entered, and how many were left out because their prediction is not a number
    (a learner refused them).
    """
    left_out = 0
    size = rows.coordinates()
    if not ledger.room(size) or predictions.size < y.size:
        return begin, left_out
    for i in range(begin, y.size):
        weight = weights[i] if weights.size > 0 else 1.0
        p = predictions[i]
        if not rows.sound(i):
            return i, left_out
        row = rows.row(i)
        if not (loss.accepts(y[i]) and 0.0 <= weight < math.inf and row.ordered() and row.fits(size) and row.finite()):
            return i, left_out
        if math.isnan(p):
            left_out += 1
        elif not math.isfinite(p):
            return i, left_out
        elif weight > 0.0:
            slope = loss.slope(p, y[i])
            ledger.enter(loss, row, p, y[i], weight, slope)
            ledger.gather(row, weight * slope)
    return y.size, left_out
