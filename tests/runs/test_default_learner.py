"""The default learner: in stages, and how to get the linear one, wherever there is a default."""

import json

import numpy as np
import pytest

import rue
import rue.river
import rue.sklearn
from rue.models.file import load_model
from rue.runs.driver import default_learner, default_name
from rue.serve.fold import Fold
from rue.serve.records import CREATE, Record
from rue.serve.replaying import _options
from rue.serve.settings import Settings, settings_of


def product(n=1500, seed=0):
    """Rows whose label no linear model knows anything about."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, np.sign(X[:, 0] * X[:, 1])


@pytest.fixture
def table(tmp_path):
    X, y = product()
    path = tmp_path / "t.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="", fmt="%.6g")
    return path


def test_one_place_chooses_the_default():
    assert default_learner("classify") == rue.Staged()
    assert default_learner("regress") == rue.Staged("square")
    assert default_learner("classify", maps=None, budget=200) == rue.Mixture(budget=200)
    assert default_learner("regress", maps=None) == rue.Mixture("square")
    assert default_learner("multiclass", intercept=False) == rue.SoftmaxMixture(intercept=False)
    assert default_learner("multiclass", maps="auto") == rue.StagedSoftmax()
    assert [default_name(given, False) for given in ({"loss"}, {"loss", "step"}, {"domain"})] == [
        "staged",
        "ogd",
        "ogd",
    ]
    assert default_name({"loss"}, True) == "mixture"


def test_it_learns_what_no_linear_model_knows_and_without_maps_it_is_the_linear_one():
    X, y = product()
    run, linear = rue.learn(X, y), rue.learn(X, y, maps=None)
    assert (linear.mistakes > 600, run.mistakes < 300) == (True, True)
    mixture = rue.Mixture()
    assert np.array_equal(linear.predictions, mixture.run(X, y))
    assert linear.learner == mixture
    assert run.members.loss == linear.loss
    frozen = np.mean(run.predict(X) * y <= 0.0)
    assert frozen < 0.15


def test_numbers_are_learnt_in_stages_too_and_cost_at_most_the_price():
    X, y = product()
    labels = {"product": y + X[:, 2], "noise": np.random.default_rng(1).normal(size=y.size)}
    for name, z in labels.items():
        run, linear = rue.learn(X, z, task="regress"), rue.learn(X, z, task="regress", maps=None)
        behind = np.cumsum(run.losses - linear.losses)
        assert behind.max() <= run.stages.price_at_most * (1.0 + 1e-9) + 1e-9
        assert run.stages.gain == pytest.approx(linear.loss - run.loss)
        assert (run.loss < 0.7 * linear.loss) == (name == "product")


def test_the_command_line(table, tmp_path, inside):
    options = [table, "--target", "y", "-q"]
    printed = inside("learn", *options, "--model", tmp_path / "m.rue", "--report", tmp_path / "r.json").out
    report = json.loads((tmp_path / "r.json").read_text())
    assert "learner      Staged(" in printed
    assert [stage["kind"] for stage in report["stages"]["stages"]] == [
        *("the features as they are", "bins and pairs of columns", "32 random trees", "the stages' predictions")
    ]
    for line in report["stages"]["lines"]:
        assert line in printed
    assert report["certificate"]["words"][:40] in printed
    assert "no linear model over the features and the bins, pairs and trees" in printed
    run = rue.learn(str(table), "y")
    assert load_model(tmp_path / "m.rue").learner == run.learner
    assert report["mapped_certificate"]["regret_at_most"] == run.mapped_certificate().regret_at_most
    inside("learn", *options, "--linear", "--model", tmp_path / "l.rue", "--report", tmp_path / "l.json")
    inside("learn", *options, "--learner", "mixture", "--model", tmp_path / "x.rue")
    assert load_model(tmp_path / "l.rue").learner == load_model(tmp_path / "x.rue").learner
    linear = json.loads((tmp_path / "l.json").read_text())
    assert (linear["stages"], linear["mapped_certificate"]) == (None, None)
    said = inside("learn", *options, "--linear", "--learner", "mixture", ok=2)
    assert "--linear is about the default learner" in said.err
    assert "opposites" in inside("learn", *options, "--linear", "--maps", ok=2).err
    assert "2 shards" in inside("learn", *options, "--shards", "2", "--on", "inline", "--model", tmp_path / "s.rue").out
    assert load_model(tmp_path / "s.rue").learner.algorithm.name == "Mixture"  # which the docs promise


def test_a_run_in_two_halves_is_one_run_to_the_bit(table, tmp_path, inside):
    lines = table.read_text().splitlines()
    halves = tmp_path / "first.csv", tmp_path / "second.csv"
    for path, part in zip(halves, (lines[1:700], lines[700:]), strict=True):
        path.write_text("\n".join([lines[0], *part, ""]))
    inside("learn", table, "--target", "y", "--model", tmp_path / "whole.rue", "-q")
    inside("learn", halves[0], "--target", "y", "--model", tmp_path / "parts.rue", "-q")
    inside("learn", halves[1], "--resume", tmp_path / "parts.rue", "--model", tmp_path / "parts.rue", "-q")
    whole, parts = (load_model(tmp_path / f"{name}.rue") for name in ("whole", "parts"))
    assert parts.learner == whole.learner
    predicted = [inside("predict", tmp_path / f"{name}.rue", halves[1]).out for name in ("whole", "parts")]
    assert predicted[0] == predicted[1]
    inside("learn", halves[0], "--target", "y", "--linear", "--model", tmp_path / "l.rue", "-q")
    inside("learn", halves[1], "--resume", tmp_path / "l.rue", "--linear", "-q")
    assert (
        "--linear contradicts" in inside("learn", halves[1], "--resume", tmp_path / "parts.rue", "--linear", ok=2).err
    )


def test_what_maps_saw_before_a_run_is_not_in_its_certificate():
    X, y = product(600)
    learner = rue.Staged()
    learner.run(X[:300], y[:300])
    run = rue.learn(X[300:], y[300:], learner=learner)
    with pytest.raises(rue.SettingsError, match="has learnt 600 examples, and this run 300"):
        run.mapped_certificate(1.0)
    assert run.report().fields["mapped_certificate"] is None


def test_the_most_telling_mapped_certificate_is_one_of_those_at_a_radius():
    run = rue.learn(*product(600))
    certificate = run.mapped_certificate()
    assert certificate.alone == run.mapped_certificate(certificate.radius).alone


def test_the_estimators():
    X, y = product(400)
    assert rue.sklearn.RueClassifier().fit(X, y).learner_.algorithm.name == "Staged"
    assert rue.sklearn.RueClassifier(maps=None).fit(X, y).learner_.algorithm.name == "Mixture"
    assert rue.sklearn.RueRegressor().fit(X, y + X[:, 2]).learner_ == rue.learn(X, y + X[:, 2]).learner
    assert rue.river.RueRegressor()._learner == rue.Staged("square")
    assert rue.river.RueClassifier(classes=(0, 1), maps=None)._learner == rue.Mixture()


def test_a_served_model_says_in_the_log_whether_it_has_stages():
    """Models of logs from before stages have no word about them there: they stay linear."""

    def created(body):
        fold = Fold()
        fold.apply([Record(1, 0, 1, CREATE, "m", body)])
        return fold

    fold = Fold()
    new = fold.creation("m", Settings(task="regress"))
    assert json.loads(new.body) == {"task": "regress", "stages": True}
    fold = created(new.body)
    assert fold.named("m").settings.driver().maps == "default"
    assert fold.creation("m", Settings(task="regress")) is None  # it is there
    with pytest.raises(rue.DataError, match="other options"):
        fold.creation("m", Settings(task="regress", linear=True))
    old = created(b'{"task": "regress"}')
    assert old.named("m").settings.driver().maps is None
    assert old.creation("m", Settings(task="regress")) is None
    assert [list(_options(each.named("m"))) for each in (fold, old)] == [
        ["--task", "regress"],
        ["--linear", "--task", "regress"],
    ]
    for options in ({"linear": True}, {"maps": True}, {"learner": "ogd"}, {"step": "sqrt:1"}):
        assert "stages" not in json.loads(Fold().creation("m", settings_of(options)).body)
    with pytest.raises(rue.SettingsError, match="linear is about the default learner"):
        settings_of({"linear": True, "learner": "mixture"})
