"""`rue learn`."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from rue.cli import options as o
from rue.cli.fleets import ByKey, learn_fleet
from rue.cli.folding import columns, say
from rue.cli.interrupts import Interruptible
from rue.cli.predictions import Predictions
from rue.cli.progress import Progress
from rue.cli.resuming import require_same_settings
from rue.cli.running import INTERRUPTED, START, Every, Running, tried
from rue.cli.sharding import Sharding, learn_in_shards
from rue.compiled import compile_seconds
from rue.domains import Ball
from rue.errors import DataError, SettingsError
from rue.fleets import Fleet
from rue.fleets.file import load_any
from rue.learners import Learner
from rue.models.file import Model, load_model
from rue.models.schema import POSITION, require
from rue.outputs import require_not_read
from rue.reports.report import page, report, write_report
from rue.reports.windows import write_windows_csv
from rue.runs.advice import Advice, experts_in, experts_of
from rue.runs.driver import NUMBERS, Driver
from rue.runs.evaluation import Evaluation, evaluate
from rue.runs.holdout import Holdout
from rue.runs.prediction_log import PredictionLog
from rue.runs.resuming import history_entry, resumed_watch
from rue.runs.watching import Watch
from rue.streams.chunk import Position
from rue.streams.data import Data
from rue.streams.formats import find_source

__all__ = ["learn"]


@dataclasses.dataclass(frozen=True)
class Files:
    """What a run goes on from, and what it writes."""

    model: Annotated[str | None, typer.Option(metavar="OUT", help="Write the model.")] = None
    resume: Annotated[str | None, typer.Option(metavar="IN", help="Go on with a model or a checkpoint.")] = None
    checkpoint: Annotated[str | None, typer.Option(metavar="FILE", help="Write the state now and then.")] = None
    every: Annotated[str, typer.Option(help="How often: examples, or seconds such as 30s.")] = "30s"
    predictions: Annotated[
        str | None,
        typer.Option(metavar="OUT.csv", help="Write each row's prediction, made before the row was learnt."),
    ] = None
    report_path: o.ReportPath = None
    plot: Annotated[
        str | None, typer.Option(metavar="OUT.png|.svg", help="Draw risk and certificate (keeps 16 bytes an example).")
    ] = None
    windows: o.WindowsPath = None

    def require(self, others: dict[str, str | None]) -> None:
        """Refuse at the start what could not be written at the end; `others` are outputs that other options name."""
        o.require_outputs({"--model": self.model, "--checkpoint": self.checkpoint, **self._never_read(), **others})

    def require_not_read(self, read: list[str], others: dict[str, str | None]) -> None:
        """Refuse to write over what is read; --model and --checkpoint may overwrite the resumed file."""
        never_read = {**self._never_read(), **others}
        require_not_read({"--model": self.model, "--checkpoint": self.checkpoint, **never_read}, read)
        if self.resume is not None:  # which is already in memory
            require_not_read(never_read, [self.resume])

    def _never_read(self) -> dict[str, str | None]:
        """The outputs that nothing goes on from."""
        return {
            "--predictions": self.predictions,
            "--report": self.report_path,
            "--plot": self.plot,
            "--windows": self.windows,
        }


@dataclasses.dataclass(frozen=True)
class Unlearnt:
    """Examples that are not learnt, on which the finished model is tried."""

    holdout: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE|ROWS",
            help="Do not learn the last rows, a share such as 0.2 or a number of them: predict them with the finished "
            "model and say how well that went.",
        ),
    ] = None
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Predict another file with the finished model and say so too.")
    ] = None


@dataclasses.dataclass(frozen=True)
class Outside(o.Outside):
    """Other models, of which the predictions are known, and a correction of the learner's own."""

    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Correct probabilities of two classes while the stream is learnt: the total is at most ln 2 more than "
            "without, and often less.",
        ),
    ] = False

    def advice(self, own: tuple[str, ...] = (), calibrate: bool = False) -> Advice | None:
        return super().advice(own, calibrate or self.calibrate)


@dataclasses.dataclass(frozen=True)
class Watched:
    """What is watched on the way: how sure predictions are, and whether the loss rises."""

    interval: o.IntervalLevels = None
    side: o.IntervalSide = "both"
    alarm: o.AlarmRounds = None

    def watch(self) -> Watch:
        """The intervals and alarms asked for; bad options are refused."""
        return Watch(o.levels_in(self.interval), self.side, self.alarm)


