"""Closed convex sets: `project`, `support`, `diameter`, `contains` (docs/theory.md, section 3)."""

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
