"""How the columns of a table become features.

A column of numbers or booleans has a slot of its own, in the order of the columns. Text, and any column named as a
category, is hashed: `column=value` has value 1 in the slot k + (MurmurHash3 & (2^bits − 1)), where k slots are owned.
Columns of numbers that are put into bins have a slot for each bin too, behind those and from 32 on; a learner says
which bin a row is in, because that depends on the rows before it (`rue.learners.bins`).
Columns that are crossed are one more category, `hour×route=13×A`, of their values as written, numbers 1.0 as 1.
Whatever is missing (null, NaN, empty) says `column=` there and nothing else. A column of sentences is text: each word
is a feature `column=word`, hashed, whose value is how often it occurs (see `tokens`).

A timestamp has slots of its own for the days since the first one (UTC), `column`, and for `column.day_of_year`; it
says `column.weekday=…` and, unless it is midnight sharp, `column.hour=…`; a date is the same. A time of day is the part
of a day since midnight, and its hour; a duration is its days. Models of version 1 have the days since 1970 instead, no
day of the year, and an hour at midnight too.

Kinds are settled by Arrow's type and the first 1,000 rows (`FIRST`), as far as they lie in what a text format looks at
first: text is dates if all of these rows are (ISO 8601, 2026/12/31, Dec 31, 2026, or as `order` says), numbers if all
have decimal commas and `decimal` is a comma, and text if at least 20 are not missing, four fifths of these differ, and
half have a space inside; otherwise it is a category.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rue.errors import DataError, shown
from rue.streams.tables.dates import CALENDAR, DATES, read_moments
from rue.streams.tables.spelling import MISSING, ORDERS, is_text, looks, written_as

__all__ = [
    "FIRST",
    "KINDS",
    "Columns",
    "find_column",
    "find_id",
    "is_sentences",
    "kind_of",
    "plan",
    "repeated",
    "require_columns",
]

KINDS = ("number", "boolean", "category", "timestamp", "date", "time", "duration", "text")
MOST_BITS = 31
FIRST = 1000
"""How many of the first rows settle what a column is."""
FIRST_BIN = 32
"""The least slot of a bin: maps make tokens of the zeros of features below (`rue.maps.table.LOW`), not of bins."""
MOST_BINS = 256
VERSION = 2
"""How dates become features; a model without a number has version 1."""


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
    id: str | None = None
    """The column that tells rows apart, which is carried along as text."""
    decimal: str = "."
    """What numbers in text have before their fraction: a point or a comma."""
    order: str = ""
    """How dates in text are written: "day-first", "month-first", or "" for ISO 8601 alone."""
    starts: tuple[tuple[str, int], ...] = ()
    """The first day of each column of dates, counted from 1970-01-01; one that is not here starts there."""
    version: int = VERSION
    """Of the rules by which dates become features."""
    experts: tuple[str, ...] = ()
    """The columns that hold predictions of outside experts."""
    crosses: tuple[tuple[str, ...], ...] = ()
    """Columns whose values together are a category."""
    word_pairs: bool = False
    """Whether two words in a row of a text are a feature too."""
    bins: tuple[tuple[str, int], ...] = ()
    """Columns of numbers that are put into bins by rank as well, and into how many."""

    @cached_property
    def own(self) -> tuple[str, ...]:
        """What has a slot of its own: slot j is `own[j]`, a column, or the day of the year of a column of dates."""
        names: list[str] = []
        for name, kind in self.plan:
            if kind not in ("category", "text"):
                names.append(name)
            if kind in CALENDAR and self.version > 1:
                names.append(f"{name}.day_of_year")
        return tuple(names)

    @cached_property
    def slots(self) -> int:
        """How many slots there are in front of the hashed ones."""
        return self.first_bins[-1] if self.bins else len(self.own)

    @cached_property
    def first_bins(self) -> tuple[int, ...]:
        """The slot of the first bin of each column that is put into bins, and the slot after the last bin."""
        counts = (count for _, count in self.bins)
        return tuple(itertools.accumulate(counts, initial=max(FIRST_BIN, len(self.own))))

    def names_of_slots(self) -> Iterator[tuple[int, str]]:
        """The slots in front of the hashed ones, and what they are called: `price`, `price in 64 bins=17`."""
        yield from enumerate(self.own)
        for (name, count), first in zip(self.bins, self.first_bins, strict=False):
            yield from ((first + k, f"{name} in {count} bins={k + 1}") for k in range(count))

    @property
    def dates(self) -> tuple[str, ...]:
        """The columns of dates, times or durations."""
        return tuple(name for name, kind in self.plan if kind in DATES)

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of text, which become words."""
        return tuple(name for name, kind in self.plan if kind == "text")

    def start(self, name: str) -> int:
        """The day, counted from 1970-01-01, from which the days of a column are counted."""
        return dict(self.starts).get(name, 0)

    @property
    def hashing(self) -> bool:
        """Whether a row needs the hashed slots even if nothing is missing."""
        return bool(self.crosses) or any(kind not in ("number", "boolean", "duration") for _, kind in self.plan)

    @property
    def width(self) -> int:
        """The number of features of rows in which nothing is missing; a missing number needs `full_width`."""
        return self.full_width if self.hashing else self.slots

    @property
    def full_width(self) -> int:
        return self.slots + (1 << self.bits)

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that is read."""
        features = [name for name, _ in self.plan]
        others = dict.fromkeys(name for name in (self.target, self.weight, self.id) if name is not None)
        return (*features, *self.experts, *(name for name in others if name not in features))

    def kind(self, name: str) -> str:
        """The kind of a column that is read."""
        return self.kinds[name]

    @cached_property
    def kinds(self) -> dict[str, str]:
        others = {self.id or "": "category", self.target or "": self.label, self.weight or "": "number"}
        return {**others, **dict.fromkeys(self.experts, "number"), **dict(self.plan)}

    def require(self, names: Sequence[str], labels: bool = True) -> None:
        """Refuse a table that lacks one of the columns; without `labels` it may lack the target and the weight."""
        require_columns(self.used if labels else self.used[: len(self.plan) + len(self.experts)], names)

    def to_dict(self) -> dict[str, Any]:
        """In plain JSON types."""
        lists = {"plan": [list(column) for column in self.plan], "starts": [list(start) for start in self.starts]}
        stored = {
            **dataclasses.asdict(self),
            **lists,
            "experts": list(self.experts),
            "crosses": list(map(list, self.crosses)),
            "bins": list(map(list, self.bins)),
        }
        if not self.bins:  # so that older versions of rue read it
            del stored["bins"]
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Columns:
        """The columns that `to_dict` describes; refuses anything else."""
        try:
            pairs = {key: tuple((name, value) for name, value in stored.get(key, ())) for key in ("plan", "starts")}
            lists = {
                "bins": tuple((name, count) for name, count in stored.get("bins", ())),
                "experts": tuple(stored.get("experts", ())),
                "crosses": tuple(map(tuple, stored.get("crosses", ()))),
            }
            columns = cls(**{"version": 1, **stored, **pairs, **lists})
            texts = [name for name, _ in columns.plan] + [
                name for name in (columns.target, columns.weight, *columns.experts) if name is not None
            ]
            good = all(isinstance(name, str) for name in texts) and all(kind in KINDS for _, kind in columns.plan)
            good = good and len(set(texts)) == len(texts) and columns.label in KINDS[:3] and type(columns.bits) is int
            good = good and 1 <= columns.bits <= MOST_BITS and (columns.id is None or isinstance(columns.id, str))
            good = good and "plan" in stored and type(columns.word_pairs) is bool
            good = good and not any(why for why in _unfit_for_bins(columns.bins, dict(columns.plan)))
            good = good and all(_crossable(one, columns.kinds, dict(columns.plan)) for one in columns.crosses)
            good = (
                good and columns.version in (1, VERSION) and columns.decimal in (".", ",") and columns.order in ORDERS
            )
            days = [day for _, day in columns.starts]
            good = (
                good
                and set(dict(columns.starts)) <= set(texts)
                and all(type(day) is int and abs(day) < 2**53 for day in days)
            )
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
    id_column: str | int | None = None,
    text: Iterable[str | int] = (),
    experts: Iterable[str | int] = (),
    crosses: Iterable[Sequence[str | int]] = (),
    bins: Iterable[tuple[str | int, int]] = (),
    word_pairs: bool = False,
    bits: int = 20,
    decimal: str = ".",
    order: str = "",
    first: Mapping[str, Any] | None = None,
) -> Columns:
    """What to make of a table with this Arrow schema, whose columns begin with the values of `first`.

    A column is named, or counted from 1, from the end if negative; a name wins over a count. A target that is among the
    categories has words for labels.
    """
    if type(bits) is not int or not 1 <= bits <= MOST_BITS:
        raise DataError(f"bits must be a whole number from 1 to {MOST_BITS}, not {shown(bits)}.")
    names, first = list(schema.names), first or {}
    twice = repeated(names)
    if twice is not None:
        raise DataError(f"two columns are called {twice!r}: rename one.")
    roles = _Roles(
        target=None if target is None else find_column(target, names, "target"),
        weight=None if weight is None else find_column(weight, names, "weight"),
        id=None if id_column is None else find_id(id_column, schema),
        dropped=frozenset(find_column(name, names, "column to drop") for name in drop),
        categories=frozenset(find_column(name, names, "category") for name in category),
        sentences=frozenset(find_column(name, names, "text") for name in text),
        experts=tuple(find_column(name, names, "column of an expert") for name in experts),
    )
    roles.require_distinct()
    order = order or roles.order_of_dates(schema, first)
    kinds = roles.kinds(schema, first, decimal, order)
    label = roles.kind_of_label(schema, kinds)
    roles.require_numbers(schema, kinds)
    columns = tuple((name, kind) for name, kind in kinds.items() if name not in roles.no_features)
    starts = tuple((name, _start(kind, first.get(name), order)) for name, kind in columns if kind in CALENDAR)
    crossed = tuple(tuple(find_column(name, names, "column to cross") for name in one) for one in crosses)
    _require_crossable(crossed, kinds, dict(columns))
    binned = tuple((find_column(name, names, "column to put into bins"), count) for name, count in bins)
    for why in _unfit_for_bins(binned, dict(columns)):
        raise DataError(f"bins: {why}.")
    own = roles.target, label, roles.weight, bits, roles.id
    settled = Columns(columns, *own, decimal, order, starts, experts=roles.experts)
    if word_pairs and not settled.texts:
        raise DataError("word pairs: no column is read as text: name one (--text, in Python text=), or leave them out.")
    return dataclasses.replace(settled, crosses=crossed, word_pairs=word_pairs, bins=binned)


@dataclasses.dataclass(frozen=True)
class _Roles:
    """The columns that the user has named, by what they are for."""

    target: str | None
    weight: str | None
    id: str | None
    dropped: frozenset[str]
    categories: frozenset[str]
    sentences: frozenset[str]
    experts: tuple[str, ...]

    @property
    def no_features(self) -> set[str | None]:
        """The columns that are read and are no features."""
        return {self.target, self.weight, self.id, *self.experts}

    def require_distinct(self) -> None:
        """Refuse a column with two roles that contradict each other."""
        experts = (("prediction of an expert", name) for name in self.experts)
        for role, name in (("target", self.target), ("weight", self.weight), *experts):
            if name in self.dropped:
                raise DataError(f"the column {name!r} is the {role}: it cannot be dropped.")
            if name in self.sentences:
                raise DataError(f"the column {name!r} is the {role}: it cannot be text.")
        if self.target is not None and self.target == self.weight:
            raise DataError(f"the column {self.target!r} cannot be both the target and the weight.")
        others = {self.target, self.weight, self.id}
        if len({*self.experts, *others}) < len(self.experts) + len(others):
            raise DataError("the column of an expert can be nothing else, the target, the weight or the id.")
        both = sorted(self.sentences & self.categories)
        if both:
            raise DataError(f"the column {both[0]!r} cannot be both text and a category.")

    def order_of_dates(self, schema: Any, first: Mapping[str, Any]) -> str:
        """How dates are written in the columns of text that may be dates."""
        named = self.dropped | self.categories | self.sentences | {self.target, self.weight, self.id}
        fields = [field for field in schema if field.name not in named and is_text(field.type)]
        return _order_of([first[field.name] for field in fields] if first else [])

    def kinds(self, schema: Any, first: Mapping[str, Any], decimal: str, order: str) -> dict[str, str]:
        """The kind of each column that is not dropped; refuses features of a type that says nothing."""
        kinds: dict[str, str] = {}
        for field in schema:
            if field.name in self.dropped:
                continue
            if field.name in self.categories or field.name in self.sentences:
                kinds[field.name] = "text" if field.name in self.sentences and kind_of(field.type) else "category"
            else:
                kinds[field.name] = _settled(field.type, first.get(field.name), decimal, order)
            if not kind_of(field.type) and field.name not in (self.target, self.weight, self.id):
                raise DataError(f"the column {field.name!r} holds {field.type}: leave it out with --drop {field.name}.")
        return kinds

    def kind_of_label(self, schema: Any, kinds: Mapping[str, str]) -> str:
        """What the target holds: numbers, booleans or words; refuses anything else."""
        if self.target is None:
            return "number"
        label = "category" if kinds[self.target] == "text" else kinds[self.target]
        if label not in KINDS[:3]:
            type_ = schema.field(self.target).type
            held = f"{label}s" if is_text(type_) else type_
            raise DataError(f"the target {self.target!r} must hold numbers, booleans or words, not {held}.")
        return label

    def require_numbers(self, schema: Any, kinds: Mapping[str, str]) -> None:
        """Refuse a weight, or predictions of an expert, that are no numbers."""
        weights = [] if self.weight is None else [("weight", self.weight)]
        for role, name in [*weights, *(("expert", name) for name in self.experts)]:
            if kinds[name] not in ("number", "boolean"):
                raise DataError(f"the {role} {name!r} must hold numbers, not {schema.field(name).type}.")


def _unfit_for_bins(bins: Sequence[tuple[str, int]], features: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with columns that are to be put into bins."""
    for k, (name, count) in enumerate(bins):
        if features.get(name) != "number":
            held = f"is read as {features[name]}" if name in features else "is no feature"
            how = "name columns of numbers, such as price:64 (in Python bins={'price': 64})"
            yield f"the column {name!r} {held}: {how}"
        if type(count) is not int or not 2 <= count <= MOST_BINS:
            yield f"{shown(count)} for the column {name!r}: give a number from 2 to {MOST_BINS}"
        if name in dict(bins[:k]):
            yield f"the column {name!r} is named twice"


