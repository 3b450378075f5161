"""The executor `local`: processes on this machine, restarted if they are killed."""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from rue.cluster.advancing import Cursor
from rue.cluster.executors import ATTEMPTS, Outcome, Place
from rue.errors import RueError, SettingsError

__all__ = ["Local"]


class _Process:
    """One worker process, and the steps that it is to take."""

    def __init__(self, cursors: Sequence[Cursor]) -> None:
        self.cursors = list(cursors)
        self.todo: collections.deque[Place] = collections.deque()
        self.attempts = 0
        """How often the first step of `todo` has been begun."""
        self.state, self.n = b"", 0
        self._start()

    def _start(self) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        command = [sys.executable, "-m", "rue.cluster.worker", str(theirs.fileno())]
        # A process of its own, and not one of `multiprocessing`, which would run the user's script again; in a session
        # of its own, so that Ctrl-C does not reach it.
        self.process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
        theirs.close()

    def give(self, state: bytes, places: Sequence[Place], n: int) -> None:
        """Let it take these steps."""
        self.state, self.n, self.attempts = state, n, 0
        self.todo = collections.deque(places)
        self._send(state)
        self._ask()

    def begin(self) -> None:
        self._send(self.cursors)

    def outcome(self) -> Outcome | None:
        """That of the first step, when the connection has news; None if the process has died, and is restarted."""
        try:
            outcome: Outcome = self.connection.recv()
        except (EOFError, OSError):
            self.end()
            if self.attempts >= ATTEMPTS:
                raise RueError(
                    f"the worker process of shard {self.todo[0].shard} has died {ATTEMPTS} times, with code "
                    f"{self.process.returncode}: perhaps there is not enough memory for so many; use fewer workers."
                ) from None
            self._start()
            self.begin()
            self._send(self.state)
            self._ask()
            return None
        self.todo.popleft()
        self.attempts = 0
        self._ask()
        return outcome

    def _ask(self) -> None:
        if self.todo:
            self.attempts += 1
            self._send((self.todo[0], self.n))

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # it has died: `outcome` notices
            self.connection.send(message)

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.wait()


class Local:
    """Takes steps in processes of this machine; worker w has shards w, w + workers, w + 2·workers, …"""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = len(os.sched_getaffinity(0)) if workers is None else workers
        if self.workers < 1:
            raise SettingsError(f"workers: a whole number from 1 on, not {self.workers}.")
        self._processes: list[_Process] = []

    def begin(self, cursors: Sequence[Cursor]) -> None:
        self.workers = min(self.workers, len(cursors))
        self._processes = [_Process(cursors[w :: self.workers]) for w in range(self.workers)]
        for process in self._processes:
            process.begin()

    def advance(self, state: bytes, places: Sequence[Place], n: int) -> Iterator[Outcome]:
        busy: dict[Connection[Any, Any], _Process] = {}
        for w, process in enumerate(self._processes):
            own = [place for place in places if place.shard % self.workers == w]
            if own:
                process.give(state, own, n)
                busy[process.connection] = process
        while busy:
            for ready in wait(list(busy)):
                process = busy.pop(ready)  # type: ignore[call-overload]
                outcome = process.outcome()
                if process.todo:
                    busy[process.connection] = process
                if outcome is not None:
                    yield outcome

    def close(self) -> None:
        for process in self._processes:
            process.end()
        self._processes = []
