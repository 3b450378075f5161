"""`Data`: files of any format, or tables in memory, as one stream of chunks, and what its features are called.

- A *source* is one file, pipe or table in memory; a stream has one or several.
- A *piece* is what is read of a source at a time, not yet parsed: whole lines of text, or an Arrow record batch.
- A *chunk* is a piece parsed: a *block* (the good rows: X, y, weights), the bad rows, and where in the source they are.
- A *record* is one row of a CSV or JSON Lines file; with quotes, a record of a CSV may have several lines.
- A *position* says how far a stream has been read: source, line, and byte (or row); checkpoints record one.

The word "table" has two meanings here. As the format of a source (`self.format == "table"`) it is data in memory. As
the `kind` of a model's features it is any tabular format: CSV, JSON Lines, Parquet, Arrow, and data in memory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rue.errors import DataError, SettingsError
from rue.streams.block import Block
from rue.streams.chunk import BadRow, Chunk, Position
from rue.streams.files.ahead import read_ahead
from rue.streams.files.cutting import MAX_LINE, MIB, digest, too_long
from rue.streams.files.pieces import PIECE, Piece, text_pieces
from rue.streams.files.remote import files_below, is_remote
from rue.streams.files.sources import Source
from rue.streams.formats import Format, TableFormat, TextFormat, find_source, formats, has_known_suffix
from rue.streams.names import Names
from rue.streams.tables.columns import Columns, find_column, find_id, plan
from rue.streams.tables.table import Table
from rue.streams.text.interactions import interactions_in

__all__ = ["Data"]

LARGEST_LINE = 1024
"""MiB in a line at most, whatever is asked for: pyarrow counts the bytes of a text in 32 bits."""


class _InMemory(TableFormat):
    """Tables in memory; each is opened once, because some can be read only once."""

    counts_rows = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._opened: dict[int, Table] = {}

    def open(self, source: Source, block: int = 0) -> Table:
        from rue.streams.tables.batches import open_frame

        if id(source) not in self._opened:
            self._opened[id(source)] = open_frame(source.path)
        return self._opened[id(source)]


@dataclasses.dataclass
class Data:
    """Files or tables in memory as one stream; for tables, the columns and what they mean.

    >>> Data(("clicks.csv", "more.csv"), target="clicked").format
    'csv'
    """

    paths: tuple[Any, ...]
    """Files, folders of them, `-` for a pipe, or tables in memory."""
    format_name: str | None = None
    """The format, where suffixes do not tell it."""
    target: str | int | None = None
    weight: str | int | None = None
    drop: tuple[str | int, ...] = ()
    category: tuple[str | int, ...] = ()
    id: str | int | None = None
    """The column that tells rows apart; of VW text `tag`."""
    text: tuple[str | int, ...] = ()
    """Columns of text, which become words; others are found by their first rows."""
    experts: tuple[str | int, ...] = ()
    """Columns that hold predictions of outside experts; they are no features."""
    crosses: tuple[tuple[str | int, ...], ...] = ()
    """Columns whose values together are a category."""
    bins: tuple[tuple[str | int, int], ...] = ()
    """Columns of numbers that are put into bins by rank as well, and into how many."""
    word_pairs: bool = False
    """Whether two words in a row of a column of text are a feature too."""
    interact: tuple[str, ...] = ()
    """Namespaces of VW text whose features are multiplied, by their first letters: `ab`; a colon is any."""
    separator: str | None = None
    decimal: str = "."
    """What numbers have before their fraction: a point or a comma."""
    order: str = ""
    """How dates in text are written where only a person knows: "day-first" or "month-first"."""
    bits: int = 20
    max_line: int = MAX_LINE
    """MiB that a line of text may have: a longer one is a bad row."""
    columns: Any = None
    """How the columns of a table become features, settled by the first file or by a model."""
    names: Names = dataclasses.field(default_factory=Names)
    """What slots are called, of the first features that have a name."""
    naming: bool = True
    """Whether the names of hashed features are collected: for a model that is saved, and for the report of a table."""
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
        if self.decimal not in (".", ","):
            raise SettingsError(f"the decimal sign is a point or a comma, not {self.decimal!r}.")
        self.paths = _expand_folders(self.paths, self.format_name)
        self.sources = [find_source(path, self.format_name) for path in self.paths]
        self._heads: dict[tuple[int, int], str] = {}
        self._opened: set[int] = set()
        """Which of the sources are pipes that have been opened."""
        self.warnings: list[str] = []
        """Sentences about columns that look as if they were meant otherwise than they are read."""
        names = {source.format for source in self.sources}
        if len(names) > 1:
            raise DataError(f"the files are of different formats ({', '.join(sorted(names))}): learn them one by one.")
        self.format = names.pop()
        """The name of the format of all of them; "table" for data in memory."""
        in_memory = self.format == "table"
        format_: type[Format] = _InMemory if in_memory else formats()[self.format]
        for source in self.sources:
            if format_.needs_file and not source.whole:
                raise DataError(f"{source.name}: {format_.needs_file}")
        if format_.tabular and self.target is None and self.columns is None and self.y is None:
            raise SettingsError("say which column to predict: --target NAME (in Python y=), or -1 for the last.")
        if self.id is not None and not format_.tabular and not (self.format == "vw" and self.id == "tag"):
            tags = "the id of an example is its tag: say --id tag." if self.format == "vw" else "there are no columns."
            raise SettingsError(f"--id {self.id}: in {self.format} {tags}")
        roles = self.target or self.weight or self.drop or self.category or self.text or self.experts or self.crosses
        roles = roles or self.word_pairs or self.bins
        if not format_.tabular and (roles or self.separator or self.order or self.decimal != "."):
            raise SettingsError(
                "--target, --weight, --drop, --category, --text, --expert-column, --cross, --bins, --word-pairs, "
                f"--separator, --decimal, --day-first and --month-first are for tables, not {self.format}."
            )
        self.interact = interactions_in(self.interact)
        if self.interact and self.format != "vw":
            other = "use --cross for columns" if format_.tabular else "there are no namespaces"
            raise SettingsError(f"--interact {','.join(self.interact)} is for VW text: in {self.format} {other}.")
        if not in_memory and (self.y is not None or self.weights is not None):
            raise SettingsError(f"{self.sources[0].name}: labels and weights are in the file, not arrays beside it.")
        self._format = format_(bits=self.bits, separator=self.separator, max_line=self.max_line)
        self._format.decimal = self.decimal if self.columns is None else self.columns.decimal
        self._format.interact = self.interact

    @property
    def tabular(self) -> bool:
        """Whether it has columns."""
        return self._format.tabular

    @classmethod
    def like(
        cls,
        features: dict[str, Any],
        paths: tuple[Any, ...],
        format_name: str | None = None,
        separator: str | None = None,
        names: dict[int, str] | None = None,
        max_line: int = MAX_LINE,
        id_column: str | int | None = None,
        y: Any = None,
        weights: Any = None,
    ) -> Data:
        """Other data read in the way that a model was learnt."""
        paths = _expand_folders(paths, format_name)
        first = find_source(paths[0], format_name)
        tabular = first.format == "table" or formats()[first.format].tabular
        kind = features.get("kind", first.format)
        if (kind == "table") != tabular:
            raise DataError(f"the model was learnt from {kind} data, but {first.name} is {first.format}.")
        columns = None
        if features.get("columns") is not None:
            columns = Columns.from_dict(features["columns"])
        return cls(
            paths,
            format_name,
            id=id_column,
            separator=separator,
            interact=tuple(features.get("interact", ())),
            bits=int(features.get("bits", 20)),
            max_line=max_line,
            columns=columns,
            names=Names((names or {}).items()),
            y=y,
            weights=weights,
        )

    def id_name(self, chunk: Chunk) -> str | None:
        """What the tags of a chunk are called: the column they come from, `tag` in VW text; None if there are none.

        In VW text they are found in the first chunk that is read, unless the id is named.
        """
        if self.columns is not None:
            name: str | None = self.columns.id
            return name
        return "tag" if self.id is not None or chunk.tags is not None else None

    def parts(self, source: Source, size: int) -> list[tuple[int, int]]:
        """Where parts of a file begin and end that can be read by themselves; none if it is read as a whole."""
        with self._errors_with_file_name(source):
            return self._format.parts(source, size)

    def part(self, source: Source, start: int, stop: int) -> Source | None:
        """One of these parts; None if there is nothing in it."""
        with self._errors_with_file_name(source):
            return self._format.part(source, start, stop)

    @property
    def piped(self) -> bool:
        """Whether it is a pipe, whose rows come when they come."""
        return any(source.piped for source in self.sources)

    @property
    def size(self) -> int | None:
        """The bytes of all files together; None if byte offsets do not measure progress."""
        if not all(source.plain for source in self.sources) or self._format.counts_rows:
            return None
        try:
            return sum(os.path.getsize(path) for path in self.paths)
        except OSError:
            return None

    def share(self, position: Position) -> float | None:
        """How much of the data comes before a position, from 0 to 1, if that is known."""
        if not self.size:
            return None
        return (sum(os.path.getsize(path) for path in self.paths[: position.file]) + position.offset) / self.size

    def reads(
        self, stop: threading.Event | None = None, after: Position | None = None, labelled: bool = True
    ) -> Iterator[Chunk]:
        """The chunks after a position, in order, parsed ahead; without `labelled`, labels may be missing."""
        stop, after = stop or threading.Event(), after or Position()
        for chunk in self._with_arrays(read_ahead(partial(self._parsers, after, labelled), stop), after.file):
            if self.columns is not None and not self.names.of:
                self.names.add(self.columns.names_of_slots())
            self.names.add(chunk.names)
            yield chunk

    def starts(self) -> Iterator[tuple[int, Position]] | None:
        """As `Stream.starts`: files are read once to count their examples, tables in memory know their rows."""
        if any(source.piped for source in self.sources):
            return None
        if self.format != "table":
            return self._counted()
        if not all(hasattr(table, "__len__") for table in self.paths):
            return None  # an Arrow reader
        ends = itertools.accumulate(map(len, self.paths), initial=0)
        return ((rows, Position(file=file)) for file, rows in enumerate(ends))

    def _counted(self) -> Iterator[tuple[int, Position]]:
        """How many rows there are before each position of the data, the end included."""
        rows, place = 0, Position()
        for chunk in self.reads():
            yield rows, place
            rows, place = rows + len(chunk.block), dataclasses.replace(chunk.end, tail=Position().tail)
        yield rows, place

    def _with_arrays(self, chunks: Iterator[Chunk], file: int) -> Iterator[Chunk]:
        """Give the rows of tables in memory their labels and weights where these are arrays, a value for each row.

        `file` is the table that the chunks begin in.
        """
        given = [column for column in (self.y, self.weights) if column is not None]
        before = after = sum(map(len, self.paths[:file])) if given else 0
        for chunk in chunks:
            if given:
                if chunk.end.file != file:
                    file, before = chunk.end.file, after
                after = before + chunk.end.offset
                _require_rows(given, after)
                rows = before + chunk.lines - 1
                y = chunk.block.y if self.y is None else self.y[rows]
                weights = chunk.block.weights if self.weights is None else self.weights[rows]
                chunk = dataclasses.replace(chunk, block=Block(chunk.block.X, y, weights))
            yield chunk
        _require_rows(given, after, whole=True)

    def __iter__(self) -> Iterator[Block]:
        """The examples alone; a bad row stops."""
        for chunk in self.reads():
            if chunk.first_bad:
                raise chunk.error(chunk.first_bad)
            yield chunk.block

    def _parsers(self, after: Position, labelled: bool, stopped: Callable[[], bool]) -> Iterator[Callable[[], Chunk]]:
        """For each piece of the data after a position, a function that parses it."""
        for i, source in enumerate(self.sources[after.file :], after.file):
            start = after if i == after.file else Position(file=i)
            if source.piped:
                if i in self._opened:
                    raise DataError(f"{source.name}: a pipe can be read only once: give a file for more passes.")
                self._opened.add(i)
            elif isinstance(source.path, str):
                source.open().close()  # fail early if it is unreadable
            with self._errors_with_file_name(source):
                if isinstance(self._format, TableFormat):
                    yield from self._of_table(self._format, source, start, labelled, stopped)
                else:
                    assert isinstance(self._format, TextFormat)
                    yield from self._of_text(self._format, source, start, stopped)

    def _of_text(
        self, format_: TextFormat, source: Source, start: Position, stopped: Callable[[], bool]
    ) -> Iterator[Callable[[], Chunk]]:
        """What parses each piece of a text."""
        size = PIECE // 16 if self.interact else PIECE  # products take much more memory than the text
        for piece in text_pieces(source, start, stopped, self.max_line, size):
            parse = partial(_parse_text, format_, piece, self._names_to_extend())
            yield partial(self._located, parse, source, piece)

    def _of_table(
        self, format_: TableFormat, source: Source, start: Position, labelled: bool, stopped: Callable[[], bool]
    ) -> Iterator[Callable[[], Chunk]]:
        """What parses each piece of a table, once its columns are settled."""
        with contextlib.closing(format_.open(source)) as table:
            self._settle_columns(table, source, labelled)
            for piece in table.pieces(start):
                if stopped():
                    return
                parse = partial(table.chunk, piece, self.columns, labels=labelled, names=self._names_to_extend())
                yield partial(self._located, parse, source, piece)

    def _settle_columns(self, table: Table, source: Source, labelled: bool) -> None:
        """Decide by the first table what columns mean, unless a model has done so; refuse a table that lacks some."""
        names = table.schema.names
        if self.columns is None:
            self.columns = plan(
                table.schema,
                target=self.target,
                weight=self.weight,
                drop=self.drop,
                category=self.category,
                id_column=self.id,
                text=self.text,
                experts=self.experts,
                crosses=self.crosses,
                bins=self.bins,
                word_pairs=self.word_pairs,
                bits=self.bits,
                decimal=self.decimal,
                order=self.order,
                first=table.first,
            )
            words = {name for name in self.columns.used if self.columns.kind(name) == "category"}
            words -= {find_column(name, names, "category") for name in self.category} | {self.columns.id}
            self.warnings += [f"{source.name}: {why}" for name, why in table.suspicious_columns() if name in words]
            found = set(self.columns.texts) - {find_column(name, names, "text") for name in self.text}
            self.warnings += [f"{source.name}: {_taken_as_text(name)}" for name in self.columns.texts if name in found]
        elif self.id is not None:
            self.columns = dataclasses.replace(self.columns, id=find_id(self.id, table.schema))
        elif self.columns.id not in names and not labelled:
            self.columns = dataclasses.replace(self.columns, id=None)
        self.columns.require(names, labelled)

    def _names_to_extend(self) -> Names | None:
        """The names so far, for a parser to report those that are not among them; None if no more are wanted."""
        return self.names if self.naming and not self.names.full() else None

    def _located(self, parse: Callable[[], Chunk], source: Source, piece: Piece) -> Chunk:
        """A piece parsed, with the file's name and the positions."""
        name = "" if self.format == "table" else source.name
        before_line = partial(self._before_row, piece) if self._format.counts_rows else piece.before_line
        return dataclasses.replace(parse(), name=name, end=piece.end, before_line=before_line)

    @contextlib.contextmanager
    def _errors_with_file_name(self, source: Source) -> Iterator[None]:
        """Put the name of the file before the message of an error, unless it is there already."""
        try:
            yield
        except DataError as error:
            if self.format == "table" or source.name in str(error):
                raise
            raise DataError(f"{source.name}: {error}") from error
        except UnicodeError:
            raise DataError(f"{source.name}: it holds names or text that are not UTF-8.") from None

    def describe(self) -> dict[str, Any]:
        """What a model must know of it to read other data in the same way."""
        kind = "table" if self._format.tabular else self.format  # "table" here is any tabular format
        columns = None if self.columns is None else self.columns.to_dict()
        interact = {"interact": list(self.interact)} if self.interact else {}
        return {"kind": kind, "bits": self.bits, "columns": columns, **interact}

    # What comes before a position, to see whether the data have changed since a checkpoint.

    def tail_before(self, position: Position) -> str:
        """A digest of the last MiB before a position, as `Position.tail` makes it."""
        source = self.sources[position.file]
        if position.offset == 0 or source.piped:
            return ""
        if isinstance(self._format, TableFormat) and self._format.counts_rows:
            table = self._format.open(source)
            tail = table.tail(position.offset)
            table.close()
            return tail
        size = min(MIB, position.offset)
        with source.open() as file:
            file.seek(position.offset - size)
            data = file.read(size)
        return digest(data) if len(data) == size else "shorter"

    def _before_row(self, piece: Piece, line: int) -> Position:
        """The position of a line of a piece."""
        position = piece.before_line(line)
        return dataclasses.replace(position, tail=partial(self.tail_before, position))

    def heads(self, position: Position) -> list[str]:
        """A digest of the first MiB of each file, as far as it lies before a position."""
        digests = []
        for i, source in enumerate(self.sources[: position.file + 1]):
            if source.piped:
                digests.append("")
                continue
            most = MIB if i < position.file or self._format.counts_rows else min(MIB, position.offset)
            if (i, most) not in self._heads:
                with source.open() as file:
                    self._heads[i, most] = digest(file.read(most))
            digests.append(self._heads[i, most])
        return digests


