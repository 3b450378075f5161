"""Steps that are formulas of t or of what has been seen (docs/theory.md, A2 to A9)."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rue.compiled import Vector, parameter
from rue.domains import Domain
from rue.errors import SettingsError
from rue.losses import Loss
from rue.registry import register
from rue.steps.base import Step

__all__ = ["Adaptive", "Fixed", "Sequence", "Sqrt", "Strong"]


@register("step", "fixed")
@parameter
class Fixed(Step):
    """η, the same in every round (B5): the best in theory where the number of rounds is known; see `Horizon`.

    `value` is η.

    >>> Fixed(0.1).eta(1000, None)
    0.1

    docs/theory.md, B5.
    """

    value: float
    rule = "fixed"

    def __post_init__(self) -> None:
        _require_positive(self)

    def eta(self, t: float, seen: Any) -> Any:
        return self.value


@register("step", "sqrt")
@parameter
class Sqrt(Step):
    """η/√t: the step for convex losses and any number of rounds (A2, B3; Zinkevich 2003).

    On a ball of radius U with gradients ‖g_t‖ ≤ G the regret is at most (2U²/η + G²η)√T, least at η = √2·U/G, which
    `Theory` chooses.

    `value` is η.

    >>> Sqrt(0.5).eta(4, None)
    0.25

    docs/theory.md, B3.
    """

    value: float
    rule = "sqrt"

    def __post_init__(self) -> None:
        _require_positive(self)

    def eta(self, t: float, seen: Any) -> Any:
        return self.value / math.sqrt(t)


@register("step", "strong")
@parameter
class Strong(Step):
    """1/(σt), and 1/Σσ_i when rounds have weights, σ_i = σ·weight: the step for σ-strongly convex rounds (A4, B8).

    There it makes the regret logarithmic, at most (G²/(2σ))(1 + ln T) (Hazan, Agarwal and Kale 2007). On losses that
    are only convex it promises nothing (B7).

    `sigma` is σ.

    >>> from rue.steps import Seen
    >>> Strong(0.1).eta(20, Seen(mass=20.0, largest=1.0, gradients=1.0))
    0.5
    """

    sigma: float
    rule = "strong"

    def __post_init__(self) -> None:
        _require_positive(self)

    def eta(self, t: float, seen: Any) -> Any:
        return 1.0 / (self.sigma * seen.mass)


@register("step", "sequence")
@parameter
class Sequence(Step):
    """Your own η_1, η_2, …; the last one serves for all later rounds. For a formula, write a class with `eta`.

    `values` are the steps.

    >>> float(Sequence([1.0, 0.5, 0.25]).eta(2, None))
    0.5

    docs/theory.md, A3.
    """

    values: Vector

    def __post_init__(self) -> None:
        if self.values.size == 0 or not all(0.0 < value < math.inf for value in self.values):
            raise SettingsError("Sequence: every step must be positive and finite, and there must be one at least.")

    def eta(self, t: float, seen: Any) -> Any:
        return self.values[min(int(t), self.values.size) - 1]


@register("step", "adaptive")
@parameter
class Adaptive(Step):
    """factor·(D/√2)/√(Σ‖g_i‖²): needs the diameter D, never a bound on the gradients (A8, B9).

    The sum includes the gradient of the round itself. With factor 1 the regret is at most √2·D·√(Σ‖g_t‖²), within a
    factor √2 of the best fixed step in hindsight (Streeter and McMahan 2010; Duchi, Hazan and Singer 2011).

    >>> from rue.steps import Seen
    >>> round(Adaptive(diameter=2.0).eta(3, Seen(mass=3.0, largest=1.0, gradients=8.0)), 6)
    0.5

    docs/theory.md, A8 and B9.
    """

    factor: float = 1.0
    diameter: float = 0.0
    """D; 0 takes the domain's."""
    rule = "adaptive"

    def __post_init__(self) -> None:
        if not 0.0 < self.factor < math.inf or not 0.0 <= self.diameter < math.inf:
            raise SettingsError("Adaptive: factor must be positive and finite, diameter ≥ 0 and finite.")

    def eta(self, t: float, seen: Any) -> Any:
        if seen.gradients == 0.0:
            return 0.0
        return self.factor * self.diameter / math.sqrt(2.0) / math.sqrt(seen.gradients)

    def refuse(self, loss: Loss, domain: Domain, lambda_: float) -> None:
        if not domain.bounded and self.diameter == 0.0:
            raise SettingsError(
                f"the step 'adaptive' needs a bounded domain and {domain!r} is not: give a domain such as "
                "rue.Ball(10), or a diameter, rue.Adaptive(diameter=20)."
            )

    def resolve(self, loss: Loss, domain: Domain, lambda_: float, d: int) -> tuple[Step, str]:
        D = self.diameter or domain.diameter(d)
        factor = "" if self.factor == 1.0 else f"{self.factor:g} times "
        words = f"step {factor}D/√2 over √Σ‖g‖² with D = {D:g}, which needs no bound on the gradients (A8, B9)"
        return dataclasses.replace(self, diameter=D), words


def _require_positive(step: Any) -> None:
    """Refuse a number that is no step size; for steps with one field."""
    (field,) = dataclasses.fields(step)
    if not 0.0 < getattr(step, field.name) < math.inf:
        raise SettingsError(
            f"{type(step).__name__}: {field.name} must be positive and finite, not {getattr(step, field.name)}."
        )
