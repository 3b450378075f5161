"""Risk of the averaged model from the losses of one pass: B11, B13, B14."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rue
from conftest import many
from rue.errors import DataError, SettingsError
from rue.regret.risk.bernstein import deviation
from rue.regret.risk.bounds import (
    coverage,
    risk_always,
    risk_at_end,
    risk_curve,
    risk_in_expectation,
    risk_of_ogd,
    risk_of_svm,
)
from rue.regret.risk.ranges import loss_range

# B14's root and variance.


def root(V, delta):
    """S by bisection in 50 digits, from the formula as docs/theory.md prints it."""
    with localcontext() as context:
        context.prec = 50
        V, delta = Decimal(float(V)), Decimal(delta)
        lambdas = [Decimal(2) ** (Decimal(-k) / 2) for k in range(1, 41)]

        def mixture(S):
            terms = ((lam * S - (-(1 - lam).ln() - lam) * V).exp() for lam in lambdas)
            return sum(term / (k * (k + 1)) for k, term in enumerate(terms, 1))

        low, high = Decimal(0), Decimal(1)
        while mixture(high) < 1 / delta:
            low, high = high, 2 * high
        while high - low > high * Decimal("1e-18"):
            middle = (low + high) / 2
            low, high = (middle, high) if mixture(middle) < 1 / delta else (low, middle)
        return float(high)


@pytest.mark.parametrize("delta", [0.999, 0.5, 0.05, 1e-6, 1e-300])
def test_the_root_is_that_of_fifty_digits_and_never_below_it(delta):
    V = np.array([0.0, 1e-9, 0.3, 7.0, 2500.0, 250_000.0, 1e6])
    found = deviation(V, delta)
    wanted = np.array([root(v, delta) for v in V])
    assert found == pytest.approx(wanted, rel=1e-11)
    assert np.all(found >= wanted * (1 - 1e-12))
    assert np.all(found >= np.sqrt(-2.0 * math.log(delta) * V))  # which `coverage` counts on


def test_roots_do_not_depend_on_how_many_are_asked_for():
    V = np.random.default_rng(0).exponential(1000.0, size=(3, 4100))
    assert deviation(V, 0.05).shape == V.shape
    assert deviation(V, 0.05)[2, 4099] == pytest.approx(float(deviation(V[2, 4099], 0.05)), rel=1e-13)


def bernstein(losses, B, delta):
    """B14 after all these losses, in plain Python."""
    before, V = 0.0, 0.0
    for t, loss in enumerate(losses, 1):
        V += ((loss - (B / 2 + before) / t) / B) ** 2
        before += loss
    return before / len(losses) + B / len(losses) * root(V, delta)


@pytest.mark.soak
@settings(max_examples=many(10, 200))
@given(st.lists(st.floats(0, 3), min_size=1, max_size=30), st.sampled_from([0.2, 0.05, 1e-9]))
def test_b14_is_the_formula_at_every_round(losses, delta):
    curve = risk_curve(losses, 3.0, delta)
    for t in {1, (len(losses) + 1) // 2, len(losses)}:
        wanted = bernstein(losses[:t], 3.0, delta)
        assert curve[t - 1] == pytest.approx(min(wanted, 3.0), rel=1e-10)
        bound = risk_always(losses[:t], 3.0, delta)
        assert bound.value == curve[t - 1] or bound.value == pytest.approx(curve[t - 1], rel=1e-12)
        assert bound.sequential_risk + bound.slack == pytest.approx(wanted, rel=1e-10)
        assert bound.rounds == t


def test_small_losses_make_b14_far_tighter_than_b13_as_theory_says():
    assert loss_range("hinge", "ball:10", 5) == 51.0
    losses = np.zeros(10_000)
    losses[:10] = 1.0
    assert risk_at_end(losses, 51.0).slack == pytest.approx(0.624, abs=5e-4)
    assert risk_always(losses, 51.0).value == pytest.approx(0.028, abs=5e-4)


def test_b14_is_sound_for_a_million_rounds_and_any_delta():
    losses = np.random.default_rng(1).random(10**6)
    values = [risk_always(losses, 1.0, delta).value for delta in (0.9, 0.5, 0.05, 1e-3, 1e-10, 1e-100, 1e-300)]
    assert np.all(np.diff(values) > 0)
    assert values[2] < 0.5 + 3 * math.sqrt(math.log(20) / 12 / 10**6) * 2
    assert values[-1] < 0.52


def test_b14_fails_at_some_round_with_probability_at_most_delta_exactly():
    """Every sequence of 12 losses 0 or 1, weighted by its probability: nothing is sampled."""
    T = 12
    x = np.array(list(itertools.product([0.0, 1.0], repeat=T)))
    heads, t = x.sum(axis=1), np.arange(1, T + 1)
    for delta in (0.3, 0.6, 0.9):
        S = np.array([risk_always(row[:n], 1.0, delta).slack * n for row in x[::61] for n in t]).reshape(-1, T)
        guess = (0.5 + np.cumsum(x, axis=1) - x) / t
        V = np.cumsum((x - guess) ** 2, axis=1)
        all_S = deviation(V, delta)
        assert all_S[::61] == pytest.approx(S, rel=1e-12)
        worst = 0.0
        for q in np.linspace(0.05, 0.95, 19):
            fails = np.any(q * t - np.cumsum(x, axis=1) > all_S, axis=1)
            worst = max(worst, float(np.sum(fails * q**heads * (1 - q) ** (T - heads))))
        assert worst <= delta
        assert worst > 0.05 * delta  # and it is no idle bound


# B13.


@pytest.mark.parametrize(("T", "B", "delta"), [(1, 1.0, 0.05), (7, 3.0, 0.5), (1000, 51.0, 1e-300)])
def test_b13_is_the_formula(T, B, delta):
    losses = np.random.default_rng(T).random(T) * B
    plain = risk_at_end(losses, B, delta)
    assert plain.sequential_risk == pytest.approx(losses.mean(), rel=1e-13)
    assert plain.slack == pytest.approx(B * math.sqrt(math.log(1 / delta) / (2 * T)), rel=1e-12)
    assert plain.value == min(B, plain.sequential_risk + plain.slack)
    by_time = risk_at_end(losses, B, delta, weighting="t")
    assert by_time.sequential_risk == pytest.approx(np.average(losses, weights=np.arange(1, T + 1)), rel=1e-12)
    wanted = B * math.sqrt(math.log(1 / delta) * (2 * T + 1) / (3 * T * (T + 1)))
    assert by_time.slack == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("weights", [None, [1.0, 3.0, 0.5, 2.0] * 3])
def test_b13_fails_with_probability_at_most_delta_exactly(weights):
    x = np.array(list(itertools.product([0.0, 1.0], repeat=12)))
    heads = x.sum(axis=1)
    for delta, weighting in itertools.product((0.1, 0.4, 0.8), ("uniform", "t")):
        bounds = [risk_at_end(row, 1.0, delta, weighting=weighting, weights=weights) for row in x]
        uncapped = np.array([bound.sequential_risk + bound.slack for bound in bounds])
        fails = [np.sum((q > uncapped) * q**heads * (1 - q) ** (12 - heads)) for q in np.linspace(0.02, 0.98, 49)]
        assert 0.1 * delta < max(fails) <= delta


# What both share.


def test_examples_weights_are_fixed_weights_of_the_average():
    rng = np.random.default_rng(3)
    losses, c = rng.random(50), rng.random(50)
    for bound in (risk_at_end, risk_always):
        whole = bound(losses, 1.0, weights=c)
        assert whole.sequential_risk == pytest.approx(np.average(losses, weights=c), rel=1e-12)
        more = {"largest_weight": 7.0} if bound is risk_always else {}
        assert bound(losses, 1.0, weights=7.0 * c, **more).value == pytest.approx(whole.value, rel=1e-12)
        assert bound(losses, 1.0, weights=np.ones(50)).value == pytest.approx(bound(losses, 1.0).value, rel=1e-12)
        assert "weights were fixed" in str(whole)
    assert risk_at_end(losses, 1.0, weights=c).slack == pytest.approx(
        math.sqrt(math.log(20) * np.sum(c**2) / 2) / c.sum(), rel=1e-12
    )
    x = c * losses / 2.0
    guess = (0.5 + np.cumsum(x) - x) / np.arange(1, 51)
    always = risk_always(losses, 1.0, weights=c, largest_weight=2.0)
    assert always.slack == pytest.approx(2.0 / c.sum() * root(np.sum((x - guess) ** 2), 0.05), rel=1e-10)
    assert "no weight will ever exceed 2" in str(always)
    curve = risk_curve(losses, 1.0, weights=c, largest_weight=2.0)
    for t in (1, 20, 50):
        wanted = risk_always(losses[:t], 1.0, weights=c[:t], largest_weight=2.0).value
        assert curve[t - 1] == pytest.approx(wanted, rel=1e-12)
    for largest in (0.9, math.inf, math.nan):
        with pytest.raises(SettingsError, match="known beforehand, that no weight will ever exceed"):
            risk_always([0.5], 1.0, weights=[1.0], largest_weight=largest)


@pytest.mark.parametrize("bound", [risk_at_end, risk_always])
def test_rounds_of_weight_0_change_nothing_and_rounds_without_a_loss_are_left_out(bound):
    losses, nan = [0.2, 0.9, 0.4], math.nan
    wanted = bound(losses, 1.0, weights=[0.1, 0.2, 0.3])
    found = bound([0.7, 0.2, nan, 0.9, nan, 0.4], 1.0, weights=[0.0, 0.1, 0.5, 0.2, 0.0, 0.3])
    assert (found.value, found.slack, found.rounds) == (wanted.value, wanted.slack, 3)
    assert found.left_out == 1
    assert "1 rounds without a loss left out" in str(found)
    assert "left out" not in str(wanted)


def test_the_curve_stands_still_where_there_is_no_loss():
    curve = risk_curve([math.nan, 0.0, math.nan] + [0.0] * 40, 2.0)
    assert curve[0] == 2.0
    assert curve[2] == curve[1]
    assert list(curve[3:]) == list(risk_curve([0.0] * 41, 2.0)[1:])
    assert curve[-1] < 0.5


def test_sentences_say_what_is_bounded():
    losses = [0.0, 1.0] * 500
    assert str(risk_at_end(losses, 1.0, 0.1, loss="hinge")) == (
        "with probability at least 1 − 0.1, the risk of the uniform average of the points played is at most 0.533931 "
        "(B13; sequential risk 0.5 plus 0.0339307), if the examples are independent draws from one distribution, the "
        "number of rounds was fixed in advance and all losses lie in [0, 1], known beforehand."
    )
    for bound in (risk_at_end, risk_always):
        mistakes = bound(losses, 1.0, loss="zero-one")
        assert "the mean risk of the points played (not the risk of their average" in str(mistakes)
        assert "the loss is convex" in str(bound(losses, 1.0))
    assert "average of the points played, weighted by t is" in str(
        risk_at_end(losses, 1.0, weighting="t", loss="hinge")
    )
    assert "fixed in advance" not in str(risk_always(losses, 1.0))
    assert "no more than the range" in str(risk_always([0.5], 1.0))
    assert risk_always([0.5], 1.0).value == 1.0


@pytest.mark.parametrize("bound", [risk_at_end, risk_always, risk_curve])
def test_refusals_say_why(bound):
    for B in (None, math.inf, 0.0, -1.0, math.nan):
        with pytest.raises(SettingsError, match="no risk bound without a range.*a ball, not the reals"):
            bound([0.5], B)
    for delta in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(SettingsError, match="delta, the probability of failure"):
            bound([0.5], 1.0, delta)
    for wrong in (1.1, -0.1, math.inf):
        with pytest.raises(DataError, match=r"row 1 .*outside \[0, B\].*no bound known beforehand"):
            bound([0.5, wrong], 1.0)
    for nothing in ([], [math.nan]):
        with pytest.raises(DataError, match="nothing can be said"):
            bound(nothing, 1.0)
    with pytest.raises(DataError, match="nothing can be said"):
        bound([0.5], 1.0, weights=[0.0])
    with pytest.raises(DataError, match="one weight a loss"):
        bound([0.5], 1.0, weights=[1.0, 1.0])
    for weight in (-1.0, math.inf, math.nan):
        with pytest.raises(DataError, match="finite and ≥ 0"):
            bound([0.5], 1.0, weights=[weight])
    with pytest.raises(DataError, match="one dimension"):
        bound([[0.5]], 1.0)
    with pytest.raises(DataError, match="must be real numbers"):
        bound(["a"], 1.0)
    assert bound([1.0 + 1e-12], 1.0) is not None  # rounding is no lie


def test_more_refusals():
    with pytest.raises(SettingsError, match="'uniform' or 't'"):
        risk_at_end([0.5], 1.0, weighting="steps")
    with pytest.raises(SettingsError, match="rue.Loss or a spec"):
        risk_at_end([0.5], 1.0, loss=3)


# B.

DOMAINS = {
    "ball": rue.Ball(2.0),
    "off centre": rue.Ball(1.0, [3.0, 0.0, -1.0]),
    "box": rue.Box([-1.0, 0.0, -3.0], [1.0, 2.0, 0.0]),
    "same sides": rue.Box(-0.5, 2.0),
    "simplex": rue.Simplex(2.0),
    "l1": rue.L1Ball(3.0),
    "both": rue.Intersection(rue.Ball(2.0), rue.Box(-1.0, 1.0)),
}


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_no_loss_in_the_domain_exceeds_the_range_which_is_attained(domain):
    rng, X = np.random.default_rng(5), 1.5
    reach = 3.0 if isinstance(domain, rue.Intersection) else 1e3  # Dykstra is slow from afar
    far = rng.normal(size=(100, 3)) * reach
    corners = np.array(list(itertools.product([-reach, 0.1, reach], repeat=3)))
    points = np.array([domain.project(w) for w in np.vstack([far, corners])])
    losses = ["hinge", "logistic", "perceptron", "squared-hinge", "square", "absolute", "huber:0.7", "quantile:0.9"]
    for spec in [*losses, "epsilon-insensitive:0.2"]:
        loss = rue.make("loss", spec)
        B = loss_range(loss, domain, X, y_low=-1.0, y_high=4.0, d=3)
        labels = (-1.0, 1.0) if loss.task == "classify" else (-1.0, 0.3, 4.0)
        scores = [s * X * np.linalg.norm(w) for w in points for s in (-1, 1)]  # x along w or against it
        largest = max(loss.value(float(p), y) for p in scores for y in labels)
        assert largest <= B * (1 + 1e-9)
        if not isinstance(domain, rue.Intersection):
            assert largest >= 0.98 * B
        else:
            assert loss_range(loss, "box:-1,1", X, y_low=-1.0, y_high=4.0, d=3) == B


def test_ranges_as_formulas():
    assert loss_range("logistic", "ball:3", 2) == pytest.approx(math.log1p(math.exp(6)), rel=1e-14)
    assert loss_range("square", rue.Interval(-1, 1), 2, y_low=0, y_high=5) == 49.0
    assert loss_range("zero-one", "reals", 2) == 1.0
    for unbounded in ("hinge", "logistic", "square"):
        assert loss_range(unbounded, "reals", 2, y_low=0, y_high=1) == math.inf
    assert loss_range("square", "ball:1", 2) == math.inf  # labels of any size
    assert loss_range("hinge", "orthant", 1) == math.inf
    with pytest.raises(SettingsError, match="no risk bound without a range"):
        risk_at_end([0.5], loss_range("square", "reals", 2))


def test_ranges_refused():
    @rue.parameter
    class Own(rue.Loss):
        def value(self, p, y):
            return abs(p) * math.sin(y) ** 2

    @rue.parameter
    class Disc(rue.Domain):
        bounded = True

        def onto(self, w, scratch):
            for j in range(w.size):
                w[j] = min(1.0, max(-1.0, w[j]))
            return 0.0

        def diameter(self, d):
            return 2.0 * math.sqrt(d)

    assert loss_range("hinge", Disc(), 1.0, d=4) == 5.0
    for wrong, words in [
        (lambda: loss_range("poisson", "ball:1", 1), "never negative"),
        (lambda: loss_range("linear", "ball:1", 1), "never negative"),
        (lambda: loss_range(Own(), "ball:1", 1, y_low=0, y_high=9), "where Own is largest is not known"),
        (lambda: loss_range("square", "ball:1", 1, y_low=1), "y_low and y_high"),
        (lambda: loss_range("square", "ball:1", 1, y_low=2, y_high=1), "y_low and y_high"),
        (lambda: loss_range("hinge", "box:-1,1", 1), "needs d=…"),
        (lambda: loss_range("hinge", "ball:1", math.inf), "largest norm of the features"),
        (lambda: loss_range("hinge", "ball:1", -1), "largest norm of the features"),
        (lambda: loss_range(3, "ball:1", 1), "give a loss and a domain"),
        (lambda: loss_range("hinge", 3, 1), "give a loss and a domain"),
    ]:
        with pytest.raises(SettingsError, match=words):
            wrong()


def test_the_bound_holds_for_the_averaged_model_of_a_run():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(22_000, 3))
    y = np.where(X @ [1.0, -2.0, 0.5] + rng.normal(size=22_000) * 0.3 > 0, 1.0, -1.0)
    learner = rue.OGD("hinge", "ball:3", average="uniform")
    run = rue.learn(X[:2000], y[:2000], learner=learner)
    B = loss_range("hinge", "ball:3", math.sqrt(4.0))
    Z = np.hstack([np.ones((20_000, 1)), X[2000:]])
    fresh = np.maximum(0.0, 1.0 - y[2000:] * (Z @ run.learner.average)).mean()
    always = risk_always(run.losses, B, loss="hinge")
    assert fresh <= always.value < risk_at_end(run.losses, B).value
    assert always.value < 0.75


# B11: the expectation over all streams of a few rounds, exactly.

X4 = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0], [-0.3, 0.2]])
Y4 = np.array([1.0, -1.0, 1.0, 1.0])
CHANCE = np.array([0.4, 0.3, 0.2, 0.1])


def expected_excess(average_of, risk, T, points):
    """E F(w̄) − min over points of F, over all 4^T streams."""
    mean = sum(
        float(np.prod(CHANCE[list(stream)])) * risk(average_of(stream))
        for stream in itertools.product(range(4), repeat=T)
    )
    return mean - min(risk(u) for u in points)


def hinge_risk(w, lambda_=0.0):
    return float(CHANCE @ np.maximum(0.0, 1.0 - Y4 * (X4 @ w))) + lambda_ / 2 * float(w @ w)


def logistic_risk(w):
    return float(CHANCE @ np.logaddexp(0.0, -Y4 * (X4 @ w)))


def averaged(stream, step, alpha, slope, lambda_=0.0, radius=math.inf):
    w, total, mass = np.zeros(2), np.zeros(2), 0.0
    for t, i in enumerate(stream, 1):
        total, mass = total + alpha(t) * w, mass + alpha(t)
        w = w - step(t) * (lambda_ * w + slope(float(Y4[i] * (X4[i] @ w))) * Y4[i] * X4[i])
        norm = float(np.linalg.norm(w))
        w = w * min(1.0, radius / norm) if norm > 0 else w
    return total / mass


def circle(norm):
    angles = np.linspace(0, 2 * math.pi, 60)
    return [r * norm * np.array([math.cos(a), math.sin(a)]) for a in angles for r in (0.0, 0.5, 1.0)]


@pytest.mark.parametrize("weighting", ["uniform", "steps"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("T", [1, 2, 5])
def test_b11_for_gradient_descent_in_exact_expectation(weighting, loss, T):
    risk = hinge_risk if loss == "hinge" else logistic_risk
    slope = (lambda z: -1.0 if z <= 1 else 0.0) if loss == "hinge" else (lambda z: -1 / (1 + math.exp(z)))
    step = (lambda t: 1 / math.sqrt(T)) if weighting == "uniform" else (lambda t: 1 / math.sqrt(t))
    alpha = (lambda t: 1.0) if weighting == "uniform" else step
    for norm in (0.5, 2.0):
        bound = risk_of_ogd(T, 1.0, norm, weighting=weighting).value
        found = expected_excess(lambda s: averaged(s, step, alpha, slope), risk, T, circle(norm))
        assert found <= bound
    roots = sum(1 / math.sqrt(t) for t in range(1, T + 1))
    wanted = 5 / (2 * math.sqrt(T)) if weighting == "uniform" else (5 + math.log(T)) / (2 * roots)
    assert bound == pytest.approx(wanted, rel=1e-13)
    assert risk_of_ogd(T, 3.0, 2.0, weighting=weighting).value == pytest.approx(3 * wanted, rel=1e-13)


@pytest.mark.parametrize("weighting", ["uniform", "t"])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize(("lambda_", "T"), list(itertools.product([0.2, 2.0], [1, 2, 5])))
def test_b11_for_the_svm_in_exact_expectation(weighting, project, lambda_, T):
    step = (lambda t: 1 / (lambda_ * t)) if weighting == "uniform" else (lambda t: 2 / (lambda_ * (t + 1)))
    alpha = (lambda t: 1.0) if weighting == "uniform" else float
    radius = 1 / math.sqrt(lambda_) if project else math.inf
    found = expected_excess(
        lambda s: averaged(s, step, alpha, lambda z: -1.0 if z <= 1 else 0.0, lambda_, radius),
        lambda w: hinge_risk(w, lambda_),
        T,
        circle(1 / math.sqrt(lambda_)),
    )
    bound = risk_of_svm(T, 1.0, lambda_, weighting=weighting, project=project)
    assert found <= bound.value
    G = 1 + min(1.0, math.sqrt(lambda_)) if project else 2.0
    wanted = G**2 / (2 * lambda_) * (1 + math.log(T)) / T if weighting == "uniform" else 2 * G**2 / lambda_ / (T + 1)
    assert bound.value == pytest.approx(wanted, rel=1e-13)


def test_the_averages_of_b11_are_those_that_the_learners_keep():
    rng = np.random.default_rng(7)
    stream = rng.integers(0, 4, size=40)
    slope = lambda z: -1.0 if z <= 1 else 0.0  # noqa: E731
    svm = rue.SVM(0.5, weighting="t", intercept=False)
    svm.run(X4[stream], Y4[stream])
    assert svm.average == pytest.approx(averaged(stream, lambda t: 2 / (0.5 * (t + 1)), float, slope, 0.5), rel=1e-9)
    ogd = rue.OGD("hinge", "reals", "sqrt:1", average="steps", intercept=False)
    ogd.run(X4[stream], Y4[stream])
    assert ogd.average == pytest.approx(averaged(stream, lambda t: t**-0.5, lambda t: t**-0.5, slope), rel=1e-9)


def test_b11_in_general_and_in_words():
    assert risk_in_expectation(6.0, [1.0, 2.0, 3.0]).value == 1.0
    assert risk_in_expectation(-6.0, [1.0, 2.0]).value == -2.0
    # B5 with η = 1/(R√T): the general form gives the first case of the row.
    T, R, u = 9, 2.0, 1.5
    regret = u**2 * R * math.sqrt(T) / 2 + T * R**2 / (2 * R * math.sqrt(T))
    assert risk_in_expectation(regret, np.ones(T)).value == pytest.approx(risk_of_ogd(T, R, u).value, rel=1e-13)
    assert str(risk_in_expectation(5.0, [1.0, 1.0])) == (
        "in expectation, the risk of the uniform average of the points played, less that of any point u, is at most "
        "2.5 (B11), if the examples are independent draws from one distribution and the expected regret against u is "
        "at most 5."
    )
    assert "weighted by α_t" in str(risk_in_expectation(5.0, [1.0, 2.0]))
    assert "weighted by t, less that of the best point" in str(risk_of_svm(5, 1.0, 1.0, weighting="t"))
    for wrong, words in [
        (lambda: risk_in_expectation(1.0, []), "alphas positive"),
        (lambda: risk_in_expectation(1.0, [0.0]), "alphas positive"),
        (lambda: risk_in_expectation(math.inf, [1.0]), "must be finite"),
        (lambda: risk_of_ogd(0, 1.0, 1.0), "number of rounds"),
        (lambda: risk_of_ogd(1.5, 1.0, 1.0), "number of rounds"),
        (lambda: risk_of_ogd(1, 0.0, 1.0), "X must be positive"),
        (lambda: risk_of_ogd(1, 1.0, -1.0), "norm of the points"),
        (lambda: risk_of_ogd(1, 1.0, 1.0, weighting="t"), "'uniform' or 'steps'"),
        (lambda: risk_of_svm(1, 1.0, 0.0), "lambda_ must be positive"),
        (lambda: risk_of_svm(1, 1.0, 1.0, weighting="steps"), "'uniform' or 't'"),
    ]:
        with pytest.raises(SettingsError, match=words):
            wrong()


# Coverage.


@pytest.mark.soak
def test_b14_covers_and_b13_misused_does_not():
    streams = many(200, 2000)
    for seed, chance in enumerate((0.5, 0.3, 0.05)):
        found = coverage(streams, rounds=many(2000, 5000), seed=seed, chance=chance)
        sampling = 3 * math.sqrt(0.05 * 0.95 / streams)
        print(found)
        assert found.always <= 0.05 + sampling
        assert found.at_end <= 0.05 + sampling
        if chance == 0.5:
            assert found.misused > 0.05 + sampling
            assert found.misused > 2 * found.always
    assert "B14 failed at some round in" in str(found)


def test_coverage_counts_what_a_plain_loop_counts():
    found = coverage(30, rounds=80, delta=0.6, seed=4, chance=0.4)
    rng = np.random.default_rng(4)
    always = misused = at_end = 0
    for tosses in rng.random((30, 80)) < 0.4:
        w, losses, risks, ever, late = 0.0, [], [], False, False
        for t, y in enumerate(tosses, 1):
            w = 1.0 if 2 * tosses[: t - 1].sum() > t - 1 else 0.0
            losses.append(abs(w - y))
            risks.append(0.4 * (1 - w) + 0.6 * w)
            ever |= np.mean(risks) > risk_always(losses, 1.0, 0.6).slack + np.mean(losses)
            end = np.mean(risks) > np.mean(losses) + math.sqrt(math.log(1 / 0.6) / (2 * t))
            late |= end
        always, misused, at_end = always + ever, misused + late, at_end + end
    assert (found.always, found.misused, found.at_end) == (always / 30, misused / 30, at_end / 30)
    assert always > 0
