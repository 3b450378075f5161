"""`Arena`: the records of all keys, packed by shape into arrays, and which features each key has.

A key needs as much room as the features of its rows take, which differs from key to key and grows. So records of one
shape lie together in a group, and a key whose record has become too small moves to a group of larger ones; the place
that it leaves is used again (docs/decisions/0033).
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from rue.fleets.packing import WORD, Shape, Workbench
from rue.learners import Learner
from rue.learners.mixture.frozen import FIRST_COPY
from rue.memory import aligned_zeros

__all__ = ["Arena", "Group", "rounded"]

MOST = 2**24
"""Bytes of the records in a group: room is made for as many at most, so that hardly any stays unused."""
FEW = 16
"""How many records there is room for at first."""
EXACT, STEPS = 16, 8
"""Up to `EXACT` places a record has room for as many as are needed; beyond, it grows in `STEPS` steps a doubling."""


def rounded(places: int) -> int:
    """How many places a record that needs so many has room for.

    >>> [rounded(places) for places in (3, 11, 17, 100)]
    [3, 11, 18, 104]
    """
    if places <= EXACT:
        return places
    step = (1 << (places - 1).bit_length()) // (2 * STEPS)
    return -(-places // step) * step


class Group:
    """An array of records of one shape, a row for each key that lies here, and the features of each.

    `ids[row]` has the key's features in the order in which they first occurred, which is the order of their places.
    """

    def __init__(self, shape: Shape, words: int, features: int) -> None:
        self.shape, self.used = shape, 0
        self.most = max(FEW, MOST // (WORD * words))
        """How many records it takes at most; then another group of the shape is opened."""
        self.records = aligned_zeros((FEW, words), np.uint64)
        self.ids = np.zeros((FEW, features), dtype=np.uint32)
        self.free: list[int] = []
        """Rows whose keys have moved to a larger shape."""

    @property
    def room(self) -> int:
        """How many more records fit."""
        return self.most - self.used + len(self.free)

    def take(self, many: int) -> Any:
        """The rows of `many` more records: those that other keys have left, then new ones."""
        again, self.free = self.free[:many], self.free[many:]
        fresh = np.arange(self.used, self.used + many - len(again))
        self.used += fresh.size
        if self.used > len(self.records):
            size = min(self.most, max(self.used, 2 * len(self.records)))
            records = aligned_zeros((size, self.records.shape[1]), np.uint64)
            records[: len(self.records)] = self.records
            ids = np.zeros((size, self.ids.shape[1]), dtype=np.uint32)
            ids[: len(self.ids)] = self.ids
            self.records, self.ids = records, ids
        return np.concatenate([np.array(again, dtype=np.int64), fresh])


class Arena:
    """The records of keys numbered 0, 1, 2, …: in which group and row each lies, and how many features it knows.

    >>> import rue
    >>> arena = Arena(rue.OGD("square"))
    >>> arena.admit(3)
    >>> arena.fit(np.array([0, 2]), known=np.array([1, 40]), rounds=np.array([5, 5]))
    >>> [group.shape.places for group in arena.groups], arena.group.tolist()  # key 1 has had no row yet
    ([2, 44], [0, -1, 1])
    """

    def __init__(self, learner: Learner) -> None:
        self.algorithm, self.shift = learner.algorithm, int(learner.intercept)
        self.groups: list[Group] = []
        self.keys = 0
        self.group, self.row, self.known = (np.empty(0, dtype=np.int32) for _ in range(3))
        """For each key its group (−1 before its first row), its row there, and how many features it knows."""
        self.rounds = np.empty(0, dtype=np.int64)
        """For each key how many of its rows have been learnt, refused ones among them: at least as many as its T."""
        self.left_out = np.empty(0, dtype=np.int64)
        """For each key how many of its rows were refused or skipped."""
        self._open: dict[Shape, list[int]] = {}
        """For each shape the groups that may have room."""
        self._shapes: Any = np.empty((0, 2), dtype=np.int64)
        self._own = threading.local()
        """The workbench of each thread: two threads may predict at once, and each copies records onto its own."""
        self.copies = self.bench(1).words(Shape(1, True)) != self.bench(1).words(Shape(1, False))
        """Whether records grow once weights are copied."""

    def __getstate__(self) -> dict[str, Any]:
        """Without workbenches, whose arrays are views of one buffer, which copies would not be."""
        return {name: value for name, value in self.__dict__.items() if name != "_own"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._own = threading.local()

    def bench(self, places: int) -> Workbench:
        """The thread's workbench, with room for records of so many places, and for one feature more that no key has."""
        bench: Workbench | None = getattr(self._own, "bench", None)
        if bench is None or bench.room < places + 2:
            # A power of two, so that it seldom grows: with another room the arrays of all its records move.
            room = max(64, 1 << (places + 2).bit_length())
            bench = self._own.bench = Workbench(self.algorithm, room, room)
        return bench

    def own_bench(self, bench: Workbench) -> Workbench:
        """Another like it, for a thread of its own."""
        return Workbench(self.algorithm, bench.room, bench.room)

    def admit(self, keys: int) -> None:
        """Have room in the tables for so many keys."""
        if keys > self.group.size:
            size = max(keys, 2 * self.group.size)
            for name, nothing in (("group", -1), ("row", 0), ("known", 0), ("rounds", 0), ("left_out", 0)):
                old = getattr(self, name)
                new = np.full(size, nothing, dtype=old.dtype)
                new[: old.size] = old
                setattr(self, name, new)
        self.keys = max(self.keys, keys)

    def fit(self, keys: Any, known: Any, rounds: Any) -> None:
        """See that the record of each of these keys has room for so many features and rounds.

        A record that is too small is copied into a larger one.
        """
        places, late = known + self.shift, (rounds >= FIRST_COPY) & self.copies
        self.bench(rounded(int(places.max(initial=1))))
        group = self.group[keys]
        has = (
            np.where(group[:, None] >= 0, self._shapes[group], -1) if len(self._shapes) else np.full((len(keys), 2), -1)
        )
        small = (places > has[:, 0]) | (late & (has[:, 1] == 0))
        if not small.any():
            return
        wanted = np.array([rounded(n) for n in np.unique(places[small]).tolist()])
        room = wanted[np.searchsorted(np.unique(places[small]), places[small])]
        room = np.maximum(room, has[small, 0])
        late = late[small] | (has[small, 1] == 1)
        # Thousands of keys may move at once, but from few shapes to few others: each pair of shapes is one copy.
        every = np.stack([has[small, 0], has[small, 1], room, late.astype(np.int64)], axis=1)
        kinds, which = np.unique(every, axis=0, return_inverse=True)
        which, moving = which.reshape(-1), keys[small]
        for kind, (before, was_late, after, is_late) in enumerate(kinds.tolist()):
            old = None if before < 0 else Shape(before, bool(was_late))
            self._move(moving[which == kind], old, Shape(after, bool(is_late)))

    def _move(self, keys: Any, before: Shape | None, after: Shape) -> None:
        """Give keys records of another shape; with none `before`, blank ones."""
        bench, done = self.bench(after.places), 0
        while done < len(keys):
            number = self._with_room(after)
            group = self.groups[number]
            some = keys[done : done + group.room]
            rows = group.take(len(some))
            group.records[rows] = bench.blank_record(after)
            if before is not None:
                self._copy(some, bench.moves(before, after), group, rows)
            self.group[some], self.row[some] = number, rows
            done += len(some)

    def _copy(self, keys: Any, moves: list[tuple[int, int, int]], group: Group, rows: Any) -> None:
        """Copy the records of keys into those of a larger shape, and free the old ones."""
        for number in np.unique(self.group[keys]).tolist():
            old, mine = self.groups[number], self.group[keys] == number
            source = self.row[keys[mine]]
            for at, to, words in moves:
                group.records[rows[mine], to : to + words] = old.records[source, at : at + words]
            group.ids[rows[mine], : old.ids.shape[1]] = old.ids[source]
            old.free += source.tolist()
            if number not in self._open[old.shape]:
                self._open[old.shape].append(number)

    def _with_room(self, shape: Shape) -> int:
        """A group of a shape that has room for another record."""
        numbers = self._open.setdefault(shape, [])
        while numbers and not self.groups[numbers[-1]].room:
            numbers.pop()
        if not numbers:
            self.add(Group(shape, self.bench(shape.places).words(shape), max(1, shape.places - self.shift)))
            self.offer(len(self.groups) - 1)
        return numbers[-1]

    def offer(self, number: int) -> None:
        """Take records of a group for keys to come."""
        self._open.setdefault(self.groups[number].shape, []).append(number)

    def add(self, group: Group) -> None:
        """One more group."""
        self.groups.append(group)
        self._shapes = np.array([[one.shape.places, int(one.shape.late)] for one in self.groups], dtype=np.int64)

    def learn_features(self, keys: Any, before: Any, known: Any, fresh: Any, begins: Any) -> None:
        """Note the features that are new to some keys: fresh[begins[i]:…] are those of keys[i]."""
        added = np.flatnonzero(known > before)
        self.known[keys] = known
        many = (known - before)[added]
        if not added.size:
            return
        group, row = self.group[keys[added]], self.row[keys[added]]
        for number in np.unique(group).tolist():
            mine = np.flatnonzero(group == number)
            each = many[mine]
            owner = np.repeat(mine, each)
            inside = np.arange(owner.size) - np.repeat(np.cumsum(each) - each, each)
            column = before[added][owner] + inside
            self.groups[number].ids[row[owner], column] = fresh[begins[added][owner] + inside]

    def record(self, key: int) -> tuple[Any, Shape, Any]:
        """The record of a key, its shape, and the key's features in the order of their places."""
        group, row = self.groups[self.group[key]], self.row[key]
        return group.records[row], group.shape, group.ids[row, : self.known[key]]

    def columns(self, name: str) -> Any:
        """For each group its keys and the array of this name in their records, a row for each."""
        members = np.argsort(self.group[: self.keys], kind="stable")
        begins = np.searchsorted(self.group[: self.keys][members], np.arange(len(self.groups) + 1))
        for number, group in enumerate(self.groups):
            keys = members[begins[number] : begins[number + 1]]
            if keys.size:
                bench = self.bench(group.shape.places)
                yield keys, bench.column(group.records[self.row[keys]], group.shape, name)

    def sums(self) -> Any:
        """The sums of the certificate of every key (`rue.ledger.SUMS`), a row for each."""
        return self._every("sums")

    def _every(self, name: str) -> Any:
        out: Any = np.zeros((self.keys, self.bench(1).views[name].size))
        for keys, rows in self.columns(name):
            out[keys] = rows
        return out

    def bytes(self) -> int:
        """The memory that records, features and tables take, with what has been allocated ahead."""
        of_groups = sum(int(group.records.nbytes + group.ids.nbytes) for group in self.groups)
        return of_groups + sum(
            int(array.nbytes) for array in (self.group, self.row, self.known, self.rounds, self.left_out)
        )
