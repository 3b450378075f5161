"""Sparse rows in the making: what the parsers of text write to."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue._jit import values
from rue._vectors import LANES, count_smaller
from rue.streams.base import _View

__all__ = ["CODE", "DONE", "FEATURES", "LINE", "PLACE", "POSITION", "ROOM", "ROWS", "WIDTH", "Csr", "open_csr"]

POSITION, LINE, ROWS, FEATURES, WIDTH, CODE, PLACE = (np.uint64(i) for i in range(7))
DONE, ROOM = np.uint64(0), np.uint64(99)
"""Codes: all is well; there is no room for the row, which is to be read again."""
_0, _1, _2, _7, _8, _32 = (np.uint64(i) for i in (0, 1, 2, 7, 8, 32))
_LOW, _LAST = np.uint64(0xFFFFFFFF), np.uint32(0xFFFFFFFF)
SHORT = np.uint64(128)
"""Features in a row that are put in order at once."""
LONG = 1024
"""Features in a row for which there is room to sort."""


@values
class Spans(NamedTuple):
    """Where in the text the names of a row's features stand, what they are hashed with, and where their namespace is.

    A seed with a bit above the lower 32 is a slot: see `hash_words`.
    """

    starts: Any
    stops: Any
    seeds: Any
    spaces: Any


@values
class Csr(NamedTuple):
    """The arrays of a CSR matrix, with labels and line numbers, filled row by row.

    `state` says how far: the position in the text, the line there, rows and features written, the width; and, after a
    row that is no example, what is wrong with it (CODE) and where in the text (PLACE).
    """

    state: Any
    offsets: Any
    indices: Any
    values: Any
    labels: Any
    lines: Any
    spans: Any
    slots: Any
    ranks: Any
    keys: Any
    spare: Any

    def arrange(self, lo: Any, hi: Any, level: Any) -> Any:
        """Sort the features lo:hi, whose indices are in `slots`, equal ones as they came: where an index occurs again,
        hi if none does.

        For each of a short row the smaller ones are counted, which has no branches that depend on them. Values that are
        all the same (`level`) stay where they are.
        """
        n, slots, indices = hi - lo, self.slots, self.indices
        if n > SHORT:
            return self.arrange_many(lo, hi)
        for i in range(n, n + _8):
            slots[i] = _LAST
        count_smaller(slots, n, self.ranks)
        for i in range(n):
            indices[lo + self.ranks[i]] = slots[i]
        if not level:
            for i in range(n):
                self.spare[i] = self.values[lo + i]
            for i in range(n):
                self.values[lo + self.ranks[i]] = self.spare[i]
        return self.repeated(lo, hi)

    def repeated(self, lo: Any, hi: Any) -> Any:
        """Where the last index that occurs again among lo:hi does, hi if none does."""
        found = False
        for i in range(lo + _1, hi):
            found |= self.indices[i] == self.indices[i - _1]
        again = hi
        if found:
            again -= _1
            while self.indices[again] != self.indices[again - _1]:
                again -= _1
        return again

    def arrange_many(self, lo: Any, hi: Any) -> Any:
        """`arrange` for a long row: keys, index above place, are put in order eight by eight, and these are merged."""
        n, keys = hi - lo, self.keys
        for i in range(n):
            keys[i] = np.uint64(self.slots[i]) << _32 | i
            self.spare[i] = self.values[lo + i]
        padded = (n + _7) & ~_7
        for i in range(n, padded):
            keys[i] = ~_0
        length = _8
        for start in range(_0, padded, length):
            for i in range(start, start + length):
                key, smaller = keys[i], _0
                for j in range(start, start + length):
                    smaller += np.uint64(keys[j] < key)
                keys[padded + start + smaller] = key
        source, target = padded, _0
        while length < n:
            for start in range(_0, n, length * _2):
                middle = min(start + length, n)
                self.merge(source + start, source + middle, source + min(middle + length, n), target + start)
            source, target, length = target, source, length * _2
        for i in range(n):
            key = keys[source + i]
            self.indices[lo + i] = key >> _32
            self.values[lo + i] = self.spare[key & _LOW]
        return self.repeated(lo, hi)

    def arrange_own(self, lo: Any, hi: Any) -> Any:
        """`arrange` where the indices are in their place already."""
        for i in range(hi - lo):
            self.slots[i] = self.indices[lo + i]
        return self.arrange(lo, hi, False)

    def merge(self, left: Any, middle: Any, stop: Any, to: Any) -> None:
        """Merge the sorted keys left:middle and middle:stop."""
        right = middle
        while left < middle and right < stop:
            a, b = self.keys[left], self.keys[right]
            smaller = np.uint64(a < b)
            self.keys[to] = min(a, b)
            left, right, to = left + smaller, right + _1 - smaller, to + _1
        while left < middle:
            self.keys[to] = self.keys[left]
            left, to = left + _1, to + _1
        while right < stop:
            self.keys[to] = self.keys[right]
            right, to = right + _1, to + _1

    def add_up(self, lo: Any, hi: Any) -> Any:
        """Replace sorted features of the same index by one with the sum of their values: the new end, and whether all
        are finite.
        """
        last, finite = lo, True
        for k in range(lo + _1, hi):
            if self.indices[k] == self.indices[last]:
                self.values[last] += self.values[k]
                finite &= math.isfinite(self.values[last])
            else:
                last += _1
                self.indices[last], self.values[last] = self.indices[k], self.values[k]
        return last + _1, finite

    def finish(self, lo: Any, hi: Any, label: Any, line: Any) -> None:
        """Enter the features lo:hi, sorted, as the next row."""
        row = self.state[ROWS]
        self.labels[row] = label
        self.lines[row] = line
        self.offsets[row + _1] = hi
        if hi > lo:
            self.state[WIDTH] = max(self.state[WIDTH], np.uint64(self.indices[hi - _1]) + _1)
        self.state[ROWS] = row + _1
        self.state[FEATURES] = hi

    def limit(self, lo: Any) -> Any:
        """Where a row that starts at feature lo must end at the latest."""
        return min(np.uint64(self.indices.size), lo + np.uint64(self.spare.size))

    def grown(self) -> Csr:
        """The same with more room."""
        used, room, longest = int(self.state[FEATURES]), 2 * self.indices.size, 4 * self.spare.size
        indices, values = np.empty(room, dtype=np.uint32), np.empty(room)
        indices[:used], values[:used] = self.indices[:used], self.values[:used]
        return self._replace(indices=indices, values=values, **_scratch(longest))

    def matrix(self, width: int) -> Any:
        """The rows so far."""
        features = int(self.state[FEATURES])
        return _View(self.offsets[: int(self.state[ROWS]) + 1], self.indices[:features], self.values[:features], width)


def open_csr(rows: int, features: int) -> Csr:
    """Room for some rows and features."""
    features = max(features, 16)
    offsets = np.empty(rows + 1, dtype=np.int64)
    offsets[0] = 0
    return Csr(
        np.zeros(7, dtype=np.uint64),
        offsets,
        np.empty(features, dtype=np.uint32),
        np.empty(features),
        np.empty(rows),
        np.empty(rows, dtype=np.int64),
        **_scratch(LONG),
    )


def _scratch(longest: int) -> dict[str, Any]:
    """What a row is read and sorted in."""
    room = longest + LANES
    spans = Spans(*(np.zeros(room, dtype=np.uint64) for _ in Spans._fields))
    slots, ranks = np.empty(room, dtype=np.uint32), np.empty(room, dtype=np.uint32)
    return {
        "spans": spans,
        "slots": slots,
        "ranks": ranks,
        "keys": np.empty(2 * room, dtype=np.uint64),
        "spare": np.empty(longest),
    }
