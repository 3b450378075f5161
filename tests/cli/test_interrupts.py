"""Ctrl-C and SIGTERM at any moment, in real processes: no traceback, and what was asked for is saved."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import read, receive, wait_until, write_svm
from conftest import many
from rue.fleets import Fleet
from rue.models.file import load_model

COMMAND = [sys.executable, "-m", "rue"]
PATIENCE = 120


def start(*args, **how):
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **how}
    return subprocess.Popen([*COMMAND, *map(str, args)], **how)


def handler_of(process, number):
    """Whether a process has a handler for a signal."""
    caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text())
    return bool(int(caught[1], 16) >> (number - 1) & 1)


def has_imported(process, name):
    """Whether a process has a library mapped."""
    return name in Path(f"/proc/{process.pid}/maps").read_text()


def test_ctrl_c_at_any_moment_shows_no_traceback(tmp_path):
    """Sent at random moments from the start of a run to its end, by one command after the other."""
    write_svm(tmp_path / "s.svm", rows=2000)
    learn = ["learn", tmp_path / "s.svm", "--learner", "perceptron", "-q"]
    subprocess.run([*COMMAND, *learn, "--model", tmp_path / "m.rue"], check=True)
    began = time.monotonic()
    learn += ["--report", tmp_path / "r.json", "--predictions", tmp_path / "p.csv"]
    subprocess.run([*COMMAND, *learn], check=True)
    length = time.monotonic() - began
    commands = [
        learn,
        ["predict", tmp_path / "m.rue", tmp_path / "s.svm", "-o", tmp_path / "o.csv"],
        ["inspect", tmp_path / "m.rue"],
    ]
    chance, codes = random.Random(0), []
    for i in range(many(9, 300)):
        for name in ("r.json", "p.csv", "o.csv"):
            (tmp_path / name).unlink(missing_ok=True)
        process = start(*commands[i % 3])
        time.sleep(chance.uniform(0.0, 1.2 * length))
        for _ in range(chance.choice([1, 2])):
            process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=PATIENCE)
        if not from_python_itself(error):
            codes.append(process.returncode)
            assert process.returncode in (0, 130), (out, error)
            assert "Traceback" not in error
            assert "KeyboardInterrupt" not in error
            assert error.count("rue:") <= 1
            assert not list(tmp_path.glob(".*.part"))
            if process.returncode == 0 and i % 3 == 0:
                assert read(tmp_path / "r.json")["examples"] == 2000
    assert codes


def from_python_itself(error):
    """Whether Ctrl-C came before the first line of rue's was run, or while Python looked for it."""
    return "Traceback" in error and f"{os.sep}rue{os.sep}" not in error


