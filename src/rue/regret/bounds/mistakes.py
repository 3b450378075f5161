"""The proof of the Perceptron's mistake bound on a real run, mistake by mistake (docs/theory.md, P4 and P5)."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.errors import SettingsError, shown
from rue.regret.bounds.perceptron import mistake_bound
from rue.regret.bounds.telescope import ROUNDING, Terms, require_point, squares, traced_descent

if TYPE_CHECKING:
    from rue.regret.bounds.trace import Trace

__all__ = ["MistakeProof"]

MISTAKES = {
    "round": "t_i",
    "hinge": "h_{t_i}(u) = [1 − y_{t_i}⟨u, x_{t_i}⟩]₊",
    "norm": "‖w_i‖/η",
    "norm_most": "X√i",
    "inner": "⟨w_i, u⟩/η",
    "inner_least": "i − Σ_{j≤i} h_{t_j}(u)",
    "allowed": "Σ_{j≤i} h_{t_j}(u) + ‖u‖X√i",
}
"""The terms of the i-th mistake, w_i being the point after it."""


@dataclasses.dataclass(frozen=True, eq=False)
class MistakeProof(Terms):
    """The proof of the Perceptron's mistake bound on one run and against one u, mistake by mistake.

    The i-th mistake, in round t_i, makes the point w_i = w_{i−1} + η y x. Then ‖w_i‖ ≤ ηX√i, since a mistake has
    y⟨w, x⟩ ≤ 0, and ⟨w_i, u⟩ ≥ η(i − Σ_{j≤i} h_{t_j}(u)); together i ≤ Σ_{j≤i} h_{t_j}(u) + ‖u‖X√i, with the hinge loss
    of u over mistakes only. The `terms` are by name, a number for each mistake.

    >>> import rue
    >>> trace = rue.trace(rue.Perceptron(intercept=False), [[1.0, 0.0], [0.0, 1.0]], [1, -1], points=True)
    >>> proof = trace.mistake_proof([1.0, -1.0])
    >>> proof.M, proof["norm"].round(3), proof["inner"], proof["hinge"]
    (2, array([1.   , 1.414]), array([1., 2.]), array([0., 0.]))
    >>> round(proof.value, 6), round(proof.with_step(proof.best_step), 6)
    (2.0, 2.0)

    docs/theory.md, P4 and P5.
    """

    u: Any
    """The point compared with."""
    terms: dict[str, Any] = dataclasses.field(repr=False)
    X: float
    """max ‖x_t‖ over all rounds."""
    H: float
    """Σ h_t(u) over all rounds, mistakes or not."""

    formulas = MISTAKES

    @classmethod
    def of(cls, trace: Trace, u: Any = None) -> MistakeProof:
        """The terms of a traced run of the Perceptron: of a `trace` with points, against `u`, by default B1's best.

        >>> import rue
        >>> trace = rue.trace(rue.Perceptron(intercept=False), [[1.0]], [1], points=True)
        >>> MistakeProof.of(trace, [1.0]).M
        1
        """
        W, X, etas = traced_descent(trace)
        if trace.before or W[0].any() or np.any(trace.weights != 1.0):
            raise SettingsError(
                "mistake_proof: it is about a fresh Perceptron and examples that all have the weight 1."
            )
        y = trace.labels
        u = mistake_bound(X, y).comparator if u is None else require_point(u, W.shape[1])
        wrong = np.flatnonzero(y * trace.predictions <= 0.0)
        after, i = W[wrong + 1] / etas[wrong][:, None], np.arange(1, wrong.size + 1)
        hinges = np.maximum(0.0, 1.0 - y * (X @ u))
        met, largest = np.cumsum(hinges[wrong]), float(trace.norms.max(initial=0.0))
        terms = {
            "round": wrong + 1,
            "hinge": hinges[wrong],
            "norm": np.sqrt(squares(after)),
            "norm_most": largest * np.sqrt(i),
            "inner": after @ u,
            "inner_least": i - met,
            "allowed": met + float(np.linalg.norm(u)) * largest * np.sqrt(i),
        }
        return cls(u, terms, largest, float(hinges.sum()))

    @property
    def M(self) -> int:
        """How many mistakes there were."""
        return int(self.terms["round"].size)

    @property
    def value(self) -> float:
        """Σ_{i≤M} h_{t_i}(u) + ‖u‖X√M, which M does not exceed."""
        return float(self["allowed"][-1]) if self.M else 0.0

    @property
    def best_step(self) -> float:
        """η = ‖u‖/(X√M), which makes `with_step` smallest; 0 where there is nothing to choose."""
        size = self.X * math.sqrt(self.M)
        return float(np.linalg.norm(self.u)) / size if size > 0.0 else 0.0

    def with_step(self, eta: float) -> float:
        """Σ_{i≤M} h_{t_i}(u) + ‖u‖²/(2η) + ηX²M/2, which M does not exceed whatever η > 0 is.

        Predictions do not depend on η, so the proof may choose it, also knowing M.
        """
        if not 0.0 < eta < math.inf:
            raise SettingsError(f"with_step: eta must be positive and finite, not {shown(eta)}.")
        return self.sum("hinge") + float(self.u @ self.u) / (2.0 * eta) + eta * self.X**2 * self.M / 2.0

    @property
    def holds(self) -> bool:
        """Whether every step of the proof held at every mistake, up to rounding."""
        i = np.arange(1, self.M + 1)
        room = ROUNDING * (1.0 + i + np.abs(self["inner"]) + self["allowed"])
        steps = (
            self["norm"] <= self["norm_most"] + room,
            self["inner"] >= self["inner_least"] - room,
            i <= self["allowed"] + room,
        )
        return all(bool(step.all()) for step in steps)

    def __str__(self) -> str:
        last = {name: float(values[-1]) if self.M else 0.0 for name, values in self.terms.items()}
        size = float(np.linalg.norm(self.u))
        return "\n".join(
            [
                f"M = {self.M} mistakes; ‖u‖ = {size:.6g}, X = {self.X:.6g}",
                f"‖w_M‖‖u‖ ≤ ‖u‖X√M: {last['norm'] * size:.6g} ≤ {last['norm_most'] * size:.6g}",
                f"‖w_M‖‖u‖ ≥ ⟨w_M, u⟩ ≥ M − Σ h over mistakes: {last['inner']:.6g} ≥ {last['inner_least']:.6g}",
                f"M ≤ Σ h over mistakes + ‖u‖X√M: {self.M} ≤ {self.value:.6g}",
                f"Σ h over mistakes ≤ Σ h over all rounds: {self.sum('hinge'):.6g} ≤ {self.H:.6g}",
            ]
        )
