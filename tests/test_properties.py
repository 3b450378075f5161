"""Properties over random and hostile streams: a few in `make test`, thousands in `make soak`."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import rue
from conftest import many

pytestmark = pytest.mark.soak

LEARNERS = {
    "ogd hinge ball": lambda: rue.OGD("hinge", "ball:2", average="uniform"),
    "ogd square ball": lambda: rue.OGD("square", "ball:2", "adaptive"),
    "ogd absolute box": lambda: rue.OGD("absolute", "box:-1,1"),
    "ogd logistic simplex": lambda: rue.OGD("logistic", "simplex", "sqrt:0.5"),
    "svm": lambda: rue.SVM(0.1),
    "adagrad scaled": lambda: rue.AdaGrad("logistic", scale="largest", average="uniform"),
    "perceptron": rue.Perceptron,
    "leader": lambda: rue.FollowTheLeader("linear", "ball:2"),
}
each = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


def random_stream(learner, seed, rows=None):
    """Streams of very different kinds: scales, sparsity, correlation, drift, long runs of one label."""
    rng = np.random.default_rng(seed)
    n, d = rows or int(rng.integers(1, 120)), 4
    X = rng.normal(size=(n, d)) * rng.choice([1e-3, 1.0, 30.0]) * (rng.random((n, d)) < rng.choice([0.2, 1.0]))
    if rng.random() < 0.3:
        X[:] = np.repeat(X[: n // 10 + 1], 10, axis=0)[:n]
    target = X @ rng.normal(size=d) + rng.normal(size=n) * rng.choice([0.0, 1.0])
    if rng.random() < 0.3:
        target[n // 2 :] *= -1.0
    if learner.loss.task == "classify":
        target = np.where(target > 0, 1.0, -1.0)
        if rng.random() < 0.3:
            target = np.sort(target)
    return X, target, rng


@each
def test_the_certificate_is_never_below_the_regret_against_any_point(make):
    for seed in range(many(60, 3000)):
        X, y, rng = random_stream(make(), seed)
        run = rue.learn(X, y, learner=make())
        Z = np.hstack([np.ones((len(y), 1)), X])
        domain = make().domain if make().domain.bounded else rue.Ball(3)
        certificate = run.certificate(domain=domain, units="raw")
        for _ in range(5):
            u = domain.project(rng.normal(size=5) * rng.choice([0.1, 1.0, 10.0]))
            loss = sum(make().loss.value(float(p), label) for p, label in zip(Z @ u, y, strict=True))
            loss += 0.5 * run.evidence.lambda_ * len(y) * float(u @ u)
            scale = abs(loss) + certificate.loss_total + np.abs(run.predictions).sum() * np.abs(y).max() + 1.0
            assert certificate.loss_total - loss <= certificate.regret_at_most + 1e-9 * scale
            assert certificate.comparator_loss_at_least <= loss + 1e-9 * scale


@each
def test_any_way_of_cutting_gives_the_same_bits(make):
    for seed in range(many(40, 2000)):
        X, y, rng = random_stream(make(), seed)
        whole = make()
        wanted = whole.run(sparse.csr_matrix(X), y)
        cut, found, k = make(), [], 0
        while k < len(y):
            size = int(rng.integers(1, 20))
            found.append(cut.run(sparse.csr_matrix(X[k : k + size]), y[k : k + size]))
            k += size
        assert np.array_equal(np.concatenate(found), wanted, equal_nan=True)
        assert cut == whole


@each
def test_dense_and_sparse_agree(make):
    for seed in range(many(40, 2000)):
        X, y, _ = random_stream(make(), seed)
        a, b = make().run(X, y), make().run(sparse.csr_matrix(X), y)
        scale = 1.0 + np.abs(a).max()
        if make().loss == rue.PerceptronLoss() or "Leader" in repr(make()):
            agree = np.abs(a - b) <= 1e-9 * scale  # a kink hit in one rounding only changes what follows
            assert agree.mean() > 0.99 or agree[: int(np.argmin(agree))].all()
        else:
            assert np.allclose(a, b, rtol=1e-9, atol=1e-9 * scale)


numbers = st.floats(allow_nan=True, allow_infinity=True, width=64)
rows = st.lists(numbers, min_size=3, max_size=3)


@each
@settings(max_examples=many(60, 5000))
@given(examples=st.lists(st.tuples(rows, st.sampled_from([-1.0, 1.0, 0.3, math.nan]), numbers), max_size=12))
def test_nothing_finite_or_not_poisons_the_point(make, examples):
    learner = make()
    learner.update(np.array([1.0, -2.0, 0.5]), 1.0)
    for x, y, weight in examples:
        before = learner.copy()
        try:
            learner.update(np.array(x), y, weight)
        except rue.DataError:
            assert learner == before
        assert np.isfinite(learner.point).all()
    assert np.isfinite(learner.predict(np.ones(3)))
