"""`rue predict`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import numpy as np
import typer

from rue.cli import options as o
from rue.cli.fleets import FleetPredictor
from rue.cli.predictions import EMPTY, as_cells, csv_row, every_row, with_cells
from rue.cli.standard import writing_stdout
from rue.errors import SettingsError, shown
from rue.fleets import Fleet
from rue.fleets.file import load_any
from rue.learners import ClassLearner
from rue.models.file import Model
from rue.outputs import Output, require_not_read, require_standard_output
from rue.reports.scoring import baselines_in_words, evaluation_report, metrics_in_words
from rue.runs.advice import Advised, experts_in, experts_of, require_no_ensemble
from rue.runs.baselines import Baselines
from rue.runs.class_weights import ClassWeights
from rue.runs.driver import NUMBERS
from rue.runs.evaluation import Evaluation
from rue.runs.predicting import probabilities
from rue.streams.data import Data
from rue.streams.labels import class_order, plain

__all__ = ["predict"]

_NO_PROMISE = (
    "intervals and sets of a model that stands still promise nothing: only while it learns are they corrected."
)
_UNTRIED = (
    "the model was saved by an older rue, which did not try how well it does when it stands still; "
    "learn again, or on with --resume, and the best of its members for that is found."
)


@o.command
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model written by `rue learn --model`.")],
    paths: o.DataPaths,
    data: Annotated[o.DataOptions, "format id separator max_line bad"],
    outside: o.Outside,
    out: Annotated[
        str | None, typer.Option("-o", "--out", metavar="OUT.csv", help="Where to; stdout if not given.")
    ] = None,
    reading: Annotated[str, typer.Option("--as", help="score, probability or label.")] = "score",
) -> int:
    """Predict with a model that stands still; where the data have labels, say its loss, baselines and metrics too.

    `rue predict clicks.rue tomorrow.csv -o predictions.csv --as probability`
    """
    if reading not in ("score", "probability", "label"):
        raise SettingsError(f"--as is score, probability or label, not {shown(reading)}.")
    if out is None:
        require_standard_output()
    o.require_outputs({"--out": out})
    loaded = load_any(model)
    if isinstance(loaded, Fleet):
        return _predict_by_key(loaded, model, paths, data, outside, out, reading)
    learner = loaded.learner
    stream = data.open_like(loaded.features, paths)
    experts = experts_of(loaded.ensemble, outside.advice(experts_in(loaded.features)))
    require_not_read({"--out": out}, [model, *stream.paths, *outside.files.values()])
    if experts is not None and loaded.watch.intervals is not None:
        require_no_ensemble("the interval of a model that stands still", loaded.ensemble)
    class_weights = ClassWeights.from_json(loaded.counts.get("class_weight"))
    training = Baselines.from_dict(loaded.counts)
    evaluation = Evaluation(learner.loss, loaded.labels or NUMBERS, training, class_weights)
    table = learner.loss.task == "multiclass" and reading != "label"
    columns = _heads(loaded) if table else (_head(loaded, reading),)
    if loaded.watch.intervals is not None:
        columns = (*columns, *loaded.watch.columns(learner.loss.task))
        print(f"note: {_NO_PROMISE}", file=sys.stderr)
    writer = None if out is None else Output(out)
    try:
        _predict_all(loaded, stream, evaluation, reading, data.bad, writer, columns, experts)
        if writer is not None:
            writer.finish()
    finally:
        if writer is not None:
            writer.abandon()
    for line in _summary(evaluation):
        print(line, file=sys.stderr)
    if evaluation.skipped:
        print(f"{evaluation.skipped:,} unusable lines skipped", file=sys.stderr)
    return 0


def _predict_by_key(
    fleet: Fleet, model: str, paths: list[str], data: o.DataOptions, outside: o.Outside, out: str | None, reading: str
) -> int:
    """Predict each row by the model of its key."""
    if outside.expert:
        raise SettingsError("--expert does not go together with a model for every key: leave it out.")
    if data.id is not None and data.id != fleet.by:
        raise SettingsError(f"--id {data.id} contradicts the model, whose rows are told apart by {fleet.by}.")
    if fleet.by is None:
        raise SettingsError(f"{model} was learnt in Python with keys that are no column: use Fleet.predict with by=.")
    stream = data.open_like(fleet.features, paths)
    require_not_read({"--out": out}, [model, *stream.paths])
    predictor, writer, begun = FleetPredictor(fleet, reading), None if out is None else Output(out), False
    if reading != "score":
        fleet.read_as(np.zeros(1), reading)  # refuses what these models cannot say
    try:
        for chunk in stream.reads(labelled=False):
            if chunk.first_bad and data.bad == "stop":
                raise chunk.error(chunk.first_bad)
            rows = predictor.rows(chunk)
            if not begun:
                begun = True
                _write(writer, [csv_row((stream.id_name(chunk) or fleet.by, predictor.head))])
            _write(writer, rows)
        if not begun:
            _write(writer, [csv_row((fleet.by, predictor.head))])
        if writer is not None:
            writer.finish()
    finally:
        if writer is not None:
            writer.abandon()
    for line in [*_summary(predictor.evaluation), *(f"note: {note}" for note in predictor.notes())]:
        print(line, file=sys.stderr)
    if predictor.evaluation.skipped:
        print(f"{predictor.evaluation.skipped:,} unusable lines skipped", file=sys.stderr)
    return 0


def _summary(evaluation: Evaluation) -> list[str]:
    """The lines about the examples that have labels."""
    if not evaluation.examples:
        return []
    n, mistakes = evaluation.examples, evaluation.mistakes
    wrong = f", {mistakes:,} mistake{'s' * (mistakes != 1)} ({mistakes / n:.2%})" if mistakes is not None else ""
    once = ", each counted once whatever its weight" * (mistakes is not None and evaluation.weight != n)
    summary: Any = evaluation_report(evaluation)
    lines = [f"{n:,} labelled example{'s' * (n != 1)}: mean loss {evaluation.risk:.6g}{wrong}{once}"]
    rows = [("baselines", baselines_in_words(summary)), *metrics_in_words(summary["metrics"])]
    lines += [f"{name:12} {text}" for name, text in rows]
    return [*lines, f"warning: {evaluation.behind}"] if evaluation.behind else lines


def _predict_all(
    model: Model,
    stream: Data,
    evaluation: Evaluation,
    reading: str,
    bad: str,
    writer: Output | None,
    columns: tuple[Any, ...],
    experts: Advised | None,
) -> None:
    """Predict every row, to a file or to stdout, and score those that have labels."""
    frozen, begun, id_name = model.learner.frozen(), False, None
    if frozen.untried:
        print(f"note: {_UNTRIED}", file=sys.stderr)
    chunks = stream.reads(labelled=False)
    for chunk in chunks if experts is None else experts.attached(chunks):
        if chunk.first_bad and bad == "stop":
            raise chunk.error(chunk.first_bad)
        evaluation.skipped += len(chunk.bad)
        cells: list[str] = []
        if len(chunk.block):
            p = frozen.predict_many(chunk.block)
            p = p if experts is None else experts.predict(p, chunk)
            if model.labels is not None:
                evaluation.enter(chunk.block, p)
            cells = _read_as(model, p, reading)
            if model.watch.intervals is not None:
                found = model.watch.predict(model.learner.loss, model.learner.with_last_labels(chunk.block), p)
                cells = with_cells(cells, model.watch, found, model.labels)
        cells = every_row(cells, chunk.bad, [",".join([EMPTY] * len(columns))] * len(chunk.bad))
        if not begun and cells:
            begun, id_name = True, stream.id_name(chunk)
            _write(writer, [csv_row(columns if id_name is None else (id_name, *columns))])
        if id_name is not None:
            tags = every_row(chunk.tags or [""] * len(chunk.block), chunk.bad, [row.tag for row in chunk.bad])
            cells = [f"{csv_row([tag])},{cell}" for tag, cell in zip(tags, cells, strict=True)]
        _write(writer, cells)
    if not begun:
        _write(writer, [csv_row(columns)])


def _write(writer: Output | None, lines: list[str]) -> None:
    """To the file, or to stdout."""
    if writer is not None and lines:
        writer.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
    elif lines:
        with writing_stdout():
            print("\n".join(lines))


def _head(model: Model, reading: str) -> str:
    """The name of the only column: a probability says of which class."""
    labels = model.labels
    of_class = reading == "probability" and labels is not None and labels.task == "classify"
    return f"probability of {plain(labels.positive)}" if of_class and labels is not None else "prediction"


def _heads(model: Model) -> tuple[Any, ...]:
    """The columns of probabilities: one for each class, in order."""
    return tuple(model.labels.classes[c] for c in _order(model)) if model.labels is not None else ()


def _order(model: Model) -> list[int]:
    """Which of the classes that were learnt comes first, second, … in the table."""
    assert isinstance(model.learner, ClassLearner)
    assert model.labels is not None
    return class_order(model.labels.classes[: model.learner.classes])


def _read_as(model: Model, p: Any, reading: str) -> list[str]:
    """The lines of CSV for some predictions."""
    labels = model.labels
    if labels is not None and labels.task == "multiclass":
        if reading == "label":
            lines = [csv_row([name]) for name in labels.classes]
            return [lines[c] for c in p[:, 1:].argmax(axis=1)]
        return [",".join(map(repr, row)) for row in p[:, 1:][:, _order(model)].tolist()]
    if reading == "score":
        return as_cells(p)
    if labels is None or labels.task != "classify":
        raise SettingsError(f"--as {reading} is for classes: this model predicts numbers.")
    if reading == "label":
        lines = [csv_row([plain(name)]) for name in (labels.negative, labels.positive)]
        return [lines[int(value > 0.0)] for value in p]

    if not model.learner.loss.log_odds:
        raise SettingsError(f"--as probability needs logistic loss: this model was learnt with {model.learner.loss!r}.")
    return list(map(repr, probabilities(p).tolist()))
