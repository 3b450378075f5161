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

__all__ = ["Certificate", "require_domain", "rounded_down", "rounded_up"]


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What one pass proves about every linear model in a set; `str()` says it in words, the plain ones first.

    For every u in the set K, Σℓ(p_t, y_t) − Σℓ(⟨u, x_t⟩, y_t) ≤ `regret_at_most`, whatever made the predictions p_t
    (docs/theory.md, section 6). `rue.certify` and `Run.certificate` make one.

    >>> import rue
    >>> shown = rue.certify([[1.0], [1.0]], [1, -1], [0.0, 0.0], loss="hinge", radius=1, intercept=False)
    >>> shown.loss_total, shown.regret_at_most, shown.theorem
    (2.0, 0.0, 'D1')
    """

    domain: Domain
    """The set K of linear models it is about."""
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
    """Which of D1 to D4 `regret_at_most` comes from; D7 for models that change."""
    units: str = "raw"
    """`raw`, or `largest`: models are measured on features divided by their largest magnitude."""
    witnesses: int = 0
    """How many witnesses ran along."""
    lambda_: float = 0.0
    """The regulariser (λ/2)‖w‖² of every round."""
    mass: float = 0.0
    """Σ weight of the examples, by which losses are divided for their mean; 0 where it is not known."""
    mapped: bool = False
    """Whether the models are linear in the features that maps make too, not only in the data's own."""
    window: tuple[int, int] | None = None
    """The rounds that it is about, both ends included; None for all of them (D6)."""
    changes: int | None = None
    """How many times the models compared with may change, at borders of windows; None if never (D7)."""

    @property
    def radius(self) -> float | None:
        """The radius, when the set is a ball around 0."""
        return self.domain.centred_radius

    @property
    def within(self) -> float | None:
        """By what share the learner may have lost more than the best model of the set, Σℓ/least − 1; None if unknown.

        At most 0 is a proof that no model of the set did as well as the learner.
        """
        least = self.comparator_loss_at_least
        return self.loss_total / least - 1.0 if least > 0.0 and math.isfinite(self.loss_total) else None

    @property
    def words(self) -> str:
        """What is proved, for a reader without theory: against which models, and how near to the best of them."""
        which = f"of norm ≤ {self.radius:,.7g}" if self.radius is not None else f"in {self.domain!r}"
        if self.mapped:
            which = f"over the features and the bins, pairs and trees made of them, {which}"
        if self.units == "largest":
            which += " (each feature in units of its largest magnitude)"
        if self.changes:
            which += f" that changes at most {'once' if self.changes == 1 else f'{self.changes} times'}"
        where = "on this stream" if self.window is None else f"on rounds {self.window[0]:,} to {self.window[1]:,}"
        kind = ("a mean loss" if self.mass else "a loss") + (", regulariser included," if self.lambda_ else "")
        scale, least = 1.0 / self.mass if self.mass else 1.0, self.comparator_loss_at_least
        own = _shown(self.loss_total * scale)
        if not math.isfinite(least) or (least <= 0.0 and self._nothing):
            here = "" if self.window is None else f" {where}"
            return f"nothing is proved about linear models {which}{here}; this learner had {kind} of {own}"
        shown = f"no linear model {which} could have had {kind} below {rounded_down(least * scale)} {where}"
        return f"{shown}; this learner had {own}{self._nearness}"

    @property
    def _nothing(self) -> bool:
        """Whether 0, which no loss is below, is all that was proved."""
        return self.alone == math.inf or self.comparator_loss_at_least == 0.0 < self.loss_total

    @property
    def _nearness(self) -> str:
        within = self.within
        if within is None:
            return ""
        if within <= 0.0:
            return ", which none of them could have undercut" if within == 0.0 else ", better than any of them"
        if within < 1.0:
            return f", within {rounded_up(100.0 * within)} % of the best there could have been"
        return f", at most {rounded_up(1.0 + within)} times the best there could have been"

    def __str__(self) -> str:
        omitted = f" ({self.left_out:,} examples without a prediction left out)" if self.left_out else ""
        if self.alone == math.inf and self.comparator_loss_at_least <= 0.0:
            return f"{self.words}{omitted}."
        return (
            f"{self.words}{omitted}. In sums: {self.comparator_loss_at_least:,.1f} at least against "
            f"{self.loss_total:,.1f}, so regret is at most {self.regret_at_most:+,.1f} ({self.theorem})."
        )


def _shown(value: float) -> str:
    return f"{value:.5g}" if abs(value) < 1e4 or not abs(value) < 1e15 else f"{value:,.0f}"


def rounded_down(value: float, digits: int = 4) -> str:
    """A number with about so many digits that is not above the value, so that "at least" stays true of it.

    >>> rounded_down(0.56789), rounded_down(-0.56789), rounded_down(12000.7), rounded_down(0.25)
    ('0.5678', '-0.5679', '12,000', '0.25')
    """
    if abs(value) >= 10.0 ** (digits - 1):
        return f"{math.floor(value):,}" if abs(value) < 1e15 else f"{value:.16e}"
    text = f"{value:.{digits}g}"
    if float(text) > value:
        text = f"{value - math.pow(10.0, math.floor(math.log10(abs(value))) + 1 - digits):.{digits}g}"
    return text


def rounded_up(value: float, digits: int = 2) -> str:
    """A number with about so many digits that is not below the value.

    >>> rounded_up(4.0001), rounded_up(0.011), rounded_up(99.5)
    ('4.1', '0.011', '100')
    """
    return rounded_down(-value, digits).removeprefix("-")


def require_domain(domain: Any) -> Domain:
    """Refuse what is no set to compare with."""
    if not isinstance(domain, Domain):
        raise SettingsError(f"the domain to compare with must be a rue.Domain or a spec, not {shown(domain)}.")
    require_set(domain)
    return domain
