"""Random commands on damaged files, interrupted, killed, out of disk: `python command_fuzzing.py SECONDS SEED`.

Each attack is a few real `rue` processes in a folder of its own: learning (one model, one for every key, in shards),
what is done with models, races, judging, and services (service_fuzzing.py). Whatever is thrown at it, a command ends
within its time, with one of its exit codes, without a traceback, leaves its inputs as they were, and stays below
`MOST_MEMORY`; if it exits with 0, every row of the data was learnt or is counted as skipped, refused, unlabelled or
keyless. An attack that finds something raises with its seed: `python command_fuzzing.py replay SEED` repeats it in the
folder that it names.
"""

import bz2
import dataclasses
import gzip
import hashlib
import json
import lzma
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa

import fuzzing
import service_fuzzing
from attacking import MOST_SECONDS, Mishap, damaged, run
from formats import PACKERS, WRITERS, svmlight, table, vw, write

UNPACKERS = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(),
}
SETTINGS = [  # few, since each of them takes seconds to compile
    [],
    [],
    [],
    ["--learner", "ogd"],
    ["--learner", "ogd", "--loss", "hinge", "--domain", "ball:10"],
    ["--learner", "adagrad"],
]
MORE = [  # any two of these may come together, on any data: refused in words, or done
    ["--linear"],
    ["--maps"],
    ["--interval", "0.9"],
    ["--interval", "0.5,0.99", "--side", "upper"],
    ["--alarm", "1000"],
    ["--alarm", "1e300"],
    ["--holdout", "0.2"],
    ["--holdout", "5"],
    ["--radius", "1e-200"],
    ["--max-line", "1"],
    ["--bits", "3"],
    ["--no-intercept"],
    ["--budget", "100"],
    ["--lags", "1"],
    ["--lags", "1,2,24"],
    ["--calibrate"],
    ["--radius", "1e200"],
]
MORE_OF_TABLES = [  # refused where an example is a line of text
    ["--text", "word"],
    ["--text", "word,c0"],
    ["--category", "c0,word"],
    ["--drop", "c1"],
    ["--id", "word"],
    ["--weight", "c4"],
    ["--positive", "yes"],
    ["--class-weight", "balanced"],
    ["--class-weight", "yes=1e308,no=1e-308"],
    ["--day-first"],
    ["--decimal", ","],
    ["--separator", ";"],
    ["--target", "c0"],
    ["--target", "word"],
    ["--cross", "word,c0"],
    ["--bins", "c0"],
    ["--bins", "c0:4,c1:256"],
    ["--cross", "word,c1", "--cross", "c0,c1,c2"],
    ["--expert-column", "c1"],
    ["--expert-column", "c1,c4", "--expert-as", "score"],
]
KEYS = [["word"], ["c0"], ["word", "--workers", "2"], ["no-such-column"], ["y"], ["größe"]]
SHARDS = [
    ["--shards", "1"],
    ["--shards", "2", "--round", "50"],
    ["--shards", "3", "--on", "inline"],
    ["--shards", "2", "--workers", "2"],
    ["--shards", "2", "--on", "nowhere"],
]
WRONG = [  # each must be refused in words
    ["--interval", "1.5"],
    ["--interval", "nan"],
    ["--interval", "0.9", "--side", "left"],
    ["--alarm", "0.5"],
    ["--alarm", "nan"],
    ["--holdout", "-1"],
    ["--holdout", "2.5"],
    ["--holdout", "nan"],
    ["--test", "no-such-file.csv"],
    ["--budget", "-1"],
    ["--max-line", "0"],
    ["--class-weight", "yes=nan"],
    ["--day-first", "--month-first"],
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
    ["--lags", "0"],
    ["--lags", "1,x"],
    ["--expert", "nameless"],
    ["--expert", "gone=no-such-file.csv"],
    ["--expert-as", "guess"],
    ["--report-by", "without-keys.csv"],
    ["--by", "word", "--shards", "2"],
    ["--by", "word", "--windows", "w.csv"],
    ["--shards", "0"],
    ["--round", "10"],
    ["--workers", "2"],
    ["--cross", "word"],
    ["--bins", "c0:1"],
    ["--bins", "c0:x"],
    ["--no-such-option"],
]


