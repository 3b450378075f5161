"""`read`: anything that holds examples as one stream of blocks, with what its features are called."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, TypedDict, Unpack

from rue.errors import DataError, SettingsError, shown
from rue.streams.block import Block, as_array, as_labels, blocks, is_readable, is_stream
from rue.streams.chunk import Chunk, Position
from rue.streams.data import Data
from rue.streams.names import Names
from rue.streams.tables.dicts import are_dicts, table_of
from rue.streams.text.interactions import interactions_in

__all__ = ["Arrays", "ReadOptions", "Stream", "date_order", "read", "read_like"]


class Stream(Protocol):
    """What `read` returns: iterating over it gives its blocks. It can be iterated repeatedly, unless it is a pipe or an
    iterator that ends.
    """

    names: Names
    """What hashed features are called, as far as they have been read."""
    warnings: list[str]
    """Sentences about columns that look as if they were meant otherwise than they are read."""

    @property
    def lent(self) -> bool:
        """Whether the caller may overwrite a block when it yields the next (a generator that reuses its buffers)."""
        ...

    def __iter__(self) -> Iterator[Block]: ...

    def reads(
        self, stop: threading.Event | None = None, after: Position | None = None, labelled: bool = True
    ) -> Iterator[Chunk]:
        """The chunks, with their bad rows and positions; without `labelled`, labels may be missing."""
        ...

    def starts(self) -> Iterator[tuple[int, Position]] | None:
        """Numbers of rows and how far reading has come before each, from 0 up to the number of all rows.

        None for a pipe or an iterator, which can be read only once.
        """
        ...

    def describe(self) -> dict[str, Any]:
        """What a model must know of it to read other data in the same way."""
        ...


class ReadOptions(TypedDict, total=False):
    """How files and tables are read, as on the command line."""

    target: str | int
    """The column to predict, by its name or its position from 1 (−1 is the last)."""
    drop: Iterable[str | int]
    """Columns to leave out."""
    category: Iterable[str | int]
    """Columns of numbers or of text that are categories: each value is a feature."""
    text: Iterable[str | int]
    """Columns of text that become words; a column of sentences is found by itself."""
    expert_column: str | Iterable[str]
    """Columns that hold predictions of other models, made before the label was known; they are no features."""
    cross: Iterable[Iterable[str | int]]
    """Columns whose values together are a category, such as `[("hour", "route")]`."""
    bins: Mapping[str | int, int]
    """Columns of numbers that are put into bins by rank as well, and into how many, such as `{"price": 64}`."""
    word_pairs: bool
    """Whether two words in a row of a column of text are a feature too, such as `review=very good`."""
    interact: str | Iterable[str]
    """Namespaces of VW text whose features are multiplied: `"ab"`, or `"ab,cd"`, by first letters; a colon is any."""
    id: str | int
    """A column that tells rows apart, such as a name or a number, and is no feature."""
    decimal: str
    """What numbers have before their fraction: `"."`, or `","` as in 3,14."""
    day_first: bool
    """Whether dates are written as 31.12.2026 or 31/12/2026; ISO 8601 (2026-12-31) needs no option."""
    month_first: bool
    """Whether dates are written as 12/31/2026."""
    separator: str
    """What separates the columns of a CSV; detected automatically if not given."""
    bits: int
    """Words are hashed into 2^bits slots; 20 if not given."""
    max_line: int
    """MiB that a line of text may have, 16 if not given; a longer one is a bad row."""
    format: str
    """The name of a format (the keys of `rue.streams.formats.formats()`), needed where no suffix tells it."""


def read(X: Any, y: Any = None, weights: Any = None, **how: Unpack[ReadOptions]) -> Stream:
    """One stream out of an array, a sparse matrix, a table (pandas, polars, Arrow), paths, or an iterable of blocks.

    A list of dicts is a table with a row for each. Of a table, `y` is an array or names a column, and so do `weights`;
    of files both name columns. Columns become features exactly as on the command line, and the rest of the options are
    those of the command line.

    >>> import pandas
    >>> table = pandas.DataFrame({"size": [1.5, 2.5], "colour": ["red", None], "bought": ["no", "yes"]})
    >>> [block] = read(table, target="bought")
    >>> block.y.tolist(), len(block)
    (['no', 'yes'], 2)
    """
    options: dict[str, Any] = dict(how)
    unknown = [name for name in options if name not in ReadOptions.__annotations__]
    if unknown:
        known = ", ".join(ReadOptions.__annotations__)
        raise SettingsError(f"there is no option {shown(unknown[0])}: they are {known}.")
    if "target" in options:
        if y is not None:
            raise SettingsError("give y or target, not both: either may name the column to predict.")
        y = options.pop("target")
    if not is_readable(X):
        if options or isinstance(y, str):
            named = ", ".join(options) or f"the column {shown(y)}"
            raise SettingsError(
                f"{named}: these are for files and tables (a data frame, a list of dicts), and X is "
                f"{'empty' if isinstance(X, list | tuple) and not X else type(X).__name__}."
            )
        return Arrays(X, y, weights)
    sources = _sources(X)
    format_name, bits = options.pop("format", None), options.pop("bits", 20)
    options["order"] = date_order(options.pop("day_first", False), options.pop("month_first", False))
    for name in ("drop", "category", "text"):
        given = options.pop(name, ())
        options[name] = (given,) if isinstance(given, str | int) else tuple(given)
    experts = options.pop("expert_column", ())
    options["experts"] = (experts,) if isinstance(experts, str) else tuple(experts)
    options["crosses"] = crosses_of(options.pop("cross", ()))
    options["bins"] = bins_of(options.pop("bins", {}))
    options["interact"] = interactions_in(options.pop("interact", ()))
    columns: dict[str, Any] = {}
    for name, array, value in (("target", "y", y), ("weight", "weights", weights)):
        if value is not None:
            if isinstance(value, str | int):
                columns[name] = value
            else:
                columns[array] = as_labels(value) if array == "y" else as_array(value, array)
    return Data(sources, format_name, bits=bits, **columns, **options)


def crosses_of(given: Any) -> tuple[tuple[str | int, ...], ...]:
    """Columns to cross, in pairs or triples of names; one pair may stand alone.

    >>> crosses_of(("hour", "route")), crosses_of([("hour", "route"), ("day", "route")])
    ((('hour', 'route'),), (('hour', 'route'), ('day', 'route')))
    """
    listed = list(given) if isinstance(given, list | tuple) else []
    if listed and all(isinstance(name, str | int) for name in listed):
        listed = [listed]
    good = isinstance(given, list | tuple) and all(isinstance(one, list | tuple) for one in listed)
    if not good or not all(isinstance(name, str | int) for one in listed for name in one):
        raise SettingsError(f'cross: give pairs of columns such as [("hour", "route")], not {shown(given)}.')
    return tuple(map(tuple, listed))


def bins_of(given: Any) -> tuple[tuple[str | int, int], ...]:
    """Columns to put into bins, and into how many.

    >>> bins_of({"price": 64})
    (('price', 64),)
    """
    if not isinstance(given, Mapping) or not all(isinstance(name, str | int) for name in given):
        raise SettingsError(f'bins: give columns and numbers of bins such as {{"price": 64}}, not {shown(given)}.')
    return tuple(given.items())


def date_order(day_first: bool, month_first: bool) -> str:
    """What `Data` calls the order of day, month and year."""
    if day_first and month_first:
        raise SettingsError("dates have their day first or their month first, not both.")
    return "day-first" if day_first else "month-first" if month_first else ""


def read_like(features: dict[str, Any], X: Any, names: dict[int, str] | None = None, **how: Any) -> Stream:
    """Other data read as those that a model was learnt from, which `features` describes; labels may be missing.

    `how` may have `format`, `separator` and `max_line`, and where they are no columns, the arrays `y` and `weights`.
    """
    if not is_readable(X):
        if features:
            raise DataError(
                "the model was learnt from files or tables: give one of these, or a row as a dict, not "
                f"{type(X).__name__}."
            )
        return Arrays(X, None, None)
    if not features:
        raise DataError("the model was learnt from arrays: it does not know the columns of tables or files.")
    return Data.like(features, _sources(X), how.pop("format", None), names=names, **how)


def _sources(X: Any) -> tuple[Any, ...]:
    parts = [table_of(X)] if are_dicts(X) else X if isinstance(X, list | tuple) else [X]
    sources = tuple(os.fspath(part) if isinstance(part, os.PathLike) else part for part in parts)
    if len({isinstance(source, str) for source in sources}) > 1:
        raise DataError("give files or tables, not both in one stream.")
    return sources


@dataclasses.dataclass
class Arrays:
    """An array, a sparse matrix or blocks as a stream; a row's line is its number, counted from 1."""

    X: Any
    y: Any
    weights: Any
    names: Names = dataclasses.field(default_factory=Names)
    warnings: list[str] = dataclasses.field(default_factory=list)

    @property
    def lent(self) -> bool:
        return is_stream(self.X)

    def __iter__(self) -> Iterator[Block]:
        return blocks(self.X, self.y, self.weights)

    def reads(
        self, stop: threading.Event | None = None, after: Position | None = None, labelled: bool = True
    ) -> Iterator[Chunk]:
        """All the chunks; `stop`, `after` and `labelled` are ignored."""
        rows = 0
        for block in self:
            lines = range(rows + 1, rows + len(block) + 1)
            rows += len(block)
            yield Chunk(block, lines, end=Position(rows, rows))

    def starts(self) -> Iterator[tuple[int, Position]] | None:
        if is_stream(self.X):
            return None
        rows = len(self.X) if isinstance(self.X, Block | list | tuple) else int(self.X.shape[0])
        return iter([(0, Position()), (rows, Position(rows, rows))])

    def describe(self) -> dict[str, Any]:
        return {}
