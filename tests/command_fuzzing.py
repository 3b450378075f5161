"""Random commands on damaged files, interrupted, killed, out of disk: `python command_fuzzing.py SECONDS SEED`.

Each attack is one or two real `rue` processes in a folder of its own. Whatever is thrown at it, a command ends within
its time, with one of its exit codes, without a traceback, leaves its inputs as they were, and stays below
`MOST_MEMORY`; if it exits with 0, every row of the data was learnt or is counted as skipped, refused or unlabelled. An
attack that finds something raises with its seed: `python command_fuzzing.py replay SEED` repeats it in the folder that
it names.
"""

import bz2
import contextlib
import dataclasses
import gzip
import hashlib
import json
import lzma
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa

import fuzzing
import rue
from formats import PACKERS, WRITERS, svmlight, table, vw, write

MOST_MEMORY = 2**30
"""Bytes of a process whose input is at most a few MB: 200 MB to start, 400 MB while it compiles."""
MOST_SECONDS = 300
"""A command takes a second or two; the limit leaves room for a busy machine that compiles."""
CODES = {0, 1, 2, 130}
PACKAGE = str(Path(rue.__file__).parent)

UNPACKERS = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(),
}
JUNK = [*fuzzing.JUNK, *fuzzing.LETTERS]
JUNK += [b"\n1 4294967295:1\n", b'\n{"y": "\\ud800", "c0": 1}\n', b'\n{"\\udfff": 1}\n', b'\n"', b"\n" * 300]
JUNK += [b"x" * 100_000, b",1" * 40_000, b"\x1f\x8b\x08", b"1e-320", b"-1e308", b"\xed\xa0\x80"]
SETTINGS = [  # few, since each of them takes seconds to compile
    [],
    [],
    [],
    ["--learner", "ogd"],
    ["--learner", "ogd", "--loss", "hinge", "--domain", "ball:10"],
    ["--learner", "adagrad"],
]
WRONG = [  # each must be refused in words
    ["--radius", "-1"],
    ["--radius", "nan"],
    ["--every", "0"],
    ["--every", "-3s"],
    ["--passes", "0"],
    ["--bits", "40"],
    ["--loss", "no-such-loss"],
    ["--domain", "ball:-1"],
    ["--step", "fixed:nan"],
    ["--learner", "svm:-1"],
    ["--bad", "perhaps"],
    ["--task", "guess"],
    ["--format", "xls"],
    ["--no-such-option"],
]


@dataclasses.dataclass
class Finished:
    """How a process ended."""

    args: list
    code: int
    out: str
    err: str
    memory: int


@dataclasses.dataclass
class Mishap:
    """What happens to a process while it runs."""

    signals: tuple = ()
    """Pairs of seconds after the one before, and a signal."""
    room: int | None = None
    """Bytes that a file may have before the disk counts as full."""
    closed: str = ""
    """Streams that are closed from the start, in the shell's words."""

    @property
    def deadly(self):
        """The signals that may end the process at once: before Python, on a busy machine, comes to rue's first line."""
        return {number for _, number in self.signals}

    @classmethod
    def draw(cls, rng):
        kind = rng.randrange(10)
        if kind == 0:
            return cls(signals=((rng.uniform(0, 2.5), signal.SIGKILL),))
        if kind == 1:
            return cls(signals=((rng.uniform(0, 2.5), rng.choice([signal.SIGINT, signal.SIGTERM])),))
        if kind == 2:
            return cls(signals=tuple((rng.choice([0.01, 0.1, 0.7]), signal.SIGINT) for _ in range(rng.randint(2, 5))))
        if kind == 3:
            return cls(room=rng.choice([0, 100, 5_000, 60_000]))
        if kind == 4:
            return cls(closed=rng.choice([">&-", "2>&-", "<&-", ">&- 2>&-"]))
        return cls()


NO_MISHAP = Mishap()


