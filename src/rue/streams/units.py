"""Units: parts of files that can be read by themselves, on any machine, in any order.

A row group of Parquet is a unit, 8 MiB of text cut at line ends are, and so is each file of any other kind: compressed,
Arrow IPC, a CSV in which quotes hold line ends. Which units there are depends on the files alone, so that all machines
that look agree.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator
from typing import Any

from rue.errors import DataError, SettingsError
from rue.streams.chunk import Chunk
from rue.streams.data import Data
from rue.streams.files.cutting import MAX_LINE, MIB
from rue.streams.files.remote import size_of
from rue.streams.formats import find_source

__all__ = ["UNIT", "Unit", "chunks_of", "digest_of", "units_of"]

UNIT = int(os.environ.get("RUE_UNIT", 8 * MIB))
"""Bytes of text in a unit; tests make it small."""


@dataclasses.dataclass(frozen=True)
class Unit:
    """One file, one table in memory, or a part of a file.

    >>> Unit("clicks.csv", "csv", 8_388_608, 16_777_216).start
    8388608
    """

    path: Any
    """A path, an address, or a table in memory."""
    format: str
    start: int = 0
    """The first byte, or row, that is in it."""
    stop: int | None = None
    """The first one after it; None for all of the file."""
    size: int | None = None
    """How many bytes the file had when it was divided into units; None of a table in memory."""


def units_of(data: Data) -> tuple[Unit, ...]:
    """All units of the files, in order.

    >>> import pandas
    >>> len(units_of(Data((pandas.DataFrame({"y": [0, 1]}), pandas.DataFrame({"y": [1]})), target="y")))
    2
    """
    if data.piped:
        raise SettingsError("a pipe cannot be learnt in shards: give files, which several can read at once.")
    units: list[Unit] = []
    for source in data.sources:
        parts = data.parts(source, UNIT) if source.whole else []
        size = _size(source.path) if isinstance(source.path, str) else None
        ranges: list[tuple[int, int | None]] = [*parts] or [(0, None)]
        units += [Unit(source.path, source.format, start, stop, size) for start, stop in ranges]
    return tuple(units)


def _size(path: str) -> int:
    try:
        return size_of(path)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror}.") from None


def digest_of(units: tuple[Unit, ...]) -> str:
    """A digest of the files' names and sizes and of the units, by which a later run sees whether they are the same.

    >>> digest_of((Unit("a.csv", "csv", 0, 5),)) == digest_of((Unit("a.csv", "csv", 0, 6),))
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    for unit in units:
        named = unit.path if isinstance(unit.path, str) else "table"
        size = size_of(unit.path) if unit.stop is None and isinstance(unit.path, str) else None
        digest.update(f"{named}\0{unit.start}\0{unit.stop}\0{size}\0".encode())
    return digest.hexdigest()


def chunks_of(
    unit: Unit, features: dict[str, Any], separator: str | None = None, max_line: int = MAX_LINE
) -> Iterator[Chunk]:
    """The examples of a unit, read as a model's `features` say: the same chunks whenever and wherever it is read.

    A file that has another size by now is refused, since its line ends are not where they were.
    """
    if unit.size is not None and (now := _size(unit.path)) != unit.size:
        raise DataError(
            f"{unit.path} has {now:,} bytes and had {unit.size:,} when the run began: shards need files that stay as "
            "they are; learn afresh."
        )
    source = find_source(unit.path, unit.format if isinstance(unit.path, str) else None)
    data = Data.like(features, (source,), None, separator, max_line=max_line)
    if unit.stop is not None:
        part = data.part(source, unit.start, unit.stop)
        if part is None:
            return
        data = Data.like(features, (part,), None, separator, max_line=max_line)
    yield from data.reads()
