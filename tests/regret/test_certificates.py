"""Certificates D1 to D4 against formulas in NumPy, cvxpy, and each other."""

import copy
import itertools
import time
from fractions import Fraction

import cvxpy
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

import rue
from conftest import many
from rue.compiled import Kernel
from rue.regret.certificates.evidence import Evidence, open_evidence
from rue.regret.certificates.witnesses import NOTES, RATES, best_mixture
from rue.runs import accounts
from rue.runs.accounts import BEHIND
from rue.runs.driver import Driver
from rue.streams import Block

pytestmark = [pytest.mark.filterwarnings("ignore:Solution may be inaccurate"), pytest.mark.soak]
few = settings(max_examples=many(10, 300), suppress_health_check=list(HealthCheck))
LOSSES = ["logistic", "hinge", "square", "absolute", "squared-hinge", "huber:1", "quantile:0.3", "poisson"]


def stream(seed, rows=40, d=3, loss="logistic", scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, d)) * scale
    X[rng.random((rows, d)) < 0.3] = 0.0
    task = rue.make("loss", loss).task
    y = X @ rng.standard_normal(d) + rng.standard_normal(rows)
    if task == "classify":
        y = np.where(y > 0, 1.0, -1.0)
    if loss == "poisson":
        y = rng.poisson(1.0, rows).astype(float)
    return X, y, rng.random(rows) * 2


def value_and_slope(loss, p, y):
    made = rue.make("loss", loss)
    return np.array([(made.value(a, b), made.slope(a, b)) for a, b in zip(p, y, strict=True)]).T


def least(loss, Z, y, weights, radius):
    """The best in hindsight on a ball, by a conic solver."""
    u = cvxpy.Variable(Z.shape[1])
    p = Z @ u
    m = cvxpy.multiply(y, p)
    each = {
        "logistic": cvxpy.logistic(-m),
        "hinge": cvxpy.pos(1 - m),
        "square": cvxpy.square(p - y),
        "absolute": cvxpy.abs(p - y),
        "squared-hinge": cvxpy.square(cvxpy.pos(1 - m)),
        "huber:1": cvxpy.huber(p - y, 1) / 2,
        "quantile:0.3": cvxpy.maximum(0.3 * (y - p), 0.7 * (p - y)),
        "poisson": cvxpy.exp(p) - m,
    }[loss]
    problem = cvxpy.Problem(cvxpy.Minimize(weights @ each), [cvxpy.norm(u) <= radius])
    try:
        return problem.solve(solver="CLARABEL")
    except cvxpy.SolverError:
        assume(False)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("loss", LOSSES)
@few
@given(seed=st.integers(0, 10**6), radius=st.sampled_from([0.3, 1.0, 7.0]))
def test_the_comparator_never_loses_less_than_certified(loss, seed, radius):
    X, y, weights = stream(seed, loss=loss)
    predictions = np.random.default_rng(seed).standard_normal(len(y)) * 2
    square = {"curvature": True} if loss == "square" else {}
    shown = rue.certify(X, y, predictions, loss=loss, radius=radius, weights=weights, witnesses=[1, 5], **square)
    true = least(loss, np.c_[np.ones(len(y)), X], y, weights, radius)
    assert shown.comparator_loss_at_least <= true + 1e-6 * (1 + abs(true))
    losses, g = value_and_slope(loss, predictions, y)
    S = np.c_[np.ones(len(y)), X].T @ (weights * g)
    alone = weights @ (g * predictions) + radius * np.linalg.norm(S)
    assert shown.alone == pytest.approx(alone, rel=1e-9, abs=1e-9)
    assert shown.loss_total == pytest.approx(weights @ losses)
    assert shown.regret_at_most <= shown.alone + 1e-9 * abs(shown.alone)
    assert shown.regret_at_most == pytest.approx(shown.loss_total - shown.comparator_loss_at_least)


@few
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(1, 39), max_size=4))
def test_blocks_and_merged_shards_give_the_sums_of_the_whole(seed, cuts):
    X, y, weights = stream(seed)
    edges = sorted({0, *cuts, 40})
    parts = [rue.Block(X[a:b], y[a:b], weights[a:b]) for a, b in itertools.pairwise(edges)]
    options = {"units": "largest", "witnesses": 2.0}
    whole = rue.learn(X, y, weights=weights, learner=rue.OGD("logistic", "ball:2"), **options)
    streamed = rue.learn(parts, learner=rue.OGD("logistic", "ball:2"), **options)
    assert streamed.certificate(radius=2, units="largest") == whole.certificate(radius=2, units="largest")
    _losses, g = value_and_slope("logistic", whole.predictions, y)
    Z = np.c_[np.ones(40), X]
    S = Z.T @ (weights * g)
    formula = weights @ (g * whole.predictions) + 5 * np.linalg.norm(S)
    assert whole.certificate(radius=5).alone == pytest.approx(formula, rel=1e-9)
    in_units = weights @ (g * whole.predictions) + 5 * np.linalg.norm(S / np.maximum(np.abs(Z).max(axis=0), 1e-300))
    assert whole.certificate(radius=5, units="largest").alone == pytest.approx(in_units, rel=1e-9)
    shards = [rue.learn(part, learner=whole.learner, **options).evidence for part in parts]
    merged = shards[0]
    for shard in shards[1:]:
        merged = merged.merged(shard)
    A = sum(float(shard.ledger.sums[4]) for shard in shards)
    S = np.sum([shard.ledger.S for shard in shards], axis=0)
    assert merged.certificate(rue.Ball(3)).alone == pytest.approx(A + 3 * np.linalg.norm(S), rel=1e-9)
    true = least("logistic", Z, y, weights, 3.0)
    assert merged.certificate(rue.Ball(3)).comparator_loss_at_least <= true + 1e-6 * true


