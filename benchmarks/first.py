"""A first command: the wheel in a new environment, with empty caches (docs/decisions/0019)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from benchmarks.streams import Cost, cost

ROOT = Path(__file__).parents[1]
CSV = "age,job,income\n25,clerk,low\n38,farmer,low\n44,manager,high\n"
VW = "1 |f clerk age:25\n-1 |f farmer age:38\n1 |f manager age:44\n"
SCRIPT = "import rue; rue.learn([[25.0, 1.0], [38.0, 0.0], [44.0, 1.0]], [1, -1, 1])"


def first_rows() -> list[tuple[str, float, str]]:
    """The first `rue learn` of three rows and the first `rue.learn`: by the clock, and the processors' time."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        python, build = _installed(Path(folder))
        rows.append(("building the wheel, its kernels compiled, processors' seconds", build, "–"))
        commands = _commands(Path(folder), python)
        for name, (command, wanted) in commands.items():
            spent = [_first(command, folder) for _ in range(3)]
            rows.append((f"{name}, seconds", min(each.wall for each in spent), wanted))
            rows.append((f"{name}, processors' seconds", min(each.cpu for each in spent), "–"))
        _remove_kernels(python)
        name = "first rue learn of a CSV"
        spent = _first(commands[name][0], folder)
        rows.append((f"{name}, without the wheel's kernels, seconds", spent.wall, "–"))
        rows.append((f"{name}, without the wheel's kernels, processors' seconds", spent.cpu, "–"))
    return rows


def _installed(folder: Path) -> tuple[str, float]:
    """The interpreter of a new environment with rue's wheel, and the processors' seconds that building it took.

    What rue depends on is that of this environment: nothing is downloaded.
    """
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "__pycache__", "prebuilt", "build"))
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), str(source)]
    build = cost(command, {**os.environ, "RUE_CACHE_DIR": str(folder / "building")}).cpu
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = str(folder / "venv/bin/python")
    (wheel,) = folder.glob("rue-*.whl")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", wheel], check=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(folder / "venv")})
    found = dict.fromkeys(path for path in sys.path if path.endswith("site-packages"))
    Path(packages, "dependencies.pth").write_text("\n".join(found))
    return python, build


def _commands(folder: Path, python: str) -> dict[str, tuple[list[str], str]]:
    (folder / "three.csv").write_text(CSV)
    (folder / "three.vw").write_text(VW)
    rue = str(Path(python).with_name("rue"))
    return {
        "first rue learn of a CSV": ([rue, "learn", str(folder / "three.csv"), "--target", "income"], "< 3"),
        "first rue learn of VW text": ([rue, "learn", str(folder / "three.vw")], "< 4"),
        "first rue.learn in Python": ([python, "-c", SCRIPT], "< 3"),
    }


def _first(command: list[str], folder: str) -> Cost:
    """What a command costs with an empty cache of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "RUE_", "PYTHON"))}
        return cost(command, {**clean, "RUE_CACHE_DIR": cache})


def _remove_kernels(python: str) -> None:
    code = "from pathlib import Path; import rue; print(Path(rue.__file__).parent / 'prebuilt')"
    place = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    shutil.rmtree(place)
