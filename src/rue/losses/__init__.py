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

from rue.losses.base import CountLoss, Loss, MarginLoss
from rue.losses.margin import Hinge, Logistic, PerceptronLoss, SquaredHinge, ZeroOne
from rue.losses.regression import Absolute, EpsilonInsensitive, Huber, Linear, Poisson, Quantile, Square
from rue.losses.wrappers import Indicator, Regularised
from rue.registry import import_modules

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

import_modules(__name__, __path__)
