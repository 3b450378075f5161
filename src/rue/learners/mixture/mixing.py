"""Exponential weights over members that come in kinds (docs/theory.md, B12), round by round inside a compiled loop.

A member's weight is e^{−η·loss}. For logistic loss probabilities are mixed (`ByChance`), at rate η = 1, or 1/(largest
example weight so far) where that weight is more than 1, and the mixture loses at most ln K/η more than any member while
η stays. For every other loss predictions are averaged (`ByMean`), and η is AdaHedge's, ln K / Σ gaps, where a round's
mixability gap (*gap* below) is by how much the mixture's own loss exceeds the mix loss −(1/η) ln Σ v e^{−η·loss} (de
Rooij, van Erven, Grünwald, Koolen 2014, with the loss of the prediction made in place of the mean loss): it loses at
most 2 Σ gaps more than any member. Where the loss is curved the gaps stop growing, and the price is a constant.
Logistic loss has gaps too, where an example weighs more than 1 and than all before it: its prediction was made at too
high a rate, and the price is ln K/η + Σ gaps.

Both rest on one inequality, which holds after every round and which `Experts.resettle` restores after a merge:
Σ loss of the mixture ≤ Φ + Σ gaps, with the potential Φ = −(1/η) ln Σ e^{−η·loss}/K.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rue.compiled import lanes, noinline, values
from rue.compiled.arithmetic import choose, exp, higher, log
from rue.compiled.intrinsics import LANES
from rue.domains import Reals
from rue.errors import DataError, SettingsError, shown
from rue.layout import Numbers
from rue.learners.algorithm import Algorithm
from rue.learners.mixture.layout import (
    COST,
    ETA,
    GAPS,
    HEAVIEST,
    LOSSES,
    LOWEST,
    MIXED,
    MIXED_NO,
    MIXED_YES,
    NO,
    PREDICTION,
    SHARES,
    STEP,
    YES,
)
from rue.streams import numbering

__all__ = ["ByChance", "ByMean", "Experts", "Pooling", "open_memory", "rates_within"]

LOG_LEAST_SHARE = -300.0
"""The logarithm of the least share: with less, products are numbers too small to be fast (subnormal)."""


def open_memory(numbers: Numbers, chances: bool) -> Any:
    """The numbers of a mixture before its first round."""
    memory = np.zeros(len(numbers))
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
        """From how many features on only those that occur get a row in the arrays."""
        return numbering.WIDE

    def require_rates(self) -> None:
        """Refuse a number of rates unless it is a multiple of the SIMD width."""
        if not LANES <= self.rates <= 64 or self.rates % LANES:
            raise SettingsError(f"{self.name}: each kind has {LANES}, {2 * LANES}, … 64 rates, not {self.rates}.")


def rates_within(name: str, budget: Any, fixed: int, per_rate: int, each: str = "") -> int:
    """How many rates a kind has if a feature may take `budget` bytes.

    Beside its weights, which take `per_rate` bytes for each rate, a feature takes `fixed` bytes; `each` ends a refusal.
    """
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer):
        raise SettingsError(f"{name}: budget must be a number of bytes, not {shown(budget)}.")
    rates = min(64, (int(budget) - fixed) // per_rate // LANES * LANES)
    if rates < LANES:
        raise SettingsError(f"{name}: a feature takes at least {fixed + LANES * per_rate} bytes{each}, not {budget}.")
    return int(rates)


@lanes(fold="sum")
def total_of(x: Any) -> Any:
    """Σx."""
    return x


@lanes(fold="sum")
def inner(x: Any, y: Any) -> Any:
    """⟨x, y⟩."""
    return x * y


@lanes(fold="least")
def least_of(x: Any) -> Any:
    """The least of them."""
    return x


@lanes()
def times(x: Any, by: Any) -> Any:
    return x * by


@lanes()
def plus(x: Any, y: Any) -> Any:
    return x + y


@lanes()
def excess_after(loss: Any, best: Any, cost: Any) -> Any:
    """How much more a member has lost after the round than the best had lost before it."""
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


@values
class Experts(NamedTuple):
    """The members of a mixture: those from `begin(kind)` to `begin(kind + 1)` are of one kind."""

    members: Any
    """A column for each member (`layout.MEMBERS`)."""
    kinds: Any
    """The weight of each kind; −1 for one that has retired, and those that run come first."""
    memory: Any
    way: Any
    """How predictions are mixed: `ByChance` or `ByMean`."""

    def mixed(self, scratch: Any, work: Any) -> Any:
        """The mixture of the predictions in `scratch`; each kind's into `work`."""
        return self.way.mixed(self, scratch, work)

    def charge(self, cost: Any, weight: Any, scratch: Any, work: Any) -> None:
        """Enter a round: the members' costs stand in `members`, the mixture's is given."""
        self.memory[MIXED] += cost
        self.way.charge(self, cost, weight, scratch, work)
        plus(0, self.running(), self.members[LOSSES], self.members[LOSSES], self.members[COST])
        self.settle(work)

    def begin(self, kind: Any) -> Any:
        """The first member of a kind."""
        return kind * (self.members.shape[1] // self.kinds.size)

    def running(self) -> Any:
        """How many members run: those of the last kinds may have retired."""
        kinds = self.kinds.size
        while self.kinds[kinds - 1] < 0.0:
            kinds -= 1
        return self.begin(kinds)

    @noinline
    def retire(self, kind: Any) -> Any:
        """Retire a kind: swapped with the last active kind; its weight becomes −1; returns its new index."""
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

    @noinline
    def settle(self, work: Any) -> None:
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
            weight_of(0, running * each, shares, shares, eta, LOG_LEAST_SHARE)
        else:
            for i in range(running * each):  # no gap has occurred yet: follow the best
                shares[i] = 1.0 if shares[i] == 0.0 else 0.0
        for kind in range(running):
            first, away = kind * each, lowest[kind] - best
            part = total_of(first, each, shares)
            kinds[kind] = part * (
                1.0 if away == 0.0 else exp(max(LOG_LEAST_SHARE, -eta * away)) if eta < math.inf else 0.0
            )
            total += kinds[kind]
            times(first, each, shares, shares, 1.0 / part)
        for kind in range(running):
            kinds[kind] /= total

    @noinline
    def mix_loss(self, scratch: Any) -> Any:
        """−(1/η) ln Σ v e^{−η·cost}, by how much −(1/η) ln Σ e^{−η·loss} grows; the least loss, if η is infinite.

        From the losses and not from the shares: these are floored at e^−300, so they are wrong for a member that
        overtakes from far behind.
        """
        losses, shares, costs, eta = self.members[LOSSES], self.members[SHARES], self.members[COST], self.memory[ETA]
        many, leading, room = self.running(), 0.0, scratch[STEP]
        best = least_of(0, many, losses)
        excess_after(0, many, room, losses, best, costs)
        lowest = least_of(0, many, room)
        if not eta < math.inf:
            return lowest
        minus(0, many, room, room, lowest)
        weight_of(0, many, room, room, eta, -math.inf)
        for i in range(many):
            if losses[i] == best:
                leading = self.kinds[i // self.begin(1)] * shares[i]  # one over Σ e^{−η(loss − best)}
        return lowest - math.log(total_of(0, many, room) * leading) / eta

    def resettle(self, work: Any) -> None:
        """The rate and the shares, from losses and gaps that several parts of a stream have added up.

        Every part began with the weights of the base, so together they may have lost more than the potential Φ of the
        losses and the sum of their gaps: then the gaps are raised to the difference. For `ByMean` that lowers η, which
        raises Φ, so the inequality holds after it too.
        """
        m, running = self.memory, self.running()
        self.way.set_rate(self)
        losses = self.members[LOSSES, :running]
        if m[ETA] < math.inf:
            behind = np.exp(-m[ETA] * (losses - losses.min())).sum() / self.members.shape[1]
            potential = losses.min() - math.log(behind) / m[ETA]
        else:
            potential = losses.min()
        m[GAPS] = max(m[GAPS], m[MIXED] - potential)
        self.way.set_rate(self)
        self.settle(work)

    def require_sane(self) -> None:
        """Refuse members from a file that have no weights to divide by, or no rate to multiply by."""
        shares = self.members[SHARES].reshape(self.kinds.size, -1)
        if not (self.memory[[HEAVIEST, GAPS, ETA]] >= 0.0).all() or not np.isfinite(self.members).all():
            raise DataError("its members' losses are impossible")
        if not (self.kinds.max() > 0.0 and (shares >= 0.0).all() and (shares.sum(axis=1) > 0.0).all()):
            raise DataError("its members have no weight")


@values
class ByChance(NamedTuple):
    """Probabilities are mixed. A class without content, so that only its type tells and the other is not compiled."""

    nothing: Any
    """Dummy: Numba needs a field."""

    def mixed(self, experts: Any, scratch: Any, work: Any) -> Any:
        """The log-odds of the mixture of the predictions in `scratch`; each kind's probabilities into `work`."""
        yes, no, shares, each = scratch[YES], scratch[NO], experts.members[SHARES], experts.begin(1)
        many, ayes, noes = experts.running(), 0.0, 0.0
        chances_of(0, many, yes, no, scratch[PREDICTION])
        for kind in range(many // each):
            aye, nay = inner(kind * each, each, shares, yes), inner(kind * each, each, shares, no)
            work[MIXED_YES, kind], work[MIXED_NO, kind] = aye, nay
            ayes += experts.kinds[kind] * aye
            noes += experts.kinds[kind] * nay
        return log(ayes / noes)

    def charge(self, experts: Any, cost: Any, weight: Any, scratch: Any, work: Any) -> None:
        """The rate after a round, and its mixability gap."""
        m = experts.memory
        if weight > m[HEAVIEST]:  # the prediction was made at too high a rate
            m[HEAVIEST], m[ETA] = weight, 1.0 / weight
            experts.settle(work)
            m[GAPS] += max(0.0, cost - experts.mix_loss(scratch))

    def set_rate(self, experts: Any) -> None:
        """η, from what has been added up."""
        experts.memory[ETA] = 1.0 / experts.memory[HEAVIEST]

    def price(self, experts: Any) -> float:
        """How much more than any member that runs the mixture can have lost (B12)."""
        m = experts.memory
        return float(math.log(experts.members.shape[1]) * m[HEAVIEST] + m[GAPS])


@values
class ByMean(NamedTuple):
    """Predictions are averaged."""

    nothing: Any
    """Dummy: Numba needs a field."""

    def mixed(self, experts: Any, scratch: Any, work: Any) -> Any:
        """The mean of the predictions in `scratch`; each kind's mean into `work[MIXED_YES]`."""
        p, shares, mean, each = scratch[PREDICTION], experts.members[SHARES], 0.0, experts.begin(1)
        for kind in range(experts.running() // each):
            own = inner(kind * each, each, shares, p)
            work[MIXED_YES, kind] = own
            mean += experts.kinds[kind] * own
        return mean

    def charge(self, experts: Any, cost: Any, weight: Any, scratch: Any, work: Any) -> None:
        """The rate after a round, AdaHedge's ln K / Σ gaps."""
        experts.memory[GAPS] += max(0.0, cost - experts.mix_loss(scratch))
        self.set_rate(experts)

    def set_rate(self, experts: Any) -> None:
        gaps = experts.memory[GAPS]
        experts.memory[ETA] = math.log(experts.members.shape[1]) / gaps if gaps > 0.0 else math.inf

    def price(self, experts: Any) -> float:
        """How much more than any member that runs the mixture can have lost (B12): twice the gaps."""
        return float(2.0 * experts.memory[GAPS])
