"""The model file: all it takes to go on exactly where learning stopped (DESIGN 6.3).

A file holds the settings and the state of a learner, its evidence, the labels' meaning, and what its maker wants to
remember. Arrays are kept without the coordinates that are 0, so a wide model with few features in use is a small file.
Reading one runs nothing that it says, and refuses it in one sentence if it is damaged, foreign or newer.

>>> import rue, tempfile, os
>>> learner = rue.Perceptron()
>>> _ = learner.run([[1.0, 2.0], [3.0, -1.0]], [1, -1])
>>> with tempfile.TemporaryDirectory() as folder:
...     save(learner, os.path.join(folder, "model.rue"))
...     again = load(os.path.join(folder, "model.rue")).learner
>>> again == learner
True
"""

from __future__ import annotations

import dataclasses
import datetime
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from rue import ledger as accounts
from rue.container import FORMAT, read_container, write_container
from rue.errors import DataError, SettingsError
from rue.learners import ClassLearner, Learner
from rue.learners.adaptive import LARGEST as TABLE_LARGEST
from rue.learners.adaptive import SUM, Diagonal, W
from rue.learners.classifier import require_sane_classes
from rue.learners.committee import Committee
from rue.learners.gradient import Gradient
from rue.learners.intake import Names
from rue.learners.leader import Leader
from rue.learners.mixing import ETA, GAPS, HEAVIEST, SHARES
from rue.learners.mixture import Pooled
from rue.learners.multiclass import Softmax
from rue.learners.points import GRADIENTS, LARGEST, MASS, SCALE, SQUARE, TOTAL, Scaled, T, state_of
from rue.learners.pool import DIAGONAL, HELD, HIGH, LOW, NARROW, SLOPES, SPREAD_OF_LABELS, UNIT, USED, PoolPoint
from rue.learners.softmax import ClassPool
from rue.learning import Run, predictions_for
from rue.ledger import Ledger, open_ledger
from rue.losses import Loss, Square
from rue.regret.curvature import WIDEST, Curvature
from rue.regret.digest import shelved
from rue.regret.evidence import Evidence, Largest
from rue.regret.witnesses import Pool
from rue.settings import from_json, plain_json, read_json, rebuilt, write_json
from rue.streams import Labels
from rue.streams.labels import MOST_CLASSES
from rue.version import __version__

__all__ = ["MOST_NAMES", "Model", "history_entry", "load", "load_model", "save", "save_model"]

MOST_NAMES = 65_536
"""How many slots a model file keeps the names of."""

_ALGORITHMS = (Gradient, Diagonal, Leader, Pooled, Committee, Softmax)
_MOST_COORDINATES = 2**32 + 1  # feature indices are below 2³², and there may be an intercept


