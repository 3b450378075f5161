"""`rue race`."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from rue.cli import options as o
from rue.cli.interrupts import Interruptible
from rue.cli.progress import Lines
from rue.cli.standard import writing_stdout
from rue.cli.waiting import Waiting
from rue.errors import BadExample, DataError
from rue.outputs import require_not_read
from rue.race.peers import LIMIT
from rue.race.race import Racing
from rue.reports.report import write_report
from rue.streams.chunk import BadRow, Chunk
from rue.streams.data import Data
from rue.streams.settling import settle

__all__ = ["race"]


@o.command(
    epilog="To see what a learner costs and what it brings: `rue race clicks.csv --target clicked`, then "
    "`rue race clicks.csv --target clicked --learners mixture,ogd:step=sqrt:0.5,vw --plot race.png`."
)
def race(
    paths: o.DataPaths,
    *,
    learners: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="mixture, adagrad, ogd, adaptive, perceptron, …, and vw, river, sklearn (the last two with their own "
            "scalers). If not given: mixture, adagrad, ogd and those of the three that are installed. Of more than two "
            "classes: mixture and the three.",
            rich_help_panel="Learner",
        ),
    ] = None,
    learning: Annotated[o.LearnerOptions, "loss budget no_intercept"],
    limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.0,
            help="Stop vw, river or sklearn after so many seconds of its own work; 0 for no limit.",
            rich_help_panel="Learner",
        ),
    ] = LIMIT,
    radius: Annotated[float, typer.Option(help="Certify against every linear model of this norm at most.")] = 10.0,
    data: o.DataOptions,
    report_path: o.ReportPath = None,
    plot: Annotated[
        str | None, typer.Option(metavar="OUT.png|.svg", help="Draw the risk of each against time.")
    ] = None,
    quiet: o.Quiet = False,
) -> int:
    """Learners side by side on your stream in one reading: risk, error, time and certified regret of each.

    With more than two classes, under log loss, there is no certificate.

    `rue race clicks.csv --target clicked`

    `rue race day.vw --learners mixture,ogd,vw --report race.json --plot race.png`
    """
    data.require_task()
    outputs = {"--report": report_path, "--plot": plot}
    o.require_outputs(outputs)
    racing = Racing(
        None if learners is None else [one.strip() for one in _split(learners) if one.strip()],
        loss=learning.loss,
        task=data.task,
        radius=radius,
        bad=data.bad,
        intercept=learning.intercept,
        budget=learning.budget,
        limit=limit or None,
        positive=data.positive,
        class_weight=data.class_weight,
    )
    stream = data.open(paths)
    require_not_read(outputs, stream.paths)
    with Interruptible() as asked:  # Ctrl-C is held back until everything is saved
        try:
            progress = _Progress(quiet)
            with Waiting(racing, progress.tell):
                _run(racing, stream, asked.stop, progress)
            interrupted = asked.by is not None
            result = racing.finish()
        except BaseException:
            racing.abandon()
            raise
        write_report(result.report(), report_path)
        if plot is not None:
            result.plot(path=plot)
        with writing_stdout():
            typer.echo(result.table())
            if interrupted:
                typer.echo("\nstopped by Ctrl-C: this is true of what was learnt until then")
    return 130 if interrupted else 0


def _split(text: str) -> list[str]:
    """Specs at commas; a part that begins with `key=`, or with a number, belongs to the spec before it."""
    parts: list[str] = []
    for part in text.split(","):
        name = part.split(":")[0]
        if parts and ("=" in name or not name.strip()[:1].isalpha()):
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    return parts


def _run(racing: Racing, stream: Data, stop: threading.Event, progress: _Progress) -> None:
    loss_task = racing.task if racing.loss is None else racing.loss.task
    stops = racing.bad == "stop"
    for chunk in settle(stream.reads(stop), racing.begin, loss_task, racing.positive, stops_at_bad=stops):
        wrong = chunk.first_bad
        if wrong and racing.bad == "stop":
            raise DataError(f"{str(chunk.error(wrong)).rstrip('.')} (--bad skip passes over it).")
        racing.skipped += len(chunk.bad)
        if len(chunk.block):
            _learn(racing, chunk, stop, progress)
        if stop.is_set():
            break
    progress.done(racing)


def _learn(racing: Racing, chunk: Chunk, stop: threading.Event, progress: _Progress) -> None:
    def after(now: Racing) -> bool:
        progress.update(now)
        return not stop.is_set()

    try:
        racing.learn(chunk.block, after)
    except BadExample as error:
        raise chunk.error(BadRow(error.row, int(chunk.lines[error.row]), "", error.why)) from None


class _Progress:
    """The risk of each learner so far: live on a terminal, elsewhere a row at 1, 2, 4, 8, … examples."""

    def __init__(self, quiet: bool) -> None:
        self.lines, self.last, self.headed = Lines(quiet), -1, False

    def update(self, racing: Racing) -> None:
        if self.lines.quiet:
            return
        if not self.headed:
            self.headed = True
            names = "".join(f" {lane.name[:11]:>11}" for lane in racing.lanes)
            self.lines.write(f"{'examples':>12}{names} {'seconds':>8}")
        if self.lines.live:
            self.lines.rewrite(lambda: self._row(racing))
        elif self.lines.doubled(racing.seen):
            self._line(racing)

    def tell(self, sentence: str) -> None:
        if not self.lines.quiet:
            self.lines.write(("\r\x1b[K" if self.lines.live else "") + sentence)

    def done(self, racing: Racing) -> None:
        self.lines.clear()
        if not self.lines.live and not self.lines.quiet and racing.seen != self.last:
            self._line(racing)

    def _line(self, racing: Racing) -> None:
        self.last = racing.seen
        self.lines.write(self._row(racing))

    def _row(self, racing: Racing) -> str:
        risks = [None if lane.broken else lane.risk for lane in racing.lanes]
        shown = "".join(f" {'–' if risk is None else format(risk, '.6g'):>11}" for risk in risks)
        return f"{racing.seen:>12,}{shown} {self.lines.seconds:>8.1f}"
