"""Ways to give examples, extremes, refusals, and state as a value."""

import copy
import functools
import math
import pickle

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import rue
from rue.learners import one_example as intake
from rue.ledger import Silent, open_ledger

TINY = 5e-324


def stream(n=60, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    return X, np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0, 1.0, -1.0)


MAKERS = {
    "ogd": lambda **more: rue.OGD("logistic", "ball:2", **more),
    "svm": lambda **more: rue.SVM(0.1, **more),
    "adagrad": lambda **more: rue.AdaGrad("hinge", **more),
    "adagrad scaled": lambda **more: rue.AdaGrad("logistic", scale="largest", **more),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


# The forms an example may have.


@makers
def test_all_forms_of_an_example_are_one(make):
    X, y = stream()
    names = [f"x{j}" for j in range(5)]
    forms = {
        "dense": list,
        "array": np.array,
        "float32": lambda row: row.astype(np.float32).astype(np.float64),
        "strided": lambda row: np.repeat(row, 2)[::2],
        "pair": lambda row: (np.flatnonzero(row), row[row != 0]),
        "pair, lists": lambda row: (np.flatnonzero(row).tolist(), row[row != 0].tolist()),
        "pair, backwards": lambda row: (np.flatnonzero(row)[::-1], row[row != 0][::-1]),
        "one-row matrix": lambda row: sparse.csr_matrix(row),
        "one-row array": lambda row: sparse.coo_array(row[None, :]),
        "dict": lambda row: dict(zip(names, row, strict=True)),
        "dict, backwards": lambda row: dict(zip(names[::-1], row[::-1], strict=True)),
    }
    X = X.astype(np.float32).astype(np.float64)
    wanted = make().run(X, y)
    for name, form in forms.items():
        learner = make()
        if "backwards" in name and "dict" in name:
            learner.update(dict.fromkeys(names, 0.0), 1.0, weight=0.0)
        found = []
        for row, label in zip(X, y, strict=True):
            found.append(learner.predict(form(row)))
            learner.update(form(row), label)
        assert np.allclose(found, wanted, rtol=1e-12, atol=1e-13), name


def test_dicts_learn_names_as_they_appear_and_predicting_learns_none():
    learner = rue.OGD("square", "ball:5", "fixed:0.1", intercept=False)
    learner.update({"a": 1.0}, 2.0)
    assert learner.predict({"b": 7.0}) == 0.0
    assert learner.predict({"a": 1.0, "b": 7.0}) == learner.predict({"a": 1.0}) == pytest.approx(0.4)
    assert list(learner.names.places) == ["a"]
    learner.update({"c": 2.0, "a": 1.0}, 1.0)
    assert learner.names.places == {"a": 0, "c": 1}
    reference = rue.OGD("square", "ball:5", "fixed:0.1", intercept=False)
    reference.run([[1.0, 0.0], [1.0, 2.0]], [2.0, 1.0])
    assert np.allclose(learner.weights, reference.weights, rtol=1e-15)
    again = pickle.loads(pickle.dumps(learner))
    assert again == learner
    assert again.predict({"c": 1.0}) == learner.predict({"c": 1.0}) != 0.0


def test_numbers_of_every_kind_are_taken_in_dicts_and_lists_are_not():
    learner = rue.AdaGrad()
    learner.update({"a": True, "b": np.float32(1.5), "c": 3, "d": np.int64(2)}, 1)
    for bad in (b"red", [1.0]):
        with pytest.raises(rue.DataError, match="feature 'a' is"):
            learner.update({"a": bad, "b": 0.0, "c": 0.0, "d": 0.0}, 1)
        with pytest.raises(rue.DataError, match="feature 'a' is"):
            learner.predict({"a": bad})


def test_predict_before_anything_is_learnt():
    x = np.ones(3)
    for learner in (rue.OGD(), rue.SVM(), rue.AdaGrad(scale="largest")):
        assert learner.predict(x) == learner.predict({"a": 1.0}) == learner.predict(([5], [1.0])) == 0.0
        assert learner.t == 0 == learner.d
    assert rue.OGD(domain="simplex", intercept=False).predict(np.array([3.0, 0.0, 0.0])) == 1.0


@makers
def test_predict_changes_nothing(make):
    X, y = stream()
    learner = make()
    learner.run(X[:30], y[:30])
    before = pickle.dumps(learner)
    for row in X:
        learner.predict(row)
        learner.predict((np.arange(9), np.ones(9)))
    learner.predict_many(sparse.csr_matrix(np.ones((3, 12))))
    assert pickle.dumps(learner) == before


@makers
def test_bits_do_not_depend_on_blocks(make):
    X, y = stream(5000, seed=3)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], 5000)
    for form in (np.asarray, sparse.csr_matrix):
        whole = make(average="uniform")
        wanted = whole.run(form(X), y, weights)
        for size in (1, 7, 4096):
            cut = make(average="uniform")
            rows = range(0, 600 if size == 1 else 5000, size)
            parts = [cut.run(form(X[k : k + size]), y[k : k + size], weights[k : k + size]) for k in rows]
            found = np.concatenate(parts)
            assert np.array_equal(found, wanted[: found.size])
            if found.size == 5000:
                assert cut == whole