@o.command(
    epilog="Three to start with: `rue learn sales.csv --target bought --model m.rue`, then "
    "`rue predict m.rue new.csv -o p.csv`, then `rue learn sales.csv --target bought --plot risk.png`."
)
def learn(
    paths: o.DataPaths,
    data: Annotated[
        o.DataOptions,
        "target task positive class_weight bad format bits weight drop category text word_pairs expert_column "
        "cross bins interact id separator decimal day_first month_first max_line",
    ],
    learning: o.LearnerOptions,
    *,
    passes: Annotated[int | None, typer.Option(min=1, help="How often to go over the data; once if not given.")] = None,
    files: Files,
    unlearnt: Unlearnt,
    watched: Watched,
    sharding: Sharding,
    keys: ByKey,
    outside: Outside,
    radius: o.Radius = None,
    quiet: o.Quiet = False,
) -> int:
    """Learn a stream in one pass, with nothing to tune, and say how well it went.

    `rue learn clicks.csv --target clicked --model clicks.rue`

    `rue learn clicks.csv --target clicked --holdout 0.2`

    `rue learn sales.csv --target sold --by shop --model shops.rue --report-by shops.parquet`

    `zcat day.vw.gz | rue learn - --format vw --learner ogd --loss hinge --domain ball:10`
    """
    started = time.monotonic()
    data.require_task()
    files.require(keys.outputs)
    if radius is not None:
        Ball(radius)  # refuses a bad radius
    resumed = load_any(files.resume) if files.resume is not None and sharding.shards is None else None
    given = _given(files, data, learning, unlearnt, watched, sharding, outside, passes)
    if keys.by is not None or isinstance(resumed, Fleet):
        keys.require_possible(given)
        fleet = None if resumed is None else _same_fleet(resumed, files, data, learning, keys)
        return learn_fleet(paths, data, learning, keys, files, sharding.workers, radius, quiet, fleet)
    if keys.report_by is not None:
        raise SettingsError("--report-by is about the models of keys: say --by COLUMN too.")
    sharding.require_shards()
    if sharding.shards is not None:
        sharding.require_possible(given)
        keep = partial(_witnesses, radius)
        return learn_in_shards(paths, data, learning, sharding, files, unlearnt.test, keep, radius, quiet)
    running = _begin(paths, data, learning, passes, files, unlearnt, watched.watch(), outside, radius, quiet)
    driver, before = running.driver, running.driver.examples
    log = None if files.plot is None else PredictionLog()
    if log is not None:
        running.record = partial(log.add, driver)
    try:
        with Interruptible() as asked:  # Ctrl-C is held back until everything is saved
            why = running.run(asked.stop)
            running.history.append(history_entry(driver.examples - before, paths))
            why = _finish(running, why, files.model)
            why, evaluations = _try_out(running, why, data, unlearnt.test, asked.stop)
            why = tried(partial(_finish_predictions, running, bool(files.checkpoint and why)), why)
            spent = time.monotonic() - started
            known: dict[str, Any] = {"columns": running.data.columns, "names": running.data.names.of}
            known["compiling"] = compile_seconds()
            summary = report(driver, radius=radius, total=spent, **known, **evaluations)
            why = tried(partial(write_report, summary, files.report_path), why)
            why = tried(partial(write_windows_csv, summary["windows"], files.windows), why)
            if log is not None and driver.examples:
                why = tried(partial(log.run(driver, running.data).plot, path=files.plot), why)
            interrupted = why == INTERRUPTED
            why = why or _nothing_learnt(running)
            if driver.examples or interrupted:
                stopped = "stopped by Ctrl-C: this is true of what was learnt until then" if interrupted else ""
                say(page(summary, stopped, columns()))
    finally:
        if running.predictions is not None:
            running.predictions.abandon()
    if why and not interrupted:
        raise DataError(why)
    return 130 if interrupted else 0


def _given(
    files: Files,
    data: o.DataOptions,
    learning: o.LearnerOptions,
    unlearnt: Unlearnt,
    watched: Watched,
    sharding: Sharding,
    outside: Outside,
    passes: int | None,
) -> set[str]:
    """The options that have been given, of those that not every way of learning knows."""
    asked = {
        "--shards": sharding.shards is not None,
        "--on": sharding.on != "local",
        "--round": sharding.round_ is not None,
        "--passes": passes not in (None, 1),
        "--predictions": files.predictions is not None,
        "--checkpoint": files.checkpoint is not None,
        "--plot": files.plot is not None,
        "--windows": files.windows is not None,
        "--holdout": unlearnt.holdout is not None,
        "--test": unlearnt.test is not None,
        "--interval": watched.interval is not None,
        "--alarm": watched.alarm is not None,
        "--expert": outside.expert is not None,
        "--calibrate": outside.calibrate,
        "--expert-column": bool(data.expert_column),
        "--class-weight": data.class_weight is not None,
        "--maps": learning.maps,
        "--lags": learning.lags is not None,
        "--bins": data.bins is not None,
        "--id": data.id is not None,
    }
    return {option for option, given in asked.items() if given}


