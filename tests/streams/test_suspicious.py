"""Notes about columns read as words that look like numbers, amounts or dates."""

import io

import pytest

from tables import open_table

HEAD = "column x is taken as words, though "


def suspicious(values, more=""):
    text = "x,y\n" + "".join(f'"{value}",1\n' for value in values) + more
    return dict(open_table(io.BytesIO(text.encode()), "csv").suspicious_columns())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            ["2,38", "17,5", "0,1", "3", "-4,25"],
            "such as '2,38': read them with --decimal ',' (in Python decimal=','), write them as 1234.5",
        ),
        (["1,234", "12,500", "7", "3,000", "-9,999"], "it holds amounts, such as '1,234': write them as 1234.5"),
        (["$1.50", "$2", "$1,234.00", "$3.10", ""] * 2, "it holds amounts, such as '$1.50'"),
        (["24%", "3 %", "99.5%", "0%", "12%"], "it holds amounts, such as '24%'"),
        (["1.234,50 €", "7,00 €", "12,99 €", "0,10 €", "3,00 €"], "it holds amounts"),
        (
            ["31.12.2026", "1.2.2026", "03.04.26", "30.11.2026", "5.6.2026"],
            "such as '31.12.2026': read them with --day-first (in Python day_first=True), write",
        ),
        (
            ["1/2/2026"] * 5,
            "read them with --day-first (in Python day_first=True), read them with --month-first (in Python "
            "month_first=True), write them as 2026-12-31",
        ),
        (
            ["12/31/2026 10:15"] * 5,
            "such as '12/31/2026 10:15': read them with --month-first (in Python month_first=True), write them as",
        ),
        ([*map(str, range(30)), "hello"], "nearly all of it is numbers, because 'hello' is not a number: mend that"),
    ],
)
def test_words_that_look_like_numbers_or_dates_are_noted(values, words):
    said = suspicious(values)["x"]
    assert said.startswith(HEAD)
    assert words in said


@pytest.mark.parametrize(
    "values",
    [
        ["red", "green", "3", "4", "5"],
        ["1.5", "2", "NA", "3", ""],
        ["2026-12-31"] * 6,
        ["4,5", "x"],
        ["yes", "no"] * 3,
        ["10.0.0.1", "192.168.1.1", "8.8.8.8", "1.1.1.1", "9.9.9.9"],
        ["12-34 B", "A 5", "7", "8", "9"],
        ["Köln", "'12", "1,2,3", "4,5,6", "7,8,9"],
    ],
)
def test_words_numbers_and_dates_as_they_should_be_are_not(values):
    assert "x" not in suspicious(values)


def test_a_word_far_behind_the_first_rows_is_found():
    assert "'oops' is not a number" in suspicious(map(str, range(30_000)), "oops,1\n")["x"]


def test_the_command_says_it_once_on_stderr(tmp_path, inside, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i},5;0{i % 9 + 1}.01.2026;{'ja' if i % 2 else 'nein'}\n" for i in range(20))
    (tmp_path / "t.csv").write_text("preis;tag;kauf\n" + rows)
    said = inside("learn", "t.csv", "--target", "kauf", "--passes", "2").err
    assert said.count("note: t.csv: column preis is taken as words") == 1
    assert said.count("note: t.csv: column tag is taken as words") == 1
    assert "note" not in inside("learn", "t.csv", "--target", "kauf", "--category", "preis", "--drop", "tag").err
    assert "note" not in inside("learn", "t.csv", "--target", "kauf", "-q").err
    assert "note: t.csv: column preis" in inside("learn", "t.csv", "--target", "preis", ok=1).err
