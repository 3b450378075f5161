"""One example, sparse or dense, behind the same few methods, so that every algorithm is written once.

A row knows `dot`, `add` and `square`; an algorithm that works coordinate by coordinate loops over
`range(row.lo, row.hi)` and asks for `row.place(k)` and `row.at(k)`. With an intercept, coordinate 0 of every point is
the intercept's and its feature is 1; the features then start at coordinate 1 (`shift` is 1, otherwise 0).

Sums run in a fixed order (four lanes in `dot_and_square`, one in `square`), so that the bits do not depend on how the
stream was cut into blocks.

>>> rows = DenseRows(np.array([3.0, 4.0, 1.0, 0.0]), np.uint64(2), np.uint64(0))
>>> row = rows.row(0)
>>> w = np.array([2.0, 1.0])
>>> float(row.dot(w)), float(row.square())
(10.0, 25.0)
>>> row.add(0.5, w)
>>> w.tolist()
[3.5, 3.0]
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import values
from rue.compiled.intrinsics import fetch

__all__ = ["SOON", "DenseRow", "DenseRows", "SparseRow", "SparseRows"]

# Unsigned indices need no wrap-around test, which saves a quarter of a sparse pass; and in Numba an unsigned and a
# signed whole number add up to a float, so the constants are unsigned too.
_0, _1, _2, _3, _4 = (np.uint64(i) for i in range(5))

SOON = np.uint64(40)
"""Prefetch distance, in features, of a point's coordinates, where other work is done between the features."""
_LATER = np.uint64(100)
"""Prefetch distance of coordinates where nothing is done but adding (`add_afar`)."""
_AHEAD = np.uint64(192)
"""Prefetch distance of the rows themselves: a few rows of text, longer than one memory latency."""
WIDE = 2**16
"""The most weights that fit into the cache (half a megabyte): up to here no coordinate is prefetched."""


