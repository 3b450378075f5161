"""The accounts of a run: a function of the stream and of the predictions made before each update, of nothing else.

They are what the certificate D1 needs (docs/theory.md): with slopes g_t = weight·ℓ'(p_t, y_t), the regret against any
u is at most A − ⟨S, u⟩, where A = Σ g_t p_t and S = Σ g_t x_t. A ledger is written to inside the learning loop, or by
`keep_accounts` from the predictions of any other model; either way by the same compiled method, example by example, so
the sums have the same bits.

>>> import numpy as np
>>> from rue import Square
>>> from rue.rows import DenseRows
>>> rows = DenseRows(np.array([1.0, 2.0]), np.uint64(1), np.uint64(0))  # x = 1 and x = 2
>>> ledger = open_ledger(1)
>>> keep_accounts(Square(), ledger, rows, np.array([1.0, 1.0]), np.empty(0), np.array([0.0, 2.0]), 0)
(2, 0)
>>> ledger.sums[EXAMPLES], ledger.sums[LOSS], ledger.sums[A], ledger.S
(np.float64(2.0), np.float64(2.0), np.float64(4.0), array([2.]))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import inline, kernel, noinline, values
from rue.layout import Array, Layout, Number, Numbers
from rue.norms import LARGEST_TERM
from rue.windows import WindowSums, no_windows

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
    "trusted_range",
]

SUMS = Numbers(
    Number("examples", "How many examples were scored."),
    Number("weight", "Σ weight of the examples."),
    Number("loss", "Σ weight·ℓ."),
    Number("mistakes", "How many predictions had the wrong sign, or none."),
    Number("a", "A = Σ g_t p_t, where g_t = weight·slope (docs/theory.md, D1)."),
)
EXAMPLES, WEIGHT, LOSS, MISTAKES, A = SUMS.indices("examples", "weight", "loss", "mistakes", "a")
# The buffer of rows not yet summed.
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
    Array("waiting", "Buffer of rows not yet summed.", (WAITING, "row"), saved=False),
)
BATCH = 64
"""How many rows are added to the sums at a time.

Many rows together take a fraction of the time of each by itself: their losses are computed in vector instructions, and
the learner's tables stay in the cache while it learns."""
LARGE = 1e75
"""Where prediction, label, weight and features are no larger than this, no product of a round overflows.

That holds for losses which grow no faster than a square (`trusted_range`); others are looked at in every round."""
TAME = 1e50
"""The largest Lipschitz or smoothness constant for which `LARGE` is still small enough."""


def trusted_range(loss: Any) -> float:
    """How large the numbers of a round may be without its loss and slope being checked for overflow.

    e^p (`Poisson`) or a user's (p − y)⁴ overflows at predictions far below `LARGE`: such a loss is always checked.

    >>> from rue import Logistic, Poisson
    >>> trusted_range(Logistic()), trusted_range(Poisson())
    (1e+75, 0.0)
    """
    constants = [constant for constant in (loss.lipschitz, loss.smooth) if constant is not None]
    tame = bool(loss.depends_on) and any(constant <= TAME for constant in constants)
    return LARGE if tame or loss.quadratic or loss.linear else 0.0


@inline
def overflows(loss: Any, p: Any, y: Any, weight: Any, slope: Any) -> Any:
    """Whether the loss of a round, or its part of A = Σ g_t p_t, is too large to be added up."""
    value = loss.value(p, y)
    finite = math.isfinite(p + slope + value)
    return not (finite and abs(weight * value) <= LARGEST_TERM and abs(weight * slope * p) <= LARGEST_TERM)


