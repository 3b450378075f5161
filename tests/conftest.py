"""Paths and settings that all tests share."""

import inspect
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from rue.cli.app import main
from rue.compiled import Kernel

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

SOAK = os.environ.get("RUE_SOAK") == "1"
# `make test` tries the same examples every time, so that a change alone decides; `make soak` tries new ones.
settings.register_profile("rue", deadline=None, derandomize=not SOAK, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rue")


def pytest_collection_modifyitems(items):
    """What repeats more often in `make soak` belongs to it."""
    for item in items:
        if not hasattr(item, "function"):
            continue  # a docstring
        test = getattr(item.function, "hypothesis", None)
        function = inspect.unwrap(item.function if test is None else test.inner_test)
        if "many" in function.__code__.co_names:
            item.add_marker(pytest.mark.soak)


PEAK = """
def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
"""
"""Source for a child process: its largest memory so far, in bytes. (What getrusage says begins with its parent's.)"""


def many(short, long):
    """How often a randomised test repeats: a little in `make test`, a lot in `make soak`."""
    return long if SOAK else short


@pytest.fixture(scope="module")
def interpreted_module():
    """The same for all tests of a module, also those with many examples (Hypothesis): `interpreted` is for one test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "resolve", lambda kernel, *args: kernel.interpreted)
        yield


@pytest.fixture
def interpreted(monkeypatch):
    """The kernels uncompiled, for tests of mathematics on short streams: each combination takes seconds to compile."""
    monkeypatch.setattr(Kernel, "resolve", lambda kernel, *args: kernel.interpreted)


@pytest.fixture
def inside(monkeypatch, capsys):
    """A command in this process, which takes no time to start: what it wrote to stdout and stderr."""

    def call(*args, ok=0):
        monkeypatch.setattr(sys, "argv", ["rue", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        assert left.value.code == ok, (args, left.value.code, said.err[-800:])
        assert "Traceback" not in said.out + said.err
        return said

    return call
