"""`rue learn --by`, and what `rue predict` and `rue inspect` do with a model for every key."""

from __future__ import annotations

import dataclasses
import threading
import time
from functools import partial
from typing import Annotated, Any

import typer

from rue.cli import options as o
from rue.cli.folding import say
from rue.cli.interrupts import Interruptible
from rue.cli.predictions import EMPTY, Predictions, as_cells, csv_row, every_row
from rue.cli.progress import Lines
from rue.cli.running import tried
from rue.compiled import compile_seconds
from rue.errors import DataError, SettingsError, shown
from rue.fleets import Fleet
from rue.fleets.fleet import FleetPass, keys_of
from rue.ledger import EXAMPLES
from rue.models.file import Model
from rue.reports.fleets import describe_fleet, fleet_page, report_of_fleet, require_table, write_table
from rue.reports.inspection import describe
from rue.reports.report import write_report
from rue.runs.baselines import Baselines
from rue.runs.evaluation import Evaluation
from rue.runs.resuming import history_entry
from rue.streams.data import Data
from rue.streams.labels import plain

__all__ = ["ByKey", "FleetPredictor", "inspect_fleet", "learn_fleet"]

NOT_BY_KEY = (
    "--shards",
    "--on",
    "--round",
    "--passes",
    "--checkpoint",
    "--plot",
    "--windows",
    "--holdout",
    "--test",
    "--interval",
    "--alarm",
    "--expert",
    "--calibrate",
    "--expert-column",
    "--class-weight",
    "--maps",
    "--lags",
    "--bins",
    "--id",
)
"""The options of one model that a model for every key does not have."""


@dataclasses.dataclass(frozen=True)
class ByKey:
    """A model for every key."""

    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Learn a model for every value of this column: every shop, every sensor. What each learns depends on "
            "its own rows alone.",
        ),
    ] = None
    report_by: Annotated[
        str | None,
        typer.Option(
            "--report-by",
            metavar="OUT.parquet|.csv",
            help="With --by: write a row for each key, with its examples, risk and certificate.",
        ),
    ] = None

    @property
    def outputs(self) -> dict[str, str | None]:
        """What is written, by option."""
        return {"--report-by": self.report_by}

    def require_possible(self, given: set[str]) -> None:
        """Refuse options that a model for every key does not know."""
        if others := [option for option in NOT_BY_KEY if option in given]:
            raise SettingsError(f"{others[0]} does not go together with --by: leave it out, or learn one model.")


class _Progress:
    """Shows how many rows have been read, the number of keys, and the risk."""

    def __init__(self, quiet: bool) -> None:
        self.lines, self.rows = Lines(quiet), 0

    def update(self, fleet: Fleet | None, rows: int, share: float | None) -> None:
        """After some more rows; `share` is how much of the data has been read, if that is known."""
        self.rows += rows
        if self.lines.quiet or fleet is None:
            return
        if self.lines.due:
            self.lines.rewrite(lambda: self._now(fleet, share))
        elif not self.lines.live and self.lines.doubled(self.rows):
            self._row(fleet)

    def _now(self, fleet: Fleet, share: float | None) -> str:
        """The line on a terminal."""
        left = f"  {share:.0%}, {self.lines.seconds * (1 / share - 1):.0f} s left" if share else ""
        return f"{self.rows:,} rows  {len(fleet):,} keys  risk {fleet.risk:.5f}{left}"

    def _row(self, fleet: Fleet) -> None:
        row = f"{self.rows:>12,} {len(fleet):>11,} {fleet.risk:>11.6g} {self.lines.seconds:>8.1f}"
        self.lines.row(f"{'rows':>12} {'keys':>11} {'risk':>11} {'seconds':>8}", row)

    def done(self, fleet: Fleet | None) -> None:
        """The last row."""
        if self.lines.quiet or fleet is None:
            return
        self.lines.clear()
        if not self.lines.live:
            self._row(fleet)

    def tell(self, sentences: list[str]) -> None:
        """Warnings about the data."""
        self.lines.tell(sentences)


