"""What parsers of text share: counting lines, the loop around their kernels, and messages about bad lines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from rue.compiled import Kernel, parser
from rue.streams.chunk import BadRow
from rue.streams.text.csr import CODE, DONE, FEATURES, LINE, PLACE, POSITION, ROOM, ROWS, Csr

__all__ = ["Density", "count_filled", "count_lines", "number_fault", "read_lines", "shown", "word_at"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # which some editors write first


class Density:
    """How many features a text of some size may hold, by what earlier ones held.

    Room for as many as there can be, one for every two bytes, would be memory that is not used again and again: slow.
    """

    def __init__(self) -> None:
        self.bytes = 8.0
        """What a feature takes, on average, in the densest text so far."""

    def features(self, text: bytes) -> int:
        return int(len(text) / self.bytes)

    def note(self, text: bytes, csr: Csr) -> None:
        """Learn from a text what the next ones may hold."""
        self.bytes = min(self.bytes, max(2.0, 0.95 * len(text) / max(1, int(csr.state[FEATURES]))))


@parser
def _line_ends(data: Any) -> Any:
    count = 0
    for i in range(data.size):
        count += data[i] == 10
    return count


def count_lines(text: bytes) -> int:
    """How many lines there are, the last one perhaps unfinished."""
    return int(_line_ends(np.frombuffer(text, dtype=np.uint8))) + (not text.endswith(b"\n"))


@parser
def _filled(data: Any) -> Any:
    count = 0
    for i in range(data.size - 1):  # a line that is not empty ends here
        count += (data[i] != 10) & (data[i + 1] == 10)
    return count + (data.size > 0 and data[data.size - 1] != 10)


def count_filled(text: bytes) -> int:
    """How many lines are not empty: room for as many rows is enough."""
    return int(_filled(np.frombuffer(text, dtype=np.uint8)))


@parser
def _words(data: Any, start: Any, stop: Any) -> Any:
    count = 1
    for i in range(start, stop):
        count += (data[i] <= 32) | (data[i] == 124)
    return count


def read_lines(
    read: Kernel,
    args: tuple[Any, ...],
    csr: Csr,
    text: bytes,
    first_line: int,
    complaint: Callable[[bytes, int, int], str],
) -> tuple[Csr, tuple[BadRow, ...]]:
    """Call a kernel, with rows to write to before its other arguments, until it has read the whole text.

    It stops after each row that is no example, and before one that there is no room for.
    """
    state = csr.state
    state[POSITION] = len(_BYTE_ORDER_MARK) if first_line == 1 and text.startswith(_BYTE_ORDER_MARK) else 0
    state[LINE] = first_line
    run = read.resolve(csr, *args)
    bad, data = [], np.frombuffer(text, dtype=np.uint8)
    while state[POSITION] < len(text):
        run(csr, *args)
        if state[CODE] == ROOM:  # as much of it as there are words in the rest of the text, and in the line, or more
            place, needed = int(state[POSITION]), int(state[PLACE])
            end = text.find(b"\n", place)
            longest = max(needed, int(_words(data, place, len(text) if end < 0 else end)))
            rest = int(_words(data, place, len(text)))
            csr = csr.grown(max(rest, needed + int(state[FEATURES])) if needed else rest, longest)
            state[CODE] = state[PLACE] = 0
        elif state[CODE] != DONE:
            why = complaint(text, int(state[CODE]), int(state[PLACE]))
            bad.append(BadRow(int(state[ROWS]), int(state[LINE]) - 1, "", why))
            state[CODE] = state[PLACE] = 0
    return csr, tuple(bad)


def word_at(text: bytes, place: int, inside: re.Pattern[bytes]) -> str:
    """The word that starts at a place; a long one is cut, so that an absurd line costs no more than any other."""
    word = inside.match(text, place, place + 200)
    return word.group().decode("utf-8", "backslashreplace") if word else ""


def shown(word: str) -> str:
    """A word in quotes, shortened to 40 characters."""
    return repr(word if len(word) <= 40 else word[:39] + "…")


def number_fault(what: str, word: str) -> str:
    """Why a word is not accepted as a number."""
    if not word:
        return f"the {what} is missing"
    try:
        value = math.nan if "_" in word else float(word)
    except ValueError:
        return f"the {what} {shown(word)} is no number"
    if "_" in word:
        return f"the {what} {shown(word)} is no number"
    if word.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return f"the {what} {shown(word)} is not finite"
    return f"the {what} {shown(word)} is too large" if math.isinf(value) else f"the {what} {shown(word)} is no number"
