"""Windows of a stream: what is proved there (D6, D7), and learners that do well on every one (B15, B16)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from rue.domains import Ball, Box
from rue.learners import OGD, Mixture
from rue.proofs.base import Comparison, Outcome, theorem, worst
from rue.proofs.data import hinge, in_ball
from rue.registry import make
from rue.regret import best_in_hindsight, certify
from rue.regret.certificates.evidence import open_evidence
from rue.regret.certificates.windows import changing_models, find_window
from rue.regret.risk.experts import mix
from rue.steps import Fixed
from rue.streams import Block

__all__ = ["B15", "B16", "D6", "D7"]

OURS = "none of the notes: D1 is a sum over rounds, so it holds for every stretch of them"


def _turning(rng: np.random.Generator, T: int) -> tuple[Any, Any, Any]:
    """A stream whose rule turns round in the middle, and predictions that follow it half-heartedly."""
    X = rng.normal(size=(T, 3))
    u = np.where(np.arange(T)[:, None] < T // 2, 1.0, -1.0) * np.array([1.0, -0.5, 0.2])
    y = np.sign((X * u).sum(axis=1) + 0.3 * rng.normal(size=T))
    return X, y, 0.5 * (X * u).sum(axis=1) + 0.5 * rng.normal(size=T)


@theorem(
    "certificate of a window I: with A_I = Σ_{t∈I} g_t p_t and S_I = Σ_{t∈I} g_t x_t, R_I(u) ≤ A_I − ⟨S_I, u⟩ ≤ A_I + "
    "U‖S_I‖ for every u of norm ≤ U, whatever the predictor; sums of windows add up",
    source=OURS,
)
def D6(rng: np.random.Generator) -> Outcome:
    """Windows of a stream that turns round, against the best point of each and against the sums written down."""
    T, U, true, sums, named = 400, 1.5, [], [], []
    X, y, p = _turning(rng, T)
    for r, s in [(1, T), (1, 200), (201, 400), *np.sort(rng.integers(1, T + 1, (6, 2))).tolist()]:
        found = certify(X, y, p, loss="hinge", radius=U, intercept=False, window=(r, s))
        first, last = found.window or (0, 0)
        Z, labels, scores = (array[first - 1 : last] for array in (X, y, p))
        loss = float(np.maximum(0.0, 1.0 - labels * scores).sum())
        best = best_in_hindsight(Z, labels, loss="hinge", radius=U, intercept=False)
        true += [(loss - best.value, found.alone)]
        true += [(loss - float(hinge(Z, labels, u).sum()), found.alone) for u in in_ball(rng, 3, U, 20)]
        g = np.where(labels * scores <= 1.0, -labels, 0.0)
        sums.append((found.alone, float(g @ scores) + U * float(np.linalg.norm(g @ Z))))
        named += [(float(first), float(r)), (float(s), float(last))]
    words = (
        f"Predictions for {T} rounds, after half of which the rule turns round: in nine windows no point did better "
        "than the certificate says, and it is what the window's own slopes give; the window named holds the one asked."
    )
    return words, [
        worst("true regret on a window against D6", "≤", true),
        worst("D6 against its formula", "=", sums),
        worst("the borders named hold the window asked for", "≤", named),
    ]


@theorem(
    "comparators that change: for windows I_1 … I_m and points u_1 … u_m of norm ≤ U, Σ_k R_{I_k}(u_k) ≤ A + U Σ_k "
    "‖S_{I_k}‖; with at most k changes at borders of windows the largest value over all partitions; with none it is D1",
    source=OURS,
)
def D7(rng: np.random.Generator) -> Outcome:
    """The dynamic programme against every partition, and comparators fitted to each part."""
    T, U, changes = 256, 1.5, 2
    X, y, p = _turning(rng, T)
    evidence = open_evidence(make("loss", "hinge"))
    evidence.enter(Block(X, y), p, False, 0)
    loss = float(np.maximum(0.0, 1.0 - y * p).sum())
    g = np.where(y * p <= 1.0, -y, 0.0)
    borders, true = {0, T}, list[tuple[float, float]]()
    largest: list[tuple[float, float]] = []
    for t in range(1, T + 1):
        borders.add(find_window(evidence, (t, t))[3])
    inner = sorted(borders - {0, T})
    models = changing_models(evidence, Ball(U), "raw")
    bounds = [models.certificate(k).alone for k in (0, 1, changes, len(inner))]
    for k in range(changes + 1):
        best = 0.0
        for cuts in itertools.combinations(inner, k):
            parts = [slice(a, b) for a, b in itertools.pairwise([0, *cuts, T])]
            best = max(best, sum(float(np.linalg.norm(g[part] @ X[part])) for part in parts))
        largest.append((bounds[k], max(largest[-1][1] if largest else -np.inf, float(g @ p) + U * best)))
    for cuts in [(), (T // 2,), *(tuple(sorted(rng.choice(inner, 2, replace=False).tolist())) for _ in range(8))]:
        theirs = 0.0
        for a, b in itertools.pairwise([0, *cuts, T]):
            theirs += best_in_hindsight(X[a:b], y[a:b], loss="hinge", radius=U, intercept=False).value
        true.append((loss - theirs, bounds[len(cuts)]))
    words = (
        f"A stream of {T} rounds that turns round, in {len(inner) + 1} windows: models refitted at up to {changes} "
        "borders never beat the bound, which every partition tried confirms as the largest; it grows with the changes."
    )
    return words, [
        worst("regret against models that change, against D7", "≤", true),
        worst("D7 against the largest over all partitions", "=", largest),
        worst("D7 grows with the number of changes", "≤", list(itertools.pairwise(bounds))),
        Comparison("D7 without a change against D1", bounds[0], "=", evidence.certificate(Ball(U)).alone),
    ]


def _worst_windows(losses: Any, others: Any, price: Any) -> tuple[float, float]:
    """Over all windows [r, s] and columns: the loss less the column's, and the price, where they are closest."""
    T = len(losses)
    ahead = np.cumsum(np.vstack([np.zeros(others.shape[1]), losses[:, None] - others]), axis=0)
    worst_pair, least = (0.0, 0.0), math.inf
    for r in range(1, T + 1):
        excess = (ahead[r:] - ahead[r - 1]).max(axis=1)
        left = price[r - 1 :] - excess
        s = int(np.argmin(left))
        if left[s] < least:
            worst_pair, least = (float(excess[s]), float(price[r - 1 + s])), float(left[s])
    return worst_pair


