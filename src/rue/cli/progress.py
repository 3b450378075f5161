"""Progress on stderr: one line that rewrites itself on a terminal, elsewhere a row at 1, 2, 4, 8, … examples."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import TextIO

from rue import ledger as accounts
from rue.cli.folding import cut
from rue.reports.report import certified
from rue.runs.driver import Driver

__all__ = ["Lines", "Progress"]

_HEAD = f"{'examples':>12} {'risk':>11} {'since last':>11} {'regret at most':>15} {'seconds':>8}"


class Lines:
    """Lines on stderr while something runs: on a terminal one that is written anew, elsewhere rows; if quiet, nothing.

    >>> import sys
    >>> lines = Lines(quiet=False, to=sys.stdout)
    >>> [count for count in range(1, 10) if lines.doubled(count)]
    [1, 2, 4, 8]
    >>> lines.tell(["a column was skipped", "a column was skipped"])
    note: a column was skipped
    """

    def __init__(self, quiet: bool, to: TextIO | None = None) -> None:
        self.quiet, self.to = quiet, sys.stderr if to is None else to
        self.live = not quiet and self.to.isatty()
        self.started = time.monotonic()
        self._next, self._due, self._headed = 1, 0.0, False
        self._shown: set[str] = set()

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.monotonic() - self.started

    @property
    def due(self) -> bool:
        """Whether the line on a terminal may be written anew: ten times a second, more rarely if it takes long."""
        return self.live and time.monotonic() >= self._due

    def rewrite(self, words: Callable[[], str]) -> None:
        """Write the line on a terminal anew."""
        began = time.monotonic()
        self.write(f"\r\x1b[K{cut(words(), self.to)}", end="")
        after = time.monotonic()
        self._due = after + max(0.1, 50.0 * (after - began))  # a certificate may take a while

    def clear(self) -> None:
        """Leave nothing of the line on a terminal."""
        if self.live:
            self.write("\r\x1b[K", end="")

    def doubled(self, count: int) -> bool:
        """Whether it is time for a row: at 1, 2, 4, 8, …, as Vowpal Wabbit does it."""
        due = count >= self._next
        while self._next <= count:
            self._next *= 2
        return due

    def row(self, head: str, row: str) -> None:
        """A row of the table, whose head comes before its first row."""
        if not self._headed:
            self.write(head)
            self._headed = True
        self.write(row)

    def tell(self, sentences: Iterable[str]) -> None:
        """Print those warnings about the data that have not been printed yet."""
        for sentence in sentences:
            if not self.quiet and sentence not in self._shown:
                self.write(f"note: {sentence}")
            self._shown.add(sentence)

    def write(self, text: str, end: str = "\n") -> None:
        """Print, unless stderr is closed, which is no reason to stop learning."""
        try:
            print(text, end=end, file=self.to, flush=True)
        except OSError:
            self.quiet = True


class Progress:
    """Shows how far a run has come, its risk so far and what is certified at a `radius`; with `quiet` nothing."""

    def __init__(self, quiet: bool, radius: float | None, to: TextIO | None = None) -> None:
        self.lines, self.radius = Lines(quiet, to), radius
        self.before = (0.0, 0.0)
        """Σ weight·loss and Σ weight at the last row."""

    def update(self, driver: Driver, share: float | None) -> None:
        """After a block; `share` is how much of the data has been read, if that is known."""
        if self.lines.quiet or driver.sums is None:
            return
        if self.lines.due:
            self.lines.rewrite(lambda: self._now(driver, share))
        elif not self.lines.live and self.lines.doubled(driver.examples):
            self._row(driver)

    def tell(self, sentences: list[str]) -> None:
        """Print those warnings about the data that have not been printed yet."""
        self.lines.tell(sentences)

    def done(self, driver: Driver) -> None:
        """The last row."""
        if self.lines.quiet or driver.sums is None:
            return
        self.lines.clear()
        if not self.lines.live:
            self._row(driver)

    def _row(self, driver: Driver) -> None:
        """A row of the table: the risk so far, and of the examples since the last row."""
        sums = driver.sums
        loss, mass = float(sums[accounts.LOSS]), float(sums[accounts.WEIGHT])
        if mass == self.before[1]:
            return
        since = (loss - self.before[0]) / (mass - self.before[1]) if mass > self.before[1] else float("nan")
        self.before = loss, mass
        certificate = certified(driver, self.radius, thorough=False)
        regret = "–" if certificate is None else f"{certificate.regret_at_most:+,.1f}"
        risk = loss / mass if mass else float("nan")
        unlabelled = f"  ({driver.unlabelled:,} unlabelled)" if driver.unlabelled else ""
        first = f"{driver.examples:>12,} {risk:>11.6g} {since:>11.6g} {regret:>15}"
        self.lines.row(_HEAD, f"{first} {self.lines.seconds:>8.1f}{unlabelled}")

    def _now(self, driver: Driver, share: float | None) -> str:
        """The line on a terminal."""
        sums, seconds = driver.sums, self.lines.seconds
        mass = float(sums[accounts.WEIGHT])
        risk = float(sums[accounts.LOSS]) / mass if mass else float("nan")
        parts = [
            f"{driver.examples:,} examples",
            f"{driver.examples / max(seconds, 1e-9):,.0f} a second",
            f"risk {risk:.5f}",
        ]
        if driver.unlabelled:
            parts.insert(1, f"{driver.unlabelled:,} unlabelled")
        certificate = certified(driver, self.radius, thorough=False)
        if certificate is not None and certificate.radius is not None:
            parts.append(f"regret ≤ {certificate.regret_at_most:+,.0f} at norm {certificate.radius:.3g}")
        if share:
            parts.append(f"{share:.0%}, {seconds * (1 / share - 1):.0f} s left")
        return "  ".join(parts)
