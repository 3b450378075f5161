"""The point w_t of a learner, stored so that a step costs as little as the domain allows.

`Scaled` stores w = c + s·v, so shrinking and the projection onto a ball are a change of s: O(nnz). `Coordinate` clips
the coordinates a step touches: O(nnz). `Dense` hands the whole point to the domain's projection: O(d). Each also has
the average of the points played, updated lazily whenever the step is O(nnz). `memory` holds the numbers that change
with every round.

Every class of points here has a `layout` (see `rue.layout`), which says what its arrays are, and
`merged(algorithm, parts)`: the point for several parts of a stream together, where the point itself is the one that all
parts went on from. A class without a layout is saved by a default one (`declarations_of`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import noinline, values
from rue.errors import DataError
from rue.layout import Array, Layout, Number, Numbers
from rue.memory import aligned, aligned_zeros

__all__ = [
    "GRADIENTS",
    "LARGEST",
    "MASS",
    "MEMORY",
    "PENALTY",
    "RESIDUAL",
    "SPREAD",
    "SQUARE",
    "TOTAL",
    "Coordinate",
    "Dense",
    "Scaled",
    "T",
    "declarations_of",
    "gathered",
    "laid_out",
    "own_features_of",
    "owned",
    "require_sane",
    "state_of",
]

MEMORY = Numbers(
    Number("rounds", "How many examples were learnt, T.", least=0.0),
    Number("mass", "Σα of the rounds, where α is the weight of an example, or that times t (`steps.Seen`)."),
    Number("largest", "The largest measure of an example, as the step takes it (`steps.Seen`).", merge="maximum"),
    Number("gradients", "Σ‖g_t‖² of the gradients (`steps.Seen`)."),
    Number("scale", "s of a scaled point.", merge="derived"),
    Number("square", "‖w − c‖² of a scaled point.", merge="derived"),
    Number("total", "Σα of the average of the points played."),
    Number("spread", "q = Σα·s of a scaled point's average.", merge="derived"),
    Number("penalty", "Σ weight·(λ/2)‖w_t‖² of the points played."),
    Number("residual", "The worst distance to the domain that a projection has left.", merge="maximum"),
)
"""The numbers that every learner has, whether it uses them or not."""
T, MASS, LARGEST, GRADIENTS, SCALE = MEMORY.indices("rounds", "mass", "largest", "gradients", "scale")
SQUARE, TOTAL, SPREAD, PENALTY, RESIDUAL = MEMORY.indices("square", "total", "spread", "penalty", "residual")

_0 = np.uint64(0)


def _members(point: Any) -> list[Any]:
    """The points of a mixture's members; none for other points."""
    return point.points() if hasattr(point, "points") else []


def _stages(point: Any) -> list[Any]:
    """The points inside a point that have coordinates of their own, not those of the data; none for most."""
    return point.stages() if hasattr(point, "stages") else []


def _own(point: Any) -> list[Array]:
    """The declarations of the arrays that are a point's state, without its members'."""
    layout = getattr(point, "layout", None)
    if layout is None:
        arrays = [name for name, field in point._asdict().items() if isinstance(field, np.ndarray)]
        layout = [Array(name, name, (MEMORY,) if name == "memory" else ("coordinate",)) for name in arrays]
    return [array for array in layout if array.saved]


def declarations_of(point: Any) -> dict[str, Array]:
    """The declarations of the arrays that are a point's state; those of member or stage k are called `k.…`.

    A point of a class without a layout has `memory`, and a row for each coordinate in every other array.
    """
    declared = {array.name: array for array in _own(point)}
    members = _members(point)
    for k, member in enumerate(members):
        declared |= {f"{k}.{name}": array for name, array in declarations_of(member).items()}
    for k, stage in enumerate(_stages(point), len(members)):
        declared |= {f"{k}.{name}": array.of_own_coordinates() for name, array in declarations_of(stage).items()}
    return declared


def state_of(point: Any, coordinates: int | None) -> dict[str, Any]:
    """The arrays that are a point's state, by their names in `declarations_of`, for so many coordinates (None: all)."""
    point = laid_out(point)
    state = {array.name: getattr(point, array.name) for array in _own(point)}
    state |= {array.name: state[array.name][:coordinates] for array in _own(point) if array.of_coordinates}
    members = _members(point)
    for k, member in enumerate(members):
        state |= {f"{k}.{name}": array for name, array in state_of(member, coordinates).items()}
    for k, stage in enumerate(_stages(point), len(members)):
        state |= {f"{k}.{name}": array for name, array in state_of(stage, None).items()}
    return state


