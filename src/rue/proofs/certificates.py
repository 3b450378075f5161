"""D1 to D5: certificates, each compared with the regret that it bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.domains import Ball
from rue.games import NumberGuessing, play
from rue.learners import OGD, SVM, FollowTheLeader
from rue.proofs.base import Comparison, theorem, worst
from rue.proofs.data import classes, hinge, in_ball, streams
from rue.regret import best_in_hindsight, certify, hindsight_path
from rue.runs.learn import learn
from rue.steps import Sqrt

__all__ = ["D1", "D2", "D3", "D4", "D5"]

Outcome = tuple[str, list[Comparison]]
"""What was done, in words, and what was compared."""
OURS = "none of the notes: from convexity, notes 000, inequality (2), and 002, 'From Convex Losses to Linear Losses'"


@theorem(
    "one pass, every radius at once, any predictor: with A = Σ g_t p_t and S = Σ g_t x_t, R_T(K) ≤ A + h_K(−S), which "
    "is A + U‖S‖ on the ball; it adds over shards",
    source=OURS,
)
def D1(rng: np.random.Generator) -> Outcome:
    """Predictions that no linear model makes, many radii; OGD's own against B3; two halves merged."""
    radii, pairs, below = [0.5, 2.0, 10.0], [], []
    for X, y in streams(rng, 300):
        p = np.sin(5.0 * X[:, 0]) + rng.normal(size=300)
        loss = float(np.maximum(0.0, 1.0 - y * p).sum())
        for U, best in zip(radii, hindsight_path(X, y, radii, loss="hinge", intercept=False), strict=True):
            pairs.append((loss - best.value, certify(X, y, p, loss="hinge", radius=U, intercept=False).alone))
        run = learn(X, y, learner=OGD("hinge", "ball:2", Sqrt(2.0 * math.sqrt(2.0)), intercept=False))
        below.append((run.certificate().alone, 2.0 * math.sqrt(8.0 * 300)))
    halves = [learn(X[part], y[part], learner=run.learner) for part in (slice(150), slice(150, 300))]
    merged = halves[0].evidence.merged(halves[1].evidence).certificate(Ball(2.0)).alone
    p = np.concatenate([half.predictions for half in halves])
    g = np.where(y * p <= 1.0, -y, 0.0)
    words = (
        "Predictions sin(5x_1) plus noise on five streams of 300 examples: at every radius the certificate is above "
        "the true regret; OGD's own is below B3; and the sums of two halves, learnt apart, add up to those of the "
        "whole."
    )
    return words, [
        worst("true regret against D1", "≤", pairs),
        worst("D1 of OGD against B3", "≤", below),
        Comparison("D1 of two halves merged", merged, "=", float(g @ p) + 2.0 * float(np.linalg.norm(g @ X))),
    ]


