"""Text in pieces of whole records: what CSV and JSON lines have in common."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from rue._jit import parser
from rue.errors import DataError
from rue.streams.chunk import BadRow, Chunk
from rue.streams.columns import Columns
from rue.streams.encoding import encode
from rue.streams.lines import count_lines
from rue.streams.names import Names
from rue.streams.tables import Piece, Position

__all__ = ["LONGEST", "Text", "Unreadable", "scan"]

HEAD = 1 << 20
"""Bytes by which the types of the columns are told, if that many have arrived."""
LONGEST = 1 << 24
"""Bytes in a record at most: a quote that is never closed would swallow the rest of the file."""
_LF, _CR, _QUOTE = (np.uint8(ord(letter)) for letter in '\n\r"')


class Unreadable(Exception):
    """Some records cannot be read together: the column and why, as far as it is known."""

    def __init__(self, column: str, why: str) -> None:
        super().__init__(why)
        self.column, self.why = column, why


@parser
def scan(data: Any, separator: Any, quoting: Any, starts: Any, lines: Any) -> Any:
    """The records that are not empty: where each starts, and in which line, counted from 0, as far as there is room.

    Returns how many there are, how many lines, the end of the last complete one, and whether the text ends inside
    quotes. A quote counts at the beginning of a field; inside quotes two of them stand for one.
    """
    count, line, complete = 0, 0, 0
    begin, begin_line = 0, 0
    fresh, inside = True, False
    i, n = 0, data.size
    while i < n:
        letter = data[i]
        if inside:
            if letter == _QUOTE:
                if i + 1 < n and data[i + 1] == _QUOTE:
                    i += 1
                else:
                    inside = False
            elif letter == _LF:
                line += 1
        elif letter == _LF:
            empty = i == begin or (i == begin + 1 and data[begin] == _CR)
            if not empty:
                if count < starts.size:
                    starts[count], lines[count] = begin, begin_line
                count += 1
            line += 1
            begin, begin_line, complete, fresh = i + 1, line, i + 1, True
        elif letter == separator:
            fresh = True
        else:
            inside = fresh and quoting and letter == _QUOTE
            fresh = False
        i += 1
    if begin < n:
        if count < starts.size:
            starts[count], lines[count] = begin, begin_line
        count, line = count + 1, line + 1
    return count, line, complete, inside


class Text(abc.ABC):
    """A file of records, one to a line unless quotes hold line ends."""

    separator = "\n"
    quoting = False
    blank = b"\r\n"
    """What a line may consist of and be skipped."""

    def __init__(self, file: Any, block: int) -> None:
        self.file, self.block = file, block
        self.head = b""
        """What has been read of the beginning."""
        self.taken, self.ended = 0, False
        self.begin = Position()
        """Where the records begin, after a byte order mark and a header."""

    @abc.abstractmethod
    def read(self, data: bytes, columns: Columns) -> tuple[Any, list[tuple[int, str]]]:
        """The columns of some records as a table, and which records (from 0) have the wrong shape, and why."""

    @abc.abstractmethod
    def complaint(self, record: bytes, columns: Columns, error: Unreadable) -> tuple[str, str]:
        """The column and what is wrong with a record that cannot be read."""

    @abc.abstractmethod
    def misfits(self, records: list[bytes], columns: Columns) -> dict[int, tuple[str, str]]:
        """Which records have a value that does not fit, as far as that can be told quickly: the column and why."""

    @abc.abstractmethod
    def doubtful(self, data: bytes) -> bool:
        """Whether a record may be read as several rows, so that counting rows does not tell which is which."""

    # From bytes to pieces.

    def fill(self) -> bool:
        """Read on at the beginning; False at the end."""
        more = self._more(min(self.block, HEAD))
        self.head += more
        return bool(more)

    def _more(self, size: int) -> bytes:
        if self.ended:
            return b""
        try:
            more: bytes = self.file.read(size)
        except Exception as error:  # zlib, lzma and their kind have errors of their own
            raise DataError(f"reading failed after byte {self.taken}: {error}.") from error
        self.ended = not more
        self.taken += len(more)
        return more

    def pieces(self, start: Position | None = None) -> Iterator[Piece]:
        """Whole records, from the beginning or from where an earlier piece ended."""
        position = start or self.begin
        rest = self._from(position.offset)
        while rest or not self.ended:
            end = self.cut(rest, self.ended)
            if end:
                data, rest = rest[:end], rest[end:]
                before, position = position, Position(position.offset + end, position.line + self.lines(data))
                yield Piece(data, before, position)
            rest += self._more(self.block)

    def _from(self, offset: int) -> bytes:
        """Go to a place in the file; what has already been read of the bytes that follow it."""
        if self.taken == len(self.head) and offset <= self.taken:
            return self.head[offset:]
        if self.file.seekable():
            self.file.seek(offset)
            self.taken, self.ended = offset, False
            return b""
        if self.taken > offset:
            raise DataError("the input can be read only once: give a file for more passes.")
        more = b""
        while self.taken < offset:
            more = self._more(self.block)
            if not more:
                raise DataError(f"the input ends at byte {self.taken}, before byte {offset} where it was left.")
        return more[len(more) - (self.taken - offset) :]

    def quoted(self, data: bytes) -> bool:
        return self.quoting and b'"' in data

    def cut(self, data: bytes, last: bool) -> int:
        """How many bytes of it to take: whole records, or all if it is the last, but no quote that stays open."""
        if not self.quoted(data):
            if not last and len(data) > LONGEST and b"\n" not in data:
                raise DataError(f"there is a line of more than {LONGEST >> 20} MiB: is this text?")
            return len(data) if last else data.rfind(b"\n") + 1
        _, _, complete, inside = self.scanned(data, 0)[0]
        if last and not inside:
            return len(data)
        if complete or not (last or len(data) > LONGEST):
            return int(complete)
        return data.find(b"\n") + 1 or len(data)

    def lines(self, data: bytes) -> int:
        return count_lines(data)

    def scanned(self, data: bytes, room: int) -> tuple[Any, Any, Any]:
        starts, lines = np.empty(room, np.int64), np.empty(room, np.int64)
        bytes_ = np.frombuffer(data, np.uint8)
        return scan(bytes_, np.uint8(ord(self.separator)), self.quoting, starts, lines), starts, lines

    # From pieces to chunks.

    def chunk(self, piece: Piece, columns: Columns, *, labels: bool = True, names: Names | bool = False) -> Chunk:
        """The examples of a piece; a record that cannot be read is a bad row."""
        table, lines, bad = self.records(piece, columns)
        return encode(columns, table, lines, bad, labels=labels, names=names)

    def records(self, piece: Piece, columns: Columns) -> tuple[Any, Any, list[BadRow]]:
        """The table, the lines of its rows, and the records that are not in it."""
        data, line, count = piece.data, piece.start.line + 1, piece.end.line - piece.start.line
        clear = not self.doubtful(data)
        if clear:
            found = self.together(data, np.arange(line, line + count, dtype=np.int64), columns)
            if found is not None and (not self.quoted(data) or (not found[2] and self._closed(data))):
                return found
        (count, _, _, inside), starts, lines = self.scanned(data, count)
        starts, lines = np.append(starts[:count], len(data)), lines[:count] + line
        found = self.together(data, lines, columns) if clear and not inside else None
        return found or self.sifted(data, starts, lines, inside, columns)

    def _closed(self, data: bytes) -> bool:
        """Whether the last line, a record of its own, closes its quotes."""
        last = data[data.rfind(b"\n", 0, len(data) - 1) + 1 :]
        return not self.scanned(last, 0)[0][3]

    def together(self, data: bytes, lines: Any, columns: Columns) -> tuple[Any, Any, list[BadRow]] | None:
        """All records at once; None if that fails or they are not as many as the lines."""
        try:
            table, misshapen = self.read(data, columns)
        except Unreadable:
            return None
        if table.num_rows + len(misshapen) != len(lines):
            return None
        bad = [BadRow(0, int(lines[place]), "", why) for place, why in misshapen]
        return table, np.delete(lines, [place for place, _ in misshapen]) if bad else lines, bad

    def sifted(
        self, data: bytes, starts: Any, lines: Any, inside: bool, columns: Columns
    ) -> tuple[Any, Any, list[BadRow]]:
        """The records that can be read, found by halving those that cannot be read together."""
        import pyarrow as pa

        records = [data[lo:hi] for lo, hi in itertools.pairwise(starts.tolist())]
        bad: list[BadRow] = []
        if inside:
            records.pop()
            bad.append(BadRow(0, int(lines[-1]), "", "a quote is opened and never closed"))
            lines = lines[:-1]
        unfit = self.misfits(records, columns)
        bad += [BadRow(0, int(lines[place]), *reason) for place, reason in unfit.items()]
        records = [record for place, record in enumerate(records) if place not in unfit]
        lines = np.delete(lines, list(unfit))
        keep = np.ones(len(records), dtype=np.bool_)
        alone = [place for place, record in enumerate(records) if self.doubtful(record)] if self.doubtful(data) else []
        cuts = sorted({0, len(records), *alone, *(place + 1 for place in alone)})
        tables, todo = [], list(itertools.pairwise(cuts))[::-1]
        while todo:
            lo, hi = todo.pop()
            part = b"".join(records[lo:hi])
            try:
                table, misshapen = self.read(part, columns)
                if table.num_rows + len(misshapen) != hi - lo:
                    raise Unreadable("", "a line end or a second record inside the record")
            except Unreadable as error:
                if hi - lo > 1:
                    todo += [((lo + hi) // 2, hi), (lo, (lo + hi) // 2)]
                    continue
                keep[lo] = False
                if part.strip(self.blank):
                    bad.append(BadRow(0, int(lines[lo]), *self.complaint(part, columns, error)))
            else:
                tables.append(table)
                for place, why in misshapen:
                    keep[lo + place] = False
                    bad.append(BadRow(0, int(lines[lo + place]), "", why))
        table = pa.concat_tables(_alike(tables)) if tables else self.read(b"", columns)[0]
        return table, lines[keep], bad


def _alike(tables: list[Any]) -> list[Any]:
    """Tables with the same types: whole numbers become floats where another table has those."""
    import pyarrow as pa

    fields = []
    for place, field in enumerate(tables[0].schema):
        kinds = {table.schema.field(place).type for table in tables}
        fields.append(field if len(kinds) == 1 else pa.field(field.name, pa.float64()))
    return [table.cast(pa.schema(fields), safe=False) for table in tables]