def learn_fleet(
    paths: list[str],
    data: o.DataOptions,
    options: o.LearnerOptions,
    keys: ByKey,
    files: Any,
    workers: int | None,
    radius: float | None,
    quiet: bool,
    resumed: Fleet | None = None,
) -> int:
    """`rue learn --by`, or on with a fleet that was learnt before."""
    started = time.monotonic()
    require_table(keys.report_by)
    if resumed is None:
        learning, stream = _begun(paths, data, options, keys, files.model is not None, workers or 1)
    else:
        stream = data.open_like(resumed.features, paths, resumed.names)
        learning = FleetPass.resume(resumed, data.bad, None, workers or 1)
    files.require_not_read(list(stream.paths), keys.outputs)
    before = 0 if resumed is None else resumed.examples
    progress, writer = _Progress(quiet), None if files.predictions is None else Predictions(files.predictions)
    try:
        with Interruptible() as asked:  # Ctrl-C is held back until everything is saved
            why = _learn_parts(learning, stream, asked.stop, progress, writer)
            interrupted = asked.stop.is_set() and not why
            progress.done(learning.fleet)
            fleet = learning.fleet
            if fleet is not None:
                fleet.features, fleet.names = stream.describe(), dict(stream.names.of)
                fleet.notes = [*learning.driver.notes, *stream.warnings]
                fleet.history.append(history_entry(fleet.examples - before, paths))
                why = _write(fleet, files, keys, radius, time.monotonic() - started, interrupted, why)
            if writer is not None and not writer.broken:
                why = tried(partial(writer.finish, learning.driver.labels), why)
    finally:
        if writer is not None:
            writer.abandon()
    if fleet is None or not len(fleet):
        why = why or _nothing(learning, stream)
    if why:
        raise DataError(why)
    return 130 if interrupted else 0


def _begun(
    paths: list[str], data: o.DataOptions, options: o.LearnerOptions, keys: ByKey, naming: bool, workers: int
) -> tuple[FleetPass, Data]:
    """A fleet that has learnt nothing yet, and the data it is to learn."""
    if data.target == keys.by:
        raise SettingsError(
            f"--by and --target both name {keys.by}: the label of a row cannot say which model it is of."
        )
    if options.learner is None:
        options = dataclasses.replace(options, linear=True)
    driver = options.drive(data)
    try:
        stream = dataclasses.replace(data, id=keys.by).open(paths)
    except SettingsError as error:  # the keys are read as ids are
        raise SettingsError(str(error).replace("--id", "--by")) from None
    stream.naming = naming
    return FleetPass(driver, keys.by, None, workers), stream


def _learn_parts(
    learning: FleetPass, stream: Data, stop: threading.Event, progress: _Progress, writer: Predictions | None
) -> str:
    """Learn what there is, until `stop`; why it ended before that, if the data are the reason."""
    try:
        for part in learning.run(stream.reads(stop)):
            progress.tell([*learning.driver.notes, *stream.warnings])
            if writer is not None:
                writer.write(part, learning.driver.labels, stream.id_name(part.chunk))
            if part.bad is not None:
                hint = "" if part.chunk.first_bad is None else " (--bad skip passes over such lines)"
                return f"{str(part.chunk.error(part.bad)).rstrip('.')}{hint}."
            progress.update(learning.fleet, len(part.predictions), stream.share(part.position))
            if stop.is_set():
                break
    except DataError as error:
        return str(error).replace("there is no id column", "there is no column for --by:")
    return ""


def _write(
    fleet: Fleet, files: Any, keys: ByKey, radius: float | None, seconds: float, interrupted: bool, why: str
) -> str:
    """The model, the reports, and the page for people; `why` the run failed, or what of these cannot be written."""
    if files.model is not None and len(fleet):
        why = tried(partial(fleet.save, files.model), why)
    summary = report_of_fleet(fleet, radius, seconds, compile_seconds()).fields
    why = tried(partial(write_report, summary, files.report_path), why)
    why = tried(partial(write_table, fleet, keys.report_by, radius), why)
    if len(fleet):
        stopped = "stopped by Ctrl-C: this is true of what was learnt until then" if interrupted else ""
        say(fleet_page(summary, stopped))
    return why


