"""The report of each key: what it has learnt and lost, and what is proved about every linear model on its rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rue import ledger as accounts
from rue.errors import SettingsError, shown
from rue.learners.adaptive import LARGEST as LARGEST_OF_TABLE
from rue.learners.mixture.layout import LARGEST as LARGEST_OF_POOL
from rue.norms import LEAST_PRODUCT, LEAST_SQUARE, LOST, norm

if TYPE_CHECKING:
    from rue.fleets.fleet import Fleet

__all__ = ["columns_of", "losses_at_least", "radius_of"]


def radius_of(fleet: Fleet, radius: float | None = None) -> float:
    """The norm of the models that the certificates are about: as asked, or that of the learner's ball, or 1."""
    if radius is None:
        own = fleet.learner.domain.centred_radius
        radius = 1.0 if own is None else own
    if not isinstance(radius, int | float) or not 0.0 < radius < math.inf:
        raise SettingsError(f"radius must be a number above 0, not {shown(radius)}.")
    return float(radius)


def columns_of(fleet: Fleet, radius: float | None = None) -> dict[str, Any]:
    """The columns of `Fleet.table`."""
    radius = radius_of(fleet, radius)
    sums, many = fleet.sums, len(fleet)
    mass, lost = sums[:, accounts.WEIGHT], sums[:, accounts.LOSS]
    at_least = losses_at_least(fleet, radius)
    with np.errstate(all="ignore"):
        columns: dict[str, Any] = {
            "key": fleet.keys.names,
            "examples": sums[:, accounts.EXAMPLES].astype(np.int64),
            "risk": np.where(mass > 0.0, lost / mass, np.nan),
        }
        if fleet.labels.task != "regress":
            columns["mistakes"] = sums[:, accounts.MISTAKES].astype(np.int64)
        columns |= {
            "risk_at_least": np.where(mass > 0.0, at_least / mass, np.nan),
            "regret_at_most": _penalised(fleet, lost) - at_least,
            "radius": np.full(many, radius),
            "loss": lost,
            "weight": mass,
            "features": fleet.arena.known[:many].astype(np.int64),
            "left_out": fleet.arena.left_out[:many],
        }
    return columns


def losses_at_least(fleet: Fleet, radius: float) -> Any:
    """For each key what every linear model of norm ≤ `radius` has lost on its rows at least (D1), as `Run.certificate`.

    That is L − A − U‖S‖, the terms of the key's own ledger, or 0 where the loss is never negative and that is less.
    """
    if fleet.learner.algorithm.regulariser > 0.0:  # D2, which takes a formula of its own
        return np.array([fleet.run(key).certificate(radius).comparator_loss_at_least for key in fleet.keys.names])
    sums, heights = fleet.sums, np.zeros(len(fleet))
    rounds, lost, A = (sums[:, i] for i in (accounts.EXAMPLES, accounts.LOSS, accounts.A))
    scales = _scales(fleet)
    with np.errstate(all="ignore"):
        for (keys, S), by in zip(fleet.arena.columns("S"), scales, strict=True):
            known = np.arange(S.shape[1]) < (fleet.arena.known[keys] + fleet.arena.shift)[:, None]
            divided = np.where(known, S, 0.0) / by
            size = np.sqrt((divided * divided).sum(axis=1))
            odd = ~((size >= 1e-140) & (size <= 1e140)) & divided.any(axis=1)
            size[odd] = [norm(row) for row in divided[odd]]
            underflown = rounds[keys] * LOST * math.sqrt(S.shape[1]) / by.min(axis=1) * radius
            heights[keys] = radius * size + np.where(underflown > LEAST_PRODUCT, underflown, 0.0)
        at_least = lost - (A + heights)
        if fleet.learner.loss.nonnegative:
            rounding = (rounds + 10.0) * 4e-16 * (np.abs(lost) + np.abs(A))
            at_least = np.where(at_least <= np.maximum(rounding, LEAST_SQUARE), 0.0, at_least)
            return np.where(np.isfinite(at_least), at_least, 0.0)
        return np.where(np.isfinite(at_least), at_least, -np.inf)


def _penalised(fleet: Fleet, lost: Any) -> Any:
    """The learner's loss with the part of the regulariser, if there is one."""
    if fleet.learner.algorithm.regulariser == 0.0:
        return lost
    return np.array([fleet.run(key).certificate(1.0).loss_total for key in fleet.keys.names])


def _scales(fleet: Fleet) -> Any:
    """For each group of records what the weights of each key are divided by; 1 for learners that do not divide."""
    arena = fleet.arena
    bench = arena.bench(1)
    if bench.tables:  # a pool, whose statistics are in rows that features are given as they occur
        for (_, lines), (_, stats) in zip(arena.columns("lines"), arena.columns("stats"), strict=True):
            yield _positive(np.take_along_axis(stats[:, :, LARGEST_OF_POOL], lines.astype(np.int64), axis=1))
    elif getattr(bench.point, "scaled", False):
        for _, table in arena.columns("table"):
            yield _positive(table[:, :, LARGEST_OF_TABLE])
    else:
        for _, S in arena.columns("S"):
            yield np.ones_like(S)


def _positive(largest: Any) -> Any:
    """1 for a feature that has never occurred."""
    return np.where(largest > 0.0, largest, 1.0)
