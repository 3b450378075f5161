"""What is written down about a run while a learner learns: the evidence for certificates, or nothing."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from rue.learners import Learner
from rue.ledger import Silent, keep_accounts, open_ledger, trusted_range
from rue.regret.certificates.evidence import Evidence
from rue.streams import Block
from rue.threads import helpers

__all__ = ["BEHIND", "LARGE", "Accounts", "EnsembleAccounts", "EvidenceAccounts", "NoAccounts"]

LARGE = 2**14
"""With more coordinates than this a helper thread adds up S = Σ g_t x_t: the learner's tables fill the cache."""
FEW = 2048
"""A first block of no more rows than this is not worth a helper thread, unless there are many coordinates."""
BEHIND = 4
"""How many blocks the helper thread may be behind the learner before the learner waits for it."""


class Accounts(Protocol):
    """What a `Driver` asks for around each block."""

    def ledger(self, learner: Learner, block: Block) -> Any:
        """What the compiled loop writes to, example by example; there is room in it for the learner's coordinates."""
        ...

    def enter(self, learner: Learner, block: Block, predictions: Any) -> None:
        """Take note of a block that was learnt, and of its predictions: NaN for a row that was not."""
        ...

    def wait(self) -> None:
        """Return when nothing reads the blocks any more and all accounts are complete."""
        ...


class NoAccounts:
    """For those who only want predictions, or a learnt learner."""

    def ledger(self, learner: Learner, block: Block) -> Any:
        return Silent(0)

    def enter(self, learner: Learner, block: Block, predictions: Any) -> None:
        pass

    def wait(self) -> None:
        pass


class EvidenceAccounts:
    """Evidence for certificates.

    The compiled loop itself adds up the ledger's sums. What else belongs to the evidence (witnesses, curvature, and S
    if there are many coordinates) is added up after each block, on one helper thread where that pays: the blocks are
    seen in the same order, so the result has the same bits.
    """

    def __init__(self, evidence: Evidence, learner: Learner, *, threads: bool = True) -> None:
        self._evidence = evidence
        self._penalty_before = learner.penalty - evidence.penalty  # of rounds that are not in this evidence
        self._threads = threads
        self._helped = False
        """Whether the helper thread gets the block that is being learnt."""
        self._pending: deque[Future[None]] = deque()
        self._helper: ThreadPoolExecutor | None = None

    @property
    def sums(self) -> Any:
        """Those of the ledger, which never lag behind the learner."""
        return self._evidence.ledger.sums

    @property
    def evidence(self) -> Evidence:
        """The evidence; waits for the helper thread first."""
        self.wait()
        return self._evidence

    def wait(self, behind: int = 0) -> None:
        """Wait until the helper thread has at most `behind` blocks to do; an error of its is raised at every call."""
        while self._pending and (len(self._pending) > behind or self._pending[0].done()):
            self._pending[0].result()
            self._pending.popleft()

    def _uses_helper(self, learner: Learner, rows: int) -> bool:
        certified, evidence = learner.loss.task != "multiclass", self._evidence
        watched = evidence.pool is not None or evidence.digest is not None or evidence.curvature is not None
        watched &= rows > FEW or self._helper is not None
        return self._threads and certified and (watched or learner.coordinates > LARGE)

    def ledger(self, learner: Learner, block: Block) -> Any:
        if learner.numbering is not self._evidence.numbering:
            self.wait()  # all arrays are about to be rearranged
        self._evidence.follow(learner)
        self._helped = self._uses_helper(learner, len(block))
        if self._helped:
            return self._evidence.ledger._replace(adds_gradients=False)
        self.wait()
        self._evidence.widen(self._evidence.room_for(learner.places), block.rows(learner.intercept))
        return self._evidence.ledger

    def enter(self, learner: Learner, block: Block, predictions: Any) -> None:
        shown = block, predictions, learner.intercept, learner.places
        if self._helped:
            self._helper = self._helper or helpers(1, "rue-evidence")
            self._pending.append(self._helper.submit(self._evidence.watch, *shown, adds_gradients=True))
            self.wait(BEHIND)
        else:
            self._evidence.watch(*shown)
        self._evidence.penalty = learner.penalty - self._penalty_before


class EnsembleAccounts:
    """Evidence about the predictions of a learner together with outside experts, entered when these are known.

    The compiled loop of the learner writes its own predictions to accounts that are thrown away.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    @property
    def sums(self) -> Any:
        return self.evidence.ledger.sums

    def ledger(self, learner: Learner, block: Block) -> Any:
        self.evidence.follow(learner)
        return open_ledger()._replace(adds_gradients=False)

    def enter(self, learner: Learner, block: Block, predictions: Any) -> None:
        evidence, loss = self.evidence, learner.loss
        rows, predictions = block.rows(learner.intercept), np.array(predictions)
        evidence.widen(evidence.room_for(learner.places), rows)
        ledger = evidence.ledger._replace(trusted=trusted_range(loss))  # it shares the arrays
        y, weights = block.labels(), block.column_of_weights()
        end, _ = keep_accounts(loss, ledger, rows, y, weights, predictions, 0)
        if end < len(block) and block.sparse:  # perhaps only because indices are not sorted
            keep_accounts(loss, ledger, block.in_order().rows(learner.intercept), y, weights, predictions, end)
        evidence.watch(block, predictions, learner.intercept, learner.places)

    def wait(self) -> None:
        pass
