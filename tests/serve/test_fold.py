"""The fold over the log: the same state however records are cut into groups, and late labels by a plain reference."""

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rue
from conftest import many
from rue.errors import DataError, SettingsError
from rue.serve import snapshots
from rue.serve.checking import checked
from rue.serve.fold import Fold
from rue.serve.log import Log
from rue.serve.model import ServedModel
from rue.serve.records import CREATE, EXPIRE, FORGET, Record, decode, own_id, require_line
from rue.serve.settings import Settings, settings_of
from rue.serve.status import certificate, report_of
from serve.serving import as_sent

pytestmark = pytest.mark.usefixtures("interpreted_module")
OGD = {"learner": "ogd", "loss": "logistic", "domain": "ball:5"}


class Story:
    """A log in memory and the fold over it, asked as the service asks it; `ask` gives the answer."""

    def __init__(self, folder, **options):
        self.log, self.fold = Log(folder), Fold()
        self.write(CREATE, "m", options)
        self.model = self.fold.named("m")

    def write(self, kind, id_, content, line=None):
        record = Record(self.log.last + 1, 1000 * self.log.last, 1, kind, id_, json.dumps(content).encode())
        self.log.append([record])
        return self.fold.apply([record], [line])[0]

    def ask(self, **content):
        line = decode(json.dumps(content).encode())
        require_line(line)
        try:
            answer = checked(self.log, self.model, line, 100)
        except DataError:
            return 400, {}
        answer = answer or self.write(line.kind, line.id, content, line)
        return answer.status, answer.content

    def records(self):
        return list(self.log.read())


def same(one, other):
    """Whether two models are in the same state, to the last bit."""
    return (
        snapshots._state(one) == snapshots._state(other)
        and one.driver.learner == other.driver.learner
        and as_sent(report_of(one)) == as_sent(report_of(other))
    )


def told(chance, i):
    x, word = chance.random(), chance.choice("ab")
    return {"x": x, "word": word, "n": chance.choice([1, 2, None])}, x + (word == "a") > chance.random() + 0.5


SETTINGS = [
    OGD,
    {"learner": "ogd", "loss": "square"},
    {"task": "classify", "learner": "ogd", "positive": "yes", "class_weight": "balanced"},
]


@pytest.mark.parametrize("options", SETTINGS)
@settings(max_examples=many(5, 100))
@given(seed=st.integers(0, 2**32))
def test_cutting_a_log_into_groups_changes_no_bit(tmp_path_factory, options, seed):
    chance = random.Random(seed)
    story = Story(tmp_path_factory.mktemp("log"), **options)
    numbers, words = options.get("loss") == "square", "positive" in options
    for i in range(40):
        features, label = told(chance, i)
        label = float(label) if numbers else ("yes" if label else "no") if words else label
        at = chance.randrange(6)
        if at == 0:
            story.ask(features=features, label=label, weight=chance.choice([1, 2.5]))
        elif at == 1:
            story.write(chance.choice([EXPIRE, FORGET]), None, {"upto": max(1, i - 20)})
        elif at in (2, 3):
            story.ask(features=features, id=f"{chance.randrange(i + 1)}")
        else:
            story.ask(id=f"{chance.randrange(i + 1)}", label=label)
    records = story.records()
    again = Fold()
    while records:
        many_ = chance.choice([1, 2, 7, 100])
        again.apply(records[:many_])
        records = records[many_:]
        if records and chance.random() < 0.2:  # a restart from a snapshot in between
            folder = tmp_path_factory.mktemp("snapshot")
            snapshots.write(folder, snapshots.copy_of(again))
            again = snapshots.read(folder, again.seq)
    assert same(again.named("m"), story.model)
    rows = [told(chance, 0)[0] for _ in range(5)]
    assert list(again.named("m").predictions(rows)[1]) == story.model.predictions(rows)[1]
    story.log.close()


class Reference:
    """What an id is answered, in dictionaries."""

    def __init__(self):
        self.predicted, self.waiting, self.early, self.learnt, self.retold = {}, set(), {}, {}, set()

    def predict(self, id_, x):
        if id_ in self.predicted:
            if id_ in self.waiting:
                return 200 if self.predicted[id_] == x else 409
            return 409 if id_ in self.learnt or self.predicted[id_] != x else 410
        if id_ in self.learnt:
            return 409
        self.predicted[id_] = x
        if id_ in self.early:
            self.learnt[id_] = self.early.pop(id_)
        else:
            self.waiting.add(id_)
        return 200

    def label(self, id_, y):
        if id_ in self.waiting:
            self.waiting.remove(id_)
            self.learnt[id_] = y
            return 200
        if id_ in self.learnt:
            return 200 if self.learnt[id_] == y else 409
        if id_ in self.predicted:
            return 410
        return 202 if self.early.setdefault(id_, y) == y else 409


