"""The accounts of a run: a function of the stream and of the predictions made before each update, of nothing else.

A ledger is written to inside the learning loop, or by `keep_accounts` from the predictions of any other model; either
way by the same compiled method, example by example, so the sums are the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import inline, kernel, noinline, values
from rue.layout import Array, Layout, Number, Numbers
from rue.norms import LARGEST_TERM

__all__ = [
    "EXAMPLES",
    "LOSS",
    "MISTAKES",
    "WEIGHT",
    "A",
    "Ledger",
    "Silent",
    "add_up",
    "keep_accounts",
    "open_ledger",
    "overflows",
]

SUMS = Numbers(
    Number("examples", "How many examples were scored."),
    Number("weight", "Σ weight of the examples."),
    Number("loss", "Σ weight·ℓ."),
    Number("mistakes", "How many predictions had the wrong sign, or none."),
    Number("a", "A = Σ g_t p_t, where g_t = weight·slope (docs/theory.md, D1)."),
)
EXAMPLES, WEIGHT, LOSS, MISTAKES, A = SUMS.indices("examples", "weight", "loss", "mistakes", "a")
WAITING = Numbers(
    Number("p", "The prediction."),
    Number("y", "The label."),
    Number("mass", "The weight of the example."),
    Number("value", "The loss."),
    Number("slope", "The slope of the loss at the prediction."),
)
P, Y, MASS, VALUE, SLOPE = WAITING.indices("p", "y", "mass", "value", "slope")
LEDGER = Layout(
    Array("sums", "Sums over the examples that were scored.", (SUMS,)),
    Array("S", "S = Σ g_t x_t.", ("coordinate",), merge="added"),
    Array("waiting", "The last few rows, which are not in the sums yet.", (WAITING, "row"), saved=False),
)
TOGETHER = 64
"""How many rows are entered at once."""
LARGE = 1e75
"""Where prediction, label, weight and features are no larger than this, no product of a round overflows."""


@inline
def overflows(loss: Any, p: Any, y: Any, weight: Any, slope: Any) -> Any:
    """Whether the loss of a round, or its part of A = Σ g_t p_t, is too large to be added up."""
    value = loss.value(p, y)
    finite = math.isfinite(p + slope + value)
    return not (finite and abs(weight * value) <= LARGEST_TERM and abs(weight * slope * p) <= LARGEST_TERM)


@values
class Silent(NamedTuple):
    """No accounts: for a pass that wants predictions and nothing else."""

    nothing: Any

    def room(self, size: Any) -> Any:
        return True

    def enter(self, loss: Any, row: Any, p: Any, y: Any, weight: Any) -> None:
        pass

    def next_row(self, loss: Any, rows: Any, i: Any, scored: Any) -> None:
        pass

    @noinline
    def close(self, loss: Any, rows: Any, end: Any) -> None:
        pass


@values
class Ledger(NamedTuple):
    """Sums over the examples scored, and the certificate's S = Σ g_t x_t (docs/theory.md, D1)."""

    sums: Any
    """The number of examples, Σ weight, Σ weight·ℓ, mistakes, and A = Σ g_t p_t with g_t = weight·slope."""
    S: Any
    waiting: Any
    """Of the last few rows, which are not in the sums yet, prediction, label, weight, loss and slope."""
    many: Any
    """How many they are."""
    apart: Any
    """Whether S is left to somebody else, who has the predictions (`add_up`)."""

    def room(self, size: Any) -> Any:
        """Whether rows of `size` coordinates fit."""
        return self.apart or size <= self.S.size

    # Many rows together take a fraction of the time of each by itself: a learner has tables of its own in the cache.

    def enter(self, loss: Any, row: Any, p: Any, y: Any, weight: Any) -> None:
        """An example that is scored; then comes `next_row`."""
        k, waiting = self.many[0], self.waiting
        waiting[P, k], waiting[Y, k], waiting[MASS, k] = p, y, weight

    def next_row(self, loss: Any, rows: Any, i: Any, scored: Any) -> None:
        """Row i is done, whether it was scored or not; rows follow each other, and after the last comes `close`."""
        if not scored:
            self.enter(loss, rows.row(i), 1.0, 1.0, 0.0)
        self.many[0] += 1
        if self.many[0] == TOGETHER:
            self.close(loss, rows, i + 1)

    @noinline
    def close(self, loss: Any, rows: Any, end: Any) -> None:
        """Enter what is waiting, of the rows before `end`."""
        sums, waiting, many = self.sums, self.waiting, self.many[0]
        examples, mass, lost, mistakes, along = sums[EXAMPLES], sums[WEIGHT], sums[LOSS], sums[MISTAKES], sums[A]
        loss.at_once(0, many, waiting[VALUE], waiting[SLOPE], waiting[P], waiting[Y])
        for k in range(many):
            p, weight = waiting[P, k], waiting[MASS, k]
            if weight > 0.0:
                examples += 1.0
                mass += weight
                lost += weight * waiting[VALUE, k]
                mistakes += 1.0 if waiting[Y, k] * p <= 0.0 else 0.0
                along += weight * waiting[SLOPE, k] * p
        sums[EXAMPLES], sums[WEIGHT], sums[LOSS], sums[MISTAKES], sums[A] = examples, mass, lost, mistakes, along
        for k in range(0 if self.apart else many):
            weight, g = waiting[MASS, k], waiting[MASS, k] * waiting[SLOPE, k]
            if weight > 0.0 and g != 0.0:  # what was not scored may have any slope
                rows.row(end - many + k).add_afar(g, self.S)
        self.many[0] = 0

    def grown(self, size: int) -> Ledger:
        """Room for at least `size` coordinates."""
        if size <= self.S.size:
            return self
        S = np.zeros(size)
        S[: self.S.size] = self.S
        return self._replace(S=S)

    def merge(self, parts: Sequence[Ledger]) -> Ledger:
        """The sums of several parts of a stream together, each of which went on from a copy of this ledger."""
        size = max(ledger.S.size for ledger in (self, *parts))
        return open_ledger()._replace(**LEDGER.merged(self.grown(size), [part.grown(size) for part in parts]))


