"""Rows that are held out, and rows of another file: predicted by the finished model, and never learnt."""

import sys

import numpy as np
import pandas
import pytest

import rue
from commands import read
from rue.models.file import load_model
from rue.runs.baselines import Baselines
from rue.runs.evaluation import Evaluation
from rue.streams import Block, Labels
from sklearn import metrics as reference

N, HELD = 300, 60


@pytest.fixture(autouse=True)
def uncompiled(interpreted):
    """Nothing here depends on compiled code."""


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    x, wide = np.round(rng.normal(size=n), 3), rng.choice(["a", "b"], n)
    return pandas.DataFrame(
        {"x": x, "kind": wide, "w": rng.integers(1, 4, n), "y": np.where(x + rng.normal(size=n) > 0, "yes", "no")}
    )


def scored(run, frame, training):
    """Loss, baselines and metrics of a run's model on a table, without the code that is tested."""
    p, y, w = run.predict(frame), np.where(frame["y"] == "yes", 1.0, -1.0), frame["w"].to_numpy(dtype=float)
    share = np.average(training["y"] == "yes", weights=training["w"])
    own = np.average(y > 0.0, weights=w)
    log_loss = [-(w[y > 0].sum() * np.log(q) + w[y < 0].sum() * np.log(1.0 - q)) for q in (share, own)]
    return {
        "examples": len(frame),
        "loss_total": float(w @ np.log1p(np.exp(-y * p))),
        "training_constant": log_loss[0],
        "best_constant": log_loss[1],
        "mistakes": int((y * p <= 0.0).sum()),
        "auc": reference.roc_auc_score(y, p, sample_weight=w),
        "accuracy": np.average(y * p > 0.0, weights=w),
    }


def compare(found, wanted):
    found = {**found, **found["metrics"]}
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("holdout", [0.2, HELD])
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl", "folder", "pipe"])
def test_the_last_rows_are_predicted_and_not_learnt(name, holdout, tmp_path, inside, monkeypatch, request):
    """The model is that of the first rows alone, to the last bit, in every format and in chunks of any size."""
    monkeypatch.setenv("RUE_PIECE", "2000")
    frame, data = table(), [tmp_path / name]
    train, held = frame[: N - HELD], frame[N - HELD :]
    if name == "folder":  # the rows held out begin in the first of two files
        data[0].mkdir()
        frame[:250].to_csv(data[0] / "1.csv", index=False)
        frame[250:].to_csv(data[0] / "2.csv", index=False)
    elif name == "pipe":
        data = ["-", "--format", "csv"]
        (tmp_path / "t.csv").write_text(frame.to_csv(index=False))
        pipe = (tmp_path / "t.csv").open()
        request.addfinalizer(pipe.close)
        monkeypatch.setattr(sys, "stdin", pipe)
    else:
        write = {"csv": frame.to_csv, "parquet": frame.to_parquet, "jsonl": frame.to_json}[name.split(".")[-1]]
        write(data[0], **({"orient": "records", "lines": True} if name == "t.jsonl" else {"index": False}))
    made = ["--model", tmp_path / "m", "--report", tmp_path / "r.json", "--predictions", tmp_path / "p.csv"]
    command = ["learn", *data, "--target", "y", "--weight", "w", "--learner", "ogd", "-q", *made, "--holdout", holdout]
    if name == "pipe" and holdout < 1:
        why = inside(*command, ok=2).err
        assert "a pipe or an iterator does not tell how many will come: give a number of rows" in why
        return
    shown = inside(*command).out
    found = read(tmp_path / "r.json")
    run = rue.learn(train, "y", weights="w", learner="ogd")
    assert found["examples"] == N - HELD
    assert load_model(tmp_path / "m").learner == run.learner
    predicted = np.concatenate([run.predictions, run.predict(held)])  # first before each update, then at the end
    assert np.array_equal(np.loadtxt(tmp_path / "p.csv", skiprows=1), predicted)
    compare(found["holdout"], scored(run, held, train))
    assert found["test"] is None
    assert f"the finished model on the last {HELD} rows, which were not learnt" in shown


