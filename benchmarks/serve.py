"""The service under load: single predictions, batches, memory, restarts; with a bare echo, and Vowpal Wabbit's daemon.

The server has one core, the clients have another, and what is counted is both the clock and the processor time of the
server, which other work on the machine does not change. `RUE_SERVE_LINES` is how many lines the long run has.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Row = tuple[str, float, str]
CONNECTIONS, EACH, TURNS = 32, int(os.environ.get("RUE_SERVE_EACH", "200")), 3
LINES = int(os.environ.get("RUE_SERVE_LINES", "1000000"))
BATCH = 20_000
TICKS = os.sysconf("SC_CLK_TCK")

ECHO = """
import asyncio, socket, sys, msgspec, uvicorn
from rue.serve.server import _Connection, _new_loop
encode, decode = msgspec.json.Encoder().encode, msgspec.json.Decoder().decode
async def application(scope, receive, send):
    if scope["type"] != "http":
        return
    body = decode((await receive())["body"])
    found = encode({"id": body["id"], "score": 0.5, "label": True, "probability": 0.5, "t": 1000})
    headers = [(b"content-length", b"%d" % len(found)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": found})
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen(2048)
print('{"event": "listening", "port": %d}' % listening.getsockname()[1], file=sys.stderr, flush=True)
config = uvicorn.Config(application, http=_Connection, log_config=None, access_log=False, lifespan="off",
                        server_header=False, date_header=False)
asyncio.Runner(loop_factory=_new_loop).run(uvicorn.Server(config).serve([listening]))
"""


DAEMON = """
import sys, vowpalwabbit
workspace = vowpalwabbit.Workspace(arg_list=sys.argv[1:])
workspace.run_parser()  # which `python -m vowpalwabbit` leaves out: it closes the first connection
"""


class Process:
    """A server on a core of its own."""

    def __init__(self, *command: str) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, *command], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        os.sched_setaffinity(self.process.pid, {0})
        self.events: dict[str, Any] = {}
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if not line.startswith("{"):  # that kernels are being compiled
                continue
            event = json.loads(line)
            self.events[event["event"]] = event
            if event["event"] == "listening":
                break
        self.ready = time.perf_counter() - self.started
        self.port = self.events["listening"]["port"]
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def cpu(self) -> float:
        """Seconds of the processor so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> float:
        """MB that it holds now."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) / 1024

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(300)


@contextmanager
def serving(*command: str) -> Iterator[Process]:
    process = Process(*command)
    try:
        yield process
    finally:
        process.stop()


def example(chance: random.Random) -> dict[str, float]:
    return {f"feature{j}": round(chance.gauss(0, 1), 4) for j in range(20)}


def request(path: str, content: Any) -> bytes:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (path.encode(), len(body), body)


class Asking(asyncio.Protocol):
    """A connection that asks again when it is answered, or at certain times."""

    def __init__(self, requests: list[bytes], over: asyncio.Future[None]) -> None:
        self.requests, self.over, self.done, self.rest, self.asked = requests, over, 0, b"", 0.0
        self.took: list[float] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.asked = time.perf_counter()
        self.transport.write(self.requests[self.done])

    def data_received(self, data: bytes) -> None:
        self.rest += data
        head = self.rest.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self.rest.index(b"content-length: ") + 16
        if len(self.rest) < head + 4 + int(self.rest[at : self.rest.index(b"\r", at)]):
            return
        assert self.rest[9:12] == b"200", self.rest
        self.took.append(time.perf_counter() - self.asked)
        self.rest = b""
        self.done += 1
        if self.done == len(self.requests):
            self.over.set_result(None)
        else:
            self.ask()


class Paced(Asking):
    """Asks every so many seconds, and counts the time from when it meant to ask."""

    every = 0.01

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        loop = asyncio.get_running_loop()
        self.due = time.perf_counter() + random.random() * self.every
        loop.call_later(max(0.0, self.due - time.perf_counter()), self.ask)

    def ask(self) -> None:
        wait = self.due - time.perf_counter()
        if wait > 0.0005:
            asyncio.get_running_loop().call_later(wait, self.ask)
            return
        self.asked, self.due = self.due, self.due + self.every
        self.transport.write(self.requests[self.done])


async def load(port: int, all_requests: list[list[bytes]], kind: type[Asking] = Asking) -> tuple[float, list[float]]:
    """Seconds until all connections are done, and how long each request took."""
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in all_requests]
    started = time.perf_counter()
    made = await asyncio.gather(
        *(
            loop.create_connection(lambda r=requests, f=future: kind(r, f), "127.0.0.1", port)  # type: ignore[misc]
            for requests, future in zip(all_requests, futures, strict=True)
        )
    )
    await asyncio.gather(*futures)
    seconds = time.perf_counter() - started
    for transport, _ in made:
        transport.close()
    return seconds, [took for _, protocol in made for took in protocol.took]


def predictions(turn: int, each: int = EACH) -> list[list[bytes]]:
    chance = random.Random(turn)
    return [
        [
            request("/v1/models/default/predict", {"id": f"{turn}-{c}-{i}", "features": example(chance)})
            for i in range(each)
        ]
        for c in range(CONNECTIONS)
    ]


def lines(many: int, seed: int) -> bytes:
    """Examples with their labels, as NDJSON."""
    chance, out = random.Random(seed), []
    for _ in range(many):
        features = example(chance)
        label = features["feature0"] + chance.gauss(0, 1) > 0
        out.append(json.dumps({"features": features, "label": label}))
    return "\n".join(out).encode()


def post(port: int, body: bytes) -> None:
    """A batch, whose answers are read to their end."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", "/v1/models/default/batch", body)
    answer = connection.getresponse()
    assert answer.status == 200
    while part := answer.read(1 << 20):
        assert b'"error"' not in part
    connection.close()


def _measured(rows: Callable[[str], list[Row]]) -> list[Row]:
    """What a function measures in a folder of its own, from the last core."""
    os.sched_setaffinity(0, {max(1, os.cpu_count() or 1) - 1})
    try:
        with tempfile.TemporaryDirectory() as folder:
            return rows(folder)
    finally:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def single_rows() -> list[Row]:
    return _measured(_single)


def batch_rows() -> list[Row]:
    return _measured(_many)


def daemon_rows() -> list[Row]:
    try:
        return _measured(_daemon)
    except OSError as error:
        print(f"Vowpal Wabbit's daemon closed the connection ({error}): its rows are left out")
        return []


def _single(folder: str) -> list[Row]:
    """Durable predictions one by one, in turns with the echo."""
    rows: list[Row] = []
    with (
        serving("-m", "rue", "serve", f"{folder}/single", "--port", "0", "--learner", "mixture") as rue,
        serving("-c", ECHO) as echo,
    ):
        post(rue.port, lines(2000, 0))
        best: dict[str, list[float]] = {"durable predictions": [], "the echo": []}
        cost: dict[str, list[float]] = {"durable predictions": [], "the echo": []}
        for turn in range(TURNS + 1):
            for name, server in (("durable predictions", rue), ("the echo", echo)):
                before, asked = server.cpu(), predictions(turn)
                seconds, _ = asyncio.run(load(server.port, asked))
                if turn:  # the first one warms up
                    best[name].append(CONNECTIONS * EACH / seconds)
                    cost[name].append(CONNECTIONS * EACH / max(server.cpu() - before, 1 / TICKS))
        for name, wanted in (("durable predictions", "≥ 6,000"), ("the echo", "–")):
            rows.append((f"{name} a second, {CONNECTIONS} connections, by the clock", max(best[name]), wanted))
            rows.append((f"{name} a second of the processor", max(cost[name]), wanted))
        Paced.every = 2 * CONNECTIONS / max(best["durable predictions"])
        _, took = asyncio.run(load(rue.port, predictions(99), Paced))
        took.sort()
        slow = 1e3 * took[int(0.99 * len(took))]
        rows.append(("99 % of predictions at half of that rate take at most, in ms", slow, "< 50"))
    return rows


def _many(folder: str) -> list[Row]:
    """Batches, memory over a long run, and restarts."""
    command = ("-m", "rue", "serve", f"{folder}/many", "--port", "0", "--learner", "mixture")
    rows: list[Row] = []
    bodies = [lines(BATCH, 1 + k) for k in range(4)]
    with serving(*command) as rue:
        speeds, costs, memory = [], [], {}
        for k in range(max(5, LINES // BATCH)):
            before, started = rue.cpu(), time.perf_counter()
            post(rue.port, bodies[k % 4])
            speeds.append(BATCH / (time.perf_counter() - started))
            costs.append(BATCH / (rue.cpu() - before))
            memory[k + 1] = rue.memory()
        tenth = max(1, len(speeds) // 10)
        rows.append(("examples of batches a second, by the clock", max(speeds), "≥ 60,000"))
        rows.append(("examples of batches a second of the processor", max(costs), "≥ 60,000"))
        rows.append((f"memory after {tenth * BATCH:,} lines, in MB", memory[tenth], "–"))
        rows.append((f"memory after {len(speeds) * BATCH:,} lines, in MB", memory[len(speeds)], "the same"))
    with serving(*command) as rue:
        restored = rue.events["restored"]
        what = f"seconds to restore a log of {restored['records']:,} records from its snapshot"
        rows.append((what, restored["seconds"], "< 3"))
        rows.append(("seconds from the command to listening", rue.ready, "–"))
    return rows


def _daemon(folder: str) -> list[Row]:
    """Vowpal Wabbit's daemon on the same examples, a line a request, over one connection and over several."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = ["--daemon", "--num_children", "1", "--port", str(port), "--loss_function", "logistic", "--foreground"]
    command = [sys.executable, "-c", DAEMON, *arguments, "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder)
    try:
        os.sched_setaffinity(process.pid, {0})
        deadline = time.monotonic() + 60
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", port), 5)
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    print("Vowpal Wabbit's daemon does not start here")
                    return []
                time.sleep(0.1)
        chance = random.Random(1)
        text = []
        for _ in range(BATCH):
            features = example(chance)
            label = 1 if features["feature0"] + chance.gauss(0, 1) > 0 else -1
            text.append(f"{label} |f " + " ".join(f"{name}:{value}" for name, value in features.items()))
        content = ("\n".join(text) + "\n").encode()
        speeds = []
        for _ in range(TURNS):
            started, lines_back = time.perf_counter(), 0
            sender = threading.Thread(target=connection.sendall, args=(content,))
            sender.start()
            while lines_back < BATCH:
                lines_back += connection.recv(1 << 16).count(b"\n")
            sender.join()
            speeds.append(BATCH / (time.perf_counter() - started))
        one, singles = 2000, []
        for _ in range(TURNS):
            started = time.perf_counter()
            for line in text[:one]:
                connection.sendall(line.encode() + b"\n")
                while not connection.recv(1 << 16).endswith(b"\n"):
                    pass
            singles.append(one / (time.perf_counter() - started))
        connection.close()
        return [
            ("Vowpal Wabbit's daemon, lines in a stream, by the clock (nothing is on disk)", max(speeds), "–"),
            ("Vowpal Wabbit's daemon, line by line over its one connection", max(singles), "–"),
        ]
    finally:
        process.kill()
        process.wait(60)
