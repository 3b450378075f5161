"""Progress on stderr: one line that rewrites itself on a terminal, elsewhere a row at 1, 2, 4, 8, … examples."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from rue import ledger as accounts
from rue.cli.folding import cut
from rue.reports.report import certified
from rue.runs.driver import Driver

__all__ = ["Progress"]

_HEAD = f"{'examples':>12} {'risk':>11} {'since last':>11} {'regret at most':>15} {'seconds':>8}"


class Progress:
    """Shows how far a run has come and its risk so far; with `quiet` nothing.

    On a terminal it is one line, written anew at most ten times a second, and more rarely if the certificate takes
    long. Elsewhere it is a row whenever the number of examples has doubled, as Vowpal Wabbit does it.
    """

    def __init__(self, quiet: bool, radius: float | None, to: TextIO | None = None) -> None:
        self.quiet, self.radius = quiet, radius
        self.to = sys.stderr if to is None else to
        self.live = not quiet and self.to.isatty()
        self.started = time.monotonic()
        self.next, self.due = 1, 0.0
        self.before = (0.0, 0.0)
        self.headed = False
        self.shown: set[str] = set()

    def update(self, driver: Driver, share: float | None) -> None:
        """After a block; `share` is how much of the data has been read, if that is known."""
        if self.quiet or driver.sums is None:
            return
        if self.live:
            if (now := time.monotonic()) >= self.due:
                self._print(f"\r\x1b[K{cut(self._now(driver, share), self.to)}", end="")
                after = time.monotonic()
                self.due = after + max(0.1, 50.0 * (after - now))  # a certificate may take a while
        elif driver.examples >= self.next:
            while self.next <= driver.examples:
                self.next *= 2
            self._row(driver)

    def tell(self, sentences: list[str]) -> None:
        """Print those warnings about the data that have not been printed yet."""
        for sentence in sentences:
            if not self.quiet and sentence not in self.shown:
                self._print(f"note: {sentence}")
            self.shown.add(sentence)

    def done(self, driver: Driver) -> None:
        """The last row."""
        if self.quiet or driver.sums is None:
            return
        if self.live:
            self._print("\r\x1b[K", end="")
        else:
            self._row(driver)

    def _print(self, text: str, end: str = "\n") -> None:
        try:
            print(text, end=end, file=self.to, flush=True)
        except OSError:  # stderr is closed, which is no reason to stop learning
            self.quiet = True

    def _row(self, driver: Driver) -> None:
        """A row of the table: the risk so far, and of the examples since the last row."""
        sums = driver.sums
        loss, mass = float(sums[accounts.LOSS]), float(sums[accounts.WEIGHT])
        if mass == self.before[1]:
            return
        since = (loss - self.before[0]) / (mass - self.before[1]) if mass > self.before[1] else float("nan")
        self.before = loss, mass
        if not self.headed:
            self._print(_HEAD)
            self.headed = True
        certificate = certified(driver, self.radius, thorough=False)
        regret = "–" if certificate is None else f"{certificate.regret_at_most:+,.1f}"
        seconds = time.monotonic() - self.started
        risk = loss / mass if mass else float("nan")
        unlabelled = f"  ({driver.unlabelled:,} unlabelled)" if driver.unlabelled else ""
        self._print(f"{driver.examples:>12,} {risk:>11.6g} {since:>11.6g} {regret:>15} {seconds:>8.1f}{unlabelled}")

    def _now(self, driver: Driver, share: float | None) -> str:
        """The line on a terminal."""
        sums = driver.sums
        seconds = time.monotonic() - self.started
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
