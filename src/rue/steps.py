"""Step sizes η_t (docs/theory.md, A2 to A9).

A step is a parameter with one compiled method, `eta(t, seen)`: t counts the examples from 1, and `seen` holds what a
step may depend on, this round included. Some steps, `theory` first of all, depend on the loss and the domain; they are
resolved into a concrete one when the number of coordinates is known, and say in words what they chose.

>>> import rue
>>> print(rue.OGD(loss="hinge", domain="ball:10", step="theory").explain())
step √2·U/(G√t) with U = 10 and G = X, the largest ‖x‖ so far, because hinge has slopes of at most 1 (A9, B3)
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, NamedTuple

from rue._jit import Vector, parameter
from rue.declared import Declared
from rue.domains import Domain
from rue.errors import SettingsError
from rue.losses import Loss
from rue.registry import register, registered

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


class Seen(NamedTuple):
    """What has been seen up to and including this round."""

    mass: float
    """Σ α_i, the weights of the rounds (their number when there are no weights)."""
    largest: float
    """The largest `measure` so far, as the step measures it."""
    gradients: float
    """Σ ‖g_i‖²."""


class Step(Declared):
    """What a step offers; your own needs `eta`, positive and non-increasing in t."""

    FACTS = frozenset(["rule"])

    rule: ClassVar[str] = ""
    """Which of the rules that theorems speak of it is; a subclass that replaces a method is none of them."""

    def eta(self, t: float, seen: Any) -> Any:
        raise NotImplementedError

    def measure(self, weight: float, square: float) -> float:
        """What `seen.largest` is the maximum of, from this round's weight and ‖x‖²."""
        return 0.0

    def resolve(self, loss: Loss, domain: Domain, lambda_: float, d: int) -> tuple[Step, str]:
        """The concrete step for this loss and this domain in d coordinates, and the reason in words."""
        return self, f"step {self!r} as given"

    def refuse(self, loss: Loss, domain: Domain, lambda_: float) -> None:
        """Raise the sentence a user needs if the step makes no sense here; the width need not be known."""


@register("step", "fixed")
@parameter
class Fixed(Step):
    """η, the same in every round (B5)."""

    value: float
    rule = "fixed"

    def __post_init__(self) -> None:
        _require_positive(self)

    def eta(self, t: float, seen: Any) -> Any:
        return self.value


@register("step", "sqrt")
@parameter
class Sqrt(Step):
    """η/√t (A2, B3)."""

    value: float
    rule = "sqrt"

    def __post_init__(self) -> None:
        _require_positive(self)

    def eta(self, t: float, seen: Any) -> Any:
        return self.value / math.sqrt(t)


@register("step", "strong")
@parameter
class Strong(Step):
    """1/(σt), and 1/Σσ_i when rounds have weights, σ_i = σ·weight (A4, B8)."""

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

    >>> float(Sequence([1.0, 0.5, 0.25]).eta(2, None))
    0.5
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
    """factor·(D/√2)/√(Σ‖g_i‖²): needs the diameter D, never a bound on the gradients (A8, B9)."""

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


@parameter
class Derived(Step):
    """scale/(G√t), or scale/(G√T) when T > 0, where G = gradient·max(weight·‖x‖^power) over the rounds so far."""

    scale: float
    gradient: float
    power: int
    T: float = 0.0
    rule = "derived"

    def eta(self, t: float, seen: Any) -> Any:
        if seen.largest == 0.0:
            return 0.0
        return self.scale / (self.gradient * seen.largest * math.sqrt(self.T if self.T > 0.0 else t))

    def measure(self, weight: float, square: float) -> float:
        return weight * (square if self.power == 2 else math.sqrt(square))


@register("step", "horizon")
@parameter
class Horizon(Step):
    """The fixed step for a known number of rounds T: U/(G√T) on a ball, D/(G√T) on another bounded set (A9, B5)."""

    T: float
    G: float = 0.0
    X: float = 0.0
    rule = "horizon"

    def __post_init__(self) -> None:
        if not 1.0 <= self.T < math.inf:
            raise SettingsError(f"Horizon: T must be a number of rounds, at least 1, not {self.T}.")
        _require_bounds(self)

    def refuse(self, loss: Loss, domain: Domain, lambda_: float) -> None:
        _refuse_unbounded("horizon", domain)
        if lambda_ > 0.0 and not self.G:
            raise SettingsError(
                "the step 'horizon' with a regularised loss needs a bound G: take step='theory' instead."
            )
        if not (self.G or _gradient_bound(loss, domain)):
            raise SettingsError(
                f"the step 'horizon' needs a bound G on the gradients, which {loss!r} on {domain!r} does not give: "
                "say it, rue.Horizon(T, G=…), or take step='adaptive', which needs none."
            )

    def resolve(self, loss: Loss, domain: Domain, lambda_: float, d: int) -> tuple[Step, str]:
        ball = domain.as_ball(d) is not None
        length = domain.diameter(d) / (2.0 if ball else 1.0)
        name = "U" if ball else "D"
        return _over_gradients(
            loss,
            domain,
            self,
            length,
            self.T,
            f"step {name}/(G√T) with {name} = {length:g}, T = {self.T:g}",
            "(A9, B5)",
        )


