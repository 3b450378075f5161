"""One example, sparse or dense, behind the same few words, so that every algorithm is written once.

A row knows `dot`, `add` and `square`, written once for both kinds; an algorithm that works coordinate by coordinate
loops over `range(row.lo, row.hi)` and asks for `row.place(k)` and `row.at(k)`. With an intercept, coordinate 0 of every
point is the intercept's and its feature is 1; the features then start at coordinate 1 (`shift` is 1, otherwise 0).

Sums run in four lanes in a fixed order, so that the bits do not depend on how the stream was cut into blocks.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rue.compiled import values
from rue.compiled.intrinsics import fetch

__all__ = ["SOON", "DenseRow", "DenseRows", "SparseRow", "SparseRows"]

R = TypeVar("R")

# Unsigned indices need no wrap-around test, which saves a quarter of a sparse pass; and in Numba an unsigned and a
# signed whole number add up to a float, so the constants are unsigned too.
_0, _1, _2, _3, _4 = (np.uint64(i) for i in range(5))

SOON = np.uint64(40)
"""How far ahead of its sums a pass has fetched what is kept of the features that come, if `row.followed` by so many."""
_LATER = np.uint64(100)
"""The same where there is nothing else to do but to add."""
_AHEAD = np.uint64(192)
"""How far ahead it has its data fetched: a few rows of text, more than memory takes to answer."""
WIDE = 2**16
"""How many weights fit into the cache."""


def dot_and_square(row: Any, w: Any) -> Any:
    """⟨w, x⟩ and ‖x‖² in one go: the squares cost nothing while the weights are fetched."""
    a, b, c, e = 0.0, 0.0, 0.0, 0.0
    aa, bb, cc, ee = 0.0, 0.0, 0.0, 0.0
    x, far = row.values, w.size > WIDE and row.followed(SOON)
    if row.shift > _0:
        a, aa = w[_0], 1.0
    k = row.lo
    while k + _4 <= row.hi:
        row.fetch(k + _AHEAD)
        if far:
            fetch(w, row.place(k + SOON))
            fetch(w, row.place(k + SOON + _1))
            fetch(w, row.place(k + SOON + _2))
            fetch(w, row.place(k + SOON + _3))
        a += w[row.place(k)] * x[k]
        b += w[row.place(k + _1)] * x[k + _1]
        c += w[row.place(k + _2)] * x[k + _2]
        e += w[row.place(k + _3)] * x[k + _3]
        aa += x[k] * x[k]
        bb += x[k + _1] * x[k + _1]
        cc += x[k + _2] * x[k + _2]
        ee += x[k + _3] * x[k + _3]
        k += _4
    while k < row.hi:
        if far:
            fetch(w, row.place(k + SOON))
        a += w[row.place(k)] * x[k]
        aa += x[k] * x[k]
        k += _1
    return (a + b) + (c + e), (aa + bb) + (cc + ee)


def dot(row: Any, w: Any) -> Any:
    """⟨w, x⟩."""
    return row.dot_and_square(w)[0]


def add(row: Any, scale: Any, w: Any) -> None:
    """w += scale·x, read four at a time, so that no feature waits until another's is written."""
    x, k = row.values, row.lo
    if row.shift > _0:
        w[_0] += scale
    while k + _4 <= row.hi:
        i, j, m, n = row.place(k), row.place(k + _1), row.place(k + _2), row.place(k + _3)
        wi, wj, wm, wn = w[i], w[j], w[m], w[n]
        w[i] = wi + scale * x[k]
        w[j] = wj + scale * x[k + _1]
        w[m] = wm + scale * x[k + _2]
        w[n] = wn + scale * x[k + _3]
        k += _4
    while k < row.hi:
        w[row.place(k)] += scale * x[k]
        k += _1


def square(row: Any) -> Any:
    """‖x‖²."""
    total = 1.0 if row.shift > _0 else 0.0
    for k in range(row.lo, row.hi):
        total += row.values[k] * row.values[k]
    return total


def largest(row: Any) -> Any:
    """The largest magnitude of its features; NaN if one is."""
    most = 1.0 if row.shift > _0 else 0.0
    for k in range(row.lo, row.hi):
        size = abs(row.values[k])
        if not size <= most and most == most:  # once NaN, it stays so
            most = size
    return most


def at(row: Any, k: Any) -> Any:
    """The k-th feature, lo ≤ k < hi; its coordinate is `row.place(k)`."""
    return row.values[k]


