"""Learners that went on from one state with parts of a stream, and are merged."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import rue
from rue.learners import merge
from rue.learners.mixture.layout import CENTRE, GAPS, LOSSES, MIXED, UNIT, USED
from rue.learners.mixture.pool import COLUMNS
from rue.learners.mixture.standing import standing
from rue.learners.points import GRADIENTS, LARGEST, PENALTY, TOTAL
from rue.learners.softmax.classifier import SoftmaxMixture
from rue.models.file import load, save

pytestmark = pytest.mark.usefixtures("interpreted")

few = settings(max_examples=15, deadline=None)

LEARNERS = {
    "ogd": lambda: rue.OGD("hinge", "ball:2"),
    "ogd, averaged": lambda: rue.OGD("logistic", "ball:2", average="uniform"),
    "ogd, regularised": lambda: rue.OGD(rue.Regularised("logistic", 0.1), "ball:2"),
    "ogd on a ball elsewhere": lambda: rue.OGD("hinge", rue.Ball(1.0, [0.5, 0.0, 0.0, 0.0]), d=3),
    "subgradient on a box": lambda: rue.OGD("absolute", "box:-0.3,0.3", average="uniform"),
    "ogd on the simplex": lambda: rue.OGD("square", "simplex", average="t", d=3),
    "ogd on an intersection": lambda: rue.OGD("hinge", rue.Intersection(rue.Ball(1), rue.Orthant()), d=3),
    "adaptive": lambda: rue.AdaptiveOGD("logistic", "ball:3"),
    "perceptron": lambda: rue.Perceptron(average="uniform"),
    "svm": lambda: rue.SVM(0.1),
    "svm by time": lambda: rue.SVM(0.1, "t", project=True),
    "adagrad": lambda: rue.AdaGrad("logistic", average="uniform"),
    "adagrad on a box": lambda: rue.AdaGrad("hinge", "box:-0.1,0.1", average="t"),
    "adagrad, scaled": lambda: rue.AdaGrad("square", scale="largest", average="uniform"),
    "leader, linear": lambda: rue.FollowTheLeader("linear", "ball:1", d=3),
    "mixture": lambda: rue.Mixture(),
    "mixture of hinges": lambda: rue.Mixture("hinge"),
    "mixture of squares": lambda: rue.Mixture("square"),
    "mixture without intercept": lambda: rue.Mixture("absolute", intercept=False),
    "committee": lambda: rue.Mixture(members=["ogd", "adagrad", "mixture"]),
    "committee of squares": lambda: rue.Mixture("square", members=["ogd:domain=ball:1", "mixture"]),
    "mixture of quantiles": lambda: rue.Mixture("quantile:0.9"),
    "ogd of quantiles": lambda: rue.OGD("quantile:0.9", "ball:9", average="uniform"),
    "adagrad, robust": lambda: rue.AdaGrad("huber"),
    "ogd within a tolerance": lambda: rue.OGD("epsilon-insensitive:0.1", "ball:3"),
    "adagrad of counts": lambda: rue.AdaGrad("poisson", "box:-0.1,0.1"),
    "ogd of squared hinges": lambda: rue.OGD("squared-hinge", "ball:2"),
    "softmax": lambda: SoftmaxMixture(),
    "softmax without intercept": lambda: SoftmaxMixture(intercept=False),
}


def test_every_learner_and_loss_is_in_the_table():
    """`Staged` is not: its maps begin after 64 rounds, and it has tests of its own (test_staged)."""
    learners = [make() for make in LEARNERS.values()]
    algorithms = {type(rue.make("learner", name).algorithm) for name in rue.registry.registered("learner")}
    assert algorithms - {type(learner.algorithm) for learner in learners} == {type(rue.Staged().algorithm)}
    losses = {type(learner.loss).__name__ for learner in learners} - {"Regularised"}
    registered = {made.__name__ for made in rue.registry.registered("loss").values()}
    assert registered - losses == {"ZeroOne"}  # which has no gradient to learn from


def stream(seed, T, learner, d=3):
    random = np.random.default_rng(seed)
    X = random.standard_normal((T, d)) * [1.0, 10.0, 0.1][:d]
    score = X @ [1.0, -0.1, 5.0][:d] + 0.3 * random.standard_normal(T)
    task = learner.loss.task
    if task == "multiclass":
        return X, 1.0 + (score > -0.5) + (score > 0.5)
    return X, score + 7.0 if task == "regress" else np.where(score > 0, 1.0, -1.0)


def ran(learner, X, y):
    learner = learner.copy()
    learner.run(X, y)
    return learner


def finite(learner):
    return all(np.isfinite(array).all() for array in learner._point if isinstance(array, np.ndarray) and array.ndim > 1)


@pytest.fixture(params=LEARNERS, ids=lambda name: name)
def learner(request):
    return LEARNERS[request.param]()


def test_a_part_that_learnt_alone_comes_back_to_the_bit(learner):
    X, y = stream(1, 40, learner)
    for base in (learner, ran(learner, X[:20], y[:20])):
        alone = ran(base, X[20:], y[20:])
        merged = merge(base, [base.copy(), alone, base])
        assert merged == alone
        assert merged is not alone
        assert np.array_equal(merged.run(X, y), alone.run(X, y), equal_nan=True)
        assert merge(base, [base, base]) == base


@pytest.mark.parametrize("before", [0, 30])
def test_merged_learners_predict_learn_and_stay_in_their_set(learner, before, tmp_path):
    X, y = stream(2, 120, learner)
    base = ran(learner, X[:before], y[:before]) if before else learner
    parts = [ran(base, X[a : a + 30], y[a : a + 30]) for a in (before, 60, 90)]
    merged = merge(base, parts)
    assert merged.t == base.t + sum(part.t - base.t for part in parts)
    assert np.isfinite(merged.predict_many(X)).all()
    assert learner.loss.task == "multiclass" or merged.domain.contains(merged.point)
    if learner.algorithm.averaging:
        assert merged.domain.contains(merged.average)
    save(merged, tmp_path / "m.rue")  # which looks at the numbers when it is read
    again = load(tmp_path / "m.rue").learner
    assert again == merged
    predictions = merged.run(X, y)
    assert np.isfinite(predictions).all()
    assert np.array_equal(again.run(X, y), predictions)
    assert merged.t == base.t + sum(part.t - base.t for part in parts) + 120


@pytest.mark.parametrize("name", [name for name in LEARNERS if "mixture" not in name and "softmax" not in name])
def test_the_point_is_the_mean_of_the_points(name):
    learner = LEARNERS[name]()
    if "leader" in name or "committee" in name:
        return
    X, y = stream(3, 60, learner)
    base = ran(learner, X[:20], y[:20])
    parts = [ran(base, X[20:30], y[20:30]), ran(base, X[30:], y[30:])]
    merged = merge(base, parts)
    assert merged.point == pytest.approx(np.mean([part.point for part in parts], axis=0), rel=1e-12, abs=1e-14)
    if learner.algorithm.averaging:
        masses = [each._point.memory[TOTAL] for each in (base, *parts)]
        sums = [mass * each.average for mass, each in zip(masses, (base, *parts), strict=True)]
        mean = (sums[1] + sums[2] - sums[0]) / (masses[1] + masses[2] - masses[0])
        assert merged.average == pytest.approx(mean, rel=1e-9, abs=1e-12)
    own = [each._point.memory for each in (merged, base, *parts)]
    for place in (GRADIENTS, PENALTY):
        assert own[0][place] == pytest.approx(own[2][place] + own[3][place] - own[1][place], rel=1e-9)
    assert own[0][LARGEST] == max(m[LARGEST] for m in own[1:])


@few
@given(seed=st.integers(0, 10**6))
@pytest.mark.parametrize("loss", ["linear", "square"])
def test_the_merged_leader_is_the_leader_of_all_examples(loss, seed):
    random = np.random.default_rng(seed)
    d = 3 if loss == "linear" else 0
    learner = rue.FollowTheLeader(loss, "ball:1" if d else "interval:-9,9", intercept=not d, d=d)
    X, y = random.standard_normal((40, d)), random.standard_normal(40)
    base = ran(learner, X[:10], y[:10])
    merged = merge(base, [ran(base, X[10:20], y[10:20]), ran(base, X[20:], y[20:])])
    assert merged.point == pytest.approx(ran(learner, X, y).point, rel=1e-9, abs=1e-12)


def raw_weights(learner):
    """Of a pool: for each coordinate the weights of kinds 0 to 3, of features and labels as the data has them."""
    point = learner._point.laid_out()
    largest, squares, visits, first = point.stats[: learner.places, :4].T
    scales = np.sqrt(squares / visits), np.maximum(first, 0.001 * largest), largest, np.sqrt(squares / visits)
    r = len(point.rates)
    kinds = [point.weights[: learner.places, k * r : (k + 1) * r].astype(float) for k in COLUMNS]
    raw = np.array([kind / scale[:, None] for kind, scale in zip(kinds, scales, strict=True)]) * point.memory[UNIT]
    raw[:, 0] += point.memory[CENTRE]
    return raw


@pytest.mark.parametrize("loss", ["logistic", "hinge", "square", "absolute"])
@pytest.mark.parametrize("before", [0, 30])
def test_a_pool_of_parts(loss, before):
    learner = rue.Mixture(loss)
    X, y = stream(4, 120, learner)
    base = ran(learner, X[:before], y[:before]) if before else learner
    parts = [ran(base, X[before:70], y[before:70]), ran(base, X[70:], y[70:] + (3.0 if loss == "square" else 0.0))]
    merged = merge(base, parts)
    wanted = np.mean([raw_weights(part) for part in parts], axis=0)
    tolerance = 1e-5 if loss in ("logistic", "hinge") else 1e-9  # single precision for classes
    assert raw_weights(merged) == pytest.approx(wanted, rel=tolerance, abs=tolerance * np.abs(wanted).max())
    points = [each._point for each in (merged, *parts, *([base] if before else []))]
    lost = points[1].members[LOSSES] + points[2].members[LOSSES] - (points[3].members[LOSSES] if before else 0.0)
    assert points[0].members[LOSSES] == pytest.approx(lost, rel=1e-9)
    shown = standing(merged)
    assert shown.loss <= min(member.loss for member in shown.members if member.running) + shown.price_at_most + 1e-9
    seen = X[before:]
    assert points[0].scales()[1:] == pytest.approx(np.abs(X if before else seen).max(axis=0))


def test_the_second_order_kind_of_square_loss_knows_all_examples():
    """Kind 4 divides by the first value for square loss: its matrix is 1 + Σhzzᵀ, added up over the parts."""
    learner = rue.Mixture("square", intercept=False, d=2)
    random = np.random.default_rng(5)
    X, y = random.standard_normal((60, 2)), random.standard_normal(60)
    base = ran(learner, X[:20], y[:20])
    parts = [ran(base, X[20:40], y[20:40]), ran(base, X[40:], y[40:])]
    merged = merge(base, parts)
    r = len(merged._point.rates)
    found = [np.linalg.inv(each._point.matrices[0, :2, r : r + 2]) for each in (merged, base, *parts)]
    assert found[0] == pytest.approx(found[2] + found[3] - found[1], rel=1e-9)


def test_kinds_that_a_part_has_retired_stay_retired_and_one_always_runs():
    learner = rue.Mixture()
    X, y = stream(6, 60, learner)
    parts = [ran(learner, X[:30], y[:30]), ran(learner, X[30:], y[30:])]
    for part, gone in zip(parts, ((0, 1), (2, 3, 4, 5)), strict=True):
        retire(part._point, gone)
    merged = merge(learner, parts)
    assert running(merged) == [True, False, False, False, False, False]
    assert np.isfinite(merged.run(X, y)).all()
    parts = [ran(learner, X[:30], y[:30]), ran(learner, X[30:], y[30:])]
    retire(parts[0]._point, (1,))
    merged = merge(learner, parts)
    assert running(merged) == [True, False, True, True, True, True]
    assert merged._point.memory[USED] == 4.0


def running(learner):
    return [member.running for member in standing(learner).members[:: len(learner._point.rates)]]


def retire(point, kinds):
    for kind in kinds:
        place = point.seats[kind]
        last = point.experts().retire(place)
        for other in range(6):
            if point.seats[other] == last:
                point.seats[other] = place
        point.seats[kind] = -1 - last
    if (point.seats[4:] < 0).all():
        point.memory[USED] = -1.0


def test_too_many_features_together_retire_the_second_order_kinds():
    learner = rue.Mixture()
    random = np.random.default_rng(7)
    y = np.where(random.random(80) < 0.5, 1.0, -1.0)
    X = sparse.csr_array(np.kron(np.eye(2), random.standard_normal((40, 50))))
    parts = [ran(learner, X[:40], y[:40]), ran(learner, X[40:], y[40:])]
    assert [part._point.memory[USED] for part in parts] == [51.0, 51.0]
    merged = merge(learner, parts)
    assert merged._point.memory[USED] == -1.0
    assert np.isfinite(merged.run(X, y)).all()


@pytest.mark.parametrize("name", ["ogd", "adagrad", "mixture", "committee", "softmax"])
def test_features_that_only_some_parts_saw_are_aligned(name):
    """By name, by huge indices and by position: the same features, so the same predictions."""
    learner = LEARNERS[name]()
    random = np.random.default_rng(8)
    X, y = random.standard_normal((60, 6)), stream(8, 60, learner)[1]
    X[:20, 3:], X[20:40, [0, 4, 5]], X[40:, :3] = 0.0, 0.0, 0.0
    y = y if learner.loss.task != "regress" else np.sign(y)
    huge = np.array([5, 17, 2**20, 2**31, 2**31 + 7, 2**32 - 9])
    names = np.array(["e", "a", "c", "b", "f", "d"])

    def by_index(rows):
        at = sparse.csr_array(rows)
        return sparse.csr_array((at.data, huge[at.indices], at.indptr), shape=(len(rows), 2**32))

    def run_by_name(learner, rows, labels):
        learner = learner.copy()
        for row, label in zip(rows, labels, strict=True):
            learner.update({names[j]: row[j] for j in np.flatnonzero(row)}, label)
        return learner

    def merged(run):
        base = run(learner, X[:20], y[:20])
        return merge(base, [run(base, X[20:40], y[20:40]), run(base, X[40:], y[40:])])

    plain = merged(lambda learner, rows, labels: ran(learner, sparse.csr_array(rows), labels))
    wide = merged(lambda learner, rows, labels: ran(learner, by_index(rows), labels))
    named = merged(run_by_name)
    assert wide.numbering is not None
    wanted = plain.predict_many(sparse.csr_array(X))
    assert wide.predict_many(by_index(X)) == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    by_name = np.array([named.predict({names[j]: row[j] for j in range(6)}) for row in X])
    assert by_name == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    assert wide.run(by_index(X), y) == pytest.approx(plain.run(sparse.csr_array(X), y), rel=1e-6, abs=1e-9)


def test_a_base_that_has_not_begun_and_parts_of_different_widths():
    base = rue.OGD("hinge", "ball:1")
    parts = [base.copy(), base.copy()]
    parts[0].update(([0], [1.0]), 1.0)
    parts[1].update(([5], [1.0]), -1.0)
    merged = merge(base, parts)
    assert merged.d == 6
    assert merged.point == pytest.approx(np.mean([np.pad(parts[0].point, (0, 5)), parts[1].point], axis=0))


def test_softmax_weights_are_of_the_parts_that_know_a_class():
    learner = SoftmaxMixture()
    X, y = stream(9, 90, learner)
    base = ran(learner, X[:30], np.minimum(y[:30], 2.0))
    parts = [ran(base, X[30:60], np.minimum(y[30:60], 2.0)), ran(base, X[60:], y[60:])]
    merged = merge(base, parts)
    assert merged.classes == 3
    counts = [learner._point.counts[:3] for learner in (merged, base, *parts)]
    assert counts[0].tolist() == (counts[2] + counts[3] - counts[1]).tolist()
    x = X[0]

    def scores(learner):
        point = learner._point
        learner.predict(x)
        return point.scores.reshape(-1, point.members.shape[1])[:3]

    assert np.abs(scores(merged)[2] - scores(parts[1])[2]).max() < 0.1 * np.abs(scores(parts[1])[2]).max() + 0.05


def affine(point, n):
    """Of kinds 3 to 5 of a softmax pool: slope and value at 0 of every member's score, of features as they are."""
    mean, spread = point.centres[1:4].T
    slope = point.lines[1:4] * np.sqrt(n / spread)[:, None, None]
    return slope, point.lines[0] - np.tensordot(mean, slope, 1)


