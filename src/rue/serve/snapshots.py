"""Snapshots: the state of the fold after a record, so that a restart need not go through the whole log.

A snapshot is a folder `snapshots/<number of the record>`: `state.json` with what waits for labels, the digests of all
files and the place in the log, and a model file for each model. It is written under a temporary name, flushed to disk,
and renamed; several stay, and one that is damaged is passed over for the one before.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rue.errors import DataError, RueError
from rue.models.file import Model, load_model, save_model
from rue.outputs import sync_folder
from rue.regret.certificates.evidence import Evidence
from rue.runs.accounts import EvidenceAccounts
from rue.runs.resuming import history_entry
from rue.serve.examples import Reading
from rue.serve.fold import Fold
from rue.serve.log import noted
from rue.serve.model import Early, Lesson, Pending, ServedModel
from rue.serve.race import Race
from rue.serve.settings import settings_of
from rue.streams.tables.columns import Columns

__all__ = [
    "FORMAT",
    "Snapshot",
    "copy_of",
    "latest",
    "model_file",
    "newest_of",
    "numbers_of",
    "read",
    "require_whole",
    "write",
]

FORMAT = 1
"""The number of the format; a snapshot of another one is passed over, and the log is replayed instead."""
FOLDER = "snapshots"


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A consistent copy of a fold, to be written by another thread."""

    seq: int
    at: int
    models: list[tuple[dict[str, Any], Model | None]]
    """Of each model what JSON has of it, and the model file, None before the first example."""


def copy_of(fold: Fold) -> Snapshot:
    """Copy what a snapshot needs, so that the fold can go on: writing takes longer than answers may wait."""
    models = [(_state(model), model_file(model)) for model in fold.models.values()]
    for race in fold.races.values():
        models.append(({**_state(race.challenger), "race": race.state()}, model_file(race.challenger)))
    return Snapshot(fold.seq, fold.at, models)


def model_file(model: ServedModel, *, copied: bool = True) -> Model | None:
    """A model as `rue.save` writes it, by default as a copy; None before its first example."""
    driver = model.driver
    if driver.accounts is None:
        return None
    parts = driver.learner, driver.evidence, driver.course, driver.metrics, driver.watch
    learner, evidence, course, metrics, watch = copy.deepcopy(parts) if copied else parts
    features, names = model.reading.describe(), dict(model.reading.names.of)
    return Model(
        learner,
        evidence,
        driver.labels,
        [history_entry(driver.examples)],
        features,
        names,
        driver.counts(),
        course=course,
        metrics=metrics,
        watch=watch,
    )


def _state(model: ServedModel) -> dict[str, Any]:
    """What a model file has no place for."""
    labels = model.driver.labels
    return {
        "number": model.number,
        "name": model.name,
        "settings": model.settings.to_json(),
        "created": model.created.to_json(),
        "past": model.past,
        "columns": None if model.reading.columns is None else model.reading.columns.to_dict(),
        "unknown": dict(model.reading.unknown),
        "unseen": "" if labels is None else labels.unseen,
        "kind": model.kind,
        "seq": model.seq,
        "at": model.at,
        "counts": [model.t, model.predicted, model.expired, model.forgotten, model.bad],
        "late": model.late.tolist(),
        "pending": [
            [id_, p.seq, p.at, p.t, p.body.decode(), _listed(p.served), p.content] for id_, p in model.pending.items()
        ],
        "early": [[id_, e.seq, e.at, e.body.decode()] for id_, e in model.early.items()],
        "held": [[lesson.features, lesson.label, lesson.weight, _listed(lesson.served)] for lesson in model.held],
    }


def _listed(served: Any) -> Any:
    return served.tolist() if isinstance(served, np.ndarray) else served


def _array(served: Any) -> Any:
    return np.array(served) if isinstance(served, list) else served


