"""`rue audit`."""

from __future__ import annotations

import time
from typing import Any

from rue.audit import audit as audited
from rue.cli import options as o
from rue.cli.folding import columns, say
from rue.cli.interrupts import Interruptible
from rue.cli.progress import Progress
from rue.cli.running import INTERRUPTED, Running
from rue.compiled import compile_seconds
from rue.errors import DataError
from rue.outputs import require_not_read
from rue.reports.report import page, report, write_report
from rue.runs.prediction_log import PredictionLog
from rue.streams import Block

__all__ = ["audit"]


@o.command
def audit(
    paths: o.DataPaths,
    data: o.DataOptions,
    learning: o.LearnerOptions,
    radius: o.Radius = None,
    report_path: o.ReportPath = None,
    quiet: o.Quiet = False,
) -> int:
    """Learn, find the best model in hindsight, and check every inequality that theory promises.

    The stream is kept in memory. Exits with 1 if an inequality fails: then rue, or the theory, is wrong.

    `rue audit small.csv --target y --learner ogd --loss hinge --domain ball:10`
    """
    started = time.monotonic()
    o.require_outputs({"--report": report_path})
    driver = learning.drive(data)
    stream = data.open(paths)
    require_not_read({"--report": report_path}, stream.paths)
    blocks: list[Block] = []
    log = PredictionLog()

    def record(block: Block, predictions: Any) -> None:
        blocks.append(block)
        log.add(driver, block, predictions)

    running = Running(stream, driver, Progress(quiet, radius), record=record)
    with Interruptible() as asked:
        why = running.run(asked.stop)
    if why:
        raise DataError("stopped before the end: an audit needs the whole stream." if why == INTERRUPTED else why)
    if not driver.examples:
        raise DataError("there are no examples to learn.")
    result = audited(log.run(driver, stream), blocks, radius=radius)
    spent: dict[str, Any] = {"total": time.monotonic() - started, "compiling": compile_seconds()}
    summary = report(driver, radius=radius, audit=result, columns=stream.columns, **spent)
    write_report(summary, report_path)
    say(page(summary, width=columns()))
    return 0 if result.passed else 1
