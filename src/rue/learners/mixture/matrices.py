"""Kinds 4 and 5 of the pool: second-order members, with the inverse of 1 + Σhxxᵀ, for streams of few features.

The inverse takes a row in by the formula of Sherman and Morrison: with P the inverse before, f = Px and the part λ of
the sums that is left after a round, P ← (P − f fᵀ·h/(λ + h⟨x, f⟩))/λ. That is O(n²) for n features in use.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rue.compiled import noinline, values
from rue.learners.mixture.layout import (
    ALONG,
    CURVATURE,
    DIAGONAL,
    FIRST,
    MATRICES,
    NARROW,
    PREDICTION,
    PRODUCT,
    ROW,
    SCALED,
    STEP,
    USED,
    VALUE,
)

__all__ = ["Matrices"]

FARTHEST = 1e150
"""The most that a feature, divided by its first value, may be: its square is still a number."""
BY_ROUND = (1.0, 0.999)
"""What is left of the sums of kinds 4 and 5 after a round."""


@values
class Matrices(NamedTuple):
    """What a pool has of these kinds, and what they need of the pool; its fields are the pool's."""

    slots: Any
    matrices: Any
    stats: Any
    seats: Any
    memory: Any
    scratch: Any
    work: Any
    room: Any
    notes: Any
    spots: Any
    rates: Any
    exact: Any

    def scaled(self, j: Any, x: Any, by_root: Any) -> Any:
        """Feature j as kinds 4 and 5 see it."""
        if not self.exact:
            return by_root
        v = x / self.stats[j, FIRST] if self.stats[j, FIRST] > 0.0 else x / abs(x)
        return min(FARTHEST, max(-FARTHEST, v))

    def collect(self, many: Any) -> None:
        """Add the features that are noted to the predictions."""
        p, r = self.scratch[PREDICTION], len(self.rates)
        for k in range(many):
            j = self.spots[k]
            if self.slots[j] > 0:
                v, line = (
                    self.scaled(j, self.notes[VALUE, k], self.notes[SCALED, k]),
                    self.matrices[:, self.slots[j] - 1],
                )
                for which in range(MATRICES):
                    at = self.seats[DIAGONAL + which] * r
                    for i in range(r if at >= 0 else 0):
                        p[at + i] += line[which, i] * v

    def fill_room(self, many: Any) -> None:
        """Write the features that are noted into `room`."""
        for k in range(many):
            j = self.spots[k]
            if self.memory[USED] >= 0.0:
                self.place(j, self.scaled(j, self.notes[VALUE, k], self.notes[SCALED, k]))

    def place(self, j: Any, v: Any) -> None:
        """Write feature j into its place in `room`; a new one takes the next matrix row, or all retire."""
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
    def multiply(self, which: Any) -> None:
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
    def turn(self, which: Any) -> None:
        """Updates the inverse with this row (Sherman and Morrison), and moves the members along inverse · row."""
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
        # Where a direction has no examples, forgetting lets P grow without end (*wind-up* of recursive least
        # squares); 10 times the prior is as unsure as it may become.
        if largest > 10.0:  # the largest diagonal entry: forgetting makes it grow where nothing comes in
            for i in range(used):
                for k in range(used):
                    self.matrices[which, i, r + k] *= 10.0 / largest
