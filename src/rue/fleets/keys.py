"""`Keys`: what the keys of a fleet are called, and which number each has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rue.errors import DataError, shown
from rue.streams.tables.encoding import key_texts

__all__ = ["Keys", "as_texts", "text_of"]


class Keys:
    """Keys as text, numbered in the order in which they first occur; an empty text is a missing key.

    >>> keys = Keys()
    >>> keys.of(["north", "", "south", "north"], adding=True)
    array([ 0, -1,  1,  0])
    >>> keys.of(["south", "east"])
    array([ 1, -2])
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = list(names)
        self.numbers = {name: number for number, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def of(self, texts: Any, adding: bool = False) -> Any:
        """The number of each key: −1 where it is missing, and −2 where it is not known, unless `adding`."""
        import pyarrow as pa

        encoded = (texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())).dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        numbers = np.empty(len(distinct) + 1, dtype=np.int64)
        numbers[-1] = -1
        for i, name in enumerate(distinct):
            number = -1 if not name else self.numbers.get(name, -2)
            if number == -2 and adding:
                number = len(self.names)
                self.numbers[name] = number
                self.names.append(name)
            numbers[i] = number
        return numbers[encoded.indices.fill_null(len(distinct)).to_numpy()]


def as_texts(by: Any) -> Any:
    """A column of keys as an Arrow array of texts, "" where they are missing: numbers as 7, dates as 2026-12-31.

    >>> as_texts([1.0, None, 2.5]).to_pylist()
    ['1', '', '2.5']
    """
    import pyarrow as pa

    if isinstance(by, np.ndarray) and by.dtype.kind == "U":
        by = by.tolist()
    try:
        column = pa.array(by, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
        raise DataError(
            f"by= must be a column of numbers, words or dates, a key for each row, not {shown(by)}."
        ) from error
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return key_texts(column)


def text_of(key: Any) -> str:
    """One key as text.

    >>> text_of(7), text_of("north")
    ('7', 'north')
    """
    if isinstance(key, str):
        return key
    text: str = as_texts([key])[0].as_py()
    return text
