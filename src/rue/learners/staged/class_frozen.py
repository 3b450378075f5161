"""What is frozen of `StagedSoftmax`: its stages, mixed by what frozen copies of each have lost.

While the learner learns, copies of the stages' mean weights stand still and are tried on the rows on which the linear
stage's own copies are (`rue.learners.softmax.frozen`), in a cascade: they see what the frozen linear stage predicts.
The linear stage takes part as it is frozen by itself, P = q_0 P_linear + Σ_k q_k P_k, with q as for two classes
(`rue.learners.mixture.frozen`), so a stream on which the stages go stale keeps a linear model.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.learners.frozen import Frozen
from rue.learners.mixture.frozen import sharpened
from rue.learners.mixture.layout import COPY, LAST, LATEST, SHARES
from rue.learners.points import T
from rue.learners.staged.layout import LIVE
from rue.streams import blocks

if TYPE_CHECKING:
    from rue.learners.staged.class_point import StagedClassPoint

__all__ = ["FrozenClassStages", "shares_and_risk"]


@dataclasses.dataclass(frozen=True, eq=False)
class FrozenClassStages(Frozen):
    """`Frozen` of several classes in stages: `learner` has the stages over maps."""

    linear: Any = None
    """The `Frozen` of the linear stage."""
    share: float = 1.0
    """Its share."""

    def predict_many(self, X: Any) -> Any:
        """A row of probabilities for each example, as `ClassLearner.predict` gives them."""
        parts = [self._mixed(self.linear.predict_many(block), self.learner.predict_many(block)) for block in blocks(X)]
        return np.concatenate(parts) if parts else self.linear.predict_many(X)

    def predict(self, x: Any) -> Any:
        """The probabilities of one example."""
        return self._mixed(self.linear.predict(x), self.learner.predict(x))

    def _mixed(self, linear: Any, stages: Any) -> Any:
        return self.share * linear + (1.0 - self.share) * stages


def shares_and_risk(point: StagedClassPoint, q: Any) -> tuple[Any, float]:
    """The stages' shares in the frozen model, and what such a model has lost of late, by convexity at most.

    `q` are the shares of the linear stage's own candidates (`rue.learners.softmax.frozen.preferences`).
    """
    candidates, trials = point.raw.candidates[: len(COPY)], point.trials.copy()
    live, trials[:, 0] = float(trials[:, LIVE].sum()), candidates[:, q > 0.0] @ q[q > 0.0]
    runs = point.running > 0.0
    lost, playing = np.where(runs, trials.sum(axis=0), math.inf), np.where(runs, point.members[SHARES], 0.0)
    shares = sharpened(lost, live, float(point.raw.memory[T]), playing)
    shares /= shares.sum()
    used, tried = shares > 0.0, float(point.raw.trial[LAST] + point.raw.trial[LATEST])
    recent = (trials[LAST] + trials[LATEST])[used]
    return shares, float(shares[used] @ recent) / tried if tried > 0.0 else math.nan
