"""What a domain, a closed convex set K of points, offers to learners, certificates and users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from rue.compiled import foreign, kernel, noinline, require_parameter
from rue.declared import Declared
from rue.errors import DataError, SettingsError, shown
from rue.norms import norm

__all__ = ["Domain"]


@kernel
def _move_onto(domain: Any, w: Any, scratch: Any) -> Any:
    """`onto`, compiled."""
    return domain.onto(w, scratch)


class Domain(Declared):
    """A closed convex set. Your own needs `onto` and, where they are known, `bounded`, `support` and `diameter`.

    The compiled method `onto(w, scratch)` replaces w by its projection, in place, and returns how far from the set the
    result may still be (0 for a closed form); `scratch` has `scratch_rows` rows as long as w to work in.

    Facts belong to the class that declares them: a subclass that replaces `onto`, `support` or any other method begins
    again without them (`rue.declared`). What a class of your own declares is checked on a few points before it is used.

    >>> import rue
    >>> @rue.parameter
    ... class AtMostOne(rue.Domain):
    ...     def onto(self, w, scratch):
    ...         for j in range(w.size):
    ...             w[j] = min(w[j], 1.0)
    ...         return 0.0
    >>> AtMostOne().project([0.5, 3.0])
    array([0.5, 1. ])

    docs/theory.md, section 3.
    """

    FACTS = frozenset(
        [
            "kind",
            "grows",
            "bounded",
            "support",
            "support_near",
            "bounded_part",
            "contains",
            "nearby",
            "diameter",
            "lowest",
            "start",
            "as_ball",
            "centred_radius",
            "sides",
            "simplex_total",
            "l1_radius",
            "whole_space",
            "exact_support",
            "exact_projection",
            "parts",
            "keeps_zeros",
        ]
    )

    kind: ClassVar[Literal["scaled", "coordinate", "dense"]] = "dense"
    """How learners keep a point: `scaled` (w = c + s·v) and `coordinate` move in O(nnz), `dense` in O(d)."""
    grows: ClassVar[bool] = False
    """Whether coordinates may be added later; if not, the width is fixed by the first example or by `d=`."""
    scratch_rows: int = 0
    """How many rows of working memory `onto` needs."""
    whole_space: ClassVar[bool] = False
    """Whether it is ℝ^d, no constraint at all."""
    exact_support: ClassVar[bool] = False
    """Whether `support` is h_K itself and not an upper bound of it."""
    exact_projection: ClassVar[bool] = False
    """Whether `onto` ends within rounding of the nearest point."""

    @property
    def keeps_zeros(self) -> bool:
        """Whether all coordinates are alike, and one that is 0 stays 0 in a projection and adds nothing to the support.

        Then features that never occur need no place, in a point or in a certificate.
        """
        return False

    @property
    def centred_radius(self) -> float | None:
        """The radius, if the set is {w : ‖w‖ ≤ radius}."""
        return None

    @property
    def l1_radius(self) -> float | None:
        """The radius, if the set is {w : Σ|w_j| ≤ radius}."""
        return None

    @property
    def simplex_total(self) -> float | None:
        """The total, if the set is {w ≥ 0 : Σ w_j = total}."""
        return None

    @property
    def parts(self) -> Sequence[Domain]:
        """The sets whose intersection it is: itself alone, if it is not made of others."""
        return (self,)

    def as_ball(self, d: int) -> tuple[Any, float] | None:
        """The centre and the radius, if the set is a Euclidean ball in `d` coordinates.

        >>> import rue
        >>> rue.Ball(2, centre=[1.0, 0.0]).as_ball(2), rue.Box(0, 1).as_ball(2)
        ((array([1., 0.]), 2.0), None)
        """
        return None

    def sides(self, d: int) -> tuple[Any, Any] | None:
        """The lower and the upper ends of each of `d` coordinates, if the set is a box, bounded or not.

        >>> import rue
        >>> rue.Orthant().sides(2)
        (array([0., 0.]), array([inf, inf]))
        """
        return None

    @noinline
    def lowest(self, theta: Any, w: Any) -> bool:
        """Write argmin over the set of ⟨θ, u⟩ into w, in compiled code; False when every point is one.

        `theta` is θ. `FollowTheLeader` plays it for linear losses (docs/theory.md, A7).

        >>> import numpy as np, rue
        >>> w = np.zeros(2)
        >>> rue.Ball(1).lowest(np.array([3.0, 4.0]), w), w
        (True, array([-0.6, -0.8]))
        """
        raise NotImplementedError

    @property
    def bounded(self) -> bool:
        """Whether the diameter is finite."""
        return False

    @property
    def dimension(self) -> int | None:
        """The number of coordinates, when the set fixes it."""
        return None

    @noinline
    def onto(self, w: Any, scratch: Any) -> Any:
        """Replace w by its projection, in compiled code; returns how far from the set it may still be.

        `scratch` has `scratch_rows` rows to work in. Users call `project`, which allocates both.

        >>> import numpy as np, rue
        >>> w = np.array([3.0, 4.0])
        >>> rue.Ball(1).onto(w, np.empty((0, 2))), w
        (0.0, array([0.6, 0.8]))
        """
        raise NotImplementedError

    def support(self, v: Any) -> float:
        """h_K(v) = sup over u in K of ⟨v, u⟩, or an upper bound of it.

        Regret against K is at most A + h_K(−S), which is why certificates ask for it (D1).

        >>> import rue
        >>> rue.Ball(2).support([3.0, 4.0]), rue.Orthant().support([-1.0, 0.0]), rue.Orthant().support([1.0, 0.0])
        (10.0, 0.0, inf)
        """
        return 0.0 if not np.any(self.vector(v)) else math.inf

    def support_near(self, v: Any, u: Any) -> float:
        """An upper bound of h_K(v) that may be sharper than `support`, the more so the nearer u is to the maximiser.

        >>> import rue
        >>> both = rue.Intersection(rue.Box(0, 1), rue.Ball(1))
        >>> both.support([3.0, 4.0]), round(both.support_near([3.0, 4.0], [0.6, 0.8]), 6)
        (5.0, 5.0)
        """
        return float(self.support(v))

    def bounded_part(self, v: Any) -> Any:
        """A vector near v along which the set is known to end: v itself where that is not known.

        A halfspace ends along its normal only: of `v` that part is returned.

        >>> import rue
        >>> rue.Halfspace([0.0, 2.0], 1.0).bounded_part([5.0, 3.0])
        array([0., 3.])
        """
        return v

    def diameter(self, d: int) -> float:
        """The largest distance between two points of the set in d coordinates, or an upper bound of it.

        >>> import rue
        >>> rue.Box(0, 1).diameter(4), rue.Reals().diameter(4)
        (2.0, inf)
        """
        return math.inf

    def project(self, w: Any) -> Any:
        """The point of the set nearest to w, as a new array."""
        return self.project_with_residual(w)[0]

    def project_with_residual(self, w: Any) -> tuple[Any, float]:
        """The projection, and how far off it may be where it has no closed form.

        >>> import rue
        >>> point, residual = rue.Ball(1).project_with_residual([0.0, 3.0])
        >>> point, residual
        (array([0., 1.]), 0.0)
        """
        point = self.vector(w).copy()
        if not np.isfinite(point).all():
            raise DataError(f"{shown(w)} cannot be projected onto {self!r}: it holds numbers that are not finite.")
        require_parameter(self)
        if foreign(self):  # once interpreted: compiled code does not notice an index beyond an array
            self._try_onto(point.copy())
        residual = _move_onto(self, point, np.empty((self.scratch_rows, point.size)))
        if not isinstance(residual, int | float):
            raise SettingsError(f"{type(self).__name__}: onto must return how far off the result may be, 0.0 if exact.")
        if not math.isfinite(residual):
            raise DataError(f"{shown(w)} is too far away to be projected onto {self!r}.")
        return point, float(residual)

    def contains(self, w: Any, tolerance: float = 1e-9) -> bool:
        """Whether w lies in the set, up to `tolerance` times its size.

        >>> import rue
        >>> rue.Ball(1).contains([0.6, 0.8]), rue.Ball(1).contains([0.6, 0.9])
        (True, False)
        """
        point = self.vector(w)
        away = norm(point - self.project(point))
        return away <= tolerance * (1.0 + norm(point))

    def nearby(self, w: Any, centre: Any = None, tolerance: float = 1e-9) -> Any:
        """A point near w that `contains` accepts at a `tolerance`, perhaps on the way to `centre`; None if not found.

        >>> import rue
        >>> rue.Simplex().nearby([0.7, 0.7])
        array([0.5, 0.5])
        """
        point = self.vector(w)
        if not np.isfinite(point).all():
            return None
        if not self.contains(point, tolerance):
            point = self.project(point)
        return point if self.contains(point, tolerance) else None

    def vector(self, v: Any) -> Any:
        """v as an array of as many numbers as the set has coordinates.

        >>> import rue
        >>> rue.Ball(1).vector([1, 2])
        array([1., 2.])
        """
        try:
            array = np.atleast_1d(np.asarray(v, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise DataError(f"{type(self).__name__}: a point is a list of numbers, not {shown(v)}.") from error
        if array.ndim != 1:
            raise DataError(f"{type(self).__name__}: a point has one dimension, not {array.ndim}.")
        self.require(array.size)
        return array

    def _try_onto(self, w: Any) -> None:
        """Refuse an `onto` that fails."""
        try:
            _move_onto.function(self, w, np.empty((self.scratch_rows, w.size)))
        except (ArithmeticError, AttributeError, LookupError, NameError, NotImplementedError, TypeError) as error:
            raise SettingsError(
                f"{type(self).__name__}: onto fails in {w.size} coordinates, {error!r} (a set of fixed width needs a "
                "`dimension`)."
            ) from error

    def start(self, d: int) -> Any:
        """w_1 in `d` coordinates: the projection of 0, which is 0 where the set contains it.

        >>> import rue
        >>> rue.Simplex().start(4)
        array([0.25, 0.25, 0.25, 0.25])
        """
        return self.project(np.zeros(d))

    def require(self, d: int) -> None:
        """Refuse a number `d` of coordinates that the set does not have.

        >>> import rue
        >>> rue.Halfspace([1.0, 1.0]).require(2)
        >>> try:
        ...     rue.Halfspace([1.0, 1.0]).require(3)
        ... except rue.SettingsError as error:
        ...     print(str(error)[:60])
        Halfspace has 2 coordinates, but the point has 3 (an interce
        """
        if self.dimension is not None and self.dimension != d:
            raise SettingsError(
                f"{type(self).__name__} has {self.dimension} coordinates, but the point has {shown(d)} "
                "(an intercept counts as the first one; intercept=False leaves it out)."
            )
