"""What the data calls its classes, and the numbers that losses know: −1 and +1, or 1, 2, 3, …"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from rue.errors import DataError, shown
from rue.streams.block import as_array

__all__ = ["MOST_CLASSES", "Labels", "plain"]

MOST_CLASSES = 4096
"""More classes than this are no classes."""

_BY_MEANING: list[tuple[Any, Any]] = [
    (-1.0, 1.0),
    (0.0, 1.0),
    ("no", "yes"),
    ("false", "true"),
    ("0", "1"),
    ("-1", "1"),
    ("-1", "+1"),
]


@dataclasses.dataclass(frozen=True)
class Labels:
    """A task and the names of its classes: of two, `negative` stands for −1 and `positive` for +1.

    A name that has not occurred yet is None, unless the other one tells it (yes and no, true and false). More than two
    are `classes`, which stand for 1, 2, 3, … in the order of their first occurrence.

    >>> Labels.of(["ham", "spam", "ham"])
    Labels(task='classify', negative='ham', positive='spam', classes=())
    >>> Labels.of([0, 1, 1]).encode([0, 1])
    array([-1.,  1.])
    >>> Labels.of(["red", "green", "red", "blue"]).encode(["blue", "red"])
    array([3., 1.])
    """

    task: str
    negative: Any = None
    positive: Any = None
    classes: tuple[Any, ...] = ()

    @classmethod
    def of(cls, y: Any, task: str = "auto") -> Labels:
        """What these labels mean; `task` is `auto`, `classify`, `multiclass` or `regress`.

        To classify, more than two different labels make it `multiclass`.
        """
        if task not in ("auto", "classify", "multiclass", "regress"):
            raise DataError(f"the task must be auto, classify, multiclass or regress, not {shown(task)}.")
        column = _column(y)
        distinct = _distinct(column)
        if task == "auto":
            numeric = column.dtype.kind in "iuf"
            two = numeric and (set(distinct) <= {0, 1} or set(distinct) <= {-1, 1})
            task = "classify" if two or not numeric else "regress"
        if task == "regress":
            return cls("regress")
        if task == "multiclass" or len(distinct) > 2:
            return cls("multiclass").extended(column)
        return cls("classify", *_pair(distinct))

    @classmethod
    def under(cls, loss: Any, y: Any) -> Labels:
        """What these labels mean to a loss, whose task it is; one that classifies knows two classes."""
        return cls("classify", *_pair(_distinct(_column(y)))) if loss.task == "classify" else cls.of(y, loss.task)

    def extended(self, y: Any) -> Labels:
        """The same, with classes named that had not occurred before."""
        if self.task == "regress" or y is None:
            return self
        if self.task == "multiclass":
            known = set(self.classes)
            new = [label for label in _in_order(np.asarray(y)) if label not in known]
            return dataclasses.replace(self, classes=(*self.classes, *new)[:MOST_CLASSES]) if new else self
        column = np.asarray(y)
        if column.dtype.kind != "O" and np.all(_equal(column, self.negative) | _equal(column, self.positive)):
            return self
        new = [label for label in _distinct(column) if label not in (self.negative, self.positive)]
        if not new:
            return self
        if self.positive is None:
            return Labels("classify", self.negative, new[0])
        if self.positive == 1 and self.negative == -1 and new[0] == 0 and not np.any(np.asarray(y) == -1):
            return Labels("classify", type(self.negative)(0), self.positive)
        return self

    def encode(self, y: Any) -> Any:
        """Labels as the loss takes them: numbers of classes, or the numbers themselves; NaN for one that is none."""
        column = np.asarray(y)
        if self.task == "regress":
            try:
                return column.astype(np.float64)
            except (TypeError, ValueError) as error:
                words = f"words such as {column[0]!s:.40}" if column.dtype.kind == "U" else str(column.dtype)
                raise DataError(f"the labels of a regression must be numbers, not {words}.") from error
        if self.task == "multiclass":
            numbers = {name: 1.0 + i for i, name in enumerate(self.classes)}
            if column.dtype.kind == "O":
                return np.array([numbers.get(label, np.nan) for label in column.tolist()], dtype=np.float64)
            distinct, places = np.unique(column, return_inverse=True)
            return np.array([numbers.get(label, np.nan) for label in distinct.tolist()])[places.reshape(-1)]
        signs = np.full(column.shape, np.nan)
        for name, sign in ((self.negative, -1.0), (self.positive, 1.0)):
            signs = np.where(_equal(column, name), sign, signs)
        return signs

    def complaint(self, label: Any) -> str:
        """What to say about a label that is none of the classes."""
        given = shown(plain(label.item() if isinstance(label, np.generic) else label))
        negative, positive = shown(plain(self.negative)), shown(plain(self.positive))
        if self.task == "multiclass":
            many = f": there are {MOST_CLASSES:,} already, and numbers to predict need a regression loss"
            return f"the label {given} is no class{many * (len(self.classes) == MOST_CLASSES)}."
        return (
            f"the label {given} is neither {negative} nor {positive}: for more than two classes say "
            "task='multiclass' (--task multiclass) and no other learner; for numbers to predict, choose a regression "
            "loss such as loss='square'."
        )


def plain(label: Any) -> Any:
    """A class as a person would write it: 1 for 1.0."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def _column(y: Any) -> Any:
    if y is None:
        raise DataError("there are no labels: give y.")
    column = as_array(y, "labels")
    if column.dtype.kind in "mMc":
        raise DataError(f"the labels must be numbers, booleans or words, not {column.dtype}.")
    return column


