"""Exported models against `predict` of the model itself: JSON, plain Python, SQL in SQLite and DuckDB, ONNX."""

import datetime
import itertools
import json
import math
import random
import sqlite3
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils import murmurhash3_32

import rue
from conftest import many
from rue.errors import DataError, SettingsError
from rue.exports.document import document_of
from rue.exports.standalone import Model, Table, murmur3, words
from rue.models.file import model_of
from rue.streams.tables.columns import Columns
from rue.streams.tables.encoding import encode
from rue.streams.tables.tokens import split_words

COLOURS = ["red", "grün", 'it\'s "blue"', "", None, "日本語の色"]
LEARNT, NEW = 600, 150


def rows(begin, end, *, text=False):
    """Rows of every kind of column; those from LEARNT on have words, dates and gaps that never came before."""
    chance = random.Random(begin)
    for i in range(begin, end):
        row = {
            "size": None if chance.random() < 0.1 else round(chance.gauss(3, 10), 3),
            "count": chance.randrange(4),
            "member": None if chance.random() < 0.05 else chance.random() < 0.5,
            "colour": chance.choice(COLOURS) if i % 7 else f"new {i}" if begin else "red",
            "at": datetime.datetime(2023, 11, 5, 3) + datetime.timedelta(hours=i * 37, seconds=i * 11),
            "day": None if i % 11 == 3 else datetime.date(1999, 12, 25) + datetime.timedelta(days=i),
        }
        if i % 5 == 0:
            row["at"] = row["at"].replace(hour=0, minute=0, second=0)
        if text:
            row["note"] = (
                None if i % 13 == 2 else f"Order {i % 37}: the PARCEL's late, très ΣΑΣ {chance.choice('abcdef')}"
            )
        row["y"] = (row["size"] or 0) + 5 * (row["colour"] == "red") + chance.random() > 4
        yield row


def table(begin, end, **options):
    """Such rows as Arrow has them."""
    listed = list(rows(begin, end, **options))
    kinds = {
        "size": pa.float64(),
        "count": pa.int64(),
        "member": pa.bool_(),
        "colour": pa.string(),
        "note": pa.string(),
    }
    kinds |= {"at": pa.timestamp("us"), "day": pa.date32(), "y": pa.bool_()}
    return pa.table({name: pa.array([row[name] for row in listed], kinds[name]) for name in listed[0]})


def learn(stream, target="y", **options):
    return rue.learn(stream, target=target, **{"maps": None, **options})


@pytest.fixture(scope="module")
def of_table():
    return learn(table(0, LEARNT))


@pytest.fixture(scope="module")
def expected(of_table):
    return of_table.predict(table(LEARNT, LEARNT + NEW).drop_columns("y"))


def close(found, expected, within=1e-9):
    found, expected = (np.asarray(values, dtype=float) for values in (found, expected))
    assert found.shape == expected.shape
    assert np.abs((found - expected) / np.maximum(1.0, np.abs(expected))).max() <= within


def exported(run, to, **options):
    from rue.exports.export import exported

    return exported(run, to, **options).decode()


# JSON, by a reference of its own.


def by_formula(document, row):
    """docs/jobs/export.md, for numbers, truth values, words, and dates without a time."""
    given, score, weights = document["input"], document["intercept"], document["weights"]
    own, slots = given["own"], 2 ** given["bits"]

    def word(text):
        return weights.get(str(len(own) + murmurhash3_32(text.encode(), positive=True) % slots), 0.0)

    for name, kind in given["plan"]:
        value = row[name]
        if kind == "category":
            score += word(f"{name}={value or ''}")
        elif value is None:
            score += word(f"{name}=")
        elif kind in ("number", "boolean"):
            score += weights.get(str(own.index(name)), 0.0) * value
        else:
            first = datetime.date(1970, 1, 1) + datetime.timedelta(days=dict(given["starts"])[name])
            day = value if type(value) is datetime.date else value.date()
            of_day = (
                value - datetime.datetime.combine(day, datetime.time()) if day is not value else datetime.timedelta()
            )
            part = of_day / datetime.timedelta(days=1)
            score += weights.get(str(own.index(name)), 0.0) * ((day - first).days + part)
            score += weights.get(str(own.index(f"{name}.day_of_year")), 0.0) * int(f"{day:%j}")
            score += word(f"{name}.weekday={day:%A}") + (word(f"{name}.hour={value.hour}") if part else 0.0)
    low, high = document["range"] or (-math.inf, math.inf)
    return min(max(score, low), high)