@dataclasses.dataclass(eq=False)
class Model:
    """What a model file holds. `history`, `features`, `counts` and `position` are plain JSON, kept as they are."""

    learner: Learner
    evidence: Evidence | None = None
    labels: Labels | None = None
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """What was learnt when: `data`, `examples`, `date`, `rue`."""
    features: dict[str, Any] = dataclasses.field(default_factory=dict)
    """How data become features."""
    names: dict[int, str] = dataclasses.field(default_factory=dict)
    """What slots are called; the first 65,536 are kept."""
    counts: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Sums of the whole history beside the evidence; `refused` and `skipped` among them."""
    position: dict[str, Any] | None = None
    """Where in its data it stopped, or None if it came to the end."""

    def predict(self, X: Any) -> Any:
        """Predictions for data of the kind the model has learnt, which `features` describes."""
        return predictions_for(self.learner, self.features, X)


def save(what: Model | Run | Learner, path: str | os.PathLike[str]) -> None:
    """Write a model, a run or a learner to a file, whole or not at all; see `load`."""
    if isinstance(what, Run):
        counts, told = {"refused": what.refused, "skipped": what.skipped}, [history_entry(what.examples)]
        what = Model(what.learner, what.evidence, what.labels, told, what.features, what.names, counts)
    elif isinstance(what, Learner):
        what = Model(what, history=[history_entry(what.t)])
    if not isinstance(what, Model):
        raise SettingsError(f"save: give a run, a learner or a model, not {type(what).__name__}.")
    save_model(what, path)


def load(path: str | os.PathLike[str], known: Iterable[type] = ()) -> Model:
    """Read a model file; `load(path).learner` goes on bit for bit.

    A class of your own that the learner was built with is named in the file, not kept in it: hand it over in `known`.
    """
    return load_model(path, known)


def history_entry(examples: int, data: Iterable[str] = ()) -> dict[str, Any]:
    """A line of a model's history, dated now."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"data": list(data), "examples": examples, "date": now, "rue": __version__}


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model; the file that was there stays if anything goes wrong."""
    arrays: dict[str, Any] = {}
    head = {
        "format": FORMAT,
        "rue": __version__,
        "learner": _learner_written(model.learner, arrays),
        "evidence": None if model.evidence is None else _evidence_written(model.evidence, arrays),
        "labels": None if model.labels is None else _labels_written(model.labels),
        **{name: plain_json(getattr(model, name), name) for name in ("history", "features", "counts", "position")},
    }
    _put_text(arrays, "names", [[int(slot), str(name)] for slot, name in list(model.names.items())[:MOST_NAMES]])
    write_container(path, head, arrays)


def load_model(path: str | os.PathLike[str], known: Iterable[type] = ()) -> Model:
    """Read a model; any file that is not one is a DataError in one sentence."""
    head, arrays = read_container(path)
    reader = _Reader(arrays)
    try:
        learner = _learner_read(reader, head["learner"], known)
        evidence = None if head["evidence"] is None else _evidence_read(reader, head["evidence"], known)
        labels = None if head["labels"] is None else _labels_read(head["labels"])
        kinds: dict[str, type] = {"history": list, "features": dict, "counts": dict}
        kept = {name: _typed(head[name], kind) for name, kind in kinds.items()}
        position = None if head["position"] is None else _typed(head["position"], dict)
        names = {_count(slot, _MOST_COORDINATES): _typed(name, str) for slot, name in reader.text("names", MOST_NAMES)}
        reader.require_end()
    except KeyError as error:
        raise DataError(f"{path} is not a model that can be read: it has no {str(error)[:40]}.") from error
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        raise DataError(f"{path} is not a model that can be read: {str(error)[:300].rstrip('.')}.") from error
    return Model(learner, evidence, labels, names=names, position=position, **kept)


# The learner.


def _learner_written(learner: Learner, arrays: dict[str, Any]) -> dict[str, Any]:
    state = learner.__getstate__()
    algorithm, point = state["algorithm"], state["_point"]
    for part in _algorithms(algorithm):
        if type(part) not in _ALGORITHMS:
            raise SettingsError(f"{type(part).__name__} is an algorithm of your own: only rue's can be saved.")
    written = {"algorithm": rebuilt(algorithm), "intercept": learner.intercept, "d": None}
    if point is None:
        return written
    if algorithm.start(learner.coordinates, np.zeros)[0] != state["_rule"]:
        raise SettingsError(f"{learner!r} cannot be saved: its step depends on how wide the first example was.")
    for name, array in _kept(point, learner.coordinates).items():
        _put(arrays, f"point.{name}", array)
    places = list(learner.names.places)
    for place in places:
        if type(place) not in (str, int, float, bool, type(None)) or place != place:
            raise SettingsError(f"the feature {place!r} cannot be saved: name features by text or numbers.")
    _put_text(arrays, "point.names", places)
    return {**written, "d": learner.d, **({"classes": point.classes()} if isinstance(point, ClassPool) else {})}


def _learner_read(reader: _Reader, head: Any, known: Iterable[type]) -> Learner:
    algorithm, intercept = from_json(head["algorithm"], known), _typed(head["intercept"], bool)
    for part in _algorithms(algorithm):
        if type(part) not in _ALGORITHMS:
            raise DataError("it names no algorithm of rue's")
        _typed(part.name, str)
    names, d, rule, point = Names(), 0, None, None
    if head["d"] is not None:
        d = _count(head["d"], 2**32)
        coordinates = d + int(intercept)
        classes = _count(head["classes"], MOST_CLASSES) if isinstance(algorithm, Softmax) else 1
        _require_memory(coordinates, classes * _columns(algorithm))
        rule, point = algorithm.start(coordinates, np.zeros)
        if isinstance(point, ClassPool):
            point = point.admitting(max(classes, point.classes()))
        for name, array in _kept(point, coordinates).items():
            _require_weights(name.rpartition(".")[2], reader.fill(f"point.{name}", array))
        _require_sane(point, algorithm)
        places = reader.text("point.names", d)
        if any(isinstance(place, list | dict) for place in places) or len(set(places)) < len(places):
            raise DataError("the names of its features are impossible")
        names.places = {place: j for j, place in enumerate(places)}
    made = ClassLearner if isinstance(algorithm, Softmax) else Learner
    learner: Learner = made.__new__(made)
    learner.__setstate__(
        {"algorithm": algorithm, "intercept": intercept, "d": d, "names": names, "_rule": rule, "_point": point}
    )
    return learner


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
    _count(float(m[T]), 2**53)
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
    if not running[:DIAGONAL].all() or running[DIAGONAL] != running[-1] or running[-1] != (used >= 0.0):
        raise DataError("its members do not fit together")
    _require_mixing(point)


def _kept(point: Any, coordinates: int) -> dict[str, Any]:
    """The arrays that are a point's state, each as far as it is in use."""
    return {name: array for name, array in state_of(point, coordinates).items() if array.shape[0]}


