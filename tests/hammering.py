"""Threads that use one learner at once: `python hammering.py KIND SECONDS`. A crash shows in the exit code."""

import sys
import threading
import time

import numpy as np

import rue
from rue.streams import Block

LEARNERS = {
    "ogd": lambda: rue.OGD(loss="logistic"),
    "adagrad": lambda: rue.AdaGrad(loss="logistic"),
    "mixture": lambda: rue.Mixture(loss="logistic"),
    "multiclass": rue.SoftmaxMixture,
    "staged": rue.Staged,
    "lags": lambda: rue.Mixture("logistic").with_lags([1, 4]),
}
FORMS = ("dense", "sparse", "dict")
EXAMPLES = 300


def examples(kind, form, seed):
    """Rows in a form, of few and of many features, with their labels."""
    rng = np.random.default_rng(seed)
    for _ in range(EXAMPLES):
        y = float(rng.integers(1, 9)) if kind == "multiclass" else float(rng.choice([-1, 1]))
        if form == "dense":
            yield rng.normal(size=20), y
            continue
        indices = np.unique(rng.integers(0, 2 ** rng.integers(3, 16), size=10)).astype(np.uint32)
        values = rng.normal(size=indices.size)
        yield (
            (indices, values)
            if form == "sparse"
            else {f"f{j}": value for j, value in zip(indices.tolist(), values.tolist(), strict=True)},
            y,
        )


def block_of(kind, seed):
    rows = list(examples(kind, "dense", seed))
    return Block(np.array([x for x, _ in rows]), np.array([y for _, y in rows]))


def hammer(kind, form, seconds):
    """Use one learner from six threads; how often each way of using it worked, and how often it was refused."""
    learner = LEARNERS[kind]()
    blocks = {seed: block_of(kind, seed) for seed in range(8)} if form == "dense" else {}
    x, y = next(examples(kind, form, 99))
    learner.update(x, y)  # compiles, in one thread
    learner.predict(x)
    if blocks:
        learner.run(blocks[0])
        learner.predict_many(blocks[0].X)
    uses = ["update", "update", "predict", "predict", "copy", "run" if blocks else "update"]
    counts, end = {}, time.monotonic() + seconds
    failures = []

    def use(number, what):
        rows, worked, refused, k = list(examples(kind, form, number)), 0, 0, 0
        try:
            while time.monotonic() < end:
                x, y = rows[k % EXAMPLES]
                k += 1
                try:
                    if what == "update":
                        learner.update(x, y)
                    elif what == "predict" and blocks and k % 2:
                        assert np.isfinite(learner.predict_many(blocks[number].X)).all()
                    elif what == "predict":
                        assert np.isfinite(learner.predict(x)).all()
                    elif what == "copy":
                        copied = learner.copy()
                        copied.update(x, y)
                    else:
                        learner.run(blocks[number])
                    worked += 1
                except rue.RueError as error:
                    if "another thread is using this learner" not in str(error):
                        raise
                    refused += 1
        except BaseException as error:
            failures.append(error)
        counts[number] = what, worked, refused

    threads = [threading.Thread(target=use, args=item) for item in enumerate(uses)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    # Afterwards it is a learner like any other, in any thread.
    thread = threading.Thread(target=learner.update, args=(x, y))
    before = learner.t
    thread.start()
    thread.join()
    learner.update(x, y)
    assert learner.t == before + 2
    assert np.isfinite(learner.predict(x)).all()
    return counts


if __name__ == "__main__":
    sys.setswitchinterval(1e-6)
    for form in FORMS:
        print(sys.argv[1], form, hammer(sys.argv[1], form, float(sys.argv[2])))