def entered(evidence, X, y, weights, predictions, intercept=True):
    evidence = copy.deepcopy(evidence)
    evidence.enter(Block(X, y, weights), predictions, intercept, 0)
    return evidence


@few
@given(seed=st.integers(0, 10**6), radius=st.sampled_from([0.3, 1.0, 7.0]), before=st.sampled_from([0, 13]))
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.usefixtures("interpreted")
def test_evidence_of_parts_is_that_of_one_pass_with_the_same_predictions(loss, seed, radius, before):
    X, y, weights = stream(seed, loss=loss)
    p = np.random.default_rng(seed).standard_normal(len(y)) * 2
    options = {"curvature": True} if loss == "square" else {}
    empty = open_evidence(rue.make("loss", loss), units="largest", witnesses=[1.0, 5.0], **options)
    base = empty
    if before:
        base = entered(base, X[:before], y[:before], weights[:before], p[:before])
    cuts = [slice(before, 20), slice(20, 31), slice(31, 40)]
    parts = [entered(base, X[a], y[a], weights[a], p[a]) for a in cuts]
    merged = base.merge([*parts, base])
    whole = entered(
        open_evidence(rue.make("loss", loss), units="largest", witnesses=[1.0, 5.0], **options), X, y, weights, p
    )
    for units in ("raw", "largest"):
        one, all_ = (evidence.certificate(rue.Ball(radius), units) for evidence in (merged, whole))
        for name in ("alone", "loss_total", "slope_times_prediction", "slope_norm"):
            assert getattr(one, name) == pytest.approx(getattr(all_, name), rel=1e-9, abs=1e-9)
        if loss == "square":
            assert one.comparator_loss_at_least == pytest.approx(all_.comparator_loss_at_least, rel=1e-9, abs=1e-9)
    assert merged.scales() == pytest.approx(whole.scales(), rel=0, abs=0)
    shown = merged.certificate(rue.Ball(radius))
    true = rue.best_in_hindsight(X, y, loss=loss, radius=radius, weights=weights).value
    assert shown.comparator_loss_at_least <= true + 1e-9 * (1 + abs(true))
    assert merged.ledger.sums == pytest.approx(whole.ledger.sums, rel=1e-9)
    points = merged.pool.table[:, : merged.pool.radii.size]
    assert (np.linalg.norm(points, axis=0) <= merged.pool.radii * (1 + 1e-12)).all()
    later = entered(merged, X, y, weights, p)  # it goes on
    again = rue.best_in_hindsight(
        np.tile(X, (2, 1)), np.tile(y, 2), loss=loss, radius=radius, weights=np.tile(weights, 2)
    )
    proved = later.certificate(rue.Ball(radius)).comparator_loss_at_least
    assert proved <= again.value + 1e-9 * (1 + abs(again.value))


def test_evidence_that_one_part_alone_has_comes_back_to_the_bit():
    X, y, weights = stream(1)
    p = np.zeros(40)
    base = entered(open_evidence(rue.make("loss", "logistic"), witnesses=2.0), X[:20], y[:20], weights[:20], p[:20])
    part = entered(base, X[20:], y[20:], weights[20:], p[20:])
    merged = base.merge([base, part, base])
    assert merged is not part
    for name in ("ledger", "pool", "digest"):
        for one, other in zip(getattr(merged, name), getattr(part, name), strict=True):
            for mine, theirs in zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]:
                assert np.array_equal(mine, theirs)
    assert base.merge([base]).ledger.sums.tolist() == base.ledger.sums.tolist()
    with pytest.raises(rue.SettingsError, match="cannot be merged"):
        base.merge([part, open_evidence(rue.make("loss", "hinge"))])


def test_evidence_of_wide_parts_and_of_regularised_rounds():
    X, y, weights = stream(2, rows=60, d=4)
    huge = np.array([3, 2**23, 2**30, 2**32 - 2])

    def wide(a):
        rows = sparse.csr_array(X[a])
        return sparse.csr_array((rows.data, huge[rows.indices], rows.indptr), shape=(rows.shape[0], 2**32))

    p = np.random.default_rng(2).standard_normal(60)
    base = open_evidence(rue.make("loss", "logistic"), units="largest", witnesses=2.0)
    base = entered(base, wide(slice(20)), y[:20], weights[:20], p[:20])
    parts = [entered(base, wide(a), y[a], weights[a], p[a]) for a in (slice(20, 40), slice(40, 60))]
    one = base.merge(parts).certificate(rue.Ball(2.0), "largest")
    all_ = entered(open_evidence(rue.make("loss", "logistic"), units="largest"), X, y, weights, p)
    assert one.alone == pytest.approx(all_.certificate(rue.Ball(2.0), "largest").alone, rel=1e-9)
    base = open_evidence(rue.make("loss", "hinge"), lambda_=0.1)
    parts = [copy.deepcopy(base), copy.deepcopy(base)]
    for part, a in zip(parts, (slice(30), slice(30, 60)), strict=True):
        part.enter(Block(X[a], y[a]), p[a], True, 0)
        part.penalty = 3.0
    assert base.merge(parts).penalty == 6.0