def _nothing(learning: FleetPass, stream: Data) -> str:
    """Why nothing was learnt."""
    data = ", ".join(source.name for source in stream.sources)
    if learning.counts["keyless"]:
        return f"nothing was learnt from {data}: no row has a key in the column {shown(learning.by)}."
    if learning.counts["unlabelled"]:
        return f"nothing was learnt from {data}: no example has a label."
    return f"there are no examples to learn in {data}."


class FleetPredictor:
    """Predictions of a fleet, chunk by chunk, as cells of CSV, and how well they do where there are labels."""

    def __init__(self, fleet: Fleet, reading: str) -> None:
        self.fleet, self.reading = fleet, reading
        self.evaluation = Evaluation(fleet.learner.loss, fleet.labels, Baselines())
        self.unknown, self.keyless = 0, 0
        self.new: set[str] = set()

    @property
    def head(self) -> str:
        """What the column of predictions is called."""
        labels = self.fleet.labels
        of_class = self.reading == "probability" and labels.task == "classify"
        return f"probability of {plain(labels.positive)}" if of_class else "prediction"

    def rows(self, chunk: Any) -> list[str]:
        """The cells of the rows of a chunk; an empty one where there is no prediction."""
        self.evaluation.skipped += len(chunk.bad)
        cells: list[str] = []
        if len(chunk.block):
            texts = keys_of(chunk, None, self.fleet.by)
            keys = self.fleet.keys.of(texts)
            scores, unknown = self.fleet.predict_block(chunk.block, keys)
            self.unknown += unknown
            self.keyless += int((keys == -1).sum())
            if len(self.new) < 1_000_000:
                self.new.update(text for text, key in zip(texts, keys.tolist(), strict=True) if key == -2)
            there = scores == scores
            self.evaluation.enter(chunk.block if there.all() else chunk.block.where(there), scores[there])
            cells = self._cells(scores)
        tags = every_row(chunk.tags or (), chunk.bad, [row.tag for row in chunk.bad])
        cells = every_row(cells, chunk.bad, [EMPTY] * len(chunk.bad))
        return [f"{csv_row([tag])},{cell}" for tag, cell in zip(tags, cells, strict=True)]

    def _cells(self, scores: Any) -> list[str]:
        if self.reading == "score":
            return as_cells(scores)
        there = scores == scores
        found = self.fleet.read_as(scores, self.reading)
        if self.reading == "label":
            return [
                csv_row([plain(name)]) if known else EMPTY for name, known in zip(found.tolist(), there, strict=True)
            ]
        return as_cells(found)

    def notes(self) -> list[str]:
        """What to say about keys when all rows have been predicted."""
        notes = []
        if self.unknown:
            rows, keys = self.unknown, len(self.new)
            notes.append(
                f"{rows:,} row{'s' * (rows != 1)} of {keys:,} key{'s' * (keys != 1)} that the model does not know, "
                f"such as {shown(min(self.new))}: predicted as by a learner that has learnt nothing, 0."
            )
        if self.keyless:
            notes.append(f"{self.keyless:,} row{'s' * (self.keyless != 1)} without a key: not predicted.")
        return notes


def inspect_fleet(fleet: Fleet, key: str | None, most: int) -> None:
    """Print what a fleet is, or one of its models."""
    if key is None:
        say(describe_fleet(fleet))
        return
    run = fleet.run(key)
    model = Model(
        run.learner,
        run.evidence,
        run.labels,
        run.history,
        run.features,
        run.names,
        run.counts,
    )
    examples = int(run.evidence.ledger.sums[EXAMPLES])
    risk = f"mean loss {run.risk:.6g} before each update" if examples else "no example with a weight"
    say(f"key {key}: {examples:,} example{'s' * (examples != 1)}, {risk}\n{describe(model, most)}")
