"""Two classes: ROC AUC and the confusion matrix of a stream, in bounded memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from rue.compiled import kernel
from rue.errors import DataError
from rue.layout import Array, Layout
from rue.runs.counts import finite, mean_of_some, ratio

__all__ = ["MOST", "ScoreCounts"]

MOST = 2048
"""The most distinct scores to store for the AUC; if there are more, all lose a binary digit, again and again."""
SLOTS = 2 * MOST
"""The size of the hash table that holds them, a power of 2."""
DIGITS = 53
"""Binary digits of a float64."""
_ZERO, _MINUS_ZERO = np.int64(0), np.int64(-(2**63))
"""The bits of 0.0 and of −0.0, which is the same score."""


@kernel
def _enter_scores(
    keys: Any,
    masses: Any,
    slots: Any,
    used: Any,
    most: Any,
    confusion: Any,
    mask: Any,
    bits: Any,
    p: Any,
    y: Any,
    weights: Any,
) -> Any:
    """Add predictions to the hash table and to the confusion matrix; stops at the row that finds the table full.

    The table is full when it has `most` scores. `bits` are those of p; `mask` leaves the digits that scores are cut to.
    """
    for i in range(p.size):
        key, weight = bits[i] & mask, weights[i] if weights.size > 0 else 1.0
        if key == _MINUS_ZERO:
            key = _ZERO
        # Multiplicative hashing of 31 bits, so that no product overflows.
        slot = ((((key ^ (key >> 29) ^ (key >> 60)) & 0x7FFFFFFF) * 0x5BD1E995) >> 17) & (SLOTS - 1)
        mass = masses[slot, 0] + masses[slot, 1]
        while mass > 0.0 and keys[slot] != key:
            slot = (slot + 1) & (SLOTS - 1)
            mass = masses[slot, 0] + masses[slot, 1]
        if mass == 0.0:
            if used[0] == most:
                return i
            slots[used[0]] = slot
            used[0] += 1
            keys[slot] = key
        true = 1 if y[i] > 0.0 else 0
        predicted = true if y[i] * p[i] > 0.0 else 1 - true
        masses[slot, true] += weight
        confusion[true, predicted] += weight
    return p.size


@dataclasses.dataclass(eq=False)
class ScoreCounts:
    """Two classes: how much weight each score had of either class, and the confusion matrix.

    A score of 0 predicts neither class, and counts as the wrong one, as in `mistakes` (docs/theory.md, Q4).

    ROC AUC is P(p > q) + ½P(p = q) for the scores p of a positive and q of a negative example, drawn by weight. Up to
    `MOST` distinct scores it is exact. With more, scores are cut to as many binary digits as leave at most `MOST`
    different ones; every pair of examples that this makes equal is counted as ½ instead of 0 or 1, so the error is at
    most ½ Σ_b P_b·N_b / (P·N), where P_b and N_b are the weights of both classes at the cut score b.
    """

    confusion: Any = dataclasses.field(default_factory=lambda: np.zeros((2, 2)))
    """The weight of the examples of each true class (rows: −1, +1) and predicted class (columns)."""
    digits: int = DIGITS
    """Binary digits that scores are cut to."""
    _keys: Any = dataclasses.field(default_factory=lambda: np.zeros(SLOTS, dtype=np.int64), repr=False)
    _masses: Any = dataclasses.field(default_factory=lambda: np.zeros((SLOTS, 2)), repr=False)
    _slots: Any = dataclasses.field(default_factory=lambda: np.zeros(SLOTS, dtype=np.int64), repr=False)
    """The slots in use, in the order in which they were taken."""
    _order: Any = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)
    """The first of them, by rising score."""
    _used: Any = dataclasses.field(default_factory=lambda: np.zeros(1, dtype=np.int64), repr=False)

    names: ClassVar[tuple[str, ...]] = ("accuracy", "balanced_accuracy", "auc", "precision", "recall", "f1")
    layout: ClassVar[Layout] = Layout(
        Array("confusion", "Weights by true and predicted class.", ("class", "class"), merge="added", least=0.0),
        Array("scores", "The distinct scores, rising.", ("score",)),
        Array("masses", "The weight of each class at each score.", ("score", "class"), least=0.0),
    )

    def enter(self, p: Any, y: Any, weights: Any, probabilities: Any = None) -> None:
        begin = 0
        while begin < p.size:
            begin += self._add(p[begin:], y[begin:], weights[begin:], self.confusion)
            if begin < p.size:
                self._fill(*self.counted(), self.digits - 1, p[begin : begin + 1])

    def _add(self, p: Any, y: Any, weights: Any, confusion: Any) -> int:
        table, bits = (self._keys, self._masses, self._slots, self._used, MOST), np.ascontiguousarray(p).view(np.int64)
        return int(_enter_scores(*table, confusion, _mask(self.digits), bits, p, y, weights))

    def counted(self) -> tuple[Any, Any]:
        """The distinct scores, rising, and the weights of −1 and +1 at each."""
        scores, new = self._keys.view(np.float64), self._slots[self._order.size : int(self._used[0])]
        if new.size:  # sorting all of them at every look took most of the time
            new = new[np.argsort(scores[new])]
            self._order = np.insert(self._order, np.searchsorted(scores[self._order], scores[new]), new)
        return scores[self._order], self._masses[self._order]

    def _fill(self, scores: Any, masses: Any, digits: int, more: Any = ()) -> None:
        """Store rising scores and their weights, cut to so many digits, or to fewer until there is room for `more`."""
        while _distinct(_cut_to(scores, digits), _cut_to(np.asarray(more, dtype=np.float64), digits)) > MOST:
            digits -= 1
        scores, masses = _together(_cut_to(scores, digits), masses)
        self.digits, self._keys, self._masses = digits, np.zeros_like(self._keys), np.zeros_like(self._masses)
        self._used, self._order, nowhere = np.zeros_like(self._used), self._order[:0], np.zeros((2, 2))
        for column, sign in enumerate((-1.0, 1.0)):
            there = masses[:, column] > 0.0
            signs = np.full(np.count_nonzero(there), sign)
            self._add(scores[there], signs, np.ascontiguousarray(masses[there, column]), nowhere)

    def auc(self) -> tuple[float | None, float]:
        """The area under the ROC curve and a bound on its error; None as long as one class alone has come."""
        negative, positive = np.ascontiguousarray(self.counted()[1].T)
        if not negative.any() or not positive.any():
            return None, 0.0
        negative, positive = negative / negative.sum(), positive / positive.sum()
        equal = 0.5 * float(negative @ positive)
        area = float(positive @ (np.cumsum(negative) - negative)) + equal
        return min(area, 1.0), 0.0 if self.digits == DIGITS else equal

    def values(self) -> dict[str, Any]:
        hits = self.confusion[1, 1]
        predicted, true = self.confusion.sum(axis=0), self.confusion.sum(axis=1)
        area, error = self.auc()
        return {
            "accuracy": ratio(np.trace(self.confusion), self.confusion.sum()),
            "balanced_accuracy": mean_of_some(np.diag(self.confusion), true),
            "auc": area,
            "auc_error_at_most": error,
            "precision": ratio(hits, predicted[1]),
            "recall": ratio(hits, true[1]),
            "f1": ratio(2.0 * hits, predicted[1] + true[1]),
            "confusion": self.confusion.tolist(),
        }

    def stored(self) -> dict[str, Any]:
        scores, masses = self.counted()
        return {"confusion": self.confusion, "scores": scores, "masses": masses, "digits": np.array([self.digits])}

    @classmethod
    def read(cls, confusion: Any, scores: Any, masses: Any, digits: Any) -> ScoreCounts:
        """From the arrays of a model file; refuses what is impossible."""
        read = cls(finite(confusion, (2, 2)).copy())
        n, places = scores.size, finite(digits, (1,))
        whole = int(places[0])
        if not 1 <= whole <= DIGITS or n > MOST or not (np.diff(finite(scores, (n,))) > 0.0).all():
            raise DataError("the scores of its metrics are impossible")
        if not (finite(masses, (n, 2)) >= 0.0).all() or not (masses.sum(axis=1) > 0.0).all():
            raise DataError("the scores of its metrics are impossible")
        read._fill(scores, masses, whole)
        return read

    def merge(self, parts: Sequence[ScoreCounts]) -> ScoreCounts:
        states = (self, *parts)
        confusion = self.layout["confusion"].merged(self.confusion, [part.confusion for part in parts])
        counted = [state.counted() for state in states]
        # The base is in every part: base + Σ (part − base) has it 1 − len(parts) times by itself.
        signs = [1.0 - len(parts), *([1.0] * len(parts))]
        scores = np.concatenate([scores for scores, _ in counted])
        masses = np.concatenate([sign * masses for sign, (_, masses) in zip(signs, counted, strict=True)])
        digits = min(state.digits for state in states)
        order = np.argsort(scores, kind="stable")
        scores, masses = _together(_cut_to(scores[order], digits), masses[order])
        masses = np.maximum(masses, 0.0)  # rounding may leave less than nothing
        there = masses.sum(axis=1) > 0.0
        merged = ScoreCounts(confusion)
        merged._fill(scores[there], masses[there], digits)
        return merged


def _cut_to(scores: Any, digits: int) -> Any:
    """Scores without all but their first binary digits; −0 becomes 0."""
    return (np.ascontiguousarray(scores).view(np.int64) & _mask(digits)).view(np.float64) + 0.0


def _mask(digits: int) -> Any:
    """What leaves the first digits of a float64's bits."""
    return np.int64(-1 << (DIGITS - digits))


def _together(scores: Any, masses: Any) -> tuple[Any, Any]:
    """Distinct scores, each with the sum of its weights; the scores given rise, or stay the same."""
    first = np.flatnonzero(np.append(True, scores[1:] != scores[:-1])[: scores.size])
    columns = [np.add.reduceat(column, first) for column in np.ascontiguousarray(masses.T)] if first.size else masses.T
    return scores[first], np.transpose(columns)


def _distinct(scores: Any, more: Any) -> int:
    """How many different ones there are among rising scores and a few more."""
    new = [score for score in more.tolist() if not (scores == score).any()]
    return int(scores.size > 0) + int(np.count_nonzero(scores[1:] != scores[:-1])) + len(new)
