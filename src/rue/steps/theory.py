"""Steps that theory chooses, from the loss and the domain (docs/theory.md, A2 to A5)."""

from __future__ import annotations

import math
from typing import Any

from rue.compiled import parameter
from rue.domains import Domain
from rue.errors import SettingsError
from rue.losses import Loss
from rue.registry import register, registered
from rue.steps.base import Step
from rue.steps.schedules import Adaptive, Fixed, Sqrt, Strong

__all__ = ["Derived", "Horizon", "Theory"]


@register("part", "derived")
@parameter
class Derived(Step):
    """scale/(G√t), or scale/(G√T) when T > 0, where G = gradient·max(weight·‖x‖^power) over the rounds so far (A9).

    What `Theory` and `Horizon` become where the largest ‖x‖ is not given: it is then the largest so far, this round's
    included, and the bounds hold with the last G.
    """

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
    """The fixed step for a known number of rounds T: U/(G√T) on a ball, D/(G√T) on another bounded set (A9, B5).

    >>> from rue.learners import OGD
    >>> print(OGD("hinge", "ball:10", Horizon(10_000)).explain())
    step U/(G√T) with U = 10, T = 10000 and G = X, the largest ‖x‖ so far, because hinge has slopes of at most 1
    (A9, B5)

    On the ball the regret is then at most U·G·√T, which no learner can improve on (docs/theory.md, B5 and C2).
    """

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
    """The step that the theorems ask for, derived from the loss, the domain and X (A9).

    √2·U/(G√t) on a ball of radius U, D/(√2·G√t) on another set of diameter D, 1/(σt) for strongly convex rounds. Where
    no bound G on the gradients follows from the loss, `Adaptive`, which needs none.

    >>> from rue.learners import OGD
    >>> print(OGD("square", "box:-1,1", Theory(), d=3).explain())
    step D/√2 over √Σ‖g‖² with D = 4, which needs no bound on the gradients (A8, B9); square on this domain gives no
    bound G

    On the ball the regret is at most U·G·√(8T), 2√2 times the least that any learner can promise (docs/theory.md, A9,
    B3 and C2).
    """

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
    """What a loss is called in specs; its class's name if it is not registered."""
    names = (name for name, cls in registered("loss").items() if cls is type(loss))
    return next(names, type(loss).__name__)


def _require_bounds(step: Any) -> None:
    """Refuse bounds G and X that are none."""
    if not (0.0 <= step.G < math.inf and 0.0 <= step.X < math.inf):
        raise SettingsError(f"{type(step).__name__}: the bounds G and X must be positive and finite.")


def _refuse_unbounded(name: str, domain: Domain) -> None:
    """Refuse a domain without a diameter, from which the step is computed."""
    if not domain.bounded:
        raise SettingsError(
            f"the step {name!r} needs a bounded domain and {domain!r} is not: give a domain such as rue.Ball(10), a "
            "step of your own such as 'sqrt:0.5', or a strongly convex loss, rue.Regularised(loss, 0.01)."
        )
