"""Tables as streams: against a slow encoder in plain Python, across formats, in pieces of any size, with every trap."""

import csv
import datetime
import decimal
import io
import itertools
import json
import lzma
import math
import subprocess
import sys
import threading
import unicodedata

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rue
from conftest import PEAK, ROOT, SOAK, many
from rue.errors import DataError, UnknownName
from rue.streams import Labels
from rue.streams.chunk import Position
from rue.streams.formats.csv import _hexadecimal
from rue.streams.names import Names
from rue.streams.tables.columns import Columns, find_column, plan
from rue.streams.tables.encoding import encode
from rue.streams.tables.records import scan
from tables import open_table

DATA = ROOT.parent / "shared" / "data"
WEEK = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


# The reference: MurmurHash3 and the rules of the docs, a value at a time.


def murmur3(text):
    low, h = 2**32 - 1, 0
    data = text.encode()
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * 0xCC9E2D51 & low
        h ^= (k << 15 | k >> 17) * 0x1B873593 & low
        h = ((h << 13 | h >> 19) & low) * 5 + 0xE6546B64 & low
    k = int.from_bytes(data[whole:], "little") * 0xCC9E2D51 & low
    h ^= ((k << 15 | k >> 17) & low) * 0x1B873593 & low
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & low
    h = (h ^ h >> 13) * 0xC2B2AE35 & low
    return h ^ h >> 16


def test_the_reference_hash_is_murmur3():
    assert [murmur3(text) for text in ("", "a", "hello", "hello, world")] == [0, 0x3C2569B2, 0x248BFA47, 0x149BBB7F]


def slow_words(text):
    """Runs of letters, digits and marks, in lower case; a mark does not begin one."""
    words, word = [], ""
    for letter in text + " ":
        if letter.isalnum() or (word and unicodedata.category(letter)[0] == "M"):
            word += letter.lower() if len(letter.lower()) == 1 else letter
        elif word:
            words.append(word)
            word = ""
    return words


def slow_row(columns, row):
    """{slot: value} of a dict of Python values."""
    own = columns.own
    found, starts = {}, dict(columns.starts)

    def say(text):
        slot = len(own) + murmur3(text) % 2**columns.bits
        found[slot] = found.get(slot, 0.0) + 1.0

    for name, kind in columns.plan:
        value = row.get(name)
        if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
            say(f"{name}=")
        elif kind == "category":
            say(f"{name}={value}")
        elif kind == "text":
            words = slow_words(value)
            pairs = itertools.pairwise(words) if columns.word_pairs else ()
            for word in [*words, *map(" ".join, pairs)]:
                say(f"{name}={word}")
        elif kind in ("number", "boolean"):
            found[own.index(name)] = float(value)
        else:
            moment = value
            if kind == "date":
                moment = datetime.datetime.combine(value, datetime.time())
            elif kind == "time":
                moment = datetime.datetime.combine(datetime.date(1970, 1, 1), value)
            since = value if kind == "duration" else moment - datetime.datetime(1970, 1, 1)
            days, rest = divmod(since, datetime.timedelta(days=1))
            found[own.index(name)] = days - starts.get(name, 0) + rest / datetime.timedelta(days=1)
            if kind in ("timestamp", "date"):
                if columns.version > 1:
                    found[own.index(f"{name}.day_of_year")] = float(moment.timetuple().tm_yday)
                say(f"{name}.weekday={WEEK[moment.weekday()]}")
            if kind == "time" or (kind == "timestamp" and (columns.version == 1 or rest)):
                say(f"{name}.hour={moment.hour}")
    return {slot: value for slot, value in sorted(found.items()) if value != 0.0}


def chunks(source, fmt=None, start=None, columns=None, separator=None, block=1 << 20, labels=True, names=None, **k):
    table = open_table(source, fmt, separator=separator, block=block)
    columns = columns or plan(table.schema, first=table.first, **k)
    return columns, [(piece, table.chunk(piece, columns, labels=labels, names=names)) for piece in table.pieces(start)]


def text(data, fmt="csv", **k):
    return chunks(io.BytesIO(data.encode() if isinstance(data, str) else data), fmt, **k)


def rows_of(found):
    """Rows as lists of (slot, value), labels, weights, lines, and bad rows with their place among all rows."""
    rows, y, weights, lines, bad = [], [], [], [], []
    for _, chunk in found:
        bad += [(row.place + len(rows), row.line, row.column, row.why) for row in chunk.bad]
        X = chunk.block.X
        assert X.indices.dtype == np.uint32
        assert X.data.dtype == np.float64
        assert not X.indices.size or int(X.indices.max()) < X.shape[1]
        for lo, hi in zip(X.indptr, X.indptr[1:], strict=False):
            assert (np.diff(X.indices[lo:hi].astype(np.int64)) > 0).all()
            rows.append(list(zip(X.indices[lo:hi].tolist(), X.data[lo:hi].tolist(), strict=True)))
        y += [] if chunk.block.y is None else chunk.block.y.tolist()
        weights += [] if chunk.block.weights is None else chunk.block.weights.tolist()
        lines += chunk.lines.tolist()
    assert len(lines) == len(rows)
    return rows, y, weights, lines, bad


def parts(data, **k):
    return rows_of(text(data, **k)[1])


# The same table in every form.

MOMENT = datetime.datetime(2001, 1, 1, 10, 30, 15)


SAID = [
    "Good",
    "good",
    "GOOD!",
    "Straße",
    "ÉTÉ",
    "e\u0301te\u0301",
    "नमस्ते",
    "Ⱥ",
    "İ",
    "好的",
    "don't",
    "3.5",
    "❤️",
    '"so"',
    "a\nb",
    "the",
]


def many_kinds(n=500):
    rng = np.random.default_rng(0)
    some = lambda values: [None if rng.random() < 0.1 else value for value in values]  # noqa: E731
    return pa.table(
        {
            "x": some(rng.normal(size=n).tolist()),
            "whole": pa.array(some(rng.integers(-3, 2**60, n).tolist()), pa.int64()),
            "flag": some((rng.random(n) < 0.5).tolist()),
            "job": some(rng.choice(["a", "é", "x y", 'comma, quote " and\nline', "NA", "7"], n).tolist()),
            "when": pa.array(
                [MOMENT + datetime.timedelta(seconds=k * 7919) for k in range(-n, n, 2)], pa.timestamp("s")
            ),
            "day": pa.array(some([datetime.date(1969, 12, 1) + datetime.timedelta(days=k) for k in range(n)])),
            "code": pa.array(rng.integers(0, 5, n).tolist(), pa.int64()),
            "note": some([" ".join(rng.choice(SAID, rng.integers(2, 12))) for _ in range(n)]),
            "w": rng.random(n),
            "y": rng.choice(["yes", "no"], n).tolist(),
        }
    )


