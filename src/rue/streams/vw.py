"""Vowpal Wabbit's text: `[label [weight [base]]] ['tag]|namespace[:weight] feature[:value] … |…`, one example a line.

Slots are VW's own: a whole number is itself plus the hash of its namespace; any other name is hashed with its
namespace's hash as the seed; `name:word` is hashed once more, with the name's; all modulo 2^bits. Features without a
value are 1, namespace weights multiply, values of one slot are added up, and the constant is not added: rue's intercept
is it. An example without a label has the label NaN.

What VW reads as 0 with a warning, or otherwise than it looks, is a bad row here: nan and infinity, an empty value, an
unreadable number, a base other than 0, a tab before the first bar, control characters, a line without a bar.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np

from rue._intrinsics import lowest_bit
from rue._jit import parser, values
from rue._vectors import BYTES, HASHED, QUAD, ends_among, hash_words
from rue.errors import SettingsError
from rue.streams.base import Block
from rue.streams.chunk import Chunk
from rue.streams.csr import CODE, DONE, FEATURES, LINE, PLACE, POSITION, ROOM, ROWS, open_csr
from rue.streams.hashing import Hasher
from rue.streams.lines import Density, count_lines, number_fault, read_lines, shown, word_at
from rue.streams.names import Names, NewNames
from rue.streams.numbers import as_text

__all__ = ["VW"]

LABEL, WEIGHT, BASE, WORDS, TAB, CONTROL, BAR, NAMESPACE, SCALE, VALUE, HUGE, SUM = (np.uint64(i) for i in range(1, 13))
_0, _1, _2, _3, _4, _6, _8 = (np.uint64(i) for i in (0, 1, 2, 3, 4, 6, 8))
_BYTES, _QUAD = np.uint64(BYTES), np.uint64(QUAD)
_SLOT, _UNNAMED, _LOW = np.uint64(1 << HASHED), np.uint64(1 << HASHED + 1), np.uint64((1 << HASHED) - 1)
_SMALL = np.uint64(0x2020202020202020)
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
        for i in range(min(n, _3)):
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
        start, seed, c = k, _0, self.text.at(k)
        whole = False
        if 48 <= c <= 57:
            seed, _, k = self.text.digits(k, _0)
            whole = self.name_stops(k)
        if not whole:
            k, _, _ = self.name_end(k, k, _0)
            seed = self.hasher.murmur(start, k, _0) if k > start else _0
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
        if k - base < _BYTES and ends >> k - base != _0:
            return k + lowest_bit(ends >> k - base), base, ends
        base, ends = k, self.ends(k)
        while ends == _0:
            base += _BYTES
            ends = self.ends(base)
        return base + lowest_bit(ends), base, ends

    def ends(self, k: Any) -> Any:
        """Which of the bytes from k on end a name, as bits."""
        return ends_among(self.text.data, k) if k + _BYTES <= self.text.size else self.last_ends(k)

    def last_ends(self, k: Any) -> Any:
        """`ends` where fewer are left."""
        found = _0
        for i in range(_BYTES):
            c = self.text.at(k + i)
            found |= np.uint64(c <= 32 or c == 58 or c == 124) << i
        return found

    def hash_row(self, spans: Any, n: Any, k: Any, mask: Any, slots: Any) -> None:
        """The slots of the n features of a row that ends at k."""
        if k + _QUAD <= self.text.size:
            hash_words(self.text.data, spans.starts, spans.stops, spans.seeds, n, mask, slots)
        else:
            self.hash_last(spans, n, mask, slots)

    def hash_last(self, spans: Any, n: Any, mask: Any, slots: Any) -> None:
        """`hash_row` where there are too few bytes after it."""
        for i in range(n):
            seed = spans.seeds[i]
            if seed & _SLOT == _0:
                seed = self.hasher.murmur(spans.starts[i], spans.stops[i], seed) & mask
            slots[i] = seed & _LOW

    def word_end(self, k: Any) -> Any:
        """Where the word at k, a value that is no number, ends; k itself if it looks like one, or is no word."""
        c, stop = self.text.at(k), k
        if c == 43 or c == 45 or c == 46 or 48 <= c <= 57:
            return k
        while c > 32 and c != 124:
            stop += _1
            c = self.text.at(stop)
        start = self.text.eight(k) | _SMALL
        if stop - k == _3 and (start & _THREE == _NAN or start & _THREE == _INF):
            return k
        if c == 124 or (stop - k == _8 and start == _INFINITY):
            return k
        return stop


@parser
def _read(csr: Any, words: Any, mask: Any, weights: Any, tags: Any, names: Any) -> None:
    """Read rows up to the end of the text, or up to and including one that is no example."""
    state, text, spans, rows, naming = csr.state, words.text, words.spans, csr.spans, names.table.size > 0
    k, line = state[POSITION], state[LINE]
    while k < text.size and state[CODE] == DONE:
        line += _1
        begin = k
        while text.at(k) == 32:
            k += _1
        if words.line_ends(k):
            k = text.next_line(k)
            continue
        n, k, code = words.head(k)
        place, row, label, weight = k, state[ROWS], math.nan, 1.0
        tags[row, 0] = tags[row, 1] = 0
        if code == DONE and n > _0 and (spans[_2 * n - _1] == k or text.data[spans[_2 * n - _2]] == 39):
            n -= _1
            quote = np.uint64(text.data[spans[_2 * n]] == 39)
            tags[row, 0], tags[row, 1] = spans[_2 * n] + quote, spans[_2 * n + _1]
        if code == DONE:
            label, weight, code, place = words.numbers(n)
        lo = state[FEATURES]
        limit = csr.limit(lo)
        hi, ordered, last, level, deferred = lo, True, _0, True, False
        base, ends = k, _0
        while code == DONE and text.at(k) == 124:
            k += _1
            space, unnamed = k, _0
            seed, scale, k, code = words.namespace(k)
            if code != DONE:
                place = k
                break
            default = text.at(space) <= 32 or text.at(space) == 124
            level &= scale == 1.0
            while True:
                c = text.at(k)
                while c == 32 or c == 9:
                    k += _1
                    c = text.at(k)
                if c == 124 or c < 32:
                    if c != 124 and not words.line_ends(k):
                        code, place = CONTROL, k
                    break
                place, stop, whole, slot, entry, value = k, k, False, seed, seed & _LOW, scale
                if 48 <= c <= 57:
                    index, _, stop = text.digits(k, _0)
                    whole = words.name_stops(stop)
                if whole:
                    slot = index + seed
                    entry = slot & mask | (_SLOT | _UNNAMED if default else _SLOT)
                else:
                    stop, base, ends = words.name_end(stop, base, ends)
                k = stop
                if text.at(k) == 58:
                    level = False
                    value, k, good = text.number(stop + _1)
                    value *= scale
                    named = stop > place
                    if not good or not words.stops(k):
                        start = stop + _1
                        k = words.word_end(start)
                        if k == start:
                            code, place = VALUE, k
                            break
                        if named and not whole:
                            slot = words.hasher.murmur(place, stop, seed)
                        stop, value = k, 1.0
                        entry = words.hasher.murmur(start, k, slot) & mask | _SLOT
                    elif not named:
                        entry = seed + unnamed & mask | _SLOT | _UNNAMED
                        unnamed += _1
                    if not math.isfinite(value):
                        code = HUGE
                        break
                if hi == limit:
                    code = ROOM
                    break
                i = hi - lo
                rows.starts[i], rows.stops[i], rows.seeds[i], rows.spaces[i] = place, stop, entry, space
                csr.values[hi] = value
                if entry & _SLOT == _0:
                    deferred = True
                else:
                    slot = entry & _LOW
                    ordered &= slot > last or hi == lo
                    last = slot
                    csr.indices[hi] = slot
                hi += _1
        n = hi - lo
        if deferred:
            words.hash_row(rows, n, k, mask, csr.slots)
        elif not ordered or naming:
            for i in range(n):
                csr.slots[i] = csr.indices[lo + i]
        if naming:
            for i in range(n):
                if rows.seeds[i] & _UNNAMED == _0:
                    names.note(np.uint64(csr.slots[i]), rows.spaces[i], rows.starts[i], rows.stops[i])
        k = text.next_line(k)
        if (deferred or not ordered) and code == DONE and csr.arrange(lo, hi, level) < hi:
            hi, good = csr.add_up(lo, hi)
            if not good:
                code = SUM
        if code == DONE:
            weights[row] = weight
            csr.finish(lo, hi, label, line - _1)
        elif code == ROOM:
            state[CODE], k, line = code, begin, line - _1
        else:
            state[CODE], state[PLACE] = code, place
    state[POSITION], state[LINE] = k, line


class VW:
    r"""Vowpal Wabbit's text format, with 2^bits slots.

    >>> chunk = VW(bits=18).parse(b"1 2.0 'first| 3:0.5 7\n-1 |size:10 width:.25\n", 1)
    >>> chunk.block.y, chunk.block.weights, chunk.tags
    (array([ 1., -1.]), array([2., 1.]), ('first', ''))
    >>> chunk.block.X.indices, chunk.block.X.data
    (array([    3,     7, 49144], dtype=uint32), array([0.5, 1. , 2.5]))
    """

    def __init__(self, bits: int = 20) -> None:
        if not 1 <= bits <= 32:
            raise SettingsError(f"bits must lie between 1 and 32, not {bits}.")
        self.bits, self._density = bits, Density()

    def parse(self, text: bytes, first_line: int, names: Names | None = None) -> Chunk:
        """The examples of some whole lines, of which the last may lack its end; and new names, if some are given."""
        lines = as_text(text)
        csr = open_csr(count_lines(text), self._density.features(text))
        weights = np.empty(csr.labels.size)
        tags = np.empty((csr.labels.size, 2), dtype=np.uint64)
        new = names.opened() if names is not None else _NO_NAMES
        words = Words(lines, Hasher(lines), np.zeros(8, dtype=np.uint64))
        args = (words, np.uint64(2**self.bits - 1), weights, tags, new)
        csr, bad = read_lines(_read, args, csr, text, first_line, _complaint)
        self._density.note(text, csr)
        rows = int(csr.state[ROWS])
        block = Block(
            csr.matrix(2**self.bits), csr.labels[:rows], weights[:rows] if (weights[:rows] != 1.0).any() else None
        )
        return Chunk(block, csr.lines[:rows], bad, _tags(text, tags[:rows]), _names(text, new))


_NOTHING = np.empty(0, dtype=np.uint64)
_NO_NAMES = NewNames(_NOTHING, _NOTHING, np.empty((0, 4), dtype=np.uint64), np.zeros(2, dtype=np.int64))
_WORD, _NAME = re.compile(rb"[^ \t|\r\n]*"), re.compile(rb"[^\x00- :|]*")


def _tags(text: bytes, spans: Any) -> tuple[str, ...] | None:
    if not (spans[:, 1] > spans[:, 0]).any():
        return None
    return tuple(text[start:stop].decode("utf-8", "backslashreplace") for start, stop in spans.tolist())


def _names(text: bytes, new: NewNames) -> tuple[tuple[int, str], ...]:
    found = []
    for slot, space, start, stop in new.found[: int(new.count[1])].tolist():
        name = text[start:stop].decode("utf-8", "backslashreplace").replace(":", "^", 1)
        space_name = word_at(text, space, _NAME)
        found.append((slot, f"{space_name}^{name}" if space_name else name))
    return tuple(found)


def _complaint(text: bytes, code: int, place: int) -> str:
    word = word_at(text, place, _WORD)
    match code:
        case 1 | 2 | 3:
            return _head_fault(("label", "weight", "base")[code - 1], word)
        case 4:
            return f"{shown(word)} is one word too many: label, weight and tag go before the first |"
        case 5:
            return "there is a tab before the first |, where VW wants spaces"
        case 6:
            return f"there is a control character, {shown(chr(text[place]))}"
        case 7:
            return "there is no | before the features"
        case 8:
            return "a namespace has a weight but no name"
        case 9:
            return number_fault("namespace's weight", word)
        case 10:
            return number_fault("value", word)
        case 11:
            return f"the value of {shown(word)} is too large"
        case _:
            return "the values of one slot add up to more than a number can hold"


def _head_fault(what: str, word: str) -> str:
    try:
        value = float(word)
    except ValueError:
        return number_fault(what, word)
    if what == "weight" and value < 0:
        return f"the weight {shown(word)} is negative"
    if what == "base" and math.isfinite(value):
        return f"the base {shown(word)} is not 0: rue has no initial predictions"
    return number_fault(what, word)
