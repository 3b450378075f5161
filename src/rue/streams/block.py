"""Blocks: some consecutive examples, dense or sparse, in the one form the kernels read."""

from __future__ import annotations

import dataclasses
import numbers
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rue.errors import DataError
from rue.rows import DenseRows, SparseRows
from rue.streams.numbering import Numbering
from rue.streams.tables.dicts import are_dicts

__all__ = [
    "BinnedColumn",
    "Block",
    "as_array",
    "as_labels",
    "blocks",
    "csr_view",
    "floats",
    "is_readable",
    "is_stream",
    "missing_labels",
    "one_sparse_row",
]

ROWS = 65_536
"""Rows in a block cut from an array: large enough to cost nothing, small enough that Ctrl-C is answered soon."""


@dataclasses.dataclass(frozen=True)
class Block:
    """Consecutive examples: a matrix X (two-dimensional array or scipy sparse), labels y, and weights or None.

    A label that is NaN or None is missing: a run predicts such an example and does not learn it.

    >>> import numpy as np
    >>> Block(np.eye(2), y=[1, -1]).width
    2
    """

    X: Any
    y: Any = None
    weights: Any = None
    lagged: int = 0
    """How many features a learner has put in front of each row's own (`rue.learners.lags`)."""
    _rows: dict[bool, Any] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)
    _sorted: list[Block] = dataclasses.field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        X = _matrix(self.X)
        object.__setattr__(self, "X", X)
        for name, what in (("y", "labels"), ("weights", "weights")):
            column = getattr(self, name)
            if column is not None:
                column = as_labels(column) if name == "y" else as_array(column, what)
                if column.shape != (X.shape[0],):
                    raise DataError(f"X has {X.shape[0]} rows, but the {what} have shape {column.shape}: one a row.")
                object.__setattr__(self, name, column)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.X.shape[1])

    @property
    def sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return not isinstance(self.X, np.ndarray)

    @property
    def unlabelled(self) -> Any:
        """Which examples have no label, as a mask; None if all have one, or there are no labels at all."""
        return None if self.y is None else missing_labels(self.y)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def labelled(self) -> Block:
        """The examples that have a label; the same block if all have one.

        >>> Block([[1.0], [2.0]], y=[1.0, None]).labelled().y
        array([1.])
        """
        missing = self.unlabelled
        return self if missing is None else self.where(~missing)

    def where(self, mask: Any) -> Block:
        """A copy of the rows that a `mask` of booleans selects.

        >>> import numpy as np
        >>> Block([[1.0], [2.0], [3.0]]).where(np.array([True, False, True])).X
        array([[1.],
               [3.]])
        """
        y, weights = (None if column is None else column[mask] for column in (self.y, self.weights))
        X = self.X
        if not self.sparse:
            return Block(X[mask], y, weights, self.lagged)
        lengths, stored = np.diff(X.indptr), slice(int(X.indptr[0]), int(X.indptr[-1]))
        used = np.repeat(mask, lengths)
        indptr = np.concatenate([[0], np.cumsum(lengths[mask])])
        given = None if X.given is None else X.given[stored][used]
        view = _View(indptr, X.indices[stored][used], X.data[stored][used], self.width, given, X.numbering, X.bins)
        return Block(view, y, weights, self.lagged)

    def part(self, start: int, stop: int) -> Block:
        """Rows `start` to `stop`, the last one not included, as views.

        >>> Block([[1.0], [2.0], [3.0]]).part(1, 3).X
        array([[2.],
               [3.]])
        """
        if start <= 0 and stop >= len(self):
            return self
        rows = slice(start, stop)
        X = _rows_of(self.X, rows) if self.sparse else self.X[rows]
        y, weights = (None if column is None else column[rows] for column in (self.y, self.weights))
        return Block(X, y, weights, self.lagged)

    def labels(self) -> Any:
        """The labels as float64.

        >>> Block([[1.0], [2.0]], y=[1, -1]).labels()
        array([ 1., -1.])
        """
        if self.y is None:
            raise DataError("there are no labels: give y.")
        return floats(self.y, "labels")

    def column_of_weights(self) -> Any:
        """The weights as float64, an empty array standing for 'all 1'.

        >>> Block([[1.0], [2.0]]).column_of_weights(), Block([[1.0], [2.0]], weights=[1, 3]).column_of_weights()
        (array([], dtype=float64), array([1., 3.]))
        """
        return np.empty(0) if self.weights is None else floats(self.weights, "weights")

    def rows(self, intercept: bool) -> DenseRows | SparseRows:
        """The examples as kernels read them, each with a feature 1 in front if there is an `intercept`.

        >>> import numpy as np
        >>> row = Block([[1.0, 2.0]]).rows(True).row(0)
        >>> float(row.dot(np.array([10.0, 1.0, 1.0])))
        13.0
        """
        rows: DenseRows | SparseRows = self._rows.get(intercept) or self._made(intercept)
        self._rows[intercept] = rows
        return rows

    def _made(self, intercept: bool) -> DenseRows | SparseRows:
        shift = np.uint64(intercept)
        if not self.sparse:
            values = floats(self.X, "features")
            return DenseRows(values.reshape(-1), np.uint64(self.width), shift)
        indptr, indices = np.asarray(self.X.indptr), np.asarray(self.X.indices)
        first, last = int(indptr[0]), int(indptr[-1])
        indices = indices[first:last]
        if indices.dtype in (np.dtype(np.int32), np.dtype(np.uint32)):
            indices = np.ascontiguousarray(indices).view(np.uint32)
        else:
            if indices.size and (indices.min() < 0 or indices.max() >= 2**32):
                raise DataError("feature indices must lie between 0 and 2³² − 1.")
            indices = indices.astype(np.uint32)
        values = floats(np.asarray(self.X.data)[first:last], "features")
        offsets = np.ascontiguousarray(indptr - first, dtype=np.int64)
        given = indices if self.X.given is None else self.X.given[first:last]
        return SparseRows(offsets, indices, values, np.uint64(self.width), shift, given)

    @property
    def numbering(self) -> Numbering | None:
        """What says where its features are in the arrays of a learner; None where their indices do."""
        return self.X.numbering if self.sparse else None

    @property
    def bins(self) -> tuple[BinnedColumn, ...] | None:
        """The columns that a learner is to put into bins; () once it has; None if there are none."""
        return self.X.bins if self.sparse else None

    def numbered(self, numbering: Numbering, adding: bool = False) -> Block:
        """The same examples with features where a numbering has them, which learns new ones if `adding`.

        >>> from scipy.sparse import csr_array
        >>> from rue.streams.numbering import Numbering
        >>> far = Block(csr_array(([1.0, 2.0], [900, 70], [0, 2]), shape=(1, 1000)))
        >>> far.numbered(Numbering(), adding=True).width  # two features, and a place for all that are unknown
        3
        """
        block = self if self.sparse else self._as_sparse()
        rows: Any = block.rows(False)
        places = numbering.places_of(rows.indices, adding, block.width)
        view = _View(rows.indptr, places, rows.values, numbering.size, rows.indices, numbering, block.bins)
        return Block(view, self.y, self.weights, self.lagged)

    def _as_sparse(self) -> Block:
        """Dense examples with an index for every feature."""
        count, width = self.X.shape
        indices = np.tile(np.arange(width, dtype=np.uint32), count)
        data = floats(self.X, "features").reshape(-1)
        view = _View(np.arange(count + 1) * width, indices, data, width)
        return Block(view, self.y, self.weights, self.lagged)

    def with_first(self, columns: Any) -> Block:
        """The same rows with more features before their own: those of the matrix `columns`.

        >>> import numpy as np
        >>> Block([[1.0], [2.0]]).with_first(np.array([[5.0], [6.0]])).X
        array([[5., 1.],
               [6., 2.]])
        """
        n, many = columns.shape
        if not self.sparse:
            X = np.hstack([columns, floats(self.X, "features")])
            return Block(X, self.y, self.weights, many)
        rows: Any = self.rows(False)
        lengths = np.diff(rows.indptr)
        if lengths.size and (lengths.min() < 0 or lengths.sum() != min(rows.indices.size, rows.values.size)):
            raise DataError("the sparse matrix is damaged: its indptr leads outside its data.")
        indptr = rows.indptr + many * np.arange(n + 1)
        own = np.ones(int(indptr[-1]), dtype=np.bool_)
        first = indptr[:-1, None] + np.arange(many)
        own[first] = False
        indices, values = np.empty(own.size, dtype=np.int64), np.empty(own.size)
        indices[first], values[first] = np.arange(many), columns
        indices[own], values[own] = rows.given.astype(np.int64) + many, rows.values
        width = max(self.width, int(indices.max(initial=-1)) + 1 - many) + many
        return Block(_View(indptr, indices, values, width, bins=self.bins and ()), self.y, self.weights, many)

    def narrowed(self) -> Block:
        """The same rows, as wide as the largest of their indices; a dense block as it is.

        >>> from scipy.sparse import csr_array
        >>> Block(csr_array(([1.0], [70], [0, 1]), shape=(1, 1000))).narrowed().width
        71
        """
        if not self.sparse:
            return self
        rows: Any = self.rows(False)
        width = int(rows.indices.max()) + 1 if rows.indices.size else 0
        view = _View(rows.indptr, rows.indices, rows.values, width, bins=self.bins)
        return Block(view, self.y, self.weights, self.lagged)

    def first(self, rows: int) -> Block:
        """The first `rows` rows, or all if there are no more.

        >>> len(Block([[1.0], [2.0], [3.0]]).first(2))
        2
        """
        return self if rows >= len(self) else self.part(0, rows)

    def in_order(self) -> Block:
        """The same rows with each row's features sorted by index; a repeated feature stays repeated.

        >>> from scipy.sparse import csr_array
        >>> Block(csr_array(([1.0, 2.0], [7, 3], [0, 2]), shape=(1, 8))).in_order().X.indices.tolist()
        [3, 7]
        """
        if self._sorted:
            return self._sorted[0]
        part = slice(int(self.X.indptr[0]), int(self.X.indptr[-1]))
        indices, data = self.X.indices[part], self.X.data[part]
        given = None if self.X.given is None else self.X.given[part]
        by = indices if given is None else given
        lengths = np.diff(self.X.indptr)
        if lengths.size and (lengths.min() < 0 or lengths.sum() != min(indices.size, data.size)):
            raise DataError("the sparse matrix is damaged: its indptr leads outside its data.")
        of_row = np.repeat(np.arange(len(self)), lengths)
        order = np.lexsort((by.view(np.uint32) if by.dtype == np.int32 else by, of_row))
        given = None if given is None else given[order]
        row_starts, X = self.X.indptr - part.start, self.X
        view = _View(row_starts, indices[order], data[order], self.width, given, X.numbering, X.bins)
        self._sorted.append(Block(view, self.y, self.weights, self.lagged))
        return self._sorted[0]


