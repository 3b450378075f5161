"""One driver for everybody: the same bits whoever drives, wherever it stops, and whatever becomes of the blocks."""

import numpy as np
import pytest
from scipy import sparse

import rue
from commands import stream
from rue.errors import BadExample, NoRoom
from rue.learners.learner import Learner
from rue.regret.certificates.evidence import open_evidence
from rue.runs.accounts import EvidenceAccounts, NoAccounts
from rue.runs.driver import Driver
from rue.sklearn import OGDClassifier
from rue.streams import Block, read


@pytest.fixture(autouse=True)
def uncompiled(interpreted):
    """The driver is plain Python."""


def reusing(X, y, size):
    """Blocks that are all written into the same memory."""
    X, y = np.asarray(X), np.asarray(y)
    features, labels = np.empty((size, X.shape[1])), np.empty(size)
    for k in range(0, len(y), size):
        rows = min(size, len(y) - k)
        features[:rows], labels[:rows] = X[k : k + rows], y[k : k + rows]
        yield Block(features[:rows], labels[:rows])
        features[:], labels[:] = np.nan, np.nan


def test_everybody_is_driven_to_the_same_bits():
    X, y = stream(120)
    alone = rue.OGD()
    wanted = alone.run(X, y)
    run = rue.learn(X, y, learner=rue.OGD())
    assert run.predictions.tobytes() == wanted.tobytes()
    assert run.learner == alone
    assert rue.trace(rue.OGD(), X, y).predictions.tobytes() == wanted.tobytes()
    assert rue.trace(run, X, y).predictions.tobytes() == wanted.tobytes()
    model = OGDClassifier().fit(X, y)
    assert model.learner_ == alone
    assert model.evidence_.ledger.sums.tobytes() == run.ledger.sums.tobytes()
    assert model.evidence_.ledger.S.tobytes() == run.ledger.S.tobytes()
    (entry,) = rue.race(X, y, learners=[rue.OGD()]).entries
    assert (entry.loss, entry.mistakes) == (run.loss, run.mistakes)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_stopped_after_any_part_and_resumed_is_uninterrupted(kind):
    X, y = stream(90)
    X = kind(X)
    whole = Driver(witnesses=(1.0, 10.0), units="largest", quick=True)
    whole.learn(Block(X, y))
    for cut in (1, 30, 60):
        driver = Driver(witnesses=(1.0, 10.0), units="largest", quick=True)
        driver.begin(y)
        parts = driver.run(read([Block(X[k : k + 1], y[k : k + 1]) for k in range(90)]).reads())
        after = next(part.position.line for part in parts if driver.examples == cut)
        assert after == cut
        baselines = driver.baselines
        driver = Driver.resume(driver.learner, driver.labels, driver.evidence, course=driver.course)
        driver.baselines = baselines
        driver.learn(Block(X[after:], y[after:]))
        assert driver.learner == whole.learner
        assert driver.sums.tobytes() == whole.sums.tobytes()
        assert driver.evidence.pool.stored().keys() == whole.evidence.pool.stored().keys()
        for name, array in whole.evidence.pool.stored().items():
            assert driver.evidence.pool.stored()[name].tobytes() == array.tobytes()
        assert driver.course.t == whole.course.t
        assert driver.baselines.sums.tobytes() == whole.baselines.sums.tobytes()


def test_blocks_may_be_written_over_as_soon_as_the_next_is_asked_for():
    X, y = stream(100)
    for settings in ({"learner": rue.Perceptron()}, {"witnesses": 10.0, "units": "largest"}):
        found, wanted = rue.learn(reusing(X, y, 7), **settings), rue.learn(X, y, **settings)
        assert found.predictions.tobytes() == wanted.predictions.tobytes()
        assert found.y.tobytes() == wanted.y.tobytes()
        assert found.ledger.S.tobytes() == wanted.ledger.S.tobytes()
        assert found.certificate(10.0).regret_at_most == wanted.certificate(10.0).regret_at_most
    found, wanted = (rue.trace(rue.Perceptron(), *data) for data in ((reusing(X, y, 7),), (X, y)))
    assert np.array_equal(found.features, wanted.features)  # B1 speaks of the rows themselves


def test_a_part_ends_before_the_row_that_stops_it():
    X, y = stream(20)
    X[13, 0] = np.inf
    driver = Driver("ogd")
    parts = list(driver.run(read([Block(X[k : k + 5], y[k : k + 5]) for k in range(0, 20, 5)]).reads()))
    assert [len(part.block) for part in parts] == [5, 5, 3]
    assert parts[-1].position.line == 13
    assert driver.stopped.row == 3
    assert driver.examples == 13
    with pytest.raises(BadExample, match=r"row 13 \(counting from 0\)"):
        parts[-1].require_good()
    skipping = Driver("ogd", bad="skip")
    skipping.most_skipped = 1
    assert sum(part.predictions.size for part in skipping.run(read(X, y).reads())) == 20
    assert skipping.skipped == 1
    X[17, 0] = np.nan
    limited = Driver("ogd", bad="skip")
    limited.most_skipped = 1
    *_, last = limited.run(read(X, y).reads())
    assert (last.bad.line, limited.skipped, limited.examples) == (18, 1, 16)


def test_a_bare_driver_keeps_no_accounts_and_refuses_a_wide_block_whole(monkeypatch):
    X, y = stream(10)
    learner = rue.OGD()
    driver = Driver.bare(learner, NoAccounts())
    driver.learn_all(X, y)
    assert driver.learner is learner
    assert learner.t == 10
    assert not driver.baselines.sums[:-1].any()

    def full(self, block):
        raise NoRoom("no room.")

    monkeypatch.setattr(Learner, "widen", full)
    with pytest.raises(NoRoom, match="no room"):
        driver.learn_all(X, y)
    with pytest.raises(BadExample, match=r"row 0 \(counting from 0\): no room"):
        Driver(rue.OGD()).learn_all(X, y)


def test_accounts_without_threads_have_the_bits_of_those_with(monkeypatch):
    monkeypatch.setattr("rue.runs.accounts.LARGE", 3)
    X, y = stream(60, d=8)
    made = {}
    for threads in (True, False):
        learner = rue.OGD(d=8)
        accounts = EvidenceAccounts(open_evidence(learner.loss), learner, threads=threads)
        Driver.bare(learner, accounts).learn_all(X, np.where(y > 0, 1.0, -1.0))
        made[threads] = accounts
    assert made[True]._helper is not None
    assert made[False]._helper is None
    assert made[True].evidence.ledger.S.tobytes() == made[False].evidence.ledger.S.tobytes()