# The evidence.


def _evidence_written(evidence: Evidence, arrays: dict[str, Any]) -> dict[str, Any]:
    ledger, largest, pool, curvature = evidence.ledger, evidence.largest, evidence.pool, evidence.curvature
    digest = evidence.digest
    parts = {"evidence.sums": ledger.sums, "evidence.S": ledger.S}
    parts |= {} if largest is None else {"evidence.largest": largest.magnitudes}
    for keeper in (pool, curvature, digest):
        parts |= {} if keeper is None else keeper.stored()
    for name, array in parts.items():
        _put(arrays, name, np.ascontiguousarray(array))
    return {
        "loss": rebuilt(evidence.loss),
        "lambda": float(evidence.lambda_),
        "penalty": float(evidence.penalty),
        "size": ledger.S.size,
        "largest": None if largest is None else largest.magnitudes.size,
        "pool": None if pool is None else [pool.lines.size, pool.places.size, pool.radii.size, bool(pool.largest.size)],
        "curvature": None if curvature is None else curvature.moment.size,
        "digest": None if digest is None else [digest.largest.size, *digest.totals[:2].tolist()],
    }


def _evidence_read(reader: _Reader, head: Any, known: Iterable[type]) -> Evidence:
    loss = from_json(head["loss"], known)
    lambda_, penalty = _typed(head["lambda"], float), _typed(head["penalty"], float)
    if not isinstance(loss, Loss) or not 0.0 <= lambda_ < np.inf:
        raise DataError("its evidence is about no loss of rue's")
    ledger: Ledger = open_ledger(_rows(head["size"], 1))
    reader.fill("evidence.sums", ledger.sums)
    reader.fill("evidence.S", ledger.S)
    _count(float(ledger.sums[accounts.EXAMPLES]), 2**53)
    largest = pool = curvature = digest = None
    if head["largest"] is not None:
        largest = Largest(np.zeros(_rows(head["largest"], 1)))
        reader.fill("evidence.largest", largest.magnitudes)
    if head["pool"] is not None:
        pool = _pool_read(reader, ledger.S.size, *_typed(head["pool"], list))
    if head["curvature"] is not None:
        n = _count(head["curvature"], WIDEST)
        if not isinstance(loss, Square):
            raise DataError("it holds the curvature of a loss that has none")
        curvature = Curvature(np.zeros((n, n)), np.zeros(n), np.zeros(2))
    if head["digest"] is not None:
        digest = shelved(loss, pool, *(_count(n, 2**53) for n in _typed(head["digest"], list)))
    for keeper in (curvature, digest):
        for name, array in ({} if keeper is None else keeper.stored()).items():
            reader.fill(name, array)
    if digest is not None:
        digest.require_sane()
    return Evidence(loss, ledger, largest, pool, curvature, lambda_, penalty, digest)


def _pool_read(reader: _Reader, most: int, size: Any, used: Any, many: Any, scaled: Any) -> Pool:
    K = _count(many, 2**16)
    size, used = _rows(size, 1), _rows(used, 2 * K)
    if K == 0 or size > max(most, 1) or used > size or not isinstance(scaled, bool):
        raise DataError("its witnesses do not fit together")
    read = {
        "table": np.zeros((used + 1, 2 * K)),
        "largest": np.zeros(used + 1 if scaled else 0),
        "places": np.zeros(used),
    }
    read |= {"state": np.zeros((5, K)), "radii": np.zeros(K), "rates": np.zeros(K)}
    for name, array in read.items():
        reader.fill(f"pool.{name}", array)
    places = read["places"].astype(np.int64)
    if not np.array_equal(places, read["places"]) or not (np.diff(np.sort(places)) > 0).all() or (places >= size).any():
        raise DataError("its witnesses do not fit together")
    lines = np.zeros(size, dtype=np.uint32)
    lines[places] = np.arange(1, used + 1)
    return Pool(
        read["table"], lines, places, read["state"], read["radii"], read["rates"], np.zeros((2, K)), read["largest"]
    )