@makers
def test_a_pickle_in_the_middle_changes_no_bit(make):
    X, y = stream(200)
    whole, first = make(average="uniform"), make(average="uniform")
    wanted = whole.run(X, y)
    first.run(X[:77], y[:77])
    for second in (pickle.loads(pickle.dumps(first)), copy.copy(first).copy(), copy.deepcopy(first)):
        assert second == first
        assert np.array_equal(second.run(X[77:], y[77:]), wanted[77:])
        assert second == whole != first


def test_equality_is_of_settings_and_state():
    X, y = stream()
    a, b = rue.OGD("hinge", "ball:2"), rue.OGD(rue.Hinge(), rue.Ball(2))
    assert a == b
    assert a != rue.OGD("hinge", "ball:3")
    assert a != rue.OGD("hinge", "ball:2", intercept=False)
    a.run(X, y)
    assert a != b
    b.run(X, y)
    assert a == b
    assert a != "something else"
    with pytest.raises(TypeError):
        hash(a)


@makers
def test_a_refused_example_leaves_no_names_and_no_width(make):
    learner = make()
    fresh = make()
    for x, y in (({"a": [1.0]}, 1), ({"a": 1.0}, 7), (([9], [math.nan]), 1), (np.ones(3), math.nan)):
        with pytest.raises(rue.DataError):
            learner.update(x, y)
        assert learner == fresh
    learner.update({"a": 1.0}, 1)
    before = learner.copy()
    for x, y in (({"a": 1.0, "b": 2.0}, 7), ({"b": math.inf}, 1), (([9], [1.0]), 0.5)):
        with pytest.raises(rue.DataError):
            learner.update(x, y)
        assert learner == before
    learner.update({"a": 1.0, "b": 2.0}, -1)
    assert list(learner.names.places) == ["a", "b"]


def test_a_dense_row_must_keep_up_with_the_width():
    learner = rue.OGD("hinge", "ball:1")
    learner.update(np.ones(2), 1)
    learner.update(([4], [1.0]), 1)
    with pytest.raises(rue.DataError, match="has 2 features, but the learner has 5"):
        learner.update(np.ones(2), 1)
    with pytest.raises(rue.DataError, match="has 2 features, but the learner has 5"):
        learner.predict(np.ones(2))
    assert learner.predict(np.ones(5)) == pytest.approx(learner.point.sum())


# Extremes.


@makers
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_features_of_1e300_are_refused_or_learnt_but_never_poison(make, form):
    X, y = stream()
    X[::7] *= 1e300
    learner = make(average="uniform")
    p = learner.run(form(X), y)
    assert np.isfinite(learner.point).all()
    assert np.isfinite(learner.average).all()
    assert np.isfinite(learner.predict(np.ones(5)))
    assert np.isfinite(p[1:7]).all()
    run = rue.learn(form(X), y, learner=make())
    assert run.refused == np.isnan(p).sum()
    assert run.examples == 60 - run.refused
    assert math.isfinite(run.risk)


def test_a_refused_example_leaves_no_trace():
    X, y = stream()
    bad = X.copy()
    bad[10] = 1e300
    keep = np.arange(60) != 10
    for make in (MAKERS["ogd"], MAKERS["svm"], MAKERS["adagrad"]):
        a, b = make(average="uniform"), make(average="uniform")
        p = a.run(bad, y)
        assert math.isnan(p[10])
        assert np.array_equal(p[keep], b.run(X[keep], y[keep]))
        assert a == b


@makers
def test_subnormal_features(make):
    X, y = stream()
    for scale in (TINY, 1e-310, 1e-160):
        learner = make()
        assert np.isfinite(learner.run(X * scale, y)).all()
        assert np.isfinite(learner.point).all()


