"""The command line as a person meets it: real processes, real files, real signals."""

import bz2
import gzip
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import rue
from commands import read, run, wait_until, write_svm
from conftest import ROOT
from rue.ledger import EXAMPLES
from rue.models.file import load_model
from rue.streams import Labels

CONTRACT = ROOT.parent / "shared" / "acceptance" / "contract.py"


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
    losses = []  # of the linear mixture: maps go by the numbers of features, which begin with 1 in svmlight
    for name, target in (("s.csv", ("--target", "y")), ("s.svm", ())):
        run("learn", tmp_path / name, *target, "--linear", "--report", tmp_path / "r.json", "-q")
        losses.append(read(tmp_path / "r.json")["loss_total"])
    assert losses[0] == losses[1]
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
    process.wait(timeout=600)  # before the pipe is closed, which would finish the last line
    out, _ = process.communicate()
    assert process.returncode == 130
    assert "stopped by Ctrl-C" in out
    assert read(tmp_path / "r.json")["examples"] == 3000


def test_a_pipe_of_one_class_is_learnt_as_it_comes(tmp_path):
    """Its checkpoint has the rows before a second class says that theirs is +1; the end is that of a file."""
    first = "".join(f"{x},spam\n" for x in (1.5, 2.5, 3.0, 2.0, 0.5))
    more = "".join(f"{x},{name}\n" for x, name in [(-1.0, "ham"), (2.0, "spam"), (-2.0, "ham")])
    (tmp_path / "s.csv").write_text("x,y\n" + first + more)
    options = ["--target", "y", "--report", tmp_path / "r.json", "--model", tmp_path / "m.rue"]
    run("learn", tmp_path / "s.csv", *options, "-q")
    alone, model = read(tmp_path / "r.json"), load_model(tmp_path / "m.rue")
    checkpoint = tmp_path / "c.rue"
    command = [sys.executable, "-m", "rue", "learn", "-", "--format", "csv", *options]
    command += ["--checkpoint", checkpoint, "--every", "1"]
    with subprocess.Popen(
        list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write("x,y\n" + first)
        process.stdin.flush()
        wait_until(lambda: checkpoint.exists() and load_model(checkpoint).evidence.ledger.sums[EXAMPLES] == 5)
        assert load_model(checkpoint).labels == Labels("classify", "spam", None)
        _, shown = process.communicate(more, timeout=600)
    assert process.returncode == 0
    assert "learnt as −1" in shown
    assert read(tmp_path / "r.json") == alone
    piped = load_model(tmp_path / "m.rue")
    assert piped.learner == model.learner
    assert piped.labels == model.labels == Labels("classify", "ham", "spam")


def test_predicting(tmp_path):
    write_svm(tmp_path / "s.svm")
    run("learn", tmp_path / "s.svm", "--model", tmp_path / "m.rue", "-q")
    done = run("predict", tmp_path / "m.rue", tmp_path / "s.svm", "-o", tmp_path / "p.csv")
    assert "400 labelled examples: mean loss" in done.stderr
    scores = np.loadtxt(tmp_path / "p.csv", skiprows=1)
    shown = run("predict", tmp_path / "m.rue", tmp_path / "s.svm", "--as", "probability").stdout.splitlines()
    assert shown[0] == "probability of 1"
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
    assert "nothing is proved about linear models of norm ≤ 3" in done.stdout
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
        (["learn", "-"], 2, "for example --format csv"),
        (["learn", "x.svm", "--format", "xls"], 2, "there is no format 'xls'"),
        (["predict", "m.rue", "x.svm", "--as", "xls"], 2, "--as"),
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
def test_wrong_usage_is_one_sentence(args, code, words, tmp_path, monkeypatch, inside):
    monkeypatch.chdir(tmp_path)
    shown = inside(*args, ok=code).err
    assert words in shown
    said = [line for line in shown.splitlines() if line.startswith("rue: ")]
    assert len(said) <= 1


def test_help_teaches_by_example(inside):
    for command in ("learn", "predict", "certify", "audit", "play", "theorems", "inspect", "weights"):
        shown = inside(command, "--help").out
        assert re.search(rf"rue {command}", shown), command


# A newcomer's files.

CLICKS = "colour,größe,when,clicked\n" + "red,1.5,2024-01-05,yes\nblue,,2024-02-06,no\n" * 20


@pytest.mark.parametrize(
    ("name", "content", "args", "words"),
    [
        ("t.csv", "", ["--target", "y"], "t.csv: the file is empty"),
        ("t.csv", "a,y\n", ["--target", "y"], "there are no examples to learn in t.csv"),
        ("t.csv", CLICKS, ["--target", "clickt"], "t.csv: there is no target 'clickt': did you mean 'clicked'?"),
        ("t.csv", "a,a,y\n1,2,0\n", ["--target", "y"], "t.csv: two columns are called 'a'"),
        ("t.csv", "a,y\n1,0.5\n2,inf\n", ["--target", "y"], "line 3, column y: the label is an infinity (--bad skip"),
        ("t.csv", "a,y\n1,\n2,\n", ["--target", "y"], "no example has a label in t.csv"),
        (
            "t.csv",
            "a,y\n1,a\n2,b\n3,c\n",
            ["--target", "y", "--learner", "ogd"],
            "more than two classes ('a', 'b', 'c')",
        ),
        ("t.csv", CLICKS, ["--target", "clicked", "--loss", "square"], "numbers, not words such as yes"),
        ("t.csv", CLICKS, ["--target", "when"], "must hold numbers, booleans or words"),
        ("t.csv", b"\0\1\2\xff" * 100, ["--target", "y"], "t.csv: this is not text"),
        ("t.csv", b"a,y\n1,0\n2,1\n\xe9,\xe9,0\n", ["--target", "y"], "t.csv, line 4: 3 fields instead of 2"),
        ("t.csv", gzip.compress(CLICKS.encode(), mtime=0), ["--target", "clicked"], "compressed (gz)"),
        ("t.svm", bz2.compress(b"1 1:1\n"), [], "t.svm: the data are compressed (bz2)"),
        ("t.jsonl", lzma.compress(b"{}"), ["--target", "y"], "t.jsonl: the data are compressed (xz)"),
        ("t.csv.gz", b"no gzip", ["--target", "y"], "t.csv.gz: reading stops after line 0"),
        ("t.parquet", b"PAR1" * 9, ["--target", "y"], "t.parquet cannot be read as Parquet"),
        ("t.parquet.gz", b"", ["--target", "y"], "unpack it first"),
        ("t.arrow", b"ARROW1" * 9, ["--target", "y"], "t.arrow cannot be read as Arrow IPC"),
        ("t.jsonl", "[1]\n", ["--target", "y"], "t.jsonl: the first lines hold no JSON object"),
        ("t.csv", CLICKS, ["--target", "clicked", "--report", "."], ". cannot be written: it is a folder"),
    ],
)
def test_what_is_wrong_is_said_on_one_line(name, content, args, words, tmp_path, monkeypatch, inside):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    said = inside("learn", name, *args, "-q", ok=1)
    assert words in said.err
    assert said.err.startswith("rue: ")
    assert said.err.count("\n") == 1
    assert not list(tmp_path.glob(".*.part"))


def test_what_makes_no_sense_is_said_before_learning(tmp_path, monkeypatch, inside):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(CLICKS)
    given = ["learn", "t.csv", "--target", "clicked", "-q"]
    assert ".png, .svg or .pdf" in inside(*given, "--plot", "t.bmp", ok=2).err
    assert "radius must be positive" in inside(*given, "--radius", "-1", ok=2).err
    assert "pipe (-) cannot be one of several" in inside("learn", "-", "t.csv", "--target", "clicked", ok=2).err
    Path("empty").mkdir()
    Path("empty/notes").write_text("nothing to learn")
    said = inside("learn", "empty", "--target", "clicked", ok=1).err
    assert said == "rue: empty is a folder with no file in it whose suffix tells a format.\n"


def test_a_newcomers_table(tmp_path, monkeypatch, inside):
    monkeypatch.chdir(tmp_path)
    Path("größe 1.csv").write_text(CLICKS)
    said = inside("learn", "größe 1.csv", "--target", "clicked", "--model", "mödel.rue", "-q").out
    assert "−1 is 'no', +1 is 'yes'" in said
    shown = inside("inspect", "mödel.rue").out
    assert "größe=" in shown
    assert "colour=red" in shown
    assert inside("predict", "mödel.rue", "größe 1.csv", "--as", "label").out.split()[:3] == ["prediction", "yes", "no"]
    Path("lines.csv").write_text('note,clicked\n"two\nlines",yes\nother,no\n')
    inside("learn", "lines.csv", "--target", "clicked", "--model", "l.rue", "-q")
    assert "'note=two\\nlines'" in inside("inspect", "l.rue").out
    Path("one.csv").write_text("note,clicked\nother,no\n")
    assert inside("predict", "l.rue", "one.csv").err.startswith("1 labelled example: mean loss")
    Path("t.svm").write_text("1 1:1\n0 2:1\n")
    assert "−1 is 0, +1 is 1" in inside("learn", "t.svm", "--linear", "--model", "s.rue", "-q").out
    assert inside("predict", "s.rue", "t.svm", "--as", "label").out.split() == ["prediction", "1", "0"]
    assert "learnt from svmlight data" in inside("predict", "s.rue", "größe 1.csv", ok=1).err
    Path("other.csv").write_text("a,b\n1,2\n")
    assert "'colour' is missing" in inside("predict", "mödel.rue", "other.csv", ok=1).err
    monkeypatch.setenv("COLUMNS", "40")
    said = inside("learn", "t.svm", "-q").out
    assert max(map(len, said[said.index("no linear model") :].splitlines()[:4])) <= 40


def test_a_closed_pipe_is_no_accident(tmp_path):
    write_svm(tmp_path / "s.svm")
    run("learn", tmp_path / "s.svm", "--model", tmp_path / "m.rue", "-q")
    command = f"{sys.executable} -m rue predict {tmp_path}/m.rue {tmp_path}/s.svm | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=600)
    assert done.stdout == "prediction\n"
    assert "Traceback" not in done.stderr
    assert "rue:" not in done.stderr


def test_arrow_through_a_pipe(tmp_path):
    import pyarrow as pa

    X, y = write_svm(tmp_path / "s.svm")
    table = pa.table({**{f"c{j}": X[:, j] for j in range(1, 13)}, "y": y})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    told = ["--format", "ipc", "--target", "y", "--report", str(tmp_path / "r.json"), "-q"]
    command = [sys.executable, "-m", "rue", "learn", "-", *told]
    subprocess.run(command, input=sink.getvalue().to_pybytes(), check=True, capture_output=True, timeout=600)
    assert read(tmp_path / "r.json")["loss_total"] == rue.learn(table, "y").loss


@pytest.mark.parametrize("wait", [0.0, 0.2, 0.6])
def test_ctrl_c_before_anything_came(wait, tmp_path):
    """As soon as the program listens; a pipe that never says anything."""
    command = [sys.executable, "-m", "rue", "learn", "-", "--format", "svmlight", "--report", str(tmp_path / "r.json")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    caught = f"/proc/{process.pid}/status"
    while not int(re.search(r"SigCgt:\s*(\w+)", Path(caught).read_text())[1], 16) >> (signal.SIGTERM - 1) & 1:
        time.sleep(0.01)
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=600)
    assert process.returncode == 130
    assert b"nothing was learnt" in out or error == b"rue: stopped by Ctrl-C.\n"  # before it had begun to learn
    assert b"Traceback" not in error
