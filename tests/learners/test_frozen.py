"""The model that stays when learning stops: chosen by how well frozen copies did."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rue
from forging import forge
from rue.learners.merging import merge
from rue.learners.mixture.frozen import CONSTANT_GUESS, LIVE, MEAN_OF_MEMBERS, next_copy, preferences
from rue.learners.mixture.layout import DUE, KINDS, LATEST


def members_of(learner):
    """The weights of all 48 members, of features as the data has them, read one member at a time."""
    pool, columns = learner._point, []
    for kind in range(KINDS):
        for i in range(len(pool.rates)):
            shares = np.zeros((KINDS, len(pool.rates)))
            shares[kind, i] = 1.0
            columns.append(pool._mean_weights(shares))
    return np.stack(columns, axis=1)


def stream(n, task, seed=0, drift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1.0, 100.0, 0.01, 3.0, 1.0]
    w = np.array([1.0, 0.02, 50.0, 0.0, -1.0])
    score = np.array([x @ (w * (np.cos(drift * t) if drift else 1.0)) for t, x in enumerate(X)]) + 0.5
    if task == "square":
        return X, 10.0 + score + rng.normal(size=n)
    return X, np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-score)), 1.0, -1.0)


def reference(X, y, loss):
    """The frozen weights in NumPy: copies after rounds 256, 512, …, scored on every eighth example after them."""
    learner, kind, n = rue.Mixture(loss), rue.registry.make("loss", loss), len(y)
    features = np.hstack([np.ones((n, 1)), X])
    lost, copies, constant = np.zeros(KINDS * 8 + 3), None, 0.0
    for t in range(1, n + 1):
        live = learner.predict(X[t - 1])
        learner.update(X[t - 1], y[t - 1])
        if copies is not None and t % 8 == 0:
            p = features[t - 1] @ copies
            if loss == "square":
                p = np.clip(p, y[:t].min(), y[:t].max())
            for c, value in enumerate([*p, constant, live]):
                lost[c] += 8.0 * kind.value(float(value), y[t - 1])
        if t >= 256 and math.log2(t / 256).is_integer():
            copies = np.column_stack((members_of(learner), learner.point))
            constant = y[:t].mean()
            if loss == "logistic":
                constant = math.log((1.0 + t + y[:t].sum()) / (1.0 + t - y[:t].sum()))
    lost, live = lost[:LIVE], lost[LIVE]
    lost[MEAN_OF_MEMBERS + 1] = max(lost[MEAN_OF_MEMBERS + 1], learner._point._shares().ravel() @ lost[: KINDS * 8])
    calm = 1.0 / (1.0 + 10.0 * max(0.0, lost.min() / live - 1.0))
    sharpness = 1.0 / (1.0 / (6.0 + 94.0 * calm) + 1.0 / (0.15 * (n - 256) / 8.0))
    favour = np.append(np.ones(lost.size - 2), [math.exp(10.0 * calm), 10.0])
    q = np.exp(-sharpness * (lost - lost.min()) / max(lost.min(), live)) * favour
    q /= q.sum()
    only_constant = np.zeros(features.shape[1])
    only_constant[0] = constant
    return np.column_stack((members_of(learner), learner.point, only_constant)) @ q


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("drift", [0.0, 0.004])
def test_the_choice_is_that_of_a_plain_reference(loss, drift):
    X, y = stream(1100, loss, drift=drift)
    learner = rue.Mixture(loss)
    learner.run(X, y)
    np.testing.assert_allclose(learner.frozen().point, reference(X, y, loss), rtol=2e-4, atol=1e-6)


@given(st.lists(st.integers(1, 700), max_size=5), st.sampled_from(["logistic", "square"]))
@settings(max_examples=8, deadline=None)
def test_blocks_do_not_matter_nor_do_files(tmp_path_factory, cuts, loss):
    X, y = stream(1500, loss)
    whole = rue.Mixture(loss)
    whole.run(X, y)
    parts, path = rue.Mixture(loss), tmp_path_factory.mktemp("frozen") / "m.rue"
    places = sorted({0, 1500, *(min(1500, cut * 2) for cut in cuts)})
    for begin, end in itertools.pairwise(places):
        parts.run(X[begin:end], y[begin:end])
        rue.save(parts, path)
        parts = rue.load(path).learner
    assert parts.frozen().point.tobytes() == whole.frozen().point.tobytes()
    assert parts.frozen().risk == whole.frozen().risk


def test_one_by_one_is_the_same():
    X, y = stream(700, "logistic")
    blocks, single = rue.Mixture(), rue.Mixture()
    blocks.run(X, y)
    for x, label in zip(X, y, strict=True):
        single.update(x, label)
    assert single.frozen().point.tobytes() == blocks.frozen().point.tobytes()


def test_what_is_learnt_afterwards_does_not_change_it():
    X, y = stream(900, "logistic")
    learner = rue.Mixture()
    learner.run(X[:600], y[:600])
    frozen = learner.frozen()
    before = frozen.point.copy(), frozen.predict_many(X[:9])
    learner.run(X[600:], y[600:])
    assert np.array_equal(frozen.point, before[0])
    assert np.array_equal(frozen.predict_many(X[:9]), before[1])
    assert [frozen.predict(x) for x in X[:9]] == before[1].tolist()
    assert not np.array_equal(learner.frozen().point, before[0])
    assert learner.frozen() is learner.frozen()  # nothing is chosen twice


def test_a_stream_that_follows_the_day_freezes_better_than_its_mixture():
    """Each day has its own weights: whoever follows it leads, and is worthless on the days after."""
    rng = np.random.default_rng(7)
    days = rng.normal(size=(60, 4)) * 3.0 + np.array([0.5, 0.0, 0.0, 0.0])
    X = rng.normal(size=(60 * 200, 4))
    y = np.sign((X * np.repeat(days, 200, axis=0)).sum(axis=1) + 0.1 * rng.normal(size=len(X)))
    run = rue.learn(X[:8000], y[:8000], maps=None)
    ahead, labels = X[8000:], y[8000:]
    frozen, live = (np.logaddexp(0.0, -labels * p).mean() for p in (run.predict(ahead), ahead @ run.learner.weights))
    assert frozen < 0.75
    assert live > 2.0 * frozen
    assert run.risk < 0.6 * frozen


@pytest.mark.parametrize("y", [np.array([-1, 1]), np.array(["a", "b", "c"])], ids=["two classes", "several"])
def test_last_rows_of_one_class_do_not_decide(y):
    """As the training rows of a fold end, where folds have equal shares of the classes and rows are not shuffled."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6000, 6))
    scores = X @ rng.normal(size=(6, len(y))) * 0.7 + rng.gumbel(size=(6000, len(y)))
    labels = y[scores.argmax(axis=1)]
    order, ahead = np.arange(3000), slice(3000, None)
    last = order[labels[order] == y[0]][-40:]
    order = np.concatenate((np.setdiff1d(order, last), last))
    run = rue.learn(X[order], labels[order], maps=None, test=(X[ahead], labels[ahead]))
    as_it_was = rue.learn(X[:3000], labels[:3000], maps=None, test=(X[ahead], labels[ahead]))
    assert run.test.risk < 1.25 * as_it_was.test.risk


