"""Experts: K columns of predictions mixed by exponential weights, and what that costs at most (docs/theory.md, B12).

Round t gives column k the weight v_k ∝ e^{−η_t C_k}, with C_k what the column has lost before. The total loss of the
mixture is at most the best column's plus a *price*, on every stream, wherever predictions and labels come from:

| method | mixes | rate η_t | price |
|---|---|---|---|
| probability | logistic loss: probabilities | 1 | ln K |
| average | exp-concave losses: predictions (square: α = 1/(2B²)) | α | ln K / α |
| substitution | square loss: by the substitution rule | 2/B² | (B²/2) ln K |
| horizon | convex losses that differ by ≤ B in a round, T known: predictions | √(8 ln K/T)/B | B√((T/2) ln K) |
| anytime | the same, T not known | 2√(ln K/t)/B | B√(T ln K) |
| adahedge | convex losses: predictions | ln K / Σ gaps so far | 2 Σ gaps |

B is the length of the interval that holds predictions and labels for `average` and `substitution`. With examples'
weights the first three divide the rate by the largest weight so far and multiply the price by the largest of all; for
the others a round's loss is weight·ℓ. Fixed share plays (1 − α)v + α/K in the next round, so that a column that was bad
for long can come back quickly, and adds Σ ln(1/(1 − α_t))/η_t.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from rue.compiled import kernel
from rue.errors import DataError, SettingsError, shown
from rue.learners.gradient import require_loss
from rue.losses import Loss, Square
from rue.registry import make
from rue.streams import as_array, floats

__all__ = ["METHODS", "Mixed", "mix", "price_of_mixing"]

METHODS = ("probability", "average", "substitution", "horizon", "anytime", "adahedge")
_MIXABLE = METHODS[:3]


@dataclasses.dataclass(frozen=True, eq=False)
class Mixed:
    """A mixture of several models' predictions, and a bound on what mixing has cost (docs/theory.md, B12).

    >>> mixed = mix([[0.0, 2.0], [0.0, 2.0]], [1, 1])
    >>> mixed.method, mixed.predictions.round(3)
    ('probability', array([0.802, 1.061]))
    """

    method: str
    predictions: Any
    """The mixture's, one a round, each made before that round's label was used."""
    losses: Any
    """weight·ℓ of the mixture, one a round."""
    weights: Any
    """v_t: row t holds the columns' weights in round t."""
    totals: Any
    """What each column lost."""
    price: float
    """B12: the mixture loses at most this more than the best column."""
    guarantee: float
    """The price as far as it is known without the weights played: the same, except for adahedge, whose price is at
    most √(Σ s_t² ln K) + max s_t·((4/3) ln K + 2), s_t the spread of round t's losses (de Rooij et al. 2014)."""
    assumptions: tuple[str, ...]
    """What the guarantee asks for, in words."""

    @property
    def total(self) -> float:
        """What the mixture lost."""
        return float(self.losses.sum())

    @property
    def best(self) -> int:
        """The column that lost least."""
        return int(np.argmin(self.totals))

    @property
    def bound(self) -> float:
        """The best column's loss plus the price."""
        return float(self.totals[self.best]) + self.price

    def __str__(self) -> str:
        given = f", if {' and '.join(self.assumptions)}" if self.assumptions else ""
        return (
            f"the mixture of {self.totals.size} lost {self.total:,.6g}, the best of them (column {self.best}) "
            f"{self.bound - self.price:,.6g}; B12 allows {self.price:,.6g} more{given}."
        )


