"""`rue learn`."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer

from rue.cli import options as o
from rue.cli.folding import columns, say
from rue.cli.interrupts import Interruptible
from rue.cli.progress import Progress
from rue.cli.running import INTERRUPTED, START, Every, Predictions, Running
from rue.domains import Ball
from rue.errors import DataError, SettingsError
from rue.learners import Learner
from rue.learners.mixture.mixture import Pooled
from rue.models.file import history_entry, load_model
from rue.models.schema import POSITION, require
from rue.outputs import require_apart, require_not_read, require_writable
from rue.pictures.figures import require_picture
from rue.reports.report import page, report, write_report
from rue.runs.baselines import Baselines
from rue.runs.driver import Driver
from rue.runs.learn import PredictionLog
from rue.streams.chunk import Position
from rue.streams.data import Data

__all__ = ["learn"]


@o.command(
    epilog="Three to start with: `rue learn sales.csv --target bought --model m.rue`, then "
    "`rue predict m.rue new.csv -o p.csv`, then `rue learn sales.csv --target bought --plot risk.png`."
)
def learn(
    paths: o.DataPaths,
    data: Annotated[
        o.DataOptions,
        "target task bad format bits weight drop category text separator decimal day_first month_first max_line",
    ],
    learning: o.LearnerOptions,
    passes: Annotated[int | None, typer.Option(min=1, help="How often to go over the data; once if not given.")] = None,
    model: Annotated[str | None, typer.Option(metavar="OUT", help="Write the model.")] = None,
    resume: Annotated[str | None, typer.Option(metavar="IN", help="Go on with a model or a checkpoint.")] = None,
    checkpoint: Annotated[str | None, typer.Option(metavar="FILE", help="Write the state now and then.")] = None,
    every: Annotated[str, typer.Option(help="How often: examples, or seconds such as 30s.")] = "30s",
    predictions: Annotated[
        str | None, typer.Option(metavar="OUT.csv", help="Write each prediction, made before its example was learnt.")
    ] = None,
    report_path: o.ReportPath = None,
    plot: Annotated[
        str | None, typer.Option(metavar="OUT.png|.svg", help="Draw risk and certificate (keeps 16 bytes an example).")
    ] = None,
    radius: o.Radius = None,
    quiet: o.Quiet = False,
) -> int:
    """Learn a stream in one pass, with nothing to tune, and say how well it went.

    `rue learn clicks.csv --target clicked --model clicks.rue`

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
    require_apart(outputs)
    if plot is not None:
        require_picture(plot)
    if radius is not None:
        Ball(radius)  # refuses a bad radius
    often = Every.read(every)
    if resume is not None:
        driver, stream, at, history = _resumed(resume, paths, data, learning)
        position, number, written, passes = _position(at, passes)
    else:
        learner, task = learning.make()
        driver = Driver(
            learner,
            task=task if task != "auto" else data.task,
            bad=data.bad,
            intercept=learning.intercept,
            budget=learning.budget,
            **_witnesses(learner, radius),
        )
        stream = data.open(paths)
        stream.naming = model is not None or checkpoint is not None
        position, number, written, history = START, 1, None, []
    require_not_read(outputs, stream.paths)
    if resume is not None:  # --model and --checkpoint may overwrite the resumed file, which is already in memory
        require_not_read({"--predictions": predictions, "--report": report_path, "--plot": plot}, [resume])
    before = driver.examples
    log = PredictionLog()
    writer = None if predictions is None else Predictions(predictions, written)
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
    )
    if plot is not None:
        running.record = lambda block, predictions: log.add(driver, block, predictions)
    try:
        with Interruptible() as asked:  # Ctrl-C is held back until everything is saved
            why = running.run(asked.stop)
            history.append(history_entry(driver.examples - before, paths))
            why = _finish(running, why, model, checkpoint)
            summary = report(driver, radius=radius, total=time.monotonic() - started, columns=stream.columns)
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


