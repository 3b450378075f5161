"""What the evidence of a pass proves about a learner: `Run.certificate` and its kind."""

from __future__ import annotations

import math
from typing import Any

from rue import ledger as accounts
from rue.domains import Ball
from rue.errors import SettingsError
from rue.learners import Learner
from rue.norms import norm
from rue.registry import make
from rue.regret.certificates.certificate import Certificate, require_domain
from rue.regret.certificates.evidence import Evidence
from rue.regret.certificates.mapped import over_maps
from rue.regret.certificates.telling import telling
from rue.regret.certificates.windows import ChangingModels, certificate_of_window, changing_models
from rue.runs.driver import NO_CERTIFICATE

__all__ = ["certificate_of", "changing_models_of", "mapped_certificate", "norm_of_point", "scales_and_units"]

SMALLEST, LARGEST = 1e-150, 1e150
"""Between which norms of a learnt point balls of about that size are looked at: elsewhere nothing would be proved."""


def certificate_of(
    learner: Learner,
    evidence: Evidence,
    left_out: int = 0,
    radius: float | None = None,
    domain: Any = None,
    units: str | None = None,
    thorough: bool = True,
    window: Any = None,
    changes: Any = None,
) -> Certificate:
    """What `Run.certificate` says, from a learner and its evidence alone.

    Without `thorough` no search is made: not for what the digest proves, nor for a radius.
    """
    if window is not None and changes is not None:
        raise SettingsError("certificate: give a window or changes, not both.")
    if learner.loss.task == "multiclass":
        raise SettingsError(f"certificate: {NO_CERTIFICATE}.")
    if radius is not None and domain is not None:
        raise SettingsError("certificate: give a radius or a domain, not both.")
    if window is not None:
        return certificate_of_window(
            evidence, window, lambda part: certificate_of(learner, part, 0, radius, domain, units, thorough)
        )
    scales, units = scales_and_units(learner, evidence, units)
    if changes is not None:
        ball = certificate_of(learner, evidence, left_out, radius, domain, units, thorough and radius is None).domain
        return changing_models(evidence, ball, units, scales).certificate(changes, left_out)
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


def changing_models_of(learner: Learner, evidence: Evidence, radius: float, units: str | None = None) -> ChangingModels:
    """What `certificate_of` proves about models of norm ≤ `radius` that change, for any number of changes (D7)."""
    scales, units = scales_and_units(learner, evidence, units)
    return changing_models(evidence, Ball(radius), units, scales)


def scales_and_units(learner: Learner, evidence: Evidence, units: str | None) -> tuple[Any, str]:
    """The learner's scales where the evidence has its coordinates, and the units that norms are in."""
    scales = learner.scales_in_places()
    if scales is not None and evidence.numbering is not None and evidence.numbering is not learner.numbering:
        scales = evidence.in_places(scales, learner.coordinates_of_places())
    return scales, ("raw" if scales is None else "largest") if units is None else units


def mapped_certificate(learner: Learner, evidence: Evidence, left_out: int, radius: float | None) -> Certificate:
    """What `Run.mapped_certificate` says, from a learner and its evidence alone."""
    gradients = getattr(learner._point, "gradients", None)
    if gradients is None:
        raise SettingsError(f"mapped_certificate: {learner!r} has no maps: use rue.Staged, or certificate.")
    examples = int(evidence.ledger.sums[accounts.EXAMPLES])
    if learner.t != examples:
        raise SettingsError(
            f"mapped_certificate: the learner has learnt {learner.t:,} examples, and this run {examples:,}: "
            "begin with one that has learnt nothing, or resume a model."
        )
    if radius is None:
        return telling(lambda radius: mapped_certificate(learner, evidence, left_out, radius), 1.0)
    own = certificate_of(learner, evidence, left_out, radius, thorough=False)
    return over_maps(own, gradients, learner.t, radius, learner.loss.nonnegative)


def norm_of_point(learner: Learner, scaled: bool) -> float:
    """‖w‖ of a learner's point; if `scaled`, of weights of features in units of their largest magnitude."""
    point, scales = learner.point_in_places(), learner.scales_in_places()
    if scaled and scales is not None:
        point = point * scales[: point.size]
    return norm(point)
