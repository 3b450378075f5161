"""Risk: what the losses of one pass say about examples still to come (docs/theory.md, B11, B13, B14).

The examples must be drawn independently from one distribution, and each scored before it is learnt; then the mean loss
of the pass bounds the risk of the *average of the points played* (Risk(w) = E ℓ(⟨w, x⟩, y) on a new example), without
a test set. B13 holds at one moment chosen in advance, B14 at every moment at once, B11 in expectation.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import Any

import numpy as np

from rue.errors import BadExample, DataError, SettingsError, shown
from rue.losses import Loss
from rue.registry import make
from rue.regret.risk.bernstein import deviation, variances
from rue.streams import as_array, floats

__all__ = [
    "INDEPENDENT",
    "Coverage",
    "RiskBound",
    "column",
    "coverage",
    "require_delta",
    "risk_always",
    "risk_at_end",
    "risk_curve",
    "risk_in_expectation",
    "risk_of_ogd",
    "risk_of_svm",
    "whole_rounds",
]

INDEPENDENT = "the examples are independent draws from one distribution"


@dataclasses.dataclass(frozen=True)
class RiskBound:
    """An upper bound on a risk, what it is about and what it assumes; `str()` is a sentence (B11, B13, B14, B18, B19).

    >>> bound = risk_at_end([0.5, 0.25, 0.0, 0.25], 1.0, delta=0.05)
    >>> bound.theorem, round(bound.value, 3)
    ('B13', 0.862)

    docs/theory.md, B11, B13 and B14.
    """

    theorem: str
    """B11, B13, B14, B18 or B19."""
    value: float
    """What is bounded is at most this; never more than B where losses lie in [0, B]."""
    about: str
    """What is bounded."""
    rounds: int
    """T, how many losses it was computed from."""
    assumptions: tuple[str, ...]
    """What it asks for, in words."""
    sequential_risk: float | None = None
    """The mean loss of the pass, weighted as the average is (B13, B14)."""
    slack: float | None = None
    """What is added to it, or to the regret a round, uncapped."""
    delta: float | None = None
    """The probability with which the bound may fail; None for a bound in expectation."""
    range: float | None = None
    """B: losses lie in [0, B]."""
    left_out: int = 0
    """Rounds without a loss (NaN: refused or skipped examples), which the bound leaves out."""
    regret: float | None = None
    """The regret a round against u (B18, B19)."""

    def __str__(self) -> str:
        surely = "in expectation" if self.delta is None else f"with probability at least 1 − {self.delta:g}"
        parts = [self.theorem]
        if self.sequential_risk is not None and self.slack is not None:
            parts.append(f"sequential risk {self.sequential_risk:.6g} plus {self.slack:.6g}")
        if self.regret is not None and self.slack is not None:
            parts.append(f"regret a round {self.regret:.6g} plus {self.slack:.6g}")
        if self.value == self.range:
            parts.append("which says no more than the range of the loss does")
        if self.left_out:
            parts.append(f"{self.left_out:,} rounds without a loss left out: nothing is said about such examples")
        return (
            f"{surely}, {self.about} is at most {self.value:.6g} ({'; '.join(parts)}), if {_listed(self.assumptions)}."
        )


# B13: one moment, chosen in advance.


def risk_at_end(
    losses: Any,
    B: float | None,
    delta: float = 0.05,
    *,
    weighting: str = "uniform",
    weights: Any = None,
    loss: Any = None,
) -> RiskBound:
    """B13: Risk(w̄) ≤ Σc_tℓ_t / Σc_t + B√(ln(1/δ) Σc_t²/2) / Σc_t with probability ≥ 1 − δ; c_t is 1, or t.

    `losses` are those of the pass, unweighted, in [0, B]. Examples' `weights`, if fixed without looking at the
    examples, multiply c_t. `loss` says which loss it is: for the 0-1 loss the bound is on the mean risk of the points,
    not on the risk of their average.

    `delta` is δ. `weighting` is `uniform` for c_t = 1, or `t`.

    >>> round(risk_at_end([0.0, 1.0] * 5000, B=51).slack, 3)
    0.624

    Hoeffding and Azuma's inequality; Cesa-Bianchi, Conconi and Gentile 2004; docs/theory.md, B13.
    """
    if weighting not in ("uniform", "t"):
        raise SettingsError(f"risk_at_end: weighting must be 'uniform' or 't', not {shown(weighting)}.")
    seen = _observe(losses, B, delta, weights)
    c = seen.weights * np.arange(1.0, seen.losses.size + 1.0) if weighting == "t" else seen.weights
    mean = float(c @ seen.losses) / float(c.sum())
    slack = seen.B * math.sqrt(-math.log(delta) / 2.0) * float(np.linalg.norm(c)) / float(c.sum())
    by = ["t"] * (weighting == "t") + ["the examples' weights"] * (weights is not None)
    return _bound("B13", seen, mean, slack, delta, by, loss, "the number of rounds was fixed in advance")


# B14: every moment at once.


def risk_always(
    losses: Any,
    B: float | None,
    delta: float = 0.05,
    *,
    weights: Any = None,
    largest_weight: float = 1.0,
    loss: Any = None,
) -> RiskBound:
    """B14 at the last round: Risk(w̄_t) ≤ (1/t) Σℓ_i + (B/t) S_t for all t at once, with probability ≥ 1 − δ.

    So one may look after every round and stop when one likes. Examples' `weights` c_t, if fixed without looking at the
    examples and of a largest size known beforehand, make rounds c_tℓ_t of range B·c_max and a weighted average. `loss`
    as for `risk_at_end`.

    `delta` is δ and `largest_weight` is c_max.

    >>> print(risk_always([0.0] * 10_000, B=51, loss="hinge"))
    with probability at least 1 − 0.05, the risk of the uniform average of the points played is at most 0.0269222 (B14;
    sequential risk 0 plus 0.0269222), if the examples are independent draws from one distribution and all losses lie
    in [0, 51], known beforehand.

    Howard, Ramdas, McAuliffe and Sekhon 2021, Theorem 4; docs/theory.md, B14.
    """
    seen = _observe(losses, B, delta, weights)
    x, span = _scaled(seen, largest_weight)
    mass = float(seen.weights.sum())
    slack = float(deviation(variances(x)[-1:], delta)[0]) * span / mass
    by, more = [], []
    if weights is not None:
        by, more = ["the examples' weights"], [f"no weight will ever exceed {largest_weight:g}"]
    return _bound("B14", seen, float(seen.weights @ seen.losses) / mass, slack, delta, by, loss, *more)


def risk_curve(
    losses: Any, B: float | None, delta: float = 0.05, *, weights: Any = None, largest_weight: float = 1.0
) -> Any:
    """B14 at every round, as an array: with probability ≥ 1 − δ all of it holds together; `risk_always` is its end.

    A round without a loss (NaN) or of weight 0 leaves the bound where it was, which is B before the first loss.

    `losses`, B, `delta`, `weights` and `largest_weight` are as for `risk_always`.

    >>> risk_curve([0.0] * 400, 1.0, delta=0.05)[[0, 399]].round(3)
    array([1.   , 0.013])

    docs/theory.md, B14.
    """
    seen = _observe(losses, B, delta, weights)
    x, span = _scaled(seen, largest_weight)
    values = (np.cumsum(seen.weights * seen.losses) + deviation(variances(x), delta) * span) / np.cumsum(seen.weights)
    values = np.concatenate([[seen.B], np.minimum(values, seen.B)])
    return values[np.cumsum(seen.used)]


def _scaled(seen: _Seen, largest_weight: float) -> tuple[Any, float]:
    """The rounds c_tℓ_t in units of their range, and that range."""
    top = float(seen.weights.max())
    if not top <= largest_weight < math.inf:
        raise SettingsError(
            f"B14: there is a weight of {top:g}, but largest_weight = {shown(largest_weight)}: give a finite number, "
            "known beforehand, that no weight will ever exceed."
        )
    span = seen.B * largest_weight
    return seen.weights * seen.losses / span, span


# What B13 and B14 share.


@dataclasses.dataclass(frozen=True)
class _Seen:
    """The rounds that count: those with a loss and a weight above 0."""

    losses: Any
    weights: Any
    used: Any
    left_out: int
    B: float


def _observe(losses: Any, B: float | None, delta: float, weights: Any) -> _Seen:
    if B is None or not 0.0 < B < math.inf:
        raise SettingsError(
            f"no risk bound without a range: B = {shown(B)}, where the largest value that the loss can take is wanted, "
            "positive and known beforehand; a loss has one on a bounded domain (a ball, not the reals), with labels in "
            "a known range if they are real numbers."
        )
    require_delta(delta)
    values = column(losses, "losses")
    c = np.ones(values.size) if weights is None else column(weights, "weights")
    if c.size != values.size:
        raise DataError(f"there are {values.size} losses, but {c.size} weights: one weight a loss.")
    if c.size and not (c.min() >= 0.0 and c.max() < math.inf):
        raise DataError("the weights must be finite and ≥ 0.")
    missing = np.isnan(values)
    outside = ~missing & ~((values >= 0.0) & (values <= B * (1.0 + 1e-9)))
    if outside.any():
        row = int(np.argmax(outside))
        raise BadExample(
            row,
            f"the loss {float(values[row]):g} lies outside [0, B] with B = {B:g}, so B was no bound known beforehand "
            "and no risk bound holds: give the range that theory allows (`loss_range`), not what was seen.",
        )
    used = ~missing & (c > 0.0)
    if not used.any():
        raise DataError("there is no round with a loss and a weight: nothing can be said about the risk.")
    return _Seen(np.minimum(values[used], B), c[used], used, int((missing & (c > 0.0)).sum()), float(B))


def require_delta(delta: float) -> None:
    """Refuse a probability of failure that is none."""
    if not 0.0 < delta < 1.0:
        raise SettingsError(f"delta, the probability of failure, must lie between 0 and 1, not be {shown(delta)}.")


def column(values: Any, what: str) -> Any:
    """Numbers, one for each round, as an array."""
    column = floats(as_array(values, what), what)
    if column.ndim != 1:
        raise DataError(f"the {what} must have one dimension, not {column.ndim}: one number a round.")
    return column


def _bound(
    theorem: str, seen: _Seen, mean: float, slack: float, delta: float, by: list[str], loss: Any, *more: str
) -> RiskBound:
    loss = None if loss is None else make("loss", loss)
    if loss is not None and not isinstance(loss, Loss):
        raise SettingsError(f"loss must be a rue.Loss or a spec such as 'hinge', not {shown(loss)}.")
    weighted = f", weighted by {' times '.join(by)}" if by else ""
    about = f"the risk of the {'average' if by else 'uniform average'} of the points played{weighted}"
    if loss is not None and not loss.convex:
        about = f"the mean risk of the points played{weighted} (not the risk of their average: the loss is not convex)"
    convex = ("the loss is convex",) if loss is None else ()
    fixed = ("the weights were fixed without looking at the examples",) if "the examples' weights" in by else ()
    known = f"all losses lie in [0, {seen.B:g}], known beforehand"
    value = min(mean + slack, seen.B)
    assumptions = (INDEPENDENT, *convex, *fixed, *more, known)
    return RiskBound(
        theorem, value, about, seen.losses.size, assumptions, mean, slack, float(delta), seen.B, seen.left_out
    )


def _listed(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# B11: in expectation.


def risk_in_expectation(regret: float, alphas: Any) -> RiskBound:
    """B11: E F(Σα_t w_t/Σα_t) − F(u) ≤ E R_T(u)/Σα_t, for a bound on the expected regret of the losses α_t·f.

    `alphas` are α_1, …, α_T.

    >>> risk_in_expectation(20.0, [1.0] * 100).value
    0.2
    """
    a = column(alphas, "alphas")
    if not (a.size and np.all(a > 0.0) and np.isfinite(a).all()) or not math.isfinite(regret):
        raise SettingsError("risk_in_expectation: the regret must be finite and the alphas positive, one a round.")
    uniform = bool(np.all(a == a[0]))
    needs = (
        f"the expected regret against u is at most {regret:g}",
        *(() if uniform else ("the α_t were fixed before",)),
    )
    return _excess(regret / float(a.sum()), "" if uniform else "α_t", "any point u", a.size, needs)


def risk_of_ogd(rounds: int, X: float, norm: float, *, weighting: str = "uniform") -> RiskBound:
    """B11 for hinge or logistic loss, gradient descent from w_1 = 0, against points u of at most this norm.

    Fixed step 1/(X√T) and the uniform average: X(‖u‖² + 1)/(2√T). Step 1/(X√t) and the average weighted by steps:
    X(‖u‖² + 1 + ln T)/(2 Σ 1/√t).

    `rounds` is T, X bounds ‖x‖, and `weighting` is `uniform` or `steps`.

    >>> risk_of_ogd(10_000, X=1.0, norm=2.0).value
    0.025

    docs/theory.md, B11.
    """
    T, X = whole_rounds(rounds), _positive(X, "X")
    if not 0.0 <= norm < math.inf:
        raise SettingsError(f"the norm of the points to compare with must be finite and ≥ 0, not {shown(norm)}.")
    if weighting == "uniform":
        value, step, by = X * (norm * norm + 1.0) / (2.0 * math.sqrt(T)), "1/(X√T)", ""
    elif weighting == "steps":
        value = X * (norm * norm + 1.0 + math.log(T)) / (2.0 * float(np.sum(np.arange(1.0, T + 1.0) ** -0.5)))
        step, by = "1/(X√t)", "the steps"
    else:
        raise SettingsError(f"risk_of_ogd: weighting must be 'uniform' or 'steps', not {shown(weighting)}.")
    how = (
        f"hinge or logistic loss is learnt by gradient descent from 0 with step {step}, without leaving the domain of u"
    )
    return _excess(value, by, f"any point of norm ≤ {norm:g}", T, (how, f"‖x‖ ≤ X = {X:g}"))


def risk_of_svm(
    rounds: int, X: float, lambda_: float, *, weighting: str = "uniform", project: bool = False
) -> RiskBound:
    """B11 for the SVM from w_1 = 0: (G²/(2λ))(1 + ln T)/T with A5, 2G²/(λ(T + 1)) with A6 (weighting "t").

    G = 2X, or X + min(X, √λ) when projected onto the ball of radius 1/√λ. The risk is E of hinge + (λ/2)‖w‖².

    `rounds` is T, `lambda_` is λ, and `project=True` says that the points were projected.

    >>> risk_of_svm(999, X=1.0, lambda_=0.1, weighting="t").value
    0.08

    docs/theory.md, A5, A6 and B11.
    """
    T, X, lambda_ = whole_rounds(rounds), _positive(X, "X"), _positive(lambda_, "lambda_")
    G = X + (min(X, math.sqrt(lambda_)) if project else X)
    if weighting == "uniform":
        value, by = G * G / (2.0 * lambda_) * (1.0 + math.log(T)) / T, ""
    elif weighting == "t":
        value, by = 2.0 * G * G / (lambda_ * (T + 1.0)), "t"
    else:
        raise SettingsError(f"risk_of_svm: weighting must be 'uniform' or 't', not {shown(weighting)}.")
    return _excess(value, by, "the best point", T, (f"‖x‖ ≤ X = {X:g}", "hinge + (λ/2)‖w‖² is learnt from 0"))


def _excess(value: float, by: str, beyond: str, rounds: int, assumptions: tuple[str, ...]) -> RiskBound:
    average = f"average of the points played, weighted by {by}" if by else "uniform average of the points played"
    about = f"the risk of the {average}, less that of {beyond},"
    return RiskBound("B11", value, about, rounds, (INDEPENDENT, *assumptions))


def whole_rounds(T: Any) -> int:
    """T as a whole number ≥ 1."""
    try:
        rounds = operator.index(T)
    except TypeError:
        rounds = 0
    if rounds < 1:
        raise SettingsError(f"the number of rounds must be a whole number ≥ 1, not {shown(T)}.")
    return rounds


def _positive(value: float, name: str) -> float:
    if not 0.0 < value < math.inf:
        raise SettingsError(f"{name} must be positive and finite, not {shown(value)}.")
    return float(value)


# How often B14 fails, and B13 where it is misused.


@dataclasses.dataclass(frozen=True)
class Coverage:
    """How often bounds failed on streams whose risk is known; `str()` says it in a sentence."""

    streams: int
    rounds: int
    delta: float
    always: float
    """The fraction of streams where B14 failed at some round."""
    misused: float
    """The same of B13, looked at after every round though it holds at one chosen in advance."""
    at_end: float
    """The fraction where B13 failed at the last round, which is how it may be used."""

    def __str__(self) -> str:
        return (
            f"at δ = {self.delta:g}, B14 failed at some round in {self.always:.1%} of {self.streams:,} streams of "
            f"{self.rounds:,} rounds; B13 failed at the last round in {self.at_end:.1%} and, misused, at some round in "
            f"{self.misused:.1%}."
        )


def coverage(
    streams: int = 200, rounds: int = 2000, delta: float = 0.05, seed: int = 0, chance: float = 0.5
) -> Coverage:
    """Follow the leader on tosses of a coin, whose risk is known exactly; counts the streams on which bounds fail.

    The loss |w − y|, w ∈ [0, 1], is linear in w for y ∈ {0, 1}: Risk(w) = chance + w(1 − 2·chance), and the risk of the
    average is the mean risk, so nothing is lost on the way to the bounds.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(1.0, whole_rounds(rounds) + 1.0)
    counts = np.zeros(3, dtype=np.int64)
    for begin in range(0, whole_rounds(streams), 100):
        y = (rng.random((min(100, streams - begin), rounds)) < chance).astype(np.float64)
        ahead = np.cumsum(2.0 * y - 1.0, axis=1) - (2.0 * y - 1.0)
        w = (ahead > 0.0).astype(np.float64)
        losses = np.abs(w - y)
        risk = np.cumsum(chance + w * (1.0 - 2.0 * chance), axis=1) / t
        beyond = risk - np.cumsum(losses, axis=1) / t
        at_end = beyond > np.sqrt(-math.log(delta) / (2.0 * t))
        D, V = beyond * t, variances(losses)
        always = np.sqrt(-2.0 * math.log(delta) * V) < D  # S is never less, because ψ(λ) ≥ λ²/2: look no further
        always[always] = D[always] > deviation(V[always], delta)
        counts += [np.count_nonzero(failed) for failed in (always.any(axis=1), at_end.any(axis=1), at_end[:, -1])]
    shares = [int(count) / streams for count in counts]
    return Coverage(streams, rounds, delta, shares[0], shares[1], shares[2])
