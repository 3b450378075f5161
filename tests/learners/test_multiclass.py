"""More than two classes: softmax members, their mixture, classes that come late, and the way through the house."""

import csv
import io
import itertools
import json
import math
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import rue
from conftest import many
from rue.errors import DataError, NoRoom, SettingsError
from rue.learners import learner as learner_module
from rue.learners.mixture.layout import LOSSES
from rue.learners.points import state_of
from rue.learners.softmax import classifier as classifier_module
from rue.learners.softmax.classifier import SoftmaxMixture
from rue.learners.softmax.layout import NARROW
from rue.learners.softmax.multiclass import LogLoss
from rue.models.file import load, save
from rue.runs.baselines import Baselines
from rue.runs.driver import Driver
from rue.streams import Block, read

RATES = [np.geomspace(2.0**-9, 2.0**5, 8)] * 4 + [np.geomspace(2.0**-6, 2.0, 8)] * 2


def stream(T=200, d=6, classes=4, seed=0):
    """Features of very different size and centre, and a class that depends on them."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(T, d))
    scores = Z @ rng.normal(size=(d, classes)) * 2.0 + rng.gumbel(size=(T, classes))
    X = Z * 10.0 ** rng.integers(-3, 4, d) + rng.normal(size=d)
    return X, 1.0 + scores.argmax(axis=1)


def softmax(scores):
    e = np.exp(scores - scores.max(axis=0))
    return e / e.sum(axis=0)


def implicit(z, a):
    """The s for which z + s minimises a·ln(1 + e^−q) + ½(q − z)²: s(1 + e^{z + s}) = a."""
    low, high = 0.0, a
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle * (1.0 + math.exp(min(z + middle, 700.0))) < a else (low, middle)
    return low


def reference(X, y, weights=None, share=False):
    """Every round in plain NumPy: the mixture's scores, and what each member lost; for features that are never 0.

    With `share` after round t a member's weight v becomes (1 − α)v + α/K, α = 1/(t + 1); for weights of 1 only.
    """
    T, d = X.shape
    C, D, R = int(y.max()), d + 1, 8
    X = np.column_stack([np.ones(T), X])
    weights = np.ones(T) if weights is None else weights
    W = np.zeros((6, R, C, D))
    sums = np.zeros((4, C, D))
    A = [np.eye(D), np.eye(D)]
    lost, out, shared = np.zeros((6, R)), [], np.full((6, R), 1.0 / (6 * R))
    seen, since = np.zeros(C, dtype=bool), 0
    for t in range(T):
        x, c, w = X[t], int(y[t]) - 1, weights[t]
        past = X[: t + 1]
        root, first, largest = np.sqrt((past**2).mean(axis=0)), np.abs(X[0]), np.abs(past).max(axis=0)
        deviation = past.std(axis=0)
        z = np.where(deviation > 1e-9, (x - past.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0), 0.0)
        z[0] = 1.0
        seen_as = [x / root, x / np.maximum(first, 0.001 * largest), x / largest, z, z, z]
        P = np.zeros((6, R, C))
        if seen.any():
            for k in range(6):
                P[k][:, seen] = softmax(np.clip(W[k][:, seen] @ seen_as[k], -20.0, 20.0).T).T
        v = np.exp(-(lost - lost.min()) / max(weights[:t].max(initial=0.0), 1e-300)) if t else np.ones((6, R))
        v, before = (shared if share else v), lost.copy()
        mixed = (v[..., None] * P).sum(axis=(0, 1)) / v.sum()
        within = (v[..., None] * P).sum(axis=1) / v.sum(axis=1)[:, None]
        reserve = 1.0 / (1.0 + since) ** 2
        if seen[c]:
            p = (1.0 - reserve) * mixed[c]
            out.append(p if mixed[c] > np.delete(mixed, c).max() else -p)
            lost -= w * np.log((1.0 - reserve) * P[..., c])
        else:
            out.append(-reserve / (1 + seen.sum()))  # any of the names that it may have among those known
            lost -= w * math.log(-out[-1])
            seen[c], since = True, 0
        shared = shared * np.exp(before - lost)
        shared = shared / shared.sum() * (1.0 - 1.0 / (t + 2)) + 1.0 / (t + 2) / (6 * R)
        since += 1
        e_y, scores = np.eye(C)[c], np.stack([np.clip(W[k] @ seen_as[k], -20.0, 20.0) for k in range(6)])
        for k in range(6):
            if k == 1:
                sums[k] += w * np.outer(within[k] * (1.0 - within[k]), seen_as[k] ** 2)
                F = seen_as[k] / (1.0 + sums[k])
            elif k < 4:
                sums[k] = (0.99 if k == 2 else 1.0) * sums[k] + (w * np.outer(within[k] - e_y, seen_as[k])) ** 2
                F = seen_as[k] / (1.0 + np.sqrt(sums[k]))
            else:
                F = np.tile(np.linalg.solve(A[k - 4] * (1.0, 0.999)[k - 4], seen_as[k]), (C, 1))
            along = F @ seen_as[k]
            others = np.flatnonzero(seen & (e_y == 0.0))
            for i, r in enumerate(RATES[k]):
                part = P[k, i] * (e_y == 0.0)  # of the others, in which share each goes down
                part = part / part.sum() if others.size else part
                a = along[c] + part**2 @ along
                against = np.logaddexp.reduce(scores[k, i, others]) if others.size else 0.0
                s = implicit(scores[k, i, c] - against, w * r * a)
                W[k, i] += s / a * (e_y - part)[:, None] * F
        for which, left in enumerate((1.0, 0.999)):
            h = w * (within[4 + which] * (1.0 - within[4 + which])).sum() / seen.sum()
            A[which] = left * A[which] + h * np.outer(z, z)
    return np.array(out), lost


@pytest.mark.parametrize("share", ["1/t", None])
def test_every_member_is_what_ten_lines_of_numpy_say(share, interpreted):
    X, y = stream(T=80)
    learner = SoftmaxMixture(share=share)
    scores = learner.run(X, y)
    expected, lost = reference(X, y, share=share is not None)
    np.testing.assert_allclose(scores, expected, rtol=1e-2, atol=1e-4)  # implicit steps are solved to 2e-4 on average
    np.testing.assert_allclose(learner._point.members[LOSSES], lost.reshape(-1), rtol=2e-3, atol=1e-2)


def test_weighted_rounds_too(interpreted):
    X, y = stream(T=50, seed=3)
    weights = np.random.default_rng(0).choice([0.25, 1.0, 3.0], 50)
    expected, _ = reference(X, y, weights)
    np.testing.assert_allclose(SoftmaxMixture(share=None).run(X, y, weights), expected, rtol=1e-2, atol=1e-4)


def test_the_gradient_is_that_of_the_log_loss():
    rng = np.random.default_rng(0)
    W, x, y, eps = rng.normal(size=(4, 3)), rng.normal(size=3), 2, 1e-6
    gradient = np.outer(softmax(W @ x) - np.eye(4)[y], x)
    for place in np.ndindex(4, 3):
        moved = W.copy()
        moved[place] += eps
        slope = (-math.log(softmax(moved @ x)[y]) + math.log(softmax(W @ x)[y])) / eps
        assert gradient[place] == pytest.approx(slope, abs=1e-5)


@settings(max_examples=many(12, 200))
@given(st.integers(0, 2**32), st.integers(2, 6), st.sampled_from([None, 1.0, 7.0]))
def test_the_mixture_loses_at_most_ln_k_more_than_any_member(seed, classes, heaviest):
    rng = np.random.default_rng(seed)
    X, y = stream(T=300, d=3, classes=classes, seed=seed)
    if seed % 2:  # an adversary's: the class turns round halfway
        y[150:] = classes + 1 - y[150:]
    weights = None if heaviest is None else np.append(heaviest, rng.uniform(0.0, heaviest, 299))
    learner = SoftmaxMixture(share=None)
    losses = -np.log(np.abs(learner.run(X, y, weights)))
    total = losses.sum() if weights is None else weights @ losses
    lost = learner._point.members[LOSSES]
    assert total <= lost.min() + (heaviest or 1.0) * math.log(lost.size) + 1e-6
    assert total >= lost.min() - 1e-6 or seed % 2  # and it does not gain more than mixing can


# Classes that come during the stream.


def test_what_a_new_class_costs():
    y = np.array([1, 1, 1, 2, 2, 1, 1, 1, 3, 1, 2, 3.0])
    losses = -np.log(np.abs(SoftmaxMixture(intercept=False).run(np.zeros((12, 2)), y)))
    expected, since, seen = [], 0, set()
    for label in y:
        reserve = 1.0 / (1 + since) ** 2
        known = len(seen) if label in seen else len(seen) + 1
        expected.append(-math.log((1.0 - reserve if label in seen else reserve) / known))
        since = 1 if label not in seen else since + 1
        seen.add(label)
    np.testing.assert_allclose(losses, expected, rtol=1e-12, atol=1e-12)
    assert losses[3] == pytest.approx(2.0 * math.log(4.0) + math.log(2.0))  # after three rounds, one of two names


@pytest.mark.parametrize(("classes", "rows"), [(40, 400), (12, 60), (3, 300)])
def test_noise_looks_no_better_than_the_constant_that_knows_all_names(interpreted, classes, rows):
    rng = np.random.default_rng(rows)
    words = np.array([f"word {c}" for c in rng.integers(0, classes, rows)])
    run = rue.learn(rng.normal(size=(rows, 2)), words)
    counts = np.unique(words, return_counts=True)[1]
    assert run.loss > counts @ np.log(rows / counts)
    new = np.sort(np.unique(words, return_index=True)[1])
    reserves = [1.0 / (1.0 + since) ** 2 for since in np.diff(new, prepend=0)]
    names = run.losses[new] + np.log(reserves)  # what is charged beyond "a class never seen before comes"
    np.testing.assert_allclose(names, np.log(np.arange(1, counts.size + 1)), atol=1e-12)
    assert run.loss == pytest.approx(run.losses.sum(), rel=1e-12)
    assert min(member.loss for member in run.members.members) > counts @ np.log(rows / counts)


def test_the_reserve_costs_less_than_ln_2_however_long_nothing_new_comes():
    losses = -np.log(np.abs(SoftmaxMixture().run(np.ones((3000, 1)), np.ones(3000))))
    assert losses.sum() < math.log(2.0)
    assert losses.sum() > math.log(2.0) - 0.001


def test_a_class_that_comes_late_is_learnt():
    X, y = stream(T=1200, d=4, classes=3)
    X[1000:, 0] += np.where(np.arange(200) % 2, 8.0 * X[:, 0].std(), 0.0)
    y[1000:] = np.where(np.arange(200) % 2, 4.0, y[1000:])
    scores = SoftmaxMixture().run(X, y)
    assert abs(scores[1001]) == pytest.approx(1.0 / 1001**2 / 4.0, rel=0.05)
    assert (scores[1100:][y[1100:] == 4.0] > 0.0).mean() > 0.9


def test_probabilities_add_up_and_numbers_may_be_left_out():
    X, y = stream(classes=3)
    learner = SoftmaxMixture()
    assert learner.predict(X[0]).tolist() == [1.0]
    learner.run(X, np.where(y == 2.0, 7.0, y))
    p = learner.predict_many(X)
    assert p.shape == (200, 8)
    assert learner.classes == 7
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p[:, [2, 4, 5, 6]] == 0.0).all()
    assert (p[:, [0, 1, 3, 7]] > 0.0).all()
    np.testing.assert_array_equal(learner.predict(X[3]), p[3])


def test_the_probabilities_of_a_run_are_those_before_each_answer(interpreted):
    X, y = stream(T=60, classes=5)
    X[17, 2] = np.nan
    run = rue.learn(X, y, task="multiclass", bad="skip", learner=SoftmaxMixture())
    learner, expected = SoftmaxMixture(), np.zeros((60, 5))
    for t, (x, label) in enumerate(zip(X, run.y, strict=True)):
        if np.isfinite(x).all():
            known = learner.predict(x)[1:]
            expected[t, : known.size] = known
            learner.update(x, label)
        else:
            expected[t] = np.nan
    np.testing.assert_array_equal(run.probabilities, expected)
    first = np.sort(np.unique(y, return_index=True)[1])
    again = np.setdiff1d(np.arange(60), [17, *first])
    own = run.probabilities[again, run.y[again].astype(int) - 1]
    np.testing.assert_array_equal(own, np.abs(run.predictions[again]))
    assert rue.learn(X[:9], np.sign(X[:9, 0])).probabilities is None


@pytest.mark.parametrize("notes", [True, False])
def test_noting_probabilities_changes_no_bit_of_a_run(interpreted, notes):
    X, y = stream(T=60, classes=5)
    driver, parts = Driver(task="multiclass"), []
    driver.notes_probabilities = notes
    for a, b in ((0, 7), (7, 31), (31, 60)):
        parts += list(driver.run(read(X[a:b], y[a:b]).reads()))
    whole = rue.learn(X, y, task="multiclass", maps=None)
    assert driver.learner == whole.learner
    assert driver.evidence.ledger.sums.tolist() == whole.ledger.sums.tolist()
    if notes:
        classes = [len(set(y[:end])) for end in (7, 31, 60)]
        assert [part.probabilities.shape for part in parts] == list(zip((7, 24, 29), classes, strict=True))
        np.testing.assert_array_equal(parts[-1].probabilities, whole.probabilities[31:])
    else:
        assert all(part.probabilities is None for part in parts)


# Same bits, whichever way.


def test_blocks_and_single_examples_give_the_same_bits():
    X, y = stream(classes=9)
    y = np.sort(y) if y[0] > 8 else y
    whole = SoftmaxMixture()
    expected = whole.run(X, y)
    for sizes in ([1, 199], [7, 50, 143], [100, 100]):
        learner, ends = SoftmaxMixture(), np.cumsum([0, *sizes])
        parts = [learner.run(X[a:b], y[a:b]) for a, b in itertools.pairwise(ends)]
        np.testing.assert_array_equal(np.concatenate(parts), expected)
        assert learner == whole
    single = SoftmaxMixture()
    for x, label in zip(X, y, strict=True):
        single.update(x, label)
    assert single == whole
    assert whole.copy() == whole


def test_sparse_is_dense_and_names_are_positions(interpreted):
    X, y = stream(T=40, d=12)
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0.0
    dense, thin, named = SoftmaxMixture(), SoftmaxMixture(), SoftmaxMixture()
    np.testing.assert_allclose(dense.run(X, y), thin.run(sparse.csr_matrix(X), y), rtol=1e-9)
    names = "abcdefghijkl"
    for x, label in zip(X, y, strict=True):
        named.update(dict(zip(names, x.tolist(), strict=True)), label)
    p = dense.predict(X[0])
    np.testing.assert_allclose(named.predict(dict(zip(names, X[0].tolist(), strict=True))), p, rtol=1e-9)
    np.testing.assert_allclose(named.predict({"unknown": 1.0}), dense.predict(np.zeros(12)), rtol=1e-9)
    np.testing.assert_allclose(thin.predict((np.arange(12), X[0])), p, rtol=1e-9)
    np.testing.assert_allclose(thin.predict(sparse.csr_matrix(X[:1])), p, rtol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_units_of_powers_of_two_change_nothing(intercept):
    X, y = stream(T=150, d=8)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = 0.0
    scale = 2.0 ** np.random.default_rng(2).integers(-40, 40, 8)
    np.testing.assert_array_equal(
        SoftmaxMixture(intercept=intercept).run(X, y), SoftmaxMixture(intercept=intercept).run(X * scale, y)
    )


def test_any_units_and_shifts_change_little():
    X, y = stream(T=600)
    one, other = (rue.learn(Z, y, task="multiclass").risk for Z in (X, X * 10.0 ** np.arange(-3, 3)))
    assert one == pytest.approx(other, rel=0.01)


def test_weight_0_changes_nothing_and_refusals_neither():
    X, y = stream()
    learner = SoftmaxMixture()
    learner.run(X, y)
    before = learner.copy()
    assert np.isfinite(learner.run(X[:5], y[:5], np.zeros(5))).all()
    assert learner == before
    learner.update(np.full(6, 1e300), 2.0)
    assert learner == before
    for label in (0.0, 1.5, -1.0, 5000.0, math.nan):
        with pytest.raises(DataError, match="is not the number of a class"):
            learner.update(X[0], label)
    with pytest.raises(DataError, match="features must be finite"):
        learner.update(np.full(6, math.nan), 2.0)
    with pytest.raises(DataError, match="features must be finite"):
        learner.predict_many(np.full((1, 6), math.inf))
    assert learner == before


@settings(max_examples=many(10, 200))
@given(st.integers(0, 2**32))
def test_nothing_diverges_on_garbage(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy((120, 5)) ** 3 * 10.0 ** rng.integers(-100, 100, (120, 5)).astype(float)
    X[rng.random(X.shape) < 0.3] = 0.0
    weights = 10.0 ** rng.integers(-6, 6, 120).astype(float)
    learner = SoftmaxMixture(intercept=bool(seed % 2))
    scores = learner.run(X, rng.integers(1, 6, 120).astype(float), weights)
    assert np.isfinite(scores[np.isfinite((X**2).sum(axis=1))]).all()
    assert np.isfinite(learner.predict_many(X)).all()
    assert np.isfinite(learner.point).all()


def test_more_features_than_matrices_have_lines():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2 * NARROW)), rng.integers(1, 4, 300).astype(float)
    X[:100, NARROW // 2 :] = 0.0
    learner = SoftmaxMixture()
    scores = learner.run(X, y)
    assert np.isfinite(scores).all()
    assert (learner._point.kinds < 0.0).tolist() == [False] * 3 + [True] * 3
    running = learner._point.members[LOSSES, :24]
    assert -np.log(np.abs(scores)).sum() <= running.min() + math.log(48 * len(scores)) + 1e-6


def test_pure_noise_costs_little():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10_000, 20)), rng.integers(0, 4, 10_000).astype(str)
    going = rue.learn(X, y)
    counts = np.unique(y, return_counts=True)[1]
    assert going.loss <= 1.05 * -(counts * np.log(counts / counts.sum())).sum()


def test_digits_are_learnt_better_than_by_peers():
    """River's best has 0.656 and 9.0 % mistakes on this order, Vowpal Wabbit's 0.577 and 12.5 %."""
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    run = rue.learn(X[order], y[order], task="classify")
    assert run.risk < 0.27
    assert run.mistakes / run.examples < 0.075


@pytest.mark.parametrize("late", [0, 400])
@pytest.mark.parametrize("wide", [False, True])
def test_two_classes_are_learnt_as_well_as_by_the_learner_of_two(wide, late):
    """Also where the second class comes late: before, the weights of the only class grew without end."""
    rng = np.random.default_rng(5)
    Z = (rng.random((1200, 300)) < 0.03) if wide else rng.normal(size=(1200, 6))
    scores = Z @ rng.normal(size=Z.shape[1]) * 2.0 + rng.logistic(size=1200)
    y = np.where(scores > np.median(scores), "yes", "no")
    order = np.argsort((y == "yes") | (np.arange(1200) >= late), kind="stable")  # "no" alone at first
    X, y = Z[order] * 1.0, y[order]
    two, several = rue.learn(X, y, maps=None), rue.learn(X, y, task="multiclass", maps=None)
    assert several.mistakes <= 1.15 * two.mistakes  # before: 2 to 7 times as many where "yes" comes late
    assert several.risk <= 1.02 * two.risk + math.log(2.0) / 1200  # and what naming the second class costs


def words_and_names(rows=900, names=500):
    """A table of two columns of words, hashed to 2²⁰ slots, and a target of many names."""
    rng = np.random.default_rng(0)
    slots = np.sort(rng.choice(2**20, 400, replace=False)[rng.integers(0, 400, (rows, 2))], axis=1)
    X = sparse.csr_matrix((np.ones(2 * rows), slots.ravel(), np.arange(0, 2 * rows + 1, 2)), shape=(rows, 2**20))
    return Block(X, 1.0 + np.arange(rows) % names), np.unique(slots).size


@pytest.mark.parametrize("names", [40, 500])
def test_memory_follows_the_features_and_classes_in_use(names):
    block, features = words_and_names(names=names)
    SoftmaxMixture().widen(block.part(0, 3))  # what compiling takes is not counted
    tracemalloc.start()
    learner = SoftmaxMixture()
    learner.widen(block)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    each = learner.algorithm.bytes_per_feature(learner._point)
    own = [getattr(learner._point, array.name) for array in learner._point.layout if array.of_coordinates]
    assert each == sum(array.nbytes // len(array) for array in own)
    assert 216 * names < each < 1.3 * 216 * names + 200  # with the copies that are tried for the frozen model
    working = 70_000 * names + 3e6  # rows of classes that do not depend on the features
    assert held < 1.3 * features * each + working
    assert peak < 2.0 * features * each + 2.0 * working


@pytest.mark.parametrize("names", [40, 500])
def test_too_much_memory_is_refused_before_it_is_taken(monkeypatch, names):
    block, features = words_and_names(names=names)
    limit = features * names * 108
    for module in (learner_module, classifier_module):
        monkeypatch.setattr(module, "memory_limit", lambda: limit)
    SoftmaxMixture().widen(block.part(0, 3))
    what_to_type = r"classes of [\d,]+ coordinates, .*fewer classes .*--drop.*--bits.*--budget"
    tracemalloc.start()
    with pytest.raises(NoRoom, match=what_to_type):
        SoftmaxMixture().widen(block)
    learner = SoftmaxMixture()
    learner.widen(block.part(0, names // 4))
    with pytest.raises(NoRoom, match=what_to_type):  # later, where features and classes are known already
        learner.widen(block)
    assert tracemalloc.get_traced_memory()[1] < limit + 70_000 * names + 3e6
    tracemalloc.stop()


# Through the house.


def test_learn_decides_by_the_labels():
    X, y = stream(T=300)
    words = np.array(["", "red", "green", "blue", "grey"])[y.astype(int)]
    run = rue.learn(X, words, maps=None)
    codes = run.labels.encode(words)
    assert run.labels.task == "multiclass"
    assert run.labels.classes == tuple(dict.fromkeys(words.tolist()))
    np.testing.assert_array_equal(run.y, codes)
    scores = SoftmaxMixture().run(X, codes)
    np.testing.assert_array_equal(run.predictions, scores)
    np.testing.assert_allclose(run.losses, -np.log(np.abs(scores)), rtol=1e-14)
    assert run.loss == pytest.approx(-np.log(np.abs(scores)).sum(), rel=1e-12)
    assert run.mistakes == (scores <= 0.0).sum()
    assert rue.Labels.of(y).task == "regress"
    assert rue.learn(X, y, task="classify").labels.classes == tuple(dict.fromkeys(y.astype(int).tolist()))
    for given_y in (words.astype(object), words.tolist()):
        np.testing.assert_array_equal(rue.learn(X, given_y, maps=None).predictions, scores)
    parts = [rue.Block(X[:100], words[:100]), rue.Block(X[100:], words[100:])]
    np.testing.assert_array_equal(rue.learn(parts, maps=None).predictions, scores)
    with pytest.raises(SettingsError, match="no certificate for more than two classes"):
        run.certificate()
    with pytest.raises(SettingsError, match="no certificate for more than two classes"):
        rue.learn(X, words, witnesses=1.0)
    with pytest.raises(SettingsError, match="no certificate for more than two classes"):
        rue.audit(run, X, words)
    with pytest.raises(SettingsError, match="OGD learns no more than two classes: leave it out"):
        rue.learn(X, words, learner=rue.OGD(), task="multiclass")


def test_a_third_class_after_two_stops_with_what_to_say(interpreted):
    parts = [rue.Block(np.eye(2), ["a", "b"]), rue.Block(np.eye(2), ["b", "c"])]
    with pytest.raises(DataError, match=r"neither 'a' nor 'b': for more than two classes say task='multiclass'"):
        rue.learn(parts)
    assert rue.learn(parts, task="multiclass").labels.classes == ("a", "b", "c")


def test_labels_of_many_classes():
    labels = rue.Labels.of([3, 1, 3, 2], "classify")
    assert labels == rue.Labels("multiclass", classes=(3, 1, 2))
    assert labels.encode([1.0, 2.0, 3.0, 4.0, math.nan]).tolist()[:3] == [2.0, 3.0, 1.0]
    assert np.isnan(labels.encode([4.0, math.nan])).all()
    assert labels.extended([9, 1, 8]).classes == (3, 1, 2, 9, 8)
    assert rue.Labels.of(np.array(["a", None, "b", "c"], dtype=object)).classes == ("a", "b", "c")
    assert rue.Labels.of([True, False], "multiclass").classes == (True, False)
    many_labels = rue.Labels.of(np.arange(5000), "classify")
    assert len(many_labels.classes) == 4096
    assert many_labels.complaint(4999) == (
        "the label 4999 is no class: there are 4,096 already, and numbers to predict need a regression loss."
    )
    run = rue.learn(np.ones((4, 1)), np.array(["a", None, "b", "c"], dtype=object), bad="skip")
    assert (run.examples, run.skipped, run.unlabelled) == (3, 0, 1)


def test_what_no_learning_would_have_lost():
    y, weights = np.array([1, 1, 2, 3, 3, 3, 1.0]), np.array([1, 2, 1, 1, 0.5, 1, 1])
    baselines, loss = Baselines(), LogLoss()
    for part in (slice(0, 3), slice(3, 7)):
        baselines.enter(loss, y[part], weights[part], np.ones(7)[part])
    masses = np.array([4.0, 1.0, 2.5])
    assert baselines.best_constant(loss) == pytest.approx(-(masses * np.log(masses / 7.5)).sum())
    same, other = 3.5, 3.0
    grid = np.linspace(0.001, 0.999, 9999)
    again = weights[0] * math.log(3) + (-same * np.log(grid) - other * np.log((1 - grid) / 2)).min()
    assert baselines.no_change(loss) == pytest.approx(again, rel=1e-6)


def test_saved_and_resumed_goes_on_exactly(tmp_path):
    X, y = stream(T=300, classes=6)
    words = np.array(list("_abcdef"))[y.astype(int)]
    run = rue.learn(X[:200], words[:200])
    save(run, tmp_path / "m.rue")
    again = load(tmp_path / "m.rue")
    assert again.learner == run.learner
    assert again.labels == run.labels
    codes = run.labels.extended(words[200:]).encode(words[200:])
    np.testing.assert_array_equal(again.learner.run(X[200:], codes), run.learner.copy().run(X[200:], codes))


def test_a_wide_model_is_a_small_file(tmp_path, interpreted):
    wide = SoftmaxMixture(budget=72)
    wide.run(sparse.csr_matrix(([1.0, 2.0], ([0, 1], [5, 90_000])), shape=(2, 100_000)), np.array([1.0, 9.0]))
    save(wide, tmp_path / "w.rue")
    assert load(tmp_path / "w.rue").learner == wide
    assert (tmp_path / "w.rue").stat().st_size < 100_000


@pytest.mark.parametrize("change", ["HIGHEST", "USED", "SEEN", "CLOSED"])
def test_a_state_that_cannot_be_is_refused(tmp_path, change):
    from rue.learners.softmax import layout

    X, y = stream(T=20)
    learner = SoftmaxMixture()
    learner.run(X, y)
    learner._point.memory[getattr(layout, change)] = 77.0
    save(learner, tmp_path / "m.rue")
    with pytest.raises(DataError, match="do not fit"):
        load(tmp_path / "m.rue")


def test_budget():
    assert SoftmaxMixture(budget=120) == SoftmaxMixture()
    assert SoftmaxMixture(budget=100).algorithm.rates == 4
    with pytest.raises(SettingsError, match="a feature takes at least 72 bytes for each class, not 50"):
        SoftmaxMixture(budget=50)
    with pytest.raises(SettingsError, match="budget must be a number of bytes, not '1'"):
        SoftmaxMixture(budget="1")


def test_the_weights_that_are_shown_predict_alone():
    """Members of one rate and kind with all the weight: the posterior mean is that member."""
    X, y = stream(T=400)
    learner = SoftmaxMixture()
    learner.run(X, y)
    for kind in range(6):
        pool = learner._point
        kinds = np.zeros(6)
        kinds[kind] = 1.0
        pool.kinds[:] = kinds
        pool.members[1] = np.tile(np.eye(8)[3], 6)
        shown = softmax((X[399] @ learner.weights + learner.bias)[:, None])[:, 0]
        np.testing.assert_allclose(learner.predict(X[399])[1:], shown, rtol=0.1, atol=0.01)


def test_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    X, y = stream(T=120)
    rue.learn(X, y, task="classify").plot(path=tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size > 1000


# The command line.


def command(*args, ok=0):
    done = subprocess.run([sys.executable, "-m", "rue", *map(str, args)], capture_output=True, text=True)
    assert done.returncode == ok, done.stderr
    return done


def test_from_a_table_to_predictions(tmp_path):
    X, y = stream(T=240, d=3)
    words = np.array(["", "red", "green", "light, blue", "grey"])[y.astype(int)]
    lines = [",".join(map(repr, x)) + f',"{word}"' for x, word in zip(X.tolist(), words, strict=True)]
    (tmp_path / "all.csv").write_text("\n".join(["a,b,c,colour", *lines]) + "\n")
    (tmp_path / "one.csv").write_text("\n".join(["a,b,c,colour", *lines[:130]]) + "\n")
    (tmp_path / "two.csv").write_text("\n".join(["a,b,c,colour", *lines[130:]]) + "\n")
    out = [tmp_path / name for name in ("all.rue", "all.json", "all.p", "one.rue", "two.rue", "two.json")]
    table = "--target", "colour", "-q"
    page = command(
        "learn", tmp_path / "all.csv", *table, "--model", out[0], "--report", out[1], "--predictions", out[2]
    )
    assert "classes      4: " in page.stdout
    assert "there is no certificate for more than two classes" in page.stdout
    said = json.loads(out[1].read_text())
    run = rue.learn(X, words)
    assert said["loss_total"] == run.loss
    assert said["mistakes"] == run.mistakes
    assert said["certificate"] is None
    assert "no certificate" in said["no_certificate"]
    assert list(said["labels"].values()) == list(run.labels.classes)
    order = np.argsort(run.labels.classes)
    head, *rows = csv.reader(io.StringIO(out[2].read_text()))
    assert head == np.array(run.labels.classes)[order].tolist()
    np.testing.assert_array_equal(np.array(rows, dtype=float), run.probabilities[:, order])
    command("learn", tmp_path / "one.csv", *table, "--model", out[3])
    command("learn", tmp_path / "two.csv", "-q", "--resume", out[3], "--model", out[4], "--report", out[5])
    assert json.loads(out[5].read_text())["loss_total"] == run.loss
    assert json.loads(out[5].read_text())["best_constant"] == pytest.approx(said["best_constant"])
    assert load(out[4]).learner == run.learner == load(out[0]).learner
    labels = command("predict", out[0], tmp_path / "all.csv", "--as", "label")
    chances = command("predict", out[0], tmp_path / "all.csv", "--as", "probability").stdout.splitlines()
    p = run.learner.predict_many(X)
    assert next(csv.reader(chances)) == head
    np.testing.assert_array_equal(np.array([row.split(",") for row in chances[1:]], dtype=float), p[:, 1:][:, order])
    best = np.array(run.labels.classes)[p[:, 1:].argmax(axis=1)]
    assert [row[0] for row in csv.reader(io.StringIO(labels.stdout))][1:] == best.tolist()
    loss = -np.log(p[np.arange(240), run.y.astype(int)]).mean()
    assert f"240 labelled examples: mean loss {loss:.6g}, {(best != words).sum()} mistakes" in labels.stderr
    shown = command("inspect", out[0]).stdout
    assert "4 classes: 1 is " in shown
    assert "there is no certificate for more than two classes" in shown


def test_a_model_that_stands_still_is_charged_for_names_too(tmp_path, inside, interpreted):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{i % 5},{'abc'[i % 3]}\n" for i in range(30)))
    (tmp_path / "b.csv").write_text("x,y\n3,never\n")
    inside("learn", tmp_path / "a.csv", "--target", "y", "--model", tmp_path / "m.rue", "-q")
    shown = inside("predict", tmp_path / "m.rue", tmp_path / "b.csv").err
    loss = 2.0 * math.log(29.0) + math.log(4.0)  # no new class for 28 rows, and one of four names
    assert shown.startswith(f"1 labelled example: mean loss {loss:.6g}, 1 mistake")


def test_what_to_type(tmp_path):
    (tmp_path / "n.csv").write_text("x,y\n" + "\n".join(f"{i},{i % 3 + 4}" for i in range(30)) + "\n")
    (tmp_path / "w.csv").write_text("x,y\n" + "\n".join(f"{i},{'ab'[i % 2]}" for i in range(30)) + "\n")
    assert "Square" in command("learn", tmp_path / "n.csv", "--target", "y", "-q").stdout
    assert (
        "classes      3: 4, 5, 6"
        in command("learn", tmp_path / "n.csv", "--target", "y", "-q", "--task", "classify").stdout
    )
    words = command("learn", tmp_path / "w.csv", "--target", "y", "-q", "--task", "multiclass").stdout
    assert "classes      2: 'a', 'b'" in words
    wrong = command("learn", tmp_path / "w.csv", "--target", "y", "--task", "classes", ok=2).stderr
    assert wrong.startswith("rue: --task is auto, classify, multiclass or regress, not 'classes'.")


@pytest.mark.usefixtures("interpreted")
def test_the_state_holds_every_line_however_few_the_coordinates():
    learner = SoftmaxMixture()
    learner.run(np.ones((3, 1)), [1, 2, 3])
    state = state_of(learner._point, 2)
    for name in ("lines", "line_sums", "centres", "inverses"):
        assert len(state[name]) == len(getattr(learner._point, name)) > 2, name
