"""Weights of members that come in kinds (docs/theory.md, B12 and B15), round by round inside a compiled loop.

By fixed share, the default for log loss, a member's weight v becomes (1 − α)·v' + α/K after round t, v' ∝ v·e^{−η·cost}
and α = 1/(t + 1): on every stretch of rounds up to s the mixture loses at most (ln K + ln s)/η more than any member.

Without sharing a member's weight is e^{−η·loss}. For logistic loss probabilities are mixed (`ByChance`), at rate
η = 1, or 1/(largest example weight so far) where that weight is more than 1, and the mixture loses at most ln K/η more
than any member while η stays. For every other loss predictions are averaged (`ByMean`), and η is AdaHedge's,
ln K / Σ gaps, where a round's mixability gap (*gap* below) is by how much the mixture's own loss exceeds the mix loss
−(1/η) ln Σ v e^{−η·loss} (de Rooij, van Erven, Grünwald, Koolen 2014, with the loss of the prediction made in place of
the mean loss): it loses at most 2 Σ gaps more than any member. Where the loss is curved the gaps stop growing, and the
price is a constant.
Logistic loss has gaps too, where an example weighs more than 1 and than all before it: its prediction was made at too
high a rate, and the price is ln K/η + Σ gaps.

Without sharing both rest on one inequality, which holds after every round and which `Experts.resettle` restores after
a merge: Σ loss of the mixture ≤ Φ + Σ gaps, with the potential Φ = −(1/η) ln Σ e^{−η·loss}/K.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from rue.learners.points import T
from rue.streams import numbering

__all__ = [
    "ByChance",
    "ByMean",
    "Experts",
    "Pooling",
    "open_memory",
    "rates_within",
    "require_share",
    "way_of",
    "words_for",
]

LOG_LEAST_SHARE = -300.0
"""The logarithm of the least share: with less, products are numbers too small to be fast (subnormal)."""


def open_memory(numbers: Numbers, chances: bool) -> Any:
    """The numbers of a mixture before its first round."""
    memory = np.zeros(len(numbers))
    memory[HEAVIEST] = 1.0
    memory[ETA] = 1.0 if chances else math.inf
    return memory


def require_share(name: str, share: Any) -> str | None:
    """Which rule of fixed share is meant: "1/t" or None; refuses anything else."""
    if share in (None, "none"):
        return None
    if share != "1/t":
        raise SettingsError(f'{name}: share must be "1/t" or None, not {shown(share)}.')
    return "1/t"


def way_of(loss: Any, share: str | None) -> Any:
    """How predictions for a loss are mixed."""
    return ByChance(0.0 if share is None else 1.0) if loss.log_odds else ByMean(0)


def words_for(loss: Any, share: str | None) -> str:
    """How predictions for a loss are mixed, in words."""
    return "fixed share" if loss.log_odds and share is not None else "exponential weights"


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


@lanes()
def posterior_of(share: Any, cost: Any, kind: Any, least: Any, eta: Any, floor: Any) -> Any:
    """What a member's weight becomes by a round, up to a factor that all have in common."""
    return share * kind * exp(higher(eta * (least - cost), floor))


@lanes()
def part_of(x: Any, by: Any, more: Any) -> Any:
    return x * by + more


