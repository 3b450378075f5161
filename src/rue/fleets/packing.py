"""A learner's state as one packed record, so that very many small learners lie together in memory.

A `Workbench` is a learner's point, and the sums of its certificate, with all arrays that are state in one buffer. A
`Shape` says how many places (coordinates that have a row) a record has room for. `Workbench.plan` lists which parts of
the buffer make a record of a shape: compiled code copies a record onto the workbench, learns some rows as any learner
does, and copies it back. Which arrays are state, and which axis goes by the places, the point's `layout` says.

>>> import rue
>>> bench = Workbench(rue.OGD("square", "ball:1").algorithm, coordinates=3, room=8)
>>> bench.words(Shape(3, late=False)), bench.words(Shape(8, late=False))  # of eight bytes each
(21, 31)
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from rue.errors import SettingsError
from rue.layout import Array
from rue.learners.algorithm import Algorithm
from rue.learners.mixture.layout import NARROW
from rue.ledger import LEDGER, open_ledger
from rue.memory import CACHE_LINE, aligned_zeros

__all__ = ["WORD", "Shape", "Workbench", "require_packable"]

WORD = 8
"""Bytes of a word: records are arrays of whole words."""
_LATE = frozenset({"copies", "divisors", "copied_matrices", "candidates"})
"""Arrays of a mixture that stay as they began until its weights are copied first, in round `FIRST_COPY`."""
_LINES = (Array("lines", "Which table row a coordinate has.", ("coordinate",)), Array("given", "Rows given.", ("one",)))
"""State of a pool that its layout leaves out, because model files do not have it."""


class Shape(NamedTuple):
    """What a record has room for."""

    places: int
    """How many coordinates, the intercept's among them."""
    late: bool
    """Whether the weights of a mixture have been copied, or may be while it learns."""


def require_packable(algorithm: Algorithm) -> None:
    """Refuse a learner whose state does not go into a record, in one sentence."""
    if not (algorithm.domain.grows and algorithm.domain.keeps_zeros):
        raise SettingsError(
            f"{algorithm.name} cannot be learnt for every key on {algorithm.domain!r}, whose number of features is "
            "fixed: take a ball, or a box that contains 0."
        )
    rule, point = algorithm.start(2, room=2)
    own = getattr(point, "layout", None)
    parts = hasattr(point, "points") or hasattr(point, "stages")
    flat = own is not None and all("coordinate" not in array.axes[1:] for array in own)  # its rows can be cut off
    if parts or not flat or algorithm.loss.task == "multiclass":
        raise SettingsError(
            f"{algorithm.name} cannot be learnt for every key: mixture, ogd, adagrad, adaptive, perceptron and svm "
            "can, for numbers or two classes, on the whole space, a ball or a box."
        )
    if algorithm.start(9, room=2)[0] != rule:  # all keys share one rule, whatever features they have
        raise SettingsError(
            f"{algorithm.name} cannot be learnt for every key, because its step depends on the number of features, "
            "which differs from key to key: say the step, such as sqrt:0.5."
        )


