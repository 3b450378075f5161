"""One file for all models of a fleet: the records as they lie in memory, in the container that every model file is.

Nothing of a file is believed before it has been looked at: compiled code takes for granted that what leads into an
array stays inside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rue import ledger as accounts
from rue.errors import DataError
from rue.fleets.arena import Arena, Group
from rue.fleets.fleet import COUNTED, Fleet
from rue.fleets.keys import Keys
from rue.fleets.packing import Shape, Workbench, require_packable
from rue.learners import Learner
from rue.learners.mixture.frozen import next_copy
from rue.learners.mixture.layout import DUE, KINDS, NARROW, USED
from rue.learners.points import T
from rue.memory import memory_limit
from rue.models.arrays import Reader, count, put_text, typed
from rue.models.container import FORMAT, errors_as_damage, read_container, write_container
from rue.models.file import MOST_NAMES, Model, model_in, read_labels, write_labels
from rue.models.learner import read_learner, write_learner
from rue.models.schema import FEATURES, HISTORY, require
from rue.models.settings import plain_json
from rue.version import __version__

__all__ = ["load_any", "load_fleet", "save_fleet"]

MOST_KEYS = 2**31 - 1
MOST_PLACES = 2**26
"""No record is larger: it would have the weights of 64 million features."""


def save_fleet(fleet: Fleet, path: Any) -> None:
    """Write a fleet; the file that was there stays if anything goes wrong."""
    arena, arrays = fleet.arena, dict[str, Any]()
    many, shapes = len(fleet), list[list[int]]()
    group = arena.group[:many]
    of_shape: dict[Shape, list[int]] = {}
    for number, one in enumerate(arena.groups):
        of_shape.setdefault(one.shape, []).append(number)
    for shape, numbers in of_shape.items():
        keys = np.flatnonzero(np.isin(group, numbers))
        if not keys.size:
            continue
        first = arena.groups[numbers[0]]
        records = np.empty((keys.size, first.records.shape[1]), dtype=np.uint64)
        ids = np.empty((keys.size, first.ids.shape[1]), dtype=np.uint32)
        for number in numbers:
            mine = group[keys] == number
            rows = arena.row[keys[mine]]
            records[mine], ids[mine] = arena.groups[number].records[rows], arena.groups[number].ids[rows]
        name = f"shape.{len(shapes)}"
        arrays |= {f"{name}.keys": keys, f"{name}.records": records, f"{name}.ids": ids}
        shapes.append([shape.places, int(shape.late)])
    for name in ("known", "rounds", "left_out"):
        arrays[name] = getattr(arena, name)[:many].astype(np.int64)
    put_text(arrays, "keys", fleet.keys.names)
    put_text(arrays, "names", [[int(slot), str(name)] for slot, name in list(fleet.names.items())[:MOST_NAMES]])
    head = {
        "format": FORMAT,
        "rue": __version__,
        "fleet": {
            "keys": many,
            "shapes": shapes,
            "by": fleet.by,
            "width": fleet.width,
            "sparse": fleet.sparse,
            "learner": write_learner(fleet.learner, {}),
            "labels": write_labels(fleet.labels),
            **{name: plain_json(getattr(fleet, name), name) for name in ("features", "history", "counts")},
        },
    }
    write_container(path, head, arrays)


def load_fleet(path: Any) -> Fleet:
    """Read a fleet; any file that is none is a DataError in one sentence."""
    head, arrays = read_container(path)
    if "fleet" not in head:
        raise DataError(f"{path} holds one model, not one for each key: rue.load reads it.")
    return _fleet(head, arrays, str(path))


def load_any(path: Any) -> Model | Fleet:
    """What a file holds: one model, or a fleet."""
    head, arrays = read_container(path)
    return _fleet(head, arrays, str(path)) if "fleet" in head else model_in(head, arrays, str(path))


def _fleet(head: dict[str, Any], arrays: dict[str, Any], path: str) -> Fleet:
    with errors_as_damage(path, "no fleet"):
        return _read(typed(head["fleet"], dict), Reader(arrays), head["format"])


def _read(head: dict[str, Any], reader: Reader, version: int) -> Fleet:
    learner = read_learner(reader, head["learner"], (), version)
    if type(learner) is not Learner or learner.t:
        raise DataError("its keys begin with no learner of theirs")
    require_packable(learner.algorithm)
    many = count(head["keys"], MOST_KEYS)
    width, sparse = count(head["width"], 2**32), typed(head["sparse"], bool)
    names = [typed(name, str) for name in reader.text("keys", many)]
    if len(names) != many or len(set(names)) != many or "" in names:
        raise DataError("the names of its keys are impossible")
    arena = Arena(learner)
    arena.admit(many)
    for name in ("known", "rounds", "left_out"):
        column = reader.take(name, (np.int64,))
        most = min(width, MOST_PLACES) if name == "known" else 2**53
        if column.shape != (many,) or (column < 0).any() or (column > most).any():
            raise DataError(f"its array {name} is impossible")
        getattr(arena, name)[:many] = column
    for number, (places, late) in enumerate(typed(head["shapes"], list)):
        shape = Shape(count(places, MOST_PLACES), bool(count(late, 1)))
        _read_shape(reader, arena, shape, f"shape.{number}", width)
    if (arena.group[:many] < 0).any():
        raise DataError("keys of it have no record")
    features, history, counts = typed(head["features"], dict), typed(head["history"], list), typed(head["counts"], dict)
    require(features, FEATURES, "features")
    for entry in history:
        require(entry if isinstance(entry, dict) else {}, HISTORY, "history")
    called = {count(slot, 2**32): typed(name, str) for slot, name in reader.text("names", MOST_NAMES)}
    reader.require_end()
    by = head["by"]
    if not isinstance(by, str | None):
        raise DataError("the column of its keys is impossible")
    labels = read_labels(head["labels"])
    if labels.task != ("classify" if learner.loss.task == "classify" else "regress"):
        raise DataError("its labels do not fit its loss")
    counted = {name: count(counts.get(name, 0), 2**53) for name in COUNTED}
    rest: dict[str, Any] = {"features": features, "names": called, "history": history, "counts": counted}
    return Fleet(learner, labels, arena, Keys(names), by, width=width, sparse=sparse, **rest)


def _read_shape(reader: Reader, arena: Arena, shape: Shape, name: str, width: int) -> None:
    """The records of one shape, into groups of the arena."""
    features = max(1, shape.places - arena.shift)
    keys = reader.take(f"{name}.keys", (np.int64,))
    records, ids = reader.take(f"{name}.records", (np.uint64,)), reader.take(f"{name}.ids", (np.uint32,))
    if keys.ndim != 1 or records.ndim != 2 or ids.ndim != 2 or ids.shape[1] != features:
        raise DataError("the shapes of its arrays do not fit together")
    # Before anything is allocated: a few bytes of a damaged file may ask for all the memory there is.
    if 16 * arena.algorithm.bytes_per_coordinate * shape.places > memory_limit() or shape.places < 1:
        raise DataError(f"it asks for records of {shape.places:,} features")
    bench = arena.bench(shape.places)
    if records.shape != (keys.size, bench.words(shape)) or ids.shape[0] != keys.size:
        raise DataError("the shapes of its arrays do not fit together")
    inside = keys.size and (keys.min() >= 0) and (keys.max() < arena.keys) and (np.diff(np.sort(keys)) > 0).all()
    if not inside or (arena.group[keys] >= 0).any():
        raise DataError("the numbers of its keys are impossible")
    known = np.arange(features) < arena.known[keys][:, None]
    if (arena.known[keys] + arena.shift > shape.places).any() or (known & (ids >= width)).any():
        raise DataError("the features of its keys are impossible")
    _require_sane(bench, records, shape, arena.rounds[keys])
    most = Group(shape, records.shape[1], features).most
    for begin in range(0, keys.size, most):
        part = slice(begin, begin + most)
        group = Group(shape, records.shape[1], features)
        rows = group.take(len(keys[part]))
        group.records[rows], group.ids[rows] = records[part], ids[part]
        arena.add(group)
        arena.offer(len(arena.groups) - 1)
        arena.group[keys[part]], arena.row[keys[part]] = len(arena.groups) - 1, rows


def _require_sane(bench: Workbench, records: Any, shape: Shape, rounds: Any) -> None:
    """Refuse records that rounds could not go on from, or whose numbers lead outside the arrays."""
    for array in bench.arrays:
        if array.name in ("matrices", "copied_matrices") or (array.name not in bench.held(shape)):
            continue
        column, blank = bench.column(records, shape, array.name), bench.views[array.name]
        if column.dtype.kind != "f":
            continue
        with np.errstate(all="ignore"):
            odd = ~(np.abs(column) <= 1e305)
        if odd.any():
            begun = np.broadcast_to(blank[tuple(slice(0, size) for size in column.shape[1:])], column.shape)
            if not np.array_equal(column[odd], begun[odd], equal_nan=True):
                raise DataError("its state holds numbers that no learning leads to")
    sums, memory = bench.column(records, shape, "sums"), bench.column(records, shape, "memory")
    whole = sums[:, [accounts.EXAMPLES, accounts.MISTAKES]], memory[:, T]
    for numbers in whole:
        if not ((numbers >= 0.0) & (numbers <= 2.0**53) & (numbers == np.floor(numbers))).all():
            raise DataError("the sums of its keys are impossible")
    if (memory[:, T] > rounds).any() or (sums[:, accounts.WEIGHT] < 0.0).any():
        raise DataError("the sums of its keys are impossible")
    if bench.tables:
        _require_pools(bench, records, shape, memory)


def _require_pools(bench: Workbench, records: Any, shape: Shape, memory: Any) -> None:
    """What the compiled loops of a mixture take for granted."""
    lines, given, slots, seats, kinds, trial = (
        bench.column(records, shape, name) for name in ("lines", "given", "slots", "seats", "kinds", "trial")
    )
    narrow, used = min(shape.places, NARROW), memory[:, USED]
    fits = (given[:, 0] >= 0) & (given[:, 0] <= shape.places) & (lines <= given).all(axis=1)
    fits &= ((slots >= 0) & (slots <= narrow)).all(axis=1)
    fits &= (used >= -1.0) & (used <= narrow) & (used == np.floor(used))
    fits &= (slots.max(axis=1, initial=0) <= used) | (used < 0.0)
    places, running = np.where(seats < 0, -1 - seats, seats), kinds >= 0.0
    many = running.sum(axis=1)
    fits &= (np.sort(places, axis=1) == np.arange(KINDS)).all(axis=1) & (many > 0)
    fits &= (running == (np.arange(KINDS) < many[:, None])).all(axis=1)
    fits &= ((places < many[:, None]) == (seats >= 0)).all(axis=1)
    late = np.unique(trial[:, DUE]).tolist()
    if not fits.all() or any(due != next_copy(due - 1.0) for due in late):
        raise DataError("the members of its keys do not fit together")
