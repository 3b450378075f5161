"""`SoftmaxMixture`: more than two classes, and no learning rate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rue.compiled.intrinsics import LANES
from rue.errors import BadExample, DataError, NoRoom
from rue.learners import loop
from rue.learners.learner import Learner
from rue.learners.mixture.columns import NEAR
from rue.learners.mixture.layout import SHARES, VISITS
from rue.learners.mixture.mixing import rates_within
from rue.learners.one_example import complaint, dense_row, one_row, sparse_row
from rue.learners.points import T
from rue.learners.softmax.layout import CLOSED, HIGHEST, KINDS, WIDE
from rue.learners.softmax.multiclass import LogLoss, Softmax, bytes_of, predict_classes, run_class_rows
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


class ClassLearner(Learner):
    """A learner of classes numbered 1, 2, …, which may come at any time; made by `SoftmaxMixture`.

    `predict` gives probabilities: first that of a class never seen before, then those of classes 1, 2, …; `run` gives
    scores: the probability of the class that came, negative where another one had been given at least as much.
    """

    _loop = run_class_rows
    _probabilities = _NONE_NOTED
    """Where the running block notes the probabilities of the classes."""

    @property
    def classes(self) -> int:
        """The highest number of a class that it has learnt."""
        return 0 if self._point is None else int(self._point.memory[HIGHEST])

    @property
    def seen(self) -> Any:
        """Which of the classes 1, 2, … up to the highest it has learnt."""
        return np.zeros(0, dtype=bool) if self._point is None else self._point.counts[: self.classes] > 0.0

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
        return _mean_weights(self._point, self.intercept)[: self.places, : self.classes]

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
            pair = names.known(x) if isinstance(x, Mapping) else sparse_row(x)
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
        out = np.empty((1, 1 + self.classes))
        kinds = type(None), type(rows)
        if kinds not in self._run_rows:
            self._run_rows[kinds] = predict_classes.resolve(self._point, rows, out, 0)
        if self._run_rows[kinds](self._point, rows, out, 0)[1] != loop.OK:
            raise DataError(complaint(loop.BAD_FEATURE, self, x, 1.0, 1.0))
        return out[0]

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
        return self._run_kernel(ledger, rows, block.labels(), block.column_of_weights(), out, begin)

    def _run_kernel(self, ledger: Any, rows: Any, y: Any, weights: Any, out: Any, begin: int) -> tuple[int, int]:
        args = self._point, ledger, rows, y, weights, out, begin, self._probabilities
        kinds = type(ledger), type(rows)
        if kinds not in self._run_rows:
            self._run_rows[kinds] = self._loop.resolve(self._rule, *args)
        end, status = self._run_rows[kinds](self._rule_twin, *args)
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
        status = self._run_kernel(Silent(0), rows, np.array([float(y)]), np.array([float(weight)]), out, 0)[1]
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
        point += pool.weights[:, :, kind * r : (kind + 1) * r] @ share[kind] / scale[:, None]
    if pool.memory[CLOSED] == 0.0 and pool.memory[T] > 0.0:
        used = np.flatnonzero(pool.slots)
        lines = pool.slots[used] - 1
        mean, spread = pool.centres[lines].T
        spread = np.where(spread > FLAT * pool.memory[T] * mean * mean, spread, math.inf)
        by = np.sqrt(pool.memory[T] / spread)
        if intercept:
            mean[used == 0], by[used == 0] = 0.0, 1.0
        own = (pool.lines[lines] @ share[WIDE:].reshape(-1)) * by[:, None]
        point[used] += own
        if intercept:
            point[0] -= mean @ own
    return point


def SoftmaxMixture(*, budget: int | None = None, intercept: bool = True, d: int | None = None) -> ClassLearner:
    """The default learner for more than two classes: no learning rate to choose (B12).

    Softmax members of many rates and kinds learn side by side in one pass under log loss, and their probabilities are
    mixed: the total is at most ln K more than that of the best member that has not retired; example weights above 1
    cost more, as for `rue.Mixture`, and `members.price_at_most` says how much. Classes are numbered 1, 2, …
    and may come at any time. Units of features do not matter. `budget` is the number of bytes a feature may take for
    each class.

    >>> import rue
    >>> X, y = [[0.0], [1.0], [2.0], [0.0], [1.0], [2.0]], ["a", "b", "c", "a", "b", "c"]
    >>> rue.learn(X, y).labels.classes
    ('a', 'b', 'c')
    """
    rates = 2 * LANES
    if budget is not None:
        rates = rates_within("SoftmaxMixture", budget, bytes_of(0), bytes_of(1) - bytes_of(0), " for each class")
    return ClassLearner(Softmax("SoftmaxMixture", LogLoss(), rates), intercept=intercept, d=d)
