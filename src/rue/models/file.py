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
from rue.learners.ensemble import Ensemble
from rue.learners.mixture.standing import MOST_LOOKS, Course, members_of
from rue.learners.turns import Turn
from rue.ledger import Ledger, open_ledger
from rue.losses import Loss
from rue.models.arrays import MOST_COORDINATES, Places, Reader, count, put, put_text, rows_of, typed
from rue.models.container import (
    FORMAT,
    errors_as_damage,
    pack_container,
    read_container,
    unpack_container,
    write_container,
)
from rue.models.ensemble import read_ensemble, write_ensemble
from rue.models.learner import read_learner, write_learner
from rue.models.schema import COUNTS, FEATURES, HISTORY, POSITION, require
from rue.models.settings import from_json, plain_json, rebuilt
from rue.models.watching import read_watch, write_watch
from rue.models.windows import read_windows, read_witness_windows, write_windows
from rue.regret.certificates.curvature import WIDEST, Curvature
from rue.regret.certificates.digest import FIRST, shelved
from rue.regret.certificates.evidence import Evidence, Largest
from rue.regret.certificates.witnesses import Pool, filled_up
from rue.runs.advice import advice_in, experts_in, experts_of, require_no_ensemble
from rue.runs.background import Background
from rue.runs.metrics import Metrics
from rue.runs.predicting import predict, predict_interval
from rue.runs.resuming import Learnt, history_entry
from rue.runs.watching import Watch
from rue.streams import Labels
from rue.streams.labels import MOST_CLASSES
from rue.streams.numbering import Numbering
from rue.version import __version__

__all__ = [
    "MOST_NAMES",
    "Model",
    "from_bytes",
    "load",
    "load_model",
    "model_in",
    "model_of",
    "read_labels",
    "save",
    "save_model",
    "to_bytes",
    "write_labels",
]

MOST_NAMES = 65_536
"""How many slots a model file keeps the names of."""


