"""`Lags`: the last labels, and running averages of them, as features of the next example.

With lags k_1 < k_2 < …, a row gets in front of its own features the k-th last label for each k, and for each k above 1
the mean of the labels so far, which from the k-th on forgets: a ← a + (y − a)/k. Labels are as the loss takes them, −1
and +1 for two classes, and 0 before there is one.

A label counts when it arrives: when its example is learnt. An example without a label, or with weight 0, brings none.
So a lag never has a label that was not known, in whatever order labels come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rue.compiled import kernel
from rue.errors import DataError, SettingsError, shown
from rue.streams.block import Block

__all__ = ["FARTHEST", "MOST_LAGS", "Called", "Lags", "lags_of"]

MOST_LAGS, FARTHEST = 64, 1_000_000
"""How many lags there may be, and how far back one may reach."""


@kernel
def _go_on(y: Any, weights: Any, back: Any, last: Any, averages: Any, seen: Any, out: Any) -> None:
    """Write the features of each row into `out`, if it has rows, and then enter the row's label, if it has one."""
    many, room, writes = back.size, last.size, out.shape[0] > 0
    for i in range(y.size):
        if writes:
            n = seen[0]
            for j in range(many):
                k = back[j]
                out[i, j] = last[(n - k) % room] if n >= k else 0.0
            at = many
            for j in range(many):
                if back[j] > 1:
                    out[i, at] = averages[j]
                    at += 1
        if (weights.size == 0 or weights[i] > 0.0) and np.isfinite(y[i]):
            last[seen[0] % room] = y[i]
            seen[0] += 1
            for j in range(many):
                averages[j] += (y[i] - averages[j]) / min(back[j], seen[0])


def lags_of(given: Any) -> tuple[int, ...]:
    """Lags as whole numbers in rising order, each once; refuses what are none.

    >>> lags_of([24, 1, 2])
    (1, 2, 24)
    """
    listed = [given] if isinstance(given, int | np.integer) else given
    try:
        lags = tuple(sorted(set(listed)))
        good = all(isinstance(k, int | np.integer) and not isinstance(k, bool) for k in lags)
    except TypeError:
        good, lags = False, ()
    if not good or not lags or lags[0] < 1 or lags[-1] > FARTHEST or len(lags) > MOST_LAGS:
        raise SettingsError(
            f"lags: give at most {MOST_LAGS} whole numbers from 1 to {FARTHEST:,}, such as [1, 2, 24], "
            f"not {shown(given)}."
        )
    return tuple(map(int, lags))


class Called(Mapping[int, str]):
    """What features are called when last labels stand in front of them; one without a name has its number.

    >>> called = Called(["last label"], {0: "size"})
    >>> called[1], called[2]
    ('size', 'feature 1')
    """

    def __init__(self, first: Sequence[str], own: Mapping[int, str]) -> None:
        self.first, self.own = list(first), own

    def __getitem__(self, feature: int) -> str:
        own = feature - len(self.first)
        return self.first[feature] if own < 0 else self.own.get(own, f"feature {own}")

    def __iter__(self) -> Iterator[int]:
        yield from range(len(self.first))
        yield from (feature + len(self.first) for feature in self.own)

    def __len__(self) -> int:
        return len(self.first) + len(self.own)


class Lags:
    """The last labels of one learner, ready to be features; state is a value, the same for blocks of any size.

    >>> import numpy as np
    >>> lags = Lags([1, 2])
    >>> lags.names
    ['last label', 'label 2 back', 'mean of 2 labels']
    >>> lags.attached(Block(np.zeros((3, 1)), y=[1.0, -1.0, -1.0])).X
    array([[ 0.,  0.,  0.,  0.],
           [ 1.,  0.,  1.,  0.],
           [-1.,  1.,  0.,  0.]])
    """

    def __init__(self, back: Any) -> None:
        self.back = lags_of(back)
        self.last = np.zeros(self.back[-1])
        """The last labels; that of round t stands at place t modulo their number."""
        self.averages = np.zeros(len(self.back))
        self.seen = np.zeros(1, dtype=np.int64)
        """How many labels have come."""
        self._back = np.array(self.back, dtype=np.int64)

    @property
    def names(self) -> list[str]:
        """What the features are called, in their order."""
        labels = ["last label" if k == 1 else f"label {k} back" for k in self.back]
        return labels + [f"mean of {k} labels" for k in self.back if k > 1]

    @property
    def many(self) -> int:
        """How many features there are."""
        return len(self.back) + sum(k > 1 for k in self.back)

    def enter(self, y: Any, weights: Any = ()) -> None:
        """Labels have come, in this order; those with weight 0, and NaN, are none."""
        y, weights = np.atleast_1d(np.asarray(y, np.float64)), np.atleast_1d(np.asarray(weights, np.float64))
        _go_on(y, weights, self._back, self.last, self.averages, self.seen, np.empty((0, 0)))

    def columns(self, y: Any, weights: Any) -> Any:
        """The features of rows that come next, each of which brings its label before the row after it."""
        out = np.empty((y.size, self.many))
        if y.size:
            state = self.last.copy(), self.averages.copy(), self.seen.copy()
            _go_on(y, weights, self._back, *state, out)
        return out

    def present(self) -> Any:
        """The features of the row that comes next."""
        return self.columns(np.zeros(1), np.zeros(1))[0]

    def attached(self, block: Block, standing: bool = False) -> Block:
        """The same rows with these features in front; `standing`: all with those of the first, and no label comes."""
        if standing or block.y is None:
            return block.with_first(np.tile(self.present(), (len(block), 1)))
        return block.with_first(self.columns(block.labels(), block.column_of_weights()))

    def before(self, indices: Any, values: Any) -> tuple[Any, Any]:
        """A sparse row, given by sorted indices and values, with these features in front."""
        if indices.size and int(indices[-1]) >= 2**32 - self.many:
            raise DataError(f"lags: the feature index {int(indices[-1])} leaves no room for {self.many} features more.")
        first = np.arange(self.many, dtype=np.uint32)
        return np.concatenate([first, indices + np.uint32(self.many)]), np.concatenate([self.present(), values])

    def __getstate__(self) -> tuple[Any, ...]:
        return self.back, self.last.copy(), self.averages.copy(), self.seen.copy()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.back, self.last, self.averages, self.seen = state
        self._back = np.array(self.back, dtype=np.int64)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lags):
            return NotImplemented
        mine, theirs = self.__getstate__(), other.__getstate__()
        return mine[0] == theirs[0] and all(map(np.array_equal, mine[1:], theirs[1:]))

    __hash__ = None  # type: ignore[assignment]  # its state changes
