"""`Background`: some of the rows that were learnt, each as likely as any other, to try a model's predictions on."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.streams.block import Block, csr_view
from rue.streams.numbering import hashed

__all__ = ["ROWS", "Background"]

ROWS, WIDEST = 256, 1024
"""How many rows there are at most, and how many features one may have."""
_LOW, _32 = np.uint64(2**32 - 1), np.uint64(32)


class Background:
    """At most 256 of the rows so far, as the learner sees them, drawn as Vitter's Algorithm R draws (1985).

    The hash of the round stands for a random number, so the same rows are drawn whatever the blocks.

    >>> rows = Background()
    >>> rows.enter(Block([[1.0, 0.0], [0.0, 2.0]]))
    >>> [(indices.tolist(), values.tolist()) for indices, values in rows.rows]
    [([0], [1.0]), ([1], [2.0])]
    """

    def __init__(self) -> None:
        self.seen = 0
        """How many rows there have been."""
        self.rows: list[tuple[Any, Any]] = []
        """Indices and values of those that were drawn, without zeros."""
        self.dense = False
        """Whether they came as dense rows, and are best predicted so."""

    def enter(self, block: Block) -> None:
        """Rows have been learnt."""
        t = np.arange(self.seen + 1, self.seen + len(block) + 1, dtype=np.uint64)
        at = np.where(t <= ROWS, t - np.uint64(1), (hashed(t & _LOW) * t & np.uint64(2**64 - 1)) >> _32)
        for i in np.flatnonzero(at < ROWS).tolist():
            row = _row(block, i)
            if int(at[i]) == len(self.rows):
                self.rows.append(row)
            elif int(at[i]) < len(self.rows):
                self.rows[int(at[i])] = row
        self.seen, self.dense = self.seen + len(block), not block.sparse

    def stored(self) -> dict[str, Any]:
        """As arrays for a model file."""
        lengths = [indices.size for indices, _ in self.rows]
        return {
            "ends": np.cumsum([0, *lengths]).astype(np.float64),
            "indices": np.concatenate([np.empty(0), *(indices for indices, _ in self.rows)]).astype(np.float64),
            "values": np.concatenate([np.empty(0), *(values for _, values in self.rows)]),
        }

    @classmethod
    def restored(cls, seen: int, dense: bool, stored: dict[str, Any]) -> Background:
        """What `stored` was made of; refuses anything else."""
        ends, indices, values = stored["ends"], stored["indices"], stored["values"]
        whole = all((part == np.floor(part)).all() and (part >= 0.0).all() for part in (ends, indices))
        good = whole and ends.ndim == indices.ndim == values.ndim == 1 and 1 <= ends.size <= ROWS + 1
        good = good and ends[0] == 0.0 and (np.diff(ends) >= 0.0).all() and ends[-1] == indices.size == values.size
        if not good or (indices >= 2.0**32).any() or not np.isfinite(values).all() or seen < ends.size - 1:
            raise DataError("its rows to try predictions on are impossible")
        found = cls()
        found.seen, found.dense = seen, dense
        found.rows = [
            (indices[int(a) : int(b)].astype(np.int64), values[int(a) : int(b)].copy())
            for a, b in itertools.pairwise(ends)
        ]
        return found


def _row(block: Block, i: int) -> tuple[Any, Any]:
    """Indices, as the data have them, and values of a row; none of a row that is too long."""
    if not block.sparse:
        row = np.asarray(block.X[i], dtype=np.float64)
        indices = np.flatnonzero(row)
        pair = indices.astype(np.int64), row[indices]
    else:
        here = slice(int(block.X.indptr[i]), int(block.X.indptr[i + 1]))
        given = block.X.indices if block.X.given is None else block.X.given
        values = np.array(block.X.data[here], dtype=np.float64)
        pair = np.asarray(given)[here].astype(np.int64)[values != 0.0], values[values != 0.0]
    usable = pair[0].size <= WIDEST and bool(np.isfinite(pair[1]).all())
    return pair if usable else (np.empty(0, np.int64), np.empty(0))


def block_of(rows: list[tuple[Any, Any]], width: int, lagged: int, dense: bool) -> Block:
    """Rows given by indices and values as a block."""
    if dense:
        X = np.zeros((len(rows), width))
        for i, (indices, values) in enumerate(rows):
            X[i, indices] = values
        return Block(X, lagged=lagged)
    indptr = np.cumsum([0, *(indices.size for indices, _ in rows)])
    indices = np.concatenate([np.empty(0, np.int64), *(indices for indices, _ in rows)])
    values = np.concatenate([np.empty(0), *(values for _, values in rows)])
    return Block(csr_view(indptr, indices, values, width, bins=()), lagged=lagged)