class _Row:
    """What sparse and dense rows share; they differ in where a feature's coordinate is (`place`)."""

    __slots__ = ()

    values: Any
    lo: Any
    hi: Any
    shift: Any

    def dot_and_square(self: Any, w: Any) -> Any:
        """⟨w, x⟩ and ‖x‖² together: the squares cost nothing while the weights are on their way from memory."""
        a, b, c, e = 0.0, 0.0, 0.0, 0.0
        aa, bb, cc, ee = 0.0, 0.0, 0.0, 0.0
        x, far = self.values, w.size > WIDE and self.followed(SOON)
        if self.shift > _0:
            a, aa = w[_0], 1.0
        k = self.lo
        while k + _4 <= self.hi:
            self.fetch(k + _AHEAD)
            if far:
                fetch(w, self.place(k + SOON))
                fetch(w, self.place(k + SOON + _1))
                fetch(w, self.place(k + SOON + _2))
                fetch(w, self.place(k + SOON + _3))
            a += w[self.place(k)] * x[k]
            b += w[self.place(k + _1)] * x[k + _1]
            c += w[self.place(k + _2)] * x[k + _2]
            e += w[self.place(k + _3)] * x[k + _3]
            aa += x[k] * x[k]
            bb += x[k + _1] * x[k + _1]
            cc += x[k + _2] * x[k + _2]
            ee += x[k + _3] * x[k + _3]
            k += _4
        while k < self.hi:
            if far:
                fetch(w, self.place(k + SOON))
            a += w[self.place(k)] * x[k]
            aa += x[k] * x[k]
            k += _1
        return (a + b) + (c + e), (aa + bb) + (cc + ee)

    def dot(self: Any, w: Any) -> Any:
        """⟨w, x⟩."""
        return self.dot_and_square(w)[0]

    def add(self: Any, scale: Any, w: Any) -> None:
        """w += scale·x. Four coordinates are read before any is written, so that no read waits for a write."""
        x, k = self.values, self.lo
        if self.shift > _0:
            w[_0] += scale
        while k + _4 <= self.hi:
            i, j, m, n = self.place(k), self.place(k + _1), self.place(k + _2), self.place(k + _3)
            wi, wj, wm, wn = w[i], w[j], w[m], w[n]
            w[i] = wi + scale * x[k]
            w[j] = wj + scale * x[k + _1]
            w[m] = wm + scale * x[k + _2]
            w[n] = wn + scale * x[k + _3]
            k += _4
        while k < self.hi:
            w[self.place(k)] += scale * x[k]
            k += _1

    def add_twice(self: Any, scale: Any, w: Any, v: Any) -> None:
        """w += scale·x and v += scale·x, to the bits of two calls of `add`, in two thirds of their time."""
        x, k = self.values, self.lo
        if self.shift > _0:
            w[_0] += scale
            v[_0] += scale
        while k + _4 <= self.hi:
            i, j, m, n = self.place(k), self.place(k + _1), self.place(k + _2), self.place(k + _3)
            a, b, c, e = scale * x[k], scale * x[k + _1], scale * x[k + _2], scale * x[k + _3]
            wi, wj, wm, wn = w[i], w[j], w[m], w[n]
            vi, vj, vm, vn = v[i], v[j], v[m], v[n]
            w[i], w[j], w[m], w[n] = wi + a, wj + b, wm + c, wn + e
            v[i], v[j], v[m], v[n] = vi + a, vj + b, vm + c, vn + e
            k += _4
        while k < self.hi:
            w[self.place(k)] += scale * x[k]
            v[self.place(k)] += scale * x[k]
            k += _1

    def add_in_lines(self: Any, scale: Any, w: Any, v: Any, lines: Any, places: Any, top: Any) -> Any:
        """w += scale·x and v[lines[j]] += scale·x_j, where v has a line for each coordinate that has occurred.

        A coordinate that occurs for the first time gets line `top` + 1, and is written to `places`; returns how many
        lines there are then. There must be room for all that the row may need.
        """
        x, k, far = self.values, self.lo, self.followed(_LATER)
        if self.shift > _0:
            if lines[_0] == 0 and top < places.size:
                places[top], lines[_0], top = 0, top + 1, top + 1
            w[_0] += scale
            v[lines[_0]] += scale
        while k < self.hi:
            if far:
                later = self.place(k + _LATER)
                fetch(lines, later)
                fetch(w, later)
            j, step = self.place(k), scale * x[k]
            line = lines[j]
            if line == 0 and step != 0.0 and top < places.size:
                places[top], lines[j], top = j, top + 1, top + 1
                line = lines[j]
            w[j] += step
            v[line] += step
            k += _1
        return top

    def square(self: Any) -> Any:
        """‖x‖²."""
        total = 1.0 if self.shift > _0 else 0.0
        for k in range(self.lo, self.hi):
            total += self.values[k] * self.values[k]
        return total

    def largest(self: Any) -> Any:
        """The largest magnitude of the features (at least 1 with an intercept); NaN if one is."""
        most = 1.0 if self.shift > _0 else 0.0
        for k in range(self.lo, self.hi):
            size = abs(self.values[k])
            if not size <= most and most == most:  # once NaN, it stays so
                most = size
        return most

    def at(self: Any, k: Any) -> Any:
        """The feature at index k of the arrays, lo ≤ k < hi; its coordinate is `row.place(k)`. See also `feature`."""
        return self.values[k]

    def many(self: Any) -> Any:
        """How many features there are, the intercept counted as one."""
        return self.hi - self.lo + self.shift

    def feature(self: Any, k: Any) -> Any:
        """Coordinate and value of the k-th of the row's features, 0 ≤ k < `many()`, the intercept, if any, the first.

        Unlike `at` it counts from 0 and includes the intercept.
        """
        if k < self.shift:
            return _0, 1.0
        i = self.lo + k - self.shift
        return np.uint64(self.place(i)), self.values[i]

    def finite(self: Any) -> Any:
        """Whether every feature is a finite number."""
        for k in range(self.lo, self.hi):
            if not math.isfinite(self.values[k]):
                return False
        return True


