"""Merging learners: several went on from one state, each with a part of a stream, and become one again.

What a state has is put together as its layout declares (`rue.layout`): sums since the base are added, weights are
averaged over the parts that saw examples, scales are the largest of theirs. The mean of points of a convex set lies in
the set. M parts of T examples in all have a regret of at most DL√(MT) together where one learner has DL√T
(docs/theory.md, section 7).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from rue.errors import SettingsError
from rue.learners.learner import Learner
from rue.learners.one_example import OWN_NAMES, Names
from rue.learners.points import gathered, laid_out
from rue.memory import aligned_zeros
from rue.streams.numbering import Numbering

__all__ = ["merge"]


def merge(base: Learner, parts: Sequence[Learner], classes: Sequence[Any] | None = None) -> Learner:
    """The learner for all the examples that several parts have learnt, each of which went on from a copy of `base`.

    A part that has learnt nothing since then does not count; if one alone has, a copy of it is returned, to the bit.
    Features that only some parts have seen, by name or by index, find their places. For learners of more than two
    classes `classes` may say, for each part, which number each of its classes 1, 2, … has in the result; by default
    they keep theirs.

    >>> import numpy as np, rue
    >>> X, y = np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1.0, 1.0, -1.0, -1.0])
    >>> base = rue.OGD("hinge", "ball:1", intercept=False)
    >>> parts = [base.copy(), base.copy()]
    >>> _ = parts[0].run(X[:2], y[:2]), parts[1].run(X[2:], y[2:])
    >>> merged = merge(base, parts)
    >>> merged.t, merged.point
    (4, array([1.]))
    """
    parts = list(parts)
    if base.lags is not None:
        raise SettingsError("merge: lags need the rows in order: leave lags out, or learn in one piece.")
    if base.bins is not None or any(part.bins is not None for part in parts):
        raise SettingsError(
            "merge: bins need the rows in order, because their edges are of the rows before: leave bins out, or learn "
            "in one piece."
        )
    for k, part in enumerate(parts):
        _require_same(base, part, k)
    begun = [k for k, part in enumerate(parts) if part.t > base.t]
    numbers = [None] * len(parts) if classes is None else list(classes)
    if not begun or (len(begun) == 1 and numbers[begun[0]] is None):
        return (parts[begun[0]] if begun else base).copy()
    alignment = _Alignment(base, [parts[k] for k in begun])
    rule = _common_rule(base, [parts[k] for k in begun])
    start = base._point
    if start is None:
        start = base.algorithm.start(alignment.coordinates, None, alignment.places)[1]
    states = [start, *(parts[k]._point for k in begun)]
    places = [alignment.of(base) if base._point is not None else np.arange(alignment.places)]
    places += [alignment.of(parts[k]) for k in begun]
    alignment.look_for_use(states, places)
    first, *points = (alignment.moved(state, to) for state, to in zip(states, places, strict=True))
    if hasattr(first, "with_classes"):
        room = max(point.classes() for point in (first, *points))
        room = max([room, *(int(np.max(own, initial=0)) for own in numbers if own is not None)])
        given = [None, *(numbers[k] for k in begun)]
        first, *points = (p.with_classes(room, own) for p, own in zip((first, *points), given, strict=True))
    point = first.merged(base.algorithm, points) if len(points) > 1 else points[0]
    point = gathered(point)
    if alignment.in_use is not None:
        point = point.spread(alignment.in_use, alignment.places)
    merged: Learner = type(base).__new__(type(base))
    merged.__setstate__(
        {
            "algorithm": base.algorithm,
            "intercept": base.intercept,
            "d": alignment.d,
            "names": alignment.names,
            "numbering": alignment.numbering,
            "_rule": rule,
            "_point": point,
        }
    )
    return merged


def _require_same(base: Learner, part: Learner, k: int) -> None:
    """Refuse a part that cannot have gone on from the base."""
    if type(part) is not type(base) or part.algorithm != base.algorithm or part.intercept != base.intercept:
        raise SettingsError(f"merge: parts[{k}] is {part!r}, but the base is {base!r}: merge learners of one kind.")
    if part.t < base.t:
        raise SettingsError(
            f"merge: parts[{k}] has learnt {part.t} examples and the base {base.t}: a part goes on from a copy of it."
        )


def _common_rule(base: Learner, parts: Sequence[Learner]) -> Any:
    """What all learners do in a round, which may depend on how wide the first example was."""
    rules = [learner._rule for learner in (base, *parts) if learner._rule is not None]
    if any(rule != rules[0] for rule in rules):
        raise SettingsError(
            f"merge: the step of {base.algorithm.name} depends on the number of features, and the parts began with "
            "different ones: say the number when the base is built, d=…."
        )
    return rules[0]


class _Alignment:
    """Where the coordinates of several learners are in the arrays of one that knows the features of all."""

    def __init__(self, base: Learner, parts: Sequence[Learner]) -> None:
        learners = [learner for learner in (base, *parts) if learner._point is not None]
        self.intercept, self.domain = int(base.intercept), base.domain
        self.names = self._common_names(base, learners)
        self.d = max([len(self.names.places), *(learner.d for learner in learners)])
        if not self.domain.grows and any(learner.d != self.d for learner in learners):
            raise SettingsError(
                f"merge: {self.domain!r} cannot grow, and the parts began with different numbers of features: say the "
                "number when the base is built, d=…."
            )
        self.in_use: Any = None
        """The places in use, where all others can be left out."""
        self.numbering: Numbering | None = None
        if any(learner.numbering is not None for learner in learners):
            own = [learner.numbering.base if learner.numbering else learner.d for learner in learners]
            self.numbering = copy.deepcopy(base.numbering) or Numbering(max(own))
            for learner in learners:
                features = self._features(learner)
                self.numbering.places_of(features[features >= 0], adding=True)

    @property
    def coordinates(self) -> int:
        """How many coordinates there are."""
        return self.d + self.intercept

    @property
    def places(self) -> int:
        """How many of them have a place."""
        size = self.coordinates if self.numbering is None else self.numbering.size + self.intercept
        return max(size, 1) if self.domain.grows else size

    def _common_names(self, base: Learner, learners: Sequence[Learner]) -> Names:
        """The base's feature names, then those that the parts have learnt."""
        names = Names()
        for learner in (base, *learners):
            for name in learner.names.places:
                names.places.setdefault(name, len(names.places))
        named = [learner for learner in learners if learner.names.places]
        if named and any(learner.d and not learner.names.places and learner.t for learner in learners):
            raise SettingsError("merge: some parts have learnt features by name and others by position.")
        hashed = any(len(learner.names.places) >= OWN_NAMES for learner in named)
        if (hashed or len(names.places) > OWN_NAMES) and any(learner.names.places != names.places for learner in named):
            raise SettingsError(f"merge: the parts have more than {OWN_NAMES:,} feature names, in different orders.")
        return names

    def _features(self, learner: Learner) -> Any:
        """The common index of the feature at each of a learner's places; −1 at one that has none."""
        if learner.numbering is not None:
            return learner.numbering.features()
        features = np.arange(learner.d)
        if learner.names.places and learner.names.places != self.names.places:
            features[:] = -1
            features[: len(learner.names.places)] = [self.names.places[name] for name in learner.names.places]
        return features

    def of(self, learner: Learner) -> Any:
        """For each of a learner's places its place here; −1 for one that is not used."""
        features = self._features(learner)
        to = np.full(features.size, -1)
        known = features >= 0
        own = features[known] if self.numbering is None else self.numbering.places_of(features[known]).astype(np.int64)
        to[known] = own + self.intercept
        return np.concatenate([np.arange(self.intercept), to])

    def look_for_use(self, points: Sequence[Any], to: Sequence[Any]) -> None:
        """Find the places that are in use, if all points can tell: of 2^20 hashed names mostly a few thousand occur.

        All others stay 0, so that a merge need not look at them.
        """
        if all(hasattr(point, "occupied") for point in points):
            used = np.zeros(self.places, dtype=bool)
            used[0] = True  # the intercept, if there is one
            for point, own in zip(points, to, strict=True):
                places = own[point.occupied()]
                used[places[places >= 0]] = True
            self.in_use = np.flatnonzero(used)

    def moved(self, point: Any, to: Any) -> Any:
        """A copy of a point, with its rows at the places `to`, or of these only those in use."""
        if self.in_use is not None:
            own = point.occupied()
            own = own[to[own] >= 0]
            point, to = point.picked(own), np.searchsorted(self.in_use, to[own])
        return self._moved(point, to)

    def _moved(self, point: Any, to: Any) -> Any:
        point = laid_out(point)
        if hasattr(point, "changed"):  # it has parts, whose coordinates are the data's too
            point = point.changed(lambda part: self._moved(part, to))
        used, fields = np.flatnonzero(to >= 0), {}
        own = {array.name: array for array in point.layout if "coordinate" in array.axes}
        for name, before in point._asdict().items():
            array = own.get(name)
            if not isinstance(before, np.ndarray):
                continue
            if array is None or (array.optional and not before.size):
                fields[name] = before.copy()
                continue
            axis = array.axes.index("coordinate")
            places = self.places if self.in_use is None else self.in_use.size
            shape = [places if i == axis else length for i, length in enumerate(before.shape)]
            fields[name] = aligned_zeros(tuple(shape), before.dtype)
            np.moveaxis(fields[name], axis, 0)[to[used]] = np.moveaxis(before, axis, 0)[used]
        return point._replace(**fields)