def witness(X, y, weights, U, rate, scaled=None):
    """Projected OGD on the ball, the adaptive step times a rate, on rows in its own units: c = Σℓ − A, and S."""
    w, S, c, G = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0.0, 0.0
    for x, z, label, weight in zip(X, X if scaled is None else scaled, y, weights, strict=True):
        p = w @ z
        g = -weight * label / (1 + np.exp(label * p))
        c += weight * np.log1p(np.exp(-label * p)) - g * p
        S += g * x
        G += g * g * (z @ z)
        w = w - rate * np.sqrt(2) * U / np.sqrt(G) * g * z if G > 0 else w
        w *= min(1.0, U / max(np.linalg.norm(w), 1e-300))
    return c, S


@few
@given(seed=st.integers(0, 10**6))
def test_witnesses_are_projected_descent_with_the_adaptive_step(seed):
    X, y, weights = stream(seed)
    weights[3] = 0.0
    run = rue.learn(sparse.csr_matrix(X), y, weights=weights, witnesses=[0.5, 4.0])
    Z = np.c_[np.ones(40), X]
    pool = run.evidence.pool
    wanted = [witness(Z, y, weights, U, rate) for U in (0.5, 4.0) for rate in RATES]
    assert pool.constants() == pytest.approx([c for c, _ in wanted], rel=1e-9)
    assert np.allclose([pool.sum_of(i, 4) for i in range(12)], [S for _, S in wanted], rtol=1e-9, atol=1e-9)
    best = max(c - 4.0 * np.linalg.norm(S) for c, S in wanted)
    shown = run.certificate(radius=4, units="raw")
    assert shown.witnesses == 2 * len(RATES)
    assert shown.comparator_loss_at_least >= best - 1e-9 * abs(best)  # a mixture may be better
    assert shown.comparator_loss_at_least <= least("logistic", Z, y, weights, 4.0) + 1e-6


@pytest.mark.parametrize("units", ["raw", "largest"])
def test_witnesses_on_rows_with_more_features_than_are_noted_at_once(units):
    rng = np.random.default_rng(8)
    X, y, weights = rng.normal(size=(30, 2 * NOTES + 76)), np.sign(rng.normal(size=30)), rng.uniform(0.5, 2.0, 30)
    X[:, 5] = 0.0
    run = rue.learn(sparse.csr_matrix(X), y, weights=weights, learner=rue.OGD(), witnesses=2.0, units=units)
    Z = np.c_[np.ones(30), X]
    most = np.maximum.accumulate(np.abs(Z)) if units == "largest" else np.ones_like(Z)
    scaled = np.divide(Z, most, out=np.zeros_like(Z), where=most > 0.0)
    for i, rate in enumerate(RATES):
        c, S = witness(Z, y, weights, 2.0, rate, scaled)
        assert run.evidence.pool.constants()[i] == pytest.approx(c, rel=1e-9)
        assert np.allclose(run.evidence.pool.sum_of(i, Z.shape[1]), S, rtol=1e-9, atol=1e-9)


def test_a_mixture_of_witnesses_is_near_the_best_one():
    rng = np.random.default_rng(0)
    c, S = rng.random(6) + 5.0, rng.standard_normal((6, 4))
    theta = cvxpy.Variable(6, nonneg=True)
    best = cvxpy.Problem(cvxpy.Maximize(theta @ c - 2.0 * cvxpy.norm(S.T @ theta)), [cvxpy.sum(theta) == 1]).solve(
        solver="CLARABEL"
    )
    found = best_mixture(c, S @ S.T, 2.0)
    assert max(c - 2.0 * np.linalg.norm(S, axis=1)) < found <= best + 1e-6
    assert found >= best - 0.05 * abs(best)
    assert best_mixture(np.array([np.nan, 1.0]), np.array([[1.0, np.inf], [np.inf, np.inf]]), 1.0) == -np.inf


@few
@given(seed=st.integers(0, 10**6), dense=st.booleans())
def test_witnesses_in_units_of_the_largest_magnitude(seed, dense):
    X, y, weights = stream(seed)
    scales = np.array([1.0, 1024.0, 2.0**-9])
    kind = np.asarray if dense else sparse.csr_matrix
    first, second = (
        rue.learn(kind(M), y, weights=weights, witnesses=3.0, units="largest").certificate(radius=3)
        for M in (X, X * scales)
    )
    assert second.regret_at_most == pytest.approx(first.regret_at_most, rel=1e-12, abs=1e-12)
    assert second.alone == pytest.approx(first.alone, rel=1e-12)
    assert first.units == "largest"


