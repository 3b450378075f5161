"""What the JSON of a model file may hold: a table of rules for each part, and `require`, which applies them.

The parts `history`, `features`, `counts` and `position` are plain JSON that callers may extend, so names that are not
listed here are let through; a name that is listed must have a value that its rule accepts. Readers that need a name to
be there say so: `require(part, rules, "…", needed=…)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from rue.errors import DataError, RueError

__all__ = ["CLUSTER", "COUNTS", "FEATURES", "HISTORY", "POSITION", "require"]

Rule = Callable[[Any], bool]
"""Whether a value is possible."""

_MOST = 2**53
"""Numbers of bytes, rows and examples are below this, as floats count no further."""


def _whole(least: int = 0, most: int = _MOST) -> Rule:
    """A whole number within limits; not True or False, which Python counts as such."""
    return lambda value: type(value) is int and least <= value <= most


def _number(value: Any) -> bool:
    """A finite number."""
    return type(value) in (int, float) and abs(value) < math.inf


def _number_or_nan(value: Any) -> bool:
    return _number(value) or (type(value) is float and math.isnan(value))


def _text(value: Any) -> bool:
    return type(value) is str


def _columns(value: Any) -> bool:
    """The plan of a table's columns."""
    from rue.streams.tables.columns import Columns

    try:
        return isinstance(value, dict) and Columns.from_dict(value) is not None
    except DataError:
        return False


def _interactions(value: Any) -> bool:
    """The namespaces that are multiplied."""
    from rue.streams.text.interactions import interactions_in

    try:
        return type(value) is list and list(interactions_in(value)) == value
    except RueError:
        return False


def _class_weight(value: Any) -> bool:
    """The class weights of a run and what they have counted."""
    from rue.runs.class_weights import ClassWeights

    try:
        return ClassWeights.from_json(value) is not None
    except DataError:
        return False


def _or_none(rule: Rule) -> Rule:
    return lambda value: value is None or rule(value)


def _each(rule: Rule, length: int | None = None, most: int = 2**17) -> Rule:
    """A list whose members all obey a rule, of a certain length or of at most so many."""

    def holds(value: Any) -> bool:
        fits = type(value) is list and len(value) <= most and length in (None, len(value))
        return fits and all(map(rule, value))

    return holds


HISTORY: dict[str, Rule] = {"examples": _whole()}
"""Of each of its entries; the rest is only shown."""

FEATURES: dict[str, Rule] = {
    "kind": _text,
    "bits": _whole(1, 32),
    "columns": _or_none(_columns),
    "interact": _interactions,
}

COUNTS: dict[str, Rule] = {
    "skipped": _whole(),
    "refused": _whole(),
    "unlabelled": _whole(),
    "missing": _whole(),
    "baselines": _each(_number_or_nan, length=10),  # the last label is NaN before there is one
    "values": _each(_number),
    "masses": _each(_number),
    "digits": _whole(1, 53),
    "class_weight": _class_weight,
}

POSITION: dict[str, Rule] = {
    "paths": _each(_text),
    "format": _or_none(_text),
    "separator": _or_none(_text),
    "pass": _whole(1),
    "passes": _whole(1),
    "file": _whole(),
    "offset": _whole(),
    "line": _whole(),
    "rows": _whole(),
    "heads": _each(_text),
    "tail": _text,
    "predictions": _or_none(_whole()),
    "holdout": _or_none(_number),
}


CLUSTER: dict[str, Rule] = {
    "places": _each(_each(_whole(), length=3), most=2**20),
    "learnt": _each(_each(_number, length=3), most=2**20),
    "round": _whole(),
    "most": _whole(1),
    "processors": _each(_text),
    "units": _text,
}
"""Of a position within data that are learnt in shards."""


def require(part: dict[str, Any], rules: dict[str, Rule], what: str, needed: Iterable[str] = ()) -> None:
    """Refuse a part of a file in which a name that is listed has an impossible value, or a needed one is missing."""
    for name in needed:
        if name not in part:
            raise DataError(f"its {what} has no {name!r}")
    for name, rule in rules.items():
        if name in part and not rule(part[name]):
            raise DataError(f"{str(part[name])[:40]!r} cannot be the {name!r} of its {what}")
