"""A theorem of docs/theory.md: its statement, where the notes have it, and an experiment that could refute it."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, overload

import numpy as np

from rue.errors import SettingsError, UnknownName, shown

__all__ = ["Comparison", "Outcome", "Proof", "Theorem", "Theorems", "theorem", "worst"]

Relation = Literal["≤", "≥", "=", "<", ">"]
ROUNDING = 1e-9
"""How much of the numbers compared rounding may take."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One comparison of an experiment: the number observed, and what the theorem says it must be."""

    what: str
    observed: float
    relation: Relation
    claimed: float

    @property
    def holds(self) -> bool:
        """Whether it is so; ≤, ≥ and = up to rounding, < and > beyond it."""
        room = ROUNDING * (1.0 + max(abs(self.observed), abs(self.claimed)))
        above = self.observed - self.claimed
        if not math.isfinite(above):
            return False
        return {
            "≤": above <= room,
            "≥": above >= -room,
            "=": abs(above) <= room,
            "<": above < -room,
            ">": above > room,
        }[self.relation]

    def __str__(self) -> str:
        sign = "" if self.holds else ", which FAILS"
        return f"{self.what}: {self.observed:.6g} {self.relation} {self.claimed:.6g}{sign}"


def worst(what: str, relation: Relation, pairs: Iterable[tuple[float, float]]) -> Comparison:
    """Of many pairs (observed, claimed) the one that is nearest to a refutation, or refutes."""
    compared = [Comparison(what, float(observed), relation, float(claimed)) for observed, claimed in pairs]
    sign = 1.0 if relation in ("≤", "<") else -1.0

    def beyond(one: Comparison) -> tuple[bool, float]:
        above = (one.observed - one.claimed) / (1.0 + abs(one.claimed))
        return not one.holds, abs(above) if relation == "=" else sign * above

    return max(compared, key=beyond)


@dataclasses.dataclass(frozen=True)
class Proof:
    """The outcome of a theorem's experiment: what was claimed, what was observed, whether it holds; `str()` sums it up.

    >>> import rue
    >>> proof = rue.theorems()["C1"].run()
    >>> proof.holds, proof.observed >= proof.claimed
    (True, True)
    """

    id: str
    """The theorem's identifier in docs/theory.md."""
    words: str
    """What was done and seen, in a sentence."""
    comparisons: tuple[Comparison, ...]
    """All that had to hold: first the theorem itself; where a misprint has a number, also that it fails."""

    @property
    def claimed(self) -> float:
        """What the theorem says."""
        return self.comparisons[0].claimed

    @property
    def observed(self) -> float:
        """What was seen of it: of many trials the one nearest to a refutation."""
        return self.comparisons[0].observed

    @property
    def holds(self) -> bool:
        """Whether everything that had to hold did."""
        return all(comparison.holds for comparison in self.comparisons)

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "FAILS"
        return "\n".join([f"{self.id} {verdict}. {self.words}", *(f"  {one}" for one in self.comparisons)])


Outcome = tuple[str, list[Comparison]]
"""What was done, in words, and what was compared."""
Experiment = Callable[[np.random.Generator], Outcome]


@dataclasses.dataclass(frozen=True)
class Theorem:
    """One identifier of docs/theory.md: a definition, an algorithm, a bound, an opponent or a certificate.

    `run` does an experiment that could refute it.

    >>> import rue
    >>> rue.theorems()["B9"].statement
    'A8: R_T ≤ √2·D·√(Σ‖g_t‖²)'
    """

    id: str
    """Its identifier in docs/theory.md, such as B3."""
    statement: str
    source: str
    """Where the notes have it, or who else."""
    misprint: str
    """What the notes print wrongly about it, and what is right; empty if nothing."""
    experiment: Experiment = dataclasses.field(repr=False)

    def run(self, seed: int = 0) -> Proof:
        """Play it out on data made for it; the same seed gives the same data.

        >>> import rue
        >>> rue.theorems()["C1"].run(seed=3).holds
        True
        """
        try:
            number = operator.index(seed)
        except TypeError:
            number = -1
        if number < 0:
            raise SettingsError(f"{self.id}: seed must be a whole number ≥ 0, not {shown(seed)}.")
        words, comparisons = self.experiment(np.random.default_rng(number))
        return Proof(self.id, words, tuple(comparisons))

    def __str__(self) -> str:
        misprint = f" Misprint: {self.misprint}" if self.misprint else ""
        return f"{self.id}: {self.statement} [{self.source}]{misprint}"


def theorem(statement: str, *, source: str, misprint: str = "") -> Callable[[Experiment], Theorem]:
    """Make a theorem of an experiment; the function's name is its identifier."""

    def named(experiment: Experiment) -> Theorem:
        return Theorem(experiment.__name__, statement, source, misprint, experiment)

    return named


class Theorems(Sequence[Theorem]):
    """Theorems in the order of docs/theory.md, by number or by identifier; `str()` is a table."""

    def __init__(self, listed: Iterable[Theorem]) -> None:
        self._listed = tuple(listed)

    @overload
    def __getitem__(self, key: int | str) -> Theorem: ...
    @overload
    def __getitem__(self, key: slice) -> Theorems: ...
    def __getitem__(self, key: int | str | slice) -> Theorem | Theorems:
        if isinstance(key, slice):
            return Theorems(self._listed[key])
        if not isinstance(key, str):
            return self._listed[key]
        for one in self._listed:
            if one.id == key:
                return one
        raise UnknownName(f"there is no theorem {shown(key)}: the identifiers are {', '.join(self.ids)}.")

    def __len__(self) -> int:
        return len(self._listed)

    def __iter__(self) -> Iterator[Theorem]:
        return iter(self._listed)

    @property
    def ids(self) -> list[str]:
        """Their identifiers."""
        return [one.id for one in self._listed]

    def __str__(self) -> str:
        return "\n".join(f"{one.id:<4}{one.statement}" for one in self._listed)

    def __repr__(self) -> str:
        return f"Theorems({', '.join(self.ids)})"
