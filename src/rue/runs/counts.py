"""Several classes, and numbers: the sums that their metrics are computed from."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from rue.compiled import kernel
from rue.errors import DataError
from rue.layout import Array, Layout, Number, Numbers
from rue.learners.mixture.merging import pooled_moments

__all__ = ["MOST_IN_MATRIX", "ClassCounts", "Errors", "finite", "mean_of_some", "ratio"]

MOST_IN_MATRIX = 64
"""The most classes for which a confusion matrix and the AUC are kept; per-class totals are kept of all."""
BINS, FINE = 1024, 32
"""For the AUC of a class its log-odds are counted in bins, so many to a unit, from −16 to 16; the outermost have all
that is beyond."""


@dataclasses.dataclass(eq=False)
class ClassCounts:
    """Classes 1, 2, …: the weight of each, of its predictions and of the right ones; of a few also the whole matrix.

    A prediction is right where the class that came was given more probability than any other. Precision, recall and F1
    are means over the classes, each of which counts equally ("macro"); a class that was never predicted has precision
    0. The first example of all, for which no class is known, is predicted as none.

    The AUC is the mean, over the classes, of that of each class against all others by its probability, which is 0
    before it was first learnt. Log-odds are counted in bins of 1/32; every pair of examples in one bin counts ½
    instead of 0 or 1, so the error is at most the mean over the classes of ½ Σ_b P_b·N_b / (P·N).
    """

    totals: Any = dataclasses.field(default_factory=lambda: np.zeros((0, 3)))
    """For each class the weight of its examples, of its predictions, and of its right predictions."""
    confusion: Any = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    """The weight by true (rows) and predicted class (columns); empty from `MOST_IN_MATRIX` classes on."""
    unknown: float = 0.0
    """The weight of wrong predictions of which it is not known which class they were."""
    ranks: Any = dataclasses.field(default_factory=lambda: np.zeros((0, BINS, 2)))
    """For each class and bin of its log-odds the weight of the other classes and its own; empty where not known."""

    names: ClassVar[tuple[str, ...]] = ("accuracy", "balanced_accuracy", "precision", "recall", "f1")
    layout: ClassVar[Layout] = Layout(
        Array(
            "totals", "Weights of true, predicted and rightly predicted.", ("class", "sum"), merge="added", least=0.0
        ),
        Array("confusion", "Weights by true and predicted class.", ("class", "class"), merge="added", least=0.0),
        Array("unknown", "Weight of wrong predictions of unknown class.", ("number",), merge="added", least=0.0),
        Array("ranks", "Weights by class, log-odds and truth.", ("class", "bin", "truth"), merge="added", least=0.0),
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
        self._rank(true, masses, probabilities)

    def _rank(self, true: Any, masses: Any, probabilities: Any) -> None:
        """Count the log-odds of every class; without probabilities nothing is known of them any more."""
        classes = len(self.ranks)
        if probabilities is None:
            self.ranks = self.ranks[:0]
        elif classes:
            p = np.zeros((true.size, classes))
            p[:, : probabilities.shape[1]] = np.where(np.isnan(probabilities), 0.0, probabilities)[:, :classes]
            with np.errstate(divide="ignore"):
                odds = np.log(p) - np.log1p(-np.minimum(p, 1.0))
            bins = np.clip(np.floor(odds * FINE) + BINS // 2, 0, BINS - 1).astype(np.int64)
            own = np.arange(classes) == true[:, None]
            places = (np.arange(classes) * BINS + bins) * 2 + own
            np.add.at(self.ranks.reshape(-1), places.reshape(-1), np.repeat(masses, classes))

    @property
    def _ranked(self) -> bool:
        """Whether the log-odds of every class are known."""
        return len(self.ranks) == len(self.totals)

    def auc(self) -> tuple[float | None, float]:
        """The mean of the classes' areas under the ROC curve, and a bound on its error; None where it is not known."""
        if not self._ranked:
            return None, 0.0
        there = (self.ranks.sum(axis=1) > 0.0).all(axis=1)  # classes that came, but not alone
        if not there.any():
            return None, 0.0
        shares = self.ranks[there] / self.ranks[there].sum(axis=1, keepdims=True)
        others, own = shares[:, :, 0], shares[:, :, 1]
        equal = 0.5 * (others * own).sum(axis=1)
        areas = (own * (np.cumsum(others, axis=1) - others)).sum(axis=1) + equal
        return min(1.0, float(areas.mean())), float(equal.mean())

    def _admit(self, classes: int) -> None:
        """Make room for so many classes."""
        before = len(self.totals)
        if classes > before:
            self.totals = np.pad(self.totals, ((0, classes - before), (0, 0)))
            in_matrix, total = classes <= MOST_IN_MATRIX, self.totals[:, 0].sum()
            if len(self.ranks) == before:
                self.ranks = (
                    np.pad(self.ranks, ((0, classes - before), (0, 0), (0, 0))) if in_matrix else self.ranks[:0]
                )
                self.ranks[before:, 0, 0] = total  # it had no probability so far
            self.confusion = np.pad(self.confusion, (0, classes - before)) if in_matrix else np.zeros((0, 0))

    def by_class(self) -> list[dict[str, Any]]:
        """Weight, precision, recall and F1 of each class."""
        known = self.unknown == 0.0
        return [
            {
                "weight": true,
                "precision": ratio(right, predicted) if known else None,
                "recall": ratio(right, true),
                "f1": ratio(2.0 * right, true + predicted) if known else None,
            }
            for true, predicted, right in self.totals.tolist()
        ]

    def values(self) -> dict[str, Any]:
        true, predicted, right = self.totals.T
        known, balanced, (area, error) = self.unknown == 0.0, mean_of_some(right, true), self.auc()
        came = (true > 0.0) | (predicted > 0.0)
        parts = np.where(predicted > 0.0, predicted, 1.0), np.where(came, true + predicted, 1.0)
        return {
            "accuracy": ratio(right.sum(), true.sum()),
            "balanced_accuracy": balanced,
            "auc": area,
            "auc_error_at_most": error,
            "precision": float((right / parts[0])[came].mean()) if known and came.any() else None,
            "recall": balanced,
            "f1": float((2.0 * right / parts[1])[came].mean()) if known and came.any() else None,
            "confusion": self.confusion.tolist() if known and self.confusion.size else None,
            "by_class": self.by_class(),
        }

    def stored(self) -> dict[str, Any]:
        return {
            "totals": self.totals,
            "confusion": self.confusion,
            "unknown": np.array([self.unknown]),
            "ranks": self.ranks,
        }

    @classmethod
    def read(cls, totals: Any, confusion: Any, unknown: Any, ranks: Any = None) -> ClassCounts:
        """From the arrays of a model file; refuses what is impossible. Older files have no `ranks`."""
        classes = len(totals)
        in_matrix = classes if classes <= MOST_IN_MATRIX else 0
        ranks = np.zeros((0, BINS, 2)) if ranks is None else ranks
        shapes = (classes, 3), (in_matrix, in_matrix), (1,), (in_matrix if len(ranks) else 0, BINS, 2)
        for array, shape in zip((totals, confusion, unknown, ranks), shapes, strict=True):
            if (finite(array, shape) < 0.0).any():
                raise DataError("the sums of its metrics are impossible")
        return cls(totals.copy(), confusion.copy(), float(unknown[0]), ranks.copy())

    def merge(self, parts: Sequence[ClassCounts]) -> ClassCounts:
        states = [dataclasses.replace(state) for state in (self, *parts)]
        for state in states:
            state._admit(max(len(own.totals) for own in states))
        if not all(state._ranked for state in states):
            for state in states:
                state.ranks = state.ranks[:0]
        arrays = [state.stored() for state in states]
        return ClassCounts.read(**self.layout.merged(arrays[0], arrays[1:]))

    def renumbered(self, numbers: Any) -> ClassCounts:
        """The same with class c + 1 called `numbers[c]`."""
        own, moved = np.asarray(numbers, dtype=np.int64)[: len(self.totals)] - 1, ClassCounts(unknown=self.unknown)
        moved._admit(1 + int(own.max(initial=-1)))
        moved.totals[own] = self.totals
        if moved.confusion.size and self.confusion.size:
            moved.confusion[np.ix_(own, own)] = self.confusion
        if moved._ranked and self._ranked:
            moved.ranks[:, 0, 0] = self.totals[:, 0].sum()
            moved.ranks[own] = self.ranks
        else:
            moved.ranks = moved.ranks[:0]
        return moved


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

    @property
    def mean(self) -> float:
        """The mean of the labels."""
        return float(self.sums[MEAN])

    def values(self) -> dict[str, Any]:
        weight, absolute, squared, _, spread = self.sums.tolist()
        left = ratio(squared, spread)
        return {
            "mae": ratio(absolute, weight),
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


def finite(array: Any, shape: tuple[int, ...]) -> Any:
    """An array of this shape without NaN and infinity."""
    if array.shape != shape or not np.isfinite(array).all():
        raise DataError("the sums of its metrics are impossible")
    return array


def ratio(part: float, whole: float) -> float | None:
    """A share, or None if there is nothing to have a share in."""
    return float(part / whole) if whole > 0.0 else None


def mean_of_some(parts: Any, wholes: Any) -> float | None:
    """The mean of parts/wholes over the wholes that are not 0."""
    there = wholes > 0.0
    return float((parts[there] / wholes[there]).mean()) if there.any() else None
