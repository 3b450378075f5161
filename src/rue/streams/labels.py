"""What the data calls its classes, and the numbers that losses know: −1 and +1, or 1, 2, 3, …"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from rue.errors import DataError, SettingsError, shown
from rue.streams.block import as_labels
from rue.streams.tables.spelling import MISSING, looks

__all__ = ["FIRST_ROWS", "MOST_CLASSES", "Labels", "class_order", "is_called", "missing_note", "number_note", "plain"]

MOST_CLASSES = 4096
"""More classes than this are no classes."""

MOST_ALIKE = 32
"""Numbers to predict that are no more different whole numbers than this may have been meant as classes."""

LOOKED_AT = 1000
"""So many labels are looked at for words that are hardly classes."""

FIRST_ROWS = 65_536
"""So many rows at the start of a stream decide which of two classes is +1 (docs/decisions/0024)."""

_BY_MEANING: list[tuple[Any, Any]] = [
    (-1.0, 1.0),
    (0.0, 1.0),
    ("no", "yes"),
    ("false", "true"),
    ("0", "1"),
    ("-1", "1"),
    ("-1", "+1"),
]

_SIGNS = {"no": -1, "false": -1, "0": -1, "-1": -1, "yes": 1, "true": 1, "+1": 1, 0.0: -1, -1.0: -1}
"""Classes that mean −1 or +1 whatever the other class is. A 1 does not: with 0 it is +1, with 2 it is −1."""


@dataclasses.dataclass(frozen=True)
class Labels:
    """A task and the names of its classes: of two, `negative` stands for −1 and `positive` for +1.

    Of no and yes, false and true, 0 and 1, −1 and +1 the meaning decides; of any other two the last in sorted order is
    +1, if both occur in the first `FIRST_ROWS` rows. One class alone is −1. A name that has not occurred yet is None,
    unless the other one tells it (yes and no, true and false). More than two are `classes`, which stand for 1, 2, 3, …
    in the order of their first occurrence.

    >>> Labels.of(["spam", "ham", "ham"])
    Labels(task='classify', negative='ham', positive='spam', classes=())
    >>> Labels.of(["spam", "ham", "ham"], positive="ham").encode(["ham", "spam"])
    array([ 1., -1.])
    >>> Labels.of([0, 1, 1]).encode([0, 1])
    array([-1.,  1.])
    >>> Labels.of(["red", "green", "red", "blue"]).encode(["blue", "red"])
    array([3., 1.])
    """

    task: str
    negative: Any = None
    positive: Any = None
    classes: tuple[Any, ...] = ()
    unseen: str = dataclasses.field(default="", compare=False, repr=False)
    """`negative` or `positive` if only the other class has come, which suggests this name: another may come instead."""

    @classmethod
    def of(cls, y: Any, task: str = "auto", positive: Any = None) -> Labels:
        """What the labels `y` mean; `task` is `auto`, `classify`, `multiclass` or `regress`.

        To classify, more than two different labels make it `multiclass`. `positive` says which of two classes is +1.
        """
        if task not in ("auto", "classify", "multiclass", "regress"):
            raise DataError(f"the task must be auto, classify, multiclass or regress, not {shown(task)}.")
        column = _column(y)
        if positive is not None:
            if task in ("multiclass", "regress"):
                raise SettingsError(f"positive (--positive) is for two classes, not for the task {task}.")
            return cls("classify", *_pair(column, positive))
        distinct = _distinct(column)
        if task == "auto":
            numeric = column.dtype.kind in "iuf"
            if numeric and (set(distinct) <= {0, 1} or set(distinct) <= {-1, 1}):
                return cls("classify", *_pair(column)[:2])  # any other number says that these are none of two classes
            task = "regress" if numeric else "classify"
            _require_classes(column)
        if task == "regress":
            return cls("regress")
        if task == "multiclass" or len(distinct) > 2:
            return cls("multiclass").extended(column)
        return cls("classify", *_pair(column))

    @classmethod
    def under(cls, loss: Any, y: Any, positive: Any = None) -> Labels:
        """What the labels `y` mean to a `loss`, whose task it is; one that classifies knows two classes.

        `positive` is as for `of`.

        >>> import rue
        >>> Labels.under(rue.Hinge(), [3, 8]).positive
        8
        """
        if loss.task == "classify":
            return cls("classify", *_pair(_column(y), positive))
        return cls.of(y, loss.task, positive)

    @staticmethod
    def settled_by(y: Any, task: str, positive: Any = None) -> bool:
        """Whether these labels, the first of a stream, tell what they mean whatever comes after them.

        Where both classes or a class of known meaning (yes, 0) have come they do; one other class alone does not.

        >>> [Labels.settled_by(y, "auto") for y in (["ham"], ["no"], ["ham", "spam"], [1.0])]
        [False, True, True, True]
        """
        if task in ("multiclass", "regress"):
            return True
        column = _column(y)
        distinct = _distinct(column)
        if len(distinct) != 1:
            return len(distinct) > 1
        number = column.dtype.kind in "iuf"
        by_meaning = _key(distinct[0]) in _SIGNS or (number and (task == "auto" or distinct[0] == 1))
        return by_meaning or positive is not None

    def extended(self, y: Any) -> Labels:
        """The same, with classes of `y` named that had not occurred before.

        >>> Labels.of(["a", "b", "c"]).extended(["d"]).classes
        ('a', 'b', 'c', 'd')
        """
        if self.task == "regress" or y is None:
            return self
        if self.task == "multiclass":
            known = set(self.classes)
            new = [label for label in _in_order(np.asarray(y)) if label not in known]
            return dataclasses.replace(self, classes=(*self.classes, *new)[:MOST_CLASSES]) if new else self
        column = np.asarray(y)
        if self.unseen and np.any(_equal(column, getattr(self, self.unseen))):
            return dataclasses.replace(self, unseen="").extended(y)
        if column.dtype.kind != "O" and np.all(_equal(column, self.negative) | _equal(column, self.positive)):
            return self
        new = [label for label in _distinct(column) if label not in (self.negative, self.positive)]
        if not new:
            return self
        if self.positive is None or self.unseen == "positive":
            return Labels("classify", self.negative, new[0])
        if self.unseen == "negative" and type(self.positive) in (int, float) and new[0] not in (0, -1):
            first, second = shown(plain(self.positive)), shown(plain(new[0]))
            raise DataError(
                f"the classes are {first} and {second}, and {first} came alone for a while: say which of them is +1, "
                f"--positive {first} or --positive {second} (in Python positive=)."
            )
        if self.negative is None or self.unseen == "negative":
            return Labels("classify", new[0], self.positive)
        if self.positive == 1 and self.negative == -1 and new[0] == 0 and not np.any(np.asarray(y) == -1):
            return Labels("classify", type(self.negative)(0), self.positive)
        return self

    def encode(self, y: Any) -> Any:
        """Labels `y` as the loss takes them: numbers of classes, or the numbers themselves; NaN for any other."""
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
        positive = np.broadcast_to(_equal(column, self.positive), column.shape)
        known, signs = positive | _equal(column, self.negative), 2.0 * positive - 1.0
        if not known.all():
            signs[~known] = np.nan
        return signs

    def numbers(self) -> dict[float, Any]:
        """The classes that have a name, by the number that the loss knows them as.

        >>> Labels.of(["ham", "spam"]).numbers()
        {-1.0: 'ham', 1.0: 'spam'}
        """
        if self.task == "multiclass":
            return {1.0 + i: name for i, name in enumerate(self.classes)}
        pair = {-1.0: self.negative, 1.0: self.positive}
        return {number: name for number, name in pair.items() if name is not None}

    def complaint(self, label: Any) -> str:
        """What to say about a `label` that is none of the classes.

        >>> Labels.of(["ham", "spam"]).complaint("eggs")[:44]
        "the label 'eggs' is neither 'ham' nor 'spam'"
        """
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


def class_order(classes: Sequence[Any]) -> list[int]:
    """The places of classes in the order in which tables show them: numbers by size, then words by their letters.

    >>> class_order(("red", "blue", 10, 9))
    [3, 2, 1, 0]
    """
    return sorted(range(len(classes)), key=lambda c: (isinstance(classes[c], str), classes[c]))


def plain(label: Any) -> Any:
    """A class as a person would write it: 1 for 1.0."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def is_called(label: Any, name: Any) -> bool:
    """Whether a label is the class that the user has named, perhaps as text: 1 for 1.0, true for True."""
    if isinstance(label, bool):
        return str(label).lower() == str(name).lower()
    return bool(label == name) or str(plain(label)) == str(plain(name))