@pytest.mark.usefixtures("interpreted")
@few
@given(seed=st.integers(0, 10**6), lambda_=st.sampled_from([0.01, 0.3]), bounded=st.booleans())
def test_regularised_rounds(seed, lambda_, bounded):
    X, y, weights = stream(seed)
    domain = "ball:0.7" if bounded else "reals"
    learner = rue.OGD(rue.Regularised("hinge", lambda_), domain, f"strong:{lambda_}")
    run = rue.learn(X, y, weights=weights, learner=learner)
    shown = run.certificate()
    assert shown.theorem == "D2"
    Z, W = np.c_[np.ones(40), X], weights.sum()
    single, points = learner.copy(), []
    for x, label, weight in zip(X, y, weights, strict=True):
        points.append(single.point if single.t else np.zeros(4))
        single.update(x, label, weight)
    norms = np.sum(np.square(points), axis=1)
    losses, g = value_and_slope("hinge", run.predictions, y)
    assert shown.loss_total == pytest.approx(weights @ (losses + lambda_ / 2 * norms))
    # sup over K of A − ⟨S, u⟩ + ½λΣ(‖w‖² − ‖u‖²), by a conic solver
    u = cvxpy.Variable(4)
    S, A = Z.T @ (weights * g), weights @ (g * run.predictions)
    best = cvxpy.Problem(
        cvxpy.Maximize(-S @ u - lambda_ * W / 2 * cvxpy.sum_squares(u)), [cvxpy.norm(u) <= 0.7] if bounded else []
    ).solve(solver="CLARABEL")
    assert shown.alone == pytest.approx(A + lambda_ / 2 * weights @ norms + best, rel=1e-5, abs=1e-5)
    u = cvxpy.Variable(4)
    loss = weights @ cvxpy.pos(1 - cvxpy.multiply(y, Z @ u)) + lambda_ * W / 2 * cvxpy.sum_squares(u)
    true = cvxpy.Problem(cvxpy.Minimize(loss), [cvxpy.norm(u) <= 0.7] if bounded else []).solve(solver="CLARABEL")
    assert shown.comparator_loss_at_least <= true + 1e-6 * true


@pytest.mark.parametrize("domain", ["reals", "ball:0.5", "ball:100", "box:-0.2,0.3", "simplex", "l1-ball:0.4"])
@pytest.mark.parametrize("wide", [False, True])
def test_curvature_is_exact(domain, wide):
    X, y, weights = stream(1, rows=3 if wide else 40, d=5, loss="square")
    run = rue.learn(X, y, weights=weights, learner=rue.OGD("square", "ball:1"), curvature=True)
    shown = run.certificate(domain=domain)
    Z, u = np.c_[np.ones(len(y)), X], cvxpy.Variable(6)
    inside = {
        "reals": [],
        "ball:0.5": [cvxpy.norm(u) <= 0.5],
        "ball:100": [cvxpy.norm(u) <= 100],
        "box:-0.2,0.3": [u >= -0.2, u <= 0.3],
        "simplex": [u >= 0, cvxpy.sum(u) == 1],
        "l1-ball:0.4": [cvxpy.norm1(u) <= 0.4],
    }[domain]
    true = cvxpy.Problem(cvxpy.Minimize(weights @ cvxpy.square(Z @ u - y)), inside).solve(solver="CLARABEL")
    assert shown.comparator_loss_at_least == pytest.approx(true, rel=1e-6, abs=1e-6)
    assert shown.theorem == "D4" or true < 1e-6


def test_off_centre_balls_too():
    X, y, weights = stream(5, loss="square")
    K = rue.Ball(0.5, centre=[1.0, -1.0, 0.5, 2.0])
    shown = rue.learn(X, y, weights=weights, learner=rue.OGD("square", "ball:1"), curvature=True).certificate(domain=K)
    u = cvxpy.Variable(4)
    loss = weights @ cvxpy.square(np.c_[np.ones(40), X] @ u - y)
    true = cvxpy.Problem(cvxpy.Minimize(loss), [cvxpy.norm(u - K.centre) <= 0.5]).solve(solver="CLARABEL")
    assert shown.comparator_loss_at_least == pytest.approx(true, rel=1e-6)


def test_squares_followed_by_the_leader_have_their_exact_regret():
    y = np.random.default_rng(3).random(50)
    run = rue.learn(
        np.ones((50, 1)), y, learner=rue.FollowTheLeader("square", "interval:0,1", intercept=False), curvature=True
    )
    exact = run.loss - np.sum((y - y.mean()) ** 2)
    assert run.certificate().regret_at_most == pytest.approx(exact, rel=1e-9)


def test_a_learner_that_goes_on_is_charged_only_for_this_pass():
    X, y, _ = stream(0)
    learnt = rue.learn(X, y, learner=rue.SVM(0.1)).learner
    second = rue.learn(X, y, learner=learnt)
    assert second.evidence.penalty == pytest.approx(second.learner.penalty - learnt.penalty)
    assert second.certificate().loss_total == pytest.approx(second.loss + second.evidence.penalty)


def test_refused_and_skipped_examples_are_left_out():
    X, y, _ = stream(0)
    X[5, 0] = 1e300
    X[7, 0] = np.nan
    run = rue.learn(X, y, learner=rue.OGD("hinge", "ball:1", "fixed:1"), bad="skip", witnesses=1.0, units="largest")
    kept = np.isfinite(run.predictions)
    assert kept.sum() < 40
    again = rue.certify(X[kept], y[kept], run.predictions[kept], loss="hinge", radius=1, witnesses=1.0, units="largest")
    shown = run.certificate(radius=1, units="largest")
    assert shown.comparator_loss_at_least == pytest.approx(again.comparator_loss_at_least, rel=1e-12)
    assert shown.left_out == 40 - kept.sum()
    assert "left out" in str(shown)


