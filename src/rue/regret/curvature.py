"""Curvature (D4): square loss is exactly quadratic, so Σ x xᵀ gives the exact regret in one pass."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue._jit import values
from rue.domains import Ball, Domain, Reals
from rue.errors import SettingsError

__all__ = ["WIDEST", "Curvature", "open_curvature"]

WIDEST = 4096
"""The most coordinates for which Σ x xᵀ is kept: 128 MiB."""

ROUNDING = 1e-12
_0 = np.uint64(0)


@values
class Curvature(NamedTuple):
    """Q = Σ weight·x xᵀ (its lower triangle), b = Σ weight·y x and Σ weight·y²: all that square loss depends on."""

    gram: Any
    moment: Any
    square: Any

    def room(self, size: Any) -> Any:
        return size <= self.moment.size

    def learn(self, loss: Any, row: Any, y: Any, weight: Any) -> None:
        """Enter one example."""
        self.square[0] += weight * y * y
        row.add(weight * y, self.moment)
        if row.shift > _0:
            self.gram[_0, _0] += weight
        for k in range(row.lo, row.hi):
            j, a = row.place(k), weight * row.at(k)
            if row.shift > _0:
                self.gram[j, _0] += a
            for m in range(row.lo, k + np.uint64(1)):
                self.gram[j, row.place(m)] += a * row.at(m)

    def grown(self, size: int) -> Curvature:
        """Room for at least `size` coordinates."""
        before = self.moment.size
        if size <= before:
            return self
        if size > WIDEST:
            raise SettingsError(
                f"curvature: {size:,} coordinates need {size * size * 8 / 2**30:.1f} GiB; it is kept up to {WIDEST:,}: "
                "leave curvature=True out, D1 needs no more than a vector."
            )
        gram, moment = np.zeros((size, size)), np.zeros(size)
        gram[:before, :before], moment[:before] = self.gram, self.moment
        return Curvature(gram, moment, self.square)

    def merged(self, other: Curvature) -> Curvature:
        """Two parts of a stream together."""
        size = max(self.moment.size, other.moment.size)
        mine, theirs = self.grown(size), other.grown(size)
        return Curvature(mine.gram + theirs.gram, mine.moment + theirs.moment, mine.square + theirs.square)

    def at_least(self, domain: Domain, scales: Any) -> float:
        """A lower bound on min over K of Σ weight·(⟨u, x⟩ − y)², exact up to rounding; K in units of `scales`."""
        Q = np.tril(self.gram) + np.tril(self.gram, -1).T
        Q, b, total = Q / np.outer(scales, scales), self.moment / scales, float(self.square[0])
        if not (np.isfinite(Q).all() and np.isfinite(b).all() and math.isfinite(total)):
            return 0.0
        eigen, V = np.linalg.eigh(Q)
        eigen, along = np.maximum(0.0, eigen), V.T @ b
        slack = ROUNDING * (total + 1.0) * (1 + Q.shape[0])
        if isinstance(domain, Ball):
            least = _on_ball(
                eigen, along, total, V.T @ (domain.centre if domain.centre.size else np.zeros(b.size)), domain.radius
            )
        elif isinstance(domain, Reals):
            least = _on_reals(eigen, along, total)
        else:
            least = _on_any(Q, b, total, domain, float(eigen[-1]))
        return float(max(0.0, least - slack))


def open_curvature() -> Curvature:
    """With nothing in it yet."""
    return Curvature(np.zeros((1, 1)), np.zeros(1), np.zeros(1))


def _on_reals(eigen: Any, along: Any, total: float) -> float:
    """min of uᵀQu − 2bᵀu + c, in the eigenvectors' coordinates; b has no part where Q has none, but for rounding."""
    solid = eigen > 1e-13 * max(float(eigen[-1]), 1e-300)
    return total - float(np.sum(along[solid] ** 2 / eigen[solid]))


def _on_ball(eigen: Any, along: Any, total: float, centre: Any, radius: float) -> float:
    """The same on a ball: the Lagrangian's value at any μ ≥ 0 is a lower bound, at the right μ the minimum."""
    total = total + float(np.sum(eigen * centre**2) - 2.0 * np.sum(along * centre))
    along = along - eigen * centre  # in v = u − centre: vᵀQv − 2(b − Qc)ᵀv + …

    def norm(mu: float) -> float:
        return float(np.linalg.norm(along / (eigen + mu)))

    top = float(np.linalg.norm(along)) / max(radius, 1e-300)  # there ‖v‖ ≤ radius
    if top == 0.0 or radius == 0.0:
        return total
    low, high = top * 1e-18, top
    if norm(low) > radius:
        for _ in range(200):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if norm(middle) > radius else (low, middle)
    else:
        high = low
    return total - float(np.sum(along**2 / (eigen + high))) - high * radius * radius


def _on_any(Q: Any, b: Any, total: float, domain: Domain, steepest: float) -> float:
    """The same on any set: accelerated projected descent, and the tangent's lower bound at the best point met."""
    step = 1.0 / (2.0 * steepest) if steepest > 0.0 else 0.0
    u = domain.start(b.size)
    ahead, momentum, best = u, 1.0, -math.inf
    for i in range(5_000):
        new = domain.project(ahead - step * 2.0 * (Q @ ahead - b))
        after = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        if (new - u) @ (ahead - new) > 0.0:  # it overshot: start again from here
            after, ahead = 1.0, new
        else:
            ahead = new + (momentum - 1.0) / after * (new - u)
        u, momentum = new, after
        if i % 10 == 0:
            slope = 2.0 * (Q @ u - b)
            value = float(u @ Q @ u - 2.0 * b @ u) + total
            best = max(best, value - float(slope @ u) - domain.support(-slope))
            if value - best <= 1e-9 * abs(value) + 1e-12:
                break
    return best
