"""A model for every key: rows a second of a core, and bytes a key."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import rue
from rue.fleets.fleet import FleetPass
from rue.fleets.keys import as_texts
from rue.runs.driver import Driver
from rue.streams import read

__all__ = ["fleet_rows"]

KEYS, EACH, FEATURES = int(os.environ.get("RUE_BENCH_KEYS", "100000")), 50, 10
BLOCK = 2**17
WANTED = {"ogd": (1.0, 1.0), "mixture (--linear)": (0.1, 16.0)}
"""Million rows a second at least, and KB a key at most."""
LEARNERS = {"ogd": lambda: rue.OGD("logistic"), "mixture (--linear)": lambda: rue.Mixture("logistic")}


def _stream(shuffled: bool) -> tuple[Any, Iterator[rue.Block]]:
    """The key of each row, and blocks: each key has a model of its own; rows in random order, or key after key."""
    rng = np.random.default_rng(0)
    keys = np.repeat(np.arange(KEYS), EACH)
    if shuffled:
        rng.shuffle(keys)
    w = rng.normal(size=(KEYS, FEATURES))

    def blocks() -> Iterator[rue.Block]:
        for begin in range(0, keys.size, BLOCK):
            of = keys[begin : begin + BLOCK]
            X = rng.normal(size=(of.size, FEATURES))
            noise = rng.normal(size=of.size)
            yield rue.Block(X, np.where(np.einsum("ij,ij->i", X, w[of]) > noise, 1.0, -1.0))

    return keys, blocks()


def fleet_rows() -> Iterator[tuple[str, float, str]]:
    """Speed by processor time of the learning alone, by learner and order of the rows, and memory."""
    for name, learner in LEARNERS.items():
        rue.fleet(np.eye(2, FEATURES), [1.0, -1.0], by=[0, 1], learner=learner())  # compiles
        for order in ("key after key", "shuffled"):
            keys, blocks = _stream(order == "shuffled")
            learning = FleetPass(Driver(learner()), None, as_texts(keys))
            learning.clock = time.thread_time
            for _ in learning.run(read(blocks).reads()):
                pass
            fleet = learning.fleet
            assert fleet is not None
            rate, wanted = keys.size / fleet.seconds / 1e6, WANTED[name]
            yield f"million rows a second and core, {name}, {order}", rate, f"≥ {wanted[0]:g}"
        yield f"KB a key, {name}", fleet.bytes_per_key / 1024, f"≤ {wanted[1]:g}"
