"""`Source`: one file, pipe or table in memory that examples are read from."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import stat
import sys
from collections.abc import Callable
from typing import IO, Any

from rue.errors import DataError
from rue.streams.files.remote import is_remote, open_remote
from rue.streams.files.unpacking import Unpacked

__all__ = ["ForwardFile", "Source", "failure", "require_unpacked"]

_MARKS = {b"\x1f\x8b\x08": "gz", b"BZh91AY&SY": "bz2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zst"}
"""How compressed data begin; of bz2 only level 9, its default, is recognised."""


@dataclasses.dataclass(frozen=True)
class Source:
    """One file, `-` for standard input, or a table in memory; and how to read it."""

    path: Any
    """A path, a table in memory, or a binary file object, which only tests use."""
    format: str = ""
    """The name of its format; `table` for a table in memory."""
    packed: str = ""
    """The suffix of a compressed file, such as `.gz`."""
    rows: tuple[int, int] | None = None
    """The rows that are read, of a format that counts rows; None for all of them."""
    beginning: Any = dataclasses.field(default=None, compare=False, repr=False)
    """For text from the middle of a file: `Table.beginning` of the table that the beginning of the file makes."""

    @functools.cached_property
    def piped(self) -> bool:
        """Whether it is a pipe, which can be read once and not seeked: `-`, a FIFO, a socket, a terminal."""
        if not isinstance(self.path, str) or self.path == "-" or self.remote:
            return self.path == "-" if isinstance(self.path, str) else False
        try:
            mode = os.stat(self.path).st_mode
        except (OSError, ValueError):
            return False
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISBLK(mode))

    @property
    def remote(self) -> bool:
        """Whether it is an address such as s3://bucket/data.csv, not a file of this machine."""
        return is_remote(self.path)

    @property
    def whole(self) -> bool:
        """Whether it is a file as it is, here or elsewhere: what can be read from any place."""
        return isinstance(self.path, str) and not self.piped and not self.packed

    @property
    def plain(self) -> bool:
        """Whether it is a file on the disk, as it is: what can be read from any place, or mapped into memory."""
        return self.whole and not self.remote

    @property
    def name(self) -> str:
        """What messages call it."""
        if self.format == "table":
            return "the table"
        if hasattr(self.path, "read"):
            return str(getattr(self.path, "name", "the input"))
        return "standard input" if self.path == "-" else str(self.path)

    def open(self) -> IO[bytes]:
        """Its bytes, uncompressed; a pipe can be opened once."""
        if hasattr(self.path, "read"):
            return self.path  # type: ignore[no-any-return]
        if self.path == "-" and sys.stdin is None:
            raise DataError("standard input is closed: give the data as a file or through a pipe.")
        try:
            raw: Any = self._descriptor() if self.piped else open_remote(self.path) if self.remote else None
            if raw is None:
                raw = open(self.path, "rb", buffering=0 if self.piped or self.packed else -1)  # noqa: SIM115
            return Unpacked(raw, self.packed) if self.packed else raw  # type: ignore[return-value]
        except FileNotFoundError:
            raise DataError(f"there is no file {self.path}.") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise DataError(f"{self.path} cannot be opened: {why}.") from None

    def _descriptor(self) -> IO[bytes] | None:
        """Standard input, or a socket that the process was given as /dev/fd/N, which cannot be opened by its name."""
        if self.path == "-":
            number = sys.stdin.buffer.fileno()
        else:
            named = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]{1,9})", self.path)
            if named is None or not stat.S_ISSOCK(os.stat(self.path).st_mode):
                return None
            number = int(named[1])
        return os.fdopen(os.dup(number), "rb", buffering=0)  # a copy, so that closing it does not close the original


class ForwardFile:
    """A file that is only read on: of a pipe, `read` gives what has arrived, and waits only if that is nothing."""

    def __init__(self, file: IO[bytes]) -> None:
        plain = not isinstance(file, Unpacked)
        self.read: Callable[[int], bytes] = functools.partial(os.read, file.fileno()) if plain else file.read
        self.close = file.close

    def seekable(self) -> bool:
        return False


def require_unpacked(data: bytes) -> None:
    """Refuse the beginning of a compressed file where text is wanted."""
    for mark, packed in _MARKS.items():
        if data.startswith(mark):
            raise DataError(
                f"the data are compressed ({packed}): let the file's name end in .{packed}, or unpack before the pipe."
            )


def failure(line: int, offset: int, error: object) -> DataError:
    """The error to raise where reading breaks off, after everything before that has been passed on."""
    why = str(error).rstrip(".") or type(error).__name__
    return DataError(
        f"reading stops after line {line:,}, byte {offset:,} of the text: {why}; what follows, an unfinished line "
        "included, is not used."
    )
