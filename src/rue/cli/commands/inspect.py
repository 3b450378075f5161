"""`rue inspect`."""

from __future__ import annotations

from typing import Annotated

import typer

from rue.cli import options as o
from rue.cli.app import app
from rue.cli.fleets import inspect_fleet
from rue.cli.folding import say
from rue.errors import SettingsError
from rue.fleets import Fleet
from rue.fleets.file import load_any
from rue.outputs import require_not_read
from rue.pictures.effects import draw_effects
from rue.pictures.figures import require_picture
from rue.reports.explaining import effects_of
from rue.reports.inspection import describe

__all__ = ["inspect"]


@app.command()
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or a checkpoint.")],
    most: Annotated[int, typer.Option("--weights", min=0, help="How many of the largest weights to show.")] = 20,
    plot: Annotated[
        str | None, typer.Option(metavar="OUT.png|.svg", help="Draw the race of a mixture's members.")
    ] = None,
    effects: Annotated[
        bool, typer.Option("--effects", help="Which columns and pairs move the predictions of a learner over maps.")
    ] = False,
    plot_effects: Annotated[
        str | None, typer.Option("--plot-effects", metavar="OUT.png|.svg", help="Draw them.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Of a model for every key (--by): the model of this one.")
    ] = None,
) -> int:
    """What a model is: its settings, size, members over time, largest weights, certificate and history.

    `rue inspect clicks.rue`
    """
    outputs = {"--plot": plot, "--plot-effects": plot_effects}
    o.require_outputs(outputs)
    if plot_effects is not None:
        require_picture(plot_effects)
    require_not_read(outputs, [model])
    loaded = load_any(model)
    if isinstance(loaded, Fleet):
        if effects or plot_effects is not None:
            raise SettingsError("--effects are of one model: this file has a model for every key.")
        if plot is not None:
            raise SettingsError("--plot draws the members of one model: this file has a model for every key.")
        inspect_fleet(loaded, key, most)
        return 0
    if key is not None:
        raise SettingsError(f"--key {key}: {model} holds one model, not one for every key.")
    if plot is not None:
        loaded.plot_members(plot)
    say(describe(loaded, most))
    if effects or plot_effects is not None:
        found = effects_of(loaded)
        if effects:
            say("\n" + "\n".join(line if line.isprintable() else repr(line) for line in str(found).split("\n")))
        if plot_effects is not None:
            draw_effects(found, plot_effects)
    return 0
