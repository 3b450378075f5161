"""The C library's memory allocator, tuned for a program that owns its process."""

from __future__ import annotations

import ctypes

__all__ = ["keep_freed"]

# Names of glibc's mallopt(3), and what they are set to: no more than 2^25 is taken for the second by older ones.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_SETTINGS = ((_TRIM_THRESHOLD, 2**30), (_MMAP_THRESHOLD, 2**25), (_ARENA_MAX, 1))


def keep_freed() -> None:
    """Let freed memory be reused instead of returned to the system, where the C library is glibc.

    Every block of a file is parsed into fresh arrays of a few MB. Given back and asked for again, their pages are
    cleared by the kernel each time, a tenth of the processors' time of a pass.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return  # another C library
    for name, value in _SETTINGS:
        mallopt(name, value)
