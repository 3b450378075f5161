"""What a person sees on a terminal: nothing wider than it, no word cut in two, and whom a race waits for."""

import os
import pty
import struct
import subprocess
import sys
import types
from fcntl import ioctl
from termios import TIOCSWINSZ

import pytest

import rue
from commands import read, run, write_svm
from rue.cli.folding import cut, folded
from rue.cli.waiting import Waiting


def on_terminal(width, folder, *args):
    """Stdout and stderr of a command in a folder, on a terminal so wide."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "rue", *map(str, args)], stdout=theirs, stderr=theirs, env=kept, cwd=folder
    ) as going:
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 65536):
                said += part
        except OSError:  # how a terminal ends on Linux
            pass
    os.close(ours)
    assert going.returncode == 0, said
    return said.decode()


def test_a_report_fits_the_terminal_and_is_whole_elsewhere(tmp_path):
    write_svm(tmp_path / "s.svm")
    whole = run("learn", tmp_path / "s.svm", "-q").stdout
    assert max(map(len, whole.splitlines())) > 110
    for args in (("learn", "s.svm", "-q", "--model", "m.rue"), ("inspect", "m.rue")):
        wide, narrow = on_terminal(250, tmp_path, *args), on_terminal(60, tmp_path, *args)
        assert max(map(len, narrow.splitlines())) <= 60
        assert {word for word in wide.split() if word[0].isalpha()} == {
            word for word in narrow.split() if word[0].isalpha()
        }
        if args[0] == "learn":
            assert "\n             trying them all cost" in narrow.replace("\r", "")


def test_progress_stays_on_its_line(tmp_path):
    write_svm(tmp_path / "s.svm")
    for args in (("learn", "s.svm"), ("race", "s.svm", "--learners", "mixture,ogd,adagrad,adaptive")):
        shown = on_terminal(44, tmp_path, *args).split("\x1b[K")
        lines = [part.split("\r")[0] for part in shown if "\n" not in part and part.strip("\r")]
        assert lines
        assert max(map(len, lines)) < 44


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("short", ["short"]),
        ("risk         one two three four", ["risk         one two", "             three four"]),
        ("norm ≤ 10    one two three four", ["norm ≤ 10    one two", "             three four"]),
        ("  one two three four five six", ["  one two three four", "  five six"]),
        ("one two three-four-five six", ["one two", "three-four-five six"]),
        ("a.very.long.word.without.a.gap.in.it", ["a.very.long.word.without.a.gap.in.it"]),
    ],
)
def test_continuations_stand_under_the_text(line, wanted):
    assert folded(line, 25 if line[0] in "rn" else 20).split("\n") == wanted


def test_a_line_is_cut_only_for_a_terminal(tmp_path):
    with open(tmp_path / "file", "w") as file:
        assert cut("x" * 500, file) == "x" * 500


def test_features_are_those_with_a_weight_whoever_learns(tmp_path, inside):
    write_svm(tmp_path / "s.svm")
    for learner in ("mixture", "ogd", "adagrad", "ogd:average=uniform"):
        more = ["--learner", learner, "--loss", "logistic", "--model", tmp_path / "m.rue", "-q"]
        shown = inside("learn", tmp_path / "s.svm", "--report", tmp_path / "r.json", *more).out
        assert read(tmp_path / "r.json")["features"] == 12
        assert "features     12 with a weight" in shown
        assert "12 with a weight" in inside("inspect", tmp_path / "m.rue").out
    (tmp_path / "t.svm").write_text("1 1:1 2:1\n-1 1:1 3:1\n1 2:1 4:0\n")
    learner = ["--learner", "perceptron", "--no-intercept", "--model", tmp_path / "m.rue", "-q"]
    inside("learn", tmp_path / "t.svm", "--report", tmp_path / "r.json", *learner)
    weights = dict(rue.weights_of(tmp_path / "m.rue"))
    assert read(tmp_path / "r.json")["features"] == len(weights) == 2  # the first has gone up and down again


def test_whom_a_race_waits_for_is_said_once():
    def lane(name, seconds, own=True):
        runner = types.SimpleNamespace(seconds=0.0 if own else seconds)
        return types.SimpleNamespace(name=name, own=own, seconds=seconds if own else 0.0, runner=runner)

    racing, said = types.SimpleNamespace(lanes=[]), []
    waiting = Waiting(racing, said.append)
    waiting.look()
    racing.lanes = [lane("mixture", 1.0), lane("sklearn", 1.5, own=False), lane("river", 0.1, own=False)]
    waiting.look()
    assert not said
    racing.lanes = [lane("mixture", 1.0), lane("sklearn", 8.0, own=False), lane("river", 2.0, own=False)]
    waiting.look()
    waiting.look()
    assert said == ["waiting for sklearn: 8.0 s so far, all others 3.0 s; --learners mixture,river leaves it out."]
    racing.lanes[2].runner.seconds = 80.0
    waiting.look()
    assert said[1].startswith("waiting for river")
    racing.lanes = [lane("mixture", 30.0), lane("ogd", 1.0), lane("vw", 3.0, own=False)]
    waiting.look()
    assert len(said) == 2  # the stream is what takes long
