"""Excess risk (B18, B19): the formulas against NumPy and a root finder, and how often they fail on a known risk."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import logsumexp

import rue

K = np.arange(1, 41)
RATES = 2.0 ** (-K / 2)


def root(V, delta):
    """S with Σ π_k e^{λ_k S − ψ_k V} = 1/δ, by bisection."""

    def off(S):
        return logsumexp(RATES * S - (-np.log1p(-RATES) - RATES) * V, b=1 / (K * (K + 1.0))) + math.log(delta)

    return brentq(off, 0.0, 100.0 + 10.0 * V)


@pytest.mark.parametrize(("T", "B", "delta"), [(1, 1.0, 0.5), (100, 21.0, 0.05), (10_000, 3.0, 1e-4)])
def test_the_slack_at_the_end_is_azumas(T, B, delta):
    bound = rue.excess_at_end(7.0, T, B, delta)
    assert bound.slack == pytest.approx(2 * B * math.sqrt(math.log(1 / delta) / (2 * T)))
    assert bound.value == pytest.approx(min(B, 7.0 / T + bound.slack))
    assert bound.slack <= 2 * B * math.sqrt(2 * math.log(2 / delta) / T)  # the notes', times the range
    assert (bound.theorem, bound.rounds, bound.regret) == ("B18", T, 7.0 / T)


@pytest.mark.parametrize(("T", "B", "delta"), [(1, 1.0, 0.5), (100, 21.0, 0.05), (5000, 3.0, 0.01)])
def test_the_slack_at_every_moment_is_the_mixtures(T, B, delta):
    rng = np.random.default_rng(T)
    d = B * rng.uniform(-1, 1, T) * rng.random(T)
    x, V = (d + B) / (2 * B), 0.0
    for t in range(1, T + 1):
        V += (x[t - 1] - (0.5 + x[: t - 1].sum()) / t) ** 2
    known = rue.excess_always(d.sum(), T, B, delta, differences=d)
    assert known.slack == pytest.approx(2 * B / T * root(V, delta), rel=1e-9)
    unknown = rue.excess_always(d.sum(), T, B, delta)
    assert unknown.slack == pytest.approx(2 * B / T * root(T / 4 + math.log(T + 1), delta), rel=1e-9)
    assert known.slack <= unknown.slack
    assert unknown.value == pytest.approx(min(B, d.sum() / T + unknown.slack))


def test_no_rounds_have_a_larger_variance():
    """V_T is convex in each round, hence largest at the ends 0 and 1: all such streams of 12 rounds."""
    T = 12
    x = ((np.arange(2**T)[:, None] >> np.arange(T)) & 1).astype(float)
    t = np.arange(1, T + 1)
    V = np.cumsum((x - (0.5 + np.cumsum(x, axis=1) - x) / t) ** 2, axis=1)
    assert (V.max(axis=0) <= t / 4 + np.log(t + 1)).all()
    assert V.max() > T / 4  # the logarithm is needed


def test_it_holds_for_the_unknown_best_point_by_the_certificate_alone(interpreted):
    """Risk(w̄) − min_K Risk ≤ D1/T + slack in (nearly) all of 40 streams drawn from 25 examples; the risks are exact."""
    rng, U, T, delta = np.random.default_rng(1), 1.5, 60, 0.2
    X = rng.normal(size=(25, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ [1, 1] + 0.5 * rng.normal(size=25) > 0, 1.0, -1.0)

    def risk(w):
        return np.maximum(0, 1 - y * (X @ w)).mean()

    angles, radii = np.linspace(0, 2 * np.pi, 721), np.linspace(0, U, 61)
    grid = np.array([[r * np.cos(a), r * np.sin(a)] for r in radii for a in angles])
    least = min(
        minimize(risk, u, method="Nelder-Mead").fun if np.linalg.norm(u) < 0.9 * U else risk(u) for u in grid[::997]
    )
    least = min(least, float(np.maximum(0, 1 - y * (grid @ X.T)).mean(axis=1).min()))
    slacks = []
    for drawn in rng.integers(25, size=(40, T)):
        learner = rue.OGD("hinge", f"ball:{U}", average="uniform", intercept=False)
        run = rue.learn(X[drawn], y[drawn], learner=learner)
        bound = rue.excess_at_end(run.certificate(U).regret_at_most, T, 1 + U, delta)
        slacks.append(bound.value - (risk(run.learner.average) - least))
    assert np.mean(np.array(slacks) < -1e-3) <= delta


def test_in_words():
    words = (
        "with probability at least 1 − 0.1, the risk of the uniform average of the points played, less that of a point"
    )
    assert str(rue.excess_always(2.0, 100, B=2.0, delta=0.1)).startswith(words)
    assert "which says no more than the range of the loss does" in str(rue.excess_at_end(1e6, 10, B=2.0))
    assert "the number of rounds was fixed in advance" not in str(rue.excess_always(2.0, 100, B=2.0))


@pytest.mark.parametrize("bound", [rue.excess_at_end, rue.excess_always])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((1.0, 2.0), 10, 1.0), "the regret must be a finite number, not (1.0, 2.0)."),
        ((math.inf, 10, 1.0), "the regret must be a finite number, not inf."),
        ((1.0, 0, 1.0), "the number of rounds must be a whole number ≥ 1, not 0."),
        ((1.0, 10, math.inf), "no risk bound without a range: B = inf,"),
        ((1.0, 10, 1.0, 1.0), "delta, the probability of failure, must lie between 0 and 1, not be 1.0."),
    ],
)
def test_what_makes_no_sense_is_refused(bound, arguments, words):
    with pytest.raises(rue.SettingsError) as refused:
        bound(*arguments)
    assert str(refused.value).startswith(words)


def test_differences_that_are_none_are_refused():
    with pytest.raises(rue.DataError, match="there are 2 differences, but 3 rounds: one difference a round"):
        rue.excess_always(1.0, 3, 1.0, differences=[0.1, 0.2])
    with pytest.raises(rue.DataError, match=r"the difference -1.5 lies outside \[−B, B\] with B = 1"):
        rue.excess_always(1.0, 2, 1.0, differences=[0.1, -1.5])