@theorem(
    "strongly convex rounds, the regulariser (λ/2)‖w‖² written apart: A_0 − ⟨S_0, u*⟩ + ½(q − B‖u*‖²) with B = λT, "
    "q = λΣ‖w_t‖², u* = Π_K(−S_0/B); D2 ≤ min(D1, B8), and for squares followed by the leader it is the true regret",
    source=OURS + "; strong convexity as in notes 000, inequality (9)",
)
def D2(rng: np.random.Generator) -> Outcome:
    """SVMs between the true regret and D1 and B8, and the leader's exact regret."""
    T, lambda_, true, d1, b8, every = 300, 0.1, [], [], [], []
    K = Ball(1.0 / math.sqrt(lambda_))
    for X, y in streams(rng, T):
        run = learn(X, y, learner=SVM(lambda_, intercept=False))
        value = run.certificate(domain=K).alone
        total = run.loss + run.learner.penalty
        true.append(
            (total - best_in_hindsight(X, y, loss="hinge", domain=K, lambda_=lambda_, intercept=False).value, value)
        )
        g, W = np.where(y * run.predictions <= 1.0, -y, 0.0), _svm_points(X, y, lambda_)
        full = g[:, None] * X + lambda_ * W
        d1.append((value, float((full * W).sum()) + K.radius * float(np.linalg.norm(full.sum(axis=0)))))
        b8.append((value, float(((full**2).sum(axis=1) / np.arange(1, T + 1)).sum()) / (2.0 * lambda_)))
        A, S, q = float(g @ run.predictions), g @ X, lambda_ * float((W**2).sum())
        every += [
            (A - float(S @ u) + 0.5 * (q - lambda_ * T * float(u @ u)), value)
            for u in in_ball(rng, X.shape[1], K.radius, 30)
        ]
    game = play(FollowTheLeader("square", "interval:0,1"), NumberGuessing(), T, seed=int(rng.integers(1 << 30)))
    w, g = game.points[:, 0], game.gradients[:, 0]
    u = float(np.clip((2.0 * w.sum() - g.sum()) / (2.0 * T), 0.0, 1.0))
    leader = float(g @ (w - u)) - float(((w - u) ** 2).sum())  # the general form, σ_t = 2
    words = (
        f"The SVM learnt five hostile streams of {T} examples: true regret ≤ D2 ≤ D1 and B8, and D2 is the largest "
        "value of its formula over K. Of the leader's guesses of random numbers D2 is the regret itself."
    )
    return words, [
        worst("true regret against D2", "≤", true),
        worst("D2 against D1", "≤", d1),
        worst("D2 against B8", "≤", b8),
        worst("the formula at other u against D2", "≤", every),
        Comparison("D2 of the leader against its regret", leader, "=", float(game.regret or math.nan)),
    ]


def _svm_points(X: Any, y: Any, lambda_: float) -> Any:
    w, points = np.zeros(X.shape[1]), []
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        points.append(w)
        hit = label if label * float(x @ w) <= 1.0 else 0.0
        w = (1.0 - 1.0 / t) * w + hit / (lambda_ * t) * x
    return np.array(points)


@theorem(
    "witnesses: every learner on the same stream proves that no point of K lost less than c_i − h_K(−S_i), c_i = Σℓ − "
    "A_i; the largest of these, and of their mixtures, certifies all the others",
    source=OURS,
)
def D3(rng: np.random.Generator) -> Outcome:
    """A learner on a ball far too large, with witnesses on the right one."""
    U, true, better, lower = 1.5, [], [], []
    for X, y in streams(rng, 400):
        learner = OGD("hinge", "ball:20", Sqrt(5.0), intercept=False)
        run = learn(X, y, learner=learner, witnesses=[U])
        certificate = run.certificate(radius=U)
        best = best_in_hindsight(X, y, loss="hinge", radius=U, intercept=False)
        true.append((run.loss - best.value, certificate.regret_at_most))
        better.append((certificate.regret_at_most, certificate.alone))
        lower.append((certificate.comparator_loss_at_least, best.value))
    gained = 1.0 - np.mean([(a - b) / (c - b) for (b, a), (_, c) in zip(true, better, strict=True)])
    words = (
        "OGD on a ball of radius 20 is certified at radius 1.5 beside six witnesses: the certificate stays above the "
        f"true regret, and the witnesses close {gained:.0%} of its distance to it on average."
    )
    return words, [
        worst("true regret against D3", "≤", true),
        worst("D3 against D1 alone", "≤", better),
        worst("what was proved about the best point, against its loss", "≤", lower),
        Comparison("share of the distance that the witnesses close", float(gained), ">", 0.1),
    ]


@theorem(
    "curvature for square loss: Σ x xᵀ gives the exact regret in one pass",
    source=OURS,
)
def D4(rng: np.random.Generator) -> Outcome:
    """Against the minimum over the ball by eigenvalues."""
    exact, below = [], []
    for X, y in streams(rng, 300):
        y = y + 0.3 * rng.normal(size=300)
        p = rng.normal(size=300)
        for U in (0.2, 1.0, 50.0):
            certificate = certify(X, y, p, loss="square", radius=U, intercept=False, curvature=True)
            exact.append((certificate.regret_at_most, float(((p - y) ** 2).sum()) - _least_squares(X, y, U)))
            below.append((certificate.regret_at_most, certificate.alone))
    words = (
        "Random predictions for five streams of 300 examples, three radii: with curvature the certificate is the "
        "regret, computed apart by eigenvalues, and never above D1."
    )
    return words, [worst("D4 against the true regret", "=", exact), worst("D4 against D1", "≤", below)]


