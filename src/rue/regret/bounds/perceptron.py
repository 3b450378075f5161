"""The Perceptron's mistake bounds B1 and B2 (docs/theory.md, section 4), with the comparator u that makes them small.

Rows are scaled to y_t x_t / X, so that with v = X·u a margin is ⟨z_t, v⟩ and a = ‖v‖.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.losses import PerceptronLoss
from rue.norms import norms_of_rows
from rue.regret.bounds.statement import Assumption, Bound
from rue.streams import Block, Labels, blocks, floats

__all__ = ["mistake_bound", "perceptron_bound", "separable_bound", "separation_bound", "stacked"]

WIDTHS = (1.0, 0.1, 0.01, 1e-3, 1e-4)
"""Over which the hinge is rounded off, one after the other; any u is valid, so the last need not be 0."""
EXACT = 5_000_000
"""Up to this many numbers the largest margin is found exactly, by non-negative least squares."""
ROUNDED = 1e-9
"""Values that differ by less, relatively, count as equal: which is smaller is then a matter of rounding."""


def perceptron_bound(X: Any, y: Any, *, intercept: bool = True, mistakes: int | None = None) -> Bound:
    """B1, the smallest over u that was found: the Perceptron makes at most so many mistakes on this stream.

    M_T ≤ H + a²/2 + a√(H + a²/4) with H = Σ [1 − y_t⟨u, x_t⟩]₊ and a = ‖u‖·max‖x_t‖. `comparator` is the u, in the
    coordinates of a learner (the intercept first); any u gives a valid bound. `mistakes` is compared with it.

    X and `y` are the stream, with labels −1 and +1.

    >>> perceptron_bound(np.eye(3), [1, -1, 1], intercept=False).value
    3.0

    docs/theory.md, B1.
    """
    return mistake_bound(*_read(X, y, intercept), mistakes)


def separable_bound(X: Any, y: Any, *, intercept: bool = True, mistakes: int | None = None) -> Bound:
    """B2, for the u of smallest norm whose margins are all ≥ 1; `met` is False when none was found.

    M_T ≤ (‖u‖·max‖x_t‖)², the square of the data's size over its margin.

    X and `y` are the stream, with labels −1 and +1; `mistakes`, if given, are compared with the bound.

    >>> print(separable_bound([[3.0], [-2.0]], [1, -1], intercept=False))
    B2, data: M_T ≤ (‖u‖X)² = 2 with ‖u‖ = 0.5, X = 3

    docs/theory.md, B2.
    """
    return separation_bound(*_read(X, y, intercept), mistakes)


def mistake_bound(features: Any, y: Any, mistakes: int | None = None, *assumptions: Assumption) -> Bound:
    """B1 for the rows as a learner sees them, one a round, and labels ±1."""
    Z, X = _scaled(features, y)
    v = _smallest(Z, len(y))
    H, a = _hinges(Z, v), float(np.linalg.norm(v))
    sharp = _sharp(H, a)
    return Bound(
        "B1",
        "data",
        _floor(sharp),
        "M_T ≤ ⌊H + a²/2 + a√(H + a²/4)⌋",
        assumptions,
        {"H": H, "a": a, "‖u‖": a / X, "X": X, "sharp": sharp, "notes": H + a * a + a * math.sqrt(H)},
        mistakes,
        comparator=v / X,
    )


def separation_bound(
    features: Any, y: Any, mistakes: int | None = None, *assumptions: Assumption, guess: Any = None
) -> Bound:
    """B2 for the rows as a learner sees them, one a round, and labels ±1; `guess` is a u that may separate them."""
    Z, X = _scaled(features, y)
    v = _widest(Z, guess)
    margin = float((Z @ v).min()) if len(y) and v.any() else 0.0
    separable = margin > 0.0 or not len(y)
    norm = float(np.linalg.norm(v)) / margin if margin > 0.0 else 0.0
    met = Assumption("separable", "some u with all margins ≥ 1", "one" if separable else "none found", separable)
    return Bound(
        "B2",
        "data",
        _floor(norm**2) if separable else math.inf,
        "M_T ≤ (‖u‖X)²",
        (met, *assumptions),
        {"‖u‖": norm / X, "X": X} if separable else {},
        mistakes,
        comparator=v / (margin * X) if margin > 0.0 else None,
    )


def stacked(parts: list[tuple[Block, Any]], intercept: bool, width: int) -> Any:
    """Chosen rows of blocks (a mask for each) as one matrix of `width` coordinates, the intercept's first."""
    from scipy import sparse

    shift, matrices = int(intercept), []
    for block, chosen in parts:
        if block.sparse:
            part = slice(int(block.X.indptr[0]), int(block.X.indptr[-1]))
            of_row = np.repeat(np.arange(len(block)), np.diff(block.X.indptr))
            at = np.asarray(block.X.indices)[part].astype(np.int64) + shift
            numbers = floats(np.asarray(block.X.data)[part], "features")
            if intercept:
                of_row, at = np.concatenate([of_row, np.arange(len(block))]), np.concatenate([at, np.zeros(len(block))])
                numbers = np.concatenate([numbers, np.ones(len(block))])
            matrix: Any = sparse.csr_array((numbers, (of_row, at)), shape=(len(block), width))
        else:
            matrix = np.hstack([np.ones((len(block), shift)), floats(block.X, "features")])
        matrices.append(matrix[np.flatnonzero(chosen)])
    if all(isinstance(matrix, np.ndarray) for matrix in matrices):
        return np.concatenate(matrices) if matrices else np.empty((0, width))
    return sparse.csr_array(sparse.vstack([sparse.csr_array(matrix) for matrix in matrices]))


