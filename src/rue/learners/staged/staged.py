"""`Staged`: more than linear, with nothing to tune: pools over maps of the features, and the pool over them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import noinline, parameter
from rue.compiled.intrinsics import LANES
from rue.learners.algorithm import Algorithm, FrozenWeights
from rue.learners.learner import Learner
from rue.learners.mixture.frozen import FIRST_COPY, FIRST_TRIAL
from rue.learners.mixture.layout import (
    COPY,
    COST,
    DIAGONAL,
    DUE,
    LOSSES,
    MEMBERS,
    MIXING,
    MIXING_MEMORY,
    PREDICTION,
    SCRATCH,
    SHARES,
    STEP,
    USED,
)
from rue.learners.mixture.mixing import Experts, open_memory, require_share, way_of
from rue.learners.mixture.mixture import Pooled, rates_in_budget
from rue.learners.points import T
from rue.learners.staged.point import LOOK, StageCopies, StagedPoint, StageRows
from rue.maps import FEATURES, chained, open_table, require_maps
from rue.memory import aligned_zeros
from rue.norms import LARGEST_TERM
from rue.registry import make, register

__all__ = ["Staged", "Stages"]

BITS = 18
"""The features of a map are hashed to 2^18: twice as many gained less than 0.1 %."""
NEVER = 2.0**40
"""The round after which a stage's own copies are taken: its trials are the business of the whole."""


@parameter
class StagedRule:
    """One round of all stages."""

    loss: Any
    raw: Any
    stage: Any

    def learn(self, point: Any, row: Any, y: Any, weight: Any) -> Any:
        """The prediction, and whether all was finite; if not, or without a weight, nothing has changed."""
        p = point.dot(row)
        if weight == 0.0:
            return p, math.isfinite(p)
        slope, cost = self.loss.slope(p, y), weight * self.loss.value(p, y)
        first = self.raw.cost(point.scratch[PREDICTION, 0], y, weight)
        if not (math.isfinite(p + weight * slope) and abs(cost) <= LARGEST_TERM and abs(first) <= LARGEST_TERM):
            return p, False
        if not point.raw.bounded(row):
            return p, False
        self.play_round(point, row, y, weight, cost, first, weight * slope)
        return p, True

    def play_round(self, point: Any, row: Any, y: Any, weight: Any, cost: Any, first: Any, slope: Any) -> None:
        """Everything that changes."""
        raw, pools, members, scratch, running = point.raw, point.pools, point.members, point.scratch, point.running
        rows = StageRows(point.table, point.maps, running, point.features, point.values, point.ends, point.mask)
        m, lines, trial, memory = raw.memory, raw.lines, raw.trial, point.memory
        q, costs, due, last = rows.values[0, 0], members[COST], trial[DUE], running.size - 2
        every, mapped = raw.copied().every(), running[last + 1] > 0.0
        self.raw.play_round(raw, row, y, weight, first)
        costs[0] = first
        for k in range(last + 1):
            costs[k + 1] = first
            if running[k + 1] > 0.0:
                costs[k + 1] = self.learn_stage(pools[k], rows.row(k), scratch[PREDICTION, k + 1], y, weight)
        if mapped:
            rows.add_gradients(point.gradients, slope)
        Experts(members, point.kinds, memory, point.way).charge(cost, weight, memory[T] + 1.0, scratch, point.work)
        if mapped:
            copies = StageCopies(pools, point.trials)
            if due > FIRST_COPY and int(m[T]) % every == 0:
                p, chosen = scratch[STEP], raw.scratch[STEP, 0]
                copies.try_out(rows, p, chosen, row, lines, m, self.loss, y, weight, cost, every)
            if m[T] >= due:
                copies.take()
            rows.see(row, lines, q, slope)
        memory[T] += 1.0
        if int(memory[T]) % LOOK == 0:
            rows.retire_some(members[LOSSES], memory)

    @noinline
    def learn_stage(self, pool: Any, row: Any, p: Any, y: Any, weight: Any) -> Any:
        """Let a stage learn; what the round costs it."""
        cost = self.stage.cost(p, y, weight)
        self.stage.learn_round(pool, row, y, weight, cost)
        return cost


