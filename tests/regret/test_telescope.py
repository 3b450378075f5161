"""Proofs on real runs: every term is that of a few lines of NumPy, and every step holds in every round."""

import math

import cvxpy as cp
import numpy as np
import pytest
from scipy.sparse import csr_matrix

import rue

T, D = 60, 3


def stream(seed=0, task="classify"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, D))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=T)
    return X, (np.where(y > 0, 1.0, -1.0) if task == "classify" else y)


HAND = {
    "hinge": (lambda p, y: max(0.0, 1 - y * p), lambda p, y: -y * (y * p <= 1)),
    "logistic": (lambda p, y: math.log1p(math.exp(-y * p)), lambda p, y: -y / (1 + math.exp(y * p))),
    "square": (lambda p, y: (p - y) ** 2, lambda p, y: 2 * (p - y)),
}


def onto_ball(v, U):
    return v * min(1.0, U / max(np.linalg.norm(v), 1e-300))


def by_hand(X, y, loss, etas, project, u, lambda_=0.0, alphas=None):
    """P1's terms, round by round, from the definitions."""
    value, slope = HAND[loss]
    w, rows = np.zeros(X.shape[1]), []
    alphas = np.ones(len(y)) if alphas is None else alphas
    for x, label, eta, alpha in zip(X, y, etas, alphas, strict=True):
        g = alpha * (slope(x @ w, label) * x + lambda_ * w)
        v = w - eta * g
        new = project(v)
        at = lambda z: alpha * (value(x @ z, label) + lambda_ / 2 * z @ z)  # noqa: B023, E731
        rows.append(
            {
                "eta": eta,
                "regret": at(w) - at(u),
                "linear": g @ (w - u),
                "sigma": alpha * lambda_,
                "curvature": alpha * lambda_ / 2 * (w - u) @ (w - u),
                "distance": (w - u) @ (w - u),
                "unprojected_distance": (v - u) @ (v - u),
                "next_distance": (new - u) @ (new - u),
                "moved": (v - w) @ (v - w),
                "unprojected": ((w - u) @ (w - u) - (v - u) @ (v - u) + (v - w) @ (v - w)) / (2 * eta),
                "projected": ((w - u) @ (w - u) - (new - u) @ (new - u) + (v - w) @ (v - w)) / (2 * eta),
                "gradient": eta / 2 * g @ g,
            }
        )
        w = new
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


