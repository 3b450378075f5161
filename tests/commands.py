"""Commands run in a process of their own, what they read and what they leave behind."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np


def run(*args, ok=0, stdin=None, env=None):
    """A command; its exit code is checked, and that no traceback was shown."""
    done = subprocess.run(
        [sys.executable, "-m", "rue", *map(str, args)],
        capture_output=True,
        text=True,
        input=stdin,
        timeout=600,
        env={**os.environ, **(env or {})},
    )
    assert done.returncode == ok, (args, done.returncode, done.stderr[-800:])
    assert "Traceback" not in done.stderr + done.stdout
    return done


def write_svm(path, rows=400, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((rows, d)) * (rng.random((rows, d)) < 0.6), 4)
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(rows) > 0, 1, -1)
    with open(path, "w") as file:
        for row, label in zip(X, y, strict=True):
            file.write(f"{label} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row.tolist(), 1) if v) + "\n")
    return np.c_[np.zeros(rows), X], y


def read(path):
    said = json.loads(Path(path).read_text())
    said.pop("seconds", None)
    return said


def receive(path):
    """What comes through a FIFO, read in the background: a list that gets it, and what waits for the end."""
    got = []

    def read_all():
        with open(path, "rb") as file:
            got.append(file.read())

    thread = threading.Thread(target=read_all, daemon=True)
    thread.start()
    return got, lambda: thread.join(60)


def wait_until(true, most=120):
    deadline = time.monotonic() + most
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def stream(rows=300, d=5, seed=0, task="classify"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, d)) * 10.0 ** rng.integers(-2, 3, d)
    p = X @ (rng.standard_normal(d) / np.abs(X).max(axis=0)) + 0.5 * rng.standard_normal(rows)
    return X, np.where(p > 0, 1.0, -1.0) if task == "classify" else 5.0 * p + 100.0