def _finish(running: Running, why: str, model: str | None, checkpoint: str | None) -> str:
    """Save all that was asked for; returns the first error message, or ""."""
    if running.driver.evidence is None:
        data = ", ".join(source.name for source in running.data.sources)
        why = why or f"there are no examples to learn in {data}."
        model = checkpoint = None
    steps: list[Callable[[], None]] = []
    if model is not None:
        steps.append(partial(running.save, model, not why))
    if checkpoint is not None:
        steps.append(running.save_checkpoint)
    steps.append(partial(_finish_predictions, running.predictions, bool(checkpoint and why)))
    for step in steps:
        try:
            step()
        except DataError as error:
            why = str(error) if why in ("", INTERRUPTED) else why
    return why


def _nothing_learnt(running: Running) -> str:
    """Why all the examples that were read have left no trace; "" if they have left one."""
    if running.driver.examples:
        return ""
    data, refused = ", ".join(source.name for source in running.data.sources), running.driver.refused
    if not refused:
        return f"nothing was learnt from {data}: every example has weight 0."
    were = "example was" if refused == 1 else "examples were"
    return (
        f"nothing was learnt from {data}: {refused:,} {were} refused, because the prediction, the loss or the step is "
        "not finite, and any other has weight 0: scale the features down."
    )


def _finish_predictions(predictions: Predictions | None, resumable: bool) -> None:
    """Give the file its name, unless whoever resumes the checkpoint goes on with it."""
    if predictions is not None and not predictions.broken and not (resumable and predictions.output.keep):
        predictions.finish()


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
        "--bits": model.features.get("bits", columns.get("bits", 20)),  # text has bits but no columns
        "--decimal": columns.get("decimal"),
        "--day-first": columns.get("order") == "day-first",
        "--month-first": columns.get("order") == "month-first",
    }
    for name, value in (o.changed(learning) | o.changed(data)).items():
        if name not in FREE and value != same.get(name):
            raise SettingsError(f"{name} contradicts --resume: the model has its settings; leave {name} out.")
    if model.evidence is None or model.labels is None:
        raise DataError(f"{path} holds a learner without its accounts: it cannot be resumed.")
    driver = Driver.resume(model.learner, model.labels, model.evidence, course=model.course, bad=data.bad)
    for name in ("skipped", "refused", "missing"):  # older files do not count what was missing
        setattr(driver, name, int(model.counts.get(name, 0)))
    if "baselines" in model.counts:
        driver.baselines = Baselines(
            np.array(model.counts["baselines"], dtype=np.float64),
            np.array(model.counts["values"], dtype=np.float64),
            np.array(model.counts["masses"], dtype=np.float64),
            int(model.counts["digits"]),
        )
    stream = data.open_like(model.features, paths, model.names)
    if model.position is not None:
        try:
            require(model.position, POSITION, "position", needed=POSITION)
        except DataError as error:
            raise DataError(f"{path} is damaged: {error}.") from None
        _require_same(path, model.position, stream)
    return driver, stream, model.position, list(model.history)


def _position(
    at: dict[str, Any] | None, passes: int | None
) -> tuple[Position, int, tuple[str | None, int] | None, int | None]:
    """Where to go on, in which pass, after how many bytes of which file of predictions, and the number of passes."""
    if at is None:
        return START, 1, None, passes
    if passes is not None and passes != at["passes"]:
        raise SettingsError(f"--passes contradicts --resume: it was started with {at['passes']}; leave --passes out.")
    position = Position(int(at["offset"]), int(at["line"]), int(at["file"]), lambda: str(at["tail"]))
    predictions = None if at["predictions"] is None else (at.get("predictions_file"), int(at["predictions"]))
    return position, int(at["pass"]), predictions, int(at["passes"])


def _require_same(path: str, at: dict[str, Any], stream: Data) -> None:
    """Refuse to go on in data that are not those the checkpoint was made on."""
    if list(at["paths"]) != list(stream.paths):
        raise SettingsError(f"{path} was stopped in {', '.join(at['paths'])}: give the same data to go on.")
    if any(source.piped for source in stream.sources):
        return
    position = Position(int(at["offset"]), int(at["line"]), int(at["file"]))
    if stream.heads(position) != list(at["heads"]) or stream.tail_before(position) != at["tail"]:
        raise DataError(f"{path} stopped in other data: what comes before that place has changed since; learn afresh.")
