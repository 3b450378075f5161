"""Files of predictions: CSV, with a line for every row that was read."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.outputs import Output
from rue.runs.driver import LearntPart
from rue.runs.watching import Watch
from rue.streams import Labels
from rue.streams.chunk import BadRow
from rue.streams.labels import class_order, plain

__all__ = ["EMPTY", "Predictions", "as_cells", "csv_row", "every_row", "set_in_words", "with_cells"]

EMPTY = '""'
"""The cell of a row without a prediction: a line that held nothing at all would be passed over by readers of CSV."""
BETWEEN = "|"
"""What stands between the classes of a set."""
SCORES, CLASSES, LONG = "scores", "classes", "long"


def csv_row(fields: Iterable[Any]) -> str:
    """A line of CSV (RFC 4180): a field with a comma, a quote or a line end in it is quoted, and so is an empty one.

    >>> print(csv_row(["plain", "a, b", 'say "x" twice', ""]))
    plain,"a, b","say ""x"" twice",""
    """
    quoted = (
        '"' + text.replace('"', '""') + '"' if not text or set(text) & set(',"\r\n') else text
        for text in map(str, fields)
    )
    return ",".join(quoted)


def as_cells(predictions: Any) -> list[str]:
    """Numbers as cells of CSV, each to its last bit; an empty one for NaN."""
    if np.isnan(predictions).any():
        return [EMPTY if math.isnan(p) else repr(p) for p in predictions.tolist()]
    return list(map(repr, predictions.tolist()))


def every_row(cells: Sequence[str], bad: Sequence[BadRow], of_bad: Sequence[str]) -> list[str]:
    """Cells of good rows and of the bad rows among them, in the order in which they were read.

    >>> every_row(["0.5", "0.25"], [BadRow(1, 3, "", "not a number")], [EMPTY])
    ['0.5', '""', '0.25']
    """
    rows: list[str] = []
    begin = 0
    for row, cell in zip(bad, of_bad, strict=True):
        rows += cells[begin : row.place]
        rows.append(cell)
        begin = row.place
    return [*rows, *cells[begin:]] if begin or rows else list(cells)


def set_in_words(chosen: Sequence[bool], classes: Sequence[Any]) -> str:
    """The classes of a set.

    >>> set_in_words([True, False, True], ["a", "b", "c"])
    'a|c'
    """
    return BETWEEN.join(str(name) for name, inside in zip(classes, chosen, strict=False) if inside)


def with_cells(cells: Sequence[str], watch: Watch, found: Any, labels: Labels | None) -> list[str]:
    """Cells of predictions with those of intervals, or of sets of two classes, after them."""
    columns = watch.columns("regress" if labels is None else labels.task)
    if not columns:
        return list(cells)
    if found is None:
        more = [",".join([EMPTY] * len(columns))] * len(cells)
    elif isinstance(found, tuple):
        numbers = watch.cells(found)
        more = [",".join(row) for row in zip(*(as_cells(column) for column in numbers.T), strict=True)]
    else:
        assert labels is not None
        names = labels.classes or (labels.negative, labels.positive)
        more = [csv_row([set_in_words(row, list(map(plain, names)))]) for row in found.tolist()]
    return [f"{cell},{rest}" for cell, rest in zip(cells, more, strict=True)]


class Predictions:
    """What `rue learn --predictions` writes: for every row read its prediction, made before the row was learnt.

    The columns are the rows' ids, if they have some, and `prediction`, and with intervals `lower` and `upper`, or for
    classes `set`; of more than two classes one for each class,
    with its probability, the classes in order. Which classes there are is known at the end. Until then a line of the
    temporary file has the probabilities of the classes known so far, in the order in which they came, and the row's id
    as JSON; `finish` makes the table of it. What cannot be written anew, such as a pipe, gets `row,class,probability`.

    `resumed` is what an earlier process recorded with `place`.
    """

    def __init__(
        self,
        path: str,
        resumed: dict[str, Any] | None = None,
        labels: Labels | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.watch = watch or Watch()
        """Whose intervals or sets get columns of their own."""
        resumed = resumed or {}
        length = resumed.get("predictions")
        self.layout: str | None = None if length is None else str(resumed.get("predictions_layout", SCORES))
        """How the file is written: SCORES, CLASSES or LONG; None until the task is known."""
        self.id: str | None = resumed.get("predictions_id")
        """What the ids of rows are called; None if they have none."""
        self.rows: int = resumed.get("predictions_rows", 0)
        """How many rows are written."""
        self.waiting: list[str] = []
        """The ids of rows that came before the first label, when there was nothing to predict with."""
        known = self.layout in (None, SCORES, CLASSES) and isinstance(self.id, str | None) and type(self.rows) is int
        if not known:
            raise DataError(f"{path}: the checkpoint does not say how its predictions were written: it is damaged.")
        self._begun = length is not None
        name = resumed.get("predictions_file")
        if self.layout == CLASSES and not Path(os.path.realpath(path)).with_name(str(name)).exists():
            self.output = Output(path)
            self._recover(labels)
        else:
            self.output = Output(path, None if length is None else (name, int(length)))
        if self.output.temporary is None:
            self._begun, self.layout = False, None

    def write(self, part: LearntPart, labels: Labels | None, id_name: str | None) -> None:
        """Add the rows of a part; `id_name` is what their tags are called, None if they have none."""
        bad = part.skipped
        if not self._begun and not self.rows and not self.waiting:
            self.id = id_name
        tags = [""] * len(part.block) if part.chunk.tags is None else part.chunk.tags[: len(part.block)]
        tags = every_row(tags, bad, [row.tag for row in bad])
        if labels is None:
            self.waiting += tags
            return
        self._begin(labels)
        if self.layout == SCORES:
            nothing = ",".join([EMPTY] * (1 + len(self.watch.columns(labels.task))))
            cells = with_cells(as_cells(part.predictions), self.watch, part.found, labels)
            self._write(every_row(cells, bad, [nothing] * len(bad)), tags)
            return
        matrix = part.probabilities
        if matrix is None and len(part.block):
            raise DataError(
                f"--predictions: the probabilities of {len(labels.classes):,} classes for {len(part.block):,} rows "
                "do not fit into memory: leave --predictions out."
            )
        rows = [] if matrix is None else matrix.tolist()
        if self.layout == CLASSES:
            cells = [EMPTY if math.isnan(row[0]) else ",".join(map(repr, row)) for row in rows]
            if part.found is not None:
                bits = ["".join("01"[chosen] for chosen in row) for row in part.found.astype(int).tolist()]
                cells = [cell if cell == EMPTY else f"{cell};{row}" for cell, row in zip(cells, bits, strict=True)]
            self._write(every_row(cells, bad, [EMPTY] * len(bad)), tags)
        else:
            names = [csv_row([name]) for name in labels.classes]
            cells = [
                "\n".join(f"{name},{p!r}{more}" for name, p, more in zip(names, row, marks, strict=True) if p > 0.0)
                for row, marks in zip(rows, self._marks(part), strict=True)
            ]
            self._write(every_row(cells, bad, [""] * len(bad)), tags)

    def _marks(self, part: LearntPart) -> list[list[str]]:
        """For each row and class the cell that says whether the class is in the row's set; "" without sets."""
        if part.found is None:
            return [[""] * row.size for row in part.probabilities] if part.probabilities is not None else []
        return [[",1" if chosen else ",0" for chosen in row] for row in part.found.tolist()]

    def _begin(self, labels: Labels) -> None:
        """Write the header, and the rows that have waited for it."""
        if self._begun:
            return
        self._begun = True
        if labels.task == "multiclass":
            self.layout = LONG if self.output.temporary is None else CLASSES
        else:
            self.layout = SCORES
        if self.layout != CLASSES:
            columns = ["prediction", *self.watch.columns(labels.task)]
            if self.layout == LONG:
                columns = ["row", "class", "probability", *["in set"] * (self.watch.levels is not None)]
            self._put([csv_row(columns if self.id is None else [self.id, *columns])])
        waiting, self.waiting = self.waiting, []
        nothing = ",".join([EMPTY] * (1 + len(self.watch.columns(labels.task)))) if self.layout == SCORES else EMPTY
        self._write([nothing if self.layout != LONG else ""] * len(waiting), waiting)

    def _write(self, cells: list[str], tags: Sequence[str]) -> None:
        """Write rows, whose cells are as the layout has them."""
        if self.layout == LONG:
            lines = list(self._long(cells, tags))
        elif self.id is None:
            lines = cells
        elif self.layout == CLASSES:
            lines = [f"{cell} {json.dumps(tag)}" for cell, tag in zip(cells, tags, strict=True)]
        else:
            lines = [f"{csv_row([tag])},{cell}" for cell, tag in zip(cells, tags, strict=True)]
        self.rows += len(cells)
        self._put(lines)

    def _long(self, cells: list[str], tags: Sequence[str]) -> Iterator[str]:
        """A line for each class of a row, and one for a row without a prediction."""
        for number, (cell, tag) in enumerate(zip(cells, tags, strict=True), self.rows + 1):
            before = f"{number}," if self.id is None else f"{csv_row([tag])},{number},"
            for each in cell.split("\n") if cell else [",".join([EMPTY] * (2 + (self.watch.levels is not None)))]:
                yield before + each

    def _put(self, lines: Sequence[str]) -> None:
        if lines:
            self.output.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))

    @property
    def broken(self) -> bool:
        """Whether writing failed."""
        return self.output.failed

    def place(self) -> dict[str, Any]:
        """What a checkpoint records: how many bytes are safely on the disk, of which file, and what they hold."""
        length = None if self.broken else self.output.length()
        temporary = self.output.temporary
        return {
            "predictions": length,
            "predictions_file": None if temporary is None or length is None else temporary.name,
            "predictions_layout": self.layout,
            "predictions_id": self.id,
            "predictions_rows": self.rows,
        }

    def finish(self, labels: Labels | None) -> None:
        """Give the file its name; of more than two classes, after putting the columns in order."""
        self._begin(labels or Labels("regress"))
        if self.layout != CLASSES:
            self.output.finish()
            return
        assert labels is not None
        assert self.output.temporary is not None
        self.output.length()  # all of it is in the file
        table = Output(self.output.path)
        try:
            with open(self.output.temporary, encoding="utf-8", newline="\n") as lines:
                for line in self._table(lines, labels.classes):
                    table.write(line.encode("utf-8", "backslashreplace"))
            table.finish()
        except BaseException:
            table.abandon()
            raise
        self.output.keep = False
        self.output.abandon()

    def _table(self, lines: Iterable[str], classes: Sequence[Any]) -> Iterator[str]:
        """The lines of the finished table: a class that was not known yet has probability 0."""
        order = class_order(classes)
        sets = self.watch.levels is not None
        head = [*(classes[c] for c in order), *["set"] * sets]
        yield csv_row(head if self.id is None else [self.id, *head]) + "\n"
        nothing = ",".join([EMPTY] * len(head))
        for line in lines:
            cells, _, tag = line[:-1].partition(" ")
            cells, _, bits = cells.partition(";")
            known = cells.split(",")
            known += ["0.0"] * (len(order) - len(known))
            chosen = [csv_row([set_in_words([c < len(bits) and bits[c] == "1" for c in order], head)])] * sets
            shown = nothing if cells == EMPTY else ",".join([*(known[c] for c in order), *chosen])
            yield shown + "\n" if self.id is None else f"{csv_row([json.loads(tag)])},{shown}\n"

    def _recover(self, labels: Labels | None) -> None:
        """Make the temporary file again out of the table that it has become, up to the checkpoint's last row."""
        wanted, self.rows = self.rows, 0
        lost = DataError(f"{self.output.path} is not what the checkpoint left: it must hold {wanted:,} rows at least.")
        try:
            if labels is None:
                raise lost
            with open(self.output.target, encoding="utf-8", newline="") as file:
                table = csv.reader(file)
                head, first = next(table, []), int(self.id is not None)
                names = [head.index(str(name), first) for name in labels.classes if str(name) in head[first:]]
                for row, _ in zip(table, range(wanted), strict=False):
                    cells = [row[place] for place in names]
                    written = ",".join(cells) if all(cells) else EMPTY
                    if self.watch.levels is not None and written != EMPTY:
                        chosen = row[head.index("set", first)].split(BETWEEN)
                        written += ";" + "".join("01"[str(name) in chosen] for name in labels.classes)
                    self._write([written], row[:first])
            if self.rows < wanted:
                raise lost
        except (OSError, ValueError, IndexError, csv.Error):
            self.output.abandon()
            raise lost from None
        except BaseException:
            self.output.abandon()
            raise

    def abandon(self) -> None:
        self.output.abandon()
