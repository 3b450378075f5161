"""Columns of predictions mixed by exponential weights (B12): the price is never exceeded."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rue
from conftest import many
from rue.errors import DataError, SettingsError
from rue.regret.risk.experts import METHODS, mix, price_of_mixing

# Every way to mix, with a loss it serves; predictions and real labels are drawn from the interval.
WAYS = {
    "probability": ("logistic", "probability", (-30.0, 30.0)),
    "square average": ("square", "average", (-1.0, 2.0)),
    "square substitution": ("square", "substitution", (-1.0, 2.0)),
    "logistic average": ("logistic", "average", (-2.0, 2.0)),
    "squared hinge average": ("squared-hinge", "average", (-1.0, 1.0)),
    "huber average": ("huber:4", "average", (-1.0, 2.0)),
    "absolute horizon": ("absolute", "horizon", (0.0, 1.0)),
    "hinge horizon": ("hinge", "horizon", (-1.0, 1.0)),
    "absolute anytime": ("absolute", "anytime", (0.0, 1.0)),
    "linear anytime": ("linear", "anytime", (-1.0, 1.0)),
    "quantile adahedge": ("quantile:0.8", "adahedge", (-5.0, 5.0)),
    "square adahedge": ("square", "adahedge", (0.0, 3.0)),
}
each = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def mixed_by(way, P, y, **more):
    loss, method, interval = way
    largest = max(more.get("weights", [1.0]), default=1.0)
    width = (interval[1] - interval[0]) * largest
    if method in ("horizon", "anytime"):
        more["B"] = width or 1.0
    return mix(P, y, loss=loss, method=method, interval=interval, **more)


def labels_for(way, rng, size):
    if rue.make("loss", way[0]).task == "classify":
        return rng.choice([-1.0, 1.0], size=size)
    return rng.uniform(*way[2], size=size) if rng.random() < 0.5 else rng.choice(way[2], size=size)


def random_stream(way, seed):
    """Columns that are good for a while, copies, constants at the ends, labels at the ends."""
    rng = np.random.default_rng(seed)
    T, K = int(rng.integers(1, 60)), int(rng.integers(1, 9))
    low, high = way[2]
    y = labels_for(way, rng, T)
    P = rng.uniform(low, high, size=(T, K))
    kind = rng.integers(0, 4)
    if kind == 1:
        P = rng.choice([low, high], size=(T, K))
    elif kind == 2:  # each column is right in a stretch of its own
        owner = np.sort(rng.integers(0, K, size=T))
        P[np.arange(T), owner] = np.clip(y * (high - low), low, high)
    elif kind == 3:
        P[:] = rng.choice([low, high], size=K)
    return P, y, rng


def within(mixed):
    scale = np.abs(mixed.losses).sum() + abs(mixed.bound) + mixed.price + 1.0
    assert mixed.total <= mixed.bound + 1e-11 * scale, mixed
    assert mixed.price <= mixed.guarantee * (1 + 1e-9) + 1e-12 * scale


@pytest.mark.soak
@each
def test_the_price_is_never_exceeded(way):
    for seed in range(many(60, 1000)):
        P, y, rng = random_stream(way, seed)
        within(mixed_by(way, P, y))
        weights = rng.choice([0.0, 0.3, 1.0, 5.0], size=y.size)
        weights = np.sort(weights) if rng.random() < 0.3 else weights
        if weights.any():
            within(mixed_by(way, P, y, weights=weights))
        if way[1] != "adahedge":
            share = rng.random(y.size) * rng.choice([0.01, 0.9])
            within(mixed_by(way, P, y, share=share))
            if weights.any():
                within(mixed_by(way, P, y, share=0.05, weights=weights))


# How much of the price the climb below spends, at least: a smaller price would be found out.
SPENT = {
    "probability": 0.99,
    "square average": 0.5,
    "square substitution": 0.85,
    "logistic average": 0.45,
    "squared hinge average": 0.6,
    "huber average": 0.5,
    "absolute horizon": 0.8,
    "hinge horizon": 0.8,
    "absolute anytime": 0.65,
    "linear anytime": 0.65,
    "quantile adahedge": 0.7,
    "square adahedge": 0.65,
}


@pytest.mark.soak
@each
def test_an_adversary_that_climbs_does_not_exceed_the_price(way):
    """Hill climbing over all predictions and labels of short streams of 2 and 3 columns."""
    rng, (low, high), best = np.random.default_rng(0), way[2], 0.0
    for attempt in range(many(10, 40)):
        T, K = int(rng.integers(1, 9)), 2 + attempt % 2
        P, y, value = rng.choice([low, high], size=(T, K)), labels_for(way, rng, T), -math.inf
        for _ in range(many(300, 1000)):
            Q, z = P.copy(), y.copy()
            t = int(rng.integers(T))
            if rng.random() < 0.5:
                z[t] = labels_for(way, rng, 1)[0]
            near = P[t, 0] + rng.normal() * 0.1 * (high - low)
            Q[t, rng.integers(K)] = rng.choice([low, high, np.clip(near, low, high)])
            mixed = mixed_by(way, Q, z)
            within(mixed)
            spent = (mixed.total - mixed.totals.min()) / mixed.price if mixed.price > 0 else 0.0
            if spent >= value:
                P, y, value = Q, z, spent
        best = max(best, value)
    name = next(name for name, other in WAYS.items() if other == way)
    print(f"{name}: {best:.3f} of the price spent")
    assert best >= SPENT[name]


# Each method against a few lines of its own.


def plain_weights(lost, rate):
    """v_t ∝ e^{−rate(t)·Σ_{i<t} lost_i}, t from 1."""
    before = np.cumsum(lost, axis=0) - lost
    return np.array([e / e.sum() for e in (np.exp(-rate(t) * (row - row.min())) for t, row in enumerate(before, 1))])


@pytest.mark.parametrize("weights", [None, [2.0] * 25])
def test_mixing_probabilities_is_bayes(weights):
    rng = np.random.default_rng(0)
    P, y = rng.normal(size=(25, 4)) * 3, rng.choice([-1.0, 1.0], size=25)
    mixed = mix(P, y, weights=weights)
    lost = np.logaddexp(0.0, -P * y[:, None])
    c = 1.0 if weights is None else 2.0
    assert mixed.total == pytest.approx(-c * math.log(np.mean(np.exp(-lost.sum(axis=0)))), rel=1e-12)
    v = plain_weights(lost, lambda t: 1.0)
    assert mixed.weights == pytest.approx(v, rel=1e-10)
    q = np.sum(v / (1 + np.exp(-P)), axis=1)
    assert mixed.predictions == pytest.approx(np.log(q / (1 - q)), rel=1e-10)
    assert mixed.price == pytest.approx(c * math.log(4), rel=1e-15)


def test_probabilities_are_mixed_in_log_space():
    # The first column gains 1,000 and then loses 5,000: the second one's weight, e^{−1000}, is no number of its own.
    mixed = mix(np.array([[1000.0, -1000.0], [-5000.0, 10.0]]), [1, 1])
    assert mixed.total == pytest.approx(1000 + math.log1p(math.exp(-10)) + math.log(2), rel=1e-13)
    within(mixed)
    assert mix([[800.0, 800.0]], [1]).predictions == pytest.approx([800.0])
    assert mix([[1e308, -1e308]], [-1]).total == pytest.approx(math.log(2))


def test_the_price_of_probabilities_is_paid_in_full_by_opposite_prophets():
    signs = np.array([[1 if k >> t & 1 else -1 for k in range(8)] for t in range(3)])
    mixed = mix(signs * 50.0, [1, -1, 1])
    assert mixed.total - mixed.totals.min() == pytest.approx(math.log(8), rel=1e-12)


def test_the_largest_weight_so_far_sets_the_rate():
    rng = np.random.default_rng(1)
    P, y, a = rng.normal(size=(9, 3)), np.ones(9), np.array([1.0, 0.5, 4.0, 1.0, 0.0, 2.0, 8.0, 1.0, 1.0])
    mixed = mix(P, y, weights=a)
    lost = a[:, None] * np.logaddexp(0.0, -P)
    top = np.maximum.accumulate(a)
    assert mixed.weights == pytest.approx(plain_weights(lost, lambda t: 1 / top[t - 1]), rel=1e-10)
    assert mixed.price == pytest.approx(8 * math.log(3), rel=1e-15)
    assert mixed.losses == pytest.approx(a * np.logaddexp(0.0, -mixed.predictions), rel=1e-12)
    square = mix(P, y, weights=a, loss="square", interval=(-4, 4))
    assert square.price == pytest.approx(8 * 64 / 2 * math.log(3), rel=1e-12)


@pytest.mark.parametrize("method", ["average", "substitution"])
def test_square_loss(method):
    rng = np.random.default_rng(2)
    P, y = rng.uniform(-1, 2, size=(30, 5)), rng.uniform(-1, 2, size=30)
    mixed = mix(P, y, loss="square", method=method, interval=(-1, 2))
    rate = 1 / 18 if method == "average" else 2 / 9
    v = plain_weights((P - y[:, None]) ** 2, lambda t: rate)
    assert mixed.weights == pytest.approx(v, rel=1e-10)
    assert mixed.price == pytest.approx(math.log(5) / rate, rel=1e-13)
    if method == "average":
        assert mixed.predictions == pytest.approx(np.sum(v * P, axis=1), rel=1e-10)
        return
    for t, label in [(t, label) for t in range(30) for label in np.linspace(-1, 2, 31)]:  # Vovk's inequality
        most = -math.log(v[t] @ np.exp(-rate * (label - P[t]) ** 2)) / rate
        assert (label - mixed.predictions[t]) ** 2 <= most + 1e-12
        if label in (-1.0, 2.0):  # the slack is the same at both ends
            other = -math.log(v[t] @ np.exp(-rate * (1.0 - label - P[t]) ** 2)) / rate
            here, there = most - (label - mixed.predictions[t]) ** 2, other - (1.0 - label - mixed.predictions[t]) ** 2
            assert here == pytest.approx(there, abs=1e-12)


@pytest.mark.parametrize("method", ["horizon", "anytime"])
def test_convex_losses_of_known_range(method):
    rng = np.random.default_rng(3)
    P, y = rng.uniform(0, 2, size=(40, 6)), rng.uniform(0, 2, size=40)
    mixed = mix(P, y, loss="absolute", method=method, B=2.0)
    ln = math.log(6)
    rate = (lambda t: math.sqrt(8 * ln / 40) / 2) if method == "horizon" else (lambda t: 2 * math.sqrt(ln / t) / 2)
    v = plain_weights(np.abs(P - y[:, None]), rate)
    assert mixed.weights == pytest.approx(v, rel=1e-10)
    assert mixed.predictions == pytest.approx(np.sum(v * P, axis=1), rel=1e-10)
    assert mixed.price == pytest.approx(2 * math.sqrt((20 if method == "horizon" else 40) * ln), rel=1e-13)
    assert "B = 2 was known beforehand" in str(mixed)


def plain_adahedge(lost):
    """Weights and gaps as de Rooij, van Erven, Grünwald and Koolen (2014) define them, in plain Python."""
    T, K = lost.shape
    L, gaps, weights, all_gaps = [0.0] * K, 0.0, [], []
    for t in range(T):
        if gaps == 0.0 or K == 1:
            leaders = [k for k in range(K) if L[k] == min(L)]
            w = [1 / len(leaders) if k in leaders else 0.0 for k in range(K)]
            mixed = min(L[k] + lost[t, k] for k in range(K)) - min(L)
        else:
            eta = math.log(K) / gaps
            e = [math.exp(-eta * (L[k] - min(L))) for k in range(K)]
            w = [x / sum(e) for x in e]
            mixed = -math.log(sum(w[k] * math.exp(-eta * lost[t, k]) for k in range(K))) / eta
        gap = max(0.0, sum(w[k] * lost[t, k] for k in range(K)) - mixed)
        gaps += gap
        all_gaps.append(gap)
        weights.append(w)
        L = [L[k] + lost[t, k] for k in range(K)]
    return np.array(weights), sum(all_gaps)


@settings(max_examples=many(30, 500))
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 20), st.booleans())
def test_adahedge_is_that_of_its_paper(seed, K, T, coarse):
    rng = np.random.default_rng(seed)
    P, y = rng.uniform(0, 1, size=(T, K)), np.zeros(T)
    P = np.round(2 * P) / 2 if coarse else P
    mixed = mix(P, y, loss="absolute", method="adahedge")
    weights, gaps = plain_adahedge(P)
    assert mixed.weights == pytest.approx(weights, rel=1e-7, abs=1e-9)
    assert mixed.price == pytest.approx(2 * gaps, rel=1e-8, abs=1e-12)
    spread, ln = np.ptp(P, axis=1), math.log(K)
    if K > 1:
        most = math.sqrt(np.sum(spread**2) * ln) + spread.max() * (4 / 3 * ln + 2)
        assert mixed.guarantee == pytest.approx(most, rel=1e-12)


def test_adahedge_does_not_care_for_units_and_survives_extremes():
    rng = np.random.default_rng(5)
    P = rng.uniform(0, 1, size=(50, 3))
    small, large = (mix(P * c, np.zeros(50), loss="absolute", method="adahedge") for c in (2.0**-20, 2.0**20))
    assert small.weights == pytest.approx(large.weights, rel=1e-9)
    assert large.price == pytest.approx(small.price * 2.0**40, rel=1e-9)
    extremes = np.array([[1e-310, 0.0], [0.0, 1e-300], [1e10, 0.0], [0.0, 1e10], [1e300, 1e299]])
    within(mix(extremes, np.zeros(5), loss="absolute", method="adahedge"))


def test_fixed_share_follows_a_change_and_adds_what_it_says():
    P = np.repeat([[4.0, -4.0], [-4.0, 4.0]], 200, axis=0)
    stays, shares = mix(P, np.ones(400)), mix(P, np.ones(400), share=0.01)
    assert shares.total < 0.1 * stays.total
    assert shares.price - stays.price == pytest.approx(399 * math.log(1 / 0.99), rel=1e-9)
    v = np.array([0.5, 0.5])
    for t in range(400):
        assert shares.weights[t] == pytest.approx(v, rel=1e-9)
        v = v * 1 / (1 + np.exp(-P[t]))
        v = 0.99 * v / v.sum() + 0.005
    square = mix(np.clip(P, 0, 1), np.ones(400), loss="square", interval=(0, 2), share=0.1)
    assert square.price == pytest.approx(2 * (math.log(2) + 399 * math.log(1 / 0.9)), rel=1e-9)
    one = mix([[0.0]] * 3, [1, 1, 1], share=0.5)
    assert one.price == 0.0


def test_a_round_of_weight_0_changes_nothing():
    rng = np.random.default_rng(6)
    for way in WAYS.values():
        P, y, _ = random_stream(way, 11)
        at = int(rng.integers(y.size + 1))
        Q, z = np.insert(P, at, P[0], axis=0), np.insert(y, at, y[0])
        more = {} if way[1] == "adahedge" else {"share": 0.1}
        weights = np.insert(np.ones(y.size), at, 0.0)
        found, wanted = (
            mixed_by(way, Q, z, weights=weights, **more),
            mixed_by(way, P, y, weights=np.ones(y.size), **more),
        )
        assert found.losses[at] == 0.0
        assert np.delete(found.predictions, at) == pytest.approx(wanted.predictions, rel=1e-13)
        if at < y.size:
            assert found.price == pytest.approx(wanted.price, rel=1e-13)


@each
def test_one_column_costs_nothing_and_no_rounds_cost_no_more_than_the_price(way):
    P, y, _ = random_stream(way, 3)
    one = mixed_by(way, P[:, :1], y)
    assert one.price == 0.0
    assert one.predictions == pytest.approx(P[:, 0], rel=1e-12, abs=1e-12)
    none = mixed_by(way, P[:0], y[:0])
    assert none.total == 0.0
    within(none)


def test_the_method_follows_from_the_loss():
    P = np.array([[0.5, 0.1]])
    assert mix(P, [1]).method == "probability"
    assert mix(P, [1], loss="square", interval=(0, 1)).method == "substitution"
    assert mix(P, [1], loss="square").method == "adahedge"
    assert mix(P, [1], loss="hinge").method == "adahedge"
    assert str(mix(P, [1], loss="hinge")) == (
        "the mixture of 2 lost 0.7, the best of them (column 0) 0.5; B12 allows 0.4 more."
    )


def test_prices_as_values():
    assert price_of_mixing("probability", 16) == math.log(16)
    assert price_of_mixing("probability", 16, largest_weight=3.0) == pytest.approx(3 * math.log(16))
    assert price_of_mixing("average", 5, B=3.0) == pytest.approx(2 * 9 * math.log(5))
    assert price_of_mixing("substitution", 5, B=3.0) == pytest.approx(9 / 2 * math.log(5))
    assert price_of_mixing("horizon", 5, B=3.0, rounds=100) == pytest.approx(3 * math.sqrt(50 * math.log(5)))
    assert price_of_mixing("anytime", 5, B=3.0, rounds=100) == pytest.approx(3 * math.sqrt(100 * math.log(5)))
    for method in METHODS[:-1]:
        assert price_of_mixing(method, 1, B=1.0, rounds=10) == 0.0
    for wrong, words in [
        (lambda: price_of_mixing("adahedge", 2), "must be one of probability"),
        (lambda: price_of_mixing("hedge", 2), "must be one of probability"),
        (lambda: price_of_mixing("average", 2), "needs the range B"),
        (lambda: price_of_mixing("anytime", 2, B=math.inf), "needs the range B"),
        (lambda: price_of_mixing("anytime", 2, B=1.0), "needs rounds"),
        (lambda: price_of_mixing("probability", 0), "experts must be"),
    ]:
        with pytest.raises(SettingsError, match=words):
            wrong()


def test_refusals_say_why():
    P, y = np.array([[0.5, 0.1], [0.2, 0.9]]), [1.0, -1.0]
    for wrong, words in [
        (lambda: mix(P, y, method="hedge"), "method must be one of"),
        (lambda: mix(P, y, loss="square", method="probability"), "for logistic loss only"),
        (lambda: mix(P, y, loss="square", method="average"), "needs interval="),
        (lambda: mix(P, y, loss="square", method="average", interval=(1, 1)), "needs interval="),
        (lambda: mix(P, y, loss="square", method="average", interval=(0, 1e-200)), "needs interval="),
        (lambda: mix(P, y, loss="square", method="average", interval=(0, 1e200)), "needs interval="),
        (lambda: mix(P, y, loss="hinge", method="average", interval=(-1, 1)), "does not serve Hinge"),
        (lambda: mix(P, y, loss="absolute", method="substitution", interval=(-1, 1)), "does not serve Absolute"),
        (lambda: mix(P, y, loss="hinge", method="anytime"), "needs the range B"),
        (lambda: mix(P, y, loss="hinge", share=0.1), "adahedge takes no share"),
        (lambda: mix(P, y, share=1.0), r"must lie in \[0, 1\)"),
        (lambda: mix(P, y, share=[0.1]), r"must lie in \[0, 1\)"),
        (lambda: mix(P, y, loss="zero-one"), "zero-one|not convex"),
    ]:
        with pytest.raises(SettingsError, match=words):
            wrong()
    for wrong, words in [
        (lambda: mix(P, y, loss="square", interval=(0, 1)), "predictions and labels must lie in the interval"),
        (lambda: mix(3 * P, y, loss="logistic", method="average", interval=(0, 1)), "all predictions must lie"),
        (
            lambda: mix(P, y, loss="hinge", method="anytime", B=0.1),
            "round 1 .* differ by 0.7.*no bound known beforehand",
        ),
        (lambda: mix(P[0], y), "one row a label"),
        (lambda: mix(P, y[:1]), "one row a label"),
        (lambda: mix(P[:, :0], y), "one row a label"),
        (lambda: mix([[math.nan, 0.0]], [1]), "prediction 0 of round 0"),
        (lambda: mix(P, [1, 0]), "label 0.0 of round 1 .* is not −1 or [+]1"),
        (lambda: mix(P, y, weights=[1.0]), "one a round"),
        (lambda: mix(P, y, weights=[1.0, -1.0]), "finite and ≥ 0"),
        (lambda: mix([[1e200]], [0.0], loss="square"), "loss is not finite"),
    ]:
        with pytest.raises(DataError, match=words):
            wrong()
