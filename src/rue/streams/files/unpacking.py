"""Compressed files as bytes: of a file, every byte that can be decompressed is given before an error is raised.

A download that was cut off, or has one bad byte, is learnt up to there: the step that fails is repeated a byte at a
time. A pipe cannot be read again, so up to 256 KiB before the damage are lost.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any

__all__ = ["PACKED", "Unpacked"]

STEP = 1 << 18
"""Bytes decompressed at a time at most: those of the step in which the data turn out damaged are lost at first."""
INPUT = 1 << 15


class _ByDecompressor:
    """Bytes of gz, bz2 or xz: one stream after the other, as `cat` puts them together, zeros between them ignored."""

    def __init__(self, raw: Any, make: Callable[[], Any]) -> None:
        self.raw, self.make = raw, make
        self.decompressor = make()
        self.waiting = b""
        """Input that the decompressor has not taken yet."""
        self.begun = self.later = self.ended = False
        """Whether the current stream has begun, whether there was one before it, and whether the input has ended."""

    def step(self, most: int) -> bytes:
        """Some bytes, at most so many; b"" only at the end."""
        while True:
            if self.decompressor.eof:
                self.waiting = self.decompressor.unused_data or self.waiting
                self.decompressor, self.begun, self.later = self.make(), False, True
            if self.later and not self.begun:
                self.waiting = self.waiting.lstrip(b"\0")
            if not self.waiting and not self.ended and getattr(self.decompressor, "needs_input", True):
                self.waiting = self.raw.read(INPUT)
                self.ended = not self.waiting
                continue
            if self.ended and not self.waiting and not self.begun:
                return b""
            data, self.waiting, self.begun = self.waiting, b"", True
            output: bytes = self.decompressor.decompress(data, most)
            self.waiting = getattr(self.decompressor, "unconsumed_tail", b"")
            if output:
                return output
            if self.ended and not data and not self.decompressor.eof:
                raise EOFError("the compressed data end too soon")


class _Borrowed:
    """A file that Arrow reads, and does not close when it is done with it."""

    closed = False

    def __init__(self, raw: Any) -> None:
        self.read = raw.read

    def close(self) -> None:
        pass


class _ByArrow:
    """Bytes of zst, which Python's own library does not know."""

    def __init__(self, raw: Any) -> None:
        import pyarrow

        self.file = pyarrow.CompressedInputStream(pyarrow.PythonFile(_Borrowed(raw), "r"), "zstd")

    def step(self, most: int) -> bytes:
        return self.file.read(most)  # type: ignore[no-any-return]


def _gz() -> Any:
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


PACKED: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda raw: _ByDecompressor(raw, _gz),
    ".bz2": lambda raw: _ByDecompressor(raw, bz2.BZ2Decompressor),
    ".xz": lambda raw: _ByDecompressor(raw, lzma.LZMADecompressor),
    ".zst": _ByArrow,
}
"""What decompresses files whose name ends so."""


class Unpacked:
    """A compressed file opened for reading; errors are of type OSError.

    Of a file, they are raised after all that can be decompressed has been read. What cannot be seeked is a pipe: `read`
    waits until there is something and returns the output of one step; up to 256 KiB before damage are lost.
    """

    def __init__(self, raw: Any, packed: str) -> None:
        self.raw, self.packed = raw, packed
        self.piped = not raw.seekable()
        self._restart()

    def _restart(self) -> None:
        self.decoder, self.offset = PACKED[self.packed](self.raw), 0
        self.error: OSError | None = None

    def read(self, size: int) -> bytes:
        """As many bytes as asked for unless the file ends or is damaged before; fewer from a pipe."""
        parts: list[bytes] = []
        left = size
        while left and self.error is None:
            try:
                data = self.decoder.step(min(left, STEP))
            except Exception as error:  # zlib, lzma and Arrow have errors of their own
                message = str(error).strip().splitlines() or [type(error).__name__]
                data = self._before_error(left)
                self.error = OSError(message[0].rstrip("."))
            if not data and self.error is None:
                break
            self.offset += len(data)
            left -= len(data)
            parts.append(data)
            if self.piped:
                break
        if self.error is not None and left == size:
            raise self.error
        return b"".join(parts)

    def _before_error(self, most: int) -> bytes:
        """The bytes of the step that failed, one at a time, after those before it have been read once more."""
        if self.piped:
            return b""
        self.raw.seek(0)
        again, left, data = PACKED[self.packed](self.raw), self.offset, bytearray()
        try:
            while left:
                left -= len(again.step(min(left, STEP)))
            while len(data) < most:
                data += again.step(1)
        except Exception:  # the same one
            return bytes(data)
        return bytes(data)

    def seekable(self) -> bool:
        return not self.piped

    def seek(self, offset: int) -> None:
        """Go to a place, by reading what comes before it."""
        if offset < self.offset or self.error is not None:
            self.raw.seek(0)
            self._restart()
        while self.offset < offset and self.read(min(STEP, offset - self.offset)):
            pass

    def close(self) -> None:
        self.raw.close()

    def __enter__(self) -> Unpacked:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
