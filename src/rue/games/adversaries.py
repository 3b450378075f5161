"""The opponents C1 to C5 of docs/theory.md, each with the value it must force, and a stochastic environment."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.domains import Domain
from rue.errors import SettingsError, shown
from rue.games.geometry import (
    ends,
    far_direction,
    first,
    inner_ball,
    orthogonal,
    require_positive,
    require_whole,
    symmetric,
)
from rue.games.opponents import ExampleRound, Forced, LinearRound, Move, Opponent, Reveal, Setting
from rue.losses import Square
from rue.registry import register
from rue.regret.hindsight.interior import has_barrier
from rue.steps import Strong

if TYPE_CHECKING:
    from rue.games.game import Game

__all__ = ["FlipFlop", "MarginAdversary", "NumberGuessing", "OrthogonalAdversary", "RandomSigns", "Stochastic"]


@register("opponent", "margin")
@dataclasses.dataclass(frozen=True)
class MarginAdversary(Opponent):
    """C1: shows n basis vectors and gives each the label that makes the prediction wrong.

    n mistakes from any deterministic learner, on data that a unit vector, `game.witness`, separates with margin 1/√n.
    Rounds after the n-th repeat the examples.

    >>> from rue.games import play
    >>> play("perceptron", "margin:25").mistakes
    25

    docs/theory.md, C1.
    """

    n: int
    d: int | None = None
    """n unless more coordinates are asked for."""

    loss = "own"
    counts_mistakes = True

    def __post_init__(self) -> None:
        require_whole(self, "n", 1)
        object.__setattr__(self, "d", self.n if self.d is None else self.d)
        require_whole(self, "d", self.n)

    @property
    def usual_rounds(self) -> int:  # type: ignore[override]  # here it depends on n
        return self.n

    def refuse(self, setting: Setting) -> None:
        if not (setting.loss.accepts(1.0) and setting.loss.accepts(-1.0)):
            raise SettingsError(
                f"MarginAdversary: {setting.loss!r} does not take the labels −1 and +1: choose a loss for two classes."
            )

    def begin(self, setting: Setting) -> Reveal:
        labels = np.zeros(self.n)

        def reveal(move: Move) -> ExampleRound:
            i = (move.t - 1) % self.n
            x = np.zeros(setting.d)
            x[i] = 1.0
            if labels[i] == 0.0:
                labels[i] = -1.0 if move.predict(x) > 0.0 else 1.0
            return ExampleRound(x, labels[i])

        return reveal

    def witness(self, game: Game) -> Any:
        u = np.zeros(game.points.shape[1])
        u[: self.n] = 1.0 / math.sqrt(self.n)
        shown = min(game.T, self.n)
        u[:shown] *= game.labels[:shown]
        return u

    def hindsight(self, game: Game) -> Any:
        """k·ℓ(m) a repetition, m the largest common margin of k basis vectors: by symmetry none does better."""
        domain, loss = game.domain, game.loss_named
        if (
            loss is None
            or loss.depends_on != "margin"
            or not domain.exact_support
            or not symmetric(domain, game.points.shape[1])
        ):
            return None
        best = np.full(game.T, math.nan)
        for t in range(1, game.T + 1):
            k = min(t, self.n)
            if t % k == 0:
                m = domain.support(first(k, game.points.shape[1])) / k
                best[t - 1] = t * loss.value(m, 1.0)
        return best

    def forced(self, game: Game) -> Forced:
        n = min(self.n, game.T)
        words = f"any deterministic learner makes at least {n:,} mistakes here, though a unit vector separates the data"
        return Forced("C1", "mistakes", "at least", n, f"{words} with margin 1/√{self.n:,}")


@register("opponent", "orthogonal")
@dataclasses.dataclass(frozen=True)
class OrthogonalAdversary(Opponent):
    """C2: linear losses with g_t ⟂ Σ_{i<t} g_i, ‖g_t‖ = L, uphill from the learner: ⟨g_t, w_t − centre⟩ ≥ 0.

    Regret at least U·L·√T from every learner on a ball of radius U; on a box and on the ℓ1 ball U is the radius of the
    ball inside. Of all such directions it takes the steepest. `L` is the length of the gradients.

    >>> from rue.games import play
    >>> game = play("ogd:domain=ball:2", OrthogonalAdversary(d=3, L=0.5), 400)
    >>> round(float(game.forced), 6), game.regret >= float(game.forced)
    (20.0, True)

    docs/theory.md, C2.
    """

    d: int = 2
    L: float = 1.0

    def __post_init__(self) -> None:
        require_whole(self, "d", 2)
        require_positive(self, "L")

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return self.L

    def refuse(self, setting: Setting) -> None:
        if inner_ball(setting.domain, setting.d) is None:
            raise SettingsError(
                f"OrthogonalAdversary: its theorem is about a ball (or a bounded box, or the ℓ1 ball), not about "
                f"{setting.domain!r}: give the learner a domain such as 'ball:1'."
            )

    def begin(self, setting: Setting) -> Reveal:
        centre = (inner_ball(setting.domain, setting.d) or (0.0, 0.0))[0]
        S = np.zeros(setting.d)  # Σ g_i / L

        def reveal(move: Move) -> LinearRound:
            nonlocal S
            unit = orthogonal(S, move.point - centre)
            S = S + unit
            return LinearRound(self.L * unit)

        return reveal

    def forced(self, game: Game) -> Forced:
        U = (inner_ball(game.domain, game.points.shape[1]) or (0.0, 0.0))[1]
        value = U * self.L * math.sqrt(game.T)
        words = f"every learner has a regret of at least U·L·√T = {value:,.4g} with U = {U:g} and L = {self.L:g}"
        return Forced("C2", "regret", "at least", value, words)


@register("opponent", "signs")
@dataclasses.dataclass(frozen=True)
class RandomSigns(Opponent):
    """C3: linear losses ±L along the line through two far points of the domain, the sign by a fair coin.

    Expected regret at least (√2/4)·D·L·√T from every learner, with equality at T = 2. A single game may have less, so
    `game.holds` is None. `d` is the number of coordinates, by default the domain's.

    >>> from rue.games import play
    >>> play("ogd:domain=ball:1", RandomSigns(), 100, seed=3).forced.in_expectation
    True

    docs/theory.md, C3.
    """

    L: float = 1.0
    d: int | None = None

    def __post_init__(self) -> None:
        require_positive(self, "L")
        if self.d is not None:
            require_whole(self, "d", 1)

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return self.L

    def refuse(self, setting: Setting) -> None:
        if not setting.domain.bounded or not has_barrier(setting.domain, setting.d):
            raise SettingsError(
                f"RandomSigns: two far points are known of a ball, a bounded box, the ℓ1 ball and the simplex, not of "
                f"{setting.domain!r}: give the learner such a domain."
            )

    def begin(self, setting: Setting) -> Reveal:
        slope = self.L * far_direction(setting.domain, setting.d)
        signs = 2.0 * setting.rng.integers(0, 2, size=setting.rounds) - 1.0
        return lambda move: LinearRound(signs[move.t - 1] * slope)

    def forced(self, game: Game) -> Forced:
        D = game.domain.diameter(game.points.shape[1])
        value = math.sqrt(2.0) / 4.0 * D * self.L * math.sqrt(game.T)
        words = f"every learner's expected regret is at least (√2/4)·D·L·√T = {value:,.4g}"
        return Forced("C3", "regret", "at least", value, f"{words} with D = {D:g} and L = {self.L:g}", True)


@register("opponent", "flip-flop")
@dataclasses.dataclass(frozen=True)
class FlipFlop(Opponent):
    """C4: slopes −½, then +1 and −1 in turn, for which the leader is always at the wrong end of the interval.

    Follow the leader pays T − 1 − w_1/2 on [−1, 1], while u = 0 pays nothing; OGD survives.

    >>> from rue.games import play
    >>> from rue.learners import FollowTheLeader
    >>> play(FollowTheLeader("linear", "interval:-1,1"), FlipFlop(), 100).loss
    99.0

    docs/theory.md, C4.
    """

    d = 1
    lipschitz = 1.0

    def refuse(self, setting: Setting) -> None:
        if inner_ball(setting.domain, setting.d) is None or not setting.domain.exact_support:
            raise SettingsError(
                f"FlipFlop: it is played on an interval, not on {setting.domain!r}: give the learner a domain such as "
                "'interval:-1,1'."
            )

    def begin(self, setting: Setting) -> Reveal:
        def reveal(move: Move) -> LinearRound:
            g = -0.5 if move.t == 1 else (1.0 if move.t % 2 == 0 else -1.0)
            return LinearRound(np.array([g]))

        return reveal

    def witness(self, game: Game) -> Any:
        return np.zeros(1)

    def forced(self, game: Game) -> Forced | None:
        if game.algorithm is None or game.algorithm.family != "leader":
            return None
        low, high = ends(game.domain)
        evens, odds = game.T // 2, (game.T - 1) // 2
        value = high * evens - low * odds - 0.5 * float(game.points[0, 0])
        words = f"follow the leader pays {value:,.6g}"
        if (low, high) == (-1.0, 1.0):
            words += ", which is T − 1 − w_1/2, where always playing 0 pays nothing"
        return Forced("C4", "loss", "exactly", value, words)


@register("opponent", "guessing")
@dataclasses.dataclass(frozen=True)
class NumberGuessing(Opponent):
    """C5: guess numbers y_t in [0, 1], paying (w_t − y_t)².

    Follow the leader has a regret of at most 1 + ln T, and so has OGD with the strongly convex step 'strong:2', which
    is the leader; OGD with the step for convex losses has O(√T).

    >>> from rue.games import play
    >>> from rue.learners import FollowTheLeader
    >>> play(FollowTheLeader("square", "interval:0,1"), NumberGuessing([0.0, 1.0]), 100).regret < 1 + math.log(100)
    True

    docs/theory.md, C5 and B10.
    """

    numbers: Any = "random"
    """"random" draws them uniformly, "farthest" takes the end that is farther from the guess; or your own, repeated."""

    d = 1
    loss = Square()

    def __post_init__(self) -> None:
        if isinstance(self.numbers, str):
            if self.numbers not in ("random", "farthest"):
                raise SettingsError(
                    f"NumberGuessing: numbers must be 'random', 'farthest' or a list, not {shown(self.numbers)}."
                )
            return
        try:
            given = tuple(float(number) for number in np.atleast_1d(self.numbers))
        except (TypeError, ValueError):
            given = ()
        if not given or not all(0.0 <= number <= 1.0 for number in given):
            raise SettingsError("NumberGuessing: your own numbers must be a list of numbers between 0 and 1.")
        object.__setattr__(self, "numbers", given)

    def lipschitz_on(self, domain: Domain) -> float | None:
        """2·|w − y| at its largest."""
        if not domain.bounded:
            return None
        low, high = ends(domain)
        return 2.0 * max(high, 1.0 - low)

    def begin(self, setting: Setting) -> Reveal:
        one = np.ones(1)
        if self.numbers == "farthest":
            return lambda move: ExampleRound(one, 0.0 if move.predict(one) >= 0.5 else 1.0)
        drawn = setting.rng.random(setting.rounds) if self.numbers == "random" else np.array(self.numbers)
        return lambda move: ExampleRound(one, float(drawn[(move.t - 1) % drawn.size]))

    def forced(self, game: Game) -> Forced | None:
        algorithm: Any = game.algorithm
        if algorithm is None:
            return None
        leads = algorithm.family == "leader" or (algorithm.family == "descent" and algorithm.step == Strong(2.0))
        if not leads or not (game.domain.contains([0.0]) and game.domain.contains([1.0])):
            return None
        value = 1.0 + math.log(game.T)
        words = f"the leader's regret is at most 1 + ln T = {value:,.4g}, as numbers and guesses lie in [0, 1] (B10)"
        return Forced("C5", "regret", "at most", value, words)


@register("opponent", "stochastic")
@dataclasses.dataclass(frozen=True)
class Stochastic(Opponent):
    """An environment that is no adversary: examples drawn independently from one distribution (B11, B13).

    By default x is uniform on the sphere of radius 1 and y depends on ⟨(1, …, 1)/√d, x⟩: for classes its sign, wrong
    with probability `noise`; for regression itself, with normal noise of that size. `draw(rng)` → (x, y) is your own.

    >>> from rue.games import play
    >>> from rue.learners import OGD
    >>> game = play(OGD("hinge", "ball:5"), Stochastic(d=3), rounds=1000)
    >>> game.mistakes < 250
    True
    """

    d: int = 5
    noise: float = 0.1
    draw: Callable[[np.random.Generator], tuple[Any, float]] | None = None

    loss = "own"

    def __post_init__(self) -> None:
        require_whole(self, "d", 1)
        if not isinstance(self.noise, int | float) or not 0.0 <= self.noise < math.inf:
            raise SettingsError(f"Stochastic: noise must be a number ≥ 0, not {shown(self.noise)}.")

    def begin(self, setting: Setting) -> Reveal:
        rng, classes = setting.rng, setting.loss.task == "classify"
        draw = self.draw or (lambda rng: self._usual(rng, classes))
        return lambda move: ExampleRound(*draw(rng))

    def _usual(self, rng: np.random.Generator, classes: bool) -> tuple[Any, float]:
        """An example from the distribution that serves when none is given."""
        x = rng.normal(size=self.d)
        x /= np.linalg.norm(x)
        target = float(x.sum()) / math.sqrt(self.d)
        if not classes:
            return x, target + self.noise * rng.normal()
        right = rng.random() >= self.noise
        return x, 1.0 if (target > 0.0) == right else -1.0