@values
class Silent(NamedTuple):
    """A ledger that adds up nothing, for a pass that wants predictions only; it has those methods that kernels call."""

    nothing: Any
    """Dummy: Numba needs a field."""

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
    """Buffer of rows not yet summed: prediction, label, weight, loss and slope of each."""
    count: Any
    """How many rows are waiting, in an array of one number."""
    adds_gradients: Any
    """False when a helper thread adds up S from the predictions (`add_up`)."""
    trusted: Any
    """`keep_accounts` looks for overflow in rounds with a larger number than this (`trusted_range`)."""
    windows: Any
    """The same sums window by window; they are added up with S."""

    def room(self, size: Any) -> Any:
        """Whether rows of `size` coordinates fit."""
        return not self.adds_gradients or size <= self.S.size

    def enter(self, loss: Any, row: Any, p: Any, y: Any, weight: Any) -> None:
        """Enter the prediction and the label of a row that is scored; call `next_row` after it.

        `loss` and `row` are not used: rows are summed in `close`. A ledger that adds up row by row would need them.
        """
        k, waiting = self.count[0], self.waiting
        waiting[P, k], waiting[Y, k], waiting[MASS, k] = p, y, weight

    def next_row(self, loss: Any, rows: Any, i: Any, scored: Any) -> None:
        """End row i, scored or not. It is called for each row in order, and `close` after the last."""
        if not scored:
            self.enter(loss, rows.row(i), 1.0, 1.0, 0.0)  # a weight of 0: it counts for nothing
        self.count[0] += 1
        if self.count[0] == BATCH:
            self.close(loss, rows, i + 1)

    @noinline
    def close(self, loss: Any, rows: Any, end: Any) -> None:
        """Flush: add the waiting rows, the last ones before row `end`, to the sums. Called every `BATCH` rows."""
        sums, waiting, many = self.sums, self.waiting, self.count[0]
        examples, mass, lost, mistakes, a = sums[EXAMPLES], sums[WEIGHT], sums[LOSS], sums[MISTAKES], sums[A]
        loss.at_once(0, many, waiting[VALUE], waiting[SLOPE], waiting[P], waiting[Y])
        for k in range(many):
            p, weight = waiting[P, k], waiting[MASS, k]
            if weight > 0.0:
                examples += 1.0
                mass += weight
                lost += weight * waiting[VALUE, k]
                mistakes += 1.0 if waiting[Y, k] * p <= 0.0 else 0.0
                a += weight * waiting[SLOPE, k] * p
        sums[EXAMPLES], sums[WEIGHT], sums[LOSS], sums[MISTAKES], sums[A] = examples, mass, lost, mistakes, a
        begin = 0 if self.adds_gradients else many
        while begin < many:
            begin = self.add_gradients(rows, begin, many, end - many)
        self.count[0] = 0

    def add_gradients(self, rows: Any, begin: Any, many: Any, first: Any) -> Any:
        """S += g·x for those waiting rows from `begin` on that are in one window; returns where the next one begins.

        `first` is the row that has waited longest.
        """
        waiting, windows, window, end = self.waiting, self.windows, 0, many
        windowed = windows.sums.shape[0] > 0
        if windowed:
            window, end = windows.stretch(waiting[MASS], begin, many, self.S)
            sizes = waiting[MASS], waiting[VALUE], waiting[SLOPE]
            windows.enter(window, begin, end, waiting[P], waiting[Y], *sizes)
        for k in range(begin, end):
            g = waiting[MASS, k] * waiting[SLOPE, k]
            if waiting[MASS, k] > 0.0 and g != 0.0:  # what was not scored may have any slope
                row = rows.row(first + k)
                if windowed:
                    windows.add(window, g, row, self.S)
                else:
                    row.add_afar(g, self.S)
        return end

    def grown(self, size: int) -> Ledger:
        """The same accounts with room for at least `size` coordinates of S."""
        if size <= self.S.size:
            return self
        S = np.zeros(size)
        S[: self.S.size] = self.S
        return self._replace(S=S, windows=self.windows.grown(size))

    def of_window(self, first: int, last: int) -> Ledger:
        """The sums of some consecutive windows, counted from 0, both ends included."""
        part, windows = slice(first, last + 1), self.windows
        S = windows.spread(windows.columns()[0][part].sum(axis=0), self.S.size)
        return open_ledger()._replace(S=S, sums=windows.pieces()[part].sum(axis=0)[: len(SUMS)].copy())

    def merge(self, parts: Sequence[Ledger]) -> Ledger:
        """The sums of several parts of a stream together, each of which went on from a copy of this ledger."""
        size = max(ledger.S.size for ledger in (self, *parts))
        base, grown = self.grown(size), [part.grown(size) for part in parts]
        windows = base.windows.merge([part.windows for part in grown])
        return open_ledger()._replace(**LEDGER.merged(base, grown), windows=windows)


def open_ledger(size: int = 0, windows: WindowSums | None = None) -> Ledger:
    """Accounts of no examples, with room for rows of `size` coordinates; with `windows`, window by window too."""
    return Ledger(
        np.zeros(len(SUMS)),
        np.zeros(size),
        np.zeros((len(WAITING), BATCH)),
        np.zeros(1, dtype=np.int64),
        True,
        LARGE,
        no_windows() if windows is None else windows.grown(size),
    )


@kernel
def keep_accounts(loss: Any, ledger: Any, rows: Any, y: Any, weights: Any, predictions: Any, begin: Any) -> Any:
    """Add up the rows from `begin` on, with the `predictions` of any model.

    Returns the first row that is not valid (a non-finite feature, unsorted indices, a label that the loss does not
    accept, an infinite prediction), which ends it, and how many rows were left out. A row is left out if its
    prediction is NaN, because a learner refused it, or if its loss, or slope times features, is too large to be added
    up; the prediction of such a row is set to NaN.
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
            small = max(abs(p), abs(y[i]), weight, largest) <= ledger.trusted
            if good and weight > 0.0 and math.isfinite(p) and not small:
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
    """Add up the rows that have a finite prediction, which a learner has checked; rows without one are never read.

    Does nothing and returns False if the ledger has no room for the rows, or there are fewer predictions than rows.
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
