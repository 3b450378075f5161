"""Files as one stream: opened, cut into pieces at line ends, parsed on both cores, in order, with a bounded queue."""

from __future__ import annotations

import dataclasses
import functools
import os
import queue
import re
import select
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from rue.errors import BadExample, DataError
from rue.streams.chunk import BadRow, Chunk
from rue.streams.files.cutting import MAX_LINE, MIB, LineCutter, LongLine, Recent
from rue.streams.files.unpacking import PACKED, Unpacked
from rue.streams.text.lines import count_lines
from rue.threads import helpers

__all__ = [
    "FORMATS",
    "PIECE",
    "Job",
    "Onward",
    "Piece",
    "Place",
    "Read",
    "Source",
    "Spot",
    "Until",
    "failure",
    "format_of",
    "open_bytes",
    "read_ahead",
    "require_unpacked",
    "skip",
    "tells_format",
    "text_pieces",
]

FORMATS = {
    "svmlight": (".svm", ".svmlight", ".libsvm"),
    "vw": (".vw",),
    "csv": (".csv", ".tsv"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "ipc": (".arrow", ".ipc", ".feather"),
}
_MARKS = {b"\x1f\x8b\x08": "gz", b"BZh91AY&SY": "bz2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zst"}

PIECE = int(os.environ.get("RUE_PIECE", 2**22))
"""Bytes parsed at a time; tests make it small."""
PATIENCE = 0.2
"""Seconds after which what has arrived through a pipe is passed on, however little."""


@dataclasses.dataclass(frozen=True)
class Place:
    """Where in the data reading stands: the file, counted from 0, and the bytes, lines or rows read of it."""

    file: int = 0
    offset: int = 0
    """Bytes of text, uncompressed; rows of a table."""
    line: int = 0


@dataclasses.dataclass(frozen=True)
class Spot:
    """A place, and what the bytes before it look like: a digest of the last MiB, made when asked for."""

    place: Place
    tail: Callable[[], str]


@dataclasses.dataclass(frozen=True)
class Read:
    """A chunk, the file it is from, and the spot after it."""

    chunk: Chunk
    name: str
    after: Spot
    before_line: Callable[[int], Spot]
    """The spot just before a line of the chunk, from which that line would be read again."""

    def error(self, bad: BadRow) -> DataError:
        """What to say about a row that is no example; of what has no name, by its number from 0."""
        column = f", column {bad.column}" if bad.column else ""
        if not self.name:
            return BadExample(bad.line - 1, f"{bad.why.rstrip('.')}{column}.")
        return DataError(f"{self.name}, line {bad.line}{column}: {bad.why.rstrip('.')}.")


@dataclasses.dataclass(frozen=True)
class Source:
    """One file, or `-` for standard input, and how to read it."""

    path: Any
    """Or a table in memory, whose format is `table`."""
    format: str
    packed: str = ""

    @functools.cached_property
    def piped(self) -> bool:
        """Whether it is a pipe, which can be read once and not seeked: `-`, a FIFO, a socket, a terminal."""
        if not isinstance(self.path, str) or self.path == "-":
            return isinstance(self.path, str)
        try:
            mode = os.stat(self.path).st_mode
        except (OSError, ValueError):
            return False
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISBLK(mode))

    @property
    def name(self) -> str:
        if self.format == "table":
            return "the table"
        return "standard input" if self.path == "-" else str(self.path)


def format_of(path: Any, told: str | None = None) -> Source:
    """A path's format, by what was said or by its suffixes.

    >>> format_of("clicks.csv.gz")
    Source(path='clicks.csv.gz', format='csv', packed='.gz')
    """
    if not isinstance(path, str):
        return Source(path, "table")
    suffixes = [suffix.lower() for suffix in Path(path).suffixes] if path != "-" else []
    packed = suffixes.pop() if suffixes and suffixes[-1] in PACKED else ""
    if told is not None:
        if told not in FORMATS:
            raise DataError(f"there is no format {told!r}: the formats are {', '.join(FORMATS)}.")
        return Source(path, told, packed)
    if path == "-":
        raise DataError(f"say what comes through the pipe with --format, one of {', '.join(FORMATS)}.")
    for name, endings in FORMATS.items():
        if suffixes and suffixes[-1] in endings:
            return Source(path, name, packed)
    raise DataError(f"{path}: the suffix tells no format: say it with --format, one of {', '.join(FORMATS)}.")