CASES = {
    "ball": (
        lambda: rue.OGD("hinge", "ball:0.5", "sqrt:0.7", intercept=False),
        lambda X, y, u: by_hand(X, y, "hinge", 0.7 / np.sqrt(np.arange(1, T + 1)), lambda v: onto_ball(v, 0.5), u),
    ),
    "fixed, reals": (
        lambda: rue.OGD("logistic", "reals", "fixed:0.3", intercept=False),
        lambda X, y, u: by_hand(X, y, "logistic", np.full(T, 0.3), lambda v: v, u),
    ),
    "box": (
        lambda: rue.OGD("hinge", "box:-0.3,0.4", "sqrt:1", intercept=False),
        lambda X, y, u: by_hand(X, y, "hinge", 1 / np.sqrt(np.arange(1, T + 1)), lambda v: np.clip(v, -0.3, 0.4), u),
    ),
    "svm": (
        lambda: rue.SVM(0.2, intercept=False),
        lambda X, y, u: by_hand(X, y, "hinge", 1 / (0.2 * np.arange(1, T + 1)), lambda v: v, u, 0.2),
    ),
    "svm, by t": (
        lambda: rue.SVM(0.2, "t", intercept=False),
        lambda X, y, u: by_hand(
            X,
            y,
            "hinge",
            2 / (0.2 * np.arange(1, T + 1) * np.arange(2, T + 2)),
            lambda v: v,
            u,
            0.2,
            np.arange(1.0, T + 1),
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_terms_are_those_of_the_definitions(name, interpreted):
    X, y = stream()
    learner, reference = CASES[name]
    u = np.array([0.2, -0.25, 0.1])
    proof = rue.trace(learner(), X, y, points=True).telescope(u)
    wanted = reference(X, y, u)
    for term, values in wanted.items():
        assert np.allclose(proof[term], values, rtol=1e-8, atol=1e-9), term
        assert proof.sum(term) == pytest.approx(values.sum(), rel=1e-8, abs=1e-8)
        assert np.allclose(proof.running(term), np.cumsum(values), rtol=1e-8, atol=1e-8)
    eta, here, there = wanted["eta"], wanted["distance"], wanted["next_distance"]
    after = np.append(eta[1:], eta[-1])
    assert np.allclose(proof["telescoping"], here / (2 * eta) - there / (2 * after), rtol=1e-8)
    assert np.allclose(proof["common"], there / 2 * (1 / after - 1 / eta), rtol=1e-8, atol=1e-9)
    assert set(proof.names) == set(wanted) | {"telescoping", "common"}
    assert proof.holds
    assert proof.T == T
    assert proof.regret == proof.sum("regret")


@pytest.mark.parametrize("name", CASES)
def test_the_pieces_add_up_and_stay_below_the_bound(name, interpreted):
    X, y = stream(1)
    u = np.array([0.1, -0.2, 0.0])
    recorded = rue.trace(CASES[name][0](), X, y, points=True)
    proof, eta = recorded.telescope(u), recorded.etas
    W, pieces = recorded.points, proof.pieces
    far = ((W - u) ** 2).sum(axis=1)
    assert pieces["start"] == pytest.approx(far[0] / (2 * eta[0]))
    assert pieces["drift"] == pytest.approx(sum(far[t] / 2 * (1 / eta[t] - 1 / eta[t - 1]) for t in range(1, T)))
    assert pieces["end"] == pytest.approx(-far[T] / (2 * eta[-1]))
    assert pieces["gradient"] == pytest.approx((eta * recorded.gradient_squares).sum() / 2)
    assert sum(pieces.values()) == pytest.approx(proof.sum("projected") - proof.sum("curvature"), rel=1e-8, abs=1e-8)
    assert proof.regret <= sum(pieces.values()) + 1e-9 <= proof.bound + 2e-9
    known = {(one.theorem, one.form): one for one in rue.bounds(recorded, radius=float(np.linalg.norm(u)))}
    for theorem in ("B5", "B6", "B8"):
        if (theorem, "data") in known and known[theorem, "data"].met:
            assert proof.bound <= known[theorem, "data"].value * (1 + 1e-9), theorem
    if "svm" in name:
        assert proof.bound == pytest.approx(known["B8", "data"].value)
    for t in (1, 7, T):  # the picture's curves are those of the first t rounds
        shorter = rue.trace(CASES[name][0](), X[:t], y[:t], points=True).telescope(u)
        assert shorter.bound == pytest.approx(proof.bounds[t - 1])
        for piece, values in proof.running_pieces().items():
            assert shorter.pieces[piece] == pytest.approx(values[t - 1], abs=1e-9)


@pytest.mark.parametrize("U", [0.3, 0.5, 2.0])
def test_the_bound_is_the_distances_at_their_largest(U, interpreted):
    """½‖w_1 − u‖²/η_1 + ½D²Σ(1/η_t − 1/η_{t−1}) + ½Ση_t‖g_t‖², D = 2U; U = ½ does not tell D from D²."""
    X, y = stream(1)
    recorded = rue.trace(rue.OGD("hinge", f"ball:{U}", "sqrt:0.7", intercept=False), X, y, points=True)
    u, eta = np.array([0.1, -0.2, 0.0]), 0.7 / np.sqrt(np.arange(1, T + 1))
    by_hand = u @ u / (2 * eta[0]) + (2 * U) ** 2 / 2 * (1 / eta[-1] - 1 / eta[0])
    assert recorded.telescope(u).bound == pytest.approx(by_hand + (eta * recorded.gradient_squares).sum() / 2)


def test_with_weights_the_best_in_hindsight_is_that_of_the_weighted_losses(interpreted):
    X, y = stream(2)
    weights = np.where(y > 0, 9.0, 0.5)
    proof = rue.trace(rue.OGD("hinge", "ball:0.5", intercept=False), X, y, weights, points=True).telescope()
    u = cp.Variable(D)
    cp.Problem(cp.Minimize(weights @ cp.pos(1 - cp.multiply(y, X @ u))), [cp.norm(u) <= 0.5]).solve(solver="CLARABEL")
    assert weights @ np.maximum(0, 1 - y * (X @ proof.u)) <= weights @ np.maximum(0, 1 - y * (X @ u.value)) + 1e-3


def test_points_of_another_algorithm_are_refused(interpreted):
    X, y = stream()
    recorded = rue.trace(CASES["ball"][0](), X, y, points=True)
    recorded.points[3] += 1e-3
    with pytest.raises(rue.DataError, match=r"round 3: w_\(t\+1\) is .* away from .*: this is another algorithm"):
        recorded.telescope(np.zeros(D))


def test_without_a_point_it_is_the_best_in_hindsight(interpreted):
    X, y = stream(2)
    proof = rue.trace(rue.OGD("hinge", "ball:0.5", "sqrt:0.7", intercept=False), X, y, points=True).telescope()
    u = cp.Variable(D)
    least = cp.Problem(cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(y, X @ u)))), [cp.norm(u) <= 0.5])
    least.solve(solver="CLARABEL")
    assert np.maximum(0, 1 - y * (X @ proof.u)).sum() == pytest.approx(least.value, rel=1e-4)