def _same_fleet(
    resumed: Model | Fleet, files: Files, data: o.DataOptions, learning: o.LearnerOptions, keys: ByKey
) -> Fleet:
    """The fleet that is to go on; refuses one model, and options that contradict the fleet."""
    if not isinstance(resumed, Fleet):
        raise SettingsError(f"--by contradicts --resume: {files.resume} holds one model, not one for each key.")
    if keys.by is not None and keys.by != resumed.by:
        raise SettingsError(f"--by {keys.by} contradicts --resume: the keys are in the column {resumed.by}.")
    like = Model(resumed.learner, labels=resumed.labels, features=resumed.features)
    require_same_settings(like, dataclasses.replace(data, id=None), dataclasses.replace(learning, linear=False))
    return resumed


def _begin(
    paths: list[str],
    data: o.DataOptions,
    learning: o.LearnerOptions,
    passes: int | None,
    files: Files,
    unlearnt: Unlearnt,
    watch: Watch,
    outside: Outside,
    radius: float | None,
    quiet: bool,
) -> Running:
    """A run that has not learnt anything yet: from the start, or from where a model or a checkpoint stopped."""
    often = Every.read(files.every)
    position, number, at, history = START, 1, None, list[dict[str, Any]]()
    if files.resume is not None:
        driver, stream, at, history = _resumed(files.resume, paths, data, learning, outside)
        driver.watch = resumed_watch(driver.watch, watch.levels, watch.side, watch.rounds, driver.examples)
        position, number, passes = _position(at, passes)
    else:
        known = {"watch": watch, "advice": outside.advice(data.experts)}
        driver = learning.drive(data, lambda learner: {**known, **_witnesses(radius, learner)})
        stream = data.open(paths)
        # Of a table the report names groups of rows; the words of lines of text are too many for that.
        stored = files.model is not None or files.checkpoint is not None
        stream.naming = stored or watch.levels is not None or stream.tabular
    held = _holdout(stream, unlearnt.holdout, at, files.checkpoint)
    if unlearnt.test is not None and driver.advice is not None and driver.advice.names:
        raise SettingsError("--test has no predictions of the experts in files: leave --test out, or use --holdout.")
    if unlearnt.test is not None:
        source = find_source(unlearnt.test, data.format)
        if not source.piped:  # which can be opened once
            source.open().close()  # fail now if it is unreadable, not when all is learnt
    files.require_not_read([*stream.paths, *filter(None, [unlearnt.test]), *outside.files.values()], {})
    writer = None if files.predictions is None else Predictions(files.predictions, at, driver.labels, driver.watch)
    driver.notes_probabilities = writer is not None
    return Running(
        stream,
        driver,
        Progress(quiet, radius),
        passes or 1,
        writer,
        files.checkpoint,
        often,
        history,
        number,
        position,
        holdout=held,
    )


RADII = (1.0, 10.0, 100.0)
"""Radii of the default witnesses, used when no radius is given."""


def _witnesses(radius: float | None, learner: Learner | None) -> dict[str, Any]:
    """What a pass keeps for the certificate of a mixture (D3)."""
    if learner is not None and not learner.algorithm.proves_more:
        return {}
    return {"units": "largest", "witnesses": RADII if radius is None else radius, "quick": True}


def _holdout(stream: Data, size: float | None, at: dict[str, Any] | None, checkpoint: str | None) -> Holdout | None:
    """The last rows, which are not learnt; a run that is resumed within its data goes on with its own."""
    if at is not None:
        before = at.get("holdout")  # checkpoints of older versions have none
        if size is not None and size != before:
            started = "without one" if before is None else f"with {before:g}"
            raise SettingsError(f"--holdout contradicts --resume: it was started {started}; leave --holdout out.")
        size = before
    if size is None:
        return None
    held = Holdout(stream, size)
    if held.begin is None and checkpoint is not None:
        raise SettingsError(
            "--holdout keeps the last rows of a pipe in memory, where no checkpoint has them: leave --checkpoint out, "
            "or give a file."
        )
    return held


def _try_out(
    running: Running, why: str, data: o.DataOptions, test: str | None, stop: threading.Event
) -> tuple[str, dict[str, Any]]:
    """`_evaluations` of a run that came to its end, and why it did not, or why these could not be had."""
    evaluations: dict[str, Any] = {}
    if not why:
        try:
            evaluations = _evaluations(running, data, test, stop)
        except DataError as error:
            why = str(error)
        if stop.is_set():  # what was evaluated until then is not all of it
            return INTERRUPTED, {}
    return why, evaluations


