"""Metrics: accuracy, ROC AUC, F1, MAE and their like, added up prediction by prediction in bounded memory.

Everything is weighted by the examples' weights. All is exact, up to rounding, but the AUC of a stream with more than
`MOST` distinct scores: its error is bounded, and the bound is part of the answer (`ScoreCounts`).
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from rue.compiled import kernel
from rue.errors import DataError
from rue.layout import Array, Layout, Number, Numbers
from rue.learners.mixture.merging import pooled_moments
from rue.learners.mixture.standing import next_mark
from rue.losses import Loss

__all__ = ["MOST", "MOST_IN_MATRIX", "ClassCounts", "Errors", "Metrics", "ScoreCounts"]

MOST = 8192
"""The most distinct scores to store for the AUC; if there are more, all lose a binary digit, again and again."""
SLOTS = 2 * MOST
"""The size of the hash table that holds them, a power of 2."""
DIGITS = 53
"""Binary digits of a float64."""
MOST_IN_MATRIX = 64
"""The most classes for which a confusion matrix is kept; per-class totals are kept of all."""
_ZERO, _MINUS_ZERO = np.int64(0), np.int64(-(2**63))
"""The bits of 0.0 and of −0.0, which is the same score."""


class Kind(Protocol):
    """What `Metrics` asks of the sums that belong to a task."""

    names: ClassVar[tuple[str, ...]]
    """The metrics that are recorded over time."""

    def enter(self, p: Any, y: Any, weights: Any, probabilities: Any) -> None:
        """Add consecutive predictions; no `weights` are weights of 1."""
        ...

    def values(self) -> dict[str, Any]:
        """Every metric by name; None for one that does not exist."""
        ...

    def stored(self) -> dict[str, Any]:
        """The arrays of a model file."""
        ...

    def merge(self, parts: Sequence[Any]) -> Any:
        """The sums of several parts of a stream together, each of which went on from a copy of these."""
        ...


# Two classes.


@kernel
def _enter_scores(
    keys: Any, masses: Any, used: Any, confusion: Any, mask: Any, bits: Any, p: Any, y: Any, weights: Any
) -> Any:
    """Add predictions to the hash table and to the confusion matrix; stops at the row that finds the table full.

    `bits` are those of p; `mask` leaves the digits that scores are cut to.
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
            if used[0] == MOST:
                return i
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
                scores, masses = self.counted()
                place = int(np.searchsorted(scores, p[begin]))  # the row that found no room needs some
                self._fill(np.insert(scores, place, p[begin]), np.insert(masses, place, 0.0, axis=0), self.digits - 1)

    def _add(self, p: Any, y: Any, weights: Any, confusion: Any) -> int:
        table, bits = (self._keys, self._masses, self._used), np.ascontiguousarray(p).view(np.int64)
        return int(_enter_scores(*table, confusion, _mask(self.digits), bits, p, y, weights))

    def counted(self) -> tuple[Any, Any]:
        """The distinct scores, rising, and the weights of −1 and +1 at each."""
        used = np.flatnonzero(self._masses[:, 0] + self._masses[:, 1])  # a sum along the short axis is slow
        scores = self._keys[used].view(np.float64)
        order = np.argsort(scores)
        return scores[order], self._masses[used[order]]

    def _fill(self, scores: Any, masses: Any, digits: int) -> None:
        """Store rising scores and their weights, cut to so many digits, or to fewer if there are too many."""
        while np.count_nonzero(np.diff(_cut_to(scores, digits))) >= MOST:
            digits -= 1
        scores, masses = _together(_cut_to(scores, digits), masses)
        self.digits, self._keys, self._masses = digits, np.zeros_like(self._keys), np.zeros_like(self._masses)
        self._used, nowhere = np.zeros_like(self._used), np.zeros((2, 2))
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
            "accuracy": _ratio(np.trace(self.confusion), self.confusion.sum()),
            "balanced_accuracy": _mean_of_some(np.diag(self.confusion), true),
            "auc": area,
            "auc_error_at_most": error,
            "precision": _ratio(hits, predicted[1]),
            "recall": _ratio(hits, true[1]),
            "f1": _ratio(2.0 * hits, predicted[1] + true[1]),
            "confusion": self.confusion.tolist(),
        }

    def stored(self) -> dict[str, Any]:
        scores, masses = self.counted()
        return {"confusion": self.confusion, "scores": scores, "masses": masses, "digits": np.array([self.digits])}

    @classmethod
    def read(cls, confusion: Any, scores: Any, masses: Any, digits: Any) -> ScoreCounts:
        """From the arrays of a model file; refuses what is impossible."""
        read = cls(_finite(confusion, (2, 2)).copy())
        n, places = scores.size, _finite(digits, (1,))
        whole = int(places[0])
        if not 1 <= whole <= DIGITS or n > MOST or not (np.diff(_finite(scores, (n,))) > 0.0).all():
            raise DataError("the scores of its metrics are impossible")
        if not (_finite(masses, (n, 2)) >= 0.0).all() or not (masses.sum(axis=1) > 0.0).all():
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
        scores, masses = _together(_cut_to(scores, digits), masses)
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
    """Distinct scores, rising, each with the sum of its weights."""
    distinct, where = np.unique(scores, return_inverse=True)
    total = np.zeros((distinct.size, masses.shape[1]))
    np.add.at(total, where, masses)
    return distinct, total


