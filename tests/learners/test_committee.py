"""`Mixture(members=[…])`: each member as if alone, the mixture as plain exponential weights, and B12's price."""

from __future__ import annotations

import copy
import math
import pickle
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import rue
from conftest import many
from rue.compiled import Kernel
from rue.learners.learner import Learner
from rue.learners.mixture.committee import MOST, Committee, Joint
from rue.learners.mixture.layout import GAPS, HEAVIEST, LOSSES, MIXED, SHARES
from rue.learners.points import T
from rue.runs.certifying import certificate_of


class MemberAlone(NamedTuple):
    """A member of a committee as it stands."""

    learner: Learner
    """A copy of it, which goes on from there as a learner of its own."""
    loss: float
    """Σ weight·ℓ of its predictions; of the mixture's where it sat out."""
    share: float
    """Its weight in the next prediction."""


def members_alone(learner: Learner) -> list[MemberAlone]:
    """The members of a learner made by `Mixture(members=…)`; of any other, none."""
    algorithm = learner.algorithm
    if not isinstance(algorithm, Committee):
        return []
    state = learner.__getstate__()
    rule, seats = state["_rule"], state["_point"]
    if seats is None:
        rule, seats = algorithm.start(1)
    rules, points, members = rule.tree.leaves(), seats.points(), []
    for k, member in enumerate(algorithm.members):
        begun = {"_rule": rules[k], "_point": points[k]} if state["_point"] is not None else {}
        alone = Learner.__new__(Learner)
        alone.__setstate__(copy.deepcopy({**state, "_rule": None, "_point": None, **begun, "algorithm": member}))
        members.append(MemberAlone(alone, float(seats.members[LOSSES, k]), float(seats.members[SHARES, k])))
    return members


INTERPRETED = [HealthCheck.function_scoped_fixture]  # the fixture `interpreted` is the same for every example


def stream(seed, rows=80, columns=4, loss="logistic", scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.7) * scale
    y = X @ rng.normal(size=columns) / scale + rng.normal(size=rows)
    made = rue.make("loss", loss)
    if made.task == "classify":
        y = np.where(y > 0.0, 1.0, -1.0)
    elif not made.accepts(-1.0):
        y = np.round(np.abs(y))
    return X, y, rng.choice([0.0, 0.5, 1.0], rows)


def several(loss="logistic", **settings):
    """Five members, so that sums have a rest beyond four lanes; of every kind of point."""
    return [
        rue.OGD(loss, "ball:2", **settings),
        rue.OGD(loss, "box:-1,1", "sqrt:0.3", **settings),
        rue.OGD(loss, rue.L1Ball(2), "sqrt:0.1", average="uniform", **settings),
        rue.AdaGrad(loss, rate=0.3, **settings),
        rue.AdaGrad(loss, scale="largest", **settings),
    ]


def memory(learner):
    return learner._point.memory


def price(learner):
    m = memory(learner)
    K = len(learner.algorithm.members)
    rounds = math.log(m[T]) if learner.algorithm.share == "1/t" and m[T] else 0.0
    return (math.log(K) + rounds) * m[HEAVIEST] + m[GAPS] if learner.loss == rue.Logistic() else 2.0 * m[GAPS]


# Plain versions.


def plain_chances(P, y, weights):
    """Probabilities mixed at the rate 1/(largest weight before, 1 at least), and what is lost, round by round."""
    C, heaviest, out = np.zeros(P.shape[1]), 1.0, []
    for p, label, weight in zip(np.clip(P, -40.0, 40.0), y, weights, strict=True):
        v = np.exp(-(C - C.min()) / heaviest)
        yes, no = v @ (1.0 / (1.0 + np.exp(-p))), v @ (1.0 / (1.0 + np.exp(p)))
        out.append(math.log(yes / no))
        C += weight * np.logaddexp(0.0, -label * p)
        heaviest = max(heaviest, weight)
    return np.array(out), C