@theorem(
    "fixed share with α = 1/t: K members mixed in probability, the weights after round t are (1 − 1/(t+1))·v + "
    "1/(K(t+1)), v the updated ones: on every window [r, s] the mixture loses at most ln K + ln s more than the best "
    "member on that window; with example weights, that times the largest weight",
    source="none of the notes (Herbster and Warmuth 1998; Adamskiy, Koolen, Chernov and Vovk 2016)",
)
def B15(rng: np.random.Generator) -> Outcome:
    """All windows of streams whose leader changes, at random and against the mixture; and the learner's own mixing."""
    T, K = 240, 6
    price = math.log(K) + np.log(np.arange(1.0, T + 1.0))
    signs = np.where(rng.random(T) < 0.5, 1.0, -1.0)
    turns = np.where((np.arange(T)[:, None] // 40) % K == np.arange(K), 3.0, -3.0) * signs[:, None]
    pairs, bayes = [], []
    for P in (rng.normal(size=(T, K)) * 3.0, turns, turns + rng.normal(size=(T, K))):
        lost = np.logaddexp(0.0, -signs[:, None] * P)
        pairs.append(_worst_windows(mix(P, signs, share="1/t").losses, lost, price))
        bayes.append(_worst_windows(mix(P, signs).losses, lost, price))
    boxes = [OGD("logistic", Box([v], [v]), "fixed:1", intercept=False) for v in (2.0, -0.5, 0.0)]
    learner, X = Mixture(members=boxes), rng.normal(size=(T, 1)) * 4.0
    y = np.where(np.arange(T) // 60 % 2 == 0, 1.0, -1.0) * np.sign(X[:, 0])
    a = np.where(rng.random(T) < 0.2, 0.5, 1.0)
    losses = a * np.logaddexp(0.0, -y * learner.run(X, y, a))
    members = a[:, None] * np.logaddexp(0.0, -y[:, None] * np.clip(X * np.array([2.0, -0.5, 0.0]), -40.0, 40.0))
    pairs.append(_worst_windows(losses, members, math.log(3.0) + np.log(np.arange(1.0, T + 1.0))))
    at_most = learner._point.experts().way.price(learner._point.experts())
    words = (
        f"{K} columns of predictions for {T} rounds, at random and leading in turn, and three learners: on none of the "
        f"{T * (T + 1) // 2:,} windows is the mixture further behind the best column than the bound; plain exponential "
        f"weights are, by {max(excess - most for excess, most in bayes):.0f} nats."
    )
    return words, [
        worst("loss on a window more than the best column's, against ln K + ln s", "≤", pairs),
        Comparison("the price that a learner states", at_most, "=", math.log(3.0) + math.log(T)),
        Comparison("plain exponential weights exceed it", max(e - most for e, most in bayes), ">", 10.0),
    ]


@theorem(
    "projected OGD with fixed η has on every window R_I ≤ D²/(2η) + (η/2) Σ_{t∈I}‖g_t‖², wherever it starts; of steps "
    "a factor 4 apart one has R_I ≤ 1.25·D·G·√|I|, for every length within the grid's range",
    source="notes 002, Theorem 2.13 (its proof, begun at round r: ‖w_r − u‖ ≤ D)",
)
def B16(rng: np.random.Generator) -> Outcome:
    """All windows of linear losses that drift, turn round and are random, against the best point of each."""
    T, U = 200, 1.0
    D, pairs, grid = 2.0 * U, [], []
    drift = np.column_stack([np.cos(np.arange(T) / 25.0), np.sin(np.arange(T) / 25.0)])
    for G in (drift, np.where(np.arange(T)[:, None] < T // 2, 1.0, -1.0) * drift[:1], _unit(rng.normal(size=(T, 2)))):
        regrets = []
        for eta in D / np.sqrt(4.0 ** np.arange(0, 9, 2)):
            learner = OGD("linear", Ball(U), Fixed(float(eta)), intercept=False)
            losses = np.concatenate([[0.0], np.cumsum(learner.run(G, np.ones(T)))])
            sums, squares = (np.vstack([np.zeros(A.shape[1]), np.cumsum(A, axis=0)]) for A in (G, G * G))
            lengths = np.linalg.norm(sums[None, :, :] - sums[:, None, :], axis=2)
            regret = losses[None, :] - losses[:, None] + U * lengths
            bound = D * D / (2.0 * eta) + eta / 2.0 * (squares.sum(axis=1)[None, :] - squares.sum(axis=1)[:, None])
            late = np.triu(np.ones((T + 1, T + 1), dtype=bool), 1)
            closest = np.argmin((bound - regret)[late])
            pairs.append((float(regret[late][closest]), float(bound[late][closest])))
            regrets.append(regret)
        size = np.arange(T + 1)[None, :] - np.arange(T + 1)[:, None]
        least, most = np.min(regrets, axis=0)[size > 0], 1.25 * D * np.sqrt(size[size > 0])
        closest = np.argmin(most - least)
        grid.append((float(least[closest]), float(most[closest])))
    words = (
        f"Linear losses that go round, turn about and are random: on none of the {T * (T + 1) // 2:,} windows does a "
        "fixed step have more regret than the bound, and of five steps, a factor 4 apart, one is good for every length."
    )
    return words, [
        worst("regret of a fixed step on a window against B16", "≤", pairs),
        worst("regret of the best step of the grid on a window", "≤", grid),
    ]


def _unit(G: Any) -> Any:
    """Rows of norm 1."""
    return G / np.linalg.norm(G, axis=1, keepdims=True)
