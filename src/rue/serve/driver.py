"""`ServedDriver`: learns as `rue learn` does, but its evidence is about the predictions that were served."""

from __future__ import annotations

from typing import Any

import numpy as np

from rue.ledger import Silent
from rue.runs.accounts import EvidenceAccounts
from rue.runs.baselines import Baselines
from rue.runs.driver import Driver, evidence_for
from rue.runs.metrics import Metrics
from rue.streams import Block

__all__ = ["ServedDriver", "score_of_class"]


class ServedDriver(Driver):
    """A driver whose loss, mistakes, metrics, intervals and certificate are of predictions made earlier.

    A label may come long after its prediction. The learner learns it by its present state; what is scored, and what D1
    is about, is the prediction p_t that was answered then. `served` has those of the rows of the next block, NaN where
    a row was predicted and learnt at once. With no delay it is the driver of `rue learn`.

    docs/theory.md, sections 6 and 7.
    """

    served: Any = None
    chances: Any = None
    """Of more than two classes the probabilities that were served, a vector for each row, None as NaN above."""
    scored: Any = None
    """The predictions by which the rows of the last block were scored."""

    def begin_anew(self) -> None:
        """Score what comes from now on alone; the learner goes on."""
        if self.accounts is None:
            return
        pool = self.accounts.evidence.pool
        options = self._options if pool is None else self._options | {"witnesses": pool.radii}
        evidence = evidence_for(self.learner, **options)
        evidence.follow(self.learner)
        self.accounts = EvidenceAccounts(evidence, self.learner)
        self.baselines, self.metrics = Baselines(), Metrics()
        self.skipped = self.refused = self.unlabelled = self.missing = 0

    def _learn_rows(self, block: Block, given: Any, before: int) -> Any:
        assert self.labels is not None
        out, begin = np.empty(len(block)), 0
        noted = () if self.probabilities is None else (self.probabilities[before : before + len(block)],)
        skipped = 0
        while begin < len(block):
            begin, why = self._learn_stretch(block, Silent(0), out, begin, *noted)
            if why:  # an unusable example is passed over
                out[begin], skipped, begin = np.nan, skipped + 1, begin + 1
                self._pass_by(1)
        self.skipped += skipped
        self.refused += len(block) - int(np.count_nonzero(np.isfinite(out))) - skipped
        scored = self._as_served(block, out, noted)
        evidence = self.accounts.evidence
        evidence.follow(self.learner)
        evidence.enter(block, scored, self.learner.intercept, 0)
        weights = block.column_of_weights()
        if self.watch.asked:
            self.watch.enter(self.learner.loss, block, scored, noted[0] if noted else None, before)
        self.baselines.enter(self.learner.loss, block.y, weights, scored)
        self.metrics.enter(self.learner.loss, block.y, weights, scored, *noted)
        if self.labels.task != "multiclass":
            self.metrics.groups.enter(block, weights, scored)
        self.scored = scored
        return out

    def _as_served(self, block: Block, out: Any, noted: Any) -> Any:
        """What was served in the place of what the learner would say now; an example that was not learnt has none."""
        if self.chances is not None:
            for i, vector in enumerate(self.chances):
                if vector is not None and np.isfinite(out[i]):
                    out[i] = score_of_class(vector, int(block.y[i]))
                    if noted:
                        noted[0][i] = 0.0
                        noted[0][i, : vector.size - 1] = vector[1:]
            return out
        if self.served is None:
            return out
        return np.where(np.isnan(self.served) | np.isnan(out), out, self.served)


def score_of_class(chances: Any, number: int) -> float:
    """What a prediction is scored by when class `number` comes: its probability, negative if another had as much.

    `chances` has that of a class never seen before, then those of classes 1, 2, …; a class that had not come yet is one
    of as many places as it could have among them (docs/theory.md, section 2).

    >>> import numpy as np
    >>> score_of_class(np.array([0.1, 0.6, 0.3]), 1), score_of_class(np.array([0.1, 0.6, 0.3]), 2)
    (0.6, -0.3)
    """
    known = chances[1:]
    if number < chances.size and known[number - 1] > 0.0:
        own, others = known[number - 1], np.delete(known, number - 1)
    else:
        own, others = chances[0] / (1 + np.count_nonzero(known)), known
    return float(-own if others.size and others.max() >= own else own)
