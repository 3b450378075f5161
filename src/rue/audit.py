"""`audit`: what a run did, what the theorems promise and what is true, beside each other, for a stored stream."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from rue.domains import Ball, Domain, Reals
from rue.errors import DataError, RueError, SettingsError
from rue.learners import Learner
from rue.learning import Run, learn
from rue.losses import Hinge, Logistic, SquaredHinge
from rue.registry import make
from rue.regret.bounds import Bound, Trace, bounds, trace
from rue.regret.certificate import Certificate, require_domain
from rue.regret.comparator import Comparator, best_in_hindsight
from rue.regret.evidence import Evidence, open_evidence
from rue.regret.ranges import loss_range
from rue.regret.risk import RiskBound, risk_always, risk_at_end
from rue.streams import Block, blocks

__all__ = ["Audit", "Check", "audit"]

_BY_D1 = frozenset({"B3", "B4", "B5", "B6", "B7", "B9"})
"""The theorems whose proofs go through D1, so that D1 itself must lie below them."""


@dataclasses.dataclass(frozen=True)
class Check:
    """An inequality that must hold."""

    name: str
    left: float
    right: float
    tolerance: float = 0.0

    @property
    def holds(self) -> bool:
        return self.left <= self.right + self.tolerance

    def __str__(self) -> str:
        return f"{'PASS' if self.holds else 'FAIL'}  {self.name}: {self.left:,.6g} ≤ {self.right:,.6g}"


@dataclasses.dataclass(frozen=True, eq=False)
class Audit:
    """Risk, regret as an interval, certificate, bounds and mistakes of a run; `str()` is a page to read."""

    run: Run
    domain: Domain
    """The set that the run is compared with."""
    loss: float
    """Σ of the rounds' losses, the regulariser included."""
    comparator: Comparator
    certificate: Certificate
    comparator_loss: tuple[float, float]
    """An interval that holds the least loss in hindsight: the better of the comparator's and the certificate's."""
    bounds: tuple[Bound, ...]
    """Every theorem about regret that speaks of this learner."""
    mistake_bounds: tuple[Bound, ...]
    risk_bounds: tuple[RiskBound, ...]
    """On the risk of the average of the points played (B13, B14), if the examples are independent draws."""
    remarks: tuple[str, ...]
    """What could not be said, and why."""
    checks: tuple[Check, ...]
    trace: Trace | None = None
    stored: tuple[Block, ...] = ()
    """The examples that were scored, with the labels as the loss takes them."""

    @property
    def regret(self) -> tuple[float, float]:
        """(lo, hi): the regret against the domain lies between."""
        low, high = self.comparator_loss
        return self.loss - high, self.loss - low

    @property
    def bound(self) -> Bound | None:
        """The least bound on regret whose assumptions the run met; or one whose it did not, if there is no other."""
        met = [bound for bound in self.bounds if bound.met]
        return min(met or self.bounds, key=lambda bound: bound.value, default=None)

    @property
    def passed(self) -> bool:
        """Whether every inequality that must hold does."""
        return all(check.holds for check in self.checks)

    def plot(self, path: Any = None) -> Any:
        """Regret, risk, certificate and, for classes, mistakes as a matplotlib Figure; `path` also saves it."""
        from rue.plots import draw_audit

        return draw_audit(self, path)

    def __str__(self) -> str:
        run, (low, high) = self.run, self.regret
        wrong = "" if run.mistakes is None else f", {run.mistakes:,} mistakes ({run.mistakes / run.examples:.2%})"
        lines = [
            f"{run.examples:,} examples, loss {self.loss:,.6g}, risk {run.risk:.6g}{wrong}",
            str(self.comparator),
            f"regret against {self.domain!r}: between {low:+,.6g} and {high:+,.6g}"
            + (f", {high / run.examples:+.3g} a round at most" if run.examples else ""),
            str(self.certificate),
            *map(str, self.mistake_bounds),
            *map(str, self.bounds),
            *map(str, self.risk_bounds),
            *self.remarks,
            *map(str, self.checks),
        ]
        return "\n".join(lines)


