"""One pass of the command line: data in, accounts, predictions, checkpoints and a model out; may stop at any moment."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from rue.cli.progress import Progress
from rue.errors import DataError, SettingsError
from rue.models.file import Model, save_model
from rue.outputs import Output
from rue.runs.passes import Pass
from rue.streams import Block
from rue.streams.chunk import Chunk, Position
from rue.streams.data import Data

__all__ = ["INTERRUPTED", "START", "Every", "Predictions", "Running", "csv_row"]


INTERRUPTED = "interrupted"
START = Position()


@dataclasses.dataclass(frozen=True)
class Every:
    """How often to write a checkpoint: after so many examples, or seconds."""

    examples: int | None = None
    seconds: float | None = None

    @classmethod
    def read(cls, text: str) -> Every:
        """`100000`, or `30s`."""
        try:
            if text.endswith("s"):
                found = cls(seconds=float(text[:-1]))
            else:
                found = cls(examples=int(text.replace("_", "").replace(",", "")))
        except ValueError:
            found = cls()
        if not (found.examples or found.seconds) or (found.examples or 0) < 0 or (found.seconds or 0) < 0:
            raise SettingsError(
                f"--every takes a number of examples, such as 100000, or seconds, such as 30s, not {text!r}."
            )
        return found


class Predictions:
    """The CSV of predictions, which takes its name when all is done; `resumed` as in `Output`."""

    def __init__(
        self, path: str, resumed: tuple[str | None, int] | None = None, columns: Iterable[Any] = ("prediction",)
    ) -> None:
        self.output = Output(path, resumed)
        if resumed is None or self.output.temporary is None:
            try:
                self.write_lines([csv_row(columns)])
            except BaseException:
                self.output.abandon()
                raise

    def write(self, predictions: Any) -> None:
        if predictions.size:
            self.write_lines(map(repr, predictions.tolist()))

    def write_lines(self, lines: Iterable[str]) -> None:
        self.output.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))

    @property
    def broken(self) -> bool:
        """Whether writing failed."""
        return self.output.failed

    def place(self) -> dict[str, Any]:
        """What a checkpoint records: the bytes that are safely on the disk, and the temporary file's name."""
        length = None if self.broken else self.output.length()
        temporary = self.output.temporary
        return {
            "predictions": length,
            "predictions_file": None if temporary is None or length is None else temporary.name,
        }

    def finish(self) -> None:
        self.output.finish()

    def abandon(self) -> None:
        self.output.abandon()


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


@dataclasses.dataclass
class Running:
    """A pass over data, and everything that goes on beside it."""

    data: Data
    going: Pass
    progress: Progress
    passes: int = 1
    predictions: Predictions | None = None
    model: str | None = None
    checkpoint: str | None = None
    every: Every | None = None
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    number: int = 1
    """Which pass it is in."""
    spot: Position = START
    reading: float = 0.0
    """Seconds spent waiting for data."""
    record: Callable[[Block, Any], None] = lambda block, made: None
    """Given each block as it was learnt, and its predictions."""

    def run(self, stop: threading.Event) -> str:
        """Learn everything; "" if all was learnt, else why not: INTERRUPTED, or a sentence about the data."""
        self.saved = time.monotonic()
        self.kept = self.going.examples
        why = ""
        try:
            while self.number <= self.passes and not why and not stop.is_set():
                why = self._once(stop)
                if not why and not stop.is_set():
                    self.number, self.spot = self.number + 1, START
        except DataError as error:
            why = str(error)
        if not why and self.number <= self.passes:
            why = INTERRUPTED
        self.progress.done(self.going)
        return why

    def _once(self, stop: threading.Event) -> str:
        started = time.perf_counter()
        for chunk in self.data.reads(stop, self.spot):
            self.reading += time.perf_counter() - started
            self.progress.tell(self.data.warnings)
            why = self._learn(chunk)
            if why:
                return why
            self.progress.update(self.going, self.data.share(self.spot))
            self._maybe_save()
            if stop.is_set():
                break
            started = time.perf_counter()
        return ""

    def _learn(self, chunk: Chunk) -> str:
        """A chunk; why it stops, if it does."""
        if len(chunk.block) and chunk.block.y is None:
            return f"{chunk.name} has no labels."
        block, out = self.going.take(chunk)
        bad = self.going.stopped_by
        self.spot = chunk.end if bad is None else chunk.before_line(bad.line)
        self.record(block, out)
        if self.predictions is not None:
            self.predictions.write(out)
        if bad is None:
            return ""
        hint = "" if self.going.stopped is not None else " (--bad skip passes over such lines)"
        return f"{str(chunk.error(bad)).rstrip('.')}{hint}."

    # Saving.

    def _maybe_save(self) -> None:
        if self.checkpoint is None or self.every is None:
            return
        due = self.every.examples is not None and self.going.examples - self.kept >= self.every.examples
        due |= self.every.seconds is not None and time.monotonic() - self.saved >= self.every.seconds
        if due:
            self.save_checkpoint()
            self.saved, self.kept = time.monotonic(), self.going.examples

    def save(self, path: str, finished: bool) -> None:
        """The model as it stands; unless it is finished, with the place to go on from."""
        save_model(self.snapshot(finished), path)

    def save_checkpoint(self) -> None:
        """The state; from now on the temporary file of the predictions is left for whoever resumes."""
        assert self.checkpoint is not None
        self.save(self.checkpoint, finished=False)
        if self.predictions is not None:
            self.predictions.output.keep = True

    def snapshot(self, finished: bool) -> Model:
        going = self.going
        if going.learner is None or going.evidence is None or going.labels is None:
            raise DataError("nothing was learnt, so there is no model to write.")
        position = None
        if not finished:
            position = {
                "paths": list(self.data.paths),
                "format": self.data.format_name,
                "separator": self.data.separator,
                "pass": self.number,
                "passes": self.passes,
                "file": self.spot.file,
                "offset": self.spot.offset,
                "line": self.spot.line,
                "heads": self.data.heads(self.spot),
                "tail": self.spot.tail(),
                **({"predictions": None} if self.predictions is None else self.predictions.place()),
            }
        baselines = going.baselines
        counts = {
            "skipped": going.skipped,
            "refused": going.refused,
            "missing": going.missing,
            "baselines": baselines.sums.tolist(),
            "values": baselines.values.tolist(),
            "masses": baselines.masses.tolist(),
            "digits": baselines.digits,
        }
        return Model(
            learner=going.learner,
            evidence=going.evidence,
            labels=going.labels,
            history=self.history,
            features=self.data.describe(),
            names=dict(self.data.names.of),
            counts=counts,
            position=position,
            course=going.course,
        )
