"""Files as one stream: opened, cut into pieces at line ends, parsed on both cores, in order, with a bounded queue."""

from __future__ import annotations

import bz2
import collections
import dataclasses
import gzip
import hashlib
import lzma
import os
import queue
import select
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

from rue._beside import helpers
from rue.errors import BadExample, DataError
from rue.streams.chunk import BadRow, Chunk
from rue.streams.lines import count_lines

__all__ = [
    "FORMATS",
    "MIB",
    "PIECE",
    "Job",
    "Onward",
    "Piece",
    "Place",
    "Read",
    "Recent",
    "Source",
    "Spot",
    "Until",
    "digest",
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
PACKED = (".gz", ".bz2", ".xz", ".zst")

_MARKS = {b"\x1f\x8b\x08": "gz", b"BZh91AY&SY": "bz2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zst"}

PIECE = int(os.environ.get("RUE_PIECE", 2**22))
"""Bytes parsed at a time; tests make it small."""
PATIENCE = 0.2
"""Seconds after which what has arrived through a pipe is passed on, however little."""
MIB = 2**20


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

    @property
    def piped(self) -> bool:
        return isinstance(self.path, str) and self.path == "-"

    @property
    def name(self) -> str:
        if self.format == "table":
            return "the table"
        return "standard input" if self.piped else str(self.path)


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
    """The file's bytes, uncompressed."""
    if source.piped:
        return sys.stdin.buffer
    path = Path(source.path)
    try:
        if source.packed == ".gz":
            return gzip.open(path, "rb")  # type: ignore[return-value]
        if source.packed == ".bz2":
            return bz2.open(path, "rb")
        if source.packed == ".xz":
            return lzma.open(path, "rb")
        if source.packed == ".zst":
            import pyarrow

            return pyarrow.CompressedInputStream(pyarrow.OSFile(str(path), "rb"), "zstd")  # type: ignore[no-any-return]
        return open(path, "rb")
    except FileNotFoundError:
        raise DataError(f"there is no file {source.path}.") from None
    except OSError as error:
        raise DataError(f"{source.path} cannot be opened: {error.strerror or error}.") from None


def require_unpacked(data: bytes) -> None:
    """Refuse the beginning of a compressed file where text is wanted."""
    for mark, packed in _MARKS.items():
        if data.startswith(mark):
            raise DataError(
                f"the data are compressed ({packed}): let the file's name end in .{packed}, or unpack before the pipe."
            )


def digest(data: bytes) -> str:
    """A few characters that tell whether bytes are the same."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


# Text in pieces of whole lines.


@dataclasses.dataclass(frozen=True)
class Piece:
    """Whole lines of a file."""

    data: bytes
    first_line: int
    end: int
    end_line: int
    before: tuple[bytes, ...]
    """The pieces before it, as far as the last MiB reaches."""

    def tail(self) -> str:
        return digest(b"".join([*self.before, self.data])[-MIB:])

    def before_line(self, line: int) -> Piece:
        """The lines before one of its lines."""
        cut = 0
        for _ in range(line - self.first_line):
            cut = self.data.index(b"\n", cut) + 1
        end = self.end - len(self.data) + cut
        return Piece(self.data[:cut], self.first_line, end, line - 1, self.before)


class Recent:
    """The last MiB of text that was read, in the pieces it came in."""

    def __init__(self, data: bytes = b"") -> None:
        self.parts, self.size = collections.deque([data]), len(data)

    def add(self, data: bytes) -> None:
        self.parts.append(data)
        self.size += len(data)
        while self.size - len(self.parts[0]) >= MIB:
            self.size -= len(self.parts.popleft())

    def followed_by(self, data: bytes) -> Callable[[], str]:
        """What makes the digest of the last MiB, when asked for, of this and some more text."""
        parts = (*self.parts, data)
        return lambda: digest(b"".join(parts)[-MIB:])

    def copy(self) -> Recent:
        made = Recent()
        made.parts, made.size = self.parts.copy(), self.size
        return made


def text_pieces(source: Source, offset: int = 0, line: int = 0, stop: Until | None = None) -> Iterator[Piece]:
    """The lines of a file from a place on, a few MiB at a time; from a pipe as they come."""
    stop = stop or Until(threading.Event())
    file = open_bytes(source)
    recent: collections.deque[bytes] = collections.deque()
    kept, rest = 0, b""
    try:
        if offset and not source.piped:
            skip(file, source, max(0, offset - MIB))
            recent.append(file.read(min(MIB, offset)))
            kept = len(recent[0])
            if kept < min(MIB, offset):
                raise DataError(f"{source.name} has become shorter than it was.")
        for arrived, last in _arrivals(file, source, stop):
            rest += arrived
            cut = len(rest) if last else rest.rfind(b"\n") + 1
            if cut == 0:
                continue
            data, rest = rest[:cut], rest[cut:]
            if offset == 0:
                require_unpacked(data)
            lines = count_lines(data)
            offset, line = offset + len(data), line + lines
            yield Piece(data, line - lines + 1, offset, line, tuple(recent))
            recent.append(data)
            kept += len(data)
            while recent and kept - len(recent[0]) >= MIB:
                kept -= len(recent.popleft())
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise DataError(f"{source.name}: reading stops after byte {offset:,} of the text: {error}.") from None
    finally:
        if not source.piped:
            file.close()


def skip(file: IO[bytes], source: Source, offset: int) -> None:
    """Go to a place: by seeking where the file is plain, by reading where it is not."""
    if offset == 0 or source.piped:
        return
    if not source.packed:
        file.seek(offset)
        return
    left = offset
    while left:
        read = len(file.read(min(left, PIECE)))
        if not read:
            raise DataError(f"{source.name} has become shorter than it was: it ends {left:,} bytes too soon.")
        left -= read


def _arrivals(file: IO[bytes], source: Source, stop: Until) -> Iterator[tuple[bytes, bool]]:
    """Bytes as they come, a piece at most, and whether they are the last; a pipe is not waited for beyond patience."""
    if not source.piped:
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
        self.read: Callable[[int], bytes] = partial(os.read, file.fileno()) if piped else file.read

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
