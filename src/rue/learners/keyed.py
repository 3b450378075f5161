"""Compiled loops over the rows of many keys, each of which has a small learner of its own (`rue.fleets`).

The rows of a block are put together key by key (`group_rows`), and each stretch of rows with one key is a *run*. The
features of a run get places in the order of their first occurrence within the key (`number_runs`), so that a key's
memory goes by its own features. Then `learn_runs` copies one key's record onto the workbench, learns the run's rows by
the same rule, point and ledger as any pass does, and copies the record back.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import kernel
from rue.compiled.intrinsics import fetch
from rue.learners.loop import BAD_FEATURE, BAD_LABEL, BAD_WEIGHT, BROKEN, OK, TOO_WIDE, UNORDERED, Lesson
from rue.learners.points import TOTAL
from rue.streams.numbering import hashed

__all__ = ["check_rows", "group_rows", "learn_runs", "number_runs", "predict_runs"]

_1 = np.uint64(1)
LINE = 8
"""Words in a line of the processor's cache."""
NEAR, AHEAD = 128, 4
"""How many words of a record are prefetched (the processor foresees the rest), and of which run after the present."""


@kernel
def check_rows(loss: Any, rows: Any, y: Any, weights: Any, status: Any) -> Any:
    """Write what is wrong with each row, as `rue.learners.loop` calls it, or OK; returns how many are unusable.

    Such rows are found before any is learnt: the rows of a block are not learnt in their order, and a run that stops at
    an unusable row must have learnt exactly those before it.
    """
    wrong, size = 0, rows.coordinates()
    for i in range(y.size):
        weight = weights[i] if weights.size > 0 else 1.0
        found = BROKEN
        if rows.sound(i):
            row = rows.row(i)
            found = OK
            if not row.ordered():
                found = UNORDERED
            elif not row.fits(size):
                found = TOO_WIDE
            elif not 0.0 <= weight < math.inf:
                found = BAD_WEIGHT
            elif not loss.accepts(y[i]):
                found = BAD_LABEL
            elif not row.finite():
                found = BAD_FEATURE
        status[i] = found
        wrong += found != OK
    return wrong


@kernel
def group_rows(keys: Any, mark: Any, order: Any, of_run: Any, ends: Any) -> Any:
    """Put rows with the same key together, each key's in their order: how many runs there are, and how many rows.

    Run r, of key of_run[r], is order[ends[r]:ends[r + 1]], and runs come in the order in which their keys first occur.
    A row whose key is negative is in no run. `mark` has a 0 for each key, before and after; `ends` begins with a 0.
    """
    runs, n = 0, 0
    for i in range(keys.size):
        k = keys[i]
        if k >= 0:
            if mark[k] == 0:
                of_run[runs] = k
                runs += 1
                mark[k] = runs
                ends[runs] = 0
            ends[mark[k]] += 1
            n += 1
    total = 0
    for r in range(1, runs + 1):
        many = ends[r]
        ends[r] = total
        total += many
    for i in range(keys.size):
        k = keys[i]
        if k >= 0:
            r = mark[k]
            order[ends[r]] = i
            ends[r] += 1
    for r in range(runs):
        mark[of_run[r]] = 0
    return runs, n


