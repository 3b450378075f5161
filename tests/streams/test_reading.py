"""Everything that holds examples, read as one stream: the library equals the command line to the last bit."""

import bz2
import gzip
import io
import json
import lzma
import pathlib
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from scipy import sparse

import rue
from commands import read as report_of
from commands import run as command
from commands import write_svm
from rue.errors import BadExample, DataError, SettingsError
from rue.streams import read
from rue.streams.data import Data
from rue.streams.tables.columns import plan
from tables import open_table

ROWS = 700


def frame(seed=0, rows=ROWS):
    """A table with one column of each kind, and holes."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=rows),
            "colour": rng.choice(["red", "grün", "a,b", 'say "so"'], rows),
            "count": rng.integers(0, 5, rows),
            "sold": rng.random(rows) < 0.5,
            "when": pd.date_range("2020-01-01", periods=rows, freq="h").as_unit("us"),
            "mass": rng.random(rows),
        }
    )
    table["bought"] = np.where(table["size"] + (table.colour == "red") + rng.normal(size=rows) > 0.5, "yes", "no")
    table.loc[rng.random(rows) < 0.1, "size"] = np.nan
    table["colour"] = table.colour.where(rng.random(rows) > 0.1, None)
    return table


def as_files(table, folder):
    """The same table in every format."""
    table.to_csv(folder / "t.csv", index=False)
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    pa.parquet.write_table(arrow, folder / "t.parquet")
    pa.feather.write_feather(arrow, folder / "t.arrow")
    rows = [{**row, "when": row["when"].isoformat()} for row in arrow.to_pylist()]
    text = "".join(json.dumps({key: value for key, value in row.items() if value is not None}) + "\n" for row in rows)
    (folder / "t.jsonl.xz").write_bytes(lzma.compress(text.encode()))
    return ["t.csv", "t.csv.gz", "t.parquet", "t.arrow", "t.jsonl.xz"]


def same(said, model, run):
    assert said["examples"] == run.examples
    assert said["loss_total"] == run.loss
    assert said["mistakes"] == run.mistakes
    assert said["certificate"]["alone"] == run.certificate().alone  # the command keeps witnesses too
    assert model.learner == run.learner
    assert model.learner.point.tobytes() == run.learner.point.tobytes()
    assert model.features == run.features
    assert model.names == run.names


def test_tables_are_read_as_by_the_command(tmp_path):
    table = frame()
    runs = []
    for name in as_files(table, tmp_path):
        made = ["--report", tmp_path / "r.json", "--model", tmp_path / "m.rue", "--predictions", tmp_path / "p.csv"]
        told = ["--target", "bought", "--weight", "mass", "--category", "count", "--drop", "sold"]
        command("learn", tmp_path / name, *told, *made, "-q")
        run = rue.learn(tmp_path / name, "bought", weights="mass", category=["count"], drop="sold")
        same(report_of(tmp_path / "r.json"), rue.load(tmp_path / "m.rue"), run)
        assert np.array_equal(np.loadtxt(tmp_path / "p.csv", skiprows=1), run.predictions)
        runs.append(run)
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    for held in (table, pl.from_pandas(table), arrow, arrow.to_reader(), arrow.combine_chunks().to_batches()[0]):
        runs.append(rue.learn(held, target="bought", weights="mass", category="count", drop=["sold"]))
    beside = table.drop(columns=["bought", "mass"])
    runs.append(rue.learn(beside, table.bought, weights=table.mass, category="count", drop="sold"))
    for run in runs[1:]:
        assert run.learner == runs[0].learner
        assert run.loss == runs[0].loss
        assert run.names == runs[0].names
        assert run.features["columns"]["plan"] == runs[0].features["columns"]["plan"]


@pytest.mark.parametrize("name", ["s.svm", "s.vw", "s.vw.bz2"])
def test_lines_are_read_as_by_the_command(name, tmp_path):
    X, y = write_svm(tmp_path / "s.svm")
    lines = (tmp_path / "s.svm").read_text().splitlines()
    text = "".join(f"{line.replace(' ', ' | ', 1)}\n" for line in lines)
    (tmp_path / "s.vw").write_text(text)
    (tmp_path / "s.vw.bz2").write_bytes(bz2.compress(text.encode()))
    command("learn", tmp_path / name, "--report", tmp_path / "r.json", "--model", tmp_path / "m.rue", "-q")
    run = rue.learn(tmp_path / name)
    same(report_of(tmp_path / "r.json"), rue.load(tmp_path / "m.rue"), run)
    assert run.loss == rue.learn(sparse.csr_matrix(X), y).loss
    learner = rue.OGD(loss="hinge", domain="ball:3")
    again = rue.OGD(loss="hinge", domain="ball:3")
    assert np.array_equal(learner.run(tmp_path / name), again.run(sparse.csr_matrix(X), y))
    assert np.array_equal(learner.predict_many(str(tmp_path / name)), again.predict_many(sparse.csr_matrix(X)))
    p = run.predictions
    found = rue.certify(tmp_path / name, None, p, loss="logistic", radius=2)
    wanted = rue.certify(sparse.csr_matrix(X), y, p, loss="logistic", radius=2)  # whose norm is of fewer coordinates
    assert found.regret_at_most == pytest.approx(wanted.regret_at_most, rel=1e-13)


def test_a_folder_is_the_files_in_it_by_name(tmp_path):
    rng = np.random.default_rng(0)
    written = {}
    hidden = ("_old.csv", ".d.csv", "_tmp/e.csv", "read.me", "b/x.svm.bak")
    for name in ("b/2.csv", "a.csv", "b/1.csv.gz", "c.CSV", *hidden):
        rows = "".join(f"{x:.3f},{int(x > 0.0)}\n" for x in rng.normal(size=20))
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        content = f"x,y\n{rows}".encode()
        path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        written[name] = str(path)
    named = [written[name] for name in ("a.csv", "c.CSV", "b/1.csv.gz", "b/2.csv")]
    whole, one_by_one = rue.learn(str(tmp_path), y="y"), rue.learn(named, y="y")
    assert whole.predictions.size == 80
    assert whole.learner == one_by_one.learner
    stream = read(tmp_path / "b", target="y")
    assert [len(block) for block in stream] == [20, 20]


def test_several_files_and_several_tables_are_one_stream(tmp_path):
    whole = frame()
    parts = [whole[:300], whole[300:450], whole[450:]]
    for i, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{i}.parquet")
    wanted = rue.learn(whole, "bought")
    assert rue.learn([tmp_path / f"{i}.parquet" for i in range(3)], "bought").learner == wanted.learner
    assert rue.learn(parts, "bought").learner == wanted.learner
    beside = [part.drop(columns="bought") for part in parts]
    assert rue.learn(beside, whole.bought.to_numpy()).learner == wanted.learner


def test_a_stream_is_read_again_and_again():
    table = frame()
    stream = read(table, target="bought", drop=["when"])
    run = rue.learn(stream)
    assert rue.learn(stream).learner == run.learner == rue.learn(table, "bought", drop="when").learner
    audit = rue.audit(run, stream)
    assert audit.passed
    once = read(pa.Table.from_pandas(table).to_reader(), target="bought")
    assert sum(map(len, once)) == ROWS
    with pytest.raises(DataError, match="only once"):
        list(once)


def test_predicting_as_it_was_learnt(tmp_path):
    table, new = frame(), frame(seed=1)
    run = rue.learn(table, "bought", weights="mass")
    rue.save(run, tmp_path / "m.rue")
    model = rue.load(tmp_path / "m.rue")
    wanted = run.predict(new)
    as_files(new, tmp_path)
    command("predict", tmp_path / "m.rue", tmp_path / "t.parquet", "-o", tmp_path / "p.csv")
    assert np.array_equal(wanted, np.loadtxt(tmp_path / "p.csv", skiprows=1))
    assert np.array_equal(wanted, model.predict(str(tmp_path / "t.csv")))
    unlabelled = new.drop(columns=["bought", "mass"])[["when", "sold", "count", "colour", "size"]]
    assert np.array_equal(wanted, run.predict(unlabelled))
    assert np.array_equal(wanted, run.predict(pl.from_pandas(unlabelled)))
    assert "size" in command("inspect", tmp_path / "m.rue").stdout
    with pytest.raises(DataError, match="'size' is missing"):
        run.predict(unlabelled.drop(columns="size"))
    with pytest.raises(DataError, match="give one of these, or a row as a dict, not ndarray"):
        run.predict(np.eye(3))
    with pytest.raises(DataError, match="learnt from arrays"):
        rue.learn(np.eye(2), [0, 1]).predict(new)
    assert rue.learn(np.eye(2), [0, 1]).predict(np.eye(2)).shape == (2,)


def test_bad_rows(tmp_path):
    table = frame()
    table.loc[7, "size"] = np.inf
    with pytest.raises(BadExample, match="row 7 .counting from 0.: an infinity, column size"):
        rue.learn(table, "bought")
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match="t.csv, line 9, column size: an infinity"):
        rue.learn(tmp_path / "t.csv", "bought")
    runs = [rue.learn(table, "bought", bad="skip"), rue.learn(tmp_path / "t.csv", "bought", bad="skip")]
    runs.append(rue.learn(table.drop(columns="bought"), table.bought, bad="skip"))
    assert [(run.examples, run.skipped) for run in runs] == [(ROWS - 1, 1)] * 3
    assert runs[0].learner == runs[1].learner == runs[2].learner
    table["bought"] = np.where(table.index == 20, "perhaps", table.bought)
    assert rue.learn(table.drop(index=7), "bought").labels.classes == ("no", "yes", "perhaps")
    with pytest.raises(DataError, match="more than two classes .'no', 'yes', 'perhaps'"):
        rue.learn(table.drop(index=7), "bought", learner=rue.OGD("logistic"))


def test_classes_as_numbers():
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1, 2, 2]})
    assert rue.learn(table, "y").mistakes is None
    assert rue.learn(table, "y", task="classify").labels.positive == 2


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("t.csv",), {}, "say which column"),
        (("t.csv", "nope"), {}, "there is no target 'nope'"),
        (("t.csv", "bought"), {"target": "bought"}, "not both"),
        (("t.csv", "bought"), {"colour": "red"}, "there is no option 'colour'"),
        (("t.csv", [1, 2]), {}, "in the file"),
        (("t.svm", "bought"), {}, "are for tables"),
        (("nothing.csv", "bought"), {}, "there is no file nothing.csv"),
        ((np.eye(2), "y"), {}, "X is ndarray"),
        ((np.eye(2), [0, 1]), {"drop": ["a"]}, "X is ndarray"),
        ((frame(rows=5), ["no"] * 4), {}, "5 rows at least, but y or weights have 4"),
        ((frame(rows=5), ["no"] * 6), {}, "5 rows, but y or weights have 6"),
        ((frame(rows=5)["size"], "size"), {}, "cannot be read as an Arrow table|X is Series"),
        (([frame(rows=5), "t.csv"], "bought"), {}, "not both"),
    ],
)
def test_what_cannot_be_read(arguments, options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame(rows=5).to_csv("t.csv", index=False)
    pathlib.Path("t.svm").write_text("1 1:1\n")
    with pytest.raises((DataError, SettingsError), match=words):
        rue.learn(*arguments, **options)


def chunks(text, form, block=1 << 20):
    table = open_table(io.BytesIO(text), form, block=block)
    columns = plan(table.schema, target="y")
    return [table.chunk(piece, columns) for piece in table.pieces()]


def test_a_line_of_null_is_no_object():
    """pyarrow's reader of JSON crashes the process if it comes first, and takes it for an example elsewhere."""
    for text, line in ((b'null\n{"a":1,"y":0}\n', 1), (b'{"a":1,"y":0}\nnull\n', 2), (b' {"a":1,"y":0}\n\tnull', 2)):
        found = chunks(text, "jsonl")
        assert sum(len(chunk.block) for chunk in found) == 1
        bad = [(row.line, row.why) for chunk in found for row in chunk.bad]
        assert bad == [(line, "'null' is not an object")]


