"""CSV, and the same with other separators, read by pyarrow a piece at a time.

The separator is sniffed from the first lines, and so is the header. The first record is data, and columns are called 1,
2, …, if the second record has numbers and the first has a number or a missing value above each of them; a single record
is data if all its fields are numbers or missing. Otherwise the first record is the header. The types of the columns are
inferred from the first piece; a later value that does not fit makes its row a bad one.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import re
from functools import cached_property
from typing import Any

import numpy as np

from rue.compiled import parser
from rue.errors import DataError, shown
from rue.registry import register
from rue.streams.chunk import Position
from rue.streams.files.cutting import LongLine, too_long
from rue.streams.files.parts import byte_ranges, part_of_text
from rue.streams.files.pieces import PIECE
from rue.streams.files.sources import Source, require_unpacked
from rue.streams.formats.base import TableFormat
from rue.streams.tables.columns import FIRST, Columns, kind_of, repeated
from rue.streams.tables.dates import CALENDAR
from rue.streams.tables.encoding import shortened
from rue.streams.tables.records import ALIKE, HEAD, RecordCutter, Records, Unreadable, scan, without
from rue.streams.tables.spelling import BLANKS, MISSING

__all__ = ["SEPARATORS", "Csv", "CsvTable"]

SEPARATORS = "\t;|, "
"""In the order in which they are tried: commas may be in decimal numbers, spaces in words."""
WORDS = {"number": "a number", "boolean": "true or false", "category": "text in UTF-8: convert the file"}
SNIFFED = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SHAPE = re.compile(r"Expected (\d+) columns, got (\d+)")
_ZERO, _X, _LOWERCASE_BIT = np.uint8(ord("0")), np.uint8(ord("x")), np.uint8(0x20)
_WHERE = re.compile(r"In CSV column #(\d+): .*?conversion error to [^:]*: (?:invalid value '(.*)')?", re.DOTALL)


@register("format", "csv")
class Csv(TableFormat):
    """Columns separated by commas, or by whatever the first lines suggest; RFC 4180 quotes."""

    suffixes = (".csv", ".tsv")

    def open(self, source: Source, block: int = PIECE) -> CsvTable:
        return CsvTable(source, block, self.max_line, self.separator, self.decimal)

    def parts(self, source: Source, size: int) -> list[tuple[int, int]]:
        """Ranges of bytes, unless quotes hold line ends in what is first read of a file."""
        ranges = byte_ranges(source, size)
        if len(ranges) > 1:
            with contextlib.closing(self.open(source)) as table:
                if table.quotes_line_ends:
                    return []
        return ranges

    def part(self, source: Source, start: int, stop: int) -> Source | None:
        with contextlib.closing(self.open(source)) as table:
            beginning = table.beginning
        part = part_of_text(source, start, stop, beginning if start else None)
        text = b"" if part is None else part.path.getvalue()
        if b'"' in text and scan(text, beginning[0], True, 0).inside:
            raise DataError(
                f"a field in quotes is open at byte {stop:,}, where the file is cut into units: compress the file, or "
                "save it as Parquet, and it is not cut there."
            )
        return part


class CsvTable(Records):
    """A CSV file, opened: its separator, header and types are known."""

    quoting = True

    def __init__(
        self, source: Source, block: int, max_line: int, separator: str | None = None, decimal: str = "."
    ) -> None:
        self.given_separator, self.decimal, self._known = separator, decimal, source.beginning
        super().__init__(source, block, max_line)

    @property
    def quotes_line_ends(self) -> bool:
        """Whether the first lines hold a line end in quotes."""
        if b'"' not in self.head:
            return False
        lines = sum(1 for line in self.head.split(b"\n") if line.strip(b"\r"))
        return self.scanned(self.head, 0).records < lines

    @property
    def beginning(self) -> tuple[str, list[str], Any]:
        """Separator, names and types of the columns."""
        return self.separator, self.names, self.schema

    def read_head(self) -> None:
        if self._known is not None:
            self._begin_in_the_middle(*self._known)
            return
        separator = self.given_separator
        self.gather(self._enough)
        _require_text(self.head)
        if self._ahead and isinstance(self._ahead[0], LongLine):
            raise DataError(f"line {self.begin.line + 1}, the first, names the columns: {too_long(self.max_line)}.")
        if separator is not None and (len(separator) != 1 or separator in '"\r\n' or not separator.isascii()):
            raise DataError(f"the separator must be a single character such as ',' or ';', not {shown(separator)}.")
        sniffed = max(SNIFFED, self._first_two())
        text = self.head[:sniffed].decode("utf-8", "replace")
        self.separator = separator or _sniff(text, len(self.head) > sniffed == SNIFFED)
        rows = _rows(text, self.separator, 2)
        if not rows:
            raise DataError("the file is empty.")
        if _is_header(rows, self.decimal):
            self.names = [name.strip() or str(place) for place, name in enumerate(rows[0], 1)]
            self._pass_header()
        else:
            self.names = [str(place) for place in range(1, len(rows[0]) + 1)]
        twice = repeated(self.names)
        if twice is not None:
            raise DataError(f"two columns are called {twice!r} in the first line: rename one.")
        self.schema: Any = None
        self.sample = self._sample(self.head[self.begin.offset - self._start :])
        """The first records, which decide the types of the columns."""
        self.schema = self._schema(self.sample)

    def _begin_in_the_middle(self, separator: str, names: list[str], schema: Any) -> None:
        """Read the first records of a later part of a file, whose columns are known from its beginning."""
        self.separator, self.names, self.schema = separator, names, schema
        self.gather(self._enough)
        self.sample = self._sample(self.head)
        self.schema = schema

    def _sample(self, lines: bytes) -> bytes:
        """The first records; if an unbalanced quote is found, types are inferred from the records before it."""
        records, spoilt = RecordCutter(self.separator, self.max_line, self.alike).feed(lines, self.ended)
        if spoilt and records[: spoilt[0].start].strip(self.blank):
            self.schema = self._schema(records[: spoilt[0].start])
            records, spoilt = RecordCutter(self.separator, self.max_line, self.alike).feed(lines, self.ended)
        return without(records, spoilt)

    def _enough(self) -> bool:
        """Whether a header and a record have arrived."""
        scanned = self.scanned(self.head, 0)
        if scanned.records > 2 or (scanned.records == 2 and scanned.complete == len(self.head)):
            return True
        return len(self.head) > 4 * HEAD and self.head.count(b"\n") > 2  # a quote that is not closed

    def _first_two(self) -> int:
        """The length of the first two records, as far as that shows before the separator is known."""
        scanned = self.scanned(self.head, 3)
        return int(scanned.starts[2]) if scanned.records > 2 else len(self.head)

    def _pass_header(self) -> None:
        """Let the records begin after the first one that is not empty."""
        scanned = self.scanned(self.head, 2)
        size, lines = len(self.head), scanned.lines
        if scanned.records > 1:
            size, lines = int(scanned.starts[1]), int(scanned.numbers[1])
        self.before.add(self.head[:size])
        self.begin = Position(self.begin.offset + size, self.begin.line + lines)

    def alike(self, lines: list[bytes]) -> int:
        """How many lines have as many fields as the header, with values of the columns' types."""
        separator, fields = self.separator.encode(), len(self.names)
        fitting = [line for line in lines if line.count(separator) == fields - 1 or b'"' in line]
        if len(fitting) < ALIKE:
            return len(fitting)
        import pyarrow as pa

        types = {field.name: field.type for field in self.schema or () if not pa.types.is_null(field.type)}
        types = {name: pa.float64() if pa.types.is_int64(kind) else kind for name, kind in types.items()}
        if fields == 1 and all(map(pa.types.is_string, types.values())):
            return 0  # every line would parse
        return sum(self._reads(line, types) for line in fitting)

    def _reads(self, line: bytes, types: Any) -> bool:
        """Whether a line can be read as a record of these types."""
        try:
            table, misshapen = self._read(line + b"\n", types, self.names)
        except Unreadable:
            return False
        return table.num_rows == 1 and not misshapen

    def _schema(self, data: bytes) -> Any:
        """The types that the first records suggest and all of them fit."""
        import pyarrow as pa

        if not _is_text(data):
            data = data.decode("utf-8", "replace").encode()
        if not data.strip(self.blank):
            return pa.schema([(name, pa.null()) for name in self.names])
        try:
            guessed = self._read(data, None, self.names)[0].schema
        except Unreadable as error:
            raise DataError(f"the first lines cannot be read as CSV: {error.why.rstrip('.')}.") from error
        hexadecimal = _hexadecimal(data)
        types = {field.name: _read_as(field.type, hexadecimal) for field in guessed}
        while True:
            try:
                self._read(data, types, self.names)
                return pa.schema([(name, _text_for_bytes(types[name])) for name in self.names])
            except Unreadable as error:
                types[error.column] = pa.string() if types[error.column] != pa.string() else pa.binary()

    @cached_property
    def first(self) -> dict[str, Any]:
        import pyarrow as pa

        names = [name for name in self.names if kind_of(self.schema.field(name).type) in ("category", *CALENDAR)]
        if not names:
            return {}
        scanned = self.scanned(self.sample, FIRST + 1)
        data = self.sample[: int(scanned.starts[FIRST])] if scanned.records > FIRST else self.sample
        data = data if _is_text(data) else data.decode("utf-8", "replace").encode()
        try:
            table = self._read(data, {name: self.schema.field(name).type for name in names}, names)[0]
        except Unreadable:
            return {}
        columns = {name: table.column(name).combine_chunks() for name in names}
        return {name: column for name, column in columns.items() if not pa.types.is_null(column.type)}

    def stray(self, name: str) -> str:
        """Why a column cannot be read as numbers."""
        import pyarrow as pa

        try:
            self._read(self.sample, {name: pa.float64()}, [name])
        except Unreadable as error:
            return error.why
        return ""

    def read(self, data: bytes, columns: Columns) -> tuple[Any, list[tuple[int, str]]]:
        import pyarrow as pa

        here = set(self.names)
        types = {name: self._type(name, columns) for name in columns.used if name in here}
        if not data:
            return pa.schema(list(types.items())).empty_table(), []
        if pa.int64() in types.values() and not _hexadecimal(data):
            try:
                return self._read(data, types, list(types))
            except Unreadable:
                pass
        types = {name: pa.float64() if pa.types.is_int64(kind) else kind for name, kind in types.items()}
        return self._read(data, types, list(types))

    def _type(self, name: str, columns: Columns) -> Any:
        """The Arrow type that a column is read as: that of the first rows where it fits, or text."""
        import pyarrow as pa

        own, kind = self.schema.field(name).type, columns.kind(name)
        if kind_of(own) == kind and not pa.types.is_null(own):
            return own
        spelt = (kind in CALENDAR and columns.order) or (kind == "number" and columns.decimal == ",")
        if spelt and pa.types.is_string(own):
            return own  # `encode` makes dates and numbers of it
        usual = {"number": pa.float64(), "boolean": pa.bool_(), "timestamp": pa.timestamp("us"), "date": pa.date32()}
        return usual.get(kind, pa.time32("s") if kind == "time" else pa.string())

    def _read(self, data: bytes, types: Any, wanted: list[str]) -> tuple[Any, list[tuple[int, str]]]:
        """Read records with Arrow: the table, and which rows have too few or too many fields."""
        import pyarrow as pa
        from pyarrow import csv as reader

        misshapen: list[tuple[int, str]] = []

        def note(row: Any) -> str:
            misshapen.append((row.number - 1, _misshapen(row.actual_columns, row.expected_columns)))
            return "skip"

        reading = reader.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self.names)
        known = note if _is_text(data) else None  # pyarrow complains of its own about a row that is not UTF-8
        parsing = reader.ParseOptions(delimiter=self.separator, invalid_row_handler=known)
        converting = reader.ConvertOptions(
            column_types=types,
            include_columns=wanted,
            null_values=[*MISSING, *BLANKS],
            strings_can_be_null=False,
            decimal_point=self.decimal,
        )
        if data.startswith(_BYTE_ORDER_MARK):  # pyarrow would take one away, here in the middle of the file
            data = _BYTE_ORDER_MARK + data
        try:
            return reader.read_csv(pa.BufferReader(data), reading, parsing, converting), misshapen
        except pa.ArrowInvalid as error:
            raise self._unreadable(str(error), types) from error

    def _unreadable(self, error: str, types: Any) -> Unreadable:
        """What Arrow complains of, in our words."""
        where = _WHERE.match(error)
        if where is None:
            shape = _SHAPE.search(error)
            return Unreadable("", _misshapen(int(shape[2]), shape[1]) if shape else error.splitlines()[0][:100])
        name = self.names[int(where[1])]
        kind = kind_of(types[name]) if types else ""
        value = "this" if where[2] is None else shortened(where[2])
        return Unreadable(name, f"{value} is not {WORDS.get(kind, 'a ' + kind)}")

    def doubtful(self, data: bytes) -> bool:
        return b"\r" in data and data.count(b"\r") != data.count(b"\r\n")

    def misfits(self, records: list[bytes], columns: Columns) -> dict[int, tuple[str, str]]:
        import pyarrow as pa

        here = set(self.names)
        read_as_text = {name for name in here if pa.types.is_string(self.schema.field(name).type)}
        numbers = [name for name in columns.used if name in here and columns.kind(name) == "number"]
        if columns.decimal == ",":
            numbers = [name for name in numbers if name not in read_as_text]
        if not numbers or not records or any(map(self.doubtful, records)):
            return {}
        try:
            table, misshapen = self._read(b"".join(records), {name: pa.string() for name in numbers}, numbers)
        except Unreadable:
            return {}
        wrong = {place for place, _ in misshapen}
        places = [place for place in range(len(records)) if place not in wrong]
        unfit: dict[int, tuple[str, str]] = {}
        if table.num_rows == len(places):
            for name in numbers:
                for place, value in zip(places, table.column(name).to_pylist(), strict=True):
                    if not _numeric(value, self.decimal):
                        unfit.setdefault(place, (name, f"{shortened(value)} is not a number"))
        return unfit

    def complaint(self, record: bytes, columns: Columns, error: Unreadable) -> tuple[str, str]:
        return error.column, error.why

    def tag(self, record: bytes, columns: Columns) -> str:
        fields = next(iter(_rows(record.decode("utf-8", "backslashreplace"), self.separator, 1)), [])
        there = columns.id in self.names and len(fields) == len(self.names)
        return fields[self.names.index(str(columns.id))] if there else ""


