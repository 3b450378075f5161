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

__all__ = ["BadExample", "CheckFailed", "DataError", "NoRoom", "RueError", "SettingsError", "UnknownName"]


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
    """A loss, domain, step or learner that makes no sense, refused when it is built."""


class UnknownName(SettingsError):
    """A name that is in no registry; the message lists what there is and what was probably meant."""


class DataError(RueError, ValueError):
    """Data that the learner cannot take: wrong shape, wrong type, wrong width."""


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
    """Data for which a learner would need more memory than there is; refused before any of it is allocated."""


class CheckFailed(RueError, AssertionError):
    """A contract of `rue.checks` that a class does not keep; the message holds the counterexample."""
