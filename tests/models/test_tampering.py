"""Model files whose content was changed and whose digest was made to fit again: damaged, or of use."""

import copy
import math
import os
import sys
import warnings

import numpy as np
import pytest

import rue
from conftest import many
from rue.cli.app import main
from rue.models.container import read_container, write_container

KINDS = {
    "ogd": ["--learner", "ogd:average=uniform", "--loss", "logistic"],
    "ball": ["--learner", "ogd", "--loss", "hinge", "--domain", "ball:10", "--radius", "10"],
    "box": ["--learner", "ogd", "--loss", "square", "--domain", "box:-1,1"],
    "simplex": ["--learner", "ogd", "--loss", "absolute", "--domain", "simplex"],
    "svm": ["--learner", "svm:0.1"],
    "adagrad": ["--learner", "adagrad", "--loss", "logistic"],
    "adaptive": ["--learner", "adaptive", "--loss", "logistic", "--domain", "ball:5"],
    "perceptron": ["--learner", "perceptron"],
    "leader": ["--learner", "leader", "--loss", "linear", "--domain", "ball:1"],
    "mixture": ["--loss", "logistic"],
    "regression": ["--learner", "mixture", "--loss", "square"],
    "multiclass": [],
    "linear": ["--linear", "--loss", "logistic"],
    "numbers": ["--task", "regress", "--interval", "0.5,0.9", "--alarm", "1000"],
    "numbers and lags": ["--task", "regress", "--linear", "--lags", "1,4"],
    "sets": ["--interval", "0.9", "--alarm", "1000"],
    "sets of several": ["--interval", "0.9"],
    "experts": ["--expert-column", "b", "--expert-as", "score", "--linear"],
    "experts and numbers": ["--task", "regress", "--expert-column", "b", "--linear"],
    "calibrated": ["--calibrate", "--linear", "--class-weight", "balanced"],
    "crosses": ["--cross", "word,a", "--linear"],
    "bins": ["--bins", "a:8,b:3", "--learner", "ogd", "--loss", "logistic"],
    "several maps": ["--maps"],
    "keys": ["--by", "word", "--learner", "ogd", "--loss", "logistic"],
    "keys of mixtures": ["--by", "word", "--learner", "mixture", "--loss", "square"],
}
NUMBERS_OF = {"regression", "numbers", "numbers and lags", "experts and numbers", "keys of mixtures"}
SEVERAL = {"multiclass", "sets of several", "several maps"}
JUNK = [None, True, -1, 0.5, 2**70, 1e400, -math.inf, math.nan, "", "x", [], {}, [1.0], [[]], {"a": {"b": []}}]
NUMBERS = [math.inf, -math.inf, math.nan, 1e308, -1e308, -1.0]


@pytest.fixture(autouse=True)
def uncompiled(interpreted):
    """An index that leads outside an array is an IndexError here."""


def write_rows(path, kind, begin, end):
    rng = np.random.default_rng(5)
    rows = []
    for i in range(end):
        a, b, word = rng.normal(), rng.normal(), rng.choice(["x", "y", "z"])
        label = f"{a + b:.3f}" if kind in NUMBERS_OF else str(i % 2 * 2 - 1)
        label = ["red", "green", "blue"][i % 3] if kind in SEVERAL else label
        rows.append(f"{a:.4f},{'' if i % 5 == 0 else f'{b:.4f}'},{word},{label}\n")
    path.write_text("a,b,word,y\n" + "".join(rows[begin:]))


@pytest.fixture(params=KINDS)
def stopped(request, tmp_path, inside):
    """A kind of learner, its data, a checkpoint in their middle, and other data to predict."""
    kind, data, fresh = request.param, tmp_path / "data.csv", tmp_path / "fresh.csv"
    write_rows(data, kind, 0, 40)
    write_rows(fresh, kind, 30, 50)
    whole = data.read_text()
    if "--by" in KINDS[kind]:  # which has no checkpoints
        inside("learn", data, "--target", "y", *KINDS[kind], "--bits", "5", "-q", "--model", tmp_path / "c.rue")
        return data, fresh, tmp_path / "c.rue"
    data.write_text(whole + "1e999,1,x,1\n")  # the pass stops there
    bits = ["--bits", "5"]
    inside("learn", data, "--target", "y", *KINDS[kind], *bits, "--quiet", "--checkpoint", tmp_path / "c.rue", ok=1)
    data.write_text(whole + whole.split("\n", 1)[1])
    return data, fresh, tmp_path / "c.rue"


def leaves(value, at=()):
    if at:
        yield at
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*at, key))


def set_at(head, at, value):
    for key in at[:-1]:
        head = head[key]
    head[at[-1]] = copy.deepcopy(value)


def spoilt(array, number, rng):
    """A copy of an array with a number in one place, or in all; in an array of whole numbers, its largest one."""
    array = array.copy()
    if array.dtype.kind != "f":
        number = np.iinfo(array.dtype).max if number != -1.0 else 1
    where = np.unravel_index(rng.integers(array.size), array.shape) if rng.random() < 0.7 else ...
    with np.errstate(over="ignore"):  # 1e308 is an infinity in 32 bits
        array[where] = number
    return array


