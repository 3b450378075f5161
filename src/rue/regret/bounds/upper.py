"""Upper bounds on regret and mistakes (docs/theory.md, B1 to B10 and that of A10), each with its assumptions checked.

>>> import rue
>>> X, y = rue.census()
>>> run = rue.learn(X, y, learner=rue.OGD("hinge", "ball:10"))
>>> for bound in bounds(rue.trace(run, X, y)):
...     print(bound.theorem, bound.form, round(bound.value), bound.met)
B3 worst case 24210 True
B6 data 15822 True
B6 worst case 24170 True
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from rue.regret.bounds.facts import Facts, reach
from rue.regret.bounds.perceptron import mistake_bound, separation_bound
from rue.regret.bounds.statement import ROUNDING, Assumption, Bound, at_most
from rue.regret.bounds.trace import Trace, is_perceptron

__all__ = ["bounds", "regret_bounds"]


def bounds(trace: Trace, *, regret: float | None = None, radius: float | None = None) -> list[Bound]:
    """The theorems about this learner, with their assumptions checked on this run.

    For the Perceptron these are its bounds on mistakes alone (B1, B2), unless a `radius` asks for regret too.

    `regret` is what the bounds are compared with, when it is known: the regret of the rounds' losses (with weights and
    regulariser) against the domain. On an unbounded domain `radius` says against which u: those of norm ≤ radius in it.

    Which theorems those are follows from facts that the algorithm and its step declare (`family`, `rule`). For a step
    of your own there are only the theorems of any non-increasing step, for an algorithm of your own none.

    >>> import rue
    >>> X, y = rue.census()
    >>> run = rue.learn(X, y, learner=rue.Perceptron())
    >>> [(bound.theorem, bound.met) for bound in bounds(rue.trace(run, X, y))]
    [('B1', True), ('B2', False)]

    docs/theory.md, section 4.
    """
    listed = _mistakes(trace) if is_perceptron(trace.algorithm) else []
    return listed if listed and radius is None else listed + regret_bounds(trace, regret=regret, radius=radius)


def regret_bounds(trace: Trace, *, regret: float | None = None, radius: float | None = None) -> list[Bound]:
    """The bounds on regret, of the Perceptron too; without those on mistakes, which need a search.

    They are cheap enough to ask for every prefix of a run.
    """
    if trace.algorithm.family == "diagonal":
        return [_diagonal(trace, regret)]
    if trace.algorithm.family == "leader":
        return _leader(trace)
    if trace.step is None:
        return []
    facts = Facts(trace, regret, radius)
    step = trace.step
    if step.rule == "fixed" or (step.rule == "derived" and step.T > 0.0):
        return _fixed(facts)
    if step.rule == "strong":
        return _strong(facts)
    if step.rule == "adaptive":
        return [_norm(facts), _decreasing(facts, False)]
    return [*_root(facts), _decreasing(facts, False), _decreasing(facts, True), *_tuned_root(facts)]


def _mistakes(trace: Trace) -> list[Bound]:
    """B1 and B2, the Perceptron's bounds on mistakes, which hold for examples of one weight."""
    met = [Assumption("rounds before this run", 0, trace.before, trace.before == 0)]
    low, high = (float(end(trace.weights)) if trace.T else 1.0 for end in (np.min, np.max))
    if low != high:
        met.append(Assumption("weights", "all equal", f"{low:g} to {high:g}", False))
    first = mistake_bound(trace.features, trace.labels, trace.mistakes, *met)
    guess = first.comparator
    return [first, separation_bound(trace.features, trace.labels, trace.mistakes, *met, guess=guess)]


