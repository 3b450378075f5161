"""Intervals and alarms of runs: in the library, on the command line, in model files and checkpoints."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import rue
from rue.errors import SettingsError
from rue.models.file import Model
from rue.models.merging import merge_models
from rue.runs.watching import Watch


def numbers(rows=900, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=rows), rng.random(rows) < 0.5])
    return X, X @ [2.0, 1.0] + rng.normal(size=rows) * (1.0 + 2.0 * X[:, 1])


def classes(rows=900, many=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, np.array(["ash", "beech", "cedar"])[(X[:, :many] + 0.7 * rng.normal(size=(rows, many))).argmax(axis=1)]


def test_ends_are_made_before_each_update():
    """What a run says of a row does not depend on the row's label, nor on what comes after."""
    X, y = numbers(300)
    run = rue.learn(X, y, interval=0.9)
    changed = y.copy()
    changed[200:] += 100.0
    other = rue.learn(X, changed, interval=0.9)
    assert np.array_equal(run.lower[:201], other.lower[:201])
    assert np.array_equal(run.upper[:201], other.upper[:201])
    assert not np.array_equal(run.upper[201:], other.upper[201:])
    by_hand = rue.prediction_intervals(y, run.predictions, X=X)
    assert np.array_equal(by_hand.lower, run.lower)
    assert by_hand.summaries[0] == run.interval
    assert run.sets is None
    assert rue.learn(X, y).interval is rue.learn(X, y).lower is None


@pytest.mark.parametrize("interval", [0.9, [0.5, 0.9]])
def test_a_run_goes_on_to_the_same_bits(interval, tmp_path):
    X, y = numbers()
    y[5] = np.nan
    whole = rue.learn(csr_matrix(X), y, interval=interval, alarm=2000)
    first = rue.learn(csr_matrix(X[:400]), y[:400], interval=interval, alarm=2000)
    rue.save(first, tmp_path / "m.rue")
    for half in (first, rue.load(tmp_path / "m.rue")):
        second = rue.learn(csr_matrix(X[400:]), y[400:], learner=half)
        assert np.array_equal(np.concatenate([first.lower, second.lower]), whole.lower)
        assert np.array_equal(np.concatenate([first.upper, second.upper]), whole.upper)
        assert second.interval == whole.interval
        assert second.alarms == whole.alarms
        assert np.array_equal(second.watch.first, whole.watch.first)
    again = rue.load(tmp_path / "m.rue")
    rue.save(again, tmp_path / "again.rue")
    assert (tmp_path / "again.rue").read_bytes() == (tmp_path / "m.rue").read_bytes()


@pytest.mark.parametrize("many", [2, 3])
def test_sets_of_a_run(many, tmp_path):
    X, y = classes(many=many)
    run = rue.learn(X, y, interval=0.8)
    names = list(run.labels.classes) or [run.labels.negative, run.labels.positive]
    assert run.sets.shape == (900, many)
    inside = np.array([names[k] == label for label in y for k in range(many)]).reshape(900, many) & run.sets
    assert run.interval.covered == inside.any(axis=1).mean()
    assert run.interval.covered >= 0.8 - run.interval.promised_within
    assert run.interval.mean_width == pytest.approx(run.sets.sum(axis=1).mean())
    first = rue.learn(X[:333], y[:333], interval=0.8)
    rue.save(first, tmp_path / "m.rue")
    second = rue.learn(X[333:], y[333:], learner=rue.load(tmp_path / "m.rue"))
    assert np.array_equal(
        np.concatenate([np.pad(first.sets, ((0, 0), (0, many - first.sets.shape[1]))), second.sets]), run.sets
    )
    assert run.predict_interval(X[:5]).shape == (5, many)


