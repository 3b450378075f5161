"""`Service`: the one thread that writes the log and owns the models; requests come to it in a queue.

What arrives while a group of records is written to disk is the next group. For each group: requests are checked
against the state, what they ask for is appended to the log in one transaction, and only then are the models moved on
and answers given. So nothing is acknowledged that is not on disk, and what is refused has changed nothing.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rue.errors import DataError, RueError
from rue.serve import snapshots
from rue.serve.checking import checked
from rue.serve.fold import Fold
from rue.serve.log import Full, Log, lock, note
from rue.serve.model import Answer, ServedModel
from rue.serve.race import Race
from rue.serve.records import CHALLENGE, EXPIRE, FORGET, LABEL, LEARN, PREDICT, PROMOTE, ROLLBACK, Line, Record
from rue.serve.settings import Settings

__all__ = ["Busy", "Limits", "Request", "Service"]


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a service takes on."""

    pending: int = 100_000
    """Predictions of a model that wait for their label; the oldest expire when there are more."""
    age: float = 30 * 86400.0
    """Seconds after which a prediction that waits for its label expires."""
    queue: int = 20_000
    """Requests, or lines of batches, that wait for their turn; more are answered 429."""
    body: int = 1 << 20
    """Bytes of a request."""
    batch: int = 64 << 20
    """Bytes of a batch."""
    features: int = 10_000
    """Features of an example."""
    seconds: float = 30.0
    """How long a request may take to arrive."""
    every: int = 200_000
    """Records after which a snapshot is due."""
    minutes: float = 5.0
    """Minutes after which one is due if there are new records."""
    keep: int = 3
    """How many snapshots stay."""
    prune: int | None = None
    """Records behind the oldest snapshot that stay in the log; older ones are moved to the archive. None: all stay."""


class Busy(Exception):
    """The queue is full."""


class Broken(Exception):
    """Records that are in the log could not be applied, so the models may be half moved on."""


@dataclasses.dataclass
class Request:
    """Lines for a model, or a function that is called between two groups; `done` gets the answers."""

    model: str
    lines: Sequence[tuple[Line, bytes]]
    done: Callable[[list[Answer]], None]
    call: Callable[[], Answer] | None = None


