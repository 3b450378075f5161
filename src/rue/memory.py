"""How much memory this process may take, asked before anything large is allocated.

The system hands out more memory than there is and kills the process that uses it, so a failed allocation is no sign to
rely on: what a thing will take is computed first and compared with `memory_limit`.
"""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

__all__ = ["gibibytes", "memory_limit"]

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