@pytest.fixture
def run(monkeypatch, capsys):
    """A command in this process, whatever it exits with: the code, and what it wrote."""

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["rue", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        return left.value.code, capsys.readouterr()

    return call


def is_number(cell):
    """Not a key, a set of classes, or empty."""
    return cell.strip('xyzredgnblu|"') == cell and cell not in ("-1|1", "")


def faults(run, data, fresh, path):
    """What is wrong with how a tampered file is taken: one sentence about damage, or finite numbers, is right."""
    found = []
    for command in (
        ("predict", path, fresh),
        ("learn", data, "--resume", path, "--quiet", "--report", path.with_name("report.json")),
        ("inspect", path),
    ):
        with warnings.catch_warnings():  # sums of absurd numbers overflow
            warnings.simplefilter("ignore")
            code, said = run(*command)
        sentence = said.err.startswith("rue: ") and said.err.count("\n") == 1 and "should not happen" not in said.err
        if code not in (0, 1, 2) or (code and not sentence):
            found.append((command[0], code, said.err[:300]))
        elif command[0] == "predict" and code == 0:
            rows = [[float(cell) for cell in line.split(",") if is_number(cell)] for line in said.out.splitlines()[1:]]
            if len(rows) != 20 or not np.isfinite([cell for row in rows for cell in row]).all():
                found.append(("predict", rows[:2]))
    return found


def test_settings_and_arrays_that_were_tampered_with(stopped, tmp_path, run, request):
    data, fresh, checkpoint = stopped
    assert faults(run, data, fresh, checkpoint) == []
    assert run("predict", checkpoint, fresh)[0] == run("learn", data, "--resume", checkpoint, "--quiet")[0] == 0
    head, arrays = read_container(checkpoint)
    rng = np.random.default_rng(int(os.environ.get("RUE_SEED", "0")) + sum(map(ord, request.node.name)))
    settings = [(at, junk) for at in leaves(head) if at != ("format",) for junk in JUNK]
    numbers = [(name, number) for name in arrays if arrays[name].size for number in NUMBERS]
    numbers = [item for item in numbers if arrays[item[0]].dtype.kind == "f" or item[1] in (math.inf, -1.0)]
    most = many(8, 10**9)
    path, found = tmp_path / "tampered.rue", []
    for at, junk in settings if len(settings) <= most else [settings[k] for k in rng.permutation(len(settings))[:most]]:
        new = copy.deepcopy(head)
        set_at(new, at, junk)
        write_container(path, new, dict(arrays))
        found += [(at, junk, fault) for fault in faults(run, data, fresh, path)]
    for name, number in numbers if len(numbers) <= most else [numbers[k] for k in rng.permutation(len(numbers))[:most]]:
        write_container(path, head, {**arrays, name: spoilt(arrays[name], number, rng)})
        found += [(name, number, fault) for fault in faults(run, data, fresh, path)]
    assert found == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda head, arrays: arrays["watch.memory"].__setitem__((0, 0), 1e9),
            "tracker of its intervals is",
        ),
        (lambda head, arrays: arrays["watch.memory"].__setitem__((0, 2), -1.0), "tracker of its intervals"),
        (lambda head, arrays: arrays["watch.sizes"].__setitem__(1, 40), "counts of its intervals are impossible"),
        (lambda head, arrays: arrays["watch.groups"].__setitem__((0, 2), 10**6), "counts of its intervals"),
        (lambda head, arrays: arrays["watch.means"].__setitem__(1, np.nan), "running means of its intervals"),
        (lambda head, arrays: arrays["watch.alarm.memory"].__setitem__(2, 10**6), "sequences of its alarms"),
        (lambda head, arrays: head["watch"].__setitem__("interval", [0.2]), "another loss"),
        (lambda head, arrays: head["watch"].__setitem__("interval", [2.0]), "a level is a share"),
        (lambda head, arrays: head["watch"].__setitem__("kind", "classes"), "do not fit its loss"),
        (lambda head, arrays: head["watch"].__setitem__("alarms", [[9, 99, 0.1, 0.2]]), "its alarms are impossible"),
        (lambda head, arrays: head["watch"].__setitem__("watched", "mistakes"), "about another loss"),
    ],
)
def test_intervals_and_alarms_that_no_run_leads_to_are_refused(change, words, tmp_path):
    rng = np.random.default_rng(0)
    X = (rng.random((400, 2)) < 0.5).astype(float)
    rue.save(rue.learn(X, X[:, 0] + rng.normal(size=400), interval=0.9, alarm=1e6, maps=None), tmp_path / "m.rue")
    head, arrays = read_container(tmp_path / "m.rue")
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(head, arrays)
    write_container(tmp_path / "m.rue", head, arrays)
    with pytest.raises(rue.DataError, match=words):
        rue.load(tmp_path / "m.rue")