def test_points_are_those_of_the_run_dense_sparse_weighted_and_with_an_intercept():
    X, y = stream(3)
    weights = np.where(np.arange(T) % 5 == 0, 0.0, 1.0 + np.arange(T) % 3)
    run = rue.OGD("hinge", "ball:2", "sqrt:0.7")
    dense, sparse = (rue.trace(run, A, y, weights, points=True) for A in (X, csr_matrix(X)))
    learner, points = run.copy(), []
    for x, label, weight in zip(X, y, weights, strict=True):
        if weight:
            points.append(learner.point if learner.t else np.zeros(D + 1))
            learner.update(x, label, weight)
    assert np.array_equal(dense.points, [*points, learner.point])
    assert np.allclose(sparse.points, dense.points, atol=1e-12)
    assert len(points) == dense.T
    u = np.full(D + 1, 0.3)
    assert dense.telescope(u).holds
    at_u = np.maximum(0, 1 - y * (X @ u[1:] + u[0]))
    at_w = np.maximum(0, 1 - dense.labels * dense.predictions)
    wanted = weights[weights > 0] * (at_w - at_u[weights > 0])
    assert np.allclose(dense.telescope(u)["regret"], wanted)


def test_a_run_can_be_traced_with_its_points_and_without():
    X, y = stream()
    run = rue.learn(X, y, learner=rue.OGD("hinge", "ball:1"))
    recorded = rue.trace(run, X, y, points=True)
    assert np.array_equal(recorded.points[-1], run.learner.point)
    assert rue.trace(run, X, y).points is None


def test_adaptive_steps_before_the_first_gradient_move_nothing(interpreted):
    X, y = stream()
    X[:3] = 0.0
    proof = rue.trace(rue.AdaptiveOGD("hinge", "ball:1", intercept=False), X, y, points=True).telescope()
    assert proof.holds
    assert np.all(proof["eta"] > 0)
    assert np.array_equal(proof["moved"][:3], np.zeros(3))


def test_a_wrong_step_is_found_out(interpreted):
    """Doubled distances after the fact, a regret that convexity forbids, a gradient too short."""
    X, y = stream()
    for term, factor in (("regret", 30.0), ("unprojected", 1.01), ("projected", 0.9), ("gradient", 0.9)):
        proof = rue.trace(rue.OGD("hinge", "ball:0.5", "sqrt:0.7"), X, y, points=True).telescope()
        assert proof.holds
        proof.terms[term] = factor * proof.terms[term]
        assert not proof.holds, term


def test_it_reads_as_a_chain(interpreted):
    X, y = [[1.0]] * 3, [1, 1, 1]
    proof = rue.trace(rue.OGD("hinge", "ball:1", "fixed:0.25", intercept=False), X, y, points=True).telescope([1.0])
    assert str(proof).splitlines() == [
        "  R_T(u) = Σ ℓ_t(w_t) − ℓ_t(u): 2.25",
        "≤ Σ ⟨g_t, w_t − u⟩: 2.25",
        "= Σ (‖w_t − u‖² − ‖w'_(t+1) − u‖²)/(2η_t) + (η_t/2)‖g_t‖²: 2.25",
        "≤ Σ (‖w_t − u‖² − ‖w_(t+1) − u‖²)/(2η_t) + (η_t/2)‖g_t‖²: 2.25",
        "= start 2 + drift 0 + gradient 0.375 − end 0.125",
        "≤ the bound, with distances at most D: 2.375",
    ]
    assert "(σ_t/2)" in str(rue.trace(rue.SVM(0.5), X, y, points=True).telescope())


