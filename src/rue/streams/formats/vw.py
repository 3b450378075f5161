"""Vowpal Wabbit's text: `[label [weight [base]]] ['tag]|namespace[:weight] feature[:value] … |…`, one example a line.

Slots are VW's own: a whole number is itself plus the hash of its namespace; any other name is hashed with its
namespace's hash as the seed; `name:word` is hashed once more, with the name's; all modulo 2^bits. Features without a
value are 1, namespace weights multiply, values of one slot are added up, and the constant is not added: rue's intercept
is it. An example without a label has the label NaN. Products of namespaces are those of `-q`: see
`rue.streams.text.interactions`.

What VW reads as 0 with a warning, or otherwise than it looks, is a bad row here: nan and infinity, an empty value, an
unreadable number, a base other than 0, a tab before the first bar, control characters, a line without a bar.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from rue.compiled import parser
from rue.errors import SettingsError
from rue.registry import register
from rue.streams.block import Block
from rue.streams.chunk import Chunk
from rue.streams.files.cutting import MAX_LINE
from rue.streams.formats.base import TextFormat
from rue.streams.names import NOTHING_NEW, Names, NewNames
from rue.streams.text.csr import CODE, DONE, FEATURES, LINE, PLACE, POSITION, ROOM, ROWS, open_csr
from rue.streams.text.hashing import Hasher
from rue.streams.text.interactions import BLANK, open_interactions
from rue.streams.text.lines import Density, count_filled, number_fault, read_lines, shown, word_at
from rue.streams.text.numbers import as_text
from rue.streams.text.words import CONTROL, HUGE, LATER, NAMED, NAMELESS, SUM, VALUE, Words

__all__ = ["VW"]

_0, _1, _2 = (np.uint64(i) for i in range(3))


@parser
def _read(csr: Any, words: Any, mask: Any, weights: Any, tags: Any, names: Any, interactions: Any) -> None:
    """Read rows up to the end of the text, or up to and including one that is no example.

    A name that is a number has its slot at once. From the first other name on, those of a row are only noted, and
    hashed together at its end, several at a time in vector registers (`hash_words`).
    """
    state, text = csr.state, words.text
    spans, rows = words.spans, csr.spans
    naming = not names.full()
    k, line = state[POSITION], state[LINE]
    while k < text.size and state[CODE] == DONE:
        line += _1
        begin = k
        # Blanks, then perhaps nothing: an empty line is no example.
        while text.at(k) == 32:
            k += _1
        if words.line_ends(k):
            k = text.next_line(k)
            continue
        n, k, code = words.head(k)
        place, row = k, state[ROWS]
        label, weight = math.nan, 1.0
        tags[row, 0] = tags[row, 1] = 0
        # The last word before the bar is a tag if it touches the bar, or begins with a quote.
        if code == DONE and n > _0 and (spans[_2 * n - _1] == k or text.data[spans[_2 * n - _2]] == 39):
            n -= _1
            quote = np.uint64(text.data[spans[_2 * n]] == 39)
            tags[row, 0], tags[row, 1] = spans[_2 * n] + quote, spans[_2 * n + _1]
        if code == DONE:
            label, weight, code, place = words.numbers(n)
        lo = state[FEATURES]
        limit = csr.limit(lo)
        hi, first = lo, limit
        last, ordered, needed = _0, True, _0
        # A namespace for each bar, then its features.
        while code == DONE and text.at(k) == 124:
            k += _1
            space, unnamed = k, _0
            seed, scale, k, code = words.namespace(k)
            if code != DONE:
                place = k
                break
            own, of_space = NAMELESS if words.name_stops(space) else NAMED, hi
            while True:
                c = text.at(k)
                while c == 32 or c == 9:
                    k += _1
                    c = text.at(k)
                if c == 124 or c < 32:
                    if c != 124 and not words.line_ends(k):
                        code, place = CONTROL, k
                    break
                place = k
                # A name of digits is its own slot; others are noted from here on, `first` being the first of them,
                # and hashed at the end of the row.
                slot, k, kind = words.start(k, seed, own)
                if kind == LATER:
                    first = hi if first == limit else first
                    ordered = False
                    place, k, hi = words.plain(rows, csr.values, place, k, seed, scale, lo, hi, limit)
                    if k == place:
                        continue
                stop, value = k, scale
                if text.at(k) == 58:
                    value, k, good = text.number(stop + _1)
                    value *= scale
                    # A value that is no number is a word: together with its name it is a feature of value 1.
                    if not good or not words.stops(k):
                        slot, k = words.word(place, stop, slot, kind)
                        if k == stop + _1:
                            code, place = VALUE, k
                            break
                        stop, value, kind = k, 1.0, NAMED
                    # No name before the colon: such features of a namespace are numbered in order.
                    elif stop == place:
                        slot += unnamed
                        unnamed += _1
                    if not math.isfinite(value):
                        code = HUGE
                        break
                if hi == limit:
                    code = ROOM
                    break
                slot &= mask
                if first < limit:
                    rows.starts[hi - lo] = place
                    rows.stops[hi - lo] = stop
                    rows.seeds[hi - lo] = words.late(place, stop, seed, mask) if kind == LATER else slot | kind
                elif naming and kind == NAMED:
                    names.note(slot, space, place, stop)
                ordered &= slot > last or hi == lo
                last = slot
                csr.indices[hi] = slot
                csr.values[hi] = value
                hi += _1
            if interactions.some():
                letter = BLANK if words.name_stops(space) else text.at(space)
                for i in range(of_space - lo, hi - lo):
                    csr.letters[i] = letter
        ordered &= not interactions.some()
        if not ordered:
            csr.lift(lo, first if first < hi else hi)
        if first < hi:
            words.hash_row(rows, csr.slots, first - lo, hi - lo, mask, names)
        if interactions.some() and code == DONE:
            hi, code, needed = interactions.multiply(csr, lo, hi, limit, mask, names)
            place = begin
        k = text.next_line(k)
        if not ordered and code == DONE and csr.arrange(lo, hi) < hi:
            hi, good = csr.add_up(lo, hi)
            if not good:
                code = SUM
        if code == DONE:
            weights[row] = weight
            csr.finish(lo, hi, label, line - _1)
        elif code == ROOM:
            state[CODE], state[PLACE], k, line = code, needed, begin, line - _1
        else:
            state[CODE], state[PLACE] = code, place
    state[POSITION], state[LINE] = k, line


@register("format", "vw")
class VW(TextFormat):
    r"""Vowpal Wabbit's text format, with 2^bits slots.

    >>> chunk = VW(bits=18).parse(b"1 2.0 'first| 3:0.5 7\n-1 |size:10 width:.25\n", 1)
    >>> chunk.block.y, chunk.block.weights, chunk.tags
    (array([ 1., -1.]), array([2., 1.]), ('first', ''))
    >>> chunk.block.X.indices, chunk.block.X.data
    (array([    3,     7, 49144], dtype=uint32), array([0.5, 1. , 2.5]))
    """

    suffixes = (".vw",)

    def __init__(self, bits: int = 20, separator: str | None = None, max_line: int = MAX_LINE) -> None:
        if not 1 <= bits <= 32:
            raise SettingsError(f"bits must lie between 1 and 32, not {bits}.")
        super().__init__(bits, separator, max_line)
        self._density = Density()

    def parse(self, text: bytes, first_line: int, names: Names | None = None) -> Chunk:
        lines = as_text(text)
        csr = open_csr(count_filled(text), self._density.features(text))
        weights = np.empty(csr.labels.size)
        tags = np.empty((csr.labels.size, 2), dtype=np.uint64)
        new = names.opened(2**self.bits - 1) if names is not None else NOTHING_NEW
        words = Words(lines, Hasher(lines), np.zeros(8, dtype=np.uint64))
        args = (words, np.uint64(2**self.bits - 1), weights, tags, new, open_interactions(self.interact))
        csr, bad = read_lines(_read, args, csr, text, first_line, _complaint)
        self._density.note(text, csr)
        rows = int(csr.state[ROWS])
        block = Block(
            csr.matrix(2**self.bits), csr.labels[:rows], weights[:rows] if (weights[:rows] != 1.0).any() else None
        )
        return Chunk(block, csr.lines[:rows], bad, _tags(text, tags[:rows]), _names(text, new, names))


_WORD, _NAME = re.compile(rb"[^ \t|\r\n]*"), re.compile(rb"[^\x00- :|]*")


def _tags(text: bytes, spans: Any) -> tuple[str, ...] | None:
    if not (spans[:, 1] > spans[:, 0]).any():
        return None
    return tuple(text[start:stop].decode("utf-8", "backslashreplace") for start, stop in spans.tolist())


def _names(text: bytes, new: NewNames, names: Names | None) -> tuple[tuple[int, str], ...]:
    """The new names: of a word its namespace and itself, of a product those of its factors."""
    found: dict[int, str] = {}
    known = {} if names is None else names.of
    for slot, space, start, stop in new.rows[: int(new.count[1])].tolist():
        if stop == 0:  # a product, of the features `space` and `start`
            found[slot] = "*".join(found.get(each) or known.get(each) or str(each) for each in (space, start))
            continue
        name = text[start:stop].decode("utf-8", "backslashreplace").replace(":", "^", 1)
        space_name = word_at(text, space, _NAME)
        found[slot] = f"{space_name}^{name}" if space_name else name
    return tuple(found.items())


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
        case 13:
            return "values of two namespaces multiply to more than a number can hold"
        case 14:
            return "the namespaces that --interact multiplies have more than 131,072 products in this line"
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