HOW = {"target": "y", "weight": "w", "category": ["code"]}


def as_csv(table, **k):
    out = io.StringIO(newline="")
    writer = csv.writer(out, **k)
    writer.writerow(table.column_names)
    for row in table.to_pylist():
        writer.writerow(
            [
                "" if value is None else str(value).lower() if isinstance(value, bool) else value
                for value in row.values()
            ]
        )
    return out.getvalue().encode()


def as_jsonl(table):
    """Missing values are null in the first row, whose keys tell the order of the columns, and left out elsewhere."""
    rows = table.to_pylist()
    rows[1:] = [{name: value for name, value in row.items() if value is not None} for row in rows[1:]]
    return "".join(json.dumps(row, default=str) + "\n" for row in rows).encode()


def as_ipc(table, open_, **k):
    out = pa.BufferOutputStream()
    with open_(out, table.schema) as writer:
        writer.write_table(table, **k)
    return pa.BufferReader(out.getvalue())


def as_parquet(table, rows):
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=rows)
    return io.BytesIO(out.getvalue())


FORMS = {
    "csv": lambda t: (io.BytesIO(as_csv(t)), "csv"),
    "csv;crlf": lambda t: (io.BytesIO(as_csv(t, delimiter=";", lineterminator="\r\n")), "csv"),
    "jsonl": lambda t: (io.BytesIO(as_jsonl(t)), "jsonl"),
    "parquet": lambda t: (as_parquet(t, 130), "parquet"),
    "ipc file": lambda t: (as_ipc(t, pa.ipc.new_file, max_chunksize=77), "ipc"),
    "ipc stream": lambda t: (as_ipc(t, pa.ipc.new_stream, max_chunksize=77), "ipc"),
    "pyarrow": lambda t: (t, None),
    "record batch": lambda t: (t.combine_chunks().to_batches()[0], None),
    "reader": lambda t: (t.to_reader(max_chunksize=99), None),
    "pandas": lambda t: (t.to_pandas(), None),
    "polars": lambda t: (polars.from_arrow(t), None),
    "dictionaries": lambda t: (t.set_column(3, "job", t["job"].dictionary_encode()), None),
    "large": lambda t: (t.set_column(3, "job", t["job"].cast(pa.large_string())), None),
    "views": lambda t: (t.set_column(3, "job", t["job"].cast(pa.string_view())), None),
    "nanoseconds": lambda t: (t.set_column(4, "when", t["when"].cast(pa.timestamp("ns"))), None),
    "sliced": lambda t: (pa.concat_tables([t.slice(0, 3), t]).slice(3), None),
}


@pytest.fixture(scope="module")
def wanted():
    """What the slow encoder makes of the table: rows, labels, weights."""
    table = many_kinds()
    columns = plan(table.schema, first=open_table(table).first, **HOW)
    rows = table.to_pylist()
    return [list(slow_row(columns, row).items()) for row in rows], table["y"].to_pylist(), table["w"].to_pylist()


@pytest.mark.parametrize("form", FORMS)
def test_the_same_table_in_every_form_is_what_the_slow_encoder_makes_of_it(form, wanted):
    columns, found = chunks(*FORMS[form](many_kinds()), **HOW)
    rows, y, weights, lines, bad = rows_of(found)
    assert (rows, y, weights) == wanted
    assert bad == []
    assert [kind for _, kind in columns.plan] == [
        "number",
        "number",
        "boolean",
        "category",
        "timestamp",
        "date",
        "category",
        "text",
    ]
    assert columns.own == ("x", "whole", "flag", "when", "when.day_of_year", "day", "day.day_of_year")
    assert lines == sorted(lines)
    assert form.startswith("csv") or lines == list(range(1, 501))


@pytest.mark.parametrize("form", ["csv", "csv;crlf", "jsonl"])
@pytest.mark.parametrize("block", [200, 1000, 4096])
def test_pieces_of_any_size_give_the_same(form, block, wanted):
    table = open_table(*FORMS[form](many_kinds()))
    columns = plan(table.schema, first=table.first, **HOW)
    whole = rows_of([(None, table.chunk(piece, columns)) for piece in table.pieces()])
    source, fmt = FORMS[form](many_kinds())
    _, found = chunks(source, fmt, columns=columns, block=block)
    assert len(found) > 5
    assert rows_of(found) == whole
    assert whole[:3] == wanted