def test_unsorted_rows_are_seen_by_all():
    X, y, _ = stream(2, loss="square")
    M = sparse.csr_matrix(X)
    flipped = M.copy()
    for i in range(40):
        part = slice(M.indptr[i], M.indptr[i + 1])
        flipped.indices[part], flipped.data[part] = M.indices[part][::-1], M.data[part][::-1]
    flipped.has_sorted_indices = False
    options = {"learner": rue.OGD("square", "ball:2"), "witnesses": 2.0, "curvature": True, "units": "largest"}
    assert rue.learn(flipped, y, **options).certificate() == rue.learn(M, y, **options).certificate()


def test_words():
    X, y, _ = stream(0)
    run = rue.learn(X, y, witnesses=1)
    assert "in units of its largest magnitude" in str(run.certificate(radius=1))
    assert "nothing is proved about linear models in Reals()" in str(run.certificate(domain="reals"))
    with pytest.raises(rue.SettingsError, match="learn with units='largest'"):
        rue.learn(X, y, learner=rue.OGD()).certificate(units="largest")
    with pytest.raises(rue.SettingsError, match="units must be"):
        rue.learn(X, y, units="huge")
    with pytest.raises(rue.SettingsError, match="one radius or several"):
        rue.learn(X, y, witnesses=[1, -1])
    with pytest.raises(rue.SettingsError, match="square loss"):
        rue.learn(X, y, curvature=True)
    with pytest.raises(rue.SettingsError, match="raw units"):
        rue.learn(X, y, learner=rue.SVM(0.1), units="largest").certificate(units="largest")
    with pytest.raises(rue.SettingsError, match="different radii"):
        run.evidence.merged(rue.learn(X, y, witnesses=2).evidence)
    with pytest.raises(rue.SettingsError, match="cannot be merged"):
        run.evidence.merged(rue.learn(X, y, learner=rue.OGD("hinge")).evidence)
    wide = sparse.csr_matrix(([1.0], ([0], [5000])), shape=(1, 5001))
    with pytest.raises(rue.SettingsError, match="GiB"):
        rue.learn(wide, [0.5], curvature=True)


# Hostile data: whatever the numbers, nothing false is certified.


def exact_least_squares(Z, y):
    """min ‖Zu − y‖² by Gram–Schmidt in rational numbers."""
    columns = [[Fraction(float(v)) for v in column] for column in Z.T]
    rest, basis = [Fraction(float(v)) for v in y], []

    def without(v, b):
        along = sum(p * q for p, q in zip(v, b, strict=True)) / sum(q * q for q in b)
        return [p - along * q for p, q in zip(v, b, strict=True)]

    for v in columns:
        for b in basis:
            v = without(v, b)
        if any(v):
            basis.append(v)
    for b in basis:
        rest = without(rest, b)
    return float(sum(p * p for p in rest))


def test_curvature_proves_nothing_false_about_columns_that_nearly_depend_on_each_other():
    tight = 0
    for seed in range(many(30, 1000)):
        rng = np.random.default_rng(seed)
        rows, d = int(rng.integers(2, 12)), int(rng.integers(2, 5))
        X = rng.standard_normal((rows, d)) * 10.0 ** rng.integers(-8, 8, d)
        y = rng.standard_normal(rows)
        if seed % 3:
            X[:, 1] = X[:, 0] * (1.0 + rng.standard_normal(rows) * 10.0 ** rng.integers(-12, 0))
            y = X[:, 1] - X[:, 0] if seed % 3 == 1 else y
        true = exact_least_squares(np.c_[np.ones(rows), X], y)
        shown = rue.certify(X, y, np.zeros(rows), loss="square", domain="reals", curvature=True)
        assert shown.comparator_loss_at_least <= true * (1 + 1e-12)
        tight += shown.comparator_loss_at_least >= true * (1 - 1e-6) > 0.0
        for radius in (2.0, 1e8):
            shown = rue.certify(X, y, np.zeros(rows), loss="square", radius=radius, curvature=True)
            difference = float(np.sum((X[:, 1] - X[:, 0] - y) ** 2))  # what the point (0, −1, 1, 0, …) loses
            assert shown.comparator_loss_at_least <= min(difference, float(y @ y)) * (1 + 1e-12)
    assert tight  # and it proves what can be proved


