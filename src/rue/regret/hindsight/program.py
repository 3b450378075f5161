"""The stored stream as a convex program: F(u) = Σ weight·[ℓ(⟨u,x⟩, y) + (λ/2)‖u‖²], and lower bounds on it (D5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import kernel
from rue.domains import Domain
from rue.errors import BadExample, DataError
from rue.ledger import keep_accounts, open_ledger
from rue.losses import Loss
from rue.norms import LEAST_PRODUCT, LOST, norm, norms_of_rows
from rue.regret.hindsight.conjugates import terms_of
from rue.streams import Block, blocks

__all__ = ["Hindsight", "read_stream"]

_1 = np.uint64(1)
_CHUNK = 16_384
_DENSE = 200_000
"""Sparse matrices of fewer cells than this are worked on as dense ones."""


@kernel
def _total(loss: Any, p: Any, y: Any, weights: Any) -> Any:
    """Σ weight·ℓ(p, y)."""
    total = 0.0
    for i in range(y.size):
        total += weights[i] * loss.value(p[i], y[i])
    return total


@kernel
def _slopes(loss: Any, p: Any, y: Any, weights: Any, out: Any) -> None:
    """g = weight·ℓ'(p, y) of every example."""
    for i in range(y.size):
        out[i] = weights[i] * loss.slope(p[i], y[i])


@kernel
def _sparse_gram(indptr: Any, indices: Any, values: Any, D: Any, H: Any) -> None:
    """The lower triangle of Σ D_t x_t x_tᵀ, for rows whose indices increase."""
    for i in range(D.size):
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for k in range(first, last):
            scaled, row = D[i] * values[k], H[indices[k]]
            for m in range(first, k + _1):
                row[indices[m]] += scaled * values[m]


