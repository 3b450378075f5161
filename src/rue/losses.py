"""Losses ℓ(p, y), convex in the prediction p (docs/theory.md, section 2).

A loss is a parameter with two compiled methods, `value(p, y)` and `slope(p, y)` (one chosen subgradient at each kink),
and the facts theory asks of it. Margin losses take y ∈ {−1, +1} and depend on z = y·p; regression losses take any
real y; count losses take y ≥ 0. Your own is written the same way:

>>> import math, rue
>>> @rue.parameter
... class LogCosh(rue.Loss):
...     lipschitz = 1.0
...     def value(self, p, y):
...         return abs(p - y) + math.log1p(math.exp(-2 * abs(p - y))) - math.log(2)
...     def slope(self, p, y):
...         return math.tanh(p - y)
>>> learner = rue.OGD(loss=LogCosh(), domain="ball:1")
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np

from rue._jit import parameter
from rue.arithmetic import exp, log, logistic
from rue.declared import Declared
from rue.errors import SettingsError
from rue.registry import register

__all__ = [
    "Absolute",
    "CountLoss",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Indicator",
    "Linear",
    "Logistic",
    "Loss",
    "MarginLoss",
    "PerceptronLoss",
    "Poisson",
    "Quantile",
    "Regularised",
    "Square",
    "SquaredHinge",
    "ZeroOne",
]


def _entropy(a: Any) -> Any:
    """a ln a, 0 at 0."""
    return a * np.log(np.maximum(a, 1e-300))


class Loss(Declared):
    """What a loss offers; leave out the facts that do not hold (regression labels unless a subclass says otherwise).

    Facts belong to the class that declares them: a subclass that replaces `value`, `slope` or any other method begins
    again without them (`rue.declared`). What a class of your own declares is checked on a grid before it is used.
    """

    FACTS = frozenset(
        [
            "lipschitz",
            "smooth",
            "strongly_convex",
            "exp_concave",
            "mixable",
            "at_once",
            "target",
            "prox",
            "quadratic",
            "log_odds",
            "log_mean",
            "linear",
            "rosenblatt",
            "depends_on",
            "per_mistake",
            "highest",
            "conjugate",
            "slope_range",
            "second_derivative",
            "pieces",
        ]
    )

    labels: ClassVar[str] = "any real number"
    task: ClassVar[str] = "regress"
    convex: ClassVar[bool] = True
    nonnegative: ClassVar[bool] = True

    quadratic: ClassVar[bool] = False
    """Whether it is (p − y)² itself, so that Σ x xᵀ and Σ y·x determine its sum (D4)."""
    log_odds: ClassVar[bool] = False
    """Whether it is ln(1 + e^{−y·p}) itself, so that p is the log-odds of +1 and probabilities can be mixed (B12)."""
    log_mean: ClassVar[bool] = False
    """Whether it is e^p − y·p itself, so that e^p is the mean predicted."""
    linear: ClassVar[bool] = False
    """Whether it is y·p itself."""
    rosenblatt: ClassVar[bool] = False
    """Whether it is [−y·p]₊ itself with slope −y at 0, so that fixed steps are Rosenblatt's Perceptron (A1)."""
    depends_on: ClassVar[Literal["", "margin", "residual"]] = ""
    """`margin` if it is a function of y·p alone that nowhere rises, `residual` if of p − y alone. Then the mean of
    examples never loses more than they do (D3), for margins of examples with one label."""
    per_mistake: ClassVar[float | None] = None
    """The largest c such that the loss is at least c wherever y·p ≤ 0, or None."""
    highest: ClassVar[float | None] = None
    """The largest value for any p and y, or None."""

    @property
    def lipschitz(self) -> float | None:
        """The smallest L with |slope| ≤ L for every p and y, or None."""
        return None

    @property
    def smooth(self) -> float | None:
        """The smallest β such that the slope is β-Lipschitz in p, or None."""
        return None

    @property
    def strongly_convex(self) -> float:
        """The largest σ such that ℓ − (σ/2)p² is convex in p (never in w: ⟨w, x⟩ is constant across x)."""
        return 0.0

    def exp_concave(self, low: float, high: float) -> float | None:
        """A rate α such that e^{−αℓ} is concave in p, for p in [low, high] and labels in the same range or ±1."""
        return None

    def mixable(self, low: float, high: float) -> float | None:
        """A rate for which mixing predictions in [low, high] costs ln K / rate and no more (B12)."""
        return self.exp_concave(low, high)

    def conjugate(self, g: Any, y: Any) -> Any:
        """ℓ*(g) = sup over p of g·p − ℓ(p, y) for arrays of slopes in `slope_range` and of labels; None if unknown.

        ℓ(p, y) ≥ g·p − ℓ*(g) for every such g: lower bounds on the best loss in hindsight are made of it (D5).
        """
        return None

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        """The smallest and the largest slope at each of an array of labels."""
        return -np.inf, np.inf

    def second_derivative(self, p: Any, y: Any) -> Any:
        """ℓ'' in p for arrays of predictions and labels, where it exists everywhere; None if it does not."""
        return None

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float] | None:
        """A loss made of lines and parabolas as (o, lows, width, kinks, γ); None for any other.

        ℓ(p, y) = Σ over i of sup over g in [lows_i, lows_i + width] of g·(o·p − kinks_i) − (γ/2)·g².
        """
        return None

    def accepts(self, y: float) -> bool:
        """Whether y is a label this loss can take."""
        return math.isfinite(y)

    def value(self, p: float, y: float) -> float:
        raise NotImplementedError

    def slope(self, p: float, y: float) -> float:
        raise NotImplementedError

    def at_once(self, first: Any, many: Any, values: Any, slopes: Any, p: Any, y: Any) -> None:
        """The values and slopes at several predictions, from the `first` on; a loss may know how to in one go."""
        for i in range(first, first + many):
            values[i], slopes[i] = self.value(p[i], y[i]), self.slope(p[i], y[i])

    def target(self, y: float) -> float:
        """The prediction that suits a label best."""
        return y

    def prox(self, p: float, y: float, a: float) -> float:
        """argmin_q a·ℓ(q, y) + ½(q − p)²: where an implicit step from p arrives. By halving, unless a loss knows."""
        q = p - a * self.slope(p, y)
        inside, outside = p, q
        for _ in range(50):
            q = 0.5 * (inside + outside)
            if (p - q - a * self.slope(q, y)) * (p - outside) < 0.0:
                inside = q
            else:
                outside = q
        return q


