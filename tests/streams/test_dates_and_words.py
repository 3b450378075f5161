"""Dates and sentences of tables: the same features whatever the format and the spelling; older models as before."""

import datetime
import io
import itertools
import json

import numpy as np
import pandas
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_tables import as_csv, as_jsonl, as_parquet, chunks, rows_of, slow_row, slow_words, text

import rue
from rue.errors import DataError, SettingsError
from rue.streams.tables.columns import Columns, is_sentences, plan
from rue.streams.tables.tokens import split_words
from tables import open_table

# Words.


@settings(deadline=None, max_examples=200)
@given(st.lists(st.text(max_size=30), max_size=8))
@example(["İ Ⱥ Ⱦ ß ǅ", "", "a\u0301b \u0301c", "\U0001f600 \U0001d400 \U00020000!", "x" * 100])
def test_words_are_runs_of_letters_and_digits_in_lower_case(texts):
    array = pa.array([text.encode("utf-8", "replace").decode() for text in texts], pa.string())
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    offsets = np.frombuffer(array.buffers()[1], np.int32)[: len(texts) + 1] if texts else np.zeros(1, np.int32)
    letters, places, ends = split_words(data, offsets)
    words = [letters[lo:hi].tobytes().decode() for lo, hi in itertools.pairwise(places)]
    found = [words[lo:hi] for lo, hi in itertools.pairwise(ends)]
    assert found == [slow_words(text) if text else [""] for text in array.to_pylist()]


def test_bytes_that_are_not_utf8_separate_words():
    data = b"one\xff\xfetwo \xc3 \xe2\x82 three\xf0\x9f"
    letters, places, _ = split_words(np.frombuffer(data, np.uint8), np.array([0, len(data)]))
    assert letters[: places[-1]].tobytes() == b"onetwothree"
    assert places.tolist() == [0, 3, 6, 11]


def reviews(n=60, seed=0):
    rng = np.random.default_rng(seed)
    words = ["the", "battery", "died", "great", "Great!", "don't", "buy", "sound", "is", "ok"]
    return pa.table(
        {
            "review": [None if i % 13 == 5 else " ".join(rng.choice(words, rng.integers(3, 40))) for i in range(n)],
            "title": [f"It is number {i}" for i in range(n)],
            "shop": rng.choice(["New York", "Los Angeles"], n).tolist(),
            "y": (rng.random(n) < 0.5).tolist(),
        }
    )


FORMS = {
    "csv": lambda t: (io.BytesIO(as_csv(t)), "csv"),
    "jsonl": lambda t: (io.BytesIO(as_jsonl(t)), "jsonl"),
    "parquet": lambda t: (as_parquet(t, 7), "parquet"),
    "pandas": lambda t: (t.to_pandas(), None),
    "dictionary": lambda t: (t.set_column(0, "review", t["review"].dictionary_encode()), None),
}


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_sentences_are_found_and_counted_in_every_form(form, pairs):
    table = reviews()
    told = {"text": ["review"]} if form == "dictionary" else {}
    told |= {"word_pairs": True} if pairs else {}
    columns, found = chunks(*FORMS[form](table), target="y", **told)
    assert columns.plan == (("review", "text"), ("title", "text"), ("shop", "category"))
    rows, _, _, _, bad = rows_of(found)
    assert not bad
    assert rows == [list(slow_row(columns, row).items()) for row in table.to_pylist()]
    assert max(value for row in rows for _, value in row) > 2.0
    missing = sum(0 if chunk.missing is None else int(chunk.missing.sum()) for _, chunk in found)
    assert missing == table["review"].null_count
    columns = plan(table.schema, target="y", category=["review", "title"], first=open_table(table).first)
    assert {kind for _, kind in columns.plan} == {"category"}


