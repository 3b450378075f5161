"""Minimising a stored stream's loss over a domain, each solver with the gap it has certified (docs/theory.md, D5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.domains import Domain, Reals
from rue.errors import SettingsError
from rue.regret.hindsight.interior import Path, factored, has_barrier
from rue.regret.hindsight.program import Hindsight

__all__ = ["Best", "by_interior_points", "by_newton", "suits"]

STRICT, LOOSE = 1e-12, 1e-9
"""How far, relative to its size, a point may be outside of a set whose projection is not exact: the second is used, and
mentioned, where no point is found within the first."""
_WIDEST = 2000
"""Columns up to which d×d matrices are made and factored."""
_SHARPENED = 20_000_000
"""Numbers up to which sums are made again without error, which takes some 50 ns each."""


class Best:
    """The best point and the best lower bound so far: solvers offer candidates, and ask whether the gap is small."""

    def __init__(self, problem: Hindsight, tolerance: float) -> None:
        self.problem, self.tolerance = problem, tolerance
        self.centre: Any = None
        self.point = self._first()
        self.value = problem.value(self.point)
        self.at_least = 0.0 if problem.loss.nonnegative else -math.inf
        self.first, self.allowed = abs(self.value), 0.0
        self.dual: tuple[Any, Any] | None = None
        if problem.known and not problem.loss.linear:  # slopes of 0: each row's own least loss
            none = np.zeros(problem.y.size)
            self.offer_dual(none, np.zeros(problem.d), self.point)

    def offer(self, u: Any, value: float | None = None) -> None:
        """Keep a point of the domain if it is better; one that a projection left outside is brought in first."""
        value = self.problem.value(u) if value is None else value
        if value < self.value and self.problem.domain.exact_projection:
            self.point, self.value = u.copy(), value
        elif value < self.value:
            inside = self._inside(u)
            value = self.problem.value(inside)
            if value < self.value:
                self.point, self.value = inside.copy(), value

    def _first(self) -> Any:
        """Where the search begins: a point of the domain, or a sentence."""
        K = self.problem.domain
        start, self.within = K.start(self.problem.d), STRICT
        if K.exact_projection:
            return start
        for self.within in (STRICT, LOOSE):
            point = K.nearby(start, None, self.within)
            if point is not None:
                return point
        raise SettingsError(
            f"{K!r}: no point was found within {LOOSE:g} of every one of these sets: they do not meet, or only just; "
            "make one of them larger."
        )

    def _inside(self, u: Any) -> Any:
        """A point of the domain near u: no worse than `within` outside of any of the sets it is made of."""
        K = self.problem.domain
        point = K.nearby(u, None, self.within)
        if point is None:
            if self.centre is None:
                self.centre = self._middle()
            point = K.nearby(u, self.centre, self.within)
        return self.point if point is None else point

    def _middle(self) -> Any:
        """The mean of points of the domain in all directions: inside it, if it has an inside."""
        K, d, size = self.problem.domain, self.problem.d, 1.0 + float(np.linalg.norm(self.point))
        rng = np.random.default_rng(0)
        directions = np.vstack([np.eye(d), -np.eye(d)]) if d <= 8 else rng.normal(size=(16, d)) / math.sqrt(d)
        points = [K.nearby(self.point + size * direction, None, self.within) for direction in directions]
        return np.mean([self.point, *(u for u in points if u is not None)], axis=0)

    def offer_bound(self, bound: float) -> None:
        """A lower bound on every point's loss that a solver has proved."""
        self.at_least = max(self.at_least, bound)

    def offer_dual(self, g: Any, S: Any, u: Any) -> None:
        """Keep slopes, S = Σ g_t x_t, whose bound is better."""
        bound = self.problem.lower(g, S, u)
        if bound > self.at_least:
            self.at_least, self.allowed, self.dual = bound, self.problem.allowance, (g, u)

    def sharpen(self) -> None:
        """Bound by the best slopes once more, with hardly any allowance for rounding."""
        problem = self.problem
        if not self.done and self.dual is not None and not problem.unbounded and problem.X.size <= _SHARPENED:
            self.offer_bound(problem.sharpened(*self.dual))

    @property
    def gap(self) -> float:
        """How far the best point may be from the least loss."""
        return self.value - self.at_least

    @property
    def enough(self) -> float:
        """The gap to reach: the tolerance times the loss, or a millionth of the loss that the search began with."""
        size = abs(self.value) if math.isinf(self.at_least) else min(abs(self.value), abs(self.at_least))
        return max(self.tolerance * max(size, 1e-6 * self.first), self.problem.rounding)

    @property
    def done(self) -> bool:
        """Whether the gap is as small as was asked for."""
        return self.gap <= self.enough

    @property
    def over(self) -> bool:
        """Whether there is nothing left to search for: what is missing is an allowance for rounding."""
        return self.gap - self.allowed <= self.enough


