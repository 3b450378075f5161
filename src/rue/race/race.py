"""`race`: several learners on one stream, which is read once; each is scored and certified in the same way.

Every block goes to every learner. What it predicts is scored by the race's own loss, whatever loss it learns with, so
that the totals can be compared. One lower bound on the loss of all linear models serves for all certificates: the best
of those that the learners' predictions and the race's witnesses prove (docs/theory.md, D1, D3).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rue import ledger as accounts
from rue.domains import Ball
from rue.errors import BadExample, DataError, SettingsError, UnknownName, shown
from rue.learners import Learner
from rue.learners.gradient import require_loss
from rue.learners.mixture.standing import next_mark
from rue.learners.softmax.multiclass import LogLoss
from rue.race.entries import Entry, Race
from rue.race.peers import LEAST, LIMIT, PEERS, Broken, TooSlow, installed, open_peer, takes_part
from rue.registry import make, names
from rue.regret.certificates.evidence import Evidence, open_evidence
from rue.runs.accounts import NoAccounts
from rue.runs.baselines import Baselines
from rue.runs.class_weights import ClassWeights
from rue.runs.driver import Driver, default_learner
from rue.streams import Block, Labels, blocks, missing_labels
from rue.streams.labels import number_note

__all__ = ["Racing", "race"]

OWN = ("mixture", "adagrad", "ogd")
"""Rue's own learners in a race for which none was named; installed peers run too, with logistic and square loss (and
with log loss for more than two classes).
"""
ROWS = 4096
"""How many rows a learner is given at a time: some peers take a second for them."""


class _Own:
    """One of rue's own learners, with the methods of a `Peer` (a learner of another system)."""

    def __init__(self, learner: Learner, loss: Any) -> None:
        self.driver = Driver.bare(learner, NoAccounts())
        self.driver.clock = time.thread_time
        self.about = repr(learner)
        self.note = "" if learner.loss == loss else f"learns with {learner.loss!r}"

    def learn(self, block: Block) -> Any:
        """Predict and then learn each row of a block; NaN for one that is refused."""
        learner = self.driver.learner
        if learner.t == 0:  # compile on a copy, so that it is not timed
            Driver.bare(learner.copy(), NoAccounts()).learn(block.part(0, 1))
        predictions = self.driver.learn(block)
        if self.driver.stopped is not None:
            raise self.driver.stopped
        return predictions

    @property
    def seconds(self) -> float:
        """Processor time spent so far, without compilation."""
        return self.driver.seconds

    def close(self) -> None:
        """Nothing to end."""


class _Contestant:
    """One contestant: a learner of rue's or a peer, and its accounts by the race's loss."""

    def __init__(self, name: str, runner: Any, evidence: Evidence) -> None:
        self.name, self.runner, self.evidence = name, runner, evidence
        self.own = isinstance(runner, _Own)
        self.left_out, self.broken = 0, ""
        self.stopped_at: int | None = None
        """How many examples it got through if it took too long."""
        self.course: list[tuple[int, float]] = []

    def learn(self, block: Block, intercept: bool, before: int) -> None:
        """Learn a block and score its predictions; `before` is the number of examples before it, for messages."""
        try:
            out = self.runner.learn(block)
        except Broken as error:
            self.broken = f"{error}, within {before + len(block):,} examples"
            return
        except TooSlow as error:
            out = error.predictions
            block = block.part(0, out.size)
            self.stopped_at = before + out.size
        if np.isinf(out).any() or (not self.own and np.isnan(out).any()):
            self.broken = f"diverged within {before + len(block):,} examples"
            return
        self.left_out += self.evidence.enter(block, out, intercept, 0)
        if self.stopped_at is not None:
            risk = "" if self.risk is None else f", at a risk of {self.risk:.4g}"
            self.broken = f"stopped after {self.runner.limit:g} s and {_examples(self.stopped_at)}{risk}"

    @property
    def seconds(self) -> float:
        """Processor time spent so far."""
        return float(self.runner.seconds)

    def mark(self, t: int) -> None:
        """Note the risk after t examples, for the picture."""
        if not self.broken and (risk := self.risk) is not None:
            self.course.append((t, risk))

    @property
    def risk(self) -> float | None:
        """The sequential risk so far (Q1); None before the first example of a weight above 0."""
        mass = float(self.evidence.ledger.sums[accounts.WEIGHT])
        return float(self.evidence.ledger.sums[accounts.LOSS]) / mass if mass else None

    def entry(self, at_least: float | None, radius: float, scales: Any, classes: bool) -> Entry:
        about, note = self.runner.about, self.runner.note
        if self.broken:
            note = f"{self.broken}; {note}" if note else self.broken
            return Entry(self.name, about, None, None, None, None, self.seconds, note, tuple(self.course))
        sums = self.evidence.ledger.sums
        loss = float(sums[accounts.LOSS])
        regret = None if at_least is None else loss - at_least
        if self.left_out:
            if regret is not None:
                regret = self.evidence.certificate(Ball(radius), "largest", scales, self.left_out).regret_at_most
            note = f"{self.left_out:,} examples refused" + (f"; {note}" if note else "")
        wrong = int(sums[accounts.MISTAKES]) if classes else None
        regret = math.inf if regret is not None and math.isnan(regret) else regret
        return Entry(self.name, about, loss, self.risk, wrong, regret, self.seconds, note, tuple(self.course))


