"""Stopped at any moment and gone on with, in every format: the end is the same to the last bit."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from commands import read
from conftest import many
from formats import WRITERS, svmlight, table, vw, write
from rue.models.file import load_model

SMALL = {"RUE_PIECE": "20000"}
"""So that a small file has many chunks."""


def start(folder, args):
    command = [sys.executable, "-m", "rue", "learn", *map(str, args)]
    return subprocess.Popen(command, cwd=folder, env={**os.environ, **SMALL}, stderr=subprocess.PIPE)


def wait_for_checkpoints(path, count, process):
    """Until a file has been replaced so many times, or the process has ended."""
    before = None
    while process.poll() is None and count:
        now = path.stat().st_mtime_ns if path.exists() else None
        count -= now != before and before is not None
        before = now
        time.sleep(0.001)


def results(folder):
    return read(folder / "r.json"), (folder / "p.csv").read_bytes(), load_model(folder / "m.rue")


@pytest.mark.parametrize(
    ("name", "kills", "options"),
    [
        ("s.svm", 3, ["--every", "500"]),
        ("s.vw.gz", 2, ["--every", "0.01s"]),
        ("s.csv", 2, ["--every", "500"]),
        ("s.csv.zst", 2, ["--every", "500", "--passes", "2"]),
        ("s.parquet", 2, ["--every", "500"]),
        ("s.arrow", 2, ["--every", "0.01s", "--passes", "2"]),
        ("s.jsonl.xz", 2, ["--every", "500"]),
    ],
)
def test_killed_and_resumed_is_uninterrupted(name, kills, options, tmp_path):
    """kill -9 after some checkpoints, or at the start: weights, report and predictions are the same to the last bit."""
    files = [write(tmp_path / f"{i}{name}", table(rows, seed=i)) for i, rows in enumerate((5000, 3000))]
    made = ["--predictions", "p.csv", "--report", "r.json", "--model", "m.rue", "-q", "--checkpoint", "c.rue", *options]
    made += ["--target", "y"] if WRITERS[files[0].suffixes[0]] not in (svmlight, vw) else []
    process = start(tmp_path, [*files, *made])
    assert process.communicate()[1] == b""
    wanted = results(tmp_path)
    assert wanted[0]["examples"] == (16_000 if "--passes" in options else 8000)
    lot = random.Random(0)
    done, finished, resumed = 0, 0, 0
    while done < many(kills, 29):
        for old in ("p.csv", "r.json", "m.rue", "c.rue"):
            (tmp_path / old).unlink(missing_ok=True)
        for left in tmp_path.glob(".*.part"):  # by a kill before the first checkpoint, or while saving
            left.unlink()
        while True:
            going_on = (tmp_path / "c.rue").exists()
            again = ["--resume", "c.rue"] if going_on else []
            again += made[: -2 if "--target" in made and going_on else None]
            if going_on and "--passes" in again:
                del again[again.index("--passes") : again.index("--passes") + 2]
            process = start(tmp_path, [*files, *again])
            if done < many(kills, 29):
                if done % 3 < 2:
                    wait_for_checkpoints(tmp_path / "c.rue", lot.randrange(1, 8), process)
                time.sleep(lot.uniform(0.0, 0.01 if done % 3 < 2 else 0.5))
                if process.poll() is None:
                    process.kill()
                    done += 1
            error = process.communicate()[1].decode()
            resumed += going_on
            if process.returncode == 0:
                break
            assert process.returncode == -signal.SIGKILL, error
        finished += 1
        found = results(tmp_path)
        assert found[0] == wanted[0]
        assert found[1] == wanted[1]
        assert found[2].learner == wanted[2].learner
        assert found[2].learner.point.tobytes() == wanted[2].learner.point.tobytes()
        assert found[2].names == wanted[2].names
        assert (found[2].course.t, found[2].course.seen) == (wanted[2].course.t, wanted[2].course.seen)
        assert np.array(found[2].course.losses).tobytes() == np.array(wanted[2].course.losses).tobytes()
        assert np.array(found[2].course.weights).tobytes() == np.array(wanted[2].course.weights).tobytes()
    assert finished
    assert resumed


@pytest.mark.parametrize(
    "name", ["s.svm", "s.vw.bz2", "s.csv", "s.csv.gz", "s.jsonl", "s.parquet", "s.arrow", "s.ipc.zst"]
)
def test_resuming_needs_the_same_data(name, tmp_path, inside):
    rows, wrong = 3000, 2600
    path = write(tmp_path / name, table(rows, wrong))
    tabular = WRITERS[path.suffixes[0]] not in (svmlight, vw)
    target = ["--target", "y"] if tabular else []
    made = ["--model", tmp_path / "m.rue", "--predictions", tmp_path / "p.csv", "-q"]
    stopped = inside("learn", path, *target, *made, ok=1).err
    assert name in stopped
    assert any(f"line {line}" in stopped for line in (wrong + 1, wrong + 2)), stopped
    assert load_model(tmp_path / "m.rue").learner.t == wrong
    assert len((tmp_path / "p.csv").read_text().split()) == wrong + 1

    # Going on where it stopped, passing over the row that stopped it.
    resume = ["--resume", tmp_path / "m.rue", "-q", "--report", tmp_path / "r.json"]
    inside("learn", path, *resume, "--bad", "skip")
    whole = ["--report", tmp_path / "whole.json", "--model", tmp_path / "whole.rue", "-q"]
    inside("learn", path, *target, "--bad", "skip", *whole)
    assert read(tmp_path / "r.json") == read(tmp_path / "whole.json")
    assert read(tmp_path / "r.json")["examples"] == rows - 1

    # What comes after the place may change where formats have one: mended, longer.
    if path.suffixes[0] not in (".parquet", ".arrow", ".ipc"):
        write(path, table(rows))
        inside("learn", path, *resume)
        inside("learn", path, *target, *whole)
        assert read(tmp_path / "r.json") == read(tmp_path / "whole.json")

    # What comes before may not.
    for changed in (table(rows, seed=1), table(rows).slice(1), table(1000), late_change(rows)):
        write(path, changed)
        refused = inside("learn", path, *resume, ok=1).err
        assert refused.count("\n") == 1
        assert "changed" in refused or "shorter" in refused or "ends" in refused
    other = write(tmp_path / f"other{name}", table(rows))
    assert "same data" in inside("learn", other, *resume, ok=2).err
    path.unlink()
    assert "there is no file" in inside("learn", path, *resume, ok=1).err


def late_change(rows):
    """The same table but for one value shortly before the place."""
    made = table(rows)
    column = made.column("c0").to_numpy().copy()
    column[2500] += 1.0
    return made.set_column(0, "c0", pa.array(column))


def test_settings_come_from_the_model(tmp_path, inside):
    path = write(tmp_path / "s.csv", table(500))
    inside("learn", path, "--target", "y", "--model", tmp_path / "m.rue", "-q")
    others = ["--loss hinge", "--learner ogd", "--target c0", "--step sqrt:1", "--weight c0", "--drop c1", "--bits 8"]
    for option in [*others, "--category c1", "--task regress", "--no-intercept"]:
        refused = inside("learn", path, "--resume", tmp_path / "m.rue", *option.split(), ok=2).err
        assert f"{option.split()[0]} contradicts --resume" in refused
    inside("learn", path, "--resume", tmp_path / "m.rue", "--target", "y", "-q")  # which is no contradiction
    inside("learn", path, "--resume", tmp_path / "m.rue", "--report", tmp_path / "r.json", "-q")  # finished: once more
    assert read(tmp_path / "r.json")["examples"] == 1000


def test_a_checkpoint_at_the_end_learns_nothing_more(tmp_path, inside):
    path = write(tmp_path / "s.csv", table(500))
    kept = ["--checkpoint", tmp_path / "c.rue", "--report", tmp_path / "r.json", "-q"]
    inside("learn", path, "--target", "y", *kept)
    wanted = read(tmp_path / "r.json")
    inside("learn", path, "--resume", tmp_path / "c.rue", *kept, "--model", tmp_path / "m.rue")
    assert read(tmp_path / "r.json") == wanted
    assert load_model(tmp_path / "m.rue").learner.t == 500
