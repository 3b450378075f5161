"""Many learners side by side: the tables behind `Mixture()`, in which the numbers of a feature lie together.

With 8 rates a feature takes two cache lines of float32 weights and one of statistics, for all members of kinds 0 to 3.

A *kind* is a way to turn a row x into a direction f, and its members differ by their rate r alone. Features are divided
by a scale of their own, so that units do not matter; in the table v is the scaled feature. Scales and sums belong
to the kind, are fed by the slope g and the curvature h at the kind's own mixed prediction, and serve all its members:

| kind | divides a feature by | direction f_j | forgets |
|---|---|---|---|
| 0 | its root mean square | v_j/(1 + √Σg²v²) | never |
| 1 | its first value | v_j/(1 + √Σg²v²) | never |
| 2 | its largest magnitude | v_j/(1 + √Σg²v²) | 1 % at each visit |
| 3 | its root mean square | v_j/(1 + Σhv²) | never |
| 4 | its root mean square | of (1 + Σhvvᵀ)⁻¹ v | never |
| 5 | its root mean square | of (1 + Σhvvᵀ)⁻¹ v | 0.1 % at each round |

Kinds 4 and 5 run while no more than `NARROW` features have occurred; for square loss they divide by the first value,
whatever follows, which makes them ridge regressions. A kind retires when it is hopelessly behind the best
(`retire_some`): the rest of a long stream is then learnt faster. Every member takes an implicit step: along
f, to the prediction argmin_q r⟨f, x⟩ℓ(q, y) + ½(q − p)². So no rate is too large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import noinline, values
from rue.compiled.intrinsics import EIGHT, as_columns, as_rows, fetch, gather_rows, move_rows
from rue.errors import DataError
from rue.layout import Layout, padded
from rue.learners.mixture.columns import (
    NEAR,
    by_first_of,
    by_largest_of,
    by_root_of,
    divisors,
    less_curved,
    less_steep,
    visited,
    weighted_sum,
)
from rue.learners.mixture.frozen import (
    CONSTANT_GUESS,
    FIRST_COPY,
    MEAN_OF_MEMBERS,
    Copies,
    copy_anew,
    next_copy,
    preferences,
)
from rue.learners.mixture.layout import (
    ALONG,
    CENTRE,
    COLUMNS,
    CONSTANT,
    COPY,
    CURVATURE,
    DIAGONAL,
    DIRECTION,
    DUE,
    EARLIER,
    ETA,
    FIRST,
    HELD,
    HIGH,
    KINDS,
    KNOWN,
    LARGEST,
    LAST,
    LATEST,
    LOW,
    LOWEST,
    MATRICES,
    MEAN,
    NARROW,
    POOL,
    PREDICTION,
    ROW,
    SCALED,
    SHARES,
    SLOPE,
    SLOPES,
    SPREAD_OF_LABELS,
    SQUARES,
    STATS,
    STEP,
    SUMS,
    UNIT,
    USED,
    VALUE,
    VISITS,
    WEIGHED,
)
from rue.learners.mixture.matrices import Matrices
from rue.learners.mixture.mixing import Experts, inner
from rue.learners.mixture.pooling import merge_pools
from rue.learners.points import T
from rue.memory import aligned_zeros
from rue.norms import SMALL, UP
from rue.rows import SOON

__all__ = ["NOTES", "PoolPoint"]

BY_VISIT = 0.99
"""What is left of the sums of kind 2 after a visit."""
HOPELESS, FAR = 0.1, 500.0
"""Relative excess loss, and −log weight, beyond which a kind is dropped; both must be exceeded."""
LITTLE = 0.1
"""Where weights are shared, a kind whose mean weight is more is kept: it may be needed again."""
PATIENCE, LOOK = 2**14, 2**10
"""After how many rounds it is first seen who is hopeless, and after how many more again."""
LONG_PATIENCE = 2**16
"""The same for kinds 0 to 3 where weights are shared."""
TABLES = ("weights", "stats", "copies", "divisors", "slots")
"""What has a row for each feature that has occurred, and behind them empty ones."""
NOTES = 512
"""How many features of a row are worked on at once."""

_1 = np.uint64(1)
_LINE = np.uint64(16)
"""How many float32 a cache line holds."""
_FAR = np.uint64(80)
"""Prefetch distance of `lines`, in features; the table row that it names is prefetched later (`SOON`)."""
_STATS = np.uint64(len(STATS))


@values
class PoolPoint(NamedTuple):
    """The state of a mixture."""

    lines: Any
    """For each coordinate its row in `weights`, `stats` and `slots`; 0, which stays empty, until the feature occurs."""
    weights: Any
    """For each row those of all members of kinds 0 to 3, in units of the labels and of the scaled features."""
    stats: Any
    slots: Any
    """For each row its matrix row plus 1, or 0."""
    matrices: Any
    """For kinds 4 and 5 and each matrix row: the weights of the members, then the row of the inverse."""
    members: Any
    kinds: Any
    seats: Any
    """Index of each kind among those that run, in `kinds` and `members`; −1 − index if retired."""
    carried: Any
    """The mean weight of each kind over the rounds, those of late counting for more, where weights are shared."""
    memory: Any
    scratch: Any
    """The members' predictions, then the steps they take along f."""
    work: Any
    room: Any
    """The example, a number for each matrix row, and its product with the inverse of kinds 4 and 5."""
    notes: Any
    """What one pass over an example leaves for the next, a column for each feature (`layout.NOTED`).

    An example with more features than columns is worked on in pieces."""
    spots: Any
    """The table rows of the features in `notes`; in the last two places their number, and whether one has none yet."""
    given: Any
    """How many table rows have been given out."""
    rates: Any
    """The number of rates as a tuple of that length, so that compiled loops know it."""
    way: Any
    """How predictions are mixed: `ByChance` or `ByMean`."""
    exact: Any
    """Whether kinds 4 and 5 divide by the first value."""
    copies: Any
    """`weights` when they were last copied, and in the next two what belongs to them (`frozen`)."""
    divisors: Any
    copied_matrices: Any
    candidates: Any
    """What frozen copies have lost, a column for each candidate."""
    trial: Any

    @property
    def layout(self) -> Layout:
        return POOL

    def __reduce__(self) -> Any:
        """Copied and pickled with the rows of the tables that are in use alone: of a stage's 2¹⁸ few are."""
        if self.lines is None:
            return PoolPoint, tuple(self)
        known, used = np.flatnonzero(self.lines), int(self.given[0]) + 1
        tables = {name: getattr(self, name)[:used] for name in TABLES}
        own = tuple(self._replace(lines=self.lines[known], **tables))
        return _with_room, (own, known.astype(np.uint32), self.lines.size, len(self.stats))

    def size(self) -> Any:
        return self.lines.size

    def experts(self) -> Any:
        return Experts(self.members, self.kinds, self.memory, self.way)

    def second_order(self) -> Any:
        """Kinds 4 and 5."""
        own = self.slots, self.matrices, self.stats, self.seats, self.memory, self.scratch
        return Matrices(*own, self.work, self.room, self.notes, self.spots, self.rates, self.exact)

    def copied(self) -> Any:
        """The copies of the weights, with what is needed to score and renew them."""
        own = self.lines, self.weights, self.stats, self.slots, self.matrices, self.members, self.kinds, self.seats
        copies = self.copies, self.divisors, self.copied_matrices, self.candidates, self.trial
        return Copies(*own, self.memory, self.notes, self.spots, self.given, *copies, self.rates, self.exact)

    # Predicting.

    def dot(self, row: Any) -> Any:
        """The mixture's prediction; the members' are left in `scratch`."""
        return self.memory[CENTRE] + self.memory[UNIT] * self.mixed(row)

    def mixed(self, row: Any) -> Any:
        """The mixture's prediction, from the labels' centre and in their units."""
        self.predict_members(row)
        return self.experts().mixed(self.scratch, self.work)

    def predict_members(self, row: Any) -> None:
        """Every member's prediction, in units of the labels, into `scratch`."""
        p, low, high = self.scratch[PREDICTION], self.memory[LOW], self.memory[HIGH]
        begin, n, room, r = np.int64(0), np.int64(row.many()), self.notes.shape[1], len(self.rates)
        for i in range(p.size):
            p[i] = 0.0
        while begin < n:
            begin = self.note(row, begin, n)
            many = self.spots[room]
            for kind in range(DIAGONAL):
                if self.seats[kind] >= 0:
                    v, at = self.notes[SCALED + kind % 3], self.seats[kind] * r  # kind 3 divides as kind 0 does
                    gather_rows(p, at, self.weights, self.spots, COLUMNS[kind] * r, v, many, self.rates)
            if self.memory[USED] > 0.0:
                self.second_order().collect(many)
        for i in range(p.size):
            p[i] = min(high, max(low, p[i]))

    def average_dot(self, row: Any) -> Any:
        return self.dot(row)

    def bounded(self, row: Any) -> Any:
        """Whether ‖x‖² is a number; the row has been noted."""
        x, many = self.notes[VALUE], self.spots[self.notes.shape[1]]
        return math.isfinite(inner(0, many, x, x) if row.many() <= np.uint64(x.size) else row.square())

    def note(self, row: Any, begin: Any, end: Any) -> Any:
        """Note as many of a row's features as there is room for, zeros left out, and where to go on.

        Divided by root mean square, first value and largest magnitude, x included; the last two for kinds that run.
        """
        notes, spots, many, k = self.notes, self.spots, 0, np.uint64(begin)
        x, known, followed, n, fresh = notes[VALUE], notes[KNOWN:], row.followed(_FAR), np.uint64(end), False
        first, largest, room = self.seats[1] >= 0, self.seats[2] >= 0, notes.shape[1]
        while k < n and many < room:
            if followed:
                self.prefetch(row, row.lo + k, first or largest)
            j, value = row.feature(k)
            spots[many], x[many] = self.lines[j], value
            many += value != 0.0
            k += _1
        for i in range(many):
            fresh |= spots[i] == 0
        spots[room], spots[room + 1] = many, fresh
        # `as_columns` reads eight rows at a time: the last ones are filled up with a row that exists.
        for i in range(many, -(-many // EIGHT) * EIGHT):
            spots[i], x[i] = spots[0], x[0]
        as_columns(notes, KNOWN, self.stats, spots, many)
        by_root_of(0, many, notes[SCALED], x, known[LARGEST], known[VISITS], known[SQUARES])
        if first:
            by_first_of(0, many, notes[SCALED + 1], x, known[FIRST], known[LARGEST])
        if largest:
            by_largest_of(0, many, notes[SCALED + 2], x, known[LARGEST])
        return np.int64(k)

    def prefetch(self, row: Any, k: Any, both: Any) -> None:
        """Prefetch what belongs to features that come soon; with `both`, the second cache line of weights too."""
        fetch(self.lines, row.place(k + _FAR - _1))
        soon, wide = np.uint64(row.place(k + SOON)), np.uint64(self.weights.shape[1])
        if soon < np.uint64(self.lines.size):
            line = np.uint64(self.lines[soon])
            fetch(self.stats, line * _STATS)
            fetch(self.weights, line * wide)
            if both:
                fetch(self.weights, line * wide + _LINE)

    # Rows of the tables are given out one after the other, as features come: a wide stream uses few of its features,
    # and those that come often come early, so their rows lie together. Row 0 stays empty, for all that have none.

    @noinline
    def claim(self, row: Any, begin: Any, end: Any) -> None:
        """Give table rows to those features of an example that are noted and have none."""
        lines, spots, many = self.lines, self.spots, 0
        for k in range(begin, end):
            j, x = row.feature(np.uint64(k))
            if x != 0.0:
                if lines[j] == 0:
                    self.given[0] += 1
                    lines[j] = self.given[0]
                spots[many] = lines[j]
                many += 1

    # Learning: `measure` a row, then `advance` along the directions by the steps that stand in `scratch`.

    def measure(self, row: Any) -> None:
        """Enter a row into the sums, with the slopes and curvatures in `work`, and find ⟨f, x⟩ of every kind."""
        begin, n, room = np.int64(0), np.int64(row.many()), self.notes.shape[1]
        for kind in range(KINDS):
            self.work[ALONG, kind] = 0.0
        for i in range(int(max(0.0, self.memory[USED]))):
            self.room[ROW, i] = 0.0
        while begin < n:
            before, begin = begin, n if n <= room else self.note(row, begin, n)
            many = self.spots[room]
            if self.spots[room + 1] > 0:
                self.claim(row, before, begin)
            if self.memory[USED] >= 0.0:
                self.second_order().fill_room(many)
            known = self.notes[KNOWN:]
            largest, squares, visits, first = known[LARGEST], known[SQUARES], known[VISITS], known[FIRST]
            x = self.notes[VALUE]
            visited(0, many, largest, squares, visits, first, x, largest, squares, visits, first)
            self.adapt(0, many, 1.0)
            self.adapt(1, many, 1.0)
            self.adapt(2, many, BY_VISIT)
            self.bend(many)
            as_rows(self.stats, self.spots, self.notes, KNOWN, many)
        for which in range(MATRICES):
            if self.memory[USED] >= 0.0 and self.seats[DIAGONAL + which] >= 0:
                self.second_order().multiply(which)

    def adapt(self, kind: Any, many: Any, left: Any) -> None:
        """Adds squared gradients: the sums of kind 0, 1 or 2 are multiplied by `left`, then g²v² is added.

        With them it finds the direction f and ⟨f, v⟩.
        """
        seat, v, f, total = (
            self.seats[kind],
            self.notes[SCALED + kind],
            self.notes[DIRECTION + kind],
            KNOWN + SUMS + kind,
        )
        if seat >= 0:
            less_steep(0, many, self.notes[total], f, v, self.notes[total], self.work[SLOPE, seat], left)
            self.work[ALONG, seat] += inner(0, many, f, v)

    def bend(self, many: Any) -> None:
        """Adds curvature: hv² to the sums of kind 3; the direction and ⟨f, v⟩ as in `adapt`."""
        seat, v, f, total = self.seats[3], self.notes[SCALED], self.notes[DIRECTION + 3], self.notes[KNOWN + SUMS + 3]
        if seat >= 0:
            less_curved(0, many, total, f, v, total, self.work[CURVATURE, seat])
            self.work[ALONG, seat] += inner(0, many, f, v)

    def advance(self, row: Any) -> None:
        """Every member takes its step."""
        begin, n, room, r = np.int64(0), np.int64(row.many()), self.notes.shape[1], len(self.rates)
        while begin < n:
            begin = n if n <= room else self.look_up(row, begin, n)
            many = self.spots[room]
            for kind in range(DIAGONAL):
                if self.seats[kind] >= 0:
                    f, at, column = self.notes[DIRECTION + kind], self.seats[kind] * r, COLUMNS[kind] * r
                    move_rows(self.weights, self.spots, column, self.scratch[STEP], at, f, many, self.rates)
        for which in range(MATRICES):
            if self.memory[USED] >= 0.0 and self.seats[DIAGONAL + which] >= 0:
                self.second_order().turn(which)

    def look_up(self, row: Any, begin: Any, end: Any) -> Any:
        """Note the directions of as many features, whose statistics have the row in them by now; where to go on."""
        stats, notes, many, k, room = self.stats, self.notes, 0, begin, self.notes.shape[1]
        while k < end and many < room:
            coordinate, x = row.feature(np.uint64(k))
            if x != 0.0:
                j = self.lines[coordinate]
                by_root = (
                    x * (UP if stats[j, LARGEST] < SMALL else 1.0) * math.sqrt(stats[j, VISITS] / stats[j, SQUARES])
                )
                by_first = x / max(stats[j, FIRST], stats[j, LARGEST] * NEAR)
                self.spots[many] = j
                notes[DIRECTION, many] = by_root / (1.0 + math.sqrt(stats[j, SUMS]))
                notes[DIRECTION + 1, many] = by_first / (1.0 + math.sqrt(stats[j, SUMS + 1]))
                notes[DIRECTION + 2, many] = x / stats[j, LARGEST] / (1.0 + math.sqrt(stats[j, SUMS + 2]))
                notes[DIRECTION + 3, many] = by_root / (1.0 + stats[j, SUMS + 3])
                many += 1
            k += 1
        self.spots[room] = many
        return k

    def retirement_due(self) -> Any:
        """Whether kinds 4 and 5 must retire, or it is time to check for kinds that are hopelessly behind."""
        m, seats = self.memory, self.seats
        gone = seats[DIAGONAL] < 0 and seats[DIAGONAL + 1] < 0
        return gone != (m[USED] < 0.0) or (m[T] >= PATIENCE and int(m[T]) % LOOK == 0)

    def note_weights(self) -> None:
        """Enter the kinds' weights into their means, in which round t counts t times."""
        by = 2.0 / (self.memory[T] + 1.0)
        for kind in range(KINDS):
            seat = self.seats[kind]
            weight = self.kinds[seat] if seat >= 0 else 0.0
            self.carried[kind] += by * (weight - self.carried[kind])

    @noinline
    def retire_some(self) -> None:
        """After a round: the matrices' kinds if there are too many features, and from time to time who is hopeless.

        That is the kind whose best member has lost most, if that is a tenth more than the best of all and makes a
        weight of less than e^−500, but not the leader.
        """
        m, lowest, seats, out = self.memory, self.work[LOWEST], self.seats, -1
        if m[T] >= PATIENCE and int(m[T]) % LOOK == 0:
            self.experts().find_lowest(self.work)
            best, most, first = math.inf, -math.inf, self.leader()
            for kind in range(KINDS):
                if seats[kind] >= 0:
                    lost = lowest[seats[kind]]
                    best = min(best, lost)
                    if lost > most and kind != first and self.useless(kind):
                        out, most = kind, lost
            # Both: a tenth of a small loss is little, and e^−500 is soon reached on a long stream by a kind that is
            # hardly worse.
            if not (most - best > HOPELESS * abs(best) and FAR < m[ETA] * (most - best) < math.inf):
                out = -1
        if seats[DIAGONAL] < 0 and seats[DIAGONAL + 1] < 0:
            m[USED] = -1.0
        # From the last kind on, since `retire` swaps a kind with the last that runs.
        for kind in range(KINDS - 1, -1, -1):
            if seats[kind] >= 0 and (kind == out or (kind >= DIAGONAL and m[USED] < 0.0)):
                self.retire(kind)

    def useless(self, kind: Any) -> Any:
        """Whether a kind that is far behind is not needed from time to time either, as far as weights can tell."""
        late = kind >= DIAGONAL or not self.way.tracks() or self.memory[T] >= LONG_PATIENCE
        return late and self.carried[kind] <= LITTLE

    def retire(self, kind: Any) -> None:
        """Retire a kind that runs."""
        seats = self.seats
        place = seats[kind]
        last = self.experts().retire(place)
        for other in range(KINDS):
            if seats[other] == last:
                seats[other] = place
        seats[kind] = -1 - last

    def leader(self) -> Any:
        """The best of kinds 0 to 3: kept, because kinds 4 and 5 retire past 64 features."""
        best, least = -1, math.inf
        for kind in range(DIAGONAL):
            lost = self.work[LOWEST, self.seats[kind]] if self.seats[kind] >= 0 else math.inf
            if lost < least:
                best, least = kind, lost
        return best

    # Reading.

    def scales(self) -> Any:
        """The largest magnitude of each coordinate's feature."""
        return self.stats[self.lines, LARGEST]

    def current(self, domain: Any) -> Any:
        """The posterior mean of the members' weights, of features as the data has them."""
        return self._mean_weights(self._shares())

    def frozen(self, intercept: bool) -> Any:
        """The weights to keep when learning stops (`rue.learners.mixture.frozen`); None before a copy has been tried.

        The constant is a candidate only where there is an `intercept`.
        """
        q = self._preferences(intercept)
        if q is None:
            return None
        members = q[:MEAN_OF_MEMBERS].reshape(KINDS, -1) + q[MEAN_OF_MEMBERS] * self._shares()
        point = self._mean_weights(members)
        if intercept:
            point[0] += q[CONSTANT_GUESS] * self.memory[UNIT] * self.trial[CONSTANT]
        return point

    def frozen_risk(self, intercept: bool) -> float:
        """What frozen copies lost on average of late, left alone for as long as they had learnt; NaN if unknown."""
        q, tried = self._preferences(intercept), self.trial[LAST] + self.trial[LATEST]
        if q is None or tried == 0.0:
            return math.nan
        used = q > 0.0
        return float(q[used] @ (self.candidates[LAST] + self.candidates[LATEST])[used] / tried)

    def trials_of_frozen(self, intercept: bool) -> Any:
        """What the frozen model has lost in each of the periods of `COPY`, by convexity at most; None if unknown."""
        q = self._preferences(intercept)
        return None if q is None else self.candidates[: len(COPY), q > 0.0] @ q[q > 0.0]

    def _preferences(self, intercept: bool) -> Any:
        """The share of each candidate in the frozen model; None before a copy has been tried."""
        if self.trial[: len(COPY)].sum() == 0.0:
            return None
        running = np.repeat(self.seats >= 0, len(self.rates))
        possible = np.concatenate((running, [True, intercept, False]))
        return preferences(self.candidates, possible, float(self.memory[T]), self._shares())

    def range(self, loss: Any) -> tuple[float, float]:
        """What frozen predictions are clipped to.

        Of numbers it is the range of the labels (learning clips to it too), on the side to which their mean is moving
        wider by as much as it would grow in as many rounds again; labels that were never negative stay so. After t
        rounds no log-odds are beyond ±ln(t + 1): so few examples cannot make it surer.
        """
        m = self.memory
        low, high = float(m[LOW]), float(m[HIGH])
        if loss.log_odds:
            sure = math.log(m[T] + 1.0)
            return max(low, -sure), min(high, sure)
        copied = float(self.trial[DUE]) / 2.0
        if loss.task != "classify" and m[T] > copied >= FIRST_COPY:
            # The mean of a straight trend has moved by half of what its labels have.
            ahead = 2.0 * m[T] / (m[T] - copied) * (m[MEAN] - self.trial[CONSTANT])
            reach, zero = min(high - low, abs(ahead)), -m[CENTRE] / m[UNIT] if m[UNIT] > 0.0 else low
            if ahead > 0.0:
                high += reach
            else:
                low = max(low - reach, zero) if low >= zero else low - reach
        return float(m[CENTRE] + m[UNIT] * low), float(m[CENTRE] + m[UNIT] * high)

    def _mean_weights(self, shares: Any) -> Any:
        """Σ share·weights of the members, of features as the data has them; `shares` has a row for each kind."""
        point = self._mean_in_units(shares)
        point *= self.memory[UNIT]
        point[0] += self.memory[CENTRE]  # which is 0 without an intercept
        return point

    def current_in_units(self) -> Any:
        """`current`, for predictions from the labels' centre and in their units; with a row for each coordinate."""
        return self._mean_in_units(self._shares())

    def _mean_in_units(self, shares: Any) -> Any:
        r, seen, point = len(self.rates), np.flatnonzero(self.lines), np.zeros(self.lines.size)
        own_lines = self.lines[seen]
        stats, slots = self.stats[own_lines], self.slots[own_lines]
        by_root, by_first, by_largest = divisors(stats)
        for kind, scale in enumerate((by_root, by_first, by_largest, by_root)):
            if shares[kind].any():
                own = self.weights[own_lines, COLUMNS[kind] * r : (COLUMNS[kind] + 1) * r]
                point[seen] += weighted_sum(own, shares[kind]) / scale
        placed = slots > 0
        if self.memory[USED] > 0.0 and placed.any():
            scale = stats[placed, FIRST] if self.exact else by_root[placed]
            for which in range(MATRICES):
                own = self.matrices[which, slots[placed] - 1, :r]
                point[seen[placed]] += weighted_sum(own, shares[DIAGONAL + which]) / scale
        return point

    def _shares(self) -> Any:
        """The share of each member in the mixture, a row for each kind; of those that have retired 0."""
        kinds, shares = np.maximum(self.kinds, 0.0), self.members[SHARES].reshape(KINDS, -1)
        own = [kinds[place] / kinds.sum() * shares[place] / shares[place].sum() for place in self.places()]
        return np.array(own)

    def places(self) -> Any:
        """For each kind its place among `kinds` and `members`, whether it runs or not."""
        return np.where(self.seats < 0, -1 - self.seats, self.seats)

    # Room, and the form that files have.

    def grown(self, domain: Any, size: int) -> Any:
        """Room for `size` coordinates; pages never written to take no memory."""
        used, lines, tables = int(self.given[0]) + 1, np.zeros(size, dtype=np.uint32), self._empty(size + 1)
        lines[: self.lines.size] = self.lines
        for name, table in tables.items():
            table[:used] = getattr(self, name)[:used]
        return self._replace(lines=lines, **tables)

    def _empty(self, rows: int, slots: Any = np.int32) -> dict[str, Any]:
        """Tables like its own, of so many rows, all zeros; with this type of slots."""
        wide = {name: getattr(self, name) for name in TABLES if name != "slots"}
        tables = {name: aligned_zeros((rows, table.shape[1]), table.dtype) for name, table in wide.items()}
        return {**tables, "slots": np.zeros(rows, dtype=slots)}

    def laid_out(self) -> Any:
        """With a row for each coordinate, in their order, as a file has it; for reading and writing, not for rounds."""
        if self.lines is None:
            return self
        used, tables = np.flatnonzero(self.lines), self._empty(self.lines.size, np.int64)
        for name, table in tables.items():
            table[used] = getattr(self, name)[self.lines[used]]
        return self._replace(lines=None, **tables)

    def gathered(self) -> Any:
        """The inverse of `laid_out`: rows for the features that have occurred, in the order of their coordinates."""
        used = np.flatnonzero((self.stats != 0.0).any(axis=1) | (self.weights != 0.0).any(axis=1) | (self.slots != 0))
        size, given = len(self.stats), np.array([used.size])
        lines, tables = np.zeros(size, dtype=np.uint32), self._empty(size + 1)
        lines[used] = np.arange(1, used.size + 1)
        for name, table in tables.items():
            table[1 : used.size + 1] = getattr(self, name)[used]
        return self._replace(lines=lines, given=given, **tables)

    def occupied(self) -> Any:
        """The coordinates whose feature has occurred, in their order."""
        if self.lines is None:
            return np.flatnonzero(self.stats.any(axis=1) | (self.slots != 0))
        return np.flatnonzero(self.lines)

    def picked(self, coordinates: Any) -> PoolPoint:
        """`laid_out` with these coordinates alone, of those that are `occupied`."""
        rows = coordinates if self.lines is None else self.lines[coordinates]
        tables = {name: getattr(self, name)[rows] for name in TABLES}
        return self._replace(lines=None, **{**tables, "slots": tables["slots"].astype(np.int64)})

    def spread(self, coordinates: Any, size: int) -> PoolPoint:
        """With room for `size` coordinates, of which those it has are these."""
        lines = np.zeros(size, dtype=np.uint32)
        lines[coordinates] = self.lines
        return self._replace(lines=lines, **{name: padded(getattr(self, name), size + 1) for name in TABLES})

    def merged(self, algorithm: Any, parts: Sequence[PoolPoint]) -> PoolPoint:
        """The pool of several parts of a stream together (`merge_pools`); it and the parts are `laid_out`."""
        states, size, seen = (self, *parts), len(self.stats), np.zeros(len(self.stats), dtype=bool)
        seen[0] = True  # the intercept, if there is one
        for state in states:
            seen[state.occupied()] = True
        rows = np.flatnonzero(seen)
        base, *few = (state.picked(rows) for state in states)
        merged: PoolPoint = merge_pools(base, few)
        copy_anew(merged, merged._shares(), algorithm.start(1)[0].constant(merged))
        tables = merged._empty(size, merged.slots.dtype)
        for name, table in tables.items():
            table[rows] = getattr(merged, name)
        return merged._replace(**tables)

    def require_sane(self, algorithm: Any) -> None:
        """Refuse a state from a file that rounds could not go on from: what compiled code takes for granted."""
        m, used = self.memory, float(self.memory[USED])
        lines = self.slots[self.slots > 0]
        if used != int(used) or not -1 <= used <= NARROW or lines.size > NARROW or (lines > NARROW).any():
            raise DataError("its matrices do not fit its features")
        if not (m[[UNIT, HELD, SPREAD_OF_LABELS, SLOPES]] >= 0.0).all() or not m[LOW] <= m[HIGH]:
            raise DataError("its labels are impossible")
        due = float(self.trial[DUE])
        if due != next_copy(due - 1.0) or (self.trial[[EARLIER, LAST, LATEST, WEIGHED]] < 0.0).any():
            raise DataError("the trials of its frozen copies are impossible")
        running = self.kinds >= 0.0
        seats, many = self.places(), int(running.sum())
        fits = np.array_equal(np.sort(seats), np.arange(KINDS)) and running[:many].all() and many > 0
        if not fits or ((seats < many) != (self.seats >= 0)).any() or (seats[DIAGONAL:] < many).any() != (used >= 0.0):
            raise DataError("its members do not fit together")
        self.experts().require_sane()

    def from_format_1(self) -> None:
        """Files of format 1 had the weights of kinds 0 to 3 in the order of their numbers."""
        kinds = self.weights.reshape(len(self.weights), DIAGONAL, -1)
        kinds[:, list(COLUMNS)] = kinds.copy()


def _with_room(own: tuple[Any, ...], known: Any, coordinates: int, rows: int) -> PoolPoint:
    """The pool that `PoolPoint.__reduce__` took apart, with as much room as it had."""
    point, lines = PoolPoint(*own), np.zeros(coordinates, dtype=np.uint32)
    lines[known] = point.lines
    tables = point._empty(rows)
    for name, table in tables.items():
        table[: int(point.given[0]) + 1] = getattr(point, name)
    return point._replace(lines=lines, **tables)
