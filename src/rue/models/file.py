"""The model file: all it takes to go on exactly where learning stopped.

A file holds the settings and the state of a learner, its evidence, the labels' meaning, and notes of whoever made it.
Arrays are stored without the coordinates that are 0, so a wide model with few features in use is a small file.
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
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from rue import ledger as accounts
from rue.errors import DataError, SettingsError, shown
from rue.learners import Learner
from rue.learners.mixture.standing import MOST_LOOKS, Course, members_of
from rue.learners.turns import Turn
from rue.ledger import Ledger, open_ledger
from rue.losses import Loss
from rue.models.arrays import MOST_COORDINATES, Places, Reader, count, put, put_text, rows_of, typed
from rue.models.container import FORMAT, read_container, write_container
from rue.models.learner import read_learner, write_learner
from rue.models.schema import COUNTS, FEATURES, HISTORY, POSITION, require
from rue.models.settings import from_json, plain_json, rebuilt
from rue.regret.certificates.curvature import WIDEST, Curvature
from rue.regret.certificates.digest import FIRST, shelved
from rue.regret.certificates.evidence import Evidence, Largest
from rue.regret.certificates.witnesses import Pool, filled_up
from rue.runs.metrics import Metrics
from rue.runs.predicting import predict
from rue.runs.resuming import Learnt, history_entry
from rue.streams import Labels
from rue.streams.labels import MOST_CLASSES
from rue.streams.numbering import Numbering
from rue.version import __version__

__all__ = ["MOST_NAMES", "Model", "load", "load_model", "model_of", "save", "save_model"]

MOST_NAMES = 65_536
"""How many slots a model file keeps the names of."""


@dataclasses.dataclass(eq=False)
class Model:
    """What a model file holds. `history`, `features`, `counts` and `position` are plain JSON, stored as they are."""

    learner: Learner
    evidence: Evidence | None = None
    labels: Labels | None = None
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """What was learnt when: `data`, `examples`, `date`, `rue`."""
    features: dict[str, Any] = dataclasses.field(default_factory=dict)
    """How data become features."""
    names: dict[int, str] = dataclasses.field(default_factory=dict)
    """What slots are called; the first 65,536 are stored."""
    counts: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Counters that certificates do not use, over the whole history: `refused`, `skipped`, `missing`, baselines."""
    position: dict[str, Any] | None = None
    """Where in its data it was saved (a checkpoint), or None for a model that was saved at the end."""
    course: Course = dataclasses.field(default_factory=Course, repr=False)
    """The losses and weights of a mixture's members over time, from its first example on."""
    metrics: Metrics = dataclasses.field(default_factory=Metrics, repr=False)
    """Accuracy, AUC and the like of the predictions made before each update; empty in files of older versions."""

    def predict(self, X: Any, as_: str = "score") -> Any:
        """Predictions for one example or many, as scores, probabilities or labels, exactly as `Run.predict` has it."""
        return predict(self.learner, X, labels=self.labels, features=self.features, names=self.names, as_=as_)

    def plot_members(self, path: Any = None) -> Any:
        """The race of a mixture's members, and who carried the weight, against time; as `Run.plot_members` has it."""
        from rue.pictures.races import draw_members

        return draw_members(self, path)


def save(what: Any, path: str | os.PathLike[str]) -> None:
    """Write a run, a model, a learner, or a fitted estimator of `rue.sklearn` or `rue.river`, whole or not at all.

    The file is safetensors with JSON; `load` reads it, and what was saved goes on bit for bit. Of an estimator that is
    the model that predicts the same; its own parameters are not in the file. Learners over classes of your own are
    saved too, by the names of the classes.

    >>> import rue, tempfile, os
    >>> run = rue.learn([[0.0], [1.0]], [-1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(run, os.path.join(folder, "model.rue"))
    ...     load(os.path.join(folder, "model.rue")).history[0]["examples"]
    2
    """
    save_model(model_of(what), path)


def model_of(what: Any) -> Model:
    """A model, a run, a learner, or an estimator of `rue.sklearn` or `rue.river`, as a model."""
    if isinstance(what, Model):
        return what
    if isinstance(what, Learnt):
        parts = what.learner, what.evidence, what.labels, what.history, what.features, what.names, what.counts
        return Model(*parts, course=what.course, metrics=what.metrics)
    if isinstance(what, Learner):
        return Model(what, history=[history_entry(what.t)])
    if hasattr(what, "steps"):
        raise SettingsError("a pipeline's other steps have no place in a model: give its last step, pipeline[-1].")
    if not hasattr(type(what), "model_"):
        raise SettingsError(f"give a run, a model, a learner or an estimator of rue's, not {type(what).__name__}.")
    if not hasattr(what, "model_"):
        raise DataError(f"this {type(what).__name__} has not learnt anything yet: fit it first.")
    return model_of(what.model_)


