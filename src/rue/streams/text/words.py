"""The words of Vowpal Wabbit's text, as kernels find and hash them.

Letters are compared by their codes: 9 tab, 10 line feed, 13 carriage return, 32 space, 39 quote, 43 plus, 45 minus, 46
point, 48 to 57 digits, 58 colon, 124 bar.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import noinline, values
from rue.compiled.intrinsics import BYTES, HASHED, QUAD, ends_among, hash_words, lowest_bit
from rue.streams.text.csr import DONE

__all__ = ["CONTROL", "HUGE", "LATER", "NAMED", "NAMELESS", "SUM", "VALUE", "Words"]

LABEL, WEIGHT, BASE, WORDS, TAB, CONTROL, BAR, NAMESPACE, SCALE, VALUE, HUGE, SUM = (np.uint64(i) for i in range(1, 13))
"""What may be wrong with a line."""
_0, _1, _2, _3, _4, _6, _8, _33 = (np.uint64(i) for i in (0, 1, 2, 3, 4, 6, 8, HASHED + 1))
_BYTES, _QUAD = np.uint64(BYTES), np.uint64(QUAD)
_LOW = np.uint64((1 << HASHED) - 1)
LATER, NAMED, NAMELESS = (np.uint64(i << HASHED) for i in (0, 1, 3))
"""What becomes of a name: it is hashed with the rest of its row; it has its slot; it has, and is not to be noted."""
_SMALL = np.uint64(0x2020202020202020)  # makes the letters of ASCII small
# The first three bytes of a word; and the words nan, inf and infinity, the first letter in the lowest byte.
_THREE, _NAN, _INF = np.uint64(0xFFFFFF), np.uint64(0x6E616E), np.uint64(0x666E69)
_INFINITY = np.uint64(0x7974696E69666E69)


@values
class Words(NamedTuple):
    """The words of a text; `spans` has room for the starts and ends of four, those before the first bar."""

    text: Any
    hasher: Any
    spans: Any

    def head(self, k: Any) -> Any:
        """Find the words before the first bar: how many, where the bar is, and what is wrong there if anything is."""
        text, n = self.text, _0
        while True:
            while text.at(k) == 32:
                k += _1
            c = text.at(k)
            if c == 124:
                return n, k, DONE
            if c < 32:
                return n, k, BAR if self.line_ends(k) else TAB if c == 9 else CONTROL
            if n == _4:
                return n, k, WORDS
            self.spans[_2 * n] = k
            while c > 32 and c != 124:
                k += _1
                c = text.at(k)
            self.spans[_2 * n + _1] = k
            n += _1

    def numbers(self, n: Any) -> Any:
        """Label and weight, of n words that are label, weight and base; and what is wrong with them, and where."""
        label, weight = math.nan, 1.0
        for i in range(n if n < _3 else _3):
            start = self.spans[_2 * i]
            number, stop, good = self.text.number(start)
            if not good or stop != self.spans[_2 * i + _1]:
                return label, weight, LABEL + i, start
            if i == _0:
                label = number
            elif i == _1:
                weight = number
            if (i == _1 and number < 0.0) or (i == _2 and number != 0.0):
                return label, weight, LABEL + i, start
        return label, weight, DONE if n <= _3 else WORDS, self.spans[_6]

    def namespace(self, k: Any) -> Any:
        """The namespace at k: its hash, its weight, where its features start, and what is wrong with it."""
        if self.text.at(k) == 58:
            return _0, 1.0, k, NAMESPACE
        start, seed = k, _0
        if 48 <= self.text.at(k) <= 57:
            seed, _, k = self.text.digits(k, _0)
        if not self.name_stops(k):
            while not self.name_stops(k):
                k += _1
            seed = self.hash_one(start, k, _0)
        if self.text.at(k) != 58:
            return seed, 1.0, k, DONE
        weight, stop, good = self.text.number(k + _1)
        if good and self.stops(stop):
            return seed, weight, stop, DONE
        return seed, 1.0, k + _1, SCALE

    def line_ends(self, k: Any) -> Any:
        """Whether k is at the end of its line."""
        return self.text.at(k) == 10 or (self.text.at(k) == 13 and self.text.at(k + _1) == 10)

    def stops(self, k: Any) -> Any:
        """Whether a value may end at k."""
        c = self.text.at(k)
        return c == 32 or c == 124 or c == 9 or c == 10 or c == 13

    def name_stops(self, k: Any) -> Any:
        """Whether a name ends at k."""
        c = self.text.at(k)
        return c <= 32 or c == 58 or c == 124

    def name_end(self, k: Any, base: Any, ends: Any) -> Any:
        """The first white space, control character, colon or bar from k on; and where else there are some, as bits for
        the bytes from a base on, which is handed back for the next name.
        """
        while k - base >= _BYTES or ends >> k - base == _0:
            base = k
            ends = ends_among(self.text.data, k) if k + _BYTES <= self.text.size else self.last_ends(k)
            if ends == _0:
                k += _BYTES
        return k + lowest_bit(ends >> k - base), base, ends

    @noinline
    def last_ends(self, k: Any) -> Any:
        """`ends_among` where fewer are left."""
        ends = _0
        for i in range(_BYTES):
            ends |= np.uint64(self.name_stops(k + i)) << i
        return ends

    @noinline
    def hash_one(self, start: Any, stop: Any, seed: Any) -> Any:
        """The hash of one word, where few are hashed: it is not inlined."""
        return self.hasher.murmur(start, stop, seed)

    def start(self, k: Any, seed: Any, own: Any) -> Any:
        """The digits at k as a name: its slot, where it ends, and what becomes of it, LATER if letters follow."""
        c, stop = self.text.at(k), k
        if c == 58:
            return seed, k, NAMELESS
        if 48 <= c <= 57:
            index, _, stop = self.text.digits(k, _0)
            if self.name_stops(stop):
                return index + seed, stop, own
        return seed, stop, LATER

    def late(self, start: Any, stop: Any, seed: Any, mask: Any) -> Any:
        """What a word is entered with: its seed, or its slot if the text ends too soon after it for `hash_words`."""
        if stop + _QUAD <= self.text.size:
            return seed & _LOW
        return self.hash_one(start, stop, seed) & mask | NAMED

    def word(self, start: Any, stop: Any, slot: Any, kind: Any) -> Any:
        """The slot of a name with a word for its value, after the colon at stop; and where that ends."""
        end = self.word_end(stop + _1)
        if kind == LATER:
            slot = self.hash_one(start, stop, slot)
        return self.hash_one(stop + _1, end, slot), end

    @noinline
    def plain(
        self, rows: Any, values: Any, k: Any, stop: Any, seed: Any, scale: Any, lo: Any, hi: Any, limit: Any
    ) -> Any:
        """Read names without values from k on, to be hashed later, up to one with a value or something else.

        Returns where that begins and ends, both the same if it is no name, and the new end of the features. It is not
        inlined: with so little to keep in mind, all of it stays in registers.
        """
        base, ends = k, _0
        while True:
            stop, base, ends = self.name_end(stop, base, ends)
            if self.text.at(stop) == 58 or hi == limit or stop + _QUAD > self.text.size:
                return k, stop, hi
            rows.starts[hi - lo] = k
            rows.stops[hi - lo] = stop
            rows.seeds[hi - lo] = seed & _LOW
            values[hi] = scale
            hi += _1
            k = stop
            c = self.text.at(k)
            while c == 32 or c == 9:
                k += _1
                c = self.text.at(k)
            stop = k
            if c <= 58 or c == 124:
                return k, k, hi

    @noinline
    def hash_row(self, rows: Any, slots: Any, first: Any, n: Any, mask: Any, names: Any) -> None:
        """The slots of a row's features from the first on that is a word; and their names, where new."""
        hash_words(self.text.data, rows.starts, rows.stops, rows.seeds, first, n, mask, slots)
        if names.full():
            return
        # Most rows have no new name: one pass without branches finds that out.
        missing = _0
        for i in range(first, n):
            missing |= names.lacks(np.uint64(slots[i])) & ~(rows.seeds[i] >> _33)
        if missing & _1 == _0:
            return
        # A name belongs to the namespace of the last bar before it, which is looked for from here backwards.
        k = space = rows.starts[first]
        while self.text.at(space - _1) != 124:
            space -= _1
        for i in range(first, n):
            while k < rows.starts[i]:
                space = k + _1 if self.text.at(k) == 124 else space
                k += _1
            if rows.seeds[i] < NAMELESS:
                names.note(np.uint64(slots[i]), space, rows.starts[i], rows.stops[i])

    def word_end(self, k: Any) -> Any:
        """Where the word at k, a value that is no number, ends; k itself if it looks like one, or is no word."""
        c, stop = self.text.at(k), k
        if c == 43 or c == 45 or c == 46 or 48 <= c <= 57:
            return k
        while c > 32 and c != 124:
            stop += _1
            c = self.text.at(stop)
        start = self.text.eight(k) | _SMALL
        # These look like numbers that are not finite: no words, so that the value is refused.
        if stop - k == _3 and (start & _THREE == _NAN or start & _THREE == _INF):
            return k
        if c == 124 or (stop - k == _8 and start == _INFINITY):
            return k
        return stop
