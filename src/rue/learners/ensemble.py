"""`Ensemble`: a learner and outside experts, of whom only predictions are known, mixed round by round.

With p the learner's own prediction and e_1, …, e_K those of the experts, a round has K + 2 members: p, every e_k, and
the prediction of a `Mixture` whose features are p, e_1, …, e_K (the *stack*). They are mixed as stages are
(docs/theory.md, B12 and M1): for logistic loss in probability, so the total is at most ln(K + 2) more than that of the
best of all; for every other loss in the mean, at a price that `Ensemble.standing` tells.

With `calibrate` the stack has as features, besides, in which twentieth each learner's probability lies, so that it
corrects probabilities that are too high or too low wherever they are; with no expert at all it does nothing else, and
the total is at most ln 2 more than the learner's alone.

An expert that has no prediction for a row counts as the learner itself there. Before the first label the learner knows
nothing: of numbers it then says what the experts say on average.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from rue.compiled import kernel
from rue.errors import DataError, SettingsError, shown
from rue.learners.learner import Learner
from rue.learners.mixture.layout import COST, LOSSES, MEMBERS, MIXED, MIXING, MIXING_MEMORY, PREDICTION, SCRATCH, SHARES
from rue.learners.mixture.mixing import Experts, open_memory, way_of
from rue.learners.mixture.mixture import Mixture
from rue.learners.mixture.standing import Member
from rue.ledger import open_ledger
from rue.norms import LARGEST_TERM
from rue.streams import Block

__all__ = ["MOST_EXPERTS", "Ensemble", "EnsembleStanding"]

MOST_EXPERTS = 64
"""How many outside experts there may be."""
HIGHEST = 700.0
"""Log-odds are clipped to ± this before they are mixed: e^−700 is a probability that doubles still have."""
OWN, STACK, CORRECTED = "the learner alone", "a mixture over all predictions", "the same, corrected"
PARTS = 20
"""The number of bins of the probability, each of which is corrected by itself (docs/decisions/0034)."""


@kernel
def mix_rows(loss: Any, experts: Any, predictions: Any, y: Any, weights: Any, scratch: Any, work: Any, out: Any) -> Any:
    """The mixture of each row's predictions into `out`; a row with a weight above 0 is then entered."""
    for i in range(y.size):
        weight = weights[i] if weights.size > 0 else 1.0
        for k in range(predictions.shape[1]):
            scratch[PREDICTION, k] = predictions[i, k]
        p = experts.mixed(scratch, work)
        out[i] = p
        if weight > 0.0:
            for k in range(predictions.shape[1]):
                cost = weight * loss.value(predictions[i, k], y[i])
                experts.members[COST, k] = cost if cost < LARGEST_TERM else LARGEST_TERM
            experts.charge(weight * loss.value(p, y[i]), weight, 0.0, scratch, work)


@dataclasses.dataclass(frozen=True)
class EnsembleStanding:
    """How a learner and its outside experts stand; `Run.experts` makes it, and `str()` is two lines to read.

    >>> import rue
    >>> run = rue.learn([[1.0], [-1.0]], [1, -1], experts={"oracle": [0.9, 0.1]})
    >>> [member.kind for member in run.experts.members]
    ['the learner alone', 'oracle', 'a mixture over all predictions']
    """

    members: tuple[Member, ...]
    """The learner alone, each expert, and the mixture over all their predictions."""
    loss: float
    """What all together have lost."""
    price_at_most: float
    """How much more than any of the members that can be: for logistic loss ln(K + 2) with K experts (M1)."""

    @property
    def best(self) -> Member:
        """The member that has lost least."""
        return min(self.members, key=lambda member: member.loss)

    @property
    def price(self) -> float:
        """How much more than the best member all together have lost; negative if mixing gained."""
        return self.loss - self.best.loss

    def __str__(self) -> str:
        lost = "; ".join(f"{member.kind} {member.loss:,.6g} ({member.weight:.0%})" for member in self.members)
        return (
            f"lost in total, and weight: {lost}\n"
            f"together {self.loss:,.6g}, {self.price:+,.4g} over the best of them, at most {self.price_at_most:,.4g} "
            "by proof"
        )


