"""Losses of the margin z = y·p, for labels −1 and +1 (docs/theory.md, section 2): hinge, logistic and their kin.

A prediction is right when its sign is the label's, z > 0; how large z is says how sure it was.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import optional, parameter
from rue.compiled.arithmetic import exp, log, logistic
from rue.losses.base import MarginLoss, entropy, require_at_kink
from rue.registry import register

__all__ = ["Hinge", "Logistic", "PerceptronLoss", "SquaredHinge", "ZeroOne"]


@register("loss", "hinge")
@parameter
class Hinge(MarginLoss):
    """[1 − z]₊, the loss of support vector machines and an upper bound of the 0-1 loss; slope −y at the kink z = 1.

    At the kink any slope −a·y with 0 ≤ a ≤ 1 is a subgradient, and every theorem holds with each: `at_kink` is a.

    >>> hinge = Hinge()
    >>> hinge.value(0.25, 1.0), hinge.slope(0.25, 1.0), hinge.value(3.0, 1.0)
    (0.75, -1.0, 0.0)
    >>> hinge.subdifferential(1.0, 1.0), Hinge(at_kink=0.5).slope(1.0, 1.0)
    ((-1.0, 0.0), -0.5)

    docs/theory.md, section 2.
    """

    at_kink: float = optional(1.0)

    depends_on = "margin"
    per_mistake = 1.0
    lipschitz = 1.0

    def __post_init__(self) -> None:
        require_at_kink(self, 0.0, 1.0)

    def value(self, p: float, y: float) -> float:
        return max(0.0, 1.0 - y * p)

    def slope(self, p: float, y: float) -> float:
        z = y * p
        return -y if z < 1.0 else -self.at_kink * y if z == 1.0 else 0.0

    def subdifferential(self, p: float, y: float) -> tuple[float, float]:
        return _margin_slopes(y, y * p, 1.0)

    def conjugate(self, g: Any, y: Any) -> Any:
        return g * y

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float]:
        return -y, [0.0], 1.0, [-1.0 * np.ones_like(y)], 0.0


@register("loss", "perceptron")
@parameter
class PerceptronLoss(MarginLoss):
    """[−z]₊, the loss that makes gradient descent the Perceptron (A1).

    It is no upper bound of the 0-1 loss. Its slope at the kink z = 0 is −y, so that a zero margin is corrected; with
    `at_kink` = a it is −a·y, and for a < 1 no longer Rosenblatt's Perceptron.

    >>> PerceptronLoss().value(-2.0, 1.0), PerceptronLoss().slope(0.0, 1.0)
    (2.0, -1.0)

    docs/theory.md, section 2.
    """

    at_kink: float = optional(1.0)

    depends_on = "margin"
    lipschitz = 1.0

    @property
    def rosenblatt(self) -> bool:
        return self.at_kink == 1.0

    def __post_init__(self) -> None:
        require_at_kink(self, 0.0, 1.0)

    def value(self, p: float, y: float) -> float:
        return max(0.0, -y * p)

    def slope(self, p: float, y: float) -> float:
        z = y * p
        return -y if z < 0.0 else -self.at_kink * y if z == 0.0 else 0.0

    def subdifferential(self, p: float, y: float) -> tuple[float, float]:
        return _margin_slopes(y, y * p, 0.0)

    def conjugate(self, g: Any, y: Any) -> Any:
        return 0.0 * g

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float]:
        return -y, [0.0], 1.0, [0.0 * np.ones_like(y)], 0.0


def _margin_slopes(y: float, z: float, kink: float) -> tuple[float, float]:
    """The subdifferential in p of [kink − z]₊, z = y·p: −y before the kink, 0 after it, and all between at it."""
    if z == kink:
        return min(-y, 0.0), max(-y, 0.0)
    return (-y, -y) if z < kink else (0.0, 0.0)


@register("loss", "logistic")
@parameter
class Logistic(MarginLoss):
    """ln(1 + e^{−z}), which is −ln of the probability 1/(1 + e^{−z}) given to the label; p is the log-odds of +1.

    It does not overflow for any p. Divided by ln 2 it is an upper bound of the 0-1 loss. The loss to learn classes with
    unless there is a reason for another: probabilities can be mixed at the price of ln K (B12).

    >>> round(Logistic().value(0.0, 1.0), 4), Logistic().slope(0.0, 1.0)
    (0.6931, -0.5)

    docs/theory.md, section 2.
    """

    log_odds = True
    depends_on = "margin"
    per_mistake = math.log(2.0)
    lipschitz = 1.0
    smooth = 0.25

    def value(self, p: float, y: float) -> float:
        z = y * p
        return max(0.0, -z) + math.log1p(math.exp(-abs(z)))

    def slope(self, p: float, y: float) -> float:
        z = y * p
        e = math.exp(-abs(z))
        return -y * (e if z > 0.0 else 1.0) / (1.0 + e)

    def at_once(self, first: Any, many: Any, values: Any, slopes: Any, p: Any, y: Any) -> None:
        logistic(first, many, values, slopes, p, y)

    def prox(self, p: float, y: float, a: float) -> float:
        """d = a/(1 + e^{z + d}) by Newton's method on its logarithm, which comes near from wherever it starts."""
        # Of a step of 0 the logarithm is not finite; one of 1e-200 moves nothing.
        z, a = y * p, max(a, 1e-200)
        d: float = min(a / (1.0 + exp(z)), max(0.0, -z) + 0.5 * log(1.0 + a))
        for _ in range(6):
            e = exp(z + d)
            # At most to a tenth in one step: d stays positive, where its logarithm exists.
            d *= 1.0 - min(0.9, log(d * (1.0 + e) / a) / (1.0 + d * (e / (1.0 + e))))
        return p + y * d

    def exp_concave(self, low: float, high: float) -> float:
        return math.exp(-max(abs(low), abs(high)))

    def mixable(self, low: float, high: float) -> float:
        """1 on any range, when it is the probabilities that are mixed."""
        return 1.0

    def conjugate(self, g: Any, y: Any) -> Any:
        a = np.clip(-g * y, 0.0, 1.0)
        return entropy(a) + entropy(1.0 - a)

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def second_derivative(self, p: Any, y: Any) -> Any:
        e = np.exp(-np.abs(p))
        return e / ((1.0 + e) * (1.0 + e))


