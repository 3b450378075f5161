"""A1 to A10: the algorithms, each compared with a few lines of NumPy that do the same."""

from __future__ import annotations

import math

import numpy as np

from rue.domains import Simplex
from rue.errors import SettingsError
from rue.games import NumberGuessing, OrthogonalAdversary, play
from rue.learners import OGD, SVM, AdaGrad, AdaptiveOGD, FollowTheLeader, Perceptron
from rue.losses import Regularised
from rue.proofs.base import Comparison, Outcome, theorem, worst
from rue.proofs.data import Given, classes, descent
from rue.regret import best_in_hindsight
from rue.runs.learn import learn
from rue.steps import Horizon, Sequence, Sqrt, Strong, Theory

__all__ = ["A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A10"]


def _difference(a: object, b: object) -> float:
    """The largest difference between two arrays."""
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b))))


def _slope(p: float, y: float) -> float:
    """The hinge's."""
    return -y if y * p <= 1.0 else 0.0


@theorem(
    "Perceptron: w_{t+1} = w_t + η y_t x_t 1{y_t⟨w_t, x_t⟩ ≤ 0}, w_1 = 0; predictions do not depend on η > 0",
    source="notes 003, equations (8) and (9) and 'the actual choice of η > 0 is fully immaterial'; 004, equation (4); "
    "000, first section; 001, Algorithm 1",
)
def A1(rng: np.random.Generator) -> Outcome:
    """Powers of two scale every number exactly."""
    X, y = classes(rng, 400)
    reference, _ = descent(X, y, lambda p, label: -label if label * p <= 0.0 else 0.0, lambda t: 1.0)
    one = learn(X, y, learner=Perceptron(intercept=False)).predictions
    others = [learn(X, y, learner=Perceptron(2.0**k, intercept=False)).predictions / 2.0**k for k in (-40, -3, 5, 60)]
    words = (
        "The Perceptron learnt 400 noisy examples with η = 2^−40, 2^−3, 1, 2^5 and 2^60: the scores differ by the "
        "factor η to the last bit, so decisions are the same; and with η = 1 they are those of the rule written out."
    )
    return words, [
        Comparison(
            "largest difference between scores divided by η", max(_difference(one, p) for p in others), "=", 0.0
        ),
        Comparison("largest difference from the rule written out", _difference(one, reference), "≤", 1e-12),
    ]


@theorem(
    "projected OGD: w'_{t+1} = w_t − (η/√t) ∇ℓ_t(w_t), w_{t+1} = Π_K(w'_{t+1}); on the ball of radius U, w_1 = 0",
    source="notes 000, 003 and 004, 'Projected OGD'; 001, Algorithm 2; 002, '(Projected) Online Gradient Descent'",
    misprint="001 writes w_t − y_t∇c_t and u_t − y_t∇F: the symbol is the step η_t. 004 has w' − w = η∇ℓ without the "
    "minus, and ∇ℓ > 0 for ∇ℓ ≠ 0.",
)
def A2(rng: np.random.Generator) -> Outcome:
    """On a ball small enough to be left often."""
    X, y = classes(rng, 400)
    learner = learn(X, y, learner=OGD("hinge", "ball:0.5", Sqrt(0.7), intercept=False))
    p, points = descent(X, y, _slope, lambda t: 0.7 / math.sqrt(t), 0.5)
    uphill, _ = descent(X, y, _slope, lambda t: -0.7 / math.sqrt(t), 0.5)
    norms = np.linalg.norm(points, axis=1)
    words = (
        f"OGD learnt 400 examples on the ball of radius ½ and was projected in {np.sum(norms > 0.4999)} rounds; its "
        "predictions are those of the rule written out, and not of the one without its minus."
    )
    return words, [
        Comparison("largest difference of predictions", _difference(learner.predictions, p), "≤", 1e-12),
        Comparison("rounds at the boundary", float(np.sum(norms > 0.4999)), "≥", 1.0),
        Comparison(
            "difference from the printed rule without its minus", _difference(learner.predictions, uphill), ">", 0.01
        ),
    ]


def _onto_simplex(v: np.ndarray, total: float) -> np.ndarray:
    """By bisection on the threshold θ with Σ[v − θ]₊ = total."""
    low, high = float(v.min()) - total, float(v.max())
    for _ in range(70):
        middle = (low + high) / 2.0
        low, high = (middle, high) if float(np.maximum(0.0, v - middle).sum()) > total else (low, middle)
    return np.asarray(np.maximum(0.0, v - (low + high) / 2.0))


