"""Parquet."""

from __future__ import annotations

import base64
import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

from rue.errors import DataError
from rue.registry import register
from rue.streams.files.cutting import MIB, digest
from rue.streams.files.pieces import PIECE
from rue.streams.files.sources import Source
from rue.streams.formats.base import TableFormat
from rue.streams.tables.batches import Batches, first_line

__all__ = ["Parquet"]


@register("format", "parquet")
class Parquet(TableFormat):
    """Parquet files, read a row group at a time; damage is refused where checksums or the footer show it."""

    suffixes = (".parquet", ".pq")
    counts_rows = True
    needs_file = "Parquet is read from its end, so save it to a file and unpack it first."

    def parts(self, source: Source, size: int) -> list[tuple[int, int]]:
        """The rows of each row group."""
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(source.path if source.plain else source.open()) as file:
                groups = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
        except DataError:
            raise
        except Exception as error:  # of a damaged file Arrow raises errors of many kinds
            raise DataError(f"{source.name} cannot be read as Parquet: {first_line(error)}.") from error
        ends = list(itertools.accumulate(groups))
        return [(end - rows, end) for rows, end in zip(groups, ends, strict=True) if rows]

    def part(self, source: Source, start: int, stop: int) -> Source:
        return dataclasses.replace(source, rows=(start, stop))

    def open(self, source: Source, block: int = PIECE) -> Batches:
        import pyarrow.parquet as pq

        try:
            given = source.path if source.plain else source.open()
            file = pq.ParquetFile(given, page_checksum_verification=True)
            groups = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
            schema = file.schema_arrow
            _require_footer(file.metadata, schema.names, groups)
        except Exception as error:  # of a damaged file Arrow raises errors of many kinds
            raise DataError(f"{source.name} cannot be read as Parquet: {first_line(error)}.") from error

        def read(row: int, rows: int) -> Iterator[tuple[int, Any]]:
            begin, stop = source.rows or (0, sum(groups))
            group, first = 0, 0
            while group < len(groups) and first + groups[group] <= max(row, begin):
                first += groups[group]
                group += 1
            for each in range(group, len(groups)):  # or else Arrow would hold what it reads of all of them
                if first >= stop:
                    return
                end = first + groups[each]
                for batch in file.iter_batches(rows, row_groups=[each]):
                    yield first, batch
                    first += batch.num_rows
                if first != end:
                    raise DataError(f"the file is damaged: its footer promises {end:,} rows up to here, not {first:,}.")

        def tail(row: int) -> str:
            """Of the file up to the end of the row group that holds the row before."""
            last = first = 0
            while last < len(groups) and first < row:
                first += groups[last]
                last += 1
            if first < row:
                return "shorter"
            group = file.metadata.row_group(last - 1)
            chunks = [group.column(j) for j in range(group.num_columns)]
            end = max(chunk.data_page_offset + chunk.total_compressed_size for chunk in chunks)
            with open(source.path, "rb") as opened:
                opened.seek(max(0, end - MIB))
                return digest(opened.read(min(MIB, end)))

        return Batches(schema, read, tail if source.plain else None, file.close)


def _require_footer(metadata: Any, names: list[str], groups: list[int]) -> None:
    """Refuse a footer that contradicts itself: it has no checksum, but it says some things twice."""
    import pyarrow as pa

    if sum(groups) != metadata.num_rows or min(groups, default=0) < 0:
        raise DataError(f"its footer promises {metadata.num_rows:,} rows and lists {sum(groups):,}")
    written = (metadata.metadata or {}).get(b"ARROW:schema")
    if written is not None and pa.ipc.read_schema(pa.py_buffer(base64.b64decode(written))).names != names:
        raise DataError("its footer has two lists of columns, and they differ")
