"""`learn`: one pass over a stream, and `Run`, what it leaves behind."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Unpack

import numpy as np

from rue import ledger as accounts
from rue.domains import Ball
from rue.errors import DataError, SettingsError
from rue.learners import Learner
from rue.learners.mixture.standing import Course, Standing, standing
from rue.ledger import Ledger
from rue.memory import memory_limit
from rue.norms import norm
from rue.registry import make
from rue.regret.certificates.certificate import Certificate, require_domain
from rue.regret.certificates.evidence import Evidence
from rue.regret.certificates.telling import telling
from rue.runs.baselines import Baselines
from rue.runs.class_weights import ClassWeights
from rue.runs.driver import NO_CERTIFICATE, Driver
from rue.runs.evaluation import Evaluation, score
from rue.runs.holdout import Holdout
from rue.runs.metrics import Metrics
from rue.runs.predicting import predict
from rue.runs.resuming import Learnt, history_entry, read_more, resumed
from rue.streams import Block, Labels, ReadOptions, Stream, read, read_like
from rue.streams.block import as_array, is_readable
from rue.streams.chunk import Chunk
from rue.streams.data import Data
from rue.streams.stream import Arrays

__all__ = ["PredictionLog", "Run", "certificate_of", "evaluate", "learn", "norm_of_point", "score"]


SMALLEST, LARGEST = 1e-150, 1e150
"""Between which norms of a learnt point balls of about that size are looked at: elsewhere nothing would be proved."""


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """One pass over a stream and what is known of it afterwards; `rue.learn` returns it.

    Each example was predicted before it was learnt, so `risk`, the mean loss Σ weight·ℓ(p_t, y_t) / Σ weight, is a fair
    score (docs/theory.md, Q1). `certificate` bounds how much better a linear model could have done (D1 to D4).

    >>> import rue
    >>> run = rue.learn([[1.0, 2.0], [3.0, -1.0]], [1, -1], learner=rue.Perceptron())
    >>> run.examples, run.mistakes, run.predictions
    (2, 2, array([0., 2.]))
    """

    learner: Learner
    """The learner, learnt."""
    labels: Labels
    """The task, and which class stands for −1 and which for +1, or all the classes."""
    predictions: Any
    """p_t, made before the update, one for each row that was read; NaN where the example was refused or skipped.

    Of more than two classes the probability of the one that came, negative where another had been given as much; NaN
    where the label is missing.
    """
    y: Any
    """The labels as the loss takes them; NaN where the label is missing or the example was skipped."""
    weights: Any
    """The examples' weights, those of their classes among them, or None."""
    evidence: Evidence
    """The sums from which regret is certified; those of several runs add up (`run.evidence.merged`)."""
    refused: int
    """Examples whose prediction, loss or step was not finite: neither scored nor learnt."""
    skipped: int
    """Unusable examples passed over with bad="skip"."""
    seconds: float
    """Time spent learning, without compilation if a kernel was compiled before."""
    features: dict[str, Any] = dataclasses.field(default_factory=dict)
    """How files or tables become features; empty for arrays and blocks."""
    names: dict[int, str] = dataclasses.field(default_factory=dict)
    """What hashed features are called."""
    course: Course = dataclasses.field(default_factory=Course, repr=False)
    """How the members of a mixture have stood over time."""
    missing: int = 0
    """Values that were missing in the rows of tables: empty cells, nulls, NaN."""
    counts: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    """Counters and baselines as a model file stores them."""
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """What was learnt when: `data`, `examples`, `date`, `rue`; the last entry is this run's."""
    baselines: Baselines = dataclasses.field(default_factory=Baselines, repr=False)
    """What the best constant prediction, and saying the last label again, would have lost."""
    metrics: Metrics = dataclasses.field(default_factory=Metrics)
    """Accuracy, AUC, F1, MAE and the like of `predictions`, and how they were over time."""
    holdout: Evaluation | None = None
    """How the finished model did on the last rows, which were not learnt, if `learn` was given a `holdout`."""
    test: Evaluation | None = None
    """How the finished model did on the examples that `learn` was given as `test`."""
    unlabelled: int = 0
    """Examples without a label (None or NaN): predicted, but neither scored nor learnt."""
    probabilities: Any = None
    """Of more than two classes, those of every class, made before the update: a column for each of `labels.classes`.

    0 for a class that had not been learnt yet, NaN in the row of an example that was refused or skipped; what a row
    lacks to 1 is the probability that a class never seen before comes. None for two classes, for numbers, and where the
    matrix would take an eighth of the memory or more.
    """
    class_weights: ClassWeights | None = None
    """What the examples' weights were multiplied by."""

    @property
    def ledger(self) -> Ledger:
        """The accounts of the pass."""
        return self.evidence.ledger

    @property
    def examples(self) -> int:
        """How many examples were scored and learnt."""
        return int(self.ledger.sums[accounts.EXAMPLES])

    @property
    def loss(self) -> float:
        """Σ weight·ℓ(p_t, y_t), without the regulariser (which `learner.penalty` has)."""
        return float(self.ledger.sums[accounts.LOSS])

    @property
    def risk(self) -> float:
        """The sequential risk Σ weight·ℓ / Σ weight (Q1)."""
        mass = float(self.ledger.sums[accounts.WEIGHT])
        return self.loss / mass if mass else float("nan")

    @property
    def mistakes(self) -> int | None:
        """How many examples had y·p ≤ 0, a class that was not the most probable (Q4); None for a regression.

        Every example counts as one, whatever its weight; `metrics["accuracy"]` is weighted, as `risk` is.
        """
        return int(self.ledger.sums[accounts.MISTAKES]) if self.labels.task != "regress" else None

    @property
    def losses(self) -> Any:
        """ℓ(p_t, y_t) for each example; NaN where it was refused or skipped, or has no label."""
        out = np.empty(self.y.size)
        score(self.learner.loss, self.predictions, self.y, out)
        return np.where(np.isnan(self.y), np.nan, out)

    @property
    def scored(self) -> Any:
        """Which rows count: they have a label, a weight above 0 and a finite prediction."""
        weighty = True if self.weights is None else self.weights > 0.0
        return np.isfinite(self.predictions) & ~np.isnan(self.y) & weighty

    @property
    def members(self) -> Standing | None:
        """How the members of a mixture stand: loss and weight of each, and the price of B12; None for others."""
        return standing(self.learner)

    def certificate(self, radius: float | None = None, domain: Any = None, units: str | None = None) -> Certificate:
        """How much better any linear model could have done, of norm ≤ `radius` or in a `domain` (D1 to D4).

        By default against the learner's own domain, or where that is unbounded, and the rounds have no regulariser,
        against the largest ball about which the proof says much (`rue.regret.certificates.telling`). `units` is `raw`,
        or `largest` for models of features divided by their largest magnitude: the default for learners that do so too.
        """
        return certificate_of(self.learner, self.evidence, self.refused + self.skipped, radius, domain, units)

    def evaluate(self, chunks: Iterable[Chunk], bad: str = "stop") -> Evaluation:
        """How the learner as it stands does on examples that it does not learn."""
        return evaluate(self.learner, self.labels, self.baselines, chunks, bad, self.class_weights)

    def predict(self, X: Any, as_: str = "score") -> Any:
        """Predictions for one example or many; they change nothing. As `rue predict` says them.

        X is what was learnt: arrays and sparse matrices, or tables and files, read as those that were learnt (labels
        may be missing). One example is a dict, a pandas Series or a one-dimensional array, and gets one prediction;
        several are rows of those, or a list of dicts. In a dict a word is a category, and None a missing value.

        `as_` is `score` (a number to predict, or what is above 0 for one class and below for the other),
        `probability` (of the class `labels.positive`, where the loss is logistic), or `label`. Of more than two classes
        `probability` is a matrix, a column for each of `labels.classes`; what a row lacks to 1 is the probability that
        a class never seen before comes. `score` has that in a column of its own, the first.

        >>> import pandas, rue
        >>> table = pandas.DataFrame({"sky": ["grey", "blue", "grey", "blue"], "umbrella": ["yes", "no", "yes", "no"]})
        >>> run = rue.learn(table, "umbrella")
        >>> run.predict({"sky": "grey"}, as_="label")
        'yes'
        """
        return predict(self.learner, X, labels=self.labels, features=self.features, names=self.names, as_=as_)

    def plot(self, path: Any = None) -> Any:
        """Risk and certificate side by side as a matplotlib Figure; `path` (.png, .svg or .pdf) also saves it."""
        from rue.pictures.plots import draw_run

        return draw_run(self, path)

    def plot_members(self, path: Any = None) -> Any:
        """The race of a mixture's members, and who carried the weight, against time; a Figure, as `plot` makes it."""
        from rue.pictures.races import draw_members

        return draw_members(self, path)

    def __repr__(self) -> str:
        wrong = "" if self.mistakes is None else f", mistakes={self.mistakes}"
        return f"Run(examples={self.examples}, risk={self.risk:.6g}{wrong}, learner={self.learner!r})"


