"""Averages of the points played, for online-to-batch conversion (docs/theory.md, B11).

An average gives round t the weight α_t; the model is Σα_t w_t / Σα_t over the points *played*, w_1 … w_T. Example
weights multiply α_t.
"""

from __future__ import annotations

from typing import ClassVar

from rue.compiled import parameter
from rue.registry import register

__all__ = ["Average", "BySteps", "ByTime", "NoAverage", "Uniform"]


class Average:
    """What an average offers; your own needs `alpha`.

    The averaged point is Σα_t w_t / Σα_t; for convex losses its expected loss on examples drawn alike is at most the
    average loss of the points played (online-to-batch conversion, docs/theory.md, B11).

    >>> import rue
    >>> @rue.parameter
    ... class Late(rue.Average):
    ...     after: float
    ...
    ...     def alpha(self, t, eta):
    ...         return 1.0 if t > self.after else 0.0
    >>> learner = rue.Perceptron(average=Late(100))  # leaves out the first hundred points
    >>> Late(100).alpha(100, 1.0), Late(100).alpha(101, 1.0)
    (0.0, 1.0)
    """

    keeps: ClassVar[bool] = True
    """Whether there is an average at all."""
    by_steps: ClassVar[bool] = False
    """Whether rounds count by their steps, so that there must be one step for all coordinates."""

    def alpha(self, t: float, eta: float) -> float:
        """α_t, from the round's number and its step."""
        raise NotImplementedError


@register("average", "none")
@parameter
class NoAverage(Average):
    """No average."""

    keeps = False

    def alpha(self, t: float, eta: float) -> float:
        return 0.0


@register("average", "uniform")
@parameter
class Uniform(Average):
    """α_t = 1: the plain mean of the points played.

    >>> import rue
    >>> learner = rue.Perceptron(average="uniform", intercept=False)
    >>> _ = learner.run([[1.0], [1.0]], [1, 1])
    >>> learner.point, learner.average  # w_1 = 0 and w_2 = 1 were played
    (array([1.]), array([0.5]))

    docs/theory.md, B11.
    """

    def alpha(self, t: float, eta: float) -> float:
        return 1.0


@register("average", "t")
@parameter
class ByTime(Average):
    """α_t = t: later points count more, which goes with the SVM of A6 and removes the logarithm from its rate.

    >>> import rue
    >>> rue.SVM(0.1, average="t").algorithm.average.alpha(3.0, 0.5)
    3.0

    Lacoste-Julien, Schmidt and Bach 2012; docs/theory.md, A6 and B11.
    """

    def alpha(self, t: float, eta: float) -> float:
        return t


@register("average", "steps")
@parameter
class BySteps(Average):
    """α_t = η_t: the average for decreasing steps, whose rounds count α_t·f (B11).

    >>> import rue
    >>> rue.OGD("hinge", "ball:10", average="steps").algorithm.average.alpha(3.0, 0.5)
    0.5

    docs/theory.md, B11.
    """

    by_steps = True

    def alpha(self, t: float, eta: float) -> float:
        return eta