def load(path: str | os.PathLike[str], known: Iterable[type] = ()) -> Model:
    """Read a model file; `load(path).learner` goes on bit for bit. `save` has an example.

    Nothing in the file is run, and one that is damaged, foreign or newer is refused in one sentence (`DataError`).

    A class of your own that the learner was built with is named in the file, not stored in it: hand it over in `known`.
    """
    if not isinstance(path, str | os.PathLike):
        raise SettingsError(f"load: give the path of a model file, not {shown(path)}.")
    return load_model(path, known)


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model; the file that was there stays if anything goes wrong."""
    with Turn(model.learner, wait=True):
        _save(model, path)


def _save(model: Model, path: str | os.PathLike[str]) -> None:
    arrays: dict[str, Any] = {}
    head = {
        "format": FORMAT,
        "rue": __version__,
        "learner": write_learner(model.learner, arrays),
        "evidence": None if model.evidence is None else _write_evidence(model.evidence, arrays),
        "labels": None if model.labels is None else _write_labels(model.labels),
        "course": _write_course(model.course, model.learner, arrays),
        "metrics": _write_metrics(model.metrics, arrays),
        **{name: plain_json(getattr(model, name), name) for name in ("history", "features", "counts", "position")},
    }
    put_text(arrays, "names", [[int(slot), str(name)] for slot, name in list(model.names.items())[:MOST_NAMES]])
    write_container(path, head, arrays)


def load_model(path: str | os.PathLike[str], known: Iterable[type] = ()) -> Model:
    """Read a model; any file that is not one is a DataError in one sentence."""
    head, arrays = read_container(path)
    reader = Reader(arrays)
    try:
        learner = read_learner(reader, head["learner"], known, head["format"])
        evidence = None if head["evidence"] is None else _read_evidence(reader, head["evidence"], known, learner)
        labels = None if head["labels"] is None else _read_labels(head["labels"])
        course = _read_course(reader, head["course"] if head["format"] > 1 else None, learner)
        metrics = _read_metrics(reader, head["metrics"] if head["format"] > 2 else None)
        kinds: dict[str, type] = {"history": list, "features": dict, "counts": dict}
        stored = {name: typed(head[name], kind) for name, kind in kinds.items()}
        position = None if head["position"] is None else typed(head["position"], dict)
        require(stored["features"], FEATURES, "features")
        require(stored["counts"], COUNTS, "counts")
        if len(stored["counts"].get("values", ())) != len(stored["counts"].get("masses", ())):
            raise DataError("the labels of its counts do not fit together")
        require(position or {}, POSITION, "position")
        for entry in stored["history"]:
            require(entry if isinstance(entry, dict) else {}, HISTORY, "history")
        names = {count(slot, MOST_COORDINATES): typed(name, str) for slot, name in reader.text("names", MOST_NAMES)}
        reader.require_end()
    except KeyError as error:
        raise DataError(
            f"{path} is damaged, or not a model that this rue can read: it has no {str(error)[:40]}."
        ) from error
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        raise DataError(
            f"{path} is damaged, or not a model that this rue can read: {str(error)[:300].rstrip('.')}."
        ) from error
    return Model(learner, evidence, labels, names=names, position=position, course=course, metrics=metrics, **stored)


# The evidence.


def _write_evidence(evidence: Evidence, arrays: dict[str, Any]) -> dict[str, Any]:
    ledger, largest, pool, curvature = evidence.ledger, evidence.largest, evidence.pool, evidence.curvature
    digest, columns = evidence.digest, evidence.columns
    wide = evidence.numbering is not None
    coordinates: Any = None if evidence.numbering is None else evidence.numbering.coordinates(evidence.intercept)
    size = evidence.coordinates if wide else ledger.S.size
    parts = {"evidence.sums": ledger.sums}
    if columns is not None:
        parts["columns.features"] = columns.features()[columns.base + 1 :].astype(np.float64)
    if curvature is not None and wide:
        curvature, parts["curvature.coordinates"] = curvature.in_use(coordinates)
    for keeper in (pool, curvature, digest):
        parts |= {} if keeper is None else keeper.stored()
    if pool is not None and wide:
        parts["pool.places"] = coordinates[pool.places].astype(np.float64)
    for name, array in parts.items():
        put(arrays, name, np.ascontiguousarray(array))
    for name, array in (("S", ledger.S), ("largest", None if largest is None else largest.magnitudes)):
        if array is not None:
            array = array if coordinates is None else array[: coordinates.size]
            put(arrays, f"evidence.{name}", array, coordinates, size)
    return {
        "loss": rebuilt(evidence.loss),
        "lambda": float(evidence.lambda_),
        "penalty": float(evidence.penalty),
        "size": size,
        "largest": None if largest is None else size if wide else largest.magnitudes.size,
        "pool": None
        if pool is None
        else [size if wide else pool.lines.size, pool.places.size, pool.radii.size, bool(pool.largest.size)],
        "curvature": None if curvature is None else curvature.moment.size,
        "unasked": bool(evidence.unasked),
        "digest": None
        if digest is None
        else [digest.largest.size, *digest.totals[:2].tolist(), *([] if digest.radii.size else [len(digest.cuts)])],
        "columns": None if columns is None else [columns.base, columns.known],
    }


def _read_evidence(reader: Reader, head: Any, known: Iterable[type], learner: Learner) -> Evidence:
    loss = from_json(head["loss"], known)
    lambda_, penalty = typed(head["lambda"], float), typed(head["penalty"], float)
    if not isinstance(loss, Loss) or not 0.0 <= lambda_ < np.inf:
        raise DataError("its evidence is about no loss of rue's")
    numbering, places = learner.numbering, None
    wide: dict[str, Any] = {}
    if numbering is not None:
        size = count(head["size"], MOST_COORDINATES)
        places = Places(numbering, learner.intercept, size)
        wide = {"numbering": numbering, "coordinates": size, "intercept": learner.intercept}
    size = rows_of(head["size"], 1) if places is None else places.size
    ledger: Ledger = open_ledger(size)
    reader.fill("evidence.sums", ledger.sums)
    reader.fill("evidence.S", ledger.S, places)
    examples = count(float(ledger.sums[accounts.EXAMPLES]), 2**53)
    count(float(ledger.sums[accounts.MISTAKES]), examples)
    if not (np.isfinite(ledger.sums).all() and np.isfinite(ledger.S).all() and ledger.sums[accounts.WEIGHT] >= 0.0):
        raise DataError("the sums of its evidence are impossible")
    largest = pool = curvature = digest = None
    if head["largest"] is not None:
        largest = Largest(np.zeros(rows_of(head["largest"], 1) if places is None else size))
        reader.fill("evidence.largest", largest.magnitudes, places)
        if not (largest.magnitudes >= 0.0).all() or not np.isfinite(largest.magnitudes).all():
            raise DataError("the largest magnitudes of its features are impossible")
    if head["pool"] is not None:
        pool = _read_pool(reader, places, ledger.S.size, *typed(head["pool"], list))
    if head["curvature"] is not None:
        n = count(head["curvature"], WIDEST)
        if not loss.quadratic:
            raise DataError("it holds the curvature of a loss that has none")
        curvature = Curvature(np.zeros((n, n)), np.zeros(n), np.zeros(2))
    if head["digest"] is not None:
        digest = shelved(loss, pool, *(count(n, 2**53) for n in typed(head["digest"], list)))
    for keeper in (curvature, digest):
        for name, array in ({} if keeper is None else keeper.stored()).items():
            reader.fill(name, array)
    if digest is not None:
        digest.require_sane()
    if curvature is not None and places is not None:
        curvature = _curvature_placed(reader, curvature, places)
    unasked, columns = typed(head["unasked"], bool), head.get("columns")
    if columns is not None:  # older files have none
        widths = [] if digest is None else [digest.largest.size - FIRST]
        widths += [] if curvature is None else [curvature.moment.size]
        if places is not None or not widths:
            raise DataError("its columns do not fit together")
        base, features = typed(columns, list)
        wide["columns"] = _read_columns(reader, base, features, widths[0] - learner.intercept, ledger.S.size)
        wide["intercept"] = learner.intercept
    return Evidence(loss, ledger, largest, pool, curvature, lambda_, penalty, digest, unasked, **wide)


def _read_columns(reader: Reader, base: Any, known: Any, narrow: int, coordinates: int) -> Numbering:
    """Which columns features have in a digest of so many, for a stream of so many coordinates."""
    base, known = count(base, narrow), count(known, narrow)
    features = np.zeros(known)
    reader.fill("columns.features", features)
    whole = features.astype(np.int64)
    possible = np.array_equal(whole, features) and ((base <= whole) & (whole < coordinates)).all()
    columns = Numbering(base, whole) if possible else Numbering()
    if columns.known != known or columns.base != base or columns.size != narrow:
        raise DataError("its columns do not fit together")
    return columns


def _curvature_placed(reader: Reader, curvature: Curvature, places: Places) -> Curvature:
    """Where a file says which coordinates it is of, with these at their places."""
    n = curvature.moment.size
    if "curvature.coordinates" not in reader.arrays:
        coordinates = np.arange(n, dtype=np.float64)
    else:
        coordinates = np.zeros(n)
        reader.fill("curvature.coordinates", coordinates)
    whole = coordinates.astype(np.int64)
    rising = bool((np.diff(whole) > 0).all()) and np.array_equal(whole, coordinates)
    if not rising or (n and not 0 <= whole[0] <= whole[-1] < places.coordinates):
        raise DataError("its curvature does not fit together")
    at = places.of(whole)
    if np.unique(at).size < n:
        raise DataError("its curvature does not fit together")
    return curvature.moved(at, places.size)


def _read_pool(reader: Reader, at: Places | None, most: int, size: Any, used: Any, many: Any, scaled: Any) -> Pool:
    K = count(many, 2**16)
    used = rows_of(used, 2 * K)
    size = rows_of(size, 1) if at is None else count(size, at.coordinates)
    most = most if at is None else at.coordinates
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
    if at is not None:
        places, size = at.of(places), at.size
    lines = np.zeros(size, dtype=np.uint32)
    lines[places] = np.arange(1, used + 1)
    return filled_up(read["table"], lines, places, read["state"], read["radii"], read["rates"], read["largest"])


# The course of the members.


def _write_course(course: Course, learner: Learner, arrays: dict[str, Any]) -> list[int] | None:
    """How many looks there are, and how many examples there were; None where nothing is known."""
    if not course.t and course.seen in (0, learner.t):
        return None
    if not course.fits(learner):
        raise SettingsError("the course is not that of this learner: save a learner without it.")
    for name, room in _shelves(len(course.t), learner).items():
        room[...] = np.reshape(getattr(course, name), room.shape)
        put(arrays, f"course.{name}", room)
    return [len(course.t), course.seen]


def _read_course(reader: Reader, head: Any, learner: Learner) -> Course:
    if head is None:
        return Course(seen=learner.t)
    looks, seen = typed(head, list)
    shelves = _shelves(count(looks, MOST_LOOKS), learner)
    for name, room in shelves.items():
        reader.fill(f"course.{name}", room)
    t, loss = shelves["t"].tolist(), shelves["loss"].tolist()
    course = Course(t, loss, list(shelves["losses"]), list(shelves["weights"]), count(seen, 2**53))
    if not course.fits(learner):
        raise DataError("the course of its members is impossible")
    return course


def _shelves(looks: int, learner: Learner) -> dict[str, Any]:
    """Room for so many looks at a learner."""
    many = members_of(learner)
    room = {"t": np.zeros(looks, dtype=np.int64), "loss": np.zeros(looks)}
    return {**room, "losses": np.zeros((looks, many)), "weights": np.zeros((looks, many))}


# The metrics.


def _write_metrics(metrics: Metrics, arrays: dict[str, Any]) -> dict[str, Any] | None:
    head, parts = metrics.stored()
    for name, array in parts.items():
        arrays[f"metrics.{name}"] = array
    return None if head is None else {**head, "arrays": list(parts)}


def _read_metrics(reader: Reader, head: Any) -> Metrics:
    if head is None:
        return Metrics()
    names = [typed(name, str) for name in typed(head["arrays"], list)]
    arrays = {name: reader.take(f"metrics.{name}", (np.float64, np.int64)) for name in names}
    return Metrics.read(typed(head["kind"], str), count(head["examples"], 2**53), arrays)


# Labels.


def _write_labels(labels: Labels) -> list[Any]:
    if labels.task == "multiclass":
        return [labels.task, *plain_json(labels.classes, "labels")]
    return [labels.task, *(plain_json(name, "labels") for name in (labels.negative, labels.positive))]


def _read_labels(head: Any) -> Labels:
    if typed(head, list)[0] == "multiclass":
        if len(head) > 1 + MOST_CLASSES or any(isinstance(name, list | dict | None) for name in head):
            raise DataError("its labels make no sense")
        return Labels("multiclass", classes=tuple(head[1:]))
    task, negative, positive = head
    if task not in ("classify", "regress") or any(isinstance(name, list | dict) for name in (negative, positive)):
        raise DataError("its labels make no sense")
    return Labels(task, negative, positive)
