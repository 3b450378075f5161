"""What a frozen model says, as plain JSON: the document that every form of export is made from.

`FORMULA` is in the document, and docs/jobs/export.md has all of it. `rue.exports.standalone` computes it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.errors import DataError, SettingsError
from rue.learners import ClassLearner, Learner
from rue.learners.staged.point import FrozenStages
from rue.maps import Map
from rue.maps.table import (
    ACTIVE,
    CLOSED,
    COLUMN,
    COUNT,
    DISTINCT,
    DUE,
    FEW,
    FIRST,
    FIRST_DRAW,
    MARKED,
    MARKS,
    NAME,
    RANKED,
    TELLING,
)
from rue.maps.table import MANY as COLUMNS_IN_USE
from rue.models.file import Model
from rue.registry import is_own
from rue.streams.labels import plain
from rue.streams.tables.columns import Columns
from rue.streams.tables.spelling import MISSING, date_patterns
from rue.version import __version__

__all__ = ["FORMULA", "VERSION", "document_of"]

VERSION = 1
"""Of the document; raised when a reader of the old one would read the new one wrongly."""
FORMULA = (
    "score = clip(intercept + sum of weights[j] * x[j], range); x[j] are the features that `input` makes of a row, and "
    "with `stages` the score is sum of shares[k] * prediction[k] (docs/jobs/export.md). Of classes a score above 0 "
    "means `positive`; link log-odds: its probability is 1 / (1 + exp(-score)); log-mean: the value is exp(score)."
)


def document_of(model: Model) -> dict[str, Any]:
    """The frozen model as JSON has it; one that cannot be written so is refused.

    >>> import rue
    >>> run = rue.learn([[1.0, 2.0], [3.0, -1.0]], [1, -1], learner=rue.Perceptron(intercept=False))
    >>> from rue.models.file import model_of
    >>> document_of(model_of(run))["weights"]
    {'0': -2.0, '1': 3.0}
    """
    learner = model.learner
    _require_exportable(model)
    frozen = learner.frozen()
    of_features = _without_lags(frozen.learner, _by_feature(frozen.learner, frozen.point_in_places()))
    point = frozen.learner._point
    labels, loss = model.labels, learner.loss
    classes = {} if labels is None else {"negative": plain(labels.negative), "positive": plain(labels.positive)}
    ends = frozen.range
    return {
        "format": "rue export",
        "version": VERSION,
        "rue": __version__,
        "formula": FORMULA,
        "examples": learner.t,
        "task": loss.task,
        "link": "log-odds" if loss.log_odds else "log-mean" if loss.log_mean else "identity",
        "negative": -1,
        "positive": 1,
        **(classes if loss.task == "classify" else {}),
        "input": _input(model),
        "range": None if ends is None or not all(map(math.isfinite, ends)) else list(ends),
        "intercept": of_features.pop(-1, 0.0),
        "weights": {str(j): weight for j, weight in of_features.items()},
        "stages": _stages(frozen.learner, point) if isinstance(point, FrozenStages) else None,
    }


def _require_exportable(model: Model) -> None:
    """Refuse what is no sum of weights times features, nor stages over such sums."""
    learner = model.learner
    if model.ensemble is not None:
        if not model.ensemble.names:
            raise SettingsError(
                "export: probabilities that are corrected (--calibrate) cannot be exported: learn without --calibrate."
            )
        raise SettingsError(
            "export: the model needs the predictions of outside experts with every row, which no exported file has: "
            "learn without --expert."
        )
    if isinstance(learner, ClassLearner):
        raise SettingsError(
            "export: more than two classes are a mixture of many softmax models, whose weights depend on the row: "
            "export a model for each class against the others (--positive), or use rue predict."
        )
    if learner.lags is not None and learner.algorithm.stage_names():
        raise SettingsError(
            "export: stages over maps that see the last labels cannot be exported: learn without --lags, or with "
            "--linear."
        )
    tried = learner.algorithm.tries_frozen
    if learner.t == 0:
        raise DataError("export: the model has learnt nothing yet.")
    if tried is not None and not learner.frozen().chosen:
        raise DataError(
            f"export: the model has learnt {learner.t:,} examples; before it has tried frozen copies of its weights, "
            f"which it does from {tried} on, it is a mixture and no single set of weights: learn more of them."
        )


def _by_feature(learner: Learner, array: Any) -> dict[int, Any]:
    """The rows of an array of the learner's coordinates that are not 0, by feature; −1 is the intercept."""
    array = array[: learner.places]
    coordinates = learner.coordinates_of_places()
    used = np.flatnonzero(array)
    of_used = used if coordinates is None else coordinates[: array.size][used]
    pairs = zip((of_used - int(learner.intercept)).tolist(), array[used].tolist(), strict=True)
    return dict(sorted(pair for pair in pairs if pair[0] >= -int(learner.intercept)))


