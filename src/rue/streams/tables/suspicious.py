"""Columns of a CSV read as words that look like numbers, amounts or dates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from rue.streams.tables.encoding import shortened

__all__ = ["suspicious"]

ENOUGH, NEARLY = 5, 0.9
"""So many values, and this share of them, must look alike."""
_PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_DRESSED = re.compile(r"[$€£¥]? ?[-+]?(?:\d+|\d{1,3}(?:[.,'’]\d{3})+)(?:[.,]\d+)? ?(?:%|[$€£¥]|EUR|USD|GBP)?")
_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d\d)(?: .*)?")


def suspicious(values: Mapping[str, Sequence[str]], stray: Callable[[str], str]) -> Iterable[tuple[str, str]]:
    """The name of each suspicious column, and a sentence for its user.

    `values` has some values of each column of words, without missing ones; `stray` finds the value because of which a
    column of numbers was read as words.
    """
    for name, some in values.items():
        if len(some) < ENOUGH:
            continue
        kind, example = _looks(some)
        if kind == "numbers":
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
            yield (
                name,
                (
                    f"column {name} is taken as words, though it holds {kind}, such as {shortened(example)}: "
                    f"write them as {better}, or leave the column out with --drop."
                ),
            )


def _looks(some: Sequence[str]) -> tuple[str, str]:
    """What nearly all of some values look like, and one of them; "" if like words."""
    for kind, patterns in (("numbers", (_PLAIN,)), ("dates", (_DATE,)), ("amounts", (_PLAIN, _DRESSED))):
        alike = [text for text in some if any(pattern.fullmatch(text.strip()) for pattern in patterns)]
        if len(alike) >= NEARLY * len(some):
            return kind, next((text for text in alike if not _PLAIN.fullmatch(text.strip())), alike[0])
    return "", ""
