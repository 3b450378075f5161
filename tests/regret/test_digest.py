"""The digest of a narrow stream (D3) against Jensen's inequality, the best in hindsight, and itself in parts."""

import copy

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import rue
from conftest import many
from rue.errors import DataError
from rue.models.file import Model, load_model, save_model
from rue.regret.certificates.digest import CELLS, NARROW, condenses, open_digest, shelved
from rue.regret.certificates.evidence import open_evidence
from rue.regret.certificates.witnesses import open_pool

pytestmark = pytest.mark.soak
few = settings(max_examples=many(2, 100), suppress_health_check=list(HealthCheck), deadline=None)
LOSSES = [
    "logistic",
    "hinge",
    "squared-hinge",
    "perceptron",
    "square",
    "absolute",
    "huber:0.5",
    "quantile:0.3",
    "epsilon-insensitive:0.2",
]


def stream(seed, rows, d=3, loss="logistic"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, d)) + np.linspace(0.0, 2.0, rows)[:, None]  # it drifts
    X[rng.random((rows, d)) < 0.2] = 0.0
    y = X @ rng.standard_normal(d) + rng.standard_normal(rows)
    if rue.make("loss", loss).task == "classify":
        y = np.where(y > 1.0, 1.0, -1.0)
    weights = rng.random(rows) * 2
    weights[::7] = 0.0
    return X, y, weights


def digested(X, y, weights, loss, radii=(1.0, 5.0), *, scaled=False, cells=3, parts=1):
    """The evidence of predictions of 0, with a table of so few cells that it is reduced again and again."""
    evidence = open_evidence(rue.make("loss", loss), witnesses=radii, units="largest" if scaled else "raw")
    evidence.digest = open_digest(radii, scaled, cells)
    for part in np.array_split(np.arange(len(y)), parts):
        evidence.enter(rue.Block(X[part], y[part], weights[part]), np.zeros(part.size), True, 0)
    return evidence


def total(loss, u, X, y, weights):
    made = rue.make("loss", loss)
    return float(sum(w * made.value(p, b) for p, b, w in zip((X @ u).tolist(), y, weights, strict=True)))


@pytest.mark.parametrize("loss", LOSSES)
@few
@given(seed=st.integers(0, 10**6), scaled=st.booleans(), cells=st.integers(2, 5))
def test_no_point_loses_less_on_the_stream_than_on_the_means(loss, seed, scaled, cells):
    X, y, weights = stream(seed, 60, loss=loss)
    evidence = digested(X, y, weights, loss, scaled=scaled, cells=cells)
    digest = evidence.digest
    assert digest.totals[1] > 1  # reduced more than once
    assert digest.totals[0] < 4 * cells
    means, labels, n = digest.means(np.ones(4))
    Z = np.c_[np.ones(60), X]
    assert np.allclose(n @ means, weights @ Z)
    assert n @ labels == pytest.approx(weights @ y)
    assert n.sum() == pytest.approx(weights.sum())
    if rue.make("loss", loss).task == "classify":
        assert set(labels.tolist()) <= {-1.0, 1.0}  # exactly
    rng = np.random.default_rng(seed)
    for u in rng.standard_normal((5, 4)) * np.geomspace(0.1, 10.0, 5)[:, None]:
        on_stream = total(loss, u, Z, y, weights)
        assert total(loss, u, means, labels, n) <= on_stream * (1 + 1e-12) + 1e-12
    by = evidence.divisors("largest", None, 4) if scaled else np.ones(4)
    for K in (rue.Ball(0.5), rue.Ball(5.0), rue.Box(-1.0, 2.0)):
        true = rue.best_in_hindsight(Z / by, y, loss=loss, domain=K, weights=weights, intercept=False).value
        assert digest.at_least(evidence.loss, K, by, 1e-13) <= true + 1e-9
        assert evidence.certificate(K, "largest" if scaled else "raw").comparator_loss_at_least <= true + 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_a_short_stream_is_its_own_digest(loss):
    X, y, weights = stream(1, 100, loss=loss)
    evidence = digested(X, y, weights, loss, cells=CELLS)
    for radius in (0.5, 3.0):
        true = rue.best_in_hindsight(X, y, loss=loss, radius=radius, weights=weights)
        shown = evidence.certificate(rue.Ball(radius))
        assert true.at_least - 2e-6 * true.value <= shown.comparator_loss_at_least <= true.value
        assert shown.theorem == "D3" or true.value == 0.0


