"""`Pass`: a learner on its way through a stream, which may stop at any moment and leaves a true account."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from rue import ledger as accounts
from rue.errors import BadExample, DataError, NoRoom, SettingsError
from rue.learners import Learner, Mixture, SoftmaxMixture
from rue.learners.mixture.standing import MIXTURES, Course, next_mark
from rue.registry import make
from rue.regret.certificates.evidence import Evidence, open_evidence
from rue.runs.baselines import Baselines
from rue.streams import Block, Labels
from rue.streams.chunk import BadRow
from rue.streams.files.files import Read
from rue.threads import helpers

__all__ = ["LARGE", "NO_CERTIFICATE", "Pass", "default_learner"]

LARGE = 2**14
"""From how many coordinates on S is added up beside the learner, whose tables leave it no room in the cache."""
BEHIND = 4
"""How many blocks those beside the learner may be behind it; they see them one after the other, in order."""

NO_CERTIFICATE = "there is no certificate for more than two classes: it is about models with one score, not one a class"


def default_learner(task: str, **settings: Any) -> Learner:
    """The learner for a task when none is named: a mixture, which has nothing to tune."""
    if task == "multiclass":
        return SoftmaxMixture(**settings)
    settings.setdefault("loss", "logistic" if task == "classify" else "square")
    return Mixture(**settings)


class Pass:
    """Blocks go in, the predictions made before each update come out; the accounts grow example by example.

    A learner given is copied, never changed; without one, the first labels decide. An unusable example stops the pass,
    those before it learnt; with bad="skip" it is passed over and counted.
    """

    def __init__(
        self,
        learner: Learner | str | None = None,
        *,
        task: str = "auto",
        bad: str = "stop",
        units: str = "raw",
        witnesses: Any = None,
        curvature: bool = False,
        quick: bool = False,
        intercept: bool = True,
        budget: int | None = None,
    ) -> None:
        if bad not in ("stop", "skip"):
            raise SettingsError(f"learn: bad must be 'stop' or 'skip', not {bad!r}.")
        given = None if learner is None else make("learner", learner)
        if given is not None and not isinstance(given, Learner):
            raise SettingsError(f"learn: learner must be a learner such as rue.OGD(), or a spec, not {learner!r}.")
        if given is not None and task == "multiclass" and given.loss.task != task:
            raise SettingsError(f"learn: {given.algorithm.name} learns no more than two classes: leave it out.")
        self.learner: Any = None if given is None else given.copy()
        self.labels: Labels | None = None
        self._evidence: Evidence | None = None
        self._watching: deque[Future[None]] = deque()
        self._beside: ThreadPoolExecutor | None = None
        self.baselines = Baselines()
        self.bad, self.task, self.intercept, self.budget = bad, task, intercept, budget
        self.course = Course()
        """How the members of a mixture have stood over time."""
        self.skipped = 0
        """Unusable examples passed over."""
        self.refused = 0
        """Examples whose prediction, loss or step was not finite: neither scored nor learnt."""
        self.missing = 0
        """Values that were missing in the rows of tables: empty cells, nulls, NaN."""
        self.seconds = 0.0
        """Time spent in the learning loop."""
        self.stopped: BadExample | None = None
        """The example that stopped it, counted in its block."""
        self.stopped_by: BadRow | None = None
        """The row of what was read that stopped it."""
        self._kept = {"units": units, "witnesses": witnesses, "curvature": curvature, "quick": quick}
        self._penalty = 0.0

    @property
    def examples(self) -> int:
        """How many examples were scored and learnt."""
        return 0 if self._evidence is None else int(self._evidence.ledger.sums[accounts.EXAMPLES])

    @property
    def sums(self) -> Any:
        """Those of the ledger, which are up to date at any moment; None before the first block."""
        return None if self._evidence is None else self._evidence.ledger.sums

    @property
    def evidence(self) -> Evidence | None:
        """All that is kept, when those beside the learner have seen what it has."""
        self.catch_up()
        return self._evidence

    def catch_up(self, behind: int = 0) -> None:
        """Wait until those beside are no more than so many blocks behind; what failed once is raised every time."""
        while self._watching and (len(self._watching) > behind or self._watching[0].done()):
            self._watching[0].result()
            self._watching.popleft()

    def go_on(self, learner: Learner, evidence: Evidence, labels: Labels, course: Course) -> None:
        """Start from where another pass stopped."""
        self.learner, self._evidence, self.labels, self.course = learner, evidence, labels, course
        self._penalty = learner.penalty - evidence.penalty

    def begin(self, y: Any) -> None:
        """Settle the task, and with it the learner, by some labels; the first block does it otherwise."""
        if self.labels is None:
            self.labels = Labels.of(y, self.task) if self.learner is None else Labels.under(self.learner.loss, y)
        if self.learner is None:
            self.learner = default_learner(self.labels.task, intercept=self.intercept, budget=self.budget)
        if self.labels.task == "multiclass" and self._kept["witnesses"] is not None:
            if not self._kept["quick"]:
                raise SettingsError(f"learn: {NO_CERTIFICATE}; leave witnesses out.")
            self._kept |= {"units": "raw", "witnesses": None}  # they came by themselves

    def learn(self, block: Block) -> Any:
        """Learn a block: the predictions, NaN for an example that was refused or skipped.

        If an example stops the pass, `stopped` says which and why, and the predictions are of those before it.
        """
        said = block.y
        if said is None:
            raise DataError("there are no labels: give y.")
        self.begin(said)
        assert self.labels is not None
        self.labels = self.labels.extended(said)
        if not isinstance(self.learner.algorithm, MIXTURES):
            return self._learn(block)
        begin, outs = 0, []
        while begin < max(1, len(block)) and self.stopped is None:
            mark = next_mark(self.course.seen)
            end = min(len(block), begin + mark - self.course.seen)
            outs.append(self._learn(block.part(begin, end)))
            self.course.seen += outs[-1].size
            if self.course.seen == mark and self._evidence is not None:
                self.course.look(self.learner)
            if self.stopped is not None:
                self.stopped = BadExample(begin + self.stopped.row, self.stopped.why)
            begin = max(end, 1)
        return np.concatenate(outs)

    def _learn(self, block: Block) -> Any:
        """Some rows whose labels have been looked at; one that memory cannot hold is an unusable one."""
        said = block.y
        assert said is not None
        assert self.labels is not None
        encoded = Block(block.X, self.labels.encode(said), block.weights)
        try:
            encoded = self.learner.widen(encoded)
        except NoRoom as error:
            return self._learn_halves(block, error) if len(block) > 1 else self._no_room(str(error))
        if self._evidence is None:
            lambda_ = float(getattr(self.learner.algorithm, "lambda_", 0.0))
            self._evidence = open_evidence(self.learner.loss, lambda_=lambda_, **self._kept)
            self._penalty = self.learner.penalty  # of rounds before this pass
        return self._learn_rows(encoded, said)

    def _learn_halves(self, block: Block, why: NoRoom) -> Any:
        """A block that memory cannot hold, half by half, until the row is found that it cannot."""
        narrow = block.narrowed()
        if self.learner.algorithm.wide is None and narrow.width < block.width:
            raise why  # the width is not that of some row, but of the matrix, or of the slots that words are hashed to
        self.learner.begin_with(narrow)
        middle, outs = len(block) // 2, []
        for begin, end in ((0, middle), (middle, len(block))):
            outs.append(self._learn(narrow.part(begin, end).narrowed()))
            if self.stopped is not None:
                self.stopped = BadExample(begin + self.stopped.row, self.stopped.why)
                break
        return np.concatenate(outs)

    def _no_room(self, why: str) -> Any:
        """The one row of a block is unusable."""
        if self.bad == "stop":
            self.stopped = BadExample(0, why)
            return np.empty(0)
        self.skipped += 1
        return np.full(1, np.nan)

    def _learn_rows(self, block: Block, said: Any) -> Any:
        """Rows that there is room for, with their labels as the loss takes them and as they came."""
        assert self.labels is not None
        ledger = self._ledger()
        out, begin, skipped, stopped = np.empty(len(block)), 0, 0, ""
        started = time.perf_counter()
        while begin < len(block) and not stopped:
            begin, why = self.learner.run_block(block, ledger, out, begin)
            if why and self.labels.task != "regress" and np.isnan(block.y[begin]):
                why = self.labels.complaint(said[begin])
            if why and self.bad == "stop":
                out[begin:], stopped = np.nan, why
            elif why:
                out[begin] = np.nan
                skipped, begin = skipped + 1, begin + 1
        self.seconds += time.perf_counter() - started
        self._account(block, out, begin, skipped)
        if stopped:
            self.stopped = BadExample(begin, stopped)
            return out[:begin]
        return out

    @property
    def _helped(self) -> bool:
        """Whether somebody is beside the learner, for the witnesses, or for a large certificate."""
        assert self._evidence is not None
        certified = self.learner.loss.task != "multiclass"
        return self._evidence.pool is not None or (certified and self.learner.coordinates > LARGE)

    def _ledger(self) -> accounts.Ledger:
        """The one the loop writes to, with room for a block; S is added up beside it, if anybody is there."""
        assert self._evidence is not None
        if self.learner.numbering is not self._evidence.numbering:
            self.catch_up()
        self._evidence.follow(self.learner)
        if self._helped:
            return self._evidence.ledger._replace(adds_gradients=False)
        self._evidence.widen(self._evidence.room_for(self.learner.places))
        return self._evidence.ledger

    def take(self, read: Read) -> tuple[Block, Any]:
        """Learn what was read, up to the row that stops the pass: those examples and their predictions.

        `stopped` then counts the row in the block, and `stopped_by` says which line it is.
        """
        chunk = read.chunk
        bad = chunk.first_bad if self.bad == "stop" else None
        block = chunk.block if bad is None else chunk.block.first(bad.place)
        out = self.learn(block) if len(block) else np.empty(0)
        if chunk.missing is not None:
            self.missing += int(chunk.missing[: out.size].sum())
        if self.stopped is not None:
            self.stopped_by = BadRow(self.stopped.row, int(chunk.lines[self.stopped.row]), "", self.stopped.why)
        elif bad is not None:
            self.stopped_by = bad
        else:
            self.skipped += len(chunk.bad)
        return block.first(out.size), out

    def _account(self, block: Block, out: Any, end: int, skipped: int) -> None:
        """Everything kept beside the sums: rows up to `end`. Witnesses see them while the learner goes on."""
        assert self._evidence is not None
        shown = block, out, self.learner.intercept, self.learner.places
        if not self._helped:
            self._evidence.watch(*shown)
        else:
            self._beside = self._beside or helpers(1, "rue-beside")
            self._watching.append(self._beside.submit(self._evidence.watch, *shown, apart=True))
            self.catch_up(BEHIND)
        self._evidence.penalty = self.learner.penalty - self._penalty
        self.skipped += skipped
        self.refused += end - int(np.count_nonzero(np.isfinite(out))) - skipped
        self.baselines.enter(self.learner.loss, block.y, block.column_of_weights(), out)