def _fixed(facts: Facts) -> list[Bound]:
    """B5, and B6 too where the fixed step uses a running maximum of ‖x‖, so that it may decrease."""
    trace, reach, total = facts.trace, facts.reach, facts.total
    eta = float(facts.etas[-1]) if facts.etas.size else math.inf
    constant = bool(np.all(facts.etas == eta))
    fixed = Assumption("η", "the same in every round", "so" if constant else "not so", constant)
    G, met = facts.gradients()
    most = float(G.max(initial=0.0))
    listed = [
        facts.bound(
            "B5",
            "data",
            reach**2 / (2.0 * eta) + (0.5 * eta * total if total else 0.0),
            "R_T ≤ ‖u − w_1‖²/(2η) + (η/2) Σ‖g_t‖²",
            facts.comparators(),
            fixed,
            **{"‖u − w_1‖": reach, "η": eta, "Σ‖g_t‖²": total},
        ),
        facts.bound(
            "B5",
            "worst case",
            reach**2 / (2.0 * eta) + (0.5 * eta * most**2 * trace.T if total else 0.0),
            "R_T ≤ ‖u − w_1‖²/(2η) + (η/2) G²T",
            facts.comparators(),
            fixed,
            *met,
            **{"‖u − w_1‖": reach, "η": eta, "G": most, "T": trace.T},
        ),
    ]
    asked = trace.algorithm.step
    if asked.rule == "horizon" and facts.bounded:
        ball = trace.domain.as_ball(trace.coordinates) is not None
        length = facts.D / (2.0 if ball else 1.0)
        name = "U" if ball else "D"
        rounds = Assumption.limit("T", asked.T, trace.T)
        near = Assumption.limit("‖u − w_1‖", length, reach)
        listed.append(
            facts.bound(
                "B5",
                "tuned",
                length * most * math.sqrt(asked.T),
                f"R_T ≤ {name}·G·√T",
                rounds,
                near,
                fixed,
                *met,
                **{name: length, "G": most, "T": asked.T},
            )
        )
    if trace.step.rule == "derived":
        listed += [_decreasing(facts, False), _decreasing(facts, True)]
    return listed


def _decreasing(facts: Facts, worst: bool) -> Bound:
    """B6: R_T ≤ D²/(2η_T) + ½ Σ η_t‖g_t‖²; with `worst`, with the bounds G_t in the place of the gradients."""
    trace, D = facts.trace, facts.D
    rising = facts.etas[1:] > facts.etas[:-1] * (1.0 + 1e-15)
    words = f"higher in {int(rising.sum())} rounds than before" if rising.any() else "so"
    if D > 0.0 and not np.all(facts.etas > 0.0):
        words = "0 in some round"
    steps = Assumption("η_t", "positive and non-increasing", words, words == "so")
    met: tuple[Assumption, ...] = (facts.diameter(), steps)
    constants = {"D": D, "η_T": 1.0 / facts.last if facts.last else math.inf}
    squares, sum_of = trace.gradient_squares, "Σ η_t‖g_t‖²"
    if worst:
        G, more = facts.gradients()
        squares, sum_of, met = G**2, "Σ η_t G_t²", met + more
        constants["G"] = float(G.max(initial=0.0))
    weighted_squares = float((trace.etas * squares).sum())
    # `facts.last` is 1/η_T
    value = (D**2 * facts.last / 2.0 if facts.bounded else math.inf) + 0.5 * weighted_squares
    constants[sum_of] = weighted_squares
    form = "worst case" if worst else "data"
    return facts.bound("B6", form, value, f"R_T ≤ D²/(2η_T) + ½ {sum_of}", *met, **constants)