class Ensemble:
    """The state of a mixture of a learner with outside experts; its members' order is that of `names`.

    >>> import numpy as np, rue
    >>> ensemble = Ensemble(["lightgbm"], rue.Logistic())
    >>> ensemble.learn(np.zeros(2), np.array([[3.0], [3.0]]), np.array([1.0, 1.0]), np.empty(0)).round(4)
    array([0.6228, 1.1465])
    """

    def __init__(self, names: Any, loss: Any, reading: str = "probability", calibrate: bool = False) -> None:
        self.names = tuple(names)
        self.calibrate = calibrate
        """Whether the learner's probabilities are corrected."""
        self.reading = reading
        """Of logistic loss: whether the experts' numbers are probabilities or scores."""
        if calibrate and not loss.log_odds:
            raise SettingsError(
                "calibrate: probabilities of two classes are corrected, of logistic loss: leave it out."
            )
        if not 1 - calibrate <= len(self.names) <= MOST_EXPERTS or len(set(self.names)) < len(self.names):
            raise SettingsError(f"experts: give 1 to {MOST_EXPERTS}, each with a name of its own.")
        if loss.task == "multiclass":
            raise SettingsError("experts: with more than two classes they have no place yet: leave them out.")
        self.loss = loss
        many = len(self.names) + 2
        self.members = np.zeros((len(MEMBERS), many))
        self.members[SHARES] = 1.0 / many
        self.memory = open_memory(MIXING_MEMORY, loss.log_odds)
        self.stack: Learner = Mixture(loss)
        self._scratch, self._work = np.zeros((len(SCRATCH), many)), np.zeros((len(MIXING), 1))

    @property
    def mixing(self) -> Experts:
        """The members as exponential weights take them."""
        return Experts(self.members, np.ones(1), self.memory, way_of(self.loss, None))

    def learn(self, own: Any, advice: Any, y: Any, weights: Any) -> Any:
        """The predictions of all together, each made before its row is entered; NaN where the learner has none.

        `own` are the learner's predictions, and `advice` has a column for each expert.
        """
        out, known = np.full(own.size, np.nan), np.isfinite(own)
        rows, y, weights = self._rows(own, advice)[known], y[known], weights[known] if weights.size else weights
        stacked, blank = np.empty(len(rows)), self._without_labels(weights, len(rows))
        if blank:
            rows[:blank, 0] = rows[:blank, 1:].mean(axis=1)
        block = self.stack.widen(Block(self._features(rows), y, weights if weights.size else None))
        end, why = self.stack.run_block(block, open_ledger(self.stack.coordinates), stacked, 0)
        if end < len(rows):
            raise DataError(f"experts: {why}")
        stacked[:blank] = rows[:blank, 0]
        out[known] = self._mixed(rows, stacked, y, weights)
        return out

    def _without_labels(self, weights: Any, rows: int) -> int:
        """How many rows come before the first label is known: there learner and stack can only say 0.

        Where that is no even chance but any number, they say what the experts say on average: a round with predictions
        far from each other would slow the mixture down for long.
        """
        if self.stack.t or self.loss.log_odds:
            return 0
        used = np.flatnonzero(weights > 0.0) if weights.size else np.arange(rows)
        return int(used[0]) + 1 if used.size else rows

    def predict(self, own: Any, advice: Any) -> Any:
        """The predictions of all together when nothing is learnt any more, the weights as they are."""
        rows = self._rows(own, advice)
        stacked = self.stack.frozen().predict_many(self._features(rows)) if self.stack.t else rows[:, 0]
        return self._mixed(rows, stacked, np.ones(len(rows)), np.zeros(len(rows)))

    def _rows(self, own: Any, advice: Any) -> Any:
        """The learner's prediction, then those of the experts."""
        rows = np.column_stack([own, np.where(np.isnan(advice), own[:, None], advice)])
        return np.clip(rows, -HIGHEST, HIGHEST) if self.loss.log_odds else rows

    def _features(self, rows: Any) -> Any:
        """The features of the stack: all predictions, and in which part of 0 to 1 the learner's probability lies."""
        if not self.calibrate:
            return np.ascontiguousarray(rows)
        chances = 1.0 / (1.0 + np.exp(-rows[:, 0]))
        parts = np.minimum((PARTS * chances).astype(np.int64), PARTS - 1)
        return np.column_stack([rows, np.arange(PARTS) == parts[:, None]])

    @property
    def width(self) -> int:
        """How many features the stack has."""
        return len(self.names) + 1 + PARTS * self.calibrate

    def _mixed(self, rows: Any, stacked: Any, y: Any, weights: Any) -> Any:
        stacked = np.where(np.isfinite(stacked), stacked, rows[:, 0])
        stacked = np.clip(stacked, -HIGHEST, HIGHEST) if self.loss.log_odds else stacked
        predictions, out = np.column_stack([rows, stacked]), np.empty(len(rows))
        mix_rows(self.loss, self.mixing, predictions, y, weights, self._scratch, self._work, out)
        return out

    def standing(self) -> EnsembleStanding:
        """What each member has lost, its weight, and the price of mixing."""
        shares = self.members[SHARES] / self.members[SHARES].sum()
        names = (OWN, *self.names, STACK if self.names else CORRECTED)
        members = zip(names, self.members[LOSSES].tolist(), shares.tolist(), strict=True)
        listed = tuple(Member(name, None, loss, share, True) for name, loss, share in members)
        return EnsembleStanding(listed, float(self.memory[MIXED]), self.mixing.way.price(self.mixing))

    def require_names(self, names: Any) -> None:
        """Refuse experts other than those that it has learnt with."""
        if tuple(names) != self.names:
            own = ", ".join(self.names)
            given = f"not those of {', '.join(map(shown, names))}" if tuple(names) else "which are missing"
            raise SettingsError(
                f"experts: the model was learnt with {own}: give their predictions, in this order (--expert NAME=FILE, "
                f"in Python experts=), {given}."
            )

    def require_sane(self) -> None:
        """Refuse a state from a file that rounds could not go on from."""
        self.mixing.require_sane()
        if not math.isfinite(self.memory[MIXED]):
            raise DataError("the losses of its experts are impossible")
