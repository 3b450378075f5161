"""Metrics, and evaluations on rows that were not learnt, as parts of a report: for JSON, and in words."""

from __future__ import annotations

import math
from typing import Any

from rue.runs.evaluation import Evaluation
from rue.runs.metrics import Metrics
from rue.streams import Labels
from rue.streams.labels import plain

__all__ = ["baselines_in_words", "evaluation_report", "metrics_in_words", "metrics_report"]


def metrics_report(metrics: Metrics, labels: Labels | None) -> dict[str, Any] | None:
    """The metrics, ready for JSON; None where no example was scored.

    `confusion` has a row for each true and a column for each predicted class, in the order of `classes`.
    """
    if labels is None or not metrics.examples:
        return None
    names = [labels.negative, labels.positive] if labels.task == "classify" else list(labels.classes)
    parts = {} if labels.task == "regress" else {"classes": list(map(plain, names))}
    over_time = {name: values.tolist() for name, values in metrics.over_time().items()}
    summary: dict[str, Any] = _plain({"examples": metrics.examples, **parts, **metrics, "over_time": over_time})
    return summary


def _plain(value: Any) -> Any:
    """For JSON, which knows neither infinity nor NaN."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value if not isinstance(value, float) or math.isfinite(value) else None


def metrics_in_words(metrics: dict[str, Any] | None) -> list[tuple[str, str]]:
    """The lines about metrics: a heading and a text each."""
    if metrics is None:
        return []
    if "mae" in metrics:
        values = (
            f"{name} {_shown(metrics[key], '.6g')}" for name, key in zip(_ERRORS, ("mae", "rmse", "r2"), strict=True)
        )
        return [("metrics", ", ".join(values))]
    shares = {name: _shown(metrics[name], ".2%") for name in ("accuracy", "balanced_accuracy")}
    first = f"accuracy {shares['accuracy']}, balanced over the classes {shares['balanced_accuracy']}"
    three = [
        f"{name} {_shown(metrics[key], '.2%')}" for name, key in zip(_HITS, ("precision", "recall", "f1"), strict=True)
    ]
    error = metrics["auc_error_at_most"]
    area = _shown(metrics["auc"], ".4f") + (f" ± {_one_digit_up(error)}" if error else "")
    if "by_class" in metrics:
        each = "" if metrics["auc"] is None else f"; ROC AUC {area}, the mean of each class against all others"
        lines = [("metrics", f"{first}{each}")]
        if metrics["precision"] is not None:
            lines.append(("", f"{', '.join(three)}: means over the {len(metrics['classes']):,} classes"))
        return lines
    negative, positive = map(repr, metrics["classes"])
    (calm, alarms), (missed, hits) = metrics["confusion"]
    return [
        ("metrics", f"{first}; ROC AUC {area}"),
        ("", f"{', '.join(three)} of {positive}"),
        (
            "confusion",
            f"{_weight(calm)} of {negative} right, {_weight(alarms)} predicted {positive}; "
            f"{_weight(hits)} of {positive} right, {_weight(missed)} predicted {negative}",
        ),
    ]


_ERRORS = ("mean absolute error", "root mean square error", "R²")
_HITS = ("precision", "recall", "F1")


def _shown(value: float | None, how: str) -> str:
    return "–" if value is None else format(value, how)


def _one_digit_up(error: float) -> str:
    """A bound below 1 with one digit, rounded up so that it stays a bound.

    >>> _one_digit_up(0.00012), _one_digit_up(0.097)
    ('0.0002', '0.1')
    """
    places = -math.floor(math.log10(error))
    return f"{math.ceil(error * 10.0**places) / 10.0**places:.{places}f}".rstrip("0")


def _weight(value: float | None) -> str:
    """A sum of weights; one that is more than a number can hold is not known."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == math.floor(value) else f"{value:,.6g}"


def evaluation_report(evaluation: Evaluation | None, **more: Any) -> dict[str, Any] | None:
    """An evaluation, ready for JSON; None where there was none. Baselines are totals, as `loss_total` is."""
    if evaluation is None:
        return None
    known = evaluation.examples > 0
    mistakes = evaluation.mistakes
    summary: dict[str, Any] = _plain(
        {
            **more,
            "examples": evaluation.examples,
            "unlabelled": evaluation.unlabelled,
            "skipped": evaluation.skipped,
            "weight_total": evaluation.weight,
            "loss_total": evaluation.loss,
            "risk": evaluation.risk if known else None,
            "mistakes": mistakes,
            "error_rate": mistakes / evaluation.examples if mistakes is not None and known else None,
            "best_constant": evaluation.best_constant if known else None,
            "training_constant": evaluation.training_constant if known else None,
            "no_change": evaluation.no_change if known else None,
            "warning": evaluation.behind or None,
            "metrics": metrics_report(evaluation.metrics, evaluation.labels),
        }
    )
    return summary


def baselines_in_words(evaluation: dict[str, Any]) -> str:
    """The mean losses that an evaluation is to be compared with."""
    constants = {
        "constant of the rows learnt": "training_constant",
        "best constant in hindsight": "best_constant",
        "saying the last label again": "no_change",
    }
    weight = evaluation["weight_total"]
    known = {name: evaluation[key] for name, key in constants.items() if None not in (weight, evaluation[key])}
    return ", ".join(f"{name} {total / weight:.6g}" for name, total in known.items()) or "–"