def _root(facts: Facts) -> list[Bound]:
    """B3 on a ball with η/√t, and B4 for square loss."""
    trace, step = facts.trace, facts.trace.step
    ball = trace.domain.as_ball(trace.coordinates)
    if step.rule not in ("sqrt", "derived") or ball is None:
        return []
    U, T = float(ball[1]), trace.T

    def value(eta: float, G: float) -> float:
        return (2.0 * U**2 / eta + G**2 * eta) * math.sqrt(T)

    each, met = facts.gradients()
    G = float(each.max(initial=0.0))
    eta = step.value if step.rule == "sqrt" else (step.scale / G if G else math.inf)
    listed = [
        facts.bound(
            "B3",
            "worst case",
            value(eta, G) if G else 0.0,
            "R_T ≤ 2U²√T/η + G²η√T",
            facts.fresh(),
            *met,
            **{"U": U, "η": eta, "G": G, "T": T, "a round": value(eta, G) / T if G and T else 0.0},
        )
    ]
    if trace.loss.quadratic and trace.domain.centred_radius is not None and not trace.lambda_:
        X = float(trace.norms.max(initial=0.0))
        weighted = facts.running(4.0 * U, 2)
        follows = step.rule == "derived"  # then G_t must hold with X so far
        G = float(weighted[-1]) if T else 0.0
        limits = weighted if follows else np.full(T, G)
        within = bool(np.all(np.sqrt(trace.gradient_squares) <= limits * (1.0 + ROUNDING)))
        eta = math.sqrt(2.0) * U / G if follows and G else eta
        listed.append(
            facts.bound(
                "B4",
                "worst case",
                value(eta, G) if G else 0.0,
                "R_T ≤ 2U²√T/η + G²η√T with G = 4UX²",
                facts.fresh(),
                facts.labels(np.maximum.accumulate(trace.norms) if follows and T else X),
                Assumption("G", G, facts.largest, within),
                **{"U": U, "X": X, "η": eta, "G": G, "T": T, "a round": value(eta, G) / T if G and T else 0.0},
            )
        )
    return listed


def _tuned_root(facts: Facts) -> list[Bound]:
    """B6 for the step of theory on a set that is no ball, D/(G√(2t))."""
    trace = facts.trace
    if trace.algorithm.step.rule != "theory" or trace.domain.as_ball(trace.coordinates) is not None:
        return []
    each, met = facts.gradients()
    G = float(each.max(initial=0.0))
    value = math.sqrt(2.0 * trace.T) * facts.D * G
    constants = {"D": facts.D, "G": G, "T": trace.T}
    return [facts.bound("B6", "tuned", value, "R_T ≤ √2·D·G·√T", facts.fresh(), facts.diameter(), *met, **constants)]


def _strong(facts: Facts) -> list[Bound]:
    """B8 where the rounds are as strongly convex as the step takes them to be, else B7."""
    trace, sigma = facts.trace, float(facts.trace.step.sigma)
    curved = float((trace.sigmas / trace.alphas).min()) if trace.T else trace.lambda_
    enough = at_most(sigma, curved)  # the rounds must be at least as curved as the step takes them to be
    if enough or trace.lambda_ > 0.0:
        convex = Assumption("σ", sigma, curved, enough)
        masses = np.cumsum(trace.alphas)
        weighted_squares = float((trace.gradient_squares / masses).sum()) / sigma
        G, why = _strong_gradient(facts)
        seen = float(np.sqrt(np.max(trace.gradient_squares / trace.alphas**2, initial=0.0)))
        factor, formula = _harmonic(trace, masses)
        listed = [
            facts.bound(
                "B8",
                "data",
                0.5 * weighted_squares,
                "R_T ≤ ½ Σ ‖g_t‖²/Σ_{i≤t} σ_i",
                facts.fresh(),
                convex,
                σ=sigma,
                T=trace.T,
            ),
            facts.bound(
                "B8",
                "worst case",
                G**2 / (2.0 * sigma) * factor,
                f"R_T ≤ (G²/(2σ))·{formula}",
                facts.fresh(),
                convex,
                Assumption.limit("G", G, seen),
                G=G,
                σ=sigma,
                T=trace.T,
                remark=why,
            ),
        ]
        if enough:
            return listed
        return [*listed, _only_convex(facts), _decreasing(facts, False)]
    return [_only_convex(facts), _decreasing(facts, False)]