def write(folder: Path, snapshot: Snapshot, keep: int = 3) -> None:
    """Write a snapshot, whole or not at all, and remove the oldest ones."""
    place = folder / FOLDER
    place.mkdir(exist_ok=True)
    temporary, final = place / f".{snapshot.seq:012}", place / f"{snapshot.seq:012}"
    if final.exists():
        return
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        states = []
        for state, model in snapshot.models:
            name = f"{state['number']}{'.challenger' if 'race' in state else ''}.rue"
            if model is not None:
                save_model(model, temporary / name)
            digest = None if model is None else _digest(temporary / name)
            states.append({**state, "file": None if model is None else name, "sha256": digest})
        head = msgspec.json.encode({"seq": snapshot.seq, "at": snapshot.at, "models": states})
        wrapped = msgspec.json.encode({"format": FORMAT, "sha256": hashlib.sha256(head).hexdigest()})
        with open(temporary / "state.json", "wb") as file:
            file.write(wrapped + b"\n" + head)
            file.flush()
            os.fsync(file.fileno())
        # First the content, then the name, then the folders that have the name: after a loss of power a snapshot is
        # there whole, or is not there. A process that is killed needs none of this.
        sync_folder(temporary)
        os.rename(temporary, final)
        sync_folder(place)
        sync_folder(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    for seq in numbers_of(folder)[:-keep]:
        shutil.rmtree(place / f"{seq:012}", ignore_errors=True)


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def numbers_of(folder: Path) -> list[int]:
    """The records after which there are snapshots, in order."""
    place = folder / FOLDER
    return sorted(int(path.name) for path in place.glob("[0-9]*") if path.name.isdigit()) if place.exists() else []


def latest(folder: Path, upto: int, tell: Callable[[str], None]) -> Fold | None:
    """The fold of the last snapshot up to a record; damaged ones are passed over, and `tell` is given why."""
    for seq in reversed([seq for seq in numbers_of(folder) if seq <= upto]):
        try:
            return read(folder, seq)  # whatever is wrong with it, the log has everything: it only takes longer
        except (RueError, OSError, ValueError, KeyError, TypeError, IndexError) as error:
            tell(f"the snapshot {seq} is damaged ({str(error)[:200].rstrip('.')}): the one before is used.")
    return None


def read(folder: Path, seq: int) -> Fold:
    """The fold as a snapshot has it."""
    place = folder / FOLDER / f"{seq:012}"
    wrapped, head = (place / "state.json").read_bytes().split(b"\n", 1)
    about = msgspec.json.decode(wrapped)
    if about["format"] != FORMAT:
        raise ValueError(f"its format is {about['format']}, and this rue reads {FORMAT}")
    if about["sha256"] != hashlib.sha256(head).hexdigest():
        raise ValueError("its state is not what was written")
    content = msgspec.json.decode(head)
    fold = Fold()
    fold.seq, fold.at = content["seq"], content["at"]
    for state in content["models"]:
        file = None if state["file"] is None else place / state["file"]
        if file is not None and _digest(file) != state["sha256"]:
            raise ValueError(f"{state['file']} is not what was written")
        model = _restored(state, None if file is None else load_model(file))
        if "race" in state:
            fold.races[model.number] = Race.restored(model, state["race"])
        else:
            fold.models[model.number], fold.numbers[model.name] = model, model.number
    return fold


def _restored(state: dict[str, Any], stored: Model | None) -> ServedModel:
    model = ServedModel(state["number"], state["name"], settings_of(state["settings"]))
    model.created, model.past = settings_of(state["created"]), list(state["past"])
    columns = None if state["columns"] is None else Columns.from_dict(state["columns"])
    model.reading = Reading(columns, model.settings.to_json())
    model.reading.unknown = dict(state["unknown"])
    model.kind, model.seq, model.at = state["kind"], state["seq"], state["at"]
    model.t, model.predicted, model.expired, model.forgotten, model.bad = state["counts"]
    model.late = np.array(state["late"], dtype=np.float64)
    for id_, seq, at, t, body, served, content in state["pending"]:
        model.pending[id_] = Pending(seq, at, t, body.encode(), _array(served), content)
    for id_, seq, at, body in state["early"]:
        model.early[id_] = Early(seq, at, body.encode())
    held = state["held"]
    model.held = [Lesson(features, label, weight, _array(served)) for features, label, weight, served in held]
    if columns is not None:
        model.reading.names.add(columns.names_of_slots())
    if stored is not None:
        _adopt(model, stored, state["unseen"])
    return model


def _adopt(model: ServedModel, stored: Model, unseen: str) -> None:
    """Put what a model file has in its place."""
    driver, evidence = model.driver, stored.evidence
    assert isinstance(evidence, Evidence)
    assert stored.labels is not None
    driver.learner, driver.course, driver.metrics, driver.watch = (
        stored.learner,
        stored.course,
        stored.metrics,
        stored.watch,
    )
    driver.labels = dataclasses.replace(stored.labels, unseen=unseen)
    driver.accounts = EvidenceAccounts(evidence, stored.learner)
    driver.restore(stored.counts)
    model.reading.names.add(stored.names.items())


def require_whole(folder: Path, last: int) -> None:
    """Refuse a log that ends before a snapshot, or before the last record of which the lock file knows."""
    newest = newest_of(folder)
    if newest > last:
        raise DataError(
            f"the log in {folder} ends with record {last}, but there has been a record {newest}: records {last + 1} "
            f"to {newest} are missing. Bring the log back from a copy; to go on without them, move the file lock and "
            "the snapshots that are later out of the folder."
        )


def newest_of(folder: Path) -> int:
    """The last record that is known to have been written, whatever the log says."""
    return max([*numbers_of(folder), noted(folder)])