def test_a_thousand_cells_prove_nearly_all_where_the_features_are_few():
    X, y, weights = stream(2, 12_000)
    run = rue.learn(X, y, weights=weights, witnesses=[1, 5])
    assert run.evidence.digest.totals[1] > 2
    for radius in (1.0, 5.0):
        true = rue.best_in_hindsight(X, y, radius=radius, weights=weights).value
        shown = run.certificate(radius=radius, units="raw")
        assert shown.loss_total - shown.alone < 0.97 * true
        assert 0.99 * true < shown.comparator_loss_at_least <= true


@pytest.mark.parametrize("loss", ["logistic", "huber:0.5"])
def test_blocks_make_no_difference_and_shards_add_up(loss):
    X, y, weights = stream(3, 90, loss=loss)
    whole = digested(X, y, weights, loss)
    for parts in (2, 45):
        streamed = digested(X, y, weights, loss, parts=parts).digest
        for one, other in zip(streamed, whole.digest, strict=True):
            assert np.array_equal(one, other)
    first, second = (digested(X[a], y[a], weights[a], loss, cells=10) for a in (slice(40), slice(40, 90)))
    before = first.digest.table.copy()
    merged = first.merged(second)
    assert np.array_equal(first.digest.table, before)
    assert merged.digest.totals.tolist() == [10, 2, 10]
    assert merged.digest.cells().sum(axis=0) == pytest.approx(whole.digest.cells().sum(axis=0))
    true = rue.best_in_hindsight(X, y, loss=loss, radius=1, weights=weights).value
    assert 0.7 * true < merged.digest.at_least(merged.loss, rue.Ball(1.0), np.ones(4), 1e-13) <= true


def test_a_model_file_goes_on_bit_for_bit(tmp_path):
    X, y, _ = stream(4, 9_000)
    parts = [rue.Block(X[a:b], y[a:b]) for a, b in ((0, 5_000), (5_000, 9_000))]
    whole = rue.learn(parts, learner=rue.OGD(), witnesses=[2.0], units="largest")
    going = rue.learn(parts[0], learner=rue.OGD(), witnesses=[2.0], units="largest")
    save_model(Model(going.learner, going.evidence, going.labels), tmp_path / "m")
    again = load_model(tmp_path / "m")
    predictions = again.learner.run(X[5_000:], y[5_000:])
    again.evidence.watch(parts[1], predictions, True, parts[1].width + 1)
    assert again.evidence.digest.totals[1] == 2
    for one, other in zip(again.evidence.digest, whole.evidence.digest, strict=True):
        assert np.array_equal(one, other)


def test_digests_that_no_file_of_ours_holds():
    logistic, pool = rue.make("loss", "logistic"), open_pool(2.0, False)
    with pytest.raises(DataError, match="cannot be digested"):
        shelved(logistic, None, 4, 0, 0)
    with pytest.raises(DataError, match="cannot be digested"):
        shelved(rue.make("loss", "poisson"), pool, 4, 0, 0)
    for width, used in ((1, 0), (NARROW + 3, 0), (4, 4 * CELLS)):
        with pytest.raises(DataError, match="does not fit"):
            shelved(logistic, pool, width, used, 0)
    with pytest.raises(DataError, match="makes no sense"):
        shelved(logistic, pool, 4, 1, 0).require_sane()  # a cell without weight


