"""`audit`: for a stored stream, what a run did, what the theorems promise, and what is true, side by side.

An audit learns the stream again round by round, solves for the best point in hindsight, and adds up every sum once more
from the stored predictions, by other code than the run's. Each inequality that must hold between these is a `Check`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from rue import ledger as accounts
from rue.domains import Ball, Domain
from rue.errors import DataError, RueError, SettingsError, shown
from rue.learners import Learner
from rue.norms import norm
from rue.registry import make
from rue.regret.bounds.facts import reach
from rue.regret.bounds.statement import Bound
from rue.regret.bounds.trace import Trace
from rue.regret.bounds.upper import bounds
from rue.regret.certificates.certificate import Certificate
from rue.regret.certificates.evidence import open_evidence
from rue.regret.hindsight.comparator import Comparator
from rue.regret.hindsight.stored import Stored
from rue.regret.risk.bounds import RiskBound, risk_always, risk_at_end
from rue.regret.risk.ranges import loss_range
from rue.runs.advice import require_no_ensemble
from rue.runs.learn import learn
from rue.runs.replay import learner_before, trace
from rue.runs.run import Run
from rue.streams import Block

__all__ = ["Audit", "Check", "audit"]

_MISTAKES = frozenset({"B1", "B2"})
_BY_D1 = frozenset({"B3", "B4", "B5", "B6", "B7", "B9", "A10"})
"""The theorems whose proofs go through D1, so that D1, and D2 which is smaller, must lie below them."""


@dataclasses.dataclass(frozen=True)
class Check:
    """An inequality left ≤ right that must hold, up to a tolerance for rounding.

    >>> print(Check("regret ≤ B6", 1.5, 2.0))
    PASS  regret ≤ B6: 1.5 ≤ 2
    """

    name: str
    left: float
    right: float
    tolerance: float = 0.0

    @property
    def holds(self) -> bool:
        return self.left <= self.right + self.tolerance

    def __str__(self) -> str:
        allowed = f" (up to rounding, {self.tolerance:.2g})" if self.left > self.right and self.tolerance else ""
        return f"{'PASS' if self.holds else 'FAIL'}  {self.name}: {self.left:,.8g} ≤ {self.right:,.8g}{allowed}"


@dataclasses.dataclass(frozen=True, eq=False)
class Audit:
    """Risk, regret as an interval, certificate, bounds and mistakes of a run; `str()` is a page to read.

    Regret is Σ weight·ℓ_t(w_t) − inf over K of Σ weight·ℓ_t(u) (docs/theory.md, Q2). `audit` makes it.

    >>> import rue
    >>> audited = rue.audit(rue.OGD("hinge", "ball:1"), [[1.0], [-1.0], [2.0]], [1, -1, 1])
    >>> audited.passed, audited.regret[1] <= audited.bound.value
    (True, True)
    """

    run: Run
    """The run that was audited."""
    domain: Domain
    """The set that the run is compared with."""
    units: str
    """`raw`, or `largest`: models are measured on features divided by their largest magnitude."""
    loss: float
    """Σ of the rounds' losses, the regulariser included."""
    comparator: Comparator
    """The best in hindsight, in those units."""
    certificate: Certificate
    """What the run itself proves, without the best in hindsight."""
    comparator_loss: tuple[float, float]
    """An interval that holds the least loss in hindsight: the better of the comparator's and the certificate's."""
    bounds: tuple[Bound, ...]
    """Every theorem about regret that speaks of this learner."""
    mistake_bounds: tuple[Bound, ...]
    """Theorems about the number of mistakes (B1, B2), for the Perceptron."""
    risk_bounds: tuple[RiskBound, ...]
    """On the risk of the average of the points played (B13, B14), if the examples are independent draws."""
    remarks: tuple[str, ...]
    """What could not be computed or compared, and why."""
    checks: tuple[Check, ...]
    """Every inequality that must hold, with both its sides."""
    trace: Trace | None = None
    """The run round by round; None where it could not be replayed."""
    stored: Stored | None = None
    """The examples that were scored and count, in the units above."""

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
        """Regret, risk, certificate and, for classes, mistakes as a matplotlib Figure; `path` also saves it.

        >>> import rue
        >>> X, y = rue.census()
        >>> len(rue.audit(rue.OGD("hinge", "ball:1"), X[:50], y[:50]).plot().axes) >= 3
        True
        """
        from rue.pictures.plots import draw_audit

        return draw_audit(self, path)

    def __str__(self) -> str:
        run, (low, high) = self.run, self.regret
        left_out = [f"{n:,} {word}" for n, word in ((run.refused, "refused"), (run.skipped, "skipped")) if n]
        once = ", each counted once whatever its weight" if run.weights is not None else ""
        wrong = "" if run.mistakes is None else f"; {run.mistakes:,} mistakes ({run.mistakes / run.examples:.2%}{once})"
        ridge = run.evidence.penalty
        of_it = f", {ridge:,.6g} of it the regulariser's" if run.evidence.lambda_ else ""
        failed = sum(not check.holds for check in self.checks)
        lines = [
            ("learner", repr(run.learner)),
            ("stream", f"{run.examples:,} examples learnt" + "".join(f", {words}" for words in left_out)),
            ("loss", f"{self.loss:,.8g}{of_it}; {run.risk:.6g} a round (sequential risk){wrong}"),
            ("hindsight", str(self.comparator)),
            (
                "regret",
                f"between {low:+,.8g} and {high:+,.8g} against {self.domain!r}"
                f"{' in units of the largest magnitudes' if self.units == 'largest' else ''}, at most "
                f"{high / run.examples:+.3g} a round",
            ),
            ("certificate", str(self.certificate)),
            *(("mistakes", str(bound)) for bound in self.mistake_bounds),
            *(("bound", str(bound)) for bound in self.bounds),
            *(("risk", str(bound)) for bound in self.risk_bounds),
            *(("note", remark) for remark in self.remarks),
            *(("check", str(check)) for check in self.checks),
            ("audit", f"{failed} of {len(self.checks)} checks FAILED" if failed else f"all {len(self.checks)} passed"),
        ]
        return "\n".join(f"{name:<12} {words}" for name, words in lines)