def _evaluations(
    running: Running, data: o.DataOptions, test: str | None, stop: threading.Event
) -> dict[str, Evaluation]:
    """How the finished model does on the rows held out and on the test file, where these were asked for."""
    driver, asked = running.driver, dict[str, Any]()
    if running.holdout is not None:
        asked["holdout"] = running.held_out(stop), running.write_held_out
    if test is not None:
        asked["test"] = (data.open_like(running.data.describe(), [test]).reads(stop),)
    experts = experts_of(driver.ensemble, driver.advice)
    scored = partial(evaluate, driver.learner, driver.labels or NUMBERS, driver.baselines, experts=experts)
    return {name: scored(chunks, data.bad, driver.class_weights, *record) for name, (chunks, *record) in asked.items()}


def _finish(running: Running, why: str, model: str | None) -> str:
    """Save the model and the checkpoint, if asked for; returns the first error message, or ""."""
    checkpoint = running.checkpoint
    if running.driver.evidence is None:
        data = ", ".join(source.name for source in running.data.sources)
        none = "no example has a label" if running.driver.unlabelled else "there are no examples to learn"
        why = why or f"{none} in {data}."
        model = checkpoint = None
    steps: list[Callable[[], None]] = []
    if model is not None:
        steps.append(partial(running.save, model, not why))
    if checkpoint is not None:
        steps.append(partial(running.save_checkpoint, running.driver))
    for step in steps:
        why = tried(step, why)
    return why


def _nothing_learnt(running: Running) -> str:
    """Why all the examples that were read have left no trace; "" if they have left one."""
    if running.driver.examples:
        return ""
    data, refused = ", ".join(source.name for source in running.data.sources), running.driver.refused
    if not refused and running.driver.unlabelled:
        return f"nothing was learnt from {data}: no example has a label and a weight above 0."
    if not refused:
        return f"nothing was learnt from {data}: every example has weight 0."
    were = "example was" if refused == 1 else "examples were"
    return (
        f"nothing was learnt from {data}: {refused:,} {were} refused, because the prediction, the loss or the step is "
        "not finite, and any other has weight 0: scale the features down."
    )


def _finish_predictions(running: Running, resumable: bool) -> None:
    """Give the file its name, unless whoever resumes the checkpoint goes on with it."""
    predictions = running.predictions
    if predictions is not None and not predictions.broken and not (resumable and predictions.output.keep):
        predictions.finish(running.driver.labels)


def _resumed(
    path: str, paths: list[str], data: o.DataOptions, learning: o.LearnerOptions, outside: Outside
) -> tuple[Driver, Data, dict[str, Any] | None, list[dict[str, Any]]]:
    """A run that goes on where a model or a checkpoint stopped; options must not contradict the model."""
    model = load_model(path)
    require_same_settings(model, data, learning)
    if model.evidence is None or model.labels is None:
        raise DataError(f"{path} holds a learner without its accounts: it cannot be resumed.")
    driver = Driver.resume(
        model.learner,
        model.labels,
        model.evidence,
        course=model.course,
        bad=data.bad,
        ensemble=model.ensemble,
        advice=outside.advice(experts_in(model.features)),
    )
    driver.restore(model.counts)
    driver.metrics, driver.watch, driver.background = model.metrics, model.watch, model.background
    stream = data.open_like(model.features, paths, model.names)
    if "cluster" in (model.position or {}):
        raise SettingsError(f"{path} was stopped within a run over shards: say --shards, as many as it had, to go on.")
    if model.position is not None:
        try:
            older = {"holdout", "rows"}  # which positions of older versions do not have
            require(model.position, POSITION, "position", needed=[name for name in POSITION if name not in older])
        except DataError as error:
            raise DataError(f"{path} is damaged: {error}.") from None
        _require_same(path, model.position, stream)
        driver.rows = int(model.position.get("rows", 0))
    return driver, stream, model.position, list(model.history)


def _position(at: dict[str, Any] | None, passes: int | None) -> tuple[Position, int, int | None]:
    """Where to go on, in which pass, and the number of passes."""
    if at is None:
        return START, 1, passes
    if passes is not None and passes != at["passes"]:
        raise SettingsError(f"--passes contradicts --resume: it was started with {at['passes']}; leave --passes out.")
    position = Position(int(at["offset"]), int(at["line"]), int(at["file"]), lambda: str(at["tail"]))
    return position, int(at["pass"]), int(at["passes"])


def _require_same(path: str, at: dict[str, Any], stream: Data) -> None:
    """Refuse to go on in data that are not those the checkpoint was made on."""
    if list(at["paths"]) != list(stream.paths):
        raise SettingsError(f"{path} was stopped in {', '.join(at['paths'])}: give the same data to go on.")
    if any(source.piped for source in stream.sources):
        return
    position = Position(int(at["offset"]), int(at["line"]), int(at["file"]))
    if stream.heads(position) != list(at["heads"]) or stream.tail_before(position) != at["tail"]:
        raise DataError(f"{path} stopped in other data: what comes before that place has changed since; learn afresh.")
