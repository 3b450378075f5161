"""Model files that are damaged, foreign, hostile, or written while the lights go out."""

import copy
import json
import math
import os
import resource
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save as pack

import rue
from conftest import PEAK, many
from forging import array, forge, reason, refused_or_usable, setting
from rue.models.container import FORMAT, LONGEST, OLDEST, read_container, write_container
from rue.models.file import Model, load, load_model, save, save_model
from rue.models.settings import write_json
from rue.regret.certificates.evidence import open_evidence

SOURCE = Path(rue.__file__).parents[1]


@pytest.fixture(autouse=True)
def uncompiled(interpreted):
    """Nothing here depends on compiled code."""


def models():
    """Some of every kind of content."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 3))
    made = {
        "ball": (rue.OGD("square", "ball:2", average="uniform"), {"witnesses": 1.0, "units": "largest"}),
        "box": (rue.OGD("square", rue.Box([-1.0] * 4, 1.0), rue.Sequence([1.0, 0.5])), {"curvature": True}),
        "simplex": (rue.OGD("square", "simplex", "sqrt:0.5", average="t"), {}),
        "adagrad": (rue.AdaGrad("square", scale="largest"), {"units": "largest"}),
        "leader": (rue.FollowTheLeader("linear", "ball:1"), {}),
    }
    for name, (learner, kept) in made.items():
        evidence = open_evidence(learner.loss, **kept)
        block = rue.Block(X, X[:, 0])
        learner.widen(block)
        evidence.widen(4)
        out = np.empty(20)
        learner.run_block(block, evidence.ledger, out, 0)
        evidence.watch(block, out, True, 4)
        yield (
            name,
            Model(learner, evidence, rue.Labels("regress"), [{"a": 1}], {"b": 2}, {0: "x"}, {"c": 0.1}, {"p": 3}),
        )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        from rue.compiled import Kernel

        patch.setattr(Kernel, "resolve", lambda kernel, *args: kernel.interpreted)
        for name, model in models():
            save_model(model, folder / name)
    return sorted(folder.iterdir())


# Writing.


def test_missing_folder_read_only_folder_and_odd_targets(tmp_path):
    learner = rue.OGD()
    with pytest.raises(rue.DataError, match=rf"x/m cannot be written: there is no folder {tmp_path}/x\.$"):
        save(learner, tmp_path / "x" / "m")
    with pytest.raises(rue.DataError, match=r"cannot be written: it is a folder\.$"):
        save(learner, tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(rue.DataError, match=r"file/m cannot be written: not a directory\.$"):
        save(learner, tmp_path / "file" / "m")
    with pytest.raises(rue.DataError, match=r"cannot be written: file name too long\.$"):
        save(learner, tmp_path / ("m" * 300))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.fixture
def unprivileged_folder():
    """A folder, in a process whose rights can be refused: root may write anywhere."""
    with tempfile.TemporaryDirectory() as folder:
        root = os.geteuid() == 0
        if root:
            os.chown(folder, 65534, -1)
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            Path(folder).chmod(0o700)
            if root:
                os.seteuid(0)


def test_a_folder_that_may_not_be_written_to(unprivileged_folder):
    save(rue.OGD(), unprivileged_folder / "m")
    unprivileged_folder.chmod(0o500)
    with pytest.raises(rue.DataError, match=r"cannot be written: permission denied\.$"):
        save(rue.Perceptron(), unprivileged_folder / "m")
    assert load(unprivileged_folder / "m").learner == rue.OGD()


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "m"
    save(rue.OGD(), path)
    before = path.read_bytes()
    wide = rue.Perceptron(d=100_000)
    wide._point.v[:] = 1.0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(rue.DataError, match=r"m cannot be written: file too large\.$"):
            save(wide, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["m"]


def test_links_and_permissions_stay(tmp_path):
    path, link = tmp_path / "m", tmp_path / "link"
    save(rue.OGD(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()
    path.chmod(0o640)
    link.symlink_to("m")
    save(rue.Perceptron(), link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert load(path).learner == load(link).learner == rue.Perceptron()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_many_writers_at_once(tmp_path):
    path, failures = tmp_path / "m", []
    learners = [rue.Perceptron(d=k * 1000) for k in range(1, 5)]
    for learner in learners:
        learner._point.v[:] = 1.0

    def write(learner):
        try:
            for _ in range(many(20, 300)):
                save(learner, path)
                assert load(path).learner in learners
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(learner,)) for learner in learners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [found.name for found in tmp_path.iterdir()] == ["m"]


KILLER = """
import os, random, signal, sys, time
import rue
from rue.models.file import load, save
path, kills = sys.argv[1], int(sys.argv[2])
folder = os.path.dirname(path)
def left():
    return [name for name in os.listdir(folder) if name.endswith(".part")]