class MarginLoss(Loss):
    """A loss of the margin z = y·p, for labels −1 and +1."""

    labels = "−1 or +1"
    task = "classify"
    reach: ClassVar[float] = 40.0
    """Predictions beyond ± this gain nothing."""

    def accepts(self, y: float) -> bool:
        return y == 1.0 or y == -1.0


class CountLoss(Loss):
    """A loss for labels that count something."""

    labels = "a number ≥ 0"

    def accepts(self, y: float) -> bool:
        return 0.0 <= y < math.inf


@register("loss", "square")
@parameter
class Square(Loss):
    """(p − y)², without a ½."""

    quadratic = True
    depends_on = "residual"
    smooth = 2.0
    strongly_convex = 2.0

    def value(self, p: float, y: float) -> float:
        return (p - y) * (p - y)

    def slope(self, p: float, y: float) -> float:
        return 2.0 * (p - y)

    def prox(self, p: float, y: float, a: float) -> float:
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
    """|p − y|; slope 0 at p = y."""

    depends_on = "residual"
    lipschitz = 1.0

    def value(self, p: float, y: float) -> float:
        return abs(p - y)

    def slope(self, p: float, y: float) -> float:
        if p > y:
            return 1.0
        return -1.0 if p < y else 0.0

    def conjugate(self, g: Any, y: Any) -> Any:
        return g * y

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return -1.0, 1.0

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float]:
        return np.ones_like(y), [-1.0], 2.0, [y], 0.0


@register("loss", "hinge")
@parameter
class Hinge(MarginLoss):
    """[1 − z]₊, an upper bound of the 0-1 loss; slope −y at the kink z = 1."""

    depends_on = "margin"
    per_mistake = 1.0
    lipschitz = 1.0

    def value(self, p: float, y: float) -> float:
        return max(0.0, 1.0 - y * p)

    def slope(self, p: float, y: float) -> float:
        return -y if y * p <= 1.0 else 0.0

    def conjugate(self, g: Any, y: Any) -> Any:
        return g * y

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float]:
        return -y, [0.0], 1.0, [-1.0 * np.ones_like(y)], 0.0


@register("loss", "perceptron")
@parameter
class PerceptronLoss(MarginLoss):
    """[−z]₊, which is no upper bound of the 0-1 loss; slope −y at the kink z = 0, so a zero margin is corrected."""

    depends_on = "margin"
    rosenblatt = True
    lipschitz = 1.0

    def value(self, p: float, y: float) -> float:
        return max(0.0, -y * p)

    def slope(self, p: float, y: float) -> float:
        return -y if y * p <= 0.0 else 0.0

    def conjugate(self, g: Any, y: Any) -> Any:
        return 0.0 * g

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float]:
        return -y, [0.0], 1.0, [0.0 * np.ones_like(y)], 0.0


@register("loss", "logistic")
@parameter
class Logistic(MarginLoss):
    """ln(1 + e^{−z}), without overflow for any p; divided by ln 2 it bounds the 0-1 loss."""

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
        z, a = y * p, max(a, 1e-200)
        d: float = min(a / (1.0 + exp(z)), max(0.0, -z) + 0.5 * log(1.0 + a))
        for _ in range(6):
            e = exp(z + d)
            d *= 1.0 - min(0.9, log(d * (1.0 + e) / a) / (1.0 + d * (e / (1.0 + e))))
        return p + y * d

    def exp_concave(self, low: float, high: float) -> float:
        return math.exp(-max(abs(low), abs(high)))

    def mixable(self, low: float, high: float) -> float:
        """1 on any range, when it is the probabilities that are mixed."""
        return 1.0

    def conjugate(self, g: Any, y: Any) -> Any:
        a = np.clip(-g * y, 0.0, 1.0)
        return _entropy(a) + _entropy(1.0 - a)

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def second_derivative(self, p: Any, y: Any) -> Any:
        e = np.exp(-np.abs(p))
        return e / ((1.0 + e) * (1.0 + e))


