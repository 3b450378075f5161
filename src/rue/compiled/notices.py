"""What the library lets the command line say while it works; the library itself never prints."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

__all__ = ["long_compilation", "on_long_compilation"]

PATIENCE = 1.0
"""Seconds of compiling before it is said."""

_listeners: list[Callable[[], None]] = []


def on_long_compilation(tell: Callable[[], None]) -> None:
    """Have `tell` called once, when a kernel has been compiling for a second."""
    _listeners[:] = [tell]


@contextlib.contextmanager
def long_compilation() -> Iterator[None]:
    """Around the compilation of a kernel."""
    if not _listeners:
        yield
        return
    timer = threading.Timer(PATIENCE, _tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _tell() -> None:
    for tell in _listeners[:]:
        _listeners.clear()
        tell()
