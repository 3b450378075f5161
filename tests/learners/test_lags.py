"""Lagged labels: the features of every row against a plain loop, the same bits in any form, files, and late labels."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

import rue
from rue.errors import DataError, SettingsError
from rue.learners.lags import Lags, lags_of
from rue.learners.merging import merge
from rue.serve.fold import Fold
from rue.serve.records import CREATE, LABEL, PREDICT, Record
from rue.streams import Block

LAGS = [1, 2, 5]


def plainly(y, lags, weights=None):
    """The features of each row, from the labels before it that have come."""
    rows, come = [], []
    for t, label in enumerate(y):
        row = [come[-k] if len(come) >= k else 0.0 for k in lags]
        for k in lags:
            if k > 1:
                mean = 0.0
                for n, before in enumerate(come, 1):
                    mean += (before - mean) / min(k, n)
                row.append(mean)
        rows.append(row)
        if label == label and (weights is None or weights[t] > 0.0):
            come.append(label)
    return np.array(rows)


def stream(n=400, seed=0):
    """Numbers that say little of a label, and labels that mostly repeat."""
    rng = np.random.default_rng(seed)
    turns = rng.random(n) < 0.1
    y = np.where(np.cumsum(turns) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, 2)) + 0.1 * y[:, None], y


def test_the_features_are_those_of_a_plain_loop():
    _, y = stream()
    y[[3, 17]] = np.nan
    weights = np.where(np.arange(y.size) % 7 == 0, 0.0, 2.0)
    lags = Lags(LAGS)
    assert lags.names == ["last label", "label 2 back", "label 5 back", "mean of 2 labels", "mean of 5 labels"]
    whole = lags.columns(y, weights)
    np.testing.assert_allclose(whole, plainly(y, LAGS, weights), rtol=1e-14, atol=1e-14)
    begin, cuts = 0, [1, 2, 50, y.size]
    for end in cuts:
        assert np.array_equal(lags.columns(y[begin:end], weights[begin:end]), whole[begin:end])
        lags.enter(y[begin:end], weights[begin:end])
        begin = end


def test_a_run_is_that_over_columns_made_by_hand():
    X, y = stream()
    with_lags = rue.learn(X, y, learner="ogd", lags=LAGS)
    by_hand = rue.learn(np.hstack([plainly(y, LAGS), X]), y, learner="ogd")
    np.testing.assert_allclose(with_lags.predictions, by_hand.predictions, rtol=1e-12)
    assert with_lags.certificate(1.0).regret_at_most == pytest.approx(by_hand.certificate(1.0).regret_at_most)
    assert with_lags.risk < 0.9 * rue.learn(X, y, learner="ogd").risk


def test_one_by_one_in_blocks_sparse_and_by_name_have_the_same_bits():
    X, y = stream()
    expected = rue.learn(X, y, learner="ogd", lags=LAGS)
    one, named, p, q = rue.OGD("logistic").with_lags(LAGS), rue.OGD("logistic").with_lags(LAGS), [], []
    for x, label in zip(X, y, strict=True):
        p.append(one.predict(x))
        one.update(x, label)
        row = {"a": x[0], "b": x[1]}
        q.append(named.predict(row))
        named.update(row, label)
    assert p == expected.predictions.tolist() == q
    assert one == expected.learner
    for form in (X, csr_array(X)):
        parts, begin = rue.OGD("logistic").with_lags(LAGS), 0
        for end in (1, 2, 150, y.size):
            assert np.array_equal(parts.run(form[begin:end], y[begin:end]), expected.predictions[begin:end])
            begin = end
    assert parts.lags == expected.learner.lags
    assert dict(rue.weights_of(named)).keys() == {"intercept", "a", "b", *Lags(LAGS).names}
    assert "feature 1" in dict(rue.weights_of(expected))
    assert rue.explain(expected, X[0]).prediction == expected.predict(X[:1])[0]
    far = csr_array((np.ones(1), [2**31], [0, 1]), shape=(1, 2**31 + 1))  # an index that has a place of its own
    wide = rue.OGD("logistic").with_lags([1])
    wide.run(far, [1.0])
    assert wide.predict(far) == pytest.approx(wide.predict_many(far)[0])


def test_rows_without_a_label_bring_none_and_rows_passed_over_change_nothing_about_the_order():
    X, y = stream()
    missing, weights = y.copy(), np.ones(y.size)
    missing[5:9], weights[20:23] = np.nan, 0.0
    run = rue.learn(X, missing, weights=weights, learner="ogd", lags=[1])
    hand = rue.learn(np.hstack([plainly(missing, [1], weights), X]), missing, weights=weights, learner="ogd")
    np.testing.assert_allclose(run.predictions, hand.predictions, rtol=1e-12)
    X[100, 0] = np.inf
    skipped = rue.learn(X, y, learner="ogd", lags=[1], bad="skip")
    blocks = [Block(X[a:b], y[a:b]) for a, b in ((0, 101), (101, 102), (102, 400))]
    again = rue.learn(blocks, learner="ogd", lags=[1], bad="skip")
    assert np.array_equal(skipped.predictions, again.predictions, equal_nan=True)
    assert skipped.skipped == 1
    assert skipped.learner == again.learner
    learner = rue.OGD("logistic").with_lags([1])
    learner.update([1.0], 1.0)
    with pytest.raises(DataError):
        learner.update([np.nan], -1.0)
    assert learner.lags.present().tolist() == [1.0]


def test_saved_and_resumed_it_goes_on_to_the_same_bits(tmp_path):
    X, y = stream()
    whole = rue.learn(X, y, learner="ogd", lags=LAGS)
    rue.save(rue.learn(X[:150], y[:150], learner="ogd", lags=LAGS), tmp_path / "m.rue")
    model = rue.load(tmp_path / "m.rue")
    rest = rue.learn(X[150:], y[150:], learner=model, lags=LAGS)
    assert np.array_equal(rest.predictions, whole.predictions[150:])
    assert rest.learner == whole.learner
    assert model.learner.copy().lags is not model.learner.lags
    with pytest.raises(SettingsError, match="its lags are 1, 2, 5; leave lags out"):
        rue.learn(X, y, learner=model, lags=[1])
    with pytest.raises(SettingsError, match="it was learnt without; leave lags out"):
        rue.learn(X, y, learner=rue.learn(X, y, learner="ogd"), lags=[1])
    with pytest.raises(SettingsError, match="lags need the rows in order"):
        merge(model.learner, [model.learner])


def test_the_finished_model_has_the_last_labels_that_were_learnt():
    X, y = stream()
    run = rue.learn(X, y, learner="ogd", lags=[1])
    first = np.hstack([np.full((3, 1), y[-1]), X[:3]])
    by_hand = rue.learn(np.hstack([plainly(y, [1]), X]), y, learner="ogd")
    np.testing.assert_allclose(run.predict(X[:3]), by_hand.predict(first), rtol=1e-12)


def test_on_the_command_line(inside, tmp_path):
    X, y = stream()
    lines = ["y,a,b", *(f"{int(label > 0)},{x[0]!r},{x[1]!r}" for label, x in zip(y, X.tolist(), strict=True))]
    (tmp_path / "s.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "first.csv").write_text("\n".join(lines[:200]) + "\n")
    (tmp_path / "rest.csv").write_text("\n".join([lines[0], *lines[200:]]) + "\n")
    learner = ["--target", "y", "--learner", "ogd", "--quiet"]
    advised = inside("learn", tmp_path / "s.csv", *learner)
    assert "saying the last label again lost less: --lags 1" in advised.out
    whole = inside("learn", tmp_path / "s.csv", *learner, "--lags", "1,2,5", "--report", tmp_path / "r.json")
    assert "lost less" not in whole.out
    assert json.loads((tmp_path / "r.json").read_text())["lags"] == LAGS
    inside("learn", tmp_path / "first.csv", *learner, "--lags", "5,1,2", "--model", tmp_path / "m.rue")
    resume = ["learn", tmp_path / "rest.csv", "--resume", tmp_path / "m.rue", "--quiet"]
    inside(*resume, "--lags", "1,2,5", "--report", tmp_path / "again.json")
    known = [json.loads((tmp_path / name).read_text()) for name in ("r.json", "again.json")]
    assert known[0]["loss_total"] == known[1]["loss_total"]
    assert "last label" in inside("weights", tmp_path / "m.rue").out
    inside("predict", tmp_path / "m.rue", tmp_path / "rest.csv", "-o", tmp_path / "p.csv")
    assert "contradicts the model: its lags are 1, 2, 5" in inside(*resume, "--lags", "1", ok=2).err
    assert "--lags takes whole numbers" in inside("learn", tmp_path / "s.csv", *learner, "--lags", "one", ok=2).err
    assert "--lags" in inside("learn", tmp_path / "s.csv", *learner, "--lags", "1", "--shards", "2", ok=2).err
    assert "with lags" in inside("audit", tmp_path / "s.csv", *learner, "--lags", "1", ok=2).err


@pytest.mark.usefixtures("interpreted_module")
def test_in_a_service_labels_count_in_the_order_in_which_they_arrive():
    content = {"learner": "ogd", "loss": "logistic", "lags": [1], "positive": 1}
    fold, records = Fold(), [Record(1, 0, 1, CREATE, "m", json.dumps(content).encode())]
    late = [0, 1, 2, 3, 4]
    features = [0.5, -1.0, 0.25, 2.0, 1.0]
    labels = [1, 0, 0, 1, 1]
    order = [3, 0, 4, 1, 2]
    for i in late:
        body = json.dumps({"id": str(i), "features": {"x": features[i]}}).encode()
        records.append(Record(len(records) + 1, 0, 1, PREDICT, str(i), body))
    for i in order:
        body = json.dumps({"id": str(i), "label": labels[i]}).encode()
        records.append(Record(len(records) + 1, 0, 1, LABEL, str(i), body))
    fold.apply(records)
    again = Fold()
    for record in records:
        again.apply([record])
    expected = rue.OGD("logistic").with_lags([1])
    for i in order:
        expected.update(([0], [features[i]]), 2.0 * labels[i] - 1.0)
    learner = fold.named("m").driver.learner
    assert learner == again.named("m").driver.learner
    np.testing.assert_allclose(learner.point[:3], expected.point, rtol=1e-12)
    assert learner.lags.present().tolist() == [2.0 * labels[order[-1]] - 1.0]


def test_what_is_no_lag_is_refused():
    assert lags_of(3) == (3,)
    for given in ([], [0], ["1"], [1.5], [True], [10**7], None, range(1, 100)):
        with pytest.raises(SettingsError, match="lags: give at most 64 whole numbers"):
            lags_of(given)
    with pytest.raises(SettingsError, match="more than two classes"):
        rue.learn([[1.0]] * 3, ["a", "b", "c"], lags=1)
    learner = rue.Perceptron()
    learner.update([1.0], 1.0)
    with pytest.raises(SettingsError, match="has learnt already"):
        learner.with_lags([1])