def test_alarms_of_a_run_that_gets_worse():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0) * np.where(
        rng.random(6000) < np.where(np.arange(6000) < 3000, 0.02, 0.35), -1, 1
    )
    run = rue.learn(X, y, alarm=1e6)
    assert [3000 < change.round < 4500 for change in run.alarms] == [True]
    assert run.watch.watched == "the Brier score"
    q = 1.0 / (1.0 + np.exp(-run.predictions))
    watched = rue.Alarm(1e6)
    watched.enter(np.clip((q - (y > 0)) ** 2, 0.0, 1.0))
    assert watched.changes[0].round == run.alarms[0].round
    hinge = rue.learn(X, y, alarm=1e6, learner=rue.OGD("hinge"))
    assert hinge.watch.watched == "mistakes"
    mistakes = rue.Alarm(1e6)
    mistakes.enter(hinge.predictions * y <= 0.0)
    assert mistakes.changes == hinge.alarms


def test_residuals_are_clipped_at_a_bound_that_the_first_ones_set():
    X, y = numbers(3000)
    y[1500:] += 40.0 * np.sign(np.random.default_rng(2).normal(size=1500))
    run = rue.learn(X, y, alarm=1e5)
    sizes = np.abs(run.y - run.predictions)
    bound = 8.0 * sizes[:256].mean()
    assert run.watch.alarm.bound == pytest.approx(bound)
    assert run.alarms[0].round > 1500
    by_hand = rue.Alarm(1e5, run.watch.alarm.bound)
    by_hand.enter(np.minimum(sizes[256:], run.watch.alarm.bound))
    assert [change.round + 256 for change in by_hand.changes] == [change.round for change in run.alarms]


def test_contradictions_and_refusals(tmp_path):
    X, y = numbers(60)
    plain, watched = rue.learn(X, y), rue.learn(X, y, interval=0.9)
    with pytest.raises(SettingsError, match="interval contradicts the model, which was learnt without one"):
        rue.learn(X, y, learner=plain, interval=0.9)
    with pytest.raises(SettingsError, match=r"interval contradicts the model, which was learnt with \(0.9,\)"):
        rue.learn(X, y, learner=watched, interval=0.8)
    assert rue.learn(X, y, learner=watched, interval=0.9).interval.examples == 120
    with pytest.raises(SettingsError, match="learnt without intervals"):
        plain.predict_interval(X)
    with pytest.raises(SettingsError, match="learn with logistic loss, not Hinge"):
        rue.learn(X, np.sign(y), learner="ogd:hinge", interval=0.9)
    with pytest.raises(SettingsError, match="sets of classes have no side"):
        rue.learn(X, np.sign(y), task="classify", interval=0.9, side="upper")
    with pytest.raises(SettingsError, match="cannot be merged"):
        merge_models(Model(watched.learner), [Model(watched.learner, watch=watched.watch)])
    assert not Watch().asked


def write(path, X, y):
    lines = [",".join(map(repr, [*row.tolist(), label])) for row, label in zip(X, y.tolist(), strict=True)]
    path.write_text("\n".join(["a,b,y", *lines]) + "\n")
    return path


