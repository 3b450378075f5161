"""Baselines: the loss of the best constant prediction, and of predicting the last label again.

A report shows both next to the learner's loss. On a stream whose labels hardly change, a low error is no achievement.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rue.compiled import kernel, twin
from rue.losses import Loss

__all__ = ["Baselines"]

MOST = 65_536
"""The most distinct labels to store; if there are more, all lose their last four binary digits, again and again."""

# Of the labels so far: the weight of those below and above 0 (of two classes), of the first one, of those that repeat
# the last one and of the others; for numbers Σ weight·ℓ(y_{t−1}, y_t), Σ weight, the mean, Σ weight·(y − mean)²; and
# the last label.
NEGATIVE, POSITIVE, FIRST, SAME, OTHER, REPEATED, MASS, MEAN, SPREAD, LAST = range(10)


@kernel
def _enter_numbers(loss: Any, sums: Any, y: Any, weights: Any) -> None:
    for i in range(y.size):
        last, sums[LAST] = sums[LAST], y[i]
        sums[MASS] += weights[i]
        sums[REPEATED] += weights[i] * loss.value(0.0 if math.isnan(last) else loss.target(last), y[i])
        away = y[i] - sums[MEAN]
        sums[MEAN] += away * weights[i] / sums[MASS]
        sums[SPREAD] += weights[i] * away * (y[i] - sums[MEAN])


def _enter_classes(sums: Any, y: Any, weights: Any) -> None:
    """One weight after the other is added, so that blocks do not matter."""
    before = np.concatenate(([sums[LAST]], y[:-1]))
    first, same = np.isnan(before), before == y
    parts = {MASS: np.ones_like(same), POSITIVE: y > 0.0, NEGATIVE: y <= 0.0}
    parts |= {FIRST: first, SAME: same, OTHER: ~(first | same)}
    for place, which in parts.items():
        sums[place] = np.cumsum(np.concatenate(([sums[place]], weights[which])))[-1]
    sums[LAST] = y[-1]


def _count_classes(sums: Any, y: Any) -> None:
    """The same where every weight is 1."""
    first, positive = int(math.isnan(sums[LAST])), np.count_nonzero(y > 0.0)
    same = int(y[0] == sums[LAST]) + np.count_nonzero(y[1:] == y[:-1])
    sums[[MASS, POSITIVE, NEGATIVE]] += y.size, positive, y.size - positive
    sums[[FIRST, SAME, OTHER]] += first, same, y.size - first - same
    sums[LAST] = y[-1]


def _first_moment(part: Baselines, near: float) -> float:
    """Σ weight·(y − near)."""
    return float(part.sums[MASS] * (part.sums[MEAN] - near))


def _second_moment(part: Baselines, near: float) -> float:
    """Σ weight·(y − near)²."""
    return float(part.sums[SPREAD]) + _first_moment(part, near) * float(part.sums[MEAN] - near)


@kernel
def _total(loss: Any, c: Any, y: Any, weights: Any) -> Any:
    """Σ weight·ℓ(c, y)."""
    total = 0.0
    for i in range(y.size):
        total += weights[i] * loss.value(c, y[i])
    return total


@dataclasses.dataclass
class Baselines:
    """Sums over the labels of a stream in their order, which give both baselines without storing the stream."""

    sums: Any = dataclasses.field(default_factory=lambda: np.array([0.0] * LAST + [math.nan]))
    values: Any = dataclasses.field(default_factory=lambda: np.empty(0))
    """For losses whose best constant is no mean: distinct labels, cut to `digits` binary digits if there are many."""
    masses: Any = dataclasses.field(default_factory=lambda: np.empty(0))
    """The weight of each."""
    digits: int = 53

    def enter(self, loss: Loss, y: Any, weights: Any, predictions: Any) -> None:
        """Add consecutive labels, as the loss takes them; those without a prediction (NaN) are left out."""
        left_out = np.isnan(predictions)
        if weights.size:
            left_out |= ~(weights > 0.0)
        if left_out.any():
            y, weights = y[~left_out], weights[~left_out] if weights.size else weights
        if not y.size:
            return
        masses = weights if weights.size or loss.task == "classify" else np.ones(y.size)
        if loss.task == "regress":
            _enter_numbers(loss, self.sums, y, masses)
        elif weights.size:
            _enter_classes(self.sums, y, weights)
        else:
            _count_classes(self.sums, y)
        if loss.task != "classify" and not (loss.quadratic or loss.log_mean):
            self._store(np.concatenate([self.values, y]), np.concatenate([self.masses, masses]))

    def merge(self, parts: Sequence[Baselines]) -> Baselines:
        """Those of all the labels that several parts have entered, each of which went on from a copy of this.

        A part predicts the last label of its own again, so what that lost is added up; whoever goes on does so after
        the last part that has entered any. If one alone has, a copy of it is returned.

        >>> import rue
        >>> halves = Baselines(), Baselines()
        >>> for half, y in zip(halves, ([1.0, 2.0], [6.0, 7.0])):
        ...     half.enter(rue.Square(), np.array(y), np.empty(0), np.zeros(2))
        >>> Baselines().merge(halves).best_constant(rue.Square())  # 9 + 4 + 4 + 9, around the mean 4
        26.0
        """
        begun = [part for part in parts if part.sums[MASS] != self.sums[MASS]]
        if len(begun) <= 1:
            return copy.deepcopy(begun[0] if begun else self)
        sums = self.sums + sum(part.sums - self.sums for part in begun)
        near = begun[0].sums[MEAN]  # Σ weight·(y − near)^k, which adds up, loses no digits if it is near the mean
        first, second = (
            power(self, near) + sum(power(part, near) - power(self, near) for part in begun)
            for power in (_first_moment, _second_moment)
        )
        sums[MEAN], sums[LAST] = near + first / sums[MASS], begun[-1].sums[LAST]
        sums[SPREAD] = max(0.0, second - first * first / sums[MASS])
        together = Baselines(sums, digits=min(part.digits for part in begun))
        signed = [self.masses * (1 - len(begun)), *(part.masses for part in begun)]
        together._store(np.concatenate([self.values, *(part.values for part in begun)]), np.concatenate(signed))
        return together

    def renumber(self, numbers: Sequence[int]) -> None:
        """Give class k of several, counted from 1, the number `numbers[k − 1]`."""
        new = np.array([math.nan, *numbers])
        self.sums[LAST] = new[0 if math.isnan(self.sums[LAST]) else int(self.sums[LAST])]
        self._store(new[self.values.astype(np.int64)], self.masses)

    def _store(self, values: Any, masses: Any) -> None:
        """Store these labels and weights, equal labels together, cut to so many digits that there are not too many."""
        while True:
            if self.digits < 53:
                mantissas, exponents = np.frexp(values)
                values = np.ldexp(np.trunc(np.ldexp(mantissas, self.digits)), exponents - self.digits)
            self.values, where = np.unique(values, return_inverse=True)
            self.masses = np.zeros(self.values.size)
            np.add.at(self.masses, where, masses)
            if self.values.size <= MOST:
                return
            self.digits -= 4
            values, masses = self.values, self.masses

    def best_constant(self, loss: Loss) -> float:
        """min over c of Σ weight·ℓ(c, y_t)."""
        sums = self.sums
        if not sums[MASS] > 0.0:
            return 0.0
        if loss.task == "classify":
            return self._classes(loss, sums[[NEGATIVE, POSITIVE]], -64.0)
        if loss.task == "multiclass":
            return float(self.masses @ np.log(sums[MASS] / self.masses))
        if loss.quadratic:
            return float(sums[SPREAD])
        if loss.log_mean:  # Σ w(e^c − y c), at c = ln of the mean
            mean = float(sums[MEAN])
            return float(sums[MASS]) * (mean - mean * math.log(mean)) if mean > 0.0 else 0.0
        return _least(_at(loss, self.values, self.masses), float(self.values[0]), float(self.values[-1]))[0]

    def constant(self, loss: Loss) -> float:
        """The prediction c for which Σ weight·ℓ(c, y_t) is least; not for several classes."""
        sums = self.sums
        if loss.task == "classify":
            pair = _at(loss, np.array([-1.0, 1.0]), np.ascontiguousarray(sums[[NEGATIVE, POSITIVE]]))
            return _least(pair, -64.0, 64.0)[1]
        if loss.quadratic:
            return float(sums[MEAN])
        if loss.log_mean:
            return math.log(sums[MEAN]) if sums[MEAN] > 0.0 else -64.0
        return _least(_at(loss, self.values, self.masses), float(self.values[0]), float(self.values[-1]))[1]

    def constant_for(self, loss: Loss) -> Callable[[Any], Any]:
        """The losses, on other labels, of the constant prediction that is best for these.

        Of several classes it predicts each as often as it came here; one that never came has the chance of one example.
        """
        if loss.task == "multiclass":
            total = float(self.sums[MASS]) + 1.0
            chances = dict(zip(self.values.tolist(), (self.masses / total).tolist(), strict=True))
            return lambda y: np.array([-math.log(chances.get(label, 1.0 / total)) for label in y.tolist()])
        c = self.constant(loss)

        def losses(y: Any) -> Any:
            distinct, where = np.unique(y, return_inverse=True)
            return np.array([loss.value(c, label) for label in distinct.tolist()])[where]

        return losses

    @property
    def empty(self) -> bool:
        """Whether no label was entered."""
        return not self.sums[MASS] > 0.0

    def to_dict(self) -> dict[str, Any]:
        """As JSON for a model file, which has it among its counts."""
        lists = {"baselines": self.sums.tolist(), "values": self.values.tolist(), "masses": self.masses.tolist()}
        return {**lists, "digits": self.digits}

    @classmethod
    def from_dict(cls, counts: dict[str, Any]) -> Baselines:
        """From the counts of a model file; empty where they have none."""
        if "baselines" not in counts:
            return cls()
        sums, values, masses = (np.array(counts[name], dtype=np.float64) for name in ("baselines", "values", "masses"))
        return cls(sums, values, masses, int(counts["digits"]))

    def no_change(self, loss: Loss) -> float:
        """The loss of predicting the last label again; for classes, with the confidence that is best in hindsight."""
        if loss.task == "regress":
            return float(self.sums[REPEATED])
        if loss.task == "multiclass":
            return self._again()
        first = float(self.sums[FIRST]) * loss.value(0.0, 1.0)
        return first + self._classes(loss, self.sums[[OTHER, SAME]], 0.0)

    def _again(self) -> float:
        """Of many classes: the first costs ln C, and all but the last one are equally likely ever after."""
        classes, masses = self.values.size, self.sums[[SAME, OTHER]]
        parts = masses[masses > 0.0]
        others = float(masses[1]) * math.log(max(classes - 1, 1))
        return (
            float(self.sums[FIRST]) * math.log(max(classes, 1)) + float(parts @ np.log(masses.sum() / parts)) + others
        )

    def _classes(self, loss: Loss, masses: Any, low: float) -> float:
        """The least loss of one score c in [low, 64] on labels −1 and +1 of these weights."""
        return _least(_at(loss, np.array([-1.0, 1.0]), np.ascontiguousarray(masses)), low, 64.0)[0]


def _at(loss: Loss, y: Any, weights: Any) -> Callable[[float], float]:
    """Σ weight·ℓ(c, y) as a function of c."""
    if y.size <= 2:  # two classes are not worth compiling for
        return lambda c: sum(w * loss.value(c, label) for w, label in zip(weights.tolist(), y.tolist(), strict=True))
    total, as_compiled = _total.resolve(loss, 0.0, y, weights), twin(loss)
    return lambda c: float(total(as_compiled, c, y, weights))


def _least(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """The least value of a convex function between two ends, by golden sections, and where it is."""
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = function(a), function(b)
    best = min((function(low), low), (function(high), high), (at_a, a), (at_b, b))
    for _ in range(100):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = function(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = function(b)
        best = min(best, (at_a, a), (at_b, b))
    return best
