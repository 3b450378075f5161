"""C6: guessing a number that is drawn from a distribution, in which playing the mean wins."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.domains import Domain
from rue.errors import SettingsError, shown
from rue.games.geometry import ends
from rue.games.opponents import ExampleRound, Forced, Opponent, Reveal, Setting
from rue.losses import Square
from rue.registry import register

if TYPE_CHECKING:
    from rue.games.game import Game

__all__ = ["NumberFromDistribution"]


@register("opponent", "distribution")
@dataclasses.dataclass(frozen=True)
class NumberFromDistribution(Opponent):
    """C6: guess numbers drawn independently from one distribution on [0, 1] with mean μ and variance σ².

    A guess w pays E(w − Y)² = σ² + (w − μ)², so that E Σ(w_t − Y)² − σ²T = Σ(w_t − μ)²: playing the mean pays σ²T,
    no strategy that does not see the numbers pays less, and the leader's excess is (w_1 − μ)² + σ²(1 + … + 1/(T − 1)).

    >>> from rue.games import play_many
    >>> coin = NumberFromDistribution([0.0, 1.0], [0.75, 0.25])
    >>> coin.mean, coin.variance
    (0.25, 0.1875)
    >>> games = play_many(lambda past: [coin.mean], coin, 100, domain="interval:0,1")
    >>> games.forced.value, games.holds
    (18.75, True)

    docs/theory.md, C6.
    """

    values: Any = "uniform"
    """"uniform" on [0, 1], or the numbers that can come."""
    probabilities: Any = None
    """Of the values, all alike if not given."""

    d = 1
    loss = Square()

    def __post_init__(self) -> None:
        if isinstance(self.values, str):
            if self.values != "uniform":
                raise SettingsError(
                    f"NumberFromDistribution: values must be 'uniform' or a list of numbers, not {shown(self.values)}."
                )
            if self.probabilities is not None:
                raise SettingsError("NumberFromDistribution: probabilities belong to a list of values: give both.")
            return
        values = _numbers(self.values)
        if not values or not all(0.0 <= number <= 1.0 for number in values):
            raise SettingsError("NumberFromDistribution: values must be a list of numbers between 0 and 1.")
        given = [1.0 / len(values)] * len(values) if self.probabilities is None else _numbers(self.probabilities)
        if len(given) != len(values) or not all(p >= 0.0 for p in given) or abs(math.fsum(given) - 1.0) > 1e-9:
            raise SettingsError(
                "NumberFromDistribution: probabilities must be as many as the values, each 0 or more, with the sum 1."
            )
        object.__setattr__(self, "values", tuple(values))
        object.__setattr__(self, "probabilities", tuple(given))

    @property
    def mean(self) -> float:
        """μ."""
        return 0.5 if self.values == "uniform" else float(np.dot(self.probabilities, self.values))

    @property
    def variance(self) -> float:
        """σ²."""
        if self.values == "uniform":
            return 1.0 / 12.0
        return float(np.dot(self.probabilities, (np.array(self.values) - self.mean) ** 2))

    def lipschitz_on(self, domain: Domain) -> float | None:
        """2·|w − y| at its largest."""
        if not domain.bounded:
            return None
        low, high = ends(domain)
        return 2.0 * max(high, 1.0 - low)

    def begin(self, setting: Setting) -> Reveal:
        one, rng, T = np.ones(1), setting.rng, setting.rounds
        drawn = rng.random(T) if self.values == "uniform" else rng.choice(self.values, size=T, p=self.probabilities)
        return lambda move: ExampleRound(one, float(drawn[move.t - 1]))

    def excess(self, game: Game) -> Any:
        """E_Y Σ_{i≤t} (w_i − Y)² − σ²t = Σ_{i≤t} (w_i − μ)² for the guesses of a game, after each round t.

        >>> import rue
        >>> opponent = rue.NumberFromDistribution([0.0, 1.0])
        >>> bool(opponent.excess(rue.play("ogd:domain=ball:1", opponent, 20))[-1] >= 0.0)
        True
        """
        return np.cumsum((game.predictions - self.mean) ** 2)

    def forced(self, game: Game) -> Forced:
        value = self.variance * game.T
        words = f"no strategy expects to pay less than σ²T = {value:,.4g}, which always playing the mean pays"
        return Forced("C6", "loss", "at least", value, words, in_expectation=True)


def _numbers(given: Any) -> list[float]:
    """A list of finite numbers; empty if it is none."""
    try:
        numbers = [float(number) for number in np.atleast_1d(given)]
    except (TypeError, ValueError):
        return []
    return numbers if all(map(math.isfinite, numbers)) else []