def test_what_is_not_digested():
    assert {name for name in rue.names("loss") if not condenses(rue.make("loss", name))} >= {"linear", "poisson"}
    X, y, _ = stream(5, 30, loss="square")
    assert rue.learn(X, y, witnesses=1).evidence.digest is not None
    assert rue.learn(X, y).evidence.digest is None
    counts = rue.learn(X, np.arange(30.0), learner=rue.OGD("poisson", "ball:1"), witnesses=1)
    assert counts.evidence.digest is None
    assert rue.learn(np.zeros((3, NARROW)), [1, -1, 1], witnesses=1).evidence.digest is None  # and an intercept
    wide = [
        sparse.csr_matrix(X[:20]),
        sparse.hstack([sparse.csr_matrix(X[20:]), sparse.csr_matrix(np.ones((10, 200)))]),
    ]
    blocks = [rue.Block(part, np.sign(label)) for part, label in zip(wide, (y[:20], y[20:]), strict=True)]
    run = rue.learn(blocks, witnesses=1)
    assert run.evidence.digest is None
    assert run.evidence.merged(rue.learn(X, np.sign(y), witnesses=1).evidence).digest is None
    short = rue.learn(X, np.sign(y), witnesses=1)
    assert short.evidence.digest.at_least(short.evidence.loss, rue.Reals(), np.ones(4), 0.0) == -np.inf


@pytest.mark.parametrize(("features", "weight"), [(1e-300, 1.0), (1e150, 1e-300), (1e300, 1.0), (1.0, 1e300)])
def test_huge_and_tiny_numbers_prove_nothing_false(features, weight):
    for loss in ("logistic", "square"):
        X, y, _ = stream(6, 60, loss=loss)
        weights = np.full(60, weight)
        for scaled in (False, True):
            evidence = digested(X * features, y, weights, loss, scaled=scaled)
            for radius in (1e-300, 1.0):
                shown = evidence.certificate(rue.Ball(radius), "largest" if scaled else "raw")
                assert not np.isnan(shown.comparator_loss_at_least)
                with np.errstate(all="ignore"):
                    at_zero = weight * total(loss, np.zeros(3), X, y, np.ones(60))
                assert shown.comparator_loss_at_least <= at_zero * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["logistic", "huber:0.5"])
@pytest.mark.parametrize("rows", [(30, 36, 42), (30, 36, 90), (30, 90, 150)], ids=["none", "one", "both"])
def test_parts_that_have_gathered_the_rows_of_the_base_with_their_own(loss, rows):
    """What is proved stays true; nothing is lost where at most one part has gathered its rows since the base."""
    X, y, weights = stream(6, 150, loss=loss)
    base = digested(X[: rows[0]], y[: rows[0]], weights[: rows[0]], loss, cells=10)
    cuts = [slice(rows[0], rows[1]), slice(rows[1], rows[2])]
    parts = [copy.deepcopy(base) for _ in cuts]
    for part, a in zip(parts, cuts, strict=True):
        part.enter(rue.Block(X[a], y[a], weights[a]), np.zeros(a.stop - a.start), True, 0)
    merged = base.merge(parts).digest
    seen = slice(rows[2])
    sums = np.c_[weights, weights * y, weights, weights[:, None] * X][seen].sum(axis=0)
    if rows != (30, 90, 150):
        assert merged.cells().sum(axis=0) == pytest.approx(sums, rel=1e-9)
    for radius in (0.5, 1.0, 4.0):
        true = rue.best_in_hindsight(X[seen], y[seen], loss=loss, radius=radius, weights=weights[seen]).value
        proved = merged.at_least(base.loss, rue.Ball(radius), np.ones(4), 1e-13)
        assert (0.25 if rows == (30, 90, 150) else 0.6) * true < proved <= true * (1 + 1e-9)
    assert base.digest.merge([part.digest for part in parts], nonnegative=False) is None or rows != (30, 90, 150)
