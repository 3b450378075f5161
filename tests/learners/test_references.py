"""Every learner equals its reference of fifteen lines: predictions, point, averages, accounts and certificate."""

import ast
import csv
import functools
import itertools
import lzma
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import references as ref
import rue

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
ELEC2 = Path(__file__).parents[3] / "shared/data/elec2.csv.xz"
CLOSE = 1e-10


# Streams: features, labels for each task, weights.


class Stream(NamedTuple):
    X: np.ndarray
    labels: dict[str, np.ndarray]

    def cut(self, rows: int, columns: int | None = None) -> "Stream":
        return Stream(self.X[:rows, :columns], {task: y[:rows] for task, y in self.labels.items()})


def with_labels(X, signs):
    rng = np.random.default_rng(5)
    real = 0.7 * signs + rng.normal(0, 0.5, signs.size)
    return Stream(X, {"sign": signs, "real": real, "count": rng.poisson(1.0 + (signs > 0)).astype(float)})


@functools.cache
def random_stream():
    rng = np.random.default_rng(1)
    T, d = (120, 7) if INTERPRETED else (400, 11)
    X = rng.normal(size=(T, d)) * np.geomspace(0.1, 2.0, d) * (rng.random((T, d)) < 0.6)
    X[[0, T // 2]] = 0.0
    signs = np.where(X @ rng.normal(size=d) + rng.normal(0, 0.5, T) > 0, 1.0, -1.0)
    return with_labels(X, signs)


@functools.cache
def census_stream():
    X, y = rue.census()
    return with_labels(X[:3000].toarray(), y[:3000]).cut(100 if INTERPRETED else 3000)


@functools.cache
def elec2_stream():
    if not ELEC2.exists():
        pytest.skip(f"{ELEC2} is absent: the electricity stream is not part of the repository")
    with lzma.open(ELEC2, "rt") as file:
        table = list(itertools.islice(csv.DictReader(file), 100 if INTERPRETED else 2000))
    days = sorted({row["day"] for row in table})
    names = [name for name in table[0] if name not in ("day", "up")]
    X = [[float(row[name]) for name in names] + [float(row["day"] == day) for day in days] for row in table]
    return with_labels(np.array(X), np.array([1.0 if row["up"] == "1" else -1.0 for row in table]))


STREAMS = {"random": random_stream, "census": census_stream, "elec2": elec2_stream}


def weights_of(kind: str, T: int):
    """None, weights > 0, or powers of two (so that integer data stay exact) among zeros, the first one 0."""
    rng = np.random.default_rng(3)
    if kind == "zeros":
        return np.where(np.arange(T) % 7 == 0, 0.0, rng.choice([0.0, 0.5, 1.0, 2.0], T))
    return rng.uniform(0.1, 3.0, T) if kind == "positive" else None


def in_full(X, intercept):
    return np.column_stack([np.ones(len(X)), X]) if intercept else X


def assert_close(actual, expected, tolerance=CLOSE, beside=0.0):
    """Relative to the largest number expected, or to that of what it was computed beside."""
    expected = np.asarray(expected, dtype=float)
    assert np.isfinite(expected).all()
    size = max(float(np.max(np.abs(values), initial=0.0)) for values in (expected, beside))
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * size)


# Cases: how rue builds the learner and how the reference plays, in d coordinates.


class Case(NamedTuple):
    name: str
    build: Callable  # (d, intercept) → Learner
    refer: Callable  # (X, y, c) → Played
    task: str = "sign"
    rows: str = "dense"
    average: str = ""
    lambda_: float = 0.0
    tolerance: float = CLOSE
    streams: tuple[str, ...] = tuple(STREAMS)


def wave(d, phase=0.0):
    return np.cos(np.arange(d) + phase)


class Set(NamedTuple):
    rue: Callable  # d → Domain
    project: Callable  # d → Π
    start: Callable  # d → w_1
    D: Callable = lambda d: math.nan


def zero(d):
    return np.zeros(d)


SETS = {
    "reals": Set(lambda d: "reals", lambda d: ref.anywhere, zero),
    "ball": Set(lambda d: rue.Ball(1.5), lambda d: ref.ball(1.5), zero, lambda d: 3.0),
    "small": Set(lambda d: "ball:0.25", lambda d: ref.ball(0.25), zero, lambda d: 0.5),
    "shifted": Set(lambda d: rue.Ball(0.8, wave(d)), lambda d: ref.ball(0.8, wave(d)), wave, lambda d: 1.6),
    "box": Set(lambda d: "box:-0.3,0.2", lambda d: ref.box(-0.3, 0.2), zero, lambda d: 0.5 * math.sqrt(d)),
    "sides": Set(
        lambda d: rue.Box(wave(d) - 0.4, wave(d) + 0.3 + 0.1 * np.arange(d)),
        lambda d: ref.box(wave(d) - 0.4, wave(d) + 0.3 + 0.1 * np.arange(d)),
        lambda d: np.clip(np.zeros(d), wave(d) - 0.4, wave(d) + 0.3 + 0.1 * np.arange(d)),
        lambda d: np.linalg.norm(0.7 + 0.1 * np.arange(d)),
    ),
    "orthant": Set(lambda d: "orthant", lambda d: ref.orthant, zero),
    "simplex": Set(
        lambda d: rue.Simplex(1.5), lambda d: ref.simplex(1.5), lambda d: np.full(d, 1.5 / d), lambda d: 1.5 * 2**0.5
    ),
    "l1-ball": Set(lambda d: rue.L1Ball(0.9), lambda d: ref.l1_ball(0.9), zero, lambda d: 1.8),
    "halfspace": Set(
        lambda d: rue.Halfspace(wave(d), -0.2),
        lambda d: ref.halfspace(wave(d), -0.2),
        lambda d: ref.halfspace(wave(d), -0.2)(np.zeros(d)),
    ),
    "hyperplane": Set(
        lambda d: rue.Hyperplane(wave(d), 0.4),
        lambda d: ref.hyperplane(wave(d), 0.4),
        lambda d: ref.hyperplane(wave(d), 0.4)(np.zeros(d)),
    ),
    "intersection": Set(
        lambda d: rue.Intersection(rue.Ball(0.5), rue.Orthant()),
        lambda d: ref.ball_of_orthant(0.5),
        zero,
        lambda d: 1.0,
    ),
}

TASKS = {
    "square": "real",
    "absolute": "real",
    "linear": "real",
    "poisson": "count",
    "huber:0.5": "real",
    "huber:1": "real",
    "quantile:0.25": "real",
    "epsilon-insensitive:0.5": "real",
}


def task_of(loss):
    return TASKS.get(loss, "sign")


def regularised(loss, lambda_):
    return rue.Regularised(rue.make("loss", loss), lambda_) if lambda_ else loss


def ogd(name, loss, where, step, play, *, rows="dense", average="", lambda_=0.0, **more):
    """OGD(loss, domain, step) against play(X, y, c, slope, project, w_1)."""
    K = SETS[where]

    def build(d, intercept):
        made = regularised(loss, lambda_), K.rue(d), step(d) if callable(step) else step
        return rue.OGD(*made, average=average or "none", intercept=intercept)

    def refer(X, y, c):
        d = X.shape[1]
        return play(X, y, c, ref.LOSSES[loss][1], K.project(d), K.start(d))

    title = f"{name} {loss} {where} {rows}"
    return Case(title, build, refer, task_of(loss), rows, average, lambda_, **more)


def by(reference, **settings):
    """A reference with settings that may depend on the number of coordinates."""

    def play(X, *rest):
        d = X.shape[1]
        late = {key: value(d) if key in ("D", "length", "rate") else value for key, value in settings.items()}
        return reference(X, *rest, **late)

    return play


def sqrt_step(eta, **more):
    return by(ref.descent, eta=lambda t: eta / math.sqrt(t), **more)


def sequence(eta):
    return rue.Sequence(eta / np.sqrt(np.arange(1.0, 3001.0)))


def a2():
    """Every loss on the ball around 0 and around another point; kinked losses take their steps from a list."""
    for loss in ref.LOSSES:
        kinked = loss not in ("square", "logistic", "linear", "poisson")
        eta, where = {"poisson": (0.02, "small"), "square": (0.05, "ball")}.get(loss, (0.37, "ball"))
        step = sequence(eta) if kinked else f"sqrt:{eta}"
        yield ogd("A2", loss, where, step, sqrt_step(eta))
        if loss != "poisson":
            yield ogd("A2", loss, "shifted", step, sqrt_step(eta), streams=("random", "elec2"))


def with_step(name, where, loss, step, play, **more):
    return ogd(f"{name} {step if isinstance(step, str) else type(step).__name__}", loss, where, step, play, **more)


def svm(weighting, project, rows):
    lambda_ = 0.0137
    K = ref.ball(1 / math.sqrt(lambda_)) if project else ref.anywhere
    return Case(
        f"{'A5' if weighting == 'uniform' else 'A6'} svm {'ball' if project else 'reals'} {rows}",
        lambda d, intercept: rue.SVM(lambda_, weighting, project=project, intercept=intercept),
        lambda X, y, c: ref.strong(
            X, y, c, ref.LOSSES["hinge"][1], K, np.zeros(X.shape[1]), lambda_, by_time=weighting == "t"
        ),
        rows=rows,
        average=weighting,
        lambda_=lambda_,
    )


def adaptive(loss, where, rows, average="", lambda_=0.0):
    K = SETS[where]

    def build(d, intercept):
        settings = {"average": average or "none", "intercept": intercept}
        return rue.AdaptiveOGD(regularised(loss, lambda_), K.rue(d), **settings)

    def refer(X, y, c):
        d = X.shape[1]
        return ref.adaptive(X, y, c, ref.LOSSES[loss][1], K.project(d), K.start(d), K.D(d), lambda_)

    title = f"A8 {loss} {where} {rows}{' regularised' if lambda_ else ''}"
    return Case(title, build, refer, task_of(loss), rows, average, lambda_)


def adagrad(loss, where, rows, average="", **settings):
    """By the sides of the box unless a rate is given; scale='largest' on ℝ^d."""
    K = SETS[where]

    def build(d, intercept):
        return rue.AdaGrad(loss, K.rue(d), average=average or "none", intercept=intercept, **settings)

    def refer(X, y, c):
        d, slope = X.shape[1], ref.LOSSES[loss][1]
        rate, beta = settings.get("rate", 0.5), settings.get("beta", 1.0)
        if "scale" in settings:
            return ref.adagrad_scaled(X, y, c, slope, rate, beta)
        if where in ("box", "sides") and "rate" not in settings:
            sides = 0.5 * np.ones(d) if where == "box" else 0.7 + 0.1 * np.arange(d)
            rate, beta = sides / math.sqrt(2), settings.get("beta", 0.0)
        return ref.adagrad(X, y, c, slope, K.project(d), K.start(d), rate, beta)

    title = f"A10 {loss} {where} {rows} {settings or 'default'} {average}"
    return Case(title, build, refer, task_of(loss), rows, average)


def perceptron(rows, eta, average="uniform"):
    return Case(
        f"A1 perceptron {rows} {eta} {average}",
        lambda d, intercept: rue.Perceptron(eta, average=average, intercept=intercept),
        lambda X, y, c: ref.perceptron(X, y, c, eta),
        rows=rows,
        average=average,
    )


def lowest_on_ball(U, centre):
    return lambda theta, w: centre - U * theta / np.linalg.norm(theta) if theta.any() else w


def lowest_in_box(low, high):
    return lambda theta, w: np.where(theta > 0, low, np.where(theta < 0, high, w))


def leader(where, lowest, rows):
    K = SETS[where]

    def refer(X, y, c):
        d = X.shape[1]
        return ref.leader_linear(X, y, c, lowest(d), K.start(d))

    def build(d, intercept):
        return rue.FollowTheLeader("linear", K.rue(d), intercept=intercept)

    return Case(f"A7 linear {where} {rows}", build, refer, "real", rows)


CASES = [
    perceptron("dense", 1.0),
    perceptron("sparse", 0.25),
    *a2(),
    ogd("A2", "hinge", "ball", "sqrt:0.37", sqrt_step(0.37), rows="sparse"),
    ogd("A2", "logistic", "ball", "sqrt:0.37", sqrt_step(0.37), rows="sparse", average="steps"),
    ogd("A2", "logistic", "shifted", "sqrt:0.37", sqrt_step(0.37), rows="sparse", average="steps"),
    # A3: every other set.
    ogd("A3", "logistic", "reals", "sqrt:0.37", sqrt_step(0.37), average="t"),
    ogd("A3", "hinge", "reals", "fixed:0.011", by(ref.descent, eta=lambda t: 0.011), rows="sparse", average="steps"),
    ogd("A3", "absolute", "box", "sqrt:0.37", sqrt_step(0.37), average="steps"),
    ogd("A3", "hinge", "sides", "sqrt:0.37", sqrt_step(0.37), rows="sparse", average="t"),
    ogd("A3", "logistic", "orthant", "sqrt:0.37", sqrt_step(0.37), average="uniform"),
    ogd("A3", "hinge", "orthant", "sqrt:0.37", sqrt_step(0.37), rows="sparse"),
    ogd("A3", "linear", "simplex", "sqrt:0.37", sqrt_step(0.37), average="t"),
    ogd("A3", "logistic", "simplex", "sqrt:0.37", sqrt_step(0.37), rows="sparse", average="steps"),
    ogd("A3", "absolute", "l1-ball", "sqrt:0.37", sqrt_step(0.37), average="uniform"),
    ogd("A3", "hinge", "halfspace", "sqrt:0.37", sqrt_step(0.37)),
    ogd("A3", "logistic", "hyperplane", "sqrt:0.37", sqrt_step(0.37), rows="sparse"),
    ogd("A3", "hinge", "intersection", "sqrt:0.37", sqrt_step(0.37), tolerance=1e-7),
    # A3 with a regulariser and a fixed step: the point's scale shrinks for ever, is 0 in every round, or changes sign.
    *(
        ogd(f"A3 shrinking {lambda_}", "hinge", "reals", "fixed:0.5",
            by(ref.descent, eta=lambda t: 0.5, lambda_=lambda_), rows="sparse", average="steps", lambda_=lambda_)
        for lambda_ in (0.9, 2.0, 2.7)
    ),
    # A4: with its own σ, by theory, off centre and on a box.
    with_step("A4", "ball", "square", "strong:0.3", by(ref.strong, lambda_=0.3), lambda_=0.3),
    with_step("A4", "small", "square", "strong:0.4", by(ref.strong, lambda_=0.1, sigma=0.4), lambda_=0.1),
    with_step("A4", "ball", "logistic", "theory", by(ref.strong, lambda_=0.05), lambda_=0.05,
              rows="sparse", average="t"),
    with_step("A4", "shifted", "square", "theory", by(ref.strong, lambda_=0.3), lambda_=0.3),
    with_step("A4", "box", "hinge", "theory", by(ref.strong, lambda_=0.0137), lambda_=0.0137, average="uniform"),
    svm("uniform", False, "dense"),
    svm("uniform", True, "sparse"),
    svm("t", False, "sparse"),
    svm("t", True, "dense"),
    # A7.
    leader("ball", lambda d: lowest_on_ball(1.5, 0.0), "dense"),
    leader("shifted", lambda d: lowest_on_ball(0.8, wave(d)), "dense"),
    leader("box", lambda d: lowest_in_box(-0.3, 0.2), "sparse"),
    leader("sides", lambda d: lowest_in_box(wave(d) - 0.4, wave(d) + 0.3 + 0.1 * np.arange(d)), "sparse"),
    # A8.
    adaptive("hinge", "ball", "dense", average="uniform"),
    adaptive("logistic", "ball", "sparse", average="steps"),
    adaptive("logistic", "ball", "sparse", lambda_=0.1, average="steps"),
    adaptive("absolute", "sides", "dense", average="steps"),
    adaptive("square", "simplex", "dense", average="steps"),
    ogd("A8 by theory", "poisson", "small", "theory", by(ref.adaptive, D=lambda d: 0.5)),
    # A9: √2·U/G over √t and U/(G√T) on the ball, D/(√2·G√t) and D/(G√T) elsewhere.
    with_step("A9", "ball", "hinge", "theory", by(ref.theory, length=lambda d: 2**0.5 * 1.5, L=1.0)),
    with_step("A9", "ball", "logistic", "theory", by(ref.theory, length=lambda d: 2**0.5 * 1.5, L=1.0), rows="sparse"),
    with_step("A9", "ball", "logistic", "horizon:500", by(ref.theory, length=lambda d: 1.5, L=1.0, T=500),
              rows="sparse"),
    with_step("A9", "ball", "square", "theory", by(ref.theory, length=lambda d: 2**0.5 * 1.5, L=6.0, power=2),
              average="steps"),
    with_step("A9", "ball", "square", "horizon:70", by(ref.theory, length=lambda d: 1.5, L=6.0, power=2, T=70),
              average="steps"),
    with_step("A9", "ball", "logistic", "theory:G=3", sqrt_step(2**0.5 * 1.5 / 3)),
    with_step("A9", "ball", "square", "theory:X=2", sqrt_step(2**0.5 * 1.5 / 24)),
    with_step("A9", "ball", "hinge", "horizon:100,X=2.5", by(ref.descent, eta=lambda t: 1.5 / 25), rows="sparse"),
    with_step("A9", "shifted", "hinge", "theory", by(ref.theory, length=lambda d: 2**0.5 * 0.8, L=1.0)),
    with_step("A9", "sides", "quantile:0.25", "theory",
              by(ref.theory, length=lambda d: SETS["sides"].D(d) / 2**0.5, L=0.75)),
    with_step("A9", "sides", "quantile:0.25", "horizon:500", by(ref.theory, length=SETS["sides"].D, L=0.75, T=500)),
    with_step("A9", "simplex", "huber:0.5", "theory", by(ref.theory, length=lambda d: 1.5, L=0.5)),
    # A10.
    adagrad("hinge", "box", "dense", "t"),
    adagrad("logistic", "sides", "sparse", "uniform"),
    adagrad("logistic", "sides", "sparse", "uniform", rate=0.3, beta=0.5),
    adagrad("square", "reals", "dense", "t", rate=0.3, beta=0.2),
    adagrad("logistic", "reals", "sparse", "uniform"),
    adagrad("logistic", "reals", "sparse", "uniform", rate=0.7, beta=0.0),
    adagrad("logistic", "reals", "sparse", "uniform", scale="largest"),
    adagrad("square", "reals", "dense", "t", rate=0.3, beta=0.2, scale="largest"),
    adagrad("hinge", "orthant", "dense", rate=0.3),
]  # fmt: skip


def variants():
    for case in CASES:
        for stream in case.streams:
            if stream == "random":
                chosen = itertools.product((False, True), ("none", "positive", "zeros"))
            else:
                chosen = [(True, "none"), (False, "zeros")]
            for intercept, weights in chosen:
                name = f"{case.name} {stream}{' intercept' if intercept else ''} {weights}"
                yield pytest.param(case, stream, intercept, weights, id=name.replace(" ", "-"))


def laid_out(X, rows):
    return csr_matrix(X) if rows == "sparse" else np.ascontiguousarray(X)


def one_row(x, rows):
    places = np.flatnonzero(x)
    return (places, x[places]) if rows == "sparse" else x


@pytest.mark.parametrize(("case", "stream", "intercept", "weights"), list(variants()))
def test_a_learner_equals_its_reference(case, stream, intercept, weights):
    X, labels = STREAMS[stream]()
    y, T = labels[case.task], len(X)
    given = weights_of(weights, T)
    c = np.ones(T) if given is None else given
    full, rows = in_full(X, intercept), laid_out(X, case.rows)
    learner = case.build(full.shape[1], intercept)
    played = case.refer(full, y, c)
    predictions, start = [], 0
    for moment in (1, 2, T // 3, T // 2 + 1, T):
        now = slice(start, moment)
        predictions.append(learner.run(rows[now], y[now], None if given is None else given[now]))
        start = moment
        assert learner.t == np.count_nonzero(c[:moment])
        if case.average:
            mean = ref.Played(played.rounds[:moment], None).average(c[:moment], case.average)
            assert_close(learner.average, mean, case.tolerance, beside=learner.point)
    assert_close(np.concatenate(predictions), played.p, case.tolerance)
    assert_close(learner.point, played.point, case.tolerance)
    assert_close(learner.predict_many(rows[:9]), full[:9] @ learner.point)
    assert_close(learner.predict(one_row(X[T // 3], case.rows)), full[T // 3] @ learner.point)
    if case.average:
        assert_close(learner.predict_many(rows[:9], average=True), full[:9] @ learner.average)
        assert_close(learner.predict(one_row(X[3], case.rows), average=True), full[3] @ learner.average)
    norms = np.array([w @ w for _, w, _ in played.rounds])
    assert_close(learner.penalty, case.lambda_ / 2 * (c @ norms), max(1e-9, case.tolerance))
    assert learner.residual <= 1e-12


@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize("weights", ["none", "zeros"])
@pytest.mark.parametrize("interval", [(-math.inf, math.inf), (0.1, 0.4)])
def test_the_leader_for_squares_is_the_clipped_mean(rows, weights, interval):
    X, labels = random_stream()
    y, T = labels["real"], len(X)
    given = weights_of(weights, T)
    c = np.ones(T) if given is None else given
    domain = rue.Interval(*interval) if interval[1] < math.inf else "reals"
    for column, intercept in ((np.empty((T, 0)), True), (X[:, [-1]], False)):
        full = in_full(column, intercept)
        played = ref.leader_square(full, y, c, ref.box(*interval), np.clip(np.zeros(1), *interval))
        learner = rue.FollowTheLeader("square", domain, intercept=intercept)
        assert_close(learner.run(laid_out(column, rows), y, given), played.p)
        assert_close(learner.point, played.point)
        assert learner.t == np.count_nonzero(c)
    if weights == "none":
        means = np.concatenate([[0.0], np.cumsum(y)[:-1] / np.arange(1, T)])
        assert_close(rue.FollowTheLeader("square", domain).run(np.empty((T, 0)), y), np.clip(means, *interval))


CASES_BY_NAME = {case.name: case for case in CASES}
FORMS = {
    "dense": lambda x: x,
    "list": list,
    "pair": lambda x: one_row(x, "sparse"),
    "matrix": lambda x: csr_matrix(x[None, :]),
    "dict": lambda x: {f"x{j}": x[j] for j in np.flatnonzero(x)},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["A2 hinge ball sparse", "A10 logistic reals sparse default uniform"])
def test_one_example_at_a_time_equals_the_reference(form, name):
    case = CASES_BY_NAME[name]
    X, y, c = random_stream().X[:100], random_stream().labels["sign"][:100], weights_of("zeros", 100)
    learner = case.build(X.shape[1] + 1, True)
    played = case.refer(in_full(X, True), y, c)
    p = []
    for x, label, weight in zip(X, y, c, strict=True):
        p.append(learner.predict(FORMS[form](x)))
        learner.update(FORMS[form](x), label, weight)
    assert_close(p, played.p)
    places = [0, *(1 + int(name[1:]) for name in learner.names.places)] if form == "dict" else slice(None)
    assert_close(learner.point, played.point[places])
    assert learner.t == np.count_nonzero(c)


def test_a_weight_of_zero_changes_nothing_at_all():
    X, labels = random_stream()
    for case in CASES:
        if case.rows == "dense":
            learner, y = case.build(X.shape[1], False), labels[case.task]
            learner.run(X[:30], y[:30])
            before = learner.copy()
            p = learner.run(X[30:34], y[30:34], np.zeros(4))
            assert learner == before, case.name
            assert_close(p, before.run(X[30:34], y[30:34], [0, 0, 0, 0]))


# Exactly equal: powers of two, kinks on whole numbers.


@pytest.mark.parametrize("stream", STREAMS)
def test_the_perceptron_does_not_depend_on_eta(stream):
    X, labels = STREAMS[stream]()
    X, y = laid_out(X, "sparse"), labels["sign"]
    one = rue.learn(X, y, learner=rue.Perceptron())
    for k in (-30, -1, 5, 100):
        run = rue.learn(X, y, learner=rue.Perceptron(2.0**k))
        np.testing.assert_array_equal(run.predictions, one.predictions * 2.0**k)
        np.testing.assert_array_equal(run.learner.point, one.learner.point * 2.0**k)
        assert run.mistakes == one.mistakes == np.count_nonzero(y * one.predictions <= 0)


def test_a_zero_margin_is_a_mistake():
    X, y = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]), np.array([1.0, -1.0, 1.0, 1.0, 1.0])
    run = rue.learn(X, y, learner=rue.Perceptron(intercept=False))
    np.testing.assert_array_equal(run.predictions, [0, 0, 0, 0, 0])
    assert run.mistakes == 5
    np.testing.assert_array_equal(run.learner.point, [2, 0])


KINKS = {
    "hinge": (1.0, lambda p, y: y * p == 1),
    "perceptron": (1.0, lambda p, y: p == 0),
    "absolute": (1.0, lambda p, y: p == y),
    "quantile:0.25": (1.0, lambda p, y: p == y),
    "epsilon-insensitive:0.5": (0.5, lambda p, y: np.abs(p - y) == 0.5),
    "huber:1": (1.0, lambda p, y: np.abs(p - y) == 1),
    "squared-hinge": (0.5, lambda p, y: y * p == 1),
}


@pytest.mark.parametrize("loss", KINKS)
@pytest.mark.parametrize("weighted", [False, True])
def test_kinks_on_whole_numbers_are_exact(loss, weighted):
    eta, kink = KINKS[loss]
    rng = np.random.default_rng(2)
    T = 24 if loss == "squared-hinge" else 150
    X = rng.choice([-1.0, 0.0, 1.0], (T, 2))
    y = rng.choice([-1.0, 1.0], T) if task_of(loss) == "sign" else rng.integers(-2, 3, T).astype(float)
    c = rng.choice([0.0, 0.5, 1.0, 2.0], T) if weighted else np.ones(T)
    X[:2], y[:2], c[:2] = [1.0, 0.0], 1.0, 1.0  # half the step of a square reaches its label
    for intercept in (False, True):
        full = in_full(X, intercept)
        learner = rue.OGD(loss, rue.Ball(2.0**20), rue.Sequence([eta / (1 + intercept)]), intercept=intercept)
        played = ref.descent(
            full, y, c, ref.LOSSES[loss][1], ref.anywhere, zero(full.shape[1]), lambda t, eta=eta / (1 + intercept): eta
        )
        np.testing.assert_array_equal(learner.run(X, y, c if weighted else None), played.p)
        np.testing.assert_array_equal(learner.point, played.point)
        assert np.any(kink(played.p, y)[c > 0])


# Accounts and certificates.


def ball_support(U, centre=0.0):
    return lambda v: np.sum(centre * v) + U * np.linalg.norm(v)


def box_support(low, high):
    return lambda v: np.sum(np.maximum(v * low, v * high))


AGAINST = {
    "ball": (lambda d: rue.Ball(3), lambda d: ball_support(3.0)),
    "shifted": (lambda d: rue.Ball(0.8, wave(d)), lambda d: ball_support(0.8, wave(d))),
    "box": (lambda d: rue.Box(-1, 0.5), lambda d: box_support(-1.0, 0.5)),
    "simplex": (lambda d: rue.Simplex(2), lambda d: lambda v: 2 * np.max(v)),
    "l1-ball": (lambda d: rue.L1Ball(2), lambda d: lambda v: 2 * np.max(np.abs(v))),
    "intersection": (lambda d: rue.Intersection(rue.Ball(1), rue.Box(-0.1, 0.1)),
                     lambda d: lambda v: min(ball_support(1.0)(v), box_support(-0.1, 0.1)(v))),
    "reals": (lambda d: rue.Reals(), lambda d: lambda v: math.inf),
}  # fmt: skip

RUNS = {
    "perceptron": "A1 perceptron sparse 0.25 uniform",
    "hinge": "A2 hinge ball sparse",
    "absolute": "A3 absolute box dense",
    "linear": "A3 linear simplex dense",
    "svm": "A6 svm ball dense",
    "square": "A10 square reals dense {'rate': 0.3, 'beta': 0.2, 'scale': 'largest'} t",
}
SCORED_WITH = {"svm": "hinge"}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("weights", ["none", "zeros"])
def test_learn_keeps_true_accounts(name, stream, weights):
    case, loss = CASES_BY_NAME[RUNS[name]], SCORED_WITH.get(name, name)
    X, labels = STREAMS[stream]()
    y, T, intercept = labels[case.task], len(X), name != "linear"
    given = weights_of(weights, T)
    c = np.ones(T) if given is None else given
    full, rows = in_full(X, intercept), laid_out(X, case.rows)
    d = full.shape[1]
    fresh = case.build(d, intercept)
    run = rue.learn(rows, y, learner=fresh, weights=given)
    p = case.refer(full, y, c).p
    value, slope = ref.LOSSES[loss]
    assert fresh.t == 0
    assert run.learner.t == run.examples == np.count_nonzero(c)
    assert (run.refused, run.skipped) == (0, 0)
    assert_close(run.predictions, p)
    np.testing.assert_array_equal(run.y, y)
    assert_close(run.losses, value(p, y))
    assert_close(run.loss, c @ value(p, y), 1e-9)
    assert_close(run.risk, c @ value(p, y) / c.sum(), 1e-9)
    wrong = np.count_nonzero((y * p <= 0) & (c > 0))
    assert run.mistakes == (wrong if case.task == "sign" else None)
    if run.evidence.lambda_ > 0.0:  # D2, which test_certificates has
        return

    A, S = ref.certificate(full, y, c, p, slope)
    size = c @ np.abs([slope(a, b) * a for a, b in zip(p, y, strict=True)])
    regrets = []
    for against, (domain, support) in AGAINST.items():
        made = run.certificate(domain=domain(d), units="raw")
        D1 = A + support(d)(-S)
        np.testing.assert_allclose(made.alone, D1, rtol=1e-9, atol=1e-10 * size)
        np.testing.assert_allclose(made.slope_times_prediction, A, rtol=1e-9, atol=1e-10 * size)
        assert_close(made.slope_norm, np.linalg.norm(S), 1e-9)
        capped = D1 if loss == "linear" else min(D1, run.loss)
        np.testing.assert_allclose(made.regret_at_most, capped, rtol=1e-9, atol=1e-10 * size)
        assert made.comparator_loss_at_least == run.loss - made.regret_at_most
        again = rue.certify(rows, y, run.predictions, loss=loss, domain=domain(d), weights=given, intercept=intercept)
        assert again == made
        if against in ("ball", "shifted", "box", "simplex", "l1-ball"):
            regrets.append((domain(d), made.regret_at_most))
    at_radius = run.certificate(radius=3, units="raw")
    assert at_radius == run.certificate(domain=rue.Ball(3), units="raw")
    assert at_radius == rue.certify(rows, y, run.predictions, loss=loss, radius=3, weights=given, intercept=intercept)
    if run.learner.domain.bounded:
        assert run.certificate() == run.certificate(domain=run.learner.domain)
    else:
        radius = run.certificate(
            units="raw"
        ).radius  # decision 0023: 1 or 3 times a power of 10, if that says something
        decade = 10.0 ** math.floor(math.log10(radius) + 1e-9)
        assert min(abs(radius / decade - 1.0), abs(radius / decade - 3.0)) < 1e-9 or radius == np.linalg.norm(
            run.learner.point
        )

    rng = np.random.default_rng(4)
    for K, regret in regrets:  # and it is true: no model of the set does better
        for u in (K.project(size * rng.normal(size=d)) for size in (0.1, 1.0, 10.0)):
            assert run.loss - c @ value(full @ u, y) <= regret + 1e-9 * (1 + abs(run.loss) + abs(regret))


def test_learn_translates_labels_once_and_has_a_default_for_each_task():
    X, labels = random_stream()
    c = np.ones(len(X))
    full = in_full(X, True)
    for loss, y, given in (
        ("logistic", labels["sign"], (labels["sign"] > 0).astype(int)),
        ("square", labels["real"], labels["real"]),
    ):
        played = ref.adagrad_scaled(full, y, c, ref.LOSSES[loss][1], 0.5, 1.0)
        data = laid_out(X, "sparse" if loss == "logistic" else "dense")
        assert rue.learn(data, given).learner.algorithm == rue.Staged(loss).algorithm
        assert rue.learn(data, given, maps=None).learner.algorithm == rue.Mixture(loss).algorithm
        run = rue.learn(data, given, learner=rue.AdaGrad(loss, scale="largest"))
        assert_close(run.predictions, played.p)
        assert_close(run.learner.point, played.point)
        assert_close(run.loss, np.sum(ref.LOSSES[loss][0](played.p, y)))
        np.testing.assert_array_equal(run.y, y)


# The references themselves.


def test_the_references_stand_alone_and_are_short():
    tree = ast.parse(Path(ref.__file__).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"numpy", "scipy.special", "typing"}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 15, node.name


def test_every_registered_convex_loss_domain_and_learner_has_a_case():
    convex = {name for name in rue.names("loss") if rue.make("loss", name).convex}
    assert {loss.partition(":")[0] for loss in ref.LOSSES} == convex
    assert {*SETS} >= {*rue.names("domain")} - {"interval"}
    assert {case.build(5, True).algorithm.name for case in CASES} == {
        rue.make("learner", name).algorithm.name for name in rue.names("learner") if name not in ("mixture", "staged")
    }  # these have references of their own, in test_mixture.py, and in maps/test_maps.py and test_staged.py


@pytest.mark.parametrize("where", SETS)
def test_a_reference_projection_is_the_nearest_point(where):
    """Π(w) ∈ K, and ⟨w − Πw, u − Πw⟩ ≤ 0 for every u in K."""
    rng = np.random.default_rng(6)
    d, project = 5, SETS[where].project(5)
    for size in (0.1, 1.0, 10.0):
        w = size * rng.normal(size=d)
        near = project(w)
        assert_close(project(near), near, 1e-12)
        for u in (project(spread * rng.normal(size=d)) for spread in (0.1, 1.0, 10.0) for _ in range(20)):
            assert (w - near) @ (u - near) <= 1e-12 * (1 + w @ w + u @ u)