def price_of_mixing(
    method: str, experts: int, *, B: float | None = None, rounds: int | None = None, largest_weight: float = 1.0
) -> float:
    """B12's price as a value; `average` is priced for square loss, and adahedge only by a run (`mix`).

    >>> price_of_mixing("substitution", 16, B=2.0)
    5.545177444479562
    """
    if experts < 1:
        raise SettingsError(f"price_of_mixing: experts must be a number ≥ 1, not {shown(experts)}.")
    if method == "probability":
        return largest_weight * math.log(experts)
    if method not in METHODS or method == "adahedge":
        raise SettingsError(f"price_of_mixing: method must be one of {', '.join(METHODS[:-1])}, not {shown(method)}.")
    span = _range(B, method)
    if method in _MIXABLE:
        facts = Square()
        rate = facts.exp_concave(0.0, span) if method == "average" else facts.mixable(0.0, span)
        return largest_weight * math.log(experts) / rate
    if rounds is None or rounds < 0:
        raise SettingsError(f"price_of_mixing: {method} needs rounds, the number of rounds, not {shown(rounds)}.")
    return span * math.sqrt((0.5 if method == "horizon" else 1.0) * rounds * math.log(experts))


def mix(
    predictions: Any,
    y: Any,
    *,
    loss: Any = "logistic",
    method: str | None = None,
    interval: tuple[float, float] | None = None,
    B: float | None = None,
    weights: Any = None,
    share: Any = 0.0,
) -> Mixed:
    """Mix K columns of predictions (T × K, scores as the loss takes them) by exponential weights (B12).

    Expert k has the weight e^(−η·L_k) before a round, L_k what it has lost so far, normalised to sum 1. Whatever the
    labels are, the total loss is at most that of the best expert plus `price`.

    The method is `probability` for logistic loss, `substitution` for square loss with an `interval` that holds
    all predictions and labels, and `adahedge` for every other, unless one is named. `B` is the range of the losses for
    `horizon` and `anytime`; `share` is fixed share's α, one number or one a round, or "1/t" for α_t = 1/(t + 1), with
    which the price holds on every window of rounds (B15).

    `y` are the labels, as the loss takes them, and `weights` those of the rounds, 1 if not given.

    >>> import numpy as np
    >>> mixed = mix(np.array([[3.0, -3.0], [3.0, -3.0]]), [1, 1])
    >>> bool(mixed.total <= mixed.bound), mixed.best, round(mixed.price, 4)
    (True, 0, 0.6931)

    Vovk 1990; Littlestone and Warmuth 1994; AdaHedge: de Rooij, van Erven, Grünwald and Koolen 2014; fixed share:
    Herbster and Warmuth 1998; docs/theory.md, B12.
    """
    loss = make("loss", loss)
    require_loss(loss, "mix")
    if method is None:
        method = "probability" if loss.log_odds else "adahedge"
        method = "substitution" if loss.quadratic and interval is not None else method
    if method not in METHODS:
        raise SettingsError(f"mix: method must be one of {', '.join(METHODS)}, not {shown(method)}.")
    P, labels, a, shares = _inputs(loss, predictions, y, weights, share)
    lost = _losses(loss, P, labels) * a[:, None]
    base = _base_rate(loss, method, interval, P, labels) if method in _MIXABLE else math.nan
    assumptions: tuple[str, ...] = ()
    if method == "adahedge":
        if shares.any():
            raise SettingsError("mix: adahedge takes no share; use another method, or share=0.")
        logs, price, guarantee = _adahedge(lost)
    else:
        rates, price = _rates(method, base, B, lost, a)
        logs, shared = _exponential_weights(lost, rates, shares)
        guarantee = price = price + shared
    if method in ("horizon", "anytime"):
        assumptions = (f"B = {B:g} was known beforehand",)
    p = _combine(method, base, interval, P, logs)
    losses = _losses(loss, p[:, None], labels)[:, 0] * a
    return Mixed(method, p, losses, np.exp(logs), lost.sum(axis=0), price, guarantee, assumptions)


@kernel
def _score(loss: Any, predictions: Any, y: Any, out: Any) -> None:
    for i in range(y.size):
        for k in range(predictions.shape[1]):
            out[i, k] = loss.value(predictions[i, k], y[i])


def _losses(loss: Loss, P: Any, y: Any) -> Any:
    out = np.empty(P.shape)
    _score(loss, np.ascontiguousarray(P), y, out)
    if not np.isfinite(out).all():
        raise DataError("mix: a prediction is so large that its loss is not finite; leave its column out.")
    return out


