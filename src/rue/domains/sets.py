"""Sets whose projection is a formula (docs/theory.md, section 3): reals, ball, box, orthant, halfspace, hyperplane.

Projections are in place and compiled. Lengths are measured in units of the largest coordinate, so that no square
overflows or underflows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import Vector, parameter
from rue.domains.base import Domain
from rue.errors import SettingsError, shown
from rue.norms import norm
from rue.registry import register

__all__ = ["Ball", "Box", "Halfspace", "Hyperplane", "Interval", "Orthant", "Reals"]


@register("domain", "reals")
@parameter
class Reals(Domain):
    """ℝ^d: no constraint at all.

    Theory gives no step here unless the loss is strongly convex: give `step='sqrt:0.5'` or the like, or a bounded set.

    >>> Reals().project([3.0, -4.0]), Reals().bounded
    (array([ 3., -4.]), False)

    docs/theory.md, section 3.
    """

    kind = "scaled"
    grows = True
    whole_space = True
    keeps_zeros = True
    exact_support = True
    exact_projection = True

    def onto(self, w: Any, scratch: Any) -> float:
        return 0.0

    def start(self, d: int) -> Any:
        return np.zeros(d)

    def sides(self, d: int) -> tuple[Any, Any]:
        return np.full(d, -np.inf), np.full(d, np.inf)


@register("domain", "ball")
@parameter
class Ball(Domain):
    """{w : ‖w − centre‖ ≤ radius}, the Euclidean ball; centre 0 unless given.

    The projection is centre + min(1, radius/‖w − centre‖)·(w − centre), and h(v) = ⟨centre, v⟩ + radius·‖v‖. A learner
    keeps its point as a scalar times a vector here, so that a step costs O(number of non-zeros).

    >>> Ball(5).project([3.0, 4.0, 12.0]).round(3)
    array([1.154, 1.538, 4.615])

    docs/theory.md, section 3.
    """

    radius: float
    centre: Vector = ()

    kind = "scaled"
    bounded = True
    exact_support = True
    exact_projection = True

    def __post_init__(self) -> None:
        if not 0.0 < self.radius < math.inf:
            raise SettingsError(f"Ball: radius must be positive and finite, not {self.radius}; `Reals` has no bound.")
        if not np.isfinite(self.centre).all():
            raise SettingsError("Ball: centre must be finite in every coordinate.")

    def __repr__(self) -> str:
        centre = f", centre={shown(self.centre.tolist())}" if self.centre.size else ""
        return f"Ball(radius={self.radius}{centre})"

    @property
    def centred_radius(self) -> float | None:
        return None if self.centre.any() else self.radius

    def as_ball(self, d: int) -> tuple[Any, float]:
        return self.centre if self.centre.size else np.broadcast_to(0.0, d), self.radius  # zeros that take no memory

    @property
    def grows(self) -> bool:  # type: ignore[override]  # an off-centre ball has a fixed width
        return not self.centre.size

    @property
    def keeps_zeros(self) -> bool:
        return not self.centre.size

    @property
    def dimension(self) -> int | None:
        return int(self.centre.size) or None

    def onto(self, w: Any, scratch: Any) -> float:
        c, largest, square = self.centre, 0.0, 0.0
        for j in range(w.size):
            largest = max(largest, abs(w[j] - c[j] if c.size > 0 else w[j]))
        if largest == 0.0:
            return 0.0
        for j in range(w.size):  # in units of the largest, so that no square overflows
            z = (w[j] - c[j] if c.size > 0 else w[j]) / largest
            square += z * z
        if math.sqrt(square) > self.radius / largest:
            shrink = self.radius / largest / math.sqrt(square)
            for j in range(w.size):
                w[j] = c[j] + (w[j] - c[j]) * shrink if c.size > 0 else w[j] * shrink
        return 0.0

    def lowest(self, theta: Any, w: Any) -> bool:
        """Write argmin over the ball of ⟨θ, u⟩ into w; False when every point is one (θ = 0)."""
        c, largest, square = self.centre, 0.0, 0.0
        for j in range(theta.size):
            largest = max(largest, abs(theta[j]))
        if largest == 0.0:
            return False
        for j in range(theta.size):
            square += (theta[j] / largest) * (theta[j] / largest)
        scale = self.radius / math.sqrt(square)
        for j in range(theta.size):
            w[j] = (c[j] if c.size > 0 else 0.0) - scale * (theta[j] / largest)
        return True

    def support(self, v: Any) -> float:
        """⟨centre, v⟩ + radius·‖v‖."""
        v = self.vector(v)
        shift = float(self.centre @ v) if self.centre.size else 0.0
        return shift + self.radius * norm(v)

    def diameter(self, d: int) -> float:
        return 2.0 * self.radius

    def start(self, d: int) -> Any:
        """The centre."""
        self.require(d)
        return self.centre.copy() if self.centre.size else np.zeros(d)


@register("domain", "box")
@parameter
class Box(Domain):
    """{w : lower ≤ w ≤ upper}, coordinate by coordinate; two numbers serve for every coordinate.

    The projection clips each coordinate, so that a step costs O(number of non-zeros). Ends may be infinite.

    >>> Box(-1, 1).project([3.0, -0.5])
    array([ 1. , -0.5])

    docs/theory.md, section 3.
    """

    lower: Vector
    upper: Vector
    coordinates: int = 0
    """How many, where two numbers stand for all of them; 0 leaves it open."""

    kind = "coordinate"
    exact_support = True
    exact_projection = True

    def __post_init__(self) -> None:
        if self.coordinates < 0:
            raise SettingsError(f"Box: coordinates must be a number of coordinates, not {self.coordinates}.")
        sizes = {self.lower.size, self.upper.size, self.coordinates or 1} - {1}
        if len(sizes) > 1 or 0 in sizes:
            raise SettingsError(
                f"Box: lower has {self.lower.size} numbers and upper {self.upper.size}; give one of each, or as many "
                f"as there are coordinates{f', {self.coordinates}' if self.coordinates else ''}."
            )
        if np.any(self.lower > self.upper):
            raise SettingsError("Box: lower must not exceed upper in any coordinate.")
        if np.any(self.lower == math.inf) or np.any(self.upper == -math.inf):
            raise SettingsError("Box: no number lies above +∞ or below −∞.")

    def __repr__(self) -> str:
        sides = [x.item() if x.size == 1 else shown(x.tolist()) for x in (self.lower, self.upper)]
        return (
            f"Box(lower={sides[0]}, upper={sides[1]}{f', coordinates={self.coordinates}' if self.coordinates else ''})"
        )

    @property
    def bounded(self) -> bool:
        return bool(np.isfinite(self.lower).all() and np.isfinite(self.upper).all())

    @property
    def dimension(self) -> int | None:
        if self.coordinates:
            return self.coordinates
        size = int(max(self.lower.size, self.upper.size))
        return size if size > 1 else None

    def sides(self, d: int) -> tuple[Any, Any]:
        return np.broadcast_to(self.lower, d).copy(), np.broadcast_to(self.upper, d).copy()

    @property
    def keeps_zeros(self) -> bool:
        return self.dimension is None and bool(self.lower[0] <= 0.0 <= self.upper[0])

    def clip(self, j: Any, value: Any) -> Any:
        """The nearest number to `value` that coordinate j may have.

        >>> float(Box(-1, 1).clip(0, 3.0))
        1.0
        """
        return min(self.high(j), max(self.low(j), value))

    def low(self, j: Any) -> Any:
        """The lower end of coordinate j.

        >>> float(Box([-1, -2], 1).low(1))
        -2.0
        """
        return self.lower[j] if self.lower.size > 1 else self.lower[0]

    def high(self, j: Any) -> Any:
        """The upper end of coordinate j.

        >>> float(Box(0, [1, 2]).high(1))
        2.0
        """
        return self.upper[j] if self.upper.size > 1 else self.upper[0]

    def onto(self, w: Any, scratch: Any) -> float:
        for j in range(w.size):
            w[j] = self.clip(j, w[j])
        return 0.0

    def side(self, j: Any) -> Any:
        """D_j, the length of the box along coordinate j.

        >>> float(Box([-1, -2], 1).side(1))
        3.0
        """
        return self.high(j) - self.low(j)

    def lowest(self, theta: Any, w: Any) -> bool:
        """Write argmin over the box of ⟨θ, u⟩ into w, coordinates with θ_j = 0 left alone; False when θ = 0."""
        moved = False
        for j in range(theta.size):
            if theta[j] > 0.0:
                w[j] = self.low(j)
                moved = True
            elif theta[j] < 0.0:
                w[j] = self.high(j)
                moved = True
        return moved

    def support(self, v: Any) -> float:
        v = self.vector(v)
        used = v != 0.0  # 0·∞ counts as 0
        low, high = np.broadcast_to(self.lower, v.shape), np.broadcast_to(self.upper, v.shape)
        return float(np.sum(np.maximum(v[used] * low[used], v[used] * high[used])))

    def diameter(self, d: int) -> float:
        sides = self.upper - self.lower
        return norm(sides) if sides.size > 1 else float(sides[0]) * math.sqrt(d)


@register("domain", "interval")
def Interval(low: float, high: float) -> Box:
    """[low, high] ⊂ ℝ: a box of one coordinate, on which the leader and the flip-flop play (A7, C4).

    >>> Interval(0, 1)
    Box(lower=0.0, upper=1.0, coordinates=1)

    docs/theory.md, section 3.
    """
    if np.ndim(low) or np.ndim(high):
        raise SettingsError("Interval: low and high must be two numbers.")
    return Box(low, high, coordinates=1)


@register("domain", "orthant")
@parameter
class Orthant(Domain):
    """{w : w ≥ 0}: no weight is negative. Its support function is 0 where v ≤ 0, and +∞ elsewhere.

    >>> Orthant().project([3.0, -4.0])
    array([3., 0.])

    docs/theory.md, section 3.
    """

    kind = "coordinate"
    grows = True
    keeps_zeros = True
    exact_support = True
    exact_projection = True

    def sides(self, d: int) -> tuple[Any, Any]:
        return np.zeros(d), np.full(d, np.inf)

    def clip(self, j: Any, value: Any) -> Any:
        """The nearest number to `value` that coordinate j may have: 0 or more, whichever j it is.

        >>> Orthant().clip(0, -3.0)
        0.0
        """
        return max(0.0, value)

    def side(self, j: Any) -> Any:
        """D_j, the length of the set along any coordinate j: it has no end.

        >>> Orthant().side(0)
        inf
        """
        return math.inf

    def onto(self, w: Any, scratch: Any) -> float:
        for j in range(w.size):
            w[j] = max(0.0, w[j])
        return 0.0

    def support(self, v: Any) -> float:
        return 0.0 if np.all(self.vector(v) <= 0.0) else math.inf


@register("domain", "halfspace")
@parameter
class Halfspace(Domain):
    """{w : ⟨normal, w⟩ ≤ offset}.

    The projection is w − [⟨normal, w⟩ − offset]₊/‖normal‖²·normal.

    >>> Halfspace([1, 1], 1).project([1.0, 1.0])
    array([0.5, 0.5])

    docs/theory.md, section 3.
    """

    normal: Vector
    offset: float = 0.0
    exact_support = True

    def __post_init__(self) -> None:
        _require_normal(self)

    @property
    def dimension(self) -> int:
        return int(self.normal.size)

    def onto(self, w: Any, scratch: Any) -> float:
        inside, square = 0.0, 0.0
        for j in range(w.size):
            inside += self.normal[j] * w[j]
            square += self.normal[j] * self.normal[j]
        excess = inside - self.offset
        if excess > 0.0:
            for j in range(w.size):
                w[j] -= excess / square * self.normal[j]
        return 0.0

    def support(self, v: Any) -> float:
        """λ·offset if v = λ·normal with λ ≥ 0, otherwise +∞."""
        along = _multiple(self.normal, self.vector(v))
        return along * self.offset if along is not None and along >= 0.0 else math.inf

    def bounded_part(self, v: Any) -> Any:
        return max(0.0, float(v @ self.normal) / float(self.normal @ self.normal)) * self.normal


@register("domain", "hyperplane")
@parameter
class Hyperplane(Domain):
    """{w : ⟨normal, w⟩ = offset}.

    The projection is w − (⟨normal, w⟩ − offset)/‖normal‖²·normal.

    >>> Hyperplane([1, 1], 1).project([1.0, 1.0]), Hyperplane([1, 1], 1).project([0.0, 0.0])
    (array([0.5, 0.5]), array([0.5, 0.5]))

    docs/theory.md, section 3.
    """

    normal: Vector
    offset: float = 0.0
    exact_support = True

    def __post_init__(self) -> None:
        _require_normal(self)

    @property
    def dimension(self) -> int:
        return int(self.normal.size)

    def onto(self, w: Any, scratch: Any) -> float:
        inside, square = 0.0, 0.0
        for j in range(w.size):
            inside += self.normal[j] * w[j]
            square += self.normal[j] * self.normal[j]
        excess = inside - self.offset
        for j in range(w.size):
            w[j] -= excess / square * self.normal[j]
        return 0.0

    def support(self, v: Any) -> float:
        """λ·offset if v = λ·normal, otherwise +∞."""
        along = _multiple(self.normal, self.vector(v))
        return along * self.offset if along is not None else math.inf

    def bounded_part(self, v: Any) -> Any:
        return float(v @ self.normal) / float(self.normal @ self.normal) * self.normal


def _require_normal(domain: Any) -> None:
    """Refuse a normal without a direction or without a length."""
    square = float(domain.normal @ domain.normal)
    if not 0.0 < square < math.inf or not math.isfinite(domain.offset):
        raise SettingsError(f"{type(domain).__name__}: normal must be finite and not 0, and offset finite.")


def _multiple(normal: Any, v: Any) -> float | None:
    """λ with v = λ·normal up to rounding, or None: an error here would make a certificate too small."""
    along = float(v @ normal) / float(normal @ normal)
    off = norm(v - along * normal)
    return along if off <= 8.0 * np.finfo(np.float64).eps * norm(v) else None
