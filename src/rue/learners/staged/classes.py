"""`StagedSoftmax`: more than linear for more than two classes, with nothing to tune."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import noinline, parameter
from rue.compiled.arithmetic import log
from rue.compiled.intrinsics import LANES
from rue.domains import Reals
from rue.learners.algorithm import Algorithm
from rue.learners.mixture.frozen import FIRST_TRIAL
from rue.learners.mixture.layout import (
    COPY,
    COST,
    MEMBERS,
    MIXING,
    MIXING_MEMORY,
    PREDICTION,
    RATED_MEMBERS,
    RATES,
    SCRATCH,
    SHARES,
)
from rue.learners.mixture.mixing import ByChance, open_memory, rates_within, require_share
from rue.learners.points import T
from rue.learners.softmax.classifier import ClassLearner
from rue.learners.softmax.layout import CLASS_MEMORY, HIGHEST, SEEN, SINCE
from rue.learners.softmax.multiclass import LogLoss, Softmax, bytes_of
from rue.learners.staged.class_layout import KINDS
from rue.learners.staged.class_point import MOST_CLASSES, StagedClassPoint, lines_of
from rue.learners.staged.class_stage import FIRST_ROWS, ClassStage
from rue.learners.staged.point import LOOK
from rue.learners.staged.staged import BITS
from rue.maps import FEATURES, chained, open_table, require_maps
from rue.memory import aligned_zeros
from rue.registry import register

__all__ = ["StagedClasses", "StagedSoftmax"]

STAGE_GRID = (2.0**-7, 2.0)
"""The ends of the grid of a stage's rates, which has four: the best ones lie closer together than on raw features."""


@parameter
class StagedClassRule:
    """One round of all stages."""

    loss: Any
    raw: Any

    def learn(self, point: Any, row: Any, y: Any, weight: Any) -> Any:
        """The score of the class that came, and whether all was finite; if not, nothing has changed."""
        c = int(y) - 1
        if not math.isfinite(row.square()) or not math.isfinite(weight * weight) or y > point.classes():
            return math.nan, False
        point.predict_members(row)
        raw, p, first = point.raw, -point.raw.reserve_of_one(), -point.raw.reserve_of_one()
        if raw.counts[c] > 0.0:
            wrong, known = False, 1.0 - raw.reserve()
            for other in range(int(raw.memory[HIGHEST])):
                wrong |= other != c and point.mixed[other, 0] >= point.mixed[c, 0]
            p, first = known * point.mixed[c, 0], known * raw.mixed[c, 0]
            p = -p if wrong else p
        value = self.loss.value(p, y)
        if not math.isfinite(value + self.loss.value(first, y)):
            return p, False
        if weight > 0.0:
            self.play_round(point, row, c, weight, weight * value, weight * self.loss.value(first, y))
        return p, True

    def play_round(self, point: Any, row: Any, c: Any, weight: Any, cost: Any, first: Any) -> None:
        """Everything that changes."""
        raw, costs, last = point.raw, point.members[COST], len(point.pools)
        mapped, known, q, slope = (
            point.running[last] > 0.0,
            raw.counts[c] > 0.0,
            point.scratch[PREDICTION, 0],
            point.slope(c),
        )
        reserved = weight * -math.log(1.0 - raw.reserve()) if known else 0.0
        if mapped and c >= MOST_CLASSES:
            point.retire_some(c)
            mapped = False
        costs[0] = first
        self.raw.play_round(raw, row, c, weight, first)
        for k in range(last):
            costs[k + 1] = first
            if point.running[k + 1] > 0.0:
                own = weight * -math.log(point.pools[k].mixed[c, 0]) if known else cost
                costs[k + 1] = reserved + own if known else cost
                self.learn_stage(point.pools[k], point.features[k], point.ends[k], point.logs, c, weight, own)
        point.experts().charge(cost, weight, point.memory[T] + 1.0, point.scratch, point.work)
        if mapped:
            point.table.see(row, point.lines, q, slope)
        point.memory[T] += 1.0
        if int(point.memory[T]) % LOOK == 0:
            point.retire_some(c)

    @noinline
    def learn_stage(self, pool: Any, features: Any, many: Any, logs: Any, c: Any, weight: Any, cost: Any) -> None:
        """Let a stage learn the row that it has predicted."""
        m, costs, members = pool.memory, pool.members[COST], pool.members.shape[1]
        for i in range(members):
            costs[i] = -weight * log(pool.chances[c * members + i]) if pool.counts[c] > 0.0 else cost
        if pool.counts[c] == 0.0:
            m[SINCE], m[SEEN], m[HIGHEST] = 0.0, m[SEEN] + 1.0, max(m[HIGHEST], c + 1.0)
        m[SINCE] += 1.0
        pool.counts[c] += 1.0
        pool.experts().charge(cost, weight, m[T] + 1.0, pool.scratch, pool.scratch)
        pool.measure(features, many, logs, c, weight)
        self.raw.choose_steps(pool, c, weight)
        pool.advance()
        m[T] += 1.0


