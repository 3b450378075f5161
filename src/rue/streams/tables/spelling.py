"""Dates and numbers written in text.

Dates by ISO 8601, and others that can be read in one way only, year first (2026/12/31) or with the name of the month
(Dec 31, 2026); day first, month first and decimal commas when asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "BLANKS",
    "MISSING",
    "NEARLY",
    "ORDERS",
    "date_patterns",
    "is_text",
    "looks",
    "parse_dates",
    "parse_numbers",
    "written_as",
]

MISSING = [
    *("", "?", "\\N", "None", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "NULL", "null"),
    *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
]
"""What stands for a missing number or date."""
BLANKS = [" " * spaces for spaces in range(1, 17)]
"""Cells of nothing but spaces, which are missing numbers too."""
ORDERS = ("", "year-first", "day-first", "month-first")
"""How dates are written: "" is ISO 8601 only, 2026-12-31; all others read 2026/12/31 and Dec 31, 2026 as well."""
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED = (
    r"(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_WEEKDAY = r"(?i:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,? +)?"
_TH = "(?:st|nd|rd|th)?"
_CLOCK_AFTER = r"(?:,?[ T]+(?P<time>\d{1,2}:.*))?$"
_ONE_WAY = (
    r"^(?P<year>\d{4})[./-](?P<month>\d{1,2})[./-](?P<day>\d{1,2})" + _CLOCK_AFTER,
    rf"^{_WEEKDAY}(?P<month>{_NAMED})\.? +(?P<day>\d{{1,2}}){_TH},? +(?P<year>\d{{4}})" + _CLOCK_AFTER,
    rf"^{_WEEKDAY}(?P<day>\d{{1,2}}){_TH}[. -]+(?P<month>{_NAMED})\.?,?[ -]+(?P<year>\d{{4}})" + _CLOCK_AFTER,
)
"""Dates that can be read in one way only."""
_TWO_WAYS = {
    "day-first": r"^(?P<day>\d{1,2})[./-](?P<month>\d{1,2})[./-](?P<year>\d{4}|\d{2})" + _CLOCK_AFTER,
    "month-first": r"^(?P<month>\d{1,2})[./-](?P<day>\d{1,2})[./-](?P<year>\d{4}|\d{2})" + _CLOCK_AFTER,
}
"""Dates whose order only a person knows."""
_COMMA = r"[-+]?(?:\d+|\d{1,3}(?:[. '’]\d{3})+)?(?:,\d+)?(?:[eE][-+]?\d+)?"
_CLOCK = r"^\d{1,2}:\d\d.*$"
NEARLY = 0.9
"""The share of values that must look alike for a column to look so."""
_PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_DRESSED = re.compile(r"[$€£¥]? ?[-+]?(?:\d+|\d{1,3}(?:[., '’]\d{3})+)(?:[.,]\d+)? ?(?:%|[$€£¥]|EUR|USD|GBP)?")
_DATES = tuple(map(re.compile, (r"\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d\d)(?: .*)?", *_ONE_WAY)))


def looks(some: Sequence[str]) -> tuple[str, str]:
    """What nearly all of some values look like, and one of them; "" if like words."""
    for kind, patterns in (("numbers", (_PLAIN,)), ("dates", _DATES), ("amounts", (_PLAIN, _DRESSED))):
        alike = [text for text in some if any(pattern.fullmatch(text.strip()) for pattern in patterns)]
        if alike and len(alike) >= NEARLY * len(some):
            return kind, next((text for text in alike if not _PLAIN.fullmatch(text.strip())), alike[0])
    return "", ""


def is_text(type_: Any) -> bool:
    """Whether an Arrow type is text; a dictionary of texts is not, because its values are meant as categories."""
    import pyarrow as pa

    return any(test(type_) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def written_as(values: Sequence[str], decimal: str = ".", order: str = "") -> str:
    """The kind of column that all of some texts can be read as: date, timestamp, time, number; "" if none.

    >>> written_as(["2026-01-31", "2026-02-01 10:15"]), written_as(["10:15", "0:30"]), written_as(["red"])
    ('timestamp', 'time', '')
    >>> written_as(["31.01.2026", "1.2.26"]), written_as(["31.01.2026", "1.2.26"], order="day-first")
    ('', 'date')
    >>> written_as(["2026/1/31", "Feb 1, 2026"]), written_as(["2026/1/31", "Feb 1, 2026"], order="year-first")
    ('', 'date')
    >>> written_as(["3,5", "1.200,25"]), written_as(["3,5", "1.200,25"], decimal=",")
    ('', 'number')
    """
    import pyarrow as pa

    texts = pa.array([value for value in values if value.strip() not in MISSING], pa.string())
    if not len(texts):
        return ""
    if decimal == "," and parse_numbers(texts)[1] is None:
        return "number"
    if not any(letter.isdigit() for letter in texts[0].as_py()):
        return ""  # which no date is; to try costs more
    for kind in ("date", "timestamp", "time"):
        if parse_dates(texts, kind, order)[1] is None:
            return kind
    return ""


def parse_dates(texts: Any, kind: str, order: str = "") -> tuple[Any, Any]:
    """Texts as an Arrow array of dates, timestamps (UTC) or times, and a mask of those that are none, or None.

    >>> import pyarrow as pa
    >>> dates, wrong = parse_dates(pa.array(["31.12.2026", "", "32.1.2026", "2027-01-01"]), "date", "day-first")
    >>> dates.to_pylist(), wrong.tolist()
    ([datetime.date(2026, 12, 31), None, None, datetime.date(2027, 1, 1)], [False, False, True, False])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = _present(texts)
    if kind == "time":
        clock = pc.match_substring_regex(texts, _CLOCK)
        texts = pc.if_else(clock, _two_digits(texts), texts)
        return _each(pc.binary_join_element_wise("1970-01-01", texts, " "), _clock_time)
    if order:
        texts = _iso(texts, order)
    if kind == "date":
        return _each(texts, lambda some: some.cast(pa.date32()))
    return _each(texts, _timestamps)