def _equal(column: Any, name: Any) -> Any:
    """Where a column says so; one False where they cannot be compared."""
    return np.asarray(column == name if name is not None else False, dtype=bool)


def _in_order(column: Any) -> list[Any]:
    """All the labels that occur, in the order of their first occurrence, whole numbers as such."""
    if column.dtype.kind == "O":
        distinct = _distinct(column)
    else:
        labels, places = np.unique(column, return_index=True)
        distinct = [label for label in labels[np.argsort(places)].tolist() if label == label]
    return list(map(plain, distinct))


def _distinct(column: Any) -> list[Any]:
    """The first few labels that occur, in the order of their first occurrence, without NaN; six are too many anyway."""
    if column.dtype.kind == "O":
        try:
            return [label for label in dict.fromkeys(column.tolist()) if label is not None and bool(label == label)]
        except TypeError as error:
            raise DataError(f"the labels must be numbers, booleans or words: {error}.") from error
    distinct: list[Any] = []
    while column.size and len(distinct) < 6:
        label = column[0].item()
        if label == label:
            distinct.append(label)
            column = column[column != label]
        else:
            column = column[~np.isnan(column)]
    return distinct


def _pair(distinct: list[Any]) -> tuple[Any, Any]:
    meant = {_key(label): label for label in distinct}
    for negative, positive in _BY_MEANING:
        if set(meant) <= {negative, positive} or ({negative, positive} <= set(meant) and isinstance(negative, float)):
            return meant.get(negative, _like(distinct, negative)), meant.get(positive, _like(distinct, positive))
    if len(distinct) > 2:
        named = ", ".join(shown(plain(label)) for label in distinct[:4]) + (", …" if len(distinct) > 4 else "")
        raise DataError(
            f"there are more than two classes ({named}): leave the learner and the loss out for the one that learns "
            "them; for numbers to predict, choose a regression loss such as loss='square'."
        )
    return distinct[0], distinct[1] if len(distinct) == 2 else None


def _key(label: Any) -> Any:
    if isinstance(label, bool):
        return "true" if label else "false"
    return float(label) if isinstance(label, int | float) else str(label).lower()


def _like(distinct: list[Any], missing: Any) -> Any:
    """The partner of a class that has not occurred yet, written the way the other one is."""
    example = distinct[0] if distinct else missing
    if isinstance(example, bool):
        return missing == "true"
    if isinstance(example, int | float):
        return type(example)(missing)
    text = str(example)
    return str(missing).upper() if text.isupper() else str(missing).capitalize() if text.istitle() else missing