def _without_lags(learner: Learner, weights: dict[int, float]) -> dict[int, float]:
    """The weights of the data's own features: no label comes any more, so that the last ones belong to the intercept.

    >>> import rue
    >>> learner = rue.OGD("square", step="fixed:0.5").with_lags([1])
    >>> for y in (1.0, 3.0):
    ...     learner.update([1.0], y)
    >>> weights = _without_lags(learner, {-1: 0.5, 0: 2.0, 1: 4.0})
    >>> weights
    {-1: 6.5, 0: 4.0}
    """
    if learner.lags is None:
        return weights
    many, last = learner.lags.many, learner.lags.present().tolist()
    own = {j - many if j >= 0 else j: weight for j, weight in weights.items() if not 0 <= j < many}
    settled = sum(weights.get(j, 0.0) * value for j, value in enumerate(last))
    return {-1: own.pop(-1, 0.0) + settled, **own}


def _input(model: Model) -> dict[str, Any]:
    """How a row becomes features."""
    learner, columns = model.learner, model.features.get("columns")
    if columns is not None:
        read = Columns.from_dict(columns)
        return {
            "kind": "table",
            "plan": [list(column) for column in read.plan],
            "own": list(read.own),
            "slots": read.slots,
            "bins": _bins(learner, read),
            "bits": read.bits,
            "crosses": [list(names) for names in read.crosses],
            "word_pairs": read.word_pairs,
            "starts": [list(start) for start in read.starts],
            "decimal": read.decimal,
            "patterns": list(date_patterns(read.order)),
            "missing": MISSING,
            "version": read.version,
        }
    if learner.names.places:
        places = {name if isinstance(name, str) else str(name): j for name, j in learner.names.places.items()}
        return {"kind": "names", "places": places}
    if model.features.get("kind") == "vw":
        return {"kind": "vw", "bits": model.features["bits"], "interact": list(model.features.get("interact", ()))}
    many = learner.own_features
    names = [model.names.get(j) for j in range(many)] if len(model.names) == many else None
    return {"kind": "numbers", "features": many, "names": names}


def _bins(learner: Learner, read: Columns) -> list[dict[str, Any]]:
    """The columns that are put into bins: what splits their past, as far as there is one, and the first bin's slot."""
    if learner.bins is None:
        return []
    bins = [learner.bins.quantiles_of(c) for c in range(len(learner.bins.columns))]
    return [
        {"column": name, "bins": count, "first": first, "quantiles": None if edges is None else edges.tolist()}
        for (name, count), first, edges in zip(read.bins, read.first_bins, bins, strict=False)
    ]


# Stages.


def _stages(learner: Learner, point: FrozenStages) -> dict[str, Any]:
    """The other stages of `Staged`, and the table that their maps read."""
    algorithm: Any = learner.algorithm
    kinds: list[Any] = [_kind(each) for each in algorithm.maps] + [{"map": "stages"}]
    of_labels = point.labels.tolist()
    return {
        "shares": point.shares.tolist(),
        "centre": of_labels[0],
        "unit": of_labels[1],
        "mask": int(point.mask),
        "kinds": [kind if runs > 0.0 else None for kind, runs in zip(kinds, point.running[1:].tolist(), strict=True)],
        "intercepts": [float(weights[0]) for weights in point.weights],
        "weights": [
            {str(j): float(weights[1 + j]) for j in np.flatnonzero(weights[1:]).tolist()} for weights in point.weights
        ],
        "table": _table(point.table),
        "traits": _traits(learner, point),
    }


def _kind(each: Map) -> dict[str, Any]:
    """A map as JSON has it."""
    document = each.document() if is_own(type(each)) else None  # a user's subclass may make other features
    if document is None:
        raise SettingsError(
            f"export: {each!r} is a map of your own, which no exported file has: learn with rue's maps."
        )
    return document


def _traits(learner: Learner, point: FrozenStages) -> dict[str, Any]:
    """Of each feature that has occurred its first value, and the number of its column plus 1, or 0."""
    if point.table.rounds[CLOSED] > 0.0:
        return {}
    lines = _by_feature(learner, point.lines)
    traits = point.table.traits
    lines.pop(-1, None)
    return {str(j): [float(traits[line, FIRST]), int(traits[line, COLUMN])] for j, line in lines.items()}


def _table(table: Any) -> dict[str, Any]:
    """The columns: their values or quantiles."""
    of = table.rounds
    return {
        "open": bool(of[CLOSED] == 0.0 and of[DUE] != FIRST_DRAW),
        "active": int(of[ACTIVE]),
        "most_marks": MARKS,
        "low": np.flatnonzero(table.low == 1.0).tolist() if of[MARKED] <= FEW else [],
        "columns": [
            {
                "name": int(column[NAME]),
                "ranked": bool(column[RANKED] > 0.0),
                "telling": bool(column[TELLING] > 0.0),
                "numbers": table.numbers[c, : min(DISTINCT, int(column[COUNT]))].tolist(),
                "quantiles": table.quantiles[c].tolist(),
            }
            for c, column in enumerate(table.columns[: int(of[COLUMNS_IN_USE])])
        ],
    }
