"""What is handed out: wheel and sdist, types for a user's own script, the files that stand beside the code."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import numpy as np
import pytest

import rue
from conftest import ROOT
from rue.compiled.cache import levels, source_digest

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = sorted(line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel and sdist, made by the backend that is installed: nothing is downloaded.

    Both are made from this checkout, whose kernels `make test` has compiled already.
    """
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--sdist", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_wheel_holds_the_package_its_types_and_its_data(built):
    (path,) = built.glob("*.whl")
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_") if levels() else "any"
    assert path.name == f"rue-{rue.__version__}-py3-none-{platform}.whl"
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        about = Parser().parsestr(wheel.read(f"rue-{rue.__version__}.dist-info/METADATA").decode())
        scripts = wheel.read(f"rue-{rue.__version__}.dist-info/entry_points.txt").decode()
    sources = {str(file.relative_to(ROOT / "src")) for file in (ROOT / "src/rue").rglob("*.py")}
    assert sources | {"rue/py.typed", "rue/streams/census.npz"} <= names
    assert any(name.startswith(f"rue/prebuilt/{source_digest()}/") for name in names) == bool(levels())
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]
    assert "rue = rue.cli.app:main" in scripts
    assert set(about.get_all("Provides-Extra")) >= {"all", "docs", "frames", "plot", "river", "sklearn", "test"}
    assert about["Requires-Python"] == ">=3.11"
    assert any("LICENSE" in name for name in names)


def test_the_sdist_holds_what_the_tests_need(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no checkout, or there is no git to ask")
    asked = ["git", "-c", f"safe.directory={ROOT}", "ls-files"]  # root may test what an ordinary user has cloned
    kept = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    beside = {".ci/run", ".gitignore"}
    assert {name for name in kept if (ROOT / name).exists()} - beside <= names


def test_all_has_every_other_extra_of_users():
    extras = PROJECT["optional-dependencies"]
    (own,) = extras["all"]
    assert set(re.findall(r"\w+", own)) == {"rue"} | set(extras) - {"all", "bench", "docs", "soak", "test"}


def test_the_versions_agree():
    cited = (ROOT / "CITATION.cff").read_text()
    assert f"version: {rue.__version__}\n" in cited
    said = subprocess.run([sys.executable, "-m", "rue", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"rue {rue.__version__}\n"


def test_numba_has_every_python_that_is_declared():
    from importlib.metadata import metadata

    theirs = {line.rsplit(" ", 1)[1] for line in metadata("numba").get_all("Classifier") if ":: 3." in line}
    assert PYTHONS == ["3.11", "3.12", "3.13"]
    assert set(PYTHONS) <= theirs


def find_python(version):
    """A Python of this version: on the path, or kept by pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))) / "versions"  # there may be no home
    try:
        by_pyenv = sorted(versions.glob(f"{version}.*/bin/python"))
    except PermissionError:  # another user's
        by_pyenv = []
    for path in (shutil.which(f"python{version}"), *by_pyenv):
        asked = [path, "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
        if path and subprocess.run(asked, capture_output=True, text=True).stdout.strip() == version:
            return path
    return None


NUMBER = r"(-?\b\d+\.\d{6,}(?:e[+-]\d+)?)"


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """What the journey says in the Python that runs the tests."""
    return travel([sys.executable], tmp_path_factory.mktemp("here"))


def travel(python, folder):
    done = subprocess.run([*python, ROOT / "tests/journey.py"], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture
def briefly(tmp_path):
    """A folder that is gone after the test: an environment takes more than half a gigabyte."""
    yield tmp_path
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_says_the_same_in_every_declared_python(version, built, here, briefly):
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        pytest.skip("this Python runs all the tests")
    if (python := find_python(version)) is None:
        pytest.skip(f"there is no Python {version} on this machine")
    subprocess.run([python, "-m", "venv", "--without-pip", briefly / "venv"], check=True)
    inside = briefly / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", inside, "install", "--quiet", "--no-compile"]
    done = subprocess.run([*pip, *built.glob("*.whl")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    asked = [inside, "-I", "-c", "import rue; print(rue.__file__)"]
    where = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert where.startswith(str(briefly))
    found, wanted = (re.split(NUMBER, text) for text in (travel([inside, "-I"], briefly), here))
    assert found[::2] == wanted[::2]
    # Other versions of NumPy bring another LAPACK, which rounds differently.
    np.testing.assert_allclose(np.array(found[1::2], dtype=float), np.array(wanted[1::2], dtype=float), rtol=1e-9)


SCRIPT = """
from typing import assert_type

import numpy as np

import rue

X, y = rue.census()
run = rue.learn(X, y, learner=rue.OGD("hinge", rue.Ball(10), step="theory"), witnesses=[1, 5])
assert_type(run, rue.Run)
assert_type(run.risk, float)
assert_type(run.mistakes, int | None)
certificate = run.certificate(radius=10)
assert_type(certificate, rue.Certificate)
assert_type(certificate.regret_at_most, float)
assert_type(rue.certify(X, y, np.zeros(len(y)), loss="logistic", radius=5), rue.Certificate)

learner = rue.Mixture("logistic")
assert_type(learner, rue.Learner)
assert_type(learner.predict({"rain": 1.0}), float)
learner.update({"rain": 1.0}, 1, weight=2.0)

audit = rue.audit(learner, X[:10], y[:10])
assert_type(audit.regret, tuple[float, float])
game = rue.play(rue.OGD(domain="ball:1"), rue.OrthogonalAdversary(d=5), rounds=10)
assert_type(game, rue.Game)
for theorem in rue.theorems():
    assert_type(theorem, rue.Theorem)
    assert_type(theorem.run().holds, bool)


@rue.parameter
class Mine(rue.Loss):
    scale: float = 1.0

    def value(self, p: float, y: float) -> float:
        return self.scale * (p - y) * (p - y)

    def slope(self, p: float, y: float) -> float:
        return 2.0 * self.scale * (p - y)


rue.OGD(Mine(), "ball:1")
rue.save(learner, "model.rue")
assert_type(rue.load("model.rue").learner, rue.Learner)
"""


def test_a_script_of_a_user_passes_mypy_strict(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def check():
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", ROOT / ".mypy_cache"]
        return subprocess.run([*command, script], cwd=tmp_path, capture_output=True, text=True)

    done = check()
    assert done.returncode == 0, done.stdout + done.stderr
    script.write_text(SCRIPT + "\nwrong: str = run.risk\nrue.learn(X, y, learning_rate=3)\n")
    assert "Found 2 errors" in check().stdout
