"""`settle`: the start of a stream is held back until its labels tell which class is +1 (docs/decisions/0024)."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from rue.streams.chunk import Chunk
from rue.streams.labels import FIRST_ROWS, Labels

__all__ = ["settle"]


def settle(
    chunks: Iterable[Chunk],
    begin: Callable[[Any], None],
    task: str,
    positive: Any = None,
    *,
    stops_at_bad: bool = True,
    lent: bool = False,
) -> Iterator[Chunk]:
    """The same chunks; before the first one, `begin` is given the labels of the first rows.

    These are the rows up to a second class, `FIRST_ROWS` of them, or all there are: so what classes mean does not
    depend on how a stream is cut into chunks. If blocks are `lent`, those held back are copied.

    >>> import rue
    >>> from rue.streams.stream import read
    >>> rows = [rue.Block([[1.0]], [name]) for name in ("spam", "spam", "ham", "spam")]
    >>> len(list(settle(read(rows).reads(), lambda y: print(y.tolist()), "auto")))
    ['spam', 'spam', 'ham']
    4
    """
    reading = iter(chunks)
    held: list[Chunk] = []
    labels: list[Any] = []
    rows = 0
    class_so_far: Any = np.empty(0)
    error: Exception | None = None
    try:
        for chunk in reading:
            held.append(chunk)
            bad = chunk.first_bad if stops_at_bad else None
            y = chunk.block.y if bad is None else chunk.block.first(bad.place).y
            if y is None:
                break
            labels.append(np.array(y))
            shown = _joined([class_so_far, labels[-1]]) if class_so_far.size else labels[-1]
            rows += len(labels[-1])
            if bad is not None or rows >= FIRST_ROWS or Labels.settled_by(shown, task, positive):
                break
            class_so_far = class_so_far if class_so_far.size else _one(labels[-1])
            if lent:
                held[-1] = dataclasses.replace(chunk, block=copy.deepcopy(chunk.block))
    except Exception as raised:  # what came before it is learnt first
        error = raised
    if labels:
        begin(_joined(labels))
    yield from held
    if error is not None:
        raise error
    yield from reading


def _one(y: Any) -> Any:
    """A label of a column in which no two differ, as a column; an empty one if all are missing."""
    there = next((i for i in range(len(y)) if y[i] is not None and y[i] == y[i]), len(y))
    return y[there : there + 1]


def _joined(columns: list[Any]) -> Any:
    """Labels one after the other; words and numbers keep their types."""
    if len({column.dtype.kind for column in columns if column.size}) > 1:
        columns = [column.astype(object) for column in columns]
    return np.concatenate(columns)
