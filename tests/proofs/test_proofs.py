"""The theorems run, hold, and would not hold if the library were wrong."""

import dataclasses
import math
import re
import types
from pathlib import Path

import numpy as np
import pytest

import rue
from conftest import many
from rue.intervals import tracker
from rue.proofs import Comparison, Proof
from rue.proofs.base import worst
from rue.regret.bounds.perceptron import separable_bound
from rue.regret.certificates.windows import changing_models
from rue.regret.risk import bounds as risk_module

ROOT = Path(__file__).parents[2]
THEORY = ROOT / "docs" / "theory.md"
IDS = [
    *(f"Q{i}" for i in range(1, 6)),
    *(f"V{i}" for i in range(1, 7)),
    *(f"A{i}" for i in range(1, 11)),
    *(f"B{i}" for i in range(1, 15)),
    *(f"B{i}" for i in range(18, 23)),
    *(f"C{i}" for i in range(1, 8)),
    *(f"D{i}" for i in range(1, 6)),
    "B15",
    "B16",
    "D6",
    "D7",
    "B17",
    "E1",
    "E2",
    "E3",
    *(f"P{i}" for i in range(1, 7)),
    "M1",
    "M2",
]
REFUTED = {
    "Q4",
    "V5",
    "V6",
    "A2",
    "B1",
    "B6",
    "B8",
    "B11",
    "B13",
    "B18",
    "B22",
    "P3",
    "C1",
    "C3",
    "C4",
    "C7",
    "P1",
    "P2",
    "P4",
}
"""Theorems whose run shows that what the notes print fails."""


def test_the_identifiers_are_those_of_theory():
    assert rue.theorems().ids == IDS


def test_the_identifiers_are_those_of_the_page_itself():
    text = THEORY.read_text()
    tables = re.findall(r"^\| ([QVABCPM]\d+) \|", text, re.M)
    steps = [name for name in tables if name[0] in "PM"]
    found = tables[: -len(steps)] + re.findall(r"^\*\*(B17|[DE]\d+),", text, re.M) + steps
    assert len(found) == len(IDS)
    assert set(found) == set(IDS)


@pytest.mark.parametrize("name", IDS)
def test_it_holds(name):
    for seed in range(many(1, 40)):
        proof = rue.theorems()[name].run(seed)
        assert proof.holds, str(proof)
        assert proof.id == name
        assert proof.words.endswith(".")
        assert math.isfinite(proof.claimed)
        assert math.isfinite(proof.observed)
    printed = [one for one in proof.comparisons if "printed" in one.what]
    assert bool(printed) == (name in REFUTED)
    assert not printed or rue.theorems()[name].misprint


def test_the_same_seed_gives_the_same_numbers_and_another_one_others():
    theorem = rue.theorems()["Q1"]
    assert theorem.run(3) == theorem.run(3)
    assert theorem.run(3) != theorem.run(4)


@pytest.mark.parametrize("one", rue.theorems(), ids=lambda one: one.id)
def test_it_says_what_and_where(one):
    assert len(one.statement) > 20
    assert re.match(r"notes 00\d|none of the notes", one.source)
    assert not re.search(r"shared|seeds|\.txt|\.md", one.source + one.misprint + one.statement)
    assert str(one).startswith(f"{one.id}: {one.statement}")


# Every run could fail: with a wrong learner, bound, opponent or certificate it does.


def _shrunk(factor):
    """Bounds whose value is too small."""
    real = rue.bounds
    return lambda trace: [dataclasses.replace(bound, value=factor * bound.value) for bound in real(trace)]


def _certified(change):
    """`learn` whose runs have a changed certificate."""

    class Changed(rue.Run):
        def certificate(self, *args, **settings):
            return change(rue.Run.certificate(self, *args, **settings))

    def learn(*args, **settings):
        run = rue.learn(*args, **settings)
        return Changed(**{field.name: getattr(run, field.name) for field in dataclasses.fields(run)})

    return learn


def _with(function, **changes):
    """A function whose result is a dataclass with some fields changed."""

    def changed(*args, **settings):
        found = function(*args, **settings)
        return dataclasses.replace(found, **{name: f(getattr(found, name)) for name, f in changes.items()})

    return changed


def _late(X, y, learner):
    """Scores examples after learning them."""
    run = rue.learn(X, y, learner=learner)
    return rue.learn(X, y, learner=run.learner)


def _lazy(loss, domain, step=None, **settings):
    """OGD that hardly moves."""
    return rue.OGD(loss, domain, "sqrt:1e-6", **settings)


