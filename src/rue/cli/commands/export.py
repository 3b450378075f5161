"""`rue export`."""

from __future__ import annotations

from typing import Annotated

import typer

from rue.cli import options as o
from rue.cli.app import app
from rue.cli.standard import writing_stdout
from rue.errors import SettingsError
from rue.exports.export import exported, form_of
from rue.outputs import require_not_read, require_standard_output, write_file

__all__ = ["export"]


@app.command()
def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or a checkpoint.")],
    to: Annotated[
        str | None, typer.Option("--to", help="onnx, json, sql or python; by default the suffix of --out says it.")
    ] = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", metavar="OUT", help="Where to; stdout if not given.")
    ] = None,
    table: Annotated[str, typer.Option(metavar="NAME", help="The table that the view of an SQL script reads.")] = (
        "examples"
    ),
) -> int:
    """Write the model that stays when learning stops for use without rue: ONNX, JSON, SQL, or a Python program.

    `rue export clicks.rue --to sql --out clicks.sql`
    """
    form = form_of(out, to)
    if out is None and form == "onnx":
        raise SettingsError("an ONNX graph is not text: say where to, --out FILE.onnx.")
    if out is None:
        require_standard_output()
    o.require_outputs({"--out": out})
    require_not_read({"--out": out}, [model])
    content = exported(model, form, table)
    if out is not None:
        write_file(out, content)
    else:
        with writing_stdout():
            print(content.decode(), end="")
    return 0
