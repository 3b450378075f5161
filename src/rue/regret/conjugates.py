"""What hindsight needs to know of the built-in losses: their conjugates ℓ*(g), curvatures and kinks (THEORY D5).

For any slope g in the range that a loss can have, ℓ(p, y) ≥ g·p − ℓ*(g): the lower bound is made of nothing else. The
losses made of straight lines and parabolas are written as sums of *terms*

    sup over g in [low, low + width] of g·(o·p − k) − (γ/2)·g²

with o = −y for margin losses and 1 otherwise, which an interior-point method and smoothing both read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rue.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Linear,
    Logistic,
    MarginLoss,
    PerceptronLoss,
    Poisson,
    Quantile,
    Square,
    SquaredHinge,
)

__all__ = ["Terms", "conjugate", "curvature", "known", "slopes_between", "terms_of"]


def _entropy(a: Any) -> Any:
    """a ln a, 0 at 0."""
    return a * np.log(np.maximum(a, 1e-300))


def _logistic(g: Any, y: Any) -> Any:
    a = np.clip(-g * y, 0.0, 1.0)
    return _entropy(a) + _entropy(1.0 - a)


def _poisson(g: Any, y: Any) -> Any:
    v = np.maximum(g + y, 0.0)
    return _entropy(v) - v


# loss → ℓ*(loss, g, y); and the range of slopes, (loss, y) → low, high.
_CONJUGATES: dict[type, Callable[[Any, Any, Any], Any]] = {
    Absolute: lambda loss, g, y: g * y,
    EpsilonInsensitive: lambda loss, g, y: g * y + loss.epsilon * np.abs(g),
    Hinge: lambda loss, g, y: g * y,
    Huber: lambda loss, g, y: g * y + 0.5 * g * g,
    Linear: lambda loss, g, y: 0.0 * g,
    Logistic: lambda loss, g, y: _logistic(g, y),
    PerceptronLoss: lambda loss, g, y: 0.0 * g,
    Poisson: lambda loss, g, y: _poisson(g, y),
    Quantile: lambda loss, g, y: g * y,
    Square: lambda loss, g, y: g * y + 0.25 * g * g,
    SquaredHinge: lambda loss, g, y: g * y + 0.25 * g * g,
}
_RANGES: dict[type, Callable[[Any, Any], tuple[Any, Any]]] = {
    Absolute: lambda loss, y: (-1.0, 1.0),
    EpsilonInsensitive: lambda loss, y: (-1.0, 1.0),
    Hinge: lambda loss, y: (np.minimum(-y, 0.0), np.maximum(-y, 0.0)),
    Huber: lambda loss, y: (-loss.delta, loss.delta),
    Linear: lambda loss, y: (y, y),
    Logistic: lambda loss, y: (np.minimum(-y, 0.0), np.maximum(-y, 0.0)),
    PerceptronLoss: lambda loss, y: (np.minimum(-y, 0.0), np.maximum(-y, 0.0)),
    Poisson: lambda loss, y: (-y, np.inf),
    Quantile: lambda loss, y: (-loss.tau, 1.0 - loss.tau),
    Square: lambda loss, y: (-np.inf, np.inf),
    SquaredHinge: lambda loss, y: (np.where(y > 0, -np.inf, 0.0), np.where(y > 0, 0.0, np.inf)),
}


def known(loss: Any) -> bool:
    """Whether the loss's conjugate is known here."""
    return type(loss) in _CONJUGATES


def conjugate(loss: Any, g: Any, y: Any) -> Any:
    """ℓ*(g) = sup over p of g·p − ℓ(p, y), for slopes in the loss's range."""
    return _CONJUGATES[type(loss)](loss, g, y)


def slopes_between(loss: Any, y: Any) -> tuple[Any, Any]:
    """The smallest and the largest slope that the loss can have."""
    return _RANGES[type(loss)](loss, y)


def curvature(loss: Any, p: Any, y: Any) -> Any:
    """The second derivative in p of the losses that have one everywhere; None for the others."""
    if isinstance(loss, Square):
        return np.full_like(p, 2.0)
    if isinstance(loss, Logistic):
        e = np.exp(-np.abs(p))
        return e / ((1.0 + e) * (1.0 + e))
    if isinstance(loss, Poisson):
        return np.exp(np.minimum(p, 709.0))
    return None


class Terms(NamedTuple):
    """Σ over i of sup over g in [low, low + width] of g·(o·p − k) − (γ/2)g², one row of arrays for each i."""

    orientation: Any
    low: Any
    width: Any
    kink: Any
    gamma: Any

    def slopes(self, p: Any, extra: Any) -> Any:
        """The slopes in o·p of the terms with `extra` added to γ (Moreau's smoothing): each within its range."""
        gamma = self.gamma + extra
        return np.clip((self.orientation * p - self.kink) / gamma, self.low, self.low + self.width)


def terms_of(loss: Any, y: Any, weights: Any) -> Terms | None:
    """The weighted losses as terms, or None for a loss that is not made of lines and parabolas."""
    one = np.ones_like(y)
    gamma = 0.0
    lows: Any
    if isinstance(loss, Hinge | PerceptronLoss | SquaredHinge):
        kink = 0.0 if isinstance(loss, PerceptronLoss) else -1.0
        lows, width, kinks = [0.0], np.inf if isinstance(loss, SquaredHinge) else 1.0, [kink * one]
        gamma = 0.5 if isinstance(loss, SquaredHinge) else 0.0
    elif isinstance(loss, EpsilonInsensitive):
        lows, width, kinks = [-1.0, 0.0], 1.0, [y - loss.epsilon, y + loss.epsilon]
    elif isinstance(loss, Absolute):
        lows, width, kinks = [-1.0], 2.0, [y]
    elif isinstance(loss, Quantile):
        lows, width, kinks = [-loss.tau], 1.0, [y]
    elif isinstance(loss, Huber):
        lows, width, kinks, gamma = [-loss.delta], 2.0 * loss.delta, [y], 1.0
    else:
        return None
    orientation = -y if isinstance(loss, MarginLoss) else one
    low = np.outer(lows, weights)
    return Terms(orientation, low, width * weights * np.ones_like(low), np.array(kinks), gamma / weights)
