"""Rounds that tell how strongly convex they are: the step 1/Σμ_i, round by round (docs/theory.md, A4, B8, B22)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rue.errors import DataError, shown
from rue.regret.bounds.statement import Assumption, Bound

if TYPE_CHECKING:
    from rue.games.game import Game

__all__ = ["Curvatures", "curvature_of", "curved_bounds", "curved_certificate"]


def curvature_of(t: int, part: Any) -> float | None:
    """The μ that a round tells, None if it tells none; t, from 1, is for the words of a refusal."""
    mu = getattr(part, "strongly_convex", None)
    if mu is None:
        return None
    if not isinstance(mu, int | float | np.floating | np.integer) or not 0.0 <= mu < np.inf:
        raise DataError(f"round {t}: strongly_convex must be a finite number ≥ 0, or None, not {shown(mu)}.")
    return float(mu)


class Curvatures:
    """Σμ_i as rounds come, for a learner whose step is 1/(σt): once rounds tell their μ it becomes 1/Σμ_i."""

    def __init__(self, step: Any) -> None:
        self.sigma = float(step.sigma) if getattr(step, "rule", "") == "strong" else None
        self.total: float | None = None
        self.t = 0

    def factor(self, part: Any) -> float:
        """What to multiply the subgradient of the next round with, so that 1/(σt) moves as 1/Σ_{i≤t} μ_i would."""
        self.t = t = self.t + 1
        mu = curvature_of(t, part)
        if self.sigma is None or (self.total is None and (mu is None or t > 1)):
            return 1.0
        self.total = (self.total or 0.0) + (mu or 0.0)
        if self.total == 0.0:
            raise DataError("round 1: its strongly_convex is 0, but the step 1/Σμ_i needs μ_1 > 0 (A4).")
        return self.sigma * t / self.total


def curved_certificate(game: Game) -> float:
    """D2 from the μ_t that the rounds have revealed, an upper bound on the regret; ∞ where they have none.

    With A = Σ⟨g_t, w_t⟩, S = Σg_t, m = Σμ_t w_t, q = Σμ_t‖w_t‖² and B = Σμ_t the regret against u is at most
    A − ⟨S, u⟩ − ½(q − 2⟨m, u⟩ + B‖u‖²), which is largest at u* = Π_K((m − S)/B).
    """
    mu = np.array([curvature_of(t, part) or 0.0 for t, part in enumerate(game.rounds, 1)])
    B, S, m = float(mu.sum()), game.gradients.sum(axis=0), mu @ game.points
    if B == 0.0 or not game.domain.exact_projection:
        return np.inf
    u = game.domain.project((m - S) / B)
    q = float(mu @ np.einsum("td,td->t", game.points, game.points))
    return float(game.products.sum() - S @ u - 0.5 * (q - 2.0 * m @ u + B * (u @ u)))


def curved_bounds(game: Game) -> list[Bound] | None:
    """B8 from the μ_t that the rounds have revealed, where the learner has stepped by them; None where it has not."""
    curvatures = [curvature_of(t, part) for t, part in enumerate(game.rounds, 1)]
    step = getattr(game.algorithm, "step", None)
    if curvatures[0] is None or getattr(step, "rule", "") != "strong":
        return None
    sums = np.cumsum([mu or 0.0 for mu in curvatures])
    squares = np.einsum("td,td->t", game.gradients, game.gradients)
    value = 0.5 * float((squares / sums).sum())
    convex = Assumption("μ_1 > 0", "positive", float(sums[0]), bool(sums[0] > 0.0))
    statement, constants = "R_T ≤ ½ Σ ‖g_t‖²/Σ_{i≤t} μ_i", {"Σμ_t": float(sums[-1]), "T": float(game.T)}
    size = float(np.abs(game.losses).sum() + np.abs(game.products).sum()) + value
    room = 4e-16 * (game.T + 10) * size
    return [Bound("B8", "data", value, statement, (convex,), constants, game.regret_interval[1], room)]