def test_softmax_members_score_as_the_mean_of_the_parts():
    """Kinds 3 to 5 are centred by means that differ from part to part: what a row scores must not depend on that."""
    learner = SoftmaxMixture()
    X, y = stream(10, 200, learner)
    X += 3.0
    base = ran(learner, X[:50], y[:50])
    parts = [ran(base, X[50:120], y[50:120]), ran(base, X[120:], y[120:])]
    merged = merge(base, parts)
    found, *wanted = (affine(each._point, each.t) for each in (merged, *parts))
    for k in range(2):
        assert found[k] == pytest.approx((wanted[0][k] + wanted[1][k]) / 2.0, rel=1e-9, abs=1e-9)
    centres = merged._point.centres[1:4]
    assert centres[:, 0] == pytest.approx(X.mean(axis=0), rel=1e-9)
    assert centres[:, 1] == pytest.approx(((X - X.mean(axis=0)) ** 2).sum(axis=0), rel=1e-9)
    sums = [each._point.line_sums for each in (merged, base, *parts)]
    assert sums[0] == pytest.approx(sums[2] + sums[3] - sums[1], rel=1e-9)


def test_classes_that_parts_number_differently():
    learner = SoftmaxMixture()
    X, y = stream(11, 90, learner)
    base = ran(learner, X[:30], np.minimum(y[:30], 2.0))
    swapped = np.where(y == 3.0, 4.0, y)
    one = ran(base, X[30:60], y[30:60])
    other, apart = ran(base, X[60:], y[60:]), ran(base, X[60:], swapped[60:])
    merged = merge(base, [one, other], classes=[[1, 2, 3], [1, 2, 4]])
    assert merged == merge(base, [one, apart])
    alone = merge(base, [base, other], classes=[None, [1, 2, 4]])
    assert alone.predict(X[0]) == pytest.approx(apart.predict(X[0]))
    assert other.classes == 3