def test_pairs_of_words_learn_what_words_do_not(tmp_path, inside, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.random(1500) < 0.5
    text = ["is it very good or not bad" if good else "is it not good or very bad" for good in y]
    frame = pandas.DataFrame({"review": [f"{some} {i % 7}" for i, some in enumerate(text)], "y": y})
    how = {"y": "y", "text": "review", "learner": "ogd:intercept=false"}
    single, pairs = rue.learn(frame, **how), rue.learn(frame, word_pairs=True, **how)
    assert single.mistakes > 500
    assert pairs.mistakes < 20
    assert {"review=very good", "review=not bad", "review=it"} <= set(pairs.names.values())
    rue.save(pairs, "m.rue")
    model = rue.load("m.rue")
    assert np.array_equal(model.predict(frame), pairs.predict(frame))
    frame.to_csv("m.csv", index=False)
    again = "learn", "m.csv", "--resume", "m.rue"
    assert "--word-pairs" not in inside(*again, "--word-pairs", "--model", "n.rue").err
    rue.save(single, "single.rue")
    assert (
        "--word-pairs contradicts --resume"
        in inside("learn", "m.csv", "--resume", "single.rue", "--word-pairs", ok=2).err
    )
    with pytest.raises(SettingsError, match="word_pairs"):
        rue.learn(frame, learner=rue.load("single.rue"), word_pairs=True)
    with pytest.raises(DataError, match="no column is read as text"):
        rue.learn(frame.assign(review=1.0), y="y", word_pairs=True)


def test_what_counts_as_sentences():
    assert not is_sentences(["a b"] * 19)
    assert is_sentences([f"a {i}" for i in range(16)] + ["a 1"] * 4)  # four fifths differ
    assert not is_sentences([f"a {i}" for i in range(15)] + ["a 1"] * 5)
    assert not is_sentences([f"word{i}" for i in range(51)] + [f"two {i}" for i in range(49)])
    assert is_sentences([f"word{i}" for i in range(50)] + [f"two {i}" for i in range(50)] + [""] * 900)
    assert not is_sentences([f"1 {i:03d},50 €" for i in range(40)])


def test_text_and_category_and_roles_exclude_each_other():
    schema = reviews().schema
    for asked, why in (
        ({"text": ["review"], "category": ["review"]}, "both text and a category"),
        ({"target": "review", "text": ["review"]}, "is the target: it cannot be text"),
        ({"text": ["revew"]}, "did you mean 'review'"),
    ):
        with pytest.raises(DataError, match=why):
            plan(schema, **asked)
    with pytest.raises(SettingsError, match="--text.*are for tables"):
        rue.learn("x.svm", text="a")


def test_a_model_of_text_predicts_resumes_and_names_its_words(tmp_path, inside, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = reviews(400)
    whole, half = as_csv(table), as_csv(table.slice(0, 250))
    (tmp_path / "whole.csv").write_bytes(whole)
    (tmp_path / "half.csv").write_bytes(half)
    (tmp_path / "rest.jsonl").write_bytes(as_jsonl(table.slice(250)))
    how = ("--target", "y", "--learner", "ogd", "--loss", "logistic")
    said = inside("learn", "whole.csv", *how, "--model", "one.rue", "--report", "one.json")
    assert "columns      text: review, title" in said.out
    assert "column review is taken as text, a feature for each word; --category review" in said.err
    assert json.loads((tmp_path / "one.json").read_text())["columns"] == {"dates": [], "text": ["review", "title"]}
    inside("learn", "half.csv", *how, "--text", "review,title", "--model", "two.rue")
    inside("learn", "rest.jsonl", "--resume", "two.rue", "--model", "two.rue")
    one, two = rue.load(tmp_path / "one.rue"), rue.load(tmp_path / "two.rue")
    assert np.array_equal(one.learner.weights, two.learner.weights)
    assert {"review=battery", "review=t", "title=number", "review="} <= set(one.names.values())
    frame = table.to_pandas()
    assert np.array_equal(one.predict(frame), one.predict(tmp_path / "whole.csv"))
    assert "columns of text: review, title" in inside("inspect", "one.rue").out
    run = rue.learn(frame, y="y", learner=rue.OGD("logistic"), text=("review", "title"))
    assert np.array_equal(run.learner.weights, one.learner.weights)


# Dates.


def stamps(n=40):
    start = datetime.datetime(2023, 12, 28, 22, 30)
    return [start + datetime.timedelta(hours=7 * k, seconds=k % 3) for k in range(n)]


def dated(n=40):
    """A table of timestamps, some at midnight, and of dates, some missing."""
    when = [moment.replace(hour=0, minute=0, second=0) if k % 5 == 0 else moment for k, moment in enumerate(stamps(n))]
    day = [None if k % 9 == 4 else moment.date() for k, moment in enumerate(stamps(n))]
    return pa.table({"when": when, "day": day, "x": np.arange(n) / 8.0, "y": [k % 2 for k in range(n)]})


def test_frames_files_and_text_have_the_same_dates():
    table = dated()
    frame = table.to_pandas()
    texts = frame.assign(
        when=frame["when"].astype(str), day=frame["day"].astype(object).where(frame["day"].notna()).map(str)
    )
    texts.loc[table["day"].is_null().to_numpy(zero_copy_only=False), "day"] = None
    moments = frame.assign(day=pandas.to_datetime(frame["day"]))
    zoned = frame.assign(when=frame["when"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))
    forms = {name: (table, name) for name in ("csv", "jsonl", "parquet", "pandas")}
    forms |= {"strings": (texts, "pandas"), "datetime64": (moments, "pandas"), "zoned": (zoned, "pandas")}
    forms |= {"parquet strings": (texts, "parquet")}
    columns, found = chunks(table, target="y")
    wanted = rows_of(found)[0]
    assert wanted == [list(slow_row(columns, row).items()) for row in table.to_pylist()]
    assert columns.starts == (("when", 19719), ("day", 19719))  # 2023-12-28
    assert columns.own == ("when", "when.day_of_year", "day", "day.day_of_year", "x")
    for name, (rows, form) in forms.items():
        arrow = rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows)
        for known in ({"target": "y"}, {"columns": columns}):  # a model of one form reads the others
            assert rows_of(chunks(*FORMS[form](arrow), **known)[1])[0] == wanted, name


def test_dates_of_older_models_are_what_they_were():
    table = dated()
    old = {"plan": [["when", "timestamp"], ["day", "date"], ["x", "number"]], "target": "y", "label": "number"}
    columns = Columns.from_dict({**old, "weight": None, "bits": 20})
    assert columns.version == 1
    assert columns.own == ("when", "day", "x")
    rows = rows_of(chunks(io.BytesIO(as_csv(table)), "csv", columns=columns)[1])[0]
    assert rows == [list(slow_row(columns, row).items()) for row in table.to_pylist()]
    assert rows[0][0] == (0, 19719.0)
    assert Columns.from_dict(columns.to_dict()) == columns


def spelt(table, pattern, comma=False):
    rows = []
    for row in table.to_pylist():
        moments = {name: row[name] and row[name].strftime(pattern) for name in ("when", "day")}
        moments["when"] += row["when"].strftime(" %H:%M:%S") if row["when"].hour else ""
        number = f"{1000 * row['x']:,.3f}".translate(str.maketrans(",.", ".,")) if comma else 1000 * row["x"]
        rows.append({**row, **moments, "x": number})
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize(("pattern", "order"), [("%d.%m.%Y", "day-first"), ("%m/%d/%y", "month-first")])
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "pandas"])
def test_other_spellings_are_read_when_asked_for(form, pattern, order):
    plain = spelt(dated(), "%Y-%m-%d")
    wanted = rows_of(chunks(*FORMS[form](plain), target="y")[1])
    other = spelt(dated(), pattern, comma=True)
    how = {"order": order, "decimal": ",", "target": "y"}
    table = open_table(*FORMS[form](other), decimal=",")
    columns = plan(table.schema, first=table.first, **how)
    assert rows_of([(piece, table.chunk(piece, columns)) for piece in table.pieces()]) == wanted
    assert chunks(*FORMS[form](other), target="y")[0].dates == ()


