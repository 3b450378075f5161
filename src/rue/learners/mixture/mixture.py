"""`Mixture`: no learning rate. A pool of learners of many rates and kinds in one pass, mixed as B15 and B12 say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import lanes, noinline, parameter
from rue.compiled.arithmetic import bits, exp_roughly, from_bits, higher, log, lower
from rue.compiled.intrinsics import LANES
from rue.errors import SettingsError
from rue.learners.algorithm import FrozenWeights
from rue.learners.gradient import require_loss
from rue.learners.learner import Learner
from rue.learners.mixture.committee import committee
from rue.learners.mixture.frozen import FIRST_TRIAL, begin_copies
from rue.learners.mixture.layout import (
    ALONG,
    CENTRE,
    COST,
    CURVATURE,
    DIAGONAL,
    DIVISORS,
    DUE,
    HELD,
    HIGH,
    KINDS,
    LABELS,
    LOW,
    MATRICES,
    MEAN,
    MIXED_NO,
    MIXED_YES,
    NARROW,
    NO,
    NOTED,
    POOL_MEMORY,
    PREDICTION,
    RATED_MEMBERS,
    RATES,
    ROOM,
    SCRATCH,
    SHARES,
    SLOPE,
    SLOPES,
    SPREAD_OF_LABELS,
    STATS,
    STEP,
    UNIT,
    WEIGHED,
    WORK,
    YES,
)
from rue.learners.mixture.mixing import Pooling, open_memory, rates_within, require_share, times, way_of, words_for
from rue.learners.mixture.pool import NOTES, PoolPoint
from rue.learners.points import MEMORY, Coordinate, T
from rue.losses.wrappers import unregularised
from rue.memory import aligned_zeros
from rue.norms import LARGEST_TERM
from rue.registry import make, register

__all__ = ["KIND_NAMES", "Mixture", "Pooled", "margin_step", "rates_in_budget"]

GRID, MATRIX_GRID = (2.0**-8, 2.0**6), (2.0**-5, 2.0**2)
"""The ends of the grid of rates: for kinds 0 to 3, and for 4 and 5."""
KIND_NAMES = (
    "adaptive, by root mean square",
    "adaptive, by first value",
    "adaptive, forgetting",
    "second order, diagonal",
    "second order, full",
    "second order, full, forgetting",
)
"""What kinds 0 to 5 of `rue.learners.mixture.pool` are called."""
_FIXED = 8 * len(STATS) + 8
"""The bytes a feature takes in addition to its weights."""


def _precision(loss: Any) -> Any:
    """Single precision is enough for classes; for numbers it would show when their units change."""
    return np.float32 if loss.task == "classify" else np.float64


def _per_rate(loss: Any) -> int:
    return DIAGONAL * int(np.dtype(_precision(loss)).itemsize)


def rates_in_budget(name: str, loss: Any, budget: Any) -> int:
    """How many rates a kind has if a feature may take `budget` bytes."""
    return rates_within(name, budget, _FIXED, _per_rate(loss))


class _Rule:
    """One round of the pool; how it costs, feels and steps depends on how predictions are mixed."""

    loss: Any

    def enter_costs(self, point: Any, members: Any, y: Any, weight: Any, cost: Any) -> None:
        """What the round costs each member."""
        raise NotImplementedError

    def cost(self, p: Any, y: Any, weight: Any) -> Any:
        """What the round costs the mixture; no finite number if one of its parts, or a step's, is none."""
        raise NotImplementedError

    def see_label(self, m: Any, y: Any, weight: Any) -> Any:
        """By how much a rate of 1 moves a prediction for a slope of 1 along a row of size 1."""
        raise NotImplementedError

    def find_slopes(self, point: Any, y: Any, weight: Any) -> None:
        """The slope and the curvature at each kind's mixed prediction."""
        raise NotImplementedError

    @noinline
    def choose_steps(self, point: Any, members: Any, y: Any) -> None:
        """How far each member's prediction is to move, into `scratch`, where by now rate·⟨f, x⟩ stands."""
        raise NotImplementedError

    def constant(self, point: Any) -> Any:
        """The best guess at the labels so far that does not look at features, in units of the labels."""
        raise NotImplementedError

    def learn(self, point: Any, row: Any, y: Any, weight: Any) -> Any:
        """The prediction, and whether all was finite; if not, or without a weight, nothing has changed."""
        p = point.dot(row)
        if weight == 0.0:
            return p, math.isfinite(p)
        cost = self.cost(p, y, weight)
        if not (math.isfinite(p) and abs(cost) <= LARGEST_TERM) or not point.bounded(row):
            return p, False
        self.play_round(point, row, y, weight, cost)
        return p, True

    def play_round(self, point: Any, row: Any, y: Any, weight: Any, cost: Any) -> None:
        """Everything that changes; the members' predictions stand in `scratch`, the mixture's cost is given."""
        self.learn_round(point, row, y, weight, cost)
        copies = point.copied()
        # After the update: copies are scored on the example before they are taken anew, so they have never seen it.
        if copies.due():
            copies.try_out(self.loss, row, y, weight, cost, point.scratch[STEP])
            if point.memory[T] >= point.trial[DUE]:
                copies.take(self.constant(point))

    def learn_round(self, point: Any, row: Any, y: Any, weight: Any, cost: Any) -> None:
        """A round without copies."""
        m, experts = point.memory, point.experts()
        self.enter_costs(point, experts.running(), y, weight, cost)
        pace = self.see_label(m, y, weight)
        m[T] += 1.0
        self.find_slopes(point, y, weight)
        experts.charge(cost, weight, m[T], point.scratch, point.work)
        if point.way.tracks():
            point.note_weights()
        point.measure(row)
        # An implicit step: along f, to the prediction argmin_q a·ℓ(q, y) + ½(q − p)² with a = rate·weight·pace·⟨f, x⟩,
        # so that no rate overshoots. It moves the prediction by `step`, hence the weights by step/⟨f, x⟩ along f.
        if pace > 0.0:
            each, members, step = len(point.rates), experts.running(), point.scratch[STEP]
            for kind in range(members // each):
                times(kind * each, each, step, point.members[RATES], weight * pace * point.work[ALONG, kind])
            self.choose_steps(point, members, y)
            for kind in range(members // each):
                along = point.work[ALONG, kind]
                # A row that is almost 0 moves no prediction, and 1/⟨f, x⟩ would overflow: its weights stay.
                times(kind * each, each, step, step, 1.0 / along if along > 1e-300 else 0.0)
            point.advance(row)
        if point.retirement_due():
            point.retire_some()
        point.trial[WEIGHED] += weight
        point.trial[LABELS] += weight * y


@lanes()
def cost_of(right: Any, weight: Any) -> Any:
    """Log loss, from the probability of the label that came."""
    return -weight * log(right)


def rough_log(x: Any) -> Any:
    """ln x to 0.03: the bits of a number are nearly its logarithm."""
    # The bits of 1.5·2⁵², with a whole number added to them, are the double 1.5·2⁵² plus that number; so the
    # difference makes a number of bits. They stand for exponent + mantissa, where log₂ is exponent + log₂(1 +
    # mantissa): 0 to 0.086 more, of which 0.043 is the middle.
    return (from_bits((bits(x) >> 20) + 0x4338000000000000) - _ONE) * _OCTAVE


_OCTAVE = math.log(2.0) * 2.0**-32
_ONE = 1.5 * 2.0**52 + (1023.0 - 0.043) * 2.0**32


def margin_step(z: Any, right: Any, wrong: Any, reach: Any) -> Any:
    """How far an implicit step moves the margin z of the label that came: `Logistic.prox`, to 2e-4 on average.

    To 3 % at worst. The step s has s(1 + e^{z + s}) = a, the `reach`; `right` and `wrong` are the probabilities that z
    stands for. It is less than a·wrong, and than Lambert's W(a·e^−z), of which a rough value will do; a round of
    Halley's method on the logarithm of the equation does the rest.
    """
    a = higher(reach, 1e-200)
    x = rough_log(1.0 + a * wrong / right)
    step = lower(a * wrong, x * (1.0 - rough_log(1.0 + x) / (2.0 + x)))
    e = exp_roughly(z + step)
    slant, reached = e / (1.0 + e), step * (1.0 + e)
    first, short = 1.0 + step * slant, reached - a
    second = step * step * (slant - slant * slant) - 1.0
    return step * (1.0 - lower(2.0 * short * first / (first * first * (reached + a) - short * second), 0.9))


@lanes()
def step_of(p: Any, right: Any, wrong: Any, reach: Any, y: Any) -> Any:
    """The step that moves a prediction p, for label y."""
    return -y * margin_step(y * p, right, wrong, reach)


@parameter
class ChanceRule(_Rule):
    """For logistic loss."""

    loss: Any

    def enter_costs(self, point: Any, members: Any, y: Any, weight: Any, cost: Any) -> None:
        cost_of(0, members, point.members[COST], point.scratch[YES if y > 0.0 else NO], weight)

    def cost(self, p: Any, y: Any, weight: Any) -> Any:
        return weight * self.loss.value(p, y) if math.isfinite(weight * weight) else math.inf

    def see_label(self, m: Any, y: Any, weight: Any) -> Any:
        return 1.0

    def constant(self, point: Any) -> Any:
        """The log-odds of yes, with half an example added to either side."""
        mass, labels = point.trial[WEIGHED], point.trial[LABELS]
        return math.log((1.0 + mass + labels) / (1.0 + mass - labels))

    def find_slopes(self, point: Any, y: Any, weight: Any) -> None:
        for kind in range(KINDS):
            yes, no = point.work[MIXED_YES, kind], point.work[MIXED_NO, kind]
            point.work[SLOPE, kind] = weight * (-no if y > 0.0 else yes)
            point.work[CURVATURE, kind] = weight * yes * no

    def choose_steps(self, point: Any, members: Any, y: Any) -> None:
        step, right, wrong = (
            point.scratch[STEP],
            point.scratch[YES if y > 0.0 else NO],
            point.scratch[NO if y > 0.0 else YES],
        )
        step_of(0, members, step, point.scratch[PREDICTION], right, wrong, step, y)


@parameter
class MeanRule(_Rule):
    """For every other loss."""

    loss: Any
    classes: bool
    centred: bool

    def cost(self, p: Any, y: Any, weight: Any) -> Any:
        slope, cost = weight * self.loss.slope(p, y), weight * self.loss.value(p, y)
        return cost if math.isfinite(slope * slope + weight * weight) else math.inf

    def enter_costs(self, point: Any, members: Any, y: Any, weight: Any, cost: Any) -> None:
        costs, p, m = point.members[COST], point.scratch[PREDICTION], point.memory
        first = self.centred and m[T] == 0.0  # all members predicted 0
        for i in range(members):
            costs[i] = cost if first else weight * self.loss.value(m[CENTRE] + m[UNIT] * p[i], y)

    def see_label(self, m: Any, y: Any, weight: Any) -> Any:
        """The labels' centre is the first one, 0 without an intercept; their unit a power of 2 near the first other."""
        if self.classes:
            return 1.0
        target = self.loss.target(y)
        if m[T] == 0.0 and self.centred:
            m[CENTRE] = target
        away = target - m[CENTRE]
        if m[UNIT] == 0.0 and away != 0.0:
            # A power of 2, so that dividing by it rounds nothing.
            m[UNIT] = math.ldexp(1.0, math.frexp(abs(away))[1] - 1)
        away = away / m[UNIT] if m[UNIT] > 0.0 else 0.0
        m[LOW], m[HIGH] = min(m[LOW], away), max(m[HIGH], away)
        slope = self.loss.slope(m[CENTRE] + m[UNIT] * m[MEAN], y)
        m[SLOPES] += weight * slope * slope
        m[HELD] += weight
        deviation = away - m[MEAN]
        m[MEAN] += deviation * weight / m[HELD]
        # The mean may be rounded past the label: then what is added is negative.
        m[SPREAD_OF_LABELS] = max(0.0, m[SPREAD_OF_LABELS] + weight * deviation * (away - m[MEAN]))
        slope_unit, label_unit = self.gauges(m)
        return label_unit / slope_unit if slope_unit > 0.0 else 0.0

    def constant(self, point: Any) -> Any:
        """The mean of the labels."""
        m, trial = point.memory, point.trial
        return trial[LABELS] / trial[WEIGHED] if self.classes else m[MEAN]

    def gauges(self, m: Any) -> Any:
        """What slopes and predictions are measured by: half the slopes of the mean, and the labels' deviation."""
        if self.classes:
            return 1.0, 1.0
        return 0.5 * math.sqrt(m[SLOPES] / m[HELD]), m[UNIT] * math.sqrt(m[SPREAD_OF_LABELS] / m[HELD])

    def find_slopes(self, point: Any, y: Any, weight: Any) -> None:
        work, m, target = point.work, point.memory, self.loss.target(y)
        gauge, deviation = self.gauges(m)
        for kind in range(KINDS):
            work[SLOPE, kind] = 0.0
            work[CURVATURE, kind] = 0.0
            if gauge > 0.0 and deviation > 0.0:
                q = m[CENTRE] + m[UNIT] * work[MIXED_YES, kind]
                away = q - target
                # The curvature of the parabola through the target is ℓ'(q)/(q − target), which is 0/0 at the target
                # itself.
                if abs(away) < 0.01 * deviation:
                    away = 0.01 * deviation if away >= 0.0 else -0.01 * deviation
                curvature = max(0.0, self.loss.slope(target + away, y) / away)
                work[SLOPE, kind] = weight * self.loss.slope(q, y) / gauge
                work[CURVATURE, kind] = weight * curvature * deviation / gauge

    def choose_steps(self, point: Any, members: Any, y: Any) -> None:
        """q − prox(q) for each member, in units of the labels."""
        p, step, m = point.scratch[PREDICTION], point.scratch[STEP], point.memory
        for i in range(members):
            q = m[CENTRE] + m[UNIT] * p[i]
            step[i] = (q - self.loss.prox(q, y, step[i])) / m[UNIT]


@register("algorithm", "pooled")
@parameter
class Pooled(Pooling):
    """The algorithm behind `Mixture`: refuses nonsense, makes the rule and the pool."""

    name: Any
    loss: Any
    rates: int
    """How many members each kind has."""
    intercept: bool
    share: Any = None
    """The rule of fixed share, "1/t", or None."""

    kind_names = KIND_NAMES
    proves_more = True

    def __post_init__(self) -> None:
        if unregularised(self.loss)[1]:
            raise SettingsError("Mixture: a regularised loss is not supported; use OGD for (λ/2)‖w‖².")
        require_loss(self.loss, "Mixture")
        self.require_rates()
        object.__setattr__(self, "share", require_share("Mixture", self.share))

    @property
    def budget(self) -> int:
        return _FIXED + _per_rate(self.loss) * self.rates

    def describe(self) -> str:
        return f"loss={self.loss!r}, budget={self.budget}"

    def explain(self, size: int) -> str:
        how = words_for(self.loss, self.share)
        return (
            f"no step to choose: {KINDS * self.rates} members, {self.rates} rates from {GRID[0]:g} to {GRID[1]:g} of "
            f"{KINDS} kinds, mixed by {how}; {self.bytes_per_feature(None)} bytes a feature"
        )

    def bytes_per_feature(self, point: Any) -> int:
        """Those of the tables that learn, and of the copies that are tried for the frozen model."""
        return self.budget + _per_rate(self.loss) * self.rates + 8 * len(DIVISORS)

    @property
    def bytes_per_coordinate(self) -> int:
        return self.bytes_per_feature(None) + 8

    @property
    def tries_frozen(self) -> int | None:
        return FIRST_TRIAL

    def frozen_weights(self, point: Any, intercept: bool) -> FrozenWeights | None:
        weights = None if point is None else point.frozen(intercept)
        if weights is None:
            return None
        still = Coordinate(weights, np.empty(0), point.memory[: len(MEMORY)].copy())
        return FrozenWeights(still, point.frozen_risk(intercept), point.range(self.loss))

    def start(self, size: int, first: Any = None, room: int | None = None) -> tuple[_Rule, PoolPoint]:
        size = size if room is None else room
        classes = self.loss.task == "classify"
        grid, matrix_grid = (np.geomspace(*ends, self.rates) for ends in (GRID, MATRIX_GRID))
        members = aligned_zeros((len(RATED_MEMBERS), KINDS * self.rates))
        members[SHARES] = 1.0 / self.rates
        members[RATES] = np.concatenate([grid] * DIAGONAL + [matrix_grid] * MATRICES)
        chances = self.loss.log_odds
        memory = open_memory(POOL_MEMORY, chances)
        if classes:
            memory[UNIT], memory[LOW], memory[HIGH] = 1.0, -self.loss.reach, self.loss.reach
        size = max(size, 1)
        pool = PoolPoint(
            lines=np.zeros(size, dtype=np.uint32),
            weights=aligned_zeros((size + 1, DIAGONAL * self.rates), _precision(self.loss)),
            stats=aligned_zeros((size + 1, len(STATS))),
            slots=np.zeros(size + 1, dtype=np.int32),
            matrices=np.zeros((MATRICES, NARROW, self.rates + NARROW)),
            members=members,
            kinds=np.full(KINDS, 1.0 / KINDS),
            seats=np.arange(KINDS),
            carried=np.zeros(KINDS),
            memory=memory,
            scratch=aligned_zeros((len(SCRATCH), KINDS * self.rates)),
            work=np.zeros((len(WORK), KINDS)),
            room=np.zeros((len(ROOM), NARROW)),
            notes=aligned_zeros((len(NOTED), NOTES)),
            spots=np.zeros(NOTES + 2, dtype=np.int64),
            given=np.zeros(1, dtype=np.int64),
            rates=(0,) * self.rates,
            way=way_of(self.loss, self.share),
            exact=self.loss.quadratic,
            **begin_copies(size + 1, self.rates, NARROW, _precision(self.loss)),
        )
        if chances:
            return ChanceRule(self.loss), pool
        return MeanRule(self.loss, classes, self.intercept and not classes), pool


@register("learner", "mixture")
def Mixture(
    loss: Any = "logistic",
    *,
    members: Any = None,
    budget: int | None = None,
    share: Any = "1/t",
    intercept: bool = True,
    d: int | None = None,
) -> Learner:
    """Linear, with no learning rate to choose (docs/theory.md, B15 and B12).

    Members of all rates and several kinds learn side by side in one pass, and their predictions are mixed by how well
    each has done. For logistic loss by fixed share, `share="1/t"`: a member's weight is multiplied by the probability
    that it gave to the label, and after round t all share a part 1/(t + 1) of the weights. So a member that was bad for
    long can come back, and on **every** stretch of rounds, up to round s, the mixture loses at most ln K + ln s more
    than the member that was best there. With `share=None` the weights are proportional to e^{−loss so far}: over the
    whole stream at most ln K more than the best member, and on stretches of it nothing is promised. With example
    weights above 1 it is w_max times that, w_max the largest weight, plus what the rounds that raised it cost (their
    predictions were made for smaller weights): `members.price_at_most` has that sum. Nothing is promised against a
    member that has retired for being hopelessly behind, from then on. Other losses are mixed by AdaHedge, whatever
    `share` is.

    Units of features do not matter, nor do units and shift of numeric labels. `budget` is the number of bytes that a
    feature may take in the tables that learn; fewer bytes, fewer rates. Copies of the weights, by which the model to
    keep is chosen when learning stops (`Learner.frozen`), take about 0.8 times as many again.

    `members`, a list of learners or specs that share a loss, are mixed in their place: each learns what it would alone.

    `loss` is any convex loss; `intercept` and `d` are as for `OGD`.

    >>> import rue
    >>> X, y = rue.census()
    >>> round(rue.learn(X, y, learner=rue.Mixture()).risk, 3)
    0.329
    """
    if members is not None:
        if budget is not None:
            raise SettingsError("Mixture: a budget is for the members it chooses itself: give members or a budget.")
        return committee(members, loss, share, intercept, d)
    loss = make("loss", loss)
    rates = 2 * LANES if budget is None else rates_in_budget("Mixture", loss, budget)
    algorithm = Pooled("Mixture", loss, rates, bool(intercept), share)
    return Learner(algorithm, intercept=intercept, d=d)
