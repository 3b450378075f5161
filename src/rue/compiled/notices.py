"""Lets the command line say that kernels are being compiled, and for how long; the library itself never prints."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

__all__ = ["compile_seconds", "long_compilation", "on_long_compilation"]

PATIENCE = 1.0
"""Seconds of compiling before the listener is called."""

_listeners: list[Callable[[], None]] = []
_spent = [0.0]
"""Seconds; changed only by the thread that holds the lock of the compiler."""


def compile_seconds() -> float:
    """How many seconds this process has spent compiling kernels, or reading compiled ones from disk."""
    return _spent[0]


def on_long_compilation(listener: Callable[[], None]) -> None:
    """Call `listener` once, when a kernel has been compiling for a second."""
    _listeners[:] = [listener]


@contextlib.contextmanager
def long_compilation() -> Iterator[None]:
    """The context in which a kernel is compiled: adds up the time, and calls the listener after a second."""
    started, timer = time.perf_counter(), threading.Timer(PATIENCE, _notify)
    timer.daemon = True
    if _listeners:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _spent[0] += time.perf_counter() - started


def _notify() -> None:
    for listener in _listeners[:]:
        _listeners.clear()  # once in a process, however many kernels are compiled
        listener()
