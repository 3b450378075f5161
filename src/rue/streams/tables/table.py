"""`Table`: an opened file with columns, whatever its format."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from rue.streams.chunk import Chunk, Position
from rue.streams.files.pieces import Piece
from rue.streams.names import Names
from rue.streams.tables.columns import Columns
from rue.streams.tables.spelling import MISSING, is_text
from rue.streams.tables.suspicious import suspicious

__all__ = ["Table"]


class Table(abc.ABC):
    """A table that is read a piece at a time, from the beginning or from a position in it.

        table = formats()["csv"]().open(find_source("data.csv"))
        columns = plan(table.schema, target="bought")
        for piece in table.pieces():
            chunk = table.chunk(piece, columns)

    Pieces come in order and must be taken by one thread; `chunk` changes nothing and may run in any.
    """

    schema: Any
    """The Arrow schema; of text, as the first piece suggests."""

    @property
    def beginning(self) -> Any:
        """What the beginning of a file settles (columns, kinds), for tables that read a later part of it."""
        return None

    @cached_property
    def first(self) -> dict[str, Any]:
        """The first values of the columns of text and of dates, by which `plan` settles what they are: Arrow arrays of
        at most `FIRST` rows, in which missing values may be left out.
        """
        return {}

    @abc.abstractmethod
    def pieces(self, start: Position | None = None) -> Iterator[Piece]:
        """The rows from the beginning, or after a position that an earlier piece ended at, in another process too."""

    @abc.abstractmethod
    def chunk(self, piece: Piece, columns: Columns, *, labels: bool = True, names: Names | None = None) -> Chunk:
        """The examples of a piece, as `encode` makes them."""

    def tail(self, row: int) -> str:
        """A digest of what comes before a row, where positions count rows; "" if it begins there."""
        return ""

    def suspicious_columns(self) -> list[tuple[str, str]]:
        """Columns that were probably meant otherwise than they are read: their names, and a sentence about each."""
        texts = {name: column.to_pylist() for name, column in self.first.items() if is_text(column.type)}
        present = {
            name: [text for text in some if text is not None and text.strip() not in MISSING]
            for name, some in texts.items()
        }
        return list(suspicious(present, self.stray))

    stray: Callable[[str], str] | None = None
    """Says why a column cannot be read as numbers, in a format whose values have no types."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close the file."""
