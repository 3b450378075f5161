"""Compiled kernels on disk: one file for each kernel and signature, named by what it was made from.

Files are written by renaming and there is no index, so that processes cannot mix up each other's code. (Numba's own
cache keeps an index and numbers its files; two writers at one moment can give different code the same number.)
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]  # it carries no types
import numba
from numba.core import caching, compiler, config, serialize

from rue._backend import BACK_END

__all__ = ["LEVEL", "PREBUILT", "DiskCache", "cache_folder", "has_level", "source_digest"]


class DiskCache(caching._Cache):  # type: ignore[misc]  # Numba carries no types
    """What a Numba dispatcher asks before it compiles, and tells after."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        folder = cache_folder()
        return str(folder) if folder else None

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        folder = cache_folder()
        for file in folder.glob(f"{self._name}-*") if folder else ():
            file.unlink(missing_ok=True)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._enabled:
            return None
        found = self._load(self._file(sig, target_context.codegen()), target_context)
        if found is None and has_level():
            found = self._load(PREBUILT / source_digest() / self._file_name(sig, LEVEL), target_context)
        return found

    def _load(self, file: Path | None, target_context: Any) -> Any:
        if file is None:
            return None
        # Numba's own cache first imports all that compiling may need, 0.4 s: what is compiled needs nothing of it.
        try:
            stored = file.read_bytes()
            digest, payload = stored[:32], stored[32:]
            if hashlib.sha256(payload).digest() != digest:
                return None
            return compiler.CompileResult._rebuild(target_context, *pickle.loads(payload))
        except Exception:  # a missing or damaged file only means that the kernel is compiled again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        file = self._file(sig, data.codegen)
        if file is None or not self._enabled:
            return
        payload = serialize.dumps(data._reduce())
        # A cache that cannot be written is a slower start, not an error.
        with contextlib.suppress(OSError):
            handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".writing-")
            try:
                with os.fdopen(handle, "wb") as out:
                    out.write(hashlib.sha256(payload).digest() + payload)
                os.replace(temporary, file)
            except OSError:
                os.unlink(temporary)

    def _file(self, sig: Any, codegen: Any) -> Path | None:
        folder = cache_folder()
        if folder is None:
            return None
        processor = LEVEL if config.CPU_NAME == LEVEL else codegen.magic_tuple()
        return folder / self._file_name(sig, processor)

    def _file_name(self, sig: Any, processor: Any) -> str:
        key = repr((self._name, str(sig), processor, config.BOUNDSCHECK, config.OPT))
        return f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}"


LEVEL = "x86-64-v3"
"""What prebuilt kernels are compiled for: x86-64 processors since 2013, with AVX2 and FMA."""
PREBUILT = Path(__file__).parent / "prebuilt"
"""Kernels compiled when the package was built or set up (see `rue._prebuild`)."""

_FEATURES = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")


@functools.cache
def has_level() -> bool:
    """Whether this processor runs code of `LEVEL`."""
    features = llvm.get_host_cpu_features()
    return all(features.get(name) for name in _FEATURES)


@functools.cache
def source_digest() -> str:
    """The name of a folder of kernels: a digest of every source file of the package, Numba's version and Python's."""
    made_by = numba.__version__, BACK_END, sys.implementation.cache_tag, sys.platform
    digest = hashlib.sha256(repr(made_by).encode())
    root = Path(__file__).parent
    for source in sorted(file for file in root.rglob("*.py") if file.is_file()):  # an editor's lock is a dangling link
        digest.update(source.relative_to(root).as_posix().encode() + b"\0" + source.read_bytes())
    return f"kernels-{digest.hexdigest()[:16]}"


@functools.cache
def cache_folder() -> Path | None:
    """Where compiled kernels are kept, or None when no place can be written.

    The folder is named by a digest of every source file of the package, of Numba's version and of Python's, so an
    edited `losses.py` never meets machine code made from the old one. `RUE_CACHE_DIR` chooses the place; otherwise it
    is the user's cache folder, and where that cannot be written a folder of the user's own among the temporary files.
    """
    name = source_digest()
    for place in _places():
        folder = place / name
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            if not (_own(place) and _own(folder)):
                continue  # compiled code is read back from here: never from a folder of someone else's
            tempfile.TemporaryFile(dir=folder).close()
            os.utime(folder)
        except OSError:
            continue
        _forget_old(place, keep=8)
        return folder
    return None


def _places() -> list[Path]:
    if chosen := os.environ.get("RUE_CACHE_DIR"):
        return [Path(chosen)]
    user = os.getuid() if hasattr(os, "getuid") else "user"
    places = []
    with contextlib.suppress(RuntimeError):  # no home directory
        cache = os.environ.get("XDG_CACHE_HOME")
        places.append((Path(cache) if cache else Path.home() / ".cache") / "rue")
    with contextlib.suppress(OSError):  # nowhere to put temporary files
        places.append(Path(tempfile.gettempdir()) / f"rue-{user}")
    return places


def _own(folder: Path) -> bool:
    return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()


def _forget_old(place: Path, keep: int) -> None:
    """Remove the kernels of all but the latest few versions of the sources."""
    with contextlib.suppress(OSError):
        folders = sorted(place.glob("kernels-*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
        for folder in folders[keep:]:
            for file in folder.iterdir():
                file.unlink(missing_ok=True)
            folder.rmdir()
