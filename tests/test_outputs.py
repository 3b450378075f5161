"""What outputs may replace, and what they are written into as it is: on real pipes, sockets, links and device nodes."""

import contextlib
import csv
import io
import json
import os
import resource
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import typer

import rue
from commands import read, receive, wait_until
from rue.cli.app import app
from rue.cli.commands import register
from rue.errors import NO_MEMORY
from rue.models.container import read_container, write_container
from rue.models.file import load_model
from rue.outputs import Output, write_file
from rue.serve.log import Log

ROWS = 60


@pytest.fixture
def folder(tmp_path, monkeypatch, interpreted):
    """A table, a model of it, and predictions, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_table("s.csv")
    return tmp_path


def write_table(path, rows=ROWS):
    lines = [f"{i % 7},{i % 3},{'yes' if i % 7 > 2 else 'no'}" for i in range(rows)]
    Path(path).write_text("\n".join(["a,b,y", *lines]) + "\n")


LEARN = ["learn", "s.csv", "--target", "y", "--learner", "perceptron", "-q"]


def left_behind():
    """Temporary files in the current folder."""
    return [name for name in os.listdir() if name.endswith(".part")]


def prepared(inside):
    """A model m.rue and predictions p.csv of s.csv."""
    inside(*LEARN, "--model", "m.rue", "--predictions", "p.csv")


COMMANDS = {
    "--model": [*LEARN, "--model"],
    "--checkpoint": [*LEARN, "--checkpoint"],
    "--report": [*LEARN, "--report"],
    "--predictions": [*LEARN, "--predictions"],
    "--plot": [*LEARN, "--plot"],
    "--windows": [*LEARN, "--windows"],
    "--report-by": [*LEARN[:-3], "--learner", "ogd", "-q", "--by", "b", "--report-by"],
    "predict": ["predict", "m.rue", "s.csv", "-o"],
    "weights": ["weights", "m.rue", "-o"],
    "export": ["export", "m.rue", "--to", "json", "-o"],
    "certify": [
        "certify",
        "s.csv",
        "--target",
        "y",
        "--predictions",
        "p.csv",
        "--loss",
        "hinge",
        "--radius=1",
        "--report",
    ],
    "audit": ["audit", "s.csv", "--target", "y", "--learner", "ogd:loss=hinge", "-q", "--report"],
    "race": ["race", "s.csv", "--target", "y", "--learners", "perceptron", "-q", "--report"],
    "play": ["play", "ogd", "orthogonal:2", "--domain", "ball:1", "--rounds", "4", "--plot"],
}
REFUSING = {**COMMANDS, "inspect": ["inspect", "m.rue", "--plot-effects"]}
"""With one that needs a larger model than is made here, but refuses before it reads one."""
SUFFIX = {"--plot": ".png", "inspect": ".png", "play": ".png", "weights": ".csv", "--report-by": ".csv"}


@pytest.mark.parametrize("which", COMMANDS)
def test_a_pipe_is_written_into_and_stays_one(which, folder, inside):
    prepared(inside)
    name = "out" + SUFFIX.get(which, "")
    inside(*COMMANDS[which], "plain" + name)
    os.mkfifo(name)
    got, ended = receive(name)
    inside(*COMMANDS[which], name)
    ended()
    assert stat.S_ISFIFO(os.lstat(name).st_mode)
    wanted = Path("plain" + name).read_bytes()
    if which in ("--report", "audit", "race"):  # which hold times
        assert json.loads(got[0]).keys() == json.loads(wanted).keys()
    elif which in ("--model", "--checkpoint"):
        Path("got").write_bytes(got[0])
        assert load_model("got").learner == load_model("plain" + name).learner
    else:
        assert got[0] == wanted
    assert not left_behind()


@pytest.mark.parametrize("which", ["--model", "--report", "--predictions", "predict"])
def test_a_socket_is_written_into_and_stays_one(which, folder, inside):
    prepared(inside)
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind("out")
        listening.listen()
        got = []

        def read_all():
            with listening.accept()[0] as connection, connection.makefile("rb") as file:
                got.append(file.read())

        thread = threading.Thread(target=read_all, daemon=True)
        thread.start()
        inside(*COMMANDS[which], "out")
        thread.join(60)
    assert stat.S_ISSOCK(os.lstat("out").st_mode)
    assert len(got[0]) > 100
    message = inside(*COMMANDS[which], "out", ok=1).err  # nobody listens any more
    assert message == "rue: out cannot be written: connection refused.\n"
    assert stat.S_ISSOCK(os.lstat("out").st_mode)


@pytest.mark.parametrize("which", [*COMMANDS, "link"])
def test_a_device_is_written_into_and_stays_one(which, folder, inside):
    """On a node of the test's own that is what /dev/null is."""
    prepared(inside)
    name = "out" + SUFFIX.get(which, "")
    try:
        os.mknod(name, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        os.close(os.open(name, os.O_WRONLY))
    except OSError:
        pytest.skip("device nodes cannot be made here")
    if which == "link":
        os.symlink(name, "link")
        inside(*LEARN, "--report", "link")
        assert os.path.islink("link")
    else:
        inside(*COMMANDS[which], name)
    assert stat.S_ISCHR(os.lstat(name).st_mode)
    assert not left_behind()


def test_descriptors_are_written_into(folder, inside):
    """Process substitution, /dev/fd/N, and /dev/stdout even where it is a file."""
    prepared(inside)
    command = [sys.executable, "-m", "rue", "predict", "m.rue", "s.csv", "-o"]
    wanted = Path("p2.csv")
    inside("predict", "m.rue", "s.csv", "-o", wanted)
    with open("direct", "wb") as file:
        file.write(b"before\n")
        file.flush()
        subprocess.run([*command, "/dev/stdout"], stdout=file, stderr=subprocess.DEVNULL, check=True, timeout=300)
    assert Path("direct").read_bytes() == b"before\n" + wanted.read_bytes()
    near, far = os.pipe()
    subprocess.run([*command, f"/dev/fd/{far}"], pass_fds=[far], stderr=subprocess.DEVNULL, check=True, timeout=300)
    os.close(far)
    with open(near, "rb") as file:
        assert file.read() == wanted.read_bytes()
    message = inside("predict", "m.rue", "s.csv", "-o", "/dev/fd/999", ok=1).err
    assert message == "rue: /dev/fd/999 cannot be written: descriptor 999 is not open for writing.\n"


# What is read.


def contents():
    return {name: Path(name).read_bytes() for name in os.listdir() if Path(name).is_file()}


@pytest.mark.parametrize("how", ["same", "link", "hard link", "other name"])
@pytest.mark.parametrize("which", [which for which in REFUSING if which != "play"])
def test_an_output_that_is_read_is_refused(which, how, folder, inside):
    prepared(inside)
    os.mkdir("below")
    os.symlink("below", "alias")
    suffix = SUFFIX.get(which, ".csv")
    source = "m.rue" if which in ("weights", "export", "inspect") else "s.csv"
    name = f"{folder}/below/../{source}" if how == "same" else f"out{suffix}"
    if how == "link":
        os.symlink(source, name)
    elif how == "hard link":
        os.link(source, name)
    elif how == "other name":
        os.rename(source, f"below/x{suffix}")
        os.symlink(f"below/x{suffix}", source)
        name = f"alias/x{suffix}"
    before = contents()
    message = inside(*REFUSING[which], name, ok=2).err
    if which in ("--plot", "inspect") and how == "same":
        assert "is saved as .png" in message
    else:
        assert f"would replace {source}, which is read: choose another name." in message
    assert message.count("\n") == 1
    assert contents() == before


def test_models_predictions_folders_and_standard_input_are_read_too(folder, inside):
    prepared(inside)
    os.mkdir("many")
    write_table("many/1.csv")
    write_table("many/2.csv")
    before = contents(), Path("many/2.csv").read_bytes()
    for args in (
        ["predict", "m.rue", "s.csv", "-o", "m.rue"],
        [*LEARN[:2], "--resume", "m.rue", "--report", "m.rue"],
        [*LEARN[:2], "--resume", "m.rue", "--predictions", "m.rue"],
        [*COMMANDS["certify"], "p.csv"],
        ["learn", "many", *LEARN[2:], "--model", "many/2.csv"],
        ["predict", "m.rue", "many", "-o", "many/2.csv"],
        ["race", "many", "--target", "y", "--report", "many/2.csv"],
    ):
        assert "which is read" in inside(*args, ok=2).err
    command = [sys.executable, "-m", "rue", "learn", "-", "--format", "csv", "--target", "y", "--predictions", "s.csv"]
    with open("s.csv", "rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr == "rue: --predictions s.csv would replace standard input, which is read: choose another name.\n"
    with open("s.csv", "ab") as file:
        done = subprocess.run([sys.executable, "-m", "rue", *LEARN], stdout=file, stderr=subprocess.PIPE, timeout=300)
    assert done.returncode == 2
    assert done.stderr == b"rue: standard output goes to s.csv, which is read: send it elsewhere.\n"
    assert (contents(), Path("many/2.csv").read_bytes()) == before
    inside("learn", "many", *LEARN[2:], "--model", "many/m.rue")  # in the folder, but none of the data


def test_every_output_of_every_command_is_among_those_tested():
    """An option whose value is called OUT or FILE in the help, unless it says what it reads."""
    register("")
    read = {"--test", "--token-file", "--predictions"}  # FILE is read; OUT.csv of --predictions is written
    of = {"predict": "predict", "weights": "weights", "export": "export", "inspect": "inspect", "replay": None}
    for name, command in typer.main.get_command(app).commands.items():
        for option in command.params:
            value = option.metavar or ""
            if value.startswith("OUT") or (value == "FILE" and not read & set(option.opts)):
                which = of.get(name, name if name in COMMANDS else option.opts[-1])
                assert which is None or which in REFUSING, (name, option.opts)


def test_a_replay_writes_nothing_into_the_folder_of_the_service(folder, inside):
    os.mkdir("service")
    Log("service").close()
    before = contents(), {path.name for path in Path("service").iterdir()}
    os.symlink("service", "alias")
    for option in ("--model", "--report", "--export", "--predictions"):
        for name in ("log.sqlite", "log.sqlite-wal", "archive.sqlite", "new"):
            message = inside("replay", "alias", option, f"service/{name}", ok=2).err
            assert message == (
                f"rue: {option} service/{name} is in the folder of the service, which holds nothing but its log and "
                "its snapshots: choose another folder.\n"
            )
    os.link("service/log.sqlite", "hard")
    assert "would replace" in inside("replay", "service", "--model", "hard", ok=2).err
    os.unlink("hard")
    os.unlink("alias")
    assert (contents(), {path.name for path in Path("service").iterdir()}) == before


def test_learning_on_in_place(folder, inside):
    inside(*LEARN, "--model", "m.rue", "--checkpoint", "c.rue")
    for _ in range(2):
        inside("learn", "s.csv", "--resume", "m.rue", "--model", "m.rue", "-q")
    assert load_model("m.rue").learner.t == 3 * ROWS
    inside("learn", "s.csv", "--resume", "c.rue", "--checkpoint", "c.rue", "-q")
    assert load_model("c.rue").learner.t == ROWS


# Outputs that are the same.


@pytest.mark.parametrize("how", ["new", "same", "link", "hard link", "dangling link", "other folder"])
@pytest.mark.parametrize("pair", ["--model --report", "--predictions --checkpoint", "--model --checkpoint"])
def test_two_outputs_in_one_file_are_refused(pair, how, folder, inside):
    first, second = "one", "two"
    if how in ("same", "link", "hard link"):
        Path("one").write_text("precious")
    if how in ("new", "same"):
        second = "./one"
    elif how == "hard link":
        os.link("one", "two")
    elif how in ("link", "dangling link"):
        os.symlink("one", "two")
    else:
        os.mkdir("below")
        os.symlink("below", "alias")
        first, second = "below/one", "alias/one"
    before = sorted(os.listdir()), contents()
    options = pair.split()
    message = inside(*LEARN, options[0], first, options[1], second, ok=2).err
    names = {options[0]: first, options[1]: second}
    order = sorted(options, key=["--model", "--checkpoint", "--predictions", "--report"].index)
    told = [f"{option} {names[option]}" for option in order]
    assert message == f"rue: {told[1]} is the same file as {told[0]}: give each a file of its own.\n"
    assert (sorted(os.listdir()), contents()) == before


def test_standard_output_is_an_output(folder):
    with open("r.json", "wb") as file:
        command = [sys.executable, "-m", "rue", *LEARN, "--report", "r.json"]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr == "rue: --report r.json is the same file as standard output: give each a file of its own.\n"


# Temporary files.


def test_files_that_look_like_temporary_ones_are_left_alone(folder, inside):
    for name in ("p.csv", "r.json", "m.rue", "w.csv"):
        Path(f"{name}.part").write_text("precious")
        os.symlink("victim", f".{name}.writing")
        os.symlink("victim", f".{name}.part")
    Path("victim").write_text("precious")
    before = contents()
    inside(*LEARN, "--predictions", "p.csv", "--report", "r.json", "--model", "m.rue")
    inside("weights", "m.rue", "-o", "w.csv")
    found = contents()
    assert {name: found[name] for name in before} == before
    assert sorted(set(found) - set(before)) == ["m.rue", "p.csv", "r.json", "w.csv"]


@pytest.mark.parametrize("which", COMMANDS)
def test_links_and_rights_stay(which, folder, inside):
    prepared(inside)
    os.mkdir("below")
    name = "out" + SUFFIX.get(which, "")
    Path("below", name).write_text("old")
    os.chmod(f"below/{name}", 0o604)
    os.symlink(f"below/{name}", name)
    inside(*COMMANDS[which], name)
    assert os.path.islink(name)
    assert stat.S_IMODE(os.stat(name).st_mode) == 0o604
    assert Path(name).read_bytes() != b"old"
    assert os.listdir("below") == [name]


def test_a_secret_file_is_replaced_by_a_secret_one(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("old")
    path.chmod(0o600)
    output = Output(path)
    assert stat.S_IMODE(output.temporary.stat().st_mode) == 0o600
    output.abandon()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["p.csv"]


def test_long_names(tmp_path):
    for name in ("m" * 255, "ü" * 127):
        write_file(tmp_path / name, b"content")
        assert (tmp_path / name).read_bytes() == b"content"
    with pytest.raises(rue.DataError, match="file name too long"):
        write_file(tmp_path / ("m" * 256), b"content")


def test_a_failure_leaves_nothing_behind(folder, inside):
    Path("s.csv").write_text("a,b,y\n1,2,yes\n3,4\n")
    inside(*LEARN, "--predictions", "p.csv", "--report", "r.json", "--model", "m.rue", ok=1)
    assert Path("p.csv").read_text().count("\n") == 2  # what came before is saved
    os.remove("p.csv")
    write_table("other.csv")
    inside("predict", "m.rue", "other.csv", "s.csv", "-o", "p.csv", ok=1)
    assert not left_behind()
    assert not os.path.exists("p.csv")


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def limited(*args, stdout=subprocess.PIPE):
    """A command that may write no file of more than 20,000 bytes."""
    command = [sys.executable, "-m", "rue", *map(str, args)]
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # kernels do not fit into such a file
    how = {"stdout": stdout, "stderr": subprocess.PIPE, "text": True, "timeout": 300, "env": env}
    return subprocess.run(command, **how, preexec_fn=small_files)


def test_a_full_disk_is_said_and_the_rest_is_saved(folder):
    write_table("s.csv", 8000)
    outputs = ["--model", "m.rue", "--report", "r.json"]
    done = limited(*LEARN, "--predictions", "p.csv", *outputs)
    assert done.returncode == 1
    assert done.stderr == "rue: p.csv cannot be written: file too large.\n"
    assert read("r.json")["examples"] == load_model("m.rue").learner.t > 0
    assert not os.path.exists("p.csv")
    done = limited("predict", "m.rue", "s.csv", "-o", "p.csv")
    assert (done.returncode, done.stderr) == (1, "rue: p.csv cannot be written: file too large.\n")
    assert not os.path.exists("p.csv")
    assert not left_behind()
    with open("out", "wb") as file:
        done = limited("predict", "m.rue", "s.csv", stdout=file)
    assert (done.returncode, done.stderr) == (1, "rue: standard output cannot be written: file too large.\n")


ALL = {
    "one": {
        "--model": "m.rue",
        "--report": "r.json",
        "--windows": "w.csv",
        "--plot": "p.svg",
        "--predictions": "p.csv",
    },
    "keys": {"--model": "m.rue", "--report": "r.json", "--report-by": "k.csv", "--predictions": "p.csv"},
    "shards": {"--model": "m.rue", "--report": "r.json", "--windows": "w.csv"},
}
"""The outputs of each kind of run."""
HOW = {
    "one": LEARN,
    "keys": [*LEARN[:-3], "--learner", "ogd", "-q", "--by", "b"],
    "shards": [*LEARN, "--shards", "2", "--on", "inline"],
}


@pytest.mark.parametrize(
    ("kind", "broken"),
    [(kind, one) for kind, outputs in ALL.items() for one in outputs if one != "--predictions"],
)
def test_an_output_that_cannot_be_written_costs_no_other(kind, broken, folder, inside):
    outputs = dict(ALL[kind])
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as nobody_listens:
        outputs[broken] = "gone" + Path(outputs[broken]).suffix
        nobody_listens.bind(outputs[broken])
    message = inside(*HOW[kind], *(word for pair in outputs.items() for word in pair), ok=1).err
    assert message == f"rue: {outputs.pop(broken)} cannot be written: connection refused.\n"
    assert all(Path(name).is_file() for name in outputs.values())


@pytest.mark.parametrize("kind", ["one", "keys"])
def test_a_model_too_large_to_be_saved_costs_no_other_output(kind, folder, inside, monkeypatch):
    def no_memory(*args):
        raise MemoryError

    monkeypatch.setattr("rue.models.container._digest", no_memory)
    outputs = ALL[kind]
    message = inside(*HOW[kind], *(word for pair in outputs.items() for word in pair), ok=1).err
    assert message == f"rue: {NO_MEMORY}\n"
    assert all(Path(name).is_file() == (name != "m.rue") for name in outputs.values())


def test_two_processes_with_one_name_do_not_meet(folder):
    """Both stay alive until both have written; the file is then of one of them, and whole."""
    command = [sys.executable, "-m", "rue", "learn", "-", "--format", "svmlight", "--learner", "perceptron"]
    command += ["--predictions", "p.csv", "-q"]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) for _ in range(2)]
    for i, process in enumerate(processes):
        process.stdin.write(f"1 {i + 1}:1\n".encode() * (1 + i))
        process.stdin.flush()
    wait_until(lambda: len(left_behind()) == 2)
    for i, process in enumerate(processes):
        process.communicate(timeout=120)
        assert process.returncode == 0
        assert Path("p.csv").read_text().split() == ["prediction", "0.0", "2.0"][: 2 + i]
        assert len(left_behind()) == 1 - i


# Resuming.


def stopped(inside, rows=30):
    """Predictions stopped at a bad row: the checkpoint c.rue, and the file that is whole when it is passed over."""
    lines = Path("s.csv").read_text().splitlines()
    Path("s.csv").write_text("\n".join([*lines[: 1 + rows], "1,2", *lines[1 + rows :]]) + "\n")
    inside(*LEARN, "--predictions", "whole.csv", "--bad", "skip")
    inside(*LEARN, "--predictions", "p.csv", "--checkpoint", "c.rue", ok=1)
    assert not os.path.exists("p.csv")
    return Path("whole.csv").read_bytes()


RESUME = ["learn", "s.csv", "--resume", "c.rue", "--bad", "skip", "-q", "--predictions", "p.csv"]


def position():
    return read_container("c.rue")[0]["position"]


def tampered(**changes):
    head, arrays = read_container("c.rue")
    head["position"] = {**head["position"], **changes}
    write_container("c.rue", head, arrays)


def test_predictions_go_on_in_their_temporary_file(folder, inside):
    whole = stopped(inside)
    (temporary,) = left_behind()
    assert position()["predictions_file"] == temporary
    assert position()["predictions"] == os.path.getsize(temporary)
    with open(temporary, "a") as file:
        file.write("cut in the mid")  # what came after the checkpoint
    inode = os.stat(temporary).st_ino
    inside(*RESUME)
    assert Path("p.csv").read_bytes() == whole
    assert os.stat("p.csv").st_ino == inode
    assert not left_behind()
    inside(*RESUME)  # killed after it took its name, but before that was known
    assert Path("p.csv").read_bytes() == whole
    assert not left_behind()


def test_checkpoints_of_earlier_versions_go_on_in_out_part(folder, inside):
    whole = stopped(inside)
    os.rename(left_behind()[0], "p.csv.part")
    head, arrays = read_container("c.rue")
    del head["position"]["predictions_file"]
    write_container("c.rue", head, arrays)
    inside(*RESUME)
    assert Path("p.csv").read_bytes() == whole


def test_what_is_not_the_temporary_file_is_left_alone(folder, inside):
    stopped(inside)
    (temporary,) = left_behind()
    Path("victim").write_text("precious " * 1000)
    for name in ("victim", "../victim", f"{folder}/victim", ".victim.part", "", "\0"):
        tampered(predictions_file=name)
        assert "is no temporary file of rue's" in inside(*RESUME, ok=1).err
    tampered(predictions_file=temporary)
    os.rename(temporary, "elsewhere")
    assert "is not what the checkpoint left" in inside(*RESUME, ok=1).err
    os.symlink("victim", temporary)
    assert "cannot be written" in inside(*RESUME, ok=1).err
    os.remove(temporary)
    os.rename("elsewhere", temporary)
    with Output("p.csv", (temporary, 20)).file:
        assert "is being written by another process" in inside(*RESUME, ok=1).err
    assert Path("victim").read_text() == "precious " * 1000


# Standard streams that are closed.


def closed(number, *args):
    """A command whose standard stream of this number is closed."""
    command = [sys.executable, "-m", "rue", *map(str, args)]
    pipes = {name: subprocess.PIPE for key, name in ((1, "stdout"), (2, "stderr")) if key != number}
    done = subprocess.run(command, **pipes, text=True, timeout=300, preexec_fn=lambda: os.close(number))
    for text in (done.stdout, done.stderr):
        assert "Traceback" not in (text or "")
        assert "should not happen" not in (text or "")
    return done


def test_standard_streams_may_be_closed(folder, inside):
    inside(*LEARN, "--model", "m.rue", "--report", "wanted.json", "--predictions", "wanted.csv")
    outputs = ["--report", "r.json", "--predictions", "p.csv", "--model", "m2.rue"]
    for number in (0, 1, 2):
        for path in ("r.json", "p.csv"):
            Path(path).unlink(missing_ok=True)
        done = closed(number, *LEARN[:-1], *outputs)  # with progress
        assert done.returncode == 0, done
        assert read("r.json") == read("wanted.json")
        assert Path("p.csv").read_bytes() == Path("wanted.csv").read_bytes()
        if number == 2:
            assert done.stdout.startswith("examples")  # and no progress in it
        elif number == 1:
            assert "regret at most" in done.stderr
    done = closed(0, "learn", "-", "--format", "svmlight", "-q")
    assert (done.returncode, done.stderr) == (
        1,
        "rue: standard input is closed: give the data as a file or through a pipe.\n",
    )
    done = closed(1, *LEARN, "--report", "/dev/stdout")
    assert done.returncode == 1
    assert done.stderr == "rue: /dev/stdout cannot be written: descriptor 1 is not open for writing.\n"
    for args in (["predict", "m.rue", "s.csv"], ["weights", "m.rue"]):
        done = closed(1, *args)
        assert (done.returncode, done.stderr) == (1, "rue: standard output is closed: name a file with -o.\n")
    assert closed(1, "predict", "m.rue", "s.csv", "-o", "out.csv").returncode == 0
    assert closed(2, "learn", "no such file.csv", "--target", "y").returncode == 1
    assert closed(1, "--version").returncode == 0


def test_nobody_reads_the_progress(folder):
    """A pipe for stderr that is closed at once: what was asked for is still saved."""
    command = [sys.executable, "-m", "rue", *LEARN[:-1], "--report", "r.json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    process.stderr.close()
    assert process.wait(300) == 0
    assert read("r.json")["examples"] == ROWS


# Labels in CSV.

LABELS = ["a,b", 'say "x"', "two\nlines", "cr\rlf\r\n", "plain", " space ", "'", "ä;\t|", '"']


@pytest.mark.parametrize("many", [2, len(LABELS)])
def test_labels_and_probabilities_are_valid_csv(many, folder, inside):
    import pandas

    names = LABELS[:many] if many > 2 else ['no, "never"', "yes,\nalways"]
    with open("s.csv", "w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["x", "y"])
        writer.writerows([[f"k{names.index(name)}", name] for name in names * 30])
    learner = ["--task", "multiclass"] if many > 2 else []
    inside("learn", "s.csv", "--target", "y", *learner, "--model", "m.rue", "-q")
    inside("predict", "m.rue", "s.csv", "--as", "label", "-o", "labels.csv")
    out = inside("predict", "m.rue", "s.csv", "--as", "label").out
    with open("labels.csv", newline="") as file:
        text = file.read()
    assert out == text
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows == [["prediction"], *([name] for name in names * 30)]
    found = pandas.read_csv("labels.csv", keep_default_na=False, lineterminator=None)
    assert found.prediction.tolist() == names * 30
    if many > 2:
        inside("predict", "m.rue", "s.csv", "--as", "probability", "-o", "p.csv")
        with open("p.csv", newline="") as file:
            rows = list(csv.reader(file))
        assert sorted(rows[0]) == sorted(names)
        assert {len(row) for row in rows} == {many}
        table = pandas.read_csv("p.csv")
        assert sorted(table.columns) == sorted(names)
        assert [table.columns[i] for i in table.to_numpy().argmax(axis=1)] == names * 30


# Nothing learnt.


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("1,0,yes\n2,0,no\n", "every example has weight 0."),
        ("1e300,1,3.5\n-1e300,1,2\n1e300,1,2.5\n", "3 examples were refused, because"),
        ("1e300,1,3.5\n1,0,2\n", "1 example was refused, because"),
    ],
)
def test_nothing_learnt_is_said(rows, words, folder, inside):
    Path("s.csv").write_text(f"a,w,y\n{rows}")
    learner = ["--learner", "ogd", "--loss", "square"] if "yes" not in rows else []
    for quiet in (["-q"], []):
        done = inside("learn", "s.csv", "--target", "y", "--weight", "w", *learner, *quiet, "--report", "r.json", ok=1)
        assert done.err.startswith("rue: nothing was learnt from s.csv: ")
        assert words in done.err
        assert done.err.count("\n") == 1
        assert done.out == ""
        assert read("r.json")["examples"] == 0
