"""What several theorems ask of one run of gradient descent: lengths, gradients, and their common assumptions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.norms import norm
from rue.regret.bounds.statement import ROUNDING, Assumption, Bound
from rue.regret.bounds.trace import Trace

__all__ = ["Facts", "reach"]

EXACT = 1e-9
"""How far from the domain, relative to its size, a projection may end and still count as one."""


class Facts:
    """What several theorems ask of a run of gradient descent."""

    def __init__(self, trace: Trace, regret: float | None, radius: float | None) -> None:
        """`regret` and `radius` as in `bounds`: what is compared with, and which u on an unbounded domain."""
        self.trace, self.regret = trace, regret
        K, w = trace.domain, trace.start
        self.bounded = K.bounded
        self.D = float(K.diameter(trace.coordinates))
        self.size = reach(K, np.zeros(trace.coordinates))
        self.reach = reach(K, w)
        if not self.bounded and radius is not None:
            self.size, self.reach = float(radius), float(radius) + norm(w)
        self.moving = trace.gradient_squares > 0.0  # the other rounds change nothing and cost no regret
        self.etas = trace.etas[self.moving]
        self.total = float(trace.gradient_squares.sum())
        self.largest = math.sqrt(float(trace.gradient_squares.max(initial=0.0)))

    def bound(self, theorem: str, form: str, value: float, statement: str, *met: Assumption, **constants: Any) -> Bound:
        """A bound on the regret, with the assumptions that all of them share."""
        remarks = [constants.pop("remark", "")]
        if np.any(self.trace.weights != 1.0):
            remarks.append("round t's loss is weight·ℓ, and gradients are of that")
        residual = self.trace.residual
        if residual > 0.0:
            limit = EXACT * (1.0 + (self.size if math.isfinite(self.size) else 0.0))
            met = (*met, Assumption.limit("distance to K after a projection", limit, residual))
        return Bound(
            theorem,
            form,
            float(value) if math.isfinite(value) else math.inf,
            statement,
            met,
            {name: float(number) for name, number in constants.items()},
            self.regret,
            self.trace.tolerance(self.size),
            "; ".join(filter(None, remarks)),
        )

    @property
    def last(self) -> float:
        """1/η of the last round that moved; 0 if none did."""
        return 1.0 / float(self.etas[-1]) if self.etas.size and self.etas[-1] > 0.0 else 0.0

    def diameter(self) -> Assumption:
        """The domain must be bounded."""
        return Assumption("D", "a bounded domain", self.D, self.bounded)

    def comparators(self) -> Assumption:
        """The set that u is from must have an end."""
        return Assumption("‖u − w_1‖", "bounded: give a radius", self.reach, math.isfinite(self.reach))

    def fresh(self) -> Assumption:
        """The learner must have begun with this run."""
        return Assumption("rounds before this run", 0, self.trace.before, self.trace.before == 0)

    def gradients(self) -> tuple[Any, tuple[Assumption, ...]]:
        """G_t for each round, and what taking them for granted assumes."""
        trace, asked = self.trace, self.trace.algorithm.step
        given = asked.rule in ("theory", "horizon")
        met: list[Assumption] = []
        if given and asked.G:
            G = np.full(trace.T, asked.G)
        elif given and asked.X and not trace.lambda_:
            X = asked.X
            met.append(Assumption.limit("X", X, trace.norms.max(initial=0.0)))
            if trace.loss.lipschitz is None:
                met.append(self.labels(X))
                G = np.full(trace.T, 4.0 * trace.domain.centred_radius * X**2)
            else:
                G = np.full(trace.T, trace.loss.lipschitz * X)
        elif trace.step.rule == "derived":
            G = self.running(trace.step.gradient, trace.step.power)
            if trace.step.power == 2:
                met.append(self.labels(np.maximum.accumulate(trace.norms)))
        elif trace.loss.lipschitz is not None and (not trace.lambda_ or math.isfinite(self.size)):
            penalty = trace.lambda_ * self.size if trace.lambda_ else 0.0
            each = trace.alphas * (trace.loss.lipschitz * trace.norms + penalty)
            G = np.full(trace.T, each.max(initial=0.0))
        else:
            G = np.full(trace.T, self.largest)
        sizes = np.sqrt(trace.gradient_squares)
        within = bool(np.all(sizes <= G * (1.0 + ROUNDING)))
        met.append(Assumption("G", float(G.max(initial=0.0)), self.largest, within))
        return G, tuple(met)

    def running(self, L: float, power: int) -> Any:
        """L·max(α·‖x‖^power) over the rounds so far."""
        if not self.trace.T:
            return np.empty(0)
        return L * np.maximum.accumulate(self.trace.alphas * self.trace.norms**power)

    def labels(self, X: Any) -> Assumption:
        """|y_t| ≤ U·X, for square loss on the ball; X may grow with t."""
        U, y = self.trace.domain.centred_radius, np.abs(self.trace.labels)
        limit = np.broadcast_to(U * np.asarray(X, dtype=np.float64), y.shape)
        met = bool(np.all(y <= limit * (1.0 + ROUNDING)))
        if met or not np.ndim(X):
            return Assumption("abs(y)", float(limit.max(initial=0.0)), float(y.max(initial=0.0)), met)
        worst = int(np.argmax(y - limit))
        return Assumption("abs(y), with X so far", float(limit[worst]), float(y[worst]), met)


def reach(K: Any, w: Any) -> float:
    """sup over u in K of ‖u − w‖, or an upper bound of it."""
    if not K.bounded:
        return math.inf
    if (ball := K.as_ball(w.size)) is not None:
        return norm(w - ball[0]) + float(ball[1])
    if (box := K.sides(w.size)) is not None:
        return norm(np.maximum(box[1] - w, w - box[0]))
    square = float(w @ w)
    if (total := K.simplex_total) is not None:
        return math.sqrt(max(0.0, square + total * (total - 2.0 * float(w.min()))))
    if (radius := K.l1_radius) is not None:
        return math.sqrt(square + radius * (radius + 2.0 * float(np.abs(w).max(initial=0.0))))
    away = norm(w - K.project(w))
    return away + float(K.diameter(w.size))