def _least_squares(X: Any, y: Any, U: float) -> float:
    """min Σ(⟨u, x_t⟩ − y_t)² over ‖u‖ ≤ U: by bisection on the multiplier, in the eigenvectors of XᵀX."""
    values, vectors = np.linalg.eigh(X.T @ X)
    b = vectors.T @ (X.T @ y)
    low, high = 0.0, float(np.linalg.norm(b)) / U
    if float(np.linalg.norm(b / np.maximum(values, 1e-12))) <= U:
        high = 0.0
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if float(np.linalg.norm(b / (values + middle))) > U else (low, middle)
    u = vectors @ (b / np.maximum(values + high, 1e-12))
    return float(((X @ u - y) ** 2).sum())


@theorem(
    "hindsight: the best point with a certified gap; for smooth losses F(u) − F* ≤ ⟨∇F(u), u⟩ + h_K(−∇F(u)); for the "
    "hinge F* ≥ Σα_t − h_K(Σα_t y_t x_t), α ∈ [0, 1]^T, of which D1's lower bound is one; regret is an interval, true "
    "regret ≤ hi ≤ D1",
    source=OURS,
)
def D5(rng: np.random.Generator) -> Outcome:
    """Against descent of one's own, the gap's formula, and D1's dual value."""
    U, T = 2.0, 200
    X, y = classes(rng, T)
    best = best_in_hindsight(X, y, loss="logistic", radius=U, intercept=False, tolerance=1e-9)
    lowest = _logistic_descent(X, y, U)
    gradient = X.T @ (-y / (1.0 + np.exp(y * (X @ best.point))))
    gap = float(gradient @ best.point) + U * float(np.linalg.norm(gradient))
    chain, dual, duals = [], [], []
    for Z, labels in streams(rng, T):
        run = learn(Z, labels, learner=OGD("hinge", f"ball:{U}", Sqrt(1.0), intercept=False))
        hindsight = best_in_hindsight(Z, labels, loss="hinge", radius=U, intercept=False)
        chain += [
            (hindsight.at_least, hindsight.value),
            (run.loss - hindsight.value, run.certificate().alone),
            (hindsight.value, float(min(hinge(Z, labels, u).sum() for u in in_ball(rng, 4, U, 100)))),
        ]
        alpha = np.where(labels * run.predictions <= 1.0, 1.0, 0.0)
        dual.append((alpha.sum() - U * np.linalg.norm((alpha * labels) @ Z), run.loss - run.certificate().alone))
        duals += [(float(a.sum() - U * np.linalg.norm((a * labels) @ Z)), hindsight.value) for a in rng.random((20, T))]
    words = (
        f"The least logistic loss of {T} examples in a ball lies in the interval found, as 4000 steps of descent of "
        "its own agree; for the hinge the interval lies between every dual value and every point's loss, and D1's "
        "bound is a dual value."
    )
    return words, [
        Comparison("lower end, against descent", best.at_least, "≤", lowest),
        Comparison("upper end, against descent", best.value, "≤", lowest * (1.0 + 1e-9)),
        Comparison("the interval's width, against the gap's formula", best.gap, "≤", gap + 1e-9 * best.value),
        worst("hinge: lo ≤ hi, regret ≤ D1, and hi ≤ the loss of any point", "≤", chain),
        worst("the dual value at the online slopes, against D1's bound", "=", dual),
        worst("other dual values, against hi", "≤", duals),
    ]


def _logistic_descent(X: Any, y: Any, U: float) -> float:
    """The least logistic loss over the ball by projected gradients of step 1/β, β = λ_max(XᵀX)/4."""
    u, eta = np.zeros(X.shape[1]), 4.0 / float(np.linalg.eigvalsh(X.T @ X)[-1])
    for _ in range(4000):
        u = u + eta * (X.T @ (y / (1.0 + np.exp(y * (X @ u)))))
        u = u * min(1.0, U / max(float(np.linalg.norm(u)), 1e-300))
    return float(np.logaddexp(0.0, -y * (X @ u)).sum())