@dataclasses.dataclass(eq=False)
class Model:
    """What a model file holds. `history`, `features`, `counts` and `position` are plain JSON, stored as they are.

    `save` writes one and `load` reads it. `evidence` and `labels` are None where a learner was saved alone.

    >>> import rue
    >>> model = Model(rue.Perceptron())
    >>> model.predict([[1.0, 2.0]])
    array([0.])
    """

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
    watch: Watch = dataclasses.field(default_factory=Watch, repr=False)
    """Prediction intervals and alarms, if they were asked for."""
    ensemble: Ensemble | None = dataclasses.field(default=None, repr=False)
    """The learner and outside experts, mixed, if there were any."""
    background: Background | None = dataclasses.field(default=None, repr=False)
    """Some of the rows, on which `rue.effects_of` tries the predictions of a learner over maps."""

    def __repr__(self) -> str:
        return f"Model(examples={self.learner.t:,}, learner={self.learner!r})"

    def predict(self, X: Any, as_: str = "score", experts: Any = None, experts_as: str | None = None) -> Any:
        """Predictions for one example or many, as scores, probabilities or labels, exactly as `Run.predict` has it.

        X, `as_`, and of outside experts `experts` and `experts_as`, are as for `Run.predict`.

        >>> import rue
        >>> run = rue.learn([[0.0], [1.0]], [0, 1], learner=rue.Perceptron())
        >>> model = Model(run.learner, labels=run.labels)
        >>> model.predict([[1.0], [-5.0]], as_="label")
        array([1, 0])
        """
        given = experts_of(self.ensemble, advice_in(experts, experts_as, experts_in(self.features)))
        known: dict[str, Any] = {"labels": self.labels, "features": self.features, "names": self.names}
        return predict(self.learner, X, **known, as_=as_, experts=given)

    def predict_interval(self, X: Any) -> Any:
        """Lower and upper ends for one example or many, or sets of classes, as `Run.predict_interval` has it.

        X is as for `predict`.

        >>> import numpy as np, rue
        >>> run = rue.learn(np.ones((5, 1)), [1.0, 2.0, 1.5, 1.0, 2.5], interval=0.8)
        >>> lower, upper = Model(run.learner, labels=run.labels, watch=run.watch).predict_interval([[1.0]])
        >>> bool((lower <= upper).all())
        True
        """
        require_no_ensemble("predict_interval", self.ensemble)
        return predict_interval(self.learner, self.watch, X, features=self.features, names=self.names)

    def plot_members(self, path: Any = None) -> Any:
        """The race of a mixture's members, and who carried the weight, against time; as `Run.plot_members` has it.

        `path` also saves it.

        >>> import rue
        >>> run = rue.learn([[0.0], [1.0]], [-1, 1])
        >>> len(Model(run.learner, course=run.course).plot_members().axes)
        2
        """
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
        more = {name: getattr(what, name) for name in ("course", "metrics", "watch", "ensemble", "background")}
        return Model(*parts, **more)
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
    """Read a model file; `load(path).learner` goes on bit for bit.

    Nothing in the file is run, and one that is damaged, foreign or newer is refused in one sentence (`DataError`).

    A class of your own that the learner was built with is named in the file, not stored in it: hand it over in `known`.

    >>> import rue, tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.rue")
    ...     rue.save(rue.Perceptron(eta=0.5), path)
    ...     load(path).learner
    Perceptron(loss=PerceptronLoss(), domain=Reals(), step=Fixed(value=0.5), intercept=True)
    """
    if not isinstance(path, str | os.PathLike):
        raise SettingsError(f"load: give the path of a model file, not {shown(path)}.")
    return load_model(path, known)


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model; the file that was there stays if anything goes wrong."""
    with Turn(model.learner, wait=True):
        write_container(path, *_contents(model))


def to_bytes(model: Model) -> bytes:
    """What `save_model` would write, for another process.

    >>> import rue
    >>> from_bytes(to_bytes(Model(rue.Perceptron()))).learner == rue.Perceptron()
    True
    """
    with Turn(model.learner, wait=True):
        return pack_container(*_contents(model))


def _contents(model: Model) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON and the arrays of a model."""
    arrays: dict[str, Any] = {}
    head = {
        "format": FORMAT,
        "rue": __version__,
        "learner": write_learner(model.learner, arrays),
        "evidence": None if model.evidence is None else _write_evidence(model.evidence, arrays),
        "labels": None if model.labels is None else write_labels(model.labels),
        "course": _write_course(model.course, model.learner, arrays),
        "metrics": _write_metrics(model.metrics, arrays),
        "watch": write_watch(model.watch, arrays),
        "ensemble": write_ensemble(model.ensemble, arrays),
        "background": _write_background(model.background, arrays),
        **{name: plain_json(getattr(model, name), name) for name in ("history", "features", "counts", "position")},
    }
    put_text(arrays, "names", [[int(slot), str(name)] for slot, name in list(model.names.items())[:MOST_NAMES]])
    return head, arrays


def load_model(path: str | os.PathLike[str], known: Iterable[type] = ()) -> Model:
    """Read a model; any file that is not one is a DataError in one sentence."""
    return model_in(*read_container(path), str(path), known)


def model_in(head: dict[str, Any], arrays: dict[str, Any], path: str, known: Iterable[type] = ()) -> Model:
    """The model in JSON and arrays that were read from a path, as `load_model` has it."""
    if "fleet" in head:
        raise DataError(
            f"{path} holds a model for every key (--by): rue predict and rue inspect take it, in Python rue.Fleet.load."
        )
    return _model(head, arrays, path, known)


def from_bytes(content: bytes, known: Iterable[type] = ()) -> Model:
    """The model that `to_bytes` has made bytes of, with classes of users `known` as for `load`."""
    return _model(*unpack_container(content), "what another process has sent", known)


def _model(head: dict[str, Any], arrays: dict[str, Any], path: str, known: Iterable[type]) -> Model:
    """The model that JSON and arrays are of."""
    reader = Reader(arrays)
    with errors_as_damage(path, "not a model"):
        learner = read_learner(reader, head["learner"], known, head["format"])
        evidence = None if head["evidence"] is None else _read_evidence(reader, head["evidence"], known, learner)
        labels = None if head["labels"] is None else read_labels(head["labels"])
        course = _read_course(reader, head["course"] if head["format"] > 1 else None, learner)
        metrics = _read_metrics(reader, head["metrics"] if head["format"] > 2 else None)
        watch = read_watch(reader, head.get("watch"), known, head["format"], learner.loss)  # older files have none
        ensemble = read_ensemble(reader, head.get("ensemble"), known, head["format"], learner.loss)
        background = _read_background(reader, head.get("background"), learner)  # older files have none
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
    own: dict[str, Any] = {"names": names, "position": position, "course": course, "metrics": metrics, "watch": watch}
    own |= {"ensemble": ensemble, "background": background}
    return Model(learner, evidence, labels, **own, **stored)