def test_numbers_are_clipped_to_the_range_of_the_labels():
    X, y = stream(600, "square")
    learner = rue.Mixture("square")
    learner.run(X, y)
    frozen = learner.frozen()
    highest = frozen.predict_many(1e6 * X).max()
    assert highest == frozen.predict([0.0, 0.0, 1e9, 0.0, 0.0]) == frozen.range[1]
    # The labels' mean after round 512 and now: where it has moved to, the range would have grown so far again.
    ahead = 2.0 * 600 / 88 * (y.mean() - y[:512].mean())
    assert frozen.range == pytest.approx((y.min() + min(0.0, ahead), y.max() + max(0.0, ahead)), rel=1e-9)


@pytest.mark.parametrize("learner", ["mixture", "staged"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_trend_goes_on(learner, sign):
    """Labels that grow leave the range of those before them, and the model that is kept goes with them."""
    rng = np.random.default_rng(1)
    rounds = np.arange(2000.0)
    X = np.column_stack((rounds / 100.0, rng.normal(size=2000)))
    y = sign * (X @ [1.0, 1.0]) + 0.1 * rng.normal(size=2000)
    run = rue.learn(X[:1200], y[:1200], learner=getattr(rue, learner.title())("square"))
    error = np.abs(run.predict(X[1200:]) - y[1200:])
    assert error.mean() < 0.3
    assert np.abs(np.clip(y[1200:], y[:1200].min(), y[:1200].max()) - y[1200:]).mean() > 2.0


def test_labels_that_were_never_negative_stay_so():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 1))
    y = np.maximum(0.0, np.linspace(30.0, 0.0, 1500) + X[:, 0])
    learner = rue.Mixture("square")
    learner.run(X, y)
    assert learner.frozen().range[0] == 0.0
    learner.run(X - 50.0, y - 50.0)
    assert learner.frozen().range[0] < y.min() - 50.0


@pytest.mark.parametrize("learner", [rue.Mixture(), rue.Staged()])
def test_no_probability_is_surer_than_so_many_examples_can_show(learner):
    X, y = stream(600, "logistic")
    learner.run(X, y)
    surest = math.log(601.0)
    assert 0.99 * surest < np.abs(learner.frozen().predict_many(1e9 * X)).max() <= surest