def audit(
    source: Run | Learner | str,
    X: Any,
    y: Any = None,
    *,
    weights: Any = None,
    radius: float | None = None,
    domain: Any = None,
    delta: float = 0.05,
    tolerance: float = 1e-6,
) -> Audit:
    """Audit a run on the stream it was made on, or a learner by running it.

    It is compared with its own domain, or where that is unbounded, without a regulariser, with the ball as large
    as its point; or with the ball of `radius`, or another `domain`. `delta` is the probability with which the bounds on
    risk may fail, `tolerance` how near to the best in hindsight to come, relative to its loss.

    >>> import rue
    >>> X, y = rue.census()
    >>> checked = rue.audit(rue.OGD("hinge", "ball:10"), X, y)
    >>> checked.passed, checked.bound.theorem, checked.bound.holds
    (True, 'B6', True)
    """
    run = source if isinstance(source, Run) else learn(X, y, learner=source, weights=weights)
    if run is source and weights is not None:
        raise SettingsError("audit: a run knows its weights: leave weights out.")
    if not run.examples:
        raise DataError("audit: the run learnt no example.")
    K = _compared(run, radius, domain)
    learner, lambda_ = run.learner, run.evidence.lambda_
    stored = _stored(run, X)
    comparator = best_in_hindsight(
        stored, loss=learner.loss, domain=K, lambda_=lambda_, intercept=learner.intercept, tolerance=tolerance
    )
    certificate = run.evidence.certificate(K, left_out=run.refused + run.skipped)
    loss = certificate.loss_total
    at_least = max(comparator.at_least, certificate.comparator_loss_at_least)
    interval = (min(at_least, comparator.value), comparator.value)
    remarks: list[str] = []
    traced = _traced(run, X, y, remarks)
    found = _bounds(traced, run, K, stored, (loss, interval), remarks) if traced else []
    mistakes = tuple(bound for bound in found if bound.theorem in ("B1", "B2"))
    others = tuple(bound for bound in found if bound.theorem not in ("B1", "B2"))
    rounding = traced.tolerance(_size(K, comparator)) if traced else 1e-9 * abs(loss)
    checks = _checks(run, K, comparator, certificate, found, stored, rounding)
    risks = _risks(run, traced, delta, remarks)
    return Audit(
        run,
        K,
        loss,
        comparator,
        certificate,
        interval,
        others,
        mistakes,
        risks,
        tuple(remarks),
        tuple(checks),
        traced,
        tuple(stored),
    )


def _compared(run: Run, radius: float | None, domain: Any) -> Domain:
    """The set to compare with."""
    if radius is not None and domain is not None:
        raise SettingsError("audit: give a radius or a domain, not both.")
    if radius is not None:
        return Ball(radius)
    if domain is not None:
        return require_domain(make("domain", domain))
    own: Domain = run.learner.domain
    if own.bounded or run.evidence.lambda_ > 0.0:
        return own
    norm = float(np.linalg.norm(run.learner.point))
    return Ball(norm if norm > 0.0 else 1.0)


def _stored(run: Run, X: Any) -> list[Block]:
    """The examples that were scored, with the labels as the loss takes them."""
    from scipy import sparse

    kept, before = [], 0
    for block in blocks(X):
        part = slice(before, before + len(block))
        before += len(block)
        if before > run.predictions.size:
            break
        weights = None if run.weights is None else run.weights[part]
        scored = np.isfinite(run.predictions[part])
        matrix = block.X
        if block.sparse:
            shape = (len(block), block.width)
            matrix = sparse.csr_matrix((block.X.data, block.X.indices, block.X.indptr), shape=shape)
        if not scored.all():
            matrix = matrix[np.flatnonzero(scored)]
            weights = None if weights is None else weights[scored]
        kept.append(Block(matrix, run.y[part][scored], weights))
    if before != run.predictions.size:
        raise DataError(f"audit: the run saw {run.predictions.size:,} examples, but the stream given has others.")
    return kept


def _traced(run: Run, X: Any, y: Any, remarks: list[str]) -> Trace | None:
    try:
        return trace(run, X, y, None if y is None else run.weights)
    except RueError as error:
        remarks.append(f"no bound of section 4: {error}")
        return None


def _bounds(
    traced: Trace,
    run: Run,
    K: Domain,
    stored: list[Block],
    known: tuple[float, tuple[float, float]],
    remarks: list[str],
) -> list[Bound]:
    """The theorems, compared with the regret where they speak of the set at hand."""
    own = run.learner.domain
    radius = K.radius if isinstance(K, Ball) and not own.bounded and not K.centre.any() else None
    loss, (low, high) = known
    speaks = own == K or (isinstance(own, Reals) and radius is not None)
    if np.any(traced.alphas != traced.weights):  # A6: the rounds' losses are t·ℓ_t
        evidence, comparator = _by_time(traced, run, K, stored)
        total = evidence.certificate(K).loss_total
        low, high = max(comparator.at_least, evidence.certificate(K).comparator_loss_at_least), comparator.value
        loss = total
    found = bounds(traced, regret=loss - low if speaks else None, radius=radius)
    if not found:
        remarks.append(f"no theorem of section 4 speaks of {run.learner.algorithm.name} with these settings")
    gap = max(0.0, high - low)
    return [
        dataclasses.replace(bound, tolerance=bound.tolerance + gap) if bound.theorem not in ("B1", "B2") else bound
        for bound in found
    ]