# Data.


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
    if rng.random() < 0.08:
        return [(finished.args, finished.code) for finished in service_fuzzing.attack_service(rng, folder)]
    suffix = rng.choice(list(WRITERS)) + rng.choice(["", "", *PACKERS])
    if suffix.startswith((".parquet", ".arrow", ".ipc")):
        suffix = "." + suffix.split(".")[1]
    inputs = [draw_input(folder, rng, suffix, number) for number in range(rng.choice([1, 1, 2]))]
    tested = [draw_input(folder, rng, suffix, 9)] if rng.random() < 0.1 else []
    before = digests(file.path for file in inputs + tested)
    try:
        done = [rng.choice(FIRST)(rng, folder, inputs, tested, suffix)]
        model = folder / "m.rue"
        if model.is_file():
            done.append(attack_model(rng, folder, inputs, model))
        if rng.random() < 0.15:
            done.append(attack_judged(rng, folder, inputs, suffix))
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


OUTPUTS = {
    "--model": "m.rue",
    "--report": "r.json",
    "--predictions": "p.csv",
    "--plot": "p.svg",
    "--windows": "w.csv",
}


def attack_learn(rng, folder, inputs, tested, suffix):
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
    for options in rng.sample([*MORE, *MORE_OF_TABLES], rng.choice([0, 0, 1, 1, 2, 3])):
        args += options
    read = inputs + tested
    for file in tested:
        args += ["--test", f"./{file.path.name}"]
    if rng.random() < 0.1:
        experts = draw_experts(rng, folder, inputs, passes)
        args += ["--expert", f"other={experts.path.name}", *rng.choice([[], ["--expert-as", "score"]])]
        read = [*read, experts]
    before = digests(file.path for file in read)
    asked = {}
    for option, name in OUTPUTS.items():
        if rng.random() < {"--plot": 0.04, "--model": 0.8, "--windows": 0.15}.get(option, 0.5):
            asked[option] = draw_output(rng, name, folder, read)
            args += [option, asked[option]]
    if rng.random() < 0.3:
        asked["--checkpoint"] = draw_output(rng, "c.rue", folder, read)
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
        check_done(folder, done, asked, [*inputs, *read[len(inputs) :]], passes, len(inputs))
    assert digests(before) == before, ("what was read was changed", args)
    return done


def draw_experts(rng, folder, inputs, passes):
    """Another model's predictions, mostly as many as there are rows."""
    rows = passes * sum(file.rows for file in inputs) + rng.choice([0, 0, 0, 1, -1])
    cells = (rng.choice(["", '""']) if rng.random() < 0.02 else repr(rng.random()) for _ in range(rows))
    path = folder / "experts.csv"
    content = "\n".join(["prediction", *cells, ""]).encode()
    whole = rng.random() < 0.7
    path.write_bytes(content if whole else damaged(content, rng))
    return Input(path, rows, whole)


def attack_parts(rng, folder, inputs, tested, suffix):
    """Learn a model for every key, or in shards."""
    by_key = rng.random() < 0.6
    args = ["learn", *(f"./{file.path.name}" for file in inputs), *data_options(suffix), *rng.choice(SETTINGS)]
    args += ["--by", *rng.choice(KEYS[:3] * 3 + KEYS)] if by_key else rng.choice(SHARDS[:4] * 2 + SHARDS)
    args += ["--bad", rng.choice(["stop", "skip", "skip"])]
    for options in rng.sample([*MORE, *MORE_OF_TABLES], rng.choice([0, 0, 0, 0, 1])):
        args += options
    outputs = {"--model": "m.rue", "--report": "r.json"}
    outputs |= {"--predictions": "p.csv", "--report-by": "k.csv"} if by_key else {"--windows": "w.csv"}
    asked = {}
    for option, name in outputs.items():
        if rng.random() < 0.7:
            asked[option] = draw_output(rng, name, folder, inputs)
            args += [option, asked[option]]
    if not by_key and rng.random() < 0.4:
        asked["--checkpoint"] = draw_output(rng, "c.rue", folder, inputs)
        args += ["--checkpoint", asked["--checkpoint"]]
    done = run(folder, [*args, *rng.choice([[], ["-q"]])], Mishap.draw(rng))
    if done.code == 0:
        check_done(folder, done, asked, inputs, 1, len(inputs))
    return done


def attack_race(rng, folder, inputs, tested, suffix):
    """Learners side by side."""
    args = ["race", *(f"./{file.path.name}" for file in inputs), *data_options(suffix)]
    args += ["--learners", rng.choice(["ogd,adagrad", "ogd,sklearn", "mixture", "ogd:step=sqrt:0.5,nobody"])]
    args += ["--bad", rng.choice(["stop", "skip"]), "--report", draw_output(rng, "r.json", folder, inputs)]
    for options in rng.sample(MORE_OF_TABLES, rng.choice([0, 0, 1])):
        args += options
    return run(folder, args, Mishap.draw(rng))


