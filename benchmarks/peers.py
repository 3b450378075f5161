"""`python -m benchmarks.peers STREAM FAMILY SECONDS`: peers on a stream by columns, each row predicted, then learnt.

A child process of `benchmarks.store` that runs one family of peers, each for at most so many processor seconds, and
prints a line of JSON for each. It imports no rue, so that RUE_PEERS may name the interpreter of another environment.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import Table, table

CLIP, MILD = 1e-15, 0.01
"""No probability counts as smaller than this; a forest's vote of 0 costs 34.5 with the first, 4.6 with the second."""
RATES = (0.03, 0.1, 0.25, 1, 2, 4, 8, 32)
FIRST = 64
"""Rows before LightGBM is trained for the first time."""


class OutOfTime(Exception):
    """The processor seconds of a peer are used up."""


class Score:
    """Adds up what a peer loses, and stops it when its processor time is over."""

    def __init__(self, stream: Table, seconds: float) -> None:
        self.y, self.classes, self.seconds = stream.y, len(stream.classes), seconds
        self.rows, self.loss, self.mild, self.errors = 0, 0.0, 0.0, 0
        self.started = time.process_time()

    def check(self) -> None:
        """Stop if the time is over."""
        if time.process_time() - self.started > self.seconds:
            raise OutOfTime

    def number(self, prediction: float) -> None:
        """Score the prediction of a number."""
        self.loss += min(1e300, (prediction - float(self.y[self.rows])) ** 2)
        self._next()

    def chances(self, chance: float, right: bool) -> None:
        """Score the probability that was given to the class that came."""
        self.loss -= float(np.log(max(CLIP, min(1.0, chance))))
        self.mild -= float(np.log(max(MILD, min(1.0 - MILD, chance))))
        self.errors += not right
        self._next()

    def _next(self) -> None:
        self.rows += 1
        if self.rows % 8 == 0:
            self.check()

    def record(self) -> dict[str, Any]:
        """The means over the rows that were reached."""
        spent, rows = time.process_time() - self.started, max(1, self.rows)
        found: dict[str, Any] = {"rows": self.rows, "seconds": round(spent, 2), "loss": self.loss / rows}
        if self.classes:
            found |= {"mild": self.mild / rows, "error": self.errors / rows}
        return found


def river(stream: Table, seconds: float) -> Iterator[tuple[str, Any]]:
    """River's trees and forests at their defaults, on dicts of the original columns; words are its nominal values.

    The regressors have linear models in their leaves, which take no words and want columns of one scale: they get
    numbers for words, the names of these columns as `nominal_attributes`, and a `StandardScaler` for the others, as in
    River's docs.
    """
    from river import compose, ensemble, forest, preprocessing, tree

    def scaled(model: Any) -> Any:
        numeric = [name for name in stream.columns if name not in stream.categories]
        columns = compose.Select(*numeric) | preprocessing.StandardScaler()
        return (columns + compose.Select(*stream.categories) if stream.categories else columns) | model

    makers: dict[str, Callable[[], Any]] = {
        "ARF": lambda: forest.ARFClassifier(seed=1),
        "HAT": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
        "SRP": lambda: ensemble.SRPClassifier(seed=1),
    }
    if not stream.classes:
        nominal = {"nominal_attributes": stream.categories}
        default = {"grace_period": 50, "delta": 0.01}  # SRPRegressor's own tree, but for the names
        makers = {
            "ARF": lambda: scaled(forest.ARFRegressor(seed=1, **nominal)),
            "HAT": lambda: scaled(tree.HoeffdingAdaptiveTreeRegressor(seed=1, **nominal)),
            "SRP": lambda: scaled(ensemble.SRPRegressor(tree.HoeffdingTreeRegressor(**default, **nominal), seed=1)),
        }
    for name, make in makers.items():
        yield f"River {name}", _timed(stream, seconds, lambda score, make=make: _river(stream, make(), score))


def _river(stream: Table, model: Any, score: Score) -> None:
    for x, y in zip(_dicts(stream, words=bool(stream.classes)), stream.y.tolist(), strict=True):
        if not stream.classes:
            score.number(float(model.predict_one(x)))
        else:
            chances = model.predict_proba_one(x)
            total = sum(chances.values())
            if total > 0.0:
                score.chances(chances.get(y, 0.0) / total, max(chances, key=chances.__getitem__) == y)
            else:
                score.chances(1.0 / len(stream.classes), y == 0)
        model.learn_one(x, y)