# Labels.


def _labels_written(labels: Labels) -> list[Any]:
    if labels.task == "multiclass":
        return [labels.task, *plain_json(labels.classes, "labels")]
    return [labels.task, *(plain_json(name, "labels") for name in (labels.negative, labels.positive))]


def _labels_read(head: Any) -> Labels:
    if _typed(head, list)[0] == "multiclass":
        if len(head) > 1 + MOST_CLASSES or any(isinstance(name, list | dict | None) for name in head):
            raise DataError("its labels make no sense")
        return Labels("multiclass", classes=tuple(head[1:]))
    task, negative, positive = head
    if task not in ("classify", "regress") or any(isinstance(name, list | dict) for name in (negative, positive)):
        raise DataError("its labels make no sense")
    return Labels(task, negative, positive)


# Arrays: rows of zeros are left out where that saves space.


def _put(arrays: dict[str, Any], name: str, array: Any) -> None:
    if not array.size:
        arrays[name] = array
        return
    bits = array.view(np.uint32 if array.itemsize == 4 else np.uint64)  # so that −0.0 counts
    used = (bits != 0).reshape(array.shape[0], -1).any(axis=1)
    many, row = int(np.count_nonzero(used)), array.nbytes // array.shape[0]
    kind = np.uint32 if array.shape[0] <= 2**32 else np.uint64
    if many * (row + np.dtype(kind).itemsize) >= array.nbytes:
        arrays[name] = array
    else:
        arrays[name] = array[used]
        arrays[f"{name}.rows"] = np.flatnonzero(used).astype(kind)


def _put_text(arrays: dict[str, Any], name: str, value: Any) -> None:
    """JSON too long for a header."""
    arrays[name] = np.frombuffer(write_json(value).encode(), dtype=np.uint8)


class _Reader:
    """The arrays of a file, each taken once and only where it fits."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self.arrays = arrays

    def take(self, name: str, kinds: tuple[Any, ...]) -> Any:
        array = self.arrays.pop(name)
        if array.dtype not in kinds:
            raise DataError(f"its array {name} is of the wrong kind")
        return array

    def fill(self, name: str, array: Any) -> Any:
        """Write what the file holds into an array of zeros of the right shape; the rows that are not all 0."""
        values = self.take(name, (array.dtype,))
        rows: Any = slice(None)
        shape = array.shape
        if f"{name}.rows" in self.arrays:
            rows = self.take(f"{name}.rows", (np.uint32, np.uint64))
            shape = (rows.size, *array.shape[1:])
            rising = rows.ndim == 1 and bool((rows[1:] > rows[:-1]).all())
            if not rising or (rows.size and int(rows[-1]) >= array.shape[0]):
                raise DataError(f"the coordinates of its array {name} are impossible")
        if values.shape != shape:
            raise DataError(f"its array {name} has the wrong shape")
        array[rows] = values
        return values

    def text(self, name: str, most: int) -> list[Any]:
        """A list of at most so many things that was written as JSON."""
        written = self.take(name, (np.uint8,))
        found: list[Any] = _typed(read_json(written.tobytes()), list)
        if written.ndim != 1 or len(found) > most:
            raise DataError("it has more names than features")
        return found

    def require_end(self) -> None:
        if self.arrays:
            raise DataError("it holds arrays that do not belong to it")


# Numbers that are to be believed.


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise DataError(f"a {type(value).__name__} stands where a {kind.__name__} belongs")
    return value


def _count(value: Any, most: int) -> int:
    """A whole number from 0 to `most`."""
    if type(value) not in (int, float) or not 0 <= value <= most or value != int(value):
        raise DataError(f"{str(value)[:40]} stands where a number of things belongs")
    return int(value)


def _rows(value: Any, columns: int) -> int:
    rows = _count(value, _MOST_COORDINATES)
    _require_memory(rows, columns)
    return rows


def _require_memory(rows: int, columns: int) -> None:
    """Refuse a width that this machine could not hold, before it is tried."""
    needed = 8 * rows * columns
    if needed > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise DataError(f"{rows:,} coordinates need {needed / 2**30:,.0f} GiB, more than this machine has")
