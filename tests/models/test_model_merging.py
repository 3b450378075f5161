"""Models of parts of a stream, put together."""

import numpy as np
import pytest

import rue
from rue.learners import SoftmaxMixture
from rue.models.file import Model, load, save
from rue.models.merging import merge_models
from rue.runs.baselines import Baselines

pytestmark = pytest.mark.usefixtures("interpreted")


def stream(T, classes=False):
    random = np.random.default_rng(T)
    X = random.standard_normal((T, 2))
    score = X @ [1.0, -1.0] + 0.3 * random.standard_normal(T)
    return X, np.where(score > 0.7, "c", np.where(score > -0.7, "b", "a")) if classes else np.where(score > 0, 1, -1)


def model(X, y, labels=None, **options):
    run = rue.learn(X, y, **{"maps": None, **options})
    return Model(run.learner, run.evidence, run.labels, history=[{"examples": len(y)}], counts={"refused": run.refused})


def went_on(base, X, y):
    """A copy of a model that has learnt more, as a worker would."""
    labels = base.labels.extended(y) if base.labels.task == "multiclass" else base.labels
    learner, block = base.learner.copy(), rue.Block(X, labels.encode(y))
    evidence = rue.regret.certificates.evidence.open_evidence(learner.loss)
    predictions = learner.run(X, labels.encode(y))
    evidence = base.evidence.merged(base.evidence._empty())
    evidence.enter(block, predictions, learner.intercept, 0)
    return Model(
        learner, evidence, labels, [*base.history, {"examples": len(y)}], counts={"refused": base.counts["refused"] + 2}
    )


def test_the_model_of_two_parts(tmp_path):
    X, y = stream(90)
    base = model(X[:30], y[:30], learner=rue.Mixture())
    parts = [went_on(base, X[30:60], y[30:60]), went_on(base, X[60:], y[60:])]
    merged = merge_models(base, parts)
    assert merged.learner.t == 90
    assert merged.evidence.ledger.sums[0] == 90
    assert [entry["examples"] for entry in merged.history] == [30, 30, 30]
    assert merged.counts == {"refused": 4}
    true = rue.best_in_hindsight(X, y, radius=2.0).value
    assert merged.evidence.certificate(rue.Ball(2.0), "raw").comparator_loss_at_least <= true
    save(merged, tmp_path / "m")
    assert load(tmp_path / "m").learner == merged.learner
    alone = merge_models(base, [base, parts[0]])
    assert alone.learner == parts[0].learner
    assert alone.evidence.ledger.sums.tolist() == parts[0].evidence.ledger.sums.tolist()


def test_parts_that_number_new_classes_differently(tmp_path):
    X, y = stream(120, classes=True)
    known = y == "b"
    base = model(X[known][:20], y[known][:20], task="multiclass")
    order = [np.argsort(y[40:80] == "a", kind="stable"), np.argsort(y[80:] == "c", kind="stable")]
    parts = [went_on(base, X[40:80][order[0]], y[40:80][order[0]]), went_on(base, X[80:][order[1]], y[80:][order[1]])]
    assert parts[0].labels.classes == ("b", "c", "a")
    assert parts[1].labels.classes == ("b", "a", "c")
    merged = merge_models(base, parts)
    assert merged.labels.classes == ("b", "c", "a")
    counts = merged.learner._point.counts[:3]
    learnt = np.concatenate([y[known][:20], y[40:]])
    assert counts.tolist() == [np.sum(learnt == name) for name in merged.labels.classes]
    p = merged.learner.predict_many(X)
    assert np.mean(np.array(merged.labels.classes)[p[:, 1:].argmax(axis=1)] == y) > 0.6


def test_parts_that_do_not_agree_are_refused():
    X, y = stream(30)
    base = Model(rue.OGD())
    parts = [model(X, np.where(y > 0, a, b), learner=rue.OGD()) for a, b in (("yes", "no"), ("spam", "ham"))]
    with pytest.raises(rue.SettingsError, match="merge: labels mean .*yes.* in one part and .*spam"):
        merge_models(base, parts)
    told = [Model(part.learner, features={"kind": kind}) for part, kind in zip(parts, ("a", "b"), strict=True)]
    with pytest.raises(rue.SettingsError, match=r"parts\[1\] makes features of data in another way"):
        merge_models(Model(rue.OGD(), features={"kind": "a"}), told)


def test_the_baselines_of_parts_that_number_classes_differently():
    whole, loss = ["b", "b", "c", "a", "b", "a", "a", "c", "c", "b"], SoftmaxMixture().loss
    models = []
    for words in (whole[:2], whole[:5], [*whole[:2], *whole[5:]]):
        model_ = model(np.ones((len(words), 1)), np.array(words), task="multiclass")
        counted = Baselines()
        counted.enter(loss, model_.labels.encode(np.array(words)), np.empty(0), np.zeros(len(words)))
        lists = {"baselines": counted.sums.tolist(), "values": counted.values.tolist()}
        model_.counts |= lists | {"masses": counted.masses.tolist(), "digits": counted.digits}
        models.append(model_)
    merged = merge_models(models[0], models[1:])
    names = [merged.labels.classes[int(number) - 1] for number in merged.counts["values"]]
    assert dict(zip(names, merged.counts["masses"], strict=True)) == {"a": 3.0, "b": 4.0, "c": 3.0}
    assert merged.labels.classes[int(merged.counts["baselines"][-1]) - 1] == "b"
    del models[1].counts["baselines"]
    assert "values" not in merge_models(models[0], models[1:]).counts  # what is not known of one is left out


def test_the_rows_that_effects_are_tried_on_come_back_from_the_only_part_that_learnt():
    X, y = stream(120)
    runs = [rue.learn(X[:rows], y[:rows], learner="staged:maps=trees:2") for rows in (60, 120)]
    base, part = (Model(run.learner, run.evidence, run.labels, background=run.background) for run in runs)
    assert part.background is not None
    assert merge_models(base, [base, part]).background is part.background
    assert merge_models(base, [part, part]).background is None
