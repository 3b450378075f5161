"""`Driver`: the one loop that takes a learner through a stream, block by block.

`rue.learn`, the command line, `race`, `trace` and the estimators for scikit-learn and River (`learn_many`) all use it;
they differ in what they do between two blocks and in the accounts they keep. One example at a time
(`Learner.update`, River's `learn_one`) needs no loop and does not go through it.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from rue import ledger as sums_of
from rue.errors import BadExample, DataError, NoRoom, SettingsError, shown
from rue.learners import Learner, Mixture, SoftmaxMixture, Staged, StagedSoftmax
from rue.learners.ensemble import Ensemble
from rue.learners.lags import lags_of
from rue.learners.mixture.standing import Course, next_mark
from rue.memory import memory_limit
from rue.registry import make
from rue.regret.certificates.evidence import Evidence, open_evidence
from rue.runs.accounts import Accounts, EnsembleAccounts, EvidenceAccounts
from rue.runs.advice import Advice, require_experts
from rue.runs.background import Background
from rue.runs.baselines import Baselines
from rue.runs.class_weights import ClassWeights
from rue.runs.metrics import Metrics
from rue.runs.watching import Watch
from rue.streams import Block, Labels, as_labels, floats, missing_labels, read
from rue.streams.chunk import BadRow, Chunk, Position
from rue.streams.labels import missing_note, number_note
from rue.streams.settling import settle

__all__ = ["NO_CERTIFICATE", "NUMBERS", "Driver", "LearntPart", "default_learner", "default_name", "evidence_for"]

NO_CERTIFICATE = "there is no certificate for more than two classes: it is about models with one score, not one a class"
NUMBERS = Labels("regress")
"""For labels that are already the numbers the loss takes."""
HANDED_ON = 4096
"""After so many rows a mixture's are handed to the accounts, so that a helper thread begins before the block ends."""


IN_STAGES = ("classify", "regress")
"""The tasks whose default learner has stages. (Adding one needs a setting in `rue.serve.settings`, as `stages` is one:
a model of an older log must go on with the learner that it began with.)"""


def default_learner(task: str, *, maps: Any = "default", **settings: Any) -> Learner:
    """The learner for a task when none is named: it has nothing to tune.

    Everything that has a default learner (`rue.learn`, the command line, the service, the estimators) gets it here.
    With maps=None it is linear, with maps="auto" in stages; by default the latter for the tasks of `IN_STAGES`.
    """
    if isinstance(maps, str) and maps == "default":
        maps = "auto" if task in IN_STAGES else None
    if task == "multiclass":
        return SoftmaxMixture(**settings) if maps is None else StagedSoftmax(maps=maps, **settings)
    settings.setdefault("loss", "logistic" if task == "classify" else "square")
    return Mixture(**settings) if maps is None else Staged(maps=maps, **settings)


def default_name(settings: Container[str], linear: bool) -> str:
    """The name of the learner where none is named, but some of its settings: loss, domain, step."""
    return "ogd" if "domain" in settings or "step" in settings else "mixture" if linear else "staged"


def evidence_for(
    learner: Learner,
    y: Any = (),
    *,
    units: str = "raw",
    witnesses: Any = None,
    curvature: bool = False,
    quick: bool = False,
) -> Evidence:
    """What is added up about a learner's pass; of the default learner, all that costs little (docs/decisions/0023).

    The radii of `quick` witnesses are in units of the first label where weights are in the target's units too.
    """
    lambda_ = float(getattr(learner.algorithm, "lambda_", 0.0))
    if quick and witnesses is not None and np.ndim(witnesses) and learner.loss.depends_on == "residual":
        witnesses = np.multiply(witnesses, _decade(float(y[0]) if len(y) else 1.0))
    narrow = learner.algorithm.proves_more and (witnesses is None or quick)
    asked: dict[str, Any] = {"units": units, "witnesses": witnesses, "curvature": curvature, "quick": quick}
    return open_evidence(learner.loss, lambda_=lambda_, narrow=narrow, **asked)


def _decade(value: float) -> float:
    """The power of ten below a magnitude; 1 where there is none."""
    return math.pow(10.0, math.floor(math.log10(abs(value)))) if 1e-100 < abs(value) < 1e100 else 1.0


