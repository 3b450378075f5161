"""Which radius to show where none was asked for: the largest about which the proof still says much."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from rue.regret.certificates.certificate import Certificate

__all__ = ["LEVELS", "telling"]

LEVELS = (0.8, 0.5, 1e-3)
"""Shares of the learner's loss that no model of the radius may be able to undercut; the first that any radius meets."""

DECADES = 3
"""How far from the learnt weights' norm a radius may be, in powers of ten."""


def telling(certify: Callable[[float], Certificate], size: float) -> Certificate:
    """The certificate at the most telling radius of 1, 3, 10, 30, …, up to a thousand times more or less than `size`.

    That is the largest radius such that no linear model of this norm could have lost less than 4/5 of what the learner
    lost, so that the learner is within 25 % of all of them; or else half of it, or else a thousandth. D1 to D4 hold for
    every model u at once, so a radius may be chosen when their values are known. If there is no such radius, the
    certificate is the one at `size`.

    >>> import numpy as np, rue
    >>> X, y = np.eye(2), [1, -1]
    >>> telling(lambda U: rue.certify(X, y, [0.0, 0.0], loss="hinge", radius=U, intercept=False), 1.4).radius
    0.1
    """
    middle = round(2.0 * math.log10(size))
    places = range(middle - 2 * DECADES, middle + 2 * DECADES + 1)
    at = functools.cache(lambda place: certify(_round_radius(place)))
    for level in LEVELS:
        low, high = -1, len(places)  # no model of places[low] undercuts the level, one of places[high] may
        while high - low > 1:  # larger sets hold more models, so the proved loss falls with the radius
            between = (low + high) // 2
            low, high = (between, high) if _proves(at(places[between]), level) else (low, between)
        if low >= 0:
            return at(places[low])
    return certify(size)


def _round_radius(place: int) -> float:
    """1, 3, 10, 30, … at the places 0, 1, 2, 3, …"""
    return float(f"{1 if place % 2 == 0 else 3}e{place // 2}")


def _proves(certificate: Certificate, level: float) -> bool:
    """Whether no model of the set could have lost less than this share of the learner's loss."""
    total = certificate.loss_total
    return 0.0 < total < math.inf and certificate.comparator_loss_at_least >= level * total