def own_features_of(point: Any) -> dict[str, tuple[Any, int]]:
    """Of arrays that have rows for some coordinates of a stage's own: which these are, and how many there may be."""
    found: dict[str, tuple[Any, int]] = {}
    for k, stage in enumerate(_stages(point), len(_members(point))):
        if hasattr(stage, "own_features"):
            names = [array.name for array in _own(stage) if array.of_coordinates]
            found |= {f"{k}.{name}": (stage.own_features(), stage.size()) for name in names}
    return found


def laid_out(point: Any) -> Any:
    """A point whose arrays have a row for each coordinate, in their order, as a file has them."""
    return point.laid_out() if hasattr(point, "laid_out") else point


def gathered(point: Any) -> Any:
    """A point that was `laid_out`, as rounds need it."""
    return point.gathered() if hasattr(point, "gathered") else point


def require_sane(point: Any, algorithm: Any) -> None:
    """Refuse a state from a file that rounds could not go on from: what they divide by, take the root of, count with.

    A class of points says what that is in its method of this name.
    """
    rounds = float(point.memory[T])
    if not 0.0 <= rounds <= 2.0**53 or rounds != int(rounds):
        raise DataError(f"{str(rounds)[:40]} stands where a number of things belongs")
    if hasattr(point, "require_sane"):
        point.require_sane(algorithm)


def _require_steps(m: Any, algorithm: Any) -> None:
    """Refuse sums of steps that are negative; with a regulariser rounding may make Σ‖g‖² so."""
    never = [MASS, LARGEST, SQUARE, TOTAL] + ([GRADIENTS] if algorithm.regulariser == 0.0 else [])
    if not (m[never] >= 0.0).all():
        raise DataError("the sums of its steps are impossible")


def owned(value: Any) -> Any:
    """A tuple of arrays, however deep, that kernels may write to: read-only or memory-mapped arrays are copied."""
    if isinstance(value, np.ndarray):
        if type(value) is np.ndarray and value.flags.writeable and aligned(value):
            return value
        copied = aligned_zeros(value.shape, value.dtype)
        copied[...] = value
        return copied
    if isinstance(value, tuple):
        fields = map(owned, value)
        return type(value)(*fields) if hasattr(value, "_fields") else tuple(fields)
    return value


SCALED = Layout(
    Array("v", "The direction of w − c, of length ‖w − c‖/s.", ("coordinate",), merge="averaged"),
    Array("r", "r = Σα(w_t − c) − q·v, for the average.", ("coordinate",), merge="added", optional=True),
    Array("c", "The centre of the ball; empty where it is 0.", ("coordinate",), saved=False, optional=True),
    Array("memory", "The numbers.", (MEMORY,)),
)


