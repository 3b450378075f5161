"""Follow the leader (A7): play the best point so far, where it has a closed form."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import parameter, values
from rue.domains import Domain
from rue.errors import DataError, SettingsError, shown
from rue.layout import Array, Layout, Number, Numbers
from rue.learners.algorithm import Algorithm
from rue.learners.gradient import require_loss
from rue.learners.learner import Learner
from rue.learners.points import MEMORY, T
from rue.ledger import overflows
from rue.losses.convexity import require_set
from rue.norms import LEAST_PRODUCT, LEAST_SQUARE
from rue.registry import make, register

__all__ = ["FollowTheLeader", "Leader"]

SUMS = Numbers(
    Number("rounds", "How many examples were learnt, T.", least=0.0),
    Number("xx", "Σ weight·x², for square loss.", least=0.0),
    Number("xy", "Σ weight·x·y, for square loss."),
    *list(MEMORY)[3:],
)
"""As long as every learner's `MEMORY`, because all learners are asked for their penalty and the like."""
XX, XY = SUMS.indices("xx", "xy")
_0 = np.uint64(0)


FOLLOWED = Layout(
    Array("w", "The leader.", ("coordinate",)),
    Array("theta", "θ = Σ g_t x_t, for linear losses.", ("coordinate",), merge="added", optional=True),
    Array("memory", "The numbers.", (SUMS,)),
    Array("scratch", "Working memory of the projection.", ("row", "coordinate"), saved=False),
)


@values
class Followed(NamedTuple):
    """The leader w and what decides it: θ = Σ g_t x_t for linear losses, Σx² and Σxy in memory for squares."""

    w: Any
    theta: Any
    memory: Any
    scratch: Any

    @property
    def layout(self) -> Layout:
        return FOLLOWED

    def size(self) -> Any:
        return self.w.size

    def dot(self, row: Any) -> Any:
        return row.dot(self.w)

    def average_dot(self, row: Any) -> Any:
        """Not a number: the leader has no average."""
        return math.nan

    def current(self, domain: Any) -> Any:
        return self.w.copy()

    def averaged(self, domain: Any) -> Any:
        return self.w.copy()

    def grown(self, domain: Any, size: int) -> Followed:
        raise DataError("FollowTheLeader: the number of features is fixed by the first example, or by d=.")

    def merged(self, algorithm: Any, parts: Sequence[Followed]) -> Followed:
        """The leader of all the examples: the sums that decide it are added since the base, so it is exact."""
        merged = self._replace(
            w=self.w.copy(), **{k: v for k, v in self.layout.merged(self, parts).items() if k != "w"}
        )
        algorithm.lead(merged)
        return merged


@parameter
class LinearLeaderRule:
    """w_{t+1} = argmin over K of ⟨Σ g_i x_i, u⟩; w_1 while that sum is 0."""

    loss: Any
    domain: Any

    def learn(self, point: Any, row: Any, y: Any, weight: Any) -> Any:
        """The prediction, and whether all was finite; if not, or without a weight, nothing has changed."""
        p = point.dot(row)
        if weight == 0.0:
            return p, math.isfinite(p)
        slope = self.loss.slope(p, y)
        if not math.isfinite(p + slope + slope * p) or not math.isfinite(
            weight * slope * (weight * slope * row.square())
        ):
            return p, False
        if overflows(self.loss, p, y, weight, slope) or 0.0 < abs(weight * slope) * row.largest() < LEAST_PRODUCT:
            return p, False
        row.add(weight * slope, point.theta)
        self.domain.lowest(point.theta, point.w)
        point.memory[T] += 1.0
        return p, True