@register("loss", "squared-hinge")
@parameter
class SquaredHinge(MarginLoss):
    """[1 − z]₊²."""

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


@register("loss", "linear")
@parameter
class Linear(Loss):
    """y·p: the label is the slope g itself (online linear optimisation, experts, games)."""

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


@register("loss", "zero-one")
@parameter
class ZeroOne(MarginLoss):
    """1{z ≤ 0}: for evaluation only, because it is not convex and has no useful slope."""

    convex = False
    highest = 1.0

    def value(self, p: float, y: float) -> float:
        return 1.0 if y * p <= 0.0 else 0.0


@register("loss", "huber")
@parameter
class Huber(Loss):
    """½(p − y)² where |p − y| ≤ δ, and δ(|p − y| − δ/2) beyond."""

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
    """τ(y − p) below the label and (1 − τ)(p − y) above, minimal at the τ-quantile; slope 0 at p = y."""

    tau: float = 0.5
    depends_on = "residual"

    def __post_init__(self) -> None:
        if not 0.0 < self.tau < 1.0:
            raise SettingsError(f"Quantile: tau must lie between 0 and 1, not be {self.tau}.")

    @property
    def lipschitz(self) -> float:
        return max(self.tau, 1.0 - self.tau)

    def value(self, p: float, y: float) -> float:
        return self.tau * (y - p) if p < y else (1.0 - self.tau) * (p - y)

    def slope(self, p: float, y: float) -> float:
        return -self.tau if p < y else 1.0 - self.tau if p > y else 0.0

    def conjugate(self, g: Any, y: Any) -> Any:
        return g * y

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return -self.tau, 1.0 - self.tau

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float]:
        return np.ones_like(y), [-self.tau], 1.0, [y], 0.0


@register("loss", "epsilon-insensitive")
@parameter
class EpsilonInsensitive(Loss):
    """[|p − y| − ε]₊; slope 0 at the kinks |p − y| = ε."""

    epsilon: float = 0.1
    lipschitz = 1.0
    depends_on = "residual"

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon < math.inf:
            raise SettingsError(f"EpsilonInsensitive: epsilon must be ≥ 0 and finite, not {self.epsilon}.")

    def value(self, p: float, y: float) -> float:
        return max(0.0, abs(p - y) - self.epsilon)

    def slope(self, p: float, y: float) -> float:
        return 0.0 if abs(p - y) <= self.epsilon else 1.0 if p > y else -1.0

    def conjugate(self, g: Any, y: Any) -> Any:
        return g * y + self.epsilon * np.abs(g)

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return -1.0, 1.0

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float]:
        return np.ones_like(y), [-1.0, 0.0], 1.0, [y - self.epsilon, y + self.epsilon], 0.0


@register("loss", "poisson")
@parameter
class Poisson(CountLoss):
    """e^p − y·p, for counts y whose mean is e^p."""

    nonnegative = False
    log_mean = True

    def value(self, p: float, y: float) -> float:
        return (math.exp(p) if p < 709.0 else math.inf) - y * p

    def slope(self, p: float, y: float) -> float:
        return (math.exp(p) if p < 709.0 else math.inf) - y

    def target(self, y: float) -> float:
        return math.log(max(y, 0.5))  # of 0 it is at −∞, which is no number to aim at

    def conjugate(self, g: Any, y: Any) -> Any:
        v = np.maximum(g + y, 0.0)
        return _entropy(v) - v

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        return -y, np.inf

    def second_derivative(self, p: Any, y: Any) -> Any:
        return np.exp(np.minimum(p, 709.0))


@parameter
class Regularised:
    """ℓ(p, y) + (λ/2)‖w‖², λ-strongly convex in w; the SVM of the notes is hinge and this.

    A learner takes it apart: the loss scores predictions, the regulariser shrinks the point.
    """

    loss: Any
    lambda_: float

    def __init_subclass__(cls) -> None:
        raise SettingsError(
            f"{cls.__name__}: Regularised cannot be subclassed, because learners read its loss and λ and nothing else; "
            "write a rue.Loss of your own."
        )

    def __post_init__(self) -> None:
        if not 0.0 < self.lambda_ < math.inf:
            raise SettingsError(f"Regularised: lambda_ must be positive and finite, not {self.lambda_}.")


@parameter
class Indicator:
    """0 on a set, +∞ outside: how the notes write a constraint inside a loss. A function of the point, not of p.

    >>> import rue
    >>> rue.Indicator(rue.Ball(1)).value([0.6, 0.8]), rue.Indicator(rue.Ball(1)).value([1.0, 1.0])
    (0.0, inf)
    """

    domain: Any

    def value(self, w: Any, /) -> float:
        return 0.0 if self.domain.contains(w) else math.inf
