"""`audit`: true regret ≤ its upper end ≤ D1, and D1 or D2 ≤ every bound that is met, whatever is run on what."""

import dataclasses
import math
import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import rue
from combinations import D, build, everything
from conftest import many
from rue.audit import Check
from rue.compiled import parameter
from rue.regret.hindsight.stored import Stored

# Hundreds of combinations on short streams would take minutes to compile.
pytestmark = pytest.mark.usefixtures("interpreted_module")


def stream(seed, loss, rows=None):
    """Streams of very different kinds: flips, drift, repeated, separable and zero rows, constants, scales, weights."""
    rng = np.random.default_rng(seed)
    n = rows or int(rng.choice([1, 2, 3, 8, 20]))
    X = rng.normal(size=(n, D)) * 10.0 ** rng.choice([-3, -1, 0, 0, 1, 3])
    X *= rng.random((n, D)) < rng.choice([0.4, 1.0])
    kind = rng.choice(["plain", "repeated", "one row", "zero rows", "basis"])
    if kind == "repeated":
        X = X[np.arange(n) // 3]
    elif kind == "one row":
        X[:] = X[:1]
    elif kind == "zero rows":
        X[::2] = 0.0
    elif kind == "basis":
        X = np.eye(D)[np.arange(n) % D] * X.max()
    y = X @ rng.normal(size=D)
    labels = rng.choice(["noisy", "clean", "flips", "constant", "drift"])
    if labels == "noisy":
        y += rng.normal(size=n) * (np.abs(y).max() + 1.0)
    elif labels == "drift":
        y[n // 2 :] *= -1.0
    elif labels == "flips":
        y = np.abs(y).max() * (-1.0) ** np.arange(n)
    elif labels == "constant":
        y[:] = y[0]
    if isinstance(loss, rue.CountLoss):
        X, y = np.clip(X, -3, 3), np.minimum(np.abs(y).round(), 50.0)
    elif loss.task == "classify":
        y = np.where(y > 0, 1.0, -1.0)
    weights = None if rng.random() < 0.6 else np.append(rng.choice([0.0, 0.3, 1.0, 7.0], n - 1), 1.0)
    return X, y, weights


def hostile(learner, seed, rows=8):
    """Labels chosen after the prediction is seen, against its sign."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(rows // 2, D)), 2, axis=0)
    y = np.ones(rows)
    for t in range(rows):
        y[t] = -1.0 if learner.copy().run(X[: t + 1], y[: t + 1])[-1] > 0 else 1.0
    return X, y, None


def of(combination):
    """The learner of a combination and its stream."""
    learner = build(*combination)

    def streamed(seed, against=False):
        one = combination[0] == "leader" and combination[1] == "square"  # it has a closed form in one coordinate
        X, y, weights = hostile(learner, seed) if against and not one else stream(seed, learner.loss)
        return (X[:, :0] if one else X), y, weights

    return learner, streamed


def require_sound(learner, X, y, weights, **options):
    """An audit of which every check holds, and the chain of inequalities of docs/theory.md, section 6."""
    checked = rue.audit(learner, X, y, weights=weights, **options)
    assert checked.passed, f"{learner!r}\n{checked}"
    assert "FAIL" not in str(checked)
    low, high = checked.regret
    assert low <= high
    certificate = checked.certificate
    slack = 1e-12 * (abs(checked.loss) + abs(certificate.alone)) if math.isfinite(certificate.alone) else 0.0
    assert high <= certificate.alone + slack
    assert high <= certificate.regret_at_most + slack
    assert checked.bound is None or checked.bound.holds is not False
    return checked


COMBINATIONS = [choice for choice in everything() if choice[4] == "none" and choice[2] != "intersection"]
GROUPS = sorted({choice[:2] for choice in COMBINATIONS})


@pytest.mark.soak
@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_regret_certificates_and_bounds_are_in_order(group):
    """Every learner × loss × domain × step: one stream each in `make test`, dozens in `make soak`."""
    for i, combination in enumerate(choice for choice in COMBINATIONS if choice[:2] == group):
        learner, streamed = of(combination)
        for seed in range(many(1, 60)):
            against = seed % 5 == 4 and learner.loss.task == "classify"
            require_sound(learner, *streamed(1000 * i + seed, against))


@pytest.mark.parametrize("loss", ["hinge", "logistic", "square", "regularised hinge"])
def test_an_intersection_of_sets(loss):
    for seed in range(many(1, 30)):
        learner, streamed = of(("ogd", loss, "intersection", "sqrt", "none"))
        checked = require_sound(learner, *streamed(seed))
        assert not any(
            check.name.startswith(("D1 ≤ B", "D2 ≤ B")) for check in checked.checks
        )  # its support is a bound


def test_each_inequality_is_looked_at_somewhere():
    """Which theorem is checked depends on the learner: none may be forgotten."""
    seen = set()
    for learner, loss in [
        (rue.OGD("hinge", "ball:2"), rue.Hinge()),
        (rue.OGD("square", "ball:2", rue.Theory(X=1e5)), rue.Square()),
        (rue.OGD("hinge", "ball:2", "fixed:0.1"), rue.Hinge()),
        (rue.OGD("hinge", "ball:2", rue.Horizon(100, G=1e5)), rue.Hinge()),
        (rue.OGD("hinge", "box:-1,1", "theory"), rue.Hinge()),
        (rue.OGD("hinge", "ball:2", "strong:1"), rue.Hinge()),
        (rue.SVM(0.1), rue.Hinge()),
        (rue.SVM(0.1, "t"), rue.Hinge()),
        (rue.AdaptiveOGD("hinge", "ball:2"), rue.Hinge()),
        (rue.AdaGrad("hinge", "box:-1,1"), rue.Hinge()),
        (rue.OGD(rue.Regularised(rue.Logistic(), 0.1), "ball:2", "sqrt:1"), rue.Logistic()),
        (rue.Perceptron(), rue.PerceptronLoss()),
    ]:
        X, y, _ = stream(12, loss, rows=20)
        seen |= {check.name for check in require_sound(learner, np.clip(X, -1, 1), np.clip(y, -1, 1), None).checks}
    leader = require_sound(rue.FollowTheLeader("square"), np.empty((3, 0)), np.array([1.0, 2.0, 4.0]), None)
    seen |= {check.name for check in leader.checks}
    d1 = {"B3, worst case", "B4, worst case", "B5, data", "B5, worst case", "B5, tuned", "B6, data", "B6, worst case"}
    d1 |= {"B6, tuned", "B7, worst case", "B9, data", "A10, data"}
    assert {f"regret ≤ {name}" for name in d1 | {"B8, data", "B8, worst case", "B10, data", "B10, worst case"}} <= seen
    assert {f"D1 ≤ {name}" for name in d1} <= seen
    assert {"D2 ≤ B8, data", "D2 ≤ B8, worst case", "D2 ≤ B6, data"} <= seen
    assert {"regret ≤ D1", "regret ≤ D2", "mistakes ≤ B1, data"} <= seen


# The true regret, by a conic solver.

SETS = {
    "reals": lambda u: [],
    "ball:2": lambda u: [cp.norm(u) <= 2],
    "box:-0.5,1": lambda u: [u >= -0.5, u <= 1],
    "simplex": lambda u: [u >= 0, cp.sum(u) == 1],
}
LOSSES = {
    "hinge": lambda p, y: cp.pos(1 - cp.multiply(y, p)),
    "logistic": lambda p, y: cp.logistic(-cp.multiply(y, p)),
    "absolute": lambda p, y: cp.abs(p - y),
    "square": lambda p, y: cp.square(p - y),
}


def least(loss, K, Z, y, weights, lambda_=0.0):
    """min over K of Σ weight·(ℓ + (λ/2)‖u‖²)."""
    u = cp.Variable(Z.shape[1])
    total = weights @ LOSSES[loss](Z @ u, y) + 0.5 * lambda_ * float(weights.sum()) * cp.sum_squares(u)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(cp.Problem(cp.Minimize(total), SETS[K](u)).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("K", SETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_interval_holds_the_true_regret(loss, K):
    lambda_ = 0.3 if K == "reals" else 0.0
    made = rue.make("loss", loss)
    for seed in range(many(2, 100)):
        X, y, weights = stream(seed, made, rows=12)
        X = X / max(np.abs(X).max(), 1e-3)
        learner = rue.OGD(rue.Regularised(made, lambda_) if lambda_ else made, K, "sqrt:0.2")
        checked = require_sound(learner, X, y, weights)
        c = np.ones(12) if weights is None else weights
        true = checked.loss - least(loss, K, np.c_[np.ones(12), X], y, c, lambda_)
        near = 1e-5 * (1.0 + abs(checked.loss))
        assert checked.regret[0] - near <= true <= checked.regret[1] + near
        assert true <= checked.certificate.alone + near


@pytest.mark.parametrize("project", [False, True])
def test_the_rounds_of_the_t_weighted_svm(project):
    """A6's bound is about the rounds t·ℓ_t: their regret is compared with it, not that of ℓ_t."""
    for seed in range(many(2, 50)):
        X, y, _ = stream(seed, rue.Hinge(), rows=10)
        X = X / max(np.abs(X).max(), 1e-3)
        checked = require_sound(rue.SVM(0.25, "t", project=project), X, y, None)
        t, Z = np.arange(1.0, 11.0), np.c_[np.ones(10), X]
        losses = np.maximum(0, 1 - y * checked.run.predictions) + 0.125 * checked.trace.point_squares
        regret = t @ losses - least("hinge", "ball:2" if project else "reals", Z, y, t, 0.25)
        for bound in checked.bounds:
            assert bound.observed == pytest.approx(regret, rel=1e-4, abs=1e-4)
            assert "t·ℓ_t" in str(bound)


# What is compared with what.


def test_the_default_learner_is_compared_in_units_of_the_largest_magnitudes():
    X, y, _ = stream(5, rue.Logistic(), rows=20)
    X[:, 0] *= 1e4
    run = rue.learn(X, y)
    checked = require_sound(None, X, y, None)
    assert checked.units == checked.certificate.units == "largest"
    assert checked.certificate == run.certificate()
    scaled = X / np.where(X.any(axis=0), np.abs(X).max(axis=0), 1.0)
    best = rue.best_in_hindsight(scaled, y, domain=checked.domain)
    assert checked.comparator.value == pytest.approx(best.value, rel=1e-6)
    assert "units of the largest magnitudes" in str(checked)
    raw = rue.audit(run, X, y, units="raw")
    assert raw.units == "raw"
    assert raw.passed


def test_a_smaller_ball_is_compared_with_the_bounds_and_a_larger_one_is_not():
    X, y, _ = stream(6, rue.Hinge(), rows=20)
    for radius, compared in ((1.0, True), (2.0, True), (3.0, False)):
        checked = require_sound(rue.OGD("hinge", "ball:2"), X, y, None, radius=radius)
        assert checked.domain == rue.Ball(radius)
        assert all((bound.holds is True) == compared for bound in checked.bounds)
        assert any("are about Ball" in remark for remark in checked.remarks) != compared
    free = require_sound(rue.OGD("hinge", "reals", "fixed:0.1"), X, y, None, domain="box:-1,1")
    assert free.bounds[0].constants["‖u − w_1‖"] == pytest.approx(math.sqrt(D + 1))
    assert all(bound.holds for bound in free.bounds)


def test_a_bound_inside_the_interval_is_not_blamed(monkeypatch):
    """The upper end is what holds; only a lower end above the bound violates it."""
    X, y, _ = stream(2, rue.Hinge(), rows=20)
    best = Stored.best

    def loose(*args, **options):
        found = best(*args, **options)
        return dataclasses.replace(found, at_least=-math.inf)

    learner = rue.OGD("hinge", "ball:2", "fixed:0.01")
    tight = require_sound(learner, X, y, None)
    assert all(bound.observed == tight.regret[1] for bound in tight.bounds)
    monkeypatch.setattr(Stored, "best", loose)
    wide = require_sound(learner, X, y, None)
    assert wide.regret[1] == pytest.approx(min(wide.loss, wide.certificate.alone))
    assert wide.regret[1] > tight.regret[1]


def test_regularised_rounds_have_a_range_only_if_the_point_stays_near():
    X, y, _ = stream(2, rue.Hinge(), rows=20)
    near = rue.OGD(rue.Regularised(rue.Hinge(), 3.0), "reals", "fixed:0.3")
    far = rue.OGD(rue.Regularised(rue.Hinge(), 3.0), "reals", "fixed:0.5")  # it overshoots 0
    assert len(require_sound(near, X, y, None).risk_bounds) == 2
    assert not require_sound(far, X, y, None).risk_bounds


def test_witnesses_and_curvature_are_checked_too():
    X, y, _ = stream(8, rue.Square(), rows=20)
    run = rue.learn(X, y, learner=rue.OGD("square", "ball:2"), curvature=True)
    assert rue.audit(run, X, y).certificate.theorem == "D4"
    assert rue.audit(run, X, y).passed
    labels = np.where(y > 0, 1.0, -1.0)
    seen = rue.learn(X, labels, learner=rue.OGD("logistic", "ball:2", "fixed:1e-6"), witnesses=2)
    assert rue.audit(seen, X, labels).passed
    table = seen.evidence.pool.table
    table[:, table.shape[1] // 2 :] *= 1e-3  # the witnesses' S: now they prove too much
    assert not rue.audit(seen, X, labels).passed


def test_any_form_of_the_stream():
    X, y, _ = stream(3, rue.Hinge(), rows=20)
    weights = np.arange(20.0)
    learner = rue.OGD("hinge", "ball:2")
    wanted = require_sound(learner, X, y, weights)
    parts = [rue.Block(X[a:b], y[a:b], weights[a:b]) for a, b in ((0, 7), (7, 7), (7, 20))]
    words, M = np.where(y > 0, "spam", "ham"), sparse.csr_matrix(X)
    run = rue.learn(X, words, learner=learner, weights=weights)
    for checked in (
        rue.audit(learner, parts),
        rue.audit(learner, iter(parts)),
        rue.audit(rue.learn(parts, learner=learner), iter(parts)),
        rue.audit(learner, X, words, weights=weights),
        rue.audit(learner, X, (y > 0).astype(int), weights=weights),
        rue.audit(run, X, words),
        rue.audit(run, X),
        rue.audit(learner, M, y, weights=weights),
        rue.audit("ogd:hinge,ball:2", X.tolist(), y.tolist(), weights=weights.tolist()),
    ):
        assert checked.passed
        assert checked.regret == pytest.approx(wanted.regret, rel=1e-6)
        assert [str(bound.theorem) for bound in checked.bounds] == [bound.theorem for bound in wanted.bounds]
        assert checked.bounds[0].value == pytest.approx(wanted.bounds[0].value)


def test_long_sparse_streams_are_cut_and_put_together(monkeypatch):
    monkeypatch.setattr("rue.streams.block.ROWS", 6)
    X, y, _ = stream(3, rue.Hinge(), rows=20)
    assert require_sound(rue.OGD("hinge", "ball:2"), sparse.csr_matrix(X), y, None).comparator.value == pytest.approx(
        rue.best_in_hindsight(X, y, loss="hinge", radius=2).value, rel=1e-6
    )


def test_features_that_the_learner_has_and_the_stream_has_not():
    """On the simplex a feature that never occurs is a place to put weight."""
    X, y, _ = stream(4, rue.Square(), rows=12)
    checked = require_sound(rue.OGD("square", "simplex", d=D + 2), sparse.csr_matrix(X), y, None)
    wide = np.c_[X, np.zeros((12, 2))]
    assert checked.comparator.value == pytest.approx(
        rue.best_in_hindsight(wide, y, loss="square", domain="simplex").value, rel=1e-6, abs=1e-9
    )
    require_sound(rue.OGD("hinge", rue.Ball(1, np.ones(D + 3))), sparse.csr_matrix(X), np.sign(y) + (y == 0), None)


def test_refused_and_skipped_examples_are_left_out():
    X, y, _ = stream(1, rue.Square(), rows=20)
    X = np.clip(X, -1, 1)
    X[3, 0], X[5, 1], y[7] = 1e300, math.nan, math.nan
    for kind in (np.asarray, sparse.csr_matrix):
        run = rue.learn(kind(X), y, learner=rue.OGD("square", "ball:1"), bad="skip", curvature=True)
        checked = rue.audit(run, kind(X), y)
        assert checked.passed
        assert (run.refused, run.skipped, run.unlabelled) == (1, 1, 1)
        assert "17 examples learnt, 1 refused, 1 skipped" in str(checked)
        kept = np.isfinite(run.predictions) & np.isfinite(y)
        assert checked.comparator.value == rue.best_in_hindsight(X[kept], y[kept], loss="square", radius=1).value


def test_a_learner_that_had_learnt_before():
    X, y, _ = stream(9, rue.Hinge(), rows=20)
    for make in (lambda: rue.OGD("hinge", "ball:2"), lambda: rue.SVM(0.1), rue.Perceptron, rue.AdaGrad):
        learner = make()
        learner.run(X[:8], y[:8])
        whole = require_sound(learner, X[8:], y[8:], None)
        assert learner.t == 8
        assert whole.trace.before == 8
        run = rue.learn(X[8:], y[8:], learner=learner)
        alone = rue.audit(run, X[8:], y[8:])
        assert alone.passed
        assert alone.regret == whole.regret
        assert alone.bound is None
        assert any("had learnt 8 examples before" in remark for remark in alone.remarks)


@pytest.mark.parametrize("intercept", [False, True])
def test_small_streams(intercept):
    for rows in (1, 2):
        for loss in ("hinge", "square", "linear", "poisson"):
            y = np.ones(rows)
            require_sound(rue.OGD(loss, "ball:1", intercept=intercept), np.ones((rows, 1)), y, None)
            require_sound(rue.OGD(loss, "ball:1", intercept=intercept), np.zeros((rows, 1)), y, None)
    require_sound(rue.OGD("hinge", "ball:1"), np.empty((3, 0)), np.array([1.0, -1.0, 1.0]), None)


@parameter
class Steep(rue.Loss):
    """A user's own loss, 3·|p − y|."""

    task = "regress"
    nonnegative = True

    def value(self, p, y):
        return 3.0 * abs(p - y)

    def slope(self, p, y):
        return 3.0 if p > y else -3.0

    def accepts(self, y):
        return math.isfinite(y)


@parameter
class Shrinking(rue.Step):
    """A user's own step, 1/t."""

    def eta(self, t, seen):
        return 1.0 / t


def test_what_users_define():
    X, y, _ = stream(10, rue.Absolute(), rows=20)
    X, y = np.clip(X, -1, 1), np.clip(y, -1, 1)
    checked = require_sound(rue.OGD(Steep(), "ball:2", Shrinking()), X, y, None)
    assert checked.bound.theorem == "B6"
    assert checked.bound.holds
    assert any("no bound on risk" in remark for remark in checked.remarks)


# A check that cannot fail is none.


def failing(checked):
    assert not checked.passed
    assert "FAILED" in str(checked)
    return [check.name for check in checked.checks if not check.holds]


@pytest.fixture
def ordinary():
    X, y, _ = stream(2, rue.Hinge(), rows=20)
    X = np.random.default_rng(2).normal(size=(20, D))
    y = np.where(X[:, 0] > 0.3, 1.0, -1.0)
    return rue.learn(X, y, learner=rue.OGD("hinge", "ball:2")), X, y


def test_predictions_tampered_with(ordinary):
    run, X, y = ordinary
    predictions = run.predictions.copy()
    predictions[4] += 0.5
    names = failing(rue.audit(dataclasses.replace(run, predictions=predictions), X, y))
    assert "predictions that differ when the run is made again" in names
    assert any(name.startswith("A = Σ g_t p_t") for name in names)
    predictions[4] = math.nan  # or left out
    assert failing(rue.audit(dataclasses.replace(run, predictions=predictions), X, y))


@pytest.mark.parametrize(
    ("place", "name"), [(0, "examples and"), (2, "Σℓ"), (3, "examples and"), (4, "A = "), (None, "U·‖S‖")]
)
def test_accounts_tampered_with(ordinary, place, name):
    run, X, y = ordinary
    sums, S = run.ledger.sums.copy(), run.ledger.S.copy()
    if place is None:
        S[1] += 0.01
    else:
        sums[place] += 1.0 if place in (0, 3) else 0.01
    evidence = dataclasses.replace(run.evidence, ledger=run.ledger._replace(sums=sums, S=S))
    assert any(
        found.startswith(name) for found in failing(rue.audit(dataclasses.replace(run, evidence=evidence), X, y))
    )


def test_a_regulariser_tampered_with(ordinary):
    _, X, y = ordinary
    run = rue.learn(X, y, learner=rue.SVM(0.1))
    assert rue.audit(run, X, y).passed
    evidence = dataclasses.replace(run.evidence, penalty=run.evidence.penalty * 1.01)
    names = failing(rue.audit(dataclasses.replace(run, evidence=evidence), X, y))
    assert "the regulariser's part, added up again, differs by" in names


def test_another_stream(ordinary):
    run, X, y = ordinary
    assert failing(rue.audit(run, X + 1.0, y))
    assert failing(rue.audit(run, X[::-1], y))


@parameter
class Uphill(rue.Hinge):
    """Says what the hinge loses, and leads the wrong way."""

    def slope(self, p, y):
        return y if y * p <= 1.0 else 0.0


def test_a_learner_that_goes_uphill(ordinary, monkeypatch):
    """Its slopes are no subgradients, so its D1 certifies what is not so."""
    _, X, y = ordinary
    monkeypatch.setattr("rue.learners.gradient.require_convex", lambda loss: None)
    names = failing(rue.audit(rue.OGD(Uphill(), "ball:2"), X, y))
    assert "regret ≤ D1" in names or any("certifies" in name for name in names)


def test_a_learner_whose_step_is_wrong(monkeypatch):
    """It moves ten times as far as its step says: then the theorems about that step do not hold."""
    from rue.learners.points import Scaled

    move = Scaled.move

    def far(point, domain, row, shrink, along, p, square, played):
        return move(point, domain, row, shrink, 10.0 * along, p, square, played)

    monkeypatch.setattr(Scaled, "move", far)
    flips = np.where(np.arange(60) % 2, 1.0, -1.0)
    learner = rue.OGD("hinge", "ball:50", "fixed:0.5", intercept=False)
    names = failing(rue.audit(learner, np.full((60, 1), 30.0), flips))
    assert "D1 ≤ B5, data" in names


def test_a_comparator_that_is_wrong(ordinary, monkeypatch):
    run, X, y = ordinary
    best = Stored.best

    def changed(**new):
        def wrong(*args, **options):
            return dataclasses.replace(best(*args, **options), **new)

        monkeypatch.setattr(Stored, "best", wrong)
        return failing(rue.audit(run, X, y))

    right = rue.audit(run, X, y).comparator
    assert any("lower end" in name for name in changed(at_least=right.value + 0.01))
    assert any("computed again" in name for name in changed(value=right.value - 0.01))
    assert any("distance to the domain" in name for name in changed(point=right.point * 1.01))


def test_too_many_mistakes(ordinary):
    run, X, y = ordinary
    sums = run.ledger.sums.copy()
    sums[3] = 1000.0
    evidence = dataclasses.replace(run.evidence, ledger=run.ledger._replace(sums=sums))
    assert any("0-1 loss" in name for name in failing(rue.audit(dataclasses.replace(run, evidence=evidence), X, y)))


def test_checks_in_words():
    assert str(Check("a ≤ b", 1.0, 2.0)) == "PASS  a ≤ b: 1 ≤ 2"
    assert str(Check("a ≤ b", 2.0, 1.0)) == "FAIL  a ≤ b: 2 ≤ 1"
    assert str(Check("a ≤ b", 1.0 + 1e-12, 1.0, 1e-9)).endswith("(up to rounding, 1e-09)")
    assert not Check("a ≤ b", math.nan, 1.0, 1e-9).holds
    assert not Check("a ≤ b", 1.0, math.nan).holds


# Words and errors.


def test_the_page(ordinary):
    run, X, y = ordinary
    page = str(rue.audit(run, X, y)).splitlines()
    first = [line.split()[0] for line in page]
    kinds = list(dict.fromkeys(first))
    assert kinds == [
        "learner",
        "stream",
        "loss",
        "hindsight",
        "regret",
        "certificate",
        "bound",
        "risk",
        "check",
        "audit",
    ]
    assert page[-1].endswith(f"all {first.count('check')} passed")
    svm = str(rue.audit("svm:0.1", X, y))
    assert "of it the regulariser's" in svm
    assert "mistakes     B1" in str(rue.audit("perceptron", X, y))


def test_errors(ordinary):
    run, X, y = ordinary
    for words, call in {
        "a run knows its weights": lambda: rue.audit(run, X, y, weights=y),
        "the run learnt no example": lambda: rue.audit("ogd", X, y, weights=np.zeros(20)),
        "saw 20 examples, but here are 10": lambda: rue.audit(run, X[:10], y[:10]),
        "labels are not those of the run": lambda: rue.audit(run, X, -y),
        "weights are not those of the run": lambda: rue.audit(run, rue.Block(X, y, y + 2.0)),
        "had 4 features, but here are 8": lambda: rue.audit(run, np.c_[X, X], y),
        "had 4 features, but here are 9": lambda: rue.audit(run, sparse.csr_matrix((20, 9)), y),
        "delta, the probability": lambda: rue.audit(run, X, y, delta=2),
        "tolerance must lie": lambda: rue.audit(run, X, y, tolerance=2),
        "a radius or a domain, not both": lambda: rue.audit(run, X, y, radius=1, domain="reals"),
        "must be a rue.Domain": lambda: rue.audit(run, X, y, domain=3),
        "units must be": lambda: rue.audit(run, X, y, units="metres"),
        "must be a learner": lambda: rue.audit(5, X, y),
    }.items():
        with pytest.raises(rue.RueError, match=words):
            call()
