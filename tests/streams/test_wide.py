"""Indices up to 2³²: memory goes by the features that occur; results are those of the same features numbered from 0.

The reference is the narrow path: the same stream with its columns renumbered by `np.unique`, in arrays as long as the
largest index.
"""

import copy
import json
import pickle
import resource
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import rue
from conftest import many
from rue.errors import BadExample, DataError, NoRoom
from rue.learners import learner as base
from rue.learners.softmax import classifier, multiclass
from rue.memory import memory_limit
from rue.models.container import read_container
from rue.runs.driver import Driver
from rue.streams import Block, numbering
from rue.streams.numbering import Numbering

MIB = 2**20
LAST = 2**32 - 1


def stream(rows=300, features=200, most=6, seed=0):
    """Sparse rows, a score for each, and the features' true indices: increasing, up to the last there is."""
    rng = np.random.default_rng(seed)
    found = [np.sort(rng.choice(features, size=rng.integers(1, most), replace=False)) for _ in range(rows)]
    indices, ends = np.concatenate(found), np.concatenate([[0], np.cumsum([row.size for row in found])])
    X = sparse.csr_matrix((rng.normal(size=indices.size), indices, ends), shape=(rows, features))
    names = np.sort(rng.choice(2**32 - 2, size=features - 1, replace=False))
    return X, X @ rng.normal(size=features), np.append(names, LAST)


def renamed(X, names, width=2**32):
    """The same features at other indices, given in increasing order."""
    wide = sparse.csr_matrix((X.shape[0], width), dtype=np.float64)
    wide.indices, wide.data, wide.indptr = names[X.indices].astype(np.int64), X.data, X.indptr.astype(np.int64)
    return wide


