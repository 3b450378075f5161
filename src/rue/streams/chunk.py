"""`Chunk`: some consecutive rows of a file, parsed, and where in the file they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from rue.errors import BadExample, DataError
from rue.streams.block import Block

__all__ = ["BadRow", "Chunk", "Position"]


def _no_digest() -> str:
    return ""


@dataclasses.dataclass(frozen=True)
class Position:
    """How far the data have been read: what a checkpoint records, and where reading goes on.

    >>> Position(offset=1200, line=17) == Position(1200, 17, file=0)
    True
    """

    offset: int = 0
    """Bytes of uncompressed text, or rows for Parquet, Arrow and data in memory."""
    line: int = 0
    """Lines, or rows, that come before it."""
    file: int = 0
    """Which of the files, counted from 0."""
    tail: Callable[[], str] = dataclasses.field(default=_no_digest, compare=False, repr=False)
    """Makes a digest of the last MiB before it, by which a later run sees whether the data are still the same."""


@dataclasses.dataclass(frozen=True)
class BadRow:
    """A row that is no example."""

    place: int
    """How many good rows of the chunk come before it; parsers of tables write 0, and `encode` fills it in."""
    line: int
    """Its line in the file (its row, where a format has no lines), counted from 1."""
    column: str
    """The name of the column, or "" where that says nothing."""
    why: str
    """What is wrong, with the offending text, shortened."""
    tag: str = ""
    """Its tag, as in `Chunk.tags`, where it could be read."""


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Some consecutive rows of a file, parsed.

    A parser fills in the examples, their lines and the bad rows; the stream that called it adds the file's name and the
    positions.
    """

    block: Block
    """The good rows; labels as they stand in the data, numbers or words, or None if there are none."""
    lines: Any
    """The line of each good row, counted from 1."""
    bad: tuple[BadRow, ...] = ()
    tags: tuple[str, ...] | None = None
    """What tells the good rows apart: VW's tags, or the column named as the id of a table; "" for a row without one."""
    names: tuple[tuple[int, str], ...] = ()
    """Slot and name of hashed features, if names were asked for: those not known yet when the chunk was parsed.

    The same name may come again, from chunks parsed at the same time; in tables, slots from 2²⁰ on are reported by
    every chunk that uses them. `Names.add` keeps the first.
    """
    missing: Any = None
    """How many values each good row lacks (empty cells, nulls, NaN); None if no row lacks any.

    All 0 where only bad rows lack values. Svmlight and VW always have None.
    """
    unfinished: BadRow | None = None
    """A line above the length limit whose end has not been read yet: a run that stops at bad rows need not wait for it.

    When its end has been read, the same row is in `bad` of a later chunk.
    """
    advice: Any = None
    """What outside experts predict for the good rows, a column for each; None if there are none."""
    name: str = ""
    """The file, as messages call it; "" for data in memory."""
    end: Position = Position()
    """The position after its last row."""
    before_line: Callable[[int], Position] = lambda line: Position(line - 1, line - 1)
    """The position just before one of its lines, from which that line would be read again."""

    @property
    def first_bad(self) -> BadRow | None:
        """The row at which to stop, if bad rows stop the reading."""
        return self.bad[0] if self.bad else self.unfinished

    def split(self, rows: int) -> tuple[Chunk, Chunk]:
        """Its first rows, some but not all, and the others; a bad row goes with the good row before it."""
        first, second = (
            {
                "block": self.block.part(part.start, part.stop),
                "lines": self.lines[part],
                "tags": None if self.tags is None else self.tags[part],
                "missing": None if self.missing is None else self.missing[part],
                "advice": None if self.advice is None else self.advice[part],
            }
            for part in (slice(0, rows), slice(rows, len(self.block)))
        )
        later = [bad for bad in self.bad if bad.place > rows]
        end = self.end if rows >= len(self.block) else self.before_line(int(self.lines[rows]))
        bad_first = tuple(bad for bad in self.bad if bad.place <= rows)
        bad_later = tuple(dataclasses.replace(bad, place=bad.place - rows) for bad in later)
        return (
            dataclasses.replace(self, **first, bad=bad_first, unfinished=None, end=end),
            dataclasses.replace(self, **second, bad=bad_later),
        )

    def error(self, bad: BadRow) -> DataError:
        """The error to raise for a bad row: it names file, line and column; in memory, the row counted from 0.

        It says "line" for Parquet and Arrow files too, where the number is that of the row, counted from 1.
        """
        column = f", column {bad.column}" if bad.column else ""
        if not self.name:
            return BadExample(bad.line - 1, f"{bad.why.rstrip('.')}{column}.")
        return DataError(f"{self.name}, line {bad.line}{column}: {bad.why.rstrip('.')}.")