class Racing:
    """A race that is being run: `learn` takes its blocks one by one, and `finish` may be called after any of them."""

    def __init__(
        self,
        learners: Any = None,
        *,
        loss: Any = None,
        task: str = "auto",
        radius: float = 10.0,
        bad: str = "stop",
        intercept: bool = True,
        budget: int | None = None,
        limit: float | None = LIMIT,
        positive: Any = None,
        class_weight: Any = None,
    ) -> None:
        if limit is not None and not limit > 0.0:
            raise SettingsError(f"race: limit is a number of seconds above 0, or None, not {limit!r}.")
        self.limit = math.inf if limit is None else float(limit)
        self.positive, self.class_weights = positive, ClassWeights.make(class_weight)
        if bad not in ("stop", "skip"):
            raise SettingsError(f"race: bad must be 'stop' or 'skip', not {shown(bad)}.")
        self.named = learners is not None
        self.wanted: list[Any] = list(OWN) + list(PEERS) if learners is None else list(learners)
        if not self.wanted:
            raise SettingsError("race: name the learners, such as mixture,adagrad,vw.")
        if budget is not None and not any(_spec(one) == "mixture" for one in self.wanted):
            raise SettingsError("--budget is for the mixture, which is not among the learners.")
        self.loss: Any = None if loss is None else make("loss", loss)
        if self.loss is not None:
            require_loss(self.loss, "race")
            task = self.loss.task
        self.task, self.radius, self.bad, self.intercept, self.budget = (
            task,
            Ball(radius).radius,
            bad,
            intercept,
            budget,
        )
        self.labels: Labels | None = None
        self.lanes: list[_Contestant] = []
        self.notes: list[str] = []
        self.baselines = Baselines()
        self.seen, self.skipped, self.peer_classes = 0, 0, 0
        if self.loss is not None and not self._many:
            self._line_up()

    def _line_up(self) -> None:
        """Make the contestants, once the loss is known."""
        options: Any = {} if self._many else {"units": "largest", "witnesses": self.radius, "quick": True}
        self.stream_evidence = open_evidence(self.loss, **options)
        for one in self.wanted:
            runner = self._runner(one)
            if runner is not None:
                name = one if isinstance(one, str) else repr(one)
                self.lanes.append(_Contestant(name, runner, open_evidence(self.loss)))

    @property
    def _many(self) -> bool:
        """Whether there are more than two classes, and no certificates."""
        return bool(self.loss.task == "multiclass")

    def _runner(self, one: Any) -> Any:
        if isinstance(one, str) and one in PEERS:
            if not self.named and not installed(one):
                self.notes.append(f"{one} is not installed, so it did not run.")
                return None
            if not self.named and not takes_part(self.loss):
                self.notes.append(f"{one} did not run: it takes part with logistic and square loss only.")
                return None
            self.peer_classes = 0 if self.labels is None else max(2, len(self.labels.classes))
            peer = open_peer(one, self.loss, self.intercept, self.peer_classes)
            peer.limit = self.limit
            return peer
        settings: dict[str, Any] = {"intercept": self.intercept, **({} if self._many else {"loss": self.loss})}
        if _spec(one) == "mixture" and self.budget is not None:
            settings["budget"] = self.budget
        if not isinstance(one, str):
            learner = one
        elif self._many and one in ("mixture", "staged"):
            learner = default_learner("multiclass", maps="auto" if one == "staged" else None, **settings)
        elif _spec(one) in ("perceptron", "svm"):  # they have a loss of their own
            learner = make("learner", one, intercept=self.intercept)
        else:
            learner = _named(one, settings)
        if not isinstance(learner, Learner):
            raise SettingsError(f"race: a learner is a learner such as rue.OGD(), a spec, or a peer, not {shown(one)}.")
        if self._many and learner.loss.task != "multiclass":
            if self.named:
                raise SettingsError(
                    f"race: {one if isinstance(one, str) else repr(one)} learns no more than two classes: leave it "
                    "out, or say mixture, which does."
                )
            self.notes.append(f"{one} learns no more than two classes, so it did not run.")
            return None
        if learner.loss.task != self.loss.task:
            raise SettingsError(f"race: {learner!r} is for another task than {self.loss!r}: leave it out.")
        if learner.intercept != self.intercept:
            raise SettingsError(f"race: {learner!r} and the race differ in their intercept: give both the same.")
        return _Own(learner.copy(), self.loss)

    def begin(self, y: Any) -> None:
        """Settle the task by some labels; the first block does it otherwise."""
        if self.labels is None:
            self.labels = (
                Labels.of(y, self.task, self.positive)
                if self.loss is None
                else Labels.under(self.loss, y, self.positive)
            )
            task = self.labels.task
            if self.class_weights is not None:
                self.class_weights.require(self.labels)
            self.notes += number_note(y) if (self.task, task) == ("auto", "regress") else []
            if task == "multiclass":
                self.loss = LogLoss()
                self._line_up()
            elif self.loss is None:
                self.loss = make("loss", "logistic" if task == "classify" else "square")
                self._line_up()

    def learn(self, block: Block, after: Callable[[Racing], bool] = lambda racing: True) -> None:
        """Give a block to every contestant, at most `ROWS` rows at a time; `after` each time says whether to go on."""
        if block.y is None:
            raise DataError("a block has no labels: every block of a stream needs y.")
        if block.bins:
            raise SettingsError("race: bins are features of rue's learners alone: leave bins out.")
        missing = block.unlabelled
        if missing is not None and missing.all():
            return
        self.begin(block.y)
        assert self.labels is not None
        self.labels = self.labels.extended(block.y)
        if self.class_weights is not None:
            block = self.class_weights.weighted(block, self.labels)
            self.class_weights.count(self.labels.encode(block.y), block.column_of_weights())
        block = self._usable(Block(block.X, self.labels.encode(block.y), block.weights), block.y)
        for lane in self.lanes:
            if not lane.own and not lane.broken:
                lane.runner.look_at(block)
        begin = 0
        while begin < len(block):
            mark = next_mark(self.seen)
            end = min(len(block), begin + min(ROWS, mark - self.seen))
            try:
                self._round(block.part(begin, end))
            except BadExample as error:
                raise BadExample(begin + error.row, error.why) from None
            self.seen, begin = self.seen + end - begin, end
            if self.seen == mark:
                for lane in self.lanes:
                    lane.mark(mark)
            if not after(self):
                return

    def _round(self, block: Block) -> None:
        """Give some rows to every contestant, and to the evidence about the stream itself.

        That evidence proves its bound by its witnesses, so any constant will do for the predictions it has to be given:
        0, or with more than two classes 1, the score of a model that is always right, because there 0 is no prediction.
        """
        nothing, weights = np.full(len(block), float(self._many)), block.column_of_weights()
        self.stream_evidence.enter(block, nothing, self.intercept, 0)
        self.baselines.enter(self.loss, block.labels(), weights, nothing)
        for lane in self.lanes:
            if not lane.broken:
                lane.learn(block, self.intercept, self.seen)

    def _usable(self, block: Block, given: Any) -> Block:
        """The examples that every contestant can take; another one stops the race, or is left out with bad="skip".

        One without a label is left out in any case.
        """
        assert self.labels is not None
        weights = block.column_of_weights()
        good = np.array([bool(self.loss.accepts(label)) for label in block.labels().tolist()], dtype=bool)
        if weights.size:
            good &= np.isfinite(weights) & (weights >= 0.0)
        if not block.sparse:
            good &= np.isfinite(np.asarray(block.X, dtype=np.float64)).all(axis=1)
        else:
            block = block.in_order()
            ends = block.X.indptr
            data = np.asarray(block.X.data)[ends[0] : ends[-1]]
            if not np.isfinite(data).all():
                rows = np.repeat(np.arange(len(block)), np.diff(ends))
                good[rows[~np.isfinite(data)]] = False
        if good.all():
            return block
        missing = missing_labels(given)
        unusable = ~good if missing is None else ~good & ~missing
        if self.bad == "stop" and unusable.any():
            row = int(np.argmax(unusable))
            unknown = self.labels.task != "regress" and np.isnan(block.labels()[row])
            raise BadExample(
                row,
                self.labels.complaint(given[row])
                if unknown
                else f"weight and features must be finite, the label {self.loss.labels}, the weight ≥ 0.",
            )
        self.skipped += int(unusable.sum())
        X = block.X
        if block.sparse:
            from scipy import sparse

            X = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(len(block), block.width))
        return Block(X[good], block.labels()[good], weights[good] if weights.size else None)

    def finish(self) -> Race:
        """The end of the race."""
        for lane in self.lanes:
            lane.runner.close()
        if not self.lanes or not self.seen:
            raise DataError("there are no examples to learn.")
        assert self.labels is not None
        at_least, scales = self._at_least()
        classes = self.labels.task != "regress"
        entries = [lane.entry(at_least, self.radius, scales, classes) for lane in self.lanes]
        entries.sort(key=lambda entry: math.inf if entry.loss is None or math.isnan(entry.loss) else entry.loss)
        return Race(
            tuple(entries),
            self.seen,
            self.skipped,
            self.loss,
            self.labels.task,
            float(self.stream_evidence.ledger.sums[accounts.WEIGHT]),
            self.radius,
            at_least,
            self.baselines.best_constant(self.loss),
            self.baselines.no_change(self.loss),
            (*self.notes, *self._notes_on_weights(), *self._class_notes(), *self._notes_of_stopped(entries[0])),
        )

    def _at_least(self) -> tuple[float | None, Any]:
        """The largest lower bound on the loss of linear models that any evidence proves, and the features' scales."""
        if self._many:
            return None, None
        K, scales = Ball(self.radius), self.stream_evidence.scales()
        held = [lane.evidence for lane in self.lanes if not lane.broken and not lane.left_out]
        proofs = (evidence.certificate(K, "largest", scales) for evidence in (self.stream_evidence, *held))
        return max(proof.comparator_loss_at_least for proof in proofs), scales

    def _notes_on_weights(self) -> list[str]:
        """That examples were weighted by their class."""
        if self.class_weights is None or self.labels is None:
            return []
        now = ", ".join(f"{name!r} {weight:.4g}" for name, weight in self.class_weights.now(self.labels).items())
        return [f"risks and losses are weighted by class, at the end: {now}."]

    def _class_notes(self) -> list[str]:
        """Notes on classes: rue's learners discover them, while the peers were told their number before the start."""
        assert self.labels is not None
        own, peers = ([lane.name for lane in self.lanes if lane.own is which] for which in (True, False))
        if not peers or not self._many:
            return []
        notes, late = [], len(self.labels.classes) - self.peer_classes
        if own:
            classes = len(self.labels.classes)
            charge = f"to name them cost it ln {classes}! = {math.lgamma(1.0 + classes):.1f} of its loss"
            notes.append(f"{', '.join(own)} is told of no classes: {charge}.")
        if late > 0:
            cannot_add_classes = " and ".join(name for name in peers if name != "river")
            never = f", and {cannot_add_classes} cannot learn it" if cannot_add_classes else ""
            came = f"{late} class{'' if late == 1 else 'es'} came later than the first block"
            notes.append(f"{came}: what {', '.join(peers)} does not know has probability {LEAST:g}{never}.")
        return notes

    def _notes_of_stopped(self, best: Entry) -> list[str]:
        """How those who took too long compare with the best one, when both had learnt as much."""
        notes = []
        for lane in self.lanes:
            marks = [(t, risk, dict(best.course)[t]) for t, risk in lane.course if t in dict(best.course)]
            if lane.stopped_at is not None and marks:
                t, own, other = marks[-1]
                notes.append(f"after {_examples(t)} {lane.name} stood at {own:.4g}, {best.name} at {other:.4g}.")
        return notes

    def abandon(self) -> None:
        """End the processes of peers after an error."""
        for lane in self.lanes:
            lane.runner.close()


