"""One example in whatever form a user has it, made into the arrays a kernel reads."""

from __future__ import annotations

import datetime
import math
import struct
import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from rue.errors import DataError, shown
from rue.learners import loop
from rue.streams import Block, as_array, floats, one_sparse_row
from rue.streams.block import csr_view
from rue.streams.text.hashing import hash_texts

__all__ = [
    "HASHED_NAMES",
    "OWN_NAMES",
    "Names",
    "complaint",
    "dense_row",
    "is_missing",
    "is_number",
    "merged",
    "number",
    "numeric",
    "one_row",
    "sparse_row",
]

OWN_NAMES = 2**20
"""How many names get a coordinate of their own, in the order they are first learnt."""
HASHED_NAMES = 2**20
"""How many coordinates all further names share, by MurmurHash3-32, so that memory does not grow for ever."""

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UINT32, _INT32 = np.dtype(np.uint32), np.dtype(np.int32)


def sparse_row(x: Any) -> tuple[Any, Any] | None:
    """Sorted indices and values of a pair or of a sparse matrix with one row; None if x is neither."""
    if hasattr(x, "tocsr"):
        indices, values = one_sparse_row(x)
    elif isinstance(x, tuple) and len(x) == 2 and not np.isscalar(x[0]):
        indices, values = as_array(x[0], "indices"), as_array(x[1], "features")
    else:
        return None
    if indices.ndim != 1 or indices.shape != values.shape:
        raise DataError(f"a sparse example is (indices, values) of one length, not {indices.shape} and {values.shape}.")
    if indices.dtype is not _UINT32:
        if indices.dtype.kind not in "iu" and indices.size:
            raise DataError(f"feature indices must be whole numbers, not {indices.dtype}.")
        if indices.dtype != _INT32 and indices.size and int(indices.max()) >= 2**32:
            raise DataError("feature indices must be below 2³².")
        if indices.size and int(indices.min()) < 0:
            raise DataError(f"the feature index {int(indices.min())} is negative: indices count from 0.")
        indices = indices.astype(np.uint32)
    values = floats(values, "features")
    if indices.size > 1 and not bool((indices[1:] > indices[:-1]).all()):
        order = np.argsort(indices, kind="stable")
        indices, values = indices[order], values[order]
        if bool((indices[1:] == indices[:-1]).any()):
            twice = int(indices[1:][indices[1:] == indices[:-1]][0])
            raise DataError(f"feature {twice} appears more than once in one example: add up its values first.")
    return np.ascontiguousarray(indices), np.ascontiguousarray(values)


def one_row(pair: tuple[Any, Any], width: int, y: float | None = None, weight: float | None = None) -> Block:
    """Sorted indices and values as a block of one row, with its label and weight if it has them."""
    y_column, weights = (None if number is None else np.array([number]) for number in (y, weight))
    return Block(csr_view(np.array([0, pair[0].size]), *pair, width, bins=()), y_column, weights)


def dense_row(x: Any) -> Any:
    """A dense row as a contiguous array of float64."""
    row = floats(as_array(x, "features"), "features")
    if row.ndim != 1:
        raise DataError(f"one example at a time has one dimension, not {row.ndim}; use run for many.")
    return np.ascontiguousarray(row)