class Hindsight:
    """The objective F over a stream and a domain: its value, its derivatives and its lower bounds.

    Any slopes g_t in the range of the losses' slopes prove a lower bound on F over all of K, by Fenchel's inequality
    (docs/theory.md, D5):

        F(u) ≥ −Σ (weight·ℓ)*(g_t) + inf over v in K of [⟨Σ g_t x_t, v⟩ + (λΣweight/2)‖v‖²].

    Solvers choose slopes to make it large; what they choose need not be exact for the bound to be true. Every bound is
    lowered by an allowance for rounding (docs/theory.md, end of section 6).
    """

    def __init__(
        self, X: Any, y: Any, weights: Any, loss: Loss, lambda_: float, domain: Domain, intercept: bool
    ) -> None:
        self.X, self.y, self.weights, self.intercept = X, y, weights, int(intercept)
        self.loss, self.domain = loss, domain
        self.ridge = lambda_ * float(weights.sum())
        self.d = int(X.shape[1]) + self.intercept
        self.known = loss.declares("conjugate")
        self.unbounded = self.ridge == 0.0 and not domain.bounded
        self.terms = terms_of(loss, y, weights)
        self.norms = self._norms()
        self._transposed = X.T
        sizes = np.asarray(abs(X).mean(axis=0)).ravel() if y.size else np.zeros(X.shape[1])
        sizes = np.concatenate([np.ones(self.intercept), sizes])
        self.unused = sizes == 0.0
        about = 1.0 if loss.task == "classify" or not y.size else float(np.abs(y).mean()) or 1.0
        self.units = about / np.where(self.unused, 1.0, sizes) / math.sqrt(self.d)
        self._absolute: Any = None
        self._labels = float((np.abs(y) * weights).sum())
        self.rounding: float = (y.size + 10) * 4e-16 * self._labels
        self.allowance = 0.0
        """What the last bound was lowered by for the sake of rounding."""

    def _norms(self) -> Any:
        """‖x_t‖, the intercept's 1 included."""
        return norms_of_rows(self.X, bool(self.intercept))

    @property
    def sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return not isinstance(self.X, np.ndarray)

    def predict(self, u: Any) -> Any:
        """⟨u, x_t⟩ for every row."""
        if not self.intercept:
            return self.X @ u
        return self.X @ u[1:] + u[0]

    def pull(self, g: Any) -> Any:
        """Σ g_t x_t."""
        S = self._transposed @ g
        return np.concatenate([[g.sum()], S]) if self.intercept else S

    def slope_at(self, S: Any, u: Any) -> Any:
        """The gradient at u, S being Σ g_t x_t."""
        return S + self.ridge * u

    def value(self, u: Any, p: Any = None) -> float:
        """F(u)."""
        p = self.predict(u) if p is None else p
        return float(_total(self.loss, p, self.y, self.weights)) + 0.5 * self.ridge * float(u @ u)

    def slopes(self, p: Any) -> Any:
        """weight·slope at each prediction."""
        out = np.empty(self.y.size)
        _slopes(self.loss, p, self.y, self.weights, out)
        return out

    def curvatures(self, p: Any) -> Any:
        """weight·ℓ'' at each prediction, for losses that have it."""
        return self.weights * self.loss.second_derivative(p, self.y)

    def hessian(self, D: Any) -> Any:
        """Σ D_t x_t x_tᵀ + λΣweight·I."""
        H, i = np.zeros((self.d, self.d)), self.intercept
        if self.sparse:
            inner = np.zeros((self.d - i, self.d - i))
            _sparse_gram(self.X.indptr, self.X.indices.view(np.uint32), self.X.data, D, inner)
            H[i:, i:] = inner + np.tril(inner, -1).T
        else:
            for start in range(0, D.size, _CHUNK):
                part = self.X[start : start + _CHUNK]
                H[i:, i:] += (part * D[start : start + _CHUNK, None]).T @ part
        if i:
            H[0, 0], H[0, 1:] = D.sum(), self._transposed @ D
            H[1:, 0] = H[0, 1:]
        H[np.diag_indices(self.d)] += self.ridge
        return H

    def noise(self, g: Any) -> Any:
        """How far Σ g_t x_t may be off by rounding, coordinate by coordinate (docs/theory.md, section 6)."""
        if self._absolute is None:
            self._absolute = abs(self.X).T
        size = self._absolute @ np.abs(g)
        if self.intercept:
            size = np.concatenate([[np.abs(g).sum()], size])
        return (self.y.size + 10) * 4e-16 * size

    def lower(self, g: Any, S: Any, u: Any) -> float:
        """−Σ(weight·ℓ)*(g_t) + inf over K of ⟨S, u⟩ + (λΣweight/2)‖u‖², S = Σ g_t x_t, less what rounding may do.

        It holds for any g_t between the weighted ends of `Loss.slope_range`; `u` only says how large the minimiser may
        be where K has no bound.
        """
        starred = self.weights * self.loss.conjugate(g / self.weights, self.y)
        return self.floor(-float(starred.sum()), float(np.abs(starred).sum()), g, S, u)

    def tangent(self, p: Any, g: Any, S: Any, u: Any) -> float:
        """The same bound from the tangents at p, for losses whose conjugate is not known: Σℓ − Σ g_t p_t + …."""
        total, products = float(_total(self.loss, p, self.y, self.weights)), g * p
        size = abs(total) + float(np.abs(products).sum())
        return self.floor(total - float(products.sum()), size, g, S, u)

    def floor(self, constant: float, size: float, g: Any, S: Any, u: Any) -> float:
        """constant + inf over K of ⟨S, u⟩ + (λΣweight/2)‖u‖², less a rounding allowance."""
        lowest, reach = self._lowest(g, S, u)
        size += float((np.abs(g) * self.norms).sum()) * reach + self.ridge * reach * reach
        return self._allowing((self.y.size + 10) * 4e-16 * size, constant + lowest)

    def _allowing(self, rounding: float, bound: float) -> float:
        """A lower bound less what rounding may have added to it."""
        self.allowance = rounding + self.rounding
        bound -= self.allowance
        if not math.isfinite(bound):
            bound = -math.inf
        return max(bound, 0.0) if self.loss.nonnegative else bound

    def sharpened(self, g: Any, u: Any) -> float:
        """The bound of `lower` on a bounded set, from sums without error but for each product's: for huge columns."""
        starred = self.weights * self.loss.conjugate(g / self.weights, self.y)
        columns = self.X.tocsc() if self.sparse else self.X
        S = np.array([math.fsum(_products(columns, j, g)) for j in range(self.d - self.intercept)])
        if self.intercept:
            S = np.concatenate([[math.fsum(g)], S])
        lowest, reach = self._lowest(g, S, u)
        size = 10.0 * math.fsum(np.abs(starred)) + float((np.abs(g) * self.norms).sum()) * reach
        size += (self.d + 10) * (norm(S) + self.ridge * reach) * reach
        return self._allowing(4e-16 * size, lowest - math.fsum(starred))

    def _lowest(self, g: Any, S: Any, u: Any) -> tuple[float, float]:
        """inf over K of ⟨S, u⟩ + (ridge/2)‖u‖² from below, and how far out points matter."""
        K = self.domain
        if self.ridge > 0.0:
            target = -S / self.ridge
            if not np.isfinite(target).all():
                return -math.inf, 0.0
            nearest, residual = K.project_with_residual(target)
            if residual == 0.0 and K.exact_projection:
                return float(S @ nearest + 0.5 * self.ridge * nearest @ nearest), norm(nearest)
            if len(K.parts) > 1 or residual > 0.0:  # perhaps not nearest, but (ridge/2)‖·‖² is above its tangent there
                highest = K.support_near(-S - self.ridge * nearest, nearest)
                reach = max(norm(nearest), self._reach(nearest))
                return -highest - 0.5 * self.ridge * float(nearest @ nearest), reach
            away = max(0.0, norm(nearest - target) - 1e-9)
            return 0.5 * self.ridge * (away * away - float(target @ target)), norm(target)
        low_high = K.sides(self.d)
        endless = True if low_high is None else np.isposinf(low_high[1]) | np.isneginf(low_high[0])
        if self.unbounded and self._underflown(g, S, endless):
            return -math.inf, 0.0
        if low_high is None:
            return -K.support_near(-S, u), self._reach(u)
        low, high = low_high
        loose, charge = self.loose(S), 0.0
        if loose.any():
            noise = self.noise(g)
            if (np.abs(S[loose]) > noise[loose]).any():
                return -math.inf, 0.0
            charge = 2.0 * float(noise[loose] @ (1.0 + np.abs(u[loose])))
        v = np.where(loose, 0.0, S)
        used = v != 0.0
        least = np.where(v > 0.0, low, high)[used]
        return float(v[used] @ least) - charge, norm(least)

    def _underflown(self, g: Any, S: Any, endless: Any) -> bool:
        """Whether an S_j of an endless coordinate may be 0 only because products g_t·x_tj underflowed.

        Along such a coordinate the sign of S_j decides whether there is a bound at all.
        """
        doubtful = np.flatnonzero(endless & ~self.unused & (np.abs(S) <= self.y.size * LOST))
        columns = doubtful[doubtful >= self.intercept] - self.intercept  # the intercept's 1 loses nothing
        if not columns.size:
            return False
        X = np.asarray(self.X[:, columns].toarray() if self.sparse else self.X[:, columns])
        with np.errstate(all="ignore"):
            return bool(((X != 0.0) & (g != 0.0)[:, None] & (np.abs(X * g[:, None]) < LEAST_PRODUCT)).any())

    def loose(self, S: Any) -> Any:
        """The coordinates along which ⟨S, u⟩ falls for ever, of a box without sides there."""
        low, high = self.domain.sides(self.d) or (np.zeros(self.d), np.zeros(self.d))
        return (np.isposinf(high) & (S < 0.0)) | (np.isneginf(low) & (S > 0.0))

    def _reach(self, u: Any) -> float:
        """The largest norm of a point that bounds are asked about: that of the set, or about that of u."""
        K = self.domain
        if (ball := K.as_ball(self.d)) is not None:
            return norm(ball[0]) + ball[1]
        if (total := K.l1_radius or K.simplex_total) is not None:
            return total
        size = norm(u)
        return size + (self.domain.diameter(self.d) if self.domain.bounded else 1.0 + size)