def _taken_as_text(name: str) -> str:
    return (
        f"column {name} is taken as text, a feature for each word; --category {name} (in Python category=) takes each "
        f"text as a whole, and --text {name} (text=) says that words are meant."
    )


def _parse_text(format_: TextFormat, piece: Piece, names: Names | None) -> Chunk:
    """The examples of some lines; a line above the limit is a bad row, of which nothing is left to parse."""
    line = piece.start.line + 1
    chunk = format_.parse(piece.data, line, names)
    if piece.long is None:
        return chunk
    bad = BadRow(0, line, "", too_long(format_.max_line))
    finished = piece.long.finished
    return dataclasses.replace(chunk, bad=(bad,) * finished, unfinished=None if finished else bad)


def _require_rows(columns: list[Any], rows: int, whole: bool = False) -> None:
    """Refuse labels or weights that are fewer than the rows."""
    for column in columns:
        if len(column) < rows or (whole and len(column) > rows):
            raise DataError(
                f"X has {rows:,} rows{'' if whole else ' at least'}, but y or weights have {len(column):,}."
            )


def _expand_folders(paths: tuple[Any, ...], format_name: str | None) -> tuple[Any, ...]:
    """Replace each folder by the files in and below it, sorted by name; hidden ones (. and _) are left out."""
    files: list[Any] = []
    for path in paths:
        if is_remote(path):
            files += _expand_remote(path, format_name)
            continue
        if not isinstance(path, str) or not os.path.isdir(path):
            files.append(path)
            continue
        inside = []
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if name[0] not in "._")
            inside += [os.path.join(folder, name) for name in sorted(names) if name[0] not in "._"]
        files += _known(path, inside, format_name)
    return tuple(files)


def _expand_remote(path: str, format_name: str | None) -> list[str]:
    """A file at an address, or the files of a folder there, whose name may look like a file's: Spark writes such."""
    if path.startswith(("http://", "https://")) and has_known_suffix(path.partition("?")[0]):
        return [path]  # the web has no folders
    inside = files_below(path)
    return [path] if inside is None else _known(path, inside, format_name)


def _known(path: str, inside: list[str], format_name: str | None) -> list[str]:
    """Those files of a folder whose format is known."""
    known = [file for file in inside if format_name is not None or has_known_suffix(file)]
    if not known:
        raise DataError(f"{path} is a folder with no file in it whose suffix tells a format.")
    return known
