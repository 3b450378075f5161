"""How peers are scored, which the docs' comparison rests on."""

import lzma
import math
import sys

import numpy as np
import pandas as pd
import pytest
from river.dummy import NoChangeClassifier
from sklearn.metrics import log_loss, mean_squared_error, zero_one_loss

import rue
from conftest import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks import forests, noregret, peers
from benchmarks.tables import CLASSES, Table, table

RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.standard_normal((80, 2)), columns=["a", "b"])


def small(k):
    return Table(X, RNG.integers(0, k, 80) if k else RNG.standard_normal(80), tuple("xyz"[:k]))


def test_losses_are_clipped_alike_and_time_ends_a_peer():
    score = peers.Score(small(2), 1e9)
    score.chances(0.0, False)
    score.chances(1.0, True)
    found = score.record()
    assert found["rows"] == 2
    assert found["error"] == 0.5
    assert found["loss"] == pytest.approx(-math.log(1e-15) / 2)
    assert found["mild"] == pytest.approx((-math.log(0.01) - math.log(0.99)) / 2)
    with pytest.raises(peers.OutOfTime):
        peers.Score(small(2), -1.0).check()


def test_river_predicts_before_it_learns():
    stream = small(2)._replace(y=np.arange(80) % 2)
    score = peers.Score(stream, 1e9)
    peers._river(stream, NoChangeClassifier(), score)
    assert score.rows == 80
    assert (
        score.errors >= 79
    )  # the label that just came is never the next; had it been learnt first, none would be wrong


def test_vw_predictions_are_scored_as_scikit_learn_scores_them():
    stream = small(2)
    scores = RNG.standard_normal(80)
    losses, _, errors = peers._vw_losses(stream, [f"{score!r}" for score in scores.tolist()])
    assert losses.mean() == pytest.approx(log_loss(stream.y, 1.0 / (1.0 + np.exp(-scores))))
    assert errors.mean() == pytest.approx(zero_one_loss(stream.y, scores > 0.0))
    stream, chances = small(3), RNG.dirichlet(np.ones(3), 80)
    lines = [" ".join(f"{j + 1}:{p!r}" for j, p in enumerate(row)) for row in chances.tolist()]
    losses, _, errors = peers._vw_losses(stream, lines)
    assert losses.mean() == pytest.approx(log_loss(stream.y, chances))
    assert errors.mean() == pytest.approx(zero_one_loss(stream.y, chances.argmax(axis=1)))


@pytest.mark.parametrize("k", [0, 2, 3])
def test_rue_is_scored_as_scikit_learn_scores_it(k):
    stream = small(k)
    y = np.array(stream.classes)[stream.y] if k else stream.y
    run = rue.learn(X, y, task="multiclass" if k > 2 else "auto")
    ours = forests.course(run)
    assert ours.until(1)["loss"] == pytest.approx(ours.losses[0])
    if not k:
        assert ours.until(80)["loss"] == pytest.approx(mean_squared_error(y, run.predictions))
        return
    classes = run.labels.classes if k > 2 else (run.labels.negative, run.labels.positive)
    places = np.array([classes.index(label) for label in y])
    chances = run.probabilities
    if k == 2:
        p = 1.0 / (1.0 + np.exp(-run.predictions))
        chances = np.column_stack([1.0 - p, p])
    late = slice(20, 80)  # all classes have come
    assert ours.errors[late].mean() == pytest.approx(zero_one_loss(places[late], chances[late].argmax(axis=1)))
    of_those_that_came = np.clip(chances[np.arange(80), places][late], 0.01, 0.99)
    assert ours.mild[late].mean() == pytest.approx(-np.log(of_those_that_came).mean())


@pytest.mark.parametrize("k", [0, 2])
def test_the_excess_is_the_largest_of_any_prefix(k):
    stream = small(k)
    loss, y = ("logistic", 2.0 * stream.y - 1.0) if k else ("square", stream.y)
    learner = rue.OGD(loss)
    totals = []
    for one in (learner, rue.Mixture(loss=loss)):
        p = rue.learn(X, y, learner=one, task="auto" if k else "regress").predictions
        losses = np.logaddexp(0.0, -y * p) if k else (y - p) ** 2
        totals.append([losses[:t].sum() for t in range(81)])
    expected = max(ours - theirs for ours, theirs in zip(*totals, strict=True)) / (1.0 if k else np.var(y))
    assert expected > 0.0
    assert noregret.excess(stream, learner) == pytest.approx(expected)


def test_what_came_so_far_is_predicted_before_lightgbm_is_trained():
    assert peers._frequencies(np.array([4.0, 2.0, 9.0]), 0).tolist() == [0.0, 4.0, 3.0]
    assert peers._frequencies(np.array([1, 1, 0]), 2).tolist() == [[1 / 2, 1 / 2], [1 / 3, 2 / 3], [1 / 4, 3 / 4]]


def test_covtype_has_the_seven_classes_of_uci():
    digits = np.frombuffer(lzma.decompress(CLASSES.read_bytes()), dtype=np.uint8) - ord("0")
    counts = [211840, 283301, 35754, 2747, 9493, 17367, 20510]  # "Forest Cover Type class distribution" in covtype.info
    assert np.bincount(digits).tolist() == [0, *counts]


def test_columns_by_name():
    stream = table("ChickWeights")
    assert stream.categories == ["chick", "diet"]
    assert stream.head(3).y.tolist() == [42.0, 40.0, 43.0]


def test_the_better_of_two_is_bold():
    record = {"rows": 4, "seconds": 2.0, "loss": 0.5}
    row = {"stream": "s", "peer": "River", "peer_reached": record, "rue": {"loss": 0.25}, "linear": {"loss": 0.75}}
    note = {"stream": "s", "peer": "CapyMOA", "note": "not there"}
    *_, first, second = forests.forest_table([row, note]).splitlines()
    assert first == "| s | River | 4 | 0.5000 | **0.2500** | 0.7500 |  |  |  |  | 2 |"
    assert second.startswith("| s | CapyMOA: not there |")