def _misshapen(count: int, wanted: Any) -> str:
    """What to say of a record with another number of fields."""
    return f"{count} field{'s' * (count != 1)} instead of {wanted}"


def _is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _hexadecimal(data: bytes) -> bool:
    """Whether there may be a 0x10, which pyarrow takes for a whole number, but not for a number with a fraction."""
    return (b"x" in data or b"X" in data) and bool(_has_prefix(np.frombuffer(data, np.uint8)))


@parser
def _has_prefix(data: Any) -> Any:
    """Whether 0x or 0X occurs."""
    occurs = False
    for i in range(data.size - 1):  # no early exit, so the loop vectorises
        occurs |= (data[i] == _ZERO) & ((data[i + 1] | _LOWERCASE_BIT) == _X)
    return occurs


def _read_as(type_: Any, hexadecimal: bool) -> Any:
    """Whole numbers are read faster as such; seconds may have fractions later."""
    import pyarrow as pa

    kind = kind_of(type_)
    if kind == "number":
        return type_ if pa.types.is_int64(type_) and not hexadecimal else pa.float64()
    if kind == "timestamp" and type_.unit == "s":
        return pa.timestamp("us", type_.tz)
    return type_ if kind in ("boolean", "timestamp", "date", "time") else pa.string()


def _text_for_bytes(type_: Any) -> Any:
    """Words that are not UTF-8 do not make a column anything but text: their rows are bad."""
    import pyarrow as pa

    return pa.string() if pa.types.is_binary(type_) else type_


