"""`learn`: one pass over a stream, and `Run`, what it leaves behind."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from rue import ledger as accounts
from rue._jit import kernel
from rue.domains import Ball
from rue.errors import BadExample, DataError, SettingsError
from rue.learners import Learner
from rue.ledger import Ledger
from rue.passes import NO_CERTIFICATE, Pass
from rue.registry import make
from rue.regret.certificate import Certificate, require_domain
from rue.regret.evidence import Evidence
from rue.streams import Labels, blocks

__all__ = ["Run", "certificate_of", "learn", "score"]


@kernel
def score(loss: Any, predictions: Any, y: Any, out: Any) -> None:
    """ℓ(p, y) of each row."""
    for i in range(y.size):
        out[i] = loss.value(predictions[i], y[i])


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """What one pass leaves behind: each example scored before it was learnt."""

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

    def certificate(self, radius: float | None = None, domain: Any = None, units: str | None = None) -> Certificate:
        """How much better any linear model could have done, of norm ≤ `radius` or in a `domain` (D1 to D4).

        By default against the learner's own domain, or where that is unbounded, and the rounds have no regulariser,
        against the ball as large as its point. `units` is `raw`, or `largest` for models of features divided by their
        largest magnitude: the default for learners that do so too.
        """
        return certificate_of(self.learner, self.evidence, self.refused + self.skipped, radius, domain, units)

    def plot(self, path: Any = None) -> Any:
        """Risk and certificate side by side as a matplotlib Figure; `path` (.png, .svg or .pdf) also saves it."""
        from rue.plots import draw_run

        return draw_run(self, path)

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
    if learner.loss.task == "multiclass":
        raise SettingsError(f"certificate: {NO_CERTIFICATE}.")
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


def learn(
    X: Any,
    y: Any = None,
    *,
    learner: Learner | str | None = None,
    task: str = "auto",
    weights: Any = None,
    bad: str = "stop",
    units: str = "raw",
    witnesses: Any = None,
    curvature: bool = False,
) -> Run:
    """Learn a stream in one pass, each example scored before it is learnt.

    X is an array, a scipy sparse matrix or a stream of blocks. Classes may be written 0/1, −1/+1, true/false, or as any
    words, two or more; as other numbers with task="classify", or "multiclass" if a stream may hold two at first. The
    learner given is copied, never changed; by default it is the one that fits the labels. An unusable example stops the
    run, or with bad="skip" is passed over and counted.

    More can be kept for the certificate: `units="largest"` the features' largest magnitudes, `witnesses` (a radius or
    several) the learners of D3, `curvature=True` the Σ x xᵀ of D4 for square loss.

    >>> import rue
    >>> X, y = rue.census()
    >>> rue.learn(X, y, learner=rue.Perceptron()).mistakes
    10473
    """
    going = Pass(learner, task=task, bad=bad, units=units, witnesses=witnesses, curvature=curvature)
    parts: list[tuple[Any, Any, Any]] = []
    before = 0
    for block in blocks(X, y, weights):
        going.begin(block.y if y is None else y)
        out = going.learn(block)
        if going.stopped is not None:
            raise BadExample(before + going.stopped.row, going.stopped.why)
        assert going.labels is not None
        parts.append((out, going.labels.encode(block.y), block.weights))
        before += len(block)
    if going.labels is None or going.evidence is None:
        raise DataError("there are no examples to learn.")
    p, signs = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    column = None
    if any(part[2] is not None for part in parts):
        column = np.concatenate([np.ones(len(part[0])) if part[2] is None else part[2] for part in parts])
    return Run(
        going.learner, going.labels, p, signs, column, going.evidence, going.refused, going.skipped, going.seconds
    )
