"""Diagonal AdaGrad (A10): every coordinate has a step of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import parameter, require_parameter, values
from rue.domains import Domain
from rue.errors import SettingsError, shown
from rue.layout import Array, Layout, Number, Numbers
from rue.learners.algorithm import Algorithm
from rue.learners.average import Average
from rue.learners.gradient import HUGE, require_loss
from rue.learners.learner import Learner
from rue.learners.points import MEMORY, TOTAL, T
from rue.ledger import overflows
from rue.losses.convexity import require_set
from rue.losses.wrappers import unregularised
from rue.memory import aligned_zeros
from rue.norms import LEAST_SQUARE
from rue.registry import make, register
from rue.streams import numbering

__all__ = ["AdaGrad", "Diagonal"]

COLUMNS = Numbers(
    Number("weight", "The weight of the feature divided by its scale.", merge="averaged"),
    Number("sum", "Σg_j² of the gradients in this coordinate.", least=0.0),
    Number("largest", "The largest |x_j| so far.", merge="maximum", least=0.0),
    Number("rest", "What Σα·u_j lacks of the average's sum of raw weights u_j."),
)
W, SUM, LARGEST, REST = COLUMNS.indices("weight", "sum", "largest", "rest")
FARTHEST = 1e300
"""The most that the weight of a feature in its own units may be, which overflows where the feature is tiny."""
_0 = np.uint64(0)


TABLE = Layout(
    Array(
        "table",
        "Four numbers for each coordinate.",
        ("coordinate", COLUMNS),
        refusal="its sums of squares are impossible",
    ),
    Array("memory", "The numbers.", (MEMORY,)),
)


@values
class Table(NamedTuple):
    """For each coordinate, next to each other: its weight, Σg_j², the largest |x_j| so far, and the average's rest.

    Weights are of features divided by their scale; the scale is 1 unless `scaled`. The average of the raw weights is
    u_j + r_j/Σα, and r_j moves when u_j = w_j/scale_j does.
    """

    table: Any
    memory: Any
    scaled: Any
    averaging: Any

    @property
    def layout(self) -> Layout:
        return TABLE

    def size(self) -> Any:
        return self.table.shape[0]

    def scale(self, j: Any, x: Any) -> Any:
        """What feature j, now x and not 0, is divided by."""
        return max(self.table[j, LARGEST], abs(x)) if self.scaled else 1.0

    def scales(self) -> Any:
        """The largest magnitude of each coordinate's feature, if features are divided by it."""
        return self.table[:, LARGEST].copy() if self.scaled else None

    def dot(self, row: Any) -> Any:
        """⟨w, x⟩, each feature divided by its scale with the present one in it."""
        p = self.table[_0, W] if row.shift > _0 else 0.0
        for k in range(row.lo, row.hi):
            x = row.at(k)
            if x != 0.0:
                j = row.place(k)
                p += self.table[j, W] * (x / self.scale(j, x))
        return p

    def average_dot(self, row: Any) -> Any:
        """⟨w̄, x⟩."""
        p = self.average_weight(_0) if row.shift > _0 else 0.0
        for k in range(row.lo, row.hi):
            x = row.at(k)
            if x != 0.0:
                p += self.average_weight(row.place(k)) * x
        return p

    def average_weight(self, j: Any) -> Any:
        """Σα·u_j/Σα of the raw weights played."""
        return self.raw(j) + self.table[j, REST] / self.memory[TOTAL]

    def raw(self, j: Any) -> Any:
        """u_j, the weight of the feature as the data has it."""
        if not self.scaled:
            return self.table[j, W]
        largest = self.table[j, LARGEST]
        return min(FARTHEST, max(-FARTHEST, self.table[j, W] / largest)) if largest > 0.0 else 0.0

    def current(self, domain: Any) -> Any:
        """w, of features as the data has them."""
        if not self.scaled:
            return self.table[:, W].copy()
        largest = self.table[:, LARGEST]
        with np.errstate(over="ignore"):
            raw = np.divide(self.table[:, W], largest, out=np.zeros(largest.size), where=largest > 0.0)
        return np.clip(raw, -FARTHEST, FARTHEST)

    def averaged(self, domain: Any) -> Any:
        return self.current(domain) + self.table[:, REST] / self.memory[TOTAL]

    def grown(self, domain: Any, size: int) -> Table:
        return self._replace(**self.layout.grown(self, "coordinate", size))

    def merged(self, algorithm: Any, parts: Sequence[Table]) -> Table:
        """The mean of the parts' raw weights; Σg_j² is added since the base, and the scale is the largest of theirs."""
        points, largest = (self, *parts), np.max([part.table[:, LARGEST] for part in (self, *parts)], axis=0)
        states = [{"table": part.table.copy(), "memory": part.memory} for part in points]
        with np.errstate(over="ignore"):
            for part, state in zip(points, states, strict=True):
                table, own = state["table"], part.table[:, LARGEST]
                table[:, REST] += part.memory[TOTAL] * part.current(None)
                if self.scaled:  # W is in units of 1/scale
                    table[:, W] *= np.minimum(FARTHEST, np.divide(largest, own, out=np.ones(own.size), where=own > 0.0))
                    table[:, W] = np.clip(table[:, W], -FARTHEST, FARTHEST)
        merged = self._replace(**self.layout.merged(states[0], states[1:]))
        if not self.scaled:
            merged.table[:, W] = algorithm.domain.project(merged.table[:, W])
        merged.table[:, REST] -= merged.memory[TOTAL] * merged.current(None)
        return merged