@few
@given(seed=st.integers(0, 10**6), weight=st.sampled_from([1.0, 50.0]))
@pytest.mark.parametrize("loss", ["logistic", "square", "hinge"])
def test_the_price_of_mixing_stays_a_bound(loss, seed, weight):
    """Every part begins with the weights of the base, so the parts' prices do not simply add up."""
    random = np.random.default_rng(seed)
    learner = rue.Mixture(loss, members=["ogd:domain=ball:1", "adagrad", "ogd:domain=ball:30"])
    X = random.standard_normal((90, 2)) * 3.0
    y = np.sign(X @ random.standard_normal(2) + 1e-9) * np.where(np.arange(90) < 30, 1.0, -1.0)
    base, weights = learner.copy(), np.where(random.random(90) < 0.1, weight, 1.0)
    base.run(X[:30], y[:30], weights[:30])
    parts = [base.copy() for _ in range(3)]
    for k, part in enumerate(parts):
        part.run(X[30 + 20 * k : 50 + 20 * k], y[30 + 20 * k : 50 + 20 * k], weights[30 + 20 * k : 50 + 20 * k])
    merged = merge(base, parts)
    for _ in range(2):
        shown = standing(merged)
        assert shown.loss <= shown.best.loss + shown.price_at_most + 1e-9
        merged.run(X, y, weights)
    memory = merge(base, parts)._point.memory
    assert memory[MIXED] == pytest.approx(sum(p._point.memory[MIXED] for p in parts) - 2 * base._point.memory[MIXED])
    assert memory[GAPS] >= base._point.memory[GAPS]


