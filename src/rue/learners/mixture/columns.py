"""What a round of the pool does to the features of a row, many at once: they stand in columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from rue.compiled import lanes
from rue.compiled.arithmetic import choose, higher, root
from rue.learners.mixture.layout import FIRST, LARGEST, SQUARES, VISITS
from rue.norms import SMALL, UP

__all__ = [
    "NEAR",
    "by_first_of",
    "by_largest_of",
    "by_root_of",
    "divisors",
    "less_curved",
    "less_steep",
    "visited",
    "weighted_sum",
]

NEAR = 0.001
"""A first value smaller than this part of the largest one no longer counts."""


# Σx² of a column of tiny features would underflow: as long as its largest magnitude is below `SMALL`, the sum is of
# (UP·x)². The first larger feature brings it back to Σx², to which what came before then adds nothing.


@lanes(whole=True)
def by_root_of(x: Any, largest: Any, visits: Any, squares: Any) -> Any:
    """x divided by the root mean square, x included."""
    z = x * choose(higher(largest, higher(x, -x)), SMALL, UP, 1.0)
    return z * root((visits + 1.0) / (squares + z * z))


@lanes(whole=True)
def by_first_of(x: Any, initial: Any, largest: Any) -> Any:
    """x divided by the first magnitude, as long as that counts."""
    size = higher(x, -x)
    return x / higher(choose(-initial, 0.0, initial, size), higher(largest, size) * NEAR)


@lanes(whole=True)
def by_largest_of(x: Any, largest: Any) -> Any:
    """x divided by the largest magnitude, x included."""
    return x / higher(largest, higher(x, -x))


@lanes(results=4, whole=True)
def visited(x: Any, largest: Any, squares: Any, visits: Any, initial: Any) -> Any:
    """The four, with x entered."""
    size = higher(x, -x)
    most = higher(largest, size)
    z, back = x * choose(most, SMALL, UP, 1.0), choose(largest, SMALL, choose(most, SMALL, 1.0, 1.0 / UP), 1.0)
    return most, squares * back * back + z * z, visits + 1.0, choose(-initial, 0.0, initial, size)


@lanes(results=2, whole=True)
def less_steep(v: Any, total: Any, slope: Any, left: Any) -> Any:
    """What is left of the total and (slope·v)², and v/(1 + its root)."""
    total = left * total + (slope * v) * (slope * v)
    return total, v / (1.0 + root(total))


@lanes(results=2, whole=True)
def less_curved(v: Any, total: Any, curvature: Any) -> Any:
    """The total and curvature·v², and v/(1 + it)."""
    total = total + curvature * v * v
    return total, v / (1.0 + total)


def divisors(stats: Any) -> tuple[Any, Any, Any]:
    """Of each row of statistics what its feature is divided by: root mean square, first value, largest magnitude.

    1 for a feature that has not occurred. The functions above have the feature of the present round counted in.
    """
    seen = stats[:, VISITS] > 0.0
    largest, squares, visits, first = (np.where(seen, stats[:, k], 1.0) for k in (LARGEST, SQUARES, VISITS, FIRST))
    by_root = np.sqrt(squares / visits) / np.where(largest < SMALL, UP, 1.0)
    return by_root, np.maximum(first, largest * NEAR), largest


def weighted_sum(weights: Any, shares: Any) -> Any:
    """Σ_i shares_i·weights[…, i], added up in the order of the members for every row.

    BLAS would add in an order that depends on where a row stands among the others, and a model must have the same bits
    however its features are arranged.

    >>> weighted_sum(np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([0.5, 0.25])).tolist()
    [1.0, 2.75]
    """
    total = np.zeros(weights.shape[:-1])
    for i, share in enumerate(shares):
        total += np.multiply(weights[..., i], share, dtype=np.float64)  # weights may be float32
    return total