@parameter
class DiagonalRule:
    """One round of diagonal AdaGrad, compiled for its loss and domain."""

    loss: Any
    domain: Any
    average: Any
    rate: float
    beta: float

    def learn(self, point: Any, row: Any, y: Any, weight: Any) -> Any:
        """The prediction, and whether all was finite; if not, or without a weight, nothing has changed."""
        m = point.memory
        p = point.dot(row)
        if weight == 0.0:
            return p, math.isfinite(p)
        slope = self.loss.slope(p, y)
        if not (abs(p) <= HUGE and abs(slope) <= HUGE and weight <= HUGE) and overflows(self.loss, p, y, weight, slope):
            return p, False
        g = weight * slope
        # Scaled features are at most 1, so that their gradients are no larger than g.
        if not math.isfinite(g * g) or (not point.scaled and not math.isfinite(g * (g * row.square()))):
            return p, False
        if self.beta == 0.0 and self.underflows(point, row, weight):
            return p, False
        t = m[T] + 1.0
        m[T] = t
        m[TOTAL] += weight * self.average.alpha(t, self.rate)
        if row.shift > _0:
            self.touch(point, _0, 1.0, g)
        for k in range(row.lo, row.hi):
            x = row.at(k)
            if x != 0.0:
                self.touch(point, row.place(k), x, g)
        return p, True

    def underflows(self, point: Any, row: Any, weight: Any) -> Any:
        """Whether a coordinate's first Σg_j², which it is divided by, would be 0 because of its feature or a weight."""
        for k in range(row.lo, row.hi):
            x, j = row.at(k), row.place(k)
            if x != 0.0 and point.table[j, SUM] < LEAST_SQUARE:
                z = weight * (x / point.scale(j, x))
                if z * z < LEAST_SQUARE:
                    return True
        return row.shift > _0 and point.table[_0, SUM] < LEAST_SQUARE and weight * weight < LEAST_SQUARE

    def touch(self, point: Any, j: Any, x: Any, g: Any) -> None:
        """Update coordinate j, whose feature x is not 0."""
        table = point.table
        played = point.raw(j)
        scale = point.scale(j, x)
        table[j, LARGEST] = max(table[j, LARGEST], abs(x))
        gradient = g * (x / scale)
        # Before the step: the current gradient is in the sum that it is divided by (A10), so that no step exceeds the
        # rate.
        table[j, SUM] += gradient * gradient
        rate = self.rate if self.rate > 0.0 else self.domain.side(j) / math.sqrt(2.0)
        below = self.beta + math.sqrt(table[j, SUM])
        if gradient != 0.0 and below > 0.0:
            table[j, W] = self.domain.clip(j, table[j, W] - rate * gradient / below)
        if point.averaging:
            # Σα·u of the points played is Σα·u + rest: when u changes, the rest takes what it did not earn. O(nnz)
            # instead of O(d).
            table[j, REST] -= point.memory[TOTAL] * (point.raw(j) - played)


@parameter
class _Free:
    """ℝ^d, coordinate by coordinate."""

    def clip(self, j: Any, value: Any) -> Any:
        """`value` itself: no coordinate has an end."""
        return value

    def side(self, j: Any) -> Any:
        """Infinite: there is no side by which a rate could be chosen."""
        return math.inf


