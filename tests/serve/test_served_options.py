"""Every option that a model may be created with: it learns, and a snapshot and a replay have the same state."""

import asyncio
import json
import random

import pytest

from rue.serve import routes
from rue.serve.routes import Application
from rue.serve.service import Limits
from rue.serve.settings import Settings, settings_of
from rue.serve.status import report_of
from serve.serving import as_sent, report_by_replay
from serve.test_service import OGD, Running

pytestmark = pytest.mark.usefixtures("interpreted_module")
LINEAR = {"learner": "ogd", "loss": "logistic"}
OPTIONS = {
    "maps": {"maps": True},
    "a mixture": {"linear": True, "budget": 136},
    "an interval": {"task": "regress", "learner": "ogd", "loss": "absolute", "interval": 0.9, "side": "upper"},
    "sets of classes": {**LINEAR, "interval": 0.9},
    "a quantile": {"learner": "adagrad", "loss": "quantile:0.9"},
    "counts": {"learner": "adagrad", "loss": "poisson"},
    "several classes": {"task": "multiclass"},
    "several classes in stages": {"task": "multiclass", "maps": True},
    "sets of several classes": {"task": "multiclass", "interval": 0.8},
    "class weights": {**LINEAR, "class_weight": "balanced"},
    "which class is +1": {**LINEAR, "positive": False},
    "a ball": {**LINEAR, "domain": "ball:2", "step": "theory"},
    "no intercept": {**LINEAR, "intercept": False, "radius": 3.0},
    "alarms": {**LINEAR, "alarm": 1000.0},
    "last labels": {**LINEAR, "lags": [1, 3]},
    "columns": {**LINEAR, "columns": {"x": "number", "day": "date"}, "category": ["n"], "drop": ["word"], "bits": 8},
    "a date among words": {**LINEAR, "columns": {"day": "date", "later": "timestamp"}},
    "text": {**LINEAR, "text": ["word"], "order": "day-first"},
}
NUMBERS = ("an interval", "a quantile", "counts")


def lines(name):
    """Predictions whose label comes late and weighs something, and examples that are learnt at once."""
    chance = random.Random(1)
    for i in range(24):
        x = round(chance.random(), 3)
        features = {"x": x, "n": i % 3, "word": chance.choice(["red ball", "green", "blue cube"])}
        features["day"] = f"{1 + i % 28:02}.11.2026" if name == "text" else f"2026-11-{1 + i % 28:02}"
        label = float(i % 4) if name in NUMBERS else "abc"[i % 3] if "several" in name else x > 0.4
        if i % 2:
            yield {"features": features, "label": label, "weight": chance.choice([0.5, 1, 2])}
        else:
            yield {"id": f"{i}", "features": features}
            if i > 4:
                yield {"id": f"{i - 4}", "label": ("abc"[(i - 4) % 3] if "several" in name else label), "weight": 2}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_model_with_an_option(name, tmp_path):
    asked = json.loads(json.dumps(OPTIONS[name]))
    with Running(tmp_path, settings_of(asked)) as running:
        assert running.model.settings.to_json() | {"stages": True} == asked | {"stages": True}
        for line in lines(name):
            answers = running.ask(line)
            assert answers[0].status in (200, 202), (line, answers)
        live = as_sent(report_of(running.model))
        assert live["examples"] > 18
        if "interval" in asked:
            predicted = running.ask({"features": {"x": 0.5, "n": 1, "word": "green"}})[0].content
            assert "set" in predicted or "lower" in predicted
            live = as_sent(report_of(running.model))
    assert report_by_replay(tmp_path) == live
    with Running(tmp_path, None) as running:
        assert running.events[0][1]["from_snapshot"] == running.service.log.last
        assert as_sent(report_of(running.model)) == live


def test_all_options_are_tried():
    tried = set().union(*OPTIONS.values())
    assert tried == set(Settings.__struct_fields__) - {"stages"}  # which is no option of a user's


def test_a_client_that_stops_reading_is_left_and_others_are_answered(tmp_path, monkeypatch):
    """The lines whose answers it never took stay learnt; those behind them are not taken in."""
    monkeypatch.setattr(routes, "LINES", 10)
    with Running(tmp_path, OGD, seconds=0.3) as running:
        application = Application(running.service)
        application.ready = True
        line = json.dumps({"features": {"x": 1}, "label": 1}).encode() + b"\n"

        async def ask(path, body, reads=True):
            sent = []

            async def receive():
                return {"type": "http.request", "body": body}

            async def send(message):
                sent.append(message)
                if not reads and message["type"] == "http.response.body":
                    await asyncio.Event().wait()  # its window is full, and stays so

            scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": []}
            await application(scope, receive, send)
            return sent

        async def both():
            slow = asyncio.ensure_future(ask("/v1/models/default/batch", line * 30, reads=False))
            found = await ask("/v1/models/default/learn", line)
            assert found[0]["status"] == 200
            await asyncio.wait_for(slow, 60)

        asyncio.run(both())
        assert running.model.t == 11
        live = as_sent(report_of(running.model))
    assert report_by_replay(tmp_path) == live
    assert Limits().seconds == 30.0
