"""What a prediction is answered, as JSON: a score, and what it means for the task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rue.runs.driver import Driver
from rue.runs.predicting import probabilities
from rue.streams import Block
from rue.streams.labels import plain

__all__ = ["of_classes", "of_scores"]


def of_scores(driver: Driver, block: Block, p: Any) -> list[dict[str, Any]]:
    """For each row of a block its score p, and the value, or the label and its probability."""
    loss, labels = driver.learner.loss, driver.labels
    assert labels is not None
    scores = p.tolist()
    if labels.task == "regress":
        values = np.exp(np.minimum(p, 700.0)).tolist() if loss.log_mean else scores
        contents = [{"score": score, "value": value} for score, value in zip(scores, values, strict=True)]
        if driver.watch.intervals is not None:
            lower, upper = driver.watch.predict(loss, driver.learner.with_last_labels(block), p, frozen=False)
            for content, low, high in zip(contents, lower.tolist(), upper.tolist(), strict=True):
                content["lower"], content["upper"] = _finite(low), _finite(high)
        return contents
    names = plain(labels.negative), plain(labels.positive)
    contents = [{"score": score, "label": names[score > 0.0]} for score in scores]
    if loss.log_odds:
        for content, chance in zip(contents, probabilities(p).tolist(), strict=True):
            content["probability"] = chance
        _add_sets(driver, contents, block, p, names)
    return contents


def of_classes(driver: Driver, block: Block, p: Any) -> list[dict[str, Any]]:
    """For each row of a block the most probable class, and the probabilities p of all."""
    assert driver.labels is not None
    names = [_text(name) for name in driver.labels.classes[: p.shape[1] - 1]]
    contents = []
    for vector in p[:, 1:]:
        best = int(vector.argmax()) if vector.size else None
        label = None if best is None else plain(driver.labels.classes[best])
        chance = 0.0 if best is None else float(vector[best])
        listed = dict(zip(names, vector.tolist(), strict=True))
        contents.append({"score": chance, "label": label, "probability": chance, "probabilities": listed})
    _add_sets(driver, contents, block, p, list(map(plain, driver.labels.classes)))
    return contents


def _add_sets(driver: Driver, contents: list[dict[str, Any]], block: Block, p: Any, names: Sequence[Any]) -> None:
    """Which classes are in the set of each row, if sets are asked for."""
    if driver.watch.intervals is not None:
        for content, inside in zip(contents, driver.watch.predict(driver.learner.loss, block, p), strict=True):
            content["set"] = [name for name, there in zip(names, inside.tolist(), strict=False) if there]


def _text(name: Any) -> str:
    """A class as a key of JSON."""
    name = plain(name)
    return str(name).lower() if isinstance(name, bool) else str(name)


def _finite(value: Any) -> Any:
    """Numbers for JSON, None for one that is not finite."""
    if isinstance(value, list):
        return list(map(_finite, value))
    return value if math.isfinite(value) else None
