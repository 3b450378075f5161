"""Games (docs/theory.md, section 5): `play` a learner against an opponent that sees each point before it chooses.

What an opponent's theorem says it forces is part of the result, and so is what the learner's theorem allows:

>>> import rue
>>> game = rue.play(rue.FollowTheLeader("linear", "interval:-1,1"), "flip-flop", rounds=100)
>>> game.loss, game.forced.words, game.holds
(99.0, 'follow the leader pays 99, which is T − 1 − w_1/2, where always playing 0 pays nothing', True)
"""

from rue.games.absolute import AbsoluteAdversary
from rue.games.adversaries import (
    FlipFlop,
    MarginAdversary,
    NumberGuessing,
    OrthogonalAdversary,
    RandomSigns,
    Stochastic,
)
from rue.games.distribution import NumberFromDistribution
from rue.games.game import Game
from rue.games.many import Estimate, Games, play_many
from rue.games.opponents import ConvexRound, ExampleRound, Forced, LinearRound, Move, Opponent, Round, Setting
from rue.games.rounds import play
from rue.games.same import SameFunction
from rue.registry import import_modules

__all__ = [
    "AbsoluteAdversary",
    "ConvexRound",
    "Estimate",
    "ExampleRound",
    "FlipFlop",
    "Forced",
    "Game",
    "Games",
    "LinearRound",
    "MarginAdversary",
    "Move",
    "NumberFromDistribution",
    "NumberGuessing",
    "Opponent",
    "OrthogonalAdversary",
    "RandomSigns",
    "Round",
    "SameFunction",
    "Setting",
    "Stochastic",
    "play",
    "play_many",
]

import_modules(__name__, __path__)
