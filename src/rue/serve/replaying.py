"""The log of a service gone through again, without a server: the same report, certificate and model, to the last bit.

The log is opened for reading alone, also while a server writes it, and never changed. `export` writes the examples that
were learnt, in their order, as JSON lines that `rue learn` makes the same model of, and the predictions that were
served, of which `rue certify` makes the same certificate.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rue.errors import DataError, SettingsError
from rue.outputs import Output
from rue.serve.fold import Fold
from rue.serve.log import Log
from rue.serve.model import ServedModel
from rue.serve.snapshots import newest_of, require_whole

__all__ = ["Export", "columns_of", "replayed"]


def replayed(folder: str, upto: int | None = None, export: Export | None = None) -> Fold:
    """The fold over the log of a folder from its first record on, up to a record if one is named."""
    newest = newest_of(Path(folder))  # before the log is opened: a server may be writing
    log = Log(folder, read_only=True)
    try:
        if log.last < newest:
            require_whole(Path(folder), log.last)
        fold = Fold()
        fold.history = log.read
        if export is not None:
            export.fold = fold
            fold.watchers.append(export.learnt)
        if upto is not None and not 0 < upto <= log.last:
            raise DataError(f"the log in {folder} has records 1 to {log.last}, not {upto}.")
        fold.replay(log.read(0, upto))
    finally:
        log.close()
    return fold


class Export:
    """Writes what a model learnt, as JSON lines with the columns of the model, and what was served, as a CSV."""

    def __init__(self, model: str, examples: str | None, predictions: str | None) -> None:
        self.model = model
        self.files: list[Output | None] = [None if path is None else Output(path) for path in (examples, predictions)]
        self.fold: Fold | None = None
        self.rows = 0
        if self.files[1] is not None:
            self.files[1].write(b"prediction\n")

    def learnt(self, model: ServedModel, lessons: Sequence[Any]) -> None:
        """Some examples were learnt."""
        if model.name != self.model:
            return
        examples, predictions = self.files
        if examples is not None:
            target, weight = columns_of(model)
            table = model.reading.table([lesson.features for lesson in lessons]).to_pylist()
            for row, lesson in zip(table, lessons, strict=True):
                row.pop("", None)
                examples.write(msgspec.json.encode(row | {target: lesson.label, weight: lesson.weight}) + b"\n")
        if predictions is not None:
            if model.driver.labels is not None and model.driver.labels.task == "multiclass":
                raise SettingsError("--predictions are of scores: of more than two classes there is no certificate.")
            predictions.write(b"".join(b"%s\n" % _digits(p) for p in model.driver.scored.tolist()))
        self.rows += len(lessons)

    def finish(self) -> None:
        """Give the files their names."""
        for file in self.files:
            if file is not None:
                file.finish()

    def abandon(self) -> None:
        """Remove what was written."""
        for file in self.files:
            if file is not None:
                file.abandon()

    def command(self) -> str:
        """What makes the same model of the file of examples, for a shell: names of features came over the network."""
        assert self.fold is not None
        model, examples = self.fold.named(self.model), self.files[0]
        target, weight = columns_of(model)
        data = [] if examples is None else [str(examples.path)]
        return shlex.join(["rue", "learn", *data, "--target", target, "--weight", weight, *_options(model)])


def _digits(p: float) -> bytes:
    return b"" if p != p else repr(p).encode()


def columns_of(model: ServedModel) -> tuple[str, str]:
    """What the label and the weight are called in the export: no name that a feature has."""
    taken = set() if model.reading.columns is None else set(model.reading.columns.kinds)
    target, weight = "label", "weight"
    while target in taken:
        target += "_"
    while weight in taken:
        weight += "_"
    return target, weight


def _options(model: ServedModel) -> Iterator[str]:
    """The options of `rue learn` that the model was made with, and what was settled by its first examples."""
    if model.settings.dated() != model.settings:  # of a log from before stages
        yield "--linear"
    settings = model.settings.to_json()
    for name, value in settings.items():
        if name in ("columns", "category", "text", "drop", "stages"):
            continue
        if name == "intercept":
            yield "--no-intercept"
        elif name == "order":
            yield f"--{value}"
        elif value is True:
            yield f"--{name}"
        else:
            listed = ",".join(map(str, value)) if isinstance(value, list) else value
            yield from (f"--{name.replace('_', '-')}", str(listed))
    plan = () if model.reading.columns is None else model.reading.columns.plan
    for kind in ("category", "text"):
        names = [name for name, own in plan if own == kind]
        if names:
            yield from (f"--{kind}", ",".join(names))
