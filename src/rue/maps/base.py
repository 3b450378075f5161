"""What a map is, and several of them in a row."""

from __future__ import annotations

from typing import Any, NamedTuple

from rue.compiled import values

__all__ = ["FEATURES", "MOST_FEATURES", "Features", "Map", "chained"]

FEATURES = 1024
"""Room for the features of a row: 3 bins of 64 columns and 435 pairs, the prediction, and what is prefetched behind."""
MOST_FEATURES = 900
"""How many features a map of your own may make of a row: compiled code does not look whether there is room."""


class Map:
    """Makes features from features; each map is a stage of `rue.Staged`.

    A map of your own is a parameter whose `features()` gives the compiled object that fills in the features of a row,
    with the method of `Features`. It reads the row as a `ColumnTable` (`rue.maps`) has it: tokens and ranks, made from
    the past alone. Registered as a `"map"` it is known by its name as well.

    >>> from rue.learners import Staged
    >>> Staged(maps="pairs+trees:8").algorithm.maps
    (Pairs(crosses=True), Trees(trees=8, depth=8))

    docs/theory.md, section 12.
    """

    def features(self) -> Any:
        """What compiled code calls: an object with the method of `Features`."""
        raise NotImplementedError

    def about(self) -> str:
        """What the stage is called in reports."""
        raise NotImplementedError

    def document(self) -> dict[str, Any] | None:
        """What an exported model says of it, for `rue.exports.standalone`; None if that cannot do what it does."""
        return None


class Features:
    """The method that compiled code calls."""

    def fill(self, table: Any, out: Any, at: Any, mask: Any) -> Any:
        """Write the hashed features of the present row from place `at` on, each 1 + (hash & mask); the place after."""
        raise NotImplementedError


@values
class Chain(NamedTuple):
    """Several maps, the first and the rest, which Numba compiles type by type."""

    first: Any
    rest: Any

    def fill(self, k: Any, table: Any, out: Any, at: Any, mask: Any) -> Any:
        return self.first.fill(table, out, at, mask) if k == 0 else self.rest.fill(k - 1, table, out, at, mask)


@values
class End(NamedTuple):
    """After the last map."""

    nothing: Any
    """Dummy: Numba needs a field."""

    def fill(self, k: Any, table: Any, out: Any, at: Any, mask: Any) -> Any:
        return at


def chained(maps: tuple[Any, ...]) -> Any:
    """The maps' `features`, as one object that is asked for the k-th."""
    chain: Any = End(0)
    for each in reversed(maps):
        chain = Chain(each.features(), chain)
    return chain
