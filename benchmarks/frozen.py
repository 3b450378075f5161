"""The model that stays: frozen at five moments of a stream, judged on the fifth of it that follows.

It is what `rue predict` uses of the default learner, and of the linear one. Beside it stand what it would have been
without a choice (the learner as it plays, standing still), batch regression on standardised columns (scikit-learn's
`LogisticRegression` or `Ridge`, fitted to all rows before the moment), and the best constant of those rows.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, NamedTuple

import numpy as np

import rue
from benchmarks.data import SHARED
from benchmarks.quality import STREAMS, Stream, read

LEARNERS = {"default": rue.Staged, "linear": rue.Mixture}
MOMENTS = (0.2, 0.35, 0.5, 0.65, 0.8)
MOST = 60_000
"""Rows of a segment: batch regression has to be fitted five times."""


class Case(NamedTuple):
    """One freezing: mean losses on the rows that follow."""

    name: str
    frozen: float
    playing: float
    batch: float
    constant: float

    @property
    def ratio(self) -> float:
        """The frozen model's loss in units of the better of the mixture standing still and batch regression."""
        return self.frozen / float(np.nanmin([self.playing, self.batch]))


def segments(stream: Stream) -> list[tuple[str, slice]]:
    """The whole of a stream, as far as `MOST` goes, and its thirds; the first is left out where it is the same rows."""
    n = stream.y.size
    third = n // 3
    parts = {"whole": slice(0, min(n, MOST))}
    names = ("first third", "second third", "last third")
    parts |= {name: slice(k * third, k * third + min(third, MOST)) for k, name in enumerate(names)}
    return [(name, rows) for name, rows in parts.items() if name == "whole" or rows != parts["whole"]]


def cases(name: str, X: Any, y: Any, numbers: bool) -> dict[str, list[Case]]:
    """A segment, frozen at the five moments: the cases of each learner."""
    X = X[:, np.unique(X.indices)]
    learners = {what: make("square" if numbers else "logistic") for what, make in LEARNERS.items()}
    before, found, n = 0, {what: [] for what in learners}, y.size
    for moment in MOMENTS:
        end = int(moment * n)
        ahead, labels = X[end : end + n // 5], y[end : end + n // 5]
        beside = {
            "batch": mean_loss(batch(X[:end], y[:end], ahead, numbers), labels, numbers),
            "constant": mean_loss(np.full(labels.size, constant(y[:end], numbers)), labels, numbers),
        }
        for what, learner in learners.items():
            learner.run(X[before:end], y[before:end])
            frozen = mean_loss(learner.frozen().predict_many(ahead), labels, numbers)
            playing = mean_loss(learner.predict_many(ahead), labels, numbers)
            found[what].append(Case(f"{name} at {moment:.0%}", frozen=frozen, playing=playing, **beside))
        before = end
    return found


def mean_loss(p: Any, y: Any, numbers: bool) -> float:
    return float(np.mean((p - y) ** 2 if numbers else np.logaddexp(0.0, -y * p)))


def constant(y: Any, numbers: bool) -> float:
    """The best constant of some labels."""
    yes = float((y > 0.0).mean())
    return float(y.mean()) if numbers else float(np.log((yes + 1e-9) / (1.0 - yes + 1e-9)))


def batch(X: Any, y: Any, ahead: Any, numbers: bool) -> Any:
    """Predictions of batch regression on standardised columns; NaN where the rows have one class only."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.preprocessing import StandardScaler

    if not numbers and np.unique(y).size < 2:
        return np.full(ahead.shape[0], np.nan)
    narrow = X.shape[1] < 500
    scaler = StandardScaler(with_mean=narrow)
    train, test = (part.toarray() if narrow else part for part in (X, ahead))
    model = Ridge(1.0) if numbers else LogisticRegression(max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may not have converged; that is what its users get
        model.fit(scaler.fit_transform(train), y)
    return model.predict(scaler.transform(test)) if numbers else model.decision_function(scaler.transform(test))


def frozen_rows() -> list[tuple[str, float, str]]:
    """The shares of all cases that are as close as wanted."""
    in_order: dict[str, list[Case]] = {what: [] for what in LEARNERS}
    shuffled: dict[str, list[Case]] = {what: [] for what in LEARNERS}
    for name in STREAMS:
        if not (SHARED / STREAMS[name][0]).exists():
            continue
        stream = read(name)
        for part, rows in segments(stream):
            X, y = stream.X[rows], stream.y[rows]
            order = np.random.default_rng(0).permutation(y.size)
            add(in_order, cases(f"{name}, {part}", X, y, stream.numbers))
            add(shuffled, cases(f"{name}, {part}, shuffled", X[order], y[order], stream.numbers))
    if not any(in_order.values()):
        sys.exit(f"benchmarks: there are no streams in {SHARED}.")
    return [row for what in LEARNERS for row in rows_of(what, in_order[what], shuffled[what])]


def add(found: dict[str, list[Case]], more: dict[str, list[Case]]) -> None:
    """Append cases, and print them."""
    for what, those in more.items():
        found[what] += those
        for case in those:
            losses = " ".join(f"{name} {loss:.4f}" for name, loss in list(case._asdict().items())[1:])
            print(f"  {what:8} {case.name:40} {losses} ratio {case.ratio:.3f}", flush=True)


def rows_of(what: str, in_order: list[Case], shuffled: list[Case]) -> list[tuple[str, float, str]]:
    """What is said of one learner."""
    ratios, calm = (np.array([case.ratio for case in found]) for found in (in_order, shuffled))
    behind = float(np.mean([case.frozen > 1.05 * case.constant for case in in_order]))
    near = float(np.mean(ratios <= 1.05))
    return [
        (f"{what}, {ratios.size} cases in file order, share within 5 % of the better of the two", near, "≥ 0.8"),
        (f"{what}, in file order, share within 25 %", float(np.mean(ratios <= 1.25)), "≥ 0.95"),
        (f"{what}, in file order, the worst ratio", float(ratios.max()), "≤ 1.4"),
        (f"{what}, in file order, share more than 5 % behind the constant", behind, "≤ 0.067"),
        (f"{what}, {calm.size} cases shuffled, share within 2 %", float(np.mean(calm <= 1.02)), "≥ 0.9"),
        (f"{what}, shuffled, the worst ratio", float(calm.max()), "–"),
    ]