def test_a_few_trials_hardly_change_what_plays():
    """After 287 rounds copies have been scored on three examples."""
    X, y = stream(287, "square")
    learner = rue.Mixture("square")
    learner.run(X, y)
    frozen, playing = learner.frozen().point, learner.point
    assert np.abs((X * frozen[1:]).sum(axis=1) - (X * playing[1:]).sum(axis=1)).max() < 0.05 * y.std()


def test_before_anything_was_tried_and_for_other_learners_nothing_is_chosen():
    X, y = stream(200, "logistic")
    learner = rue.Mixture()
    learner.run(X, y)
    assert not learner.frozen().chosen
    assert not learner.frozen().untried
    assert math.isnan(learner.frozen().risk)
    assert np.array_equal(learner.frozen().predict_many(X), learner.predict_many(X))
    averaging = rue.OGD("hinge", "ball:10", average="uniform")
    averaging.run(X, y)
    assert np.array_equal(averaging.frozen().point, averaging.average)
    assert np.array_equal(averaging.frozen().predict_many(X), averaging.predict_many(X, average=True))


def test_without_an_intercept_there_is_no_constant():
    X, y = stream(600, "square")
    learner = rue.Mixture("square", intercept=False)
    learner.run(X, y)
    pool = learner._point
    assert pool._preferences(False)[CONSTANT_GUESS] == 0.0
    assert learner.frozen().predict([0.0] * 5) == 0.0


def test_merged_parts_are_copied_anew():
    X, y = stream(4000, "logistic")
    base = rue.Mixture()
    base.run(X[:1000], y[:1000])
    parts = []
    for begin in (1000, 2000, 3000):
        part = base.copy()
        part.run(X[begin : begin + 1000], y[begin : begin + 1000])
        parts.append(part)
    merged = merge(base, parts)
    tried = sum(part._point.trial[:3].sum() for part in parts) - 2 * base._point.trial[:3].sum()
    assert merged._point.trial[:3].sum() == pytest.approx(tried)
    assert merged.frozen().chosen
    merged.run(X[:200], y[:200])
    assert 0.0 < merged.frozen().risk < 0.7


@given(st.lists(st.floats(0.0, 1e6), min_size=6, max_size=6), st.booleans())
def test_preferences_are_shares_that_never_prefer_who_lost_more(lost, constant):
    table, shares = np.zeros((4, 6)), np.array([0.2, 0.3, 0.5])
    table[0] = lost
    possible = np.array([True, True, True, True, constant, False])
    q, playing = preferences(table, possible, 5000.0, shares), max(lost[MEAN_OF_MEMBERS], shares @ lost[:3])
    assert q.sum() == pytest.approx(1.0)
    assert (q >= 0.0).all()
    assert q[LIVE] == 0.0
    ranked = [c for c in range(6 + MEAN_OF_MEMBERS) if possible[c]]
    for a in ranked:
        for b in ranked:
            assert lost[a] > lost[b] or q[a] >= q[b]
        assert lost[a] < playing or q[a] <= q[MEAN_OF_MEMBERS]  # which is favoured
    assert MEAN_OF_MEMBERS == -3


def test_a_loss_that_may_be_negative_is_saved_and_loaded(tmp_path):
    X, y = stream(600, "square")
    learner = rue.Mixture("poisson")
    learner.run(X[:, :1], np.floor(np.abs(y)))
    assert learner._point.candidates[:3].min() < 0.0
    rue.save(learner, tmp_path / "m")
    assert rue.load(tmp_path / "m").learner.frozen().point.tobytes() == learner.frozen().point.tobytes()


@pytest.mark.parametrize(("place", "value"), [(DUE, 0.0), (DUE, 300.0), (DUE, np.nan), (DUE, np.inf), (LATEST, -1.0)])
def test_impossible_trials_are_damage(tmp_path, place, value):
    """A copy that is due at round 0 would be due for ever."""
    X, y = stream(300, "logistic")
    learner = rue.Mixture()
    learner.run(X, y)
    rue.save(learner, tmp_path / "m")

    def tamper(head, arrays):
        arrays["point.trial"] = arrays["point.trial"].copy()
        arrays["point.trial"][place] = value

    with pytest.raises(rue.DataError, match="damaged"):
        rue.load(forge(tmp_path / "m", tmp_path / "bad", tamper))


def test_next_copy():
    assert [next_copy(t) for t in (0, 1, 255, 256, 511, 512, 1000, 2**20)] == [
        256,
        256,
        256,
        512,
        512,
        1024,
        1024,
        2**21,
    ]
