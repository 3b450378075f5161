"""Facts that a class declares about its own mathematics, and that a subclass loses when it changes that.

A loss may declare its Lipschitz constant or its conjugate, a set its support function or that it is a ball.
Certificates rely on such facts and never on the class itself: `class HalfSquare(Square)` with its own `value` and
`slope` is not the square loss, and what `Square` declares about itself is not true of it.

>>> import rue
>>> @rue.parameter
... class HalfSquare(rue.Square):
...     def value(self, p, y):
...         return 0.5 * (p - y) ** 2
...     def slope(self, p, y):
...         return p - y
>>> rue.Square().smooth, HalfSquare().smooth
(2.0, None)
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

__all__ = ["Declared"]

_PUT_THERE_BY_PARAMETER = frozenset({"Twin", "_own_post_init"})
"""Attributes that `@parameter` gives every class anew: they say nothing about its mathematics."""


class Declared:
    """A base class whose `FACTS` hold for the class that declares them, and for subclasses that change nothing.

    A class that lists `FACTS` gives each of them its value for "unknown". When a subclass replaces a method, a property
    or a known fact that the declaring class had, every fact it does not declare again returns to "unknown". Another
    default for a field, or a fact that no base class declares, replaces nothing.
    """

    FACTS: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "FACTS" in vars(cls):
            return
        roots = [vars(base) for base in cls.__mro__ if "FACTS" in vars(base)]
        unknown = {name: root[name] for root in roots for name in root["FACTS"]}
        stated = {name: next(base for base in cls.__mro__ if name in vars(base)) for name in unknown}
        others = {base for base in stated.values() if base is not cls and "FACTS" not in vars(base)}
        # All facts of a base go together: a loss with another slope has another conjugate, constant and proximal step.
        doubtful = {base for base in others if _replaced(cls, base, unknown)}
        for name, base in stated.items():
            if base in doubtful:
                setattr(cls, name, unknown[name])

    def declares(self, fact: str) -> bool:
        """Whether the fact is known of this object's class."""
        cls = type(self)
        root = next(base for base in cls.__mro__ if "FACTS" in vars(base))
        return inspect.getattr_static(cls, fact) is not vars(root)[fact]


def _replaced(cls: type, base: type, unknown: dict[str, Any]) -> bool:
    """Whether `cls` has something else in the place of a method, a property or a known fact of `base`."""
    fields = getattr(base, "__dataclass_fields__", {})
    for name in {name for above in base.__mro__[:-1] for name in vars(above)}.union(fields):
        before, now = (inspect.getattr_static(owner, name, None) for owner in (base, cls))
        if name.startswith("__") or name in _PUT_THERE_BY_PARAMETER or now is before:
            continue
        if name in unknown and before is unknown[name]:
            continue
        if name not in fields or hasattr(type(now), "__get__"):
            return True
    return False
