"""On 40 short streams, the most by which the default learner is ever behind the linear mixture."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import rue
from benchmarks.data import text_like
from benchmarks.forests import course, linear
from benchmarks.tables import GENERATED, MORE, REAL, Table, table

ROWS = 3_000


def short_streams() -> Iterator[tuple[str, Table]]:
    """Prefixes and middles of the real streams, River's streams, noise, and wide sparse text."""
    for name in REAL:
        if (stream := table(name)) is not None:
            yield f"{name}, start", stream.head(ROWS)
            middle = slice(stream.y.size // 2, stream.y.size // 2 + ROWS)
            yield f"{name}, middle", stream._replace(columns=stream.columns[middle], y=stream.y[middle])
    for name in (*GENERATED, *MORE):
        stream = table(name)
        assert stream is not None
        yield name, stream.head(ROWS)
    yield from _noise()
    for seed in (1, 2):
        X, y = text_like(rows=ROWS, seed=seed)
        yield f"text, seed {seed}", Table(X, (y > 0).astype(int), (-1, 1))


def _noise() -> Iterator[tuple[str, Table]]:
    """Labels that no feature tells anything about, and labels that are all but constant."""
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.standard_normal((ROWS, 8))).rename(columns=str)
    words = pd.DataFrame(rng.integers(0, 50, (ROWS, 6))).rename(columns=str).astype("str").astype("category")
    coin, rare = rng.integers(0, 2, ROWS), (rng.random(ROWS) < 0.01).astype(int)
    yield "coin, numbers", Table(numbers, coin, (0, 1))
    yield "coin, words", Table(words, coin, (0, 1))
    yield "rare class, numbers", Table(numbers, rare, (0, 1))
    yield "three sides, numbers", Table(numbers, rng.integers(0, 3, ROWS), (0, 1, 2))
    yield "noise to predict", Table(numbers, rng.standard_normal(ROWS), ())
    yield "heavy-tailed noise to predict", Table(words, rng.standard_t(3, ROWS), ())


def excess(stream: Table, learner: Any = None) -> float:
    """max_t Σ_{s ≤ t} (ℓ_s of a learner − ℓ_s of the linear mixture), of numbers in units of their variance."""
    task = "regress" if not stream.classes else "classify" if len(stream.classes) == 2 else "multiclass"
    y = stream.y if not stream.classes else np.array(stream.classes).astype(str)[stream.y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, raw = (course(rue.learn(stream.columns, y, task=task, learner=how)) for how in (learner, linear(stream)))
    unit = 1.0 if stream.classes else float(np.var(stream.y))
    return float(np.cumsum(ours.losses - raw.losses).max(initial=0.0)) / unit


def excess_rows() -> list[tuple[str, float, str]]:
    """The largest excess over the streams of each task, in nats or in the labels' variance, and where it was."""
    found: dict[str, dict[str, float]] = {}
    for name, stream in short_streams():
        kind = "numbers" if not stream.classes else "two classes" if len(stream.classes) == 2 else "more classes"
        found.setdefault(kind, {})[name] = excess(stream)
        print(f"  {name} ({kind}): {found[kind][name]:.3f}", flush=True)
    rows = []
    for kind, values in found.items():
        worst = max(values, key=values.__getitem__)
        unit, wanted = ("in the labels' variance", "–") if kind == "numbers" else ("in nats", "≤ ln M")
        rows.append(
            (
                f"{kind}: behind the linear mixture at most, {unit} ({len(values)} streams; {worst})",
                values[worst],
                wanted,
            )
        )
    return rows