def _strong_gradient(facts: Facts) -> tuple[float, str]:
    """A bound on the norms of the unweighted gradients (not multiplied by α_t), and where it comes from (A5, B11)."""
    trace = facts.trace
    squares = trace.gradient_squares / trace.alphas**2
    seen = float(np.sqrt(np.max(squares, initial=0.0)))
    if trace.loss.lipschitz is None or not trace.lambda_ or trace.step.sigma != trace.lambda_ or not trace.T:
        return seen, "G is the largest gradient seen"
    slope = trace.loss.lipschitz * float(trace.norms.max())
    size = reach(trace.domain, np.zeros(trace.coordinates)) if facts.bounded else math.inf
    # w_{t+1} is a convex combination of w_t and −g·x/λ, then a projection onto a set that contains 0: its norm is at
    # most the larger of the two.
    if trace.domain.contains(np.zeros(trace.coordinates)):
        size = min(size, max(float(np.linalg.norm(trace.start)), slope / trace.lambda_))
    if not math.isfinite(size):
        return seen, "G is the largest gradient seen"
    return slope + trace.lambda_ * size, "G = L·X + λ·max‖w_t‖"


def _harmonic(trace: Trace, masses: Any) -> tuple[float, str]:
    """A bound on Σ α_t²/Σ_{i≤t} α_i, and its formula in words of the theorem."""
    if np.all(trace.weights == 1.0) and trace.T:
        if trace.algorithm.by_time:
            return 2.0 * trace.T, "2T"
        return 1.0 + math.log(trace.T), "(1 + ln T)"
    return float((trace.alphas**2 / masses).sum()), "Σ α_t²/Σ_{i≤t} α_i"


def _only_convex(facts: Facts) -> Bound:
    """B7, for 1/(σt) on losses that are only convex: it grows like T, so it promises nothing, and says so."""
    trace, D = facts.trace, facts.D
    sigma, T = float(trace.step.sigma), trace.T
    each, met = facts.gradients()
    G = float(each.max(initial=0.0))
    masses = np.cumsum(trace.alphas)
    plain = bool(np.all(trace.alphas == 1.0))
    count = 1.0 + math.log(T) if plain and T else float((1.0 / masses).sum())
    formula = "(G²/(2σ))(1 + ln T) + (σD²/2)T" if plain else "(G²/(2σ))·Σ 1/Σ_{i≤t} α_i + (σD²/2)·Σ α_t"
    mass = float(masses[-1]) if T else 0.0
    value = G**2 / (2.0 * sigma) * count + (sigma * D**2 / 2.0 * mass if facts.bounded else math.inf)
    trivial = D * G * T if facts.bounded else math.inf
    return facts.bound(
        "B7",
        "worst case",
        min(value, trivial),
        f"R_T ≤ min({formula}, DGT)",
        facts.fresh(),
        facts.diameter(),
        *met,
        σ=sigma,
        D=D,
        G=G,
        T=T,
        B7=value,
        DGT=trivial,
        remark="it grows like T, so it is no guarantee: the losses are only convex and 1/(σt) is a step for strongly "
        "convex ones",
    )


def _norm(facts: Facts) -> Bound:
    """B9, for any scale c/√2 of the step; `step.factor` 1 and the true diameter make it the theorem itself."""
    D, step = facts.D, facts.trace.step
    scale = step.factor * step.diameter
    root = math.sqrt(facts.total)
    ours = step.factor == 1.0 and step.diameter == D  # the step of the theorem itself
    statement = "R_T ≤ √2·D·√(Σ‖g_t‖²)" if ours else "R_T ≤ (D²/(√2·c) + c/√2)·√(Σ‖g_t‖²), c/√2 the step's scale"
    value = math.sqrt(2.0) * D * root if ours else (D**2 / scale + scale) / math.sqrt(2.0) * root if scale else 0.0
    return facts.bound(
        "B9",
        "data",
        value if facts.bounded else math.inf,
        statement,
        facts.fresh(),
        facts.diameter(),
        **{"D": D, "Σ‖g_t‖²": facts.total, "c": scale},
    )


