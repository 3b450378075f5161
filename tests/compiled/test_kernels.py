"""The compiled-code machinery: hazards of Numba, the disk cache, and what crosses into kernels.

Real processes, real files, real edits on a copy of the package. `RUE_CACHE_DIR` of a child is always its own.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import gc
import hashlib
import itertools
import json
import os
import pickle
import random
import re
import resource
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import config
from numba.core.errors import TypingError
from scipy import sparse

import rue
from rue.compiled import Kernel, cache, kernels, parameters, twin
from rue.domains.base import _move_onto
from rue.errors import DataError, SettingsError
from rue.learners import loop
from rue.ledger import keep_accounts

compiling = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions, signals and limits")

PACKAGE = Path(rue.__file__).parent
X = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0]])
Y = np.array([1.0, -1.0, 1.0])
ONCE = [0.0, 0.5, 1.5]  # OGD on X, Y: hinge, step ½, by hand
TWICE = [0.0, 1.0, 3.0]  # the same with the slope doubled


# Children: each prints one JSON object on its last line. They import a copy of the package made once, so that an edit
# of the sources while the tests run does not move the cache under them.

SITE: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def site(tmp_path_factory):
    SITE[:] = [copied_package(tmp_path_factory.mktemp("site"))]


HEAD = """
import json, os, sys, time
import numpy as np
import rue
from rue.compiled import cache as _cache
from rue.compiled import Kernel
from rue.domains.base import _move_onto
from rue.learners import loop

X = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0]])
Y = np.array([1.0, -1.0, 1.0])

def ogd(loss="hinge", domain="ball:10", step="fixed:0.5"):
    return rue.OGD(loss, domain, step, intercept=False).run(X, Y).tolist()

def kernels():
    found = {id(k): k for name, module in list(sys.modules.items()) if name.split(".")[0] == "rue"
             for k in vars(module).values() if isinstance(k, Kernel)}
    return list(found.values())

def report(**facts):
    folder = _cache.cache_folder()
    compiled = sum(k.compiled() for k in kernels())
    print(json.dumps({"compiled": compiled, "folder": folder and str(folder), "file": rue.__file__, **facts}))
"""
HINGE = HEAD + "\nreport(p=ogd())\n"
PROJECT = HEAD + "\nreport(p=rue.Ball(5).project([6.0, 8.0]).tolist())\n"
PROJECTED = [3.0, 4.0]  # exactly


def environment(cache: Any = None, path: Any = None, **more: str) -> dict[str, str]:
    dropped = ("NUMBA_", "RUE_", "PYTHON", "XDG_", "COV")
    env = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    if cache is not None:
        env["RUE_CACHE_DIR"] = str(cache)
    env["PYTHONPATH"] = str(path or SITE[0])
    return {**env, **more}


def begin(script: Any, cache: Any = None, path: Any = None, limit: int | None = None, **more: str) -> Any:
    """Start a child on source text or on a script file; `limit` is the largest file it may write."""
    where = ["-c", script] if isinstance(script, str) else [str(script)]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.Popen(
        [sys.executable, "-W", "error", *where],
        env=environment(cache, path, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=None if limit is None else limited,
    )


def end(child: Any) -> dict[str, Any]:
    out, err = child.communicate(timeout=600)
    assert child.returncode == 0, f"exit {child.returncode}\n{out}\n{err[-3000:]}"
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer


def call(script: Any, cache: Any = None, path: Any = None, **more: Any) -> dict[str, Any]:
    return end(begin(script, cache, path, **more))


def together(folder: Path, count: int) -> str:
    """Source text that waits until `count` processes have come this far: each puts a file into the folder."""
    return f"""
open(os.path.join({str(folder)!r}, str(os.getpid())), "x").close()
while len(os.listdir({str(folder)!r})) < {count}:
    time.sleep(0.001)
"""


def files(root: Path) -> dict[str, bytes]:
    """Every file below `root`, hidden ones too, with its bytes."""
    return {str(f.relative_to(root)): f.read_bytes() for f in sorted(root.rglob("*")) if f.is_file()}


def copied_package(into: Path) -> Path:
    original = SITE[0] / "rue" if SITE else PACKAGE
    shutil.copytree(original, into / "rue", ignore=shutil.ignore_patterns("__pycache__", ".*", "prebuilt"))
    return into


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def known() -> int:
    """How many combinations of types this process has met, in all kernels, compiled or read from disk.

    `compiled()` alone would not do here: with a warm disk cache a superfluous signature is read, not compiled.
    """
    modules = [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "rue"]
    known = {id(k): k for module in modules for k in vars(module).values() if isinstance(k, Kernel)}
    assert {id(k) for k in (loop.run_rows, loop.learn_dense, _move_onto, keep_accounts)} <= set(known)
    return sum(map(met, known.values()))


def met(kernel: Any) -> int:
    known = sum(len(dispatcher.overloads) for dispatcher in kernel.dispatchers)
    assert kernel.compiled() <= known
    return known


@pytest.fixture(scope="module")
def twins(site, tmp_path_factory):
    """Two processes that compile run_rows at the same moment into one empty cache: what each answer, and the cache."""
    cache = tmp_path_factory.mktemp("warm")
    start = tmp_path_factory.mktemp("start")
    pair = [begin(HEAD + together(start, 2) + "report(p=ogd())\n", cache) for _ in range(2)]
    return [end(child) for child in pair], cache


@pytest.fixture
def warm(twins, tmp_path):
    """A copy of a cache that holds run_rows for dense OGD with hinge loss on a ball, step fixed."""
    cache = tmp_path / "cache"
    shutil.copytree(twins[1], cache)
    return cache


@pytest.fixture(scope="module")
def small(site, tmp_path_factory):
    """A cache with one small kernel, the projection onto a ball."""
    cache = tmp_path_factory.mktemp("small")
    answer = call(PROJECT, cache)
    assert answer["p"] == PROJECTED
    assert answer["compiled"] == 1
    return cache


# Hazard 1: machine code of an older source.


@compiling
def test_edited_loss_is_compiled_anew_in_a_folder_of_its_own(twins, warm, tmp_path):
    path = copied_package(tmp_path / "site")
    edit(
        path / "rue" / "losses/margin.py",
        "return -y if z < 1.0 else -self.at_kink * y if z == 1.0 else 0.0",
        "return -2.0 * y if z < 1.0 else -2.0 * self.at_kink * y if z == 1.0 else 0.0",
    )
    before = files(warm)
    answer = call(HINGE, warm, path)
    assert answer["file"] == str(path / "rue" / "__init__.py")
    assert answer["p"] == TWICE
    assert answer["compiled"] == 1
    old = twins[0][0]
    assert old["p"] == ONCE
    assert Path(answer["folder"]).name != Path(old["folder"]).name
    assert before.items() <= files(warm).items()  # the old code is left alone
    again = begin(HINGE, warm, path)
    unedited = begin(HINGE, warm)
    assert (end(again)["p"], end(unedited)["p"]) == (TWICE, ONCE)


@compiling
def test_unedited_copy_of_the_package_shares_the_cache(small, tmp_path):
    cache = shutil.copytree(small, tmp_path / "cache")
    answer = call(PROJECT, cache, copied_package(tmp_path / "site"))
    assert answer["p"] == PROJECTED
    assert answer["compiled"] == 0


QUARTERED = """