@theorem(
    "online subgradient descent: A2 with any g_t ∈ ∂ℓ_t(w_t), any closed convex K, any positive non-increasing η_t",
    source="notes 002, 'Projected Online Subgradient Descent' and Lemma 2.23",
    misprint="002 writes η in the step: it is η_t.",
)
def A3(rng: np.random.Generator) -> Outcome:
    """Absolute loss on the simplex with steps of no pattern."""
    T, d = 300, 4
    X, y = rng.normal(size=(T, d)), rng.normal(size=T)
    etas = np.sort(rng.random(T))[::-1] + 0.01
    learner = OGD("absolute", Simplex(), Sequence(etas), intercept=False)
    p = learn(X, y, learner=learner).predictions
    w, wanted = np.full(d, 1.0 / d), []
    for x, label, eta in zip(X, y, etas, strict=True):
        wanted.append(float(x @ w))
        w = _onto_simplex(w - eta * np.sign(wanted[-1] - label) * x, 1.0)
    words = (
        f"OGD learnt {T} examples with absolute loss, which has a kink, on the simplex, with random non-increasing "
        "steps; its predictions are those of the rule written out, whose projection is found by bisection."
    )
    return words, [Comparison("largest difference of predictions", _difference(p, wanted), "≤", 1e-9)]


@theorem(
    "OGD for σ-strongly convex losses: w_{t+1} = w_t − (1/(σt)) ∇ℓ_t(w_t), in general η_t = 1/Σ_{i≤t} σ_i; without "
    "projection only if the part without the regulariser is L-Lipschitz, then ‖w_t‖ ≤ L/σ",
    source="notes 000, 003 and 004, 'OGD for σ-strongly convex functions'; 001, section 15.3; 002, Theorem 4.7",
    misprint="001 prints η_t = 1/α_t: it is 1/(αt). 004 calls it parameter-free: it needs σ. 000, 001, 003 and 004 "
    "take a Hessian of full rank for strong convexity: its smallest eigenvalue must be ≥ σ everywhere. 002, "
    "Definition 4.1: for x, y in V. 000, 003 and 004 need no projection: true only where the part without the "
    "regulariser is Lipschitz.",
)
def A4(rng: np.random.Generator) -> Outcome:
    """Weighted rounds, whose σ_t differ; and square loss, which explodes unprojected and is refused."""
    T, sigma = 400, 0.05
    X, y = classes(rng, T)
    weights = rng.random(T) + 0.1
    learner = OGD(Regularised("hinge", sigma), "reals", Strong(sigma), average="uniform", intercept=False)
    p = learn(X, y, learner=learner, weights=weights).predictions
    w, wanted, norms = np.zeros(X.shape[1]), [], []
    for x, label, weight, mass in zip(X, y, weights, np.cumsum(weights), strict=True):
        wanted.append(float(x @ w))
        norms.append(float(np.linalg.norm(w)))
        w = w - weight / (sigma * mass) * (_slope(wanted[-1], label) * x + sigma * w)
    v = np.zeros(1)
    for t in range(1, 200):
        v = v - (2.0 * (3.0 * v - 1.0) * 3.0 + 0.01 * v) / (0.01 * t)
    words = (
        f"Hinge loss plus (σ/2)‖w‖² on {T} weighted examples, σ_t = weight·σ: predictions are those of the rule "
        f"written out and ‖w_t‖ stays ≤ X/σ = {1.0 / sigma:g}. Square loss plus 0.005·w² is not Lipschitz: written "
        f"out it reaches {abs(float(v[0])):.0e} in 200 rounds, so rue refuses to learn it without a projection."
    )
    return words, [
        Comparison("largest difference of predictions", _difference(p, wanted), "≤", 1e-9),
        Comparison("largest ‖w_t‖", max(norms), "≤", 1.0 / sigma),
        Comparison("square loss unprojected, abs(w)", abs(float(v[0])), ">", 1e6),
        Comparison("refused (1) or not (0)", float(_refused("square", Strong(0.01), 0.01)), "=", 1.0),
    ]


def _refused(loss: str, step: object, lambda_: float) -> bool:
    try:
        OGD(Regularised(loss, lambda_) if lambda_ else loss, "reals", step)
    except SettingsError:
        return True
    return False