def blocks(X: Any, y: Any = None, weights: Any = None) -> Iterator[Block]:
    """Cut arrays into blocks, read files and tables as `read` does; blocks, and iterables of them, are passed on."""
    if is_readable(X):
        from rue.streams.stream import read

        X, y, weights = read(X, y, weights), None, None
    if (isinstance(X, Block) or is_stream(X)) and (y is not None or weights is not None):
        raise DataError("blocks carry their labels and weights: do not give y or weights beside them.")
    if isinstance(X, Block):
        yield from _cut(X)
    elif is_stream(X):
        for block in X:
            if not isinstance(block, Block):
                raise DataError(f"a stream yields rue.Block objects, not {type(block).__name__}.")
            yield from _cut(block)
    else:
        yield from _cut(Block(X, y, weights))


def one_sparse_row(x: Any) -> tuple[Any, Any]:
    """Indices and values of a scipy matrix or array that holds a single row."""
    csr = x.tocsr()
    if csr.ndim == 2 and csr.shape[0] != 1:
        raise DataError(f"one example at a time: a sparse row has shape (1, d), not {csr.shape}; use run for many.")
    return csr.indices, csr.data


def _cut(block: Block) -> Iterator[Block]:
    for start in range(0, len(block), ROWS):
        if start == 0 and len(block) <= ROWS:
            yield block
            return
        yield block.part(start, start + ROWS)