def certificate_of(
    learner: Learner,
    evidence: Evidence,
    left_out: int = 0,
    radius: float | None = None,
    domain: Any = None,
    units: str | None = None,
    thorough: bool = True,
) -> Certificate:
    """What `Run.certificate` says, from a learner and its evidence alone.

    Without `thorough` no search is made: not for what the digest proves, nor for a radius.
    """
    if learner.loss.task == "multiclass":
        raise SettingsError(f"certificate: {NO_CERTIFICATE}.")
    if radius is not None and domain is not None:
        raise SettingsError("certificate: give a radius or a domain, not both.")
    scales = learner.scales_in_places()
    if scales is not None and evidence.numbering is not None and evidence.numbering is not learner.numbering:
        scales = evidence.in_places(scales, learner.coordinates_of_places())
    if units is None:
        units = "raw" if scales is None else "largest"
    if radius is not None:
        K: Any = Ball(radius)
    elif domain is not None:
        K = require_domain(make("domain", domain))
    else:
        K = learner.domain
        size = math.inf if K.bounded or evidence.lambda_ > 0.0 else norm_of_point(learner, units == "largest")
        if size < LARGEST and thorough:
            return telling(
                lambda radius: evidence.certificate(Ball(radius), units, scales, left_out),
                size if size > SMALLEST else 1.0,
            )
        K = Ball(size if size > 0.0 else 1.0) if size < LARGEST else K
    return evidence.certificate(K, units, scales, left_out, thorough)


