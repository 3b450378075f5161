"""The features of maps, row by row, for looking at them; learners make them inside their compiled loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rue.maps.base import FEATURES, Map, chained
from rue.maps.table import open_table
from rue.rows import DenseRow

__all__ = ["map_rows"]


def map_rows(maps: Sequence[Map], X: Any, predictions: Any, bits: int = 18) -> list[list[list[int]]]:
    """The hashed features that each map makes of each row, from the rows before it alone; then the row is seen.

    `predictions` are those of the linear stage, which are a column of their own. Plain Python: for a few hundred rows.

    >>> from rue import Pairs
    >>> features = map_rows([Pairs()], [[0.1 * (t % 7), t % 2] for t in range(100)], [0.0] * 100)
    >>> features[10], len(features[99][0])  # the first 64 rows are only looked at
    ([[]], 5)
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    width, mask = X.shape[1], np.uint64(2**bits - 1)
    table, chain, lines = open_table(width + 1), chained(tuple(maps)), np.arange(1, width + 1, dtype=np.uint32)
    out, found = np.zeros(FEATURES, dtype=np.uint32), []
    for x, q in zip(X, np.asarray(predictions, dtype=np.float64).tolist(), strict=True):
        row = DenseRow(x, np.uint64(0), np.uint64(width), np.uint64(0))
        table.look(row, lines, q)
        found.append([out[1 : chain.fill(k, table, out, 1, mask)].tolist() for k in range(len(maps))])
        table.see(row, lines, q, 0.0)
    return found