def run(folder, args, mishap=NO_MISHAP, stdin=None):
    """A command in a folder, with everything that every command must keep to checked."""
    command = [sys.executable, "-m", "rue", *args]
    if mishap.closed:
        command = ["sh", "-c", f'exec "$@" {mishap.closed}', "sh", *command]

    def limits():
        resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30, 16 * 2**30))
        if mishap.room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (mishap.room, mishap.room))

    with open(stdin or os.devnull, "rb") as source:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=limits,
            start_new_session=True,
        )
    printed = [Reader(process.stdout), Reader(process.stderr)]
    code, memory = watched(process, mishap, args)
    done = Finished(args, code, *(reader.text() for reader in printed), memory)
    about = (args, mishap, code, done.err[-600:])
    assert code in CODES or -code in mishap.deadly, about
    shown = "Traceback" in done.out + done.err
    before_rue = signal.SIGINT in mishap.deadly and "KeyboardInterrupt" in done.err and PACKAGE not in done.err
    assert not shown or before_rue, about  # while Python itself starts, nobody can help it
    assert "should not happen" not in done.err, about
    assert memory < MOST_MEMORY, (memory, about)
    if code in (1, 2) and "2>&-" not in mishap.closed:
        assert done.err.strip(), about
    return done


class Reader(threading.Thread):
    """Reads a pipe to its end while the process runs."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.data = pipe, b""
        self.start()

    def run(self):
        with self.pipe:
            self.data = self.pipe.read()

    def text(self):
        self.join()
        return self.data.decode(errors="replace")


def watched(process, mishap, args):
    """Send the signals, wait for the end: the exit code and the largest memory that was seen."""
    begun, pending, memory = time.monotonic(), list(mishap.signals), 0
    due = begun + pending[0][0] if pending else None
    while process.poll() is None:
        memory = max(memory, peak(process.pid))
        now = time.monotonic()
        if due is not None and now >= due:
            os.kill(process.pid, pending.pop(0)[1])
            due = now + pending[0][0] if pending else None
        if now - begun > MOST_SECONDS:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise AssertionError(("still running", MOST_SECONDS, args, mishap))
        time.sleep(0.005)
    return process.returncode, memory


def peak(pid):
    """The largest memory of a process so far, in bytes; 0 if it has ended."""
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) * 1024 if found else 0
    return 0


# Data.


def damaged(data, rng):
    """Some bytes, a few of them changed, lost, moved or added."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at, size = rng.randint(0, len(data)), rng.choice([1, 3, 50, 5000])
        what = rng.randrange(6)
        if what == 0:
            data[at:at] = rng.choice(JUNK)
        elif what == 1:
            del data[at : at + size]
        elif what == 2:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif what == 3:
            data[at:at] = data[rng.randint(0, len(data)) :][:size]
        elif what == 4:
            data[at : at + size] = bytes(min(size, len(data) - at))
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


@dataclasses.dataclass
class Input:
    """A file of examples."""

    path: Path
    rows: int
    """How many were written, before any damage."""
    whole: bool

    @property
    def at_least(self):
        """How many rows a reader must account for; None if it cannot read the file to its end without an error."""
        if self.whole:
            return self.rows
        data = self.path.read_bytes()
        suffixes = self.path.suffixes
        if len(suffixes) > 1:
            try:
                data = UNPACKERS[suffixes[1]](data)
            except Exception:  # each library has its own
                return None
        if suffixes[0] == ".ipc":
            return 0  # a stream that is cut between two batches looks complete, as the docs say
        if suffixes[0] in (".parquet", ".arrow"):
            return self.rows
        lines = data.split(b"\n")
        if suffixes[0] == ".svm":
            return sum(fuzzing.svmlight_line(line) is not None for line in lines)
        rows = sum(bool(line.strip(b" \t\v\f\r")) for line in lines)
        # A quoted field may hold line ends, at most 16 of them if the lines inside look like rows.
        return max(0, rows - 1 - 17 * data.count(b'"')) if suffixes[0] == ".csv" else rows