def test_ctrl_c_before_the_handlers_are_there_waits_for_them(tmp_path):
    """In the first line of rue's that is run, and wherever a name is looked up until then."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'rue._startup':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([*COMMAND, "theorems"], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "rue: stopped by Ctrl-C.\n")


@pytest.mark.parametrize("library", ["numpy", "llvmlite"])
def test_ctrl_c_while_libraries_are_imported(library, tmp_path):
    """Before `main` is reached, by both ways of starting."""
    script = tmp_path / "rue"
    script.write_text(f"#!{sys.executable}\nfrom rue.cli.app import main\nmain()\n")
    for command in ([*COMMAND, "--version"], [sys.executable, script, "--version"]):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not has_imported(process, library):
            pass
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, error) == (130, "", "rue: stopped by Ctrl-C.\n")


def test_a_library_leaves_signals_alone(tmp_path):
    code = "import signal; before = signal.getsignal(2), signal.getsignal(15); import rue, rue.cli.app\n"
    code += "assert before == (signal.getsignal(2), signal.getsignal(15))"
    subprocess.run([sys.executable, "-c", code], check=True)


SAVED = ["--model", "m.rue", "--report", "r.json", "--predictions", "p.csv", "--checkpoint", "c.rue"]


def learning(tmp_path, *options):
    """A process that has learnt one example and waits for more."""
    process = start("learn", "-", "--format", "svmlight", "--learner", "perceptron", *options, cwd=tmp_path)
    process.stdin.write("1 1:1\n")
    process.stdin.flush()
    while (row := process.stderr.readline()).split()[:1] != ["1"]:  # the row of the first example
        assert row
    return process


@pytest.mark.parametrize("target", ["--model", "--report"])
@pytest.mark.parametrize("burst", ["INT TERM INT TERM TERM", "TERM TERM TERM TERM", "INT, INT, INT, INT"])
def test_signals_while_saving_wait(target, burst, tmp_path):
    """One output is a pipe that nobody reads yet, so that saving takes as long as the test wants."""
    os.mkfifo(tmp_path / "pipe")
    options = [*SAVED[:-2]]
    options[options.index(target) + 1] = "pipe"
    process = learning(tmp_path, *options)
    for number, name in enumerate(burst.replace(",", "").split()):
        process.send_signal(getattr(signal, f"SIG{name}"))
        time.sleep(0.05 + 1.1 * (number > 0 and "," in burst))  # in bursts, or a second and more between them
        assert process.poll() is None
    got, ended = receive(tmp_path / "pipe")
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate(timeout=PATIENCE)
    ended()
    assert process.returncode == 130, error
    assert "Traceback" not in error
    assert "stopped by Ctrl-C" in out
    (tmp_path / options[options.index(target) + 1]).unlink()
    (tmp_path / "pipe").write_bytes(got[0])
    report = json.loads((tmp_path / ("pipe" if target == "--report" else "r.json")).read_text())
    model = load_model(tmp_path / ("pipe" if target == "--model" else "m.rue"))
    assert report["examples"] == model.learner.t == 1
    assert (tmp_path / "p.csv").read_text() == "prediction\n0.0\n"


@pytest.mark.parametrize("burst", ["INT INT", "TERM INT TERM TERM"])
@pytest.mark.parametrize("target", ["--model", "--report-by"])
def test_signals_while_a_model_for_every_key_is_saved_wait(target, burst, tmp_path):
    outputs = {"--model": "m.rue", "--report": "r.json", "--report-by": "k.csv", "--predictions": "p.csv"}
    outputs[target] = f"pipe{Path(outputs[target]).suffix}"
    os.mkfifo(tmp_path / outputs[target])
    words = [word for pair in outputs.items() for word in pair]
    how = ["--format", "csv", "--target", "y", "--by", "shop", "--task", "regress", "--learner", "ogd:loss=square"]
    process = start("learn", "-", *how, *words, cwd=tmp_path)
    process.stdin.write("shop,a,y\nnorth,1,2.5\nsouth,2,1.5\n")
    process.stdin.flush()
    while (row := process.stderr.readline()).split()[:1] != ["2"]:  # both rows are learnt
        assert row
    for name in burst.split():
        process.send_signal(getattr(signal, f"SIG{name}"))
        time.sleep(0.05)
        assert process.poll() is None
    got, ended = receive(tmp_path / outputs[target])
    out, error = process.communicate(timeout=PATIENCE)
    ended()
    assert process.returncode == 130, error
    assert "Traceback" not in error
    assert "stopped by Ctrl-C" in out
    (tmp_path / outputs[target]).unlink()
    (tmp_path / outputs[target]).write_bytes(got[0])
    assert read(tmp_path / "r.json")["examples"] == Fleet.load(tmp_path / outputs["--model"]).examples == 2
    assert (tmp_path / outputs["--report-by"]).read_text().count("\n") == 3
    assert (tmp_path / "p.csv").read_text().count("\n") == 3


def test_three_ctrl_c_within_a_second_give_up(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "p.csv").write_text("old")
    process = learning(tmp_path, "--report", "r.json", "--predictions", "p.csv", "--model", "pipe")
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None:  # one by one: signals that come while another waits are merged
        assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    error = process.communicate()[1]
    assert process.returncode == 130
    assert error.endswith("rue: gave up after three Ctrl-C within a second: what was not saved by then is lost.\n")
    assert "Traceback" not in error
    assert (tmp_path / "p.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.csv", "pipe"]


def test_signals_while_a_wide_model_is_saved(tmp_path):
    """A burst of signals from the first one on, over many runs."""
    rows = "".join(f"{1 if i % 2 else -1} {' '.join(f'{1 + 50 * i + j}:1' for j in range(50))}\n" for i in range(4000))
    (tmp_path / "s.svm").write_text(rows)
    for seed in range(many(2, 30)):
        chance = random.Random(seed)
        for name in ("m.rue", "r.json", "p.csv", "c.rue"):
            (tmp_path / name).unlink(missing_ok=True)
        how = {"stdin": None, "stdout": None, "stderr": None, "cwd": tmp_path}
        process = start("learn", "s.svm", "--learner", "perceptron", "--passes", "100", "-q", *SAVED, **how)
        wait_until(lambda process=process: process.poll() is not None or handler_of(process, signal.SIGTERM))
        wait_until(lambda process=process: process.poll() is not None or list(tmp_path.glob(".p.csv.*")))
        time.sleep(chance.uniform(0.0, 1.0))
        pressed = 0
        while process.poll() is None:
            press = pressed < 2 and chance.random() < 0.2
            pressed += press
            process.send_signal(signal.SIGINT if press else signal.SIGTERM)
            time.sleep(chance.uniform(0.0, 0.01))
        assert process.returncode == 130
        examples = read(tmp_path / "r.json")["examples"]
        if examples:
            assert load_model(tmp_path / "m.rue").learner.t == load_model(tmp_path / "c.rue").learner.t == examples
            assert len([*tmp_path.glob(".*.part")]) == 1  # the predictions, for whoever resumes the checkpoint
            for left in tmp_path.glob(".*.part"):
                assert left.read_text().count("\n") == 1 + examples
                left.unlink()


def test_ctrl_c_while_predictions_wait_for_a_reader(tmp_path):
    """Before learning has begun, one Ctrl-C is enough."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "s.svm").write_text("1 1:1\n")
    process = start("learn", "s.svm", "--predictions", "pipe", "--report", "r.json", "-q", cwd=tmp_path)
    time.sleep(2.0)  # whether it waits by then or not, the end is the same
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE)[1] == "rue: stopped by Ctrl-C.\n"
    assert process.returncode == 130
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["pipe", "s.svm"]
