"""Out of the box: the progressive loss of the default learner on the real streams, beside the peers, tuned and not.

Every system gets the same features in the same order, one pass, each example scored before it is learnt.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import rue
from benchmarks import data
from benchmarks.clock import best_of
from benchmarks.data import SHARED
from rue.runs.driver import Driver
from rue.streams.data import Data

STREAMS = {
    "a9a": ("a9a.svm.xz", {}),
    "elec2": ("elec2.csv.xz", {"target": "up", "category": ("day",)}),
    "covtype": ("covtype.csv.xz", {"target": "lodgepole"}),
    "flights": ("flights.parquet", {"target": "late"}),
    "toxicity": ("toxicity.svm.xz", {}),
    "bike": ("bike.csv.xz", {"target": "cnt", "category": ("hr", "mnth", "weekday", "weathersit")}),
}
RATES = (0.03, 0.1, 0.25, 1, 2, 4, 8, 32)
PREFIX = 50_000
"""River and scikit-learn go one example at a time in Python: so many of them, and ours is compared on the same.

A tenth of it where there are more than 2^17 columns, because scikit-learn goes through all of them at every example.
"""


class Stream(NamedTuple):
    X: Any
    y: Any
    numbers: bool
    ours: Any
    """The losses of the default learner, example by example."""
    constant: float
    again: float


def read(name: str) -> Stream:
    """A stream as rue reads it, learnt as `rue learn FILE` does."""
    file, options = STREAMS[name]
    driver, parts, labels, losses = Driver(maps="default"), [], [], []
    for block in Data((str(SHARED / file),), **options):
        predictions = driver.learn(block)
        y = driver.labels.encode(block.y)
        parts.append(_csr(block.X) if block.sparse else sparse.csr_matrix(block.X))
        labels.append(y)
        losses.append([driver.learner.loss.value(p, label) for p, label in zip(predictions, y, strict=True)])
    width = max(part.shape[1] for part in parts)
    for part in parts:
        part.resize(part.shape[0], width)
    numbers, loss = driver.labels.task == "regress", driver.learner.loss
    ours = np.concatenate(losses)
    return Stream(
        sparse.vstack(parts).tocsr(),
        np.concatenate(labels),
        numbers,
        ours,
        driver.baselines.best_constant(loss) / ours.size,
        driver.baselines.no_change(loss) / ours.size,
    )


def _csr(X: Any) -> Any:
    return sparse.csr_matrix((X.data, X.indices.astype(np.int64), X.indptr), shape=X.shape)


def vowpal_wabbit(stream: Stream, folder: Path) -> dict[str, float]:
    """What each of VW's four ways loses on the mean; the rates are the best of eight."""
    path = folder / "stream.vw"
    X, ends = stream.X, stream.X.indptr.tolist()
    words = [f" {j}:{x!r}" for j, x in zip(X.indices.tolist(), X.data.tolist(), strict=True)]
    with path.open("w") as out:
        for i, label in enumerate(stream.y.tolist()):
            out.write(f"{label:g} |{''.join(words[ends[i] : ends[i + 1]])}\n")
    bits = max(18, int(np.ceil(np.log2(X.shape[1] + 1))) + 1)
    ways = {"default": [], "--coin": ["--coin"], "--ftrl": ["--ftrl"]}
    ways |= {f"-l {rate}": ["-l", str(rate)] for rate in RATES}
    found = {}
    for way, flags in ways.items():
        loss = "squared" if stream.numbers else "logistic"
        command = [sys.executable, "-m", "vowpalwabbit", "-d", str(path), "-b", str(bits), "--loss_function", loss]
        said = subprocess.run([*command, "--no_stdin", *flags], capture_output=True, text=True, check=True).stderr
        match = re.search(r"average loss = (\S+)", said)
        found[way] = float(match[1]) if match else float("nan")
    path.unlink()
    return found


