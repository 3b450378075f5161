"""What a loss is: a convex function of the prediction, with the facts that theory needs (docs/theory.md, section 2)."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np

from rue.declared import Declared
from rue.errors import SettingsError

__all__ = ["CountLoss", "Loss", "MarginLoss", "entropy", "require_at_kink"]


class Loss(Declared):
    """What a loss offers; leave out the facts that do not hold (regression labels unless a subclass says otherwise).

    Your own needs the compiled methods `value(p, y)` and `slope(p, y)`, one subgradient at each kink. All else are
    facts, from which steps, certificates and bounds are derived; what is not declared counts as unknown.

    Facts belong to the class that declares them: a subclass that replaces `value`, `slope` or any other method begins
    again without them (`rue.declared`). What a class of your own declares is checked on a grid before it is used.

    >>> import rue
    >>> @rue.parameter
    ... class Fourth(rue.Loss):
    ...     def value(self, p, y):
    ...         return (p - y) ** 4
    ...
    ...     def slope(self, p, y):
    ...         return 4.0 * (p - y) ** 3
    >>> Fourth().lipschitz is None, rue.Absolute().lipschitz
    (True, 1.0)

    docs/theory.md, section 2.
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
    """What labels it takes, in words for error messages."""
    task: ClassVar[str] = "regress"
    """`regress`, `classify` (labels −1 and +1) or `multiclass`."""
    convex: ClassVar[bool] = True
    """Whether it is convex in p, so that it can be learnt with."""
    nonnegative: ClassVar[bool] = True
    """Whether it is never below 0."""

    quadratic: ClassVar[bool] = False
    """Whether it is (p − y)² itself, so that Σ x xᵀ and Σ y·x determine its sum (D4)."""
    log_odds: ClassVar[bool] = False
    """Whether it is ln(1 + e^{−y·p}) itself, so that p is the log-odds of +1 and probabilities can be mixed (B12)."""
    log_mean: ClassVar[bool] = False
    """Whether it is e^p − y·p itself, so that e^p is the mean predicted."""
    linear: ClassVar[bool] = False
    """Whether it is y·p itself."""
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
    def rosenblatt(self) -> bool:
        """Whether it is [−y·p]₊ itself with slope −y at 0, so that fixed steps are Rosenblatt's Perceptron (A1)."""
        return False

    @property
    def smooth(self) -> float | None:
        """The smallest β such that the slope is β-Lipschitz in p, or None."""
        return None

    @property
    def strongly_convex(self) -> float:
        """The largest σ such that ℓ − (σ/2)p² is convex in p (never in w: ⟨w, x⟩ is constant across x)."""
        return 0.0

    def exp_concave(self, low: float, high: float) -> float | None:
        """A rate α such that e^{−αℓ} is concave in p, for p in [low, high] and labels in the same range or ±1.

        >>> import rue
        >>> rue.Square().exp_concave(0.0, 1.0), rue.Hinge().exp_concave(-1.0, 1.0)
        (0.5, None)
        """
        return None

    def mixable(self, low: float, high: float) -> float | None:
        """A rate for which mixing predictions in [low, high] costs ln K / rate and no more (B12).

        >>> import rue
        >>> rue.Square().mixable(0.0, 1.0), rue.Logistic().mixable(-5.0, 5.0)
        (2.0, 1.0)
        """
        return self.exp_concave(low, high)

    def conjugate(self, g: Any, y: Any) -> Any:
        """ℓ*(g) = sup over p of g·p − ℓ(p, y) for arrays of slopes in `slope_range` and of labels; None if unknown.

        ℓ(p, y) ≥ g·p − ℓ*(g) for every such g: lower bounds on the best loss in hindsight are made of it (D5).

        `g` and `y` are arrays of one length.

        >>> import numpy as np, rue
        >>> rue.Square().conjugate(np.array([0.0, 2.0]), np.array([3.0, 3.0]))  # g²/4 + g·y
        array([0., 7.])
        """
        return None

    def slope_range(self, y: Any) -> tuple[Any, Any]:
        """The smallest and the largest slope at each of an array of labels.

        >>> import numpy as np, rue
        >>> rue.Hinge().slope_range(np.array([1.0, -1.0]))
        (array([-1.,  0.]), array([0., 1.]))
        """
        return -np.inf, np.inf

    def second_derivative(self, p: Any, y: Any) -> Any:
        """ℓ'' in p for arrays of predictions and labels, where it exists everywhere; None if it does not.

        >>> import numpy as np, rue
        >>> rue.Logistic().second_derivative(np.zeros(1), np.ones(1))
        array([0.25])
        """
        return None

    def pieces(self, y: Any) -> tuple[Any, Any, float, Any, float] | None:
        """A loss made of lines and parabolas as (o, lows, width, kinks, γ); None for any other.

        ℓ(p, y) = Σ over i of sup over g in [lows_i, lows_i + width] of g·(o·p − kinks_i) − (γ/2)·g².

        The best in hindsight is then a quadratic program, which an interior-point method solves.

        >>> import numpy as np, rue
        >>> rue.Logistic().pieces(np.ones(1)) is None, rue.Hinge().pieces(np.ones(1)) is None
        (True, False)
        """
        return None

    def accepts(self, y: float) -> bool:
        """Whether y is a label this loss can take.

        >>> import rue
        >>> rue.Square().accepts(2.5), rue.Hinge().accepts(2.5)
        (True, False)
        """
        return math.isfinite(y)

    def value(self, p: float, y: float) -> float:
        """ℓ(p, y).

        >>> import rue
        >>> rue.Hinge().value(0.25, 1.0), rue.Square().value(3.0, 1.0)
        (0.75, 4.0)
        """
        raise NotImplementedError

    def slope(self, p: float, y: float) -> float:
        """ℓ'(p, y) in p; at a kink, the subgradient that the docstring names.

        >>> import rue
        >>> rue.Hinge().slope(0.25, 1.0), rue.Square().slope(3.0, 1.0)
        (-1.0, 4.0)
        """
        raise NotImplementedError

    def subdifferential(self, p: float, y: float) -> tuple[float, float]:
        """∂ℓ(p, y) = [left, right]: all g with ℓ(q, y) ≥ ℓ(p, y) + g·(q − p) for every q; one slope, but at kinks.

        Where a loss does not say it itself, these are the slopes at the nearest numbers below p and above it, for
        slopes never fall: exact at the kinks of lines, and else off by what one rounding amounts to.

        >>> import rue
        >>> rue.Hinge().subdifferential(1.0, 1.0)
        (-1.0, 0.0)
        """
        if not self.convex:
            raise SettingsError(f"{type(self).__name__}: is not convex, so it has no subgradients to learn from.")
        if self.smooth is not None or self.declares("second_derivative"):
            return (slope := float(self.slope(p, y))), slope
        below, above = math.nextafter(p, -math.inf), math.nextafter(p, math.inf)
        return float(self.slope(below, y)), float(self.slope(above, y))

    def at_once(self, first: Any, many: Any, values: Any, slopes: Any, p: Any, y: Any) -> None:
        """Write the values and slopes at `many` predictions from the `first` on; a loss may have vector code for it.

        >>> import numpy as np, rue
        >>> values, slopes = np.zeros(3), np.zeros(3)
        >>> rue.Square().at_once(1, 2, values, slopes, np.array([9.0, 3.0, 1.0]), np.ones(3))
        >>> values, slopes
        (array([0., 4., 0.]), array([0., 4., 0.]))
        """
        for i in range(first, first + many):
            values[i], slopes[i] = self.value(p[i], y[i]), self.slope(p[i], y[i])

    def target(self, y: float) -> float:
        """The prediction for which the loss at this label is smallest.

        >>> import rue
        >>> rue.Square().target(2.5), rue.Hinge().target(-1.0)
        (2.5, -1.0)
        """
        return y

    def prox(self, p: float, y: float, a: float) -> float:
        """argmin_q a·ℓ(q, y) + ½(q − p)²: where an implicit step from p arrives.

        By bisection between p and the explicit step, unless a loss has a closed form.

        >>> import rue
        >>> rue.Square().prox(0.0, 1.0, 0.5)  # halfway to the label
        0.5
        >>> round(rue.Hinge().prox(0.0, 1.0, 5.0), 6)  # never beyond the kink, however large the step
        1.0
        """
        q = p - a * self.slope(p, y)
        inside, outside = p, q
        for _ in range(50):  # halving so often leaves about 1e-15 of the explicit step
            q = 0.5 * (inside + outside)
            if (p - q - a * self.slope(q, y)) * (p - outside) < 0.0:
                inside = q
            else:
                outside = q
        return q


