"""Bad input from the wire: requests that schemathesis makes of the description, values of every kind, and bytes.

Whatever comes, the answer is 2xx or 4xx; a request that is refused has changed nothing; and at the end the log still
makes the model that answered.
"""

import contextlib
import json
import random
import socket
import warnings

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conftest import many
from serve.serving import Server, Talk, report_by_replay

MODELS = {
    "default": {"learner": "ogd", "loss": "logistic"},
    "numbers": {"learner": "ogd", "loss": "square", "columns": {"when": "date", "x": "number"}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wire") / "served"
    with Server(folder, "--learner", "ogd", "--loss", "logistic") as server:
        server.folder = folder
        with Talk(server.port) as talk:
            talk.model = "numbers"
            assert talk.ask("", MODELS["numbers"], method="PUT")[0] == 201
            talk.ask("learn", {"features": {"x": 1, "when": "2026-11-19"}, "label": 2.5})
            talk.model = "default"
            talk.batch({"features": {"x": i / 10, "word": "ab"[i % 2]}, "label": i % 3 == 0} for i in range(20))
        yield server


class Watching:
    """Sends requests, and sees to it that those that are refused change nothing."""

    def __init__(self, server):
        self.talk, self.server, self.requests, self.refused = Talk(server.port), server, 0, 0
        self.reports = self.look()

    def look(self):
        return {model: self.talk.raw("GET", f"/v1/models/{model}/report")[1] for model in MODELS}

    def send(self, method, path, body=None, headers=None):
        try:
            status, content, _ = self.talk.raw(method, path, body, headers)
        except (OSError, ValueError):  # http.client would not send that, or the server has closed the connection
            self.talk.close()
            self.talk = Talk(self.server.port)
            return
        self.check(status, (method, path, body, content[:300]))

    def check(self, status, what):
        self.requests += 1
        assert 200 <= status < 300 or 400 <= status < 500, (status, what)
        reports = self.look()
        if status >= 400:
            self.refused += 1
            assert reports == self.reports, what
        self.reports = reports

    def finish(self, least):
        """All is well: the models are those of the log, and something was refused."""
        self.talk.close()
        assert self.requests >= least
        assert self.refused > self.requests // 10
        usual = "restored", "listening", "snapshot", "text"  # the last: that kernels are being compiled
        unusual = [event for event in self.server.events if event["event"] not in usual]
        assert unusual == []
        with Talk(self.server.port) as talk:
            for model in MODELS:
                talk.model = model
                assert talk.ask("report")[1] == report_by_replay(self.server.folder, model)


@pytest.fixture
def watching(server):
    watching = Watching(server)
    yield watching
    watching.talk.close()


def test_what_schemathesis_makes_of_the_description(server, watching):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own dependencies
        schemathesis = pytest.importorskip("schemathesis")
        with Talk(server.port) as talk:
            described = json.loads(talk.raw("GET", "/openapi.json")[1])
        del described["paths"]["/v1/models/{name}/events"]  # which has no end
        batch = described["paths"]["/v1/models/{name}/batch"]["post"]["requestBody"]["content"]
        batch["text/plain"] = batch.pop("application/x-ndjson")  # which schemathesis cannot write
        modes = schemathesis.GenerationMode
        operations = [found.ok() for found in schemathesis.openapi.from_dict(described).get_all_operations()]
        each = many(4, 2_000)
        for operation in operations:
            for mode in (modes.POSITIVE, modes.NEGATIVE):
                exercise(watching, operation.as_strategy(generation_mode=mode), each)
        watching.finish(each * len(operations))


def exercise(watching, strategy, examples):
    chosen = random.Random(0)

    generating = {"phases": [Phase.generate], "suppress_health_check": [*HealthCheck]}

    @settings(max_examples=examples, deadline=None, database=None, **generating)
    @given(strategy)
    def ask(case):
        if case.path_parameters and chosen.random() < 0.8:
            case.path_parameters["name"] = chosen.choice([*MODELS])
        if case.method.upper() == "PUT" and case.path_parameters.get("name") not in MODELS:
            case.path_parameters["name"] = "another"  # each name that is good would be one more model
        sent = case.as_transport_kwargs(base_url="http://127.0.0.1")
        path = sent["url"].removeprefix("http://127.0.0.1")
        if sent.get("params"):
            from urllib.parse import urlencode

            path += "?" + urlencode(sent["params"], doseq=True)
        body = json.dumps(sent["json"]) if "json" in sent else sent.get("data")
        headers = {str(k): str(v) for k, v in dict(sent.get("headers") or {}).items() if str(k).lower() != "host"}
        watching.send(case.method.upper(), path, body.encode() if isinstance(body, str) else body, headers)

    from hypothesis.errors import Unsatisfiable

    with contextlib.suppress(Unsatisfiable):  # nothing can be wrong with a request that has no parts
        ask()


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True),
    st.text(max_size=10),
    st.sampled_from(["", "2026-11-19", "1e999", "NaN", "\ud800", "#1", "\0", 1e308, -1e308, 5e-324, 10**400, [1], {}]),
)
LINES = st.fixed_dictionaries(
    {},
    optional={
        "features": VALUES | st.dictionaries(st.text(max_size=5) | st.just("x"), VALUES, max_size=4),
        "label": VALUES,
        "id": st.one_of(st.text(max_size=5), st.integers(), st.sampled_from(["#1", "#999999", "a", "b", "x" * 300])),
        "weight": VALUES,
        "more": VALUES,
    },
)