@register("algorithm", "diagonal")
@parameter
class Diagonal(Algorithm):
    """The algorithm behind `AdaGrad`: refuses nonsense, makes the rule and the table."""

    name: Any
    loss: Any
    domain: Any
    average: Any
    rate: float
    beta: float
    scaled: bool

    family = "diagonal"

    def __post_init__(self) -> None:
        if unregularised(self.loss)[1]:
            raise SettingsError("AdaGrad: a regularised loss is not supported; use OGD for (λ/2)‖w‖².")
        require_loss(self.loss, "AdaGrad")
        if not isinstance(self.domain, Domain) or not isinstance(self.average, Average):
            raise SettingsError("AdaGrad: domain must be a rue.Domain and average a rue.Average, or specs.")
        require_parameter(self.average)
        require_set(self.domain)
        if self.average.by_steps:
            raise SettingsError(
                "AdaGrad: average='steps' weighs rounds by their step, but here each coordinate has one."
            )
        if self.domain.kind != "coordinate" and not self.domain.whole_space:
            raise SettingsError(
                f"AdaGrad projects coordinate by coordinate, which is right on reals, box and orthant, not on "
                f"{self.domain!r}: choose one of those, or AdaptiveOGD for this domain."
            )
        if self.scaled and not self.domain.whole_space:
            raise SettingsError("AdaGrad: scale='largest' changes the units of the weights: it needs domain='reals'.")
        by_sides = self.rate == 0.0 and self.domain.declares("sides") and self.domain.bounded
        if not ((0.0 < self.rate < math.inf or by_sides) and 0.0 <= self.beta < math.inf):
            raise SettingsError("AdaGrad: rate must be positive and beta ≥ 0, both finite.")

    @property
    def averaging(self) -> bool:
        return bool(self.average.keeps)

    @property
    def rescales(self) -> bool:
        return self.scaled

    def coordinate_squares(self, point: Any) -> Any:
        return point.table[:, SUM].copy()

    def describe(self) -> str:
        rate = f", rate={self.rate}" if self.rate else ""
        scale = ", scale='largest'" if self.scaled else ""
        average = f", average={self.average!r}" if self.averaging else ""
        return f"loss={self.loss!r}, domain={self.domain!r}{rate}, beta={self.beta}{scale}{average}"

    def explain(self, size: int) -> str:
        if self.rate:
            return f"step {self.rate:g}/({self.beta:g} + √Σg_j²) in each coordinate (A10)"
        return "step (D_j/√2)/√Σg_j² in each coordinate, D_j the side of the box (A10)"

    @property
    def wide(self) -> int | None:
        return numbering.WIDE if self.domain.grows and self.domain.keeps_zeros else None

    @property
    def bytes_per_coordinate(self) -> int:
        return 32

    def start(self, size: int, first: Any = None, room: int | None = None) -> tuple[DiagonalRule, Table]:
        self.domain.require(size)
        size = size if room is None else room
        free = self.domain.whole_space
        rule = DiagonalRule(self.loss, _Free() if free else self.domain, self.average, self.rate, self.beta)
        room = max(size, 1) if self.domain.grows else size
        table = aligned_zeros((room, 4))
        w = (first or self.domain.start)(room)
        if w.any():  # a wide table of zeros takes no memory before it is written to
            table[:, W] = w
        return rule, Table(table, np.zeros(len(MEMORY)), self.scaled, self.averaging)


def _number(name: str, value: Any) -> float:
    """A setting as a number."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"AdaGrad: {name} must be a number, not {shown(value)}.") from error


@register("learner", "adagrad")
def AdaGrad(
    loss: Any = "logistic",
    domain: Any = "reals",
    *,
    rate: float | None = None,
    beta: float | None = None,
    scale: str = "raw",
    average: Any = "none",
    intercept: bool = True,
    d: int | None = None,
) -> Learner:
    """Diagonal AdaGrad (docs/theory.md, A10): w_j ← w_j − rate·g_j/(β + √Σg_j²), the current gradient included.

    On a bounded box the rate is D_j/√2 and β is 0, as the theorem has it; elsewhere they are ½ and 1 unless given.
    With `scale="largest"` features are divided by their largest magnitude so far, the present one included, so that
    units do not matter; `point` then holds the weights divided by the magnitudes seen. A coordinate that rarely occurs
    takes larger steps (Duchi, Hazan, Singer 2011).

    `rate` and `beta` are r and β above. `loss`, `domain`, `average`, `intercept` and `d` are as for `OGD`; the set must
    be the whole space, a box or the orthant.

    >>> AdaGrad("square", rate=1.0, beta=0.0, intercept=False).run([[2.0], [2.0]], [3.0, 3.0])
    array([0., 2.])
    """
    if scale not in ("raw", "largest"):
        raise SettingsError(f"AdaGrad: scale must be 'raw' or 'largest', not {shown(scale)}.")
    where = make("domain", domain)
    rate = None if rate is None else _number("rate", rate)
    beta = None if beta is None else _number("beta", beta)
    by_sides = rate is None and isinstance(where, Domain) and where.declares("sides") and where.bounded
    if rate is not None and not rate > 0.0:
        raise SettingsError(f"AdaGrad: rate must be positive, not {rate}.")
    algorithm = Diagonal(
        "AdaGrad",
        make("loss", loss),
        where,
        make("average", average or "none"),
        0.0 if by_sides else (0.5 if rate is None else rate),
        (0.0 if by_sides else 1.0) if beta is None else beta,
        scale == "largest",
    )
    return Learner(algorithm, intercept=intercept, d=d)