def test_the_formula_of_the_document_gives_what_predict_gives(of_table, expected):
    document = json.loads(exported(of_table, "json"))
    assert (document["task"], document["link"], document["positive"]) == ("classify", "log-odds", True)
    close([by_formula(document, row) for row in rows(LEARNT, LEARNT + NEW)], expected)


@given(st.binary(max_size=20), st.integers(0, 2**32 - 1))
def test_the_hash_is_murmur3(data, seed):
    assert murmur3(data, seed) == murmurhash3_32(data, seed, positive=True)


# Plain Python.


def program(run, tmp_path, inputs):
    """What the exported program answers, in a Python that finds no package."""
    path = tmp_path / "model.py"
    rue.export(run, path)
    lines = "\n".join(json.dumps(row, default=str) for row in inputs)
    done = subprocess.run([sys.executable, "-I", "-S", path], input=lines, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_program_needs_no_package_and_says_the_same(of_table, expected, tmp_path):
    new = table(LEARNT, LEARNT + NEW).drop_columns("y")
    answers = program(of_table, tmp_path, rows(LEARNT, LEARNT + NEW))
    close([answer["score"] for answer in answers], expected)
    close([answer["probability"] for answer in answers], of_table.predict(new, as_="probability"))
    assert [answer["label"] for answer in answers] == of_table.predict(new, as_="label").tolist()


@pytest.mark.parametrize("pairs", [False, True])
def test_words_of_text_and_stages_over_maps(pairs, tmp_path):
    run = learn(table(0, LEARNT, text=True), learner="staged", text=["note"], word_pairs=pairs)
    document = document_of(model_of(run))
    assert document["stages"]["table"]["open"]
    model = Model(json.loads(json.dumps(document)))
    new = table(LEARNT, LEARNT + 40, text=True).drop_columns("y")
    close([model.score(row) for row in rows(LEARNT, LEARNT + 40, text=True)], run.predict(new))
    for to in ("sql", "onnx"):
        with pytest.raises(SettingsError, match="--linear"):
            exported(run, to)


@rue.parameter
class OwnTrees(rue.Trees):
    """Leaves of other trees than rue's, as far as an exported file knows."""


@pytest.mark.usefixtures("interpreted")
def test_maps_of_a_users_own_have_no_export():
    X = np.random.default_rng(0).normal(size=(300, 2))
    for own, refused in ((rue.Trees(2), False), (OwnTrees(2), True)):
        run = rue.learn(X, np.sign(X[:, 0]), learner=rue.Staged(maps=[own]))
        if refused:
            with pytest.raises(SettingsError, match="OwnTrees.* is a map of your own, which no exported file has"):
                document_of(model_of(run))
        else:
            assert document_of(model_of(run))["stages"]["kinds"][0] in (None, {"map": "trees", "trees": 2, "depth": 8})


@pytest.mark.usefixtures("interpreted")
def test_stages_of_many_columns_cross_those_that_tell_most():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(340, 40)), 1) * (rng.random((340, 40)) < 0.7)
    run = rue.learn(X[:300], np.where(X[:300, 0] * X[:300, 1] > 0, 1, -1), learner=rue.Staged())
    document = document_of(model_of(run))
    assert not document["input"]["names"]
    assert any(not column["telling"] for column in document["stages"]["table"]["columns"])
    close([Model(document).score(list(x)) for x in X[300:]], run.predict(X[300:]))