def many(row: Any) -> Any:
    """How many features there are, the intercept counted as one."""
    return row.hi - row.lo + row.shift


def feature(row: Any, k: Any) -> Any:
    """The coordinate and the value of the k-th of all features, the intercept counted as one."""
    if k < row.shift:
        return _0, 1.0
    i = row.lo + k - row.shift
    return np.uint64(row.place(i)), row.values[i]


def finite(row: Any) -> Any:
    """Whether every feature is a finite number."""
    for k in range(row.lo, row.hi):
        if not math.isfinite(row.values[k]):
            return False
    return True


def _row(cls: type[R]) -> type[R]:
    """Give a kind of row, which says where its features are, the words that all rows share."""
    for word in (dot_and_square, dot, add, square, largest, at, many, feature, finite):
        setattr(cls, word.__name__, word)
    return values(cls)


@_row
class SparseRow(NamedTuple):
    """Features at the places `indices[lo:hi]` of a point, with their `values[lo:hi]`.

    As the data have them their indices are `given[lo:hi]`, strictly increasing: the same array, unless a
    `rue.streams.numbering.Numbering` says where features are.
    """

    indices: Any
    values: Any
    lo: Any
    hi: Any
    shift: Any
    given: Any

    def place(self, k: Any) -> Any:
        return self.indices[k] + self.shift

    def fetch(self, k: Any) -> None:
        """Have the k-th feature fetched, whichever row it belongs to."""
        fetch(self.indices, k)
        fetch(self.values, k)

    def add_afar(self: Any, scale: Any, w: Any) -> None:
        """w += scale·x, where w may not fit into the cache."""
        x, k = self.values, self.lo
        if w.size <= WIDE or not self.followed(_LATER):
            self.add(scale, w)
            k = self.hi
        elif self.shift > _0:
            w[_0] += scale
        while k < self.hi:
            fetch(w, self.place(k + _LATER))
            w[self.place(k)] += scale * x[k]
            k += _1

    def followed(self, many: Any) -> Any:
        """Whether at least so many features come after it, in whichever row."""
        return self.hi + many <= np.uint64(self.indices.size)

    def fits(self, size: Any) -> Any:
        """Whether every index lies inside a point of `size` coordinates; the given indices must be increasing."""
        return self.shift <= size and (self.hi <= self.lo or self.indices[self.hi - _1] + self.shift < size)

    def ordered(self) -> Any:
        """Whether indices increase strictly; no early exit, so that it is a few vector instructions."""
        good = True
        for k in range(self.lo + _1, self.hi):
            good &= self.given[k] > self.given[k - _1]
        return good


@_row
class DenseRow(NamedTuple):
    """Every feature in its place: `values[lo:hi]`."""

    values: Any
    lo: Any
    hi: Any
    shift: Any

    def place(self, k: Any) -> Any:
        return k - self.lo + self.shift

    def fetch(self, k: Any) -> None:
        fetch(self.values, k)

    def add_afar(self: Any, scale: Any, w: Any) -> None:
        self.add(scale, w)

    def followed(self, many: Any) -> Any:
        return False  # no need to look: the processor sees by itself where a dense row goes

    def fits(self, size: Any) -> Any:
        return self.hi - self.lo + self.shift <= size

    def ordered(self) -> Any:
        return True


@values
class SparseRows(NamedTuple):
    """Consecutive sparse examples: the arrays of a CSR matrix, indices as uint32; `given` as in `SparseRow`."""

    indptr: Any
    indices: Any
    values: Any
    width: Any
    shift: Any
    given: Any

    def coordinates(self) -> Any:
        """How many coordinates a point needs for these rows."""
        return self.width + self.shift

    def sound(self, i: Any) -> Any:
        """Whether row i's place in the arrays makes sense."""
        return 0 <= self.indptr[i] <= self.indptr[i + 1] <= min(self.indices.size, self.values.size)

    def row(self, i: Any) -> SparseRow:
        return SparseRow(
            self.indices, self.values, np.uint64(self.indptr[i]), np.uint64(self.indptr[i + 1]), self.shift, self.given
        )


@values
class DenseRows(NamedTuple):
    """Consecutive dense examples: a matrix laid out row after row, and its width."""

    values: Any
    width: Any
    shift: Any

    def coordinates(self) -> Any:
        return self.width + self.shift

    def sound(self, i: Any) -> Any:
        return (i + 1) * self.width <= self.values.size

    def row(self, i: Any) -> DenseRow:
        lo = np.uint64(i) * self.width
        return DenseRow(self.values, lo, lo + self.width, self.shift)
