"""Arrow IPC, files (Feather) and streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rue.errors import DataError
from rue.registry import register
from rue.streams.files.pieces import PIECE
from rue.streams.files.sources import ForwardFile, Source
from rue.streams.formats.base import TableFormat
from rue.streams.tables.batches import Batches, first_line, numbered, read_once

__all__ = ["Ipc"]

MAGIC = b"ARROW1\0\0"
"""How a file of Arrow IPC begins; a stream has no such mark."""


@register("format", "ipc")
class Ipc(TableFormat):
    """Arrow IPC: a stream of record batches, or a file, which is a stream between two marks and a footer.

    The footer is only asked how many batches there are.
    """

    suffixes = (".arrow", ".arrows", ".ipc", ".feather")
    counts_rows = True

    def open(self, source: Source, block: int = PIECE) -> Batches:
        import pyarrow as pa

        batches: int | None = None
        opened = None
        try:
            opened = _opened(source)
            if not opened.seekable():
                return read_once(pa.ipc.open_stream(_Stream(opened)), opened.close)
            start = len(MAGIC) if opened.read(len(MAGIC)) == MAGIC else 0
            opened.seek(0)
            if start:
                batches = pa.ipc.open_file(opened).num_record_batches
            opened.seek(start)
            schema = pa.ipc.open_stream(opened).schema
            schema.names  # noqa: B018  # which must be text
        except Exception as error:  # of a damaged file Arrow raises errors of many kinds
            if opened is not None:
                opened.close()
            raise DataError(f"{source.name} cannot be read as Arrow IPC: {first_line(error)}.") from error

        def read(row: int, rows: int) -> Iterator[tuple[int, Any]]:
            opened.seek(start)
            count = 0
            for item in numbered(pa.ipc.open_stream(opened)):
                count += 1
                yield item
            if batches is not None and count != batches:
                raise DataError(f"the file is damaged: its footer promises {batches:,} batches of rows, not {count:,}.")

        return Batches(schema, read)


def _opened(source: Source) -> Any:
    import pyarrow as pa

    if source.plain:
        return pa.memory_map(source.path)
    return ForwardFile(source.open()) if source.piped or source.packed else source.open()


class _Stream:
    """A file that can only be read on, as Arrow wants it: as many bytes as asked for, unless it ends.

    Without its first mark, a file of Arrow can be read as a stream.
    """

    closed = False

    def __init__(self, file: Any) -> None:
        self.file, self.head = file, b""
        start = self.read(8)
        self.head = b"" if start.startswith(b"ARROW1") else start

    def read(self, size: int) -> bytes:
        parts, self.head = [self.head[:size]], self.head[size:]
        left = size - len(parts[0])
        while left and (more := self.file.read(left)):
            parts.append(more)
            left -= len(more)
        return b"".join(parts)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        pass
