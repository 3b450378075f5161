"""`Game`: what `play` leaves behind, with its own comparator."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from rue.domains import Domain
from rue.errors import DataError
from rue.games.curved import curved_bounds, curved_certificate
from rue.games.opponents import ExampleRound, Forced, LinearRound, Opponent, Round
from rue.learners import Learner
from rue.learners.algorithm import Algorithm
from rue.losses import Loss
from rue.regret import Bound, best_in_hindsight, bounds
from rue.runs.replay import trace

__all__ = ["Game"]


@dataclasses.dataclass(frozen=True, eq=False)
class Game:
    """A game that was played: what each side did, the regret, and what the opponent had to force; `str()` sums it up.

    Regret, Σ ℓ_t(w_t) − inf over K of Σ ℓ_t(u), compares with the best point of the learner's domain. It is a number
    where that point has a closed form (linear losses, squares of one number, the margin adversary), and always an
    interval. The `player` is a learner of the user's own, as it was played.

    >>> from rue.games import play
    >>> game = play("ogd:domain=ball:1", "orthogonal:2", 100)
    >>> game.T, round(game.regret, 6) >= float(game.forced), game.holds
    (100, True, True)

    docs/theory.md, Q3, Q5 and section 5.
    """

    learner: Any
    """The learner as it stands after the game: a fresh one with the settings of the one given, a copy of your own."""
    opponent: Opponent
    loss_named: Loss | None
    """The loss of the examples; None where rounds are functions of the point."""
    rounds: tuple[Any, ...]
    """The rounds revealed."""
    points: Any
    """w_t, T × d; NaN for a learner of your own that predicts without a point."""
    losses: Any
    """ℓ_t(w_t)."""
    gradients: Any
    """g_t, T × d; slope·x_t for an example."""
    products: Any
    """⟨g_t, w_t⟩; slope·p_t for an example."""
    predictions: Any = None
    """p_t, where rounds are examples."""
    labels: Any = None
    """y_t, where rounds are examples."""
    player: Any = dataclasses.field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What the learner is called."""
        return str(self.player.name)

    @property
    def algorithm(self) -> Algorithm | None:
        """The algorithm of rue's that played, of which theorems speak; None for a learner of your own."""
        return self.learner.algorithm if isinstance(self.learner, Learner) else None

    @property
    def T(self) -> int:
        """The number of rounds."""
        return len(self.losses)

    @property
    def domain(self) -> Domain:
        """K, the set of the comparators."""
        domain: Domain = self.player.domain
        return domain

    @property
    def loss(self) -> float:
        """Σ ℓ_t(w_t), the learner's total."""
        return float(self.losses.sum())

    @property
    def mistakes(self) -> int | None:
        """How many rounds had y_t·p_t ≤ 0 (Q4); None where there are no classes."""
        if self.loss_named is None or not (self.opponent.counts_mistakes or self.loss_named.task == "classify"):
            return None
        return int(np.sum(self.labels * self.predictions <= 0.0))

    @functools.cached_property
    def linear(self) -> bool:
        """Whether every round was linear."""
        named = self.loss_named is not None and self.loss_named.linear
        return named or all(isinstance(part, LinearRound) for part in self.rounds)

    @property
    def gradient_bound(self) -> float:
        """max ‖g_t‖, the G that was seen."""
        return float(np.sqrt(np.max(np.einsum("td,td->t", self.gradients, self.gradients))))

    def loss_of(self, u: Any) -> float:
        """Σ ℓ_t(u), what another point would have paid.

        >>> import rue
        >>> game = rue.play(rue.OGD(domain="ball:1"), rue.OrthogonalAdversary(d=2), rounds=10)
        >>> game.loss_of([0.0, 0.0])
        0.0
        """
        u = self.domain.vector(u)
        if u.size != self.points.shape[1]:
            raise DataError(f"the point has {u.size} coordinates, but the game was played in {self.points.shape[1]}.")
        if self.linear:
            return float(self.gradients.sum(axis=0) @ u)
        return math.fsum(_value(part, self.loss_named, u) for part in self.rounds)

    # The best in hindsight.

    @functools.cached_property
    def best_losses(self) -> Any:
        """inf over K of the total of the first t rounds, for t = 1..T, NaN where it has no closed form."""
        known = self.opponent.hindsight(self)
        if known is not None:
            return np.asarray(known, dtype=np.float64)
        if self.linear and self.domain.exact_support:
            return np.array([-self.domain.support(-S) for S in np.cumsum(self.gradients, axis=0)])
        squares = self.loss_named is not None and self.loss_named.quadratic and self.points.shape[1] == 1
        if squares and self.domain.exact_support and all(part.x[0] == 1.0 for part in self.rounds):
            return _best_squares(self.domain, self.labels)
        return np.full(self.T, math.nan)

    @functools.cached_property
    def comparator_loss(self) -> tuple[float, float]:
        """inf over K of Σ ℓ_t(u): an interval, a single number twice where there is a closed form.

        Otherwise by `best_in_hindsight` where rounds are examples; else from below by D1, Σℓ_t − A − h_K(−S), or by D2
        where rounds tell their strong convexity, and from above by the best of a few points of K.
        """
        best = float(self.best_losses[-1])
        if not math.isnan(best):
            return best, best
        if self.loss_named is not None:
            return best_in_hindsight(
                self._features(), self.labels, loss=self.loss_named, domain=self.domain, intercept=False
            ).interval
        A, S = float(self.products.sum()), self.gradients.sum(axis=0)
        low = self.loss - A - self.domain.support(-S)
        low = max(-math.inf if math.isnan(low) else low, self.loss - curved_certificate(self))
        high = min(self.loss_of(u) for u in self._candidates())
        return min(low, high), high

    def _features(self) -> Any:
        return np.array([part.x for part in self.rounds])

    def _candidates(self) -> list[Any]:
        """Points of K that may do well: played, means of those, far against Σg_t, and multiples of the witness."""
        half, S = self.points[self.T // 2 :], self.gradients.sum(axis=0)
        points = [self.points[0], self.points[-1], self.points.mean(axis=0), half.mean(axis=0)]
        length = float(np.linalg.norm(S))
        if self.domain.bounded and length > 0.0:
            points.append(self.points[0] - self.domain.diameter(S.size) / length * S)
        u = self.opponent.witness(self)
        if u is not None:
            points += [2.0**k * u for k in range(-4, 11)]
        inside = [self.domain.nearby(point) for point in points]
        return [u for u in inside if u is not None] or [self.domain.start(S.size)]

    @property
    def regret(self) -> float | None:
        """Σ ℓ_t(w_t) − inf over K of Σ ℓ_t(u) (Q3); None where only `regret_interval` is known."""
        low, high = self.comparator_loss
        return self.loss - low if low == high else None

    @property
    def regret_interval(self) -> tuple[float, float]:
        """The regret lies between these two."""
        low, high = self.comparator_loss
        return self.loss - high, self.loss - low

    @property
    def regrets(self) -> Any:
        """The regret after each round, against the best point for the rounds so far; NaN without a closed form."""
        return np.cumsum(self.losses) - self.best_losses

    def regret_at(self, t: int) -> float:
        """The regret after round t, counting from 1.

        >>> import rue
        >>> game = rue.play(rue.OGD(domain="ball:1"), rue.OrthogonalAdversary(d=2), rounds=10)
        >>> game.regret_at(10) == game.regret
        True
        """
        if not 1 <= t <= self.T:
            raise DataError(f"round {t} was not played: the game has the rounds 1 to {self.T}.")
        return float(self.regrets[t - 1])

    def regret_against(self, u: Any) -> float:
        """Σ ℓ_t(w_t) − Σ ℓ_t(u), the regret against one point u (Q2).

        >>> import rue
        >>> game = rue.play(rue.OGD(domain="ball:1"), rue.OrthogonalAdversary(d=2), rounds=10)
        >>> game.regret_against([0.0, 0.0]) == game.loss
        True
        """
        return self.loss - self.loss_of(u)

    @property
    def witness(self) -> Any:
        """The point the opponent's theorem speaks of: the margin adversary's unit separator, 0 for the flip-flop."""
        return self.opponent.witness(self)

    # What theory says of it.

    @property
    def forced(self) -> Forced | None:
        """What the opponent has to force, None where its theorem says nothing of this learner."""
        return self.opponent.forced(self)

    @property
    def holds(self) -> bool | None:
        """Whether the game bears `forced` out; None where nothing is claimed, or in expectation only."""
        claim = self.forced
        if claim is None or claim.in_expectation:
            return None
        seen = {"regret": self.regret, "mistakes": self.mistakes, "loss": self.loss}[claim.quantity]
        if seen is None:
            return None
        size = float(np.abs(self.losses).sum() + np.abs(self.products).sum()) + abs(claim.value)
        room = 4e-16 * (self.T + 10) * size
        above, below = seen >= claim.value - room, seen <= claim.value + room
        return {"at least": above, "at most": below, "exactly": above and below}[claim.relation]

    @functools.cached_property
    def bounds(self) -> list[Bound]:
        """What the theorems B1 to B10 allow the learner, each with its assumptions checked on this game.

        Those of a regularised learner speak of regularised rounds, so they are not compared with the game's regret. Of
        a learner of your own they say nothing.
        """
        if self.algorithm is None:
            return []
        if (curved := curved_bounds(self)) is not None:
            return curved
        fresh = Learner(self.algorithm, intercept=False, d=self.points.shape[1])
        if self.loss_named is not None:
            seen = trace(fresh, self._features(), self.labels)
        else:
            seen = trace(fresh, self.gradients, np.ones(self.T))  # a subgradient moves the point as a linear loss does
        return bounds(seen, regret=None if seen.lambda_ else self.regret_interval[1])

    def plot(self, path: Any = None) -> Any:
        """Regret round by round as a matplotlib Figure; `path` (.png, .svg or .pdf) also saves it.

        >>> import rue
        >>> game = rue.play(rue.OGD(domain="ball:1"), rue.OrthogonalAdversary(d=2), rounds=10)
        >>> len(game.plot().axes)
        1
        """
        from rue.pictures.plots import draw_game

        return draw_game(self, path)

    def __str__(self) -> str:
        low, high = self.comparator_loss
        sentences = [f"{self.name} against {self.opponent!r}, {self.T:,} rounds in {self.domain!r}:"]
        sentences.append(f"it lost {self.loss:,.4g}")
        if low == high:
            sentences.append(f"and the best point in hindsight {low:,.4g}, a regret of {self.loss - low:+,.4g}.")
        else:
            sentences.append(
                f"and the best point in hindsight between {low:,.4g} and {high:,.4g}, a regret between "
                f"{self.loss - high:+,.4g} and {self.loss - low:+,.4g}."
            )
        if self.mistakes is not None:
            sentences.append(f"It made {self.mistakes:,} mistakes.")
        if self.forced is not None:
            sentences.append(f"{self.forced.theorem}: {self.forced.words}.")
        allowed = min(
            (bound for bound in self.bounds if bound.holds is not None), key=lambda bound: bound.value, default=None
        )
        if allowed is not None:
            about = "its mistakes" if allowed.theorem in ("B1", "B2") else "its regret"
            sentences.append(f"{allowed.theorem} allows {about} at most {allowed.value:,.4g}.")
        return " ".join(sentences)

    def __repr__(self) -> str:
        low, high = self.regret_interval
        regret = f"{low:.6g}" if low == high else f"[{low:.6g}, {high:.6g}]"
        return f"Game(rounds={self.T}, loss={self.loss:.6g}, regret={regret}, opponent={self.opponent!r})"


def _value(part: Round | ExampleRound, loss: Any, u: Any) -> float:
    if isinstance(part, ExampleRound):
        return float(loss.value(float(np.dot(part.x, u)), part.y))
    return float(part.value(u))


def _best_squares(domain: Domain, y: Any) -> Any:
    """min over K of Σ(u − y_i)² for each prefix: about the mean, V_t = V_{t−1} + (1 − 1/t)(y_t − m_{t−1})², then K."""
    t = np.arange(1, y.size + 1)
    means = np.cumsum(y) / t
    before = np.concatenate([y[:1], means[:-1]])
    spread = np.cumsum((1.0 - 1.0 / t) * (y - before) ** 2)
    nearest = np.clip(means, -domain.support([-1.0]), domain.support([1.0]))
    return spread + t * (means - nearest) ** 2