@register("step", "theory")
@parameter
class Theory(Step):
    """The step the theorems ask for, derived from the loss, the domain and X (A9)."""

    G: float = 0.0
    """A bound on the gradients ‖g_t‖; 0 derives it."""
    X: float = 0.0
    """A bound on the features ‖x_t‖; 0 takes the largest so far."""
    rule = "theory"

    def __post_init__(self) -> None:
        _require_bounds(self)

    def refuse(self, loss: Loss, domain: Domain, lambda_: float) -> None:
        if lambda_ == 0.0:
            _refuse_unbounded("theory", domain)

    def resolve(self, loss: Loss, domain: Domain, lambda_: float, d: int) -> tuple[Step, str]:
        if lambda_ > 0.0:
            why = "because the rounds are strongly convex (A4, B8)"
            return Strong(lambda_), f"step 1/(σt) with σ = λ = {lambda_:g}, {why}"
        if not (self.G or _gradient_bound(loss, domain)):
            step, words = Adaptive().resolve(loss, domain, lambda_, d)
            return step, f"{words}; {_name(loss)} on this domain gives no bound G"
        D = domain.diameter(d)
        ball = domain.as_ball(d) is not None
        start = f"step √2·U/(G√t) with U = {D / 2.0:g}" if ball else f"step D/(√2·G√t) with D = {D:g}"
        return _over_gradients(loss, domain, self, D / math.sqrt(2.0), 0.0, start, "(A9, B3)" if ball else "(A9, B6)")


def _gradient_bound(loss: Loss, domain: Domain) -> tuple[float, int, str] | None:
    """(c, k, why) with ‖g_t‖ ≤ c·X^k, or None when theory gives no such bound."""
    if loss.lipschitz is not None:
        L = loss.lipschitz
        return L, 1, f"{_name(loss)} has slopes of at most {L:g}"
    if loss.quadratic and domain.centred_radius is not None:
        return 4.0 * domain.centred_radius, 2, "square loss on the ball has ‖g‖ ≤ 4UX² when |y| ≤ UX"
    return None


def _over_gradients(
    loss: Loss, domain: Domain, given: Any, length: float, T: float, start: str, ids: str
) -> tuple[Step, str]:
    """`length` over G·√t (or √T): with G as given, from X as given, or from the largest ‖x‖ so far."""
    if length == 0.0:
        return Derived(0.0, 1.0, 1, T), "no step: the domain is a single point"
    G, why = given.G, "as given"
    bound = _gradient_bound(loss, domain)
    if not G and bound is None:
        raise SettingsError(f"{type(given).__name__}: a bound G on the gradients is needed.")
    if not G and bound is not None:
        c, power, why = bound
        symbol = ("X" if c == 1.0 else f"{c:g}·X") + ("²" if power == 2 else "")
        if power == 2:
            ids = ids.replace(")", ", B4)")
        if not given.X:
            largest = "the largest ‖x‖ so far" if symbol == "X" else "X the largest ‖x‖ so far"
            return Derived(length, c, power, T), f"{start} and G = {symbol}, {largest}, because {why} {ids}"
        G, why = c * given.X**power, f"which is {symbol} for the X given, because {why}"
    step: Step = Fixed(length / (G * math.sqrt(T))) if T else Sqrt(length / G)
    return step, f"{start} and G = {G:g}, {why} {ids}"


def _name(loss: Loss) -> str:
    found = (name for name, made in registered("loss").items() if made is type(loss))
    return next(found, type(loss).__name__)


def require_step(step: Step) -> None:
    """Refuse a step of the user's own that is negative or not a number."""
    for t in (1.0, 2.0, 10.0, 1000.0):
        try:
            eta = step.eta(t, Seen(t, 1.0, t))
        except Exception as error:
            raise SettingsError(f"{type(step).__name__}: eta({t:g}, seen) fails with {error!r}.") from error
        if not isinstance(eta, int | float) or not 0.0 <= eta < math.inf:
            raise SettingsError(f"{type(step).__name__}: eta({t:g}, seen) is {eta!r}: it must be a finite number ≥ 0.")


def _require_positive(step: Any) -> None:
    (field,) = dataclasses.fields(step)
    if not 0.0 < getattr(step, field.name) < math.inf:
        raise SettingsError(
            f"{type(step).__name__}: {field.name} must be positive and finite, not {getattr(step, field.name)}."
        )


def _require_bounds(step: Any) -> None:
    if not (0.0 <= step.G < math.inf and 0.0 <= step.X < math.inf):
        raise SettingsError(f"{type(step).__name__}: the bounds G and X must be positive and finite.")


def _refuse_unbounded(name: str, domain: Domain) -> None:
    if not domain.bounded:
        raise SettingsError(
            f"the step {name!r} needs a bounded domain and {domain!r} is not: give a domain such as rue.Ball(10), a "
            "step of your own such as 'sqrt:0.5', or a strongly convex loss, rue.Regularised(loss, 0.01)."
        )
