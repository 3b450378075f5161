"""Standard input, output and error where one is closed, cannot be written, or cannot show a character."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

from rue.errors import DataError

__all__ = ["flush", "open_closed", "writing_stdout"]


def open_closed() -> None:
    """Put something in the place of standard streams that are closed, as after `rue … >&-`.

    Python has None for such a stream, and the next file opened gets its number. What is printed then goes nowhere; a
    path that names the stream, such as /dev/stdout, cannot be written, as it should be. `sys.stdin` stays None, so that
    who wants to read it can tell.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            with contextlib.suppress(OSError):
                os.fstat(number)
                continue
            os.open(os.devnull, os.O_RDONLY)  # which gets the lowest number that is free
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def writing_stdout() -> Iterator[None]:
    """Errors of standard output as one sentence; a pipe whose reader is gone stays a BrokenPipeError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"standard output cannot be written: {(error.strerror or str(error)).lower()}.") from error


def flush() -> OSError | None:
    """Write what standard output and error still hold; what is wrong, if they cannot be written.

    What cannot be written is dropped: Python would try again when it shuts down, and show a traceback.
    """
    wrong = None
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            wrong = wrong or error
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)
            with contextlib.suppress(OSError):
                stream.flush()
    return wrong
