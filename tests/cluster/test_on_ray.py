"""Ray: the same bytes as in one process, also when workers are killed; skipped where Ray is not installed."""

import hashlib
import os
import random
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas
import pytest

import rue
from conftest import SOAK
from rue.cluster.sharded import Watcher, executor_for, learn_sharded
from rue.models.file import to_bytes
from rue.runs.driver import Driver
from rue.streams.data import Data

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'rue[cluster]'")


@pytest.fixture
def path(tmp_path, monkeypatch, interpreted):
    monkeypatch.setattr("rue.streams.units.UNIT", 2000)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # workers must not wait for a compiler
    numbers = np.random.default_rng(0)
    X = numbers.normal(size=(300, 2))
    file = tmp_path / "data.csv"
    table = {"x": X[:, 0], "z": X[:, 1], "y": np.where(X @ [1.0, -1.0] > 0.2, "yes", "no")}
    pandas.DataFrame(table).to_csv(file, index=False)
    return str(file)


def descendants(pid):
    """The processes below one."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [found for child in children for found in (int(child), *descendants(int(child)))]


class Killer(Watcher):
    """Kills Ray's worker processes."""

    def __init__(self, times):
        self.left, self.random, self.killed = times, random.Random(0), 0

    def outcome(self, outcome):
        actors = []
        for pid in descendants(os.getpid()):
            try:
                if b"_Actor" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    actors.append(pid)
            except OSError:
                continue
        if self.left and actors:
            os.kill(self.random.choice(actors), signal.SIGKILL)
            self.left, self.killed = self.left - 1, self.killed + 1


def digest_on(on, path, **settings):
    stream = Data((path,), target="y", bits=8)
    return hashlib.sha256(to_bytes(learn_sharded(stream, Driver("ogd"), on=on, **settings).model)).hexdigest()


@pytest.mark.soak  # there too: `make test` skips it where Ray is not installed
def test_ray_has_the_same_bytes_when_a_worker_is_killed(path):
    settings = {"shards": 3, "most": 10 if SOAK else 30}
    killer = Killer(20 if SOAK else 1)
    found = digest_on("ray", path, workers=2, watcher=killer, **settings)
    assert killer.killed == (20 if SOAK else 1)
    assert found == digest_on("inline", path, **settings)


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="RUE_SOAK=1 runs it")
@pytest.mark.parametrize("workers", [1, 4])
def test_ray_has_the_same_bytes_with_any_number_of_workers(path, workers):
    settings = {"shards": 4, "most": 30}
    assert digest_on("ray", path, workers=workers, **settings) == digest_on("inline", path, **settings)


NODES = """
import sys
from ray.cluster_utils import Cluster
from rue.cluster.sharded import Watcher, learn_sharded
from rue.models.file import to_bytes
from rue.runs.driver import Driver
from rue.streams.data import Data

few = {"num_cpus": 1, "object_store_memory": 2**27}
cluster = Cluster(initialize_head=True, head_node_args={**few, "include_dashboard": False})
nodes = [cluster.add_node(**few) for _ in range(2)]


class Killer(Watcher):
    left = 3

    def round(self, standing):
        self.left -= 1
        if self.left == 0:
            cluster.remove_node(nodes[0], allow_graceful=False)


stream = Data((sys.argv[1],), target="y", bits=8)
settings = {"shards": 6, "most": 10, "on": "ray:" + cluster.address, "workers": 3}
result = learn_sharded(stream, Driver("ogd"), watcher=Killer(), **settings)
with open(sys.argv[2], "wb") as out:
    out.write(to_bytes(result.model))
cluster.shutdown()
"""


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="RUE_SOAK=1 runs it")
def test_a_killed_node_of_three_changes_nothing(path, tmp_path):
    """The two that are left have one processor each: nobody waits for a third."""
    model = tmp_path / "model.rue"
    environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 64, "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", NODES, path, str(model)]
    subprocess.run(command, env={**os.environ, **environment, "RUE_UNIT": "2000"}, check=True, timeout=600)
    assert hashlib.sha256(model.read_bytes()).hexdigest() == digest_on("inline", path, shards=6, most=10)


def test_another_name_is_refused():
    with pytest.raises(rue.SettingsError, match=r"not on 'rays'"):
        executor_for("rays")
