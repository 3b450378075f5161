"""Words of text columns: compiled, a column at a time.

A word is a run of letters, digits and the marks that belong to them (Unicode categories L, N and M; a mark does not
begin one), in lower case, character by character. `column=word` is hashed as a category is, and its value in a row is
how often it occurs there. Anything else only separates words. A text that is missing or empty says `column=`. Where
asked for, two words in a row are a feature too: `column=very good`.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import inline, kernel, parser

__all__ = ["Words", "add_words", "pair_words", "split_words"]

_CODES = 0x32400
"""Code points from here on are no letters: they are not assigned, private, or tags."""
_MARK = np.int64(1 << 31)
"""Set for characters that may continue a word and not begin one."""


class Words(NamedTuple):
    """The words of some texts: word k is `letters[places[k]:places[k + 1]]`, text i has those from `ends[i]` on."""

    letters: Any
    places: Any
    ends: Any


@functools.cache
def _lower_case() -> Any:
    """For each code point, that of its lower case if words may hold it (with `_MARK` if it is a mark), else 0."""
    table = np.zeros(_CODES, np.uint32)
    for code in range(_CODES):
        letter = chr(code)
        if letter.isalnum():
            small = letter.lower()
            table[code] = ord(small) if len(small) == 1 else code
        elif unicodedata.category(letter)[0] == "M":
            table[code] = code | int(_MARK)
    return table


def split_words(data: Any, offsets: Any) -> Words:
    """The words of the texts `data[offsets[i]:offsets[i + 1]]`, which are UTF-8; of an empty text one empty word.

    >>> data = "Don't panic: 42 ÉTÉS".encode()
    >>> letters, places, _ = split_words(np.frombuffer(data, np.uint8), np.array([0, len(data)]))
    >>> [bytes(letters[lo:hi]).decode() for lo, hi in zip(places, places[1:])]
    ['don', 't', 'panic', '42', 'étés']
    """
    size, texts = int(offsets[-1] - offsets[0]) if offsets.size else 0, max(0, offsets.size - 1)
    letters = np.empty(size + size // 2 + 4, np.uint8)  # two bytes become three in a few lower cases
    places, ends = np.zeros(size // 2 + texts + 2, np.int64), np.zeros(texts + 1, np.int64)
    count = int(_split(data, offsets, _lower_case(), letters, places, ends))
    return Words(letters, places[: count + 1], ends)


@parser
def _split(data: Any, offsets: Any, lower: Any, letters: Any, places: Any, ends: Any) -> Any:
    """Fill in `Words`; how many words there are. A byte that is not UTF-8 separates words."""
    count, at = 0, 0
    for i in range(ends.size - 1):
        k, stop, begin = np.int64(offsets[i]), np.int64(offsets[i + 1]), at
        if k == stop:
            count += 1
            places[count] = at
        while k < stop:
            code, size = _character(data, k, stop)
            k += size
            small = np.int64(lower[code]) if code < lower.size else 0
            # A combining mark continues a word, and does not begin one.
            if small >= _MARK:
                small = small - _MARK if at > begin else 0
            if small == 0:
                if at > begin:
                    count += 1
                    places[count] = at
                    begin = at
            elif small < 0x80:
                letters[at] = small
                at += 1
            elif small < 0x800:
                letters[at], letters[at + 1] = 0xC0 | small >> 6, 0x80 | small & 0x3F
                at += 2
            elif small < 0x10000:
                letters[at], letters[at + 1] = 0xE0 | small >> 12, 0x80 | small >> 6 & 0x3F
                letters[at + 2] = 0x80 | small & 0x3F
                at += 3
            else:
                letters[at], letters[at + 1] = 0xF0 | small >> 18, 0x80 | small >> 12 & 0x3F
                letters[at + 2], letters[at + 3] = 0x80 | small >> 6 & 0x3F, 0x80 | small & 0x3F
                at += 4
        if at > begin:
            count += 1
            places[count] = at
        ends[i + 1] = count
    return count


def pair_words(words: Words) -> Words:
    """Every two words in a row of each text, with a blank between them; a text of one word has none.

    >>> data = b"a very good film"
    >>> letters, places, _ = pair_words(split_words(np.frombuffer(data, np.uint8), np.array([0, len(data)])))
    >>> [bytes(letters[lo:hi]).decode() for lo, hi in zip(places, places[1:])]
    ['a very', 'very good', 'good film']
    """
    many = np.maximum(np.diff(words.ends) - 1, 0)
    ends, places = np.concatenate(([0], np.cumsum(many))), np.zeros(int(many.sum()) + 1, np.int64)
    letters = np.empty(2 * int(words.places[-1]) + places.size, np.uint8)
    _pair(words, ends, letters, places)
    return Words(letters, places, ends)


@kernel
def _pair(words: Any, ends: Any, letters: Any, places: Any) -> None:
    """Fill in the letters of the pairs, and where each ends."""
    at = 0
    for i in range(ends.size - 1):
        first = words.ends[i]
        for k in range(ends[i + 1] - ends[i]):
            for word in range(first + k, first + k + 2):
                for source in range(words.places[word], words.places[word + 1]):
                    letters[at] = words.letters[source]
                    at += 1
                if word == first + k:
                    letters[at] = 32
                    at += 1
            places[ends[i] + k + 1] = at


@inline
def _character(data: Any, k: Any, stop: Any) -> Any:
    """The code point at k and its length in bytes; 0, which no word has, for a byte that begins none."""
    first = np.int64(data[k])
    if first < 0x80:
        return first, 1
    # C0, C1 and F5 to FF begin no character: they would be longer than needed, or beyond the last code point.
    size = 2 if 0xC2 <= first < 0xE0 else 3 if 0xE0 <= first < 0xF0 else 4 if 0xF0 <= first < 0xF5 else 1
    if size == 1 or k + size > stop:
        return np.int64(0), 1
    code = first & (0x7F >> size)
    for i in range(1, size):
        byte = np.int64(data[k + i])
        if byte & 0xC0 != 0x80:
            return np.int64(0), 1
        code = code << 6 | byte & 0x3F
    return code, size


@kernel
def add_words(rows: Any, good: Any, slots: Any, ends: Any, room: Any, out: Any) -> Any:
    """Rows with the words of a text column merged in, into `out`; how many features they have.

    `rows` are those of the texts that are good; the words of text i have the slots from `ends[i]` to `ends[i + 1]`. A
    slot that occurs several times adds up. `room` holds the slots of one text.
    """
    row, end = 0, 0
    for i in range(good.size):
        if not good[i]:
            continue
        many = ends[i + 1] - ends[i]
        for k in range(many):
            room[k] = slots[ends[i] + k]
        _sort(room, many)
        a, b, k, start = rows.indptr[row], rows.indptr[row + 1], 0, end
        while a < b or k < many:
            if k == many or (a < b and rows.indices[a] <= room[k]):
                slot, value = rows.indices[a], rows.values[a]
                a += 1
            else:
                slot, value = room[k], 1.0
                k += 1
            if end > start and out.indices[end - 1] == slot:
                out.values[end - 1] += value
            else:
                out.indices[end], out.values[end] = slot, value
                end += 1
        row += 1
        out.indptr[row] = end
    return end


@inline
def _sort(array: Any, many: Any) -> None:
    """Shell's sort of the first `many`, with Knuth's gaps: in place, and quick for a few hundred."""
    gap = 1
    while gap < many // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, many):
            value, k = array[i], i
            while k >= gap and array[k - gap] > value:
                array[k] = array[k - gap]
                k -= gap
            array[k] = value
        gap //= 3