def draw_input(folder, rng, suffix, number):
    rows = rng.choice([1, 7, 300, 3000])
    path = folder / (rng.choice(["s", "a b", "größe", "-x", "new\nline"]) + f"{number}{suffix}")
    made = table(rows, wrong=rng.choice([None, None, rng.randrange(rows)]), seed=rng.randrange(100))
    write(path, made)
    whole = rng.random() < 0.5
    if not whole:
        path.write_bytes(damaged(path.read_bytes(), rng))
    return Input(path, rows, whole)


def digests(paths):
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


# Attacks.


def attack(seed, folder):
    """One attack in an empty folder; its commands and how they ended."""
    rng = random.Random(seed)
    suffix = rng.choice(list(WRITERS)) + rng.choice(["", "", *PACKERS])
    if suffix.startswith((".parquet", ".arrow", ".ipc")):
        suffix = "." + suffix.split(".")[1]
    inputs = [draw_input(folder, rng, suffix, number) for number in range(rng.choice([1, 1, 2]))]
    before = digests(file.path for file in inputs)
    try:
        done = [attack_learn(rng, folder, inputs, suffix)]
        model = folder / "m.rue"
        if model.is_file():
            done.append(attack_model(rng, folder, inputs, model))
        return [(finished.args, finished.code) for finished in done]
    finally:
        assert digests(before) == before, ("an input was changed", inputs)


def data_options(suffix):
    return [] if WRITERS["." + suffix.split(".")[1]] in (svmlight, vw) else ["--target", "y"]


def draw_output(rng, name, folder, inputs):
    """A path for an output: mostly a new file, sometimes one that must not be replaced."""
    kind = rng.randrange(16)
    if kind == 0:
        return str(inputs[0].path)
    if kind == 1:
        return "shared-by-two"
    if kind == 2:
        return f"no/such/folder/{name}"
    if kind == 3:
        link = folder / f"link-to-{name}"
        link.unlink(missing_ok=True)
        link.symlink_to(inputs[0].path)
        return link.name
    if kind == 4 and not (folder / name).exists():
        os.mkfifo(folder / f"fifo-{name}")
        drain(folder / f"fifo-{name}")
        return f"fifo-{name}"
    return name


