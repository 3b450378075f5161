"""`trace`: a run once more, with every round written down."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.learners import Learner
from rue.regret.bounds.trace import Recording, Trace
from rue.runs.class_weights import ClassWeights
from rue.runs.driver import Driver
from rue.runs.learn import Run
from rue.streams import read

__all__ = ["learner_before", "trace"]


def trace(source: Learner | Run, X: Any, y: Any = None, weights: Any = None) -> Trace:
    """Replay a run, or a copy of a learner from where it stands, on a stored stream, and write down every round.

    A `Trace` is what the theorems look at (docs/theory.md, B1 to B10): predictions, losses, gradients and steps. A run
    must make the same predictions again, to the last bit; otherwise the stream is not the one it was made on.

    >>> import rue
    >>> X, y = rue.census()
    >>> trace(rue.learn(X, y, learner=rue.OGD("hinge")), X, y).T
    48842
    """
    run = None if isinstance(source, Learner) else source
    learner = source.copy() if isinstance(source, Learner) else learner_before(source)
    if learner is None:
        assert run is not None
        raise DataError(
            f"trace: the learner had learnt {run.learner.t - run.examples} examples before this run: give the learner "
            "as it stood then instead of the run."
        )
    recording = Recording(learner)
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
        seen = end
    if run is not None and seen != run.predictions.size:
        raise DataError(f"trace: the run saw {run.predictions.size} examples, but here are {seen}.")
    return recording.trace(learner)


def learner_before(run: Run) -> Learner | None:
    """The learner as it stood before a run, if it had learnt nothing then."""
    learner = run.learner
    if learner.t > run.examples:
        return None
    return Learner(learner.algorithm, intercept=learner.intercept, d=learner.d)
