"""What the data calls its two classes, and the −1 and +1 that losses know (DESIGN 6.2)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from rue.errors import DataError

__all__ = ["Labels"]

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
        column = np.asarray(y)
        numeric = column.dtype.kind in "iuf"
        found = list(dict.fromkeys(column.tolist()))
        if task == "auto":
            two = numeric and (set(found) <= {0, 1} or set(found) <= {-1, 1})
            task = "classify" if two or not numeric else "regress"
        if task == "regress":
            return cls("regress")
        return cls("classify", *_pair(found))

    def encode(self, y: Any) -> Any:
        """Labels as the loss takes them: −1 and +1, or the numbers themselves."""
        column = np.asarray(y)
        if self.task == "regress":
            try:
                return column.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise DataError(f"the labels of a regression must be numbers, not {column.dtype}.") from error
        positive = column == self.positive
        stray = ~(positive | (column == self.negative))
        if np.any(stray):
            row = int(np.argmax(stray))
            raise DataError(
                f"row {row} (counting from 0): the label {column[row].item()!r} is neither {self.negative!r} nor "
                f"{self.positive!r}; for numbers to predict, choose a regression loss such as loss='square'."
            )
        return np.where(positive, 1.0, -1.0)


def _pair(found: list[Any]) -> tuple[Any, Any]:
    if len(found) > 2:
        raise DataError(
            f"there are more than two classes ({', '.join(map(repr, found[:4]))}, …): rue learns two classes so far; "
            "for numbers to predict, choose a regression loss such as loss='square'."
        )
    meant = {_key(label): label for label in found}
    for negative, positive in _BY_MEANING:
        if set(meant) <= {negative, positive}:
            return meant.get(negative, _like(found, negative)), meant.get(positive, _like(found, positive))
    if len(found) == 1:
        raise DataError(f"every label is {found[0]!r}: with one class alone there is nothing to tell apart.")
    return found[0], found[1]


def _key(label: Any) -> Any:
    if isinstance(label, bool):
        return "true" if label else "false"
    return float(label) if isinstance(label, int | float) else str(label).lower()


def _like(found: list[Any], missing: Any) -> Any:
    """The partner of a class that has not occurred yet, written the way the other one is."""
    example = found[0] if found else missing
    if isinstance(example, bool):
        return missing == "true"
    return type(example)(missing) if isinstance(example, int | float) else missing
