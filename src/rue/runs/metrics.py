"""Metrics: accuracy, ROC AUC, F1, MAE and their like, added up prediction by prediction in bounded memory.

Everything is weighted by the examples' weights. All is exact, up to rounding, but the AUC of several classes, and of a
stream with more than 2,048 distinct scores: its error is bounded, and the bound is part of the answer.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from rue.errors import DataError
from rue.losses import Loss
from rue.runs.counts import ClassCounts, Errors
from rue.runs.groups import GroupCounts
from rue.runs.scores import ScoreCounts

__all__ = ["Metrics"]


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


_KINDS: dict[str, Any] = {"classify": ScoreCounts, "multiclass": ClassCounts, "regress": Errors}


class Metrics(Mapping[str, Any]):
    """The metrics of the predictions so far: a mapping from the name of each to its value, and their course over time.

    Of two classes `accuracy`, `balanced_accuracy` (the mean of both classes' recalls), `auc` with `auc_error_at_most`,
    and of class +1 `precision`, `recall` and `f1`; `confusion` has a row for each true and a column for each predicted
    class. Of several classes the same as means over the classes, AUC of each class against all others (at the end, not
    over time, and of 64 classes at most), and `by_class`. Of numbers `mae`, `rmse` and `r2`. A metric that does not
    exist (the precision of a class that was never predicted) is None.

    >>> import rue
    >>> run = rue.learn([[1.0], [2.0], [-1.0], [3.0]], [1, 1, -1, 1], learner=rue.Perceptron(intercept=False))
    >>> run.metrics["accuracy"], run.metrics["confusion"]
    (0.75, [[1.0, 0.0], [1.0, 2.0]])
    >>> run.metrics.over_time()["accuracy"]
    array([0.  , 0.5 , 0.75])
    """

    def __init__(self) -> None:
        self.sums: Kind | None = None
        """What the metrics are computed from; opened with the first example."""
        self.examples = 0
        """How many examples were entered."""
        self.times: list[int] = []
        """After how many examples the metrics were recorded: 1, 2, 4, 8, …; each look sorts the scores for the AUC."""
        self.course: list[list[float]] = []
        """What they were then, in the order of `sums.names`; NaN for one that did not exist."""
        self.groups = GroupCounts()
        """The weight of each feature that is 0 or 1, for calibration."""

    def enter(self, loss: Loss, y: Any, weights: Any, predictions: Any, probabilities: Any = None) -> None:
        """Add consecutive `predictions` with their labels `y`, as the loss takes them; those that are NaN are left out.

        `probabilities` has a column for each class 1, 2, …; without it the classes of wrong predictions are not known.

        `weights` is empty where all are 1.

        >>> import numpy as np, rue
        >>> metrics = Metrics()
        >>> metrics.enter(rue.Square(), np.array([1.0, 3.0]), np.empty(0), np.array([1.0, 1.0]))
        >>> metrics["mae"]
        1.0
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
            mark = 1 << self.examples.bit_length()  # the next power of 2
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

        >>> import numpy as np, rue
        >>> parts = [Metrics(), Metrics()]
        >>> for part, y in zip(parts, (1.0, 3.0)):
        ...     part.enter(rue.Square(), np.array([y]), np.empty(0), np.array([1.0]))
        >>> Metrics().merge(parts)["mae"]
        1.0
        """
        own = [None] * len(parts) if numbers is None else list(numbers)
        merged = Metrics()
        merged.times, merged.course = list(self.times), list(self.course)
        learnt = [part for part in parts if part.examples > self.examples]
        merged.groups = self.groups.merge([part.groups for part in learnt]) if learnt else copy.deepcopy(self.groups)
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
        """What a model file has of them: JSON and arrays; None where nothing was entered.

        >>> Metrics().stored()
        (None, {})
        """
        if self.sums is None:
            return None, {}
        kind = next(name for name, cls in _KINDS.items() if type(self.sums) is cls)
        course = np.array(self.course).reshape(len(self.times), len(self.sums.names))
        arrays = {"times": np.array(self.times, dtype=np.int64), "course": course, **self.sums.stored()}
        arrays |= self.groups.stored()
        return {"kind": kind, "examples": self.examples}, arrays

    @classmethod
    def read(cls, kind: str, examples: int, arrays: dict[str, Any]) -> Metrics:
        """From a model file; refuses what is impossible.

        `kind`, `examples` and `arrays` are what `stored` gave.

        >>> import numpy as np, rue
        >>> metrics = Metrics()
        >>> metrics.enter(rue.Square(), np.array([1.0, 3.0]), np.empty(0), np.array([1.0, 1.0]))
        >>> head, arrays = metrics.stored()
        >>> Metrics.read(head["kind"], head["examples"], arrays)["mae"]
        1.0
        """
        metrics = cls()
        times, course = arrays.pop("times"), arrays.pop("course")
        names = [name for name in arrays if name.startswith("groups.")]
        groups = {name.removeprefix("groups."): arrays.pop(name) for name in names}
        if groups:
            metrics.groups = GroupCounts.read(**groups)
        else:
            metrics.groups.drop()  # a file of an older version, which did not count them
        metrics.sums = _KINDS[kind].read(**arrays)
        metrics.examples = examples
        rising = bool((np.diff(times, prepend=0, append=examples + 1) > 0).all())
        if not rising or course.shape != (times.size, len(metrics.sums.names)):
            raise DataError("the metrics over time do not fit together")
        metrics.times, metrics.course = times.tolist(), course.tolist()
        return metrics
