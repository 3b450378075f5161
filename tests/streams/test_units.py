"""Units: parts of files that are read by themselves hold exactly what the file holds."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import rue
from rue.streams import units
from rue.streams.data import Data
from rue.streams.units import chunks_of, digest_of, units_of

pytestmark = pytest.mark.usefixtures("interpreted")

ROWS = 90


def rows(random):
    return [
        (random.choice(["red", "blue", "dark green"]), random.normal(), int(random.integers(2))) for _ in range(ROWS)
    ]


def written(folder, kind):
    """A file of a kind with the same examples, and the options to read it with."""
    content, path = rows(np.random.default_rng(0)), folder / f"data.{kind}"
    lines = {
        "csv": ["colour,x,y", *(f'"{word}",{x},{y}' for word, x, y in content)],
        "jsonl": [json.dumps({"colour": word, "x": x, "y": y}) for word, x, y in content],
        "svm": [f"{y} 1:{x} {3 + len(word)}:1" for word, x, y in content],
        "vw": [f"{2 * y - 1} |n {word} x:{x}" for word, x, y in content],
    }
    if kind == "parquet":
        table = pa.table({name: [row[i] for row in content] for i, name in enumerate(("colour", "x", "y"))})
        pq.write_table(table, path, row_group_size=17)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress("\n".join(lines["csv"]).encode()))
    else:
        path.write_text("\n".join(lines[kind]) + "\n" * (kind != "jsonl"))
    return str(path), {} if kind in ("svm", "vw") else {"target": "y"}


def joined(blocks):
    """All rows, as a matrix, and their labels."""
    shape = max(block.width for block in blocks)
    matrices = [
        sparse.csr_array((X.data, X.indices, X.indptr), (len(block), shape))
        if (X := block.X) is not None and block.sparse
        else sparse.csr_array(np.pad(X, ((0, 0), (0, shape - X.shape[1]))))
        for block in blocks
    ]
    return sparse.vstack(matrices).tocsr(), np.concatenate([block.y for block in blocks])


@pytest.mark.parametrize("size", [333, 10**6])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "svm", "vw", "parquet", "csv.gz"])
def test_units_hold_what_the_file_holds(tmp_path, monkeypatch, kind, size):
    monkeypatch.setattr(units, "UNIT", size)
    path, options = written(tmp_path, kind)
    data = Data((path,), bits=10, **options)
    whole = list(data)
    parts = units_of(data)
    many = {"parquet": 6, "csv.gz": 1}.get(kind, -(-(tmp_path / f"data.{kind}").stat().st_size // size))
    assert len(parts) == many
    X, y = joined(whole)
    blocks = [chunk.block for unit in parts for chunk in chunks_of(unit, data.describe())]
    again, labels = joined([block for block in blocks if len(block)])
    assert labels.tolist() == y.tolist()
    assert abs(again - X).max() == 0.0


def test_a_csv_with_line_ends_in_quotes_is_one_unit(tmp_path, monkeypatch):
    monkeypatch.setattr(units, "UNIT", 30)
    path = tmp_path / "quoted.csv"
    path.write_text('text,y\n"one\nand two",1\nthree,0\nfour,1\nfive,0\n')
    assert len(units_of(Data((str(path),), target="y"))) == 1
    path.write_text('text,y\n"one and two",1\nthree,0\nfour,1\nfive,0\n')
    assert len(units_of(Data((str(path),), target="y"))) == 2


def test_a_quote_that_is_open_where_a_file_is_cut_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(units, "UNIT", 2**21)
    path = tmp_path / "late.csv"
    line = "some text without a quote,1\n"
    before = 2**21 // len(line)
    path.write_text("text,y\n" + line * before + '"a quote\n\n' + "that goes on\n" * 20 + 'and on",0\n' + line * 10)
    data = Data((str(path),), target="y")
    parts = units_of(data)
    next(data.reads())  # which settles the columns
    assert len(parts) == 2
    with pytest.raises(
        rue.DataError, match=r"late\.csv: a field in quotes is open at byte 2,097,152, where the file is"
    ):
        list(chunks_of(parts[0], data.describe()))


def test_an_error_says_where_its_unit_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(units, "UNIT", 30)
    path = tmp_path / "bad.csv"
    path.write_text("x,y\n" + "1.5,0\n" * 9 + "9,9,1\n")
    data = Data((str(path),), target="y")
    list(data.reads())
    chunks = [chunk for unit in units_of(data) for chunk in chunks_of(unit, data.describe())]
    [(chunk, bad)] = [(chunk, bad) for chunk in chunks for bad in chunk.bad]
    assert str(chunk.error(bad)) == f"{path} from byte 34, line 5: 3 fields instead of 2."


def test_pipes_have_no_units():
    with pytest.raises(rue.SettingsError, match="a pipe cannot be learnt in shards"):
        units_of(Data(("-",), "csv", target="y"))


def test_a_file_of_another_size_has_another_digest(tmp_path):
    path, options = written(tmp_path, "csv.gz")
    before = digest_of(units_of(Data((path,), **options)))
    assert digest_of(units_of(Data((path,), **options))) == before
    with open(path, "ab") as file:
        file.write(b"x")
    assert digest_of(units_of(Data((path,), **options))) != before