def parse_numbers(texts: Any) -> tuple[Any, Any]:
    """Numbers with a decimal comma, and perhaps points, spaces or apostrophes between thousands, as `parse_dates`.

    >>> import pyarrow as pa
    >>> parse_numbers(pa.array(["1.234,5", "-3", "NA"]))[0].to_pylist()
    [1234.5, -3.0, None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = _present(texts)
    plain = pc.replace_substring(pc.replace_substring_regex(texts, "[. '’]", ""), ",", ".")
    plain = pc.if_else(pc.match_substring_regex(texts, f"^{_COMMA}$"), plain, "no number")
    plain = pc.if_else(texts.is_null(), pa.scalar(None, pa.string()), plain)
    return _each(plain, lambda some: some.cast(pa.float64()))


def _present(texts: Any) -> Any:
    """Texts without space around them, null where they stand for something missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if texts.type != pa.string():
        texts = texts.cast(pa.string())
    texts = pc.ascii_trim_whitespace(texts)
    return pc.if_else(pc.is_in(texts, pa.array(MISSING)), pa.scalar(None, pa.string()), texts)


def date_patterns(order: str) -> tuple[str, ...]:
    """What dates look like that are written otherwise than by ISO 8601: none, unless there is an order.

    >>> len(date_patterns("")), len(date_patterns("year-first")), len(date_patterns("day-first"))
    (0, 3, 4)
    """
    return (*_ONE_WAY, *((_TWO_WAYS[order],) if order in _TWO_WAYS else ())) if order else ()


def _iso(texts: Any, order: str) -> Any:
    """Dates in another spelling as ISO 8601 writes them; other texts as they are."""
    for pattern in date_patterns(order):
        texts = _rewritten(texts, pattern)
    return texts


def _rewritten(texts: Any, pattern: str) -> Any:
    """The dates that a pattern matches, as ISO 8601 writes them; other texts as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = pc.extract_regex(texts, pattern)
    if parts.null_count == len(parts):
        return texts
    day, month, year, time = (pc.struct_field(parts, name) for name in ("day", "month", "year", "time"))
    number = pc.index_in(pc.utf8_slice_codeunits(pc.ascii_lower(month), 0, 3), pa.array(MONTHS))
    month = pc.coalesce(pc.add(number, 1).cast(pa.string()), month)
    short = pc.equal(pc.utf8_length(year), 2)
    century = pc.if_else(pc.less(year, "69"), "20", "19")  # as POSIX reads years of two digits
    year = pc.if_else(short, pc.binary_join_element_wise(century, year, ""), year)
    date = pc.binary_join_element_wise(year, pc.utf8_lpad(month, 2, "0"), pc.utf8_lpad(day, 2, "0"), "-")
    whole = pc.binary_join_element_wise(date, _two_digits(time), " ")
    whole = pc.if_else(pc.equal(time, ""), date, whole)
    return pc.if_else(parts.is_null(), texts, whole.cast(pa.string()))


def _two_digits(times: Any) -> Any:
    """Times of day whose hour has two digits: 09:30 for 9:30."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(times, "^([0-9]):", "0\\1:")


def _timestamps(texts: Any) -> Any:
    """With or without a zone; with one, the moment in UTC."""
    import pyarrow as pa

    for type_ in (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns")):
        try:
            return texts.cast(type_)
        except pa.ArrowInvalid as error:
            refused = error
    raise refused


def _clock_time(texts: Any) -> Any:
    import pyarrow as pa

    return texts.cast(pa.timestamp("us")).cast(pa.time64("us"))


def _each(texts: Any, cast: Callable[[Any], Any]) -> tuple[Any, Any]:
    """All texts cast, null where that fails, and a mask of these, or None: found by halving, as they are few."""
    import numpy as np
    import pyarrow as pa

    try:
        return cast(texts), None
    except pa.ArrowInvalid:
        pass
    done, todo, wrong = [], [(0, len(texts))], np.zeros(len(texts), dtype=np.bool_)
    while todo:
        lo, hi = todo.pop()
        try:
            done.append(cast(texts.slice(lo, hi - lo)))
        except pa.ArrowInvalid:
            if hi - lo > 1:
                todo += [((lo + hi) // 2, hi), (lo, (lo + hi) // 2)]
            else:
                wrong[lo] = True
                done.append(cast(pa.nulls(1, pa.string())))
    if len({part.type for part in done}) > 1:  # some with a zone or nanoseconds, some without
        done = [part.cast(pa.timestamp("us"), safe=False) for part in done]
    return pa.concat_arrays(done), wrong