@pytest.mark.parametrize("form", [form for form in FORMS if form != "reader"])
def test_going_on_from_any_piece_gives_the_rest(form, wanted, monkeypatch):
    monkeypatch.setattr("rue.streams.tables.batches.ROWS", 1024)
    monkeypatch.setattr("rue.streams.tables.batches.VALUES", 0)
    columns, found = chunks(*FORMS[form](many_kinds(2500)), block=20_000, **HOW)
    everything = rows_of(found)
    assert len(found) > 2
    for done in (1, len(found) // 2, len(found)):
        _, rest = chunks(*FORMS[form](many_kinds(2500)), block=20_000, columns=columns, start=found[done - 1][0].end)
        before = rows_of(found[:done])
        after = rows_of(rest)
        assert [a + b for a, b in zip(before, after, strict=True)] == list(everything)
        assert len(rest) == len(found) - done or form in ("parquet", "ipc file", "ipc stream")


def test_a_row_group_before_the_position_is_not_read(monkeypatch):
    table = many_kinds(2000)
    source = as_parquet(table, 500)
    opened = open_table(source, "parquet")
    first = next(opened.pieces(Position(1700, 1700)))
    assert first.start == Position(1700, 1700)
    assert first.data.num_rows == 300
    assert first.data.column("w").to_pylist() == table["w"].to_pylist()[1700:]


def test_passes_can_be_repeated_where_the_source_allows():
    for form, (source, fmt) in ((form, FORMS[form](many_kinds(50))) for form in FORMS):
        table = open_table(source, fmt, block=500)
        columns = plan(table.schema, first=table.first, **HOW)
        first = rows_of([(None, table.chunk(piece, columns)) for piece in table.pieces()])
        if form == "reader":
            with pytest.raises(DataError, match="only once"):
                list(table.pieces())
        else:
            assert rows_of([(None, table.chunk(piece, columns)) for piece in table.pieces()]) == first


class Pipe:
    """A file that gives a few bytes at a time and cannot go back."""

    def __init__(self, data, most=37):
        self.data, self.most = io.BytesIO(data), most

    def read(self, n):
        return self.data.read(min(n, self.most))

    def seekable(self):
        return False


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_pipe_that_trickles(form, wanted):
    columns, _ = chunks(*FORMS[form](many_kinds()), **HOW)
    data = FORMS[form](many_kinds())[0].getvalue()
    _, found = chunks(Pipe(data), form, columns=columns)
    assert rows_of(found)[:3] == wanted
    middle = found[len(found) // 2][0].end
    _, rest = chunks(Pipe(data), form, columns=columns, start=middle)
    assert rows_of(rest)[0] == wanted[0][-len(rows_of(rest)[0]) :]
    assert 0 < len(rows_of(rest)[0]) < 400
    table = open_table(Pipe(data), form)
    list(table.pieces())
    with pytest.raises(DataError, match="only once"):
        next(table.pieces())
    with pytest.raises(DataError, match="ends at byte .* before byte"):
        next(open_table(Pipe(data), form).pieces(Position(10**9, 10**6)))


def test_chunks_may_be_made_in_several_threads(wanted):
    columns = plan(many_kinds().schema, first=open_table(many_kinds()).first, **HOW)
    table = open_table(*FORMS["csv"](many_kinds()), block=3000)
    pieces = list(table.pieces())
    out = [None] * len(pieces)

    def work(k):
        for i in range(k, len(pieces), 3):
            out[i] = (None, table.chunk(pieces[i], columns))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows_of(out)[:3] == wanted


# Columns.


def test_columns_survive_the_model_file():
    columns = plan(many_kinds(5).schema, **HOW)
    again = Columns.from_dict(json.loads(json.dumps(columns.to_dict())))
    assert again == columns
    assert hash(again) == hash(columns)
    for damage in (
        {"plan": [["a", "quux"]]},
        {"bits": 99},
        {"bits": True},
        {"label": "date"},
        {"more": 1},
        {"plan": 3},
        {"target": 4},
        {"plan": [["y", "number"]]},
    ):
        with pytest.raises(DataError, match="damaged"):
            Columns.from_dict({**columns.to_dict(), **damage})


def test_columns_are_found_by_name_or_by_place_from_one():
    names = ["age", "job", "3", "bought"]
    assert [find_column(which, names, "target") for which in ("job", 1, "2", -1, "-4", "3", 3)] == [
        "job",
        "age",
        "job",
        "bought",
        "age",
        "3",
        "3",
    ]
    for which in (0, 5, -5, "Job", True):
        with pytest.raises(DataError, match="there is no target .* the columns are age, job, 3, bought"):
            find_column(which, names, "target")
    with pytest.raises(DataError, match="did you mean 'bought'\\?"):
        find_column("bouhgt", names, "target")
    with pytest.raises(DataError, match="and 70 more"):
        find_column("x", [f"c{i}" for i in range(100)], "target")


def test_what_cannot_be_asked_of_columns():
    schema = many_kinds(3).schema
    for asked, why in (
        ({"target": "y", "drop": ["y"]}, "is the target: it cannot be dropped"),
        ({"weight": "w", "drop": ["w"]}, "is the weight: it cannot be dropped"),
        ({"target": "w", "weight": "w"}, "cannot be both"),
        ({"target": "when"}, "must hold numbers, booleans or words, not timestamp"),
        ({"weight": "job"}, "the weight 'job' must hold numbers, not string"),
        ({"drop": ["nope"]}, "there is no column to drop 'nope'"),
        ({"category": ["nope"]}, "there is no category 'nope'"),
        ({"bits": 0}, "bits must be"),
        ({"bits": 32}, "bits must be"),
    ):
        with pytest.raises(DataError, match=why):
            plan(schema, **asked)
    with pytest.raises(DataError, match="two columns are called 'a'"):
        plan(pa.schema([("a", pa.int8()), ("a", pa.int8())]))


def test_columns_that_can_be_no_features_are_refused_by_name_unless_dropped():
    table = pa.table({"raw": [b"x"], "list": [[1]], "struct": [{"a": 1}], "n": [2]})
    for name in ("raw", "list", "struct"):
        others = [other for other in table.column_names if other not in (name, "n")]
        with pytest.raises(DataError, match=f"the column '{name}' holds .*: leave it out with --drop {name}"):
            plan(table.schema, drop=others)
    _columns, found = chunks(table, drop=["raw", "list", "struct"])
    assert rows_of(found)[0] == [[(0, 2.0)]]
    with pytest.raises(DataError, match="the column 'a' holds struct"):
        text('{"a": {"b": 1}}\n', "jsonl")
    with pytest.raises(DataError, match="the column 'a' holds list"):
        text('{"a": [1]}\n', "jsonl")


def test_widths():
    numbers = pa.table({"a": [1.0, None], "b": [True, False]})
    columns, found = chunks(numbers.slice(0, 1), bits=4)
    assert columns.width == 2 == found[0][1].block.width
    assert chunks(numbers, bits=4)[1][0][1].block.width == 2 + 16 == columns.full_width
    words = plan(pa.schema([("a", pa.string()), ("b", pa.int8())]), bits=4)
    assert words.width == 17 == encode(words, pa.table({"a": ["x"], "b": [1]}), np.arange(1, 2)).block.width


def test_slots_that_fall_together_add_up():
    names = [f"c{i}" for i in range(12)]
    table = pa.table({name: ["v", None] for name in names})
    columns, found = chunks(table, bits=2)
    rows = rows_of(found)[0]
    assert rows == [list(slow_row(columns, row).items()) for row in table.to_pylist()]
    assert all(sum(value for _, value in row) == 12 and len(row) <= 4 for row in rows)


def test_names_of_hashed_features():
    table = pa.table({"n": [1.0, None, 2.0, math.inf], "job": ["b", "a", None, "never"], "when": [MOMENT] * 4})
    for form in (table, table.set_column(1, "job", table["job"].dictionary_encode())):
        _columns, found = chunks(form, names=Names())
        slot = lambda said: 3 + murmur3(said) % 2**20  # noqa: E731
        said = ["n=", "job=b", "job=a", "job=", "when.hour=10", "when.weekday=Monday"]
        assert found[0][1].names == tuple((slot(word), word) for word in said)
    assert chunks(table)[1][0][1].names == ()


def test_other_types():
    exact = ["0.1", "123456789012.345678", "-7.000001"]
    table = pa.table(
        {
            "decimal": [decimal.Decimal(word) for word in exact],
            "half": pa.array(np.array([0.5, 2, 3], np.float16)),
            "unsigned": pa.array([2**64 - 1, 2**63, 1], pa.uint64()),
            "time": pa.array([datetime.time(23, 30), None, datetime.time(0, 0, 1)]),
            "lasts": pa.array([datetime.timedelta(hours=-30), None, datetime.timedelta(microseconds=1)]),
            "far": pa.array(
                [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23), None], pa.timestamp("us")
            ),
            "date64": pa.array([datetime.date(1960, 2, 29), None, datetime.date(2000, 1, 1)], pa.date64()),
            "nothing": pa.nulls(3),
            "grade": pa.array([3, 1, 3]).dictionary_encode(),
            "fraction": [1.0, 0.25, math.nan],
        }
    )
    columns, found = chunks(table, category=["fraction"])
    wanted = [dict(row, fraction=said) for row, said in zip(table.to_pylist(), ["1", "0.25", None], strict=True)]
    rows = rows_of(found)[0]
    assert [kind for _, kind in columns.plan][3:8] == ["time", "duration", "timestamp", "date", "category"]
    assert rows == [list(slow_row(columns, row).items()) for row in wanted]
    assert [dict(row)[0] for row in rows] == [float(word) for word in exact]


def test_zones_do_not_change_the_moment():
    moments = pa.array([MOMENT], pa.timestamp("us"))
    for zoned in (
        moments.cast(pa.timestamp("us", "UTC")),
        moments.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("s", "America/New_York")),
    ):
        assert rows_of(chunks(pa.table({"a": zoned}))[1])[0] == rows_of(chunks(pa.table({"a": moments}))[1])[0]
    assert parts("a\n2001-01-01T12:30:15+02:00\n")[0] == rows_of(chunks(pa.table({"a": moments}))[1])[0]