class Names:
    """Feature names and their indices: the first `OWN_NAMES` by first occurrence, the others by a hash.

    Names that share an index in one example have their values added up. Examples of one stream mostly have the same
    names in the same order, so the last tuple of names is remembered with its indices; then an example costs one
    comparison and one packing of its values.
    """

    def __init__(self) -> None:
        self.places: dict[Hashable, int] = {}
        """The names that have an index of their own."""
        self._forget()

    def _forget(self) -> None:
        self.keys: tuple[Hashable, ...] | None = None
        self.indices: Any = None
        self.values: Any = None
        self._unsorted: Any = None
        self._order: Any = None
        self._starts: Any = None
        self._buffer: Any = None
        self._packed: tuple[Any, ...] | None = None
        self._write: Any = None

    def row(self, x: Mapping[Any, Any]) -> tuple[Any, Any]:
        """Indices and values of an example; new names get new indices. The arrays serve until the next call."""
        x = numeric(x)
        if tuple(x) != self.keys:
            self._remember(tuple(x))
        self.pack(x)
        return self.indices, self.values

    def pack(self, x: Mapping[Any, Any]) -> bool:
        """Write the values of an example that has exactly the names of `keys`, in that order, into `values`.

        False if one of them is no number: a word, or a missing value.
        """
        packed = tuple(x.values())
        try:
            same = packed == self._packed  # `update` mostly gets what `predict` has just got
        except ValueError:  # an array among the values
            same = False
        if not same:
            self._packed = None
            try:
                self._write(self._buffer, 0, *packed)
            except (OverflowError, TypeError, struct.error):
                return False
            if self._starts is not None:
                np.add.reduceat(self._unsorted[self._order], self._starts, out=self.values)
            elif self._order is not None:
                np.take(self._unsorted, self._order, out=self.values)
            self._packed = packed
        return True

    def forget_from(self, count: int) -> None:
        """Keep the first `count` names only."""
        if count < len(self.places):
            self.places = dict(list(self.places.items())[:count])
        self._forget()

    def learnt(self, x: Mapping[Any, Any]) -> tuple[Any, Any]:
        """Indices and values of an example, as `row` has them, in arrays of their own."""
        indices, values = self.row(x)
        return indices.copy(), values.copy()

    def known(self, x: Mapping[Any, Any]) -> tuple[Any, Any]:
        """Indices and values without learning names: unknown ones have weight 0, so they are left out."""
        x = numeric(x)
        names = [name for name in x if self.has_index(name)]
        return merged(self.indices_of(names), np.array([float(x[name]) for name in names]))

    def has_index(self, name: Hashable) -> bool:
        """Whether a name has an index without being learnt first."""
        return name in self.places or len(self.places) >= OWN_NAMES

    def learn(self, names: Iterable[Hashable]) -> Any:
        """The indices of some names, not sorted; new ones get one of their own while there are any left."""
        names, places = list(names), self.places
        if len(places) + len(names) <= OWN_NAMES:
            return np.array([places.setdefault(name, len(places)) for name in names], dtype=np.uint32)
        for name in names:
            if name not in places and len(places) < OWN_NAMES:
                places[name] = len(places)
        return self.indices_of(names)

    def indices_of(self, names: Iterable[Hashable]) -> Any:
        """The indices of names that have one, not sorted."""
        names, places = list(names), self.places
        hashed = [name for name in names if name not in places]
        if not hashed:
            return np.array([places[name] for name in names], dtype=np.uint32)
        shared = dict(zip(hashed, (len(places) + _hashes(hashed) % HASHED_NAMES).tolist(), strict=True))
        return np.array([places[name] if name in places else shared[name] for name in names], dtype=np.uint32)

    @property
    def limit(self) -> int:
        """How many features there are if all names come that have an index."""
        return len(self.places) + (HASHED_NAMES if len(self.places) >= OWN_NAMES else 0)

    def width(self, indices: Any) -> int:
        """How many features a learner needs for a sorted row: with a hashed name, those of all hashed names."""
        return self.limit if indices.size and int(indices[-1]) >= len(self.places) else len(self.places)

    def _remember(self, keys: tuple[Hashable, ...]) -> None:
        indices = self.learn(keys)
        increasing = bool((indices[1:] > indices[:-1]).all())
        self._order = None if increasing else np.argsort(indices, kind="stable")
        self.keys = keys
        self.indices = indices if increasing else indices[self._order]
        new = np.append(True, self.indices[1:] > self.indices[:-1]) if keys else np.empty(0, dtype=bool)
        self._starts = None if new.all() else np.flatnonzero(new)
        if self._starts is not None:
            self.indices = self.indices[new]
        self._unsorted = np.empty(len(keys))
        self.values = self._unsorted if increasing else np.empty(self.indices.size)
        self._buffer, self._packed = memoryview(self._unsorted), None
        self._write = struct.Struct(f"{len(keys)}d").pack_into

    def __getstate__(self) -> tuple[Hashable, ...]:
        return (None, *self.places)  # never empty: pickle drops a state that is

    def __setstate__(self, state: tuple[Hashable, ...]) -> None:
        self.places = {name: place for place, name in enumerate(state[1:])}
        self._forget()


def merged(indices: Any, values: Any) -> tuple[Any, Any]:
    """Indices in rising order and their values, those of one index added up."""
    order = np.argsort(indices, kind="stable")
    indices, values = indices[order], values[order]
    if indices.size > 1 and not bool((indices[1:] > indices[:-1]).all()):
        starts = np.flatnonzero(np.append(True, indices[1:] > indices[:-1]))
        indices, values = indices[starts], np.add.reduceat(values, starts)
    return indices, values


def _hashes(names: list[Hashable]) -> Any:
    """MurmurHash3-32 of the names; equal names have equal hashes, in every process."""
    written = [_written(name) for name in names]
    return hash_texts(b"".join(written), np.cumsum([0, *map(len, written)])).astype(np.int64)


