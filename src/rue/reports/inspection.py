"""What a model is, on a page to read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue import ledger as accounts
from rue.learners.mixture.standing import Standing, standing
from rue.models.file import Model
from rue.reports.explaining import features_in_use, weights_of
from rue.reports.report import list_kinds
from rue.reports.scoring import metrics_in_words, metrics_report
from rue.runs.certifying import certificate_of
from rue.runs.class_weights import BALANCED, ClassWeights
from rue.runs.driver import NO_CERTIFICATE
from rue.streams.labels import plain
from rue.streams.tables.columns import Columns

__all__ = ["describe", "largest_weights"]


def largest_weights(model: Model, most: int = 10) -> list[tuple[str, float]]:
    """The features with the largest weights by magnitude, the intercept among them, and their weights.

    Of more than two classes, a feature has a weight for each.
    """
    if model.learner.t == 0:
        return []
    return [
        (f"{name} for {classes[0]!r}" if classes else name, weight)
        for name, *classes, weight in weights_of(model).largest(most)
    ]


def describe(model: Model, most: int = 10, radius: float | None = None) -> str:
    """Settings, size, examples learnt, the largest weights by name, the certificate and the history.

    The certificate is about the learner's own domain, or about the ball of a `radius`.
    """
    learner, labels = model.learner, model.labels
    lines = [repr(learner), learner.explain()]
    lines.append(f"{learner.t:,} examples learnt, {learner.d:,} features, {features_in_use(learner):,} with a weight")
    if labels is not None and labels.task == "classify":
        lines.append(f"predictions above 0 mean {plain(labels.positive)!r}, those below {plain(labels.negative)!r}")
    if labels is not None and labels.task == "multiclass":
        named = ", ".join(f"{1 + i} is {name!r}" for i, name in enumerate(labels.classes[:most]))
        lines.append(f"{len(labels.classes):,} classes: {named}{', …' * (len(labels.classes) > most)}")
    if (weights := ClassWeights.from_json(model.counts.get("class_weight"))) is not None and labels is not None:
        now = ", ".join(f"{name!r} {weight:.4g}" for name, weight in list(weights.now(labels).items())[:most])
        lines.append(f"examples weigh by class, {'balanced' if weights.rule == BALANCED else 'as given'}: {now}")
    if model.features.get("columns") is not None:
        columns = Columns.from_dict(model.features["columns"])
        found = list_kinds({"dates": columns.dates, "text": columns.texts})
        lines += [f"columns of {found}"] if found else []
    if model.position is not None:
        lines.append("stopped before the end of its data: it can be resumed there")
    if (members := standing(learner)) is not None and learner.t:
        lines += _section("members", [*str(members).split("\n"), *_over_time(model, members)])
    lines += _section("metrics", _metrics(model))
    lines += _section(
        "largest weights", [f"{weight:>12.6g}  {_shown(name)}" for name, weight in largest_weights(model, most)]
    )
    if learner.loss.task == "multiclass":
        lines += _section("certificate", [f"{NO_CERTIFICATE}."])
    elif model.evidence is not None and model.evidence.ledger.sums[accounts.EXAMPLES] > 0.0:
        left_out = sum(int(model.counts.get(name, 0)) for name in ("refused", "skipped"))
        lines += _section("certificate", [str(certificate_of(learner, model.evidence, left_out, radius))])
    lines += _section("history", [_event(event) for event in model.history])
    return "\n".join(lines)


def _metrics(model: Model) -> list[str]:
    """Accuracy and the like of the predictions made before each update."""
    found = metrics_report(model.metrics, model.labels)
    rows = [text if heading in ("metrics", "") else f"{heading}: {text}" for heading, text in metrics_in_words(found)]
    if found is not None and found["examples"] < model.learner.t:
        rows.append(f"of the last {found['examples']:,} examples")
    return rows


LOOKS = 5
"""At how many moments the page shows the weights of members."""
LEADING = 0.2
"""A member leads if it is the heaviest and has at least this weight."""


def _over_time(model: Model, mixture: Standing) -> list[str]:
    """How the weight of the members that lead, or have led, has moved; a dash where one had retired."""
    course = model.course
    if len(course.t) < LOOKS:
        return []
    t = [*course.t, model.learner.t]
    last = len(t) - 1 - (t[-1] == t[-2])
    now = [member.loss if member.running else math.nan for member in mixture.members]
    weights = np.where(
        np.isnan([*course.losses, now]), math.nan, [*course.weights, [m.weight for m in mixture.members]]
    )
    chosen = sorted({round(k * last / LOOKS) for k in range(1, 1 + LOOKS)})
    led = [int(np.nanargmax(weights[k])) for k in reversed(chosen) if np.nanmax(weights[k]) >= LEADING]
    heavy = [mixture.members.index(member) for member in mixture.heaviest()]
    names = ["weight after", *(f"{t[k]:,}" for k in chosen)]
    rows = [[str(mixture.members[i]), *map(_share, weights[chosen, i])] for i in dict.fromkeys(heavy + led)]
    width = max(50, *(len(name) for name, *_ in rows)) if rows else 50
    return [f"{name:{width}}" + "".join(f"{text:>12}" for text in rest) for name, *rest in [names, *rows]]


def _share(weight: float) -> str:
    return "–" if math.isnan(weight) else f"{weight:.0%}"


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _shown(name: str) -> str:
    """A name on one line."""
    return name if name.isprintable() else repr(name)


def _event(event: Any) -> str:
    """One line of history, whatever it says."""
    known = {"date", "examples", "data", "rue"}
    event = {"date": None, **event} if isinstance(event, dict) and "shards" in event else event
    if not isinstance(event, dict) or not known <= set(event):
        return str(event)
    data = event["data"] if isinstance(event["data"], list) else [event["data"]]
    source = f" of {', '.join(map(str, data))}" if data else ""
    rest = "".join(f", {name} {value}" for name, value in event.items() if name not in known)
    examples = f"{event['examples']:,}" if isinstance(event["examples"], int) else str(event["examples"])
    date = "" if event["date"] is None else f"{event['date']}: "
    return f"{date}{examples} examples{source}{rest}, by rue {event['rue']}"