def allocated(work):
    """The most bytes of arrays and objects that work had at once; run it once before, so that it is compiled."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LEARNERS = {
    "ogd on a ball": (lambda: rue.OGD(), "classify", {"units": "largest"}),
    "ogd, averaged, on the reals": (lambda: rue.OGD("hinge", "reals", "sqrt:0.5", average="uniform"), "classify", {}),
    "ogd, regularised": (lambda: rue.OGD(rue.Regularised("logistic", 0.01)), "classify", {}),
    "orthant": (lambda: rue.OGD("hinge", "orthant", "sqrt:0.5"), "classify", {}),
    "adagrad": (lambda: rue.AdaGrad(scale="largest", average="uniform"), "classify", {"witnesses": [1, 10]}),
    "adaptive": (lambda: rue.AdaptiveOGD(), "classify", {"witnesses": [1, 10], "units": "largest"}),
    "perceptron": (lambda: rue.Perceptron(), "classify", {}),
    "svm": (lambda: rue.SVM(0.1), "classify", {}),
    "mixture": (lambda: rue.Mixture(), "classify", {"witnesses": [1, 10], "units": "largest"}),
    "mixture of numbers": (lambda: rue.Mixture("square"), "regress", {}),
    "mixture of learners": (lambda: rue.Mixture(members=["ogd", "adagrad"]), "classify", {}),
    "several classes": (lambda: None, "multiclass", {}),
}


def labels(score, task):
    if task == "regress":
        return score
    return np.where(score > 0.0, 1, -1) if task == "classify" else np.digitize(score, [-1.0, 0.0, 1.0]).astype(str)


# Numbers for features.


@given(st.integers(0, 40), st.lists(st.integers(0, 60) | st.integers(0, LAST), max_size=300), st.integers(0, 300))
def test_features_are_numbered_in_the_order_in_which_they_occur(first, indices, cut):
    table, reference, wanted = Numbering(first), {}, []
    for j in indices:
        wanted.append(j if j < first else reference.setdefault(j, first + 1 + len(reference)))
    given_out = [
        table.places_of(np.array(part, dtype=np.uint32), adding=True) for part in (indices[:cut], indices[cut:])
    ]
    assert np.concatenate(given_out).tolist() == wanted
    assert table.size == first + 1 + len(reference)
    assert table.features().tolist() == [*range(first), -1, *reference]
    for same in (table, copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
        assert same.places_of(np.array(indices, dtype=np.uint32)).tolist() == wanted
    strange = np.setdiff1d(np.array([*range(50, 90), LAST]), [*indices, *range(first)]).astype(np.uint32)
    assert table.places_of(strange).tolist() == [first] * strange.size
    known = table.known
    table.places_of(strange, adding=True)
    table.forget_from(known)
    assert table.known == known
    assert table.places_of(strange).tolist() == [first] * strange.size
    assert table.places_of(np.array(indices, dtype=np.uint32)).tolist() == wanted


def test_many_features_and_those_beyond_the_columns():
    rng = np.random.default_rng(0)
    keys = rng.choice(2**32, size=50_000, replace=False).astype(np.uint32)
    table = Numbering()
    assert np.array_equal(table.places_of(keys, adding=True), 1 + np.arange(keys.size))
    table.forget_from(20_000)
    assert np.array_equal(table.places_of(keys)[:20_000], 1 + np.arange(20_000))
    assert not table.places_of(keys)[20_000:].any()
    assert (table.places_of(keys, width=1000) == numbering.OUTSIDE).sum() == (keys >= 1000).sum()


# The same results as with small indices.


@pytest.mark.parametrize("name", LEARNERS)
def test_huge_indices_change_no_bit_of_a_prediction(name, tmp_path):
    made, task, kept = LEARNERS[name]
    X, score, names = stream()
    y, far = labels(score, task), renamed(X, names)
    near, wide = rue.learn(X, y, learner=made(), **kept), rue.learn(far, y, learner=made(), **kept)
    assert wide.learner.numbering is not None
    assert near.learner.numbering is None
    assert wide.predictions.tobytes() == near.predictions.tobytes()
    assert wide.learner.d == 2**32
    assert wide.learner.t == near.learner.t

    ours, reference = rue.weights_of(wide), rue.weights_of(near)
    assert np.array_equal(ours.indices, np.where(reference.indices < 0, -1, names[reference.indices]))
    assert np.allclose(ours.values, reference.values, rtol=1e-12, atol=0.0)
    assert ours.places.tobytes() == reference.places.tobytes()
    if task != "multiclass":
        near.evidence.digest = None  # which is of narrow streams
        for radius in (None, 3.0):
            certified, expected = wide.certificate(radius), near.certificate(radius)
            assert certified.theorem == expected.theorem
            assert certified.regret_at_most == pytest.approx(expected.regret_at_most, rel=1e-11)
            assert certified.slope_norm == pytest.approx(expected.slope_norm, rel=1e-11)

    rue.save(wide, tmp_path / "wide.rue")
    loaded = rue.load(tmp_path / "wide.rue")
    assert loaded.learner == wide.learner
    average = bool(wide.learner.algorithm.averaging)
    fresh, _, _ = stream(50, seed=7)
    foreign = renamed(fresh, np.where(np.arange(200) % 3, names, names - 1), 2**32)
    expected = near.learner.predict_many(sparse.csr_matrix(fresh.multiply(np.arange(200) % 3 > 0)), average)
    known = wide.learner.numbering.known
    for learner in (wide.learner, loaded.learner):
        assert np.allclose(learner.predict_many(foreign, average), expected, rtol=1e-9, atol=1e-12)
    assert wide.learner.numbering.known == known


@pytest.mark.parametrize("name", ["ogd on a ball", "adagrad", "mixture", "several classes"])
def test_neither_blocks_nor_the_moment_a_stream_turns_wide_matter(name, tmp_path, monkeypatch):
    """Rows of small indices first: in one block, in many, one by one, and with a file in between."""
    made, task, kept = LEARNERS[name]
    monkeypatch.setattr(numbering, "WIDE", 1000)
    monkeypatch.setattr(multiclass, "MANY_FEATURES", 1000)
    X, score, _ = stream(200)
    X = X.tolil()
    X[:120, 100:] = 0.0
    names = np.concatenate([7 * np.arange(100), 2000 + 31 * np.arange(100)])
    y, X = labels(score, task), renamed(sparse.csr_matrix(X), names, 10_000)
    certified = []
    for number, size in enumerate((1000, 61, 13, 1)):
        going = Driver(made(), task=task, **kept)
        going.begin(y)
        for start in range(0, 200, size):
            block = Block(X, y).part(start, start + size).narrowed()
            going.learn(block)
            if start == 61:
                model = rue.Model(going.learner, going.evidence, going.labels)
                rue.save(model, tmp_path / "between.rue")
                found = rue.load(tmp_path / "between.rue")
                assert found.learner == going.learner
                going = Driver.resume(found.learner, found.labels, found.evidence, course=going.course)
        assert going.learner.numbering is not None
        if task == "classify":
            certified.append(going.evidence.certificate(rue.Ball(3.0)).regret_at_most)
        rue.save(rue.Model(going.learner, going.evidence, going.labels), tmp_path / f"{number}.rue")
    heads = [read_container(tmp_path / f"{number}.rue") for number in range(4)]
    for head, arrays in heads[1:]:
        assert head["learner"] == heads[0][0]["learner"]
        assert head["evidence"] == heads[0][0]["evidence"]
        for key in arrays.keys() - {"digest"}:
            assert arrays[key].tobytes() == heads[0][1][key].tobytes(), key
    assert np.allclose(certified, certified[:1], rtol=1e-12)

    learner = going.learner.copy()  # and one by one, by pairs
    by_blocks = going.learner.copy()
    numbers = going.labels.encode(y)
    for i in range(30):
        part = slice(X.indptr[i], X.indptr[i + 1])
        learner.update((X.indices[part], X.data[part]), numbers[i])
    by_blocks.run(Block(X, numbers).first(30).narrowed())
    assert learner == by_blocks


@pytest.mark.parametrize("name", ["ogd, regularised", "adaptive", "mixture", "several classes"])
def test_a_model_file_does_not_depend_on_where_features_are_in_memory(name, tmp_path, monkeypatch):
    made, task, kept = LEARNERS[name]
    X, score, _ = stream(150)
    far, files = renamed(X, 240 * np.arange(200), 50_000), []
    learners = []
    for wide in (1000, 2**22):
        monkeypatch.setattr(numbering, "WIDE", wide)
        monkeypatch.setattr(multiclass, "MANY_FEATURES", wide)
        run = rue.learn(far, labels(score, task), learner=made(), **kept)
        rue.save(run, tmp_path / "model.rue")
        files.append(read_container(tmp_path / "model.rue"))
        assert (run.learner.numbering is None) == (wide > 50_000)
        learners.append(run.learner)
    assert learners[0] == learners[1]
    (head, arrays), (reference, expected) = files
    assert {**head, "history": None} == {**reference, "history": None}
    same = [key for key in expected if key != "digest" and not key.startswith("metrics.groups.")]
    assert all(arrays[key].tobytes() == expected[key].tobytes() for key in same)  # groups are for narrow streams only
    again = rue.load(tmp_path / "model.rue")  # written narrow, read either way
    monkeypatch.setattr(numbering, "WIDE", 1000)
    monkeypatch.setattr(multiclass, "MANY_FEATURES", 1000)
    assert rue.load(tmp_path / "model.rue").learner == again.learner == learners[0]


def test_curvature_of_a_wide_stream_is_that_of_its_features(tmp_path):
    X, score, names = stream(120, 30)
    run = rue.learn(renamed(X, names), score, learner=rue.OGD("square", "ball:5"), curvature=True)
    reference = rue.learn(X, score, learner=rue.OGD("square", "ball:5"), curvature=True)
    assert run.certificate().theorem == "D4"
    least = run.certificate().comparator_loss_at_least
    assert least == pytest.approx(reference.certificate().comparator_loss_at_least, rel=1e-9)
    rue.save(run, tmp_path / "m.rue")
    found = rue.load(tmp_path / "m.rue").evidence.certificate(rue.Ball(5.0))
    assert found.comparator_loss_at_least == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("domain", [rue.Ball(2.0), rue.Simplex(), rue.L1Ball(3.0), rue.Box(-1, 2), rue.Box(1, 2)])
def test_certificates_of_every_set_and_of_shards(domain, monkeypatch):
    """What was numbered by a learner, by `certify`, or not at all, adds up to the same."""
    X, score, _ = stream(150)
    y, far = np.where(score > 0, 1.0, -1.0), renamed(X, 40 * np.arange(200), 8000)
    halves = [(far[:70], y[:70]), (far[70:], y[70:])]
    found = []
    for wides in ((2**22, 2**22), (100, 2**22), (2**22, 100), (100, 100)):
        runs = []
        for wide, half in zip(wides, halves, strict=True):
            monkeypatch.setattr(numbering, "WIDE", wide)
            runs.append(rue.learn(*half, learner=rue.OGD("hinge"), units="largest", witnesses=[1.0, 10.0]))
        both = runs[0].evidence.merged(runs[1].evidence)
        found += [both.certificate(domain, units).regret_at_most for units in ("raw", "largest")]
    assert np.allclose(np.reshape(found, (4, 2)), found[:2], rtol=1e-11)
    p, certified = np.zeros(150), []
    for wide in (100, 2**22):
        monkeypatch.setattr(numbering, "WIDE", wide)
        certified.append(rue.certify(far, y, p, loss="hinge", domain=domain, witnesses=[1.0]).regret_at_most)
    assert certified[0] == pytest.approx(certified[1], rel=1e-11)


def test_explanations_and_audits_of_wide_streams():
    X, score, names = stream(200, 40)
    y, far = np.where(score > 0, 1, -1), renamed(X, names)
    run, near = rue.learn(far, y, learner=rue.OGD()), rue.learn(X, y, learner=rue.OGD())
    pair = names[[3, 5, 39]], [1.0, -2.0, 0.5]
    ours, reference = rue.explain(run, pair), rue.explain(near, ([3, 5, 39], pair[1]))
    assert [part.contribution for part in ours.parts] == [part.contribution for part in reference.parts]
    assert ours.prediction == pytest.approx(reference.prediction)
    assert rue.explain(run, ([17], [1.0])).parts == rue.explain(near, ([], [])).parts
    checked, expected = rue.audit(run, far, y), rue.audit(near, X, y)
    assert checked.passed
    assert len(checked.checks) == len(expected.checks)
    assert checked.regret == pytest.approx(expected.regret, rel=1e-6)
    with pytest.raises(rue.RueError, match="radius"):
        rue.audit(run, far, y, domain="simplex")


# Examples that are no good.


def test_what_a_refused_example_brought_goes_with_it():
    learner = rue.OGD("square", "reals", "fixed:0.1")
    learner.update(([1], [1.0]), 1.0)
    before = learner.copy()
    with pytest.raises(DataError):
        learner.update(([5, LAST], [1.0, np.inf]), 1.0)
    assert learner == before
    learner.update(([5, LAST], [1e200, 1.0]), 1e300)  # refused: its step is no number
    assert learner == before
    assert learner.numbering is None
    learner.update(([7, LAST], [1.0, 2.0]), 1.0)
    known = learner.numbering.known
    with pytest.raises(DataError):
        learner.update(([8, LAST - 1], [1.0, np.nan]), 1.0)
    assert learner.numbering.known == known
    assert learner.predict(([8, LAST - 1], [1.0, 1.0])) == learner.bias


def test_damaged_rows_of_wide_matrices_are_told_apart():
    for damage, why in ((np.array([9, 9]), "more than once"), (np.array([4, 2**32 - 5]), "beyond the matrix")):
        bad = renamed(sparse.csr_matrix(np.ones((3, 2))), np.array([4, 5]), 2**32 - 100)
        bad.indices[2:4] = damage
        run = Driver(rue.OGD(), bad="skip", task="classify")
        out = run.learn(Block(bad, np.array([1, -1, 1])))
        assert np.isnan(out[1])
        assert run.skipped == 1
        assert run.examples == 2
        with pytest.raises(BadExample, match=why):
            rue.OGD().run(bad, [1, -1, 1])
    unsorted = renamed(sparse.csr_matrix(np.array([[1.0, 2.0, 3.0]])), np.array([10, 20, LAST]))
    unsorted.indices, unsorted.data = unsorted.indices[::-1].copy(), unsorted.data[::-1].copy()
    learner, reference = rue.OGD(), rue.OGD()
    learner.run(unsorted, [1.0])
    reference.update(([10, 20, LAST], [1.0, 2.0, 3.0]), 1.0)
    assert learner == reference


def wide_file(path, rows=2000, at=1500, index=LAST, seed=0):
    rng = np.random.default_rng(seed)
    lines = [
        f"{rng.choice([-1, 1])} "
        + " ".join(f"{j}:{x:.3f}" for j, x in zip(sorted(rng.choice(60, 4, False)), rng.random(4), strict=True))
        for _ in range(rows)
    ]
    lines.insert(at, f"1 {index}:1")
    path.write_text("\n".join(lines) + "\n")


def test_a_set_that_needs_every_coordinate_makes_it_a_bad_line(tmp_path, inside):
    data, model, report = tmp_path / "s.svm", tmp_path / "m.rue", tmp_path / "r.json"
    wide_file(data)
    args = "learn", data, "--learner", "ogd", "--domain", "simplex", "--model", model, "--report", report, "-q"
    said = inside(*args, ok=1)
    assert "line 1501" in said.err
    assert json.loads(report.read_text())["examples"] == 1500
    assert rue.load(model).learner.t == 1500
    inside(*args, "--bad", "skip")
    assert json.loads(report.read_text())["examples"] == 2000
    assert json.loads(report.read_text())["skipped"] == 1
    wide_file(data, at=0)
    inside(*args, "--bad", "skip")
    assert json.loads(report.read_text())["skipped"] == 1
    assert rue.load(model).learner.t == 2000
    assert "GiB" in inside(*args, ok=1).err


@pytest.mark.parametrize("name", ["ogd on a ball", "mixture", "several classes"])
def test_rows_that_memory_cannot_hold_are_passed_over(name, monkeypatch):
    """The limit is made small: from some row on, those with a new feature are refused, the others learnt."""
    made, task, kept = LEARNERS[name]
    X, score, names = stream(300, 3000)
    y, far = labels(score, task), renamed(X, np.unique(np.append(names, np.arange(10**7, 10**7 + 3000)))[-3000:])
    whole = rue.learn(far[:1], y[:1], learner=made(), task=task)
    each = whole.learner._bytes_per_coordinate()
    for module in (base, classifier):
        monkeypatch.setattr(module, "memory_limit", lambda: 700 * each)
    with pytest.raises(DataError, match=r"row .*GiB.*--bits"):
        rue.learn(far, y, learner=made(), task=task)
    run = rue.learn(far, y, learner=made(), task=task, bad="skip", **kept)
    scored = np.isfinite(run.predictions)
    assert run.skipped == (~scored).sum() > 50
    assert run.examples == scored.sum() > 100
    assert run.learner._point.size() <= 700
    monkeypatch.undo()
    reference = rue.learn(far[scored], y[scored], learner=made(), task=task, **kept)
    if task != "multiclass":  # whose classes come in another order
        assert reference.predictions.tobytes() == run.predictions[scored].tobytes()


def test_a_limit_of_the_process_counts():
    code = "from rue.memory import memory_limit; print(memory_limit())"
    limit = 3 * 2**30

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-c", code], preexec_fn=limited, capture_output=True, check=True, timeout=120
    )
    assert int(done.stdout) == min(limit, memory_limit())


def test_arrays_of_all_coordinates_are_refused_in_a_sentence():
    learner = rue.OGD()
    learner.update(([LAST], [1.0]), 1.0)
    if memory_limit() < 2**35:
        for name in ("point", "weights"):
            with pytest.raises(NoRoom, match="GiB"):
                getattr(learner, name)
    assert learner.bias != 0.0
    learner = rue.AdaGrad(scale="largest")
    learner.update(([5_000_000], [2.0]), 1.0)
    assert learner.weights.size == 5_000_001
    assert np.flatnonzero(learner.scales).tolist() == [0, 5_000_001]


# Memory, as NumPy and Python ask for it.


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("index", [30_000_000, LAST])
def test_three_features_take_the_memory_of_three(name, index, tmp_path):
    made, task, kept = LEARNERS[name]
    X, score, _ = stream(60, 3, 3)
    y, far = labels(score, task), renamed(X, np.array([2, 1000, index]), index + 1)

    def work():
        run = rue.learn(far, y, learner=made(), task=task, **kept)
        rue.save(run, tmp_path / "m.rue")
        model = rue.load(tmp_path / "m.rue")
        model.learner.predict_many(far)
        rue.weights_of(model)
        rue.explain(model, ([2, index], [1.0, 1.0]))
        if task != "multiclass":
            run.certificate()
        learner = made() or rue.SoftmaxMixture()
        for label in run.labels.encode(y)[:5]:
            learner.update(([2, index], [1.0, 0.5]), label)
            learner.predict(([5, index], [1.0, 0.5]))
        pickle.loads(pickle.dumps(learner.copy()))

    work()
    assert allocated(work) < 16 * MIB
    assert (tmp_path / "m.rue").stat().st_size < 300_000


def test_a_narrow_model_reads_wide_data_in_little_memory():
    X, score, names = stream(50)
    y, far = np.where(score > 0, 1, -1), renamed(X, names)
    for made in (rue.Mixture, rue.OGD, rue.SoftmaxMixture):
        learner = made()
        learner.run(X[:, :20].tocsr(), np.abs(y))
        expected = learner.predict_many(sparse.csr_matrix((50, 20)))
        learner.predict_many(far)
        assert allocated(lambda learner=learner: learner.predict_many(far)) < 4 * MIB
        assert np.allclose(learner.predict_many(far), expected)
        assert learner.numbering is None


@pytest.mark.parametrize("bits", [24, 28, 31])
def test_the_program_on_slots_and_indices_without_end(bits, tmp_path, inside):
    """Learn, resume, predict, inspect, weigh and certify: CSV, VW and svmlight."""
    rng = np.random.default_rng(0)
    rows = [(rng.integers(2), rng.integers(10), rng.random()) for _ in range(200)]
    (tmp_path / "t.csv").write_text("y,c,x\n" + "".join(f"{y},word{c},{x:.3f}\n" for y, c, x in rows))
    (tmp_path / "t.vw").write_text("".join(f"{2 * y - 1} | w{c} {10**9 + c}:{x:.3f}\n" for y, c, x in rows))
    (tmp_path / "t.svm").write_text("".join(f"{2 * y - 1} {c + 1}:1 {2**bits - 1}:{x:.3f}\n" for y, c, x in rows))
    given = {"csv": ("--target", "y", "--bits", bits), "vw": ("--bits", bits), "svm": ()}
    model, out = tmp_path / "m.rue", tmp_path / "p.csv"
    for kind, options in given.items():
        data = tmp_path / f"t.{kind}"

        def work(data=data, options=options):
            inside("learn", data, *options, "--linear", "--model", model, "--predictions", out, "-q")
            inside("learn", data, "--resume", model, "--model", tmp_path / "again.rue", "-q")
            inside("predict", model, data, "-o", tmp_path / "q.csv")
            inside("inspect", model)
            inside("weights", model)
            radius = "--radius", "10", "--witnesses", "1,10", "--units", "largest"
            inside("certify", data, *options, "--predictions", out, "--loss", "logistic", *radius)

        work()
        assert allocated(work) < 64 * MIB
        found = rue.load(model)
        assert found.learner.numbering is not None
        assert found.learner.numbering.known <= 23
        assert rue.load(tmp_path / "again.rue").learner.t == 400


@pytest.mark.parametrize("maps", [[], ["--maps"]])
def test_several_classes_take_the_memory_of_the_features_in_use(maps, tmp_path, inside):
    """Forty classes of a small table, in 2²⁰ slots: 10 GB before, and over maps 1 GB."""
    rng = np.random.default_rng(0)
    rows = [(rng.integers(40), rng.integers(10), rng.random()) for _ in range(400)]
    (tmp_path / "t.csv").write_text("y,c,x\n" + "".join(f"k{y},word{c},{x:.3f}\n" for y, c, x in rows))
    work = lambda: inside("learn", tmp_path / "t.csv", "--target", "y", "--model", tmp_path / "m.rue", "-q", *maps)  # noqa: E731
    work()
    assert allocated(work) < 64 * MIB
    assert allocated(lambda: rue.load(tmp_path / "m.rue")) < 64 * MIB
    assert rue.load(tmp_path / "m.rue").learner.classes == 40


PROGRAM = """
import resource, sys
limit = 3 * 2**30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
from rue.cli.app import main
sys.argv[0] = "rue"
main()
"""


def test_the_line_that_ended_a_run_is_learnt_under_a_limit_of_memory(tmp_path):
    """A real process, which the system refuses what it used to ask for; stopped by a checkpoint and gone on with."""
    data = tmp_path / "s.svm"
    wide_file(data, 20_000, 15_000)
    model, check = str(tmp_path / "m.rue"), str(tmp_path / "c.rue")

    def program(*args):
        command = [sys.executable, "-c", PROGRAM, *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-800:]
        return done

    program(
        "learn", data, "--model", model, "--checkpoint", check, "--every", 1000, "--report", tmp_path / "r.json", "-q"
    )
    assert json.loads((tmp_path / "r.json").read_text())["examples"] == 20_001
    program("predict", model, data, "-o", tmp_path / "p.csv")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 20_002
    assert "4,294,967,296 features" in program("inspect", model).stdout


@pytest.mark.parametrize("name", ["ogd on a ball", "mixture"])
def test_random_streams_numbered_and_not(name, monkeypatch):
    made, task, _ = LEARNERS[name]
    for seed in range(many(3, 100)):
        rng = np.random.default_rng(seed)
        X, score, _ = stream(60, 80, seed=seed)
        far, y = renamed(X, np.sort(rng.choice(3000, 80, replace=False)), 3000), labels(score, task)
        found = []
        for wide in (int(rng.integers(1, 3000)), 2**22):
            monkeypatch.setattr(numbering, "WIDE", wide)
            learner, outs, start = made(), [], 0
            while start < 60:
                stop = start + int(rng.integers(1, 30))
                outs.append(learner.run(Block(far, y).part(start, stop).narrowed()))
                start = stop
            found.append((np.concatenate(outs).tobytes(), learner))
        assert found[0][0] == found[1][0]
        assert found[0][1] == found[1][1]
