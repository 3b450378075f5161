"""`Alarm`: says when the mean of some losses has risen, with few false alarms by proof (docs/theory.md, B17).

Every 16 rounds a confidence sequence for the mean loss is started (B14, both sides, level 1 − α); of the older ones
fewer are left, so that their ages are about geometric. An alarm is raised when a later one lies wholly above what an
earlier one is now or has ever been. That is safe: while the conditional mean μ_t does not rise, the mean of μ over
[s_2, t] is at most that over [s_1, t], and that at most the one over [s_1, r] for every r ≤ t, so one of the two must
have missed. Then the expected number of starts until a false alarm is at least 1/α, hence that of rounds at least
16(1/α − 1) (Shekhar and Ramdas 2024): the processes behind the sequences, added up, grow by at most one a start on
average, and one of them must have reached 1/α.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import inline, kernel
from rue.errors import DataError, SettingsError, shown
from rue.regret.risk.bernstein import _LAMBDA, _LOG_PI, _PSI

__all__ = ["EVERY", "Alarm", "Change"]

EVERY = 16
"""Rounds between two starts, and between two looks."""
ROOM = 320
"""Four sequences for each doubling of the number of starts, and eight young ones: enough for any stream."""
START, SIZE, SUM, SPREAD, HIGH, NEXT = range(6)
LATER = 1.25
"""The upper end of a sequence is computed anew when it is older by this factor."""
ROUNDS, STARTS, LIVE = range(3)


@inline
def _deviation(V: Any, wanted: Any, lambdas: Any, psis: Any, log_pis: Any) -> Any:
    """S with Σ_k π_k e^{λ_k S − ψ_k V} = e^wanted, by Newton's steps from above (`bernstein.deviation`)."""
    s = math.inf
    for k in range(lambdas.size):
        s = min(s, (wanted - log_pis[k] + psis[k] * V) / lambdas[k])
    for _ in range(60):
        top = -math.inf
        for k in range(lambdas.size):
            top = max(top, log_pis[k] - psis[k] * V + lambdas[k] * s)
        mass, slope = 0.0, 0.0
        for k in range(lambdas.size):
            e = math.exp(log_pis[k] - psis[k] * V + lambdas[k] * s - top)
            mass += e
            slope += e * lambdas[k]
        step = (top + math.log(mass) - wanted) * mass / slope
        if step <= 1e-14 * s:
            break
        s -= step
    return s


@inline
def _crossing(table: Any, live: Any, wanted: Any, lambdas: Any, psis: Any, log_pis: Any) -> Any:
    """The first later sequence that lies above an earlier one, and that one; −1 and −1 if there is none."""
    lowest, earlier = math.inf, -1
    for j in range(live):
        n, V = table[j, SIZE], table[j, SPREAD]
        mean = table[j, SUM] / n
        # S is at least √(2V·wanted), which takes no Newton's steps, so mostly S itself is not needed.
        above = mean - math.sqrt(2.0 * V * wanted) / n > lowest
        if above and mean - _deviation(V, wanted, lambdas, psis, log_pis) / n > lowest:
            return j, earlier
        if n >= table[j, NEXT]:
            high = mean + _deviation(V, wanted, lambdas, psis, log_pis) / n
            table[j, HIGH], table[j, NEXT] = min(table[j, HIGH], high), LATER * n
        if table[j, HIGH] < lowest:
            lowest, earlier = table[j, HIGH], j
    return -1, -1


@inline
def _start(table: Any, memory: Any) -> None:
    """Leave out sequences that are too close together for their age, and start a new one.

    The upper end of one that is left out is handed to the next: it holds for all that are later still.
    """
    live, starts, high = 0, memory[STARTS], math.inf
    for j in range(memory[LIVE]):
        number = np.int64(table[j, START]) // EVERY
        age, step = starts - number, 1
        while age >= 8 * step:
            step *= 2
        high = min(high, table[j, HIGH])
        if number % step == 0:
            for c in range(table.shape[1]):
                table[live, c] = table[j, c]
            table[live, HIGH] = high
            live, high = live + 1, math.inf
    for c in range(table.shape[1]):
        table[live, c] = 0.0
    table[live, START], table[live, HIGH] = starts * EVERY, high
    memory[STARTS] = starts + 1
    memory[LIVE] = live + 1


@kernel
def _watch(
    table: Any, memory: Any, x: Any, begin: Any, wanted: Any, lambdas: Any, psis: Any, log_pis: Any, found: Any
) -> Any:
    """Enter rounds in [0, 1] until an alarm; how many were entered. `found` gets the two sequences, or −1."""
    found[0], found[1] = -1, -1
    for i in range(begin, x.size):
        if memory[ROUNDS] % EVERY == 0:
            _start(table, memory)
        for j in range(memory[LIVE]):
            guess = (0.5 + table[j, SUM]) / (table[j, SIZE] + 1.0)
            table[j, SPREAD] += (x[i] - guess) * (x[i] - guess)
            table[j, SUM] += x[i]
            table[j, SIZE] += 1.0
        memory[ROUNDS] += 1
        if memory[ROUNDS] % EVERY == 0:
            later, earlier = _crossing(table, memory[LIVE], wanted, lambdas, psis, log_pis)
            if later >= 0:
                found[0], found[1] = later, earlier
                return i + 1
    return x.size