def columns(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_on_the_command_line(tmp_path, inside):
    X, y = numbers()
    path = write(tmp_path / "data.csv", X, y)
    out, model, found = tmp_path / "p.csv", tmp_path / "m.rue", tmp_path / "r.json"
    said = inside(
        *("learn", path, "--target", "y", "--interval", "0.9", "--alarm", "1e6"),
        *("--predictions", out, "--model", model, "--report", found, "-q"),
    )
    run = rue.learn(str(path), "y", interval=0.9, alarm=1e6)
    table = columns(out)
    assert list(table) == ["prediction", "lower", "upper"]
    assert list(map(float, table["lower"])) == run.lower.tolist()
    assert list(map(float, table["upper"])) == run.upper.tolist()
    interval = json.loads(found.read_text())["interval"]
    assert {"level", "covered", "promised_within", "mean_width", "groups", "windows"} <= set(interval)
    assert (interval["level"], interval["covered"]) == (0.9, run.interval.covered)
    assert [group["group"] for group in interval["groups"]] == ["b"]
    assert "of the labels inside, asked for 90.00%; by proof within" in said.out
    assert "a false alarm at most once in 1,000,000 rounds on average" in said.out
    said = inside("predict", model, path, "-o", tmp_path / "q.csv")
    assert "promise nothing" in said.err
    frozen = columns(tmp_path / "q.csv")
    assert list(map(float, frozen["lower"])) == rue.load(model).predict_interval(str(path))[0].tolist()
    said = inside("learn", path, "--resume", model, "--interval", "0.5", ok=2)
    assert "contradicts the model" in said.err
    assert "0.9 or several" not in inside("learn", path, "--target", "y", "--interval", "x", ok=2).out


@pytest.mark.parametrize("options", [("--interval", "0.5,0.9"), ("--interval", "0.9", "--side", "upper")])
def test_columns_of_levels_and_sides(options, tmp_path, inside):
    X, y = numbers(80)
    path, out = write(tmp_path / "data.csv", X, y), tmp_path / "p.csv"
    said = inside("learn", path, "--target", "y", *options, "--predictions", out, "-q")
    table = columns(out)
    del table["prediction"]
    names = ["upper"] if "--side" in options else ["lower 0.5", "upper 0.5", "lower 0.9", "upper 0.9"]
    assert list(table) == names
    assert all(math.isfinite(float(cell)) for cell in table[names[0]])
    assert said.out.count("intervals  ") == (1 if "--side" in options else 2)


@pytest.mark.parametrize("many", [2, 3])
def test_sets_on_the_command_line(many, tmp_path, inside):
    X, y = classes(400, many)
    path, out, model = tmp_path / "data.csv", tmp_path / "p.csv", tmp_path / "m.rue"
    path.write_text(
        "a,b,c,kind\n" + "".join(f"{','.join(map(repr, x.tolist()))},{name}\n" for x, name in zip(X, y, strict=True))
    )
    inside("learn", path, "--target", "kind", "--interval", "0.8", "--predictions", out, "--model", model, "-q")
    run = rue.learn(str(path), "kind", interval=0.8)
    names = list(run.labels.classes) or [run.labels.negative, run.labels.positive]
    wanted = [{name for name, chosen in zip(names, row, strict=True) if chosen} for row in run.sets.tolist()]
    assert [set(filter(None, cell.split("|"))) for cell in columns(out)["set"]] == wanted
    inside("predict", model, path, "-o", tmp_path / "q.csv", "--as", "probability")
    assert all(set(cell.split("|")) <= set(names) for cell in columns(tmp_path / "q.csv")["set"])


def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path, inside):
    X, y = numbers(600)
    path = write(tmp_path / "data.csv", X, y)
    broken = tmp_path / "data.csv"
    text = path.read_text().splitlines(keepends=True)
    whole, out, mark = tmp_path / "whole.csv", tmp_path / "p.csv", tmp_path / "c.rue"
    asked = ("--target", "y", "--interval", "0.9", "-q")
    inside("learn", path, *asked, "--predictions", whole, "--model", tmp_path / "whole.rue")
    broken.write_text("".join([*text[:300], "1.0,2.0,3.0,4.0\n", *text[300:]]))
    inside("learn", broken, *asked, "--checkpoint", mark, "--predictions", out, ok=1)
    broken.write_text("".join(text))
    inside("learn", broken, "--resume", mark, "--predictions", out, "--model", tmp_path / "m.rue", "-q")
    assert out.read_bytes() == whole.read_bytes()
    one, other = rue.load(tmp_path / "m.rue"), rue.load(tmp_path / "whole.rue")
    assert one.watch.intervals.summaries() == other.watch.intervals.summaries()


def test_rows_held_out_have_ends_too(tmp_path, inside):
    X, y = numbers(200)
    path, out = write(tmp_path / "data.csv", X, y), tmp_path / "p.csv"
    inside("learn", path, "--target", "y", "--interval", "0.9", "--holdout", "0.25", "--predictions", out, "-q")
    assert all(float(cell) == float(cell) for cell in columns(out)["upper"])
