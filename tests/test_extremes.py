"""Numbers from 1e-300 to 1e300: what is scored is certified correctly, what is not is refused and counted.

The reference is cvxpy on a problem without extremes: features are divided by their largest magnitude, labels and
weights by theirs, and the ball becomes an ellipsoid, of which axes of no length are left out.
"""

import math
from fractions import Fraction

import cvxpy
import numpy as np
import pytest
from scipy import sparse

import references
import rue
from rue.norms import norm, norms_of_rows

ROWS, COLUMNS = 12, 3


def lowest(X, y, weights, loss, radius, units, intercept):
    """min over the ball of Σ weight·ℓ(⟨u, x⟩, y), in the units of the certificate."""
    if not y.size:
        return 0.0
    with np.errstate(all="ignore"):
        Z = np.column_stack([np.ones(y.size), X]) if intercept else X
        scales = np.abs(Z).max(axis=0)
        Z = Z[:, scales > 0.0] / scales[scales > 0.0]
        axes = radius * (np.ones(Z.shape[1]) if units == "largest" else scales[scales > 0.0])
        unit = 1.0 if loss in ("logistic", "hinge") else np.abs(y).max()
        heaviest = weights.max()
        axes, labels, w = axes / unit, y / unit, weights / heaviest
    v = cvxpy.Variable(Z.shape[1])
    middling, none = (axes > 1e-9) & (axes < 1e9), axes <= 1e-9
    limits = [cvxpy.abs(v) <= 1e3]  # farther out nothing changes, but a solver would go on for ever
    if none.any():
        limits.append(v[np.flatnonzero(none)] == 0.0)
    if middling.any():
        at = np.flatnonzero(middling)
        limits.append(cvxpy.norm(cvxpy.multiply(1.0 / axes[at], v[at])) <= 1.0)
    p = Z @ v
    each = {
        "logistic": lambda: cvxpy.logistic(cvxpy.multiply(-labels, p)),
        "hinge": lambda: cvxpy.pos(1.0 - cvxpy.multiply(labels, p)),
        "square": lambda: cvxpy.square(p - labels),
        "absolute": lambda: cvxpy.abs(p - labels),
        "quantile:0.9": lambda: cvxpy.maximum(0.9 * (labels - p), 0.1 * (p - labels)),
    }[loss]()
    found = cvxpy.Problem(cvxpy.Minimize(w @ each), limits).solve(solver="CLARABEL")
    with np.errstate(all="ignore"):
        return max(0.0, float(found)) * float(heaviest) * float(unit) ** (2 if loss == "square" else 1)


KNOWN = {}
"""Answers of the solver: several learners score the same rows."""


def data(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, COLUMNS))
    y = X @ np.array([1.0, -2.0, 0.5]) + 0.3 * rng.normal(size=ROWS) + 0.5
    return X, (np.sign(y) if loss in ("logistic", "hinge") else y)


def require_true(certificate, X, y, weights, scored, loss, total_at_zero, intercept=True):
    """What a certificate says is no more than the best point loses on the rows that were scored."""
    given = X[scored], y[scored], weights[scored], loss, certificate.radius, certificate.units, intercept
    key = tuple(part.tobytes() if isinstance(part, np.ndarray) else part for part in given)
    if key not in KNOWN:
        KNOWN[key] = lowest(*given)
    least = KNOWN[key]
    said = certificate.comparator_loss_at_least
    assert not math.isnan(said), certificate
    assert not math.isnan(certificate.regret_at_most), certificate
    assert said <= least + 1e-6 * min(total_at_zero, 1e300) + 1e-280, (said, least, certificate)
    assert str(certificate)


def at_zero(loss, y, weights, scored):
    made = rue.make("loss", loss)
    with np.errstate(all="ignore"):
        return float(sum(w * made.value(0.0, label) for w, label in zip(weights[scored], y[scored], strict=True)))


def plain(s):
    return lambda X: X * s


def columns(*scales):
    return lambda X: X * np.array(scales)


