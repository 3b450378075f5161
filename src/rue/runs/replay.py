"""`trace`: a run once more, with every round written down."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np

from rue.errors import DataError, NoRoom, SettingsError, shown
from rue.learners import Learner
from rue.registry import make
from rue.regret.bounds.trace import Recording, Trace
from rue.runs.class_weights import ClassWeights
from rue.runs.driver import Driver
from rue.runs.run import Run
from rue.streams import Block, read

__all__ = ["learner_before", "trace"]

MOST_POINTS = 50_000_000
"""How many numbers the points of a trace may have: 400 MB."""


def trace(source: Learner | Run | str, X: Any, y: Any = None, weights: Any = None, *, points: bool = False) -> Trace:
    """Replay a run, or a copy of a learner from where it stands, on a stored stream, and write down every round.

    A `Trace` is what the theorems look at (docs/theory.md, B1 to B10): predictions, losses, gradients and steps. A run
    must make the same predictions again, to the last bit; otherwise the stream is not the one it was made on. With
    `points` it has w_1, …, w_{T+1} too, which `Telescope` and `MistakeProof` look at.

    `source` is the run or the learner, or its spec; X, `y` and `weights` are the stream, as for `learn`.

    >>> import rue
    >>> X, y = rue.census()
    >>> trace(rue.learn(X, y, learner=rue.OGD("hinge")), X, y).T
    48842
    """
    source = make("learner", source) if isinstance(source, str) else source
    if not isinstance(source, Learner | Run):
        raise SettingsError(
            f"trace: source must be a learner such as rue.OGD(), its spec, or a run, not {shown(source)}."
        )
    run = None if isinstance(source, Learner) else source
    learner = source.copy() if isinstance(source, Learner) else learner_before(source)
    if learner is None:
        assert run is not None
        raise DataError(
            f"trace: the learner had learnt {run.learner.t - run.examples} examples before this run: give the learner "
            "as it stood then instead of the run."
        )
    recording = Recording(learner, points)
    walk = _Walk(learner) if points else None
    driver = Driver.bare(learner, recording)
    driver.labels = None if run is None else run.labels
    driver.most_skipped = 0.0 if run is None else run.skipped
    if run is not None and run.class_weights is not None:
        driver.class_weights = ClassWeights(run.class_weights.rule)
    if y is not None and not isinstance(y, str | int):
        driver.begin(y)
    stream, seen = read(X, y, weights), 0
    for part in driver.run(stream.reads()):
        part.require_good()
        predictions = np.insert(part.predictions, [row.place for row in part.skipped], np.nan)
        end = seen + predictions.size
        if run is not None and not np.array_equal(predictions, run.predictions[seen:end], equal_nan=True):
            raise DataError("trace: the run made other predictions on this stream: give the stream it was made on.")
        missing = part.block.unlabelled
        scored = part.predictions if missing is None else np.where(missing, np.nan, part.predictions)
        recording.add_features(copy.deepcopy(part.block) if stream.lent else part.block, scored)
        if walk is not None:
            walk.learn(driver, part.block, scored)
        seen = end
    if run is not None and seen != run.predictions.size:
        raise DataError(f"trace: the run saw {run.predictions.size} examples, but here are {seen}.")
    recorded = recording.trace(learner)
    return recorded if walk is None else dataclasses.replace(recorded, points=walk.points(learner.coordinates))


class _Walk:
    """The same learner one example at a time, which gives the same bits, so that its points can be written down."""

    def __init__(self, learner: Learner) -> None:
        self.learner, self.passed = learner.copy(), list[Any]()

    def learn(self, driver: Driver, block: Block, scored: Any) -> None:
        """Learn the examples of a block that count, and note the point before each."""
        labels = block.y if driver.labels is None else driver.labels.encode(block.y)
        weights = block.column_of_weights() if block.weights is not None else np.ones(len(block))
        for i in np.flatnonzero(np.isfinite(scored) & (weights > 0.0)):
            self.passed.append(self.learner.point)
            if len(self.passed) * max(1, self.learner.coordinates) > MOST_POINTS:
                raise NoRoom(
                    f"trace: the points of so many rounds in {self.learner.coordinates:,} coordinates would take more "
                    "than 400 MB: give fewer examples, or leave out points=True."
                )
            self.learner.update(_row(block, int(i)), float(labels[i]), float(weights[i]))

    def points(self, width: int) -> Any:
        """w_1, …, w_{T+1} as rows of `width` numbers: a feature that had not come yet had the weight it begins with."""
        rows = [*self.passed, self.learner.point]
        start = self.learner.domain.start(width)
        return np.array([np.concatenate([row, start[row.size :]]) for row in rows])


def _row(block: Block, i: int) -> Any:
    """An example of a block as `Learner.update` takes it."""
    if not block.sparse:
        return block.X[i]
    here = slice(int(block.X.indptr[i]), int(block.X.indptr[i + 1]))
    return np.asarray(block.X.indices)[here], np.asarray(block.X.data)[here]


def learner_before(run: Run) -> Learner | None:
    """The learner as it stood before a run, if it had learnt nothing then."""
    learner = run.learner
    if learner.t > run.examples:
        return None
    return Learner(learner.algorithm, intercept=learner.intercept, d=learner.d)
