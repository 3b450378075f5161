"""Options that must not contradict the model that a run goes on with."""

from __future__ import annotations

from rue.cli import options as o
from rue.errors import SettingsError
from rue.models.file import Model
from rue.runs.class_weights import ClassWeights
from rue.runs.resuming import require_same_lags
from rue.streams.labels import is_called

__all__ = ["require_same_settings"]

FREE = ("--format", "--separator", "--max-line", "--bad")
"""Options that may be given with --resume: the model does not decide them."""


def require_same_settings(model: Model, data: o.DataOptions, learning: o.LearnerOptions) -> None:
    """Refuse options that contradict a model."""
    columns = model.features.get("columns") or {}
    same = {
        "--target": columns.get("target"),
        "--weight": columns.get("weight"),
        "--id": columns.get("id") if columns else data.id,  # of VW text it is the tag
        "--bits": model.features.get("bits", columns.get("bits", 20)),  # text has bits but no columns
        "--decimal": columns.get("decimal"),
        "--expert-column": ",".join(columns.get("experts", ())),
        "--cross": [",".join(one) for one in columns.get("crosses", ())],
        "--word-pairs": columns.get("word_pairs", False),
        "--interact": ",".join(model.features.get("interact", ())),
        "--day-first": columns.get("order") == "day-first",
        "--month-first": columns.get("order") == "month-first",
        "--linear": model.learner.algorithm.name == "Mixture",
    }
    class_weights = ClassWeights.from_json(model.counts.get("class_weight"))
    if model.labels is not None and data.positive is not None and is_called(model.labels.positive, data.positive):
        same["--positive"] = data.positive
    if (given := ClassWeights.make(data.class_weight)) is not None and class_weights is not None:
        same["--class-weight"] = data.class_weight if given.rule == class_weights.rule else None
    if (lags := learning.chosen_lags()) is not None:
        require_same_lags(model.learner, lags, f"--lags {learning.lags}")
        same["--lags"] = learning.lags
    if data.binned and data.binned == tuple((name, n) for name, n in columns.get("bins", ())):
        same["--bins"] = data.bins
    for name, value in (o.changed(learning) | o.changed(data)).items():
        if name not in FREE and value != same.get(name):
            raise SettingsError(f"{name} contradicts --resume: the model has its settings; leave {name} out.")
