"""`rue inspect`."""

from __future__ import annotations

from typing import Annotated

import typer

from rue.cli.app import app
from rue.cli.folding import say
from rue.inspection import describe
from rue.model_file import load_model

__all__ = ["inspect"]


@app.command()
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or a checkpoint.")],
    most: Annotated[int, typer.Option("--weights", min=0, help="How many of the largest weights to show.")] = 20,
) -> int:
    """What a model is: its settings, size, largest weights with their names, certificate and history.

    `rue inspect clicks.rue`
    """
    say(describe(load_model(model), most))
    return 0
