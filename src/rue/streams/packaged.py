"""The small real stream that comes with rue."""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np

__all__ = ["census"]


def census() -> tuple[Any, Any]:
    """48,842 people of the 1994 US census: 123 binary features (CSR) and whether income exceeds 50,000 dollars (±1).

    UCI Adult, CC BY 4.0, in the binary coding of LIBSVM's collection (a9a, then a9a.t).

    >>> X, y = census()
    >>> X.shape
    (48842, 123)
    """
    from scipy.sparse import csr_matrix

    with (resources.files("rue.streams") / "census.npz").open("rb") as file, np.load(file) as stored:
        indices = stored["indices"].astype(np.int32)
        indptr = np.concatenate([[0], np.cumsum(stored["lengths"], dtype=np.int64)])
        y = np.where(stored["positive"], 1.0, -1.0)
    return csr_matrix((np.ones(indices.size), indices, indptr), shape=(y.size, 123)), y
