"""How the features of an example become those of a model: by the rules of tables, as `rue learn` reads JSON lines.

The examples that are there when the first one is learnt settle what is a number, a word, a date (as the first rows of
a file do), unless the model was created with `columns`. Later ones are read in this way: a name that is not among the
columns is left out and counted, a column that is not there is missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from rue.errors import DataError, shown
from rue.streams.chunk import Chunk
from rue.streams.formats.jsonl import schema_of_lines
from rue.streams.names import Names
from rue.streams.tables.columns import Columns, plan
from rue.streams.tables.dates import read_moments
from rue.streams.tables.encoding import encode

__all__ = ["DECLARED", "Reading"]

DECLARED = ("number", "boolean", "category", "text", "timestamp", "date")
"""The kinds of columns that a model may be created with."""
MOST_UNKNOWN = 100
"""How many names of features that are left out are listed."""
_ARROW = {"number": "float64", "boolean": "bool_", "timestamp": "string", "date": "string", "time": "string"}


class Reading:
    """The columns of a model, once they are settled, and the names of its features.

    >>> reading = Reading()
    >>> reading.settle([{"size": 2, "colour": "red"}])
    >>> reading.columns.plan
    (('size', 'number'), ('colour', 'category'))
    >>> reading.complaint({"size": "large"})
    "the feature 'size' is 'large', but this model has a number there."
    >>> len(reading.chunk([{"size": 1.5, "colour": "blue"}, {"size": None}]).block)
    2
    """

    def __init__(self, columns: Columns | None = None, settings: Mapping[str, Any] | None = None) -> None:
        self.columns, self.names = columns, Names()
        self.settings = dict(settings or {})
        """What the model was created with: `columns`, `category`, `text`, `drop`, `bits`, `order`."""
        self._sorted: tuple[Columns, Sequence[tuple[str, str]], Sequence[tuple[str, str]]] | None = None
        self.unknown: dict[str, int] = {}
        """How often names came that are no columns; the first 100 of them."""

    def settle(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Decide by the first examples, in order, what each column is."""
        import pyarrow as pa

        declared = dict(self.settings.get("columns") or {})
        declared |= dict.fromkeys(self.settings.get("category", ()), "category")
        declared |= dict.fromkeys(self.settings.get("text", ()), "text")
        dropped = set(self.settings.get("drop", ()))
        fitting = [{name: value for name, value in row.items() if name not in dropped} for row in rows]
        lines = b"\n".join(map(msgspec.json.encode, fitting))
        schema, first = schema_of_lines(lines) if any(fitting) else (pa.schema([]), {})
        fields = {field.name: field.type for field in schema if not pa.types.is_null(field.type)}
        for name, kind in declared.items():
            fields[name] = getattr(pa, _ARROW.get(kind, "string"))()
        # The first date of a column is where its days begin, as it is in `rue learn`; there may be none yet.
        dates = {
            name: pa.array([row[name] for row in rows if isinstance(row.get(name), str)], pa.string())
            for name, kind in declared.items()
            if kind in ("date", "timestamp")
        }
        wanted = {kind: [name for name in declared if declared[name] == kind] for kind in ("category", "text")}
        columns = plan(
            pa.schema(list(fields.items())),
            category=wanted["category"],
            text=wanted["text"],
            bits=int(self.settings.get("bits") or 20),
            order=self.settings.get("order") or "",
            first=dates | {name: texts for name, texts in first.items() if name in fields and name not in declared},
        )
        kinds = tuple((name, declared.get(name, kind)) for name, kind in columns.plan)
        self.columns = Columns(kinds, bits=columns.bits, order=columns.order, starts=columns.starts)
        self.names.add(self.columns.names_of_slots())

    def complaint(self, features: Mapping[str, Any]) -> str:
        """What is wrong with an example for a model whose columns are settled, "" if nothing is.

        Its numbers are finite, which `require_line` sees to.
        """
        if self.columns is None:
            return ""
        for name, kind in self._doubtful(features):
            value = features.get(name)
            if value is not None and self._canonical(name, kind, value) is None:
                held = "a word" if kind in ("category", "text") else f"a {kind}"
                return f"the feature {shown(name)} is {shown(value)}, but this model has {held} there."
        return ""

    def _doubtful(self, features: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        """The columns that an example may not fit: those of words take anything, those of numbers all but words."""
        assert self.columns is not None
        if self._sorted is None or self._sorted[0] is not self.columns:
            strict = [column for column in self.columns.plan if column[1] not in ("category", "text")]
            self._sorted = self.columns, strict, [column for column in strict if column[1] != "number"]
        return self._sorted[2] if set(map(type, features.values())) <= _NUMBERS else self._sorted[1]

    def _canonical(self, name: str, kind: str, value: Any) -> Any:
        """A value as its column has it; None for one that does not fit, which counts as missing."""
        if value is None:
            return None
        if kind == "number":
            return None if isinstance(value, str) else _finite(value)
        if kind == "boolean":
            return bool(value) if not isinstance(value, str) and value in (0, 1) else None
        if kind in ("category", "text"):
            return value if isinstance(value, str) else _as_text(value)
        return value if isinstance(value, str) and self._is_date(name, kind, value) else None

    def _is_date(self, name: str, kind: str, value: str) -> bool:
        import pyarrow as pa

        assert self.columns is not None
        try:
            wrong = read_moments(name, kind, pa.array([value]), "category", self.columns.order)[1]
        except (pa.ArrowException, DataError):
            return False
        return wrong is None or not wrong.any()

    def table(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Some examples as an Arrow table, each value as its column has it."""
        import pyarrow as pa

        assert self.columns is not None
        columns: dict[str, Any] = {}
        for name, kind in self.columns.plan:
            type_ = getattr(pa, _ARROW.get(kind, "string"))()
            values = [row.get(name) for row in rows]
            try:
                if _ARROW.get(kind) == "string" or (kind == "number" and not set(map(type, values)) <= _NUMBERS):
                    raise TypeError
                columns[name] = pa.array(values, type_)
            except (pa.ArrowException, OverflowError, TypeError):
                columns[name] = pa.array([self._canonical(name, kind, value) for value in values], type_)
        table = pa.table(columns)
        return table if columns else pa.table({"": pa.nulls(len(rows))})

    def chunk(self, rows: Sequence[Mapping[str, Any]], *, learns: bool = False) -> Chunk:
        """Some examples as a block; with `learns` names of hashed features are noted."""
        assert self.columns is not None
        names = self.names if learns and not self.names.full() else None
        chunk = encode(self.columns, self.table(rows), np.arange(1, len(rows) + 1), labels=False, names=names)
        if learns:
            self.names.add(chunk.names)
            known = self.columns.kinds
            for row in rows:
                if not row.keys() <= known.keys():
                    self._note(name for name in row if name not in known)
        return chunk

    def _note(self, names: Any) -> None:
        for name in names:
            if name in self.unknown or len(self.unknown) < MOST_UNKNOWN:
                self.unknown[name] = self.unknown.get(name, 0) + 1

    def describe(self) -> dict[str, Any]:
        """What a model file says of it."""
        bits = int(self.settings.get("bits") or 20)
        return {"kind": "table", "bits": bits, "columns": None if self.columns is None else self.columns.to_dict()}


_NUMBERS = {float, int, type(None)}


def _finite(value: float) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _as_text(value: float) -> str:
    """A number or a truth value as a word: 1.0 as 1."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**63 else repr(value)
