"""Compiled kernels on disk: one file for each kernel and signature, named by a digest of what it was made from.

Files are written by renaming and there is no index, so that processes cannot mix up each other's code. (Numba's own
cache has an index and numbers its files; two writers at one moment can give different code the same number.)

What is read back is run as machine code. So a folder is used only if no other user can have put a file there: it and
its files belong to this user, neither its group nor others may write to them, and the same holds for every folder above
it, except that those may belong to root, and that a sticky one (`/tmp`) may be open to all. A folder that is refused is
named once in the log `rue` (by default a line on stderr), with the one that is used instead.

A missing, damaged or outdated file only costs time: the kernel is compiled again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]  # it carries no types
import numba
from numba.core import caching, compiler, config, serialize

from rue.compiled.backend import BACK_END

__all__ = ["LEVELS", "PREBUILT", "WITHOUT_KERNELS", "DiskCache", "cache_folder", "levels", "source_digest"]


class DiskCache(caching._Cache):  # type: ignore[misc]  # Numba carries no types
    """The cache of one kernel's dispatcher: Numba asks it for code before it compiles, and hands it the code after."""

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
        file, code = self._file(sig, target_context.codegen()), None
        if file is not None:  # native code first: on a processor with AVX-512 it is 5 % faster than code for v3
            code = self._load(file, _read_own, target_context)
        for level in levels() if code is None else ():  # as trustworthy as the package's sources, whoever owns them
            file = PREBUILT / source_digest() / self._file_name(sig, level)
            code = code or self._load(file, Path.read_bytes, target_context)
        return code

    @staticmethod
    def _load(file: Path, read: Callable[[Path], bytes], target_context: Any) -> Any:
        # Numba's own cache first imports all that compiling may need (0.4 s), which loading does not.
        try:
            stored = read(file)
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
        # A cache that cannot be written costs time at the next start and is no error.
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
        processor = config.CPU_NAME if config.CPU_NAME in LEVELS else codegen.magic_tuple()
        return folder / self._file_name(sig, processor)

    def _file_name(self, sig: Any, processor: Any) -> str:
        key = repr((self._name, str(sig), processor, config.BOUNDSCHECK, config.OPT))
        return f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}"


LEVELS = {
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
}
"""The levels of processors that kernels are prebuilt for, the best first, and the features that each adds."""
WITHOUT_KERNELS = (
    "audit.py",
    "checks.py",
    "cli/",
    "cluster/",
    "exports/",
    "fleets/",
    "games/",
    "models/",
    "proofs/",
    "race/",
    "reports/",
    "river/",
    "serve/",
    "sklearn/",
)
"""Parts of the package that define no compiled code. Imports point downwards, so no kernel can call them either."""
PREBUILT = Path(__file__).parents[1] / "prebuilt"
"""Kernels compiled when the package was built or set up (see `rue.cli.prebuild`)."""


@functools.cache
def levels() -> tuple[str, ...]:
    """The levels of this processor, the best first; none if Numba is set to compile for another one."""
    if config.CPU_NAME is not None or config.CPU_FEATURES:
        return ()
    features, supported = llvm.get_host_cpu_features(), list[str]()
    for level, needed in reversed(LEVELS.items()):
        if not all(features.get(name) for name in needed):
            break
        supported.insert(0, level)
    return tuple(supported)


@functools.cache
def source_digest() -> str:
    """The name of a folder of kernels: a digest of the sources that kernels are made of, Numba's version and Python's.

    Numba's own cache looks at the kernel's file alone, so that after an edit of a loss the old slope would run on. Left
    out are `WITHOUT_KERNELS`, so that after an edit of a command or a report nothing is compiled again.
    """
    compiler_and_python = numba.__version__, BACK_END, sys.implementation.cache_tag, sys.platform
    digest = hashlib.sha256(repr(compiler_and_python).encode())
    root = Path(__file__).parents[1]
    for source in sorted(file for file in root.rglob("*.py") if file.is_file()):  # an editor's lock is a dangling link
        name = source.relative_to(root).as_posix()
        if not name.startswith(WITHOUT_KERNELS):
            digest.update(name.encode() + b"\0" + source.read_bytes())
    return f"kernels-{digest.hexdigest()[:16]}"