class Workbench:
    """The point of a learner, and a ledger, whose arrays lie in one buffer with room for so many coordinates."""

    def __init__(self, algorithm: Algorithm, coordinates: int, room: int) -> None:
        self.algorithm, self.room = algorithm, room
        self.rule, point = algorithm.start(coordinates, room=room)
        ledger = open_ledger(room)
        layout = list(point.layout)
        self.tables = hasattr(point, "lines")
        """Whether rows of tables are given out to coordinates as they occur; row 0 stays empty."""
        declared = [array for array in layout if array.saved]
        declared += list(_LINES) if self.tables else []
        declared += [array for array in LEDGER if array.saved]
        sources = {**point._asdict(), **ledger._asdict()}
        self.arrays = [array for array in declared if sources[array.name].size]
        # Each array begins with a line of the cache, as those of any learner do: a record is copied here instead of
        # being viewed where it lies, because the loops are faster on aligned arrays and are compiled for one size.
        sizes = [-(-sources[array.name].nbytes // CACHE_LINE) * CACHE_LINE for array in self.arrays]
        buffer = aligned_zeros(sum(sizes), np.uint8)
        self.begin: dict[str, int] = {}
        views: dict[str, Any] = {}
        for array, at in zip(self.arrays, itertools.accumulate(sizes, initial=0), strict=False):
            given = sources[array.name]
            view = buffer[at : at + given.nbytes].view(given.dtype).reshape(given.shape)
            view[...] = given
            views[array.name], self.begin[array.name] = view, at // WORD
        self.buffer = buffer.view(np.uint64)
        """All of it, in words."""
        self.blank = self.buffer.copy()
        """As it is before the first example."""
        self.point = point._replace(**{name: view for name, view in views.items() if name in point._fields})
        self.ledger = ledger._replace(**{name: view for name, view in views.items() if name in ledger._fields})
        self.views = views
        self._plans: dict[Shape, Any] = {}

    def plan(self, shape: Shape) -> Any:
        """The parts of a record: where each begins in the buffer and in the record, and how many words it has."""
        if shape not in self._plans:
            parts: list[list[int]] = []
            at = 0
            for array in self.arrays:
                if array.name in _LATE and not shape.late:
                    continue
                for begin, words in self._parts(array, shape):
                    # What lies together in the buffer is one copy: compiled code takes a part at a time.
                    if parts and parts[-1][0] + parts[-1][2] == begin:
                        parts[-1][2] += words
                    else:
                        parts.append([begin, at, words])
                    at += words
            self._plans[shape] = np.array(parts, dtype=np.int64)
        return self._plans[shape]

    def held(self, shape: Shape) -> list[str]:
        """The names of the arrays that a record has."""
        return [array.name for array in self.arrays if shape.late or array.name not in _LATE]

    def words(self, shape: Shape) -> int:
        """How many words a record has."""
        return int(self.plan(shape)[:, 2].sum())

    def blank_record(self, shape: Shape) -> Any:
        """The record of a learner that has not learnt anything."""
        return np.concatenate([self.blank[begin : begin + words] for begin, _, words in self.plan(shape)])

    def moves(self, before: Shape, after: Shape) -> list[tuple[int, int, int]]:
        """What of a record goes where in one of a larger shape: the place before, the place after, and the words."""
        moved = []
        larger = self.plan(after)
        for begin, at, words in self.plan(before).tolist():
            while words:
                part = larger[np.searchsorted(larger[:, 0], begin, side="right") - 1]
                inside = begin - int(part[0])
                some = min(words, int(part[2]) - inside)
                assert some > 0, "a larger record has all that a smaller one has"
                moved.append((at, int(part[1]) + inside, some))
                begin, at, words = begin + some, at + some, words - some
        return moved

    def column(self, records: Any, shape: Shape, name: str) -> Any:
        """The array of this name in each of some records, a row for each record; as many rows of it as they have."""
        array = next(array for array in self.arrays if array.name == name)
        view = self.views[name]
        begins = self._parts(array, shape)
        assert len(begins) == 1, "its parts do not lie together"
        start, words = begins[0]
        begin, at, _ = next(part for part in self.plan(shape).tolist() if part[0] <= start < part[0] + part[2])
        cut = np.ascontiguousarray(records[:, at + start - begin : at + start - begin + words])
        limits = self._limits(array, shape)
        flat = cut.view(view.dtype)[:, : int(np.prod(limits))]
        return flat.reshape(len(records), *limits)

    def clear(self) -> None:
        """As before the first example."""
        self.buffer[...] = self.blank

    def load(self, record: Any, shape: Shape) -> None:
        """One record onto the workbench, which is blank otherwise."""
        self.clear()
        for begin, at, words in self.plan(shape).tolist():
            self.buffer[begin : begin + words] = record[at : at + words]

    def _limits(self, array: Array, shape: Shape) -> list[int]:
        """How much of each axis of an array a record has."""
        whole = self.views[array.name].shape
        narrow = min(shape.places, NARROW)
        limits = {
            "coordinate": shape.places + int(self.tables and array.name not in ("lines", "S")),
            "line": narrow,
            "column": whole[-1] - NARROW + narrow,
        }
        return [
            min(size, limits.get(axis, size)) if isinstance(axis, str) else size
            for axis, size in zip(array.axes, whole, strict=True)
        ]

    def _parts(self, array: Array, shape: Shape) -> list[tuple[int, int]]:
        """The parts of the buffer that a record has of an array: where each begins, and its words."""
        view, limits = self.views[array.name], self._limits(array, shape)
        whole = view.shape
        axis = len(whole)
        while axis > 1 and limits[axis - 1] == whole[axis - 1]:
            axis -= 1  # rows that lie together
        axis -= 1
        run = limits[axis] * int(np.prod(whole[axis + 1 :])) * view.itemsize
        strides = view.strides[:axis]
        begins = [0]
        for limit, stride in zip(limits[:axis], strides, strict=True):
            begins = [begin + i * stride for begin in begins for i in range(limit)]
        assert len(begins) == 1 or all(begin % WORD == 0 and run % WORD == 0 for begin in begins), array.name
        return [(self.begin[array.name] + begin // WORD, -(-run // WORD)) for begin in begins]
