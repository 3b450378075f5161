"""Every file that a user asks rue to write goes through here; the cache of compiled kernels does not.

A regular file is replaced whole or not at all: the content goes to a temporary file in the same folder, then to the
disk, and then takes the file's name. A symbolic link stays one, and the file it leads to is replaced. What is no
regular file (a pipe, a device, a socket, `/dev/stdout`, `/dev/fd/3`) is written into as it is.

A temporary file is called `.NAME.<16 hexadecimal digits>.part`, after the name of the file it is to become. It is
removed if writing fails. It is left behind by a process that is killed, and where a checkpoint refers to it, for
`--resume` to continue.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     write_file(f"{folder}/a.txt", b"one")
...     write_file(f"{folder}/a.txt", b"two")
...     Path(folder, "a.txt").read_bytes(), os.listdir(folder)
(b'two', ['a.txt'])
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rue._startup import cleanups
from rue.errors import DataError, SettingsError

__all__ = [
    "Output",
    "require_distinct",
    "require_not_read",
    "require_standard_output",
    "require_writable",
    "sync_folder",
    "write_file",
]

Target = str | os.PathLike[str]

_TEMPORARY = re.compile(r"\.[^/\0]{1,50}\.[0-9a-f]{16}\.part")


def write_file(path: Target, content: bytes) -> None:
    """Write a whole file; if that fails, the old one stays as it was."""
    output = Output(path)
    try:
        output.write(content)
        output.finish()
    except BaseException:
        output.abandon()
        raise


class Output:
    """One output while it is written: `write` as often as needed, then `finish`, or `abandon`.

    `resumed` continues the temporary file of an earlier process: its name (None for the name of the target
    with `.part` after it, as earlier versions called it) and the length to cut it back to. Where it no longer exists,
    because it has become the target in the meantime, the target's beginning is copied.
    """

    def __init__(self, path: Target, resumed: tuple[str | None, int] | None = None) -> None:
        self.path = path
        self.failed = False
        """Whether a write failed: the content is not complete, and the caller should `abandon` it."""
        self.keep = False
        """Whether `abandon` leaves the temporary file, because a checkpoint refers to it."""
        self.temporary: Path | None = None
        """The temporary file; None where the target is written into directly."""
        self.target = Path(os.path.realpath(path))
        _unfinished.add(self)
        try:
            with self._errors():
                handle = _open_special(path)
                if handle is None:
                    handle = self._create() if resumed is None else self._continue(*resumed)
                self.file = os.fdopen(handle, "wb")
        except BaseException:
            _remove_temporary(self)
            raise

    def _create(self) -> int:
        """A temporary file under a new name, with the rights of the file it is to replace."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        name = f".{self.target.name[:50]}.{os.urandom(8).hex()}.part"
        old = _stat(self.target)
        # In the folder of the target, since a file can be renamed within one file system only. With O_EXCL and
        # O_NOFOLLOW a link that another user has put there is not followed. Rights are narrow until they are those
        # of the old file.
        handle = os.open(self.target.with_name(name), flags, 0o666 if old is None else 0o600)
        self.temporary = self.target.with_name(name)
        if old is not None:
            with contextlib.suppress(PermissionError):
                os.fchown(handle, old.st_uid, old.st_gid)
            os.fchmod(handle, stat.S_IMODE(old.st_mode))
        _lock(handle)
        return handle

    def _continue(self, name: str | None, length: int) -> int:
        """The temporary file of an earlier process, cut back to the length that its checkpoint names."""
        if name is not None and not _TEMPORARY.fullmatch(name):
            raise DataError(f"{self.path}: the checkpoint names {name[:80]!r}, which is no temporary file of rue's.")
        temporary = self.target.with_name(f"{self.target.name}.part" if name is None else name)
        missing = f"{temporary} is not what the checkpoint left: it must hold {length:,} bytes."
        try:
            handle = os.open(temporary, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:  # it took its name before the process was killed
            return self._copy(length, missing)
        self.temporary, self.keep = temporary, True
        try:
            if not _lock(handle):
                raise DataError(f"{temporary} is being written by another process: let it end first.")
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size < length:
                raise DataError(missing)
            os.ftruncate(handle, length)
            os.lseek(handle, 0, os.SEEK_END)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _copy(self, length: int, missing: str) -> int:
        """A new temporary file that begins with the first bytes of the target, or the error `missing`."""
        try:
            source = open(self.target, "rb")  # noqa: SIM115
        except FileNotFoundError:
            raise DataError(missing) from None
        with source:
            if os.fstat(source.fileno()).st_size < length:
                raise DataError(missing)
            handle = self._create()
            while length:
                part = source.read(min(length, 2**20))
                length -= len(part)
                _write(handle, part)
        return handle

    def write(self, content: bytes) -> None:
        """Write bytes; a pipe or a device gets them at once."""
        with self._errors():
            self.file.write(content)
            if self.temporary is None:
                self.file.flush()

    def length(self) -> int | None:
        """How many bytes are safely on the disk; None where there is no temporary file to continue."""
        with self._errors():
            self.file.flush()
            if self.temporary is None:
                return None
            os.fsync(self.file.fileno())
            return os.fstat(self.file.fileno()).st_size

    def finish(self) -> None:
        """Give the file its name, once all of it is on the disk."""
        with self._errors():
            self.length()
            if self.temporary is not None:
                # The content is on the disk by now (`length`): after a crash the name leads to the old file or the
                # new one, whole.
                os.replace(self.temporary, self.target)
                self.temporary = None
                sync_folder(self.target.parent)
            self.file.close()
        _unfinished.discard(self)

    def abandon(self) -> None:
        """Give up: remove the temporary file, unless a checkpoint refers to it."""
        _remove_temporary(self)
        with contextlib.suppress(OSError):
            self.file.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turns errors of the system into one sentence of ours."""
        try:
            yield
        except OSError as error:
            self.failed = True
            folder = self.target.parent
            why = (error.strerror or str(error)).lower()
            why = why if os.path.exists(folder) else f"there is no folder {folder}"
            raise DataError(f"{self.path} cannot be written: {why}.") from error


_unfinished: set[Output] = set()
"""Outputs whose temporary files are to be removed should the process be stopped."""


def _remove_temporary(output: Output) -> None:
    _unfinished.discard(output)
    if output.temporary is not None and not output.keep:
        output.temporary.unlink(missing_ok=True)


def _remove_all() -> None:
    for output in list(_unfinished):
        _remove_temporary(output)


cleanups.append(_remove_all)


def _open_special(path: Target) -> int | None:
    """A pipe, device or socket, opened for writing; None for a regular file or a name not in use."""
    number = _descriptor(path)
    if number is not None:
        return os.dup(number)
    status = _stat(path)
    if status is None or stat.S_ISREG(status.st_mode):
        return None
    if stat.S_ISDIR(status.st_mode):
        raise OSError(0, "it is a folder")
    if stat.S_ISSOCK(status.st_mode):
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
            connection.connect(os.fspath(path))
            return os.dup(connection.fileno())
    return os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)


def _descriptor(path: Target) -> int | None:
    """The number of the descriptor of this process that a path names, as /dev/stdout and /dev/fd/3 do, or None.

    They are duplicated, not opened by name: opened again, a regular file would be written from its start.
    """
    own, name = os.path.realpath("/proc/self/fd"), os.fspath(path)
    for _ in range(40):  # as many links as the system follows
        folder, last = os.path.split(name)
        if last.isdigit() and os.path.realpath(folder or ".") == own:
            return int(last)
        if not os.path.islink(name):
            return None
        name = os.path.join(folder, os.readlink(name))
    return None


def _lock(handle: int) -> bool:
    """Lock a file until it is closed; False if another process has done so. Some file systems have no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _stat(path: Target) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _write(handle: int, content: bytes) -> None:
    """Write all bytes; the system may take some at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


def sync_folder(folder: Path) -> None:
    """Have a folder's list of names on the disk, so that a file keeps its new name if the power fails."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Before a run: can it be written, and does it replace what it must not?


def require_writable(*paths: Target | None) -> None:
    """Refuse what cannot be written, before hours of learning and not after."""
    for path in paths:
        if path is None:
            continue
        folder = Path(os.path.realpath(path)).parent
        why = ""
        try:
            number, status = _descriptor(path), _stat(path)
        except OSError as error:
            raise DataError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}.") from None
        if number is not None:
            why = "" if _is_open_for_writing(number) else f"descriptor {number} is not open for writing"
        elif status is not None and stat.S_ISDIR(status.st_mode):
            why = "it is a folder"
        elif status is not None and not stat.S_ISREG(status.st_mode):
            why = "" if os.access(path, os.W_OK) else "permission denied"
        elif not folder.is_dir():
            why = f"there is no folder {Path(path).parent}"
        elif not os.access(folder, os.W_OK):
            why = f"nothing may be written in {folder}"
        if why:
            raise DataError(f"{path} cannot be written: {why}.")


