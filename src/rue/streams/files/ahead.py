"""Parsing ahead of learning: pieces are parsed by two threads while earlier ones are learnt."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from rue.streams.chunk import Chunk
from rue.threads import helpers

__all__ = ["read_ahead"]

PATIENCE = 0.2
"""Seconds between looks at whether to stop."""
_END: Any = None


def read_ahead(
    parsers: Callable[[Callable[[], bool]], Iterator[Callable[[], Chunk]]], stop: threading.Event, cores: int = 2
) -> Iterator[Chunk]:
    """Chunks in order, parsed by `cores` threads, at most a few ahead of the thread that takes them.

    `parsers` is called with a function that says whether to stop, and yields for each piece a function that parses it.
    It runs in a thread of its own, so that a pipe that stays silent does not hold up what has arrived.
    """
    # Futures go into the queue in order, so chunks come out in order, whichever is parsed first.
    done: queue.Queue[Any] = queue.Queue(maxsize=2 * cores)
    left = threading.Event()  # set when no more chunks are taken

    def stopped() -> bool:
        return left.is_set() or stop.is_set()

    def put(item: Any) -> bool:
        while not stopped():
            try:
                # With a limit, because Ctrl-C must be noticed while the learner is slow and the queue is full.
                done.put(item, timeout=PATIENCE)
                return True
            except queue.Full:
                continue
        return False

    with helpers(cores, "rue-parse") as pool:

        def submit() -> None:
            try:
                for parse in parsers(stopped):
                    if not put(pool.submit(parse)):
                        return
                put(_END)
            except BaseException as error:  # raised again by the thread that takes the chunks
                put(error)

        threading.Thread(target=submit, name="rue-read", daemon=True).start()
        try:
            while not stopped():
                try:
                    item = done.get(timeout=PATIENCE)
                except queue.Empty:
                    continue
                if item is _END:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item.result()
        finally:
            left.set()
            # Not waited for: a thread may sit in a read of a pipe that stays silent for ever.
            pool.shutdown(wait=False, cancel_futures=True)