def _by_time(traced: Trace, run: Run, K: Domain, stored: list[Block]) -> tuple[Evidence, Comparator]:
    """The accounts and the best in hindsight of the rounds t·ℓ_t."""
    learner, lambda_ = run.learner, run.evidence.lambda_
    scored = np.isfinite(run.predictions)
    predictions = run.predictions[scored]
    alphas = np.zeros(predictions.size)
    alphas[np.ones(predictions.size, dtype=bool) if run.weights is None else run.weights[scored] > 0.0] = traced.alphas
    evidence, before, weighted = open_evidence(learner.loss, lambda_=lambda_), 0, []
    for block in stored:
        part = slice(before, before + len(block))
        weighted.append(Block(block.X, block.y, alphas[part]))
        evidence.enter(weighted[-1], predictions[part], learner.intercept, before)
        before += len(block)
    if lambda_ > 0.0:
        evidence.penalty = 0.5 * lambda_ * float(traced.alphas @ traced.point_squares)
    comparator = best_in_hindsight(weighted, loss=learner.loss, domain=K, lambda_=lambda_, intercept=learner.intercept)
    return evidence, comparator


def _checks(
    run: Run,
    K: Domain,
    comparator: Comparator,
    certificate: Certificate,
    found: list[Bound],
    stored: list[Block],
    rounding: float,
) -> list[Check]:
    """Every inequality that must hold, whatever the data."""
    again, before = open_evidence(run.learner.loss, lambda_=run.evidence.lambda_), 0
    scored = run.predictions[np.isfinite(run.predictions)]
    for block in stored:
        again.enter(block, scored[before : before + len(block)], run.learner.intercept, before)
        before += len(block)
    again.penalty = run.evidence.penalty
    recomputed = again.certificate(K)
    checks = [
        Check(
            "the accounts, kept twice, differ by", abs(recomputed.loss_total - certificate.loss_total), 0.0, rounding
        ),
        Check("the best in hindsight, from below and above", comparator.at_least, comparator.value, rounding),
    ]
    if math.isfinite(certificate.alone):
        checks += [
            Check(
                f"{certificate.theorem} does not exceed the best in hindsight",
                certificate.comparator_loss_at_least,
                comparator.value,
                rounding,
            ),
            Check("regret ≤ certificate", certificate.loss_total - comparator.value, certificate.alone, rounding),
        ]
    checks += [
        Check(
            f"{'mistakes' if bound.theorem in ('B1', 'B2') else 'regret'} ≤ {bound.theorem}, {bound.form}",
            bound.observed,
            bound.value,
            bound.tolerance,
        )
        for bound in found
        if bound.met and bound.observed is not None
    ]
    if run.learner.domain == K and K.bounded and run.evidence.lambda_ == 0.0:
        checks += [
            Check(f"D1 ≤ {bound.theorem}, {bound.form}", certificate.alone, bound.value, bound.tolerance + rounding)
            for bound in found
            if bound.met and bound.theorem in _BY_D1 and bound.form != "tuned"
        ]
    if run.mistakes is not None and run.weights is None:
        size = {Hinge: 1.0, SquaredHinge: 1.0, Logistic: math.log(2.0)}.get(type(run.learner.loss))
        if size is not None:
            checks.append(Check("mistakes ≤ loss, which bounds the 0-1 loss", run.mistakes, run.loss / size, rounding))
    return checks


def _risks(run: Run, traced: Trace | None, delta: float, remarks: list[str]) -> tuple[RiskBound, ...]:
    """B13 and B14, where the loss has a range."""
    if traced is None:
        return ()
    loss, X = run.learner.loss, float(traced.norms.max(initial=0.0))
    K = run.learner.domain
    if run.evidence.lambda_ > 0.0 and not K.bounded and loss.lipschitz is not None:
        K = Ball(max(loss.lipschitz * X / run.evidence.lambda_, 1e-300))  # A4: the point stays in it
    ends = {} if loss.task == "classify" else {"y_low": float(run.y.min()), "y_high": float(run.y.max())}
    try:
        B = loss_range(loss, K, X, d=run.learner.coordinates, **ends)
        if math.isinf(B):
            remarks.append(f"no bound on risk (B13, B14): {loss!r} has no range on {K!r}")
            return ()
        weights = run.weights
        most = 1.0 if weights is None else float(np.max(weights))
        return (
            risk_at_end(run.losses, B, delta, weights=weights, loss=loss),
            risk_always(run.losses, B, delta, weights=weights, largest_weight=most, loss=loss),
        )
    except RueError as error:
        remarks.append(f"no bound on risk (B13, B14): {error}")
        return ()


def _size(K: Domain, comparator: Comparator) -> float:
    if isinstance(K, Ball):
        return K.radius + float(np.linalg.norm(K.centre))
    return float(np.linalg.norm(comparator.point))
