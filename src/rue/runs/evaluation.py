"""`Evaluation`: how a model that stands still does on labelled examples that it does not learn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rue.compiled import kernel
from rue.learners import Learner
from rue.losses import Loss
from rue.runs.advice import Advised
from rue.runs.baselines import Baselines
from rue.runs.class_weights import ClassWeights
from rue.runs.metrics import Metrics
from rue.streams import Block, Labels
from rue.streams.chunk import Chunk

__all__ = ["Evaluation", "evaluate", "score"]

ENOUGH = 100
"""From how many rows on a model is expected to be better than the constant that is best for them in hindsight."""


@kernel
def score(loss: Any, predictions: Any, y: Any, out: Any) -> None:
    """ℓ(p, y) of each row."""
    for i in range(y.size):
        out[i] = loss.value(predictions[i], y[i])


class Evaluation:
    """Loss, baselines and metrics of a model's predictions for examples that it does not learn.

    There are two constants to compare with: the one that was best on the rows the model learnt, which could have been
    predicted instead, and the one that is best on these rows in hindsight, which was not known before. `loss` and the
    baselines are totals, as in the report of a run; `risk` is the mean. Class weights are those at the end of the run.

    `loss` and `labels` are the model's, `training` the baselines of the rows it learnt, and `class_weights` what the
    weights of examples are multiplied by, None if nothing.

    >>> import rue
    >>> X, y = rue.census()
    >>> test = rue.learn(X[:2000], y[:2000], holdout=500).holdout
    >>> test.examples, test.risk < test.best_constant / test.weight
    (500, True)
    """

    def __init__(
        self, loss: Loss, labels: Labels, training: Baselines, class_weights: ClassWeights | None = None
    ) -> None:
        self._loss, self.labels = loss, labels
        self._class_weights = None if class_weights is None else class_weights.fixed(labels)
        self._constant = None if training.empty else training.constant_for(loss)
        self.examples = 0
        """How many examples have a label that the model's loss takes, and were scored."""
        self.unlabelled = 0
        """How many have none."""
        self.skipped = 0
        """Unusable rows passed over."""
        self.weight = 0.0
        """Σ weight."""
        self.loss = 0.0
        """Σ weight·ℓ(p, y)."""
        self.mistakes: int | None = None if labels.task == "regress" else 0
        """How many had y·p ≤ 0, each counted once whatever its weight; None for numbers."""
        self.training_constant: float | None = None if self._constant is None else 0.0
        """Σ weight·ℓ of the constant that was best on the rows learnt; None where these are not known."""
        self.baselines = Baselines()
        self.metrics = Metrics()

    def enter(self, block: Block, predictions: Any) -> None:
        """Score the predictions for a block: scores, or of several classes a row of probabilities as `predict` has it.

        An example that has no label, or one that the loss does not take, is counted and left out.

        >>> import numpy as np, rue
        >>> from rue.runs.baselines import Baselines
        >>> evaluation = Evaluation(rue.Square(), rue.Labels("regress"), Baselines())
        >>> evaluation.enter(rue.Block([[0.0], [0.0]], y=[1.0, 3.0]), np.array([1.0, 1.0]))
        >>> evaluation.examples, evaluation.risk
        (2, 2.0)
        """
        if block.y is None:
            self.unlabelled += len(block)
            return
        self.labels = self.labels.extended(block.y)
        if self._class_weights is not None:
            block = self._class_weights.weighted(block, self.labels)
        y, probabilities = np.asarray(self.labels.encode(block.y), dtype=np.float64), None
        if self.labels.task == "multiclass":
            probabilities = predictions[:, 1:]
            predictions = _as_scores(y, predictions)
        labelled = np.array([bool(self._loss.accepts(label)) for label in y.tolist()], dtype=bool)
        self.unlabelled += int(np.count_nonzero(~labelled))
        weights = block.column_of_weights()
        use = labelled & np.isfinite(predictions)
        use &= weights > 0.0 if weights.size else True
        y, p, weights = y[use], predictions[use], weights[use] if weights.size else weights
        if not y.size:
            return
        with np.errstate(over="ignore", invalid="ignore"):  # weights may add up to more than a number can hold
            self._enter(y, p, weights, probabilities, use)

    def _enter(self, y: Any, p: Any, weights: Any, probabilities: Any, use: Any) -> None:
        """Score the rows that count."""
        losses = np.empty(y.size)
        score(self._loss, p, y, losses)
        masses = weights if weights.size else np.ones(y.size)
        self.examples += y.size
        self.weight += float(masses.sum())
        self.loss += float(masses @ losses)
        if self.mistakes is not None:
            self.mistakes += int(np.count_nonzero(p <= 0.0 if probabilities is not None else y * p <= 0.0))
        if self._constant is not None and self.training_constant is not None:
            self.training_constant += float(masses @ self._constant(y))
        self.baselines.enter(self._loss, y, weights, p)
        self.metrics.enter(self._loss, y, weights, p, None if probabilities is None else probabilities[use])

    @property
    def risk(self) -> float:
        """The mean loss Σ weight·ℓ / Σ weight."""
        return self.loss / self.weight if self.weight else float("nan")

    @property
    def best_constant(self) -> float:
        """Σ weight·ℓ of the constant prediction that is best for these rows in hindsight."""
        return self.baselines.best_constant(self._loss)

    @property
    def no_change(self) -> float:
        """Σ weight·ℓ of predicting the last label again."""
        return self.baselines.no_change(self._loss)

    @property
    def behind(self) -> str:
        """The sentence that warns of a model which loses more than a constant prediction; "" for one that does not.

        Of few rows the constant that is best in hindsight says nothing: of one row it loses nothing.
        """
        if not self.weight:
            return ""
        if self.training_constant is not None and _above(self.loss, self.training_constant):
            constant, which = self.training_constant, "that was best on the rows it learnt"
        elif self.examples >= ENOUGH and _above(self.loss, best := self.best_constant, self.training_constant or 0.0):
            constant, which = best, "that is best on these rows, known in hindsight only"
        else:
            return ""
        return (
            f"the model is behind a constant: its mean loss is {self.risk:.6g}, and always making the one prediction "
            f"{which}, has {constant / self.weight:.6g}."
        )

    def __repr__(self) -> str:
        return f"Evaluation(examples={self.examples}, risk={self.risk:.6g}, {self.metrics!r})"


