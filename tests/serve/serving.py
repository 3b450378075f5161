"""A service in a process of its own, and clients that talk to it."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time

from rue.serve.replaying import replayed
from rue.serve.status import report_of


class Server:
    """`rue serve FOLDER` on a free port; `kill` ends it as power loss does a process, `stop` as SIGTERM does."""

    def __init__(self, folder, *options, env=None, port=0):
        self.events, self.port = [], None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rue", "serve", str(folder), "--port", str(port), *map(str, options)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._listening.wait(300)
        assert self.port is not None, self.events

    def _read(self):
        for line in self.process.stderr:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"event": "text", "text": line}
            self.events.append(event)
            if event["event"] == "listening":
                self.port = event["port"]
                self._listening.set()
        self._listening.set()

    def event(self, name):
        """The details of the first event of this name."""
        return next((event for event in self.events if event["event"] == name), None)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.__exit__()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(120)
        self._reader.join(60)
        return code

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)
        self._reader.join(60)
        self.process.stderr.close()


class Talk:
    """A connection to a server; `ask` gives status and JSON."""

    def __init__(self, port, model="default"):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self.model = model

    def raw(self, method, path, body=None, headers=None):
        if isinstance(body, dict):
            body = json.dumps(body)
        self.connection.request(method, path, body, headers or {})
        answer = self.connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())

    def ask(self, what, body=None, method=None):
        status, content, _ = self.raw(method or ("GET" if body is None else "POST"), self.path(what), body)
        return status, json.loads(content)

    def path(self, what):
        return f"/v1/models/{self.model}/{what}".rstrip("/")

    def batch(self, lines):
        body = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        status, content, _ = self.raw("POST", self.path("batch"), body.encode())
        return status, [json.loads(line) for line in content.splitlines()]

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def report_by_replay(folder, model="default", upto=None):
    """What a replay reports."""
    fold = replayed(folder, upto)
    found = fold.named(model)
    return as_sent(report_of(found, fold.races.get(found.number)))


def as_sent(report):
    """A report as JSON has it."""
    import msgspec

    return json.loads(msgspec.json.encode(report))


def wait_until(true, most=60):
    deadline = time.monotonic() + most
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
