"""`learn`: one pass over a stream."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any, Unpack

import numpy as np

from rue.errors import SettingsError, shown
from rue.learners import Learner
from rue.runs.advice import Advice, advice_in, columns_of_experts, experts_in, experts_of
from rue.runs.driver import Driver
from rue.runs.holdout import Holdout
from rue.runs.prediction_log import PredictionLog
from rue.runs.resuming import Learnt, history_entry, read_more, resumed, resumed_watch
from rue.runs.run import Run
from rue.runs.watching import Watch
from rue.streams import ReadOptions, Stream, read, read_like
from rue.streams.block import as_array, is_readable
from rue.streams.chunk import Chunk
from rue.streams.data import Data
from rue.streams.stream import Arrays

__all__ = ["learn"]


def learn(
    X: Any,
    y: Any = None,
    *,
    learner: Learner | Learnt | str | None = None,
    weights: Any = None,
    bad: str = "stop",
    task: str = "auto",
    positive: Any = None,
    class_weight: Any = None,
    units: str = "raw",
    witnesses: Any = None,
    curvature: bool = False,
    maps: Any = "default",
    lags: Any = None,
    holdout: float | None = None,
    test: Any = None,
    interval: Any = None,
    side: str = "both",
    alarm: float | None = None,
    experts: Any = None,
    experts_as: str | None = None,
    calibrate: bool = False,
    **how: Unpack[ReadOptions],
) -> Run:
    """Learn a stream in one pass: predict each example, add up its loss, then learn it (docs/theory.md, Q1).

    X is an array, a scipy sparse matrix, a table (pandas, polars, Arrow, or a list of dicts), a path or several, or a
    stream of blocks. Of a table or a file, `y` (or `target`) and `weights` name columns; `drop`, `category`,
    `separator`, `bits` and `format` are those of the command line, and the result is the same to the last bit. Classes
    may be written 0/1, −1/+1, true/false, or as any words, two or more; as other numbers with task="classify", or
    "multiclass" if a stream may hold two at first. The learner given is copied, never changed; by default it is
    `rue.Staged` with the loss that fits the labels, or with maps=None `rue.Mixture`, which is linear; for more than
    two classes it is `rue.SoftmaxMixture`, or with maps="auto" `rue.StagedSoftmax`. An example whose label is
    missing (None or NaN) is predicted, not learnt, and counted. An unusable example stops the run, or with bad="skip"
    is passed over and counted; `run.predictions` has an entry for every row all the same.

    `holdout` and `test` measure the model that is kept: `run.holdout` is of the last rows, a share such as 0.2 or a
    number of them, which are predicted at the end and never learnt; `run.test` of other examples, in a pair (X, y) of
    arrays, or in a file or a table that has the columns of this one.

    Of two classes the last in sorted order is +1, unless their meaning says otherwise (yes and no, 0 and 1) or
    `positive` does. `class_weight` multiplies the weights of examples by those of their classes: a dictionary such as
    {"yes": 5}, or "balanced", n/(k·n_c) with the counts so far (`ClassWeights`).

    To go on with a run or a model (`rue.load`), give it as the learner: a copy of it learns on, data are read as those
    it has learnt, classes keep their meaning, and loss, mistakes and certificate are of everything learnt so far, as if
    there had been one stream; `predictions`, `y` and `weights` are of the new rows. An option that contradicts it is an
    error.

    With `interval`, a share such as 0.9 or several, `run.lower` and `run.upper` are prediction intervals, made before
    each update, that hold nearly that share of the labels on any stream (E2); `side` is `both`, `upper` or `lower`. Of
    classes `run.sets` are sets that hold the right one so often. `run.interval` says what was observed and what is
    promised. With `alarm`, such as 1e6, `run.alarms` has when the loss rose; while it does not, an alarm is raised at
    most once in so many rounds on average (B17).

    `experts`, such as {"lightgbm": predictions}, are what other models predict, a number for each row (NaN where there
    is none) as an array or the path of a file: each made before the row's label was known. They are mixed with the
    learner and with a mixture over all predictions, so that the total is little more than that of the best of them
    (M1), and `run.experts` says how each stands. For logistic loss the numbers are probabilities of the class that is
    +1, or with experts_as="score" log-odds. Columns of a table that hold such predictions are named with
    `expert_column`.

    With `calibrate` probabilities of two classes are corrected while the stream is learnt: a mixture over the learner's
    score, and over in which twentieth its probability lies, is mixed with the learner itself, so that the total is at
    most ln 2 more than the learner's alone. `run.experts` says how both stand.

    `lags`, such as [1, 2, 24], make features of the last labels: for each k the k-th last, and above 1 the mean of
    about k of them. Each is of labels that had come before the row; predictions by the finished model (`run.predict`,
    `holdout`) have the last ones that were learnt.

    More can be kept for the certificate: `units="largest"` the features' largest magnitudes, `witnesses` (a radius or
    several) the learners of D3, `curvature=True` the Σ x xᵀ of D4 for square loss.

    >>> import rue
    >>> X, y = rue.census()
    >>> rue.learn(X, y, learner=rue.Perceptron()).mistakes
    10473
    """
    evidence: dict[str, Any] = {"units": units, "witnesses": witnesses, "curvature": curvature}
    options: dict[str, Any] = {"task": task, "bad": bad, "positive": positive, "class_weight": class_weight, **evidence}
    history: list[dict[str, Any]] = []
    own = experts_in(learner.features) if isinstance(learner, Learnt) else columns_of_experts(how)
    advice = _advice_of(own, experts, experts_as, calibrate, test)
    if isinstance(learner, Learnt):
        driver = resumed(learner, **options, lags=lags, advice=advice)
        driver.watch = resumed_watch(learner.watch, interval, side, alarm, driver.examples)
        stream, history = read_more(learner, X, y, weights, dict(how)), learner.history
    else:
        watch = Watch(interval, side, alarm)
        driver = Driver(learner, maps=maps, lags=lags, watch=watch, advice=advice, **options)
        stream = read(X, y, weights, **how)
    driver.notes_probabilities = True
    before = driver.examples
    if y is not None and not isinstance(y, str | int):
        driver.begin(y)
    held = None if holdout is None else Holdout(stream, holdout)
    log = _log_of(driver, stream, held)
    for note in [*driver.notes, *stream.warnings]:
        warnings.warn(note, stacklevel=2)
    run = log.run(driver, stream, [*history, history_entry(driver.examples - before)])
    return _measured(run, driver, held, test, bad)


def _advice_of(own: Any, experts: Any, experts_as: str | None, calibrate: Any, test: Any) -> Advice | None:
    """What outside experts predict, in columns of the data (`own`) or given to `learn`; None if there are none."""
    if not isinstance(calibrate, bool | np.bool_):
        raise SettingsError(f"learn: calibrate is True or False, not {shown(calibrate)}.")
    advice = advice_in(experts, experts_as, own, bool(calibrate))
    if advice is not None and advice.experts and test is not None:
        raise SettingsError("learn: test has no predictions of the experts: leave test out, or use holdout.")
    return advice


def _log_of(driver: Driver, stream: Stream, held: Holdout | None) -> PredictionLog:
    """Take a driver through a stream, but for the rows that are held out, and note what it predicts."""
    log, advice = PredictionLog(), driver.advice
    chunks = iter(stream.reads()) if held is None else held.training(stream.reads())
    chunks = chunks if advice is None else advice.attached(chunks, whole=held is None)
    for part in driver.run(chunks, lent=stream.lent):
        skipped = [row.place for row in part.skipped]
        log.add(driver, part.block, part.predictions, part.probabilities, skipped, part.found)
        part.require_good()
    return log


def _measured(run: Run, driver: Driver, held: Holdout | None, test: Any, bad: str) -> Run:
    """The run, with how its finished model does on the rows that were held out, and on those to test with."""
    if held is None and test is None:
        return run
    known = experts_of(driver.ensemble, driver.advice)
    if held is not None:
        rest = held.chunks() if known is None else known.attached(held.chunks(), driver.rows)
        run = dataclasses.replace(run, holdout=run.evaluate(rest, bad, known))
    if test is not None:
        run = dataclasses.replace(run, test=run.evaluate(_test_chunks(run.features, test), bad, known))
    return run


def _test_chunks(features: dict[str, Any], test: Any) -> Iterator[Chunk]:
    """The examples that `learn` is to test with: a file or a table, or a tuple of X, y and perhaps weights."""
    if is_readable(test) and not isinstance(test, tuple):
        return read_like(features, test).reads()
    if not isinstance(test, tuple) or len(test) not in (2, 3):
        raise SettingsError("learn: test is a pair (X, y), or a file or a table like the one that was learnt.")
    X, *columns = test
    if not is_readable(X):
        return Arrays(X, *columns, *[None] * (3 - len(test))).reads()
    stream = read_like(features, X)
    assert isinstance(stream, Data)
    stream.y, stream.weights = (*(as_array(column, "labels") for column in columns), None)[:2]
    return stream.reads(labelled=False)
