"""Threads: one learner is for one thread at a time, and never does a second one crash the process."""

import concurrent.futures
import subprocess
import sys
import threading

import numpy as np
import pytest

import rue
from conftest import ROOT, many
from hammering import LEARNERS
from rue.learners import turns


@pytest.mark.parametrize("kind", LEARNERS)
def test_threads_in_one_learner_get_an_exception_and_crash_nothing(kind):
    script = ROOT / "tests/hammering.py"
    run = subprocess.run(
        [sys.executable, str(script), kind, str(many(0.7, 20.0))], capture_output=True, text=True, timeout=900
    )
    assert run.returncode == 0, run.stdout + run.stderr


def rows(n=200, d=4, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, np.where(X[:, 0] > 0.0, 1.0, -1.0)


class Entered(dict):
    """A dict whose values take as long to come as another thread needs to enter the learner."""

    def __init__(self, pairs, entered, leave):
        super().__init__(pairs)
        self.entered, self.leave = entered, leave

    def values(self):
        self.entered.set()
        assert self.leave.wait(60)
        return super().values()


@pytest.fixture
def occupied():
    """A learner that another thread is updating, until the event is set."""
    learner = rue.OGD(loss="logistic")
    learner.update({"a": 1.0, "b": 2.0}, 1.0)
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=learner.update, args=(Entered({"a": 1.0, "c": 2.0}, entered, leave), 1.0))
    thread.start()
    assert entered.wait(60)
    yield learner, leave
    leave.set()
    thread.join()


def test_what_would_change_an_occupied_learner_raises_and_changes_nothing(occupied):
    learner, _ = occupied
    for change in (
        lambda: learner.update({"a": 1.0}, 1.0),
        lambda: learner.run(np.ones((2, 2)), [1.0, -1.0]),
        lambda: learner.widen(rue.streams.Block(np.ones((1, 2)))),
    ):
        with pytest.raises(rue.RueError, match="another thread is using this learner: give each thread a copy"):
            change()
    assert learner.t == 1


def test_predictions_copies_and_files_wait_for_an_occupied_learner(occupied, tmp_path):
    learner, leave = occupied
    expected = rue.OGD(loss="logistic")
    expected.update({"a": 1.0, "b": 2.0}, 1.0)
    expected.update({"a": 1.0, "c": 2.0}, 1.0)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        waiting = [
            pool.submit(learner.predict, {"a": 1.0, "c": 1.0}),
            pool.submit(learner.copy),
            pool.submit(rue.save, learner, tmp_path / "m.rue"),
        ]
        assert not concurrent.futures.wait(waiting, timeout=0.2).done
        leave.set()
        p, copied, _ = [future.result(60) for future in waiting]
    assert p == expected.predict({"a": 1.0, "c": 1.0})
    assert copied == expected == rue.load(tmp_path / "m.rue").learner


def test_waiting_for_ever_ends_with_the_same_sentence(occupied, monkeypatch):
    monkeypatch.setattr(turns, "LONGEST_WAIT", 0.05)
    with pytest.raises(rue.RueError, match="another thread is using this learner"):
        occupied[0].predict({"a": 1.0})


def test_threads_one_after_another_learn_as_one_does():
    X, y = rows()
    alone, shared = rue.Mixture(loss="logistic"), rue.Mixture(loss="logistic")
    for k in range(0, len(y), 20):
        alone.run(X[k : k + 20], y[k : k + 20])
        thread = threading.Thread(target=shared.run, args=(X[k : k + 20], y[k : k + 20]))
        thread.start()
        thread.join()
    assert shared == alone


def test_an_error_or_a_refused_example_leaves_the_learner_free():
    learner = rue.OGD(loss="logistic")
    for x, y in ((np.array([1.0, np.nan]), 1.0), (np.ones(2), 7.0), ("nonsense", 1.0), (np.ones(2), "text")):
        with pytest.raises(rue.RueError):
            learner.update(x, y)
    with pytest.raises(rue.RueError):
        learner.predict("nonsense")
    learner.update(np.ones(2), 1.0)
    with pytest.raises(rue.BadExample):
        learner.run(np.array([[1.0, np.inf]]), [1.0])
    assert np.isfinite(learner.predict(np.ones(2)))


def test_threads_share_a_finished_run():
    X, y = rows(2000)
    run = rue.learn(X, y, learner=rue.Mixture(loss="logistic"), witnesses=(1.0, 10.0), units="largest")
    predictions, certificate = run.predict(X), run.certificate(radius=10.0)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        again = [pool.submit(run.predict, X) for _ in range(20)]
        proofs = [pool.submit(run.certificate, radius=10.0) for _ in range(20)]
        assert all(np.array_equal(future.result(), predictions) for future in again)
        assert all(future.result().regret_at_most == certificate.regret_at_most for future in proofs)
