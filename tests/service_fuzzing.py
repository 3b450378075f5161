"""Random services, fed with whatever comes, killed, out of disk and damaged; then replayed and started again."""

import contextlib
import dataclasses
import hashlib
import http.client
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time

from attacking import CODES, MOST_MEMORY, MOST_SECONDS, Finished, Mishap, Reader, damaged, peak, run

OPTIONS = [
    [],
    [],
    ["--task", "classify"],
    ["--linear"],
    ["--interval", "0.9"],
    ["--lags", "1"],
    ["--alarm", "100"],
    ["--class-weight", "balanced"],
    ["--learner", "ogd"],
    ["--snapshot-every", "7"],
    ["--snapshot-every", "5", "--prune", "0"],
    ["--pending", "3"],
]
WRONG = [
    ["--interval", "2"],
    ["--port", "99999"],
    ["--expire", "never"],
    ["--host", "0.0.0.0"],
    ["--token-file", "no-such-file"],
    ["--task", "guess"],
    ["--lags", "0"],
    ["--pending", "0"],
]
CELLS = [0, 1, -1.5, 1e300, 1e-300, 1e308, "red", "größe", "", "\ud800", None, True, "2026-01-02", 10**400, [1], {}]
LABELS = ["yes", "no", "yes", "no", 1, 0, 2.5, None, "\udfff", 1e308, [], "third"]
BODIES = [
    b"",
    b"{",
    b"null",
    b"\xff",
    b"[" * 5000,
    b'{"features": 3}',
    b'{"features": {}, "label": 1, "weight": -1}',
    b"1e999",
]


def line(rng):
    """An example, mostly a good one."""
    good = rng.random() < 0.8
    row = {f"c{j}": rng.random() if good else rng.choice(CELLS) for j in range(rng.choice([2, 2, 2, 3]))}
    found = {"features": row, "label": rng.choice(LABELS[:4] if good else LABELS)}
    if rng.random() < 0.2:
        found["weight"] = rng.choice([0, 1, 2.5, 1e300, -1, 1e-300])
    if rng.random() < 0.3:
        found["id"] = rng.choice(["a", "b", "#1", "", "x" * 300, str(rng.random())])
    return found


