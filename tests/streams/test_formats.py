"""Formats: the table of them, and what one file in `rue/streams/formats` is enough for."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import murmurhash3_32

import rue
from commands import read, write_svm
from rue.errors import DataError, SettingsError, UnknownName
from rue.registry import _known, register
from rue.streams import read as read_stream
from rue.streams.chunk import Position
from rue.streams.data import Data
from rue.streams.formats import Example, Format, TableFormat, TextFormat, find_source, formats
from rue.streams.names import Names
from rue.streams.tables.batches import Batches, numbered

NEW = '''
"""A label, a tab, and a JSON object of features."""

import json

from rue.registry import register
from rue.streams.formats.base import Example, TextFormat

__all__ = ["Labelled"]


@register("format", "labelled")
class Labelled(TextFormat):
    """`label<TAB>{"index": value, ...}`, an example a line."""

    suffixes = (".labelled",)

    def example(self, line):
        label, tab, features = line.partition("\\t")
        if not tab:
            raise ValueError("there is no tab after the label")
        return Example(float(label), {int(name): value for name, value in json.loads(features).items()})
'''

COMMANDS = """
import json, sys
from rue.cli.app import main
for argv in json.loads(sys.argv[1]):
    sys.argv = ["rue", *argv]
    try: main()
    except SystemExit as left: print("exit", left.code, flush=True)
"""


def in_copy(package, folder, *commands):
    """Commands of a copy of rue, in one process and not compiled: what they printed."""
    env = {**os.environ, "PYTHONPATH": str(package), "NUMBA_DISABLE_JIT": "1", "RUE_PIECE": "3000", "COLUMNS": "200"}
    argv = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
        cwd=folder,
        timeout=300,
    )
    assert "Traceback" not in done.stdout, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of rue with one file more."""
    folder = tmp_path_factory.mktemp("package")
    ignored = shutil.ignore_patterns("__pycache__", "prebuilt")
    shutil.copytree(Path(rue.__file__).parent, folder / "rue", ignore=ignored)
    (folder / "rue/streams/formats/labelled.py").write_text(NEW)
    return folder


def test_a_new_format_is_one_file(package, tmp_path):
    """It is learnt, checkpointed, resumed and predicted, with its bad lines located, exactly as svmlight is."""
    write_svm(tmp_path / "rows.svm", rows=300, d=6)
    lines = []
    for line in (tmp_path / "rows.svm").read_text().splitlines():
        label, *features = line.split()
        lines.append(f"{label}\t{json.dumps({k: float(v) for k, v in (pair.split(':') for pair in features)})}\n")
    (tmp_path / "rows.labelled").write_text("".join(lines))
    (tmp_path / "rows.txt").write_text("".join([*lines[:200], "no tab here\n", *lines[200:]]))
    learner = ["--learner", "ogd", "--domain", "ball:3", "-q"]
    first = in_copy(
        package,
        tmp_path,
        ["learn", "rows.svm", *learner, "--predictions", "wanted.csv", "--report", "wanted.json"],
        [
            "learn",
            "rows.labelled",
            *learner,
            "--predictions",
            "found.csv",
            "--report",
            "found.json",
            "--model",
            "m.rue",
        ],
        ["learn", "rows.txt", "--format", "labelled", *learner, "--checkpoint", "c.rue", "--predictions", "part.csv"],
        ["predict", "m.rue", "rows.labelled", "-o", "p.csv"],
        ["learn", "--help"],
        ["learn", "rows.txt", "--format", "xls"],
    )
    assert first.count("exit 0") == 4
    assert (
        "rue: rows.txt, line 201: there is no tab after the label (--bad skip passes over such lines).\nexit 1" in first
    )
    assert "labelled, svmlight, vw, csv, jsonl, parquet or ipc, if no suffix tells." in first
    assert (
        "rue: there is no format 'xls': the formats are labelled, svmlight, vw, csv, jsonl, parquet, ipc.\nexit 2"
        in first
    )
    (tmp_path / "rows.txt").write_text("".join([*lines[:200], *lines[200:]]))
    second = in_copy(
        package,
        tmp_path,
        [
            "learn",
            "rows.txt",
            "--format",
            "labelled",
            "--resume",
            "c.rue",
            "-q",
            "--predictions",
            "part.csv",
            "--report",
            "r.json",
        ],
        ["predict", "m.rue", "rows.svm", "-o", "q.csv"],
    )
    assert second.count("exit 0") == 2
    wanted = (tmp_path / "wanted.csv").read_text()
    assert (tmp_path / "found.csv").read_text() == (tmp_path / "part.csv").read_text() == wanted
    reports = [read(tmp_path / name) for name in ("wanted.json", "found.json", "r.json")]
    assert reports[0] == reports[1] == reports[2]
    assert (tmp_path / "p.csv").read_text() == (tmp_path / "q.csv").read_text() != wanted


