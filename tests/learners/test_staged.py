"""The learner in stages: what it promises, and that its state is exact in every form."""

import math
import pickle

import numpy as np
import pytest
from scipy import sparse

import rue
from rue.learners.merging import merge
from rue.learners.mixture.layout import LOSSES
from rue.learners.mixture.standing import stages


def losses(loss, p, y):
    return (p - y) ** 2 if loss == "square" else np.logaddexp(0.0, -y * p)


def streams():
    """Name → rows and labels: what maps help with, what they do not, and text, which they should leave alone."""
    rng = np.random.default_rng(0)
    n = 3000
    X = rng.normal(size=(n, 3))
    noise = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    words = sparse.random(n, 5000, 0.02, random_state=1, format="csr")
    words.data[:] = rng.poisson(0.5, words.nnz) + 1.0
    linear = np.sign(X @ [1.0, -2.0, 0.5] + rng.normal(size=n))
    switch = np.sign(X[:, 0] * np.where(np.arange(n) < n // 2, 1.0, -1.0))
    marks = sparse.csr_matrix((rng.random((n, 60)) < 0.2).astype(float))
    return {
        "product": (X, np.sign(X[:, 0] * X[:, 1])),
        "noise": (X, noise),
        "linear": (X, linear),
        "switch": (X, switch),
        "words": (words, noise),
        "marks": (marks, noise),
    }


@pytest.mark.parametrize("name", list(streams()))
def test_never_more_than_ln_M_above_the_linear_mixture_at_any_row(name):
    """M1; the linear stage is `Mixture` itself, to the last bit."""
    X, y = streams()[name]
    staged, linear = rue.Staged(), rue.Mixture()
    p, q = staged.run(X, y), linear.run(X, y)
    excess = np.cumsum(losses("logistic", p, y)) - np.cumsum(losses("logistic", q, y))
    assert excess.max() <= math.log(4.0) * (1.0 + 1e-6)
    assert np.array_equal(staged._point.raw.members[LOSSES], linear._point.members[LOSSES])
    assert np.array_equal(staged.point, linear.point)


@pytest.mark.parametrize("name", ["product", "noise", "switch"])
@pytest.mark.parametrize("loss", ["logistic", "square", "absolute"])
def test_the_price_holds_at_every_row_with_weights_and_for_other_losses(name, loss):
    """M1 as the report has it: the price of the rows so far, for weights above 1 and losses that are mixed by means."""
    X, y = streams()[name]
    X, y = X[:900], y[:900] if loss == "logistic" else y[:900] + 3.0 * X[:900, 0] ** 2
    weights = np.random.default_rng(1).exponential(2.0, 900)
    weights[::50] *= 20.0
    staged, linear, behind = rue.Staged(loss), rue.Mixture(loss), 0.0
    for x, label, weight in zip(X, y, weights, strict=True):
        p, q = (
            weight * (abs(model.predict(x) - label) if loss == "absolute" else losses(loss, model.predict(x), label))
            for model in (staged, linear)
        )
        behind += p - q
        for model in (staged, linear):
            model.update(x, label, weight=weight)
        price = stages(staged).price_at_most
        assert behind <= price * (1.0 + 1e-6) + 1e-9
    if loss == "logistic":
        assert price <= 20.0 * weights.max()  # of the order of ln 4 times the largest weight


def test_what_no_linear_model_knows_is_learnt():
    X, y = streams()["product"]
    assert np.mean(rue.Mixture().run(X, y)[1000:] * y[1000:] <= 0.0) > 0.4
    assert np.mean(rue.Staged().run(X, y)[1000:] * y[1000:] <= 0.0) < 0.15


def test_numbers_in_any_units_and_shifts():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2500, 2))
    y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=2500)
    p = rue.Staged("square").run(X, y)
    assert np.mean((p - y)[1000:] ** 2) < 0.3 * y.var()
    assert np.array_equal(rue.Staged("square").run(X * 4.0, y * 8.0), 8.0 * p)  # powers of two change no digit
    shifted = rue.Staged("square").run(X, y + 64.0)  # the first prediction is 0 whatever the labels are
    np.testing.assert_allclose(shifted[1:], p[1:] + 64.0, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_blocks_one_by_one_saved_and_loaded_are_one_pass_to_the_bit(loss, tmp_path):
    X, y = streams()["product"]
    y = y if loss == "logistic" else y + 3.0 * X[:, 2]
    X, y = X[:1200], y[:1200]
    whole, parts, single = rue.Staged(loss), rue.Staged(loss), rue.Staged(loss)
    p = whole.run(X, y)
    assert np.array_equal(np.concatenate([parts.run(X[:333], y[:333]), parts.run(X[333:], y[333:])]), p)
    assert parts == whole
    for x, label, expected in zip(X[:400], y[:400], p[:400], strict=True):
        assert single.predict(x) == expected
        single.update(x, label)
    rue.save(single, tmp_path / "m.rue")
    for other in (rue.load(tmp_path / "m.rue").learner, pickle.loads(pickle.dumps(single))):
        assert other == single
        assert np.array_equal(other.run(X[400:], y[400:]), p[400:])
        assert other == whole


def test_dense_and_sparse_rows_agree():
    X, y = streams()["product"]
    X = np.where(np.abs(X) < 0.5, 0.0, X)[:1000]
    dense, thin = rue.Staged().run(X, y[:1000]), rue.Staged().run(sparse.csr_matrix(X), y[:1000])
    np.testing.assert_allclose(dense, thin, rtol=0.0, atol=1e-12)


def test_over_words_the_stages_retire():
    X, y = streams()["words"]
    learner = rue.Staged()
    learner.run(X, y)
    assert learner._point.running.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_the_gradients_of_mapped_features_are_the_sums_of_the_definition():
    """S = Σ g_t φ_t of D1, from the features that each round was predicted with."""
    X, y = streams()["product"]
    learner, S = rue.Staged(), np.zeros((2**18 + 2, 2))
    for x, label in zip(X[:300], y[:300], strict=True):
        p = learner.predict(x)
        point = learner._point
        if point is not None:
            for k in range(2):
                for j in point.features[k, 1 : point.ends[k]].tolist():
                    S[j, k] += -label / (1.0 + math.exp(label * p))
        learner.update(x, label)
    assert np.abs(S).sum() > 0.0
    np.testing.assert_allclose(learner._point.gradients, S, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_the_frozen_model_knows_the_product_too(loss):
    X, y = streams()["product"]
    learner = rue.Staged(loss)
    learner.run(X[:2500], y[:2500])
    frozen = learner.frozen()
    p = frozen.predict_many(X[2500:])
    assert frozen.chosen
    assert np.mean(p * y[2500:] <= 0.0) < 0.15
    assert [frozen.predict(x) for x in X[2500:2510]] == p[:10].tolist()
    assert abs(frozen.risk - np.mean(losses(loss, p, y[2500:]))) < 0.15
    before = p.copy()
    learner.run(X[2500:], -y[2500:])
    assert np.array_equal(frozen.predict_many(X[2500:]), before)  # which later updates do not change


def test_parts_of_a_stream_merge():
    X, y = streams()["product"]
    base = rue.Staged()
    base.run(X[:1000], y[:1000])
    parts = [base.copy(), base.copy()]
    parts[0].run(X[1000:1500], y[1000:1500])
    assert merge(base, parts) == parts[0]
    parts[1].run(X[1500:2000], y[1500:2000])
    merged = merge(base, parts)
    assert merged.t == 2000
    np.testing.assert_allclose(
        merged._point.gradients,
        base._point.gradients + sum(part._point.gradients - base._point.gradients for part in parts),
        atol=1e-9,
    )
    wrong = np.mean(merged.run(X[2000:], y[2000:]) * y[2000:] <= 0.0)
    assert wrong < 0.2


def test_features_that_only_some_parts_saw_are_merged_at_their_places(tmp_path):
    """New features come in another order in every part; the merged learner has the raw weights of the linear one."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1200, 6))
    y = np.sign(X[:, 0] * X[:, 1] + X[:, 4] - X[:, 5])
    X[:400, 3:], X[400:800, [0, 4, 5]], X[800:, [1, 2, 3]] = 0.0, 0.0, 0.0
    X = sparse.csr_matrix(X)
    merged = []
    for learner in (rue.Staged(), rue.Mixture()):
        learner.run(X[:400, :3], y[:400])
        parts = [learner.copy(), learner.copy()]
        parts[0].run(X[400:800, :4], y[400:800])
        parts[1].run(X[800:], y[800:])
        merged.append(merge(learner, parts))
    staged, linear = merged
    assert np.array_equal(staged.point, linear.point)
    assert np.abs(staged.point[1:]).min() > 0.0
    first = staged._point.table.traits[staged._point.raw.lines[1:7], 0]  # the first value of each feature other than 0
    part = [X[:400], X[:400], X[:400], X[400:800], X[800:], X[800:]]
    assert first.tolist() == [own[:, [j]].data[0] for j, own in enumerate(part)]
    rue.save(staged, tmp_path / "m.rue")
    again = rue.load(tmp_path / "m.rue").learner
    assert again == staged
    assert np.array_equal(again.run(X, y), staged.run(X, y))


def test_the_report_says_what_stages_gained():
    X, y = streams()["product"]
    run = rue.learn(X, y)
    assert run.stages.gain > 500.0
    assert run.stages.price_at_most == pytest.approx(math.log(4.0))
    assert run.stages.members[0].loss == pytest.approx(run.members.loss)
    assert rue.learn(X, y, maps=None).stages is None
    assert "more than a linear model gained" in str(run.stages)


def test_the_mapped_certificate_holds_for_every_model_over_the_maps():
    """D1 over the raw and the mapped features, against models drawn at random and along the gradient."""
    X, y = streams()["product"]
    X, y = X[:400], y[:400]
    learner, rows, predictions = rue.Staged(), [], []
    for x, label in zip(X, y, strict=True):
        p = learner.predict(x)
        point, mapped = learner._point, {}
        for k in range(2 if point is not None else 0):
            for j in point.features[k, 1 : point.ends[k]].tolist():
                mapped[k, j] = mapped.get((k, j), 0.0) + 1.0
        rows.append(mapped)
        predictions.append(p)
        learner.update(x, label)
    run = rue.learn(X, y)
    assert np.array_equal(run.predictions, predictions)
    names = {name: i for i, name in enumerate(dict.fromkeys(name for row in rows for name in row))}
    Phi = np.zeros((len(rows), len(names)))
    for t, row in enumerate(rows):
        for name, value in row.items():
            Phi[t, names[name]] = value
    scales = run.learner.scales[1:]
    everything = np.hstack([np.ones((400, 1)), X / scales, Phi])
    slopes = -y / (1.0 + np.exp(y * run.predictions))
    S = slopes @ everything
    rng = np.random.default_rng(0)
    for radius in (0.1, 1.0, 5.0):
        certificate = run.mapped_certificate(radius)
        assert certificate.slope_norm == pytest.approx(np.linalg.norm(S), rel=1e-9)
        assert certificate.alone >= run.certificate(radius).alone
        for direction in [-S, *rng.normal(size=(20, S.size))]:
            u = radius * direction / np.linalg.norm(direction)
            regret = run.loss - losses("logistic", everything @ u, y).sum()
            assert regret <= certificate.alone + 1e-9
            assert run.loss - regret >= certificate.comparator_loss_at_least - 1e-9
    assert "bins, pairs and trees" in certificate.words
    with pytest.raises(rue.SettingsError, match="no maps"):
        rue.learn(X, y, maps=None).mapped_certificate(1.0)
