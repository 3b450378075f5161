"""What pools of members have in common when parts of a stream are merged: scales, lines of matrices, moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rue.learners.mixture.layout import LARGEST, SQUARES
from rue.norms import SMALL, UP

__all__ = ["Lines", "in_common_units", "inverse_of_sums", "pooled_moments", "ratios"]

MOST_RATIO = 1e6
"""The most that a weight is multiplied by because the scale of its feature has changed: it stays a float32."""
RANK = 1e-15
"""Eigenvalues of an inverse below this part of the largest one are rounding."""


def ratios(after: Any, before: Any) -> Any:
    """What weights of features divided by `before` are multiplied by, to be of features divided by `after`."""
    with np.errstate(over="ignore"):
        return np.minimum(after / before, MOST_RATIO)


def in_common_units(tables: Sequence[Any]) -> list[Any]:
    """Copies of tables of statistics in which Σx² of a feature is in one unit: that of its largest magnitude in any."""
    largest = np.max([table[:, LARGEST] for table in tables], axis=0)
    copies = [table.copy() for table in tables]
    for table in copies:
        tiny = (table[:, LARGEST] < SMALL) & (largest >= SMALL)
        table[tiny, SQUARES] = table[tiny, SQUARES] / UP / UP
    return copies


class Lines:
    """One numbering of the lines of several pools' matrices: the base's lines, then those that parts have added."""

    def __init__(self, slots: Sequence[Any], most: int) -> None:
        coordinates: list[int] = []
        for own in slots:
            used = np.flatnonzero(own)
            known = set(coordinates)
            coordinates += [j for j in used[np.argsort(own[used])].tolist() if j not in known]
        self.too_many = len(coordinates) > most
        self.coordinates = np.array(coordinates[:most], dtype=np.int64)
        """The coordinate of each line."""
        self.own = [own[self.coordinates].astype(np.int64) - 1 for own in slots]
        """For each pool the line that it has for these; −1 where it has none."""

    @property
    def size(self) -> int:
        return int(self.coordinates.size)

    def slots(self, size: int) -> Any:
        """For each of `size` coordinates its line plus 1, or 0."""
        slots = np.zeros(size, dtype=np.int64)
        slots[self.coordinates] = np.arange(1, self.size + 1)
        return slots

    def rows(self, k: int, array: Any) -> Any:
        """The rows of an array of pool k, which belong to its lines, in the common order; 0 where it has none."""
        own, out = self.own[k], np.zeros((self.size, *array.shape[1:]))
        out[own >= 0] = array[own[own >= 0]]
        return out

    def information(self, k: int, inverse: Any) -> Any:
        """The inverse of pool k's matrix P, which is 1 + Σhxxᵀ, in the common order; 1 where it has no line.

        Where rounding has left P without full rank, as much of it as there is.
        """
        at = np.flatnonzero(self.own[k] >= 0)
        own, out = self.own[k][at], np.eye(self.size)
        if at.size:
            P = inverse[np.ix_(own, own)]
            values, vectors = np.linalg.eigh((P + P.T) / 2.0)
            values = np.maximum(values, RANK * max(float(values[-1]), 1e-150))
            out[np.ix_(at, at)] = (vectors / values) @ vectors.T
        return out


def inverse_of_sums(sums: Any, least: float) -> Any:
    """The inverse of a symmetric matrix, eigenvalues below `least` raised to it; 1/least if the sums overflowed."""
    if not np.isfinite(sums).all():
        return np.eye(len(sums)) / least
    values, vectors = np.linalg.eigh((sums + sums.T) / 2.0)
    return (vectors / np.maximum(values, least)) @ vectors.T


def pooled_moments(masses: Sequence[Any], means: Sequence[Any], spreads: Sequence[Any]) -> tuple[Any, Any]:
    """Mean and Σ(x − mean)² of all that several parts saw, each of which has the base's in its own; the base is first.

    Chan, Golub and LeVeque (1979): two groups of masses m, n whose means are δ apart have the spreads of both and
    δ²mn/(m + n). Read backwards, that takes the base out of a part.
    """
    mass, mean, spread = masses[0], np.array(means[0], dtype=np.float64), np.array(spreads[0], dtype=np.float64)
    for total, its_mean, its_spread in zip(masses[1:], means[1:], spreads[1:], strict=True):
        more = total - masses[0]
        if not more > 0.0:
            continue
        own_mean = (total * its_mean - masses[0] * means[0]) / more
        between = masses[0] * more / total * (own_mean - means[0]) ** 2
        own_spread = np.maximum(0.0, its_spread - spreads[0] - between)
        away = own_mean - mean
        spread = spread + own_spread + away * away * (mass * more / (mass + more))
        mean = mean + away * (more / (mass + more))
        mass = mass + more
    return mean, spread
