"""`ClassStage`: softmax learners over mapped features, which are 0 or 1, and over the predictions of other stages.

The score of class c is Σ_j w_jc over the mapped features j of the row plus Σ_o (1/n + a_oc) ln p_o(c) over the n
predictions p_o that are offered, so the stage begins with their geometric mean. Weights w and a have a learner for each
rate and kind, as in `rue.learners.softmax.softmax`:

| kind | direction f_j of class c | forgets |
|---|---|---|
| 0 | x_j/(1 + √Σg²x²) | never |
| 1 | x_j/(1 + √Σg²x²) | 1 % at each visit |

with g = P − 1{c = y}, P the probability by the kind's own mixture, and implicit steps (`SoftmaxRule.choose_steps`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import kernel, lanes, noinline, values
from rue.compiled.arithmetic import exp, root
from rue.compiled.intrinsics import LANES, fetch, gather_rows, move_lanes
from rue.errors import DataError
from rue.layout import Layout
from rue.learners.mixture.layout import SHARES
from rue.learners.mixture.mixing import Experts
from rue.learners.points import T
from rue.learners.softmax.layout import HIGHEST, SEEN, SINCE
from rue.learners.staged.class_layout import CLASS_STAGE, FORGETS, KINDS
from rue.maps.base import FEATURES
from rue.memory import aligned_zeros

__all__ = ["ClassStage"]

NUMBERS = 3 * 2**18
"""How many pairs of a feature and a class may have weights in a stage: it then takes 38 MB."""
FAR = 20.0
"""Scores, and logarithms of probabilities that are offered, are clipped to ± this."""
BY_VISIT = 0.99
"""What is left of the sums of kind 1 after a visit."""
_STATE = ("weights", "sums", "copies")


@lanes(results=2, abreast=LANES)
def taken_in(total: Any, left: Any, square: Any) -> Any:
    """Σg², of which a part is `left`, with one more square, and the direction 1/(1 + √Σg²)."""
    after = total * left + square
    return after, 1.0 / (1.0 + root(after))


@lanes(abreast=LANES)
def sum_of(x: Any, y: Any) -> Any:
    return x + y


@kernel
def predict_copied(copies: Any, offered: Any, lines: Any, features: Any, logs: Any, known: Any, out: Any) -> None:
    """The probabilities by frozen copies, from a row's mapped features and the predictions that are offered."""
    top, total, start = -math.inf, 0.0, 1.0 / offered.shape[0]
    for c in range(out.size):
        out[c] = 0.0
        for o in range(offered.shape[0]):
            out[c] += (start + offered[o, c]) * logs[c, o]
    for k in range(features.size):
        line = lines[features[k]]
        for c in range(out.size):
            out[c] += copies[line, c]  # 0 in the row of those that have none
    for c in range(out.size):
        top = max(top, out[c]) if known[c] > 0.0 else top
    for c in range(out.size):
        out[c] = math.exp(max(-2.0 * FAR, out[c] - top)) if known[c] > 0.0 else 0.0
        total += out[c]
    for c in range(out.size):
        out[c] /= total


