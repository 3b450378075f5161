"""MurmurHash3-32 (Appleby 2011), the hash that Vowpal Wabbit and rue turn words into slots with."""

from __future__ import annotations

from typing import Any

import numpy as np

from rue._jit import kernel, values
from rue.streams.numbers import Text, as_text

__all__ = ["hash_texts", "murmur3"]

_1, _2, _3, _4, _8, _16, _24, _32 = (np.uint64(i) for i in (1, 2, 3, 4, 8, 16, 24, 32))
_10, _13, _15, _17, _19 = (np.uint64(i) for i in (10, 13, 15, 17, 19))
_5 = np.uint64(5)
_LOW = np.uint64(0xFFFFFFFF)
_C1, _C2, _ADDED = np.uint64(0xCC9E2D51), np.uint64(0x1B873593), np.uint64(0xE6546B64)
_F1, _F2 = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)


def murmur(text: Any, start: Any, stop: Any, seed: Any) -> Any:
    """MurmurHash3-32 of the bytes from start to stop."""
    h, k = seed & _LOW, start
    while k + _4 <= stop:
        word = text.four(k) * _C1 & _LOW
        h ^= (word << _15 | word >> _17) * _C2 & _LOW
        h = (h << _13 | h >> _19) & _LOW
        h = h * _5 + _ADDED & _LOW
        k += _4
    if k < stop:
        word = np.uint64(text.data[k])
        if k + _1 < stop:
            word |= np.uint64(text.data[k + _1]) << _8
        if k + _2 < stop:
            word |= np.uint64(text.data[k + _2]) << _16
        word = word * _C1 & _LOW
        h ^= (word << _15 | word >> _17) * _C2 & _LOW
    h ^= stop - start & _LOW
    h ^= h >> _16
    h = h * _F1 & _LOW
    h ^= h >> _13
    h = h * _F2 & _LOW
    return h ^ h >> _16


Text.murmur = murmur  # type: ignore[attr-defined]  # one word more for kernels, kept apart from the reading of numbers
values(Text)


@kernel
def _hash_each(text: Any, offsets: Any, seed: Any, hashes: Any) -> None:
    for i in range(hashes.size):
        hashes[i] = text.murmur(np.uint64(offsets[i]), np.uint64(offsets[i + 1]), seed)


def hash_texts(data: Any, offsets: Any, seed: int = 0) -> Any:
    """The hashes of many texts, `data[offsets[i]:offsets[i + 1]]` (as Arrow keeps strings), as uint32."""
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    hashes = np.empty(max(offsets.size - 1, 0), dtype=np.uint32)
    text = as_text(data)
    if hashes.size and not (offsets[0] >= 0 and (np.diff(offsets) >= 0).all() and offsets[-1] <= text.data.size):
        raise ValueError("the offsets lead outside the data")
    _hash_each(text, offsets, np.uint64(seed), hashes)
    return hashes


def murmur3(data: bytes, seed: int = 0) -> int:
    """MurmurHash3-32 of some bytes.

    >>> murmur3(b"hello"), murmur3(b"hello", seed=1)
    (613153351, 3142237357)
    """
    return int(hash_texts(data, [0, len(data)], seed)[0])
