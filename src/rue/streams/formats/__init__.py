"""File formats, a file each; which of them a path has."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from rue.errors import DataError, SettingsError, UnknownName, shown
from rue.registry import import_modules, registered
from rue.streams.files.remote import is_remote
from rue.streams.files.sources import Source
from rue.streams.files.unpacking import PACKED
from rue.streams.formats.base import Example, Format, TableFormat, TextFormat

__all__ = ["Example", "Format", "TableFormat", "TextFormat", "find_source", "formats", "has_known_suffix"]


@functools.cache
def _import_all() -> None:
    """Import every module of this folder, which registers its format; when first needed, for it takes 30 ms."""
    import_modules(__name__, __path__)


def formats() -> dict[str, type[Format]]:
    """All formats by name, in the order in which messages list them: text, then tables of text, then other tables.

    >>> ", ".join(formats())
    'svmlight, vw, csv, jsonl, parquet, ipc'
    """
    _import_all()

    def order(item: tuple[str, Any]) -> tuple[bool, bool, bool, str]:
        name, format_ = item
        return format_.tabular, format_.counts_rows, not format_.needs_file, name

    return dict(sorted(registered("format").items(), key=order))


def find_source(path: Any, format_name: str | None = None) -> Source:
    """A path with its format, by the name given or by its suffixes.

    >>> find_source("clicks.csv.gz")
    Source(path='clicks.csv.gz', format='csv', packed='.gz', rows=None)
    """
    if isinstance(path, Source):
        return path
    if not isinstance(path, str):
        return Source(path, "table")
    suffix, packed = _suffixes(path) if path != "-" else ("", "")
    names = ", ".join(formats())
    if format_name is not None:
        if format_name not in formats():
            raise UnknownName(f"there is no format {shown(format_name)}: the formats are {names}.")
        return Source(path, format_name, packed)
    if path == "-":
        raise SettingsError(f"say what comes through the pipe with --format, one of {names}, for example --format csv.")
    for name, format_ in formats().items():
        if suffix and suffix in format_.suffixes:
            return Source(path, name, packed)
    raise DataError(f"{path}: the suffix tells no format: say it with --format, one of {names}.")


def has_known_suffix(path: str) -> bool:
    """Whether a file's suffixes say what is in it."""
    suffix = _suffixes(path)[0]
    return bool(suffix) and any(suffix in format_.suffixes for format_ in formats().values())


def _suffixes(path: str) -> tuple[str, str]:
    """The last suffix, and that of the packing after it; "" for each that is not there."""
    name = path.partition("?")[0] if is_remote(path) else path  # options may follow an address
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in PACKED else ""
    return (suffixes[-1] if suffixes else ""), packed