class Serving:
    """`rue serve` in a folder: its events, and its requests."""

    def __init__(self, folder, args, mishap):
        self.args = ["serve", "service", "--port", "0", *args]

        def limits():
            if mishap.room is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (mishap.room, mishap.room))

        command = [sys.executable, "-m", "rue", *self.args]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limits
        )
        self.events, self.port, self.memory, self.listening = [], None, 0, threading.Event()
        self.out = Reader(self.process.stdout)
        self.reading = threading.Thread(target=self._read, daemon=True)
        self.reading.start()

    def _read(self):
        with self.process.stderr:
            for text in self.process.stderr:
                self.events.append(text.decode(errors="replace"))
                if '"event": "listening"' in self.events[-1]:
                    self.port = json.loads(self.events[-1])["port"]
                    self.listening.set()
        self.listening.set()

    def ask(self, what, body):
        """Status and content of an answer; None where there is none, because the process has ended."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=MOST_SECONDS)
            with contextlib.closing(connection):
                connection.request("GET" if body is None else "POST", f"/v1/models/default/{what}", body)
                answer = connection.getresponse()
                return answer.status, answer.read()
        return None

    def end(self, number):
        """Send a signal, if one is named, and wait for the end."""
        self.memory = peak(self.process.pid)
        if number is not None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(("still running", self.args)) from None
        self.reading.join()
        return Finished(self.args, code, self.out.text(), "".join(self.events), self.memory)


def checked(done, mishap=None, deadly=frozenset()):
    """What must hold of every service that has ended."""
    about = done.args, mishap, done.code, done.err[-800:]
    assert done.code in CODES or -done.code in deadly, about
    assert "Traceback" not in done.out + done.err, about
    assert "should not happen" not in done.err, about
    assert done.memory < MOST_MEMORY, about
    return done


def attack_service(rng, folder):
    """Serve a new folder, ask it everything, end it somehow; replay what it left, damage it, start it again."""
    options, wrong = list(rng.choice(OPTIONS)), rng.random() < 0.1
    if wrong:
        options += rng.choice(WRONG)
    mishap = dataclasses.replace(Mishap.draw(rng), signals=(), closed="")
    served = Serving(folder, options, mishap)
    served.listening.wait(MOST_SECONDS)
    learnt = 0 if served.port is None else ask_everything(rng, served)
    number = rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]) if served.port is not None else None
    done = [checked(served.end(number), mishap, {number} if number == signal.SIGKILL else set())]
    assert served.port is None or not wrong, options
    if (folder / "service" / "log.sqlite").is_file() and served.port is not None:
        done += after(rng, folder, learnt, mishap)
    return done


def ask_everything(rng, served):
    """Requests of every kind; how many examples were acknowledged as learnt."""
    learnt = 0
    for _ in range(rng.choice([3, 20, 60])):
        what, body = rng.choice(["learn", "learn", "learn", "predict", "label", "batch"]), line(rng)
        if what == "batch":
            content = "\n".join(json.dumps(line(rng)) for _ in range(rng.choice([1, 5, 40]))).encode()
        elif what == "predict":
            content = json.dumps({"features": body["features"]}).encode()
        elif what == "label":
            content = json.dumps({"id": body.get("id", "a"), "label": body["label"]}).encode()
        else:
            content = json.dumps(body).encode()
        if rng.random() < 0.1:
            content = rng.choice([*BODIES, damaged(content, rng)])
        answer = served.ask(what, content)
        if answer is None:
            return learnt
        assert 200 <= answer[0] < 504, (what, content[:300], answer)
        assert answer[0] != 500, (what, content[:300], answer)
        # With an id it may be a retry; what has no weight is not counted.
        learnt += what == "learn" and answer[0] == 200 and "id" not in body and body.get("weight") != 0
    for what in rng.sample(["report", "certificate?radius=3", "weights?top=3", "", "certificate?radius=nan"], 2):
        answer = served.ask(what, None)
        assert answer is None or answer[0] != 500, (what, answer)
    return learnt


def after(rng, folder, learnt, mishap):
    """Replay the folder, which changes nothing, and start the service again, perhaps on damaged files."""
    service = folder / "service"
    files = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in service.rglob("*") if kept(path)}
    outputs = ["--report", "r.json", "--export", "e.jsonl", "--predictions", "s.csv", "--model", "m.rue"]
    done = [run(folder, ["replay", "service", *outputs[: rng.choice([2, 4, 6, 8])]], Mishap())]
    assert all(hashlib.sha256(path.read_bytes()).hexdigest() == digest for path, digest in files.items()), done
    if done[0].code == 0:
        found = json.loads((folder / "r.json").read_text())
        counted = sum(found.get(name) or 0 for name in ("examples", "refused", "unlabelled"))
        counted += sum(found["service"][name] for name in ("held", "bad"))
        assert counted >= learnt, ("an acknowledged example is lost", counted, learnt, found["service"])
    harmed = rng.random() < 0.4 and sorted(path for path in service.rglob("*") if path.is_file())
    if harmed:
        path = rng.choice(harmed)
        path.write_bytes(damaged(path.read_bytes(), rng))
    again = Serving(folder, [], dataclasses.replace(mishap, room=None))
    again.listening.wait(MOST_SECONDS)
    if again.port is not None:
        time.sleep(rng.choice([0, 0.2]))
        again.ask("report", None)
        done.append(checked(again.end(signal.SIGTERM)))
    else:
        done.append(checked(again.end(None)))
        assert done[-1].code in (1, 2), (done[-1].args, done[-1].err[-500:])
        assert harmed, (again.args, again.events)
    return done


def kept(path):
    """Files that only the service itself changes; SQLite's index of its WAL is made anew by readers."""
    return path.is_file() and not path.name.endswith("-shm") and os.access(path, os.R_OK)
