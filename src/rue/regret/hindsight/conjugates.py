"""Losses made of straight lines and parabolas, as the solvers of hindsight read them (docs/theory.md, D5).

`Loss.pieces` writes such a loss as a sum of *terms*

    sup over g in [low, low + width] of g·(o·p − k) − (γ/2)·g²

with o = −y for margin losses and 1 otherwise, which an interior-point method and smoothing both read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Terms", "terms_of"]


class Terms(NamedTuple):
    """Σ over i of sup over g in [low, low + width] of g·(o·p − k) − (γ/2)g², one row of arrays for each i."""

    orientation: Any
    low: Any
    width: Any
    kink: Any
    gamma: Any

    def slopes(self, p: Any, extra: Any) -> Any:
        """The slopes in o·p of the terms with `extra` added to γ (Moreau's smoothing): each within its range."""
        gamma = self.gamma + extra
        return np.clip((self.orientation * p - self.kink) / gamma, self.low, self.low + self.width)


def terms_of(loss: Any, y: Any, weights: Any) -> Terms | None:
    """The weighted losses as terms, or None for a loss that is not made of lines and parabolas."""
    pieces = loss.pieces(y)
    if pieces is None:
        return None
    orientation, lows, width, kinks, gamma = pieces
    low = np.outer(lows, weights)
    return Terms(orientation, low, width * weights * np.ones_like(low), np.array(kinks), gamma / weights)
