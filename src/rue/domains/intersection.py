"""Finite intersections, projected on by Dykstra's algorithm (docs/theory.md, section 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rue.compiled import kernel, noinline, parameter
from rue.domains.base import Domain
from rue.errors import SettingsError
from rue.registry import make, register

__all__ = ["Intersection"]

_SWEEPS = 5000
"""After so many sweeps Dykstra's algorithm stops where it is."""
_AGAIN = 3
"""How often Dykstra's algorithm is begun again from where it ended outside."""


@kernel
def _approach(domain: Any, w: Any, scratch: Any) -> Any:
    return domain.approach(w, scratch)


@parameter
class _End:
    """The empty list of sets."""

    @noinline
    def sweep(self, w: Any, scratch: Any, i: int) -> Any:
        return 0.0

    @noinline
    def farthest(self, w: Any, scratch: Any) -> Any:
        return 0.0


@parameter
class _List:
    """A set and the list of those after it: the form of a list of different types that compiles."""

    head: Any
    tail: Any

    @noinline
    def sweep(self, w: Any, scratch: Any, i: int) -> Any:
        """One sweep: set i's correction lies in row i; returns the squared change of the corrections."""
        correction, before = scratch[i], scratch[scratch.shape[0] - 1]
        for j in range(w.size):
            before[j] = w[j]
            w[j] += correction[j]
            correction[j] = w[j]
        self.head.onto(w, scratch)
        change = 0.0
        for j in range(w.size):
            correction[j] -= w[j]
            change += (before[j] - w[j]) * (before[j] - w[j])
        return change + self.tail.sweep(w, scratch, i + 1)

    @noinline
    def farthest(self, w: Any, scratch: Any) -> Any:
        """The largest distance from w to any of the sets."""
        copy = scratch[scratch.shape[0] - 1]
        for j in range(w.size):
            copy[j] = w[j]
        self.head.onto(copy, scratch)
        square = 0.0
        for j in range(w.size):
            square += (w[j] - copy[j]) * (w[j] - copy[j])
        return max(math.sqrt(square), self.tail.farthest(w, scratch))