def _diagonal(trace: Trace, regret: float | None) -> Bound:
    """A10's bound: B9 in each coordinate."""
    algorithm, facts = trace.algorithm, Facts(trace, regret, None)
    roots = np.sqrt(trace.coordinate_squares)
    ends = trace.domain.sides(roots.size) if trace.domain.bounded and not algorithm.scaled else None
    sides = Assumption("D_j", "a bounded box", repr(trace.domain), ends is not None)
    if ends is None:
        return facts.bound("A10", "data", math.inf, "R_T ≤ √2 Σ_j D_j √(Σ_t g_{t,j}²)", facts.fresh(), sides)
    D = ends[1] - ends[0]
    if not algorithm.rate and not algorithm.beta:
        value, statement = math.sqrt(2.0) * float(D @ roots), "R_T ≤ √2 Σ_j D_j √(Σ_t g_{t,j}²)"
    else:
        rate = np.full(roots.shape, algorithm.rate) if algorithm.rate else D / math.sqrt(2.0)
        used = (roots > 0.0) & (rate > 0.0)
        D, roots, rate = D[used], roots[used], rate[used]
        value = float((D**2 * (algorithm.beta + roots) / (2.0 * rate) + rate * roots).sum())
        statement = "R_T ≤ Σ_j (D_j²(β + √(Σ_t g_{t,j}²))/(2·rate) + rate·√(Σ_t g_{t,j}²))"
    return facts.bound("A10", "data", value, statement, facts.fresh(), sides)


def _leader(trace: Trace) -> list[Bound]:
    """B10: following the leader on squares of one number pays exactly Σ (y_t − w_t)²/t ≤ B²(1 + ln T).

    With weights, Σ α_t²(y_t − w_t)²/Σ_{i≤t} α_i. On linear losses it can pay about T (C4), so nothing is promised.
    """
    facts = Facts(trace, None, None)
    if not trace.loss.quadratic:
        squares = Assumption("loss", "square", f"{trace.loss!r}, where the leader can pay about T (C4)", False)
        return [facts.bound("B10", "worst case", math.inf, "R_T ≤ B²(1 + ln T)", squares)]
    y, w1 = trace.labels, float(trace.start[0])
    low, high = min(float(y.min(initial=w1)), w1), max(float(y.max(initial=w1)), w1)
    inside = True
    if facts.bounded:
        ends = float(-trace.domain.support(np.array([-1.0]))), float(trace.domain.support(np.array([1.0])))
        inside = ends[0] <= low and high <= ends[1]
        B, where = ends[1] - ends[0], f"in [{ends[0]:g}, {ends[1]:g}]"
    else:
        inside = all(trace.domain.contains(np.array([end])) for end in (low, high))
        B, where = high - low, f"in an interval of {trace.domain!r}"
    ones = bool(np.all(trace.features == 1.0))
    met = (
        facts.fresh(),
        Assumption("x", "1 in every round", "so" if ones else "not so", ones),
        Assumption("y", where, f"{low:g} to {high:g}", inside),
    )
    masses = np.cumsum(trace.weights)
    mean = float((trace.weights * y).sum() / masses[-1]) if trace.T else 0.0
    best = float((trace.weights * (y - mean) ** 2).sum())
    regret = float((trace.weights * trace.losses).sum()) - best
    exact = float((trace.weights**2 * trace.losses / masses).sum())
    shares = float((trace.weights**2 / masses).sum())
    plain = bool(np.all(trace.weights == 1.0))
    count = 1.0 + math.log(trace.T) if plain and trace.T else shares
    words = "(1 + ln T)" if plain else "·Σ α_t²/Σ_{i≤t} α_i"
    equality = "R_T = Σ (y_t − w_t)²/t" if plain else "R_T = Σ α_t²(y_t − w_t)²/Σ_{i≤t} α_i"
    listed = [
        facts.bound("B10", "data", exact, equality, *met, T=trace.T),
        facts.bound("B10", "worst case", B**2 * count, f"R_T ≤ B²{words}", *met, B=B, T=trace.T),
    ]
    return [dataclasses.replace(bound, observed=regret) for bound in listed]
