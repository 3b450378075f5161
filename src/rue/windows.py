"""The certificate's sums window by window: at most 32 windows of equal length, whatever the length of the stream.

A window is a number of consecutive rounds (docs/theory.md, section 10); rounds count the examples that were scored,
from 1. Each window has sums of its own, added up example by example: differences of prefix sums would cancel. When
there would be one window too many, neighbours are joined, since their sums add up, and windows are twice as long from
then on. The window that is being filled is in two halves, so that there is always a recent one.

>>> import rue
>>> X, y = rue.census()
>>> run = rue.learn(X[:5000], y[:5000], learner=rue.OGD())
>>> windows = run.ledger.windows
>>> int(windows.clock[LENGTH]), len(windows.pieces()), int(windows.pieces()[:, EXAMPLES].sum())
(256, 21, 5000)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import kernel, noinline, values
from rue.compiled.intrinsics import fetch
from rue.layout import Number, Numbers
from rue.memory import aligned_zeros

__all__ = [
    "CLOCK",
    "EXAMPLES",
    "FEW",
    "LABELS",
    "LENGTH",
    "LOSS",
    "MISTAKES",
    "MOST",
    "MOST_WINDOWS",
    "SHORTEST",
    "SQUARES",
    "VECTORS",
    "WEIGHT",
    "WINDOW",
    "A",
    "WindowSums",
    "claim",
    "longer",
    "no_windows",
    "of_pieces",
    "open_windows",
]

WINDOW = Numbers(
    Number("examples", "How many examples were scored."),
    Number("weight", "Σ weight of the examples."),
    Number("loss", "Σ weight·ℓ."),
    Number("mistakes", "How many predictions had the wrong sign, or none."),
    Number("a", "A = Σ g_t p_t, where g_t = weight·slope (docs/theory.md, D6)."),
    Number("labels", "Σ weight·y, from which the best constant is known."),
    Number("squares", "Σ weight·y²."),
)
EXAMPLES, WEIGHT, LOSS, MISTAKES, A, LABELS, SQUARES = WINDOW.indices(
    "examples", "weight", "loss", "mistakes", "a", "labels", "squares"
)
CLOCK = Numbers(
    Number("closed", "How many windows are complete."),
    Number("second", "1 while the second half of the window that is being filled is, 0 during the first."),
    Number("left", "How many examples this half still takes."),
    Number("length", "How many examples a window takes."),
    Number("most", "How many windows there may be."),
    Number("vectors", "How many vectors a window needs: S, and that of each witness."),
    Number("top", "Of a wide stream how many coordinates have a column."),
)
CLOSED, SECOND, LEFT, LENGTH, MOST, VECTORS, TOP = CLOCK.indices(
    "closed", "second", "left", "length", "most", "vectors", "top"
)

SHORTEST = 32
"""The length of the first windows."""
MOST_WINDOWS, FEWEST_WINDOWS = 32, 4
BUDGET = 256 * 2**20
"""Bytes that the vectors of all windows may take; where they would take more, there are 16, 8 or 4 windows."""
PER_EXAMPLE, FEW = 8, 1024
"""The most coordinates in use for each example of a window, unless they are few: to close it costs time for each."""

COMPACT = 2**14
"""From so many coordinates on, windows have columns for those alone that have occurred."""
_0 = np.uint64(0)


@kernel
def claim(lines: Any, indices: Any, shift: Any, fresh: Any, before: Any) -> Any:
    """Number the coordinates that have no line in a table yet, as they occur; returns how many.

    `lines` has the line of each coordinate, 0 if none; the new ones are `before` + 1, …, and `fresh` their coordinates.
    """
    count = 0
    if shift > _0 and lines[_0] == 0:
        lines[_0], fresh[0], count = before + 1, 0, 1
    size = np.uint64(lines.size)
    for k in range(indices.size):
        if k + 64 < indices.size:
            fetch(lines, indices[k + 64] + shift)
        j = indices[k] + shift
        if j < size and lines[j] == 0:
            lines[j] = before + count + 1
            fresh[count] = j
            count += 1
    return count


def longer(array: Any, size: int) -> Any:
    """A copy with zeros up to `size`."""
    copy = aligned_zeros((size, *array.shape[1:]), array.dtype)
    copy[: len(array)] = array
    return copy


@values
class WindowSums(NamedTuple):
    """Sums of each window: rows 0, 1, … are complete, the next two are the halves of the one that is being filled."""

    S: Any
    """S = Σ g_t x_t of each window; a column for each coordinate, or for each that has a line."""
    sums: Any
    clock: Any
    """Where the windows stand (`CLOCK`)."""
    lines: Any
    """Of a wide stream the column of each coordinate, 0 for one that has not occurred; else empty."""
    places: Any
    """The coordinate of each column, from column 1 on, where there are `lines`; the first `TOP` of them count."""

    def stretch(self, weights: Any, begin: Any, many: Any, total: Any) -> Any:
        """The row of sums for the examples from `begin` on, and the first of the `many` that is in another window.

        Those of weight 0 are in none. `total` is the S of the whole stream so far.
        """
        clock, end = self.clock, begin
        while end < many and weights[end] == 0.0:
            end += 1
        if end < many and clock[LEFT] == 0:
            self.turn(total)
        left = clock[LEFT]
        while end < many and left > 0:
            left -= weights[end] > 0.0
            end += 1
        clock[LEFT] = left
        return clock[CLOSED] + clock[SECOND], end

    def enter(self, window: Any, begin: Any, end: Any, p: Any, y: Any, weights: Any, losses: Any, slopes: Any) -> None:
        """Add examples to the sums of a window; `add` adds up S."""
        sums = self.sums[window]
        examples, mass, lost, mistakes = sums[EXAMPLES], sums[WEIGHT], sums[LOSS], sums[MISTAKES]
        a, labels, squares = sums[A], sums[LABELS], sums[SQUARES]
        for k in range(begin, end):
            weight = weights[k]
            if weight > 0.0:
                examples += 1.0
                mass += weight
                lost += weight * losses[k]
                mistakes += 1.0 if y[k] * p[k] <= 0.0 else 0.0
                a += weight * slopes[k] * p[k]
                labels += weight * y[k]
                squares += weight * y[k] * y[k]
        sums[EXAMPLES], sums[WEIGHT], sums[LOSS], sums[MISTAKES] = examples, mass, lost, mistakes
        sums[A], sums[LABELS], sums[SQUARES] = a, labels, squares

    def add(self, window: Any, g: Any, row: Any, total: Any) -> None:
        """S += g·x of a window, and of the whole stream so far, `total`: one look at each feature for both."""
        if self.lines.size > 0:
            top = self.clock[TOP]
            self.clock[TOP] = row.add_in_lines(g, total, self.S[window], self.lines, self.places, top)
        else:
            row.add_twice(g, total, self.S[window])

    @noinline
    def turn(self, total: Any) -> None:
        """Go on with the other half of the window, or with a new window; where there is no room for it, join."""
        clock = self.clock
        if clock[SECOND] == 0:
            clock[SECOND], clock[LEFT] = 1, clock[LENGTH] // 2
            return
        self.move_row(clock[CLOSED] + 1, clock[CLOSED])
        clock[CLOSED] += 1
        clock[SECOND], clock[LEFT] = 0, clock[LENGTH] // 2
        used = self.coordinates_in_use(total)
        # Both limits are looked at here alone, when a window closes: looking costs a pass over S.
        while clock[MOST] > FEWEST_WINDOWS and 8 * used * clock[VECTORS] * clock[MOST] > BUDGET:
            clock[MOST] //= 2
        while clock[CLOSED] >= clock[MOST] or max(clock[LENGTH] * PER_EXAMPLE, FEW) < used:
            self.join()

    def coordinates_in_use(self, total: Any) -> Any:
        """How many coordinates of S are not 0: that depends on the stream alone, not on how it was cut or stored.

        At least that many have a column; where even so many change nothing, they are not counted.
        """
        clock, used = self.clock, 0
        if self.lines.size > 0:
            few = 8 * clock[TOP] * clock[VECTORS] * clock[MOST] <= BUDGET and clock[TOP] <= clock[LENGTH] * PER_EXAMPLE
            for line in range(0 if few else clock[TOP]):
                used += total[self.places[line]] != 0.0
        else:
            for j in range(total.size):
                used += total[j] != 0.0
        return used

    def join(self) -> None:
        """Make one window of every two; what is left over is the beginning of the window to be filled.

        There is more than one of these after another where windows become four times as long, or longer, at once.
        """
        clock, pairs, odd = self.clock, self.clock[CLOSED] // 2, self.clock[CLOSED] % 2
        length, closed, halves = clock[LENGTH], clock[CLOSED], clock[SECOND] + 1
        begun = length // 2 * halves - clock[LEFT]  # examples of the window that is being filled
        for i in range(pairs):
            if i > 0:
                self.move_row(2 * i, i)
            self.move_row(2 * i + 1, i)
        if odd > 0 and pairs > 0:
            self.move_row(closed - 1, pairs)
        for row in range(closed, closed + halves if begun > 0 else closed):
            if row != pairs + odd:
                self.move_row(row, pairs + odd)
        clock[CLOSED], clock[SECOND], clock[LENGTH], clock[LEFT] = pairs, odd, 2 * length, length - begun

    def move_row(self, source: Any, row: Any) -> None:
        """Add the sums of one row to those of another, and leave 0 where they were."""
        S, more, sums, others = self.S[row], self.S[source], self.sums[row], self.sums[source]
        for j in range(self.in_use()):
            S[j] += more[j]
            more[j] = 0.0
        for j in range(sums.size):
            sums[j] += others[j]
            others[j] = 0.0

    def in_use(self) -> Any:
        """How many columns may hold anything but 0."""
        return self.clock[TOP] + 1 if self.lines.size > 0 else self.S.shape[1]

    # In Python only.

    def grown(self, size: int) -> WindowSums:
        """The same with room for at least `size` coordinates."""
        if not len(self.sums):
            return self
        windows = self._in_lines() if size > COMPACT and not self.lines.size else self
        if windows.lines.size:
            return windows if size <= windows.lines.size else windows._replace(lines=longer(windows.lines, size))
        return windows._wider(size)

    def _wider(self, columns: int) -> WindowSums:
        """The same with at least so many columns."""
        if columns <= self.S.shape[1]:
            return self
        S, old = np.zeros((len(self.S), columns)), self.in_use()
        used = self.rows  # rows without a window stay pages never touched
        S[:used, :old] = self.S[:used, :old]
        return self._replace(S=S)

    def _in_lines(self) -> WindowSums:
        """The same with columns for those coordinates alone that have occurred."""
        used = self.rows
        places = np.flatnonzero((self.S[:used] != 0.0).any(axis=0))
        S, lines = np.zeros((len(self.S), places.size + 1)), np.zeros(self.S.shape[1] + 1, dtype=np.uint32)
        S[:used, 1:] = self.S[:used, places]
        lines[places] = np.arange(1, places.size + 1)
        return self._replace(S=S, lines=lines, places=places, clock=self._clock_with(places.size))

    def _clock_with(self, top: int) -> Any:
        """A copy of the clock with so many columns in use."""
        clock = self.clock.copy()
        clock[TOP] = top
        return clock

    def with_room(self, rows: Any) -> WindowSums:
        """With a column for each feature that may occur for the first time in some rows; before these are entered."""
        if not self.lines.size:
            return self
        many = int(rows.indptr[-1] - rows.indptr[0] if hasattr(rows, "indptr") else rows.width) + 1
        if self.clock[TOP] + many > self.places.size and 8 * len(self.S) * many > BUDGET:
            many = self._new_in(rows)  # to count them takes longer than room for them all, which would be much
        needed = min(int(self.clock[TOP]) + many, self.lines.size)
        if needed <= self.places.size:
            return self
        room = min(needed + needed // 4, self.lines.size)
        return self._replace(places=longer(self.places, room))._wider(room + 1)

    def _new_in(self, rows: Any) -> int:
        """How many coordinates of some rows have no column."""
        if not hasattr(rows, "indptr"):
            return int((self.lines == 0).sum())
        occurring = rows.indices[rows.indptr[0] : rows.indptr[-1]]
        places = np.unique(occurring).astype(np.int64) + int(rows.shift)
        return int((self.lines[places[places < self.lines.size]] == 0).sum()) + 1

    @property
    def known(self) -> Any:
        """The coordinates that have columns, in the order of these."""
        return self.places[: self.clock[TOP]]

    def moved(self, to: Any, size: int) -> WindowSums:
        """The same with room for `size` coordinates, those from before at the places `to`, −1 for one that is left."""
        if not len(self.sums):
            return self
        windows = self if self.lines.size else self._in_lines()
        places = to[windows.known]
        there = places >= 0
        columns = np.ascontiguousarray(windows.S[:, 1 : places.size + 1][:, there])
        return windows.with_columns(columns, places[there], size)

    def with_columns(self, columns: Any, places: Any, size: int) -> WindowSums:
        """The same with these numbers for these coordinates of `size`, and 0 for the others."""
        if size <= COMPACT:
            S = np.zeros((len(self.S), size))
            S[: len(columns), places] = columns
            return self._replace(S=S, clock=self._clock_with(0), lines=_NO_LINES[0], places=_NO_LINES[1])
        lines = np.zeros(size, dtype=np.uint32)
        lines[places] = np.arange(1, places.size + 1)
        S = np.zeros((len(self.S), places.size + 1))
        S[: len(columns), 1:] = columns
        return self._replace(S=S, lines=lines, places=places, clock=self._clock_with(places.size))

    def columns(self) -> tuple[Any, Any]:
        """S of all windows in their order, and the coordinate of each of its columns, which increase.

        A file has them in that order, and norms are sums in it: so a resumed run has the bits of one pass.
        """
        if not self.lines.size:
            return self.S[: self.rows], np.arange(self.S.shape[1])
        places = self.known
        own = self.S[: self.rows, 1 : places.size + 1]
        if (places[1:] > places[:-1]).all():
            return own, places
        order = np.argsort(places, kind="stable")
        return own[:, order], places[order]

    def in_order(self) -> WindowSums:
        """The same with columns in the order of their coordinates, so that `columns` has nothing to sort."""
        if not self.lines.size:
            return self
        S, places = self.columns()
        return self.with_columns(S, places, self.lines.size)

    def spread(self, vector: Any, size: int) -> Any:
        """One number for each column of `columns` as one for each of `size` coordinates."""
        out, places = np.zeros(size), self.columns()[1]
        out[places[places < size]] = vector[places < size]
        return out

    @property
    def rows(self) -> int:
        """How many rows are in use: complete windows, and the halves of the last one as far as they have begun."""
        if not len(self.sums):
            return 0
        last = int(self.clock[CLOSED] + self.clock[SECOND])
        return last + 1 if self.sums[last, EXAMPLES] > 0.0 else last

    def pieces(self) -> Any:
        """The sums of all windows in their order, the halves of the last one by themselves."""
        return self.sums[: self.rows]

    def merge(self, parts: Sequence[WindowSums]) -> WindowSums:
        """The windows of a base followed by what each part, which went on from a copy of it, has added to them."""
        if not len(self.sums) or any(not len(part.sums) for part in parts):
            return no_windows()
        everything = (self, *parts)
        size = max(one.lines.size or one.S.shape[1] for one in everything)
        places = np.unique(np.concatenate([one.columns()[1] for one in everything]))
        aligned = [one._at(places) for one in everything]
        pieces = [(aligned[0], self.pieces())]
        pieces += [part._since(S, self, aligned[0]) for part, S in zip(parts, aligned[1:], strict=True)]
        S, sums = (np.concatenate([piece[i] for piece in pieces]) for i in (0, 1))
        clocks = [one.clock for one in everything]
        length, most = max(int(clock[LENGTH]) for clock in clocks), min(int(clock[MOST]) for clock in clocks)
        merged = of_pieces(S, sums, length, most, int(self.clock[VECTORS]))
        return merged.with_columns(merged.S, places, size)

    def _at(self, places: Any) -> Any:
        """S of all windows, with a column for each of these coordinates, which rise."""
        S, own = self.columns()
        out = np.zeros((len(S), places.size))
        out[:, np.searchsorted(places, own)] = S
        return out

    def _since(self, S: Any, base: WindowSums, known_S: Any) -> tuple[Any, Any]:
        """The windows after the examples of a base; of one that the base has begun, what was added to it."""
        # Windows join as a part grows, so those of the base may lie inside longer ones by now: whole windows that end
        # within the base's examples are left out, and of the one that the base ends in, its sums are taken off.
        sums, known = self.pieces(), base.pieces()
        ends, before = np.cumsum(sums[:, EXAMPLES]), float(known[:, EXAMPLES].sum())
        first = int(np.searchsorted(ends, before, side="right"))
        S, sums = S[first:].copy(), sums[first:].copy()
        start = float(ends[first - 1]) if first else 0.0
        if len(sums) and start < before:
            cut = np.cumsum(known[:, EXAMPLES]) > start
            S[0] -= known_S[cut].sum(axis=0)
            sums[0] -= known[cut].sum(axis=0)
        return S, sums


def no_windows() -> WindowSums:
    """For accounts that keep none."""
    return WindowSums(np.zeros((0, 0)), np.zeros((0, len(WINDOW))), np.zeros(len(CLOCK), dtype=np.int64), *_NO_LINES)


_NO_LINES = np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.int64)


def open_windows(size: int = 0, length: int = SHORTEST, most: int = MOST_WINDOWS, vectors: int = 1) -> WindowSums:
    """Windows of no examples yet, of `length` examples each, an even number."""
    clock = np.array([0, 0, length // 2, length, most, vectors, 0], dtype=np.int64)
    return WindowSums(np.zeros((most + 1, 0)), np.zeros((most + 1, len(WINDOW))), clock, *_NO_LINES).grown(size)


def of_pieces(S: Any, sums: Any, length: int, most: int, vectors: int = 1) -> WindowSums:
    """Windows of these sums, in this order; neighbours are joined where they are short, or where they are too many.

    >>> S, sums = np.ones((4, 1)), np.zeros((4, len(WINDOW)))
    >>> sums[:, EXAMPLES] = 2, 2, 3, 4
    >>> of_pieces(S, sums, 4, 32).pieces()[:, EXAMPLES]
    array([4., 3., 4.])
    """
    length, most = max(2, length + length % 2), max(2, most)
    while True:
        joined: list[tuple[Any, Any]] = []
        for vector, row in zip(S, sums, strict=True):
            if joined and joined[-1][1][EXAMPLES] + row[EXAMPLES] <= length:
                joined[-1] = joined[-1][0] + vector, joined[-1][1] + row
            elif row[EXAMPLES] > 0.0:
                joined.append((vector, row))
        if len(joined) < most:
            break
        length *= 2
    windows = open_windows(0, length, most, vectors)._wider(S.shape[1])
    for i, (vector, row) in enumerate(joined):
        windows.S[i], windows.sums[i] = vector, row
    windows.clock[CLOSED] = len(joined)
    return windows
