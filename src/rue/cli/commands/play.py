"""`rue play`."""

from __future__ import annotations

from typing import Annotated

import typer

from rue.cli import options as o
from rue.cli.folding import say
from rue.errors import SettingsError
from rue.games import play as played
from rue.registry import make, names

__all__ = ["play"]


@o.command
def play(
    learner: Annotated[str, typer.Argument(metavar="LEARNER", help=o.listed("learner", "ogd"))],
    opponent: Annotated[str, typer.Argument(metavar="ADVERSARY", help=o.listed("opponent", "orthogonal:5"))],
    *,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="How long; the opponent's usual length if not given.")
    ] = None,
    learning: Annotated[o.LearnerOptions, "loss domain step"],
    seed: Annotated[int, typer.Option(help="For opponents that draw lots.")] = 0,
    plot: Annotated[str | None, typer.Option(metavar="OUT.png|.svg", help="Draw regret against time.")] = None,
) -> int:
    """Play a learner against an opponent that sees each point before it chooses.

    `rue play ogd orthogonal:5 --domain ball:1 --rounds 10000`

    `rue play leader flip-flop --domain interval:-1,1 --loss linear`
    """
    o.require_outputs({"--plot": plot})
    given = {"loss": learning.loss, "domain": learning.domain, "step": learning.step}
    settings = {name: value for name, value in given.items() if value is not None}
    if not isinstance(opponent, str) or opponent.split(":")[0] not in names("opponent"):
        raise SettingsError(f"there is no opponent {opponent!r}: they are {', '.join(names('opponent'))}.")
    game = played(make("learner", learner, **settings), opponent, rounds, seed=seed)
    say(str(game))
    for bound in game.bounds:
        say(f"  {bound}")
    if plot is not None:
        game.plot(path=plot)
    return 1 if game.holds is False else 0
