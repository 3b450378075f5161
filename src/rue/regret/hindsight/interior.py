"""A primal-dual interior-point method on d×d systems, a few dozen of them, whatever the kinks and the sides of a set.

Rows made of terms (hinge, absolute, …) carry slacks and multipliers of their own, eliminated row by row; a box, a ball
and a total are barriers on the point. Every iterate is strictly inside the set. (Predictor and corrector as in
Mehrotra 1992, with the ball's curvature among the second-order terms.) Smooth losses come here as their quadratic
models, which have no rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from rue.domains import Domain
from rue.regret.hindsight.conjugates import Terms

__all__ = ["Objective", "Path", "factored", "has_barrier"]


class Objective(Protocol):
    """What is minimised: terms in p = Xu, or none, and a quadratic in u."""

    @property
    def d(self) -> int: ...
    @property
    def terms(self) -> Terms | None: ...
    @property
    def unused(self) -> Any:
        """The coordinates that nothing depends on."""
        ...

    @property
    def units(self) -> Any:
        """About how large each coordinate may turn out."""
        ...

    def predict(self, u: Any) -> Any: ...
    def pull(self, g: Any) -> Any: ...
    def slope_at(self, S: Any, u: Any) -> Any:
        """The gradient at u, S being Σ g_t x_t."""
        ...

    def hessian(self, D: Any) -> Any: ...


class _Split:
    """The ℓ1 ball's points as u = a − b with (a, b, slack) in a simplex."""

    def __init__(self, d: int, total: float) -> None:
        self.inner, self.d, self.total = d, 2 * d + 1, total

    def join(self, u: Any) -> Any:
        """u of the program that is split: u⁺ − u⁻."""
        return u[: self.inner] - u[self.inner : -1]

    def part(self, u: Any) -> Any:
        """The other way, for a point inside the ball."""
        sides = np.concatenate([np.maximum(u, 0.0), np.maximum(-u, 0.0)])
        return np.append(sides, max(0.0, self.total - float(sides.sum())))

    def spread(self, v: Any) -> Any:
        """A slope in u as one in (u⁺, u⁻, slack)."""
        return np.concatenate([v, -v, [0.0]])

    def widen(self, H: Any) -> Any:
        """A Hessian in u as one in (u⁺, u⁻, slack)."""
        N = np.zeros((self.d, self.d))
        N[:-1, :-1] = np.block([[H, -H], [-H, H]])
        return N


class _Whole:
    """Points as they are."""

    def __init__(self, d: int) -> None:
        self.d = d

    def join(self, u: Any) -> Any:
        return u

    def part(self, u: Any) -> Any:
        return u

    def spread(self, v: Any) -> Any:
        return v

    def widen(self, H: Any) -> Any:
        return H.copy()


def has_barrier(domain: Domain, d: int) -> bool:
    """Whether a set is a box, a ball, a simplex or an ℓ1 ball, for which `Path` has barriers."""
    known = domain.sides(d), domain.as_ball(d), domain.simplex_total, domain.l1_radius
    return any(shape is not None for shape in known)


