"""The learner in stages for several classes: what it promises, and that its state is exact in every form."""

import copy
import json
import math
import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import rue
from rue.learners.merging import merge
from rue.learners.mixture.layout import LATEST, SHARES
from rue.learners.staged.class_point import MOST_CLASSES
from rue.models.file import Model, from_bytes, to_bytes

RATES = np.geomspace(2.0**-7, 2.0, 4)


def product(n=3000, seed=0):
    """Three columns, and three classes that no linear model knows anything about."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, 1.0 + (X[:, 0] * X[:, 1] > 0.0) + (np.abs(X[:, 2]) > 1.0)


def streams():
    """Name → rows and labels: what maps help with, what they do not, and text, which they should leave alone."""
    rng = np.random.default_rng(0)
    n = 2000
    X = rng.normal(size=(n, 3))
    noise = rng.integers(1, 5, n).astype(float)
    words = sparse.random(n, 5000, 0.02, random_state=1, format="csr")
    words.data[:] = rng.poisson(0.5, words.nnz) + 1.0
    marks = sparse.csr_matrix((rng.random((n, 60)) < 0.2).astype(float))
    line = 1.0 + np.digitize(X @ [1.0, -2.0, 0.5] + rng.normal(size=n), [-2.0, 0.0, 2.0])
    late = np.where(np.arange(n) < n // 2, np.minimum(line, 2.0), line)  # classes that come late
    return {
        "product": product(n),
        "noise": (X, noise),
        "line": (X, line),
        "late": (X, late),
        "words": (words, noise),
        "marks": (marks, noise),
    }


def learnt(X, y, **settings):
    """Labels as text keep their order of arrival; the learner is the default one for several classes."""
    return rue.learn(X, [f"class {int(label):02d}" for label in y], task="multiclass", **settings)


def losses(p):
    return -np.log(np.abs(p))


@pytest.mark.parametrize("name", list(streams()))
def test_never_more_than_ln_M_above_the_linear_one_at_any_row(name):
    """M1; the linear stage is `SoftmaxMixture` itself, to the last bit."""
    X, y = streams()[name]
    staged, linear = learnt(X, y, maps="auto"), learnt(X, y, maps=None)
    excess = np.cumsum(losses(staged.predictions)) - np.cumsum(losses(linear.predictions))
    assert excess.max() <= math.log(4.0) * (1.0 + 1e-6)
    mine, theirs = staged.learner._point.raw, linear.learner._point
    tried = {"copies", "candidates", "trial"}  # a learner with stages is kept as it plays
    for array in theirs.layout:
        if array.saved and array.name not in tried and "copied" not in array.name:
            assert np.array_equal(getattr(mine, array.name), getattr(theirs, array.name)), array.name
    assert staged.stages.price_at_most == pytest.approx(math.log(4.0))
    assert staged.stages.members[0].loss == pytest.approx(linear.loss)
    running = staged.learner._point.running.tolist()
    assert running == ([1.0, 0.0, 0.0, 0.0] if name == "words" else [1.0] * 4)
    if name == "product":
        assert staged.stages.gain > 500.0
        assert np.mean(linear.predictions[1000:] <= 0.0) > 0.4
        assert np.mean(staged.predictions[1000:] <= 0.0) < 0.15
        assert staged.learner.point_in_places().tolist() == linear.learner.point_in_places().tolist()


def test_weights_above_one_cost_no_more_than_promised():
    X, y = product(800)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 7.0], 800)
    staged, linear = (learnt(X, y, weights=weights, maps=maps) for maps in ("auto", None))
    excess = np.cumsum(weights * losses(staged.predictions)) - np.cumsum(weights * losses(linear.predictions))
    assert excess.max() <= staged.stages.price_at_most + 1e-6
    assert staged.stages.price_at_most < 7.0 * math.log(4.0) + 30.0


def test_blocks_one_by_one_saved_and_loaded_are_one_pass_to_the_bit():
    X, y = product(700)
    y[400:] = np.where(X[400:, 0] > 1.5, 9.0, y[400:])  # a class that comes late, and whose number is far
    whole, parts, single = rue.StagedSoftmax(), rue.StagedSoftmax(), rue.StagedSoftmax()
    p = whole.run(X, y)
    assert np.array_equal(np.concatenate([parts.run(X[:333], y[:333]), parts.run(X[333:], y[333:])]), p)
    assert parts == whole
    for x, label, expected in zip(X[:500], y[:500], p[:500], strict=True):
        chances = single.predict(x)
        known = int(label) < len(chances) and chances[int(label)] > 0.0
        assert not known or chances[int(label)] == abs(expected)
        single.update(x, label)
    again = from_bytes(to_bytes(Model(single))).learner
    for other in (again, pickle.loads(pickle.dumps(single))):
        assert other == single
        assert np.array_equal(other.run(X[500:], y[500:]), p[500:])
        assert other == whole


def test_dense_and_sparse_rows_agree():
    X, y = product(1000)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense, thin = learnt(X, y, maps="auto"), learnt(sparse.csr_matrix(X), y, maps="auto")
    np.testing.assert_allclose(dense.predictions, thin.predictions, rtol=0.0, atol=1e-12)


def softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def implicit(z, a):
    """The s for which z + s minimises a·ln(1 + e^−q) + ½(q − z)²: s(1 + e^{z + s}) = a."""
    low, high = 0.0, a
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle * (1.0 + math.exp(min(z + middle, 700.0))) < a else (low, middle)
    return low


class Reference:
    """A stage in plain NumPy, from what it is now on: 2 kinds of 4 rates over numbers for each of 3 classes."""

    def __init__(self, pool, wide):
        offers, line = len(pool.offered), pool.lines[0]
        assert pool.given[0] == 1  # the feature that is always 1
        self.W, self.sums = np.zeros((2, 4, 3, wide)), np.zeros((2, 3, wide))
        for k in range(2):
            self.W[k, :, :, 0] = pool.weights[line, :3, 4 * k : 4 * k + 4].T
            self.sums[k, :, 0] = pool.sums[line, :3, k]
            for o in range(offers):
                self.W[k, :, :, -1 - o] = pool.offered[o, :3, 4 * k : 4 * k + 4].T + 1.0 / offers
                self.sums[k, :, -1 - o] = pool.offered_sums[o, :3, k]
        self.v, self.t = pool.experts().weights().reshape(2, 4), int(pool.memory[0])

    def predict(self, V):
        self.P = softmax(np.einsum("krcj,cj->krc", self.W, V))
        self.kinds = (self.v[..., None] * self.P).sum(axis=1) / self.v.sum(axis=1)[:, None]
        return (self.v[..., None] * self.P).sum(axis=(0, 1))

    def learn(self, V, c):
        self.t += 1
        v = self.v * self.P[..., c]
        self.v = (1.0 - 1.0 / (self.t + 1.0)) * v / v.sum() + 1.0 / (self.t + 1.0) / 8.0
        e = np.eye(3)[c]
        for k, left in enumerate((1.0, 0.99)):
            self.sums[k] = np.where(V != 0.0, left, 1.0) * self.sums[k] + ((self.kinds[k] - e)[:, None] * V) ** 2
            F = V / (1.0 + np.sqrt(self.sums[k]))
            along = (F * V).sum(axis=1)
            for i, rate in enumerate(RATES):
                wrong = 1.0 - self.P[k, i, c]
                part = self.P[k, i] * (1.0 - e) / wrong
                a = along[c] + part**2 @ along
                step = implicit(math.log(self.P[k, i, c] / wrong), rate * a)
                self.W[k, i] += step / a * (e - part)[:, None] * F


def test_every_stage_is_what_a_few_lines_of_numpy_say():
    """From the features that each round was predicted with; those of the first 66 rounds are the constant alone."""
    X, y = product(200)
    learner, wide, found, wanted, names, totals = rue.StagedSoftmax(), 6000, [], [], [{}, {}], []
    learner.run(X[:64], y[:64])
    references = [Reference(pool, wide) for pool in learner._point.pools]
    for x, label in zip(X[64:], y[64:], strict=True):
        chances, point = learner.predict(x), learner._point
        rows, logs = [], point.logs[:3]
        for k, offers in enumerate((1, 1, 3)):
            V = np.zeros((3, wide))
            V[:, 0] = 1.0
            for j in point.features[k, 1 : point.ends[k]].tolist() if k < 2 else []:
                V[:, names[k].setdefault(j, 1 + len(names[k]))] = 1.0
            for o in range(offers):
                V[:, -1 - o] = logs[:, o]
            rows.append(V)
        wanted.append([reference.predict(V) for reference, V in zip(references, rows, strict=True)])
        found.append([pool.mixed[:3, 0].copy() for pool in point.pools])
        mean = point.members[SHARES] @ [point.raw.mixed[:3, 0], *found[-1]] / point.members[SHARES].sum()
        totals.append(chances[1:] - (1.0 - chances[0]) * mean)
        learner.update(x, label)
        for reference, V in zip(references, rows, strict=True):
            reference.learn(V, int(label) - 1)
    assert max(map(len, names)) > 500
    # Implicit steps are solved to 2e-4 on average, and two features of a row may be hashed to the same.
    wrong = np.abs(np.array(found) - wanted)
    assert wrong.max() < 0.03
    assert wrong.mean() < 2e-4
    np.testing.assert_allclose(totals, 0.0, atol=1e-12)


def test_with_too_many_classes_the_stages_retire_for_good():
    X, y = product(600)
    y[300:] = 1.0 + np.arange(300) % (MOST_CLASSES + 8)
    learner, parts, linear = rue.StagedSoftmax(), rue.StagedSoftmax(), rue.SoftmaxMixture()
    p = learner.run(X[:300], y[:300])
    assert learner._point.running.tolist() == [1.0] * 4
    p = np.concatenate([p, learner.run(X[300:], y[300:])])
    assert learner._point.running.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert np.array_equal(np.concatenate([parts.run(X[:320], y[:320]), parts.run(X[320:], y[320:])]), p)
    assert max(pool.classes() for pool in learner._point.pools) <= MOST_CLASSES
    assert [len(pool.weights) for pool in learner._point.pools] == [1, 1, 1]  # what has retired takes no memory
    assert learner == parts
    excess = np.cumsum(losses(p)) - np.cumsum(losses(linear.run(X, y)))
    assert excess.max() <= math.log(4.0) * (1.0 + 1e-6)
    again = from_bytes(to_bytes(Model(learner))).learner
    assert np.array_equal(again.run(X[:50], y[:50]), learner.run(X[:50], y[:50]))


def test_the_arrays_of_the_stages_follow_the_features_in_use():
    X, y = product(3000)
    X = np.round(X, 1)
    learner = rue.StagedSoftmax()
    learner.run(X[:1], y[:1])
    assert sum(pool.weights.nbytes + pool.sums.nbytes for pool in learner._point.pools) < 2**22
    learner.run(X, y)
    for pool in learner._point.pools[:-1]:
        rows = len(pool.weights)
        assert pool.given[0] < rows <= max(4096, 2 * (int(pool.given[0]) + 1024))


def test_a_file_takes_the_memory_of_the_features_in_use():
    X, y = product(300)
    y[100:] = 1.0 + np.arange(200) % 20
    learner = rue.StagedSoftmax()
    learner.run(X, y)
    assert learner._point.running.all()

    def through_a_file():
        return from_bytes(to_bytes(Model(learner))).learner

    tracemalloc.start()
    try:
        again = through_a_file()
        assert again == learner
        assert tracemalloc.get_traced_memory()[1] < 2**26  # with a row for every feature 545 MB
    finally:
        tracemalloc.stop()
    for pool, other in zip(learner._point.pools, again._point.pools, strict=True):
        assert np.array_equal(pool.own_features(), other.own_features())
        assert np.array_equal(pool.laid_out().weights, other.laid_out().weights)


def test_parts_of_a_stream_merge():
    X, y = product()
    base = rue.StagedSoftmax()
    base.run(X[:1000], y[:1000])
    parts = [base.copy(), base.copy()]
    parts[0].run(X[1000:1500], y[1000:1500])
    assert merge(base, parts) == parts[0]
    parts[1].run(X[1500:2000], y[1500:2000])
    before = parts[0].copy()
    merged = merge(base, parts)
    assert merged.t == 2000
    assert parts[0] == before
    for pool, one, other, old in zip(
        merged._point.pools, parts[0]._point.pools, parts[1]._point.pools, base._point.pools, strict=True
    ):
        assert np.array_equal(pool.counts, one.counts + other.counts - old.counts)
    assert np.mean(merged.run(X[2000:], y[2000:]) <= 0.0) < 0.25
    swapped = merge(base, parts, [np.array([1, 2, 3, 4]), np.array([1, 2, 4, 3])])  # the second calls class 3 class 4
    assert swapped.classes == 4
    assert swapped.t == 2000


def test_classes_and_features_that_only_some_parts_have_met():
    X, y = product(1200)
    last = np.concatenate([np.zeros(600), np.ones(600)])[:, None]
    base, thin = rue.StagedSoftmax(), sparse.csr_matrix(np.hstack([X, np.zeros((1200, 8000)), last]))
    parts = [base.copy(), base.copy()]
    parts[0].run(thin[:600], np.minimum(y[:600], 2.0))
    parts[1].run(thin[600:], y[600:])
    merged = merge(base, parts)
    assert merged.classes == 3
    assert merged.t == 1200
    assert np.isfinite(merged.predict_many(thin[:50])).all()


def test_a_damaged_file_is_refused():
    X, y = product(300)
    learner = rue.StagedSoftmax()
    learner.run(X, y)
    learner._point.pools[0].counts[0] += 1.0
    with pytest.raises(rue.DataError, match="classes of its stages"):
        from_bytes(to_bytes(Model(learner)))


def test_the_command_line_learns_several_classes_over_maps(tmp_path, inside, interpreted):
    lines = [f"{i % 7},{i % 5},{'pqr'[(i % 7 + i % 5) % 3]}" for i in range(60)]
    (tmp_path / "s.csv").write_text("\n".join(["a,b,y", *lines, ""]))
    report = tmp_path / "r.json"
    printed = inside("learn", tmp_path / "s.csv", "--target", "y", "--maps", "-q", "--report", report).out
    assert "there is no certificate for more than two classes" in printed
    found = json.loads(report.read_text())
    assert (found["examples"], found["mapped_certificate"]) == (60, None)
    assert len(found["stages"]["stages"]) == 4


def test_where_maps_are_asked_for():
    from rue.sklearn import RueClassifier

    X, y = product(1500)
    model = RueClassifier(maps="auto").fit(X, y)
    assert model.score(X[-500:], y[-500:]) > 0.8
    assert RueClassifier(maps=None).fit(X, y).score(X[-500:], y[-500:]) < 0.7


def test_the_report_has_the_stages_and_no_certificate():
    X, y = product(300)
    fields = learnt(X, y, maps="auto").report().fields
    assert len(fields["stages"]["stages"]) > 1
    assert fields["mapped_certificate"] is None
    assert fields["no_certificate"]


def test_copies_of_the_stages_are_charged_with_what_they_would_have_lost():
    """Against copies of the learner as it was after 1,024 rounds, with the columns' past as it is."""
    X, y = product(1400)
    learner = rue.StagedSoftmax()
    learner.run(X[:1024], y[:1024])
    then, spent = copy.deepcopy(learner)._point, np.zeros(4)
    for t in range(1024, 1400, 8):
        point = copy.deepcopy(learner)._point
        own = learner.copy()
        own._point = point._replace(
            raw=then.raw, running=point.running.copy(), pools=tuple(pool.standing() for pool in then.pools)
        )
        chances = []
        for k in range(4):
            own._point.members[SHARES] = np.eye(4)[k]
            chances.append(own.predict(X[t])[int(y[t])] / (1.0 - own.predict(X[t])[0]))
        own = learner.predict(X[t])[int(y[t])]
        spent += -8.0 * np.log([own, *chances[1:]])
        learner.run(X[t : t + 8], y[t : t + 8])
    np.testing.assert_allclose(learner._point.trials[LATEST], spent, rtol=1e-5)


