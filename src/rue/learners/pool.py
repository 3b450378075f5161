"""Many learners side by side: the table behind `Mixture()`, in which one memory access serves every member.

A *kind* is a way to turn a row x into a direction f, and its members differ by their rate r alone. Features are divided
by a scale of their own, so that units do not matter. Scales and sums belong to the kind, are fed by the slope g and the
curvature h at the kind's own mixed prediction, and serve all its members:

| kind | divides a feature by | direction f_j | forgets |
|---|---|---|---|
| 0 | its root mean square | x_j/(1 + √Σg²x²) | never |
| 1 | its first value | x_j/(1 + √Σg²x²) | never |
| 2 | its largest magnitude | x_j/(1 + √Σg²x²) | 1 % at each visit |
| 3 | its root mean square | x_j/(1 + Σhx²) | never |
| 4 | its root mean square | of (1 + Σhxxᵀ)⁻¹ x | never |
| 5 | its root mean square | of (1 + Σhxxᵀ)⁻¹ x | 0.1 % at each round |

Kinds 4 and 5 run while no more than `NARROW` features have occurred; for square loss they divide by the first value,
whatever follows, which makes them ridge regressions. Any kind but the two that lead retires when it is hopelessly
behind (`retire_some`): the rest of a long stream is then learnt faster. Every member takes an implicit step: along
f, to the prediction argmin_q r⟨f, x⟩ℓ(q, y) + ½(q − p)². So no rate is too large.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue._intrinsics import LANES, collect_lanes, fetch, move_lanes
from rue._jit import values
from rue.learners.mixing import ETA, LOWEST, MIXING_MEMORY, PREDICTION, SHARES, STEP
from rue.learners.points import T, padded

__all__ = [
    "ALONG",
    "CENTRE",
    "CURVATURE",
    "DIAGONAL",
    "HELD",
    "HIGH",
    "KINDS",
    "LOW",
    "MATRICES",
    "MEAN",
    "NARROW",
    "POOL_MEMORY",
    "SLOPE",
    "SLOPES",
    "SPREAD_OF_LABELS",
    "STATS",
    "UNIT",
    "USED",
    "WORK",
    "PoolPoint",
]

DIAGONAL, MATRICES, KINDS, NARROW = 4, 2, 6, 64
BY_VISIT, BY_ROUND = 0.99, (1.0, 0.999)
"""What is left of the sums of kind 2 after a visit, and of those of kinds 4 and 5 after a round."""
TINY = 1e-150
"""Smaller features count as 0: their squares are no numbers."""
HOPELESS, FAR = 0.1, 500.0
"""How far behind a kind must be to be hopeless: so much more than the best loss, and the logarithm of its weight."""
PATIENCE, LOOK = 2**14, 2**10
"""After how many rounds it is first seen who is hopeless, and after how many more again."""
NEAR = 0.001
"""A first value smaller than this part of the largest one no longer counts."""

# Columns of `stats`: the largest magnitude of a coordinate's feature, Σx², the number of visits, the first magnitude;
# then the sums of kinds 0 to 3.
LARGEST, SQUARES, VISITS, FIRST, SUMS = range(5)
STATS = SUMS + DIAGONAL
# Rows of `work` after those of the mixing: ⟨f, x⟩, and at each kind's mixed prediction the slope and the curvature.
ALONG, SLOPE, CURVATURE = range(LOWEST + 1, LOWEST + 4)
WORK = LOWEST + 4
# Rows of `room`.
ROW, PRODUCT = range(2)
# Places in `memory`: the labels' centre and unit; the range of predictions in that unit, and of the labels the mass,
# the mean and Σ(y − mean)²; Σslope² of the mean as a prediction; and how many lines of the matrices are in use, −1
# when their kinds have retired.
CENTRE, UNIT, LOW, HIGH, HELD, MEAN, SPREAD_OF_LABELS, SLOPES, USED = range(MIXING_MEMORY, MIXING_MEMORY + 9)
POOL_MEMORY = MIXING_MEMORY + 9

_LINE = np.uint64(16)
"""How many float32 a line of the cache holds."""


@values
class PoolPoint(NamedTuple):
    """The state of a mixture."""

    weights: Any
    """For each coordinate those of all members of kinds 0 to 3, in units of the labels and of the scaled features."""
    stats: Any
    slots: Any
    """For each coordinate its line in the matrices plus 1, or 0."""
    matrices: Any
    """For kinds 4 and 5 and each line: the weights of the members, then the line of the inverse."""
    members: Any
    kinds: Any
    seats: Any
    """For each kind its place in `kinds` and `members`, where those that run come first; −1 − place if it retired."""
    memory: Any
    scratch: Any
    """The members' predictions, then the steps they take along f."""
    work: Any
    room: Any
    """The row in lines of the matrices, and its product with each."""
    notes: Any
    """What one pass over the row leaves for the next: scaled features, then directions; for its first features."""
    rates: Any
    """The number of rates as a tuple of that length, so that compiled loops know it."""
    way: Any
    """How predictions are mixed: `ByChance` or `ByMean`."""
    exact: Any
    """Whether kinds 4 and 5 divide by the first value."""

    def size(self) -> Any:
        return self.weights.shape[0]

    def experts(self) -> Any:
        return self.way.over(self.members, self.kinds, self.memory)

    # Predicting.

    def dot(self, row: Any) -> Any:
        """The mixture's prediction; the members' are left in `scratch`."""
        self.foretell(row)
        return self.memory[CENTRE] + self.memory[UNIT] * self.experts().mixed(self.scratch, self.work)

    def foretell(self, row: Any) -> None:
        """Every member's prediction, in units of the labels, into `scratch`."""
        p, low, high = self.scratch[PREDICTION], self.memory[LOW], self.memory[HIGH]
        for i in range(p.size):
            p[i] = 0.0
        width = np.uint64(self.weights.shape[1])
        for k in range(row.hi - row.lo + row.shift):
            soon = np.uint64(row.ahead(k))
            fetch(self.stats, soon * np.uint64(STATS))
            fetch(self.weights, soon * width)
            fetch(self.weights, soon * width + _LINE)
            j, x = row.feature(k)
            if not abs(x) < TINY:  # so that NaN is seen
                self.collect(p, k, j, x)
        for i in range(p.size):
            p[i] = min(high, max(low, p[i]))

    def average_dot(self, row: Any) -> Any:
        return self.dot(row)

    def scaled(self, j: Any, x: Any) -> Any:
        """Feature j divided by its root mean square, its first value, and its largest magnitude, x included.

        The last two only for kinds that run.
        """
        stats, magnitude = self.stats, abs(x)
        first, largest, by_first, by_largest = stats[j, FIRST], max(stats[j, LARGEST], magnitude), 0.0, 0.0
        if self.seats[1] >= 0:
            by_first = x / max(first if first > 0.0 else magnitude, largest * NEAR)
        if self.seats[2] >= 0:
            by_largest = x / largest
        return x * math.sqrt((stats[j, VISITS] + 1.0) / (stats[j, SQUARES] + x * x)), by_first, by_largest

    def in_matrices(self, j: Any, x: Any, by_root: Any) -> Any:
        """Feature j as kinds 4 and 5 see it."""
        if not self.exact:
            return by_root
        return x / self.stats[j, FIRST] if self.stats[j, FIRST] > 0.0 else x / abs(x)

    def collect(self, p: Any, k: Any, j: Any, x: Any) -> None:
        """Add feature j, the k-th of its row, to every member's prediction."""
        by_root, by_first, by_largest = self.scaled(j, x)
        if k < self.notes.shape[0]:
            self.notes[k, 0], self.notes[k, 1], self.notes[k, 2] = by_root, by_first, by_largest
        self.add_kind(p, 0, j, by_root)
        self.add_kind(p, 1, j, by_first)
        self.add_kind(p, 2, j, by_largest)
        self.add_kind(p, 3, j, by_root)
        if self.memory[USED] > 0.0 and self.slots[j] > 0:
            v, line = self.in_matrices(j, x, by_root), self.matrices[:, self.slots[j] - 1]
            for which in range(MATRICES):
                at = self.seats[DIAGONAL + which] * len(self.rates)
                for i in range(len(self.rates) if at >= 0 else 0):
                    p[at + i] += line[which, i] * v

    def add_kind(self, p: Any, kind: Any, j: Any, v: Any) -> None:
        """Add feature j, divided as kind 0, 1, 2 or 3 divides it, to its members' predictions."""
        r, seat = len(self.rates), self.seats[kind]
        if seat >= 0:
            for i in range(0, r, LANES):
                collect_lanes(p, seat * r + i, self.weights, np.int64(j) * (4 * r) + kind * r + i, v)

    def move_kind(self, kind: Any, j: Any, f: Any) -> None:
        """Move the weights that the members of a kind have at feature j, where their direction is f."""
        r, seat = len(self.rates), self.seats[kind]
        if seat >= 0:
            for i in range(0, r, LANES):
                move_lanes(self.weights, np.int64(j) * (4 * r) + kind * r + i, self.scratch[STEP], seat * r + i, f)

    # Learning: `measure` a row, then `advance` along the directions by the steps that stand in `scratch`.

    def measure(self, row: Any) -> None:
        """Enter a row into the sums, with the slopes and curvatures in `work`, and find ⟨f, x⟩ of every kind."""
        for kind in range(KINDS):
            self.work[ALONG, kind] = 0.0
        for i in range(int(max(0.0, self.memory[USED]))):
            self.room[ROW, i] = 0.0
        for k in range(row.hi - row.lo + row.shift):
            j, x = row.feature(k)
            if not abs(x) < TINY:
                self.enter(k, j, x)
        for which in range(MATRICES):
            if self.memory[USED] >= 0.0 and self.seats[DIAGONAL + which] >= 0:
                self.multiply(which)

    def enter(self, k: Any, j: Any, x: Any) -> None:
        """Feature j's part of `measure`."""
        stats, work, noted = self.stats, self.work, k < self.notes.shape[0]
        if noted:
            by_root, by_first, by_largest = self.notes[k, 0], self.notes[k, 1], self.notes[k, 2]
        else:
            by_root, by_first, by_largest = self.scaled(j, x)
        if self.memory[USED] >= 0.0:
            self.place(j, self.in_matrices(j, x, by_root))
        if stats[j, FIRST] == 0.0:
            stats[j, FIRST] = abs(x)
        stats[j, LARGEST] = max(stats[j, LARGEST], abs(x))
        stats[j, SQUARES] += x * x
        stats[j, VISITS] += 1.0
        a, b = self.adaptive(0, j, by_root, 1.0), self.adaptive(1, j, by_first, 1.0)
        c, e, seat = self.adaptive(2, j, by_largest, BY_VISIT), 0.0, self.seats[3]
        if seat >= 0:
            stats[j, SUMS + 3] += work[CURVATURE, seat] * by_root * by_root
            e = by_root / (1.0 + stats[j, SUMS + 3])
            work[ALONG, seat] += e * by_root
        if noted:
            self.notes[k, 0], self.notes[k, 1], self.notes[k, 2], self.notes[k, 3] = a, b, c, e

    def adaptive(self, kind: Any, j: Any, v: Any, left: Any) -> Any:
        """f_j of kind 0, 1 or 2, whose sum at j is multiplied by `left` before g²v² is added."""
        seat = self.seats[kind]
        if seat < 0:
            return 0.0
        g = self.work[SLOPE, seat] * v
        total = left * self.stats[j, SUMS + kind] + g * g
        f = v / (1.0 + math.sqrt(total))
        self.stats[j, SUMS + kind] = total
        self.work[ALONG, seat] += f * v
        return f

    def advance(self, row: Any) -> None:
        """Every member takes its step."""
        for k in range(row.hi - row.lo + row.shift):
            j, x = row.feature(k)
            if not abs(x) < TINY:
                self.shift(k, j, x)
        for which in range(MATRICES):
            if self.memory[USED] >= 0.0 and self.seats[DIAGONAL + which] >= 0:
                self.turn(which)

    def shift(self, k: Any, j: Any, x: Any) -> None:
        """Feature j's part of `advance`; its statistics have x in them already."""
        stats = self.stats
        if k < self.notes.shape[0]:
            a, b, c, e = self.notes[k, 0], self.notes[k, 1], self.notes[k, 2], self.notes[k, 3]
        else:
            by_root = x * math.sqrt(stats[j, VISITS] / stats[j, SQUARES])
            by_first = x / max(stats[j, FIRST], stats[j, LARGEST] * NEAR)
            a = by_root / (1.0 + math.sqrt(stats[j, SUMS]))
            b = by_first / (1.0 + math.sqrt(stats[j, SUMS + 1]))
            c = x / stats[j, LARGEST] / (1.0 + math.sqrt(stats[j, SUMS + 2]))
            e = by_root / (1.0 + stats[j, SUMS + 3])
        self.move_kind(0, j, a)
        self.move_kind(1, j, b)
        self.move_kind(2, j, c)
        self.move_kind(3, j, e)

    def retire_some(self) -> None:
        """After a round: the matrices' kinds if there are too many features, and from time to time who is hopeless.

        That is the kind whose best member has lost most, if that is a tenth more than the best of all and makes a
        weight of less than e^−500, and if it is not one of the two that lead.
        """
        m, lowest, seats, out = self.memory, self.work[LOWEST], self.seats, -1
        if m[T] >= PATIENCE and int(m[T]) % LOOK == 0:
            best, second, most = math.inf, math.inf, -math.inf
            for kind in range(KINDS):
                if seats[kind] >= 0:
                    lost = lowest[seats[kind]]
                    best, second = min(best, lost), min(second, max(best, lost))
                    out, most = (kind, lost) if lost > most else (out, most)
            if not (most > second and most - best > HOPELESS * abs(best) and FAR < m[ETA] * (most - best) < math.inf):
                out = -1
        if seats[DIAGONAL] < 0 and seats[DIAGONAL + 1] < 0:
            m[USED] = -1.0
        for kind in range(KINDS - 1, -1, -1):
            if seats[kind] >= 0 and (kind == out or (kind >= DIAGONAL and m[USED] < 0.0)):
                place = seats[kind]
                last = self.experts().retire(place)
                for other in range(KINDS):
                    if seats[other] == last:
                        seats[other] = place
                seats[kind] = -1 - last

    # Kinds 4 and 5.

    def place(self, j: Any, v: Any) -> None:
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

    def turn(self, which: Any) -> None:
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

    # Reading.

    def scales(self) -> Any:
        """The largest magnitude of each coordinate's feature."""
        return self.stats[:, LARGEST].copy()

    def current(self, domain: Any) -> Any:
        """The posterior mean of the members' weights, of features as the data has them."""
        stats, r = self.stats, len(self.rates)
        seen = stats[:, VISITS] > 0.0
        scales = np.ones((3, stats.shape[0]))
        scales[0, seen] = np.sqrt(stats[seen, SQUARES] / stats[seen, VISITS])
        scales[1, seen] = np.maximum(stats[seen, FIRST], stats[seen, LARGEST] * NEAR)
        scales[2, seen] = stats[seen, LARGEST]
        point = np.zeros(stats.shape[0])
        for kind, scale in enumerate((scales[0], scales[1], scales[2], scales[0])):
            point += self.weights[:, kind * r : (kind + 1) * r] @ self._share(kind) / scale
        lines = np.flatnonzero(self.slots)
        if self.memory[USED] > 0.0 and lines.size:
            scale = stats[lines, FIRST] if self.exact else scales[0, lines]
            for which in range(2):
                found = self.matrices[which, self.slots[lines] - 1, :r]
                point[lines] += found @ self._share(DIAGONAL + which) / scale
        point *= self.memory[UNIT]
        point[0] += self.memory[CENTRE]  # which is 0 without an intercept
        return point

    def _share(self, kind: int) -> Any:
        place = self.places()[kind]
        shares, kinds = self.members[SHARES].reshape(KINDS, -1)[place], np.maximum(self.kinds, 0.0)
        return kinds[place] / kinds.sum() * shares / shares.sum()

    def places(self) -> Any:
        """For each kind its place among `kinds` and `members`, whether it runs or not."""
        return np.where(self.seats < 0, -1 - self.seats, self.seats)

    def grown(self, domain: Any, size: int) -> PoolPoint:
        return self._replace(**{name: padded(getattr(self, name), size) for name in ("weights", "stats", "slots")})
