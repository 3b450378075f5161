"""Rounds in general (docs/theory.md, Q5), and what an opponent is: it sees the point, then reveals a convex loss.

A round is anything with `value(w)` and `subgradient(w)`. Two kinds say more of themselves: a `LinearRound` ⟨g, w⟩, and
an `ExampleRound`, whose loss is that of the prediction for x. Your own opponent is a subclass with `begin`, which
makes its state and returns the function that answers each move; randomness comes from `setting.rng`, so that games
can be repeated. One that plays distances ‖w − z_t‖ to random points:

>>> import numpy as np
>>> from rue.games import ConvexRound, LinearRound, Opponent, play
>>> from rue.learners import OGD
>>> class Distances(Opponent):
...     d, lipschitz = 2, 1.0
...     def begin(self, setting):
...         def reveal(move):
...             z = setting.rng.normal(size=2)
...             far = lambda w: float(np.linalg.norm(w - z))
...             return ConvexRound(far, lambda w: (w - z) / max(far(w), 1e-300))
...         return reveal
>>> play(OGD(domain="ball:2"), Distances(), rounds=100).regret_interval[1] <= 4 * 200**0.5
True

And one that plays linear losses, always uphill from where the learner stands:

>>> class Uphill(Opponent):
...     d, lipschitz = 1, 1.0
...     def begin(self, setting):
...         return lambda move: LinearRound([1.0 if move.point[0] >= 0 else -1.0])
>>> play(OGD(domain="interval:-1,1"), Uphill(), rounds=100).loss > 0
True
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from rue.declared import Declared
from rue.domains import Domain

if TYPE_CHECKING:
    from rue.games.game import Game

__all__ = ["ConvexRound", "ExampleRound", "Forced", "LinearRound", "Move", "Opponent", "Reveal", "Round", "Setting"]


class Round(Protocol):
    """A convex loss of the point: its value, and one subgradient, anywhere in the domain."""

    def value(self, w: Any, /) -> float: ...
    def subgradient(self, w: Any, /) -> Any: ...


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class LinearRound:
    """⟨g, w⟩, the loss of online linear optimisation.

    >>> LinearRound([1.0, 2.0]).value([3.0, -1.0])
    1.0

    docs/theory.md, Q5.
    """

    g: Any

    def value(self, w: Any) -> float:
        """⟨g, w⟩."""
        return float(np.dot(self.g, w))

    def subgradient(self, w: Any) -> Any:
        """g, whatever w is: an array of its own, which may be changed.

        >>> LinearRound([1.0, 2.0]).subgradient([3.0, -1.0])
        array([1., 2.])
        """
        return np.array(self.g, dtype=np.float64)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ExampleRound:
    """The example (x, y), to be scored by the loss that the opponent has named.

    >>> ExampleRound([1.0, 0.0], -1.0).y
    -1.0

    docs/theory.md, Q5.
    """

    x: Any
    y: float


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ConvexRound:
    """Any convex function of w, from its value and its subgradient as two functions.

    `play` tries the subgradient inequality at points played before and elsewhere in the set, and refuses a function
    that breaks it. `strongly_convex`, if told, is the round's μ_t: a learner with the step `strong` then takes 1/Σμ_i,
    and the inequality is tried with (μ_t/2)‖u − w‖² (A4, B22).

    >>> ConvexRound(lambda w: abs(w[0]), lambda w: [1.0 if w[0] > 0 else -1.0]).value([-2.0])
    2.0

    docs/theory.md, Q5.
    """

    value: Callable[[Any], float]
    subgradient: Callable[[Any], Any]
    strongly_convex: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Move:
    """What the opponent sees before it chooses (docs/theory.md, Q5).

    >>> Move(1, [0.0, 0.0], lambda x: 0.0).predict([1.0, 2.0])
    0.0
    """

    t: int
    """The round, from 1."""
    point: Any
    """w_t."""
    predict: Callable[[Any], float]
    """The learner's prediction for any x; it changes nothing."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """What is agreed before the first round (docs/theory.md, Q5).

    >>> from rue.domains import Ball
    >>> Setting(Ball(1), 2, None, 100, np.random.default_rng(0)).domain.diameter(2)
    2.0
    """

    domain: Domain
    """K, the learner's."""
    d: int
    """The number of coordinates."""
    loss: Any
    """The loss of the examples; the linear loss where rounds are functions of the point."""
    rounds: int
    """How many rounds will be played."""
    rng: np.random.Generator
    """Where all randomness comes from, so that a seed repeats a game."""


