"""What `describe` says about a model."""

import numpy as np
import pytest

import rue
from rue.models.file import Model, load, save
from rue.regret.certificates.evidence import open_evidence
from rue.reports.inspection import describe, largest_weights


@pytest.fixture(autouse=True)
def uncompiled(interpreted):
    """Nothing here depends on compiled code."""


def test_the_largest_weights_by_their_names():
    learner = rue.Perceptron(d=5)
    learner._point.v[:] = [0.5, 0.0, -3.0, 1.0, -0.25, 0.0]
    model = Model(learner, names={0: "colour=red", 2: "size"})
    assert largest_weights(model) == []  # nothing learnt yet
    learner._point.memory[0] = 1.0
    assert largest_weights(model) == [("feature 1", -3.0), ("size", 1.0), ("intercept", 0.5), ("feature 3", -0.25)]
    assert largest_weights(model, 2) == [("feature 1", -3.0), ("size", 1.0)]
    bare = rue.Perceptron(d=2, intercept=False)
    bare._point.v[:], bare._point.memory[0] = [1.0, 2.0], 1.0
    assert largest_weights(Model(bare, names={0: "first"})) == [("feature 1", 2.0), ("first", 1.0)]


def test_names_of_dicts_serve_too():
    learner = rue.Perceptron()
    learner.update({"a": 1.0, 7: -2.0}, 1.0)
    assert largest_weights(Model(learner)) == [("7", -2.0), ("intercept", 1.0), ("a", 1.0)]


def test_a_page_about_a_run(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    run = rue.learn(X, np.where(X[:, 0] > 0, "ham", "spam"), learner=rue.OGD("hinge", "ball:2"))
    save(run, tmp_path / "m")
    model = load(tmp_path / "m")
    model.history.append(
        {"data": ["a.csv", "b.csv"], "examples": 12345, "date": "2026-01-01", "rue": "0.1.0", "passes": 2}
    )
    model.history.append({"odd": 1})
    model.position = {"row": 3}
    page = describe(model)
    assert repr(run.learner) in page
    assert "step √2·U/(G√t) with U = 2" in page
    assert "30 examples learnt, 3 features, 3 with a weight" in page
    assert f"predictions above 0 mean {run.labels.positive!r}, those below {run.labels.negative!r}" in page
    assert str(run.certificate()) in page
    assert f"{run.learner.bias:.6g}  intercept" in page
    assert "2026-01-01: 12,345 examples of a.csv, b.csv, passes 2, by rue 0.1.0" in page
    assert "{'odd': 1}" in page
    assert "it can be resumed there" in page
    assert str(run.certificate(radius=7)) in describe(model, radius=7)
    assert str(run.certificate()) not in describe(model, radius=7)


def test_left_out_examples_are_counted():
    learner = rue.OGD("hinge", "ball:2")
    model = Model(learner, open_evidence(learner.loss), counts={"refused": 2, "skipped": 3})
    learner.update(np.ones(2), 1.0)
    model.evidence.ledger.sums[:] = 1.0
    assert "(5 examples without a prediction left out)" in describe(model)


@pytest.mark.parametrize("learner", [rue.OGD(), rue.AdaGrad(), rue.FollowTheLeader(), rue.OGD("hinge", "simplex")])
def test_a_learner_that_has_not_begun(learner):
    assert "0 examples learnt, 0 features, 0 with a weight" in describe(Model(learner, open_evidence(learner.loss)))
