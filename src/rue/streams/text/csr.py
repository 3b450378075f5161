"""Sparse rows as parsers of text write them: into arrays that are larger than needed, and grow when they are full.

How many features a text has is not known before it is read, and to count them would be one more pass over it. So room
is made by what earlier texts had (`Density`), and a row that does not fit is read again after the arrays have grown.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import noinline, values
from rue.compiled.intrinsics import WORD_LANES, count_smaller
from rue.streams.block import _View

__all__ = ["CODE", "DONE", "FEATURES", "LINE", "PLACE", "POSITION", "ROOM", "ROWS", "WIDTH", "Csr", "open_csr"]

POSITION, LINE, ROWS, FEATURES, WIDTH, CODE, PLACE = (np.uint64(i) for i in range(7))
DONE, ROOM = np.uint64(0), np.uint64(99)
"""Codes: all is well; there is no room for the row, which is to be read again."""
_0, _1, _8, _32, _64, _255, _256 = (np.uint64(i) for i in (0, 1, 8, 32, 64, 255, 256))
_LOW = np.uint64(0xFFFFFFFF)
SHORT = np.uint64(128)
"""Features in a row that are put in order at once."""
LONG = 1024
"""Features in a row for which there is room to sort."""


@values
class Spans(NamedTuple):
    """Where in the text the names of a row's features stand, and what they are hashed with, or their slots: see
    `hash_words`.
    """

    starts: Any
    stops: Any
    seeds: Any


@values
class Csr(NamedTuple):
    """The arrays of a CSR matrix, with labels and line numbers, filled row by row.

    `state` says how far: the position in the text, the line there, rows and features written, the width; and, after a
    row that is no example, what is wrong with it (CODE) and where in the text (PLACE). With the code ROOM, PLACE is how
    many features the row needs room for, or 0 if no more than it has words. `letters` are those of the namespaces.
    """

    state: Any
    offsets: Any
    indices: Any
    values: Any
    labels: Any
    lines: Any
    spans: Any
    slots: Any
    letters: Any
    ranks: Any
    keys: Any
    spare: Any

    @noinline
    def arrange(self, lo: Any, hi: Any) -> Any:
        """Sort the features lo:hi, whose indices are in `slots`, equal ones as they came: where an index occurs again,
        hi if none does.

        For each of a short row the smaller ones are counted, which has no branches that depend on them.
        """
        n, again = hi - lo, hi
        if n > SHORT:
            self.rank_many(n)
        else:
            count_smaller(self.slots, n, self.ranks)
        for i in range(n):
            self.spare[i] = self.values[lo + i]
        for i in range(n):
            to = lo + self.ranks[i]
            self.indices[to] = self.slots[i]
            self.values[to] = self.spare[i]
        for i in range(lo + _1, hi):
            if self.indices[i] == self.indices[i - _1]:
                again = i
        return again

    @noinline
    def rank_many(self, n: Any) -> None:
        """`count_smaller` for a long row: indices, with their places, are sorted by one byte after the other."""
        keys, counts = self.keys, self.ranks
        for i in range(n):
            # The index above, the place below: one number to move, and equal indices stay in the order in which they
            # came.
            keys[i] = np.uint64(self.slots[i]) << _32 | i
        source, target = _0, n
        # A radix sort: by the lowest byte of the index first, each time keeping the order of equals.
        for shift in range(_32, _64, _8):
            for byte in range(_256):
                counts[byte] = 0
            for i in range(source, source + n):
                counts[keys[i] >> shift & _255] += _1
            to = target
            for byte in range(_256):
                to += counts[byte]
                counts[byte] = to - counts[byte]
            for i in range(source, source + n):
                byte = keys[i] >> shift & _255
                keys[counts[byte]] = keys[i]
                counts[byte] += _1
            source, target = target, source
        for i in range(n):
            self.ranks[keys[i] & _LOW] = i

    def lift(self, lo: Any, hi: Any) -> None:
        """Copy the indices lo:hi to `slots`."""
        for i in range(hi - lo):
            self.slots[i] = self.indices[lo + i]

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
            width = np.uint64(self.indices[hi - _1]) + _1
            self.state[WIDTH] = width if width > self.state[WIDTH] else self.state[WIDTH]
        self.state[ROWS] = row + _1
        self.state[FEATURES] = hi

    def limit(self, lo: Any) -> Any:
        """Where a row that starts at feature lo must end at the latest."""
        room, longest = np.uint64(self.indices.size), lo + np.uint64(self.spare.size)
        return room if room < longest else longest

    def grown(self, features: int, longest: int) -> Csr:
        """The same with room for so many features more, and for so many in a row."""
        used = int(self.state[FEATURES])
        indices, values = np.empty(used + features, dtype=np.uint32), np.empty(used + features)
        indices[:used], values[:used] = self.indices[:used], self.values[:used]
        scratch = _scratch(longest) if longest > self.spare.size else {}
        return self._replace(indices=indices, values=values, **scratch)

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
    room = longest + WORD_LANES
    spans = Spans(*(np.zeros(room, dtype=np.uint64) for _ in Spans._fields))
    slots, ranks = np.empty(room, dtype=np.uint32), np.empty(room, dtype=np.uint32)
    return {
        "spans": spans,
        "slots": slots,
        "letters": np.empty(room, dtype=np.uint8),
        "ranks": ranks,
        "keys": np.empty(2 * room, dtype=np.uint64),
        "spare": np.empty(longest),
    }