@given(st.text(max_size=40))
def test_texts_are_split_as_tables_split_them(text):
    data = text.encode("utf-8", "ignore")
    letters, places, _ = split_words(np.frombuffer(data, np.uint8), np.array([0, len(data)]))
    found = [bytes(letters[lo:hi]).decode() for lo, hi in itertools.pairwise(places)]
    assert (words(data.decode()) or ([""] if not data else [])) == found


CELLS = st.one_of(st.none(), st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)))


@given(CELLS, st.sampled_from(["timestamp", "date", "time", "duration"]), st.sampled_from([1, 2]))
def test_parts_of_dates_are_those_of_tables(moment, kind, version):
    columns = Columns((("t", kind),), bits=8, starts=(("t", 9000),), version=version)
    types = {
        "timestamp": pa.timestamp("us"),
        "date": pa.date32(),
        "time": pa.time64("us"),
        "duration": pa.duration("us"),
    }
    value = moment
    if moment is not None and kind != "timestamp":
        value = {"date": moment.date(), "time": moment.time(), "duration": moment - datetime.datetime(2000, 1, 1)}[kind]
    X = encode(columns, pa.table({"t": pa.array([value], types[kind])}), np.array([1]), labels=False).block.in_order().X
    read = document_input(columns)
    assert Table(read).features({"t": value}) == dict(zip(X.indices.tolist(), X.data.tolist(), strict=True))
    if value is not None and kind != "duration":
        assert Table(read).features({"t": str(value)}) == Table(read).features({"t": value})


def document_input(columns):
    from rue.exports.document import _input
    from rue.models.file import Model as Stored

    return _input(Stored(rue.Perceptron(), features={"columns": columns.to_dict()}))


@pytest.mark.parametrize(
    ("written", "options", "means"),
    [
        ("31.1.26 9:30", {"order": "day-first"}, "2026-01-31T09:30:00"),
        ("Dec 31, 2026", {"order": "year-first"}, "2026-12-31"),
    ],
)
def test_dates_in_other_spellings(written, options, means):
    read = Table(document_input(Columns((("t", "timestamp"),), **options)))
    assert read.features({"t": written}) == read.features({"t": datetime.datetime.fromisoformat(means)})


def test_decimal_commas_and_words_for_missing():
    read = Table(document_input(Columns((("x", "number"),), decimal=",")))
    assert read.features({"x": "1.234,5"}) == {0: 1234.5}
    assert read.features({"x": " NA "}) == read.features({"x": None}) == read.features({"x": math.nan})
    with pytest.raises(ValueError, match="'x' is missing: give None"):
        read.features({})
    with pytest.raises(ValueError, match="infinity"):
        read.features({"x": math.inf})


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("interact", [(), ("ba",), ("::",), ("b:", "aa")])
def test_lines_of_vowpal_wabbit(interact, tmp_path):
    chance, lines = random.Random(2), []
    for i in range(500):
        x = chance.random()
        lines.append(
            f"{1 if x > 0.5 else -1} |a x:{x:.3f} n{chance.randrange(5)} |b:0.5 12 {i % 3}:2 w:word{i % 4} | plain"
        )
    (tmp_path / "a.vw").write_text("\n".join(lines[:400]))
    (tmp_path / "b.vw").write_text("\n".join(lines[400:]))
    run = rue.learn(tmp_path / "a.vw", learner="ogd", interact=interact)
    model = Model(document_of(model_of(run)))
    close([model.score(line) for line in lines[400:]], run.predict(tmp_path / "b.vw"))
    with pytest.raises(SettingsError, match="cannot be read in SQL"):
        exported(run, "sql")


# SQL.


