"""Lines of the pool's tables are given out as features come: which ones must matter to nobody."""

import itertools
import os
import sys
import threading

import numpy as np
import pytest
from scipy import sparse

import rue
from rue.learners.mixture.pool import NOTES
from rue.learners.points import state_of
from rue.ledger import add_up, open_ledger
from rue.runs.driver import Driver
from rue.streams import Block
from rue.threads import NICENESS, helpers


def stream(seed, rows=120, features=40, density=0.2):
    """Sparse rows whose later ones have features that never came before, and a few zeros that are written down."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < density)
    X[: rows // 2, features // 2 :] = 0.0
    X = sparse.csr_matrix(X)
    X.data[rng.random(X.nnz) < 0.05] = 0.0
    return X, np.where(rng.random(rows) < 0.5, 1.0, -1.0)


def spread(X, places, width):
    """The same features at other coordinates."""
    moved = sparse.csr_matrix((X.data, np.asarray(places)[X.indices], X.indptr), shape=(X.shape[0], width))
    return moved.sorted_indices()


@pytest.mark.parametrize("width", [50_000, 2**22])
@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_where_features_lie_in_a_wide_space_does_not_matter(loss, width):
    X, y = stream(0)
    places = 7 + width // 50 * np.arange(40)
    near, far = rue.Mixture(loss), rue.Mixture(loss)
    said = near.run(X, y)
    assert far.run(spread(X, places, width), y).tobytes() == said.tobytes()
    assert near.bias == far.bias
    assert far.weights[places].tobytes() == near.weights.tobytes()
    assert np.count_nonzero(far.weights) == np.count_nonzero(near.weights)
    assert far.scales[1:][places].tobytes() == near.scales[1:].tobytes()


def test_a_line_is_given_to_each_feature_that_counts_and_to_no_other():
    X, y = stream(1)
    learner = rue.Mixture()
    learner.run(X, y)
    point, counting = learner._point, sparse.csr_matrix(X)
    counting.eliminate_zeros()
    came = 1 + np.unique(counting.indices)
    assert np.array_equal(np.flatnonzero(point.lines), np.concatenate([[0], came]))
    assert np.array_equal(np.sort(point.lines[point.lines > 0]), np.arange(1, came.size + 2))
    assert point.given[0] == came.size + 1
    for table in (point.weights, point.stats, point.slots):
        assert not table[0].any()
        assert not table[came.size + 2 :].any()


def test_examples_that_change_nothing_are_given_no_line():
    learner = rue.Mixture(d=9)
    learner.update(([0, 2], [1.0, 0.0]), 1.0)
    before = learner._point.given[0]
    learner.update(([3, 4], [1e200, 1.0]), 1.0)  # refused: its square is no number
    learner.update(([5], [1.0]), -1.0, 0.0)
    learner.predict(([6], [1.0]))
    learner.run(sparse.csr_matrix(([1.0], [7], [0, 1]), shape=(1, 9)), [1.0], [0.0])
    assert learner._point.given[0] == before == 2  # the intercept's and one more
    assert not learner._point.stats[0].any()
    learner.update(([6, 7], [1.0, 2.0]), 1.0)
    assert learner._point.given[0] == 4


def test_rows_with_more_features_than_are_noted_at_once():
    rng = np.random.default_rng(2)
    X = sparse.random(30, 3 * NOTES, 0.6, "csr", random_state=3)
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    assert np.diff(X.indptr).min() > NOTES
    places = np.sort(rng.choice(40_000, X.shape[1], replace=False))
    learner, wide = rue.Mixture(), rue.Mixture()
    said = learner.run(X, y)
    assert wide.run(spread(X, places, 40_000), y).tobytes() == said.tobytes()
    assert wide._point.given[0] == np.unique(X.indices).size + 1
    dense = rue.Mixture()
    assert dense.run(X.toarray(), y) == pytest.approx(said, rel=1e-9)


@pytest.mark.parametrize("members", [None, ["mixture", "ogd"]])
def test_a_model_read_again_goes_on_as_it_would_have(tmp_path, members):
    X, y = stream(4)
    X = spread(X, np.sort(np.random.default_rng(5).choice(900, 40, replace=False)), 900)
    whole = rue.Mixture(members=members)
    whole.run(X[:70], y[:70])
    rue.save(whole, tmp_path / "a.rue")
    read = rue.load(tmp_path / "a.rue").learner
    assert read == whole
    rest = whole.run(X[70:], y[70:])
    assert read.run(X[70:], y[70:]).tobytes() == rest.tobytes()
    assert read == whole


def test_a_state_is_the_same_in_whichever_order_lines_were_given():
    X, y = stream(6)
    X = X[:, ::-1].tocsr().sorted_indices()
    grown, known = rue.Mixture(), rue.Mixture(d=40)
    for k in range(0, 120, 5):  # as wide as need be
        part = X[k : k + 5]
        width = int(part.indices.max()) + 1 if part.nnz else 1
        grown.run(sparse.csr_matrix((part.data, part.indices, part.indptr), shape=(part.shape[0], width)), y[k : k + 5])
    known.run(X, y)
    mine, other = (state_of(learner._point, learner.coordinates) for learner in (grown, known))
    assert mine.keys() == other.keys()
    for name, array in other.items():
        assert mine[name].tobytes() == array[: len(mine[name])].tobytes()


# What is done beside the learner.


@pytest.mark.parametrize("learner", ["mixture", "ogd", "ogd:loss=square,domain=ball:2"])
def test_sums_made_beside_the_learner_have_the_bits_of_those_made_in_its_loop(learner):
    X, y = stream(7, rows=300)
    X.data[40] = np.nan
    shuffled = sparse.csr_matrix(X)
    for begin, end in itertools.pairwise(shuffled.indptr):  # in no order
        for column in (shuffled.indices, shuffled.data):
            column[begin:end] = column[begin:end][::-1].copy()
    shuffled.has_sorted_indices = False
    weights = np.random.default_rng(8).choice([0.0, 1.0, 2.5], 300)
    beside, alone = (Driver(learner, bad="skip", witnesses=given, units="raw") for given in ((1.0, 10.0), None))
    for k in range(0, 300, 25):
        for going in (beside, alone):
            going.learn(Block(shuffled[k : k + 25], y[k : k + 25], weights[k : k + 25]))
    assert beside.skipped == alone.skipped == 1
    assert beside.sums.tobytes() == alone.sums.tobytes()
    assert beside.evidence.ledger.S.tobytes() == alone.evidence.ledger.S.tobytes()
    assert np.count_nonzero(alone.evidence.ledger.S) > 20


class Barrier:
    """A loss 1/(1 − p), which is no number at 1."""

    def at_once(self, first, many, values, slopes, p, y):
        with np.errstate(divide="ignore"):
            values[:many], slopes[:many] = 1.0 / (1.0 - p[:many]), 1.0 / (1.0 - p[:many]) ** 2


def test_what_is_not_scored_is_in_no_sum_whatever_the_loss_is_like():
    rng = np.random.default_rng(11)
    X, y, weights = rng.uniform(-1.0, 1.0, (90, 3)), np.ones(90), rng.choice([0.0, 1.0, 2.0], 90)
    p = rng.uniform(-0.9, 0.9, 90)
    X[20, 1], p[20] = np.nan, np.nan
    ledger, scored = open_ledger(3), (weights > 0.0) & ~np.isnan(p)
    add_up.interpreted(Barrier(), ledger, Block(X, y).rows(False), y, weights, p)
    g = weights[scored] / (1.0 - p[scored]) ** 2
    assert pytest.approx(g @ X[scored], rel=1e-12) == ledger.S
    lost = weights[scored] @ (1.0 / (1.0 - p[scored]))
    wanted = [scored.sum(), weights[scored].sum(), lost, (p[scored] <= 0.0).sum(), g @ p[scored]]
    assert ledger.sums.tolist() == pytest.approx(wanted)
    assert 0 < scored.sum() < 80


def test_a_wide_stream_has_a_helper_from_the_block_on_that_makes_it_wide():
    X, y = stream(10, rows=300)
    far = spread(X[150:], 7 + 2000 * np.arange(40), 80_000)
    going, alone = Driver("ogd"), rue.OGD()
    said = [*going.learn(Block(X[:150], y[:150]))]
    assert going.accounts._helper is None
    said += [*going.learn(Block(far, y[150:]))]
    assert going.accounts._helper is not None
    ledger = open_ledger(80_001)
    for block in (Block(X[:150], y[:150]), Block(far, y[150:])):
        alone.run_block(block, ledger, np.empty(150), 0)
    assert going.evidence.ledger.S.tobytes() == ledger.S.tobytes()
    assert going.sums.tobytes() == ledger.sums.tobytes()
    g = np.array([rue.Logistic().slope(p, label) for p, label in zip(said, y, strict=True)])
    wanted = np.concatenate([[g.sum()], far.T @ g[150:]])
    wanted[1:41] += X[:150].T @ g[:150]
    assert pytest.approx(wanted, rel=1e-9, abs=1e-12) == ledger.S


@pytest.mark.skipif(sys.platform != "linux", reason="niceness belongs to threads on Linux alone")
def test_helpers_give_way():
    def nice():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    mine = nice()
    with helpers(2, "test") as pool:
        assert {pool.submit(nice).result() for _ in range(4)} == {min(19, mine + NICENESS)}
    assert nice() == mine


@pytest.mark.parametrize("make", [lambda part: part, sparse.csr_matrix], ids=["dense", "sparse"])
def test_a_stream_may_write_every_block_into_the_same_memory(make):
    rng = np.random.default_rng(9)
    X, y, weights = rng.normal(size=(200, 5)), rng.normal(size=200), rng.random(200)
    room = Block(make(np.ones((20, 5))), np.zeros(20), np.zeros(20))

    def stream():
        for k in range(0, 200, 20):
            into = room.X if isinstance(room.X, np.ndarray) else room.X.data.reshape(20, 5)
            into[:], room.y[:], room.weights[:] = X[k : k + 20], y[k : k + 20], weights[k : k + 20]
            yield room

    how = {"witnesses": (1.0, 10.0), "task": "regress"}
    found, wanted = rue.learn(stream(), maps=None, **how), rue.learn(X, y, weights=weights, maps=None, **how)
    assert found.predictions == pytest.approx(wanted.predictions, rel=1e-9)
    assert found.y.tobytes() == y.tobytes()
    assert found.weights.tobytes() == weights.tobytes()
    assert pytest.approx(wanted.ledger.S, rel=1e-9) == found.ledger.S
    assert found.certificate(10).regret_at_most == pytest.approx(wanted.certificate(10).regret_at_most, rel=1e-9)
