"""What the data calls its two classes, and the −1 and +1 that losses know (DESIGN 6.2)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.streams.base import as_array

__all__ = ["Labels", "plain"]

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
    """A task and, for two classes, their names: `negative` stands for −1 and `positive` for +1.

    A name that has not occurred yet is None, unless the other one tells it (yes and no, true and false).

    >>> Labels.of(["ham", "spam", "ham"])
    Labels(task='classify', negative='ham', positive='spam')
    >>> Labels.of([0, 1, 1]).encode([0, 1])
    array([-1.,  1.])
    """

    task: str
    negative: Any = None
    positive: Any = None

    @classmethod
    def of(cls, y: Any, task: str = "auto") -> Labels:
        """What these labels mean; `task` is `auto`, `classify` or `regress`."""
        if y is None:
            raise DataError("there are no labels: give y.")
        if task not in ("auto", "classify", "regress"):
            raise DataError(f"the task must be auto, classify or regress, not {task!r}.")
        column = as_array(y, "labels")
        if column.dtype.kind in "mMc":
            raise DataError(f"the labels must be numbers, booleans or words, not {column.dtype}.")
        numeric = column.dtype.kind in "iuf"
        found = _distinct(column)
        if task == "auto":
            two = numeric and (set(found) <= {0, 1} or set(found) <= {-1, 1})
            task = "classify" if two or not numeric else "regress"
        return cls("regress") if task == "regress" else cls("classify", *_pair(found))

    def extended(self, y: Any) -> Labels:
        """The same, with a class named that had not occurred before: the first block of a stream may hold one class."""
        if self.task == "regress" or y is None:
            return self
        new = [label for label in _distinct(np.asarray(y)) if label not in (self.negative, self.positive)]
        if not new:
            return self
        if self.positive is None:
            return Labels("classify", self.negative, new[0])
        if self.positive == 1 and self.negative == -1 and new[0] == 0 and not np.any(np.asarray(y) == -1):
            return Labels("classify", type(self.negative)(0), self.positive)
        return self

    def encode(self, y: Any) -> Any:
        """Labels as the loss takes them: −1 and +1, or the numbers themselves; NaN for one that is neither class."""
        column = np.asarray(y)
        if self.task == "regress":
            try:
                return column.astype(np.float64)
            except (TypeError, ValueError) as error:
                words = f"words such as {column[0]!s:.40}" if column.dtype.kind == "U" else str(column.dtype)
                raise DataError(f"the labels of a regression must be numbers, not {words}.") from error
        signs = np.full(column.shape, np.nan)
        for name, sign in ((self.negative, -1.0), (self.positive, 1.0)):
            if name is not None:
                signs[np.asarray(column == name, dtype=bool)] = sign
        return signs

    def complaint(self, label: Any) -> str:
        """What to say about a label that is neither class."""
        shown = plain(label.item() if isinstance(label, np.generic) else label)
        negative, positive = plain(self.negative), plain(self.positive)
        return (
            f"the label {shown!r} is neither {negative!r} nor {positive!r}: rue learns two classes so far; "
            "for numbers to predict, choose a regression loss such as loss='square'."
        )


def plain(label: Any) -> Any:
    """A class as a person would write it: 1 for 1.0."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def _distinct(column: Any) -> list[Any]:
    """The first few labels that occur, in the order of their first occurrence, without NaN; six are too many anyway."""
    if column.dtype.kind == "O":
        try:
            return [label for label in dict.fromkeys(column.tolist()) if label is not None and bool(label == label)]
        except TypeError as error:
            raise DataError(f"the labels must be numbers, booleans or words: {error}.") from error
    found: list[Any] = []
    while column.size and len(found) < 6:
        label = column[0].item()
        if label == label:
            found.append(label)
            column = column[column != label]
        else:
            column = column[~np.isnan(column)]
    return found


def _pair(found: list[Any]) -> tuple[Any, Any]:
    meant = {_key(label): label for label in found}
    for negative, positive in _BY_MEANING:
        if set(meant) <= {negative, positive} or ({negative, positive} <= set(meant) and isinstance(negative, float)):
            return meant.get(negative, _like(found, negative)), meant.get(positive, _like(found, positive))
    if len(found) > 2:
        shown = ", ".join(repr(plain(label)) for label in found[:4]) + (", …" if len(found) > 4 else "")
        raise DataError(
            f"there are more than two classes ({shown}): rue learns two classes so far; for numbers to predict, "
            "choose a regression loss such as loss='square'."
        )
    return found[0], found[1] if len(found) == 2 else None


def _key(label: Any) -> Any:
    if isinstance(label, bool):
        return "true" if label else "false"
    return float(label) if isinstance(label, int | float) else str(label).lower()


def _like(found: list[Any], missing: Any) -> Any:
    """The partner of a class that has not occurred yet, written the way the other one is."""
    example = found[0] if found else missing
    if isinstance(example, bool):
        return missing == "true"
    if isinstance(example, int | float):
        return type(example)(missing)
    text = str(example)
    return str(missing).upper() if text.isupper() else str(missing).capitalize() if text.istitle() else missing