@theorem(
    "SVM by A4: ℓ_t(w) = (λ/2)‖w‖² + [1 − y_t⟨w, x_t⟩]₊, η_t = 1/(λt); the ball of radius 1/√λ contains the "
    "minimiser; at t = 1 the shrinking factor is exactly 0",
    source="notes 002, Example 4.12; 000 and 003, 'including Support Vector Machines'",
)
def A5(rng: np.random.Generator) -> Outcome:
    """Beside the rule written out, and the norm of the minimiser."""
    T, lambda_ = 400, 0.1
    X, y = classes(rng, T)
    run = learn(X, y, learner=SVM(lambda_, intercept=False))
    w, wanted, points = np.zeros(X.shape[1]), [], []
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        wanted.append(float(x @ w))
        points.append(w)
        w = (1.0 - 1.0 / t) * w - _slope(wanted[-1], label) / (lambda_ * t) * x
    best = best_in_hindsight(X, y, loss="hinge", lambda_=lambda_, intercept=False)
    words = (
        f"The SVM learnt {T} examples with λ = {lambda_:g}: its predictions and its average are those of the rule "
        "written out, and the minimiser in hindsight lies within 1/√λ of 0."
    )
    return words, [
        Comparison("largest difference of predictions", _difference(run.predictions, wanted), "≤", 1e-9),
        Comparison(
            "largest difference of the averages", _difference(run.learner.average, np.mean(points, axis=0)), "≤", 1e-9
        ),
        Comparison("norm of the minimiser", float(np.linalg.norm(best.point)), "≤", 1.0 / math.sqrt(lambda_)),
    ]


@theorem(
    "SVM, t-weighted: losses t·ℓ_t, η_t = 2/(λt(t+1)), so the step on ℓ_t is 2/(λ(t+1)); output Σ t·w_t / Σ t",
    source="notes 002, Example 4.12 (continued)",
)
def A6(rng: np.random.Generator) -> Outcome:
    """Beside the rule written out."""
    T, lambda_ = 400, 0.1
    X, y = classes(rng, T)
    run = learn(X, y, learner=SVM(lambda_, "t", intercept=False))
    w, wanted, total = np.zeros(X.shape[1]), [], np.zeros(X.shape[1])
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        wanted.append(float(x @ w))
        total = total + t * w
        w = w - 2.0 / (lambda_ * t * (t + 1)) * t * (_slope(wanted[-1], label) * x + lambda_ * w)
    words = f"The t-weighted SVM learnt {T} examples: predictions and average are those of the rule written out."
    return words, [
        Comparison("largest difference of predictions", _difference(run.predictions, wanted), "≤", 1e-9),
        Comparison(
            "largest difference of averages", _difference(run.learner.average, 2.0 * total / (T * (T + 1))), "≤", 1e-9
        ),
    ]


@theorem(
    "follow the leader: w_t = argmin_{u∈K} Σ_{i<t} ℓ_i(u); for squares on an interval the mean of y_1..y_{t−1}, "
    "clipped; for linear losses on the ball −U·Σg_i/‖Σg_i‖",
    source="notes 002, 'A Winning Strategy' and 'Failure of FTL'",
)
def A7(rng: np.random.Generator) -> Outcome:
    """No other point does better on the rounds so far."""
    T = 60
    numbers = rng.random(T)
    squares = play(FollowTheLeader("square", "interval:0.25,0.75"), NumberGuessing(numbers.tolist()), T)
    G = rng.normal(size=(T, 2))
    linear = play(FollowTheLeader("linear", "ball:2"), Given(G), T)
    grid = np.linspace(0.25, 0.75, 401)
    pairs = [
        (
            float(np.sum((squares.points[t, 0] - numbers[:t]) ** 2)),
            float(((grid[:, None] - numbers[:t]) ** 2).sum(1).min()),
        )
        for t in range(1, T)
    ]
    sums = np.cumsum(G, axis=0)[:-1]
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means = np.clip(np.cumsum(numbers)[:-1] / np.arange(1, T), 0.25, 0.75)
    words = (
        f"In {T} rounds of squares on [¼, ¾] and of linear losses on the ball of radius 2, the point played lost, on "
        "the rounds before, no more than the best point of a fine grid, and was the closed form."
    )
    return words, [
        worst("loss of the leader on past squares", "≤", pairs),
        Comparison("difference from the clipped mean", _difference(squares.points[1:, 0], means), "≤", 1e-12),
        Comparison("difference from −U·S/‖S‖", _difference(linear.points[1:], -2.0 * sums / lengths), "≤", 1e-12),
    ]


@theorem(
    "adaptive norm step: η_t = (D/√2)/√(Σ_{i≤t} ‖g_i‖²); no move while that sum is 0; needs D, never G",
    source="notes 002, beside Theorem 2.13 ('could choose adaptive η_t', section 4.2.1)",
)
def A8(rng: np.random.Generator) -> Outcome:
    """Beside the rule written out, and in other units."""
    T, U = 300, 2.0
    G = rng.normal(size=(T, 3)) * rng.choice([0.01, 1.0, 30.0], size=(T, 1))
    G[:3] = 0.0
    game, scaled = (play(AdaptiveOGD("linear", f"ball:{U}"), Given(c * G), T) for c in (1.0, 2.0**20))
    w, total, points = np.zeros(3), 0.0, []
    for g in G:
        points.append(w)
        total += float(g @ g)
        if total > 0.0:
            w = w - 2.0 * U / math.sqrt(2.0) / math.sqrt(total) * g
            w = w * min(1.0, U / float(np.linalg.norm(w))) if w.any() else w
    words = (
        f"{T} linear rounds of very different sizes, the first three of them 0: the points are those of the rule "
        "written out, and with all losses 2^20 times as large they are the same to the last bit, so no bound G is "
        "needed."
    )
    return words, [
        Comparison("largest difference of points", _difference(game.points, points), "≤", 1e-9),
        Comparison("how far it moved in rounds of gradient 0", float(np.abs(game.points[:4]).max()), "=", 0.0),
        Comparison(
            "largest difference with losses 2^20 times as large", _difference(game.points, scaled.points), "=", 0.0
        ),
    ]