def in_database(which, script, create, insert, many_rows):
    """The rows of the view that a script makes, in one of the two databases."""
    connection = sqlite3.connect(":memory:") if which == "sqlite" else pytest.importorskip("duckdb").connect()
    connection.execute(create)
    connection.executemany(insert, many_rows)
    if which == "sqlite":
        connection.executescript(script)
    else:
        connection.execute(script)
    found = connection.execute("SELECT * FROM rue_predictions ORDER BY id").fetchall()
    connection.close()
    return found


DATABASES = pytest.mark.parametrize("which", ["sqlite", "duckdb"])
KINDS = {"number": "DOUBLE", "boolean": "BOOLEAN", "category": "VARCHAR", "timestamp": "TIMESTAMP", "date": "DATE"}


@DATABASES
def test_the_view_of_a_table_predicts_the_same(which, of_table, expected):
    names = [name for name, _ in of_table.features["columns"]["plan"]]
    columns = ", ".join(f'"{name}" {KINDS[kind]}' for name, kind in of_table.features["columns"]["plan"])
    marks = ", ".join("?" * len(names))
    as_text = {datetime.datetime: str, datetime.date: str} if which == "sqlite" else {}
    cells = [
        [as_text.get(type(row[name]), lambda value: value)(row[name]) for name in names]
        for row in rows(LEARNT, LEARNT + NEW)
    ]
    script = exported(of_table, "sql", table='visits of "May"')
    create = f'CREATE TABLE "visits of ""May""" ({columns})'
    found = in_database(which, script, create, f'INSERT INTO "visits of ""May""" VALUES ({marks})', cells)
    close([score for _, score, _, _ in found], expected)
    assert [bool(label) for _, _, label, _ in found] == (expected > 0).tolist()
    close([probability for *_, probability in found], 1 / (1 + np.exp(-expected)))


@pytest.mark.usefixtures("interpreted")
@DATABASES
def test_the_view_of_numbered_features_reads_a_long_table(which):
    X, y = rue.census()
    run = rue.learn(X[:1000], y[:1000], learner=rue.OGD("logistic"))
    part = X[1000:1100].tocoo()
    cells = list(zip(part.row.tolist(), part.col.tolist(), part.data.tolist(), strict=True))
    create = "CREATE TABLE examples (id BIGINT, feature BIGINT, value DOUBLE)"
    found = in_database(which, exported(run, "sql"), create, "INSERT INTO examples VALUES (?, ?, ?)", cells)
    assert [id_ for id_, *_ in found] == sorted(set(part.row.tolist()))
    close([score for _, score, *_ in found], run.predict(X[1000:1100])[[id_ for id_, *_ in found]])


@pytest.mark.usefixtures("interpreted")
@DATABASES
def test_the_view_of_named_features(which):
    learner = rue.OGD("square", step="fixed:0.05")
    for i in range(50):
        learner.update({"size": i % 7, "colour": "it's", "é": 0.5}, float(i % 7))
    cells = [(0, "size", 3.0), (0, "colour=it's", 1.0), (1, "size", 2.0), (1, "unknown", 9.0)]
    create = "CREATE TABLE examples (id BIGINT, feature VARCHAR, value DOUBLE)"
    found = in_database(which, exported(learner, "sql"), create, "INSERT INTO examples VALUES (?, ?, ?)", cells)
    expected = [learner.predict({"size": 3, "colour": "it's"}), learner.predict({"size": 2})]
    close([score for _, score, _ in found], expected)
    model = Model(document_of(model_of(learner)))
    close([model.score({"size": 3, "colour": "it's"}), model.score({"size": 2, "unknown": 9})], expected)


# ONNX.


def in_onnxruntime(run, feed):
    runtime = pytest.importorskip("onnxruntime")
    from rue.exports.export import exported

    session = runtime.InferenceSession(exported(run, "onnx"), providers=["CPUExecutionProvider"])
    return dict(zip((out.name for out in session.get_outputs()), session.run(None, feed), strict=True))


def seconds(value):
    if value is None:
        return math.nan
    day = value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())
    return (day - datetime.datetime(1970, 1, 1)).total_seconds()


