"""Files from text to the final report, against Vowpal Wabbit and pyarrow; and memory, which must not grow."""

from __future__ import annotations

import lzma
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

import rue
from benchmarks import data
from rue.runs.driver import Driver
from rue.streams.data import Data

MB = 10**6
OGD = ("--learner", "ogd", "--loss", "logistic", "--domain", "reals", "--step", "sqrt:0.5", "--quiet")
SGD = ("--sgd", "--loss_function", "logistic", "-l", "0.5", "-b", "20", "--quiet")


class Cost(NamedTuple):
    """What a process took: seconds by the clock, seconds of processors, MB of memory at most."""

    wall: float
    cpu: float
    memory: float


def numeric(kind: str, rows: int = 30_000) -> list[bytes]:
    """Lines like RCV1's, about 70 numbers each, as VW text or svmlight."""
    X, y = data.text_like(rows=rows)
    words = [f" {j + 1}:{x:.6g}" for j, x in zip(X.indices.tolist(), X.data.tolist(), strict=True)]
    heads = ["1" if label > 0 else "-1" for label in y]
    bar = " |f" if kind == "vw" else ""
    ends = X.indptr.tolist()
    return [f"{heads[i]}{bar}{''.join(words[ends[i] : ends[i + 1]])}\n".encode() for i in range(rows)]


def wordy(rows: int = 60_000) -> list[bytes]:
    """Lines of VW text with two namespaces: a user and an hour, and twenty words."""
    rng = np.random.default_rng(1)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    lexicon = np.array(["".join(rng.choice(letters, size)) for size in rng.integers(2, 11, 50_000)], dtype=object)
    cumulative = np.cumsum(1.0 / np.arange(1, lexicon.size + 1))
    texts = lexicon[np.searchsorted(cumulative / cumulative[-1], rng.random((rows, 20)))]
    users, hours = rng.integers(0, 100_000, rows), rng.integers(0, 24, rows)
    signs = np.where(rng.random(rows) < 0.4, "1", "-1")
    return [
        f"{sign} |a user=u{user} hour={hour} |b {' '.join(words)}\n".encode()
        for sign, user, hour, words in zip(signs, users, hours, texts, strict=True)
    ]


def write(path: Path, lines: list[bytes], size: int) -> str:
    """A file of lines drawn from some."""
    rng, drawn, done = np.random.default_rng(2), np.array(lines, dtype=object), 0
    with open(path, "wb") as file:
        while done < size:
            done += file.write(b"".join(drawn[rng.integers(0, drawn.size, 20_000)]))
    os.sync()  # or it is written to disk while programs are timed
    return str(path)


def cost(command: list[str], env: dict[str, str]) -> Cost:
    """Run a command to its end; what the kernel says of its memory at the end counts from before it was started."""
    started, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    while True:
        said = Path(f"/proc/{process.pid}/status").read_text()
        peak = max([peak, *(int(line.split()[1]) for line in said.splitlines() if line.startswith("VmHWM"))])
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        time.sleep(0.005)
    if status:
        raise RuntimeError(f"{' '.join(command)} failed")
    return Cost(time.perf_counter() - started, used.ru_utime + used.ru_stime, peak * 1024 / MB)


