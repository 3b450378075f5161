"""Euclidean norms whose squares neither underflow nor overflow, and the limits beyond which sums are not trusted.

A feature of 1e-200 has a square of 0, so a plain norm of such numbers is 0 and a bound made of it is false. Numbers
outside these limits are scaled by a power of two, which changes no digit; all others give the bits of the plain norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["LARGEST_TERM", "LEAST_PRODUCT", "LEAST_SQUARE", "LOST", "SMALL", "UP", "norm", "norms_of_rows"]

LEAST_SQUARE = 2.0**-940
"""A sum of squares that is smaller than this, and not 0, may have lost digits or terms to underflow."""
LEAST_PRODUCT = 2.0**-1000
"""A product that is smaller than this, and not 0, may have lost digits."""
LARGEST_TERM = 2.0**960
"""The largest loss, or product of slope and feature, that is added to a sum: 2^60 of them do not overflow."""
LOST = 2.0**-1074
"""The largest error of a product that underflows: the smallest positive float."""
SMALL, UP = 2.0**-400, 2.0**600
"""A column whose largest magnitude is below `SMALL` is multiplied by `UP` before it is squared."""

PIECE = 8192
"""How many squares are added up at once; OpenBLAS uses several threads from 10,000 on."""
_LOW, _HIGH = 1e-140, 1e140
"""A norm between these has lost nothing: squares that underflowed are 1e-28 of the sum at most, each."""


def norm(v: Any) -> float:
    """‖v‖ of a vector; infinite only if it is larger than any float, 0 only if v is 0.

    >>> norm([0.0, 1e-200]), float(np.linalg.norm([0.0, 1e-200]))
    (1e-200, 0.0)
    """
    v = np.asarray(v, dtype=np.float64).ravel()
    with np.errstate(all="ignore"):
        plain = _plain(v)
        if _LOW <= plain <= _HIGH or not v.size:
            return plain
        top = float(np.abs(v).max())
        if not 0.0 < top < np.inf:
            return top
        exponent = int(np.frexp(top)[1])  # a power of two: scaling by it is exact
        return float(np.ldexp(_plain(np.ldexp(v, -exponent)), exponent))


def _plain(v: Any) -> float:
    """‖v‖ by its squares, added up in pieces that BLAS does not share out: its threads would decide the last digit."""
    return float(np.sqrt(sum(float(piece @ piece) for piece in (v[i : i + PIECE] for i in range(0, v.size, PIECE)))))


def norms_of_rows(X: Any, intercept: bool) -> Any:
    """‖x_t‖ of each row of a matrix, dense or sparse, the intercept's 1 included where there is one.

    >>> norms_of_rows(np.array([[3.0, 4.0], [0.0, 0.0]]), intercept=False).tolist()
    [5.0, 0.0]
    """
    dense = isinstance(X, np.ndarray)
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", X, X) if dense else X.multiply(X).sum(axis=1)
        plain = np.sqrt(np.asarray(squares).ravel() + float(intercept))
        if not plain.size or (plain.min() >= _LOW and plain.max() <= _HIGH):
            return plain
        tops = np.asarray((np.abs(X) if dense else abs(X).max(axis=1).toarray()).reshape(len(plain), -1))
        tops = tops.max(axis=1, initial=float(intercept))
        extreme = np.flatnonzero(~((plain >= _LOW) & (plain <= _HIGH)) & (tops > 0.0))
        ones = np.ones(int(intercept))
        for i in extreme:
            row = X[i] if dense else X[[i]].data
            plain[i] = norm(np.concatenate([ones, np.ravel(row)]))
        return plain