class LearntPart(NamedTuple):
    """One part of a stream that was read and learnt; the driver's state is complete, and may be saved, after each."""

    chunk: Chunk
    block: Block
    """The examples learnt, with their labels as the data has them: all of those read, or those before a bad row."""
    predictions: Any
    """p_t, made before the update; NaN where an example was refused or skipped.

    Of more than two classes NaN for an example without a label too, since p_t is about the class that came.
    """
    bad: BadRow | None
    """The row that stopped the run, if one did."""
    probabilities: Any = None
    """Of more than two classes, those of every class, made before the update, if the driver `notes_probabilities`.

    A row for each prediction, and a column for each of `driver.labels.classes`, as far as they are known after this
    part: a later part may have more columns, never fewer, and their order stays. NaN in the row of an example that was
    refused or skipped; 0 for a class that had not been learnt when the row came. What a row lacks to 1 is the
    probability that a class never seen before comes. None if the matrix would take an eighth of the memory or more.
    """
    found: Any = None
    """What `Driver.watch` found for each row: the lower and the upper ends of intervals, or sets; None if nothing."""

    @property
    def position(self) -> Position:
        """From where to read in order to go on."""
        return self.chunk.end if self.bad is None else self.chunk.before_line(self.bad.line)

    @property
    def skipped(self) -> tuple[BadRow, ...]:
        """The bad rows that were passed over: they were read, but are not in the block."""
        return self.chunk.bad if self.bad is None else ()

    def require_good(self) -> None:
        """Raise an error about the row that stopped the run, if one did."""
        if self.bad is not None:
            raise self.chunk.error(self.bad)


