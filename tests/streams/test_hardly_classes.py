"""Targets that are hardly classes are refused, with what to type; columns that name each row are noted."""

import io

import numpy as np
import pytest

import rue
from rue.streams.labels import Labels
from tables import open_table


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (
            [f"{i},{i % 10}" for i in range(40)],
            "look like amounts, such as '0,0': read them as numbers, with --decimal",
        ),
        ([*map(str, range(50)), "unknown"], "look like numbers, such as '0': mend 'unknown', which is none; if"),
        (
            [f"{1 + i % 28}.{1 + i % 12}.2026" for i in range(60)],
            "look like dates, such as '1.1.2026': predict another",
        ),
        ([f"customer {i}" for i in range(100)], "are 100 different words in 100 rows, such as 'customer 0': predict"),
    ],
)
def test_labels_that_are_hardly_classes_are_refused(labels, words):
    with pytest.raises(rue.DataError, match="say --task multiclass") as refused:
        Labels.of(labels)
    assert words in str(refused.value)
    assert Labels.of(labels, "multiclass").task == "multiclass"


@pytest.mark.parametrize(
    "labels",
    [
        [f"{i % 7},5" for i in range(60)],  # grades
        [str(i % 10) for i in range(60)],
        [f"name {i % 40}" for i in range(400)],
        ["red", "green", "blue"],
        [f"w{i}" for i in range(90)],
        list(range(50)),
    ],
)
def test_few_different_labels_are_classes_and_numbers_are_numbers(labels):
    assert Labels.of(labels).task == ("regress" if isinstance(labels[0], int) else "multiclass")


def test_a_target_with_decimal_commas_stops_the_command_and_is_read_when_asked_for(tmp_path, inside, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{x};{f'{3 * x:.2f}'.replace('.', ',')}\n" for x in rng.integers(1, 90, 60)]
    (tmp_path / "sales.csv").write_text("pieces;sum\n" + "".join(rows))
    assert "--decimal ','" in inside("learn", "sales.csv", "--target", "sum", "-q", ok=1).err
    assert "R²" in inside("learn", "sales.csv", "--target", "sum", "--decimal", ",", "-q").out


def notes(text):
    return dict(open_table(io.BytesIO(text.encode()), "csv").suspicious_columns())


def test_a_column_that_names_each_row_is_noted():
    rows = [f"{i:04d}-{chr(65 + i % 26)},{i % 3}\n" for i in range(150)]
    assert "holds another word in each of the first 150 rows" in notes("customer,y\n" + "".join(rows))["customer"]
    assert notes("customer,y\n" + "".join([*rows, rows[0]])) == {}


def test_cells_of_spaces_are_missing_numbers():
    rows = [f"{i % 9}.5,{i}\n" for i in range(40)]
    text = "total,y\n" + "".join([*rows, " ,1\n", "   ,2\n"])
    assert notes(text) == {}
    assert str(open_table(io.BytesIO(text.encode()), "csv").schema.field("total").type) == "double"


def test_numbers_that_a_frame_holds_as_text_are_noted():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"total": [f"{i}.25" for i in range(30)], "code": [f"{i:05d}" for i in range(30)]})
    frame["y"] = [0, 1] * 15
    with pytest.warns(
        UserWarning, match="total is taken as words, though nearly all .* the table has them as text"
    ) as w:
        rue.learn(frame, y="y", learner=rue.OGD("logistic"))
    assert not any("code" in str(warning.message) for warning in w)
