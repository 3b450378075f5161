"""One pass of the command line: data in, accounts, predictions, checkpoints and a model out; may stop at any moment."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rue.cli.progress import Progress
from rue.errors import DataError, SettingsError
from rue.model_file import Model, save_model
from rue.passes import Pass
from rue.streams import Block
from rue.streams.data import Data
from rue.streams.files import Place, Read, Spot

__all__ = ["INTERRUPTED", "START", "Every", "Interruptible", "Predictions", "Running", "require_writable"]


INTERRUPTED = "interrupted"
START = Spot(Place(), lambda: "")


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


def require_writable(*paths: str | None) -> None:
    """What cannot be written is told before hours of learning, not after."""
    for path in map(Path, filter(None, paths)):
        folder = path.absolute().parent
        if not folder.is_dir():
            raise DataError(f"{path} cannot be written: there is no folder {path.parent}.")
        if path.is_dir():
            raise DataError(f"{path} cannot be written: it is a folder.")
        if not os.access(folder, os.W_OK):
            raise DataError(f"{path} cannot be written: nothing may be written in {folder}.")


class Predictions:
    """The CSV of predictions: written to OUT.part, and renamed when all is done."""

    def __init__(self, path: str, keep: int | None = None, columns: str = "prediction") -> None:
        self.path, self.part = Path(path), Path(path + ".part")
        self.broken = False
        """Whether writing failed."""
        try:
            if keep is None:
                self.file = open(self.part, "w", encoding="utf-8")  # noqa: SIM115
                self.file.write(f"{columns}\n")
            else:
                if not self.part.exists() and self.path.exists():  # killed between the last step and the end
                    os.replace(self.path, self.part)
                if not self.part.exists() or self.part.stat().st_size < keep:
                    raise DataError(f"{self.part} is not what the checkpoint left: it must hold {keep:,} bytes.")
                os.truncate(self.part, keep)
                self.file = open(self.part, "a", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise DataError(f"{self.part} cannot be written: {error.strerror}.") from None

    def write(self, predictions: Any) -> None:
        if predictions.size:
            self.write_lines(map(repr, predictions.tolist()))

    def write_lines(self, lines: Iterable[str]) -> None:
        with self._told():
            self.file.write("\n".join(lines) + "\n")

    def length(self) -> int:
        """How many bytes are safely on disk."""
        if self.broken:
            return 0
        with self._told():
            self.file.flush()
            os.fsync(self.file.fileno())
            return self.part.stat().st_size

    def flush(self) -> None:
        self.length()

    def finish(self) -> None:
        self.length()
        self.file.close()
        os.replace(self.part, self.path)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """A full disk is an error of the data: what was asked for beside it is still saved."""
        try:
            yield
        except OSError as error:
            self.broken = True
            with contextlib.suppress(OSError):
                self.file.close()
            raise DataError(f"{self.part} cannot be written: {error.strerror}.") from error


class Interruptible:
    """While it lasts, Ctrl-C (and SIGTERM) asks to stop after the current block, even if it was ignored before."""

    def __init__(self, stop: threading.Event) -> None:
        self.stop, self.signals = stop, (signal.SIGINT, signal.SIGTERM)
        self.by: int | None = None

    def __enter__(self) -> Interruptible:
        self.before = [signal.signal(number, self._asked) for number in self.signals]
        return self

    def _asked(self, number: int, frame: Any) -> None:
        self.by = number
        self.stop.set()

    def __exit__(self, *error: object) -> None:
        for number, handler in zip(self.signals, self.before, strict=True):
            signal.signal(number, handler)


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
    spot: Spot = START
    reading: float = 0.0
    """Seconds spent waiting for data."""
    record: Callable[[Block, Any], None] = lambda block, made: None
    """Given each block as it was learnt, and its predictions."""

    def run(self) -> str:
        """Learn everything; "" if all was learnt, else why not: INTERRUPTED, or a sentence about the data."""
        stop = threading.Event()
        self.saved = time.monotonic()
        self.kept = self.going.examples
        why = ""
        with Interruptible(stop) as asked:
            try:
                while self.number <= self.passes and not why and not stop.is_set():
                    why = self._once(stop)
                    if not why and not stop.is_set():
                        self.number, self.spot = self.number + 1, START
            except DataError as error:
                why = str(error)
            if not why and asked.by is not None:
                why = INTERRUPTED
            self.progress.done(self.going)
            return why

    def _once(self, stop: threading.Event) -> str:
        started = time.perf_counter()
        for read in self.data.reads(stop, self.spot.place):
            self.reading += time.perf_counter() - started
            self.progress.tell(self.data.doubts)
            why = self._learn(read)
            if why:
                return why
            self.progress.update(self.going, self.data.share(self.spot.place))
            self._maybe_save()
            if stop.is_set():
                break
            started = time.perf_counter()
        return ""

    def _learn(self, read: Read) -> str:
        """A chunk; why it stops, if it does."""
        if len(read.chunk.block) and read.chunk.block.y is None:
            return f"{read.name} has no labels."
        block, out = self.going.take(read)
        bad = self.going.stopped_by
        self.spot = read.after if bad is None else read.before_line(bad.line)
        self.record(block, out)
        if self.predictions is not None:
            self.predictions.write(out)
        if bad is None:
            return ""
        hint = "" if self.going.stopped is not None else " (--bad skip passes over such lines)"
        return f"{str(read.error(bad)).rstrip('.')}{hint}."

    # Saving.

    def _maybe_save(self) -> None:
        if self.checkpoint is None or self.every is None:
            return
        due = self.every.examples is not None and self.going.examples - self.kept >= self.every.examples
        due |= self.every.seconds is not None and time.monotonic() - self.saved >= self.every.seconds
        if due:
            self.save(self.checkpoint, finished=False)
            self.saved, self.kept = time.monotonic(), self.going.examples

    def save(self, path: str, finished: bool) -> None:
        """The model as it stands; unless it is finished, with the place to go on from."""
        save_model(self.snapshot(finished), path)

    def snapshot(self, finished: bool) -> Model:
        going = self.going
        if going.learner is None or going.evidence is None or going.labels is None:
            raise DataError("nothing was learnt, so there is no model to write.")
        position = None
        if not finished:
            position = {
                "paths": list(self.data.paths),
                "format": self.data.told,
                "separator": self.data.separator,
                "pass": self.number,
                "passes": self.passes,
                "file": self.spot.place.file,
                "offset": self.spot.place.offset,
                "line": self.spot.place.line,
                "heads": self.data.heads(self.spot.place),
                "tail": self.spot.tail(),
                "predictions": None if self.predictions is None else self.predictions.length() or None,
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