class MarginLoss(Loss):
    """A loss of the margin z = y·p, for labels −1 and +1 (docs/theory.md, section 2).

    >>> MarginLoss().accepts(1.0), MarginLoss().accepts(0.0)
    (True, False)
    """

    labels = "−1 or +1"
    task = "classify"
    reach: ClassVar[float] = 40.0
    """Mixtures clip predictions to ± this: e^−40 is below what a sum of losses shows."""

    def accepts(self, y: float) -> bool:
        return y == 1.0 or y == -1.0


class CountLoss(Loss):
    """A loss for labels that count something (docs/theory.md, section 2).

    >>> CountLoss().accepts(3.0), CountLoss().accepts(-1.0)
    (True, False)
    """

    labels = "a number ≥ 0"

    def accepts(self, y: float) -> bool:
        return 0.0 <= y < math.inf


def require_at_kink(loss: Any, low: float, high: float) -> None:
    """Refuse an `at_kink` that is none of the slopes that a loss may have at its kink."""
    if not low <= loss.at_kink <= high:
        raise SettingsError(
            f"{type(loss).__name__}: at_kink must lie between {low:g} and {high:g}, the slopes on both sides of the "
            f"kink, not be {loss.at_kink:g}."
        )


def entropy(a: Any) -> Any:
    """a ln a for an array of numbers ≥ 0, 0 at 0: what conjugates of exponentials are made of."""
    return a * np.log(np.maximum(a, 1e-300))  # the logarithm of 0 would make NaN of 0·(−∞)