def river(stream: Stream) -> float:
    """River's `StandardScaler | LogisticRegression`, or `LinearRegression`, at its defaults."""
    from river import linear_model, preprocessing

    model = preprocessing.StandardScaler()
    model |= linear_model.LinearRegression() if stream.numbers else linear_model.LogisticRegression()
    total = 0.0
    for x, y in _rows(stream):
        x = dict(zip(x.indices.tolist(), x.data.tolist(), strict=True))
        if stream.numbers:
            total += (model.predict_one(x) - y) ** 2
            model.learn_one(x, y)
        else:
            total += _log_loss(model.predict_proba_one(x).get(True, 0.5), y)
            model.learn_one(x, y > 0)
    return total / _prefix(stream)


def scikit_learn(stream: Stream) -> float:
    """scikit-learn's SGD with log or square loss, everything else at its defaults, one example at a time."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    model = SGDRegressor() if stream.numbers else SGDClassifier(loss="log_loss")
    total = 0.0
    for t, (x, y) in enumerate(_rows(stream)):
        if stream.numbers:
            total += min(1e300, ((float(model.predict(x)[0]) if t else 0.0) - y) ** 2)
            model.partial_fit(x, [y])
        else:
            total += _log_loss(float(model.predict_proba(x)[0, 1]) if t else 0.5, y)
            model.partial_fit(x, [y], classes=[-1.0, 1.0])
    return total / _prefix(stream)


def batch_rows() -> list[tuple[str, float, str]]:
    """One pass over the first half against LIBLINEAR's optimum on it: the log loss on the second half, and the time."""
    from sklearn.linear_model import LogisticRegression

    rows = []
    for name in ("a9a", "toxicity", "elec2"):
        if (found := getattr(data, name)()) is None:
            continue
        X, y = found[0], np.where(np.asarray(found[1]) > 0, 1.0, -1.0)
        half = y.size // 2
        first, batch, learner = (X[:half], y[:half]), LogisticRegression(solver="liblinear"), rue.Mixture()
        jobs = {"LIBLINEAR": partial(batch.fit, *first), "rue": partial(_learn_afresh, *first)}
        times = best_of(jobs, rounds=3)
        learner.run(*first)
        scores = {"LIBLINEAR": batch.decision_function(X[half:]), "rue": learner.predict_many(X[half:])}
        losses = {system: float(np.mean(np.logaddexp(0.0, -y[half:] * p))) for system, p in scores.items()}
        what = f"{name}, second half: {losses['rue']:.4f} / LIBLINEAR {losses['LIBLINEAR']:.4f}"
        rows.append((what, losses["rue"] / losses["LIBLINEAR"], "–"))
        rows.append((f"{name}, first half: times as fast as LIBLINEAR", times["LIBLINEAR"] / times["rue"], "–"))
    return rows


def _learn_afresh(X: Any, y: Any) -> None:
    rue.Mixture().run(X, y)


def _rows(stream: Stream) -> Any:
    for i in range(_prefix(stream)):
        yield stream.X[i], float(stream.y[i])


def _prefix(stream: Stream) -> int:
    return min(PREFIX if stream.X.shape[1] <= 2**17 else PREFIX // 10, stream.y.size)


def _log_loss(chance: float, y: float) -> float:
    return -float(np.log(max(1e-15, chance if y > 0 else 1.0 - chance)))


def quality_rows(names: list[str] | None = None) -> list[tuple[str, float, str]]:
    """One row a stream and peer; the figure is ours divided by theirs."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names or list(STREAMS):
            if not (SHARED / STREAMS[name][0]).exists():
                continue
            stream = read(name)
            ours, start = stream.ours.mean(), stream.ours[: _prefix(stream)].mean()
            ways = vowpal_wabbit(stream, Path(folder))
            best = min(ways, key=lambda way: ways[way])
            beside = f"constant {stream.constant:.4g}, no change {stream.again:.4g}"
            theirs = f"VW's best of 11 ({best}) {ways[best]:.4f}"
            rows.append((f"{name} ({beside}): {ours:.4f} / {theirs}", ours / ways[best], "≤ 1.01"))
            for peer, run in (("River", river), ("scikit-learn", scikit_learn)):
                loss = run(stream)
                print(f"  {name}, {peer}: {loss:.4g}, rue {start:.4g}", flush=True)
                rows.append(
                    (f"{name}, first {_prefix(stream):,}: {start:.4f} / {peer} {loss:.4g}", start / loss, "< 1")
                )
    return rows
