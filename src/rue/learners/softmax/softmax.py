"""Many softmax learners side by side: the table behind `SoftmaxMixture()`.

A *kind* is a way to turn a row x into a direction f for each class; its members differ by their rate r alone. Sums
belong to the kind, are fed by the probabilities P at the kind's own mixture, with g = P − 1{c = y} and h = P(1 − P),
and serve all its members:

| kind | a feature is | direction f_j of class c | forgets |
|---|---|---|---|
| 0 | divided by its root mean square | x_j/(1 + √Σg²x²) | never |
| 1 | divided by its first value | x_j/(1 + Σhx²) | never |
| 2 | divided by its largest magnitude | x_j/(1 + √Σg²x²) | 1 % at each visit |
| 3 | centred, divided by its deviation | x_j/(1 + √Σg²x²) | never |
| 4 | centred, divided by its deviation | of (1 + Σh̄xxᵀ)⁻¹ x, h̄ the mean of h over the classes | never |
| 5 | centred, divided by its deviation | of (1 + Σh̄xxᵀ)⁻¹ x | 0.1 % at each round |

Kinds 3 to 5 run while no more than `NARROW` features have occurred. Without an intercept nothing is centred. Every
member takes an implicit step (`SoftmaxRule.choose_steps`). Of two classes it is what `Mixture` makes of them, nearly:
its kind of Σhx² divides by the root mean square, and a kind of √Σg²x² by the first value is left out, because a
kind more would make every row slower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import noinline, values
from rue.compiled.arithmetic import exp
from rue.compiled.intrinsics import LANES, collect_lanes, fetch, move_lanes
from rue.errors import DataError
from rue.layout import MERGES, Layout, padded
from rue.learners.mixture.columns import NEAR, divisors
from rue.learners.mixture.frozen import next_copy
from rue.learners.mixture.layout import (
    DUE,
    EARLIER,
    ETA,
    FIRST,
    HEAVIEST,
    LARGEST,
    LAST,
    LATEST,
    SHARES,
    SQUARES,
    VISITS,
)
from rue.learners.mixture.matrices import BY_ROUND
from rue.learners.mixture.merging import Lines, in_common_units, inverse_of_sums, pooled_moments, ratios
from rue.learners.mixture.mixing import Experts
from rue.learners.mixture.pool import BY_VISIT
from rue.learners.points import T
from rue.learners.softmax.frozen import copy_anew
from rue.learners.softmax.layout import (
    CENTRED,
    CLASS_POOL,
    CLOSED,
    COPIED_CLOSED,
    COPIED_ROUNDS,
    COPIED_USED,
    HIGHEST,
    KINDS,
    MEAN,
    NARROW,
    PRODUCT,
    ROW,
    SEEN,
    SINCE,
    SPREAD,
    USED,
    WIDE,
)
from rue.norms import SMALL, UP
from rue.rows import SOON

__all__ = ["FLAT", "ClassPool"]

_1 = np.uint64(1)

FAR = 20.0
"""Scores are clipped to ± this, so that of two classes log-odds are within ±40, as those of `Mixture`."""
FLAT = 1e-24
"""A variance smaller than this part of the mean's square is rounding."""