def plain_shares(P, y, weights):
    """Fixed share with α = 1/t (B15): v ∝ v·p^{weight/heaviest}, then (1 − α)v + α/K."""
    (_, K), heaviest, out, t = P.shape, 1.0, [], 0
    v, C = np.full(K, 1.0 / K), np.zeros(K)
    for p, label, weight in zip(np.clip(P, -40.0, 40.0), y, weights, strict=True):
        out.append(math.log((v @ (1.0 / (1.0 + np.exp(-p)))) / (v @ (1.0 / (1.0 + np.exp(p))))))
        heaviest, t = max(heaviest, weight), t + 1
        C += weight * np.logaddexp(0.0, -label * p)
        v = v * np.exp(-weight / heaviest * np.logaddexp(0.0, -label * p))
        v = (1.0 - 1.0 / (t + 1)) * v / v.sum() + 1.0 / (K * (t + 1))
    return np.array(out), C


def plain_means(P, y, weights, loss):
    """AdaHedge on the losses of the predictions made: η = ln K / Σ (cost − growth of the potential)."""

    def potential(C, eta):
        return C.min() - (math.log(np.exp(-eta * (C - C.min())).mean()) / eta if eta < math.inf else 0.0)

    C, gaps, out = np.zeros(P.shape[1]), 0.0, []
    for p, label, weight in zip(P, y, weights, strict=True):
        eta = math.log(C.size) / gaps if gaps > 0.0 else math.inf
        v = np.exp(-eta * (C - C.min())) if eta < math.inf else (C.min() == C).astype(float)
        out.append(v @ p / v.sum())
        after = C + weight * np.array([loss.value(q, label) for q in p])
        gaps += max(0.0, weight * loss.value(out[-1], label) - potential(after, eta) + potential(C, eta))
        C = after
    return np.array(out), C, gaps


@pytest.mark.parametrize(
    ("loss", "share"),
    [
        ("logistic", None),
        ("logistic", "1/t"),
        *((loss, "1/t") for loss in ["hinge", "square", "absolute", "poisson", "linear"]),
    ],
)
def test_each_member_is_as_if_alone_and_the_mixture_is_the_plain_one(loss, share, interpreted):
    X, y, weights = stream(1, loss=loss)
    weights = 3.0 * (weights + 0.1)
    learner, alone = rue.Mixture(loss, members=several(loss), share=share), several(loss)
    got = learner.run(X, y, weights)
    P = np.array([member.run(X, y, weights) for member in alone]).T
    entries = members_alone(learner)
    for entry, member in zip(entries, alone, strict=True):
        assert entry.learner == member
        assert np.array_equal(entry.learner.run(X, y), member.copy().run(X, y))
    if loss == "logistic":
        wanted, C = (plain_shares if share else plain_chances)(P, y, weights)
    else:
        wanted, C, gaps = plain_means(P, y, weights, learner.loss)
        assert memory(learner)[GAPS] == pytest.approx(gaps, rel=1e-9)
    assert np.allclose(got, wanted, rtol=1e-9, atol=1e-9)
    assert np.allclose([entry.loss for entry in entries], C, rtol=1e-12)
    shares = np.array([entry.share for entry in entries])
    assert shares.sum() == pytest.approx(1.0)
    mean = sum(v * member.point for v, member in zip(shares, alone, strict=True))
    assert np.allclose(learner.point, mean, rtol=1e-12)
    value = sum(w * learner.loss.value(p, label) for p, label, w in zip(got, y, weights, strict=True))
    assert memory(learner)[MIXED] == pytest.approx(value, rel=1e-12)


def test_it_predicts_what_mix_predicts_from_the_members_columns(interpreted):
    X, y, _ = stream(2)
    for share in (None, "1/t"):
        learner = rue.Mixture(members=several(), share=share)
        got = learner.run(X, y)
        mixed = rue.mix(np.array([member.run(X, y) for member in several()]).T, y, share=share or 0.0)
        assert np.allclose(got, mixed.predictions, atol=1e-10)
        assert price(learner) == pytest.approx(mixed.price)
    linear = rue.Mixture("linear", members=several("linear"))  # where the loss of the mean is the mean loss
    X, y, _ = stream(2, loss="linear")
    got = linear.run(X, y)
    mixed = rue.mix(np.array([member.run(X, y) for member in several("linear")]).T, y, loss="linear")
    assert np.allclose(got, mixed.predictions, atol=1e-8)
    assert price(linear) == pytest.approx(mixed.price)


# The price (B12).


SAY = np.array([2.0, -0.5, 0.0])


magnitudes = st.floats(-100.0, 100.0).filter(lambda x: x == 0.0 or abs(x) > 1e-140)
"""Features whose squares are not refused for being too small."""


