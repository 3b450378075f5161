"""Says which peer a race waits for: some take seconds for what others do in a moment."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rue.race.race import Racing

__all__ = ["Waiting"]

PATIENCE = 2.0
"""Seconds of processor time that a peer may take before it is named."""


class Waiting:
    """Watches a race, once a second, while it lasts.

    `tell` is called with a sentence about the slowest peer, once for each peer.
    """

    def __init__(self, racing: Racing, tell: Callable[[str], None]) -> None:
        self.racing, self.tell = racing, tell
        self.over = threading.Event()
        self.named: set[str] = set()
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
        """Name the slowest peer if it takes more than half of the time, and has not been named yet."""
        spent = {lane.name: lane.seconds if lane.own else lane.runner.seconds for lane in self.racing.lanes}
        peers = [lane.name for lane in self.racing.lanes if not lane.own]
        slowest = max(peers, key=spent.__getitem__, default="")
        if slowest and slowest not in self.named and spent[slowest] > max(PATIENCE, 0.5 * sum(spent.values())):
            self.named.add(slowest)
            others = ",".join(name for name in spent if name != slowest)
            leave = f"; --learners {others} leaves it out" if others else ""
            rest = sum(spent.values()) - spent[slowest]
            self.tell(f"waiting for {slowest}: {spent[slowest]:.1f} s so far, all others {rest:.1f} s{leave}.")
