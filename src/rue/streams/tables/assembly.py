"""Kernels that turn the columns of a table into sparse rows.

Columns are brought, some thousand rows at a time, into one array of numbers that fits into the processor's cache; a bit
mask for each row says which of them are not 0. Rows are then written by going through the bits that are set.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import kernel, values
from rue.compiled.intrinsics import lowest_bit, number_at, whole_at

__all__ = ["NOTHING", "Rows", "assemble", "first_of_each", "hash_texts", "look_over"]

NOTHING = np.uint32(2**32 - 1)
"""The slot of a hashed column that says nothing in this row."""

# In Numba an unsigned and a signed whole number add up to a float, so every constant is unsigned.
_U = np.uint64
_LOW = _U(2**32 - 1)
_0, _1, _3, _4, _6, _8, _63 = (_U(i) for i in (0, 1, 3, 4, 6, 8, 63))
_5, _13, _15, _16, _17, _19 = (_U(i) for i in (5, 13, 15, 16, 17, 19))
# The constants of MurmurHash3 (Appleby), which Vowpal Wabbit hashes with too.
_C1, _C2, _ADD, _F1, _F2 = (_U(i) for i in (0xCC9E2D51, 0x1B873593, 0xE6546B64, 0x85EBCA6B, 0xC2B2AE35))


@values
class Murmur(NamedTuple):
    """MurmurHash3-32 of text that comes in parts: what has been mixed in, and the bytes that wait for a fourth."""

    h: Any
    waiting: Any
    length: Any

    def more(self, data: Any, lo: Any, hi: Any) -> Any:
        """With data[lo:hi] appended."""
        h, waiting, length = self.h, self.waiting, self.length
        for i in range(lo, hi):
            waiting |= _U(data[i]) << (_8 * (length & _3))
            length += _1
            if length & _3 == _0:
                k = (waiting * _C1) & _LOW
                k = ((k << _15) | (k >> _17)) & _LOW
                h ^= (k * _C2) & _LOW
                h = ((h << _13) | (h >> _19)) & _LOW
                h = (h * _5 + _ADD) & _LOW
                waiting = _0
        return Murmur(h, waiting, length)

    def end(self) -> Any:
        k = (self.waiting * _C1) & _LOW
        k = ((k << _15) | (k >> _17)) & _LOW
        h = (self.h ^ ((k * _C2) & _LOW)) ^ self.length
        h = ((h ^ (h >> _16)) * _F1) & _LOW
        h = ((h ^ (h >> _13)) * _F2) & _LOW
        return h ^ (h >> _16)


@kernel
def hash_texts(prefix: Any, offsets: Any, data: Any, base: Any, mask: Any, out: Any) -> None:
    """The slots base + (hash & mask) of prefix + data[offsets[i]:offsets[i + 1]], with seed 0."""
    begun = Murmur(_0, _0, _0).more(prefix, _0, _U(prefix.size))
    for i in range(out.size):
        out[i] = base + (begun.more(data, _U(offsets[i]), _U(offsets[i + 1])).end() & mask)


@values
class Rows(NamedTuple):
    """The sparse rows being written."""

    indptr: Any
    indices: Any
    values: Any

    def enter(self, slot: Any, first: Any, end: Any) -> Any:
        """Put a slot of value 1 in its place among those from `first` to `end`; equal ones add up. The new end."""
        at = end
        while at > first and self.indices[at - _1] >= slot:
            at -= _1
        if at < end and self.indices[at] == slot:
            self.values[at] += 1.0
            return end
        k = end
        while k > at:
            self.indices[k], self.values[k] = self.indices[k - _1], self.values[k - _1]
            k -= _1
        self.indices[at], self.values[at] = slot, 1.0
        return end + _1


@kernel
def look_over(addresses: Any, whole: Any, begin: Any, many: Any, numbers: Any, filled: Any, sound: Any) -> None:
    """Bring `many` rows from `begin` on of columns of 64-bit numbers, whole or not, into `numbers`, a line a column.

    Bit j % 64 of `filled[j // 64, i]` then says whether number j of row i is not 0, and `sound[i]` is 0 if all of them
    are finite. Column by column, so that it is a few vector instructions.
    """
    for group in range(filled.shape[0]):
        bits = filled[group]
        for i in range(many):
            bits[i] = _0
    for i in range(many):
        sound[i] = 0.0
    for j in range(numbers.shape[0]):
        bits, column, bit, address = filled[j >> 6], numbers[j], _1 << _U(j & 63), addresses[j]
        if whole[j]:
            for i in range(many):
                column[i] = float(whole_at(address, begin + i))
        else:
            for i in range(many):
                column[i] = number_at(address, begin + i)
            for i in range(many):
                # x·0 is 0 for a finite x and NaN for any other: no branch, so that it is vector code.
                sound[i] += column[i] * 0.0
        for i in range(many):
            bits[i] |= bit if column[i] != 0.0 else _0


@kernel
def assemble(
    numbers: Any,
    filled: Any,
    sound: Any,
    begin: Any,
    stop: Any,
    absent: Any,
    slots: Any,
    good: Any,
    culprit: Any,
    gaps: Any,
    rows: Any,
    count: Any,
) -> Any:
    """Write the good ones of the rows begin:stop after `count` others; how many there are then, and whether a number is
    missing in one of them. `gaps[i]` grows by the numbers missing in row i.

    `numbers[j, i]` is feature j of row begin + i: 0 is left out, NaN becomes the indicator at slot `absent[j]`, and an
    infinity takes the row out, with its column in `culprit`; `filled` and `sound` are what `look_over` found. The
    `slots[h, i]` are slots of value 1 or NOTHING. There must be room for one feature more than there can be.
    """
    end, missing = _U(rows.indptr[count]), False
    for i in range(begin, stop):
        if not good[i]:
            continue
        row, start, infinite, odd = i - begin, end, -1, sound[i - begin] != 0.0
        for group in range(filled.shape[0]):
            left, before = filled[group, row], _U(group) << _6
            while left != _0:
                j = before + lowest_bit(left)
                # Takes the lowest bit away: only the numbers that are not 0 are gone through.
                left &= left - _1
                x = numbers[j, row]
                rows.indices[end], rows.values[end] = j, x
                if odd and math.isinf(x):
                    infinite = int(j)
                # Written in any case; for NaN the place is used again. A branch would be guessed wrong where values
                # are missing at random.
                end += _U(not (odd and math.isnan(x)))
        if infinite >= 0:
            good[i], culprit[i], end = False, infinite, start
            continue
        first = end
        if odd:
            for column in range(absent.size):
                if math.isnan(numbers[column, row]):
                    end = rows.enter(absent[column], first, end)
                    gaps[i] += 1
                    missing = True
        for h in range(slots.shape[0]):
            if slots[h, i] != NOTHING:
                end = rows.enter(slots[h, i], first, end)
        count += 1
        rows.indptr[count] = end
    return count, missing


@kernel
def first_of_each(slots: Any, good: Any, seen: Any, table: Any, out: Any) -> Any:
    """The first good row of each slot that occurs and has no bit in `seen`, into `out`; how many.

    `table` is filled with NOTHING, 2^b long.
    """
    mask, count = _U(table.size - 1), 0
    for i in range(good.size):
        if good[i] and slots[i] != NOTHING:
            k = _U(slots[i])
            if k >> _6 < _U(seen.size) and seen[k >> _6] >> (k & _63) & _1 != _0:
                continue
            k &= mask
            while table[k] != NOTHING and table[k] != slots[i]:
                k = (k + _1) & mask
            if table[k] == NOTHING:
                table[k] = slots[i]
                out[count] = i
                count += 1
    return count
