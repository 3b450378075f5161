"""Stochastic optimisation of a stored set, against ten lines of NumPy and a solver."""

import cvxpy as cp
import numpy as np
import pandas
import pytest
from scipy import sparse

import rue

N, D, T = 30, 3, 200


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, D)) * rng.uniform(0.3, 1.5, size=(N, 1))
    return X, np.where(X @ [1.0, -2.0, 0.5] + 0.7 * rng.normal(size=N) > 0, 1.0, -1.0)


SLOPES = {"hinge": lambda z: -1.0 * (z <= 1), "logistic": lambda z: -1 / (1 + np.exp(z))}
VALUES = {"hinge": lambda z: np.maximum(0, 1 - z), "logistic": lambda z: np.logaddexp(0, -z)}
CVX = {"hinge": lambda z: cp.pos(1 - z), "logistic": lambda z: cp.logistic(-z)}


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("weighting", ["uniform", "steps"])
def test_it_is_subgradient_descent_on_uniform_draws(data, loss, weighting, interpreted):
    X, y = data
    found = rue.minimise(X, y, loss=loss, rounds=T, weighting=weighting, seed=7)
    R = np.linalg.norm(X, axis=1).max()
    drawn = np.random.default_rng(7).integers(N, size=T)
    w, mean, mass, squares = np.zeros(D), np.zeros(D), 0.0, 0.0
    for t, i in enumerate(drawn, 1):
        eta = 1 / (R * np.sqrt(T if weighting == "uniform" else t))
        mean, mass = mean + eta * w, mass + eta
        g = eta * SLOPES[loss](y[i] * (w @ X[i])) * y[i] * X[i]
        squares += g @ g
        w = w - g
    np.testing.assert_allclose(found.point, mean / mass, atol=1e-12)
    assert found.value == pytest.approx(VALUES[loss](y * (X @ mean) / mass).mean())
    assert found.squares == pytest.approx(squares)
    u = cp.Variable(D)
    least = cp.Problem(
        cp.Minimize(cp.sum(CVX[loss](cp.multiply(y, X @ u))) / N + cp.sum_squares(u) / (2 * mass))
    ).solve(solver=cp.CLARABEL)
    assert found.regularised.value / N == pytest.approx(least, rel=1e-4)
    assert found.seen == pytest.approx(least + squares / (2 * mass), rel=1e-4)
    etas = np.full(T, 1 / np.sqrt(T)) if weighting == "uniform" else 1 / np.sqrt(np.arange(1, T + 1))
    assert found.bound == pytest.approx(least + R * (etas**2).sum() / (2 * etas.sum()), rel=1e-4)
    if weighting == "uniform":  # as the notes write it
        norm = np.linalg.norm(u.value)
        F = VALUES[loss](y * (X @ u.value)).mean()
        assert found.bound == pytest.approx(F + R * norm**2 / (2 * np.sqrt(T)) + R / (2 * np.sqrt(T)), rel=1e-4)


@pytest.mark.parametrize("weighting", ["uniform", "steps"])
def test_the_mean_over_draws_obeys_the_bound(data, weighting, interpreted):
    X, y = data
    found = [rue.minimise(X, y, rounds=100, weighting=weighting, seed=seed) for seed in range(20)]
    assert np.mean([one.value for one in found]) <= np.mean([one.seen for one in found])
    assert np.mean([one.seen for one in found]) <= found[0].bound + 1e-9
    assert len({one.value for one in found}) == 20  # another seed, other draws
    assert rue.minimise(X, y, rounds=100, weighting=weighting, seed=3).value == found[3].value


def test_a_separable_set_under_logistic_loss_has_no_minimum_but_a_regularised_one(interpreted):
    X, y = np.array([[1.0], [-2.0]]), np.array([1.0, -1.0])
    values = [rue.minimise(X, y, loss="logistic", rounds=T, seed=1) for T in (100, 10_000)]
    assert values[0].regularised.value > values[1].regularised.value > 0.0
    assert all(one.value <= one.bound for one in values)
    assert values[1].regularised.point[0] > values[0].regularised.point[0]


def test_without_sampling_nothing_is_claimed(data, interpreted):
    X, y = data
    found = rue.minimise(X, y, rounds=2 * N + 1, sample=False)
    assert found.drawn.tolist() == [*range(N), *range(N), 0]
    assert np.isnan(found.bound)
    assert str(found).endswith("Nothing is claimed of examples that are not drawn independently.")
    assert "In expectation it is at most" in str(rue.minimise(X, y, rounds=N))


def test_sparse_rows_words_for_labels_and_an_intercept(data):
    X, y = data
    dense = rue.minimise(X, np.where(y > 0, "yes", "no"), rounds=50, intercept=True)
    thin = rue.minimise(sparse.csr_array(X), y, rounds=50, intercept=True)
    assert pytest.approx(np.sqrt(1 + (X**2).sum(axis=1).max())) == dense.R
    assert dense.point == pytest.approx(thin.point, abs=1e-12)
    assert dense.value == pytest.approx(thin.value)
    assert dense.squares == pytest.approx(thin.squares)
    framed = pandas.DataFrame(X, columns=["a", "b", "c"])
    for rows in (framed, sparse.coo_array(X), X.tolist()):
        assert rue.minimise(rows, y, rounds=50, intercept=True).point == pytest.approx(thin.point, abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "square"}, "minimise: the loss must be Lipschitz, as hinge, logistic and absolute loss are, not"),
        ({"rounds": 0}, "minimise: rounds must be a whole number, at least 1, not 0."),
        ({"seed": -1}, "minimise: seed must be a whole number ≥ 0, not -1."),
        ({"weighting": "t"}, "minimise: weighting must be 'uniform' or 'steps', not 't'."),
    ],
)
def test_what_makes_no_sense_is_refused(data, settings, words):
    with pytest.raises(rue.SettingsError) as refused:
        rue.minimise(*data, **settings)
    assert str(refused.value).startswith(words)


def test_rows_that_are_none_are_refused():
    with pytest.raises(rue.DataError, match="minimise: the rows must be finite, and not all of them 0"):
        rue.minimise(np.zeros((2, 2)), [1, -1])
    with pytest.raises(rue.DataError, match="minimise: there are 2 rows and 3 labels"):
        rue.minimise(np.ones((2, 2)), [1, -1, 1])