@pytest.mark.parametrize("units", ["raw", "largest"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "square", "squared-hinge", "absolute", "poisson"])
def test_huge_and_tiny_numbers(loss, units):
    X, y, _ = stream(3, rows=12, loss=loss)
    p = np.random.default_rng(3).standard_normal(12)
    made, square = rue.make("loss", loss), {"curvature": True} if loss == "square" else {}
    zero = [made.value(0.0, label) for label in y]
    for features, predictions, weight, radius in [
        (1e300, 1.0, 1.0, 3.0),
        (1e160, 1.0, 1.0, 3.0),
        (1e-300, 1.0, 1.0, 3.0),
        (5e-324, 1.0, 1.0, 3.0),
        (1.0, 1e300, 1.0, 3.0),
        (1.0, 1e16, 1.0, 3.0),
        (1.0, 1.0, 1e300, 3.0),
        (1.0, 1.0, 1e308, 3.0),
        (1.0, 1.0, 1e-280, 3.0),
        (1.0, 1.0, 0.0, 3.0),
        (1.0, 1.0, 1.0, 1e-300),
        (1.0, 1.0, 1.0, 1e308),
    ]:
        with np.errstate(all="ignore"):
            at_zero = float(np.sum(np.multiply(weight, zero)))
            given = X * features, y, p * predictions
        options = {"weights": np.full(12, weight), "witnesses": [radius], "units": units, **square}
        shown = rue.certify(*given, loss=loss, radius=radius, **options)
        assert shown.comparator_loss_at_least <= at_zero * (1 + 1e-9)
        assert not np.isnan([shown.regret_at_most, shown.alone, shown.comparator_loss_at_least]).any()
        assert str(shown)


def test_sums_lost_in_rounding_prove_nothing():
    """At 2⁶⁰ sums come in steps of 256: Σℓ and A, which differ by 1 in each round, drift apart by as much."""
    predictions = -np.array([2.0**60] + [2.0**20 + 127.5] * 29)
    shown = rue.certify(np.zeros((30, 1)), np.ones(30), predictions, loss="hinge", radius=1e-3, witnesses=1e-3)
    assert shown.loss_total - shown.slope_times_prediction > 7_000
    assert shown.comparator_loss_at_least <= 30.0


def test_wide_streams_cost_what_they_use():
    """2²⁴ features of which few occur: witnesses keep lines for those alone."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    columns = np.array([3, 1_000, 70_000, 2**23, 2**24 - 1])
    wide = sparse.csr_matrix((X.ravel(), np.tile(columns, 40), np.arange(0, 201, 5)), shape=(40, 2**24))
    options = {"learner": rue.OGD("logistic", "ball:2"), "witnesses": [1.0, 4.0], "units": "largest"}
    one, other = rue.learn(wide, y, **options), rue.learn(sparse.csr_matrix(X), y, **options)
    assert one.evidence.pool.table.size < 1_000
    assert one.evidence.digest is None
    other.evidence.digest = None  # of the narrow stream alone
    for units in ("raw", "largest"):
        shown, wanted = (run.certificate(radius=4, units=units) for run in (one, other))
        assert shown.comparator_loss_at_least == pytest.approx(wanted.comparator_loss_at_least, rel=1e-12)
    merged = one.evidence.merged(one.evidence)
    twice = other.evidence.merged(other.evidence)
    for K in (rue.Ball(4), rue.Box(-0.1, 0.1)):
        assert merged.certificate(K).comparator_loss_at_least == pytest.approx(
            twice.certificate(K).comparator_loss_at_least, rel=1e-12
        )


def test_features_that_a_learner_has_numbered_are_not_numbered_again(interpreted):
    """Places are no indices: entered as such they would be new features, also of the learner, which has no room."""
    rng = np.random.default_rng(0)
    columns = np.array([3, 70_000, 2**24 - 1])
    own, other = (open_evidence(rue.Logistic(), witnesses=[1.0, 4.0]) for _ in range(2))
    learner = rue.OGD("logistic", "ball:2")
    for used in (columns[:2], columns):
        values, ends = rng.standard_normal(4 * used.size), np.arange(0, 4 * used.size + 1, used.size)
        wide = sparse.csr_matrix((values, np.tile(used, 4), ends), shape=(4, 2**24))
        block, p = Block(wide, np.array([1.0, -1.0, 1.0, 1.0])), rng.standard_normal(4)
        numbered = learner.widen(block)
        own.follow(learner)
        own.enter(numbered, p, True, 0)
        other.enter(block, p, True, 0)
    assert learner.numbering.known == 3
    found, wanted = (evidence.certificate(rue.Ball(3.0)) for evidence in (own, other))
    assert (found.regret_at_most, found.slope_norm) == (wanted.regret_at_most, wanted.slope_norm)


def test_merging_shards_that_used_other_features_and_kept_other_things():
    X, y, _ = stream(4)
    first = rue.learn(sparse.csr_matrix(X[:20, :2]), y[:20], witnesses=2, units="largest").evidence
    second = rue.learn(sparse.csr_matrix(X[20:]), y[20:], witnesses=2, units="largest").evidence
    both, back = first.merged(second), second.merged(first)
    assert both.certificate(rue.Ball(2), "largest").comparator_loss_at_least == pytest.approx(
        back.certificate(rue.Ball(2), "largest").comparator_loss_at_least
    )
    Z = np.r_[np.c_[X[:20, :2], np.zeros(20)], X[20:]]
    assert both.scales().tolist() == [1.0, *np.abs(Z).max(axis=0)]
    true = least("logistic", np.c_[np.ones(40), Z], y, np.ones(40), 2.0)
    assert both.certificate(rue.Ball(2), "raw").comparator_loss_at_least <= true * (1 + 1e-6)
    assert both.certificate(rue.Ball(2)) == both.certificate(rue.Ball(2), "largest")  # as the mixture's run says it
    plain = rue.learn(X[20:], y[20:], units="largest").evidence
    assert first.merged(plain).scales().tolist() == both.scales().tolist()
    assert first.pool.places.tolist() == [0, 1, 2]  # merging changes neither


def test_a_penalty_needs_a_regulariser():
    X, y, _ = stream(0)
    for penalty in (5.0, -1.0, np.nan, "x"):
        with pytest.raises(rue.SettingsError, match="penalty is"):
            rue.certify(X, y, np.zeros(40), loss="hinge", radius=1, penalty=penalty)
    for witnesses in ("many", True, [], object(), [[1.0]]):
        with pytest.raises(rue.SettingsError, match="one radius or several"):
            rue.certify(X, y, np.zeros(40), radius=1, witnesses=witnesses)


@pytest.mark.usefixtures("interpreted")
def test_narrow_regression_is_certified_exactly_though_nobody_asked():
    from rue.streams import blocks

    rng = np.random.default_rng(21)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0 + rng.normal(size=60)
    going = Driver(witnesses=(1.0, 10.0), units="largest", quick=True)
    for k in (0, 17, 34):
        going.learn(next(iter(blocks(X[k : k + 17 if k < 34 else None], y[k : k + 17 if k < 34 else None]))))
    found = going.evidence.certificate(rue.Ball(20.0), units="largest")
    best = rue.best_in_hindsight(X / np.abs(X).max(axis=0), y, loss="square", domain="ball:20")
    assert found.theorem == "D4"
    assert found.comparator_loss_at_least == pytest.approx(best.value, rel=1e-6)
    wide = Driver(witnesses=(1.0,), units="largest", quick=True)
    wide.learn(next(iter(blocks(np.hstack([X, np.ones((60, 70))]), y))))
    assert wide.evidence.curvature is None
    assert wide.evidence.certificate(rue.Ball(1.0), units="largest").theorem in ("D1", "D3")


def late(monkeypatch, fail=None):
    """A pass whose witnesses begin when the learner waits for them, may fail at a block; and its queue's lengths."""
    going, waiting, plain = Driver(rue.OGD(), witnesses=(1.0, 10.0), quick=True), [], Evidence.watch

    def slow(self, *shown, **how):
        limit = time.monotonic() + 60.0
        while not waiting and len(going.accounts._pending) <= BEHIND and time.monotonic() < limit:
            time.sleep(0.001)
        waiting.append(len(going.accounts._pending))
        if len(waiting) == fail:
            raise MemoryError
        plain(self, *shown, **how)

    monkeypatch.setattr(Evidence, "watch", slow)
    monkeypatch.setattr(accounts, "FEW", 0)  # blocks of a few rows get the helper thread too
    return going, waiting


