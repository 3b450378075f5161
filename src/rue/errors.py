"""Every error rue raises, as one tree.

    RueError
    ├── SettingsError (ValueError)     something was asked for that cannot be built
    │   └── UnknownName                a name that is in no registry
    ├── DataError (ValueError)         the data contradict the learner or the loss
    │   ├── BadExample                 one example is unusable; `row` says which
    │   └── NoRoom                     what the data ask for is more than the memory there is
    └── CheckFailed (AssertionError)   a class breaks the contract that `rue.checks` tests

A message is one sentence: what is wrong, where, and what to do.
"""

from __future__ import annotations

import reprlib
from typing import Any

__all__ = [
    "NO_MEMORY",
    "BadExample",
    "CheckFailed",
    "DataError",
    "NoRoom",
    "RueError",
    "SettingsError",
    "UnknownName",
    "shown",
]

LONGEST = 80
"""Characters of a user's value that a message shows."""


NO_MEMORY = (
    "there is not enough memory for this: free some, or hash words into fewer features (--bits) or leave columns out "
    "(--drop)."
)
"""What commands say where the system hands out no more."""


class RueError(Exception):
    """The root of the tree: `except rue.RueError` catches everything rue raises on purpose.

    >>> import rue
    >>> try:
    ...     rue.OGD("hinge", "ball:-1")
    ... except rue.RueError as error:
    ...     print(f"{type(error).__name__}: {error}")
    SettingsError: Ball: radius must be positive and finite, not -1.0; `Reals` has no bound.
    """


class SettingsError(RueError, ValueError):
    """A loss, domain, step or learner that makes no sense, refused when it is built.

    >>> import rue
    >>> try:
    ...     rue.Quantile(2.0)
    ... except rue.SettingsError as error:
    ...     print(error)
    Quantile: tau must lie between 0 and 1, not be 2.0.
    """


class UnknownName(SettingsError):
    """A name that is in no registry; the message lists what there is and what was probably meant.

    >>> import rue
    >>> try:
    ...     rue.make("loss", "hnge")
    ... except rue.UnknownName as error:
    ...     print("did you mean" in str(error))
    True
    """


class DataError(RueError, ValueError):
    """Data that the learner cannot take: wrong shape, wrong type, wrong width.

    >>> import rue
    >>> learner = rue.Perceptron(d=2)
    >>> try:
    ...     learner.update([1.0, 2.0, 3.0], 1)
    ... except rue.DataError as error:
    ...     print(error)
    the example has 3 features, but the learner has 2.
    """


class BadExample(DataError):
    """One unusable example; everything before it has been learnt, it and what follows have not.

    `row` counts from 0 in what was passed to the call, and `why` says what is wrong with it.

    >>> import rue
    >>> learner = rue.OGD("hinge", "ball:1")
    >>> try:
    ...     learner.run([[1.0], [float("inf")], [2.0]], [1, 1, -1])
    ... except rue.BadExample as error:
    ...     print(error.row, learner.t)
    1 1
    """

    def __init__(self, row: int, why: str) -> None:
        super().__init__(f"row {row} (counting from 0): {why}")
        self.row = row
        self.why = why

    def __reduce__(self) -> tuple[type[BadExample], tuple[int, str]]:
        return BadExample, (self.row, self.why)


class NoRoom(DataError):
    """Data for which a learner would need more memory than there is; refused before any of it is allocated.

    >>> import rue
    >>> issubclass(rue.NoRoom, rue.DataError)
    True
    """


class CheckFailed(RueError, AssertionError):
    """A contract of `rue.checks` that a class does not keep; the message holds the counterexample.

    >>> import rue
    >>> @rue.parameter
    ... class Wrong(rue.Loss):
    ...     def value(self, p, y):
    ...         return (p - y) ** 2
    ...
    ...     def slope(self, p, y):
    ...         return p - y
    >>> try:
    ...     rue.checks.check_loss(Wrong())
    ... except rue.CheckFailed as error:
    ...     print(type(error).__name__)
    CheckFailed
    """


def shown(value: Any) -> str:
    """A user's value in a message: its `repr` if that is short, an array or a table by its shape.

    >>> shown("square"), shown([1, 2])
    ("'square'", '[1, 2]')
    >>> import numpy
    >>> shown(numpy.zeros((1000, 3)))
    'an ndarray of shape (1000, 3)'
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{_kind(value)} of shape {shape}"
    try:
        text = " ".join(_short.repr(value).split())
    except Exception:  # a user's own `__repr__`, or a whole number of thousands of digits
        return _kind(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _kind(value: Any) -> str:
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeioAEIO' or kind == 'ndarray' else 'a'} {kind}"


_short = reprlib.Repr()
"""Does not go through all of a long list or text, which may take seconds."""
_short.maxlist = _short.maxtuple = _short.maxset = _short.maxfrozenset = _short.maxdict = _short.maxarray = 6
_short.maxstring = _short.maxother = _short.maxlong = LONGEST
