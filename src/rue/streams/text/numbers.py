"""Decimal numbers in text, read to the same bits as Python's `float` reads them, but compiled.

Three ways, the first one that is certain: a short number is a whole number times or through an exact power of ten
(Clinger 1990); nineteen digits are multiplied by 128 bits of the power of five (Lemire 2021; that no case is left over
is Mushtak and Lemire 2023); more digits are compared, as whole numbers of any length, with the point halfway between
the two nearest doubles.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import noinline, values
from rue.compiled.intrinsics import lowest_bit

__all__ = ["Text", "as_text", "powers_of_five"]

_0, _1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(i) for i in range(9))
_9, _10, _13, _19, _31, _32, _56, _63, _64 = (np.uint64(i) for i in (9, 10, 13, 19, 31, 32, 56, 63, 64))
_16, _24, _40, _48 = (np.uint64(i) for i in (16, 24, 40, 48))
_LOW = np.uint64(0xFFFFFFFF)
# Eight bytes of text are worked on as one number of 64 bits, so each constant below is one byte (or a factor)
# repeated or placed for all of them.
_HIGH = np.uint64(0x8080808080808080)
_ZEROS = np.uint64(0x3030303030303030)  # the character 0
_PAST_NINE = np.uint64(0x7676767676767676)  # 0x80 − 10: added to a byte above 9, it reaches the highest bit
# 10·2⁸ + 1, 100·2¹⁶ + 1 and 10000·2³² + 1: a product with one of them adds to each byte (pair, four) ten (a hundred,
# ten thousand) times the one before it.
_PAIRS, _FOURS, _EIGHT = np.uint64(2561), np.uint64(6553601), np.uint64(42949672960001)
_IN_PAIRS, _IN_FOURS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
_53, _52, _511 = np.uint64(1 << 53), np.uint64(1 << 52), np.uint64(511)
_WHOLE_TENS = np.array([10**i for i in range(9)], dtype=np.uint64)
_TENS = np.array([float(10**i) for i in range(23)])
_FIVES = np.array([5**i for i in range(14)], dtype=np.uint64)

SMALLEST, LARGEST = -342, 308
"""Nineteen digits times a smaller power of ten are 0, any digit times a larger one is infinite."""
DIGITS = 800
"""A point halfway between two doubles has at most 767 digits: of those after these it matters only whether any is
not 0."""
LIMBS = 128
"""Room, in 32 bits each, for the whole numbers that are compared: 10^801 has 84."""


@values
class Text(NamedTuple):
    """Bytes to read, and what reading numbers needs; past the end there are newlines."""

    data: Any
    size: Any
    powers: Any
    big: Any

    def at(self, k: Any) -> Any:
        """The byte at k."""
        return self.data[k] if k < self.size else np.uint8(10)

    def after_space(self, k: Any) -> Any:
        """The first byte from k on that is no white space inside a line."""
        c = self.at(k)
        while c == 32 or c == 9 or 11 <= c <= 13:
            k += _1
            c = self.at(k)
        return k

    def stops(self, k: Any) -> Any:
        """Whether a word ends at k: white space, the line's end or a # follow."""
        c = self.at(k)
        return c == 32 or 9 <= c <= 13 or c == 35

    def next_line(self, k: Any) -> Any:
        """Where the line after the one of k starts."""
        while k < self.size and self.data[k] != 10:
            k += _1
        return k + _1

    def eight(self, k: Any) -> Any:
        """Eight bytes as a number, the first one lowest, zeros for those past the end."""
        d = self.data
        if k + _8 <= self.size:
            return (
                np.uint64(d[k])
                | np.uint64(d[k + _1]) << _8
                | np.uint64(d[k + _2]) << _16
                | np.uint64(d[k + _3]) << _24
                | np.uint64(d[k + _4]) << _32
                | np.uint64(d[k + _5]) << _40
                | np.uint64(d[k + _6]) << _48
                | np.uint64(d[k + _7]) << _56
            )
        return self.ending(k)

    @noinline
    def ending(self, k: Any) -> Any:
        """`eight` where fewer are left."""
        word, shift = _0, _0
        while k < self.size:
            word |= np.uint64(self.data[k]) << shift
            k, shift = k + _1, shift + _8
        return word

    def digits(self, k: Any, m: Any) -> Any:
        """Append the digits at k to m (modulo 2^64): the new m, how many there were, and where they end.

        Eight at a time: bytes that are no digits show in their highest bit, and the digits before the first such byte
        are added up pairwise, inside one machine word.
        """
        count = _0
        while True:
            word = self.eight(k) ^ _ZEROS  # digits become 0 to 9
            other = ((word + _PAST_NINE) | word) & _HIGH
            n = lowest_bit(other) >> _3
            # The n digits move to the top, zeros come in before them; in two halves, because a shift by 64 is
            # undefined.
            half = (_8 - n) << _2
            word = (word << half) << half
            word = (word * _PAIRS >> _8) & _IN_PAIRS
            word = (word * _FOURS >> _16) & _IN_FOURS
            m = m * _WHOLE_TENS[n] + (word * _EIGHT >> _32)
            count += n
            k += n
            if n < _8:
                return m, count, k

    def number(self, k: Any) -> Any:
        """The number at k: its value, where it ends, and whether there is one and it is finite."""
        sign = self.at(k)
        if sign == 45 or sign == 43:
            k += _1
        start = k
        first, second = self.at(k), self.at(k + _1)
        if 48 <= first <= 57 and not 48 <= second <= 57:  # as most do; then nothing waits for the length
            if second <= 32:
                value = float(np.int64(first) - 48)
                return -value if sign == 45 else value, k + _1, True
            m, count, k = np.uint64(first) - _48, _1, k + _1
        else:
            m, count, k = self.digits(k, _0)
        e: Any = 0
        if self.at(k) == 46:
            m, more, k = self.digits(k + _1, m)
            count += more
            e = -np.int64(more)
        good = count > _0
        if good and self.at(k) | 32 == 101:  # e or E
            exponent, k, good = self.exponent(k + _1)
            e += exponent
        if count <= _19:
            # Both numbers are doubles exactly, so one rounded operation gives the nearest double (Clinger 1990).
            if m <= _53 and -22 <= e <= 22:
                value = float(np.int64(m))
                value = value / _TENS[-e] if e < 0 else value * _TENS[e]
            else:
                value = self.scaled(m, e)
        else:
            value = self.exactly(start, k)
        return -value if sign == 45 else value, k, good and value < math.inf

    def exponent(self, k: Any) -> Any:
        """The whole number at k, cut off where it makes no difference, where it ends, and whether there is one."""
        sign = self.at(k)
        if sign == 45 or sign == 43:
            k += _1
        start = k
        e: Any = 0
        while k < self.size and np.uint8(48) <= self.data[k] <= np.uint8(57):
            if e < 1 << 40:
                e = e * 10 + np.int64(self.data[k]) - 48
            k += _1
        return -e if sign == 45 else e, k, k > start

    def scaled(self, w: Any, q: Any) -> Any:
        """w·10^q, rounded."""
        m, e = self.nearest(w, q)
        return self.double(m, e)

    def double(self, m: Any, e: Any) -> Any:
        """m·2^e, where m has 53 bits and the lowest is in a double's range."""
        return math.inf if e > 971 else math.ldexp(float(np.int64(m)), int(e))

    @noinline
    def nearest(self, w: Any, q: Any) -> Any:
        """The double next to w·10^q as m·2^e; infinity has e = 972."""
        if w == _0 or q < SMALLEST:
            return _0, 0
        if q > LARGEST:
            return _1, 972
        place = np.uint64(2 * (q - SMALLEST))
        zeros = _0
        for step in (_32, _16, _8, _4, _2, _1):
            if w >> (_64 - step) == _0:
                w <<= step
                zeros += step
        # The method of Eisel and Lemire (Lemire 2021): the first 64 bits of 5^q decide nearly always; only where the
        # bits below those that are used are all 1 can the next 64 carry into them.
        high, low = self.product(w, self.powers[place])
        if high & _511 == _511:
            more, _ = self.product(w, self.powers[place + _1])
            low += more
            if low < more:
                high += _1
        top = high >> _63
        m = high >> (top + _9)
        # 217706/2¹⁶ is log₂ 10 so nearly that the whole part is right for every q of the table.
        e = (217706 * q >> 16) + 63 + np.int64(top) - np.int64(zeros) + 1023
        if e <= 0:  # below the normal numbers: fewer bits, all with the exponent −1074
            if e <= -63:
                return _0, 0
            m >>= np.uint64(1 - e)
            return (m + (m & _1)) >> _1, -1074
        # Only for these q can the product be exact and lie halfway between two doubles: then the even one is nearest.
        if low <= _1 and -4 <= q <= 23 and m & _3 == _1 and m << (top + _9) == high:
            m ^= _1
        m = (m + (m & _1)) >> _1
        if m >= _53:  # rounded up to the next power of 2
            m, e = _52, e + 1
        return m, e - 1075 if e < 2047 else 972

    def product(self, a: Any, b: Any) -> Any:
        """The upper and the lower 64 bits of a·b."""
        a1, a0, b1, b0 = a >> _32, a & _LOW, b >> _32, b & _LOW
        lowest, left, right = a0 * b0, a1 * b0, a0 * b1
        middle = (lowest >> _32) + (left & _LOW) + (right & _LOW)
        return a1 * b1 + (left >> _32) + (right >> _32) + (middle >> _32), a * b

    @noinline
    def exactly(self, start: Any, stop: Any) -> Any:
        """The number without a sign in start:stop, whatever its length."""
        w, _, e, rest = self.decimal(start, stop, 19)
        m, e2 = self.nearest(w, e)
        above, above_e2 = self.nearest(w + _1, e)
        # More digits than 19 can only matter if w and w + 1 have different doubles next to them; then the number is
        # compared with the point halfway between, in whole numbers of any length.
        if rest and e2 <= 971 and (m != above or e2 != above_e2):
            side = self.against_halfway(start, stop, m, e2)
            if side > 0 or (side == 0 and m & _1 == _1):
                return self.double(above, above_e2)
        return self.double(m, e2)

    def decimal(self, start: Any, stop: Any, room: Any) -> Any:
        """The first `room` digits as a whole number, w, or in `big` if there may be more than 19; how many limbs it has
        there; its power of ten; and whether what was left out is more than zeros.
        """
        w, n, e, used = _0, _0, 0, 0
        point, rest, k = False, False, start
        while k < stop:
            c = self.data[k]
            k += _1
            if c == 46:
                point = True
            elif c | 32 == 101:
                e += self.exponent(k)[0]
                break
            elif used < room:
                digit = np.uint64(c) - _48
                e -= point
                if used > 0 or digit > _0:
                    used += 1
                    w = w * _10 + digit
                    if room > 19:
                        n = self.times(_0, n, _10, digit)
            else:
                rest |= c != 48
                e += not point
        return w, n, e, rest

    def against_halfway(self, start: Any, stop: Any, m: Any, e2: Any) -> Any:
        """The sign of the number in start:stop minus (m + ½)·2^e2."""
        _, n, e, rest = self.decimal(start, stop, DIGITS)
        if rest:
            n, e = self.times(_0, n, _10, _1), e - 1
        other = np.uint64(LIMBS)
        half = self.times(other, _0, _1, (_2 * m + _1) & _LOW)
        if m >> _31 > _0:
            half, self.big[other + _1] = _2, m >> _31
        n, half = self.power(_0, n, e, _13), self.power(other, half, -e, _13)
        shift = e - (e2 - 1)
        n, half = self.power(_0, n, shift, _31), self.power(other, half, -shift, _31)
        if n != half:
            return 1 if n > half else -1
        while n > _0:
            n -= _1
            if self.big[n] != self.big[other + n]:
                return 1 if self.big[n] > self.big[other + n] else -1
        return 0

    def power(self, at: Any, n: Any, e: Any, step: Any) -> Any:
        """Multiply the number of n limbs at `at` by 5^e (step 13) or 2^e (step 31), if e is positive."""
        while e > 0:
            part = np.uint64(e) if np.uint64(e) < step else step
            n = self.times(at, n, _FIVES[part] if step == _13 else _1 << part, _0)
            e -= np.int64(part)
        return n

    @noinline
    def times(self, at: Any, n: Any, factor: Any, carry: Any) -> Any:
        """Replace the number of n limbs at `at` by factor times it plus carry: its new length."""
        for i in range(at, at + n):
            carry += self.big[i] * factor
            self.big[i] = carry & _LOW
            carry >>= _32
        if carry > _0:
            self.big[at + n] = carry
            n += _1
        return n


def as_text(data: Any) -> Text:
    """Some bytes as kernels read them; not to be read by two threads at once."""
    array = np.frombuffer(data, dtype=np.uint8)
    return Text(array, np.uint64(array.size), powers_of_five(), np.empty(2 * LIMBS, dtype=np.uint64))


@functools.cache
def powers_of_five() -> Any:
    """The first 128 bits of 5^q, q from −342 to 308, upper half first: cut off, for negative q rounded up."""
    table = np.empty(2 * (LARGEST - SMALLEST + 1), dtype=np.uint64)
    for q in range(SMALLEST, LARGEST + 1):
        if q >= 0:
            bits = 5**q << 128 >> (5**q).bit_length()
        else:
            bits = (1 << 127 + (5**-q - 1).bit_length()) // 5**-q + 1
        table[2 * (q - SMALLEST)], table[2 * (q - SMALLEST) + 1] = bits >> 64, bits & (1 << 64) - 1
    table.setflags(write=False)
    return table
