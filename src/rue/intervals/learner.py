"""Intervals that learn: quantiles of the residual on the features, corrected by the tracker of E2.

What is widened are quantile mixtures of the *residual* y − p on the features, the forecast p, and running means of the
residual and of its size at rates 0.3, 0.03 and 0.003: so an interval is as wide as the features and the recent past
say. Bare, they cover less than they should on streams that change; the tracker (`rue.intervals.tracker`) puts it right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from rue.compiled import kernel
from rue.errors import SettingsError, shown
from rue.intervals.accounts import Accounts
from rue.intervals.summary import Summary
from rue.intervals.tracker import SEEN, SLOTS, cover, debts
from rue.learners import Mixture
from rue.losses import Quantile
from rue.streams import Block
from rue.streams.block import floats
from rue.threads import helpers

__all__ = ["EXTRA", "SIDES", "IntervalLearner", "levels_of"]

SIDES = ("both", "upper", "lower")
LARGE = 2048
"""From so many rows on half of the mixtures learn on a helper thread."""
RATES = (0.3, 0.03, 0.003)
EXTRA = 1 + 2 * len(RATES)
"""How many features stand before the stream's own: the forecast, and the running means."""
BUDGET = 200
"""Bytes a feature of each quantile mixture: four rates instead of eight take a third less time; the interval scores on
bike and elec2 stay within 1 %."""


def levels_of(level: Any) -> tuple[float, ...]:
    """One level or several, rising; refuses those that are no share between 0 and 1."""
    given = [level] if np.ndim(level) == 0 else list(level)
    try:
        levels = [float(value) for value in given]
    except (TypeError, ValueError):
        levels = []
    if not levels or not all(0.0 < value < 1.0 for value in levels) or len(set(levels)) < len(levels):
        raise SettingsError(f"interval: a level is a share between 0 and 1 such as 0.9, not {shown(level)}.")
    return tuple(sorted(levels))


@kernel
def _remember(means: Any, forecasts: Any, y: Any, labelled: Any, rates: Any, out: Any) -> None:
    """For each round the forecast and the running means of the rounds before it; then enter its residual."""
    many = rates.size
    for i in range(y.size):
        out[i, 0] = forecasts[i]
        for k in range(2 * many):
            out[i, 1 + k] = means[1 + k]
        r = y[i] - forecasts[i]
        if labelled[i]:
            means[0] += 1.0
            for k in range(many):
                rate = max(rates[k], 1.0 / means[0])
                means[1 + k] += rate * (r - means[1 + k])
                means[1 + many + k] += rate * (abs(r) - means[1 + many + k])