# The evidence.


def _write_background(background: Background | None, arrays: dict[str, Any]) -> dict[str, Any] | None:
    if background is None:
        return None
    arrays.update({f"background.{name}": array for name, array in background.stored().items()})
    return {"seen": background.seen, "dense": background.dense}


def _read_background(reader: Reader, head: Any, learner: Learner) -> Background | None:
    if head is None:
        return None
    stored = {name: reader.take(f"background.{name}", (np.float64,)) for name in ("ends", "indices", "values")}
    if (stored["indices"] >= learner.d).any():
        raise DataError("its rows to try predictions on have features that it has not")
    return Background.restored(count(typed(head, dict)["seen"], 2**53), typed(head["dense"], bool), stored)


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
    if pool is not None and evidence.witnessed is not None:
        parts |= evidence.witnessed.stored(pool)
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
        "witnessed": None if pool is None or evidence.witnessed is None else int(evidence.witnessed.sums.rows),
        "curvature": None if curvature is None else curvature.moment.size,
        "unasked": bool(evidence.unasked),
        "digest": None
        if digest is None
        else [digest.largest.size, *digest.totals[:2].tolist(), *([] if digest.radii.size else [len(digest.cuts)])],
        "columns": None if columns is None else [columns.base, columns.known],
        "windows": write_windows(ledger.windows, arrays, coordinates),
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
    ledger = _read_ledger(reader, size, places)
    ledger = ledger._replace(windows=read_windows(reader, head.get("windows"), ledger, places))  # older files have none
    largest = pool = curvature = digest = None
    if head["largest"] is not None:
        largest = Largest(np.zeros(rows_of(head["largest"], 1) if places is None else size))
        reader.fill("evidence.largest", largest.magnitudes, places)
        if not (largest.magnitudes >= 0.0).all() or not np.isfinite(largest.magnitudes).all():
            raise DataError("the largest magnitudes of its features are impossible")
    if head["pool"] is not None:
        pool = _read_pool(reader, places, ledger.S.size, *typed(head["pool"], list))
        if head.get("witnessed") is not None:  # older files have none
            wide["witnessed"] = read_witness_windows(reader, head["witnessed"], pool, ledger)
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


def _read_ledger(reader: Reader, size: int, places: Places | None) -> Ledger:
    """The sums of D1, in arrays of so many rows."""
    ledger = open_ledger(size)
    reader.fill("evidence.sums", ledger.sums)
    reader.fill("evidence.S", ledger.S, places)
    examples = count(float(ledger.sums[accounts.EXAMPLES]), 2**53)  # doubles count no further than that
    count(float(ledger.sums[accounts.MISTAKES]), examples)
    if not (np.isfinite(ledger.sums).all() and np.isfinite(ledger.S).all() and ledger.sums[accounts.WEIGHT] >= 0.0):
        raise DataError("the sums of its evidence are impossible")
    return ledger


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


def write_labels(labels: Labels) -> list[Any]:
    """What labels mean, as plain JSON."""
    if labels.task == "multiclass":
        return [labels.task, *plain_json(labels.classes, "labels")]
    return [labels.task, *(plain_json(name, "labels") for name in (labels.negative, labels.positive))]


def read_labels(head: Any) -> Labels:
    """What `write_labels` wrote."""
    if typed(head, list)[0] == "multiclass":
        if len(head) > 1 + MOST_CLASSES or any(isinstance(name, list | dict | None) for name in head):
            raise DataError("its labels make no sense")
        return Labels("multiclass", classes=tuple(head[1:]))
    task, negative, positive = head
    if task not in ("classify", "regress") or any(isinstance(name, list | dict) for name in (negative, positive)):
        raise DataError("its labels make no sense")
    return Labels(task, negative, positive)
