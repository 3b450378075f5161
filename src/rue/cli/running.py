"""A run of the command line: files in; predictions, checkpoints and a model out; it may be interrupted any time."""

from __future__ import annotations

import copy
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rue.cli.predictions import Predictions
from rue.cli.progress import Progress
from rue.errors import NO_MEMORY, DataError, SettingsError, shown
from rue.models.file import Model, save_model
from rue.runs.driver import Driver, LearntPart
from rue.runs.holdout import Holdout
from rue.streams import Block
from rue.streams.chunk import Chunk, Position
from rue.streams.data import Data
from rue.streams.labels import FIRST_ROWS

__all__ = ["INTERRUPTED", "START", "Every", "Running", "tried"]


INTERRUPTED = "interrupted"
ONE_CLASS = (
    "all labels so far are of one class, which is learnt as −1; predictions are written, and the class is learnt anew "
    f"should it be +1, when a second one comes, or after {FIRST_ROWS:,} rows; --positive CLASS settles it now."
)
START = Position()


def tried(step: Callable[[], object], why: str) -> str:
    """Take a step: `why` again, or if that says of no error, the message of the one that the step raises.

    So an output that cannot be written, or made in the memory there is, costs no other output.
    """
    try:
        step()
    except DataError as error:
        return str(error) if why in ("", INTERRUPTED) else why
    except MemoryError:
        return NO_MEMORY if why in ("", INTERRUPTED) else why
    return why


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
                every = cls(seconds=float(text[:-1]))
            else:
                every = cls(examples=int(text.replace("_", "").replace(",", "")))
        except ValueError:
            every = cls()
        if not (every.examples or every.seconds) or (every.examples or 0) < 0 or (every.seconds or 0) < 0:
            raise SettingsError(
                f"--every takes a number of examples, such as 100000, or seconds, such as 30s, not {shown(text)}."
            )
        return every