def _rows_of(X: Any, part: slice) -> Any:
    """Some rows of a CSR matrix as views: slicing by scipy would copy them."""
    return _View(X.indptr[part.start : part.stop + 1], X.indices, X.data, X.shape[1], X.given, X.numbering, X.bins)


class BinnedColumn(NamedTuple):
    """A column of a table that a learner puts into bins by rank (`rue.learners.bins`)."""

    feature: int
    """The slot of its number."""
    missing: int
    """The slot of the feature that says that it is missing."""
    first: int
    """The slot of its first bin."""
    many: int
    """How many bins it has."""


@dataclasses.dataclass(frozen=True)
class _View:
    """The arrays of a CSR matrix, without scipy's checks."""

    indptr: Any
    indices: Any
    data: Any
    width: int
    given: Any = None
    """The indices as the data have them, where `indices` are the places that `numbering` gives them."""
    numbering: Numbering | None = None
    bins: tuple[BinnedColumn, ...] | None = None
    """The columns that a learner is to put into bins; () once it has; None if there are none."""

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.width


def csr_view(indptr: Any, indices: Any, data: Any, width: int, bins: tuple[BinnedColumn, ...] | None = None) -> Any:
    """The arrays of a CSR matrix as a block takes them, without scipy's checks."""
    return _View(indptr, indices, data, width, bins=bins)


