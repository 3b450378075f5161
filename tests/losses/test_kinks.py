"""Subdifferentials: the interval of slopes at a kink, which one is taken, and that theory holds for every choice."""

import math

import numpy as np
import pytest

import rue
from rue.models.settings import from_json, to_json

# Of each loss with a kink: its value in plain Python, labels and where they have the kink, and what at_kink = a means.
KINKS = {
    "hinge": (rue.Hinge, lambda p, y: max(0.0, 1.0 - y * p), [(1.0, 1.0), (-1.0, -1.0)], lambda a, p, y: -a * y),
    "perceptron": (
        rue.PerceptronLoss,
        lambda p, y: max(0.0, -y * p),
        [(1.0, 0.0), (-1.0, 0.0)],
        lambda a, p, y: -a * y,
    ),
    "absolute": (rue.Absolute, lambda p, y: abs(p - y), [(0.5, 0.5), (-2.0, -2.0)], lambda a, p, y: a),
    "quantile": (
        lambda **k: rue.Quantile(0.75, **k),
        lambda p, y: max(0.75 * (y - p), 0.25 * (p - y)),
        [(0.5, 0.5)],
        lambda a, p, y: a,
    ),
    "epsilon-insensitive": (
        lambda **k: rue.EpsilonInsensitive(0.5, **k),
        lambda p, y: max(0.0, abs(p - y) - 0.5),
        [(1.0, 1.5), (1.0, 0.5)],
        lambda a, p, y: a * math.copysign(1.0, p - y),
    ),
}
SMOOTH = [rue.Square(), rue.Logistic(), rue.SquaredHinge(), rue.Huber(0.75), rue.Poisson(), rue.Linear()]
CHOICES = {
    "hinge": (0.0, 0.25, 1.0),
    "perceptron": (0.0, 0.5, 1.0),
    "absolute": (-1.0, 0.25, 1.0),
    "quantile": (-0.75, 0.1, 0.25),
    "epsilon-insensitive": (0.0, 0.5, 1.0),
}
H = 2.0**-10


def one_sided(f, p, y):
    """The slopes of the chords to the left and to the right: of lines, exactly."""
    return (f(p, y) - f(p - H, y)) / H, (f(p + H, y) - f(p, y)) / H


@pytest.mark.parametrize("name", KINKS)
def test_the_interval_of_slopes_is_that_between_the_sides(name):
    make, f, kinks, _ = KINKS[name]
    for y, p in kinks:
        left, right = make().subdifferential(p, y)
        assert (left, right) == one_sided(f, p, y)
        assert left < right
        for q in (p - 0.25, p + 0.25):  # off the kink it is one slope
            assert make().subdifferential(q, y) == one_sided(f, q, y) == (make().slope(q, y),) * 2


@pytest.mark.parametrize("name", KINKS)
def test_it_is_all_subgradients_and_nothing_else(name):
    make, f, kinks, _ = KINKS[name]
    grid = np.linspace(-4.0, 4.0, 65)
    for y, p in kinks:
        left, right = make().subdifferential(p, y)
        for g in np.linspace(left, right, 9):
            assert all(f(q, y) >= f(p, y) + g * (q - p) - 1e-15 for q in grid)
        for g in (left - 0.01, right + 0.01):
            assert any(f(q, y) < f(p, y) + g * (q - p) - 1e-6 for q in grid)


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_without_a_kink_it_is_the_slope(loss):
    for p in (-1.5, 0.0, 0.3, 1.0):
        assert loss.subdifferential(p, 1.0) == (loss.slope(p, 1.0),) * 2


def test_the_kink_of_a_loss_of_ones_own_is_found():
    @rue.parameter
    class Kinked(rue.Loss):
        def value(self, p, y):
            return max(2.0 * (p - y), -3.0 * (p - y))

        def slope(self, p, y):
            return 2.0 if p > y else -3.0

    assert Kinked().subdifferential(0.7, 0.7) == (-3.0, 2.0)
    assert Kinked().subdifferential(0.8, 0.7) == (2.0, 2.0)


def test_what_is_not_convex_has_none():
    with pytest.raises(rue.SettingsError, match="ZeroOne: is not convex, so it has no subgradients"):
        rue.ZeroOne().subdifferential(0.0, 1.0)


@pytest.mark.parametrize("name", KINKS)
def test_the_slope_at_the_kink_can_be_chosen(name):
    make, _, kinks, slope = KINKS[name]
    for a in CHOICES[name]:
        chosen = make(at_kink=a)
        for y, p in kinks:
            assert chosen.slope(p, y) == slope(a, p, y)
            for q in (p - 0.25, p - 1e-6, p + 1e-6, p + 0.25):
                assert chosen.slope(q, y) == make().slope(q, y)  # elsewhere nothing changes
                assert chosen.value(q, y) == make().value(q, y)
        rue.checks.check_loss(chosen)