@register("algorithm", "staged-classes")
@parameter
class StagedClasses(Algorithm):
    """The algorithm behind `StagedSoftmax`."""

    name: Any
    loss: Any
    maps: Any
    rates: int
    """How many members each kind of the raw pool has."""
    share: Any = None
    """How every pool mixes its members: the rule of fixed share, "1/t", or None."""

    mixes = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "maps", require_maps(self.maps))
        object.__setattr__(self, "share", require_share("StagedSoftmax", self.share))
        _ = self.raw  # refuses what a pool refuses

    @property
    def raw(self) -> Softmax:
        """The algorithm of the raw stage."""
        return Softmax("SoftmaxMixture", self.loss, self.rates, self.share)

    @property
    def domain(self) -> Any:
        return Reals()

    @property
    def wide(self) -> int | None:
        return self.raw.wide

    def member_names(self) -> list[str]:
        return self.raw.member_names()

    def stage_names(self) -> list[str]:
        return ["the features as they are", *(each.about() for each in self.maps), "the stages' predictions"]

    @property
    def bytes_per_coordinate(self) -> int:
        return self.raw.bytes_per_coordinate

    def bytes_per_feature(self, point: Any) -> int:
        return self.raw.bytes_per_feature(point)

    @property
    def tries_frozen(self) -> int | None:
        return FIRST_TRIAL

    def describe(self) -> str:
        return f"maps=[{', '.join(map(repr, self.maps))}]"

    def explain(self, size: int) -> str:
        return (
            f"{self.raw.explain(size)}; then {len(self.maps) + 1} stages over maps of the features "
            f"({'; '.join(each.about() for each in self.maps)}) and over all predictions, mixed by exponential weights"
        )

    def start(self, size: int, first: Any = None, room: int | None = None) -> tuple[StagedClassRule, StagedClassPoint]:
        rule, raw = self.raw.start(size, first, room)
        stages, own = len(self.maps) + 2, 1 + 2**BITS + 1
        pools = [_open_stage(own, 1, self.share) for _ in self.maps] + [_open_stage(1, stages - 1, self.share)]
        members = np.zeros((len(MEMBERS), stages))
        members[SHARES] = 1.0 / stages
        point = StagedClassPoint(
            raw=raw,
            pools=tuple(pool.admitting(raw.classes()) for pool in pools),
            table=open_table(raw.size() + 1),
            maps=chained(self.maps),
            members=members,
            kinds=np.ones(1),
            memory=open_memory(MIXING_MEMORY, chances=True),
            running=np.ones(stages),
            trials=np.zeros((len(COPY), stages)),
            scratch=np.zeros((len(SCRATCH), stages)),
            work=np.zeros((len(MIXING), 1)),
            mixed=np.zeros((raw.classes(), 1)),
            logs=np.zeros((raw.classes(), stages)),
            features=np.zeros((stages - 1, FEATURES), dtype=np.uint32),
            ends=np.ones(stages - 1, dtype=np.int64),
            lines=lines_of(raw.size()),
            mask=np.uint64(2**BITS - 1),
            way=ByChance(0.0),  # so that M1 holds: at most ln M above the raw pool at every row
        )
        return StagedClassRule(self.loss, rule), point


