"""`learn(learner=…)` with a run or a model: a stream in parts is the stream in one, to the last bit."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import rue

ROWS, CUT = 90, 37


def data(classes):
    rng = np.random.default_rng(classes)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=ROWS).round(2),
            "wood": rng.choice(["oak", "ash", None], size=ROWS),
            "weight": rng.choice([0.0, 1.0, 2.5], size=ROWS),
        }
    )
    score = table["size"] + (table["wood"] == "oak")
    if not classes:
        return table.assign(y=score)
    return table.assign(y=np.array(["u", "t", "s"])[np.searchsorted([0.5, 1.5][: classes - 1], score)])


def assert_same(one, other):
    assert one.learner == other.learner
    assert one.labels == other.labels
    assert (one.examples, one.loss, one.mistakes, one.refused, one.missing) == (
        other.examples,
        other.loss,
        other.mistakes,
        other.refused,
        other.missing,
    )
    assert one.counts == other.counts
    assert one.course.loss == other.course.loss
    assert str(dict(one.metrics)) == str(dict(other.metrics))
    assert one.names == other.names
    if one.labels.task != "multiclass":
        assert np.array_equal(one.ledger.S, other.ledger.S)
        for radius in (None, 2.0):
            assert one.certificate(radius=radius) == other.certificate(radius=radius)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("through_a_file", [False, True], ids=["run", "file"])
@pytest.mark.parametrize("classes", [2, 3, 0])
def test_tables_in_two_parts_are_one_table(classes, through_a_file, tmp_path):
    table = data(classes)
    more = {} if classes == 3 else {"witnesses": [1.0, 5.0], "units": "largest"}
    more |= {"class_weight": "balanced"} if classes == 2 else {}
    task = "multiclass" if classes == 3 else "auto"
    whole = rue.learn(table, "y", weights="weight", bits=12, task=task, **more)
    first = rue.learn(table[:CUT], "y", weights="weight", bits=12, task=task, **more)
    before = first.learner.copy(), first.loss
    if through_a_file:
        rue.save(first, tmp_path / "m.rue")
    model = rue.load(tmp_path / "m.rue") if through_a_file else first
    second = rue.learn(table[CUT:], learner=model)
    assert_same(second, whole)
    assert np.array_equal(second.predictions, whole.predictions[CUT:])
    assert [entry["examples"] for entry in second.history] == [first.examples, whole.examples - first.examples]
    assert (first.learner, first.loss) == before  # what was given has not changed
    again = rue.learn(table[CUT:], "y", weights="weight", bits=12, learner=model, **more)  # the same options as before
    assert_same(again, whole)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, None], ids=["dense", "sparse", "table"])
def test_arrays_in_two_parts_are_one_array(form):
    table = data(2)
    X = table[["size", "weight"]] if form is None else form(table[["size", "weight"]].to_numpy())
    y = (table["y"] == "u").to_numpy().astype(int)
    weights = table["weight"].to_numpy()
    whole = rue.learn(X, y, weights=weights, learner="adagrad")
    first = rue.learn(X[:CUT], y[:CUT], weights=weights[:CUT], learner="adagrad")
    assert_same(rue.learn(X[CUT:], y[CUT:], weights=weights[CUT:], learner=first), whole)
    if form is not None:  # without evidence: as the learner alone would go on
        model = rue.Model(first.learner, labels=first.labels)
        alone = rue.learn(X[CUT:], y[CUT:], weights=weights[CUT:], learner=model)
        assert alone.learner == whole.learner
        assert alone.examples == np.count_nonzero(weights[CUT:])


@pytest.mark.usefixtures("interpreted")
def test_the_command_line_goes_on_with_what_python_saved(inside, tmp_path):
    table = data(2)
    table[CUT:].to_csv(tmp_path / "rest.csv", index=False)
    table.to_csv(tmp_path / "all.csv", index=False)
    options = {"weights": "weight", "learner": "ogd"}
    rue.save(rue.learn(table[:CUT], "y", **options), tmp_path / "m.rue")
    inside("learn", tmp_path / "rest.csv", "--resume", tmp_path / "m.rue", "--report", tmp_path / "r.json", "-q")
    both = ["--target", "y", "--weight", "weight", "--learner", "ogd", "-q"]
    inside("learn", tmp_path / "all.csv", *both, "--report", tmp_path / "all.json")
    resumed, whole = (json.loads((tmp_path / name).read_text()) for name in ("r.json", "all.json"))
    for name in ("examples", "loss_total", "mistakes", "best_constant", "no_change", "missing", "certificate"):
        assert resumed[name] == whole[name], name


@pytest.mark.usefixtures("interpreted")
def test_what_contradicts_the_model_is_named():
    table = data(2)
    model = rue.learn(table[:CUT], "y", weights="weight", learner="ogd", witnesses=2.0)
    rest = table[CUT:]
    for options, sentence in (
        ({"target": "size"}, "target='size' contradicts the model, because its target is 'y': leave target out"),
        ({"y": np.ones(len(rest))}, r"y=an ndarray of shape \(53,\) contradicts .* it has learnt the column 'y'"),
        ({"weights": "size"}, "weights='size' contradicts the model, because its weights is 'weight'"),
        ({"bits": 10}, "bits=10 contradicts the model, because its bits is 20"),
        ({"drop": ["size"]}, r"drop=\['size'\] contradicts the model, because it has its columns: leave drop out"),
        ({"task": "regress"}, "task='regress' contradicts the model, because its task is 'classify'"),
        (
            {"positive": "t"},
            "positive='t' contradicts the model, because its positive class is 'u'",
        ),
        (
            {"class_weight": {"t": 2}},
            "class_weight=.* contradicts the model, because its class_weight is None",
        ),
        ({"units": "largest"}, "units='largest' contradicts the model, because its evidence is in raw units"),
        ({"witnesses": [2.0, 3.0]}, "witnesses=.* because its evidence has those of radius 2: leave witnesses out"),
        ({"curvature": True}, "curvature=True contradicts the model, because its evidence has none"),
    ):
        with pytest.raises(rue.SettingsError, match=f"learn: {sentence}"):
            rue.learn(rest, **{"learner": model, **options})
    with pytest.raises(rue.DataError, match="the column 'wood' is missing"):
        rue.learn(rest[["size", "y", "weight"]], learner=model)
    with pytest.raises(rue.DataError, match="learnt from files or tables"):
        rue.learn(np.ones((2, 2)), [0, 1], learner=model)
    with pytest.raises(rue.DataError, match="'t' nor 'u'|'u' nor 't'"):
        rue.learn(rest.assign(y="new"), learner=model)
