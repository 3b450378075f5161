"""The learner's part of a model file: its settings, and the state of its point."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from rue.errors import DataError, SettingsError, shown
from rue.learners import ClassLearner, Learner
from rue.learners.bins import Bins
from rue.learners.lags import FARTHEST, Lags
from rue.learners.one_example import Names
from rue.learners.points import declarations_of, gathered, laid_out, own_features_of, require_sane, state_of
from rue.models.arrays import Places, Reader, count, put, put_text, require_memory, typed
from rue.models.settings import from_json, rebuilt
from rue.registry import own_classes
from rue.streams.block import BinnedColumn
from rue.streams.labels import MOST_CLASSES

__all__ = ["read_learner", "write_learner"]

LARGEST_NUMBER = 1e305
"""No number of a state is larger: with a few thousand of them a prediction is still finite."""


def write_learner(learner: Learner, arrays: dict[str, Any]) -> dict[str, Any]:
    """A learner as JSON, its arrays entered."""
    state = learner.__getstate__()
    algorithm, point = state["algorithm"], state["_point"]
    for part in _algorithms(algorithm):
        if type(part) not in own_classes("algorithm").values():
            raise SettingsError(f"{type(part).__name__} is an algorithm of your own: only rue's can be saved.")
    written = {"algorithm": rebuilt(algorithm), "intercept": learner.intercept, "d": None}
    if learner.lags is not None:
        back, last, averages, seen = learner.lags.__getstate__()
        written["lags"] = {"back": list(back), "seen": int(seen[0])}
        put(arrays, "lags.last", last)
        put(arrays, "lags.averages", averages)
    if learner.bins is not None:
        columns, sample, quantiles, seen, due = learner.bins.__getstate__()
        written["bins"] = [[*column, int(seen[c]), int(due[c])] for c, column in enumerate(columns)]
        put(arrays, "bins.sample", sample.reshape(-1))
        put(arrays, "bins.quantiles", quantiles.reshape(-1))
    if point is None:
        return written
    if algorithm.start(learner.coordinates, np.zeros, min(1, learner.coordinates))[0] != state["_rule"]:
        raise SettingsError(f"{learner!r} cannot be saved: its step depends on how wide the first example was.")
    (point, coordinates), declared = _few_rows(point, learner), declarations_of(point)
    of_stages = own_features_of(point)
    for name, array in _stored(point, learner.places).items():
        rows, size = coordinates if declared[name].of_coordinates else None, learner.coordinates
        put(arrays, f"point.{name}", array, *of_stages.get(name, (rows, size)))
    places = list(learner.names.places)
    for place in places:
        if type(place) not in (str, int, float, bool, type(None)) or place != place:
            raise SettingsError(f"the feature {shown(place)} cannot be saved: name features by text or numbers.")
    put_text(arrays, "point.names", places)
    return {**written, "d": learner.d, **({"classes": point.classes()} if _multiclass(algorithm) else {})}


def _few_rows(point: Any, learner: Learner) -> tuple[Any, Any]:
    """A point with rows for the coordinates alone that have occurred, if it can tell; and the coordinates of its rows.

    Of 2^20 hashed names mostly a few thousand occur: looking for them in tables of all takes a tenth of a second.
    """
    coordinates = learner.coordinates_of_places()
    own = point.occupied() if hasattr(point, "occupied") else np.empty(0, dtype=np.int64)
    if not own.size:
        return point, coordinates
    return point.picked(own), own if coordinates is None else coordinates[own]


def read_learner(reader: Reader, head: Any, known: Iterable[type], version: int) -> Learner:
    """The learner that was written, in a file of a format; DataError for anything else."""
    algorithm, intercept = from_json(head["algorithm"], known), typed(head["intercept"], bool)
    for part in _algorithms(algorithm):
        if type(part) not in own_classes("algorithm").values():
            raise DataError("it names no algorithm of rue's")
        typed(part.name, str)
    kind = ClassLearner if _multiclass(algorithm) else Learner
    learner: Learner = kind.__new__(kind)
    state: dict[str, Any] = {"d": 0, "names": Names(), "numbering": None, "_rule": None, "_point": None}
    if head["d"] is not None:
        state = _read_state(reader, head, algorithm, intercept, version)
    lags = None if head.get("lags") is None else _read_lags(reader, head["lags"])  # older files have none
    if lags is not None and (_multiclass(algorithm) or (head["d"] is not None and state["d"] < lags.many)):
        raise DataError("its lags do not fit its features")
    bins = None if head.get("bins") is None else _read_bins(reader, head["bins"])
    if bins is not None:
        bins.require_sane(None if head["d"] is None else state["d"])
    learner.__setstate__({"algorithm": algorithm, "intercept": intercept, **state, "lags": lags, "bins": bins})
    return learner


def _read_lags(reader: Reader, head: Any) -> Lags:
    """The last labels that were written."""
    lags = Lags([count(k, FARTHEST) for k in typed(typed(head, dict)["back"], list)])
    lags.seen[0] = count(head["seen"], 2**53)
    for name, array in (("lags.last", lags.last), ("lags.averages", lags.averages)):
        reader.fill(name, array, None)
        if not (np.abs(array) <= LARGEST_NUMBER).all():
            raise DataError("its last labels are no numbers")
    return lags


def _read_bins(reader: Reader, head: Any) -> Bins:
    """The past of columns in bins that was written."""
    rows = [[count(number, 2**62) for number in typed(row, list)] for row in typed(head, list)]
    if not rows or any(len(row) != 6 for row in rows):
        raise DataError("its bins are impossible")
    bins = Bins([BinnedColumn(*row[:4]) for row in rows])
    bins.seen[:], bins.due[:] = np.array(rows, dtype=np.int64)[:, 4:].T
    for name, array in (("bins.sample", bins.sample), ("bins.quantiles", bins.quantiles)):
        reader.fill(name, array.reshape(-1), None)
        if not (np.abs(array) <= np.finfo(np.float64).max).all():
            raise DataError("the past of its bins holds what is no number")
    return bins


def _read_state(reader: Reader, head: Any, algorithm: Any, intercept: bool, version: int) -> dict[str, Any]:
    """What a learner that has begun holds besides its settings, as `Learner.__setstate__` takes it."""
    names, d = Names(), count(head["d"], 2**32)
    coordinates = d + int(intercept)
    classes = count(head["classes"], MOST_CLASSES) if _multiclass(algorithm) else 1
    wide = algorithm.wide is not None and d > algorithm.wide
    where = _places(reader, algorithm, d, intercept, wide)
    room = coordinates if where is None else where.size
    # Before anything is allocated: a few bytes of a damaged file may ask for all the memory there is.
    require_memory(room if wide else coordinates, classes * -(-algorithm.bytes_per_coordinate // 8))
    rule, point = algorithm.start(coordinates, np.zeros, room)
    if _multiclass(algorithm):
        point = point.admitting(max(classes, point.classes()))
    point = _with_rows_of(reader, laid_out(point))
    begun = _filled(reader, point, room, where, version)
    if version == 1 and hasattr(point, "from_format_1"):
        point.from_format_1()
    require_sane(point, algorithm)
    for name, array in _stored(point, room).items():
        _require_magnitudes(array, begun[name])
    point = gathered(point)
    if where is not None and not wide:
        # The empty place has coordinate −1, the last one; if that is in use, its own place comes later and wins.
        point, where = point.spread(where.numbering.coordinates(intercept), coordinates), None
    places = reader.text("point.names", d)
    if any(isinstance(place, list | dict) for place in places) or len(set(places)) < len(places):
        raise DataError("the names of its features are impossible")
    names.places = {place: j for j, place in enumerate(places)}
    numbering = None if where is None else where.numbering
    return {"d": d, "names": names, "numbering": numbering, "_rule": rule, "_point": point}


def _filled(reader: Reader, point: Any, room: int, where: Places | None, version: int) -> dict[str, Any]:
    """Write what a file holds into the arrays of a point that has just begun; what they held before.

    Refuses sums that cannot be learnt, and weights that are not finite; None stands for arrays of zeros.
    """
    declared, begun, of_stages = declarations_of(point), {}, _arrays_of_stages(point)
    for name, array in _stored(point, room).items():
        by_coordinate = declared[name].axes[0] in ("coordinate", "own coordinate")
        begun[name] = None if by_coordinate else array.copy()
        if version < declared[name].since:
            continue
        if not by_coordinate:
            array[...] = 0  # a file leaves rows of zeros out, and not all that begins is zero
        places: Any = where if declared[name].of_coordinates else None
        if name in of_stages:
            stage, own = of_stages[name]
            array, places = getattr(stage, own), _OwnPlaces(stage.lines)
        values = reader.fill(f"point.{name}", array, places)
        if name.endswith("memory"):  # whose numbers `require_sane` looks at, one by one
            continue
        if not declared[name].possible(values if places is not None else array):
            raise DataError(declared[name].refusal)
        if not np.isfinite(values).all():
            raise DataError("its weights are not finite")
    return begun


@dataclasses.dataclass(frozen=True)
class _OwnPlaces:
    """Where the coordinates of a stage's own that a file speaks of are in its arrays."""

    lines: Any

    @property
    def coordinates(self) -> int:
        """How many there are."""
        return int(self.lines.size)

    def of(self, rows: Any) -> Any:
        """The places of some coordinates."""
        return self.lines[rows]


