"""Files of predictions that any model may have written: a CSV with a column `prediction`, or one number a line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rue.errors import DataError

__all__ = ["EACH", "read_predictions"]

EACH = ', one for each row of the data, "" for a row without one'
"""Ends a message about how many predictions there are."""


def read_predictions(path: str, otherwise: str = "one number a row is wanted") -> Any:
    r"""The numbers in a file, NaN where there is none.

    They are in the column `prediction`, else in the last of at most two columns, or the first word of each line if
    columns have no names. `otherwise` says why a file with more columns and no such name is of no use.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write('prediction\n0.5\n""\n')
    ...     file.flush()
    ...     read_predictions(file.name)
    array([0.5, nan])
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"there is no file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not text: give one number a line.") from None
    numbers = []
    for number, word in _words(path, text, otherwise):
        try:
            numbers.append(float(word) if word else np.nan)
        except ValueError:
            raise DataError(f"{path}, line {number}: {word[:40]!r} is not a number.") from None
    return np.array(numbers, dtype=np.float64)


def _words(path: str, text: str, otherwise: str) -> Iterator[tuple[int, str]]:
    """Line and text of each prediction."""
    first = next(iter(text.split("\n", 1)[0].split()), "")
    if first.strip('"') == "" or _is_number(first):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield number, line.split()[0].strip('"')
        return
    rows = csv.reader(io.StringIO(text, newline=""))
    head = [name.strip().lower() for name in next(rows)]
    if "prediction" not in head and len(head) > 2:
        shown = ", ".join(head[:6]) + ", …" * (len(head) > 6)
        raise DataError(f"{path} has no column 'prediction', but {shown}: {otherwise}.")
    place = head.index("prediction") if "prediction" in head else len(head) - 1
    for row in rows:
        if row and len(row) <= place:
            raise DataError(f"{path}, line {rows.line_num}: there is no {head[place]!r}.")
        if row:
            yield rows.line_num, row[place].strip()


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