# Rates and weights.


def _base_rate(loss: Loss, method: str, interval: Any, P: Any, y: Any) -> float:
    """The rate at which mixing this way costs nothing more than ln K / rate."""
    if method == "probability":
        if not loss.log_odds:
            raise SettingsError("mix: probabilities are mixed for logistic loss only; name another method.")
        return 1.0
    low, high = (math.nan, math.nan) if interval is None else map(float, interval)
    if not (low < high and 0.0 < (high - low) * (high - low) < math.inf):
        given = shown(interval)
        raise SettingsError(f"mix: {method} needs interval=(low, high) that holds the predictions, not {given}.")
    inside = [P] if loss.task == "classify" else [P, y]
    if any(values.size and not low <= values.min() <= values.max() <= high for values in inside):
        what = "predictions" if len(inside) == 1 else "predictions and labels"
        raise DataError(f"mix: all {what} must lie in the interval [{low:g}, {high:g}]; widen it, or clip them to it.")
    rate = loss.exp_concave(low, high) if method == "average" else None
    if method == "substitution" and loss.quadratic:
        rate = loss.mixable(low, high)
    if not rate:
        raise SettingsError(
            f"mix: {method} does not serve {type(loss).__name__} on [{low:g}, {high:g}]; use adahedge, or anytime."
        )
    return rate


def _rates(method: str, base: float, B: float | None, lost: Any, a: Any) -> tuple[Any, float]:
    """η_t for every round, and the price."""
    T, K = lost.shape
    if method in _MIXABLE:
        largest = np.maximum.accumulate(a)
        return base / np.where(largest > 0.0, largest, 1.0), float(a.max(initial=0.0)) * math.log(K) / base
    span = _range(B, method)
    if T and np.ptp(lost, axis=1).max() > span * (1.0 + 1e-9):
        widest = int(np.argmax(np.ptp(lost, axis=1)))
        raise DataError(
            f"mix: the losses of round {widest} (counting from 0) differ by {np.ptp(lost[widest]):g}, more than "
            f"B = {span:g}, so B was no bound known beforehand; give a larger one, or use adahedge, which needs none."
        )
    rounds = int(np.count_nonzero(a))
    t = np.maximum(np.cumsum(a > 0.0), 1) if method == "anytime" else np.full(T, max(rounds, 1))
    rates = np.sqrt((4.0 if method == "anytime" else 8.0) * math.log(K) / t) / span
    return rates, price_of_mixing(method, K, B=span, rounds=rounds)


def _range(B: float | None, method: str) -> float:
    if B is None or not 0.0 < B < math.inf:
        raise SettingsError(f"{method} needs the range B, a positive number known beforehand, not {shown(B)}.")
    return float(B)


def _exponential_weights(lost: Any, rates: Any, shares: Any) -> tuple[Any, float]:
    """ln v_t for every round, and what fixed share adds to the price.

    Sharing keeps the sum of the weights and takes at most a factor 1 − α off each, which is a loss of at most
    ln(1/(1 − α))/η; C is what columns have lost, these losses included, so that the next rate may be another.
    """
    (T, K), added = lost.shape, 0.0
    logs, C = np.empty((T, K)), np.zeros(K)
    for t in range(T):
        logs[t] = _log_weights(C, rates[t])
        C = C + lost[t]
        if shares[t] > 0.0 and K > 1 and t + 1 < T:
            log_kept_share = math.log1p(-shares[t])
            C = -np.logaddexp(log_kept_share + _log_weights(C, rates[t]), math.log(shares[t] / K)) / rates[t]
            added -= log_kept_share / rates[t]
        C -= C.min()
    return logs, added


def _log_weights(C: Any, rate: float) -> Any:
    """ln of weights ∝ e^{−rate·C}, which never underflow; at an infinite rate the leaders share all."""
    if rate == math.inf:
        leads = np.equal(C, C.min())
        return np.where(leads, -math.log(np.count_nonzero(leads)), -math.inf)
    with np.errstate(over="ignore"):
        exponents = -rate * (C - C.min())
    return exponents - math.log(np.exp(exponents).sum())


