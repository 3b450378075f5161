"""Calibration (E3) against means that are computed from the predictions, and how groups are counted."""

import copy
import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import rue
from conftest import many
from rue.runs.groups import MOST, GroupCounts
from rue.streams import Block


def grouped(rng, T=1500):
    """Two 0/1 columns, one that is 0 or 1 but for one row, and a number; with labels that depend on them."""
    X = np.column_stack([rng.random(T) < 0.4, rng.random(T) < 0.2, rng.random(T) < 0.5, rng.normal(size=T)]).astype(
        float
    )
    X[T // 2, 2] = 0.5
    return X, X @ [1.5, -2.0, 0.3, 1.0] + rng.normal(size=T)


@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_against_means_written_down(weighted):
    rng = np.random.default_rng(0)
    X, score = grouped(rng)
    y, weights = np.where(score > 0.0, 1, -1), rng.choice([0.0, 1.0, 3.0], score.size) if weighted else None
    run = rue.learn(X, y, learner=rue.OGD(domain="ball:3"), weights=weights)
    mass = np.ones(y.size) if weights is None else weights
    chance, came, found = 1.0 / (1.0 + np.exp(-run.predictions)), (y > 0).astype(float), run.calibration()
    assert found.says == pytest.approx(mass @ chance / mass.sum(), abs=1e-12)
    assert found.happened == pytest.approx(mass @ came / mass.sum(), abs=1e-12)
    assert {group.name for group in found.groups} == {"feature 0", "feature 1"}
    for group in found.groups:
        inside = X[:, int(group.name.split()[1])] == 1.0
        assert group.weight == mass[inside].sum()
        assert group.gap == pytest.approx((mass * (chance - came))[inside].sum() / mass[inside].sum(), abs=1e-12)
    assert sum(part.weight for part in found.bins) == pytest.approx(mass.sum())
    assert found.error == pytest.approx(
        sum(part.weight * abs(part.says - part.happened) for part in found.bins) / mass.sum()
    )
    for part in found.bins:  # the scores were not cut to fewer digits, so that the tenths are exact
        inside = (chance >= part.low) & (chance < part.high)
        assert part.says == pytest.approx(mass[inside] @ chance[inside] / mass[inside].sum(), abs=1e-9)
    assert f"largest gap: {found.groups[0].name}, " in str(found)
    assert " % happened" in str(found)


def test_numbers_against_means_written_down():
    X, y = grouped(np.random.default_rng(1))
    run = rue.learn(sp.csr_matrix(X), y, learner=rue.OGD("square", "ball:3"))
    found, residual = run.calibration(), run.predictions - y
    assert (found.of, found.bins, found.error) == ("value", (), None)
    assert found.gap == pytest.approx(residual.mean(), abs=1e-12)
    assert found.happened == pytest.approx(y.mean(), abs=1e-12)
    for group in found.groups:
        inside = X[:, int(group.name.split()[1])] == 1.0
        assert group.gap == pytest.approx(residual[inside].mean(), abs=1e-12)


def test_losses_that_predict_no_mean_have_no_calibration():
    run = rue.learn(np.ones((200, 1)), [1, -1] * 100, learner=rue.OGD("hinge"))
    with pytest.raises(rue.SettingsError, match="calibration is known for logistic, square and Poisson loss"):
        run.calibration()


def reference(X, weights, predictions):
    """The weight of each column that is 0 or 1 and not always 0 where there is a prediction."""
    use = (weights > 0.0) & np.isfinite(predictions)
    return {
        j: float(weights[use] @ X[use, j])
        for j in range(X.shape[1])
        if X[use, j].any() and np.isin(X[use, j], (0.0, 1.0)).all()
    }


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("sparse", [False, True])
def test_groups_are_counted_alike_in_any_blocks_and_merged(sparse):
    rng = np.random.default_rng(2)
    for _ in range(many(15, 200)):
        T = int(rng.integers(1, 150))
        X = rng.choice([0.0, 1.0], size=(T, 5))
        X[:, 4] *= rng.choice([1.0, 2.0], T)
        weights, p = rng.choice([0.0, 1.0, 0.5], T), np.where(rng.random(T) < 0.1, np.nan, 0.0)
        block = Block(sp.csr_matrix(X) if sparse else X)
        whole, cut = GroupCounts(), sorted({0, T, *rng.integers(0, T + 1, 3).tolist()})
        whole.enter(block, weights, p)
        parts = [GroupCounts()]
        for a, b in itertools.pairwise(cut):
            parts.append(copy.deepcopy(parts[-1]))
            parts[-1].enter(block.part(a, b), weights[a:b], p[a:b])
        expected = reference(X, weights, p)
        for counts in (whole, parts[-1], GroupCounts.read(*parts[-1].stored().values())):
            assert dict(zip(*(column.tolist() for column in counts.groups()), strict=True)) == pytest.approx(expected)
        base, one, other = GroupCounts(), None, None
        base.enter(block.part(0, T // 3), weights[: T // 3], p[: T // 3])
        one, other = copy.deepcopy(base), copy.deepcopy(base)
        one.enter(block.part(T // 3, T // 2), weights[T // 3 : T // 2], p[T // 3 : T // 2])
        other.enter(block.part(T // 2, T), weights[T // 2 :], p[T // 2 :])
        merged = base.merge([one, other])
        assert dict(zip(*(column.tolist() for column in merged.groups()), strict=True)) == pytest.approx(expected)


def test_streams_of_many_features_have_no_groups():
    counts = GroupCounts()
    counts.enter(Block(sp.eye(MOST + 1, format="csr")), np.empty(0), np.zeros(MOST + 1))
    assert counts.groups()[0].size == 0
    with pytest.raises(rue.DataError, match="counts of its groups are impossible"):
        GroupCounts.read(np.array([1]), np.array([0, 3]), np.array([0.0, -1.0]))


def test_a_model_goes_on_with_its_groups(tmp_path):
    X, y = rue.census()
    whole = rue.learn(X[:2000], y[:2000], learner=rue.OGD())
    rue.save(rue.learn(X[:900], y[:900], learner=rue.OGD()), tmp_path / "m")
    again = rue.learn(X[900:2000], y[900:2000], learner=rue.load(tmp_path / "m"))
    assert again.calibration() == whole.calibration()


def test_wide_streams_that_are_numbered_have_no_groups():
    wide = sp.csr_matrix((np.ones(300), np.tile([3, 2**23, 2**30], 100), np.arange(0, 301, 3)), shape=(100, 2**31))
    run = rue.learn(wide, [1, -1] * 50, learner=rue.AdaGrad())
    assert run.metrics.groups.groups()[0].size == 0
    assert run.calibration().groups == ()
