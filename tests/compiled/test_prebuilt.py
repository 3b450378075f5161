"""Kernels compiled ahead: found without a cache, used only where they fit, the same bits as native code."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core import config

import rue
from rue.cli import prebuild as _prebuild
from rue.compiled import cache as _cache
from rue.compiled.backend import FAST

needs_level = pytest.mark.skipif(
    bool(config.DISABLE_JIT) or not _cache.levels(), reason="no processor of a level that kernels are built for"
)
SCRIPT = (
    "import numpy as np, rue\n"
    "from rue.learners.loop import run_rows\n"
    "X = np.random.default_rng(3).normal(size=(300, 5))\n"
    "run = rue.learn(X, np.sign(X[:, 0] - X[:, 1] * X[:, 2]), maps=%r)\n"
    "print(run_rows.compiled(), run.risk.hex(), run.certificate(radius=10).regret_at_most.hex())\n"
)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with its kernels, which may be changed."""
    folder = tmp_path_factory.mktemp("site")
    source = Path(rue.__file__).parent
    shutil.copytree(source, folder / "rue", ignore=shutil.ignore_patterns("__pycache__", "prebuilt"))
    if (source / "prebuilt" / _cache.source_digest()).is_dir():
        shutil.copytree(source / "prebuilt", folder / "rue/prebuilt")
    else:
        _prebuild.build(folder / "rue/prebuilt", ["arrays"])
    return folder


def learn(package, cache, maps=None, **env):
    """How many kernels a first `learn` compiled, and what came out; the linear learner is compiled in half the time."""
    env = {**os.environ, "PYTHONPATH": str(package), "RUE_CACHE_DIR": str(cache), **env}
    done = subprocess.run([sys.executable, "-c", SCRIPT % maps], env=env, capture_output=True, text=True, check=True)
    compiled, *numbers = done.stdout.split()
    return int(compiled), [float.fromhex(number) for number in numbers]


@needs_level
@pytest.mark.parametrize("maps", ["auto", None])
def test_a_first_run_compiles_nothing_and_computes_what_native_code_does(maps, package, tmp_path):
    compiled, ahead = learn(package, tmp_path / "empty", maps)
    assert compiled == 0
    bare = tmp_path / "bare"
    shutil.copytree(package, bare, ignore=shutil.ignore_patterns("prebuilt"))
    compiled, native = learn(bare, tmp_path / "native", maps)
    assert compiled == 1
    np.testing.assert_allclose(ahead, native, rtol=1e-12)


@needs_level
def test_kernels_of_other_sources_or_damaged_ones_are_not_used(package, tmp_path):
    edited = tmp_path / "edited"
    shutil.copytree(package, edited)
    with open(edited / "rue/losses/margin.py", "a") as file:
        file.write("# edited\n")
    assert learn(edited, tmp_path / "a")[0] == 1
    damaged = tmp_path / "damaged"
    shutil.copytree(package, damaged)
    for file in (damaged / "rue/prebuilt").glob("*/rue.*"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    assert learn(damaged, tmp_path / "b")[0] == 1


@needs_level
@pytest.mark.skipif(not FAST, reason="there is no fast back end for this Numba")
def test_the_plain_back_end_computes_the_same(package, tmp_path):
    compiled, plain = learn(package, tmp_path / "plain", RUE_COMPILER="plain")
    assert compiled == 1
    np.testing.assert_allclose(plain, learn(package, tmp_path / "fast")[1], rtol=1e-12)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_a_command_that_compiles_says_so_once(tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(Path(rue.__file__).parent, bare / "rue", ignore=shutil.ignore_patterns("__pycache__", "prebuilt"))
    (tmp_path / "s.svm").write_text("1 1:2 2:1\n-1 1:1\n" * 20)
    env = {**os.environ, "PYTHONPATH": str(bare), "RUE_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "rue", "learn", str(tmp_path / "s.svm"), "--linear"]
    first, second = (subprocess.run(command, env=env, capture_output=True, text=True, check=True) for _ in range(2))
    assert first.stderr.count("compiling, once for this machine") == 1
    assert "compiling" not in second.stderr
    # Time to compile is said apart, and no part of the speed.
    assert re.search(r" s of it compiling, once for this machine; without that [\d,]+ examples a second", first.stdout)
    assert "compiling" not in second.stdout