def open_ledger(size: int = 0) -> Ledger:
    """Accounts with nothing in them yet."""
    return Ledger(
        np.zeros(len(SUMS)), np.zeros(size), np.zeros((len(WAITING), TOGETHER)), np.zeros(1, dtype=np.int64), False
    )


@kernel
def keep_accounts(loss: Any, ledger: Any, rows: Any, y: Any, weights: Any, predictions: Any, begin: Any) -> Any:
    """Enter rows from `begin` on, scored by `predictions`.

    Returns the first row that cannot be entered, and how many were left out because their prediction is NaN (a learner
    refused them) or because their loss, or slope times features, is too large to be added up; the prediction of such a
    row is made NaN.
    """
    left_out, i, good = 0, begin, True
    size = rows.coordinates()
    if not ledger.room(size) or predictions.size < y.size:
        return begin, left_out
    while good and i < y.size:
        good = rows.sound(i)
        if good:
            weight, p, row = weights[i] if weights.size > 0 else 1.0, predictions[i], rows.row(i)
            largest = row.largest()
            good = loss.accepts(y[i]) and 0.0 <= weight < math.inf and row.ordered() and row.fits(size)
            good = good and largest < math.inf
            if good and weight > 0.0 and math.isfinite(p) and not max(abs(p), abs(y[i]), weight, largest) <= LARGE:
                slope = loss.slope(p, y[i])
                if overflows(loss, p, y[i], weight, slope) or not abs(weight * slope) * largest <= LARGEST_TERM:
                    p = math.nan
                    predictions[i] = p
            scored = good and math.isfinite(p) and weight > 0.0
            if good and math.isnan(p):
                left_out += 1
            elif not math.isfinite(p):
                good = False
            if scored:
                ledger.enter(loss, row, p, y[i], weight)
        if good:
            ledger.next_row(loss, rows, i, scored)
            i += 1
    ledger.close(loss, rows, i)
    return i, left_out


@kernel
def add_up(loss: Any, ledger: Any, rows: Any, y: Any, weights: Any, predictions: Any) -> Any:
    """Enter the rows that have a prediction, which are known to be sound; the others may be anything.

    Nothing is entered, and False returned, if there is no room for the rows or they have not as many predictions.
    """
    if not ledger.room(rows.coordinates()) or predictions.size < y.size:
        return False
    for i in range(y.size):
        weight = weights[i] if weights.size > 0 else 1.0
        scored = weight > 0.0 and math.isfinite(predictions[i])
        if scored:
            ledger.enter(loss, rows, predictions[i], y[i], weight)
        ledger.next_row(loss, rows, i, scored)
    ledger.close(loss, rows, y.size)
    return True