def _arrays_of_stages(point: Any) -> dict[str, tuple[Any, str]]:
    """For each array with rows for some of a stage's own coordinates: the stage, and what it is called there."""
    first = len(point.points()) if hasattr(point, "points") else 0
    return {
        name: (point.stages()[int(name.split(".")[0]) - first], name.split(".", 1)[1])
        for name in own_features_of(point)
    }


def _with_rows_of(reader: Reader, point: Any) -> Any:
    """A point whose stages have rows for those of their own coordinates that a file has numbers of."""
    used: dict[int, Any] = {}
    for name, (stage, _) in _arrays_of_stages(point).items():
        rows, there = reader.arrays.get(f"point.{name}.rows"), f"point.{name}" in reader.arrays
        if rows is None:
            rows = np.arange(stage.size() if there else 0)
        elif rows.ndim != 1 or rows.dtype not in (np.uint32, np.uint64):
            continue  # which `Reader.fill` refuses
        before = used.get(id(stage), np.empty(0, np.int64))
        used[id(stage)] = np.union1d(before, rows[rows < stage.size()].astype(np.int64))
    return point.with_own_features([used[id(stage)] for stage in point.stages()]) if used else point


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


def _places(reader: Reader, algorithm: Any, d: int, intercept: bool, wide: bool) -> Places | None:
    """Where coordinates are, if only those in use are to have a place.

    In a `wide` learner this is so for good, in another, whose point can be `spread`, while it is read.
    """
    point = algorithm.start(d + int(intercept), np.zeros, 1)[1]
    if not wide and not hasattr(point, "spread"):
        return None
    declared = declarations_of(point)
    named = [f"point.{name}" for name, array in declared.items() if array.of_coordinates]
    numbering = reader.numbering([*named, "evidence.S", "evidence.largest", "windows.S"], intercept)
    return None if numbering.base >= d else Places(numbering, intercept, d + int(intercept))


def _algorithms(algorithm: Any) -> list[Any]:
    """An algorithm and those of its members."""
    return [algorithm, *(part for member in getattr(algorithm, "members", ()) for part in _algorithms(member))]


def _multiclass(algorithm: Any) -> bool:
    return bool(algorithm.loss.task == "multiclass")


def _stored(point: Any, coordinates: int) -> dict[str, Any]:
    """The arrays of a point that a file has: those that are not empty."""
    return {name: array for name, array in state_of(point, coordinates).items() if array.shape[0]}