def _read(X: Any, y: Any, intercept: bool) -> tuple[Any, Any]:
    """The rows as a learner sees them, and labels ±1."""
    parts = [(block, np.ones(len(block), dtype=bool)) for block in blocks(X, y)]
    width = max((block.width for block, _ in parts), default=0) + int(intercept)
    signs = Labels.under(PerceptronLoss(), y).encode(y) if len(y) else np.empty(0)
    features = stacked(parts, intercept, width)
    if np.isnan(signs).any() or not np.isfinite(features.data if parts and parts[0][0].sparse else features).all():
        raise DataError("the Perceptron's bound needs labels of two classes and finite features.")
    return features, signs


def _scaled(features: Any, y: Any) -> tuple[Any, float]:
    """The rows y_t x_t / X, and X = max ‖x_t‖ (1 if all are 0)."""
    from scipy import sparse

    X = float(norms_of_rows(features, False).max(initial=0.0)) or 1.0
    if isinstance(features, np.ndarray):
        return features * (y / X)[:, None], X
    return sparse.csr_array(sparse.diags_array(y / X) @ features), X


def _hinges(Z: Any, v: Any) -> float:
    """H(u), the sum of the hinge losses."""
    return float(np.maximum(0.0, 1.0 - Z @ v).sum())


def _sharp(H: float, a: float) -> float:
    """B1's sharp form."""
    return H + a * a / 2.0 + a * math.sqrt(H + a * a / 4.0)


def _floor(value: float) -> float:
    """⌊value⌋, where a value just below a whole number counts as that number: it was rounded."""
    return float(math.floor(value + ROUNDED * (1.0 + value)))


def _smallest(Z: Any, rounds: int) -> Any:
    """The v that makes B1's sharp form small: v ← argmin H(v) + s‖v‖ and s ← √(smallest value so far), in turn.

    It stays 0 where nothing is better: on a basis every multiple of one v gives the same value, T.
    """
    best, lowest = np.zeros(Z.shape[1]), float(rounds)  # u = 0 gives T
    if not rounds or not Z.shape[1]:
        return best
    v = np.asarray(Z.sum(axis=0)).ravel()
    v = v / (np.linalg.norm(v) or 1.0)
    widths = iter(WIDTHS)
    width, before = next(widths), math.inf
    while True:
        v = _descend(Z, v, math.sqrt(lowest), width)
        stretched = _stretched(Z, v)
        value = _sharp(_hinges(Z, stretched), float(np.linalg.norm(stretched)))
        if value < lowest * (1.0 - ROUNDED):
            best, lowest = stretched, value
        if before - lowest <= 1e-3 * width * lowest:  # s has settled as far as this width can tell
            following = next(widths, None)
            if following is None:
                return best
            width = following
        before = lowest


def _descend(Z: Any, v: Any, s: float, width: float) -> Any:
    """Minimise H(v) + s‖v‖ with the hinge rounded off over `width` below its kink."""
    from scipy.optimize import minimize

    def value_and_gradient(v: Any) -> tuple[float, Any]:
        short = 1.0 - Z @ v
        slopes = np.clip(short / width, 0.0, 1.0)
        size = math.sqrt(float(v @ v) + 1e-12)
        total = float((slopes * (short - 0.5 * width * slopes)).sum())
        return total + s * size, s / size * v - Z.T @ slopes

    return minimize(value_and_gradient, v, jac=True, method="L-BFGS-B", options={"maxiter": 300, "maxcor": 20}).x


def _stretched(Z: Any, v: Any) -> Any:
    """The multiple of v that makes the sharp form smallest."""
    from scipy.optimize import minimize_scalar

    margins, size = Z @ v, float(np.linalg.norm(v))

    def value(factor: float) -> float:
        return _sharp(float(np.maximum(0.0, 1.0 - factor * margins).sum()), factor * size)

    best = minimize_scalar(value, bounds=(0.0, 4.0), method="bounded", options={"xatol": 1e-9})
    return v if value(1.0) <= best.fun else float(best.x) * v


def _widest(Z: Any, guess: Any) -> Any:
    """A v that separates the rows as widely as was found; its smallest margin is ≤ 0 where none does."""
    T, d = Z.shape
    if T * (d + 1) > EXACT or not T:
        return _smallest(Z, T) if guess is None else guess
    from scipy.optimize import nnls

    # Least distance programming (Lawson and Hanson 1974, chapter 23): min ‖v‖ with Zv ≥ 1.
    E = np.vstack([(Z if isinstance(Z, np.ndarray) else Z.toarray()).T, np.ones(T)])
    target = np.append(np.zeros(d), 1.0)
    try:
        alpha, _ = nnls(E, target, maxiter=50 * (d + 1))
    except RuntimeError:  # too many iterations
        return _smallest(Z, T) if guess is None else guess
    rest = E @ alpha - target
    return rest[:d] / -rest[d] if rest[d] != 0.0 else np.zeros(d)