# Several classes.


@dataclasses.dataclass(eq=False)
class ClassCounts:
    """Classes 1, 2, …: the weight of each, of its predictions and of the right ones; of a few also the whole matrix.

    A prediction is right where the class that came was given more probability than any other. Precision, recall and F1
    are means over the classes, each of which counts equally ("macro"); a class that was never predicted has precision
    0. The first example of all, for which no class is known, is predicted as none.
    """

    totals: Any = dataclasses.field(default_factory=lambda: np.zeros((0, 3)))
    """For each class the weight of its examples, of its predictions, and of its right predictions."""
    confusion: Any = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    """The weight by true (rows) and predicted class (columns); empty from `MOST_IN_MATRIX` classes on."""
    unknown: float = 0.0
    """The weight of wrong predictions of which it is not known which class they were."""

    names: ClassVar[tuple[str, ...]] = ("accuracy", "balanced_accuracy", "precision", "recall", "f1")
    layout: ClassVar[Layout] = Layout(
        Array(
            "totals", "Weights of true, predicted and rightly predicted.", ("class", "sum"), merge="added", least=0.0
        ),
        Array("confusion", "Weights by true and predicted class.", ("class", "class"), merge="added", least=0.0),
        Array("unknown", "Weight of wrong predictions of unknown class.", ("number",), merge="added", least=0.0),
    )

    def enter(self, p: Any, y: Any, weights: Any, probabilities: Any = None) -> None:
        masses = weights if weights.size else np.ones(y.size)
        true, right = y.astype(np.int64) - 1, p > 0.0
        self._admit(1 + int(true.max()))
        np.add.at(self.totals[:, 0], true, masses)
        np.add.at(self.totals[:, 2], true[right], masses[right])
        predicted = np.where(right, true, -1)
        if probabilities is not None:
            others = np.where(np.isnan(probabilities), 0.0, probabilities)
            inside = true < others.shape[1]
            others[np.flatnonzero(inside), true[inside]] = 0.0  # where it was wrong, another had at least as much
            if others.shape[1]:
                predicted = np.where(right | (others.max(axis=1) == 0.0), predicted, others.argmax(axis=1))
        elif not right.all():
            self.unknown = float(np.cumsum(np.concatenate(([self.unknown], masses[~right])))[-1])
        known = predicted >= 0
        self._admit(1 + int(predicted.max()))
        np.add.at(self.totals[:, 1], predicted[known], masses[known])
        if self.confusion.size:
            np.add.at(self.confusion, (true[known], predicted[known]), masses[known])

    def _admit(self, classes: int) -> None:
        """Make room for so many classes."""
        before = len(self.totals)
        if classes > before:
            self.totals = np.pad(self.totals, ((0, classes - before), (0, 0)))
            in_matrix = classes <= MOST_IN_MATRIX
            self.confusion = np.pad(self.confusion, (0, classes - before)) if in_matrix else np.zeros((0, 0))

    def by_class(self) -> list[dict[str, Any]]:
        """Weight, precision, recall and F1 of each class."""
        known = self.unknown == 0.0
        return [
            {
                "weight": true,
                "precision": _ratio(right, predicted) if known else None,
                "recall": _ratio(right, true),
                "f1": _ratio(2.0 * right, true + predicted) if known else None,
            }
            for true, predicted, right in self.totals.tolist()
        ]

    def values(self) -> dict[str, Any]:
        true, predicted, right = self.totals.T
        known, balanced = self.unknown == 0.0, _mean_of_some(right, true)
        came = (true > 0.0) | (predicted > 0.0)
        parts = np.where(predicted > 0.0, predicted, 1.0), np.where(came, true + predicted, 1.0)
        return {
            "accuracy": _ratio(right.sum(), true.sum()),
            "balanced_accuracy": balanced,
            "precision": float((right / parts[0])[came].mean()) if known and came.any() else None,
            "recall": balanced,
            "f1": float((2.0 * right / parts[1])[came].mean()) if known and came.any() else None,
            "confusion": self.confusion.tolist() if known and self.confusion.size else None,
            "by_class": self.by_class(),
        }

    def stored(self) -> dict[str, Any]:
        return {"totals": self.totals, "confusion": self.confusion, "unknown": np.array([self.unknown])}

    @classmethod
    def read(cls, totals: Any, confusion: Any, unknown: Any) -> ClassCounts:
        """From the arrays of a model file; refuses what is impossible."""
        classes = len(totals)
        in_matrix = classes if classes <= MOST_IN_MATRIX else 0
        shapes = (classes, 3), (in_matrix, in_matrix), (1,)
        for array, shape in zip((totals, confusion, unknown), shapes, strict=True):
            if (_finite(array, shape) < 0.0).any():
                raise DataError("the sums of its metrics are impossible")
        return cls(totals.copy(), confusion.copy(), float(unknown[0]))

    def merge(self, parts: Sequence[ClassCounts]) -> ClassCounts:
        states = [dataclasses.replace(state) for state in (self, *parts)]
        for state in states:
            state._admit(max(len(own.totals) for own in states))
        arrays = [state.stored() for state in states]
        return ClassCounts.read(**self.layout.merged(arrays[0], arrays[1:]))

    def renumbered(self, numbers: Any) -> ClassCounts:
        """The same with class c + 1 called `numbers[c]`."""
        own, moved = np.asarray(numbers, dtype=np.int64)[: len(self.totals)] - 1, ClassCounts(unknown=self.unknown)
        moved._admit(1 + int(own.max(initial=-1)))
        moved.totals[own] = self.totals
        if moved.confusion.size and self.confusion.size:
            moved.confusion[np.ix_(own, own)] = self.confusion
        return moved