def test_the_graph_of_a_table_says_the_same(of_table, expected):
    given, feed = list(rows(LEARNT, LEARNT + NEW)), {}
    for name, kind in of_table.features["columns"]["plan"]:
        cells = [row[name] for row in given]
        if kind == "category":
            feed[name] = np.array([cell or "" for cell in cells], dtype=object)
        elif kind in ("timestamp", "date"):
            feed[name] = np.array(list(map(seconds, cells)))
        else:
            feed[name] = np.array([math.nan if cell is None else float(cell) for cell in cells])
    found = in_onnxruntime(of_table, feed)
    close(found["score"], expected)
    close(found["probability"], 1 / (1 + np.exp(-expected)))
    assert found["label"].tolist() == (expected > 0).tolist()


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("names", [("a", "b"), ("a", "x", "t")])
def test_columns_that_are_crossed(names):
    chance = random.Random(6)
    given = [
        {"a": chance.choice(["p", "q", None]), "b": chance.choice("rst"), "x": chance.choice([1.0, 2.5, None, -3.0])}
        | {"t": chance.random() < 0.5, "y": i % 3 == 0}
        for i in range(60)
    ]
    run = rue.learn(pa.Table.from_pylist(given), target="y", cross=[names], learner=rue.OGD("logistic"))
    expected = run.predict(pa.Table.from_pylist(given).drop_columns("y"))
    close([Model(document_of(model_of(run))).score(row) for row in given], expected)
    if "x" in names:
        for to in ("sql", "onnx"):
            with pytest.raises(SettingsError, match="a × x × t crosses numbers"):
                exported(run, to)
        return
    cells = [tuple(row[name] for name in "abxt") for row in given]
    create = "CREATE TABLE examples (a VARCHAR, b VARCHAR, x DOUBLE, t BOOLEAN)"
    for which in ("sqlite", "duckdb"):
        found = in_database(which, exported(run, "sql"), create, "INSERT INTO examples VALUES (?, ?, ?, ?)", cells)
        close([score for _, score, *_ in found], expected)
    feed = {name: np.array([row[name] or "" for row in given], dtype=object) for name in "ab"}
    feed |= {name: np.array([row[name] for row in given], dtype=float) for name in "xt"}
    close(in_onnxruntime(run, feed)["score"], expected)


def test_the_graph_of_a_matrix_and_of_numbers():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 5))
    y = X @ [1, 2, 0, -1, 3] + rng.normal(size=400)
    run = rue.learn(X, y, maps=None)
    found = in_onnxruntime(run, {"X": 3 * X})
    close(found["score"], run.predict(3 * X))
    assert found["score"].max() == found["score"][np.argsort(run.predict(3 * X))[-2]]  # clipped to the range of labels
    assert list(found) == ["score"]
    words_of = rue.learn(X, np.where(y > 0, "up", "down"), learner=rue.OGD("hinge"))
    found = in_onnxruntime(words_of, {"X": X})
    assert found["label"].tolist() == words_of.predict(X, as_="label").tolist()
    assert "probability" not in found


@pytest.mark.usefixtures("interpreted")
def test_last_labels_stand_still():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 3))
    run = rue.learn(X, np.where(X[:, 0] > 0, 1, -1), learner=rue.OGD("logistic").with_lags([1, 3]))
    close([Model(document_of(model_of(run))).score(row) for row in X.tolist()], run.predict(X))


# What cannot be exported, and the command.


