"""Ctrl-C and SIGTERM while the `rue` command starts: imported before everything else, and importing little itself.

A program that uses rue as a library keeps its own handlers.
"""

from __future__ import annotations

# The built-in part of `signal`: importing the rest of it (enum) takes milliseconds, in which Ctrl-C is a traceback.
import _signal as signal  # type: ignore[import-not-found, unused-ignore]
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["IS_COMMAND", "cleanups", "exit_at_once"]

cleanups: list[Callable[[], None]] = []
"""Called before the process ends without unwinding its stack: they remove temporary files."""


def _is_command() -> bool:
    """Whether this process was started as `rue` or as `python -m rue`."""
    argv: list[str] = getattr(sys, "argv", None) or [""]
    if argv[0] != "-m":  # which Python puts there while it looks for the module
        return os.path.basename(argv[0]) == "rue"
    words = sys.orig_argv
    return "-mrue" in words or ("-m" in words and words[words.index("-m") + 1] == "rue")


IS_COMMAND = _is_command()
"""Whether the process is the `rue` command, and not a program that imports rue."""


def exit_at_once(sentence: str) -> None:
    """Remove temporary files, say why, and end the process with 130.

    The stack is not unwound: an exception from a signal handler can surface anywhere, in a callback or a destructor
    too, where Python prints a traceback and goes on.
    """
    for cleanup in cleanups:
        try:
            cleanup()
        except Exception:
            continue
    try:
        os.write(2, f"rue: {sentence}\n".encode())
    finally:
        os._exit(130)


if IS_COMMAND:
    # Threads of BLAS spin while they wait for each other: reports of wide streams took 13 s of two processors, not 4.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        signal.signal(signal.SIGINT, lambda number, frame: exit_at_once("stopped by Ctrl-C."))
        signal.signal(signal.SIGTERM, lambda number, frame: exit_at_once("stopped by SIGTERM."))
    except ValueError:  # imported by another thread than the main one, so it is not the command
        IS_COMMAND = False