# Numbers.

_ERRORS = Numbers(
    Number("weight", "Σ weight."),
    Number("absolute", "Σ weight·|p − y|."),
    Number("squared", "Σ weight·(p − y)²."),
    Number("mean", "The mean of the labels.", merge="derived"),
    Number("spread", "Σ weight·(y − mean)².", merge="derived"),
)
WEIGHT, ABSOLUTE, SQUARED, MEAN, SPREAD = _ERRORS.indices("weight", "absolute", "squared", "mean", "spread")


@kernel
def _enter_errors(sums: Any, p: Any, y: Any, weights: Any) -> None:
    for i in range(y.size):
        weight, error = weights[i] if weights.size > 0 else 1.0, p[i] - y[i]
        sums[WEIGHT] += weight
        sums[ABSOLUTE] += weight * abs(error)
        sums[SQUARED] += weight * error * error
        away = y[i] - sums[MEAN]
        sums[MEAN] += away * weight / sums[WEIGHT]
        sums[SPREAD] += weight * away * (y[i] - sums[MEAN])


@dataclasses.dataclass(eq=False)
class Errors:
    """Numbers: MAE Σ|p − y|/T, RMSE √(Σ(p − y)²/T), and R² = 1 − Σ(p − y)²/Σ(y − mean)².

    R² compares with the mean of the labels so far, which was not known when the first were predicted.
    """

    sums: Any = dataclasses.field(default_factory=lambda: np.zeros(len(_ERRORS)))

    names: ClassVar[tuple[str, ...]] = ("mae", "rmse", "r2")
    layout: ClassVar[Layout] = Layout(Array("sums", "Sums over the errors and the labels.", (_ERRORS,)))

    def enter(self, p: Any, y: Any, weights: Any, probabilities: Any = None) -> None:
        _enter_errors(self.sums, p, y, weights)

    def values(self) -> dict[str, Any]:
        weight, absolute, squared, _, spread = self.sums.tolist()
        left = _ratio(squared, spread)
        return {
            "mae": _ratio(absolute, weight),
            "rmse": math.sqrt(squared / weight) if weight > 0.0 else None,
            "r2": None if left is None else 1.0 - left,
        }

    def stored(self) -> dict[str, Any]:
        return {"sums": self.sums}

    @classmethod
    def read(cls, sums: Any) -> Errors:
        """From the arrays of a model file; refuses what is impossible."""
        if sums.shape != (len(_ERRORS),) or not (sums[[WEIGHT, ABSOLUTE, SQUARED]] >= 0.0).all():
            raise DataError("the sums of its metrics are impossible")
        return cls(sums.copy())

    def merge(self, parts: Sequence[Errors]) -> Errors:
        states = (self, *parts)
        merged = Errors(**self.layout.merged({"sums": self.sums}, [{"sums": part.sums} for part in parts]))
        columns = ([state.sums[place] for state in states] for place in (WEIGHT, MEAN, SPREAD))
        merged.sums[[MEAN, SPREAD]] = pooled_moments(*columns)
        return merged


