"""`Fold`: all models of a folder, made by one pass over its log in order."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from rue.errors import DataError, SettingsError, shown
from rue.serve.model import Answer, Lesson, ServedModel
from rue.serve.race import Race
from rue.serve.records import (
    CHALLENGE,
    CREATE,
    EXPIRE,
    FORGET,
    LABEL,
    LEARN,
    PREDICT,
    PROMOTE,
    ROLLBACK,
    Line,
    Record,
)
from rue.serve.settings import Settings, settings_of

__all__ = ["Fold", "require_name"]

MOST_MODELS = 1000
BLOCK = 4096
"""Records that are applied together in a replay."""
_TURNS = frozenset((CHALLENGE, PROMOTE, ROLLBACK))
_LESSONS = frozenset((PREDICT, LABEL, LEARN, EXPIRE, FORGET))


class Fold:
    """The state of a service: a pure function of the records of its log, in their order.

    >>> fold = Fold()
    >>> _ = fold.apply([Record(1, 0, 1, CREATE, "default", b"{}")])
    >>> [model.name for model in fold.models.values()]
    ['default']
    """

    def __init__(self) -> None:
        self.models: dict[int, ServedModel] = {}
        self.numbers: dict[str, int] = {}
        """The numbers of the models, by their names."""
        self.seq = self.at = 0
        self.races: dict[int, Race] = {}
        """The challengers, by the numbers of their models."""
        self.ready: ServedModel | None = None
        """A challenger that has just gone through the log, for the record that begins its race."""
        self.history: Callable[[int, int], Iterable[Record]] | None = None
        """The records of the log after a number, up to another one."""
        self.restore: Callable[[int], Fold] = self._replayed
        """The state after a record."""
        self.watchers: list[Callable[[ServedModel, Sequence[Lesson]], None]] = []
        """Called with what each model has just learnt."""

    def named(self, name: str) -> ServedModel:
        """A model by its name."""
        number = self.numbers.get(name)
        if number is None:
            raise DataError(f"there is no model {shown(name)}: PUT /v1/models/{name} creates one.")
        return self.models[number]

    def replay(self, records: Iterable[Record]) -> None:
        """Go through the rest of a log."""
        following = iter(records)
        while part := list(itertools.islice(following, BLOCK)):
            try:
                self.apply(part)
            except SettingsError:  # what is asked of a replay, and not the log, is wrong
                raise
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise DataError(
                    f"records {part[0].seq} to {part[-1].seq} of the log cannot be applied "
                    f"({type(error).__name__}: {str(error)[:200].rstrip('.')}): please report this."
                ) from error

    def apply(self, records: Sequence[Record], lines: Sequence[Line | None] = ()) -> list[Answer]:
        """Apply records, of which `lines` has what is decoded already; an answer for each."""
        answers: list[Answer | None] = [None] * len(records)
        lines = lines or [None] * len(records)
        places: dict[int, list[int]] = {}
        for i, record in enumerate(records):
            if record.kind == CREATE:
                self._create(record)
            places.setdefault(record.model, []).append(i)
        # Records of one model are applied together, so that its predictions are made in one call: a service with many
        # models has few records of each in a group. What happens to one model is no business of another.
        for number, mine in places.items():
            found = self._apply(self.models[number], [records[i] for i in mine], [lines[i] for i in mine])
            for i, answer in zip(mine, found, strict=True):
                answers[i] = answer
        self.seq, self.at = records[-1].seq, records[-1].at
        return [answer for answer in answers if answer is not None]

    def _apply(self, model: ServedModel, records: Sequence[Record], lines: Sequence[Line | None]) -> list[Answer]:
        """Apply records of a model, and those after a challenge to its challenger too."""
        answers: list[Answer] = []
        begin = 0
        for end in [i for i, record in enumerate(records) if record.kind in _TURNS] + [len(records)]:
            if begin < end:
                answers += self._both(model, records[begin:end], lines[begin:end])
            if end < len(records):
                answers.append(self._turn(model, records[end]))
            begin = end + 1
        return answers

    def _both(self, model: ServedModel, records: Sequence[Record], lines: Sequence[Line | None]) -> list[Answer]:
        race = self.races.get(model.number)
        if race is None:
            return model.apply(records, lines)
        model.losses, race.challenger.losses = [], []
        answers = model.apply(records, lines)
        race.challenger.apply(records, lines)
        race.compare(model.losses, race.challenger.losses)
        model.losses = race.challenger.losses = None
        return answers

    def _turn(self, model: ServedModel, record: Record) -> Answer:
        """A challenge, a promotion, or a step back."""
        content = msgspec.json.decode(record.body)
        model.seq, model.at = record.seq, record.at
        if record.kind == CHALLENGE:
            challenger = self.ready or self.challenger(
                model, settings_of(content["options"]), content["from"], record.seq - 1
            )
            self.races[model.number] = Race.against(model, challenger, record.seq)
            return Answer(201, {"challenger": content["options"], "learnt": challenger.t})
        if record.kind == PROMOTE:
            model.succeed(self.races.pop(model.number).challenger, "a challenger was promoted")
            return Answer(200, {"promoted": model.settings.to_json()})
        self.races.pop(model.number, None)
        model.succeed(self.restore(content["to"]).models[model.number], f"back to record {content['to']}")
        return Answer(200, {"back_to": content["to"]})

    def challenger(self, model: ServedModel, settings: Settings, begin: int, upto: int) -> ServedModel:
        """A model with other settings that has gone through the records of another one from `begin` on."""
        assert self.history is not None
        challenger = ServedModel(model.number, model.name, settings)
        following = (r for r in self.history(begin - 1, upto) if r.model == model.number and r.kind in _LESSONS)
        while part := list(itertools.islice(following, BLOCK)):
            challenger.apply(part)
        return challenger

    def _replayed(self, upto: int) -> Fold:
        assert self.history is not None
        fold = Fold()
        fold.history = self.history
        fold.replay(self.history(0, upto))
        return fold

    def _create(self, record: Record) -> None:
        name = str(record.id)
        self.numbers[name] = record.model
        model = ServedModel(record.model, name, settings_of(msgspec.json.decode(record.body)))
        model.watchers = self.watchers
        self.models[record.model] = model

    def creation(self, name: str, settings: Settings) -> Record | None:
        """The record that creates a model (its number and time are filled in later); None if there is the same one."""
        require_name(name)
        number = self.numbers.get(name)
        if number is not None:
            if self.models[number].created not in (settings, settings.dated()):
                raise DataError(f"the model {shown(name)} exists with other options: give it another name.")
            return None
        if len(self.models) >= MOST_MODELS:
            raise DataError(f"there are {MOST_MODELS} models already.")
        return Record(
            0, 0, max(self.models, default=0) + 1, CREATE, name, msgspec.json.encode(settings.dated().to_json())
        )


def require_name(name: str) -> None:
    """Refuse what cannot be the name of a model."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
        raise DataError(f"a model's name has 1 to 64 letters, digits, dots, _ and -, not {shown(name)}.")
