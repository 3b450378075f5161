"""A worker process of the executor `local`: `python -m rue.cluster.worker DESCRIPTOR`.

It reads from the connection of that number what it is to do, until the other end is closed: data that shards have (a
list), a state (bytes), or a step (a place and a number), which it answers with an `Outcome`.
"""

from __future__ import annotations

import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from rue.cluster.executors import Worker

__all__ = ["main", "serve"]


def serve(connection: Connection[Any, Any]) -> None:
    """Take steps until the connection is closed."""
    worker, state = Worker([]), b""
    while True:
        try:
            message = connection.recv()
        except (EOFError, OSError):  # the process that asks has ended
            return
        if isinstance(message, bytes):
            state = message
        elif isinstance(message, list):
            worker = Worker(message)
        else:
            outcome = worker.advance(state, *message)
            try:
                connection.send(outcome)
            except OSError:
                return


def main() -> None:
    """Serve the connection that was handed down."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks, which then ends this one
    serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    main()
