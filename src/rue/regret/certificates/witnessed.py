"""What each witness (D3) has proved in each window of a stream, so that windows are certified by more than the learner.

The sums of the learner itself rarely prove that no linear model could have matched it on some rounds (D6); those of a
few witnesses mostly do. They are added up in windows that begin and end as those of the ledger do (`rue.windows`), as
long as there are so few coordinates that the length of windows depends on the number of rounds alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from rue.losses import Loss
from rue.regret.certificates.witnesses import LOSS, A, Pool, watch
from rue.windows import (
    CLOSED,
    EXAMPLES,
    FEW,
    LEFT,
    LENGTH,
    MOST,
    SECOND,
    WINDOW,
    WindowSums,
    of_pieces,
    open_windows,
)

__all__ = ["NUMBERS", "WIDEST", "WitnessWindows", "open_witness_windows"]

WIDEST = FEW
"""With more coordinates in use the shortest windows are longer, and witnesses are not added up window by window."""
NUMBERS = 2
"""Σℓ and A, which stand before S in a row of sums."""
_NOTHING = np.zeros(0)


class _Sums(WindowSums):
    """The same, with rows that are moved by NumPy: a row has a number for each witness and feature."""

    def move_row(self, source: Any, row: Any) -> None:
        self.S[row] += self.S[source]
        self.sums[row] += self.sums[source]
        self.S[source], self.sums[source] = 0.0, 0.0


@dataclasses.dataclass(eq=False)
class WitnessWindows:
    """Σℓ, A and S of every witness in every window.

    >>> import rue
    >>> X, y = rue.census()
    >>> run = rue.learn(X[:96], y[:96], learner=rue.OGD(), witnesses=5.0)
    >>> run.evidence.witnessed.ends().tolist()
    [32, 64, 80, 96]

    docs/theory.md, D3 and D6.
    """

    sums: Any
    """Windows whose vector is, for each witness, Σℓ, then A, then S, in the order of the rows of the pool's table."""

    def with_room(self, pool: Pool) -> WitnessWindows | None:
        """With room for the features of a pool; None where these are too many."""
        if pool.places.size > WIDEST:
            return None
        wider = self.sums._wider((NUMBERS + len(pool.table)) * pool.part.shape[1])
        return self if wider is self.sums else WitnessWindows(_Sums(*wider))

    def watch(self, loss: Loss, pool: Pool, rows: Any, y: Any, weights: Any, predictions: Any, begin: int) -> int:
        """What `rue.regret.certificates.witnesses.watch` does, window after window: the first row it cannot take."""
        scored = ~np.isnan(predictions[: y.size])
        places = np.flatnonzero(scored & (weights > 0.0) if weights.size else scored)
        clock, seen = self.sums.clock, int(np.searchsorted(places, begin))
        while True:
            if clock[LEFT] == 0 and seen < places.size:
                self.sums.turn(_NOTHING)
            after = seen + int(clock[LEFT])
            stop = int(places[after]) if after < places.size else y.size
            end = int(watch(loss, self._attached(pool), rows, y[:stop], weights, predictions, begin))
            entered = int(np.searchsorted(places, end)) - seen
            self.sums.sums[clock[CLOSED] + clock[SECOND], EXAMPLES] += entered
            clock[LEFT] -= entered
            seen, begin = seen + entered, end
            if end < stop or end >= y.size:
                return end

    def _attached(self, pool: Pool) -> Pool:
        """The pool with the sums of the window that is being filled, which it adds to."""
        row, width = self.sums.S[self.sums.clock[CLOSED] + self.sums.clock[SECOND]], pool.part.shape[1]
        window = row[: (NUMBERS + len(pool.table)) * width].reshape(-1, width)
        return pool._replace(part=window[:NUMBERS], window=window[NUMBERS:])

    def ends(self) -> Any:
        """The last round of each window, the halves of the last one by themselves."""
        return np.cumsum(self.sums.pieces()[:, EXAMPLES]).astype(np.int64)

    def find(self, first: int, last: int) -> tuple[int, int] | None:
        """The windows that are the rounds first to last, both included; None if these do not end with windows."""
        ends = self.ends()
        i, j = int(np.searchsorted(ends, first - 1)), int(np.searchsorted(ends, last))
        begins = first == 1 or (i < ends.size and ends[i] == first - 1)
        return (i + (first > 1), j) if begins and j < ends.size and ends[j] == last else None

    def vectors(self, pool: Pool) -> Any:
        """For each window Σℓ, A and S of every witness: an array (window, number, witness)."""
        width, used = pool.part.shape[1], NUMBERS + pool.places.size + 1
        S = self.sums.S[: self.sums.rows, : used * width]
        return S.reshape(len(S), used, width)[:, :, : pool.radii.size]

    def pool_of(self, pool: Pool, first: int, last: int) -> Pool | None:
        """The witnesses with their sums of the rounds first to last alone; None if these do not end with windows."""
        found = self.find(first, last)
        if found is None:
            return None
        K, width = pool.radii.size, pool.part.shape[1]
        total = self.vectors(pool)[found[0] : found[1] + 1].sum(axis=0)
        table, state = np.zeros_like(pool.table), pool.state.copy()
        table[: pool.places.size + 1, width : width + K] = total[NUMBERS:]
        state[[LOSS, A], :K] = total[:NUMBERS]
        return pool._replace(table=table, state=state)

    def merge(self, parts: Sequence[WitnessWindows], pools: Sequence[Pool], merged: Pool) -> WitnessWindows | None:
        """The windows of this followed by what each part has added; `pools` has the witnesses of this and of the parts.

        `merged` are all of them put together. None where there are too many features.
        """
        if merged.places.size > WIDEST:
            return None
        everything = (self, *parts)
        aligned = [one._as_in(pool, merged) for one, pool in zip(everything, pools, strict=True)]
        pieces = [(aligned[0], self.sums.pieces())]
        pieces += [part.sums._since(S, self.sums, aligned[0]) for part, S in zip(parts, aligned[1:], strict=True)]
        S, sums = (np.concatenate([piece[i] for piece in pieces]) for i in (0, 1))
        clocks = [one.sums.clock for one in everything]
        length, most = max(int(clock[LENGTH]) for clock in clocks), min(int(clock[MOST]) for clock in clocks)
        return WitnessWindows(_Sums(*of_pieces(S, sums, length, most))).with_room(merged)

    def _as_in(self, pool: Pool, other: Pool) -> Any:
        """The sums in the rows of another pool, which knows all features of this one: a vector for each window."""
        own, width = self.vectors(pool), pool.part.shape[1]
        out = np.zeros((len(own), NUMBERS + len(other.table), width))
        out[:, :NUMBERS, : pool.radii.size] = own[:, :NUMBERS]
        out[:, NUMBERS + other.lines[pool.places].astype(np.int64), : pool.radii.size] = own[:, NUMBERS + 1 :]
        return out.reshape(len(own), out.shape[1] * width)

    def stored(self, pool: Pool) -> dict[str, Any]:
        """The arrays that a model file holds."""
        examples = self.sums.pieces()[:, EXAMPLES].copy()
        return {"witnessed.vectors": self.vectors(pool), "witnessed.examples": examples, "witnessed.clock": self.clock}

    @property
    def clock(self) -> Any:
        """Where the windows stand (`rue.windows.CLOCK`)."""
        return self.sums.clock

    @classmethod
    def read(cls, pool: Pool, vectors: Any, examples: Any, clock: Any) -> WitnessWindows:
        """From the arrays of a model file, whose shapes fit the pool."""
        n, width = len(vectors), pool.part.shape[1]
        windows = open_witness_windows(pool, int(clock[MOST]))
        rows = np.zeros((n, NUMBERS + len(pool.table), width))
        rows[:, : vectors.shape[1], : pool.radii.size] = vectors
        windows.sums.S[:n], windows.sums.sums[:n, EXAMPLES] = rows.reshape(n, rows.shape[1] * width), examples
        windows.sums.clock[:] = clock
        return windows


def open_witness_windows(pool: Pool, most: int | None = None) -> WitnessWindows:
    """With no round yet."""
    windows = open_windows() if most is None else open_windows(most=most)
    opened = WitnessWindows(_Sums(*windows)).with_room(pool)
    assert opened is not None
    assert opened.sums.sums.shape[1] == len(WINDOW)
    return opened
