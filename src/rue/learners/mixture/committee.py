"""Any list of learners side by side in one compiled pass, mixed as B15 and B12 say: `Mixture(members=[…])`.

Every member learns exactly what it would learn alone. A member whose prediction is so large that its loss would be no
number sits the round out: those awake are mixed by the weights they have among themselves, and the sleeper is charged
what the mixture loses (Freund, Schapire, Singer, Warmuth 1997). So the bounds hold against each member over the
rounds in which it was awake.

Members are of many types, and compiled code must know each: they are the leaves of a binary tree, which Numba compiles
type by type. Points and rules have trees of the same shape.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import parameter, values
from rue.domains import Domain
from rue.errors import SettingsError, shown
from rue.layout import Layout
from rue.learners.algorithm import Algorithm
from rue.learners.learner import Learner
from rue.learners.mixture.layout import (
    COMMITTEE,
    COST,
    LOSSES,
    MEMBERS,
    MIXING,
    MIXING_MEMORY,
    PREDICTION,
    SCRATCH,
    SHARES,
)
from rue.learners.mixture.mixing import Experts, open_memory, require_share, way_of, words_for
from rue.learners.mixture.trees import Branch, BranchRule, Leaf, LeafRule, tree
from rue.learners.points import RESIDUAL, T, gathered, laid_out, require_sane, state_of
from rue.norms import LARGEST_TERM
from rue.registry import make, register, registered

__all__ = ["MOST", "Committee", "CommitteePoint", "Joint", "committee"]

MOST = 64
"""Lists are compiled member by member; longer ones would take minutes."""
HIGHEST = 2.0**332
"""The largest prediction of a member that is ever looked at."""


@values
class CommitteePoint(NamedTuple):
    """The state of `Mixture(members=…)`: the members' points, their losses and shares."""

    tree: Any
    members: Any
    """Rows as in `mixing`, a column a member; all are of one kind."""
    kinds: Any
    memory: Any
    scratch: Any
    work: Any
    room: Any
    """`members` once more, for the weights in a round in which some sleep."""
    reach: Any
    """Predictions are clipped to ± this before they are mixed."""
    limit: Any
    """Beyond ± this a member sleeps."""
    way: Any
    """How predictions are mixed: `ByChance` or `ByMean`."""

    @property
    def layout(self) -> Layout:
        return COMMITTEE

    def size(self) -> Any:
        return self.tree.size()

    def experts(self) -> Any:
        return Experts(self.members, self.kinds, self.memory, self.way)

    def dot(self, row: Any) -> Any:
        """The mixture's prediction, NaN if all sleep; in `scratch` the members', a sleeper's being the mixture's."""
        p, awake = self.scratch[PREDICTION], 0
        self.tree.predict_all(row, p, 0)
        for k in range(p.size):
            if abs(p[k]) <= self.limit:
                p[k] = min(self.reach, max(-self.reach, p[k]))
                awake += 1
            else:
                p[k] = math.nan
        if awake == p.size:
            return self.experts().mixed(self.scratch, self.work)
        return self.mixed_awake() if awake > 0 else math.nan

    def mixed_awake(self) -> Any:
        """The mixture of those that have a prediction."""
        p, total, behind, shares = self.scratch[PREDICTION], 0.0, self.room[LOSSES], self.room[SHARES]
        self.way.weigh_awake(self.experts(), p, behind, shares)
        for k in range(p.size):
            total += shares[k]
        for k in range(p.size):
            shares[k] /= total
            p[k] = p[k] if behind[k] < math.inf else 0.0
        mixed = Experts(self.room, self.kinds, self.memory, self.way).mixed(self.scratch, self.work)
        for k in range(p.size):
            p[k] = p[k] if behind[k] < math.inf else mixed
        return mixed

    def average_dot(self, row: Any) -> Any:
        return self.dot(row)

    # Reading.

    def points(self) -> list[Any]:
        """The members' points, in their order."""
        points: list[Any] = self.tree.leaves()
        return points

    def current(self, domain: Any) -> Any:
        """The posterior mean of the members' points."""
        size = self.size()
        return sum(
            v * point.current(domain)[:size] for v, point in zip(self.members[SHARES], self.points(), strict=True)
        )

    def grown(self, domain: Any, size: int) -> CommitteePoint:
        return self._replace(tree=self.tree.changed(lambda point: point.grown(domain, size)))

    def changed(self, change: Callable[[Any], Any]) -> CommitteePoint:
        """With its members' points changed, those whose coordinates are the data's: all of them."""
        return self._replace(tree=self.tree.changed(change))

    def laid_out(self) -> CommitteePoint:
        """With its members' arrays as a file has them."""
        return self.changed(laid_out)

    def gathered(self) -> CommitteePoint:
        """The inverse of `laid_out`."""
        return self._replace(tree=self.tree.changed(gathered))

    def merged(self, algorithm: Any, parts: Sequence[CommitteePoint]) -> CommitteePoint:
        """Every member merged as it would be alone; losses are added, and the shares follow from them."""
        merged_points = [
            point.merged(member, [part.points()[k] for part in parts])
            for k, (point, member) in enumerate(zip(self.points(), algorithm.members, strict=True))
        ]
        points = iter(merged_points)
        merged = self._replace(tree=self.tree.changed(lambda _: next(points)), **self.layout.merged(self, parts))
        merged.experts().resettle(merged.work, [state.experts().weights() for state in (self, *parts)])
        return merged

    def require_sane(self, algorithm: Any) -> None:
        """Refuse a state from a file that rounds could not go on from."""
        self.experts().require_sane()
        for point, member in zip(self.points(), algorithm.members, strict=True):
            require_sane(point, member)

    def from_format_1(self) -> None:
        """Files of format 1 had the arrays of pools in another order."""
        for point in self.points():
            if hasattr(point, "from_format_1"):
                point.from_format_1()


