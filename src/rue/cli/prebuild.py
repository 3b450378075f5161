"""Compile the kernels that most people need, ahead of time: `python -m rue.cli.prebuild [USE …]`.

It runs common first uses of rue on tiny data (`USES`, all of them unless some are named), in processes that compile for
all processors of the level x86-64-v3 and store their code in a folder of their own; those files become `rue/prebuilt`,
where `rue.compiled.cache` looks for what the user's cache does not have. `make test` runs it, and so does building a
wheel; `make run` compiles for `tables` only. Without it rue compiles when a kernel is first needed, in some seconds.
"""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from rue.compiled.cache import PREBUILT, levels, source_digest

__all__ = ["LEVEL", "USES", "build", "main"]

LEVEL = "x86-64-v3"
"""The level of processors that kernels are compiled for: those made since 2013. Code for a newer one is 5 % faster."""


def _write_data() -> None:
    """A classification, a regression and three classes, as a CSV each, and the first as VW text and svmlight."""
    rng = random.Random(0)
    rows = [(rng.choice("ab"), rng.random(), rng.random()) for _ in range(40)]
    labels: dict[str, Callable[[float, float], str]] = {
        "classes": lambda x, z: "yes" if x > z else "no",
        "numbers": lambda x, z: f"{x + z:.3f}",
        "several": lambda x, z: "pqr"[int(3 * z)],
    }
    for name, label in labels.items():
        lines = [f"{word},{x:.3f},{label(x, z)}" for word, x, z in rows]
        Path(f"{name}.csv").write_text("\n".join(["word,x,y", *lines, ""]))
    signs = [(1 if x > z else -1, word, x) for word, x, z in rows]
    Path("text.vw").write_text("".join(f"{sign} |n {word} x:{x:.3f}\n" for sign, word, x in signs))
    Path("rows.svm").write_text("".join(f"{sign} 1:{x:.3f} 3:1\n" for sign, _, x in signs))


def _command(*args: str) -> None:
    """Run a command of `rue` in this process."""
    from rue.cli.app import app
    from rue.cli.commands import register

    register(args[0])
    app([*args], standalone_mode=False)


def _tables() -> None:
    _command("learn", "classes.csv", "--target", "y", "--model", "m.rue", "--predictions", "p.csv", "-q")
    _command("predict", "m.rue", "classes.csv", "-o", "q.csv")


def _linear() -> None:
    _command("learn", "classes.csv", "--target", "y", "--model", "l.rue", "--linear", "-q")
    _command("predict", "l.rue", "classes.csv", "-o", "q.csv")
    _command("learn", "several.csv", "--target", "y", "--model", "s.rue", "-q")
    _command("learn", "classes.csv", "--target", "y", "--text", "word", "-q")


def _text() -> None:
    for linear in ((), ("--linear",)):
        _command("learn", "text.vw", "--model", "w.rue", "-q", *linear)
        _command("predict", "w.rue", "text.vw", "-o", "q.csv")
        _command("learn", "rows.svm", "-q", *linear)
        _command("learn", "numbers.csv", "--target", "y", "--model", "n.rue", "-q", *linear)


def _keys() -> None:
    for name, learner in (("classes", "mixture"), ("numbers", "mixture"), ("classes", "ogd")):
        loss = "logistic" if name == "classes" else "square"
        asked = ("--by", "word", "--learner", learner, "--loss", loss, "--model", "k.rue", "-q")
        _command("learn", f"{name}.csv", "--target", "y", *asked)
        _command("predict", "k.rue", f"{name}.csv", "-o", "q.csv")


def _arrays() -> None:
    import numpy as np

    import rue

    rng = np.random.default_rng(0)
    X = rng.normal(size=(17_000, 3))  # so many that the digest of a narrow stream does all that it ever does
    for maps in ("auto", None):
        rue.learn(X, np.sign(X[:, 0]), maps=maps).predict(X)
        for label in ([1.0, -1.0], [0.5, 2.0]):
            learner = rue.learn(X[:2], label, maps=maps).learner
            learner.predict(X[0])
            learner.update(X[0], label[0])


def _service() -> None:
    if importlib.util.find_spec("msgspec") is None:  # the extra `serve` is not there
        return
    from rue.serve.warming import warm

    warm()


USES = {use.__name__[1:]: use for use in (_tables, _arrays, _linear, _text, _keys, _service)}
"""First uses, by name: each runs in a process of its own, as many at a time as there are cores.

The first two have hardly a kernel in common, since the rows of one are sparse and of the other dense; what comes later
finds many of its kernels compiled. All at once, each would compile what it shares with others for itself.
"""


def _run(use: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a first use in a process of its own, with all it prints in one text."""
    command = [sys.executable, "-m", "rue.cli.prebuild", "--here", use]
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def build(folder: Path, uses: Sequence[str] = tuple(USES)) -> int:
    """Compile what these uses need into a folder, next to what it has; returns how many kernels it then holds."""
    own = folder / source_digest()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary, "kernels")
        place.mkdir(mode=0o700)
        if own.is_dir():
            shutil.copytree(own, place / own.name)
            (place / own.name).chmod(0o700)  # others may not write to a folder of compiled code that is used
        env = {**os.environ, "NUMBA_CPU_NAME": LEVEL, "NUMBA_CPU_FEATURES": "", "RUE_CACHE_DIR": str(place)}
        env.pop("NUMBA_DISABLE_JIT", None)
        with ThreadPoolExecutor(os.cpu_count()) as executor:
            for use, done in zip(uses, executor.map(partial(_run, env=env), uses), strict=True):
                if done.returncode != 0:
                    raise RuntimeError(f"the kernels of {use} could not be compiled: {done.stdout[-2000:]}")
                sys.stdout.write(f"compiled: {use}\n")
                sys.stdout.flush()
        for old in folder.glob("*"):  # kernels of earlier sources
            if old.name != own.name:
                shutil.rmtree(old)
        shutil.copytree(place, folder, dirs_exist_ok=True)
    for use in uses:
        (own / f"for-{use}").touch()
    return sum(1 for _ in own.glob("rue.*"))


def main() -> None:
    """Build the kernels of this package, unless they are there, or this processor could not run them."""
    if sys.argv[1:2] == ["--here"]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            _write_data()
            USES[sys.argv[2]]()
            os.chdir(tempfile.gettempdir())
        return
    if LEVEL not in levels():
        sys.stdout.write(f"this processor is below {LEVEL}: kernels are compiled when they are first needed\n")
        return
    wanted = sys.argv[1:] or list(USES)
    if unknown := [use for use in wanted if use not in USES]:
        sys.exit(f"there is no use called {unknown[0]!r}: name some of {', '.join(USES)}, or none for all of them.")
    missing = [use for use in wanted if not (PREBUILT / source_digest() / f"for-{use}").exists()]
    if missing:
        sys.stdout.write(f"compiling the kernels for {', '.join(missing)}, once: up to two minutes ...\n")
        sys.stdout.flush()
        sys.stdout.write(f"{build(PREBUILT, missing)} kernels\n")


if __name__ == "__main__":
    main()
