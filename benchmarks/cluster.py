"""Learning in shards: what merging costs in loss, how much faster two workers are than one, and Ray's overhead.

Quality does not depend on the machine: `quality_rows` learns all rows of a stream in one pass and in 2 and 8 shards, in
one process. `speed_rows` times whole commands, whose processes are pinned to cores, and needs a machine that does
nothing else; RUE_CLUSTER_BYTES says how large its files are (2 GB unless given).
"""

from __future__ import annotations

import lzma
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import rue
from benchmarks.data import SHARED
from rue.cluster.sharded import Watcher, learn_sharded
from rue.runs.baselines import Baselines
from rue.runs.driver import Driver
from rue.runs.evaluation import evaluate
from rue.streams import read_like
from rue.streams.data import Data

STREAMS = {"covtype": ("covtype.csv.xz", "lodgepole"), "flights": ("flights.parquet", "late")}
WANTED = {2: 1.04, 8: 1.10}
MOMENTS = (0.5, 0.8)
"""After which part of a stream a model is frozen; it is judged on the fifth that follows."""
GROUP = 8192
"""Rows of a unit."""
BYTES = int(float(os.environ.get("RUE_CLUSTER_BYTES", 2e9)))


def _table(name: str) -> Any:
    path = SHARED / STREAMS[name][0]
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with lzma.open(path) as file:
        return pyarrow.csv.read_csv(file)


def _learnt(table: Any, target: str, shards: int, folder: Path) -> Any:
    """The default learner of shards, which is linear, after some rows in so many."""
    path = folder / "rows.parquet"
    pq.write_table(table, path, row_group_size=GROUP)
    return learn_sharded(Data((str(path),), target=target), Driver(maps=None), shards=shards, on="inline")


def _frozen(model: Any, table: Any, folder: Path) -> float:
    """The mean loss of a model that stands still, on rows that follow."""
    path = folder / "rest.parquet"
    pq.write_table(table, path)
    chunks = read_like(model.features, str(path)).reads()
    return float(evaluate(model.learner, model.labels, Baselines.from_dict(model.counts), chunks, "stop").risk)


def quality_rows() -> Iterator[tuple[str, float, str]]:
    for name, (file, target) in STREAMS.items():
        if not (SHARED / file).exists():
            continue
        table = _table(name)
        n = table.num_rows
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            risks, frozen = {}, {}
            for shards in (1, *WANTED):
                risks[shards] = _learnt(table, target, shards, folder).risk
                for moment in MOMENTS:
                    end = int(moment * n)
                    model = _learnt(table.slice(0, end), target, shards, folder).model
                    frozen[shards, moment] = _frozen(model, table.slice(end, n // 5), folder)
                    print(f"{name}, {shards} shards, frozen at {moment}: {frozen[shards, moment]:.5f}", flush=True)
                print(f"{name}, {shards} shards: {risks[shards]:.5f}", flush=True)
        for shards, wanted in WANTED.items():
            yield f"{name}, {shards} shards: progressive loss / one pass", risks[shards] / risks[1], f"≤ {wanted:.2f}"
            ratios = [math.log(frozen[shards, moment] / frozen[1, moment]) for moment in MOMENTS]
            what = f"{name}, {shards} shards: loss of the frozen model on what follows / one pass"
            yield what, math.exp(np.mean(ratios)), "≤ 1"


def _written(folder: Path, kind: str) -> Path:
    """A file of about `BYTES` with 20 numbers, a word and a label in each row."""
    random, path, rows = np.random.default_rng(0), folder / f"data.{kind}", 200_000
    X = np.round(random.normal(size=(rows, 20)), 4)
    columns: dict[str, Any] = {f"x{j}": X[:, j] for j in range(20)}
    columns["word"] = random.choice([f"word{k}" for k in range(500)], rows)
    columns["y"] = np.where(X @ random.normal(size=20) + random.normal(size=rows) > 0, "yes", "no")
    table = pa.table(columns)
    if kind == "csv":
        with path.open("wb") as out:
            pyarrow.csv.write_csv(table, out)
            rest = pyarrow.csv.WriteOptions(include_header=False)
            while out.tell() < BYTES:
                pyarrow.csv.write_csv(table, out, rest)
        return path
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(max(1, round(BYTES / table.nbytes))):
            writer.write_table(table, row_group_size=50_000)
    return path


def _learn(path: Path, cores: str, workers: int) -> list[str]:
    """A command that learns a file in two shards, with its processes on these cores."""
    command = [
        "taskset",
        "-c",
        cores,
        sys.executable,
        "-m",
        "rue",
        "learn",
        str(path),
        "--target",
        "y",
        "--shards",
        "2",
    ]
    return [*command, "--workers", str(workers), "-q"]


def _seconds(*commands: list[str]) -> float:
    """Whole commands with their processes, all begun at once, until the last has ended."""
    begun = time.monotonic()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    codes = [process.wait() for process in running]
    if any(codes):
        sys.exit("benchmarks: a command failed; what it said stands above.")
    return time.monotonic() - begun


def speed_rows() -> Iterator[tuple[str, float, str]]:
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("csv", "parquet"):
            path = _written(Path(folder), kind)
            _seconds(_learn(path, "0", 1))  # the file is in memory, and kernels are compiled
            turns = range(2)
            one = min(_seconds(_learn(path, "0", 1)) for _ in turns)
            two = min(_seconds(_learn(path, "0,1", 2)) for _ in turns)
            apart = min(_seconds(_learn(path, "0", 1), _learn(path, "1", 1)) for _ in turns)
            size = path.stat().st_size / 1e6
            yield f"{size:,.0f} MB of {kind}, two workers on two cores: times as fast as one on one", one / two, "≥ 1.8"
            yield (
                "what the machine allows: two commands at once that share nothing, times the work of one",
                2.0 * one / apart,
                "–",
            )
            path.unlink()


class Clock(Watcher):
    """When each round ended."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def round(self, standing: Any) -> None:
        self.at.append(time.monotonic())


def ray_rows() -> Iterator[tuple[str, float, str]]:
    """Milliseconds of a round of two shards with 2^20 weights, beyond those of the same round in this process."""
    if find_spec("ray") is None:
        print("Ray is not installed: pip install 'rue[cluster]'")
        return
    random, rounds, most = np.random.default_rng(0), 30, 8
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for k in range(2):
            paths.append(str(Path(folder) / f"{k}.svm"))
            with open(paths[-1], "w") as out:
                for i in range(rounds * most):
                    own = np.arange(2**14) * 64 + i % 64 if i < 64 else random.choice(2**20, 16)
                    features = " ".join(f"{j}:1" for j in np.union1d(own, [2**20 - 1]))
                    out.write(f"{random.choice([-1, 1])} {features}\n")
        times = {}
        for on in ("inline", "ray"):
            clock = Clock()
            settings = {"shards": 2, "most": most, "on": on, "watcher": clock}
            learn_sharded(Data(tuple(paths)), Driver(rue.OGD("logistic")), workers=2 if on == "ray" else 1, **settings)
            times[on] = np.median(np.diff(clock.at)[8:])
    yield "Ray, 2^20 weights, two shards: ms of a round beyond inline", 1e3 * (times["ray"] - times["inline"]), "< 100"