def _dicts(stream: Table, words: bool = True) -> Iterator[dict[Any, Any]]:
    """Rows as dicts: categories as words or as their codes; a sparse row has its own columns only."""
    X = stream.columns
    if not stream.wide:
        X = X.assign(**{name: X[name].astype("str") if words else X[name].cat.codes for name in stream.categories})
    for start in range(0, stream.y.size, 1000):
        piece = X[start : start + 1000]
        if stream.wide:
            for i in range(piece.shape[0]):
                row = slice(piece.indptr[i], piece.indptr[i + 1])
                yield dict(zip(piece.indices[row].tolist(), piece.data[row].tolist(), strict=True))
        else:
            yield from piece.to_dict("records")


def capymoa(stream: Table, seconds: float) -> Iterator[tuple[str, Any]]:
    """CapyMOA's forests at their defaults (100 trees, one thread), nominal columns declared as such."""
    if stream.wide:
        for name in ("ARF", "SRP"):
            yield f"CapyMOA {name}", "left out: its instances are dense, and there are 2^20 columns"
        return
    from capymoa.classifier import AdaptiveRandomForestClassifier, StreamingRandomPatches
    from capymoa.core import LabeledInstance, RegressionInstance
    from capymoa.regressor import SOKNL, AdaptiveRandomForestRegressor
    from capymoa.stream import Schema

    frame = stream.columns
    nominal = {name: frame[name].cat.categories.tolist() for name in stream.categories}
    if stream.classes:
        nominal["the target"] = [str(label) for label in stream.classes]
    schema = Schema.from_custom([*frame, "the target"], "the target", nominal)
    codes = {name: frame[name].cat.codes.astype("float64") for name in stream.categories}
    X = frame.assign(**codes).to_numpy(dtype=np.float64)
    models = {"ARF": AdaptiveRandomForestClassifier, "SRP": StreamingRandomPatches}
    if not stream.classes:
        models = {"ARF": AdaptiveRandomForestRegressor, "SOKNL": SOKNL}

    def run(model: Any, score: Score) -> None:
        kind = LabeledInstance if stream.classes else RegressionInstance
        for x, y in zip(X, stream.y.tolist(), strict=True):
            instance = kind.from_array(schema, x, y)
            if not stream.classes:
                p = model.predict(instance)
                score.number(0.0 if p is None else float(p))
            elif (chances := model.predict_proba(instance)) is None:
                score.chances(1.0 / len(stream.classes), y == 0)
            else:
                score.chances(float(chances[y]), int(np.argmax(chances)) == y)
            model.train(instance)

    for name, make in models.items():
        yield f"CapyMOA {name}", _timed(stream, seconds, lambda score, make=make: run(make(schema), score))