@settings(max_examples=many(15, 400))
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("ppplllle"), st.integers(0, 5), st.integers(0, 1)), min_size=10, max_size=60
    )
)
def test_labels_in_any_order_twice_contradicting_unknown_and_expired(tmp_path_factory, steps):
    story, wanted = Story(tmp_path_factory.mktemp("log"), **OGD), Reference()
    story.ask(features={"x": 1}, label=0)
    for what, number, value in steps:
        id_ = f"id {number}"
        if what == "e":
            story.write(EXPIRE, None, {"upto": story.log.last})
            wanted.waiting.clear()
        elif what == "p":
            assert story.ask(features={"x": value}, id=id_)[0] == wanted.predict(id_, value)
        else:
            assert story.ask(id=id_, label=value)[0] == wanted.label(id_, value)
    assert set(story.model.pending) == wanted.waiting
    assert set(story.model.early) == set(wanted.early)
    assert story.model.t == 1 + len(wanted.learnt)
    story.log.close()


def test_the_certificate_is_about_what_was_served_however_late_labels_come(tmp_path):
    """`rue.certify` of the served scores, in the order in which labels came."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    y = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1, -1)
    story, scores = Story(tmp_path, **OGD), {}
    for i in range(60):
        scores[i] = story.ask(id=f"{i}", features={"a": X[i, 0], "b": X[i, 1]})[1]["score"]
        if i % 7 == 6:
            for j in reversed(range(i - 6, i + 1)):
                assert story.ask(id=f"{j}", label=int(y[j]))[0] == 200
    order = [j for i in range(60) if i % 7 == 6 for j in reversed(range(i - 6, i + 1))]
    served = np.array([scores[j] for j in order])
    wanted = rue.certify(X[order], y[order], served, loss="logistic", radius=5, intercept=True)
    found = certificate(story.model, 5.0, None)
    assert found["loss_total"] == pytest.approx(wanted.loss_total, rel=1e-12)
    assert found["regret_at_most"] == pytest.approx(wanted.regret_at_most, rel=1e-12)
    late = report_of(story.model)["service"]["late"]
    assert late["labels"] == len(order) == 56
    assert late["examples"]["total"] == sum(range(7)) * 8 + 0
    story.log.close()


def test_a_prediction_asked_for_again_is_answered_the_same(tmp_path):
    story = Story(tmp_path, **OGD)
    for i in range(5):
        story.ask(features={"x": float(i)}, label=i % 2)
    first = story.ask(id="a", features={"x": 2.0})[1]
    for i in range(5):
        story.ask(features={"x": float(i)}, label=1)
    again = story.ask(id="a", features={"x": 2.0})
    assert again == (200, {**first, "duplicate": True})
    story.log.close()


@pytest.mark.parametrize(
    ("options", "label", "why"),
    [
        ({"class_weight": "balanced"}, 2.5, "class"),
        ({"task": "classify", "interval": 0.9, "loss": "hinge", "learner": "ogd"}, True, "probabilities"),
        ({"task": "regress"}, "word", "word"),
    ],
)
def test_labels_that_no_model_can_begin_with_are_refused_and_not_in_the_log(tmp_path, options, label, why):
    model = ServedModel(1, "m", settings_of(options))
    assert why in model.problem(label)
    record = Record(1, 0, 1, 4, None, json.dumps({"features": {"x": 1}, "label": label}).encode())
    assert [answer.status for answer in model.apply([record, record._replace(seq=2)])] == [400, 400]
    assert model.bad == 2


def test_examples_of_one_class_wait_for_the_second_one():
    model = ServedModel(1, "m", Settings(learner="ogd", task="classify"))

    def learn(seq, label):
        body = json.dumps({"features": {"x": seq}, "label": label}).encode()
        return model.apply([Record(seq, 0, 1, 4, None, body)])[0].status

    assert [learn(1, "b"), learn(2, "b"), learn(3, "a")] == [202, 202, 200]
    assert (model.t, model.driver.examples, model.held) == (3, 3, [])
    run = rue.learn([[1.0], [2.0], [3.0]], ["b", "b", "a"], learner=rue.OGD())
    assert model.driver.learner.point.tolist() == run.learner.point.tolist()


def test_ids_of_the_service_are_no_ids_of_clients():
    assert own_id("#12") == 12
    with pytest.raises(DataError, match="first not #"):
        require_line(decode(b'{"id": "#12", "features": {}}'))


def test_intervals_are_answered_and_counted(tmp_path):
    story = Story(tmp_path, learner="ogd", loss="square", interval=0.9)
    rng = np.random.default_rng(0)
    inside = []
    for i, x in enumerate(rng.random(120)):
        answer = story.ask(id=f"{i}", features={"x": x})[1]
        y = 2.0 * x + rng.random()
        inside.append(i > 0 and answer["lower"] <= y <= answer["upper"])
        assert story.ask(id=f"{i}", label=y)[0] == 200
    assert np.mean(inside[20:]) > 0.75
    assert report_of(story.model)["interval"]["covered"] == pytest.approx(np.mean(inside), abs=0.03)
    story.log.close()


def test_a_wrong_question_to_a_replay_is_no_fault_of_the_log(tmp_path):
    story = Story(tmp_path, **OGD)
    story.ask(features={"x": 1}, label=0)
    story.ask(features={"x": 2}, label=1)

    def refuse(model, lessons):
        raise SettingsError("--predictions are of scores.")

    fold = Fold()
    fold.watchers.append(refuse)
    with pytest.raises(SettingsError, match=r"^--predictions are of scores\.$"):
        fold.replay(story.records())
    story.log.close()
