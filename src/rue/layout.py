"""Layouts: the declaration of a state, from which merging and, for learners, growing, saving and loading are derived.

A state (the point of a learner, the sums of a certificate) is a named tuple of arrays. Its class has a `layout`, which
says of every array what it is, what its axes are, whether a model file has it, and how those of several parts of a
stream merge. The sums of a certificate only merge by their layouts: `rue.models.file` writes and reads their arrays by
hand, and their classes have a `grown` of their own.

Compiled code indexes plain arrays, with constants that come from the declaration:

>>> SUMS = Numbers(
...     Number("examples", "How many examples were learnt."),
...     Number("largest", "The largest weight of an example.", merge="maximum"),
... )
>>> LARGEST = SUMS.index("largest")
>>> LARGEST
1

Merging takes the state that all parts went on from, the *base*, and the states that they have reached:

>>> layout = Layout(Array("w", "The weights.", ("coordinate",), merge="averaged"), Array("sums", "Sums.", (SUMS,)))
>>> base = {"w": np.zeros(2), "sums": np.array([10.0, 1.0])}
>>> parts = [{"w": np.array([1.0, 0.0]), "sums": np.array([15.0, 4.0])},
...          {"w": np.array([0.0, 3.0]), "sums": np.array([12.0, 2.0])}]
>>> layout.merged(base, parts)
{'w': array([0.5, 1.5]), 'sums': array([17.,  4.])}
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rue.memory import aligned_zeros

__all__ = ["MERGES", "Array", "Layout", "Number", "Numbers", "padded"]


def _added(base: Any, parts: Sequence[Any]) -> Any:
    """base + Σ (part − base): what each part has added to the base's sum."""
    total = np.array(base)
    for part in parts:
        total = total + (part - base)
    return total


def _averaged(base: Any, parts: Sequence[Any]) -> Any:
    """The mean of the parts, each counted equally."""
    total = np.zeros(np.shape(base))
    for part in parts:
        total += part
    return (total / len(parts)).astype(np.asarray(base).dtype)


def _maximum(base: Any, parts: Sequence[Any]) -> Any:
    """The largest."""
    total = np.array(base)
    for part in parts:
        total = np.maximum(total, part)
    return total


def _first(base: Any, parts: Sequence[Any]) -> Any:
    """The base's where it is not 0, otherwise that of the first part in which it is not 0."""
    total = np.array(base)
    for part in parts:
        total = np.where(total == 0.0, part, total)
    return total


def _same(base: Any, parts: Sequence[Any]) -> Any:
    """The base's, which no part changes."""
    return np.array(base)


MERGES: dict[str, Callable[[Any, Sequence[Any]], Any]] = {
    "added": _added,
    "averaged": _averaged,
    "maximum": _maximum,
    "first": _first,
    "same": _same,
    "derived": _same,
}
"""What a declaration may say about merging; `derived`: recomputed by the state's own `merged`."""


@dataclasses.dataclass(frozen=True)
class Number:
    """One named number of a flat array, or one named row or column of a table."""

    name: str
    about: str
    """What it is, in a sentence."""
    merge: str = "added"
    """One of `MERGES`."""
    least: float = -math.inf
    """Lower limit; files below it are rejected. Not so in `memory` arrays, which the states' `require_sane` checks."""

    def __post_init__(self) -> None:
        assert self.merge in MERGES, self


class Numbers:
    """An axis whose places have names."""

    def __init__(self, *numbers: Number) -> None:
        self.numbers = numbers
        self._places = {number.name: place for place, number in enumerate(numbers)}
        assert len(self._places) == len(numbers), "a name occurs twice"

    def index(self, name: str) -> int:
        """The place of a number."""
        return self._places[name]

    def indices(self, *names: str) -> tuple[int, ...]:
        """The places of several numbers."""
        return tuple(self._places[name] for name in names)

    def followed_by(self, *numbers: Number) -> Numbers:
        """These numbers and, behind them, more."""
        return Numbers(*self.numbers, *numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Number]:
        return iter(self.numbers)


