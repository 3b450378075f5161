"""The summary of intervals: the share of labels inside, what is promised, and how wide they were."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rue.intervals.accounts import Accounts, Group, Window
from rue.intervals.tracker import DOUBLINGS, FREE, HITS, SEEN

__all__ = ["Summary"]


@dataclasses.dataclass(frozen=True)
class Summary:
    """The intervals of one level: what was promised, and what was observed.

    >>> import rue
    >>> found = rue.prediction_intervals([1.0, 2.0, 1.5], [1.0, 1.0, 1.0], level=0.8).summaries[0]
    >>> found.level, found.side, found.examples
    (0.8, 'both', 3)
    >>> found.to_dict()["examples"]
    3
    """

    level: float
    """The wished share of labels inside."""
    side: str
    """`both`, or `upper` or `lower` for intervals with one end; `classes` for sets of classes."""
    examples: int
    """How many labels there were."""
    covered: float
    """The share of them inside; NaN before there are any."""
    promised_within: float
    """By how much `covered` may differ from `level`, by proof, on any sequence (E2).

    `free` of the hits are outside the promise from above: no interval could have been narrower. From below it holds
    with them."""
    mean_width: float
    """With one side, the mean distance of the end from the forecast; of sets, the mean number of classes."""
    doublings: int
    """Rounds whose score was more than twice all before: the promise allows for them one by one."""
    free: int
    """Hits of intervals of a single point, and hits while all scores were 0."""
    windows: tuple[Window, ...]
    """What was observed in windows of equal length, at most 32; nothing is promised there."""
    groups: tuple[Group, ...]
    """What was observed where a 0/1 feature is 1, those with at least 100 labels; nothing is promised there."""

    @classmethod
    def of(cls, level: float, side: str, memory: Any, bound: float, accounts: Accounts, k: int = 0) -> Summary:
        """From the tracker's `memory`, the `bound` on its debt, and the `accounts`, of which level k is wanted.

        >>> import numpy as np
        >>> from rue.intervals.tracker import SLOTS
        >>> Summary.of(0.9, "both", np.zeros(len(SLOTS)), 1.0, Accounts(1)).examples
        0
        """
        n, windows = int(memory[SEEN]), accounts.windows(k)
        width = math.fsum(accounts.table[:, 2 * k + 1]) / n if n else math.nan
        return cls(
            level=level,
            side=side,
            examples=n,
            covered=float(memory[HITS]) / n if n else math.nan,
            promised_within=min(1.0, bound / n) if n else math.nan,
            mean_width=width,
            doublings=int(memory[DOUBLINGS]),
            free=int(memory[FREE]),
            windows=tuple(windows),
            groups=tuple(accounts.observed(k)),
        )

    @property
    def lowest(self) -> Window | None:
        """The window with the lowest share, of those that are whole; None if there is none."""
        whole = [window for window in self.windows if window.last - window.first == self.windows[0].last - 1]
        return min(whole, key=lambda window: window.covered, default=None)

    def to_dict(self, names: Any = None) -> dict[str, Any]:
        """In plain JSON types; `names` says what a feature is called."""
        return {
            "level": self.level,
            "side": self.side,
            "examples": self.examples,
            "covered": _number(self.covered),
            "promised_within": _number(self.promised_within),
            "mean_width": _number(self.mean_width),
            "free": self.free,
            "groups": [
                {"group": str(group.feature) if names is None else names(group.feature), **_rest(group)}
                for group in self.groups
            ],
            "windows": [window._asdict() for window in self.windows],
        }

    def __str__(self) -> str:
        if not self.examples:
            return "no labels yet"
        what = "sets hold" if self.side == "classes" else "intervals hold"
        proof = f"within {self.promised_within:.1%} of it on any data"
        if self.free:
            proof = f"at least {max(0.0, self.level - self.promised_within):.1%} on any data"
        return f"{what} {self.covered:.1%} of {self.examples:,} labels, asked for {self.level:.1%}; by proof {proof}"


def _rest(group: Group) -> dict[str, Any]:
    return {"examples": group.examples, "covered": group.covered}


def _number(value: float) -> float | None:
    """A number for JSON, which knows no NaN."""
    return value if math.isfinite(value) else None
