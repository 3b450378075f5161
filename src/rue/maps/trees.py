"""Random trees over ranks: the leaf is a feature."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rue.compiled import parameter, values
from rue.errors import SettingsError
from rue.maps.base import Map
from rue.maps.table import combined
from rue.registry import register

__all__ = ["Trees"]

_1, _16, _255 = (np.uint64(i) for i in (1, 16, 255))


@values
class TreeFeatures(NamedTuple):
    """The features of `Trees`, in compiled code."""

    trees: Any
    depth: Any

    def fill(self, table: Any, out: Any, at: Any, mask: Any) -> Any:
        columns, ranks = np.int64(table.counts[2]), table.ranks
        if columns <= 2:  # one column and the prediction need no trees
            return at
        many, part = self.trees, 1.0 / np.float64(columns)
        for tree in range(many):
            out[at + tree] = combined(tree, 5000)
        for _ in range(self.depth):
            # Level by level: a tree's next node must wait for this one, but not for those of other trees.
            for tree in range(many):
                # Which column a node splits, and where, are bits of its own number: trees have no state.
                node = np.uint64(out[at + tree])
                split, right = (node >> _16) & _255, 2
                # The remainder node % columns, without a division: the quotient may be off by 1.
                rest = np.int64(node) - np.int64(np.float64(node) * part) * columns
                rest += columns if rest < 0 else -columns if rest >= columns else 0
                if np.uint64(ranks[rest]) > split:
                    right = 1
                out[at + tree] = combined(node, right)
        for tree in range(many):
            out[at + tree] = _1 + (np.uint64(out[at + tree]) & mask)
        return at + many


@register("map", "trees")
@parameter
class Trees(Map):
    """Random trees over the ranks of numeric columns, each of which makes one feature: the leaf that a row falls into.

    Every node splits a random column at a random rank, drawn by hashing, so a tree has no state and takes no memory;
    what is learnt are the weights of its leaves.

    >>> Trees(trees=8).about()
    '8 random trees'

    Parameters
    ----------
    trees, depth
        How many there are, and how many splits lie between root and leaf.

    docs/theory.md, M1 and M2; random trees that are drawn before the data: Geurts, Ernst and Wehenkel (2006).

    """

    trees: int = 32
    depth: int = 8

    def __post_init__(self) -> None:
        if not 1 <= self.trees <= 256 or not 1 <= self.depth <= 16:
            raise SettingsError("Trees: give 1 to 256 trees of depth 1 to 16.")

    def features(self) -> Any:
        return TreeFeatures(self.trees, self.depth)

    def about(self) -> str:
        return f"{self.trees} random trees"

    def document(self) -> dict[str, Any]:
        return {"map": "trees", "trees": int(self.trees), "depth": int(self.depth)}