@functools.cache
def cache_folder() -> Path | None:
    """The folder of compiled kernels, created if need be, or None when no place can be written.

    It is named by `source_digest`. `RUE_CACHE_DIR` chooses the place; otherwise it is the user's cache folder, and
    where that cannot be written, or others may write to it, a folder of the user's own among the temporary files.
    """
    name, refused, folder = source_digest(), [], None
    for place in _places():
        try:
            folder = _prepared(place, name)
            break
        except _Refused as error:
            refused.append(str(error))
        except OSError:  # it cannot be written; where it was asked for, there is no other
            if place == _chosen():
                break
    if refused:
        _warn(refused[0], folder)
    return folder


class _Refused(Exception):
    """A place into which another user could have put a file; says why."""


def _prepared(place: Path, name: str) -> Path:
    """The folder for kernels in a place, created if need be; its path has no links, which could be changed later."""
    place = Path(os.path.realpath(place))
    _require_safe(place)
    for missing in reversed([folder for folder in (place, *place.parents) if not folder.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    folder = place / name
    folder.mkdir(mode=0o700, exist_ok=True)
    _require_safe(folder, private=True)
    tempfile.TemporaryFile(dir=folder).close()
    os.utime(folder)
    _remove_old(place, keep=8)
    return folder


def _require_safe(path: Path, private: bool = False) -> None:
    """Refuse a path on which another user could change something; `private` if it must be this user's alone."""
    if not hasattr(os, "getuid"):
        return
    for part in (*reversed(path.parents), path):
        try:
            status = os.lstat(part)
        except FileNotFoundError:
            return
        strictly = private and part == path
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(part)
        if status.st_uid != os.getuid() and (strictly or status.st_uid != 0):
            raise _Refused(f"{part} belongs to another user")
        if status.st_mode & _WRITABLE and (strictly or not status.st_mode & stat.S_ISVTX):
            raise _Refused(f"others may write to {part}")


_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def _read_own(file: Path) -> bytes:
    """The content of a regular file that only this user can have written; OSError for any other."""
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as opened:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_mode & _WRITABLE or status.st_uid != os.getuid():
            raise PermissionError(f"others may have written {file}")
        return opened.read()


def _warn(why: str, used: Path | None) -> None:
    """Log once that a place was refused, and which is used instead."""
    import logging

    then = f"they are kept in {used}" if used is not None else "every process compiles them again"
    logging.getLogger("rue").warning(
        "rue: compiled kernels are read back only from folders that nobody else can write to, but %s: %s "
        "(RUE_CACHE_DIR chooses another place).",
        why,
        then,
    )


def _chosen() -> Path | None:
    chosen = os.environ.get("RUE_CACHE_DIR")
    return Path(chosen) if chosen else None


def _places() -> list[Path]:
    """The places to try, in order: each is used when the ones before it are refused or cannot be written."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    places = [chosen] if (chosen := _chosen()) else []
    with contextlib.suppress(RuntimeError):  # no home directory
        cache = os.environ.get("XDG_CACHE_HOME")
        places.append((Path(cache) if cache else Path.home() / ".cache") / "rue")
    with contextlib.suppress(OSError):  # nowhere to put temporary files
        places.append(Path(tempfile.gettempdir()) / f"rue-{user}")
    return places


def _remove_old(place: Path, keep: int) -> None:
    """Remove the kernels of all but the latest few versions of the sources."""
    with contextlib.suppress(OSError):
        own = [(folder.lstat(), folder) for folder in place.glob("kernels-*")]
        if hasattr(os, "getuid"):  # in a sticky folder others may have some too, or links
            own = [(status, folder) for status, folder in own if status.st_uid == os.getuid()]
        own = [(status, folder) for status, folder in own if stat.S_ISDIR(status.st_mode)]
        own.sort(key=lambda item: item[0].st_mtime, reverse=True)
        for _, folder in own[keep:]:
            for file in folder.iterdir():
                file.unlink(missing_ok=True)
            folder.rmdir()
