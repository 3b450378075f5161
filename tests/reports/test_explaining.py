"""Weights by name, the parts of one prediction, and the plain table."""

import csv
import functools

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.sparse import csr_matrix

import rue
from rue.reports.explaining import Weights, explain, weights_of

learn = functools.partial(rue.learn, maps=None)  # the linear mixture


@pytest.fixture(autouse=True)
def uncompiled(interpreted):
    """Nothing here depends on compiled code."""


def numbers(n=30, d=3, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, np.where(X @ np.arange(1, d + 1) > 0, 1, -1)


def frame(n=40):
    rng = np.random.default_rng(4)
    size, wood = rng.normal(size=n), rng.choice(["ash", "beech"], size=n)
    sold = np.where(size + (wood == "ash") > 0.5, "yes", "no")
    return pd.DataFrame({"size": np.where(np.arange(n) % 7 == 3, np.nan, size), "wood": wood, "sold": sold})


def some_classes():
    X, _ = numbers(40)
    return X, np.array(["a", "b", "c"])[np.searchsorted([-0.7, 0.7], X[:, 0] + X[:, 1])]


# Weights.


def test_weights_of_rows_by_position():
    X, y = numbers()
    run = learn(X, y, learner=rue.Perceptron())
    found = weights_of(run)
    assert dict(found) == {
        "intercept": run.learner.bias,
        **{f"feature {j}": weight for j, weight in enumerate(run.learner.weights)},
    }
    assert found.indices.tolist() == [-1, 0, 1, 2]
    bare = learn(X, y, learner=rue.Perceptron(intercept=False))
    assert found.classes == ()
    assert dict(weights_of(bare.learner)) == {f"feature {j}": w for j, w in enumerate(bare.learner.weights)}
    assert len(weights_of(rue.Perceptron(d=3))) == 0  # those that are 0 are left out


def test_weights_by_the_names_of_dicts_and_tables():
    learner = rue.Perceptron()
    learner.update({"b": 2.0, "a": -1.0}, 1.0)
    assert dict(weights_of(learner)) == {"intercept": 1.0, "b": 2.0, "a": -1.0}
    run = learn(frame(), target="sold", learner="ogd")
    assert set(dict(weights_of(run))) <= {"intercept", "size", "size=", "wood=ash", "wood=beech"}
    assert {"size", "wood=ash", "wood=beech"} <= set(dict(weights_of(run)))


def test_the_weights_are_those_that_predict():
    X, y = numbers()
    svm = learn(X, y, learner=rue.SVM(0.1))
    assert [weight for _, weight in weights_of(svm)] == svm.learner.average.tolist()
    assert not np.array_equal(svm.learner.average, svm.learner.point)
    mixture = learn(X, y)
    assert [weight for _, weight in weights_of(mixture)] == mixture.learner.point.tolist()


def test_more_than_two_classes():
    run = learn(*some_classes())
    found = weights_of(run)
    point = run.learner.point
    named = {(name, label): weight for name, label, weight in found}
    for c, label in enumerate(run.labels.classes):
        assert named["intercept", label] == point[0, c]
        assert named["feature 1", label] == point[2, c]
    assert len(found) == point.size
    assert found.table().column_names == ["feature", "index", "class", "weight"]
    bare = weights_of(run.learner)  # without labels classes have their numbers
    assert bare.classes == (1, 2, 3)


def test_the_largest_first():
    found = Weights(np.array([-1, 0, 1]), np.array([1.0, -3.0, 2.0]), np.zeros(3, int), (), {0: "age"})
    assert list(found.largest(2)) == [("age", -3.0), ("feature 1", 2.0)]
    assert str(found).split("\n") == ["          -3  age", "           2  feature 1", "           1  intercept"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "CSV"])
def test_a_table_that_predicts_elsewhere(suffix, tmp_path):
    data = frame()
    run = learn(data, target="sold", learner=rue.OGD("logistic", "ball:5"))
    path = tmp_path / f"weights.{suffix}"
    weights_of(run).save(path)
    if suffix == "parquet":
        read = pyarrow.parquet.read_table(path).to_pylist()
    else:
        read = list(csv.DictReader(path.read_text().splitlines()))
    assert [list(row) for row in read] == [["feature", "index", "weight"]] * len(read)
    assert [(row["feature"], float(row["weight"])) for row in read] == list(weights_of(run))  # every bit
    assert [row["feature"] for row in read if row["index"] in ("", None)] == ["intercept"]
    table = {row["feature"]: float(row["weight"]) for row in read}
    sums = [
        table["intercept"] + (table.get("size=", 0.0) if size != size else size * table["size"]) + table[f"wood={wood}"]
        for size, wood in zip(data["size"], data["wood"], strict=True)
    ]
    assert np.allclose(sums, run.predict(data), rtol=1e-12)
    assert sorted(tmp_path.iterdir()) == [path]


def test_tables_that_cannot_be_written(tmp_path):
    found = weights_of(learn(*numbers(), learner=rue.Perceptron()))
    with pytest.raises(rue.SettingsError, match="as .csv or .parquet"):
        found.save(tmp_path / "weights.xlsx")
    with pytest.raises(rue.DataError, match="cannot be written"):
        found.save(tmp_path / "nowhere" / "weights.csv")
    with pytest.raises(rue.SettingsError, match="not dict"):
        weights_of({})


# One prediction.