def tells_format(path: str) -> bool:
    """Whether a file's suffixes say what is in it."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() not in PACKED]
    return any(suffixes[-1] in endings for endings in FORMATS.values()) if suffixes else False


def open_bytes(source: Source) -> IO[bytes]:
    """The file's bytes, uncompressed; a pipe can be opened once."""
    if source.path == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed: give the data as a file or through a pipe.")
        return sys.stdin.buffer
    try:
        raw: Any = _open_descriptor(source.path) if source.piped else None
        if raw is None:
            raw = open(source.path, "rb", buffering=0 if source.piped or source.packed else -1)  # noqa: SIM115
        return Unpacked(raw, source.packed) if source.packed else raw  # type: ignore[return-value]
    except FileNotFoundError:
        raise DataError(f"there is no file {source.path}.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{source.path} cannot be opened: {why}.") from None


def _open_descriptor(path: str) -> IO[bytes] | None:
    """A socket that the process was given, as /dev/fd/N: it cannot be opened by its name, as a pipe can."""
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]{1,9})", path)
    if found is None or not stat.S_ISSOCK(os.stat(path).st_mode):
        return None
    return os.fdopen(os.dup(int(found[1])), "rb", buffering=0)


def require_unpacked(data: bytes) -> None:
    """Refuse the beginning of a compressed file where text is wanted."""
    for mark, packed in _MARKS.items():
        if data.startswith(mark):
            raise DataError(
                f"the data are compressed ({packed}): let the file's name end in .{packed}, or unpack before the pipe."
            )


def failure(line: int, offset: int, error: object) -> DataError:
    """What to say where reading breaks off, of all that comes before which has been passed on."""
    why = str(error).rstrip(".") or type(error).__name__
    return DataError(
        f"reading stops after line {line:,}, byte {offset:,} of the text: {why}; what follows, an unfinished line "
        "included, is not used."
    )


# Text in pieces of whole lines.


@dataclasses.dataclass(frozen=True)
class Piece:
    """Whole lines of a file, or one line above the limit."""

    data: bytes
    first_line: int
    start: int
    end: int
    end_line: int
    before: Recent
    """The text before it, as far as the last MiB reaches."""
    long: LongLine | None = None
    """The line above the limit, of which `data` has nothing; a piece that is not finished ends where it starts."""

    def tail(self) -> str:
        return self.before.followed_by(self.data if self.long is None else self.long.last)()

    def before_line(self, line: int) -> Piece:
        """The lines before one of its lines."""
        cut = 0
        for _ in range(line - self.first_line):
            cut = self.data.index(b"\n", cut) + 1
        return Piece(self.data[:cut], self.first_line, self.start, self.start + cut, line - 1, self.before)


def text_pieces(
    source: Source, offset: int = 0, line: int = 0, stop: Until | None = None, max_line: int = MAX_LINE
) -> Iterator[Piece]:
    """The lines of a file from a place on, a few MiB at a time; from a pipe as they come.

    A line of more than `max_line` MiB is a piece of its own: one when it passes the limit, which moves the place
    nowhere, and one when it ends.
    """
    stop = stop or Until(threading.Event())
    file = open_bytes(source)
    recent, cutter = Recent(), LineCutter(max_line * MIB)
    try:
        if offset and not source.piped:
            skip(file, source, max(0, offset - MIB))
            recent.add(file.read(min(MIB, offset)))
            if recent.size < min(MIB, offset):
                raise DataError(f"{source.name} has become shorter than it was.")
        for arrived, last in _arrivals(file, source, stop):
            for part in cutter.feed(arrived, last):
                if isinstance(part, LongLine):
                    data, size, lines, long = b"", part.length * part.finished, int(part.finished), part
                    kept = part.last
                else:
                    data, size, lines, long = part, len(part), count_lines(part), None
                    kept = part
                    if offset == 0:
                        require_unpacked(data)
                yield Piece(data, line + 1, offset, offset + size, line + lines, recent.copy(), long)
                offset, line = offset + size, line + lines
                recent.add(kept)
    except OSError as error:
        raise failure(line, offset, error) from None
    finally:
        if source.path != "-":
            file.close()