def norm_of_point(learner: Learner, scaled: bool) -> float:
    """‖w‖ of a learner's point; if `scaled`, of weights of features in units of their largest magnitude."""
    point, scales = learner.point_in_places(), learner.scales_in_places()
    if scaled and scales is not None:
        point = point * scales[: point.size]
    return norm(point)


def learn(
    X: Any,
    y: Any = None,
    *,
    learner: Learner | Learnt | str | None = None,
    weights: Any = None,
    bad: str = "stop",
    task: str = "auto",
    positive: Any = None,
    class_weight: Any = None,
    units: str = "raw",
    witnesses: Any = None,
    curvature: bool = False,
    holdout: float | None = None,
    test: Any = None,
    **how: Unpack[ReadOptions],
) -> Run:
    """Learn a stream in one pass: predict each example, add up its loss, then learn it (docs/theory.md, Q1).

    X is an array, a scipy sparse matrix, a table (pandas, polars, Arrow), a path or several, or a stream of blocks. Of
    a table or a file, `y` (or `target`) and `weights` name columns; `drop`, `category`, `separator`, `bits` and
    `format` are those of the command line, and the result is the same to the last bit. Classes may be written 0/1,
    −1/+1, true/false, or as any words, two or more; as other numbers with task="classify", or "multiclass" if a stream
    may hold two at first. The learner given is copied, never changed; by default it is the one that fits the labels. An
    example whose label is missing (None or NaN) is predicted, not learnt, and counted. An unusable example stops the
    run, or with bad="skip" is passed over and counted; `run.predictions` has an entry for every row all the same.

    `holdout` and `test` measure the model that is kept: `run.holdout` is of the last rows, a share such as 0.2 or a
    number of them, which are predicted at the end and never learnt; `run.test` of other examples, in a pair (X, y) of
    arrays, or in a file or a table that has the columns of this one.

    Of two classes the last in sorted order is +1, unless their meaning says otherwise (yes and no, 0 and 1) or
    `positive` does. `class_weight` multiplies the weights of examples by those of their classes: a dictionary such as
    {"yes": 5}, or "balanced", n/(k·n_c) with the counts so far (`ClassWeights`).

    To go on with a run or a model (`rue.load`), give it as the learner: a copy of it learns on, data are read as those
    it has learnt, classes keep their meaning, and loss, mistakes and certificate are of everything learnt so far, as if
    there had been one stream; `predictions`, `y` and `weights` are of the new rows. An option that contradicts it is an
    error.

    More can be kept for the certificate: `units="largest"` the features' largest magnitudes, `witnesses` (a radius or
    several) the learners of D3, `curvature=True` the Σ x xᵀ of D4 for square loss.

    >>> import rue
    >>> X, y = rue.census()
    >>> rue.learn(X, y, learner=rue.Perceptron()).mistakes
    10473
    """
    evidence: dict[str, Any] = {"units": units, "witnesses": witnesses, "curvature": curvature}
    options: dict[str, Any] = {"task": task, "bad": bad, "positive": positive, "class_weight": class_weight, **evidence}
    history: list[dict[str, Any]] = []
    if isinstance(learner, Learnt):
        driver = resumed(learner, **options)
        stream, history = read_more(learner, X, y, weights, dict(how)), learner.history
    else:
        driver, stream = Driver(learner, **options), read(X, y, weights, **how)
    driver.notes_probabilities = True
    log, before = PredictionLog(), driver.examples
    if y is not None and not isinstance(y, str | int):
        driver.begin(y)
    held = None if holdout is None else Holdout(stream, holdout)
    chunks = stream.reads() if held is None else held.training(stream.reads())
    for part in driver.run(chunks, lent=stream.lent):
        log.add(driver, part.block, part.predictions, part.probabilities, [row.place for row in part.skipped])
        part.require_good()
    for note in driver.notes:
        warnings.warn(note, stacklevel=2)
    run = log.run(driver, stream, [*history, history_entry(driver.examples - before)])
    if held is not None:
        run = dataclasses.replace(run, holdout=run.evaluate(held.chunks(), bad))
    if test is not None:
        run = dataclasses.replace(run, test=run.evaluate(_test_chunks(run.features, test), bad))
    return run


