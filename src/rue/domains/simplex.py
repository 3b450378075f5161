"""The probability simplex and the ℓ1 ball, projected on exactly, without sorting and without memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import parameter
from rue.domains.base import Domain
from rue.errors import SettingsError
from rue.registry import register

__all__ = ["L1Ball", "Simplex"]


@register("domain", "simplex")
@parameter
class Simplex(Domain):
    """{w ≥ 0 : Σ w_j = total}, the probabilities when total is 1.

    The projection is [w − τ]₊ with the τ that makes the sum right; Newton's steps for it rise monotonically and end
    after finitely many (Michelot 1986).

    >>> Simplex().project([0.5, 0.5, 2.0])
    array([0., 0., 1.])

    docs/theory.md, section 3.
    """

    total: float = 1.0
    bounded = True
    exact_support = True
    exact_projection = True

    @property
    def simplex_total(self) -> float:
        return self.total

    def __post_init__(self) -> None:
        if not 0.0 < self.total < math.inf:
            raise SettingsError(f"Simplex: total must be positive and finite, not {self.total}.")

    def threshold(self, w: Any) -> float:
        """τ with Σ [w_j − max w − τ]₊ = total; below the maximum, where nothing cancels.

        The projection of `w` is [w_j − max w − τ]₊ (Duchi, Shalev-Shwartz, Singer and Chandra 2008).

        >>> import numpy as np
        >>> round(float(Simplex(1).threshold(np.array([0.7, 0.7]))), 6)
        -0.5
        """
        top, tau = -math.inf, -self.total  # the largest alone accounts for at least this
        for j in range(w.size):
            top = max(top, w[j])
        for _ in range(w.size + 1):
            many, above = 0, 0.0
            for j in range(w.size):
                if w[j] - top > tau:
                    many += 1
                    above += w[j] - top
            rise = (above - self.total) / many if many > 0 else tau
            if not rise > tau:
                break
            tau = rise
        return tau

    def onto(self, w: Any, scratch: Any) -> float:
        tau, top = self.threshold(w), -math.inf
        for j in range(w.size):
            top = max(top, w[j])
        for j in range(w.size):
            w[j] = max(0.0, (w[j] - top) - tau)
        return 0.0

    def lowest(self, theta: Any, w: Any) -> bool:
        """Write argmin over the simplex of ⟨θ, u⟩ into w: all on the first smallest θ_j; False when all are equal."""
        best, equal = 0, True
        for j in range(theta.size):
            equal &= theta[j] == theta[0]
            if theta[j] < theta[best]:
                best = j
        if equal:
            return False
        for j in range(theta.size):
            w[j] = self.total if j == best else 0.0
        return True

    def support(self, v: Any) -> float:
        return self.total * float(np.max(self.vector(v)))

    def diameter(self, d: int) -> float:
        return self.total * math.sqrt(2.0) if d > 1 else 0.0


@register("domain", "l1-ball")
@parameter
class L1Ball(Domain):
    """{w : Σ|w_j| ≤ radius}, which makes many weights exactly 0.

    The projection shrinks every magnitude by the same τ, or to 0: sign(w_j)·[|w_j| − τ]₊, with τ as on the simplex.

    >>> L1Ball(1).project([2.0, -1.5])
    array([ 0.75, -0.25])

    docs/theory.md, section 3.
    """

    radius: float
    bounded = True
    keeps_zeros = True
    exact_support = True
    exact_projection = True

    @property
    def l1_radius(self) -> float:
        return self.radius

    def __post_init__(self) -> None:
        if not 0.0 < self.radius < math.inf:
            raise SettingsError(f"L1Ball: radius must be positive and finite, not {self.radius}.")

    def onto(self, w: Any, scratch: Any) -> float:
        size, top = 0.0, 0.0
        for j in range(w.size):
            size += abs(w[j])
            top = max(top, abs(w[j]))
        if size > self.radius:
            tau = max(-top, -self.radius)  # relative to the largest magnitude, as on the simplex
            for _ in range(w.size + 1):
                many, above = 0, 0.0
                for j in range(w.size):
                    if abs(w[j]) - top > tau:
                        many += 1
                        above += abs(w[j]) - top
                rise = (above - self.radius) / many if many > 0 else tau
                if not rise > tau:
                    break
                tau = rise
            for j in range(w.size):
                w[j] = math.copysign(max(0.0, (abs(w[j]) - top) - tau), w[j])
        return 0.0

    def lowest(self, theta: Any, w: Any) -> bool:
        """Write argmin over the ball of ⟨θ, u⟩ into w: all on the first largest |θ_j|; False when θ = 0."""
        best = 0
        for j in range(theta.size):
            if abs(theta[j]) > abs(theta[best]):
                best = j
        if theta.size == 0 or theta[best] == 0.0:
            return False
        for j in range(theta.size):
            w[j] = 0.0
        w[best] = -math.copysign(self.radius, theta[best])
        return True

    def support(self, v: Any) -> float:
        return self.radius * float(np.max(np.abs(self.vector(v)), initial=0.0))

    def diameter(self, d: int) -> float:
        return 2.0 * self.radius
