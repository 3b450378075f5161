"""`SoftmaxMixture`: more than two classes, and no learning rate."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rue.compiled.intrinsics import LANES
from rue.errors import BadExample, DataError, NoRoom
from rue.learners import loop
from rue.learners.frozen import Frozen
from rue.learners.learner import Learner
from rue.learners.mixture.columns import NEAR, weighted_sum
from rue.learners.mixture.frozen import FIRST_COPY
from rue.learners.mixture.layout import DUE, SHARES, VISITS
from rue.learners.mixture.mixing import rates_within
from rue.learners.one_example import complaint, dense_row, one_row
from rue.learners.points import T
from rue.learners.softmax.frozen import (
    copied,
    copied_mixture,
    copy_anew,
    every,
    frozen_pool,
    frozen_risk,
    preferences,
    try_out,
    until_due,
)
from rue.learners.softmax.layout import CLOSED, HIGHEST, KINDS, WIDE
from rue.learners.softmax.multiclass import FULL, LogLoss, Softmax, bytes_of, predict_classes, run_class_rows
from rue.learners.softmax.softmax import FLAT
from rue.learners.turns import Turn
from rue.ledger import Ledger, Silent
from rue.memory import gibibytes, memory_limit
from rue.norms import SMALL, UP
from rue.rows import DenseRows, SparseRows
from rue.streams import Block, blocks
from rue.streams.labels import MOST_CLASSES

__all__ = ["ClassLearner", "SoftmaxMixture"]

_NONE_NOTED = np.empty((0, 0))
"""In place of a matrix of probabilities, for `run_class_rows`: none were asked for."""


@dataclasses.dataclass(frozen=True, eq=False)
class FrozenClasses(Frozen):
    """`Frozen` of several classes: part of each prediction may be a constant, the frequencies of the classes."""

    constant: float = 0.0
    """The share of the constant."""
    by_class: Any = None
    """The frequencies of the classes 1, 2, …."""

    def predict_many(self, X: Any) -> Any:
        """A row of probabilities for each example, as `ClassLearner.predict` gives them."""
        return self._with_constant(self.learner.predict_many(X))

    def predict(self, x: Any) -> Any:
        """The probabilities of one example."""
        return self._with_constant(self.learner.predict(x))

    def _with_constant(self, chances: Any) -> Any:
        known = 1.0 - chances[..., :1]
        chances[..., 1:] += self.constant * (known * self.by_class - chances[..., 1:])
        return chances


class ClassLearner(Learner):
    """A learner of classes numbered 1, 2, …, which may come at any time; made by `SoftmaxMixture`.

    `predict` gives probabilities: first that of a class never seen before, then those of classes 1, 2, …; `run` gives
    scores: the probability of the class that came, negative where another one had been given at least as much.
    """

    _loop = run_class_rows
    _probabilities = _NONE_NOTED
    """Where the running block notes the probabilities of the classes."""

    @property
    def _pool(self) -> Any:
        """The learners over the features as they are: of a learner with stages, its linear one."""
        return getattr(self._point, "raw", self._point)

    @property
    def classes(self) -> int:
        """The highest number of a class that it has learnt."""
        return 0 if self._point is None else int(self._pool.memory[HIGHEST])

    @property
    def seen(self) -> Any:
        """Which of the classes 1, 2, … up to the highest it has learnt."""
        return np.zeros(0, dtype=bool) if self._point is None else self._pool.counts[: self.classes] > 0.0

    @property
    def names_of_next(self) -> int:
        """How many names the next new class may have: it may stand at any place among those that it has learnt.

        It is scored by the probability that a new one comes, divided by this number (docs/theory.md, section 2).
        """
        return 1 + int(self.seen.sum())

    def point_in_places(self, average: bool = False) -> Any:
        """The posterior mean of the members' weights, a column for each class, of features as the data has them."""
        if self._point is None:
            return np.zeros((self.coordinates, 0))
        return _mean_weights(self._pool, self.intercept)[: self.places, : self.classes]

    def frozen(self) -> Frozen:
        """The model that stays when learning stops: the members as `rue.learners.softmax.frozen` weighs them.

        Of a learner with stages, these as `rue.learners.staged.class_frozen` weighs them.
        """
        with Turn(self, wait=True):
            now = self.t, self.d
            if self._frozen is not None and self._frozen[0] == now:
                return self._frozen[1]
            q = None if self._point is None else preferences(self._pool)
            if q is None:
                tried = self.algorithm.tries_frozen
                return Frozen(self, False, chosen=False, untried=tried is not None and self.t >= tried)
            pool, constant = frozen_pool(self._pool, q)
            by_class = pool.counts[: self.classes] / pool.counts.sum()
            risk, linear = frozen_risk(self._pool, q), self._standing(pool)
            frozen: Frozen = FrozenClasses(linear, False, True, risk, constant=constant, by_class=by_class)
            if self._pool is not self._point:
                frozen = self._point.frozen(frozen, q, self._standing)
            self._frozen = now, frozen
            return frozen

    def _standing(self, point: Any) -> ClassLearner:
        """A learner of its own, with another point, which predicts when this one has gone on."""
        state = self.__getstate__()
        for name in ("names", "numbering", "bins"):
            state[name] = copy.deepcopy(state[name])
        standing = type(self).__new__(type(self))
        standing.__setstate__({**state, "_point": point})
        return standing

    @property
    def bias(self) -> Any:
        """The weights of the intercept, one for each class, 0 without one."""
        return self.point_in_places()[0] if self.intercept else np.zeros(self.classes)

    def predict(self, x: Any, average: bool = False) -> Any:
        """The probabilities of one example: of a class never seen before, then of the classes."""
        with Turn(self, wait=True):
            return self._predict_one(x)

    def _predict_one(self, x: Any) -> Any:
        names = self.names
        if type(x) is dict and tuple(x) == names.keys and names.pack(x) and np.isfinite(names.values).all():
            pair: Any = names.indices, names.values
        else:
            pair = names.known(x) if isinstance(x, Mapping) else self._binned_pair(x)
            if pair is not None and not np.isfinite(pair[1]).all():
                raise DataError(complaint(loop.BAD_FEATURE, self, x, 1.0, 1.0))
        if pair is None:
            row = dense_row(x)
            if self._point is None or row.size != self.d or self.numbering is not None:
                learner, block = self._for_prediction(Block(row[None, :]))  # which makes room, or refuses
                out, _, status = learner._predict_block(block, False)
                if status != loop.OK:
                    raise BadExample(0, complaint(status, self, math.nan, 1.0, 1.0))
                return out[0]
            return self._chances(DenseRows(row, np.uint64(self.d), np.uint64(self.intercept)), x)
        if self._point is None:
            return np.ones(1)
        if self.numbering is not None:
            return self._chances(self._for_prediction(one_row(pair, 2**32))[1].rows(self.intercept), x)
        inside = pair[0] < self.d  # features never seen have weight 0
        indices, values = pair if inside.all() else (pair[0][inside], pair[1][inside])
        return self._chances(_one_sparse_row(indices, values, self.d, self.intercept), x)

    def _chances(self, rows: Any, x: Any) -> Any:
        """The probabilities of a single row."""
        chances, status = self._predict_rows(self._point, rows, 0)
        if status != loop.OK:
            raise DataError(complaint(loop.BAD_FEATURE, self, x, 1.0, 1.0))
        return chances

    def predict_many(self, X: Any, average: bool = False) -> Any:
        """A row of probabilities for each example, as `predict` gives them, learning nothing."""
        if average:
            self._require_average()
        parts, before, learner = [np.empty((0, 1 + self.classes))], 0, self
        for block in blocks(X):
            with Turn(self, wait=True):
                learner, block = (self if self._point is None else learner)._for_prediction(Block(block.X))
                out, end, status = learner._predict_block(block, average)
            if status != loop.OK:
                raise BadExample(before + end, complaint(status, self, math.nan, 1.0, 1.0))
            parts.append(out)
            before += len(block)
        return np.concatenate(parts)

    def _predict_block(self, block: Block, average: bool) -> tuple[Any, int, int]:
        out = np.empty((len(block), 1 + self.classes))
        end, status = predict_classes(self._point, block.rows(self.intercept), out, 0)
        if status == loop.UNORDERED:
            end, status = predict_classes(self._point, block.in_order().rows(self.intercept), out, end)
        return out, end, status

    def run_block(
        self, block: Block, ledger: Ledger | Silent, out: Any, begin: int, probabilities: Any = None
    ) -> tuple[int, str]:
        """As `Learner.run_block`; `probabilities` is filled with those of every class, made before each update.

        It has a row for each example and a column for each of the classes 1, 2, …; NaN in the row of a refused example.

        >>> learner, seen = SoftmaxMixture(), np.empty((3, 2))
        >>> learner.run_block(Block(np.zeros((3, 1)), np.array([1.0, 2.0, 1.0])), Silent(0), np.empty(3), 0, seen)
        (3, '')
        >>> seen[:2]
        array([[0.  , 0.  ],
               [0.75, 0.  ]])
        """
        self._require_rows(block, out, begin)
        noted = _NONE_NOTED if probabilities is None else probabilities
        fits = probabilities is None or (noted.ndim == 2 and len(noted) == len(block))
        if not fits or noted.dtype != np.float64 or not noted.flags.c_contiguous:
            raise DataError("run_block: probabilities must be a contiguous float64 matrix with one row for each row.")
        with Turn(self):
            self._probabilities = noted
            try:
                return self._run_block(block, ledger, out, begin)
            finally:
                self._probabilities = _NONE_NOTED

    def _run(self, rows: Any, block: Block, ledger: Any, out: Any, begin: int) -> tuple[int, int]:
        return self._run_and_try(ledger, rows, block.labels(), block.column_of_weights(), out, begin)

    def _run_and_try(self, ledger: Any, rows: Any, y: Any, weights: Any, out: Any, begin: int) -> tuple[int, int]:
        """Learn rows in stretches that end where weights are copied, and score the copies on a sample of them."""
        if self._pool is not self._point and self._point.running[-1] > 0.0:
            ended = self._run_and_try_stages(ledger, rows, y, weights, out, begin)
            self._point = self._point.released()
            return ended
        end, status = begin, loop.OK
        while status == loop.OK and end < y.size:
            pool = self._pool
            if until_due(pool) == 0:
                copy_anew(pool)
            first, before, copy_ = end, int(pool.memory[T]), copied(pool)
            stop = min(y.size, first + until_due(pool))
            end, status = self._run_kernel(ledger, rows, y[:stop], weights, out, first)
            if copy_ is not None and end > first:
                learnt = ~np.isnan(out[first:end])
                learnt &= weights[first:end] > 0.0 if weights.size else True
                rounds = before + np.cumsum(learnt) - 1  # how many had been learnt before each
                for i in first + np.flatnonzero(learnt & (rounds % every(pool) == 0)):
                    self._predict_rows(copy_, rows, int(i))
                    try_out(pool, int(y[i]) - 1, float(weights[i]) if weights.size else 1.0, float(out[i]))
        return end, status

    def _run_and_try_stages(
        self, ledger: Any, rows: Any, y: Any, weights: Any, out: Any, begin: int
    ) -> tuple[int, int]:
        """The same of stages: their copies are tried before the row is learnt, because they need the columns' past."""
        end, status = begin, loop.OK
        while status == loop.OK and end < y.size:
            pool = self._pool
            if until_due(pool) == 0:
                copy_anew(pool)
                self._point.copy_weights()
            left = -int(pool.memory[T]) % every(pool) if pool.trial[DUE] > FIRST_COPY else until_due(pool)
            if left == 0:
                end, status = self._try_and_learn(ledger, rows, y, weights, out, end)
            else:
                stop = min(y.size, end + min(left, until_due(pool)))
                end, status = self._run_kernel(ledger, rows, y[:stop], weights, out, end)
        return end, status

    def _try_and_learn(self, ledger: Any, rows: Any, y: Any, weights: Any, out: Any, i: int) -> tuple[int, int]:
        """Have all copies predict row i, learn it, and charge them if it was learnt."""
        point, pool = self._point, self._pool
        weight, known = float(weights[i]) if weights.size else 1.0, 1.0 - pool.reserve()
        tried = weight > 0.0 and self._predict_rows(point._replace(raw=copied_mixture(pool)), rows, i)[1] == loop.OK
        chances, of_stages = (pool.chances.copy(), point.copied_chances()) if tried else (None, None)
        end, status = self._run_kernel(ledger, rows, y[: i + 1], weights, out, i)
        if tried and end > i and not math.isnan(out[i]):
            c, score = int(y[i]) - 1, known * float(pool.mixed[int(y[i]) - 1, 0])
            pool.chances[...] = chances
            try_out(pool, c, weight, score)
            self._point.charge_copies(c, every(pool) * weight, of_stages, float(out[i]))
        return end, status

    def _predict_rows(self, point: Any, rows: Any, i: int) -> Any:
        """The probabilities of row i by a point, and whether all was well; the members' are left in its `chances`."""
        highest = int(getattr(point, "raw", point).memory[HIGHEST])
        out, kinds = np.empty((i + 1, 1 + highest)), (type(point), type(rows))
        if kinds not in self._run_rows:
            self._run_rows[kinds] = predict_classes.resolve(point, rows, out, i)
        status = self._run_rows[kinds](point, rows, out, i)[1]
        return out[i], status

    def _run_kernel(self, ledger: Any, rows: Any, y: Any, weights: Any, out: Any, begin: int) -> tuple[int, int]:
        kinds, end, status = (type(ledger), type(rows)), begin, FULL
        while status == FULL:
            args = self._point, ledger, rows, y, weights, out, end, self._probabilities
            if kinds not in self._run_rows:
                self._run_rows[kinds] = self._loop.resolve(self._rule, *args)
            end, status = self._run_rows[kinds](self._rule_twin, *args)
            if status == FULL:
                self._point = self._point.with_room()
        return int(end), int(status)

    def _make_room(self, block: Block) -> Block:
        """Make room for a block's features and classes."""
        if block.y is not None and len(block):
            y = block.labels()
            highest = float(np.max(y, where=(y >= 1.0) & (y <= MOST_CLASSES), initial=0.0))
            if self._point is not None:  # its classes are known before features are multiplied by them
                self._admit(highest)
                return super()._make_room(block)
            block = super()._make_room(block)
            self._admit(highest)
            return block
        return super()._make_room(block)

    def _bytes_per_coordinate(self) -> int:
        classes = 4 if self._point is None else self._point.classes()
        return int(self.algorithm.bytes_per_coordinate) * classes + 56

    def _admit(self, y: float) -> None:
        """Make room for class y, and for a few more."""
        room = self._point.classes()
        if room < y <= MOST_CLASSES:
            while room < y:
                room += room // 4 + 1
            room = min(room, MOST_CLASSES)
            needed = self._point.bytes_per_class() * (room + self._point.classes())  # the old arrays and the new
            if needed > memory_limit():
                raise self._no_room(needed, self._point.size(), "its coordinates", room)
            try:
                self._point = self._point.admitting(room)
            except MemoryError as error:  # the process holds other things too
                raise self._no_room(needed, self._point.size(), "its coordinates", room) from error

    def _no_room(self, needed: int, coordinates: int, what: str, classes: int | None = None) -> NoRoom:
        """A coordinate has numbers for each class, so fewer classes help too."""
        classes, limit = classes or (0 if self._point is None else self._point.classes()), memory_limit()
        return NoRoom(
            f"{self.algorithm.name} needs {gibibytes(needed)} for {classes:,} classes of {coordinates:,} coordinates, "
            f"more than {'the' if needed > limit else 'is left of the'} {gibibytes(limit)} that there are: take a "
            "target of fewer classes (numbers that are no classes: --task regress), leave out columns of names "
            "(--drop), hash features into fewer (--bits), or give a smaller --budget."
        )

    # One example at a time is a block of one row.

    def _resolve_dense(self, row: Any, learns: bool = True) -> None:
        if self._learn_dense is None:
            self._learn_dense = self._one_dense
            self._set_width(self.d)

    def _resolve_sparse(self, indices: Any, values: Any, learns: bool = True) -> None:
        if self._learn_sparse is None:
            self._learn_sparse = self._one_sparse

    def _one_dense(self, rule: Any, point: Any, x: Any, intercept: bool, y: Any, weight: Any) -> int:
        return self._learn_one(DenseRows(np.ascontiguousarray(x), np.uint64(x.size), np.uint64(intercept)), y, weight)

    def _one_sparse(self, rule: Any, point: Any, indices: Any, values: Any, intercept: bool, y: Any, w: Any) -> int:
        return self._learn_one(_one_sparse_row(indices, values, self.d, intercept), y, w)

    def _learn_one(self, rows: Any, y: Any, weight: Any) -> int:
        self._admit(y)
        out = np.empty(1)
        status = self._run_and_try(Silent(0), rows, np.array([float(y)]), np.array([float(weight)]), out, 0)[1]
        return loop.REFUSED if status == loop.OK and math.isnan(out[0]) else status


