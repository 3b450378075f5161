"""Exponential weights over members that come in kinds (docs/theory.md, B12), round by round inside a compiled loop.

A member's weight is e^{−η·loss}. For logistic loss probabilities are mixed (`Chances`), at rate η = 1, or 1/(largest
example weight so far) where that weight is more than 1, and the mixture loses at most ln K/η more than any member while
η stays. For every other loss predictions are averaged (`Means`), and η is AdaHedge's, ln K / Σ gaps, where a round's
gap is by how much the mixture's own loss exceeds the mix loss −(1/η) ln Σ v e^{−η·loss} (de Rooij, van Erven, Grünwald,
Koolen 2014, with the loss of the prediction made in place of the mean loss): it loses at most 2 Σ gaps more than any
member. Where the loss is curved the gaps stop growing, and the price is a constant. Logistic loss has gaps too, where
an example weighs more than 1 and than all before it: its prediction was made at too high a rate, and the price is ln
K/η + Σ gaps.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from rue.compiled import lanes, noinline, values
from rue.compiled.arithmetic import choose, exp, higher, log
from rue.compiled.intrinsics import LANES
from rue.domains import Reals
from rue.errors import SettingsError
from rue.learners.algorithm import Algorithm
from rue.learners.points import MEMORY
from rue.streams import numbering

__all__ = [
    "COST",
    "ETA",
    "GAPS",
    "HEAVIEST",
    "LOSSES",
    "LOWEST",
    "MIXED",
    "MIXED_NO",
    "MIXED_YES",
    "MIXING_MEMORY",
    "NO",
    "PREDICTION",
    "SCRATCH",
    "SHARES",
    "STEP",
    "YES",
    "ByChance",
    "ByMean",
    "Chances",
    "Means",
    "Pooling",
    "open_memory",
]

# Rows of `members`: what each has lost, its share of its kind's weight, and what the present round cost it.
LOSSES, SHARES, COST = range(3)
# Rows of `scratch`: predictions, the probabilities of yes and no they stand for, then the steps to take.
PREDICTION, YES, NO, STEP = range(4)
SCRATCH = 4
# Rows of `work`, a column a kind: the probabilities of yes and no of its mixture, or its mean; what its best has lost.
MIXED_YES, MIXED_NO, LOWEST = range(3)
# Places in `memory`: the rate η, Σ gaps, the largest example weight but 1 at least, and what the mixture has lost.
ETA, GAPS, HEAVIEST, MIXED = range(MEMORY, MEMORY + 4)
MIXING_MEMORY = MEMORY + 4

LEAST = -300.0
"""The logarithm of the least share: with less, products are numbers too small to be fast (subnormal)."""

E = TypeVar("E")


def open_memory(places: int, chances: bool) -> Any:
    """The memory of a mixture before its first round, with so many places in all."""
    memory = np.zeros(places)
    memory[HEAVIEST] = 1.0
    memory[ETA] = 1.0 if chances else math.inf
    return memory


class Pooling(Algorithm):
    """What the algorithms share that run as many rates of each of their kinds side by side."""

    name: Any
    rates: int

    kind_names: ClassVar[tuple[str, ...]]
    """What its kinds are called."""
    mixes = True

    def member_names(self) -> list[str]:
        return [kind for kind in self.kind_names for _ in range(self.rates)]

    def bytes_per_feature(self, point: Any) -> int:
        return self.budget

    @property
    def budget(self) -> int:
        """The bytes a feature takes."""
        raise NotImplementedError

    @property
    def domain(self) -> Any:
        return Reals()

    @property
    def wide(self) -> int | None:
        """From how many features on only those that occur get a place."""
        return numbering.WIDE

    def require_rates(self) -> None:
        """Refuse a number of rates that does not fill the lanes."""
        if not LANES <= self.rates <= 64 or self.rates % LANES:
            raise SettingsError(f"{self.name}: each kind has {LANES}, {2 * LANES}, … 64 rates, not {self.rates}.")


def begin(self: Any, kind: Any) -> Any:
    """The first member of a kind."""
    return kind * (self.members.shape[1] // self.kinds.size)


def running(self: Any) -> Any:
    """How many members run: those of the last kinds may have retired."""
    kinds = self.kinds.size
    while self.kinds[kinds - 1] < 0.0:
        kinds -= 1
    return self.begin(kinds)


@noinline
def retire(self: Any, kind: Any) -> Any:
    """A kind stops running: it changes places with the last that does, whose place is returned, and has no weight."""
    members, kinds, last, each = self.members, self.kinds, self.running() // self.begin(1) - 1, self.begin(1)
    for row in range(members.shape[0]):
        for i in range(each):
            a, b = kind * each + i, last * each + i
            members[row, a], members[row, b] = members[row, b], members[row, a]
    total = 0.0
    kinds[kind], kinds[last] = kinds[last], -1.0
    for k in range(last):
        total += kinds[k]
    for k in range(last):
        kinds[k] /= total
    return last


@lanes(fold="sum")
def total_of(x: Any) -> Any:
    return x


@lanes(fold="sum")
def inner(x: Any, y: Any) -> Any:
    return x * y


@lanes(fold="least")
def least_of(x: Any) -> Any:
    return x


@lanes()
def times(x: Any, by: Any) -> Any:
    return x * by


@lanes()
def plus(x: Any, y: Any) -> Any:
    return x + y


@lanes()
def ahead_of(loss: Any, best: Any, cost: Any) -> Any:
    """How far the best loss so far is ahead after the round."""
    return loss - best + cost


@lanes()
def minus(x: Any, y: Any) -> Any:
    return x - y


@lanes()
def weight_of(behind: Any, eta: Any, floor: Any) -> Any:
    """What a loss weighs that is so much more than the least: e^{−η·behind}, but at least e^floor."""
    return exp(higher(-eta * behind, floor))


@lanes(results=2)
def chances_of(p: Any) -> Any:
    """The probabilities of yes and no that log-odds stand for."""
    e = exp(-higher(p, -p))
    more = 1.0 / (1.0 + e)
    less = e * more
    return choose(p, 0.0, less, more), choose(p, 0.0, more, less)


@noinline
def settle(self: Any, work: Any) -> None:
    """The shares for the next round, from the losses and the rate: within each kind, and of the kinds."""
    losses, shares, kinds, eta = self.members[LOSSES], self.members[SHARES], self.kinds, self.memory[ETA]
    each, lowest, best, total = self.begin(1), work[LOWEST], math.inf, 0.0
    running = self.running() // each
    for kind in range(running):
        first = kind * each
        least = least_of(first, each, losses)
        lowest[kind], best = least, min(best, least)
        minus(first, each, shares, losses, least)
    if eta < math.inf:
        weight_of(0, running * each, shares, shares, eta, LEAST)
    else:
        for i in range(running * each):
            shares[i] = 1.0 if shares[i] == 0.0 else 0.0
    for kind in range(running):
        first, away = kind * each, lowest[kind] - best
        part = total_of(first, each, shares)
        kinds[kind] = part * (1.0 if away == 0.0 else exp(max(LEAST, -eta * away)) if eta < math.inf else 0.0)
        total += kinds[kind]
        times(first, each, shares, shares, 1.0 / part)
    for kind in range(running):
        kinds[kind] /= total


@noinline
def mix_loss(self: Any, scratch: Any) -> Any:
    """−(1/η) ln Σ v e^{−η·cost}, by how much −(1/η) ln Σ e^{−η·loss} grows; the least loss, if η is infinite.

    From the losses and not from the shares, which know nothing of those far behind who take the lead in this round.
    """
    losses, shares, costs, eta = self.members[LOSSES], self.members[SHARES], self.members[COST], self.memory[ETA]
    many, leading, room = self.running(), 0.0, scratch[STEP]
    best = least_of(0, many, losses)
    ahead_of(0, many, room, losses, best, costs)
    lowest = least_of(0, many, room)
    if not eta < math.inf:
        return lowest
    minus(0, many, room, room, lowest)
    weight_of(0, many, room, room, eta, -math.inf)
    for i in range(many):
        if losses[i] == best:
            leading = self.kinds[i // self.begin(1)] * shares[i]  # one over Σ e^{−η(loss − best)}
    return lowest - math.log(total_of(0, many, room) * leading) / eta


def _experts(cls: type[E]) -> type[E]:
    """Members `begin(kind)` to `begin(kind + 1)` are of one kind; `kinds` has each kind's weight, −1 when retired."""
    for word in (begin, running, retire, settle, mix_loss):
        setattr(cls, word.__name__, word)
    return values(cls)