@lanes(results=2)
def chances_of(p: Any) -> Any:
    """The probabilities of yes and no that log-odds stand for."""
    # From e^−|p|, which does not overflow; the smaller probability is e/(1 + e), not 1 less the larger one, so it
    # keeps its digits.
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

    def charge(self, cost: Any, weight: Any, t: Any, scratch: Any, work: Any) -> None:
        """Enter round t: the members' costs stand in `members`, the mixture's is given."""
        self.memory[MIXED] += cost
        self.way.charge(self, cost, weight, scratch, work)
        plus(0, self.running(), self.members[LOSSES], self.members[LOSSES], self.members[COST])
        self.way.reweigh(self, t, scratch, work)

    def weigh_by_losses(self, p: Any, behind: Any, shares: Any) -> None:
        """e^{−η·loss} of the members that have a prediction p, up to a factor; 0 of the others."""
        losses, eta, best = self.members[LOSSES], self.memory[ETA], math.inf
        for k in range(p.size):
            behind[k] = math.inf if math.isnan(p[k]) else losses[k]
            best = min(best, behind[k])
        for k in range(p.size):
            behind[k] -= best
            if eta < math.inf:
                shares[k] = exp(-eta * behind[k]) if behind[k] < math.inf else 0.0
            else:
                shares[k] = 1.0 if behind[k] == 0.0 else 0.0

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

    def find_lowest(self, work: Any) -> None:
        """What the best member of each kind that runs has lost."""
        each = self.begin(1)
        for kind in range(self.running() // each):
            work[LOWEST, kind] = least_of(kind * each, each, self.members[LOSSES])

    @noinline
    def weigh(self, v: Any) -> Any:
        """v ← weight·e^{−η(cost − least)}, and −(1/η) ln Σ weight·e^{−η·cost}, the mix loss of the round."""
        shares, costs, eta, total = self.members[SHARES], self.members[COST], self.memory[ETA], 0.0
        many, each = self.running(), self.begin(1)
        least = least_of(0, many, costs)
        for kind in range(many // each):
            posterior_of(kind * each, each, v, shares, costs, self.kinds[kind], least, eta, LOG_LEAST_SHARE)
            total += total_of(kind * each, each, v)
        return least - math.log(total) / eta

    @noinline
    def share_out(self, alpha: Any, v: Any) -> None:
        """The weights for the next round, by fixed share: (1 − α)·v/Σv + α/K (B15).

        None is ever less than α/K, so nothing underflows, however long the stream.
        """
        shares, kinds, many, each, total = self.members[SHARES], self.kinds, self.running(), self.begin(1), 0.0
        for kind in range(many // each):
            total += total_of(kind * each, each, v)
        for kind in range(many // each):
            first = kind * each
            part_of(first, each, v, v, (1.0 - alpha) / total, alpha / many)
            kinds[kind] = total_of(first, each, v)
            times(first, each, shares, v, 1.0 / kinds[kind])

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
            # Relative to the best of the kind: e^{−η·loss} itself would underflow for every member of a long stream.
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

    def weights(self) -> Any:
        """The share of every member in the next prediction, in their order; 0 of those that have retired."""
        shares, kinds = self.members[SHARES].reshape(self.kinds.size, -1), np.maximum(self.kinds, 0.0)
        return (shares / shares.sum(axis=1, keepdims=True) * (kinds / kinds.sum())[:, None]).ravel()

    def resettle(self, work: Any, weights: Sequence[Any]) -> None:
        """The rate and the shares, from what several parts of a stream have added up.

        `weights` are those of the members in the base, then in each part.
        """
        self.way.set_rate(self)
        self.way.resettle(self, work, weights)

    def resettle_by_losses(self, work: Any) -> None:
        """The shares that losses and gaps stand for.

        Every part began with the weights of the base, so together they may have lost more than the potential Φ of the
        losses and the sum of their gaps: then the gaps are raised to the difference. For `ByMean` that lowers η, which
        raises Φ, so the inequality holds after it too.
        """
        m, running = self.memory, self.running()
        losses = self.members[LOSSES, :running]
        if m[ETA] < math.inf:
            behind = np.exp(-m[ETA] * (losses - losses.min())).sum() / self.members.shape[1]
            potential = losses.min() - math.log(behind) / m[ETA]
        else:
            potential = losses.min()
        m[GAPS] = max(m[GAPS], m[MIXED] - potential)
        self.way.set_rate(self)
        self.settle(work)

    def multiply(self, share: float, weights: Sequence[Any]) -> None:
        """Each weight is multiplied by what every part has multiplied it by, then shared out.

        Where weights are shared the mixture has lost at most η⁻¹ ln(K·T·v) more than a member of weight v, and the
        gaps (B15); the gaps are raised to what it takes for that to hold, and so it holds ever after.
        """
        m, many, K = self.memory, self.running(), self.members.shape[1]
        t = max(1.0, m[T])
        logs = np.log(np.maximum([own[:many] for own in weights], 1.0 / (K * t)))
        logs = logs[0] + (logs[1:] - logs[0]).sum(axis=0)
        self.share_out(share / (t + 1.0), np.pad(np.exp(logs - logs.max()), (0, K - many)))
        least = np.min(self.members[LOSSES, :many] + np.log(K * t * self.weights()[:many]) / m[ETA])
        m[GAPS] = max(m[GAPS], m[MIXED] - least)

    def require_sane(self) -> None:
        """Refuse members from a file that have no weights to divide by, or no rate to multiply by."""
        shares = self.members[SHARES].reshape(self.kinds.size, -1)
        if not (self.memory[[HEAVIEST, GAPS, ETA]] >= 0.0).all() or not np.isfinite(self.members).all():
            raise DataError("its members' losses are impossible")
        if not (self.kinds.max() > 0.0 and (shares >= 0.0).all() and (shares.sum(axis=1) > 0.0).all()):
            raise DataError("its members have no weight")


@values
class ByChance(NamedTuple):
    """Probabilities are mixed."""

    share: Any
    """After round t a part α = share/(t + 1) of every weight is shared among all (B15); 0: never."""

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

    def tracks(self) -> Any:
        """Whether weights are shared."""
        return self.share > 0.0

    def charge(self, experts: Any, cost: Any, weight: Any, scratch: Any, work: Any) -> None:
        """The rate after a round, and its mixability gap."""
        m = experts.memory
        # Log loss is mixable at rate 1, weight·ℓ at rate 1/weight (B12).
        if weight > m[HEAVIEST]:  # the prediction was made at too high a rate
            m[HEAVIEST], m[ETA] = weight, 1.0 / weight
            if self.share > 0.0:
                mixed = experts.weigh(scratch[STEP])
            else:
                experts.settle(work)
                mixed = experts.mix_loss(scratch)
            m[GAPS] += max(0.0, cost - mixed)

    def reweigh(self, experts: Any, t: Any, scratch: Any, work: Any) -> None:
        """The weights for the next round, after round t."""
        if self.share > 0.0:
            experts.weigh(scratch[STEP])
            experts.share_out(self.share / (t + 1.0), scratch[STEP])
        else:
            experts.settle(work)

    def weigh_awake(self, experts: Any, p: Any, behind: Any, shares: Any) -> None:
        """Weights, up to a factor, of the members that have a prediction p."""
        if self.share > 0.0:
            for k in range(p.size):
                behind[k] = math.inf if math.isnan(p[k]) else 0.0
                shares[k] = 0.0 if math.isnan(p[k]) else experts.members[SHARES, k]
        else:
            experts.weigh_by_losses(p, behind, shares)

    def resettle(self, experts: Any, work: Any, weights: Sequence[Any]) -> None:
        """The weights of several parts of a stream together."""
        if self.share > 0.0:
            experts.multiply(self.share, weights)
        else:
            experts.resettle_by_losses(work)

    def set_rate(self, experts: Any) -> None:
        """η, from what has been added up."""
        experts.memory[ETA] = 1.0 / experts.memory[HEAVIEST]

    def price(self, experts: Any) -> float:
        """How much more than any member that runs the mixture can have lost (B12, B15)."""
        m, t = experts.memory, max(1.0, experts.memory[T])
        return float((math.log(experts.members.shape[1]) + self.share * math.log(t)) * m[HEAVIEST] + m[GAPS])


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

    def tracks(self) -> Any:
        """Weights are not shared."""
        return False

    def charge(self, experts: Any, cost: Any, weight: Any, scratch: Any, work: Any) -> None:
        """The rate after a round, AdaHedge's ln K / Σ gaps."""
        experts.memory[GAPS] += max(0.0, cost - experts.mix_loss(scratch))
        self.set_rate(experts)

    def reweigh(self, experts: Any, t: Any, scratch: Any, work: Any) -> None:
        """The weights for the next round."""
        experts.settle(work)

    def weigh_awake(self, experts: Any, p: Any, behind: Any, shares: Any) -> None:
        """Weights, up to a factor, of the members that have a prediction p."""
        experts.weigh_by_losses(p, behind, shares)

    def resettle(self, experts: Any, work: Any, weights: Sequence[Any]) -> None:
        """The weights of several parts of a stream together."""
        experts.resettle_by_losses(work)

    def set_rate(self, experts: Any) -> None:
        gaps = experts.memory[GAPS]
        experts.memory[ETA] = math.log(experts.members.shape[1]) / gaps if gaps > 0.0 else math.inf

    def price(self, experts: Any) -> float:
        """How much more than any member that runs the mixture can have lost (B12): twice the gaps."""
        return float(2.0 * experts.memory[GAPS])
