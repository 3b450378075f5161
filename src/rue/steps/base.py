"""What a step size is: η_t for t = 1, 2, …, from the round and what has been seen (docs/theory.md, section 3)."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from rue.declared import Declared
from rue.domains import Domain
from rue.errors import SettingsError, shown
from rue.losses import Loss

__all__ = ["Seen", "Step", "require_step"]


class Seen(NamedTuple):
    """What has been seen up to and including this round."""

    mass: float
    """Σ α_i, the weights of the rounds (their number when there are no weights)."""
    largest: float
    """The largest `measure` so far, as the step measures it."""
    gradients: float
    """Σ ‖g_i‖²."""


class Step(Declared):
    """What a step size offers; your own needs `eta`, positive and non-increasing in t.

    A step that depends on the loss, the domain or the width overrides `resolve`, which learners call when these are
    known.

    >>> import rue
    >>> @rue.parameter
    ... class Harmonic(rue.Step):
    ...     def eta(self, t, seen):
    ...         return 1.0 / (1.0 + t)
    >>> print(rue.OGD("hinge", "ball:1", Harmonic()).explain())
    step Harmonic() as given

    docs/theory.md, A3.
    """

    FACTS = frozenset(["rule"])

    rule: ClassVar[str] = ""
    """Which of the rules that theorems speak of it is; a subclass that replaces a method is none of them."""

    def eta(self, t: float, seen: Any) -> Any:
        """η_t, in compiled code; `seen` is a `Seen`.

        >>> import rue
        >>> rue.Sqrt(0.5).eta(4, None)
        0.25
        """
        raise NotImplementedError

    def measure(self, weight: float, square: float) -> float:
        """What `seen.largest` is the maximum of, from this round's weight and ‖x‖².

        `square` is ‖x‖². The step of a theorem divides by the largest gradient so far, in units of the loss's slope.

        >>> import rue
        >>> rue.Fixed(0.1).measure(1.0, 4.0)
        0.0
        """
        return 0.0

    def resolve(self, loss: Loss, domain: Domain, lambda_: float, d: int) -> tuple[Step, str]:
        """The concrete step for this loss and this domain in d coordinates, and the reason in words.

        `lambda_` is λ of the regulariser (λ/2)‖w‖², 0 where there is none.

        >>> import rue
        >>> step, why = rue.Theory().resolve(rue.Hinge(), rue.Ball(1), 0.1, 2)
        >>> step
        Strong(sigma=0.1)
        """
        return self, f"step {self!r} as given"

    def refuse(self, loss: Loss, domain: Domain, lambda_: float) -> None:
        """Raise the sentence a user needs if the step makes no sense here; the width need not be known.

        `lambda_` is as for `resolve`.

        >>> import rue
        >>> rue.Fixed(0.1).refuse(rue.Hinge(), rue.Ball(1), 0.0)  # a fixed step makes sense anywhere
        """


def require_step(step: Step) -> None:
    """Refuse a step of the user's own that is negative or not a number."""
    for t in (1.0, 2.0, 10.0, 1000.0):
        try:
            eta = step.eta(t, Seen(t, 1.0, t))
        except Exception as error:
            raise SettingsError(f"{type(step).__name__}: eta({t:g}, seen) fails with {error!r}.") from error
        if not isinstance(eta, int | float) or not 0.0 <= eta < math.inf:
            given = shown(eta)
            raise SettingsError(f"{type(step).__name__}: eta({t:g}, seen) is {given}: it must be a finite number ≥ 0.")
