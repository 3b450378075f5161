"""The state of `Staged`: a pool over the raw features, a table, a pool for each map, a pool over the predictions.

Stage 0 is the raw pool. Stage k sees the raw prediction and the features of the k-th map; the last stage sees the
predictions of the others. Each is an ordinary pool, and they are mixed by exponential weights, so the whole loses at
most ln M more than the raw pool, at every row (docs/theory.md, M1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import inline, noinline, values
from rue.layout import Layout
from rue.learners.mixture.columns import NEAR
from rue.learners.mixture.frozen import sharpened
from rue.learners.mixture.layout import (
    CENTRE,
    COLUMNS,
    COPY,
    DIAGONAL,
    EARLIER,
    ETA,
    FIRST,
    HIGH,
    LARGEST,
    LAST,
    LATEST,
    LOW,
    MATRICES,
    PREDICTION,
    SHARES,
    SQUARES,
    UNIT,
    USED,
    VISITS,
)
from rue.learners.mixture.mixing import Experts
from rue.learners.points import T, require_sane
from rue.learners.staged.layout import LIVE, STAGED
from rue.maps.table import CLOSED, MANY, WIDE, ColumnTable
from rue.memory import aligned_zeros
from rue.norms import LARGEST_TERM, SMALL, UP
from rue.rows import SparseRow

__all__ = ["FrozenStages", "StagedPoint"]

LOOK, PATIENCE = 2**10, 2**14
"""How often it is seen which stages are of no use, and from which round on one may be dropped for its loss."""
HOPELESS, FAR = 0.1, 500.0
"""Relative excess loss, and −log weight, beyond which a stage is dropped; both must be exceeded."""

_0, _1 = np.uint64(0), np.uint64(1)


@inline
def row_of(features: Any, numbers: Any, many: Any) -> Any:
    """The first features of a stage as a row, with an intercept."""
    return SparseRow(features, numbers, _0, np.uint64(many), _1, features)


@values
class StageRows(NamedTuple):
    """The present row as the stages see it."""

    table: Any
    maps: Any
    running: Any
    features: Any
    values: Any
    ends: Any
    mask: Any

    def row(self, k: Any) -> Any:
        """The present row as stage k + 1 sees it."""
        return row_of(self.features[k], self.values[k], self.ends[k])

    @noinline
    def fill(self, row: Any, lines: Any, q: Any) -> None:
        """Make the features of all maps of a row, with q as its raw prediction."""
        maps = self.ends.size - 1
        if self.running[maps + 1] > 0.0:
            self.table.look(row, lines, q)
            for k in range(maps):
                if self.running[k + 1] > 0.0:
                    self.values[k, 0] = q
                    self.ends[k] = self.maps.fill(k, self.table, self.features[k], 1, self.mask)

    def fill_last(self, p: Any, m: Any) -> None:
        """The features of the last stage: the predictions of the others, from the labels' centre, in their units."""
        last = self.ends.size - 1
        for k in range(last + 1):
            self.features[last, k] = k
            self.values[last, k] = (p[k] - m[CENTRE]) / m[UNIT] if m[UNIT] > 0.0 else 0.0
        self.ends[last] = last + 1

    def add_gradients(self, gradients: Any, slope: Any) -> None:
        """S += g·φ of every map that runs."""
        for k in range(gradients.shape[1]):
            if self.running[k + 1] > 0.0:
                for i in range(1, self.ends[k]):
                    gradients[self.features[k, i], k] += slope

    @noinline
    def see(self, row: Any, lines: Any, q: Any, slope: Any) -> None:
        """Enter the row into the past of the table."""
        self.table.see(row, lines, q, slope)

    @noinline
    def retire_some(self, losses: Any, m: Any) -> None:
        """Retire all stages where there is nothing to map, and one that is hopelessly behind the raw pool."""
        of, running, last = self.table.rounds, self.running, self.ends.size
        nothing = of[CLOSED] > 0.0 or (of[MANY] == 1.0 and of[WIDE] > 0.9 * m[T])
        maps = 0
        for k in range(1, last + 1):
            behind = losses[k] - losses[0]
            far = m[T] >= PATIENCE and behind > HOPELESS * abs(losses[0]) and FAR < m[ETA] * behind < math.inf
            if nothing or far:
                running[k] = 0.0
            maps += running[k] > 0.0 and k < last
        if maps == 0:
            running[last] = 0.0