def _one_sparse_row(indices: Any, values: Any, d: int, intercept: bool) -> SparseRows:
    ends = np.array([0, indices.size])
    return SparseRows(ends, indices, values, np.uint64(d), np.uint64(intercept), indices)


def _mean_weights(pool: Any, intercept: bool) -> Any:
    """For each coordinate and class; what is subtracted from centred features counts for the intercept."""
    share = pool.members[SHARES].reshape(KINDS, -1) * np.maximum(pool.kinds, 0.0)[:, None]
    share = share / pool.members[SHARES].reshape(KINDS, -1).sum(axis=1, keepdims=True) / np.maximum(pool.kinds, 0).sum()
    stats, r = pool.stats, share.shape[1]
    largest, squares, visits, first = np.where(stats[:, VISITS] > 0.0, stats.T, 1.0)
    point = np.zeros(pool.weights.shape[:2])
    by_root = np.sqrt(squares / visits) / np.where(largest < SMALL, UP, 1.0)
    for kind, scale in enumerate((by_root, np.maximum(first, NEAR * largest), largest)):
        point += weighted_sum(pool.weights[:, :, kind * r : (kind + 1) * r], share[kind]) / scale[:, None]
    if pool.memory[CLOSED] == 0.0 and pool.memory[T] > 0.0:
        used = np.flatnonzero(pool.slots)
        lines = pool.slots[used] - 1
        mean, spread = pool.centres[lines].T
        spread = np.where(spread > FLAT * pool.memory[T] * mean * mean, spread, math.inf)
        by = np.sqrt(pool.memory[T] / spread)
        if intercept:
            mean[used == 0], by[used == 0] = 0.0, 1.0
        own = weighted_sum(pool.lines[lines], share[WIDE:].reshape(-1)) * by[:, None]
        point[used] += own
        if intercept:
            point[0] -= mean @ own
    return point