@makers
def test_empty_rows_and_no_features_at_all(make):
    y = np.array([1.0, -1.0, 1.0])
    learner = make()
    p = learner.run(sparse.csr_matrix((3, 4)), y)
    assert np.isfinite(p).all()
    assert not learner.weights.any()
    assert learner.bias != 0.0
    alone = make(intercept=False)
    assert not alone.run(np.zeros((3, 4)), y).any()
    assert make().run(np.empty((3, 0)), y).shape == (3,)
    assert make().run(np.empty((0, 4)), np.empty(0)).shape == (0,)


@makers
def test_dimension_2_to_the_24_costs_what_ten_features_cost(make):
    # O(d) a round would be 3·10^10 steps here and not end before the tests are stopped
    rng = np.random.default_rng(0)
    places = np.sort(rng.choice(2**24, 10, replace=False))
    small = rng.normal(size=(2000, 10))
    y = np.where(small.sum(axis=1) > 0, 1.0, -1.0)
    big = sparse.csr_matrix((small.ravel(), np.tile(places, 2000), np.arange(0, 20_001, 10)), shape=(2000, 2**24))
    a, b = make(average="uniform"), make(average="uniform")
    assert np.array_equal(a.run(big, y), b.run(sparse.csr_matrix(small), y))
    assert np.array_equal(a.weights[places], b.weights)
    c = make(average="uniform")
    for row, label in zip(small[:50], y, strict=False):
        c.update((places, row), label)
    assert c.d == places[-1] + 1


def test_the_scale_is_multiplied_out_before_it_underflows():
    # each projection onto the ball multiplies the scale by about 1/1001: it would underflow after a hundred rounds
    X, y = np.ones((3000, 2)) * np.array([[1.0, 0.0]]), np.ones(3000)
    X[1::2] = [0.0, 1.0]
    learner = rue.OGD("linear", "ball:1", "fixed:1000", intercept=False, average="uniform")
    learner.run(X, y)
    w = np.zeros(2)
    total = np.zeros(2)
    for x in X:
        total += w
        w = w - 1000.0 * x
        w /= max(1.0, np.linalg.norm(w))
    assert np.allclose(learner.point, w, rtol=1e-10)
    assert np.allclose(learner.average, total / 3000, rtol=1e-10)


# Refusals.


