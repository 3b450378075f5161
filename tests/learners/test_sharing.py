"""Fixed share with α = 1/t (B15): every window against brute force, who must not retire, merging and model files."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rue
from forging import forge
from rue.learners.merging import merge
from rue.learners.mixture.layout import HEAVIEST, KINDS, LOSSES, MIXED
from rue.learners.mixture.standing import standing
from rue.learners.points import T
from rue.models.file import load


def turning(seed, rows, columns=3, period=40):
    """A stream whose rule turns round again and again."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    u = np.where(np.arange(rows)[:, None] // period % 2 == 0, 1.0, -1.0) * rng.normal(size=columns)
    return X, np.where(rng.random(rows) < 1.0 / (1.0 + np.exp(-4.0 * (X * u).sum(axis=1))), 1.0, -1.0)


def steps(learner, X, y, weights):
    """By how much the mixture lost more than each member, round by round."""
    ahead, before = [], np.zeros(learner.copy().algorithm.rates * KINDS)
    mixed = 0.0
    for x, label, weight in zip(X, y, weights, strict=True):
        learner.update(x, label, weight)
        point = learner._point
        ahead.append(point.memory[MIXED] - mixed - (point.members[LOSSES] - before))
        before, mixed = point.members[LOSSES].copy(), point.memory[MIXED]
    return np.array(ahead)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(["turning", "random", "one", "heavy first"]))
def test_on_every_window_the_mixture_is_near_its_best_member(seed, how):
    X, y = turning(seed, 100, period=25)
    weights, rng = np.ones(100), np.random.default_rng(seed)
    if how == "random":
        y = rng.choice([-1.0, 1.0], 100)
    if how == "one":
        y[:] = 1.0
    if how == "heavy first":
        weights = np.concatenate([[3.0], rng.uniform(0.1, 3.0, 99)])
    learner = rue.Mixture()
    ahead = np.cumsum(np.vstack([np.zeros(48), steps(learner, X, y, weights)]), axis=0)
    gaps = standing(learner).price_at_most - weights.max() * (math.log(48) + math.log(100))
    assert gaps >= -1e-9
    for r in range(1, 101):
        most = max(1.0, weights.max()) * (math.log(48) + np.log(np.arange(r, 101))) + gaps
        assert ((ahead[r:] - ahead[r - 1]).max(axis=1) <= most + 1e-9).all()


def test_it_follows_where_plain_weights_do_not():
    X, y = turning(0, 6000, period=300)
    shared, plain = (rue.learn(X, y, learner=rue.Mixture(share=share)) for share in ("1/t", None))
    assert shared.loss < plain.loss - 20.0
    assert "gained" in str(shared.members) or shared.members.price >= 0.0
    assert shared.members.theorem == "B15"
    assert plain.members.theorem == "B12"
    assert plain.members.price_at_most == pytest.approx(math.log(48))


@pytest.mark.parametrize("learner", ["mixture", "staged"])
def test_the_spec_says_how_weights_are_shared(learner):
    made = rue.make("learner", f"{learner}:share=none")
    assert made.algorithm.share is None
    assert made == rue.make("learner", learner, share=None)
    assert rue.make("learner", learner).algorithm.share == "1/t"
    with pytest.raises(rue.SettingsError, match="share must be"):
        rue.make("learner", f"{learner}:share=0.1")
    with pytest.raises(rue.SettingsError, match="share must be"):
        rue.SoftmaxMixture(share="t")


