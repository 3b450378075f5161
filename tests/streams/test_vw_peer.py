"""Vowpal Wabbit's plain SGD is OGD with step η/√(t + 1): an independent implementation, in float32.

`--initial_t 1` makes its clock read t + 1 at example t; `--sgd` switches off its adaptive, normalised and invariant
updates; with wide limits no prediction is clipped.
"""

import itertools
import lzma
import subprocess
import sys

import numpy as np
import pytest

import rue
from conftest import ROOT, many

pytest.importorskip("vowpalwabbit")
DATA = ROOT.parent / "shared" / "data"
LIMIT = 1e6


def a9a(rows):
    """Binary features, classes."""
    with lzma.open(DATA / "a9a.svm.xz", "rt") as file:
        for line in itertools.islice(file, rows):
            label, features = line.rstrip().split(" ", 1)
            yield f"{label} | {features}"


def elec2(rows):
    """Dense numbers after the day, which is left out; classes 0 and 1."""
    with lzma.open(DATA / "elec2.csv.xz", "rt") as file:
        next(file)
        for line in itertools.islice(file, rows):
            _, *numbers, label = line.rstrip().split(",")
            yield f"{2 * int(label) - 1} | " + " ".join(f"{j}:{value}" for j, value in enumerate(numbers, 1))


@pytest.mark.skipif(not DATA.exists(), reason="the real streams are not beside the repository")
@pytest.mark.parametrize("stream", [a9a, elec2])
@pytest.mark.parametrize(
    ("name", "loss", "eta"),
    [
        ("logistic", "logistic", 0.3),
        ("hinge", "hinge", 0.1),
        ("squared", "square", 0.02),
        ("quantile", "quantile:0.5", 0.1),
    ],
)
def test_ogd_equals_vowpal_wabbit(stream, name, loss, eta, tmp_path):
    lines = list(stream(many(5000, 30_000)))
    (tmp_path / "s.vw").write_text("\n".join(lines) + "\n")
    plain = ["--sgd", "--noconstant", "--power_t", "0.5", "--initial_t", "1", "-l", str(eta), "-b", "20", "--quiet"]
    wide = ["--min_prediction", str(-LIMIT), "--max_prediction", str(LIMIT), "--loss_function", name]
    told = ["-d", str(tmp_path / "s.vw"), "-p", str(tmp_path / "p.txt")]
    subprocess.run([sys.executable, "-m", "vowpalwabbit", *plain, *wide, *told], check=True, timeout=600)
    theirs = np.loadtxt(tmp_path / "p.txt")
    steps = rue.Sequence(eta / np.sqrt(np.arange(2.0, len(lines) + 2.0)))
    run = rue.learn(tmp_path / "s.vw", learner=rue.OGD(loss=loss, domain="reals", step=steps, intercept=False))
    assert run.examples == len(lines) == theirs.size
    assert np.abs(theirs).max() > 0.2
    assert np.abs(run.predictions - theirs).max() < 1e-5
