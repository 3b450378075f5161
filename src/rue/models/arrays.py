"""The arrays and numbers of a model file: written without rows of zeros, read only where they fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.memory import memory_limit
from rue.models.settings import read_json, write_json
from rue.streams.numbering import Numbering, in_use, spread

__all__ = ["MOST_COORDINATES", "Places", "Reader", "count", "put", "put_text", "require_memory", "rows_of", "typed"]

MOST_COORDINATES = 2**32 + 1
"""Feature indices are below 2³², and there may be an intercept."""


def put(arrays: dict[str, Any], name: str, array: Any, coordinates: Any = None, size: int = 0) -> None:
    """Enter an array under a name; if its rows belong to `coordinates`, as one of all `size` coordinates."""
    if not array.size:
        arrays[name] = array
        return
    used, values = in_use(array, coordinates)
    size, row = array.shape[0] if coordinates is None else size, array.nbytes // array.shape[0]
    kind = np.uint32 if size <= 2**32 else np.uint64
    if used.size * (row + np.dtype(kind).itemsize) >= size * row:
        arrays[name] = array if coordinates is None else spread(values, used, size)
    else:
        arrays[name] = values
        arrays[f"{name}.rows"] = used.astype(kind)


def put_text(arrays: dict[str, Any], name: str, value: Any) -> None:
    """JSON too long for a header."""
    arrays[name] = np.frombuffer(write_json(value).encode(), dtype=np.uint8)


@dataclasses.dataclass(frozen=True)
class Places:
    """Where the coordinates that a file speaks of are in the arrays of a wide model."""

    numbering: Numbering
    intercept: bool
    coordinates: int
    """How many there are."""

    @property
    def size(self) -> int:
        """How many places there are."""
        return self.numbering.size + int(self.intercept)

    def of(self, rows: Any) -> Any:
        """The places of some coordinates."""
        shift = int(self.intercept)
        places = np.zeros(rows.size, dtype=np.int64)
        features = rows >= shift
        places[features] = self.numbering.places_of(rows[features] - shift).astype(np.int64) + shift
        return places


class Reader:
    """The arrays of a file, each taken once and only where it fits."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self.arrays = arrays

    def numbering(self, names: Iterable[str], intercept: bool) -> Numbering:
        """Places for all coordinates that these arrays have rows for."""
        base, places = 0, [np.empty(0, dtype=np.int64)]
        for name in names:
            rows = self.arrays.get(f"{name}.rows")
            if name not in self.arrays:
                continue
            if rows is None:
                base = max(base, len(self.arrays[name]))
            elif rows.ndim == 1 and rows.dtype in (np.uint32, np.uint64):
                places.append(rows.astype(np.int64))
        if "pool.places" in self.arrays:
            places.append(self.arrays["pool.places"].astype(np.int64).reshape(-1))
        features, base = np.unique(np.concatenate(places)) - int(intercept), max(0, base - int(intercept))
        return Numbering(base, features[(features >= base) & (features < 2**32)])

    def take(self, name: str, kinds: tuple[Any, ...]) -> Any:
        array = self.arrays.pop(name)
        if array.dtype not in kinds:
            raise DataError(f"its array {name} is of the wrong kind")
        return array

    def fill(self, name: str, array: Any, places: Places | None = None) -> Any:
        """Write what the file holds into an array of zeros of the right shape; the rows that are not all 0.

        With `places` the array has rows for these only.
        """
        values = self.take(name, (array.dtype,))
        rows: Any = slice(None)
        shape, size = array.shape, array.shape[0] if places is None else places.coordinates
        if places is not None and f"{name}.rows" not in self.arrays:
            rows, shape = np.arange(len(values)), (size, *array.shape[1:])
        if f"{name}.rows" in self.arrays:
            rows = self.take(f"{name}.rows", (np.uint32, np.uint64))
            shape = (rows.size, *array.shape[1:])
            rising = rows.ndim == 1 and bool((rows[1:] > rows[:-1]).all())
            if not rising or (rows.size and int(rows[-1]) >= size):
                raise DataError(f"the coordinates of its array {name} are impossible")
        if values.shape != shape:
            raise DataError(f"its array {name} has the wrong shape")
        array[rows if places is None else places.of(rows)] = values
        return values

    def text(self, name: str, most: int) -> list[Any]:
        """A list of at most so many things that was written as JSON."""
        written = self.take(name, (np.uint8,))
        listed: list[Any] = typed(read_json(written.tobytes()), list)
        if written.ndim != 1 or len(listed) > most:
            raise DataError("it has more names than features")
        return listed

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
    if needed > memory_limit():
        raise DataError(f"{rows:,} coordinates need {needed / 2**30:,.0f} GiB, more than this machine has")
