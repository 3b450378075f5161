"""Points, and rules, of many types as the leaves of a binary tree, which Numba compiles type by type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rue.compiled import noinline, parameter, values
from rue.learners.points import RESIDUAL

__all__ = ["Branch", "BranchRule", "Leaf", "LeafRule", "tree"]


@values
class Leaf(NamedTuple):
    """One member's point."""

    point: Any

    def size(self) -> Any:
        return self.point.size()

    @noinline
    def predict_all(self, row: Any, p: Any, k: Any) -> Any:
        """Write the predictions from place k on; the place after them."""
        p[k] = self.point.dot(row)
        return k + 1

    def residual(self) -> Any:
        """How far from its set the point may be."""
        return self.point.memory[RESIDUAL]

    def leaves(self) -> list[Any]:
        """Its point, in a list."""
        return [self.point]

    def changed(self, change: Callable[[Any], Any]) -> Leaf:
        """The same tree of changed points."""
        return Leaf(change(self.point))


@values
class Branch(NamedTuple):
    """The points of several members."""

    first: Any
    second: Any

    def size(self) -> Any:
        """For how many coordinates every point below has room."""
        return min(self.first.size(), self.second.size())

    @noinline
    def predict_all(self, row: Any, p: Any, k: Any) -> Any:
        """Write the predictions of all points below from place k on; the place after the last."""
        return self.second.predict_all(row, p, self.first.predict_all(row, p, k))

    def residual(self) -> Any:
        """The worst of the points below."""
        return max(self.first.residual(), self.second.residual())

    def leaves(self) -> list[Any]:
        """The points below, in order."""
        return [*self.first.leaves(), *self.second.leaves()]

    def changed(self, change: Callable[[Any], Any]) -> Branch:
        """The same tree with every point changed."""
        return Branch(self.first.changed(change), self.second.changed(change))


@parameter
class LeafRule:
    """One member's rule."""

    rule: Any

    @noinline
    def learn_all(self, leaf: Any, row: Any, y: Any, weight: Any) -> Any:
        """Let it learn; what it refuses leaves no trace in it. Whether it has learnt."""
        return self.rule.learn(leaf.point, row, y, weight)[1]

    def leaves(self) -> list[Any]:
        return [self.rule]


@parameter
class BranchRule:
    """The rules of several members."""

    first: Any
    second: Any

    @noinline
    def learn_all(self, branch: Any, row: Any, y: Any, weight: Any) -> Any:
        """Whether any of them has learnt."""
        first = self.first.learn_all(branch.first, row, y, weight)
        second = self.second.learn_all(branch.second, row, y, weight)
        return first or second

    def leaves(self) -> list[Any]:
        return [*self.first.leaves(), *self.second.leaves()]


def tree(leaf: Any, branch: Any, parts: Sequence[Any]) -> Any:
    """The parts as leaves, branches as even as can be."""
    if len(parts) == 1:
        return leaf(parts[0])
    half = (len(parts) + 1) // 2
    return branch(tree(leaf, branch, parts[:half]), tree(leaf, branch, parts[half:]))
