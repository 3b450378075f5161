"""Columns that are crossed: as if a column of text had been written by hand, in every form that a table has."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import rue
from rue.errors import DataError, SettingsError

HOURS, ROUTES, OPEN = [13, 7, None, 13, 7, 0], ["A", "B", "A", None, "A", "B"], [True, False, True, True, False, None]
BOUGHT = [1, 0, 1, 1, 0, 0]


def table(**more):
    columns = {"hour": HOURS, "route": ROUTES, "open": OPEN, "price": [0.5, 1.25, 3.0, 4.5, 0.25, 1.0]}
    return pa.table({**columns, **more, "bought": BOUGHT})


def matrix(run, X):
    """What a model makes of a table: name and value of each feature of each row."""
    names = run.names
    rows = []
    for block in rue.streams.read_like(run.features, X):
        for i in range(len(block)):
            here = slice(int(block.X.indptr[i]), int(block.X.indptr[i + 1]))
            rows.append({names[int(j)]: v for j, v in zip(block.X.indices[here], block.X.data[here], strict=True)})
    return rows


def test_it_is_a_column_of_text_that_has_both_values():
    together = ["13×A", "7×B", "×A", "13×", "7×A", "0×B"]
    by_hand = table(**{"hour×route": together})
    crossed = rue.learn(table(), "bought", learner="ogd", cross=[("hour", "route")])
    expected = rue.learn(by_hand, "bought", learner="ogd", category="hour×route")
    assert matrix(crossed, table()) == matrix(expected, by_hand)
    assert np.array_equal(crossed.predictions, expected.predictions)
    assert crossed.missing == rue.learn(table(), "bought", learner="ogd").missing
    one = {"hour": 13, "route": "A", "open": True, "price": 0.5}
    assert crossed.predict(one) == crossed.predict(table().slice(0, 1))[0]
    assert "hour×route=13×A" in dict(rue.weights_of(crossed))
    three = rue.learn(table(), "bought", learner="ogd", cross=("hour", "route", "open"))
    assert "hour×route×open=7×B×false" in dict(rue.weights_of(three))


def test_every_format_makes_the_same_of_it(tmp_path, inside):
    rows = table().to_pylist()
    parquet.write_table(table(), tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    written = [
        ["" if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in r.values()] for r in rows
    ]
    (tmp_path / "t.csv").write_text("\n".join(",".join(row) for row in [list(rows[0]), *written]) + "\n")
    decimal = [";".join(row).replace(".", ",") for row in [list(rows[0]), *written]]
    (tmp_path / "comma.csv").write_text("\n".join(decimal) + "\n")
    cross, expected = [("hour", "route"), ("price", "open")], None
    for source, more in (
        (table(), {}),
        (table().to_pandas(), {}),
        (rows, {}),
        (tmp_path / "t.parquet", {}),
        (tmp_path / "t.jsonl", {}),
        (tmp_path / "t.csv", {}),
        (tmp_path / "comma.csv", {"decimal": ",", "separator": ";"}),
    ):
        run = rue.learn(source, "bought", learner="ogd", cross=cross, category="hour", **more)
        names = {name for name in dict(rue.weights_of(run)) if "×" in name}
        expected = expected or names
        assert names == expected, source
    assert {"hour×route=13×A", "price×open=0.5×true", "price×open=1×"} <= expected
    command = ["--target", "bought", "--learner", "ogd", "--quiet", "--cross", "hour,route", "--cross", "price,open"]
    inside("learn", tmp_path / "t.csv", *command, "--model", tmp_path / "m.rue", "--predictions", tmp_path / "p.csv")
    listed = inside("weights", tmp_path / "m.rue").out
    assert "hour×route=13×A" in listed
    resumed = ["learn", tmp_path / "t.csv", "--resume", tmp_path / "m.rue", "--quiet"]
    inside(*resumed, "--cross", "hour,route", "--cross", "price,open")
    assert "contradicts" in inside(*resumed, "--cross", "hour,route", ok=2).err
    model = rue.load(tmp_path / "m.rue")
    rue.learn(table(), learner=model)
    with pytest.raises(SettingsError, match="contradicts the model"):
        rue.learn(table(), learner=model, cross=[("hour", "price")])


def test_what_cannot_be_crossed_is_refused(tmp_path, inside):
    days = table(day=pa.array([0] * 6, pa.date32()))
    for cross in (("hour",), ("hour", "hour"), ("hour", "bought"), ("hour", "day"), ("hour", "route", "open", "price")):
        with pytest.raises(DataError, match="cross: .* cannot be crossed: name two or three columns"):
            rue.learn(days, "bought", cross=cross)
    with pytest.raises(DataError, match="there is no column to cross 'hours': did you mean 'hour'"):
        rue.learn(table(), "bought", cross=("hours", "route"))
    with pytest.raises(DataError, match="crossed twice"):
        rue.learn(table(), "bought", cross=[("hour", "route")] * 2)
    with pytest.raises(SettingsError, match="cross: give pairs of columns"):
        rue.learn(table(), "bought", cross="hour,route")
    with pytest.raises(SettingsError, match="cross: these are for files and tables"):
        rue.learn([[1.0, 2.0]], [1], cross=("a", "b"))
    (tmp_path / "t.svm").write_text("1 1:2\n")
    assert "are for tables, not svmlight" in inside("learn", tmp_path / "t.svm", "--cross", "a,b", ok=2).err
