"""The tracker of E2 (b), against a few lines of NumPy and against opponents that see the interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rue.intervals.sets import SetLearner, before
from rue.intervals.tracker import (
    DEBT,
    DOUBLINGS,
    FREE,
    HITS,
    KAPPA,
    REACH,
    ROUNDS,
    SCALE,
    SEEN,
    SLOTS,
    cover,
    debts,
)


def by_formula(scores, alpha, kappa=0.1):
    """c_t of THEORY E2 (b) for intervals without width, with the scale and the guess that `tracker` documents."""
    v, D, R, rho, b, t = alpha * (1 - alpha), 0.0, 0.0, 0.0, 0.0, 0
    for n, s in enumerate(scores, 1):
        c = 0.0
        if R > 0:
            c = b + kappa * max(rho, 2**-20 * R) * np.sign(D) * np.expm1(min(D * D / (2 * v * (t + 1)), 100.0))
            c = float(np.clip(c, -2 * R, 2 * R))
        yield c
        if R > 0 or s != 0:
            D, t = D + (s > c) - alpha, t + 1
        R, rho = max(R, abs(s)), rho + max(0.01, 1 / n) * (abs(s) - rho)
        b = float(np.clip(b + 0.02 * max(rho, 2**-20 * R) * ((s > b) - alpha), -R, R))


def play(scores, alpha):
    """The tracker on one-sided intervals that end at 0, so that the label is its own score."""
    memory, n = np.zeros((1, len(SLOTS))), len(scores)
    lower, upper = np.empty((n, 1)), np.empty((n, 1))
    ends = np.full((n, 1), -math.inf), np.zeros((n, 1))
    cover(memory, np.array([alpha]), *ends, np.asarray(scores, float), np.ones(n, dtype=bool), lower, upper)
    return memory[0], upper[:, 0]


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.02])
@pytest.mark.parametrize("kind", ["normal", "cauchy", "zeros first", "steps"])
def test_the_widening_is_the_formula(alpha, kind, interpreted):
    rng = np.random.default_rng(3)
    scores = {"normal": rng.normal(size=600), "cauchy": rng.standard_cauchy(600)}.get(kind)
    if kind == "zeros first":
        scores = np.concatenate([np.zeros(40), rng.exponential(size=300)])
    if kind == "steps":
        scores = np.repeat([1.0, -3.0, 50.0, 0.0], 150)
    memory, shown = play(scores, alpha)
    assert shown == pytest.approx(list(by_formula(scores, alpha)), rel=1e-9, abs=1e-12)
    assert memory[SEEN] == len(scores)
    assert memory[HITS] == np.count_nonzero(scores <= shown)


class Opponent:
    """Chooses a label after it has seen the interval."""

    def above(self, low, high, t):
        return high + 1.0

    def just_above(self, low, high, t):
        return math.nextafter(high, math.inf)

    def inside(self, low, high, t):
        return 0.5 * low + 0.5 * high if t % 7 else 3.0

    def growing(self, low, high, t):
        return high + abs(high) * 0.5 + 1.0 if t % 3 == 0 else 0.0

    def in_turns(self, low, high, t):
        return high + 1.0 if (t // 300) % 2 else 0.3 * low + 0.7 * high

    def at_the_end(self, low, high, t):
        return high

    def random(self, low, high, t):
        return float(np.random.default_rng(t).standard_cauchy())


def rounds(opponent, alphas, n=1500, forecaster=None):
    """One round after the other, as an opponent plays them."""
    memory, alphas = np.zeros((len(alphas), len(SLOTS))), np.array(alphas)
    one = np.ones(1, dtype=bool)
    worst = np.zeros(len(alphas))
    for t in range(1, n + 1):
        half = np.array([[0.0 if forecaster is None else forecaster(t, k) for k in range(len(alphas))]])
        lower, upper = np.empty_like(half), np.empty_like(half)
        hidden = memory.copy()
        cover(hidden, alphas, -half, half, np.zeros(1), ~one, lower, upper)
        y = opponent(lower[0, -1], upper[0, -1], t)
        cover(memory, alphas, -half, half, np.array([y]), one, lower, upper)
        assert (lower[0, 1:] <= lower[0, :-1]).all()
        assert (upper[0, 1:] >= upper[0, :-1]).all()
        worst = np.maximum(worst, np.abs(memory[:, DEBT]) / debts(memory, alphas).clip(1.0))
    return memory, worst


MOVES = ["above", "just_above", "inside", "growing", "in_turns", "at_the_end", "random"]


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.05])
def test_no_opponent_moves_the_debt_beyond_the_promise(move, alpha, interpreted):
    memory, worst = rounds(getattr(Opponent(), move), [alpha])
    m = memory[0]
    assert worst[0] <= 1.0
    assert m[SEEN] == 1500 == m[ROUNDS] + m[FREE]
    # the promise without the run's own scales, and the debt as the count of misses
    v, T = alpha * (1 - alpha), m[ROUNDS]
    before_run = math.sqrt(2 * v * T * math.log1p(3 * 2**20 / KAPPA)) + 1 + m[DOUBLINGS]
    assert debts(memory, np.array([alpha]))[0] <= before_run + 1e-9
    misses = m[SEEN] - m[HITS]
    assert m[DEBT] == pytest.approx(misses - alpha * T, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("p", [0.0, 1e9])
def test_labels_that_lie_exactly_at_an_end_keep_the_promise(p, alpha, interpreted):
    """At c_t = −2R a label at the end is a hit whose abs(s) is 2R, and no more; next to a large p, or somewhat less."""
    memory, alphas, one = np.zeros((1, len(SLOTS))), np.array([alpha]), np.ones(1, dtype=bool)
    lo, hi, y = np.array([[p]]), np.array([[math.inf]]), p - 1e-3
    for _ in range(1000):
        lower, upper = np.empty((1, 1)), np.empty((1, 1))
        cover(memory, alphas, lo, hi, np.array([y]), one, lower, upper)
        assert abs(memory[0, DEBT]) <= debts(memory, alphas)[0]
        cover(memory.copy(), alphas, lo, hi, np.array([y]), ~one, lower, upper)
        y = float(lower[0, 0])  # the end of the next interval


@pytest.mark.parametrize("move", MOVES)
def test_levels_do_not_cross_and_keep_their_promises(move, interpreted):
    """The outer intervals of this forecaster are now and then far narrower than the inner ones, and far too wide."""
    wild = lambda t, k: (5.0, 1.0, 0.2)[k] if t % 50 else (1.0, 100.0, 0.1)[k]  # noqa: E731
    _, worst = rounds(getattr(Opponent(), move), [0.5, 0.2, 0.05], 1200, wild)
    assert (worst <= 1.0).all()


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.5, -7.0, 1e3, 1e-3]), min_size=1, max_size=200),
    st.sampled_from([0.1, 0.4]),
)
def test_any_list_of_scores_keeps_the_promise(interpreted_module, scores, alpha):
    memory, _ = play(scores, alpha)
    assert abs(memory[DEBT]) <= debts(memory[None], np.array([alpha]))[0] + 1e-9


def test_a_point_that_is_always_right_is_outside_the_debt(interpreted):
    memory, n = np.zeros((1, len(SLOTS))), 800
    y = np.concatenate([np.arange(200.0), np.full(600, 7.0)])
    p = np.where(np.arange(n) < 200, y + 1.0, y)[:, None]
    lower, upper = np.empty((n, 1)), np.empty((n, 1))
    cover(memory, np.array([0.1]), p.copy(), p.copy(), y, np.ones(n, dtype=bool), lower, upper)
    assert (lower <= upper).all()
    assert memory[0, FREE] > 50
    assert abs(memory[0, DEBT]) <= debts(memory, np.array([0.1]))[0]


def test_probability_before_a_class():
    P = np.array([[0.2, 0.5, 0.3], [0.25, 0.25, 0.5]])
    assert before(P).tolist() == [[0.8, 0.0, 0.5], [0.5, 0.75, 0.0]]


@pytest.mark.parametrize("truth", ["honest", "overconfident", "jump"])
def test_sets_of_classes_hold_the_right_one_as_often_as_promised(truth, interpreted):
    rng = np.random.default_rng(5)
    n, k = 3000, 6
    P = rng.dirichlet(np.full(k, 0.5), size=n)
    real = P.copy()
    if truth == "overconfident":
        real = 0.5 * P + 0.5 / k
    if truth == "jump":
        real[n // 2 :] = 1.0 / k
    y = np.array([rng.choice(k, p=row) for row in real])
    learner = SetLearner(0.9)
    sets = learner.enter(None, P, y)
    found = learner.summary()
    assert found.covered == np.mean(sets[np.arange(n), y])
    assert abs(found.covered - 0.9) <= found.promised_within + found.free / n
    assert found.mean_width == pytest.approx(sets.sum(axis=1).mean())
    # a set has no class that is less probable than one left out, and the most probable one always
    for row, chosen in zip(P, sets, strict=True):
        assert chosen[row.argmax()]
        assert row[chosen].min() >= row[~chosen].max(initial=0.0)
    halves = SetLearner(0.9)
    again = [halves.enter(None, P[i : i + 7], y[i : i + 7]) for i in range(0, n, 7)]
    assert np.array_equal(np.concatenate(again), sets)
    assert np.array_equal(halves.memory, learner.memory)


def test_a_class_that_never_came_is_in_no_set(interpreted):
    learner = SetLearner(0.9)
    P = np.array([[0.9, 0.05, 0.0], [0.8, 0.1, 0.05]])
    sets = learner.enter(None, P, np.array([2, 3]))
    assert not sets[0, 2]
    assert learner.summary().covered == 0.0
    assert learner.memory[0, DOUBLINGS] == 2.0
    assert learner.memory[0, DEBT] == pytest.approx(1.8)


def test_a_level_with_far_too_many_hits_takes_the_interval_of_the_level_before(interpreted):
    """Else labels between the two, however wide its own is, would be hits for ever."""
    memory = np.zeros((2, len(SLOTS)))
    memory[1, [DEBT, ROUNDS, SEEN, HITS]] = -100.0, 1000.0, 1000.0, 1000.0
    memory[:, [REACH, SCALE]] = 1.0
    lower, upper = np.empty((1, 2)), np.empty((1, 2))
    ends = np.array([[1.0, 50.0]])
    cover(memory, np.array([0.5, 0.1]), -ends, ends, np.zeros(1), np.zeros(1, dtype=bool), lower, upper)
    assert (lower[0, 1], upper[0, 1]) == (lower[0, 0], upper[0, 0])
