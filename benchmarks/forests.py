"""The default learner beside forests, boosting and pairs of features: every peer on the same rows in the same order.

What the peers reached is stored in docs/peers.json (`benchmarks.store`) and measured only where it is missing; rue is
measured every time, and its loss on the rows that a peer got through stands next to the peer's.
"""

from __future__ import annotations

import lzma
import tempfile
import time
import warnings
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet

import rue
from benchmarks import store
from benchmarks.data import SHARED
from benchmarks.peers import CLIP, MILD
from benchmarks.tables import NAMES, REAL, Table, table

HEAD = 600
"""Rows that are learnt before time is taken, so that nothing is compiled while it runs."""


class Course(NamedTuple):
    """What a run lost row by row, and its processor time."""

    losses: Any
    mild: Any
    errors: Any
    """Whether the most probable class did not come; None for a regression."""
    seconds: float

    def until(self, rows: int) -> dict[str, float]:
        """The means over the first rows."""
        found = {"loss": float(self.losses[:rows].mean())}
        if self.errors is not None:
            found |= {"mild": float(self.mild[:rows].mean()), "error": float(self.errors[:rows].mean())}
        return found


def linear(stream: Table) -> Any:
    """The mixture on the raw features that fits a stream's labels."""
    if len(stream.classes) > 2:
        return rue.SoftmaxMixture()
    return rue.Mixture(loss="logistic" if stream.classes else "square")


def learn(name: str, stream: Table, learner: Any = None) -> Course:
    """One pass of a learner, the default one if none is given, over the stream's file or its table."""
    task = "regress" if not stream.classes else "classify" if len(stream.classes) == 2 else "multiclass"
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes about columns, which are as they are meant
        if name in REAL:
            file, options = REAL[name]
            source, head = str(SHARED / file), _head(SHARED / file, Path(folder))
            rue.learn(head, task=task, learner=learner, **options)
            started = time.process_time()
            run = rue.learn(source, task=task, learner=learner, **options)
        else:
            y = stream.y if not stream.classes else np.array(stream.classes).astype(str)[stream.y]
            rue.learn(stream.columns[:HEAD], y[:HEAD], task=task, learner=learner)
            started = time.process_time()
            run = rue.learn(stream.columns, y, task=task, learner=learner)
    return course(run, time.process_time() - started)


def course(run: Any, seconds: float = float("nan")) -> Course:
    """The losses of a run, clipped as the peers' are."""
    if run.labels.task == "regress":
        return Course(run.losses, None, None, seconds)
    if run.probabilities is None:
        chance = 1.0 / (1.0 + np.exp(-np.clip(run.y * run.predictions, -700.0, 700.0)))
        errors = run.y * run.predictions <= 0.0
    else:
        chance, best = np.exp(-run.losses), run.probabilities.argmax(axis=1)
        seen = run.probabilities.max(axis=1) > 0.0
        errors = (best + 1 != run.y) | ~seen  # classes count from 1, in the order in which they came
    losses = np.minimum(run.losses, -np.log(CLIP))
    return Course(losses, -np.log(np.clip(chance, MILD, 1.0 - MILD)), errors, seconds)


def _head(path: Path, folder: Path) -> str:
    """A file of the same format with the first rows of another."""
    if path.suffix == ".parquet":
        head = next(pyarrow.parquet.ParquetFile(path).iter_batches(HEAD))
        out = folder / path.name
        pyarrow.parquet.write_table(pyarrow.Table.from_batches([head]), out)
    else:
        out = folder / path.stem
        with lzma.open(path, "rt") as text:
            out.write_text("".join(islice(text, HEAD)))
    return str(out)


def forest_rows(names: list[str] | None = None) -> list[tuple[str, float, str, dict[str, Any]]]:
    """One row a stream and learner; the figure is ours divided by theirs on the same rows."""
    store.measure_all(names, missing=True)
    peers, rows = store.stored(), []
    for name in names or NAMES:
        if (stream := table(name)) is None:
            continue
        turns = [(learn(name, stream), learn(name, stream, linear(stream))) for _ in range(2)]
        ours, raw = (min(runs, key=lambda run: run.seconds) for runs in zip(*turns, strict=True))
        n = stream.y.size
        for peer, course_, others in (("rue", ours, "–"), ("rue, linear", raw, "≤ 1")):
            record = {"rows": n, "seconds": course_.seconds, **course_.until(n)}
            rows.append(_row(name, peer, record, ours, raw, others))
        for peer, record in peers.get(name, {}).items():
            rows.append(_row(name, peer, record, ours, raw, "< 1"))
    return rows


def _row(
    name: str, peer: str, record: Any, ours: Course, raw: Course, wanted: str
) -> tuple[str, float, str, dict[str, Any]]:
    details: dict[str, Any] = {"stream": name, "peer": peer}
    if isinstance(record, str) or not record["rows"]:
        return (
            f"{name}, {peer}",
            float("nan"),
            "–",
            {**details, "note": record if isinstance(record, str) else "no row"},
        )
    same = ours.until(record["rows"])
    details |= {"peer_reached": record, "rue": same, "linear": raw.until(record["rows"])}
    what = f"{name}, first {record['rows']:,}: {same['loss']:.4g} / {peer} {record['loss']:.4g}"
    return what, same["loss"] / record["loss"], wanted, details


def forest_table(rows: list[dict[str, Any]]) -> str:
    """The rows in Markdown, a line for each stream and learner; the better of the peer and rue is bold."""
    lines = [
        "| stream | learner | rows | loss | rue | linear | loss, p ≥ 0.01 | rue | errors % | rue | rows/s |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        if "note" in row:
            lines.append(f"| {row['stream']} | {row['peer']}: {row['note']} | | | | | | | | | |")
            continue
        theirs, ours = row["peer_reached"], row["rue"]
        rate = theirs["rows"] / max(theirs["seconds"], 1e-9)
        cells = [row["stream"], row["peer"], f"{theirs['rows']:,}"]
        cells += [*_pair(theirs["loss"], ours["loss"]), _number(row["linear"]["loss"])]
        cells += _pair(theirs.get("mild"), ours.get("mild"))
        cells += _pair(
            *(None if found is None else 100.0 * found for found in (theirs.get("error"), ours.get("error")))
        )
        lines.append("| " + " | ".join([*cells, f"{float(f'{rate:.2g}'):,.0f}"]) + " |")
    return "\n".join(lines)


def _pair(theirs: float | None, ours: float | None) -> list[str]:
    if theirs is None or ours is None:
        return ["", ""]
    cells = [_number(theirs), _number(ours)]
    if cells[0] != cells[1]:
        better = 0 if theirs < ours else 1
        cells[better] = f"**{cells[better]}**"
    return cells


def _number(value: float) -> str:
    return f"{value:.4f}" if value < 1.0 else f"{value:.4g}" if value < 1e5 else f"{value:.2g}"