class Change(NamedTuple):
    """One alarm.

    >>> print(Change(round=5400, since=5008, before=0.1, after=0.3))
    alarm at round 5,400: the mean loss rose from 0.1 to 0.3, about at round 5,008
    """

    round: int
    """After which round it was raised; rounds count from 1."""
    since: int
    """The first round of the later of the two stretches that differ: about when the loss rose."""
    before: float
    """The mean loss of the earlier stretch, up to `since`."""
    after: float
    """The mean loss from `since` on."""

    def __str__(self) -> str:
        return (
            f"alarm at round {self.round:,}: the mean loss rose from {self.before:.4g} to {self.after:.4g}, "
            f"about at round {self.since:,}"
        )


class Alarm:
    """Watches losses in [0, bound] and raises an alarm when their mean rises; a fall is none.

    While the conditional mean does not rise, a false alarm is raised at most once in `rounds` rounds on average (B17).
    After an alarm it begins anew. The same losses give the same alarms, in pieces of any size.

    >>> rng = np.random.default_rng(0)
    >>> alarm = Alarm(1e6)
    >>> alarm.enter(rng.random(5000) < 0.1), len(alarm.enter(rng.random(5000) < 0.3))
    ([], 1)
    >>> 5000 < alarm.changes[0].round < 6000
    True
    """

    def __init__(self, rounds: float = 1e6, bound: float = 1.0) -> None:
        number = isinstance(rounds, int | float | np.number) and not isinstance(rounds, bool)
        if not (number and EVERY <= rounds < math.inf):
            raise SettingsError(
                f"alarm: give the mean number of rounds between false alarms, at least {EVERY}, not {shown(rounds)}."
            )
        if not 0.0 < bound < math.inf:
            raise SettingsError(f"alarm: the bound of the losses must be a number above 0, not {shown(bound)}.")
        self.rounds, self.bound = float(rounds), float(bound)
        self.seen = 0
        """How many rounds were watched."""
        self.changes: list[Change] = []
        self.table = np.zeros((ROOM, 6))
        """For each sequence its first round (from 0 on, since the last alarm), rounds, sum, V, the lowest upper end so
        far, and at which age that is computed anew."""
        self.memory = np.zeros(3, dtype=np.int64)
        """Rounds and starts since the last alarm, and how many sequences there are."""

    @property
    def alpha(self) -> float:
        """The level that every sequence may miss: 16(1/α − 1) = rounds."""
        return 1.0 / (1.0 + self.rounds / EVERY)

    def enter(self, losses: Any) -> list[Change]:
        """Watch more losses, in the order of time; the alarms that they raise, which `changes` gets too."""
        x = np.ascontiguousarray(losses, dtype=np.float64) / self.bound
        if x.ndim != 1 or not ((x >= 0.0) & (x <= 1.0)).all():
            raise DataError(f"alarm: losses must be a list of numbers between 0 and their bound, {self.bound:g}.")
        begin, found, new = 0, np.empty(2, dtype=np.int64), list[Change]()
        wanted = math.log(2.0 / self.alpha)  # half of α for each side
        while begin < x.size:
            end = int(_watch(self.table, self.memory, x, begin, wanted, _LAMBDA, _PSI, _LOG_PI, found))
            self.seen += end - begin
            begin = end
            if found[0] >= 0:
                new.append(self._change(*found.tolist()))
                self.table[:], self.memory[:] = 0.0, 0
        self.changes += new
        return new

    def _change(self, later: int, earlier: int) -> Change:
        """The alarm that two sequences raise."""
        (start, many, total), (_, all_, whole) = self.table[later, :3].tolist(), self.table[earlier, :3].tolist()
        since = self.seen - int(self.memory[ROUNDS]) + int(start) + 1
        before = (whole - total) / (all_ - many)
        return Change(self.seen, since, self.bound * before, self.bound * total / many)

    def intervals(self) -> Any:
        """The confidence intervals of all sequences now: a row of first round, lower and upper end for each.

        >>> alarm = Alarm(1e6)
        >>> alarm.enter(np.full(160, 0.5))
        []
        >>> first, low, high = alarm.intervals()[0].tolist()
        >>> first, low <= 0.5 <= high
        (1.0, True)
        """
        live, rows = int(self.memory[LIVE]), []
        for start, n, total, V in self.table[:live, :4].tolist():
            if n:
                away = _deviation(V, math.log(2.0 / self.alpha), _LAMBDA, _PSI, _LOG_PI)
                first = self.seen - int(self.memory[ROUNDS]) + start + 1
                rows.append((first, self.bound * (total - away) / n, self.bound * (total + away) / n))
        return np.array(rows).reshape(-1, 3)
