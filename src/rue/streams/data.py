"""`Data`: files of any format, or tables in memory, as one stream of chunks, and what its features are called."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

from rue.errors import DataError, SettingsError
from rue.streams.block import Block
from rue.streams.chunk import BadRow, Chunk
from rue.streams.files.cutting import MAX_LINE, MIB, Recent, digest, too_long
from rue.streams.files.files import (
    Job,
    Onward,
    Piece,
    Place,
    Read,
    Source,
    Spot,
    Until,
    format_of,
    open_bytes,
    read_ahead,
    skip,
    tells_format,
    text_pieces,
)
from rue.streams.names import Names

__all__ = ["Data"]

_BYTES = ("svmlight", "vw", "csv", "jsonl")
"""The formats in which a place is a number of bytes."""
LARGEST_LINE = 1024
"""MiB in a line at most, whatever is asked for: pyarrow counts the bytes of a text in 32 bits."""


@dataclasses.dataclass
class Data:
    """One stream made of files or tables; for tables, the columns and what they mean."""

    paths: tuple[Any, ...]
    """Files, folders of them, `-` for a pipe, or tables in memory."""
    told: str | None = None
    """The format, where suffixes do not tell it."""
    target: str | int | None = None
    weight: str | int | None = None
    drop: tuple[str | int, ...] = ()
    category: tuple[str | int, ...] = ()
    separator: str | None = None
    bits: int = 20
    max_line: int = MAX_LINE
    """MiB that a line of text may have: a longer one is a bad row."""
    columns: Any = None
    """How the columns of a table become features, settled by the first file or by a model."""
    names: Names = dataclasses.field(default_factory=Names)
    """What slots are called, of the first features that have a name."""
    naming: bool = True
    """Whether names are looked for: only what outlives the pass needs them."""
    y: Any = None
    """The labels of a table in memory, if they are no column of it."""
    weights: Any = None
    """Its weights, if they are no column of it."""

    lent = False

    def __post_init__(self) -> None:
        if not self.paths:
            raise SettingsError("name the data: one file or several, or - for a pipe.")
        if len(self.paths) > 1 and any(isinstance(path, str) and path == "-" for path in self.paths):
            raise SettingsError("a pipe (-) cannot be one of several files.")
        if not 1 <= self.max_line <= LARGEST_LINE:
            raise SettingsError(f"max_line must lie between 1 and {LARGEST_LINE} MiB, not {self.max_line}.")
        self.paths = _unfolded(self.paths, self.told)
        self.sources = [format_of(path, self.told) for path in self.paths]
        self._found: tuple[Place, bytes] | None = None
        self._heads: dict[tuple[int, int], str] = {}
        self._tables: dict[int, Any] = {}
        self._opened: set[int] = set()
        """Which of the sources are pipes that have been opened."""
        self.doubts: list[str] = []
        """What looks as if it was meant otherwise than it is taken."""
        formats = {source.format for source in self.sources}
        if len(formats) > 1:
            raise DataError(
                f"the files are of different formats ({', '.join(sorted(formats))}): learn them one by one."
            )
        self.format = formats.pop()
        for source in self.sources:
            if self.format == "parquet" and (source.piped or source.packed):
                raise DataError(
                    f"{source.name}: Parquet is read from its end, so save it to a file and unpack it first."
                )
        if self.tabular and self.target is None and self.columns is None and self.y is None:
            raise SettingsError("say which column to predict: --target NAME (in Python target=), or -1 for the last.")
        if not self.tabular and (self.target or self.weight or self.drop or self.category or self.separator):
            raise SettingsError(
                f"--target, --weight, --drop, --category and --separator are for tables, not {self.format}."
            )
        if self.format != "table" and (self.y is not None or self.weights is not None):
            raise SettingsError(f"{self.sources[0].name}: labels and weights are in the file, not arrays beside it.")

    @classmethod
    def like(
        cls,
        features: dict[str, Any],
        paths: tuple[Any, ...],
        told: str | None = None,
        separator: str | None = None,
        names: dict[int, str] | None = None,
        max_line: int = MAX_LINE,
    ) -> Data:
        """Other data read in the way that a model was learnt."""
        paths = _unfolded(paths, told)
        first = format_of(paths[0], told)
        tabular, kind = first.format not in ("svmlight", "vw"), features.get("kind", first.format)
        if (kind == "table") != tabular:
            raise DataError(f"the model was learnt from {kind} data, but {first.name} is {first.format}.")
        columns = None
        if features.get("columns") is not None:
            from rue.streams.tables.columns import Columns

            columns = Columns.from_dict(features["columns"])
        return cls(
            paths,
            told,
            separator=separator,
            bits=int(features.get("bits", 20)),
            max_line=max_line,
            columns=columns,
            names=Names((names or {}).items()),
        )

    @property
    def tabular(self) -> bool:
        return self.format in ("csv", "jsonl", "parquet", "ipc", "table")

    @property
    def size(self) -> int | None:
        """The bytes of all files together, if that tells how far reading has come."""
        if any(source.piped or source.packed for source in self.sources) or self.format not in _BYTES:
            return None
        try:
            return sum(os.path.getsize(path) for path in self.paths)
        except OSError:
            return None

    def share(self, place: Place) -> float | None:
        """How much has been read."""
        if not self.size:
            return None
        return (sum(os.path.getsize(path) for path in self.paths[: place.file]) + place.offset) / self.size

    def reads(
        self, stop: threading.Event | None = None, after: Place | None = None, labelled: bool = True
    ) -> Iterator[Read]:
        """The chunks after a place, in order, parsed ahead."""
        stop, after = stop or threading.Event(), after or Place()
        for read in self._beside(read_ahead(partial(self._jobs, after, labelled), stop)):
            if self.columns is not None and not self.names.of:
                self.names.add(enumerate(self.columns.own))
            self.names.add(read.chunk.names)
            yield read

    def _beside(self, reads: Iterator[Read]) -> Iterator[Read]:
        """Give the rows of tables their labels and weights where these are arrays, a place for each row."""
        given = [column for column in (self.y, self.weights) if column is not None]
        file, before, after = 0, 0, 0
        for read in reads:
            chunk = read.chunk
            if given:
                if read.after.place.file != file:
                    file, before = read.after.place.file, after
                after = before + read.after.place.offset
                _require_rows(given, after)
                rows = before + chunk.lines - 1
                y = chunk.block.y if self.y is None else self.y[rows]
                weights = chunk.block.weights if self.weights is None else self.weights[rows]
                chunk = dataclasses.replace(chunk, block=Block(chunk.block.X, y, weights))
                read = dataclasses.replace(read, chunk=chunk)
            yield read
        _require_rows(given, after, whole=True)

    def __iter__(self) -> Iterator[Block]:
        """The examples alone; a bad row stops."""
        for read in self.reads():
            if read.chunk.first_bad:
                raise read.error(read.chunk.first_bad)
            yield read.chunk.block

    def _jobs(self, after: Place, labelled: bool, stop: Until) -> Iterator[Job]:
        for i, source in enumerate(self.sources[after.file :], after.file):
            place = after if i == after.file else Place(i)
            if source.piped:
                if i in self._opened:
                    raise DataError(f"{source.name}: a pipe can be read only once: give a file for more passes.")
                self._opened.add(i)
            elif self.format != "table":
                open_bytes(source).close()
            yield from (
                self._of_table(source, place, labelled, stop) if self.tabular else self._of_text(source, place, stop)
            )

    def _of_text(self, source: Source, place: Place, stop: Until) -> Iterator[Job]:
        parser = self._parser()
        for piece in self._named(source, text_pieces(source, place.offset, place.line, stop, self.max_line)):
            if piece.long is not None:
                job = partial(self._of_long_line, parser, piece.first_line, piece.long.finished)
            else:
                asked = (self._wanted() or None,) if self.format == "vw" else ()
                job = partial(parser.parse, piece.data, piece.first_line, *asked)
            yield job, source.name, _spot(place.file, piece), partial(_before, place.file, piece)

    def _of_long_line(self, parser: Any, line: int, finished: bool) -> Chunk:
        chunk: Chunk = parser.parse(b"", line)
        bad = BadRow(0, line, "", too_long(self.max_line))
        return dataclasses.replace(chunk, bad=(bad,) * finished, unfinished=None if finished else bad)

    def _wanted(self) -> Names | bool:
        """What names a piece is asked for: those not here yet, if there is room for more."""
        return self.names if self.naming and not self.names.full() else False

    def _parser(self) -> Any:
        if self.format == "vw":
            from rue.streams.text.vw import VW

            return VW(self.bits)
        from rue.streams.text.svmlight import Svmlight

        return Svmlight()

    def _table(self, source: Source, opened: contextlib.ExitStack) -> Any:
        from rue.streams.tables.table import open_table

        named = {"ipc": "arrow"}.get(self.format, self.format)
        file = source.path
        if source.piped or source.packed or self.format in _BYTES:
            file = open_bytes(source)
            if source.path != "-":
                opened.callback(file.close)
            if source.piped or self.format == "ipc":
                file = Onward(file, source.piped)
        if self.format == "table":  # kept, because some can be read only once and know it
            if id(source) not in self._tables:
                self._tables[id(source)] = open_table(file)
            return self._tables[id(source)]
        return open_table(file, named, separator=self.separator, max_line=self.max_line)

    def _of_table(self, source: Source, place: Place, labelled: bool, stop: Until) -> Iterator[Job]:
        with contextlib.ExitStack() as opened:
            yield from self._named(source, self._of_opened_table(source, place, labelled, stop, opened))

    def _named(self, source: Source, things: Iterator[Any]) -> Iterator[Any]:
        """The same things; an error among them says which file it is about."""
        try:
            yield from things
        except DataError as error:
            if self.format == "table" or source.name in str(error):
                raise
            raise DataError(f"{source.name}: {error}") from error
        except UnicodeError:
            raise DataError(f"{source.name}: it holds names or text that are not UTF-8.") from None

    def _of_opened_table(
        self, source: Source, place: Place, labelled: bool, stop: Until, opened: contextlib.ExitStack
    ) -> Iterator[Job]:
        from rue.streams.tables.columns import find_column, plan
        from rue.streams.tables.table import Position

        table = self._table(source, opened)
        if self.columns is None:
            self.columns = plan(
                table.schema,
                target=self.target,
                weight=self.weight,
                drop=self.drop,
                category=self.category,
                bits=self.bits,
            )
            if self.format == "csv":
                words = {name for name in self.columns.used if self.columns.kind(name) == "category"}
                words -= {find_column(name, table.schema.names, "category") for name in self.category}
                self.doubts += [f"{source.name}: {why}" for name, why in table.doubts() if name in words]
        self.columns.require(table.schema.names, labelled)
        name = "" if self.format == "table" else source.name
        start = Position(place.offset, place.line) if place.offset else None
        recent = Recent(self._last(place)) if start or self.format not in _BYTES else table.before.copy()
        for piece in table.pieces(start):
            if stop.is_set():
                return
            job = partial(table.chunk, piece, self.columns, labels=labelled, names=self._wanted())
            if self.format not in _BYTES:
                after = Spot(_place(place.file, piece.end), partial(table.tail, piece.end.offset, piece.whole))
                yield job, name, after, partial(self._before_row, place.file)
                continue
            data = piece.data if piece.long is None else piece.long.last
            after = Spot(_place(place.file, piece.end), recent.followed_by(data))
            yield job, name, after, partial(_before_text, place.file, piece, recent.copy())
            recent.add(data)

    def describe(self) -> dict[str, Any]:
        """What a model must know of it to read other data in the same way."""
        kind = "table" if self.tabular else self.format
        columns = None if self.columns is None else self.columns.to_dict()
        return {"kind": kind, "bits": self.bits, "columns": columns}

    def tail_before(self, place: Place) -> str:
        """A digest of the last MiB before a place, as `Spot.tail` makes it."""
        source = self.sources[place.file]
        if place.offset == 0 or source.piped:
            return ""
        if self.format not in _BYTES:
            with contextlib.ExitStack() as opened:
                return str(self._table(source, opened).tail(place.offset))
        data = self._last(place)
        return digest(data) if len(data) == min(MIB, place.offset) else "shorter"

    def _before_row(self, file: int, line: int) -> Spot:
        """The spot before a row of a table."""
        place = Place(file, line - 1, line - 1)
        return Spot(place, partial(self.tail_before, place))

    def _last(self, place: Place) -> bytes:
        """The last MiB before a place in text, or less if the file is shorter."""
        if self.format not in _BYTES or self.sources[place.file].piped:
            return b""
        if self._found is None or self._found[0] != place:
            source = self.sources[place.file]
            with open_bytes(source) as file:
                skip(file, source, max(0, place.offset - MIB))
                self._found = place, file.read(min(MIB, place.offset))
        return self._found[1]

    def heads(self, place: Place) -> list[str]:
        """A digest of the first MiB of each file, as far as it lies before a place."""
        found = []
        for i, source in enumerate(self.sources[: place.file + 1]):
            if source.piped:
                found.append("")
                continue
            most = MIB if i < place.file or self.format not in _BYTES else min(MIB, place.offset)
            if (i, most) not in self._heads:
                with open_bytes(source) as file:
                    self._heads[i, most] = digest(file.read(most))
            found.append(self._heads[i, most])
        return found


def _require_rows(columns: list[Any], rows: int, whole: bool = False) -> None:
    for column in columns:
        if len(column) < rows or (whole and len(column) > rows):
            raise DataError(
                f"X has {rows:,} rows{'' if whole else ' at least'}, but y or weights have {len(column):,}."
            )


def _spot(file: int, piece: Piece) -> Spot:
    return Spot(Place(file, piece.end, piece.end_line), piece.tail)


def _before(file: int, piece: Piece, line: int) -> Spot:
    return _spot(file, piece.before_line(line))


def _place(file: int, position: Any) -> Place:
    return Place(file, position.offset, position.line)


def _before_text(file: int, piece: Any, recent: Recent, line: int) -> Spot:
    """The spot before a line of a table's text."""
    cut = 0
    for _ in range(line - 1 - piece.start.line):
        cut = piece.data.index(b"\n", cut) + 1
    return Spot(Place(file, piece.start.offset + cut, line - 1), recent.followed_by(piece.data[:cut]))


def _unfolded(paths: tuple[Any, ...], told: str | None) -> tuple[Any, ...]:
    """The paths, with the files in and below a folder in its place, by name; hidden ones (. and _) are left out."""
    found: list[Any] = []
    for path in paths:
        if not isinstance(path, str) or not os.path.isdir(path):
            found.append(path)
            continue
        inside = []
        for folder, folders, files in os.walk(path):
            folders[:] = sorted(name for name in folders if name[0] not in "._")
            inside += [os.path.join(folder, name) for name in sorted(files) if name[0] not in "._"]
        known = [file for file in inside if told is not None or tells_format(file)]
        if not known:
            raise DataError(f"{path} is a folder with no file in it whose suffix tells a format.")
        found += known
    return tuple(found)
