"""Pictures of windows and calibration: what is drawn is what the run says."""

import numpy as np
import pytest

import rue


@pytest.fixture(scope="module")
def run():
    X, y = rue.census()
    return rue.learn(X[:2000], y[:2000], learner=rue.OGD(domain="ball:3"))


def test_the_lines_of_windows_are_their_losses_and_certificates(run):
    lines = {line.get_label(): line.get_ydata() for line in rue.plot_windows(run, radius=3).get_lines()}
    risks = [window.risk for window in run.windows]
    assert lines["this learner, mean"][::2] == pytest.approx(risks)
    window = run.windows[4]
    least = run.certificate(radius=3, window=(window.first, window.last)).comparator_loss_at_least / window.weight
    assert lines["linear models, at least"][8] == pytest.approx(least)


def test_the_line_of_changes_falls(run):
    lines = {line.get_label(): line.get_ydata() for line in rue.plot_changes(run, radius=1).get_lines()}
    assert (np.diff(lines["at least"]) <= 1e-12).all()
    assert lines["at least"][0] == pytest.approx(run.certificate(radius=1).comparator_loss_at_least / run.loss)


def test_the_dots_of_calibration_are_its_bins(run):
    lines = {line.get_label(): line for line in rue.plot_calibration(run).get_lines()}
    assert lines["this learner"].get_ydata() == pytest.approx([part.happened for part in run.calibration().bins])


def test_all_of_them_are_saved(run, tmp_path):
    for name, draw in (("w", run.plot_windows), ("c", run.plot_calibration), ("r", run.plot)):
        draw(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    with pytest.raises(rue.SettingsError, match="give a run, not int"):
        rue.plot_windows(3)