def quartered(self, w, scratch):
    for j in range(w.size):
        w[j] *= 0.25
    return 0.0

Ball.onto = quartered
"""


@compiling
def test_edit_in_a_subpackage_is_seen_too(small, tmp_path):
    cache = shutil.copytree(small, tmp_path / "cache")
    path = copied_package(tmp_path / "site")
    with (path / "rue" / "domains" / "sets.py").open("a") as file:
        file.write(QUARTERED)
    answer = call(PROJECT, cache, path)
    assert answer["p"] == [1.5, 2.0]
    assert answer["compiled"] == 1
    assert len(list(cache.iterdir())) == 2


@compiling
def test_an_editors_lock_file_among_the_sources_does_no_harm(tmp_path):
    """Emacs marks an unsaved file by a symbolic link to nowhere, `.#losses.py`."""
    path = copied_package(tmp_path / "site")
    (path / "rue" / ".#losses.py").symlink_to("someone@somewhere.4711")
    assert call(PROJECT, tmp_path / "cache", path)["p"] == PROJECTED


@compiling
def test_going_back_to_an_old_version_finds_its_kernels_although_many_are_newer(small, tmp_path):
    cache = shutil.copytree(small, tmp_path / "cache")
    (mine,) = cache.iterdir()
    for i in range(9):
        (cache / f"kernels-{i:016x}").mkdir()
    os.utime(mine, (1e9, 1e9))
    answer = call(PROJECT, cache)
    assert answer["p"] == PROJECTED
    assert answer["compiled"] == 0
    assert mine.is_dir()
    assert 8 <= len(list(cache.iterdir())) <= 9  # and the oldest of the others are gone


# Hazard 2: users' classes.

USERS = (
    HEAD
    + """
@rue.parameter
class Hinge(rue.MarginLoss):
    def value(self, p, y):
        return FACTOR * max(0.0, 1.0 - y * p)
    def slope(self, p, y):
        return -FACTOR * y if y * p <= 1.0 else 0.0

@rue.parameter
class Where(rue.Domain):
    top: float
    def onto(self, w, scratch):
        for j in range(w.size):
            w[j] = min(self.top, w[j])
        return 0.0

@rue.parameter
class Pace(rue.Step):
    start: float
    def eta(self, t, seen):
        return self.start * SHARE

before = ogd(rue.Hinge())
own = ogd(Hinge(), Where(100), Pace(1))
both = rue.Intersection(Where(0.5), rue.Ball(10)).project([3.0, -1.0]).tolist()
report(own=own, built_in=[before, ogd(rue.Hinge())], both=both)
"""
)


@compiling
def test_users_classes_leave_no_file_and_do_not_mix_with_namesakes(warm, tmp_path):
    """Three classes in each of two scripts, by the same names; one of them is the name of a built-in class too."""
    (tmp_path / "first.py").write_text("FACTOR, SHARE = 8.0, 0.25\n" + USERS)
    (tmp_path / "second.py").write_text("FACTOR, SHARE = 2.0, 0.5\n" + USERS)
    before = files(warm)
    pair = begin(tmp_path / "first.py", warm), begin(tmp_path / "second.py", warm)
    first, second = map(end, pair)
    assert first["own"] == [2.0 * p for p in TWICE]
    assert second["own"] == TWICE
    assert [first["built_in"], second["built_in"]] == [[ONCE, ONCE]] * 2  # beside the user's Hinge, in one process
    assert first["both"] == second["both"] == [0.5, -1.0]  # a user's class inside a built-in one
    assert first["compiled"] > 0
    assert files(warm) == before
    later = call(HINGE, warm)
    assert later["p"] == ONCE
    assert later["compiled"] == 0


@compiling
def test_a_class_defined_again_in_one_process_computes_with_the_new_method():
    def make(factor):
        @rue.parameter
        class Again(rue.Domain):
            def onto(self, w, scratch):
                for j in range(w.size):
                    w[j] *= factor
                return 0.0

        return Again()

    old, new = make(0.5), make(0.25)
    assert old.project([4.0]).tolist() == [2.0]
    assert new.project([4.0]).tolist() == [1.0]
    assert old.project([4.0]).tolist() == [2.0]


class Steep(rue.Hinge):
    def value(self, p, y):
        return 2.0 * max(0.0, 1.0 - y * p)

    def slope(self, p, y):
        return -2.0 * y if y * p <= 1.0 else 0.0


class Shy(rue.Ball):
    def onto(self, w, scratch):
        for j in range(w.size):
            w[j] = 0.0
        return 0.0


@compiling
def test_subclass_without_the_decorator_never_computes_with_its_parents_method():
    """Its own method, or a sentence that says `@rue.parameter` is missing; never the parent's, silently."""

    def own_or_refused(compute: Any) -> Any:
        try:
            return compute().tolist()
        except SettingsError as error:
            return "refused" if "parameter" in str(error) else error

    p = own_or_refused(lambda: rue.OGD(Steep(), "ball:10", "fixed:0.5", intercept=False).run(X, Y))
    w = own_or_refused(lambda: Shy(5.0).project([6.0, 8.0]))
    assert p in (TWICE, "refused")
    assert w in ([0.0, 0.0], "refused")


@compiling
def test_decorated_subclass_computes_with_its_own_method():
    assert rue.parameter(type("Shyer", (Shy,), {}))(1.0).project([3.0, 4.0]).tolist() == [0.0, 0.0]
    assert rue.Ball(5.0).project([6.0, 8.0]).tolist() == PROJECTED


@compiling
def test_two_users_classes_may_have_helpers_of_one_name_and_different_arguments():
    @rue.parameter
    class One(rue.Domain):
        def onto(self, w, scratch):
            w[0] = self.help_me(1.0)
            return 0.0

        def help_me(self, a):
            return a

    @rue.parameter
    class Two(rue.Domain):
        def onto(self, w, scratch):
            w[0] = self.help_me(2.0, 3.0)
            return 0.0

        def help_me(self, a, b):
            return a * b

    assert One().project([0.0]).tolist() == [1.0]
    assert Two().project([0.0]).tolist() == [6.0]


def test_no_two_built_in_classes_share_a_name():
    """The disk cache knows a class by its name alone."""
    owners = [cls for cls in parameters.OWNERS.values() if cls.__module__.split(".")[0] == "rue"]
    assert {rue.Hinge, rue.Ball, rue.Fixed} <= set(owners)
    assert [n for n, many in collections.Counter(cls.__name__ for cls in owners).items() if many > 1] == []


# Hazard 3: the same numbers in another type.

TENS = [10, 10.0, np.float32(10), np.float64(10), np.int64(10), np.uint8(10), np.array(10.0)]
ONES = [1, 1.0, np.float32(1), np.float64(1), np.int64(1), True, np.array(1)]