@register("algorithm", "stages")
@parameter
class Stages(Algorithm):
    """The algorithm behind `Staged`: refuses nonsense, makes the rules and the pools."""

    name: Any
    loss: Any
    maps: Any
    rates: int
    """How many members each kind of the raw pool has."""
    intercept: bool
    share: Any = None
    """How every pool mixes its members: the rule of fixed share, "1/t", or None."""

    mixes = True
    proves_more = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "maps", require_maps(self.maps))
        object.__setattr__(self, "share", require_share("Staged", self.share))
        _ = self.raw  # refuses what a pool refuses

    @property
    def raw(self) -> Pooled:
        """The algorithm of the raw stage."""
        return Pooled("Mixture", self.loss, self.rates, self.intercept, self.share)

    @property
    def stage(self) -> Pooled:
        """The algorithm of every other stage: four rates are as good as eight there, and half the price."""
        return Pooled("Mixture", self.loss, LANES, True, self.share)

    @property
    def domain(self) -> Any:
        return self.raw.domain

    @property
    def wide(self) -> int | None:
        return self.raw.wide

    def member_names(self) -> list[str]:
        return self.raw.member_names()

    def stage_names(self) -> list[str]:
        return ["the features as they are", *(each.about() for each in self.maps), "the stages' predictions"]

    @property
    def bytes_per_coordinate(self) -> int:
        return self.raw.bytes_per_coordinate + 24

    def bytes_per_feature(self, point: Any) -> int:
        return self.raw.bytes_per_feature(None)

    def describe(self) -> str:
        return f"loss={self.loss!r}, maps=[{', '.join(map(repr, self.maps))}]"

    def explain(self, size: int) -> str:
        return (
            f"{self.raw.explain(size)}; then {len(self.maps) + 1} stages over maps of the features "
            f"({'; '.join(each.about() for each in self.maps)}) and over all predictions, mixed by exponential weights"
        )

    @property
    def tries_frozen(self) -> int | None:
        return FIRST_TRIAL

    def frozen_weights(self, point: Any, intercept: bool) -> FrozenWeights | None:
        frozen = None if point is None else point.frozen(self.loss, intercept)
        return None if frozen is None else FrozenWeights(frozen[0], frozen[1], point.raw.range(self.loss))

    def start(self, size: int, first: Any = None, room: int | None = None) -> tuple[StagedRule, StagedPoint]:
        rule, raw = self.raw.start(size, first, room)
        stage, stages = self.stage, len(self.maps) + 2
        own = 2 + 2**BITS
        begun = [stage.start(own) for _ in self.maps] + [stage.start(stages)]
        pools = tuple(pool for _, pool in begun)
        for pool in pools:
            pool.trial[DUE] = NEVER
        for pool in pools[:-1]:
            # Features of maps are 0 or 1, so kinds 0 and 1 would do the same, and there are too many for a matrix.
            for kind in (DIAGONAL + 1, DIAGONAL, 1):
                pool.retire(kind)
            pool.memory[USED] = -1.0
        chances = self.loss.log_odds
        members = np.zeros((len(MEMBERS), stages))
        members[SHARES] = 1.0 / stages
        point = StagedPoint(
            raw=raw,
            pools=pools,
            table=open_table(len(raw.stats)),
            maps=chained(self.maps),
            members=members,
            kinds=np.ones(1),
            memory=open_memory(MIXING_MEMORY, chances),
            running=np.ones(stages),
            gradients=aligned_zeros((own, len(self.maps))),
            trials=np.zeros((len(COPY), stages)),
            scratch=np.zeros((len(SCRATCH), stages)),
            work=np.zeros((len(MIXING), 1)),
            features=np.zeros((stages - 1, FEATURES), dtype=np.uint32),
            values=np.ones((stages - 1, FEATURES)),
            ends=np.zeros(stages - 1, dtype=np.int64),
            mask=np.uint64(2**BITS - 1),
            way=way_of(self.loss, None),  # so that M1 holds: at most ln M above the raw pool at every row,
        )
        return StagedRule(self.loss, rule, begun[0][0]), point


@register("learner", "staged")
def Staged(
    loss: Any = "logistic",
    *,
    maps: Any = "auto",
    budget: int | None = None,
    share: Any = "1/t",
    intercept: bool = True,
    d: int | None = None,
) -> Learner:
    """More than linear, with nothing to tune: mixtures over maps of the features, with the mixture over the features.

    Stage 0 is `rue.Mixture`, over the features as they are. Each map (`rue.Pairs`, `rue.Trees`) makes more features of
    them, from the past alone, over which another mixture learns that also sees stage 0's prediction. A last one learns
    over the predictions of all. The M stages are mixed with weights proportional to e^{−η·loss so far}: for logistic
    loss the total is at most ln M more than that of `rue.Mixture`, **at every row** (docs/theory.md, M1), so maps cost
    next to nothing where they do not help. Stages that are of no use, over text for instance, retire.

    >>> import numpy as np, rue
    >>> X = np.random.default_rng(0).normal(size=(4000, 2))
    >>> y = np.sign(X[:, 0] * X[:, 1])  # which no linear model knows anything about
    >>> rue.Mixture().run(X, y).shape, float(np.mean(rue.Staged().run(X, y) * y <= 0)) < 0.2
    ((4000,), True)

    Parameters
    ----------
    loss
        As for `rue.Mixture`.
    maps
        Those to learn over, one stage each: maps, or names as in "pairs+trees:8"; by default `[Pairs(), Trees()]`.
    budget
        How many bytes a feature may take in the tables of stage 0, as for `rue.Mixture`.
    share
        How every stage mixes its members, as for `rue.Mixture`; the stages themselves are mixed without sharing.
    intercept
        Whether stage 0 has a feature that is always 1; the other stages have one.
    d
        The number of features, where it must be known before the first example.

    """
    loss = make("loss", loss)
    rates = 2 * LANES if budget is None else rates_in_budget("Staged", loss, budget)
    algorithm = Stages("Staged", loss, maps, rates, bool(intercept), share)
    return Learner(algorithm, intercept=intercept, d=d)
