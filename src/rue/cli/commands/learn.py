"""`rue learn`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rue.baselines import Baselines
from rue.cli import options as o
from rue.cli.app import app
from rue.cli.progress import Progress
from rue.cli.running import INTERRUPTED, START, Every, Predictions, Running, run_of
from rue.errors import DataError, SettingsError
from rue.model_file import history_entry, load_model
from rue.passes import Pass
from rue.report import page, report
from rue.streams import Block
from rue.streams.data import Data
from rue.streams.files import Place, Spot

__all__ = ["learn", "write_report"]


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
    quiet: o.Quiet = False,
) -> int:
    """Learn a stream in one pass, with nothing to tune, and say how well it went.

    `rue learn clicks.csv --target clicked --model clicks.rue`

    `zcat day.vw.gz | rue learn - --format vw --learner ogd --loss hinge --domain ball:10`
    """
    started = time.monotonic()
    _require_task(task)
    _require_writable(model, predictions, report_path, plot, checkpoint)
    often = Every.read(every)
    if resume is not None:
        chosen = {"--learner": learner, "--loss": loss, "--domain": domain, "--step": step, "--target": target}
        going, stream, at, history = _resumed(resume, data, chosen, told, bad, separator)
        spot, number, kept, passes = _position(at, passes)
    else:
        made, decided = o.learner_from(learner, loss, domain, step, not no_intercept)
        going = Pass(made, task=decided if decided != "auto" else task, bad=bad, intercept=not no_intercept)
        stream = o.open_data(data, told, target, weight, drop, category, separator, bits)
        spot, number, kept, history = START, 1, None, []
    before = going.examples
    rows: list[tuple[Block, Any]] = []
    writer = None if predictions is None else Predictions(predictions, kept)
    running = Running(
        stream, going, Progress(quiet, radius), passes or 1, writer, model, checkpoint, often, history, number, spot
    )
    if plot is not None:
        running.record = lambda block, made: rows.append((block, made))
    why = running.run()
    history.append(history_entry(going.examples - before, data))
    _finish(running, why, model, checkpoint)
    said = report(going, radius=radius, read=running.reading, total=time.monotonic() - started)
    write_report(said, report_path)
    if plot is not None and going.examples:
        run_of(going, rows).plot(path=plot)
    interrupted = why == INTERRUPTED
    typer.echo(page(said, "stopped by Ctrl-C: this is true of what was learnt until then" if interrupted else ""))
    if why and not interrupted:
        raise DataError(why)
    return 130 if interrupted else 0


def _require_task(task: str) -> None:
    if task not in ("auto", "classify", "multiclass", "regress"):
        raise SettingsError(f"--task is auto, classify, multiclass or regress, not {task!r}.")


def _require_writable(*paths: str | None) -> None:
    """A folder that does not exist is told before hours of learning, not after."""
    for path in paths:
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise DataError(f"{path} cannot be written: there is no folder {Path(path).parent}.")


def _finish(running: Running, why: str, model: str | None, checkpoint: str | None) -> None:
    """Save what was asked for."""
    learnt = running.going.evidence is not None
    for path, finished in ((model, not why), (checkpoint, False)):
        if path is not None and learnt:
            running.save(path, finished)
        elif path is not None and not why:
            raise DataError("there are no examples to learn.")
    if running.predictions is not None:
        if checkpoint is not None and why:
            running.predictions.length()
        else:
            running.predictions.finish()
    if not learnt and not why:
        raise DataError("there are no examples to learn.")


def write_report(said: dict[str, Any], path: str | None) -> None:
    """The JSON, whole or not at all."""
    if path is not None:
        part = Path(path + ".part")
        part.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        part.replace(path)


def _resumed(
    path: str, paths: list[str], chosen: dict[str, str | None], told: str | None, bad: str, separator: str | None
) -> tuple[Pass, Data, dict[str, Any] | None, list[dict[str, Any]]]:
    """A pass that goes on where a model or a checkpoint stopped."""
    for name, value in chosen.items():
        if value is not None:
            raise SettingsError(f"{name} contradicts --resume: the model has its settings; leave {name} out.")
    found = load_model(path)
    if found.evidence is None or found.labels is None:
        raise DataError(f"{path} holds a learner without its accounts: it cannot be resumed.")
    going = Pass(found.learner, bad=bad)
    going.go_on(found.learner, found.evidence, found.labels)
    going.skipped, going.refused = int(found.counts.get("skipped", 0)), int(found.counts.get("refused", 0))
    if "baselines" in found.counts:
        going.baselines = Baselines(
            np.array(found.counts["baselines"], dtype=np.float64),
            np.array(found.counts["values"], dtype=np.float64),
            np.array(found.counts["masses"], dtype=np.float64),
            int(found.counts["digits"]),
        )
    stream = Data.like(found.features, tuple(paths), told, separator, found.names)
    if found.position is not None:
        _require_same(path, found.position, stream)
    return going, stream, found.position, list(found.history)


def _position(at: dict[str, Any] | None, passes: int | None) -> tuple[Spot, int, int | None, int | None]:
    """Where to go on, in which pass, after how many bytes of predictions, and how many passes there are."""
    if at is None:
        return START, 1, None, passes
    if passes is not None and passes != at["passes"]:
        raise SettingsError(f"--passes contradicts --resume: it was started with {at['passes']}; leave --passes out.")
    spot = Spot(Place(int(at["file"]), int(at["offset"]), int(at["line"])), lambda: str(at["tail"]))
    return spot, int(at["pass"]), at["predictions"], int(at["passes"])


def _require_same(path: str, at: dict[str, Any], stream: Data) -> None:
    """Refuse to go on in data that are not those the checkpoint was made on."""
    if list(at["paths"]) != list(stream.paths):
        raise SettingsError(f"{path} was stopped in {', '.join(at['paths'])}: give the same data to go on.")
    if "-" in stream.paths:
        return
    place = Place(int(at["file"]), int(at["offset"]), int(at["line"]))
    if stream.heads(place) != list(at["heads"]) or stream.tail_before(place) != at["tail"]:
        raise DataError(f"{path} stopped in other data: what comes before that place has changed since; learn afresh.")