class Path:
    """One run towards the minimum: the point u with its slacks and multipliers, and the system linearised there."""

    def __init__(self, objective: Objective, domain: Domain, start: Any = None) -> None:
        self.objective, self.terms, d = objective, objective.terms, objective.d
        self.view: Any = _Whole(d)
        self.total: float | None = None
        if domain.l1_radius is not None:
            self.view, self.total = _Split(d, domain.l1_radius), domain.l1_radius
        elif domain.simplex_total is not None:
            self.total = domain.simplex_total
        ball, box = domain.as_ball(d), domain.sides(d)
        d = self.view.d
        low, high = box or (np.full(d, -np.inf), np.full(d, np.inf))
        if self.total is not None:
            low = np.zeros(d)
        if box is not None:  # what nothing depends on stays, and does not drift away
            fixed = np.clip(0.0, low, high)
            low, high = np.where(objective.unused, fixed, low), np.where(objective.unused, fixed, high)
        self.fixed = low == high
        self.below, self.above = np.isfinite(low) & ~self.fixed, np.isfinite(high) & ~self.fixed
        self.low, self.high = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
        self.centre: Any = np.zeros(d) if ball is None else ball[0]
        self.radius: float | None = None if ball is None else ball[1]
        self.u, self.eta = self._inside(None if start is None else self.view.part(start)), 0.0
        self._open()

    @property
    def point(self) -> Any:
        """The point in the coordinates of the stream."""
        return self.view.join(self.u)

    def _inside(self, start: Any) -> Any:
        """A strictly feasible point, near `start` where that is given."""
        both, units = self.below & self.above, self.view.part(self.objective.units)
        middle = np.where(both, 0.5 * (self.low + self.high), self.low)
        middle = np.where(self.below & ~both, self.low + units, middle)
        middle = np.where(self.above & ~both, self.high - units, middle)
        if self.total is not None:
            middle = np.full(self.view.d, self.total / self.view.d)
        if self.radius is not None:
            middle = self.centre.copy()
        if start is None:
            return middle
        u = np.where(self.below & ~both, np.maximum(start, self.low + 1e-2 * units), start)
        u = np.where(self.above & ~both, np.minimum(u, self.high - 1e-2 * units), u)
        if self.total is not None or self.radius is not None:
            both = np.ones_like(both)
        return np.where(both | self.fixed, middle + 0.9 * (u - middle), u)

    def _open(self) -> None:
        """The first slacks and multipliers, all products about equal."""
        terms, mu = self.terms, 0.0
        self.p = self.objective.predict(self.point)
        if terms is not None:
            m = terms.orientation * self.p - terms.kink
            self.bounded = np.isfinite(terms.width)
            spread = float(np.abs(m).mean()) or 1.0
            free = (np.maximum(m, 0.0) + spread) / np.where(terms.gamma > 0.0, terms.gamma, 1.0)
            self.alpha = np.where(self.bounded, 0.5 * np.where(self.bounded, terms.width, 0.0), free)
            short = m - terms.gamma * (terms.low + self.alpha)
            self.xi = np.where(self.bounded, np.maximum(short, 0.0) + spread, 0.0)
            self.r = self.xi - short
            mu = float(np.mean(self.alpha * self.r))
        lower, upper = np.where(self.below, self.u - self.low, 1.0), np.where(self.above, self.high - self.u, 1.0)
        if terms is None:
            gradient = np.abs(self.view.spread(self.objective.slope_at(None, self.point)))
            reach = np.where(self.below, lower, 0.0) + np.where(self.above, upper, 0.0)
            mu = float(gradient @ reach) / max(1, int(self.below.sum() + self.above.sum()))
            mu += (self.radius or 0.0) * float(np.linalg.norm(gradient))
        mu = mu or 1.0
        self.zl, self.zu = np.where(self.below, mu / lower, 0.0), np.where(self.above, mu / upper, 0.0)
        room = self._room(self.u) if self.radius is not None else 0.0
        self.nu = mu / room if room > 0.0 else 0.0  # the square of a tiny radius is 0: then no step will be made

    def _room(self, u: Any) -> float:
        """½(radius² − ‖u − centre‖²), without cancelling squares."""
        size, radius = float(np.linalg.norm(u - self.centre)), self.radius or 0.0
        return 0.5 * (radius - size) * (radius + size)

    def slopes(self) -> Any:
        """The multipliers as slopes g_t of the rows: a dual point."""
        terms = self.terms
        return None if terms is None else terms.orientation * (terms.low + self.alpha).sum(axis=0)

    def linearise(self) -> bool:
        """Set up and factor Newton's system at the present point; False when the numbers have come to their end."""
        terms, u = self.terms, self.u
        self.S = None if terms is None else self.objective.pull(self.slopes())
        self.v = u - self.centre
        self.sl, self.su = np.where(self.below, u - self.low, 1.0), np.where(self.above, self.high - u, 1.0)
        self.room = self._room(u) if self.radius is not None else 1.0
        if not self.room > 0.0:
            return False
        gradient = self.view.spread(self.objective.slope_at(self.S, self.point))
        self.gradient = np.where(self.fixed, 0.0, gradient - self.zl + self.zu + self.nu * self.v + self.eta)
        D = None
        if terms is not None:
            self.beta = np.where(self.bounded, terms.width - self.alpha, 1.0)
            self.flux = 1.0 / (self.r / self.alpha + self.xi / self.beta + terms.gamma)
            self.rho = self.xi - (terms.orientation * self.p - terms.kink) - self.r
            self.rho += terms.gamma * (terms.low + self.alpha)
            D = self.flux.sum(axis=0)
        self.H = self.objective.hessian(D)
        N = self.view.widen(self.H)
        np.einsum("ii->i", N)[...] += self.zl / self.sl + self.zu / self.su + self.nu
        if self.radius is not None:
            N += (self.nu / self.room) * np.outer(self.v, self.v)
        solve = factored(N, self.fixed, self.total is not None)
        if solve is not None:
            self.solve = solve
        return solve is not None

    def advance(self) -> bool:
        """A predictor and a corrector step; False when no step can be made."""
        mu, many = self.products()
        step = self._direction(0.0, None)
        if many:
            length = min(1.0, self._longest(step))
            ahead = self.products(step, length)[0]
            sigma = min(1.0, max(1e-8, (max(ahead, 0.0) / mu) ** 3)) if mu > 0.0 else 0.0
            if self.radius is not None:  # no more of the second order than the first step could take
                step = {name: length * part for name, part in step.items()}
            step = self._direction(sigma * mu, step)
        length = self._balanced(step, min(1.0, 0.995 * self._longest(step)))
        if not (length > 1e-12 and np.isfinite(step["u"]).all()):
            return False
        names = ("u", "zl", "zu", "nu", "eta", *(("alpha", "r", "xi") if self.terms is not None else ()))
        for name in names:
            setattr(self, name, getattr(self, name) + length * step[name])
        self.p = self.objective.predict(self.point)
        return True

    def _direction(self, target: float, first: dict[str, Any] | None) -> dict[str, Any]:
        """Newton's step towards products equal to `target`, with the second-order part of a first step."""
        terms, v = self.terms, self.v
        cl = np.where(self.below, target - self.zl * self.sl, 0.0)
        cu = np.where(self.above, target - self.zu * self.su, 0.0)
        cn = target - self.nu * self.room if self.radius is not None else 0.0
        rhs, e, c2 = -self.gradient, None, None
        if first is not None:
            cl, cu = cl - first["zl"] * first["u"], cu + first["zu"] * first["u"]
            if self.radius is not None:
                cn += first["nu"] * float(v @ first["u"]) + 0.5 * self.nu * float(first["u"] @ first["u"])
                rhs = rhs - first["nu"] * first["u"]
        if terms is not None:
            c1, c2 = target - self.alpha * self.r, np.where(self.bounded, target - self.beta * self.xi, 0.0)
            if first is not None:
                c1 = c1 - first["alpha"] * first["r"]
                c2 = c2 + np.where(self.bounded, first["alpha"] * first["xi"], 0.0)
            e = c1 / self.alpha - c2 / self.beta - self.rho
            rhs = rhs - self.view.spread(self.objective.pull(terms.orientation * (self.flux * e).sum(axis=0)))
        rhs = rhs + cl / self.sl - cu / self.su - (cn / self.room) * v
        du, eta = self.solve(rhs)
        step = {"u": du, "eta": eta}
        step["zl"] = np.where(self.below, (cl - self.zl * du) / self.sl, 0.0)
        step["zu"] = np.where(self.above, (cu + self.zu * du) / self.su, 0.0)
        step["nu"] = (cn + self.nu * float(v @ du)) / self.room if self.radius is not None else 0.0
        if terms is not None:
            dp = terms.orientation * self.objective.predict(self.view.join(du))
            step["alpha"] = self.flux * (e + dp)
            step["xi"] = np.where(self.bounded, (c2 + self.xi * step["alpha"]) / self.beta, 0.0)
            step["r"] = step["xi"] - dp + terms.gamma * step["alpha"] + self.rho
        return step

    def _balanced(self, step: dict[str, Any], length: float) -> float:
        """A step after which the ball's own product is not left far below the mean of all."""
        while self.radius is not None and length > 1e-3:
            room = self._room(self.u + length * step["u"])
            if (self.nu + length * step["nu"]) * room >= 1e-2 * self.products(step, length)[0]:
                break
            length *= 0.7
        return length

    def _pairs(self, step: dict[str, Any] | None = None, length: float = 0.0) -> list[tuple[Any, Any]]:
        """All the products that go to 0, as pairs of factors, possibly after a step."""

        def after(name: str) -> Any:
            now = getattr(self, name)
            return now if step is None else now + length * step[name]

        u = after("u")
        pairs = [
            (after("zl")[self.below], (u - self.low)[self.below]),
            (after("zu")[self.above], (self.high - u)[self.above]),
        ]
        if self.radius is not None:
            pairs.append((np.array([after("nu")]), np.array([self._room(u)])))
        if self.terms is not None:
            alpha = after("alpha")
            pairs.append((alpha.ravel(), after("r").ravel()))
            if self.bounded.all():
                pairs.append(((self.terms.width - alpha).ravel(), after("xi").ravel()))
        return pairs

    def products(self, step: dict[str, Any] | None = None, length: float = 0.0) -> tuple[float, int]:
        """The mean product, possibly after a step, and their number."""
        pairs = self._pairs(step, length)
        many = sum(a.size for a, _ in pairs)
        return (sum(float((a * b).sum()) for a, b in pairs) / many if many else 0.0), many

    def _longest(self, step: dict[str, Any]) -> float:
        """The longest step that keeps every factor positive."""
        longest = 1.0 / 0.995
        for pair, moved in zip(self._pairs(), self._pairs(step, 1.0), strict=True):
            for factor, end in zip(pair, moved, strict=True):
                falling = end < 0.0
                if falling.any():
                    longest = min(longest, float(np.min(factor[falling] / (factor[falling] - end[falling]))))
        if self.radius is not None:  # the room is a parabola in the step, not a line
            du = step["u"]
            a, b, c = float(du @ du), float(self.v @ du), 2.0 * self.room
            if a > 0.0:
                root = math.sqrt(b * b + a * c)
                longest = min(longest, c / (b + root) if b > 0.0 else (root - b) / a)
        return longest


