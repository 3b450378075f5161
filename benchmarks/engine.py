"""The engine against its peers: a pass of projected OGD, one example at a time, and cold start (issue: the engine)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numba
import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier

import rue
from benchmarks import data
from benchmarks.clock import best_of


@numba.njit(nogil=True, error_model="numpy")
def _bare(indptr, indices, values, w, out):
    """Nothing but sparse dot products: what any learner must do at least."""
    for i in range(out.size):
        total = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += w[indices[k]] * values[k]
        out[i] = total


@rue.parameter
class OwnHinge(rue.MarginLoss):
    """What a user would write."""

    def value(self, p, y):
        return max(0.0, 1.0 - y * p)

    def slope(self, p, y):
        return -y if y * p <= 1.0 else 0.0


def _sgd(loss: str, X: Any, y: Any, **more: Any) -> SGDClassifier:
    """scikit-learn's descent with the same loss and step η/√t, no shuffling, and its default penalty for our ball."""
    settings = {"learning_rate": "invscaling", "power_t": 0.5, "eta0": 5.0, **more}
    return SGDClassifier(loss=loss, shuffle=False, **settings).partial_fit(X, y, classes=[-1.0, 1.0])


def _ogd(loss: Any, X: Any, y: Any) -> Any:
    return rue.OGD(loss=loss, domain="ball:100", step="sqrt:5").run(X, y)


def passes() -> list[tuple[str, float, str]]:
    """One pass of projected OGD against `SGDClassifier.partial_fit(shuffle=False)` on the same arrays."""
    X, y = data.text_like()
    indices, w, out = X.indices.view(np.uint32), np.ones(X.shape[1]), np.empty(X.shape[0])
    print(f"sparse: {X.shape[0]:,} × {X.shape[1]:,}, {X.nnz / X.shape[0]:.1f} non-zeros a row")
    for loss in ("hinge", "logistic"):
        p = _ogd(loss, X, y)
        moved = np.mean(y * p <= 1.0) if loss == "hinge" else 1.0
        print(f"  {loss}: error {np.mean(y * p <= 0):.3f}, updates on {moved:.0%} of the examples")
    own = rue.OGD(OwnHinge(), domain="ball:100", step="sqrt:5")
    jobs = {
        "bare": lambda: _bare(X.indptr, indices, X.data, w, out),
        "rue hinge": lambda: _ogd("hinge", X, y),
        "rue logistic": lambda: _ogd("logistic", X, y),
        "rue, a user's own hinge": lambda: own.copy().run(X, y),  # built once: it is looked at for convexity then
        "rue.learn hinge (with D1)": lambda: rue.learn(X, y, learner=rue.OGD("hinge", "ball:100", "sqrt:5")),
        "sgd hinge": lambda: _sgd("hinge", X, y),
        "sgd logistic": lambda: _sgd("log_loss", X, y),
    }
    times = best_of(jobs)
    _show(times)
    rows = [
        ("sparse hinge, times as fast as SGDClassifier", times["sgd hinge"] / times["rue hinge"], "≥ 1.7"),
        ("sparse logistic, times as fast as SGDClassifier", times["sgd logistic"] / times["rue logistic"], "≥ 1.3"),
        ("sparse hinge, times a bare pass", times["rue hinge"] / times["bare"], "≤ 2.3"),
        ("sparse logistic, times a bare pass", times["rue logistic"] / times["bare"], "≤ 2.3"),
        (
            "a user's own hinge, times the built-in one",
            times["rue, a user's own hinge"] / times["rue hinge"],
            "about 1",
        ),
        ("rue.learn hinge with D1, times the bare run", times["rue.learn hinge (with D1)"] / times["rue hinge"], "–"),
    ]
    if (table := data.covtype()) is None:
        print("covtype is absent (../shared/data): its row is left out")
        return rows
    X, y = table
    times = best_of(
        {
            "rue hinge": lambda: _ogd("hinge", X, y),
            "rue logistic": lambda: _ogd("logistic", X, y),
            "sgd hinge": lambda: _sgd("hinge", X, y),
            "sgd logistic": lambda: _sgd("log_loss", X, y),
        }
    )
    _show(times)
    for loss in ("hinge", "logistic"):
        rows.append(
            (f"covtype {loss}, times as fast as SGDClassifier", times[f"sgd {loss}"] / times[f"rue {loss}"], "≥ 1.8")
        )
    return rows


