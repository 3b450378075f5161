"""A model for every key: each is what `rue.learn` learns from the rows of the key alone, to the last bit."""

import dataclasses
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import rue
from conftest import many
from rue.fleets.packing import Shape, Workbench
from rue.runs.certifying import certificate_of

LEARNERS = {"ogd": lambda: rue.OGD("logistic"), "mixture": lambda: rue.Mixture("logistic")}


def rows_of(rng, rows, d, density, keys):
    """Sparse examples, labels −1 and +1, and the key of each row."""
    X = rng.normal(size=(rows, d)) * (rng.random((rows, d)) < density)
    y = np.where(X.sum(axis=1) + 0.5 * rng.normal(size=rows) > 0.0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    return csr_array(X), y, rng.integers(0, keys, rows)


def assert_alone(fleet, key, X, y, mine, learner, weights=None):
    """The model of a key is that of its own rows, and so are predictions and certificate."""
    own = None if weights is None else weights[mine]
    alone, found = rue.learn(X[mine], y[mine], learner=learner, weights=own, task="classify"), fleet.models[key]
    assert np.array_equal(alone.predictions, fleet.predictions[mine], equal_nan=True)
    assert found.learner == alone.learner
    assert np.array_equal(found.evidence.ledger.sums, alone.evidence.ledger.sums)
    assert (found.risk, found.refused) == (alone.risk, alone.refused) or found.examples == 0
    plain = dataclasses.replace(alone.evidence, digest=None, curvature=None, columns=None)
    for radius in (0.5, 7.0):
        one, other = certificate_of(alone.learner, plain, alone.refused, radius), found.certificate(radius)
        assert other.comparator_loss_at_least == pytest.approx(one.comparator_loss_at_least, rel=1e-12, abs=1e-12)
        assert other.regret_at_most == pytest.approx(one.regret_at_most, rel=1e-12, abs=1e-12)
    assert np.array_equal(fleet.predict(X[mine], by=[key] * int(mine.sum())), alone.predict(X[mine]))


@pytest.mark.parametrize("name", LEARNERS)
@settings(max_examples=many(12, 300))
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(3, 400),
    d=st.integers(1, 90),
    density=st.sampled_from([0.02, 0.3, 1.0]),
    keys=st.integers(1, 9),
    blocks=st.integers(1, 5),
    workers=st.integers(1, 3),
    weighted=st.booleans(),
)
def test_a_key_learns_what_its_rows_alone_teach(name, seed, rows, d, density, keys, blocks, workers, weighted):
    rng = np.random.default_rng(seed)
    X, y, key = rows_of(rng, rows, d, density, keys)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], rows) if weighted else None
    cuts = np.sort(rng.integers(0, rows + 1, blocks - 1)).tolist()
    stream = [
        rue.Block(X[begin:end], y[begin:end], None if weights is None else weights[begin:end])
        for begin, end in zip([0, *cuts], [*cuts, rows], strict=True)
    ]
    fleet = rue.fleet(stream, by=key, learner=LEARNERS[name](), workers=workers, task="classify")
    assert list(fleet.models) == [str(k) for k in dict.fromkeys(key.tolist())]
    for one in np.unique(key)[:3].tolist():
        assert_alone(fleet, one, X, y, key == one, LEARNERS[name](), weights)


@pytest.mark.parametrize("name", LEARNERS)
def test_dense_rows_and_keys_that_go_on_for_long(name):
    """Past the round in which a mixture copies its weights, records grow, and what is frozen is chosen."""
    rng = np.random.default_rng(3)
    X, key = rng.normal(size=(1500, 4)), rng.choice([1, 2, 3], 1500, p=[0.75, 0.2, 0.05])
    y = np.where(0.3 * rng.normal(size=1500) < X @ [1.0, -2.0, 0.5, 0.0], 1.0, -1.0)
    fleet = rue.fleet([rue.Block(X[i : i + 100], y[i : i + 100]) for i in range(0, 1500, 100)], by=key, learner=name)
    for one in (1, 2, 3):
        assert_alone(fleet, one, X, y, key == one, LEARNERS[name]())


@pytest.mark.parametrize("d", [5, 13, 37])
def test_a_frozen_model_has_the_same_bits_however_its_features_are_arranged(d):
    """A fleet holds features in the order in which they came; sums by BLAS differed in the last bit here."""
    for seed in range(4):
        X, y, key = rows_of(np.random.default_rng(seed), 300, d, 0.02, 1)
        fleet = rue.fleet(X, y, by=key, learner=rue.Mixture("logistic"), task="classify")
        assert_alone(fleet, 0, X, y, key == 0, rue.Mixture("logistic"))


