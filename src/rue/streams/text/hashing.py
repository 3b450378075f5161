"""MurmurHash3-32 (Appleby 2011), the hash that Vowpal Wabbit and rue turn words into slots with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rue.compiled import kernel, values
from rue.streams.text.numbers import as_text

__all__ = ["Hasher", "hash_texts", "murmur3"]

_1, _2, _3, _4, _5, _12, _13 = (np.uint64(i) for i in (1, 2, 3, 4, 5, 12, 13))
_15, _16, _17, _19, _32 = (np.uint64(i) for i in (15, 16, 17, 19, 32))
_LOW = np.uint64(0xFFFFFFFF)
# The constants of MurmurHash3 (Appleby).
_C1, _C2, _ADDED = np.uint64(0xCC9E2D51), np.uint64(0x1B873593), np.uint64(0xE6546B64)
_F1, _F2 = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)


@values
class Hasher(NamedTuple):
    """A text to hash parts of."""

    text: Any

    def murmur(self, start: Any, stop: Any, seed: Any) -> Any:
        """MurmurHash3-32 of the bytes from start to stop."""
        h, k = seed & _LOW, start
        while k + _12 <= stop:
            h = self.step(h, self.text.eight(k) & _LOW)
            k += _4
        word, blocks = self.text.eight(k), stop - k >> _2  # 0, 1 or 2: all are worked out, so that none is guessed
        one = self.step(h, word & _LOW)
        two = self.step(one, word >> _32)
        h = two if blocks == _2 else one if blocks == _1 else h
        k += blocks << _2
        rest = (_1 << (stop - k << _3)) - _1  # up to three bytes, without a branch that depends on how many
        h ^= self.scrambled(self.text.eight(k) & rest)
        h ^= stop - start & _LOW
        h = (h ^ h >> _16) * _F1 & _LOW
        h = (h ^ h >> _13) * _F2 & _LOW
        return h ^ h >> _16

    def step(self, h: Any, word: Any) -> Any:
        """The hash so far, and four bytes more."""
        h ^= self.scrambled(word)
        h = (h << _13 | h >> _19) & _LOW
        return h * _5 + _ADDED & _LOW

    def scrambled(self, word: Any) -> Any:
        word = word * _C1 & _LOW
        return ((word << _15 | word >> _17) & _LOW) * _C2 & _LOW


@kernel
def _hash_each(hasher: Any, offsets: Any, seed: Any, hashes: Any) -> None:
    for i in range(hashes.size):
        hashes[i] = hasher.murmur(np.uint64(offsets[i]), np.uint64(offsets[i + 1]), seed)


def hash_texts(data: Any, offsets: Any, seed: int = 0) -> Any:
    """The hashes of many texts, `data[offsets[i]:offsets[i + 1]]` (as Arrow keeps strings), as uint32."""
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    hashes = np.empty(max(offsets.size - 1, 0), dtype=np.uint32)
    text = as_text(data)
    if hashes.size and not (offsets[0] >= 0 and (np.diff(offsets) >= 0).all() and offsets[-1] <= text.data.size):
        raise ValueError("the offsets lead outside the data")
    _hash_each(Hasher(text), offsets, np.uint64(seed), hashes)
    return hashes


def murmur3(data: bytes, seed: int = 0) -> int:
    """MurmurHash3-32 of some bytes.

    >>> murmur3(b"hello"), murmur3(b"hello", seed=1)
    (613153351, 3142237357)
    """
    return int(hash_texts(data, [0, len(data)], seed)[0])