@compiling
def test_numbers_of_any_type_compile_run_rows_once():
    rue.OGD("hinge", rue.Ball(10.0), rue.Fixed(0.5), intercept=False).run(X, Y)
    before, compiled = known(), loop.run_rows.compiled()
    expected = rue.OGD("hinge", rue.Ball(10.0), rue.Fixed(1.0), intercept=False).run(X, Y).tolist()
    for ten, one in zip(TENS, ONES, strict=True):
        learner = rue.OGD("hinge", rue.Ball(ten), rue.Fixed(one), intercept=False)
        assert learner.run(X, Y).tolist() == expected
    assert rue.OGD("hinge", "ball:10", "fixed:1", intercept=False).run(X, Y).tolist() == expected
    assert (known(), loop.run_rows.compiled()) == (before, compiled)


VECTORS = [
    ([0.0, 1.0], [2, 3]),
    ((0, 1), (2.0, 3.0)),
    (np.array([0.0, 1.0], dtype=np.float32), np.array([2, 3], dtype=np.int64)),
    (np.array([0.0, 9.0, 1.0])[::2], np.asfortranarray([2.0, 3.0])),
    (np.broadcast_to([0.0, 1.0], (2,)), np.array([[2.0, 3.0], [0.0, 0.0]])[0]),
]


@compiling
def test_vectors_of_any_type_and_layout_compile_once():
    assert rue.Box([0.0, 1.0], [2.0, 3.0]).project([-1.0, 9.0]).tolist() == [0.0, 3.0]
    before = met(_move_onto)
    for lower, upper in VECTORS:
        for coordinates in (0, np.int32(2)):
            assert rue.Box(lower, upper, coordinates).project([-1.0, 9.0]).tolist() == [0.0, 3.0]
    assert rue.Box(-1, 1).project(np.array([5, -5])).tolist() == [1.0, -1.0]
    assert rue.Box(np.float32(-1), [1.0]).project((5, -5)).tolist() == [1.0, -1.0]
    assert met(_move_onto) == before