def test_nulls_with_bytes_of_their_own_say_nothing():
    offsets, data = pa.py_buffer(np.array([0, 1, 4, 5], np.int32)), pa.py_buffer(b"axyzb")
    hidden = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x05"), offsets, data])
    assert hidden.to_pylist() == ["a", None, "b"]
    columns, found = chunks(pa.table({"c": hidden}))
    assert rows_of(found)[0] == [list(slow_row(columns, {"c": word}).items()) for word in ("a", None, "b")]


def test_slices_of_text_are_read_from_where_they_start():
    words = pa.array(["zero", "one", "two", "three"])
    for column in (words, words.cast(pa.large_string()), words.dictionary_encode()):
        columns, found = chunks(pa.table({"c": column}).slice(1, 2))
        assert rows_of(found)[0] == [list(slow_row(columns, {"c": word}).items()) for word in ("one", "two")]


# Labels and weights.


def test_labels_as_found():
    assert parts("a,y\n1,0\n2,1.5\n", target="y")[1] == [0.0, 1.5]
    assert parts("a,y\n1,true\n2,false\n", target="y")[1] == [True, False]
    assert parts("a,y\n1,ham\n2,spam\n", target="y")[1] == ["ham", "spam"]
    assert parts("a,y\n1,1\n2,2\n", target="y", category=["y"])[1] == ["1", "2"]
    _, found = text("a,y\n1,ham\n2,spam\n", target="y")
    assert Labels.of(found[0][1].block.y).negative == "ham"
    _, found = text("a,y\n1,0.5\n2,-0.0\n", target="y")
    assert not np.signbit(found[0][1].block.y).any()


@pytest.mark.parametrize(
    ("column", "y"), [("1,,2", [1.0, 2.0]), ("true,,false", [True, False]), ("no,,yes", ["no", "yes"])]
)
def test_a_label_may_be_missing(column, y):
    data = "a,y\n" + "".join(f"{i},{word}\n" for i, word in enumerate(column.split(",")))
    for needed in (True, False):
        columns, found = text(data, target="y", labels=needed)
        rows, labels, _, lines, bad = rows_of(found)
        assert (len(rows), lines, bad) == (3, [2, 3, 4], [])
        assert [labels[0], labels[2]] == y
        assert labels[1] is None or math.isnan(labels[1])
        assert found[0][1].block.unlabelled.tolist() == [False, True, False]
    bare = "a\n1\n2\n"
    assert rows_of(text(bare, columns=columns, labels=False)[1])[1] == []
    with pytest.raises(DataError, match="the column 'y' is missing: the columns are a"):
        text(bare, columns=columns)


def test_weights_are_finite_and_not_negative():
    _rows, y, weights, lines, bad = parts(
        "a,y,w\n1,1,0\n1,1,-1\n1,1,\n1,1,inf\n1,,-1\n1,0,2.5\n", target="y", weight="w"
    )
    assert (weights, y, lines) == ([0.0, 2.5], [1.0, 0.0], [2, 7])
    assert bad == [
        (1, 3, "w", "the weight -1 is not a finite number ≥ 0"),
        (1, 4, "w", "no weight"),
        (1, 5, "w", "the weight inf is not a finite number ≥ 0"),
        (1, 6, "w", "the weight -1 is not a finite number ≥ 0"),
    ]


def test_infinities_are_bad_rows():
    _, _, _, lines, bad = parts("a,b,y\n1,2,1\n1e999,2,1\n1,-inf,1\n1,1,Infinity\n1,1,0\n", target="y")
    assert lines == [2, 6]
    assert bad == [(1, 3, "a", "an infinity"), (1, 4, "b", "an infinity"), (1, 5, "y", "the label is an infinity")]


# CSV.


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("header", [True, False])
def test_separators_and_headers_are_sniffed(separator, header):
    lines = [["age", "price", "kind"]] if header else []
    lines += [["1", "2.5", '"a,b;c|d e"'], ["", "3", "x"], ["4", "NA", "y"]]
    data = "\n".join(separator.join(line) for line in lines)
    columns, found = text(data)
    assert [name for name, _ in columns.plan] == (["age", "price", "kind"] if header else ["1", "2", "3"])
    assert [kind for _, kind in columns.plan] == ["number", "number", "category"]
    rows, _, _, where, bad = rows_of(found)
    assert where == [header + i for i in (1, 2, 3)]
    assert bad == []
    assert dict(rows[0])[0] == 1.0
    assert columns.full_width - 1 >= rows[0][-1][0] == 2 + murmur3(columns.plan[2][0] + "=a,b;c|d e") % 2**20


def test_decimal_commas_are_text_and_do_not_separate():
    for header in ("a;b\n", ""):
        columns, _ = text(header + "1,5;2\n2,5;3\n")
        assert [kind for _, kind in columns.plan] == ["category", "number"]


