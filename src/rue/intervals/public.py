"""`prediction_intervals`: intervals for the forecasts of any model."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.intervals.learner import IntervalLearner
from rue.intervals.summary import Summary
from rue.streams import Block, as_labels, floats
from rue.streams.block import as_array

__all__ = ["PredictionIntervals", "prediction_intervals"]


@dataclasses.dataclass(frozen=True, eq=False)
class PredictionIntervals:
    """Intervals for forecasts, each made before its label was known; `prediction_intervals` returns it.

    >>> import rue
    >>> found = rue.prediction_intervals([1.0, 2.0, 1.5], [1.0, 1.0, 1.0], level=0.8)
    >>> found.levels, found.lower.shape, bool((found.lower <= found.upper).all())
    ((0.8,), (3,), True)
    """

    lower: Any
    """The lower ends, −∞ with side="upper"; with several levels a column for each, the levels rising."""
    upper: Any
    """The upper ends, likewise; ∞ with side="lower"."""
    levels: tuple[float, ...]
    """The wished shares of labels inside, rising."""
    side: str
    """`both`, or `upper` or `lower` for intervals with one end."""
    summaries: tuple[Summary, ...]
    """What was promised and what was observed, for each level."""
    learner: IntervalLearner = dataclasses.field(repr=False)
    """What made them: `learner.enter` goes on with more."""

    @property
    def covered(self) -> Any:
        """The share of labels inside, for each level if there are several."""
        return self._each("covered")

    @property
    def promised_within(self) -> Any:
        """By how much `covered` may differ from the level, by proof, whatever the labels and the forecasts."""
        return self._each("promised_within")

    @property
    def mean_width(self) -> Any:
        """With one side, the mean distance of the end from the forecast."""
        return self._each("mean_width")

    def _each(self, name: str) -> Any:
        found = [getattr(summary, name) for summary in self.summaries]
        return found[0] if len(found) == 1 else np.array(found)

    def __str__(self) -> str:
        return "\n".join(map(str, self.summaries))


def prediction_intervals(
    y: Any, forecasts: Any, level: Any = 0.9, *, X: Any = None, side: str = "both", weights: Any = None
) -> PredictionIntervals:
    """Intervals for the forecasts of any model, which hold nearly the wished share of the labels on any sequence (E2).

    y and `forecasts` are in the order of time. The interval of round t is made from X's row t, the forecast, and the
    rounds before; a label that is NaN has an interval and is not learnt. Nothing is assumed: the labels may drift,
    jump, have heavy tails, or be chosen by an opponent that sees the interval. No rate and no range is to be chosen.

    `level` is the wished share, or several: their intervals do not cross. `side` is `both`, or `upper` or `lower` for
    one end. `X` (an array or a sparse matrix) makes intervals as wide as the features say. `weights` are those of
    the rounds for the learner of the widths.

    >>> import numpy as np, rue
    >>> rng = np.random.default_rng(0)
    >>> y = np.cumsum(rng.standard_t(2, size=5000))
    >>> intervals = rue.prediction_intervals(y[1:], y[:-1], level=0.8)
    >>> bool(abs(intervals.covered - 0.8) <= intervals.promised_within)
    True
    """
    y, forecasts = floats(as_labels(y), "labels"), floats(as_array(forecasts, "forecasts"), "forecasts")
    if y.ndim != 1 or y.shape != forecasts.shape:
        raise DataError(f"the labels have shape {y.shape} and the forecasts {forecasts.shape}: one forecast a label.")
    learner = IntervalLearner(level, side)
    block = Block(np.empty((y.size, 0)) if X is None else X, y, weights)
    lower, upper = learner.enter(None if X is None else block, forecasts, y, block.column_of_weights())
    return PredictionIntervals(lower, upper, learner.levels, side, tuple(learner.summaries()), learner)
