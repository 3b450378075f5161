"""JSON lines, read by pyarrow a piece at a time.

The columns are the keys of the objects in the first piece, in the order in which they appear; a key that is missing is
a missing value, and a key that appears only later is left out. A column is what its first value is: a number, true or
false, or text, which is a date, a time or a timestamp if all of the first piece's are (ISO 8601). A later value that
does not fit makes its row a bad one.
"""

from __future__ import annotations

import contextlib
import json
import re
from functools import cached_property
from typing import Any

from rue.errors import DataError
from rue.registry import register
from rue.streams.files.parts import byte_ranges, part_of_text
from rue.streams.files.pieces import PIECE
from rue.streams.files.sources import Source, require_unpacked
from rue.streams.formats.base import TableFormat
from rue.streams.tables.columns import FIRST, Columns, kind_of
from rue.streams.tables.dates import CALENDAR
from rue.streams.tables.encoding import shortened
from rue.streams.tables.records import Records, Unreadable

__all__ = ["JsonLines", "JsonTable", "schema_of_lines"]

_OTHER = re.compile(rb"(?:\A|\n)[ \t\r]*[^ \t\r\n{]")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escape that stands for half a character: alone it is no text."""
_TWO = re.compile(rb"\}[ \t\r]*\{")
"""Where a second object may begin in a line."""


@register("format", "jsonl")
class JsonLines(TableFormat):
    """A JSON object in each line; its keys are the columns."""

    suffixes = (".jsonl", ".ndjson")

    def open(self, source: Source, block: int = PIECE) -> JsonTable:
        return JsonTable(source, block, self.max_line)

    def parts(self, source: Source, size: int) -> list[tuple[int, int]]:
        return byte_ranges(source, size)

    def part(self, source: Source, start: int, stop: int) -> Source | None:
        if start == 0:
            return part_of_text(source, start, stop)
        with contextlib.closing(self.open(source)) as table:
            return part_of_text(source, start, stop, table.beginning)


class JsonTable(Records):
    """A file of JSON lines, opened: its columns and their types are known."""

    blank = b" \t\r\n"

    def __init__(self, source: Source, block: int, max_line: int) -> None:
        self._known = source.beginning
        super().__init__(source, block, max_line)

    @property
    def beginning(self) -> tuple[Any, dict[str, Any]]:
        """The types of the columns, and the first values of those of text and dates."""
        return self.schema, self._first

    def read_head(self) -> None:
        self.gather(lambda: True)
        if self._known is not None:  # it is a later part of a file
            self.schema, self._first = self._known[0], dict(self._known[1])
            return
        require_unpacked(self.head)
        if not self.head.strip():
            raise DataError("the file is empty.")
        if self.head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataError("the file is in UTF-16: convert it to UTF-8.")
        self.schema, self._first = schema_of_lines(self.head)

    @cached_property
    def first(self) -> dict[str, Any]:
        return self._first

    def read(self, data: bytes, columns: Columns) -> tuple[Any, list[tuple[int, str]]]:
        import pyarrow as pa
        from pyarrow import json as reader

        schema = pa.schema([(name, self._type(name, columns)) for name in columns.used])
        if not data.strip():
            return schema.empty_table(), []
        raw = pa.schema([(field.name, field.type if _plain(field.type) else pa.string()) for field in schema])
        reading = reader.ReadOptions(use_threads=False, block_size=len(data) + 1)
        parsing = reader.ParseOptions(explicit_schema=raw, unexpected_field_behavior="ignore")
        if not _only_objects(data):
            raise Unreadable("", "not an object")
        try:
            if not data.isascii():
                data.decode()  # pyarrow would let it pass
            table = reader.read_json(pa.BufferReader(data), reading, parsing)
            moments = [field for field in schema if not _plain(field.type)]
            for field in moments:
                place = table.schema.get_field_index(field.name)
                table = table.set_column(place, field.name, _moments(table.column(place), field.type))
            return table, []
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise Unreadable("", str(error).splitlines()[0][:100]) from error

    def _type(self, name: str, columns: Columns) -> Any:
        """The Arrow type that a member is read as."""
        import pyarrow as pa

        kind = columns.kind(name)
        place = self.schema.get_field_index(name)
        own = self.schema.field(place).type if place >= 0 else pa.null()
        spelt = (kind in CALENDAR and columns.order) or (kind == "number" and columns.decimal == ",")
        if spelt and pa.types.is_string(own):
            return own  # `encode` makes dates and numbers of it
        if kind == "number":
            return pa.float64()
        if kind in ("category", "text"):  # a number in its place has no fraction unless the first piece has some
            return own if _plain(own) and not pa.types.is_null(own) else pa.string()
        if kind_of(own) == kind:
            return own
        usual = {"boolean": pa.bool_(), "timestamp": pa.timestamp("us"), "date": pa.date32()}
        return usual.get(kind, pa.time64("us"))

    def doubtful(self, data: bytes) -> bool:
        return _TWO.search(data) is not None

    def misfits(self, records: list[bytes], columns: Columns) -> dict[int, tuple[str, str]]:
        faults = ((place, self._fault(record, columns)) for place, record in enumerate(records) if record.strip())
        return {place: fault for place, fault in faults if fault is not None}

    def complaint(self, record: bytes, columns: Columns, error: Unreadable) -> tuple[str, str]:
        shown = shortened(record.decode("utf-8", "replace").strip())
        return self._fault(record, columns) or ("", f"{shown} cannot be read: {error.why}")

    def tag(self, record: bytes, columns: Columns) -> str:
        try:
            content = json.loads(record)
        except (ValueError, RecursionError):
            return ""
        given = content.get(columns.id) if isinstance(content, dict) else None
        return str(given) if isinstance(given, str | int | float) else ""

    def _fault(self, record: bytes, columns: Columns) -> tuple[str, str] | None:
        """The column and what is wrong with a record, or None."""
        try:
            text = record.decode().strip()
        except UnicodeDecodeError:
            return "", f"{shortened(record.decode('utf-8', 'replace').strip())} is not text in UTF-8"
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            return "", f"{shortened(text)} is not JSON"
        if not isinstance(content, dict):
            return "", f"{shortened(text)} is not an object"
        if not _encodable(record, content):
            return "", f"{shortened(text)} has half a character (a lone surrogate), which is no text"
        for name in columns.used:
            value = content.get(name)
            if value is not None and not _fits(value, self._type(name, columns)):
                shown = shortened(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:40]
                return name, f"{shown} is not {_article(columns.kind(name))}"
        return None


def _only_objects(data: bytes) -> bool:
    """Whether each line begins an object: pyarrow takes null for an empty one, and crashes if it comes first."""
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    return (data.startswith(b"{") and data.count(b"\n{") + 1 == lines) or _OTHER.search(data) is None


def _encodable(line: bytes, content: Any) -> bool:
    """Whether all that is text in an object can be written in UTF-8."""
    if _HALF.search(line) is None:
        return True
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _article(kind: str) -> str:
    """A kind with its article, for messages."""
    return {"boolean": "true or false", "category": "like the first values of its column"}.get(kind, f"a {kind}")


def _plain(type_: Any) -> bool:
    """Whether pyarrow's reader of JSON knows the type."""
    return kind_of(type_) in ("number", "boolean", "category")


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value of JSON can be read as this type."""
    import pyarrow as pa

    if pa.types.is_boolean(wanted):
        return isinstance(value, bool)
    if kind_of(wanted) == "number":
        whole = not pa.types.is_integer(wanted) or isinstance(value, int)
        return isinstance(value, int | float) and not isinstance(value, bool) and whole
    if not isinstance(value, str):
        return False
    try:
        return _plain(wanted) or _moments(pa.array([value]), wanted) is not None
    except pa.ArrowInvalid:
        return False


def _moments(texts: Any, wanted: Any) -> Any:
    """Dates, times and timestamps from text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_time(wanted):
        return texts.cast(wanted)
    moments = pc.binary_join_element_wise("1970-01-01", texts.cast(pa.string()), " ")
    return moments.cast(pa.timestamp("us")).cast(wanted)


