"""The service without a server: expiry, the clock, snapshots, the archive, and logs that were damaged."""

import contextlib
import json
import os
import shlex
import shutil
import sqlite3
import threading

import pytest

from rue.errors import DataError
from rue.serve import log as log_module
from rue.serve import service as service_module
from rue.serve import snapshots
from rue.serve.examples import Reading
from rue.serve.log import Log
from rue.serve.model import Answer
from rue.serve.records import decode
from rue.serve.replaying import Export, replayed
from rue.serve.service import Busy, Limits, Request, Service
from rue.serve.settings import Settings
from rue.serve.status import report_of
from serve.serving import as_sent

pytestmark = pytest.mark.usefixtures("interpreted_module")
OGD = Settings(learner="ogd", loss="logistic")


class Running:
    """A service in this process; `ask` sends lines together and waits for the answers."""

    def __init__(self, folder, settings=OGD, **limits):
        self.events = []
        tell = lambda event, **details: self.events.append((event, details))  # noqa: E731
        self.service = Service(folder, settings, Limits(**limits), tell)
        self.service.start()

    def ask(self, *contents, model="default"):
        bodies = [json.dumps(content).encode() for content in contents]
        return self.submit([(decode(body), body) for body in bodies], model)

    def submit(self, lines, model="default", call=None):
        answers, ready = [], threading.Event()
        done = lambda found: (answers.extend(found), ready.set())  # noqa: E731
        self.service.submit(Request(model, lines, done, call))
        assert ready.wait(60)
        return answers

    def learn(self, rows, begin=0):
        return self.ask(*({"features": {"x": i % 7}, "label": i % 2} for i in range(begin, begin + rows)))

    @property
    def model(self):
        return self.service.fold.named("default")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.service.stop()
        os.close(self.service._lock)


def statuses(answers):
    return [answer.status for answer in answers]


def test_a_restart_and_a_replay_have_the_report_of_the_live_service(tmp_path):
    with Running(tmp_path, every=30) as running:
        for i in range(10):
            running.learn(10, 10 * i)
        running.ask({"id": "a", "features": {"x": 1}})
        live = as_sent(report_of(running.model))
    assert snapshots.numbers_of(tmp_path)
    assert as_sent(report_of(replayed(str(tmp_path)).named("default"))) == live
    with Running(tmp_path, None) as running:
        assert running.events[0][1]["from_snapshot"] == 102
        assert as_sent(report_of(running.model)) == live
        assert statuses(running.ask({"id": "a", "label": 1})) == [200]


def test_predictions_expire_by_number_and_by_age(tmp_path, monkeypatch):
    now = [1_000_000.0]
    monkeypatch.setattr(service_module.time, "time", lambda: now[0])
    with Running(tmp_path, pending=10, age=60.0) as running:
        running.learn(3)
        for i in range(15):
            running.ask({"id": f"{i}", "features": {"x": i}})
        running.ask({"id": "early", "label": 1})
        assert len(running.model.pending) <= 11
        assert statuses(running.ask({"id": "0", "label": 1})) == [410]
        assert statuses(running.ask({"id": "14", "label": 1})) == [200]
        now[0] += 61.0
        assert statuses(running.ask({"id": "13", "label": 1})) == [410]
        assert (len(running.model.pending), len(running.model.early)) == (0, 0)
        assert running.model.expired == 14
        assert running.model.forgotten == 1
        live = as_sent(report_of(running.model))
    assert as_sent(report_of(replayed(str(tmp_path)).named("default"))) == live


def test_a_clock_that_is_moved_back_stands_until_it_has_caught_up(tmp_path, monkeypatch):
    now = [2_000_000.0]
    monkeypatch.setattr(service_module.time, "time", lambda: now[0])
    with Running(tmp_path) as running:
        running.ask({"id": "a", "features": {"x": 1}})
        now[0] -= 1_000_000.0
        running.ask({"id": "b", "features": {"x": 1}})
        assert statuses(running.ask({"id": "a", "label": 1}, {"id": "b", "label": 0})) == [200, 200]
        assert report_of(running.model)["service"]["late"]["seconds"]["largest"] == 0.0
    log = Log(tmp_path, read_only=True)
    times = [record.at for record in log.read()]
    log.close()
    assert times == sorted(times)


