"""How much memory this process may take, asked before anything large is allocated; and arrays at cache lines.

The system hands out more memory than there is and kills the process that uses it, so a failed allocation is no sign to
rely on: what a thing will take is computed first and compared with `memory_limit`.
"""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["aligned", "aligned_zeros", "gibibytes", "memory_limit"]

CACHE_LINE = 64
"""The bytes of a line of the processor's cache."""

_OF_THE_GROUP = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how much a container, or another group of processes, may take."""


def memory_limit() -> int:
    """The most bytes this process may take: the machine's, or what a limit of its own or of its container leaves."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    own = resource.getrlimit(resource.RLIMIT_AS)[0]
    if own != resource.RLIM_INFINITY:
        limits.append(own)
    with contextlib.suppress(OSError, ValueError):  # no such group, or no limit ("max")
        limits.append(int(_OF_THE_GROUP.read_text()))
    return min(limits)


def gibibytes(size: int) -> str:
    """A number of bytes in words: `1.5 GiB`."""
    return f"{size / 2**30:,.1f} GiB"


def aligned_zeros(shape: Any, dtype: Any = np.float64) -> Any:
    """An array of zeros that begins at a cache line, so that a row of 64 bytes is one access to memory, not two.

    NumPy puts a large array 16 bytes behind the beginning of a page.

    >>> aligned(aligned_zeros((1000, 8)))
    True
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.zeros(size + CACHE_LINE, dtype=np.uint8)
    begin = -room.__array_interface__["data"][0] % CACHE_LINE
    return room[begin : begin + size].view(dtype).reshape(shape)


def aligned(array: Any) -> bool:
    """Whether an array begins at a cache line, or is so short that it does not matter."""
    return bool(array.nbytes < 4096 or array.__array_interface__["data"][0] % CACHE_LINE == 0)
