"""Certificates for River models: `certify` in one call, and `scores` for what River itself has evaluated."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from river import base, compose, stream
from rue.domains import Ball
from rue.errors import DataError, SettingsError, shown
from rue.learners.gradient import require_loss
from rue.registry import make
from rue.regret.certificates.certificate import Certificate, require_domain
from rue.regret.certificates.evidence import Evidence, open_evidence
from rue.streams import Block, Labels

__all__ = ["certify", "scores"]

ROWS = 4096
"""How many examples are certified at a time."""
LEAST = 1e-15
"""Smaller probabilities count as this one, as in River's own log loss."""


def scores(steps: Iterable[Mapping[str, Any]], positive: Any = True) -> Any:
    """Predictions as `rue.certify` takes them, of what `evaluate.iter_progressive_val_score` yields.

    That must be with yield_predictions=True, step=1, and for a classifier with a metric of probabilities such as
    `metrics.LogLoss()`; then they are the log-odds of the class `positive`. NaN where the model had nothing to say.

    >>> scores([{"Prediction": {True: 0.75, False: 0.25}}, {"Prediction": {}}]).round(3)
    array([1.099,   nan])
    """
    predictions = []
    for step in steps:
        if "Prediction" not in step:
            raise SettingsError("scores: there are no predictions: iterate with yield_predictions=True.")
        predictions.append(_score(step["Prediction"], positive))
    return np.array(predictions)


def _score(prediction: Any, positive: Any) -> float:
    """Log-odds of probabilities, ±1 for a label, a number as it is."""
    if prediction is None or prediction == {}:
        return math.nan
    if not isinstance(prediction, Mapping):
        if isinstance(prediction, bool | np.bool_ | str) or isinstance(positive, str):
            return 1.0 if prediction == positive else -1.0
        return float(prediction)
    yes = prediction.get(positive, 0.0)
    no = sum(chance for name, chance in prediction.items() if name != positive)
    least = LEAST * (yes + no) if yes + no > 0.0 else 1.0
    return math.log(max(yes, least) / max(no, least))


def certify(
    dataset: Iterable[Any],
    model: Any,
    *,
    loss: Any = None,
    radius: float | None = None,
    domain: Any = None,
    moment: Any = None,
    delay: Any = None,
    intercept: bool = True,
    units: str = "raw",
    witnesses: Any = None,
    curvature: bool = False,
) -> Certificate:
    """Certify any River model in one call: it predicts and learns the dataset as `progressive_val_score` has it.

    `moment` and `delay` are those of `evaluate.progressive_val_score`. The loss is logistic for a classifier of two
    classes, which must give probabilities, and square for a regressor; the rest is as in `rue.certify`. Linear models
    are compared in the features of the dataset, words in them as indicators. Memory does not grow with the stream.

    >>> from river import datasets, linear_model, preprocessing
    >>> model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    >>> print(certify(datasets.Phishing(), model, radius=5, witnesses=5))
    no linear model of norm ≤ 5 could have had a mean loss below 0.2721 on this stream; this learner had 0.33011, within
    22 % of the best there could have been. In sums: 340.2 at least against 412.6, so regret is at most +72.4 (D3).
    """
    classes = isinstance(_last(model), base.Classifier)
    loss = make("loss", ("logistic" if classes else "square") if loss is None else loss)
    require_loss(loss, "certify")
    if loss.task != ("classify" if classes else "regress"):
        raise SettingsError(f"certify: {loss!r} does not fit a {'classifier' if classes else 'regressor'}.")
    if (radius is None) == (domain is None):
        raise SettingsError("certify: give radius=…, or a domain=…, to say against which models.")
    K = Ball(radius) if radius is not None else require_domain(make("domain", domain))
    evidence = open_evidence(loss, units=units, witnesses=witnesses, curvature=curvature, domain=K)
    unseen = {name for name in (moment, delay) if isinstance(name, str)}
    book = _Book(evidence, bool(intercept), classes, unseen)
    predict = model.predict_proba_one if loss.log_odds else model.predict_one
    takes = inspect.signature(model.learn_one).parameters.values()
    weighs = any(known.name == "w" or known.kind is known.VAR_KEYWORD for known in takes)
    waiting: dict[int, Any] = {}
    for i, x, y, *more in stream.simulate_qa(dataset, moment, delay, copy=False):
        extra = dict(more[0]) if more else {}
        w = extra.pop("w", None)
        if y is None:
            waiting[i] = predict(x, **extra)
            continue
        book.enter(x, y, waiting.pop(i), 1.0 if w is None else float(w))
        model.learn_one(x, y, **extra, **({"w": w} if weighs and w is not None else {}))
    book.close()
    if book.examples == book.left_out:
        raise DataError("there is no prediction to certify.")
    return evidence.certificate(K, units, left_out=book.left_out)


def _last(model: Any) -> Any:
    """What predicts in a pipeline."""
    while isinstance(model, compose.Pipeline):
        model = list(model.steps.values())[-1]
    return model


class _Book:
    """Examples by name and their predictions on the way into the evidence."""

    def __init__(self, evidence: Evidence, intercept: bool, classes: bool, unseen: set[str]) -> None:
        self.evidence, self.intercept, self.classes, self.unseen = evidence, intercept, classes, unseen
        self.places: dict[Any, int] = {}
        self.labels: Any = None
        self.signs: dict[Any, float] = {}
        self.examples = self.left_out = 0
        self._empty()

    def _empty(self) -> None:
        self.ends, self.indices = [0], list[int]()
        self.values: list[float] = []
        self.y: list[float] = []
        self.p: list[float] = []
        self.weights: list[float] = []

    def enter(self, x: Mapping[Any, Any], y: Any, prediction: Any, weight: float) -> None:
        """One example, when its label has come."""
        sign = (self.signs.get(y) or self._sign(y)) if self.classes else float(y)
        for name, value in x.items():
            if name not in self.unseen:
                self._put(name, value)
        self.ends.append(len(self.indices))
        self.y.append(sign)
        self.p.append(_score(prediction, self.labels.positive if self.classes else None))
        self.weights.append(weight)
        if len(self.y) == ROWS:
            self.close()

    def _put(self, name: Any, value: Any) -> None:
        if isinstance(value, str):
            name, value = f"{name}={value}", 1.0
        if value is None or value != value:
            return
        try:
            self.values.append(float(value))
        except (TypeError, ValueError) as error:
            given = f"the feature {shown(name)} is {shown(value)}"
            raise DataError(f"certify: {given}: features are numbers or words.") from error
        self.indices.append(self.places.setdefault(name, len(self.places)))

    def _sign(self, y: Any) -> float:
        """−1 or +1 for a class never seen before."""
        self.labels = Labels.of([y], "classify") if self.labels is None else self.labels.extended(np.array([y]))
        sign = float(self.labels.encode(np.array([y]))[0])
        if math.isnan(sign):
            raise DataError(f"certify: {self.labels.complaint(y)}")
        return self.signs.setdefault(y, sign)

    def close(self) -> None:
        """Put what has come into the evidence."""
        from scipy.sparse import csr_matrix

        if self.y:
            X = csr_matrix((self.values, self.indices, self.ends), shape=(len(self.y), len(self.places)), dtype=float)
            X.sum_duplicates()
            block = Block(X, np.array(self.y), np.array(self.weights))
            self.left_out += self.evidence.enter(block, np.array(self.p), self.intercept, self.examples)
            self.examples += len(self.y)
            self._empty()
