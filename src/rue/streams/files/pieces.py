"""Files in pieces: what is read at a time, before it is parsed.

A piece is a few MiB of whole lines. It knows the position where it ends, from which a later process can go on, and can
work out the position before any of its lines, from which a bad line would be read again.
"""

from __future__ import annotations

import dataclasses
import io
import os
import select
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any, NamedTuple

from rue.errors import DataError
from rue.streams.chunk import Position
from rue.streams.files.cutting import MAX_LINE, MIB, LineCutter, LongLine, Tail
from rue.streams.files.sources import Source, failure, require_unpacked
from rue.streams.text.lines import count_lines

__all__ = ["PIECE", "Piece", "Spoilt", "text_piece", "text_pieces"]

PIECE = int(os.environ.get("RUE_PIECE", 2**22))
"""Bytes parsed at a time; tests make it small."""
PATIENCE = 0.2
"""Seconds after which what has arrived through a pipe is passed on, however little."""


class Spoilt(NamedTuple):
    """Bytes start:stop of a piece of CSV that cannot be read because of an unbalanced quote; they become a bad row."""

    start: int
    stop: int
    why: str


@dataclasses.dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a file as they were read: one thread reads pieces in order, others parse them."""

    data: Any
    """Bytes of whole lines, or an Arrow record batch."""
    start: Position
    end: Position
    before_line: Callable[[int], Position]
    """The position just before one of its lines or rows."""
    long: LongLine | None = None
    """A line above the limit, of which `data` has nothing; while it is unfinished, the piece ends where it starts."""
    spoilt: tuple[Spoilt, ...] = ()


def text_piece(part: bytes | LongLine, start: Position, before: Tail, spoilt: tuple[Spoilt, ...] = ()) -> Piece:
    """Whole lines, or a line above the limit, that stand after a position; they are added to the text `before` it."""
    if isinstance(part, LongLine):
        data, text, size, lines = b"", part.last, part.length * part.finished, int(part.finished)
    else:
        data, text, size, lines = part, part, len(part), count_lines(part)
    end = Position(start.offset + size, start.line + lines, start.file, before.followed_by(text))
    before_line = partial(_before_line, data, start, before.copy())
    before.add(text)
    return Piece(data, start, end, before_line, part if isinstance(part, LongLine) else None, spoilt)


def _before_line(data: bytes, start: Position, before: Tail, line: int) -> Position:
    cut = 0
    for _ in range(line - 1 - start.line):
        cut = data.index(b"\n", cut) + 1
    return Position(start.offset + cut, line - 1, start.file, before.followed_by(data[:cut]))


def text_pieces(
    source: Source,
    start: Position | None = None,
    stopped: Callable[[], bool] = lambda: False,
    max_line: int = MAX_LINE,
    size: int = PIECE,
) -> Iterator[Piece]:
    """The lines of a file from a position on, `size` bytes at a time; from a pipe as they come, until it is stopped.

    A line of more than `max_line` MiB gives two pieces: one when it passes the limit, which does not move the position,
    and one when it ends.
    """
    at = start or Position()
    before, cutter = Tail(), LineCutter(max_line * MIB)
    with source.open() as file:
        try:
            if at.offset and not source.piped:
                file.seek(max(0, at.offset - MIB))
                before.add(file.read(min(MIB, at.offset)))
                if before.size < min(MIB, at.offset):
                    raise DataError(f"{source.name} has become shorter than it was.")
            for arrived, last in _arrivals(file, source, stopped, size):
                for part in cutter.feed(arrived, last):
                    if at.offset == 0 and isinstance(part, bytes):
                        require_unpacked(part)
                    piece = text_piece(part, at, before)
                    yield piece
                    at = piece.end
        except OSError as error:
            raise failure(at.line, at.offset, error) from None


def _arrivals(file: IO[bytes], source: Source, stopped: Callable[[], bool], size: int) -> Iterator[tuple[bytes, bool]]:
    """Bytes as they come, a piece at most, and whether they are the last.

    From a pipe what has arrived is passed on after `PATIENCE` seconds; a compressed pipe is waited for.
    """
    if source.packed or not source.piped:
        while not stopped():
            data = file.read(size if source.packed else _whole_lines(file, size))
            yield data, not data
            if not data:
                return
    else:
        yield from _through_pipe(file.fileno(), stopped, size)


def _whole_lines(file: IO[bytes], size: int) -> int:
    """How much to read of a plain file so that it ends where a line does: such parts need not be put together."""
    window = min(size, 65_536)
    try:
        descriptor = file.fileno()
    except io.UnsupportedOperation:  # of text in memory, or of a file elsewhere
        return size
    ahead = os.pread(descriptor, window, file.tell() + size - window)
    return size - window + (ahead.rfind(b"\n") + 1 or window)


def _through_pipe(pipe: int, stopped: Callable[[], bool], most: int) -> Iterator[tuple[bytes, bool]]:
    waiting: list[bytes] = []
    size = 0
    while not stopped():
        if not select.select([pipe], [], [], PATIENCE)[0]:
            if waiting:
                yield b"".join(waiting), False
                waiting, size = [], 0
            continue
        data = os.read(pipe, MIB)
        waiting.append(data)
        size += len(data)
        if not data:
            yield b"".join(waiting), True
            return
        if size >= most:
            yield b"".join(waiting), False
            waiting, size = [], 0
