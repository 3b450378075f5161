"""`Race`: a challenger learns from the same log as the model that serves, and their losses are compared.

Of each example after the challenge, d is the loss of what was served less that of the challenger's own prediction,
both made before the label came, clipped to [−B, B]. B14 on the rounds (d/B + 1)/2 gives a lower bound on the mean of
their conditional expectations that holds at every moment at once with probability 95 %, so it may be looked at, and
acted on, at any time. B is eight times the mean loss of the model when the challenge begins, so no later label
decides it. What the challenger learns of the past is not compared: it was chosen by who had seen that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rue.errors import DataError
from rue.ledger import LOSS, WEIGHT
from rue.regret.risk.bernstein import deviation
from rue.serve.model import ServedModel

__all__ = ["Race"]

TIMES, DELTA = 8.0, 0.05


class Race:
    """A challenger, and how it stands against the model that serves.

    >>> from rue.serve.settings import Settings
    >>> race = Race(ServedModel(1, "challenger", Settings(learner="ogd")), 1, 2.0)
    >>> race.enter([(1.0, 0.5)] * 200)
    >>> race.better_by_at_least() > 0.0
    True
    """

    def __init__(self, challenger: ServedModel, seq: int, clip: float) -> None:
        self.challenger, self.seq, self.clip = challenger, seq, clip
        self.examples, self.ours, self.its, self.sum, self.spread = 0, 0.0, 0.0, 0.0, 0.0
        """Examples compared, the losses of what was served and of the challenger, Σx and V of B14."""

    @classmethod
    def against(cls, model: ServedModel, challenger: ServedModel, seq: int) -> Race:
        """A race that begins now."""
        sums = model.driver.sums
        mean = 0.0 if sums is None or not sums[WEIGHT] else float(sums[LOSS] / sums[WEIGHT])
        return cls(challenger, seq, TIMES * mean if mean > 0.0 else 1.0)

    def compare(self, ours: Sequence[tuple[int, float]], its: Sequence[tuple[int, float]]) -> None:
        """Enter what both have just learnt, by the record that made them learn it; what one of them has not, is out."""
        known = dict(its)
        self.enter([(loss, known[seq]) for seq, loss in ours if seq and seq in known])

    def enter(self, losses: Sequence[tuple[float, float]]) -> None:
        """Enter pairs of losses, that of what was served first."""
        for ours, its in losses:
            d = min(max(ours - its, -self.clip), self.clip)
            x = 0.5 * (d / self.clip + 1.0)
            self.examples += 1
            self.spread += (x - (0.5 + self.sum) / self.examples) ** 2
            self.sum, self.ours, self.its = self.sum + x, self.ours + ours, self.its + its

    def better_by_at_least(self) -> float | None:
        """By how much the challenger's mean clipped loss is lower, at least; None before the first example."""
        if not self.examples:
            return None
        least = (self.sum - float(deviation(self.spread, DELTA))) / self.examples
        return max(-self.clip, self.clip * (2.0 * least - 1.0))

    def require_comparable(self, model: ServedModel) -> None:
        """Refuse to compare losses, or classes, that are not the same."""
        own, other = model.driver, self.challenger.driver
        if own.labels is None or other.labels is None:
            return
        if repr(own.learner.loss) != repr(other.learner.loss):
            raise DataError(
                f"the challenger's loss is {other.learner.loss!r} and the model's {own.learner.loss!r}: "
                "losses are compared of one kind."
            )
        if own.labels.task == "classify" and own.labels.numbers() != other.labels.numbers():
            raise DataError("the challenger has other classes, or another one as +1, than the model.")

    def require_better(self, model: ServedModel) -> None:
        """Refuse a promotion that the evidence does not allow."""
        self.require_comparable(model)
        least = self.better_by_at_least()
        if least is None or least <= 0.0:
            raise DataError(f"the challenger cannot be promoted yet: {self.words()}.")

    def words(self) -> str:
        """How it stands."""
        least = self.better_by_at_least()
        if least is None:
            return "nothing has been compared yet"
        if least > 0.0:
            return (
                f"the challenger is better by {least:.4g} a round at least, with 95 % at any time: it may be promoted"
            )
        return f"after {self.examples:,} examples it is not shown (B14, 95 % at any time) that the challenger is better"

    def figures(self) -> dict[str, Any]:
        """What the report says of it."""
        n = self.examples or None
        learner = self.challenger.driver.learner
        return {
            "since": self.seq,
            "learner": None if learner is None else repr(learner),
            "options": self.challenger.settings.to_json(),
            "examples": self.examples,
            "risk": n and self.its / n,
            "incumbent_risk": n and self.ours / n,
            "better_by_at_least": self.better_by_at_least(),
            "clip": self.clip,
            "words": self.words(),
        }

    def state(self) -> list[Any]:
        """Its numbers, for a snapshot."""
        return [self.seq, self.clip, self.examples, self.ours, self.its, self.sum, self.spread]

    @classmethod
    def restored(cls, challenger: ServedModel, state: Sequence[Any]) -> Race:
        """A race as a snapshot has it."""
        race = cls(challenger, *state[:2])
        race.examples, race.ours, race.its, race.sum, race.spread = state[2:]
        return race
