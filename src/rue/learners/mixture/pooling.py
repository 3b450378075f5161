"""Merges pools that have learnt parts of a stream: one pool that goes on from all of them.

`rue.learners.mixture.merging` has what this shares with the pool of several classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rue.layout import MERGES
from rue.learners.mixture.columns import divisors
from rue.learners.mixture.layout import (
    CENTRE,
    COLUMNS,
    DIAGONAL,
    FIRST,
    HELD,
    HIGH,
    KINDS,
    LOSSES,
    LOW,
    MATRICES,
    MEAN,
    MIXED,
    NARROW,
    SPREAD_OF_LABELS,
    UNIT,
    USED,
)
from rue.learners.mixture.matrices import BY_ROUND
from rue.learners.mixture.merging import Lines, in_common_units, inverse_of_sums, pooled_moments, ratios

__all__ = ["merge_pools"]


def merge_pools(base: Any, parts: Sequence[Any]) -> Any:
    """The pool of several parts of a stream together, each of which went on from a copy of `base`; all `laid_out`.

    The members' losses are added, and their shares follow from them; weights are averaged, in units in which all
    parts have the same scales and the same centre and unit of the labels. Kind 4's matrix is 1 + Σhxxᵀ of all
    examples; kind 5's, which forgets, is the mean of the parts'. A kind that has retired in a part has retired.
    """
    states = (base, *parts)
    tables = in_common_units([state.stats for state in states])
    pairs = zip(states, tables, strict=True)
    ready = [{**s._asdict(), "stats": stats, "members": _members_by_kind(s)} for s, stats in pairs]
    merged = base._replace(**base.layout.merged(ready[0], ready[1:]))
    _merge_labels(merged.memory, [state.memory for state in states])
    lines = Lines([state.slots for state in states], NARROW)
    narrow = not lines.too_many and all(state.memory[USED] >= 0.0 for state in states)
    _average_weights(merged, parts)
    merged.matrices[...] = 0.0
    if narrow:
        for which in range(MATRICES):
            _merge_matrix(merged, which, lines, states)
    merged.slots[...] = lines.slots(len(merged.slots)) if narrow else 0
    merged.memory[USED] = float(lines.size) if narrow else -1.0
    _seat(merged, [all(part.seats[kind] >= 0 for part in parts) for kind in range(KINDS)], states)
    return merged


def _members_by_kind(pool: Any) -> Any:
    """`members` in the order of the kinds' numbers; when kinds retire, they change places."""
    members = pool.members.reshape(len(pool.members), KINDS, -1)
    return members[:, pool.places()].reshape(pool.members.shape)


def _offset(pool: Any, part: Any) -> tuple[float, float]:
    """What a part's weights are multiplied by to be in these units of the labels, and what its intercept lacks."""
    m, own = pool.memory, part.memory
    if m[UNIT] == 0.0:
        return 0.0, 0.0
    return own[UNIT] / m[UNIT], (own[CENTRE] - m[CENTRE]) / m[UNIT]


def _average_weights(pool: Any, parts: Sequence[Any]) -> None:
    """The mean of the parts' weights of kinds 0 to 3."""
    r, total, after = len(pool.rates), np.zeros(pool.weights.shape), divisors(pool.stats)
    for part in parts:
        before, (gain, lacking) = divisors(part.stats), _offset(pool, part)
        for kind in range(DIAGONAL):
            block = slice(COLUMNS[kind] * r, (COLUMNS[kind] + 1) * r)
            by = ratios(after[kind % 3], before[kind % 3])  # kind 3 divides as kind 0 does
            total[:, block] += part.weights[:, block] * (gain * by)[:, None]
        total[0] += lacking  # of the intercept, whose feature is 1
    limit = float(np.finfo(pool.weights.dtype).max)
    pool.weights[...] = np.clip(total / len(parts), -limit, limit)


