"""svmlight text: `label [qid:n] index:value … # comment`, one example a line.

Labels are numbers, indices whole numbers below 2³² in any order, each at most once in a line. Blank lines and lines
that hold only a comment are skipped; queries are read and not used.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from rue.compiled import parser
from rue.registry import register
from rue.streams.block import Block
from rue.streams.chunk import Chunk
from rue.streams.files.cutting import MAX_LINE
from rue.streams.formats.base import TextFormat
from rue.streams.names import Names
from rue.streams.text.csr import CODE, DONE, FEATURES, LINE, PLACE, POSITION, ROOM, ROWS, WIDTH, open_csr
from rue.streams.text.lines import Density, count_filled, number_fault, read_lines, shown, word_at
from rue.streams.text.numbers import as_text

__all__ = ["Svmlight"]

_0, _1, _2, _3, _4 = (np.uint64(i) for i in range(5))
_19, _LAST = np.uint64(19), np.uint64(2**32 - 1)
LABEL, FEATURE, REPEATED = (np.uint64(i) for i in range(1, 4))


@parser
def _read(csr: Any, text: Any) -> None:
    """Read rows up to the end of the text, or up to and including one that is no example.

    Constants are unsigned, because Numba makes a float of the sum of a signed and an unsigned whole number, and because
    an unsigned index needs no test for negative ones.
    """
    state = csr.state
    k, line = state[POSITION], state[LINE]
    while k < text.size and state[CODE] == DONE:
        begin = k  # where to go on if there is no room for this row
        k = text.after_space(k)
        c = text.at(k)
        line += _1
        if c == 10 or c == 35:  # a line end, or #
            k = text.next_line(k)
            continue
        code, place = DONE, k
        lo = state[FEATURES]
        limit = csr.limit(lo)
        hi, ordered, query, last = lo, True, False, _0
        label, k, good = text.number(k)
        if not good or not text.stops(k):
            code = LABEL
        while code == DONE:
            k = text.after_space(k)
            c = text.at(k)
            if c == 10 or c == 35:
                break
            place = k
            index, count, k = text.digits(k, _0)
            # qid:4 before the first feature: the query of ranking data, which is passed over.
            if c == 113 and hi == lo and not query and text.at(k + _1) == 105 and text.at(k + _2) == 100:
                query = True
                if text.at(k + _3) == 58:
                    _, count, k = text.digits(k + _4, _0)
                    if count > _0 and text.stops(k):
                        continue
                code = FEATURE
                break
            # `digits` counts modulo 2^64, so more than 19 of them may be any number.
            if count == _0 or count > _19 or index > _LAST or text.at(k) != 58:
                code = FEATURE
                break
            value, k, good = text.number(k + _1)
            if not good or not text.stops(k):
                code = FEATURE
                break
            if hi == limit:
                code = ROOM
                break
            ordered &= index > last or hi == lo
            last = index
            csr.indices[hi] = index
            csr.values[hi] = value
            hi += _1
        k = text.next_line(k)
        if not ordered and code == DONE:  # most files have their indices in order: sorting is rare
            csr.lift(lo, hi)
            again = csr.arrange(lo, hi)
            if again < hi:
                code, place = REPEATED, np.uint64(csr.indices[again])
        if code == DONE:
            csr.finish(lo, hi, label, line - _1)
        elif code == ROOM:
            state[CODE], k, line = code, begin, line - _1
        else:
            state[CODE], state[PLACE] = code, place
    state[POSITION], state[LINE] = k, line


@register("format", "svmlight")
class Svmlight(TextFormat):
    r"""svmlight text, also known as LIBSVM's format.

    >>> chunk = Svmlight().parse(b"+1 3:0.5 7:1 # a comment\n-1 qid:4 2:.25\n1 2:nan\n", 1)
    >>> chunk.block.y, chunk.block.X.indices, chunk.block.X.data
    (array([ 1., -1.]), array([3, 7, 2], dtype=uint32), array([0.5 , 1.  , 0.25]))
    >>> chunk.bad[0].why
    "the value 'nan' is not finite"
    """

    suffixes = (".svm", ".svmlight", ".libsvm")

    def __init__(self, bits: int = 20, separator: str | None = None, max_line: int = MAX_LINE) -> None:
        super().__init__(bits, separator, max_line)
        self._density = Density()

    def parse(self, text: bytes, first_line: int, names: Names | None = None) -> Chunk:
        csr = open_csr(count_filled(text), self._density.features(text))
        csr, bad = read_lines(_read, (as_text(text),), csr, text, first_line, _complaint)
        self._density.note(text, csr)
        rows = int(csr.state[ROWS])
        return Chunk(Block(csr.matrix(int(csr.state[WIDTH])), csr.labels[:rows]), csr.lines[:rows], bad)


_WORD = re.compile(rb"[^ \t\n\r\v\f#]*")


def _complaint(text: bytes, code: int, place: int) -> str:
    if code == REPEATED:
        return f"index {place} occurs twice"
    word = word_at(text, place, _WORD)
    if code == LABEL:
        if "," in word:
            return f"there are several labels, {shown(word)}, where one is wanted"
        return number_fault("label", word)
    index, colon, value = word.partition(":")
    if not colon:
        return f"{shown(word)} is no feature: index:value is wanted"
    if index.isascii() and index.isdigit():
        return number_fault("value", value) if int(index[:20]) < 2**32 else f"the index {shown(index)} is not below 2³²"
    return f"the index {shown(index)} is no whole number from 0 on"
