"""One round of many softmax learners, mixed as B12 says.

Classes are numbered 1, 2, …, and may come at any time. Of every prediction a part 1/(1 + s)² is reserved for a class
never seen before, s the number of rounds since one came, and the members share the rest. All the rounds between two
new classes cost less than ln 2 by it, because Π (1 − 1/k²) over k ≥ 2 is ½, and a class that comes after s rounds
costs 2 ln(1 + s): however long the stream goes on after its last new class, the price stays as it is.

To name the new class costs ln m in addition, if it is the m-th: in the order of their names it may stand at any of m
places. Over a stream of C classes that is ln C!, what a learner pays that knows the C names and nothing else; without
it, noise of many classes would be learnt better than by the best constant, which knows them all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import kernel, lanes, noinline, parameter
from rue.compiled.arithmetic import higher, log
from rue.errors import SettingsError
from rue.learners import loop
from rue.learners.mixture.frozen import FIRST_TRIAL
from rue.learners.mixture.layout import COST, RATED_MEMBERS, RATES, SCRATCH, SHARES, STEP
from rue.learners.mixture.mixing import ByChance, Pooling, open_memory, require_share
from rue.learners.mixture.mixture import KIND_NAMES, margin_step
from rue.learners.points import T
from rue.learners.softmax.frozen import begin_copies
from rue.learners.softmax.layout import (
    CENTRES,
    CLASS_MEMORY,
    CLOSED,
    FEATURE_STATS,
    HIGHEST,
    KINDS,
    NARROW,
    ROOM,
    SEEN,
    SINCE,
    WIDE,
)
from rue.learners.softmax.softmax import ClassPool
from rue.losses import Loss
from rue.registry import register
from rue.streams.labels import MOST_CLASSES

__all__ = [
    "FULL",
    "GRID",
    "SOFTMAX_NAMES",
    "LogLoss",
    "Softmax",
    "SoftmaxRule",
    "bytes_of",
    "predict_classes",
    "run_class_rows",
]

GRID, MATRIX_GRID = (2.0**-9, 2.0**5), (2.0**-6, 2.0**1)
"""The ends of the grid of rates: for kinds 0 to 3, and for 4 and 5; half those of `Mixture`.