def _written(name: Hashable) -> bytes:
    """Bytes that are the same for names that are equal, as 1, 1.0 and True are."""
    if isinstance(name, str):
        return name.encode("utf-8", "surrogatepass")
    if isinstance(name, bytes):
        return name
    if isinstance(name, int | float | np.number | np.bool_):
        return b"\0%d" % hash(name)  # unlike those of text, hashes of numbers are the same in every process
    return repr(name).encode("utf-8", "surrogatepass")


def numeric(x: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """An example whose words, dates and missing values are features, as in tables; x itself if it has none.

    A word is called `name=word` and a missing value (None, NaN, "") `name=`, both of value 1. A `datetime` or `date` is
    its weekday, its hour unless it is midnight, and `name.day_of_year`, in UTC where it has a time zone; but for the
    days since the first date, which a table knows, these are the features of a table.

    >>> numeric({"size": 2.5, "colour": "red", "age": None})
    {'size': 2.5, 'colour=red': 1.0, 'age=': 1.0}
    >>> numeric({"at": datetime.datetime(2026, 3, 1, 18, 30)})
    {'at.day_of_year': 60.0, 'at.hour=18': 1.0, 'at.weekday=Sunday': 1.0}
    """
    if all(type(value) is float and value == value for value in x.values()):
        return x
    features: dict[Any, Any] = {}
    for name, value in x.items():
        if isinstance(value, str):
            if _is_date(value):
                warnings.warn(
                    f"the feature {shown(name)} is a date in text, taken as a word: give a datetime, as "
                    "datetime.fromisoformat makes it, and its weekday, hour and day of the year become features.",
                    stacklevel=2,
                )
            name, value = f"{name}={value}", 1.0
        elif is_missing(value):
            name, value = f"{name}=", 1.0
        elif isinstance(value, datetime.date):
            features |= _parts_of_date(str(name), value)
            continue
        elif not is_number(value):
            raise DataError(
                f"the feature {shown(name)} is {shown(value)}: features are numbers, words, datetimes, or None if "
                "missing."
            )
        features[name] = features.get(name, 0.0) + float(value)
    return features


def _is_date(text: str) -> bool:
    """Whether a word is a date by ISO 8601."""
    return len(text) >= 10 and text[4] == text[7] == "-" and (text[:4] + text[5:7] + text[8:10]).isdecimal()


def _parts_of_date(name: str, value: datetime.date) -> dict[str, float]:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC)
    parts = {f"{name}.day_of_year": float(value.timetuple().tm_yday)}
    if isinstance(value, datetime.datetime) and value.time() != datetime.time():
        parts[f"{name}.hour={value.hour}"] = 1.0
    return parts | {f"{name}.weekday={WEEKDAYS[value.weekday()]}": 1.0}


def is_missing(value: Any) -> bool:
    """Whether a value of a dict is None or NaN, or what pandas has for them."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA, which compares to nothing; an array
        return not is_number(value) and type(value).__name__ == "NAType"


def is_number(value: Any) -> bool:
    """Whether a feature, a label or a weight is a number; text that reads like one is not."""
    try:
        float(value)
    except (OverflowError, TypeError, ValueError):
        return False
    return not isinstance(value, str | bytes | bytearray | np.ndarray)


def number(value: Any) -> float:
    """A label or a weight as a float; TypeError if it is none."""
    if isinstance(value, str | bytes):
        raise TypeError("text is not a number")
    try:
        return float(value)
    except (OverflowError, ValueError) as error:
        raise TypeError(str(error)) from error


def _first_not_finite(x: Any) -> float:
    """The first number of an example, in whatever form, that is not finite."""
    if isinstance(x, Mapping):
        values: Any = list(numeric(x).values())
    elif hasattr(x, "tocsr"):
        values = x.data
    else:
        values = x[1] if isinstance(x, tuple) else x
    numbers = np.asarray(values, dtype=np.float64).reshape(-1)
    bad = numbers[~np.isfinite(numbers)]
    return float(bad[0]) if bad.size else math.nan


def complaint(status: int, learner: Any, x: Any, y: Any, weight: Any) -> str:
    """What to say about an example that a loop found unusable."""
    if status == loop.BAD_LABEL:
        return f"the label {shown(_plain(y))} is not {learner.loss.labels}, which {learner.loss!r} needs."
    if status == loop.BAD_WEIGHT:
        return f"the weight {shown(_plain(weight))} is not a finite number ≥ 0."
    if status == loop.BAD_FEATURE:
        return f"a feature is {_first_not_finite(x)}: features must be finite numbers."
    if status == loop.UNORDERED:
        return "a feature appears more than once: add up its values first (scipy: X.sum_duplicates())."
    if status == loop.TOO_WIDE:
        return f"a feature index is beyond the matrix's {learner.d} columns."
    return "the sparse matrix is damaged: its indptr leads outside its data."


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