def audit(
    source: Run | Learner | str | None,
    X: Any,
    y: Any = None,
    *,
    weights: Any = None,
    radius: float | None = None,
    domain: Any = None,
    units: str | None = None,
    delta: float = 0.05,
    tolerance: float = 1e-6,
) -> Audit:
    """Check on one run everything that theory promises: certificate, bounds, and the true regret beside them.

    `source` is a run, with the stream it was made on, or a learner (None: the default one), which is run first. The
    theorems are B1 to B10 and D1 to D5 of the theory. The run is compared with its own domain, or where that is
    unbounded, and the rounds have no regulariser, with the ball as large as its point; or with the ball of `radius`, or
    another `domain`. `units` are those of `run.certificate`. `delta` is the probability with which the bounds on risk
    may fail, `tolerance` how near to the best in hindsight to come, relative to its loss.

    X, `y` and `weights` are the stream, as for `learn`.

    >>> import rue
    >>> X, y = rue.census()
    >>> checked = rue.audit(rue.OGD("hinge", "ball:10"), X, y)
    >>> checked.passed, checked.bound.theorem, checked.bound.holds
    (True, 'B6', True)

    docs/theory.md, section 4 and section 6.
    """
    if not 0.0 < delta < 1.0:
        raise SettingsError(f"audit: delta, the probability of failure, must lie between 0 and 1, not {shown(delta)}.")
    X = X if not hasattr(X, "__next__") else list(X)  # it is read more than once
    run, before = _run_of(source, X, y, weights)
    certificate = run.certificate(radius, domain, units)
    _require_places(run, certificate.domain)
    stream = Stored(run, X, y)
    before = _in_stored_columns(before, run, stream)
    remarks: list[str] = []
    checks: list[Check] = []
    traced = _replayed(before, run, stream, remarks, checks)
    risks = _risks(run, traced, stream, delta, remarks)
    K, lambda_ = certificate.domain, run.evidence.lambda_
    if certificate.units == "largest":
        stream.divide(_divisors(run, "largest"))
    comparator = stream.best(K, lambda_, tolerance)
    least = max(comparator.at_least, certificate.comparator_loss_at_least)
    interval = (min(least, comparator.value), comparator.value)
    total = certificate.loss_total
    rounding = stream.rounding(K, lambda_, comparator)
    checks += _accounts(run, certificate, traced, stream, rounding)
    checks += _soundness(run, certificate, comparator, stream, rounding)
    all_bounds: list[Bound] = []
    if traced is not None:
        regret = total - interval[1], total - interval[0]
        all_bounds = _theorems(traced, run, certificate, stream, regret, remarks, checks)
    checks += _mistakes(run, rounding)
    return Audit(
        run,
        K,
        certificate.units,
        total,
        comparator,
        certificate,
        interval,
        tuple(bound for bound in all_bounds if bound.theorem not in _MISTAKES),
        tuple(bound for bound in all_bounds if bound.theorem in _MISTAKES),
        risks,
        tuple(remarks),
        tuple(checks),
        traced,
        stream,
    )


