"""Exponential weights over members that come in kinds (THEORY B12), round by round inside a compiled loop.

A member's weight is e^{−η·loss}. For logistic loss probabilities are mixed (`Chances`), at rate η = 1/(largest example
weight so far), and the mixture loses at most ln K/η more than any member. For every other loss predictions are averaged
(`Means`), and η is AdaHedge's, ln K / Σ gaps, where a round's gap is by how much the mixture's own loss exceeds the mix
loss −(1/η) ln Σ v e^{−η·loss} (de Rooij, van Erven, Grünwald, Koolen 2014, with the loss of the prediction made in
place of the mean loss): it loses at most 2 Σ gaps more than any member. Where the loss is curved the gaps stop growing,
and the price is a constant.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeVar

from rue._jit import values
from rue.arithmetic import exp
from rue.learners.points import MEMORY

__all__ = [
    "COST",
    "ETA",
    "GAPS",
    "HEAVIEST",
    "LOSSES",
    "MIXED",
    "MIXING_MEMORY",
    "NO",
    "PREDICTION",
    "REACH",
    "SCRATCH",
    "SHARES",
    "STEP",
    "YES",
    "ByChance",
    "ByMean",
    "Chances",
    "Means",
]

# Rows of `members`: what each has lost, its share of its kind's weight, and what the present round cost it.
LOSSES, SHARES, COST = range(3)
# Rows of `scratch`: predictions, the probabilities of yes and no they stand for, then the steps to take, and what a
# step is worth.
PREDICTION, YES, NO, STEP, REACH = range(5)
SCRATCH = 5
# Places in `memory`: the rate η, Σ gaps, the largest example weight, and what the mixture has lost.
ETA, GAPS, HEAVIEST, MIXED = range(MEMORY, MEMORY + 4)
MIXING_MEMORY = MEMORY + 4

E = TypeVar("E")


def begin(self: Any, kind: Any) -> Any:
    """The first member of a kind."""
    return kind * (self.members.shape[1] // self.kinds.size)


def running(self: Any) -> Any:
    """How many members run: those of the last kinds may have retired."""
    kinds = self.kinds.size
    while self.kinds[kinds - 1] < 0.0:
        kinds -= 1
    return self.begin(kinds)


def retire(self: Any, kind: Any) -> None:
    """A kind that stops running, the last that does: its members have no weight from now on."""
    self.kinds[kind] = -1.0


def least(self: Any, kind: Any) -> Any:
    """What the best member of a kind has lost."""
    found = math.inf
    for i in range(self.begin(kind), self.begin(kind + 1)):
        found = min(found, self.members[LOSSES, i])
    return found


def settle(self: Any, scratch: Any) -> None:
    """The shares for the next round, from the losses and the rate: first within each kind, then of the kinds."""
    losses, shares, kinds, eta = self.members[LOSSES], self.members[SHARES], self.kinds, self.memory[ETA]
    best, behind = math.inf, scratch[STEP]
    for kind in range(kinds.size):
        if kinds[kind] >= 0.0:
            lowest = self.least(kind)
            best = min(best, lowest)
            for i in range(self.begin(kind), self.begin(kind + 1)):
                behind[i] = losses[i] - lowest
    if eta < math.inf:
        for i in range(self.running()):
            shares[i] = exp(-eta * behind[i])
    else:
        for i in range(self.running()):
            shares[i] = 1.0 if behind[i] == 0.0 else 0.0
    for kind in range(kinds.size):
        if kinds[kind] >= 0.0:
            part, away = 0.0, self.least(kind) - best
            for i in range(self.begin(kind), self.begin(kind + 1)):
                part += shares[i]
            kinds[kind] = part * (exp(-eta * away) if eta < math.inf else 1.0 if away == 0.0 else 0.0)


def _experts(cls: type[E]) -> type[E]:
    """Members `begin(kind)` to `begin(kind + 1)` are of one kind; `kinds` has each kind's weight, −1 when retired."""
    for word in (begin, running, retire, least, settle):
        setattr(cls, word.__name__, word)
    return values(cls)