def _wild(loss, domain, step=None, **settings):
    return rue.OGD(loss, domain, "sqrt:1e4", **settings)


def _half_as_steep(d, L=1.0):
    return rue.OrthogonalAdversary(d, L / 2.0)


@rue.parameter
class _Sphere(rue.Ball):
    """Says that it is a ball and contains its surface alone."""

    def contains(self, w, tolerance=1e-9):
        return abs(float(np.linalg.norm(w - np.asarray(self.centre))) - self.radius) < tolerance


@rue.parameter
class _Bent(rue.MarginLoss):
    """Smooth, and not convex."""

    def value(self, p, y):
        return math.sin(p)

    def slope(self, p, y):
        return math.cos(p)


@rue.parameter
class _Steep(rue.Square):
    """A slope that is not the gradient."""

    def slope(self, p, y):
        return 2.1 * (p - y)


@rue.parameter
class _Flat(rue.Logistic):
    """A second derivative that is too small."""

    def second_derivative(self, p, y):
        return 0.1 * rue.Logistic().second_derivative(p, y)


@rue.parameter
class _Wide(rue.Absolute):
    """An interval of slopes that is too wide."""

    def subdifferential(self, p, y):
        return -1.2, 1.2


@rue.parameter
class _KinkAtZero(rue.Hinge):
    """A hinge that has its kink at 0 and says so."""

    def subdifferential(self, p, y):
        return (-1.0, 0.0) if y * p == 0.0 else (-1.0, -1.0)


class _Worse:
    """A minimisation that has found a worse point."""

    def __init__(self, found):
        self.found = found

    def __getattr__(self, name):
        there = getattr(self.found, name)
        return there + 0.3 if name == "value" else there


def _term(name, factor):
    """Traces whose telescope has a term that is a little wrong."""

    def traced(*args, **settings):
        found = rue.trace(*args, **settings)
        real = found.telescope

        def telescope(u=None):
            proof = real(u)
            proof.terms[name] = factor * proof.terms[name]
            return proof

        object.__setattr__(found, "telescope", telescope)
        return found

    return traced


def _proof_term(name, factor):
    """Traces whose proof of the mistake bound has a term that is a little wrong."""

    def traced(*args, **settings):
        found = rue.trace(*args, **settings)
        real = found.mistake_proof

        def mistake_proof(u=None):
            proof = real(u)
            proof.terms[name] = factor * proof.terms[name]
            return proof

        object.__setattr__(found, "mistake_proof", mistake_proof)
        return found

    return traced


def _scaled(certificate, factor):
    return dataclasses.replace(certificate, alone=factor * certificate.alone)


def _heavier_positives(X, y, learner):
    """A run in which positive labels count twice."""
    return rue.learn(X, y, learner=learner, weights=np.where(y > 0, 2.0, 1.0))


def _one_step_late(eta, **settings):
    """A Perceptron that learns on a margin too."""
    return rue.OGD("hinge", "reals", rue.Fixed(eta), **settings) if eta != 1.0 else rue.Perceptron(**settings)


class _Narrow(rue.Alarm):
    """Its confidence sequences are too narrow."""

    def intervals(self):
        rows = super().intervals()
        middle = rows[:, 1:].mean(axis=1, keepdims=True)
        rows[:, 1:] = middle + 0.2 * (rows[:, 1:] - middle)
        return rows


def _never_widened(memory, alphas, lo, hi, y, labelled, lower, upper):
    lower[:], upper[:] = lo, hi
    if labelled[0]:
        memory[0, tracker.ROUNDS] += 1.0
        memory[0, tracker.DEBT] += float(not lo[0, 0] <= y[0] <= hi[0, 0]) - alphas[0]


def _perfect():
    """A linear mixture that knows the labels, which no stage can be near."""
    return types.SimpleNamespace(run=lambda X, y: 1000.0 * y)


class _NeverChanging:
    """Proves what holds without changes, however many are asked about."""

    def __init__(self, models):
        self.models = models

    def certificate(self, changes):
        return self.models.certificate(0)


