"""The mixture against a plain version of itself, its guarantee, and what must not matter to it."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import brentq, minimize_scalar

import rue
from rue.learners.mixture.layout import DIAGONAL, GAPS, KINDS, LOSSES, LOWEST, MIXED, NARROW, NOTED, RATES, SHARES, USED
from rue.learners.mixture.mixture import step_of
from rue.learners.mixture.pool import NOTES
from rue.learners.mixture.standing import standing
from rue.learners.points import T


def stream(seed, rows=200, columns=6, numbers=False, drift=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * 10.0 ** rng.integers(-3, 4, columns)
    X[rng.random(X.shape) < 0.3] = 0.0
    u = rng.normal(size=columns) / np.maximum(1e-300, np.abs(X).max(axis=0))
    z = X @ u * np.where(drift & (np.arange(rows) > rows // 2), -1.0, 1.0)
    if numbers:
        return X, 100.0 + 3.0 * z + 0.1 * rng.normal(size=rows)
    return X, np.where(rng.random(rows) < 1.0 / (1.0 + np.exp(-3.0 * z)), 1.0, -1.0)


# A plain version: the table of pool.py in NumPy, one example at a time, every prox solved by bisection.


def plain_mixture(X, y, loss, classes, rates=8, share=None):
    rows, d, shared = X.shape[0], X.shape[1] + 1, None
    grid, matrix_grid = np.geomspace(2.0**-8, 2.0**6, rates), np.geomspace(2.0**-5, 4.0, rates)
    W, S = np.zeros((KINDS, d, rates)), np.zeros((DIAGONAL, d))
    largest, squares, visits, first = (np.zeros(d) for _ in range(4))
    inverses = [np.eye(d), np.eye(d)]
    losses = np.zeros((KINDS, rates))
    centre, unit, low, high = 0.0, 1.0, -40.0, 40.0
    seen, slopes, gaps, out = [], 0.0, 0.0, []
    if not classes:
        unit, low, high = 0.0, 0.0, 0.0
    for t in range(rows):
        x = np.concatenate([[1.0], X[t]])
        on = x != 0.0
        largest_now, squares_now, visits_now = np.maximum(largest, abs(x)), squares + x * x, visits + on
        first_now = np.where(first > 0.0, first, abs(x))
        with np.errstate(all="ignore"):
            by = [
                x * np.sqrt(visits_now / squares_now),
                x / np.maximum(first_now, largest_now / 1000.0),
                x / largest_now,
            ]
            exact = x / first_now if isinstance(loss, rue.Square) else by[0]
        scaled = [np.where(on, v, 0.0) for v in (by[0], by[1], by[2], by[0], exact, exact)]
        p = np.clip([v @ w for v, w in zip(scaled, W, strict=True)], low, high)
        eta = 1.0 if classes else (math.log(losses.size) / gaps if gaps > 0.0 else math.inf)
        behind = losses - losses.min()
        v = np.exp(-eta * behind) if eta < math.inf else (behind == 0.0).astype(float)
        local = losses - losses.min(axis=1, keepdims=True)
        own = np.exp(-eta * local) if eta < math.inf else (local == 0.0).astype(float)
        own /= own.sum(axis=1, keepdims=True)
        v /= v.sum()
        if share and t > 0:
            v = shared
            own = v / v.sum(axis=1, keepdims=True)
        q = centre + unit * p
        if classes:
            yes = (v / (1.0 + np.exp(-p))).sum()
            said = math.log(yes / (1.0 - yes))
        else:
            said = centre + unit * (v * p).sum()
        out.append(said)
        cost = np.array([[loss.value(b, y[t]) for b in a] for a in q])
        if not classes:
            if t == 0:
                cost[:] = loss.value(0.0, y[t])
            mine = loss.value(said, y[t])
            if eta < math.inf:
                mix = cost.min() - math.log((v * np.exp(-eta * (cost - cost.min()))).sum()) / eta
            else:
                mix = (losses + cost).min() - losses.min()
            gaps += max(0.0, mine - mix)
        losses += cost
        if classes:  # B15, round t + 1
            shared = v * np.exp(-cost)
            shared = (1.0 - 1.0 / (t + 2)) * shared / shared.sum() + 1.0 / (shared.size * (t + 2))
        pace = gauge = deviation = 1.0
        if not classes:
            centre = y[t] if t == 0 else centre
            if unit == 0.0 and y[t] != centre:
                unit = 2.0 ** math.floor(math.log2(abs(y[t] - centre)))
            away = (y[t] - centre) / unit if unit else 0.0
            low, high = min(low, away), max(high, away)
            slopes += loss.slope(centre + unit * (np.mean(seen) if seen else 0.0), y[t]) ** 2
            seen.append(away)
            gauge, deviation = 0.5 * math.sqrt(slopes / len(seen)), unit * np.std(seen)
            pace = deviation / gauge if gauge > 0.0 else 0.0
        q = centre + unit * p
        if classes:
            mixed = (own / (1.0 + np.exp(-p))).sum(axis=1)
            g, h = mixed - (y[t] > 0.0), mixed * (1.0 - mixed)
        elif gauge > 0.0:
            mixed = centre + unit * (own * p).sum(axis=1)
            apart = mixed - y[t]
            apart = np.where(abs(apart) < 0.01 * deviation, np.where(apart >= 0.0, 1.0, -1.0) * 0.01 * deviation, apart)
            g = np.array([loss.slope(m, y[t]) for m in mixed]) / gauge
            h = np.array([max(0.0, loss.slope(y[t] + a, y[t]) / a) for a in apart]) * deviation / gauge
        else:
            g, h = np.zeros(KINDS), np.zeros(KINDS)
        largest, squares, visits, first = largest_now, squares_now, visits_now, np.where(on, first_now, first)
        S[0] += (g[0] * scaled[0]) ** 2
        S[1] += (g[1] * scaled[1]) ** 2
        S[2] = np.where(on, 0.99 * S[2], S[2]) + (g[2] * scaled[2]) ** 2
        S[3] += h[3] * scaled[3] ** 2
        f = [scaled[k] / (1.0 + np.sqrt(S[k])) for k in range(3)] + [scaled[3] / (1.0 + S[3])]
        f += [inverses[0] @ exact_or_zero(scaled[4]), inverses[1] @ exact_or_zero(scaled[5]) / 0.999]
        if not pace > 0.0:
            continue
        for k in range(KINDS):
            along = f[k] @ scaled[k]
            for i in range(rates):
                rate = (grid if k < DIAGONAL else matrix_grid)[i]
                to = by_bisection(loss, q[k, i], y[t], rate * pace * along)
                W[k, :, i] -= (q[k, i] - to) / (unit * along) * f[k]
        for which, left in enumerate((1.0, 0.999)):
            Px = inverses[which] @ scaled[4 + which]
            inverses[which] -= h[4 + which] * np.outer(Px, Px) / (left + h[4 + which] * (scaled[4 + which] @ Px))
            inverses[which] /= left
            used = visits > 0.0
            most = inverses[which][used, used].max()
            if most > 10.0:
                inverses[which] *= 10.0 / most
            unseen = ~used
            inverses[which][unseen] = 0.0
            inverses[which][:, unseen] = 0.0
            inverses[which][unseen, unseen] = 1.0
    return np.array(out), losses


def exact_or_zero(v):
    return np.nan_to_num(v)


def by_bisection(loss, p, y, a):
    """argmin_q a·ℓ(q, y) + ½(q − p)², where a·slope(q) + q − p changes its sign."""
    ends = sorted((p, p - a * loss.slope(p, y)))
    if ends[0] == ends[1]:
        return p
    return brentq(lambda q: a * loss.slope(q, y) + q - p, ends[0] - 1e-12, ends[1] + 1e-12, xtol=1e-13)


def test_square_loss_against_the_plain_version():
    X, y = stream(1, numbers=True)
    learner = rue.Mixture("square")
    found = learner.run(X, y)
    wanted, losses = plain_mixture(X, y, rue.Square(), classes=False)
    assert found == pytest.approx(wanted, rel=1e-7, abs=1e-7)
    assert learner._point.members[LOSSES] == pytest.approx(losses.reshape(-1), rel=1e-6)


@pytest.mark.parametrize("share", [None, "1/t"])
def test_logistic_loss_against_the_plain_version(share):
    """Its steps are solved to 3e-4 on average, its weights are in single precision: so predictions are near."""
    X, y = stream(2)
    learner = rue.Mixture(share=share)
    found = learner.run(X, y)
    wanted, losses = plain_mixture(X, y, rue.Logistic(), classes=True, share=share)
    assert found == pytest.approx(wanted, abs=0.05)
    assert learner._point.members[LOSSES] == pytest.approx(losses.reshape(-1), rel=0.02, abs=0.02)
    loss = sum(rue.Logistic().value(p, y) for p, y in zip(found, y, strict=True))
    assert loss == pytest.approx(sum(rue.Logistic().value(p, y) for p, y in zip(wanted, y, strict=True)), rel=1e-3)


# The guarantee, B12.


def prices(learner):
    """The mixture's loss less the best running member's, and what B12 allows."""
    point = learner._point
    running = point.members[LOSSES].reshape(KINDS, -1)[point.kinds >= 0.0]
    logistic = isinstance(learner.loss, rue.Logistic)
    shared = math.log(point.memory[T]) if learner.algorithm.share else 0.0
    allowed = math.log(point.members.shape[1]) + shared if logistic else 2.0 * point.memory[GAPS]
    return point.memory[MIXED] - running.min(), allowed


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["random", "runs", "drift", "contrary", "weights"]))
def test_the_mixture_of_probabilities_costs_at_most_its_price(seed, how):
    X, y = stream(seed, rows=120, columns=3, drift=how == "drift")
    learner, weights = rue.Mixture(share=None if seed % 2 else "1/t"), None
    if how == "runs":
        y = np.repeat([1.0, -1.0, 1.0, -1.0], 30)
    if how == "weights":
        weights = np.sort(np.random.default_rng(seed).random(120) ** 9)  # the heaviest last
    if how == "contrary":  # the label is always what the mixture does not believe
        for x in X:
            learner.update(x, -1.0 if learner.predict(x) > 0.0 else 1.0)
    else:
        predictions = learner.run(X, y, weights)
        losses = np.logaddexp(0.0, -y * predictions) * (1.0 if weights is None else weights)
        assert learner._point.memory[MIXED] == pytest.approx(losses.sum(), rel=1e-9)
    price, allowed = prices(learner)
    assert price <= allowed + 1e-9


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(["square", "absolute"]), st.booleans())
def test_averages_cost_at_most_twice_the_gaps(seed, loss, contrary):
    X, y = stream(seed, rows=80, columns=3, numbers=True)
    learner = rue.Mixture(loss)
    if contrary:
        for x in X:
            learner.update(x, -1.0 if learner.predict(x) > 0.0 else 1.0)
    else:
        learner.run(X, y)
    price, allowed = prices(learner)
    assert price <= allowed + 1e-9 * (1.0 + abs(learner._point.memory[MIXED]))


# What must not matter.


@pytest.mark.parametrize("numbers", [False, True])
def test_columns_times_powers_of_two_change_no_bit(numbers):
    X, y = stream(3, numbers=numbers)
    loss = "square" if numbers else "logistic"
    factors = 2.0 ** np.random.default_rng(0).integers(-30, 30, X.shape[1])
    assert np.array_equal(rue.Mixture(loss).run(X, y), rue.Mixture(loss).run(X * factors, y))


def test_any_scaling_of_columns_changes_the_loss_by_less_than_a_percent():
    X, y = stream(4, rows=1000, columns=8)
    factors = 10.0 ** np.random.default_rng(1).uniform(-6.0, 6.0, X.shape[1])
    a, b = (rue.learn(data, y, maps=None).risk for data in (X, X * factors))
    assert b == pytest.approx(a, rel=0.01)


@pytest.mark.parametrize(("factor", "shift"), [(3.7, 1e4), (1e-6, 0.0), (1e6, -1e8), (-2.0, 5.0)])
@pytest.mark.parametrize("loss", ["square", "absolute"])
def test_shifting_and_scaling_the_target_shifts_and_scales_the_predictions(loss, factor, shift):
    X, y = stream(5, rows=400, numbers=True)
    plain, moved = rue.Mixture(loss).run(X, y), rue.Mixture(loss).run(X, factor * y + shift)
    apart = np.abs((moved - shift) / factor - plain)[1:]
    assert apart.max() <= 1e-6 * np.ptp(y)


def test_one_by_one_blocks_sparse_and_dense_are_the_same_bits():
    X, y = stream(6)
    whole = rue.Mixture()
    predictions = whole.run(X, y)
    single, cut, thin = rue.Mixture(), rue.Mixture(), rue.Mixture()
    one_by_one = []
    for x, label in zip(X, y, strict=True):
        one_by_one.append(single.predict(x))
        single.update(x, label)
    in_blocks = np.concatenate([cut.run(X[:7], y[:7]), cut.run(X[7:90], y[7:90]), cut.run(X[90:], y[90:])])
    assert np.array_equal(predictions, one_by_one)
    assert np.array_equal(predictions, in_blocks)
    assert whole == single == cut
    assert np.array_equal(predictions, thin.run(sparse.csr_matrix(X), y))


def test_rows_longer_than_the_notes_are_the_same_as_short_ones():
    """Longer rows are worked on part by part, and worked out again: it shows in the order of sums only."""
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(40, NOTES + 200)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    X[rng.random(X.shape) < 0.1] = 0.0
    X[:, 5] = 1e-160
    plain, noted, thin = (rue.Mixture(d=NOTES + 200) for _ in range(3))
    room = {"notes": np.zeros((len(NOTED), 2 * NOTES)), "spots": np.zeros(2 * NOTES + 2, dtype=np.int64)}
    noted._point = noted._point._replace(**room)
    found = plain.run(X, y)
    assert found == pytest.approx(noted.run(X, y), rel=1e-9, abs=1e-9)
    assert np.array_equal(found, thin.run(sparse.csr_matrix(X), y)), "zeros make no parts"
    assert np.abs(found).max() > 0.0


def test_weight_zero_and_weight_two():
    X, y = stream(8, rows=60)
    weights = np.ones(60)
    weights[::3] = 0.0
    learner, without = rue.Mixture(), rue.Mixture()
    learner.run(X, y, weights)
    without.run(X[weights > 0.0], y[weights > 0.0])
    assert learner == without
    heavy = rue.Mixture()
    heavy.run(X, y, 2.0 * np.ones(60))
    price, allowed = prices(heavy)
    assert price <= 2.0 * allowed + 1e-9


# Nothing diverges.


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["logistic", "square"]))
def test_garbage_stays_finite(seed, loss):
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, 1.0, -1.0, 1e-300, 1e-120, 1e120, -1e140, 3.7, 1e8, 1e-8], size=(60, 5))
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    if loss == "square":
        y = rng.choice([0.0, 1.0, -1e6, 1e12, 1e-12, 5.0], size=60)
    run = rue.learn(X, y, learner=rue.Mixture(loss))
    assert run.refused == 0
    assert np.isfinite(run.predictions).all()
    assert math.isfinite(run.loss)
    point = run.learner._point
    assert np.isfinite(point.weights).all()
    assert np.isfinite(point.matrices).all()


def test_features_too_large_to_square_are_refused_and_change_nothing():
    X, y = stream(9, rows=30)
    learner = rue.Mixture()
    learner.run(X, y)
    before = learner.copy()
    learner.update(np.full(6, 1e300), 1.0)
    assert learner == before


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_on_pure_noise_it_is_near_the_best_constant(task):
    rng = np.random.default_rng(10)
    X = rng.normal(size=(10_000, 30))
    y = np.where(rng.random(10_000) < 0.3, 1.0, -1.0) if task == "classes" else rng.normal(size=10_000)
    run = rue.learn(X, y, maps=None)
    constant = 10_000 * y.var()
    if task == "classes":
        share = (y > 0.0).mean()
        constant = -10_000 * (share * math.log(share) + (1.0 - share) * math.log(1.0 - share))
    assert run.loss <= 1.05 * constant


# Its state.


@pytest.mark.parametrize("numbers", [False, True])
def test_it_goes_on_from_a_file_bit_for_bit(tmp_path, numbers):
    X, y = stream(11, numbers=numbers)
    learner = rue.Mixture("square" if numbers else "logistic")
    learner.run(X[:90], y[:90])
    rue.save(learner, tmp_path / "m.rue")
    again, pickled = rue.load(tmp_path / "m.rue").learner, pickle.loads(pickle.dumps(learner))
    assert again == learner == pickled
    rest = learner.run(X[90:], y[90:])
    assert np.array_equal(rest, again.run(X[90:], y[90:]))
    assert np.array_equal(rest, pickled.run(X[90:], y[90:]))
    assert again == learner == pickled


def test_wide_streams_retire_the_matrices_whatever_the_blocks():
    rng = np.random.default_rng(12)
    X = sparse.random(300, 200, density=0.03, random_state=3, format="csr")
    y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    whole, single = rue.Mixture(), rue.Mixture()
    predictions = whole.run(X, y)
    one_by_one = np.concatenate([single.run(X[i], y[i : i + 1]) for i in range(300)])
    assert whole._point.memory[USED] == -1.0
    assert np.array_equal(predictions, one_by_one)
    seen = np.cumsum(X.getnnz(axis=0) > 0)
    assert seen[-1] > NARROW


def hopeless_stream(rows):
    """A truth that is turned round every 300 rounds: who never forgets falls far behind."""
    rng = np.random.default_rng(14)
    X = rng.normal(size=(rows, 6))
    turned = np.where(np.arange(rows) // 300 % 2 == 0, 1.0, -1.0)
    return X, np.where(turned * (X @ rng.normal(size=6)) > 0.0, 1.0, -1.0)


def test_hopeless_kinds_retire_whatever_the_blocks_and_files(tmp_path):
    X, y = hopeless_stream(40_000)
    whole, cut = rue.Mixture(), rue.Mixture()
    predictions = whole.run(X, y)
    found = [cut.run(X[:16_383], y[:16_383]), *(cut.run(X[i : i + 1], y[i : i + 1]) for i in range(16_383, 16_400))]
    found.append(cut.run(X[16_400:30_000], y[16_400:30_000]))
    rue.save(cut, tmp_path / "m.rue")
    cut = rue.load(tmp_path / "m.rue").learner
    found.append(cut.run(X[30_000:], y[30_000:]))
    assert np.array_equal(predictions, np.concatenate(found))
    assert whole == cut
    running = whole._point.seats >= 0
    assert 1 <= running.sum() < KINDS
    price, allowed = prices(whole)
    assert price <= allowed + 1e-9
    members = standing(whole).members
    assert [member.running for member in members] == np.repeat(running, 8).tolist()
    assert sum(member.weight for member in members) == pytest.approx(1.0)
    assert standing(whole).best.running


def test_the_best_diagonal_kind_stays():
    """The matrices lead until there are too many features for them: somebody must be left then, and go on learning."""
    rng = np.random.default_rng(0)
    X = np.zeros((24_000, 100))
    X[:20_000, :6] = rng.normal(size=(20_000, 1)) + 0.02 * rng.normal(size=(20_000, 6))
    z = X[:, :6] @ np.array([90.0, -90.0, 60.0, -60.0, 30.0, -30.0])
    X[20_000:] = rng.normal(size=(4_000, 100))
    z[20_000:] = 10.0 * (X[20_000:, 0] + X[20_000:, 80])
    y = np.where(rng.random(24_000) < 1.0 / (1.0 + np.exp(-z)), 1.0, -1.0)
    learner = rue.Mixture(share=None)  # with shares a kind that may be needed again stays
    learner.run(X[:20_000], y[:20_000])
    seats, lowest = learner._point.seats, learner._point.work[LOWEST]
    assert (seats[:DIAGONAL] >= 0).sum() == 1
    assert lowest[seats[:DIAGONAL].max()] > 1.1 * lowest[seats[DIAGONAL:].max()]
    late = learner.run(X[20_000:], y[20_000:])
    assert learner._point.memory[USED] == -1.0
    assert (learner._point.seats >= 0).sum() == 1
    assert np.isfinite(late).all()
    assert (late[2_000:] * y[22_000:] > 0.0).mean() > 0.85


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("numbers", [False, True])
def test_who_stays_learns_what_it_would_if_nobody_retired(monkeypatch, numbers):
    """Members of a kind know nothing of other kinds."""
    X, y = stream(15, rows=200, numbers=numbers)
    loss = "square" if numbers else "logistic"
    mixing = {} if numbers else {"share": None}  # with shares a kind that may be needed again stays
    everybody = rue.Mixture(loss, budget=136 if not numbers else 200, **mixing)
    everybody.run(X, y)
    monkeypatch.setattr("rue.learners.mixture.pool.PATIENCE", 40)
    monkeypatch.setattr("rue.learners.mixture.pool.LOOK", 20)
    monkeypatch.setattr("rue.learners.mixture.pool.FAR", 0.0)
    monkeypatch.setattr("rue.learners.mixture.pool.HOPELESS", 1e-6)
    some = rue.Mixture(loss, budget=136 if not numbers else 200, **mixing)
    some.run(X, y)
    before, after = standing(everybody).members, standing(some).members
    stayed = [k for k, member in enumerate(after) if member.running]
    assert 8 <= len(stayed) < len(after)
    for k, (one, other) in enumerate(zip(before, after, strict=True)):
        assert (one.kind, one.rate) == (other.kind, other.rate)
        assert one.loss == other.loss if k in stayed else one.loss >= other.loss
    assert np.isfinite(some.weights).all()
    assert some.predict(X[0]) == pytest.approx(everybody.predict(X[0]), abs=0.2 * np.abs(y).max())


def test_posterior_mean_weights_predict_what_the_mixture_of_means_does():
    """For averages of linear members nothing is lost: inside the range of labels the two are the same."""
    X, y = stream(13, rows=300, numbers=True)
    learner = rue.Mixture("square")
    learner.run(X, y)
    x = X[17]  # its scales do not move
    assert learner.bias + learner.weights @ x == pytest.approx(learner.predict(x), rel=1e-2)


def test_a_budget_is_bytes_a_feature():
    assert rue.Mixture().algorithm.budget == 200
    assert rue.Mixture(budget=150).algorithm.budget <= 150 < rue.Mixture(budget=330).algorithm.budget <= 330
    assert rue.Mixture("square").algorithm.budget == 328
    for budget in (10, True, "many"):
        with pytest.raises(rue.SettingsError, match="budget|at least"):
            rue.Mixture(budget=budget)
    point = rue.Mixture(budget=150, d=10)._point
    assert point.weights.nbytes + point.stats.nbytes + point.slots.nbytes <= 150 * point.size()


def test_rates_are_a_grid():
    members = rue.Mixture(d=1)._point.members[RATES].reshape(KINDS, -1)
    assert members[0, [0, -1]].tolist() == [2.0**-8, 2.0**6]
    assert members[0, 1:] / members[0, :-1] == pytest.approx(4.0)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(rue.SettingsError, match="regularised"):
        rue.Mixture(rue.Regularised(rue.Hinge(), 0.1))
    with pytest.raises(rue.SettingsError, match="not convex|convex"):
        rue.Mixture("zero-one")


# Implicit steps: the prox of every loss.

LOSSES_WITH_LABELS = [
    (rue.Square(), 1.3),
    (rue.Absolute(), -0.4),
    (rue.Hinge(), 1.0),
    (rue.PerceptronLoss(), -1.0),
    (rue.Logistic(), -1.0),
    (rue.SquaredHinge(), 1.0),
    (rue.Huber(0.7), 0.2),
    (rue.Quantile(0.9), 0.5),
    (rue.EpsilonInsensitive(0.3), 0.1),
    (rue.Poisson(), 3.0),
    (rue.Linear(), 0.7),
]


@pytest.mark.parametrize(("loss", "y"), LOSSES_WITH_LABELS, ids=lambda value: type(value).__name__)
@settings(deadline=None, max_examples=60)
@given(p=st.floats(-6.0, 6.0), a=st.floats(1e-3, 50.0))
def test_prox_is_the_least_of_what_it_claims(loss, y, p, a):
    def objective(q):
        return a * loss.value(q, y) + 0.5 * (q - p) ** 2

    found = objective(loss.prox(p, y, a))
    low, high = sorted((p, p - a * loss.slope(p, y)))
    least = minimize_scalar(objective, bounds=(low - 1e-9, high + 1e-9), method="bounded", options={"xatol": 1e-12}).fun
    assert found <= least + 1e-6 * (1.0 + abs(least))


@pytest.mark.usefixtures("interpreted")
def test_no_share_is_so_small_that_products_are_subnormal():
    learner = rue.Mixture(budget=136)
    learner.run(np.ones((3, 1)), [1.0, 1.0, 1.0])
    pool = learner._point
    pool.members[LOSSES] = np.linspace(0.0, 1e5, pool.members.shape[1])
    pool.experts().settle(pool.work)
    shares, kinds = pool.members[SHARES].reshape(pool.kinds.size, -1), pool.kinds
    assert (shares * kinds[:, None] * 1e-30 > np.finfo(float).tiny).all()
    assert shares.sum(axis=1) == pytest.approx(1.0)


def test_the_members_steps_are_nearly_implicit():
    """step_of against the root of d = a/(1 + e^{z + d}) found by halving: as near as it says."""
    rng = np.random.default_rng(3)
    p, a = rng.normal(size=4000) * rng.choice([0.1, 3.0, 30.0], 4000), 10.0 ** rng.uniform(-6.0, 4.0, 4000)
    for y in (1.0, -1.0):
        low, high = np.zeros(4000), a.copy()
        for _ in range(200):
            middle = 0.5 * (low + high)
            above = middle * (1.0 + np.exp(np.minimum(y * p + middle, 700.0))) > a
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        step = np.empty(4000)
        step_of(0, 4000, step, p, 1.0 / (1.0 + np.exp(-y * p)), 1.0 / (1.0 + np.exp(y * p)), a, y)
        off = np.abs(step / (-y * high) - 1.0)
        assert off.mean() < 2e-4
        assert off.max() < 0.03


def test_an_example_far_heavier_than_all_before_costs_more_than_its_weight_times_ln_k():
    """200 examples of weight 1 that all say the same, then one of weight 1000 that says the contrary (B12)."""
    X, y = np.ones((201, 1)), np.ones(201)
    y[-1] = -1.0
    weights = np.ones(201)
    weights[-1] = 1000.0
    learner = rue.Mixture(intercept=False)
    predictions = learner.run(X, y, weights)
    total = float(weights @ np.logaddexp(0.0, -y * predictions))
    found = standing(learner)
    best = min(member.loss for member in found.members)
    assert found.loss == pytest.approx(total, rel=1e-9)
    assert total - best > 1000.0 * math.log(48)  # so that w_max ln K would be a false promise
    assert total - best <= found.price_at_most * (1.0 + 1e-9)


def test_what_is_said_of_weights_where_the_price_is_stated():
    """The promise of ln K is never made without its conditions."""
    for words in (rue.Mixture.__doc__, rue.theorems()["B12"].statement):
        assert "w_max" in words
    assert "largest weight" in rue.theorems()["B15"].statement
    assert "retired" in rue.Mixture.__doc__
