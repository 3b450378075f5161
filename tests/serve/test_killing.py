"""A service that is killed again and again under load: what it acknowledged is there, once, and has the same bits."""

import http.client
import json
import random
import shlex
import subprocess
import sys
import threading
import time

from conftest import many
from rue.domains import Ball
from rue.models.file import load_model
from rue.serve.log import Log
from rue.serve.records import LABEL, LEARN, decode
from serve.serving import Server, Talk, as_sent, report_by_replay


class Client(threading.Thread):
    """Predicts and labels, late, in any order, sometimes twice; what is not answered is asked again after a restart."""

    def __init__(self, number, hub):
        super().__init__(daemon=True)
        self.random, self.number, self.hub = random.Random(number), number, hub
        self.waiting, self.acknowledged, self.served = [], {}, {}
        self.made, self.wrong = 0, []

    def example(self):
        x, word = self.random.random(), self.random.choice(["red", "green", "blue"])
        features = {"x": round(x, 6), "word": word, "n": self.random.randrange(100)}
        if self.random.random() < 0.1:
            features["n"] = None
        return features, x + (word == "red") * 0.5 + self.random.random() > 1.0

    def run(self):
        while not self.hub.over.is_set():
            try:
                with Talk(self.hub.port) as talk:
                    while not self.hub.over.is_set():
                        self.step(talk)
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)
        self.finish()

    def step(self, talk):
        if len(self.waiting) > 20 or (self.waiting and self.random.random() < 0.5):
            self.label(talk, self.random.randrange(len(self.waiting)))
        elif self.random.random() < 0.3:
            self.batch()
        else:
            self.predict(talk)

    def predict(self, talk):
        features, label = self.example()
        id_ = f"{self.number}-{self.made}"
        self.made += 1
        # In the list before it is answered: a killed server may have it on disk.
        self.waiting.append((id_, features, label))
        self.check(talk, "predict", {"id": id_, "features": features}, 200)

    def label(self, talk, place):
        id_, features, label = self.waiting[place]
        status = self.check(talk, "label", {"id": id_, "label": label}, 200, 202)
        if status == 202:  # its prediction was never answered
            self.check(talk, "predict", {"id": id_, "features": features}, 200)
        self.acknowledged[id_] = label
        del self.waiting[place]
        if self.random.random() < 0.1:
            self.check(talk, "label", {"id": id_, "label": label}, 200)

    def batch(self):
        lines = []
        for _ in range(20):
            features, label = self.example()
            lines.append({"id": f"{self.number}-{self.made}", "features": features, "label": label})
            self.made += 1
        for _ in range(3):
            try:
                with Talk(self.hub.port) as talk:
                    status, answers = talk.batch(lines)
                break
            except (OSError, http.client.HTTPException):
                time.sleep(1.0)
        else:
            return
        if status != 200 or not all(answer.get("learnt") for answer in answers):
            self.wrong.append((status, answers))
        self.acknowledged |= {line["id"]: line["label"] for line in lines}

    def check(self, talk, what, body, *allowed):
        status, answer = talk.ask(what, body)
        if status not in allowed:
            self.wrong.append((what, body, status, answer))
        return status

    def finish(self):
        """Label what waits, with the last server."""
        with Talk(self.hub.port) as talk:
            while self.waiting:
                self.label(talk, 0)


class Hub:
    def __init__(self, port):
        self.port, self.over = port, threading.Event()


def test_nothing_acknowledged_is_lost_or_learnt_twice_by_kills_under_load(tmp_path):
    folder, kills, labels = tmp_path / "served", many(10, 100), many(1_000, 200_000)
    chance = random.Random(1)
    server = Server(folder, "--snapshot-every", 3_000)
    hub = Hub(server.port)
    clients = [Client(number, hub) for number in range(many(6, 16))]
    for client in clients:
        client.start()
    for kill in range(kills):
        enough = labels * (kill + 1) / kills
        deadline = time.monotonic() + 600
        while sum(len(client.acknowledged) for client in clients) < enough and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2 * chance.random())
        server.kill()
        server = Server(folder, "--snapshot-every", 3_000, port=hub.port)
    with server:
        hub.over.set()
        for client in clients:
            client.join(120)
        assert [client.wrong for client in clients] == [[] for _ in clients]
        with Talk(server.port) as talk:
            live = talk.ask("report")[1]
        assert report_by_replay(folder) == live  # while it runs
        assert server.stop() == 0

    acknowledged = {id_: label for client in clients for id_, label in client.acknowledged.items()}
    assert len(acknowledged) >= labels
    learnt = {}
    log = Log(folder, read_only=True)
    for record in log.read():
        if record.kind in (LABEL, LEARN):
            learnt.setdefault(record.id, []).append(decode(record.body).label)
    log.close()
    assert {id_: [label] for id_, label in acknowledged.items()} == {id_: learnt.get(id_) for id_ in acknowledged}
    assert live["examples"] == len(learnt) == live["service"]["t"]
    assert_offline_is_the_same(folder, tmp_path, live)


def assert_offline_is_the_same(folder, tmp_path, live):
    """`rue replay`, `rue learn` on the exported log, and `rue certify` on the exported predictions."""

    def call(*args):
        done = subprocess.run([sys.executable, "-m", "rue", *map(str, args)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    again, log, served, learnt = (tmp_path / name for name in ("again.rue", "log.jsonl", "served.csv", "learnt.rue"))
    report, certified = tmp_path / "again.json", tmp_path / "certified.json"
    outputs = "--model", again, "--export", log, "--predictions", served, "--report", report
    said = call("replay", folder, *outputs)
    assert as_sent(json.loads(report.read_text())) == live
    data = shlex.split(said.strip().splitlines()[-1].partition("rue learn ")[2])
    call("learn", *data, "--model", learnt, "-q")
    assert load_model(again).learner == load_model(learnt).learner
    call("certify", *data, "--predictions", served, "--loss", "logistic", "--radius", 5, "--report", certified)
    found = json.loads(certified.read_text())
    own = load_model(again).evidence.certificate(Ball(5.0), "raw")
    assert found["loss_total"] == live["loss_total"]
    assert found["certificate"]["slope_times_prediction"] == live["certificate"]["slope_times_prediction"]
    assert (found["certificate"]["alone"], found["certificate"]["slope_norm"]) == (own.alone, own.slope_norm)