class IntervalLearner:
    """Makes an interval for each round before its label is known, then learns from the label.

    State is a value, as a learner's: the same rounds give the same bits, in blocks of any size or one by one.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=2000)
    >>> learner = IntervalLearner(0.9)
    >>> lower, upper = learner.enter(None, np.zeros(2000), y)
    >>> bool(abs(np.mean((lower <= y) & (y <= upper)) - 0.9) <= learner.summary().promised_within)
    True

    docs/theory.md, E2.
    """

    kind = "numbers"

    def __init__(self, level: Any = 0.9, side: str = "both") -> None:
        if side not in SIDES:
            raise SettingsError(f"interval: side is 'both', 'upper' or 'lower', not {shown(side)}.")
        self.levels, self.side = levels_of(level), side
        self.alphas = 1.0 - np.array(self.levels)
        self.learners = [Mixture(Quantile(tau), budget=BUDGET) for tau in self._taus()]
        """Those of the lower ends, a learner for each level, then those of the upper ends."""
        self.means = np.zeros(EXTRA)
        """The number of residuals, their running means, and those of their sizes."""
        self.memory = np.zeros((len(self.levels), len(SLOTS)))
        self.accounts = Accounts(len(self.levels))

    def _taus(self) -> Iterable[float]:
        shares = self.alphas / 2.0 if self.side == "both" else self.alphas
        if self.side != "upper":
            yield from shares.tolist()
        if self.side != "lower":
            yield from (1.0 - shares).tolist()

    def enter(self, block: Block | None, forecasts: Any, y: Any, weights: Any = None) -> tuple[Any, Any]:
        """The lower and the upper ends for some rounds, made one after the other, each before its label is learnt.

        A column for each level, if there are several. `block` has the features, if any; a label that is NaN, or a
        weight of 0, is not learnt. Where the forecast is NaN, so are the ends.
        """
        forecasts, y = (floats(np.asarray(column), what) for column, what in ((forecasts, "forecasts"), (y, "labels")))
        good = np.isfinite(forecasts)
        whole = bool(good.all())
        if not whole:
            block = None if block is None else block.where(good)
            forecasts, y = forecasts[good], y[good]
            weights = weights if weights is None or not np.size(weights) else weights[good]
        lower, upper = (np.full((good.size, len(self.levels)), np.nan) for _ in range(2))
        if forecasts.size:
            low, high = self._enter(block, forecasts, y, weights)
            lower[good], upper[good] = low, high
        return (lower[:, 0], upper[:, 0]) if len(self.levels) == 1 else (lower, upper)

    def _enter(self, block: Block | None, forecasts: Any, y: Any, weights: Any) -> tuple[Any, Any]:
        labelled = np.isfinite(y)
        if weights is not None and np.size(weights):
            labelled &= weights > 0.0
        extra = np.empty((y.size, EXTRA))
        _remember(self.means, forecasts, y, labelled, np.array(RATES), extra)
        residuals = np.where(labelled, y - forecasts, 0.0)
        if weights is None or not np.size(weights):
            weights = None if labelled.all() else labelled.astype(np.float64)
        else:
            weights = np.where(labelled, weights, 0.0)
        rows = _with_extra(block, extra, residuals, weights)
        lo, hi = self._ends(forecasts, self._learn(rows))
        lower, upper = np.empty_like(lo), np.empty_like(hi)
        before = self.memory[0, SEEN]
        cover(self.memory, self.alphas, lo, hi, y, labelled, lower, upper)
        labelled &= ~np.isnan(lo + hi).any(axis=1)  # NaN where numbers are too large for a mixture to learn from
        assert self.memory[0, SEEN] - before == np.count_nonzero(labelled)
        inside = (lower <= y[:, None]) & (y[:, None] <= upper)
        everything = bool(labelled.all())
        seen = slice(None) if everything else labelled
        features = block if block is None or everything else block.where(labelled)
        self.accounts.enter(features, inside[seen], self._widths(lower, upper, forecasts)[seen])
        return lower, upper

    def _learn(self, rows: Block) -> list[Any]:
        """What each quantile mixture predicts of each row, before it learns the row."""
        if len(rows) < LARGE:
            return [np.asarray(learner.run(rows)) for learner in self.learners]
        rows.rows(True)  # as kernels read them, once for all
        half = len(self.learners) // 2
        with helpers(1, "rue-intervals") as executor:
            later = [executor.submit(learner.run, rows) for learner in self.learners[half:]]
            found = [learner.run(rows) for learner in self.learners[:half]]
            return [np.asarray(column) for column in [*found, *(future.result() for future in later)]]

    def _ends(self, forecasts: Any, quantiles: list[Any]) -> tuple[Any, Any]:
        """The ends of the intervals that are to be widened, a column for each level."""
        many, p = len(self.levels), forecasts[:, None]
        columns = p + np.column_stack(quantiles)
        lo = np.full((len(p), many), -math.inf) if self.side == "upper" else columns[:, :many]
        hi = np.full((len(p), many), math.inf) if self.side == "lower" else columns[:, -many:]
        return np.ascontiguousarray(lo), np.ascontiguousarray(hi)

    def _widths(self, lower: Any, upper: Any, forecasts: Any) -> Any:
        """How wide intervals are; with one side, how far the end is from the forecast."""
        if self.side == "both":
            return upper - lower
        return upper - forecasts[:, None] if self.side == "upper" else forecasts[:, None] - lower

    def predict(self, block: Block | None, forecasts: Any, frozen: bool = False) -> tuple[Any, Any]:
        """The ends for rounds that come next, as if each were the very next one; nothing is learnt.

        With `frozen` by the models that stay when learning stops; nothing is promised of those.
        """
        forecasts = floats(np.asarray(forecasts), "forecasts")
        good = np.isfinite(forecasts)
        lower, upper = (np.full((good.size, len(self.levels)), np.nan) for _ in range(2))
        if good.any():
            some = block if block is None or good.all() else block.where(good)
            p = forecasts[good]
            rows = _with_extra(some, np.column_stack([p, np.tile(self.means[1:], (p.size, 1))]), None, None)
            models = [learner.frozen() if frozen else learner for learner in self.learners]
            lo, hi = self._ends(p, [np.asarray(model.predict_many(rows)) for model in models])
            low, high = np.empty_like(lo), np.empty_like(hi)
            cover(self.memory, self.alphas, lo, hi, np.zeros(p.size), np.zeros(p.size, dtype=np.bool_), low, high)
            lower[good], upper[good] = low, high
        return (lower[:, 0], upper[:, 0]) if len(self.levels) == 1 else (lower, upper)

    def summaries(self) -> list[Summary]:
        """What was observed and what is promised, for each level."""
        bounds = debts(self.memory, self.alphas)
        return [
            Summary.of(level, self.side, memory, float(bound), self.accounts, k)
            for k, (level, memory, bound) in enumerate(zip(self.levels, self.memory, bounds, strict=True))
        ]

    def summary(self) -> Summary:
        """That of the only level, or of the highest."""
        return self.summaries()[-1]


def _with_extra(block: Block | None, extra: Any, y: Any, weights: Any) -> Block:
    """The rows of a block with more features before their own."""
    return Block(extra if block is None else Block(block.X).with_first(extra).X, y, weights)