def suits(problem: Hindsight) -> bool:
    """Whether d×d systems can be made for this domain, this loss and this many columns."""
    width = 2 * problem.d + 1 if problem.domain.l1_radius is not None else problem.d
    derivable = problem.terms is not None or problem.loss.declares("second_derivative")
    return problem.known and derivable and has_barrier(problem.domain, problem.d) and width <= _WIDEST


def by_interior_points(problem: Hindsight, best: Best, start: Any = None, rounds: int = 100) -> None:
    """Losses made of lines and parabolas: the slopes that belong to each iterate are a dual point."""
    path, stalled = Path(problem, problem.domain, start), 0
    for _ in range(rounds):
        before, u = best.gap, path.point
        if not path.linearise():
            return
        best.offer(u, problem.value(u, path.p))
        g, S = path.slopes(), path.S
        best.offer_dual(g, S, u)
        if problem.unbounded:
            _correct(problem, best, g, path.flux.sum(axis=0), path.H, u)
        stalled = 0 if best.gap < 0.9 * before or math.isinf(best.gap) else stalled + 1
        if best.over or stalled > 15 or not path.advance():
            return


def _correct(problem: Hindsight, best: Best, g: Any, D: Any, H: Any, u: Any) -> None:
    """Offer the bound of slopes g; where K has no side, of slopes moved a little so that ⟨S, u⟩ does not fall there.

    Slopes near an end of their range move little (D is small there); if that does not do, they are put on it.
    """
    low, high = (end * problem.weights for end in problem.loss.slope_range(problem.y))
    g = np.clip(g, low, high)
    size = problem.weights * float(np.max(np.abs(g) / problem.weights))
    for near in (0.0, 1e-8, 1e-5) if problem.unbounded else (0.0,):
        held = (g - low <= near * size) | (high - g <= near * size)
        moved = np.where(g - low <= near * size, low, np.where(high - g <= near * size, high, g))
        free, N = (D, H) if near == 0.0 else (np.where(held, 0.0, D), None)
        for _ in range(4):
            S = problem.pull(moved)
            best.offer_dual(moved, S, u)
            loose = problem.loose(S)
            if best.over or not problem.unbounded or not loose.any():
                break
            N = problem.hessian(free) if N is None else N
            solve = factored(N[np.ix_(loose, loose)])
            if solve is None:
                break
            du = np.zeros(problem.d)
            du[loose] = solve(-S[loose])[0]
            moved = np.clip(moved + free * problem.predict(du), low, high)
        if best.over:
            return


class _Model:
    """The quadratic model of a smooth objective around a point: an objective without rows."""

    terms = None

    def __init__(self, problem: Hindsight, centre: Any, slope: Any, H: Any) -> None:
        self.d, self.centre, self.slope, self.H = problem.d, centre, slope, H
        self.unused, self.units = problem.unused, problem.units

    def predict(self, u: Any) -> Any:
        return None

    def pull(self, g: Any) -> Any:
        return None

    def slope_at(self, S: Any, u: Any) -> Any:
        return self.slope + self.H @ (u - self.centre)

    def hessian(self, D: Any) -> Any:
        return self.H


def by_newton(problem: Hindsight, best: Best, start: Any = None, rounds: int = 60) -> None:
    """Smooth losses: the quadratic model is minimised over the domain, then a step is made along the line to there."""
    u = best.point if start is None else start
    p, stalled = problem.predict(u), 0
    value = problem.value(u, p)
    for _ in range(rounds):
        before, g = best.gap, problem.slopes(p)
        S, D = problem.pull(g), problem.curvatures(p)
        best.offer(u, value)
        best.offer_dual(g, S, u)
        if best.over:
            return
        slope = S + problem.ridge * u
        H = problem.hessian(D)
        target = _minimise(_Model(problem, u, slope, H), problem.domain, 0.03 * best.enough)
        du = target - u
        dp = problem.predict(du)
        g = g + D * dp  # the model's slopes at its minimum: S is a normal of K there
        _correct(problem, best, g, D, H, target)
        stalled = 0 if best.gap < 0.9 * before or math.isinf(best.gap) else stalled + 1
        if best.over or stalled > 8:
            return
        length, expected = 1.0, float(slope @ du)
        while length > 1e-9:
            moved = problem.value(u + length * du, p + length * dp)
            if moved <= value + 1e-4 * length * expected:
                break
            length *= 0.5
        else:
            return
        u = u + length * du
        p = problem.predict(u)
        value = moved


def _minimise(model: _Model, domain: Domain, accuracy: float) -> Any:
    """The minimiser of a quadratic over the domain."""
    free = Path(model, Reals())
    for _ in range(2):  # the second step corrects what rounding left of the first
        if not (free.linearise() and free.advance()):
            break
    if np.isfinite(free.point).all() and domain.contains(free.point, 0.0):
        return free.point
    path = Path(model, domain)
    for _ in range(60):
        if not path.linearise():
            break
        mean, many = path.products()
        if mean * many + float(np.abs(path.gradient) @ np.abs(path.u)) <= accuracy or not path.advance():
            break
    return path.point
