"""What a race leaves behind: one entry a learner, and a table of them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rue.runs.driver import NO_CERTIFICATE
from rue.version import __version__

__all__ = ["Entry", "Race"]


@dataclasses.dataclass(frozen=True)
class Entry:
    """One learner of a race; its numbers are None if it could not go on to the end. `rue.race` makes it.

    >>> import rue
    >>> entry = rue.race([[1.0], [-1.0], [2.0]], [1, -1, 1], learners=["perceptron"]).entries[0]
    >>> entry.name, entry.mistakes
    ('perceptron', 2)
    """

    name: str
    """What it is called in the table."""
    about: str
    """The learner in full."""
    loss: float | None
    """Σ weight·ℓ(p_t, y_t), each example scored before it was learnt."""
    risk: float | None
    """Σ weight·ℓ / Σ weight."""
    mistakes: int | None
    """None for a regression."""
    regret_at_most: float | None
    """Certified against every linear model of norm ≤ the race's radius; None of more than two classes."""
    seconds: float
    """Processor time spent predicting and learning, without compilation."""
    note: str
    """Why it did not go on to the end, or what else there is to know; "" as a rule."""
    course: tuple[tuple[int, float], ...]
    """The number of examples and the risk, at marks a fifth apart."""


@dataclasses.dataclass(frozen=True)
class Race:
    """The results of several learners on one stream, the best first; `str()` is the table, `race["ogd"]` one entry.

    All are scored by the same loss, each example before it is learnt (docs/theory.md, Q1), and certified against the
    same set of linear models (D1, D3).

    >>> import rue
    >>> race = rue.race([[1.0], [-1.0], [2.0], [-2.0]], [1, -1, 1, -1], learners=["ogd", "perceptron"])
    >>> race.examples, race["ogd"].mistakes
    (4, 2)
    """

    entries: tuple[Entry, ...]
    """The learners, the best first."""
    examples: int
    skipped: int
    """Unusable examples that were passed over."""
    loss: Any
    task: str
    """`classify`, `multiclass` or `regress`."""
    mass: float
    """Σ weight."""
    radius: float
    """The norm of the linear models that regret is certified against."""
    comparator_loss_at_least: float | None
    """What every linear model of that norm, of features in units of their largest magnitude, must have lost.

    None of more than two classes, for which there is no certificate.
    """
    best_constant: float
    """What the best constant prediction loses, which is known in hindsight only."""
    no_change: float
    """What saying the last label again loses."""
    notes: tuple[str, ...] = ()
    """Who was left out, and why; and what else there is to know."""

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(name)

    def table(self) -> str:
        """One line for each learner, the best first, then the two baselines that learn nothing.

        >>> import rue
        >>> race = rue.race([[1.0], [-1.0], [2.0]], [1, -1, 1], learners=["perceptron"])
        >>> race.table().splitlines()[1].split()[0]
        'perceptron'
        """
        classes = self.task != "regress"
        lines = [_line("learner", "risk", "error" if classes else "", "total loss", "regret at most", "CPU s", "")]
        for entry in self.entries:
            error = None if entry.mistakes is None else f"{entry.mistakes / max(1, self.examples):.2%}"
            lines.append(
                _line(
                    entry.name,
                    _shown(entry.risk, ".6g"),
                    ("–" if error is None else error) if classes else "",
                    _shown(entry.loss, ",.1f"),
                    _shown(entry.regret_at_most, "+,.1f"),
                    f"{entry.seconds:.2f}",
                    entry.note,
                )
            )
        lines.append("")
        for name, loss in (("best constant", self.best_constant), ("last label again", self.no_change)):
            lines.append(_line(name, _shown(loss / self.mass if self.mass else None, ".6g"), "", f"{loss:,.1f}"))
        lines += ["", *self._words()]
        return "\n".join(line.rstrip() for line in lines)

    def _words(self) -> list[str]:
        summary = f"{self.examples:,} examples" + (f", {self.skipped:,} skipped" if self.skipped else "")
        summary = f"{summary}, {self.loss!r}, each scored before it was learnt"
        if self.task != "regress" and self.mass != self.examples:
            summary += "; errors count each example once, whatever its weight"
        if self.comparator_loss_at_least is None:
            return [f"{summary};", f"{NO_CERTIFICATE}.", *self.notes]
        words = [
            f"{summary}. No linear model of norm ≤ {self.radius:g}",
            "(each feature in units of its largest magnitude) could have lost less than "
            f"{self.comparator_loss_at_least:,.1f}.",
        ]
        return [*words, *self.notes]

    def __str__(self) -> str:
        return self.table()

    def report(self) -> dict[str, Any]:
        """The same as a dictionary for JSON; its fields are never renamed.

        >>> import rue
        >>> race = rue.race([[1.0], [-1.0], [2.0]], [1, -1, 1], learners=["perceptron"])
        >>> race.report()["examples"]
        3
        """
        entries = []
        for entry in self.entries:
            fields = dataclasses.asdict(entry)
            rate = None if entry.mistakes is None or not self.examples else entry.mistakes / self.examples
            entries.append(
                {
                    "name": fields["name"],
                    "learner": fields["about"],
                    "loss_total": _number(entry.loss),
                    "risk": _number(entry.risk),
                    "mistakes": fields["mistakes"],
                    "error_rate": rate,
                    "regret_at_most": _number(entry.regret_at_most),
                    "seconds": entry.seconds,
                    "note": entry.note,
                    "course": [[t, _number(risk)] for t, risk in entry.course],
                }
            )
        return {
            "rue": __version__,
            "examples": self.examples,
            "skipped": self.skipped,
            "loss": repr(self.loss),
            "radius": self.radius,
            "units": "largest",
            "comparator_loss_at_least": _number(self.comparator_loss_at_least),
            "no_certificate": NO_CERTIFICATE if self.task == "multiclass" else None,
            "best_constant": _number(self.best_constant),
            "no_change": _number(self.no_change),
            "learners": entries,
            "notes": list(self.notes),
        }

    def plot(self, path: Any = None) -> Any:
        """The risk of each against time as a matplotlib Figure; `path` (.png, .svg or .pdf) also saves it.

        >>> import rue
        >>> race = rue.race([[1.0], [-1.0], [2.0]], [1, -1, 1], learners=["perceptron"])
        >>> race.plot().axes[0].get_xlabel()
        'rounds t'
        """
        from rue.pictures.races import draw_race

        return draw_race(self, path)


def _line(name: str, risk: str, error: str, loss: str, regret: str = "", seconds: str = "", note: str = "") -> str:
    return f"{name:<20} {risk:>11} {error:>8} {loss:>14} {regret:>15} {seconds:>9}  {note}"


def _shown(value: float | None, form: str) -> str:
    """A number for the table, – where there is none."""
    return "–" if value is None else "∞" if value == math.inf else format(value, form)


def _number(value: float | None) -> float | None:
    """A number for JSON, which knows neither infinity nor NaN."""
    return value if value is not None and math.isfinite(value) else None
