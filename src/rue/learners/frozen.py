"""`Frozen`: the model that stays when learning stops."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rue.learners.learner import Learner

__all__ = ["Frozen"]


@dataclasses.dataclass(frozen=True, eq=False)
class Frozen:
    """The model that stays when learning stops: weights that no longer change; made by `Learner.frozen()`.

    What predicts best while labels come and what predicts best without them need not be the same. For a learner built
    with `average=`, it is the average of the points played (docs/theory.md, B11); for `Mixture()`, the mean of the
    members' weights by how well frozen copies of them did on the examples that followed
    (`rue.learners.mixture.frozen`), for `SoftmaxMixture()` the same mean of their probabilities; for every other
    learner, its present point.

    >>> import rue
    >>> X, y = rue.census()
    >>> frozen = rue.learn(X, y).learner.frozen()
    >>> 0.28 < frozen.risk < 0.36  # about what it loses if it is left alone for as long as it has learnt
    True
    """

    learner: Learner
    """What predicts."""
    average: bool
    """Whether it predicts with the average of its points."""
    chosen: bool
    """Whether the weights were chosen by how well frozen copies did."""
    risk: float = math.nan
    """What frozen copies lost on average, left alone for as long as they had learnt; NaN where none were tried."""
    untried: bool = False
    """Whether such copies should have been tried, but were not: the learner comes from a file of an older version."""
    range: tuple[float, float] | None = None
    """What predictions are clipped to: the range of the labels, wider if they have a trend; ±ln(t + 1) of log-odds."""

    def predict_many(self, X: Any) -> Any:
        """Predictions for many examples."""
        scores = self.learner.predict_many(X, average=self.average)
        return scores if self.range is None else np.clip(scores, *self.range)

    def predict(self, x: Any) -> float:
        """The prediction for one example, in any form that `Learner.predict` takes."""
        score = self.learner.predict(x, average=self.average)
        return score if self.range is None else min(max(score, self.range[0]), self.range[1])

    def point_in_places(self) -> Any:
        """The weights of the coordinates that have a row in the learner's arrays, the intercept's first."""
        return self.learner.point_in_places(average=self.average)

    @property
    def point(self) -> Any:
        """The weights in full, the intercept's first if there is one."""
        return self.learner.average if self.average else self.learner.point
