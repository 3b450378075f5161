"""Low-priority helper threads."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

__all__ = ["helpers"]

NICENESS = 5
"""Added to the niceness of a helper: of a core that both want, the main thread gets three quarters."""


def helpers(many: int, name: str) -> ThreadPoolExecutor:
    """An executor of `many` threads of low priority: where cores are short, the learner's thread goes first.

    >>> with helpers(2, "example") as executor:
    ...     executor.submit(sum, [1, 2]).result()
    3
    """
    return ThreadPoolExecutor(many, name, initializer=_lower_priority)


def _lower_priority() -> None:
    if sys.platform == "linux":  # elsewhere niceness belongs to the whole process
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS + os.getpriority(os.PRIO_PROCESS, 0))