@values
class StageCopies(NamedTuple):
    """The frozen copies of the stages but the raw one."""

    pools: Any
    trials: Any

    @noinline
    def try_out(
        self,
        rows: Any,
        p: Any,
        raw: Any,
        row: Any,
        lines: Any,
        m: Any,
        loss: Any,
        y: Any,
        weight: Any,
        cost: Any,
        every: Any,
    ) -> None:
        """Charge the copies with what they would have lost on an example; each counts for `every`.

        The raw pool has just tried its own copies: `raw` is the prediction of those chosen now. p is room.
        """
        pools, spent, last = self.pools, self.trials[LATEST], rows.ends.size - 1
        q = min(m[HIGH], max(m[LOW], raw))
        rows.fill(row, lines, q)
        p[0] = m[CENTRE] + m[UNIT] * q
        spent[LIVE] += every * cost
        for k in range(last + 1):
            p[k + 1] = p[0]
            if rows.running[k + 1] > 0.0:
                if k == last:
                    rows.fill_last(p, m)
                p[k + 1] = copied_dot(pools[k], rows.row(k))
            value = weight * loss.value(p[k + 1], y)
            spent[k + 1] += every * (value if value < LARGEST_TERM else LARGEST_TERM)

    @noinline
    def take(self) -> None:
        """Copy the mean weights of every stage; a new period begins."""
        trials = self.trials
        for k in range(trials.shape[1] - 1):
            pool = self.pools[k]
            for line in range(1, pool.given[0] + 1):
                pool.copies[line, 0] = mean_weight(pool, line)
        for i in range(trials.shape[1]):
            trials[EARLIER, i] += trials[LAST, i]
            trials[LAST, i], trials[LATEST, i] = trials[LATEST, i], 0.0