# The Perceptron's.


def mistakes_by_hand(X, y, u):
    w, rows = np.zeros(X.shape[1]), []
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        if label * (w @ x) <= 0:
            w = w + label * x
            rows.append((t, max(0.0, 1 - label * (u @ x)), np.linalg.norm(w), w @ u))
    return [np.array(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("eta", [1.0, 0.25])
def test_the_perceptrons_proof_is_that_of_the_definitions(eta, interpreted):
    X, y = stream(5)
    u = np.array([0.4, -0.9, 0.3])
    proof = rue.trace(rue.Perceptron(eta, intercept=False), X, y, points=True).mistake_proof(u)
    t, hinges, norms, inner = mistakes_by_hand(X, y, u)
    i, size = np.arange(1, len(t) + 1), np.linalg.norm(X, axis=1).max()
    assert proof.M == len(t) > 5
    assert np.array_equal(proof["round"], t)
    assert np.allclose(proof["hinge"], hinges)
    assert np.allclose(proof["norm"], norms)
    assert np.allclose(proof["inner"], inner)
    assert np.allclose(proof["norm_most"], size * np.sqrt(i))
    assert np.allclose(proof["inner_least"], i - np.cumsum(hinges))
    assert np.allclose(proof["allowed"], np.cumsum(hinges) + np.linalg.norm(u) * size * np.sqrt(i))
    assert pytest.approx(np.maximum(0, 1 - y * (X @ u)).sum()) == proof.H
    assert proof.holds
    assert proof.value == pytest.approx(hinges.sum() + np.linalg.norm(u) * size * math.sqrt(len(t)))
    for step in (0.01, 0.3, 2.0):
        wanted = hinges.sum() + u @ u / (2 * step) + step * size**2 * len(t) / 2
        assert proof.with_step(step) == pytest.approx(wanted)
        assert len(t) <= wanted
        assert proof.with_step(proof.best_step) <= wanted
    assert proof.with_step(proof.best_step) == pytest.approx(proof.value)
    assert proof.best_step == pytest.approx(np.linalg.norm(u) / (size * math.sqrt(len(t))))
    assert f"M = {len(t)} mistakes" in str(proof)


def test_the_perceptrons_proof_takes_the_u_of_b1(interpreted):
    X, y = stream(6)
    proof = rue.trace(rue.Perceptron(intercept=False), X, y, points=True).mistake_proof()
    assert np.allclose(proof.u, rue.perceptron_bound(X, y, intercept=False).comparator)
    assert proof.M <= proof.value <= proof.H + np.linalg.norm(proof.u) * proof.X * math.sqrt(proof.M)
    for term, factor in (("norm", 5.0), ("inner", -1.0), ("allowed", 0.1)):
        broken = rue.trace(rue.Perceptron(intercept=False), X, y, points=True).mistake_proof()
        broken.terms[term] = factor * broken.terms[term]
        assert not broken.holds, term


def test_no_mistake_is_no_proof(interpreted):
    proof = rue.trace(rue.Perceptron(intercept=False), [[0.0, 1.0]], [1], points=True).mistake_proof([0.0, 1.0])
    assert proof.M == 1  # a zero margin is one
    learner = rue.OGD("perceptron", "reals", "fixed:1", intercept=False)
    assert rue.trace(learner, [[0.0, 1.0]] * 3, [1, 1, 1], points=True).mistake_proof([0.0, 1.0]).M == 1


def test_the_perceptron_is_hinge_descent_times_the_error(interpreted):
    """P6, on points: 003 (9), 004 (4)."""
    X, y = stream(7)
    for eta in (1.0, 0.5):
        recorded = rue.trace(rue.Perceptron(eta, intercept=False), X, y, points=True)
        w, points = np.zeros(D), []
        for x, label in zip(X, y, strict=True):
            points.append(w)
            margin = label * (x @ w)
            gradient = -label * x if margin <= 1 else np.zeros(D)  # of the hinge loss
            w = w - eta * gradient * (margin <= 0)
        assert np.allclose(recorded.points, [*points, w], atol=1e-12)
        errors = (recorded.labels * recorded.predictions <= 0).astype(float)
        hinge = rue.trace(rue.OGD("hinge", "reals", f"fixed:{eta}", intercept=False), X, y, errors, points=True)
        assert np.array_equal(hinge.points[:-1], recorded.points[:-1][errors > 0])
        assert np.array_equal(hinge.points[-1], recorded.points[-1])
        plain = rue.trace(rue.OGD("hinge", "reals", f"fixed:{eta}", intercept=False), X, y, points=True)
        assert not np.allclose(plain.points, recorded.points, atol=1e-3)


# Refusals.


def traced(learner, points=True, **settings):
    X, y = stream()
    return rue.trace(learner, X, y, points=points, **settings)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: traced(rue.OGD(), points=False).telescope(), r"needs the points: rue.trace\(…, points=True\)"),
        (
            lambda: traced(rue.AdaGrad("hinge", "box:-1,1")).telescope(),
            "for all coordinates, not about AdaGrad",
        ),
        (lambda: traced(rue.OGD("hinge", "ball:1")).telescope([9.0, 0, 0, 0]), "u must lie in Ball"),
        (lambda: traced(rue.OGD("hinge", "ball:1")).telescope([0.0]), "u must be 4 finite numbers"),
        (lambda: traced(rue.OGD("hinge", "ball:1")).telescope("u"), "u must be 4 finite numbers"),
        (lambda: traced(rue.OGD("hinge", "ball:1")).telescope()["slack"], "no term 'slack': the terms are eta, regret"),
        (lambda: traced(rue.OGD("hinge", "ball:1")).mistake_proof(), "it is about the Perceptron, not about OGD"),
        (lambda: traced(rue.Perceptron(), weights=np.full(T, 2.0)).mistake_proof(), "all have the weight 1"),
        (lambda: traced(rue.Perceptron()).mistake_proof().with_step(0.0), "eta must be positive and finite, not 0.0"),
        (lambda: rue.trace(rue.OGD(d=2), np.empty((0, 2)), [], points=True).telescope(), "at least one round"),
        (lambda: rue.plot_proof(3), r"plot_proof: give rue.trace\(…, points=True\).telescope\(u\), not 3"),
    ],
)
def test_refusals_are_sentences(call, words, interpreted):
    with pytest.raises(rue.RueError, match=words) as caught:
        call()
    assert str(caught.value).endswith(".")


