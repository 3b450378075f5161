"""Two hosts on one machine: network namespaces with an address each, of which one is cut off while a run goes on."""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec

import numpy as np
import pandas
import pytest

from conftest import SOAK
from rue.cluster.sharded import learn_sharded
from rue.models.file import to_bytes
from rue.runs.driver import Driver
from rue.streams.data import Data

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not SOAK, reason="RUE_SOAK=1 runs it"),
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'rue[cluster]'"),
]
HEAD, OTHER, SECONDS = "10.213.77.1", "10.213.77.2", 30


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True, timeout=60).stdout


def end(namespace):
    """End the processes of a namespace, and it."""
    with contextlib.suppress(subprocess.CalledProcessError):
        for pid in map(int, ip("netns", "pids", namespace).split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ip("netns", "del", namespace)


@pytest.fixture
def hosts():
    """The names of two namespaces that are joined by a cable."""
    names = [f"rue{os.getpid()}{letter}" for letter in "ab"]
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and ip")
    try:
        ip("netns", "add", names[0])
    except subprocess.CalledProcessError:
        pytest.skip("network namespaces are not allowed here")
    try:
        ip("netns", "add", names[1])
        ip("link", "add", "cable", "netns", names[0], "type", "veth", "peer", "name", "cable", "netns", names[1])
        for name, address in zip(names, (HEAD, OTHER), strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
            for device in ("lo", "cable"):
                ip("-n", name, "link", "set", device, "up")
        yield names
    finally:
        for name in names:
            end(name)


RUN = """
import subprocess, sys, threading
from rue.cluster.sharded import Watcher, learn_sharded
from rue.models.file import to_bytes
from rue.runs.driver import Driver
from rue.streams.data import Data

path, model, address, other, seconds = sys.argv[1:]


def cable(state):
    subprocess.run(["ip", "-n", other, "link", "set", "cable", state], check=True)


class Cutter(Watcher):
    def round(self, standing):
        if standing.round == 1:
            assert len(executors) == 1 and len(executors[0]._ready) == 2, "a worker on each host"
        if standing.round == 3:
            cable("down")
            threading.Timer(float(seconds), cable, ["up"]).start()
            print("cut off after round 3", flush=True)


from rue.cluster import sharded

executors, made = [], sharded.executor_for
sharded.executor_for = lambda *how: executors.append(made(*how)) or executors[-1]
stream = Data((path,), target="y", bits=8)
result = learn_sharded(stream, Driver("ogd"), shards=4, most=10, on="ray:" + address, workers=2, watcher=Cutter())
with open(model, "wb") as out:
    out.write(to_bytes(result.model))
"""


@pytest.fixture
def path(tmp_path, monkeypatch, interpreted):
    monkeypatch.setattr("rue.streams.units.UNIT", 2000)
    numbers = np.random.default_rng(0)
    X = numbers.normal(size=(300, 2))
    table = {"x": X[:, 0], "z": X[:, 1], "y": np.where(X @ [1.0, -1.0] > 0.2, "yes", "no")}
    pandas.DataFrame(table).to_csv(tmp_path / "data.csv", index=False)
    return str(tmp_path / "data.csv")


@pytest.fixture
def short():
    """A folder whose name is short, since those of sockets have at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="rue-", ignore_cleanup_errors=True) as folder:
        yield folder


def test_a_host_that_is_cut_off_for_half_a_minute_changes_nothing(path, tmp_path, short, hosts):
    model, ray = tmp_path / "model.rue", [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus", "1"]
    settings = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 64, "RAY_USAGE_STATS_ENABLED": "0"}
    environment = {**os.environ, **settings, "RUE_UNIT": "2000", "NUMBA_DISABLE_JIT": "1"}

    def on(host, *command):
        done = subprocess.run(
            ["ip", "netns", "exec", host, *map(str, command)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout

    room = ["--object-store-memory", 2**27]
    first = ["--head", "--port", 6379, "--include-dashboard=false", "--temp-dir", short]
    on(hosts[0], *ray, *room, *first, "--node-ip-address", HEAD)
    on(hosts[1], *ray, *room, "--address", f"{HEAD}:6379", "--node-ip-address", OTHER)
    said = on(hosts[0], sys.executable, "-c", RUN, path, model, f"{HEAD}:6379", hosts[1], SECONDS)
    assert "cut off after round 3" in said
    stream = Data((path,), target="y", bits=8)
    same = learn_sharded(stream, Driver("ogd"), shards=4, most=10, on="inline")
    assert same.rounds > 5
    assert hashlib.sha256(model.read_bytes()).hexdigest() == hashlib.sha256(to_bytes(same.model)).hexdigest()
