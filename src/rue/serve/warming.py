"""Goes once through what a service does, so that its first request waits for no compiler."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from rue.serve.model import ServedModel
from rue.serve.records import LABEL, LEARN, PREDICT, Record
from rue.serve.settings import Settings
from rue.serve.snapshots import model_file
from rue.serve.status import glance, report_of

__all__ = ["exercise", "warm"]


def warm() -> None:
    """Two classes, numbers, and several classes, by the default learners."""
    for labels in ((True, False), (0.5, 2.5, 1.0), ("a", "b", "c")):
        exercise(Settings(task="multiclass" if labels[0] == "a" else "auto").dated(), labels)


def exercise(settings: Settings, labels: Sequence[Any]) -> None:
    """Predict and learn some rows, late and at once, singly and together."""
    model, chance = ServedModel(1, "warm", settings), random.Random(0)
    records: list[Record] = []

    def add(kind: int, id_: str | None, **content: Any) -> None:
        records.append(Record(len(records) + 1, 0, 1, kind, id_, msgspec.json.encode(content)))

    for i in range(8):
        features = {"x": chance.random(), "y": chance.random(), "word": chance.choice("abc")}
        add(PREDICT, f"{i}", features=features)
        add(LEARN, None, features=features, label=labels[i % len(labels)])
        add(LABEL, f"{i}", id=f"{i}", label=labels[(i + 1) % len(labels)])
    model.apply(records)
    for record in records:
        model.apply([record._replace(id=None if record.id is None else f"{record.id}-", kind=record.kind)])
    report_of(model)
    glance(model)
    model_file(model)
