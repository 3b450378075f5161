"""The geometry that opponents need, and what they refuse of their arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.domains import Domain
from rue.errors import SettingsError, shown

__all__ = [
    "ends",
    "far_direction",
    "first",
    "inner_ball",
    "orthogonal",
    "require_positive",
    "require_whole",
    "symmetric",
]


def orthogonal(S: Any, v: Any) -> Any:
    """The unit vector orthogonal to S with the largest inner product with v, or any where v is a multiple of S."""
    square = float(S @ S)
    s = S / math.sqrt(square) if square > 0.0 else S
    largest = float(np.abs(v).max())
    q = _without(v / largest, s) if largest > 0.0 else v
    if float(q @ q) <= 1e-18:
        q = np.zeros(S.size)
        q[np.abs(s).argmin()] = 1.0
        q = _without(q, s)
    q = _without(q / math.sqrt(q @ q), s)  # once more: what rounding left of s would add up over the rounds
    q /= math.sqrt(q @ q)
    return q if float(q @ v) >= 0.0 else -q


def _without(v: Any, s: Any) -> Any:
    """v less its part along the unit vector s."""
    return v - (v @ s) * s


def inner_ball(domain: Domain, d: int) -> tuple[Any, float] | None:
    """The centre and the radius of the largest ball inside a ball, a bounded box or an ℓ1 ball; None for other sets."""
    box = domain.sides(d) if domain.bounded else None
    if box is not None:
        return (box[0] + box[1]) / 2.0, float(np.min(box[1] - box[0])) / 2.0
    if domain.l1_radius is not None:
        return np.zeros(d), domain.l1_radius / math.sqrt(d)
    return domain.as_ball(d)


def far_direction(domain: Domain, d: int) -> Any:
    """The direction from one to the other of two points of the domain at its diameter's distance."""
    v, box = first(1, d), domain.sides(d)
    if box is not None:
        v = box[1] - box[0]
    elif domain.simplex_total is not None and d > 1:
        v[1] = -1.0
    length = float(np.linalg.norm(v))
    return v / length if length > 0.0 else first(1, d)


def first(k: int, d: int) -> Any:
    """A vector with 1 in the first k of d coordinates and 0 in the others."""
    v = np.zeros(d)
    v[:k] = 1.0
    return v


def ends(domain: Domain) -> tuple[float, float]:
    """The ends of an interval."""
    return -domain.support([-1.0]), domain.support([1.0])


def symmetric(domain: Domain, d: int) -> bool:
    """Whether flipping a sign or exchanging two coordinates leaves the domain as it is."""
    box = domain.sides(d)
    if box is not None:
        return bool(np.all(box[1] == box[1][0]) and np.all(box[0] == -box[1][0]))
    return domain.l1_radius is not None or domain.centred_radius is not None


# Arguments.


def require_whole(opponent: Any, name: str, least: int) -> None:
    """Refuse an argument that is no whole number, or less than `least`."""
    value = getattr(opponent, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SettingsError(
            f"{type(opponent).__name__}: {name} must be a whole number, at least {least}, not {shown(value)}."
        )


def require_positive(opponent: Any, name: str) -> None:
    """Refuse an argument that is no positive number."""
    value = getattr(opponent, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < math.inf:
        raise SettingsError(f"{type(opponent).__name__}: {name} must be positive and finite, not {shown(value)}.")