def test_a_header_may_hold_numbers_and_a_lone_line_is_one_if_it_is_not_numeric():
    assert text("name,2019,size\nx,1,2\n")[0].plan[1][0] == "2019"
    assert text("a b\n")[0].plan == (("a", "category"), ("b", "category"))
    assert rows_of(text("1,2\n")[1])[0] == [[(0, 1.0), (1, 2.0)]]
    assert rows_of(text("a,b\n")[1])[0] == []
    assert text(" a , b\n1,2\n")[0].own == ("a", "b")
    assert text(",b\n1,2\n")[0].own == ("1", "b")
    with pytest.raises(DataError, match="two columns are called 'a' in the first line"):
        text("a,a\n1,2\n")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("block", [8, 64, 1 << 20])
def test_lines_are_those_of_the_file(end, block):
    lines = ["﻿a,b,y", "1,x,1", "", '2,"p', 'q,""r""",1', "3,4", "4,z,0,9", "", "", 'five,"u",1', "6,v,inf", "7,w,1"]
    columns = Columns((("a", "number"), ("b", "category")), "y")
    rows, y, _, where, bad = parts(end.join(lines), columns=columns, block=block)
    assert (where, y) == ([2, 4, 12], [1.0, 1.0, 1.0])
    assert bad == [
        (2, 6, "", "2 fields instead of 3"),
        (2, 7, "", "4 fields instead of 3"),
        (2, 10, "a", "'five' is not a number"),
        (2, 11, "y", "the label is an infinity"),
    ]
    assert rows[1] == list(slow_row(columns, {"a": 2, "b": f'p{end}q,"r"'}).items())


def test_a_value_that_does_not_fit_a_million_rows_on_is_a_bad_row():
    n = 30_000
    lines = ["a,b,y", *(f"{i},{i / 7},{i % 2}" for i in range(n))]
    lines[20_001] = "abc,1,1"
    lines[20_101] = "1," + "z" * 50 + ",1"
    lines[25_001] = "1,2"
    rows, _, _, where, bad = parts("\n".join(lines), block=1 << 16, target="y")
    assert len(rows) == n - 3
    assert where[-1] == n + 1
    assert bad == [
        (20_000, 20_002, "a", "'abc' is not a number"),
        (20_099, 20_102, "b", f"'{'z' * 39}…' is not a number"),
        (24_998, 25_002, "", "2 fields instead of 3"),
    ]


def test_whole_numbers_may_turn_into_fractions_or_grow():
    values = ["1", "2", "3", "4.5", "1e3", "99999999999999999999", "+7", " 8 ", "-0", "0x10", "007"]
    columns = Columns((("a", "number"), ("b", "number")))
    for block in (8, 1 << 16):
        data = "a,b\n" + "".join(f"{value},1\n" for value in values)
        rows, _, _, _, bad = parts(data, columns=columns, block=block)
        assert bad == [(9, 11, "a", "'0x10' is not a number")]
        assert [dict(row).get(0, 0.0) for row in rows] == [float(value) for value in values if value != "0x10"]
    assert text("a,b\n0x10,1\n0x11,2\n")[0].plan[0] == ("a", "category")


@pytest.mark.parametrize("block", [16, 1 << 20])
def test_a_quote_that_stays_open_costs_its_line(block):
    data = 'a,b,y\n1,"x",1\n2,"open,1\n3,z,0\n4,u,1'
    _, _, _, lines, bad = parts(data, target="y", block=block)
    assert lines == [2, 4, 5]
    assert bad == [(1, 3, "", "a quote is opened and never closed")]


def test_a_quote_that_stays_open_is_not_waited_for_for_ever():
    data = 'a,b,y\n1,"x",1\n2,"open,1\n' + "a line of prose\n" * 70_000 + "3,z,0\n"
    table = open_table(io.BytesIO(data.encode()), "csv", block=1 << 18, max_line=1)
    columns = plan(table.schema, target="y")
    pieces = table.pieces()
    seen = [next(pieces) for _ in range(2)]
    assert seen[-1].end.offset < 1.5 * 2**20
    _rows, _, _, lines, bad = rows_of([(None, table.chunk(piece, columns)) for piece in [*seen, *pieces]])
    assert lines == [2, 70_004]
    assert bad[0][:3] == (1, 3, "")
    assert bad[0][3].startswith("a quoted field is not closed within 1 MiB")
    assert len(bad) == 70_001


def test_a_quote_inside_a_field_is_a_letter():
    columns = Columns((("p", "category"), ("q", "category")))
    rows, _, _, lines, bad = parts('p,q\n5" disk,x\n6" disk,"y"\n"7",z"z\n8,9\n', columns=columns, block=12)
    wanted = [('5" disk', "x"), ('6" disk', "y"), ("7", 'z"z'), ("8", "9")]
    assert rows == [list(slow_row(columns, dict(zip("pq", row, strict=True))).items()) for row in wanted]
    assert (lines, bad) == ([2, 3, 4, 5], [])


