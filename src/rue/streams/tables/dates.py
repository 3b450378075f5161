"""Dates and times of a table's column, and the parts of them that become features.

A `Moments` holds a column whatever its Arrow type was: whole days since 1970-01-01 (UTC) and the part of a day since
midnight, as whole numbers, so that dates, timestamps of any unit and text with the same dates give the same bits.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.streams.tables.spelling import is_text, parse_dates

__all__ = ["CALENDAR", "DATES", "DAYS", "HOURS", "Moments", "read_moments"]

CALENDAR = ("timestamp", "date")
"""Kinds of columns with a day: they mean the same, because midnight sharp has no hour."""
DATES = (*CALENDAR, "time", "duration")
"""Kinds of columns that this module reads."""
DAYS = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")
"""Of the week, from that of 1970-01-01."""
HOURS = tuple(map(str, range(24)))
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclasses.dataclass(frozen=True)
class Moments:
    """A column of dates, timestamps, times of day or durations; a missing one counts as 1970-01-01.

    >>> import datetime
    >>> import pyarrow as pa
    >>> moments = Moments.of(pa.array([datetime.datetime(2026, 3, 1, 18), None]))
    >>> moments.hour.tolist(), moments.day_of_year.tolist(), moments.days_since(20511).tolist()
    ([18, 0], [60, 1], [2.75, -20511.0])
    >>> [DAYS[code] for code in moments.weekday], moments.missing.tolist()
    (['Sunday', 'Thursday'], [False, True])
    """

    missing: Any
    """Which are missing; None if none is."""
    day: Any
    """Whole days since 1970-01-01."""
    part: Any
    """Units since midnight."""
    units: int
    """Units in a day."""

    @classmethod
    def of(cls, column: Any) -> Moments:
        """From an Arrow array of dates, timestamps, times or durations."""
        import pyarrow as pa

        if pa.types.is_null(column.type):
            column = column.cast(pa.date32())
        if pa.types.is_date32(column.type):
            unit, column = 1, column.cast(pa.int32())
        elif pa.types.is_date64(column.type):
            unit, column = _UNITS["ms"] * 86_400, column.cast(pa.int64())
        else:
            unit = _UNITS[column.type.unit] * 86_400
            column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
        missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        value = column.fill_null(0).to_numpy().astype(np.int64)
        day = value // unit
        scale = max(1, 24 // unit)  # a date has days for units: give it hours
        return cls(missing, day, (value - day * unit) * scale, unit * scale)

    def days_since(self, start: int) -> Any:
        """Days, with their fraction, since the day `start`, which is counted from 1970-01-01."""
        return (self.day - start) + self.part / self.units

    @property
    def hour(self) -> Any:
        """From 0 to 23."""
        return self.part // (self.units // 24)

    @property
    def midnight(self) -> Any:
        """Which have no time of day, or 0:00 sharp."""
        return self.part == 0

    @property
    def weekday(self) -> Any:
        """Places in `DAYS`."""
        return self.day % 7

    @property
    def day_of_year(self) -> Any:
        """From 1 to 366."""
        dates = self.day.astype("datetime64[D]")
        return (dates - dates.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64) + 1


def read_moments(name: str, kind: str, column: Any, found: str, order: str) -> tuple[Moments, Any]:
    """The moments of a column of this kind, and which of its texts are none (None if all are dates).

    `found` is the kind of the column's Arrow type; `order` is how dates in text are written (see `parse_dates`).
    """
    import pyarrow as pa

    wrong = None
    if is_text(column.type):
        column, wrong = parse_dates(column, kind, order)
    elif found != kind and not {found, kind} <= set(CALENDAR) and not pa.types.is_null(column.type):
        raise DataError(f"the column {name!r} held a {kind} at the beginning, but holds {column.type} here.")
    return Moments.of(column), wrong