@pytest.mark.parametrize("damage", ["state.json", "1.rue", "both"])
def test_a_damaged_snapshot_falls_back_to_the_one_before(tmp_path, damage):
    for k in range(2):
        with Running(tmp_path, None if k else OGD) as running:
            running.learn(20, 20 * k)
            live = as_sent(report_of(running.model))
    numbers = snapshots.numbers_of(tmp_path)
    assert len(numbers) == 2
    for number in numbers[-1:] if damage != "both" else numbers:
        file = tmp_path / "snapshots" / f"{number:012}" / ("1.rue" if damage == "both" else damage)
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(bytes(content))
    with Running(tmp_path, None) as running:
        assert next(event for event, _ in running.events) == "snapshot_damaged"
        begun = next(details["from_snapshot"] for event, details in running.events if event == "restored")
        assert begun == (0 if damage == "both" else numbers[0])
        assert as_sent(report_of(running.model)) == live


def ask_again(running):
    """Examples whose records, or those of their predictions, are in the archive: nothing is learnt twice."""
    first = running.model.t
    assert statuses(running.ask({"id": "slow", "label": 1})) == [200]
    assert running.model.t in (first, first + 1)
    t = running.model.t
    answers = running.ask(
        {"id": "old", "features": {"x": 1}, "label": 0},
        {"id": "old", "features": {"x": 1}, "label": 1},
        {"id": "slow", "label": 1},
        {"id": "slow", "label": 0},
        {"id": "#4", "label": 1},
        {"id": "#4", "label": 0},
    )
    assert running.model.t <= t + 1
    return statuses(answers)


def test_old_records_go_to_the_archive_and_a_replay_reads_them_there(tmp_path):
    with Running(tmp_path, every=20, prune=5, keep=2) as running:
        assert statuses(running.ask({"id": "old", "features": {"x": 1}, "label": 0})) == [200]
        assert statuses(running.ask({"id": "slow", "features": {"x": 2}}, {"features": {"x": 3}})) == [200, 200]
        for i in range(20):
            running.learn(10, 10 * i)
            running.submit((), call=lambda: Answer(200, {}))  # by then the snapshot has begun
            if running.service._writing is not None:
                running.service._writing.join()
        assert running.service.log.first > 100
        assert statuses(running.ask({"id": "late", "features": {"x": 1}}, {"id": "late", "label": 1})) == [200, 200]
        assert ask_again(running) == [200, 409, 200, 409, 200, 409]
        live = as_sent(report_of(running.model))
    with Running(tmp_path, None) as running:
        assert ask_again(running) == [200, 409, 200, 409, 200, 409]
        assert as_sent(report_of(running.model)) == live
    assert as_sent(report_of(replayed(str(tmp_path)).named("default"))) == live
    (tmp_path / "archive.sqlite").unlink()
    with pytest.raises(DataError, match=r"records 1 to \d+ of the log are missing: .*archive\.sqlite is not there"):
        replayed(str(tmp_path))


@pytest.mark.parametrize(("where", "named"), [("seq > 15", "16 to 21"), ("seq = 5", "5 to 5"), ("seq < 4", "1 to 3")])
def test_records_that_are_missing_are_named_and_nothing_is_served(tmp_path, where, named):
    with Running(tmp_path) as running:
        running.learn(20)
    db = sqlite3.connect(tmp_path / "log.sqlite")
    db.execute(f"DELETE FROM log WHERE {where}")
    db.commit()
    db.close()
    with pytest.raises(DataError, match=f"records {named}"):
        Service(tmp_path)


def test_a_log_that_ends_too_early_is_named_without_snapshots_too(tmp_path):
    with Running(tmp_path) as running:
        running.learn(20)
    shutil.rmtree(tmp_path / "snapshots")
    with contextlib.closing(sqlite3.connect(tmp_path / "log.sqlite", isolation_level=None)) as db:
        db.execute("DELETE FROM log WHERE seq > 15")
    for look in (Service, lambda folder: replayed(str(folder))):
        with pytest.raises(DataError, match="ends with record 15, .* records 16 to 21 are missing"):
            look(tmp_path)
    (tmp_path / "lock").unlink()
    with Running(tmp_path, None) as running:
        assert running.model.t == 14


def test_a_log_cut_short_is_one_sentence(tmp_path):
    with Running(tmp_path) as running:
        running.learn(2000)
    path = tmp_path / "log.sqlite"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match=r"log\.sqlite is damaged or cannot be read"):
        Service(tmp_path)
    with pytest.raises(DataError, match="damaged"):
        replayed(str(tmp_path))


def test_a_log_of_a_later_format_is_refused(tmp_path):
    with Running(tmp_path):
        pass
    db = sqlite3.connect(tmp_path / "log.sqlite")
    db.execute("UPDATE meta SET value = 99 WHERE key = 'format'")
    db.commit()
    db.close()
    with pytest.raises(DataError, match="has format 99, and this rue reads 1: use a newer rue"):
        Log(tmp_path)