class Service:
    """A folder that is served: its log, the fold over it, and the thread that moves them on.

    `tell` is given events with their details, for the log of the process.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings | None = None,
        limits: Limits | None = None,
        tell: Callable[..., None] = lambda event, **details: None,
    ) -> None:
        self.folder, self.limits, self.tell = folder, limits or Limits(), tell
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock(folder)
        self.log = Log(folder)
        snapshots.require_whole(folder, self.log.last)
        started = time.monotonic()
        found = snapshots.latest(folder, self.log.last, lambda why: tell("snapshot_damaged", why=why))
        self.fold = found or Fold()
        begin = self.fold.seq
        self.log.require_whole()
        self.fold.history, self.fold.restore = self.log.read, self._state_after
        self.fold.replay(self.log.read(begin))
        tell("restored", records=self.log.last, from_snapshot=begin, seconds=round(time.monotonic() - started, 3))
        self.snapshot_seq, self._snapshot_at = begin, time.monotonic()
        if "default" not in self.fold.numbers or settings is not None:
            self._write_now(self.fold.creation("default", settings or Settings()))
        self.counts: collections.Counter[str] = collections.Counter()
        """What was answered since the start, by kind and status."""
        self.errors: collections.deque[dict[str, Any]] = collections.deque(maxlen=20)
        """The last requests that were refused."""
        self.full: str = ""
        """Why the log cannot be written, "" while it can."""
        self.failed = ""
        """Why nothing is answered any more, "" while all is well."""
        self.on_failure: Callable[[], None] = lambda: None
        self.listeners: list[Callable[[], None]] = []
        """Called after each group, when all its requests are answered."""
        self._queue: collections.deque[Request] = collections.deque()
        self._size = 0
        self._ready = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="rue-service")
        self._writing: threading.Thread | None = None

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Requests that wait for their turn."""
        return self._size

    def submit(self, request: Request) -> None:
        """Put a request into the queue; `Busy` if that is full."""
        size = max(1, len(request.lines))
        with self._ready:
            if self._size + size > self.limits.queue and self._size:
                raise Busy
            if self._stopping:
                raise DataError("the service is stopping.")
            self._queue.append(request)
            self._size += size
            self._ready.notify()

    def stop(self) -> None:
        """Answer what was taken in, write a snapshot, and close everything."""
        with self._ready:
            self._stopping = True
            self._ready.notify()
        if self._thread.is_alive():
            self._thread.join()
        if self._writing is not None:
            self._writing.join()
        if self.fold.seq > self.snapshot_seq and not self.failed:
            self._write_snapshot(snapshots.copy_of(self.fold))
        self.log.close()

    # The thread.

    def _run(self) -> None:
        while True:
            with self._ready:
                while not self._queue and not self._stopping:
                    self._ready.wait(1.0)
                    if not self._queue:
                        break
                if self._stopping and not self._queue:
                    return
                group, size = [], 0
                while self._queue and size < 4096:
                    group.append(self._queue.popleft())
                    size += max(1, len(group[-1].lines))
                self._size -= size
            self._turn(group)
            for listener in self.listeners:
                listener()

    def _turn(self, group: list[Request]) -> None:
        """Answer a group of requests, and do what is due."""
        if self.failed:
            self._refuse(group, self.failed)
            return
        try:
            if self.full:
                self.log.probe()
                self.full = ""
            self._expire()
            if group:
                self._answer_group(group)
            self._maybe_snapshot()
        except Full as error:
            self._note_full(error)
            self._refuse(group, str(error))
        except Exception as error:  # what is in the log is safe, and a restart goes through it again
            self.tell("failed", error=f"{type(error).__name__}: {error}"[:500])
            self.failed = self.full = "the service has failed and must be restarted."
            self._refuse(group, self.failed)
            self.on_failure()

    def _note_full(self, error: Full) -> None:
        if not self.full:
            self.tell("disk_full", error=str(error))
        self.full = str(error)

    def _refuse(self, group: list[Request], why: str) -> None:
        for request in group:
            request.done([Answer(503, {"error": why})] * max(1, len(request.lines)))

    def _now(self) -> int:
        """Milliseconds since 1970; if the clock was moved back, it stands until it has caught up."""
        return max(self.fold.at, int(time.time() * 1000))

    def _write_now(self, record: Record | None) -> Answer | None:
        """Append a record on its own and apply it."""
        if record is None:
            return None
        record = record._replace(seq=self.log.last + 1, at=self._now())
        return self._write_and_apply([record])[0]

    def _write_and_apply(self, records: list[Record], lines: Sequence[Line] = ()) -> list[Answer]:
        """Write records, then apply them; `Full` if they are not written."""
        self.log.append(records)
        note(self._lock, self.log.last)
        self.full = ""
        try:
            return self.fold.apply(records, lines)
        except Exception as error:
            raise Broken(f"records {records[0].seq} to {records[-1].seq}: {type(error).__name__}: {error}") from error

    def _expire(self) -> None:
        """Records for predictions, and early labels, that have waited too long or are too many."""
        now = self._now()
        for model in list(self.fold.models.values()):
            for kind, waiting in ((EXPIRE, model.pending), (FORGET, model.early)):
                upto = self._overdue(waiting, now)
                if upto:
                    self._write_now(Record(0, 0, model.number, kind, None, b'{"upto": %d}' % upto))

    def _overdue(self, waiting: dict[str, Any], now: int) -> int:
        """Up to which record those that wait are to go; 0 if all may stay."""
        if not waiting:
            return 0
        excess, oldest = len(waiting) - self.limits.pending, now - int(self.limits.age * 1000)
        upto = 0
        if excess > 0:
            excess += self.limits.pending // 100
        for i, each in enumerate(waiting.values()):
            if i >= excess and each.at >= oldest:
                break
            upto = each.seq
        return upto

    def _answer_group(self, group: list[Request]) -> None:
        """Check the requests of a group, write what they ask for, apply it, and answer."""
        answers: list[list[Answer | None]] = [[None] * len(request.lines) for request in group]
        todo = [(r, i) for r, request in enumerate(group) if request.call is None for i in range(len(request.lines))]
        singles = [at for at in todo if len(group[at[0]].lines) == 1]
        # Single requests of a group came at the same time, so predictions may be made together, and labels learnt so.
        todo = sorted(singles, key=lambda at: _ORDER[group[at[0]].lines[0][0].kind]) + [
            at for at in todo if len(group[at[0]].lines) != 1
        ]
        while todo:
            try:
                todo = self._round(group, answers, todo)
            except Full as error:
                self._note_full(error)
                for at in todo:
                    if answers[at[0]][at[1]] is None:
                        answers[at[0]][at[1]] = Answer(503, {"error": str(error)})
                break
        for request, found in zip(group, answers, strict=True):
            if request.call is not None:
                request.done([self._called(request.call)])
                continue
            done = [answer for answer in found if answer is not None]
            for answer, (line, _) in zip(done, request.lines, strict=True):
                self._count(request.model, line, answer)
            request.done(done)

    def _round(
        self, group: list[Request], answers: list[list[Answer | None]], todo: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Answer some lines; those whose id another line of the same group has used are left for the next round."""
        now, seq = self._now(), self.log.last
        records: list[Record] = []
        lines: list[Line] = []
        places: list[tuple[int, int]] = []
        again: list[tuple[int, int]] = []
        used: set[tuple[str, str]] = set()
        late: set[int] = set()
        for at in todo:
            request, (line, body) = group[at[0]], group[at[0]].lines[at[1]]
            key = (request.model, line.id or "")
            if at[0] in late or (line.id is not None and key in used):
                again.append(at)
                late.add(at[0])  # lines of a batch stay in their order
                continue
            try:
                model = self.fold.named(request.model)
                answer = checked(self.log, model, line, self.limits.features)
            except DataError as error:
                answer = Answer(404 if request.model not in self.fold.numbers else 400, {"error": str(error)})
            if answer is not None:
                answers[at[0]][at[1]] = answer
                continue
            seq += 1
            records.append(Record(seq, now, model.number, line.kind, line.id, body))
            lines.append(line)
            places.append(at)
            if line.id is not None:
                used.add(key)
        if records:
            for at, answer in zip(places, self._write_and_apply(records, lines), strict=True):
                answers[at[0]][at[1]] = answer
        return again

    # Counting.

    def _count(self, model: str, line: Line, answer: Answer) -> None:
        kind = {PREDICT: "predict", LABEL: "label", LEARN: "learn"}[line.kind]
        model = model if model in self.fold.numbers else "-"  # names that clients invent would add up
        self.counts[f"{model}/{kind}/{answer.status}"] += 1
        if answer.status >= 400:
            self.note_error(answer.status, model, str(answer.content.get("error", "")))

    def note_error(self, status: int, model: str, why: str) -> None:
        """Remember a refusal for the page."""
        self.errors.append({"at": int(time.time() * 1000), "status": status, "model": model, "error": why[:300]})

    # Models.

    def _called(self, call: Callable[[], Answer]) -> Answer:
        """What a function says; an error of its own, which looks at the models alone, stops nothing."""
        try:
            return call()
        except Broken:
            raise
        except Full as error:
            self._note_full(error)
            return Answer(503, {"error": str(error)})
        except RueError as error:
            return Answer(400, {"error": str(error)})
        except Exception as error:
            self.tell("question_failed", error=f"{type(error).__name__}: {error}"[:500])
            return Answer(500, {"error": "this could not be answered; the log of the process says why."})

    def create(self, name: str, settings: Settings) -> Answer:
        """Create a model; to be called by a request's `call`."""
        try:
            record = self.fold.creation(name, settings)
        except DataError as error:
            return Answer(409 if name in self.fold.numbers else 400, {"error": str(error)})
        if record is None:
            return Answer(200, {"model": name})
        self._write_now(record)
        return Answer(201, {"model": name})

    def challenge(self, name: str, settings: Settings, begin: int | None) -> Answer:
        """Begin a race against a model, by one that learns the log from a record on; nothing else is done meanwhile."""
        model, settings = self.fold.named(name), settings.dated()
        begin = self.log.last + 1 if begin is None else begin
        if not 1 <= begin <= self.log.last + 1:
            raise DataError(f"from is the number of a record, 1 to {self.log.last + 1}, not {begin}.")
        challenger = self.fold.challenger(model, settings, begin, self.log.last)
        Race.against(model, challenger, 0).require_comparable(model)
        self.fold.ready = challenger
        try:
            return self._record(model, CHALLENGE, {"options": settings.to_json(), "from": begin})
        finally:
            self.fold.ready = None

    def promote(self, name: str) -> Answer:
        """Let the challenger take the place of its model, if it is shown to be better."""
        model = self.fold.named(name)
        race = self.fold.races.get(model.number)
        if race is None:
            return Answer(409, {"error": "there is no challenger: POST one to …/challenger first."})
        try:
            race.require_better(model)
        except DataError as error:
            return Answer(409, {"error": str(error)})
        return self._record(model, PROMOTE, {})

    def roll_back(self, name: str, to: int) -> Answer:
        """Let a model go back to a snapshot."""
        model, known = self.fold.named(name), snapshots.numbers_of(self.folder)
        if to not in known:
            listed = ", ".join(map(str, known)) or "none yet"
            return Answer(404, {"error": f"there is no snapshot {to}: there are {listed}."})
        if model.number not in snapshots.read(self.folder, to).models:
            return Answer(409, {"error": f"the model did not exist at snapshot {to}."})
        return self._record(model, ROLLBACK, {"to": to})

    def _record(self, model: ServedModel, kind: int, content: dict[str, Any]) -> Answer:
        answer = self._write_now(Record(0, 0, model.number, kind, None, msgspec.json.encode(content)))
        assert answer is not None
        return answer

    def _state_after(self, seq: int) -> Fold:
        """That of a snapshot, if it is whole; else by a replay."""
        try:
            return snapshots.read(self.folder, seq)
        except (RueError, OSError, ValueError, KeyError, TypeError, IndexError):
            fold = Fold()
            fold.history = self.log.read
            fold.replay(self.log.read(0, seq))
            return fold

    # Snapshots.

    def _maybe_snapshot(self) -> None:
        new = self.fold.seq - self.snapshot_seq
        due = new >= self.limits.every or (new and time.monotonic() - self._snapshot_at > 60 * self.limits.minutes)
        if due and (self._writing is None or not self._writing.is_alive()):
            copied = snapshots.copy_of(self.fold)
            self._snapshot_at, self.snapshot_seq = time.monotonic(), self.fold.seq
            if self.limits.prune is not None:
                self._prune()
            self._writing = threading.Thread(target=self._write_snapshot, args=(copied,), name="rue-snapshot")
            self._writing.start()

    def _write_snapshot(self, copied: snapshots.Snapshot) -> None:
        started = time.monotonic()
        try:
            snapshots.write(self.folder, copied, self.limits.keep)
            self.tell("snapshot", record=copied.seq, seconds=round(time.monotonic() - started, 3))
        except (OSError, RueError) as error:  # the log has everything: a restart takes longer
            self.tell("snapshot_failed", record=copied.seq, error=str(error)[:300])

    def _prune(self) -> None:
        """Move records behind the oldest snapshot to the archive."""
        oldest = min(snapshots.numbers_of(self.folder), default=0)
        assert self.limits.prune is not None
        try:
            self.log.prune(oldest - self.limits.prune)
        except Full as error:
            self.tell("archive_failed", error=str(error))


_ORDER = {PREDICT: 0, LABEL: 1, LEARN: 2}
