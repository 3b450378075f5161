"""The log: what happened, in order, in SQLite; one process writes it, others may read it while it grows."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rue.errors import DataError
from rue.serve.records import PREDICT, Record, own_id

__all__ = ["FORMAT", "Full", "Log", "lock", "note", "noted"]

FORMAT = 1
"""The number of the format; a later version upgrades an older log when it opens it (`_UPGRADES`)."""
NAME, ARCHIVE, LOCK = "log.sqlite", "archive.sqlite", "lock"
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, model INTEGER NOT NULL, kind INTEGER NOT NULL, id TEXT,
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS ids ON log (id, model) WHERE id IS NOT NULL;
"""
_UPGRADES: dict[int, str] = {}
"""For each older format the statements that make the next one of it."""
_COLUMNS = "seq, at, model, kind, id, body"


class Full(DataError):
    """There is no room to write the log; nothing of what was to be written is in it."""


class Log:
    """The log of a folder, open for writing by one thread, or with `read_only` for reading alone.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Log(folder)
    ...     log.append([Record(1, 0, 1, PREDICT, "a", b"{}")])
    ...     print(log.last, [record.id for record in log.read()])
    ...     log.close()
    1 ['a']
    """

    def __init__(self, folder: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path, self.read_only = Path(folder, NAME), read_only
        self.archive = Path(folder, ARCHIVE)
        if read_only and not self.path.exists():
            raise DataError(f"{folder} holds no log: it is not the folder of a service.")
        with self._sentences():
            if read_only:
                self.db = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True, timeout=60)
                self.db.execute("BEGIN")  # what is read is of one moment
            else:
                self.db = sqlite3.connect(
                    self.path, isolation_level=None, check_same_thread=False, cached_statements=64
                )
                self.db.execute("PRAGMA journal_mode=WAL")
                self.db.execute("PRAGMA synchronous=FULL")
                self.db.execute("PRAGMA cache_size=-65536")
                self.db.executescript(_TABLES)
                self.db.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?)", (FORMAT,))
            self._old: sqlite3.Connection | None = None
            """The archive, in which ids are looked up, if there is one."""
            self._look_into_archive()
            self._require_format()
            self.last = self._last()

    def _require_format(self) -> None:
        if not self.read_only:
            for db in (self._old, self.db):  # the archive first: what only reads is refused until both are new
                if db is not None:
                    _upgrade(db)
        found = self.meta("format")
        if found != FORMAT:
            raise DataError(
                f"{self.path} has format {found}, and this rue reads {FORMAT}: "
                + (
                    "use a newer rue."
                    if isinstance(found, int) and found > FORMAT
                    else "start the service once to upgrade it."
                )
            )

    def meta(self, key: str) -> Any:
        """What is stored under a name besides the records; None if nothing is."""
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def _last(self) -> int:
        return int(self.db.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()[0]) or int(
            self.meta("pruned") or 0
        )

    @property
    def first(self) -> int:
        """The number of the first record that is here and not in the archive."""
        return int(self.meta("pruned") or 0) + 1

    def append(self, records: Sequence[Record]) -> None:
        """Write records, all or none of them, and return when they are on disk; `Full` where there is no room."""
        try:
            self.db.execute("BEGIN IMMEDIATE")
            self.db.executemany(f"INSERT INTO log ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", records)
            self.db.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            with contextlib.suppress(sqlite3.Error):
                self.db.execute("ROLLBACK")
            raise Full(f"the log cannot be written: {error}; nothing was taken in.") from error
        self.last = records[-1].seq

    def probe(self) -> None:
        """Try to write, after there was no room; `Full` if there still is none."""
        try:
            self.db.execute("INSERT OR REPLACE INTO meta VALUES ('probe', ?)", (self.last,))
        except (sqlite3.Error, OSError) as error:
            raise Full(f"the log cannot be written: {error}; nothing was taken in.") from error

    def require_whole(self) -> None:
        """Refuse a log in which records are missing, and name the first of them."""
        with self._sentences():
            first, count = self.first, int(self.db.execute("SELECT count(*) FROM log").fetchone()[0])
            if count == self.last - first + 1:
                return
            expected = first
            for (seq,) in self.db.execute("SELECT seq FROM log ORDER BY seq"):
                if seq != expected:
                    raise self._missing(expected, seq - 1)
                expected += 1

    def _missing(self, first: int, last: int) -> DataError:
        return DataError(
            f"records {first} to {last} of the log in {self.path.parent} are missing: bring the log back from a copy."
        )

    def read(self, after: int = 0, upto: int | None = None) -> Iterator[Record]:
        """The records after a number, in order; those that were pruned come from the archive."""
        upto = self.last if upto is None else upto
        pruned, expected = self.first - 1, after + 1
        if after < pruned:
            if not self.archive.exists():
                raise DataError(f"records {after + 1} to {pruned} of the log are missing: {self.archive} is not there.")
            with (
                self._sentences(),
                contextlib.closing(self._opened_archive("ro")) as archive,
            ):
                for record in self._rows(archive, after, min(upto, pruned)):
                    expected = self._next(record, expected)
                    yield record
        with self._sentences():
            for record in self._rows(self.db, max(after, pruned), upto):
                expected = self._next(record, expected)
                yield record
        if expected <= upto:
            raise self._missing(expected, upto)

    def _rows(self, db: sqlite3.Connection, after: int, upto: int) -> Iterator[Record]:
        query = f"SELECT {_COLUMNS} FROM log WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT 4096"
        while after < upto:
            rows = db.execute(query, (after, upto)).fetchall()
            if not rows:
                return
            yield from map(Record._make, rows)
            after = rows[-1][0]

    def _next(self, record: Record, expected: int) -> int:
        if record.seq != expected:
            raise self._missing(expected, record.seq - 1)
        return expected + 1

    def find(self, model: int, id_: str) -> list[Record]:
        """The records of an id, in order, also those in the archive: an id that was used long ago stays used."""
        found: list[Record] = []
        for db in (self.db,) if self._old is None else (self._old, self.db):
            seq = own_id(id_)
            if seq is not None:
                query = f"SELECT {_COLUMNS} FROM log WHERE seq = ? AND model = ? AND kind = ? AND id IS NULL"
                found += map(Record._make, db.execute(query, (seq, model, PREDICT)))
            query = f"SELECT {_COLUMNS} FROM log WHERE id = ? AND model = ? ORDER BY seq"
            found += map(Record._make, db.execute(query, (id_, model)))
        return found

    def _opened_archive(self, mode: str) -> sqlite3.Connection:
        uri = f"{self.archive.absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)

    def _look_into_archive(self) -> None:
        if self._old is None and not self.read_only and self.archive.exists():
            # To be written, so that SQLite mends what a kill has left half done.
            try:
                self._old = self._opened_archive("rw")
                self._old.executescript(_TABLES)
            except sqlite3.Error as error:
                raise DataError(f"the archive {self.archive} is damaged or cannot be read: {error}.") from error

    def prune(self, upto: int) -> None:
        """Move the records up to a number into the archive, from which `read` has them."""
        first = self.first
        if upto < first:
            return
        try:
            self.db.execute("ATTACH ? AS archive", (str(self.archive),))
            try:
                self.db.executescript(_TABLES.replace("EXISTS ", "EXISTS archive."))
                self.db.execute("INSERT OR IGNORE INTO archive.meta VALUES ('format', ?)", (FORMAT,))
                self.db.execute("PRAGMA archive.synchronous=FULL")
                # Two transactions: a crash between them leaves records in both files, and the second is repeated.
                self.db.execute("INSERT OR IGNORE INTO archive.log SELECT * FROM main.log WHERE seq <= ?", (upto,))
                self.db.execute("BEGIN IMMEDIATE")
                self.db.execute("DELETE FROM main.log WHERE seq <= ?", (upto,))
                self.db.execute("INSERT OR REPLACE INTO main.meta VALUES ('pruned', ?)", (upto,))
                self.db.execute("COMMIT")
            finally:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                self.db.execute("DETACH archive")
            self._look_into_archive()
        except (sqlite3.Error, OSError) as error:
            raise Full(f"the archive {self.archive} cannot be written: {error}.") from error

    @contextlib.contextmanager
    def _sentences(self) -> Iterator[None]:
        """Errors of SQLite as one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            raise DataError(f"the log {self.path} is damaged or cannot be read: {error}.") from error

    def close(self) -> None:
        """Close it; what was written stays in its place."""
        if self._old is not None:
            self._old.close()
        self.db.close()


def _upgrade(db: sqlite3.Connection) -> None:
    """Bring a log, or an archive, to the present format; each step is made whole or not at all."""
    row = db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
    found = 1 if row is None else row[0]  # archives of the first format do not name it
    while found in _UPGRADES:
        db.executescript(
            f"BEGIN; {_UPGRADES[found]}; INSERT OR REPLACE INTO meta VALUES ('format', {found + 1}); COMMIT;"
        )
        found += 1


def lock(folder: str | os.PathLike[str]) -> int:
    """Make this process the only one that serves a folder: the descriptor of the lock file, which must stay open."""
    handle = os.open(Path(folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise DataError(f"another process serves {folder}: one folder has one server.") from None
    return handle


def note(handle: int, last: int) -> None:
    """Write the number of the last record, which is on disk, into the lock file.

    It is not flushed: who ends the process leaves it as it is, and after a loss of power it is never larger than the
    last record, because the log is flushed first. So a log that ends before it has been cut.
    """
    with contextlib.suppress(OSError):
        os.pwrite(handle, b"%020d\n" % last, 0)


def noted(folder: str | os.PathLike[str]) -> int:
    """The number that `note` has written last; 0 if there is none."""
    try:
        return int(Path(folder, LOCK).read_bytes()[:20])
    except (OSError, ValueError):
        return 0