@_experts
class Chances(NamedTuple):
    """Probabilities are mixed."""

    members: Any
    kinds: Any
    memory: Any

    def mixed(self: Any, scratch: Any, work: Any) -> Any:
        """The log-odds of the mixture of the predictions in `scratch`; each kind's probabilities into `work`."""
        yes, no, shares, each = scratch[YES], scratch[NO], self.members[SHARES], self.begin(1)
        many, ayes, noes = self.running(), 0.0, 0.0
        chances_of(0, many, yes, no, scratch[PREDICTION])
        for kind in range(many // each):
            aye, nay = inner(kind * each, each, shares, yes), inner(kind * each, each, shares, no)
            work[MIXED_YES, kind], work[MIXED_NO, kind] = aye, nay
            ayes += self.kinds[kind] * aye
            noes += self.kinds[kind] * nay
        return log(ayes / noes)

    def charge(self: Any, cost: Any, weight: Any, scratch: Any, work: Any) -> None:
        """Enter a round: the members' costs stand in `members`, the mixture's is given."""
        m, costs, losses = self.memory, self.members[COST], self.members[LOSSES]
        m[MIXED] += cost
        if weight > m[HEAVIEST]:  # the prediction was made at too high a rate
            m[HEAVIEST], m[ETA] = weight, 1.0 / weight
            self.settle(work)
            m[GAPS] += max(0.0, cost - self.mix_loss(scratch))
        plus(0, self.running(), losses, losses, costs)
        self.settle(work)


@_experts
class Means(NamedTuple):
    """Predictions are averaged."""

    members: Any
    kinds: Any
    memory: Any

    def mixed(self: Any, scratch: Any, work: Any) -> Any:
        """The mean of the predictions in `scratch`; each kind's into `work`."""
        p, shares, mean, each = scratch[PREDICTION], self.members[SHARES], 0.0, self.begin(1)
        for kind in range(self.running() // each):
            own = inner(kind * each, each, shares, p)
            work[MIXED_YES, kind] = own
            mean += self.kinds[kind] * own
        return mean

    def charge(self: Any, cost: Any, weight: Any, scratch: Any, work: Any) -> None:
        m, costs, losses = self.memory, self.members[COST], self.members[LOSSES]
        m[MIXED] += cost
        m[GAPS] += max(0.0, cost - self.mix_loss(scratch))
        m[ETA] = math.log(self.members.shape[1]) / m[GAPS] if m[GAPS] > 0.0 else math.inf
        plus(0, self.running(), losses, losses, costs)
        self.settle(work)


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
