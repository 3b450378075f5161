"""`learn`: one pass over a stream, and `Run`, what it leaves behind."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Unpack

import numpy as np

from rue import ledger as accounts
from rue.compiled import kernel
from rue.domains import Ball
from rue.errors import DataError, SettingsError
from rue.learners import Learner
from rue.learners.mixture.standing import Course, Standing, standing
from rue.ledger import Ledger
from rue.norms import norm
from rue.registry import make
from rue.regret.certificates.certificate import Certificate, require_domain
from rue.regret.certificates.evidence import Evidence
from rue.regret.certificates.telling import telling
from rue.runs.driver import NO_CERTIFICATE, Driver
from rue.streams import Block, Labels, ReadOptions, Stream, read, read_like

__all__ = ["PredictionLog", "Run", "certificate_of", "learn", "norm_of_point", "predictions_for", "score"]


SMALLEST, LARGEST = 1e-150, 1e150
"""Between which norms of a learnt point balls of about that size are looked at: elsewhere nothing would be proved."""


@kernel
def score(loss: Any, predictions: Any, y: Any, out: Any) -> None:
    """ℓ(p, y) of each row."""
    for i in range(y.size):
        out[i] = loss.value(predictions[i], y[i])


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
    """p_t, made before the update; NaN where the example was refused or skipped.

    Of more than two classes the probability of the one that came, negative where another had been given as much.
    """
    y: Any
    """The labels as the loss takes them."""
    weights: Any
    """The examples' weights, or None."""
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
        """How many examples had y·p ≤ 0, a class that was not the most probable (Q4); None for a regression."""
        return int(self.ledger.sums[accounts.MISTAKES]) if self.labels.task != "regress" else None

    @property
    def losses(self) -> Any:
        """ℓ(p_t, y_t) for each example; NaN where it was refused or skipped."""
        out = np.empty(self.y.size)
        score(self.learner.loss, self.predictions, self.y, out)
        return out

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

    def predict(self, X: Any) -> Any:
        """Predictions of the learner as it stands for data of the kind it has learnt; see `predictions_for`."""
        return predictions_for(self.learner, self.features, X)

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
    learner: Learner | str | None = None,
    weights: Any = None,
    bad: str = "stop",
    task: str = "auto",
    units: str = "raw",
    witnesses: Any = None,
    curvature: bool = False,
    **how: Unpack[ReadOptions],
) -> Run:
    """Learn a stream in one pass: predict each example, add up its loss, then learn it (docs/theory.md, Q1).

    X is an array, a scipy sparse matrix, a table (pandas, polars, Arrow), a path or several, or a stream of blocks. Of
    a table or a file, `y` (or `target`) and `weights` name columns; `drop`, `category`, `separator`, `bits` and
    `format` are those of the command line, and the result is the same to the last bit. Classes may be written 0/1,
    −1/+1, true/false, or as any words, two or more; as other numbers with task="classify", or "multiclass" if a stream
    may hold two at first. The learner given is copied, never changed; by default it is the one that fits the labels. An
    unusable example stops the run, or with bad="skip" is passed over and counted.

    More can be kept for the certificate: `units="largest"` the features' largest magnitudes, `witnesses` (a radius or
    several) the learners of D3, `curvature=True` the Σ x xᵀ of D4 for square loss.

    >>> import rue
    >>> X, y = rue.census()
    >>> rue.learn(X, y, learner=rue.Perceptron()).mistakes
    10473
    """
    driver = Driver(learner, task=task, bad=bad, units=units, witnesses=witnesses, curvature=curvature)
    stream, log = read(X, y, weights, **how), PredictionLog()
    if y is not None and not isinstance(y, str | int):
        driver.begin(y)
    for part in driver.run(stream.reads(), lent=stream.lent):
        log.add(driver, part.block, part.predictions)
        part.require_good()
    return log.run(driver, stream)


class PredictionLog:
    """The predictions, labels and weights of a run, as far as it has come."""

    def __init__(self) -> None:
        self.parts: list[tuple[Any, Any, Any]] = []

    def add(self, driver: Driver, block: Block, predictions: Any) -> None:
        """A block that was learnt and its predictions; copies, since a stream may use the block's memory again."""
        if driver.labels is not None and len(block):
            weights = None if block.weights is None else block.weights.copy()
            self.parts.append((predictions, np.array(driver.labels.encode(block.y)), weights))

    def run(self, driver: Driver, stream: Stream) -> Run:
        """The whole run."""
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
        )


def predictions_for(learner: Learner, features: dict[str, Any], X: Any) -> Any:
    """Predictions, by the average where the learner has one, for data read as those it has learnt; labels may lack."""
    average, parts = bool(learner.algorithm.averaging), []
    for chunk in read_like(features, X).reads(labelled=False):
        if chunk.first_bad:
            raise chunk.error(chunk.first_bad)
        parts.append(learner.predict_many(chunk.block, average=average))
    return np.concatenate(parts) if parts else np.empty(0)