def test_another_file_and_python(tmp_path, inside):
    """`--test`, `test=` and `rue predict` say the same; arrays, tables and iterators of blocks can be held out from."""
    frame, other = table(), table(100, seed=1)
    frame.to_csv(tmp_path / "t.csv", index=False)
    other.to_csv(tmp_path / "o.csv", index=False)
    made = ["--model", tmp_path / "m", "--report", tmp_path / "r.json", "-q"]
    shown = inside(
        "learn",
        tmp_path / "t.csv",
        "--target",
        "y",
        "--weight",
        "w",
        "--learner",
        "ogd",
        *made,
        "--test",
        tmp_path / "o.csv",
    ).out
    run = rue.learn(frame, "y", weights="w", learner="ogd", test=other)
    compare(read(tmp_path / "r.json")["test"], wanted := scored(run, other, frame))
    compare(vars(run.test) | {"loss_total": run.test.loss, "best_constant": run.test.best_constant}, wanted)
    assert "on the 100 rows of the test" in shown
    said = inside("predict", tmp_path / "m", tmp_path / "o.csv", "-o", tmp_path / "p.csv").err
    assert f"100 labelled examples: mean loss {run.test.risk:.6g}, {run.test.mistakes} mistakes" in said
    mass = other["w"].sum()
    assert f"constant of the rows learnt {wanted['training_constant'] / mass:.6g}, best constant in hindsight" in said
    assert f"ROC AUC {wanted['auc']:.4f}" in said
    X, y = frame[["x", "w"]].to_numpy(), np.where(frame["y"] == "yes", 1, -1)
    blocks = [Block(X[a : a + 70], y[a : a + 70]) for a in range(0, N, 70)]
    arrays = rue.learn(X, y, learner="ogd", holdout=0.2, test=(X[:50], y[:50]))
    piecewise = rue.learn(iter(blocks), learner="ogd", holdout=HELD)
    frames = rue.learn([frame[["x", "w"]][:100], frame[["x", "w"]][100:]], y, learner="ogd", holdout=0.2)
    wanted = rue.learn(X[: N - HELD], y[: N - HELD], learner="ogd")
    p = wanted.predict(X[N - HELD :])
    for run in (arrays, piecewise, frames):
        assert run.learner == wanted.learner
        assert run.examples == N - HELD
        assert run.holdout.loss == pytest.approx(np.log1p(np.exp(-y[N - HELD :] * p)).sum())
    assert arrays.test.examples == 50
    whole = rue.learn(frame, "y", weights="w", learner="ogd", test=(frame.drop(columns="y"), frame["y"], frame["w"]))
    assert whole.test.loss == pytest.approx(rue.learn(frame, "y", weights="w", learner="ogd", test=frame).test.loss)


def test_a_stopped_run_goes_on_without_the_rows_held_out(tmp_path, inside, monkeypatch):
    """At a bad row, with the place where the rows held out begin: the end is that of the uninterrupted run."""
    monkeypatch.setenv("RUE_PIECE", "1000")
    frame, path = table(), tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    lines = path.read_text().splitlines(keepends=True)
    made = ["--report", tmp_path / "r.json", "-q"]
    inside("learn", path, "--target", "y", "--learner", "ogd", "--holdout", 0.2, "--model", tmp_path / "whole", *made)
    wanted = read(tmp_path / "r.json")
    path.write_text("".join([*lines[:101], lines[101].rstrip("\n") + ",\n", *lines[102:]]))
    stop = ["--model", tmp_path / "m"]
    why = inside("learn", path, "--target", "y", "--learner", "ogd", "--holdout", 0.2, *stop, *made, ok=1).err
    assert "line 102" in why
    assert read(tmp_path / "r.json")["holdout"] is None
    path.write_text("".join(lines))
    again = ["learn", path, "--resume", tmp_path / "m", *stop, *made]
    assert "--holdout contradicts --resume: it was started with 0.2" in inside(*again, "--holdout", 0.3, ok=2).err
    inside(*again)
    found = read(tmp_path / "r.json")
    assert found["metrics"]["over_time"] == wanted["metrics"]["over_time"]
    assert {name: found[name] for name in ("holdout", "loss_total")} == {
        name: wanted[name] for name in ("holdout", "loss_total")
    }
    assert load_model(tmp_path / "m").learner == load_model(tmp_path / "whole").learner


def test_what_cannot_be_done_is_refused(tmp_path, inside):
    X, y = np.ones((5, 1)), np.array([1, -1, 1, 1, -1])
    for wrong in (0.0, -1, 1.5, True, np.inf):
        with pytest.raises(
            rue.SettingsError, match=r"holdout is a share of the rows such as 0\.2, or a number of rows"
        ):
            rue.learn(X, y, holdout=wrong)
    with pytest.raises(rue.DataError, match="holdout 5 leaves nothing to learn: there are 5 rows"):
        rue.learn(X, y, holdout=5)
    with pytest.raises(rue.SettingsError, match="test is a pair"):
        rue.learn(X, y, test=X)
    (tmp_path / "t.svm").write_text("1 1:1\n-1 1:2\n1 1:3\n")
    missing = inside("learn", tmp_path / "t.svm", "--test", tmp_path / "no.svm", ok=1).err
    assert "no.svm" in missing


