"""`rue predict`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import numpy as np
import typer

from rue.cli import options as o
from rue.cli.running import Predictions, csv_row
from rue.cli.standard import writing_stdout
from rue.errors import SettingsError, shown
from rue.learners import ClassLearner
from rue.ledger import EXAMPLES, LOSS, MISTAKES, WEIGHT
from rue.models.file import Model, load_model
from rue.outputs import require_apart, require_not_read, require_standard_output, require_writable
from rue.regret.certificates.evidence import open_evidence
from rue.runs.predicting import probabilities, scores
from rue.streams import Block
from rue.streams.data import Data
from rue.streams.labels import plain

__all__ = ["predict"]


@o.command
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model written by `rue learn --model`.")],
    paths: o.DataPaths,
    data: Annotated[o.DataOptions, "format separator max_line bad"],
    out: Annotated[
        str | None, typer.Option("-o", "--out", metavar="OUT.csv", help="Where to; stdout if not given.")
    ] = None,
    reading: Annotated[str, typer.Option("--as", help="score, probability or label.")] = "score",
) -> int:
    """Predict with a model that stands still; where the data have labels, say its loss and error too.

    `rue predict clicks.rue tomorrow.csv -o predictions.csv --as probability`
    """
    if reading not in ("score", "probability", "label"):
        raise SettingsError(f"--as is score, probability or label, not {shown(reading)}.")
    if out is None:
        require_standard_output()
    require_writable(out)
    require_apart({"--out": out})
    loaded = load_model(model)
    learner = loaded.learner
    stream = data.open_like(loaded.features, paths)
    require_not_read({"--out": out}, [model, *stream.paths])
    book = open_evidence(learner.loss)
    table = learner.loss.task == "multiclass" and reading != "label"
    columns = _heads(loaded) if table else ("prediction",)
    writer = None if out is None else Predictions(out, columns=columns)
    try:
        skipped = _predict_all(loaded, stream, book, reading, data.bad, writer, columns)
        if writer is not None:
            writer.finish()
    finally:
        if writer is not None:
            writer.abandon()
    sums = book.ledger.sums
    if sums[EXAMPLES]:
        many = "mistake" if sums[MISTAKES] == 1.0 else "mistakes"
        wrong = f", {int(sums[MISTAKES]):,} {many} ({sums[MISTAKES] / sums[EXAMPLES]:.2%})"
        wrong = wrong if loaded.labels is not None and loaded.labels.task != "regress" else ""
        count = f"{int(sums[EXAMPLES]):,} labelled example{'s' * (int(sums[EXAMPLES]) != 1)}"
        summary = f"{count}: mean loss {sums[LOSS] / sums[WEIGHT]:.6g}{wrong}"
        print(summary, file=sys.stderr)
    if skipped:
        print(f"{skipped:,} unusable lines skipped", file=sys.stderr)
    return 0


def _predict_all(
    model: Model, stream: Data, book: Any, reading: str, bad: str, writer: Predictions | None, columns: tuple[Any, ...]
) -> int:
    """Predict every row, to a file or to stdout; how many lines were skipped."""
    skipped, head = 0, [csv_row(columns)]
    for chunk in stream.reads(labelled=False):
        if chunk.first_bad and bad == "stop":
            raise chunk.error(chunk.first_bad)
        skipped += len(chunk.bad)
        if not len(chunk.block):
            continue
        p = scores(model.learner, chunk.block)
        _score(model, book, chunk.block, p)
        shown = _read_as(model, p, reading)
        if writer is None:
            with writing_stdout():
                print("\n".join([*head, *shown]))
            head = []
        else:
            writer.write_lines(shown)
    if writer is None and head:
        print(head[0])
    return skipped


def _score(model: Model, book: Any, block: Block, p: Any) -> None:
    """Loss and mistakes of the examples that have a label the model knows."""
    if block.y is None or model.labels is None:
        return
    y = np.asarray(model.labels.encode(block.y), dtype=np.float64)
    if model.labels.task == "multiclass":
        y, p = _as_scores(block.y, y, p)
    known = np.array([bool(model.learner.loss.accepts(label)) for label in y.tolist()]) & np.isfinite(p)
    loss, weights = model.learner.loss, block.column_of_weights()
    sums = book.ledger.sums
    for i in np.flatnonzero(known).tolist():
        weight = float(weights[i]) if weights.size else 1.0
        sums[EXAMPLES] += 1.0
        sums[WEIGHT] += weight
        sums[LOSS] += weight * loss.value(float(p[i]), float(y[i]))
        sums[MISTAKES] += float(y[i] * p[i] <= 0.0)


def _as_scores(labels: Any, y: Any, p: Any) -> tuple[Any, Any]:
    """The probability of each row's class, negative where another has as much; a class never seen has the reserve."""
    unseen = np.isnan(y) | (y >= p.shape[1])
    missing = np.array([label is None or label != label or label == "" for label in np.asarray(labels).tolist()])
    place = np.where(unseen, 0, y).astype(np.int64)
    own = p[np.arange(y.size), place]
    others = np.delete(p, 0, axis=1)
    others[~unseen, place[~unseen] - 1] = -1.0
    wrong = unseen | (others.max(axis=1, initial=-1.0) >= own)
    return np.where(missing, np.nan, np.where(unseen, 1.0, y)), np.where(wrong, -own, own)


def _heads(model: Model) -> tuple[Any, ...]:
    """The columns of probabilities: one for each class."""
    assert isinstance(model.learner, ClassLearner)
    return tuple(model.labels.classes[: model.learner.classes]) if model.labels is not None else ()


def _read_as(model: Model, p: Any, reading: str) -> list[str]:
    """The lines of CSV for some predictions."""
    labels = model.labels
    if labels is not None and labels.task == "multiclass":
        if reading == "label":
            lines = [csv_row([name]) for name in labels.classes]
            return [lines[c] for c in p[:, 1:].argmax(axis=1)]
        return [",".join(map(repr, row)) for row in p[:, 1:].tolist()]
    if reading == "score":
        return list(map(repr, p.tolist()))
    if labels is None or labels.task != "classify":
        raise SettingsError(f"--as {reading} is for classes: this model predicts numbers.")
    if reading == "label":
        lines = [csv_row([plain(name)]) for name in (labels.negative, labels.positive)]
        return [lines[int(value > 0.0)] for value in p]

    if not model.learner.loss.log_odds:
        raise SettingsError(f"--as probability needs logistic loss: this model was learnt with {model.learner.loss!r}.")
    return list(map(repr, probabilities(p).tolist()))