def test_decimal_commas_of_a_csv_are_read_wherever_numbers_are():
    rows = "".join(f"{i};{i / 4:.2f};{1 + i % 2}\n".replace(".", ",") for i in range(30))
    table = open_table(io.BytesIO(("7;0,5;1\n" + rows + "3,5;4;2\nx;1;1\n").encode()), "csv", decimal=",")
    columns = plan(table.schema.remove(0).insert(0, pa.field("1", pa.float64())), target=-1, decimal=",")
    [(_, chunk)] = [(piece, table.chunk(piece, columns)) for piece in table.pieces()]
    X = chunk.block.X
    assert (X.indices.max() < 2, len(chunk.lines), X.data[-2:].tolist()) == (True, 32, [3.5, 4.0])  # no header
    assert [(row.line, row.why) for row in chunk.bad] == [(33, "'x' is not a number")]


def test_dates_that_are_none_make_bad_rows_in_frames_too():
    days = [f"{1 + k % 28}.{1 + k % 12}.2026" for k in range(1200)]
    days[1100:1102] = ["31.2.2026", "soon"]
    frame = pandas.DataFrame({"day": days, "y": [0.0, 1.0] * 600})
    columns, found = chunks(frame, target="y", order="day-first")
    assert columns.plan == (("day", "date"),)
    bad = [(row.line, row.column, row.why) for _, chunk in found for row in chunk.bad]
    assert bad == [(1101, "day", "'31.2.2026' is not a date"), (1102, "day", "'soon' is not a date")]