PAIRS = {
    "svm": (rue.SVM(1), rue.SVM(np.float32(1))),
    "adagrad": (rue.AdaGrad(rate=1, beta=np.int64(0)), rue.AdaGrad(rate=np.float64(1), beta=0.0)),
    "scaled": (rue.AdaGrad(scale="largest", rate=2), rue.AdaGrad(scale="largest")),
    "perceptron": (rue.Perceptron(2), rue.Perceptron(np.float32(2.0))),
    "huber": (rue.OGD(rue.Huber(1), "ball:1"), rue.OGD(rue.Huber(np.float32(1)), "ball:1")),
    "sequence": (rue.OGD(step=rue.Sequence([1, 1])), rue.OGD(step=rue.Sequence(np.ones(2, dtype=np.float32)))),
    "horizon": (rue.OGD(step=rue.Horizon(100, G=1)), rue.OGD(step=rue.Horizon(np.int64(100), G=np.float32(1)))),
    "adaptive": (rue.AdaptiveOGD(factor=1), rue.AdaptiveOGD(factor=np.float32(1.0))),
    "centre": (rue.OGD(domain=rue.Ball(1, [0, 1, 2])), rue.OGD(domain=rue.Ball(1.0, np.arange(3.0)))),
    "intercept": (rue.OGD(intercept=np.True_), rue.OGD(intercept=1)),
    "d": (rue.OGD(d=np.int64(3)), rue.OGD(d=3)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_settings_of_any_type_make_one_type_of_rule_and_point(name):
    kinds = []
    for learner in PAIRS[name]:
        learner = learner.copy()
        learner.widen(rue.Block(np.zeros((1, 2 if name in ("centre",) else 3))))
        kinds.append([kernels._typeof(twin(thing)) for thing in (learner._rule, learner._point, learner.intercept)])
    assert kinds[0] == kinds[1]


# Hazard 4: named tuples of different classes compare equal.

LIKE = [
    (rue.Square(), rue.Absolute()),
    (rue.Hinge(), rue.Logistic()),
    (rue.Fixed(1.0), rue.Sqrt(1.0)),
    (rue.Fixed(1.0), rue.Strong(1.0)),
    (rue.Simplex(1.0), rue.L1Ball(1.0)),
    (rue.Huber(0.5), rue.Quantile(0.5)),
    (rue.Uniform(), rue.ByTime()),
    (rue.Ball(1.0), rue.Ball(1.0, [0.0])),
    (rue.Ball(1.0, [0.0, 0.0]), rue.Ball(1.0, [0.0, 0.0, 0.0])),
    (rue.Box(0, 1), rue.Box(0, 1, 3)),
    (rue.OGD("square").algorithm, rue.OGD("absolute").algorithm),
]


@pytest.mark.parametrize(("one", "other"), LIKE, ids=repr)
def test_parameters_of_different_classes_with_equal_fields_differ(one, other):
    assert one != other
    assert (one == other) is False
    assert hash(one) != hash(other)
    assert len({one, other}) == 2
    assert one == copy.deepcopy(one) == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(copy.deepcopy(one))
    assert one != twin(one)


def test_equal_fields_make_equal_twins_which_is_why_users_never_get_them():
    assert twin(rue.Fixed(1.0)) == twin(rue.Sqrt(1.0))
    assert twin(rue.Square()) == twin(rue.Absolute())


def test_domains_with_equal_fields_behave_apart():
    w = [0.25, 0.25]
    assert rue.Simplex(1.0).project(w).tolist() == [0.5, 0.5]
    assert rue.L1Ball(1.0).project(w).tolist() == w
    assert rue.Simplex(1.0).project(w).tolist() == [0.5, 0.5]


def test_learners_with_equal_fields_differ():
    one, other = (rue.OGD(loss, "ball:1", "fixed:1") for loss in ("square", "absolute"))
    assert one != other
    assert one == one.copy()
    assert rue.OGD(step=rue.Fixed(1.0)) != rue.OGD(step=rue.Sqrt(1.0))


def test_users_hold_dataclasses_never_twins():
    learner = hinge()
    run = rue.learn(X, Y, learner=learner)
    averaged = rue.SVM()
    both = rue.Intersection(rue.Ball(1), rue.Orthant())
    for owner in (learner, learner.copy(), pickle.loads(pickle.dumps(run.learner)), run.learner, averaged):
        for held in (owner.loss, owner.domain, owner.algorithm, owner.algorithm.step, owner.algorithm.average):
            assert dataclasses.is_dataclass(held)
            assert not isinstance(held, tuple)
            assert "Twin" not in repr(held)
    assert type(run.learner.loss) is rue.Hinge
    assert [type(member) for member in both.members] == [rue.Ball, rue.Orthant]


# Where the cache lies, and where it does not.


def barred(tmp_path: Path) -> Path:
    """A place where even root can write nothing: below a regular file."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "below"


def read_only(root: Path) -> Path:
    for place in [root, *root.rglob("*")]:
        place.chmod(stat.S_IRUSR | stat.S_IXUSR | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    return root


@compiling
def test_read_only_installation_without_a_home_falls_back_to_the_temporary_folder(tmp_path):
    site = read_only(copied_package(tmp_path / "site"))
    before = files(site)
    temporary, bad = tmp_path / "t", str(barred(tmp_path))
    temporary.mkdir()
    places = {"HOME": bad, "XDG_CACHE_HOME": bad, "TMPDIR": str(temporary)}
    answer = call(PROJECT, None, site, **places)
    assert answer["p"] == PROJECTED
    assert answer["compiled"] == 1
    assert answer["file"].startswith(str(site))
    assert Path(answer["folder"]).parent == temporary / f"rue-{os.getuid()}"
    assert stat.S_IMODE(Path(answer["folder"]).stat().st_mode) == 0o700
    assert len(files(temporary)) == 1
    assert call(PROJECT, None, site, **places)["compiled"] == 0
    assert files(site) == before
    for place in [site, *site.rglob("*")]:
        place.chmod(0o755)  # so that pytest can clean up


@compiling
def test_users_cache_folder_comes_first(tmp_path):
    answer = call(PROJECT, None, XDG_CACHE_HOME=str(tmp_path / "xdg"), TMPDIR=str(tmp_path))
    assert Path(answer["folder"]).parent == tmp_path / "xdg" / "rue"
    assert len(files(tmp_path)) == 1


@compiling
def test_impossible_cache_place_only_means_compiling_each_time(tmp_path):
    place = barred(tmp_path)
    pair = [begin(PROJECT, place) for _ in range(2)]
    for answer in map(end, pair):
        assert answer["p"] == PROJECTED
        assert answer["compiled"] == 1
        assert answer["folder"] is None
    assert list(files(tmp_path)) == ["file"]


@compiling
def test_no_writable_place_in_the_whole_system_only_means_compiling_each_time(tmp_path):
    """No home, and not a byte can be written anywhere: every file system full, or read-only."""
    bad = str(barred(tmp_path))
    answer = call(PROJECT, None, limit=0, HOME=bad, XDG_CACHE_HOME=bad, TMPDIR=str(tmp_path))
    assert answer["p"] == PROJECTED
    assert answer["compiled"] == 1


@compiling
def test_disk_that_fills_up_is_no_error_and_leaves_no_half_written_file(tmp_path):
    cache = tmp_path / "cache"
    answer = call(PROJECT, cache, limit=4096)
    assert answer["p"] == PROJECTED
    assert answer["compiled"] == 1
    assert files(cache) == {}


@compiling
@as_root
def test_place_owned_by_somebody_else_is_not_used(tmp_path):
    place, xdg = tmp_path / "theirs", tmp_path / "xdg"
    for folder in (place, xdg / "rue", tmp_path / "t" / "rue-0"):
        folder.mkdir(parents=True)
        folder.chmod(0o777)
        os.chown(folder, 12345, 12345)
    others = {"XDG_CACHE_HOME": str(xdg), "TMPDIR": str(tmp_path / "t")}
    chosen = begin(PROJECT, place, **others)
    found = begin(PROJECT, None, **others)
    for answer in (end(chosen), end(found)):
        assert answer["p"] == PROJECTED
        assert answer["compiled"] == 1
        assert answer["folder"] is None
    assert files(tmp_path) == {}


@compiling
@as_root
def test_kernels_folder_owned_by_somebody_else_is_not_read(small, tmp_path):
    """In a place that others can write to, somebody could have put the folder there before us."""
    cache = shutil.copytree(small, tmp_path / "cache")
    cache.chmod(0o1777)
    (folder,) = cache.iterdir()
    os.chown(folder, 12345, 12345)
    before = files(cache)
    answer = call(PROJECT, cache, XDG_CACHE_HOME=str(tmp_path / "own"))
    assert answer["p"] == PROJECTED
    assert answer["compiled"] == 1
    assert files(cache) == before
    assert Path(answer["folder"]).is_relative_to(tmp_path / "own")


REFUSED = "compiled kernels are read back only from folders that nobody else can write to, but others may write to"


def answer_and_message(cache: Any = None, **more: str) -> tuple[dict[str, Any], str]:
    """What a child tells, and what it writes to stderr."""
    child = begin(PROJECT, cache, **more)
    out, err = child.communicate(timeout=300)
    assert child.returncode == 0, err[-3000:]
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert answer["p"] == PROJECTED
    return answer, err


@compiling
@pytest.mark.parametrize(
    ("which", "mode"), [("kernels", 0o720), ("kernels", 0o1777), ("place", 0o777), ("above", 0o757), ("link", 0o775)]
)
def test_folder_that_others_may_write_to_is_not_used(small, tmp_path, which, mode):
    """Neither the folder nor one above it; a poisoned file there is not even opened."""
    above = tmp_path / "above"
    place = shutil.copytree(small, above / "place")
    (folder,) = place.iterdir()
    (file,) = folder.iterdir()
    payload = pickle.dumps(Poison(str(tmp_path / "poisoned")))
    file.write_bytes(hashlib.sha256(payload).digest() + payload)
    given = place
    if which == "link":
        given = tmp_path / "link"
        given.symlink_to(place)
    open_to_all = {"kernels": folder, "place": place, "above": above, "link": above}[which]
    open_to_all.chmod(mode)
    before = files(above)
    answer, message = answer_and_message(given, XDG_CACHE_HOME=str(tmp_path / "own"))
    assert answer["compiled"] == 1
    assert Path(answer["folder"]).parent == tmp_path / "own" / "rue"
    assert len(message.splitlines()) == 1
    assert f"{REFUSED} {open_to_all}: they are kept in {answer['folder']} (" in message
    assert files(above) == before
    assert not (tmp_path / "poisoned").exists()
    again, _ = answer_and_message(given, XDG_CACHE_HOME=str(tmp_path / "own"))
    assert again["compiled"] == 0


class Poison:
    """Its pickle makes a file when it is read."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (self.path, "w")


@compiling
def test_sticky_folder_open_to_all_holds_a_folder_of_our_own(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    answer, message = answer_and_message(shared / "cache")
    assert Path(answer["folder"]).parent == shared / "cache"
    assert message == ""


@compiling
def test_home_that_a_group_may_write_to_still_works(tmp_path):
    home, temporary = tmp_path / "home", tmp_path / "t"
    home.mkdir()
    home.chmod(0o775)
    temporary.mkdir()
    answer, message = answer_and_message(HOME=str(home), TMPDIR=str(temporary))
    assert Path(answer["folder"]).parent == temporary / f"rue-{os.getuid()}"
    assert f"{REFUSED} {home}: they are kept in" in message
    temporary.chmod(0o777)
    answer, message = answer_and_message(HOME=str(home), TMPDIR=str(temporary))
    assert answer["folder"] is None
    assert f"{REFUSED} {home}: every process compiles them again (" in message
    assert list(home.iterdir()) == []


@compiling
@pytest.mark.parametrize("kind", ["writable", "link", "fifo"])
def test_cache_file_that_others_could_have_written_is_replaced_and_never_read(small, tmp_path, kind):
    cache = shutil.copytree(small, tmp_path / "cache")
    (file,) = (f for f in cache.rglob("*") if f.is_file())
    payload = pickle.dumps(Poison(str(tmp_path / "poisoned")))
    content = hashlib.sha256(payload).digest() + payload
    file.unlink()
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        file.symlink_to(tmp_path / "elsewhere")
    else:
        file.write_bytes(content)
        file.chmod(0o620)
    answer = call(PROJECT, cache)
    assert answer["p"] == PROJECTED
    assert answer["compiled"] == 1
    assert not (tmp_path / "poisoned").exists()
    assert stat.S_ISREG(file.lstat().st_mode)
    assert stat.S_IMODE(file.lstat().st_mode) == 0o600
    assert call(PROJECT, cache)["compiled"] == 0


@compiling
def test_only_our_own_old_folders_are_removed(small, tmp_path):
    cache = shutil.copytree(small, tmp_path / "cache")
    target = tmp_path / "target"
    target.mkdir()
    (target / "precious").write_text("")
    os.utime(target, (0, 0))
    for i in range(12):
        (cache / f"kernels-{i:016x}").mkdir()
        os.utime(cache / f"kernels-{i:016x}", (i, i))
    (cache / "kernels-link").symlink_to(target)
    call(PROJECT, cache)
    assert (target / "precious").exists()
    assert (cache / "kernels-link").is_symlink()
    assert not (cache / f"kernels-{0:016x}").exists()


@compiling
@pytest.mark.parametrize("name", ["truncated", "random", "empty", "another pickle", "flipped"])
def test_damaged_cache_file_only_means_recompilation(small, tmp_path, name):
    cache = shutil.copytree(small, tmp_path / "cache")
    (file,) = (f for f in cache.rglob("*") if f.is_file())
    good = file.read_bytes()
    code = good.index(b"\x7fELF")  # the machine code; other systems have other object files
    flipped = bytearray(good)
    for k in random.Random(1).sample(range(code + 64, code + 2500), 200):
        flipped[k] ^= 0xFF
    damaged = {
        "truncated": good[: len(good) // 2],
        "random": random.Random(1).randbytes(len(good)),
        "empty": b"",
        "another pickle": pickle.dumps(("not", "what", "was", "expected")),
        "flipped": bytes(flipped),
    }
    file.write_bytes(damaged[name])
    answer = call(PROJECT, cache)
    assert answer["p"] == PROJECTED
    assert answer["compiled"] == 1
    assert file.read_bytes() != damaged[name]  # repaired
    assert [f.name for f in cache.rglob("*") if f.is_file()] == [file.name]
    if name == "truncated":
        assert call(PROJECT, cache)["compiled"] == 0


# Processes at the same moment.


@compiling
def test_two_processes_compiling_the_loop_at_once_agree(twins):
    answer, cache = twins
    assert [one["p"] for one in answer] == [ONCE, ONCE]
    assert len({one["folder"] for one in answer}) == 1
    (name,) = files(cache)
    assert "run_rows" in name
    later = call(HINGE, cache)
    assert later["p"] == ONCE
    assert later["compiled"] == 0


SETS = {"rue.Ball(5)": [3.0, -4.0], "rue.Simplex()": [1.0, 0.0], "rue.Box(-1, 1)": [1.0, -1.0]}


@compiling
def test_four_processes_compiling_the_same_and_different_signatures_at_once(tmp_path):
    cache, start = tmp_path / "cache", tmp_path / "start"
    start.mkdir()
    children = []
    for first in (0, 0, 1, 2):  # two start with the same signature, the others with their own
        order = [*SETS][first:] + [*SETS][:first]
        children.append(begin(HEAD + together(start, 4) + projections(order), cache))
    answer = [end(child) for child in children]
    assert [one["w"] for one in answer] == [SETS] * 4
    assert len(files(cache)) == len(SETS)  # one for each signature, nothing half written
    fifth = call(HEAD + projections([*SETS]), cache)
    assert fifth["w"] == SETS
    assert fifth["compiled"] == 0


def projections(order: list[str]) -> str:
    body = "".join(f"w[{one!r}] = {one}.project([6.0, -8.0]).tolist()\n" for one in order)
    return f"w = {{}}\n{body}report(w=w)\n"


# Without compilation.

ROUNDS = 40
LEARNERS = {
    "ball": 'rue.OGD("hinge", "ball:1", "fixed:0.5", intercept=False)',
    "svm": "rue.SVM(0.1)",
    "adagrad": 'rue.AdaGrad("logistic", scale="largest")',
    "simplex": 'rue.OGD("square", "simplex", "sqrt:0.1", intercept=False)',
}
PLAIN = (
    HEAD
    + """
from scipy import sparse
rng = np.random.default_rng(5)
D = rng.normal(size=(ROUNDS, 6)) * (rng.random((ROUNDS, 6)) < 0.6)
signs = np.sign(rng.normal(size=ROUNDS))
found = {}
for name, make in LEARNERS.items():
    learner = eval(make)
    p = learner.run(sparse.csr_matrix(D) if name in ("simplex", "adagrad") else D, signs)
    found[name] = [p.tolist(), learner.point.tolist()]
"""
)


@compiling
def test_interpreted_and_compiled_results_agree_and_nothing_is_compiled(tmp_path):
    script = f"ROUNDS, LEARNERS = {ROUNDS}, {LEARNERS!r}\n{PLAIN}\n"
    script += "report(found=found, dispatchers=[k.dispatchers[0] for k in kernels()], many=len(kernels()))\n"
    child = begin(script, tmp_path / "cache", NUMBA_DISABLE_JIT="1")
    scope: dict[str, Any] = {"ROUNDS": ROUNDS, "LEARNERS": LEARNERS}
    exec(PLAIN, scope)
    answer = end(child)
    assert answer["compiled"] == 0
    assert answer["many"] >= 9
    assert set(answer["dispatchers"]) == {None}
    assert files(tmp_path) == {}
    for name in LEARNERS:
        for mine, theirs in zip(scope["found"][name], answer["found"][name], strict=True):
            assert np.abs(mine).max() > 0.1
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12, err_msg=name)


# The second call compiles nothing.


def hinge() -> Any:
    return rue.OGD("hinge", "ball:1", "fixed:0.5", intercept=False)


@compiling
def test_second_call_compiles_nothing_whatever_the_form_of_the_data():
    rng = np.random.default_rng(3)
    D = rng.normal(size=(12, 4)) * (rng.random((12, 4)) < 0.7)
    D[:, 3] = 1.0
    D = np.round(D * 4.0) / 4.0  # exact in float32
    y = np.sign(rng.normal(size=12))
    ones = np.ones(12)
    S = sparse.csr_matrix(D)
    expected = hinge().run(D, y)
    dense, sparsely = hinge(), hinge()
    for x, label in zip(D, y, strict=True):
        dense.predict(x)
        dense.update(x, label)
        pair = np.flatnonzero(x), x[np.flatnonzero(x)]
        sparsely.predict(pair)
        sparsely.update(pair, label)
    np.testing.assert_allclose(hinge().run(S, y), expected, rtol=1e-12, atol=1e-12)
    hinge().predict_many(D), hinge().predict_many(S)
    before, run_rows = known(), met(loop.run_rows)

    frozen = D.copy()
    frozen.setflags(write=False)
    labels = y.copy()
    labels.setflags(write=False)
    wide = np.zeros((24, 8))
    wide[::2, ::2] = D
    twice = np.repeat(y, 2)[::2]
    big = sparse.csr_matrix((S.data.astype(np.float32), S.indices.astype(np.int64), S.indptr.astype(np.int64)), S.shape)
    big.indices, big.indptr = big.indices.astype(np.int64), big.indptr.astype(np.int64)
    assert big.indices.dtype == np.int64
    lent = S.copy()
    for array in (lent.data, lent.indices, lent.indptr):
        array.setflags(write=False)
    unsorted = sparse.csr_matrix((S.data.copy(), S.indices.copy(), S.indptr.copy()), S.shape)
    for i in range(12):
        row = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[row], unsorted.data[row] = S.indices[row][::-1], S.data[row][::-1]
    forms: dict[str, tuple[Any, ...]] = {
        "again": (D, y),
        "read-only": (frozen, labels, np.broadcast_to(1.0, 12)),
        "Fortran": (np.asfortranarray(D), y),
        "float32": (D.astype(np.float32), y.astype(np.float32), ones.astype(np.float32)),
        "big-endian": (D.astype(">f8"), y.astype(">f8")),
        "strided": (wide[::2, ::2], twice),
        "lists": (D.tolist(), y.astype(int).tolist(), [1] * 12),
        "objects": (D.astype(object), y),
        "int8 labels": (D, y.astype(np.int8), np.ones(12, dtype=bool)),
        "blocks": ([rue.Block(D[i : i + 5], y[i : i + 5]) for i in (0, 5, 10)],),
        "sparse": (S, y),
        "sparse array": (sparse.csr_array(D), y),
        "int64 indices, float32": (big, y),
        "read-only sparse": (lent, labels),
        "csc": (sparse.csc_matrix(D), y),
        "coo": (sparse.coo_matrix(D), y),
        "unsorted": (unsorted, y),
        "sparse blocks": ([rue.Block(S[i : i + 5], y[i : i + 5]) for i in (0, 5, 10)],),
    }
    for form, given in forms.items():
        learner = hinge()
        np.testing.assert_allclose(learner.run(*given), expected, rtol=1e-12, atol=1e-12, err_msg=form)
        assert known() == before, form

    learner = hinge()
    rows = [D[0], frozen[1], np.asfortranarray(D)[2], wide[6, ::2], D[4].tolist(), D[5].astype(np.float32), D[6][::-1]]
    rows[-1] = rows[-1].copy()[::-1]
    for i, x in enumerate(rows):
        assert learner.predict(x) == pytest.approx(expected[i], abs=1e-12)
        learner.update(x, (y[i], int(y[i]), np.float32(y[i]))[i % 3], (1, 1.0, np.int64(1))[i % 3])
    assert known() == before
    learner = hinge()
    for i in range(12):
        js = np.flatnonzero(D[i])
        forms_of_row = [
            (js.astype(np.int32), D[i, js]),
            (js.astype(np.int64)[::-1], D[i, js][::-1].astype(np.float32)),
            (js.tolist(), D[i, js].tolist()),
            S[i],
        ]
        x = forms_of_row[i % 4]
        assert learner.predict(x) == pytest.approx(expected[i], abs=1e-12)
        learner.update(x, y[i])
        if i == 6:
            learner = pickle.loads(pickle.dumps(learner)).copy()
    named = hinge()
    for i in range(12):
        x = {f"f{j}": D[i, j] for j in range(4) if i % 2 or D[i, j]}
        assert named.predict(x) == pytest.approx(expected[i], abs=1e-12)
        named.update(x, y[i])
    for matrix in (frozen, np.asfortranarray(D), D.astype(np.float32), D.tolist(), S, big, lent, unsorted):
        learner.predict_many(matrix)
    assert known() == before
    assert met(loop.run_rows) == run_rows


@compiling
def test_learning_with_accounts_compiles_once():
    rue.learn(X, Y, learner=hinge()).losses  # noqa: B018  # a property that runs a kernel
    before = known()
    for matrix, labels in ((X.astype(np.float32), Y), (np.asfortranarray(X), ["a", "b", "a"]), (X.tolist(), [1, 0, 1])):
        run = rue.learn(matrix, labels, learner=hinge(), bad="skip")
        assert np.isfinite(run.losses).all()
        run.certificate()
    assert known() == before


def test_import_compiles_nothing_and_loads_nothing_heavy(tmp_path):
    script = """
import json, sys
import rue
from rue.compiled import Kernel
heavy = [m for m in ("scipy.optimize", "scipy.sparse", "pyarrow", "matplotlib", "sklearn", "pandas", "cvxpy")
         if m in sys.modules]
kernels = {id(k): k for name, module in list(sys.modules.items()) if name.split(".")[0] == "rue"
           for k in vars(module).values() if isinstance(k, Kernel)}.values()
met = [sum(len(d.overloads) for d in k.dispatchers) for k in kernels]
print(json.dumps({"heavy": heavy, "met": met}))
"""
    answer = call(script, tmp_path / "cache")
    assert answer["heavy"] == []
    assert len(answer["met"]) >= 9
    assert set(answer["met"]) == {0}
    assert list(tmp_path.iterdir()) == []  # not even a folder


# Entry points called past Numba's dispatcher.


def test_calls_leak_no_references():
    learner, sparsely, named = hinge(), hinge(), hinge()
    x, y, weight = np.array([0.5, -1.0, 0.0, 2.0]), float("1"), float("1.0")
    label, flag = np.float64(1.0), True
    frozen = np.arange(8.0)[::2]
    frozen.setflags(write=False)
    pair = np.array([0, 2], dtype=np.uint32), np.array([1.0, -1.0])
    row = dict(zip("abcd", x.tolist(), strict=True))
    matrix, labels, weights = np.tile(x, (3, 1)), np.array([1.0, -1.0, 1.0]), np.ones(3)
    S = sparse.csr_matrix(matrix)

    def use(times: int) -> None:
        for _ in range(times):
            learner.predict(x)
            learner.update(x, y, weight)
            learner.update(frozen, label)
            sparsely.predict(pair)
            sparsely.update(pair, y)
            named.update(row, y)
            named.predict(row)
            for bad in (3.0, "word", None):
                try:
                    learner.update(x, bad)
                except DataError:
                    continue
                raise AssertionError(bad)
        for _ in range(times // 10):
            learner.run(matrix, labels, weights)
            learner.run(S, labels)
            learner.predict_many(matrix)
            rue.Ball(1.0).project(x)

    def counts() -> list[int]:
        gc.collect()
        inner = [*learner._point, *sparsely._point, *named._point, learner._rule_twin, *learner._rule_twin]
        inner += [named.names.indices, named.names.values, sparsely._point, learner._point]
        things = [x, y, weight, label, frozen, *pair, row, matrix, labels, weights, S.data, S.indices, S.indptr, *inner]
        return [sys.getrefcount(thing) for thing in things]

    use(20)
    before, shared = counts(), [sys.getrefcount(thing) for thing in (flag, False, None, 0.0, 1)]
    use(3000)
    assert counts() == before
    after = [sys.getrefcount(thing) for thing in (flag, False, None, 0.0, 1)]
    assert all(abs(one - other) < 1000 for one, other in zip(before and shared, after, strict=True))


def resident() -> float:
    """Memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@compiling
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_memory_does_not_grow_over_200_000_updates():
    learner, named = hinge(), hinge()
    x = np.array([0.5, -1.0, 0.0, 2.0])
    row = dict(zip("abcd", x.tolist(), strict=True))

    def use(times: int) -> None:
        for i in range(times):
            learner.update(x, 1.0 if i % 2 else -1.0)
            named.update(row, 1.0 if i % 2 else -1.0)
            learner.predict(x)

    use(5000)
    gc.collect()
    before = resident()
    use(100_000)
    gc.collect()
    assert resident() - before < 4.0
    assert learner.t == named.t == 105_000


# Other people's Numba code beside ours.

Lookalike = collections.namedtuple("Lookalike", ["value", "slope", "dot", "size", "at"])
Hinge = collections.namedtuple("Hinge", ["value", "slope"])


@compiling
def test_foreign_named_tuples_keep_their_fields_in_users_numba_code():
    @numba.njit
    def total(t):
        return t.value + t.slope + t.dot + t.size + t.at[0]

    @numba.njit
    def uniform(t):
        return t.value + 10.0 * t.slope

    @numba.njit
    def unpacked():
        t = Hinge(1.0, 2)
        return t.value * t.slope

    assert total(Lookalike(1.0, 2, np.float32(3), 4, np.array([5.0]))) == 15.0
    assert uniform(Hinge(1.0, 2.0)) == 21.0
    assert unpacked() == 2.0


@compiling
def test_missing_field_of_a_foreign_named_tuple_is_numbas_own_error():
    @numba.njit
    def missing(t):
        return t.onto(1.0, 2.0)

    with pytest.raises(TypingError, match="onto"):
        missing(Hinge(1.0, 2.0))


# What a user's class may not do, refused in one sentence.


def loss_with(**methods: Any) -> Any:
    def value(self, p, y):
        return abs(p - y)

    def slope(self, p, y):
        return 1.0 if p > y else (-1.0 if p < y else 0.0)

    return rue.parameter(type("Mine", (rue.Loss,), {"lipschitz": 1.0, "value": value, "slope": slope, **methods}))()


def domain_with(onto: Any) -> Any:
    return rue.parameter(type("Mine", (rue.Domain,), {"onto": onto}))()


def sentence(error: Any) -> str:
    message = str(error.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 500
    assert "Mine" in message
    return message


@compiling
def test_too_many_arguments_are_explained():
    with pytest.raises(SettingsError, match=r"Mine\.slope takes 3 arguments where Loss\.slope takes 2") as error:
        rue.OGD(loss_with(slope=lambda self, p, y, z=0.0: 1.0 if p > y else -1.0), "ball:1", "fixed:1").run(X, Y)
    sentence(error)
    with pytest.raises(SettingsError, match=r"Mine\.onto takes 3 arguments where Domain\.onto takes 2") as error:
        domain_with(lambda self, w, scratch, more: 0.0).project([1.0])
    sentence(error)


@compiling
def test_too_few_arguments_are_explained():
    with pytest.raises(SettingsError, match=r"Mine\.onto takes 1 arguments where Domain\.onto takes 2") as error:
        domain_with(lambda self, w: 0.0).project([1.0])
    sentence(error)
    with pytest.raises(SettingsError) as error:
        rue.OGD(loss_with(slope=lambda self, p: 0.0), "ball:1", "fixed:1")
    assert "slope" in sentence(error)


def test_accepts_with_the_wrong_number_of_arguments_is_explained():
    with pytest.raises(SettingsError) as error:
        rue.OGD(loss_with(accepts=lambda self: True), "ball:1", "fixed:1")
    assert "accepts" in sentence(error)


def zeros(self, w, scratch):
    work = np.zeros(w.size)
    return work[0]


def expression(self, w, scratch):
    w[:] = 0.5 * w
    return 0.0


def listing(self, w, scratch):
    work = [w[0]]
    work.append(0.0)
    return work[1]


def objects(self, w, scratch):
    thing = object()
    return 0.0 if thing is None else 1.0


def class_constant(self, w, scratch):
    return 0.0 * self.scratch_rows


@compiling
@pytest.mark.parametrize("onto", [zeros, expression, listing, objects, class_constant])
def test_methods_that_allocate_or_use_python_objects_are_explained(onto):
    with pytest.raises(SettingsError, match="the methods of Mine could not be compiled") as error:
        domain_with(onto).project([1.0, 2.0])
    assert "no allocation, no Python objects" in sentence(error)


@compiling
def test_loss_that_allocates_is_explained_and_only_it_is_blamed():
    def slope(self, p, y):
        work = np.zeros(1)
        work[0] = p - y
        return 1.0 if work[0] > 0.0 else (-1.0 if work[0] < 0.0 else 0.0)

    with pytest.raises(SettingsError, match="could not be compiled") as error:
        rue.OGD(loss_with(slope=slope), "ball:1", "fixed:1").run(X, Y)
    assert "the methods of Mine could" in sentence(error)  # not of GradientRule, which is rue's own


@compiling
def test_learner_is_unharmed_by_a_class_that_could_not_be_compiled():
    with pytest.raises(SettingsError):
        domain_with(zeros).project([1.0, 2.0])
    assert rue.Ball(5.0).project([6.0, 8.0]).tolist() == PROJECTED
    assert domain_with(lambda self, w, scratch: 0.0).project([3.0, 4.0]).tolist() == [3.0, 4.0]


# Threads.

WIDE = 12_000


def long_run(learner: Any, rounds: int) -> Any:
    """One block whose every round projects onto a wide simplex: one call of one kernel."""
    at = np.arange(rounds) % WIDE
    S = sparse.csr_matrix((np.ones(rounds), at, np.arange(rounds + 1)), (rounds, WIDE))
    return learner.run(S, np.where(at % 3, 1.0, 0.0))


def wide() -> Any:
    return rue.OGD("square", "simplex", "sqrt:0.1", intercept=False, d=WIDE)


@compiling
def test_kernels_release_the_gil(monkeypatch):
    """Another thread counts while a kernel runs, however long that takes; with the GIL held it would stand still."""
    ticks, seen = itertools.count(), []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            next(ticks)
            time.sleep(0.001)

    def watched(*args: Any) -> Any:
        compiled = resolve(*args)

        def run(*args: Any) -> Any:
            before = next(ticks)
            result = compiled(*args)
            seen.append(next(ticks) - before - 1)
            return result

        return run

    long_run(wide(), 2)  # compiles
    resolve = loop.run_rows.resolve
    monkeypatch.setattr(loop.run_rows, "resolve", watched)
    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        for rounds in (256, 1024, 4096, 16_384, 65_536):  # in one block
            seen.clear()
            long_run(wide(), rounds)
            if max(seen) >= 10:
                break
    finally:
        stop.set()
        ticker.join()
    assert max(seen) >= 10


@compiling
def test_learners_in_two_threads_run_apart_and_agree_with_one_thread():
    expected = long_run(wide(), 300)
    found: dict[int, Any] = {}
    barrier = threading.Barrier(2)

    def work(i: int) -> None:
        barrier.wait()
        found[i] = long_run(wide(), 300)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0].tobytes() == expected.tobytes() == found[1].tobytes()


@compiling
def test_threads_that_compile_the_same_kernel_at_once_agree(tmp_path):
    script = (
        HEAD
        + """
import threading
barrier, found = threading.Barrier(4), [None] * 4
def work(i):
    barrier.wait()
    found[i] = (rue.Ball(5) if i % 2 else rue.Simplex()).project([6.0, 8.0]).tolist()
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
report(found=found, met=len(_move_onto.dispatchers[0].overloads))
"""
    )
    answer = call(script, tmp_path / "cache")
    assert answer["found"] == [[0.0, 1.0], PROJECTED] * 2
    assert answer["met"] == 2


# With bounds checks.

BOUNDS = (
    HEAD
    + """
from scipy import sparse
from rue.domains.base import _move_onto

@rue.parameter
class Outside(rue.Domain):
    def onto(self, w, scratch):
        return 0.0 * w[w.size]

try:
    _move_onto(Outside(), np.ones(1), np.empty((0, 1)))
except IndexError:
    checked = True
else:
    checked = False
D = np.arange(30.0).reshape(5, 6) % 7 - 3
y = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
dense, pairs, named = (rue.Perceptron() for _ in range(3))
runs = [rue.Perceptron().run(D, y).tolist(), rue.Perceptron().run(sparse.csr_matrix(D), y).tolist(), [], [], []]
for x, label in zip(D, y):
    runs[2].append(dense.predict(x))
    dense.update(x, label)
    j = np.flatnonzero(x)
    runs[3].append(pairs.predict((j, x[j])))
    pairs.update((j, x[j]), label)
    row = {str(i): x[i] for i in j}
    runs[4].append(named.predict(row))
    named.update(row, label)
report(checked=checked, runs=runs)
"""
)


@pytest.fixture(scope="module", autouse=not config.DISABLE_JIT)
def with_bounds_checks(site, tmp_path_factory):
    """The longest child of all, started before the first test so that it runs beside them."""
    child = begin(BOUNDS, tmp_path_factory.mktemp("bounds"), NUMBA_BOUNDSCHECK="1")
    yield child
    child.kill()
    child.communicate()


@compiling
def test_normal_runs_stay_inside_their_arrays(with_bounds_checks):
    answer = end(with_bounds_checks)
    assert answer["checked"]  # so that a step outside would have been seen
    assert np.abs(answer["runs"][0]).max() > 1.0
    assert answer["runs"] == [answer["runs"][0]] * 5


@compiling
def test_code_for_another_processor_is_not_taken_from_the_disk(small, tmp_path):
    """A home folder may be shared by machines, and code with wide vectors ends the process on a narrow one."""
    cache = shutil.copytree(small, tmp_path / "cache")
    for other, expected in (("generic", 1), ("generic", 0), (None, 0)):
        answer = call(PROJECT, cache, **({"NUMBA_CPU_NAME": other} if other else {}))
        assert answer["p"] == PROJECTED
        assert answer["compiled"] == expected
    assert len(files(cache)) == 2


@compiling
def test_code_without_bounds_checks_is_not_taken_from_the_disk_when_they_are_wanted(small, tmp_path):
    cache = shutil.copytree(small, tmp_path / "cache")
    assert call(PROJECT, cache, NUMBA_BOUNDSCHECK="1")["compiled"] == 1
    assert call(PROJECT, cache)["compiled"] == 0


def test_a_method_may_print_which_needs_what_numba_keeps_for_it():
    """Without `set_environments` the process hangs at the first example."""
    script = """
import rue

@rue.parameter
class Loud(rue.Loss):
    lipschitz = 1.0

    def value(self, p, y):
        return abs(p - y)

    def slope(self, p, y):
        if y > 90.0:  # which the check for convexity does not try
            print("large")
        return 1.0 if p > y else -1.0

rue.OGD(Loud(), domain="ball:1").run([[1.0]], [95.0])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=True)
    assert found.stdout == "large\n"


def test_what_cannot_be_compiled_is_said_without_colours_and_garbage_is_collected_again():
    @rue.parameter
    class Raising(rue.Loss):
        lipschitz = 1.0

        def value(self, p, y):
            return abs(p - y)

        def slope(self, p, y):
            if y > 9.0:
                raise ValueError("too large", y)
            return 1.0 if p > y else -1.0

    with pytest.raises(rue.SettingsError, match="Raising could not be compiled") as error:
        rue.OGD(Raising(), domain="ball:1").run([[1.0]], [0.5])
    assert "\x1b" not in str(error.value)
    assert gc.isenabled()


def test_a_start_that_compiles_nothing_imports_nothing_of_the_compiler(tmp_path):
    """Numba's code for arrays and SciPy's linear algebra take 0.4 s to import, and only compiling needs them."""
    code = (
        "import sys, rue; rue.learn([[1.0], [2.0]], [1, -1], learner='ogd:hinge'); "
        "print('numba.np.arraymath' in sys.modules, 'scipy.linalg' in sys.modules)"
    )
    env = {**os.environ, "RUE_CACHE_DIR": str(tmp_path)}
    env.pop("NUMBA_DISABLE_JIT", None)
    seen = [
        subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert seen[0][0] == "True"
    assert seen[1] == ["False", "False"]


def test_what_the_digest_leaves_out_defines_no_compiled_code():
    """An edit there compiles nothing anew, so nothing there may be compiled."""
    decorators = re.compile(r"^@(inline|kernel|lanes|noinline|parameter|parser|values)\b", re.MULTILINE)
    root = Path(cache.__file__).parents[1]
    sources = {file.relative_to(root).as_posix(): file.read_text() for file in root.rglob("*.py")}
    left_out = {name for name in sources if name.startswith(cache.WITHOUT_KERNELS)}
    assert all(any(name.startswith(part) for name in left_out) for part in cache.WITHOUT_KERNELS)
    compiled = {name for name, source in sources.items() if decorators.search(source)}
    assert compiled
    assert not compiled & left_out