learners = [rue.Perceptron(d=400_000) for _ in range(2)]
for k, learner in enumerate(learners):
    learner._point.v[:] = k + 1.0
save(learners[0], path)
chance, done, interrupted = random.Random(5), 0, 0
while done < kills or not interrupted:  # on a busy machine few kills come while a file is written
    done += 1
    child = os.fork()
    if child == 0:
        while True:
            for learner in learners:
                save(learner, path)
    if chance.random() < 0.5:
        while not left():
            pass
    time.sleep(chance.uniform(0.0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for name in left():
        interrupted += 1
        os.remove(os.path.join(folder, name))
    assert load(path).learner in learners
print(interrupted)
"""


def test_kill_while_saving_leaves_the_old_file_or_the_new_one(tmp_path):
    path, kills = tmp_path / "m", many(40, 2000)
    command = [sys.executable, "-c", KILLER, path, str(kills)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
    save(rue.OGD(), path)
    assert [found.name for found in tmp_path.iterdir()] == ["m"]


def test_settings_too_long_for_a_header_are_refused_when_saved(tmp_path):
    model = Model(rue.OGD(), history=[{"data": "x" * (LONGEST + 1)}])
    with pytest.raises(rue.SettingsError, match="the history take .* bytes: more than a model file can hold"):
        save(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


# Reading what is not a model.


def test_what_cannot_be_read_at_all(tmp_path):
    assert reason(tmp_path / "missing") == " cannot be read: no such file or directory."
    assert reason(tmp_path) == " is not a model that can be read: it is a folder."
    os.mkfifo(tmp_path / "pipe")
    assert reason(tmp_path / "pipe") == " is not a model that can be read: it is not a regular file."
    assert reason("/dev/zero") == " is not a model that can be read: it is not a regular file."
    (tmp_path / "empty").write_bytes(b"")
    assert reason(tmp_path / "empty") == " is not a model that can be read: it does not begin as a model file does."


def test_a_file_that_may_not_be_read(unprivileged_folder):
    save(rue.OGD(), unprivileged_folder / "m")
    (unprivileged_folder / "m").chmod(0)
    assert reason(unprivileged_folder / "m") == " cannot be read: permission denied."


def test_other_files(tmp_path):
    path = tmp_path / "m"
    for content in (b"\x80\x04\x95pickle", b"PK\x03\x04" + b"\0" * 100, b"a,b\n1,2\n" * 100, b"\xff" * 1000):
        path.write_bytes(content)
        assert "it does not begin as a model file does" in reason(path)
    path.write_bytes(pack({"weights": np.zeros(3)}, {"format": "pt"}))
    assert reason(path).endswith(": it is a safetensors file, but not of a model of rue's.")
    path.write_bytes(pack({"weights": np.zeros(3)}))
    assert refused_or_usable(path)


def test_random_bytes(tmp_path):
    path, rng = tmp_path / "m", np.random.default_rng(7)
    for _ in range(many(300, 20_000)):
        content = rng.bytes(int(rng.integers(0, 400)))
        if rng.random() < 0.5:
            content = struct.pack("<Q", max(0, len(content) - 8 - int(rng.integers(0, 9)))) + b"{" + content[9:]
        path.write_bytes(content)
        assert refused_or_usable(path)


def test_a_file_cut_anywhere_is_refused(files, tmp_path):
    path, rng = tmp_path / "m", np.random.default_rng(8)
    for file in files:
        content = file.read_bytes()
        lengths = set(range(len(content))) if many(0, 1) else set(rng.integers(0, len(content), 60).tolist())
        for length in lengths | {0, 1, 7, 8, 9, 10, len(content) - 1}:
            path.write_bytes(content[:length])
            assert refused_or_usable(path), length
        path.write_bytes(content[:100])
        assert "it is cut off" in reason(path)
        path.write_bytes(content + b"\0")
        assert refused_or_usable(path)


def test_every_flipped_bit_is_noticed(files, tmp_path):
    path, rng = tmp_path / "m", np.random.default_rng(9)
    for file in files:
        content = bytearray(file.read_bytes())
        begin = 8 + int.from_bytes(content[:8], "little")
        unused = bytes(content[8:begin]).rstrip()  # spaces that pad the header mean nothing
        places = [*range(8, 8 + len(unused)), *range(begin, len(content))]
        chosen = places if many(0, 1) else rng.choice(places, 80, replace=False).tolist()
        for place in chosen:
            damaged = bytearray(content)
            damaged[place] ^= 1 << int(rng.integers(0, 8))
            path.write_bytes(damaged)
            assert refused_or_usable(path), place


def test_spliced_and_shuffled_files(files, tmp_path):
    path, rng = tmp_path / "m", np.random.default_rng(10)
    contents = [file.read_bytes() for file in files]
    for _ in range(many(100, 20_000)):
        a, b = (contents[int(rng.integers(len(contents)))] for _ in "ab")
        cut, take = int(rng.integers(len(a))), int(rng.integers(len(b)))
        mixed = a[:cut] + b[take:]
        path.write_bytes(mixed)
        assert refused_or_usable(path) or mixed in contents


# Reading what was made to look like a model: the digest is right, the rest is not.


def named(files, name):
    return next(file for file in files if file.name == name)


def test_forging_without_a_change_is_accepted(files, tmp_path):
    for file in files:
        assert not refused_or_usable(forge(file, tmp_path / "m", lambda head, arrays: None))


@pytest.mark.parametrize("version", ["9.9.9", ["x"] * 100_000, None])
def test_newer_older_and_nameless_formats(files, tmp_path, version):
    def newer(head, arrays):
        head.update(format=FORMAT + 1, rue=version)
        head.pop("learner")

    why = reason(forge(files[0], tmp_path / "m", newer))
    assert f"it was made by a newer rue ({str(version)[:20]}, format {FORMAT + 1})" in why
    assert why.endswith(": update rue.")
    why = reason(forge(files[0], tmp_path / "m", setting("format", value=OLDEST - 1)))
    assert f"it has format {OLDEST - 1}, and rue {rue.__version__} reads formats {OLDEST} to {FORMAT}" in why
    for odd in (None, "1", 1.0, True, -math.inf):
        assert "which format" in reason(forge(files[0], tmp_path / "m", setting("format", value=odd)))


def test_a_newer_file_with_another_digest_is_still_named_so(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(pack({"x": np.zeros(1)}, {"rue": json.dumps({"format": FORMAT + 1, "rue": "1.0.0"})}))
    assert f"made by a newer rue (1.0.0, format {FORMAT + 1})" in reason(path)


ABSURD = [-1, 2**31, 2**32, 2**40, 2**63, 10**400, 1.5, math.nan, math.inf, -math.inf, "4", [4], {}, None, True]


@pytest.mark.parametrize("value", ABSURD, ids=lambda value: str(value)[:12])
def test_absurd_sizes(files, tmp_path, value):
    for file in files:
        head, _ = read_container(file)
        places = [("learner", "d"), ("evidence", "size")]
        places += [("evidence", key) for key in ("largest", "curvature") if head["evidence"][key] is not None]
        if head["evidence"]["pool"] is not None:
            places += [("evidence", "pool", k) for k in range(3)]
        for place in places:
            path = forge(file, tmp_path / "m", setting(*place, value=value))
            assert refused_or_usable(path, also_use=False), place


LIMITED = (
    PEAK
    + """
import resource, sys, rue
from rue.models.file import load
import safetensors
base = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (base + 256 * 2**20,) * 2)
for path in sys.argv[1:]:
    try:
        load(path)
        print("model")
    except rue.DataError as error:
        print("refused")
print(peak() // 1024)
"""
)


def test_an_absurd_width_takes_no_memory(files, tmp_path):
    """Widths up to 2³² are possible, so a tiny file may say one; rows that are not there must not be touched."""

    def wide(d):
        def change(head, arrays):
            head["learner"]["d"] = d
            for name in ("v", "r", "table"):
                if f"point.{name}" in arrays:
                    arrays[f"point.{name}.rows"] = np.arange(4, dtype=np.uint32)

        return change

    paths = [
        forge(named(files, name), tmp_path / f"{name}-{d}", wide(d))
        for name in ("ball", "adagrad")
        for d in (2**22, 2**26, 2**30, 2**32 - 1)
    ]
    # Interpreted, because compiling, where it has to be done, takes more memory than is measured here.
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *paths], env=environment, capture_output=True, text=True, check=True
    )
    *said, peak = done.stdout.split()
    assert said == 8 * ["model"]
    bare = subprocess.run([sys.executable, "-c", LIMITED], env=environment, capture_output=True, text=True, check=True)
    assert (
        int(peak) - int(bare.stdout.split()[-1]) < 96 * 1024
    )  # KiB; a table of 2²² rows that was touched would take 128 MiB


@pytest.mark.parametrize(
    "name",
    [
        "point.memory",
        "point.v",
        "point.r",
        "evidence.sums",
        "evidence.S",
        "pool.table",
        "pool.state",
        "pool.radii",
        "pool.rates",
        "pool.largest",
        "names",
        "point.names",
    ],
)
def test_arrays_that_do_not_fit(files, tmp_path, name):
    file = named(files, "ball")
    good = read_container(file)[1][name]
    wrong = [None, good[:0], good.astype(np.float32), good.astype(np.uint32), good[None], np.zeros(2**16)]
    wrong += [good[:-1], np.concatenate([good, good])]
    for value in wrong:
        if value is None or value.dtype != good.dtype or value.tobytes() != good.tobytes() or value.shape != good.shape:
            assert refused_or_usable(forge(file, tmp_path / "m", array(name, value)))
    assert refused_or_usable(forge(file, tmp_path / "m", array("stranger", good)))
    assert refused_or_usable(forge(file, tmp_path / "m", array(name + ".rows", np.array([2**32 - 1], np.uint32))))


@pytest.mark.parametrize(
    "rows", [[0, 1, 2, 4], [3, 2, 1, 0], [0, 1, 1, 2], [0, 1, 2], [[0, 1, 2, 3]], [0, 1, 2, 2**32 - 1], []], ids=str
)
def test_coordinates_out_of_range_or_order(files, tmp_path, rows):
    for kind in (np.uint32, np.uint64):
        path = forge(named(files, "ball"), tmp_path / "m", array("point.v.rows", np.array(rows, dtype=kind)))
        assert refused_or_usable(path)
    odd = array("point.v.rows", np.array([0.0, 1.0, 2.0, 3.0]))
    assert refused_or_usable(forge(named(files, "ball"), tmp_path / "m", odd))


@pytest.mark.parametrize("t", [-1.0, 0.5, math.nan, math.inf, 2.0**60])
def test_impossible_numbers_of_rounds(files, tmp_path, t):
    """The time is an index into `Sequence`: it must never be believed."""
    for file in files:
        memory = read_container(file)[1]["point.memory"].copy()
        memory[0] = t
        assert refused_or_usable(forge(file, tmp_path / "m", array("point.memory", memory)))
        sums = read_container(file)[1]["evidence.sums"].copy()
        sums[0] = t
        assert refused_or_usable(forge(file, tmp_path / "m", array("evidence.sums", sums)))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_weights_are_never_nan(files, tmp_path, bad):
    for file in files:
        name = next(n for n in ("point.v", "point.w", "point.table") if n in read_container(file)[1])
        values = read_container(file)[1][name].copy()
        values.reshape(-1)[0] = bad
        assert "its weights are not finite" in reason(forge(file, tmp_path / "m", array(name, values)))


@pytest.mark.parametrize("scale", [0.0, -0.0, math.nan, math.inf])
def test_a_point_without_a_scale(files, tmp_path, scale):
    memory = read_container(named(files, "ball"))[1]["point.memory"].copy()
    memory[4] = scale
    assert "the scale" in reason(forge(named(files, "ball"), tmp_path / "m", array("point.memory", memory)))


NONSENSE = [
    None,
    [],
    {},
    3,
    "Gradient",
    {"os.system": {"command": "touch /tmp/owned"}},
    {"__import__": ["os"]},
    {"Learner": {}},
    {"Ball": {"radius": 1.0, "centre": []}},
    {"Hinge": {}},
    {"Gradient": {}},
    {"Gradient": None},
    {"Leader": {"name": "x", "loss": {"Square": {}}, "domain": {"Reals": {}}, "intercept": True}},
]


@pytest.mark.parametrize("value", NONSENSE, ids=str)
def test_algorithms_that_are_none(files, tmp_path, value):
    path = forge(named(files, "ball"), tmp_path / "m", setting("learner", "algorithm", value=value))
    assert refused_or_usable(path)


@pytest.mark.parametrize("field", ["name", "loss", "domain", "step", "average", "lambda_", "by_time"])
@pytest.mark.parametrize(
    "value", [*NONSENSE, -1.0, math.nan, [[]], {"Halfspace": {"normal": [1.0], "offset": 0.0}}], ids=str
)
def test_settings_of_the_wrong_kind(files, tmp_path, field, value):
    change = setting("learner", "algorithm", "Gradient", field, value=value)
    refused = refused_or_usable(forge(named(files, "ball"), tmp_path / "m", change))
    harmless = (
        (field == "name" and isinstance(value, str))
        or (field == "lambda_" and value == 3)
        or (field == "by_time")
        or (field == "domain" and value == {"Ball": {"radius": 1.0, "centre": []}})
        or (field == "loss" and value == {"Hinge": {}})
    )
    assert refused or harmless


def test_nesting_and_length_without_end(files, tmp_path):
    deep = "[" * 100_000 + "]" * 100_000
    path = tmp_path / "m"
    assert refused_or_usable(forge(files[0], path, lambda head, arrays: (deep, arrays)))
    text = '{"format":1,"rue":"0","learner":' + deep + "}"
    assert refused_or_usable(forge(files[0], path, lambda head, arrays: (text, arrays)))
    half = {"Halfspace": {"normal": [1.0, 0.0, 0.0, 0.0], "offset": 1.0}}
    many_sets = setting("learner", "algorithm", "Gradient", "domain", value={"Intersection": [half] * 20_000})
    assert refused_or_usable(forge(named(files, "simplex"), path, many_sets))
    inside = half
    for _ in range(150):
        inside = {"Intersection": [inside, half]}
    refused_or_usable(
        forge(named(files, "simplex"), path, setting("learner", "algorithm", "Gradient", "domain", value=inside)), False
    )
    digits = setting("counts", value={"n": 1})
    forged = forge(files[0], path, digits).read_bytes().replace(b'\\"n\\":1', b'\\"n\\":' + b"1" * 9000)
    path.write_bytes(forged)
    assert refused_or_usable(path)
    long = {"history": [{"x": "y" * 1000}] * 20_000}
    assert not refused_or_usable(forge(files[0], path, lambda head, arrays: ({**head, **long}, arrays)))
    path.write_bytes(struct.pack("<Q", 2**62) + b"{" + b" " * 1000)
    assert refused_or_usable(path)
    with open(path, "wb") as file:  # a large hole
        file.write(struct.pack("<Q", LONGEST * 2) + b"{")
        file.truncate(LONGEST * 8)
    assert refused_or_usable(path)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", LONGEST) + b'{"a":' * 1000)
        file.truncate(LONGEST * 2)
    assert refused_or_usable(path)


def test_too_many_arrays(files, tmp_path):
    def change(head, arrays):
        arrays.update({f"x{k}": np.zeros(1) for k in range(5000)})

    assert "arrays that no model has" in reason(forge(files[0], tmp_path / "m", change))


def test_names_given_twice(files, tmp_path):
    def change(head, arrays):
        return write_json(head).replace('"rue":', '"rue":"1.0","rue":', 1), arrays

    assert "a name occurs twice" in reason(forge(files[0], tmp_path / "m", change))


@pytest.mark.parametrize(
    "key", ["learner", "evidence", "labels", "course", "history", "features", "counts", "position"]
)
def test_parts_that_are_missing_or_something_else(files, tmp_path, key):
    path = tmp_path / "m"
    assert f"it has no '{key}'" in reason(forge(files[0], path, lambda head, arrays: (head.pop(key), None)[1]))
    for value in (3, "x", True, [1, 2], [[]], {"x": 1}):
        refused = refused_or_usable(forge(files[0], path, setting(key, value=value)))
        as_it_is = {"history": list, "features": dict, "counts": dict, "position": dict}.get(key)
        assert refused != (type(value) is as_it_is)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"3", b'[["a","b"]]', b'[[-1,"b"]]', b"[[0]]", b"[[0,1]]", b"[0]", b'[[0,"a"],[0.5,"b"]]', b"\xff"],
)
def test_names_of_slots_that_make_no_sense(files, tmp_path, text):
    change = array("names", np.frombuffer(text, dtype=np.uint8))
    assert refused_or_usable(forge(files[0], tmp_path / "m", change))


@pytest.mark.parametrize("text", [b'["a","a"]', b'["a","b","c","d"]', b"[[1]]", b"{}", b"[1,1.0]"])
def test_names_of_features_that_make_no_sense(files, tmp_path, text):
    change = array("point.names", np.frombuffer(text, dtype=np.uint8))
    assert refused_or_usable(forge(named(files, "ball"), tmp_path / "m", change))


JUNK = [None, True, -1, 0, 3, 2**70, 0.5, math.nan, math.inf, "", "x", [], {}, [1.0], {"Ball": {}}]


def leaves(value, at=()):
    yield at
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*at, key))


def test_any_setting_replaced_by_anything(files, tmp_path):
    rng = np.random.default_rng(11)
    for file in files:
        head, _ = read_container(file)
        places = [at for at in leaves(head) if at]
        tries = [(at, junk) for at in places for junk in JUNK]
        chosen = tries if many(0, 1) else [tries[k] for k in rng.choice(len(tries), 120, replace=False)]
        for at, junk in chosen:
            refused_or_usable(forge(file, tmp_path / "m", setting(*at, value=copy.deepcopy(junk))))


def test_any_array_replaced_by_anything(files, tmp_path):
    rng = np.random.default_rng(12)
    for file in files:
        _, arrays = read_container(file)
        for name in arrays:
            for _ in range(many(3, 60)):
                kind = rng.choice(["f8", "u1", "u4", "u8"])
                shape = tuple(rng.integers(0, 7, size=int(rng.integers(1, 4))).tolist())
                shape = arrays[name].shape if rng.random() < 0.5 else shape
                value = np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(kind).itemsize), dtype=kind)
                refused_or_usable(forge(file, tmp_path / "m", array(name, value.reshape(shape))))


def test_writing_and_reading_a_container(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.empty((0, 4)), "c": np.array([1, 2], dtype=np.uint32)}
    write_container(tmp_path / "m", {"format": FORMAT, "x": [1]}, {**arrays, "a": arrays["a"].T.copy().T})
    head, again = read_container(tmp_path / "m")
    assert head == {"format": FORMAT, "x": [1]}
    assert {name: (a.dtype, a.shape, a.tobytes()) for name, a in again.items()} == {
        name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()
    }


def test_loading_imports_nothing_the_file_names(files, tmp_path):
    change = setting("learner", "algorithm", value={"antigravity": {}})
    before = set(sys.modules)
    assert "'antigravity', which this rue does not have" in reason(forge(files[0], tmp_path / "m", change))
    assert set(sys.modules) == before
    assert load_model(files[0]).learner is not None


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_sums_that_cannot_be_negative(files, tmp_path, bad):
    table = read_container(named(files, "adagrad"))[1]["point.table"]
    for column in (1, 2):
        damaged = table.copy()
        damaged[0, column] = bad
        assert "sums of squares" in reason(
            forge(named(files, "adagrad"), tmp_path / "m", array("point.table", damaged))
        )
    for place in (1, 2, 3, 5, 6):  # memory is short of room to be stored by rows here
        memory = read_container(named(files, "ball"))[1]["point.memory"].copy()
        memory[place] = bad
        assert "sums of its steps" in reason(forge(named(files, "ball"), tmp_path / "m", array("point.memory", memory)))


def test_arrays_that_fit_the_settings_but_not_each_other(files, tmp_path):
    def witnesses(head, arrays):
        head["evidence"]["pool"][1] = head["evidence"]["pool"][0] + 1

    def curvature(head, arrays):
        head["evidence"]["curvature"] = 5000
        empty = np.empty(0, dtype=np.uint32)
        arrays.update({"curvature.gram": np.empty((0, 5000)), "curvature.gram.rows": empty})
        arrays.update({"curvature.moment": np.empty(0), "curvature.moment.rows": empty})

    def none(head, arrays):
        head["evidence"]["pool"][2] = 0
        arrays.update(
            {name: arrays[name][..., :0] for name in ("pool.table", "pool.state", "pool.radii", "pool.rates")}
        )

    assert "witnesses do not fit together" in reason(forge(named(files, "ball"), tmp_path / "m", witnesses))
    assert "witnesses do not fit together" in reason(forge(named(files, "ball"), tmp_path / "m", none))
    assert "5000 stands where" in reason(forge(named(files, "box"), tmp_path / "m", curvature))


def test_more_than_this_machine_has(files, tmp_path):
    have = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    d = have // 16 + 1
    if d < 2**32:
        path = forge(named(files, "simplex"), tmp_path / "m", setting("learner", "d", value=d))
        assert f"{d + 1:,} coordinates need" in reason(path)
    path = forge(named(files, "adagrad"), tmp_path / "m", setting("evidence", "size", value=have // 8 + 1))
    assert "GiB, more than this machine has" in reason(path) or have // 8 >= 2**32
