"""Every route of a real server, asked over HTTP."""

import contextlib
import json
import socket
import subprocess
import sys
import time

import msgspec
import pytest

import rue
from rue.errors import DataError
from rue.serve.client import Client
from serve.serving import Server, Talk, report_by_replay


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    with Server(folder, "--task", "auto") as server:
        server.folder = folder
        with Talk(server.port) as talk:
            talk.batch({"features": {"x": i / 100, "word": "ab"[i % 2]}, "label": i % 3 == 0} for i in range(100))
        yield server


@pytest.fixture
def talk(server):
    with Talk(server.port) as talk:
        yield talk


def test_predict_label_and_learn(talk):
    status, predicted = talk.ask("predict", {"id": "order 1", "features": {"x": 0.5, "word": "a"}})
    assert status == 200
    assert predicted["id"] == "order 1"
    assert predicted["label"] == (predicted["score"] > 0)
    assert 0.0 < predicted["probability"] < 1.0
    assert talk.ask("label", {"id": "order 1", "label": True, "weight": 2}) == (
        200,
        {"learnt": True, "t": predicted["t"] + 1},
    )
    own = talk.ask("predict", {"features": {"x": 0.25}})[1]["id"]
    assert own.startswith("#")
    assert talk.ask("label", {"id": own, "label": False})[0] == 200
    status, learnt = talk.ask("learn", {"features": {"x": 1, "word": None}, "label": True})
    assert (status, learnt["learnt"]) == (200, True)
    assert talk.ask("label", {"id": "not yet", "label": True})[0] == 202
    assert talk.ask("predict", {"id": "not yet", "features": {"x": 1}})[0] == 200
    assert talk.ask("label", {"id": "not yet", "label": True})[1]["duplicate"] is True


@pytest.mark.parametrize(
    ("method", "what", "body", "status", "why"),
    [
        ("POST", "predict", "{", 400, "not JSON"),
        ("POST", "predict", b"\xff", 400, "JSON"),
        ("POST", "predict", {"features": {"x": [1]}}, 400, "features"),
        ("POST", "predict", {"features": {"x": "word"}}, 400, "number there"),
        ("POST", "predict", {"features": {"x": 1}, "label": 1}, 400, "learn"),
        ("POST", "predict", '{"features": {"x": 1e400}}', 400, "range"),
        ("POST", "label", {"label": 1}, 400, "needs the id"),
        ("POST", "label", {"id": "#99999", "label": True}, 404, "no prediction"),
        ("POST", "label", {"id": "", "label": True}, 400, "id"),
        ("POST", "learn", {"features": {"x": 1}, "label": "maybe"}, 400, "word"),
        ("POST", "learn", {"features": {"x": 1}, "label": True, "weight": -1}, 400, "weight"),
        ("GET", "predict", None, 405, "use POST"),
        ("DELETE", "", None, 405, "use PUT or GET"),
        ("GET", "nothing", None, 404, "openapi.json"),
        ("POST", "batch", b"\n\n", 400, "no lines"),
        ("GET", "certificate?radius=wide", None, 400, "radius is a number"),
        ("GET", "certificate?radius=-1", None, 400, "radius"),
        ("GET", "certificate?window=wide", None, 400, "window is two numbers"),
        ("GET", "weights?top=0", None, 400, "top"),
        ("PUT", "", {"task": "guess"}, 400, "task is"),
        ("PUT", "", {"lerner": "ogd"}, 400, "options of rue learn"),
        ("PUT", "", {"task": "regress"}, 409, "other options"),
        ("POST", "explain", {"features": {"x": "word"}}, 400, "number there"),
    ],
)
def test_refusals_are_sentences_and_change_nothing(talk, method, what, body, status, why):
    before = talk.ask("report")[1]
    found, content, _ = talk.raw(method, talk.path(what), body)
    assert (found, why in json.loads(content)["error"]) == (status, True), content
    assert talk.ask("report")[1] == before


def test_reading_routes(server, talk):
    report = talk.ask("report")[1]
    assert report == report_by_replay(server.folder)
    shown = talk.ask("certificate?radius=3")[1]
    assert shown["radius"] == 3.0
    assert shown["regret_at_most"] <= report["loss_total"]
    assert talk.ask("certificate?radius=3&window=last:50")[1]["window"]
    weights = talk.ask("weights?top=2")[1]["weights"]
    assert len(weights) == 2
    explained = talk.ask("explain", {"features": {"x": 0.5, "word": "a"}})[1]
    assert explained["prediction"] == pytest.approx(
        sum(p["contribution"] for p in explained["parts"]) + explained["rest"]
    )
    assert talk.ask("")[1]["model"] == "default"
    assert json.loads(talk.raw("GET", "/v1/models")[1])["models"][0]["name"] == "default"
    assert talk.raw("GET", "/healthz")[0] == talk.raw("GET", "/readyz")[0] == 200