def test_text_that_is_not_utf8():
    data = b"a,y\nplain,1\n" + b"caf\xe9,1\n" + "café,0\n".encode()
    _, _, _, lines, bad = parts(data, target="y")
    assert lines == [2, 4]
    assert [row[1:3] for row in bad] == [(3, "a")]
    assert "UTF-8" in bad[0][3]
    with pytest.raises(DataError, match="UTF-16"):
        text("a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(DataError, match="carriage return alone"):
        text("a,b\r1,2\r")


def test_a_carriage_return_inside_a_line_is_a_bad_row():
    _, _, _, lines, bad = parts("a,y\n1,1\n2\r3,1\n4,0\n", columns=Columns((("a", "number"),), "y"))
    assert lines == [2, 4]
    assert [row[1] for row in bad] == [3]


def test_a_file_cut_anywhere_gives_its_whole_lines_and_at_most_one_more():
    records = [b"a,b,y\n", b'1,"x",1\n', b'2,"two\nlines",0\n', b"3,w,1\n", b'4,"q""q",0\n', b"5,u,1\n"]
    data = b"".join(records)
    ends = np.cumsum([len(record) for record in records])
    columns = Columns((("a", "number"), ("b", "category")), "y")
    whole = parts(data, columns=columns)
    for cut in range(ends[1], len(data)):
        rows, y, _, lines, bad = parts(data[:cut], columns=columns, separator=",")
        complete = int((ends <= cut).sum()) - 1
        assert rows[:complete] == whole[0][:complete]
        assert y[:complete] == whole[1][:complete]
        assert lines[:complete] == whole[3][:complete]
        begun = data[ends[complete] : cut]
        assert len(rows) + len(bad) - complete <= begun.count(b"\n") + 1
        if len(rows) > complete:  # no more than the line end is missing, or a digit of the last field
            assert begun.count(b",") == 2


def test_empty_files():
    for data, fmt in ((b"", "csv"), (b"\n\n", "csv"), (b"", "jsonl"), (b"\n \n", "jsonl")):
        with pytest.raises(DataError, match="empty"):
            text(data, fmt)
    with pytest.raises(DataError, match="no JSON object"):
        text("1\n2\n", "jsonl")
    with pytest.raises(DataError, match="separator must be"):
        text("a,b\n", separator=",,")


@settings(max_examples=many(60, 3000))
@given(
    rows=st.lists(
        st.lists(st.text(st.sampled_from("ab ,;\"'\n\réx"), max_size=6), min_size=2, max_size=2),
        min_size=1,
        max_size=12,
    ),
    block=st.integers(1, 60),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
@example(rows=[['"', '""']], block=3, end="\n", quoting=csv.QUOTE_MINIMAL)
def test_whatever_the_csv_module_writes_is_read(rows, block, end, quoting):
    if quoting == csv.QUOTE_MINIMAL:  # which forgets to quote a lone \r
        rows = [[field.replace("\r", "") for field in row] for row in rows]
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end, quoting=quoting).writerows([["p", "q"], *rows])
    columns = Columns((("p", "category"), ("q", "category")))
    found = parts(out.getvalue(), columns=columns, separator=",", block=block)
    assert found[4] == []
    assert found[0] == [list(slow_row(columns, dict(zip("pq", row, strict=True))).items()) for row in rows]
    lines, at = [], 2
    for row in rows:
        lines.append(at)
        at += 1 + sum(field.count("\n") for field in row)
    assert found[3] == lines


@settings(max_examples=many(150, 5000))
@example(data="1\r1\n\n", block=1)
@example(data="1,1\r2,2\n\r\r\n3,3\n", block=5)
@given(data=st.text(st.sampled_from('a1,"\n\r.'), max_size=60), block=st.integers(1, 30))
def test_garbage_is_read_the_same_in_pieces_of_any_size_and_every_line_is_accounted_for(data, block):
    columns = Columns((("p", "number"), ("q", "category")))
    data = "p,q\n" + data
    small, large = (parts(data, columns=columns, separator=",", block=size) for size in (block, 1 << 20))
    assert small == large
    at_most = len(data.splitlines())
    assert len(small[0]) + len(small[4]) <= at_most
    assert all(1 < line <= data.count("\n") + 1 for line in [*small[3], *(row[1] for row in small[4])])


def test_scan_agrees_with_the_csv_module():
    rng = np.random.default_rng(0)
    for _ in range(many(200, 5000)):
        rows = [["".join(rng.choice(list('ab"\n,'), rng.integers(0, 5))) for _ in range(3)] for _ in range(4)]
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="\n").writerows(rows)
        data = out.getvalue().encode()
        assert scan(data, ",", True, 9)[2:] == (4, data.count(b"\n"), len(data), False)


def test_scan_leaves_out_empty_lines():
    data = b'\n1,"a\n"\r\n\r\n\n2,\n\n3'
    found = scan(data, ",", True, 3)
    assert found[2:] == (3, 8, len(data) - 1, False)
    assert (found.starts.tolist(), found.numbers.tolist()) == ([1, 12, 16], [1, 5, 7])


# JSON lines.


@pytest.mark.parametrize("block", [16, 1 << 20])
def test_json_lines_with_every_trap(block):
    lines = [
        '{"a": 1, "b": "x", "y": true}',
        "",
        '{"y": false, "later": {"deep": [1]}}',
        '{"a": "no", "y": true}',
        '{"a": 2.5, "b": 3, "y": true}',
        "[1, 2]",
        '{"a": 1, "a": 2, "y": true}',
        "   ",
        '{"a": 1e999, "y": true}',
        '{"a": 4, "b": "\\u00e9\\n", "y": null}',
        '{"a": 1} {"a": 2}',
        '{"a": NaN, "b": null, "y": false}',
        '{"a": {"c": 1}, "y": true}',
        '{"a": 5, "y": tr',
    ]
    columns = Columns((("a", "number"), ("b", "category")), "y", "boolean")
    rows, y, _, where, bad = parts("\r\n".join(lines), fmt="jsonl", columns=columns, block=block)
    assert where == [1, 3, 10, 12]
    assert y[2] is None or math.isnan(y[2])
    assert [y[0], y[1], y[3]] == [True, False, False]
    given = ({"a": 1, "b": "x"}, {}, {"a": 4, "b": "é\n"}, {})
    assert rows == [list(slow_row(columns, row).items()) for row in given]
    assert [row[:3] for row in bad] == [
        (2, 4, "a"), (2, 5, "b"), (2, 6, ""), (2, 7, ""), (2, 9, ""), (3, 11, ""),
        (4, 13, "a"), (4, 14, ""),
    ]  # fmt: skip
    why = [row[3] for row in bad]
    assert why[0] == "'no' is not a number"
    assert why[2] == "'[1, 2]' is not an object"
    assert "twice" in why[3]
    assert why[6] == '{"c": 1} is not a number'
    assert "is not JSON" in why[7]


def test_two_objects_in_a_line_are_not_hidden_by_an_empty_line():
    for gap in ("", " ", "\r"):
        data = '{"a": 1}\n{"a": 2}' + gap + '{"a": 3}\n  \n{"a": 4, "b": "}{"}\n'
        rows, _, _, lines, bad = parts(data, fmt="jsonl", columns=Columns((("a", "number"),)))
        assert (rows, lines) == ([[(0, 1.0)], [(0, 4.0)]], [1, 4])
        assert [row[1] for row in bad] == [2]


def test_json_lines_in_latin_1_are_bad_rows():
    data = b'{"a": "x", "y": 1}\n' + b'{"a": "caf\xe9", "y": 1}\n' + '{"a": "é", "y": 0}\n'.encode()
    _, _, _, lines, bad = parts(data, fmt="jsonl", target="y")
    assert lines == [1, 3]
    assert bad[0][1] == 2
    assert "UTF-8" in bad[0][3]


def test_the_type_of_a_json_column_is_that_of_its_first_value():
    data = (
        '{"n": null, "m": 1, "t": "10:30:00", "i": 12345678901234567}\n{"n": "x", "m": 2.5, "i": 12345678901234568}\n'
    )
    columns, found = text(data, "jsonl", category=["i"])
    assert columns.plan == (("n", "category"), ("m", "number"), ("t", "time"), ("i", "category"))
    wanted = [
        {"m": 1, "t": datetime.time(10, 30), "i": 12345678901234567},
        {"n": "x", "m": 2.5, "i": 12345678901234568},
    ]
    assert rows_of(found)[0] == [list(slow_row(columns, row).items()) for row in wanted]


