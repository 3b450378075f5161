"""`rue certify`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rue import ledger as accounts
from rue.cli import options as o
from rue.cli.folding import say
from rue.domains import Ball
from rue.errors import DataError, SettingsError, shown
from rue.learners.gradient import require_loss
from rue.outputs import require_distinct, require_not_read, require_writable
from rue.registry import make
from rue.regret.certificates.certificate import require_domain
from rue.regret.certificates.evidence import open_evidence
from rue.reports.report import certificate_report, write_report
from rue.runs.class_weights import ClassWeights
from rue.runs.driver import NO_CERTIFICATE
from rue.streams import Block, Labels
from rue.streams.settling import settle

__all__ = ["certify"]


@o.command
def certify(
    paths: o.DataPaths,
    predictions: Annotated[
        str, typer.Option(help="A CSV with a column `prediction`, or one number a line: one for each row of the data.")
    ],
    loss: Annotated[str, typer.Option(help="The loss that scores them.")],
    learning: Annotated[o.LearnerOptions, "domain no_intercept"],
    data: Annotated[
        o.DataOptions,
        "target positive class_weight format bits weight drop category text id separator decimal day_first month_first "
        "max_line bad",
    ],
    radius: o.Radius = None,
    reading: Annotated[str, typer.Option("--as", help="What the numbers are: score or probability.")] = "score",
    witnesses: Annotated[str, typer.Option(help="Radii of witnesses that prove more, separated by commas.")] = "",
    units: Annotated[str, typer.Option(help="raw, or largest: features in units of their largest magnitude.")] = "raw",
    report_path: o.ReportPath = None,
    quiet: o.Quiet = False,
) -> int:
    """Certify the regret of any model from its predictions, made before each example was learnt.

    `vw -d train.vw --loss_function logistic -p p.txt`, then
    `rue certify train.vw --predictions p.txt --loss logistic --radius 10`
    """
    if reading not in ("score", "probability"):
        raise SettingsError(f"--as is score or probability, not {shown(reading)}.")
    if (radius is None) == (learning.domain is None):
        raise SettingsError("certify: say against which models: --radius 10, or a --domain.")
    require_writable(report_path)
    require_distinct({"--report": report_path})
    scoring = make("loss", loss)
    require_loss(scoring, "certify")
    K = Ball(radius) if radius is not None else require_domain(make("domain", learning.domain))
    stream = data.open(paths)
    require_not_read({"--report": report_path}, [*stream.paths, predictions])
    p = _scores(predictions, reading)
    radii = [float(part) for part in witnesses.split(",")] if witnesses else None
    evidence = open_evidence(scoring, units=units, witnesses=radii, domain=K)
    labels: Labels | None = None
    class_weights = ClassWeights.make(data.class_weight)
    before, left_out, skipped, unlabelled = 0, 0, 0, 0

    def begin(y: Any) -> None:
        nonlocal labels
        labels = Labels.under(scoring, y, data.positive)
        if class_weights is not None:
            class_weights.require(labels)

    for chunk in settle(stream.reads(), begin, scoring.task, data.positive, stops_at_bad=data.bad == "stop"):
        if chunk.first_bad and data.bad == "stop":
            raise chunk.error(chunk.first_bad)
        skipped += len(chunk.bad)
        block = chunk.block
        part = p[before : before + len(block) + len(chunk.bad)]
        if part.size != len(block) + len(chunk.bad):
            raise DataError(f"{predictions} has {p.size:,} predictions, but there are more rows{_EACH}.")
        before += part.size
        if not len(block):
            continue
        if block.y is None:
            raise DataError(f"{chunk.name} has no labels: nothing can be scored.")
        part = np.delete(part, [row.place + i for i, row in enumerate(chunk.bad)])
        missing = block.unlabelled
        if missing is not None:
            unlabelled += int(np.count_nonzero(missing))
            block, part = block.labelled(), part[~missing]
        if not len(block):
            continue
        assert labels is not None
        labels = labels.extended(block.y)
        if class_weights is not None:
            block = class_weights.weighted(block, labels)
            class_weights.count(labels.encode(block.y), block.column_of_weights())
        left_out += evidence.enter(
            Block(block.X, labels.encode(block.y), block.weights), part, learning.intercept, before - len(block)
        )
    if before != p.size:
        raise DataError(f"{predictions} has {p.size:,} predictions, but there are {before:,} rows{_EACH}.")
    certificate = evidence.certificate(K, units, left_out=left_out + skipped)
    sums: Any = evidence.ledger.sums
    summary = certificate_report(
        certificate, int(sums[accounts.EXAMPLES]), skipped, float(sums[accounts.WEIGHT]), repr(scoring)
    )
    summary["unlabelled"] = unlabelled
    write_report(summary, report_path)
    say(str(certificate))
    return 0


_EACH = ', one for each row of the data, "" for a row without one'


def _scores(path: str, reading: str) -> Any:
    """The scores in a file of predictions, NaN where there is none."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"there is no file {path}.") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not text: give one number a line.") from None
    numbers = []
    for number, word in _words(path, text):
        try:
            numbers.append(float(word) if word else np.nan)
        except ValueError:
            raise DataError(f"{path}, line {number}: {word[:40]!r} is not a number.") from None
    p = np.array(numbers)
    if reading == "probability":
        if p.size and not (np.nanmin(p) >= 0.0 and np.nanmax(p) <= 1.0):
            raise DataError(f"{path}: probabilities lie between 0 and 1; scores need --as score.")
        with np.errstate(divide="ignore"):
            p = np.clip(np.log(p) - np.log1p(-p), -700.0, 700.0)
    return p


def _words(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each prediction: the column `prediction`, or the first word of each line if none has a name."""
    first = next(iter(text.split("\n", 1)[0].split()), "")
    if first.strip('"') == "" or _is_number(first):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield number, line.split()[0].strip('"')
        return
    rows = csv.reader(io.StringIO(text, newline=""))
    head = [name.strip().lower() for name in next(rows)]
    if "prediction" not in head and len(head) > 2:
        shown = ", ".join(head[:6]) + ", …" * (len(head) > 6)
        raise DataError(f"{path} has no column 'prediction', but {shown}: {NO_CERTIFICATE}.")
    place = head.index("prediction") if "prediction" in head else len(head) - 1
    for row in rows:
        if row and len(row) <= place:
            raise DataError(f"{path}, line {rows.line_num}: there is no {head[place]!r}.")
        if row:
            yield rows.line_num, row[place].strip()


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
