"""What a model file has of intervals and alarms: the state of `rue.runs.watching.Watch`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.intervals.accounts import MOST_FEATURES
from rue.intervals.tracker import DEBT, DOUBLINGS, FREE, GUESS, HITS, REACH, ROUNDS, SCALE, SEEN
from rue.models.arrays import Reader, count, typed
from rue.models.learner import read_learner, write_learner
from rue.regret.risk import alarms
from rue.regret.risk.alarms import Alarm, Change
from rue.runs.watching import Watch
from rue.streams.numbering import Numbering

__all__ = ["read_watch", "write_watch"]

MOST_LEVELS = 64
MOST_ALARMS = 2**20


def write_watch(watch: Watch, arrays: dict[str, Any]) -> dict[str, Any] | None:
    """A watch as JSON, its arrays entered; None if there is nothing to watch."""
    if not watch.asked:
        return None
    head: dict[str, Any] = {
        "interval": None if watch.levels is None else list(watch.levels),
        "side": watch.side,
        "alarm": watch.rounds,
        "watched": watch.watched,
        "kind": None,
        "first": watch.first.tolist(),
        "bound": None if watch.alarm is None else watch.alarm.bound,
    }
    learner, alarm = watch.intervals, watch.alarm
    if learner is not None:
        head["kind"] = learner.kind
        parts = {"memory": learner.memory, **learner.accounts.stored()}
        if learner.kind == "numbers":
            parts["means"] = learner.means
            head["learners"] = []
            for k, mixture in enumerate(learner.learners):
                own: dict[str, Any] = {}
                head["learners"].append(write_learner(mixture, own))
                arrays |= {f"watch.{k}.{name}": array for name, array in own.items()}
        arrays |= {f"watch.{name}": array for name, array in parts.items()}
    if alarm is not None:
        arrays |= {"watch.alarm.table": alarm.table, "watch.alarm.memory": alarm.memory}
        head["seen"], head["alarms"] = alarm.seen, [list(change) for change in alarm.changes]
    return head


def read_watch(reader: Reader, head: Any, known: Iterable[type], version: int, loss: Any) -> Watch:
    """The watch that was written, for a learner with a loss; DataError for anything else."""
    if head is None:
        return Watch()
    levels, rounds = head["interval"], head["alarm"]
    if levels is not None and not 0 < len(typed(levels, list)) <= MOST_LEVELS:
        raise DataError("its intervals have impossible levels")
    watch = Watch(None if levels is None else levels, typed(head["side"], str), rounds)
    first = np.array([float(typed(value, float)) for value in typed(head["first"], list)])
    if first.shape != (2,) or not (first >= 0.0).all() or not np.isfinite(first).all():
        raise DataError("the first residuals of its alarms are impossible")
    if head["kind"] is not None or head["bound"] is not None:
        watch.begin(loss)
    watch.first = first
    if typed(head["watched"], str) not in ("", watch.watched):
        raise DataError("its alarms are about another loss")
    if head["kind"] is not None:
        if watch.intervals is None or watch.intervals.kind != head["kind"]:
            raise DataError("its intervals do not fit its loss")
        _read_intervals(reader, head, watch.intervals, known, version)
    if head["bound"] is not None:
        watch.alarm = _read_alarm(reader, head, watch)
    return watch


def _read_intervals(reader: Reader, head: Any, learner: Any, known: Iterable[type], version: int) -> None:
    """Fill an interval learner that has just begun."""
    if learner.kind == "numbers":
        heads = typed(head["learners"], list)
        if len(heads) != len(learner.learners):
            raise DataError("its intervals have impossible levels")
        for k, fresh in enumerate(learner.learners):
            prefix = f"watch.{k}."
            own = Reader(
                {name[len(prefix) :]: array for name, array in reader.arrays.items() if name.startswith(prefix)}
            )
            for name in own.arrays:
                del reader.arrays[prefix + name]
            mixture = read_learner(own, heads[k], known, version)
            own.require_end()
            if mixture.algorithm != fresh.algorithm:
                raise DataError("its intervals were learnt with another loss")
            learner.learners[k] = mixture
        reader.fill("watch.means", learner.means)
        if not np.isfinite(learner.means).all() or learner.means[0] < 0.0:
            raise DataError("the running means of its intervals are impossible")
    reader.fill("watch.memory", learner.memory)
    accounts = learner.accounts
    reader.fill("watch.table", accounts.table)
    reader.fill("watch.sizes", accounts.sizes)
    features, groups = (reader.take(f"watch.{name}", (np.int64,)) for name in ("features", "groups"))
    fits = groups.ndim == 2 and groups.shape[1] == accounts.groups.shape[1] and features.shape == groups.shape[:1]
    if not fits or len(groups) > MOST_FEATURES:
        raise DataError("the groups of its intervals are impossible")
    if features.size and not 0 <= int(features.min()) <= int(features.max()) < 2**32:
        raise DataError("the groups of its intervals are impossible")
    accounts.numbering, accounts.groups = Numbering(0, features), groups
    m = learner.memory
    fine = np.isfinite(m).all() and (m[:, [ROUNDS, REACH, SCALE, DOUBLINGS, FREE, SEEN, HITS]] >= 0.0).all()
    if not (fine and (m[:, ROUNDS] + m[:, FREE] == m[:, SEEN]).all() and (m[:, HITS] <= m[:, SEEN]).all()):
        raise DataError("the tracker of its intervals is impossible")
    if not ((abs(m[:, GUESS]) <= m[:, REACH]).all() and (abs(m[:, DEBT]) <= m[:, ROUNDS]).all()):
        raise DataError("the tracker of its intervals is impossible")
    accounts.require_sane(float(m[0, SEEN]))


def _read_alarm(reader: Reader, head: Any, watch: Watch) -> Alarm:
    alarm = Alarm(watch.rounds or 0.0, typed(head["bound"], float))
    reader.fill("watch.alarm.table", alarm.table)
    reader.fill("watch.alarm.memory", alarm.memory)
    alarm.seen = count(head["seen"], 2**53)
    changes = typed(head["alarms"], list)
    if len(changes) > MOST_ALARMS:
        raise DataError("its alarms are too many")
    for row in changes:
        end, since, before, after = typed(row, list)
        finite = math.isfinite(typed(before, float)) and math.isfinite(typed(after, float))
        if not finite or not count(since, 2**53) <= count(end, alarm.seen):
            raise DataError("its alarms are impossible")
        alarm.changes.append(Change(end, since, before, after))
    rounds, starts, live = alarm.memory.tolist()
    table = alarm.table[:live] if 0 <= live < alarms.ROOM else alarm.table[:0]
    numbers = rounds >= 0 and rounds <= alarm.seen and starts == -(-rounds // alarms.EVERY) and 0 <= live <= starts
    sums = not np.isnan(table).any() and (table >= 0.0).all() and np.isfinite(table[:, :4]).all()
    ages = (table[:, alarms.START] + table[:, alarms.SIZE] == rounds).all()
    if not (numbers and len(table) == live and sums and ages):
        raise DataError("the sequences of its alarms are impossible")
    return alarm
