"""Rows as dicts: lists of them are tables, and one at a time dates have parts."""

import datetime
import warnings

import numpy as np
import pandas
import pytest

import rue
from rue.learners.one_example import numeric
from rue.streams.tables.dates import DAYS


def bookings(count=120):
    start = datetime.datetime(2026, 1, 1, 3)
    return [
        {
            "size": float(i % 7) if i % 11 else None,
            "colour": "red" if i % 3 else "blue",
            "at": start + datetime.timedelta(hours=5 * i),
            "bought": "yes" if i % 7 > 3 else "no",
        }
        for i in range(count)
    ]


def test_a_list_of_dicts_is_a_table():
    """With the target inside or beside it, held out, tested with, learnt on, raced: the bits of a frame."""
    rows = bookings()
    frame = pandas.DataFrame(rows)
    run, wanted = rue.learn(rows, "bought", holdout=20), rue.learn(frame, "bought", holdout=20)
    assert run.predictions.tobytes() == wanted.predictions.tobytes()
    assert run.holdout.risk == wanted.holdout.risk
    more = rue.learn(rows[100:], learner=run)
    assert more.predictions.tobytes() == rue.learn(frame[100:], learner=wanted).predictions.tobytes()
    labels = [row.pop("bought") for row in rows]
    beside = rue.learn(rows[:100], labels[:100], test=(rows[100:], labels[100:]))
    assert beside.predictions.tobytes() == run.predictions.tobytes()
    assert beside.test.risk == run.holdout.risk
    assert rue.race(rows, labels, learners=["ogd"]).examples == 120


def test_what_only_some_dicts_have_is_missing_in_the_others():
    rows = [{"a": 1.0, "y": 1.0}, {"b": "word", "y": 2.0}] * 3
    assert rue.learn(rows, "y").missing == 6
    with pytest.raises(rue.DataError, match="the column 'a' cannot be read"):
        rue.learn([{"a": 1.0, "y": 1.0}, {"a": "word", "y": 2.0}], "y")


def test_dates_of_one_example_have_the_parts_of_a_table():
    """All but the days since the table's first date."""
    rows = bookings()
    days = {row["at"].strftime("%A"): row["at"].date() for row in rows}
    assert set(days) == set(DAYS)
    table = rue.learn(rows, "bought")
    parts = {name for name in table.names.values() if name.startswith("at.")}
    own = set().union(*(numeric({"at": row["at"]}) for row in rows))
    assert own == parts
    assert numeric({"at": datetime.date(2026, 12, 31)}) == {"at.day_of_year": 365.0, "at.weekday=Thursday": 1.0}
    east = datetime.datetime(2026, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    assert numeric({"at": east}) == {"at.day_of_year": 365.0, "at.hour=23": 1.0, "at.weekday=Wednesday": 1.0}
    assert numeric({"at": pandas.NaT}) == {"at=": 1.0}
    learner = rue.Mixture()
    for row in rows:
        learner.update({"at": row["at"]}, 1 if row["bought"] == "yes" else -1)
    assert np.isfinite(learner.predict({"at": rows[0]["at"]}))


def test_a_date_in_text_is_a_word_with_a_note():
    learner = rue.OGD()
    with pytest.warns(UserWarning, match=r"the feature 'at' is a date in text, taken as a word: give a datetime"):
        learner.update({"at": "2026-12-31 18:00"}, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.update({"at": "31 December", "code": "2026-AB-01", "id": "1234567-89"}, 1)
    with pytest.raises(rue.DataError, match="features are numbers, words, datetimes, or None"):
        learner.update({"at": [1]}, 1)


def test_notes_about_columns_are_warnings_in_python():
    """Each says what to type in Python too."""
    rng = np.random.default_rng(0)
    days, words = rng.integers(13, 28, 60), rng.choice(list("abcdefgh"), (60, 6))
    frame = pandas.DataFrame({"day": [f"{d}.02.2026" for d in days], "note": [" ".join(own) for own in words]})
    y = rng.normal(size=60)
    with pytest.warns(UserWarning, match="is taken as") as caught:
        rue.learn(frame, y)
    notes = sorted(str(one.message) for one in caught)
    assert "column day is taken as words, though it holds dates" in notes[0]
    assert "--day-first (in Python day_first=True)" in notes[0]
    assert "column note is taken as text" in notes[1]
    assert "(in Python category=)" in notes[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rue.learn(frame, y, day_first=True, text="note")


def test_race_knows_which_class_is_positive():
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = np.where(X[:, 0] > 0.0, "ham", "spam")
    usual, other = (rue.race(X, y, learners=["ogd"], positive=positive) for positive in (None, "ham"))
    assert usual.entries[0].loss == pytest.approx(other.entries[0].loss)  # the same with signs turned round
    with pytest.raises(rue.DataError, match="eggs"):
        rue.race(X, y, learners=["ogd"], positive="eggs")
    weighted = rue.race(X, y, learners=["ogd"], class_weight={"spam": 3.0})
    assert weighted.entries[0].loss > usual.entries[0].loss


def test_a_series_is_explained_as_the_dict_it_is():
    frame = pandas.DataFrame(bookings()).drop(columns="at")
    run = rue.learn(frame, "bought")
    assert str(rue.explain(run, frame.iloc[4])) == str(rue.explain(run, frame.iloc[4].to_dict()))
    X, y = frame[["size"]].fillna(0.0), np.where(frame["bought"] == "yes", 1, -1)
    assert str(rue.explain(rue.learn(X.to_numpy(), y), X.iloc[1])) == str(
        rue.explain(rue.learn(X.to_numpy(), y), [1.0])
    )


def test_what_is_no_table_is_told_what_is_one():
    with pytest.raises(
        rue.SettingsError, match=r"for files and tables \(a data frame, a list of dicts\), and X is gen"
    ):
        rue.learn((row for row in bookings()), "bought")
    with pytest.raises(rue.SettingsError, match="X is empty"):
        rue.learn([], "bought")


def test_the_column_that_tells_rows_apart_has_no_note(tmp_path, inside):
    """Whatever is in it: dates in another spelling here."""
    table = tmp_path / "t.csv"
    table.write_text("day,x,y\n" + "".join(f"{13 + i % 15}.02.2026,{i % 7},{i % 3}.5\n" for i in range(40)))
    how = ("learn", table, "--target", "y", "--learner", "ogd", "--loss", "square")
    assert "taken as words" in inside(*how).err
    assert "taken as words" not in inside(*how, "--id", "day").err
