"""The step of one shard, `advance`, and what joins several, `merge`: functions of bytes, which any engine can call.

A *state* is the bytes of a model file. A *cursor* is a shard's place in its part of the data. Neither names a machine
or a process, so a step that was lost with its worker is simply taken again and gives the same bytes.
"""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rue import ledger as accounts
from rue.errors import DataError, SettingsError
from rue.models.file import Model, from_bytes, to_bytes
from rue.models.merging import merge_models
from rue.runs.driver import Driver
from rue.streams.chunk import Chunk
from rue.streams.data import Data
from rue.streams.files.cutting import MAX_LINE
from rue.streams.names import Names
from rue.streams.settling import settle
from rue.streams.units import Unit, chunks_of, units_of

__all__ = [
    "Cursor",
    "Learnt",
    "Part",
    "Readers",
    "advance",
    "advance_with",
    "begin",
    "cursors",
    "merge",
    "merged",
    "processor",
]


@dataclasses.dataclass(frozen=True)
class Cursor:
    """A shard's place in its part of the data: which unit it is in, and how many rows of that it has read.

    >>> Cursor(shard=0, units=()).done
    True
    """

    shard: int
    """Which shard it is, from 0."""
    units: tuple[Unit, ...]
    """The units of this shard, in order."""
    unit: int = 0
    """The one to go on in, counted from 0."""
    row: int = 0
    """How many good rows of it have been read."""
    bad: str = "stop"
    """What an unusable example does: `stop` or `skip`."""
    separator: str | None = None
    """What separates the columns of a CSV; detected automatically if None."""
    max_line: int = MAX_LINE
    """MiB that a line of text may have."""
    known: tuple[type, ...] = ()
    """Classes of the user's own that the learner is made with."""

    @property
    def done(self) -> bool:
        """Whether all has been read."""
        return self.unit >= len(self.units)


class Learnt(NamedTuple):
    """What one step of a shard has learnt."""

    examples: int
    loss: float
    """The sum of their losses, each taken before the example was learnt."""
    weight: float
    processor: str
    """The processor that has done it: others may round differently."""


class Part(NamedTuple):
    """What `advance` returns: the state with its evidence, the place to go on from, and what the step has learnt.

    >>> Part(b"", Cursor(0, ()), Learnt(2, 1.5, 2.0, "x86_64")).learnt.examples
    2
    """

    state: bytes
    """The bytes of a model file, evidence included."""
    cursor: Cursor
    """Where to go on."""
    learnt: Learnt
    """Examples and losses of this step."""


def begin(data: Data, driver: Driver | None = None) -> bytes:
    """The state before the first example, from which all shards go on; it settles what columns and labels mean.

    The first rows of the data decide that, as for a learner that reads all of it by itself. `driver` has the learner
    and the task; by default the first rows decide these too.

    >>> import pandas
    >>> from rue.streams.data import Data
    >>> table = pandas.DataFrame({"x": [1.0, 2.0], "y": ["no", "yes"]})
    >>> from_bytes(begin(Data((table,), target="y"))).labels
    Labels(task='classify', negative='no', positive='yes', classes=())
    """
    driver = Driver() if driver is None else driver
    _require_mergeable(driver, data)
    stops = not driver.most_skipped
    task = driver.task if driver.learner is None else driver.learner.loss.task
    for chunk in settle(data.reads(), driver.begin, task, driver.positive, stops_at_bad=stops):
        if chunk.block.y is None:
            raise DataError(f"{chunk.name} has no labels.")
        if driver.labels is not None:
            driver.open_accounts(driver.labels.encode(chunk.block.y))
            break
    if driver.labels is None or driver.accounts is None:
        raise DataError("there are no examples to learn.")
    names = dict(() if data.columns is None else data.columns.names_of_slots())
    return to_bytes(
        Model(
            driver.learner,
            driver.evidence,
            driver.labels,
            features=data.describe(),
            names=names,
            counts=driver.counts(),
            course=driver.course,
            metrics=driver.metrics,
        )
    )


def _require_mergeable(driver: Driver, data: Data) -> None:
    """Refuse what cannot be merged."""
    if driver.watch.asked:
        raise SettingsError("intervals and alarms are about one sequence of examples, and cannot be learnt in shards.")
    if driver.advice is not None or data.experts:
        raise SettingsError(
            "outside experts and calibrate are about one sequence of examples, and cannot be learnt in shards."
        )


def cursors(data: Data, shards: int, *, bad: str = "stop", known: Iterable[type] = ()) -> tuple[Cursor, ...]:
    """Where each of so many shards begins: of all units, shard k has number k, k + shards, k + 2·shards, …

    `bad` says what an unusable example does, `stop` or `skip`; `known` are classes of the user's own.

    >>> import pandas
    >>> from rue.streams.data import Data
    >>> table = pandas.DataFrame({"x": [1.0, 2.0], "y": ["no", "yes"]})
    >>> [len(cursor.units) for cursor in cursors(Data((table, table, table), target="y"), 2)]
    [2, 1]
    """
    if shards < 1:
        raise SettingsError(f"shards: a whole number from 1 on, not {shards}.")
    units = units_of(data)
    own: dict[str, Any] = {"bad": bad, "separator": data.separator, "max_line": data.max_line, "known": tuple(known)}
    return tuple(Cursor(k, units[k::shards], **own) for k in range(shards))