def opposed(loss):
    """One feature, and members that predict two of it, minus half of it, and nothing: none of them learns."""
    return [rue.OGD(loss, rue.Box([v], [v]), "fixed:1", intercept=False) for v in SAY]


@settings(max_examples=many(60, 2000), suppress_health_check=INTERPRETED)
@given(
    st.sampled_from(["logistic", "hinge", "square", "absolute", "squared-hinge", "perceptron", "huber"]),
    st.lists(st.tuples(magnitudes, st.booleans(), st.sampled_from([0.5, 1.0])), min_size=1, max_size=40),
)
@example("hinge", [(3.0, True, 1.0), (3.0, False, 1.0)])
@example("logistic", [(60.0, False, 1.0)])
def test_it_loses_at_most_the_price_more_than_the_best(interpreted, loss, rounds):
    """Whatever comes; the example has a leader who falls behind before η is finite."""
    learner = rue.Mixture(loss, members=opposed(loss))
    for x, yes, weight in rounds:
        learner.update(np.array([x]), 1.0 if yes else -1.0, weight)
    reach = 40.0 if loss == "logistic" else math.inf
    said = [[min(reach, max(-reach, v * x)) for x, *_ in rounds] for v in SAY]
    labels, weights = [1.0 if yes else -1.0 for _, yes, _ in rounds], [w for *_, w in rounds]
    totals = [sum(w * learner.loss.value(p, y) for p, y, w in zip(P, labels, weights, strict=True)) for P in said]
    assert [seat.loss for seat in members_alone(learner)] == pytest.approx(totals, abs=1e-9)
    most = price(learner)
    assert memory(learner)[MIXED] <= min(totals) + most + 1e-9 * (1.0 + min(totals))
    if loss == "logistic" and max(weights) <= 1.0:
        assert most == math.log(3) + math.log(len(rounds))


@settings(max_examples=many(20, 500), suppress_health_check=INTERPRETED)
@given(st.integers(0, 2**32), st.integers(1, 60), st.floats(0.1, 100.0))
def test_an_opponent_who_sees_the_prediction_gains_no_more_than_the_price(interpreted, seed, rounds, size):
    learner, rng = rue.Mixture(members=opposed("logistic")), np.random.default_rng(seed)
    without, losses, totals, lost = rue.Mixture(members=opposed("logistic"), share=None), [], np.zeros(3), 0.0
    for _ in range(rounds):
        x = rng.normal() * size
        p = learner.predict(np.array([x]))
        y = -1.0 if p > 0.0 else 1.0
        learner.update(np.array([x]), y)
        losses.append(learner.loss.value(p, y) - np.array([learner.loss.value(v * x, y) for v in SAY]))
    for r in range(rounds):  # B15, on every window
        excess = np.cumsum(losses[r:], axis=0).max(axis=1)
        assert (excess <= math.log(3) + np.log(np.arange(r + 1, rounds + 1)) + 1e-9 * rounds).all()
    for _ in range(rounds):
        x = rng.normal() * size
        p = without.predict(np.array([x]))
        y = -1.0 if p > 0.0 else 1.0
        without.update(np.array([x]), y)
        lost += without.loss.value(p, y)
        totals += [without.loss.value(v * x, y) for v in SAY]
    assert lost <= totals.min() + math.log(3) + 1e-9 * rounds


def test_weights_up_to_1_cost_at_most_ln_k_in_any_order(interpreted):
    """At a rate of 1/(largest weight so far) the light examples would decide before the heavy one comes."""
    learner = rue.Mixture(members=opposed("logistic"), share=None)
    learner.run(np.full((3, 1), 15.0), np.array([1.0, 1.0, -1.0]), np.array([0.001, 0.001, 1.0]))
    best = min(seat.loss for seat in members_alone(learner))
    assert memory(learner)[MIXED] <= best + math.log(3)
    assert price(learner) == math.log(3)


