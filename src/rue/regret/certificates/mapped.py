"""Certificates over the features that maps make, for learners with maps and for the predictions of any model.

A map decides φ_t before round t, so D1 holds with φ_t(x_t) for x_t: A + U·‖Σ g_t (x_t, φ_t(x_t))‖ (docs/theory.md,
section 11).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from rue.compiled import kernel
from rue.errors import SettingsError, shown
from rue.maps import Pairs, Trees, chained, open_table, require_maps
from rue.memory import aligned_zeros
from rue.norms import norm
from rue.regret.certificates.certificate import Certificate

__all__ = ["MappedSums", "over_maps"]

BITS = 18
"""The features of a map are hashed to 2^18, as those of `rue.Staged` are."""
ROOM = 1024
"""Room for the features of a row, as there."""


@kernel
def add_mapped(
    loss: Any,
    table: Any,
    maps: Any,
    gradients: Any,
    features: Any,
    lines: Any,
    rows: Any,
    y: Any,
    weights: Any,
    predictions: Any,
    mask: Any,
) -> None:
    """S += g·φ of every map, row by row; then the table sees the row."""
    for i in range(y.size):
        p, weight = predictions[i], weights[i] if weights.size > 0 else 1.0
        if math.isfinite(p) and weight > 0.0:
            row, slope = rows.row(i), weight * loss.slope(p, y[i])
            table.look(row, lines, p)
            for k in range(gradients.shape[1]):
                end = maps.fill(k, table, features[k], 1, mask)
                for j in range(1, end):
                    gradients[features[k, j], k] += slope
            table.see(row, lines, p, slope)


class MappedSums:
    """S = Σ g_t φ_t(x_t) of maps, from the predictions of any model, which are a column for the maps too.

    >>> import rue
    >>> MappedSums().entered
    0
    """

    def __init__(self, maps: Any = "auto") -> None:
        if isinstance(maps, str) and maps != "auto":
            raise SettingsError(f"certify: maps is 'auto', a list such as [rue.Pairs()], or None, not {shown(maps)}.")
        self.maps = (Pairs(), Trees()) if isinstance(maps, str) else require_maps(maps)
        self.chain, self.table = chained(self.maps), open_table(1)
        self.gradients = aligned_zeros((2 + 2**BITS, len(self.maps)))
        self.features = np.zeros((len(self.maps), ROOM), dtype=np.uint32)
        self.entered = 0
        """How many rows have been entered."""

    def enter(self, loss: Any, rows: Any, y: Any, weights: Any, predictions: Any, room: int) -> None:
        """Enter rows that are in the sums of the evidence, NaN standing for the predictions of those that are not."""
        if room >= len(self.table.traits):
            self.table = self.table.grown(room + room // 2 + 1)
        lines = np.arange(1, len(self.table.traits), dtype=np.uint32)
        own = self.table, self.chain, self.gradients, self.features, lines
        add_mapped(loss, *own, rows, y, weights, predictions, np.uint64(2**BITS - 1))
        self.entered += int(np.isfinite(predictions).sum())


def over_maps(own: Certificate, gradients: Any, rounds: int, radius: float, nonnegative: bool) -> Certificate:
    """The certificate against models over the features and what maps have made of them, of norm ≤ `radius`.

    `own` is the one over the features alone, `gradients` is S of the maps' features, and `nonnegative` says whether
    the loss is never below 0.
    """
    A, total, slope = own.slope_times_prediction, own.loss_total, math.hypot(own.slope_norm, norm(gradients.ravel()))
    # Of sums over T rounds at most T + 10 roundings are lost, each of a term that is no larger than these.
    rounding = (rounds + 10.0) * 4e-16 * (abs(total) + abs(A) + radius * slope)
    alone = A + radius * slope + rounding
    at_least = max(0.0, total - alone) if nonnegative else total - alone
    return dataclasses.replace(
        own,
        regret_at_most=total - at_least,
        alone=alone,
        comparator_loss_at_least=at_least,
        slope_norm=slope,
        theorem="D1",
        witnesses=0,
        mapped=True,
    )