@pytest.mark.parametrize(
    ("share", "rounds", "carried", "retires"),
    [
        ("1/t", 2**16, 0.05, True),
        ("1/t", 2**16, 0.15, False),  # it is needed from time to time
        ("1/t", 2**15, 0.05, False),  # too early to tell
        (None, 2**15, 0.0, True),
    ],
)
def test_a_kind_that_is_far_behind_retires_only_where_it_carries_nothing(share, rounds, carried, retires):
    learner = rue.Mixture(share=share)
    X, y = turning(3, 20)
    learner.run(X, y)
    point = learner._point
    point.members[LOSSES] = np.repeat([5000.0, 5100.0, 5200.0, 9000.0, 5000.0, 5000.0], 8)
    point.memory[T], point.carried[:] = rounds, 0.0
    point.carried[3] = carried
    point.retire_some()
    assert (point.seats < 0).tolist() == [False, False, False, retires, False, False]


def test_the_mean_weight_of_a_kind_counts_late_rounds_for_more():
    X, y = turning(4, 300)
    learner, total = rue.Mixture(), np.zeros(KINDS)
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        learner.update(x, label)
        total += t * learner._point.kinds
    assert learner._point.carried == pytest.approx(total / (300 * 301 / 2), abs=1e-12)


def test_parts_of_a_stream_keep_the_promise_together():
    X, y = turning(5, 1200)
    base = rue.Mixture()
    base.run(X[:200], y[:200])
    parts = [base.copy() for _ in range(3)]
    for k, part in enumerate(parts):
        part.run(X[200 + k :: 3], y[200 + k :: 3])
    merged = merge(base, parts)
    found, weights = standing(merged), merged._point.experts().weights()
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 1.0 / (48.0 * (merged._point.memory[T] + 1.0)) * (1.0 - 1e-9)).all()
    logs = np.log([part._point.experts().weights() for part in (base, *parts)])
    wanted = logs[0] + (logs[1:] - logs[0]).sum(axis=0)
    assert np.argmax(weights) == np.argmax(wanted)
    assert found.price <= found.price_at_most + 1e-9
    m = merged._point.memory
    ahead = m[MIXED] - merged._point.members[LOSSES] - m[HEAVIEST] * np.log(48.0 * m[T] * weights)
    assert ahead.max() <= found.price_at_most - m[HEAVIEST] * math.log(48.0 * m[T]) + 1e-9
    merged.run(X, y)
    assert standing(merged).price <= standing(merged).price_at_most + 1e-9


def test_a_model_of_before_goes_on_without_sharing_to_the_same_bits(tmp_path):
    """Format 4 had no share among the settings and no mean weights of the kinds."""
    X, y = turning(6, 400)
    old = rue.Mixture(share=None)
    old.run(X[:250], y[:250])
    rue.save(old, tmp_path / "now.rue")

    def as_before(head, arrays):
        head["format"] = 4
        del head["learner"]["algorithm"]["Pooled"]["share"]
        for name in [name for name in arrays if name.startswith("point.carried")]:
            del arrays[name]

    again = load(forge(tmp_path / "now.rue", tmp_path / "before.rue", as_before)).learner
    assert again.algorithm.share is None
    assert again == old
    assert np.array_equal(again.run(X[250:], y[250:]), old.run(X[250:], y[250:]))


def test_resumed_it_goes_on_to_the_same_bits(tmp_path):
    X, y = turning(7, 400)
    whole, cut = rue.Mixture(), rue.Mixture()
    wanted = whole.run(X, y)
    first = cut.run(X[:123], y[:123])
    rue.save(cut, tmp_path / "m.rue")
    again = load(tmp_path / "m.rue").learner
    assert np.array_equal(np.concatenate([first, again.run(X[123:], y[123:])]), wanted)
    assert again == whole


def test_weights_never_underflow():
    """A member that was hopeless for 20,000 rounds leads soon after the labels turn round."""
    X, y = np.ones((20_200, 1)), np.ones(20_200)
    y[20_000:] = -1.0
    boxes = [rue.OGD("logistic", rue.Box([v], [v]), "fixed:1", intercept=False) for v in (3.0, -3.0)]
    learner = rue.Mixture(members=boxes)
    predictions = learner.run(X, y)
    assert predictions[19_999] > 2.9
    assert predictions[20_010] < -2.0