@values
class StagedPoint(NamedTuple):
    """The state of `Staged`."""

    raw: Any
    pools: Any
    """Those of the maps, then the last one's."""
    table: Any
    maps: Any
    """The maps, as compiled code asks them (`rue.maps.base.Chain`)."""
    members: Any
    kinds: Any
    memory: Any
    running: Any
    gradients: Any
    trials: Any
    scratch: Any
    work: Any
    features: Any
    values: Any
    ends: Any
    mask: Any
    """The features of a map are hashed to one less than a power of two, this one's."""
    way: Any
    """How predictions are mixed: `ByChance` or `ByMean`."""

    @property
    def layout(self) -> Layout:
        return STAGED

    def __reduce__(self) -> Any:
        """Copied and pickled with the gradients of those features alone that have one."""
        known = np.flatnonzero((self.gradients != 0.0).any(axis=1))
        own = tuple(self._replace(gradients=self.gradients[known]))
        return _with_room, (own, known.astype(np.uint32), len(self.gradients))

    def size(self) -> Any:
        return self.raw.lines.size

    def experts(self) -> Any:
        return Experts(self.members, self.kinds, self.memory, self.way)

    # Compiled code takes the parts it needs and calls their methods: a call of a method of the whole would hand over
    # 150 arrays, and make a thousand instructions.

    def dot(self, row: Any) -> Any:
        """The prediction; the stages' are left in `scratch`."""
        raw, pools, running, scratch, values = self.raw, self.pools, self.running, self.scratch, self.values
        rows = StageRows(self.table, self.maps, running, self.features, values, self.ends, self.mask)
        p, m, last = scratch[PREDICTION], raw.memory, running.size - 2
        q = raw.mixed(row)
        first = m[CENTRE] + m[UNIT] * q
        p[0] = first
        values[0, 0] = q
        rows.fill(row, raw.lines, q)
        for k in range(last + 1):
            p[k + 1] = first
            if running[k + 1] > 0.0:
                if k == last:
                    rows.fill_last(p, m)
                p[k + 1] = pools[k].dot(rows.row(k))
        return Experts(self.members, self.kinds, self.memory, self.way).mixed(scratch, self.work)

    def average_dot(self, row: Any) -> Any:
        return self.dot(row)

    # Reading.

    def scales(self) -> Any:
        """The largest magnitude of each coordinate's feature."""
        return self.raw.scales()

    def current(self, domain: Any) -> Any:
        """The weights of the raw pool, of features as the data has them."""
        return self.raw.current(domain)

    def points(self) -> list[Any]:
        """The parts whose coordinates are the data's."""
        return [self.raw, self.table]

    def changed(self, change: Callable[[Any], Any]) -> StagedPoint:
        """With those parts changed whose coordinates are the data's."""
        return self._replace(raw=change(self.raw), table=change(self.table))

    def occupied(self) -> Any:
        """The coordinates whose feature has occurred, in their order."""
        return self.raw.occupied()

    def picked(self, coordinates: Any) -> StagedPoint:
        """`laid_out` with these coordinates alone, of those that are `occupied`."""
        traits = self.table.traits[self.raw.lines[coordinates]]
        pools = tuple(pool.laid_out() for pool in self.pools)
        return self._replace(raw=self.raw.picked(coordinates), table=self.table._replace(traits=traits), pools=pools)

    def spread(self, coordinates: Any, size: int) -> StagedPoint:
        """With room for `size` coordinates, of which those it has are these."""
        raw = self.raw.spread(coordinates, size)
        return self._replace(raw=raw, table=self.table.grown(len(raw.stats)))

    def stages(self) -> list[Any]:
        """The parts that have coordinates of their own."""
        return list(self.pools)

    def frozen(self, loss: Any, intercept: bool) -> tuple[FrozenStages, float] | None:
        """The model to keep when learning stops, and what such models have lost; None before copies were tried.

        The raw stage is the raw pool's own choice; the others have their mean weights. Stages are mixed as the pool
        mixes its candidates (`rue.learners.mixture.frozen`), by what their frozen copies have lost.
        """
        chosen, of_raw = self.raw.frozen(intercept), self.raw.trials_of_frozen(intercept)
        if chosen is None or of_raw is None:
            return None
        trials = self.trials[: len(COPY)].copy()
        live, trials[:, 0] = float(trials[:, LIVE].sum()), of_raw
        lost = np.where(self.running > 0.0, trials.sum(axis=0), math.inf)
        playing = np.where(self.running > 0.0, self.members[SHARES], 0.0)
        shares = sharpened(lost, live, float(self.raw.memory[T]), playing)
        shares /= shares.sum()
        used, tried = shares > 0.0, float(self.raw.trial[LAST] + self.raw.trial[LATEST])
        recent = (trials[LAST] + trials[LATEST])[used]
        risk = float(shares[used] @ recent) / tried if tried > 0.0 else math.nan
        frozen = FrozenStages(
            chosen=chosen,
            weights=tuple(pool.current(None) for pool in self.pools),
            shares=shares,
            lines=self.raw.lines.copy(),
            table=ColumnTable(*(array.copy() for array in self.table)),
            maps=self.maps,
            running=self.running.copy(),
            features=self.features.copy(),
            values=self.values.copy(),
            ends=self.ends.copy(),
            memory=self.memory.copy(),
            labels=np.array([*self.raw.memory[[CENTRE, UNIT]], *self.raw.range(loss)]),
            mask=self.mask,
        )
        return frozen, risk

    # Room, and the form that files have.

    def grown(self, domain: Any, size: int) -> StagedPoint:
        raw = self.raw.grown(domain, size)
        return self._replace(raw=raw, table=self.table.grown(len(raw.stats)))

    def laid_out(self) -> StagedPoint:
        """With the arrays of the raw pool, the table and the stages as a file has them."""
        if self.raw.lines is None:
            return self
        traits = np.zeros((self.raw.lines.size, self.table.traits.shape[1]))
        used = np.flatnonzero(self.raw.lines)
        traits[used] = self.table.traits[self.raw.lines[used]]
        pools = tuple(pool.laid_out() for pool in self.pools)
        return self._replace(raw=self.raw.laid_out(), table=self.table._replace(traits=traits), pools=pools)

    def gathered(self) -> StagedPoint:
        """The inverse of `laid_out`."""
        raw = self.raw.gathered()
        used, traits = np.flatnonzero(raw.lines), np.zeros((len(raw.stats), self.table.traits.shape[1]))
        traits[raw.lines[used]] = self.table.traits[used]
        pools = tuple(pool.gathered() for pool in self.pools)
        return self._replace(raw=raw, table=self.table._replace(traits=traits), pools=pools)

    def merged(self, algorithm: Any, parts: Sequence[StagedPoint]) -> StagedPoint:
        """Every stage merged as it would be alone; a stage that has retired in a part has retired."""
        raw = self.raw.merged(algorithm.raw, [part.raw for part in parts])
        pools = tuple(
            pool.merged(algorithm.stage, [part.pools[k] for part in parts]) for k, pool in enumerate(self.pools)
        )
        table = self.table.merged([part.table for part in parts])
        merged = self._replace(raw=raw, pools=pools, table=table, **self.layout.merged(self, parts))
        merged.running[...] = np.min([part.running for part in parts], axis=0)
        # As the raw pool has it: what copies have lost so far becomes one period, and the weights are copied anew.
        merged.trials[LAST] = merged.trials.sum(axis=0)
        merged.trials[EARLIER] = merged.trials[LATEST] = 0.0
        for pool in merged.pools:
            pool.copies[:, 0] = pool.gathered().current_in_units()
        merged.experts().resettle(merged.work, [state.experts().weights() for state in (self, *parts)])
        return merged

    def require_sane(self, algorithm: Any) -> None:
        """Refuse a state from a file that rounds could not go on from."""
        self.experts().require_sane()
        require_sane(self.raw, algorithm.raw)
        self.table.require_sane()
        for pool in self.pools:
            require_sane(pool, algorithm.stage)