@register("part", "intersection")
@parameter
class Intersection(Domain):
    """The points that lie in every one of several sets; `Intersection(Ball(1), Orthant())`.

    Dykstra's algorithm (Boyle and Dykstra 1986) sweeps over the sets until a sweep changes nothing that matters; what
    is left is the residual, the largest distance to any of the sets or the last sweep's change, whichever is larger;
    `learner.residual` and `residual(w)` report it. If it ends outside, it is begun again from there: the point is then
    in the set, though not the nearest, and the residual still says so. Sweeps grow in number with the distance of w:
    points a step away from the set, as learners have them, take a few; points a million away may not be done after
    thousands.
    `support` and `diameter` are the smallest of the members', which are upper bounds; `contains` asks every member, and
    `nearby` finds a point that they all contain.

    >>> from rue.domains.sets import Ball, Orthant
    >>> Intersection(Ball(1), Orthant()).project([3.0, -4.0])
    array([1., 0.])

    docs/theory.md, section 3.
    """

    sets: Any

    def __init__(self, *sets: Domain | str) -> None:
        flat: list[Domain] = []
        for member in (make("domain", spec) for spec in sets):
            flat.extend(member.parts if isinstance(member, Domain) else [member])
        if len(flat) < 2:
            raise SettingsError(f"Intersection: give two sets or more, not {len(flat)}.")
        if any(not isinstance(member, Domain) or member.scratch_rows for member in flat):
            raise SettingsError("Intersection: each member must be a domain that needs no scratch rows of its own.")
        fixed = {member.dimension for member in flat} - {None}
        if len(fixed) > 1:
            raise SettingsError(f"Intersection: the sets have different numbers of coordinates, {sorted(fixed)}.")  # type: ignore[type-var]
        chain: Any = _End()
        for member in reversed(flat):
            chain = _List(member, chain)
        object.__setattr__(self, "sets", chain)

    def __repr__(self) -> str:
        return f"Intersection({', '.join(map(repr, self.members))})"

    @property
    def members(self) -> Sequence[Domain]:
        """The sets, in the order given."""
        members, rest = [], self.sets
        while isinstance(rest, _List):
            members.append(rest.head)
            rest = rest.tail
        return members

    @property
    def parts(self) -> Sequence[Domain]:
        return self.members

    def built_from(self) -> Sequence[Domain]:
        """The arguments that build it again, in their order; other parameters are built from their fields by name.

        >>> Intersection("ball:1", "orthant").built_from()
        [Ball(radius=1.0), Orthant()]
        """
        return self.members

    @property
    def scratch_rows(self) -> int:  # type: ignore[override]
        return len(self.members) + 1

    @property
    def bounded(self) -> bool:
        return any(member.bounded for member in self.members)

    @property
    def dimension(self) -> int | None:
        return next((member.dimension for member in self.members if member.dimension is not None), None)

    def onto(self, w: Any, scratch: Any) -> Any:
        """Dykstra's algorithm, begun again from where it ended outside: that ends inside, but not nearest to w."""
        residual = self.approach(w, scratch)
        off = residual
        for _ in range(_AGAIN):
            size = 0.0
            for j in range(w.size):
                size = max(size, abs(w[j]))
            # 1e-9 is what `contains` allows for.
            if not 1e-9 * (1.0 + size) < off < math.inf:
                break
            off = self.approach(w, scratch)
        return residual

    @noinline
    def approach(self, w: Any, scratch: Any) -> Any:
        """Dykstra's algorithm once; the sets' corrections, which add up to the whole move, are left in `scratch`.

        `w` is moved in place; what is returned is the residual (`Intersection` says what that is).

        >>> import numpy as np
        >>> w, both = np.array([3.0, -4.0]), Intersection("ball:1", "orthant")
        >>> both.approach(w, np.empty((both.scratch_rows, 2))) < 1e-9, w.round(6)
        (True, array([1., 0.]))
        """
        size = 0.0
        for i in range(scratch.shape[0]):
            for j in range(w.size):
                scratch[i, j] = 0.0
        for j in range(w.size):
            size += w[j] * w[j]
        if not math.isfinite(size):
            return math.inf
        change = 0.0
        for _ in range(_SWEEPS):
            change = self.sets.sweep(w, scratch, 0)
            # Both are squares: a sweep that moves the corrections by 1e-15 of the size of w changes nothing that a
            # double shows.
            if not change > 1e-30 * (1.0 + size):
                change = 0.0
                break
        return max(math.sqrt(change), self.sets.farthest(w, scratch))

    def residual(self, w: Any) -> float:
        """What Dykstra's algorithm leaves undone at w.

        >>> Intersection("ball:1", "orthant").residual([3.0, -4.0]) < 1e-9
        True
        """
        return self.project_with_residual(w)[1]

    def contains(self, w: Any, tolerance: float = 1e-9) -> bool:
        """Whether w lies in every one of the sets, up to `tolerance` times its size."""
        point = self.vector(w)
        return all(member.contains(point, tolerance) for member in self.members)

    def nearby(self, w: Any, centre: Any = None, tolerance: float = 1e-9) -> Any:
        """A point near w that `contains` accepts, or None where the search finds none.

        Dykstra's algorithm is begun again from where it ended. Where that does not do, the point is moved towards
        `centre`, a point of the set, as far as it must.
        """
        point = self.vector(w)
        if not np.isfinite(point).all():
            return None
        for _ in range(_AGAIN):
            if self.contains(point, tolerance):
                return point
            point = self.project(point)
        if self.contains(point, tolerance):
            return point
        if centre is None:
            return None
        out, inside = 0.0, 1.0
        for _ in range(50):
            share = 0.5 * (out + inside)
            out, inside = (
                (out, share) if self.contains(point + share * (centre - point), tolerance) else (share, inside)
            )
        return point + inside * (centre - point) if inside < 1.0 else None

    def support(self, v: Any) -> float:
        return min(member.support(v) for member in self.members)

    def support_near(self, v: Any, u: Any) -> float:
        """h_K(v) ≤ Σ h_i(v_i) for any v_i of sum v, here from the corrections of Dykstra's algorithm at u + v.

        They are normals of the sets. What their sum lacks to v is given to the set that takes it for least, so that the
        bound holds wherever the algorithm ended. If u maximises ⟨v, ·⟩ and the algorithm was done, nothing is lacking.
        """
        v, u = self.vector(v), self.vector(u)
        best, length = self.support(v), float(np.linalg.norm(v))
        if not 0.0 < length < math.inf or not np.isfinite(u).all():
            return best
        for reach in (1.0 + float(np.linalg.norm(u)), 0.01 * (1.0 + float(np.linalg.norm(u)))):
            scale = length / reach
            scratch = np.empty((self.scratch_rows, v.size))
            _approach(self, u + v / scale, scratch)
            normals = [m.bounded_part(p) * scale for m, p in zip(self.members, scratch, strict=False)]
            lacking = v - np.sum(normals, axis=0)
            heights = [m.support(normal) for m, normal in zip(self.members, normals, strict=True)]
            bound = sum(heights) + self.support(lacking)
            if bound < best:  # also where it is not a number
                best = bound
        return best

    def diameter(self, d: int) -> float:
        return min(member.diameter(d) for member in self.members)

    def start(self, d: int) -> Any:
        """The projection of 0; refuses sets that do not meet."""
        point = self.project(np.zeros(d))
        far = max(float(np.linalg.norm(point - member.project(point))) for member in self.members)
        if far > 1e-3 * (1.0 + float(np.linalg.norm(point))):  # sets that touch in one point are approached slowly
            raise SettingsError(f"{self!r}: the sets do not meet; the nearest point found is {far:.2g} away from one.")
        return point
