"""What a user may do in a first hour, in one process: every number of it printed, and nothing that may differ."""

import contextlib
import csv
import io
import json
import re
import sys
from pathlib import Path

import numpy as np

import rue
from rue.cli.app import main


def output_of(*args):
    """What a command says on stdout, without dates and seconds."""
    sys.argv = ["rue", *args]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main()
    return re.sub(r"\d{4}-\d\d-\d\dT\S+|.* s in all, .*\n", "", out.getvalue())


def write_visits():
    rng = np.random.default_rng(6)
    with open("visits.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["day", "device", "pages", "bought"])
        for i in range(2_000):
            pages = int(rng.integers(1, 12))
            device = ["phone", "laptop", "Gerät, alt"][int(rng.integers(3))]
            bought = "yes" if rng.random() < pages / 12 else "no"
            rows.writerow([f"2026-03-{1 + i // 70:02d}", device, pages if i % 9 else "", bought])


def journey():
    X, y = rue.census()
    run = rue.learn(X[:5_000], y[:5_000])  # without a digest: LAPACK, which makes it, rounds as its threads do
    print(repr(run.loss), run.mistakes, run.members, run.certificate(radius=5), sep="\n")
    ogd = rue.learn(X[:5_000], y[:5_000], learner=rue.OGD("hinge", "ball:10"))
    print(repr(ogd.loss), ogd.mistakes, ogd.certificate(), sep="\n")

    write_visits()
    options = ("--target", "bought", "--model", "visits.rue", "--report", "visits.json", "--quiet")
    print(output_of("learn", "visits.csv", *options))
    report = json.loads(Path("visits.json").read_text(encoding="utf-8"))
    report.pop("seconds")
    print(json.dumps(report, indent=1))
    print(output_of("predict", "visits.rue", "visits.csv", "--as", "probability"))
    print(output_of("inspect", "visits.rue"))

    model = rue.load("visits.rue")
    rue.save(model, "again.rue")
    again = rue.load("again.rue")
    assert np.array_equal(again.learner.weights, model.learner.weights)
    assert output_of("predict", "again.rue", "visits.csv") == output_of("predict", "visits.rue", "visits.csv")
    print(output_of("learn", "visits.csv", "--resume", "again.rue", "--quiet"))


if __name__ == "__main__":
    journey()
