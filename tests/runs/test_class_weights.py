"""Class weights: scikit-learn's formula with the counts so far, in any block size, resumed, merged, in estimators."""

import itertools
import json

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

import rue
from rue.models.file import Model, load_model
from rue.models.merging import merge_models
from rue.runs.class_weights import ClassWeights
from rue.sklearn import OGDClassifier, PerceptronClassifier, RueClassifier, SVMClassifier

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
TWO = np.where(X[:, 0] + RNG.standard_normal(60) > 1.0, "yes", "no")
THREE = np.where(X[:, 1] > 0.8, "b", np.where(TWO == "yes", "c", "a"))
COLUMN = RNG.uniform(0.5, 2.0, 60) * (RNG.random(60) < 0.9)


def balanced(y, column=None):
    """By scikit-learn, of the rows up to each: one of weight 0 is not there."""
    there = np.ones(len(y), dtype=bool) if column is None else column > 0.0
    out = np.ones(len(y))
    for t in np.flatnonzero(there):
        out[t] = compute_sample_weight("balanced", y[: t + 1][there[: t + 1]])[-1]
    return out


def given(y):
    return np.where(y == "yes", 5.0, np.where(y == "b", 0.5, 1.0))


@pytest.mark.parametrize("column", [None, COLUMN], ids=["", "weights"])
@pytest.mark.parametrize(
    ("y", "rule", "weigh"),
    [(TWO, "balanced", balanced), (THREE, "balanced", balanced), (TWO, {"yes": 5}, lambda y, _: given(y))],
    ids=["two", "three", "named"],
)
def test_a_run_is_that_with_these_weights(y, rule, weigh, column, interpreted):
    factors, learner = weigh(y, column), rue.SoftmaxMixture() if y is THREE else rue.OGD()
    wanted = rue.learn(X, y, weights=factors if column is None else factors * column, learner=learner)
    whole = rue.learn(X, y, weights=column, class_weight=rule, learner=learner)
    cuts = [0, 1, 2, 9, 40, 60]
    parts = [slice(a, b) for a, b in itertools.pairwise(cuts)]
    blocks = [rue.Block(X[part], y[part], None if column is None else column[part]) for part in parts]
    for run in (whole, rue.learn(blocks, class_weight=rule, learner=learner)):
        assert run.predictions.tobytes() == wanted.predictions.tobytes()
        assert (run.loss, run.mistakes) == (wanted.loss, wanted.mistakes)
        np.testing.assert_array_equal(run.weights, wanted.weights)
        assert run.learner == wanted.learner
    if y is TWO:
        assert rue.audit(whole, X, y).certificate.loss_total == pytest.approx(wanted.loss)
        traced = rue.trace(whole, X, y, column)
        np.testing.assert_array_equal(traced.weights, wanted.weights[wanted.weights > 0.0])


def csv(path, rows):
    lines = [f"{a!r},{b!r},{label}" for (a, b, _), label in zip(X[rows].tolist(), TWO[rows].tolist(), strict=True)]
    path.write_text("\n".join(["a,b,bought", *lines]) + "\n")
    return path