class _SparseFields(NamedTuple):
    """The fields of `SparseRow`: a named tuple inherits from nothing else, so they have a class of their own."""

    indices: Any
    values: Any
    lo: Any
    hi: Any
    shift: Any
    given: Any


@values
class SparseRow(_Row, _SparseFields):
    """Features at the coordinates `indices[lo:hi]` of a point, with their `values[lo:hi]`.

    As the data have them their indices are `given[lo:hi]`, strictly increasing: the same array, unless a
    `rue.streams.numbering.Numbering` gives features other coordinates.
    """

    __slots__ = ()

    def place(self, k: Any) -> Any:
        """The coordinate of the k-th feature."""
        return self.indices[k] + self.shift

    def index_of(self, k: Any) -> Any:
        """The k-th feature's index, as the data have it."""
        return self.given[k]

    def fetch(self, k: Any) -> None:
        """Prefetch the k-th feature, whichever row it belongs to."""
        fetch(self.indices, k)
        fetch(self.values, k)

    def add_afar(self: Any, scale: Any, w: Any) -> None:
        """`add` with prefetch: w += scale·x, where w may not fit into the cache."""
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
        """Whether rows further on may be prefetched: at least `many` features come after this row's."""
        return self.hi + many <= np.uint64(self.indices.size)

    def fits(self, size: Any) -> Any:
        """Whether every index lies inside a point of `size` coordinates.

        Only the last index is tested: rows are checked to be `ordered` first, so it is the largest.
        """
        return self.shift <= size and (self.hi <= self.lo or self.indices[self.hi - _1] + self.shift < size)

    def ordered(self) -> Any:
        """Whether indices increase strictly; no early exit, so that it is a few vector instructions."""
        good = True
        for k in range(self.lo + _1, self.hi):
            good &= self.given[k] > self.given[k - _1]
        return good


class _DenseFields(NamedTuple):
    """The fields of `DenseRow`."""

    values: Any
    lo: Any
    hi: Any
    shift: Any


@values
class DenseRow(_Row, _DenseFields):
    """Every feature in its place: `values[lo:hi]`. Its methods are those of `SparseRow`."""

    __slots__ = ()

    def place(self, k: Any) -> Any:
        return k - self.lo + self.shift

    def index_of(self, k: Any) -> Any:
        return k - self.lo

    def fetch(self, k: Any) -> None:
        fetch(self.values, k)

    def add_twice(self: Any, scale: Any, w: Any, v: Any) -> None:
        """The same bits from a plain loop, of which the compiler makes vector instructions where rows are dense."""
        if self.shift > _0:
            w[_0] += scale
            v[_0] += scale
        for k in range(self.lo, self.hi):
            step = scale * self.values[k]
            w[self.place(k)] += step
            v[self.place(k)] += step

    def add_afar(self: Any, scale: Any, w: Any) -> None:
        """`add`: dense rows are never far from each other."""
        self.add(scale, w)

    def followed(self, many: Any) -> Any:
        """Whether prefetching helps."""
        return False  # the processor itself foresees where a dense row goes: nothing to prefetch

    def fits(self, size: Any) -> Any:
        """Whether arrays of so many coordinates have a place for every feature."""
        return self.hi - self.lo + self.shift <= size

    def ordered(self) -> Any:
        """Whether indices rise: always, because a dense row has all of them."""
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
        """Whether row i is in bounds: `indptr` puts it inside the arrays."""
        return 0 <= self.indptr[i] <= self.indptr[i + 1] <= min(self.indices.size, self.values.size)

    def row(self, i: Any) -> SparseRow:
        """Row i."""
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
        """The number of features, and one more with an intercept."""
        return self.width + self.shift

    def sound(self, i: Any) -> Any:
        """Whether row i lies in the array."""
        return (i + 1) * self.width <= self.values.size

    def row(self, i: Any) -> DenseRow:
        """Row i."""
        lo = np.uint64(i) * self.width
        return DenseRow(self.values, lo, lo + self.width, self.shift)
