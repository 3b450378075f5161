"""The state of `StagedSoftmax`: softmax learners over the raw features, a table, a stage for each map, and a last one.

Stage 0 is the raw pool, `SoftmaxMixture`. Stage k sees the raw probabilities and the features of the k-th map; the last
stage sees the probabilities of the others. Their probabilities are mixed by exponential weights, so the whole loses at
most ln M more than the raw pool, at every row (docs/theory.md, M1). That a class comes which was never seen before is
as likely to all of them (`rue.learners.softmax.multiclass`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import inline, noinline, values
from rue.errors import DataError
from rue.layout import Layout
from rue.learners.frozen import Frozen
from rue.learners.mixture.frozen import MEAN_OF_MEMBERS
from rue.learners.mixture.layout import EARLIER, ETA, LAST, LATEST, LOSSES, PREDICTION, SHARES
from rue.learners.mixture.mixing import Experts
from rue.learners.points import T, require_sane
from rue.learners.softmax.frozen import frozen_pool
from rue.learners.softmax.layout import HIGHEST
from rue.learners.staged.class_frozen import FrozenClassStages, shares_and_risk
from rue.learners.staged.class_layout import STAGED_CLASSES
from rue.learners.staged.class_stage import FAR
from rue.learners.staged.point import FAR as FAR_BEHIND
from rue.learners.staged.point import HOPELESS, PATIENCE
from rue.maps.table import CLOSED, MANY, WIDE

__all__ = ["MOST_CLASSES", "StagedClassPoint"]

LEAST = math.exp(-FAR)
"""The least probability that a frozen copy is charged for."""
MOST_CLASSES = 32
"""With more classes than this the stages retire: they would take memory and time in proportion."""


@values
class StagedClassPoint(NamedTuple):
    """The state of `StagedSoftmax`."""

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
    trials: Any
    scratch: Any
    work: Any
    mixed: Any
    """For each class the probability by the mixture of the stages, if no new class comes."""
    logs: Any
    """For each class the logarithm of its probability by each stage, at least −20."""
    features: Any
    ends: Any
    lines: Any
    """For each coordinate its row in the table."""
    mask: Any
    """The features of a map are hashed to one less than a power of two, this one's."""
    way: Any

    @property
    def layout(self) -> Layout:
        return STAGED_CLASSES

    def size(self) -> Any:
        return self.raw.size()

    def classes(self) -> Any:
        """How many classes there is room for."""
        return self.raw.classes()

    def experts(self) -> Any:
        return Experts(self.members, self.kinds, self.memory, self.way)

    def reserve(self) -> Any:
        """The probability of a class never seen."""
        return self.raw.reserve()

    def full(self) -> Any:
        """Whether a stage needs room for more features before it can learn another row."""
        found = False
        for k in range(len(self.pools) - 1):
            found |= self.running[k + 1] > 0.0 and self.pools[k].full()
        return found

    # Predicting.

    def predict_members(self, row: Any) -> None:
        """The probabilities of the classes into `mixed`, from those of the stages."""
        raw, highest = self.raw, int(self.raw.memory[HIGHEST])
        raw.predict_members(row)
        top, best = 0.0, 0
        for c in range(highest):
            chance = raw.mixed[c, 0]
            self.logs[c, 0] = log_of(chance)
            if chance > top:
                top, best = chance, c
        self.scratch[PREDICTION, 0] = best + top
        self.map_row(row, best + top)
        shares, total = self.members[SHARES], 0.0
        for k in range(len(self.pools) + 1):
            total += shares[k]
        for c in range(self.mixed.shape[0]):
            self.mixed[c, 0] = shares[0] * raw.mixed[c, 0] if c < highest else 0.0
        for k in range(len(self.pools)):
            if self.running[k + 1] > 0.0:
                self.predict_stage(k)
            for c in range(highest):
                own = self.pools[k].mixed[c, 0] if self.running[k + 1] > 0.0 else raw.mixed[c, 0]
                self.logs[c, k + 1] = log_of(own)
                self.mixed[c, 0] += shares[k + 1] * own
        for c in range(highest):
            self.mixed[c, 0] /= total

    @noinline
    def predict_stage(self, k: Any) -> None:
        """The probabilities of one stage, from the features of the row and the probabilities of those before it."""
        self.pools[k].predict(self.features[k], self.ends[k], self.logs)

    def map_row(self, row: Any, q: Any) -> None:
        """Make the features of all maps of a row, with q as its raw prediction: the likeliest class + how likely."""
        if self.running[len(self.pools)] > 0.0:
            self.table.look(row, self.lines, q)
            for k in range(len(self.pools) - 1):
                if self.running[k + 1] > 0.0:
                    self.ends[k] = self.maps.fill(k, self.table, self.features[k], 1, self.mask)

    # Learning.

    def slope(self, y: Any) -> Any:
        """A number for the classes' slopes P − 1{c = y}, from which the table sees which columns tell most.

        Their sum with signs that are as good as random, because the table has room for one number.
        """
        total = 0.0
        for c in range(int(self.raw.memory[HIGHEST])):
            g = self.mixed[c, 0] - (1.0 if c == y else 0.0)
            total += g if (c * 5 + 1) & 2 == 0 else -g
        return total

    @noinline
    def retire_some(self, y: Any) -> None:
        """Retire all stages where there is nothing to map or there are too many classes, and one that is hopeless."""
        m, of, losses, last = self.memory, self.table.rounds, self.members[LOSSES], len(self.pools)
        nothing = y >= MOST_CLASSES or of[CLOSED] > 0.0 or (of[MANY] == 1.0 and of[WIDE] > 0.9 * m[T])
        maps = 0
        for k in range(1, last + 1):
            behind = losses[k] - losses[0]
            far = m[T] >= PATIENCE and behind > HOPELESS * abs(losses[0]) and FAR_BEHIND < m[ETA] * behind < math.inf
            if nothing or far:
                self.running[k] = 0.0
            maps += self.running[k] > 0.0 and k < last
        if maps == 0:
            self.running[last] = 0.0

    # Frozen copies, in Python, between two rows.

    def copy_weights(self) -> None:
        """Copy the mean weights of every stage; a new period of trials begins (`rue.learners.softmax.frozen`)."""
        for pool in self.pools:
            pool.copy_weights()
        self.trials[EARLIER] += self.trials[LAST]
        self.trials[LAST], self.trials[LATEST] = self.trials[LATEST].copy(), 0.0

    def copied_chances(self) -> Any:
        """What the copies of the stages give each class, a row for each stage.

        The linear stage's own copy has just predicted the row, and the maps were filled with its prediction.
        """
        known = self.raw.copied_counts[: np.flatnonzero(self.raw.copied_counts)[-1] + 1]
        n, stages = known.size, len(self.pools) + 1
        found, logs = np.empty((stages, n)), np.empty((n, stages))
        found[...], logs[...] = self.raw.mixed[:n, 0], self.logs[:n, :1]
        for k, pool in enumerate(self.pools):
            if self.running[k + 1] > 0.0:
                pool.copied_chances(self.features[k, : self.ends[k]], logs, known, found[k + 1])
                logs[:, k + 1] = np.log(np.maximum(found[k + 1], LEAST))
        return found

    def charge_copies(self, c: int, weight: float, chances: Any, score: float) -> None:
        """Charge the copies with what they have lost on a row of class c; `score` is what all stages gave it."""
        if self.raw.copied_counts[c] > 0.0:
            spent = self.trials[LATEST]
            spent[0] -= weight * math.log(max(abs(score), LEAST))
            for k in range(1, spent.size):
                spent[k] -= weight * math.log(max(float(chances[k, c]), LEAST))

    def frozen(self, linear: Frozen, q: Any, standing: Callable[[Any], Any]) -> Frozen:
        """What is frozen of all stages, given that of the linear one, whose candidates have the shares q.

        `standing` makes a learner of a point.
        """
        shares, risk = shares_and_risk(self, q)
        if not shares[1:].any():
            return linear
        point = self.standing()
        point.members[SHARES] = np.append(0.0, shares[1:] / shares[1:].sum())
        return FrozenClassStages(standing(point), False, True, risk, linear=linear, share=float(shares[0]))

    def standing(self) -> StagedClassPoint:
        """A point of its own that predicts with the mean weights of every stage."""
        fields = {array.name: getattr(self, array.name).copy() for array in self.layout}
        mean = np.zeros(self.raw.candidates.shape[1])
        mean[MEAN_OF_MEMBERS] = 1.0
        return self._replace(
            **fields,
            raw=frozen_pool(self.raw, mean)[0],
            pools=tuple(pool.standing() for pool in self.pools),
            table=type(self.table)(*(array.copy() for array in self.table)),
            lines=self.lines.copy(),
        )

    # Reading.

    def scales(self) -> Any:
        """The largest magnitude of each coordinate's feature."""
        return self.raw.scales()

    def points(self) -> list[Any]:
        """The parts whose coordinates are the data's."""
        return [self.raw, self.table]

    def stages(self) -> list[Any]:
        """The parts that have coordinates of their own."""
        return list(self.pools)

    # Room, and the form that files have.

    def grown(self, domain: Any, size: int) -> StagedClassPoint:
        raw = self.raw.grown(domain, size)
        return self._replace(raw=raw, table=self.table.grown(raw.size() + 1), lines=lines_of(raw.size()))

    def with_room(self) -> StagedClassPoint:
        """With more room in the stages that need it (`full`)."""
        return self._replace(pools=tuple(pool.with_room() if pool.full() else pool for pool in self.pools))

    def bytes_per_class(self) -> int:
        """What a class takes in the raw pool; the stages have small arrays, for `MOST_CLASSES` at most."""
        return int(self.raw.bytes_per_class())

    def admitting(self, classes: int) -> StagedClassPoint:
        """Room for more classes; in the stages for `MOST_CLASSES` at most."""
        pools = tuple(pool.admitting(max(pool.classes(), min(classes, MOST_CLASSES))) for pool in self.pools)
        return self._replace(raw=self.raw.admitting(classes), pools=pools, **self.layout.grown(self, "class", classes))

    def with_classes(self, room: int, numbers: Any = None) -> StagedClassPoint:
        """With room for so many classes, and class c + 1 called `numbers[c]`, if that is given."""
        most = min(room, MOST_CLASSES)
        fits = numbers is None or max(numbers, default=0) <= MOST_CLASSES
        running = self.running if fits else np.where(np.arange(self.running.size) > 0, 0.0, self.running)
        pools = tuple(pool.with_classes(most, numbers if fits else None) for pool in self.pools)
        return self._replace(
            raw=self.raw.with_classes(room, numbers),
            pools=pools,
            running=running.copy(),
            **self.layout.grown(self, "class", room),
        )

    def laid_out(self) -> StagedClassPoint:
        """With the arrays of the table as a file has them."""
        if self.lines is None:
            return self
        return self._replace(lines=None, table=self.table._replace(traits=self.table.traits[1:]))

    def gathered(self) -> StagedClassPoint:
        """The inverse of `laid_out`."""
        traits = np.concatenate([np.zeros((1, self.table.traits.shape[1])), self.table.traits])
        return self._replace(lines=lines_of(self.raw.size()), table=self.table._replace(traits=traits))

    def with_own_features(self, used: Sequence[Any]) -> StagedClassPoint:
        """With empty rows in each stage for these mapped features alone."""
        pools = (pool.with_own_features(features) for pool, features in zip(self.pools, used, strict=True))
        return self._replace(pools=tuple(pools))

    def released(self) -> StagedClassPoint:
        """Without the weights of stages that have retired: they do not come back."""
        retired = [self.running[k] == 0.0 and len(pool.weights) > 1 for k, pool in enumerate(self.pools, 1)]
        if not any(retired):
            return self
        emptied = (pool.emptied() if gone else pool for pool, gone in zip(self.pools, retired, strict=True))
        return self._replace(pools=tuple(emptied))

    def changed(self, change: Callable[[Any], Any]) -> StagedClassPoint:
        """With those parts changed whose coordinates are the data's."""
        return self._replace(raw=change(self.raw), table=change(self.table))

    def merged(self, algorithm: Any, parts: Sequence[StagedClassPoint]) -> StagedClassPoint:
        """Every stage merged as it would be alone; a stage that has retired in a part has retired."""
        raw = self.raw.merged(algorithm.raw, [part.raw for part in parts])
        pools = tuple(pool.merged(algorithm, [part.pools[k] for part in parts]) for k, pool in enumerate(self.pools))
        table = self.table.merged([part.table for part in parts])
        merged = self._replace(raw=raw, pools=pools, table=table, **self.layout.merged(self, parts))
        merged.running[...] = np.min([part.running for part in parts], axis=0)
        merged.trials[LAST] = merged.trials.sum(axis=0)  # the weights are copied anew, as those of the linear stage are
        merged.trials[EARLIER] = merged.trials[LATEST] = 0.0
        merged.experts().resettle(merged.work, [state.experts().weights() for state in (self, *parts)])
        return merged

    def require_sane(self, algorithm: Any) -> None:
        """Refuse a state from a file that rounds could not go on from."""
        self.experts().require_sane()
        require_sane(self.raw, algorithm.raw)
        self.table.require_sane()
        if (self.trials < 0.0).any():
            raise DataError("the trials of its frozen copies are impossible")
        for k, pool in enumerate(self.pools, 1):
            require_sane(pool, algorithm)
            own, n = self.raw.counts, min(pool.classes(), self.raw.classes())
            fits = np.array_equal(pool.counts[:n], own[:n]) and not own[n:].any() and not pool.counts[n:].any()
            if self.running[k] > 0.0 and not (fits and self.raw.memory[HIGHEST] <= MOST_CLASSES):
                raise DataError("the classes of its stages do not fit together")


def lines_of(size: int) -> Any:
    """The row of each coordinate in the table: the one after its own, since row 0 stands for none."""
    return np.arange(1, size + 1, dtype=np.uint32)


@inline
def log_of(chance: Any) -> Any:
    """The logarithm of a probability, at least −20."""
    return max(-FAR, math.log(chance)) if chance > 0.0 else -FAR