def test_the_parts_of_a_linear_prediction_are_all_of_it():
    X, y = numbers()
    for learner in (rue.Perceptron(), rue.SVM(0.1), rue.OGD("square", "ball:3", intercept=False)):
        run = learn(X, y, learner=learner)
        told = explain(run, X[5])
        assert told.prediction == pytest.approx(run.predict(X[5:6])[0], rel=1e-12)
        assert sum(part.contribution for part in told.parts) == pytest.approx(told.prediction, rel=1e-12)
        assert abs(told.rest) < 1e-12 * max(1.0, abs(told.prediction))
        sizes = [abs(part.contribution) for part in told.parts]
        assert sizes == sorted(sizes, reverse=True)
        assert {part.feature for part in told.parts} == {"feature 0", "feature 1", "feature 2"} | (
            {"intercept"} if run.learner.intercept else set()
        )
        sparse = explain(run, (np.array([2]), np.array([0.5])))
        assert sparse.prediction == pytest.approx(run.predict(csr_matrix([[0.0, 0.0, 0.5]]))[0])
        assert explain(run, csr_matrix(X[5:6])) == told


def test_of_a_mixture_something_is_left_unexplained():
    X, y = numbers()
    run = learn(X, y, maps=None)
    told = explain(run, X[3])
    assert told.prediction == run.predict(X[3:4])[0]
    w = run.learner.point
    assert told.linear == pytest.approx(w[0] + X[3] @ w[1:])
    assert told.rest == told.prediction - told.linear != 0.0
    assert told.label == 1
    assert "what no weights explain" in str(told)


def test_one_class_of_many():
    X, y = some_classes()
    run = learn(X, y)
    told = explain(run, X[0])
    chances = run.predict(X[:1])[0, 1:]
    assert told.label == run.labels.classes[chances.argmax()]
    assert told.prediction == pytest.approx(np.log(chances.max()))
    sums = np.append(1.0, X[0]) @ run.learner.point
    for label in run.labels.classes:
        told = explain(run, X[0], label)
        c = run.labels.classes.index(label)
        assert told.prediction == pytest.approx(np.log(chances[c]))
        assert told.linear == pytest.approx(sums[c] - np.log(np.exp(sums).sum()))
        assert sum(part.contribution for part in told.parts) == pytest.approx(sums[c])
    with pytest.raises(rue.DataError, match="'d' is none of the classes"):
        explain(run, X[0], "d")
    with pytest.raises(rue.DataError, match="no class yet"):
        explain(rue.SoftmaxMixture(d=3), X[0])


def test_examples_by_name(tmp_path):
    run = learn(frame(), target="sold", learner=rue.OGD("logistic", "ball:5"))
    rue.save(run, tmp_path / "m.rue")
    for what in (run, tmp_path / "m.rue", str(tmp_path / "m.rue"), rue.load(tmp_path / "m.rue")):
        told = explain(what, {"size": 0.5, "wood": "ash"})
        assert [(part.feature, part.value) for part in sorted(told.parts, key=lambda part: part.feature)] == [
            ("intercept", 1.0),
            ("size", 0.5),
            ("wood=ash", 1.0),
        ]
        assert told.label == "yes"
        assert told == explain(what, pa.table({"size": [0.5], "wood": ["ash"]}))
        missing = explain(what, {"size": None, "wood": "ash"})
        assert {part.feature for part in missing.parts} >= {"size=", "wood=ash"}
    learner = rue.Perceptron()
    learner.update({"b": 2.0, "a": -1.0}, 1.0)
    told = explain(learner, {"a": 3.0, "new": 5.0})
    assert told.prediction == learner.predict({"a": 3.0}) == -2.0
    assert [part.feature for part in told.parts] == ["a", "intercept"]
    model = rue.Model(learn(*numbers(), learner=rue.Perceptron()).learner, names={0: "x", 2: "z"})
    assert {part.feature for part in explain(model, {"z": 1.0, "unknown": 2.0}).parts} == {"intercept", "z"}


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        ([1.0, 2.0], "has 2 features, but the learner has 3"),
        ({"a": 1.0}, "knows no names"),
        ([1.0, 2.0, np.nan], "finite"),
    ],
)
def test_examples_that_do_not_fit(x, sentence):
    run = learn(*numbers(), learner=rue.Perceptron())
    with pytest.raises(rue.DataError, match=sentence):
        explain(run, x)
    with pytest.raises(rue.SettingsError, match="label is for more than two classes"):
        explain(run, [1.0, 2.0, 3.0], label=1)


def test_one_row_of_a_table_at_a_time():
    run = learn(frame(), target="sold", learner=rue.Perceptron())
    with pytest.raises(rue.DataError, match="one example at a time, not 40"):
        explain(run, frame())


# The command.


def test_the_command(inside, tmp_path):
    data, model = tmp_path / "d.csv", tmp_path / "m.rue"
    frame().to_csv(data, index=False)
    inside("learn", data, "--target", "sold", "--learner", "perceptron", "--model", model, "--quiet")
    said = inside("weights", model)
    found = weights_of(str(model))
    assert said.out.splitlines()[0] == '"feature","index","weight"'
    assert len(said.out.splitlines()) == 1 + len(found)
    assert "sums above 0 mean 'yes', those below 'no'" in said.err
    for name in ("w.csv", "w.parquet"):
        said = inside("weights", model, "--out", tmp_path / name)
        assert said.out == ""
    assert (tmp_path / "w.csv").read_text() == inside("weights", model).out
    assert pyarrow.parquet.read_table(tmp_path / "w.parquet").equals(found.table())
    assert "as .csv or .parquet" in inside("weights", model, "--out", tmp_path / "w.txt", ok=2).err
    assert "no folder" in inside("weights", model, "-o", tmp_path / "no" / "w.csv", ok=1).err