def _run_of(source: Run | Learner | str | None, X: Any, y: Any, weights: Any) -> tuple[Run, Learner | None]:
    """The run to audit, and the learner as it stood before it, if that is known."""
    if isinstance(source, Run):
        if weights is not None:
            raise SettingsError("audit: a run knows its weights: leave weights out.")
        require_no_ensemble("audit", source.ensemble)
        run, before = source, learner_before(source)
    else:
        given = make("learner", source)
        run = learn(X, y, learner=given, weights=weights)
        before = learner_before(run) if given is None else given
    if run.learner.lags is not None:
        raise SettingsError("audit: it is not there for a run with lags; run.certificate is.")
    if run.learner.bins is not None:
        raise SettingsError("audit: it is not there for a run with bins; run.certificate is.")
    if not run.examples:
        raise DataError("audit: the run learnt no example.")
    return run, before


def _require_places(run: Run, domain: Domain) -> None:
    """Refuse a set in which features matter that never occur, where only those that do have places."""
    if run.learner.numbering is not None and not domain.keeps_zeros:
        raise SettingsError(
            f"audit: against {domain!r} each of the {run.learner.d:,} features counts, also those that "
            "never occur: give a radius, or number features from 0 on."
        )


def _in_stored_columns(before: Learner | None, run: Run, stream: Stored) -> Learner | None:
    """The learner from before the run, for a stream that has columns for those features alone that occur.

    One that had learnt nothing is the same on any columns; of another one the features would be others.
    """
    if before is None or run.learner.numbering is None:
        return before
    if before.t:
        return None
    return Learner(run.learner.algorithm, intercept=run.learner.intercept, d=stream.X.shape[1])


def _in_columns(run: Run, array: Any) -> Any:
    """Numbers for the places of a learner's arrays as numbers for the coordinates of the stored stream."""
    coordinates = run.learner.coordinates_of_places()
    if coordinates is None:
        return array
    used = np.flatnonzero(coordinates >= 0)
    whole = np.zeros(coordinates.size)
    whole[: array.size] = array[: coordinates.size]
    return whole[used[np.argsort(coordinates[used])]]


def _divisors(run: Run, units: str) -> Any:
    """What the coordinates of the stored stream are divided by."""
    by = run.evidence.divisors(units, run.learner.scales_in_places(), run.learner.places)
    return _in_columns(run, by)


def _replayed(
    before: Learner | None, run: Run, stream: Stored, remarks: list[str], checks: list[Check]
) -> Trace | None:
    """Every round once more, if the learner's start is known and the predictions are the run's."""
    if before is None:
        remarks.append(
            f"no theorem was looked at: the learner had learnt {run.learner.t - run.examples:,} examples before this "
            "run; audit(learner, X, y) with the learner as it stood then has them"
        )
        return None
    try:
        traced = trace(before, stream.X, stream.y, stream.weights)
        differ = int(np.count_nonzero(traced.predictions != stream.predictions))
    except RueError as error:
        remarks.append(f"the run cannot be made again: {error}")
        differ, traced = stream.y.size, None
    checks.append(Check("predictions that differ when the run is made again", differ, 0))
    return None if differ else traced


