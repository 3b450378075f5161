"""`Learner`: an algorithm, its loss, domain and step, and the state it has reached."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
from numpy import ndarray

from rue.compiled import Strided, twin
from rue.errors import BadExample, DataError, NoRoom, SettingsError, shown
from rue.learners import loop
from rue.learners.algorithm import Algorithm
from rue.learners.bins import Bins
from rue.learners.frozen import Frozen
from rue.learners.lags import Called, Lags
from rue.learners.one_example import Names, complaint, dense_row, is_number, number, one_row, sparse_row
from rue.learners.points import PENALTY, RESIDUAL, TOTAL, T, declarations_of, own_features_of, owned, state_of
from rue.learners.turns import Turn, busy, wait_until_idle
from rue.ledger import Ledger, Silent
from rue.memory import gibibytes, memory_limit
from rue.streams import Block, blocks
from rue.streams.numbering import Numbering, in_use, spread

__all__ = ["Learner"]

_FLOAT64 = np.dtype(np.float64)
_REFUSED = loop.REFUSED


class Learner:
    """A learner that can predict, be updated, or run over many examples; made by `OGD`, `Perceptron`, `SVM`, ….

    Its state is a value: `copy`, `==` and `pickle` work, and a learner goes on bit for bit from wherever it stands,
    one example at a time or in blocks of any size. With an intercept, coordinate 0 of `point` is the intercept's. A
    learner serves one thread at a time: `predict` and `copy` wait for their turn, and `update` and `run` raise
    `RueError` while another thread is in the learner. Give each thread a copy, or use a lock.

    `algorithm` says how it learns and with which loss, domain and step; `intercept` adds a feature that is always 1,
    and `d` fixes the number of features, which otherwise the data decide. With `lags` the last labels are features too
    (`with_lags`).

    >>> import rue
    >>> learner = rue.OGD("square", "ball:1", rue.Fixed(0.25), intercept=False)
    >>> learner.predict([1.0]), learner.update([1.0], 1.0), learner.predict([1.0])
    (0.0, None, 0.5)
    >>> learner.copy() == learner
    True
    """

    _loop = loop.run_rows

    def __init__(self, algorithm: Algorithm, *, intercept: bool = True, d: int | None = None, lags: Any = None) -> None:
        if d is not None and (isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 0):
            raise SettingsError(f"{algorithm.name}: d must be the number of features, not {shown(d)}.")
        if not isinstance(intercept, int | np.bool_) or intercept not in (0, 1):
            raise SettingsError(f"{algorithm.name}: intercept must be True or False, not {shown(intercept)}.")
        self.algorithm, self.intercept = algorithm, bool(intercept)
        self.d, self.names = 0, Names()
        """The number of features, and the names of those that came in dicts."""
        self.numbering: Numbering | None = None
        """Which row of the point's arrays a feature has (sparse, wide data); None while every feature has its own."""
        self.lags: Lags | None = None if lags is None else Lags(lags)
        """The last labels, which are features in front of those of the data; None if it has none."""
        self.bins: Bins | None = None
        """Columns of a table put into bins, which are features too; settled by the first block (`Block.bins`)."""
        if lags is not None and algorithm.loss.task == "multiclass":
            raise SettingsError("lags: with more than two classes the last label is no feature yet: leave lags out.")
        self._rule: Any = None
        self._point: Any = None
        self._busy = False
        self._reset_entry_points()
        fixed = algorithm.domain.dimension
        if d is None and fixed is not None:
            d = fixed - int(self.intercept)
            if d < 0:
                raise SettingsError(
                    f"{algorithm.name}: {algorithm.domain!r} has {fixed} coordinates, none left for the intercept."
                )
        if d is not None:
            self._begin(int(d) + (0 if fixed is not None else self._lagged), sparse=True)

    def _reset_entry_points(self) -> None:
        """What is derived from the state and never stored: compiled entry points and the kernels' view of the rule."""
        self._frozen: tuple[tuple[int, int], Frozen] | None = None
        """The last answer of `frozen`, and the numbers of examples and features that it belongs to."""
        self._rule_twin = twin(self._rule)
        self._learn_dense: Any = None
        self._learn_sparse: Any = None
        self._predict_dense: Any = None
        self._predict_sparse: Any = None
        self._shape: tuple[int] | None = None
        self._run_rows: dict[tuple[type, type], Any] = {}

    # What it is.

    @property
    def loss(self) -> Any:
        """The loss it learns with."""
        return self.algorithm.loss

    @property
    def domain(self) -> Any:
        """The set that its points lie in."""
        return self.algorithm.domain

    @property
    def t(self) -> int:
        """How many examples it has learnt."""
        return 0 if self._point is None else int(self._point.memory[T])

    @property
    def _lagged(self) -> int:
        """How many features stand in front of those of the data."""
        return 0 if self.lags is None else self.lags.many

    @property
    def own_features(self) -> int:
        """The number of the data's features: `d` without those that are last labels.

        >>> import rue
        >>> learner = rue.OGD().with_lags([1, 2])
        >>> learner.update([1.0], 1)
        >>> learner.d, learner.own_features
        (4, 1)
        """
        return max(0, self.d - self._lagged)

    def with_lags(self, lags: Any) -> Learner:
        """A learner like this one, which has not learnt anything, that has the last labels for features too.

        `lags` are whole numbers: for each k the k-th last label is a feature, and above 1 a mean of about k of them
        (`rue.learners.lags`). A label counts when its example is learnt, so where labels come late, so do lags.

        >>> import rue
        >>> learner = rue.OGD("logistic").with_lags([1])
        >>> _ = learner.run([[0.0]] * 4, [1, 1, 1, 1])
        >>> learner.predict([0.0]) > rue.OGD("logistic").predict([0.0])
        True
        """
        if self.t or self.lags is not None:
            raise SettingsError("lags: the learner has learnt already: its lags are settled; leave lags out.")
        d = self.d if self._point is not None and self.domain.dimension is None else None
        return type(self)(self.algorithm, intercept=self.intercept, d=d, lags=lags)

    def called(self, names: Mapping[int, str]) -> Mapping[int, str]:
        """What features are called: last labels, those that came by name, and those of the data, which have `names`.

        >>> import rue
        >>> dict(rue.OGD().with_lags([1]).called({0: "size"}))
        {0: 'last label', 1: 'size'}
        """
        own = {**{j: str(name) for name, j in self.names.places.items()}, **names}
        return own if self.lags is None else Called(self.lags.names, own)

    def with_last_labels(self, block: Block) -> Block:
        """The rows of a block as it sees them if no more labels come: with bins, and with the last labels in front.

        >>> import rue
        >>> learner = rue.OGD().with_lags([1])
        >>> learner.update([5.0], -1)
        >>> learner.with_last_labels(rue.Block([[3.0], [4.0]])).X
        array([[-1.,  3.],
               [-1.,  4.]])
        """
        if self.bins is not None and block.bins != ():
            self._require_bins(block)
            block = self.bins.attached(block, standing=True)
        return block if self.lags is None or block.lagged else self.lags.attached(block, standing=True)

    def _begin_bins(self, block: Block) -> None:
        """Settle which columns are put into bins, as a block asks, or refuse what contradicts that."""
        if block.bins and self.bins is None:
            if self.t:
                raise SettingsError("bins: the learner has learnt already without them: leave bins out.")
            self.bins = Bins(block.bins)
            self._set_width(self.d)
        self._require_bins(block)

    def _require_bins(self, block: Block) -> None:
        """Refuse a block that has other columns put into bins than the learner."""
        if block.bins and (self.bins is None or block.bins != self.bins.columns):
            raise SettingsError("bins: the learner has learnt other columns in bins: read the data as it was learnt.")
        if self.bins is not None and not block.sparse:
            raise DataError("bins: the learner has learnt columns of a table in bins: give it rows of a table.")

    def enter(self, block: Block, begin: int, end: int) -> None:
        """The rows `begin` to `end` of a block become part of the past, which lags and bins are made of.

        The block is one that `widen` has prepared. `run_block` does so with the rows that it learns; this is for rows
        that are passed over.

        >>> import rue
        >>> learner = rue.OGD("square").with_lags([1])
        >>> learner.enter(rue.Block([[1.0], [2.0]], y=[3.0, 5.0]), 0, 2)
        >>> learner.lags.present().tolist()
        [5.0]
        """
        if self.lags is not None:
            self.lags.enter(block.labels()[begin:end], block.column_of_weights()[begin:end])
        if self.bins is not None:
            self.bins.enter(block, begin, end)

    @property
    def coordinates(self) -> int:
        """The number of features, and one more with an intercept."""
        return self.d + int(self.intercept)

    @property
    def places(self) -> int:
        """How many coordinates have a row in the arrays: all, or of sparse, wide data those that have occurred."""
        return self.coordinates if self.numbering is None else self.numbering.size + int(self.intercept)

    def coordinates_of_places(self) -> Any:
        """The coordinate of each row of the arrays, −1 for one that is never used; None where row j is coordinate j.

        >>> import rue
        >>> learner = rue.OGD("hinge", "ball:1")
        >>> learner.update(([5, 900], [1.0, 2.0]), 1)
        >>> learner.coordinates_of_places() is None  # 901 features are not wide: each has its own row
        True
        """
        return None if self.numbering is None else self.numbering.coordinates(self.intercept)

    def point_in_places(self, average: bool = False) -> Any:
        """`point`, or with `average` the `average`, of the coordinates that have a row in the arrays.

        >>> import rue
        >>> learner = rue.Perceptron()
        >>> learner.update([2.0, 0.0], 1)
        >>> learner.point_in_places()
        array([1., 2., 0.])
        """
        if self._point is None:
            return self.domain.start(self.coordinates)
        if average and self._point.memory[TOTAL] > 0.0:
            return self._point.averaged(self.domain)[: self.places]
        return self._point.current(self.domain)[: self.places]

    def scales_in_places(self) -> Any:
        """`scales` of the coordinates that have a row in the arrays; None for a learner that has none.

        >>> import rue
        >>> learner = rue.AdaGrad(scale="largest", intercept=False)
        >>> learner.update([-3.0, 0.5], 1)
        >>> learner.scales_in_places()
        array([3. , 0.5])
        """
        return None if self._point is None else getattr(self._point, "scales", lambda: None)()

    def _in_full(self, array: Any) -> Any:
        """Numbers for the coordinates that have a row in the arrays as numbers for all; NoRoom if they are too many."""
        if self.numbering is None or array is None:
            return array
        each = 8 * max(1, math.prod(array.shape[1:]))
        self._require_memory(self.coordinates, each, "an array of all its coordinates")
        return spread(array, self.coordinates_of_places(), self.coordinates)

    @property
    def point(self) -> Any:
        """w_t in full, the intercept first if there is one; `rue.weights_of` lists those that are not 0."""
        return self._in_full(self.point_in_places())

    @property
    def weights(self) -> Any:
        """The weights of the features."""
        return self.point[int(self.intercept) :]

    @property
    def bias(self) -> float:
        """The weight of the intercept, 0 without one."""
        return float(self.point_in_places()[0]) if self.intercept else 0.0

    @property
    def average(self) -> Any:
        """Σα_t w_t / Σα_t over the points played so far, in full; w_1 before the first."""
        self._require_average()
        return self._in_full(self.point_in_places(average=True))

    def frozen(self) -> Frozen:
        """The model that stays when learning stops (`Frozen`): later updates of this learner do not change it.

        `rue predict`, `Run.predict`, `Model.predict`, `weights_of`, `explain` and `rue.sklearn` use it.

        >>> import rue
        >>> learner = rue.Perceptron(average="uniform")
        >>> learner.update([1.0], 1)
        >>> model = learner.frozen()
        >>> learner.update([1.0], -1)
        >>> model.predict_many([[1.0]]).shape
        (1,)
        """
        with Turn(self, wait=True):
            now = self.t, self.d
            if self._frozen is not None and self._frozen[0] == now:
                return self._frozen[1]
            chosen = self.algorithm.frozen_weights(self._point, self.intercept)
            if chosen is None:
                tried = self.algorithm.tries_frozen
                untried = tried is not None and self.t >= tried
                return Frozen(self, self.algorithm.averaging, chosen=False, untried=untried)
            state = self.__getstate__()
            state["_point"] = chosen.point
            for name in ("names", "numbering", "lags", "bins"):
                state[name] = copy.deepcopy(state[name])
            standing = type(self).__new__(type(self))
            standing.__setstate__(state)
            frozen = Frozen(standing, False, True, chosen.risk, range=chosen.range)
            self._frozen = now, frozen
            return frozen

    def _require_average(self) -> None:
        if not self.algorithm.averaging:
            raise SettingsError(f"{self.algorithm.name}: no average is kept: build it with average='uniform'.")

    @property
    def penalty(self) -> float:
        """Σ weight·(λ/2)‖w_t‖² over the rounds so far: the regulariser's part of a regularised loss."""
        return 0.0 if self._point is None else float(self._point.memory[PENALTY])

    @property
    def scales(self) -> Any:
        """What a scale-free learner divides each coordinate by, its largest magnitude so far; None for the others."""
        return self._in_full(self.scales_in_places())

    @property
    def residual(self) -> float:
        """The worst distance to the domain that an inexact projection (a domain's `onto`) has left; 0 if exact."""
        return 0.0 if self._point is None else float(self._point.memory[RESIDUAL])

    def explain(self) -> str:
        """The step it takes and why, in words.

        >>> import rue
        >>> print(rue.OGD("hinge", "ball:10", "sqrt:0.5").explain())
        step Sqrt(value=0.5) as given
        """
        if self._point is None and self.domain.diameter(1) != self.domain.diameter(4):  # the diameter depends on d
            return "the step depends on the number of features, which the first example or d= will tell"
        return self.algorithm.explain(self.coordinates)

    def __repr__(self) -> str:
        lags = "" if self.lags is None else f", lags={list(self.lags.back)}"
        bins = "" if self.bins is None else f", {len(self.bins.columns)} columns in bins"
        return f"{self.algorithm.name}({self.algorithm.describe()}, intercept={self.intercept}{lags}{bins})"

    # One example at a time. The two fast paths check no more than memory safety needs: the compiled code does the rest.

    def predict(self, x: Any, average: bool = False) -> float:
        """The prediction for one example, ⟨w, x⟩; never changes the learner. With `average`, of the averaged point.

        x is a dense row, a pair (indices, values), a dict of names, or a sparse matrix of one row. In a dict a word is
        a category, the feature `name=word` of value 1, and None or NaN a missing value, the feature `name=`.

        >>> import rue
        >>> learner = rue.Perceptron()
        >>> learner.update({"size": 2.0}, 1)
        >>> learner.predict({"size": 3.0}), learner.predict({"weight": 3.0})  # a name never seen has no weight
        (7.0, 1.0)
        """
        while self._busy:  # `turns` says why this is safe
            wait_until_idle(self)
        self._busy = True
        try:
            if not average:
                if type(x) is ndarray:
                    if x.shape == self._shape and x.dtype is _FLOAT64:
                        p: float = self._predict_dense(self._point, x, self.intercept, False)
                        if isfinite(p):
                            return p
                elif (
                    type(x) is dict and tuple(x) == self.names.keys and self._predict_sparse is not None and self._plain
                ):
                    names = self.names
                    if names.pack(x):
                        p = self._predict_sparse(self._point, names.indices, names.values, self.intercept, False)
                        if isfinite(p):
                            return p
            return self._predict_any(x, average)
        finally:
            self._busy = False

    def update(self, x: Any, y: float, weight: float = 1.0) -> None:
        """Learn one example; a refused one (its prediction, loss or step is not finite) changes nothing.

        x is as for `predict`. Names that a dict brings for the first time become features.

        `y` is a label that the loss takes, and `weight`, 0 or more, how much the example counts: its loss is weight·ℓ.

        >>> import rue
        >>> learner = rue.Perceptron()
        >>> learner.update({"size": 2.0, "colour": "red", "age": None}, 1)
        >>> list(rue.weights_of(learner))
        [('intercept', 1.0), ('size', 2.0), ('colour=red', 1.0), ('age=', 1.0)]
        """
        if self._busy:  # `turns` says why this is safe
            raise busy()
        self._busy = True
        try:
            if type(x) is ndarray and x.shape == self._shape and x.dtype is _FLOAT64:
                status = self._learn_dense(self._rule_twin, self._point, x, self.intercept, y, weight)
            elif (
                type(x) is dict
                and tuple(x) == self.names.keys
                and self._learn_sparse is not None
                and self._plain
                and self.names.pack(x)
            ):
                names = self.names
                status = self._learn_sparse(
                    self._rule_twin, self._point, names.indices, names.values, self.intercept, y, weight
                )
                if status == loop.BAD_FEATURE:
                    status = self._update_any(x, y, weight)  # a NaN in a dict is a missing value
            else:
                status = self._update_any(x, y, weight)
            if self.lags is not None and status <= _REFUSED:
                self.lags.enter(y, weight)
            if self.bins is not None and status <= _REFUSED:
                self.bins.enter_last(y, weight)
        except TypeError as error:
            if is_number(y) and is_number(weight):  # then it is a mistake in the algorithm or the loss
                raise
            raise DataError(f"the label and the weight must be numbers, not {shown(y)} and {shown(weight)}.") from error
        finally:
            self._busy = False
        if status > _REFUSED:
            raise DataError(complaint(status, self, x, y, weight))

    def _update_any(self, x: Any, y: Any, weight: Any) -> int:
        """Any form of example; afterwards the fast path above takes the next one like it."""
        begun, d, known = self._point is not None, self.d, len(self.names.places)
        numbering, numbered = self.numbering, 0 if self.numbering is None else self.numbering.known
        status = loop.BAD_FEATURE
        try:
            status = self._learn_any(x, number(y), number(weight))
        finally:
            if status != loop.OK:  # names and widths that came with it go with it
                self.names.forget_from(known)
                self.numbering = numbering
                if numbering is not None:
                    numbering.forget_from(numbered)
                self._set_width(d)
                if not begun:
                    self._rule = self._point = None
                    self._reset_entry_points()
        return status

    def _learn_any(self, x: Any, y: float, weight: float) -> int:
        """Learn one example in any form; what became of it (`loop`)."""
        if isinstance(x, Mapping):
            if not self.names.places and self.d and self.t:
                raise DataError("this learner has learnt rows by position: it cannot take names now.")
            pair: Any = self.names.row(x)
            width = self.names.width(pair[0]) + self._lagged
        else:
            if self.names.places:
                raise DataError("this learner has learnt features by name: it cannot take them by position now.")
            pair = self._binned_pair(x)
            width = (0 if pair is None or not pair[0].size else int(pair[0][-1]) + 1) + self._lagged
        if pair is not None and self.lags is not None:
            pair = self.lags.before(*pair)
        if pair is None:
            row = self._dense_row(x)
            self._widen(row.size, exact=True)
            if self.numbering is not None:
                return self._learn_numbered((np.arange(row.size, dtype=np.uint32), row), y, weight)
            self._resolve_dense(row)
            return int(self._learn_dense(self._rule_twin, self._point, row, self.intercept, y, weight))
        self._widen(width)
        if self.numbering is not None:
            return self._learn_numbered(pair, y, weight)
        self._resolve_sparse(*pair)
        return int(self._learn_sparse(self._rule_twin, self._point, *pair, self.intercept, y, weight))

    @property
    def _plain(self) -> bool:
        """Whether its features are those of the data alone."""
        return self.lags is None and self.bins is None

    def _binned_pair(self, x: Any) -> tuple[Any, Any] | None:
        """Indices and values of a row by position, with its bins if it has any; None for a dense row without."""
        pair = sparse_row(x)
        if self.bins is None:
            return pair
        if pair is None:
            row = dense_row(x)
            there = np.flatnonzero(row)
            pair = there.astype(np.uint32), row[there]
        return self.bins.before(*pair)

    def _dense_row(self, x: Any) -> Any:
        """A dense row, with the last labels in front if it has lags."""
        row = dense_row(x)
        return row if self.lags is None else np.concatenate([self.lags.present(), row])

    def _learn_numbered(self, pair: Any, y: float, weight: float) -> int:
        """One example whose features are renumbered: a block of one row."""
        block = self._make_room(dataclasses.replace(one_row(pair, self.d, y, weight), lagged=self._lagged))
        out = np.empty(1)
        status = self._run(block.rows(self.intercept), block, Silent(0), out, 0)[1]
        return loop.REFUSED if status == loop.OK and math.isnan(out[0]) else status

    def _predict_any(self, x: Any, average: bool) -> float:
        """The prediction for one example in any form; features that were never learnt have weight 0."""
        if average:
            self._require_average()
        pair = self.names.known(x) if isinstance(x, Mapping) else self._binned_pair(x)
        row = self._dense_row(x) if pair is None else None
        pair = pair if pair is None or self.lags is None else self.lags.before(*pair)
        values: Any = row if pair is None else pair[1]
        if not np.isfinite(values).all():
            raise DataError(complaint(loop.BAD_FEATURE, self, x, 1.0, 1.0))
        if row is not None and self._point is not None and row.size != self.d:
            raise self._other_width(row.size)
        if self._point is None:  # nothing learnt yet: a fresh copy that knows its width answers
            fresh, last = copy.deepcopy(self), int(pair[0][-1]) + 1 if pair and pair[0].size else 0
            fresh._widen(last if row is None else row.size)
            return fresh._predict_any(x, average)
        average = average and self._point.memory[TOTAL] > 0.0
        if self.numbering is not None:
            numbered = (np.arange(self.d, dtype=np.uint32), row) if pair is None else pair
            learner, block = self._for_prediction(dataclasses.replace(one_row(numbered, 2**32), lagged=self._lagged))
            return float(learner._predict_block(block, average)[0][0])
        if row is not None:
            self._resolve_dense(row, learns=False)
            return float(self._predict_dense(self._point, row, self.intercept, average))
        assert pair is not None
        inside = pair[0] < self.d  # features never seen have weight 0
        pair = pair if inside.all() else (pair[0][inside], pair[1][inside])
        self._resolve_sparse(*pair, learns=False)
        return float(self._predict_sparse(self._point, *pair, self.intercept, average))

    def _resolve_dense(self, row: Any, learns: bool = True) -> None:
        """Look up the compiled code for dense rows, once: Numba's dispatcher would take 1 to 4 µs a call."""
        row = Strided(row)
        if self._predict_dense is None:
            self._predict_dense = loop.predict_dense.resolve(self._point, row, self.intercept, False)
        if learns and self._learn_dense is None:
            self._learn_dense = loop.learn_dense.resolve(self._rule, self._point, row, self.intercept, 1.0, 1.0)
            self._set_width(self.d)

    def _set_width(self, d: int) -> None:
        """Set the number of features, and the shape of rows that the fast path takes."""
        self.d = d
        plain = self._learn_dense is not None and self.numbering is None and self._plain
        self._shape = (d,) if plain else None
        if self.numbering is not None:
            self._learn_sparse = self._predict_sparse = None  # the fast path does not handle renumbered features

    def _resolve_sparse(self, indices: Any, values: Any, learns: bool = True) -> None:
        rule, point, intercept = self._rule, self._point, self.intercept
        if self._predict_sparse is None:
            self._predict_sparse = loop.predict_sparse.resolve(point, indices, values, intercept, False)
        if learns and self._learn_sparse is None:
            self._learn_sparse = loop.learn_sparse.resolve(rule, point, indices, values, intercept, 1.0, 1.0)

    # Many examples.

    def run(self, X: Any, y: Any = None, weights: Any = None) -> Any:
        """Learn examples in order, from its present state; returns the predictions made before each update.

        X is an array, a scipy sparse matrix, or a stream of blocks. A refused example gets NaN. An unusable one stops
        with `BadExample`; those before it have been learnt.

        `y` are the labels, as the loss takes them, and `weights` those of the examples, 1 if not given; a stream has
        its own.

        >>> import rue
        >>> learner = rue.Perceptron(intercept=False)
        >>> learner.run([[1.0], [2.0], [-1.0]], [1, 1, -1])
        array([ 0.,  2., -1.])
        >>> learner.point
        array([1.])
        """
        outs: list[Any] = []
        known = isinstance(X, ndarray) or hasattr(X, "tocsr")
        whole = np.empty(X.shape[0]) if known and X.ndim == 2 else None
        before = 0
        for block in blocks(X, y, weights):
            out = np.empty(len(block)) if whole is None else whole[before : before + len(block)]
            end, why = self.run_block(block, Silent(0), out, 0)
            if why:
                raise BadExample(before + end, why)
            outs.append(out)
            before += len(block)
        if whole is not None:
            return whole
        return np.concatenate(outs) if outs else np.empty(0)

    def run_block(self, block: Block, ledger: Ledger | Silent, out: Any, begin: int) -> tuple[int, str]:
        """Learn a block from row `begin` on; the row it stopped at and why, or its length and "".

        The ledger needs room for all coordinates; `widen` first.

        The predictions are written to `out`, a contiguous float64 array with one place for each row; NaN for one that
        was refused. With `Silent(0)` in the place of a `ledger` nothing is added up.

        >>> import numpy as np, rue
        >>> from rue.ledger import Silent
        >>> learner, out = rue.Perceptron(intercept=False), np.empty(2)
        >>> block = learner.widen(rue.Block([[1.0], [2.0]], y=[1, 1]))
        >>> learner.run_block(block, Silent(0), out, 0), out
        ((2, ''), array([0., 2.]))
        """
        self._require_rows(block, out, begin)
        with Turn(self):
            return self._run_block(block, ledger, out, begin)

    def _require_rows(self, block: Block, out: Any, begin: int) -> None:
        """Refuse an `out` that compiled code could not write the predictions of a block to."""
        if out.shape != (len(block),) or out.dtype != _FLOAT64 or not out.flags.c_contiguous or begin < 0:
            raise DataError("run_block: out must be a contiguous float64 array with one place for each row, begin ≥ 0.")

    def _run_block(self, block: Block, ledger: Ledger | Silent, out: Any, begin: int) -> tuple[int, str]:
        block = self._make_room(block)
        y, weights = block.labels(), block.column_of_weights()
        for attempt in (block, None):  # retry once with sorted indices
            attempt = block.in_order() if attempt is None else attempt
            rows = attempt.rows(self.intercept)
            end, status = self._run(rows, block, ledger, out, begin)
            self.enter(block, begin, end)
            if status == loop.OK:
                return end, ""
            if status != loop.UNORDERED:
                break
            begin = end
        row = rows.row(end) if status != loop.BROKEN else None
        x = np.empty(0) if row is None else rows.values[int(row.lo) : int(row.hi)]
        return end, complaint(status, self, x, y[end], weights[end] if weights.size else 1.0)

    def _run(self, rows: Any, block: Block, ledger: Any, out: Any, begin: int) -> tuple[int, int]:
        """The compiled loop over a block's rows from `begin` on: where it stopped, and its status there."""
        args = self._point, ledger, rows, block.labels(), block.column_of_weights(), out, begin
        kinds = type(ledger), type(rows)
        if kinds not in self._run_rows:
            self._run_rows[kinds] = self._loop.resolve(self._rule, *args)
        end, status = self._run_rows[kinds](self._rule_twin, *args)
        return int(end), int(status)

    def predict_many(self, X: Any, average: bool = False) -> Any:
        """Predictions for many examples by the point as it stands (or by the average), learning nothing.

        X is as for `run`.

        >>> import rue
        >>> learner = rue.Perceptron(intercept=False)
        >>> learner.update([1.0], 1)
        >>> learner.predict_many([[1.0], [-3.0]])
        array([ 1., -3.])
        """
        if average:
            self._require_average()
        parts, before, learner = [], 0, self
        for block in blocks(X):
            with Turn(self, wait=True):
                learner, block = (self if self._point is None else learner)._for_prediction(block)
                out, end, status = learner._predict_block(block, average)
            if status != loop.OK:
                raise BadExample(before + end, complaint(status, self, math.nan, 1.0, 1.0))
            parts.append(out)
            before += len(block)
        return np.concatenate(parts) if parts else np.empty(0)

    def _predict_block(self, block: Block, average: bool) -> tuple[Any, int, int]:
        """The predictions for a block prepared by `_for_prediction`, the row reached, and what became of that row."""
        out = np.empty(len(block))
        use = average and self._point.memory[TOTAL] > 0.0
        end, status = loop.predict_rows(self._point, block.rows(self.intercept), use, out, 0)
        if status == loop.UNORDERED:
            end, status = loop.predict_rows(self._point, block.in_order().rows(self.intercept), use, out, end)
        return out, end, status

    # Width.

    def widen(self, block: Block) -> Block:
        """Make room for a block's features: the block to learn, with its features where the point's arrays have them.

        Raises `NoRoom`, nothing changed, if that would take more memory than there is.

        >>> import rue
        >>> learner = rue.Perceptron()
        >>> len(learner.widen(rue.Block([[1.0, 2.0]], y=[1]))), learner.d
        (1, 2)
        """
        with Turn(self):
            return self._make_room(block)

    def _make_room(self, block: Block) -> Block:
        if block.numbering is not None and block.numbering is self.numbering:
            return block  # already renumbered by us
        if self.lags is None or not block.lagged:
            self._require_positions(block)
        self._begin_bins(block)
        if self.bins is not None and block.bins != ():
            block = self.bins.attached(block)
        if self.lags is not None and not block.lagged:
            block = self.lags.attached(block)
        self._widen(block.width, exact=not block.sparse)
        if self.numbering is None:
            return block
        known = self.numbering.known
        numbered = block.numbered(self.numbering, adding=True)
        try:
            self._grow(self.places)
        except NoRoom:
            self.numbering.forget_from(known)
            raise
        return numbered

    def begin_with(self, block: Block) -> None:
        """Start as wide as the widest of a block's rows that memory can hold; nothing happens if it has begun.

        >>> import rue
        >>> from scipy.sparse import csr_array
        >>> learner = rue.Perceptron()
        >>> learner.begin_with(rue.Block(csr_array([[0.0, 0.0, 1.0, 0.0]])))
        >>> learner.d
        3
        """
        self._begin_bins(block)
        block = self.with_last_labels(block)
        rows: Any = block.rows(self.intercept)
        if self._point is None and block.sparse and rows.indices.size:
            starts = rows.indptr[:-1][np.diff(rows.indptr) > 0]
            widths = np.maximum.reduceat(rows.indices, starts).astype(np.int64) + 1
            fitting = widths[(widths + 1) * self._bytes_per_coordinate() <= memory_limit()]
            if fitting.size:
                self._begin(int(fitting.max()), sparse=True)

    def _require_positions(self, block: Block) -> None:
        if self.names.places and block.width > self.names.limit:
            raise DataError("this learner has learnt features by name: it cannot take more columns by position.")

    def _for_prediction(self, block: Block) -> tuple[Any, Block]:
        """A learner with room to predict a block, this one or a copy, and the block as it reads it.

        Features that it does not know share a row of the arrays, whose weight is 0.
        """
        if self.lags is None or not block.lagged:
            self._require_positions(block)
        block = self.with_last_labels(block)
        if self._point is not None and not block.sparse:
            self._widen(block.width, exact=True)
        if self.numbering is not None:
            return self, block.numbered(self.numbering)
        if self._point is not None and block.width <= self.d:
            return self, block
        learner = copy.deepcopy(self)
        if learner._point is None or learner.algorithm.wide is None:
            return learner, learner._make_room(block)
        learner.numbering = Numbering(learner.d)
        learner._grow(learner.places)
        return learner, block.numbered(learner.numbering)

    def _widen(self, width: int, exact: bool = False) -> None:
        """Make room for so many features; with `exact`, refuse any other number than the learner has."""
        if self._point is None:
            self._begin(width, sparse=not exact)
        elif exact and width != self.d:
            raise self._other_width(width)
        elif width > self.d:
            if not self.domain.grows:
                self._require_memory(width + int(self.intercept), self._bytes_per_coordinate(), "its coordinates")
                raise NoRoom(
                    f"the example has a feature {width - 1}, but {self.domain!r} was started with {self.d} features "
                    "and cannot grow: say the number when the learner is built, d=…."
                )
            if self.numbering is None and self._is_wide(width):
                self.numbering = Numbering(self.d)
            if self.numbering is None:
                self._grow(width + int(self.intercept))
            self._set_width(width)

    def _other_width(self, width: int) -> DataError:
        """The refusal of a dense row of another width."""
        return DataError(f"the example has {width - self._lagged} features, but the learner has {self.own_features}.")

    def _is_wide(self, d: int) -> bool:
        """Whether of so many features only those that occur are to have a row in the arrays."""
        wide = self.algorithm.wide
        return wide is not None and d > wide and not self.names.places

    def _grow(self, needed: int) -> None:
        """Room for `needed` coordinates; once it has learnt, for twice as many as before.

        Where that would take more than half of the memory, for no more than are needed.
        """
        if needed <= self._point.size():
            return
        each = self._bytes_per_coordinate()
        self._require_memory(self._point.size() + needed, each, "its coordinates")
        room = max(needed, 2 * self._point.size() if self.t else 0)
        if each * (self._point.size() + room) > memory_limit() // 2:
            room = needed
        try:
            self._point = self._point.grown(self.domain, room)
        except MemoryError as error:  # the process holds other things too
            raise self._no_room(each * (self._point.size() + room), room, "its coordinates") from error

    def _bytes_per_coordinate(self) -> int:
        """What a coordinate takes in the learner and, about, in the certificate's sums."""
        return self.algorithm.bytes_per_coordinate + 16

    def _require_memory(self, coordinates: int, each: int, what: str) -> None:
        """Refuse to allocate so many coordinates if that is more than there is."""
        if each * coordinates > memory_limit():
            raise self._no_room(each * coordinates, coordinates, what)

    def _no_room(self, needed: int, coordinates: int, what: str) -> NoRoom:
        """The refusal of so many bytes for so many coordinates."""
        limit = memory_limit()
        return NoRoom(
            f"{self.algorithm.name} needs {gibibytes(needed)} for {what} ({coordinates:,}), more than "
            f"{'the' if needed > limit else 'is left of the'} {gibibytes(limit)} that there are: number features from "
            "0 on, or hash them into fewer (--bits)."
        )

    def _begin(self, d: int, sparse: bool = False) -> None:
        """Start with so many features; of wide sparse data only those that occur get a row in the arrays."""
        wide = sparse and self._is_wide(d)
        if not wide:
            coordinates = d + int(self.intercept)
            self._require_memory(coordinates, self._bytes_per_coordinate(), "its coordinates")
            self._rule, self._point = self.algorithm.start(coordinates)
        else:
            self.numbering = Numbering()
            self._rule, self._point = self.algorithm.start(d + int(self.intercept), room=1 + int(self.intercept))
        self.d = d
        self._reset_entry_points()

    # State as a value.

    def __copy__(self) -> Learner:
        return self.copy()

    def copy(self) -> Learner:
        """An independent learner in the same state.

        >>> import rue
        >>> learner = rue.Perceptron()
        >>> other = learner.copy()
        >>> other.update([1.0], 1)
        >>> learner.t, other.t
        (0, 1)
        """
        with Turn(self, wait=True):
            return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        keys = ("algorithm", "intercept", "d", "names", "numbering", "lags", "bins", "_rule", "_point")
        return {key: getattr(self, key) for key in keys}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.numbering = self.lags = self.bins = None  # which learners pickled by older versions do not have
        self.__dict__.update((key, owned(value)) for key, value in state.items())
        self._busy = False
        self._reset_entry_points()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Learner):
            return NotImplemented
        mine, theirs = (
            (a.algorithm, a.intercept, a.d, a.names.places, a.t, a.lags, a.bins, *a._comparable())
            for a in (self, other)
        )
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # its state changes

    def _comparable(self) -> list[Any]:
        """The arrays of the point: the rows that are not all 0, and which coordinates they belong to."""
        if self._point is None:
            return []
        coordinates, declared = self.coordinates_of_places(), declarations_of(self._point)
        parts, of_stages = [], own_features_of(self._point)
        for name, array in state_of(self._point, self.places).items():
            if declared[name].of_coordinates or name in of_stages:
                rows, array = in_use(array, of_stages[name][0] if name in of_stages else coordinates)
                parts.append(rows.tobytes())
            parts.append((array.shape[1:], array.tobytes()))
        return parts