@pytest.mark.parametrize(
    ("name", "a", "words"),
    [
        ("hinge", 1.5, "Hinge: at_kink must lie between 0 and 1, the slopes on both sides of the kink, not be 1.5."),
        ("perceptron", -0.1, "PerceptronLoss: at_kink must lie between 0 and 1,"),
        ("absolute", 1.1, "Absolute: at_kink must lie between -1 and 1,"),
        ("quantile", 0.3, "Quantile: at_kink must lie between -0.75 and 0.25,"),
        ("epsilon-insensitive", -0.2, "EpsilonInsensitive: at_kink must lie between 0 and 1,"),
    ],
)
def test_a_slope_that_is_no_subgradient_is_refused(name, a, words):
    with pytest.raises(rue.SettingsError) as refused:
        KINKS[name][0](at_kink=a)
    assert str(refused.value).startswith(words)


def test_rosenblatts_perceptron_corrects_a_zero_margin():
    assert rue.PerceptronLoss().rosenblatt
    assert not rue.PerceptronLoss(at_kink=0.5).rosenblatt


# The default is written as before, so that model files of before and after are the same.


def test_model_files_of_before_still_load():
    assert (repr(rue.Hinge()), to_json(rue.Hinge())) == ("Hinge()", {"Hinge": {}})
    assert to_json(rue.Quantile(0.9)) == {"Quantile": {"tau": 0.9}}
    assert from_json({"Hinge": {}}) == rue.Hinge() == rue.Hinge(at_kink=1)
    assert from_json({"EpsilonInsensitive": {"epsilon": 0.5}}) == rue.EpsilonInsensitive(0.5)


def test_a_choice_is_saved(tmp_path):
    learner = rue.OGD("hinge:0.25", "ball:2")
    learner.run([[1.0, 0.0], [0.5, 0.5]], [1, -1])
    rue.save(learner, tmp_path / "m.rue")
    again = rue.load(tmp_path / "m.rue").learner
    assert again.loss == rue.Hinge(at_kink=0.25)
    assert repr(again.loss) == "Hinge(at_kink=0.25)"


def test_on_the_command_line(inside, tmp_path):
    (tmp_path / "d.csv").write_text("y,a\n1,1\n-1,-1\n1,2\n-1,0.5\n")
    answered = inside(
        "learn", tmp_path / "d.csv", "--target", "y", "--learner", "ogd", "--loss", "hinge:0.5", "--domain", "ball:2"
    )
    assert "Hinge(at_kink=0.5)" in answered.out


# Learning: the update is the one chosen, and the theorems hold for every choice.


def descent(X, y, slope, eta, U):
    """Projected subgradient descent with a fixed step: predictions, and Σ‖g_t‖²."""
    w, predictions, squares = np.zeros(X.shape[1]), [], 0.0
    for x, label in zip(X, y, strict=True):
        p = float(w @ x)
        g = slope(p, label) * x
        predictions.append(p)
        squares += float(g @ g)
        w = w - eta * g
        w *= min(1.0, U / max(float(np.linalg.norm(w)), 1e-300))
    return np.array(predictions), squares


@pytest.mark.parametrize("a", [0.0, 0.25, 0.5, 1.0])
def test_every_choice_is_learnt_with_and_keeps_the_theorems(a, interpreted):
    rng, T, eta, U = np.random.default_rng(3), 64, 0.5, 4.0
    X = np.eye(3)[rng.integers(0, 3, T)]  # steps of ½ along the axes: margins are halves, and often exactly 1
    y = np.where(rng.random(T) < 0.7, 1.0, -1.0)
    wanted, squares = descent(X, y, lambda p, y: -y if y * p < 1 else -a * y if y * p == 1 else 0.0, eta, U)
    assert np.sum(y * wanted == 1.0) >= 3  # the kink is met
    learner = rue.OGD(rue.Hinge(at_kink=a), f"ball:{U}", f"fixed:{eta}", intercept=False)
    run = rue.learn(X, y, learner=learner)
    np.testing.assert_allclose(run.predictions, wanted, atol=1e-12)
    best = rue.best_in_hindsight(X, y, loss="hinge", radius=U, intercept=False)
    regret = run.loss - best.value
    norm = float(np.linalg.norm(best.point))
    assert regret <= norm**2 / (2 * eta) + eta / 2 * squares + 1e-6  # B5
    assert regret <= run.certificate(U).regret_at_most + 1e-6  # D1
    for bound in rue.bounds(rue.trace(learner, X, y), regret=regret):
        assert bound.holds in (True, None), str(bound)
