"""Sets of classes that hold the right one as often as wished: the tracker of E2 (b) moves their threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from rue.errors import SettingsError
from rue.intervals.accounts import Accounts
from rue.intervals.learner import levels_of
from rue.intervals.summary import Summary
from rue.intervals.tracker import SLOTS, cover_sets, debts
from rue.streams import Block

__all__ = ["SetLearner"]


class SetLearner:
    """Makes a set of classes for each round from the probabilities of all, before the label is known.

    The classes are taken in falling order of probability while the probability of those before is at most level + c_t;
    the first is always taken. The score of a label is the probability of the classes before it less the level, and
    c_t, which begins at 0, is moved by the tracker. Sets of a single class that is the right one are outside the debt
    once c_t would leave nothing of them.

    >>> P = np.array([[0.7, 0.2, 0.1], [0.4, 0.35, 0.25]])
    >>> SetLearner(0.6).enter(None, P, np.array([0, 1])).tolist()
    [[True, False, False], [True, True, False]]

    docs/theory.md, E2.
    """

    kind = "classes"
    side = "classes"

    def __init__(self, level: Any = 0.9) -> None:
        self.levels = levels_of(level)
        if len(self.levels) > 1:
            raise SettingsError("interval: sets of classes have one level: give one.")
        self.alphas = 1.0 - np.array(self.levels)
        self.memory = np.zeros((1, len(SLOTS)))
        self.accounts = Accounts(1)

    def enter(self, block: Block | None, probabilities: Any, y: Any, weights: Any = None) -> Any:
        """Which classes are in the set of each round, a column for each class; then the labels are learnt.

        y has the number of the class that came, or −1 for none; a weight of 0 is not learnt. A class of probability 0,
        or beyond the columns, had never come before: it is in no set. A row of NaN has an empty set and is not counted.
        """
        P, y = np.asarray(probabilities, dtype=np.float64), np.asarray(y, dtype=np.int64)
        labelled = (y >= 0) & ~np.isnan(P).any(axis=1)
        if weights is not None and np.size(weights):
            labelled &= np.asarray(weights) > 0.0
        scores, own = self._scores(P), np.full(y.size, np.nan)
        known = np.flatnonzero(labelled & (y < P.shape[1]))
        own[known] = scores[known, y[known]]
        thresholds = np.empty(y.size)
        cover_sets(self.memory, self.alphas[0], own, -self.levels[0], labelled, thresholds)
        sets = self._chosen(scores, thresholds)
        hits = np.zeros(y.size, dtype=np.bool_)
        hits[known] = sets[known, y[known]]
        features = block if block is None or labelled.all() else block.where(labelled)
        self.accounts.enter(features, hits[labelled, None], sets.sum(axis=1)[labelled, None].astype(np.float64))
        return sets

    def _scores(self, P: Any) -> Any:
        """The score of every class, NaN of those that have never come and in rows of NaN."""
        return np.where(P > 0.0, before(P) - self.levels[0], np.nan)

    def predict(self, probabilities: Any) -> Any:
        """The sets of rounds that come next, as if each were the very next one; nothing is learnt."""
        P = np.asarray(probabilities, dtype=np.float64)
        thresholds, nothing = np.empty(len(P)), np.zeros(len(P), dtype=np.bool_)
        cover_sets(self.memory, self.alphas[0], np.zeros(len(P)), -self.levels[0], nothing, thresholds)
        return self._chosen(self._scores(P), thresholds)

    def _chosen(self, scores: Any, thresholds: Any) -> Any:
        return (scores <= thresholds[:, None]) | (scores == -self.levels[0])

    def summaries(self) -> list[Summary]:
        """What was observed and what is promised."""
        bound = float(debts(self.memory, self.alphas)[0])
        return [Summary.of(self.levels[0], self.side, self.memory[0], bound, self.accounts)]

    def summary(self) -> Summary:
        return self.summaries()[0]


def before(P: Any) -> Any:
    """For each class the probability of all that are more probable; of equal ones the first counts as more probable."""
    order = np.argsort(-P, axis=1, kind="stable")
    falling = np.take_along_axis(P, order, axis=1)
    sums = np.cumsum(falling, axis=1) - falling
    if P.shape[1]:
        sums[:, 0] = 0.0
    out = np.empty_like(sums)
    np.put_along_axis(out, order, sums, axis=1)
    return out
