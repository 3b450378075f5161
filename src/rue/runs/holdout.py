"""`Holdout`: the last rows of a stream, which are not learnt but predicted by the finished model.

Where the rows can be counted before (arrays, tables, files), the place where they begin is found first, by reading the
files once more; memory stays bounded. Of a pipe, or an iterator of blocks, a *number* of rows can be held out, which
wait in memory until it is known that they are the last; a share cannot: how many rows will come is not known.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from rue.errors import DataError, SettingsError
from rue.streams.chunk import Chunk, Position
from rue.streams.stream import Stream

__all__ = ["Holdout"]


class Holdout:
    """The end of a stream that is not learnt; `size` is a share of the rows below 1, or a number of rows.

    >>> from rue.streams import read
    >>> stream = read([[1.0], [2.0], [3.0], [4.0], [5.0]], [1, -1, 1, 1, -1])
    >>> holdout = Holdout(stream, 0.4)
    >>> [len(chunk.block) for chunk in holdout.training(stream.reads())]
    [3]
    >>> [chunk.block.y.tolist() for chunk in holdout.chunks()]
    [[1, -1]]
    """

    def __init__(self, stream: Stream, size: float) -> None:
        whole = float(size).is_integer()
        if isinstance(size, bool) or not (0.0 < size < 1.0 or (size >= 1.0 and whole)):
            raise SettingsError(f"holdout is a share of the rows such as 0.2, or a number of rows, not {size}.")
        self.stream, self.size = stream, float(size)
        self._waiting: deque[Chunk] = deque()
        self.begin = self._find()
        """Where the rows begin that are held out; None where that is not known before the end of the stream."""

    def _find(self) -> Position | None:
        """The place of the first row to hold out, if the rows can be counted before they are learnt."""
        places = self.stream.starts()
        if places is None:
            if self.size < 1.0:
                raise SettingsError(
                    f"holdout {self.size:g} is a share of the rows, and a pipe or an iterator does not tell how many "
                    "will come: give a number of rows, such as 10000, or test another file (--test, in Python test=)."
                )
            return None
        starts = list(places)
        rows = starts[-1][0]
        held = int(self.size) if self.size >= 1.0 else max(1, round(self.size * rows))
        if held >= rows:
            raise DataError(f"holdout {self.size:g} leaves nothing to learn: there are {rows:,} rows.")
        return self._row(rows - held, starts)

    def _row(self, number: int, starts: list[tuple[int, Position]]) -> Position:
        """The place of a row, counted from 0; `starts` has the places of some, with their numbers, rising."""
        before, start = max((pair for pair in starts if pair[0] <= number), key=lambda pair: pair[0])
        for chunk in self.stream.reads(after=start):
            chunk = _from(chunk, start)
            if before + len(chunk.block) > number:
                return chunk.before_line(int(chunk.lines[number - before]))
            before += len(chunk.block)
        raise DataError("the data have changed while they were read.")

    def training(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Of the chunks of the stream those parts that are to be learnt."""
        if self.begin is None:
            yield from self._all_but_the_last(chunks)
            return
        for chunk in chunks:
            rows = _rows_before(chunk, self.begin)
            if rows == len(chunk.block):
                yield chunk
                continue
            if rows or chunk.bad:  # perhaps bad rows that come before the first one held out
                yield chunk.split(rows)[0]
            return

    def _all_but_the_last(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        held = 0
        for chunk in chunks:
            self._waiting.append(copy.deepcopy(chunk) if self.stream.lent else chunk)
            held += len(chunk.block)
            while held > self.size:
                first = self._waiting.popleft()
                if held - len(first.block) < self.size:
                    first, rest = first.split(held - int(self.size))
                    self._waiting.appendleft(rest)
                held -= len(first.block)
                yield first

    def chunks(self, stop: threading.Event | None = None) -> Iterator[Chunk]:
        """The rows that are held out, when all the others have been learnt."""
        if self.begin is None:
            yield from self._waiting
            return
        for chunk in self.stream.reads(stop, self.begin):
            chunk = _from(chunk, self.begin)
            if len(chunk.block) or chunk.bad:
                yield chunk


def _rows_before(chunk: Chunk, place: Position) -> int:
    """How many rows of a chunk come before a place."""
    if chunk.end.file != place.file:
        return len(chunk.block) if chunk.end.file < place.file else 0
    return int(np.searchsorted(np.asarray(chunk.lines), place.line, side="right"))


def _from(chunk: Chunk, place: Position) -> Chunk:
    """The part of a chunk from a place on."""
    rows = _rows_before(chunk, place)
    return chunk.split(rows)[1] if rows else chunk
