"""`predict` of runs and models: the same answer for every form of an example, as scores, probabilities and labels."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import rue

ROWS = 40


def frame(seed=0):
    """Numbers, whole numbers, words, booleans, and a value missing of each."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=ROWS).round(3),
            "rooms": rng.integers(1, 6, size=ROWS),
            "wood": rng.choice(["oak", "ash", None], size=ROWS),
            "old": rng.choice([True, False], size=ROWS),
        }
    )
    table.loc[3, "size"] = np.nan
    return table


def score(table):
    return table["size"].fillna(0.0) + (table["wood"] == "oak") + 0.1 * table["rooms"] - 0.7


TARGETS = {
    "two classes": lambda table: np.where(score(table) > 0.0, "yes", "no"),
    "three classes": lambda table: np.array(["low", "mid", "high"])[np.searchsorted([-0.5, 0.5], score(table))],
    "numbers": score,
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("task", TARGETS)
def test_every_form_of_an_example_has_the_same_prediction(task, tmp_path):
    table = frame()
    run = rue.learn(table.assign(target=TARGETS[task](table)), "target")
    rue.save(run, tmp_path / "m.rue")
    table.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    dicts = table.astype(object).where(table.notna(), None).to_dict("records")
    for model in (run, rue.load(tmp_path / "m.rue")):
        expected = model.predict(table)
        for many in (pa.Table.from_pandas(table), pl.from_pandas(table), dicts, tmp_path / "rows.jsonl"):
            assert np.array_equal(model.predict(many), expected)
        for i, row in enumerate(dicts):
            for one in (row, table.iloc[i], dict(reversed(row.items()))):
                assert np.array_equal(model.predict(one), expected[i])
            assert np.array_equal(model.predict([row]), expected[i : i + 1])
        assert model.predict(table[:0]).shape == expected[:0].shape
    with pytest.raises(rue.DataError, match="the column 'wood' is missing: the columns are size, rooms"):
        run.predict({"size": 1.0, "rooms": 2, "old": True})
    with pytest.raises(rue.DataError, match="learnt from files or tables: give one of these, or a row as a dict"):
        run.predict(np.ones(4))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array], ids=["dense", "matrix", "array"])
def test_rows_of_arrays_one_or_many(form):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(ROWS, 3))
    run = rue.learn(form(X), X[:, 0] > 0, learner="ogd")
    expected = X @ run.learner.weights + run.learner.bias
    assert np.allclose(run.predict(form(X)), expected)
    for i in range(3):
        assert run.predict(X[i]) == pytest.approx(expected[i])
        assert run.predict(X[i].tolist()) == pytest.approx(expected[i])
        assert run.predict(pd.Series(X[i])) == pytest.approx(expected[i])
        assert run.predict(form(X[i : i + 1])) == pytest.approx([expected[i]])
    assert isinstance(run.predict(X[0]), float)
    with pytest.raises(rue.DataError, match="by position: it knows no names"):
        run.predict({"a": 1.0})
    with pytest.raises(rue.DataError, match="4 features, but the learner has 3|beyond"):
        rue.learn(X, X[:, 0] > 0, learner="ogd").predict([1.0, 2.0, 3.0, 4.0])


@pytest.mark.usefixtures("interpreted")
def test_scores_probabilities_and_labels(inside, tmp_path):
    """In the words of `rue predict --as`, and with its numbers."""
    table = frame()
    table.to_csv(tmp_path / "rows.csv", index=False)
    for task, make in TARGETS.items():
        run = rue.learn(table.assign(target=make(table)), "target")
        rue.save(run, tmp_path / "m.rue")
        for reading in ("score", "probability", "label"):
            if task == "numbers" and reading != "score":
                with pytest.raises(rue.SettingsError, match=f"as_='{reading}' is for classes"):
                    run.predict(table, as_=reading)
                continue
            answer = run.predict(table, as_=reading)
            if task == "three classes" and reading == "score":
                continue
            out, _ = inside("predict", tmp_path / "m.rue", tmp_path / "rows.csv", "--as", reading)
            header, *written = (line.split(",") for line in out.splitlines())
            if reading == "label":
                assert answer.tolist() == [line[-1] for line in written]
                assert run.predict(table.iloc[0], as_=reading) == answer[0]
                assert type(run.predict(table.iloc[0], as_=reading)) is str
            else:
                order = [header.index(name) for name in run.labels.classes] or [0]  # files have the classes in order
                numbers = np.array(written, dtype=float)[:, order]
                assert np.array_equal(numbers.reshape(answer.shape), answer)
    X = np.array([[1.0], [-1.0]])
    run = rue.learn(X, [1, 0])
    assert np.allclose(run.predict(X, as_="probability"), 1.0 / (1.0 + np.exp(-run.predict(X))))
    assert run.predict(X, as_="label").tolist() == [1, 0]
    assert rue.Model(run.learner).predict(X, as_="label").tolist() == [1, -1]
    hinge = rue.learn(X, [1, 0], learner=rue.OGD("hinge"))
    with pytest.raises(rue.SettingsError, match="needs logistic loss"):
        hinge.predict(X, as_="probability")
    with pytest.raises(rue.SettingsError, match="as_ is 'score', 'probability' or 'label', not 'odds'"):
        run.predict(X, as_="odds")


@pytest.mark.usefixtures("interpreted")
def test_several_classes_have_a_column_each():
    table = frame()
    run = rue.learn(table, TARGETS["three classes"](table))
    chances = run.predict(table, as_="probability")
    assert chances.shape == (ROWS, 3)
    raw = run.predict(table)
    assert np.allclose(chances.sum(axis=1) + raw[:, 0], 1.0)
    labels = run.predict(table, as_="label")
    assert labels.tolist() == [run.labels.classes[c] for c in chances.argmax(axis=1)]
    assert np.mean(labels == TARGETS["three classes"](table)) > 0.7