def _open_stage(own: int, offers: int, share: str | None) -> ClassStage:
    """A stage that has learnt nothing, over so many mapped features and so many predictions."""
    many, rows = KINDS * LANES, min(FIRST_ROWS, own + 1)
    members = np.zeros((len(RATED_MEMBERS), many))
    members[SHARES] = 1.0 if share is None else 1.0 / LANES
    members[RATES] = np.tile(np.geomspace(*STAGE_GRID, LANES), KINDS)
    return ClassStage(
        lines=np.zeros(own, dtype=np.uint32),
        # Half the memory, and half of what is fetched: a row has a number for each class and member.
        weights=aligned_zeros((rows, 0, many), np.float32),
        sums=aligned_zeros((rows, 0, KINDS)),
        offered=np.zeros((offers, 0, many)),
        offered_sums=np.zeros((offers, 0, KINDS)),
        copies=aligned_zeros((rows, 0), np.float32),
        offered_copies=np.zeros((offers, 0)),
        members=members,
        kinds=np.full(KINDS, 1.0 / KINDS),
        memory=open_memory(CLASS_MEMORY, chances=True),
        counts=np.zeros(0),
        scratch=np.zeros((len(SCRATCH), many)),
        scores=np.zeros(0),
        chances=np.zeros(0),
        mixed=np.zeros((0, 1 + KINDS)),
        along=np.zeros((0, KINDS)),
        squares=np.zeros((0, KINDS)),
        left=np.zeros((0, KINDS)),
        notes=np.zeros((FEATURES if own > 1 else 1, 0, KINDS)),
        offered_notes=np.zeros((offers, 0, KINDS)),
        spots=np.zeros(FEATURES + 2, dtype=np.int64),
        ones=np.ones(FEATURES),
        given=np.zeros(1, dtype=np.int64),
        rates=(0,) * LANES,
        both=(0,) * many,
        way=ByChance(0.0 if share is None else 1.0),
    )


def StagedSoftmax(
    *, maps: Any = "auto", budget: int | None = None, share: Any = "1/t", intercept: bool = True, d: int | None = None
) -> ClassLearner:
    """More than linear for more than two classes, with nothing to tune: `rue.SoftmaxMixture` and stages over maps.

    Stage 0 is `rue.SoftmaxMixture`, over the features as they are. Each map (`rue.Pairs`, `rue.Trees`) makes more
    features of them, from the past alone, over which more softmax learners learn, beginning with stage 0's
    probabilities. A last stage learns over the probabilities of all. The M stages' probabilities are mixed with weights
    proportional to e^{−loss so far}: the total is at most ln M more than that of `rue.SoftmaxMixture`, **at every row**
    (docs/theory.md, M1), times the largest example weight where that is above 1.

    With more than 32 classes, and over text, the stages retire: what remains is `rue.SoftmaxMixture`.

    >>> import numpy as np, rue
    >>> X = np.random.default_rng(0).normal(size=(4000, 2))
    >>> y = 1 + (X[:, 0] * X[:, 1] > 0) + (np.abs(X[:, 0]) > 1)
    >>> wrong = [np.mean(make().run(X, y) <= 0) for make in (rue.SoftmaxMixture, rue.StagedSoftmax)]
    >>> bool(wrong[1] < 0.5 * wrong[0])
    True

    Parameters
    ----------
    maps
        Those to learn over, one stage each: maps, or names as in "pairs+trees:8"; by default `[Pairs(), Trees()]`.
    budget
        How many bytes a feature may take for each class in stage 0, as for `rue.SoftmaxMixture`.
    share
        How every stage mixes its members, as for `rue.SoftmaxMixture`; the stages are mixed without sharing.
    intercept
        Whether stage 0 has a feature that is always 1; the other stages have one.
    d
        The number of features, where it must be known before the first example.

    """
    rates = 2 * LANES
    if budget is not None:
        rates = rates_within("StagedSoftmax", budget, bytes_of(0), bytes_of(1) - bytes_of(0), " for each class")
    algorithm = StagedClasses("StagedSoftmax", LogLoss(), maps, rates, share)
    return ClassLearner(algorithm, intercept=intercept, d=d)
