"""Whom a race waits for: some peers take seconds for what others do in a moment."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rue.race.race import Racing

__all__ = ["Waiting"]

PATIENCE = 2.0
"""Seconds of a processor that a peer may take before anything is said."""


class Waiting:
    """While it lasts, a race is looked at every second; `tell` hears of the peer it waits for most, once for each."""

    def __init__(self, racing: Racing, tell: Callable[[str], None]) -> None:
        self.racing, self.tell = racing, tell
        self.over = threading.Event()
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
            self.look()

    def look(self) -> None:
        """Say what there is to say."""
        spent = {lane.name: lane.seconds if lane.own else lane.runner.seconds for lane in self.racing.lanes}
        peers = [lane.name for lane in self.racing.lanes if not lane.own]
        slowest = max(peers, key=spent.__getitem__, default="")
        if slowest and slowest not in self.told and spent[slowest] > max(PATIENCE, 0.5 * sum(spent.values())):
            self.told.add(slowest)
            others = ",".join(name for name in spent if name != slowest)
            leave = f"; --learners {others} leaves it out" if others else ""
            rest = sum(spent.values()) - spent[slowest]
            self.tell(f"waiting for {slowest}: {spent[slowest]:.1f} s so far, all others {rest:.1f} s{leave}.")