def test_events_come_each_second(server):
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        connection.sendall(b"GET /v1/models/default/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        seen = b""
        while seen.count(b"data: ") < 2:
            seen += connection.recv(65536)
    assert b"text/event-stream" in seen
    event = json.loads(seen.split(b"data: ")[1].split(b"\n")[0])
    assert event["examples"] >= 100


def test_metrics_are_those_of_the_report(server, talk):
    from prometheus_client.parser import text_string_to_metric_families

    text = talk.raw("GET", "/metrics")[1].decode()
    found = {family.name: family.samples for family in text_string_to_metric_families(text)}
    report = talk.ask("report")[1]
    assert found["rue_examples"][0].value == report["examples"]
    assert found["rue_risk"][0].value == pytest.approx(report["risk"], rel=1e-12)
    assert found["rue_log_writable"][0].value == 1.0
    assert sum(s.value for s in found["rue_requests"] if s.labels["status"] == "200") >= 100


def test_the_page_has_a_policy_and_other_sites_are_refused(talk):
    status, content, headers = talk.raw("GET", "/")
    assert status == 200
    assert b"<script src=" in content
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "http" not in content.decode().replace("http://www.w3.org", "")
    assert talk.raw("GET", "/", headers={"origin": "http://evil.example"})[0] == 403
    assert talk.raw("GET", "/v1/models", headers={"host": "evil.example"})[0] == 403  # a name that leads here


def test_every_route_is_described(talk):
    described = json.loads(talk.raw("GET", "/openapi.json")[1])
    for path, methods in described["paths"].items():
        for method in methods.keys() - {"parameters"}:
            status = talk.raw(method.upper(), path.replace("{name}", "-"), b"{}" if method != "get" else None)[0]
            assert status in ((200,) if "{name}" not in path else (400, 404)), (method, path)
            assert str(status) in methods[method]["responses"]


def test_many_models_and_every_kind_of_learner(server, talk):
    def create(name, **options):
        talk.model = name
        first = talk.ask("", options, method="PUT")[0]
        assert talk.ask("", options, method="PUT") == (200, {"model": name})
        return first

    assert create("prices", task="regress", columns={"when": "date"}) == 201
    for i in range(40):
        talk.ask("learn", {"features": {"x": i % 5, "when": f"2026-01-{1 + i % 28:02}"}, "label": 2.0 * (i % 5) + 1})
    found = talk.ask("predict", {"features": {"x": 3, "when": "2026-02-01"}})[1]
    assert abs(found["value"] - 7.0) < 1.0
    assert create("kinds", task="multiclass") == 201
    for i in range(60):
        talk.ask("learn", {"features": {"x": i % 3, "word": "abc"[i % 3]}, "label": "pqr"[i % 3]})
    found = talk.ask("predict", {"features": {"x": 1, "word": "b"}})[1]
    assert found["label"] == "q"
    assert sum(found["probabilities"].values()) <= 1.0
    talk.model = "none"
    assert talk.ask("report")[0] == 404
    assert talk.ask("", {}, method="PUT")[0] == 201
    talk.model = "a name with spaces"
    assert talk.raw("PUT", "/v1/models/a%20b", b"{}")[0] == 400


def test_the_client(server):
    url = f"http://127.0.0.1:{server.port}"
    assert rue.Client is Client
    with rue.Client(url) as client, Client(url, "of-client") as other:
        assert client.predict({"x": 0.5}, id="from Python")["id"] == "from Python"
        assert client.label("from Python", True)["learnt"]
        assert client.learn({"x": 0.1, "word": "b"}, False)["learnt"]
        assert [line.get("learnt") for line in client.batch([{"features": {"x": 1}, "label": True}] * 3)] == [True] * 3
        assert client.report()["examples"] >= 100
        assert client.certificate(radius=2)["radius"] == 2.0
        assert len(client.weights(3)) == 3
        assert client.explain({"x": 0.5})["parts"]
        assert other.create(task="regress") == {"model": "of-client"}
        with pytest.raises(DataError, match="used with something else"):
            client.label("from Python", False)
    with (
        pytest.raises(DataError, match="no service answers at .*: start|no service answers"),
        Client("http://127.0.0.1:9") as client,
    ):
        client.report()


def test_curl(server):
    url = f"http://127.0.0.1:{server.port}/v1/models/default/learn"
    done = subprocess.run(
        ["curl", "-s", url, "-d", '{"features": {"x": 1}, "label": true}'], capture_output=True, check=True
    )
    assert msgspec.json.decode(done.stdout)["learnt"] is True


def test_a_token_is_needed_and_compared_whole(tmp_path):
    (tmp_path / "token").write_text("0123456789abcdef\n")
    with Server(tmp_path / "served", "--token-file", tmp_path / "token") as server, Talk(server.port) as talk:
        assert talk.ask("report")[0] == 401
        for wrong in ("Bearer 0123456789abcde", "Bearer 0123456789abcdefg", "0123456789abcdef", "Basic x"):
            assert talk.raw("GET", "/metrics", headers={"authorization": wrong})[0] == 401
        assert talk.raw("GET", "/metrics", headers={"authorization": "Bearer 0123456789abcdef"})[0] == 200
        assert talk.raw("GET", "/healthz")[0] == 200
        with Client(f"http://127.0.0.1:{server.port}", token="0123456789abcdef") as client:
            assert client.report()["examples"] == 0


def test_two_servers_on_one_folder_and_a_host_without_a_token(tmp_path):
    def refused(*options):
        command = [sys.executable, "-m", "rue", "serve", str(tmp_path / "served"), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stderr

    with Server(tmp_path / "served") as server:
        code, said = refused("--port", "0")
        assert (code, "another process serves" in said, "Traceback" in said) == (1, True, False)
        code, said = refused("--port", "0", "--host", "0.0.0.0")
        assert (code, "--token-file" in said) == (2, True)
        assert server.stop() == 0
        code, said = refused("--port", "0", "--task", "regress")
        assert (code, "exists with other options" in said) == (1, True)


def test_sigterm_answers_what_came_and_writes_a_snapshot(tmp_path):
    with Server(tmp_path / "served") as server:
        with Talk(server.port) as talk:
            talk.batch({"features": {"x": i}, "label": i % 2} for i in range(50))
            live = talk.ask("report")[1]
        assert server.stop() == 0
        assert [event["event"] for event in server.events][-2:] == ["snapshot", "stopped"]
        assert all({"at", "event"} <= event.keys() for event in server.events)
    with Server(tmp_path / "served") as server, Talk(server.port) as talk:
        assert server.event("restored")["from_snapshot"] == 51
        assert talk.ask("report")[1] == live


def test_a_disk_that_is_full_acknowledges_nothing_and_goes_on_when_there_is_room(tmp_path):
    """The size of files of the process is limited for a while."""
    import resource

    with Server(tmp_path / "served") as server, Talk(server.port) as talk:
        line = {"features": {"text": "x" * 1000, "n": 1}, "label": True}
        assert talk.ask("learn", line)[0] == 200
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        answered = [talk.ask("learn", {**line, "id": f"{i}"})[0] for i in range(200)]
        assert 200 in answered
        assert answered[-1] == 503
        first = answered.index(503)
        assert set(answered[first:]) == {503}
        assert talk.raw("GET", "/readyz")[0] == 503
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        deadline = time.monotonic() + 30
        while talk.raw("GET", "/readyz")[0] != 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert talk.ask("learn", {**line, "id": f"{first}"})[1]["learnt"] is True
        live = talk.ask("report")[1]
        assert live["examples"] == 2 + first
        server.kill()
    with Server(tmp_path / "served") as server, Talk(server.port) as talk:
        assert talk.ask("report")[1] == live


def test_limits(tmp_path):
    with Server(tmp_path / "served") as server:
        with Talk(server.port) as talk:
            assert talk.raw("POST", talk.path("predict"), b" " * (2 << 20))[0] == 413
            many = {"features": {f"f{i}": 1 for i in range(10_001)}}
            assert talk.ask("predict", many)[0] == 400
            deep = b'{"features": ' + b"[" * 100_000
            assert talk.raw("POST", talk.path("predict"), deep)[0] == 400
        with socket.create_connection(("127.0.0.1", server.port), 60) as silent:
            silent.sendall(b"POST /v1/models/default/predict HTTP/1.1\r\nhost: localh")
            silent.settimeout(60)
            started = time.monotonic()
            with contextlib.suppress(ConnectionError):
                assert silent.recv(100) == b""
            assert time.monotonic() - started < 40
