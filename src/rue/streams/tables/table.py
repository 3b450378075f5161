"""Tables as streams: CSV, JSON lines, Parquet, Arrow IPC, and frames in memory.

    table = open_table("data.csv")
    columns = plan(table.schema, target="bought")
    for piece in table.pieces():
        chunk = table.chunk(piece, columns)

Pieces come in order and must be taken from one thread; `chunk` is pure and may run in any. A piece says where to go on
after it: `table.pieces(piece.end)`, in another process if need be.
"""

from __future__ import annotations

import base64
import dataclasses
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from rue.errors import DataError
from rue.streams.chunk import Chunk
from rue.streams.files.cutting import MAX_LINE, MIB, LongLine, digest
from rue.streams.files.files import PIECE
from rue.streams.names import Names
from rue.streams.tables.columns import Columns
from rue.streams.tables.encoding import encode

__all__ = ["FORMATS", "Batches", "Piece", "Position", "Spoilt", "Table", "open_table"]

FORMATS = ("csv", "jsonl", "parquet", "arrow")
VALUES = 1 << 21
"""Values in a batch at most, so that wide tables are read in fewer rows at a time."""
MAGIC = b"ARROW1\0\0"
"""How a file of Arrow IPC begins; a stream has no such mark."""
ROWS = PIECE // 64
"""Rows in a batch at most; with the usual size of a piece, 65,536."""


class Position(NamedTuple):
    """How far a table has been read: bytes and lines of text, or rows, which count as both."""

    offset: int = 0
    line: int = 0


class Spoilt(NamedTuple):
    """Some bytes of a piece that are no record, because of a quote: where they start and stop, and what is wrong."""

    start: int
    stop: int
    why: str


@dataclasses.dataclass(frozen=True)
class Piece:
    """Some consecutive rows as they were read."""

    data: Any
    """Bytes of whole lines, or a record batch."""
    start: Position
    end: Position
    whole: Any = None
    """The record batch of the file that it is a part of."""
    spoilt: tuple[Spoilt, ...] = ()
    long: LongLine | None = None
    """A line above the limit, of which `data` has nothing; a piece that is not finished ends where it starts."""


class Table(Protocol):
    """What `open_table` gives."""

    @property
    def schema(self) -> Any:
        """The Arrow schema; of text, as the first piece suggests."""
        ...

    def pieces(self, start: Position | None = None) -> Iterator[Piece]:
        """The rows from the beginning, or after a position that an earlier piece ended at."""
        ...

    def chunk(self, piece: Piece, columns: Columns, *, labels: bool = True, names: Names | bool = False) -> Chunk:
        """The examples of a piece, as `encode` makes them."""
        ...


def open_table(
    source: Any,
    format: str | None = None,  # noqa: A002
    *,
    separator: str | None = None,
    block: int = PIECE,
    max_line: int = MAX_LINE,
) -> Table:
    """A table from a path, a binary file object, or a frame: pyarrow, pandas, polars, or any other Arrow stream.

    `format` is csv, jsonl, parquet or arrow (IPC, file or stream), by the suffix if not given. Text is read `block`
    bytes at a time, and its file object's `read(n)` may give less than n; a line of more than `max_line` MiB is a bad
    row. `separator` is for CSV.
    """
    from rue.streams.tables.delimited import Delimited
    from rue.streams.tables.jsonlines import JsonLines

    if not isinstance(source, str | os.PathLike) and not hasattr(source, "read"):
        return _frame(source)
    format = format or _format_of(source)  # noqa: A001
    if format not in FORMATS:
        raise DataError(f"there is no table format {format!r}: the formats are {', '.join(FORMATS)}.")
    if format == "parquet":
        return _parquet(source)
    if format == "arrow":
        return _ipc(source)
    file = _opened(source)
    return Delimited(file, separator, block, max_line) if format == "csv" else JsonLines(file, block, max_line)


def _format_of(source: Any) -> str:
    suffix = os.path.splitext(os.fspath(source))[1].lower() if isinstance(source, str | os.PathLike) else ""
    known = {"csv": ".csv .tsv .txt .tab .psv", "jsonl": ".jsonl .ndjson .json", "parquet": ".parquet .pq"}
    known["arrow"] = ".arrow .arrows .ipc .feather"
    for format, suffixes in known.items():  # noqa: A001
        if suffix and suffix in suffixes.split():
            return format
    raise DataError(f"the format of {source} does not show in its name: say which, one of {', '.join(FORMATS)}.")