def test_too_many_points_are_refused_before_they_are_stored(monkeypatch):
    monkeypatch.setattr("rue.runs.replay.MOST_POINTS", 100)
    with pytest.raises(rue.NoRoom, match=r"would take more than 400 MB: give fewer examples"):
        traced(rue.OGD("hinge", "ball:1"))


# The picture.


def test_the_picture_shows_the_sums(interpreted):
    proof = traced(rue.OGD("hinge", "ball:0.5", "sqrt:0.7")).telescope()
    ax = rue.plot_proof(proof)
    lines = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert np.allclose(lines["regret"], np.cumsum(proof["regret"]))
    assert np.allclose(lines["linear"], np.cumsum(proof["linear"]))
    assert np.allclose(lines["telescoped"], np.cumsum(proof["projected"]))
    assert lines["bound"][-1] == pytest.approx(proof.bound)
    assert [area.get_label() for area in ax.collections] == ["start", "drift", "gradient"]
    top = ax.collections[2].get_paths()[0].vertices[:, 1].max()
    pieces = proof.pieces
    assert top == pytest.approx(pieces["start"] + pieces["drift"] + pieces["gradient"])
    assert rue.plot_proof(proof, ax=ax) is ax
    one = rue.trace(rue.OGD("hinge", "ball:1", intercept=False), [[1.0]], [1], points=True).telescope([1.0])
    assert rue.plot_proof(one).get_xlabel() == "rounds t"


def test_the_lines_of_the_picture_are_lower_by_the_curvature(interpreted):
    X, y = stream()
    proof = rue.trace(rue.SVM(0.2, intercept=False), X, y, points=True).telescope(np.zeros(D))
    ends = {line.get_label(): line.get_ydata()[-1] for line in rue.plot_proof(proof).lines}
    assert ends["linear"] == pytest.approx(proof.sum("linear") - proof.sum("curvature"))
    assert ends["telescoped"] == pytest.approx(proof.sum("projected") - proof.sum("curvature"))
