"""Commands as attacks run them: in a process of their own, interrupted, killed or out of disk, and what must hold."""

import contextlib
import dataclasses
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import fuzzing
import rue

MOST_MEMORY = 2**30
"""Bytes of a process whose input is at most a few MB: 200 MB to start, 400 MB while it compiles."""
MOST_SECONDS = 300
"""A command takes a second or two; the limit leaves room for a busy machine that compiles."""
CODES = {0, 1, 2, 130}
PACKAGE = str(Path(rue.__file__).parent)

JUNK = [*fuzzing.JUNK, *fuzzing.LETTERS]
JUNK += [b"\n1 4294967295:1\n", b'\n{"y": "\\ud800", "c0": 1}\n', b'\n{"\\udfff": 1}\n', b'\n"', b"\n" * 300]
JUNK += [b"x" * 100_000, b",1" * 40_000, b"\x1f\x8b\x08", b"1e-320", b"-1e308", b"\xed\xa0\x80"]


@dataclasses.dataclass
class Finished:
    """How a process ended."""

    args: list
    code: int
    out: str
    err: str
    memory: int


@dataclasses.dataclass
class Mishap:
    """What happens to a process while it runs."""

    signals: tuple = ()
    """Pairs of seconds after the one before, and a signal."""
    room: int | None = None
    """Bytes that a file may have before the disk counts as full."""
    closed: str = ""
    """Streams that are closed from the start, in the shell's words."""

    @property
    def deadly(self):
        """The signals that may end the process at once: before Python, on a busy machine, comes to rue's first line."""
        return {number for _, number in self.signals}

    @classmethod
    def draw(cls, rng):
        kind = rng.randrange(10)
        if kind == 0:
            return cls(signals=((rng.uniform(0, 2.5), signal.SIGKILL),))
        if kind == 1:
            return cls(signals=((rng.uniform(0, 2.5), rng.choice([signal.SIGINT, signal.SIGTERM])),))
        if kind == 2:
            return cls(signals=tuple((rng.choice([0.01, 0.1, 0.7]), signal.SIGINT) for _ in range(rng.randint(2, 5))))
        if kind == 3:
            return cls(room=rng.choice([0, 100, 5_000, 60_000]))
        if kind == 4:
            return cls(closed=rng.choice([">&-", "2>&-", "<&-", ">&- 2>&-"]))
        return cls()


NO_MISHAP = Mishap()


def run(folder, args, mishap=NO_MISHAP, stdin=None):
    """A command in a folder, with everything that every command must keep to checked."""
    command = [sys.executable, "-m", "rue", *args]
    if mishap.closed:
        command = ["sh", "-c", f'exec "$@" {mishap.closed}', "sh", *command]

    def limits():
        resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30, 16 * 2**30))
        if mishap.room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (mishap.room, mishap.room))

    with open(stdin or os.devnull, "rb") as source:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=limits,
            start_new_session=True,
        )
    printed = [Reader(process.stdout), Reader(process.stderr)]
    code, memory = watched(process, mishap, args)
    done = Finished(args, code, *(reader.text() for reader in printed), memory)
    about = (args, mishap, code, done.err[-600:])
    assert code in CODES or -code in mishap.deadly, about
    shown = "Traceback" in done.out + done.err
    before_rue = signal.SIGINT in mishap.deadly and "KeyboardInterrupt" in done.err and PACKAGE not in done.err
    assert not shown or before_rue, about  # while Python itself starts, nobody can help it
    assert "should not happen" not in done.err, about
    assert memory < MOST_MEMORY, (memory, about)
    if code in (1, 2) and "2>&-" not in mishap.closed:
        assert done.err.strip(), about
    return done


class Reader(threading.Thread):
    """Reads a pipe to its end while the process runs."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.data = pipe, b""
        self.start()

    def run(self):
        with self.pipe:
            self.data = self.pipe.read()

    def text(self):
        self.join()
        return self.data.decode(errors="replace")


def watched(process, mishap, args):
    """Send the signals, wait for the end: the exit code and the largest memory that was seen."""
    begun, pending, memory = time.monotonic(), list(mishap.signals), 0
    due = begun + pending[0][0] if pending else None
    while process.poll() is None:
        memory = max(memory, peak(process.pid))
        now = time.monotonic()
        if due is not None and now >= due:
            os.kill(process.pid, pending.pop(0)[1])
            due = now + pending[0][0] if pending else None
        if now - begun > MOST_SECONDS:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise AssertionError(("still running", MOST_SECONDS, args, mishap))
        time.sleep(0.005)
    return process.returncode, memory


def peak(pid):
    """The largest memory of a process so far, in bytes; 0 if it has ended."""
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) * 1024 if found else 0
    return 0


def damaged(data, rng):
    """Some bytes, a few of them changed, lost, moved or added."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at, size = rng.randint(0, len(data)), rng.choice([1, 3, 50, 5000])
        what = rng.randrange(6)
        if what == 0:
            data[at:at] = rng.choice(JUNK)
        elif what == 1:
            del data[at : at + size]
        elif what == 2:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif what == 3:
            data[at:at] = data[rng.randint(0, len(data)) :][:size]
        elif what == 4:
            data[at : at + size] = bytes(min(size, len(data) - at))
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)