def test_the_kept_model_mixes_the_stages_by_what_copies_have_lost(tmp_path):
    X, y = product(3000)
    learner = rue.StagedSoftmax()
    learner.run(X[:2000], y[:2000])
    frozen, linear = learner.frozen(), rue.SoftmaxMixture()
    linear.run(X[:2000], y[:2000])
    of_linear, labels = linear.frozen(), y[2000:].astype(int)
    np.testing.assert_allclose(frozen.linear.predict_many(X[2000:]), of_linear.predict_many(X[2000:]), rtol=1e-6)
    lost = [-np.log(model.predict_many(X[2000:])[np.arange(1000), labels]).mean() for model in (frozen, of_linear)]
    assert lost[0] < 0.7 * lost[1]
    assert frozen.risk == pytest.approx(lost[0], rel=0.3)
    assert frozen.predict_many(X[2000:]).sum(axis=1) == pytest.approx(1.0)
    np.testing.assert_array_equal(frozen.predict_many(X[2000:2001])[0], frozen.predict(X[2000]))
    before = frozen.predict_many(X[:50])
    again = from_bytes(to_bytes(Model(learner))).learner
    np.testing.assert_array_equal(again.frozen().predict_many(X[:50]), before)
    learner.run(X[2000:], y[2000:])
    np.testing.assert_array_equal(frozen.predict_many(X[:50]), before)  # which later learning does not change


