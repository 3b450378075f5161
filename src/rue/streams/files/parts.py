"""Parts of text files: some bytes of them, cut at line ends; a line belongs to the part that has its first byte."""

from __future__ import annotations

import dataclasses
import io
from typing import IO, Any

from rue.errors import DataError
from rue.streams.files.remote import size_of
from rue.streams.files.sources import Source

__all__ = ["TextInMemory", "byte_ranges", "part_of_text"]

STEP = 1 << 16
"""Bytes that are looked through for a line end at a time."""


class TextInMemory(io.BytesIO):
    """Some lines of a file, with what messages call them."""

    def __init__(self, text: bytes, name: str) -> None:
        super().__init__(text)
        self.name = name


def byte_ranges(source: Source, size: int) -> list[tuple[int, int]]:
    """Ranges of about `size` bytes that make up a file."""
    try:
        length = size_of(source.path)
    except OSError as error:
        raise DataError(f"{source.name} cannot be opened: {error.strerror}.") from None
    return [(start, min(start + size, length)) for start in range(0, length, size)]


def part_of_text(source: Source, start: int, stop: int, beginning: Any = None) -> Source | None:
    """The lines whose first byte lies in a range, as a source in memory; None if there are none.

    For a table `beginning` is what the file's beginning says, unless the part is that beginning.
    """
    with source.open() as file:
        first, end = _line_from(file, start), _line_from(file, stop)
        file.seek(first)
        text = file.read(end - first)
    if not text.strip():
        return None
    name = f"{source.name} from byte {first:,}" if start else source.name
    return dataclasses.replace(source, path=TextInMemory(text, name), beginning=beginning)


def _line_from(file: IO[bytes], place: int) -> int:
    """Where the first line begins that begins at a place or after it."""
    if place == 0:
        return 0
    file.seek(place - 1)
    at = place - 1
    while data := file.read(STEP):
        end = data.find(b"\n") + 1
        if end:
            return at + end
        at += len(data)
    return at