def one_by_one(examples: int = 20_000, features: int = 10) -> list[tuple[str, float, str]]:
    """`predict` then `update`, against River's `predict_one` and `learn_one`."""
    from river.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    rows = list(rng.standard_normal((examples, features)))
    signs = [1.0 if row.sum() > 0 else -1.0 for row in rows]
    dicts = [{f"feature {j}": float(x) for j, x in enumerate(row)} for row in rows]
    truths = [sign > 0 for sign in signs]

    def ours(stream: list[Any]) -> None:
        learner = rue.OGD("logistic", "ball:10", "sqrt:0.5")
        for x, y in zip(stream, signs, strict=True):
            learner.predict(x)
            learner.update(x, y)

    def rivers() -> None:
        model = LogisticRegression()
        for x, y in zip(dicts, truths, strict=True):
            model.predict_one(x)
            model.learn_one(x, y)

    times = best_of({"rue, arrays": lambda: ours(rows), "rue, dicts": lambda: ours(dicts), "river": rivers})
    _show(times, per=examples)
    return [
        ("one by one, array of 10, times as fast as River", times["river"] / times["rue, arrays"], "≥ 4"),
        ("one by one, dict of 10, times as fast as River", times["river"] / times["rue, dicts"], "≥ 2"),
    ]


def cold_start() -> list[tuple[str, float, str]]:
    """The first `learn` of a fresh process, start-up and imports counted; and `import rue` beyond numpy."""
    script = "import numpy as np, rue; rue.learn(np.eye(4), [1, -1, 1, -1])"
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "RUE_CACHE_DIR": folder}

        def seconds(code: str) -> float:
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], env=env, check=True)
            return time.perf_counter() - started

        rows.append(("first learn, empty cache, seconds", seconds(script), "< 5"))
        rows.append(("first learn, warm cache, seconds", min(seconds(script) for _ in range(3)), "< 1.5"))
        alone = script.replace("1, -1])", "1, -1], learner='ogd')")
        rows.append(("first learn with OGD, empty cache, seconds", seconds(alone), "< 5"))
        light = min(seconds("import numpy") for _ in range(5))
        rows.append(("import rue beyond numpy, seconds", min(seconds("import rue") for _ in range(5)) - light, "< 0.4"))
    return rows


def _show(times: dict[str, float], per: int | None = None) -> None:
    for name, seconds in times.items():
        print(f"  {name:28} {seconds * 1e3:8.1f} ms" + (f" {seconds / per * 1e9:8.0f} ns an example" if per else ""))


def width(examples: int = 200_000) -> list[tuple[str, float, str]]:
    """Ten features in use among 2^24 columns against ten among 2^10: a step must not cost more."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal(10 * examples)
    y = np.where(values.reshape(-1, 10).sum(axis=1) > 0, 1.0, -1.0)
    indptr = np.arange(0, 10 * examples + 1, 10)

    def stream(bits: int) -> Any:
        places = np.sort(rng.choice(2**bits, 10, replace=False))
        return csr_matrix((values, np.tile(places, examples), indptr), shape=(examples, 2**bits))

    narrow, wide = stream(10), stream(24)
    times = best_of(
        {"2^10 columns": lambda: _ogd("logistic", narrow, y), "2^24 columns": lambda: _ogd("logistic", wide, y)}
    )
    _show(times, per=examples)
    ratio = times["2^24 columns"] / times["2^10 columns"]
    return [("ten features of 2^24, times the cost of ten of 2^10", ratio, "about 1")]
