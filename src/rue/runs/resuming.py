"""Going on with what was learnt before, from a run or a model: its settings, labels, features and evidence."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rue.errors import SettingsError, shown
from rue.learners import Learner
from rue.learners.ensemble import Ensemble
from rue.learners.lags import lags_of
from rue.learners.mixture.standing import Course
from rue.learners.turns import Turn
from rue.regret.certificates.evidence import Evidence
from rue.runs.advice import Advice
from rue.runs.background import Background
from rue.runs.class_weights import ClassWeights
from rue.runs.driver import Driver
from rue.runs.metrics import Metrics
from rue.runs.watching import Watch
from rue.streams import Labels, Stream, as_array, read, read_like
from rue.streams.block import is_readable
from rue.streams.labels import is_called
from rue.streams.stream import bins_of, crosses_of
from rue.streams.text.interactions import interactions_in
from rue.version import __version__

__all__ = ["Learnt", "history_entry", "read_more", "require_same_lags", "resumed", "resumed_watch"]


@runtime_checkable
class Learnt(Protocol):
    """What a `Run` and a `Model` have in common: all that it takes to go on."""

    @property
    def learner(self) -> Learner: ...
    @property
    def labels(self) -> Labels | None: ...
    @property
    def evidence(self) -> Evidence | None: ...
    @property
    def features(self) -> dict[str, Any]: ...
    @property
    def names(self) -> dict[int, str]: ...
    @property
    def counts(self) -> dict[str, Any]: ...
    @property
    def course(self) -> Course: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def history(self) -> list[dict[str, Any]]: ...
    @property
    def watch(self) -> Watch: ...
    @property
    def ensemble(self) -> Ensemble | None: ...
    @property
    def background(self) -> Background | None: ...


def history_entry(examples: int, data: Iterable[str] = ()) -> dict[str, Any]:
    """A line of a model's history, dated now."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"data": list(data), "examples": examples, "date": now, "rue": __version__}


def resumed(
    model: Learnt,
    *,
    task: str,
    bad: str,
    positive: Any,
    class_weight: Any,
    lags: Any = None,
    advice: Advice | None = None,
    **evidence: Any,
) -> Driver:
    """A driver that goes on with a copy of what was learnt; options that contradict it are refused.

    A model without evidence, as that of a learner that was saved alone, gets new evidence, of what comes from now on:
    `evidence` has the options `units`, `witnesses` and `curvature`; `advice` is what outside experts predict.
    """
    with Turn(model.learner, wait=True):  # together, because they share the numbering of features
        learner, known, course = copy.deepcopy((model.learner, model.evidence, model.course))
    ensemble = copy.deepcopy(model.ensemble)
    labels = model.labels
    if labels is not None and task not in ("auto", labels.task):
        raise _contradiction("task", task, f"its task is {labels.task!r}")
    if labels is not None and positive is not None and not is_called(labels.positive, positive):
        raise _contradiction("positive", positive, f"its positive class is {shown(labels.positive)}")
    if lags is not None and (learner.t or learner.lags is not None):
        require_same_lags(learner, lags_of(lags), f"lags={shown(lags)}")
        lags = None
    if known is None or labels is None:
        options = {"task": task, "bad": bad, "positive": positive, "class_weight": class_weight}
        driver = Driver(learner, **options, lags=lags, advice=advice, **evidence)
        driver.labels, driver.course = labels, course
        return driver
    _require_same_evidence(known, **evidence)
    driver = Driver.resume(learner, labels, known, course=course, bad=bad, ensemble=ensemble, advice=advice)
    driver.restore(model.counts)
    driver.metrics, driver.background = copy.deepcopy((model.metrics, model.background))
    given, own = ClassWeights.make(class_weight), driver.class_weights
    if given is not None and (own is None or own.rule != given.rule):
        raise _contradiction("class_weight", class_weight, f"its class_weight is {shown(own and own.rule)}")
    return driver


