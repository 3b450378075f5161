"""`Watch`: what a run may watch besides its loss: prediction intervals (E2) and alarms (B17)."""

from __future__ import annotations

import copy
import math
from typing import Any, Self

import numpy as np

from rue.errors import DataError, SettingsError, shown
from rue.intervals import IntervalLearner, SetLearner
from rue.intervals.learner import SIDES, levels_of
from rue.losses import Loss
from rue.regret.risk.alarms import Alarm, Change
from rue.streams import Block

__all__ = ["FIRST_RESIDUALS", "Watch"]

FIRST_RESIDUALS = 256
"""After so many numbers the bound of their residuals is set for alarms: `TIMES` times their mean size."""
TIMES = 8.0
"""Alarms are about losses in [0, bound] (B17), and residuals have no bound: larger ones count as this many means."""


class Watch:
    """Prediction intervals, or sets of classes, and alarms of a run; each only if asked for.

    `interval` is the wished share of labels inside, or several; `side` is `both`, `upper` or `lower`; `alarm` the mean
    number of rounds between two false alarms. Watched are the Brier score where there are probabilities, mistakes for
    other losses of classes, and for numbers abs(y − p), clipped at eight times its mean over the first 256 rounds.

    >>> watch = Watch(interval=0.9, alarm=1e6)
    >>> watch.asked
    True
    """

    def __init__(self, interval: Any = None, side: str = "both", alarm: float | None = None) -> None:
        self.levels = None if interval is None else levels_of(interval)
        if side not in SIDES:
            raise SettingsError(f"interval: side is 'both', 'upper' or 'lower', not {shown(side)}.")
        self.side, self.rounds = side, None if alarm is None else Alarm(alarm).rounds
        self.intervals: Any = None
        """An `IntervalLearner`, or for classes a `SetLearner`; None until the first examples, or if not asked for."""
        self.alarm: Alarm | None = None
        """None until the first examples (for numbers, until the bound is known), or if not asked for."""
        self.first = np.zeros(2)
        """How many residuals there were before the bound was set, and the sum of their sizes."""
        self.watched = ""
        """What alarms are about, in words."""
        self._found: list[tuple[int, Any]] = []
        """What was found for the rows of a block so far: from which row on, and lower and upper ends, or sets."""

    @property
    def asked(self) -> bool:
        """Whether there is anything to watch."""
        return self.levels is not None or self.rounds is not None

    def copy(self) -> Self:
        """An independent watch in the same state."""
        return copy.deepcopy(self)

    def begin(self, loss: Loss) -> None:
        """Settle what is watched, which the loss decides; refuses what cannot be."""
        if self.levels is not None and self.intervals is None:
            if loss.task == "regress":
                self.intervals = IntervalLearner(self.levels, self.side)
            elif loss.task == "classify" and not loss.log_odds:
                raise SettingsError(
                    f"interval: sets of classes need probabilities: learn with logistic loss, not {loss!r}."
                )
            elif self.side != "both":
                raise SettingsError("interval: sets of classes have no side: leave side out.")
            else:
                self.intervals = SetLearner(self.levels)
        if self.rounds is not None and self.alarm is None:
            if loss.task != "regress":
                self.alarm = Alarm(self.rounds)
            brier = loss.task == "multiclass" or loss.log_odds
            self.watched = "the Brier score" if brier else "mistakes" if loss.task != "regress" else "abs(y − p)"

    def enter(self, loss: Loss, block: Block, predictions: Any, probabilities: Any, row: int) -> None:
        """Learn rows, with the predictions made before each update (NaN: not learnt), that begin at a row of a block.

        `probabilities` has a column for each class where there are more than two, and is None else.
        """
        if not self.asked:
            return
        self.begin(loss)
        y, weights = block.labels(), block.column_of_weights()
        P = self._probabilities(loss, predictions, probabilities)
        if loss.task == "regress":
            p = np.exp(np.minimum(predictions, 700.0)) if loss.log_mean else predictions  # beyond 709 it is infinite
            if self.intervals is not None:
                self._found.append((row, self.intervals.enter(block, p, y, weights)))
            losses: Any = np.abs(y - p)
        else:
            classes = y - 1.0 if loss.task == "multiclass" else y > 0.0
            known = np.isfinite(predictions) & np.isfinite(y)
            classes = np.where(known, classes, -1).astype(np.int64)
            if self.intervals is not None:
                self._found.append((row, self.intervals.enter(block, P, classes, weights)))
            losses = y * predictions <= 0.0 if P is None else _brier(P, classes)
        if self.rounds is not None:
            counted = np.isfinite(predictions) & np.isfinite(losses)
            counted &= weights > 0.0 if weights.size else True
            self._watch(np.asarray(losses, dtype=np.float64)[counted])

    def predict(self, loss: Loss, block: Block, predictions: Any, frozen: bool = True) -> Any:
        """For rows and their predictions: lower and upper ends, or sets; nothing is learnt, and nothing promised.

        With `frozen` by the models that stay when learning stops. Of more than two classes `predictions` are as
        `Frozen.predict_many` has them.
        """
        if self.intervals is None:
            raise SettingsError("predict_interval: the model was learnt without intervals: learn it with interval=0.9.")
        if loss.task != "regress":
            many = predictions[:, 1:] if loss.task == "multiclass" else None
            return self.intervals.predict(self._probabilities(loss, predictions, many))
        p = np.exp(np.minimum(predictions, 700.0)) if loss.log_mean else predictions
        return self.intervals.predict(block, p, frozen)

    def columns(self, task: str) -> list[str]:
        """What its columns are called in a file of predictions; [] without intervals."""
        if self.levels is None:
            return []
        if task != "regress":
            return ["set"]
        ends = [end for end in ("lower", "upper") if self.side in ("both", end)]
        many = len(self.levels) > 1
        return [f"{end} {level:g}" if many else end for level in self.levels for end in ends]

    def cells(self, found: Any) -> Any:
        """The numbers of those columns, a row for each row."""
        ends = [column for end, column in zip(("lower", "upper"), found, strict=True) if self.side in ("both", end)]
        stacked = [end if end.ndim == 2 else end[:, None] for end in ends]
        return np.stack(stacked, axis=2).reshape(len(stacked[0]), -1)

    def _probabilities(self, loss: Loss, predictions: Any, probabilities: Any) -> Any:
        """A column for each class, NaN in rows without a prediction; None where there are none."""
        if loss.task == "multiclass":
            if probabilities is None:
                raise DataError("interval: the probabilities of so many classes do not fit into memory.")
            return probabilities
        if not loss.log_odds:
            return None
        yes = 1.0 / (1.0 + np.exp(-np.clip(predictions, -700.0, 700.0)))
        return np.column_stack([1.0 - yes, yes])

    def _watch(self, losses: Any) -> None:
        """Enter losses for alarms; of numbers, set their bound when there are enough."""
        if self.alarm is None:
            assert self.rounds is not None
            while self.alarm is None and losses.size:
                take = max(1, FIRST_RESIDUALS - int(self.first[0]))
                part, losses = losses[:take], losses[take:]
                self.first[0] += part.size
                # One after the other, which `sum` would not do: the bits are the same for blocks of any size.
                self.first[1] = np.cumsum(np.concatenate((self.first[1:], part)))[-1]
                if self.first[0] >= FIRST_RESIDUALS and 0.0 < self.first[1] < math.inf:
                    self._set_bound()
        if self.alarm is not None:
            self.alarm.enter(np.minimum(losses, self.alarm.bound))

    def _set_bound(self) -> None:
        assert self.rounds is not None
        self.alarm = Alarm(self.rounds, TIMES * self.first[1] / self.first[0])
        self.alarm.seen = int(self.first[0])

    def take(self, rows: int) -> Any:
        """What was found for a block of so many rows, and begin anew: (lower, upper), or sets; None if nothing was.

        NaN, or an empty set, where there was no prediction.
        """
        found, self._found = self._found, []
        if not found:
            return None
        if isinstance(self.intervals, SetLearner):
            sets = np.zeros((rows, max(part.shape[1] for _, part in found)), dtype=np.bool_)
            for row, part in found:
                part = part[: max(0, rows - row)]
                sets[row : row + len(part), : part.shape[1]] = part
            return sets
        ends = tuple(np.full((rows, *found[0][1][0].shape[1:]), np.nan) for _ in range(2))
        for row, part in found:
            for end, column in zip(ends, part, strict=True):
                column = column[: max(0, rows - row)]
                end[row : row + len(column)] = column
        return ends

    @property
    def changes(self) -> list[Change]:
        """The alarms so far."""
        return [] if self.alarm is None else self.alarm.changes

    @property
    def sentences(self) -> list[str]:
        """The alarms in words."""
        return [f"{change}" for change in self.changes]

    def report(self, names: Any = None) -> dict[str, Any]:
        """What the report has of it: `interval` and `alarms`, None where not asked for."""
        intervals = None
        if self.intervals is not None:
            each = [summary.to_dict(names) for summary in self.intervals.summaries()]
            intervals = each[-1] | ({"levels": each} if len(each) > 1 else {})
        alarms = None
        if self.rounds is not None:
            alarms = {
                "rounds": self.rounds,
                "watched": self.watched,
                "bound": None if self.alarm is None else self.alarm.bound,
                "alarms": [change._asdict() for change in self.changes],
            }
        return {"interval": intervals, "alarms": alarms}


def _brier(P: Any, classes: Any) -> Any:
    """½ Σ_k (P_k − 1{k})², with one more class for what a row lacks to 1: between 0 and 1."""
    unseen = np.maximum(0.0, 1.0 - P.sum(axis=1))
    right = np.where(classes >= 0, np.take_along_axis(P, np.maximum(classes, 0)[:, None], axis=1)[:, 0], np.nan)
    return np.clip(0.5 * ((P * P).sum(axis=1) + unseen * unseen + 1.0 - 2.0 * right), 0.0, 1.0)
