"""Certificates of windows (D6) and of comparators that change (D7), from sums that were added up window by window."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from rue import windows as w
from rue.domains import Domain
from rue.errors import DataError, SettingsError, shown
from rue.losses import Loss
from rue.norms import norm
from rue.regret.certificates.certificate import Certificate
from rue.regret.certificates.evidence import Evidence
from rue.regret.certificates.witnessed import NUMBERS
from rue.regret.certificates.witnesses import LOSS, A

__all__ = [
    "ChangingModels",
    "Window",
    "Windows",
    "certificate_of_window",
    "changing_models",
    "evidence_of_window",
    "find_window",
    "windows_of",
]


@dataclasses.dataclass(frozen=True)
class Window:
    """Some consecutive rounds of a run, with the sums that certify them (docs/theory.md, D6).

    >>> import rue
    >>> X, y = rue.census()
    >>> window = rue.learn(X[:4096], y[:4096], learner=rue.OGD()).windows[-1]
    >>> window.first, window.last, window.examples
    (4033, 4096, 64)
    """

    first: int
    """The number of its first round; rounds count the examples that were scored, from 1."""
    last: int
    """The number of its last round, which belongs to it."""
    weight: float
    """Σ weight of its examples."""
    loss: float
    """Σ weight·ℓ(p_t, y_t)."""
    mistakes: int | None
    """How many examples had y·p ≤ 0; None for a regression."""
    best_constant: float | None
    """The least loss of one constant prediction for these rounds; None where it is not known."""
    slope_times_prediction: float
    """A = Σ g_t p_t."""
    slope_norm: float
    """‖S‖ = ‖Σ g_t x_t‖."""
    gap: float | None
    """The mean prediction minus the mean label: of probabilities for two classes and logistic loss, of numbers for
    square loss (E3); None where there is no intercept, or for other losses."""

    @property
    def examples(self) -> int:
        """How many rounds it has."""
        return self.last - self.first + 1

    @property
    def risk(self) -> float:
        """The mean loss Σ weight·ℓ / Σ weight."""
        return self.loss / self.weight if self.weight else math.nan


class Windows(Sequence[Window]):
    """The windows of a run in their order, at most `most` of them, of `length` rounds each; the last is in halves.

    Those of merged parts, and what an older version has learnt, may be of other lengths. `listed` are the windows
    themselves.

    >>> import rue
    >>> X, y = rue.census()
    >>> windows = rue.learn(X[:4096], y[:4096], learner=rue.OGD()).windows
    >>> windows.length, windows.most, windows[0].first
    (128, 32, 1)
    """

    def __init__(self, listed: Sequence[Window], length: int, most: int) -> None:
        self._listed = tuple(listed)
        self.length = length
        """How many rounds a complete window has."""
        self.most = most
        """How many windows there may be: 32, or fewer where their sums would take more than 256 MB."""

    @overload
    def __getitem__(self, key: int) -> Window: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Window, ...]: ...
    def __getitem__(self, key: int | slice) -> Window | tuple[Window, ...]:
        return self._listed[key]

    def __len__(self) -> int:
        return len(self._listed)

    def __iter__(self) -> Iterator[Window]:
        return iter(self._listed)

    def __repr__(self) -> str:
        return f"Windows({len(self)} of {self.length} rounds)"


def windows_of(evidence: Evidence, intercept: bool, scales: Any = None) -> Windows:
    """The windows of a pass; `scales` divide the coordinates of S, as `Evidence.certificate` takes them."""
    windows, loss = evidence.ledger.windows, evidence.loss
    sums = windows.pieces()
    if not len(sums):
        return Windows((), 0, 0)
    S, places = windows.columns()
    if scales is not None:
        S = S / evidence.divisors("largest", scales, evidence.ledger.S.size)[places]
    ends = np.cumsum(sums[:, w.EXAMPLES]).astype(np.int64).tolist()
    listed = []
    for i, row in enumerate(sums):
        first = int(ends[i - 1]) + 1 if i else 1
        mistakes = int(row[w.MISTAKES]) if loss.task != "regress" else None
        gap = _gap(loss, float(S[i, 0]), float(row[w.WEIGHT])) if intercept and S.shape[1] and not places[0] else None
        sizes = float(row[w.A]), norm(S[i])
        listed.append(
            Window(
                first, ends[i], float(row[w.WEIGHT]), float(row[w.LOSS]), mistakes, _constant(loss, row), *sizes, gap
            )
        )
    return Windows(listed, int(windows.clock[w.LENGTH]), int(windows.clock[w.MOST]))


def _gap(loss: Loss, S: float, weight: float) -> float | None:
    """The mean of what was predicted minus the mean of what came, from S at the intercept (E3)."""
    if not weight > 0.0:
        return None
    if loss.quadratic:
        return S / (2.0 * weight)
    return S / weight if loss.log_odds or loss.log_mean else None


def _constant(loss: Loss, row: Any) -> float | None:
    """The least loss of a constant prediction, where the sums of the labels tell."""
    weight, total, squares = float(row[w.WEIGHT]), float(row[w.LABELS]), float(row[w.SQUARES])
    if not weight > 0.0 or not math.isfinite(total + squares):
        return None
    if loss.quadratic:
        return max(0.0, squares - total / weight * total)
    if loss.log_mean:
        mean = total / weight
        return weight * (mean - mean * math.log(mean)) if mean > 0.0 else 0.0
    if loss.log_odds:
        shares = [share for share in (0.5 * (1.0 + total / weight), 0.5 * (1.0 - total / weight)) if share > 0.0]
        return -weight * sum(share * math.log(share) for share in shares)
    return None


def find_window(evidence: Evidence, window: Any) -> tuple[int, int, int, int]:
    """The windows that hold the rounds asked for: the first and the last of them, and their first and last round.

    `window` is a pair (r, s) of rounds, both included and counted from 1, or "last:N" for the last N rounds.
    """
    ends = _ends(evidence)
    T = int(ends[-1]) if ends.size else 0
    if not T:
        raise DataError("certificate: no windows were kept for this run: learn the stream anew.")
    if isinstance(window, str):
        name, _, many = window.partition(":")
        if name != "last" or not many.isdecimal() or int(many) < 1:
            raise SettingsError(
                f"certificate: window is (r, s), or 'last:N' such as 'last:10000', not {shown(window)}."
            )
        r, s = max(1, T - int(many) + 1), T
    else:
        try:
            r, s = (int(end) for end in window)
        except (TypeError, ValueError):
            raise SettingsError(
                f"certificate: window is a pair (r, s) of rounds, or 'last:N' as 'last:10000', not {shown(window)}."
            ) from None
        if not 1 <= r <= s <= T:
            raise SettingsError(
                f"certificate: window (r, s) has 1 ≤ r ≤ s ≤ {T:,}, the number of rounds, not {(r, s)}."
            )
    i, j = (int(np.searchsorted(ends, end)) for end in (r, s))
    return i, j, int(ends[i - 1]) + 1 if i else 1, int(ends[j])


def evidence_of_window(evidence: Evidence, i: int, j: int) -> Evidence:
    """The evidence about windows i to j alone; losses without a regulariser, whose part in a window is not known.

    Witnesses prove more there too, where they were added up window by window (`WitnessWindows`).
    """
    pool = evidence.pool
    if pool is not None:
        ends = _ends(evidence)
        own = int(ends[i - 1]) + 1 if i else 1, int(ends[j])
        pool = None if evidence.witnessed is None else evidence.witnessed.pool_of(pool, *own)
    return dataclasses.replace(
        evidence,
        ledger=evidence.ledger.of_window(i, j),
        lambda_=0.0,
        penalty=0.0,
        pool=pool,
        witnessed=None,
        digest=None,
        columns=None,
        curvature=None,
        magnitudes=evidence.scales(),  # which witnesses or a digest may have had
        unasked=False,
    )


def _ends(evidence: Evidence) -> Any:
    """The last round of each window, the halves of the last one by themselves."""
    return np.cumsum(evidence.ledger.windows.pieces()[:, w.EXAMPLES]).astype(np.int64)


def certificate_of_window(evidence: Evidence, window: Any, ask: Callable[[Evidence], Certificate]) -> Certificate:
    """What `ask` finds proved by the evidence about some rounds alone, which it names (D6)."""
    i, j, first, last = find_window(evidence, window)
    certificate = ask(evidence_of_window(evidence, i, j))
    theorem = "D6" if certificate.theorem in ("D1", "D3") else certificate.theorem
    return dataclasses.replace(certificate, window=(first, last), theorem=theorem)


@dataclasses.dataclass(frozen=True, eq=False)
class ChangingModels:
    """What is proved about every model of a ball around 0 that changes now and then, at borders of windows (D7).

    For windows I_1 … I_m and points u_1 … u_m of norm ≤ U, Σ_k R_{I_k}(u_k) ≤ A + U Σ_k ‖S_{I_k}‖. The sums of all
    stretches of windows are computed once (`changing_models`); each number of changes then is a small search.
    """

    evidence: Evidence
    domain: Domain
    units: str
    norms: Any
    """‖S_i + … + S_j‖ at (i, j)."""
    floors: Any
    """What every model of the ball must lose in the windows i to j, at (i, j)."""
    uncertain: float
    """How far off the sums may be because products underflowed."""
    witnesses: int = 0
    """How many witnesses the floors are made of besides the learner."""

    def certificate(self, changes: int, left_out: int = 0) -> Certificate:
        """The largest regret over all partitions into at most `changes` + 1 stretches, by dynamic programming.

        What such a model must lose is the least Σ of what its stretches must lose, each at least 0 if losses are.
        """
        if isinstance(changes, bool) or not isinstance(changes, int | np.integer) or changes < 0:
            raise SettingsError(f"certificate: changes is a whole number ≥ 0, not {shown(changes)}.")
        sums, nonnegative = self.evidence.ledger.windows.pieces(), self.evidence.loss.nonnegative
        total, A = float(sums[:, w.LOSS].sum()), float(sums[:, w.A].sum())
        longest = -_least_partition(-self.norms, int(changes))
        alone = A + _radius_of(self.domain) * longest + self.uncertain
        at_least = _least_partition(self.floors, int(changes)) - self.uncertain
        at_least = max(at_least, 0.0) if nonnegative else at_least
        if not (math.isfinite(alone) and math.isfinite(at_least)):
            alone, at_least = math.inf, 0.0 if nonnegative else -math.inf
        return Certificate(
            self.domain,
            total,
            total - at_least,
            alone,
            at_least,
            A,
            longest,
            left_out,
            "D7",
            self.units,
            self.witnesses,
            mass=float(sums[:, w.WEIGHT].sum()),
            changes=int(changes),
        )


def changing_models(evidence: Evidence, domain: Domain, units: str, scales: Any = None) -> ChangingModels:
    """The sums of all stretches of windows, for models of a ball around 0; `scales` as `Evidence.certificate` has."""
    radius, windows = _radius_of(domain), evidence.ledger.windows
    sums = windows.pieces()
    if not len(sums):
        raise DataError("certificate: no windows were kept for this run: learn the stream anew.")
    S, places = windows.columns()
    whole = evidence_of_window(evidence, 0, len(sums) - 1)
    by = whole.divisors(units, scales, whole.ledger.S.size)
    norms = _segment_norms(S / by[places])

    def floors_of(losses: Any, along: Any, norms: Any) -> Any:
        """c − U‖S‖ of all stretches, with c = Σℓ − A, less what rounding may have added."""
        c = losses - along - whole.rounding * (np.abs(losses) + np.abs(along))
        return _segment_sums(c) - radius * norms * (1.0 + whole.rounding)

    floors, witnesses = floors_of(sums[:, w.LOSS], sums[:, w.A], norms), 0
    pool, seen = evidence.pool, evidence.witnessed
    if pool is not None and seen is not None and np.array_equal(seen.ends(), _ends(evidence)):
        witnesses, own = pool.radii.size, by[pool.places]
        for numbers in np.moveaxis(seen.vectors(pool), 2, 0):  # of one witness after the other
            theirs = _segment_norms(numbers[:, NUMBERS + 1 :] / own)
            floors = np.fmax(floors, floors_of(numbers[:, LOSS], numbers[:, A], theirs))
    if evidence.loss.nonnegative:
        floors = np.maximum(floors, 0.0)
    return ChangingModels(evidence, domain, units, norms, floors, whole.underflown(domain, by), witnesses)


def _radius_of(domain: Domain) -> float:
    if domain.centred_radius is None:
        raise SettingsError("certificate: changes=… is about models in a ball around 0: give a radius.")
    return float(domain.centred_radius)


def _segment_sums(values: Any) -> Any:
    """Σ of values i to j at (i, j); ∞ where j < i."""
    out = np.full((len(values), len(values)), math.inf)
    for i in range(len(values)):
        out[i, i:] = np.cumsum(values[i:])
    return out


def _segment_norms(S: Any) -> Any:
    """‖S_i + … + S_j‖ at (i, j); 0 where j < i. From the sums themselves: of inner products digits would cancel."""
    out = np.zeros((len(S), len(S)))
    for i in range(len(S)):
        running = np.zeros(S.shape[1])
        for j in range(i, len(S)):
            running += S[j]
            out[i, j] = norm(running)
    return out


def _least_partition(values: Any, changes: int) -> float:
    """The least Σ of `values` over all partitions of 0 … m − 1 into at most `changes` + 1 segments.

    >>> _least_partition(np.array([[3.0, 1.0], [0.0, 2.0]]), 0), _least_partition(np.array([[0.0, 1.0], [0.0, 0.5]]), 1)
    (1.0, 0.5)
    """
    m = len(values)
    best = values[0].copy()  # the first segments end at j
    for _ in range(min(changes, m - 1)):
        further = best.copy()
        for j in range(1, m):
            further[j] = min(best[j], float((best[:j] + values[1 : j + 1, j]).min()))
        best = further
    return float(best[m - 1])
