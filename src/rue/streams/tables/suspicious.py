"""Columns read as words that look like numbers, amounts or dates, or that name each row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from rue.streams.tables.encoding import shortened
from rue.streams.tables.spelling import NEARLY, looks, parse_dates, written_as

__all__ = ["suspicious"]

ENOUGH = 5
"""So many values a column must have to be judged."""
MANY = 100
"""So many values, all different, make a column look like one that names each row."""
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})*")


def suspicious(
    values: Mapping[str, Sequence[str]], stray: Callable[[str], str] | None = None
) -> Iterable[tuple[str, str]]:
    """The name of each suspicious column, and a sentence for its user.

    `values` has some values of each column of words, without missing ones; `stray` finds the value because of which a
    column of numbers was read as words. Without it, in a format that has types, whole numbers are not noted: such text
    may be a code.
    """
    for name, some in values.items():
        if len(some) < ENOUGH:
            continue
        kind, example = looks(some)
        if kind == "numbers":
            if stray is None and not _fractions(some):
                continue
            why = stray(name) if stray else "the table has them as text"
            because = f", because {why}" if why else ""
            mend = "mend that" if stray else "make numbers of them (pandas.to_numeric)"
            yield (
                name,
                (
                    f"column {name} is taken as words, though nearly all of it is numbers{because}: "
                    f"{mend}, or leave the column out with --drop (in Python drop=)."
                ),
            )
        elif kind == "dates" and (wrong := _stray_date(some)):
            yield (
                name,
                (
                    f"column {name} is taken as words, though nearly all of it is dates, because {shortened(wrong)} is "
                    "none: mend that, or leave the column out with --drop (in Python drop=)."
                ),
            )
        elif kind:
            better = "2026-12-31" if kind == "dates" else "1234.5"
            options = "".join(f"read them with {option}, " for option in _options(kind, some))
            yield (
                name,
                (
                    f"column {name} is taken as words, though it holds {kind}, such as {shortened(example)}: "
                    f"{options}write them as {better}, or leave the column out with --drop (in Python drop=)."
                ),
            )
        elif len(some) >= MANY and len(set(some)) == len(some):
            yield (
                name,
                (
                    f"column {name} holds another word in each of the first {len(some):,} rows, so what is learnt of "
                    "one row helps no other: leave it out with --drop, or with --id if it tells rows apart (in Python "
                    "drop=, id=)."
                ),
            )


def _stray_date(some: Sequence[str]) -> str:
    """The first of some values that is no date, where most of them are dates that need no option; "" if none is."""
    import pyarrow as pa

    for order in ("", "year-first"):
        wrong = parse_dates(pa.array(some, pa.string()), "timestamp", order)[1]
        if wrong is not None and 0 < wrong.sum() <= (1.0 - NEARLY) * len(some):
            return some[int(wrong.argmax())]
    return ""


def _fractions(some: Sequence[str]) -> bool:
    """Whether some numbers have fractions, which codes have not."""
    return any("." in text for text in some)


def _options(kind: str, some: Sequence[str]) -> Iterable[str]:
    """The options with which all of some values can be read."""
    if kind == "dates":
        orders = (order for order in ("day-first", "month-first") if written_as(some, order=order))
        return (f"--{order} (in Python {order.replace('-', '_')}=True)" for order in orders)
    if all(map(_THOUSANDS.fullmatch, some)):  # 1,234 is more probably a thousand than a fraction
        return ()
    return ("--decimal ',' (in Python decimal=',')",) if written_as(some, decimal=",") == "number" else ()
