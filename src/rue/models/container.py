"""One file of arrays and JSON: safetensors with a digest, written whole or not at all, read without trust.

What is read is looked at before it is believed: sizes before memory is taken, and a digest of everything before any of
it is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from typing import Any

import numpy as np

from rue.errors import DataError, SettingsError
from rue.models.settings import read_json, write_json
from rue.outputs import write_file
from rue.version import __version__

__all__ = [
    "FORMAT",
    "OLDEST",
    "errors_as_damage",
    "pack_container",
    "read_container",
    "unpack_container",
    "write_container",
]

FORMAT = 7
"""The number of the layout of the file; raised when an older rue could not read it."""
OLDEST = 1
"""The oldest layout that is still read.

Not yet in format 1: the course of the members; in 2: metrics and frozen copies; in 3: windows, intervals and alarms;
in 5: frozen copies of several classes; in 6: frozen copies of their stages."""

LONGEST = 32 * 2**20
"""Bytes of a header: a model's are some kilobytes."""

_MOST = 4096
"""Arrays in a file: each of up to 64 members has a dozen."""
_DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "U8": np.uint8, "U32": np.uint32, "U64": np.uint64}


@contextlib.contextmanager
def errors_as_damage(path: str, what: str) -> Iterator[None]:
    """Say in one sentence, as a `DataError`, that a file is damaged or not `what`, whatever its content makes fail.

    >>> with errors_as_damage("m.rue", "not a model"):
    ...     {}["learner"]
    Traceback (most recent call last):
    rue.errors.DataError: m.rue is damaged, or not a model that this rue can read: it has no 'learner'.
    """
    try:
        yield
    except KeyError as error:
        why = f"it has no {str(error)[:40]}"
        raise DataError(f"{path} is damaged, or {what} that this rue can read: {why}.") from error
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        why = str(error)[:300].rstrip(".")
        raise DataError(f"{path} is damaged, or {what} that this rue can read: {why}.") from error


def write_container(path: str | os.PathLike[str], head: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write JSON and arrays as `rue.outputs` writes every file: whole, or what was there stays."""
    write_file(path, pack_container(head, arrays))


def pack_container(head: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """The bytes of such a file.

    >>> unpack_container(pack_container({"format": FORMAT}, {"w": np.ones(2)}))[1]["w"]
    array([1., 1.])
    """
    from safetensors.numpy import save

    text = write_json(head)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    arrays["digest"] = _digest(text, arrays)
    content = save(arrays, {"rue": text})
    if int.from_bytes(content[:8], "little") > LONGEST:
        raise SettingsError(f"the settings and the history take {len(text):,} bytes: more than a model file can hold.")
    return bytes(content)


def unpack_container(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON and the arrays of `pack_container`, from this machine or another; damage is one DataError."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        length = int.from_bytes(content[:8], "little")
        if not 2 <= length <= min(LONGEST, len(content) - 8):
            raise DataError("they are cut off, or they never were one")
        text = json.loads(content[8 : 8 + length])["__metadata__"]["rue"]
        head = read_json(text)
        _require_format(head)
        arrays = load(content)
    except (DataError, SafetensorError, LookupError, MemoryError, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"the bytes are not a model that can be read: {str(error)[:300].rstrip('.')}.") from error
    if not np.array_equal(arrays.pop("digest", np.empty(0)), _digest(text, arrays)):
        raise DataError("the bytes of the model are damaged: they do not fit their digest.")
    return head, arrays


def read_container(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON and the arrays; a file that is missing, cut, damaged, foreign or newer is one DataError."""
    from safetensors import SafetensorError, safe_open

    try:
        _require_header(path)
        with safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get("rue")
            if text is None:
                raise DataError("it is a safetensors file, but not of a model of rue's")
            head = read_json(text)
            _require_format(head)
            names = sorted(file.keys())
            if len(names) > _MOST or any(file.get_slice(name).get_dtype() not in _DTYPES for name in names):
                raise DataError("it holds arrays that no model has")
            arrays = {name: file.get_tensor(name) for name in names}
    except OSError as error:
        raise DataError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}.") from error
    except (DataError, SafetensorError, LookupError, MemoryError, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"{path} is not a model that can be read: {str(error)[:300].rstrip('.')}.") from error
    digest = arrays.pop("digest", np.empty(0))
    if not np.array_equal(digest, _digest(text, arrays)):
        raise DataError(f"{path} is damaged: its content does not fit its digest; take an earlier copy of it.")
    return head, arrays


def _require_header(path: str | os.PathLike[str]) -> None:
    """Refuse what cannot be safetensors before any of it is read or mapped; a pipe would block, a device never end."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise DataError("it is a folder" if stat.S_ISDIR(status.st_mode) else "it is not a regular file")
    with open(path, "rb") as file:
        start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    if len(start) < 9 or start[8:] != b"{":
        raise DataError("it does not begin as a model file does")
    if not 2 <= length <= min(LONGEST, status.st_size - 8):
        raise DataError("it is cut off, or it never was one")


def _require_format(head: Any) -> None:
    version = head.get("format") if isinstance(head, dict) else None
    if type(version) is not int:
        raise DataError("it does not say which format it has")
    if version > FORMAT:
        maker = str(head.get("rue"))[:20]
        raise DataError(
            f"it was made by a newer rue ({maker}, format {version}) and this is rue {__version__}, which reads "
            f"formats {OLDEST} to {FORMAT}: update rue"
        )
    if version < OLDEST:
        raise DataError(f"it has format {version}, and rue {__version__} reads formats {OLDEST} to {FORMAT}")


def _digest(text: str, arrays: dict[str, Any]) -> Any:
    """Of the JSON and of every array with its name, type and shape."""
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\0{name} {array.dtype.str} {array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return np.frombuffer(digest.digest(), dtype=np.uint8)