def number_note(y: Any) -> list[str]:
    """What to say about the numbers of a regression that may be classes: few whole numbers that come again and again.

    >>> print(*number_note([3, 1, 2] * 9))  # doctest: +ELLIPSIS
    the labels are 3 whole numbers, 1 to 3, learnt as numbers to predict; if they are classes, say ...
    """
    column = np.asarray(y)
    if column.dtype.kind not in "iuf":
        return []
    distinct = np.unique(column[np.isfinite(column)][:FIRST_ROWS])
    few = 2 <= distinct.size <= MOST_ALIKE and column.size >= 5 * distinct.size
    if not few or np.any(distinct != np.round(distinct)):
        return []
    return [
        f"the labels are {distinct.size} whole numbers, {distinct[0]:.0f} to {distinct[-1]:.0f}, learnt as numbers to "
        "predict; if they are classes, say --task classify (in Python task='classify'), and if not, regress."
    ]


def missing_note(y: Any) -> list[str]:
    """What to say about labels that are words for a missing value: they are learnt as a class like any other.

    >>> print(*missing_note(["male", "female", "NA"]))  # doctest: +ELLIPSIS
    the label 'NA' is learnt as a class of its own; if it says that the label is missing, leave its cells empty: ...
    """
    words = {label for label in np.asarray(y, dtype=object)[:FIRST_ROWS].tolist() if isinstance(label, str)}
    return [
        f"the label {shown(word)} is learnt as a class of its own; if it says that the label is missing, leave its "
        "cells empty: such rows are predicted, not learnt, and counted."
        for word in sorted(words & set(MISSING))
        if word and len(words) > 1
    ]


