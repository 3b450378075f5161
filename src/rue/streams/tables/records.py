"""Text in pieces of whole records: what CSV and JSON lines have in common.

A record is a line, or several where quotes hold line ends. A quote that is never closed would swallow what follows it,
so three kinds of record are bad, and reading goes on after the line in which their quote was opened: one that does
not end, one above the limit on lines, and one whose quoted field runs over more than 16 lines of which at least 12 in
16 look like records of the file. The last is looked at after 16, 32, 64, … lines, so it does not depend on how the
text is cut into pieces.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import parser
from rue.errors import DataError
from rue.streams.chunk import BadRow, Chunk, Position
from rue.streams.files.cutting import MIB, LineCutter, LongLine, Tail, too_long
from rue.streams.files.pieces import Piece, Spoilt, text_piece
from rue.streams.files.sources import ForwardFile, Source, failure
from rue.streams.names import Names
from rue.streams.tables.columns import Columns
from rue.streams.tables.encoding import encode
from rue.streams.tables.table import Table

__all__ = ["ALIKE", "HEAD", "RecordCutter", "Records", "Unreadable", "scan", "without"]

HEAD = 1 << 20
"""Bytes that decide the types of the columns, if that many have arrived."""
LOOKED_AT = 16
"""Lines in a quoted field after which they are looked at, and how many of them."""
ALIKE = 12
"""How many of them must look like records of the file for the quote to be a stray one."""
PATIENCE = 16
"""Limits' worth of lines above the limit that are passed over at the beginning to find the first records."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NOWHERE = np.empty(0, np.int64)
_LF, _CR, _QUOTE = (np.uint8(ord(letter)) for letter in '\n\r"')


class Unreadable(Exception):
    """Some records cannot be read together: the column and why, as far as it is known."""

    def __init__(self, column: str, why: str) -> None:
        super().__init__(why)
        self.column, self.why = column, why


NEXT, BEGIN, NUMBER, LINE, LINES, FRESH, INSIDE, OPENED, ENDS, ASK, COUNT = range(11)
"""The state of `_scan`: where to go on; where the record there begins, and its line from 0; where the line begins, and
how many came before; whether a field begins; whether a quote is open, the start of the line in which it was opened, the
line ends inside it, and how many of these make it stop; how many records there were."""
DONE, RUNS_ON, OPENS_AGAIN, TOO_LONG = range(4)
"""Why `_scan` stopped: all is read; a quoted field runs over many lines; it ends with a quote that looks as if it
opened another; the record is above the limit."""


@parser
def _scan(data: Any, separator: Any, quoting: Any, limit: Any, state: Any, starts: Any, numbers: Any) -> Any:
    """Read on to the end of the text, or until something about a quote is odd: why it stopped.

    Where each record starts that is not empty, and in which line, counted from 0, is entered as far as there is room. A
    quote counts at the beginning of a field; inside quotes two of them stand for one.
    """
    i, begin, number, line, lines = state[NEXT], state[BEGIN], state[NUMBER], state[LINE], state[LINES]
    fresh, inside = state[FRESH] != 0, state[INSIDE] != 0
    opened, ends, ask, count = state[OPENED], state[ENDS], state[ASK], state[COUNT]
    code, n = DONE, data.size
    while i < n and code == DONE:
        letter = data[i]
        if inside:
            if letter == _QUOTE:
                if i + 1 < n and data[i + 1] == _QUOTE:
                    i += 1
                else:
                    inside = False
                    if ends > 0 and i + 1 < n and (data[i - 1] == separator or data[i - 1] == _LF):
                        after = data[i + 1]
                        if after != separator and after != _LF and after != _CR:
                            code = OPENS_AGAIN
            elif letter == _LF:
                ends += 1
                lines += 1
                line = i + 1
                if i - begin >= limit:
                    code = TOO_LONG
                elif ends == ask:
                    code = RUNS_ON
            else:  # a tight loop over what changes nothing, here and below: half of the time
                while i + 1 < n and data[i + 1] != _QUOTE and data[i + 1] != _LF:
                    i += 1
        elif letter == _LF:
            if i > begin + 1 or (i == begin + 1 and data[begin] != _CR):
                if count < starts.size:
                    starts[count], numbers[count] = begin, number
                count += 1
            lines += 1
            begin, number, line, fresh = i + 1, lines, i + 1, True
        elif letter == separator:
            fresh = True
        else:
            if fresh and quoting and letter == _QUOTE:
                inside, opened, ends, ask = True, line, 0, LOOKED_AT + 1
            else:
                while i + 1 < n and data[i + 1] != separator and data[i + 1] != _LF:
                    i += 1
            fresh = False
        i += 1
    state[NEXT], state[BEGIN], state[NUMBER], state[LINE], state[LINES] = i, begin, number, line, lines
    state[FRESH], state[INSIDE] = fresh, inside
    state[OPENED], state[ENDS], state[ASK], state[COUNT] = opened, ends, ask, count
    return code