def skip(file: IO[bytes], source: Source, offset: int) -> None:
    """Go to a place in a file, none in a pipe."""
    if offset == 0 or source.piped:
        return
    file.seek(offset)


def _arrivals(file: IO[bytes], source: Source, stop: Until) -> Iterator[tuple[bytes, bool]]:
    """Bytes as they come, a piece at most, and whether they are the last; a pipe is not waited for beyond patience."""
    if source.packed or not source.piped:
        while not stop.is_set():
            data = file.read(PIECE if source.packed else _whole_lines(file))
            yield data, not data
            if not data:
                return
    else:
        yield from _through_pipe(file.fileno(), stop)


def _whole_lines(file: IO[bytes]) -> int:
    """How much to read of a plain file so that it ends where a line does: what is read so need not be put together."""
    window = min(PIECE, 65_536)
    ahead = os.pread(file.fileno(), window, file.tell() + PIECE - window)
    return PIECE - window + (ahead.rfind(b"\n") + 1 or window)


def _through_pipe(pipe: int, stop: Until) -> Iterator[tuple[bytes, bool]]:
    waiting: list[bytes] = []
    size = 0
    while not stop.is_set():
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
        if size >= PIECE:
            yield b"".join(waiting), False
            waiting, size = [], 0


class Onward:
    """A file that is only read on; of a pipe, `read` gives what has arrived, and waits only if that is nothing."""

    def __init__(self, file: IO[bytes], piped: bool) -> None:
        plain = piped and not isinstance(file, Unpacked)
        self.read: Callable[[int], bytes] = functools.partial(os.read, file.fileno()) if plain else file.read

    def seekable(self) -> bool:
        return False


# Parsing ahead of learning.

Job = tuple[Callable[[], Chunk], str, Spot, Callable[[int], Spot]]
_END: Any = None


class Until:
    """Says whether to stop: because that was asked for, or because nobody reads on."""

    def __init__(self, asked: threading.Event) -> None:
        self.asked, self.left = asked, False

    def is_set(self) -> bool:
        return self.left or self.asked.is_set()


def read_ahead(jobs: Callable[[Until], Iterator[Job]], asked: threading.Event, cores: int = 2) -> Iterator[Read]:
    """Parse pieces on several cores while earlier ones are learnt; in order, and only a few ahead.

    `jobs` is called with what tells it to stop. It runs in a thread of its own, so that a pipe that stays
    silent holds up nothing that has arrived.
    """
    done: queue.Queue[Any] = queue.Queue(maxsize=2 * cores)
    stop = Until(asked)
    with helpers(cores, "rue-parse") as pool:

        def submit() -> None:
            try:
                for job in jobs(stop):
                    if not _put(done, (pool.submit(job[0]), *job[1:]), stop):
                        return
                _put(done, _END, stop)
            except BaseException as error:  # handed to the reader below
                _put(done, error, stop)

        thread = threading.Thread(target=submit, name="rue-read", daemon=True)
        thread.start()
        try:
            while not stop.is_set():
                try:
                    item = done.get(timeout=PATIENCE)
                except queue.Empty:
                    continue
                if item is _END:
                    return
                if isinstance(item, BaseException):
                    raise item
                future, name, after, before_line = item
                yield Read(future.result(), name, after, before_line)
        finally:
            stop.left = True
            pool.shutdown(wait=False, cancel_futures=True)


def _put(done: queue.Queue[Any], item: Any, stop: Until) -> bool:
    while not stop.is_set():
        try:
            done.put(item, timeout=PATIENCE)
            return True
        except queue.Full:
            continue
    return False