@parameter
class SquareLeaderRule:
    """One coordinate: w_{t+1} = Σxy/Σx², the mean of the labels when x = 1, projected onto K."""

    loss: Any
    domain: Any

    def learn(self, point: Any, row: Any, y: Any, weight: Any) -> Any:
        """The prediction, and whether all was finite; if not, or without a weight, nothing has changed."""
        m = point.memory
        p = point.dot(row)
        if weight == 0.0:
            return p, math.isfinite(p)
        slope = self.loss.slope(p, y)
        x = 1.0  # the intercept, or else the one feature
        if row.shift == _0:
            x = row.at(row.lo) if row.lo < row.hi else 0.0
        xx, xy = m[XX] + weight * x * x, m[XY] + weight * x * y
        if not math.isfinite(slope + xx + xy) or overflows(self.loss, p, y, weight, slope):
            return p, False
        if x != 0.0 and xx < LEAST_SQUARE:  # Σx² has lost digits, or is 0
            return p, False
        m[T], m[XX], m[XY] = m[T] + 1.0, xx, xy
        if xx > 0.0:
            point.w[0] = xy / xx
            self.domain.onto(point.w, point.scratch)
        return p, True


@register("algorithm", "leader")
@parameter
class Leader(Algorithm):
    """The algorithm behind `FollowTheLeader`: knows where the leader has a closed form and refuses elsewhere."""

    name: Any
    loss: Any
    domain: Any
    intercept: bool

    family = "leader"

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            raise SettingsError(f"FollowTheLeader: domain must be a rue.Domain or a spec, not {shown(self.domain)}.")
        require_loss(self.loss, "FollowTheLeader")
        require_set(self.domain)
        if self.loss.linear:
            if not self.domain.declares("lowest") or not self.domain.bounded:
                raise SettingsError(
                    "FollowTheLeader: linear losses have a leader in closed form on a ball, a bounded box, the simplex "
                    f"and the ℓ1 ball, not on {self.domain!r}."
                )
        elif not self.loss.quadratic:
            raise SettingsError(
                f"FollowTheLeader: {self.loss!r} has no leader in closed form; square loss in one coordinate and "
                "linear loss have. OGD learns with any convex loss."
            )

    def without_intercept(self) -> Leader:
        return dataclasses.replace(self, intercept=False)

    def explain(self, size: int) -> str:
        return "no step: it plays the best point for the rounds so far (A7)"

    @property
    def bytes_per_coordinate(self) -> int:
        return 8 * (2 + int(self.domain.scratch_rows))

    def start(self, size: int, first: Any = None, room: int | None = None) -> tuple[Any, Followed]:
        self.domain.require(size)
        linear = self.loss.linear
        if not linear and size != 1:
            counted = " (the intercept counts; intercept=False leaves it out)" if self.intercept else ""
            raise SettingsError(
                f"FollowTheLeader: square loss has a leader in closed form in one coordinate, and here are {size}"
                f"{counted}. OGD learns in any number."
            )
        scratch = np.zeros((self.domain.scratch_rows, size))
        w = (first or self.domain.start)(size)
        point = Followed(w, np.zeros(size if linear else 0), np.zeros(len(SUMS)), scratch)
        return (LinearLeaderRule if linear else SquareLeaderRule)(self.loss, self.domain), point

    def lead(self, point: Followed) -> None:
        """Move a point to the leader of the rounds whose sums it has."""
        if self.loss.linear:
            self.domain.lowest(point.theta, point.w)
        elif point.memory[XX] > 0.0:
            point.w[0] = point.memory[XY] / point.memory[XX]
            self.domain.onto(point.w, point.scratch)


@register("learner", "leader")
def FollowTheLeader(
    loss: Any = "square", domain: Any = "reals", *, intercept: bool = True, d: int | None = None
) -> Learner:
    """Follow the leader (docs/theory.md, A7): w_t = argmin over u in K of Σ_{i<t} ℓ_i(u).

    For square loss in one coordinate that is the mean of past labels, whose regret is logarithmic; for linear losses a
    corner of K, and an opponent can make it lose in every round (`rue.FlipFlop`).

    A step costs O(d): the leader can move in every coordinate at once.

    `loss` is `square`, in one coordinate, or a loss that is linear in the prediction, on a bounded `domain` K;
    `intercept` and `d` are as for `OGD`.

    >>> import numpy as np
    >>> FollowTheLeader("square", "interval:0,1").run(np.empty((3, 0)), [1.0, 0.0, 1.0])
    array([0. , 1. , 0.5])
    """
    algorithm = Leader("FollowTheLeader", make("loss", loss), make("domain", domain), intercept)
    return Learner(algorithm, intercept=intercept, d=d)
