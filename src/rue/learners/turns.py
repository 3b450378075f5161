"""One thread at a time: what keeps two threads from being inside one learner at once.

Compiled code runs without the interpreter's lock and writes to the learner's arrays, so two threads in one learner
would write outside them and crash the process.

The guard is a flag, `learner._busy`, that is tested and set in two instructions without a call between them. CPython
(since 3.11, with its global lock) switches threads, and runs signal handlers, at calls and at backward jumps only, so
no other thread comes between the two. A `threading.Lock` would take 125 ns, 20 % of an update; the flag takes 10 to
20 ns.
"""

from __future__ import annotations

import time
from typing import Any

from rue.errors import RueError

__all__ = ["LONGEST_WAIT", "Turn", "busy", "wait_until_idle"]

LONGEST_WAIT = 60.0
"""Seconds after which a thread that waits for its turn gives up."""
_PAUSE = 1e-4


class Turn:
    """`with Turn(learner):` raises if another thread is inside the learner; with `wait`, waits until it has left."""

    __slots__ = ("learner", "wait")

    def __init__(self, learner: Any, wait: bool = False) -> None:
        self.learner, self.wait = learner, wait

    def __enter__(self) -> None:
        learner = self.learner
        while learner._busy:
            if not self.wait:
                raise busy()
            wait_until_idle(learner)
        learner._busy = True

    def __exit__(self, *error: object) -> None:
        self.learner._busy = False


def wait_until_idle(learner: Any) -> None:
    """Wait until no thread is inside a learner; the next line of the caller must look again."""
    until = time.monotonic() + LONGEST_WAIT
    while learner._busy:
        if time.monotonic() > until:
            raise busy()
        time.sleep(_PAUSE)


def busy() -> RueError:
    """The error of a thread that enters a learner which another thread is using."""
    return RueError("another thread is using this learner: give each thread a copy of it, or use a lock.")