@pytest.fixture
def registering(monkeypatch):
    """Formats registered in a test are forgotten after it."""
    formats()
    monkeypatch.setitem(_known, "format", dict(_known["format"]))


def test_names_are_hashed_and_bad_lines_are_located(registering):
    @register("format", "pairs")
    class Pairs(TextFormat):
        def example(self, line):
            if line.startswith("#"):
                return None
            label, weight, *pairs = line.split()
            return Example(label, {k: float(v) for k, v in (pair.split("=") for pair in pairs)}, float(weight))

    parser, names = formats()["pairs"](bits=12), Names()
    text = (
        "\ufeffyes 1 red=1 blue=2\r\n# a comment\n\nno 2 red=nan\nno -1 red=1\nno 2 blue=1 blue=3\n".encode() + b"\xff"
    )
    chunk = parser.parse(text, 1, names)
    slots = {name: murmurhash3_32(name, 0, positive=True) % 2**12 for name in ("red", "blue")}
    assert dict(chunk.names) == {slot: name for name, slot in slots.items()}
    assert chunk.block.y.tolist() == ["yes", "no"]
    assert chunk.block.weights.tolist() == [1.0, 2.0]
    assert chunk.lines.tolist() == [1, 6]
    rows = [dict(zip(slots, (1.0, 2.0), strict=True)), {"blue": 3.0}]
    X = chunk.block.X
    found = [
        dict(zip(X.indices[lo:hi], X.data[lo:hi], strict=True)) for lo, hi in zip(X.indptr, X.indptr[1:], strict=False)
    ]
    assert found == [{slots[name]: value for name, value in row.items()} for row in rows]
    assert [(bad.place, bad.line, bad.why) for bad in chunk.bad] == [
        (1, 4, "the value of 'red' is not finite"),
        (1, 5, "the weight -1.0 is not a finite number ≥ 0"),
        (2, 7, "the line is not text in UTF-8"),
    ]
    names.add(chunk.names)
    assert parser.parse(text, 1, names).names == ()


def test_a_format_of_rows_is_resumed_at_any_row(registering, tmp_path):
    """Fixed widths, as record batches: options of tables apply, and positions count rows."""
    import pyarrow as pa

    @register("format", "fixed")
    class Fixed(TableFormat):
        suffixes = (".fix",)
        counts_rows = True

        def open(self, source, block=0):
            with source.open() as file:
                lines = file.read().decode().splitlines()
            columns = {"size": [float(line[:4]) for line in lines], "colour": [line[4:].strip() for line in lines]}
            table = pa.table(columns)
            return Batches(table.schema, lambda row, rows: numbered(table.to_batches(7)))

    (tmp_path / "x.fix").write_text("".join(f"{i:4}{'red' if i % 3 else 'blue'}\n" for i in range(20)))
    data = Data((str(tmp_path / "x.fix"),), target="colour")
    chunks = list(data.reads())
    assert [len(chunk.block) for chunk in chunks] == [7, 7, 6]
    rest = list(data.reads(after=chunks[0].before_line(6)))
    assert np.concatenate([chunk.lines for chunk in rest]).tolist() == list(range(6, 21))
    assert data.tail_before(chunks[1].end) == chunks[1].end.tail()
    assert data.tail_before(Position(40, 40)) == "shorter"
    blocks = read_stream(tmp_path / "x.fix", target="size", drop="colour")
    assert sum(block.y.sum() for block in blocks) == 190.0


def test_every_suffix_belongs_to_one_format():
    suffixes = [suffix for format_ in formats().values() for suffix in format_.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    for name, format_ in formats().items():
        assert issubclass(format_, Format)
        assert format_.__doc__
        for suffix in format_.suffixes:
            assert suffix == suffix.lower()
            assert find_source(f"DATA{suffix.upper()}").format == name
            assert find_source(f"data{suffix}.gz").packed == ".gz"


def test_what_a_user_hears_who_names_a_format_wrongly():
    with pytest.raises(
        UnknownName, match=r"no format 'xls': the formats are svmlight, vw, csv, jsonl, parquet, ipc\.$"
    ):
        find_source("x.csv", "xls")
    with pytest.raises(DataError, match=r"x\.weird: the suffix tells no format: say it with --format, one of svmlight"):
        find_source("x.weird")
    with pytest.raises(SettingsError, match="say what comes through the pipe with --format, one of svmlight"):
        find_source("-")
    with pytest.raises(NotImplementedError, match="must have a method example, or parse"):
        type("Empty", (TextFormat,), {})().parse(b"1\n", 1)
