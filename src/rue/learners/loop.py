"""The compiled loops: the same rule over a block of rows, or on one row at a time."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import kernel, values
from rue.ledger import Silent
from rue.rows import DenseRow, SparseRow

__all__ = [
    "BAD_FEATURE",
    "BAD_LABEL",
    "BAD_WEIGHT",
    "BROKEN",
    "OK",
    "REFUSED",
    "TOO_WIDE",
    "UNORDERED",
    "Lesson",
    "learn_dense",
    "learn_sparse",
    "predict_dense",
    "predict_rows",
    "predict_sparse",
    "run_rows",
]

OK, REFUSED, BAD_FEATURE, BAD_LABEL, BAD_WEIGHT, UNORDERED, TOO_WIDE, BROKEN = range(8)
"""What became of an example. Refused: its prediction, loss or step is not finite, so it changes nothing."""

_0 = np.uint64(0)


@values
class Lesson(NamedTuple):
    """One example given to a rule, with everything about it checked."""

    rule: Any

    def give(self, point: Any, row: Any, y: Any, weight: Any, ledger: Any) -> Any:
        """The prediction made before the update, what became of the example, and whether it is scored.

        A scored example is entered in the ledger.
        """
        rule = self.rule
        if not 0.0 <= weight < math.inf:
            return math.nan, BAD_WEIGHT, False
        if not rule.loss.accepts(y):
            return math.nan, BAD_LABEL, False
        p, good = rule.learn(point, row, y, weight)
        if good:
            if weight > 0.0:
                ledger.enter(rule.loss, row, p, y, weight)
            return p, OK, weight > 0.0
        return p, REFUSED if row.finite() else BAD_FEATURE, False


@kernel
def run_rows(rule: Any, point: Any, ledger: Any, rows: Any, y: Any, weights: Any, out: Any, begin: Any) -> Any:
    """Learn rows from `begin` on, writing each prediction before its update (NaN where the example is refused).

    Returns the first row that is unusable and why, or the number of rows and OK. Input is checked here, row by row:
    passes of their own over the data cost 40 %.
    """
    size = rows.coordinates()
    if size > point.size() or not ledger.room(size):
        return begin, TOO_WIDE
    i, status = begin, OK
    while i < y.size and status <= REFUSED:
        status = BROKEN
        if rows.sound(i):
            row = rows.row(i)
            status = UNORDERED if not row.ordered() else TOO_WIDE if not row.fits(size) else OK
        if status == OK:
            weight = weights[i] if weights.size > 0 else 1.0
            p, status, scored = Lesson(rule).give(point, row, y[i], weight, ledger)
            if status <= REFUSED:
                out[i] = p if status == OK else math.nan
                ledger.next_row(rule.loss, rows, i, scored)
                i += 1
    ledger.close(rule.loss, rows, i)
    return i, status if status > REFUSED else OK


@kernel
def predict_rows(point: Any, rows: Any, average: Any, out: Any, begin: Any) -> Any:
    """Predictions of a point that stands still, or of the average."""
    size = rows.coordinates()
    if size > point.size():
        return begin, TOO_WIDE
    for i in range(begin, out.size):
        if not rows.sound(i):
            return i, BROKEN
        row = rows.row(i)
        if not row.ordered():
            return i, UNORDERED
        if not row.fits(size):
            return i, TOO_WIDE
        out[i] = point.average_dot(row) if average else point.dot(row)
        if not math.isfinite(out[i]) and not row.finite():
            return i, BAD_FEATURE
    return out.size, OK


@kernel
def learn_dense(rule: Any, point: Any, x: Any, intercept: Any, y: Any, weight: Any) -> Any:
    """Learn one dense row; returns what became of it."""
    row = DenseRow(x, _0, np.uint64(x.size), np.uint64(intercept))
    if not row.fits(np.uint64(point.size())):
        return TOO_WIDE
    return Lesson(rule).give(point, row, y, weight, Silent(0))[1]


@kernel
def learn_sparse(rule: Any, point: Any, indices: Any, values: Any, intercept: Any, y: Any, weight: Any) -> Any:
    """Learn one sparse row; returns what became of it."""
    row = SparseRow(indices, values, _0, np.uint64(indices.size), np.uint64(intercept), indices)
    if indices.size != values.size:
        return BROKEN
    if not row.ordered():
        return UNORDERED
    if not row.fits(np.uint64(point.size())):
        return TOO_WIDE
    return Lesson(rule).give(point, row, y, weight, Silent(0))[1]


@kernel
def predict_dense(point: Any, x: Any, intercept: Any, average: Any) -> Any:
    """The prediction for one dense row; NaN also when it does not fit."""
    row = DenseRow(x, _0, np.uint64(x.size), np.uint64(intercept))
    if not row.fits(np.uint64(point.size())):
        return math.nan
    return point.average_dot(row) if average else point.dot(row)


@kernel
def predict_sparse(point: Any, indices: Any, values: Any, intercept: Any, average: Any) -> Any:
    """The prediction for one sparse row; NaN also when it does not fit."""
    row = SparseRow(indices, values, _0, np.uint64(indices.size), np.uint64(intercept), indices)
    if indices.size != values.size or not (row.ordered() and row.fits(np.uint64(point.size()))):
        return math.nan
    return point.average_dot(row) if average else point.dot(row)