@pytest.mark.parametrize(
    ("X", "y", "weights", "row", "words"),
    [
        ([[1.0], [math.nan]], [1, -1], None, 1, "a feature is nan: features must be finite"),
        ([[1.0], [math.inf]], [1, -1], None, 1, "a feature is inf"),
        ([[1.0], [2.0]], [1, 0], None, 1, r"the label 0.0 is not −1 or \+1, which Hinge\(\) needs"),
        ([[1.0], [2.0]], [math.nan, 1], None, 0, "the label"),
        ([[1.0], [2.0]], [1, 1], [1, -2], 1, "the weight"),
        ([[1.0], [2.0]], [1, 1], [math.inf, 1], 0, "the weight"),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_an_unusable_example_stops_with_its_row(form, X, y, weights, row, words):
    learner = rue.OGD("hinge", "ball:1")
    with pytest.raises(rue.BadExample, match=words) as caught:
        learner.run(form(X), y, weights)
    assert caught.value.row == row == learner.t
    assert str(caught.value).startswith(f"row {row} (counting from 0): ")
    reference = rue.OGD("hinge", "ball:1", d=1)
    reference.run(form(X[:row]).reshape(row, 1) if form is np.asarray else form((row, 1)) + form(X)[:row], y[:row])
    assert learner == reference


def test_repeated_and_misplaced_indices():
    learner = rue.OGD("hinge", "ball:1")
    twice = sparse.csr_matrix((np.ones(3), [0, 2, 2], [0, 1, 3]), shape=(2, 3))
    with pytest.raises(rue.BadExample, match="row 1 .*appears more than once"):
        learner.run(twice, [1, 1])
    with pytest.raises(rue.DataError, match="feature 2 appears more than once"):
        learner.update(([2, 0, 2], [1.0, 1.0, 1.0]), 1)
    with pytest.raises(rue.DataError, match="negative"):
        learner.update(([-1], [1.0]), 1)
    with pytest.raises(rue.DataError, match="whole numbers"):
        learner.update(([0.5], [1.0]), 1)
    with pytest.raises(rue.DataError, match="one length"):
        learner.update(([1, 2], [1.0]), 1)
    broken = sparse.csr_matrix(np.eye(3))
    broken.indices[1] = 77
    with pytest.raises(rue.BadExample, match="row 1 .*beyond"):
        rue.OGD("hinge", "ball:1").run(broken, [1, 1, 1])
    damaged = sparse.csr_matrix(np.eye(3))
    damaged.indptr[2] = 1000
    with pytest.raises(rue.BadExample, match="row 1 .*damaged"):
        rue.OGD("hinge", "ball:1").run(damaged, [1, 1, 1])


def test_unsorted_indices_are_sorted():
    X, y = stream(50)
    csr = sparse.csr_matrix(X)
    mixed = csr.copy()
    for i in range(20, 50):
        part = slice(mixed.indptr[i], mixed.indptr[i + 1])
        mixed.indices[part], mixed.data[part] = mixed.indices[part][::-1], mixed.data[part][::-1]
    a, b = rue.SVM(0.1), rue.SVM(0.1)
    assert np.array_equal(a.run(csr, y), b.run(mixed, y))
    assert np.array_equal(a.predict_many(csr), b.predict_many(mixed))


def test_widths_that_do_not_fit():
    learner = rue.OGD("hinge", "ball:1", d=3)
    with pytest.raises(rue.DataError, match="has 2 features, but the learner has 3"):
        learner.update(np.ones(2), 1)
    with pytest.raises(rue.DataError, match="has 4 features, but the learner has 3"):
        learner.run(np.ones((2, 4)), [1, 1])
    with pytest.raises(rue.DataError, match="has 2 features"):
        learner.predict(np.ones(2))
    fixed = rue.OGD("hinge", "simplex")
    fixed.update(([0, 1], [1.0, 1.0]), 1)
    with pytest.raises(rue.DataError, match="cannot grow: say the number"):
        fixed.update(([5], [1.0]), 1)
    with pytest.raises(rue.DataError, match="by position"):
        learner.update(np.ones(3), 1)
        learner.update({"a": 1.0}, 1)
    for x in (np.ones((2, 3)), 3.0):
        with pytest.raises(rue.DataError, match="one dimension"):
            learner.update(x, 1)


def test_labels_and_weights_that_are_no_numbers():
    learner = rue.AdaGrad()
    for _ in range(2):
        with pytest.raises(rue.DataError, match="must be numbers|which Logistic|the weight"):
            learner.update(np.ones(2), "yes")
        with pytest.raises(rue.DataError, match="must be numbers|which Logistic|the weight"):
            learner.update(np.ones(2), 1.0, weight="heavy")
        learner.update(np.ones(2), 1)


def test_indices_beyond_the_matrix_but_inside_spare_room_are_refused():
    learner = rue.OGD("hinge", "ball:10", "sqrt:1")
    learner.run(sparse.csr_matrix(np.ones((2, 20))), [1, -1])
    learner.run(sparse.csr_matrix(np.ones((2, 21))), [1, -1])
    beyond = sparse.csr_matrix((np.ones(1), np.array([30], np.int32), np.array([0, 1], np.int32)), shape=(1, 21))
    for attempt in (lambda: learner.run(beyond, [1.0]), lambda: rue.learn(beyond, [1.0], learner=learner)):
        with pytest.raises(rue.BadExample, match="beyond the matrix's 21 columns"):
            attempt()
    with pytest.raises(rue.BadExample, match="beyond"):
        learner.predict_many(beyond)


def test_arrays_that_contradict_each_other_are_refused():
    short = sparse.csr_matrix(np.ones((10, 5)))
    short.data = short.data[:3]
    with pytest.raises(rue.DataError, match="damaged"):
        rue.OGD("square").run(short, np.ones(10))
    learner = rue.OGD("square")
    block = rue.Block(np.ones((10, 5)), np.ones(10))
    for out, begin in ((np.empty(1), 0), (np.empty(10, np.float32), 0), (np.empty(20)[::2], 0), (np.empty(10), -1)):
        with pytest.raises(rue.DataError, match="run_block: out must be"):
            learner.run_block(block, Silent(0), out, begin)
    assert learner.run_block(block, open_ledger(2), np.empty(10), 0)[0] == 0  # no room in the ledger: nothing entered

    class Boastful:
        shape = (1, 5)

        def __iter__(self):
            yield rue.Block(np.ones((2000, 5)), np.ones(2000))

    assert rue.OGD("square").run(Boastful()).shape == (2000,)
    altered = rue.OGD("hinge", "ball:1", "fixed:1", intercept=False, d=0)
    altered.intercept = True
    assert np.array_equal(altered.run(sparse.csr_matrix((3, 0)), [1, -1, 1]), [0.0, 1.0, 0.0])


def test_a_learner_that_starts_without_features_grows():
    X, y = stream()
    for make in MAKERS.values():
        learner, reference = make(intercept=False, average="uniform"), make(intercept=False, average="uniform")
        learner.run(sparse.csr_matrix((2, 0)), [1, 1], [0.0, 0.0])
        assert np.array_equal(learner.run(sparse.csr_matrix(X), y), reference.run(sparse.csr_matrix(X), y))
        assert np.array_equal(learner.average, reference.average)
    named = rue.Perceptron()
    named.update({}, 1)
    named.update({"a": 1.0}, -1)
    assert named.d == 1


def test_names_and_positions_do_not_mix():
    learner = rue.AdaGrad()
    learner.update({"a": 1.0}, 1)
    for x in (([0, 1], [1.0, 1.0]), np.ones(1)):
        with pytest.raises(rue.DataError, match="by name"):
            learner.update(x, 1)
    with pytest.raises(rue.DataError, match="by name"):
        learner.run(np.ones((2, 3)), [1, 1])


def test_a_shallow_copy_is_a_copy():
    X, y = stream()
    learner = rue.OGD("hinge", "ball:2")
    learner.run(X, y)
    other = copy.copy(learner)
    other.run(X, y)
    assert (learner.t, other.t) == (60, 120)


@rue.parameter
class Half(rue.Ball):
    """A ball cut at 0: its own `onto` must be used, not the ball's shortcut."""

    def onto(self, w, scratch):
        square = 0.0
        for j in range(w.size):
            w[j] = max(0.0, w[j])
            square += w[j] * w[j]
        if square > self.radius * self.radius:
            for j in range(w.size):
                w[j] *= self.radius / math.sqrt(square)
        return 0.0


@rue.parameter
class Short(rue.Domain):
    """Forgets to say that it has two coordinates."""

    c: rue.Vector

    def onto(self, w, scratch):
        for j in range(w.size):
            w[j] = min(w[j], self.c[j])
        return 0.0


def test_sets_of_ones_own():
    X, y = stream()
    learner = rue.OGD("hinge", Half(1.0), "fixed:0.3")
    learner.run(X, y)
    assert learner.point.min() >= 0.0
    with pytest.raises(rue.SettingsError, match="needs a `dimension`"):
        rue.OGD("hinge", Short([1.0, 1.0]), "fixed:0.3").run(X, y)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda X, y: rue.learn(X, y, learner=rue.OGD), "learner must be a learner such as"),
        (lambda X, y: rue.learn([[1.0], [1.0, 2.0]], [1, -1]), "do not form an array"),
        (lambda X, y: rue.learn([[10**400]], [1]), "the features"),
        (lambda X, y: rue.learn(np.ma.masked_equal(X, 0.0), y), "masked"),
        (lambda X, y: rue.learn(X.astype("M8[s]"), y), "real numbers, not datetime64"),
        (lambda X, y: rue.learn(X, y.astype("M8[s]")), "labels must be numbers, booleans or words"),
        (lambda X, y: rue.AdaGrad().update(np.ones(2), "1"), "must be numbers"),
        (lambda X, y: rue.AdaGrad().update(np.array([1j, 2.0]), 1), "real numbers, not complex"),
        (lambda X, y: rue.OGD(intercept="no"), "intercept must be True or False"),
        (lambda X, y: rue.AdaGrad(rate="x"), "rate must be a number"),
        (lambda X, y: rue.certify(X, y, y, loss="zero-one", radius=1), "not convex"),
        (lambda X, y: rue.certify(X, y, y * np.nan, radius=1), "every prediction is NaN"),
        (lambda X, y: rue.certify(X, y, y[:, None], radius=1), "one dimension"),
        (lambda X, y: rue.certify(X, y, y, domain=5), "must be a rue.Domain"),
        (lambda X, y: rue.certify(X, y, ["a"] * 60, radius=1), "predictions must be real numbers"),
        (lambda X, y: rue.certify(X, y, y), "give radius"),
        (lambda X, y: rue.certify(X, y, y[:5], radius=1), "one prediction an example"),
        (lambda X, y: rue.Ball(1).project("abc"), "a point is a list of numbers"),
        (lambda X, y: rue.Ball(1).project(np.eye(2)), "one dimension"),
    ],
)
def test_misuse_is_answered_with_a_sentence(call, words):
    with pytest.raises(rue.RueError, match=words) as caught:
        call(*stream())
    assert "\n" not in str(caught.value)


