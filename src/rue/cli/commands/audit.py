"""`rue audit`."""

from __future__ import annotations

import time
from typing import Any

from rue.audit import audit as audited
from rue.cli import options as o
from rue.cli.app import app
from rue.cli.folding import columns, say
from rue.cli.interrupts import Interruptible
from rue.cli.progress import Progress
from rue.cli.running import INTERRUPTED, Running
from rue.errors import DataError
from rue.outputs import require_apart, require_not_read, require_writable
from rue.reports.report import page, report, write_report
from rue.runs.driver import Driver
from rue.runs.learn import PredictionLog
from rue.streams import Block
from rue.streams.files.cutting import MAX_LINE

__all__ = ["audit"]


@app.command()
def audit(
    data: o.DataPaths,
    target: o.Target = None,
    task: o.Task = "auto",
    learner: o.LearnerSpec = None,
    loss: o.LossSpec = None,
    domain: o.DomainSpec = None,
    step: o.StepSpec = None,
    budget: o.Budget = None,
    radius: o.Radius = None,
    told: o.Format = None,
    bits: o.Bits = 20,
    no_intercept: o.NoIntercept = False,
    weight: o.WeightColumn = None,
    drop: o.Drop = "",
    category: o.Category = "",
    separator: o.Separator = None,
    max_line: o.MaxLine = MAX_LINE,
    bad: o.Bad = "stop",
    report_path: o.ReportPath = None,
    quiet: o.Quiet = False,
) -> int:
    """Learn, find the best model in hindsight, and check every inequality that theory promises.

    The stream is kept in memory. Exits with 1 if an inequality fails: then rue, or the theory, is wrong.

    `rue audit small.csv --target y --learner ogd --loss hinge --domain ball:10`
    """
    started = time.monotonic()
    require_writable(report_path)
    require_apart({"--report": report_path})
    made, decided = o.learner_from(learner, loss, domain, step, not no_intercept, budget)
    task = decided if decided != "auto" else task
    going = Driver(made, task=task, bad=bad, intercept=not no_intercept, budget=budget)
    stream = o.open_data(data, told, target, weight, drop, category, separator, bits, max_line)
    require_not_read({"--report": report_path}, stream.paths)
    blocks: list[Block] = []
    kept = PredictionLog()

    def record(block: Block, made: Any) -> None:
        blocks.append(block)
        kept.add(going, block, made)

    running = Running(stream, going, Progress(quiet, radius), record=record)
    with Interruptible() as asked:
        why = running.run(asked.stop)
    if why:
        raise DataError("stopped before the end: an audit needs the whole stream." if why == INTERRUPTED else why)
    if not going.examples:
        raise DataError("there are no examples to learn.")
    found = audited(kept.run(going, stream), blocks, radius=radius)
    said = report(going, radius=radius, audit=found, total=time.monotonic() - started)
    write_report(said, report_path)
    say(page(said, width=columns()))
    return 0 if found.passed else 1
