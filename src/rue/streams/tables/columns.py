"""How the columns of a table become features.

A column of numbers or booleans has a slot of its own, in the order of the columns. Text, and any column named as a
category, is hashed: `column=value` has value 1 in the slot k + (MurmurHash3 & (2^bits − 1)), where k slots are owned.
Whatever is missing (null, NaN, empty) says `column=` there and nothing else. A timestamp is its days since 1970, UTC,
in a slot of its own, and `column.hour=…` and `column.weekday=…`; a date has no hour, a time of day no weekday, and a
duration neither.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from rue.errors import DataError, shown

__all__ = ["KINDS", "Columns", "find_column", "kind_of", "plan", "repeated", "require_columns"]

KINDS = ("number", "boolean", "category", "timestamp", "date", "time", "duration")
MOST_BITS = 31


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns that are features and what they are, the target, the weight; a value that goes into the model file.

    >>> Columns((("age", "number"), ("job", "category")), target="bought", label="boolean").own
    ('age',)
    """

    plan: tuple[tuple[str, str], ...]
    """Name and kind of each feature's column."""
    target: str | None = None
    label: str = "number"
    """What the target holds: number, boolean, or category, whose labels are words."""
    weight: str | None = None
    bits: int = 20

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The columns with a slot of their own: slot j is `own[j]`."""
        return tuple(name for name, kind in self.plan if kind != "category")

    @property
    def hashing(self) -> bool:
        """Whether a row needs the hashed slots even if nothing is missing."""
        return any(kind not in ("number", "boolean", "duration") for _, kind in self.plan)

    @property
    def width(self) -> int:
        """The number of features of rows in which nothing is missing; a missing number needs `full_width`."""
        return self.full_width if self.hashing else len(self.own)

    @property
    def full_width(self) -> int:
        return len(self.own) + (1 << self.bits)

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that is read."""
        others = (name for name in (self.target, self.weight) if name is not None)
        return (*(name for name, _ in self.plan), *others)

    def kind(self, name: str) -> str:
        """The kind of a column that is read."""
        return self._kinds[name]

    @cached_property
    def _kinds(self) -> dict[str, str]:
        others = {self.target or "": self.label, self.weight or "": "number"}
        return {**others, **dict(self.plan)}

    def require(self, names: Sequence[str], labels: bool = True) -> None:
        """Refuse a table that lacks one of the columns; without `labels` it may lack the target and the weight."""
        require_columns(self.used if labels else self.used[: len(self.plan)], names)

    def to_dict(self) -> dict[str, Any]:
        """In plain JSON types."""
        return {**dataclasses.asdict(self), "plan": [list(column) for column in self.plan]}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Columns:
        """The columns that `to_dict` describes; refuses anything else."""
        try:
            columns = cls(**{**stored, "plan": tuple((name, kind) for name, kind in stored["plan"])})
            texts = [name for name, _ in columns.plan] + [
                name for name in (columns.target, columns.weight) if name is not None
            ]
            good = all(isinstance(name, str) for name in texts) and all(kind in KINDS for _, kind in columns.plan)
            good = good and len(set(texts)) == len(texts) and columns.label in KINDS[:3] and type(columns.bits) is int
            good = good and 1 <= columns.bits <= MOST_BITS
        except (KeyError, TypeError, ValueError):
            good = False
        if not good:
            raise DataError("the description of the columns is damaged.")
        return columns


def plan(
    schema: Any,
    *,
    target: str | int | None = None,
    weight: str | int | None = None,
    drop: Iterable[str | int] = (),
    category: Iterable[str | int] = (),
    bits: int = 20,
) -> Columns:
    """What to make of a table with this Arrow schema.

    A column is named, or counted from 1, from the end if negative; a name wins over a count. A target that is among the
    categories has words for labels.
    """
    if type(bits) is not int or not 1 <= bits <= MOST_BITS:
        raise DataError(f"bits must be a whole number from 1 to {MOST_BITS}, not {shown(bits)}.")
    names = list(schema.names)
    twice = repeated(names)
    if twice is not None:
        raise DataError(f"two columns are called {twice!r}: rename one.")
    goal = None if target is None else find_column(target, names, "target")
    heavy = None if weight is None else find_column(weight, names, "weight")
    gone = {find_column(name, names, "column to drop") for name in drop}
    categories = {find_column(name, names, "category") for name in category}
    for role, name in (("target", goal), ("weight", heavy)):
        if name in gone:
            raise DataError(f"the column {name!r} is the {role}: it cannot be dropped.")
    if goal is not None and goal == heavy:
        raise DataError(f"the column {goal!r} cannot be both the target and the weight.")
    columns = []
    for field in schema:
        if field.name not in gone and field.name not in (goal, heavy):
            kind = kind_of(field.type)
            if not kind:
                raise DataError(f"the column {field.name!r} holds {field.type}: leave it out with --drop {field.name}.")
            columns.append((field.name, "category" if field.name in categories else kind))
    label = "number"
    if goal is not None:
        label = "category" if goal in categories else kind_of(schema.field(goal).type)
        if label not in KINDS[:3]:
            raise DataError(f"the target {goal!r} must hold numbers, booleans or words, not {schema.field(goal).type}.")
    if heavy is not None and kind_of(schema.field(heavy).type) not in ("number", "boolean"):
        raise DataError(f"the weight {heavy!r} must hold numbers, not {schema.field(heavy).type}.")
    return Columns(tuple(columns), goal, label, heavy, bits)


def require_columns(needed: Iterable[str], names: Sequence[str]) -> None:
    """Refuse a table that lacks one of the columns that are needed."""
    there = set(names)
    for name in needed:
        if name not in there:
            raise DataError(f"the column {name!r} is missing: {_listing(name, names)}.")


def repeated(names: Iterable[str]) -> str | None:
    """The first name that has come before, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def find_column(which: str | int, names: Sequence[str], role: str) -> str:
    """The column that is called so, or else that place in the order, counted from 1, or from the end if negative."""
    if isinstance(which, str) and which in names:
        return which
    if not isinstance(which, bool) and re.fullmatch(r"-?[0-9]{1,9}", str(which)):
        place = int(which)
        if 1 <= abs(place) <= len(names):
            return names[place - 1 if place > 0 else place]
    raise DataError(f"there is no {role} {shown(which)}: {_listing(str(which), names)}.")


def _listing(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1) or [other for other in names if other.lower() == name.lower()]
    shown = ", ".join(map(_shown, names[:30])) + (f" and {len(names) - 30} more" if len(names) > 30 else "")
    return (f"did you mean {close[0]!r}? " if close else "") + f"the columns are {shown}"


def _shown(name: str) -> str:
    """A name on one line, shortened to 40 characters."""
    name = name if len(name) <= 40 else name[:39] + "…"
    return name if name.isprintable() else repr(name)


def kind_of(type_: Any) -> str:
    """The kind of an Arrow type, "" if it is none that can be a feature."""
    import pyarrow as pa

    t = pa.types
    if isinstance(type_, pa.BaseExtensionType):
        return kind_of(type_.storage_type)
    if t.is_dictionary(type_):
        return "category" if kind_of(type_.value_type) else ""
    for kind, tests in (
        ("number", (t.is_integer, t.is_floating, t.is_decimal)),
        ("boolean", (t.is_boolean,)),
        ("category", (t.is_string, t.is_large_string, t.is_string_view, t.is_null)),
        ("timestamp", (t.is_timestamp,)),
        ("date", (t.is_date,)),
        ("time", (t.is_time,)),
        ("duration", (t.is_duration,)),
    ):
        if any(test(type_) for test in tests):
            return kind
    return ""