def test_a_certificate_says_what_it_leaves_out():
    X, y = stream()
    p = np.where(np.arange(60) < 3, np.nan, 0.0)
    assert "(3 examples without a prediction left out)" in str(rue.certify(X, y, p, radius=1))


def test_skipping_counts_each_bad_row_once():
    X, y = stream()
    X[[3, 7, 11]] = np.nan
    for form in (np.asarray, sparse.csr_matrix):
        run = rue.learn(form(X), y, bad="skip", learner=rue.OGD("hinge", "ball:1"))
        assert (run.skipped, run.examples, run.refused) == (3, 57, 0)
        assert np.flatnonzero(np.isnan(run.predictions)).tolist() == [3, 7, 11]
        keep = ~np.isin(np.arange(60), [3, 7, 11])
        assert run.learner == rue.learn(form(X[keep]), y[keep], learner=rue.OGD("hinge", "ball:1")).learner


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: rue.OGD("hinge", "reals"), "theory' needs a bounded domain and Reals"),
        (lambda: rue.OGD("hinge", "reals", "adaptive"), "adaptive' needs a bounded domain"),
        (lambda: rue.OGD("hinge", "reals", "horizon:10"), "horizon' needs a bounded domain"),
        (lambda: rue.OGD("poisson", "ball:1", "horizon:10"), "needs a bound G"),
        (lambda: rue.OGD("zero-one"), "not convex"),
        (lambda: rue.OGD(rue.Indicator(rue.Ball(1))), "is a constraint: give the set as domain=Ball"),
        (lambda: rue.OGD(rue.Regularised(rue.Square(), 0.01), "reals", "strong:0.01"), "can explode"),
        (lambda: rue.OGD(rue.Regularised(rue.Square(), 0.01), "reals"), "can explode"),
        (lambda: rue.OGD("hinje"), "did you mean 'hinge'"),
        (lambda: rue.OGD(3), "loss must be"),
        (lambda: rue.OGD(domain=3), "domain must be"),
        (lambda: rue.OGD(step=3), "step must be"),
        (lambda: rue.OGD(average=3), "average must be"),
        (lambda: rue.OGD(d=-1), "d must be the number of features"),
        (lambda: rue.OGD(d=2.5), "d must be the number of features"),
        (lambda: rue.OGD("square", rue.Interval(0, 1), d=3), "has 1 coordinates"),
        (lambda: rue.OGD("square", rue.Ball(1, [0.0, 1.0]), d=2), "an intercept counts"),
        (lambda: rue.AdaGrad("hinge", "ball:1"), "coordinate by coordinate"),
        (lambda: rue.AdaGrad("hinge", "box:-1,1", scale="largest"), "changes the units"),
        (lambda: rue.AdaGrad(scale="huge"), "scale must be"),
        (lambda: rue.AdaGrad(rate=-1.0), "rate must be positive"),
        (lambda: rue.AdaGrad(beta=-1.0), "beta ≥ 0"),
        (lambda: rue.AdaGrad(rue.Regularised(rue.Hinge(), 0.1)), "use OGD"),
        (lambda: rue.SVM(-1.0), "lambda_ must be positive"),
        (lambda: rue.SVM(0.1, "cubic"), "weighting must be"),
        (lambda: rue.Perceptron(0.0), "must be positive"),
        (lambda: rue.FollowTheLeader("hinge"), "no leader in closed form"),
        (lambda: rue.FollowTheLeader("linear", "reals"), "not on Reals"),
        (lambda: rue.FollowTheLeader("square", "reals", d=3), "in one coordinate, and here are 4"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_built(build, words):
    with pytest.raises(rue.SettingsError, match=words) as caught:
        build()
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_averages_are_refused_where_none_is_kept():
    learner = rue.OGD()
    learner.update(np.ones(2), 1)
    for ask in (
        lambda: learner.average,
        lambda: learner.predict(np.ones(2), average=True),
        lambda: learner.predict_many(np.ones((1, 2)), average=True),
    ):
        with pytest.raises(rue.SettingsError, match="average='uniform'"):
            ask()


def test_repr_and_explain_read_as_one_would_type():
    learner = rue.OGD("hinge", rue.Ball(2), average="uniform")
    assert eval(repr(learner).replace("OGD(", "rue.OGD(", 1), {**vars(rue), "rue": rue}) == learner
    assert "√2·U/(G√t) with U = 2" in learner.explain()
    assert "number of features" in rue.OGD("hinge", "box:-1,1").explain()
    assert "D = 4" in rue.OGD("hinge", "box:-1,1", d=3).explain()
    assert "no step" in rue.FollowTheLeader().explain()
    assert "√Σg_j²" in rue.AdaGrad().explain()


# Names without end.


def murmur3_32(data, seed=0):
    """MurmurHash3-32 as its author describes it, in plain Python."""
    mask, h = 0xFFFFFFFF, seed

    def scrambled(k):
        k = k * 0xCC9E2D51 & mask
        return (k << 15 | k >> 17) * 0x1B873593 & mask

    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        h ^= scrambled(int.from_bytes(data[start : start + 4], "little"))
        h = (h << 13 | h >> 19) & mask
        h = h * 5 + 0xE6546B64 & mask
    if data[whole:]:
        h ^= scrambled(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    return h ^ h >> 16


@pytest.fixture
def few_names(monkeypatch):
    """Eight names with a coordinate of their own, and sixteen coordinates for all the others."""
    monkeypatch.setattr(intake, "OWN_NAMES", 8)
    monkeypatch.setattr(intake, "HASHED_NAMES", 16)


def named_rows(rng, rounds, names):
    for _ in range(rounds):
        chosen = rng.choice(names, size=5, replace=False)
        yield {f"n{j}": float(rng.normal()) for j in chosen}, float(rng.choice([-1, 1]))


def by_hand(x, places):
    """Indices and values of a row of names, as the documentation says: eight by first occurrence, then by hash."""
    values = np.zeros(24)
    for name in x:
        if name not in places and len(places) < 8:
            places[name] = len(places)
    for name, value in x.items():
        values[places[name] if name in places else 8 + murmur3_32(name.encode()) % 16] += value
    used = sorted({places[name] if name in places else 8 + murmur3_32(name.encode()) % 16 for name in x})
    return np.array(used, dtype=np.uint32), values[used]


NAMED = {
    "ogd": lambda: rue.OGD(loss="logistic"),
    "adagrad": lambda: rue.AdaGrad(loss="logistic"),
    "mixture": lambda: rue.Mixture(loss="logistic"),
}


@pytest.mark.parametrize("kind", NAMED)
def test_names_beyond_the_limit_are_hashed(kind, few_names):
    by_name, by_index, places = NAMED[kind](), NAMED[kind](), {}
    for x, y in named_rows(np.random.default_rng(1), 200, 300):
        assert by_name.predict(x) == pytest.approx(by_index.predict(by_hand(x, places)), rel=1e-12, abs=1e-12)
        by_name.update(x, y)
        by_index.update(by_hand(x, places), y)
    assert by_name.names.places == places
    assert by_name.d == 24
    assert np.allclose(by_name.weights[: by_index.d], by_index.weights, rtol=1e-12)


def test_new_names_cost_no_memory_beyond_the_limit(few_names):
    learner, rng = rue.Mixture(loss="logistic"), np.random.default_rng(2)
    sizes = []
    for start in (0, 1000, 100_000):
        for x, y in named_rows(rng, 50, np.arange(start, start + 1000)):
            learner.update(x, y)
        sizes.append(len(pickle.dumps(learner)))
    assert learner.d == 24
    assert len(learner.names.places) == 8
    assert sizes[1] == sizes[2]


@pytest.mark.parametrize("again", ["pickle", "copy", "file"])
def test_hashed_names_go_on_from_what_was_stored(again, few_names, tmp_path):
    learner, whole = rue.Mixture(loss="logistic"), list(named_rows(np.random.default_rng(3), 120, 100))
    for x, y in whole[:60]:
        learner.update(x, y)
    if again == "file":
        rue.save(learner, tmp_path / "m.rue")
        other = rue.load(tmp_path / "m.rue").learner
    else:
        other = pickle.loads(pickle.dumps(learner)) if again == "pickle" else learner.copy()
    for x, y in whole[60:]:
        assert other.predict(x) == learner.predict(x)
        learner.update(x, y)
        other.update(x, y)
    assert other == learner


def test_predicting_and_refused_examples_never_add_names(few_names):
    learner = rue.OGD(loss="square")
    for x, _ in named_rows(np.random.default_rng(4), 3, 5):
        learner.update(x, 1.0)
    for x, _ in named_rows(np.random.default_rng(5), 30, 500):
        learner.predict(x)
    assert learner.d == len(learner.names.places) == 5
    before = learner.copy()
    wide = {f"new{j}": 1.0 for j in range(20)}
    with pytest.raises(rue.DataError):
        learner.update({**wide, "bad": np.inf}, 1.0)
    learner.update(dict.fromkeys(wide, 1e300), 1.0)  # refused: its step is not finite
    assert learner == before
    learner.update(wide, 1.0)
    assert learner.d == 24
    full = learner.copy()
    learner.update({f"other{j}": 1e300 for j in range(20)}, 1.0)
    assert learner == full


def test_names_that_are_equal_share_a_place(few_names):
    learner = rue.OGD(loss="square")
    for j in range(8):
        learner.update({f"n{j}": 1.0}, 1.0)
    for name in (1, 2.5, ("a", 1), "größe", "\ud800", None, b"bytes", 2**70, float("inf")):
        learner.update({name: 1.0}, 5.0)
        assert learner.predict({name: 1.0}) != learner.bias
    learner.update({1: 1.0}, 9.0)
    assert learner.predict({1: 1.0}) == learner.predict({1.0: 1.0}) == learner.predict({True: 1.0})
    assert learner.predict({1: 1.0}) == learner.predict({np.int64(1): 1.0}) == learner.predict({np.float32(1.0): 1.0})


def test_the_limit_is_as_documented():
    assert intake.OWN_NAMES == intake.HASHED_NAMES == 2**20


# Words and missing values in dicts.


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("made", [rue.Mixture, rue.OGD, rue.SoftmaxMixture], ids=lambda made: made.__name__)
def test_dicts_with_words_and_missing_values_are_learnt_as_tables_are(made):
    """As the command line reads a table: `column=word`, and `column=` where a value is missing."""
    rng = np.random.default_rng(0)
    dicts = [
        {
            "size": rng.choice([None, math.nan, rng.normal()], p=[0.1, 0.1, 0.8]),
            "wood": rng.choice(np.array(["oak", "ash", "", None, "3"], dtype=object)),
            "rooms": int(rng.integers(5)),
            "old": bool(rng.integers(2)),
        }
        for _ in range(60)
    ]
    y = [1 + int(x["wood"] == "oak" or (x["size"] or 0.0) > 1.0) for x in dicts]
    y = y if made is rue.SoftmaxMixture else [2.0 * label - 3.0 for label in y]
    named = []
    for x in dicts:
        gone = {name for name, value in x.items() if value is None or value != value or value == ""}
        words = {f"{name}={value}" for name, value in x.items() if isinstance(value, str) and value}
        numbers = {name: float(value) for name, value in x.items() if name not in gone and not isinstance(value, str)}
        named.append(numbers | dict.fromkeys([*words, *(f"{name}=" for name in gone)], 1.0))
    places = {name: j for j, name in enumerate(dict.fromkeys(name for x in named for name in x))}
    X = np.zeros((60, len(places)))
    for i, x in enumerate(named):
        for name, value in x.items():
            X[i, places[name]] = value
    learner, rows = made(), made()
    for x, row, label in zip(dicts, sparse.csr_matrix(X), y, strict=True):
        assert np.allclose(learner.predict(x), rows.predict(row), rtol=1e-9, atol=1e-12)
        learner.update(x, label)
        rows.update(row, label)
    assert set(learner.names.places) == set(places)
    table = rue.learn(pa.Table.from_pylist(dicts), np.array(y), learner=made(), bits=16)
    model = rue.Model(learner)
    assert np.allclose(model.predict(dicts), table.predict(dicts), rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("interpreted")
def test_what_no_feature_can_be_is_refused_in_a_short_sentence():
    for learner in (rue.OGD(), rue.SoftmaxMixture()):
        learner.update({"a": 1.0, "b": 2}, 1)
        before = learner.copy()
        for value, shown in (
            (np.zeros(5000), "'a' is an ndarray of shape (5000,)"),
            ([1] * 5000, "'a' is [1, 1, 1, 1, 1, 1, ...]"),
            (b"x" * 5000, "'a' is b'xxx"),
            (10**5000, "'a' is "),
            (math.inf, "a feature is inf: features must be finite"),
        ):
            for act in (functools.partial(learner.update, y=1), learner.predict):
                with pytest.raises(rue.DataError) as refused:
                    act({"a": value, "b": 2})
                assert shown in str(refused.value)
                assert len(str(refused.value)) < 200
        assert learner == before


def test_an_empty_dense_block_is_learnt_as_such():
    learner = rue.OGD("hinge", d=2)
    block = learner.widen(rue.Block(np.empty((0, 2)), np.empty(0)))
    assert learner.run_block(block, Silent(0), np.empty(0), 0) == (0, "")