def jump(before, after):
    return lambda X: X * np.where(np.arange(ROWS) < ROWS // 2, before, after)[:, None]


FEATURES = {
    **{f"{s:g}": plain(s) for s in (1e-300, 1e-200, 1e-154, 1e150, 1e300)},
    "one tiny column": columns(1e-200, 1.0, 1.0),
    "tiny beside huge": columns(1e-200, 1.0, 1e140),
    "one to huge": jump(1.0, 1e200),
    "tiny to huge": jump(1e-300, 1e140),
    "one to tiny": jump(1.0, 1e-200),
}
LEARNERS = {
    "ogd on a ball": (lambda loss: rue.OGD(loss, "ball:10"), ["logistic", "square"]),
    "ogd on the reals": (lambda loss: rue.OGD(loss, "reals", "sqrt:0.1"), ["absolute"]),
    "ogd on a box": (lambda loss: rue.OGD(loss, "box:-1,1"), ["hinge"]),
    "adaptive": (lambda loss: rue.AdaptiveOGD(loss, "ball:3"), ["square"]),
    "adaptive, no intercept": (lambda loss: rue.AdaptiveOGD(loss, "ball:3", intercept=False), ["logistic"]),
    "adagrad": (lambda loss: rue.AdaGrad(loss), ["logistic"]),
    "adagrad, scaled": (lambda loss: rue.AdaGrad(loss, scale="largest"), ["absolute"]),
    "adagrad on a box": (lambda loss: rue.AdaGrad(loss, "box:-2,2"), ["hinge"]),
    "mixture": (lambda loss: rue.Mixture(loss), ["logistic", "square", "quantile:0.9"]),
    "staged": (lambda loss: rue.Staged(loss), ["logistic", "square"]),
    "mixture, no intercept": (lambda loss: rue.Mixture(loss, intercept=False), ["square"]),
    "adagrad, no intercept": (lambda loss: rue.AdaGrad(loss, intercept=False), ["logistic"]),
    "committee": (lambda loss: rue.Mixture(loss, members=["ogd", "adagrad"]), ["logistic"]),
}


@pytest.mark.parametrize("who", LEARNERS)
@pytest.mark.parametrize("features", FEATURES)
def test_features_of_any_size(interpreted, features, who):
    build, losses = LEARNERS[who]
    for loss in losses:
        X, y = data(loss)
        X, weights, learner = FEATURES[features](X), np.ones(ROWS), build(loss)
        run = rue.learn(X, y, learner=learner, witnesses=[1.0, 10.0], units="largest", curvature=loss == "square")
        scored = require_counted(run)
        zero, largest = at_zero(loss, y, weights, scored), np.abs(X).max()
        for radius, units in ((10.0, "raw"), (10.0, "largest"), (3.0 / largest, "raw"), (1e300, "raw")):
            if 0.0 < radius < math.inf:
                shown = run.certificate(radius=radius, units=units)
                require_true(shown, X, y, weights, scored, loss, zero, learner.intercept)
        if who == "staged" and run.examples:  # a model over the maps may leave them alone
            for radius in (0.3, 10.0):
                require_true(run.mapped_certificate(radius), X, y, weights, scored, loss, zero)


def require_counted(run):
    """Which rows were scored; the others are counted, and nothing is lost that is no number."""
    scored = np.isfinite(run.predictions)
    assert run.refused == np.count_nonzero(~scored)
    assert run.examples == np.count_nonzero(scored)
    assert math.isfinite(run.loss)
    assert math.isfinite(run.learner.predict(np.ones(COLUMNS)))
    return scored


@pytest.mark.parametrize(
    ("labels", "weight", "radius"),
    [
        (1e-200, 1.0, 10.0),
        (1e-150, 1.0, 1e-149),
        (1e150, 1.0, 1e151),
        (1e200, 1.0, 1e201),
        (1.0, 1e-300, 10.0),
        (1.0, 1e-150, 10.0),
        (1.0, 1e150, 10.0),
        (1.0, 1e300, 10.0),
        (1.0, 1.0, 1e-300),
        (1.0, 1.0, 1e300),
    ],
)
def test_labels_weights_and_radii_of_any_size(interpreted, labels, weight, radius):
    for loss in ("logistic", "square", "absolute"):
        X, y = data(loss)
        y = y if loss == "logistic" else y * labels
        weights = np.full(ROWS, weight) * np.random.default_rng(1).uniform(0.5, 2.0, ROWS)
        kept = {"witnesses": [1.0, 10.0], "curvature": loss == "square"}
        for learner in (rue.Mixture(loss), rue.OGD(loss, rue.Ball(radius)), rue.AdaptiveOGD(loss, rue.Ball(radius))):
            run = rue.learn(X, y, learner=learner, weights=weights, **kept)
            scored = require_counted(run)
            zero = at_zero(loss, y, weights, scored)
            require_true(run.certificate(radius=radius, units="raw"), X, y, weights, scored, loss, zero)
            assert norm(run.learner.point) <= radius * (1 + 1e-9) or learner.domain == rue.Reals()
        p = np.random.default_rng(2).normal(size=ROWS) * (1.0 if loss == "logistic" else labels)
        shown = rue.certify(X, y, p, loss=loss, radius=radius, weights=weights, **kept)
        scored = np.ones(ROWS, dtype=bool) if shown.left_out == 0 else np.zeros(ROWS, dtype=bool)
        assert shown.left_out in (0, ROWS)
        require_true(shown, X, y, weights, scored, loss, at_zero(loss, y, weights, scored))


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_the_predictions_of_another_model_on_tiny_features(loss):
    """The case that was found: X·1e-200 "lost at least 9,911" where a point within the ball loses 20."""
    X, y = data(loss)
    p = np.random.default_rng(3).normal(size=ROWS)
    plain_one = rue.certify(X, y, p, loss=loss, radius=10, units="largest", witnesses=10)
    for scale in (2.0**-1000, 2.0**-700, 2.0**-510):
        shown = rue.certify(X * scale, y, p, loss=loss, radius=10, units="largest", witnesses=10)
        assert shown.comparator_loss_at_least == pytest.approx(plain_one.comparator_loss_at_least, rel=1e-9)
        assert shown.slope_norm == pytest.approx(plain_one.slope_norm, rel=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "square", "quantile:0.9"])
