"""`run.report()` is what `rue learn` prints and writes."""

import json

import numpy as np

import rue


def test_it_is_what_the_command_prints_and_writes(tmp_path, inside, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")  # as wide as a report that no terminal shows
    rng = np.random.default_rng(0)
    rows = [
        f"{x:.2f},{'ab'[z]},{'yes' if x > 0 else 'no'}\n"
        for x, z in zip(rng.normal(size=99), rng.integers(0, 2, 99), strict=True)
    ]
    (tmp_path / "t.csv").write_text("x,z,y\n" + "".join(rows))
    options = "--learner", "ogd", "--loss", "logistic"
    printed = inside("learn", "t.csv", "--target", "y", *options, "--report", "r.json", "-q").out
    report = rue.learn("t.csv", y="y", learner=rue.OGD("logistic")).report()
    assert str(report).splitlines()[:-1] == printed.rstrip("\n").splitlines()[:-1]  # the last line has the times
    written = json.loads((tmp_path / "r.json").read_text())
    fields = json.loads(json.dumps(report.fields))
    assert list(fields) == list(written)
    assert [fields[name] for name in ("risk", "metrics", "calibration")] == [
        written[name] for name in ("risk", "metrics", "calibration")
    ]


def test_a_radius_and_rows_held_out():
    X, y = np.random.default_rng(1).normal(size=(80, 2)), np.tile([1.0, -1.0], 40)
    report = rue.learn(X, y, learner=rue.OGD("logistic"), holdout=0.25).report(radius=2.0)
    assert report.fields["certificate"]["radius"] == 2.0
    assert "holdout" in repr(report)


def test_a_model_and_an_explanation_print_no_arrays_and_no_rounding(tmp_path):
    X, y = np.random.default_rng(1).normal(size=(30, 2)), np.tile([1.0, -1.0], 15)
    run = rue.learn(X, y, learner=rue.OGD("logistic"))
    rue.save(run, tmp_path / "m.rue")
    assert repr(rue.load(tmp_path / "m.rue")).startswith("Model(examples=30, learner=OGD(")
    assert "+0  what no weights explain" in str(rue.explain(run, X[0] * 1.23))