Of two classes both have weights that move, so that a score against the other moves twice as far.
"""
SOFTMAX_NAMES = (
    KIND_NAMES[0],
    KIND_NAMES[3],
    KIND_NAMES[2],
    "adaptive, centred",
    "second order, centred",
    "second order, centred, forgetting",
)
"""What kinds 0 to 5 of `rue.learners.softmax.softmax` are called."""
NOTES = 512
"""For how many features of a row the directions are noted; those of the others are computed again."""
MANY_FEATURES = 2**12
"""From how many features on only those that occur have a place, which holds numbers for each class and rate."""
FULL = loop.BROKEN + 1
"""Why a block stopped before a row: the stages need room for more features first."""
_LEAST = 1e-30
"""Less than any probability that members give to a class they know."""
_SUMS = 8 * WIDE
"""The bytes a feature and class take in addition to the weights."""


def bytes_of(rates: int) -> int:
    """The bytes a feature takes for each class, with so many rates."""
    return _SUMS + 4 * WIDE * rates


@register("part", "log-loss")
@parameter
class LogLoss(Loss):
    """−ln of the probability given to the class that came: the score is that probability.

    A score is negative where some other class had been given at least as much, that is, for a mistake.
    """

    labels = "the number of a class, 1, 2, …"
    task = "multiclass"

    def accepts(self, y: float) -> bool:
        return 1.0 <= y <= MOST_CLASSES and y == math.floor(y)

    def value(self, p: float, y: float) -> float:
        """−ln|p|."""
        return -math.log(abs(p))

    def slope(self, p: float, y: float) -> float:
        return -1.0 / p

    def at_once(self, first: Any, many: Any, values: Any, slopes: Any, p: Any, y: Any) -> None:
        """In the accounts slopes are 0: there is no certificate for models with a score a class."""
        for i in range(first, first + many):
            values[i], slopes[i] = self.value(p[i], y[i]), 0.0


@lanes()
def step_along(right: Any, wrong: Any, along: Any, rate: Any, weight: Any) -> Any:
    """An implicit step in units of ⟨f, x⟩, from the probabilities of the class that came and of the others together."""
    return margin_step(log(right / wrong), right, wrong, rate * weight * along) / higher(along, 1e-150)


@parameter
class SoftmaxRule:
    """One round of the pool."""

    loss: Any

    def score_of(self, point: Any, row: Any, c: Any) -> Any:
        """The score of class c; everything it rests on is left in the point."""
        point.predict_members(row)
        if point.counts[c] == 0.0:
            return -point.reserve_of_one()
        chance, wrong = point.mixed[c, 0], False
        for other in range(int(point.memory[HIGHEST])):
            wrong |= other != c and point.mixed[other, 0] >= chance
        chance *= 1.0 - point.reserve()
        return -chance if wrong else chance

    def learn(self, point: Any, row: Any, y: Any, weight: Any) -> Any:
        """The score of the class that came, and whether all was finite; if not, nothing has changed."""
        c = int(y) - 1
        if not math.isfinite(row.square()) or not math.isfinite(weight * weight) or y > point.classes():
            return math.nan, False
        p = self.score_of(point, row, c)
        value = self.loss.value(p, y)
        if not math.isfinite(value):
            return p, False
        if weight > 0.0:
            self.play_round(point, row, c, weight, weight * value)
        return p, True

    def play_round(self, point: Any, row: Any, c: Any, weight: Any, cost: Any) -> None:
        """Everything that changes; the members' predictions stand in the point, the mixture's cost is given."""
        m, experts = point.memory, point.experts()
        self.enter_costs(point, c, weight, cost)
        if point.counts[c] == 0.0:
            m[SINCE], m[SEEN], m[HIGHEST] = 0.0, m[SEEN] + 1.0, max(m[HIGHEST], c + 1.0)
        m[SINCE] += 1.0
        point.counts[c] += 1.0
        experts.charge(cost, weight, m[T] + 1.0, point.scratch, point.scratch)  # which has a row to spare
        running = m[CLOSED] == 0.0
        point.measure(row, c, weight)
        if running and m[CLOSED] > 0.0:
            for kind in range(KINDS - 1, WIDE - 1, -1):
                experts.retire(kind)
        self.choose_steps(point, c, weight)
        self.find_curvatures(point, weight)
        point.advance(row)
        m[T] += 1.0

    def enter_costs(self, point: Any, c: Any, weight: Any, cost: Any) -> None:
        """What the round costs each member, its share of the reserve included."""
        costs, many = point.members[COST], point.members.shape[1]
        reserved = weight * -math.log(1.0 - point.reserve()) if point.counts[c] > 0.0 else cost
        for i in range(many):
            costs[i] = reserved - weight * log(point.chances[c * many + i]) if point.counts[c] > 0.0 else cost

    def find_curvatures(self, point: Any, weight: Any) -> None:
        """The mean curvature of the classes at the mixed predictions of kinds 4 and 5."""
        for which in range(2):
            h = 0.0
            for c in range(int(point.memory[HIGHEST])):
                chance = point.mixed[c, WIDE + 2 + which]
                h += chance * (1.0 - chance)
            point.scratch[2, which] = weight * h / point.memory[SEEN]

    @noinline
    def choose_steps(self, point: Any, y: Any, weight: Any) -> None:
        """How far each member's scores are to move, for each class, into `scores`.

        Down the gradient of the log loss, and as far as an implicit step goes: z, the score of y against all the others
        together, moves to argmin_q a·ln(1 + e^−q) + ½(q − z)² with a = rate·weight·⟨f, x⟩. So no rate overshoots.
        """
        r, many, chances, steps = len(point.rates), point.members.shape[1], point.chances, point.scores
        right, wrong, along, step = point.scratch[0], point.scratch[1], point.scratch[2], point.scratch[STEP]
        highest = int(point.memory[HIGHEST])
        for i in range(many):
            wrong[i] = 0.0
            along[i] = point.along[y, i // r]
        for c in range(highest):
            for i in range(many):
                wrong[i] += chances[c * many + i] if c != y else 0.0
        known = chances[y * many] > 0.0 and wrong[0] > 0.0
        for i in range(many):
            right[i] = max(chances[y * many + i], _LEAST)
            wrong[i] = wrong[i] if known else 1.0
        for c in range(highest):
            for i in range(many):
                part = chances[c * many + i] / wrong[i] if c != y else 0.0
                along[i] += part * part * point.along[c, i // r]
        if not known:
            self.score_first(point, y)
        step_along(0, many, step, right, wrong, along, point.members[RATES], weight)
        for c in range(highest):
            for i in range(many):
                part = chances[c * many + i] / (wrong[i] if known else 1.0)
                steps[c * many + i] = step[i] * (part if c != y else -1.0)

    @noinline
    def score_first(self, point: Any, y: Any) -> None:
        """The probabilities, into `scratch`, of a class and of all others where one of the two was never seen.

        A class never seen has score 0; and while there is one class only, another one is imagined that has score 0.
        """
        many, scores, chances = point.members.shape[1], point.scores, point.chances
        for i in range(many):
            top, others = 0.0, 1.0
            for c in range(int(point.memory[HIGHEST])):
                if c != y and chances[c * many + i] > top:
                    top = chances[c * many + i]
                    others = math.exp(scores[c * many + i]) / top  # Σ e^score, from any class
            own = math.exp(scores[y * many + i]) if chances[y * many + i] > 0.0 else 1.0
            point.scratch[0, i], point.scratch[1, i] = own / (own + others), others / (own + others)


@kernel
def run_class_rows(
    rule: Any, point: Any, ledger: Any, rows: Any, y: Any, weights: Any, out: Any, begin: Any, probabilities: Any
) -> Any:
    """What `loop.run_rows` does, and in addition notes the probability of each class before the update.

    `probabilities` has a row for each example and a column for each class; without a row nothing is noted. NaN where
    the example was refused, 0 for a class that had not been learnt yet; what a row lacks to 1 is the probability that
    a class never seen before comes.
    """
    size = rows.coordinates()
    if size > point.size() or not ledger.room(size):
        return begin, loop.TOO_WIDE
    i, status, noted = begin, loop.OK, probabilities.shape[0] > 0
    while i < y.size and status <= loop.REFUSED:
        status = FULL if point.full() else loop.BROKEN
        if status != FULL and rows.sound(i):
            row = rows.row(i)
            status = loop.UNORDERED if not row.ordered() else loop.TOO_WIDE if not row.fits(size) else loop.OK
        if status == loop.OK:
            weight, known = weights[i] if weights.size > 0 else 1.0, 1.0 - point.reserve()
            p, status, scored = loop.Lesson(rule).give(point, row, y[i], weight, ledger)
            if status <= loop.REFUSED:
                out[i] = p if status == loop.OK else math.nan
                if noted:
                    for c in range(probabilities.shape[1]):
                        chance = point.mixed[c, 0] if c < point.mixed.shape[0] else 0.0
                        probabilities[i, c] = known * chance if status == loop.OK else math.nan
                ledger.next_row(rule.loss, rows, i, scored)
                i += 1
    ledger.close(rule.loss, rows, i)
    return i, status if status > loop.REFUSED else loop.OK


@kernel
def predict_classes(point: Any, rows: Any, out: Any, begin: Any) -> Any:
    """For each row the probability of a class never seen, then those of the classes."""
    size = rows.coordinates()
    if size > point.size():
        return begin, loop.TOO_WIDE
    for i in range(begin, out.shape[0]):
        if not rows.sound(i):
            return i, loop.BROKEN
        row = rows.row(i)
        if not row.ordered():
            return i, loop.UNORDERED
        if not row.fits(size):
            return i, loop.TOO_WIDE
        if not row.finite():
            return i, loop.BAD_FEATURE
        point.predict_members(row)
        out[i, 0] = point.reserve()
        for c in range(out.shape[1] - 1):
            out[i, 1 + c] = (1.0 - out[i, 0]) * point.mixed[c, 0]
    return out.shape[0], loop.OK


@register("algorithm", "softmax")
@parameter
class Softmax(Pooling):
    """The algorithm behind `SoftmaxMixture`."""

    name: Any
    loss: Any
    rates: int
    """How many members each kind has."""
    share: Any = None
    """The rule of fixed share, "1/t", or None."""

    kind_names = SOFTMAX_NAMES

    def __post_init__(self) -> None:
        if type(self.loss) is not LogLoss:
            raise SettingsError("SoftmaxMixture: the loss is the log loss, which cannot be subclassed.")
        self.require_rates()
        object.__setattr__(self, "share", require_share("SoftmaxMixture", self.share))

    @property
    def budget(self) -> int:
        """The bytes a feature takes for each class."""
        return bytes_of(self.rates)

    def bytes_per_feature(self, point: Any) -> int:
        """What a feature takes with room for the classes that came, and for a few more; frozen copies included."""
        return self.bytes_per_coordinate * int(point.classes()) + 16 * len(FEATURE_STATS) + 8

    def describe(self) -> str:
        return f"budget={self.budget}"

    def explain(self, size: int) -> str:
        how = "exponential weights" if self.share is None else "fixed share"
        return (
            f"no step to choose: {KINDS * self.rates} members, {self.rates} rates from {GRID[0]:g} to {GRID[1]:g} of "
            f"{KINDS} kinds, mixed by {how}; {self.bytes_per_coordinate} bytes a feature and class"
        )

    @property
    def wide(self) -> int | None:
        """Of features times classes only those that occur get a place, from few features on."""
        return MANY_FEATURES

    @property
    def bytes_per_coordinate(self) -> int:
        """For each class, frozen copies included; some seventy bytes more, for the feature itself, are not counted."""
        return self.budget + 4 * WIDE * self.rates

    @property
    def tries_frozen(self) -> int | None:
        return FIRST_TRIAL

    def start(self, size: int, first: Any = None, room: int | None = None) -> tuple[SoftmaxRule, ClassPool]:
        size = size if room is None else room
        size, r, classes = max(size, 1), self.rates, 4
        members = np.zeros((len(RATED_MEMBERS), KINDS * r))
        members[SHARES] = 1.0 if self.share is None else 1.0 / r
        grid, matrix_grid = (np.geomspace(*ends, r) for ends in (GRID, MATRIX_GRID))
        members[RATES] = np.concatenate([grid] * (WIDE + 1) + [matrix_grid] * 2)
        pool = ClassPool(
            weights=np.zeros((size, 0, WIDE * r), dtype=np.float32),
            sums=np.zeros((size, 0, WIDE)),
            stats=np.zeros((size, len(FEATURE_STATS))),
            slots=np.zeros(size, dtype=np.int64),
            lines=np.zeros((NARROW, 0, (KINDS - WIDE) * r)),
            line_sums=np.zeros((NARROW, 0)),
            centres=np.zeros((NARROW, len(CENTRES))),
            inverses=np.zeros((NARROW, 2, NARROW)),
            members=members,
            kinds=np.full(KINDS, 1.0 / KINDS),
            memory=open_memory(CLASS_MEMORY, chances=True),
            counts=np.zeros(0),
            copies=np.zeros((size, 0, WIDE * r), dtype=np.float32),
            copied_lines=np.zeros((NARROW, 0, (KINDS - WIDE) * r)),
            copied_stats=np.zeros((size, len(FEATURE_STATS))),
            copied_centres=np.zeros((NARROW, len(CENTRES))),
            copied_counts=np.zeros(0),
            **begin_copies(r),
            scratch=np.zeros((len(SCRATCH), KINDS * r)),
            scores=np.zeros(0),
            chances=np.zeros(0),
            mixed=np.zeros((0, 1 + KINDS)),
            along=np.zeros((0, KINDS)),
            room=np.zeros((len(ROOM), NARROW)),
            notes=np.zeros((NOTES, 0, WIDE)),
            rates=(0,) * r,
            way=ByChance(0.0 if self.share is None else 1.0),
        )
        return SoftmaxRule(self.loss), pool.admitting(classes)
