"""Merging models: learner, evidence, labels and counts of several parts of a stream, as one model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from rue.errors import SettingsError
from rue.learners.merging import merge
from rue.learners.mixture.standing import Course, next_mark
from rue.models.file import Model
from rue.runs.baselines import Baselines
from rue.runs.class_weights import ClassWeights
from rue.streams import Labels

__all__ = ["merge_models"]

_ADDED = ("skipped", "refused", "unlabelled", "missing")
"""The counts that add up; `_baselines` merges the others."""


def merge_models(base: Model, parts: Sequence[Model]) -> Model:
    """The model for all the examples that several parts have learnt, each of which went on from a copy of `base`.

    Learners are merged as `rue.learners.merge` says, evidence as `Evidence.merge` does. Of more than two classes each
    part may have numbered new ones in its own order: they are brought into one. A base that has seen no labels takes
    their meaning from the parts, which must agree.

    >>> import rue
    >>> X, y = rue.census()
    >>> run = rue.learn(X[:200], y[:200], learner=rue.OGD("hinge"))
    >>> base = Model(run.learner, run.evidence, run.labels)
    >>> len(merge_models(base, [base, base]).history)
    0
    """
    parts = list(parts)
    labels, numbers = _common_labels(base.labels, [part.labels for part in parts])
    learner = merge(base.learner, [part.learner for part in parts], numbers)
    evidence = None
    if base.evidence is not None and all(part.evidence is not None for part in parts):
        evidence = base.evidence.merge([part.evidence for part in parts if part.evidence is not None])
        evidence.follow(learner)
    for k, part in enumerate(parts):
        if base.features and part.features != base.features:
            raise SettingsError(f"merge: parts[{k}] makes features of data in another way than the base.")
    if any(model.watch.asked for model in (base, *parts)):
        raise SettingsError("merge: intervals and alarms are about one sequence of examples, and cannot be merged.")
    if any(model.ensemble is not None for model in (base, *parts)):
        raise SettingsError(
            "merge: outside experts and calibrate are about one sequence of examples: they cannot be merged."
        )
    known = len(base.history)
    begun = [part for part in parts if part.learner.t > base.learner.t]
    return Model(
        learner,
        evidence,
        labels,
        history=[*base.history, *(entry for part in parts for entry in part.history[known:])],
        features=base.features or next((part.features for part in parts if part.features), {}),
        names={slot: name for part in (*reversed(parts), base) for slot, name in part.names.items()},
        counts=_added(base.counts, [part.counts for part in parts])
        | _baselines(base, parts, numbers)
        | _class_weights(base, parts, numbers),
        course=_course(base, parts, learner),
        metrics=base.metrics.merge([part.metrics for part in parts], numbers),
        background=begun[0].background if len(begun) == 1 else None,  # rows of one part say little of the others
    )


def _common_labels(base: Labels | None, parts: Sequence[Labels | None]) -> tuple[Labels | None, list[Any] | None]:
    """What labels mean, and for each part the numbers of its classes; None where they keep theirs."""
    known = [labels for labels in (base, *parts) if labels is not None]
    if not known:
        return None, None
    if known[0].task != "multiclass":
        for labels in known:
            names = zip((labels.negative, labels.positive), (known[0].negative, known[0].positive), strict=True)
            if labels.task != known[0].task or any(a != b and a is not None and b is not None for a, b in names):
                raise SettingsError(f"merge: labels mean {known[0]!r} in one part and {labels!r} in another.")
        return next((labels for labels in known if None not in (labels.negative, labels.positive)), known[0]), None
    classes = dict.fromkeys(name for labels in known for name in labels.classes)
    number = {name: k for k, name in enumerate(classes, 1)}
    mine = [None if own is None else [number[name] for name in own.classes] for own in parts]
    orders = [None if own is None or own == list(range(1, len(own) + 1)) else own for own in mine]
    return Labels("multiclass", classes=tuple(classes)), orders


def _added(base: dict[str, Any], parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The sums of the whole history, each part's since the base."""
    names = [name for name in _ADDED if any(name in counts for counts in (base, *parts))]
    return {name: base.get(name, 0) + sum(part.get(name, 0) - base.get(name, 0) for part in parts) for name in names}


def _baselines(base: Model, parts: Sequence[Model], numbers: list[Any] | None) -> dict[str, Any]:
    """The counts of the baselines, as `Baselines.merge` says; `numbers` are those that the classes of each part get."""
    if not all("baselines" in part.counts for part in parts):
        return {}  # of a model that was saved without them
    begun, *others = (Baselines.from_dict(model.counts) for model in (base, *parts))
    for part, new in zip(others, numbers or [None] * len(others), strict=True):
        if new is not None:
            part.renumber(new)
    return begun.merge(others).to_dict()


def _class_weights(base: Model, parts: Sequence[Model], numbers: list[Any] | None) -> dict[str, Any]:
    """What class weights have counted, each part's since the base; `numbers` are those its classes get."""
    begun = ClassWeights.from_json(base.counts.get("class_weight"))
    weights = [ClassWeights.from_json(part.counts.get("class_weight")) for part in parts]
    used = [one for one in (begun, *weights) if one is not None]
    if not used:
        return {}
    if None in weights or any(one.rule != used[0].rule for one in used):
        raise SettingsError("merge: the parts were learnt with different class weights.")
    known = {} if begun is None else begun.counts
    counts = dict(known)
    for one, new in zip(weights, numbers or [None] * len(parts), strict=True):
        for number, many in one.counts.items() if one is not None else ():
            merged = number if new is None else float(new[int(number) - 1])
            counts[merged] = counts.get(merged, 0) + many - known.get(number, 0)
    return {"class_weight": ClassWeights(used[0].rule, counts).to_json()}


def _course(base: Model, parts: Sequence[Model], learner: Any) -> Course:
    """How a mixture's members have stood: as in the base and, when it is time to look again, as they stand now."""
    begun = [part for part in parts if part.learner.t > base.learner.t]
    if len(begun) == 1:
        return copy.deepcopy(begun[0].course)
    course = copy.deepcopy(base.course)
    course.seen += sum(part.course.seen - base.course.seen for part in parts)
    if begun and learner.t >= next_mark(course.t[-1] if course.t else 0):
        course.look(learner)
    return course
