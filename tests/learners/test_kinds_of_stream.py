"""The default learner on kinds of stream that break others, against one who knows what it does not."""

import math

import numpy as np
import pytest
from scipy import sparse

import rue


def mean_loss(loss, predictions, y):
    return float(np.mean([loss.value(p, label) for p, label in zip(predictions, y, strict=True)]))


@pytest.mark.parametrize("numbers", [False, True])
def test_the_order_of_features_does_not_matter(numbers):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 20))
    y = X[:, 0] + rng.normal(size=1000)
    y = y if numbers else np.sign(y)
    loss, order = "square" if numbers else "logistic", rng.permutation(20)
    said, other = rue.Mixture(loss).run(X, y), rue.Mixture(loss).run(X[:, order], y)
    assert other == pytest.approx(said, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("u", [np.zeros(5), np.arange(5.0)], ids=["nothing to learn", "a line"])
@pytest.mark.parametrize("loss", ["absolute", "huber:1", "square"])
def test_heavy_tails_cost_little_against_the_truth(loss, u):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(10_000, 5))
    y = 3.0 + X @ u + rng.standard_t(1.2, 10_000)
    run = rue.learn(X, y, learner=rue.Mixture(loss))
    assert run.risk <= 1.01 * mean_loss(run.learner.loss, 3.0 + X @ u, y)


@pytest.mark.parametrize("length", [500, 5_000])
def test_long_runs_of_one_label_are_followed(length):
    X = np.random.default_rng(2).normal(size=(10_000, 5))
    y = np.where(np.arange(10_000) // length % 2 == 0, 1.0, -1.0)
    assert rue.learn(X, y).risk <= 0.1 * math.log(2.0)  # the best constant's is ln 2


def test_rare_features_against_one_estimator_a_feature():
    """Krichevsky and Trofimov's, which is nearly the best there is for a coin that comes five times."""
    rng = np.random.default_rng(3)
    who = rng.integers(0, 2_000, 10_000)
    y = np.where(rng.random(10_000) < rng.choice([0.1, 0.9], 2_000)[who], 1.0, -1.0)
    counts, lost = np.zeros((2_000, 2)), 0.0
    for j, label in zip(who, y, strict=True):
        k = int(label > 0.0)
        lost -= math.log((counts[j, k] + 0.5) / (counts[j].sum() + 1.0))
        counts[j, k] += 1.0
    X = sparse.csr_matrix((np.ones(10_000), who, np.arange(10_001)), shape=(10_000, 2_000))
    assert rue.learn(X, y).loss <= 1.05 * lost


def test_after_the_truth_has_turned_round_it_is_learnt_again():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20_000, 5))
    z = X @ [2.0, -1.0, 1.0, 0.0, 0.0] * np.where(np.arange(20_000) < 10_000, 1.0, -1.0)
    y = np.where(rng.random(20_000) < 1.0 / (1.0 + np.exp(-z)), 1.0, -1.0)
    run = rue.learn(X, y)
    for part in (slice(5_000, 10_000), slice(15_000, 20_000)):
        assert run.losses[part].mean() <= 1.1 * mean_loss(rue.Logistic(), z[part], y[part])