def schema_of_lines(data: bytes) -> tuple[Any, dict[str, Any]]:
    """The types of the columns, and the first values of those of text and dates."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {}
    for line in data.splitlines():
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict) and _encodable(line, content):
            for name, value in content.items():
                values = columns.setdefault(name, [])
                if value is not None:
                    values.append(value)
    if not columns:
        raise DataError("the first lines hold no JSON object: JSON lines has one in each line.")
    schema, first = pa.schema([(name, _type_of(values)) for name, values in columns.items()]), {}
    for field in schema:
        texts = pa.array([value for value in columns[field.name][:FIRST] if isinstance(value, str)], pa.string())
        if kind_of(field.type) in ("category", *CALENDAR) and len(texts):
            first[field.name] = texts if _plain(field.type) else _moments(texts, field.type)
    return schema, first


def _type_of(values: list[Any]) -> Any:
    """The type of a column, that of its first value."""
    import pyarrow as pa

    if not values:
        return pa.null()
    first = values[0]
    if isinstance(first, bool):
        return pa.bool_()
    if isinstance(first, int | float):
        whole = all(isinstance(value, int) and abs(value) < 2**63 for value in values)
        return pa.int64() if whole else pa.float64()
    if isinstance(first, dict):
        return pa.struct([])
    if isinstance(first, list):
        return pa.list_(pa.null())
    texts = pa.array([value for value in values if isinstance(value, str)])
    for moment in (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.time64("us")):
        try:
            _moments(texts, moment)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        return moment
    return pa.string()
