"""`PredictionLog`: what a run has predicted so far, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.memory import memory_limit
from rue.runs.driver import Driver
from rue.runs.run import Run
from rue.streams import Block, Stream

__all__ = ["PredictionLog"]


class PredictionLog:
    """The predictions, labels and weights of a run, as far as it has come."""

    def __init__(self) -> None:
        self.parts: list[tuple[Any, Any, Any]] = []
        self.probabilities: list[Any] | None = []
        """Of more than two classes those of every class, for each part; None where they are not noted or too many."""
        self.found: list[tuple[int, Any]] = []
        """How many rows each part has, and what `Driver.watch` found for them; None where it found nothing."""

    def add(
        self,
        driver: Driver,
        block: Block,
        predictions: Any,
        probabilities: Any = None,
        skipped: Sequence[int] = (),
        found: Any = None,
    ) -> None:
        """A block that was learnt and its predictions; copies, since a stream may use the block's memory again.

        `skipped` has, for each row that was read and is not in the block, how many of the block's come before it.
        """
        if not len(block) and not skipped:
            return
        y = np.full(len(block), np.nan)
        if driver.labels is None or not len(block):
            probabilities = np.empty((len(block), 0))  # no class has come yet
        else:
            y = driver.labels.encode(block.y)
        weights = None if block.weights is None else np.insert(block.weights, skipped, 0.0)
        if isinstance(found, tuple):
            found = tuple(np.insert(end, skipped, np.nan, axis=0) for end in found)
        elif found is not None:
            found = np.insert(found, skipped, False, axis=0)
        self.found.append((len(block) + len(skipped), found))
        if skipped:
            predictions, y = (np.insert(column, skipped, np.nan) for column in (predictions, y))
        self.parts.append((np.array(predictions), y, weights))
        rows = len(block) + sum(map(len, self.probabilities or []))
        if probabilities is None or 64 * rows * probabilities.shape[1] >= memory_limit():
            self.probabilities = None
        elif self.probabilities is not None:
            self.probabilities.append(np.insert(probabilities, skipped, np.nan, axis=0))

    def matrix(self) -> Any:
        """The probabilities of all parts, with a column for each class that came in any; None if there are none."""
        if not self.probabilities:
            return None
        classes = self.probabilities[-1].shape[1]
        padded = [np.pad(part, ((0, 0), (0, classes - part.shape[1]))) for part in self.probabilities]
        for matrix, part in zip(padded, self.probabilities, strict=True):
            matrix[np.isnan(part).all(axis=1)] = np.nan  # rows without a prediction
        return np.concatenate(padded)

    def ends_and_sets(self) -> dict[str, Any]:
        """`lower` and `upper`, or `sets`, of all parts; nothing if none was found."""
        known = [found for _, found in self.found if found is not None]
        if not known:
            return {}
        if isinstance(known[0], tuple):
            nothing = known[0][0].shape[1:]
            ends = [[np.full((rows, *nothing), np.nan)] * 2 if found is None else found for rows, found in self.found]
            return {name: np.concatenate([part[i] for part in ends]) for i, name in enumerate(("lower", "upper"))}
        classes = max(found.shape[1] for found in known)
        sets = [np.zeros((rows, 0), dtype=np.bool_) if found is None else found for rows, found in self.found]
        return {"sets": np.concatenate([np.pad(part, ((0, 0), (0, classes - part.shape[1]))) for part in sets])}

    def run(self, driver: Driver, stream: Stream, history: Iterable[dict[str, Any]] = ()) -> Run:
        """The whole run."""
        if driver.unlabelled and driver.labels is None:
            raise DataError("there is nothing to learn: every label is missing.")
        if driver.labels is None or driver.evidence is None:
            raise DataError("there are no examples to learn.")
        driver.evidence.magnitudes = driver.learner.scales_in_places()
        predictions, y = (np.concatenate([part[i] for part in self.parts]) for i in (0, 1))
        weights = None
        if any(part[2] is not None for part in self.parts):
            weights = np.concatenate([np.ones(len(part[0])) if part[2] is None else part[2] for part in self.parts])
        return Run(
            learner=driver.learner,
            labels=driver.labels,
            predictions=predictions,
            y=y,
            weights=weights,
            evidence=driver.evidence,
            refused=driver.refused,
            skipped=driver.skipped,
            seconds=driver.seconds,
            features=stream.describe(),
            names=dict(stream.names.of),
            course=driver.course,
            missing=driver.missing,
            counts=driver.counts(),
            history=list(history),
            baselines=driver.baselines,
            metrics=driver.metrics,
            unlabelled=driver.unlabelled,
            probabilities=self.matrix(),
            class_weights=driver.class_weights,
            watch=driver.watch,
            notes=[*driver.notes, *stream.warnings],
            waiting=driver.waiting,
            ensemble=driver.ensemble,
            background=driver.background,
            **self.ends_and_sets(),
        )
