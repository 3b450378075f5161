"""`learn`: data learnt in shards, on one machine or many, and `Sharded`, what that leaves behind."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from rue import ledger as sums_of
from rue.cluster.advancing import begin, cursors
from rue.cluster.executors import Executor, Inline, Outcome
from rue.cluster.local import Local
from rue.cluster.rounds import ROUND, Standing, resume, run
from rue.errors import SettingsError, shown
from rue.models.file import Model, from_bytes, load_model
from rue.outputs import require_writable, write_file
from rue.regret.certificates.certificate import Certificate
from rue.reports.report import Report, report
from rue.runs.certifying import certificate_of
from rue.runs.driver import Driver
from rue.streams import ReadOptions, Stream, read, read_like
from rue.streams.data import Data
from rue.version import __version__

__all__ = ["Sharded", "Watcher", "executor_for", "learn", "learn_sharded", "price_in_words"]


@dataclasses.dataclass(frozen=True, eq=False)
class Sharded:
    """What learning in shards leaves behind: one model, and the evidence about all its examples.

    >>> import pandas, rue
    >>> table = pandas.DataFrame({"x": [1.0, -2.0, 1.5], "y": ["no", "yes", "no"]})
    >>> result = rue.cluster.learn([table, table], target="y", shards=2, learner="ogd", on="inline")
    >>> result.examples, result.rounds, result.certificate(1.0).regret_at_most <= result.loss
    (6, 1, True)
    """

    model: Model
    """All that was learnt; `rue.save` writes it, and `rue.learn` goes on with it."""
    standing: Standing
    """Where the shards stand, and what each has learnt."""
    notes: tuple[str, ...] = ()
    """Sentences about what was perhaps meant otherwise."""
    columns: Any = None
    """Those of a table."""
    seconds: float = 0.0
    """How long it took in all."""

    @property
    def shards(self) -> int:
        """How many shards there were."""
        return len(self.standing.places)

    @property
    def rounds(self) -> int:
        """How often they were merged."""
        return self.standing.round

    @property
    def driver(self) -> Driver:
        """The model as a `Driver` has it, which reports are made from."""
        model = self.model
        assert model.labels is not None
        assert model.evidence is not None
        driver = Driver.resume(model.learner, model.labels, model.evidence, course=model.course)
        driver.restore(model.counts)
        driver.metrics, driver.notes = model.metrics, list(self.notes)
        return driver

    @property
    def done(self) -> bool:
        """Whether all the data have been learnt."""
        return self.standing.done

    @property
    def committed(self) -> Model:
        """The model with what it takes to go on: what a checkpoint holds."""
        return self.standing.committed()

    @property
    def examples(self) -> int:
        """How many examples were scored and learnt."""
        return sum(examples for examples, _, _ in self.standing.learnt)

    @property
    def loss(self) -> float:
        """Σ weight·ℓ(p_t, y_t), each prediction made by its shard before it learnt the example."""
        return float(self.driver.sums[sums_of.LOSS])

    @property
    def risk(self) -> float:
        """The mean loss Σ weight·ℓ / Σ weight."""
        weight = math.fsum(weight for _, _, weight in self.standing.learnt)
        return self.loss / weight if weight else math.nan

    def certificate(self, radius: float | None = None, domain: Any = None, units: str | None = None) -> Certificate:
        """How much better any linear model could have done on all the data.

        `radius`, `domain` and `units` are as for `Run.certificate`.
        """
        driver = self.driver
        assert driver.evidence is not None
        return certificate_of(driver.learner, driver.evidence, driver.refused + driver.skipped, radius, domain, units)

    def report(self, radius: float | None = None, **evaluations: Any) -> Report:
        """All that `rue learn` prints, and in `fields` what `--report` writes, with a part `cluster` about shards.

        `radius` is that of the certificate; `evaluations` are of examples that were not learnt.

        >>> import pandas, rue
        >>> table = pandas.DataFrame({"x": [1.0, -2.0, 1.5], "y": ["no", "yes", "no"]})
        >>> result = rue.cluster.learn([table, table], target="y", shards=2, learner="ogd", on="inline")
        >>> result.report().fields["cluster"]["shards"]
        2
        """
        known: dict[str, Any] = {"columns": self.columns, "names": dict(self.model.names)}
        summary = report(self.driver, radius=radius, total=self.seconds, **known, **evaluations)
        shards = [
            {"examples": examples, "risk": loss / weight if weight else None}
            for examples, loss, weight in self.standing.learnt
        ]
        summary["cluster"] = {
            "shards": self.shards,
            "rounds": self.rounds,
            "round": self.standing.most,
            "processors": list(self.standing.processors),
            "learnt": shards,
            "price": math.sqrt(self.shards),
            "words": price_in_words(self.shards, self.rounds, self.standing.processors),
        }
        return Report(summary)


def price_in_words(shards: int, rounds: int, processors: Sequence[str]) -> str:
    """What learning in so many shards costs, for people (docs/theory.md, section 7).

    >>> print(price_in_words(16, 9, ["x86_64"]))
    16 shards, merged 9 times: gradient steps on a set of diameter D promise a regret of DL√(16·T), 4 times that of one
    learner that sees all T examples, DL√T; the risk above is of predictions by shards that had not yet seen what the
    others learnt in the same round
    """
    if shards == 1:
        return "1 shard: the model is that of one learner that sees all examples"
    times = f"{math.sqrt(shards):.3g}"
    words = (
        f"{shards} shards, merged {rounds} times: gradient steps on a set of diameter D promise a regret of "
        f"DL√({shards}·T), {times} times that of one learner that sees all T examples, DL√T; the risk above is of "
        "predictions by shards that had not yet seen what the others learnt in the same round"
    )
    if len(processors) > 1:
        words += (
            f"; the processors were of {len(processors)} kinds ({', '.join(processors)}), which may round differently: "
            "on others the model may differ in its last bits"
        )
    return words


class Watcher:
    """Sees each step and each merge of a run, and may stop it; by default it does nothing."""

    def outcome(self, outcome: Outcome) -> None:
        """A shard has taken a step."""

    def round(self, standing: Standing) -> None:
        """A round is merged and committed."""

    def stopped(self) -> bool:
        """Whether to stop after this round."""
        return False


def executor_for(on: str, workers: int | None = None) -> Executor:
    """The executor that a name means: `inline`, `local`, `ray`, `ray:HOST:PORT` or `ray://HOST:PORT`.

    >>> executor_for("inline").workers
    1
    """
    if on == "inline":
        if workers not in (None, 1):
            raise SettingsError(f"inline has one worker, not {workers}: say local, or ray.")
        return Inline()
    if on == "local":
        return Local(workers)
    if on == "ray" or on.startswith("ray:"):
        from rue.cluster.on_ray import OnRay

        return OnRay(on, workers)
    raise SettingsError(
        f"shards are learnt on inline (this process), local (processes of this machine), ray, ray:HOST:PORT or "
        f"ray://HOST:PORT, not on {shown(on)}."
    )


def learn_sharded(
    data: Data,
    driver: Driver,
    *,
    shards: int,
    on: str = "local",
    workers: int | None = None,
    most: int | None = None,
    checkpoint: str | None = None,
    resumed: str | None = None,
    known: Sequence[type] = (),
    bad: str = "stop",
    watcher: Watcher | None = None,
    keep: Callable[[Sharded], None] = lambda sharded: None,
) -> Sharded:
    """Learn data in shards with a driver's settings; what `rue.cluster.learn` and `rue learn --shards` call.

    `keep` is given the result as far as it has come after each round, so that there is one if an example stops the run.
    """
    started = time.monotonic()
    watcher = watcher or Watcher()
    require_writable(checkpoint)
    starts = cursors(data, shards, bad=bad, known=known)

    def result() -> Sharded:
        entry = {
            "data": [str(path) if isinstance(path, str) else "table" for path in data.paths],
            "examples": sum(examples for examples, _, _ in standing.learnt),
            "rue": __version__,
            "shards": shards,
        }
        model = dataclasses.replace(standing.model, position=None, history=[*standing.model.history, entry])
        notes = (*driver.notes, *data.warnings)
        return Sharded(model, standing, notes, data.columns, time.monotonic() - started)

    def commit(content: bytes) -> None:
        if checkpoint is not None:
            write_file(checkpoint, content)

    with contextlib.closing(executor_for(on, workers)) as executor:
        executor.begin(starts)  # first, since processes take a second to start, in which the first rows are read here
        if resumed is not None:
            standing = resume(resumed, starts, most)
        else:
            model = from_bytes(begin(data, driver), known)
            standing = Standing.start(model, starts, ROUND if most is None else most)
        keep(result())
        for reached in run(standing, starts, executor, commit, watcher.outcome):
            standing = reached
            keep(result())
            watcher.round(standing)
            if watcher.stopped():
                break
    return result()


def learn(
    data: Any,
    *,
    shards: int,
    on: str = "local",
    workers: int | None = None,
    round: int | None = None,  # noqa: A002  # the word of the command line
    checkpoint: str | None = None,
    resume: str | None = None,
    learner: Any = None,
    task: str = "auto",
    bad: str = "stop",
    positive: Any = None,
    class_weight: Any = None,
    units: str = "raw",
    witnesses: Any = None,
    maps: Any = None,
    intercept: bool = True,
    weights: str | int | None = None,
    known: Sequence[type] = (),
    **how: Unpack[ReadOptions],
) -> Sharded:
    """Learn files in so many shards side by side, merge them after every round, and return one model.

    The number of `shards` and the size of a `round` (examples of a shard between two merges, at most) decide the
    result; what they are learnt `on`, and by how many `workers`, decides only how long it takes: `inline` is this
    process, `local` processes of this machine, `ray` a Ray of its own on this machine, `ray:HOST:PORT` and
    `ray://HOST:PORT` a Ray that runs. After each round a `checkpoint` is written; `resume` goes on from it.

    `data` are paths, folders, addresses such as s3://bucket/clicks, or tables; `learner`, `task`, `bad`, `positive`,
    `class_weight`, `units`, `witnesses`, `maps` and `weights` (a column) are as for `rue.learn`, `intercept` is of the
    default learner. That is linear here; with `maps="auto"` it learns in stages, as by default that of `rue.learn`.
    Classes of your own that the learner is made with are named in `known`.

    >>> import pandas, rue
    >>> table = pandas.DataFrame({"x": [1.0, -2.0, 1.5], "y": ["no", "yes", "no"]})
    >>> rue.cluster.learn([table, table], target="y", shards=2, learner="ogd", on="inline").model.learner.t
    6
    """
    stream: Stream
    if resume is not None:
        given = {"learner": learner, "positive": positive, "class_weight": class_weight, "witnesses": witnesses}
        if contradicted := [name for name, value in given.items() if value is not None]:
            raise SettingsError(f"learn: {contradicted[0]} contradicts resume, which has its settings: leave it out.")
        free: dict[str, Any] = {
            name: value for name, value in how.items() if name in ("format", "separator", "max_line")
        }
        stream = read_like(load_model(resume, known).features, data, **free)
    else:
        stream = read(data, None, weights, **how)
    if not isinstance(stream, Data):
        raise SettingsError("learn: shards are for files and tables; arrays in memory are best learnt by rue.learn.")
    driver = Driver(
        learner,
        task=task,
        bad=bad,
        positive=positive,
        class_weight=class_weight,
        units=units,
        witnesses=witnesses,
        maps=maps,
        intercept=intercept,
    )
    return learn_sharded(
        stream,
        driver,
        shards=shards,
        on=on,
        workers=workers,
        most=round,
        checkpoint=checkpoint,
        resumed=resume,
        known=known,
        bad=bad,
    )
