"""Certificates: upper bounds on regret computed from the run itself (docs/theory.md, section 6).

D1: with g_t the slope at p_t, A = Σ g_t p_t and S = Σ g_t x_t, convexity gives R_T(K) ≤ A + h_K(−S) for every set K at
once, for the predictions of any model, with no assumption on the data. D2 sharpens it for regularised rounds, D3 by
witnesses, D4 by the curvature of square loss.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rue.domains import Domain
from rue.errors import SettingsError, shown
from rue.losses.convexity import require_set

__all__ = ["Certificate", "require_domain"]

_BY = {
    "D1": "",
    "D2": " (D2, the regulariser counted)",
    "D3": " (D3, by witnesses)",
    "D4": " (D4, by curvature)",
}


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What one pass proves about every linear model in a set; `str()` says it in a sentence.

    For every u in the set K, Σℓ(p_t, y_t) − Σℓ(⟨u, x_t⟩, y_t) ≤ `regret_at_most`, whatever made the predictions p_t
    (docs/theory.md, section 6). `rue.certify` and `Run.certificate` make one.

    >>> import rue
    >>> shown = rue.certify([[1.0], [1.0]], [1, -1], [0.0, 0.0], loss="hinge", radius=1, intercept=False)
    >>> shown.loss_total, shown.regret_at_most, shown.theorem
    (2.0, 0.0, 'D1')
    """

    domain: Domain
    loss_total: float
    """Σ of the rounds' losses, the regulariser included where there is one."""
    regret_at_most: float
    """The best bound at hand, and at most Σℓ for losses that are never negative."""
    alone: float
    """What the learner's own sums prove: D1, A + h_K(−S), or D2; never capped."""
    comparator_loss_at_least: float
    """What the best model in the set must have lost: Σℓ − regret_at_most."""
    slope_times_prediction: float
    """A = Σ g_t p_t."""
    slope_norm: float
    """‖S‖ = ‖Σ g_t x_t‖, in the units below."""
    left_out: int = 0
    """Examples without a prediction (NaN), which the certificate is not about."""
    theorem: str = "D1"
    """Which of D1 to D4 `regret_at_most` comes from."""
    units: str = "raw"
    """`raw`, or `largest`: models are measured on features divided by their largest magnitude."""
    witnesses: int = 0
    """How many witnesses ran along."""
    lambda_: float = 0.0
    """The regulariser (λ/2)‖w‖² of every round."""

    @property
    def radius(self) -> float | None:
        """The radius, when the set is a ball around 0."""
        return self.domain.centred_radius

    def __str__(self) -> str:
        omitted = f" ({self.left_out:,} examples without a prediction left out)" if self.left_out else ""
        which = f"of norm ≤ {self.radius:g}" if self.radius is not None else f"in {self.domain!r}"
        if self.units == "largest":
            which += " (each feature in units of its largest magnitude)"
        if self.alone == math.inf and self.comparator_loss_at_least <= 0.0:
            return f"nothing is certified about linear models {which}; this learner lost {self.loss_total:,.1f}."
        empty = ", which says nothing" if self.comparator_loss_at_least == 0.0 < self.loss_total else ""
        return (
            f"no linear model {which} could have lost less than {self.comparator_loss_at_least:,.1f} on this stream"
            f"{empty}{omitted}; this learner lost {self.loss_total:,.1f}, so its regret is at most "
            f"{self.regret_at_most:+,.1f}{_BY[self.theorem]}."
        )


def require_domain(domain: Any) -> Domain:
    """Refuse what is no set to compare with."""
    if not isinstance(domain, Domain):
        raise SettingsError(f"the domain to compare with must be a rue.Domain or a spec, not {shown(domain)}.")
    require_set(domain)
    return domain