WRONG = {
    "Q1": [("protocol.learn", _late), ("protocol.OGD", _lazy)],
    "Q2": [("protocol.play", _with(rue.play, losses=lambda losses: losses + 0.01))],
    "Q3": [("protocol.best_in_hindsight", lambda *a, radius=None, **k: rue.best_in_hindsight(*a, radius=0.5, **k))],
    "Q4": [("protocol.Perceptron", lambda **k: rue.Perceptron())],
    "Q5": [("protocol.play", _with(rue.play, points=lambda points: points + 0.01))],
    "V1": [("convexity.Ball", lambda r, c: _Sphere(r, c))],
    "V2": [
        ("convexity.Huber", lambda delta: _Bent()),
        ("convexity.convexity", lambda f, **k: rue.convexity(lambda x: 0.0, **k)),
    ],
    "V3": [("convexity.Square", lambda: _Steep()), ("convexity.Logistic", lambda: _Bent())],
    "V4": [("convexity.Logistic", lambda: _Flat())],
    "V5": [
        ("convexity.Absolute", lambda: _Wide()),
        ("convexity.Hinge", lambda at_kink=1.0: _KinkAtZero(at_kink)),
        ("convexity.Fixed", lambda eta: rue.Fixed(40.0 * eta)),
    ],
    "V6": [
        ("convexity.convexity", lambda f, g=None, norm=2, **k: rue.convexity(f, g, norm=1, **k)),
        ("convexity.convexity", lambda f, g=None, less=0.0, **k: rue.convexity(f, g, less=less / 2, **k)),
    ],
    "A1": [("algorithms.Perceptron", lambda eta=1.0, **k: rue.Perceptron(1.1 * eta if eta > 1.0 else eta, **k))],
    "A2": [("algorithms.Sqrt", lambda eta: rue.Sqrt(eta * 1.001))],
    "A3": [("algorithms.Sequence", lambda etas: rue.Sequence(etas[::-1].copy()))],
    "A4": [("algorithms.Strong", lambda sigma: rue.Strong(1.01 * sigma))],
    "A5": [("algorithms.SVM", lambda lambda_, **k: rue.SVM(1.01 * lambda_, **k))],
    "A6": [("algorithms.SVM", lambda lambda_, how, **k: rue.SVM(lambda_, "uniform", **k))],
    "A7": [("algorithms.FollowTheLeader", _lazy)],
    "A8": [("algorithms.AdaptiveOGD", lambda loss, domain: rue.AdaptiveOGD(loss, domain, factor=1.01))],
    "A9": [
        ("algorithms.Horizon", lambda T, G: rue.Horizon(2 * T, G=G)),
        ("algorithms.OrthogonalAdversary", _half_as_steep),
    ],
    "A10": [("algorithms.AdaGrad", lambda loss, domain: rue.AdaGrad(loss, domain, rate=50.0, beta=0.0))],
    "B1": [("bounds.perceptron_bound", _with(rue.perceptron_bound, value=lambda v: v / 3.0))],
    "B2": [("bounds.separable_bound", _with(separable_bound, value=lambda v: v * 3.0))],
    "B3": [("bounds.bounds", _shrunk(0.2)), ("bounds.bounds", _shrunk(1.01))],
    "B4": [("bounds.bounds", _shrunk(0.99))],
    "B5": [("bounds.Fixed", lambda eta: rue.Fixed(eta / 20.0)), ("bounds.Fixed", lambda eta: rue.Fixed(20.0 * eta))],
    "B6": [
        ("bounds.Sequence", lambda etas: rue.Sequence([0.3])),
        ("bounds.Sequence", lambda etas: rue.Sequence([1e-9])),
    ],
    "B7": [("bounds.OGD", lambda loss, domain, step: rue.OGD(loss, domain, "sqrt:1"))],
    "B8": [("bounds.bounds", _shrunk(0.99)), ("bounds.SVM", lambda lambda_, **k: rue.SVM(lambda_ / 10.0, **k))],
    "B9": [("bounds.AdaptiveOGD", lambda loss, domain: rue.AdaptiveOGD(loss, domain, factor=20.0))],
    "B10": [("bounds.FollowTheLeader", lambda loss, domain: rue.OGD(loss, domain, "sqrt:0.5"))],
    "B11": [
        ("risks.risk_of_ogd", _with(rue.risk_of_ogd, value=lambda v: v / 2.0)),
        ("risks.OGD", lambda loss, domain, step, **k: rue.OGD(loss, domain, type(step)(30.0), **k)),
    ],
    "B12": [("risks.mix", _with(rue.mix, losses=lambda losses: 1.2 * losses + 0.05))],
    "B13": [("risks.risk_at_end", lambda losses, B, delta=0.05, **k: rue.risk_at_end(losses, B, delta**0.03, **k))],
    "B14": [("risks.risk_curve", lambda losses, B, delta: rue.risk_curve(losses, B, 2.0 * delta))],
    "B15": [
        ("change.mix", _with(rue.mix, losses=lambda losses: 1.2 * losses + 0.05)),
        ("change.mix", lambda P, y, share=0.0: rue.mix(P, y)),
        ("change.Mixture", lambda members: rue.Mixture(members=members, share=None)),
    ],
    "B16": [
        ("change.Fixed", lambda eta: rue.Fixed(20.0 * eta)),
        ("change.Fixed", lambda eta: rue.Fixed(eta / 20.0)),
    ],
    "B18": [
        ("optimisation.excess_at_end", _with(rue.excess_at_end, slack=lambda slack: 0.9 * slack)),
        ("optimisation.excess_at_end", lambda regret, T, B, delta: rue.excess_at_end(regret, T, B, delta**0.05)),
    ],
    "B19": [
        ("optimisation.excess_always", _with(rue.excess_always, slack=lambda slack: 0.35 * slack)),
        ("optimisation.excess_always", lambda R, T, B, d=0.05, differences=None: rue.excess_always(R, T, B / 5, d)),
    ],
    "B20": [
        ("optimisation.minimise", lambda *a, **k: _Worse(rue.minimise(*a, **k))),
        (
            "optimisation.best_in_hindsight",
            lambda *a, lambda_, **k: rue.best_in_hindsight(*a, lambda_=9 * lambda_, **k),
        ),
    ],
    "B21": [
        ("optimisation.Fixed", lambda eta: rue.Fixed(1.01 * eta)),
        ("optimisation.play", _with(rue.play, points=lambda points: points + 0.01)),
    ],
    "B22": [
        ("optimisation.ConvexRound", lambda f, g, mu: rue.ConvexRound(f, g, None)),
        ("optimisation.ConvexRound", lambda f, g, mu: rue.ConvexRound(f, g, mu / 2)),
    ],
    "C1": [("opponents.MarginAdversary", lambda n, d: rue.MarginAdversary(max(1, n - 1), d))],
    "C2": [
        ("opponents.OrthogonalAdversary", _half_as_steep),
        ("opponents.OrthogonalAdversary", lambda d, L: rue.RandomSigns(L, d)),
    ],
    "C3": [("opponents.OGD", _lazy)],
    "C4": [("opponents.FollowTheLeader", lambda loss, domain: rue.OGD(loss, domain)), ("opponents.OGD", _wild)],
    "C5": [
        ("opponents.FollowTheLeader", _lazy),
        ("opponents.Strong", lambda sigma: rue.Strong(sigma / 2.0)),
    ],
    "C6": [
        ("opponents.NumberFromDistribution", lambda values, chance: rue.NumberFromDistribution(values)),
        ("opponents.FollowTheLeader", _lazy),
    ],
    "C7": [
        ("opponents.AbsoluteAdversary", lambda d, X=1.0: rue.AbsoluteAdversary(d, 0.9 * X)),
        ("opponents.Horizon", lambda T, G: rue.Sqrt(50.0)),
    ],
    "D1": [
        ("certificates.certify", lambda *a, radius, **k: rue.certify(*a, radius=radius / 3.0, **k)),
        ("certificates.Sqrt", lambda eta: rue.Sqrt(100.0 * eta)),
    ],
    "D2": [("certificates.learn", _certified(lambda c: dataclasses.replace(c, alone=0.9 * c.alone)))],
    "D3": [
        ("certificates.learn", lambda X, y, learner, witnesses: rue.learn(X, y, learner=learner)),
        (
            "certificates.learn",
            _certified(lambda c: dataclasses.replace(c, regret_at_most=c.regret_at_most - 0.02 * c.loss_total)),
        ),
    ],
    "D4": [("certificates.certify", lambda *a, curvature, **k: rue.certify(*a, **k))],
    "D5": [
        ("certificates.best_in_hindsight", _with(rue.best_in_hindsight, at_least=lambda v: 1.001 * v)),
        ("certificates.best_in_hindsight", _with(rue.best_in_hindsight, value=lambda v: 1.001 * v)),
    ],
    "D6": [
        ("change.certify", lambda *a, **k: _scaled(rue.certify(*a, **k), 0.98)),
        ("change.best_in_hindsight", _with(rue.best_in_hindsight, value=lambda v: v - 1000.0)),
    ],
    "D7": [("change.changing_models", lambda *models: _NeverChanging(changing_models(*models)))],
    "B17": [("coverage.Alarm", _Narrow), ("coverage.Alarm", lambda rounds: rue.Alarm(1e300))],
    "E1": [("coverage.Quantile", lambda tau: rue.Quantile(1.0 - tau))],
    "E2": [("coverage.cover", _never_widened), ("coverage.debts", lambda memory, alphas: [1.0])],
    "E3": [("coverage.learn", _heavier_positives)],
    "P1": [("steps.trace", _term("linear", 1.001)), ("steps.trace", _term("projected", 0.9))],
    "P2": [("steps.trace", _term("next_distance", 1.001)), ("steps.OGD", _wild)],
    "P3": [("steps.trace", _term("curvature", 1.001)), ("steps.trace", _term("gradient", 0.99))],
    "P4": [("steps.trace", _proof_term("norm", 1.001)), ("steps.trace", _proof_term("inner", 0.9))],
    "P5": [("steps.trace", _proof_term("hinge", 0.5)), ("steps.Perceptron", _one_step_late)],
    "P6": [("steps.OGD", lambda loss, domain, step, **k: rue.OGD(loss, domain, rue.Fixed(0.3), **k))],
    "M1": [("maps.Staged", lambda: rue.Staged(maps=[rue.Pairs(crosses=False)])), ("maps.Mixture", _perfect)],
    "M2": [("maps.map_rows", lambda maps, X, p: np.round(X, 2).tolist())],
}