def test_a_log_and_its_archive_of_an_older_format_are_upgraded(tmp_path, monkeypatch):
    with Running(tmp_path, every=20, prune=5, keep=1) as running:
        for i in range(4):
            running.learn(20, 20 * i)
            running.submit((), call=lambda: Answer(200, {}))
            running.service._writing.join()
        assert running.service.log.first > 1
        live = as_sent(report_of(running.model))
    monkeypatch.setattr(log_module, "FORMAT", 3)
    with pytest.raises(DataError, match="has format 1, and this rue reads 3: start the service once to upgrade it"):
        replayed(str(tmp_path))
    steps = ("ALTER TABLE log RENAME COLUMN body TO content", "ALTER TABLE log RENAME COLUMN content TO body")
    monkeypatch.setattr(log_module, "_UPGRADES", dict(enumerate(steps, 1)))
    with Running(tmp_path, None) as running:
        assert running.service.log.meta("format") == 3
        assert as_sent(report_of(running.model)) == live
    assert as_sent(report_of(replayed(str(tmp_path)).named("default"))) == live
    for file in ("log.sqlite", "archive.sqlite"):
        with contextlib.closing(sqlite3.connect(tmp_path / file)) as db:
            assert db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone() == (3,)


def test_an_error_while_records_are_applied_ends_the_service_and_a_restart_has_all(tmp_path, monkeypatch):
    with Running(tmp_path) as running:
        running.learn(10)
        ended = threading.Event()
        running.service.on_failure = ended.set
        monkeypatch.setattr(running.model, "apply", lambda *args: 1 / 0)
        assert statuses(running.ask({"id": "a", "features": {"x": 1}, "label": 1})) == [503]
        assert ended.wait(60)
        assert statuses(running.ask({"features": {"x": 1}})) == [503]
    with Running(tmp_path, None) as running:
        assert running.model.t == 11
        assert running.ask({"id": "a", "features": {"x": 1}, "label": 1})[0].content["duplicate"]


def test_an_example_that_cannot_settle_the_columns_is_refused_and_not_in_the_log(tmp_path, monkeypatch):
    with Running(tmp_path) as running:
        running.ask({"id": "a", "features": {"x": 1}})
        before = running.service.log.last
        with monkeypatch.context() as patch:
            patch.setattr(Reading, "settle", lambda *args: {}["x"])
            answers = running.ask({"features": {"x": 1}, "label": 1}, {"id": "a", "label": 1})
        assert statuses(answers) == [400, 400]
        assert "cannot be read as a table" in answers[0].content["error"]
        assert running.service.log.last == before
        assert statuses(running.ask({"id": "a", "label": 1})) == [200]


def test_an_error_of_a_question_stops_nothing(tmp_path):
    with Running(tmp_path) as running:
        assert statuses(running.submit((), call=lambda: 1 / 0)) == [500]
        assert running.submit((), call=lambda: Answer(200, {}))[0].status == 200
        assert statuses(running.learn(1)) == [200]


def test_a_full_queue_is_refused(tmp_path):
    with Running(tmp_path, queue=5) as running:
        hold, begun = threading.Event(), threading.Event()
        running.service.submit(
            Request("", (), lambda answers: None, lambda: (begun.set(), hold.wait(60), Answer(200, {}))[2])
        )
        assert begun.wait(60)
        line = (decode(b'{"features": {"x": 1}}'), b'{"features": {"x": 1}}')
        for _ in range(5):
            running.service.submit(Request("default", [line], lambda answers: None))
        with pytest.raises(Busy):
            running.service.submit(Request("default", [line], lambda answers: None))
        hold.set()


def test_a_snapshot_that_cannot_be_written_costs_nothing_but_time(tmp_path):
    with Running(tmp_path) as running:
        running.learn(5)
        (tmp_path / "snapshots").write_text("in the way")
    assert running.events[-1][0] == "snapshot_failed"
    (tmp_path / "snapshots").unlink()
    with Running(tmp_path, None) as running:
        assert running.model.t == 5
    shutil.rmtree(tmp_path / "snapshots")


def test_the_command_that_a_replay_names_runs_nothing_else(tmp_path):
    """Names of features are whatever a client sent."""
    evil = "a'; touch harm; '"
    with Running(tmp_path / "s", every=1000) as running:
        for i in range(6):
            assert statuses(running.ask({"features": {evil: f"w{i % 2}"}, "label": i % 2})) == [200]
    export = Export("default", str(tmp_path / "log of it.jsonl"), None)
    replayed(str(tmp_path / "s"), export=export)
    export.finish()
    words = shlex.split(export.command())
    assert words[:3] == ["rue", "learn", str(tmp_path / "log of it.jsonl")]
    assert words[words.index("--category") + 1] == evil