def _begin_at(state: Any, place: int) -> None:
    """Let a record begin at a place in the text."""
    state[:] = 0
    state[[NEXT, BEGIN, LINE]] = place
    state[FRESH] = 1


class Scanned(NamedTuple):
    """The records of a text, as far as there was room for them."""

    starts: Any
    """Where each record that is not empty starts."""
    numbers: Any
    """In which line, counted from 0."""
    records: int
    """How many such records there are, the last perhaps unfinished."""
    lines: int
    complete: int
    """The end of the last record that has its line end."""
    inside: bool
    """Whether the text ends inside quotes."""


def scan(data: bytes, separator: str, quoting: bool, room: int) -> Scanned:
    """Find the records of a text, and where the first `room` of them start."""
    starts, numbers, state = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(COUNT + 1, np.int64)
    _begin_at(state, 0)
    text, letter = np.frombuffer(data, np.uint8), np.uint8(ord(separator))
    while _scan(text, letter, quoting, len(data) + 1, state, starts, numbers) != DONE:
        pass  # odd quotes do not matter here
    begin, number, count, lines = (int(state[place]) for place in (BEGIN, NUMBER, COUNT, LINES))
    if begin < len(data):
        if count < room:
            starts[count], numbers[count] = begin, number
        count, lines = count + 1, lines + 1
    return Scanned(starts, numbers, count, lines, begin, bool(state[INSIDE]))


class RecordCutter:
    """Whole records of lines that arrive in groups, and which of them are spoilt by a quote that is not closed."""

    def __init__(self, separator: str, max_line: int, alike: Callable[[list[bytes]], int]) -> None:
        self.separator, self.max_line, self.alike = np.uint8(ord(separator)), max_line, alike
        """`alike` says how many of some lines look like records of the file."""
        self.text = bytearray()
        """The beginning of a record that is not finished."""
        self.state = np.empty(COUNT + 1, np.int64)
        _begin_at(self.state, 0)

    def feed(self, lines: bytes, last: bool = False) -> tuple[bytes, tuple[Spoilt, ...]]:
        """The records that are whole now; with the last lines, all there are."""
        if not self.text and b'"' not in lines:
            return lines, ()
        self.text += lines
        spoilt: list[Spoilt] = []
        while True:
            with memoryview(self.text).toreadonly() as view:  # of the type that `scan` has compiled it for
                text = np.frombuffer(view, np.uint8)
                code = _scan(text, self.separator, True, self.max_line * MIB, self.state, _NOWHERE, _NOWHERE)
                del text  # which would not let the text grow
            why = ""
            if code == RUNS_ON:
                self.state[ASK] = 2 * (self.state[ASK] - 1) + 1
                sample = bytes(self.text[self.state[OPENED] : self.state[NEXT]]).split(b"\n")[-LOOKED_AT - 1 : -1]
                if self.alike(sample) >= ALIKE:
                    why = "a quote is opened, and the lines after it look like records: is it closed?"
            elif code == OPENS_AGAIN:
                why = "a quote is opened and not closed before the next one opens"
            elif code == TOO_LONG:
                why = (
                    f"a quoted field is not closed within {self.max_line} MiB; --max-line (in Python max_line) raises "
                    "this limit"
                )
            elif not last or not self.state[INSIDE]:
                break
            else:
                why = "a quote is opened and never closed"
            if why:
                start, stop = int(self.state[BEGIN]), self.text.find(b"\n", int(self.state[OPENED])) + 1
                spoilt.append(Spoilt(start, stop or len(self.text), why))
                _begin_at(self.state, stop or len(self.text))
        whole = len(self.text) if last else int(self.state[BEGIN])
        with memoryview(self.text) as view:
            data = bytes(view[:whole])
        del self.text[:whole]
        if last:
            _begin_at(self.state, 0)
        else:
            self.state[[NEXT, BEGIN, LINE, OPENED]] -= whole
        return data, tuple(spoilt)