def test_witnesses_may_be_behind_but_see_every_block_in_order(monkeypatch):
    X, y, _ = stream(3)
    wide = [sparse.csr_matrix(np.pad(X[k : k + 4], ((0, 0), (k, 0)))) for k in range(0, 40, 4)]  # so that all grows
    going, waiting = late(monkeypatch)
    for k, part in enumerate(wide):
        going.learn(Block(part, y[4 * k : 4 * k + 4]))
    found = going.evidence
    assert len(waiting) == 10
    assert max(waiting) == BEHIND + 1
    assert not going.accounts._pending
    monkeypatch.undo()
    at_once = Driver(rue.OGD(), witnesses=(1.0, 10.0), quick=True)
    for k, part in enumerate(wide):
        at_once.learn(Block(part, y[4 * k : 4 * k + 4]))
        assert at_once.evidence is not None
    assert found.pool.stored().keys() == at_once.evidence.pool.stored().keys()
    for name, array in at_once.evidence.pool.stored().items():
        assert found.pool.stored()[name].tobytes() == array.tobytes()


def test_what_fails_beside_the_learner_is_raised_and_stays(monkeypatch):
    X, y, _ = stream(3)
    going, _ = late(monkeypatch, fail=2)
    with pytest.raises(MemoryError):
        for k in range(40):
            going.learn(Block(X[k : k + 1], y[k : k + 1]))
    for _ in range(2):
        with pytest.raises(MemoryError):
            going.evidence  # noqa: B018


def test_a_bound_of_nothing_is_not_dressed_up():
    found = rue.certify([[1.0], [-1.0]], [1, -1], [0.0, 0.0], loss="logistic", radius=1e6)
    assert found.comparator_loss_at_least == 0.0
    assert str(found).startswith(
        "nothing is proved about linear models of norm ≤ 1,000,000; this learner had a mean loss"
    )
    assert found.within is None
    assert "regret is at most +1.4" in str(found)


def test_examples_that_do_not_count_leave_no_trace_among_many():
    """Rows are entered 64 at once: one of weight 0, or without a prediction, must not bring back an older one."""
    rng = np.random.default_rng(5)
    X, y, weights = rng.normal(size=(300, 3)), rng.choice([-1.0, 1.0], 300), rng.choice([0.0, 1.0, 2.0], 300)
    learnt = rue.learn(X, y, weights=weights, learner=rue.OGD("logistic", "ball:2", intercept=False)).ledger
    p = rue.OGD("logistic", "ball:2", intercept=False).run(X, y, weights)
    scored, said = weights > 0.0, p.copy()
    said[::5] = np.nan
    certified = open_evidence(rue.Logistic())
    assert certified.enter(rue.Block(X, y, weights), said, False, 0) == 60
    for ledger, counted in ((learnt, scored), (certified.ledger, scored & ~np.isnan(said))):
        g = -weights * y / (1.0 + np.exp(y * p))
        loss = weights * np.logaddexp(0.0, -y * p)
        assert ledger.sums[0] == counted.sum()
        assert ledger.sums[2] == pytest.approx(loss[counted].sum(), rel=1e-12)
        np.testing.assert_allclose(ledger.S, g[counted] @ X[counted], rtol=1e-10, atol=1e-12)