def test_an_example_heavier_than_all_before_adds_to_the_price(interpreted):
    x, y = np.array([[15.0], [15.0], [15.0]]), np.array([1.0, 1.0, -1.0])
    first = rue.Mixture(members=opposed("logistic"), share=None)
    first.run(x, y, np.array([1000.0, 1.0, 1000.0]))
    assert memory(first)[GAPS] == pytest.approx(0.0, abs=1e-9)
    assert memory(first)[MIXED] <= min(seat.loss for seat in members_alone(first)) + 1000.0 * math.log(3)
    late = rue.Mixture(members=opposed("logistic"), share=None)
    late.run(x, y, np.array([1.0, 1.0, 1000.0]))
    best = min(seat.loss for seat in members_alone(late))
    assert best + 1000.0 * math.log(3) < memory(late)[MIXED] <= best + price(late)
    p = 15.0 * SAY
    before, step = 2.0 * np.logaddexp(0.0, -p), 1000.0 * np.logaddexp(0.0, p)
    growth = [-1000.0 * math.log(np.exp(-C / 1000.0).mean()) for C in (before, before + step)]
    early = rue.Mixture(members=opposed("logistic"), share=None)
    early.run(x[:2], y[:2])
    cost = memory(late)[MIXED] - memory(early)[MIXED]
    assert memory(late)[GAPS] == pytest.approx(cost - growth[1] + growth[0], rel=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "absolute", "square", "quantile:0.9"])
def test_the_price_on_streams_to_learn_from(loss, interpreted):
    for seed in range(many(3, 50)):
        X, y, weights = stream(seed, loss=loss, scale=10.0 ** (seed % 3 - 1))
        learner = rue.Mixture(loss, members=several(loss))
        learner.run(X, y, 4.0 * weights)
        assert memory(learner)[MIXED] <= min(seat.loss for seat in members_alone(learner)) + price(learner) + 1e-9


# Sleepers.


def test_a_member_that_overflows_sits_out_and_the_others_go_on(interpreted):
    """Of the rates of Poisson regression most overflow at once; nothing of that may reach the mixture."""
    rng = np.random.default_rng(5)
    X = np.ones((60, 1))
    y = rng.poisson(3.0, 60).astype(float)
    rates = [0.05, 400.0, 1e4]
    members = [rue.OGD("poisson", "reals", f"fixed:{rate}", intercept=False) for rate in rates]
    got = rue.Mixture(members=members).run(X, y)
    assert np.isfinite(got).all()
    assert np.abs(got[1:] - members[0].run(X, y)[1:]).max() < 1e-12
    huge = rue.Mixture("square", members=["ogd:step=fixed:0.01", "adagrad:scale=largest"])
    huge.run(X, y)
    before = members_alone(huge)
    huge.update(np.array([1e120]), 1.0)  # the first sleeps, and is charged what the second loses
    after = members_alone(huge)
    charged = [b.loss - a.loss for a, b in zip(before, after, strict=True)]
    assert charged[0] == charged[1] > 0.0
    assert after[0].learner.point == pytest.approx(before[0].learner.point)


def test_those_awake_share_the_weight(interpreted):
    members = [rue.OGD("square", rue.Box([v], [v]), "fixed:1", intercept=False) for v in (1e-101, 3e-101, 1.0)]
    learner = rue.Mixture(members=members)
    learner.update(np.array([1.0]), 0.0)
    learner.update(np.array([1.0]), 1.0)
    C = np.array([seat.loss for seat in members_alone(learner)])
    v = np.exp(-math.log(3) / memory(learner)[GAPS] * (C[:2] - C[:2].min()))
    assert learner.predict(np.array([1e101])) == pytest.approx(v @ [1.0, 3.0] / v.sum())


def test_the_worst_residual_of_the_members_is_known(interpreted):
    slow = rue.Intersection(rue.Ball(1.0), rue.Halfspace([1.0, 1.0, 1.0, 1.0, 1.0], 0.1))
    X, y, _ = stream(8)
    learner, alone = rue.Mixture(members=[rue.OGD(domain=slow), rue.OGD()]), rue.OGD(domain=slow)
    learner.run(X, y)
    alone.run(X, y)
    assert learner.residual == alone.residual > 0.0


def test_when_all_sleep_the_example_is_refused_and_changes_nothing(interpreted):
    learner = rue.Mixture("square", members=["ogd", "adagrad"])
    learner.run(np.ones((3, 1)), np.ones(3))
    before = learner.copy()
    assert np.isnan(learner.run(np.array([[1e200]]), [1.0])).all()
    assert learner == before


