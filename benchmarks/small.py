"""Small arrays in memory: what `rue.learn` takes beside the learner's own pass.

The pass alone (`Learner.run`) predicts and updates. `rue.learn` also copies the learner, finds out what the labels
mean, and keeps baselines, metrics, the course of a mixture's members and the evidence for certificates.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import rue

LEARNERS: dict[str, Callable[[], rue.Learner]] = {"OGD": lambda: rue.OGD(domain="ball:10"), "the mixture": rue.Mixture}
SIZES = ((2_000, 20, 60), (40_000, 10, 8), (40_000, 20, 8), (40_000, 60, 8))
"""Rows, columns, and how often each is repeated."""


def small_rows() -> list[tuple[str, float, str]]:
    """By the clock and by the time of the processors, which counts helper threads too."""
    found = []
    for rows, columns, times in SIZES:
        rng = np.random.default_rng(0)
        X, w = rng.normal(size=(rows, columns)), rng.normal(size=columns)
        y = np.where(X @ w + rng.normal(size=rows) > 0.0, 1.0, -1.0)
        for name, make in LEARNERS.items():
            whole, alone = in_turns(
                lambda X=X, y=y, make=make: rue.learn(X, y, learner=make()),
                lambda X=X, y=y, make=make: make().run(X, y),
                times,
            )
            what, wanted = f"{rows:,} × {columns}, {name}", "≤ 1.1" if (rows, name) == (40_000, "the mixture") else "–"
            print(f"  {what}: {1e3 * whole[0]:.1f} ms, alone {1e3 * alone[0]:.1f} ms", flush=True)
            found.append((f"{what}: `rue.learn` / its pass, by the clock", whole[0] / alone[0], wanted))
            found.append((f"{what}: the same in time of the processors", whole[1] / alone[1], wanted))
    return found


def in_turns(first: Callable[[], object], second: Callable[[], object], times: int) -> list[tuple[float, float]]:
    """The least time that each takes by the clock, and by the processors."""
    best = [(np.inf, np.inf), (np.inf, np.inf)]
    for turn in range(times + 1):
        for i, action in enumerate((first, second)):
            before = time.perf_counter(), time.process_time()
            action()
            taken = time.perf_counter() - before[0], time.process_time() - before[1]
            if turn:  # the first may compile
                best[i] = min(best[i][0], taken[0]), min(best[i][1], taken[1])
    return best