def test_values_of_every_kind(watching):
    @settings(max_examples=many(150, 30_000), deadline=None, database=None, suppress_health_check=[*HealthCheck])
    @given(
        LINES,
        st.sampled_from(["predict", "label", "learn", "batch", "explain", "challenger"]),
        st.sampled_from([*MODELS]),
    )
    def ask(line, what, model):
        body = json.dumps(line).encode()
        if what == "batch":
            body = body + b"\n" + body[:-1]
        if what == "batch":  # its lines are answered one by one
            status, content, _ = watching.talk.raw("POST", f"/v1/models/{model}/{what}", body)
            assert status == 200
            for answer in map(json.loads, content.splitlines()):
                assert answer.get("status", 200) < 500, (line, answer)
            watching.requests += 1
            watching.reports = watching.look()
        else:
            watching.send("POST", f"/v1/models/{model}/{what}", body)

    ask()
    watching.finish(many(100, 20_000))


GOOD = [
    b"POST /v1/models/default/predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 23\r\n\r\n"
    b'{"features": {"x": 1}}\n',
    b"POST /v1/models/default/learn HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    b'25\r\n{"features": {"x": 1}, "label": true}\r\n0\r\n\r\n',
    b"GET /v1/models/default/certificate?radius=1&window=last:5 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"PUT /v1/models/numbers HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}",
    b"POST /v1/models/numbers/batch HTTP/1.1\r\nhost: localhost\r\ncontent-length: 40\r\n\r\n"
    b'{"features": {"x": 1}, "label": 2.5}\n\n\n\n',
]


def damaged(chance):
    """A request with some bytes changed, cut out, doubled, or of another one."""
    data = bytearray(chance.choice(GOOD))
    for _ in range(chance.randrange(1, 5)):
        at, what = chance.randrange(len(data) + 1), chance.randrange(5)
        if what == 0:
            data[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(4))
        elif what == 1:
            del data[at : at + chance.randrange(20)]
        elif what == 2:
            data[at:at] = data[at : at + chance.randrange(40)]
        elif what == 3:
            other = chance.choice(GOOD)
            data[at:] = other[chance.randrange(len(other)) :]
        else:
            data[at:at] = chance.choice([b"\r\n", b"\0", b"%", b"?", b" ", b"\xff", b"host: x\r\n", b"9" * 30])
        if not data:
            data = bytearray(b"\n")
    return bytes(data)


def test_bytes(server, watching):
    """Every answer that comes is 2xx or 4xx; requests that are not finished are closed by us."""
    chance = random.Random(3)
    for _ in range(many(200, 30_000)):
        data = damaged(chance)
        with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
            connection.sendall(data)
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            found = b""
            with contextlib.suppress(OSError):
                while part := connection.recv(1 << 16):
                    found += part
        for line in found.split(b"\r\n"):
            if line.startswith(b"HTTP/1.1 "):
                status = int(line[9:12])
                assert 200 <= status < 300 or 400 <= status < 500, (data, found)
        watching.requests += 1
        watching.refused += b"HTTP/1.1 4" in found
        reports = watching.look()
        if found.startswith(b"HTTP/1.1 4") and found.count(b"HTTP/1.1 ") == 1 and b'{"error":' in found:
            assert reports == watching.reports, data  # else what stands behind a good request is no request
        watching.reports = reports
    watching.finish(many(200, 30_000))