def _require_classes(column: Any) -> None:
    """Refuse words that are hardly classes: numbers or dates in another spelling, and words that hardly come again."""
    words = [str(label).strip() for label in column[:LOOKED_AT].tolist() if isinstance(label, str) and label.strip()]
    different, (kind, example) = len(set(words)), looks(words)
    if kind and len(words) >= 5 and different > min(MOST_ALIKE, len(words) // 2):
        odd = next((word for word in words if looks([word])[0] != kind), "")
        mend = {
            "numbers": f"mend {shown(odd)}, which is none" if odd else "make numbers of them",
            "amounts": "read them as numbers, with --decimal ',' where commas are decimal (in Python decimal=',')",
            "dates": "predict another column, or make numbers of them",
        }[kind]
        raise DataError(
            f"the labels are text, but look like {kind}, such as {shown(example)}: {mend}; if they are classes, say "
            "--task multiclass (in Python task='multiclass')."
        )
    if len(words) >= 100 and different > 0.8 * len(words):
        raise DataError(
            f"the labels are {different:,} different words in {len(words):,} rows, such as {shown(words[0])}: predict "
            "another column; if they are classes, say --task multiclass (in Python task='multiclass')."
        )


def _column(y: Any) -> Any:
    if y is None:
        raise DataError("there are no labels: give y.")
    column = as_labels(y)
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


def _pair(column: Any, positive: Any = None) -> tuple[Any, Any, tuple[Any, ...], str]:
    """The fields of `Labels` for two classes; the name of one that is not known yet is None."""
    distinct = _distinct(column)
    meant = {_key(label): label for label in distinct}
    if positive is None:
        for negative, other in _BY_MEANING:
            if set(meant) <= {negative, other} or ({negative, other} <= set(meant) and isinstance(negative, float)):
                unseen = "" if len(meant) != 1 else "positive" if negative in meant else "negative"
                pair = meant.get(negative, _like(distinct, negative)), meant.get(other, _like(distinct, other))
                return *pair, (), unseen
    if len(distinct) > 2:
        named = ", ".join(shown(plain(label)) for label in distinct[:4]) + (", …" if len(distinct) > 4 else "")
        if positive is not None:
            raise DataError(
                f"there are more than two classes ({named}): leave out positive (--positive), which is of two."
            )
        raise DataError(
            f"there are more than two classes ({named}): leave the learner and the loss out for the one that learns "
            "them; for numbers to predict, choose a regression loss such as loss='square'."
        )
    if positive is not None:
        return *_with_positive(distinct, positive), (), ""
    if len(distinct) == 1:
        return distinct[0], None, (), ""
    first, second = distinct
    return *_ordered(first, second, alone=len(_distinct(column[:FIRST_ROWS])) == 1), (), ""


def _ordered(first: Any, second: Any, alone: bool) -> tuple[Any, Any]:
    """Two classes, −1 before +1: by the meaning of one of them, or sorted; by the first, if it came `alone`."""
    if alone:
        return (second, first) if _SIGNS.get(_key(first)) == 1 or str(plain(first)) == "1" else (first, second)
    for label, other in ((first, second), (second, first)):
        if sign := _SIGNS.get(_key(label)):
            return (label, other) if sign < 0 else (other, label)
    negative, positive = sorted((first, second), key=lambda label: (isinstance(label, str), label))
    return negative, positive


def _with_positive(distinct: list[Any], positive: Any) -> tuple[Any, Any]:
    """The names of −1 and of +1 where the user has chosen which is +1."""
    wanted = next((label for label in distinct if is_called(label, positive)), None)
    others = [label for label in distinct if label is not wanted]
    if len(others) == 2:
        named = " and ".join(shown(plain(label)) for label in others)
        raise DataError(f"positive (--positive) is {shown(plain(positive))}, but the classes are {named}.")
    return others[0] if others else None, _written_like(others, positive) if wanted is None else wanted


def _written_like(others: list[Any], name: Any) -> Any:
    """A class that has not occurred yet, as the user has named it, of the type that the other one has."""
    example = others[0] if others else name
    try:
        if isinstance(example, bool):
            return {"true": True, "false": False}[str(name).lower()]
        return type(example)(name) if isinstance(example, int | float) else name
    except (KeyError, ValueError):
        given, other = shown(name), shown(plain(example))
        raise DataError(f"positive (--positive) is {given}, but the labels are such as {other}.") from None


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