Reveal = Callable[[Move], Any]
"""Answers a move with a round."""


@dataclasses.dataclass(frozen=True)
class Forced:
    """What a theorem says of a game: a number, of what, and the words.

    >>> from rue.games import play
    >>> claim = play("perceptron", "margin:9").forced
    >>> claim.theorem, claim.quantity, claim.relation, float(claim)
    ('C1', 'mistakes', 'at least', 9.0)

    docs/theory.md, section 5.
    """

    theorem: str
    quantity: Literal["regret", "mistakes", "loss"]
    relation: Literal["at least", "at most", "exactly"]
    value: float
    """The number."""
    words: str
    in_expectation: bool = False
    """Whether it is true on average over the opponent's lots, not of every game."""

    def __float__(self) -> float:
        return float(self.value)


class Opponent(Declared):
    """The side that reveals the losses. Your own needs `d` and `begin`; `rue/games/opponents.py` begins with two.

    The rounds that `begin`'s function returns are examples where `loss` names one, and functions of the point where it
    is None. What an opponent forces is a fact about its own `begin`: a subclass that replaces it declares it anew.

    >>> from rue.games import play
    >>> class Push(Opponent):
    ...     d, lipschitz = 1, 1.0
    ...
    ...     def begin(self, setting):
    ...         return lambda move: LinearRound([1.0])
    >>> play("ogd:domain=ball:1", Push(), 100).comparator_loss
    (-100.0, -100.0)

    docs/theory.md, section 5.
    """

    FACTS = frozenset(["lipschitz", "lipschitz_on", "hindsight", "witness", "forced"])

    d: int | None = None
    """The number of coordinates; None takes the domain's, or 1."""
    loss: Any = None
    """The loss of its examples, or "own" for the learner's; None when its rounds are functions of the point."""
    lipschitz: float | None = None
    """A bound on the subgradients of its rounds, which the step 'theory' needs."""
    usual_rounds: int = 1000
    """How many rounds are played when none are asked for."""
    counts_mistakes: bool = False
    """Whether y·p ≤ 0 counts as a mistake whatever the loss."""

    def begin(self, setting: Setting) -> Reveal:
        """A fresh state, in the form of the function that answers each move.

        `setting` is what was agreed.

        >>> import numpy as np, rue
        >>> setting = Setting(rue.Ball(1), 2, None, 10, np.random.default_rng(0))
        >>> reveal = rue.OrthogonalAdversary(d=2).begin(setting)
        >>> reveal(Move(1, np.zeros(2), None)).g
        array([1., 0.])
        """
        raise NotImplementedError

    def lipschitz_on(self, domain: Domain) -> float | None:
        """The bound on the subgradients at points of a `domain`.

        >>> import rue
        >>> rue.OrthogonalAdversary(d=2).lipschitz_on(rue.Ball(1))
        1.0
        """
        return self.lipschitz

    def refuse(self, setting: Setting) -> None:
        """Raise the sentence a user needs if this `setting` makes no sense.

        >>> import rue
        >>> try:
        ...     rue.play(rue.OGD(domain="reals", step="fixed:1"), rue.FlipFlop())
        ... except rue.SettingsError as error:
        ...     print(error)
        FlipFlop: it is played on an interval, not on Reals(): give the learner a domain such as 'interval:-1,1'.
        """

    def hindsight(self, game: Game) -> Any:
        """inf over K of the total loss of the first t rounds, for every t, NaN where unknown; None leaves it open.

        `game` has the rounds that were played.

        >>> import rue
        >>> rue.play(rue.OGD(domain="ball:1"), rue.OrthogonalAdversary(d=2), rounds=4).comparator_loss[0] <= 0.0
        True
        """
        return None

    def witness(self, game: Game) -> Any:
        """The point the theorem compares with, if it names one.

        `game` is as for `hindsight`.

        >>> import rue
        >>> game = rue.play("perceptron", "margin:4")
        >>> game.opponent.witness(game).shape
        (4,)
        """
        return None

    def forced(self, game: Game) -> Forced | None:
        """What the theorem behind this opponent says of a game, if anything.

        `game` is as for `hindsight`.

        >>> import rue
        >>> print(rue.play("perceptron", "margin:9").forced.words)
        any deterministic learner makes at least 9 mistakes here, though a unit vector separates the data with margin
        1/√9
        """
        return None
