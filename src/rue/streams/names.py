"""Names of hashed features, for reports and model files.

Parsers hash names to slots and forget them. So that a model can say what its weights belong to, the first 65,536 names
are remembered. A parser must not spend time on names that are known: it asks a bit table of the first 2²⁰ slots, and a
hash table of the others, in compiled code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import values

__all__ = ["NOTHING_NEW", "Names", "NewNames"]

ROOM = 65_536
_0, _1, _6, _63 = (np.uint64(i) for i in (0, 1, 6, 63))
_SPREAD, _LAST = np.uint64(0x9E3779B97F4A7C15), np.uint64(2 * ROOM - 1)
_SHIFT = np.uint64(64 - 17)
FIRST = np.uint64(2**20)
"""Slots that have a bit of their own."""


@values
class NewNames(NamedTuple):
    """Where in a text the names stand that are not known yet.

    `seen` has a bit for each of the first slots; `table` holds the others that have a name, plus 1, each at the first
    free place from its own on; `rows` has a row (slot, place of the namespace, start,
    stop) for each new one; `count` is how many are known and how many are new.
    """

    table: Any
    seen: Any
    rows: Any
    count: Any

    def full(self) -> Any:
        """Whether there is no room for more."""
        return self.count[0] >= ROOM

    def lacks(self, slot: Any) -> Any:
        """A number with the lowest bit 0 if it is certain that a slot is known."""
        return ~self.seen[slot >> _6] >> (slot & _63) if slot < FIRST else _1

    def note(self, slot: Any, namespace: Any, start: Any, stop: Any) -> None:
        """Remember what a slot is called, if that is new and there is room."""
        if slot < FIRST:
            word, bit = slot >> _6, _1 << (slot & _63)
            if self.seen[word] & bit != _0:
                return
            self.seen[word] |= bit
        if self.full():
            return
        if slot >= FIRST:
            place = slot * _SPREAD >> _SHIFT
            while self.table[place] != _0:
                if self.table[place] == slot + _1:
                    return
                place = (place + _1) & _LAST
            self.table[place] = slot + _1
        row = np.uint64(self.count[1])
        self.rows[row, 0], self.rows[row, 1] = slot, namespace
        self.rows[row, 2], self.rows[row, 3] = start, stop
        self.count[0] += 1
        self.count[1] += 1


_NONE = np.empty(0, dtype=np.uint64)
NOTHING_NEW = NewNames(_NONE, _NONE, np.empty((0, 4), dtype=np.uint64), np.array([ROOM, 0]))
"""No room for any name."""


class Names:
    """The names of slots, the first 65,536 that occur.

    Parsers may look at it while it grows: they report names that are not in it, and one that two of them report is
    stored once.

    >>> names = Names([(7, "colour=red")])
    >>> names.add([(7, "colour=blue"), (9, "size")])
    >>> names.of
    {7: 'colour=red', 9: 'size'}
    """

    def __init__(self, names: Iterable[tuple[int, str]] = ()) -> None:
        self.of: dict[int, str] = {}
        self._known = 0
        self._table = np.zeros(2 * ROOM, dtype=np.uint64)
        self.seen = np.zeros(int(FIRST) // 64, dtype=np.uint64)
        """A bit for each of the first slots, set if it has a name."""
        self.add(names)

    def add(self, names: Iterable[tuple[int, str]]) -> None:
        """Keep the names of a chunk; chunks must come in order."""
        new = []
        for slot, name in names:
            if slot not in self.of and len(self.of) < ROOM:
                self.of[slot] = name
                new.append(slot)
        slots = np.array(new, dtype=np.uint64)
        first = slots[slots < FIRST]
        np.bitwise_or.at(self.seen, first >> _6, _1 << (first & _63))
        for slot in slots[slots >= FIRST].tolist():
            self._enter(slot)
        self._known += len(new)

    def _enter(self, slot: int) -> None:
        place = slot * int(_SPREAD) % 2**64 >> int(_SHIFT)
        while self._table[place]:
            place = (place + 1) % self._table.size
        self._table[place] = slot + 1

    def full(self) -> bool:
        return len(self.of) >= ROOM

    def opened(self, last: int) -> NewNames:
        """Room for what a text adds, with slots up to the last."""
        known = self._known  # before the rest is copied, which may hold more by then: that is dropped when it is added
        table = self._table.copy() if last >= FIRST else self._table[:1]
        return NewNames(table, self.seen.copy(), np.empty((ROOM - known, 4), dtype=np.uint64), np.array([known, 0]))