# A learner like any other.


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_the_contract_of_learners(loss, interpreted):
    rue.checks.check_learner(rue.Mixture(loss, members=several(loss)), 4)


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_compiled_and_interpreted_agree(loss, monkeypatch):
    """And members are as if alone, to the bit, in compiled code too."""
    specs = ["ogd", "adagrad:scale=largest", "adagrad"]
    X, y, weights = stream(7, loss=loss)
    learner, alone = rue.Mixture(loss, members=specs), [rue.make("learner", spec, loss=loss) for spec in specs]
    fresh, found = learner.copy(), learner.run(X, y, weights)
    for entry, member in zip(members_alone(learner), alone, strict=True):
        member.run(X, y, weights)
        assert entry.learner == member
    monkeypatch.setattr(Kernel, "resolve", lambda kernel, *args: kernel.interpreted)
    assert np.allclose(found, fresh.run(X, y, weights), rtol=1e-12, atol=1e-12)
    assert np.allclose(learner.point, fresh.point, rtol=1e-12, atol=1e-12)


def test_the_contract_of_learners_in_one_set(interpreted):
    learner = rue.Mixture(members=[rue.OGD("hinge", "simplex", f"sqrt:{eta}") for eta in (0.1, 1.0)])
    assert learner.domain == rue.Simplex()
    rue.checks.check_learner(learner, 4)
    rue.checks.check_learner(rue.Mixture(members=[rue.SVM(0.1), rue.OGD("hinge"), rue.Mixture("hinge")]), 4)
    rue.checks.check_learner(rue.Mixture(members=[rue.Mixture(members=["ogd", "adagrad"]), "adaptive"]), 4)


def test_features_may_come_later_and_by_name(interpreted):
    X, y, _ = stream(3)
    narrow = X.copy()
    narrow[:40, 2:] = 0.0
    members = [rue.OGD(), rue.AdaGrad(), rue.AdaGrad(scale="largest")]
    learner = rue.Mixture(members=members)
    early = [member.copy() for member in members]
    got, wanted = [], []
    for rows in (slice(0, 40), slice(40, 80)):
        block = csr_matrix(narrow[rows][:, : 2 if rows.start == 0 else 4])
        got.append(learner.run(block, y[rows]))
        wanted.append([member.run(block, y[rows]) for member in early])
    assert learner.d == 4
    assert all(entry.learner == member for entry, member in zip(members_alone(learner), early, strict=True))
    assert np.allclose(np.concatenate(got), plain_shares(np.hstack(wanted).T, y, np.ones(80))[0], atol=1e-9)
    named = rue.Mixture(members=members)
    named.update({"a": 1.0}, 1.0)
    named.update({"b": 2.0, "a": 1.0}, -1.0)
    assert math.isfinite(named.predict({"b": 1.0}))
    assert set(members_alone(named)[0].learner.names.places) == {"a", "b"}


def test_it_is_saved_and_goes_on_bit_for_bit(tmp_path, interpreted):
    X, y, weights = stream(4)
    for members in (several(), [rue.OGD(d=4), "adagrad"], [rue.Mixture(members=["ogd", "adagrad"]), rue.Mixture()]):
        learner = rue.Mixture(members=members)
        path = tmp_path / "model.rue"
        rue.save(learner, path)
        assert rue.load(path).learner == learner
        run = rue.learn(X[:50], y[:50], weights=weights[:50], learner=learner)
        rue.save(run, path)
        again = rue.load(path).learner
        assert again == run.learner == pickle.loads(pickle.dumps(run.learner))
        assert repr(again) == repr(run.learner)
        assert np.array_equal(again.run(X[50:], y[50:]), run.learner.run(X[50:], y[50:]))
        assert again == run.learner


def test_negative_losses_are_saved_too(tmp_path, interpreted):
    X, y, _ = stream(4, loss="linear")
    learner = rue.Mixture("linear", members=["ogd", "adaptive"])
    learner.run(X, y)
    assert min(seat.loss for seat in members_alone(learner)) < 0.0
    rue.save(learner, tmp_path / "model.rue")
    assert rue.load(tmp_path / "model.rue").learner == learner


def test_the_certificate_is_about_the_members_set_or_the_size_of_the_mean(interpreted):
    X, y, _ = stream(6)
    one = rue.learn(X, y, learner=rue.Mixture(members=["ogd:domain=ball:3", "adaptive:domain=ball:3"]))
    assert one.certificate().domain == rue.Ball(3)
    many_sets = rue.learn(X, y, learner=rue.Mixture(members=several()))
    found = certificate_of(many_sets.learner, many_sets.evidence)
    assert isinstance(many_sets.learner.domain, Joint)
    assert isinstance(found.domain, rue.Ball)  # of a size at which the proof says something (decision 0023)
    assert found.units == "raw"
    assert "5 members" in many_sets.learner.explain()
    assert rue.audit(many_sets, X, y).passed