@kernel
def number_runs(
    rows: Any,
    order: Any,
    runs: Any,
    ids: Any,
    known: Any,
    adding: Any,
    empty: Any,
    table: Any,
    stamps: Any,
    stamp: Any,
    out: Any,
    fresh: Any,
) -> Any:
    """Copy the rows of runs to where `out` has them, with the places of their features in the key's record.

    A line of `runs` has the row of the key in `ids`, where the run begins and where it ends. The key knows the features
    ids[row, :known]; those that are new get the next places, and are written to `fresh`, from where the run's first
    feature is in `out` on. Without `adding` an unknown feature has the place `empty`. Returns the last stamp; `known`
    counts the new ones too. `table` and `stamps` are a hash table, empty where a stamp is not that of the run.
    """
    mask = np.uint64(table.size) - _1
    for r in range(runs.shape[0]):
        at, begin, end = runs[r, 0], runs[r, 1], runs[r, 2]
        if r + AHEAD < runs.shape[0]:
            fetch(ids, runs[r + AHEAD, 0] * ids.shape[1])
            fetch(rows.indptr, order[runs[r + AHEAD, 1]])
        before, many, first, built = known[r], known[r], out.indptr[begin], False
        stamp += 1
        for i in range(begin, end):
            lo, hi, to = rows.indptr[order[i]], rows.indptr[order[i] + 1], out.indptr[i]
            for k in range(hi - lo):
                feature = rows.indices[lo + k]
                place = empty
                # Most rows of a key have the same features in the same order, which is the order of their places.
                alike = k < before and ids[at, k] == feature
                if alike or (before <= k < many and fresh[first + k - before] == feature):
                    place = k
                else:
                    if not built:
                        built = True
                        for j in range(many):
                            one = ids[at, j] if j < before else fresh[first + j - before]
                            slot = hashed(np.uint64(one)) & mask
                            while stamps[slot] == stamp:
                                slot = slot + _1 & mask
                            stamps[slot], table[slot] = stamp, j
                    slot, found = hashed(np.uint64(feature)) & mask, False
                    while stamps[slot] == stamp and not found:
                        j = table[slot]
                        one = ids[at, j] if j < before else fresh[first + j - before]
                        if one == feature:
                            place, found = j, True
                        slot = slot + _1 & mask
                    if not found and adding:
                        while stamps[slot] == stamp:
                            slot = slot + _1 & mask
                        stamps[slot], table[slot] = stamp, many
                        fresh[first + many - before] = feature
                        place = many
                        many += 1
                out.indices[to + k], out.values[to + k] = place, rows.values[lo + k]
        known[r] = many
    return stamp


@kernel
def learn_runs(
    rule: Any,
    point: Any,
    ledger: Any,
    rows: Any,
    y: Any,
    weights: Any,
    out: Any,
    runs: Any,
    records: Any,
    bench: Any,
    plan: Any,
) -> None:
    """Learn runs of rows, each with the learner of its key, writing each prediction before its update.

    The prediction is NaN where the example is refused. A line of `runs` has the row of the key in `records`, where the
    run begins and where it ends; the arrays of `point` and `ledger` lie on the `bench`, and `plan` says which parts of
    it make a record (`rue.fleets.packing`). The rows have been checked.
    """
    words = records.shape[1]
    for r in range(runs.shape[0]):
        at, begin, end = runs[r, 0], runs[r, 1], runs[r, 2]
        if r + AHEAD < runs.shape[0]:
            for k in range(0, min(words, NEAR), LINE):
                fetch(records, runs[r + AHEAD, 0] * words + k)
        for s in range(plan.shape[0]):
            to, source = plan[s, 0], plan[s, 1]
            for k in range(plan[s, 2]):
                bench[to + k] = records[at, source + k]
        for i in range(begin, end):
            weight = weights[i] if weights.size > 0 else 1.0
            p, status, scored = Lesson(rule).give(point, rows.row(i), y[i], weight, ledger)
            out[i] = p if status == OK else math.nan
            ledger.next_row(rule.loss, rows, i, scored)
        ledger.close(rule.loss, rows, end)
        for s in range(plan.shape[0]):
            source, to = plan[s, 0], plan[s, 1]
            for k in range(plan[s, 2]):
                records[at, to + k] = bench[source + k]


@kernel
def predict_runs(point: Any, rows: Any, average: Any, out: Any, runs: Any, records: Any, bench: Any, plan: Any) -> None:
    """Predictions for runs of rows by the learners of their keys as they stand, or by the averages of their points."""
    for r in range(runs.shape[0]):
        at, begin, end = runs[r, 0], runs[r, 1], runs[r, 2]
        for s in range(plan.shape[0]):
            to, source = plan[s, 0], plan[s, 1]
            for k in range(plan[s, 2]):
                bench[to + k] = records[at, source + k]
        use = average and point.memory[TOTAL] > 0.0
        for i in range(begin, end):
            row = rows.row(i)
            out[i] = point.average_dot(row) if use else point.dot(row)