@values
class Scaled(NamedTuple):
    """w = c + s·v on ℝ^d or on a ball; the average is c + (q·v + r)/Σα with q = Σα·s.

    When v moves by δ, r moves by −q·δ, which keeps q·v + r what it was. As s shrinks, q·v and r grow large against
    their sum, so they are added up long before digits are lost; v is multiplied out before s overflows or underflows.
    """

    v: Any
    r: Any
    c: Any
    memory: Any
    radius: Any

    @property
    def layout(self) -> Layout:
        return SCALED

    def size(self) -> Any:
        return self.v.size

    def dot(self, row: Any) -> Any:
        return self.dot_and_square(row)[0]

    def dot_and_square(self, row: Any) -> Any:
        """⟨w, x⟩ and ‖x‖²."""
        p, square = row.dot_and_square(self.v)
        p *= self.memory[SCALE]
        return (p + row.dot(self.c) if self.c.size > 0 else p), square

    def average_dot(self, row: Any) -> Any:
        """⟨w̄, x⟩ = (q⟨v, x⟩ + ⟨r, x⟩)/Σα + ⟨c, x⟩."""
        m = self.memory
        p = (m[SPREAD] * row.dot(self.v) + row.dot(self.r)) / m[TOTAL]
        return p + row.dot(self.c) if self.c.size > 0 else p

    def norm_square(self) -> Any:
        """‖w‖²; only asked for where c = 0."""
        return self.memory[SQUARE]

    def play(self, alpha: Any) -> None:
        """Count the point as it stands into the average."""
        self.memory[SPREAD] += alpha * self.memory[SCALE]
        self.memory[TOTAL] += alpha

    def move(self, domain: Any, row: Any, shrink: Any, a: Any, p: Any, square: Any, alpha: Any) -> bool:
        """Play w, then w ← Π(shrink·w + a·x), given p = ⟨w, x⟩ and ‖x‖²; False, and no change, if not finite."""
        m, v, averaging = self.memory, self.v, self.r.size > 0
        inner = p - row.dot(self.c) if self.c.size > 0 else p
        # ‖shrink·w + a·x‖² from ‖w‖², ⟨w, x⟩ and ‖x‖²: O(nnz), where the norm itself would take O(d).
        total = shrink * shrink * m[SQUARE] + 2.0 * shrink * a * inner + a * (a * square)
        if not math.isfinite(total):
            return False
        if averaging:
            self.play(alpha)
        # With the step 1/(λt) the first round has shrink = 1 − ηλ = 0, or what rounding leaves of it: s = 0 could not
        # be divided by.
        if abs(shrink) < 1e-15:
            if m[T] > 0.0:
                self.forget()
            m[SCALE], total = 1.0, a * (a * square)
        else:
            m[SCALE] *= shrink
        b = a / m[SCALE]
        if averaging:
            # v moves, and with it q·v: r takes the opposite, so that r + q·v, the sum of the points played, stays.
            row.add(-m[SPREAD] * b, self.r)
        row.add(b, v)
        # The projection onto the ball changes s alone.
        if total > self.radius * self.radius:
            m[SCALE] *= self.radius / math.sqrt(total)
            total = self.radius * self.radius
        m[SQUARE] = max(0.0, total)
        s = abs(m[SCALE])
        # Before s leaves the range of doubles, and before q·v and r grow so much larger than their sum that it loses
        # digits.
        if s < 1e-100 or s > 1e100 or (averaging and abs(m[SPREAD]) > 1024.0 * s * m[TOTAL]):
            self.multiply_out()
        return True

    @noinline
    def multiply_out(self) -> None:
        """s ← 1 and q ← 0, with the point and the average unchanged."""
        m, v = self.memory, self.v
        self.settle()
        for j in range(v.size):
            v[j] *= m[SCALE]
        m[SCALE] = 1.0

    @noinline
    def forget(self) -> None:
        """w ← c (c = 0 here), with the average unchanged."""
        self.settle()
        for j in range(self.v.size):
            self.v[j] = 0.0

    @noinline
    def settle(self) -> None:
        """r ← r + q·v and q ← 0: the average stands in r alone."""
        q, r = self.memory[SPREAD], self.r
        for j in range(r.size):
            r[j] += q * self.v[j]
        self.memory[SPREAD] = 0.0

    def current(self, domain: Any) -> Any:
        """w = s·v + c."""
        w = self.memory[SCALE] * self.v
        return w + self.c if self.c.size else w

    def averaged(self, domain: Any) -> Any:
        """w̄ = (q·v + r)/Σα + c."""
        mean = (self.memory[SPREAD] * self.v + self.r) / self.memory[TOTAL]
        return mean + self.c if self.c.size else mean

    def grown(self, domain: Any, size: int) -> Scaled:
        return self._replace(**self.layout.grown(self, "coordinate", size))

    def require_sane(self, algorithm: Any) -> None:
        """Refuse a stored scale that nothing could be divided by, and impossible steps."""
        if not 0.0 < abs(self.memory[SCALE]) < math.inf:
            raise DataError("the scale of its point is impossible")
        _require_steps(self.memory, algorithm)

    def merged(self, algorithm: Any, parts: Sequence[Scaled]) -> Scaled:
        """The mean of the parts' points, which lies in the ball as they do; sums are added since the base."""
        states = [
            {
                "v": part.memory[SCALE] * part.v,
                "r": part.memory[SPREAD] * part.v + part.r if part.r.size else part.r,
                "memory": part.memory,
            }
            for part in (self, *parts)
        ]
        state = self.layout.merged(states[0], states[1:])
        m, v = state["memory"], state["v"]
        m[SCALE], m[SPREAD], m[SQUARE] = 1.0, 0.0, min(float(v @ v), self.radius * self.radius)
        return self._replace(**state)


COORDINATE = Layout(
    Array("w", "The point.", ("coordinate",), merge="averaged"),
    Array("r", "What Σα·w lacks of the average's Σα·w_t.", ("coordinate",), merge="added", optional=True),
    Array("memory", "The numbers.", (MEMORY,)),
)