@_experts
class Chances(NamedTuple):
    """Probabilities are mixed."""

    members: Any
    kinds: Any
    memory: Any

    def mixed(self: Any, scratch: Any) -> Any:
        """The log-odds of the mixture of the predictions in `scratch`."""
        p, yes, no = scratch[PREDICTION], scratch[YES], scratch[NO]
        for i in range(self.running()):
            e = exp(-abs(p[i]))
            more = 1.0 / (1.0 + e)
            less = e * more
            yes[i] = more if p[i] > 0.0 else less
            no[i] = less if p[i] > 0.0 else more
        ayes, noes = 0.0, 0.0
        for kind in range(self.kinds.size):
            if self.kinds[kind] > 0.0:
                chance, against = self.mixed_kind(scratch, kind)
                ayes += self.kinds[kind] * chance
                noes += self.kinds[kind] * against
        return math.log(ayes / noes)

    def mixed_kind(self: Any, scratch: Any, kind: Any) -> Any:
        """The mixed probabilities of yes and no of one kind, after `mixed`."""
        shares, yes, no = self.members[SHARES], scratch[YES], scratch[NO]
        ayes, noes, total = 0.0, 0.0, 0.0
        for i in range(self.begin(kind), self.begin(kind + 1)):
            total += shares[i]
            ayes += shares[i] * yes[i]
            noes += shares[i] * no[i]
        return ayes / total, noes / total

    def charge(self: Any, cost: Any, weight: Any, scratch: Any) -> None:
        """Enter a round: the members' costs stand in `members`, the mixture's is given."""
        m, costs, losses = self.memory, self.members[COST], self.members[LOSSES]
        m[MIXED] += cost
        m[HEAVIEST] = max(m[HEAVIEST], weight)
        m[ETA] = 1.0 / m[HEAVIEST]
        for i in range(self.running()):
            losses[i] += costs[i]
        self.settle(scratch)


@_experts
class Means(NamedTuple):
    """Predictions are averaged."""

    members: Any
    kinds: Any
    memory: Any

    def mixed(self: Any, scratch: Any) -> Any:
        """The mean of the predictions in `scratch`."""
        mean, total = 0.0, 0.0
        for kind in range(self.kinds.size):
            if self.kinds[kind] > 0.0:
                total += self.kinds[kind]
                mean += self.kinds[kind] * self.mixed_kind(scratch, kind)
        return mean / total

    def mixed_kind(self: Any, scratch: Any, kind: Any) -> Any:
        """The mean of one kind."""
        shares, p = self.members[SHARES], scratch[PREDICTION]
        mean, total = 0.0, 0.0
        for i in range(self.begin(kind), self.begin(kind + 1)):
            total += shares[i]
            mean += shares[i] * p[i]
        return mean / total

    def charge(self: Any, cost: Any, weight: Any, scratch: Any) -> None:
        m, costs, losses = self.memory, self.members[COST], self.members[LOSSES]
        m[MIXED] += cost
        m[GAPS] += max(0.0, cost - self.mix_loss(scratch))
        m[ETA] = math.log(self.members.shape[1]) / m[GAPS] if m[GAPS] > 0.0 else math.inf
        for i in range(self.running()):
            losses[i] += costs[i]
        self.settle(scratch)

    def mix_loss(self: Any, scratch: Any) -> Any:
        """−(1/η) ln Σ v e^{−η·cost}, which is the least cost of those with weight if η is infinite."""
        shares, costs, eta, room = self.members[SHARES], self.members[COST], self.memory[ETA], scratch[STEP]
        lowest, part, total = math.inf, 0.0, 0.0
        for kind in range(self.kinds.size):
            if self.kinds[kind] > 0.0:
                for i in range(self.begin(kind), self.begin(kind + 1)):
                    if shares[i] > 0.0:
                        lowest = min(lowest, costs[i])
        if not eta < math.inf:
            return lowest
        for i in range(self.running()):
            room[i] = shares[i] * exp(-eta * (costs[i] - lowest))
        for kind in range(self.kinds.size):
            if self.kinds[kind] > 0.0:
                here, share = 0.0, 0.0
                for i in range(self.begin(kind), self.begin(kind + 1)):
                    share += shares[i]
                    here += room[i]
                part += self.kinds[kind] * here / share
                total += self.kinds[kind]
        return lowest - math.log(part / total) / eta


@values
class ByChance(NamedTuple):
    """Stands for `Chances` where only a type can tell which it is to be, so that the other is not compiled."""

    nothing: Any

    def over(self, members: Any, kinds: Any, memory: Any) -> Any:
        return Chances(members, kinds, memory)


@values
class ByMean(NamedTuple):
    """Stands for `Means`."""

    nothing: Any

    def over(self, members: Any, kinds: Any, memory: Any) -> Any:
        return Means(members, kinds, memory)
