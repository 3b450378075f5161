"""`Bins`: columns of numbers put into bins by rank, as more features of each row (docs/theory.md, M2).

The rank of a value is how many of 255 quantiles of the column's past are not above it, and with n bins a row has the
feature of bin ⌊rank·n/256⌋, whose value is 1. Quantiles are drawn after 64, 128, 256, … values, as the maps draw
theirs (`rue.maps.table`), from at most 1,024 of the values before; until the first are drawn a row has no bin. Nothing
else depends on the values, so a strictly increasing change of a column leaves its bins as they are, to the last bit.

A row is part of the past once it is learnt: it has a label, a weight above 0, and finite features. A value that is
missing has no bin and is not part of the past. A column takes 10 kB.

The slots of the bins lie between the data's other features, where the columns of a table leave room for them
(`rue.streams.tables.columns`), so whatever knows features by their index and name knows bins too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rue.compiled import kernel
from rue.errors import DataError
from rue.maps.table import FIRST_DRAW, LEVELS, SAMPLED, draw_quantiles, place_in_sample, rank_among
from rue.streams.block import BinnedColumn, Block, csr_view

__all__ = ["Bins"]

NONE = -1
"""In place of a slot: the row has no bin."""


@kernel
def _find_bins(
    indptr: Any,
    indices: Any,
    values: Any,
    y: Any,
    weights: Any,
    shift: Any,
    plan: Any,
    which: Any,
    sample: Any,
    quantiles: Any,
    seen: Any,
    due: Any,
    scratch: Any,
    out: Any,
) -> None:
    """Write the slots of each row's bins into `out`, if it has rows, and then enter the row into the past.

    Rows that have no `y` are not entered. `shift` is added to the indices of all features, `which` says which column a
    feature is, and `plan` has a `BinnedColumn` for each.
    """
    columns, sampled, longest = plan.shape[0], np.uint64(sample.shape[1]), indices.size
    x, absent = scratch[1], scratch[2]
    for i in range(indptr.size - 1):
        whole = True
        for c in range(columns):
            x[c], absent[c] = 0.0, 0.0
        for k in range(max(0, indptr[i]), min(indptr[i + 1], longest)):
            j, whole = np.int64(indices[k]) - shift, whole and np.isfinite(values[k])
            if 0 <= j < which.size and which[j] >= 0:
                x[which[j]] = values[k]
            else:
                for c in range(columns):
                    if j == plan[c, 1] and values[k] != 0.0:
                        absent[c] = 1.0
        for c in range(columns):
            missing = (absent[c] > 0.0 and x[c] == 0.0) or not np.isfinite(x[c])
            if i < out.shape[0]:
                drawn = due[c] > FIRST_DRAW and not missing
                out[i, c] = plan[c, 2] + (rank_among(quantiles[c], x[c]) * plan[c, 3]) // LEVELS if drawn else NONE
            if i < y.size and whole and np.isfinite(y[i]) and (weights.size == 0 or weights[i] > 0.0) and not missing:
                seen[c] += 1
                at = place_in_sample(np.uint64(seen[c]))
                if at < sampled:
                    sample[c, at] = x[c]
                if seen[c] == due[c]:
                    draw_quantiles(sample[c], min(np.int64(sampled), seen[c]), scratch[0], quantiles[c])
                    due[c] *= 2


@kernel
def _insert_bins(
    indptr: Any, indices: Any, values: Any, slots: Any, first: Any, ends: Any, names: Any, numbers: Any
) -> Any:
    """Write rows with the slots of their bins, before the first feature from `first` on; how many there are in all."""
    at = 0
    for i in range(indptr.size - 1):
        k, stop = max(0, indptr[i]), min(indptr[i + 1], indices.size)
        while k < stop and indices[k] < first:
            names[at], numbers[at] = indices[k], values[k]
            at, k = at + 1, k + 1
        for c in range(slots.shape[1]):
            if slots[i, c] >= 0:
                names[at], numbers[at] = slots[i, c], 1.0
                at += 1
        while k < stop:
            names[at], numbers[at] = indices[k], values[k]
            at, k = at + 1, k + 1
        ends[i + 1] = at
    return at


class Bins:
    """The past of some columns of one learner, and the bins of rows that come; state is a value.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> bins = Bins([BinnedColumn(feature=0, missing=9, first=1, many=4)])
    >>> block = Block(csr_array(np.arange(1.0, 71.0)[:, None]), y=np.ones(70))
    >>> bins.attached(block).X.indices[-4:].tolist()  # after 64 rows they have a bin
    [0, 4, 0, 4]
    """

    def __init__(self, columns: Sequence[BinnedColumn]) -> None:
        self.columns = tuple(BinnedColumn(*map(int, column)) for column in columns)
        many = len(self.columns)
        self.sample = np.zeros((many, SAMPLED))
        """Values of the past, those of each column in a row."""
        self.quantiles = np.zeros((many, LEVELS - 1))
        """What splits them into 256 parts."""
        self.seen = np.zeros(many, dtype=np.int64)
        """How many values have come."""
        self.due = np.full(many, FIRST_DRAW, dtype=np.int64)
        """After how many values quantiles are drawn next."""
        self._settle()

    def _settle(self) -> None:
        """What follows from the columns."""
        self._plan = np.array(self.columns, dtype=np.int64).reshape(-1, 4)
        self._which = np.full(int(self._plan[:, 0].max(initial=-1)) + 1, -1, dtype=np.int64)
        self._which[self._plan[:, 0]] = np.arange(len(self._plan))
        self._scratch = np.zeros((3, SAMPLED))
        self._last: Any = None

    @property
    def state(self) -> tuple[Any, ...]:
        """The arrays that learning changes."""
        return self.sample, self.quantiles, self.seen, self.due

    def attached(self, block: Block, standing: bool = False) -> Block:
        """The same rows with their bins; `standing`: no row becomes part of the past."""
        rows: Any = block.rows(False)
        y, weights = np.empty(0), np.empty(0)
        if not standing and block.y is not None:
            y, weights = block.labels(), block.column_of_weights()
        slots = self._slots(rows.indptr, rows.given, rows.values, y, weights)
        ends, names, numbers = self._with_slots(rows.indptr, rows.given, rows.values, slots)
        width = max(block.width, max(column.first + column.many for column in self.columns))
        return Block(csr_view(ends, names, numbers, width, bins=()), block.y, block.weights)

    def before(self, indices: Any, values: Any) -> tuple[Any, Any]:
        """A sparse row, given by sorted indices and values, with its bins; `enter_last` makes it part of the past."""
        indptr, indices = np.array([0, indices.size]), indices.astype(np.uint32)
        values = np.asarray(values, dtype=np.float64)
        self._last = indptr, indices, values
        slots = self._slots(indptr, indices, values, np.empty(0), np.empty(0))
        _, indices, values = self._with_slots(indptr, indices, values, slots)
        return indices, values

    def enter_last(self, y: float, weight: float) -> None:
        """The row that `before` was given last has been learnt."""
        indptr, indices, values = self._last
        none = np.empty((0, 0), dtype=np.int64)
        self._enter(indptr, indices, values, np.array([float(y)]), np.array([float(weight)]), 0, self.state, none)

    def enter(self, block: Block, begin: int, end: int) -> None:
        """Rows of a block, as `attached` has made it, have been learnt."""
        part = block.part(begin, end)
        rows: Any = part.rows(False)
        none = np.empty((0, 0), dtype=np.int64)
        y, weights = part.labels(), part.column_of_weights()
        self._enter(rows.indptr, rows.given, rows.values, y, weights, part.lagged, self.state, none)

    def _slots(self, indptr: Any, indices: Any, values: Any, y: Any, weights: Any) -> Any:
        """The slots of the bins of rows that come next."""
        out = np.empty((indptr.size - 1, len(self.columns)), dtype=np.int64)
        state = tuple(array.copy() for array in self.state) if y.size else self.state
        self._enter(indptr, indices, values, y, weights, 0, state, out)
        return out

    def _enter(
        self, indptr: Any, indices: Any, values: Any, y: Any, weights: Any, shift: int, state: Any, out: Any
    ) -> None:
        _find_bins(indptr, indices, values, y, weights, shift, self._plan, self._which, *state, self._scratch, out)

    def _with_slots(self, indptr: Any, indices: Any, values: Any, slots: Any) -> tuple[Any, Any, Any]:
        """Ends, indices and values of rows with the slots of their bins."""
        room = indices.size + slots.size
        ends, names, numbers = np.zeros(indptr.size, np.int64), np.empty(room, np.uint32), np.empty(room)
        first = np.uint32(min(column.first for column in self.columns))
        order = np.argsort([column.first for column in self.columns])
        used = _insert_bins(indptr, indices, values, slots[:, order], first, ends, names, numbers)
        return ends, names[:used], numbers[:used]

    def quantiles_of(self, c: int) -> Any:
        """The values that split the past of a column into 256 parts; None while none are drawn."""
        return self.quantiles[c] if self.due[c] > FIRST_DRAW else None

    def require_sane(self, d: int | None) -> None:
        """Refuse a state from a file that rows could not go on from; `d` is how many features its learner has."""
        features = [column.feature for column in self.columns]
        sizes = [column.first + column.many for column in self.columns]
        if not self.columns or len(set(features)) < len(features) or max(features) >= SAMPLED * SAMPLED:
            raise DataError("its columns in bins are impossible")
        if not all(1 <= column.many <= LEVELS for column in self.columns) or (d is not None and max(sizes) > d):
            raise DataError("its bins do not fit its features")
        draws = np.log2(np.maximum(self.due, 1) / FIRST_DRAW)
        whole = (draws == np.floor(draws)).all() and (self.due >= FIRST_DRAW).all()
        if not whole or not (self.seen < self.due).all():
            raise DataError("the past of its bins is impossible")

    def __getstate__(self) -> tuple[Any, ...]:
        return self.columns, *(array.copy() for array in self.state)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.columns, self.sample, self.quantiles, self.seen, self.due = state
        self._settle()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bins):
            return NotImplemented
        return self.columns == other.columns and all(map(np.array_equal, self.state, other.state))

    __hash__ = None  # type: ignore[assignment]  # its state changes
