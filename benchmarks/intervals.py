"""Prediction intervals against adaptive conformal inference at its best rate and window in hindsight."""

from __future__ import annotations

import bisect
import lzma
import math
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

import rue
from benchmarks.data import SHARED

LEVEL = 0.9
RATES = 0.001 * 2.0 ** np.arange(8)
WINDOWS = 25 * 2 ** np.arange(13)
STREAMS = {"bike": {"target": "cnt"}, "elec2": {"target": "nswprice", "drop": ["up"]}}


def score(y: Any, lower: Any, upper: Any) -> float:
    """The mean interval score: width + 2/(1 − level) × overshoot."""
    over = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return float(np.mean(upper - lower + 2.0 / (1.0 - LEVEL) * over))


def conformal(sizes: list[float], rate: float, window: int) -> Any:
    """Half-widths of adaptive conformal inference (Gibbs and Candès 2021) from the last sizes of residuals.

    α_{t+1} = α_t + rate·(α − miss_t), and the half-width is the (1 − α_t)-quantile of the last `window` sizes; where
    that would be infinite (α_t < 0), the largest of them, in the peer's favour.
    """
    alpha, past, ordered, widths = 1.0 - LEVEL, deque[float](), list[float](), np.zeros(len(sizes))
    for t, size in enumerate(sizes):
        if ordered:
            k = math.ceil((1.0 - alpha) * (len(ordered) + 1)) - 1
            widths[t] = ordered[min(max(k, 0), len(ordered) - 1)]
        alpha += rate * (1.0 - LEVEL - (size > widths[t]))
        past.append(size)
        bisect.insort(ordered, size)
        if len(past) > window:
            del ordered[bisect.bisect_left(ordered, past.popleft())]
    return widths


def interval_rows() -> list[tuple[str, float, str]]:
    """Coverage, interval score and time on two streams of numbers."""
    rows = []
    for name, columns in STREAMS.items():
        packed = SHARED / f"{name}.csv.xz"
        if not packed.exists():
            print(f"{name} is absent (../shared/data): its rows are left out")
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.csv"
            path.write_bytes(lzma.decompress(packed.read_bytes()))
            spent: dict[Any, float] = {None: math.inf, LEVEL: math.inf}
            for turn in range(8):
                for level in spent:
                    started = time.perf_counter()
                    run = rue.learn(str(path), interval=level, **columns)
                    if turn:  # the first may compile
                        spent[level] = min(spent[level], time.perf_counter() - started)
        y, p = run.y, run.predictions
        inside = (run.lower <= y) & (y <= run.upper)
        sizes = np.abs(y - p).tolist()
        halves = {(rate, window): conformal(sizes, rate, int(window)) for rate in RATES for window in WINDOWS}
        peers = {setting: score(y, p - half, p + half) for setting, half in halves.items()}
        best = min(peers, key=lambda setting: peers[setting])
        print(f"  {name}: the best of {len(peers)} settings has rate {best[0]:g} and window {best[1]}")
        rows += [
            (f"{name}: gap of coverage, in units of what is promised", _gap(run), "≤ 1"),
            (f"{name}: share inside in the lowest thirty-second", _lowest(inside), "≥ 0.86"),
            (
                f"{name}: interval score, in units of the best of {len(peers)} conformal settings",
                score(y, run.lower, run.upper) / peers[best],
                "≤ 1",
            ),
            (f"{name}: time with intervals, in units of the forecast alone", spent[LEVEL] / spent[None], "≤ 3"),
        ]
    return rows


def _gap(run: Any) -> float:
    return float(abs(run.interval.covered - LEVEL) / run.interval.promised_within)


def _lowest(inside: Any) -> float:
    return float(min(part.mean() for part in np.array_split(inside, 32)))
