"""The program keeps the memory of arrays that are done with: a real process, its page faults counted by the kernel."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import collections, resource, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from rue.cli.memory import keep_freed

if sys.argv[1] == "kept":
    keep_freed()

def block(n):
    return [np.ones(size) for size in (200_000 + 1000 * (n % 7), 300_000, 20_000)]

before, coming, alive = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, collections.deque(), collections.deque()
with ThreadPoolExecutor(2) as pool:
    for n in range(300):
        coming.append(pool.submit(block, n))
        if len(coming) > 3:
            alive.append(coming.popleft().result())
        if len(alive) > 6:
            alive.popleft()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's allocator that is told")
def test_memory_that_is_done_with_is_kept_for_the_next_arrays():
    """Blocks made by two threads and dropped by a third, as when a file is read."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    kept, given_back = (
        int(subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, env=env, check=True).stdout)
        for how in ("kept", "given back")
    )
    assert 2 * kept < given_back
