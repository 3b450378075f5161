"""Losses of a number (docs/theory.md, section 2): square, absolute, quantile, Huber, Poisson, and the linear loss.

All but the last two are functions of the residual p − y.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import optional, parameter
from rue.errors import SettingsError
from rue.losses.base import CountLoss, Loss, entropy, require_at_kink
from rue.registry import register

__all__ = ["Absolute", "EpsilonInsensitive", "Huber", "Linear", "Poisson", "Quantile", "Square"]


@register("loss", "square")
@parameter
class Square(Loss):
    """(p − y)², without a ½: minimal on average at the mean of the labels.

    It is strongly convex in p but not in w, because ⟨w, x⟩ does not change where w moves across x. Its sum is
    determined by Σxxᵀ and Σy·x, from which certificates compute the exact regret (D4).

    >>> Square().value(3.0, 1.0), Square().slope(3.0, 1.0)
    (4.0, 4.0)

    docs/theory.md, section 2.
    """

    quadratic = True
    depends_on = "residual"
    smooth = 2.0
    strongly_convex = 2.0

    def value(self, p: float, y: float) -> float:
        return (p - y) * (p - y)

    def slope(self, p: float, y: float) -> float:
        return 2.0 * (p - y)

    def prox(self, p: float, y: float, a: float) -> float:
        # Beyond 1e100 the quotient is 1 to the last digit, and from 1e308 on it would be ∞/∞.
        return p - (p - y) * (2.0 * a / (1.0 + 2.0 * a)) if a < 1e100 else y

    def exp_concave(self, low: float, high: float) -> float:
        return 1.0 / (2.0 * (high - low) ** 2) if high > low else math.inf

    def mixable(self, low: float, high: float) -> float:
        return 2.0 / (high - low) ** 2 if high > low else math.inf

    def conjugate(self, g: Any, y: Any) -> Any:
        return g * y + 0.25 * g * g

    def second_derivative(self, p: Any, y: Any) -> Any:
        return np.full_like(p, 2.0)


@register("loss", "absolute")
@parameter
class Absolute(Loss):
    """|p − y|, minimal on average at the median of the labels; slope 0 at p = y, or `at_kink`, from −1 to 1.

    >>> Absolute().value(3.0, 1.0), Absolute().slope(3.0, 1.0), Absolute().slope(1.0, 1.0)
    (2.0, 1.0, 0.0)

    docs/theory.md, section 2.
    """

    at_kink: float = optional(0.0)

    depends_on = "residual"
    lipschitz = 1.0

    def __post_init__(self) -> None:
        require_at_kink(self, -1.0, 1.0)

    def value(self, p: float, y: float) -> float:
        return abs(p - y)

    def slope(self, p: float, y: float) -> float:
        if p > y:
            return 1.0
        return -1.0 if p < y else self.at_kink

    def subdifferential(self, p: float, y: float) -> tuple[float, float]:
        return (-1.0 if p <= y else 1.0), (1.0 if p >= y else -1.0)

    def prox(self, p: float, y: float, a: float) -> float:
        return min(p + a, y) if p < y else max(p - a, y)

    def conjugate(self, g: Any, y: Any) -> Any:
        return g * y

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return -1.0, 1.0

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float]:
        return np.ones_like(y), [-1.0], 2.0, [y], 0.0


@register("loss", "linear")
@parameter
class Linear(Loss):
    """y·p: the label is the slope g itself, as in online linear optimisation, prediction with experts, and games (Q5).

    It may be negative, and has no minimum.

    >>> Linear().value(3.0, -0.5), Linear().slope(3.0, -0.5)
    (-1.5, -0.5)

    docs/theory.md, section 2.
    """

    nonnegative = False
    linear = True

    def value(self, p: float, y: float) -> float:
        return y * p

    def slope(self, p: float, y: float) -> float:
        return y

    def conjugate(self, g: Any, y: Any) -> Any:
        return 0.0 * g

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return y, y


@register("loss", "huber")
@parameter
class Huber(Loss):
    """½(p − y)² where |p − y| ≤ δ, and δ(|p − y| − δ/2) beyond: square near the label, and linear for outliers.

    `delta` is δ, the residual from which on an example counts as an outlier (Huber 1964).

    >>> Huber(1).value(0.5, 0.0), Huber(1).value(3.0, 0.0), Huber(1).slope(3.0, 0.0)
    (0.125, 2.5, 1.0)
    """

    delta: float = 1.0
    smooth = 1.0
    depends_on = "residual"

    def __post_init__(self) -> None:
        if not 0.0 < self.delta < math.inf:
            raise SettingsError(f"Huber: delta must be positive and finite, not {self.delta}.")

    @property
    def lipschitz(self) -> float:
        return self.delta

    def value(self, p: float, y: float) -> float:
        r = abs(p - y)
        return 0.5 * r * r if r <= self.delta else self.delta * (r - 0.5 * self.delta)

    def slope(self, p: float, y: float) -> float:
        return min(self.delta, max(-self.delta, p - y))

    def exp_concave(self, low: float, high: float) -> float | None:
        if high == low:
            return math.inf
        return 1.0 / (high - low) ** 2 if high - low <= self.delta else None

    def conjugate(self, g: Any, y: Any) -> Any:
        return g * y + 0.5 * g * g

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return -self.delta, self.delta

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float]:
        return np.ones_like(y), [-self.delta], 2.0 * self.delta, [y], 1.0


@register("loss", "quantile")
@parameter
class Quantile(Loss):
    """τ(y − p) below the label and (1 − τ)(p − y) above, minimal on average at the τ-quantile; slope 0 at p = y.

    At p = y any slope from −τ to 1 − τ is a subgradient: `at_kink` chooses one.

    With τ = 0.9 a prediction that is too low costs nine times as much as one that is too high by as much, so that about
    nine labels in ten come to lie below the predictions (Koenker and Bassett 1978).

    >>> Quantile(0.9).value(1.0, 2.0), round(Quantile(0.9).value(3.0, 2.0), 3)
    (0.9, 0.1)
    """

    tau: float = 0.5
    at_kink: float = optional(0.0)
    depends_on = "residual"

    def __post_init__(self) -> None:
        if not 0.0 < self.tau < 1.0:
            raise SettingsError(f"Quantile: tau must lie between 0 and 1, not be {self.tau}.")
        require_at_kink(self, -self.tau, 1.0 - self.tau)

    @property
    def lipschitz(self) -> float:
        return max(self.tau, 1.0 - self.tau)

    def value(self, p: float, y: float) -> float:
        return self.tau * (y - p) if p < y else (1.0 - self.tau) * (p - y)

    def slope(self, p: float, y: float) -> float:
        return -self.tau if p < y else 1.0 - self.tau if p > y else self.at_kink

    def subdifferential(self, p: float, y: float) -> tuple[float, float]:
        return (-self.tau if p <= y else 1.0 - self.tau), (1.0 - self.tau if p >= y else -self.tau)

    def prox(self, p: float, y: float, a: float) -> float:
        return min(p + a * self.tau, y) if p < y else max(p - a * (1.0 - self.tau), y)

    def conjugate(self, g: Any, y: Any) -> Any:
        return g * y

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return -self.tau, 1.0 - self.tau

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float]:
        return np.ones_like(y), [-self.tau], 1.0, [y], 0.0


@register("loss", "epsilon-insensitive")
@parameter
class EpsilonInsensitive(Loss):
    """[|p − y| − ε]₊: residuals up to ε cost nothing; slope 0 at the kinks |p − y| = ε (Vapnik 1995).

    With `at_kink` = a, from 0 to 1, the slope at a kink is a·sign(p − y).

    >>> EpsilonInsensitive(0.5).value(1.25, 1.0), EpsilonInsensitive(0.5).value(3.0, 1.0)
    (0.0, 1.5)
    """

    epsilon: float = 0.1
    at_kink: float = optional(0.0)
    lipschitz = 1.0
    depends_on = "residual"

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon < math.inf:
            raise SettingsError(f"EpsilonInsensitive: epsilon must be ≥ 0 and finite, not {self.epsilon}.")
        require_at_kink(self, 0.0, 1.0)

    def value(self, p: float, y: float) -> float:
        return max(0.0, abs(p - y) - self.epsilon)

    def slope(self, p: float, y: float) -> float:
        away = abs(p - y)
        size = 0.0 if away < self.epsilon else self.at_kink if away == self.epsilon else 1.0
        return size if p > y else 0.0 - size if p < y else 0.0  # 0 − 0 is 0, and −0 would be a zero of another sign

    def subdifferential(self, p: float, y: float) -> tuple[float, float]:
        low = -1.0 if p - y <= -self.epsilon else 1.0 if p - y > self.epsilon else 0.0
        return low, (1.0 if p - y >= self.epsilon else -1.0 if p - y < -self.epsilon else 0.0)

    def conjugate(self, g: Any, y: Any) -> Any:
        return g * y + self.epsilon * np.abs(g)

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return -1.0, 1.0

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float]:
        return np.ones_like(y), [-1.0, 0.0], 1.0, [y - self.epsilon, y + self.epsilon], 0.0


@register("loss", "poisson")
@parameter
class Poisson(CountLoss):
    """e^p − y·p, for counts y whose mean is e^p: −ln of the Poisson probability, up to ln(y!), which no p changes.

    >>> Poisson().value(0.0, 3.0), Poisson().slope(0.0, 3.0)
    (1.0, -2.0)

    docs/theory.md, section 2.
    """

    nonnegative = False
    log_mean = True

    def value(self, p: float, y: float) -> float:
        return (math.exp(p) if p < 709.0 else math.inf) - y * p  # e^709.8 is the largest float

    def slope(self, p: float, y: float) -> float:
        return (math.exp(p) if p < 709.0 else math.inf) - y

    def target(self, y: float) -> float:
        return math.log(max(y, 0.5))  # of 0 it is at −∞, which is no number to aim at

    def conjugate(self, g: Any, y: Any) -> Any:
        v = np.maximum(g + y, 0.0)
        return entropy(v) - v

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return -y, np.inf

    def second_derivative(self, p: Any, y: Any) -> Any:
        return np.exp(np.minimum(p, 709.0))
