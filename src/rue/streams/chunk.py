"""What reading a file gives: chunks of examples that know their lines."""

from __future__ import annotations

import dataclasses
from typing import Any

from rue.streams.block import Block

__all__ = ["BadRow", "Chunk"]


@dataclasses.dataclass(frozen=True)
class BadRow:
    """A row that is no example."""

    place: int
    """How many good rows of the chunk come before it."""
    line: int
    """Its line in the file (its row, where a format has no lines), counted from 1."""
    column: str
    """The name of the column, or "" where that says nothing."""
    why: str
    """What is wrong, with the offending text, shortened."""


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Some consecutive rows of a file."""

    block: Block
    """The good rows; labels as found, numbers or words, or None if there are none."""
    lines: Any
    """The line of each good row."""
    bad: tuple[BadRow, ...] = ()
    tags: tuple[str, ...] | None = None
    """VW's tags, one a good row."""
    names: tuple[tuple[int, str], ...] = ()
    """Features met for the first time in this chunk and what they are called, as far as asked for."""
    missing: Any = None
    """How many values each good row lacks (empty cells, nulls, NaN); None if no row lacks any."""
    unfinished: BadRow | None = None
    """A line that has passed the limit before its end has come: the same row is in `bad` of a later chunk."""

    @property
    def first_bad(self) -> BadRow | None:
        """The row at which to stop, if bad rows stop the reading."""
        return self.bad[0] if self.bad else self.unfinished
