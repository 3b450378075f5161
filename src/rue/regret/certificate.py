"""Certificates: upper bounds on regret computed from the run itself (THEORY section 6).

D1: with g_t the slope at p_t, A = Σ g_t p_t and S = Σ g_t x_t, convexity gives R_T(K) ≤ A + h_K(−S) for every set K at
once, for the predictions of any model, with no assumption on the data.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from rue import ledger as accounts
from rue.domains import Ball, Domain
from rue.errors import BadExample, DataError, SettingsError
from rue.learners.gradient import require_loss
from rue.ledger import Ledger, keep_accounts, open_ledger
from rue.losses import Loss
from rue.registry import make
from rue.streams import as_array, blocks, floats

__all__ = ["Certificate", "certify", "read_certificate", "require_domain"]


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What one pass proves about every linear model in a set; `str()` says it in a sentence."""

    domain: Domain
    loss_total: float
    regret_at_most: float
    """D1, capped at Σℓ for losses that are never negative."""
    alone: float
    """D1 itself: A + h_K(−S)."""
    comparator_loss_at_least: float
    """What the best model in the set must have lost: Σℓ − regret_at_most."""
    slope_times_prediction: float
    """A = Σ g_t p_t."""
    slope_norm: float
    """‖S‖ = ‖Σ g_t x_t‖."""
    left_out: int = 0
    """Examples without a prediction (NaN), about which nothing is said."""

    @property
    def radius(self) -> float | None:
        """The radius, when the set is a ball around 0."""
        return self.domain.radius if isinstance(self.domain, Ball) and not self.domain.centre.any() else None

    def __str__(self) -> str:
        apart = f" ({self.left_out:,} examples without a prediction left out)" if self.left_out else ""
        which = f"of norm ≤ {self.radius:g}" if self.radius is not None else f"in {self.domain!r}"
        if self.regret_at_most == math.inf:
            return f"nothing is certified about linear models {which}; this learner lost {self.loss_total:,.1f}."
        return (
            f"no linear model {which} could have lost less than {self.comparator_loss_at_least:,.1f} on this stream"
            f"{apart}; this learner lost {self.loss_total:,.1f}, so its regret is at most {self.regret_at_most:+,.1f}."
        )


def read_certificate(ledger: Ledger, loss: Loss, domain: Domain, left_out: int) -> Certificate:
    """D1 for a set, from the accounts of a run."""
    A, total = float(ledger.sums[accounts.A]), float(ledger.sums[accounts.LOSS])
    alone = A + domain.support(-ledger.S)
    if math.isnan(alone):  # sums that overflowed prove nothing
        alone = math.inf
    regret = min(alone, total) if loss.nonnegative else alone
    return Certificate(domain, total, regret, alone, total - regret, A, float(np.linalg.norm(ledger.S)), left_out)


def certify(
    X: Any,
    y: Any,
    predictions: Any,
    *,
    loss: Any = "logistic",
    radius: float | None = None,
    domain: Any = None,
    weights: Any = None,
    intercept: bool = True,
) -> Certificate:
    """Certify the regret of any model from its predictions: `predictions[t]` made before example t was learnt.

    Predictions are scores as the loss takes them (for logistic loss the log-odds), labels −1 and +1 for margin losses.

    >>> import numpy as np
    >>> print(certify(np.eye(2), [1, -1], [0.0, 0.0], loss="hinge", radius=1, intercept=False))
    no linear model of norm ≤ 1 could have lost less than 0.6 on this stream; this learner lost 2.0, so its regret is
    at most +1.4.
    """
    made: Loss = make("loss", loss)
    require_loss(made, "certify")
    if not isinstance(intercept, int | np.bool_) or intercept not in (0, 1):
        raise SettingsError(f"certify: intercept must be True or False, not {intercept!r}.")
    if (radius is None) == (domain is None):
        raise SettingsError("certify: give radius=…, or a domain=…, to say against which models.")
    K = Ball(radius) if domain is None and radius is not None else require_domain(make("domain", domain))
    p = floats(as_array(predictions, "predictions"), "predictions")
    if p.ndim != 1:
        raise DataError(f"the predictions must have one dimension, not {p.ndim}: one number an example.")
    book, before, left_out = open_ledger(), 0, 0
    for block in blocks(X, y, weights):
        part = p[before : before + len(block)]
        if part.size != len(block):
            raise DataError(f"there are {p.size} predictions, but more examples: one prediction an example.")
        book = book.grown(block.width + int(intercept))
        labels, column = block.labels(), block.column_of_weights()
        end, missing = keep_accounts(made, book, block.rows(intercept), labels, column, part, 0)
        left_out += missing
        if end < len(block) and block.sparse:  # perhaps only because indices are not sorted
            end, missing = keep_accounts(made, book, block.in_order().rows(intercept), labels, column, part, end)
            left_out += missing
        if end < len(block):
            raise BadExample(
                before + end,
                f"label {float(labels[end])!r}, prediction {float(part[end])!r}, weight and features must be finite, "
                f"each feature once, the label {made.labels}, the weight ≥ 0.",
            )
        before += len(block)
    if before != p.size:
        raise DataError(f"there are {p.size} predictions, but {before} examples: one prediction an example.")
    if left_out and left_out == before:
        raise DataError("every prediction is NaN: there is nothing to certify.")
    return read_certificate(book, made, K, left_out)


def require_domain(domain: Any) -> Domain:
    """Refuse what is no set to compare with."""
    if not isinstance(domain, Domain):
        raise SettingsError(f"the domain to compare with must be a rue.Domain or a spec, not {domain!r}.")
    return domain