def test_every_theorem_is_put_to_the_test():
    assert set(WRONG) == set(IDS)


@pytest.mark.parametrize(
    ("name", "where", "wrong"),
    [(name, *pair) for name, pairs in WRONG.items() for pair in pairs[: many(1, len(pairs))]],
    ids=lambda value: value if isinstance(value, str) else "wrong",
)
def test_it_could_fail(name, where, wrong, monkeypatch):
    monkeypatch.setattr(f"rue.proofs.{where}", wrong)
    assert not rue.theorems()[name].run().holds


def test_a_bound_at_every_moment_that_is_too_small_fails_too_often(monkeypatch):
    real = risk_module.deviation
    monkeypatch.setattr(risk_module, "deviation", lambda V, delta: 0.4 * real(V, delta))
    proof = rue.theorems()["B14"].run()
    assert not proof.holds


# What a proof and the list of theorems are.


def test_a_proof_tells_what_failed():
    proof = Proof("X1", "Nothing was done.", (Comparison("one", 1.0, "≤", 2.0), Comparison("two", 3.0, "=", 4.0)))
    assert (proof.claimed, proof.observed, proof.holds) == (2.0, 1.0, False)
    assert str(proof) == "X1 FAILS. Nothing was done.\n  one: 1 ≤ 2\n  two: 3 = 4, which FAILS"


