"""Every learner × loss × domain × step × average that can be built, and a subset that covers every pair."""

from __future__ import annotations

import itertools
import os

import rue
from rue.checks import examples
from rue.registry import names, registered

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"

D = 4  # features; one coordinate more with the intercept
NORMAL = [1.0, -2.0, 0.5, 0.0, 1.5]
DOMAINS = {
    "reals": rue.Reals(),
    "ball": rue.Ball(2),
    "ball off centre": rue.Ball(1.5, [0.1, -0.2, 0.3, 0.0, 1.0]),
    "box": rue.Box(-0.5, 1),
    "orthant": rue.Orthant(),
    "halfspace": rue.Halfspace(NORMAL, 0.5),
    "hyperplane": rue.Hyperplane(NORMAL, 0.5),
    "simplex": rue.Simplex(),
    "l1-ball": rue.L1Ball(2),
    "intersection": rue.Intersection(rue.Ball(2), rue.Halfspace(NORMAL, 0.5)),
}
STEPS = {
    "fixed": rue.Fixed(0.1),
    "sqrt": rue.Sqrt(0.3),
    "strong": rue.Strong(2.0),
    "sequence": rue.Sequence([1.0, 0.5, 0.25]),
    "adaptive": rue.Adaptive(),
    "horizon": rue.Horizon(100, G=5.0),
    "theory": rue.Theory(),
}
DOMAINS = {name: domain for name, domain in examples("domain").items() if name != "interval"} | DOMAINS
STEPS = examples("step") | STEPS
LOSSES = {name: registered("loss")[name]() for name in names("loss")}
LOSSES["regularised hinge"] = rue.Regularised(rue.Hinge(), 0.3)
LOSSES["regularised square"] = rue.Regularised(rue.Square(), 0.3)


def build(learner, loss, domain, step, average):
    """The learner, or None where these parts do not go together (the refusals have their own tests)."""
    loss, domain = LOSSES[loss], DOMAINS[domain]
    try:
        if learner == "ogd":
            return rue.OGD(loss, domain, STEPS[step], average=average)
        if learner == "adaptive" and step == "adaptive":
            return rue.AdaptiveOGD(loss, domain, average=average)
        if learner in ("adagrad", "adagrad scaled") and step == "adaptive":
            scale = "largest" if learner == "adagrad scaled" else "raw"
            return rue.AdaGrad(loss, domain, scale=scale, average=average)
        if learner == "leader" and average == "none" and step == "fixed":
            return rue.FollowTheLeader(loss, domain)
        if learner == "perceptron" and (loss, domain, step) == (rue.PerceptronLoss(), rue.Reals(), "fixed"):
            return rue.Perceptron(average=average)
        if learner == "mixture" and (domain, step, average) == (rue.Reals(), "adaptive", "none"):
            return rue.Mixture(loss)
        svm = loss == LOSSES["regularised hinge"] and step == "strong" and domain in (rue.Reals(), rue.Ball(2))
        if learner.startswith("svm") and svm:
            return rue.SVM(0.3, learner[4:], project=domain != rue.Reals(), average=average)
        if learner not in KNOWN and (domain, step, average) == (rue.Reals(), "adaptive", "none"):
            return registered("learner")[learner](loss)
    except rue.SettingsError:
        return None
    return None


KNOWN = ["ogd", "adaptive", "adagrad", "adagrad scaled", "leader", "perceptron", "svm uniform", "svm t", "mixture"]
LEARNERS = [*KNOWN, *sorted(set(names("learner")) - {name.split()[0] for name in KNOWN})]


def everything():
    """All combinations that build, as tuples of names."""
    choices = itertools.product(LEARNERS, LOSSES, DOMAINS, STEPS, names("average"))
    return [choice for choice in choices if build(*choice) is not None]


def thinned(combinations):
    """Every learner × loss × domain, with steps and averages dealt out in turn."""
    groups = {}
    for choice in combinations:
        groups.setdefault(choice[:3], []).append(choice)
    return [group[(7 * i) % len(group)] for i, group in enumerate(groups.values())]


def pairwise(combinations):
    """A subset, chosen greedily, in which every pair of parts that occurs together somewhere occurs together."""
    pairs = {choice: frozenset(itertools.combinations(enumerate(choice), 2)) for choice in combinations}
    missing = frozenset().union(*pairs.values())
    chosen = []
    while missing:
        best = max(pairs, key=lambda choice: len(pairs[choice] & missing))
        chosen.append(best)
        missing -= pairs[best]
    return chosen