def SoftmaxMixture(
    *, budget: int | None = None, share: Any = "1/t", intercept: bool = True, d: int | None = None
) -> ClassLearner:
    """The linear learner for more than two classes, the first stage of the default: no learning rate (B15, B12).

    Softmax members of many rates and kinds learn side by side in one pass under log loss, and their probabilities are
    mixed with what `share` promises for `rue.Mixture`, against members that have not retired: at most ln K + ln s more
    than the best member on every stretch of rounds up to round s. `members.price_at_most` says how much it is, example
    weights above 1 included. Classes are numbered 1, 2, … and may come at any time. Units of features do not matter.
    `budget` is the number of bytes a feature may take for each class.

    `intercept` and `d` are as for `OGD`.

    >>> import rue
    >>> X, y = [[0.0], [1.0], [2.0], [0.0], [1.0], [2.0]], ["a", "b", "c", "a", "b", "c"]
    >>> rue.learn(X, y).labels.classes
    ('a', 'b', 'c')
    """
    rates = 2 * LANES
    if budget is not None:
        rates = rates_within("SoftmaxMixture", budget, bytes_of(0), bytes_of(1) - bytes_of(0), " for each class")
    return ClassLearner(Softmax("SoftmaxMixture", LogLoss(), rates, share), intercept=intercept, d=d)