def _products(columns: Any, j: int, g: Any) -> Any:
    """x_tj·g_t for one column j."""
    if isinstance(columns, np.ndarray):
        return columns[:, j] * g
    part = slice(columns.indptr[j], columns.indptr[j + 1])
    return columns.data[part] * g[columns.indices[part]]


def read_stream(X: Any, y: Any, weights: Any, loss: Loss) -> tuple[Any, Any, Any]:
    """A matrix, labels and positive weights: examples are checked as a learner checks them, weight 0 is left out."""
    from scipy import sparse

    parts: list[tuple[Any, Any, Any]] = []
    before, width = 0, 0
    for block in blocks(X, y, weights):
        width = max(width, block.width)
        parts.append(_checked(block, loss, before))
        before += len(block)
    if not parts:
        raise DataError("there are no examples: the best point in hindsight needs at least one.")
    if any(not isinstance(part[0], np.ndarray) for part in parts):
        matrices: list[Any] = [sparse.csr_matrix(part[0]) for part in parts]
        for matrix in matrices:
            matrix.resize((matrix.shape[0], width))
        stored: Any = matrices[0] if len(matrices) == 1 else sparse.vstack(matrices, format="csr")
        if stored.shape[0] * width <= _DENSE or stored.nnz > 0.3 * stored.shape[0] * width:
            stored = stored.toarray()
    else:
        if len({part[0].shape[1] for part in parts}) > 1:
            raise DataError("the blocks of a dense stream must all have the same number of features.")
        stored = parts[0][0] if len(parts) == 1 else np.vstack([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts])
    column = np.concatenate([part[2] for part in parts])
    weighty = column > 0.0
    return (stored, labels, column) if weighty.all() else (stored[weighty], labels[weighty], column[weighty])


def _checked(block: Block, loss: Loss, before: int) -> tuple[Any, Any, Any]:
    """A block that was looked through: its matrix, labels and weights."""
    from scipy import sparse

    labels, column = block.labels(), block.column_of_weights()
    zeros, book = np.zeros(len(block)), open_ledger(block.width)
    end = keep_accounts(loss, book, block.rows(False), labels, column, zeros, 0)[0]
    if end < len(block) and block.sparse:
        block = block.in_order()
        end = keep_accounts(loss, book, block.rows(False), labels, column, zeros, end)[0]
    if end < len(block):
        raise BadExample(
            before + end,
            f"label {float(labels[end])!r}, weight and features must be finite, each feature once, the label "
            f"{loss.labels}, the weight ≥ 0.",
        )
    rows: Any = block.rows(False)
    if block.sparse:
        places = rows.indices.view(np.int32)
        matrix: Any = sparse.csr_matrix((rows.values, places, rows.indptr), shape=(len(block), block.width), copy=False)
    else:
        matrix = rows.values.reshape(len(block), block.width)
    return matrix, labels, column if column.size else np.ones(len(block))