def test_descent_for_each_key_against_ten_lines_of_numpy():
    rng = np.random.default_rng(5)
    X, key = rng.normal(size=(300, 3)), rng.integers(0, 20, 300)
    y = rng.choice([-1.0, 1.0], 300)
    learner = rue.OGD("logistic", "ball:2", "sqrt:0.7", intercept=False)
    fleet = rue.fleet(X, y, by=key, learner=learner)
    w, t, wanted = np.zeros((20, 3)), np.zeros(20), np.zeros(300)
    for i, k in enumerate(key):
        wanted[i], t[k] = w[k] @ X[i], t[k] + 1
        w[k] += 0.7 / np.sqrt(t[k]) * y[i] / (1.0 + np.exp(y[i] * wanted[i])) * X[i]
        w[k] *= min(1.0, 2.0 / max(np.linalg.norm(w[k]), 1e-300))
    assert np.allclose(fleet.predictions, wanted, rtol=1e-9, atol=1e-12)
    assert all(np.allclose(fleet.models[k].learner.weights, w[k], rtol=1e-9, atol=1e-12) for k in range(20))


def test_the_table_says_what_the_certificates_of_the_keys_say():
    rng = np.random.default_rng(7)
    X, y, key = rows_of(rng, 600, 12, 0.4, 11)
    for name in LEARNERS:
        fleet = rue.fleet(X, y, by=key, learner=name)
        table = fleet.table(1.5).to_pydict()
        for i, one in enumerate(table["key"]):
            run = fleet.models[one]
            proved, mine = run.certificate(1.5), key == int(one)
            assert table["examples"][i] == run.examples == mine.sum()
            assert table["risk"][i] == run.risk == pytest.approx(np.logaddexp(0, -y * fleet.predictions)[mine].mean())
            assert table["mistakes"][i] == (y * fleet.predictions <= 0)[mine].sum()
            assert table["regret_at_most"][i] == pytest.approx(proved.regret_at_most, rel=1e-12, abs=1e-12)
            assert table["risk_at_least"][i] * run.examples == pytest.approx(
                proved.comparator_loss_at_least, rel=1e-12, abs=1e-12
            )
            best = rue.best_in_hindsight(X[mine], y[mine], loss="logistic", radius=1.5).value if name == "ogd" else 1e9
            assert proved.comparator_loss_at_least <= best + 1e-9


def test_a_key_takes_little_memory():
    """At 10 features and an intercept: at most 1 KB with OGD, and 16 KB with the mixture, however long it learns."""
    sizes = {}
    for name, learner in {
        "ogd": rue.OGD(),
        "classes": rue.Mixture("logistic"),
        "numbers": rue.Mixture("square"),
    }.items():
        bench = Workbench(learner.algorithm, 11, 16)
        sizes[name] = [8 * bench.words(Shape(11, late)) + 4 * 10 for late in (False, True)]
    assert max(sizes["ogd"]) <= 1000
    assert max(sizes["classes"]) <= 16 * 1024
    assert max(sizes["numbers"]) <= 16 * 1024
    rng = np.random.default_rng(1)
    fleet = rue.fleet(
        rng.normal(size=(3000, 10)), np.sign(rng.normal(size=3000)), by=np.arange(3000) % 1000, learner="ogd"
    )
    assert fleet.bytes_per_key <= 1000
    assert fleet.arena.bytes() / 1000 <= 2000  # with the room that is made ahead


def test_rows_without_a_key_and_without_a_label_are_counted():
    rows = [
        {"shop": "a", "x": 1.0, "y": 1},
        {"shop": None, "x": 2.0, "y": 0},
        {"shop": "a", "x": 3.0, "y": None},
        {"shop": "b", "x": 4.0, "y": 0},
    ]
    fleet = rue.fleet(rows, "y", by="shop", learner="ogd")
    assert fleet.counts == {"keyless": 1, "refused": 0, "skipped": 0, "unlabelled": 1, "missing": 0}
    assert np.isnan(fleet.predictions).tolist() == [False, True, False, False]
    assert {key: run.examples for key, run in fleet.models.items()} == {"a": 1, "b": 1}
    assert "1 without a key, 1 unlabelled" in str(fleet.report())


