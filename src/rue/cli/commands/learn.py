"""`rue learn`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer

from rue.cli import options as o
from rue.cli.app import app
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
from rue.streams.data import Data
from rue.streams.files.cutting import MAX_LINE
from rue.streams.files.files import Place, Spot

__all__ = ["learn", "require_task"]


@app.command(
    epilog="Three to start with: `rue learn sales.csv --target bought --model m.rue`, then "
    "`rue predict m.rue new.csv -o p.csv`, then `rue learn sales.csv --target bought --plot risk.png`."
)
def learn(
    data: o.DataPaths,
    target: o.Target = None,
    task: o.Task = "auto",
    learner: o.LearnerSpec = None,
    loss: o.LossSpec = None,
    domain: o.DomainSpec = None,
    step: o.StepSpec = None,
    budget: o.Budget = None,
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
    bad: o.Bad = "stop",
    told: o.Format = None,
    bits: o.Bits = 20,
    no_intercept: o.NoIntercept = False,
    radius: o.Radius = None,
    weight: o.WeightColumn = None,
    drop: o.Drop = "",
    category: o.Category = "",
    separator: o.Separator = None,
    max_line: o.MaxLine = MAX_LINE,
    quiet: o.Quiet = False,
) -> int:
    """Learn a stream in one pass, with nothing to tune, and say how well it went.

    `rue learn clicks.csv --target clicked --model clicks.rue`

    `zcat day.vw.gz | rue learn - --format vw --learner ogd --loss hinge --domain ball:10`
    """
    started = time.monotonic()
    require_task(task)
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
        Ball(radius)
    often = Every.read(every)
    if resume is not None:
        chosen: dict[str, Any] = {
            "--learner": learner,
            "--loss": loss,
            "--domain": domain,
            "--step": step,
            "--target": target,
        }
        chosen |= {"--weight": weight, "--drop": drop or None, "--category": category or None}
        chosen |= {"--task": None if task == "auto" else task, "--bits": None if bits == 20 else str(bits)}
        chosen |= {"--no-intercept": "" if no_intercept else None, "--budget": budget}
        going, stream, at, history = _resumed(resume, data, chosen, told, bad, separator, max_line)
        spot, number, kept, passes = _position(at, passes)
    else:
        made, decided = o.learner_from(learner, loss, domain, step, not no_intercept, budget)
        going = Driver(
            made,
            task=decided if decided != "auto" else task,
            bad=bad,
            intercept=not no_intercept,
            budget=budget,
            **_witnesses(made, radius),
        )
        stream = o.open_data(data, told, target, weight, drop, category, separator, bits, max_line)
        stream.naming = model is not None or checkpoint is not None
        spot, number, kept, history = START, 1, None, []
    require_not_read(outputs, stream.paths)
    if resume is not None:  # which the model and the checkpoint may replace: it has been read whole
        require_not_read({"--predictions": predictions, "--report": report_path, "--plot": plot}, [resume])
    before = going.examples
    rows = PredictionLog()
    writer = None if predictions is None else Predictions(predictions, kept)
    running = Running(
        stream, going, Progress(quiet, radius), passes or 1, writer, checkpoint, often, history, number, spot
    )
    if plot is not None:
        running.record = lambda block, made: rows.add(going, block, made)
    try:
        with Interruptible() as asked:  # until the last byte is saved
            why = running.run(asked.stop)
            history.append(history_entry(going.examples - before, data))
            why = _finish(running, why, model, checkpoint)
            said = report(going, radius=radius, total=time.monotonic() - started)
            write_report(said, report_path)
            if plot is not None and going.examples:
                rows.run(going, stream).plot(path=plot)
            interrupted = why == INTERRUPTED
            why = why or _nothing_learnt(running)
            if going.examples or interrupted:
                stopped = "stopped by Ctrl-C: this is true of what was learnt until then" if interrupted else ""
                say(page(said, stopped, columns()))
    finally:
        if writer is not None:
            writer.abandon()
    if why and not interrupted:
        raise DataError(why)
    return 130 if interrupted else 0


RADII = (1.0, 10.0, 100.0)
"""Where witnesses stand when no radius is given."""


def _witnesses(learner: Learner | None, radius: float | None) -> dict[str, Any]:
    """What a pass keeps for the certificate of a mixture (D3)."""
    if learner is not None and not isinstance(learner.algorithm, Pooled):
        return {}
    if radius is not None and not 0.0 < radius < math.inf:
        return {}
    return {"units": "largest", "witnesses": RADII if radius is None else radius, "quick": True}


def require_task(task: str) -> None:
    """Refuse a task that is none."""
    if task not in ("auto", "classify", "multiclass", "regress"):
        raise SettingsError(f"--task is auto, classify, multiclass or regress, not {task!r}.")


def _finish(running: Running, why: str, model: str | None, checkpoint: str | None) -> str:
    """Save all that was asked for; what is wrong first, or ""."""
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


def _resumed(
    path: str,
    paths: list[str],
    chosen: dict[str, Any],
    told: str | None,
    bad: str,
    separator: str | None,
    max_line: int,
) -> tuple[Driver, Data, dict[str, Any] | None, list[dict[str, Any]]]:
    """A pass that goes on where a model or a checkpoint stopped."""
    found = load_model(path)
    columns = found.features.get("columns") or {}
    same = {
        "--target": columns.get("target"),
        "--weight": columns.get("weight"),
        "--bits": str(columns.get("bits", 20)),
    }
    for name, value in chosen.items():
        if value is not None and value != same.get(name):
            raise SettingsError(f"{name} contradicts --resume: the model has its settings; leave {name} out.")
    if found.evidence is None or found.labels is None:
        raise DataError(f"{path} holds a learner without its accounts: it cannot be resumed.")
    going = Driver.resume(found.learner, found.labels, found.evidence, course=found.course, bad=bad)
    for name in ("skipped", "refused", "missing"):  # older files do not count what was missing
        setattr(going, name, int(found.counts.get(name, 0)))
    if "baselines" in found.counts:
        going.baselines = Baselines(
            np.array(found.counts["baselines"], dtype=np.float64),
            np.array(found.counts["values"], dtype=np.float64),
            np.array(found.counts["masses"], dtype=np.float64),
            int(found.counts["digits"]),
        )
    stream = Data.like(found.features, tuple(paths), told, separator, found.names, max_line)
    if found.position is not None:
        try:
            require(found.position, POSITION, "position", needed=POSITION)
        except DataError as error:
            raise DataError(f"{path} is damaged: {error}.") from None
        _require_same(path, found.position, stream)
    return going, stream, found.position, list(found.history)


def _position(
    at: dict[str, Any] | None, passes: int | None
) -> tuple[Spot, int, tuple[str | None, int] | None, int | None]:
    """Where to go on, in which pass, after how many bytes of which file of predictions, and the number of passes."""
    if at is None:
        return START, 1, None, passes
    if passes is not None and passes != at["passes"]:
        raise SettingsError(f"--passes contradicts --resume: it was started with {at['passes']}; leave --passes out.")
    spot = Spot(Place(int(at["file"]), int(at["offset"]), int(at["line"])), lambda: str(at["tail"]))
    predictions = None if at["predictions"] is None else (at.get("predictions_file"), int(at["predictions"]))
    return spot, int(at["pass"]), predictions, int(at["passes"])


def _require_same(path: str, at: dict[str, Any], stream: Data) -> None:
    """Refuse to go on in data that are not those the checkpoint was made on."""
    if list(at["paths"]) != list(stream.paths):
        raise SettingsError(f"{path} was stopped in {', '.join(at['paths'])}: give the same data to go on.")
    if any(source.piped for source in stream.sources):
        return
    place = Place(int(at["file"]), int(at["offset"]), int(at["line"]))
    if stream.heads(place) != list(at["heads"]) or stream.tail_before(place) != at["tail"]:
        raise DataError(f"{path} stopped in other data: what comes before that place has changed since; learn afresh.")
