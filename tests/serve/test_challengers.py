"""Challengers: their evidence by a plain formula, promotion, steps back, and all of it as records of the log."""

import json
import math
import random

import numpy as np
import pytest
from scipy.optimize import brentq

from conftest import many
from rue.errors import DataError
from rue.serve import snapshots
from rue.serve.fold import Fold
from rue.serve.race import Race
from rue.serve.records import CREATE
from rue.serve.settings import Settings, settings_of
from rue.serve.status import report_of
from serve.serving import as_sent, report_by_replay
from serve.test_fold import Story, same
from serve.test_service import Running, statuses

pytestmark = pytest.mark.usefixtures("interpreted_module")
SLOW, QUICK = ({"learner": "ogd", "loss": "logistic", "step": f"fixed:{eta}"} for eta in (1e-6, 0.3))


def bound(differences, clip):
    """B14 as docs/theory.md has it, for the mean of the differences from below."""
    x = (np.clip(differences, -clip, clip) / clip + 1) / 2
    V = sum((x[t] - (0.5 + x[:t].sum()) / (t + 1)) ** 2 for t in range(len(x)))
    k = np.arange(1, 41)
    lambdas, pi = 2.0 ** (-k / 2), 1 / (k * (k + 1))
    psi = -np.log(1 - lambdas) - lambdas
    S = brentq(lambda s: math.log(np.sum(pi * np.exp(lambdas * s - psi * V))) - math.log(20), 0, 1000)
    return clip * (2 * (x.sum() - S) / len(x) - 1)


def test_the_evidence_is_that_of_the_theory():
    rng = np.random.default_rng(0)
    ours, its = rng.random(300), 0.8 * rng.random(300)
    race = Race(None, 1, 0.7)
    race.enter(list(zip(ours, its, strict=True)))
    assert race.better_by_at_least() == pytest.approx(bound(ours - its, 0.7), rel=1e-9)


def test_a_challenger_that_is_no_better_is_hardly_ever_promoted():
    """Looked at after every round: of challengers that are as good on average at most one in twenty."""
    rng, promoted, races = np.random.default_rng(1), 0, many(100, 2000)
    for _ in range(races):
        race = Race(None, 1, 1.0)
        for ours, its in rng.random((100, 2)).tolist():
            race.enter([(ours, its)])
            if race.examples % 5 == 0 and race.better_by_at_least() > 0:
                promoted += 1
                break
    assert promoted <= 0.05 * races + 3 * math.sqrt(0.05 * races)


def rows(begin, end):
    chance = random.Random(begin)
    for _ in range(begin, end):
        x = chance.random()
        yield {"features": {"x": x}, "label": int(x > 0.5)}


def with_history(story):
    story.fold.history = story.log.read
    return story


def test_a_challenger_from_the_first_record_on_is_the_model_it_would_have_been(tmp_path):
    story = with_history(Story(tmp_path / "a" if (tmp_path / "a").mkdir() is None else None, **SLOW))
    for row in rows(0, 50):
        story.ask(**row)
    challenger = story.fold.challenger(story.model, settings_of(QUICK), 1, story.log.last)
    fold = Fold()
    fold.apply([story.records()[0]._replace(kind=CREATE, body=json.dumps(QUICK).encode()), *story.records()[1:]])
    challenger.seq, challenger.at = story.model.seq, story.model.at
    assert same(challenger, fold.named("m"))
    story.log.close()


def test_promotion_and_a_step_back_are_records_and_replay_has_them(tmp_path):
    with Running(tmp_path, settings_of(SLOW), every=30, keep=10) as running:
        service = running.service

        def call(function, *args):
            return running.submit((), call=lambda: function("default", *args))[0]

        running.ask(*rows(0, 60))
        assert call(service.promote).status == 409
        assert call(service.challenge, settings_of(QUICK), 10_000).status == 400
        assert call(service.challenge, Settings(learner="ogd", loss="hinge"), 1).status == 400
        assert call(service.challenge, settings_of(QUICK), 1).status == 201
        refused = call(service.promote)
        assert refused.status == 409
        assert "nothing has been compared yet" in refused.content["error"]
        begun = service.log.last
        running.ask(*rows(60, 80), {"id": "waits", "features": {"x": 0.9}})
        race = service.fold.races[1]
        assert race.examples == 20
        assert race.figures()["since"] == begun
        live = as_sent(report_of(running.model, race))
        assert report_by_replay(tmp_path) == live  # in the middle of a race
    with Running(tmp_path, settings_of(SLOW), every=30, keep=10) as running:
        service = running.service
        assert as_sent(report_of(running.model, service.fold.races[1])) == live  # from a snapshot
        for begin in range(80, 800, 20):
            running.ask(*rows(begin, begin + 20))
            if call(service.promote).status == 200:
                break
        assert running.model.settings == settings_of(QUICK)
        assert not service.fold.races
        assert running.model.driver.examples == 0
        assert running.model.past[0]["examples"] == begin + 20
        promoted_at = service.log.last
        assert statuses(running.ask({"id": "waits", "label": 1})) == [200]
        running.ask(*rows(1000, 1030))
        report = as_sent(report_of(running.model))
        assert report["examples"] == 31
        assert report["risk"] < 0.69 < report["service"]["past"][0]["loss_total"] / (begin + 20) + 0.01
        assert report_by_replay(tmp_path) == report

        known = snapshots.numbers_of(tmp_path)
        before = max(number for number in known if number < promoted_at)
        assert call(service.roll_back, 5).status == 404
        assert call(service.roll_back, before).status == 200
        assert running.model.settings == settings_of(SLOW)
        running.ask(*rows(2000, 2030))
        report = as_sent(report_of(running.model))
        assert [chapter["why"] for chapter in report["service"]["past"]] == [
            "a challenger was promoted",
            f"back to record {before}",
        ]
    assert report_by_replay(tmp_path) == report  # which has no snapshots
    with Running(tmp_path, settings_of(SLOW)) as running:  # the options it was created with
        assert as_sent(report_of(running.model)) == report


def test_losses_of_two_kinds_are_not_compared(tmp_path):
    story = with_history(Story(tmp_path, **SLOW))
    for row in rows(0, 5):
        story.ask(**row)
    other = story.fold.challenger(story.model, settings_of({"learner": "ogd", "loss": "hinge"}), 1, story.log.last)
    with pytest.raises(DataError, match="losses are compared of one kind"):
        Race.against(story.model, other, 1).require_comparable(story.model)
    turned = story.fold.challenger(story.model, settings_of({**SLOW, "positive": 0}), 1, story.log.last)
    with pytest.raises(DataError, match="another one as"):
        Race.against(story.model, turned, 1).require_comparable(story.model)
    story.log.close()