@parameter
class CommitteeRule:
    """One round of a committee, compiled for its members."""

    loss: Any
    tree: Any

    def learn(self, point: Any, row: Any, y: Any, weight: Any) -> Any:
        """The prediction, and whether it was learnt; a member that refuses the example leaves its own state alone."""
        m, p = point.memory, point.dot(row)
        if weight == 0.0:
            return p, math.isfinite(p)
        slope, cost = self.loss.slope(p, y), weight * self.loss.value(p, y)
        if not (math.isfinite(p + slope + weight * weight) and abs(cost) <= LARGEST_TERM) or not row.finite():
            return p, False
        costs, predictions = point.members[COST], point.scratch[PREDICTION]
        for k in range(costs.size):
            costs[k] = weight * self.loss.value(predictions[k], y)
            if not math.isfinite(costs[k]):
                costs[k] = cost
        if not self.tree.learn_all(point.tree, row, y, weight):  # every member refuses it
            return p, False
        m[T] += 1.0
        m[RESIDUAL] = point.tree.residual()
        point.experts().charge(cost, weight, m[T], point.scratch, point.work)
        return p, True


@register("part", "joint")
@parameter
class Joint(Domain):
    """Where a mixture of members from different sets lies: ℝ^d to the certificate, as wide as the sets allow."""

    sets: Any

    @property
    def grows(self) -> bool:  # type: ignore[override]
        return all(domain.grows for domain in self.sets)

    @property
    def dimension(self) -> int | None:
        return next((domain.dimension for domain in self.sets if domain.dimension is not None), None)

    def project_with_residual(self, w: Any) -> tuple[Any, float]:
        return self.vector(w).copy(), 0.0

    def start(self, d: int) -> Any:
        """The mean of the sets' own."""
        return sum(domain.start(d) for domain in self.sets) / len(self.sets)


