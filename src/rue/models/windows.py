"""The windows of a run in a model file: S of each window for the coordinates where one of them is not 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from rue import windows as w
from rue.errors import DataError
from rue.ledger import EXAMPLES, Ledger
from rue.models.arrays import Places, Reader, count, typed
from rue.norms import LARGEST_TERM
from rue.regret.certificates.witnessed import NUMBERS, WIDEST, WitnessWindows
from rue.regret.certificates.witnesses import Pool
from rue.windows import WindowSums, of_pieces, open_windows

__all__ = ["read_windows", "read_witness_windows", "write_windows"]


def write_windows(windows: WindowSums, arrays: dict[str, Any], coordinates: Any) -> int | None:
    """Enter the arrays, and return how many windows there are; `coordinates` are those of the places."""
    if not len(windows.sums):
        return None
    S, places = windows.columns()
    used = np.flatnonzero((S != 0.0).any(axis=0))
    rows = places[used] if coordinates is None else coordinates[places[used]]
    order = np.argsort(rows)
    arrays["windows.S"] = np.ascontiguousarray(S[:, used[order]].T)
    arrays["windows.S.rows"] = rows[order].astype(np.uint64)
    arrays["windows.sums"] = windows.pieces().copy()
    arrays["windows.clock"] = windows.clock * (np.arange(len(w.CLOCK)) != w.TOP)  # known from the columns
    return len(windows.pieces())


def read_windows(reader: Reader, many: Any, ledger: Ledger, places: Places | None) -> WindowSums:
    """The windows of a file; of one that has none, a single window of everything learnt until then."""
    if many is None:
        return _one_window(ledger)
    n = count(many, w.MOST_WINDOWS + 1)
    S, rows = reader.take("windows.S", (np.float64,)), reader.take("windows.S.rows", (np.uint64,))
    sums, clock = reader.take("windows.sums", (np.float64,)), reader.take("windows.clock", (np.int64,))
    size = ledger.S.size if places is None else places.coordinates
    rising = rows.ndim == 1 and bool((rows[1:] > rows[:-1]).all()) and (not rows.size or int(rows[-1]) < size)
    if not rising or S.shape != (rows.size, n) or sums.shape != (n, len(w.WINDOW)) or clock.shape != (len(w.CLOCK),):
        raise DataError("its windows do not fit together")
    if not np.isfinite(S).all() or not np.isfinite(sums[:, : w.LABELS]).all() or (sums[:, w.EXAMPLES] < 1.0).any():
        raise DataError("the sums of its windows are impossible")
    mistakes, absurd = sums[:, w.MISTAKES], np.abs(sums) > LARGEST_TERM  # NaN, where labels are not known, is not
    if not ((mistakes >= 0.0) & (mistakes <= sums[:, w.EXAMPLES])).all() or absurd.any():
        raise DataError("the sums of its windows are impossible")
    if float(sums[:, w.EXAMPLES].sum()) != float(ledger.sums[EXAMPLES]):
        raise DataError("its windows are not those of its examples")
    _require_clock(clock, n)
    most = int(clock[w.MOST])
    windows = open_windows(most=most)._replace(clock=clock.copy())
    columns = np.zeros((most + 1, rows.size))
    columns[:n], windows.sums[:n] = S.T, sums
    at = rows.astype(np.int64) if places is None else places.of(rows.astype(np.int64))
    return windows.with_columns(columns, at, ledger.S.size)


def read_witness_windows(reader: Reader, many: Any, pool: Pool, ledger: Ledger) -> WitnessWindows:
    """What the witnesses of a file have proved in each window."""
    n, used, K = count(many, w.MOST_WINDOWS + 1), pool.places.size, pool.radii.size
    vectors, examples = np.zeros((n, NUMBERS + used + 1, K)), np.zeros(n)
    reader.fill("witnessed.vectors", vectors)
    reader.fill("witnessed.examples", examples)
    clock = np.zeros(len(w.CLOCK), dtype=np.int64)
    reader.fill("witnessed.clock", clock)  # before the first example it is mostly 0
    if used > WIDEST:
        raise DataError("the windows of its witnesses do not fit together")
    _require_clock(clock, n)
    whole = bool((examples >= 1.0).all()) and float(examples.sum()) == float(ledger.sums[EXAMPLES])
    if not whole or not (np.abs(vectors) <= LARGEST_TERM).all():
        raise DataError("the sums of its witnesses' windows are impossible")
    return WitnessWindows.read(pool, vectors, examples, clock)


def _require_clock(clock: Any, n: int) -> None:
    """Refuse a place among the windows that cannot be."""
    closed, second, left, length, most, vectors, top = typed(clock.tolist(), list)
    good = 2 <= length <= 2**61 and length % 2 == 0 and 0 <= left <= length // 2 and second in (0, 1)
    good = good and 2 <= most <= w.MOST_WINDOWS and 1 <= vectors <= 2**20 and top == 0
    if not (good and 0 <= closed < most and n - 1 <= closed + second <= n):
        raise DataError("the place among its windows is impossible")


def _one_window(ledger: Ledger) -> WindowSums:
    """One window with all sums of a ledger; the sums of the labels are not known."""
    if not float(ledger.sums[EXAMPLES]):
        return open_windows(ledger.S.size)
    sums = np.full((1, len(w.WINDOW)), np.nan)
    sums[0, : ledger.sums.size] = ledger.sums
    used = np.flatnonzero(ledger.S)
    windows = of_pieces(ledger.S[None, used], sums, w.SHORTEST, w.MOST_WINDOWS)
    return windows.with_columns(windows.S, used, ledger.S.size)
