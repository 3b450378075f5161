"""What is frozen when a mixture of several classes is saved: chosen by how well frozen copies of members have done.

As for two classes (`rue.learners.mixture.frozen`): after rounds 256, 512, 1024, … the weights are copied, and the
copies are scored on a sample of the examples up to the next copy. The candidates are the members that still run, the
mixture of them as it was when they were copied, and a constant, the frequencies of the classes then. The frozen model
mixes the *present* probabilities of the candidates, P = Σ_c q_c P_c, with q_c as for two classes.

Copies do not depend on what is learnt after them, so they are scored when compiled code has learnt a stretch of rows.
An example whose class had not come when the copies were taken is left out: they are charged alike for it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.learners.mixture.frozen import (
    CONSTANT_GUESS,
    ENOUGH,
    FIRST_COPY,
    LIVE,
    MEAN_OF_MEMBERS,
    SAMPLE,
    next_copy,
)
from rue.learners.mixture.frozen import preferences as of_candidates
from rue.learners.mixture.layout import (
    CANDIDATES,
    COPIED,
    COPY,
    DUE,
    EARLIER,
    LAST,
    LATEST,
    SHARES,
)
from rue.learners.points import T
from rue.learners.softmax.layout import (
    CLOSED,
    COPIED_CLOSED,
    COPIED_ROUNDS,
    COPIED_USED,
    HIGHEST,
    KINDS,
    TRIAL,
    USED,
)

if TYPE_CHECKING:
    from rue.learners.softmax.softmax import ClassPool

__all__ = [
    "begin_copies",
    "copied",
    "copied_mixture",
    "copy_anew",
    "every",
    "frozen_pool",
    "frozen_risk",
    "preferences",
    "try_out",
    "until_due",
]

SMALLEST = 1e-30
"""The least probability that a candidate is charged for; scores are clipped, so that no member comes near it."""


def begin_copies(rates: int) -> dict[str, Any]:
    """The numbers about copies, before the first round."""
    trial = np.zeros(len(TRIAL))
    trial[DUE] = FIRST_COPY
    return {"candidates": np.zeros((len(CANDIDATES), KINDS * rates + 3)), "trial": trial}


def until_due(pool: ClassPool) -> int:
    """How many rounds are left until the weights are copied; 0 if that is overdue."""
    return max(0, int(pool.trial[DUE]) - int(pool.memory[T]))


def copied(pool: ClassPool) -> ClassPool | None:
    """The pool as it was when its weights were copied, as far as predictions need it; None before the first copy.

    It has the working memory of the pool itself: what it predicts is left in `chances`.
    """
    if pool.trial[DUE] <= FIRST_COPY:
        return None
    memory, came = np.zeros(pool.memory.size), np.flatnonzero(pool.copied_counts)
    memory[T], memory[USED], memory[CLOSED] = pool.trial[[COPIED_ROUNDS, COPIED_USED, COPIED_CLOSED]]
    memory[HIGHEST] = came[-1] + 1.0 if came.size else 0.0
    return pool._replace(
        weights=pool.copies,
        stats=pool.copied_stats,
        lines=pool.copied_lines,
        centres=pool.copied_centres,
        counts=pool.copied_counts,
        memory=memory,
    )


def every(pool: ClassPool) -> int:
    """On one in how many examples of this period the copies are scored; each stands for as many in the sums."""
    return max(SAMPLE, int(pool.trial[DUE]) // (2 * ENOUGH))


def try_out(pool: ClassPool, c: int, weight: float, score: float) -> None:
    """Charge the candidates with what their copies would have lost on an example of class c, which they have predicted.

    Their probabilities stand in `chances`; `score` is what the mixture itself had given to the class.
    """
    if not pool.copied_counts[c] > 0.0:
        return
    members, each, spent = pool.members.shape[1], every(pool) * weight, pool.candidates
    chances = np.empty(members + 3)
    chances[:members] = pool.chances[c * members : (c + 1) * members]
    chances[MEAN_OF_MEMBERS] = spent[COPIED, :members] @ chances[:members]
    chances[CONSTANT_GUESS] = pool.copied_counts[c] / pool.copied_counts.sum()
    chances[LIVE] = abs(score)
    spent[LATEST] -= each * np.log(np.maximum(chances, SMALLEST))
    pool.trial[LATEST] += each


def copy_anew(pool: ClassPool, merged: bool = False) -> None:
    """Copy the weights as they are now; a new period begins.

    Of a pool that was `merged` what copies have lost so far becomes one period.
    """
    members = pool.members.shape[1]
    pool.copies[...], pool.copied_lines[...] = pool.weights, pool.lines
    pool.copied_stats[...], pool.copied_centres[...] = pool.stats, pool.centres
    pool.copied_counts[...] = pool.counts
    trial, memory = pool.trial, pool.memory
    trial[COPIED_ROUNDS], trial[COPIED_USED], trial[COPIED_CLOSED] = memory[T], memory[USED], memory[CLOSED]
    pool.candidates[COPIED, :members] = shares_of(pool).ravel()
    for table in (pool.candidates, trial):
        if merged:
            table[LAST], table[EARLIER] = table[: len(COPY)].sum(axis=0), 0.0
        else:
            table[EARLIER] += table[LAST]
            table[LAST] = table[LATEST]
        table[LATEST] = 0.0
    trial[DUE] = next_copy(float(memory[T]))


def shares_of(pool: ClassPool) -> Any:
    """The share of each member in the mixture, a row for each kind; 0 for those that have retired."""
    shares = pool.members[SHARES].reshape(KINDS, -1) * np.maximum(pool.kinds, 0.0)[:, None]
    return shares / pool.members[SHARES].reshape(KINDS, -1).sum(axis=1, keepdims=True) / np.maximum(pool.kinds, 0).sum()


def preferences(pool: ClassPool) -> Any:
    """The share q_c of each candidate in the frozen model; None before a copy has been tried."""
    if not pool.trial[: len(COPY)].sum() > 0.0:
        return None
    running = np.repeat(pool.kinds >= 0.0, pool.members.shape[1] // KINDS)
    possible = np.concatenate((running, [True, True, False]))
    return of_candidates(pool.candidates, possible, float(pool.memory[T]), shares_of(pool))


def frozen_risk(pool: ClassPool, q: Any) -> float:
    """What frozen copies lost on average of late, left alone for as long as they had learnt; by convexity at most."""
    tried = float(pool.trial[LAST] + pool.trial[LATEST])
    used = q > 0.0
    return float(q[used] @ (pool.candidates[LAST] + pool.candidates[LATEST])[used] / tried) if tried else math.nan


def frozen_pool(pool: ClassPool, q: Any) -> tuple[ClassPool, float]:
    """A pool of its own that predicts as the members among the candidates do, and the share of the constant."""
    constant = float(q[CONSTANT_GUESS])
    shares = q[:MEAN_OF_MEMBERS].reshape(KINDS, -1) + q[MEAN_OF_MEMBERS] * shares_of(pool)
    if not shares.sum() > 0.0:
        shares = shares_of(pool)
    fields = {array.name: getattr(pool, array.name).copy() for array in pool.layout if array.name not in _NOT_NEEDED}
    for name in _NOT_NEEDED:
        array = getattr(pool, name)
        fields[name] = np.zeros((0, *array.shape[1:]), dtype=array.dtype)
    return pool._replace(**{**fields, **_mixing_by(pool, shares)}), constant


def _mixing_by(pool: ClassPool, shares: Any) -> dict[str, Any]:
    """What makes a pool mix its members by given shares, a row for each kind."""
    members = pool.members.copy()
    members[SHARES] = np.maximum(shares, np.finfo(float).tiny).ravel()  # a kind's shares are divided by their sum
    return {"members": members, "kinds": np.where(pool.kinds >= 0.0, shares.sum(axis=1) / shares.sum(), -1.0)}


def copied_mixture(pool: ClassPool) -> ClassPool:
    """As `copied`, its members mixed as they were then; not before the first copy."""
    shares = pool.candidates[COPIED, :MEAN_OF_MEMBERS].reshape(KINDS, -1)
    copy_ = copied(pool)
    assert copy_ is not None
    return copy_._replace(**_mixing_by(pool, shares))


_NOT_NEEDED = ("sums", "line_sums", "inverses", "copies", "copied_lines", "copied_stats", "copied_centres")
"""Arrays that predictions do not need."""