@register("algorithm", "committee")
@parameter
class Committee(Algorithm):
    """The algorithm behind `Mixture(members=…)`: refuses what cannot be mixed, makes the rules and the points."""

    name: Any
    members: Any
    """The members' algorithms."""
    share: Any = None
    """The rule of fixed share, "1/t", or None."""

    mixes = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        object.__setattr__(self, "share", require_share("Mixture", self.share))
        if not 2 <= len(self.members) <= MOST:
            raise SettingsError(f"Mixture: members must be 2 to {MOST} learners, not {len(self.members)}.")
        for k, member in enumerate(self.members):
            if member.loss != self.loss:
                raise SettingsError(
                    f"Mixture: all members must have one loss, but members[{k}] learns with {member.loss!r} and "
                    f"members[0] with {self.loss!r}: build them with the same (specs get the mixture's loss=…)."
                )
        fixed = {member.domain.dimension for member in self.members} - {None}
        if len(fixed) > 1:
            raise SettingsError(
                f"Mixture: its members' domains have {' and '.join(map(str, sorted(fixed)))} coordinates."
            )

    @property
    def loss(self) -> Any:
        return self.members[0].loss

    @property
    def domain(self) -> Any:
        """The members' own if it is the same; the mean of their points lies in it too."""
        sets = tuple(member.domain for member in self.members)
        return sets[0] if all(domain == sets[0] for domain in sets) else Joint(sets)

    def member_names(self) -> list[str]:
        same = f"loss={self.loss!r}, "  # which all of them share
        return [f"{member.name}({member.describe().replace(same, '', 1)})" for member in self.members]

    def bytes_per_feature(self, point: Any) -> int:
        arrays = [array for member in point.points() for array in state_of(member, point.size()).values()]
        return sum(array.nbytes // len(array) for array in arrays if len(array) == point.size())

    def describe(self) -> str:
        return f"members=[{', '.join(f'{member.name}({member.describe()})' for member in self.members)}]"

    def explain(self, size: int) -> str:
        return f"no step of its own: {len(self.members)} members mixed by {words_for(self.loss, self.share)}"

    @property
    def wide(self) -> int | None:
        """From how many features on only those that occur get a place; None if a member needs every coordinate."""
        widths = [member.wide for member in self.members]
        return None if None in widths else min(widths)

    @property
    def bytes_per_coordinate(self) -> int:
        return sum(member.bytes_per_coordinate for member in self.members)

    def start(self, size: int, first: Any = None, room: int | None = None) -> tuple[CommitteeRule, CommitteePoint]:
        begun, K = [member.start(size, first, room) for member in self.members], len(self.members)
        chances = self.loss.log_odds
        members = np.zeros((len(MEMBERS), K))
        members[SHARES] = 1.0 / K
        seats = CommitteePoint(
            tree=tree(Leaf, Branch, [point for _, point in begun]),
            members=members,
            kinds=np.ones(1),
            memory=open_memory(MIXING_MEMORY, chances),
            scratch=np.zeros((len(SCRATCH), K)),
            work=np.zeros((len(MIXING), 1)),
            room=np.zeros((len(MEMBERS), K)),
            reach=self.loss.reach if chances else math.inf,
            limit=_limit(self.loss),
            way=way_of(self.loss, self.share),
        )
        return CommitteeRule(self.loss, tree(LeafRule, BranchRule, [rule for rule, _ in begun])), seats


def _limit(loss: Any) -> float:
    """A power of two: at predictions up to ± this the loss is a number."""
    limit, labels = HIGHEST, [y for y in (-1.0, 0.0, 1.0) if loss.accepts(y)]
    while limit > 1.0 and not all(_finite(loss, p, y) for p in (-limit, limit) for y in labels):
        limit /= 2.0
    return limit


def _finite(loss: Any, p: float, y: float) -> bool:
    """Whether a loss and its slope are finite there."""
    try:
        return math.isfinite(loss.value(p, y)) and math.isfinite(loss.slope(p, y))
    except ArithmeticError:  # what compiled code takes for infinite
        return False


def committee(members: Any, loss: Any, share: Any, intercept: bool, d: int | None) -> Learner:
    """The learner that mixes `members`; see `rue.Mixture`."""
    if isinstance(members, str | Learner) or not isinstance(members, Sequence):
        raise SettingsError(f"Mixture: members must be a list of learners or their specs, not {shown(members)}.")
    learners = [_member(member, loss, intercept) for member in members]
    for k, member in enumerate(learners):
        if not isinstance(member, Learner):
            raise SettingsError(f"Mixture: members[{k}] must be a learner or a spec, not {shown(member)}.")
        if member.t:
            raise SettingsError(
                f"Mixture: members[{k}] has learnt {member.t} examples: give one that begins with the rest."
            )
        if member.intercept != learners[0].intercept or (not intercept and member.intercept):
            raise SettingsError(f"Mixture: members[{k}] and the mixture differ in intercept=…: build all alike.")
    algorithm = Committee("Mixture", tuple(member.algorithm for member in learners), share)
    if loss != "logistic" and make("loss", loss) != algorithm.loss:
        raise SettingsError(f"Mixture: its members learn with {algorithm.loss!r}, so its loss cannot be {shown(loss)}.")
    widths = {member.d for member in learners if member._point is not None} | ({d} if d is not None else set())
    if len(widths) > 1:
        raise SettingsError(f"Mixture: d= is {' and '.join(map(str, sorted(widths)))} in its members: build all alike.")
    return Learner(algorithm, intercept=learners[0].intercept, d=next(iter(widths), None))


def _member(spec: Any, loss: Any, intercept: bool) -> Any:
    """The learner that a spec stands for, with the mixture's loss if it takes one."""
    if not isinstance(spec, str):
        return spec
    factory = registered("learner").get(spec.partition(":")[0].strip())
    takes = inspect.signature(factory).parameters if factory is not None else ()
    return make("learner", spec, **{"loss": loss} if "loss" in takes else {}, intercept=intercept)