def test_on_the_command_line_resumed(tmp_path, inside, interpreted):
    weights = ["--class-weight", "balanced"]
    options = ["--target", "bought", "--learner", "ogd", *weights, "-q"]
    files = [csv(tmp_path / f"{k}.csv", rows) for k, rows in enumerate((slice(0, 35), slice(35, 60)))]
    inside("learn", *files, *options, "--model", tmp_path / "w.rue", "--report", tmp_path / "w.json")
    inside("learn", files[0], *options, "--model", tmp_path / "m.rue")
    again = ["--resume", tmp_path / "m.rue", *weights, "--report", tmp_path / "r.json", "-q"]
    said = inside("learn", files[1], *again, "--model", tmp_path / "r.rue").out
    report, whole = (json.loads((tmp_path / name).read_text()) for name in ("r.json", "w.json"))
    assert report["loss_total"] == whole["loss_total"]
    assert report["best_constant"] == whole["best_constant"]
    total, yes = len(TWO), int((TWO == "yes").sum())
    now = {"no": total / (2 * (total - yes)), "yes": total / (2 * yes)}
    assert report["class_weight"] == {"rule": "balanced", "now": pytest.approx(now)}
    assert f"weighted     by class, balanced by the counts so far; at the end: 'no' {now['no']:.4g}" in said
    resumed, model = load_model(tmp_path / "r.rue"), load_model(tmp_path / "w.rue")
    assert resumed.learner == model.learner
    assert resumed.counts["class_weight"] == model.counts["class_weight"]
    assert "examples weigh by class, balanced: 'no'" in inside("inspect", tmp_path / "r.rue").out
    inside("race", *files, "--learners", "ogd", *options[:2], *weights, "-q", "--report", tmp_path / "a.json")
    race = json.loads((tmp_path / "a.json").read_text())
    assert race["learners"][0]["loss_total"] == pytest.approx(whole["loss_total"], rel=1e-12)
    assert race["notes"][0].startswith(f"risks and losses are weighted by class, at the end: 'no' {now['no']:.4g}")
    zeros = tmp_path / "p.txt"
    zeros.write_text("0\n" * total)
    options = ["--loss", "logistic", "--radius", 1, *options[:2], *weights, "--report", tmp_path / "c.json", "-q"]
    inside("certify", *files, "--predictions", zeros, *options)
    said = json.loads((tmp_path / "c.json").read_text())
    assert said["loss_total"] == pytest.approx(np.log(2.0) * balanced(TWO).sum())
    wrong = inside("learn", files[1], "--resume", tmp_path / "m.rue", "--class-weight", "yes=2", ok=2).err
    assert "--class-weight contradicts --resume" in wrong


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("yes", "class weights are balanced, or such as yes=5,no=1, not 'yes'."),
        ("ys=5", "class weights (--class-weight) name 'ys', but the classes are 'no' and 'yes'."),
        ("yes=-1", "the weight of the class 'yes' must be a finite number, 0 or more, not -1.0."),
    ],
)
def test_what_is_no_class_weight(text, sentence, tmp_path, inside):
    path = csv(tmp_path / "t.csv", slice(0, 60))
    said = inside("learn", path, "--target", "bought", "--learner", "ogd", "--class-weight", text, "-q", ok=2).err
    assert sentence in said
    with pytest.raises(rue.SettingsError, match="are for classes"):
        rue.learn(X, X[:, 0], class_weight="balanced")


def test_counts_of_parts_add_up(interpreted):
    """Also where each part has numbered its classes in an order of its own."""
    how = {"class_weight": "balanced", "maps": None}
    parts = [rue.learn(X[rows], THREE[rows], **how) for rows in (slice(0, 40), slice(40, 60))]
    models = [
        Model(run.learner, run.evidence, run.labels, counts={"class_weight": run.class_weights.to_json()})
        for run in parts
    ]
    empty = Model(rue.SoftmaxMixture())
    merged = merge_models(empty, models)
    counts = ClassWeights.from_json(merged.counts["class_weight"]).counts
    names = merged.labels.numbers()
    classes, many = np.unique(THREE, return_counts=True)
    assert {names[number]: count for number, count in counts.items()} == dict(zip(classes, many, strict=True))
    models[1].counts.clear()
    with pytest.raises(rue.SettingsError, match="different class weights"):
        merge_models(empty, models)


@pytest.mark.parametrize("estimator", [RueClassifier, OGDClassifier, PerceptronClassifier, SVMClassifier])
@pytest.mark.parametrize("rule", ["balanced", {"yes": 5.0}], ids=str)
def test_estimators_weigh_as_scikit_learn_does(estimator, rule, interpreted):
    whole = estimator(class_weight=rule).fit(X, TWO, sample_weight=COLUMN)
    wanted = estimator().fit(X, TWO, sample_weight=COLUMN * compute_sample_weight(rule, TWO))
    assert whole.coef_.tobytes() == wanted.coef_.tobytes()
    running = balanced(TWO, COLUMN) if rule == "balanced" else given(TWO)
    classes = ["no", "yes"]
    wanted = estimator().partial_fit(X, TWO, classes, sample_weight=COLUMN * running)
    parts = estimator(class_weight=rule)
    for rows in (slice(0, 1), slice(1, 30), slice(30, 60)):
        parts.partial_fit(X[rows], TWO[rows], classes, sample_weight=COLUMN[rows])
    assert parts.coef_.tobytes() == wanted.coef_.tobytes()