class Readers:
    """Files that are open where shards stand, so that their next step need not open them again; only a cache."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[Cursor, Iterator[Chunk]]] = {}

    def take(self, cursor: Cursor, features: dict[str, Any]) -> Iterator[Chunk]:
        """The chunks of the cursor's unit from its row on."""
        # Only where the last step of the shard was taken here, and counted: after a death others may have taken it.
        left_open = self._open.pop(cursor.shard, None)
        if left_open is not None and (left_open[0].unit, left_open[0].row) == (cursor.unit, cursor.row):
            return left_open[1]
        return _from_row(_chunks(cursor, features), cursor.row)

    def keep(self, cursor: Cursor, chunks: Iterator[Chunk]) -> None:
        """Leave them for the next step."""
        self._open[cursor.shard] = cursor, chunks


def _chunks(cursor: Cursor, features: dict[str, Any]) -> Iterator[Chunk]:
    return chunks_of(cursor.units[cursor.unit], features, cursor.separator, cursor.max_line)


def _from_row(chunks: Iterator[Chunk], row: int) -> Iterator[Chunk]:
    """The chunks without their first `row` good rows.

    A unit is read from its beginning, also after a restart, so that chunks are always the same, and with them the order
    in which names of features are met.
    """
    for chunk in chunks:
        if row and row >= len(chunk.block):
            row -= len(chunk.block)
        elif row:
            yield chunk.split(row)[1]
            row = 0
        else:
            yield chunk


class _Reading:
    """A shard's data from its cursor on, at most `rows` of them."""

    def __init__(self, cursor: Cursor, rows: int | None, features: dict[str, Any], readers: Readers) -> None:
        self.cursor, self.left, self.features, self.readers = cursor, rows, features, readers
        self.names: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[Chunk]:
        while not self.cursor.done and self.left != 0:
            chunks = self.readers.take(self.cursor, self.features)
            for chunk in chunks:
                self.names += chunk.names
                rest = None
                if self.left is not None and len(chunk.block) > self.left:
                    chunk, rest = chunk.split(self.left)
                self.cursor = dataclasses.replace(self.cursor, row=self.cursor.row + len(chunk.block))
                if self.left is not None:
                    self.left -= len(chunk.block)
                yield chunk
                if self.left == 0:
                    self.readers.keep(self.cursor, chunks if rest is None else _before(rest, chunks))
                    return
            self.cursor = dataclasses.replace(self.cursor, unit=self.cursor.unit + 1, row=0)


def _before(first: Chunk, others: Iterator[Chunk]) -> Iterator[Chunk]:
    yield first
    yield from others


def advance(state: bytes, cursor: Cursor, n: int | None = None) -> Part:
    """Learn the next n examples of a shard, or all that are left; a pure function, so it can be repeated anywhere.

    >>> import pandas
    >>> from rue.streams.data import Data
    >>> table = pandas.DataFrame({"x": [1.0, -2.0, 1.5], "y": ["no", "yes", "no"]})
    >>> data = Data((table,), target="y")
    >>> state, [cursor] = begin(data, Driver("ogd")), cursors(data, 1)
    >>> part = advance(state, cursor, 2)
    >>> part.learnt.examples, part.cursor.row, part == advance(state, cursor, 2)
    (2, 2, True)
    """
    return advance_with(Readers(), state, cursor, n)


def advance_with(readers: Readers, state: bytes, cursor: Cursor, n: int | None) -> Part:
    """`advance`, with files that an earlier step has left open."""
    model = from_bytes(state, cursor.known)
    if model.labels is None or model.evidence is None:
        raise DataError("the state is that of a learner without its accounts: begin with rue.cluster.begin.")
    driver = Driver.resume(model.learner, model.labels, model.evidence, course=model.course, bad=cursor.bad)
    driver.restore(model.counts)
    driver.metrics = model.metrics
    before = driver.sums.copy()
    reading = _Reading(cursor, n, model.features, readers)
    for part in driver.run(reading):
        if part.chunk.block.y is None and len(part.chunk.block):
            raise DataError(f"{part.chunk.name} has no labels.")
        part.require_good()
    names = Names(model.names.items())
    names.add(reading.names)
    gained = driver.sums - before
    learnt = Learnt(
        int(gained[accounts.EXAMPLES]), float(gained[accounts.LOSS]), float(gained[accounts.WEIGHT]), processor()
    )
    after = dataclasses.replace(
        model,
        learner=driver.learner,
        evidence=driver.evidence,
        labels=driver.labels,
        names=names.of,
        counts=driver.counts(),
        course=driver.course,
        metrics=driver.metrics,
    )
    return Part(to_bytes(after), reading.cursor, learnt)


def merge(base: bytes, parts: Sequence[bytes], known: Iterable[type] = ()) -> bytes:
    """The state for all that several parts have learnt, each of which went on from `base`; see `rue.cluster.advance`.

    If one part alone has learnt, it comes back to the bit. `known` are classes of the user's own.

    >>> import pandas
    >>> from rue.streams.data import Data
    >>> table = pandas.DataFrame({"x": [1.0, -2.0, 1.5], "y": ["no", "yes", "no"]})
    >>> data = Data((table, table), target="y")
    >>> base = begin(data, Driver("ogd"))
    >>> parts = [advance(base, cursor).state for cursor in cursors(data, 2)]
    >>> from_bytes(merge(base, parts)).learner.t
    6
    """
    changed = [part for part in parts if part != base]
    if len(changed) < 2:
        return changed[0] if changed else base
    return to_bytes(merged(base, changed, tuple(known)))


def merged(base: bytes, parts: Sequence[bytes], known: tuple[type, ...] = ()) -> Model:
    """`merge`, as a model."""
    changed = [part for part in parts if part != base]
    if len(changed) < 2:
        return from_bytes(changed[0] if changed else base, known)
    return merge_models(from_bytes(base, known), [from_bytes(part, known) for part in changed])


@cache
def processor() -> str:
    """The kind of this machine's processor: on others of its kind the same program gives the same bits.

    >>> processor() == processor()
    True
    """
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"{platform.machine()} {model or platform.processor()}".strip()
