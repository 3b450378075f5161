"""Pictures that a lecturer draws: what is drawn equals formulas written here."""

import cvxpy as cp
import numpy as np
import pytest

import rue


def lines(ax):
    return {line.get_label(): line.get_xydata().T for line in ax.get_lines()}


def test_losses_against_the_margin():
    drawn = lines(rue.plot_losses())
    z, hinge = drawn["hinge"]
    np.testing.assert_allclose(hinge, np.maximum(0, 1 - z), atol=1e-12)
    np.testing.assert_allclose(drawn["perceptron"][1], np.maximum(0, -z), atol=1e-12)
    np.testing.assert_allclose(drawn["logistic"][1], np.log1p(np.exp(-z)), atol=1e-12)
    np.testing.assert_allclose(drawn["square"][1], (1 - z) ** 2, atol=1e-12)
    before, after = drawn["0-1"], drawn["_0-1"]  # with a gap where it jumps
    assert before[0].max() == 0.0
    assert after[0].min() > 0.0
    assert set(before[1]) == {1.0}
    assert set(after[1]) == {0.0}


def test_the_hinge_is_above_the_mistakes_and_the_perceptrons_loss_is_not():
    """What Figure 1 of lecture notes shows."""
    drawn = lines(rue.plot_losses())
    z = drawn["hinge"][0]
    mistakes = z <= 0
    assert (drawn["hinge"][1] >= mistakes).all()
    assert (drawn["logistic"][1] / np.log(2) >= mistakes - 1e-12).all()
    assert (drawn["perceptron"][1] < mistakes).any()


def test_slopes_jump_at_kinks_and_the_0_1_loss_has_none():
    drawn = lines(rue.plot_losses(slopes=True))
    assert not any("0-1" in label for label in drawn)
    assert drawn["hinge"][0].max() == pytest.approx(1.0)
    assert set(drawn["hinge"][1]) == {-1.0}
    assert set(drawn["_hinge"][1]) == {0.0}
    z, slope = drawn["logistic"]
    np.testing.assert_allclose(slope, -1 / (1 + np.exp(z)), atol=1e-12)
    assert "_logistic" not in drawn


def test_losses_of_ones_own_are_drawn_and_others_refused():
    assert list(lines(rue.plot_losses([rue.Huber(0.5), "quantile:0.9"]))) == ["Huber(delta=0.5)", "quantile:0.9"]
    with pytest.raises(
        rue.SettingsError, match=r"plot_losses: give losses that take the label 1, or their specs, not 3"
    ):
        rue.plot_losses([3])


@pytest.mark.parametrize(("loss", "p", "y", "slopes"), [("hinge", 1.0, 1.0, (-1, 0)), ("absolute", 0.5, 0.5, (-1, 1))])
def test_a_fan_at_a_kink(loss, p, y, slopes):
    ax = rue.plot_subgradients(loss, p, y=y)
    drawn = lines(ax)
    q, values = drawn["loss"]
    fan = [xy for label, xy in drawn.items() if label.startswith("g = ")]
    assert len(fan) == 5
    found = [(xy[1][-1] - xy[1][0]) / (q[-1] - q[0]) for xy in fan]
    np.testing.assert_allclose(found, np.linspace(*slopes, 5), atol=1e-12)
    for xy in fan:
        assert (xy[1] <= values + 1e-12).all()
    assert f"∂ℓ = [{str(slopes[0]).replace('-', '−')}, {slopes[1]}]" in ax.get_title(loc="left")


def test_a_tangent_where_there_is_no_kink():
    ax = rue.plot_subgradients(rue.Square(), 1.5, y=0.5)
    drawn = lines(ax)
    q, line = drawn["chosen"]
    np.testing.assert_allclose(line, 1 + 2 * (q - 1.5), atol=1e-12)
    assert sum(label.startswith("g = ") for label in drawn) == 1
    assert ax.get_title(loc="left") == "Square at p = 1.5: ∂ℓ = {2}"
    with pytest.raises(rue.SettingsError, match="plot_subgradients: give a convex loss that takes the label 1, not"):
        rue.plot_subgradients("zero-one")


@pytest.mark.parametrize(
    ("domain", "constraint"),
    [
        ("ball:1", lambda v: cp.norm(v) <= 1),
        ("l1-ball:1", lambda v: cp.norm1(v) <= 1),
        (rue.Halfspace([1, 2], 1), lambda v: v[0] + 2 * v[1] <= 1),
        ("simplex", lambda v: [cp.sum(v) == 1, v >= 0]),
    ],
    ids=["ball", "l1-ball", "halfspace", "simplex"],
)
def test_a_projection(domain, constraint):
    w = np.array([1.2, 1.3])
    u = np.array([0.5, 0.5]) if domain == "simplex" else np.array([-0.2, 0.1])
    ax = rue.plot_projection(domain, w, u=u)
    v = cp.Variable(2)
    wanted = constraint(v)
    cp.Problem(cp.Minimize(cp.norm(v - w)), wanted if isinstance(wanted, list) else [wanted]).solve(solver=cp.CLARABEL)
    marks = [line.get_xydata()[0] for line in ax.get_lines() if line.get_marker() == "o"]
    np.testing.assert_allclose(marks, [w, v.value, u], atol=1e-4)
    (border,) = [patch.get_xy() for patch in ax.patches]
    K = rue.make("domain", domain)
    assert all(K.contains(point) for point in border)  # the set that is drawn is no larger than it is


def test_projections_that_make_no_sense_are_refused():
    with pytest.raises(rue.SettingsError, match=r"plot_projection: u must lie in Ball\(radius=1.0\), and"):
        rue.plot_projection(u=(2.0, 2.0))
    with pytest.raises(rue.SettingsError, match="plot_projection: give a set of the plane"):
        rue.plot_projection(rue.Ball(1, [0.0, 0.0, 0.0]))
    with pytest.raises(rue.SettingsError, match="plot_projection: w and u are points of the plane"):
        rue.plot_projection(w=(1.0, 2.0, 3.0))


def test_paths_are_the_points_played(interpreted):
    games = {
        step: rue.play(rue.OGD(domain="ball:1", step=step), rue.OrthogonalAdversary(d=2), rounds=30)
        for step in ("sqrt:1", "fixed:0.2")
    }
    ax = rue.plot_paths(games)
    drawn = lines(ax)
    for step, game in games.items():
        np.testing.assert_array_equal(drawn[step].T, game.points)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["sqrt:1", "fixed:0.2"]
    assert ax.get_title(loc="left") == "Points played against OrthogonalAdversary(d=2, L=1.0)"
    (border,) = [patch.get_xy() for patch in ax.patches]
    np.testing.assert_allclose(np.linalg.norm(border, axis=1), 1.0, atol=1e-12)
    one = lines(rue.plot_paths(games["sqrt:1"], last=10))
    np.testing.assert_array_equal(one["points played"].T, games["sqrt:1"].points[-10:])
    wide = rue.play(rue.OGD(domain="ball:1"), rue.OrthogonalAdversary(d=3), rounds=5)
    for wrong in ({}, wide, {"a": 3}):
        with pytest.raises(rue.SettingsError, match="plot_paths: give games of the plane, by name"):
            rue.plot_paths(wrong)