def _examples(many: int) -> str:
    return f"{many:,} example{'s' * (many != 1)}"


def _named(spec: str, settings: dict[str, Any]) -> Any:
    """The learner of a spec; where there is none of that name, the error names the peers too."""
    try:
        return make("learner", spec, **settings)
    except UnknownName as error:
        if _spec(spec) in names("learner"):
            raise  # a loss or a domain in it
        raise UnknownName(f"{str(error).removesuffix('.')}, and the peers {', '.join(PEERS)}.") from None


def _spec(one: Any) -> str:
    """The name in a spec, "" for what is none."""
    return one.partition(":")[0].strip() if isinstance(one, str) else ""


def race(
    X: Any,
    y: Any = None,
    *,
    learners: Any = None,
    loss: Any = None,
    weights: Any = None,
    radius: float = 10.0,
    bad: str = "stop",
    intercept: bool = True,
    task: str = "auto",
    limit: float | None = LIMIT,
    positive: Any = None,
    class_weight: Any = None,
) -> Race:
    """Run learners side by side on one stream, each example scored before it is learnt, and certify each.

    `learners` are learners, specs such as "ogd", or other systems as their documentation recommends them: "vw",
    "river" and "sklearn", the last two with the scaler of their library in front. If none is given, the mixture,
    AdaGrad, OGD and the other systems that are installed run; the other systems take part with logistic and square
    loss only, and each is stopped after `limit` seconds of its own work (None: never), which its note says. All are
    scored by the same `loss` (docs/theory.md, Q1); certificates (D1, D3) are about all linear models of norm ≤
    `radius`, of features in units of their largest magnitude. With more than two classes (`task` as in `learn`) the
    mixture and the other systems run under log loss, and there is no certificate. `positive` and `class_weight` are
    those of `learn`.

    `weights` and `bad` are as for `learn`; with an `intercept` every learner has a feature that is always 1.

    >>> import rue
    >>> X, y = rue.census()
    >>> print([entry.name for entry in rue.race(X[:2000], y[:2000], learners=["ogd", "mixture"]).entries])
    ['mixture', 'ogd']
    """
    classes = {"positive": positive, "class_weight": class_weight}
    options = {"task": task, "radius": radius, "bad": bad, "intercept": intercept, "limit": limit, **classes}
    racing = Racing(learners, loss=loss, **options)
    before = 0
    try:
        for block in blocks(X, y, weights):
            racing.begin(block.y if y is None or isinstance(y, str | int) else y)  # a name or place of a column
            try:
                racing.learn(block)
            except BadExample as error:
                raise BadExample(before + error.row, error.why) from None
            before += len(block)
        return racing.finish()
    except BaseException:
        racing.abandon()
        raise