def lightgbm(stream: Table, seconds: float) -> Iterator[tuple[str, Any]]:
    """LightGBM at its defaults, one thread, pandas' categories as its docs advise, trained anew on three schedules.

    Until it is trained for the first time, what came so far is predicted.
    """
    n = stream.y.size
    schedules = {
        "doubling": lambda t: (0, 2 * t),
        "every n/20, all rows": lambda t: (0, min(2 * t, t + n // 20)),
        "every n/20, last n/5": lambda t: (max(0, t - n // 5), min(2 * t, t + n // 20)),
    }
    for name, schedule in schedules.items():
        yield f"LightGBM {name}", _timed(stream, seconds, lambda score, plan=schedule: _lightgbm(stream, plan, score))


def _lightgbm(stream: Table, schedule: Any, score: Score) -> None:
    import lightgbm as library

    k, X, y = len(stream.classes), stream.columns, stream.y
    settings = {"objective": "regression" if not k else "binary" if k == 2 else "multiclass"}
    settings |= {"verbosity": -1, "num_threads": 1, "seed": 1, **({"num_class": k} if k > 2 else {})}
    t, n = 0, y.size
    model, start, stop = None, 0, min(FIRST, n)
    while t < n:
        if model is None:
            p = _frequencies(y[:stop], k)
        else:
            p = model.predict(X[t:stop])
            p = np.column_stack([1.0 - p, p]) if k == 2 else p
        for i in range(t, stop):
            if k:
                score.chances(float(p[i - t, y[i]]), int(np.argmax(p[i - t])) == y[i])
            else:
                score.number(float(p[i - t]))
        t = stop
        start, stop = schedule(t)
        stop = min(n, stop)
        score.check()
        data = library.Dataset(X[start:t], y[start:t], params={"verbosity": -1})
        model = library.train(settings, data, callbacks=[lambda _: score.check()])


def _frequencies(y: Any, k: int) -> Any:
    """For each row the mean of the labels before it, or of each class (how often it came + 1)/(rows + k)."""
    before = np.arange(y.size)
    if not k:
        return np.concatenate([[0.0], np.cumsum(y[:-1]) / before[1:]])
    came = np.cumsum(np.eye(k)[y], axis=0) - np.eye(k)[y]
    return (came + 1.0) / (before[:, None] + k)


def vw(stream: Table, seconds: float) -> Iterator[tuple[str, Any]]:
    """Vowpal Wabbit with all pairs (`-q ::`): the best of eleven settings on the rows that all of them reached.

    Each setting has a quarter of the time.
    """
    limit = max(1, round(seconds / 4))
    with tempfile.TemporaryDirectory() as folder:
        text, out = Path(folder) / "stream.vw", Path(folder) / "predictions"
        _write_vw(stream, text)
        ways = {"default": [], "--coin": ["--coin"], "--ftrl": ["--ftrl"]}
        ways |= {f"-l {rate}": ["-l", str(rate)] for rate in RATES}
        k, found = len(stream.classes), {}
        loss = ["--loss_function", "logistic" if k else "squared"]
        loss += ["--oaa", str(k), "--probabilities"] if k > 2 else []
        for way, flags in ways.items():
            command = [sys.executable, "-m", "vowpalwabbit", "-d", str(text), "-b", "22", "-q", "::", "--no_stdin"]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [*command, "--quiet", "-p", str(out), *loss, *flags],
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
                capture_output=True,
                check=False,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            lines = out.read_text().split("\n")[:-1] if out.exists() else []
            found[way] = _vw_losses(stream, lines), spent
            out.unlink(missing_ok=True)
    rows = min(losses.shape[1] for losses, _ in found.values())
    if not rows:
        yield "VW -q ::", "no prediction came"
        return
    best = min(found, key=lambda way: found[way][0][0, :rows].mean())
    losses, spent = found[best]
    record = {"rows": rows, "seconds": round(spent * rows / losses.shape[1], 2), "loss": losses[0, :rows].mean()}
    if stream.classes:
        record |= {"mild": losses[1, :rows].mean(), "error": losses[2, :rows].mean()}
    yield f"VW -q ::, best of 11 ({best})", record


def _write_vw(stream: Table, path: Path) -> None:
    k = len(stream.classes)
    labels = (stream.y + 1 if k > 2 else 2 * stream.y - 1 if k else stream.y).tolist()
    with path.open("w") as out:
        for x, label in zip(_dicts(stream), labels, strict=True):
            words = (
                f"{_safe(name)}={_safe(value)}" if isinstance(value, str) else f"{_safe(name)}:{value!r}"
                for name, value in x.items()
            )
            out.write(f"{label} | {' '.join(words)}\n")


def _safe(word: Any) -> str:
    return re.sub(r"[\s:|]", "_", str(word))


def _vw_losses(stream: Table, lines: list[str]) -> Any:
    """Loss, mild loss and error of each prediction."""
    k, y = len(stream.classes), stream.y[: len(lines)]
    if not k:
        return np.minimum(1e300, (np.array(lines, dtype=np.float64) - y) ** 2)[None]
    if k > 2:
        found = [[float(pair.split(":")[1]) for pair in line.split()] for line in lines]
        chances = np.array(found).reshape(-1, k)
        right = chances.argmax(axis=1) == y
        chance = chances[np.arange(y.size), y]
    else:
        score = np.array(lines, dtype=np.float64) * (2 * y - 1)
        chance, right = 1.0 / (1.0 + np.exp(-score)), score > 0.0
    mild = -np.log(np.clip(chance, MILD, 1.0 - MILD))
    return np.stack([-np.log(np.clip(chance, CLIP, 1.0)), mild, ~right])


FAMILIES: dict[str, Any] = {"River": river, "CapyMOA": capymoa, "LightGBM": lightgbm, "VW": vw}
PACKAGES = {"River": "river", "CapyMOA": "capymoa", "LightGBM": "lightgbm", "VW": "vowpalwabbit"}


def _timed(stream: Table, seconds: float, run: Callable[[Score], None]) -> Any:
    score = Score(stream, seconds)
    try:
        run(score)
    except OutOfTime:
        pass
    except Exception as error:  # a peer that cannot do a stream is a row that says so
        return f"failed after {score.rows:,} rows: {type(error).__name__}: {error}"[:200]
    return score.record()


def main(name: str, family: str, seconds: float) -> None:
    """Print what each peer of a family reaches."""
    try:
        number = version(PACKAGES[family])
    except PackageNotFoundError:
        print(json.dumps({"peer": family, "found": f"not there: pip install {PACKAGES[family]}"}))
        return
    if (stream := table(name)) is None:
        print(json.dumps({"peer": family, "found": "the stream's file is not there"}))
        return
    for peer, found in FAMILIES[family](stream, seconds):
        record = {**found, "version": number} if isinstance(found, dict) else found
        print(json.dumps({"peer": peer, "found": record}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