def test_the_options_in_python_and_on_the_command_line(tmp_path, inside, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"{1 + k % 28:02d}.0{1 + k % 9}.2026;{k},5;{k % 2}\n" for k in range(50))
    (tmp_path / "t.csv").write_text("tag;preis;y\n" + lines)
    how = ("--target", "y", "--learner", "ogd", "--loss", "logistic", "--model", "m.rue")
    assert "read them with --day-first" in inside("learn", "t.csv", *how).err
    said = inside("learn", "t.csv", *how, "--decimal", ",", "--day-first")
    assert "columns      dates: tag" in said.out
    assert "note" not in said.err
    run = rue.learn("t.csv", y="y", decimal=",", day_first=True, learner=rue.OGD("logistic"))
    model = rue.load("m.rue")
    assert np.array_equal(run.learner.weights, model.learner.weights)
    assert np.array_equal(model.predict("t.csv"), run.predict("t.csv"))
    assert "not both" in inside("learn", "t.csv", *how, "--day-first", "--month-first", ok=2).err
    assert "a point or a comma" in inside("learn", "t.csv", *how, "--decimal", ";", ok=2).err
    assert "tag.weekday=Monday" in set(model.names.values())
    assert text("a,y\n1,2\n")[0].version == 2


# Dates that can be read in one way only.

SPELLINGS = {
    "slashes": lambda d: f"{d.year}/{d.month}/{d.day}",
    "points": lambda d: f"{d.year}.{d.month:02}.{d.day:02}",
    "month first": lambda d: f"{d:%b} {d.day} {d.year}",
    "whole month": lambda d: f"{d:%A}, {d:%B} {d.day}, {d.year}",
    "day first": lambda d: f"{d.day}-{d:%b}-{d.year}".upper(),
    "with a time": lambda d: f"{d.day} {d:%b}. {d.year}, {d:%H:%M}",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("form", ["csv", "jsonl", "pandas"])
def test_dates_with_their_year_first_or_a_named_month_are_read_without_being_told(form, spelling):
    clock = datetime.timedelta(hours=5, minutes=7) if spelling == "with a time" else datetime.timedelta()
    days = [datetime.datetime(1999, 1, 27) + i * (datetime.timedelta(days=11) + clock) for i in range(60)]
    iso = [day.isoformat(" ") if clock else day.date().isoformat() for day in days]
    spelt = [None if i % 17 == 3 else SPELLINGS[spelling](day) for i, day in enumerate(days)]
    y = [i % 2 for i in range(60)]
    found = []
    for texts in (spelt, [None if mine is None else other for mine, other in zip(spelt, iso, strict=True)]):
        table = pa.table({"at": pa.array(texts, pa.string()), "y": y})
        columns, rows = chunks(*FORMS[form](table), target="y")
        assert columns.kind("at") in ("date", "timestamp")
        found.append(rows_of(rows))
    assert found[0] == found[1]
    assert not found[0][-1]


def test_text_with_one_thing_that_is_no_date_is_words_with_a_note():
    values = [*(f"Jan {i} 2026" for i in range(1, 29)), "Jan 40 2026"]
    text = "x,y\n" + "".join(f"{value},1\n" for value in values)
    table = open_table(io.BytesIO(text.encode()), "csv")
    assert plan(table.schema, target="y", first=table.first).kind("x") == "category"
    assert "nearly all of it is dates, because 'Jan 40 2026' is none" in dict(table.suspicious_columns())["x"]
