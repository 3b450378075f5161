"""The best constant and the last label, against brute force."""

import copy

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import rue
from rue.learners import SoftmaxMixture
from rue.runs.baselines import OTHER, SAME, Baselines

pytestmark = pytest.mark.usefixtures("interpreted")


def labels(loss, seed, n=200):
    rng = np.random.default_rng(seed)
    if rue.make("loss", loss).task == "classify":
        return np.where(rng.random(n) < 0.3, 1.0, -1.0)
    return rng.poisson(3.0, n).astype(float) if loss == "poisson" else np.round(rng.standard_normal(n) * 3, 1)


def total(loss, p, y, weights):
    made = rue.make("loss", loss)
    return sum(w * made.value(float(a), b) for a, b, w in zip(np.broadcast_to(p, y.shape), y, weights, strict=True))


LOSSES = [
    "logistic",
    "hinge",
    "squared-hinge",
    "perceptron",
    "square",
    "absolute",
    "quantile:0.2",
    "huber:1",
    "poisson",
]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_no_weights_are_weights_of_one(loss, seed):
    """Exactly: in blocks of a few rows, some without a prediction, some with none."""
    rng = np.random.default_rng(seed)
    y, predictions = labels(loss, seed, 60), np.where(rng.random(60) < 0.2, np.nan, 0.0)
    predictions[10:14] = np.nan
    made, found, wanted = rue.make("loss", loss), Baselines(), Baselines()
    for part in np.split(np.arange(60), [1, 10, 14, 15, 40]):
        found.enter(made, y[part], np.empty(0), predictions[part])
        wanted.enter(made, y[part], np.ones(part.size), predictions[part])
        assert np.array_equal(found.sums, wanted.sums, equal_nan=True)
    assert (found.best_constant(made), found.no_change(made)) == (wanted.best_constant(made), wanted.no_change(made))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cuts", [(), (1, 2, 150)])
def test_against_brute_force(loss, cuts):
    y, weights = labels(loss, 0), np.random.default_rng(1).random(200)
    weights[5], predictions = 0.0, np.zeros(200)
    predictions[[7, 50]] = np.nan
    made, found = rue.make("loss", loss), Baselines()
    for part in np.split(np.arange(200), cuts):
        found.enter(made, y[part], weights[part], predictions[part])
    kept = np.isfinite(predictions) & (weights > 0)
    y, weights = y[kept], weights[kept]
    grid = np.linspace(-12, 12, 481)
    coarse = min(total(loss, c, y, weights) for c in grid)
    fine = minimize_scalar(lambda c: total(loss, c, y, weights), bounds=(-12, 12), method="bounded").fun
    assert found.best_constant(made) == pytest.approx(min(coarse, fine), rel=1e-6, abs=1e-9)
    last = np.log(np.maximum(y, 0.5)) if loss == "poisson" else y  # the prediction that stands for a label
    before = np.concatenate([[0.0], last[:-1]])
    if made.task == "classify":
        best = min(total(loss, c * before, y, weights) for c in np.linspace(0, 8, 2001))
        assert found.no_change(made) == pytest.approx(best, rel=1e-4)
    else:
        assert found.no_change(made) == pytest.approx(total(loss, before, y, weights), rel=1e-12)


def test_many_distinct_labels_lose_digits_and_little_else():
    y = np.random.default_rng(0).standard_normal(100_000)
    found = Baselines()
    for part in np.split(y, 10):
        found.enter(rue.Absolute(), part, np.empty(0), np.zeros(part.size))
    assert found.values.size <= 65_536
    assert found.best_constant(rue.Absolute()) == pytest.approx(np.abs(y - np.median(y)).sum(), rel=1e-4)


def test_nothing_seen():
    assert Baselines().best_constant(rue.Logistic()) == 0.0
    assert Baselines().no_change(rue.Square()) == 0.0


@pytest.mark.parametrize("loss", ["logistic", "square", "quantile:0.2"])
def test_blocks_do_not_matter_to_the_last_bit(loss):
    y, weights, made = labels(loss, 3), np.random.default_rng(4).random(200), rue.make("loss", loss)
    whole, parts = Baselines(), Baselines()
    whole.enter(made, y, weights, np.zeros(200))
    for part in np.split(np.arange(200), [1, 2, 77, 150]):
        parts.enter(made, y[part], weights[part], np.zeros(part.size))
    assert whole.sums.tobytes() == parts.sums.tobytes()


@pytest.mark.parametrize("loss", [*LOSSES, "multiclass"])
def test_those_of_several_parts_are_those_of_all_labels(loss):
    """Each part goes on from the base: only which label comes before the first of a part is not as in one pass."""
    rng = np.random.default_rng(3)
    if loss == "multiclass":
        made, y = SoftmaxMixture().loss, rng.integers(1, 4, 150).astype(float)
    else:
        made, y = rue.make("loss", loss), labels(loss, 3, 150) + (1e6 if loss == "square" else 0.0)
    weights, cuts, whole, base = 2.0 * rng.random(150), (50, 90, 150), Baselines(), Baselines()
    for each, rows in ((whole, slice(None)), (base, slice(50))):
        each.enter(made, y[rows], weights[rows], np.zeros(150)[rows])
    parts = [copy.deepcopy(base), copy.deepcopy(base), copy.deepcopy(base)]
    lost = base.no_change(made)
    for part, start, stop in zip(parts[1:], cuts, cuts[1:], strict=False):
        part.enter(made, y[start:stop], weights[start:stop], np.zeros(stop - start))
        lost += part.no_change(made) - base.no_change(made)
    merged = base.merge(parts)
    assert merged.best_constant(made) == pytest.approx(whole.best_constant(made), rel=1e-9)
    if made.task == "regress":
        assert merged.no_change(made) == pytest.approx(lost, rel=1e-12)
    else:
        before = np.r_[np.nan, y[:-1]]
        before[90] = y[49]  # the second part went on from the base
        assert merged.sums[SAME] == pytest.approx(weights[before == y].sum())
        assert merged.sums[OTHER] == pytest.approx(weights[1:][before[1:] != y[1:]].sum())
    assert merged.sums[-1] == y[-1]
    one = base.merge([base, parts[1]])
    assert np.array_equal(one.sums, parts[1].sums)
    assert one.best_constant(made) == parts[1].best_constant(made)
