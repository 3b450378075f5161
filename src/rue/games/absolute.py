"""C7: the opponent that shows that absolute losses are no easier than linear ones."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.errors import SettingsError
from rue.games.geometry import inner_ball, orthogonal, require_positive, require_whole
from rue.games.opponents import ExampleRound, Forced, Move, Opponent, Reveal, Setting
from rue.losses import Absolute
from rue.registry import register

if TYPE_CHECKING:
    from rue.games.game import Game

__all__ = ["AbsoluteAdversary"]


@register("opponent", "absolute")
@dataclasses.dataclass(frozen=True)
class AbsoluteAdversary(Opponent):
    """C7: absolute losses abs(y_t − ⟨w, x_t⟩) with labels that no point of the domain passes, so they are linear there.

    abs(y_t) = max abs(⟨w, x_t⟩) over K, ‖x_t‖ = X, and g_t = ∓x_t is orthogonal to Σ_{i<t} g_i and uphill from the
    learner, as C2's: regret at least U·X·√T from every learner on the ball of radius U, where OGD is allowed U·X·√(8T).
    With d = 1 there is no other direction, and fair coins choose the label's sign: at least (√2/4)·D·X·√T in
    expectation.

    >>> from rue.games import play
    >>> game = play("ogd:domain=ball:2", AbsoluteAdversary(d=3), 400)
    >>> round(float(game.forced), 6), game.regret >= float(game.forced)
    (40.0, True)

    docs/theory.md, C7.
    """

    d: int = 2
    X: float = 1.0
    """‖x_t‖."""

    loss = Absolute()

    def __post_init__(self) -> None:
        require_whole(self, "d", 1)
        require_positive(self, "X")

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return self.X

    def refuse(self, setting: Setting) -> None:
        if inner_ball(setting.domain, setting.d) is None:
            raise SettingsError(
                f"AbsoluteAdversary: its theorem is about a ball (or a bounded box, or the ℓ1 ball), not about "
                f"{setting.domain!r}: give the learner a domain such as 'ball:1'."
            )

    def begin(self, setting: Setting) -> Reveal:
        K = setting.domain
        centre = (inner_ball(K, setting.d) or (0.0, 0.0))[0]
        coins = 2.0 * setting.rng.integers(0, 2, size=setting.rounds) - 1.0
        S = np.zeros(setting.d)  # Σ g_i / X

        def reveal(move: Move) -> ExampleRound:
            nonlocal S
            unit = coins[move.t - 1 : move.t] if setting.d == 1 else orthogonal(S, move.point - centre)
            S = S + unit
            side = 1.0 if move.t % 2 else -1.0  # labels of both signs
            x = side * self.X * unit
            return ExampleRound(x, -side * max(K.support(x), K.support(-x)))

        return reveal

    def hindsight(self, game: Game) -> Any:
        """Σ abs(y_t) − h_K(Σ sign(y_t) x_t): on K every round is abs(y_t) − sign(y_t)⟨w, x_t⟩."""
        if not game.domain.exact_support:
            return None
        x = np.array([part.x for part in game.rounds])
        sums = np.cumsum(np.sign(game.labels)[:, None] * x, axis=0)
        return np.cumsum(np.abs(game.labels)) - np.array([game.domain.support(s) for s in sums])

    def forced(self, game: Game) -> Forced:
        U = (inner_ball(game.domain, self.d) or (0.0, 0.0))[1]
        root = self.X * math.sqrt(game.T)
        if self.d == 1:
            value = math.sqrt(2.0) / 2.0 * U * root
            words = f"every learner's expected regret is at least (√2/4)·D·X·√T = {value:,.4g} with D = {2.0 * U:g}"
        else:
            value = U * root
            words = f"every learner has a regret of at least U·X·√T = {value:,.4g} with U = {U:g}"
        return Forced("C7", "regret", "at least", value, f"{words} and X = {self.X:g}", self.d == 1)