def in_turns(commands: dict[str, list[str]], env: dict[str, str], rounds: int = 4) -> dict[str, Cost]:
    """The least cost of each command, the first run apart, because it may compile."""
    found: dict[str, list[Cost]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            spent = cost(command, env)
            if turn:
                found[name].append(spent)
    best = {name: Cost(*(min(column) for column in zip(*costs, strict=True))) for name, costs in found.items()}
    for name, least in best.items():
        print(f"  {name:28} {least.wall:7.2f} s  {least.cpu:7.2f} s of processors  {least.memory:6.0f} MB")
    return best


def learn(path: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "rue", "learn", path, *OGD, *options]


def environment(folder: str) -> dict[str, str]:
    """As installed: rue's modules are kept compiled, here in a folder of their own."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**env, "PYTHONPYCACHEPREFIX": folder + "/modules"}


def against_vw() -> list[tuple[str, float, str]]:
    """Times as fast as VW on the same file, by the clock, all start-up counted; and svmlight against VW text."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        for size, wanted in ((200, "≥ 1"), (1000, "≥ 2")):
            for kind, lines in (("numbers", numeric("vw")), ("words", wordy())):
                path = write(Path(folder) / "text.vw", lines, size * MB)
                commands = {f"rue, {kind}": learn(path)}
                commands[f"vw, {kind}"] = [sys.executable, "-m", "vowpalwabbit", *SGD, "-d", path]
                if kind == "numbers":
                    other = write(Path(folder) / "text.svm", numeric("svm"), size * MB)
                    commands["rue, svmlight"] = learn(other)
                spent = in_turns(commands, env)
                ratio = spent[f"vw, {kind}"].wall / spent[f"rue, {kind}"].wall
                rows.append((f"{size} MB of {kind}, times as fast as VW", ratio, wanted))
                if kind == "numbers":
                    ratio = spent["rue, numbers"].wall / spent["rue, svmlight"].wall
                    rows.append((f"{size} MB of svmlight, times as fast as the same in VW text", ratio, "≥ 1"))
    return rows


def memory() -> list[tuple[str, float, str]]:
    """MB more at most on a file ten times as long."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        for suffix, lines in (("vw", numeric("vw")), ("svm", numeric("svm"))):
            peaks = []
            for size in (200, 2000):
                path = write(Path(folder) / f"text.{suffix}", lines, size * MB)
                peaks.append(max(cost(learn(path), env).memory for _ in range(2)))
            rows.append((f"memory on 2 GB of {suffix} beyond that on 200 MB, in MB", peaks[1] - peaks[0], "≤ 100"))
        for name, table, target in tables():
            for suffix in ("csv", "parquet"):
                peaks = []
                for times in (1, 10):
                    path = written(folder, name, suffix, table, times)
                    peaks.append(max(cost(learn(path, "--target", target), env).memory for _ in range(2)))
                what = f"memory on {name} in {suffix}, ten times as long, in MB more"
                rows.append((what, peaks[1] - peaks[0], "≤ 100"))
    return rows


def tables() -> Iterator[tuple[str, Any, str]]:
    """The tables of the repository's neighbour `shared/data`, those that are there."""
    covtype, flights = data.SHARED / "covtype.csv.xz", data.SHARED / "flights.parquet"
    if covtype.exists():
        yield "covtype", pa.csv.read_csv(pa.BufferReader(lzma.decompress(covtype.read_bytes()))), "lodgepole"
    if flights.exists():
        yield "flights", pa.parquet.read_table(flights), "late"


def written(folder: str, name: str, suffix: str, table: Any, times: int) -> str:
    """A table, some times over, as a file."""
    path = str(Path(folder) / f"{name}.{suffix}")
    if suffix == "csv":
        options = pa.csv.WriteOptions(quoting_style="needed")
        with pa.csv.CSVWriter(path, table.schema, write_options=options) as file:
            for _ in range(times):
                file.write(table)
    else:
        with pa.parquet.ParquetWriter(path, table.schema) as file:
            for _ in range(times):
                file.write(table, row_group_size=200_000)
    return path


def _drain(path: str) -> None:
    """pyarrow's own reading in bounded memory, with its columns of text encoded as dictionaries."""
    if path.endswith("csv"):
        batches = pa.dataset.dataset(path, format="csv").to_batches()
    else:
        batches = pa.parquet.ParquetFile(path).iter_batches()
    for batch in batches:
        for column in batch.columns:
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                column.dictionary_encode()


def against_pyarrow() -> list[tuple[str, float, str]]:
    """Reading and learning in units of pyarrow's reading plus bare learning: elapsed, and the processors' time."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, table, target in tables():
            for suffix in ("csv", "parquet"):
                path = written(folder, name, suffix, table, 4)

                def ours(source: Callable[[], Any]) -> None:
                    driver = Driver(rue.OGD("logistic", domain="reals", step="sqrt:0.5"))
                    for block in source():
                        driver.learn(block)

                def read(path: str = path, target: str = target) -> Iterator[Any]:
                    return (chunk.block for chunk in Data((path,), target=target).reads())

                blocks = list(read())
                jobs = {
                    "pyarrow": lambda: _drain(path),  # noqa: B023  # called before the loop goes on
                    "bare learning": lambda: ours(lambda: blocks),  # noqa: B023  # as above
                    "rue": lambda: ours(read),
                }
                elapsed, busy = _in_turns(jobs)
                print(f"  {name}.{suffix}: " + ", ".join(f"{what} {elapsed[what]:.2f} s" for what in jobs))
                for how, spent, wanted in (("", elapsed, "≤ 1.3"), ("processors, ", busy, "–")):
                    ratio = spent["rue"] / (spent["pyarrow"] + spent["bare learning"])
                    rows.append((f"{name} in {suffix}, {how}times pyarrow's reading and bare learning", ratio, wanted))
    return rows


def _in_turns(jobs: dict[str, Callable[[], object]], rounds: int = 5) -> tuple[dict[str, float], dict[str, float]]:
    """The least time that each job takes, and the least that processors spend on it."""
    elapsed, busy = dict.fromkeys(jobs, math.inf), dict.fromkeys(jobs, math.inf)
    for _ in range(rounds):
        for what, job in jobs.items():
            started, spent = time.perf_counter(), time.process_time()
            job()
            elapsed[what] = min(elapsed[what], time.perf_counter() - started)
            busy[what] = min(busy[what], time.process_time() - spent)
    return elapsed, busy


def cold_start() -> list[tuple[str, float, str]]:
    """A small file, start-up and compilation counted, with nothing compiled yet and with everything."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix, line in (("vw", b"1 |f 1:0.5 2:1\n"), ("svm", b"1 1:0.5 2:1\n"), ("csv", b"a,b,y\n1,u,1\n2,v,0\n")):
            env = {**environment(folder), "RUE_CACHE_DIR": f"{folder}/{suffix}"}
            path = Path(folder) / f"small.{suffix}"
            path.write_bytes(line)
            command = learn(str(path), *(("--target", "y") if suffix == "csv" else ()))
            rows.append((f"rue learn small.{suffix}, empty cache, seconds", cost(command, env).wall, "–"))
            warm = min(cost(command, env).wall for _ in range(4))
            rows.append((f"rue learn small.{suffix}, warm cache, seconds", warm, "–"))
    return rows
