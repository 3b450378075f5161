"""Products of the features of two namespaces, as Vowpal Wabbit makes them (`--interact ab`; there `-q ab`).

Features i of a namespace and j of another become one feature whose value is the product of theirs, in the slot

    (16777619·i ⊕ j) mod 2^bits,

where i and j are their slots. A namespace is known by the first letter of its name, one without a name by a blank.
Within one namespace every pair occurs once, a feature with itself too. A colon stands for any namespace; with two
colons the lower letter comes first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import noinline, values
from rue.errors import SettingsError, shown
from rue.streams.text.csr import DONE, ROOM

__all__ = ["BLANK", "PRODUCT", "TOO_MANY", "Interactions", "interactions_in", "open_interactions"]

PRODUCT, TOO_MANY = np.uint64(13), np.uint64(14)
"""What may be wrong with a line, besides what `rue.streams.text.words` lists."""
MOST = np.uint64(2**17)
"""The most products of a line."""
BLANK = 32
"""The letter of a namespace without a name."""
ANY = ":"

_0, _1 = np.uint64(0), np.uint64(1)
_PRIME = np.uint64(16777619)  # of the hash FNV-1 for 32 bits


def interactions_in(given: str | Iterable[str]) -> tuple[str, ...]:
    """The pairs of namespaces that an option names, checked: "ab,cd", or several such.

    >>> interactions_in("ab,c:"), interactions_in(["::"])
    (('ab', 'c:'), ('::',))
    """
    texts = (given,) if isinstance(given, str) else tuple(given)
    pairs = tuple(pair for text in texts for pair in (text.split(",") if isinstance(text, str) else (text,)))
    for pair in pairs:
        if not isinstance(pair, str) or len(pair) != 2 or not (pair.isascii() and pair.isprintable()) or "|" in pair:
            raise SettingsError(
                f"interact: {shown(pair)} is no pair of namespaces: give their first letters, such as ab, and a colon "
                "for any namespace."
            )
    return tuple(dict.fromkeys(pairs))


@values
class Interactions(NamedTuple):
    """Which namespaces are multiplied, and room for the features of one row in order of their namespaces.

    `crossed` has a row and a column for each letter, 1 where the features of the one are multiplied with those of the
    other in this order; it is empty where nothing is multiplied. `present` lists the letters that occur in the row, and
    `begins` and `ends` say where in the order each one's features lie.
    """

    crossed: Any
    present: Any
    begins: Any
    ends: Any

    def some(self) -> Any:
        """Whether anything is multiplied."""
        return self.crossed.size > 0

    @noinline
    def multiply(self, csr: Any, lo: Any, hi: Any, limit: Any, mask: Any, names: Any) -> Any:
        """Append the products of the features lo:hi, whose slots are in `slots`.

        The new end; what is wrong, if anything is; and how long the row would be, if there is no room for it.
        """
        letters, n, code, needed = self.sort(csr, hi - lo), hi - lo, DONE, _0
        many = self.count(letters)
        if many > MOST:
            code = TOO_MANY
        elif hi + many > limit:
            code, needed = ROOM, n + many
        else:
            for a in range(letters):
                for b in range(letters):
                    if self.crossed[self.present[a], self.present[b]]:
                        hi, code = self.multiply_two(csr, self.present[a], self.present[b], lo, hi, mask, names, code)
        for a in range(letters):
            self.ends[self.present[a]] = _0
        return hi, code, needed

    def sort(self, csr: Any, n: Any) -> Any:
        """Put the row's n features in order of their letters, as `keys`; how many letters there are."""
        letters, begin = 0, _0
        for i in range(n):
            letter = csr.letters[i]
            if self.ends[letter] == _0:
                self.present[letters] = letter
                letters += 1
            self.ends[letter] += _1
        for a in range(letters):
            letter = self.present[a]
            self.begins[letter] = begin
            begin += self.ends[letter]
            self.ends[letter] = self.begins[letter]
        for i in range(n):
            letter = csr.letters[i]
            csr.keys[self.ends[letter]] = i
            self.ends[letter] += _1
        return letters

    def count(self, letters: Any) -> Any:
        """How many products the row has."""
        many = _0
        for a in range(letters):
            of_a = self.ends[self.present[a]] - self.begins[self.present[a]]
            for b in range(letters):
                of_b = self.ends[self.present[b]] - self.begins[self.present[b]]
                if self.crossed[self.present[a], self.present[b]]:
                    many += of_a * of_b if a != b else of_a * (of_a + _1) >> _1
        return many

    def multiply_two(self, csr: Any, a: Any, b: Any, lo: Any, hi: Any, mask: Any, names: Any, code: Any) -> Any:
        """Append the products of the features of two letters; the new end, and what is wrong."""
        naming = not names.full()
        for x in range(self.begins[a], self.ends[a]):
            i = csr.keys[x]
            for y in range(x if a == b else self.begins[b], self.ends[b]):
                j = csr.keys[y]
                slot = (_PRIME * np.uint64(csr.slots[i]) ^ np.uint64(csr.slots[j])) & mask
                value = csr.values[lo + i] * csr.values[lo + j]
                code = code if math.isfinite(value) else PRODUCT
                csr.slots[hi - lo], csr.values[hi] = slot, value
                if naming:
                    names.note(slot, np.uint64(csr.slots[i]), np.uint64(csr.slots[j]), _0)
                hi += _1
        return hi, code


def open_interactions(pairs: tuple[str, ...]) -> Interactions:
    """Those of some pairs, as `interactions_in` returns them, with room for a row."""
    crossed = np.zeros((256, 256) if pairs else (0, 0), dtype=np.uint8)
    every = range(256)
    for pair in pairs:
        first, second = ([ord(letter)] if letter != ANY else every for letter in pair)
        for a in first:
            for b in second:
                if not crossed[b, a] and (pair != ANY + ANY or a <= b):
                    crossed[a, b] = 1
    room = 256 if pairs else 1
    begins, ends = np.zeros(room, dtype=np.uint64), np.zeros(room, dtype=np.uint64)
    return Interactions(crossed, np.zeros(room, dtype=np.int64), begins, ends)
