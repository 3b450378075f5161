"""`Learner`: an algorithm, its loss, domain and step, and the state it has reached."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from math import isfinite
from typing import Any, Protocol

import numpy as np
from numpy import ndarray

from rue._jit import Strided, twin
from rue.errors import BadExample, DataError, SettingsError
from rue.learners import loop
from rue.learners.intake import Names, complaint, dense_row, number, sparse_row
from rue.learners.points import PENALTY, RESIDUAL, TOTAL, T, owned, state_of
from rue.learners.turns import Turn, busy, wait_until_idle
from rue.ledger import Ledger, Silent
from rue.streams import Block, blocks

__all__ = ["Algorithm", "Learner"]

_FLOAT64 = np.dtype(np.float64)
_REFUSED = loop.REFUSED


class Algorithm(Protocol):
    """What makes one learner differ from another: a frozen description that can start in any number of coordinates."""

    @property
    def name(self) -> str: ...
    @property
    def loss(self) -> Any: ...
    @property
    def domain(self) -> Any: ...
    @property
    def averaging(self) -> bool: ...
    def describe(self) -> str: ...
    def explain(self, size: int) -> str: ...
    def start(self, size: int) -> tuple[Any, Any]: ...


class Learner:
    """A learner that can predict, be updated, or run over many examples; made by `OGD`, `Perceptron`, `SVM`, ….

    Its state is a value: `copy`, `==` and `pickle` work, and a learner goes on bit for bit from wherever it stands,
    one example at a time or in blocks of any size. With an intercept, coordinate 0 of `point` is the intercept's. A
    learner serves one thread at a time: `predict` and `copy` wait for their turn, and `update` and `run` raise
    `RueError` while another thread is in the learner. Give each thread a copy, or use a lock.
    """

    _loop = loop.run_rows

    def __init__(self, algorithm: Algorithm, *, intercept: bool = True, d: int | None = None) -> None:
        if d is not None and (isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 0):
            raise SettingsError(f"{algorithm.name}: d must be the number of features, not {d!r}.")
        if not isinstance(intercept, int | np.bool_) or intercept not in (0, 1):
            raise SettingsError(f"{algorithm.name}: intercept must be True or False, not {intercept!r}.")
        self.algorithm, self.intercept = algorithm, bool(intercept)
        self.d, self.names = 0, Names()
        """The number of features, and the names of those that came in dicts."""
        self._rule: Any = None
        self._point: Any = None
        self._busy = False
        self._ready()
        fixed = algorithm.domain.dimension
        if d is None and fixed is not None:
            d = fixed - int(self.intercept)
            if d < 0:
                raise SettingsError(
                    f"{algorithm.name}: {algorithm.domain!r} has {fixed} coordinates, none left for the intercept."
                )
        if d is not None:
            self._begin(int(d))

    def _ready(self) -> None:
        """What is derived from the state and never stored: compiled entry points and the kernels' view of the rule."""
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
        return self.algorithm.loss

    @property
    def domain(self) -> Any:
        return self.algorithm.domain

    @property
    def t(self) -> int:
        """How many examples it has learnt."""
        return 0 if self._point is None else int(self._point.memory[T])

    @property
    def coordinates(self) -> int:
        """The number of features, and one more with an intercept."""
        return self.d + int(self.intercept)

    @property
    def point(self) -> Any:
        """w_t in full, the intercept first if there is one."""
        if self._point is None:
            return self.domain.start(self.coordinates)
        return self._point.current(self.domain)[: self.coordinates]

    @property
    def weights(self) -> Any:
        """The weights of the features."""
        return self.point[int(self.intercept) :]

    @property
    def bias(self) -> float:
        """The weight of the intercept, 0 without one."""
        return float(self.point[0]) if self.intercept else 0.0

    @property
    def average(self) -> Any:
        """Σα_t w_t / Σα_t over the points played so far, in full; w_1 before the first."""
        self._require_average()
        if self._point is None or self._point.memory[TOTAL] == 0.0:
            return self.point
        return self._point.averaged(self.domain)[: self.coordinates]

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
        return None if self._point is None else getattr(self._point, "scales", lambda: None)()

    @property
    def residual(self) -> float:
        """The worst distance to the domain that a projection by Dykstra's algorithm has left."""
        return 0.0 if self._point is None else float(self._point.memory[RESIDUAL])

    def explain(self) -> str:
        """The step it takes and why, in words."""
        if self._point is None and self.domain.diameter(1) != self.domain.diameter(4):
            return "the step depends on the number of features, which the first example or d= will tell"
        return self.algorithm.explain(self.coordinates)

    def __repr__(self) -> str:
        return f"{self.algorithm.name}({self.algorithm.describe()}, intercept={self.intercept})"

    # One example at a time. The two fast paths check no more than memory safety needs: the compiled code does the rest.

    def predict(self, x: Any, average: bool = False) -> float:
        """The prediction for one example, ⟨w, x⟩; never changes the learner. With `average`, of the averaged point.

        x is a dense row, a pair (indices, values), a dict of names, or a sparse matrix of one row.
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
                elif type(x) is dict and tuple(x) == self.names.keys and self._predict_sparse is not None:
                    names = self.names.pack(x)
                    p = self._predict_sparse(self._point, names.indices, names.values, self.intercept, False)
                    if isfinite(p):
                        return p
            return self._predict_any(x, average)
        finally:
            self._busy = False

    def update(self, x: Any, y: float, weight: float = 1.0) -> None:
        """Learn one example; a refused one (its prediction, loss or step is not finite) changes nothing."""
        if self._busy:  # `turns` says why this is safe
            raise busy()
        self._busy = True
        try:
            if type(x) is ndarray and x.shape == self._shape and x.dtype is _FLOAT64:
                status = self._learn_dense(self._rule_twin, self._point, x, self.intercept, y, weight)
            elif type(x) is dict and tuple(x) == self.names.keys and self._learn_sparse is not None:
                names = self.names.pack(x)
                status = self._learn_sparse(
                    self._rule_twin, self._point, names.indices, names.values, self.intercept, y, weight
                )
            else:
                status = self._update_any(x, y, weight)
        except TypeError as error:
            raise DataError(f"the label and the weight must be numbers, not {y!r} and {weight!r}.") from error
        finally:
            self._busy = False
        if status > _REFUSED:
            raise DataError(complaint(status, self, x, y, weight))

    def _update_any(self, x: Any, y: Any, weight: Any) -> int:
        """Any form of example; afterwards the fast path above takes the next one like it."""
        begun, d, known = self._point is not None, self.d, len(self.names.places)
        status = loop.BAD_FEATURE
        try:
            status = self._learn_any(x, number(y), number(weight))
        finally:
            if status != loop.OK:  # names and widths that came with it go with it
                self.names.forget_from(known)
                self._set_width(d)
                if not begun:
                    self._rule = self._point = None
                    self._ready()
        return status

    def _learn_any(self, x: Any, y: float, weight: float) -> int:
        if isinstance(x, Mapping):
            if not self.names.places and self.d and self.t:
                raise DataError("this learner has learnt rows by position: it cannot take names now.")
            pair: Any = self.names.row(x)
            width = self.names.width(pair[0])
        else:
            if self.names.places:
                raise DataError("this learner has learnt features by name: it cannot take them by position now.")
            pair = sparse_row(x)
            width = 0 if pair is None or not pair[0].size else int(pair[0][-1]) + 1
        if pair is None:
            row = dense_row(x)
            self._widen(row.size, exact=True)
            self._resolve_dense(row)
            return int(self._learn_dense(self._rule_twin, self._point, row, self.intercept, y, weight))
        self._widen(width)
        self._resolve_sparse(*pair)
        return int(self._learn_sparse(self._rule_twin, self._point, *pair, self.intercept, y, weight))

    def _predict_any(self, x: Any, average: bool) -> float:
        if average:
            self._require_average()
        pair = self.names.known(x) if isinstance(x, Mapping) else sparse_row(x)
        row = dense_row(x) if pair is None else None
        values: Any = row if pair is None else pair[1]
        if not np.isfinite(values).all():
            raise DataError(complaint(loop.BAD_FEATURE, self, x, 1.0, 1.0))
        if row is not None and self._point is not None and row.size != self.d:
            raise DataError(f"the example has {row.size} features, but the learner has {self.d}.")
        if self._point is None:  # nothing learnt yet: a fresh copy that knows its width answers
            fresh, last = copy.deepcopy(self), int(pair[0][-1]) + 1 if pair and pair[0].size else 0
            fresh._widen(last if row is None else row.size)
            return fresh._predict_any(x, average)
        average = average and self._point.memory[TOTAL] > 0.0
        if row is not None:
            self._resolve_dense(row)
            return float(self._predict_dense(self._point, row, self.intercept, average))
        assert pair is not None
        inside = pair[0] < self.d  # features never seen have weight 0
        pair = pair if inside.all() else (pair[0][inside], pair[1][inside])
        self._resolve_sparse(*pair)
        return float(self._predict_sparse(self._point, *pair, self.intercept, average))

    def _resolve_dense(self, row: Any) -> None:
        if self._learn_dense is None:
            row = Strided(row)
            self._learn_dense = loop.learn_dense.resolve(self._rule, self._point, row, self.intercept, 1.0, 1.0)
            self._predict_dense = loop.predict_dense.resolve(self._point, row, self.intercept, False)
            self._set_width(self.d)

    def _set_width(self, d: int) -> None:
        self.d = d
        self._shape = None if self._learn_dense is None else (d,)

    def _resolve_sparse(self, indices: Any, values: Any) -> None:
        if self._learn_sparse is None:
            rule, point, intercept = self._rule, self._point, self.intercept
            self._learn_sparse = loop.learn_sparse.resolve(rule, point, indices, values, intercept, 1.0, 1.0)
            self._predict_sparse = loop.predict_sparse.resolve(point, indices, values, intercept, False)

    # Many examples.

    def run(self, X: Any, y: Any = None, weights: Any = None) -> Any:
        """Learn examples in order, going on from where it stands; returns the predictions made before each update.

        X is an array, a scipy sparse matrix, or a stream of blocks. A refused example gets NaN. An unusable one stops
        with `BadExample`; those before it have been learnt.
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
        """
        if out.shape != (len(block),) or out.dtype != _FLOAT64 or not out.flags.c_contiguous or begin < 0:
            raise DataError("run_block: out must be a contiguous float64 array with one place for each row, begin ≥ 0.")
        with Turn(self):
            return self._run_block(block, ledger, out, begin)

    def _run_block(self, block: Block, ledger: Ledger | Silent, out: Any, begin: int) -> tuple[int, str]:
        self._make_room(block)
        y, weights = block.labels(), block.column_of_weights()
        for attempt in (block, None):
            attempt = attempt or block.in_order()
            rows = attempt.rows(self.intercept)
            args = self._point, ledger, rows, y, weights, out, begin
            kinds = type(ledger), type(rows)
            if kinds not in self._run_rows:
                self._run_rows[kinds] = self._loop.resolve(self._rule, *args)
            end, status = self._run_rows[kinds](self._rule_twin, *args)
            if status == loop.OK:
                return end, ""
            if status != loop.UNORDERED:
                break
            begin = end
        row = rows.row(end) if status != loop.BROKEN else None
        x = np.empty(0) if row is None else rows.values[int(row.lo) : int(row.hi)]
        return end, complaint(status, self, x, y[end], weights[end] if weights.size else 1.0)

    def predict_many(self, X: Any, average: bool = False) -> Any:
        """Predictions for many examples by the point as it stands (or by the average), learning nothing."""
        if average:
            self._require_average()
        parts, before = [], 0
        for block in blocks(X):
            with Turn(self, wait=True):
                out, end, status = self._predict_block(block, average)
            if status != loop.OK:
                raise BadExample(before + end, complaint(status, self, math.nan, 1.0, 1.0))
            parts.append(out)
            before += len(block)
        return np.concatenate(parts) if parts else np.empty(0)

    def _predict_block(self, block: Block, average: bool) -> tuple[Any, int, int]:
        """The predictions, the row reached, and what became of that row."""
        wider = self._point is None or (block.sparse and block.width > self.d)
        learner = copy.deepcopy(self) if wider else self
        learner._make_room(block)
        out = np.empty(len(block))
        use = average and learner._point.memory[TOTAL] > 0.0
        end, status = loop.predict_rows(learner._point, block.rows(self.intercept), use, out, 0)
        if status == loop.UNORDERED:
            rows = block.in_order().rows(self.intercept)
            end, status = loop.predict_rows(learner._point, rows, use, out, end)
        return out, end, status

    # Width.

    def widen(self, block: Block) -> None:
        """Make room for a block's features."""
        with Turn(self):
            self._make_room(block)

    def _make_room(self, block: Block) -> None:
        if self.names.places and block.width > self.names.limit:
            raise DataError("this learner has learnt features by name: it cannot take more columns by position.")
        self._widen(block.width, exact=not block.sparse)

    def _widen(self, width: int, exact: bool = False) -> None:
        if self._point is None:
            self._begin(width)
        elif exact and width != self.d:
            raise DataError(f"the example has {width} features, but the learner has {self.d}.")
        elif width > self.d:
            if not self.domain.grows:
                raise DataError(
                    f"the example has a feature {width - 1}, but {self.domain!r} was started with {self.d} features "
                    "and cannot grow: say the number when the learner is built, d=…."
                )
            needed = width + int(self.intercept)
            if needed > self._point.size():
                room = max(needed, 2 * self._point.size() if self.t else 0)
                self._point = self._point.grown(self.domain, room)
            self._set_width(width)

    def _begin(self, d: int) -> None:
        self.d = d
        self._rule, self._point = self.algorithm.start(self.coordinates)
        self._ready()

    # State as a value.

    def __copy__(self) -> Learner:
        return self.copy()

    def copy(self) -> Learner:
        """An independent learner in the same state."""
        with Turn(self, wait=True):
            return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in ("algorithm", "intercept", "d", "names", "_rule", "_point")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update((key, owned(value)) for key, value in state.items())
        self._busy = False
        self._ready()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Learner):
            return NotImplemented
        mine, theirs = ((a.algorithm, a.intercept, a.d, a.names.places, a.t, *a._parts()) for a in (self, other))
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # its state changes

    def _parts(self) -> list[bytes]:
        """The arrays of the point, without room that is not in use."""
        if self._point is None:
            return []
        return [array.tobytes() for array in state_of(self._point, self.coordinates).values()]
