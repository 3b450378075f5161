"""Step sizes η_t (docs/theory.md, A2 to A9).

A step is a parameter with one compiled method, `eta(t, seen)`: t counts the examples from 1, and `seen` holds what a
step may depend on, this round included. Some steps, `theory` first of all, depend on the loss and the domain; they are
resolved into a concrete one when the number of coordinates is known, and say in words what they chose.

>>> import rue
>>> print(rue.OGD(loss="hinge", domain="ball:10", step="theory").explain())
step √2·U/(G√t) with U = 10 and G = X, the largest ‖x‖ so far, because hinge has slopes of at most 1 (A9, B3)
"""

from rue.registry import import_modules
from rue.steps.base import Seen, Step, require_step
from rue.steps.schedules import Adaptive, Fixed, Sequence, Sqrt, Strong
from rue.steps.theory import Derived, Horizon, Theory

__all__ = [
    "Adaptive",
    "Derived",
    "Fixed",
    "Horizon",
    "Seen",
    "Sequence",
    "Sqrt",
    "Step",
    "Strong",
    "Theory",
    "require_step",
]

import_modules(__name__, __path__)
