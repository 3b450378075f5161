"""Tables that Arrow reads: files of record batches, and frames in memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.streams.chunk import BadRow, Chunk, Position
from rue.streams.files.cutting import MIB, digest
from rue.streams.files.pieces import PIECE, Piece
from rue.streams.names import Names
from rue.streams.tables.columns import FIRST, Columns, kind_of
from rue.streams.tables.dates import CALENDAR
from rue.streams.tables.encoding import encode, shortened
from rue.streams.tables.spelling import is_text
from rue.streams.tables.table import Table

__all__ = ["Batches", "first_line", "numbered", "open_frame", "read_once"]

VALUES = 1 << 21
"""Values in a batch at most, so that wide tables are read in fewer rows at a time."""
ROWS = PIECE // 64
"""Rows in a batch at most; with the usual size of a piece, 65,536."""


class Batches(Table):
    """A table of Arrow record batches.

    `read(row, rows)` yields batches from the first row, or from any row up to `row`, on, each with the number of its
    first row; `rows` is how many are best in a batch. `digest_before(row)` tells whether what comes before a row has
    changed; without it the batch that ends there is read again and its buffers are digested. `bad` are rows that are no
    examples, whatever the batches have in their place.
    """

    def __init__(
        self,
        schema: Any,
        read: Callable[[int, int], Iterator[tuple[int, Any]]],
        digest_before: Callable[[int], str] | None = None,
        close: Callable[[], None] = lambda: None,
        bad: Sequence[BadRow] = (),
        live: bool = False,
    ) -> None:
        self.schema, self.read, self._digest_before, self._close = schema, read, digest_before, close
        self._bad = bad
        self.live = live
        """Whether batches may be long in coming, so that only the first one is waited for."""
        self.rows = max(1024, min(ROWS, VALUES // max(1, len(schema))))
        self._ahead: Iterator[tuple[int, Any]] | None = None
        """The batches from the first on, if `first` has looked at some: some streams can be read only once."""

    @cached_property
    def first(self) -> dict[str, Any]:
        names = [field.name for field in self.schema if is_text(field.type) or kind_of(field.type) in CALENDAR]
        if not names:
            return {}
        looked_at, rows, batches = [], 0, self.read(0, self.rows)
        try:
            for number, batch in batches:
                looked_at.append((number, batch))
                rows += batch.num_rows
                if rows >= (1 if self.live else FIRST):
                    break
        except Exception as error:  # it is raised again where the rows before it have been learnt
            batches = _failing(error)
        self._ahead = itertools.chain(looked_at, batches)
        try:
            for _, batch in looked_at:
                _validate(batch)
            return {name: _beginning(name, [batch for _, batch in looked_at]) for name in names}
        except Exception:  # of a damaged file; `pieces` says what is wrong
            return {}

    def pieces(self, start: Position | None = None) -> Iterator[Piece]:
        at = start or Position()
        row, file = at.offset, at.file
        ahead, self._ahead = self._ahead, None
        try:
            for first, batch in self.read(row, self.rows) if ahead is None else ahead:
                _validate(batch)
                skip = max(0, row - first)
                while skip < batch.num_rows:
                    part = batch.slice(skip, self.rows)
                    row = first + skip + part.num_rows
                    begin = Position(first + skip, first + skip, file)
                    end = Position(row, row, file, partial(self.tail, row, batch))
                    yield Piece(part, begin, end, lambda line: Position(line - 1, line - 1, file))
                    skip += part.num_rows
        except DataError:
            raise
        except Exception as error:  # of a damaged file Arrow raises errors of many kinds
            raise DataError(f"reading failed after row {row}: {first_line(error)}.") from error

    def tail(self, row: int, batch: Any = None) -> str:
        """A digest of what comes before a row; `batch` is the one that holds the row before, if it is at hand."""
        if row == 0:
            return ""
        if self._digest_before is not None:
            return self._digest_before(row)
        if batch is not None:
            return _digest(batch)
        for first, earlier in self.read(0, self.rows):
            if first + earlier.num_rows >= row:
                return _digest(earlier)
        return "shorter"

    def chunk(self, piece: Piece, columns: Columns, *, labels: bool = True, names: Names | None = None) -> Chunk:
        import pyarrow as pa

        lines, data = np.arange(piece.start.line + 1, piece.end.line + 1, dtype=np.int64), piece.data
        bad = [row for row in self._bad if piece.start.line < row.line <= piece.end.line]
        if bad:
            good = ~np.isin(lines, [row.line for row in bad])
            data, lines = data.filter(pa.array(good)), lines[good]
        try:
            return encode(columns, data, lines, bad, labels=labels, names=names)
        except (pa.ArrowException, UnicodeError) as error:
            raise DataError(f"rows {lines[0]} to {lines[-1]} cannot be read: {first_line(error)}.") from error

    def close(self) -> None:
        self._close()


def _failing(error: Exception) -> Iterator[tuple[int, Any]]:
    """No batch, but an error that was met before."""
    raise error
    yield


def _beginning(name: str, batches: list[Any]) -> Any:
    """The first values of a column; bytes that are not UTF-8 are replaced."""
    import pyarrow as pa

    parts, rows = [pa.array([], pa.string())], 0
    for batch in batches:
        part = batch.column(name).slice(0, FIRST - rows)
        rows += len(part)
        if is_text(part.type):
            some = part.cast(pa.large_binary()).to_pylist()
            part = pa.array([None if text is None else text.decode("utf-8", "replace") for text in some], pa.string())
        parts.append(part)
    return pa.concat_arrays(parts[1:] or parts)


def _validate(batch: Any) -> None:
    """Refuse a batch whose offsets or lengths lead outside of memory; 10 to 50 ns a row.

    Text is looked at as bytes: one value that is not UTF-8 makes its own row a bad one, not the whole batch.
    """
    import pyarrow as pa

    as_bytes = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    for column in batch.columns:
        column.validate()
        (column.view(as_bytes[column.type]) if column.type in as_bytes else column).validate(full=True)


def open_frame(source: Any) -> Batches:
    """A frame: pyarrow, pandas, polars, or any other object with an Arrow stream."""
    import pyarrow as pa

    bad: list[BadRow] = []
    try:
        if isinstance(source, pa.RecordBatchReader):
            return read_once(source)
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        elif type(source).__module__.partition(".")[0] == "pandas":
            source, bad = _without_half_characters(source)
            source = pa.Table.from_pandas(source, preserve_index=False)
        if not hasattr(source, "__arrow_c_stream__"):
            raise DataError(f"a table is a path, a file or a frame with an Arrow stream, not {type(source).__name__}.")
        readers = [pa.RecordBatchReader.from_stream(source)]
        schema = readers[0].schema
    except (pa.ArrowException, AttributeError, TypeError) as error:
        raise DataError(f"the frame cannot be read as an Arrow table: {first_line(error)}.") from error

    def read(row: int, rows: int) -> Iterator[tuple[int, Any]]:
        return numbered(readers.pop() if readers else pa.RecordBatchReader.from_stream(source))

    return Batches(schema, read, bad=bad)


def _without_half_characters(frame: Any) -> tuple[Any, list[BadRow]]:
    """A pandas frame without the cells that have half a character, and their rows, which are bad.

    Python takes a lone surrogate for text, and no encoder does; Arrow refuses the whole frame for it.
    """
    bad: list[BadRow] = []
    for place, name in enumerate(frame.columns):
        if _is_half(name):
            raise DataError(f"the name of a column, {shortened(name)}, {_HALF}.")
        column = frame.iloc[:, place]
        if getattr(column.dtype, "kind", "O") not in "OU":
            continue
        halves = [row for row, value in enumerate(column) if _is_half(value)]
        if halves:
            values = np.array(column, dtype=object)
            bad += [BadRow(0, row + 1, str(name), f"{shortened(values[row])} {_HALF}") for row in halves]
            values[halves] = None
            frame = frame.copy(deep=False)
            frame.isetitem(place, values)
    return frame, list({row.line: row for row in reversed(bad)}.values())  # each row once, by its first column


_HALF = "has half a character (a lone surrogate), which is no text"


def _is_half(value: Any) -> bool:
    """Whether it is text that no encoder takes."""
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return True
    return False


def read_once(reader: Any, close: Callable[[], None] = lambda: None) -> Batches:
    """A stream of batches that can be read a single time."""
    left = [reader]

    def read(row: int, rows: int) -> Iterator[tuple[int, Any]]:
        if not left:
            raise DataError("the stream can be read only once: give a file or a table for more passes.")
        return numbered(left.pop())

    return Batches(reader.schema, read, close=close, live=True)


def numbered(batches: Any) -> Iterator[tuple[int, Any]]:
    """Batches, each with the number of its first row."""
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


def first_line(error: BaseException) -> str:
    """The first line of an error's message, shortened: Arrow's go on with where in its code they were raised."""
    return str(error).strip().splitlines()[0].rstrip(".")[:200] if str(error).strip() else type(error).__name__
