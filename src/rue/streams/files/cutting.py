"""Text that arrives in parts, cut into whole lines of bounded length, each byte looked at a bounded number of times."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
from collections.abc import Callable, Iterator

__all__ = ["MAX_LINE", "MIB", "LineCutter", "LongLine", "Tail", "digest", "too_long"]

MIB = 2**20
MAX_LINE = 16
"""MiB that a line may have by default."""


def digest(data: bytes) -> str:
    """A few characters that tell whether bytes are the same."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def too_long(limit: int) -> str:
    """What is wrong with a line above the limit, in MiB."""
    return f"it is longer than {limit} MiB; --max-line (in Python max_line) raises this limit"


class Tail:
    """The last MiB of the text read so far, in the parts it came in.

    A checkpoint records its digest, so that resuming in a file that has changed since is refused.
    """

    def __init__(self, data: bytes = b"") -> None:
        self.parts, self.size = collections.deque([data]), len(data)

    def add(self, data: bytes) -> None:
        self.parts.append(data)
        self.size += len(data)
        while self.size - len(self.parts[0]) >= MIB:
            self.size -= len(self.parts.popleft())

    def last(self) -> bytes:
        """The last MiB, or all if it is less."""
        return b"".join(self.parts)[-MIB:]

    def followed_by(self, data: bytes) -> Callable[[], str]:
        """A function that digests the last MiB of this and some more text: most positions are never asked for it."""
        parts = (*self.parts, data)
        return lambda: digest(b"".join(parts)[-MIB:])

    def copy(self) -> Tail:
        copy = Tail()
        copy.parts, copy.size = self.parts.copy(), self.size
        return copy


@dataclasses.dataclass(frozen=True)
class LongLine:
    """A line above the limit: only its last MiB is kept."""

    length: int
    """Its bytes so far, with the line end if that has come."""
    last: bytes
    """The last MiB of them, once it is finished."""
    finished: bool
    """Whether its end has been read: it is reported twice, when it passes the limit and when it ends."""


class LineCutter:
    """Whole lines of text that arrives in parts; a line above the limit is thrown away as it comes.

    What it gives depends only on the text, not on the parts in which the text arrives, but for where lines are cut
    into groups.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """Bytes that a line may have, its end not counted."""
        self.rest = bytearray()
        """The beginning of a line that is not finished."""
        self._long: Tail | None = None
        self._length = 0

    def feed(self, arrived: bytes, last: bool = False) -> Iterator[bytes | LongLine]:
        """What can be passed on now that more has arrived; with the last of it, an unfinished line too."""
        while arrived or last:
            if self._long is not None:
                end = arrived.find(b"\n") + 1
                part, arrived = (arrived[:end], arrived[end:]) if end else (arrived, b"")
                self._long.add(part)
                self._length += len(part)
                if not end and not last:
                    return
                yield LongLine(self._length, self._long.last(), True)
                self._long = None
                if not arrived:
                    return
            cut = len(arrived) if last else arrived.rfind(b"\n") + 1
            if cut or last:
                lines = b"".join((self.rest, arrived[:cut])) if self.rest else arrived[:cut]
                self.rest, arrived = bytearray(), arrived[cut:]
                yield from self._lines(lines)
                if last:
                    return
            self.rest += arrived
            arrived = b""
            if len(self.rest) > self.limit:
                self._long, self._length = Tail(bytes(self.rest[-MIB:])), len(self.rest)
                self.rest = bytearray()
                yield LongLine(self._length, b"", False)

    def _lines(self, lines: bytes) -> Iterator[bytes | LongLine]:
        """Whole lines in groups; a line above the limit is given as a `LongLine` instead.

        Jump from newline to newline, at most `limit` apart; scan only where there is none.
        """
        start = place = 0
        while len(lines) - place > self.limit:
            end = lines.rfind(b"\n", place, place + self.limit + 1) + 1
            if end:
                place = end
                continue
            if start < place:
                yield lines[start:place]
            start, place = place, lines.find(b"\n", place) + 1 or len(lines)
            yield LongLine(self.limit + 1, b"", False)
            yield LongLine(place - start, lines[max(start, place - MIB) : place], True)
            start = place
        if start < len(lines):
            yield lines[start:] if start else lines