# All of them, over time.

_KINDS: dict[str, Any] = {"classify": ScoreCounts, "multiclass": ClassCounts, "regress": Errors}


class Metrics(Mapping[str, Any]):
    """The metrics of the predictions so far: a mapping from the name of each to its value, and their course over time.

    Of two classes `accuracy`, `balanced_accuracy` (the mean of both classes' recalls), `auc` with `auc_error_at_most`,
    and of class +1 `precision`, `recall` and `f1`; `confusion` has a row for each true and a column for each predicted
    class. Of several classes the same without AUC, as means over the classes, and `by_class`. Of numbers `mae`, `rmse`
    and `r2`. A metric that does not exist (the precision of a class that was never predicted) is None.

    >>> import rue
    >>> run = rue.learn([[1.0], [2.0], [-1.0], [3.0]], [1, 1, -1, 1], learner=rue.Perceptron(intercept=False))
    >>> run.metrics["accuracy"], run.metrics["confusion"]
    (0.75, [[1.0, 0.0], [1.0, 2.0]])
    >>> run.metrics.over_time()["accuracy"]
    array([0.        , 0.5       , 0.66666667, 0.75      ])
    """

    def __init__(self) -> None:
        self.sums: Kind | None = None
        """What the metrics are computed from; opened with the first example."""
        self.examples = 0
        """How many examples were entered."""
        self.times: list[int] = []
        """After how many examples the metrics were recorded: 1, 2, 3, … ≈ 2^{k/4}."""
        self.course: list[list[float]] = []
        """What they were then, in the order of `sums.names`; NaN for one that did not exist."""

    def enter(self, loss: Loss, y: Any, weights: Any, predictions: Any, probabilities: Any = None) -> None:
        """Add consecutive predictions p with their labels, as the loss takes them; those that are NaN are left out.

        `probabilities` has a column for each class 1, 2, …; without it the classes of wrong predictions are not known.
        """
        use = np.isfinite(predictions)
        if weights.size:
            use &= weights > 0.0
        if not use.all():
            y, predictions = y[use], predictions[use]
            weights = weights[use] if weights.size else weights
            probabilities = None if probabilities is None else probabilities[use]
        if not y.size:
            return
        if self.sums is None:
            self.sums = _KINDS[loss.task]()
        if loss.log_mean:
            with np.errstate(over="ignore"):
                predictions = np.exp(predictions)
        begin = 0
        while begin < y.size:
            mark = next_mark(self.examples)
            part = slice(begin, begin + mark - self.examples)
            self.sums.enter(
                predictions[part], y[part], weights[part], None if probabilities is None else probabilities[part]
            )
            self.examples += y[part].size
            if self.examples == mark:
                self._look(mark)
            begin = part.stop

    def _look(self, mark: int) -> None:
        """Record the metrics as they stand."""
        assert self.sums is not None
        now = self.sums.values()
        self.times.append(mark)
        self.course.append([math.nan if now[name] is None else now[name] for name in self.sums.names])

    def over_time(self) -> dict[str, Any]:
        """Each metric after so many `examples`, as arrays; NaN where it did not exist yet."""
        if self.sums is None:
            return {"examples": np.zeros(0, dtype=np.int64)}
        course = np.array(self.course).reshape(len(self.times), len(self.sums.names))
        return {"examples": np.array(self.times, dtype=np.int64), **dict(zip(self.sums.names, course.T, strict=True))}

    def __getitem__(self, name: str) -> Any:
        return self._values()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())

    def _values(self) -> dict[str, Any]:
        return {} if self.sums is None else self.sums.values()

    def __repr__(self) -> str:
        shown = {name: value for name, value in self._values().items() if isinstance(value, float)}
        return f"Metrics({', '.join(f'{name}={value:.4g}' for name, value in shown.items())})"

    def merge(self, parts: Sequence[Metrics], numbers: Sequence[Any] | None = None) -> Metrics:
        """Those of all examples that several parts have entered, each of which went on from a copy of these.

        The course over time is that of these alone: the parts ran at the same time. `numbers` has, for each part, the
        numbers that its classes are to have, or None if they keep theirs.
        """
        own = [None] * len(parts) if numbers is None else list(numbers)
        merged = Metrics()
        merged.times, merged.course = list(self.times), list(self.course)
        merged.examples = self.examples + sum(part.examples - self.examples for part in parts)
        begun = [
            part.sums.renumbered(order) if order is not None and isinstance(part.sums, ClassCounts) else part.sums
            for part, order in zip(parts, own, strict=True)
            if part.sums is not None and part.examples > self.examples
        ]
        base: Any = self.sums if self.sums is not None or not begun else type(begun[0])()
        if len(begun) > 1 and base is not None:
            merged.sums = base.merge(begun)
        else:  # one part alone comes back to the bit
            merged.sums = copy.deepcopy(begun[0] if begun else base)
        return merged

    # The model file.

    def stored(self) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """What a model file has of them: JSON and arrays; None where nothing was entered."""
        if self.sums is None:
            return None, {}
        kind = next(name for name, cls in _KINDS.items() if type(self.sums) is cls)
        course = np.array(self.course).reshape(len(self.times), len(self.sums.names))
        arrays = {"times": np.array(self.times, dtype=np.int64), "course": course, **self.sums.stored()}
        return {"kind": kind, "examples": self.examples}, arrays

    @classmethod
    def read(cls, kind: str, examples: int, arrays: dict[str, Any]) -> Metrics:
        """From a model file; refuses what is impossible."""
        metrics = cls()
        times, course = arrays.pop("times"), arrays.pop("course")
        metrics.sums = _KINDS[kind].read(**arrays)
        metrics.examples = examples
        rising = bool((np.diff(times, prepend=0, append=examples + 1) > 0).all())
        if not rising or course.shape != (times.size, len(metrics.sums.names)):
            raise DataError("the metrics over time do not fit together")
        metrics.times, metrics.course = times.tolist(), course.tolist()
        return metrics


def _finite(array: Any, shape: tuple[int, ...]) -> Any:
    """An array of this shape without NaN and infinity."""
    if array.shape != shape or not np.isfinite(array).all():
        raise DataError("the sums of its metrics are impossible")
    return array


def _ratio(part: float, whole: float) -> float | None:
    """A share, or None if there is nothing to have a share in."""
    return float(part / whole) if whole > 0.0 else None


def _mean_of_some(parts: Any, wholes: Any) -> float | None:
    """The mean of parts/wholes over the wholes that are not 0."""
    there = wholes > 0.0
    return float((parts[there] / wholes[there]).mean()) if there.any() else None
