"""The learner's part of a model file: its settings, and the state of its point."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rue.errors import DataError, SettingsError
from rue.learners import ClassLearner, Learner
from rue.learners.adaptive import LARGEST as TABLE_LARGEST
from rue.learners.adaptive import SUM, Diagonal, W
from rue.learners.gradient import Gradient
from rue.learners.mixture.committee import Committee, Seats
from rue.learners.mixture.matrices import DIAGONAL, NARROW, USED
from rue.learners.mixture.mixing import ETA, GAPS, HEAVIEST, SHARES
from rue.learners.mixture.mixture import Pooled
from rue.learners.mixture.pool import COLUMNS, HELD, HIGH, KINDS, LOW, SLOPES, SPREAD_OF_LABELS, UNIT, PoolPoint
from rue.learners.one_example import Names
from rue.learners.points import GRADIENTS, LARGEST, MASS, SCALE, SQUARE, TOTAL, Scaled, T, of_coordinates, state_of
from rue.learners.softmax.classifier import require_sane_classes
from rue.learners.softmax.multiclass import Softmax
from rue.learners.softmax.softmax import ClassPool
from rue.models.arrays import Places, Reader, count, put, put_text, require_memory, typed
from rue.models.settings import from_json, rebuilt
from rue.registry import own_classes
from rue.streams.labels import MOST_CLASSES

__all__ = ["learner_read", "learner_written"]


def learner_written(learner: Learner, arrays: dict[str, Any]) -> dict[str, Any]:
    """A learner as JSON, its arrays entered."""
    state = learner.__getstate__()
    algorithm, point = state["algorithm"], state["_point"]
    for part in _algorithms(algorithm):
        if type(part) not in own_classes("algorithm").values():
            raise SettingsError(f"{type(part).__name__} is an algorithm of your own: only rue's can be saved.")
    written = {"algorithm": rebuilt(algorithm), "intercept": learner.intercept, "d": None}
    if point is None:
        return written
    if algorithm.start(learner.coordinates, np.zeros, min(1, learner.coordinates))[0] != state["_rule"]:
        raise SettingsError(f"{learner!r} cannot be saved: its step depends on how wide the first example was.")
    coordinates = learner.coordinates_of_places()
    for name, array in _kept(point, learner.places).items():
        put(arrays, f"point.{name}", array, coordinates if of_coordinates(name) else None, learner.coordinates)
    places = list(learner.names.places)
    for place in places:
        if type(place) not in (str, int, float, bool, type(None)) or place != place:
            raise SettingsError(f"the feature {place!r} cannot be saved: name features by text or numbers.")
    put_text(arrays, "point.names", places)
    return {**written, "d": learner.d, **({"classes": point.classes()} if isinstance(point, ClassPool) else {})}


def learner_read(reader: Reader, head: Any, known: Iterable[type], version: int) -> Learner:
    """The learner that was written, in a file of a format; DataError for anything else."""
    algorithm, intercept = from_json(head["algorithm"], known), typed(head["intercept"], bool)
    for part in _algorithms(algorithm):
        if type(part) not in own_classes("algorithm").values():
            raise DataError("it names no algorithm of rue's")
        typed(part.name, str)
    names, d, rule, point, numbering = Names(), 0, None, None, None
    if head["d"] is not None:
        d = count(head["d"], 2**32)
        coordinates = d + int(intercept)
        classes = count(head["classes"], MOST_CLASSES) if isinstance(algorithm, Softmax) else 1
        where = _places(reader, algorithm, d, intercept)
        numbering = None if where is None else where.numbering
        room = coordinates if where is None else where.size
        require_memory(room, classes * _columns(algorithm))
        rule, point = algorithm.start(coordinates, np.zeros, room)
        if isinstance(point, ClassPool):
            point = point.admitting(max(classes, point.classes()))
        point = _with_pools(point, "laid_out")
        state = _kept(point, room)
        begun = {name: array.copy() for name, array in state.items() if not of_coordinates(name)}
        for name, array in state.items():
            found = reader.fill(f"point.{name}", array, where if of_coordinates(name) else None)
            _require_weights(name.rpartition(".")[2], found)
        if version == 1:
            _rearrange(point)
        _require_sane(point, algorithm)
        for name, array in state.items():
            _require_magnitudes(array, begun.get(name))
        point = _with_pools(point, "gathered")
        places = reader.text("point.names", d)
        if any(isinstance(place, list | dict) for place in places) or len(set(places)) < len(places):
            raise DataError("the names of its features are impossible")
        names.places = {place: j for j, place in enumerate(places)}
    made = ClassLearner if isinstance(algorithm, Softmax) else Learner
    learner: Learner = made.__new__(made)
    learner.__setstate__(
        {
            "algorithm": algorithm,
            "intercept": intercept,
            "d": d,
            "names": names,
            "numbering": numbering,
            "_rule": rule,
            "_point": point,
        }
    )
    return learner


def _places(reader: Reader, algorithm: Any, d: int, intercept: bool) -> Places | None:
    """Where coordinates are in a learner of so many features, if only those in use are to have a place."""
    if algorithm.wide is None or d <= algorithm.wide:
        return None
    named = [name for name in reader.arrays if name.startswith("point.") and not name.endswith((".rows", ".names"))]
    named = [name for name in named if of_coordinates(name)]
    named += [name for name in ("evidence.S", "evidence.largest") if name in reader.arrays]
    numbering = reader.numbering(named, intercept)
    return None if numbering.base >= d else Places(numbering, intercept, d + int(intercept))


def _with_pools(point: Any, how: str) -> Any:
    """A point whose pools, it or its members, are `laid_out` or `gathered`."""
    if isinstance(point, Seats):
        return point._replace(tree=point.tree.changed(lambda part: _with_pools(part, how)))
    return getattr(point, how)() if isinstance(point, PoolPoint) else point


def _rearrange(point: Any) -> None:
    """Format 1 had the kinds of a pool in the order of their numbers."""
    for part in point.points() if isinstance(point, Seats) else ():
        _rearrange(part)
    if isinstance(point, PoolPoint):
        kinds = point.weights.reshape(len(point.weights), DIAGONAL, -1)
        kinds[:, list(COLUMNS)] = kinds.copy()


def _algorithms(algorithm: Any) -> list[Any]:
    """An algorithm and those of its members."""
    members = algorithm.members if isinstance(algorithm, Committee) else ()
    return [algorithm, *(part for member in members for part in _algorithms(member))]


def _columns(algorithm: Any) -> int:
    """How many numbers of eight bytes a coordinate takes."""
    if isinstance(algorithm, Committee):
        return sum(map(_columns, algorithm.members))
    if isinstance(algorithm, Pooled | Softmax):
        return -(-algorithm.budget // 8)
    return 4 if isinstance(algorithm, Diagonal) else 2 + int(algorithm.domain.scratch_rows)


LARGEST_NUMBER = 1e305
"""No number of a state is larger: with a few thousand of them a prediction is still finite."""


def _require_magnitudes(values: Any, begun: Any) -> None:
    """Refuse numbers too large to go on with; of those that learning has `begun` with, some are infinite or NaN."""
    if values.dtype.kind != "f" or not values.size:
        return
    limit = min(LARGEST_NUMBER, float(np.finfo(values.dtype).max))
    if -limit <= float(values.min()) <= float(values.max()) <= limit:
        return
    odd = ~(np.abs(values) <= limit)
    if begun is None or not np.array_equal(values[odd], begun[odd], equal_nan=True):
        raise DataError("its state holds numbers that no learning leads to")


def _require_weights(name: str, values: Any) -> None:
    """Weights are finite; sums of squares and largest magnitudes are not negative."""
    if name == "memory":
        return
    if name in ("stats", "slots", "sums", "line_sums", "counts") and not (values >= 0).all():
        raise DataError("its sums are impossible")
    if name == "table":
        if not (values[:, [SUM, TABLE_LARGEST]] >= 0.0).all():
            raise DataError("its sums of squares are impossible")
        values = values[:, W]
    if name not in ("r", "members") and not np.isfinite(values).all():
        raise DataError("its weights are not finite")


def _require_sane(point: Any, algorithm: Any) -> None:
    """The numbers that a round divides by, takes the root of, or counts with."""
    m = point.memory
    count(float(m[T]), 2**53)
    if isinstance(point, Scaled) and not 0.0 < abs(m[SCALE]) < np.inf:
        raise DataError("the scale of its point is impossible")
    if isinstance(point, PoolPoint):
        _require_pool(point)
    if isinstance(algorithm, Committee):
        _require_mixing(point)
        for member, part in zip(point.points(), algorithm.members, strict=True):
            _require_sane(member, part)
    if isinstance(point, ClassPool):
        require_sane_classes(point)
    if isinstance(algorithm, Gradient):
        never = [MASS, LARGEST, SQUARE, TOTAL]
        if algorithm.lambda_ == 0.0:  # or else rounding may make it negative
            never.append(GRADIENTS)
        if not (m[never] >= 0.0).all():
            raise DataError("the sums of its steps are impossible")


def _require_mixing(point: Any) -> None:
    """Weights to divide by, a rate to multiply by."""
    members, shares = point.members, point.members[SHARES].reshape(point.kinds.size, -1)
    if not (point.memory[[HEAVIEST, GAPS, ETA]] >= 0.0).all() or not np.isfinite(members).all():
        raise DataError("its members' losses are impossible")
    if not (point.kinds.max() > 0.0 and (shares >= 0.0).all() and (shares.sum(axis=1) > 0.0).all()):
        raise DataError("its members have no weight")


def _require_pool(point: PoolPoint) -> None:
    """What the pool's own code takes for granted: lines inside its matrices, weights to divide by."""
    m, used = point.memory, float(point.memory[USED])
    lines = point.slots[point.slots > 0]
    if used != int(used) or not -1 <= used <= NARROW or lines.size > NARROW or (lines > NARROW).any():
        raise DataError("its matrices do not fit its features")
    if not (m[[UNIT, HELD, SPREAD_OF_LABELS, SLOPES]] >= 0.0).all() or not m[LOW] <= m[HIGH]:
        raise DataError("its labels are impossible")
    running = point.kinds >= 0.0
    seats, many = point.places(), int(running.sum())
    fits = np.array_equal(np.sort(seats), np.arange(KINDS)) and running[:many].all() and many > 0
    if not fits or ((seats < many) != (point.seats >= 0)).any() or (seats[DIAGONAL:] < many).any() != (used >= 0.0):
        raise DataError("its members do not fit together")
    _require_mixing(point)


def _kept(point: Any, coordinates: int) -> dict[str, Any]:
    """The arrays that are a point's state, each as far as it is in use."""
    return {name: array for name, array in state_of(point, coordinates).items() if array.shape[0]}