@theorem(
    "steps by theory: √2·U/(G√t) on the ball; with T known and w_1 the centre U/(G√T), which gives R_T ≤ U·G·√T, "
    "exactly C2's lower bound; refused on ℝ^d. X, if not given, is the largest ‖x‖ so far, and B3 holds with the "
    "final G",
    source="notes 000, before equation (8); 003, before (7); 004, before (3); 002, Theorem 2.13",
)
def A9(rng: np.random.Generator) -> Outcome:
    """The horizon's step against the orthogonal adversary, and rows that grow."""
    T, U, L = 900, float(rng.integers(1, 6)), float(rng.random() + 0.5)
    game = play(OGD("linear", f"ball:{U}", Horizon(T, G=L)), OrthogonalAdversary(3, L), T)
    small = 1e-3 * rng.normal(size=(2, 3))
    started = [play(OGD("linear", f"ball:{U}", step), Given(small), 2) for step in (Horizon(T, G=L), Theory(G=L))]
    X, y = classes(rng, 500)
    X = X * np.linspace(0.1, 3.0, 500)[:, None]
    run = learn(X, y, learner=OGD("hinge", "ball:2", intercept=False))
    best = best_in_hindsight(X, y, loss="hinge", radius=2.0, intercept=False)
    G = float(np.linalg.norm(X, axis=1).max())
    words = (
        f"With T = {T} known OGD met the orthogonal adversary, who forces U·L·√T: its regret is that number, no more "
        "and no less. With rows that grow thirtyfold and X not given, the regret stays below B3 with the largest G."
    )
    return words, [
        Comparison(
            "regret against the orthogonal adversary", float(game.regret or math.nan), "=", U * L * math.sqrt(T)
        ),
        *(
            Comparison(f"the first step, {name}", float(-one.points[1, 0] / small[0, 0]), "=", eta)
            for name, one, eta in zip(
                ("T known", "T unknown"), started, (U / (L * math.sqrt(T)), math.sqrt(2.0) * U / L), strict=True
            )
        ),
        Comparison("regret on growing rows", run.loss - best.value, "≤", 2.0 * G * math.sqrt(8.0 * 500)),
        Comparison("refused on ℝ^d (1) or not (0)", float(_refused("hinge", "theory", 0.0)), "=", 1.0),
    ]


@theorem(
    "diagonal AdaGrad: η_{t,j} = (D_j/√2)/√(Σ_{i≤t} g_{i,j}²) on a box with sides D_j; R_T ≤ √2 Σ_j D_j √(Σ_t "
    "g_{t,j}²)",
    source="none of the notes: A8 in each coordinate (Duchi, Hazan and Singer 2011; McMahan and Streeter 2010)",
)
def A10(rng: np.random.Generator) -> Outcome:
    """Coordinates of very different sizes: it pays for each in its own units."""
    T, d = 400, 4
    size = np.array([1e-3, 0.1, 1.0, 50.0])
    G = [rng.normal(size=(T, d)) * size, np.where(rng.random((T, d)) < 0.02, 1.0, 0.0) * size * rng.normal(size=(T, d))]
    G.append(np.tile([[1.0], [-1.0]], (T // 2, d)) * size)
    pairs, points = [], 0.0
    for g in G:
        game = play(AdaGrad("linear", "box:-1,1"), Given(g), T)
        pairs.append((float(game.regret or math.nan), math.sqrt(2.0) * 2.0 * float(np.sqrt((g**2).sum(axis=0)).sum())))
        w, total, wanted = np.zeros(d), np.zeros(d), []
        for row in g:
            wanted.append(w)
            total = total + row**2
            w = np.clip(w - math.sqrt(2.0) * row / np.sqrt(np.where(total > 0.0, total, 1.0)), -1.0, 1.0)
        points = max(points, _difference(game.points, wanted))
    words = (
        f"AdaGrad played {len(G)} games of {T} linear rounds on [−1, 1]^4 whose coordinates differ in size by 50,000: "
        "regret stays below the bound, and the points are those of the rule written out."
    )
    return words, [worst("regret", "≤", pairs), Comparison("largest difference of points", points, "≤", 1e-9)]
