"""Paths and settings that all tests share."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from rue._jit import Kernel

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

SOAK = os.environ.get("RUE_SOAK") == "1"
settings.register_profile("rue", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rue")


def many(short, long):
    """How often a randomised test repeats: a little in `make test`, a lot in `make soak`."""
    return long if SOAK else short


@pytest.fixture
def interpreted(monkeypatch):
    """The kernels uncompiled, for tests of mathematics on short streams: each combination takes seconds to compile."""
    monkeypatch.setattr(Kernel, "resolve", lambda kernel, *args: kernel.interpreted)
