"""The report and the page where baselines are negative or not finite."""

import json

import numpy as np
import pytest

import rue
from rue.reports.report import page, report
from rue.runs.driver import Driver


@pytest.fixture(autouse=True)
def uncompiled(interpreted):
    """Nothing here depends on compiled code."""


def reported(loss, y):
    driver = Driver(rue.Mixture(loss))
    driver.learn_all(np.arange(len(y), dtype=float)[:, None] / len(y), np.array(y, dtype=float))
    return report(driver)


def test_a_baseline_that_is_not_finite_is_none_and_valid_json():
    summary = reported("absolute", [1e300, 0.0, 2.0])
    json.loads(json.dumps(summary, allow_nan=False))
    driver = Driver(rue.Mixture("square"))
    driver.learn_all(np.ones((3, 1)), np.array([1.0, 2.0, 3.0]))
    driver.baselines.sums[:] = np.inf
    summary = report(driver)
    assert summary["no_change"] is None
    assert "saying the last label again infinite" in page(summary)


def test_negative_baselines_are_shown():
    y = [30.0, 40.0, 50.0, 40.0]
    summary = reported("poisson", y)
    least = sum(np.exp(c := np.log(np.mean(y))) - label * c for label in y) / len(y)
    assert least < 0.0
    assert summary["best_constant"] / len(y) == pytest.approx(least)
    assert f"best constant {summary['best_constant'] / len(y):.6g}" in page(summary)


def test_a_total_loss_of_0_has_baselines():
    summary = {**reported("square", [5.0, 5.0, 5.0, 7.0]), "loss_total": 0.0, "risk": 0.0}
    assert f"best constant {summary['best_constant'] / 4:.6g}" in page(summary)


def test_the_last_count_again_is_its_logarithm():
    """A Poisson model predicts the logarithm of a rate: repeating the label 900 itself would cost e^900."""
    y = [900.0, 30.0, 40.0]
    again = [0.0, np.log(900.0), np.log(30.0)]
    wanted = sum(np.exp(p) - label * p for p, label in zip(again, y, strict=True))
    assert reported("poisson", y)["no_change"] == pytest.approx(wanted)