def _accounts(run: Run, certificate: Certificate, traced: Trace | None, stream: Stored, rounding: float) -> list[Check]:
    """The sums that the certificate rests on, added up again from the stream and the predictions."""
    sums, g = run.ledger.sums, stream.slopes
    S = np.concatenate([[g.sum()] if stream.intercept else [], stream.X.T @ g])
    total, A = math.fsum(stream.weights * stream.losses), math.fsum(g * stream.predictions)
    wrong = int(np.count_nonzero(stream.y * stream.predictions <= 0.0))
    counted = abs(sums[accounts.EXAMPLES] - stream.y.size) + abs(sums[accounts.MISTAKES] - wrong)
    own = _in_columns(run, run.ledger.S) / _divisors(run, certificate.units)
    K = certificate.domain
    U = reach(K, np.zeros(S.size)) if K.bounded else 1.0
    away = U * norm(own - S)
    checks = [
        Check("examples and mistakes, counted again, differ by", counted, 0),
        Check("Σℓ, added up again, differs by", abs(float(sums[accounts.LOSS]) - total), 0, rounding),
        Check("A = Σ g_t p_t, added up again, differs by", abs(float(sums[accounts.A]) - A), 0, rounding),
        Check("U·‖S‖, S = Σ g_t x_t added up again, differs by", away, 0, rounding),
    ]
    if run.evidence.lambda_ and traced is not None:
        penalty = 0.5 * traced.lambda_ * math.fsum(traced.weights * traced.point_squares)
        off = abs(run.evidence.penalty - penalty)
        checks.append(Check("the regulariser's part, added up again, differs by", off, 0, rounding))
    return checks


def _soundness(
    run: Run, certificate: Certificate, comparator: Comparator, stream: Stored, rounding: float
) -> list[Check]:
    """The comparator's interval and the certificate, against the losses of points that lie in the set."""
    K, lambda_, u = certificate.domain, run.evidence.lambda_, comparator.point
    value = stream.total_of(u, lambda_)
    lowest = value
    if K.exact_projection:  # elsewhere a projection may end outside
        point = _in_columns(run, run.learner.point_in_places()) * _divisors(run, certificate.units)
        lowest = min([value, *(stream.total_of(K.project(v), lambda_) for v in (point, np.zeros(u.size)))])
    distance = norm(u - K.project(u))
    size = 1e-9 * (1.0 + norm(u))
    checks = [
        Check("the best point's loss, computed again, differs by", abs(value - comparator.value), 0, rounding),
        Check("the best point's distance to the domain", distance, 0, size),
        Check("best in hindsight: its lower end ≤ the loss of points tried", comparator.at_least, lowest, rounding),
    ]
    certified = certificate.comparator_loss_at_least
    checks.append(
        Check(f"{certificate.theorem}: what it certifies ≤ the loss of points tried", certified, lowest, rounding)
    )
    if math.isfinite(certificate.alone):
        name = "D2" if lambda_ else "D1"
        checks.append(Check(f"regret ≤ {name}", certificate.loss_total - value, certificate.alone, rounding))
    return checks


def _mistakes(run: Run, rounding: float) -> list[Check]:
    """Where every mistake costs at least so much: their number against the loss."""
    size = run.learner.loss.per_mistake
    if run.mistakes is None or run.weights is not None or size is None:
        return []
    return [Check("mistakes ≤ loss as a bound of the 0-1 loss", run.mistakes, run.loss / size, rounding)]


def _theorems(
    traced: Trace,
    run: Run,
    certificate: Certificate,
    stream: Stored,
    regret: tuple[float, float],
    remarks: list[str],
    checks: list[Check],
) -> list[Bound]:
    """The theorems of section 4, compared with the regret and with D1 or D2 where they speak of the set at hand."""
    own, K, lambda_ = run.learner.domain, certificate.domain, run.evidence.lambda_
    radius = reach(K, np.zeros(traced.coordinates)) if K.bounded and not own.bounded else None
    all_bounds = bounds(traced, radius=radius)
    if not all_bounds:
        remarks.append(f"no theorem speaks of {run.learner.algorithm.name} with these settings")
    if not _within(K, own) or certificate.units != "raw":
        if any(bound.met for bound in all_bounds if bound.theorem not in _MISTAKES):
            remarks.append(f"the bounds are about {own!r}, so they are not compared with the regret above")
        regret, alone = (math.nan, math.nan), math.nan
    else:
        alone = certificate.alone
        if np.any(traced.alphas != traced.weights):  # A6: the rounds' losses are t·ℓ_t
            regret, alone = _by_time(traced, run, K, stream)
            remark = "these rounds are t·ℓ_t (A6), whose regret this is"
            all_bounds = [dataclasses.replace(bound, remark=remark) for bound in all_bounds]
        if not K.exact_support:
            alone = math.nan  # it may be made with an upper bound of the support function
    compared = [bound if bound.theorem in _MISTAKES else _compared(bound, regret) for bound in all_bounds]
    for bound in compared:
        if bound.holds is not None:
            what = "mistakes" if bound.theorem in _MISTAKES else "regret"
            name = f"{what} ≤ {bound.theorem}, {bound.form}"
            checks.append(Check(name, float(bound.observed or 0.0), bound.value, bound.tolerance))
    strong = bool(lambda_) and lambda_ >= getattr(traced.step, "sigma", math.inf)
    for bound in compared:
        if bound.met and not math.isnan(alone) and (bound.theorem in _BY_D1 or (bound.theorem == "B8" and strong)):
            name = f"{'D2' if lambda_ else 'D1'} ≤ {bound.theorem}, {bound.form}"
            checks.append(Check(name, alone, bound.value, 2.0 * bound.tolerance))
    return compared