def test_where_the_mean_lies(interpreted):
    sets = Joint((rue.Box([1.0, 1.0], [2.0, 2.0]), rue.Reals()))
    assert sets.dimension == 2
    assert not sets.grows
    assert not sets.bounded
    assert np.array_equal(sets.start(2), [0.5, 0.5])
    learner = rue.Mixture(members=[rue.OGD("logistic", domain, "sqrt:1") for domain in sets.sets])
    assert learner.d == 1
    assert np.array_equal(learner.point, [0.5, 0.5])
    assert Joint((rue.Ball(1), rue.Reals())).grows
    assert [entry.share for entry in members_alone(rue.Mixture(members=["ogd", "adagrad"]))] == [0.5, 0.5]
    assert members_alone(rue.OGD()) == []


def test_specs_take_the_mixtures_loss_and_intercept():
    learner = rue.Mixture("hinge", members=["ogd:domain=reals,step=fixed:1", "svm:0.1"], intercept=False, d=3)
    assert learner.loss == rue.Hinge()
    assert learner.algorithm.members == (
        rue.OGD("hinge", "reals", "fixed:1").algorithm,
        rue.SVM(0.1).algorithm,
    )
    assert (learner.intercept, learner.d) == (False, 3)
    assert repr(learner).startswith("Mixture(members=[OGD(loss=Hinge(), domain=Reals(), step=Fixed(value=1.0)), SVM(")
    assert rue.Mixture(members=(rue.Perceptron(), rue.OGD("perceptron"))).loss == rue.PerceptronLoss()


def learnt():
    learner = rue.OGD()
    learner.update([1.0], 1.0)
    return learner


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"members": "ogd"}, "members must be a list of learners or their specs, not 'ogd'"),
        ({"members": 3}, "members must be a list"),
        ({"members": ["ogd"]}, f"members must be 2 to {MOST} learners, not 1"),
        ({"members": ["ogd"] * (MOST + 1)}, f"members must be 2 to {MOST} learners, not {MOST + 1}"),
        ({"members": ["ogd", 3]}, r"members\[1\] must be a learner or a spec, not 3"),
        ({"members": ["ogd", "adgrad"]}, "did you mean 'adagrad'"),
        ({"members": ["ogd", learnt()]}, r"members\[1\] has learnt 1 examples"),
        ({"members": ["ogd", rue.OGD("hinge")]}, r"one loss, but members\[1\] learns with Hinge\(\)"),
        ({"members": ["ogd", rue.Perceptron()]}, "all members must have one loss"),
        (
            {"members": [rue.OGD("hinge")] * 2, "loss": "square"},
            r"learn with Hinge\(\), so its loss cannot be 'square'",
        ),
        ({"members": ["ogd", rue.OGD(intercept=False)]}, r"members\[1\] and the mixture differ in intercept"),
        ({"members": [rue.OGD()] * 2, "intercept": False}, r"members\[0\] and the mixture differ in intercept"),
        ({"members": [rue.OGD(d=2), rue.OGD(d=3)]}, "d= is 2 and 3 in its members"),
        ({"members": [rue.OGD(d=2), "ogd"], "d": 3}, "d= is 2 and 3"),
        ({"members": ["ogd", "ogd"], "budget": 300}, "give members or a budget"),
        (
            {"members": [rue.OGD(domain=rue.Ball(1, [0.0] * n)) for n in (2, 3)]},
            "domains have 2 and 3 coordinates",
        ),
    ],
)
def test_refusals(arguments, sentence):
    with pytest.raises(rue.SettingsError, match=sentence):
        rue.Mixture(**arguments)


def test_an_algorithm_of_ones_own_is_mixed_but_not_saved(tmp_path):
    class Own(Committee):
        pass

    learner = rue.Mixture(members=["ogd", "adagrad"])
    learner.algorithm = Committee(
        "Mixture", (learner.algorithm.members[0], rue.parameter(Own)("Own", learner.algorithm.members))
    )
    with pytest.raises(rue.SettingsError, match="Own is an algorithm of your own"):
        rue.save(learner, tmp_path / "model.rue")
