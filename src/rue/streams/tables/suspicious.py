"""Columns read as words that look like numbers, amounts or dates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from rue.streams.tables.encoding import shortened
from rue.streams.tables.spelling import looks, written_as

__all__ = ["suspicious"]

ENOUGH = 5
"""So many values a column must have to be judged."""
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})*")


def suspicious(
    values: Mapping[str, Sequence[str]], stray: Callable[[str], str] | None = None
) -> Iterable[tuple[str, str]]:
    """The name of each suspicious column, and a sentence for its user.

    `values` has some values of each column of words, without missing ones; `stray` finds the value because of which a
    column of numbers was read as words. Without it numbers are not noted: in a format that has types, text is meant.
    """
    for name, some in values.items():
        if len(some) < ENOUGH:
            continue
        kind, example = looks(some)
        if kind == "numbers":
            if stray is None:
                continue
            why = stray(name)
            because = f", because {why}" if why else ""
            yield (
                name,
                (
                    f"column {name} is taken as words, though nearly all of it is numbers{because}: "
                    "mend that, or leave the column out with --drop."
                ),
            )
        elif kind:
            better = "2026-12-31" if kind == "dates" else "1234.5"
            options = "".join(f"read them with {option}, " for option in _options(kind, some))
            yield (
                name,
                (
                    f"column {name} is taken as words, though it holds {kind}, such as {shortened(example)}: "
                    f"{options}write them as {better}, or leave the column out with --drop."
                ),
            )


def _options(kind: str, some: Sequence[str]) -> Iterable[str]:
    """The options with which all of some values can be read."""
    if kind == "dates":
        return (f"--{order}" for order in ("day-first", "month-first") if written_as(some, order=order))
    if all(map(_THOUSANDS.fullmatch, some)):  # 1,234 is more probably a thousand than a fraction
        return ()
    return ("--decimal ','",) if written_as(some, decimal=",") == "number" else ()
