"""`rue learn`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from rue.cli import options as o
from rue.cli.folding import columns, say
from rue.cli.interrupts import Interruptible
from rue.cli.predictions import Predictions
from rue.cli.progress import Progress
from rue.cli.running import INTERRUPTED, START, Every, Running
from rue.domains import Ball
from rue.errors import DataError, SettingsError
from rue.learners import Learner
from rue.learners.mixture.mixture import Pooled
from rue.models.file import load_model
from rue.models.schema import POSITION, require
from rue.outputs import require_distinct, require_not_read, require_writable
from rue.pictures.figures import require_picture
from rue.reports.report import page, report, write_report
from rue.runs.class_weights import ClassWeights
from rue.runs.driver import NUMBERS, Driver
from rue.runs.evaluation import Evaluation
from rue.runs.holdout import Holdout
from rue.runs.learn import PredictionLog, evaluate
from rue.runs.resuming import history_entry
from rue.streams.chunk import Position
from rue.streams.data import Data
from rue.streams.formats import find_source
from rue.streams.labels import is_called

__all__ = ["learn"]


@o.command(
    epilog="Three to start with: `rue learn sales.csv --target bought --model m.rue`, then "
    "`rue predict m.rue new.csv -o p.csv`, then `rue learn sales.csv --target bought --plot risk.png`."
)
def learn(
    paths: o.DataPaths,
    data: Annotated[
        o.DataOptions,
        "target task positive class_weight bad format bits weight drop category text id separator decimal day_first "
        "month_first max_line",
    ],
    learning: o.LearnerOptions,
    passes: Annotated[int | None, typer.Option(min=1, help="How often to go over the data; once if not given.")] = None,
    model: Annotated[str | None, typer.Option(metavar="OUT", help="Write the model.")] = None,
    resume: Annotated[str | None, typer.Option(metavar="IN", help="Go on with a model or a checkpoint.")] = None,
    checkpoint: Annotated[str | None, typer.Option(metavar="FILE", help="Write the state now and then.")] = None,
    every: Annotated[str, typer.Option(help="How often: examples, or seconds such as 30s.")] = "30s",
    predictions: Annotated[
        str | None,
        typer.Option(metavar="OUT.csv", help="Write each row's prediction, made before the row was learnt."),
    ] = None,
    report_path: o.ReportPath = None,
    plot: Annotated[
        str | None, typer.Option(metavar="OUT.png|.svg", help="Draw risk and certificate (keeps 16 bytes an example).")
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE|ROWS",
            help="Do not learn the last rows, a share such as 0.2 or a number of them: predict them with the finished "
            "model and say how well that went.",
        ),
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Predict another file with the finished model and say so too.")
    ] = None,
    radius: o.Radius = None,
    quiet: o.Quiet = False,
) -> int:
    """Learn a stream in one pass, with nothing to tune, and say how well it went.

    `rue learn clicks.csv --target clicked --model clicks.rue`

    `rue learn clicks.csv --target clicked --holdout 0.2`

    `zcat day.vw.gz | rue learn - --format vw --learner ogd --loss hinge --domain ball:10`
    """
    started = time.monotonic()
    data.require_task()
    outputs = {
        "--model": model,
        "--checkpoint": checkpoint,
        "--predictions": predictions,
        "--report": report_path,
        "--plot": plot,
    }
    require_writable(*outputs.values())
    require_distinct(outputs)
    if plot is not None:
        require_picture(plot)
    if radius is not None:
        Ball(radius)  # refuses a bad radius
    often = Every.read(every)
    if resume is not None:
        driver, stream, at, history = _resumed(resume, paths, data, learning)
        position, number, passes = _position(at, passes)
    else:
        learner, task = learning.make()
        driver = Driver(
            learner,
            task=task if task != "auto" else data.task,
            bad=data.bad,
            intercept=learning.intercept,
            budget=learning.budget,
            positive=data.positive,
            class_weight=data.class_weight,
            **_witnesses(learner, radius),
        )
        stream = data.open(paths)
        stream.naming = model is not None or checkpoint is not None
        position, number, at, history = START, 1, None, []
    held = _holdout(stream, holdout, None if resume is None else at, checkpoint)
    if test is not None:
        find_source(test, data.format).open().close()  # fail now if it is unreadable, not when all is learnt
    require_not_read(outputs, stream.paths if test is None else [*stream.paths, test])
    if resume is not None:  # --model and --checkpoint may overwrite the resumed file, which is already in memory
        require_not_read({"--predictions": predictions, "--report": report_path, "--plot": plot}, [resume])
    before = driver.examples
    log = PredictionLog()
    writer = None if predictions is None else Predictions(predictions, at, driver.labels)
    driver.notes_probabilities = writer is not None
    running = Running(
        stream,
        driver,
        Progress(quiet, radius),
        passes or 1,
        writer,
        checkpoint,
        often,
        history,
        number,
        position,
        holdout=held,
    )
    if plot is not None:
        running.record = lambda block, predictions: log.add(driver, block, predictions)
    try:
        with Interruptible() as asked:  # Ctrl-C is held back until everything is saved
            why = running.run(asked.stop)
            history.append(history_entry(driver.examples - before, paths))
            why = _finish(running, why, model, checkpoint)
            evaluations: dict[str, Any] = {}
            if not why:
                try:
                    evaluations |= _evaluations(running, data, test, asked.stop)
                except DataError as error:
                    why = str(error)
                if asked.stop.is_set():  # what was evaluated until then is not all of it
                    evaluations, why = {}, INTERRUPTED
            why = _tried(partial(_finish_predictions, running, bool(checkpoint and why)), why)
            spent = time.monotonic() - started
            summary = report(driver, radius=radius, total=spent, columns=stream.columns, **evaluations)
            write_report(summary, report_path)
            if plot is not None and driver.examples:
                log.run(driver, stream).plot(path=plot)
            interrupted = why == INTERRUPTED
            why = why or _nothing_learnt(running)
            if driver.examples or interrupted:
                stopped = "stopped by Ctrl-C: this is true of what was learnt until then" if interrupted else ""
                say(page(summary, stopped, columns()))
    finally:
        if writer is not None:
            writer.abandon()
    if why and not interrupted:
        raise DataError(why)
    return 130 if interrupted else 0


RADII = (1.0, 10.0, 100.0)
"""Radii of the default witnesses, used when no radius is given."""


def _witnesses(learner: Learner | None, radius: float | None) -> dict[str, Any]:
    """What a pass keeps for the certificate of a mixture (D3)."""
    if learner is not None and not isinstance(learner.algorithm, Pooled):
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


def _evaluations(
    running: Running, data: o.DataOptions, test: str | None, stop: threading.Event
) -> dict[str, Evaluation]:
    """How the finished model does on the rows held out and on the test file, where these were asked for."""
    driver, asked = running.driver, dict[str, Any]()
    if running.holdout is not None:
        asked["holdout"] = running.holdout.chunks(stop), running.write_held_out
    if test is not None:
        asked["test"] = (data.open_like(running.data.describe(), [test]).reads(stop),)
    return {
        name: evaluate(
            driver.learner, driver.labels or NUMBERS, driver.baselines, chunks, data.bad, driver.class_weights, *record
        )
        for name, (chunks, *record) in asked.items()
    }


def _finish(running: Running, why: str, model: str | None, checkpoint: str | None) -> str:
    """Save the model and the checkpoint, if asked for; returns the first error message, or ""."""
    if running.driver.evidence is None:
        data = ", ".join(source.name for source in running.data.sources)
        none = "no example has a label" if running.driver.unlabelled else "there are no examples to learn"
        why = why or f"{none} in {data}."
        model = checkpoint = None
    steps: list[Callable[[], None]] = []
    if model is not None:
        steps.append(partial(running.save, model, not why))
    if checkpoint is not None:
        steps.append(running.save_checkpoint)
    for step in steps:
        why = _tried(step, why)
    return why


def _tried(step: Callable[[], None], why: str) -> str:
    """Take a step: `why` again, or if that says of no error, the message of the one that the step raises."""
    try:
        step()
    except DataError as error:
        return str(error) if why in ("", INTERRUPTED) else why
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


FREE = ("--format", "--separator", "--max-line", "--bad")
"""Options that may be given with --resume: the model does not decide them."""


def _resumed(
    path: str, paths: list[str], data: o.DataOptions, learning: o.LearnerOptions
) -> tuple[Driver, Data, dict[str, Any] | None, list[dict[str, Any]]]:
    """A run that goes on where a model or a checkpoint stopped; options must not contradict the model."""
    model = load_model(path)
    columns = model.features.get("columns") or {}
    same = {
        "--target": columns.get("target"),
        "--weight": columns.get("weight"),
        "--id": columns.get("id") if columns else data.id,  # of VW text it is the tag
        "--bits": model.features.get("bits", columns.get("bits", 20)),  # text has bits but no columns
        "--decimal": columns.get("decimal"),
        "--day-first": columns.get("order") == "day-first",
        "--month-first": columns.get("order") == "month-first",
    }
    class_weights = ClassWeights.from_json(model.counts.get("class_weight"))
    if model.labels is not None and data.positive is not None and is_called(model.labels.positive, data.positive):
        same["--positive"] = data.positive
    if (given := ClassWeights.make(data.class_weight)) is not None and class_weights is not None:
        same["--class-weight"] = data.class_weight if given.rule == class_weights.rule else None
    for name, value in (o.changed(learning) | o.changed(data)).items():
        if name not in FREE and value != same.get(name):
            raise SettingsError(f"{name} contradicts --resume: the model has its settings; leave {name} out.")
    if model.evidence is None or model.labels is None:
        raise DataError(f"{path} holds a learner without its accounts: it cannot be resumed.")
    driver = Driver.resume(model.learner, model.labels, model.evidence, course=model.course, bad=data.bad)
    driver.restore(model.counts)
    driver.metrics = model.metrics
    stream = data.open_like(model.features, paths, model.names)
    if model.position is not None:
        try:
            older = {"holdout"}  # which positions of older versions do not have
            require(model.position, POSITION, "position", needed=[name for name in POSITION if name not in older])
        except DataError as error:
            raise DataError(f"{path} is damaged: {error}.") from None
        _require_same(path, model.position, stream)
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