def test_whole_numbers_and_fractions_around_a_bad_row():
    text = b"a,y\n" + b"1,0\n" * 50 + b"x,1\n1.5,0\n9007199254740993,1\n" + b"3,0\n" * 50
    found = [row for chunk in chunks(text, "csv", block=64) for row in chunk.block.X.data.tolist()]
    assert found == [1.0] * 50 + [1.5, 9007199254740992.0] + [3.0] * 50
    assert [bad.why for chunk in chunks(text, "csv", block=64) for bad in chunk.bad] == ["'x' is not a number"]


def test_rows_that_are_no_text_do_not_make_pyarrow_complain(capfd):
    text = b"a,y\n1,0\n2,1\n\xe9,\xe9,1\n3,0\n"
    bad = [(row.line, row.why) for chunk in chunks(text, "csv") for row in chunk.bad]
    assert bad == [(row.line, row.why) for chunk in chunks(text, "csv", block=4) for row in chunk.bad]
    assert bad[0] == (4, "3 fields instead of 2")
    assert capfd.readouterr().err == ""


def test_kernels_are_compiled_by_several_threads_at_once():
    """In a new process, where nothing is bridged yet."""
    code = (
        "import threading, numpy as np, rue\n"
        "from rue.streams.formats.svmlight import Svmlight\n"
        "from rue.streams.formats.vw import VW\n"
        "wrong = []\n"
        "def go(parser, text):\n"
        "    try: gate.wait(); parser.parse(text, 1)\n"
        "    except BaseException as error: wrong.append(repr(error))\n"
        "texts = [(Svmlight(), b'1 1:1\\n'), (VW(), b'1 | 1:1\\n')] * 4\n"
        "gate = threading.Barrier(len(texts))\n"
        "threads = [threading.Thread(target=go, args=pair) for pair in texts]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]\n"
        "assert not wrong, wrong\n"
    )
    for _ in range(3):
        subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


@pytest.mark.parametrize("naming", [True, False])
def test_names_are_looked_for_where_they_are_wanted(tmp_path, naming):
    (tmp_path / "s.vw").write_text("1 |a red\n-1 |a blue\n")
    (tmp_path / "s.csv").write_text("colour,size,y\nred,1,1\nblue,2,0\n")
    for path, options in ((tmp_path / "s.vw", {}), (tmp_path / "s.csv", {"target": "y"})):
        data = Data((str(path),), naming=naming, **options)
        assert sum(len(block) for block in data) == 2
        assert any("red" in name for name in data.names.of.values()) == naming


class Streaming:
    """Nothing but Arrow's C stream interface, as any library may offer it."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_anything_with_arrows_c_stream_is_a_table():
    table = pa.table({"size": [1.5, 2.5, 0.5, 3.0], "colour": ["red", None, "blue", "red"], "bought": [0, 1, 0, 1]})
    wanted, found = (rue.learn(X, "bought") for X in (table, Streaming(table)))
    assert found.learner == wanted.learner
    assert found.names == wanted.names
    assert found.risk == wanted.risk > 0.0
