"""Curvature (D4): square loss is exactly quadratic, so Σ x xᵀ gives the exact regret in one pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import values
from rue.domains import Domain
from rue.errors import SettingsError
from rue.layout import Array, Layout, Number, Numbers
from rue.norms import LEAST_SQUARE, norm

__all__ = ["WIDEST", "Curvature", "open_curvature"]

WIDEST = 4096
"""The most coordinates for which Σ x xᵀ is added up: 128 MiB."""

SHOWN = 2.0**-1022
"""What Σ weight·x² is at least, where it underflows but x is not 0."""
EIGEN = 1e-14
"""How far off eigenvalues may be, relative to the largest."""
_0 = np.uint64(0)


TOTALS = Numbers(Number("squares", "Σ weight·y²."), Number("examples", "How many examples there were."))
SQUARES, EXAMPLES = TOTALS.indices("squares", "examples")
CURVATURE = Layout(
    Array("gram", "The lower triangle of Q = Σ weight·x xᵀ.", ("coordinate", "coordinate"), merge="added"),
    Array("moment", "b = Σ weight·y x.", ("coordinate",), merge="added"),
    Array("totals", "Sums over the examples.", (TOTALS,)),
)


@values
class Curvature(NamedTuple):
    """Q = Σ weight·x xᵀ (its lower triangle), b = Σ weight·y x and Σ weight·y²: all that square loss depends on."""

    gram: Any
    moment: Any
    totals: Any

    def room(self, size: Any) -> Any:
        return size <= self.moment.size

    def learn(self, loss: Any, row: Any, y: Any, weight: Any) -> bool:
        """Enter one example."""
        # Σ weight·(⟨u, x⟩ − y)² = uᵀQu − 2⟨b, u⟩ + Σ weight·y²: these three sums are all it depends on (D4).
        self.totals[SQUARES] += weight * y * y
        self.totals[EXAMPLES] += 1.0
        row.add(weight * y, self.moment)
        if row.shift > _0:
            self.gram[_0, _0] += weight
        for k in range(row.lo, row.hi):
            j, a = row.place(k), weight * row.at(k)
            if row.shift > _0:
                self.gram[j, _0] += a
            for m in range(row.lo, k + np.uint64(1)):
                i = row.place(m)  # which may come after j where a numbering gives the places
                self.gram[max(i, j), min(i, j)] += a * row.at(m)
            if row.at(k) != 0.0 and self.gram[j, j] == 0.0:  # so that it shows that the column has occurred
                self.gram[j, j] = SHOWN
        return True

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
        return Curvature(gram, moment, self.totals)

    def moved(self, to: Any, size: int) -> Curvature:
        """The same with room for `size` coordinates, those from before at the places `to`, or nowhere where −1."""
        before, moved = np.flatnonzero(to[: self.moment.size] >= 0), self.grown(0)
        if size > WIDEST:
            return moved.grown(size)  # which refuses it
        at, gram, moment = to[before], np.zeros((size, size)), np.zeros(size)
        whole = self.gram + np.tril(self.gram, -1).T
        gram[np.ix_(at, at)], moment[at] = whole[np.ix_(before, before)], self.moment[before]
        return Curvature(np.tril(gram), moment, self.totals)

    def in_use(self, coordinates: Any) -> tuple[Curvature, Any]:
        """That of the coordinates that have occurred, in order, and which they are; before, `coordinates` were."""
        used = np.flatnonzero((np.diag(self.gram) != 0.0) & (coordinates[: self.moment.size] >= 0))
        order = used[np.argsort(coordinates[used])]
        to = np.full(self.moment.size, -1)
        to[order] = np.arange(order.size)
        return self.moved(to, order.size), coordinates[order].astype(np.float64)

    def merge(self, parts: Sequence[Curvature]) -> Curvature:
        """That of several parts of a stream together, each of which went on from a copy of this: everything adds up."""
        size = max(curvature.moment.size for curvature in (self, *parts))
        return Curvature(**CURVATURE.merged(self.grown(size), [part.grown(size) for part in parts]))

    def stored(self) -> dict[str, Any]:
        """The arrays that a model file holds."""
        return {f"curvature.{name}": array for name, array in self._asdict().items()}

    def at_least(self, domain: Domain, scales: Any) -> float:
        """A lower bound on min over K of Σ weight·(⟨u, x⟩ − y)², exact up to rounding; K in units of `scales`.

        Rounding has moved the loss of u by at most γ(Σ|u_j|‖x_j‖ + ‖y‖)² with γ = (T + 10)·4e−16, which is taken off:
        along columns that depend on each other to so many digits nothing can be proved without a bound on u.
        """
        squares = np.diag(self.gram)
        used = np.flatnonzero(squares > 0.0)  # the others lose nothing and gain nothing
        if np.any(squares[used] < LEAST_SQUARE):  # those have lost digits, if not everything
            return 0.0
        Q = np.tril(self.gram) + np.tril(self.gram, -1).T
        total, rounds = float(self.totals[SQUARES]), float(self.totals[EXAMPLES])
        gamma = 3.0 * (rounds + 10.0) * 4e-16
        with np.errstate(all="ignore"):
            Q, b = Q / scales / scales[:, None], self.moment / scales
            if not (np.isfinite(Q).all() and np.isfinite(b).all() and math.isfinite(total)):
                return 0.0
            if (ball := domain.as_ball(b.size)) is not None:
                least = _on_ball(Q, b, total, gamma, *ball)
            elif domain.whole_space:
                least = _on_reals(Q[np.ix_(used, used)], b[used], total, gamma)
            else:
                least = _on_any(Q, b, total, gamma, domain)
        return least if LEAST_SQUARE < least < math.inf else 0.0


def open_curvature() -> Curvature:
    """With nothing in it yet."""
    return Curvature(np.zeros((1, 1)), np.zeros(1), np.zeros(len(TOTALS)))


def _on_reals(Q: Any, b: Any, total: float, gamma: float) -> float:
    """min of uᵀQ'u − 2bᵀu + c, where Q' = Q less its rounding, in columns of length 1."""
    lengths = np.sqrt(np.diag(Q))
    eigen, V = np.linalg.eigh(Q / lengths / lengths[:, None])
    eigen = eigen - b.size * (gamma + EIGEN)
    along = V.T @ (b / lengths)
    if not np.all(eigen > 0.0):
        return 0.0
    return total * (1.0 - gamma) - float(np.sum(along**2 / eigen))


def _on_ball(Q: Any, b: Any, total: float, gamma: float, centre: Any, radius: float) -> float:
    """The same on a ball: the Lagrangian's value at any μ that makes Q' + μI positive is a lower bound."""
    Q = Q - np.diag(gamma * b.size * np.diag(Q))
    eigen, V = np.linalg.eigh(Q)
    eigen = eigen - EIGEN * float(np.abs(eigen).max(initial=0.0))
    reach = radius + norm(centre)
    slack = gamma * total + EIGEN * b.size * norm(b) * reach
    slack += EIGEN * float(np.abs(eigen).max(initial=0.0)) * float(centre @ centre)
    total = total + float(centre @ Q @ centre - 2.0 * b @ centre) - slack
    along = V.T @ (b - Q @ centre)  # in v = u − centre: vᵀQv − 2(b − Qc)ᵀv + …
    floor = max(0.0, -float(eigen.min(initial=0.0)))

    def value(above: float) -> float:
        below = eigen + (floor + above)
        terms = np.divide(along**2, below, out=np.where(along == 0.0, 0.0, math.inf), where=below > 0.0)
        return total - float(np.sum(terms)) - ((floor + above) * radius) * radius

    top = norm(along) / radius  # there ‖v‖ ≤ radius already
    if not 0.0 < top < math.inf:
        return value(0.0)
    low, high = math.log(max(top * 1e-24, 1e-300)), math.log(max(top, 1e-299))
    for _ in range(100):  # it is concave in μ, so it has one peak in ln μ too
        a, c = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (a, high) if value(math.exp(a)) < value(math.exp(c)) else (low, c)
    return max(value(0.0), value(math.exp(low)), value(math.exp(high)))


def _on_any(Q: Any, b: Any, total: float, gamma: float, domain: Domain) -> float:
    """The same on any bounded set: accelerated projected descent, and the tangent's lower bound at points met."""
    reach = norm(domain.start(b.size)) + float(domain.diameter(b.size))
    if not math.isfinite(reach):
        return 0.0
    steepest = max(0.0, float(np.linalg.eigvalsh(Q).max(initial=0.0)))
    slack: float = gamma * (total + reach * reach * float(np.trace(Q))) + EIGEN * b.size * steepest * reach * reach
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
            best = max(best, value - float(slope @ u) - domain.support_near(-slope, u))
            if value - best <= 1e-9 * abs(value) + 1e-12:
                break
    return best - slack
