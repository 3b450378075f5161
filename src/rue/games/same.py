"""An opponent that reveals the same function in every round: (projected) gradient descent as it is without rounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from rue.errors import SettingsError, shown
from rue.games.geometry import require_positive, require_whole
from rue.games.opponents import ConvexRound, Opponent, Reveal, Setting

__all__ = ["SameFunction"]


@dataclasses.dataclass(frozen=True)
class SameFunction(Opponent):
    """One convex function F in every round: what OGD plays against it is (projected) gradient descent on F.

    w_{t+1} = Π_K(w_t − η_t∇F(w_t)). By convexity F(w̄) − F(u) ≤ R_T(u)/T for the mean w̄ of the points played, so every
    regret bound is one on how far from the minimum gradient descent is. `value(w)` and `subgradient(w)` are F and a
    subgradient of it, `strongly_convex` its μ if known (the step `strong` is then 1/(μt)), `lipschitz` a bound on its
    subgradients, from which the step `theory` is made.

    >>> import numpy as np, rue
    >>> distance = rue.SameFunction(lambda w: abs(w[0] - 3), lambda w: np.sign(w - 3), d=1, lipschitz=1)
    >>> game = rue.play(rue.OGD(domain="ball:5", step="horizon:400"), distance, rounds=400)
    >>> float(abs(game.points.mean(axis=0)[0] - 3)) <= 5 / 20  # U·L/√T
    True

    docs/theory.md, B21.
    """

    value: Callable[[Any], float] = dataclasses.field(repr=False)
    subgradient: Callable[[Any], Any] = dataclasses.field(repr=False)
    d: int = 1
    lipschitz: float | None = None
    strongly_convex: float | None = None

    def __post_init__(self) -> None:
        if not (callable(self.value) and callable(self.subgradient)):
            raise SettingsError(
                f"SameFunction: value and subgradient must be functions of the point, not {shown(self.value)} and "
                f"{shown(self.subgradient)}."
            )
        require_whole(self, "d", 1)
        if self.lipschitz is not None:
            require_positive(self, "lipschitz")

    def begin(self, setting: Setting) -> Reveal:
        part = ConvexRound(self.value, self.subgradient, self.strongly_convex)
        return lambda move: part
