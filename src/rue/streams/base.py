"""Blocks: some consecutive examples, dense or sparse, in the one form the kernels read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.rows import DenseRows, SparseRows

__all__ = ["Block", "blocks", "one_sparse_row"]

ROWS = 65_536
"""Rows in a block cut from an array: large enough to cost nothing, small enough that Ctrl-C is answered soon."""


@dataclasses.dataclass(frozen=True)
class Block:
    """Consecutive examples: a matrix X (two-dimensional array or scipy sparse), labels y, and weights or None.

    >>> import numpy as np
    >>> Block(np.eye(2), y=[1, -1]).width
    2
    """

    X: Any
    y: Any = None
    weights: Any = None

    def __post_init__(self) -> None:
        X = _matrix(self.X)
        object.__setattr__(self, "X", X)
        for name, what in (("y", "labels"), ("weights", "weights")):
            column = getattr(self, name)
            if column is not None:
                column = np.asarray(column)
                if column.shape != (X.shape[0],):
                    raise DataError(f"X has {X.shape[0]} rows, but the {what} have shape {column.shape}: one a row.")
                object.__setattr__(self, name, column)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.X.shape[1])

    @property
    def sparse(self) -> bool:
        return not isinstance(self.X, np.ndarray)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def labels(self) -> Any:
        """The labels as float64."""
        if self.y is None:
            raise DataError("there are no labels: give y.")
        return _floats(self.y, "labels")

    def column_of_weights(self) -> Any:
        """The weights as float64, an empty array standing for 'all 1'."""
        return np.empty(0) if self.weights is None else _floats(self.weights, "weights")

    def rows(self, intercept: bool) -> DenseRows | SparseRows:
        """The examples as kernels read them."""
        shift = np.uint64(intercept)
        if not self.sparse:
            values = _floats(self.X, "features")
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
        values = _floats(np.asarray(self.X.data)[first:last], "features")
        return SparseRows(np.ascontiguousarray(indptr - first, dtype=np.int64), indices, values, shift)

    def in_order(self) -> Block:
        """The same rows with each row's features sorted by index; a repeated feature stays repeated."""
        part = slice(int(self.X.indptr[0]), int(self.X.indptr[-1]))
        indices, data = self.X.indices[part], self.X.data[part]
        of_row = np.repeat(np.arange(len(self)), np.diff(self.X.indptr))
        order = np.lexsort((indices, of_row))
        view = _View(self.X.indptr - part.start, indices[order], data[order], self.width)
        return Block(view, self.y, self.weights)


def blocks(X: Any, y: Any = None, weights: Any = None) -> Iterator[Block]:
    """Cut arrays into blocks; blocks, and iterables of blocks, are passed on as they are."""
    if (isinstance(X, Block) or _is_stream(X)) and (y is not None or weights is not None):
        raise DataError("blocks carry their labels and weights: do not give y or weights beside them.")
    if isinstance(X, Block):
        yield from _cut(X)
    elif _is_stream(X):
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
        part = slice(start, start + ROWS)
        y = None if block.y is None else block.y[part]
        weights = None if block.weights is None else block.weights[part]
        yield Block(_rows_of(block.X, part) if block.sparse else block.X[part], y, weights)


def _rows_of(X: Any, part: slice) -> Any:
    """Some rows of a CSR matrix as views: slicing by scipy would copy them."""
    return _View(X.indptr[part.start : part.stop + 1], X.indices, X.data, X.shape[1])


@dataclasses.dataclass(frozen=True)
class _View:
    """The arrays of a CSR matrix, without scipy's checks."""

    indptr: Any
    indices: Any
    data: Any
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.width


def _is_stream(X: Any) -> bool:
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
        return _View(csr.indptr, csr.indices, csr.data, csr.shape[1])
    array = np.asarray(X)
    if array.ndim != 2:
        hint = "; one example at a time goes to predict and update" if array.ndim == 1 else ""
        raise DataError(f"X must have two dimensions, rows and features, not {array.ndim}{hint}.")
    return array


def _floats(column: Any, what: str) -> Any:
    if column.dtype == np.float64 and column.flags.c_contiguous and column.flags.aligned:
        return column
    if column.dtype.kind == "c":
        raise DataError(f"the {what} must be real numbers, not {column.dtype}.")
    if column.dtype.kind not in "biuf":
        try:
            return np.ascontiguousarray(column, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"the {what} must be numbers, not {column.dtype} ({error}).") from error
    return np.array(column, dtype=np.float64, order="C")
