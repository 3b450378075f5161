"""Executors: who takes the steps of the shards. This file has what they share, and the one in this process."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from rue.cluster.advancing import Cursor, Learnt, Readers, advance_with
from rue.errors import RueError

__all__ = ["ATTEMPTS", "Executor", "Inline", "Outcome", "Place", "Worker"]

ATTEMPTS = 10
"""How often a step is taken again whose worker has died, before the run gives up: some rows may kill any worker."""


class Place(NamedTuple):
    """Where a shard stands."""

    shard: int
    unit: int
    row: int


class Outcome(NamedTuple):
    """What a step has come to."""

    place: Place
    """Where the shard stands now."""
    state: bytes = b""
    learnt: Learnt | None = None
    refusal: str = ""
    """Why the data cannot be learnt, in a sentence; "" if they can."""
    crash: str = ""
    """What went wrong in the program itself."""


class Executor(Protocol):
    """Takes steps, several at a time; if a worker dies, it takes that worker's steps again."""

    def begin(self, cursors: Sequence[Cursor]) -> None:
        """Tell the workers which data the shards have."""
        ...

    def advance(self, state: bytes, places: Sequence[Place], n: int) -> Iterator[Outcome]:
        """The next n examples of each of these shards, from one state; outcomes in any order."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


class Worker:
    """What takes the steps, in whatever process: it holds nothing that cannot be had again from the data."""

    def __init__(self, cursors: Sequence[Cursor]) -> None:
        self.cursors = {cursor.shard: cursor for cursor in cursors}
        self.readers = Readers()

    def advance(self, state: bytes, place: Place, n: int) -> Outcome:
        """One step; what goes wrong is in the outcome, since errors of every kind cannot be sent."""
        cursor = dataclasses.replace(self.cursors[place.shard], unit=place.unit, row=place.row)
        try:
            part = advance_with(self.readers, state, cursor, n)
        except RueError as error:
            return Outcome(place, refusal=str(error))
        except Exception:
            return Outcome(place, crash=traceback.format_exc())
        return Outcome(Place(place.shard, part.cursor.unit, part.cursor.row), part.state, part.learnt)


class Inline:
    """Takes all steps in this process, one after the other."""

    workers = 1

    def begin(self, cursors: Sequence[Cursor]) -> None:
        self._worker = Worker(cursors)

    def advance(self, state: bytes, places: Sequence[Place], n: int) -> Iterator[Outcome]:
        for place in places:
            yield self._worker.advance(state, place, n)

    def close(self) -> None:
        pass