class Driver:
    """Takes a learner through a stream and keeps the accounts of the run.

    What happens to one block of examples, in order:

    1. Labels: the first ones decide the task and, if none was given, the learner (`begin`); classes become the numbers
       that losses take (`learn`).
    2. Room: the learner's arrays grow by the block's new features; if memory does not hold them, the block is halved
       until the row is found that is too wide (`_learn_part`).
    3. Predict and update: the compiled loop goes through the rows. For each it predicts and updates, and notes the
       prediction in the ledger, which adds loss, mistake and slope × prediction to its sums, 64 rows at a time. It
       stops at an unusable row, which ends the run or, with bad="skip", is passed over (`_learn_rows`), and where the
       losses of a mixture's members are to be recorded (`_learn_stretch`).
    4. Evidence: S, witnesses, curvature see the rows with their predictions, perhaps on a helper thread, which may be
       a few blocks behind (`evidence` waits for it); the labels' baselines and the counts of refused and skipped rows
       go on (`_learn_rows`).
    5. The caller gets the predictions (`run`), and may note progress, write a checkpoint, or stop.

    A learner given is copied, never changed; `resume` takes one over. With bad="stop" an unusable example ends the run,
    those before it learnt; with bad="skip" it is passed over and counted. One without a label is predicted and counted.
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
        maps: Any = None,
        lags: Any = None,
        positive: Any = None,
        class_weight: Any = None,
        watch: Watch | None = None,
        advice: Advice | None = None,
    ) -> None:
        if bad not in ("stop", "skip"):
            raise SettingsError(f"learn: bad must be 'stop' or 'skip', not {shown(bad)}.")
        given = None if learner is None else make("learner", learner)
        if given is not None and not isinstance(given, Learner):
            raise SettingsError(f"learn: learner must be a learner such as rue.OGD(), or a spec, not {shown(learner)}.")
        if given is not None and task == "multiclass" and given.loss.task != task:
            raise SettingsError(f"learn: {given.algorithm.name} learns no more than two classes: leave it out.")
        self.learner: Any = None if given is None else given.copy()
        self.labels: Labels | None = None
        self.accounts: Any = None
        """The `Accounts`; by default those of evidence, opened with the first block."""
        self.reports = True
        """Whether there is to be a report, for which baselines, metrics and course are kept."""
        self.baselines = Baselines()
        """What no learning at all would have lost."""
        self.metrics = Metrics()
        """Accuracy, AUC and the like of the predictions made before each update."""
        self.course = Course()
        """The losses and weights of a mixture's members over time."""
        self.task, self.intercept, self.budget, self.positive = task, intercept, budget, positive
        self.maps = maps
        """Those of the default learner; None for one that is linear."""
        self.lags = None if lags is None else lags_of(lags)
        """Which of the last labels are to be features; None if none."""
        if self.lags is not None and self.learner is not None:
            self.learner = self.learner.with_lags(self.lags)
        self.class_weights = ClassWeights.make(class_weight)
        """What the weights of examples are multiplied by, None if nothing."""
        self.notes: list[str] = []
        """Sentences about what was perhaps meant otherwise."""
        self.most_skipped = math.inf if bad == "skip" else 0.0
        """How many unusable examples are passed over before one ends the run."""
        self.notes_probabilities = False
        """Whether, of more than two classes, the probabilities of all are noted for each row of a part."""
        self.probabilities: Any = None
        """Those of the last block, as `LearntPart.probabilities` has them; metrics use them too. None if not noted."""
        self.halves_blocks = True
        """Whether a block that memory cannot hold is halved to find the row, or raises `NoRoom` as a whole."""
        self.skipped = 0
        """Unusable examples passed over."""
        self.refused = 0
        """Examples whose prediction, loss or step was not finite: neither scored nor learnt."""
        self.unlabelled = 0
        """Examples without a label: predicted, but neither scored nor learnt."""
        self.missing = 0
        """Values that were missing in the rows of tables: empty cells, nulls, NaN."""
        self.advice = advice
        """What outside experts predict, if there are any; the chunks that are learnt have it row by row."""
        self.ensemble: Ensemble | None = None
        """The learner and the experts, mixed; settled with the learner."""
        self.rows = 0
        """How many rows of the present pass have been read: those before which a row's predictions by experts stand."""
        self._advised: tuple[Any, int] = (None, 0)
        """The experts' scores for the block that is being learnt, and how many of its rows have been."""
        self.watch = watch or Watch()
        """Prediction intervals and alarms, if asked for."""
        self.background: Background | None = None
        """Some of the rows, to try predictions on, of a learner over maps, whose weights tell little."""
        self.clock: Callable[[], float] = time.perf_counter
        self.seconds = 0.0
        """Time spent in the compiled loop, by `clock`."""
        self.waiting = 0.0
        """Seconds spent waiting for data."""
        self.stopped: BadExample | None = None
        """The example that the learner could not take and that ended the run, counted in its block."""
        self._options = {"units": units, "witnesses": witnesses, "curvature": curvature, "quick": quick}

    @classmethod
    def resume(
        cls,
        learner: Learner,
        labels: Labels,
        accounts: Accounts | Evidence,
        *,
        course: Course | None = None,
        bad: str = "stop",
        ensemble: Ensemble | None = None,
        advice: Advice | None = None,
    ) -> Self:
        """Go on with a learner (itself, not a copy) and with its accounts, from where they stand."""
        driver = cls(bad=bad, advice=advice)
        driver.learner, driver.labels, driver.course, driver.ensemble = learner, labels, course or Course(), ensemble
        driver._require_experts()
        driver.accounts = driver._opened_accounts(accounts) if isinstance(accounts, Evidence) else accounts
        return driver

    def _opened_accounts(self, evidence: Evidence) -> Accounts:
        return EvidenceAccounts(evidence, self.learner) if self.ensemble is None else EnsembleAccounts(evidence)

    def _require_experts(self) -> None:
        """Refuse experts that are not those that the ensemble knows, or that a learner without any has been given."""
        names = () if self.advice is None else self.advice.experts
        if self.ensemble is not None:
            require_experts(self.ensemble, self.advice)
        elif names or self.advice is not None:
            what, them = ("experts contradict", "them") if names else ("calibrate contradicts", "it")
            raise SettingsError(
                f"{what} the model, which was learnt without {them}: leave {them} out, or learn afresh."
            )

    @classmethod
    def bare(cls, learner: Learner, accounts: Accounts) -> Self:
        """For one that is driven by other code, and learns labels that are numbers already: no report is asked for."""
        driver = cls.resume(learner, NUMBERS, accounts)
        driver.reports = driver.halves_blocks = False
        return driver

    def counts(self) -> dict[str, Any]:
        """The counters and baselines, and the class weights so far, in plain JSON types, as model files store them."""
        counts: dict[str, Any] = {name: getattr(self, name) for name in ("skipped", "refused", "unlabelled", "missing")}
        counts |= self.baselines.to_dict()
        if self.class_weights is not None:
            counts["class_weight"] = self.class_weights.to_json()
        return counts

    def restore(self, counts: dict[str, Any]) -> None:
        """Go on with what `counts` gave; older files have not all of it."""
        self.skipped, self.refused, self.unlabelled, self.missing = (
            int(counts.get(name, 0)) for name in ("skipped", "refused", "unlabelled", "missing")
        )
        self.baselines = Baselines.from_dict(counts)
        self.class_weights = ClassWeights.from_json(counts.get("class_weight"))

    @property
    def examples(self) -> int:
        """How many examples were scored and learnt."""
        return 0 if self.accounts is None else int(self.sums[sums_of.EXAMPLES])

    @property
    def sums(self) -> Any:
        """Those of the ledger, which are up to date at any moment; None before the first block."""
        return None if self.accounts is None else self.accounts.sums

    @property
    def evidence(self) -> Evidence | None:
        """The evidence, None before the first block; waits for the helper thread first."""
        return None if self.accounts is None else self.accounts.evidence

    # A stream.

    def run(self, chunks: Iterable[Chunk], *, lent: bool = False) -> Iterator[LearntPart]:
        """Learn what is read, and hand out each part as soon as it is learnt; ends after a row that stops the run.

        If blocks are `lent`, the next one may be written into the same memory, so everything is done with a block
        before the next is read. Whoever iterates may stop after any part: what was learnt until then stands.

        >>> driver = Driver("ogd")
        >>> [len(part.block) for part in driver.run(read([[1.0], [2.0], [3.0]], [1, -1, 1]).reads())]
        [3]
        >>> driver.examples
        3
        """
        started = time.perf_counter()
        if self.labels is None:
            task = self.task if self.learner is None else self.learner.loss.task
            chunks = settle(chunks, self.begin, task, self.positive, stops_at_bad=not self.most_skipped, lent=lent)
        for chunk in chunks:
            self.waiting += time.perf_counter() - started
            part = self._learn_chunk(chunk)
            if lent and self.accounts is not None:
                self.accounts.wait()
            yield part
            if part.bad is not None:
                return
            started = time.perf_counter()

    def learn_all(self, X: Any, y: Any = None, weights: Any = None) -> None:
        """Learn arrays or blocks to the end; raises `BadExample` at a row that cannot be learnt."""
        for part in self.run(read(X, y, weights).reads()):
            part.require_good()
        if self.accounts is not None:
            self.accounts.wait()

    def _learn_chunk(self, chunk: Chunk) -> LearntPart:
        """Learn what was read, up to the row that stops the run."""
        bad = None if self.most_skipped else chunk.first_bad
        block = chunk.block if bad is None else chunk.block.first(bad.place)
        if self.class_weights is not None and len(block):
            block = self._weighted_by_class(block)
        self._advised = (None if chunk.advice is None else chunk.advice[: len(block)]), 0
        predictions = self.learn(block) if len(block) else np.empty(0)
        if self.class_weights is not None and self.labels is not None and predictions.size:
            learnt = block.first(predictions.size)
            self.class_weights.count(self.labels.encode(learnt.y), learnt.column_of_weights())
        if chunk.missing is not None:
            self.missing += int(chunk.missing[: predictions.size].sum())
        if self.stopped is not None:
            bad = BadRow(self.stopped.row, int(chunk.lines[self.stopped.row]), "", self.stopped.why)
        elif bad is None:
            self.skipped += len(chunk.bad)
        self.rows += predictions.size + (len(chunk.bad) if bad is None else 0)
        noted = self.notes_probabilities and len(block) and self.probabilities is not None
        probabilities = self.probabilities[: predictions.size] if noted else None
        found = self.watch.take(predictions.size)
        return LearntPart(chunk, block.first(predictions.size), predictions, bad, probabilities, found)

    def _weighted_by_class(self, block: Block) -> Block:
        """The same block, with weights that are multiplied by those of the classes."""
        if block.y is None:
            return block
        self.begin(block.y)
        if self.labels is None:  # no label has come yet
            return block
        assert self.class_weights is not None
        self.labels = self.labels.extended(block.y)
        return self.class_weights.weighted(block, self.labels)

    # A block.

    def begin(self, y: Any) -> None:
        """Settle the task, and with it the learner, by some labels; by default those of the first block decide.

        If all of them are missing, nothing is settled yet.
        """
        if self.labels is None:
            y = as_labels(y)
            missing = missing_labels(y)
            if missing is not None and missing.all():
                return
            if self.learner is None:
                self.labels = Labels.of(y, self.task, self.positive)
                self.notes += number_note(y) if (self.task, self.labels.task) == ("auto", "regress") else []
            else:
                self.labels = Labels.under(self.learner.loss, y, self.positive)
            self.notes += missing_note(y)
            if self.class_weights is not None:
                self.class_weights.require(self.labels)
        if self.learner is None:
            settings = {"intercept": self.intercept, "budget": self.budget, "maps": self.maps}
            self.learner = default_learner(self.labels.task, **settings)
            if self.lags is not None:
                self.learner = self.learner.with_lags(self.lags)
        if self.advice is not None and self.ensemble is None:
            self.ensemble = self.advice.ensemble(self.learner.loss)
        self.watch.begin(self.learner.loss)
        if self.labels.task == "multiclass" and self._options["witnesses"] is not None:
            if not self._options["quick"]:
                raise SettingsError(f"learn: {NO_CERTIFICATE}; leave witnesses out.")
            self._options |= {"units": "raw", "witnesses": None}  # they were defaults, not wishes

    def open_accounts(self, y: Any) -> None:
        """Begin the evidence, whose radii may depend on the first of the labels `y`, as the loss takes them."""
        evidence = evidence_for(self.learner, y, **self._options)
        if self.ensemble is not None:  # the regulariser's part is about the learner's own predictions
            evidence = dataclasses.replace(evidence, lambda_=0.0)
        self.accounts = self._opened_accounts(evidence)

    def learn(self, block: Block) -> Any:
        """Learn a block: the predictions, NaN for an example that was refused or skipped.

        An example without a label is predicted and not learnt; before the first label there is nothing to predict with.
        If an example stops the run, `stopped` says which and why, and the predictions are of those before it.
        """
        if block.y is None:
            raise DataError("there are no labels: give y.")
        self.begin(block.y)
        if self.labels is None:
            self.unlabelled += len(block)
            return np.full(len(block), np.nan)
        self.labels = self.labels.extended(block.y)
        shape = len(block), len(self.labels.classes)
        noted = (self.notes_probabilities or self.reports) and self.labels.task == "multiclass"
        if self.watch.asked and not noted and self.learner.loss.task == "multiclass":  # labels are numbers already
            noted, shape = (
                True,
                (len(block), int(max(self.learner.classes, self.labels.encode(block.y).max(initial=0.0)))),
            )
        self.probabilities = np.full(shape, np.nan) if noted and 64 * math.prod(shape) < memory_limit() else None
        return self._learn_part(block)

    def _learn_part(self, block: Block, before: int = 0) -> Any:
        """Learn rows that begin at row `before` of their block; a row that memory cannot hold is unusable."""
        assert self.labels is not None
        encoded = Block(block.X, *self._labels_and_weights(block))
        try:
            encoded = self.learner.widen(encoded)
        except NoRoom as error:
            if not self.halves_blocks:
                raise
            return self._learn_halves(block, before, error) if len(block) > 1 else self._leave_out(before, error)
        if self.accounts is None:
            self.open_accounts(encoded.y)
        return self._learn_rows(encoded, block.y, before)

    def _labels_and_weights(self, block: Block) -> tuple[Any, Any]:
        """Labels as the loss takes them, and weights; an example without a label has any label, and weight 0.

        With weight 0 a learner predicts an example and changes nothing, and no sum counts it.
        """
        assert self.labels is not None
        y, weights, missing = self.labels.encode(block.y), block.weights, block.unlabelled
        if missing is None:
            return y, weights
        any_label = next((label for label in (1.0, 0.0, *y[~missing][:1]) if self.learner.loss.accepts(label)), 1.0)
        weights = np.ones(len(block)) if weights is None else floats(weights, "weights")
        return np.where(missing, any_label, y), np.where(missing, 0.0, weights)

    def _learn_halves(self, block: Block, before: int, error: NoRoom) -> Any:
        """A block that memory cannot hold, half by half, until the row is found that it cannot."""
        narrow = block.narrowed()
        if self.learner.algorithm.wide is None and narrow.width < block.width:
            raise error  # not a row is too wide, but the matrix, or the number of slots that words are hashed to
        self.learner.begin_with(narrow)
        middle = len(block) // 2
        first = self._learn_part(narrow.part(0, middle).narrowed(), before)
        if self.stopped is not None:
            return first
        return np.concatenate([first, self._learn_part(narrow.part(middle, len(block)).narrowed(), before + middle)])

    def _leave_out(self, row: int, error: NoRoom) -> Any:
        """A row that is unusable, the only one of its part."""
        if self.skipped >= self.most_skipped:
            self.stopped = BadExample(row, str(error))
            return np.empty(0)
        self.skipped += 1
        self._pass_by(1)
        return np.full(1, np.nan)

    def _learn_rows(self, block: Block, given: Any, before: int) -> Any:
        """Rows that there is room for, with their labels as the loss takes them, and as they were `given`."""
        assert self.labels is not None
        ledger = self.accounts.ledger(self.learner, block)
        if self.reports and getattr(self.learner.algorithm, "maps", None) is not None:
            self.background = self.background or Background()
            self.background.enter(block)
        out, begin, skipped, stopped = np.empty(len(block)), 0, 0, ""
        noted = () if self.probabilities is None else (self.probabilities[before : before + len(block)],)
        missing, entered = missing_labels(given), 0
        while begin < len(block) and not stopped:
            begin, why = self._learn_stretch(block, ledger, out, begin, *noted)
            if why and self.labels.task != "regress" and np.isnan(block.y[begin]):
                why = self.labels.complaint(given[begin])
            if why and self.skipped + skipped >= self.most_skipped:
                out[begin:], stopped = np.nan, why
            elif why:
                self.learner.enter(block, begin, begin + 1)  # the rows after it have seen its label
                out[begin] = np.nan
                skipped, begin = skipped + 1, begin + 1
                self._pass_by(1)
            if begin - entered >= HANDED_ON:
                entered = self._hand_on(block, out, missing, entered, begin)
        self._hand_on(block, out, missing, entered, len(block))
        self.skipped += skipped
        self.refused += begin - int(np.count_nonzero(np.isfinite(out))) - skipped
        if missing is not None:
            self.unlabelled += int(np.count_nonzero(missing & np.isfinite(out)))
        if self.watch.asked:
            self.watch.enter(self.learner.loss, block, out, noted[0] if noted else None, before)
        if self.reports:
            self.baselines.enter(self.learner.loss, block.y, block.column_of_weights(), out)
            self.metrics.enter(self.learner.loss, block.y, block.column_of_weights(), out, *noted)
            if self.labels.task != "multiclass":
                self.metrics.groups.enter(block, block.column_of_weights(), out)
        if missing is not None and self.labels.task == "multiclass":
            out[missing] = np.nan
        if stopped:
            self.stopped = BadExample(before + begin, stopped)
            return out[:begin]
        return out

    def _hand_on(self, block: Block, out: Any, missing: Any, begin: int, end: int) -> int:
        """Enter some rows of a block into the accounts, but those without a label; returns `end`."""
        part, predictions = block.part(begin, end), out[begin:end]
        if missing is not None:
            there = ~missing[begin:end]
            part, predictions = part.where(there), predictions[there]
        if len(part) or not len(block):
            self.accounts.enter(self.learner, part, predictions)
        return end

    @property
    def _looks(self) -> bool:
        """Whether there are members whose losses are recorded over time."""
        return self.reports and bool(self.learner.algorithm.mixes)

    def _learn_stretch(self, block: Block, ledger: Any, out: Any, begin: int, *noted: Any) -> tuple[int, str]:
        """Learn rows from `begin` on, of a mixture as far as the next look at its members; as `Learner.run_block`."""
        end = len(block)
        if self._looks:
            end = min(end, begin + next_mark(self.course.seen) - self.course.seen)
        part, started = block.part(begin, end), self.clock()
        learnt, why = self.learner.run_block(part, ledger, out[begin:end], 0, *(array[begin:end] for array in noted))
        if self.ensemble is not None and learnt:
            out[begin : begin + learnt] = self._with_experts(part.first(learnt), out[begin : begin + learnt])
        self.seconds += self.clock() - started
        self._pass_by(learnt)
        return begin + learnt, why

    def _with_experts(self, block: Block, own: Any) -> Any:
        """The predictions of learner and experts together, from those of the learner, for the next rows."""
        assert self.ensemble is not None
        known = self.advice or Advice((), None)
        advice, done = self._advised
        advice = known.of(None if advice is None else advice[done : done + len(block)], len(block))
        scores = known.scores(self.ensemble, advice)
        return self.ensemble.learn(own, scores, block.labels(), block.column_of_weights())

    def _pass_by(self, rows: int) -> None:
        """Count rows of a mixture's stream, learnt or not, and look at its members where that is due."""
        self._advised = self._advised[0], self._advised[1] + rows
        if self._looks and rows:
            mark = next_mark(self.course.seen)
            self.course.seen += rows
            if self.course.seen == mark and self.accounts is not None:
                self.course.look(self.learner)
