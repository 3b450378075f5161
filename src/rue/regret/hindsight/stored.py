"""The stored stream of a run, as arrays: what an audit computes again from the data and the predictions alone."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from rue.domains import Domain
from rue.errors import DataError
from rue.learners import Learner
from rue.norms import norm, norms_of_rows
from rue.regret.bounds.facts import reach
from rue.regret.hindsight.comparator import Comparator, best_in_hindsight
from rue.streams import Block, Labels, blocks

__all__ = ["Stored"]


class _Run(Protocol):
    """What is needed of a `rue.Run`; its own module imports this one's layer, so it cannot be imported here."""

    @property
    def learner(self) -> Learner: ...
    @property
    def labels(self) -> Labels: ...
    @property
    def predictions(self) -> Any: ...
    @property
    def y(self) -> Any: ...
    @property
    def weights(self) -> Any: ...
    @property
    def scored(self) -> Any: ...


class Stored:
    """The examples that were scored and count, as one matrix, with labels as the loss takes them."""

    def __init__(self, run: _Run, X: Any, y: Any) -> None:
        self.loss, self.intercept, width = run.learner.loss, run.learner.intercept, run.learner.d
        features = None
        if run.learner.numbering is not None:  # the others would be columns of zeros
            features = np.sort(run.learner.numbering.features())
            features = features[features >= 0]
        counts = run.scored
        matrices, before = [], 0
        for block in blocks(X, y):
            part = slice(before, before + len(block))
            before += len(block)
            _require_same(run, block, part)
            matrices.append(_matrix(block, width, features)[np.flatnonzero(counts[part])])
        if before != run.predictions.size:
            raise DataError(
                f"audit: the run saw {run.predictions.size:,} examples, but here are {before:,}: give the stream it "
                "was made on."
            )
        self.X = _stacked(matrices)
        self.y, self.predictions = run.y[counts], run.predictions[counts]
        self.weights = np.ones(self.y.size) if run.weights is None else run.weights[counts]
        pairs = list(zip(self.predictions.tolist(), self.y.tolist(), strict=True))
        self.losses = np.array([self.loss.value(*pair) for pair in pairs])
        self.slopes = self.weights * np.array([self.loss.slope(*pair) for pair in pairs])

    def divide(self, by: Any) -> None:
        """Measure features in units of `by`, which has one number a coordinate."""
        from scipy import sparse

        by = by[int(self.intercept) :]
        self.X = self.X / by if isinstance(self.X, np.ndarray) else sparse.csr_matrix(self.X @ sparse.diags(1.0 / by))

    @property
    def norms(self) -> Any:
        """‖x_t‖, the intercept's 1 included."""
        return norms_of_rows(self.X, self.intercept)

    def best(self, K: Domain, lambda_: float, tolerance: float = 1e-6, weights: Any = None) -> Comparator:
        """The best point of K in hindsight, by other weights than the run's if given."""
        return best_in_hindsight(
            self.X,
            self.y,
            loss=self.loss,
            domain=K,
            lambda_=lambda_,
            weights=self.weights if weights is None else weights,
            intercept=self.intercept,
            tolerance=tolerance,
        )

    def losses_of(self, u: Any) -> Any:
        """ℓ_t(u)."""
        p = self.X @ u[1:] + u[0] if self.intercept else self.X @ u
        return np.array([self.loss.value(*pair) for pair in zip(p.tolist(), self.y.tolist(), strict=True)])

    def total_of(self, u: Any, lambda_: float) -> float:
        """Σ weight·(ℓ_t(u) + (λ/2)‖u‖²), weight by weight and without the comparator's code."""
        return math.fsum(self.weights * self.losses_of(u)) + 0.5 * lambda_ * float(self.weights.sum()) * float(u @ u)

    def rounding(self, K: Domain, lambda_: float, comparator: Comparator) -> float:
        """docs/theory.md, end of section 6, where U is the farthest that a comparator can be."""
        u = comparator.point
        U, norms, g = reach(K, np.zeros(u.size)), self.norms, np.abs(self.slopes)
        if not math.isfinite(U):
            U = max(norm(u), float(np.max(g / self.weights * norms)) / lambda_ if lambda_ else 0.0)
        labels = self.y**2 if self.loss.quadratic else np.abs(self.y)
        sizes = self.weights * (np.abs(self.losses) + np.abs(self.losses_of(u)) + labels + lambda_ * U * U)
        sizes += g * (np.abs(self.predictions) + norms * U)
        return float((self.y.size + 10) * 4e-16 * sizes.sum())


def _require_same(run: _Run, block: Block, part: slice) -> None:
    """Refuse labels and weights that are not the run's."""
    for name, given, own in (
        ("labels", None if block.y is None else run.labels.encode(block.y), run.y),
        ("weights", block.weights, run.weights),
    ):
        if given is not None and not np.array_equal(given, own[part] if own is not None else 1.0, equal_nan=True):
            raise DataError(f"audit: the {name} are not those of the run: give the stream it was made on.")


def _matrix(block: Block, width: int, features: Any) -> Any:
    """A block's features, as many as the learner has; with `features` a column for each of these alone."""
    from scipy import sparse

    rows: Any = block.rows(False)
    if not block.sparse:
        if block.width != width:
            raise DataError(f"audit: the run had {width} features, but here are {block.width}.")
        return rows.values.reshape(len(block), width)
    if block.width > width:
        raise DataError(f"audit: the run had {width} features, but here are {block.width}.")
    if features is not None:
        places = np.searchsorted(features, rows.indices)
        return sparse.csr_matrix((rows.values, places, rows.indptr), shape=(len(block), features.size))
    places = rows.indices.view(np.int32) if width < 2**31 else rows.indices.astype(np.int64)
    return sparse.csr_matrix((rows.values, places, rows.indptr), shape=(len(block), width))


def _stacked(matrices: list[Any]) -> Any:
    """The rows of several matrices as one; dense if all are."""
    from scipy import sparse

    if len(matrices) == 1:
        return matrices[0]
    if all(isinstance(matrix, np.ndarray) for matrix in matrices):
        return np.vstack(matrices)
    return sparse.vstack([sparse.csr_matrix(matrix) for matrix in matrices], format="csr")