@pytest.mark.parametrize("size", [1, 7, 500])
def test_blocks_of_any_size_try_the_same_copies(size):
    """Rows of weight 0 and refused ones are no rounds."""
    X, y = product(900)
    X[600], weights = 1e200, np.where(np.arange(900) % 13 == 5, 0.0, 1.0 + np.arange(900) % 2)
    whole, parts = rue.StagedSoftmax(), rue.StagedSoftmax()
    whole.run(X, y, weights)
    for begin in range(0, 900, size):
        rows = slice(begin, begin + size)
        parts.run(X[rows], y[rows], weights[rows])
    assert whole.t == parts.t < 900
    assert whole == parts
    assert (whole._point.trials > 0.0).all(axis=1).any()


def test_what_is_kept_where_the_stages_go_stale_is_linear():
    """A product that turns round every 200 rows: who follows it is stale when learning stops."""
    rng, T = np.random.default_rng(0), 5000
    X = rng.normal(size=(T, 3))
    signs = np.where(np.arange(T) // 200 % 2, -1.0, 1.0)
    y = 1.0 + (X[:, 0] * X[:, 1] * signs > 0) + (X[:, 2] > 1.0)
    losses = []
    for learner in (rue.StagedSoftmax(), rue.SoftmaxMixture()):
        learner.run(X[:3000], y[:3000])
        chances = learner.frozen().predict_many(X[3000:])[np.arange(2000), y[3000:].astype(int)]
        losses.append(-np.log(chances).mean())
    assert (
        losses[0] < 1.08 * losses[1]
    )  # as it plays it loses as much; where little is lost by freezing that is favoured
