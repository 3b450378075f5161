"""`rue replay`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from rue.cli import options as o
from rue.cli.commands.serve import require_extra
from rue.cli.folding import columns, say
from rue.errors import SettingsError
from rue.models.file import save_model
from rue.outputs import require_not_read
from rue.reports.report import page, write_report

__all__ = ["replay"]


@o.command
def replay(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a service, which may be running.")],
    *,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Which of its models.")] = "default",
    upto: Annotated[
        int | None, typer.Option(min=1, metavar="RECORD", help="Stop after this record of the log.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="OUT", help="Write the model.")] = None,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="OUT.jsonl", help="Write the examples that were learnt, of which rue learn makes the model."
        ),
    ] = None,
    predictions: Annotated[
        str | None, typer.Option(metavar="OUT.csv", help="Write what was served, of which rue certify says the same.")
    ] = None,
    report_path: o.ReportPath = None,
) -> int:
    """Go through the log of a service again: report, certificate and model are those of the service, to the last bit.

    `rue replay clicks --report report.json`

    `rue replay clicks --export log.jsonl --predictions served.csv`
    """
    require_extra()
    from rue.serve.replaying import Export, replayed
    from rue.serve.snapshots import model_file
    from rue.serve.status import report_of

    started = time.monotonic()
    outputs = {"--model": model, "--export": export, "--predictions": predictions, "--report": report_path}
    o.require_outputs(outputs)
    _require_outside(folder, outputs)
    writer = None if export is None and predictions is None else Export(name, export, predictions)
    try:
        fold = replayed(folder, upto, writer)
        found = fold.named(name)
        summary = report_of(found, fold.races.get(found.number))
        if writer is not None:
            writer.finish()
    except BaseException:
        if writer is not None:
            writer.abandon()
        raise
    stored = model_file(found, copied=False)
    if model is not None and stored is not None:
        save_model(stored, model)
    write_report(summary, report_path)
    spent = {"read": 0.0, "learn": found.driver.seconds, "total": time.monotonic() - started}
    say(page({**summary, "seconds": spent}, "", columns()))
    say(f"service      {json.dumps(summary['service'])}")
    if writer is not None and export is not None and not found.past:
        say(f"the same model: {writer.command()}")
    return 0


def _require_outside(folder: str, outputs: Mapping[str, str | None]) -> None:
    """Refuse to write into the folder of a service, which may be running, or over one of its files elsewhere."""
    inside = Path(os.path.realpath(folder))
    for option, path in outputs.items():
        if path is not None and Path(os.path.realpath(path)).is_relative_to(inside):
            raise SettingsError(
                f"{option} {path} is in the folder of the service, which holds nothing but its log and its snapshots: "
                "choose another folder."
            )
    require_not_read(outputs, [file for file in inside.rglob("*") if file.is_file()])