@pytest.mark.usefixtures("interpreted")
def test_refusals_say_what_to_do(tmp_path):
    few = rue.learn([[1.0], [2.0]], [0, 1])
    with pytest.raises(DataError, match="has learnt 2 examples.*from 264 on.*learn more"):
        exported(few, "json")
    with pytest.raises(DataError, match="nothing yet"):
        exported(rue.Perceptron(), "json")
    several = rue.SoftmaxMixture()
    with pytest.raises(SettingsError, match="more than two classes.*--positive"):
        exported(several, "json")
    with pytest.raises(SettingsError, match="say what to export to, json, onnx, python or sql .--to., not 'pmml'"):
        rue.export(few, tmp_path / "model.json", "pmml")
    with pytest.raises(SettingsError, match="say what to export to"):
        rue.export(few, tmp_path / "model.model")
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("interpreted")
def test_text_columns_are_refused_where_they_cannot_be_split():
    run = learn(table(0, 30, text=True), learner=rue.Perceptron(), text=["note"])
    for to in ("sql", "onnx"):
        with pytest.raises(SettingsError, match="python or json"):
            exported(run, to)


@pytest.mark.usefixtures("interpreted")
def test_the_command_writes_to_stdout_or_a_file(inside, tmp_path):
    learner = rue.Perceptron()
    learner.update([1.0, -2.0], 1)
    rue.save(learner, tmp_path / "m.rue")
    said = inside("export", tmp_path / "m.rue", "--to", "json").out
    assert json.loads(said)["weights"] == {"0": 1.0, "1": -2.0}
    inside("export", tmp_path / "m.rue", "-o", tmp_path / "m.json")
    assert (tmp_path / "m.json").read_text() == said
    assert "--out FILE.onnx" in inside("export", tmp_path / "m.rue", "--to", "onnx", ok=2).err
    assert "say what to export to" in inside("export", tmp_path / "m.rue", ok=2).err
    inside("export", tmp_path / "m.rue", "-o", tmp_path / "m.rue", "--to", "json", ok=2)
    assert rue.load(tmp_path / "m.rue").learner == learner


@pytest.mark.usefixtures("interpreted")
def test_names_that_are_half_a_character(tmp_path):
    """As dicts may have: JSON and Python name them, weights are listed, SQL says in words that it cannot."""
    learner, half = rue.Perceptron(intercept=False), "\ud800x"
    learner.update({half: 1.0, "b": -2.0}, 1)
    rue.export(learner, tmp_path / "m.json")
    places = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))["input"]["places"]
    assert list(places) == [half, "b"]
    rue.export(learner, tmp_path / "m.py")
    done = subprocess.run(
        [sys.executable, tmp_path / "m.py"], input=json.dumps({half: 1.0}), capture_output=True, text=True, timeout=60
    )
    assert json.loads(done.stdout)["score"] == 1.0, done.stderr
    rue.weights_of(learner).save(tmp_path / "w.csv")
    assert "\\ud800x" in (tmp_path / "w.csv").read_text(encoding="utf-8")
    with pytest.raises(SettingsError, match="half a character .*python or json"):
        exported(learner, "sql")


@pytest.mark.usefixtures("interpreted")
def test_a_table_with_a_line_end_in_its_name_ends_no_comment(tmp_path):
    learner = rue.Perceptron()
    learner.update([1.0, -2.0], 1)
    given = sqlite3.connect(":memory:")
    given.execute('CREATE TABLE "a\nDROP TABLE b; --" (id, feature, value)')
    rue.export(learner, tmp_path / "m.sql", table="a\nDROP TABLE b; --")
    given.executescript((tmp_path / "m.sql").read_text())
    assert given.execute("SELECT * FROM rue_predictions").fetchall() == []


@pytest.mark.usefixtures("interpreted")
def test_random_models_of_numbers():
    """Features of every size, in every form."""
    chance = np.random.default_rng(5)
    for _ in range(many(3, 50)):
        d = int(chance.integers(1, 6))
        X = chance.normal(size=(60, d)) * 10.0 ** chance.integers(-3, 4, size=d)
        run = rue.learn(X, np.sign(X[:, 0] + 1e-9), learner=rue.AdaGrad(loss="logistic"))
        expected = run.predict(10 * X)
        model = Model(json.loads(exported(run, "json")))
        close([model.score(list(row)) for row in (10 * X).tolist()], expected)
        close(in_onnxruntime(run, {"X": 10 * X})["score"], expected)