@rue.parameter
class Fourth(rue.Loss):
    """(p − y)⁴, which overflows at predictions that a square would take."""

    def value(self, p, y):
        return (p - y) ** 4

    def slope(self, p, y):
        return 4.0 * (p - y) ** 3


@pytest.mark.parametrize(("loss", "far"), [("poisson", 800.0), (Fourth(), 1e74), (Fourth(), -1e74)])
def test_losses_that_overflow_at_ordinary_predictions_are_left_out(loss, far, monkeypatch):
    """Decision 0020: what could not be added up is left out and counted; the other rows are certified as without it."""
    monkeypatch.setattr(Kernel, "resolve", lambda kernel, *args: kernel.interpreted)
    X, y, p = np.array([[1.0], [2.0], [1.0], [0.5]]), np.array([1.0, 2.0, 1.0, 3.0]), np.array([0.0, far, 0.1, 0.2])
    kept = np.array([True, False, True, True])
    shown = rue.certify(X, y, p, loss=loss, radius=1.0, witnesses=1.0)
    wanted = rue.certify(X[kept], y[kept], p[kept], loss=loss, radius=1.0, witnesses=1.0)
    assert shown.left_out == 1
    assert np.isfinite(shown.regret_at_most)
    assert shown.loss_total == wanted.loss_total
    assert shown.slope_norm == wanted.slope_norm
    assert shown.regret_at_most == wanted.regret_at_most


@pytest.mark.parametrize(
    "learner", [None, rue.OGD("poisson", "reals", "fixed:1"), rue.AdaptiveOGD("poisson", "ball:900")]
)
def test_a_learner_refuses_rows_whose_loss_overflows(learner, monkeypatch):
    monkeypatch.setattr(Kernel, "resolve", lambda kernel, *args: kernel.interpreted)
    X, y = np.array([[1.0], [1.0], [900.0], [1.0]] * 3), np.array([900.0, 700.0, 1.0, 3.0] * 3)
    run = rue.learn(X, y, learner=learner or rue.Mixture("poisson"))
    assert np.isfinite(run.evidence.ledger.sums).all()
    assert np.isfinite(run.evidence.ledger.S).all()


@pytest.mark.parametrize("size", [1, 37, 400])
def test_any_models_predictions_are_certified_over_maps(size):
    """D1 over the features and what maps make of them, with φ from the plain Python of the maps."""
    from rue.maps import Pairs, Trees, map_rows

    rng = np.random.default_rng(0)
    X, p = rng.normal(size=(400, 3)), rng.normal(size=400)
    y, weights = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0), 1.0 + np.arange(400) % 2
    p[17], weights[30] = np.nan, 0.0  # which is in no sum, and no past
    used = np.flatnonzero(np.isfinite(p) & (weights > 0.0))
    rows = map_rows((Pairs(), Trees()), X[used], p[used])
    slopes = -weights[used] * y[used] / (1.0 + np.exp(y[used] * p[used]))
    sums = {}
    for g, row in zip(slopes, rows, strict=True):
        for k, features in enumerate(row):
            for j in features:
                sums[k, j] = sums.get((k, j), 0.0) + g
    raw = slopes @ np.column_stack([np.ones(used.size), X[used]])
    norm = np.sqrt(sum(s * s for s in sums.values()) + raw @ raw)
    blocks = [rue.Block(X[i : i + size], y[i : i + size], weights[i : i + size]) for i in range(0, 400, size)]
    certificate = rue.certify(blocks, None, p, loss="logistic", radius=2.0, maps="auto")
    A, loss = slopes @ p[used], weights[used] @ np.logaddexp(0.0, -y[used] * p[used])
    assert certificate.slope_norm == pytest.approx(norm, rel=1e-12)
    assert certificate.alone == pytest.approx(A + 2.0 * norm, rel=1e-9)
    assert certificate.comparator_loss_at_least == pytest.approx(max(0.0, loss - A - 2.0 * norm), rel=1e-9)
    assert "bins, pairs and trees" in certificate.words
    sparse_rows = rue.certify(sparse.csr_matrix(X), y, p, weights=weights, loss="logistic", radius=2.0, maps="auto")
    assert sparse_rows.alone == pytest.approx(certificate.alone, rel=1e-12)


@pytest.mark.parametrize("asked", [{"domain": "box:-1,1"}, {"radius": 1, "window": (1, 2)}, {"radius": 1, "maps": "x"}])
def test_what_cannot_be_certified_over_maps_is_refused(asked):
    with pytest.raises(rue.SettingsError, match="certify: "):
        rue.certify(np.eye(2), [1, -1], [0.0, 0.0], **{"maps": "auto", **asked})
