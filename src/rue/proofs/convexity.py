"""V1 to V6: convex sets and functions, tangents, Taylor's formula, subgradients, strong convexity."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rue.domains import Ball, Box, Domain, Halfspace, Hyperplane, Intersection, L1Ball, Orthant, Simplex
from rue.learners import OGD
from rue.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Indicator,
    Logistic,
    Loss,
    PerceptronLoss,
    Poisson,
    Quantile,
    Square,
    SquaredHinge,
    ZeroOne,
)
from rue.losses.functions import convexity
from rue.proofs.base import Comparison, Outcome, theorem, worst
from rue.regret import best_in_hindsight
from rue.runs.learn import learn
from rue.steps import Fixed

__all__ = ["V1", "V2", "V3", "V4", "V5", "V6"]

Function = Callable[[Any], float]


def _mixed(rng: np.random.Generator, x: Any, y: Any) -> Any:
    """λx + (1 − λ)y for a random λ."""
    share = rng.random()
    return share * x + (1.0 - share) * y


@theorem(
    "a set V is convex if λx + (1 − λ)y ∈ V for all x, y ∈ V and λ ∈ (0, 1)",
    source="notes 002, Definition 2.2; 001, section 15.2 ('K is a convex set')",
)
def V1(rng: np.random.Generator) -> Outcome:
    """Mixtures of projected points, and two sets that are not convex."""
    sets: list[Domain] = [
        Ball(1.5, [0.5, -1.0, 0.0]),
        Box(-1.0, 2.0, 3),
        Orthant(),
        Halfspace([1.0, -2.0, 0.5], 0.3),
        Hyperplane([1.0, 1.0, 1.0], 0.5),
        Simplex(2.0),
        L1Ball(1.0),
        Intersection("ball:1", "orthant"),
    ]
    outside = []
    for K in sets:
        points = [K.project(3.0 * rng.normal(size=3)) for _ in range(30)]
        outside.append(sum(not K.contains(_mixed(rng, x, y)) for x in points for y in points))
    normals = rng.normal(size=(30, 3))
    sphere = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    lengths = [float(np.linalg.norm(_mixed(rng, x, y))) for x in sphere for y in sphere if x is not y]
    words = (
        f"Of each of {len(sets)} sets 30 points were mixed pair by pair, and no mixture leaves its set. Mixtures of "
        "points of a sphere do leave it, so it is not convex."
    )
    return words, [
        Comparison("mixtures outside the sets", float(sum(outside)), "=", 0.0),
        Comparison("the shortest mixture of points of the unit sphere", min(lengths), "<", 1.0),
    ]


def _functions() -> list[tuple[str, Function, bool]]:
    """Functions of a number, by name, and whether each is convex."""
    losses: list[Loss] = [Hinge(), PerceptronLoss(), Logistic(), SquaredHinge(), ZeroOne(), Square(), Absolute()]
    losses += [Huber(0.7), Quantile(0.8), EpsilonInsensitive(0.3), Poisson()]
    named: list[tuple[str, Function, bool]] = [
        (type(loss).__name__, lambda x, loss=loss: loss.value(float(x[0]), 1.0), loss.convex)  # type: ignore[misc]
        for loss in losses
    ]
    indicator = Indicator(Ball(2.0))
    return [
        *named,
        ("Indicator", lambda x: indicator.value(x), True),
        ("−square", lambda x: -float(x[0] ** 2), False),
        ("sine", lambda x: math.sin(float(x[0])), False),
    ]


@theorem(
    "f is convex if its epigraph {(x, y) : y ≥ f(x)} is a convex set; just as well, f(λx + (1 − λ)y) ≤ λf(x) + (1 − "
    "λ)f(y) for all x, y where f is finite and λ ∈ (0, 1)",
    source="notes 002, Definition 2.3 and Theorem 2.4",
)
def V2(rng: np.random.Generator) -> Outcome:
    """Both definitions on functions that are convex and on some that are not."""
    verdicts, wrong, seed = [], [], int(rng.integers(1 << 30))
    for name, f, convex in _functions():
        broken = 0
        for _ in range(2000):
            x, y = rng.normal(0.0, 3.0, size=(2, 1))
            heights = [f(x) + rng.exponential(0.2), f(y) + rng.exponential(0.2)]
            if not all(map(math.isfinite, heights)):
                continue  # no point of the epigraph lies above x or y
            share = rng.random()
            height = share * heights[0] + (1.0 - share) * heights[1]
            broken += f(share * x + (1.0 - share) * y) > height + 1e-12 * (1.0 + abs(height))
        by_chords = convexity(f, seed=seed).convex
        verdicts.append((float(broken == 0), float(by_chords)))
        wrong.append((name, float((broken == 0) != convex)))
    words = (
        f"{len(verdicts)} functions, 3 of them not convex (0-1 loss, −x², sine): whether 2000 mixtures of points of "
        "the epigraph stay in it, and whether chords lie above, gave the same answer for each, and the right one."
    )
    return words, [
        worst("convex by the epigraph (1) or not (0), against by chords", "=", verdicts),
        Comparison("functions judged wrongly", sum(one for _, one in wrong), "=", 0.0),
    ]


@theorem(
    "f convex and differentiable at x: f(y) ≥ f(x) + ⟨∇f(x), y − x⟩ for all y, twice differentiable or not",
    source="notes 002, Theorem 2.7; 000, inequality (2); 003, inequality (1); 001, first line of the proof",
)
def V3(rng: np.random.Generator) -> Outcome:
    """Tangents of sums of losses over examples, and of a function that is not convex."""
    X, y = rng.normal(size=(12, 3)), np.where(rng.random(12) < 0.5, 1.0, -1.0)
    pairs, slopes = [], []
    for loss in (Square(), Logistic(), SquaredHinge(), Huber(0.7), Poisson()):
        labels = np.abs(y) if loss.labels == "a number ≥ 0" else y
        f, gradient = _total(loss, X, labels)
        for _ in range(60):
            w, u = rng.normal(0.0, 1.5, size=(2, 3))
            pairs.append((f(u), f(w) + float(gradient(w) @ (u - w))))
            direction = rng.normal(size=3)
            difference = (f(w + 1e-6 * direction) - f(w - 1e-6 * direction)) / 2e-6
            slopes.append(
                (difference / (1.0 + abs(difference)), float(gradient(w) @ direction) / (1.0 + abs(difference)))
            )
    error = max(abs(a - b) for a, b in slopes)
    x = rng.uniform(-3.0, 3.0, size=(400, 2))
    sine = float(np.max(np.sin(x[:, 0]) + np.cos(x[:, 0]) * (x[:, 1] - x[:, 0]) - np.sin(x[:, 1])))
    words = (
        "Total losses over 12 examples, five losses, 60 tangents each, two of the losses only once differentiable: "
        "every tangent lies below. Those of the sine, which is not convex, do not."
    )
    return words, [
        worst("f(u) against its tangent at w", "≥", pairs),
        Comparison("the gradient against differences, relative", error, "≤", 1e-5),
        Comparison("how far a tangent of the sine lies above it", sine, ">", 0.0),
    ]


def _total(loss: Loss, X: Any, y: Any) -> tuple[Function, Callable[[Any], Any]]:
    """Σ ℓ(⟨w, x_i⟩, y_i) and its gradient."""

    def value(w: Any) -> float:
        return math.fsum(loss.value(float(p), float(label)) for p, label in zip(X @ w, y, strict=True))

    def gradient(w: Any) -> Any:
        return X.T @ np.array([loss.slope(float(p), float(label)) for p, label in zip(X @ w, y, strict=True)])

    return value, gradient


@theorem(
    "Taylor's formula: f twice differentiable has f(u) = f(w) + ∇f(w)ᵀ(u − w) + ½(u − w)ᵀ∇²f(ξ)(u − w) for a point ξ "
    "of the segment between u and w; if f is convex, ∇²f is positive semidefinite",
    source="notes 000, Lemma 1; 003, Lemma 1; 004, Lemma 1",
)
def V4(rng: np.random.Generator) -> Outcome:
    """The remainder of total losses, and the ξ at which it is attained."""
    X, y = rng.normal(size=(10, 3)), np.where(rng.random(10) < 0.5, 1.0, -1.0)
    remainders, eigenvalues, places = [], [], []
    for loss in (Square(), Logistic(), Poisson()):
        labels = np.abs(y) if loss.labels == "a number ≥ 0" else y
        f, gradient = _total(loss, X, labels)
        for _ in range(30):
            w, u = rng.normal(size=(2, 3))
            remainder = f(u) - f(w) - float(gradient(w) @ (u - w))

            def second(s: float, w: Any = w, u: Any = u, loss: Loss = loss, labels: Any = labels) -> float:
                curves = loss.second_derivative(X @ (w + s * (u - w)), labels)
                return 0.5 * float(curves @ (X @ (u - w)) ** 2)

            s = _where(second, remainder)
            places.append((s, 1.0))
            remainders.append((second(s), remainder))
            hessian = X.T @ (loss.second_derivative(X @ w, labels)[:, None] * X)
            eigenvalues.append((float(np.linalg.eigvalsh(hessian)[0]), 0.0))
    words = (
        "Total losses over 10 examples (square, logistic, Poisson), 30 pairs of points each: on every segment there "
        "is a ξ at which half the second derivative is what the tangent leaves, and no Hessian has a negative "
        "eigenvalue."
    )
    return words, [
        worst("½(u − w)ᵀ∇²f(ξ)(u − w) against f(u) − f(w) − ∇f(w)ᵀ(u − w)", "=", remainders),
        worst("where ξ lies on the segment, in [0, 1]", "≤", places),
        worst("the smallest eigenvalue of the Hessian", "≥", eigenvalues),
    ]


def _where(q: Callable[[float], float], wanted: float) -> float:
    """An s in [0, 1] at which a continuous function has a value, or is nearest to it: a grid, then bisection."""
    grid = np.linspace(0.0, 1.0, 201)
    off = np.array([q(float(s)) for s in grid]) - wanted
    turns = np.flatnonzero(off[:-1] * off[1:] <= 0.0)
    if not turns.size:
        return float(grid[np.abs(off).argmin()])
    low, high = float(grid[turns[0]]), float(grid[turns[0] + 1])
    rising = off[turns[0]] <= 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if (q(middle) <= wanted) == rising else (low, middle)
    return 0.5 * (low + high)


@theorem(
    "g is a subgradient of f at x if f(y) ≥ f(x) + ⟨g, y − x⟩ for all y; ∂f(x), the set of all of them, is for a loss "
    "of a number the interval between the slopes on both sides; learning with any choice from it keeps every bound",
    source="notes 002, Definition 2.15 and 'Projected Online Subgradient Descent'; 004, after Figura 1 ('un qualsiasi "
    "valore fra −1 e 0'); 000, footnote 1",
    misprint="000's footnote has the hinge [1 − z]₊ not differentiable at z = 0: it is at z = 1, as 004 has it.",
)
def V5(rng: np.random.Generator) -> Outcome:
    """The interval at every kink, and OGD that meets kinks often, with several choices."""
    q = np.linspace(-4.0, 4.0, 161)
    inside, beyond = [], []
    kinks = [(Hinge(), 1.0), (PerceptronLoss(), 0.0), (Absolute(), 1.0), (Quantile(0.75), 1.0)]
    for loss, p in [*kinks, (EpsilonInsensitive(0.5), 1.5), (EpsilonInsensitive(0.5), 0.5)]:
        left, right = loss.subdifferential(p, 1.0)
        values, here = np.array([loss.value(float(x), 1.0) for x in q]), loss.value(p, 1.0)

        def least(g: float, values: Any = values, here: float = here, p: float = p) -> float:
            return float(np.min(values - here - g * (q - p)))

        inside += [(least(g), 0.0) for g in np.linspace(left, right, 11)]
        beyond += [(least(g), 0.0) for g in (left - 0.01, right + 0.01)]
    T, eta, U, regrets, met = 200, 0.5, 4.0, [], 0
    X = np.eye(3)[rng.integers(0, 3, T)]  # steps of ½ along the axes: margins are halves, and often 1
    y = np.where(rng.random(T) < 0.7, 1.0, -1.0)
    best = best_in_hindsight(X, y, loss="hinge", radius=U, intercept=False)
    for choice in (0.0, 0.25, 0.5, 0.75, 1.0):
        learner = OGD(Hinge(at_kink=choice), f"ball:{U}", Fixed(eta), intercept=False)
        run = learn(X, y, learner=learner)
        z = y * run.predictions
        met += int(np.sum(z == 1.0))
        spent = float(np.where(z < 1.0, 1.0, np.where(z == 1.0, choice**2, 0.0)).sum())
        regrets.append((run.loss - best.value, float(best.point @ best.point) / (2.0 * eta) + eta / 2.0 * spent))
        regrets.append((run.loss - best.value, run.certificate(U).regret_at_most))
    kink = Hinge().subdifferential(0.0, 1.0)
    words = (
        "At six kinks every slope of the interval is a subgradient, and one beyond it by 0.01 is none. OGD with the "
        f"hinge, on a stream whose margins were exactly 1 in {met} rounds, kept B5 and D1 with each of five choices "
        "there."
    )
    return words, [
        worst("the least of f(q) − f(p) − g(q − p), g in ∂f(p)", "≥", inside),
        worst("the same beyond the interval", "<", beyond),
        worst("regret with every choice at the kink, against B5 and D1", "≤", regrets),
        Comparison("rounds that met the kink", float(met), ">", 0.0),
        Comparison("the length of ∂h at the printed kink z = 0", kink[1] - kink[0], "<", 1.0),
    ]


@theorem(
    "f is μ-strongly convex over V w.r.t. ‖·‖ if f(y) ≥ f(x) + ⟨g, y − x⟩ + (μ/2)‖x − y‖² for x, y ∈ V and g ∈ ∂f(x); "
    "for the Euclidean norm just when f − (μ/2)‖x‖² is convex, and for twice differentiable f when ∇²f ⪰ μI. ½‖w‖² − "
    "½‖u‖² = wᵀ(w − u) − ½‖w − u‖², so ½‖w‖² has μ = 1",
    source="notes 002, Definition 4.1; 000, inequality (9) and the display after it; 003, inequality (10); 004, "
    "'convessità forte'; 001, section 15.3 (first order, ∇²f ≥ αI, f − (α/2)‖x‖²)",
    misprint="000, 001, 003 and 004 take a Hessian of full rank, or H > 0, for strong convexity: its smallest "
    "eigenvalue must be ≥ μ everywhere (e^w is not strongly convex). 002 has y ∈ ℝ^d: it is y ∈ V.",
)
def V6(rng: np.random.Generator) -> Outcome:
    """Moduli that are known, in three norms, both criteria, and what the notes misprint."""
    seed, d = int(rng.integers(1 << 30)), 3
    w, u = rng.normal(size=(2, 200, d))
    left = 0.5 * (w**2).sum(axis=1) - 0.5 * (u**2).sum(axis=1)
    identity = list(zip(left, (w * (w - u)).sum(axis=1) - 0.5 * ((w - u) ** 2).sum(axis=1), strict=True))

    def half(x: Any) -> float:
        return 0.5 * float(x @ x)

    def modulus(f: Any, gradient: Any = None, **settings: Any) -> float:
        return convexity(f, gradient, seed=seed, **settings).modulus

    norms = [(modulus(half, lambda x: x, d=d, norm=p), least) for p, least in ((2, 1.0), (1, 1.0 / d), (math.inf, 1.0))]
    norms.append((modulus(_entropy, d=d, domain="simplex", norm=1), 1.0))
    A = rng.normal(size=(d, d))
    A = A @ A.T + 0.3 * np.eye(d)
    mu = float(np.linalg.eigvalsh(A)[0])
    lambda_ = 0.4
    for f, gradient, known in (
        (lambda x: 0.5 * float(x @ A @ x), lambda x: A @ x, mu),
        (lambda x: max(0.0, 1.0 - float(x[0])) + 0.5 * lambda_ * float(x @ x), None, lambda_),
    ):
        norms.append((modulus(f, gradient, d=d), known))
    criteria = []
    for alpha in (0.5 * mu, mu, 1.5 * mu, 3.0 * mu):
        found = convexity(lambda x: 0.5 * float(x @ A @ x), d=d, trials=3000, seed=seed)
        less = convexity(lambda x: 0.5 * float(x @ A @ x), d=d, trials=3000, seed=seed, less=alpha)
        criteria.append((float(found.strongly(alpha)), float(less.convex)))
    exponential = modulus(lambda x: math.exp(float(x[0])), lambda x: np.exp(x), domain="interval:-30,0")
    huber = Huber(1.0)
    on_V = modulus(lambda x: huber.value(float(x[0]), 0.0), lambda x: np.clip(x, -1.0, 1.0), domain="interval:-1,1")
    to_all = huber.value(5.0, 0.0) - huber.value(0.0, 0.0) - 0.5 * 5.0**2
    words = (
        "The identity for ½‖w‖² at 200 pairs. No pair of points refutes the known moduli: ½‖w‖² in three norms, "
        "entropy on the simplex (w.r.t. ‖·‖₁), a quadratic (its smallest eigenvalue), the regularised hinge (λ). f − "
        "(α/2)‖x‖² is convex for the same α. e^w, whose second derivative is positive, is strongly convex with no μ "
        "worth the name."
    )
    return words, [
        worst("½‖w‖² − ½‖u‖² against wᵀ(w − u) − ½‖w − u‖²", "=", identity),
        worst("the modulus found against the one known", "≥", norms),
        worst("strongly convex (1) or not (0), against f − (α/2)‖x‖² convex", "=", criteria),
        Comparison("the modulus of e^w on [−30, 0], printed as strongly convex", exponential, "<", 1e-3),
        Comparison("Huber's on V = [−1, 1]", on_V, "≥", 1.0),
        Comparison("the same inequality for the printed y ∈ ℝ, at y = 5", to_all, "<", 0.0),
    ]


def _entropy(x: Any) -> float:
    """Σ x ln x."""
    return float(np.sum(x * np.log(np.maximum(x, 1e-300))))
