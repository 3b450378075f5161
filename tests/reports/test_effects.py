"""What moves predictions of a learner over maps: by brute force, parts that add up, rows that are drawn."""

import math

import numpy as np
import pytest

import rue
from rue.errors import SettingsError
from rue.models.file import model_of
from rue.pictures.effects import draw_effects
from rue.reports.effects import Trial, effects_of_model, shapley
from rue.runs.background import ROWS, Background
from rue.streams import Block


@pytest.fixture(scope="module")
def run():
    """Two columns that matter together, one that matters alone, one that does not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    odds = 3.0 * X[:, 0] * X[:, 1] + 2.0 * np.abs(X[:, 2])
    return rue.learn(X, np.where(rng.random(3000) < 1.0 / (1.0 + np.exp(-odds)), 1, -1), maps="auto")


def rows_of(run):
    X = np.zeros((len(run.background.rows), run.learner.d))
    for i, (indices, values) in enumerate(run.background.rows):
        X[i, indices] = values
    return X


def test_curves_and_tables_are_mean_predictions(run):
    effects, X = rue.effects_of(run), rows_of(run)
    assert {curve.name for curve in effects.curves[:3]} == {"feature 0", "feature 1", "feature 2"}
    curve = next(curve for curve in effects.curves if curve.name == "feature 2")
    means = []
    for point in curve.points:
        tried = X[:96].copy()
        tried[:, 2] = point
        means.append(run.learner.predict_many(tried).mean())
    expected = np.array(means) - np.array(means) @ curve.share
    np.testing.assert_allclose(curve.effect, expected, atol=1e-9)
    assert curve.effect[0] > curve.effect[len(curve.points) // 2] < curve.effect[-1]
    pair = effects.pairs[0]
    assert set(pair.names) == {"feature 0", "feature 1"}
    tried = X[: 6000 // 64].copy()
    a, b = (int(name.split()[1]) for name in pair.names)
    tried[:, a], tried[:, b] = pair.points[0][0], pair.points[1][-1]
    other = tried.copy()
    other[:, b] = pair.points[1][0]
    difference = run.learner.predict_many(tried).mean() - run.learner.predict_many(other).mean()
    assert pair.effect[0, -1] - pair.effect[0, 0] == pytest.approx(difference)
    assert pair.effect[0, -1] < pair.effect[0, 0] > pair.effect[-1, 0]
    assert "feature 0 × feature 1" in str(effects) or "feature 1 × feature 0" in str(effects)
    frozen = rue.effects_of(run, frozen=True)
    assert frozen.mean == pytest.approx(run.predict(X).mean())


def test_parts_of_a_prediction_add_up_and_are_shapley_values(run):
    X = rows_of(run)
    explained = rue.explain(run, X[5])
    assert explained.prediction == pytest.approx(run.predict(X[5:6])[0])
    assert abs(explained.rest) < 1e-9
    parts = {part.feature: part.contribution for part in explained.parts}
    assert abs(parts.get("feature 3", 0.0)) < max(abs(parts[f"feature {j}"]) for j in range(3))
    # Of two columns that are changed alone, a Shapley value has two orders: those are gone through in full.
    model, x, none = model_of(run), X[9] * [1, 1, 0, 0], X[:32] * [1, 1, 0, 0]
    model.background = Background()
    model.background.enter(Block(none))
    base, found, _ = shapley(model, np.arange(4), x)
    f = run.learner.frozen().predict_many
    first, second = none.copy(), none.copy()
    first[:, 0], second[:, 1] = x[0], x[1]
    expected = 0.5 * ((f(first) - f(none)) + (f(x[None, :])[0] - f(second))).mean()
    assert found["feature 0"] == pytest.approx(expected)
    assert base == pytest.approx(f(none).mean())


def test_it_is_in_the_model_file_and_on_the_command_line(run, tmp_path, inside):
    rue.save(run, tmp_path / "m.rue")
    model = rue.load(tmp_path / "m.rue")
    again, own = rue.effects_of(model), rue.effects_of(run)
    assert [curve.name for curve in again.curves] == [curve.name for curve in own.curves]
    np.testing.assert_array_equal(again.curves[0].effect, own.curves[0].effect)
    assert "feature 0 × feature 1" in inside(
        "inspect", tmp_path / "m.rue", "--effects", "--plot-effects", tmp_path / "f.png"
    ).out.replace("1 × feature 0", "0 × feature 1")
    assert "one stage of several" in inside("weights", tmp_path / "m.rue").err
    more = rue.learn(rows_of(run), np.ones(256), learner=model)
    assert more.background.seen == 3256
    figure = run.plot_effects(tmp_path / "e.png")
    assert (tmp_path / "e.png").stat().st_size > 10_000
    assert figure.axes[0].get_title(loc="left").startswith(own.curves[0].name)
    assert draw_effects(own).axes[2].get_xlabel() in own.pairs[0].names
    with pytest.raises(SettingsError, match="effects: the model has no rows to try predictions on"):
        rue.effects_of(rue.learn([[1.0]], [1], learner="ogd"))


def test_a_category_is_one_column_and_a_missing_number_a_value_of_its_own():
    names = {0: "size", 1: "size=", 2: "colour=red", 3: "colour=blue"}
    trial = Trial.__new__(Trial)
    trial.called, trial.numbers = names, {"size", "colour=red", "colour=blue"}
    rows = [([0, 2], [5.0, 1.0]), ([1, 3], [1.0, 1.0]), ([3], [1.0])]
    trial.rows = [trial.parted(*map(np.array, row)) for row in rows]
    assert trial.rows[1] == {"size": ((1, 1.0),), "colour": ((3, 1.0),)}
    assert trial.states("colour", 9, 9)[1] == ["blue", "red"]
    assert trial.states("size", 9, 9)[1] == ["", "0", "5"]
    assert trial.states("colour", 9, 1)[2].tolist() == [2 / 3]


def test_rows_are_drawn_alike_in_blocks_of_any_size():
    X = np.arange(1.0, 3001.0)[:, None]
    whole, parts = Background(), Background()
    whole.enter(Block(X))
    for begin, end in ((0, 1), (1, 300), (300, 301), (301, 3000)):
        parts.enter(Block(X[begin:end]))
    drawn = [values[0] for _, values in whole.rows]
    assert drawn == [values[0] for _, values in parts.rows]
    assert len(set(drawn)) == ROWS
    assert abs(np.mean(drawn) - 1500.0) < 5.0 * 3000.0 / math.sqrt(12.0 * ROWS)
    again = Background.restored(whole.seen, True, whole.stored())
    assert [values.tolist() for _, values in again.rows] == [values.tolist() for _, values in whole.rows]
    with pytest.raises(rue.DataError, match="rows to try predictions on are impossible"):
        Background.restored(1, True, whole.stored())


def test_more_than_two_classes_have_no_effects_yet(run):
    model = model_of(run)
    model.background = None
    with pytest.raises(SettingsError, match="no rows"):
        effects_of_model(model)
