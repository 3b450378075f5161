"""`Format`: what rue must know of a file format. Each format is one file of this folder."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from rue.streams.block import Block, csr_view
from rue.streams.chunk import BadRow, Chunk
from rue.streams.files.cutting import MAX_LINE
from rue.streams.files.parts import byte_ranges, part_of_text
from rue.streams.files.pieces import PIECE
from rue.streams.files.sources import Source
from rue.streams.names import Names
from rue.streams.tables.table import Table
from rue.streams.text.hashing import hash_texts

__all__ = ["Example", "Format", "TableFormat", "TextFormat"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""The byte order mark that some editors write first."""


class Format(abc.ABC):
    """A file format. To add one, put a file into `rue/streams/formats` with a subclass of one of the two kinds:

    - `TextFormat`: a line is an example and contains its own label, as in svmlight; write `example` or `parse`.
    - `TableFormat`: there are named columns, one of which is the target, as in CSV or Parquet; write `open`.

    `@register("format", "name")` above the class gives it the name for `--format` (`format=` in Python). It is then
    found by its suffixes, listed in `--help` and in error messages, parsed ahead by two threads, checkpointed and
    resumed, and its bad rows are reported with file and line. The constructor is called once for a stream, with the
    options that concern formats.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    """What names of such files end in, in lower case: (".csv", ".tsv"). A compression suffix (.gz) may follow."""
    tabular: ClassVar[bool]
    """Whether it has columns, to which --target, --weight, --drop and --category apply."""
    counts_rows: ClassVar[bool] = False
    """Whether a position in it is a number of rows; of text it is a number of bytes."""
    needs_file: ClassVar[str] = ""
    """A sentence for users who send it through a pipe or compressed, if it cannot be read so."""

    decimal: str = "."
    """What numbers in text have before their fraction, if that is an option of the format; set after construction."""
    interact: tuple[str, ...] = ()
    """Namespaces whose features are multiplied, if the format has some; set after construction."""

    def __init__(self, bits: int = 20, separator: str | None = None, max_line: int = MAX_LINE) -> None:
        self.bits, self.separator, self.max_line = bits, separator, max_line

    def parts(self, source: Source, size: int) -> list[tuple[int, int]]:
        """Where parts of a file begin and end that can be read by themselves, of about `size` bytes if it is text.

        They are bytes or, where `counts_rows`, rows; none if a file of this format is only read as a whole.
        """
        return []

    def part(self, source: Source, start: int, stop: int) -> Source | None:
        """One of these parts as a source of its own; None if there is nothing in it."""
        raise NotImplementedError(f"{type(self).__name__} has parts, but no method part.")


class Example(NamedTuple):
    """One line of text as an example."""

    label: float | str
    """A number or a word; NaN if the line has none, as lines to predict may."""
    features: Mapping[int | str, float]
    """Values by the feature's index, a whole number from 0 on, or by its name, which is hashed into 2^bits slots."""
    weight: float = 1.0


class TextFormat(Format):
    """A format whose lines are examples. Write `example`, or `parse` where a line at a time in Python is too slow."""

    tabular = False

    def parts(self, source: Source, size: int) -> list[tuple[int, int]]:
        return byte_ranges(source, size)

    def part(self, source: Source, start: int, stop: int) -> Source | None:
        return part_of_text(source, start, stop)

    def example(self, line: str) -> Example | None:
        """The example in a line, which has no line end; None if it holds none, such as a comment.

        A `ValueError` makes the line a bad row, and its message says what is wrong: `"'x' is no number"`.
        """
        raise NotImplementedError(f"{type(self).__name__} must have a method example, or parse.")

    def parse(self, text: bytes, first_line: int, names: Names | None = None) -> Chunk:
        """The examples of some whole lines, of which the last may lack its end; called by several threads at once.

        `first_line` is the number of the first line, from 1. If `names` are given, the chunk has the names of slots
        that are not among them.
        """
        rows, labels, weights, lines, bad = [], [], [], [], []
        new: dict[int, str] = {}
        if first_line == 1:
            text = text.removeprefix(_BYTE_ORDER_MARK)
        for number, line in enumerate(text.split(b"\n"), first_line):
            if not line.strip():
                continue
            try:
                example = self.example(line.decode().removesuffix("\r"))
                if example is not None:
                    rows.append(self._row(example, new))
                    labels.append(example.label)
                    weights.append(example.weight)
                    lines.append(number)
            except UnicodeDecodeError:
                bad.append(BadRow(len(rows), number, "", "the line is not text in UTF-8"))
            except ValueError as error:
                bad.append(BadRow(len(rows), number, "", str(error) or "the line cannot be read"))
        ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        indices = np.array([index for row in rows for index in row], dtype=np.uint32)
        values = np.array([value for row in rows for value in row.values()], dtype=np.float64)
        X = csr_view(ends, indices, values, int(indices.max()) + 1 if indices.size else 0)
        block = Block(X, np.array(labels), None if set(weights) <= {1.0} else np.array(weights))
        named = () if names is None else tuple((slot, name) for slot, name in new.items() if slot not in names.of)
        return Chunk(block, np.array(lines, dtype=np.int64), tuple(bad), names=named)

    def _row(self, example: Example, new: dict[int, str]) -> dict[int, float]:
        """Values by slot, in order of the slots, those of the same slot added up; refuses what is not finite."""
        row: dict[int, float] = {}
        for name, value in example.features.items():
            slot = name
            if isinstance(name, str):
                text = name.encode()
                slot = int(hash_texts(text, [0, len(text)])[0]) & (1 << self.bits) - 1
                new.setdefault(slot, name)
            if not isinstance(slot, int) or not 0 <= slot < 2**32:
                raise ValueError(f"the index {name!r} is no whole number from 0 on and below 2³²")
            row[slot] = row.get(slot, 0.0) + float(value)
            if not math.isfinite(row[slot]):
                raise ValueError(f"the value of {name!r} is not finite")
        if not (math.isfinite(example.weight) and example.weight >= 0.0):
            raise ValueError(f"the weight {example.weight!r} is not a finite number ≥ 0")
        return dict(sorted(row.items()))


class TableFormat(Format):
    """A format with columns, which become features as for any other table; see `rue.streams.tables.columns`.

    `rue/streams/formats/parquet.py` is the shortest one.
    """

    tabular = True

    @abc.abstractmethod
    def open(self, source: Source, block: int = PIECE) -> Table:
        """The file as a `Table`.

        `source.path` is its path if `source.plain`; `source.open()` gives its bytes, uncompressed, in any case. Where
        pyarrow has a reader, `rue.streams.tables.batches.Batches` makes a table of the record batches that it gives;
        for records in text there is `rue.streams.tables.records.Records`, which reads about `block` bytes at a time.
        """
