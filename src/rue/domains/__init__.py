"""Closed convex sets K that a learner's point stays in (docs/theory.md, section 3).

Each offers the projection, the support function h_K(v) = sup of ⟨v, u⟩ over u in K, the diameter and membership:

>>> import rue
>>> K = rue.Ball(2)
>>> K.project([3.0, 4.0]), K.support([3.0, 4.0]), K.diameter(2), K.contains([1.0, 1.0])
(array([1.2, 1.6]), 10.0, 4.0, True)
"""

from rue.domains.base import Domain
from rue.domains.intersection import Intersection
from rue.domains.sets import Ball, Box, Halfspace, Hyperplane, Interval, Orthant, Reals
from rue.domains.simplex import L1Ball, Simplex
from rue.registry import import_modules

__all__ = [
    "Ball",
    "Box",
    "Domain",
    "Halfspace",
    "Hyperplane",
    "Intersection",
    "Interval",
    "L1Ball",
    "Orthant",
    "Reals",
    "Simplex",
]

import_modules(__name__, __path__)
