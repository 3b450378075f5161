"""The arrays and numbers of a model file: written without rows of zeros, read only where they fit."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.settings import read_json, write_json

__all__ = ["MOST_COORDINATES", "Reader", "count", "put", "put_text", "require_memory", "rows_of", "typed"]

MOST_COORDINATES = 2**32 + 1
"""Feature indices are below 2³², and there may be an intercept."""


def put(arrays: dict[str, Any], name: str, array: Any) -> None:
    """Enter an array under a name."""
    if not array.size:
        arrays[name] = array
        return
    bits = array.view(np.uint32 if array.itemsize == 4 else np.uint64)  # so that −0.0 counts
    used = (bits != 0).reshape(array.shape[0], -1).any(axis=1)
    many, row = int(np.count_nonzero(used)), array.nbytes // array.shape[0]
    kind = np.uint32 if array.shape[0] <= 2**32 else np.uint64
    if many * (row + np.dtype(kind).itemsize) >= array.nbytes:
        arrays[name] = array
    else:
        arrays[name] = array[used]
        arrays[f"{name}.rows"] = np.flatnonzero(used).astype(kind)


def put_text(arrays: dict[str, Any], name: str, value: Any) -> None:
    """JSON too long for a header."""
    arrays[name] = np.frombuffer(write_json(value).encode(), dtype=np.uint8)


class Reader:
    """The arrays of a file, each taken once and only where it fits."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self.arrays = arrays

    def take(self, name: str, kinds: tuple[Any, ...]) -> Any:
        array = self.arrays.pop(name)
        if array.dtype not in kinds:
            raise DataError(f"its array {name} is of the wrong kind")
        return array

    def fill(self, name: str, array: Any) -> Any:
        """Write what the file holds into an array of zeros of the right shape; the rows that are not all 0."""
        values = self.take(name, (array.dtype,))
        rows: Any = slice(None)
        shape = array.shape
        if f"{name}.rows" in self.arrays:
            rows = self.take(f"{name}.rows", (np.uint32, np.uint64))
            shape = (rows.size, *array.shape[1:])
            rising = rows.ndim == 1 and bool((rows[1:] > rows[:-1]).all())
            if not rising or (rows.size and int(rows[-1]) >= array.shape[0]):
                raise DataError(f"the coordinates of its array {name} are impossible")
        if values.shape != shape:
            raise DataError(f"its array {name} has the wrong shape")
        array[rows] = values
        return values

    def text(self, name: str, most: int) -> list[Any]:
        """A list of at most so many things that was written as JSON."""
        written = self.take(name, (np.uint8,))
        found: list[Any] = typed(read_json(written.tobytes()), list)
        if written.ndim != 1 or len(found) > most:
            raise DataError("it has more names than features")
        return found

    def require_end(self) -> None:
        if self.arrays:
            raise DataError("it holds arrays that do not belong to it")


# Numbers that are to be believed.


def typed(value: Any, kind: type) -> Any:
    """The value, which must be of this very type."""
    if type(value) is not kind:
        raise DataError(f"a {type(value).__name__} stands where a {kind.__name__} belongs")
    return value


def count(value: Any, most: int) -> int:
    """A whole number from 0 to `most`."""
    if type(value) not in (int, float) or not 0 <= value <= most or value != int(value):
        raise DataError(f"{str(value)[:40]} stands where a number of things belongs")
    return int(value)


def rows_of(value: Any, columns: int) -> int:
    """A number of rows that this machine can hold."""
    rows = count(value, MOST_COORDINATES)
    require_memory(rows, columns)
    return rows


def require_memory(rows: int, columns: int) -> None:
    """Refuse a width that this machine could not hold, before it is tried."""
    needed = 8 * rows * columns
    if needed > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise DataError(f"{rows:,} coordinates need {needed / 2**30:,.0f} GiB, more than this machine has")
