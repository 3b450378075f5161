"""`Data`: files of any format as one stream of chunks, and what its features are called."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

from rue.errors import DataError, SettingsError
from rue.streams.base import Block
from rue.streams.files import (
    MIB,
    Job,
    Patient,
    Piece,
    Place,
    Read,
    Source,
    Spot,
    Until,
    digest,
    format_of,
    open_bytes,
    read_ahead,
    skip,
    text_pieces,
)
from rue.streams.names import Names

__all__ = ["Data"]


@dataclasses.dataclass
class Data:
    """One stream made of files; for tables, the columns and what they mean."""

    paths: tuple[str, ...]
    told: str | None = None
    """The format, where suffixes do not tell it."""
    target: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    separator: str | None = None
    bits: int = 20
    columns: Any = None
    """How the columns of a table become features, settled by the first file or by a model."""
    names: Names = dataclasses.field(default_factory=Names)
    """What slots are called, of the first features that have a name."""

    def __post_init__(self) -> None:
        if not self.paths:
            raise SettingsError("name the data: one file or several, or - for a pipe.")
        if "-" in self.paths and len(self.paths) > 1:
            raise SettingsError("a pipe (-) cannot be one of several files.")
        self.sources = [format_of(path, self.told) for path in self.paths]
        formats = {source.format for source in self.sources}
        if len(formats) > 1:
            raise DataError(
                f"the files are of different formats ({', '.join(sorted(formats))}): learn them one by one."
            )
        self.format = formats.pop()
        if self.tabular and self.target is None and self.columns is None:
            raise SettingsError("say which column to predict: --target NAME, or -1 for the last.")
        if not self.tabular and (self.target or self.weight or self.drop or self.category or self.separator):
            raise SettingsError(
                f"--target, --weight, --drop, --category and --separator are for tables, not {self.format}."
            )

    @classmethod
    def like(
        cls,
        features: dict[str, Any],
        paths: tuple[str, ...],
        told: str | None = None,
        separator: str | None = None,
        names: dict[int, str] | None = None,
    ) -> Data:
        """Other data read in the way that a model was learnt."""
        columns = None
        if features.get("columns") is not None:
            from rue.streams.columns import Columns

            columns = Columns.from_dict(features["columns"])
        made = cls(
            paths,
            told,
            separator=separator,
            bits=int(features.get("bits", 20)),
            columns=columns,
            names=Names((names or {}).items()),
        )
        kind = features.get("kind", "table" if made.tabular else made.format)
        if (kind == "table") != made.tabular:
            raise DataError(f"the model was learnt from {kind} data, but {paths[0]} is {made.format}.")
        return made

    @property
    def tabular(self) -> bool:
        return self.format in ("csv", "jsonl", "parquet", "ipc")

    @property
    def size(self) -> int | None:
        """The bytes of all files together, if that tells how far reading has come."""
        if any(source.path == "-" or source.packed for source in self.sources) or self.format in ("parquet", "ipc"):
            return None
        try:
            return sum(os.path.getsize(path) for path in self.paths)
        except OSError:
            return None

    def share(self, place: Place) -> float | None:
        """How much has been read."""
        if not self.size:
            return None
        return (sum(os.path.getsize(path) for path in self.paths[: place.file]) + place.offset) / self.size

    def reads(
        self, stop: threading.Event | None = None, after: Place | None = None, labelled: bool = True
    ) -> Iterator[Read]:
        """The chunks after a place, in order, parsed ahead."""
        stop, after = stop or threading.Event(), after or Place()
        for read in read_ahead(partial(self._jobs, after, labelled), stop):
            self.names.add(read.chunk.names)
            yield read

    def blocks(self) -> Iterator[Block]:
        """The examples alone; a bad row stops."""
        for read in self.reads():
            if read.chunk.bad:
                bad = read.chunk.bad[0]
                raise DataError(f"{read.name}, line {bad.line}: {bad.why}.")
            yield read.chunk.block

    def _jobs(self, after: Place, labelled: bool, stop: Until) -> Iterator[Job]:
        for i, source in enumerate(self.sources[after.file :], after.file):
            place = after if i == after.file else Place(i)
            if source.path != "-":
                open_bytes(source).close()
            yield from (
                self._of_table(source, place, labelled, stop) if self.tabular else self._of_text(source, place, stop)
            )

    def _of_text(self, source: Source, place: Place, stop: Until) -> Iterator[Job]:
        parser = self._parser()
        for piece in text_pieces(source, place.offset, place.line, stop):
            asked = (None if self.names.full() else self.names,) if self.format == "vw" else ()
            job = partial(parser.parse, piece.data, piece.first_line, *asked)
            yield job, source.name, _spot(place.file, piece), partial(_before, place.file, piece)

    def _parser(self) -> Any:
        if self.format == "vw":
            from rue.streams.vw import VW

            return VW(self.bits)
        from rue.streams.svmlight import Svmlight

        return Svmlight()

    def _of_table(self, source: Source, place: Place, labelled: bool, stop: Until) -> Iterator[Job]:
        from rue.streams.columns import plan
        from rue.streams.tables import Position, open_table

        named = {"ipc": "arrow"}.get(self.format, self.format)
        text = self.format in ("csv", "jsonl")
        file = Patient(open_bytes(source)) if source.path == "-" else open_bytes(source) if text else source.path
        table = open_table(file, named, separator=self.separator)
        if self.columns is None:
            self.columns = plan(
                table.schema,
                target=self.target,
                weight=self.weight,
                drop=self.drop,
                category=self.category,
                bits=self.bits,
            )
        self.columns.require(table.schema.names, labelled)
        start = Position(place.offset, place.line) if place.offset else None
        for piece in table.pieces(start):
            if stop.is_set():
                return
            names = False if self.names.full() else self.names
            job = partial(table.chunk, piece, self.columns, labels=labelled, names=names)
            yield job, source.name, _row(place.file, piece.end), partial(_before_row, place.file, piece)

    def describe(self) -> dict[str, Any]:
        """What a model must know of it to read other data in the same way."""
        kind = "table" if self.tabular else self.format
        columns = None if self.columns is None else self.columns.to_dict()
        return {"kind": kind, "bits": self.bits, "columns": columns}

    def tail_before(self, place: Place) -> str:
        """A digest of the last MiB before a place, as `Spot.tail` makes it."""
        source = self.sources[place.file]
        if place.offset == 0 or self.tabular:
            return ""
        with open_bytes(source) as file:
            skip(file, source, max(0, place.offset - MIB))
            data = file.read(min(MIB, place.offset))
        return digest(data) if len(data) == min(MIB, place.offset) else "shorter"

    def heads(self, place: Place) -> list[str]:
        """A digest of the first MiB of each file, as far as it lies before a place."""
        found = []
        for i, source in enumerate(self.sources[: place.file + 1]):
            if source.path == "-":
                found.append("")
                continue
            most = MIB if i < place.file or self.format in ("parquet", "ipc") else min(MIB, place.offset)
            with open_bytes(source) as file:
                found.append(digest(file.read(most)))
        return found


def _spot(file: int, piece: Piece) -> Spot:
    return Spot(Place(file, piece.end, piece.end_line), piece.tail)


def _before(file: int, piece: Piece, line: int) -> Spot:
    return _spot(file, piece.before_line(line))


def _row(file: int, position: Any) -> Spot:
    return Spot(Place(file, position.offset, position.line), lambda: "")


def _before_row(file: int, piece: Any, line: int) -> Spot:
    """The spot before a line of a table's piece: of text by its bytes, of batches by its row."""
    if not isinstance(piece.data, bytes):
        return Spot(Place(file, line - 1, line - 1), lambda: "")
    cut = 0
    for _ in range(line - 1 - piece.start.line):
        cut = piece.data.index(b"\n", cut) + 1
    return Spot(Place(file, piece.start.offset + cut, line - 1), lambda: "")