def test_what_is_no_part_of_the_base_is_refused():
    base = rue.OGD("hinge", "ball:2")
    X, y = stream(12, 10, base)
    base.run(X, y)
    other = rue.OGD("hinge", "ball:3")
    with pytest.raises(rue.SettingsError, match=r"merge: parts\[1\] is OGD.*Ball.*3.*but the base is OGD"):
        merge(base, [base, other])
    with pytest.raises(rue.SettingsError, match=r"merge: parts\[0\] is OGD.*intercept=False"):
        merge(base, [rue.OGD("hinge", "ball:2", intercept=False)])
    with pytest.raises(rue.SettingsError, match=r"merge: parts\[0\] has learnt 0 examples and the base 10"):
        merge(base, [rue.OGD("hinge", "ball:2")])
    fixed = rue.OGD("square", "simplex")
    parts = [ran(fixed, np.ones((2, d)), np.ones(2)) for d in (2, 3)]
    with pytest.raises(rue.SettingsError, match="cannot grow, and the parts began with different numbers of features"):
        merge(fixed, parts)
    by_position = rue.OGD("hinge", "ball:2")
    by_name = by_position.copy()
    by_name.update({"a": 1.0}, 1.0)
    with pytest.raises(rue.SettingsError, match="some parts have learnt features by name and others by position"):
        merge(by_position, [by_name, base])


def test_features_whose_squares_underflow():
    learner = rue.Mixture()
    tiny, plain = np.array([[1e-200], [2e-200]] * 10), np.array([[1.0], [-2.0]] * 10)
    y = np.array([1.0, -1.0] * 10)
    parts = [ran(learner, tiny, y), ran(learner, plain, y)]
    merged = merge(learner, parts)
    assert math.isfinite(merged.predict([1.0]))
    assert merged._point.laid_out().stats[1, 1] == 50.0
    assert np.isfinite(merged.run(np.vstack([tiny, plain]), np.concatenate([y, y]))).all()