def test_a_mixture_learns_tiny_features_as_it_learns_others(loss):
    """To the last bit, for powers of two: its units are the features' own."""
    X, y = data(loss)
    plain_one = rue.Mixture(loss).run(X, y)
    for scale in (2.0**-1000, 2.0**-700, 2.0**-510, 2.0**-300):
        assert np.array_equal(rue.Mixture(loss).run(X * scale, y), plain_one)
    assert np.abs(plain_one).max() > 0.0


def test_many_classes_are_learnt_from_tiny_features():
    """Kinds that centre features do not see tiny ones; the others learn them in their own units."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3))
    y = np.argmax(X, axis=1) + 1.0
    tiny = rue.SoftmaxMixture(intercept=False).run(X * 2.0**-700, y)
    assert np.isfinite(tiny).all()
    assert np.mean(tiny[150:] <= 0.0) < 0.2


@pytest.mark.parametrize("scale", [1e-200, 1e-300])
@pytest.mark.parametrize("who", ["ogd", "adaptive", "perceptron", "svm", "leader"])
def test_a_learner_that_cannot_square_a_row_refuses_it(interpreted, who, scale):
    """Rather than to stand still in silence: without an intercept its sums would stay 0 for ever."""
    X, y = data("logistic")
    X, learner = X * scale, rue.make("learner", who, intercept=False)
    if who == "leader":
        X = X[:, :1]
    run = rue.learn(X, y, learner=learner)
    assert (run.refused, run.examples, learner.t) == (ROWS, 0, 0)
    mixed = np.vstack([X, X / scale])  # what can be learnt is learnt as if the others had not been there
    both = rue.learn(mixed, np.tile(y, 2), learner=learner)
    alone = rue.learn(X / scale, y, learner=learner)
    assert both.refused == ROWS
    assert np.array_equal(both.predictions[ROWS:], alone.predictions)
    assert both.loss == alone.loss


def test_tiny_weights_are_refused_where_only_they_have_come(interpreted):
    X, y = data("logistic")
    run = rue.learn(X, y, learner=rue.AdaptiveOGD(), weights=np.full(ROWS, 1e-200))
    assert run.refused == ROWS
    after = np.concatenate([np.ones(2), np.full(ROWS - 2, 1e-200)])
    assert rue.learn(X, y, learner=rue.AdaptiveOGD(), weights=after).refused == 0


@pytest.mark.parametrize("weight", ["1e307", "1e308"])
def test_weights_that_add_up_to_more_than_a_number_can_hold(weight, tmp_path, inside):
    rows = [(i % 7, "1", ("no", "yes")[i % 2]) for i in range(60)]
    huge = [(x, weight, y) for x, _, y in rows]
    for name, some in (("a", rows), ("b", huge)):
        lines = "".join(f"{x},{w},{y}\n" for x, w, y in some)
        (tmp_path / f"{name}.csv").write_text(f"x,w,y\n{lines}")
    inside("learn", tmp_path / "a.csv", "--target", "y", "--weight", "w", "--model", tmp_path / "m.rue", "-q")
    said = inside("predict", tmp_path / "m.rue", tmp_path / "b.csv", "-o", tmp_path / "p.csv")
    assert "60 labelled examples" in said.err
    assert "Warning" not in said.err
    test = rue.learn(tmp_path / "a.csv", y="y", weights="w", test=tmp_path / "b.csv").test
    once = rue.learn(tmp_path / "a.csv", y="y", weights="w", test=tmp_path / "a.csv").test
    assert test.metrics["auc"] == (None if weight == "1e308" else pytest.approx(once.metrics["auc"]))


def test_norms():
    rng = np.random.default_rng(5)
    v = rng.normal(size=50)
    assert norm(v) == float(np.linalg.norm(v))
    for power in (-1070, -1000, -600, -400, 400, 600, 1000):
        assert norm(np.ldexp(v, power)) == pytest.approx(math.ldexp(float(np.linalg.norm(v)), power), rel=1e-2)
    assert norm(np.array([1e-200, 1e200])) == 1e200
    assert norm(np.array([3e-200, 4e-200])) == pytest.approx(5e-200, rel=1e-15)
    assert (norm(np.zeros(3)), norm(np.empty(0)), norm(np.array([math.inf, 1.0]))) == (0.0, 0.0, math.inf)
    X = v.reshape(10, 5) * np.array([1e-200, 1.0, 1e200, 1e-300, 0.0] * 2)[:, None]
    for form in (np.asarray, sparse.csr_matrix):
        found = norms_of_rows(form(X), False)
        assert found == pytest.approx([norm(row) for row in X], rel=1e-15)
        assert norms_of_rows(form(X), True)[0] == 1.0


# Rounding that a mutant could do without.


def test_labels_whose_mean_is_rounded_past_them(interpreted):
    """(1.7·0.1)/0.1 is more than 1.7: the spread of one label was −4e-17, whose root is no number."""
    pairs = [(y, w) for y in np.linspace(1.05, 1.95, 19) for w in (0.1, 0.3, 0.7, 0.9) if (y * w) / w > y]
    assert pairs
    for y, w in pairs[:3]:
        learner = rue.Mixture("square", intercept=False)
        assert np.isfinite(learner.run([[1.0], [2.0]], [y, y], [w, w])).all()


def test_curvature_allows_for_the_rounding_of_its_sums(interpreted):
    """Features of 0 leave Σy² as the least loss; as a float it may be more than it is."""
    rounded_up = 0
    for seed in range(8):
        y = np.random.default_rng(seed).normal(size=200)
        run = rue.learn(np.zeros((200, 1)), y, learner=rue.OGD("square"), curvature=True)
        exact = sum(Fraction(label) ** 2 for label in y.tolist())
        rounded_up += Fraction(float(run.evidence.curvature.totals[0])) > exact
        gram = np.zeros((2, 2))  # without the intercept, which would explain the labels' mean
        curvature = run.evidence.curvature._replace(gram=gram, moment=np.zeros(2))
        shown = curvature.at_least(rue.Ball(1), np.ones(2))
        assert Fraction(shown) <= exact
        assert shown == pytest.approx(float(exact), rel=1e-9)
    assert rounded_up


def test_the_intercept_has_the_magnitude_1():
    X, y = data("logistic")
    run = rue.learn(X, y, learner=rue.OGD(), units="largest")
    largest = np.concatenate([[1.0], np.abs(X).max(axis=0)])
    assert np.array_equal(run.evidence.largest.magnitudes[:4], largest)
    g = -y / (1.0 + np.exp(y * run.predictions))
    S = np.concatenate([[g.sum()], X.T @ g])
    shown = run.certificate(radius=2, units="largest")
    assert shown.slope_norm == pytest.approx(float(np.linalg.norm(S / largest)), rel=1e-9)


# Hindsight and audits: the same problem in other units has the same answer.

POWERS = (-1000, -700, -510, -300, -100, 0, 100, 300, 510, 700, 1000)


def scaled_interval(loss, power, labels, intercept, form):
    """The best in hindsight of features ×2^power and labels ×2^labels, in the units of those without."""
    X, y = data(loss)
    X, y = np.ldexp(X, power), y if loss in ("logistic", "hinge") else np.ldexp(y, labels)
    radius = 10.0 if intercept else float(np.ldexp(10.0, labels - power))
    best = rue.best_in_hindsight(form(X), y, loss=loss, radius=radius, intercept=intercept)
    assert not any(map(math.isnan, best.interval))
    assert np.isfinite(best.point).all()
    assert norm(best.point) <= radius * (1 + 1e-9)
    by = 0 if loss in ("logistic", "hinge") else labels * (2 if loss == "square" else 1)
    return best, [float(np.ldexp(end, -by)) for end in best.interval]


@pytest.mark.parametrize("loss", ["logistic", "hinge", "square", "absolute"])
def test_best_in_hindsight_of_features_of_any_size(interpreted, loss):
    """Multiplied by a power of two they are the same problem on a ball divided by it: the same value, to the bit."""
    X, y = data(loss)
    wanted = lowest(X, y, np.ones(ROWS), loss, 10.0, "raw", False)
    plain_one = rue.best_in_hindsight(X, y, loss=loss, radius=10.0, intercept=False)
    for power in POWERS:
        for form in (np.asarray, sparse.csr_matrix):
            best, (low, high) = scaled_interval(loss, power, 0, False, form)
            assert low <= wanted * (1 + 1e-6)
            assert wanted * (1 - 1e-6) <= high <= low + 2e-6 * wanted
            assert (best.note, best.value) == (plain_one.note, pytest.approx(plain_one.value, rel=1e-12))
            assert np.ldexp(best.point, power) == pytest.approx(plain_one.point, rel=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "square", "absolute"])
def test_best_in_hindsight_with_an_intercept_beside_features_of_any_size(interpreted, loss):
    X, y = data(loss)
    free = lowest(X, y, np.ones(ROWS), loss, 1e300, "raw", True)
    for power in POWERS[1:]:
        best = rue.best_in_hindsight(np.ldexp(X, power), y, loss=loss)
        assert best.at_least <= free + 1e-6
        assert free - 1e-6 <= best.value <= best.at_least + 2e-6 * (1.0 + free)
    for power in POWERS:
        _, (low, high) = scaled_interval(loss, power, 0, True, np.asarray)
        wanted = lowest(np.ldexp(X, power), y, np.ones(ROWS), loss, 10.0, "raw", True)
        assert low - 1e-6 <= wanted <= high + 1e-6
        assert high - low <= 1e-5 * (1.0 + wanted)


@pytest.mark.parametrize("loss", ["square", "absolute", "quantile:0.9"])
def test_best_in_hindsight_of_labels_of_any_size(interpreted, loss):
    """The interval is true, and where it is wider than was asked for the note says so."""
    X, y = data(loss)
    wanted = lowest(X, y, np.ones(ROWS), loss, 10.0, "raw", False)
    for labels in (-500, -300, 0, 300, 460):
        for power in (-510, 0, 510):
            best, (low, high) = scaled_interval(loss, power, labels, False, np.asarray)
            assert low <= wanted * (1 + 1e-6)
            assert high >= wanted * (1 - 1e-6)
            assert (best.note and loss != "square") or high <= low + 2e-6 * wanted


@pytest.mark.parametrize("power", [-1000, -510, -300, -100, 0, 100, 300, 470])
@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_audits_of_features_of_any_size(interpreted, loss, power):
    """Every check holds, and the regret is what an independent solver says, or the learner has refused the rows."""
    X, y = data(loss)
    Z = np.ldexp(X, power)
    for learner, radius, units in (
        (rue.OGD(loss, rue.Ball(float(np.ldexp(10.0, -power))), intercept=False), None, "raw"),
        (rue.Mixture(loss, intercept=False), 10.0, "largest"),
    ):
        run = rue.learn(Z, y, learner=learner)
        if not run.examples:
            assert run.refused == ROWS
            with pytest.raises(rue.DataError, match="learnt no example"):
                rue.audit(run, Z, y)
            continue
        assert run.refused == 0
        found = rue.audit(run, Z, y, radius=radius, units=units)
        assert found.passed, str(found)
        size = 10.0 if units == "raw" else radius
        wanted = lowest(X, y, np.ones(ROWS), loss, size, units, False)
        low, high = found.comparator_loss
        assert low - 1e-5 * wanted <= wanted <= high + 1e-5 * wanted
        assert high - low <= 1e-5 * (wanted + 1e-6)
        p = run.predictions
        total = np.maximum(0.0, 1.0 - y * p).sum() if loss == "hinge" else ((p - y) ** 2).sum()
        assert found.loss == pytest.approx(float(total), rel=1e-12)


# Learners without a unit of their own: NumPy on features of ordinary size, multiplied afterwards.


@pytest.mark.parametrize("power", [-1000, -700, -480, -460, -300, -100, 100, 300, 450, 700, 1000])
def test_perceptron_svm_and_leader_at_any_scale_equal_numpy_or_refuse(interpreted, power):
    """w is homogeneous in the features: of degree 1 for A1, −1 for A5 (λ has their square's unit) and for A7."""
    X, y = data("logistic")
    labels, ones = data("square")[1], np.ones(ROWS)
    found = {"perceptron": (rue.Perceptron(intercept=False), X, y, references.perceptron(X, y, ones), 2 * power)}
    if abs(power) < 500:  # elsewhere there is no such λ
        slope = references.LOSSES["hinge"][1]
        played = references.strong(X, y, ones, slope, references.anywhere, np.zeros(COLUMNS), 0.1)
        found["svm"] = rue.SVM(math.ldexp(0.1, 2 * power), intercept=False), X, y, played, 0
    column = X[:, :1]
    played = references.leader_square(column, labels, ones, references.anywhere, np.zeros(1))
    found["leader"] = rue.FollowTheLeader("square", "reals", intercept=False), column, labels, played, 0
    for name, (learner, features, targets, played, degree) in found.items():
        run = rue.learn(np.ldexp(features, power), targets, learner=learner)
        scored = np.isfinite(run.predictions)
        assert run.refused == np.count_nonzero(~scored), name
        if scored.all():
            wanted = np.ldexp(played.p.ravel(), degree)
            assert run.predictions == pytest.approx(wanted, rel=1e-12, abs=0.0), name
        else:  # all at once: no row is left out of what the others have learnt
            assert not scored.any(), name
            assert abs(power) > 400, name


def exactly_least(loss, x, y, weights, low, high):
    """min over low ≤ u ≤ high of Σ weight·ℓ(u·x, y) of one feature, in rational numbers: it is at a kink or an end."""
    x, y, weights = ([Fraction(float(each)) for each in part] for part in (x, y, weights))
    kinks = [(1 / (b * a) if loss == "hinge" else b / a) for a, b in zip(x, y, strict=True) if a]
    ends = [end for end in (low, high) if end is not None]
    inside = [u for u in (*kinks, *ends, Fraction(0)) if (low is None or low <= u) and (high is None or u <= high)]

    def total(u):
        each = (1 - b * a * u if loss == "hinge" else abs(a * u - b) for a, b in zip(x, y, strict=True))
        return sum(w * max(Fraction(0), one) for w, one in zip(weights, each, strict=True))

    return min(total(u) for u in inside)


UNBOUNDED = {
    "orthant": (rue.Orthant(), 0, None),
    "box from −2": (rue.Box(-2.0, math.inf), -2, None),
    "box to 2": (rue.Box(-math.inf, 2.0), None, 2),
    "intersection": (rue.Intersection("orthant", rue.Box(0.0, math.inf)), 0, None),
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("units", ["raw", "largest"])
@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("which", UNBOUNDED)
def test_unbounded_sets_are_certified_correctly(which, loss, units):
    """Each example has one feature, so that the best point is known exactly, coordinate by coordinate."""
    (K, low, high), rng, certified = UNBOUNDED[which], np.random.default_rng(8), 0
    for _ in range(60):
        column, scale = rng.integers(2, size=8), 10.0 ** rng.choice([-300, -200, -150, 0, 0, 0, 150, 280], 2)
        values = rng.choice([1.0, 1.0, 1.0, -1.0, 0.7, 1e-20], 8) * scale[column]
        weights = 10.0 ** rng.choice([-300.0, -150.0, 0.0, 0.0, 0.0]) * rng.choice([1.0, 0.3, 1e-17], 8)
        y = rng.choice([-1, 1]) * rng.choice([-1.0, -1.0, -1.0, 1.0], 8)
        y *= 1.0 if loss == "hinge" else rng.choice([1e-150, 1.0, 1e150])
        X = np.zeros((8, 2))
        X[np.arange(8), column] = values
        options = {"weights": weights, "units": units, "intercept": False, "witnesses": rng.choice([None, 1.0])}
        shown = rue.certify(X, y, 0.5 * rng.integers(-1, 2, 8), loss=loss, domain=K, **options)
        if shown.left_out:
            continue
        least = Fraction(0)
        for j in range(2):
            own, by = column == j, Fraction(float(np.abs(X[:, j]).max()) or 1.0) if units == "largest" else Fraction(1)
            ends = (None if end is None else Fraction(end) / by for end in (low, high))
            least += exactly_least(loss, X[own, j], y[own], weights[own], *ends)
        assert shown.comparator_loss_at_least <= least * Fraction(1 + 1e-9), (shown, float(least))
        certified += shown.alone < math.inf and 0.5 * least < shown.comparator_loss_at_least
    assert certified  # and it does prove something


@pytest.mark.usefixtures("interpreted")
def test_a_sum_that_is_zero_by_underflow_or_rounding_alone_proves_nothing_about_unbounded_sets():
    ones = np.ones(3)
    tiny = {"weights": np.full(3, 1e-150), "intercept": False}
    for K in (rue.Orthant(), rue.Reals(), rue.Halfspace([-1.0]), rue.Box(-1.0, math.inf)):
        tiniest = 1e-200 * ones[:, None]  # u = 1e200 loses nothing
        shown = rue.certify(tiniest, ones, 0.0 * ones, loss="hinge", domain=K, **tiny)
        assert (shown.alone, shown.comparator_loss_at_least) == (math.inf, 0.0)
        assert "nothing is proved" in str(shown)
        lost = np.array([[1.0], [-(2.0**-60)], [-1.0]])  # adds up to 0, and is −2⁻⁶⁰ in truth
        shown = rue.certify(lost, ones, 0.0 * ones, loss="linear", domain=K, intercept=False)
        assert shown.alone == math.inf
    unused = rue.certify(np.zeros((3, 1)), ones, 0.0 * ones, loss="hinge", domain="orthant", **tiny)
    assert unused.regret_at_most == 0.0  # a feature that never occurs has a sum of exactly 0
    run = rue.learn(ones[:, None], -ones, learner=rue.OGD("hinge", "ball:1", intercept=False))
    assert run.certificate(domain="orthant").alone == math.inf  # the magnitudes were not added up
    run = rue.learn(ones[:, None], -ones, learner=rue.OGD("hinge", "ball:1", intercept=False), units="largest")
    assert run.certificate(domain="orthant").alone < math.inf


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("loss", "at_best"),
    [("hinge", 3.0), ("absolute", 3.0), ("square", 3.0), ("squared-hinge", 3.0), ("logistic", 3.0 * math.log(2.0))],
)
def test_hindsight_on_unbounded_sets_where_products_underflow(loss, at_best):
    """The first example costs nothing at u_1 = 1e200 and beyond, though slope times feature is 0 in floating point."""
    X, y = np.array([[1e-200, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]), np.array([1.0, 1.0, -1.0, -1.0])
    for K in (rue.Orthant(), rue.Intersection("orthant", rue.Box(0.0, math.inf))):
        options = {"loss": loss, "domain": K, "intercept": False}
        assert rue.best_in_hindsight(X, y, weights=np.full(4, 1e-150), **options).at_least <= 1e-150 * at_best
    ordinary = rue.best_in_hindsight(np.sign(X), y, loss=loss, domain="orthant", intercept=False)
    assert ordinary.at_least > 0.9 * at_best  # where nothing is lost, it is sharp