@values
class ClassStage(NamedTuple):
    """The state of a stage; arrays of scores have a place for each class and member."""

    lines: Any
    """For each mapped feature its row in `weights` and `sums`; 0, which stays empty, until it occurs."""
    weights: Any
    sums: Any
    offered: Any
    offered_sums: Any
    copies: Any
    offered_copies: Any
    members: Any
    kinds: Any
    memory: Any
    counts: Any
    scratch: Any
    scores: Any
    chances: Any
    mixed: Any
    along: Any
    squares: Any
    left: Any
    notes: Any
    offered_notes: Any
    spots: Any
    """The rows of the features of the present row of data; the last two places: how many, and how many have none."""
    ones: Any
    given: Any
    """How many rows have been given out."""
    rates: Any
    """The number of rates as a tuple of that length."""
    both: Any
    """The number of members as a tuple of that length."""
    way: Any

    @property
    def layout(self) -> Layout:
        return CLASS_STAGE

    def size(self) -> Any:
        return self.lines.size

    def classes(self) -> Any:
        """How many classes there is room for."""
        return self.counts.shape[0]

    def experts(self) -> Any:
        return Experts(self.members, self.kinds, self.memory, self.way)

    def most(self) -> Any:
        """How many features may have weights, with the classes learnt so far."""
        return NUMBERS // max(4, int(self.memory[HIGHEST]))

    def full(self) -> Any:
        """Whether the features of another row may find no room in the arrays, though they may have weights."""
        room = self.weights.shape[0] - 1
        return self.given[0] + FEATURES > room and room < min(self.most(), self.lines.size)

    # Predicting.

    def predict(self, features: Any, many: Any, logs: Any) -> None:
        """Every member's probabilities into `chances`, the mixture's and the kinds' into `mixed`."""
        highest, members, r = int(self.memory[HIGHEST]), self.members.shape[1], self.spots.size
        scores, spots, known = self.scores, self.spots, 0
        for k in range(many):
            fetch(self.lines, features[k])
        for k in range(many):
            spots[k] = self.lines[features[k]]
        missing = 0
        for k in range(many):  # those that have none are left out
            line = spots[k]
            missing += line == 0
            spots[known] = line
            known += line > 0
        spots[r - 2], spots[r - 1] = known, missing
        start = 1.0 / self.offered.shape[0]
        table = self.weights.reshape(self.weights.shape[0], self.weights.shape[1] * members)
        for c in range(highest):
            for i in range(members):
                total = 0.0
                for o in range(self.offered.shape[0]):
                    total += (start + self.offered[o, c, i]) * logs[c, o]
                scores[c * members + i] = total
            if self.counts[c] > 0.0:
                gather_rows(scores, c * members, table, spots, c * members, self.ones, known, self.both)
        self.normalise()
        self.mix()

    @noinline
    def normalise(self) -> None:
        """The probabilities that scores stand for."""
        scores, chances, many = self.scores, self.chances, self.members.shape[1]
        top, total = self.scratch[0], self.scratch[1]
        for i in range(many):
            top[i] = -math.inf
            total[i] = 0.0
        for c in range(int(self.memory[HIGHEST])):
            if self.counts[c] > 0.0:
                for i in range(many):
                    top[i] = max(top[i], scores[c * many + i])
        for c in range(int(self.memory[HIGHEST])):
            if self.counts[c] > 0.0:
                for i in range(many):
                    s = max(-2.0 * FAR, scores[c * many + i] - top[i])
                    chance = exp(s)
                    chances[c * many + i] = chance
                    total[i] += chance
        for c in range(int(self.memory[HIGHEST])):
            for i in range(many):
                chances[c * many + i] = chances[c * many + i] / total[i] if self.counts[c] > 0.0 else 0.0

    def mix(self) -> None:
        """Mix the members' probabilities, kind by kind."""
        r, many, shares = len(self.rates), self.members.shape[1], self.members[SHARES]
        weight = 0.0
        for c in range(int(self.memory[HIGHEST])):
            self.mixed[c, 0] = 0.0
        for kind in range(KINDS):
            share = 0.0
            for i in range(kind * r, kind * r + r):
                share += shares[i]
            weight += self.kinds[kind]
            for c in range(int(self.memory[HIGHEST])):
                here = 0.0
                for i in range(kind * r, kind * r + r):
                    here += shares[i] * self.chances[c * many + i]
                self.mixed[c, 1 + kind] = here / share
                self.mixed[c, 0] += self.kinds[kind] * (here / share)
        for c in range(int(self.memory[HIGHEST])):
            self.mixed[c, 0] /= weight

    # Learning: `measure` the row that was predicted, then `advance` by the steps that stand in `scores`.

    @noinline
    def claim(self, features: Any, many: Any) -> None:
        """Give rows to those features that have none, while there are any."""
        spots, known, last = self.spots, 0, min(self.most(), self.weights.shape[0] - 1)
        for k in range(many):
            j = features[k]
            if self.lines[j] == 0 and self.given[0] < last:
                self.given[0] += 1
                self.lines[j] = self.given[0]
            spots[known] = self.lines[j]
            known += self.lines[j] > 0
        spots[spots.size - 2] = known

    def measure(self, features: Any, many: Any, logs: Any, y: Any, weight: Any) -> None:
        """Enter the row, of class y, into the sums, and find ⟨f, x⟩ of every kind and class."""
        highest, spots, along = int(self.memory[HIGHEST]), self.spots, self.along
        if spots[spots.size - 1] > 0:
            self.claim(features, many)
        for c in range(highest):
            for kind in range(KINDS):
                g = weight * (self.mixed[c, 1 + kind] - (1.0 if c == y else 0.0)) if self.counts[c] > 0.0 else 0.0
                self.squares[c, kind], along[c, kind] = g * g, 0.0
                self.left[c, kind] = BY_VISIT if kind == FORGETS else 1.0
        for o in range(self.offered.shape[0]):
            for c in range(highest):
                for kind in range(KINDS):
                    v, total = logs[c, o], self.offered_sums[o, c, kind]
                    total = self.left[c, kind] * total + self.squares[c, kind] * v * v
                    self.offered_sums[o, c, kind] = total
                    f = v / (1.0 + math.sqrt(total))
                    self.offered_notes[o, c, kind] = f
                    along[c, kind] += f * v
        n, wide = highest * KINDS, self.sums.shape[1] * KINDS
        sums, notes = self.sums.reshape(-1), self.notes.reshape(-1)
        squares, left, alongs = self.squares.reshape(-1), self.left.reshape(-1), along.reshape(-1)
        for k in range(spots[spots.size - 2]):
            total, f = sums[spots[k] * wide : spots[k] * wide + n], notes[k * wide : k * wide + n]
            taken_in(0, n, total, f, total, left, squares)
            sum_of(0, n, alongs, alongs, f)

    def advance(self) -> None:
        """Every member takes its step."""
        highest, r, members, spots = int(self.memory[HIGHEST]), len(self.rates), self.members.shape[1], self.spots
        room, steps = self.weights.shape[1], self.scores
        for k in range(spots[spots.size - 2]):
            for c in range(highest):
                place = (spots[k] * room + c) * members
                for kind in range(KINDS):
                    for i in range(0, r, LANES):
                        at = kind * r + i
                        move_lanes(self.weights, place + at, steps, c * members + at, self.notes[k, c, kind])
        for o in range(self.offered.shape[0]):
            for c in range(highest):
                for i in range(members):
                    self.offered[o, c, i] -= steps[c * members + i] * self.offered_notes[o, c, i // r]

    # Frozen copies.

    def shares(self) -> Any:
        """The share of each member in the mixture."""
        shares = self.members[SHARES].reshape(KINDS, -1)
        shares = shares / shares.sum(axis=1, keepdims=True) * (self.kinds / self.kinds.sum())[:, None]
        return shares.reshape(-1)

    def mean_weights(self) -> tuple[Any, Any]:
        """The members' mean weights, of mapped features and of the predictions that are offered."""
        shares = self.shares()
        return self.weights @ shares.astype(self.weights.dtype), self.offered @ shares

    def copy_weights(self) -> None:
        """Copy the mean weights; the copies stand still until they are taken anew."""
        self.copies[...], self.offered_copies[...] = self.mean_weights()

    def copied_chances(self, features: Any, logs: Any, known: Any, out: Any) -> None:
        """What the copies give each class into `out`, as `predict` has it; classes not `known` then get 0."""
        predict_copied(self.copies, self.offered_copies, self.lines, features, logs, known, out)

    def standing(self) -> ClassStage:
        """A stage of its own whose every member has the mean weights: what is frozen of it."""
        weights, offered = self.mean_weights()
        many = self.members.shape[1]
        fields = {array.name: getattr(self, array.name).copy() for array in self.layout if array.name not in _STATE}
        fields |= {
            "weights": np.repeat(weights[:, :, None], many, axis=2),
            "offered": np.repeat(offered[:, :, None], many, axis=2),
            "sums": np.zeros((0, *self.sums.shape[1:])),
            "copies": np.zeros((0, *self.copies.shape[1:]), self.copies.dtype),
        }
        return self._replace(**fields, lines=self.lines.copy(), spots=self.spots.copy())

    # Room, and the form that files have.

    def with_room(self) -> ClassStage:
        """Twice as many rows, or all it may have; called between two rows of data, so any block size gives the same."""
        rows = min(2 * self.weights.shape[0], self.most() + 1, self.lines.size + 1)
        return self._replace(**{name: _longer(getattr(self, name), rows) for name in _STATE})

    def admitting(self, classes: int) -> ClassStage:
        """Room for more classes."""
        many = classes * self.members.shape[1]
        grown = self.layout.grown(self, "class", classes)
        return self._replace(**grown, scores=np.zeros(many), chances=np.zeros(many))

    def with_classes(self, room: int, numbers: Any = None) -> ClassStage:
        """With room for so many classes, and class c + 1 called `numbers[c]`, if that is given."""
        moved = self.admitting(room)
        if numbers is None:
            return moved
        own = np.asarray(numbers, dtype=np.int64) - 1
        for array in self.layout:
            if array.saved and "class" in array.axes:
                axis = array.axes.index("class")
                before, after = (np.moveaxis(getattr(pool, array.name), axis, 0) for pool in (self, moved))
                after[...] = 0.0
                after[own] = before[: own.size]
        moved = moved._replace(memory=self.memory.copy())
        moved.memory[HIGHEST] = np.flatnonzero(moved.counts)[-1] + 1.0 if moved.counts.any() else 0.0
        return moved

    def own_features(self) -> Any:
        """The mapped features that have a row, in order; feature 0, which never occurs, if none has."""
        used = np.flatnonzero(self.lines)
        return used if used.size else np.zeros(1, dtype=np.int64)

    def laid_out(self) -> ClassStage:
        """With the rows of its `own_features` alone, in their order, as a file has them; not for rounds."""
        if self.lines is None:
            return self
        rows = self.lines[self.own_features()]
        return self._replace(lines=None, **{name: getattr(self, name)[rows] for name in _STATE})

    def with_own_features(self, used: Any) -> ClassStage:
        """A stage with empty rows for these mapped features alone."""
        size, rows = self.lines.size, FIRST_ROWS
        lines = np.zeros(size, dtype=np.uint32)
        lines[used] = np.arange(1, used.size + 1)
        while rows <= used.size:
            rows *= 2
        shapes = {name: getattr(self, name) for name in _STATE}
        state = {
            name: aligned_zeros((min(rows, size + 1), *like.shape[1:]), like.dtype) for name, like in shapes.items()
        }
        return self._replace(lines=lines, given=np.array([used.size]), **state)

    def emptied(self) -> ClassStage:
        """Without rows: what is left of a stage that has retired."""
        state = {name: getattr(self, name)[:1].copy() for name in _STATE}  # row 0 stays empty
        return self._replace(lines=np.zeros_like(self.lines), given=np.zeros_like(self.given), **state)

    def spread_over(self, used: Any) -> ClassStage:
        """With a row for each of these mapped features, among which its own are, to be merged; not for rounds."""
        rows = self.lines[used]
        return self._replace(lines=None, **{name: getattr(self, name)[rows] for name in _STATE})

    def merged(self, algorithm: Any, parts: Sequence[ClassStage]) -> ClassStage:
        """The stage of several parts of a stream together.

        As for `ClassPool`: sums are added, and the weights of a class are averaged over the parts that know it.
        """
        used = np.unique(np.concatenate([stage.own_features() for stage in (self, *parts)]))
        opened, base = self.with_own_features(used[used > 0]), self.spread_over(used)
        parts = [part.spread_over(used) for part in parts]
        merged = base._replace(**base.layout.merged(base, parts))
        knowing = np.array([part.counts > 0.0 for part in parts])
        by_part = knowing / np.maximum(1, knowing.sum(axis=0))
        for name in ("weights", "offered"):
            total = sum(
                getattr(part, name) * share[:, None].astype(getattr(part, name).dtype)
                for part, share in zip(parts, by_part, strict=True)
            )
            getattr(merged, name)[...] = total
        m, seen = merged.memory, np.flatnonzero(merged.counts)
        m[SEEN], m[HIGHEST] = seen.size, seen[-1] + 1.0 if seen.size else 0.0
        merged.experts().resettle(merged.scratch, [state.experts().weights() for state in (self, *parts)])
        weights, offered = merged.mean_weights()
        merged = merged._replace(copies=weights, offered_copies=offered)
        for name in _STATE:
            getattr(opened, name)[opened.lines[used]] = getattr(merged, name)
        return merged._replace(**{name: getattr(opened, name) for name in (*_STATE, "lines", "given")})

    def require_sane(self, algorithm: Any) -> None:
        """Refuse a state from a file that rounds could not go on from."""
        m, seen = self.memory, np.flatnonzero(self.counts)
        if m[SEEN] != seen.size or m[HIGHEST] != (seen[-1] + 1 if seen.size else 0) or not m[SINCE] >= 0.0:
            raise DataError("the classes of its stages do not fit together")
        if not 0.0 <= m[T] <= 2.0**53 or (self.kinds < 0.0).any():
            raise DataError("the members of its stages do not fit together")
        self.experts().require_sane()


FIRST_ROWS = 4096
"""How many rows a stage has room for at first."""


def _longer(array: Any, rows: int) -> Any:
    longer = aligned_zeros((rows, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
