"""Which maps a learner has: `"auto"`, names, or objects; and what a map of a user's own must keep."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from rue.errors import CheckFailed, SettingsError, shown
from rue.maps.base import FEATURES, MOST_FEATURES, Map, chained
from rue.maps.table import ColumnTable, open_table
from rue.registry import make, own_classes
from rue.rows import DenseRow

__all__ = ["require_maps", "require_possible"]

AUTO = "pairs+trees"
"""What `"auto"` stands for."""
MOST = 6
"""The most maps of one learner."""
ROWS = 150
"""How many rows a map is tried on: the first 64 are only looked at."""


def require_maps(maps: Any) -> tuple[Map, ...]:
    """The maps of a learner, from `"auto"`, names such as `"pairs+trees:8"`, or a list of maps and names.

    >>> require_maps("auto")
    (Pairs(crosses=True), Trees(trees=32, depth=8))
    """
    if isinstance(maps, str):
        maps = (AUTO if maps == "auto" else maps).split("+")
    if isinstance(maps, Map):
        maps = (maps,)
    if not isinstance(maps, Iterable):
        raise SettingsError(f"maps: {shown(maps)} is no map: give a list of maps, or names such as 'pairs+trees'.")
    found = tuple(make("map", each) for each in maps)
    for each in found:
        if not isinstance(each, Map):
            raise SettingsError(f"maps: {shown(each)} is no map: give rue.Pairs(), rue.Trees() or one of your own.")
        if type(each) not in own_classes("map").values():
            _require_possible_once(each)
    if not 1 <= len(found) <= MOST:
        raise SettingsError(f"maps: give 1 to {MOST} maps, not {len(found)}; maps=None learns without.")
    return found


@functools.lru_cache(maxsize=64)
def _require_possible_once(map_: Map) -> None:
    try:
        require_possible(map_)
    except CheckFailed as error:
        raise SettingsError(str(error)) from error


def require_possible(map_: Map) -> None:
    """Refuse a map that writes features out of bounds, makes other ones when asked again, or changes the table.

    Compiled code does not look where it writes, so it is tried in plain Python first: on a column that is ranked, one
    that is numbered by its values, and a mark.
    """
    rng, width = np.random.default_rng(0), 3
    rows = np.column_stack([rng.normal(size=ROWS), rng.integers(0, 5, ROWS), rng.random(ROWS) < 0.4])
    table, lines = open_table(width + 1), np.arange(1, width + 1, dtype=np.uint32)
    for x in rows:
        row, q = DenseRow(x, np.uint64(0), np.uint64(width), np.uint64(0)), 0.5 * x[0]
        table.look(row, lines, q)
        before = _readings(table)
        first, again = _features_of(map_, table), _features_of(map_, table)
        if first != again:
            raise CheckFailed(f"{map_!r}: fill makes other features of a row when it is asked again.")
        if _readings(table) != before:
            raise CheckFailed(f"{map_!r}: fill changes the table, which the other maps read too.")
        table.see(row, lines, q, 0.1)


def _readings(table: ColumnTable) -> list[bytes]:
    """What the table says of a row, but for its scratch."""
    return [array.tobytes() for name, array in table._asdict().items() if name != "scratch"]


def _features_of(map_: Map, table: ColumnTable) -> list[int]:
    """The features of the row that the table looks at, checked."""
    out, mask = np.zeros(FEATURES, dtype=np.uint32), np.uint64(255)
    try:
        end = int(chained((map_,)).fill(0, table, out, 1, mask))
    except Exception as error:  # whatever a user's code raises
        why = f"{type(error).__name__}: {error}"
        raise CheckFailed(f"{map_!r}: fill cannot be called on a row of three columns ({why}).") from error
    if not 1 <= end <= MOST_FEATURES or out[0] or out[end:].any():
        raise CheckFailed(
            f"{map_!r}: fill must write from the place it is given, at most {MOST_FEATURES} features, and return the "
            "place after them."
        )
    features: list[int] = out[1:end].tolist()
    if not all(1 <= feature <= int(mask) + 1 for feature in features):
        raise CheckFailed(f"{map_!r}: each feature must be 1 + (hash & mask), from 1 to mask + 1.")
    return features
