"""Groups: how much weight each feature had that is only ever 0 or 1, so that its sums can be read as a group's."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from rue.compiled import kernel
from rue.errors import DataError
from rue.streams import Block

__all__ = ["GroupCounts"]

MOST = 4096
"""The most features to count for; a stream with more, as text has, has no groups."""
WIDEST = 2**22
"""The most features of a stream whose groups are counted."""
FIRST = 64
"""Rows after which columns of a dense block that are not 0 or 1 are left alone."""


@kernel
def _count(lines: Any, places: Any, counts: Any, known: Any, rows: Any, columns: Any, weights: Any, p: Any) -> Any:
    """Add each row's weight to the counts of its features that are 1; NaN for a feature that has another value.

    `columns` are those of a dense row to look at, empty for sparse rows. False if there are more than `MOST` features.
    """
    for i in range(p.size):
        weight = weights[i] if weights.size > 0 else 1.0
        if not (weight > 0.0 and p[i] == p[i]):
            continue
        row = rows.row(i)
        for c in range(columns.size if columns.size > 0 else np.int64(row.hi - row.lo)):
            k = row.lo + np.uint64(columns[c] if columns.size > 0 else c)
            x = row.at(k)
            j = np.uint64(row.place(k))
            if x != 0.0 and j < np.uint64(lines.size):
                line = lines[j]
                if line == 0:
                    if known[0] == MOST:
                        return False
                    known[0] += 1
                    line = known[0]
                    lines[j], places[line] = line, j
                counts[line] += weight if x == 1.0 else np.nan
    return True


@dataclasses.dataclass(eq=False)
class GroupCounts:
    """The weight of the examples in which a feature was 1; NaN for a feature that had a value other than 0 and 1.

    >>> counts = GroupCounts()
    >>> counts.enter(Block(np.array([[1.0, 0.5], [0.0, 2.0], [1.0, 0.0]])), np.empty(0), np.zeros(3))
    >>> counts.groups()
    (array([0]), array([2.]))
    """

    counts: Any = dataclasses.field(default_factory=lambda: np.zeros(MOST + 1))
    """For each feature that has occurred its weight, in the order of first occurrence; place 0 is not used."""
    places: Any = dataclasses.field(default_factory=lambda: np.zeros(MOST + 1, dtype=np.int64))
    """The number of each feature."""
    known: Any = dataclasses.field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    """How many features have occurred; −1 where there were too many, and nothing is counted any more."""
    _lines: Any = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.uint32), repr=False)

    def enter(self, block: Block, weights: Any, predictions: Any) -> None:
        """Count the rows that have a prediction."""
        if self.known[0] < 0 or not len(block):
            return
        if block.width > WIDEST or getattr(block.X, "numbering", None) is not None:  # a wide stream has its own places
            self.drop()
            return
        if block.width > self._lines.size:
            lines = np.zeros(max(block.width, 2 * self._lines.size), dtype=np.uint32)
            own = self.places[1 : self.known[0] + 1]
            lines[own] = np.arange(1, own.size + 1)
            self._lines = lines
        rows, state = block.rows(False), (self._lines, self.places, self.counts, self.known)
        if block.sparse:
            good = _count(*state, rows, np.empty(0, dtype=np.int64), weights, predictions)
        else:
            good = self._dense(block, weights, predictions)
        if not good:
            self.drop()

    def _dense(self, block: Block, weights: Any, predictions: Any) -> bool:
        """A dense block: some rows first, after which most columns of numbers are known to be no groups."""
        good = True
        for part in (slice(0, FIRST), slice(FIRST, len(block))):
            columns = np.flatnonzero(~np.isnan(self.counts[self._lines[: block.width]]))
            inside = block.part(part.start, min(part.stop, len(block)))
            if good and columns.size and len(inside):
                state = self._lines, self.places, self.counts, self.known
                good = bool(_count(*state, inside.rows(False), columns, weights[part], predictions[part]))
        return good

    def drop(self) -> None:
        """Count nothing from now on."""
        self.known[0] = -1

    def groups(self) -> tuple[Any, Any]:
        """The numbers of the features that are groups, rising, and the weight of each."""
        many = max(0, int(self.known[0]))
        places, counts = self.places[1 : many + 1], self.counts[1 : many + 1]
        order = np.argsort(places)
        order = order[~np.isnan(counts[order])]
        return places[order], counts[order]

    def merge(self, parts: Sequence[GroupCounts]) -> GroupCounts:
        """Those of several parts of a stream together, each of which went on from a copy of these."""
        merged = GroupCounts()
        everything = (self, *parts)
        if any(one.known[0] < 0 for one in everything):
            merged.drop()
            return merged
        own = [dict(zip(one.places[1:], one.counts[1:], strict=True)) for one in map(_used, everything)]
        features = list(dict.fromkeys(place for counts in own for place in counts))
        if len(features) > MOST:
            merged.drop()
            return merged
        merged.known[0] = len(features)
        for line, place in enumerate(features, 1):
            base = own[0].get(place, 0.0)
            merged.places[line] = place
            merged.counts[line] = base + sum(counts.get(place, 0.0) - base for counts in own[1:])
        return merged

    def stored(self) -> dict[str, Any]:
        used = _used(self)
        return {"groups.known": self.known, "groups.places": used.places, "groups.counts": used.counts}

    @classmethod
    def read(cls, known: Any, places: Any, counts: Any) -> GroupCounts:
        """From the arrays of a model file; refuses what is impossible."""
        read, many = cls(), max(0, int(known[0])) if known.shape == (1,) else -1
        fits = -1 <= many <= MOST and places.shape == counts.shape == (many + 1,)
        if not fits or known[0] < -1 or (places < 0).any() or (places >= WIDEST).any() or (counts < 0.0).any():
            raise DataError("the counts of its groups are impossible")
        read.known[0], read.places[: many + 1], read.counts[: many + 1] = known[0], places, counts
        if np.unique(places[1:]).size != many:
            raise DataError("the counts of its groups are impossible")
        return read


def _used(counts: GroupCounts) -> GroupCounts:
    """A copy without room for more."""
    many = max(0, int(counts.known[0]))
    cut = copy.copy(counts)
    cut.places, cut.counts = counts.places[: many + 1].copy(), counts.counts[: many + 1].copy()
    return cut