def _require_same_evidence(evidence: Evidence, units: str, witnesses: Any, curvature: bool) -> None:
    """Refuse to be asked for evidence that was not added up from the first example on."""
    pool = evidence.pool
    if units == "largest" and evidence.largest is None and (pool is None or not pool.largest.size):
        raise _contradiction("units", units, "its evidence is in raw units")
    if curvature and evidence.curvature is None:
        raise _contradiction("curvature", curvature, "its evidence has none")
    if witnesses is not None:
        radii = [] if pool is None else np.unique(pool.radii).tolist()
        if np.unique(witnesses).tolist() != radii:
            held = f"those of radius {', '.join(f'{radius:g}' for radius in radii)}" if radii else "none"
            raise _contradiction("witnesses", witnesses, f"its evidence has {held}")


def resumed_watch(watch: Watch, interval: Any, side: str, alarm: float | None, examples: int = 0) -> Watch:
    """A copy of what a model watches; options that contradict it are refused.

    A model that watches nothing and has learnt examples cannot begin: its promises are from the first example on.
    """
    asked = Watch(interval, side, alarm)
    for name, given, own in (("interval", asked.levels, watch.levels), ("alarm", asked.rounds, watch.rounds)):
        if given is not None and given != own and (own is not None or examples):
            held = "was learnt without one" if own is None else f"was learnt with {shown(own)}"
            raise SettingsError(f"learn: {name} contradicts the model, which {held}: leave {name} out.")
    if asked.side != "both" and asked.side != watch.side and examples:
        raise _contradiction("side", side, f"its side is {watch.side!r}")
    return watch.copy() if examples or watch.asked else asked


def read_more(model: Learnt, X: Any, y: Any, weights: Any, options: dict[str, Any]) -> Stream:
    """More data for a model, read as those it has learnt; options that contradict it are refused."""
    features = model.features
    if not features and not is_readable(X):
        stream = read(X, y, weights, **options)
        stream.names.add(model.names.items())
        return stream
    if not features or not is_readable(X):
        return read_like(features, X)  # which says why not
    options = dict(options)
    columns = features.get("columns") or {}
    same = {
        "target": columns.get("target"),
        "weights": columns.get("weight"),
        "bits": features.get("bits", columns.get("bits", 20)),  # text has bits but no columns
    }
    if "cross" in options:
        options["cross"] = crosses_of(options["cross"])
        same["cross"] = tuple(map(tuple, columns.get("crosses", ())))
    if "bins" in options:
        options["bins"] = bins_of(options["bins"])
        same["bins"] = tuple((name, count) for name, count in columns.get("bins", ()))
    if "interact" in options:
        options["interact"] = interactions_in(options["interact"])
        same["interact"] = tuple(features.get("interact", ()))
    if "word_pairs" in options:
        same["word_pairs"] = columns.get("word_pairs", False)
    if y is not None and "target" in options:
        raise SettingsError("give y or target, not both: either may name the column to predict.")
    arrays = {}
    for name, value in (("target", options.pop("target", y)), ("weights", weights)):
        if value is None or isinstance(value, str | int):
            options |= {} if value is None else {name: value}
        elif same[name] is None:
            arrays["y" if name == "target" else name] = as_array(value, name)
        else:
            raise _contradiction("y" if name == "target" else name, value, f"it has learnt the column {same[name]!r}")
    for name in [name for name in options if name not in ("format", "separator", "max_line")]:
        if options[name] != same.get(name):
            held = f"its {name} is {same[name]!r}" if name in same else "it has its columns"
            raise _contradiction(name, options[name], held)
        del options[name]
    return read_like(features, X, model.names, **arrays, **options)


def require_same_lags(learner: Learner, lags: tuple[int, ...], given: str) -> None:
    """Refuse lags other than those that a learner has learnt with; `given` is how the user wrote them."""
    own = () if learner.lags is None else learner.lags.back
    if lags != own:
        held = f"its lags are {', '.join(map(str, own))}" if own else "it was learnt without"
        raise SettingsError(f"{given} contradicts the model: {held}; leave lags out.")


def _contradiction(name: str, value: Any, held: str) -> SettingsError:
    """The refusal of an option that the model has decided."""
    return SettingsError(f"learn: {name}={shown(value)} contradicts the model, because {held}: leave {name} out.")