def _test_chunks(features: dict[str, Any], test: Any) -> Iterator[Chunk]:
    """The examples that `learn` is to test with: a file or a table, or a tuple of X, y and perhaps weights."""
    if is_readable(test) and not isinstance(test, tuple):
        return read_like(features, test).reads()
    if not isinstance(test, tuple) or len(test) not in (2, 3):
        raise SettingsError("learn: test is a pair (X, y), or a file or a table like the one that was learnt.")
    X, *columns = test
    if not is_readable(X):
        return Arrays(X, *columns, *[None] * (3 - len(test))).reads()
    stream = read_like(features, X)
    assert isinstance(stream, Data)
    stream.y, stream.weights = (*(as_array(column, "labels") for column in columns), None)[:2]
    return stream.reads(labelled=False)


class PredictionLog:
    """The predictions, labels and weights of a run, as far as it has come."""

    def __init__(self) -> None:
        self.parts: list[tuple[Any, Any, Any]] = []
        self.probabilities: list[Any] | None = []
        """Of more than two classes those of every class, for each part; None where they are not noted or too many."""

    def add(
        self, driver: Driver, block: Block, predictions: Any, probabilities: Any = None, skipped: Sequence[int] = ()
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
        self.parts.append((np.insert(predictions, skipped, np.nan), np.insert(y, skipped, np.nan), weights))
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
        )


def evaluate(
    learner: Learner,
    labels: Labels,
    training: Baselines,
    chunks: Iterable[Chunk],
    bad: str,
    class_weights: ClassWeights | None = None,
    record: Callable[[Chunk, Any], None] = lambda chunk, predictions: None,
) -> Evaluation:
    """How a learner that stands still does on examples that it does not learn; `training` is of those it has learnt.

    `record` is given each chunk and the predictions for its block.
    """
    evaluation, frozen = Evaluation(learner.loss, labels, training, class_weights), learner.frozen()
    for chunk in chunks:
        if chunk.first_bad and bad == "stop":
            raise chunk.error(chunk.first_bad)
        evaluation.skipped += len(chunk.bad)
        predictions = frozen.predict_many(chunk.block)
        record(chunk, predictions)
        if len(chunk.block):
            evaluation.enter(chunk.block, predictions)
    return evaluation
