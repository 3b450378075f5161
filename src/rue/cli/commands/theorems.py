"""`rue theorems`."""

from __future__ import annotations

from typing import Annotated

import typer

from rue.cli.app import app
from rue.cli.folding import say

__all__ = ["theorems"]


@app.command()
def theorems(
    which: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="B3, C2, …; all if none is named.")
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Play each out on data made for it.")] = False,
) -> int:
    """Every theorem that rue stands on: its statement, where the notes have it, and what was misprinted.

    `rue theorems B3 C2 --run`
    """
    from rue.errors import SettingsError
    from rue.proofs import theorems as listed

    known = {theorem.id: theorem for theorem in listed()}
    for name in which or []:
        if name not in known:
            raise SettingsError(f"there is no theorem {name!r}: they are {', '.join(known)}.")
    failed = 0
    for theorem in [known[name] for name in which] if which else list(known.values()):
        say(f"{theorem.id:4} {theorem.statement}\n     {theorem.source}")
        if theorem.misprint:
            say(f"     misprint: {theorem.misprint}")
        if run:
            proof = theorem.run()
            failed += not proof.holds
            say(f"     {'holds' if proof.holds else 'FAILS'}: {proof.words}")
    return 1 if failed else 0