def _merge_matrix(pool: Any, which: int, lines: Lines, states: Sequence[Any]) -> None:
    """The mean of the weights of kind 4 or 5, and its inverse."""
    r, n, parts = len(pool.rates), lines.size, states[1:]
    scales = [divisors(state.stats)[0] for state in (pool, *states)]
    if pool.exact:  # these kinds divide by the first value, whatever follows
        scales = [np.where(state.stats[:, FIRST] > 0.0, state.stats[:, FIRST], 1.0) for state in (pool, *states)]
    after, *before = (scale[lines.coordinates] for scale in scales)
    for k, part in enumerate(parts, 1):
        gain, lacking = _offset(pool, part)
        own = lines.rows(k, part.matrices[which, :, :r]) * (gain * ratios(after, before[k]))[:, None]
        own[lines.coordinates == 0] += lacking
        pool.matrices[which, :n, :r] += own / len(parts)
    matrices = [lines.information(k, state.matrices[which, :, r:]) for k, state in enumerate(states)]
    with np.errstate(all="ignore"):
        if pool.exact:
            units = [np.divide(own, after) for own in before]
            matrices = [np.eye(n) + (A - np.eye(n)) * u * u[:, None] for A, u in zip(matrices, units, strict=True)]
        forgets = BY_ROUND[which] < 1.0
        sums = MERGES["averaged" if forgets else "added"](matrices[0], matrices[1:])
    # Without forgetting no eigenvalue falls below the 1 it began with; with it, `turn` keeps
    # the largest diagonal entry of the inverse at 10 or less; 0.1 is the limit that belongs to that.
    pool.matrices[which, :n, r:][:, :n] = inverse_of_sums(sums, 0.1 if forgets else 1.0)


def _seat(pool: Any, running: list[bool], states: Sequence[Any]) -> None:
    """Give places to the kinds, those that run first, and shares to the members, which are in order of their kinds.

    If parts have retired kinds so that none runs in all, the one of kinds 0 to 3 that runs in most of them goes on,
    and its members are charged what the mixture lost in those parts in which they did not run.
    """
    m, members = pool.memory, pool.members.reshape(len(pool.members), KINDS, -1)
    if m[USED] < 0.0:
        running[DIAGONAL:] = [False] * MATRICES
    elif not any(running[DIAGONAL:]):
        m[USED] = -1.0
    base, parts = states[0], states[1:]
    if not any(running):
        kind = max(range(DIAGONAL), key=lambda kind: sum(part.seats[kind] >= 0 for part in parts))
        running[kind] = True
        absent = [part for part in parts if part.seats[kind] < 0]
        members[LOSSES, kind] += sum(part.memory[MIXED] - base.memory[MIXED] for part in absent)
    order = sorted(range(KINDS), key=lambda kind: not running[kind])
    many = sum(running)
    pool.members[...] = members[:, order].reshape(pool.members.shape)
    for place, kind in enumerate(order):
        pool.seats[kind] = place if place < many else -1 - place
    pool.kinds[:many], pool.kinds[many:] = 1.0 / many, -1.0
    pool.experts().resettle(pool.work, [state._shares()[order].ravel() for state in states])


def _merge_labels(m: Any, memories: Sequence[Any]) -> None:
    """The numbers about the labels, of which only sums have been merged; the base's memory comes first.

    Centre and unit are the base's, or of the first part that has them; range, mean and spread of the labels are those
    of one pass.
    """
    begun = [own for own in memories if own[HELD] > 0.0]
    if not begun:  # of two classes: the same in all
        return
    m[CENTRE] = begun[0][CENTRE]
    units = [own[UNIT] for own in begun if own[UNIT] > 0.0]
    gaps = [abs(own[CENTRE] - m[CENTRE]) for own in begun if own[CENTRE] != m[CENTRE]]
    m[UNIT] = units[0] if units else math.ldexp(1.0, math.frexp(gaps[0])[1] - 1) if gaps else 0.0
    if m[UNIT] == 0.0:
        return
    scaled = [own[UNIT] / m[UNIT] for own in memories]
    shifts = [(own[CENTRE] - m[CENTRE]) / m[UNIT] if own[HELD] > 0.0 else 0.0 for own in memories]
    pairs = list(zip(memories, scaled, shifts, strict=True))
    known = [pair for pair in pairs if pair[0][HELD] > 0.0]
    m[LOW] = min(shift + by * own[LOW] for own, by, shift in known)
    m[HIGH] = max(shift + by * own[HIGH] for own, by, shift in known)
    means = [shift + by * own[MEAN] for own, by, shift in pairs]
    spreads = [by * by * own[SPREAD_OF_LABELS] for own, by, _ in pairs]
    m[MEAN], m[SPREAD_OF_LABELS] = pooled_moments([own[HELD] for own in memories], means, spreads)
