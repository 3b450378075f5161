"""Rows given as dicts, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rue.errors import DataError

__all__ = ["are_dicts", "table_of"]


def are_dicts(X: Any) -> bool:
    """Whether it is a list of dicts, a row each."""
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(x, Mapping) for x in X)


def table_of(rows: Sequence[Mapping[Any, Any]]) -> Any:
    """Dicts as an Arrow table: None, NaN and what only other dicts have are missing values.

    >>> table_of([{"size": 2.5, "colour": "red"}, {"size": None}]).to_pylist()
    [{'size': 2.5, 'colour': 'red'}, {'size': None, 'colour': None}]
    """
    import pyarrow as pa

    from rue.streams.tables.batches import first_line

    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        try:
            columns[str(name)] = pa.array([row.get(name) for row in rows], from_pandas=True)
        except (pa.ArrowException, OverflowError, UnicodeError) as error:
            raise DataError(f"the column {name!r} cannot be read: {first_line(error)}.") from error
    return pa.table(columns)
