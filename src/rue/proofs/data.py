"""Data made for the theorems: streams that are easy, hostile or repeated, and ten-line references to compare with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rue.games import LinearRound, Opponent, Setting

__all__ = ["Given", "classes", "descent", "hinge", "in_ball", "linear_regret", "population", "streams"]


def classes(rng: np.random.Generator, T: int, d: int = 4, noise: float = 0.1) -> tuple[Any, Any]:
    """Rows of norm ≤ 1, and labels that a hyperplane gives, wrong with probability `noise`."""
    X = rng.normal(size=(T, d))
    X *= rng.random((T, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ rng.normal(size=d) > 0.0, 1.0, -1.0)
    return X, np.where(rng.random(T) < noise, -y, y)


def streams(rng: np.random.Generator, T: int, d: int = 4) -> list[tuple[Any, Any]]:
    """Streams of two classes: noisy, of no pattern at all, turning round halfway, sorted by class, and repetitive."""
    X, y = classes(rng, T, d)
    turned = np.where(np.arange(T) < T // 2, y, -y)
    order = np.argsort(y, kind="stable")
    few = rng.integers(0, 3, size=T)
    return [
        (X, y),
        (X, np.where(rng.random(T) < 0.5, 1.0, -1.0)),
        (X, turned),
        (X[order], y[order]),
        (X[few], np.where(rng.random(T) < 0.3, -y[few], y[few])),
    ]


def population(rng: np.random.Generator, N: int = 40, d: int = 3) -> tuple[Any, Any]:
    """A few examples with rows of norm 1: drawn from them, i.i.d. streams have a risk that is known exactly."""
    X, y = classes(rng, N, d, 0.15)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def hinge(X: Any, y: Any, u: Any) -> Any:
    """[1 − y⟨u, x⟩]₊ for every row."""
    return np.maximum(0.0, 1.0 - y * (X @ u))


def in_ball(rng: np.random.Generator, d: int, U: float, n: int) -> Any:
    """n points of the ball of radius U, some of them on its surface."""
    u = rng.normal(size=(n, d))
    u *= U / np.linalg.norm(u, axis=1, keepdims=True)
    return u * np.minimum(1.0, 2.0 * rng.random((n, 1)))


def linear_regret(losses: Any, G: Any, support: Callable[[Any], float]) -> float:
    """Σ⟨g_t, w_t⟩ + h_K(−Σg_t)."""
    return float(np.sum(losses)) + support(-np.sum(G, axis=0))


def descent(
    X: Any, y: Any, slope: Callable[[float, float], float], eta: Callable[[int], float], U: float = math.inf
) -> tuple[Any, Any]:
    """Gradient descent written out: the predictions before each update, and the points played."""
    w, predictions, points = np.zeros(X.shape[1]), [], []
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        p = float(x @ w)
        predictions.append(p)
        points.append(w)
        w = w - eta(t) * slope(p, label) * x
        norm = float(np.linalg.norm(w))
        w = w * (U / norm) if norm > U else w
    return np.array(predictions), np.array(points)


class Given(Opponent):
    """Reveals linear losses that were fixed beforehand."""

    def __init__(self, G: Any) -> None:
        self.G = np.atleast_2d(np.asarray(G, dtype=np.float64))
        self.d = self.G.shape[1]

    def begin(self, setting: Setting) -> Callable[[Any], LinearRound]:
        return lambda move: LinearRound(self.G[move.t - 1])
