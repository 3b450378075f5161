"""Two classes: ROC AUC and the confusion matrix of a stream, in bounded memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from rue.compiled import inline, kernel
from rue.errors import DataError
from rue.layout import Array, Layout
from rue.runs.counts import finite, ratio

__all__ = ["MOST", "ScoreCounts"]

MOST = 2048
"""The most distinct scores to store for the AUC; if there are more, all lose a binary digit, again and again."""
SLOTS = 2 * MOST
"""The size of the hash table that holds them, a power of 2."""
DIGITS = 53
"""Binary digits of a float64."""
_ZERO, _MINUS_ZERO = np.int64(0), np.int64(-(2**63))
"""The bits of 0.0 and of −0.0, which is the same score."""
_NO_DIGIT = np.int64(-1)
"""What leaves all bits of a score; shifted, all but its last digits."""


@inline
def _cut_key(bits: Any, mask: Any) -> Any:
    """The bits of a score cut by a mask; −0 becomes 0."""
    key = bits & mask
    return _ZERO if key == _MINUS_ZERO else key


@inline
def _first_slot(key: Any) -> Any:
    """Where to look for a score first: multiplicative hashing of 31 bits, so that no product overflows."""
    return ((((key ^ (key >> 29) ^ (key >> 60)) & 0x7FFFFFFF) * 0x5BD1E995) >> 17) & (SLOTS - 1)


@inline
def _distinct(bits: Any, more: Any, mask: Any) -> Any:
    """How many different scores there are among rising ones and a few more, all cut by a mask."""
    many = 0
    for i in range(bits.size):
        many += 1 if i == 0 or _cut_key(bits[i], mask) != _cut_key(bits[i - 1], mask) else 0
    for k in range(more.size):
        new, key = 1, _cut_key(more[k], mask)
        for i in range(bits.size):
            if _cut_key(bits[i], mask) == key:
                new = 0
        many += new
    return many


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
        key, weight = _cut_key(bits[i], mask), weights[i] if weights.size > 0 else 1.0
        slot = _first_slot(key)
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


@kernel
def _fill_table(keys: Any, masses: Any, slots: Any, used: Any, mask: Any, bits: Any, own: Any) -> None:
    """Fill an empty table with scores, cut by a mask, of which `own` has the weights."""
    for i in range(bits.size):
        key = _cut_key(bits[i], mask)
        slot = _first_slot(key)
        while masses[slot, 0] + masses[slot, 1] > 0.0 and keys[slot] != key:
            slot = (slot + 1) & (SLOTS - 1)
        if masses[slot, 0] + masses[slot, 1] == 0.0:
            slots[used[0]] = slot
            used[0] += 1
            keys[slot] = key
        masses[slot, 0] += own[i, 0]
        masses[slot, 1] += own[i, 1]


@kernel
def _digits_for(bits: Any, more: Any, digits: Any, most: Any) -> Any:
    """To how many digits, `digits` at most, rising scores and a few more are cut so that no more than `most` differ."""
    while _distinct(bits, more, _NO_DIGIT << (DIGITS - digits)) > most:
        digits -= 1
    return digits


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
        bits, most = (
            np.ascontiguousarray(p).view(np.int64),
            np.int64(MOST),
        )  # of a Python int Numba has to look at the type
        return int(
            _enter_scores(
                self._keys,
                self._masses,
                self._slots,
                self._used,
                most,
                confusion,
                _mask(self.digits),
                bits,
                p,
                y,
                weights,
            )
        )

    def counted(self) -> tuple[Any, Any]:
        """The distinct scores, rising, and the weights of −1 and +1 at each."""
        scores, new = self._keys.view(np.float64), self._slots[self._order.size : int(self._used[0])]
        if new.size:  # a stable sort is fast where most are in order
            order = np.concatenate((self._order, new))
            self._order = order[np.argsort(scores[order], kind="stable")]
        return scores[self._order], self._masses[self._order]

    def _fill(self, scores: Any, masses: Any, digits: int, more: Any = ()) -> None:
        """Store rising scores and their weights, cut to so many digits, or to fewer until there is room for `more`."""
        bits, new = (np.array(some, dtype=np.float64).view(np.int64) for some in (scores, more))
        self.digits = int(_digits_for(bits, new, np.int64(digits), np.int64(MOST)))
        self._keys, self._masses = np.zeros_like(self._keys), np.zeros_like(self._masses)
        self._used, self._order = np.zeros_like(self._used), self._order[:0]
        own = np.ascontiguousarray(masses, dtype=np.float64)
        _fill_table(self._keys, self._masses, self._slots, self._used, _mask(self.digits), bits, own)

    def auc(self) -> tuple[float | None, float]:
        """The area under the ROC curve and a bound on its error; None if a class has not come, or weights overflow."""
        negative, positive = np.ascontiguousarray(self.counted()[1].T)
        if not negative.any() or not positive.any() or not np.isfinite((negative, positive)).all():
            return None, 0.0
        negative, positive = negative / negative.max(), positive / positive.max()  # so that the sums do not overflow
        negative, positive = negative / negative.sum(), positive / positive.sum()
        equal = 0.5 * float(negative @ positive)
        area = float(positive @ (np.cumsum(negative) - negative)) + equal
        return min(area, 1.0), 0.0 if self.digits == DIGITS else equal

    def values(self) -> dict[str, Any]:
        ((correct, false), (missed, hits)), (area, error) = self.confusion.tolist(), self.auc()
        recalls = [
            share for share in (ratio(correct, correct + false), ratio(hits, missed + hits)) if share is not None
        ]
        return {
            "accuracy": ratio(correct + hits, correct + false + missed + hits),
            "balanced_accuracy": sum(recalls) / len(recalls) if recalls else None,
            "auc": area,
            "auc_error_at_most": error,
            "precision": ratio(hits, false + hits),
            "recall": ratio(hits, missed + hits),
            "f1": ratio(2.0 * hits, (false + hits) + (missed + hits)),
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
    return _NO_DIGIT << np.int64(DIGITS - digits)


def _together(scores: Any, masses: Any) -> tuple[Any, Any]:
    """Distinct scores, each with the sum of its weights; the scores given rise, or stay the same."""
    first = np.flatnonzero(np.append(True, scores[1:] != scores[:-1])[: scores.size])
    columns = [np.add.reduceat(column, first) for column in np.ascontiguousarray(masses.T)] if first.size else masses.T
    return scores[first], np.transpose(columns)