@values
class Coordinate(NamedTuple):
    """w on a set that is a product of intervals; the average is w + r/Σα, and r moves when a coordinate does."""

    w: Any
    r: Any
    memory: Any

    @property
    def layout(self) -> Layout:
        return COORDINATE

    def size(self) -> Any:
        return self.w.size

    def dot(self, row: Any) -> Any:
        return row.dot(self.w)

    def dot_and_square(self, row: Any) -> Any:
        return row.dot_and_square(self.w)

    def average_dot(self, row: Any) -> Any:
        """⟨w̄, x⟩ = ⟨w, x⟩ + ⟨r, x⟩/Σα."""
        return row.dot(self.w) + row.dot(self.r) / self.memory[TOTAL]

    def norm_square(self) -> Any:
        """A dummy: this class is never used with a regulariser."""
        return 0.0

    def play(self, alpha: Any) -> None:
        """Count the point into the average: the sum of the points is Σα·w + r, so that only Σα grows."""
        self.memory[TOTAL] += alpha

    def move(self, domain: Any, row: Any, shrink: Any, a: Any, p: Any, square: Any, alpha: Any) -> bool:
        """Play w, then w_j ← clip(w_j + a·x_j) in the coordinates of the row; `shrink` and `p` are of no use here."""
        if not math.isfinite(a * (a * square)):
            return False
        self.play(alpha)
        if row.shift > _0:
            self.nudge(domain, _0, a)
        for k in range(row.lo, row.hi):
            self.nudge(domain, row.place(k), a * row.at(k))
        return True

    def nudge(self, domain: Any, j: Any, amount: Any) -> None:
        """w_j ← w_j + amount, clipped."""
        old = self.w[j]
        self.w[j] = domain.clip(j, old + amount)
        if self.r.size > 0:
            self.r[j] -= self.memory[TOTAL] * (self.w[j] - old)

    def current(self, domain: Any) -> Any:
        return self.w.copy()

    def averaged(self, domain: Any) -> Any:
        """w̄ = w + r/Σα."""
        return self.w + self.r / self.memory[TOTAL]

    def grown(self, domain: Any, size: int) -> Coordinate:
        return self._replace(**self.layout.grown(self, "coordinate", size))

    def require_sane(self, algorithm: Any) -> None:
        _require_steps(self.memory, algorithm)

    def merged(self, algorithm: Any, parts: Sequence[Coordinate]) -> Coordinate:
        """The mean of the parts' points, clipped where it is rounded out of the set; sums are added since the base."""
        states = [
            {**part._asdict(), "r": part.r + part.memory[TOTAL] * part.w if part.r.size else part.r}
            for part in (self, *parts)
        ]
        state = self.layout.merged(states[0], states[1:])
        state["w"] = algorithm.domain.project(state["w"])
        if self.r.size:
            state["r"] -= state["memory"][TOTAL] * state["w"]
        return self._replace(**state)


DENSE = Layout(
    Array("w", "The point.", ("coordinate",), merge="averaged"),
    Array("r", "The average's Σα·w_t.", ("coordinate",), merge="added", optional=True),
    Array("memory", "The numbers.", (MEMORY,)),
    Array("scratch", "Working memory of the projection.", ("row", "coordinate"), saved=False),
)


@values
class Dense(NamedTuple):
    """w on any set, projected as a whole in every round that moves it; r is Σα·w."""

    w: Any
    r: Any
    memory: Any
    scratch: Any

    @property
    def layout(self) -> Layout:
        return DENSE

    def size(self) -> Any:
        return self.w.size

    def dot(self, row: Any) -> Any:
        return row.dot(self.w)

    def dot_and_square(self, row: Any) -> Any:
        return row.dot_and_square(self.w)

    def average_dot(self, row: Any) -> Any:
        """⟨w̄, x⟩ = ⟨r, x⟩/Σα."""
        return row.dot(self.r) / self.memory[TOTAL]

    def norm_square(self) -> Any:
        """‖w‖²."""
        total = 0.0
        for j in range(self.w.size):
            total += self.w[j] * self.w[j]
        return total

    def play(self, alpha: Any) -> None:
        """Count the point as it stands into the average: r ← r + α·w."""
        self.memory[TOTAL] += alpha
        for j in range(self.r.size):
            self.r[j] += alpha * self.w[j]

    def move(self, domain: Any, row: Any, shrink: Any, a: Any, p: Any, square: Any, alpha: Any) -> bool:
        """Play w, then w ← Π(shrink·w + a·x); False, and no change, if the step is not finite."""
        if not math.isfinite(a * (a * square)):
            return False
        self.play(alpha)
        if shrink != 1.0:
            for j in range(self.w.size):
                self.w[j] *= shrink
        row.add(a, self.w)
        # The worst residual of all rounds: what B3 and its like must allow for where a projection is not exact.
        self.memory[RESIDUAL] = max(self.memory[RESIDUAL], domain.onto(self.w, self.scratch))
        return True

    def current(self, domain: Any) -> Any:
        return self.w.copy()

    def averaged(self, domain: Any) -> Any:
        """w̄ = r/Σα."""
        return self.r / self.memory[TOTAL]

    def grown(self, domain: Any, size: int) -> Dense:
        return self._replace(**self.layout.grown(self, "coordinate", size))

    def require_sane(self, algorithm: Any) -> None:
        _require_steps(self.memory, algorithm)

    def merged(self, algorithm: Any, parts: Sequence[Dense]) -> Dense:
        """The mean of the parts' points, projected again because it is rounded; sums are added since the base."""
        state = self.layout.merged(self, parts)
        state["w"], residual = algorithm.domain.project_with_residual(state["w"])
        state["memory"][RESIDUAL] = max(state["memory"][RESIDUAL], residual)
        return self._replace(**state)
