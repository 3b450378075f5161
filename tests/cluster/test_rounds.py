"""Rounds to the end of the data: every executor gives the same bytes, killed or not, resumed or not."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas
import pytest

import rue
from conftest import SOAK
from rue.cluster import learn
from rue.cluster.sharded import Watcher, learn_sharded
from rue.models.file import to_bytes
from rue.runs.driver import Driver
from rue.streams.data import Data


@pytest.fixture(autouse=True)
def small(monkeypatch, interpreted):
    """Small units, here and in worker processes, which must not wait for a compiler."""
    monkeypatch.setattr("rue.streams.units.UNIT", 2000)
    monkeypatch.setenv("RUE_UNIT", "2000")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


@pytest.fixture
def path(tmp_path):
    numbers = np.random.default_rng(0)
    X = numbers.normal(size=(900, 2))
    y = np.where(X @ [1.0, -1.0] + 0.3 * numbers.normal(size=900) > 0, "yes", "no")
    file = tmp_path / "data.csv"
    pandas.DataFrame({"x": X[:, 0], "z": X[:, 1], "word": numbers.choice(list("abc"), 900), "y": y}).to_csv(
        file, index=False
    )
    return str(file)


def digest(result):
    return hashlib.sha256(to_bytes(result.model)).hexdigest()


SETTINGS = {"target": "y", "shards": 5, "round": 40, "learner": "ogd", "bits": 8}


def test_inline_and_local_have_the_same_bytes(path):
    inline = learn(path, on="inline", **SETTINGS)
    assert inline.examples == inline.model.learner.t == 900
    assert digest(learn(path, on="local", workers=2, **SETTINGS)) == digest(inline)
    assert inline.report().fields["cluster"]["shards"] == 5
    assert "2.24 times that of one learner" in inline.report().fields["cluster"]["words"]
    assert inline.certificate(1.0).loss_total == pytest.approx(inline.loss)
    assert inline.risk == pytest.approx(inline.loss / 900)


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="RUE_SOAK=1 runs it")
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("learner", ["ogd", None, "adagrad"])
def test_any_number_of_workers_has_the_same_bytes(path, workers, learner):
    settings = {**SETTINGS, "learner": learner}
    assert digest(learn(path, on="local", workers=workers, **settings)) == digest(learn(path, on="inline", **settings))


class Killer(Watcher):
    """Kills a worker process now and then, in the middle of its steps and between two."""

    def __init__(self, times):
        self.left, self.random, self.killed = times, random.Random(0), 0

    def outcome(self, outcome):
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        workers = [int(pid) for pid in children if b"rue.cluster.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        if self.left and workers and self.random.random() < 0.5:
            os.kill(self.random.choice(workers), signal.SIGKILL)
            self.left, self.killed = self.left - 1, self.killed + 1


def test_killed_workers_change_nothing(path):
    killer = Killer(20 if SOAK else 2)
    round_ = 10 if SOAK else 100
    stream = Data((path,), target="y", bits=8)
    settings = {"shards": 5, "most": round_}
    result = learn_sharded(stream, Driver("ogd"), on="local", workers=2, watcher=killer, **settings)
    inline = learn_sharded(Data((path,), target="y", bits=8), Driver("ogd"), on="inline", **settings)
    assert killer.killed == (20 if SOAK else 2)
    assert digest(result) == digest(inline)


class Stopper(Watcher):
    """Stops after so many rounds."""

    def __init__(self, rounds):
        self.rounds = rounds

    def round(self, standing):
        self.rounds -= 1

    def stopped(self):
        return self.rounds == 0


def test_resumed_after_any_round_it_has_the_same_bytes(path, tmp_path):
    commit = str(tmp_path / "commit.rue")
    settings = {"shards": 5, "most": 40, "on": "inline"}
    whole = learn_sharded(Data((path,), target="y", bits=8), Driver("ogd"), **settings)
    for rounds in (1, 3):
        stream = Data((path,), target="y", bits=8)
        learn_sharded(stream, Driver("ogd"), checkpoint=commit, watcher=Stopper(rounds), **settings)
        again = learn(path, shards=5, on="inline", resume=commit)
        assert again.rounds == whole.rounds
        assert digest(again) == digest(whole)


def test_a_commit_is_refused_where_it_does_not_belong(path, tmp_path):
    commit, model = str(tmp_path / "commit.rue"), str(tmp_path / "model.rue")
    settings = {"shards": 5, "most": 40, "on": "inline"}
    stream = Data((path,), target="y", bits=8)
    learn_sharded(stream, Driver("ogd"), checkpoint=commit, watcher=Stopper(1), **settings)
    with pytest.raises(rue.SettingsError, match="was stopped with 5 shards, not 4: give as many"):
        learn(path, shards=4, on="inline", resume=commit)
    with pytest.raises(rue.SettingsError, match="was started with rounds of 40 examples: leave round"):
        learn(path, shards=5, on="inline", resume=commit, round=41)
    with pytest.raises(rue.SettingsError, match="learner contradicts resume, which has its settings"):
        learn(path, shards=5, on="inline", resume=commit, learner="ogd")
    rue.save(rue.learn([[1.0], [2.0]], [0, 1], learner="ogd"), model)
    with pytest.raises(
        (rue.SettingsError, rue.DataError), match=r"is no commit of a run over shards|learnt from arrays"
    ):
        learn(path, shards=5, on="inline", resume=model)
    with open(path, "a") as file:
        file.write("1.0,1.0,a,yes\n")
    with pytest.raises(rue.DataError, match="was stopped in other data, or they have changed since"):
        learn(path, shards=5, on="inline", resume=commit)


def test_a_bad_row_stops_the_run_after_what_was_merged(path, inside, tmp_path):
    lines = Path(path).read_text().splitlines()
    lines[700] = "1,2,3,4,5"
    Path(path).write_text("\n".join([*lines, ""]))
    with pytest.raises(rue.DataError, match=r"from byte [\d,]+, line \d+: 5 fields instead of 4"):
        learn(path, on="inline", **SETTINGS)
    model = tmp_path / "m.rue"
    options = ["--target", "y", "--learner", "ogd", "--shards", 5, "--on", "inline", "--round", 40]
    said = inside("learn", path, *options, "--model", model, "-q", ok=1)
    assert "5 fields instead of 4" in said.err
    assert 0 < rue.load(model).learner.t < 900
    assert "examples     899 (1 skipped)" in inside("learn", path, *options, "--bad", "skip", "-q").out


def test_the_command_line(path, inside, tmp_path):
    model, report = tmp_path / "m.rue", tmp_path / "r.json"
    options = ["--target", "y", "--learner", "ogd", "--bits", 8]
    said = inside("learn", path, *options, "--shards", 5, "--on", "inline", "--round", 40, "--model", model)
    assert "5 shards, merged 5 times" in said.out
    assert "slowest" in said.err
    same = learn(path, on="inline", **SETTINGS)
    assert rue.load(model).learner == same.model.learner
    assert "900 examples of" in inside("inspect", model).out
    assert "1,800" in inside("learn", path, "--resume", model, "--report", report, "-q").out
    for wrong, message in [
        (["--on", "inline"], "--on is about shards: say --shards M too"),
        (["--shards", 2, "--predictions", tmp_path / "p.csv"], "--predictions needs one sequence of examples"),
        (["--shards", 2, "--on", "moon"], "not on 'moon'"),
        (["--shards", 2, "--on", "inline", "--workers", 2], "inline has one worker, not 2"),
    ]:
        assert message in inside("learn", path, *options, *wrong, ok=2).err


def test_a_default_that_is_not_that_of_one_pass_is_said(path, inside, tmp_path):
    lines = Path(path).read_text().splitlines(keepends=True)
    few = tmp_path / "few.csv"
    few.write_text("".join(lines[:60]))
    options = [few, "--target", "y", "--bits", 8, "--shards", 2, "--on", "inline"]
    said = inside("learn", *options)
    assert "shards learn the linear mixture: over maps (--maps) they lost" in said.err
    assert "Mixture(" in said.out
    for asked in (["--linear"], ["--maps"], ["--learner", "ogd"], ["--step", "theory", "--domain", "ball:1"]):
        said = inside("learn", *options, *asked)
        assert "linear mixture:" not in said.out + said.err


def test_a_killed_driver_is_resumed(path, inside, tmp_path):
    commit, model, whole = tmp_path / "c.rue", tmp_path / "m.rue", tmp_path / "w.rue"
    options = ["--target", "y", "--learner", "ogd", "--bits", "8", "--shards", "5", "--round", "20"]
    command = [sys.executable, "-m", "rue", "learn", path, *options, "--workers", "2", "-q"]
    for attempt in range(3 if SOAK else 1):
        resumed = ["--resume", str(commit)] if attempt else []
        process = subprocess.Popen([*command, "--checkpoint", str(commit), "--model", str(model), *resumed])
        before, until = commit.stat().st_mtime_ns if attempt else 0, time.monotonic() + 120
        while time.monotonic() < until and process.poll() is None:
            if commit.exists() and commit.stat().st_mtime_ns != before:
                break
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not model.exists()
    inside("learn", path, "--shards", 5, "--on", "inline", "--resume", commit, "--model", model, "-q")
    inside("learn", path, *options, "--on", "inline", "--model", whole, "-q")
    assert model.read_bytes() == whole.read_bytes()
    assert threading.active_count() < 50


class Appender(Watcher):
    """Writes another row to a file after the first round."""

    def __init__(self, path):
        self.path = path

    def round(self, standing):
        if standing.round == 1:
            with open(self.path, "a") as file:
                file.write("1.0,1.0,a,yes\n")


@pytest.mark.parametrize("on", ["inline", "local"])
def test_a_file_that_changes_between_rounds_is_refused(path, on):
    stream, kept = Data((path,), target="y", bits=8), []
    with pytest.raises(rue.DataError, match=r"data\.csv has [\d,]+ bytes and had [\d,]+ when the run began: "):
        learn_sharded(
            stream, Driver("ogd"), shards=5, most=40, on=on, workers=1, watcher=Appender(path), keep=kept.append
        )
    assert kept[-1].rounds >= 1


def test_few_rows_and_empty_files(path, tmp_path):
    """One row; files without rows; fewer units than shards."""
    lines = Path(path).read_text().splitlines(keepends=True)
    folder = tmp_path / "files"
    folder.mkdir()
    for name, rows in (("a", lines[:2]), ("b", lines[:1]), ("c", [lines[0], lines[3]])):
        (folder / f"{name}.csv").write_text("".join(rows))
    settings = {**SETTINGS, "on": "inline", "task": "classify"}
    assert learn(str(folder / "a.csv"), **settings).examples == 1
    result = learn(str(folder), **settings)
    assert result.examples == 2
    assert [one[0] for one in result.standing.learnt] == [1, 0, 1, 0, 0]
    with pytest.raises(rue.DataError):
        learn(str(folder / "b.csv"), **settings)
    (folder / "d.csv").write_text("")
    with pytest.raises(rue.DataError, match=r"d\.csv"):
        learn(str(folder / "d.csv"), **settings)


def test_ctrl_c_saves_what_was_learnt(path, inside, tmp_path):
    """Exit code 130; the checkpoint and the model that was asked for go on to the bytes of an uninterrupted run."""
    commit, model, whole = tmp_path / "c.rue", tmp_path / "m.rue", tmp_path / "w.rue"
    options = ["--target", "y", "--learner", "ogd", "--bits", "8", "--shards", "5", "--round", "8"]
    files = ["--checkpoint", str(commit), "--model", str(model)]
    command = [sys.executable, "-m", "rue", "learn", path, *options, "--on", "inline"]
    process = subprocess.Popen([*command, *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None and not commit.exists():
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "stopped by Ctrl-C" in out
    assert "Traceback" not in err
    inside("learn", path, "--shards", 5, "--on", "inline", "--resume", model, "--model", model, "-q")
    inside("learn", path, *options, "--on", "inline", "--model", whole, "-q")
    assert model.read_bytes() == whole.read_bytes()
