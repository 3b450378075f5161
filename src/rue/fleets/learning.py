"""The rows of a block, put together key by key, and learnt by compiled code, on one thread or on several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import twin
from rue.fleets.arena import Arena, Group
from rue.fleets.packing import Workbench
from rue.learners import keyed
from rue.rows import SparseRows
from rue.streams import Block
from rue.streams.block import csr_view

__all__ = ["Pass", "as_sparse"]

ENOUGH = 256
"""Fewer rows than this are not worth another thread."""


def as_sparse(block: Block) -> Block:
    """The same examples with an index for every feature: one kind of row is compiled for all data."""
    if block.sparse:
        return block
    count, width = block.X.shape
    indices = np.tile(np.arange(width, dtype=np.uint32), count)
    data = np.ascontiguousarray(block.X, dtype=np.float64).reshape(-1)
    return Block(csr_view(np.arange(count + 1, dtype=np.int64) * width, indices, data, width), block.y, block.weights)


class _Runs(NamedTuple):
    """The rows of a block, put together by key."""

    order: Any
    """Which row of the block comes first, second, …"""
    keys: Any
    """The key of each run."""
    ends: Any
    """Run r is order[ends[r]:ends[r + 1]]."""


class Pass:
    """Takes blocks of rows, and the number of each row's key, to the learners of the keys.

    The rows of a block are put together by key, in their order, and learnt key by key: what one key learns does not
    touch another, so the result is that of learning them as they came.
    """

    def __init__(self, arena: Arena, intercept: bool, workers: int = 1) -> None:
        self.arena, self.intercept, self.workers = arena, intercept, workers
        self._mark = np.zeros(0, dtype=np.int64)
        """Scratch for putting rows together: a number for each key, all 0 between two blocks."""
        # A hash table from features to places serves all keys of a block, one after the other. A slot counts only if
        # its stamp is the present key's, so that the table need not be emptied for each key.
        self._table, self._stamps, self._stamp = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0
        self._threads = ThreadPoolExecutor(workers - 1, "rue-fleet") if workers > 1 else None
        self._benches: list[Workbench] = []
        self._compiled: dict[Any, Callable[..., Any]] = {}

    def learn(self, block: Block, keys: Any) -> Any:
        """Learn rows that have been checked; the predictions made before each update, NaN where a row is refused."""
        arena, source = self.arena, self._rows(block)
        runs = self._together(keys)
        y, weights = block.labels()[runs.order], block.column_of_weights()
        weights = weights[runs.order] if weights.size else weights
        out = np.full(len(block), np.nan)
        if not runs.keys.size:
            return out
        before = arena.known[runs.keys].astype(np.int64)
        known, rows, fresh, begins = self._number(source, runs, before, adding=True)
        arena.rounds[runs.keys] += np.diff(runs.ends)
        # Records are made large enough before any row is learnt: compiled code allocates nothing.
        arena.fit(runs.keys, known, arena.rounds[runs.keys])
        arena.learn_features(runs.keys, before, known, fresh, begins)
        learnt = np.full(runs.order.size, np.nan)
        for group, listed in self._by_group(runs):
            self._in_parts(self._learn_part, group, listed, rows, y, weights, learnt)
        out[runs.order] = learnt
        return out

    def predict(self, block: Block, keys: Any, average: bool) -> Any:
        """Predictions of rows whose keys have learners, by these as they stand or by the averages of their points."""
        source, runs = self._rows(block), self._together(keys)
        out = np.full(len(block), np.nan)
        if not runs.keys.size:
            return out
        _, rows, _, _ = self._number(source, runs, self.arena.known[runs.keys].astype(np.int64), adding=False)
        found = np.full(runs.order.size, np.nan)
        for group, listed in self._by_group(runs):
            self._in_parts(self._predict_part, group, listed, rows, average, found)
        out[runs.order] = found
        return out

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()

    def _rows(self, block: Block) -> SparseRows:
        rows = as_sparse(block).rows(self.intercept)
        assert isinstance(rows, SparseRows)
        return rows

    def _together(self, keys: Any) -> _Runs:
        """The rows of a block by their keys; a row whose key is negative is left out."""
        if self._mark.size < self.arena.keys:
            self._mark = np.zeros(max(self.arena.keys, 2 * self._mark.size), dtype=np.int64)
        return _grouped(np.ascontiguousarray(keys, dtype=np.int64), self._mark)

    def _number(self, source: SparseRows, runs: _Runs, known: Any, adding: bool) -> tuple[Any, Any, Any, Any]:
        """The rows by key with features at their places, how many each key knows now, and which are new to it."""
        arena = self.arena
        lengths = np.diff(source.indptr)[runs.order]
        indptr = np.zeros(runs.order.size + 1, dtype=np.int64)
        np.cumsum(lengths, out=indptr[1:])
        begins = indptr[runs.ends[:-1]]
        most = int((known + np.diff(indptr[runs.ends])).max())
        if self._table.size < 2 * most:
            size = 1 << (2 * most).bit_length()
            self._table, self._stamps, self._stamp = np.zeros(size, np.int64), np.zeros(size, np.int64), 0
        indices, fresh = np.zeros(int(indptr[-1]), np.uint32), np.empty(int(indptr[-1]) if adding else 0, np.uint32)
        room = 0
        if not adding:  # a feature that the key does not know stands at a place that weighs nothing
            room = max((group.shape.places for group in arena.groups), default=1)
            arena.bench(room)
        width = np.uint64(room + 1)
        out = SparseRows(indptr, indices, np.empty(int(indptr[-1])), width, np.uint64(self.intercept), indices)
        known = known.copy()
        nothing = Group.__new__(Group)
        nothing.ids = np.zeros((1, 1), dtype=np.uint32)
        for group, listed in self._by_group(runs, nothing):
            numbers = listed[:, 3]
            some = known[numbers]
            self._stamp = int(
                keyed.number_runs(
                    source, runs.order, listed, group.ids, some, adding, room, self._table, self._stamps,
                    self._stamp, out, fresh,
                )
            )  # fmt: skip
            known[numbers] = some
        return known, out, fresh, begins

    def _by_group(self, runs: _Runs, unborn: Group | None = None) -> Iterator[tuple[Group, Any]]:
        """The runs of each group of records: row in the group, begin, end and number of each."""
        arena = self.arena
        group = arena.group[runs.keys].astype(np.int64) + 1
        lines = np.stack(
            [arena.row[runs.keys].astype(np.int64), runs.ends[:-1], runs.ends[1:], np.arange(group.size)], 1
        )
        if group.size and (group == group[0]).all():
            together = [(int(group[0]), lines)]
        else:
            found = _grouped(group, np.zeros(len(arena.groups) + 1, dtype=np.int64))
            ordered = lines[found.order]
            parts = zip(found.keys.tolist(), found.ends[:-1].tolist(), found.ends[1:].tolist(), strict=True)
            together = [(number, ordered[begin:end]) for number, begin, end in parts]
        for number, listed in together:
            if number or unborn is not None:
                yield arena.groups[number - 1] if number else unborn, listed  # type: ignore[misc]

    def _in_parts(self, do: Callable[..., None], group: Group, listed: Any, *rest: Any) -> None:
        """Have threads do some of the runs each, with a workbench of its own; who does which changes nothing."""
        bench = self.arena.bench(group.shape.places)
        sizes = np.cumsum(listed[:, 2] - listed[:, 1])  # rows, not keys, are dealt out: keys differ in size
        many = min(self.workers, max(1, int(sizes[-1]) // ENOUGH))
        if many == 1:
            do(bench, group, listed, *rest)
            return
        if not self._benches or self._benches[0].room != bench.room:
            self._benches = [self.arena.own_bench(bench) for _ in range(self.workers - 1)]
        cuts = [0, *np.searchsorted(sizes, [int(sizes[-1]) * k // many for k in range(1, many)]).tolist(), len(listed)]
        assert self._threads is not None
        jobs = [
            self._threads.submit(do, own, group, listed[begin:end], *rest)
            for own, begin, end in zip(self._benches, cuts[1:-1], cuts[2:], strict=False)
        ]
        do(bench, group, listed[: cuts[1]], *rest)
        for job in jobs:
            job.result()

    def _learn_part(
        self, bench: Workbench, group: Group, listed: Any, rows: Any, y: Any, weights: Any, out: Any
    ) -> None:
        """Learn some runs of one group."""
        bench.clear()
        args = bench.point, bench.ledger, rows, y, weights, out, listed, group.records, bench.buffer
        plan = bench.plan(group.shape)
        if "learn" not in self._compiled:
            self._compiled["learn"] = keyed.learn_runs.resolve(bench.rule, *args, plan)
        self._compiled["learn"](twin(bench.rule), *args, plan)

    def _predict_part(self, bench: Workbench, group: Group, listed: Any, rows: Any, average: bool, out: Any) -> None:
        """Predict some runs of one group."""
        bench.clear()
        args = bench.point, rows, average, out, listed, group.records, bench.buffer, bench.plan(group.shape)
        keyed.predict_runs(*args)


def _grouped(keys: Any, mark: Any) -> _Runs:
    """What belongs to the same key, put together."""
    order, of_run, ends = (
        np.empty(keys.size, np.int64),
        np.empty(keys.size, np.int64),
        np.zeros(keys.size + 1, np.int64),
    )
    runs, rows = map(int, keyed.group_rows(keys, mark, order, of_run, ends))
    return _Runs(order[:rows], of_run[:runs], ends[: runs + 1])
