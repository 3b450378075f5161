"""What is counted about intervals: the share of labels inside, in groups and in windows of time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rue.compiled import kernel
from rue.streams import Block
from rue.streams.numbering import Numbering

__all__ = ["ENOUGH", "Accounts", "Group", "Window"]

MOST_WINDOWS = 32
MOST_FEATURES = 65_536
"""Of so many features groups are counted, those that occur first."""
ENOUGH = 100
"""How many labels a group must have to be reported."""


class Window(NamedTuple):
    """What was observed in some consecutive rounds, both ends included; rounds are labelled examples, from 1 on."""

    first: int
    last: int
    covered: float
    mean_width: float


class Group(NamedTuple):
    """What was observed where a 0/1 feature (one of a category's too) is 1."""

    feature: int
    examples: int
    covered: float


@kernel
def _enter(table: Any, sizes: Any, hits: Any, widths: Any) -> None:
    """Add rounds to windows of equal length: when there would be 33, neighbours are joined.

    `sizes` has the length of a window, the number of whole ones, and how many rounds the last one has.
    """
    for i in range(hits.shape[0]):
        last = sizes[1]
        for k in range(hits.shape[1]):
            table[last, 2 * k] += hits[i, k]
            table[last, 2 * k + 1] += widths[i, k]
        sizes[2] += 1
        if sizes[2] == sizes[0]:
            sizes[1] += 1
            sizes[2] = 0
        if sizes[1] == table.shape[0]:
            half = table.shape[0] // 2
            for j in range(half):
                for c in range(table.shape[1]):
                    table[j, c] = table[2 * j, c] + table[2 * j + 1, c]
            for j in range(half, table.shape[0]):
                for c in range(table.shape[1]):
                    table[j, c] = 0.0
            sizes[0] *= 2
            sizes[1] = half


def _of_dense(X: Any, hits: Any) -> tuple[Any, list[Any]]:
    """The features, and of each: rows where it is 1, those where it is neither 0 nor 1, and the hits of the first."""
    ones = (X == 1.0).astype(np.float64)
    others = np.count_nonzero((X != 0.0) & (X != 1.0), axis=0)
    return np.arange(X.shape[1]), [ones.sum(axis=0), others, *(hits.T.astype(np.float64) @ ones)]


class Accounts:
    """Counts of labels inside intervals of several levels, by group and by window."""

    def __init__(self, levels: int) -> None:
        self.table = np.zeros((MOST_WINDOWS, 2 * levels))
        """For each window and level: labels inside, and the sum of the widths."""
        self.sizes = np.array([1, 0, 0])
        self.numbering = Numbering()
        """Which row of `groups` a feature has."""
        self.groups = np.zeros((0, 2 + levels), dtype=np.int64)
        """For each feature: how often it was 1, how often neither 0 nor 1, and the labels inside where it was 1."""

    def enter(self, block: Block | None, hits: Any, widths: Any) -> None:
        """Add labelled rounds: whether each label was inside, and how wide the interval was, a column for each level.

        `block` has their features, None if there are none.
        """
        if not len(hits):
            return
        _enter(self.table, self.sizes, hits.astype(np.float64), widths)
        if block is None:
            return
        if not block.sparse:
            features, counts = _of_dense(block.X[:, :MOST_FEATURES], hits)
            places = self._rows_of(features)
            self.groups[places] += np.column_stack(counts).astype(np.int64)
            return
        rows: Any = block.rows(False)
        places = self._rows_of(rows.given)
        known = places >= 0
        each = np.repeat(np.arange(len(block)), np.diff(rows.indptr))[known]
        places, values = places[known], rows.values[known]
        ones, others, many = values == 1.0, (values != 0.0) & (values != 1.0), len(self.groups)
        counts = [np.bincount(places[mask], minlength=many) for mask in (ones, others)]
        counts += [np.bincount(places[ones], hit[each[ones]], minlength=many) for hit in hits.T]
        self.groups += np.column_stack(counts).astype(np.int64)

    def _rows_of(self, features: Any) -> Any:
        """The row of each feature in `groups`; new ones get one, −1 those that come when there are enough."""
        rows = self.numbering.places_of(features, adding=True).astype(np.int64) - 1  # place 0 is that of no feature
        self.numbering.forget_from(MOST_FEATURES)
        if self.numbering.known > len(self.groups):
            more = np.zeros((self.numbering.known - len(self.groups), self.groups.shape[1]), dtype=np.int64)
            self.groups = np.vstack([self.groups, more])
        return np.where(rows < MOST_FEATURES, rows, -1)

    @property
    def features(self) -> Any:
        """The features that have occurred, in that order, the first 65,536."""
        return self.numbering.features()[1:]

    def windows(self, level: int = 0) -> list[Window]:
        """At most 32 windows of equal length, the last one perhaps shorter."""
        length, whole, rest = self.sizes.tolist()
        found = []
        for j in range(whole + (rest > 0)):
            n = length if j < whole else rest
            hits, width = self.table[j, 2 * level : 2 * level + 2].tolist()
            found.append(Window(j * length + 1, j * length + n, hits / n, width / n))
        return found

    def observed(self, level: int = 0, enough: int = ENOUGH) -> list[Group]:
        """The 0/1 features that were 1 often enough, those with the lowest share first."""
        many, other, hits = self.groups[:, 0], self.groups[:, 1], self.groups[:, 2 + level]
        binary = np.flatnonzero((other == 0) & (many >= max(1, enough)))
        features = self.features
        found = [Group(int(features[j]), int(many[j]), float(hits[j] / many[j])) for j in binary]
        return sorted(found, key=lambda group: (group.covered, group.feature))

    def stored(self) -> dict[str, Any]:
        """The arrays that a model file has."""
        return {"table": self.table, "sizes": self.sizes, "features": self.features, "groups": self.groups}

    def require_sane(self, rounds: float) -> None:
        """ValueError if the counts, as a file has them, cannot be those of so many rounds."""
        length, whole, rest = self.sizes.tolist()
        n, groups = length * whole + rest, self.groups
        sizes = length > 0 and length & (length - 1) == 0 and 0 <= whole < MOST_WINDOWS and 0 <= rest < length
        shares = (self.table[:, ::2] >= 0.0).all() and (self.table[:, ::2] <= length).all()
        counts = bool((groups >= 0).all()) and bool((groups[:, 2:] <= groups[:, :1]).all())
        if not (sizes and n == rounds and shares and not np.isnan(self.table).any() and counts):
            raise ValueError("the counts of its intervals are impossible")
        if np.unique(self.features).size < len(groups) or (groups.size and int(groups[:, :2].max()) > rounds):
            raise ValueError("the groups of its intervals are impossible")
