"""The command line as a person meets it: real processes, real files, real kills."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import rue
from conftest import ROOT, many
from rue.model_file import load_model

CONTRACT = ROOT.parent / "shared" / "acceptance" / "contract.py"


def run(*args, ok=0, stdin=None, env=None):
    """A command; its exit code is checked, and that no traceback was shown."""
    done = subprocess.run(
        [sys.executable, "-m", "rue", *map(str, args)],
        capture_output=True,
        text=True,
        input=stdin,
        timeout=300,
        env={**os.environ, **(env or {})},
    )
    assert done.returncode == ok, (args, done.returncode, done.stderr[-800:])
    assert "Traceback" not in done.stderr + done.stdout
    return done


def write_svm(path, rows=400, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((rows, d)) * (rng.random((rows, d)) < 0.6), 4)
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(rows) > 0, 1, -1)
    with open(path, "w") as file:
        for row, label in zip(X, y, strict=True):
            file.write(f"{label} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row.tolist(), 1) if v) + "\n")
    return np.c_[np.zeros(rows), X], y


def read(path):
    said = json.loads(Path(path).read_text())
    said.pop("seconds", None)
    return said


@pytest.mark.skipif(not CONTRACT.exists(), reason="the acceptance checks are not beside the repository")
def test_the_contract(tmp_path):
    launcher = tmp_path / "rue"
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -m rue "$@"\n')
    launcher.chmod(0o755)
    done = subprocess.run(
        [sys.executable, CONTRACT],
        capture_output=True,
        text=True,
        env={**os.environ, "RUE": str(launcher)},
        timeout=900,
    )
    assert done.returncode == 0, done.stdout


def test_the_command_equals_the_library(tmp_path):
    X, y = write_svm(tmp_path / "s.svm")
    run("learn", tmp_path / "s.svm", "--report", tmp_path / "r.json", "--predictions", tmp_path / "p.csv", "-q")
    said = read(tmp_path / "r.json")
    from scipy import sparse

    wanted = rue.learn(sparse.csr_matrix(X), y)
    assert said["loss_total"] == wanted.loss
    assert said["mistakes"] == wanted.mistakes
    shown = wanted.certificate()
    assert said["certificate"]["alone"] == shown.alone
    assert said["certificate"]["regret_at_most"] <= shown.regret_at_most  # the command keeps witnesses
    assert said["certificate"]["units"] == "largest"
    assert np.array_equal(np.loadtxt(tmp_path / "p.csv", skiprows=1), wanted.predictions)
    assert said["features"] == 12


def test_two_passes_are_the_file_twice(tmp_path):
    write_svm(tmp_path / "s.svm")
    text = (tmp_path / "s.svm").read_text()
    (tmp_path / "twice.svm").write_text(text + text)
    run("learn", tmp_path / "s.svm", "--passes", 2, "--report", tmp_path / "a.json", "-q")
    run("learn", tmp_path / "s.svm", tmp_path / "s.svm", "--report", tmp_path / "b.json", "-q")
    run("learn", tmp_path / "twice.svm", "--report", tmp_path / "c.json", "-q")
    assert read(tmp_path / "a.json") == read(tmp_path / "b.json") == read(tmp_path / "c.json")


def test_every_format_gives_the_same_report(tmp_path):
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    X, y = write_svm(tmp_path / "s.svm")
    table = pa.table({**{f"c{j}": X[:, j] for j in range(1, 13)}, "y": y})
    pa.csv.write_csv(table, tmp_path / "s.csv")
    pa.parquet.write_table(table, tmp_path / "s.parquet")
    pa.feather.write_feather(table, tmp_path / "s.arrow", compression="uncompressed")
    with open(tmp_path / "s.jsonl", "w") as file:
        for row in table.to_pylist():
            file.write(json.dumps(row) + "\n")
    reports = []
    for name in ("s.csv", "s.parquet", "s.arrow", "s.jsonl"):
        run("learn", tmp_path / name, "--target", "y", "--report", tmp_path / "r.json", "-q")
        reports.append(read(tmp_path / "r.json"))
    assert reports[1:] == reports[:-1]
    run("learn", tmp_path / "s.svm", "--report", tmp_path / "r.json", "-q")
    assert read(tmp_path / "r.json")["loss_total"] == reports[0]["loss_total"]
    import gzip

    (tmp_path / "s.csv.gz").write_bytes(gzip.compress((tmp_path / "s.csv").read_bytes()))
    run("learn", tmp_path / "s.csv.gz", "--target", "y", "--report", tmp_path / "r.json", "-q")
    assert read(tmp_path / "r.json") == reports[0]
    run(
        "learn",
        "-",
        "--format",
        "csv",
        "--target",
        "-1",
        "--report",
        tmp_path / "r.json",
        "-q",
        stdin=(tmp_path / "s.csv").read_text(),
    )
    assert read(tmp_path / "r.json") == reports[0]


def test_killed_and_resumed_is_uninterrupted(tmp_path):
    """kill -9 at random moments: weights, report and predictions come out the same to the last bit."""
    write_svm(tmp_path / "s.svm", rows=30_000)
    env = {"RUE_PIECE": "20000"}
    made = ["--predictions", tmp_path / "p.csv", "--report", tmp_path / "r.json", "--model", tmp_path / "m.rue", "-q"]
    made += ["--checkpoint", tmp_path / "c.rue", "--every", "1000"]
    run("learn", tmp_path / "s.svm", *made, env=env)
    wanted = read(tmp_path / "r.json"), (tmp_path / "p.csv").read_bytes(), load_model(tmp_path / "m.rue")
    lot = random.Random(0)
    kills = finished = 0
    while kills < many(15, 200):
        for name in ("p.csv", "p.csv.part", "r.json", "m.rue", "c.rue"):
            (tmp_path / name).unlink(missing_ok=True)
        while True:
            resume = ["--resume", tmp_path / "c.rue"] if (tmp_path / "c.rue").exists() else []
            process = subprocess.Popen(
                [sys.executable, "-m", "rue", "learn", *map(str, [tmp_path / "s.svm", *made, *resume])],
                env={**os.environ, **env},
                stderr=subprocess.PIPE,
            )
            deadline = time.monotonic() + lot.uniform(0.5, 4.0)
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            if process.poll() is None:
                process.kill()
                kills += 1
            error = process.communicate()[1].decode()
            if process.returncode == 0:
                break
            assert process.returncode == -signal.SIGKILL, error
        finished += 1
        found = read(tmp_path / "r.json"), (tmp_path / "p.csv").read_bytes(), load_model(tmp_path / "m.rue")
        assert found[0] == wanted[0]
        assert found[1] == wanted[1]
        assert found[2].learner == wanted[2].learner
        assert found[2].learner.point.tobytes() == wanted[2].learner.point.tobytes()
    assert finished


def test_resuming_needs_the_same_data(tmp_path):
    write_svm(tmp_path / "s.svm", rows=2000)
    text = (tmp_path / "s.svm").read_text().splitlines(keepends=True)
    bad = [*text[:1500], "1 3:oops\n", *text[1500:]]
    (tmp_path / "s.svm").write_text("".join(bad))
    done = run("learn", tmp_path / "s.svm", "--model", tmp_path / "m.rue", "-q", ok=1)
    assert "line 1501" in done.stderr
    assert "oops" in done.stderr
    assert load_model(tmp_path / "m.rue").learner.t == 1500
    (tmp_path / "s.svm").write_text("".join(text))  # mended
    run("learn", tmp_path / "s.svm", "--resume", tmp_path / "m.rue", "--report", tmp_path / "r.json", "-q")
    run("learn", tmp_path / "s.svm", "--report", tmp_path / "whole.json", "-q")
    assert read(tmp_path / "r.json") == read(tmp_path / "whole.json")
    (tmp_path / "s.svm").write_text("".join(text[1:]))
    assert "changed" in run("learn", tmp_path / "s.svm", "--resume", tmp_path / "m.rue", ok=1).stderr
    assert "same data" in run("learn", tmp_path / "t.svm", "--resume", tmp_path / "m.rue", ok=2).stderr
    assert (
        "--loss contradicts"
        in run("learn", tmp_path / "s.svm", "--resume", tmp_path / "m.rue", "--loss", "hinge", ok=2).stderr
    )


def test_a_pipe_is_learnt_as_it_comes(tmp_path):
    write_svm(tmp_path / "s.svm", rows=3000)
    process = subprocess.Popen(
        [sys.executable, "-m", "rue", "learn", "-", "--format", "svmlight", "--report", str(tmp_path / "r.json")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write((tmp_path / "s.svm").read_text() + "1 2:3")  # the last line is not finished
    process.stdin.flush()
    line = ""
    while "3,000" not in line:  # the progress table has a row for them though the pipe stays open
        line = process.stderr.readline()
        assert line
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped by Ctrl-C" in out
    assert read(tmp_path / "r.json")["examples"] == 3000


def test_predicting(tmp_path):
    write_svm(tmp_path / "s.svm")
    run("learn", tmp_path / "s.svm", "--model", tmp_path / "m.rue", "-q")
    done = run("predict", tmp_path / "m.rue", tmp_path / "s.svm", "-o", tmp_path / "p.csv")
    assert "400 labelled examples: mean loss" in done.stderr
    scores = np.loadtxt(tmp_path / "p.csv", skiprows=1)
    shown = run("predict", tmp_path / "m.rue", tmp_path / "s.svm", "--as", "probability").stdout.split()
    assert shown[0] == "prediction"
    assert np.allclose(np.array(shown[1:], dtype=float), 1 / (1 + np.exp(-scores)))
    words = run("predict", tmp_path / "m.rue", tmp_path / "s.svm", "--as", "label").stdout.split()[1:]
    assert all((float(word) > 0) == (score > 0) for word, score in zip(words, scores, strict=True))


def test_certifying_and_playing(tmp_path):
    write_svm(tmp_path / "s.svm")
    (tmp_path / "p.txt").write_text("\n".join(["0.5"] * 400))
    done = run(
        "certify",
        tmp_path / "s.svm",
        "--predictions",
        tmp_path / "p.txt",
        "--loss",
        "logistic",
        "--radius",
        3,
        "--as",
        "probability",
    )
    assert "no linear model of norm ≤ 3" in done.stdout
    assert "1 of 400" not in done.stdout
    (tmp_path / "p.txt").write_text("\n".join(["0.5"] * 399))
    done = run(
        "certify", tmp_path / "s.svm", "--predictions", tmp_path / "p.txt", "--loss", "logistic", "--radius", 3, ok=1
    )
    assert "399 predictions" in done.stderr
    assert "C2: every learner" in run("play", "ogd", "orthogonal:3", "--domain", "ball:1", "--rounds", 100).stdout
    assert "holds" in run("theorems", "C4", "--run").stdout


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["learn"], 2, "DATA"),
        (["lern"], 2, "lern"),
        (["learn", "nothing.svm"], 1, "there is no file nothing.svm"),
        (["learn", "x.weird"], 1, "--format"),
        (["learn", "-"], 1, "--format"),
        (["learn", "x.csv"], 2, "--target"),
        (["learn", "x.svm", "--target", "y"], 2, "tables"),
        (["learn", "x.svm", "--learner", "perceptron", "--loss", "hinge"], 2, "takes no --loss"),
        (["learn", "x.svm", "--task", "guess"], 2, "--task"),
        (["learn", "x.svm", "--every", "often"], 2, "--every"),
        (["learn", "x.svm", "--bad", "ignore"], 2, "bad"),
        (["learn", "x.svm", "--model", "no/such/folder/m.rue"], 1, "no folder"),
        (["inspect", "nothing.rue"], 1, "nothing.rue"),
        (["play", "ogd", "nobody"], 2, "nobody"),
        (["theorems", "Z9"], 2, "Z9"),
    ],
)
def test_wrong_usage_is_one_sentence(args, code, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*args, ok=code)
    assert words in done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("rue: ")]
    assert len(said) <= 1


def test_help_teaches_by_example():
    for command in ("learn", "predict", "certify", "audit", "play", "theorems", "inspect"):
        shown = run(command, "--help").stdout
        assert re.search(rf"rue {command}", shown), command
