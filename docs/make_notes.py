"""The reader's map, `notes.md`: five sets of lecture notes in their own order, and what runs each item.

Where the notes have what is in `notes.txt`; statements and misprints are those of `rue.theorems()`. The notes are not
part of rue: `tests/test_notes.py` carries the list of their numbered items, and checks that none is missing.
"""

from __future__ import annotations

import dataclasses
import html
import re
from pathlib import Path

import rue

__all__ = ["BEGINNING", "Row", "maps", "misprint", "page", "sentences"]

BEGINNING = """\
import numpy as np

import rue

X, y = rue.census()
X, y = X[:300], y[:300]  # or any stream of your own
learner = rue.OGD("hinge", "ball:2")
"""
"""What the calls of the page begin with."""
WORDS = """\
For readers of the five sets of lecture notes from which rue began: each in its own order, and what runs each item. An
identifier leads to the statement; `rue theorems B3` on the command line, or `rue.theorems()["B3"].run()`, plays it out
and says whether it holds. The calls can be typed after these lines; `print(…)` says in words what they return, and a
notebook shows their pictures (elsewhere `matplotlib.pyplot.show()` does). Where the notes misprint something, the last
column says so; [Theorems](theorems.md) and
[Theory](theory.md#8-misprints-and-disagreements-in-the-notes) have the rest. At the end the five are
[side by side](#the-five-side-by-side), by theorem.
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """One item of a set of notes."""

    place: str
    """Where it is, with its number if it has one."""
    what: str
    ids: tuple[str, ...]
    """The theorems that run it."""
    call: str
    """An expression to try, after `BEGINNING`; if none is given, the run of the first theorem."""
    wrong: str
    """How the sentence about a misprint begins, in one of the theorems; empty if there is none."""


def maps() -> dict[str, tuple[str, list[Row]]]:
    """Of each set of notes, by its number: the title, and its items in order."""
    found: dict[str, tuple[str, list[Row]]] = {}
    rows: list[Row] = []
    for line in (Path(__file__).parent / "notes.txt").read_text().splitlines():
        if line.startswith("== "):
            number, title = line[3:].split(": ", 1)
            rows = []
            found[number] = title, rows
        elif line and not line.startswith("#"):
            place, what, ids, call, wrong = (part.strip() for part in f"{line} | | | ".split("|")[:5])
            named = tuple(ids.split())
            rows.append(Row(place, what, named, call or f'rue.theorems()["{named[0]}"].run()', wrong))
    return found


def sentences(one: rue.Theorem) -> list[str]:
    """What a theorem says about misprints, sentence by sentence."""
    return [part for part in re.split(r"(?<=\.) (?=00\d|[A-Z])", one.misprint) if part]


def misprint(one: Row) -> str:
    """The sentence about a misprint that a row names, from one of its theorems."""
    if not one.wrong:
        return ""
    found = [text for name in one.ids for text in sentences(rue.theorems()[name]) if text.startswith(one.wrong)]
    if not found:
        raise LookupError(f"{one.place}: none of {one.ids} has a misprint that begins with {one.wrong!r}")
    return found[0]


def page() -> str:
    """The page."""
    parts = ["# Your notes, line by line", "", *WORDS.splitlines(), ""]
    parts += ["```python", *BEGINNING.splitlines(), "```", ""]
    for number, (title, rows) in maps().items():
        parts += [
            f"## {number}: {title}",
            "",
            "| in the notes | what it is | run | call | misprint |",
            "|---|---|---|---|---|",
        ]
        for one in rows:
            links = ", ".join(f"[{name}](theorems.md#{name.lower()})" for name in one.ids)
            place, what, wrong = map(_cell, (one.place, one.what, misprint(one)))
            parts.append(f"| {place} | {what} | {links} | `{one.call}` | {wrong} |")
        parts.append("")
    return "\n".join([*parts, *_side_by_side()]) + "\n"


def _side_by_side() -> list[str]:
    """A table with a line for each theorem and a column for each set of notes: where it is there."""
    named = maps()
    lines = ["## The five side by side", "", f"| | {' | '.join(named)} |", "|---" * (1 + len(named)) + "|"]
    for theorem in rue.theorems():
        places = [_cell("; ".join(row.place for row in rows if theorem.id in row.ids)) for _, rows in named.values()]
        if any(places):
            lines.append(f"| [{theorem.id}](theorems.md#{theorem.id.lower()}) | {' | '.join(places)} |")
    return lines


def _cell(text: str) -> str:
    """Fit for a table of Markdown."""
    return re.sub(r"([|*_\\])", r"\\\1", html.escape(text, quote=False))