@values
class FrozenStages(NamedTuple):
    """The stages with weights that no longer change, and a table that learns no more."""

    chosen: Any
    """The weights of the raw stage, whose prediction the others see."""
    weights: Any
    """Those of the other stages."""
    shares: Any
    lines: Any
    table: Any
    maps: Any
    running: Any
    features: Any
    values: Any
    ends: Any
    memory: Any
    labels: Any
    """The labels' centre and unit, and the lowest and the highest prediction."""
    mask: Any

    def size(self) -> Any:
        return self.chosen.size

    def clipped(self, p: Any) -> Any:
        return min(self.labels[3], max(self.labels[2], p))

    def dot(self, row: Any) -> Any:
        raw, last = self.clipped(row.dot(self.chosen)), len(self.weights) - 1
        total = self.shares[0] * raw
        self.table.look(row, self.lines, self.standard(raw))
        self.values[last, 0] = self.standard(raw)
        for k in range(last + 1):
            p = raw
            self.features[last, k] = k
            if self.running[k + 1] > 0.0:
                if k < last:
                    self.values[k, 0] = self.standard(raw)
                    self.ends[k] = self.maps.fill(k, self.table, self.features[k], 1, self.mask)
                else:
                    self.ends[k] = last + 1
                p = self.clipped(row_of(self.features[k], self.values[k], self.ends[k]).dot(self.weights[k]))
            if k < last:
                self.values[last, k + 1] = self.standard(p)
            total += self.shares[k + 1] * p
        return total

    def standard(self, p: Any) -> Any:
        """A prediction from the labels' centre, in their units."""
        return (p - self.labels[0]) / self.labels[1] if self.labels[1] > 0.0 else 0.0

    def average_dot(self, row: Any) -> Any:
        return self.dot(row)

    def current(self, domain: Any) -> Any:
        """The weights of the raw features in the raw stage."""
        return self.chosen.copy()

    def grown(self, domain: Any, size: int) -> FrozenStages:
        def longer(array: Any) -> Any:
            grown = np.zeros(size, dtype=array.dtype)
            grown[: array.size] = array
            return grown

        return self._replace(chosen=longer(self.chosen), lines=longer(self.lines))


def _with_room(own: tuple[Any, ...], known: Any, rows: int) -> StagedPoint:
    """The point that `StagedPoint.__reduce__` took apart."""
    point = StagedPoint(*own)
    gradients = aligned_zeros((rows, point.gradients.shape[1]))
    gradients[known] = point.gradients
    return point._replace(gradients=gradients)


@inline
def mean_weight(pool: Any, line: Any) -> Any:
    """The mean of the members' weights for a line of a pool's tables, of the feature as it is and in labels' units."""
    r, stats, total = len(pool.rates), pool.stats[line], 0.0
    by_root = math.sqrt(stats[SQUARES] / stats[VISITS]) / (UP if stats[LARGEST] < SMALL else 1.0)
    by_first = max(stats[FIRST], stats[LARGEST] * NEAR)
    for kind in range(DIAGONAL):
        seat = pool.seats[kind]
        if seat >= 0:
            own = 0.0
            for i in range(r):
                own += pool.members[SHARES, seat * r + i] * pool.weights[line, COLUMNS[kind] * r + i]
            by = by_first if kind == 1 else stats[LARGEST] if kind == 2 else by_root
            total += pool.kinds[seat] * own / by
    slot = pool.slots[line] - 1
    if pool.memory[USED] > 0.0 and slot >= 0:
        by = stats[FIRST] if pool.exact else by_root
        for which in range(MATRICES):
            seat = pool.seats[DIAGONAL + which]
            if seat >= 0:
                for i in range(r):
                    share = pool.kinds[seat] * pool.members[SHARES, seat * r + i]
                    total += share * pool.matrices[which, slot, i] / by
    return total


@inline
def copied_dot(pool: Any, row: Any) -> Any:
    """The prediction of a stage's frozen copy."""
    m, total = pool.memory, 0.0
    for k in range(row.many()):
        j, x = row.feature(k)
        total += pool.copies[pool.lines[j], 0] * x
    return m[CENTRE] + m[UNIT] * min(m[HIGH], max(m[LOW], total))
