"""Whom a race waits for: some peers take seconds for what others do in a moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rue.race import Racing

__all__ = ["Waiting"]

PATIENCE = 5.0
"""Seconds before anything is said."""


class Waiting:
    """While it lasts, a race is looked at every second; `tell` is given whom it waits for most, once for each."""

    def __init__(self, racing: Racing, tell: Callable[[str], None]) -> None:
        self.racing, self.tell = racing, tell
        self.started, self.over = time.monotonic(), threading.Event()
        self.told: set[str] = set()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Waiting:
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self.over.wait(1.0):
            self.look(time.monotonic() - self.started)

    def look(self, elapsed: float) -> None:
        """What there is to say after so many seconds."""
        spent = {lane.name: lane.seconds if lane.own else lane.runner.seconds for lane in self.racing.lanes}
        if elapsed < PATIENCE or not spent:
            return
        slowest = max(spent, key=spent.__getitem__)
        if slowest not in self.told and spent[slowest] > 0.5 * max(sum(spent.values()), 0.5 * elapsed):
            self.told.add(slowest)
            others = ",".join(name for name in spent if name != slowest)
            leave = f"; --learners {others} leaves it out" if others else ""
            self.tell(f"waiting for {slowest}, which has taken {spent[slowest]:.0f} of {elapsed:.0f} s so far{leave}.")