# Files of other kinds.


def test_files_that_are_not_what_they_seem(tmp_path):
    for name, why in (("x.parquet", "cannot be read as Parquet"), ("x.arrow", "cannot be read as Arrow IPC")):
        (tmp_path / name).write_bytes(b"garbage" * 100)
        with pytest.raises(DataError, match=why):
            open_table(tmp_path / name)
        with pytest.raises(DataError, match=why):
            open_table(tmp_path / ("missing" + name))
    with pytest.raises(DataError, match=r"there is no file .*missing\.csv"):
        open_table(tmp_path / "missing.csv")
    with pytest.raises(DataError, match="the suffix tells no format"):
        open_table(tmp_path / "data.xyz")
    with pytest.raises(UnknownName, match="no format 'xls'"):
        open_table("a.xls", "xls")
    with pytest.raises(DataError, match="a table is a path, a file or a frame"):
        open_table([1, 2])
    with pytest.raises(DataError, match="the frame cannot be read"):
        open_table(pandas.DataFrame({"a": [1, "x"]}, dtype=object))


def test_a_damaged_parquet_file_stops_with_a_sentence(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(many_kinds(3000), path, row_group_size=1000)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4000] = b"\xff" * 4000
    path.write_bytes(data)
    with pytest.raises(DataError, match="reading failed after row|held"):
        list(open_table(path).pieces())


def test_a_second_table_must_have_the_columns_of_the_first():
    columns = plan(pa.schema([("a", pa.float64()), ("b", pa.string()), ("d", pa.date32())]))
    lines = np.arange(1, 2)
    day = datetime.date(2000, 1, 1)
    again = encode(columns, pa.table({"d": [day], "more": [1], "b": ["x"], "a": [1]}), lines)
    assert (
        again.block.X.indices.tolist()
        == encode(columns, pa.table({"a": [1.0], "b": ["x"], "d": [day]}), lines).block.X.indices.tolist()
    )
    with pytest.raises(DataError, match="the column 'b' is missing: did you mean 'B'"):
        encode(columns, pa.table({"a": [1.0], "B": ["x"], "d": [day]}), lines)
    with pytest.raises(DataError, match="the column 'a' held numbers at the beginning, but holds string here"):
        encode(columns, pa.table({"a": ["1"], "b": ["x"], "d": [day]}), lines)
    with pytest.raises(DataError, match="the column 'd' held a date at the beginning, but holds int64 here"):
        encode(columns, pa.table({"a": [1], "b": ["x"], "d": [3]}), lines)
    with pytest.raises(DataError, match="the column 'b' held words at the beginning, but holds binary here"):
        encode(columns, pa.table({"a": [1], "b": [b"x"], "d": [day]}), lines)


def test_import_stays_light():
    code = "import sys, rue; from rue.streams.formats import formats; formats(); sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# Real data, and memory.

REAL = {
    "elec2.csv.xz": ("up", []),
    "bike.csv.xz": ("cnt", []),
    "covtype.csv.xz": ("lodgepole", []),
    "flights.parquet": ("late", []),
}


@pytest.mark.parametrize("name", REAL)
def test_real_tables_against_the_slow_encoder(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not in shared/data")
    target, category = REAL[name]
    data = lzma.decompress(path.read_bytes()) if name.endswith(".xz") else b""
    table = open_table(io.BytesIO(data), "csv") if data else open_table(path)
    columns = plan(table.schema, target=target, category=category)
    first = next(table.pieces())
    chunk = table.chunk(first, columns)
    rows, y, _, _, bad = rows_of([(first, chunk)])
    assert bad == []
    assert len(rows) > 5000
    if data:
        plain = csv.DictReader(io.StringIO(data[: first.end.offset].decode()))
        dicts = [next(plain) for _ in range(2000)]
    else:
        dicts = first.data.slice(0, 2000).to_pylist()
    assert rows[:2000] == [list(slow_row(columns, row).items()) for row in dicts]
    assert y[:2000] == [float(row[target]) for row in dicts]


GROWING = (
    PEAK
    + """
import io, resource, sys
from rue.streams.files.sources import Source
from rue.streams.formats.csv import Csv
from rue.streams.tables.columns import plan

class Long(io.RawIOBase):
    def __init__(self, size):
        self.left = size
        rows = ["%d,%.3f,word%d,%d\\n" % (i, i / 7, i % 5000, i % 2) for i in range(20000)]
        self.body, self.at = "".join(rows).encode(), 0
        self.start = b"a,b,c,y\\n"
    def read(self, n):
        if self.start:
            start, self.start = self.start, b""
            return start
        n = min(n, self.left, len(self.body) - self.at)
        data = self.body[self.at : self.at + n]
        self.at, self.left = (self.at + n) % len(self.body), self.left - n
        return data
    def seekable(self):
        return False

rows = 0
table = Csv().open(Source(Long(int(sys.argv[1]))))
columns = plan(table.schema, target="y")
for piece in table.pieces():
    rows += len(table.chunk(piece, columns).block)
print(rows, peak() // 2**20)
"""
)


def test_memory_does_not_grow_with_the_stream():
    peaks = []
    for size in (20_000_000, 300_000_000 if SOAK else 80_000_000):
        done = subprocess.run([sys.executable, "-c", GROWING, str(size)], capture_output=True, text=True, check=True)
        rows, peak = map(int, done.stdout.split())
        assert rows > size / 40
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 40, peaks


@given(st.lists(st.sampled_from([b"0", b"x", b"X", b"1", b",", b"\n", b"\x10"]), max_size=40).map(b"".join))
def test_hexadecimal_numbers_are_seen(data):
    assert _hexadecimal(data) == (b"0x" in data or b"0X" in data)


# Damaged files, read in processes of their own: a crash shows in the exit code.


def mixed_table(n=400):
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "a": rng.normal(size=n),
            "b": rng.integers(0, 100, n),
            "s": pa.array([None if i % 7 == 0 else f"w{i % 13}" for i in range(n)]),
            "c": pa.array([f"k{i % 5}" for i in range(n)]).dictionary_encode(),
            "y": rng.integers(0, 2, n),
        }
    )


def write_as(kind, table, path):
    if kind == "parquet":
        pq.write_table(table, path, write_page_checksum=True, row_group_size=150)
        return
    with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(path, table.schema) as writer:
        writer.write_table(table, 150)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows"])
