"""Rows against NumPy, to the bit."""

import numpy as np
import pytest

from rue.compiled import kernel
from rue.rows import DenseRows, SparseRows


@kernel
def add_both(rows, scales, w, v):
    """Add row after row to two vectors."""
    for i in range(scales.size):
        rows.row(i).add_twice(scales[i], w, v)


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("width", [1, 3, 4, 7, 8, 54])
def test_two_vectors_get_the_same_bits_as_from_numpy(width, shift):
    rng = np.random.default_rng(width)
    X, scales = rng.normal(size=(5, width)), rng.normal(size=5)
    start, other = rng.normal(size=(2, width + shift + 1))  # the last coordinate is that of no feature
    wanted = start.copy(), other.copy()
    for vector in wanted:
        for x, scale in zip(X, scales, strict=True):
            vector[:-1] += scale * np.concatenate([np.ones(shift), x])
    indices = np.tile(np.arange(width, dtype=np.uint32), 5)
    sizes = np.uint64(width), np.uint64(shift)
    dense = DenseRows(X.ravel(), *sizes)
    sparse = SparseRows(width * np.arange(6), indices, X.ravel(), *sizes, indices)
    for rows in (dense, sparse):
        w, v = start.copy(), other.copy()
        add_both(rows, scales, w, v)
        assert w.tobytes() == wanted[0].tobytes()
        assert v.tobytes() == wanted[1].tobytes()
