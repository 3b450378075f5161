"""A linear model as an SQL script: a table of weights, and a view that predicts; for SQLite and DuckDB.

Words are hashed in SQL, byte by byte, so that the view says what `rue predict` says for words that never came too. Both
systems lack what the other calls exclusive or, and SQLite turns products beyond 2⁶³ into floats: a xor b is written
(a | b) − (a & b), and products modulo 2³² are made of halves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from rue.errors import SettingsError
from rue.exports.standalone import WEEKDAYS, murmur3

__all__ = ["script"]

ROWS_AT_ONCE = 500
"""So many weights an INSERT has."""
_HALF = re.compile("[\ud800-\udfff]")


def script(document: dict[str, Any], table: str) -> str:
    """The script for a document of `rue.exports.document`; `table` is what the view reads."""
    _require_expressible(document)
    given = document["input"]
    named = list(_own_names(given))
    lines = [
        f"-- A model that rue {document['rue']} exported, for SQLite (3.35 or later) and DuckDB.",
        f"-- {document['formula']}",
        *_words(given, table),
        "CREATE TABLE rue_weights (feature BIGINT PRIMARY KEY, name VARCHAR, weight DOUBLE NOT NULL);",
        *_inserts(document, named),
        "CREATE VIEW rue_features AS",
        *_features(given, table),
        "CREATE VIEW rue_scores AS",
        f"SELECT id, {_clipped(document)} AS score FROM (",
        f"  SELECT f.id, {_number(document['intercept'])} + sum(f.value * coalesce(w.weight, 0.0)) AS linear",
        "  FROM rue_features AS f LEFT JOIN rue_weights AS w ON w.feature = f.feature GROUP BY f.id",
        ") AS sums;",
        "CREATE VIEW rue_predictions AS",
        f"SELECT id, score{_meaning(document)} FROM rue_scores;",
    ]
    return "\n".join(lines) + "\n"


def _require_expressible(document: dict[str, Any]) -> None:
    kind, plan = document["input"]["kind"], document["input"].get("plan", ())
    if document["stages"]:
        raise SettingsError(
            "export: stages over bins, pairs and trees cannot be written in SQL: export to python or json, or learn a "
            "linear model (--linear)."
        )
    if kind == "vw":
        raise SettingsError("export: Vowpal Wabbit's text cannot be read in SQL: export to python or json.")
    for name, column in plan:
        if column == "text":
            raise SettingsError(
                f"export: the words of a text such as {name!r} cannot be told apart in SQL as rue does it: export to "
                "python or json, or leave the column out (--drop)."
            )
        if column in ("time", "duration"):
            raise SettingsError(
                f"export: the column {name!r} holds a {column}, which databases write in different ways: export to "
                "python or json, or leave the column out (--drop)."
            )
    for binned in document["input"].get("bins", ()):
        raise SettingsError(
            f"export: the column {binned['column']!r} is put into bins, which SQL does not write yet: export to "
            "python or json, or learn without --bins."
        )
    for names in document["input"].get("crosses", ()):
        if any(dict(plan)[name] != "category" for name in names):
            raise SettingsError(
                f"export: {' × '.join(names)} crosses numbers, which databases write in different ways: export to "
                "python or json."
            )
    if kind == "table" and document["input"]["version"] == 1 and any(c in ("timestamp", "date") for _, c in plan):
        raise SettingsError("export: the model reads dates as older versions did: export to python or json.")


def _words(given: dict[str, Any], table: str) -> list[str]:
    """What the reader of the script should know about the table."""
    called = _quoted(" ".join(table.split()))  # a line end would end the comment
    if given["kind"] == "table":
        return [
            f"-- It reads the columns of the table {called}; id is the number of a row there (rowid).",
            "-- Numbers that are missing are NULL. Dates are dates, timestamps, or text such as 2026-12-31 18:30:00, "
            "in UTC.",
        ]
    what = "name (text)" if given["kind"] == "names" else "number, counted from 0"
    return [
        f"-- It reads the table {called}, which has a row for each feature of an example that is not 0:",
        f"-- id of the example, feature (its {what}), value. Of an example without a row nothing is said.",
    ]


def _own_names(given: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """The features that have names."""
    if given["kind"] == "table":
        yield from enumerate(given["own"])
    elif given["kind"] == "names":
        yield from ((j, name) for name, j in given["places"].items())
    elif given["names"]:
        yield from enumerate(given["names"])


def _inserts(document: dict[str, Any], named: list[tuple[int, str]]) -> Iterator[str]:
    """The rows of the table of weights; of features with names those too that weigh nothing."""
    names, weights = dict(named), {int(j): weight for j, weight in document["weights"].items()}
    by_name = document["input"]["kind"] == "names"
    rows = [
        f"({j}, {'NULL' if names.get(j) is None else _text(names[j])}, {_number(weights.get(j, 0.0))})"
        for j in sorted(weights.keys() | (names.keys() if by_name else set()))
    ]
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        yield f"INSERT INTO rue_weights VALUES {', '.join(rows[begin : begin + ROWS_AT_ONCE])};"


def _features(given: dict[str, Any], table: str) -> list[str]:
    """The view of the features of every example: id, feature, value."""
    source = _quoted(table)
    if given["kind"] == "names":
        return [
            f"SELECT e.id, n.feature, e.value FROM {source} AS e JOIN rue_weights AS n ON n.name = e.feature",
            f"UNION ALL SELECT DISTINCT id, -1, 0.0 FROM {source};",
        ]
    if given["kind"] != "table":
        return [
            f"SELECT id, feature, value FROM {source}",
            f"UNION ALL SELECT DISTINCT id, -1, 0.0 FROM {source};",
        ]
    known = list(_known_features(given, source))
    hashed = [(name, _quoted(name)) for name, kind in given["plan"] if kind == "category"]
    parts = [f"SELECT rowid AS id, -1 AS feature, 0.0 AS value FROM {source}", *known]
    if not hashed:
        return ["\nUNION ALL ".join(parts) + ";"]
    texts = [(name, f"coalesce(CAST({column} AS VARCHAR), '')") for name, column in hashed]
    for names in given["crosses"]:
        texts.append(("×".join(names), " || '×' || ".join(dict(texts)[name] for name in names)))
    cells = "\n  UNION ALL ".join(
        f"SELECT rowid AS id, {_text(name + '=')} || {text} AS word FROM {source}" for name, text in texts
    )
    parts.append("SELECT c.id, h.feature, 1.0 FROM rue_cells AS c JOIN rue_hashed AS h ON h.word = c.word")
    return [
        *_hashing(cells, len(given["own"]), 2 ** given["bits"] - 1),
        "\nUNION ALL ".join(parts) + ";",
    ]


def _known_features(given: dict[str, Any], source: str) -> Iterator[str]:
    """The parts of the view that need no hash: numbers, dates, and what is missing."""
    own, starts = given["own"], dict(given["starts"])

    def slot(name: str, text: str) -> int:
        return len(own) + int(murmur3(f"{name}={text}".encode()) & (2 ** given["bits"] - 1))

    for name, kind in given["plan"]:
        column = _quoted(name)
        if kind == "category":
            continue
        yield f"SELECT rowid, {slot(name, '')}, 1.0 FROM {source} WHERE {column} IS NULL"
        there = f"FROM {source} WHERE {column} IS NOT NULL"
        if kind in ("number", "boolean"):
            yield f"SELECT rowid, {own.index(name)}, CAST({column} AS DOUBLE) {there}"
            continue
        moment = f"replace(CAST({column} AS VARCHAR), 'T', ' ')"
        days = _days(moment)
        clock = f"CASE WHEN length({moment}) >= 16 THEN {_seconds(moment)} ELSE 0.0 END"
        yield f"SELECT rowid, {own.index(name)}, {days} - {starts.get(name, 0)} + ({clock}) / 86400.0 {there}"
        of_year = own.index(f"{name}.day_of_year")
        yield f"SELECT rowid, {of_year}, {days} - ({_days(moment, 'january')}) + 1.0 {there}"
        for hour in range(24):
            at = f"length({moment}) >= 16 AND {_part(moment, 12, 2)} = {hour} AND {clock} > 0"
            yield f"SELECT rowid, {slot(f'{name}.hour', str(hour))}, 1.0 {there} AND {at}"
        for day, weekday in enumerate(WEEKDAYS):
            at = f"({days} + 3 + 7000000) % 7 = {day}"
            yield f"SELECT rowid, {slot(f'{name}.weekday', weekday)}, 1.0 {there} AND {at}"


def _part(moment: str, begin: int, many: int) -> str:
    return f"CAST(substr({moment}, {begin}, {many}) AS BIGINT)"


def _seconds(moment: str) -> str:
    """Since midnight, of text such as 2026-12-31 18:30:00.25."""
    seconds = f"CASE WHEN length({moment}) > 17 THEN CAST(substr({moment}, 18, 9) AS DOUBLE) ELSE 0.0 END"
    return f"{_part(moment, 12, 2)} * 3600.0 + {_part(moment, 15, 2)} * 60.0 + {seconds}"


def _days(moment: str, of: str = "") -> str:
    """Days since 1970-01-01 of text such as 2026-12-31, or of January 1 of its year.

    Years begin in March, so that the leap day comes last; whole numbers are divided as (a − a % b) / b, which both
    systems do without rounding.
    """
    year, month, day = _part(moment, 1, 4), _part(moment, 6, 2), _part(moment, 9, 2)
    if of == "january":
        month, day = "1", "1"
    early = f"(CASE WHEN {month} <= 2 THEN 1 ELSE 0 END)"
    y, m = f"({year} - {early})", f"({month} - 3 + 12 * {early})"

    def divided(a: str, b: int) -> str:
        return f"(({a}) - (({a}) % {b})) / {b}"

    leap = f"{divided(y, 4)} - {divided(y, 100)} + {divided(y, 400)}"
    return f"(365 * {y} + {leap} + {divided(f'153 * {m} + 2', 5)} + {day} - 1 - 719468)"


# MurmurHash3-32.


def _xor(a: str, b: str) -> str:
    return f"((({a}) | ({b})) - (({a}) & ({b})))"


def _times(a: str, factor: int) -> str:
    """a·factor modulo 2³²."""
    low, high = factor & 0xFFFF, factor >> 16
    return f"((({a}) * {low} + (((({a}) * {high}) & 65535) << 16)) & 4294967295)"


def _rotated(a: str, bits: int) -> str:
    return f"(((({a}) << {bits}) | (({a}) >> {32 - bits})) & 4294967295)"


def _hashing(cells: str, base: int, mask: int) -> list[str]:
    """The common tables that make features of words, four bytes at a time."""
    digits = "'0123456789ABCDEF'"

    def byte(k: int) -> str:
        at = f"8 * n.block + {2 * k + 1}"
        return (
            f"CASE WHEN {at} > length(w.bytes) THEN 0 ELSE (instr({digits}, substr(w.bytes, {at}, 1)) - 1) * 16 "
            f"+ instr({digits}, substr(w.bytes, {at} + 1, 1)) - 1 END"
        )

    word = " + ".join(f"({byte(k)}) * {256**k}" for k in range(4))
    mixed = _xor("s.h", "b.k")
    return [
        "WITH RECURSIVE rue_cells(id, word) AS (",
        f"  {cells}",
        "), rue_words(word, bytes) AS (",
        "  SELECT DISTINCT word, hex(word) FROM rue_cells",
        "), rue_numbers(block) AS (",
        "  SELECT CAST(0 AS BIGINT) UNION ALL",
        "  SELECT block + 1 FROM rue_numbers WHERE 8 * (block + 1) < (SELECT max(length(bytes)) FROM rue_words)",
        "), rue_blocks(word, block, k, whole) AS (",
        f"  SELECT word, block, {_times('k', 0x1B873593)}, whole FROM (",
        f"    SELECT word, block, {_rotated('k', 15)} AS k, whole FROM (",
        f"      SELECT word, block, {_times('k', 0xCC9E2D51)} AS k, whole FROM (",
        f"        SELECT w.word, n.block, CAST({word} AS BIGINT) AS k, 8 * n.block + 8 <= length(w.bytes) AS whole",
        "        FROM rue_words AS w JOIN rue_numbers AS n ON 8 * n.block < length(w.bytes)",
        "  ) AS a) AS b) AS c",
        "), rue_steps(word, block, h) AS (",
        "  SELECT word, CAST(0 AS BIGINT), CAST(0 AS BIGINT) FROM rue_words UNION ALL",
        f"  SELECT s.word, s.block + 1, CASE WHEN NOT b.whole THEN {mixed}",
        f"    ELSE ({_times(_rotated(mixed, 13), 5)} + 3864292196) & 4294967295 END",
        "  FROM rue_steps AS s JOIN rue_blocks AS b ON b.word = s.word AND b.block = s.block",
        "), rue_ends(word, h) AS (",
        f"  SELECT s.word, {_xor('s.h', 'CAST(length(w.bytes) * 0.5 AS BIGINT)')}",
        "  FROM rue_steps AS s JOIN rue_words AS w ON w.word = s.word",
        "  WHERE 8 * s.block >= length(w.bytes)",
        "), rue_hashed(word, feature) AS (",
        f"  SELECT word, {base} + ({_xor('h', 'h >> 16')} & {mask}) FROM (",
        f"    SELECT word, {_times('h', 0xC2B2AE35)} AS h FROM (",
        f"      SELECT word, {_xor('h', 'h >> 13')} AS h FROM (",
        f"        SELECT word, {_times('h', 0x85EBCA6B)} AS h FROM (",
        f"          SELECT word, {_xor('h', 'h >> 16')} AS h FROM rue_ends",
        "  ) AS a) AS b) AS c) AS d",
        ")",
    ]


# What a score means.


def _clipped(document: dict[str, Any]) -> str:
    ends = document["range"]
    if ends is None:
        return "linear"
    low, high = map(_number, ends)
    return f"CASE WHEN linear < {low} THEN {low} WHEN linear > {high} THEN {high} ELSE linear END"


def _meaning(document: dict[str, Any]) -> str:
    """The columns after the score."""
    if document["task"] == "regress":
        return (
            ", exp(CASE WHEN score > 700.0 THEN 700.0 ELSE score END) AS value"
            if (document["link"] == "log-mean")
            else ", score AS value"
        )
    positive, negative = (_literal(document[sign]) for sign in ("positive", "negative"))
    label = f", CASE WHEN score > 0.0 THEN {positive} ELSE {negative} END AS label"
    if document["link"] != "log-odds":
        return label
    bounded = "CASE WHEN score > 700.0 THEN 700.0 WHEN score < -700.0 THEN -700.0 ELSE score END"
    return f"{label}, 1.0 / (1.0 + exp(-({bounded}))) AS probability"


def _number(value: float) -> str:
    """With an exponent, so that both systems read a double."""
    assert math.isfinite(value)
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return _text(value)
    return str(int(value)) if isinstance(value, bool) or float(value).is_integer() else _number(value)


def _text(value: str) -> str:
    _require_text(value)
    return "'" + value.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    _require_text(name)
    return '"' + name.replace('"', '""') + '"'


def _require_text(name: str) -> None:
    """Refuse a name that no script can hold."""
    odd = "a zero byte" if "\0" in name else "half a character (a lone surrogate)" if _HALF.search(name) else ""
    if odd:
        raise SettingsError(f"export: a name holds {odd}, which SQL cannot have: export to python or json.")
