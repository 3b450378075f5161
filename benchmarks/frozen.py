"""The model that stays: frozen at five moments of a stream, judged on the fifth of it that follows.

Beside it stand what it would have been without a choice (the mixture as it plays, standing still), batch regression on
standardised columns (scikit-learn's `LogisticRegression` or `Ridge`, fitted to all rows before the moment), and the
best constant of those rows.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

import rue
from benchmarks.data import SHARED
from benchmarks.quality import STREAMS, Stream, read

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
    """The whole of a stream, as far as `MOST` goes, and its thirds."""
    n = stream.y.size
    third = n // 3
    parts = {"whole": slice(0, min(n, MOST))}
    names = ("first third", "second third", "last third")
    parts |= {name: slice(k * third, k * third + min(third, MOST)) for k, name in enumerate(names)}
    return list(parts.items())


def cases(name: str, X: Any, y: Any, numbers: bool) -> list[Case]:
    """A segment, frozen at the five moments."""
    X = X[:, np.unique(X.indices)]
    learner, before, found, n = rue.Mixture("square" if numbers else "logistic"), 0, [], y.size
    for moment in MOMENTS:
        end = int(moment * n)
        learner.run(X[before:end], y[before:end])
        before, ahead, labels = end, X[end : end + n // 5], y[end : end + n // 5]
        predictions = {
            "frozen": learner.frozen().predict_many(ahead),
            "playing": learner.predict_many(ahead),
            "batch": batch(X[:end], y[:end], ahead, numbers),
            "constant": np.full(labels.size, constant(y[:end], numbers)),
        }
        losses = {what: mean_loss(p, labels, numbers) for what, p in predictions.items()}
        found.append(Case(f"{name} at {moment:.0%}", **losses))
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
    in_order, shuffled = [], []
    for name in STREAMS:
        if not (SHARED / STREAMS[name][0]).exists():
            continue
        stream = read(name)
        for part, rows in segments(stream):
            X, y = stream.X[rows], stream.y[rows]
            in_order += cases(f"{name}, {part}", X, y, stream.numbers)
            order = np.random.default_rng(0).permutation(y.size)
            shuffled += cases(f"{name}, {part}, shuffled", X[order], y[order], stream.numbers)
            for case in (*in_order[-5:], *shuffled[-5:]):
                losses = " ".join(f"{what} {loss:.4f}" for what, loss in list(case._asdict().items())[1:])
                print(f"  {case.name:40} {losses} ratio {case.ratio:.3f}", flush=True)
    ratios, calm = (np.array([case.ratio for case in found]) for found in (in_order, shuffled))
    behind = np.mean([case.frozen > 1.05 * case.constant for case in in_order])
    return [
        (
            f"{ratios.size} cases in file order, share within 5 % of the better of the two",
            (ratios <= 1.05).mean(),
            "≥ 0.8",
        ),
        ("in file order, share within 25 %", (ratios <= 1.25).mean(), "≥ 0.95"),
        ("in file order, the worst ratio", ratios.max(), "≤ 1.4"),
        ("in file order, share more than 5 % behind the constant", behind, "≤ 0.067"),
        (f"{calm.size} cases shuffled, share within 2 %", (calm <= 1.02).mean(), "≥ 0.9"),
        ("shuffled, the worst ratio", calm.max(), "–"),
    ]
