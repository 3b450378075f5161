"""Threads that work beside the one that everybody waits for."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

__all__ = ["helpers"]

YIELDING = 5
"""How nice they are: of a core that both want, the thread they help gets three quarters."""


def helpers(many: int, name: str) -> ThreadPoolExecutor:
    """So many threads that give way to the learner's, where there are not enough cores for all."""
    return ThreadPoolExecutor(many, name, initializer=_give_way)


def _give_way() -> None:
    if sys.platform == "linux":  # elsewhere niceness belongs to the whole process
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), YIELDING + os.getpriority(os.PRIO_PROCESS, 0))
