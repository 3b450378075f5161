"""Timing that survives a shared machine: everything in one process, taken in turns, the best of several."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_of(
    jobs: dict[str, Callable[[], object]], rounds: int = 5, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of each job: all are warmed up first, then run in turns, and the fastest run of each counts.

    `clock` says what a second is: of those that pass, or, with `time.process_time`, of those that processors spend.
    """
    for job in jobs.values():
        job()
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        for name, job in jobs.items():
            started = clock()
            job()
            best[name] = min(best[name], clock() - started)
    return best
