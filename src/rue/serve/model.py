"""A model of the service: what has been predicted and waits for its label, and the learner; a fold over records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rue.errors import DataError, RueError
from rue.ledger import LOSS
from rue.serve.answers import of_classes, of_scores
from rue.serve.driver import ServedDriver
from rue.serve.examples import Reading
from rue.serve.records import CREATE, EXPIRE, FORGET, LABEL, PREDICT, Line, Record, decode
from rue.serve.settings import Settings
from rue.streams import Block, Labels
from rue.streams.chunk import Chunk
from rue.streams.labels import FIRST_ROWS

__all__ = ["Answer", "Early", "Lesson", "Pending", "ServedModel"]

SETTLED_BY = 1000
"""How many of the predictions that wait help to settle what the columns are."""


NOT_FINITE = "its prediction, loss or step is not finite: scale the features down"
HELD = "learning begins with the second class, or at once in a model that is created with positive"


class Answer(NamedTuple):
    """What a request is answered: a status of HTTP, and JSON."""

    status: int
    content: dict[str, Any]


class Pending(NamedTuple):
    """A prediction that waits for its label."""

    seq: int
    at: int
    t: int
    """How many examples had been learnt when it was made."""
    body: bytes
    served: Any
    """The score, or a vector of probabilities."""
    content: dict[str, Any]
    """What was answered."""


class Early(NamedTuple):
    """A label that waits for its prediction."""

    seq: int
    at: int
    body: bytes


class Lesson(NamedTuple):
    """An example with its label, ready to be learnt."""

    features: dict[str, Any]
    label: Any
    weight: float
    served: Any
    """What was answered; None if the example is predicted and learnt at once."""
    seq: int = 0
    """The record that has it learnt; 0 if it has waited for others."""


class ServedModel:
    """The state of a model after some records: the same for the live service, a restart and a replay, to the last bit.

    >>> model = ServedModel(1, "default", Settings(learner="ogd"))
    >>> learn = Record(1, 0, 1, 4, None, b'{"features": {"x": 1}, "label": 1}')
    >>> model.apply([learn, learn._replace(seq=2)])[1].content["t"]
    2
    """

    def __init__(self, number: int, name: str, settings: Settings) -> None:
        self.number, self.name, self.settings = number, name, settings
        self.created = settings
        """What it was created with, which a promotion does not change."""
        self.driver: ServedDriver = settings.driver()
        self.reading = Reading(settings=settings.to_json())
        self.pending: dict[str, Pending] = {}
        self.early: dict[str, Early] = {}
        self.held: list[Lesson] = []
        """Examples that wait until the labels tell what they mean, which a second class does (docs/decisions/0024)."""
        self.kind = ""
        """What labels are: number, boolean, or category; "" before the first."""
        self.t = 0
        """How many labels have been taken in."""
        self.predicted = self.expired = self.forgotten = self.bad = 0
        self.late = np.zeros(5)
        """Labels that came after their prediction; the sum and the largest of their delays, in ms and in examples."""
        self.seq = self.at = 0
        """The last record that was applied, and its time."""
        self.watchers: Sequence[Callable[[ServedModel, Sequence[Lesson]], None]] = ()
        """Called with what has just been learnt; `driver.scored` has what it was scored by."""
        self.losses: list[tuple[int, float]] | None = None
        """In a race, the losses of what is learnt, by their records."""
        self.past: list[dict[str, Any]] = []
        """How its predecessors have done, whose places others took."""

    # Records.

    def apply(self, records: Sequence[Record], lines: Sequence[Line | None] = ()) -> list[Answer]:
        """Apply consecutive records of this model, which `lines` has decoded as far as they are; an answer for each."""
        answers: list[Answer] = []
        lines = lines or [None] * len(records)
        for kind, part, known in _stretches(records, lines):
            self.seq, self.at = part[-1].seq, part[-1].at
            if kind == PREDICT:
                answers += self._predict(part, known)
            elif kind == EXPIRE:
                answers += [self._expire(record) for record in part]
            elif kind == FORGET:
                answers += [self._forget(record) for record in part]
            elif kind == CREATE:
                answers += [Answer(201, {"model": self.name}) for _ in part]
            else:
                answers += self._learn(part, known)
        return answers

    def _predict(self, records: Sequence[Record], lines: Sequence[Line]) -> list[Answer]:
        """Predictions; one whose label is there already is learnt before the next is made."""
        answers: list[Answer] = []
        while len(answers) < len(records):
            begin = len(answers)
            early = (i for i in range(begin, len(records)) if records[i].id in self.early)
            part = slice(begin, next(early, len(records) - 1) + 1)
            answers += self._predict_part(records[part], lines[part])
        return answers

    def _predict_part(self, records: Sequence[Record], lines: Sequence[Line]) -> list[Answer]:
        """Predictions of which only the last may have its label."""
        scores, contents = self.predictions([line.features or {} for line in lines])
        self.predicted += len(records)
        answers = []
        for record, line, score, content in zip(records, lines, scores, contents, strict=True):
            id_ = record.id or f"#{record.seq}"
            answers.append(Answer(200, {"id": id_, **content, "t": self.t}))
            early = self.early.pop(id_, None)
            if early is None:
                self.pending[id_] = Pending(record.seq, record.at, self.t, record.body, score, content)
            else:
                label = decode(early.body)
                self._teach([Lesson(line.features or {}, label.label, label.weight, score, record.seq)])
        return answers

    def _learn(self, records: Sequence[Record], lines: Sequence[Line]) -> list[Answer]:
        """Labels of predictions, and examples with their labels."""
        answers: list[Answer | None] = []
        lessons: list[Lesson] = []
        taught: list[Answer] = []
        for record, line in zip(records, lines, strict=True):
            if lessons and not self._is_known(line.label):  # what it means depends on those before it
                taught += self._teach(lessons)
                lessons = []
            answer = self._refused(record, line)
            answers.append(answer)
            if answer is None:
                self.kind = self.kind or _kind_of(line.label)
                lessons.append(self._lesson(record, line, len(lessons)))
        following = iter(taught + (self._teach(lessons) if lessons else []))
        return [next(following) if answer is None else answer for answer in answers]

    def _is_known(self, label: Any) -> bool:
        """Whether a label means what it means whatever came just before it, so that it may be learnt with others."""
        labels = self.driver.labels
        if labels is None:
            return False
        if labels.task == "classify":
            return label in (labels.negative, labels.positive) and label != getattr(labels, labels.unseen or "unseen")
        return labels.task == "regress" or label in labels.classes

    def _refused(self, record: Record, line: Line) -> Answer | None:
        """The answer to a label that cannot be learnt, or not yet; None for one that can."""
        wrong = self.problem(line.label)
        if wrong:
            self.bad += 1
            return Answer(400, {"error": wrong})
        if record.kind == LABEL and record.id not in self.pending:
            self.kind = self.kind or _kind_of(line.label)
            self.early[str(record.id)] = Early(record.seq, record.at, record.body)
            return Answer(202, {"learnt": False, "why": "there is no prediction with this id yet"})
        return None

    def _lesson(self, record: Record, line: Line, before: int) -> Lesson:
        """What is to be learnt, after so many others that are not learnt yet."""
        if record.kind != LABEL:
            return Lesson(line.features or {}, line.label, line.weight, None, record.seq)
        waited = self.pending.pop(str(record.id))
        self._note_delay(record.at - waited.at, self.t + before - waited.t)
        return Lesson(decode(waited.body).features or {}, line.label, line.weight, waited.served, record.seq)

    def _note_delay(self, milliseconds: int, examples: int) -> None:
        late = self.late
        late[:3] += 1.0, milliseconds, examples
        late[3], late[4] = max(late[3], milliseconds), max(late[4], examples)

    def _expire(self, record: Record) -> Answer:
        """The predictions up to a record have waited too long."""
        upto = int(msgspec.json.decode(record.body)["upto"])
        gone = [id_ for id_, waiting in self.pending.items() if waiting.seq <= upto]
        for id_ in gone:
            del self.pending[id_]
        self.expired += len(gone)
        return Answer(200, {"expired": len(gone)})

    def _forget(self, record: Record) -> Answer:
        """So have the labels without a prediction."""
        upto = int(msgspec.json.decode(record.body)["upto"])
        gone = [id_ for id_, waiting in self.early.items() if waiting.seq <= upto]
        for id_ in gone:
            del self.early[id_]
        self.forgotten += len(gone)
        return Answer(200, {"forgotten": len(gone)})

    def succeed(self, other: ServedModel, why: str) -> None:
        """Go on with another's learner; what waits, and the counts, stay, and the evidence begins anew.

        So the report and the certificate are of what has been served since; `past` has what was before.
        """
        driver = self.driver
        summed = {"examples": driver.examples, "loss_total": None if driver.sums is None else float(driver.sums[LOSS])}
        self.past.append({"until": self.seq, "why": why, "learner": repr(driver.learner), **summed})
        self.settings, self.driver, self.reading, self.held = other.settings, other.driver, other.reading, other.held
        self.kind = other.kind or self.kind
        self.driver.begin_anew()
        if self.driver.labels is not None and self.driver.labels.task == "multiclass":
            for id_, waiting in self.pending.items():  # classes may be numbered otherwise: scored when they are learnt
                self.pending[id_] = waiting._replace(served=None)

    # Predicting.

    @property
    def labels(self) -> Labels:
        """What labels mean, once something has been learnt."""
        assert self.driver.labels is not None
        return self.driver.labels

    @property
    def learner(self) -> Any:
        """The learner once something has been learnt, else None."""
        return None if self.reading.columns is None or self.driver.accounts is None else self.driver.learner

    def predictions(self, rows: Sequence[dict[str, Any]]) -> tuple[Sequence[Any], list[dict[str, Any]]]:
        """For some examples what is scored, and what is answered; nothing changes."""
        if self.learner is None:
            return self._before_the_first(len(rows))
        block = self.reading.chunk(rows).block
        p = self.learner.predict_many(block)
        if self.labels.task == "multiclass":
            return list(p), of_classes(self.driver, block, p)
        return p.tolist(), of_scores(self.driver, block, p)

    def _before_the_first(self, many: int) -> tuple[Sequence[Any], list[dict[str, Any]]]:
        """What is predicted before anything is learnt: 0, or that any class may come."""
        learner, task = self.driver.learner, self.driver.task
        if task == "multiclass" or (learner is not None and learner.loss.task == "multiclass"):
            return [np.ones(1)] * many, [{"label": None, "probabilities": {}} for _ in range(many)]
        return [0.0] * many, [{"score": 0.0} for _ in range(many)]

    # Learning.

    def problem(self, label: Any) -> str:
        """What is wrong with a label for this model as it stands, "" if nothing is."""
        kind = _kind_of(label)
        if self.kind and kind != self.kind:
            return f"the label {label!r} is a {_WORDS[kind]}, but the labels of this model are {_WORDS[self.kind]}s."
        labels = self.driver.labels
        if labels is None:
            task = self.driver.task if self.driver.learner is None else self.driver.learner.loss.task
            if task == "regress" and kind == "category":
                return f"the label {label!r} is a word, but this model predicts numbers."
            if self.held and label == self.held[0].label:
                return ""
            return self._cannot_begin([lesson.label for lesson in self.held[:1]] + [label])
        if labels.task == "regress":
            value = float(label) if kind != "category" else math.nan
            if math.isnan(value) or not self.driver.learner.loss.accepts(value):
                return f"the label {label!r} is not {self.driver.learner.loss.labels}, which this model needs."
            return ""
        if labels.task == "classify" and label not in (labels.negative, labels.positive):
            try:
                y = _column([label], kind)
                if np.isnan(labels.extended(y).encode(y)).any():
                    return labels.complaint(label)
            except DataError as error:
                return str(error)
        return ""

    def _cannot_begin(self, labels: list[Any]) -> str:
        """Why a model cannot begin with labels, of which the first have waited; "" if it can."""
        kinds = {_kind_of(label) for label in labels}
        if len(kinds) > 1:
            return "labels are all numbers, all words, or all true or false."
        try:
            self.settings.driver().begin(_column(labels, kinds.pop()))
        except RueError as error:
            return str(error)
        return ""

    def _teach(self, lessons: list[Lesson]) -> list[Answer]:
        """Learn examples in order, as soon as the labels so far tell what they mean."""
        if self.reading.columns is None:
            self.reading.settle(self._first_rows(lessons[0].features))
        if self.driver.labels is not None:
            return self._learn_now(lessons)
        return self._hold(lessons)

    def _first_rows(self, features: dict[str, Any]) -> list[dict[str, Any]]:
        """What settles the columns: the first example to be learnt, and those that wait for their labels."""
        return [features] + [decode(w.body).features or {} for w in list(self.pending.values())[:SETTLED_BY]]

    def cannot_settle(self, features: dict[str, Any]) -> str:
        """Why an example cannot be the first to be learnt, "" if it can: in the log it would stop every restart."""
        if self.reading.columns is not None:
            return ""
        try:
            Reading(settings=self.settings.to_json()).settle(self._first_rows(features))
        except (RueError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            return f"the first examples cannot be read as a table ({str(error)[:200].rstrip('.')})."
        return ""

    def _hold(self, lessons: list[Lesson]) -> list[Answer]:
        """Wait for labels that tell what they mean, then learn all that have waited."""
        alike = bool(self.held) and all(lesson.label == self.held[0].label for lesson in lessons)
        wrong = "" if alike else self._cannot_begin([lesson.label for lesson in self.held[:1] + lessons])
        if wrong:  # labels that came at the same time
            self.bad += len(lessons)
            return [Answer(400, {"error": wrong}) for _ in lessons]
        self.held += [lesson._replace(seq=0) for lesson in lessons]
        if not (alike and len(self.held) < FIRST_ROWS):
            y = _column([lesson.label for lesson in self.held], self.kind)
            if len(self.held) >= FIRST_ROWS or self._settled_by(y):
                held, self.held = self.held, []
                self.driver.begin(y)
                self.t -= len(held) - len(lessons)
                return self._learn_now(held)[len(held) - len(lessons) :]
        self.t += len(lessons)
        return [Answer(202, {"learnt": False, "why": HELD}) for _ in lessons]

    def _settled_by(self, y: Any) -> bool:
        driver = self.driver
        task = driver.task if driver.learner is None else driver.learner.loss.task
        return Labels.settled_by(y, task, driver.positive)

    def _learn_now(self, lessons: list[Lesson]) -> list[Answer]:
        driver = self.driver
        chunk = self.reading.chunk([lesson.features for lesson in lessons], learns=True)
        y = _column([lesson.label for lesson in lessons], self.kind)
        weights = np.array([lesson.weight for lesson in lessons])
        block = Block(chunk.block.X, y, None if (weights == 1.0).all() else weights)
        driver.served, driver.chances = _served(lessons)
        driver._learn_chunk(Chunk(block, chunk.lines, missing=chunk.missing))
        driver.watch.take(0)
        for watcher in self.watchers:
            watcher(self, lessons)
        if self.losses is not None:
            value, encoded = driver.learner.loss.value, self.labels.encode(y)
            for lesson, p, label in zip(lessons, driver.scored.tolist(), encoded.tolist(), strict=True):
                if math.isfinite(p):
                    self.losses.append((lesson.seq, value(p, label)))
        answers = []
        for lesson, p in zip(lessons, driver.scored.tolist(), strict=True):
            self.t += 1
            if math.isnan(p):
                answers.append(Answer(200, {"learnt": False, "t": self.t, "why": NOT_FINITE}))
            elif lesson.served is None:
                answers.append(Answer(200, {"learnt": True, "score": p, "t": self.t}))
            else:
                answers.append(Answer(200, {"learnt": True, "t": self.t}))
        return answers


def _stretches(
    records: Sequence[Record], lines: Sequence[Line | None]
) -> Iterator[tuple[int, Sequence[Record], list[Any]]]:
    """Consecutive records that are applied together: predictions, or examples to learn, of which no id comes twice."""
    begin = 0
    while begin < len(records):
        kind, end, seen = _together(records[begin].kind), begin, set[str]()
        while end < len(records) and _together(records[end].kind) == kind and records[end].id not in seen:
            if records[end].id is not None:
                seen.add(str(records[end].id))
            end += 1
        known: list[Any] = list(lines[begin:end])
        if kind in (PREDICT, LABEL):
            known = [
                decode(r.body) if line is None else line for r, line in zip(records[begin:end], known, strict=True)
            ]
        yield kind, records[begin:end], known
        begin = end


def _together(kind: int) -> int:
    return LABEL if kind not in (PREDICT, EXPIRE, FORGET, CREATE) else kind


_WORDS = {"number": "number", "boolean": "truth value", "category": "word"}


def _kind_of(label: Any) -> str:
    if isinstance(label, bool):
        return "boolean"
    return "category" if isinstance(label, str) else "number"


def _column(labels: Sequence[Any], kind: str) -> Any:
    """Labels as a table's column of this kind has them."""
    if kind == "number":
        return np.array([float(label) for label in labels]) + 0.0  # no −0
    return np.array(labels)


def _served(lessons: Sequence[Lesson]) -> tuple[Any, Any]:
    """What was served, as `ServedDriver` takes it."""
    if any(isinstance(lesson.served, np.ndarray) for lesson in lessons):
        return None, [lesson.served for lesson in lessons]
    if all(lesson.served is None for lesson in lessons):
        return None, None
    return np.array([np.nan if lesson.served is None else lesson.served for lesson in lessons]), None
