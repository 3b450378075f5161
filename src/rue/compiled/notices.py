"""Lets the command line say that a kernel is being compiled; the library itself never prints."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

__all__ = ["long_compilation", "on_long_compilation"]

PATIENCE = 1.0
"""Seconds of compiling before the listener is called."""

_listeners: list[Callable[[], None]] = []


def on_long_compilation(listener: Callable[[], None]) -> None:
    """Call `listener` once, when a kernel has been compiling for a second."""
    _listeners[:] = [listener]


@contextlib.contextmanager
def long_compilation() -> Iterator[None]:
    """The context in which a kernel is compiled: calls the listener after a second."""
    if not _listeners:
        yield
        return
    timer = threading.Timer(PATIENCE, _notify)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _notify() -> None:
    for listener in _listeners[:]:
        _listeners.clear()  # once in a process, however many kernels are compiled
        listener()
