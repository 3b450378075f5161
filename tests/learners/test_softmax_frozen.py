"""What is kept of a mixture of several classes: candidates tried while it learns, weighed, saved and merged."""

import copy
import math

import numpy as np
import pytest

import rue
from rue.errors import DataError
from rue.learners.mixture.layout import COPIED, COPY, DUE, LATEST, SHARES
from rue.learners.softmax.classifier import SoftmaxMixture
from rue.learners.softmax.frozen import preferences, shares_of
from rue.models.file import load, save
from rue.streams import Block


def stream(T=700, d=4, classes=3, seed=0):
    """Gaussian features, and classes that depend on them."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(T, d)), rng.normal(size=(d, classes)) * 2.0
    return X, 1.0 + (X @ W + rng.gumbel(size=(T, classes))).argmax(axis=1)


def alone(learner, member):
    """A copy that predicts as one of its members."""
    one = copy.deepcopy(learner)
    shares = np.zeros(one._point.members.shape[1])
    shares[member] = 1.0
    one._point.members[SHARES] = np.where(shares > 0.0, 1.0, 1e-300)
    one._point.kinds[:] = np.where(shares.reshape(6, -1).any(axis=1), 1.0, 0.0)
    return one


def known(learner, x, c):
    """The probability of class c among the classes that have come."""
    p = learner.predict(x)
    return p[c] / (1.0 - p[0])


@pytest.fixture(scope="module")
def tried():
    """A learner of 500 examples, what it was after 256, and the rows on which copies were tried since."""
    X, y = stream()
    learner = SoftmaxMixture()
    learner.run(X[:256], y[:256])
    then = copy.deepcopy(learner)
    learner.run(X[256:500], y[256:500])
    return learner, then, [(X[t], int(y[t])) for t in range(256, 500, 8)]


def test_candidates_are_charged_with_what_copies_would_have_lost(tried):
    learner, then, rows = tried
    lost, members = learner._point.candidates[LATEST], learner._point.members.shape[1]
    assert learner._point.trial[LATEST] == 8.0 * len(rows)
    for member in (0, 13, 21, 30, 44, 47):
        one = alone(then, member)
        expected = 8.0 * sum(-math.log(known(one, x, c)) for x, c in rows)
        assert lost[member] == pytest.approx(expected, rel=1e-9), member
    assert lost[members] == pytest.approx(8.0 * sum(-math.log(known(then, x, c)) for x, c in rows), rel=1e-9)
    frequencies = then._point.counts / 256.0
    assert lost[members + 1] == pytest.approx(8.0 * sum(-math.log(frequencies[c - 1]) for _, c in rows), rel=1e-12)


def test_the_frozen_model_mixes_the_candidates_by_what_they_lost(tried):
    learner, _, rows = tried
    pool = learner._point
    q, lost = preferences(pool), pool.candidates[: len(COPY)].sum(axis=0)
    lost[-3] = max(lost[-3], shares_of(pool).ravel() @ lost[:-3])
    least, live = lost[:-1].min(), lost[-1]
    calm = 1.0 / (1.0 + 10.0 * max(0.0, least / live - 1.0))
    sharpness = 1.0 / (1.0 / (6.0 + 94.0 * calm) + 1.0 / (0.15 * (learner.t - 256) / 8.0))
    by_hand = np.exp(-sharpness * (lost - least) / max(least, live))
    by_hand[-3] *= math.exp(10.0 * calm)
    by_hand[-2] *= 10.0
    by_hand[-1] = 0.0
    np.testing.assert_allclose(q, by_hand / by_hand.sum(), rtol=1e-9, atol=1e-300)
    frozen, shares = learner.frozen(), shares_of(pool).ravel()
    weights = q[:-3] + q[-3] * shares
    x = rows[0][0]
    chances = sum(w * alone(learner, i).predict(x)[1:] for i, w in enumerate(weights) if w > 1e-12)
    reserve = learner.predict(x)[0]
    constant = (1.0 - reserve) * pool.counts[:3] / pool.counts.sum()
    np.testing.assert_allclose(frozen.predict(x)[1:], chances + q[-2] * constant, rtol=1e-6)
    np.testing.assert_array_equal(frozen.predict_many([x])[0], frozen.predict(x))
    assert frozen.predict(x).sum() == pytest.approx(1.0)
    assert frozen.chosen


@pytest.mark.parametrize("size", [1, 7, 300])
def test_blocks_of_any_size_try_the_same(size):
    """Rows of weight 0 and refused ones are no rounds, wherever blocks end."""
    X, y = stream(T=600)
    X[300], weights = 1e200, np.where(np.arange(600) % 11 == 5, 0.0, 1.0 + np.arange(600) % 3)
    whole, parts = SoftmaxMixture(), SoftmaxMixture()
    whole.run(X, y, weights)
    for begin in range(0, 600, size):
        rows = slice(begin, begin + size)
        if size == 1:
            parts.update(X[begin], y[begin], weight=weights[begin]) if begin != 300 else None
        else:
            parts.run(X[rows], y[rows], weights[rows])
    assert whole.t == parts.t < 560
    assert whole._point.trial[LATEST] > 0.0
    assert whole == parts  # with what copies have lost, to the last bit


def test_what_learns_does_not_depend_on_the_copies(monkeypatch):
    X, y = stream(T=600)
    ours, plain = SoftmaxMixture(), SoftmaxMixture()
    predictions = ours.run(X, y)
    monkeypatch.setattr(type(plain), "_run_and_try", lambda self, *args: self._run_kernel(*args))
    np.testing.assert_array_equal(plain.run(X, y), predictions)


def test_on_a_stream_that_turns_round_the_frozen_model_loses_less():
    """A mixture that follows the day is stale the next: on the rows that follow it is behind what is kept."""
    rng, T = np.random.default_rng(0), 6400
    X = rng.normal(size=(T, 4))
    W = rng.normal(size=(4, 3)) * np.where(np.arange(T) // 200 % 2, -2.0, 2.0)[:, None, None]
    y = 1.0 + (np.einsum("td,tdk->tk", X, W) + rng.gumbel(size=(T, 3))).argmax(axis=1)
    learner = SoftmaxMixture()
    learner.run(X[:3400], y[:3400])
    frozen, labels = learner.frozen(), y[3400:].astype(int)
    playing, kept = (
        -np.log(model.predict_many(X[3400:])[np.arange(labels.size), labels]).mean() for model in (learner, frozen)
    )
    assert kept < 1.05 * math.log(3.0)  # hardly worse than knowing nothing, and nothing can be known
    assert playing > 1.2 * kept
    assert frozen.risk == pytest.approx(kept, rel=0.2)


def test_a_class_that_came_after_the_copies_is_charged_to_nobody():
    X, y = stream(T=400)
    late = np.where((np.arange(400) >= 256) & (np.arange(400) % 2 == 0), 9.0, y)
    learner = SoftmaxMixture()
    learner.run(X, late)
    assert learner._point.trial[LATEST] == 0.0  # every row of the sample is of the new class
    assert not learner.frozen().chosen


def test_saved_with_what_copies_have_lost(tmp_path):
    X, y = stream(T=600)
    words = np.array(["", "a", "b", "c"])[y.astype(int)]
    run = rue.learn(X[:500], words[:500])
    save(run, tmp_path / "m.rue")
    again = load(tmp_path / "m.rue")
    np.testing.assert_array_equal(again.predict(X[500:], as_="probability"), run.predict(X[500:], as_="probability"))
    np.testing.assert_array_equal(run.predict(X[500:]), run.learner.frozen().predict_many(X[500:]))
    assert "if it is frozen now" in str(run.report())
    on = rue.learn(X[500:], words[500:], learner=again)
    assert on.learner == rue.learn(X, words).learner


@pytest.mark.parametrize(("place", "value"), [(DUE, 300.0), (LATEST, -1.0), (-1, 0.5), (-2, 99.0), (-3, 1e6)])
def test_impossible_trials_are_refused(tmp_path, place, value):
    X, y = stream(T=300)
    learner = SoftmaxMixture()
    learner.run(X, y)
    learner._point.trial[place] = value
    save(learner, tmp_path / "m.rue")
    with pytest.raises(DataError, match="frozen copies"):
        load(tmp_path / "m.rue")


def test_parts_that_are_merged_begin_a_period():
    X, y = stream(T=1400)
    base = SoftmaxMixture()
    base.run(X[:400], y[:400])
    parts = [base.copy(), base.copy()]
    for part, rows in zip(parts, (slice(400, 900), slice(900, 1400)), strict=True):
        part.run(X[rows], y[rows])
    merged = rue.learners.merge(base, parts)
    pool = merged._point
    tried = [learner._point.trial[: len(COPY)].sum() for learner in (base, *parts)]
    assert pool.trial[: len(COPY)].sum() == pytest.approx(tried[1] + tried[2] - tried[0])
    assert pool.trial[LATEST] == 0.0
    assert pool.trial[DUE] == 2048.0
    np.testing.assert_array_equal(pool.copies, pool.weights)
    np.testing.assert_allclose(pool.candidates[COPIED, :-3], shares_of(pool).ravel())
    learnt, labels = merged.frozen().predict_many(X), y.astype(int)
    assert -np.log(learnt[np.arange(1400), labels]).mean() < 0.8  # a constant: 1.1


def test_files_of_before_go_on_and_say_that_nothing_was_tried(tmp_path):
    """Format 5 had no copies: they are taken when the next example is learnt."""
    from rue.models.container import read_container, write_container

    X, y = stream(T=700)
    learner = SoftmaxMixture()
    learner.run(X[:500], y[:500])
    save(learner, tmp_path / "new.rue")
    head, arrays = read_container(tmp_path / "new.rue")
    head["format"] = 5
    dropped = ("copies", "copied_lines", "copied_stats", "copied_centres", "copied_counts", "candidates", "trial")
    old = {name: array for name, array in arrays.items() if name.removeprefix("point.").split(".")[0] not in dropped}
    write_container(tmp_path / "old.rue", head, old)
    before = load(tmp_path / "old.rue").learner
    assert before.frozen().untried
    np.testing.assert_array_equal(before.predict_many(X[:9]), learner.predict_many(X[:9]))
    block, out = Block(X[500:], y[500:]), []
    for one in (before, learner):
        out.append(one.run(block.X, block.y))
    np.testing.assert_array_equal(out[0], out[1])
    assert before.frozen().chosen