def _opened(source: Any) -> Any:
    if hasattr(source, "read"):
        return source
    try:
        return open(source, "rb", buffering=0)
    except OSError as error:
        raise DataError(f"{os.fspath(source)} cannot be read: {error.strerror or error}.") from error


def _validate(batch: Any) -> None:
    """Refuse a batch whose offsets or lengths lead outside of memory; 10 to 50 ns a row.

    Text is looked at as bytes: one value that is not UTF-8 makes its own row a bad one, not the whole batch.
    """
    import pyarrow as pa

    as_bytes = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    for column in batch.columns:
        column.validate()
        (column.view(as_bytes[column.type]) if column.type in as_bytes else column).validate(full=True)


class Batches:
    """A table that Arrow reads: `read(row)` gives record batches from about that row on, each with its first row."""

    def __init__(self, schema: Any, read: Any, tail: Callable[[int], str] | None = None) -> None:
        self.schema, self.read, self._tail = schema, read, tail
        self.rows = max(1024, min(ROWS, VALUES // max(1, len(schema))))

    def pieces(self, start: Position | None = None) -> Iterator[Piece]:
        row = start.offset if start else 0
        try:
            for first, batch in self.read(row, self.rows):
                _validate(batch)
                skip = max(0, row - first)
                while skip < batch.num_rows:
                    part = batch.slice(skip, self.rows)
                    row = first + skip + part.num_rows
                    yield Piece(part, Position(first + skip, first + skip), Position(row, row), batch)
                    skip += part.num_rows
        except DataError:
            raise
        except Exception as error:  # of a damaged file Arrow raises errors of many kinds
            raise DataError(f"reading failed after row {row}: {_words(error)}.") from error

    def tail(self, row: int, batch: Any = None) -> str:
        """A digest of what comes before a row: of the end of the batch with the row before it, unless told better."""
        if row == 0 or self._tail is not None:
            return "" if self._tail is None or row == 0 else self._tail(row)
        if batch is not None:
            return _digest(batch)
        for first, found in self.read(0, self.rows):
            if first + found.num_rows >= row:
                return _digest(found)
        return "shorter"

    def chunk(self, piece: Piece, columns: Columns, *, labels: bool = True, names: Names | bool = False) -> Chunk:
        import pyarrow as pa

        lines = np.arange(piece.start.line + 1, piece.end.line + 1, dtype=np.int64)
        try:
            return encode(columns, piece.data, lines, labels=labels, names=names)
        except (pa.ArrowException, UnicodeError) as error:
            raise DataError(f"rows {lines[0]} to {lines[-1]} cannot be read: {_words(error)}.") from error


def _parquet(source: Any) -> Batches:
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(source, page_checksum_verification=True)
        groups = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
        schema = file.schema_arrow
        _require_footer(file.metadata, schema.names, groups)
    except Exception as error:  # of a damaged file Arrow raises errors of many kinds
        raise DataError(f"{_name(source)} cannot be read as Parquet: {_words(error)}.") from error

    def read(row: int, rows: int) -> Iterator[tuple[int, Any]]:
        group, first = 0, 0
        while group < len(groups) and first + groups[group] <= row:
            first += groups[group]
            group += 1
        for each in range(group, len(groups)):  # or else Arrow would hold what it reads of all of them
            end = first + groups[each]
            for batch in file.iter_batches(rows, row_groups=[each]):
                yield first, batch
                first += batch.num_rows
            if first != end:
                raise DataError(f"the file is damaged: its footer promises {end:,} rows up to here, not {first:,}.")

    def tail(row: int) -> str:
        """Of the file up to the end of the row group that holds the row before."""
        last = first = 0
        while last < len(groups) and first < row:
            first += groups[last]
            last += 1
        if first < row:
            return "shorter"
        group = file.metadata.row_group(last - 1)
        chunks = [group.column(j) for j in range(group.num_columns)]
        end = max(chunk.data_page_offset + chunk.total_compressed_size for chunk in chunks)
        with open(source, "rb") as opened:
            opened.seek(max(0, end - MIB))
            return digest(opened.read(min(MIB, end)))

    return Batches(schema, read, None if hasattr(source, "read") else tail)


def _require_footer(metadata: Any, names: list[str], groups: list[int]) -> None:
    """Refuse a footer that contradicts itself: it has no checksum, but it says some things twice."""
    import pyarrow as pa

    if sum(groups) != metadata.num_rows or min(groups, default=0) < 0:
        raise DataError(f"its footer promises {metadata.num_rows:,} rows and lists {sum(groups):,}")
    written = (metadata.metadata or {}).get(b"ARROW:schema")
    if written is not None and pa.ipc.read_schema(pa.py_buffer(base64.b64decode(written))).names != names:
        raise DataError("its footer has two lists of columns, and they differ")


def _ipc(source: Any) -> Batches:
    """A file of Arrow is a stream between two marks, and a footer, which is only asked how many batches there are."""
    import pyarrow as pa

    batches: int | None = None
    try:
        opened = source if hasattr(source, "read") else pa.memory_map(os.fspath(source))
        if not opened.seekable():
            return _once(pa.ipc.open_stream(_Forward(opened)))
        start = len(MAGIC) if opened.read(len(MAGIC)) == MAGIC else 0
        opened.seek(0)
        if start:
            batches = pa.ipc.open_file(opened).num_record_batches
        opened.seek(start)
        schema = pa.ipc.open_stream(opened).schema
        schema.names  # noqa: B018  # which must be text
    except Exception as error:  # of a damaged file Arrow raises errors of many kinds
        raise DataError(f"{_name(source)} cannot be read as Arrow IPC: {_words(error)}.") from error

    def read(row: int, rows: int) -> Iterator[tuple[int, Any]]:
        opened.seek(start)
        found = 0
        for item in _numbered(pa.ipc.open_stream(opened)):
            found += 1
            yield item
        if batches is not None and found != batches:
            raise DataError(f"the file is damaged: its footer promises {batches:,} batches of rows, not {found:,}.")

    return Batches(schema, read)


class _Forward:
    """A file that can only be read on, as Arrow wants it: as many bytes as asked for, unless it ends.

    Without its first mark, a file of Arrow can be read as a stream.
    """

    closed = False

    def __init__(self, file: Any) -> None:
        self.file, self.head = file, b""
        start = self.read(8)
        self.head = b"" if start.startswith(b"ARROW1") else start

    def read(self, size: int) -> bytes:
        parts, self.head = [self.head[:size]], self.head[size:]
        left = size - len(parts[0])
        while left and (more := self.file.read(left)):
            parts.append(more)
            left -= len(more)
        return b"".join(parts)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        pass


def _frame(source: Any) -> Batches:
    import pyarrow as pa

    try:
        if isinstance(source, pa.RecordBatchReader):
            return _once(source)
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        elif type(source).__module__.partition(".")[0] == "pandas":
            _require_text(source)
            source = pa.Table.from_pandas(source, preserve_index=False)
        if not hasattr(source, "__arrow_c_stream__"):
            raise DataError(f"a table is a path, a file or a frame with an Arrow stream, not {type(source).__name__}.")
        readers = [pa.RecordBatchReader.from_stream(source)]
        schema = readers[0].schema
    except (pa.ArrowException, AttributeError, TypeError) as error:
        raise DataError(f"the frame cannot be read as an Arrow table: {_words(error)}.") from error

    def read(row: int, rows: int) -> Iterator[tuple[int, Any]]:
        return _numbered(readers.pop() if readers else pa.RecordBatchReader.from_stream(source))

    return Batches(schema, read)


def _require_text(frame: Any) -> None:
    """Refuse what Python takes for text and no encoder does: half a character, a lone surrogate."""
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        values = [name, *(column if getattr(column.dtype, "kind", "O") in "OU" else ())]
        for row, value in enumerate(values):
            if isinstance(value, str) and not value.isascii():
                try:
                    value.encode()
                except UnicodeEncodeError:
                    where = f"row {row - 1} of column {str(name)!r}" if row else "the name of a column"
                    raise DataError(
                        f"{where}, {value[:40]!r}, has half a character (a lone surrogate), which is no text."
                    ) from None


def _once(reader: Any) -> Batches:
    """A stream that can be read a single time."""
    left = [reader]

    def read(row: int, rows: int) -> Iterator[tuple[int, Any]]:
        if not left:
            raise DataError("the stream can be read only once: give a file or a table for more passes.")
        return _numbered(left.pop())

    return Batches(reader.schema, read)


def _numbered(batches: Any) -> Iterator[tuple[int, Any]]:
    first = 0
    for batch in batches:
        yield first, batch
        first += batch.num_rows


def _digest(batch: Any) -> str:
    """Of the last MiB of a batch's buffers."""
    parts, room = [], MIB
    for column in reversed(batch.columns):
        for buffer in reversed(column.buffers()):
            if buffer is not None and room:
                parts.append(memoryview(buffer)[-room:])
                room -= len(parts[-1])
    return digest(b"".join(parts))


def _name(source: Any) -> str:
    return str(getattr(source, "name", "the input") if hasattr(source, "read") else os.fspath(source))


def _words(error: BaseException) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")[:200] if str(error).strip() else type(error).__name__
