"""Class weights: every example of a class counts as so many, so that a rare class is not drowned by a frequent one."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Self

import numpy as np

from rue.errors import DataError, SettingsError, shown
from rue.streams import Block, Labels
from rue.streams.labels import is_called, plain

__all__ = ["BALANCED", "ClassWeights"]

BALANCED = "balanced"


@dataclasses.dataclass
class ClassWeights:
    """What the weight of an example is multiplied by, according to its class.

    `rule` is a weight for each class by name (1 for one that is not named), or "balanced": the n-th example, if it is
    the n_c-th of its class and k classes have come, has the weight n/(k·n_c). This is scikit-learn's formula with
    the counts so far, those of the example included, so it needs no look ahead and does not depend on blocks. Examples
    of weight 0 are not counted.

    >>> weights = ClassWeights.make("balanced")
    >>> y = np.array([-1.0, -1.0, -1.0, 1.0, -1.0])
    >>> weights.factors(y).round(3).tolist()
    [1.0, 1.0, 1.0, 2.0, 0.625]
    >>> ClassWeights.make("yes=5,no=1").rule
    {'yes': 5.0, 'no': 1.0}
    """

    rule: str | dict[Any, float]
    counts: dict[float, int] = dataclasses.field(default_factory=dict)
    """How many examples of each class have come, by the number that stands for it, in the order of first occurrence."""

    @classmethod
    def make(cls, given: Any) -> Self | None:
        """From "balanced", a dictionary, or text such as "yes=5,no=1"; None from None."""
        if given is None:
            return None
        if isinstance(given, str) and given != BALANCED:
            given = dict(_pair(part) for part in given.split(","))
        if given != BALANCED and not isinstance(given, dict):
            raise SettingsError(f"class_weight must be 'balanced' or a weight for each class, not {shown(given)}.")
        if isinstance(given, dict):
            given = {name: _weight(name, weight) for name, weight in given.items()}
        return cls(given)

    def require(self, labels: Labels) -> None:
        """Refuse a regression, and a name that is none of the two classes."""
        if labels.task == "regress":
            raise SettingsError("class weights (--class-weight) are for classes: say --task classify if these are.")
        two = (labels.negative, labels.positive)
        if self.rule == BALANCED or labels.task == "multiclass" or None in two:
            return
        for name in self.rule:
            if not any(is_called(label, name) for label in two):
                named = " and ".join(shown(plain(label)) for label in two)
                raise SettingsError(f"class weights (--class-weight) name {shown(name)}, but the classes are {named}.")

    def weighted(self, block: Block, labels: Labels) -> Block:
        """A block with its weights multiplied by those of its classes; nothing is counted yet."""
        y, given = labels.encode(block.y), block.column_of_weights()
        factors = self.factors(y, given) if self.rule == BALANCED else self._fixed(y, labels)
        return Block(block.X, block.y, factors * given if given.size else factors)

    def factors(self, y: Any, weights: Any = None) -> Any:
        """n/(k·n_c) of examples that come next, by their classes as the loss takes them; 1 if one is not counted."""
        which = _counted(y, weights)
        classes, first, place = np.unique(y[which], return_index=True, return_inverse=True)
        place = place.reshape(-1)
        before = np.array([self.counts.get(c, 0) for c in classes.tolist()], dtype=np.int64)
        order = np.argsort(place, kind="stable")  # class by class, each in the order of the stream
        starts = np.concatenate(([0], np.cumsum(np.bincount(place, minlength=classes.size))))[:-1]
        of_class = np.empty(place.size, dtype=np.int64)
        of_class[order] = np.arange(1, place.size + 1) - starts[place[order]] + before[place[order]]
        new = np.zeros(place.size, dtype=np.int64)
        new[first[before == 0]] = 1
        n, k = sum(self.counts.values()) + np.arange(1, place.size + 1), len(self.counts) + np.cumsum(new)
        out = np.ones(len(y))
        out[which] = n / (k * of_class)
        return out

    def _fixed(self, y: Any, labels: Labels) -> Any:
        """The weights of classes that were given by name."""
        out = np.ones(len(y))
        for number, name in labels.numbers().items():
            for called, weight in self.rule.items() if isinstance(self.rule, dict) else ():
                if is_called(name, called):
                    out[y == number] = weight
        return out

    def count(self, y: Any, weights: Any = None) -> None:
        """Count examples that were learnt; `weights` are theirs, empty or None if all are 1."""
        seen = y[_counted(y, weights)]
        classes, first, many = np.unique(seen, return_index=True, return_counts=True)
        for i in np.argsort(first).tolist():
            number = float(classes[i])
            self.counts[number] = self.counts.get(number, 0) + int(many[i])

    def now(self, labels: Labels) -> dict[str, float]:
        """By name, what an example of each class that has come would weigh as things stand."""
        total, k = sum(self.counts.values()), len(self.counts)
        names = {number: name for number, name in labels.numbers().items() if number in self.counts}
        if self.rule == BALANCED:
            return {str(plain(name)): total / (k * self.counts[number]) for number, name in names.items()}
        numbers = np.array(list(names))
        return dict(
            zip((str(plain(name)) for name in names.values()), self._fixed(numbers, labels).tolist(), strict=True)
        )

    def fixed(self, labels: Labels) -> ClassWeights:
        """Those that an example of each class has as things stand, for examples that are not learnt."""
        return ClassWeights(dict(self.now(labels)))

    def to_json(self) -> dict[str, Any]:
        """For a model file: the rule, and the counts so far."""
        rule = self.rule if isinstance(self.rule, str) else [[name, weight] for name, weight in self.rule.items()]
        return {"rule": rule, "counts": [[number, many] for number, many in self.counts.items()]}

    @classmethod
    def from_json(cls, stored: Any) -> Self | None:
        """What `to_json` wrote; None from None."""
        if stored is None:
            return None
        try:
            rule = stored["rule"] if isinstance(stored["rule"], str) else dict(stored["rule"])
            weights = cls.make(rule)
            counts = {float(number): many for number, many in stored["counts"]}
            possible = all(type(many) is int and many > 0 and math.isfinite(c) for c, many in counts.items())
            if weights is None or rule != weights.rule or not possible:
                raise DataError("its class weights make no sense")
        except (KeyError, TypeError, ValueError, SettingsError) as error:
            raise DataError("its class weights make no sense") from error
        return dataclasses.replace(weights, counts=counts)


def _counted(y: Any, weights: Any) -> Any:
    """Which examples count: those of a known class whose weight is not 0."""
    known = ~np.isnan(y)
    return known & (weights > 0.0) if weights is not None and weights.size else known


def _pair(part: str) -> tuple[str, float]:
    """`yes=5`; the class may have a = in its name too."""
    name, _, weight = part.rpartition("=")
    try:
        if name.strip():
            return name.strip(), float(weight)
    except ValueError:
        pass
    raise SettingsError(f"class weights are balanced, or such as yes=5,no=1, not {shown(part)}.")


def _weight(name: Any, weight: Any) -> float:
    """The weight of a class, if it is one."""
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0.0 <= weight < math.inf:
        must = f"must be a finite number, 0 or more, not {shown(weight)}"
        raise SettingsError(f"the weight of the class {shown(name)} {must}.")
    return float(weight)
