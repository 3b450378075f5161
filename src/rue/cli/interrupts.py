"""Ctrl-C and SIGTERM while the program learns: they end the run after the current block, and everything is saved."""

from __future__ import annotations

import signal
import threading
import time

from rue._startup import IS_COMMAND, exit_at_once

__all__ = ["Interruptible", "ignore_at_exit"]

WINDOW = 1.0
"""Seconds within which three Ctrl-C give up."""


class Interruptible:
    """While it lasts, Ctrl-C and SIGTERM are only remembered: in `by`, and by setting `stop`, which reading looks at.

    They are so even if SIGINT was ignored before. Only a third Ctrl-C within a second ends the process at once.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.by: int | None = None
        """The number of the first signal."""
        self._presses: list[float] = []

    def __enter__(self) -> Interruptible:
        self._before = [(number, signal.signal(number, self._asked)) for number in (signal.SIGINT, signal.SIGTERM)]
        return self

    def _asked(self, number: int, frame: object) -> None:
        if self.by is None:  # a handler may interrupt itself, and Event.set within Event.set waits for ever
            self.by = number
            self.stop.set()
        if number == signal.SIGINT:
            now = time.monotonic()
            self._presses = [then for then in self._presses if now - then < WINDOW] + [now]
            if len(self._presses) >= 3:
                exit_at_once("gave up after three Ctrl-C within a second: what was not saved by then is lost.")

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)


def ignore_at_exit() -> None:
    """Ignore both signals from now on: all is saved, and one while Python shuts down would change the exit code."""
    if IS_COMMAND:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
