"""Windows: what they cost, how many are proved unmatched, and the losses of a mixture that keeps up with change."""

from __future__ import annotations

import lzma
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rue
from benchmarks import data
from benchmarks.clock import best_of
from benchmarks.data import SHARED
from rue.ledger import open_ledger
from rue.streams import blocks
from rue.windows import open_windows

ROWS, PIECE, RADIUS = 60_000, 8_192, 5.0
LOSSES = {  # the most that the linear mixture may lose on average, and what it lost before it kept up with change
    "elec2.csv": ({"y": "up"}, 0.214),
    "covtype.csv": ({"y": "lodgepole"}, 0.183),
    "flights.parquet": ({"y": "late"}, 0.4278),
    "a9a.svm": ({}, 0.3292 * 1.001),
    "toxicity.svm": ({}, 0.1581 * 1.001),
    "bike.csv": ({"y": "cnt"}, 5320.02 * 1.001),
}


def window_rows() -> list[tuple[str, float, str]]:
    """The time of a pass whose ledger has windows, next to that of one whose ledger has none."""
    rows = []
    for name in ("elec2", "covtype", "a9a", "toxicity"):
        if (stream := getattr(data, name)()) is None:
            continue
        X, y = stream[0][:ROWS], np.where(np.asarray(stream[1][:ROWS]) > 0, 1.0, -1.0)
        pieces = [block.part(k, k + PIECE) for block in blocks(X, y) for k in range(0, len(block), PIECE)]

        def run(make: Any, windows: Any = None, pieces: list[Any] = pieces, columns: int = X.shape[1]) -> None:
            ledger, learner = open_ledger(columns + 1, windows), make(d=columns)
            for block in pieces:
                ledger = ledger._replace(windows=ledger.windows.with_room(block.rows(True)))
                learner.run_block(block, ledger, np.empty(len(block)), 0)

        for what, make, most in (("the default learner's", rue.Mixture, 5), ("a bare OGD", rue.OGD, 15)):
            jobs = {
                "without": lambda run=run, make=make: run(make),
                "with": lambda run=run, make=make: run(make, open_windows()),
            }
            times = best_of(jobs, rounds=15, clock=time.process_time)
            share = 100.0 * (times["with"] / times["without"] - 1.0)
            rows.append((f"{name}: windows on top of {what} pass, in %", share, f"≤ {most}"))
    return rows


def proof_rows() -> list[tuple[str, float, str]]:
    """How many windows no linear model of norm 5 could have matched the default learner in, by proof."""
    rows = []
    for name, path, options in _files("elec2.csv", "covtype.csv"):
        run = rue.learn(path, **options, witnesses=RADIUS, units="largest")
        asked = [(window, run.certificate(radius=RADIUS, window=(window.first, window.last))) for window in run.windows]
        proved = [found.comparator_loss_at_least > window.loss for window, found in asked]
        print(f"  {name}: {sum(proved)} of {len(proved)} windows")
        rows.append(
            (f"{name}: windows in which no linear model of norm 5 matches, in %", 100.0 * np.mean(proved), "> 80")
        )
        for changes in (0, len(proved) - 1):
            share = run.certificate(radius=RADIUS, changes=changes).comparator_loss_at_least / run.loss
            rows.append((f"{name}: share of the loss that {changes} changes must lose", share, "–"))
    return rows


def loss_rows() -> list[tuple[str, float, str]]:
    """The mean loss of the linear mixture, which mixes by fixed share, and of learners that see the last label."""
    rows = [
        (
            f"{name}: mean loss of the linear mixture",
            rue.learn(path, **options, maps=None).risk,
            f"≤ {LOSSES[name][1]:.6g}",
        )
        for name, path, options in _files(*LOSSES)
    ]
    for name, path, options in _files("covtype.csv"):
        linear, mapped = (rue.learn(path, **options, **how, lags=[1]).risk for how in ({"maps": None}, {}))
        rows.append((f"{name}: mean loss of the linear mixture, with the last label", linear, "≤ 0.121"))
        rows.append((f"{name}: mean loss of the default learner, with the last label", mapped, "≤ 0.110"))
    return rows


def _files(*names: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Those files that there are, unpacked."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            packed = SHARED / f"{name}.xz"
            if (SHARED / name).exists():
                yield name, str(SHARED / name), LOSSES[name][0]
            elif packed.exists():
                path = Path(folder) / name
                path.write_bytes(lzma.decompress(packed.read_bytes()))
                yield name, str(path), LOSSES[name][0]
            else:
                print(f"{name} is absent (../shared/data): its rows are left out")