def _require_crossable(crosses: Sequence[Sequence[str]], kinds: Mapping[str, str], features: Mapping[str, str]) -> None:
    """Refuse columns that cannot be a category together."""
    for one in crosses:
        if not _crossable(one, kinds, features):
            raise DataError(
                f"cross: {', '.join(one)} cannot be crossed: name two or three columns of numbers, truth values or "
                "categories, each once, that are features."
            )
    if len(set(crosses)) < len(crosses):
        raise DataError("cross: the same columns are crossed twice.")


def _crossable(one: Sequence[str], kinds: Mapping[str, str], features: Mapping[str, str]) -> bool:
    """Whether some columns can be a category together."""
    alike = all(name in features and kinds[name] in ("number", "boolean", "category") for name in one)
    return 2 <= len(one) <= 3 and len(set(one)) == len(one) and alike


def find_id(which: str | int, schema: Any) -> str:
    """The column that tells rows apart; refuses one that cannot be written as text."""
    name = find_column(which, schema.names, "id column")
    type_ = schema.field(name).type
    if not kind_of(type_):
        raise DataError(f"the id column {name!r} holds {type_}, which is no text: name another with --id.")
    return name


def _settled(type_: Any, first: Any, decimal: str, order: str) -> str:
    """The kind of a column of this Arrow type that begins with these values."""
    kind = kind_of(type_)
    if first is None or not is_text(type_):
        return kind
    values = first.drop_null().to_pylist()
    return written_as(values, decimal, order) or ("text" if is_sentences(values) else kind)


