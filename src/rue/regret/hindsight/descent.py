"""First-order methods, for what the d×d systems cannot take: very many columns, other domains, users' own losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.domains import Domain
from rue.regret.hindsight.program import Hindsight
from rue.regret.hindsight.solvers import Best

__all__ = ["by_accelerated_gradients", "by_subgradients"]

_OFTEN = 10


class _Smoothed:
    """The objective with its kinks rounded off (Moreau); `level` 0 leaves it as it is.

    The slope of a smoothed loss at p is a subgradient of the loss near p, hence a dual point.
    """

    def __init__(self, problem: Hindsight, level: float) -> None:
        self.problem, self.level = problem, level

    def at(self, u: Any) -> tuple[float, Any, Any]:
        """The value, the predictions and the slopes."""
        problem, terms = self.problem, self.problem.terms
        p = problem.predict(u)
        if terms is None:
            return problem.value(u, p), p, problem.slopes(p)
        extra = self.level / problem.weights
        each = terms.slopes(p, extra)
        parts = each * (terms.orientation * p - terms.kink) - 0.5 * (terms.gamma + extra) * each * each
        return float(parts.sum()) + 0.5 * problem.ridge * float(u @ u), p, terms.orientation * each.sum(axis=0)


def by_accelerated_gradients(problem: Hindsight, best: Best, start: Any, rounds: int) -> None:
    """Projected gradients with momentum and restarts, the kinks smoothed ever less.

    Nesterov 1983; restarts as in O'Donoghue and Candès 2015.
    """
    K, terms = problem.domain, problem.terms
    u = start
    level = 0.0
    if terms is not None and not np.all(terms.gamma > 0.0):
        level = float(np.mean(np.abs(terms.orientation * problem.predict(u) - terms.kink))) or 1.0
    F = _Smoothed(problem, level)
    z, momentum, L, since, reached = u, 1.0, 0.0, 0, best.gap
    for k in range(rounds):
        value, p, g = F.at(z)
        if not math.isfinite(value):
            z, momentum = u, 1.0
            continue
        S = problem.pull(g)
        slope = S + problem.ridge * z
        if k % _OFTEN == 0:
            if problem.known:
                best.offer_dual(g, S, z)
            else:
                best.offer_bound(problem.tangent(p, g, S, z))
            best.offer(u)
            if best.over:
                return
            since = 0 if best.gap < 0.8 * reached or math.isinf(best.gap) else since + 1
            if since == 0:
                reached = best.gap
            # Three looks without progress: what is left of the gap is the smoothing's.
            if level > 0.0 and since > 2:
                level, since, momentum, z = 0.3 * level, 0, 1.0, u
                F = _Smoothed(problem, level)
                continue
        L = L or _first_curvature(F, z, slope)
        if not K.exact_projection:  # Dykstra's algorithm is slow from far away
            L = max(L, float(np.linalg.norm(slope)) / _reach(K, z))
        while True:
            target = z - slope / L
            if not np.isfinite(target).all():
                best.offer(u)
                return
            moved = K.project(target)
            step = moved - z
            after = F.at(moved)[0]
            # Steps are right if the parabola lies above the function (Beck and Teboulle 2009); 1e-13 is for rounding
            # near the end.
            if after <= value + float(slope @ step) + 0.5 * L * float(step @ step) + 1e-13 * abs(value):
                break
            L *= 2.0
            if L > 1e300:  # no step is short enough: the numbers have come to their end
                best.offer(u)
                return
        if float((z - moved) @ (moved - u)) > 0.0:
            momentum = 1.0  # the momentum points uphill
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        z = moved + (momentum - 1.0) / following * (moved - u)
        # A little smaller, so that L can come down again where the function is flatter.
        u, momentum, L = moved, following, 0.95 * L
    best.offer(u)


def _reach(K: Domain, z: Any) -> float:
    """How far a step may go from z before it is projected."""
    return K.diameter(z.size) if K.bounded else 10.0 * (1.0 + float(np.linalg.norm(z)))


def _first_curvature(F: _Smoothed, z: Any, slope: Any) -> float:
    """The curvature along the gradient, from two slopes."""
    size = float(np.linalg.norm(slope))
    if size == 0.0:
        return 1.0
    small = 1e-6 * (1.0 + float(np.linalg.norm(z))) / size
    near = z - small * slope
    _, _, g = F.at(near)
    change = F.problem.pull(g) + F.problem.ridge * near - slope
    return max(float(np.linalg.norm(change)) / (small * size), 1e-12)


def by_subgradients(problem: Hindsight, best: Best, start: Any, rounds: int) -> None:
    """Projected subgradients with steps by A8; the mean of the tangents bounds from below (as D3's mixtures do)."""
    K, u = problem.domain, start
    reach = K.diameter(problem.d) if K.bounded else 2.0 * (1.0 + float(np.linalg.norm(start)))
    squares, mean_u = 0.0, np.zeros(problem.d)
    constant, size, mean_g, mean_S = 0.0, 0.0, np.zeros(problem.y.size), np.zeros(problem.d)
    for k in range(1, rounds + 1):
        p = problem.predict(u)
        value, g = problem.value(u, p), problem.slopes(p)
        S = problem.pull(g)
        plain = value - 0.5 * problem.ridge * float(u @ u)
        constant += (plain - float(g @ p) - constant) / k
        size += (abs(plain) + float(np.abs(g * p).sum()) - size) / k
        mean_g += (np.abs(g) - mean_g) / k
        mean_S += (S - mean_S) / k
        mean_u += (u - mean_u) / k
        best.offer(u, value)
        if k % _OFTEN == 0:
            best.offer(K.project(mean_u))
            best.offer_bound(problem.tangent(p, g, S, u))
            best.offer_bound(problem.floor(constant, size, mean_g, mean_S, u))
            if best.done:
                return
        slope = S + problem.ridge * u
        squares += float(slope @ slope)
        target = u - reach / math.sqrt(2.0 * squares) * slope if squares > 0.0 else u
        if squares == 0.0 or not np.isfinite(target).all():
            return
        u = K.project(target)