@values
class ClassPool(NamedTuple):
    """The state of a mixture of softmax learners; arrays of scores have a place for each class and member."""

    weights: Any
    """For each coordinate and class those of all members of kinds 0 to 2, of scaled features."""
    sums: Any
    """For each coordinate and class the sums of kinds 0 to 2."""
    stats: Any
    slots: Any
    """For each coordinate its line plus 1, or 0."""
    lines: Any
    """For each line and class the weights of all members of kinds 3 to 5."""
    line_sums: Any
    centres: Any
    inverses: Any
    members: Any
    kinds: Any
    memory: Any
    counts: Any
    """For each class how many examples were learnt."""
    copies: Any
    """`weights` when they were last copied, and in the next four what belongs to them (`frozen`)."""
    copied_lines: Any
    copied_stats: Any
    copied_centres: Any
    copied_counts: Any
    candidates: Any
    """What frozen copies have lost, a column for each candidate."""
    trial: Any
    scratch: Any
    scores: Any
    chances: Any
    """The members' probabilities; 0 for a class never seen."""
    mixed: Any
    """For each class the probability by the mixture, then those by each kind."""
    along: Any
    """For each class ⟨f, x⟩ of each kind."""
    room: Any
    notes: Any
    """For the first features of a row, and each class: their directions."""
    rates: Any
    """The number of rates as a tuple of that length, so that compiled loops know it."""
    way: Any
    """How predictions are mixed: `ByChance`."""

    @property
    def layout(self) -> Layout:
        return CLASS_POOL

    def size(self) -> Any:
        return self.weights.shape[0]

    def classes(self) -> Any:
        """How many classes there is room for."""
        return self.counts.shape[0]

    def experts(self) -> Any:
        return Experts(self.members, self.kinds, self.memory, self.way)

    def full(self) -> Any:
        """Whether a round needs more room than there is: never, unlike that of stages."""
        return False

    def reserve(self) -> Any:
        """The probability of a class never seen: 1/(1 + s)², s the rounds since one came; 1 at first."""
        s = 1.0 + self.memory[SINCE]
        return 1.0 / (s * s)

    def reserve_of_one(self) -> Any:
        """The part of the reserve that the class which comes first has: that of one of m names, if it is the m-th."""
        return self.reserve() / (1.0 + self.memory[SEEN])

    # Predicting.

    def predict_members(self, row: Any) -> None:
        """Every member's probabilities into `chances`, the mixture's and the kinds' into `mixed`."""
        scores = self.scores
        for i in range(scores.size):
            scores[i] = 0.0
        followed, wide = row.followed(SOON + _1), np.uint64(self.weights.shape[1] * self.weights.shape[2])
        for k in range(row.many()):
            if followed:
                soon = np.uint64(row.place(row.lo + k + SOON))
                fetch(self.stats, soon * np.uint64(4))
                fetch(self.weights, soon * wide)
            j, x = row.feature(k)
            if x != 0.0:
                self.collect(j, x)
        if self.memory[CLOSED] == 0.0:
            self.lay_out(row)
            for line in range(int(self.memory[USED])):
                self.collect_line(line)
        self.normalise()
        self.mix()

    def scaled(self, j: Any, x: Any) -> Any:
        """Feature j divided by its root mean square, its first value, and its largest magnitude, x included."""
        stats, magnitude = self.stats, abs(x)
        first, largest = stats[j, FIRST], max(stats[j, LARGEST], magnitude)
        by_first = x / max(first if first > 0.0 else magnitude, largest * NEAR)
        z, squares = self.squares(j, x)
        return z * math.sqrt((stats[j, VISITS] + 1.0) / squares), by_first, x / largest

    def squares(self, j: Any, x: Any) -> Any:
        """Feature j and Σx², x included, both in the units in which that sum does not underflow (see `columns`)."""
        before, largest = self.stats[j, LARGEST], max(self.stats[j, LARGEST], abs(x))
        back = 1.0 / UP if before < SMALL <= largest else 1.0
        z = x * (UP if largest < SMALL else 1.0)
        return z, self.stats[j, SQUARES] * back * back + z * z

    def collect(self, j: Any, x: Any) -> None:
        """Add feature j to every member's scores."""
        r, room, all_members = len(self.rates), self.weights.shape[1], self.members.shape[1]
        by_root, by_first, by_largest = self.scaled(j, x)
        for c in range(int(self.memory[HIGHEST])):
            if self.counts[c] > 0.0:
                place, at = (np.int64(j) * room + c) * (WIDE * r), c * all_members
                for i in range(0, r, LANES):
                    collect_lanes(self.scores, at + i, self.weights, place + i, by_root)
                    collect_lanes(self.scores, at + r + i, self.weights, place + r + i, by_first)
                    collect_lanes(self.scores, at + 2 * r + i, self.weights, place + 2 * r + i, by_largest)

    def lay_out(self, row: Any) -> None:
        """The row in lines, as it is and centred; an intercept, which is in the first line, is 1."""
        used, room = int(self.memory[USED]), self.room
        for line in range(used):
            room[ROW, line] = 0.0
        for k in range(row.hi - row.lo + row.shift):
            j, x = row.feature(k)
            if self.slots[j] > 0 and x != 0.0:
                room[ROW, self.slots[j] - 1] = x
        for line in range(used):
            mean, spread = self.centred(line, row.shift)
            away, n = room[ROW, line] - mean, self.memory[T] + 1.0
            flat = not spread > FLAT * n * mean * mean
            room[CENTRED, line] = 0.0 if flat else away * math.sqrt(n / spread)
        if row.shift > 0:
            room[CENTRED, 0] = 1.0

    def centred(self, line: Any, shift: Any) -> Any:
        """The mean of a line's feature, and Σ(x − mean)², the row in `room` included."""
        x, mean, n = self.room[ROW, line], self.centres[line, MEAN], self.memory[T] + 1.0
        # Without an intercept nothing could make up for a mean that is taken away.
        if shift == 0:
            return 0.0, self.centres[line, SPREAD] + x * x
        # Welford 1962: a sum of squares less n·mean² would cancel.
        after = mean + (x - mean) / n
        return after, self.centres[line, SPREAD] + (x - mean) * (x - after)

    def collect_line(self, line: Any) -> None:
        x, width, all_members = self.room[CENTRED, line], self.lines.shape[2], self.members.shape[1]
        for c in range(int(self.memory[HIGHEST])):
            if self.counts[c] > 0.0:
                place, at = (line * self.lines.shape[1] + c) * width, (c + 1) * all_members - width
                for i in range(0, width, LANES):
                    collect_lanes(self.scores, at + i, self.lines, place + i, x)

    def normalise(self) -> None:
        """The probabilities that scores stand for."""
        scores, chances, many = self.scores, self.chances, self.members.shape[1]
        top, total = self.scratch[0], self.scratch[1]
        for i in range(many):
            top[i] = -FAR
            total[i] = 0.0
        for c in range(int(self.memory[HIGHEST])):
            if self.counts[c] > 0.0:
                for i in range(many):
                    s = min(FAR, max(-FAR, scores[c * many + i]))
                    scores[c * many + i] = s
                    top[i] = max(top[i], s)
        for c in range(int(self.memory[HIGHEST])):
            if self.counts[c] > 0.0:
                for i in range(many):
                    # Less the largest score, so that nothing overflows and the sum is at least 1.
                    chance = exp(scores[c * many + i] - top[i])
                    chances[c * many + i] = chance
                    total[i] += chance
        for c in range(int(self.memory[HIGHEST])):
            for i in range(many):
                chances[c * many + i] = chances[c * many + i] / total[i] if self.counts[c] > 0.0 else 0.0

    def mix(self) -> None:
        """Mix the members' probabilities, kind by kind."""
        r, many, kinds = len(self.rates), self.members.shape[1], self.kinds
        shares, weight = self.members[SHARES], 0.0
        for c in range(self.mixed.shape[0]):
            for kind in range(KINDS + 1):
                self.mixed[c, kind] = 0.0
        for kind in range(KINDS):
            if kinds[kind] >= 0.0:
                share = 0.0
                for i in range(kind * r, kind * r + r):
                    share += shares[i]
                weight += kinds[kind]
                for c in range(int(self.memory[HIGHEST])):
                    here = 0.0
                    for i in range(kind * r, kind * r + r):
                        here += shares[i] * self.chances[c * many + i]
                    self.mixed[c, 1 + kind] = here / share
                    self.mixed[c, 0] += kinds[kind] * (here / share)
        for c in range(int(self.memory[HIGHEST])):
            self.mixed[c, 0] /= weight

    # Learning: `measure` a row, then `advance` along the directions by the steps that stand in `scores`.

    def measure(self, row: Any, y: Any, weight: Any) -> None:
        """Enter a row of class y into the sums, and find ⟨f, x⟩ of every kind and class."""
        for c in range(self.along.shape[0]):
            for kind in range(KINDS):
                self.along[c, kind] = 0.0
        if self.memory[CLOSED] == 0.0:
            self.claim(row)
        for k in range(row.hi - row.lo + row.shift):
            j, x = row.feature(k)
            if x != 0.0:
                self.enter(k, j, x, y, weight)
        if self.memory[CLOSED] == 0.0:
            self.enter_lines(row, y, weight)
            self.multiply(0)
            self.multiply(1)

    def enter(self, k: Any, j: Any, x: Any, y: Any, weight: Any) -> None:
        """Feature j's part of `measure`."""
        stats, sums, noted = self.stats, self.sums, k < self.notes.shape[0]
        scaled = self.scaled(j, x)
        if stats[j, FIRST] == 0.0:
            stats[j, FIRST] = abs(x)
        stats[j, SQUARES] = self.squares(j, x)[1]
        stats[j, LARGEST] = max(stats[j, LARGEST], abs(x))
        stats[j, VISITS] += 1.0
        for c in range(int(self.memory[HIGHEST])):
            if self.counts[c] > 0.0:
                for kind in range(WIDE):
                    chance, v, total = self.mixed[c, 1 + kind], scaled[kind], sums[j, c, kind]
                    if kind == 1:
                        total += weight * chance * (1.0 - chance) * v * v
                    else:
                        g = weight * (chance - (1.0 if c == y else 0.0)) * v
                        total = (BY_VISIT if kind == 2 else 1.0) * total + g * g
                    sums[j, c, kind] = total
                    f = v / (1.0 + (total if kind == 1 else math.sqrt(total)))
                    self.along[c, kind] += f * v
                    if noted:
                        self.notes[k, c, kind] = f

    def advance(self, row: Any) -> None:
        """Every member takes its step."""
        for k in range(row.hi - row.lo + row.shift):
            j, x = row.feature(k)
            if x != 0.0:
                self.shift(k, j, x)
        if self.memory[CLOSED] == 0.0:
            for line in range(int(self.memory[USED])):
                self.shift_line(line)
            self.turn(0)
            self.turn(1)

    def shift(self, k: Any, j: Any, x: Any) -> None:
        """Feature j's part of `advance`; its statistics have x in them already."""
        stats, r, all_members = self.stats, len(self.rates), self.members.shape[1]
        by_root = x * (UP if stats[j, LARGEST] < SMALL else 1.0) * math.sqrt(stats[j, VISITS] / stats[j, SQUARES])
        by_first = x / max(stats[j, FIRST], stats[j, LARGEST] * NEAR)
        scaled = by_root, by_first, x / stats[j, LARGEST]
        for c in range(int(self.memory[HIGHEST])):
            if self.counts[c] > 0.0:
                for kind in range(WIDE):
                    if k < self.notes.shape[0]:
                        f = self.notes[k, c, kind]
                    else:
                        total = self.sums[j, c, kind]
                        f = scaled[kind] / (1.0 + (total if kind == 1 else math.sqrt(total)))
                    place = ((np.int64(j) * self.weights.shape[1] + c) * WIDE + kind) * r
                    for i in range(0, r, LANES):
                        move_lanes(self.weights, place + i, self.scores, c * all_members + kind * r + i, f)

    # Kinds 3 to 5.

    @noinline
    def claim(self, row: Any) -> None:
        """Give new features the next lines; if there are not enough, these kinds retire."""
        for k in range(row.hi - row.lo + row.shift):
            j, x = row.feature(k)
            if x != 0.0 and self.slots[j] == 0 and self.memory[CLOSED] == 0.0:
                line = int(self.memory[USED])
                if line == NARROW:
                    self.memory[CLOSED] = 1.0
                else:
                    self.slots[j] = line + 1
                    self.inverses[line, 0, line] = 1.0
                    self.inverses[line, 1, line] = 1.0
                    self.memory[USED] = line + 1.0

    def enter_lines(self, row: Any, y: Any, weight: Any) -> None:
        """The lines' part of `measure` for kind 3; and the centres move."""
        self.lay_out(row)
        for line in range(int(self.memory[USED])):
            x = self.room[CENTRED, line]
            mean, spread = self.centred(line, row.shift)
            self.centres[line, MEAN], self.centres[line, SPREAD] = mean, spread
            for c in range(int(self.memory[HIGHEST])):
                if self.counts[c] > 0.0:
                    g = weight * (self.mixed[c, 1 + WIDE] - (1.0 if c == y else 0.0)) * x
                    self.line_sums[line, c] += g * g
                    self.along[c, WIDE] += x * x / (1.0 + math.sqrt(self.line_sums[line, c]))

    @noinline
    def multiply(self, which: Any) -> None:
        """Inverse · row, and ⟨f, x⟩ = ⟨row, inverse · row⟩/forgetting."""
        used, x, product = int(self.memory[USED]), self.room[CENTRED], self.room[PRODUCT + which]
        for i in range(used):
            product[i] = 0.0
        for k in range(used):
            inverse = self.inverses[k, which]
            for i in range(used):
                product[i] += inverse[i] * x[k]
        along = 0.0
        for i in range(used):
            along += x[i] * product[i]
        if not 0.0 <= along < math.inf:  # rounding has spoilt it: begin again
            along = 0.0
            for i in range(used):
                for k in range(used):
                    self.inverses[i, which, k] = 1.0 if i == k else 0.0
                product[i] = x[i]
                along += x[i] * x[i]
        for c in range(self.along.shape[0]):
            self.along[c, WIDE + 1 + which] = along / BY_ROUND[which]

    def shift_line(self, line: Any) -> None:
        """A line's part of `advance`."""
        r, all_members, x = len(self.rates), self.members.shape[1], self.room[CENTRED, line]
        products = self.room[PRODUCT, line] / BY_ROUND[0], self.room[PRODUCT + 1, line] / BY_ROUND[1]
        for c in range(int(self.memory[HIGHEST])):
            if self.counts[c] > 0.0:
                f = x / (1.0 + math.sqrt(self.line_sums[line, c]))
                place, at = (line * self.lines.shape[1] + c) * ((KINDS - WIDE) * r), c * all_members + WIDE * r
                for i in range(0, r, LANES):
                    move_lanes(self.lines, place + i, self.scores, at + i, f)
                    move_lanes(self.lines, place + r + i, self.scores, at + r + i, products[0])
                    move_lanes(self.lines, place + 2 * r + i, self.scores, at + 2 * r + i, products[1])

    @noinline
    def turn(self, which: Any) -> None:
        """The inverse takes the row in; the mean curvature of the classes stands in `scratch`."""
        used, f, left = int(self.memory[USED]), self.room[PRODUCT + which], BY_ROUND[which]
        h = self.scratch[2, which]
        factor, grow, largest = h / (left + h * self.along[0, WIDE + 1 + which] * left), 1.0 / left, 0.0
        for i in range(used):
            inverse, by = self.inverses[i, which], factor * f[i]
            for k in range(used):
                inverse[k] = (inverse[k] - by * f[k]) * grow
            largest = max(largest, inverse[i])
        if largest > 10.0:  # forgetting makes it grow where nothing comes in
            for i in range(used):
                for k in range(used):
                    self.inverses[i, which, k] *= 10.0 / largest

    # Room.

    def scales(self) -> Any:
        """The largest magnitude of each coordinate's feature."""
        return self.stats[:, LARGEST].copy()

    def grown(self, domain: Any, size: int) -> ClassPool:
        return self._replace(**self.layout.grown(self, "coordinate", size))

    def bytes_per_class(self) -> int:
        """What a class takes, in all arrays together."""
        arrays = [getattr(self, array.name) for array in self.layout if "class" in array.axes]
        taken = sum(int(array.nbytes) for array in (*arrays, self.scores, self.chances))
        return taken // int(self.counts.size)

    def admitting(self, classes: int) -> ClassPool:
        """Room for more classes."""
        many = classes * self.members.shape[1]
        grown = self.layout.grown(self, "class", classes)
        return self._replace(**grown, scores=np.zeros(many), chances=np.zeros(many))

    def with_classes(self, room: int, numbers: Any = None) -> ClassPool:
        """With room for so many classes, and class c + 1 called `numbers[c]`, if that is given."""
        if numbers is None:
            return self.admitting(room)
        own, moved = np.asarray(numbers, dtype=np.int64) - 1, self.admitting(room)
        for array in self.layout:
            if array.saved and "class" in array.axes:
                axis = array.axes.index("class")
                before, after = (np.moveaxis(getattr(pool, array.name), axis, 0) for pool in (self, moved))
                after[...] = 0.0
                after[own] = before[: own.size]
        moved = moved._replace(memory=self.memory.copy())
        moved.memory[HIGHEST] = np.flatnonzero(moved.counts)[-1] + 1.0 if moved.counts.any() else 0.0
        return moved

    def merged(self, algorithm: Any, parts: Sequence[ClassPool]) -> ClassPool:
        """The pool of several parts of a stream together; the arrays of all have one order of coordinates and classes.

        As for `PoolPoint`, but the weights of a class are averaged over the parts that know it: the others have no
        opinion of it, and a mean with their zeros would make a rare class likely.
        """
        states, lines = (self, *parts), Lines([state.slots for state in (self, *parts)], NARROW)
        tables = in_common_units([state.stats for state in states])
        ready = [
            {**state._asdict(), "stats": stats, "line_sums": padded(lines.rows(k, state.line_sums), NARROW)}
            for k, (state, stats) in enumerate(zip(states, tables, strict=True))
        ]
        merged = self._replace(**self.layout.merged(ready[0], ready[1:]))
        merged._merge_numbers(lines, states)
        knowing = np.array([part.counts > 0.0 for part in parts])
        by_part = knowing / np.maximum(1, knowing.sum(axis=0))  # the share of each part in the mean of a class
        merged._average_weights(parts, by_part)
        merged._merge_centres(lines, states)
        merged._merge_lines(lines, parts, by_part)
        for which in range(2):
            matrices = [lines.information(k, state.inverses[:, which]) for k, state in enumerate(states)]
            forgets = BY_ROUND[which] < 1.0
            sums = MERGES["averaged" if forgets else "added"](matrices[0], matrices[1:])
            merged.inverses[:, which] = 0.0
            merged.inverses[: lines.size, which, : lines.size] = inverse_of_sums(sums, 0.1 if forgets else 1.0)
        merged.experts().resettle(merged.scratch, [state.experts().weights() for state in states])
        copy_anew(merged, merged=True)
        return merged

    def _merge_numbers(self, lines: Lines, states: Sequence[ClassPool]) -> None:
        """The numbers that are no sums, and which kinds run."""
        m, base = self.memory, states[0].memory
        seen = np.flatnonzero(self.counts)
        m[SEEN], m[HIGHEST] = seen.size, seen[-1] + 1.0 if seen.size else 0.0
        since = [min(part.memory[SINCE], part.memory[T] - base[T]) for part in states[1:]]
        m[SINCE] = sum(since) + (base[SINCE] if m[SEEN] == base[SEEN] else 0.0)
        self.slots[...], m[USED] = lines.slots(self.size()), float(lines.size)
        m[CLOSED] = float(lines.too_many or m[CLOSED] > 0.0)
        running = WIDE if m[CLOSED] > 0.0 else KINDS
        self.kinds[:running], self.kinds[running:] = 1.0 / running, -1.0

    def _average_weights(self, parts: Sequence[ClassPool], by_part: Any) -> None:
        """The mean of the parts' weights of kinds 0 to 2."""
        r, total, after = len(self.rates), np.zeros(self.weights.shape), divisors(self.stats)
        for part, share in zip(parts, by_part, strict=True):
            before = divisors(part.stats)
            for kind in range(WIDE):
                block = slice(kind * r, (kind + 1) * r)
                by = ratios(after[kind], before[kind])[:, None, None] * share[:, None]
                total[:, :, block] += part.weights[:, :, block] * by
        limit = float(np.finfo(self.weights.dtype).max)
        self.weights[...] = np.clip(total, -limit, limit)

    def _merge_centres(self, lines: Lines, states: Sequence[ClassPool]) -> None:
        """Means and deviations of the features: those of one pass, because a feature that does not occur is 0."""
        centres = [lines.rows(k, state.centres) for k, state in enumerate(states)]
        means, spreads = ([own[:, column] for own in centres] for column in (MEAN, SPREAD))
        mean, spread = pooled_moments([state.memory[T] for state in states], means, spreads)
        self.centres[...] = 0.0
        self.centres[: lines.size, MEAN], self.centres[: lines.size, SPREAD] = mean, spread

    def _merge_lines(self, lines: Lines, parts: Sequence[ClassPool], by_part: Any) -> None:
        """The mean of the parts' weights of kinds 3 to 5, as weights of features that are centred as all are now.

        The score of a row is Σ_j a_j(x_j − mean_j) + a_0, where a_j is the weight divided by the deviation: a_j is
        averaged, and so is a_0 − Σ_j a_j·mean_j, the score of x = 0.
        """
        n, bias = lines.size, lines.coordinates == 0
        total, at_zero = np.zeros((n, *self.lines.shape[1:])), np.zeros(self.lines.shape[1:])
        for k, (part, share) in enumerate(zip(parts, by_part, strict=True), 1):
            mean, by = part._centring(lines.rows(k, part.centres), bias)
            raw = lines.rows(k, part.lines) * by[:, None, None] * share[:, None]
            total += raw
            at_zero -= np.tensordot(mean, raw, 1)
        mean, by = self._centring(self.centres[:n], bias)
        at_zero += np.tensordot(mean, total, 1)
        self.lines[...] = 0.0
        self.lines[:n] = np.divide(total, by[:, None, None], out=np.zeros_like(total), where=by[:, None, None] > 0.0)
        self.lines[:n][bias] += at_zero

    def _centring(self, centres: Any, bias: Any) -> tuple[Any, Any]:
        """What is subtracted from the features of some lines, and what they are multiplied by then.

        The line of an intercept, whose feature is always 1, stays as it is; `bias` says which it is. A feature that is
        always the same is not counted.
        """
        mean, spread = centres.T
        n = self.memory[T]
        flat = ~(spread > FLAT * n * mean * mean)
        by = np.where(flat, 0.0, np.sqrt(n / np.where(flat, 1.0, spread)))
        constant = bias & flat & (mean != 0.0)
        return np.where(constant, 0.0, mean), np.where(constant, 1.0, by)

    def require_sane(self, algorithm: Any) -> None:
        """Refuse a stored state that rounds could not go on from: what compiled code takes for granted."""
        m, used = self.memory, float(self.memory[USED])
        lines = np.sort(self.slots[self.slots > 0])
        if not 0.0 <= used <= NARROW or not np.array_equal(lines, np.arange(1, lines.size + 1)) or lines.size != used:
            raise DataError("its lines do not fit its features")
        seen = np.flatnonzero(self.counts)
        if m[SEEN] != seen.size or m[HIGHEST] != (seen[-1] + 1 if seen.size else 0) or not m[SINCE] >= 0.0:
            raise DataError("its classes do not fit together")
        running = self.kinds >= 0.0
        shares = self.members[SHARES]
        if not running[:WIDE].all() or (running[WIDE:] != (m[CLOSED] == 0.0)).any() or m[CLOSED] not in (0.0, 1.0):
            raise DataError("its members do not fit together")
        weighty = (shares.reshape(KINDS, -1).sum(axis=1) > 0.0).all() and np.isfinite(shares).all()
        if not (self.kinds.max() > 0.0 and weighty and (m[[HEAVIEST, ETA]] >= 0.0).all()):
            raise DataError("its members have no weight")
        trial = self.trial
        due, copied = float(trial[DUE]), trial[[COPIED_ROUNDS, COPIED_USED, COPIED_CLOSED]]
        fits = 0.0 <= copied[0] <= m[T] and copied[1] in range(int(used) + 1) and copied[2] in (0.0, 1.0)
        if due != next_copy(due - 1.0) or not fits or (trial[[EARLIER, LAST, LATEST]] < 0.0).any():
            raise DataError("the trials of its frozen copies are impossible")