def without(data: bytes, spoilt: tuple[Spoilt, ...]) -> bytes:
    """Text with empty lines in place of spoilt ones, so that lines can be counted."""
    if not spoilt:
        return data
    parts, end = [], 0
    for each in spoilt:
        parts += [data[end : each.start], b"\n" * data.count(b"\n", each.start, each.stop)]
        end = each.stop
    return b"".join([*parts, data[end:]])


class Records(Table):
    """A file of records, one to a line unless quotes hold line ends: what CSV and JSON lines have in common."""

    separator = "\n"
    quoting = False
    blank = b"\r\n"
    """What a line may consist of and be skipped."""

    def __init__(self, source: Source, block: int, max_line: int) -> None:
        self.file: Any = ForwardFile(source.open()) if source.piped else source.open()
        self.block, self.max_line = block, max_line
        self.head = b""
        """The first lines, whole, without empty ones before them and those above the limit."""
        self.begin = Position()
        """Where the records begin, after a byte order mark, empty lines and a header."""
        self.before = Tail()
        """The text before that."""
        self.taken, self.ended = 0, False
        """Bytes read, and whether there are no more."""
        self.broken: Exception | None = None
        """Why reading broke off, if it did."""
        self._cutter = LineCutter(max_line * MIB)
        self._ahead: list[bytes | LongLine] | None = []
        """What has been read from `_start` on, until it is passed on."""
        self._start = 0
        try:
            self.read_head()
        except BaseException:
            self.close()
            raise

    @abc.abstractmethod
    def read_head(self) -> None:
        """Read the first lines (`gather`) and settle the schema."""

    @abc.abstractmethod
    def read(self, data: bytes, columns: Columns) -> tuple[Any, list[tuple[int, str]]]:
        """The columns of some records as a table, and which records (from 0) have the wrong shape, and why."""

    @abc.abstractmethod
    def complaint(self, record: bytes, columns: Columns, error: Unreadable) -> tuple[str, str]:
        """The column and what is wrong with a record that cannot be read."""

    @abc.abstractmethod
    def tag(self, record: bytes, columns: Columns) -> str:
        """The id of a record that is bad for another reason; "" if the record does not show it."""

    @abc.abstractmethod
    def misfits(self, records: list[bytes], columns: Columns) -> dict[int, tuple[str, str]]:
        """Which records have a value that does not fit, as far as that shows quickly: the column and why."""

    @abc.abstractmethod
    def doubtful(self, data: bytes) -> bool:
        """Whether a record may be read as several rows, so that counting rows does not tell which is which."""

    def alike(self, lines: list[bytes]) -> int:
        """How many of some lines look like records of the file."""
        return 0

    # From bytes to pieces.

    def gather(self, enough: Callable[[], bool]) -> None:
        """Read the first lines until they are enough, or there are no more."""
        known = 0
        while self._fill():
            if len(self.head) > known and enough():
                break
            known = len(self.head)
        if self.head:
            return
        if self.broken is not None:
            raise failure(self.begin.line, self.begin.offset, self.broken)
        if self._ahead:
            raise DataError(f"line {self.begin.line + 1}: {too_long(self.max_line)}.")

    def _fill(self) -> bool:
        """Read on at the beginning; False at the end, or if there is hardly anything but lines above the limit."""
        assert self._ahead is not None
        passed = self.taken - self._start - len(self.head) - len(self._cutter.rest)
        if self.ended or passed > PATIENCE * self.max_line * MIB:
            return False
        for part in self._arrive(min(self.block, HEAD)):
            if isinstance(part, LongLine):
                self._ahead.append(part)
                continue
            if self.begin.offset == 0 and not self._ahead and part.startswith(_BYTE_ORDER_MARK):
                self._pass_over(_BYTE_ORDER_MARK, 0)
                part = part[len(_BYTE_ORDER_MARK) :]
            if not self._ahead:
                blank = part[: len(part) - len(part.lstrip(self.blank))]
                empty = part[: blank.rfind(b"\n") + 1]
                self._pass_over(empty, empty.count(b"\n"))
                part = part[len(empty) :]
            if part:
                self._ahead.append(part)
                self.head += part
        return True

    def _pass_over(self, data: bytes, lines: int) -> None:
        """Begin after some text that has no records."""
        self.before.add(data)
        self.begin = Position(self.begin.offset + len(data), self.begin.line + lines)
        self._start = self.begin.offset

    def _arrive(self, size: int) -> Iterator[bytes | LongLine]:
        """Read some bytes: the lines that are whole now."""
        if self.ended:
            return
        try:
            more: bytes = self.file.read(size)
        except Exception as error:  # what is unfinished stays so
            self.broken, self.ended = error, True
            return
        self.ended = not more
        self.taken += len(more)
        yield from self._cutter.feed(more, self.ended)

    def pieces(self, start: Position | None = None) -> Iterator[Piece]:
        """Whole records, from the beginning or after a position; a line above the limit is a piece of its own."""
        at = start or Position()
        seek = at.offset > 0
        before = self._tail_at(at.offset) if seek else self.before.copy()
        at = at if seek else dataclasses.replace(self.begin, file=at.file)
        records = RecordCutter(self.separator, self.max_line, self.alike) if self.quoting else None
        for part in self._from(at.offset, seek):
            data: bytes = b"" if isinstance(part, LongLine) else part
            spoilt: tuple[Spoilt, ...] = ()
            if records is not None:
                data, spoilt = records.feed(data, isinstance(part, LongLine))
            if data:
                piece = text_piece(data, at, before, spoilt)
                yield piece
                at = piece.end
            if isinstance(part, LongLine):
                piece = text_piece(part, at, before)
                yield piece
                at = piece.end
        if self.broken is not None:
            raise failure(at.line, at.offset, self.broken)
        if records is not None:
            data, spoilt = records.feed(b"", True)
            if data:
                yield text_piece(data, at, before, spoilt)

    def _tail_at(self, offset: int) -> Tail:
        """The text before a place; nothing of a pipe, where it is gone."""
        if not self.file.seekable():
            return Tail()
        self.file.seek(max(0, offset - MIB))
        return Tail(self.file.read(min(MIB, offset)))

    def _from(self, offset: int, seek: bool) -> Iterator[bytes | LongLine]:
        """The lines from a place on."""
        ahead, self._ahead, at = self._ahead, None, self._start
        if (seek or ahead is None) and self.file.seekable():
            self.file.seek(offset)
            self.taken, self.ended, self.broken = offset, False, None
            self._cutter, ahead, at = LineCutter(self.max_line * MIB), [], offset
        if ahead is None:
            raise DataError("the input can be read only once: give a file for more passes.")
        for part in itertools.chain(ahead, self._rest()):
            long = isinstance(part, LongLine)
            size = part.length * part.finished if isinstance(part, LongLine) else len(part)
            if at >= offset or (not long and at + size > offset):
                yield part if isinstance(part, LongLine) or at >= offset else part[offset - at :]
            at += size
        if at < offset and self.broken is None:
            raise DataError(f"the input ends at byte {at}, before byte {offset} where it was left.")

    def _rest(self) -> Iterator[bytes | LongLine]:
        while not self.ended:
            yield from self._arrive(self.block)

    def quoted(self, data: bytes) -> bool:
        return self.quoting and b'"' in data

    def scanned(self, data: bytes, room: int) -> Scanned:
        """The records of some text, by the file's own separator and quotes."""
        return scan(data, self.separator, self.quoting, room)

    def close(self) -> None:
        self.file.close()

    # From pieces to chunks.

    def chunk(self, piece: Piece, columns: Columns, *, labels: bool = True, names: Names | None = None) -> Chunk:
        """The examples of a piece; a record that cannot be read is a bad row."""
        if piece.long is not None:
            bad = BadRow(0, piece.start.line + 1, "", too_long(self.max_line))
            table, nothing = self.read(b"", columns)[0], np.empty(0, np.int64)
            chunk = encode(columns, table, nothing, [bad] * piece.long.finished, labels=labels, names=names)
            return chunk if piece.long.finished else dataclasses.replace(chunk, unfinished=bad)
        table, lines, unreadable = self.records(piece, columns)
        return encode(columns, table, lines, unreadable, labels=labels, names=names)

    def records(self, piece: Piece, columns: Columns) -> tuple[Any, Any, list[BadRow]]:
        """The table, the lines of its rows, and the records that are not in it."""
        data, line, count = without(piece.data, piece.spoilt), piece.start.line + 1, piece.end.line - piece.start.line
        spoilt = list(_bad_rows(piece))
        if not data.strip(b"\r\n"):
            return self.read(b"", columns)[0], np.empty(0, np.int64), spoilt
        clear = not self.doubtful(data)
        whole = None
        if clear and not spoilt:
            whole = self.together(data, np.arange(line, line + count, dtype=np.int64), columns)
            if whole is not None and (not self.quoted(data) or (not whole[2] and self._closed(data))):
                return whole
        scanned = self.scanned(data, count)
        starts = np.append(scanned.starts[: scanned.records], len(data))
        lines = scanned.numbers[: scanned.records] + line
        whole = self.together(data, lines, columns) if clear and not scanned.inside else None
        table, lines, bad = whole or self.sifted(data, starts, lines, scanned.inside, columns)
        return table, lines, bad + spoilt

    def _closed(self, data: bytes) -> bool:
        """Whether the last line, a record of its own, closes its quotes."""
        last = data[data.rfind(b"\n", 0, len(data) - 1) + 1 :]
        return not self.scanned(last, 0).inside

    # pyarrow reads a whole piece fast, but of a bad record it says little, and not in which line. So a piece is read
    # at once if that works and gives as many rows as there are records; else bad records are found by halving.

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
        bad += [
            BadRow(0, int(lines[place]), *reason, self.tag(records[place], columns)) for place, reason in unfit.items()
        ]
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
                    why = self.complaint(part, columns, error)
                    bad.append(BadRow(0, int(lines[lo]), *why, self.tag(part, columns)))
            else:
                tables.append(table)
                for place, shape in misshapen:
                    keep[lo + place] = False
                    bad.append(BadRow(0, int(lines[lo + place]), "", shape))
        table = pa.concat_tables(_alike(tables)) if tables else self.read(b"", columns)[0]
        return table, lines[keep], bad


def _bad_rows(piece: Piece) -> Iterator[BadRow]:
    """The records that a quote has spoilt."""
    line, end = piece.start.line + 1, 0
    for each in piece.spoilt:
        line += piece.data.count(b"\n", end, each.start)
        opened = piece.data.count(b"\n", each.start, each.stop - 1)
        where = f" (it is opened in line {line + opened})" if opened else ""
        yield BadRow(0, line, "", each.why + where)
        end = each.start


def _alike(tables: list[Any]) -> list[Any]:
    """Tables with the same types: whole numbers become floats where another table has those."""
    import pyarrow as pa

    fields = []
    for place, field in enumerate(tables[0].schema):
        kinds = {table.schema.field(place).type for table in tables}
        fields.append(field if len(kinds) == 1 else pa.field(field.name, pa.float64()))
    return [table.cast(pa.schema(fields), safe=False) for table in tables]
