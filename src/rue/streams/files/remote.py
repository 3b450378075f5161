"""Files that are not on this machine: s3://, gs://, hdfs:// and whatever else pyarrow or fsspec can open."""

from __future__ import annotations

import os
import re
from typing import Any

from rue.errors import DataError

__all__ = ["files_below", "is_remote", "open_remote", "size_of"]

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://")


def is_remote(path: Any) -> bool:
    """Whether a path is an address with a scheme.

    >>> is_remote("s3://bucket/clicks.csv"), is_remote("clicks.csv")
    (True, False)
    """
    return isinstance(path, str) and _SCHEME.match(path) is not None


def open_remote(path: str) -> Any:
    """A file at an address, as a binary file that can be read from any place."""
    filesystem, inner = _located(path)
    try:
        return filesystem.open_input_file(inner)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}.") from None
    except Exception as error:  # each file system has errors of its own
        raise _failure(path, error) from error


def size_of(path: str) -> int:
    """How many bytes a file has, here or at an address."""
    if not is_remote(path):
        return os.path.getsize(path)
    return int(_info(path).size)


def files_below(path: str) -> list[str] | None:
    """The addresses of the files in and below a folder, sorted; None if the address is no folder.

    Those whose name, or a folder's on the way, begins with a dot or an underscore are left out.
    """
    from pyarrow import fs

    if _info(path).type != fs.FileType.Directory:
        return None
    filesystem, inner = _located(path)
    found = filesystem.get_file_info(fs.FileSelector(inner, recursive=True))
    start = len(inner.rstrip("/")) + 1
    inside = sorted(info.path[start:] for info in found if info.type == fs.FileType.File)
    shown = [name for name in inside if not any(part[0] in "._" for part in name.split("/"))]
    base, _, options = path.partition("?")
    return [f"{base.rstrip('/')}/{name}{'?' * bool(options)}{options}" for name in shown]


def _info(path: str) -> Any:
    from pyarrow import fs

    filesystem, inner = _located(path)
    try:
        info = filesystem.get_file_info(inner)
    except Exception as error:  # each file system has errors of its own
        raise _failure(path, error) from error
    if info.type == fs.FileType.NotFound:
        raise DataError(f"there is no file {path}.")
    return info


def _located(path: str) -> tuple[Any, str]:
    """The file system of an address, of pyarrow or of fsspec, and the path in it."""
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(path)  # type: ignore[no-any-return]
    except Exception as error:  # each file system has errors of its own
        other = error
    try:
        import fsspec
    except ImportError:
        raise _failure(path, other) from other
    try:
        filesystem, inner = fsspec.core.url_to_fs(path)
    except Exception:  # the error of pyarrow is the one about the address
        raise _failure(path, other) from other
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem)), inner


def _failure(path: str, error: Exception) -> DataError:
    why = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return DataError(f"{path} cannot be opened: {why[:300]}.")