@dataclasses.dataclass
class Running:
    """A driver on its way through files, once or several times, with progress, predictions and checkpoints."""

    data: Data
    driver: Driver
    progress: Progress
    passes: int = 1
    predictions: Predictions | None = None
    checkpoint: str | None = None
    every: Every | None = None
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    number: int = 1
    """Which pass it is in."""
    position: Position = START
    """From where in the data to go on."""
    record: Callable[[Block, Any], None] = lambda block, predictions: None
    """Given each block as it was learnt, and its predictions."""
    holdout: Holdout | None = None
    """The last rows, which are not learnt."""
    warned_of_tags: bool = False
    rehearsal: Driver | None = None
    """Has learnt the rows of a pipe from which it does not follow yet which class is +1, as if no other would come."""

    def run(self, stop: threading.Event) -> str:
        """Learn everything; "" if all was learnt, else why not: INTERRUPTED, or a sentence about the data."""
        self.saved_at, self.saved_examples = time.monotonic(), self.driver.examples
        why = ""
        try:
            while self.number <= self.passes and not why and not stop.is_set():
                why = self._run_pass(stop)
                if not why and not stop.is_set():
                    self.number, self.position = self.number + 1, START
        except DataError as error:
            why = str(error)
        if not why and self.number <= self.passes:
            why = INTERRUPTED
        self.progress.done(self.driver)
        return why

    def _run_pass(self, stop: threading.Event) -> str:
        """One pass over what is left of the data; why it stops, if it does so before their end."""
        for part in self.driver.run(self._reads(stop)):
            self.position = part.position
            self.progress.tell([*self.driver.notes, *self.driver.watch.sentences])
            self.record(part.block, part.predictions)
            if self.predictions is not None:
                self.predictions.write(part, self.driver.labels, self.data.id_name(part.chunk))
                self._warn_of_tags(part.chunk)
            if part.bad is not None:
                # No hint where the learner refused the example: its message says what to do instead.
                hint = "" if self.driver.stopped is not None else " (--bad skip passes over such lines)"
                return f"{str(part.chunk.error(part.bad)).rstrip('.')}{hint}."
            self.progress.update(self.driver, self.data.share(self.position))
            self._maybe_save(self.driver)
            if stop.is_set():
                break
        return ""

    def _warn_of_tags(self, chunk: Chunk) -> None:
        """Say once that there are tags, if they begin too late to have a column."""
        assert self.predictions is not None
        if chunk.tags is not None and self.predictions.id is None and not self.warned_of_tags:
            self.warned_of_tags = True
            self.progress.tell(
                [*self.data.warnings, f"{chunk.name}: tags begin after the first rows: --id tag gives them a column."]
            )

    def _reads(self, stop: threading.Event) -> Iterator[Chunk]:
        """What the driver is to learn; warnings about the data are shown before it is learnt."""
        if self.position == START:
            self.driver.rows = 0
        chunks, advice = self.data.reads(stop, self.position), self.driver.advice
        chunks = chunks if self.holdout is None else self.holdout.training(chunks)
        if advice is not None:
            chunks = advice.attached(chunks, self.driver.rows, whole=self.holdout is None)
        for chunk in chunks:
            self.progress.tell(self.data.warnings)
            if len(chunk.block) and chunk.block.y is None:
                raise DataError(f"{chunk.name} has no labels.")
            yield chunk
            if self.driver.labels is None and self.data.piped:
                self._rehearse(chunk)

    def _rehearse(self, chunk: Chunk) -> None:
        """Learn rows that `settle` holds back, in a copy of the driver, which progress and checkpoints then show.

        The driver itself learns them when it is known which class is +1: a model cannot be turned round exactly.
        """
        self.progress.tell([ONE_CLASS])
        if self.rehearsal is None:
            self.rehearsal = copy.deepcopy(self.driver)
        for part in self.rehearsal.run([chunk]):
            self.position = part.position
        self.progress.update(self.rehearsal, None)
        if self.predictions is None:  # a checkpoint must not count rows whose predictions are not written yet
            self._maybe_save(self.rehearsal)

    def held_out(self, stop: threading.Event) -> Iterator[Chunk]:
        """The rows that are held out, with what outside experts predict for them."""
        assert self.holdout is not None
        chunks, advice = self.holdout.chunks(stop), self.driver.advice
        return chunks if advice is None else advice.attached(chunks, self.driver.rows)

    def write_held_out(self, chunk: Chunk, predictions: Any) -> None:
        """Write what the finished model says of rows that are held out, after those that were learnt."""
        if self.predictions is None:
            return
        scores, probabilities = predictions, None
        if predictions.ndim == 2:  # of more than two classes the first column is that of a class never seen
            scores, probabilities = np.full(len(predictions), np.nan), predictions[:, 1:]
        found, learner = None, self.driver.learner
        if self.driver.watch.intervals is not None and learner is not None:
            found = self.driver.watch.predict(learner.loss, learner.with_last_labels(chunk.block), predictions)
        part = LearntPart(chunk, chunk.block, scores, None, probabilities, found)
        self.predictions.write(part, self.driver.labels, self.data.id_name(chunk))

    # Saving.

    def _maybe_save(self, driver: Driver) -> None:
        """Write a checkpoint of how far a driver has come, if one is due."""
        if self.checkpoint is None or self.every is None or driver.accounts is None:
            return
        examples, seconds = driver.examples - self.saved_examples, time.monotonic() - self.saved_at
        due = self.every.examples is not None and examples >= self.every.examples
        due |= self.every.seconds is not None and seconds >= self.every.seconds
        if due:
            self.save_checkpoint(driver)
            self.saved_at, self.saved_examples = time.monotonic(), driver.examples

    def save(self, path: str, finished: bool) -> None:
        """The model as it stands; unless it is finished, with the place to go on from."""
        save_model(self.snapshot(self.driver, finished), path)

    def save_checkpoint(self, driver: Driver) -> None:
        """Write the checkpoint; from now on the temporary file of predictions is left in place, for `--resume`."""
        assert self.checkpoint is not None
        save_model(self.snapshot(driver, finished=False), self.checkpoint)
        if self.predictions is not None:
            self.predictions.output.keep = True

    def snapshot(self, driver: Driver, finished: bool) -> Model:
        """The model as it stands; consistent only between blocks."""
        if driver.learner is None or driver.evidence is None or driver.labels is None:
            raise DataError("nothing was learnt, so there is no model to write.")
        return Model(
            learner=driver.learner,
            evidence=driver.evidence,
            labels=driver.labels,
            history=self.history,
            features=self.data.describe(),
            names=dict(self.data.names.of),
            counts=driver.counts(),
            position=None if finished else self._position(driver),
            course=driver.course,
            metrics=driver.metrics,
            watch=driver.watch,
            ensemble=driver.ensemble,
            background=driver.background,
        )

    def _position(self, driver: Driver) -> dict[str, Any]:
        """Where `--resume` is to go on, in the data and in the file of predictions."""
        return {
            "paths": list(self.data.paths),
            "format": self.data.format_name,
            "separator": self.data.separator,
            "pass": self.number,
            "passes": self.passes,
            "file": self.position.file,
            "offset": self.position.offset,
            "line": self.position.line,
            "rows": driver.rows,
            "heads": self.data.heads(self.position),
            "tail": self.position.tail(),
            "holdout": None if self.holdout is None else self.holdout.size,
            **({"predictions": None} if self.predictions is None else self.predictions.place()),
        }
