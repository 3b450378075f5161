"""How methods are compiled, what of Numba is left alone, and the versions of Numba that rue works with."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core import config

import rue
from conftest import ROOT, SOAK
from rue.compiled import backend, kernel, noinline, values
from rue.compiled.parameters import is_noinline

compiling = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")


@values
class Called(NamedTuple):
    """A class whose method is called."""

    factor: Any

    @noinline
    def weigh(self, x):
        return self.factor * x + 1.0


@values
class Inlined(NamedTuple):
    """A class with a method of the same name, which is inlined."""

    factor: Any

    def weigh(self, x):
        return self.factor * x + 1.0


@kernel
def weigh_all(scale, x):
    total = 0.0
    for k in range(x.size):
        total += scale.weigh(x[k])
    return total


@compiling
@pytest.mark.skipif(not backend.FAST, reason="Numba's own interface has no option not to inline")
@pytest.mark.parametrize(("cls", "calls"), [(Called, True), (Inlined, False)])
def test_whether_a_method_is_inlined_is_declared_at_the_method_and_not_by_its_name(cls, calls):
    x = np.array([1.0, 2.0])
    assert weigh_all(cls(2.0), x) == 8.0
    (compiled,) = [
        result for (first, *_), result in weigh_all.dispatchers[0].overloads.items() if first.instance_class is cls
    ]
    defined = [f.name for f in compiled.library._final_module.functions if not f.is_declaration]
    assert any("weigh" in name and "weigh_all" not in name for name in defined) == calls


def test_a_method_that_overrides_one_that_is_called_is_called_too():
    class Own(rue.Domain):
        def onto(self, w, scratch):
            return 0.0

        def sweep(self, w):
            return 0.0

    assert is_noinline(Own, "onto")
    assert not is_noinline(Own, "sweep")  # of another name in rue.domains.intersection


def test_the_front_door_says_what_each_of_its_names_is_for():
    assert [name for name in rue.compiled.__all__ if f"`{name}`" not in rue.compiled.__doc__] == []


UNTOUCHED = """
import sys
import numba, numpy as np
import rue

def learn():
    rue.OGD("hinge", "ball:1", "fixed:0.5").run(np.eye(2), [1.0, -1.0])

def parts():
    "Every function and class of Numba's modules, and every method of those classes."
    found = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("numba", "llvmlite"):
            for key, value in list(vars(module).items()):
                if callable(value):
                    found[name, key] = value
                if isinstance(value, type) and value.__module__.split(".")[0] in ("numba", "llvmlite"):
                    found.update({(name, key, own): method for own, method in vars(value).items() if callable(method)})
    return found

@numba.njit
def total(v):
    return v.sum()

assert total(np.ones(3)) == 3.0  # which imports all that compiling takes
before = parts()
assert len(before) > 5000
learn()
after = parts()
assert rue.learners.loop.run_rows.compiled() == 1
changed = [place for place, value in before.items() if after.get(place) is not value]
assert not changed, changed
"""


@compiling
def test_compiling_replaces_nothing_of_numba(tmp_path):
    env = {**os.environ, "RUE_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", UNTOUCHED], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


# Other versions of Numba: each in a temporary environment, which has all other packages from this one.

LEARN = """
import json, numba, numpy as np, rue
from rue.compiled.backend import BACK_END
X = np.random.default_rng(3).normal(size=(300, 5))
y = np.sign(X[:, 0] - X[:, 1] * X[:, 2])
risks = [rue.learn(X, y, learner=learner).risk for learner in ("ogd", "mixture")]
print(json.dumps([numba.__version__, BACK_END, risks]))
"""
TRIED = ["compiled/test_arithmetic.py", "compiled/test_vectors.py", "learners/test_references.py"]


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="it installs another Numba and compiles everything anew")
@pytest.mark.parametrize("which", ["numba==0.66.*", "numba"])
def test_the_oldest_and_the_newest_numba_compute_the_same(which, tmp_path):
    assert "numba>=0.66" in (ROOT / "pyproject.toml").read_text()
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv/bin/python"
    done = subprocess.run([python, "-m", "pip", "install", "-q", which], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{which} cannot be installed here: {done.stderr[-300:]}")
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    shared = dict.fromkeys(path for path in sys.path if path.endswith("site-packages"))
    (packages / "shared.pth").write_text("\n".join([str(ROOT / "src"), *shared]))
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"RUE_CACHE_DIR": str(tmp_path / "cache"), "RUE_SOAK": ""}
    here, there = (
        subprocess.run([each, "-c", LEARN], env=env, capture_output=True, text=True, check=True).stdout
        for each in (sys.executable, python)
    )
    (_, _, wanted), (version, used, risks) = json.loads(here), json.loads(there)
    assert version.startswith("0.66.") or which == "numba"
    assert used == ("fast" if version[:4] in backend.TESTED_WITH else "plain")
    np.testing.assert_allclose(risks, wanted, rtol=1e-12)
    tests = [str(Path("tests", name)) for name in TRIED]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