def _above(loss: float, constant: float, usual: float = 0.0) -> bool:
    """Whether a total is larger than another by more than rounding; `usual` is what such totals are like."""
    return loss - constant > 1e-9 * max(abs(loss), abs(constant), abs(usual))


def _as_scores(y: Any, probabilities: Any) -> Any:
    """The probability of each row's class, negative where another has as much.

    A class never seen has its part of the reserve, which any of its names may stand for (`names_of_next`).
    """
    known = y < probabilities.shape[1]  # not so where it is NaN
    place = np.where(known, y, 0).astype(np.int64)
    own, others = probabilities[np.arange(y.size), place], probabilities[:, 1:].copy()
    own = own / np.where(known, 1, probabilities.shape[1])
    others[np.flatnonzero(known), place[known] - 1] = -1.0
    wrong = ~known | (others.max(axis=1, initial=-1.0) >= own)
    return np.where(np.isnan(y), np.nan, np.where(wrong, -own, own))


def evaluate(
    learner: Learner,
    labels: Labels,
    training: Baselines,
    chunks: Iterable[Chunk],
    bad: str,
    class_weights: ClassWeights | None = None,
    record: Callable[[Chunk, Any], None] = lambda chunk, predictions: None,
    experts: Advised | None = None,
) -> Evaluation:
    """How a learner that stands still does on examples that it does not learn; `training` is of those it has learnt.

    `record` is given each chunk and the predictions for its block; `experts` are those that the learner is mixed with.
    """
    evaluation, frozen = Evaluation(learner.loss, labels, training, class_weights), learner.frozen()
    for chunk in chunks:
        if chunk.first_bad and bad == "stop":
            raise chunk.error(chunk.first_bad)
        evaluation.skipped += len(chunk.bad)
        predictions = frozen.predict_many(chunk.block)
        if experts is not None and len(chunk.block):
            predictions = experts.predict(predictions, chunk)
        record(chunk, predictions)
        if len(chunk.block):
            evaluation.enter(chunk.block, predictions)
    return evaluation