def test_keys_of_any_kind_are_texts():
    import datetime

    X, y = np.ones((4, 1)), [1, -1, 1, 1]
    day = datetime.date(2026, 12, 31)
    for by, names in (
        ([7.0, 8.0, 7.0, 9.5], ["7", "8", "9.5"]),
        (np.array(["x", "", "x", "y"]), ["x", "y"]),
        ([day, day, None, day], ["2026-12-31"]),
        (np.array([3, 3, 3, 3], dtype=np.int8), ["3"]),
    ):
        assert list(rue.fleet(X, y, by=by, learner="ogd").models) == names
    fleet = rue.fleet(X, y, by=[7, 8, 7, 9], learner="ogd")
    assert [key in fleet.models for key in (7, "7", 5)] == [True, True, False]
    with pytest.raises(KeyError):
        fleet.models[5]
    with pytest.raises(rue.DataError, match="there is no model for the key 5"):
        fleet.run(5)


def test_a_row_that_cannot_be_learnt_stops_there_or_is_passed_over():
    X, y = np.ones((6, 2)), np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    X[3, 1] = np.inf
    by = ["a", "b", "a", "b", "a", "b"]
    with pytest.raises(rue.BadExample, match="row 3 .counting from 0.: a feature is inf"):
        rue.fleet(X, y, by=by, learner="ogd")
    fleet = rue.fleet(X, y, by=by, learner="ogd", bad="skip")
    good = np.arange(6) != 3
    assert fleet.counts["skipped"] == 1
    assert np.isnan(fleet.predictions).tolist() == (~good).tolist()
    assert fleet.models["b"].learner == rue.learn(X[[1, 5]], y[[1, 5]], learner="ogd").learner
    assert fleet.models["b"].refused == 1


def test_a_fleet_goes_on_as_if_there_had_been_one_stream():
    X, y, key = rows_of(np.random.default_rng(11), 400, 6, 0.5, 7)
    first = rue.fleet(X[:150], y[:150], by=key[:150], learner="mixture")
    whole, copy = rue.fleet(X, y, by=key, learner="mixture"), first.examples
    on = rue.fleet(X[150:], y[150:], by=key[150:], learner=first)
    assert (first.examples, copy, on.examples) == (150, 150, 400)
    assert all(on.models[one].learner == whole.models[one].learner for one in whole.models)
    assert np.array_equal(on.predictions, whole.predictions[150:])
    assert [entry["examples"] for entry in on.history] == [150, 250]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner": "staged"}, "cannot be learnt for every key"),
        ({"learner": rue.OGD(domain="simplex")}, "whose number of features is fixed"),
        ({"by": "shop"}, "X has none: give a key for each row"),
        ({"by": [1, 2]}, "more rows than keys, which are 2"),
        ({"by": [1, 2, 3, 4, 5]}, "3 rows and 5 keys"),
        ({"workers": 0}, "workers must be a number of threads"),
        ({"y": ["a", "b", "c"]}, "two classes, and here are more"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(settings, message):
    given = {"y": [1, -1, 1], "by": [1, 1, 2], **settings}
    with pytest.raises(rue.RueError, match=message):
        rue.fleet(np.ones((3, 1)), given.pop("y"), **given)


def test_no_key_at_all_is_a_fleet_of_none():
    fleet = rue.fleet(np.ones((2, 1)), [1, -1], by=[None, None], learner="ogd")
    assert (len(fleet), fleet.examples, fleet.counts["keyless"]) == (0, 0, 2)
    assert np.isnan(fleet.risk)
    assert "nothing was learnt" in str(fleet.report())
    assert fleet.predict(np.ones((1, 1)), by=["new"]).tolist() == [0.0]


@pytest.mark.parametrize("learner", ["ogd", "mixture"])
def test_threads_predict_at_once(learner):
    """Each thread copies records onto a workbench of its own; on a common one, predictions were those of other keys."""
    rng = np.random.default_rng(0)
    X, by = rng.normal(size=(2000, 5)), rng.integers(0, 40, 2000)
    shops = rue.fleet(X, np.where(X[:, 0] * (by - 20) > 0, 1.0, -1.0), by=by, learner=learner)
    wanted, points = shops.predict(X, by=by), {key: shops.run(key).learner.point for key in ("1", "7", "30")}
    wrong = []

    def predict():
        wrong.extend(1 for _ in range(40) if not np.array_equal(shops.predict(X, by=by), wanted))

    def look():
        wrong.extend(
            k for _ in range(40) for k, w in points.items() if not np.array_equal(shops.run(k).learner.point, w)
        )

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for work in (predict, predict, predict, look, look)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong
