"""P1 to P6: the steps of the proofs, on real runs: one round, its telescoping sum, and the Perceptron's mistakes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.learners import OGD, SVM, Perceptron
from rue.proofs.base import Comparison, Outcome, theorem, worst
from rue.proofs.data import descent, hinge, in_ball, streams
from rue.regret import Telescope, bounds, perceptron_bound
from rue.runs.learn import learn
from rue.runs.replay import trace
from rue.steps import Fixed, Sqrt

__all__ = ["P1", "P2", "P3", "P4", "P5", "P6"]


def _slope(p: float, y: float) -> float:
    """The hinge's."""
    return -y if y * p <= 1.0 else 0.0


def _pairs(proof: Telescope, below: str, above: str, less: str = "") -> Any:
    """Two terms, round by round."""
    return zip(proof[below], proof[above] - (proof[less] if less else 0.0), strict=True)


@theorem(
    "one round of A3: ℓ_t(w_t) − ℓ_t(u) ≤ ⟨g_t, w_t − u⟩ = −(1/η_t)⟨w'_{t+1} − w_t, w_t − u⟩ = (‖w_t − u‖² − ‖w'_{t+1} "
    "− u‖² + ‖w'_{t+1} − w_t‖²)/(2η_t) ≤ (‖w_t − u‖² − ‖w_{t+1} − u‖²)/(2η_t) + (η_t/2)‖g_t‖² for every u ∈ K",
    source="notes 002, Lemma 2.23; 000, equations (3) to (6); 003, equations (2) to (5); 004, equation (1); 001, "
    "section 15.3",
    misprint="004 has w'_{t+1} − w_t = η_t∇ℓ_t(w_t): a minus is missing, and with it the first equality would give "
    "−⟨g_t, w_t − u⟩. 002 writes η in the step: it is η_t.",
)
def P1(rng: np.random.Generator) -> Outcome:
    """On five streams, against points inside and on the surface of the ball, beside the terms written out."""
    T, U = 200, 0.8
    convex, equal, projected, reference, flipped = [], [], [], [], []
    lemma: list[tuple[float, float]] = []
    for X, y in streams(rng, T):
        recorded = trace(OGD("hinge", f"ball:{U}", Sqrt(0.7), intercept=False), X, y, points=True)
        _, W = descent(X, y, _slope, lambda t: 0.7 / math.sqrt(t), U)
        g = np.array([_slope(float(x @ w), label) for x, w, label in zip(X, W, y, strict=True)])[:, None] * X
        for u in in_ball(rng, X.shape[1], U, 3):
            proof = recorded.telescope(u)
            convex += _pairs(proof, "regret", "linear")
            equal += _pairs(proof, "linear", "unprojected")
            projected += _pairs(proof, "unprojected", "projected")
            lemma += zip(
                proof["projected"],
                (proof["distance"] - proof["next_distance"]) / (2.0 * proof["eta"]) + proof["gradient"],
                strict=True,
            )
            written = {
                "distance": ((W - u) ** 2).sum(axis=1),
                "linear": ((W - u) * g).sum(axis=1),
                "gradient": 0.35 / np.sqrt(np.arange(1, T + 1)) * (g**2).sum(axis=1),
                "regret": _hinge_at(X, y, W) - hinge(X, y, u),
            }
            reference += [(float(np.abs(proof[name] - values).max()), 1e-9) for name, values in written.items()]
            flipped.append(float(np.abs(2.0 * proof["linear"]).max()))
    words = (
        f"OGD learnt five streams of {T} examples on a ball that it left often; in every round and against 15 points "
        "the chain of (in)equalities held, and its terms are those of the rule written out. With the sign as printed "
        f"in 004 the first equality would be off by up to {max(flipped):.2g}."
    )
    return words, [
        worst("ℓ_t(w_t) − ℓ_t(u) against ⟨g_t, w_t − u⟩", "≤", convex),
        worst("⟨g_t, w_t − u⟩ against the distances before the projection", "=", equal),
        worst("those against the distances after it", "≤", projected),
        worst("the form of Lemma 2.23", "=", lemma),
        worst("largest difference from the terms written out", "≤", reference),
        Comparison("how far off the printed w' − w = η∇ℓ is", max(flipped), ">", 1e-3),
    ]


def _hinge_at(X: Any, y: Any, W: Any) -> Any:
    """[1 − y_t⟨w_t, x_t⟩]₊ at the points played."""
    return np.maximum(0.0, 1.0 - y * (W * X).sum(axis=1))


@theorem(
    "the sum of P1 telescopes: R_T(u) ≤ ‖w_1 − u‖²/(2η_1) − ‖w_{T+1} − u‖²/(2η_{T+1}) + ½Σ ‖w_{t+1} − u‖²(1/η_{t+1} − "
    "1/η_t) + ½Σ ‖w'_{t+1} − w_t‖²/η_t, with equality for linear losses as long as nothing is projected; hence B6 and, "
    "on the ball, B3",
    source="notes 000, equation (7); 003, equation (6); 004, equation (2); 001, section 15.3",
    misprint="001 has the sign of 1/η_{t−1} − 1/η_t in one line: as printed the sum is smaller than the regret of "
    "linear losses.",
)
def P2(rng: np.random.Generator) -> Outcome:
    """Hinge losses on a ball, and linear losses in a ball that is never left."""
    T, U, below, total, allowed = 200, 0.8, [], [], []
    for X, y in streams(rng, T):
        recorded = trace(OGD("hinge", f"ball:{U}", Sqrt(0.7), intercept=False), X, y, points=True)
        b6 = next(one.value for one in bounds(recorded) if (one.theorem, one.form) == ("B6", "data"))
        for u in in_ball(rng, X.shape[1], U, 5):
            proof = recorded.telescope(u)
            right = sum(proof.pieces.values())
            below += [(proof.regret, right), (right, proof.bound)]
            total.append((right, proof.sum("telescoping") + proof.sum("common") + proof.sum("gradient")))
            allowed.append((proof.bound, b6))
    G = rng.normal(size=(T, 3))
    G /= np.linalg.norm(G, axis=1, keepdims=True)
    proof = trace(OGD("linear", "ball:40", Sqrt(0.5), intercept=False), G, np.ones(T), points=True).telescope(
        in_ball(rng, 3, 40.0, 1)[0]
    )
    pieces = proof.pieces
    printed = sum(pieces.values()) - 2.0 * pieces["drift"]
    words = (
        f"On five streams the regret of OGD against 25 points is at most the four sums, which are at most B6. Of {T} "
        f"linear losses in a ball that is never left the regret, {proof.regret:.4g}, is the four sums, and above "
        f"{printed:.4g}, which they are with the sign as printed in 001."
    )
    return words, [
        worst("R_T(u) against the sums, and these against the bound", "≤", below),
        worst("the pieces against the sums of the terms", "=", total),
        worst("the bound against B6", "≤", allowed),
        Comparison("regret of linear losses against the sums", proof.regret, "=", sum(pieces.values())),
        Comparison("the same against the sums as printed in 001", proof.regret, ">", printed),
    ]


@theorem(
    "for σ-strongly convex losses P1 has −(σ/2)‖w_t − u‖² on its right side; with η_t = 1/(σt) every distance but the "
    "last cancels: R_T(u) ≤ ½Σ η_t‖g_t‖² − (σT/2)‖w_{T+1} − u‖², hence B8",
    source="notes 000, 003 and 004, 'OGD with strongly convex losses'; 001, section 15.3; 002, Theorem 4.7",
    misprint="001 prints a line with (1/(2η_t) − α/2)[‖w_t − u*‖² − ‖w_{t+1} − u*‖²/(2η_t)]: only the first distance "
    "has that factor. 004 prints 1/η − σ: it is 1/η_1 − σ.",
)
def P3(rng: np.random.Generator) -> Outcome:
    """The SVM, whose losses have σ = λ."""
    T, lambda_, convex, total, allowed, printed = 200, 0.1, [], [], [], []
    for X, y in streams(rng, T):
        recorded = trace(SVM(lambda_, intercept=False), X, y, points=True)
        b8 = next(one.value for one in bounds(recorded) if (one.theorem, one.form) == ("B8", "data"))
        for u in in_ball(rng, X.shape[1], 3.0, 5):
            proof = recorded.telescope(u)
            convex += _pairs(proof, "regret", "linear", "curvature")
            last = 0.5 * lambda_ * T * float(((recorded.points[-1] - u) ** 2).sum())
            right = proof.sum("projected") - proof.sum("curvature")
            total += [(right, proof.sum("gradient") - last)]
            allowed += [(proof.regret, right), (proof.bound, b8)]
            half = 0.5 / proof["eta"]
            bracket = (half - 0.5 * lambda_) * (proof["distance"] - half * proof["next_distance"])
            printed.append((proof.regret, proof.sum("gradient") + float(bracket.sum())))
    refuted = max(printed, key=lambda pair: pair[0] - pair[1])
    words = (
        f"The SVM with λ = {lambda_:g} learnt five streams of {T} examples: against 25 points every round has the "
        "curvature's part, the distances cancel but for the last, and what is left is B8. The "
        "sum with the bracket as printed in 001 is less than a regret."
    )
    return words, [
        worst("R_T(u) against what is left, and the bound against B8", "≤", allowed),
        worst("ℓ_t(w_t) − ℓ_t(u) against ⟨g_t, w_t − u⟩ − (σ/2)‖w_t − u‖²", "≤", convex),
        worst("the sum against ½Σ η_t‖g_t‖² − (σT/2)‖w_{T+1} − u‖²", "=", total),
        Comparison("a regret against the sum as printed in 001", refuted[0], ">", refuted[1]),
    ]


def _mistakes(rng: np.random.Generator, eta: float = 1.0) -> Any:
    """Runs of the Perceptron on five streams, as proofs against several u, with the stream."""
    for X, y in streams(rng, 300):
        recorded = trace(Perceptron(eta, intercept=False), X, y, points=True)
        for u in (None, *in_ball(rng, X.shape[1], 3.0, 10)):
            yield X, y, recorded.mistake_proof(u)


@theorem(
    "the Perceptron after M mistakes, in rounds t_1, …, t_M: ‖w_M‖ ≤ X√M and ⟨w_M, u⟩ ≥ M − Σ_{i≤M} h_{t_i}(u), so M ≤ "
    "Σ_{i≤M} h_{t_i}(u) + ‖u‖X√M for every u, with the hinge loss h of u over mistakes only",
    source="notes 000, equation (1) and the displays before it",
    misprint="000 prints ‖w_M‖‖u‖ ≥ M + Σ[…]₊ and X = max_{t≤m}: it is M − Σ[…]₊ and max_{t≤T}.",
)
def P4(rng: np.random.Generator) -> Outcome:
    """Mistake by mistake, beside the Perceptron written out."""
    pairs: dict[str, list[tuple[float, float]]] = {"size": [], "inner": [], "allowed": []}
    reference, printed = [], []
    for X, y, proof in _mistakes(rng):
        w, M = np.zeros(X.shape[1]), 0
        for x, label in zip(X, y, strict=True):
            if label * float(x @ w) <= 0.0:
                w, M = w + label * x, M + 1
                reference.append((abs(float(proof["norm"][M - 1]) - float(np.linalg.norm(w))), 1e-9))
        reference.append((abs(float(M - proof.M)), 0.0))
        i = np.arange(1.0, M + 1.0)
        pairs["size"] += zip(proof["norm"], proof["norm_most"], strict=True)
        pairs["inner"] += zip(proof["inner"], proof["inner_least"], strict=True)
        pairs["allowed"] += zip(i, proof["allowed"], strict=True)
        size, H = float(np.linalg.norm(proof.u)), float(hinge(X, y, proof.u).sum())
        pairs["allowed"].append((proof.value, H + size * float(np.linalg.norm(X, axis=1).max()) * M**0.5))
        printed.append((float(proof["norm"][-1]) * size, M + proof.sum("hinge")))
    words = (
        "The Perceptron learnt five streams of 300 examples. After each of its mistakes and for 11 u each, ‖w‖ is at "
        "most X√M, ⟨w, u⟩ at least M less u's hinge losses in those rounds, and so M obeys the bound; the points are "
        "those of the rule written out. As printed, with a plus, the second step fails."
    )
    refuted = min(printed, key=lambda pair: pair[0] - pair[1])
    return words, [
        worst("M, and the bound over mistakes against that over all rounds", "≤", pairs["allowed"]),
        worst("‖w_i‖ against X√i", "≤", pairs["size"]),
        worst("⟨w_i, u⟩ against i − Σh", "≥", pairs["inner"]),
        worst("difference from the rule written out", "≤", reference),
        Comparison("‖w_M‖‖u‖ against the printed M + Σh", refuted[0], "<", refuted[1]),
    ]


@theorem(
    "the same by P2 on the rounds with a mistake: M_T ≤ Σ h_t(u) + ‖u‖²/(2η) + ηX²M_T/2 for every η > 0 and u; with η "
    "= ‖u‖/(X√M_T), which the proof may choose since predictions do not depend on η, M_T ≤ Σ h_t(u) + ‖u‖X√M_T, hence "
    "B1",
    source="notes 003, after equation (9); 004, after equation (4)",
    misprint="004 sets X = max‖∇h_t(w_t)‖: X = max‖x_t‖ ≥ it. 003 counts 1{… < 0} in one sum: it is ≤ 0 throughout.",
)
def P5(rng: np.random.Generator) -> Outcome:
    """Many steps, the best of them, and a Perceptron that runs with it."""
    every, least, solved, moved = [], [], [], []
    for X, y, proof in _mistakes(rng):
        size = float(np.linalg.norm(proof.u))
        for eta in 2.0 ** rng.uniform(-6.0, 3.0, size=5):
            every.append((float(proof.M), proof.with_step(float(eta))))
            least.append((proof.with_step(proof.best_step) if size else proof.value, proof.with_step(float(eta))))
        H, a = float(hinge(X, y, proof.u).sum()), size * proof.X
        solved.append((float(proof.M), H + a * a / 2.0 + a * math.sqrt(H + a * a / 4.0)))
        if size:
            least.append((proof.with_step(proof.best_step), proof.value))
            again = learn(X, y, learner=Perceptron(2.0 ** round(math.log2(proof.best_step)), intercept=False))
            moved.append((float(again.mistakes or 0), float(proof.M)))
    X, y = streams(rng, 300)[0]
    best = perceptron_bound(X, y, intercept=False)
    words = (
        "On five streams and for 11 u each the Perceptron's mistakes obey the bound for five random η and for the "
        "best, which makes it P4's; solved for M it is B1. Run with (the power of two next to) that η, the Perceptron "
        "makes the same mistakes."
    )
    return words, [
        worst("mistakes for every η", "≤", every),
        worst("the bound at the best η against other η and P4's", "≤", least),
        worst("mistakes against the bound solved for M", "≤", solved),
        worst("mistakes with that η against those with η = 1", "=", moved),
        Comparison("‖u‖ of the best u, which is not 0", float(np.linalg.norm(best.comparator)), ">", 0.0),
    ]


@theorem(
    "the Perceptron is OGD for the hinge loss times 1{error}: w_{t+1} = w_t − η∇h_t(w_t)·1{y_t⟨w_t, x_t⟩ ≤ 0} = w_t + "
    "η y_t x_t 1{y_t⟨w_t, x_t⟩ ≤ 0}; and OGD for [−y⟨w, x⟩]₊, which is no upper bound of the 0-1 loss",
    source="notes 003, equations (8) and (9) and Figure 1; 004, equation (4)",
    misprint="003 writes the mistakes that are bounded as 1{… < 0} in one sum: it is ≤ 0 throughout.",
)
def P6(rng: np.random.Generator) -> Outcome:
    """OGD for the hinge loss that learns the rounds with an error alone; written out; and without the indicator."""
    same, reference, other, eta = [], [], [], 0.25
    for X, y in streams(rng, 300):
        run = trace(Perceptron(eta, intercept=False), X, y, points=True)
        errors = (y * run.predictions <= 0.0).astype(np.float64)
        on_errors, as_loss, everywhere = (
            learn(X, y, learner=OGD(loss, "reals", Fixed(eta), intercept=False), weights=weights).predictions
            for loss, weights in (("hinge", errors), ("perceptron", None), ("hinge", None))
        )
        w, points = np.zeros(X.shape[1]), []
        for x, label in zip(X, y, strict=True):
            points.append(w)
            z = label * float(x @ w)
            w = w - eta * (-label * x * (z <= 1.0)) * (z <= 0.0)
        same += [(float(np.abs(p - run.predictions).max()), 0.0) for p in (on_errors, as_loss)]
        reference.append((float(np.abs(run.points - [*points, w]).max()), 1e-12))
        other.append(float(np.abs(everywhere - run.predictions).max()))
    z = np.linspace(-2.0, 2.0, 401)
    gap = float((np.maximum(0.0, -z) - (z <= 0.0)).min())
    above = float((np.maximum(0.0, 1.0 - z) - (z <= 0.0)).min())
    words = (
        "OGD for the hinge loss that learns only the rounds in which the Perceptron errs, and OGD for the perceptron "
        "loss, predict what the Perceptron predicts, to the last bit, on five streams of 300 examples; without the "
        f"indicator they differ. [−z]₊ falls short of 1{{z ≤ 0}} by up to {-gap:.2g}; the hinge never does."
    )
    return words, [
        worst("largest difference of predictions", "≤", same),
        worst("largest difference of points from the rule written out", "≤", reference),
        Comparison("hinge OGD without the indicator differs by", min(other), ">", 1e-3),
        Comparison("least of [−z]₊ − 1{z ≤ 0}", gap, "<", 0.0),
        Comparison("least of [1 − z]₊ − 1{z ≤ 0}", above, "≥", 0.0),
    ]
