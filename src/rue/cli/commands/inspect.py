"""`rue inspect`."""

from __future__ import annotations

from typing import Annotated

import typer

from rue.cli.app import app
from rue.cli.folding import say
from rue.models.file import load_model
from rue.outputs import require_distinct, require_not_read, require_writable
from rue.pictures.figures import require_picture
from rue.reports.inspection import describe

__all__ = ["inspect"]


@app.command()
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or a checkpoint.")],
    most: Annotated[int, typer.Option("--weights", min=0, help="How many of the largest weights to show.")] = 20,
    plot: Annotated[
        str | None, typer.Option(metavar="OUT.png|.svg", help="Draw the race of a mixture's members.")
    ] = None,
) -> int:
    """What a model is: its settings, size, members over time, largest weights, certificate and history.

    `rue inspect clicks.rue`
    """
    if plot is not None:
        require_writable(plot)
        require_distinct({"--plot": plot})
        require_not_read({"--plot": plot}, [model])
        require_picture(plot)
    loaded = load_model(model)
    if plot is not None:
        loaded.plot_members(plot)
    say(describe(loaded, most))
    return 0