@pytest.mark.parametrize(
    ("relation", "below", "equal", "above"),
    [
        ("≤", True, True, False),
        ("≥", False, True, True),
        ("=", False, True, False),
        ("<", True, False, False),
        (">", False, False, True),
    ],
)
def test_comparisons(relation, below, equal, above):
    found = [Comparison("x", seen, relation, 10.0).holds for seen in (9.99999, 10.0 + 1e-12, 10.00001)]
    assert found == [below, equal, above]
    assert not Comparison("x", math.nan, relation, 1.0).holds
    assert not Comparison("x", 1.0, relation, math.nan).holds
    assert not Comparison("x", math.inf, relation, math.inf).holds


def test_the_worst_is_the_one_nearest_to_a_refutation():
    assert worst("x", "≤", [(1.0, 5.0), (4.9, 5.0), (0.0, 1.0)]).observed == 4.9
    assert worst("x", "≥", [(10.0, 5.0), (5.1, 5.0)]).observed == 5.1
    assert worst("x", "=", [(5.0, 5.0), (5.2, 5.0), (4.7, 5.0)]).observed == 4.7
    assert not worst("x", "≤", [(1.0, 5.0), (math.nan, 5.0), (2.0, 5.0)]).holds


def test_theorems_are_a_sequence_with_names():
    found = rue.theorems()
    assert found["B3"] is found[IDS.index("B3")]
    assert [one.id for one in found] == IDS
    assert found[11:13].ids == ["A1", "A2"]
    assert len(found) == len(IDS)
    assert isinstance(found[0], rue.Theorem)
    assert str(found).splitlines()[0].startswith("Q1  sequential risk")
    assert repr(found[:2]) == "Theorems(Q1, Q2)"
    with pytest.raises(rue.UnknownName, match=r"there is no theorem 'B99': the identifiers are Q1, Q2"):
        found["B99"]


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(rue.SettingsError, match="A1: seed must be a whole number ≥ 0"):
        rue.theorems()["A1"].run(seed)
