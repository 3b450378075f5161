"""CONTRIBUTING.md is executed: its map, its walk, and each of its examples as one new file in a copy of the package."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from conftest import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
HOUSE = ROOT / "src/rue"
EXAMPLE = re.compile(
    r"^### An? (?P<kind>.+?)\n(?:(?!^#).)*?^```python\n# src/rue/(?P<path>\S+)\n(?P<code>.*?)^```\n"
    r"(?:(?!^#).)*?^```sh\n(?P<command>.*?)\n```",
    re.M | re.S,
)
EXAMPLES = {match["kind"]: SimpleNamespace(**match.groupdict()) for match in EXAMPLE.finditer(TEXT)}
for _example in EXAMPLES.values():
    _example.registered = re.findall(r'^@register\("(.+)", "(.+)"\)', _example.code, re.M)
    _example.classes = re.findall(r"^@register\(.*\n(?:@.*\n)*(?:class|def) (\w+)", _example.code, re.M)
    _example.there = (HOUSE / _example.path).parent.is_dir()
LEARNING = ["loss", "set", "step", "map", "algorithm"]
"""Kinds of examples with a command that learns."""


def section(title):
    return re.search(rf"^## {title}\n(.*?)^## ", TEXT, re.M | re.S)[1]


def test_the_map_has_every_room():
    listed = re.findall(r"^\| (.+?) \|", section("The house"), re.M)[1:]
    rooms = [name for names in listed for name in re.findall(r"`([\w./]+)`", names)]
    assert len(rooms) == len(set(rooms))
    folders = {f"{path.parent.name}/" for path in HOUSE.glob("*/__init__.py")}
    modules = {path.name for path in HOUSE.glob("[a-z]*.py")}
    assert set(rooms) == folders | modules


def test_the_walk_goes_through_modules_and_functions_that_exist():
    steps = re.findall(r"^\d+\. (.*(?:\n   .*)*)", section("A block of data on its way through it"), re.M)
    assert len(steps) == 10
    for step in steps:
        names = re.findall(r"`(rue\.[\w.]+)`", step)
        assert names
        for name in names:
            parts = name.split(".")
            depths = [k for k in range(2, len(parts)) if HOUSE.joinpath(*parts[1:k]).with_suffix(".py").exists()]
            assert depths, f"{name}: there is no such module"
            target = importlib.import_module(".".join(parts[: depths[-1]]))
            for part in parts[depths[-1] :]:
                target = getattr(target, part)
            assert callable(target), name


def test_there_is_an_example_of_everything():
    assert set(EXAMPLES) == {"loss", "set", "step", "map", "algorithm", "opponent", "file format"}
    kinds = [kind for example in EXAMPLES.values() for kind, _ in example.registered]
    assert kinds == ["loss", "domain", "step", "map", "algorithm", "learner", "opponent", "format"]


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the package, with each example as one file more: a function that runs a child process with it."""
    folder = tmp_path_factory.mktemp("house")
    leave = shutil.ignore_patterns("__pycache__", "prebuilt")
    shutil.copytree(HOUSE, folder / "src/rue", ignore=leave)
    for example in filter(lambda example: example.there, EXAMPLES.values()):
        path = folder / "src/rue" / example.path
        assert not path.exists()
        path.write_text(example.code)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3)).round(3)  # maps look at the first 64 rows only
    y = np.where(X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=120) > 0.0, 1, -1)
    for name, rows in {"first": slice(0, 80), "second": slice(80, 120)}.items():
        rows = list(zip(X[rows].tolist(), y[rows].tolist(), strict=True))
        table = [f"{a},{b},{c},{label}" for (a, b, c), label in rows]
        pairs = [f"{label} a={a} b={b} c={c}" for (a, b, c), label in rows]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,c,y", *table, ""]))
        (folder / f"{name}.pairs").write_text("\n".join([*pairs, ""]))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "RUE"))}
    env = {**kept, "PYTHONPATH": f"{folder / 'src'}:{ROOT / 'docs'}", "RUE_CACHE_DIR": str(folder / "cache")}

    def run(*command, compiled=False):
        quick = {} if compiled else {"NUMBA_DISABLE_JIT": "1"}
        done = subprocess.run(
            [sys.executable, *map(str, command)], cwd=folder, env={**env, **quick}, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    assert run("-c", "import rue; print(rue.__file__)").strip() == str(folder / "src/rue/__init__.py")
    return run


def rue_command(house, command, data, *options, compiled=False):
    """The command of an example on some data, with further options."""
    words = [word for part in shlex.split(command) for word in (data if part.startswith("DATA") else [part])]
    assert words[0] == "rue"
    return house("-m", "rue", *words[1:], *options, compiled=compiled)


def data_of(example, *names):
    suffix = ".pairs" if example.kind == "file format" else ".csv"
    return [f"{name}{suffix}" for name in names], [] if suffix == ".pairs" else ["--target", "y"]


@pytest.mark.parametrize("kind", [*LEARNING, "file format"])
def test_each_example_learns_is_certified_saved_loaded_resumed_and_predicts(house, kind):
    example = EXAMPLES[kind]
    if not example.there:
        pytest.skip(f"there is no folder for {example.path}")
    options = ["--radius", "1", "--quiet"]
    for name, parts in {"whole": ["first", "second"], "half": ["first"]}.items():
        data, target = data_of(example, *parts)
        said = rue_command(house, example.command, data, *target, *options, "--model", f"{kind}-{name}")
        assert "no linear model of norm" in said
    data, target = data_of(example, "second")
    house("-m", "rue", "learn", *data, "--resume", f"{kind}-half", "--model", f"{kind}-resumed", "--quiet")
    wanted, found = (house("-m", "rue", "predict", f"{kind}-{name}", *data) for name in ("whole", "resumed"))
    assert found == wanted
    assert len(found.split()) == 1 + 40
    inspected = house("-m", "rue", "inspect", f"{kind}-resumed")
    assert "120" in inspected


PYTHON = """
import numpy as np
import rue

rng = np.random.default_rng(1)
X, y = rng.normal(size=(120, 3)), rng.choice([-1.0, 1.0], 120)
for name, make in {learners}.items():
    whole = rue.learn(X, y, learner=make())
    loss, least = whole.learner.loss, whole.certificate(radius=1.0).comparator_loss_at_least
    for u in rng.normal(size=(20, 4)):
        p = np.column_stack([np.ones(120), X]) @ (u / np.linalg.norm(u))
        assert sum(map(loss.value, p.tolist(), y.tolist())) >= least, name
    rue.save(rue.learn(X[:80], y[:80], learner=make()), name)
    half = rue.load(name).learner
    half.run(X[80:], y[80:])
    assert half == whole.learner, name
    assert np.array_equal(half.predict_many(X), whole.learner.predict_many(X))
    print(repr(half.point.tolist()))
"""
LEARNERS = (
    '{"loss": lambda: rue.OGD("log-cosh", "ball:2"), "domain": lambda: rue.OGD("hinge", rue.NonnegativeBall(2)),'
    ' "step": lambda: rue.OGD("hinge", "ball:2", rue.Power(0.5)), "learner": lambda: rue.PassiveAggressive(),'
    ' "map": lambda: rue.Staged(maps=[rue.Halves()]),'
    ' "all": lambda: rue.OGD("log-cosh", "nonnegative-ball:1", "power:0.5,exponent=0.6", average="uniform")}'
)


def test_the_examples_do_the_same_in_python_compiled_and_not(house):
    script = PYTHON.replace("{learners}", LEARNERS)
    plain, compiled = (
        np.array(list(map(json.loads, house("-c", script, compiled=how).splitlines()))) for how in (False, True)
    )
    assert plain.shape == (6, 4)
    assert np.allclose(plain, compiled, rtol=1e-12, atol=1e-12)


def test_the_opponent_plays(house):
    said = rue_command(house, EXAMPLES["opponent"].command, [])
    assert "OGD against Uphill(d=3), 50 rounds" in said
    assert "Uphill: no round can be won" in said


CHECKS = """
import doctest, importlib, sys
import make_pages, make_reference
import rue

here = {here!r}
for names in here.values():
    for name in names:
        assert name in rue.__all__ and getattr(rue, name), name
        assert f"`{name}(" in make_pages.reference(), name
        assert f"## {name}\\n" in make_reference.page(make_reference.group(name)), name
rue.checks.check_loss(rue.checks.examples("loss")["log-cosh"])
rue.checks.check_domain(rue.checks.examples("domain")["nonnegative-ball"])
rue.checks.check_step(rue.checks.examples("step")["power"])
rue.checks.check_map(rue.checks.examples("map")["halves"])
rue.checks.check_opponent(rue.checks.examples("opponent")["uphill"])
for domain in ("reals", "ball:2", "box:-1,1", "nonnegative-ball:1"):
    rue.checks.check_learner(rue.PassiveAggressive("hinge", domain))
for path in {paths!r}:
    module = importlib.import_module("rue." + path.removesuffix(".py").replace("/", "."))
    tried = doctest.testmod(module)
    assert tried.attempted and not tried.failed, path
"""


def test_the_examples_are_public_documented_and_pass_their_checks(house):
    here = {kind: example.classes[-1:] for kind, example in EXAMPLES.items() if kind != "file format"}
    paths = [example.path for example in EXAMPLES.values() if example.there]
    house("-c", CHECKS.replace("{here!r}", repr(here)).replace("{paths!r}", repr(paths)))