def test_rounding_is_not_behind_a_constant_that_loses_nothing():
    square, training = rue.make("loss", "square"), Baselines()
    training.enter(square, np.array([0.0, 1.0]), np.empty(0), np.zeros(2))
    for off, behind in ((1e-9, False), (1e-3, True)):
        found = Evaluation(square, Labels("regress"), training)
        found.enter(Block(np.ones((100, 1)), np.full(100, 0.25)), np.full(100, 0.25 + off))
        assert found.best_constant == 0.0
        assert bool(found.behind) == behind


def test_a_model_behind_a_constant_warns(tmp_path, inside):
    """First behind the constant of the rows it learnt; then only behind the one that is known in hindsight.

    That of a few rows is never a reason to warn.
    """
    loss, labels, y = rue.make("loss", "logistic"), Labels("classify", -1, 1), np.array([1.0, 1.0, 1.0, -1.0] * 25)
    training = Baselines()
    training.enter(loss, np.array([1.0, -1.0]), np.empty(0), np.zeros(2))
    for p, words in ((-1.0, "that was best on the rows it learnt"), (0.2, "known in hindsight only"), (np.log(3), "")):
        found = Evaluation(loss, labels, training)
        found.enter(Block(np.ones((100, 1)), y), np.full(100, p))
        assert found.training_constant == pytest.approx(100 * np.log(2.0))
        assert words in found.behind
        assert bool(found.behind) == bool(words)
        few = Evaluation(loss, labels, training)
        few.enter(Block(np.ones((4, 1)), y[:4]), np.full(4, p))
        assert bool(few.behind) == (p < 0.0)
    ((tmp_path / "t.svm").write_text("1 1:1\n-1 1:-1\n" * 20), (tmp_path / "o.svm").write_text("-1 1:1\n1 1:-1\n" * 9))
    learn = ["learn", tmp_path / "t.svm", "--learner", "ogd", "--loss", "logistic", "-q"]
    inside(*learn, "--model", tmp_path / "m")
    assert "warning: the model is behind a constant" in inside("predict", tmp_path / "m", tmp_path / "o.svm").err
    shown = inside(
        "learn", tmp_path / "t.svm", "--learner", "ogd", "--loss", "logistic", "--test", tmp_path / "o.svm", "-q"
    )
    assert "warning: the model is behind a constant" in shown.out


@pytest.mark.parametrize("class_weight", [{"yes": 5.0}, "balanced"])
def test_class_weights_count_as_they_stand_at_the_end(class_weight):
    frame = table()
    run = rue.learn(frame, "y", learner="ogd", class_weight=class_weight, drop=["w"], holdout=HELD)
    yes = (frame["y"][: N - HELD] == "yes").mean()
    weights = (0.5 / (1.0 - yes), 0.5 / yes) if class_weight == "balanced" else (1.0, 5.0)
    y = np.where(frame["y"][N - HELD :] == "yes", 1.0, -1.0)
    w = np.where(y > 0, weights[1], weights[0])
    losses = np.log1p(np.exp(-y * run.predict(frame[N - HELD :])))
    assert run.holdout.risk == pytest.approx(np.average(losses, weights=w))
    assert run.holdout.metrics["accuracy"] == pytest.approx(np.average(losses < np.log(2.0), weights=w))


def test_several_classes_and_numbers():
    """A class that the model has never seen is scored, and counts as a mistake; labels that are missing do not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    words = np.array(["low", "mid", "high"], dtype=object)[np.digitize(X[:, 0], [-0.5, 0.5])]
    words[80], words[85] = "new", None
    run = rue.learn(X[:60], words[:60], test=(X[60:], words[60:]))
    p = run.predict(X[60:])
    best = np.array(run.labels.classes, dtype=object)[p[:, 1:].argmax(axis=1)]
    known = words[60:] != None  # noqa: E711
    assert (run.test.examples, run.test.unlabelled) == (29, 1)
    assert run.test.mistakes == np.count_nonzero((best != words[60:]) & known)
    own = [
        p[i, run.labels.classes.index(word) + 1 if word != "new" else 0] for i, word in enumerate(words[60:]) if word
    ]
    assert run.test.loss == pytest.approx(-np.log(own).sum() + np.log(4))  # as one of four places for a name
    wanted = reference.confusion_matrix(words[60:][known], best[known], labels=[*run.labels.classes, "new"])
    assert run.test.metrics["confusion"] == wanted.tolist()
    numbers = rue.learn(X[:60], X[:60, 0] + 3.5, test=(X[60:], X[60:, 0] + 3.5))
    assert numbers.test.metrics["mae"] == pytest.approx(np.abs(numbers.predict(X[60:]) - X[60:, 0] - 3.5).mean())
    assert numbers.test.training_constant == pytest.approx(((X[60:, 0] - X[:60, 0].mean()) ** 2).sum())
