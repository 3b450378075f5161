"""The point w_t, kept so that a step costs as little as the domain allows.

`Scaled` keeps w = c + s·v, so shrinking and the projection onto a ball are a change of s: O(nnz). `Coordinate` clips
the coordinates a step touches: O(nnz). `Dense` hands the whole point to the domain's projection: O(d). Each also keeps
the average of the points played, lazily where the step is. `memory` holds the numbers that change with every round.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import noinline, values
from rue.memory import aligned, aligned_zeros

__all__ = [
    "GRADIENTS",
    "LARGEST",
    "MASS",
    "MEMORY",
    "PENALTY",
    "RESIDUAL",
    "ROOM",
    "SPREAD",
    "SQUARE",
    "TOTAL",
    "WHOLE",
    "Coordinate",
    "Dense",
    "Scaled",
    "T",
    "of_coordinates",
    "owned",
    "padded",
    "state_of",
]

# Places in `memory`. T rounds learnt; MASS Σα of the rounds; LARGEST and GRADIENTS as in `steps.Seen`; SCALE s and
# SQUARE ‖w − c‖² of a scaled point; TOTAL Σα of the average and SPREAD Σα·s; PENALTY Σ weight·(λ/2)‖w_t‖²; RESIDUAL
# the worst a projection fell short.
T, MASS, LARGEST, GRADIENTS, SCALE, SQUARE, TOTAL, SPREAD, PENALTY, RESIDUAL = range(10)
MEMORY = 10

WHOLE = frozenset({"memory", "matrices", "members", "kinds", "seats"})
WHOLE |= {"lines", "line_sums", "centres", "inverses", "counts"}
"""Fields of points that are no row for each coordinate, but part of the state."""
ROOM = frozenset({"c", "scratch", "work", "room", "notes", "spots", "scores", "chances", "mixed", "along", "given"})
"""Fields that are no state: the centre, and room to work in."""

_0 = np.uint64(0)


def state_of(point: Any, coordinates: int) -> dict[str, Any]:
    """The arrays that are a point's state, without room that is not in use; those of member k are called `k.…`."""
    if hasattr(point, "laid_out"):
        point = point.laid_out()
    named = [(name, field) for name, field in point._asdict().items() if isinstance(field, np.ndarray)]
    found = {name: field if name in WHOLE else field[:coordinates] for name, field in named if name not in ROOM}
    for k, member in enumerate(point.points() if hasattr(point, "points") else ()):
        found |= {f"{k}.{name}": array for name, array in state_of(member, coordinates).items()}
    return found


def of_coordinates(name: str) -> bool:
    """Whether an array that `state_of` names so has a row for each coordinate."""
    return name.rpartition(".")[2] not in WHOLE


def owned(value: Any) -> Any:
    """A tuple of arrays, however deep, that kernels may write to: what a file lends, mapped into memory, is copied."""
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


def padded(array: Any, size: int) -> Any:
    """A copy of `array` with zeros up to `size`; an array that is switched off (empty) stays empty."""
    if array.shape[0] == 0:
        return array
    grown = aligned_zeros((size, *array.shape[1:]), array.dtype)
    grown[: array.shape[0]] = array
    return grown


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
        total = shrink * shrink * m[SQUARE] + 2.0 * shrink * a * inner + a * (a * square)
        if not math.isfinite(total):
            return False
        if averaging:
            self.play(alpha)
        if abs(shrink) < 1e-15:
            if m[T] > 0.0:
                self.forget()
            m[SCALE], total = 1.0, a * (a * square)
        else:
            m[SCALE] *= shrink
        b = a / m[SCALE]
        if averaging:
            row.add(-m[SPREAD] * b, self.r)
        row.add(b, v)
        if total > self.radius * self.radius:
            m[SCALE] *= self.radius / math.sqrt(total)
            total = self.radius * self.radius
        m[SQUARE] = max(0.0, total)
        s = abs(m[SCALE])
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
        """w ← 0, with the average unchanged."""
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
        w = self.memory[SCALE] * self.v
        return w + self.c if self.c.size else w

    def averaged(self, domain: Any) -> Any:
        mean = (self.memory[SPREAD] * self.v + self.r) / self.memory[TOTAL]
        return mean + self.c if self.c.size else mean

    def grown(self, domain: Any, size: int) -> Scaled:
        return Scaled(padded(self.v, size), padded(self.r, size), self.c, self.memory, self.radius)


@values
class Coordinate(NamedTuple):
    """w on a set that is a product of intervals; the average is w + r/Σα, and r moves when a coordinate does."""

    w: Any
    r: Any
    memory: Any

    def size(self) -> Any:
        return self.w.size

    def dot(self, row: Any) -> Any:
        return row.dot(self.w)

    def dot_and_square(self, row: Any) -> Any:
        return row.dot_and_square(self.w)

    def average_dot(self, row: Any) -> Any:
        return row.dot(self.w) + row.dot(self.r) / self.memory[TOTAL]

    def norm_square(self) -> Any:
        return 0.0

    def play(self, alpha: Any) -> None:
        self.memory[TOTAL] += alpha

    def move(self, domain: Any, row: Any, shrink: Any, a: Any, p: Any, square: Any, alpha: Any) -> bool:
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
        return self.w + self.r / self.memory[TOTAL]

    def grown(self, domain: Any, size: int) -> Coordinate:
        return Coordinate(padded(self.w, size), padded(self.r, size), self.memory)


@values
class Dense(NamedTuple):
    """w on any set, projected as a whole in every round that moves it; r is Σα·w."""

    w: Any
    r: Any
    memory: Any
    scratch: Any

    def size(self) -> Any:
        return self.w.size

    def dot(self, row: Any) -> Any:
        return row.dot(self.w)

    def dot_and_square(self, row: Any) -> Any:
        return row.dot_and_square(self.w)

    def average_dot(self, row: Any) -> Any:
        return row.dot(self.r) / self.memory[TOTAL]

    def norm_square(self) -> Any:
        total = 0.0
        for j in range(self.w.size):
            total += self.w[j] * self.w[j]
        return total

    def play(self, alpha: Any) -> None:
        self.memory[TOTAL] += alpha
        for j in range(self.r.size):
            self.r[j] += alpha * self.w[j]

    def move(self, domain: Any, row: Any, shrink: Any, a: Any, p: Any, square: Any, alpha: Any) -> bool:
        if not math.isfinite(a * (a * square)):
            return False
        self.play(alpha)
        if shrink != 1.0:
            for j in range(self.w.size):
                self.w[j] *= shrink
        row.add(a, self.w)
        self.memory[RESIDUAL] = max(self.memory[RESIDUAL], domain.onto(self.w, self.scratch))
        return True

    def current(self, domain: Any) -> Any:
        return self.w.copy()

    def averaged(self, domain: Any) -> Any:
        return self.r / self.memory[TOTAL]

    def grown(self, domain: Any, size: int) -> Dense:
        scratch = np.empty((self.scratch.shape[0], size))
        return Dense(padded(self.w, size), padded(self.r, size), self.memory, scratch)