def test_damaged_tables_never_crash_and_checksums_are_believed(kind, tmp_path):
    path = tmp_path / f"good.{kind}"
    write_as(kind, mixed_table(), path)
    script = ROOT / "tests/damaging.py"
    for seed in range(many(1, 20)):
        run = subprocess.run(
            [sys.executable, str(script), str(path), "y", str(seed), str(many(300, 4000)), str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert run.returncode == 0, ((tmp_path / "last").read_text(), run.stderr[-2000:])
        outcomes = [json.loads(line) for line in run.stdout.splitlines()]
        kinds = {outcome for outcome, _ in outcomes}
        assert "refused" in kinds
        if kind == "parquet":  # the formats of Arrow have no checksums
            assert [what for outcome, what in outcomes if outcome == "different"] == []


def flipped_in_data(path, table):
    """A copy of a file in which one number of a column is another one."""
    content, number = path.read_bytes(), np.float64(table["a"][7].as_py()).tobytes()
    at = content.index(number)
    damaged = path.with_name(f"damaged{path.suffix}")
    damaged.write_bytes(content[: at + 3] + bytes([content[at + 3] ^ 1]) + content[at + 4 :])
    return damaged


def test_page_checksums_are_checked_where_they_are(tmp_path, inside):
    table = mixed_table()
    for checksums in (True, False):
        path = tmp_path / f"{checksums}.parquet"
        settings = {"use_dictionary": False, "compression": "NONE", "write_page_checksum": checksums}
        pq.write_table(table, path, **settings)
        damaged = flipped_in_data(path, table)
        command = "learn", damaged, "--target", "y", "--quiet"
        if checksums:
            assert "checksum" in inside(*command, ok=1).err
        else:
            inside(*command)  # nothing in the file says that it is damaged: the documentation does


def test_footers_that_contradict_the_rows_are_refused(tmp_path):
    table = mixed_table()
    write_as("arrow", table, tmp_path / "whole.arrow")
    with pa.ipc.new_stream(tmp_path / "rows.arrows", table.schema) as writer:
        writer.write_table(table.slice(0, 150), 150)
    stream, whole = (tmp_path / "rows.arrows").read_bytes(), (tmp_path / "whole.arrow").read_bytes()
    length = int.from_bytes(whole[-10:-6], "little")
    path = tmp_path / "fewer.arrow"  # a third of the rows, before a footer that lists all of them
    path.write_bytes(b"ARROW1\0\0" + stream + whole[-10 - length :])
    with pytest.raises(DataError, match="its footer promises 3 batches of rows, not 1"):
        list(open_table(path).pieces())
    write_as("parquet", table, tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    at = content.index(b"\x18\x01s")  # the name of a column in the footer, where it stands twice
    (tmp_path / "renamed.parquet").write_bytes(content[: at + 2] + b"t" + content[at + 3 :])
    with pytest.raises(DataError, match="two lists of columns, and they differ|cannot be read as Parquet"):
        open_table(tmp_path / "renamed.parquet")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_file_cut_short_is_refused(kind, tmp_path):
    write_as(kind, mixed_table(), tmp_path / f"x.{kind}")
    content = (tmp_path / f"x.{kind}").read_bytes()
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        path = tmp_path / f"cut.{kind}"
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(DataError):
            list(open_table(path).pieces())


# Values that are missing.

HOLES = """day,price,size,when,y
mon,1.5,3,2026-01-01,1
,2.5,,2026-01-02,-1
tue,nan,,,1
wed,,2,2026-01-04,-1
thu,1e999,,2026-01-05,1
fri,1.0,7,2026-01-06,
"",,,,-1
"""
LACKING = [0, 2, 3, 1, None, 0, 4]
"""How many of the features of each row are missing; None where the row is bad, for its infinity."""


@pytest.mark.parametrize("block", [30, 64, 4096])
def test_missing_values_are_counted_for_each_row(block):
    table = open_table(io.BytesIO(HOLES.encode()), "csv", block=block)
    columns = plan(open_table(io.BytesIO(HOLES.encode()), "csv").schema, target="y")
    found = {}
    for piece in table.pieces():
        chunk = table.chunk(piece, columns)
        counts = [0] * len(chunk.lines) if chunk.missing is None else chunk.missing.tolist()
        found |= dict(zip(chunk.lines.tolist(), counts, strict=True))
    assert found == {line: count for line, count in enumerate(LACKING, 2) if count is not None}


def test_missing_values_of_frames_agree_with_pandas():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "n": np.where(rng.random(500) < 0.3, np.nan, rng.normal(size=500)),
            "w": np.where(rng.random(500) < 0.2, None, rng.choice(["a", "b", "c"], 500)),
            "c": pandas.Categorical(np.where(rng.random(500) < 0.4, None, rng.choice(["x", "y"], 500))),
            "t": pandas.to_datetime(pandas.Series(np.where(rng.random(500) < 0.1, None, "2026-01-01"))),
            "y": rng.choice([-1, 1], 500),
        }
    )
    run = rue.learn(frame, y="y", learner=rue.OGD("logistic"))
    assert run.missing == int(frame.drop(columns="y").isna().sum().sum())


def test_the_report_counts_missing_values_through_checkpoint_and_resume(tmp_path, inside):
    rows = [f"w{i % 3},{'' if i % 4 == 0 else i},{1 if i % 2 else -1}\n" for i in range(1000)]
    (tmp_path / "whole.csv").write_text("word,n,y\n" + "".join(rows))
    (tmp_path / "bad.csv").write_text("word,n,y\n" + "".join(rows[:500]) + "a,1e999,1\n" + "".join(rows[500:]))
    learn = "learn", "--target", "y", "--learner", "ogd", "--quiet", "--report", tmp_path / "r.json"
    out = inside(*learn, tmp_path / "whole.csv").out
    assert "examples     1,000 (250 values missing)" in out
    assert json.loads((tmp_path / "r.json").read_text())["missing"] == 250
    inside(*learn, tmp_path / "bad.csv", "--checkpoint", tmp_path / "c.rue", ok=1)
    assert json.loads((tmp_path / "r.json").read_text())["missing"] == 125
    (tmp_path / "bad.csv").write_text("word,n,y\n" + "".join(rows))
    resume = "learn", tmp_path / "bad.csv", "--resume", tmp_path / "c.rue", "--quiet", "--report", tmp_path / "r.json"
    inside(*resume, "--model", tmp_path / "m.rue")
    assert json.loads((tmp_path / "r.json").read_text())["missing"] == 250
    assert rue.load(tmp_path / "m.rue").counts["missing"] == 250
    run = rue.learn(str(tmp_path / "whole.csv"), y="y", learner=rue.OGD("logistic"))
    assert run.missing == 250
    rue.save(run, tmp_path / "run.rue")
    assert rue.load(tmp_path / "run.rue").counts["missing"] == 250
