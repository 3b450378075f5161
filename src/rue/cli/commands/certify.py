"""`rue certify`."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from rue import ledger as accounts
from rue.cli import options as o
from rue.cli.folding import say
from rue.domains import Ball
from rue.errors import DataError, SettingsError, shown
from rue.learners.gradient import require_loss
from rue.outputs import require_not_read
from rue.registry import make
from rue.regret.certificates.certificate import require_domain
from rue.regret.certificates.evidence import Evidence, open_evidence
from rue.regret.certificates.mapped import MappedSums, over_maps
from rue.reports.report import certificate_fields, certificate_report, write_report
from rue.reports.windows import windows_of_predictions, write_windows_csv
from rue.runs.class_weights import ClassWeights
from rue.runs.driver import NO_CERTIFICATE
from rue.streams import Block, Labels
from rue.streams.chunk import Chunk
from rue.streams.predictions import EACH, read_predictions
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
        "target positive class_weight format bits weight drop category text word_pairs cross interact id separator "
        "decimal day_first month_first max_line bad",
    ],
    radius: o.Radius = None,
    reading: Annotated[str, typer.Option("--as", help="What the numbers are: score or probability.")] = "score",
    witnesses: Annotated[str, typer.Option(help="Radii of witnesses that prove more, separated by commas.")] = "",
    units: Annotated[str, typer.Option(help="raw, or largest: features in units of their largest magnitude.")] = "raw",
    maps: Annotated[
        bool,
        typer.Option("--maps", help="Certify against models over bins, pairs and random trees of the columns too."),
    ] = False,
    report_path: o.ReportPath = None,
    windows: o.WindowsPath = None,
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
    if maps and radius is None:
        raise SettingsError("certify: --maps is about models of a norm: give --radius.")
    outputs = {"--report": report_path, "--windows": windows}
    o.require_outputs(outputs)
    scoring = make("loss", loss)
    require_loss(scoring, "certify")
    K = Ball(radius) if radius is not None else require_domain(make("domain", learning.domain))
    stream = data.open(paths)
    require_not_read(outputs, [*stream.paths, predictions])
    p = _scores(predictions, reading)
    radii = [float(part) for part in witnesses.split(",")] if witnesses else None
    evidence = open_evidence(scoring, units=units, witnesses=radii, domain=K)
    mapped = MappedSums() if maps else None
    scored = _Scored(predictions, p, evidence, data, learning.intercept, mapped)
    for chunk in settle(stream.reads(), scored.begin, scoring.task, data.positive, stops_at_bad=data.bad == "stop"):
        scored.enter(chunk)
    if scored.rows != p.size:
        raise DataError(f"{predictions} has {p.size:,} predictions, but there are {scored.rows:,} rows{EACH}.")
    certificate = evidence.certificate(K, units, left_out=scored.left_out + scored.skipped)
    sums: Any = evidence.ledger.sums
    summary = certificate_report(
        certificate, int(sums[accounts.EXAMPLES]), scored.skipped, float(sums[accounts.WEIGHT]), repr(scoring)
    )
    over = None
    if mapped is not None and radius is not None:
        own = evidence.certificate(K, units, left_out=certificate.left_out, thorough=False)
        over = over_maps(own, mapped.gradients, scored.rows, radius, scoring.nonnegative)
    summary["mapped_certificate"] = None if over is None else certificate_fields(over)
    summary["unlabelled"] = scored.unlabelled
    summary["windows"] = windows_of_predictions(evidence, K, units, learning.intercept)
    write_report(summary, report_path)
    write_windows_csv(summary["windows"], windows)
    say(str(certificate))
    if over is not None:
        say(f"\n{over}")
    return 0


class _Scored:
    """The rows of the data with the predictions for them, entered into the evidence as they are read."""

    def __init__(
        self, path: str, predictions: Any, evidence: Evidence, data: o.DataOptions, intercept: bool, mapped: Any
    ) -> None:
        self.path, self.predictions, self.evidence, self.data = path, predictions, evidence, data
        self.intercept, self.mapped = intercept, mapped
        self.labels: Labels | None = None
        self.class_weights = ClassWeights.make(data.class_weight)
        self.rows = 0
        """How many rows have been read, those that are left out among them."""
        self.left_out, self.skipped, self.unlabelled = 0, 0, 0

    def begin(self, y: Any) -> None:
        """Settle what the labels mean, by the first ones."""
        self.labels = Labels.under(self.evidence.loss, y, self.data.positive)
        if self.class_weights is not None:
            self.class_weights.require(self.labels)

    def enter(self, chunk: Chunk) -> None:
        """Score what was read by the predictions for it."""
        if chunk.first_bad and self.data.bad == "stop":
            raise chunk.error(chunk.first_bad)
        self.skipped += len(chunk.bad)
        block, before = chunk.block, self.rows
        part = self.predictions[before : before + len(block) + len(chunk.bad)]
        if part.size != len(block) + len(chunk.bad):
            many = self.predictions.size
            raise DataError(f"{self.path} has {many:,} predictions, but there are more rows{EACH}.")
        self.rows += part.size
        if not len(block):
            return
        if block.y is None:
            raise DataError(f"{chunk.name} has no labels: nothing can be scored.")
        part = np.delete(part, [row.place + i for i, row in enumerate(chunk.bad)])
        missing = block.unlabelled
        if missing is not None:
            self.unlabelled += int(np.count_nonzero(missing))
            block, part = block.labelled(), part[~missing]
        if len(block):
            self._add(block, part)

    def _add(self, block: Block, predictions: Any) -> None:
        """Examples that have labels."""
        assert self.labels is not None
        self.labels = self.labels.extended(block.y)
        if self.class_weights is not None:
            block = self.class_weights.weighted(block, self.labels)
            self.class_weights.count(self.labels.encode(block.y), block.column_of_weights())
        encoded = Block(block.X, self.labels.encode(block.y), block.weights)
        self.left_out += self.evidence.enter(encoded, predictions, self.intercept, self.rows - len(block), self.mapped)


def _scores(path: str, reading: str) -> Any:
    """The scores in a file of predictions, NaN where there is none."""
    p = read_predictions(path, NO_CERTIFICATE)
    if reading == "probability":
        if p.size and not (np.nanmin(p) >= 0.0 and np.nanmax(p) <= 1.0):
            raise DataError(f"{path}: probabilities lie between 0 and 1; scores need --as score.")
        with np.errstate(divide="ignore"):
            p = np.clip(np.log(p) - np.log1p(-p), -700.0, 700.0)
    return p