def drain(fifo):
    """Read a FIFO to its end, in a thread that does not hold up anybody."""

    def read():
        with open(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            os.set_blocking(file.fileno(), True)
            end = time.monotonic() + MOST_SECONDS
            while time.monotonic() < end:  # nothing is read before a writer comes
                if not file.read(65_536):
                    time.sleep(0.05)

    threading.Thread(target=read, daemon=True).start()


def attack_learn(rng, folder, inputs, suffix):
    args = ["learn", *(f"./{file.path.name}" for file in inputs), *data_options(suffix), *rng.choice(SETTINGS)]
    stdin, passes = None, 1
    if rng.random() < 0.15:
        formats = {".svm": "svmlight", ".arrow": "ipc"}
        kind = "." + suffix.split(".")[1]
        args = ["learn", "-", "--format", formats.get(kind, kind[1:]), *args[1 + len(inputs) :]]
        stdin, inputs = inputs[0].path, inputs[:1]
    bad = rng.choice(["stop", "skip"])
    args += ["--bad", bad]
    if stdin is None and rng.random() < 0.2:
        passes = 2
        args += ["--passes", "2"]
    asked = {}
    for option, name in {"--model": "m.rue", "--report": "r.json", "--predictions": "p.csv", "--plot": "p.svg"}.items():
        if rng.random() < {"--plot": 0.04, "--model": 0.8}.get(option, 0.5):
            asked[option] = draw_output(rng, name, folder, inputs)
            args += [option, asked[option]]
    if rng.random() < 0.3:
        asked["--checkpoint"] = draw_output(rng, "c.rue", folder, inputs)
        args += ["--checkpoint", asked["--checkpoint"], "--every", rng.choice(["100", "0.01s"])]
    wrong = rng.random() < 0.08
    if wrong:
        args += rng.choice(WRONG)
    args += rng.choice([[], ["-q"]])
    os.environ["RUE_PIECE"] = rng.choice(["20000", str(2**22)])
    mishap = Mishap.draw(rng)
    done = run(folder, args, mishap, stdin)
    if wrong and not mishap.signals:
        assert done.code in (1, 2), (args, done.code, done.err[-600:])
    if done.code == 0:
        check_done(folder, done, asked, inputs, passes)
    return done


def check_done(folder, done, asked, inputs, passes):
    """After exit 0: what was asked for is there, nothing else is, and no row was lost unseen."""
    outputs = {folder / name for name in asked.values()}
    known = outputs | {file.path for file in inputs} | {path for path in folder.iterdir() if path.is_symlink()}
    strange = {path for path in folder.iterdir() if path not in known and not path.is_fifo()}
    strange -= {file for file in folder.glob("*") if file.suffix in WRITERS or file.suffix in PACKERS}
    assert not strange, (done.args, strange)
    report = folder / asked.get("--report", "no report")
    if not report.is_file():
        return
    found = json.loads(report.read_text())
    counted = sum(found.get(name) or 0 for name in ("examples", "skipped", "refused", "unlabelled"))
    wanted = [file.at_least for file in inputs]
    assert None not in wanted, ("a file that breaks off was learnt with exit 0", done.args, inputs)
    assert counted >= passes * sum(wanted), ("rows are lost", done.args, counted, wanted)
    predictions = folder / asked.get("--predictions", "no predictions")
    if predictions.is_file() and predictions != report:
        lines = predictions.read_text().splitlines()
        assert lines[0] == "prediction", (done.args, lines[:2])
        assert len(lines) > found["examples"], (done.args, len(lines), found)


def attack_model(rng, folder, inputs, model):
    """Use a model, perhaps a damaged one."""
    data = model.read_bytes()
    if rng.random() < 0.4:
        model.write_bytes(damaged(data, rng))
    same = model.read_bytes() == data
    before = digests([model])
    name = f"./{rng.choice(inputs).path.name}"
    args = rng.choice(
        [
            ["inspect", "m.rue"],
            ["weights", "m.rue", "-o", "w.csv"],
            ["predict", "m.rue", name, "--bad", "skip", "-o", draw_output(rng, "q.csv", folder, inputs)],
            ["predict", "m.rue", name, "--as", "label"],
            ["learn", name, "--resume", "m.rue", "--bad", "skip", "--report", "again.json"],
        ]
    )
    mishap = Mishap.draw(rng) if rng.random() < 0.5 else Mishap()
    done = run(folder, args, mishap)
    assert digests([model]) == before, ("the model was changed", args)
    if not same and not mishap.signals:
        assert done.code in (1, 2), ("a damaged model was used", args, done.code)
    if same and mishap == Mishap() and args[0] in ("inspect", "weights"):
        assert done.code == 0, (args, done.err[-600:])
    return done


def fuzz(seconds, seed):
    """Attack for some seconds: how many attacks that were."""
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        replay(seed + number)
        number += 1
    return number


def replay(seed):
    """One attack in a folder that is removed unless something was found."""
    top = Path(tempfile.mkdtemp(prefix="rue-attack-"))
    folder = top / "work"
    folder.mkdir()
    try:
        found = attack(seed, folder)
    except Exception as error:
        raise AssertionError(f"attack {seed} in {folder}: {error}") from error
    shutil.rmtree(top)
    return found


if __name__ == "__main__":
    if sys.argv[1] == "replay":
        print(replay(int(sys.argv[2])))
    elif sys.argv[1] == "survey":  # everything that some seconds of attacks find
        first, last = map(int, sys.argv[2:])
        for one in range(first, last):
            try:
                replay(one)
            except AssertionError as error:
                print(re.sub(r"\s+", " ", str(error))[:900], flush=True)
    else:
        print(fuzz(float(sys.argv[1]), int(sys.argv[2])))
