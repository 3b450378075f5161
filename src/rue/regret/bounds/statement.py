"""What a theorem says about one run: its value, and whether the run was what the theorem assumes."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

__all__ = ["Assumption", "Bound", "at_most"]

ROUNDING = 1e-12
"""Relative slack of an observed number against an assumed one: both were rounded."""


def at_most(observed: float, assumed: float) -> bool:
    """Whether observed ≤ assumed, up to rounding."""
    return observed <= assumed + ROUNDING * abs(assumed)


@dataclasses.dataclass(frozen=True)
class Assumption:
    """One thing a theorem assumes, what was seen of it on the run, and whether it was met.

    >>> print(Assumption.limit("G", 1.0, 0.97))
    G: assumed 1, observed 0.97

    docs/theory.md, section 4.
    """

    name: str
    """What it is about: a letter of the theorem, or words."""
    assumed: Any
    """A number, or words."""
    observed: Any
    """The same, as it was on the run."""
    met: bool

    @classmethod
    def limit(cls, name: str, assumed: float, observed: float) -> Assumption:
        """An assumption about the quantity `name`: what was `observed` must not exceed what is `assumed`."""
        return cls(name, float(assumed), float(observed), at_most(float(observed), float(assumed)))

    def __str__(self) -> str:
        return f"{self.name}: assumed {_shown(self.assumed)}, observed {_shown(self.observed)}"


@dataclasses.dataclass(frozen=True, eq=False)
class Bound:
    """A theorem's value for a run, its assumptions, and whether this run met each; `str()` says it in a line.

    >>> import rue
    >>> print(rue.separable_bound([[3.0], [-2.0]], [1, -1], intercept=False, mistakes=1))
    B2, data: M_T ≤ (‖u‖X)² = 2 with ‖u‖ = 0.5, X = 3; observed 1: holds

    docs/theory.md, section 4.
    """

    theorem: str
    """Its identifier in docs/theory.md."""
    form: str
    """`worst case` (from bounds on the data), `data` (from what was seen) or `tuned` (for the step it asks for)."""
    value: float
    statement: str
    """The inequality."""
    assumptions: tuple[Assumption, ...] = ()
    constants: dict[str, float] = dataclasses.field(default_factory=dict)
    """The letters of the statement and their values."""
    observed: float | None = None
    """The regret or the mistakes it bounds, when known."""
    tolerance: float = 0.0
    """What rounding may add to `observed` (docs/theory.md, end of section 6)."""
    remark: str = ""
    """What else a reader should know, in words."""
    comparator: Any = None
    """The u that the value was computed with, where the theorem has one."""

    @property
    def met(self) -> bool:
        """Whether the run met every assumption."""
        return all(assumption.met for assumption in self.assumptions)

    @property
    def holds(self) -> bool | None:
        """Whether what was observed obeys the theorem; None when it says nothing here, or nothing was observed."""
        if not self.met or self.observed is None:
            return None
        return self.observed <= self.value + self.tolerance

    @property
    def words(self) -> str:
        """What it says about the run, or which assumption fails."""
        if not self.met:
            failed = "; ".join(str(assumption) for assumption in self.assumptions if not assumption.met)
            sentence = f"says nothing about this run ({failed})"
        else:
            numbers = ", ".join(f"{name} = {value:.6g}" for name, value in self.constants.items())
            sentence = f"{self.statement} = {self.value:.6g}" + (f" with {numbers}" if numbers else "")
            if self.holds is not None:
                sentence += f"; observed {self.observed:.6g}: {'holds' if self.holds else 'VIOLATED'}"
        return sentence + (f" ({self.remark})" if self.remark else "")

    def __str__(self) -> str:
        return f"{self.theorem}, {self.form}: {self.words}"


def _shown(value: Any) -> str:
    """A number with six digits, or words as they are."""
    if isinstance(value, float):
        return "∞" if value == math.inf else f"{value:.6g}"
    return str(value)
