"""Calibration (E3): whether what was predicted came as often as was predicted, overall, by score, and by group.

For logistic loss the slope is the probability predicted minus 1 if the label is +1, so that the certificate's S = Σ g_t
x_t is the mean probability minus the share of positives, times the weight: at the intercept of all examples, at a
feature that is 0 or 1 of those where it is 1. For square loss S/2 is the same of numbers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rue import ledger as accounts
from rue.errors import SettingsError
from rue.learners import Learner
from rue.regret.certificates.evidence import Evidence
from rue.runs.metrics import Metrics
from rue.runs.scores import DIGITS, ScoreCounts

__all__ = ["Bin", "Calibration", "Group", "calibration_of", "calibration_words", "require_calibration"]

BINS = 10
"""How many bins probabilities are in, all as wide."""
ENOUGH, SHARE = 100.0, 0.01
"""The least weight of a group to be named, and the least share of all."""


@dataclasses.dataclass(frozen=True)
class Bin:
    """The examples whose predicted probability lay between two ends."""

    low: float
    high: float
    weight: float
    says: float
    """The mean probability predicted."""
    happened: float
    """The share of positives among them."""


@dataclasses.dataclass(frozen=True)
class Group:
    """The examples in which a feature was 1."""

    name: str
    weight: float
    gap: float
    """The mean of what was predicted minus the mean of what came."""


@dataclasses.dataclass(frozen=True)
class Calibration:
    """What was predicted on average, and what came; `str()` says it in a line. `Run.calibration` makes it.

    >>> import rue
    >>> X, y = rue.census()
    >>> found = rue.learn(X[:5000], y[:5000]).calibration()
    >>> abs(found.gap) < 0.05, len(found.bins) <= 10, found.groups[0].weight >= 100
    (True, True, True)

    docs/theory.md, E3.
    """

    of: str
    """`probability`, of two classes, or `value`, of numbers."""
    weight: float
    says: float
    """The mean of the predictions."""
    happened: float
    """The share of positives, or the mean of the labels."""
    bins: tuple[Bin, ...]
    """Of probabilities, those of each tenth that occurred."""
    groups: tuple[Group, ...]
    """Groups with enough examples, the largest gap first; empty where none were counted."""

    @property
    def gap(self) -> float:
        """The mean of what was predicted minus the mean of what came: S_0/T for logistic loss, S_0/(2T) for square."""
        return self.says - self.happened

    @property
    def error(self) -> float | None:
        """The expected calibration error, Σ over bins of weight·|says − happened| / Σ weight; None for numbers."""
        if not self.bins:
            return None
        return sum(part.weight * abs(part.says - part.happened) for part in self.bins) / self.weight

    def __str__(self) -> str:
        return calibration_words(dataclasses.asdict(self))


_MEANS = ("says", "happened")


def calibration_words(found: Mapping[str, Any]) -> str:
    """A calibration, as a dictionary, in one line."""
    chances = found["of"] == "probability"
    says, came = (f"{100.0 * found[name]:.1f} %" if chances else f"{found[name]:.5g}" for name in _MEANS)
    text = f"says {says} on average, {came} {'happened' if chances else 'came'}"
    if found["groups"]:
        worst = found["groups"][0]
        size = f"{100.0 * abs(worst['gap']):.1f} points" if chances else f"{abs(worst['gap']):.3g}"
        way = "too high" if worst["gap"] > 0.0 else "too low"
        text += f"; largest gap: {worst['name']}, {size} {way} over {worst['weight']:,.0f} rows"
    return text


def calibration_of(
    learner: Learner, evidence: Evidence, metrics: Metrics, names: Mapping[int, str] | None = None
) -> Calibration | None:
    """The calibration of a run; None for a loss that predicts neither probabilities nor means, or with no examples."""
    loss, sums = evidence.loss, evidence.ledger.sums
    weight = float(sums[accounts.WEIGHT])
    whole = metrics.sums is not None and metrics.examples == int(sums[accounts.EXAMPLES])
    if not (loss.log_odds or loss.quadratic or loss.log_mean) or not weight > 0.0 or not whole:
        return None
    scale = 2.0 if loss.quadratic else 1.0
    bins: tuple[Bin, ...] = ()
    if isinstance(metrics.sums, ScoreCounts):
        happened = float(metrics.sums.confusion[1].sum()) / weight
        bins = _bins(metrics.sums)
        says = sum(part.weight * part.says for part in bins) / weight
    else:
        happened = says = metrics.sums.mean  # type: ignore[union-attr]
    if learner.intercept:
        says = happened + float(evidence.ledger.S[0]) / scale / weight
    elif loss.log_odds is False:
        return None
    kind = "probability" if loss.log_odds else "value"
    return Calibration(kind, weight, says, happened, bins, _groups(learner, evidence, metrics, weight, scale, names))


def _bins(counts: ScoreCounts) -> tuple[Bin, ...]:
    """The reliability diagram, from the scores that the AUC is computed from; they may have been cut to few digits."""
    scores, masses = counts.counted()
    if counts.digits < DIGITS:
        scores = scores * (1.0 + math.ldexp(1.0, -counts.digits))  # the middle of those that were cut to the same
    with np.errstate(over="ignore"):
        chances = 1.0 / (1.0 + np.exp(-scores))
    place = np.minimum((BINS * chances).astype(np.int64), BINS - 1)
    found = []
    for i in np.unique(place).tolist():
        inside = place == i
        weight = float(masses[inside].sum())
        says = float(masses[inside].sum(axis=1) @ chances[inside]) / weight
        found.append(Bin(i / BINS, (i + 1) / BINS, weight, says, float(masses[inside, 1].sum()) / weight))
    return tuple(found)


def _groups(
    learner: Learner, evidence: Evidence, metrics: Metrics, weight: float, scale: float, names: Any
) -> tuple[Group, ...]:
    """The groups that are large enough to be spoken of, the largest gap first."""
    features, counts = metrics.groups.groups()
    use = (counts >= ENOUGH) & (counts >= SHARE * weight) & (counts <= (1.0 - SHARE) * weight)
    features, counts = features[use], counts[use]
    shift, S = int(learner.intercept), evidence.ledger.S
    places = features if evidence.numbering is None else evidence.numbering.places_of(features).astype(np.int64)
    gaps = S[places + shift] / scale / counts
    order = np.argsort(-np.abs(gaps), kind="stable")
    called = learner.called(names or {})
    return tuple(
        Group(called.get(int(features[i]), f"feature {int(features[i])}"), float(counts[i]), float(gaps[i]))
        for i in order
    )


def require_calibration(found: Calibration | None) -> Calibration:
    """Refuse to speak of the calibration of a run that has none."""
    if found is None:
        raise SettingsError(
            "calibration is known for logistic, square and Poisson loss, for runs whose metrics are of all examples."
        )
    return found
