"""`play_many`: the same two sides again and again, for expectations and how far off their estimates may be."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from rue.errors import SettingsError, shown
from rue.games.game import Game
from rue.games.opponents import Forced, Opponent
from rue.games.rounds import play

__all__ = ["Estimate", "Games", "play_many"]

ERRORS = 3.0
"""How many standard errors a mean may be on the wrong side of a claim."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean over independent games, with its standard error s/√n, s² = Σ(v_i − mean)²/(n − 1).

    >>> print(Estimate.of([1.0, 2.0, 3.0]))
    2 ± 0.5774 (standard error, 3 games)
    """

    mean: float
    error: float
    games: int

    @classmethod
    def of(cls, values: Any) -> Estimate:
        """The estimate from what was seen in each game, the `values`."""
        seen = np.asarray(values, dtype=np.float64)
        return cls(float(seen.mean()), float(seen.std(ddof=1)) / math.sqrt(seen.size), int(seen.size))

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        return f"{self.mean:,.4g} ± {self.error:,.4g} (standard error, {self.games:,} games)"


@dataclasses.dataclass(frozen=True, eq=False)
class Games:
    """Independent games of the same two sides: estimates of their expectations, and whether these bear a claim out.

    >>> from rue.games import play_many
    >>> games = play_many("ogd:domain=ball:1", "signs", 50, games=40)
    >>> games.forced.theorem, games.holds
    ('C3', True)

    docs/theory.md, section 5.
    """

    games: tuple[Game, ...]

    @functools.cached_property
    def regret(self) -> Estimate | None:
        """E R_T, the mean of the games' regrets (Q3); None where a regret has no closed form."""
        seen = [game.regret for game in self.games]
        return None if None in seen else Estimate.of(seen)

    @functools.cached_property
    def loss(self) -> Estimate:
        """E Σ ℓ_t(w_t)."""
        return Estimate.of([game.loss for game in self.games])

    @functools.cached_property
    def mistakes(self) -> Estimate | None:
        """E M_T (Q4); None where there are no classes."""
        seen = [game.mistakes for game in self.games]
        return None if None in seen else Estimate.of(seen)

    @property
    def forced(self) -> Forced | None:
        """What the opponent's theorem says, of every game or in expectation; None where it says nothing."""
        return self.games[0].forced

    @property
    def holds(self) -> bool | None:
        """Whether the games bear `forced` out: each of them, or, for an expectation, the mean within 3 standard errors.

        A right claim about an expectation fails so about once in 700 times.
        """
        claim = self.forced
        if claim is None:
            return None
        if not claim.in_expectation:
            found = [game.holds for game in self.games]
            return None if None in found else all(found)
        seen: Estimate | None = getattr(self, claim.quantity)
        if seen is None:
            return None
        room = ERRORS * seen.error + 1e-9 * (1.0 + abs(claim.value))
        above, below = seen.mean >= claim.value - room, seen.mean <= claim.value + room
        return {"at least": above, "at most": below, "exactly": above and below}[claim.relation]

    def __str__(self) -> str:
        first = self.games[0]
        sentences = [f"{first.name} against {first.opponent!r}, {first.T:,} rounds in {first.domain!r}:"]
        sentences.append(f"it lost {self.loss}.")
        if self.regret is not None:
            sentences.append(f"Regret {self.regret}.")
        if self.mistakes is not None:
            sentences.append(f"Mistakes {self.mistakes}.")
        if self.forced is not None:
            verdict = {True: "so it was", False: "it was NOT so", None: "nothing was seen of it"}[self.holds]
            sentences.append(f"{self.forced.theorem}: {self.forced.words}: {verdict}.")
        return " ".join(sentences)

    def __repr__(self) -> str:
        return f"Games({len(self.games)}, loss={self.loss.mean:.6g}, opponent={self.games[0].opponent!r})"


def play_many(
    learner: Any,
    opponent: Opponent | str,
    rounds: int | None = None,
    *,
    games: int = 100,
    seed: int = 0,
    domain: Any = None,
    loss: Any = None,
) -> Games:
    """Play the same game many times with other lots, and estimate expectations with their standard errors.

    Game k has the seed `seed + k`, for the opponent's lots and for a randomised learner's, so `play` repeats any of
    them. Everything else, `rounds`, `domain` and `loss` too, is as for `play`.

    >>> def coin(past, x, rng):  # a randomised learner, as a function of the past
    ...     return rng.choice([-1.0, 1.0])
    >>> seen = play_many(coin, "stochastic:3", 100, games=50, loss="hinge").mistakes
    >>> abs(seen.mean - 50) <= 4 * seen.error
    True

    docs/theory.md, C3 and section 5.
    """
    if isinstance(games, bool) or not isinstance(games, int | np.integer) or games < 2:
        raise SettingsError(f"play_many: games must be a whole number, at least 2, not {shown(games)}.")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise SettingsError(f"play_many: seed must be a whole number ≥ 0, not {shown(seed)}.")
    one = functools.partial(play, learner, opponent, rounds, domain=domain, loss=loss)
    return Games(tuple(one(seed=int(seed) + k) for k in range(int(games))))
