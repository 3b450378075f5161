"""`rue learn --shards`: the options, the progress, and the run."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TextIO

import typer

from rue.cli import options as o
from rue.cli.folding import columns, say
from rue.cli.interrupts import Interruptible
from rue.cli.progress import Lines
from rue.cli.resuming import require_same_settings
from rue.cli.running import tried
from rue.cluster.executors import Outcome
from rue.cluster.rounds import Standing
from rue.cluster.sharded import Sharded, Watcher, learn_sharded
from rue.errors import DataError, SettingsError
from rue.learners import Learner
from rue.models.file import load_model, save_model
from rue.reports.report import page, write_report
from rue.reports.windows import write_windows_csv
from rue.runs.driver import NUMBERS, Driver
from rue.runs.evaluation import evaluate

__all__ = ["Progress", "Sharding", "learn_in_shards"]

_HEAD = f"{'examples':>12} {'rounds':>7} {'risk':>11} {'since last':>11} {'slowest':>12} {'seconds':>8}"
IN_SEQUENCE = (
    "--passes",
    "--predictions",
    "--plot",
    "--holdout",
    "--interval",
    "--alarm",
    "--expert",
    "--calibrate",
    "--expert-column",
    "--lags",
    "--bins",
)
"""The options that need the examples in one sequence, which shards are not."""
LINEAR = (
    "shards learn the linear mixture: over maps (--maps) they lost 4 to 38 % less on two streams, but each merge takes "
    "longer"
)
"""Said where no learner was asked for, since one pass would have been over maps."""


@dataclasses.dataclass(frozen=True)
class Sharding:
    """How data are learnt in parts side by side."""

    shards: Annotated[
        int | None,
        typer.Option(min=1, help="Learn the data in so many parts side by side, merged after each round.", metavar="M"),
    ] = None
    on: Annotated[
        str,
        typer.Option(
            help="Who learns the shards: local (processes of this machine), inline (this process), ray, ray:HOST:PORT "
            "or ray://HOST:PORT. The model is the same.",
        ),
    ] = "local"
    workers: Annotated[
        int | None, typer.Option(min=1, help="How many processes; by default one a core. The model is the same.")
    ] = None
    round_: Annotated[
        int | None,
        typer.Option(
            "--round", min=1, metavar="N", help="Examples of a shard between two merges at most; 262144 if not given."
        ),
    ] = None

    def require_shards(self) -> None:
        """Refuse options that only say something about shards where there are none."""
        given = {"--on": self.on != "local", "--workers": self.workers is not None, "--round": self.round_ is not None}
        if self.shards is None and any(given.values()):
            raise SettingsError(f"{next(name for name in given if given[name])} is about shards: say --shards M too.")

    def require_possible(self, given: set[str]) -> None:
        """Refuse options that need the examples in one sequence."""
        if others := [option for option in IN_SEQUENCE if option in given]:
            raise SettingsError(f"{others[0]} needs one sequence of examples: leave it out, or --shards.")


class Progress(Watcher):
    """Shows each merge on stderr: a row whenever the number of examples has doubled, on a terminal a live line.

    The live line has the rows that each shard has read, as far as there is room.
    """

    def __init__(self, quiet: bool, stop: threading.Event, to: TextIO | None = None) -> None:
        self.lines, self.stop = Lines(quiet, to), stop
        self.before = (0.0, 0.0)
        """Σ weight·loss and Σ weight at the last row."""
        self.steps: dict[int, int] = {}
        """How many examples each shard has learnt."""

    def stopped(self) -> bool:
        return self.stop.is_set()

    def outcome(self, outcome: Outcome) -> None:
        if outcome.learnt is None:
            return
        shard = outcome.place.shard
        self.steps[shard] = self.steps.get(shard, 0) + outcome.learnt.examples
        if self.lines.live:
            self.lines.rewrite(self._now)

    def _now(self) -> str:
        """The line on a terminal."""
        learnt = "  ".join(f"{k}: {self.steps[k]:,}" for k in sorted(self.steps))
        return f"{sum(self.steps.values()):,} examples by shard  {learnt}"

    def round(self, standing: Standing) -> None:
        examples = sum(one[0] for one in standing.learnt)
        if not self.lines.live and self.lines.doubled(examples):
            self.row(standing)

    def row(self, standing: Standing) -> None:
        """A row of the table: the risk so far, and of the examples since the last row."""
        loss, weight = (sum(one[i] for one in standing.learnt) for i in (1, 2))
        if self.lines.quiet or weight == self.before[1]:
            return
        since = (loss - self.before[0]) / (weight - self.before[1])
        self.before = loss, weight
        examples, fewest = sum(one[0] for one in standing.learnt), min(one[0] for one in standing.learnt)
        self.lines.row(
            _HEAD,
            f"{examples:>12,} {standing.round:>7,} {loss / weight:>11.6g} {since:>11.6g} {fewest:>12,} "
            f"{self.lines.seconds:>8.1f}",
        )

    def done(self, standing: Standing) -> None:
        """The last row."""
        self.lines.clear()
        self.row(standing)

    def tell(self, sentences: tuple[str, ...]) -> None:
        """Warnings about the data."""
        self.lines.tell(sentences)


def learn_in_shards(
    paths: list[str],
    data: o.DataOptions,
    learning: o.LearnerOptions,
    sharding: Sharding,
    files: Any,
    test: str | None,
    keep: Callable[[Learner | None], dict[str, Any]],
    radius: float | None,
    quiet: bool,
) -> int:
    """`rue learn --shards`; `keep` says what is kept for the certificate."""
    assert sharding.shards is not None
    if files.resume is None:
        # Merging stages takes longer than learning them saves on two cores (docs/decisions/0029).
        default = not (learning.learner or learning.maps or learning.linear)
        learning = dataclasses.replace(learning, linear=True) if default else learning
        default = default and not (learning.domain or learning.step)  # which OGD has
        driver, stream = learning.drive(data, keep), data.open(paths)
        driver.notes += [LINEAR] if default else []
    else:
        model = load_model(files.resume)
        require_same_settings(model, data, learning)
        driver, stream = Driver(bad=data.bad), data.open_like(model.features, paths)
    files.require_not_read([*stream.paths, *filter(None, [test])], {})
    reached: list[Sharded] = []
    why = ""
    with Interruptible() as asked:  # Ctrl-C is held back until everything is saved
        progress = Progress(quiet, asked.stop)
        try:
            learn_sharded(
                stream,
                driver,
                shards=sharding.shards,
                on=sharding.on,
                workers=sharding.workers,
                most=sharding.round_,
                checkpoint=files.checkpoint,
                resumed=files.resume,
                bad=data.bad,
                watcher=progress,
                keep=lambda sharded: reached.__setitem__(slice(None), [sharded]),
            )
        except DataError as error:
            if not reached:
                raise
            why = str(error)
        [result] = reached
        progress.tell(result.notes)
        progress.done(result.standing)
        interrupted = not why and not result.done
        why = _write(result, files, data, test if not why and not interrupted else None, radius, interrupted, why)
    if why:
        raise DataError(why)
    if not result.examples and not interrupted:
        raise DataError(f"nothing was learnt from {', '.join(map(str, paths))}: no example has a label and a weight.")
    return 130 if interrupted else 0


def _write(
    result: Sharded,
    files: Any,
    data: o.DataOptions,
    test: str | None,
    radius: float | None,
    interrupted: bool,
    why: str,
) -> str:
    """The model, the report, the windows, and the page for people; `why` the run failed, or what cannot be written."""
    if files.model is not None:
        why = tried(partial(save_model, result.committed if interrupted else result.model, files.model), why)
    evaluations, model = {}, result.model
    if test is not None:
        chunks, driver = data.open_like(model.features, [test]).reads(), result.driver
        known = driver.labels or NUMBERS, driver.baselines, chunks, data.bad, driver.class_weights
        evaluations["test"] = evaluate(model.learner, *known)
    summary = result.report(radius, **evaluations).fields
    why = tried(partial(write_report, summary, files.report_path), why)
    why = tried(partial(write_windows_csv, summary["windows"], files.windows), why)
    if result.examples:
        stopped = "stopped by Ctrl-C: this is true of what was learnt until then" if interrupted else ""
        say(page(summary, stopped, columns()))
    return why
