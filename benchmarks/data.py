"""Streams for the benchmarks: made from a seed, or read from the repository's neighbour `shared/data`."""

from __future__ import annotations

import csv
import io
import lzma
import os
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

SHARED = Path(os.environ.get("RUE_DATA", Path(__file__).parents[2] / "shared" / "data"))
"""The folder of the real streams: the one named by RUE_DATA, or the repository's neighbour."""


def text_like(rows: int = 200_000, columns: int = 47_236, words: float = 84.0, seed: int = 0):
    """A sparse stream like RCV1: Zipf-distributed columns, about 67 distinct ones a row, rows of norm 1.

    A document of either class draws a quarter of its words from its class's own Zipf distribution and the rest from the
    common one, and 3 % of the labels are wrong: a linear model learns it about as well as it learns RCV1.
    """
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, columns + 1)
    cumulative = np.cumsum(frequency) / frequency.sum()
    y = np.where(rng.random(rows) < 0.47, 1.0, -1.0)
    lengths = rng.poisson(words, rows)
    of_row = np.repeat(np.arange(rows), lengths)
    ranks = np.searchsorted(cumulative, rng.random(of_row.size))
    common, positive, negative = (rng.permutation(columns) for _ in range(3))
    own = rng.random(of_row.size) < 0.25
    word = np.where(own, np.where(y[of_row] > 0, positive[ranks], negative[ranks]), common[ranks])
    X = sparse.csr_matrix((np.ones(word.size), (of_row, word)), shape=(rows, columns))
    X.sum_duplicates()
    rarity = np.log(rows / (1.0 + np.bincount(X.indices, minlength=columns)))
    X.data = (1.0 + np.log(X.data)) * rarity[X.indices]
    norms = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    X.indices = X.indices.astype(np.int32)
    return X, y * np.where(rng.random(rows) < 0.03, -1.0, 1.0)


def covtype():
    """581,012 × 54 dense, columns divided by their largest value so that plain steps make sense; None if absent."""
    path = SHARED / "covtype.csv.xz"
    if not path.exists():
        return None
    with lzma.open(path, "rt") as file:
        text = file.read()
    header = next(csv.reader(io.StringIO(text[:10_000])))
    target = header.index("lodgepole")
    table = np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1)
    X = np.ascontiguousarray(np.delete(table, target, axis=1))
    X /= np.maximum(1e-300, np.abs(X).max(axis=0))
    return X, np.where(table[:, target] > 0, 1.0, -1.0)


def a9a():
    """48,842 × 123 binary columns as CSR, labels ±1; None if absent."""
    return svmlight("a9a", 123)


def toxicity():
    """159,686 × 2^20 token counts as CSR, labels ±1; None if absent."""
    return svmlight("toxicity", 2**20)


def elec2():
    """45,312 rows as CSR, the category `day` as seven columns, labels ±1; None if absent."""
    path = SHARED / "elec2.csv.xz"
    if not path.exists():
        return None
    with lzma.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    days = sorted({row["day"] for row in rows})
    numbers = [name for name in rows[0] if name not in ("up", "day")]
    table = [[float(row[name]) for name in numbers] + [float(row["day"] == day) for day in days] for row in rows]
    return sparse.csr_matrix(np.array(table)), np.array([1.0 if row["up"] == "1" else -1.0 for row in rows])


def svmlight(name: str, columns: int):
    """A stream of `shared/data` in svmlight's format, labels ±1; None if absent."""
    path = SHARED / f"{name}.svm.xz"
    if not path.exists():
        return None
    with lzma.open(path) as file:
        X, y = load_svmlight_file(file, n_features=columns)
    return X, np.where(y > 0, 1.0, -1.0)