def _potential(C: Any, rate: float) -> float:
    """−ln(Σ e^{−rate·C})/rate: a round adds the mix loss of its losses to it."""
    least = float(C.min())
    if rate == math.inf:
        return least
    with np.errstate(over="ignore"):
        return least - math.log(np.exp(-rate * (C - least)).sum()) / rate


def _adahedge(lost: Any) -> tuple[Any, float, float]:
    """ln v_t for every round, twice the sum of the mixability gaps, and what that is at most."""
    (T, K), gaps = lost.shape, 0.0
    logs, C = np.empty((T, K)), np.zeros(K)
    for t in range(T):
        rate = math.log(K) / gaps if gaps > 0.0 else math.inf
        logs[t] = _log_weights(C, rate)
        after = C + lost[t]
        mixed = _potential(after, rate) - _potential(C, rate)
        gaps += max(0.0, float(np.exp(logs[t]) @ lost[t]) - mixed)
        C = after - after.min()
    spreads = np.ptp(lost, axis=1)
    ln = math.log(K)
    most = math.hypot(*spreads) * math.sqrt(ln) + float(spreads.max(initial=0.0)) * (4.0 / 3.0 * ln + 2.0)
    return logs, 2.0 * gaps, most if K > 1 else 0.0


def _combine(method: str, base: float, interval: Any, P: Any, logs: Any) -> Any:
    """The mixture's predictions."""
    if method == "probability":
        return _log_sum(logs - np.logaddexp(0.0, -P)) - _log_sum(logs - np.logaddexp(0.0, P))
    if method == "substitution":
        low, high = map(float, interval)
        at_low, at_high = (-_log_sum(logs - base * (end - P) ** 2) / base for end in (low, high))
        return np.clip((low + high) / 2.0 + (at_low - at_high) / (2.0 * (high - low)), low, high)
    return np.sum(np.exp(logs) * P, axis=1)


def _log_sum(terms: Any) -> Any:
    top = terms.max(axis=1)
    return top + np.log(np.exp(terms - top[:, None]).sum(axis=1))


# What is given.


def _inputs(loss: Loss, predictions: Any, y: Any, weights: Any, share: Any) -> tuple[Any, Any, Any, Any]:
    P, labels = floats(as_array(predictions, "predictions"), "predictions"), floats(as_array(y, "labels"), "labels")
    if P.ndim != 2 or P.shape[1] < 1 or labels.ndim != 1 or labels.size != P.shape[0]:
        raise DataError(
            f"mix: the predictions must have one row a label and one column an expert, not the shape {P.shape} for "
            f"labels of shape {labels.shape}."
        )
    if not np.isfinite(P).all():
        t, k = map(int, np.argwhere(~np.isfinite(P))[0])
        raise DataError(f"mix: prediction {k} of round {t} (counting from 0) is {P[t, k]}; leave that round out.")
    for t, label in enumerate(labels.tolist()):
        if not loss.accepts(label):
            raise DataError(f"mix: label {shown(label)} of round {t} (counting from 0) is not {loss.labels}.")
    a = np.ones(labels.size) if weights is None else floats(as_array(weights, "weights"), "weights")
    if a.shape != labels.shape or not (np.all(a >= 0.0) and np.isfinite(a).all()):
        raise DataError("mix: the weights must be finite and ≥ 0, one a round.")
    if isinstance(share, str) and share == "1/t":
        share = 1.0 / (1.0 + np.maximum(1, np.cumsum(a > 0.0)))
    shares = floats(as_array(share, "shares"), "shares")
    if shares.shape not in ((), labels.shape) or not np.all((shares >= 0.0) & (shares < 1.0)):
        raise SettingsError("mix: share must lie in [0, 1), one number or one a round.")
    return P, labels, a, np.where(a > 0.0, shares, 0.0)  # a round of weight 0 changes nothing