def check_done(folder, done, asked, read, passes, learnt):
    """After exit 0: what was asked for is there, nothing else is, and no row was lost unseen."""
    outputs = {folder / name for name in asked.values()}
    known = outputs | {file.path for file in read} | {path for path in folder.iterdir() if path.is_symlink()}
    inputs = read[:learnt]
    strange = {path for path in folder.iterdir() if path not in known and not path.is_fifo()}
    strange -= {file for file in folder.glob("*") if file.suffix in WRITERS or file.suffix in PACKERS}
    assert not strange, (done.args, strange)
    report = folder / asked.get("--report", "no report")
    if not report.is_file():
        return
    found = json.loads(report.read_text())
    held = found.get("holdout") or {}
    kinds = ("examples", "skipped", "refused", "unlabelled", "keyless")
    counted, unlearnt = (sum(part.get(name) or 0 for name in kinds) for part in (found, held))
    counted += passes * unlearnt  # which are predicted once, after the last pass
    wanted = [file.at_least for file in inputs]
    assert None not in wanted, ("a file that breaks off was learnt with exit 0", done.args, inputs)
    assert counted >= passes * sum(wanted), ("rows are lost", done.args, counted, wanted)
    predictions = folder / asked.get("--predictions", "no predictions")
    if predictions.is_file() and predictions != report:
        lines = predictions.read_text().splitlines()
        several = done.args.count("--target") > 1  # a target with more than two classes: one column for each
        assert several or "prediction" in lines[0].split(","), (done.args, lines[:2])
        assert len(lines) > found["examples"], (done.args, len(lines), found)


def attack_model(rng, folder, inputs, model):
    """Use a model, perhaps a damaged one."""
    data = model.read_bytes()
    if rng.random() < 0.4:
        model.write_bytes(damaged(data, rng))
    same = model.read_bytes() == data
    before = digests([model])
    read = rng.choice(inputs)
    name = f"./{read.path.name}"
    args = rng.choice(
        [
            ["inspect", "m.rue"],
            ["inspect", "m.rue", "--effects"],
            ["inspect", "m.rue", "--key", "red"],
            ["weights", "m.rue", "-o", "w.csv"],
            # Only what a run reads is refused as its output: any other file may be replaced.
            ["predict", "m.rue", name, "--bad", "skip", "-o", draw_output(rng, "q.csv", folder, [read])],
            ["predict", "m.rue", name, "--as", "label"],
            ["predict", "m.rue", name, "--as", "probability", "--bad", "skip"],
            ["learn", name, "--resume", "m.rue", "--bad", "skip", "--report", "again.json"],
            ["learn", name, "--resume", "m.rue", "--bad", "skip", "--interval", "0.8", "--alarm", "500"],
            ["learn", name, "--resume", "m.rue", "--bad", "skip", "--windows", "again.csv"],
            ["learn", name, "--resume", "m.rue", "--bad", "skip", "--report-by", "again.csv", "--model", "m2.rue"],
            ["learn", name, "--resume", "m.rue", "--calibrate"],
            ["export", "m.rue", "-o", "e.py"],
            ["export", "m.rue", "--to", rng.choice(["json", "sql", "onnx"]), "-o", "e.out"],
            ["export", "m.rue", "--to", rng.choice(["python", "json"])],
        ]
    )
    mishap = Mishap.draw(rng) if rng.random() < 0.5 else Mishap()
    done = run(folder, args, mishap)
    assert digests([model]) == before, ("the model was changed", args)
    if not same and not mishap.signals:
        assert done.code in (1, 2), ("a damaged model was used", args, done.code)
    if same and mishap == Mishap() and args in (["inspect", "m.rue"], ["export", "m.rue", "--to", "json"]):
        assert done.code == 0 or "rue: export" in done.err, (args, done.err[-600:])
    return done


def attack_judged(rng, folder, inputs, suffix):
    """Certify predictions that learning wrote, or audit a run: each refuses what it cannot judge."""
    read = rng.choice(inputs)
    args = [f"./{read.path.name}", *data_options(suffix), "--bad", rng.choice(["stop", "skip"])]
    args += ["--report", draw_output(rng, "judged.json", folder, [read])]
    predictions = folder / "p.csv"
    if predictions.is_file() and rng.random() < 0.7:
        if rng.random() < 0.3:
            predictions.write_bytes(damaged(predictions.read_bytes(), rng))
        more = rng.choice([[], ["--witnesses", "1,10"], ["--units", "largest"], ["--windows", "judged.csv"]])
        args = ["certify", *args, "--predictions", "p.csv", "--loss", "logistic", "--radius", "3", *more]
    else:
        args = ["audit", *args, "--learner", "ogd"]
    return run(folder, args, Mishap.draw(rng) if rng.random() < 0.5 else Mishap())


FIRST = [attack_learn] * 7 + [attack_parts] * 3 + [attack_race]
"""How an attack begins."""


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
