"""How the members of a mixture stand, now and over time, and what not knowing the rate has cost (B12, B15)."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np

from rue.learners.learner import Learner
from rue.learners.mixture.layout import LOSSES, MIXED, RATES, SHARES
from rue.learners.mixture.pool import PoolPoint

__all__ = [
    "MOST_LOOKS",
    "Course",
    "Member",
    "Stages",
    "Standing",
    "members_of",
    "next_mark",
    "stages",
    "standing",
]

MARKS = 4
"""How many looks are taken while the number of examples doubles."""
MOST_LOOKS = 256
"""No stream is so long that there are more."""


PLAIN = {
    "adaptive, by root mean square": "gradient steps, by root mean square",
    "adaptive, by first value": "gradient steps, by first value",
    "adaptive, forgetting": "gradient steps, forgetting",
    "adaptive, centred": "gradient steps, features less their mean",
    "second order, diagonal": "Newton steps, each feature by itself",
    "second order, full": "Newton steps, features together",
    "second order, full, forgetting": "Newton steps, features together, forgetting",
    "second order, centred": "Newton steps, features less their mean",
    "second order, centred, forgetting": "Newton steps, features less their mean, forgetting",
}
"""What the kinds of members are called on a page to read; `Member.kind`, JSON and pictures have the short names."""


@dataclasses.dataclass(frozen=True)
class Member:
    """One learner of a mixture.

    `str()` names its kind and its rate; `Run.members` lists all of a mixture.

    >>> import rue
    >>> member = rue.learn([[1.0], [-1.0]], [1, -1]).members.best
    >>> member.running, member.loss > 0.0
    (True, True)
    """

    kind: str
    """Of a mixture of given learners: what the member is."""
    rate: float | None
    """None where the member has its own step."""
    loss: float
    """Σ weight·ℓ of its own predictions, until it retired if it has."""
    weight: float
    """Its share in the next prediction."""
    running: bool
    """Kinds that need few features retire when there are more, and any kind that is hopelessly behind."""

    def __str__(self) -> str:
        kind = PLAIN.get(self.kind, self.kind)
        return kind if self.rate is None else f"{kind}, rate {self.rate:.3g}"


@dataclasses.dataclass(frozen=True)
class Standing:
    """The members of a mixture and what they have lost, over all the examples that the mixture has learnt.

    `bytes_per_feature` is the memory that a feature takes in all `members` together. `Run.members` makes it; `str()` is
    two lines to read.

    >>> import rue
    >>> standing = rue.learn([[1.0], [-1.0], [2.0]], [1, -1, 1]).members
    >>> len(standing.members), standing.price <= standing.price_at_most
    (48, True)
    """

    members: tuple[Member, ...]
    loss: float
    """What the mixture has lost."""
    price_at_most: float
    """B15, B12: how much more than any member that still runs the mixture can have lost. For log loss ln K + ln T after
    T examples, and with `share=None` ln K; times w_max where the largest weight w_max is above 1, plus what the rounds
    that raised w_max cost beyond their mix loss at the new rate. With fixed share it holds on every stretch of rounds
    too. For every other loss twice the sum of the gaps. Retired members are outside the promise."""
    bytes_per_feature: int
    theorem: str = "B12"
    """Which theorem says so: B15 with fixed share, otherwise B12."""

    @property
    def best(self) -> Member:
        """The member that has lost least, of those that still run."""
        return min((member for member in self.members if member.running), key=lambda member: member.loss)

    @property
    def price(self) -> float:
        """What not knowing the rate has cost: the mixture's loss less the best member's; negative if it gained."""
        return self.loss - self.best.loss

    def heaviest(self, most: int = 3) -> tuple[Member, ...]:
        """The members that carry the weight: at most `most`, and none of less than 1 %.

        >>> import rue
        >>> X, y = rue.census()
        >>> heaviest = rue.learn(X[:500], y[:500]).members.heaviest(2)
        >>> len(heaviest) <= 2, all(member.weight >= 0.01 for member in heaviest)
        (True, True)
        """
        order = sorted(self.members, key=lambda member: -member.weight)[:most]
        return tuple(member for member in order if member.weight >= 0.01)

    def __str__(self) -> str:
        carry = "; ".join(f"{member} ({member.weight:.0%})" for member in self.heaviest())
        running = sum(member.running for member in self.members)
        if self.price < 0.0:
            cost = f"changing between them gained {-self.price:,.4g} in total over the best alone ({self.best})"
            proof = f"by proof it can cost at most {self.price_at_most:,.4g}"
        else:
            cost = f"trying them all cost {self.price:+,.4g} in total over the best alone ({self.best})"
            proof = f"at most {self.price_at_most:,.4g} by proof"
        return (
            f"{running} learners side by side, most weight: {carry or 'spread evenly'}\n"
            f"{cost}, {proof}; {self.bytes_per_feature} bytes a feature"
        )


@dataclasses.dataclass(frozen=True)
class Stages:
    """The stages of `rue.Staged` and what each has lost; the first is linear, the mixture that `Run.members` is about.

    >>> import numpy as np, rue
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> stages = rue.learn(X, np.sign(X[:, 0] * X[:, 1])).stages
    >>> [stage.kind for stage in stages.members][:2], stages.gain > 0.0
    (['the features as they are', 'bins and pairs of columns'], True)
    """

    members: tuple[Member, ...]
    loss: float
    """What the learner has lost."""
    price_at_most: float
    """M1: how much more than the linear stage, or any other, it can have lost. For logistic loss ln M, as in B12."""

    def lines(self, mass: float) -> list[str]:
        """A line for each stage: its mean loss over examples of so much weight in all, and its share.

        >>> stages = Stages((Member("linear", None, 3.0, 0.2, True), Member("bins", None, 2.5, 0.8, True)), 2.6, 0.7)
        >>> stages.lines(10.0)
        ['0.3, weight 20%: linear', '0.25, weight 80%: bins']
        """
        return [
            f"{member.loss / mass:.6g}, "
            + (f"weight {member.weight:.0%}" if member.running else "of no use and retired")
            + f": {member.kind}"
            for member in self.members
        ]

    @property
    def gain(self) -> float:
        """How much less than the linear stage alone the learner has lost; negative if maps did not help."""
        return self.members[0].loss - self.loss

    def __str__(self) -> str:
        carry = sorted(self.members, key=lambda member: -member.weight)[:2]
        weights = "; ".join(f"{member.kind} ({member.weight:.0%})" for member in carry if member.weight >= 0.01)
        alone = "gained" if self.gain >= 0.0 else "cost"
        return (
            f"{sum(member.running for member in self.members)} of {len(self.members)} run, most weight: {weights}\n"
            f"more than a linear model {alone} {abs(self.gain):,.4g} in total over the linear stage alone "
            f"(by proof it can cost at most {self.price_at_most:,.4g})"
        )


def stages(learner: Learner) -> Stages | None:
    """How the stages of a learner stand; None for one that has none."""
    names, point = learner.algorithm.stage_names(), learner._point
    if not names:
        return None
    point = learner.algorithm.start(1)[1] if point is None else point
    shares = point.members[SHARES] / point.members[SHARES].sum()
    columns = zip(names, point.members[LOSSES].tolist(), shares.tolist(), (point.running > 0.0).tolist(), strict=True)
    members = tuple(Member(name, None, loss, share, running) for name, loss, share, running in columns)
    experts = point.experts()
    return Stages(members, float(point.memory[MIXED]), experts.way.price(experts))


def _pool(learner: Learner) -> Any:
    """The point whose members are looked at: of a learner with stages, that of the linear one."""
    point = learner._point if learner._point is not None else learner.algorithm.start(1)[1]
    return getattr(point, "raw", point)


def standing(learner: Learner) -> Standing | None:
    """How the members of a mixture stand, of a learner with stages those of its linear one; None for other learners."""
    algorithm = learner.algorithm
    if not algorithm.mixes:
        return None
    pool = _pool(learner)
    many = pool.members.shape[1]
    rates: list[float | None] = [None] * many
    if len(pool.members) > RATES:
        rates = pool.members[RATES, _order(pool)].tolist()
    running = np.repeat(pool.kinds >= 0.0, many // pool.kinds.size)[_order(pool)].tolist()
    losses = pool.members[LOSSES, _order(pool)].tolist()
    columns = zip(algorithm.member_names(), rates, losses, _weights(pool).tolist(), running, strict=True)
    members, memory = tuple(Member(*column) for column in columns), pool.memory
    experts = pool.experts()
    theorem = "B15" if experts.way.tracks() else "B12"
    price, taken = experts.way.price(experts), algorithm.bytes_per_feature(pool)
    return Standing(members, float(memory[MIXED]), price, taken, theorem)


def _weights(pool: Any) -> Any:
    """The share of every member in the next prediction."""
    return pool.experts().weights()[_order(pool)]


def _order(pool: Any) -> Any:
    """The columns of `members`, those of kind 0 first: where kinds retire, they change places."""
    columns = np.arange(pool.members.shape[1])
    return columns.reshape(pool.kinds.size, -1)[pool.places()].ravel() if isinstance(pool, PoolPoint) else columns


def next_mark(seen: int) -> int:
    """The first of the numbers 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16, 19, … ≈ 2^{k/4} that is more than `seen`."""
    k = max(0, math.floor(MARKS * math.log2(max(seen, 1))))
    while (mark := round(math.pow(2.0, k / MARKS))) <= seen:
        k += 1
    return mark


@dataclasses.dataclass
class Course:
    """The members of a mixture over time, at the marks: some hundred looks at any stream."""

    t: list[int] = dataclasses.field(default_factory=list)
    """How many examples the mixture had learnt."""
    loss: list[float] = dataclasses.field(default_factory=list)
    """What the mixture had lost."""
    losses: list[Any] = dataclasses.field(default_factory=list)
    """What each member had lost; NaN when it had retired."""
    weights: list[Any] = dataclasses.field(default_factory=list)
    seen: int = 0
    """How many examples there were, those that were refused or skipped too; the marks count them."""

    def look(self, learner: Learner) -> None:
        """Add how a mixture stands."""
        pool = _pool(learner)
        if not learner.algorithm.mixes or (self.t and self.t[-1] == learner.t):
            return
        losses = pool.members[LOSSES].copy()
        losses.reshape(pool.kinds.size, -1)[pool.kinds < 0.0] = math.nan
        losses = losses[_order(pool)]
        self.t.append(learner.t)
        self.loss.append(float(pool.memory[MIXED]))
        self.losses.append(losses)
        self.weights.append(_weights(pool))

    def fits(self, learner: Learner) -> bool:
        """Whether a learner as it stands can have come this way."""
        looks = len(self.t)
        if not looks:
            return True
        many = members_of(learner)
        losses, weights = np.array(self.losses), np.array(self.weights)
        if len(self.loss) != looks or losses.shape != (looks, many) or weights.shape != (looks, many):
            return False
        rising = all(a < b for a, b in itertools.pairwise([-1, *self.t, learner.t + 1]))
        shared = bool((weights >= 0.0).all()) and bool(np.allclose(weights.sum(axis=1), 1.0, rtol=0.0, atol=1e-6))
        known = (
            bool(np.isfinite(self.loss).all()) and not np.isinf(losses).any() and not np.isnan(losses).all(axis=1).any()
        )
        return rising and shared and known


def members_of(learner: Learner) -> int:
    """How many members a learner has that has begun; 0 for one without members."""
    if learner._point is None or not learner.algorithm.mixes:
        return 0
    return int(_pool(learner).members.shape[1])
