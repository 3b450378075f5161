"""The range of a loss: the B that risk bounds (B13, B14) and mixing (B12) ask for, from the domain and the features."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import foreign
from rue.domains import Domain
from rue.errors import SettingsError, shown
from rue.losses import Loss
from rue.norms import norm
from rue.registry import make

__all__ = ["largest_norm", "loss_range"]


def loss_range(
    loss: Any, domain: Any, X: float, *, y_low: float | None = None, y_high: float | None = None, d: int | None = None
) -> float:
    """B: the largest value of a loss that is never negative, for points in `domain` and ‖x‖ ≤ X; ∞ if there is none.

    X counts the intercept's feature 1. Predictions then lie in [−h, h] with h = X·max ‖w‖, and a convex loss is largest
    at an end: 1 + h for the hinge, ln(1 + e^h) for logistic loss. Regression needs the range of the
    labels, `y_low` to `y_high`, a box the number `d` of coordinates. An SVM without projection stays in the ball of
    radius X/λ.

    >>> loss_range("hinge", "ball:10", X=5)
    51.0
    """
    loss, K = make("loss", loss), make("domain", domain)
    if not isinstance(loss, Loss) or not isinstance(K, Domain):
        given = f"{shown(loss)} and {shown(domain)}"
        raise SettingsError(f"loss_range: give a loss and a domain, or specs of them, not {given}.")
    if not 0.0 <= X < math.inf:
        given = shown(X)
        raise SettingsError(
            f"loss_range: X, the largest norm of the features, must be a finite number ≥ 0, not {given}."
        )
    if loss.highest is not None:
        return float(loss.highest)
    if not loss.nonnegative or not loss.convex:
        raise SettingsError(
            f"loss_range: {type(loss).__name__} is not a convex loss that is never negative: subtract the least value "
            "that it can take, and give the range B yourself."
        )
    ends = (-1.0, 1.0) if loss.task == "classify" else _label_range(loss, y_low, y_high)
    h = X * largest_norm(K, d)
    if ends is None or h == math.inf:
        return math.inf
    return max(loss.value(p, y) for p in (-h, h) for y in ends)


def _label_range(loss: Loss, low: float | None, high: float | None) -> tuple[float, float] | None:
    if low is None and high is None:
        return None
    if low is None or high is None or not -math.inf < low <= high < math.inf:
        given = f"{shown(low)} and {shown(high)}"
        raise SettingsError(f"loss_range: y_low and y_high must be finite and in order, not {given}.")
    if foreign(loss):  # the built-in ones are convex in y too, hence largest at an end; of others that is not known
        raise SettingsError(
            f"loss_range: where {type(loss).__name__} is largest is not known: give the range B yourself."
        )
    return float(low), float(high)


def largest_norm(domain: Domain, d: int | None) -> float:
    """max ‖w‖ over the domain, or an upper bound of it."""
    size = domain.dimension or d
    if (radius := domain.centred_radius) is not None:  # of a ball that may have very many coordinates
        return radius
    if (ball := domain.as_ball(size or 0)) is not None:
        return ball[1] + norm(ball[0])
    if (total := domain.l1_radius or domain.simplex_total) is not None:
        return total
    if len(domain.parts) > 1:
        return min(largest_norm(part, size) for part in domain.parts)
    if not domain.bounded:
        return math.inf
    if size is None:
        raise SettingsError(f"loss_range: {domain!r} needs d=…, the number of coordinates with the intercept's.")
    if (box := domain.sides(size)) is not None:
        return norm(np.maximum(abs(box[0]), abs(box[1])))
    return norm(domain.start(size)) + domain.diameter(size)
