"""Where in the pool's tables a feature's line is: lines are given out one after the other, as features come.

A wide stream uses few of its features, and those that come often come early: their lines lie together, and a stream
takes the memory of the features that have occurred. Line 0 stays empty, for all others.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from rue.compiled import noinline
from rue.memory import aligned_zeros

__all__ = ["with_lines"]

P = TypeVar("P")


def with_lines(cls: type[P]) -> type[P]:
    """Give a pool the words for its lines."""
    for word in (claim, grown, laid_out, gathered):
        setattr(cls, word.__name__, word)
    return cls


@noinline
def claim(self: Any, row: Any, begin: Any, end: Any) -> None:
    """Give lines to those of a row's features that are noted and have none."""
    lines, spots, many = self.lines, self.spots, 0
    for k in range(begin, end):
        j, x = row.feature(np.uint64(k))
        if x != 0.0:
            if lines[j] == 0:
                self.given[0] += 1
                lines[j] = self.given[0]
            spots[many] = lines[j]
            many += 1


def grown(self: Any, domain: Any, size: int) -> Any:
    """Room for `size` coordinates; pages that nobody has written to take no memory."""
    used, lines, tables = int(self.given[0]) + 1, np.zeros(size, dtype=np.uint32), _empty(self, size + 1)
    lines[: self.lines.size] = self.lines
    for name, table in tables.items():
        table[:used] = getattr(self, name)[:used]
    return self._replace(lines=lines, **tables)


def _empty(self: Any, rows: int, slots: Any = np.int32) -> dict[str, Any]:
    """Tables like its own, of so many lines, all zeros; with this type of slots."""
    wide = [getattr(self, name) for name in ("weights", "stats")]
    weights, stats = (aligned_zeros((rows, table.shape[1]), table.dtype) for table in wide)
    return {"weights": weights, "stats": stats, "slots": np.zeros(rows, dtype=slots)}


def laid_out(self: Any) -> Any:
    """With a line for each coordinate, in their order, as files hold it: for reading and writing, not for rounds."""
    if self.lines is None:
        return self
    used, tables = np.flatnonzero(self.lines), _empty(self, self.lines.size, np.int64)
    for name, table in tables.items():
        table[used] = getattr(self, name)[self.lines[used]]
    return self._replace(lines=None, **tables)


def gathered(self: Any) -> Any:
    """What was `laid_out` with lines again, for the features that have occurred, in the order of their coordinates."""
    used = np.flatnonzero((self.stats != 0.0).any(axis=1) | (self.weights != 0.0).any(axis=1) | (self.slots != 0))
    size, given = len(self.stats), np.array([used.size])
    lines, tables = np.zeros(size, dtype=np.uint32), _empty(self, size + 1)
    lines[used] = np.arange(1, used.size + 1)
    for name, table in tables.items():
        table[1 : used.size + 1] = getattr(self, name)[used]
    return self._replace(lines=lines, given=given, **tables)