def _within(K: Domain, own: Domain) -> bool:
    """Whether every point of K is one of the learner's domain, as far as it is easily seen."""
    if own == K or own.whole_space:
        return True
    smaller, larger = K.centred_radius, own.centred_radius
    return smaller is not None and larger is not None and smaller <= larger


def _compared(bound: Bound, regret: tuple[float, float]) -> Bound:
    """The bound with the regret observed: its upper end if that obeys the bound, else its lower end.

    The regret lies between the two, so a bound fails for certain only if the lower end exceeds it.
    """
    low, high = regret
    if math.isnan(low):
        return bound
    return dataclasses.replace(bound, observed=high if high <= bound.value + bound.tolerance else low)


def _by_time(traced: Trace, run: Run, K: Domain, stream: Stored) -> tuple[tuple[float, float], float]:
    """The regret of the rounds t·ℓ_t, and their D1 or D2."""
    lambda_ = run.evidence.lambda_
    evidence = open_evidence(run.learner.loss, lambda_=lambda_, domain=K)
    evidence.enter(Block(stream.X, stream.y, traced.alphas), stream.predictions, stream.intercept, 0)
    if lambda_:
        evidence.penalty = 0.5 * lambda_ * float(traced.alphas @ traced.point_squares)
    shown, comparator = evidence.certificate(K), stream.best(K, lambda_, weights=traced.alphas)
    least = min(max(comparator.at_least, shown.comparator_loss_at_least), comparator.value)
    return (shown.loss_total - comparator.value, shown.loss_total - least), shown.alone


def _risks(run: Run, traced: Trace | None, stream: Stored, delta: float, remarks: list[str]) -> tuple[RiskBound, ...]:
    """B13 and B14, where the loss has a range."""
    loss, K, lambda_ = run.learner.loss, run.learner.domain, run.evidence.lambda_
    X = float(stream.norms.max())
    if lambda_ and not K.bounded and loss.lipschitz is not None and _shrinks(traced):
        K = Ball(max(loss.lipschitz * X / lambda_, 1e-300))  # A4: the point never leaves it
    ends = {} if loss.task == "classify" else {"y_low": float(stream.y.min()), "y_high": float(stream.y.max())}
    try:
        B = loss_range(loss, K, X, d=run.learner.coordinates, **ends)
        if math.isinf(B):
            remarks.append(f"no bound on risk (B13, B14): {loss!r} has no range on {K!r}")
            return ()
        column = None if run.weights is None else stream.weights
        return (
            risk_at_end(stream.losses, B, delta, weights=column, loss=loss),
            risk_always(stream.losses, B, delta, weights=column, largest_weight=float(stream.weights.max()), loss=loss),
        )
    except RueError as error:
        remarks.append(f"no bound on risk (B13, B14): {error}")
        return ()


def _shrinks(traced: Trace | None) -> bool:
    """Whether each point was an average of the one before and −g·x/λ, brought nearer to 0, from 0 on."""
    if traced is None or traced.before or traced.start.any() or not traced.domain.contains(np.zeros(traced.start.size)):
        return False
    return bool(np.all(traced.etas * traced.alphas * traced.lambda_ <= 1.0 + 1e-12))
