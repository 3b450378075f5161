"""Pictures: what is drawn equals numbers computed independently; axes, files, edge cases."""

import itertools
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar

import rue
from rue.pictures.curves import AuditCurves, GameCurves, Rounds, best_constant, bounds_at, times
from rue.pictures.figures import Panel, new_figure, number, save

ROOT = Path(__file__).parents[2]


def hinge(p, y):
    return np.maximum(0.0, 1.0 - y * p)


def logistic(p, y):
    return np.logaddexp(0.0, -y * p)


def data(n=400, d=4, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sign(X @ rng.normal(size=d) + noise * rng.normal(size=n) + 0.3)


def lines(ax):
    """Every line drawn, by its label."""
    return {line.get_label(): line for line in ax.get_lines()}


def names(ax):
    return [text.get_text() for text in ax.texts]


def drawn(ax, label):
    return lines(ax)[label].get_xydata().T


def with_ones(X):
    return np.hstack([np.ones((len(X), 1)), X])


@pytest.fixture(scope="module")
def audited():
    X, y = data()
    return X, y, rue.audit(rue.OGD("logistic", "ball:3"), X, y)


# What is drawn is true.


def test_regret_of_an_audit(audited):
    X, y, audit = audited
    ax = rue.plot_regret(audit, hindsight=5)
    p, u, Z = audit.run.predictions, audit.comparator.point, with_ones(X)
    regrets = np.cumsum(logistic(p, y) - logistic(Z @ u, y))
    t, R = drawn(ax, "regret")
    np.testing.assert_allclose(R, regrets[t.astype(int) - 1], atol=1e-9)
    assert t[0] == 1
    assert t[-1] == len(y)
    slopes = -y / (1.0 + np.exp(y * p))
    A, S = np.cumsum(slopes * p), np.cumsum(slopes[:, None] * Z, axis=0)
    t, D = drawn(ax, "D1")
    np.testing.assert_allclose(D, (A + 3.0 * np.linalg.norm(S, axis=1))[t.astype(int) - 1], rtol=1e-9)
    assert D[-1] == pytest.approx(audit.certificate.alone)
    t, best = drawn(ax, "against the best so far")
    assert list(t) == list(times(len(y), 5))
    for k, value in zip(t.astype(int), best, strict=True):
        least = rue.best_in_hindsight(X[:k], y[:k], loss="logistic", radius=3.0, tolerance=1e-8).value
        assert value == pytest.approx(logistic(p, y)[:k].sum() - least, abs=1e-3 * k)
        assert value >= regrets[k - 1] - 1e-3 * k
    assert best[-1] == pytest.approx(audit.regret[1], abs=0.2)


def test_bounds_of_an_audit_are_those_of_its_prefixes(audited):
    X, y, audit = audited
    ax = rue.plot_regret(audit)
    shown = {label for label in lines(ax) if label.startswith("B")}
    assert shown == {"B6, data", "B6, worst case"}
    for label in shown:
        t, values = drawn(ax, label)
        for k, value in list(zip(t.astype(int), values, strict=True))[::20]:
            run = rue.learn(X[:k], y[:k], learner=rue.OGD("logistic", "ball:3"))
            found = {f"{b.theorem}, {b.form}": b.value for b in rue.bounds(rue.trace(run, X[:k], y[:k]))}
            assert value == pytest.approx(found[label], rel=1e-12)
    t, R = drawn(ax, "regret")
    D = np.interp(t, *drawn(ax, "D1"))
    assert np.all(R <= D * 1.05 + 1.0)


def test_the_axes_are_labelled_and_logarithmic(audited):
    _, _, audit = audited
    ax = rue.plot_regret(audit)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rounds t", "regret")
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert "norm ≤ 3" in ax.get_title(loc="left")
    assert any(text.startswith("regret  ") for text in names(ax))
    assert "∝ √t" in names(ax)
    t, guide = drawn(ax, "∝ √t")
    np.testing.assert_allclose(guide / np.sqrt(t), guide[0] / math.sqrt(t[0]))
    risk = rue.plot_risk(audit)
    assert (risk.get_xlabel(), risk.get_ylabel(), risk.get_xscale()) == ("rounds t", "mean logistic loss", "log")
    wrong = rue.plot_mistakes(audit)
    assert (wrong.get_xlabel(), wrong.get_ylabel()) == ("rounds t", "mistakes")
    certificate = rue.plot_certificate(audit)
    assert certificate.get_xlabel() == "norm of the model"
    assert certificate.get_ylabel() == "total loss (logistic)"
    assert certificate.get_xscale() == "log"


def test_a_strongly_convex_run_is_guided_by_the_logarithm_and_counts_its_regulariser():
    X, y = data(300, 3)
    audit = rue.audit(rue.SVM(0.1), X, y)
    ax = rue.plot_regret(audit, hindsight=0)
    assert "∝ 1 + ln t" in names(ax)
    learner, regrets, total = rue.SVM(0.1), [], 0.0
    u, Z = audit.comparator.point, with_ones(X)
    for x, row, label in zip(X, Z, y, strict=True):
        w = learner.point if learner.t else np.zeros(4)
        total += hinge(w @ row, label) + 0.05 * w @ w - hinge(u @ row, label) - 0.05 * u @ u
        regrets.append(total)
        learner.update(x, label)
    t, R = drawn(ax, "regret")
    np.testing.assert_allclose(R, np.array(regrets)[t.astype(int) - 1], rtol=1e-7, atol=1e-7)
    assert drawn(ax, "D2")[1][-1] == pytest.approx(audit.certificate.alone)
    assert drawn(ax, "B8, data")[1][-1] == pytest.approx(audit.bound.value)


def test_risk(audited):
    _X, y, audit = audited
    ax = rue.plot_risk(audit)
    losses = logistic(audit.run.predictions, y)
    t, risk = drawn(ax, "risk")
    np.testing.assert_allclose(risk, (np.cumsum(losses) / np.arange(1, 401))[t.astype(int) - 1])
    share = (y > 0).mean()
    constant = -share * math.log(share) - (1 - share) * math.log(1 - share)
    assert drawn(ax, "best constant")[1] == pytest.approx([constant, constant])
    t, recent = drawn(ax, "recent")
    assert recent[-1] == pytest.approx(losses[-50:].mean())
    assert recent[10] == pytest.approx(losses[: int(t[10])].mean())
    B = next(bound.range for bound in audit.risk_bounds if bound.theorem == "B14")
    t, ceiling = drawn(ax, "B14 (0.95)")
    np.testing.assert_allclose(ceiling, rue.risk_curve(losses, B)[t.astype(int) - 1])
    given = rue.plot_risk(audit.run, B=2.0 * B, delta=0.1)
    np.testing.assert_allclose(drawn(given, "B14 (0.9)")[1], rue.risk_curve(losses, 2.0 * B, 0.1)[t.astype(int) - 1])
    assert not any(label.startswith("B14") for label in lines(rue.plot_risk(audit.run)))


def test_the_range_comes_from_the_features_magnitudes_where_they_were_kept():
    X, y = data(200, 2)
    run = rue.learn(X, y, learner=rue.OGD("hinge", "ball:2"), units="largest")
    B = 1.0 + 2.0 * math.sqrt(1.0 + float((np.abs(X).max(axis=0) ** 2).sum()))
    t, ceiling = drawn(rue.plot_risk(run), "B14 (0.95)")
    np.testing.assert_allclose(ceiling, rue.risk_curve(hinge(run.predictions, y), B)[t.astype(int) - 1])


def test_the_window_is_a_tenth_of_many_rounds():
    X, y = data(2000, 2)
    run = rue.learn(X, y)
    t, recent = drawn(rue.plot_risk(run), "recent")
    losses = logistic(run.predictions, y)
    k = int(t[-20])
    assert recent[-20] == pytest.approx(losses[k - round(0.1 * k) : k].mean())


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared-hinge", "square", "absolute", "huber", "quantile:0.9"])
def test_the_best_constant(loss):
    rng = np.random.default_rng(1)
    made = rue.make("loss", loss)
    y = np.where(rng.random(50) < 0.3, 1.0, -1.0) if made.task == "classify" else 300.0 + 100.0 * rng.normal(size=50)
    weights = rng.random(50)

    def total(c):
        return sum(w * made.value(c, label) for w, label in zip(weights, y, strict=True))

    best = minimize_scalar(total, bounds=(-1000.0, 1000.0), method="bounded", options={"xatol": 1e-9}).fun
    assert best_constant(made, y, weights) == pytest.approx(best, rel=1e-6)


def test_the_best_constant_at_the_ends():
    assert best_constant(rue.Logistic(), np.ones(3), np.ones(3)) == 0.0
    assert best_constant(rue.Square(), np.full(3, 1e20), np.ones(3)) == 0.0
    assert best_constant(rue.Linear(), np.ones(3), np.ones(3)) is None
    y = np.array([0.0, 1.0, 5.0])
    assert best_constant(rue.Poisson(), y, np.ones(3)) == pytest.approx(6.0 - 6.0 * math.log(2.0))


def test_mistakes_and_the_loss_that_bounds_them(audited):
    _X, y, audit = audited
    ax = rue.plot_mistakes(audit.run)
    t, M = drawn(ax, "mistakes")
    wrong = np.cumsum(y * audit.run.predictions <= 0)
    np.testing.assert_array_equal(M, wrong[t.astype(int) - 1])
    assert M[-1] == audit.run.mistakes
    t, limit = drawn(ax, "logistic loss / ln 2")
    np.testing.assert_allclose(limit, np.cumsum(logistic(audit.run.predictions, y))[t.astype(int) - 1] / math.log(2.0))
    assert np.all(limit >= M)
    assert drawn(ax, "best constant")[1][-1] == min((y > 0).sum(), (y < 0).sum())


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_perceptrons_bound_is_that_of_its_u(noise):
    X, y = data(200, 3, noise=noise)
    if not noise:
        X, y = X[np.abs(X[:, 0]) > 0.5], np.sign(X[np.abs(X[:, 0]) > 0.5, 0])
    audit = rue.audit(rue.Perceptron(), X, y)
    ax = rue.plot_mistakes(audit)
    u, Z = audit.mistake_bounds[0].comparator, with_ones(X)
    t, B1 = drawn(ax, "B1")
    H = np.cumsum(hinge(Z @ u, y))
    a = np.linalg.norm(u) * np.maximum.accumulate(np.linalg.norm(Z, axis=1))
    sharp = H + a**2 / 2 + a * np.sqrt(H + a**2 / 4)
    np.testing.assert_array_equal(B1, np.floor(sharp + 1e-9 * (1 + sharp))[t.astype(int) - 1])
    assert B1[-1] == audit.mistake_bounds[0].value
    assert np.all(drawn(ax, "mistakes")[1] <= B1)
    assert ("B2" in lines(ax)) == (noise == 0.0)
    if not noise:
        assert drawn(ax, "B2")[1][-1] == audit.mistake_bounds[1].value


def test_certificate_against_the_radius(audited):
    X, y, audit = audited
    for source in (audit, audit.run):
        ax = rue.plot_certificate(source)
        U, proved = drawn(ax, "at least (D1)")
        found = [audit.run.certificate(radius).comparator_loss_at_least for radius in U]
        np.testing.assert_allclose(proved, found, rtol=1e-9, atol=1e-9)
        assert U[0] < 3.0 < U[-1]
        assert drawn(ax, "this learner")[1] == pytest.approx([audit.run.loss] * 2)
    at, best = drawn(rue.plot_certificate(audit, hindsight=2), "best in hindsight")
    assert len(at) == 3
    assert 3.0 in at
    for radius, value in zip(at, best, strict=True):
        least = rue.best_in_hindsight(X, y, loss="logistic", radius=float(radius), tolerance=1e-6).value
        assert value == pytest.approx(least, rel=2e-3)
    assert np.all(best >= np.interp(at, U, proved) - 1e-6)


def test_witnesses_and_curvature_raise_the_curve():
    X, y = data(2000, 3, seed=3)
    run = rue.learn(X, y, units="largest", witnesses=[1.0])
    ax = rue.plot_certificate(run)
    U, alone = drawn(ax, "at least (D1)")
    _, better = drawn(ax, "at least (D3)")
    assert np.all(better >= alone)
    assert np.any(better > alone + 1.0)
    np.testing.assert_allclose(better, [run.certificate(u).comparator_loss_at_least for u in U])
    assert "units of their largest" in ax.get_xlabel()
    run = rue.learn(X, X @ [3.0, 1.0, 2.0] + 0.1, learner=rue.AdaptiveOGD("square", "ball:1"), curvature=True)
    assert "at least (D4)" in lines(rue.plot_certificate(run))
    audit = rue.audit(run, X, X @ [3.0, 1.0, 2.0] + 0.1)
    assert drawn(rue.plot_regret(audit), "D4")[1] == pytest.approx([audit.certificate.regret_at_most])


def test_weights_and_rounds_of_weight_zero():
    X, y = data(300, 3)
    weights = np.random.default_rng(0).integers(0, 3, size=300).astype(float)
    audit = rue.audit(rue.OGD("logistic", "ball:3"), X, y, weights=weights)
    kept = weights > 0
    p, u, Z = audit.run.predictions[kept], audit.comparator.point, with_ones(X)[kept]
    w, labels = weights[kept], y[kept]
    regrets = np.cumsum(w * (logistic(p, labels) - logistic(Z @ u, labels)))
    ax = rue.plot_regret(audit)
    t, R = drawn(ax, "regret")
    assert t[-1] == kept.sum()
    np.testing.assert_allclose(R, regrets[t.astype(int) - 1], atol=1e-9)
    slopes = -w * labels / (1.0 + np.exp(labels * p))
    A, S = np.cumsum(slopes * p), np.cumsum(slopes[:, None] * Z, axis=0)
    t, D = drawn(ax, "D1")
    np.testing.assert_allclose(D, (A + 3.0 * np.linalg.norm(S, axis=1))[t.astype(int) - 1], rtol=1e-9)
    t, risk = drawn(rue.plot_risk(audit), "risk")
    np.testing.assert_allclose(risk, (np.cumsum(w * logistic(p, labels)) / np.cumsum(w))[t.astype(int) - 1])
    assert risk[-1] == pytest.approx(audit.run.risk)
    assert drawn(rue.plot_mistakes(audit), "mistakes")[1][-1] == audit.run.mistakes


def test_sparse_blocks_and_rows_left_out():
    X, y = data(300, 3)
    bad = X.copy()
    bad[[5, 100]] = np.nan
    run = rue.learn(bad, y, learner=rue.OGD("hinge", "ball:3"), bad="skip")
    clean = np.delete(X, [5, 100], axis=0), np.delete(y, [5, 100])
    same = rue.learn(*clean, learner=rue.OGD("hinge", "ball:3"))
    np.testing.assert_allclose(Rounds.of(run).risks, Rounds.of(same).risks)
    dense = rue.audit(rue.OGD("hinge", "ball:3"), *clean)
    blocks = [rue.Block(sparse.csr_matrix(clean[0][a : a + 70]), clean[1][a : a + 70]) for a in range(0, 298, 70)]
    parts = rue.audit(rue.OGD("hinge", "ball:3"), blocks)
    at = times(298, 40)
    for name in ("certificates", "best_regrets"):
        few = at if name == "certificates" else at[-2:]
        mine, theirs = (getattr(AuditCurves(audit), name)(few) for audit in (dense, parts))
        np.testing.assert_allclose(mine, theirs, rtol=1e-3)
    np.testing.assert_allclose(AuditCurves(dense).regrets[-1], dense.loss - dense.comparator.value, rtol=1e-9)


# Games.


def test_regret_of_a_game_between_its_bounds():
    game = rue.play(rue.OGD(domain="ball:2"), rue.OrthogonalAdversary(d=3), 400)
    ax = rue.plot_regret(game)
    t, R = drawn(ax, "regret")
    np.testing.assert_allclose(R, game.regrets[t.astype(int) - 1])
    t, forced = drawn(ax, "C2, forced")
    np.testing.assert_allclose(forced, 2.0 * np.sqrt(t))
    label = next(label for label in lines(ax) if label.startswith("B"))
    s, upper = drawn(ax, label)
    regrets = game.regrets
    assert np.all(forced <= regrets[t.astype(int) - 1] + 1e-9)
    assert np.all(regrets[s.astype(int) - 1] <= upper)
    found = {f"{b.theorem}, {b.form}": b.value for b in rue.bounds(GameCurves(game).trace)}
    assert upper[-1] == pytest.approx(found[label])
    assert "D1" not in lines(ax)
    assert ax.get_yscale() == "log"
    assert ax.get_ylabel() == "regret"


def test_the_leader_flips_and_flops():
    game = rue.play(rue.FollowTheLeader("linear", "interval:-1,1"), rue.FlipFlop(), 200)
    t, forced = drawn(rue.plot_regret(game), "C4, forced")
    np.testing.assert_allclose(forced, t - 1.0)
    ogd = rue.play(rue.OGD(domain="interval:-1,1"), rue.FlipFlop(), 200)
    assert not any(label.startswith("C4") for label in lines(rue.plot_regret(ogd)))


def test_guessing_is_guided_by_the_logarithm():
    leader = rue.play(rue.FollowTheLeader("square", "interval:0,1"), rue.NumberGuessing(), 300)
    ax = rue.plot_regret(leader)
    assert "∝ 1 + ln t" in names(ax)
    t, exact = drawn(ax, "B10, data")
    np.testing.assert_allclose(exact, leader.regrets[t.astype(int) - 1], rtol=1e-9)
    np.testing.assert_allclose(drawn(ax, "B10, worst case")[1], 1.0 + np.log(t))
    assert not any(label.startswith("C5") for label in lines(ax))  # the same curve again
    slow = rue.play(rue.OGD(domain="interval:0,1"), rue.NumberGuessing("farthest"), 300)
    assert "∝ √t" in names(rue.plot_regret(slow))
    t, D = drawn(rue.plot_regret(slow), "D1")
    A, S = np.cumsum(slow.products), np.cumsum(slow.gradients)
    np.testing.assert_allclose(D, (A + np.maximum(0.0, -S))[t.astype(int) - 1], atol=1e-9)


def test_games_without_a_closed_form():
    game = rue.play(rue.OGD("hinge", "ball:5"), rue.Stochastic(d=3), 200)
    _t, R = drawn(rue.plot_regret(game), "regret, at least")
    low, high = game.regret_interval
    assert low - 1e-3 * abs(low) <= R[-1] <= high + 1e-6  # a point nearly as good as the best

    class Distances(rue.Opponent):
        d, lipschitz = 2, 1.0

        def begin(self, setting):
            def reveal(move):
                z = setting.rng.normal(size=2)
                return rue.ConvexRound(
                    lambda w: float(np.linalg.norm(w - z)), lambda w: (w - z) / np.linalg.norm(w - z)
                )

            return reveal

    game = rue.play(rue.OGD(domain="ball:2"), Distances(), 50)
    ax = rue.plot_regret(game)
    assert drawn(ax, "regret, at least")[1][-1] == pytest.approx(game.regret_interval[0])
    assert drawn(ax, "D1")[1][-1] == pytest.approx(game.regret_interval[1])


def test_the_margin_adversary_is_about_mistakes():
    game = rue.play("perceptron", "margin:9", 20)
    figure = game.plot()
    assert [ax.get_ylabel() for ax in figure.axes] == ["regret", "mistakes"]
    t, forced = drawn(figure.axes[1], "C1, forced")
    np.testing.assert_array_equal(forced, np.minimum(t, 9))
    assert drawn(figure.axes[1], "mistakes")[1][-1] == 9


# Edges.


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("learner", [rue.OGD("hinge", "ball:10"), rue.SVM(0.1), rue.Perceptron(), None], ids=repr)
def test_tiny_runs_are_drawn(tmp_path, n, learner):
    X, y = data(n, 2, seed=n)
    run = rue.learn(X, y, learner=learner)
    run.plot(tmp_path / "run.png")
    figure = rue.audit(run, X, y).plot(tmp_path / "audit.svg")
    assert len(figure.axes) == 4
    for ax in figure.axes:
        assert ax.get_lines()
        assert np.isfinite(ax.get_ylim()).all()
        assert ax.get_ylim()[0] < ax.get_ylim()[1]


def test_negative_regret_is_shown_on_both_sides_of_zero(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    turning = np.where((np.arange(1000) // 250 % 2)[:, None] == 0, [2.0, 1.0], [-2.0, 1.0])
    audit = rue.audit(rue.OGD("logistic", "ball:5", step="fixed:0.5"), X, np.sign((X * turning).sum(axis=1)))
    assert audit.regret[1] < 0
    ax = rue.plot_regret(audit)
    assert ax.get_yscale() == "symlog"
    low, high = ax.get_ylim()
    assert low < drawn(ax, "regret")[1].min() < 0 < high
    assert not any("∝" in text for text in names(ax))
    save(ax.figure, tmp_path / "negative.png")


def test_an_infinite_certificate_draws_no_curve(tmp_path):
    X, y = data(100, 2)
    audit = rue.audit(rue.OGD("logistic", "ball:1"), X, y, domain="reals")
    assert audit.certificate.alone == math.inf
    figure = audit.plot(tmp_path / "reals.png")
    assert "D1" not in lines(figure.axes[0])
    assert "regret" in lines(figure.axes[0])
    learner = rue.OGD("hinge", "ball:1", step="fixed:1e-300", intercept=False)
    run = rue.learn(np.full((20, 1), 1.2e154), -np.ones(20), learner=learner)
    run.plot(tmp_path / "huge.png")
    assert run.examples == 20
    assert np.all(drawn(rue.plot_certificate(run), "at least (D1)")[1] == 0.0)


def test_regression(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((500, 3))
    y = 200.0 + 300.0 * X[:, 0] + 40.0 * rng.normal(size=500)
    audit = rue.audit(rue.AdaptiveOGD("square", "ball:1000"), X, y)
    figure = audit.plot(tmp_path / "bike.png")
    assert len(figure.axes) == 3
    constant = drawn(figure.axes[1], "best constant")[1][0]
    assert constant == pytest.approx(y.var())
    assert any("×10" in text for text in names(figure.axes[0]))
    with pytest.raises(rue.SettingsError, match="a regression makes no mistakes"):
        rue.plot_mistakes(audit)


def test_what_cannot_be_drawn_is_refused_in_a_sentence(audited, tmp_path):
    X, y, audit = audited
    with pytest.raises(rue.SettingsError, match=r"plot_regret: give rue\.audit"):
        rue.plot_regret(audit.run)
    with pytest.raises(rue.SettingsError, match="plot_risk: give a run or an audit, not int"):
        rue.plot_risk(3)
    with pytest.raises(rue.SettingsError, match=r"saved as \.png, \.svg or \.pdf, not as 'x\.gif'"):
        audit.plot(tmp_path / "x.gif")
    empty = rue.learn(X[:3] * np.inf, y[:3], bad="skip")
    with pytest.raises(rue.DataError, match="nothing to draw"):
        empty.plot()


def test_a6_has_no_bound_on_this_regret():
    X, y = data(200, 2)
    ax = rue.plot_regret(rue.audit(rue.SVM(0.1, weighting="t"), X, y), hindsight=0)
    assert not any(label.startswith("B") for label in lines(ax))


def test_adagrads_bound_stands_at_the_end():
    X, y = data(200, 2)
    audit = rue.audit(rue.AdaGrad("logistic", "box:-1,1"), X, y)
    t, value = drawn(rue.plot_regret(audit), "A10, data")
    assert (list(t), list(value)) == ([200.0], pytest.approx([audit.bound.value]))
    assert list(bounds_at(audit.trace, np.array([200]))) == [("A10", "data")]


# Paper.


def test_numbers_for_people():
    shown = [0.0, 43.911, 0.0004, 5284.4, -1234567.0, 2.3456e9, 1e8, 1.04e-7, math.inf, -math.inf]
    told = ["0", "43.91", "0.0004", "5,284", "−1,234,567", "2.35×10⁹", "10⁸", "1.04×10⁻⁷", "∞", "−∞"]
    assert [number(value) for value in shown] == told


def test_names_of_lines_do_not_overlap():
    from matplotlib.text import Text

    figure = new_figure(1)
    sheet = Panel(figure.subplots())
    for i in range(9):
        sheet.line([1, 10], [1.0, 1.0 + 1e-4 * i], f"line {i}", "black")
    sheet.rounds(10)
    sheet.ax.set_ylim(0.0, 1.1)
    ax = sheet.finish("y", "title")
    figure.draw_without_rendering()
    boxes = sorted((Text.get_window_extent(text) for text in ax.texts), key=lambda box: box.y0)  # without its arrow
    assert len(boxes) == 9
    assert all(low.y1 <= high.y0 + 1.5 for low, high in itertools.pairwise(boxes))
    whole = figure.bbox
    assert all(box.x1 <= whole.x1 and box.y1 <= whole.y1 and box.y0 >= whole.y0 for box in boxes)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_picture_gives_the_same_file(audited, tmp_path, suffix):
    _, _, audit = audited
    for name in "ab":
        audit.run.plot(tmp_path / f"{name}.{suffix}")
    first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab")
    assert first == second
    assert len(first) > 5000
    if suffix == "svg":
        assert b"<dc:date>" not in first
        assert b"<!-- rounds t -->" in first


def test_axes_given_are_drawn_on_and_figures_show_themselves(audited):
    from matplotlib.figure import Figure

    _, _, audit = audited
    ax = Figure().subplots()
    assert rue.plot_risk(audit, ax) is ax
    assert audit.run.plot()._repr_png_().startswith(b"\x89PNG")


def test_no_pyplot_and_a_light_import():
    code = (
        "import sys, rue, numpy as np; assert 'matplotlib' not in sys.modules;"
        "rue.learn(np.eye(3), [1, -1, 1]).plot(); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_without_matplotlib_it_says_what_to_install():
    code = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import numpy as np, rue
run = rue.learn(np.eye(3), [1, -1, 1])
for draw in (run.plot, lambda: rue.plot_risk(run), rue.play("perceptron", "margin:3").plot):
    try:
        draw()
    except rue.SettingsError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["plots need matplotlib: pip install rue[plot]"] * 3


def test_pictures_of_the_docs_are_up_to_date_and_small(tmp_path):
    import make_pages

    make_pages.pictures(tmp_path)
    for name in ("regret.svg", "risk.svg", "certificate.svg"):
        made, kept = ((folder / name).read_text() for folder in (tmp_path, ROOT / "docs"))
        words = [re.findall("<!-- (.*?) -->", text) for text in (made, kept)]
        assert words[0] == words[1], "run: make pictures"
        assert len(words[0]) > 10
        assert len(kept.encode()) < 100_000


def test_metrics_are_drawn_as_they_were_recorded():
    X, y = data(200, 2)
    run = rue.learn(X, y, learner="ogd")
    t, accuracy = drawn(ax := rue.plot_metrics(run), "accuracy")
    course = run.metrics.over_time()
    assert np.array_equal(t, course["examples"])
    assert np.array_equal(accuracy, course["accuracy"])
    assert set(lines(ax)) == {"accuracy", "balanced", "ROC AUC", "precision", "recall", "F1"}
    numbers = rue.plot_metrics(rue.learn(X, X[:, 0] + 0.5, learner=rue.OGD("square", "ball:3")))
    assert set(lines(numbers)) == {"mean absolute error", "root mean square error"}
    assert numbers.get_ylabel() == "error"


def test_intervals_and_alarms_are_drawn(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    y = X[:, 0] + rng.normal(size=2000) * np.repeat([0.1, 3.0], 1000)
    run = rue.learn(X, y, interval=[0.5, 0.9], alarm=1e4)
    assert run.alarms
    run.plot_intervals(tmp_path / "i.png")
    assert (tmp_path / "i.png").stat().st_size > 10_000
    marks = [line.get_xdata()[0] for line in rue.plot_risk(run).lines if line.get_label() == "alarm"]
    assert marks == [change.round for change in run.alarms]
    red = next(line for line in rue.plot_intervals(run).lines if line.get_color() == "#D55E00")
    rows = red.get_xdata().astype(int) - 1
    assert ((y[rows] < run.lower[rows, 1]) | (y[rows] > run.upper[rows, 1])).all()
    with pytest.raises(rue.SettingsError, match="learn numbers with interval=0.9"):
        rue.plot_intervals(rue.learn(X, y))
    with pytest.raises(rue.SettingsError, match="learn with interval=0.9"):
        rue.plot_coverage(rue.learn(X, y))