def _order_of(texts: Iterable[Any]) -> str:
    """How dates in some columns of text are written, if nothing is asked for: ISO 8601 unless a column needs more."""
    for first in texts:
        values = [text for text in first.drop_null().to_pylist() if text.strip() not in MISSING]
        if looks(values)[0] == "dates" and not written_as(values) and written_as(values, order="year-first"):
            return "year-first"
    return ""


def is_sentences(values: Sequence[str]) -> bool:
    """Whether some texts, of which those that are missing do not count, are sentences rather than categories.

    At least 20 of them, of which four fifths differ and half have white space inside; and not amounts or dates in
    another spelling, which have a note of their own.

    >>> is_sentences([f"parcel {i} came late" for i in range(20)]), is_sentences(["New York", "Los Angeles"] * 20)
    (True, False)
    """
    values = [value for value in values if value and not value.isspace()]
    if len(values) < 20 or len(set(values)) < 0.8 * len(values) or looks(values)[0]:
        return False
    return sum(len(value.split()) > 1 for value in values) >= 0.5 * len(values)


def _start(kind: str, first: Any, order: str) -> int:
    """The day of the first date, counted from 1970-01-01; 0 if there is none."""
    if first is None:
        return 0
    moments, wrong = read_moments("", kind, first, kind_of(first.type), order)
    there = np.ones(len(first), dtype=np.bool_) if wrong is None else ~wrong
    there &= True if moments.missing is None else ~moments.missing
    return int(moments.day[there][0]) if there.any() else 0


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
