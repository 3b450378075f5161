"""Games (docs/theory.md, section 5): `play` a learner against an opponent that sees each point before it chooses."""

from rue.games.adversaries import (
    FlipFlop,
    MarginAdversary,
    NumberGuessing,
    OrthogonalAdversary,
    RandomSigns,
    Stochastic,
)
from rue.games.game import Game
from rue.games.opponents import ConvexRound, ExampleRound, Forced, LinearRound, Move, Opponent, Round, Setting
from rue.games.rounds import play
from rue.registry import import_modules

__all__ = [
    "ConvexRound",
    "ExampleRound",
    "FlipFlop",
    "Forced",
    "Game",
    "LinearRound",
    "MarginAdversary",
    "Move",
    "NumberGuessing",
    "Opponent",
    "OrthogonalAdversary",
    "RandomSigns",
    "Round",
    "Setting",
    "Stochastic",
    "play",
]

import_modules(__name__, __path__)
