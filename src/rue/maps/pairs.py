"""Bins of every column, and crosses of pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rue.compiled import parameter, values
from rue.maps.base import Map
from rue.maps.table import NAME, RANKED, TELLING, combined
from rue.registry import register

__all__ = ["Pairs"]

FINE = 64
"""With more columns than this, bins have one level instead of three."""
MANY = 30
"""With more tokens than this, only the columns that tell most are crossed, and no marks."""

_1 = np.uint64(1)


@values
class PairFeatures(NamedTuple):
    """The features of `Pairs`, in compiled code."""

    crosses: Any
    """Whether pairs are crossed."""

    def fill(self, table: Any, out: Any, at: Any, mask: Any) -> Any:
        active = int(table.counts[2])
        for c in range(active):
            at = self.fill_bins(table, c, active, out, at, mask)
        return self.fill_crosses(table, out, at, mask) if self.crosses else at

    def fill_bins(self, table: Any, c: Any, active: Any, out: Any, at: Any, mask: Any) -> Any:
        """The bins of a column: of 4, 16 and 64 levels, or its value."""
        name = table.columns[c, NAME]
        if table.columns[c, RANKED] > 0.0:
            rank = table.ranks[c]
            out[at] = _1 + (combined(name, 16 + (rank >> 4)) & mask)
            at += 1
            if active <= FINE + 1:
                out[at] = _1 + (combined(name, 4 + (rank >> 6)) & mask)
                out[at + 1] = _1 + (combined(name, 64 + (rank >> 2)) & mask)
                at += 2
        elif table.places[c] >= 0:
            out[at] = _1 + (combined(name, 2000 + table.places[c]) & mask)
            at += 1
        return at

    def fill_crosses(self, table: Any, out: Any, at: Any, mask: Any) -> Any:
        """Every pair of tokens; with many, pairs of the columns that tell most."""
        tokens, many = table.tokens, table.counts[1]
        if many > MANY:
            return self.fill_telling(table, out, at, mask)
        for i in range(many):
            for j in range(i + 1, many):  # no branch here, so that several are hashed at once
                out[at + j - i - 1] = _1 + (combined(tokens[i], tokens[j]) & mask)
            at += many - i - 1
        return at

    def fill_telling(self, table: Any, out: Any, at: Any, mask: Any) -> Any:
        """The pairs of the tokens that tell much."""
        tokens, chosen, many = table.tokens, table.scratch, 0
        for i in range(table.counts[1]):
            if self.tells(table, i):
                chosen[many] = i
                many += 1
        for i in range(many):
            for j in range(i + 1, many):
                out[at] = _1 + (combined(tokens[int(chosen[i])], tokens[int(chosen[j])]) & mask)
                at += 1
        return at

    def tells(self, table: Any, i: Any) -> Any:
        """Whether a token is of a column that tells much."""
        owner = table.owners[i]
        return owner >= 0 and table.columns[owner, TELLING] > 0.0


@register("map", "pairs")
@parameter
class Pairs(Map):
    """Bins of every numeric column by rank, and crosses of all pairs of columns.

    A column becomes features that say in which of 4, 16 and 64 equally filled bins of its past it lies (or which of at
    most 48 values it has), and every pair of columns one that says which of 8 bins, value or category both have.
    Hashed to 2¹⁸ features. With more than 30 columns in a row, the 16 that tell most about the label are crossed.

    >>> Pairs().about()
    'bins and pairs of columns'

    Parameters
    ----------
    crosses
        False for bins alone: a sum of curves, one for each column.

    docs/theory.md, M1 and M2.

    """

    crosses: bool = True

    def features(self) -> Any:
        return PairFeatures(self.crosses)

    def about(self) -> str:
        return "bins and pairs of columns" if self.crosses else "bins of columns"

    def document(self) -> dict[str, Any]:
        return {"map": "pairs", "crosses": bool(self.crosses), "fine": FINE, "many": MANY}
