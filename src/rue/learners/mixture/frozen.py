"""What is frozen when a mixture is saved: chosen by how well frozen copies of its members have done.

Who leads while labels come is not who does best once they stop: a member that follows the day leads, and the next day
its weights are stale. So frozen models are tried out while the mixture learns. After rounds 256, 512, 1024, … the
weights of all members are copied, and the copies, which then stand still, are scored on a sample of the examples up to
the next copy: they are left alone for as long as they had learnt. The *candidates* are the members that still run,
the mean of their weights that the mixture plays, and a constant. With S_c what the copies of candidate c have lost in
all periods together, the frozen model has the weights

    w = Σ_c q_c w_c,   q_c ∝ π_c exp(−a·(S_c − min S)/max(min S, L)),   1/a = 1/(6 + 94·κ) + 1/(0.15·n),
    κ = 1/(1 + 10·(min S/L − 1)),

where w_c are the candidate's *present* weights, L is what the mixture itself lost on the same examples while it
learnt, and n is how many they are: one linear model, whose predictions are clipped (`PoolPoint.range`). The mean that
the mixture plays is charged with Σ p_i S_i if that is more than its copies lost, with p_i its members' shares *now*:
a few last rows, say all of one class, may have given the lead to members that are stale at once. The more frozen
models lose beyond L, the more the stream changes, and the less should past differences between them be relied on; nor
should they while few examples were tried. π is e^(10κ) for the mean that the mixture plays, which on a calm stream is
the model to keep unless another is clearly better, 10 for the constant, and 1 for the others.
docs/decisions/0026 has what was measured.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import inline, noinline, values
from rue.compiled.intrinsics import fetch, gather_rows
from rue.learners.mixture.columns import NEAR, divisors
from rue.learners.mixture.layout import (
    CANDIDATES,
    CENTRE,
    COLUMNS,
    CONSTANT,
    COPIED,
    COPY,
    DIAGONAL,
    DIVISORS,
    DUE,
    EARLIER,
    FIRST,
    HIGH,
    KINDS,
    LARGEST,
    LAST,
    LATEST,
    LOW,
    MATRICES,
    SCALED,
    SHARES,
    SQUARES,
    TRIAL,
    UNIT,
    USED,
    VALUE,
    VISITS,
)
from rue.learners.points import T
from rue.memory import aligned_zeros
from rue.norms import LARGEST_TERM, SMALL, UP

__all__ = [
    "CONSTANT_GUESS",
    "FIRST_TRIAL",
    "LIVE",
    "MEAN_OF_MEMBERS",
    "Copies",
    "begin_copies",
    "copy_anew",
    "next_copy",
    "preferences",
    "sharpened",
]

FIRST_COPY = 256
"""After how many rounds the weights are copied first; then whenever that number has doubled."""
SAMPLE, ENOUGH = 8, 1024
"""Copies are scored on one in eight examples, but not on more than so many in a period."""
FIRST_TRIAL = FIRST_COPY + SAMPLE
"""After how many rounds copies have been scored for the first time."""
AHEAD = 12
"""Prefetch distance, in features."""
LEAST_SHARPNESS, SHARPNESS, CALMNESS = 6.0, 100.0, 10.0
"""a is `SHARPNESS` where frozen copies lose no more than the mixture that learns, and falls to the least; how fast."""
TOLD_BY_ONE = 0.15
"""a is at most so much for each example on which the copies were scored."""
FAVOUR_OF_MIXTURE = 10.0
"""The logarithm of how much more the mixture as it plays counts on a calm stream."""
FAVOUR = 10.0
"""How much more the constant counts than any other candidate before anything is known: it never goes stale."""
MEAN_OF_MEMBERS, CONSTANT_GUESS, LIVE = -3, -2, -1
"""The last columns of `candidates`, behind those of the members in the order of their kinds' numbers; `LIVE`, which is
no candidate, has what the mixture itself lost on the same examples."""


def next_copy(rounds: float) -> float:
    """The first of the rounds 256, 512, 1024, … after so many."""
    return float(FIRST_COPY * 2 ** max(0, math.floor(math.log2(max(rounds, 1.0) / FIRST_COPY)) + 1))


def begin_copies(rows: int, rates: int, narrow: int, precision: Any) -> dict[str, Any]:
    """The arrays of a pool that are about copies, before its first round; with `rows` for the features."""
    trial = np.zeros(len(TRIAL))
    trial[DUE] = FIRST_COPY
    return {
        "copies": aligned_zeros((rows, DIAGONAL * rates), precision),
        "divisors": aligned_zeros((rows, len(DIVISORS))),
        "copied_matrices": np.zeros((MATRICES, narrow, rates)),
        "candidates": np.zeros((len(CANDIDATES), KINDS * rates + 3)),
        "trial": trial,
    }


def preferences(candidates: Any, possible: Any, rounds: float, shares: Any) -> Any:
    """The share q_c of each candidate in the frozen model after so many rounds; none if it is not `possible`.

    `shares` are the members' in the mixture as it plays now.
    """
    lost = candidates[: len(COPY)].sum(axis=0)
    of_now = float(np.ravel(shares) @ lost[:MEAN_OF_MEMBERS])  # by convexity at least what their mean would have lost
    lost[MEAN_OF_MEMBERS] = max(lost[MEAN_OF_MEMBERS], of_now)
    live, lost = float(lost[LIVE]), np.where(possible, lost, math.inf)
    playing = np.zeros(lost.size)
    playing[MEAN_OF_MEMBERS] = 1.0
    q = sharpened(lost, live, rounds, playing)
    q[CONSTANT_GUESS] *= FAVOUR if lost.min() > 0.0 else 1.0
    return q / q.sum()


def sharpened(lost: Any, live: float, rounds: float, playing: Any) -> Any:
    """π_c exp(−a·(S_c − min S)/max(min S, L)) of what candidates have lost.

    `live` is what the mixture lost as it learnt, `playing` the shares that the candidates have in it.
    """
    least = float(lost.min())
    if least <= 0.0:  # nothing lost, or a loss that may be negative: the best alone
        return (lost == least) / (lost == least).sum()
    a, favour = sharpness(least, live, rounds)
    with np.errstate(over="ignore"):
        return np.exp(-a * (lost - least) / max(least, live)) * (1.0 + favour * playing)


@inline
def sharpness(least: Any, live: Any, rounds: Any) -> Any:
    """a, and e^(10κ) − 1, when the best candidate has lost `least` and the mixture `live`."""
    calm = 0.0 if live <= 0.0 else 1.0 / (1.0 + CALMNESS * max(0.0, least / live - 1.0))
    many = max(1.0, (rounds - FIRST_COPY) / SAMPLE)
    a = 1.0 / (1.0 / (LEAST_SHARPNESS + (SHARPNESS - LEAST_SHARPNESS) * calm) + 1.0 / (TOLD_BY_ONE * many))
    return a, math.exp(FAVOUR_OF_MIXTURE * calm) - 1.0


def copy_anew(pool: Any, shares: Any, constant: float) -> None:
    """Copy the weights that parts of a stream have together; what copies have lost so far becomes one period.

    `shares` are the members' in the mixture, and `constant` is the constant that it would predict now.
    """
    seen, r = pool.stats[:, VISITS] > 0.0, len(pool.rates)
    by_root, by_first, by_largest = divisors(pool.stats)
    by_matrix = pool.stats[:, FIRST] if pool.exact else by_root
    pool.divisors[...] = np.stack((by_root, by_first, by_largest, by_matrix), axis=1) * seen[:, None]
    pool.copies[...] = pool.weights
    pool.copied_matrices[...] = pool.matrices[:, :, :r]
    pool.candidates[COPIED, :MEAN_OF_MEMBERS] = shares.ravel()
    for table in (pool.candidates, pool.trial):
        table[LAST] = table[: len(COPY)].sum(axis=0)
        table[EARLIER] = table[LATEST] = 0.0
    pool.trial[CONSTANT], pool.trial[DUE] = constant, next_copy(float(pool.memory[T]))


@values
class Copies(NamedTuple):
    """What a pool has of copies, and what they need of the pool; its fields are the pool's."""

    lines: Any
    weights: Any
    stats: Any
    slots: Any
    matrices: Any
    members: Any
    kinds: Any
    seats: Any
    memory: Any
    notes: Any
    spots: Any
    given: Any
    copies: Any
    divisors: Any
    copied_matrices: Any
    candidates: Any
    trial: Any
    rates: Any
    exact: Any

    def every(self) -> Any:
        """On one in how many examples of this period the copies are scored; each stands for as many in the sums."""
        return max(SAMPLE, int(self.trial[DUE]) // (2 * ENOUGH))

    def due(self) -> Any:
        """Whether the example of this round is one on which copies are scored, or the weights are to be copied."""
        t, due = self.memory[T], self.trial[DUE]
        return t >= due or (due > FIRST_COPY and int(t) % self.every() == 0)

    @noinline
    def try_out(self, loss: Any, row: Any, y: Any, weight: Any, cost: Any, room: Any) -> None:
        """Charge the candidates with what their copies would have lost on an example, and the mixture with its cost.

        `room` has a place for each member; in the first of them the prediction of `chosen` is left.
        """
        every, members, begin, n = self.every(), KINDS * len(self.rates), np.int64(0), np.int64(row.many())
        if self.trial[DUE] == FIRST_COPY or int(self.memory[T]) % every != 0:
            return  # nothing has been copied yet, or this example is not in the sample
        for i in range(members):
            room[i] = 0.0
        while begin < n:
            begin = self.add_features(row, begin, n, room)
        mean, spent = 0.0, self.candidates[LATEST]
        for i in range(members):
            mean += self.candidates[COPIED, i] * room[i]
        chosen = self.chosen(room, mean)
        for i in range(members):
            spent[i] += every * self.charge(loss, room[i], y, weight)
        spent[members] += every * self.charge(loss, mean, y, weight)
        spent[members + 1] += every * self.charge(loss, self.trial[CONSTANT], y, weight)
        spent[members + 2] += every * cost
        room[0] = chosen
        self.trial[LATEST] += every * weight

    @noinline
    def chosen(self, p: Any, mean: Any) -> Any:
        """The prediction of the copies together, if they were chosen now; p has the members'."""
        members, least = KINDS * len(self.rates), math.inf
        for c in range(members + 2):
            if self.possible(c):
                least = min(least, self.lost(c))
        if not 0.0 < least < math.inf:
            return mean
        live = self.lost(members + 2)
        a, favour = sharpness(least, live, self.memory[T])
        total, prediction = 0.0, 0.0
        for c in range(members + 2):
            if self.possible(c):
                share = math.exp(-a * (self.lost(c) - least) / max(least, live))
                share *= 1.0 if c < members else 1.0 + favour if c == members else FAVOUR
                total += share
                prediction += share * (p[c] if c < members else mean if c == members else self.trial[CONSTANT])
        return prediction / total

    def possible(self, c: Any) -> Any:
        """Whether a candidate has not retired."""
        kind = c // len(self.rates)
        return kind >= KINDS or self.seats[kind] >= 0

    def lost(self, c: Any) -> Any:
        """What the copies of a candidate have lost in all periods."""
        return self.candidates[EARLIER, c] + self.candidates[LAST, c] + self.candidates[LATEST, c]

    def add_features(self, row: Any, begin: Any, end: Any, p: Any) -> Any:
        """Add as many features as there is room for in `notes` to the predictions of the copies; where to go on."""
        many, k, r, x, v = 0, begin, len(self.rates), self.notes[VALUE], self.notes[SCALED]
        while k < end and many < x.size:
            if k + AHEAD < end:
                self.prefetch(np.uint64(self.lines[row.feature(np.uint64(k + AHEAD))[0]]))
            j, value = row.feature(np.uint64(k))
            line = self.lines[j]
            self.spots[many], x[many] = line, value
            many += value != 0.0 and self.divisors[line, 0] > 0.0  # a feature that came later has no weight
            k += 1
        for kind in range(DIAGONAL):
            if self.seats[kind] >= 0:
                for i in range(many):
                    v[i] = x[i] / self.divisors[self.spots[i], kind % 3]  # kind 3 divides as kind 0 does
                gather_rows(p, kind * r, self.copies, self.spots, COLUMNS[kind] * r, v, many, self.rates)
        for i in range(many if self.memory[USED] > 0.0 else 0):
            slot = self.slots[self.spots[i]] - 1
            for which in range(MATRICES if slot >= 0 else 0):
                at, scaled = (DIAGONAL + which) * r, x[i] / self.divisors[self.spots[i], 3]
                for member in range(r):
                    p[at + member] += self.copied_matrices[which, slot, member] * scaled
        return k

    def prefetch(self, line: Any) -> None:
        """Prefetch what belongs to a feature that comes soon."""
        wide = np.uint64(self.copies.shape[1])
        fetch(self.divisors, line * np.uint64(self.divisors.shape[1]))
        fetch(self.copies, line * wide)
        # The weights of a feature take two cache lines (8 rates of 4 kinds in float32).
        fetch(self.copies, line * wide + wide // np.uint64(2))

    def charge(self, loss: Any, p: Any, y: Any, weight: Any) -> Any:
        """weight·ℓ of a prediction, which is in units of the labels; the most that a sum can bear if that is less."""
        m = self.memory
        value = weight * loss.value(m[CENTRE] + m[UNIT] * min(m[HIGH], max(m[LOW], p)), y)
        return value if value < LARGEST_TERM else LARGEST_TERM

    @noinline
    def take(self, constant: Any) -> None:
        """Copy the weights of all members as they are now; a new period begins."""
        r, wide = len(self.rates), self.weights.shape[1]
        for line in range(1, self.given[0] + 1):
            self.find_divisors(line)
            for i in range(wide):
                self.copies[line, i] = self.weights[line, i]
        for which in range(MATRICES):
            for line in range(self.copied_matrices.shape[1]):
                for i in range(r):
                    self.copied_matrices[which, line, i] = self.matrices[which, line, i]
        each, spent = self.members.shape[1] // KINDS, self.candidates
        for kind in range(KINDS):
            seat = self.seats[kind]
            for i in range(r):
                spent[COPIED, kind * r + i] = (
                    self.kinds[seat] * self.members[SHARES, seat * each + i] if seat >= 0 else 0.0
                )
        for i in range(spent.shape[1]):
            spent[EARLIER, i] += spent[LAST, i]
            spent[LAST, i], spent[LATEST, i] = spent[LATEST, i], 0.0
        trial = self.trial
        trial[EARLIER] += trial[LAST]
        trial[LAST], trial[LATEST] = trial[LATEST], 0.0
        trial[CONSTANT] = constant
        while trial[DUE] <= self.memory[T]:
            trial[DUE] *= 2.0

    def find_divisors(self, line: Any) -> None:
        """What kinds 0 to 5 divide a feature by at present; 0 for one that has not occurred."""
        stats, by = self.stats[line], self.divisors[line]
        if stats[VISITS] > 0.0:
            by[0] = math.sqrt(stats[SQUARES] / stats[VISITS]) / (UP if stats[LARGEST] < SMALL else 1.0)
            by[1] = max(stats[FIRST], stats[LARGEST] * NEAR)
            by[2] = stats[LARGEST]
            by[3] = stats[FIRST] if self.exact else by[0]