def require_standard_output() -> None:
    """Refuse to write a result to a standard output that is closed."""
    if not _is_open_for_writing(1):
        raise DataError("standard output is closed: name a file with -o.")


def _is_open_for_writing(number: int) -> bool:
    try:
        return fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except OSError:
        return False


def require_distinct(outputs: Mapping[str, Target | None]) -> None:
    """Refuse two outputs in one file; `outputs` maps options to paths. Standard output and error count as outputs."""
    seen: dict[tuple[int | str, ...], str] = {}
    for number, name in ((1, "standard output"), (2, "standard error")):
        identity = _identity_of_descriptor(number)
        if identity is not None:
            seen[identity] = name
    for option, path in outputs.items():
        if path is None or _descriptor(path) is not None:
            continue
        identity = _identity(path)
        if identity is None:
            continue
        if identity in seen:
            raise SettingsError(f"{option} {path} is the same file as {seen[identity]}: give each a file of its own.")
        seen[identity] = f"{option} {path}"


def require_not_read(outputs: Mapping[str, Target | None], inputs: Iterable[Target]) -> None:
    """Refuse an output that is also read, under whatever name; `-` is standard input."""
    read: dict[tuple[int | str, ...], Target] = {}
    for given in inputs:
        identity = _identity_of_descriptor(0) if given == "-" else _identity(given)
        if identity is not None:
            read[identity] = given
    for option, path in outputs.items():
        identity = None if path is None else _identity(path)
        if identity in read:
            name = "standard input" if read[identity] == "-" else read[identity]
            raise SettingsError(f"{option} {path} would replace {name}, which is read: choose another name.")
    identity = _identity_of_descriptor(1)
    if identity in read:
        raise SettingsError(f"standard output goes to {read[identity]}, which is read: send it elsewhere.")


def _identity(path: Target) -> tuple[int | str, ...] | None:
    """What all names of one file share: device and inode; for a file that does not exist, its folder's and its name.

    None for character devices, which several processes may write to and read at once, and where the system refuses to
    say.
    """
    with contextlib.suppress(OSError):
        status = _stat(path)
        if status is not None:
            return None if stat.S_ISCHR(status.st_mode) else (status.st_dev, status.st_ino)
        real = Path(os.path.realpath(path))
        folder = os.stat(real.parent)
        return folder.st_dev, folder.st_ino, real.name
    return None


def _identity_of_descriptor(number: int) -> tuple[int | str, ...] | None:
    with contextlib.suppress(OSError):
        status = os.fstat(number)
        if stat.S_ISREG(status.st_mode):
            return status.st_dev, status.st_ino
    return None