def factored(N: Any, fixed: Any = False, summed: bool = False) -> Callable[[Any], tuple[Any, float]] | None:
    """A solver of N·du + η·1 = rhs with du = 0 where fixed and, if `summed`, Σ du = 0; None if N is not finite."""
    from scipy.linalg import cho_factor, cho_solve

    if not np.isfinite(N).all():
        return None
    if np.any(fixed):
        N[fixed, :], N[:, fixed] = 0.0, 0.0
        N[fixed, fixed] = 1.0
    diagonal = np.diag(N).copy()
    top = float(diagonal.max())
    scale = 1.0 / np.sqrt(np.where(diagonal > 1e-30 * top, diagonal, top or 1.0))
    N *= scale[:, None] * scale
    factor = None
    for jitter in (1e-14, 1e-12, 1e-10, 1e-7):
        np.einsum("ii->i", N)[...] += jitter
        try:
            factor = cho_factor(N, lower=True, check_finite=False)
            break
        except np.linalg.LinAlgError:
            continue
    if factor is None:
        return None

    def once(rhs: Any) -> Any:
        rhs = np.where(fixed, 0.0, rhs)
        return scale * cho_solve(factor, scale * rhs, check_finite=False)

    if not summed:
        return lambda rhs: (once(rhs), 0.0)
    ones = once(np.ones(N.shape[0]))

    def solve(rhs: Any) -> tuple[Any, float]:
        du = once(rhs)
        eta = float(du.sum() / ones.sum())
        return du - eta * ones, eta

    return solve
