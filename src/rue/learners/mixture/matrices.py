"""Kinds 4 and 5 of the pool: the inverse of Σhxxᵀ, for streams of few features."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from rue.compiled import noinline
from rue.learners.mixture.mixing import LOWEST, MIXING_MEMORY, PREDICTION, STEP

__all__ = [
    "ALONG",
    "CURVATURE",
    "DIAGONAL",
    "DIRECTION",
    "FIRST",
    "KNOWN",
    "LARGEST",
    "MATRICES",
    "NARROW",
    "NOTED",
    "ROW",
    "SCALED",
    "SLOPE",
    "SQUARES",
    "SUMS",
    "USED",
    "VALUE",
    "VISITS",
    "with_matrices",
]

DIAGONAL, MATRICES, NARROW = 4, 2, 64
FARTHEST = 1e150
"""The most that a feature, divided by its first value, may be: its square is still a number."""
BY_ROUND = (1.0, 0.999)
"""What is left of the sums of kinds 4 and 5 after a round."""
USED = MIXING_MEMORY + 8
"""The place in `memory` of how many lines of the matrices are in use, −1 when their kinds have retired."""
# Rows of `room`.
ROW, PRODUCT = range(2)
# Rows of `work` after those of the mixing: ⟨f, x⟩, and at each kind's mixed prediction the slope and the curvature.
ALONG, SLOPE, CURVATURE = range(LOWEST + 1, LOWEST + 4)
# Columns of `stats`: the largest magnitude of a coordinate's feature, Σx², the number of visits, the first magnitude;
# then the sums of kinds 0 to 3.
LARGEST, SQUARES, VISITS, FIRST, SUMS = range(5)
# Rows of `notes`: the features of the row as they are; divided as kinds 0, 1 and 2 divide them; the directions of kinds
# 0 to 3; their columns of `stats`.
VALUE, SCALED, DIRECTION, KNOWN = 0, 1, 4, 8
NOTED = KNOWN + SUMS + DIAGONAL

P = TypeVar("P")


def with_matrices(cls: type[P]) -> type[P]:
    """Give a pool the words for its kinds 4 and 5."""
    for word in (in_matrices, collect, fill_room, place, multiply, turn):
        setattr(cls, word.__name__, word)
    return cls


def in_matrices(self: Any, j: Any, x: Any, by_root: Any) -> Any:
    """Feature j as kinds 4 and 5 see it."""
    if not self.exact:
        return by_root
    v = x / self.stats[j, FIRST] if self.stats[j, FIRST] > 0.0 else x / abs(x)
    return min(FARTHEST, max(-FARTHEST, v))


def collect(self: Any, many: Any) -> None:
    """Add the features that are noted to the predictions."""
    p, r = self.scratch[PREDICTION], len(self.rates)
    for k in range(many):
        j = self.spots[k]
        if self.slots[j] > 0:
            v, line = (
                self.in_matrices(j, self.notes[VALUE, k], self.notes[SCALED, k]),
                self.matrices[:, self.slots[j] - 1],
            )
            for which in range(MATRICES):
                at = self.seats[DIAGONAL + which] * r
                for i in range(r if at >= 0 else 0):
                    p[at + i] += line[which, i] * v


def fill_room(self: Any, many: Any) -> None:
    """Write the features that are noted into `room`."""
    for k in range(many):
        j = self.spots[k]
        if self.memory[USED] >= 0.0:
            self.place(j, self.in_matrices(j, self.notes[VALUE, k], self.notes[SCALED, k]))


def place(self: Any, j: Any, v: Any) -> None:
    """Write feature j into its line of `room`; a new one takes the next line, and if there is none they retire."""
    used = int(self.memory[USED])
    if self.slots[j] == 0:
        if used == NARROW:
            self.memory[USED] = -1.0
            return
        self.slots[j] = used + 1
        self.memory[USED] = used + 1.0
        for which in range(MATRICES):
            self.matrices[which, used, len(self.rates) + used] = 1.0
    self.room[ROW, self.slots[j] - 1] = v


@noinline
def multiply(self: Any, which: Any) -> None:
    """Inverse · row, and ⟨f, x⟩ = ⟨row, inverse · row⟩/forgetting."""
    used, row, product, r = int(self.memory[USED]), self.room[ROW], self.room[PRODUCT + which], len(self.rates)
    for i in range(used):
        product[i] = 0.0
    for k in range(used):
        v, line = row[k], self.matrices[which, k, r:]
        if v != 0.0:
            for i in range(used):
                product[i] += line[i] * v
    along = 0.0
    for i in range(used):
        along += row[i] * product[i]
    if not 0.0 <= along < math.inf:  # rounding has spoilt it: begin again
        along = 0.0
        for i in range(used):
            for k in range(used):
                self.matrices[which, i, r + k] = 1.0 if i == k else 0.0
            product[i] = row[i]
            along += row[i] * row[i]
    self.work[ALONG, self.seats[DIAGONAL + which]] = along / BY_ROUND[which]


@noinline
def turn(self: Any, which: Any) -> None:
    """The members step along inverse · row, and the inverse takes the row in."""
    used, f, r = int(self.memory[USED]), self.room[PRODUCT + which], len(self.rates)
    left, seat = BY_ROUND[which], self.seats[DIAGONAL + which]
    h = self.work[CURVATURE, seat]
    factor = h / (left + h * self.work[ALONG, seat] * left)
    largest, grow, step = 0.0, 1.0 / left, self.scratch[STEP, seat * r :]
    for i in range(used):
        line, inverse, by = self.matrices[which, i], self.matrices[which, i, r:], factor * f[i]
        for k in range(used):
            inverse[k] = (inverse[k] - by * f[k]) * grow
        for k in range(r):
            line[k] -= step[k] * f[i] * grow
        largest = max(largest, inverse[i])
    if largest > 10.0:  # forgetting makes it grow where nothing comes in
        for i in range(used):
            for k in range(used):
                self.matrices[which, i, r + k] *= 10.0 / largest