@register("loss", "squared-hinge")
@parameter
class SquaredHinge(MarginLoss):
    """[1 − z]₊²: like the hinge, but without a kink, and harsher on large mistakes.

    Its slope is not bounded, so steps from theory need a bounded domain and a bound on the gradients.

    >>> SquaredHinge().value(-1.0, 1.0), SquaredHinge().slope(-1.0, 1.0)
    (4.0, -4.0)

    docs/theory.md, section 2.
    """

    depends_on = "margin"
    per_mistake = 1.0
    smooth = 2.0

    def value(self, p: float, y: float) -> float:
        short = max(0.0, 1.0 - y * p)
        return short * short

    def slope(self, p: float, y: float) -> float:
        return -2.0 * y * max(0.0, 1.0 - y * p)

    def exp_concave(self, low: float, high: float) -> float:
        return 1.0 / (2.0 * (1.0 + max(abs(low), abs(high))) ** 2)

    def conjugate(self, g: Any, y: Any) -> Any:
        return g * y + 0.25 * g * g

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return np.where(y > 0, -np.inf, 0.0), np.where(y > 0, 0.0, np.inf)

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float]:
        return -y, [0.0], np.inf, [-1.0 * np.ones_like(y)], 0.5


@register("loss", "zero-one")
@parameter
class ZeroOne(MarginLoss):
    """1{z ≤ 0}: a mistake costs 1, and a zero margin is one (Q4).

    For evaluation only, because it is not convex and has no useful slope; asking to learn with it is refused.

    >>> ZeroOne().value(0.0, 1.0), ZeroOne().value(0.1, 1.0)
    (1.0, 0.0)

    docs/theory.md, section 2.
    """

    convex = False
    highest = 1.0

    def value(self, p: float, y: float) -> float:
        return 1.0 if y * p <= 0.0 else 0.0