def _require_text(head: bytes) -> None:
    """Refuse what is no CSV in one sentence each."""
    if not head:
        raise DataError("the file is empty.")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError("the file is in UTF-16: convert it to UTF-8.")
    require_unpacked(head)
    if b"\0" in head[:SNIFFED]:
        raise DataError("this is not text: say what it is with --format.")
    if b"\r" in head and b"\n" not in head:
        raise DataError("the lines end in a carriage return alone: convert them to end in a line feed.")


def _rows(text: str, separator: str, most: int) -> list[list[str]]:
    """The first rows of a text that are not empty."""
    first: list[list[str]] = []
    before = csv.field_size_limit(max(len(text), 131_072))  # of the module, not of the reader
    try:
        rows = filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=separator))
        first.extend(itertools.islice(rows, most))
    except csv.Error:
        pass
    finally:
        csv.field_size_limit(before)
    return first


def _sniff(text: str, unfinished: bool) -> str:
    """The first separator that cuts the first lines into equally many fields; else the one that cuts most."""
    cuts = {}
    for separator in SEPARATORS:
        rows = _rows(text, separator, 21)
        rows = rows[:-1] if unfinished and 1 < len(rows) < 21 else rows
        counts = [len(row) for row in rows]
        if counts and min(counts) == max(counts) > 1:
            return separator
        cuts[separator] = sorted(counts)[len(counts) // 2] if counts else 0
    best = max(SEPARATORS, key=lambda separator: cuts[separator])
    return best if cuts[best] > 1 else ","


def _is_header(rows: list[list[str]], decimal: str) -> bool:
    """Whether the first of one or two records is a header, as the top of this file says."""
    if len(rows) == 1:
        return not all(_numeric(text, decimal) for text in rows[0])
    pairs = zip(*rows, strict=False)
    numbers = [above for above, below in pairs if _numeric(below, decimal) and below not in MISSING]
    return not numbers or not all(_numeric(text, decimal) for text in numbers)


def _numeric(text: str, decimal: str = ".") -> bool:
    """Whether a field is a number, or stands for a missing one."""
    try:
        float(text.replace(decimal, "."))
    except ValueError:
        return text.strip() in MISSING
    return "_" not in text and (decimal == "." or "." not in text)