def is_readable(X: Any) -> bool:
    """Whether it is a path, a table (pandas, polars, Arrow), or several of these, or a list of dicts: for `read`."""
    if isinstance(X, list | tuple):
        return are_dicts(X) or (bool(X) and all(map(is_readable, X)))
    return isinstance(X, str | os.PathLike) or hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")


def is_stream(X: Any) -> bool:
    """Whether it is no array but yields blocks."""
    if isinstance(X, np.ndarray) or hasattr(X, "tocsr") or not isinstance(X, Iterable):
        return False
    if isinstance(X, list | tuple):
        return bool(X) and isinstance(X[0], Block)
    return not hasattr(X, "__array__")


def _matrix(X: Any) -> Any:
    if isinstance(X, _View):
        return X
    if hasattr(X, "tocsr"):
        csr = X.tocsr()
        if csr.ndim != 2:
            raise DataError("a sparse X must have two dimensions, rows and features.")
        return _View(csr.indptr, csr.indices, csr.data, csr.shape[1])
    array = as_array(X, "features")
    if array.ndim != 2:
        hint = "; one example at a time goes to predict and update" if array.ndim == 1 else ""
        raise DataError(f"X must have two dimensions, rows and features, not {array.ndim}{hint}.")
    return array


def as_array(values: Any, what: str) -> Any:
    """An array of whatever is given; ragged lists and masked arrays are refused."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise DataError(f"the {what} are a masked array with masked entries: fill them or leave their rows out.")
    try:
        return np.asarray(values)
    except (OverflowError, ValueError) as error:
        raise DataError(f"the {what} do not form an array of numbers: {error}.") from error


def as_labels(values: Any) -> Any:
    """An array of labels, in which those that are missing (None, NaN, pandas' NA) are NaN among numbers, else None.

    >>> as_labels([1, None, 2]), as_labels(["yes", None, float("nan")])
    (array([ 1., nan,  2.]), array(['yes', None, None], dtype=object))
    """
    column = as_array(values, "labels")
    listed = isinstance(values, list | tuple) and column.dtype.kind == "U"  # where NumPy has made 'nan' of NaN
    if column.ndim != 1 or not (listed or column.dtype.kind == "O"):
        return column
    labels = list(values) if listed else column.tolist()
    try:
        if not any(map(_is_missing, set(labels))):  # a few labels instead of all: a block is made several times
            return column
    except TypeError:  # a label that cannot be hashed is refused elsewhere
        return column
    missing = [_is_missing(label) for label in labels]
    column = np.empty(len(labels), dtype=object)
    column[:] = labels
    column[missing] = None
    numeric = (isinstance(label, numbers.Real) and not isinstance(label, bool) for label in column if label is not None)
    return column.astype(np.float64) if all(numeric) else column


def missing_labels(y: Any) -> Any:
    """Which labels of an array as `as_labels` makes it are missing, as a mask; None if none is."""
    if y.dtype.kind not in "fO":
        return None
    missing = np.isnan(y) if y.dtype.kind == "f" else np.asarray(y == None, dtype=np.bool_)  # noqa: E711 (of each label)
    return missing if missing.any() else None


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # of pandas' NA, of which even that is not known
        return True
    except ValueError:  # an array, which is no label
        return False


def floats(values: Any, what: str) -> Any:
    """An array of float64 in C order, the same one if it is that already; refuses what is no real number."""
    if values.dtype == np.float64 and values.flags.c_contiguous and values.flags.aligned:
        return values
    if values.dtype.kind not in "biufO":
        raise DataError(f"the {what} must be real numbers, not {values.dtype}.")
    try:
        return np.array(values, dtype=np.float64, order="C")
    except (OverflowError, TypeError, ValueError) as error:
        raise DataError(f"the {what} must be numbers: {error}.") from error
