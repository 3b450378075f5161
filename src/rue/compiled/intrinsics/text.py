"""Text and short rows in vector instructions: the ends of names, the hashes of words, and the order of indices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

from rue.compiled.llvm import broadcast, data_pointer, instructions_of, vector_pointer

__all__ = ["BYTES", "HASHED", "QUAD", "WORD_LANES", "count_smaller", "ends_among", "hash_words"]

BYTES = 64
"""How many bytes `ends_among` looks at."""
WORD_LANES = 8
"""How many words, or indices, are worked on at once: arrays of them have room up to a multiple of it."""
QUAD = 16
"""How many bytes of each word are read at once."""
HASHED = 32
"""The bit of a seed that says that the word is hashed already: the lower ones are its slot."""

_ENDS = 58, 124
_BYTE, _WHOLE, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_EIGHT = ir.VectorType(_WHOLE, WORD_LANES)
_C1, _C2, _ADDED, _F1, _F2 = 0xCC9E2D51, 0x1B873593, 0xE6546B64, 0x85EBCA6B, 0xC2B2AE35
_LOW = 2**32 - 1


def ends_among(data: Any, k: Any) -> Any:
    """Which of the BYTES bytes from k on end a name (white space, control characters, colons and bars), as bits."""
    part = data[int(k) : int(k) + BYTES]
    found = np.packbits((part <= 32) | np.isin(part, _ENDS), bitorder="little")
    return np.uint64(int.from_bytes(found.tobytes(), "little"))


@instructions_of(ends_among)
def _ends_among(_: Any, data: Any, k: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text = builder.load(
            vector_pointer(builder, data_pointer(context, builder, signature, args, 0), args[1], BYTES), align=1
        )
        found = builder.icmp_unsigned("<=", text, _all(text.type, 32))
        for letter in _ENDS:
            found = builder.or_(found, builder.icmp_unsigned("==", text, _all(text.type, letter)))
        return builder.bitcast(found, _LONG)

    return numba.types.uint64(data, numba.types.uint64), generate


def hash_words(data: Any, starts: Any, stops: Any, seeds: Any, first: Any, many: Any, mask: Any, slots: Any) -> None:
    """slots[i] = MurmurHash3-32 of data[starts[i]:stops[i]], with seeds[i], & mask, for first ≤ i < many.

    A seed with the bit HASHED is a slot already. There must be QUAD bytes after each word that is hashed, and room for
    WORD_LANES more in each array, holding zeros or what belongs to words like the others.
    """
    for i in range(int(first), int(many)):
        seed = int(seeds[i])
        done = seed >> HASHED & 1
        slots[i] = seed & _LOW if done else _murmur(bytes(data[starts[i] : stops[i]]), seed & _LOW) & int(mask)


def _murmur(word: bytes, seed: int) -> int:
    def scrambled(part: bytes) -> int:
        k = int.from_bytes(part, "little") * _C1 & _LOW
        return (k << 15 | k >> 17) * _C2 & _LOW

    h, whole = seed, len(word) & ~3
    for k in range(0, whole, 4):
        h ^= scrambled(word[k : k + 4])
        h = (h << 13 | h >> 19) * 5 + _ADDED & _LOW
    h ^= scrambled(word[whole:]) ^ len(word)
    h = (h ^ h >> 16) * _F1 & _LOW
    h = (h ^ h >> 13) * _F2 & _LOW
    return h ^ h >> 16


@instructions_of(hash_words)
def _hash_words(
    _: Any, data: Any, starts: Any, stops: Any, seeds: Any, first: Any, many: Any, mask: Any, slots: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text, starts, stops, seeds, slots = (
            data_pointer(context, builder, signature, args, n) for n in (0, 1, 2, 3, 7)
        )
        mask = broadcast(builder, builder.trunc(args[6], _WHOLE), WORD_LANES)
        with _groups(builder, args[5], args[4]) as i:
            start, stop, seed = (
                builder.load(vector_pointer(builder, array, i, WORD_LANES), align=8) for array in (starts, stops, seeds)
            )
            bit = builder.and_(seed, _all(seed.type, 1 << HASHED))
            hashed = builder.icmp_unsigned("!=", bit, _all(seed.type, 0))
            length = builder.select(hashed, _all(_EIGHT, 0), builder.trunc(builder.sub(stop, start), _EIGHT))
            seed = builder.trunc(seed, _EIGHT)
            found = builder.and_(_hash_lanes(builder, text, start, length, seed), mask)
            builder.store(builder.select(hashed, seed, found), vector_pointer(builder, slots, i, WORD_LANES), align=4)
        return context.get_dummy_value()

    long = numba.types.uint64
    return numba.types.void(data, starts, stops, seeds, long, long, long, slots), generate


def _hash_lanes(builder: Any, text: Any, start: Any, length: Any, seed: Any) -> Any:
    """The hashes of a word in each lane, QUAD bytes at a time: most words have no more."""
    h, tail = (cgutils.alloca_once_value(builder, value) for value in (seed, _all(_EIGHT, 0)))
    blocks = builder.lshr(length, _all(_EIGHT, 2))
    longest = _call(builder, "llvm.vector.reduce.umax", _WHOLE, length)
    quads = builder.lshr(builder.add(longest, ir.Constant(_WHOLE, QUAD - 1)), ir.Constant(_WHOLE, 4))
    with cgutils.for_range(builder, quads, intp=_WHOLE) as loop:
        at = broadcast(builder, builder.mul(loop.index, ir.Constant(_WHOLE, QUAD)), WORD_LANES)
        done = builder.icmp_unsigned("<=", length, at)
        begin = builder.add(start, builder.zext(at, start.type))
        begin = builder.select(done, _all(start.type, 0), begin)  # some place that may be read
        for n, word in enumerate(_words(builder, text, begin)):
            block = builder.add(builder.lshr(at, _all(_EIGHT, 2)), _all(_EIGHT, n))
            before = builder.load(h)
            after = builder.xor(before, _scrambled(builder, word))
            after = builder.add(builder.mul(_turned(builder, after, 13), _all(_EIGHT, 5)), _all(_EIGHT, _ADDED))
            builder.store(builder.select(builder.icmp_unsigned("<", block, blocks), after, before), h)
            last = builder.icmp_unsigned("==", block, blocks)
            builder.store(builder.select(last, word, builder.load(tail)), tail)
    rest = builder.shl(builder.and_(length, _all(_EIGHT, 3)), _all(_EIGHT, 3))
    rest = builder.sub(builder.shl(_all(_EIGHT, 1), rest), _all(_EIGHT, 1))
    found = builder.xor(builder.load(h), _scrambled(builder, builder.and_(builder.load(tail), rest)))
    found = builder.xor(found, length)
    for shift, factor in ((16, _F1), (13, _F2)):
        found = builder.mul(builder.xor(found, builder.lshr(found, _all(_EIGHT, shift))), _all(_EIGHT, factor))
    return builder.xor(found, builder.lshr(found, _all(_EIGHT, 16)))


def _words(builder: Any, text: Any, begin: Any) -> list[Any]:
    """The 16 bytes at each of WORD_LANES places, as four vectors: the first 32 bits of every word, the second, …"""
    four = ir.VectorType(_WHOLE, 4)
    read = []
    for lane in range(WORD_LANES):
        place = builder.extract_element(begin, ir.Constant(_WHOLE, lane))
        read.append(builder.load(builder.bitcast(builder.gep(text, [place]), four.as_pointer()), align=1))
    halves = [_shuffled(builder, read[n], read[n + 4], range(8)) for n in range(4)]
    low = [_shuffled(builder, halves[n], halves[n + 1], (0, 8, 1, 9, 4, 12, 5, 13)) for n in (0, 2)]
    high = [_shuffled(builder, halves[n], halves[n + 1], (2, 10, 3, 11, 6, 14, 7, 15)) for n in (0, 2)]
    first, second = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)
    return [_shuffled(builder, pair[0], pair[1], order) for pair in (low, high) for order in (first, second)]


def _scrambled(builder: Any, word: Any) -> Any:
    return builder.mul(_turned(builder, builder.mul(word, _all(_EIGHT, _C1)), 15), _all(_EIGHT, _C2))


def _turned(builder: Any, x: Any, by: int) -> Any:
    return _call(builder, "llvm.fshl", x.type, x, x, _all(x.type, by))


def count_smaller(slots: Any, many: Any, ranks: Any) -> None:
    """ranks[i] = where slots[i] goes when the first `many` are sorted, equal ones as they came.

    Both arrays have room for WORD_LANES more, which are written to.
    """
    ranks[np.argsort(slots[: int(many)], kind="stable")] = np.arange(int(many))


@instructions_of(count_smaller)
def _count_smaller(_: Any, slots: Any, many: Any, ranks: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        keys, ranks = (data_pointer(context, builder, signature, args, n) for n in (0, 2))
        builder.store(_all(_EIGHT, _LOW), vector_pointer(builder, keys, args[1], WORD_LANES), align=4)
        with _groups(builder, args[1]) as i:
            own = builder.load(vector_pointer(builder, keys, i, WORD_LANES), align=4)
            # Each comparison adds −1 or 0: those before that are larger, then those after that are smaller.
            count = cgutils.alloca_once_value(builder, broadcast(builder, builder.trunc(i, _WHOLE), WORD_LANES))
            with _groups(builder, i) as j:
                for n in range(WORD_LANES):
                    larger = builder.icmp_unsigned(">", _other(builder, keys, j, n), own)
                    builder.store(builder.add(builder.load(count), builder.sext(larger, _EIGHT)), count)
            for n in range(WORD_LANES):
                other = _other(builder, keys, i, n)
                smaller = builder.icmp_unsigned("<", other, own)
                equal = builder.icmp_unsigned("==", other, own)
                after = ir.Constant(ir.VectorType(ir.IntType(1), WORD_LANES), [lane > n for lane in range(WORD_LANES)])
                smaller = builder.or_(smaller, builder.and_(equal, after))
                builder.store(builder.sub(builder.load(count), builder.sext(smaller, _EIGHT)), count)
            with _groups(builder, args[1], builder.add(i, ir.Constant(_LONG, WORD_LANES))) as j:
                for n in range(WORD_LANES):
                    smaller = builder.icmp_unsigned("<", _other(builder, keys, j, n), own)
                    builder.store(builder.sub(builder.load(count), builder.sext(smaller, _EIGHT)), count)
            builder.store(builder.load(count), vector_pointer(builder, ranks, i, WORD_LANES), align=4)
        return context.get_dummy_value()

    return numba.types.void(slots, numba.types.uint64, ranks), generate


def _other(builder: Any, keys: Any, j: Any, n: int) -> Any:
    return broadcast(
        builder, builder.load(builder.gep(keys, [builder.add(j, ir.Constant(_LONG, n))]), align=4), WORD_LANES
    )


@contextmanager
def _groups(builder: Any, many: Any, first: Any = None) -> Iterator[Any]:
    """A loop over 0, WORD_LANES, 2·WORD_LANES and so on, below `many`."""
    first = ir.Constant(_LONG, 0) if first is None else first
    with cgutils.for_range_slice(builder, first, many, ir.Constant(_LONG, WORD_LANES), intp=_LONG) as (i, _):
        yield i


def _all(kind: Any, x: int) -> Any:
    """A vector of this type with the same number in each lane."""
    return ir.Constant(kind, [x] * kind.count)


def _shuffled(builder: Any, a: Any, b: Any, order: Any) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_WHOLE, WORD_LANES), list(order)))


def _call(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """One of LLVM's own functions of vectors of whole numbers."""
    wanted = ir.FunctionType(result, [arg.type for arg in args])
    kind = args[0].type
    full = f"{name}.v{kind.count}i{kind.element.width}"
    return builder.call(cgutils.get_or_insert_function(builder.module, wanted, full), args)
