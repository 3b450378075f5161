"""`Numbering`: which place a feature has in a learner's arrays when indices are too large to be places themselves.

Indices go up to 2³², and a stream uses few of them. A learner of wide data gives places to the features that occur, in
the order of their first occurrence, and all its arrays, and those of the certificate, have that many rows. Features
keep their order within a row, so sums have the same terms in the same order, and the same bits, as with an array as
long as the largest index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rue.compiled import inline, kernel
from rue.compiled.intrinsics import fetch

__all__ = ["WIDE", "Numbering", "hashed", "in_use", "spread"]

WIDE = 2**22
"""From how many features on only those that occur have a place in arrays of a number or a few for each feature."""

OUTSIDE = 2**32 - 1
"""Stands for an index beyond the columns of its matrix: no array has such a place."""

_0, _1, _13, _16, _32 = (np.uint64(i) for i in (0, 1, 13, 16, 32))
_LOW = np.uint64(2**32 - 1)
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_AHEAD = np.uint64(24)
"""How far ahead a slot is fetched: about as many indices as are looked up while memory answers."""


@inline
def hashed(key: Any) -> Any:
    """32 bits, each of which depends on all bits of the key (the last steps of MurmurHash3); nothing overflows."""
    key ^= key >> _16
    key = key * _FIRST_FACTOR & _LOW
    key ^= key >> _13
    key = key * _SECOND_FACTOR & _LOW
    return key ^ key >> _16


@kernel
def _number(slots: Any, keys: Any, known: Any, indices: Any, out: Any, base: Any, width: Any, begin: Any) -> Any:
    """Write the places of indices from `begin` on, numbering new ones as long as `keys` has room for them.

    Returns where it stopped and how many are known then. A slot holds an index and, in its lower half, the index's
    number from 1 on; 0 is an empty slot. With no `keys` nothing is added, and an unknown index has place `base`.
    """
    mask, n, room, adding = np.uint64(slots.size) - _1, np.uint64(indices.size), np.uint64(keys.size), keys.size > 0
    for i in range(np.uint64(begin), n):
        if i + _AHEAD < n:
            fetch(slots, hashed(np.uint64(indices[i + _AHEAD])) & mask)
        key = np.uint64(indices[i])
        if key >= width:
            out[i] = OUTSIDE
        elif key < base:
            out[i] = key
        else:
            at = hashed(key) & mask
            while slots[at] != _0 and slots[at] >> _32 != key:
                at = at + _1 & mask
            if slots[at] == _0 and adding:
                if known == room:
                    return i, known
                keys[known] = key
                known += _1
                slots[at] = key << _32 | known
            out[i] = base + (slots[at] & _LOW)
    return n, known


@kernel
def _forget(slots: Any, keys: Any, count: Any) -> None:
    """Empty the slots of the keys from `count` on, the last first, so that no search ends at a gap too early."""
    mask = np.uint64(slots.size) - _1
    for i in range(keys.size - 1, count - 1, -1):
        key = np.uint64(keys[i])
        at = hashed(key) & mask
        while slots[at] >> _32 != key or slots[at] == _0:
            at = at + _1 & mask
        slots[at] = _0


class Numbering:
    """Features below `base` have their own index as their place; then comes a place for whatever has none, which stays
    empty; then one place after the other for each feature as it first occurs.
    """

    def __init__(self, base: int = 0, features: Any = ()) -> None:
        self.base = base
        self.known = 0
        """How many features from `base` on have a place."""
        self._keys = np.empty(64, dtype=np.uint32)
        self._slots = np.zeros(256, dtype=np.uint64)
        features = np.asarray(features, dtype=np.uint32)
        if features.size:
            self.places_of(features, adding=True)

    @property
    def size(self) -> int:
        """How many places there are."""
        return self.base + 1 + self.known

    def places_of(self, indices: Any, adding: bool = False, width: int = 2**32) -> Any:
        """The places of features; one never seen gets a new place or, without `adding`, the empty one.

        An index that is not below `width` gets `OUTSIDE`.
        """
        indices, out = np.ascontiguousarray(indices, dtype=np.uint32), np.empty(indices.size, dtype=np.uint32)
        at, keys, ends = 0, self._keys if adding else self._keys[:0], (np.uint64(self.base), np.uint64(width))
        while at < indices.size:
            at, known = map(int, _number(self._slots, keys, np.uint64(self.known), indices, out, *ends, at))
            self.known = known
            if at < indices.size:
                self._grow()
                keys = self._keys
        return out

    def _grow(self) -> None:
        """Twice as much room; at most half of the slots are ever in use."""
        known = self._keys[: self.known]
        self._keys = np.empty(2 * self._keys.size, dtype=np.uint32)
        self._slots, self.known = np.zeros(4 * self._keys.size, dtype=np.uint64), 0
        out, ends = np.empty(known.size, dtype=np.uint32), (np.uint64(self.base), np.uint64(2**32))
        self.known = int(_number(self._slots, self._keys, np.uint64(0), known, out, *ends, 0)[1])

    def forget_from(self, known: int) -> None:
        """Only the first `known` features keep their places."""
        if known < self.known:
            _forget(self._slots, self._keys[: self.known], known)
            self.known = known

    def features(self) -> Any:
        """The index of the feature at each place; −1 at the empty one."""
        features = np.empty(self.size, dtype=np.int64)
        features[: self.base], features[self.base] = np.arange(self.base), -1
        features[self.base + 1 :] = self._keys[: self.known]
        return features

    def coordinates(self, intercept: bool) -> Any:
        """The coordinate at each place of a point, which begins with the intercept if there is one; −1 at the empty."""
        features = self.features()
        if not intercept:
            return features
        return np.concatenate([[0], np.where(features < 0, -1, features + 1)])

    def __getstate__(self) -> tuple[int, Any]:
        return self.base, self._keys[: self.known].copy()

    def __setstate__(self, state: tuple[int, Any]) -> None:
        self.__init__(*state)  # type: ignore[misc]


def in_use(array: Any, coordinates: Any = None) -> tuple[Any, Any]:
    """The coordinates whose rows in an array are not all 0, in order, and these rows.

    `coordinates` are those of the rows, −1 for one that belongs to none; without them a row's place is its coordinate.
    """
    if not array.size:
        return np.empty(0, dtype=np.int64), array[:0]
    bits = array.view(np.uint32 if array.itemsize == 4 else np.uint64)  # so that −0.0 counts
    used = np.flatnonzero((bits != 0).reshape(array.shape[0], -1).any(axis=1))
    if coordinates is None:
        return used, array[used]
    theirs = coordinates[used]
    order = np.argsort(theirs, kind="stable")
    order = order[theirs[order] >= 0]
    return theirs[order], array[used[order]]


def spread(array: Any, coordinates: Any, size: int) -> Any:
    """The rows of an array, which belong to these coordinates, in an array of all `size` coordinates."""
    coordinates = coordinates[: len(array)]
    out = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    out[coordinates[coordinates >= 0]] = array[: coordinates.size][coordinates >= 0]
    return out
