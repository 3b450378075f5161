"""`rue weights`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rue.cli import options as o
from rue.cli.app import app
from rue.cli.standard import writing_stdout
from rue.models.file import load_model
from rue.outputs import require_not_read, require_standard_output
from rue.reports.explaining import weights_of
from rue.streams.labels import plain

__all__ = ["weights"]


@app.command()
def weights(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or a checkpoint.")],
    out: Annotated[
        str | None, typer.Option("-o", "--out", metavar="OUT.csv|.parquet", help="Where to; stdout if not given.")
    ] = None,
) -> int:
    """The weights of a model by the names of features, as a plain table for use elsewhere, without those that are 0.

    `rue weights clicks.rue --out weights.parquet`
    """
    if out is None:
        require_standard_output()
    o.require_outputs({"--out": out})
    require_not_read({"--out": out}, [model])
    loaded = load_model(model)
    labels, listed = loaded.labels, weights_of(loaded)
    if out is not None:
        listed.save(out)
    else:
        import pyarrow.csv

        with writing_stdout():
            pyarrow.csv.write_csv(listed.table(), sys.stdout.buffer)
    if labels is not None and labels.task == "classify":
        print(f"sums above 0 mean {plain(labels.positive)!r}, those below {plain(labels.negative)!r}", file=sys.stderr)
    if loaded.background is not None:
        print(
            "these are the weights of the features as they are, one stage of several: rue inspect --effects says what "
            "moves the predictions of all.",
            file=sys.stderr,
        )
    return 0