Axis = str | Numbers
"""What an array has a row for: a `"coordinate"`, a `"class"`, …; or named numbers."""


@dataclasses.dataclass(frozen=True)
class Array:
    """One array of a state."""

    name: str
    """As the state has it, and the model file."""
    about: str
    """What it is, in a sentence."""
    axes: tuple[Axis, ...]
    merge: str = "derived"
    """One of `MERGES`; where an axis has named numbers, the rules of its numbers override this one."""
    saved: bool = True
    """False for working memory, and for what follows from the settings."""
    optional: bool = False
    """Whether it is empty, and stays so, when the settings do not ask for it."""
    least: float = -math.inf
    """Lower limit; files below it are rejected. Where an axis has named numbers, theirs count."""
    refusal: str = "its sums are impossible"
    """The error text for a file with a smaller value."""
    dtype: str = "float64"
    """The type of its elements; where it depends on the loss (float32 or float64), the wider one."""
    since: int = 1
    """The format of model files that has it first; read from an older file, the array is as it was at the start."""

    def __post_init__(self) -> None:
        assert self.merge in MERGES, self

    @property
    def of_coordinates(self) -> bool:
        """Whether it has a row for each coordinate."""
        return self.axes[0] == "coordinate"

    def of_own_coordinates(self) -> Array:
        """The same for a point whose coordinates are not those of the data: they are never renumbered."""
        axes = tuple("own coordinate" if axis == "coordinate" else axis for axis in self.axes)
        return dataclasses.replace(self, axes=axes)

    def named_axis(self) -> tuple[int, Numbers] | None:
        """The axis that has named numbers, and these; None if there is none."""
        return next(((i, axis) for i, axis in enumerate(self.axes) if isinstance(axis, Numbers)), None)

    def merged(self, base: Any, parts: Sequence[Any]) -> Any:
        """Arrays of one shape, put together as declared."""
        named = self.named_axis()
        if named is None:
            return MERGES[self.merge](base, parts)
        axis, numbers = named
        total = np.empty_like(base)
        for place, number in enumerate(numbers):
            at = (slice(None),) * axis + (place,)
            total[at] = MERGES[number.merge](base[at], [part[at] for part in parts])
        return total

    def possible(self, values: Any) -> bool:
        """Whether no number is less than the declaration allows."""
        named = self.named_axis()
        if named is None:
            return self.least == -math.inf or bool((values >= self.least).all())
        axis, numbers = named
        return all(
            number.least == -math.inf or bool((np.take(values, place, axis) >= number.least).all())
            for place, number in enumerate(numbers)
        )


class Layout:
    """The arrays of a state, by name."""

    def __init__(self, *arrays: Array) -> None:
        self.arrays = {array.name: array for array in arrays}

    def __iter__(self) -> Iterator[Array]:
        return iter(self.arrays.values())

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def grown(self, state: Any, axis: str, size: int) -> dict[str, Any]:
        """Those arrays of a state that have an axis of this name, with zeros up to `size` along it."""
        return {
            array.name: padded(getattr(state, array.name), size, array.axes.index(axis))
            for array in self
            if axis in array.axes and not (array.optional and getattr(state, array.name).size == 0)
        }

    def merged(self, base: Any, parts: Sequence[Any]) -> dict[str, Any]:
        """The saved arrays of states of one shape, put together as declared."""
        states = [state if isinstance(state, Mapping) else state._asdict() for state in (base, *parts)]
        return {
            array.name: array.merged(states[0][array.name], [state[array.name] for state in states[1:]])
            for array in self
            if array.saved
        }


def padded(array: Any, size: int, axis: int = 0) -> Any:
    """A copy with zeros up to `size` along an axis; pages that are never written to take no memory."""
    shape = tuple(max(size, length) if i == axis else length for i, length in enumerate(array.shape))
    grown = aligned_zeros(shape, array.dtype)
    grown[tuple(map(slice, array.shape))] = array
    return grown
