"""`learn`: one pass over a stream, and `Run`, what it leaves behind."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

import numpy as np

from rue import ledger as accounts
from rue._jit import kernel
from rue.domains import Ball
from rue.errors import BadExample, DataError, SettingsError
from rue.learners import AdaGrad, Learner
from rue.ledger import Ledger
from rue.registry import make
from rue.regret.certificate import Certificate, require_domain
from rue.regret.evidence import Evidence, open_evidence
from rue.streams import Block, Labels, blocks

__all__ = ["Run", "certificate_of", "default_learner", "learn"]


@kernel
def _score(loss: Any, predictions: Any, y: Any, out: Any) -> None:
    for i in range(y.size):
        out[i] = loss.value(predictions[i], y[i])


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """What one pass leaves behind: each example scored before it was learnt."""

    learner: Learner
    """The learner, learnt."""
    labels: Labels
    """The task, and which class stands for −1 and which for +1."""
    predictions: Any
    """p_t, made before the update; NaN where the example was refused or skipped."""
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
        """How many examples had y·p ≤ 0 (Q4); None for a regression."""
        return int(self.ledger.sums[accounts.MISTAKES]) if self.labels.task == "classify" else None

    @property
    def losses(self) -> Any:
        """ℓ(p_t, y_t) for each example; NaN where it was refused or skipped."""
        out = np.empty(self.y.size)
        _score(self.learner.loss, self.predictions, self.y, out)
        return out

    def certificate(self, radius: float | None = None, domain: Any = None, units: str | None = None) -> Certificate:
        """How much better any linear model could have done, of norm ≤ `radius` or in a `domain` (D1 to D4).

        By default against the learner's own domain, or where that is unbounded, and the rounds have no regulariser,
        against the ball as large as its point. `units` is `raw`, or `largest` for models of features divided by their
        largest magnitude: the default for learners that do so too.
        """
        return certificate_of(self.learner, self.evidence, self.refused + self.skipped, radius, domain, units)

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
) -> Certificate:
    """What `Run.certificate` says, from a learner and its evidence alone."""
    if radius is not None and domain is not None:
        raise SettingsError("certificate: give a radius or a domain, not both.")
    scales = learner.scales
    if units is None:
        units = "raw" if scales is None else "largest"
    if radius is not None:
        K: Any = Ball(radius)
    elif domain is not None:
        K = require_domain(make("domain", domain))
    elif learner.domain.bounded or evidence.lambda_ > 0.0:
        K = learner.domain
    else:
        point = learner.point
        if units == "largest" and scales is not None:
            point = point * scales[: point.size]
        norm = float(np.linalg.norm(point))
        K = Ball(norm if norm > 0.0 else 1.0) if norm < math.inf else learner.domain
    return evidence.certificate(K, units, scales, left_out)


def default_learner(task: str) -> Learner:
    """The learner for a task when none is named: AdaGrad on features divided by their largest magnitude."""
    return AdaGrad("logistic" if task == "classify" else "square", rate=0.5, beta=1.0, scale="largest")


def learn(
    X: Any,
    y: Any = None,
    *,
    learner: Learner | str | None = None,
    weights: Any = None,
    bad: str = "stop",
    units: str = "raw",
    witnesses: Any = None,
    curvature: bool = False,
) -> Run:
    """Learn a stream in one pass, each example scored before it is learnt.

    X is an array, a scipy sparse matrix or a stream of blocks. Classes may be written 0/1, −1/+1, true/false, or as any
    two words. The learner given is copied, never changed; by default it is the one that fits the labels. An unusable
    example stops the run, or with bad="skip" is passed over and counted.

    More can be kept for the certificate: `units="largest"` the features' largest magnitudes, `witnesses` (a radius or
    several) the learners of D3, `curvature=True` the Σ x xᵀ of D4 for square loss.

    >>> import rue
    >>> X, y = rue.census()
    >>> rue.learn(X, y, learner=rue.Perceptron()).mistakes
    10473
    """
    if bad not in ("stop", "skip"):
        raise SettingsError(f"learn: bad must be 'stop' or 'skip', not {bad!r}.")
    given = None if learner is None else make("learner", learner)
    if given is not None and not isinstance(given, Learner):
        raise SettingsError(f"learn: learner must be a learner such as rue.OGD(), or a spec, not {learner!r}.")
    given = None if given is None else given.copy()
    learnt: Learner | None = given
    labels: Labels | None = None
    evidence: Evidence | None = None
    kept = {"units": units, "witnesses": witnesses, "curvature": curvature}
    parts: list[tuple[Any, Any, Any]] = []
    skipped, before, seconds = 0, 0, 0.0
    for block in blocks(X, y, weights):
        if labels is None:
            labels = Labels.of(block.y if y is None else y, "auto" if given is None else given.loss.task)
        if learnt is None:
            learnt = default_learner(labels.task)
        labels, said = labels.extended(block.y), block.y
        if said is None:
            raise DataError("a block has no labels: every block of a stream needs y.")
        block = Block(block.X, labels.encode(said), block.weights)
        learnt.widen(block)
        if evidence is None:
            lambda_ = float(getattr(learnt.algorithm, "lambda_", 0.0))
            evidence = open_evidence(learnt.loss, lambda_=lambda_, **kept)
            evidence.penalty = -learnt.penalty  # of rounds before this run
        evidence.widen(learnt.coordinates)
        out, begin = np.empty(len(block)), 0
        started = time.perf_counter()
        while begin < len(block):
            begin, why = learnt.run_block(block, evidence.ledger, out, begin)
            if why and labels.task == "classify" and np.isnan(block.y[begin]):
                why = labels.complaint(said[begin])
            if why and bad == "stop":
                raise BadExample(before + begin, why)
            if why:
                out[begin] = np.nan
                skipped, begin = skipped + 1, begin + 1
        seconds += time.perf_counter() - started
        evidence.watch(block, out, learnt.intercept)
        parts.append((out, block.y, block.weights))
        before += len(block)
    if labels is None or learnt is None or evidence is None:
        raise DataError("there are no examples to learn.")
    p, signs = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    column = None
    if any(part[2] is not None for part in parts):
        column = np.concatenate([np.ones(len(part[0])) if part[2] is None else part[2] for part in parts])
    evidence.penalty += learnt.penalty
    refused = int(np.isnan(p).sum()) - skipped
    return Run(learnt, labels, p, signs, column, evidence, refused, skipped, seconds)
