"""Text that would break a reader: endless lines, cut archives, stray quotes, pipes, characters that are none."""

import bz2
import gzip
import io
import itertools
import json
import lzma
import os
import queue
import resource
import subprocess
import sys
import threading
import time
import zlib

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.feather
import pytest
from scipy import sparse

import rue
from commands import read, run
from conftest import PEAK
from rue.errors import BadExample, DataError
from rue.streams import read as read_stream
from rue.streams.data import Data
from rue.streams.files.cutting import MIB, LineCutter, LongLine
from rue.streams.files.unpacking import Unpacked
from rue.streams.formats.svmlight import Svmlight
from rue.streams.formats.vw import VW
from rue.streams.tables.columns import plan
from tables import open_table

HEADER = b"a,b,word,y\n"


def records(count, seed=0):
    """Rows of a CSV, without the header."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, count)).round(3)
    return [
        b"%.3f,%.3f,w%d,%s\n" % (u, v, i % 7, b"yes" if u > v else b"no")
        for i, (u, v) in enumerate(zip(a, b, strict=True))
    ]


def svmlight(count, seed=0):
    rng = np.random.default_rng(seed)
    return [b"%d 1:%.3f 2:%.3f\n" % (1 if u > v else -1, u, v) for u, v in rng.normal(size=(count, 2))]


def jsonl(count, seed=0):
    rng = np.random.default_rng(seed)
    return [json.dumps({"a": u, "b": v, "y": int(u > v)}).encode() + b"\n" for u, v in rng.normal(size=(count, 2))]


def lines_of(text, form="csv", block=2**22, target="y", **options):
    """The lines of good rows, and line and reason of bad ones, each in order."""
    table = open_table(io.BytesIO(text), form, block=block, **options)
    columns = plan(table.schema, target=target)
    chunks = [table.chunk(piece, columns) for piece in table.pieces()]
    good = [int(line) for chunk in chunks for line in chunk.lines]
    return good, [(bad.line, bad.why) for chunk in chunks for bad in chunk.bad]


# Lines above the limit.


def cut_slowly(text, limit):
    """What a `LineCutter` should give, by the definition: lines of at most `limit` bytes, and lengths of others."""
    return [part if len(part.rstrip(b"\n")) <= limit else len(part) for part in text.splitlines(keepends=True)]


def test_lines_are_cut_the_same_in_whatever_parts_they_arrive():
    rng = np.random.default_rng(1)
    for _ in range(300):
        limit = int(rng.integers(1, 12))
        text = bytes(rng.choice([10, 97, 98], size=rng.integers(0, 80), p=[0.15, 0.5, 0.35]).tolist())
        cuts = np.sort(rng.integers(0, len(text) + 1, size=rng.integers(0, 6))).tolist()
        cutter, found, begun, rest = LineCutter(limit), [], 0, False
        parts = [text[lo:hi] for lo, hi in itertools.pairwise([0, *cuts, len(text)])]
        for last, part in [*((False, part) for part in parts), (True, b"")]:
            for each in cutter.feed(part, last):
                if not isinstance(each, LongLine):
                    found += each.splitlines(keepends=True)
                elif each.finished:
                    assert rest
                    rest = False
                    found.append(each.length)
                    assert text.endswith(each.last) or each.last.endswith(b"\n")
                else:
                    begun, rest = begun + 1, True
            assert len(cutter.rest) <= limit
        assert found == cut_slowly(text, limit)
        assert begun == sum(isinstance(each, int) for each in found)


MAKERS = {
    "svmlight": svmlight,
    "csv": records,
    "jsonl": jsonl,
    "vw": lambda n: [b"1 | a b:2\n", b"-1 | c\n"] * (n // 2),
}
MIDDLES = {"digits": b"1" * 3 * MIB, "words": b"1 | " + b"a " * MIB, "quoted": b'1,"' + b"x" * 2 * MIB + b'",w,yes'}


@pytest.mark.parametrize("form", MAKERS)
@pytest.mark.parametrize("middle", MIDDLES)
@pytest.mark.parametrize("piece", [1 << 16, 1 << 22])
def test_a_line_above_the_limit_is_a_bad_row_and_reading_goes_on(form, middle, piece, tmp_path, monkeypatch):
    monkeypatch.setattr("rue.streams.files.pieces.PIECE", piece)
    lines, head = MAKERS[form](200), [HEADER] if form == "csv" else []
    path = tmp_path / "data"
    path.write_bytes(b"".join([*head, *lines[:100], MIDDLES[middle] + b"\n", *lines[100:]]))
    options = {"format": form, "target": None if form in ("svmlight", "vw") else "y", "max_line": 1}
    options = {name: value for name, value in options.items() if value is not None}
    at = 101 + len(head)
    chunks = list(read_stream(path, **options).reads())
    bad = [row for each in chunks for row in each.bad]
    assert [row.line for row in bad] == [at]
    assert "longer than 1 MiB" in bad[0].why
    assert "--max-line" in bad[0].why
    found = np.concatenate([each.lines for each in chunks]).tolist()
    assert found == [line for line in range(1 + len(head), 202 + len(head)) if line != at]
    early = [each for each in chunks if each.unfinished is not None]
    assert [each.unfinished.line for each in early] == [at]
    assert early[0].end == early[0].before_line(at)  # not to be counted twice after a checkpoint
    if form != "csv":
        wide = [row.line for each in read_stream(path, **options | {"max_line": 16}).reads() for row in each.bad]
        assert wide in ([], [at])


def test_places_around_a_line_above_the_limit_are_true(tmp_path):
    """From each place that was reported the rest is read, and the digests of what comes before are the file's own."""
    for name, lines, target in (("x.svm", svmlight(60), None), ("x.csv", [HEADER, *records(60)], "y")):
        path = tmp_path / name
        path.write_bytes(b"".join([*lines[:30], b"1" * 3 * MIB + b"\n", *lines[30:]]))
        first = Data((str(path),), target=target, max_line=1)
        chunks = list(first.reads())
        for i, each in enumerate(chunks):
            rest = Data((str(path),), target=target, max_line=1, columns=first.columns)
            assert first.tail_before(each.end) == each.end.tail()
            wanted = [line for later in chunks[i + 1 :] for line in later.lines.tolist()]
            assert [line for later in rest.reads(after=each.end) for line in later.lines.tolist()] == wanted


def limited(*args, data=None, limit=None, env=None):
    """A command that may use so much memory at most; its stderr and its peak, in MiB."""

    def bound():
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    program = PEAK + (
        "import sys; from rue.cli.app import main\n"
        "try:\n    main()\n"
        "finally:\n    print('peak', peak() // 2**20, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, args)],
        input=data,
        capture_output=True,
        preexec_fn=bound,
        timeout=300,
        env={**os.environ, **(env or {})},
    )
    said = done.stderr.decode()
    assert "Traceback" not in said, said
    assert "should not happen" not in said
    return done.returncode, said, int(said.split()[-1])


@pytest.mark.parametrize("name", ["z.svm.gz", "z.vw.gz", "z.csv.gz", "z.jsonl.gz"])
def test_a_gz_of_zeros_is_a_sentence_and_little_memory(name, tmp_path):
    packer = zlib.compressobj(wbits=31)
    packed = b"".join([*(packer.compress(bytes(MIB)) for _ in range(300)), packer.flush()])
    (tmp_path / name).write_bytes(packed)
    target = [] if name[2] in "sv" else ["--target", "y"]
    for bad in ("stop", "skip"):
        code, said, peak = limited("learn", tmp_path / name, *target, "--bad", bad, "-q")
        assert code == 1
        assert "longer than 16 MiB" in said or "no examples" in said or "empty" in said
        assert peak < 600


@pytest.mark.parametrize("form", ["svmlight", "csv", "jsonl"])
def test_zeros_without_end_through_a_pipe(form, tmp_path):
    """What writes them ends when the reader has gone."""
    pipe = tmp_path / "zeros"
    os.mkfifo(pipe)
    lines = {"svmlight": svmlight(50), "csv": [HEADER, *records(50)], "jsonl": jsonl(50)}[form]

    def write():
        try:
            with open(pipe, "wb", buffering=0) as file:
                file.write(b"".join(lines))
                while True:
                    file.write(bytes(MIB))
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    target = [] if form == "svmlight" else ["--target", "y"]
    report = tmp_path / "r.json"
    code, said, peak = limited("learn", pipe, "--format", form, *target, "-q", "--report", report)
    assert code == 1
    assert f"line {len(lines) + 1}: it is longer than 16 MiB" in said
    assert read(report)["examples"] == 50
    assert peak < 600
    writer.join(timeout=60)
    assert not writer.is_alive()


@pytest.mark.parametrize("name", ["n.svm", "n.csv", "n.jsonl"])
def test_newlines_alone_are_read_in_little_memory(name, tmp_path):
    rows = {"n.svm": svmlight(20), "n.csv": [HEADER, *records(20)], "n.jsonl": jsonl(20)}[name]
    with open(tmp_path / name, "wb") as file:
        file.write(b"\n" * 32 * MIB + b"".join(rows[:15]) + b"\n" * 32 * MIB + b"".join(rows[15:]))
    target = [] if name == "n.svm" else ["--target", "y"]
    report = tmp_path / "r.json"
    code, said, peak = limited("learn", tmp_path / name, *target, "-q", "--report", report)
    assert code == 0, said
    assert read(report)["examples"] == 20
    assert peak < 700


@pytest.mark.parametrize("empty", [b"\n" * 60, b"\r\n" * 60, b"\n" * (2 * MIB + 100_000), b"\xef\xbb\xbf" + b"\n" * 60])
@pytest.mark.parametrize("name", ["n.csv", "n.jsonl"])
def test_any_number_of_empty_lines_may_come_first(name, empty, tmp_path):
    rows = {"n.csv": [HEADER, *records(20)], "n.jsonl": jsonl(20)}[name]
    lines = empty.count(b"\n")
    (tmp_path / name).write_bytes(empty + b"".join(rows))
    report = tmp_path / "r.json"
    code, said, _ = limited("learn", tmp_path / name, "--target", "y", "-q", "--report", report)
    assert code == 0, said
    assert read(report)["examples"] == 20
    with open(tmp_path / name, "ab") as file:
        file.write({"n.csv": b"1,2\n", "n.jsonl": b'{"a":\n'}[name])
    code, said, _ = limited("learn", tmp_path / name, "--target", "y", "-q")
    assert code == 1
    assert f"line {lines + len(rows) + 1}" in said


@pytest.mark.parametrize("empty", [0, 60, 5000, 200_000])
def test_empty_lines_after_the_first_record_do_not_make_it_a_header(empty, tmp_path):
    rows = [f"{i % 7 + 10},{i % 3},{'yes' if i % 7 > 2 else 'no'}\n" for i in range(30)]
    (tmp_path / "s.csv").write_text(rows[0] + "\n" * empty + "".join(rows[1:]))
    report = tmp_path / "r.json"
    code, said, _ = limited("learn", tmp_path / "s.csv", "--target", "3", "-q", "--report", report)
    assert code == 0, said
    assert read(report)["examples"] == 30


def test_a_long_line_that_trickles_takes_linear_time(tmp_path):
    """Each byte is looked at a bounded number of times: twice the line takes about twice the time."""
    times = []
    for size in (4, 16):
        text = b"a,b\n1," + b'"' + b"x" * size * MIB + b'"\n2,y\n'

        class Trickle(io.BytesIO):
            def read(self, size=-1):
                return super().read(min(size, 4096))

        began = time.process_time()
        table = open_table(Trickle(text), "csv", max_line=64)
        assert sum(len(piece.data) for piece in table.pieces()) == len(text) - 4
        times.append(time.process_time() - began)
    assert times[1] < 12 * times[0] + 1.0  # four times; the rescans of before took sixteen times


def test_a_line_of_words_takes_memory_by_its_words():
    code = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "from rue.streams.formats.vw import VW\n"
        "words = 4 * 2**20\n"
        "chunk = VW().parse(b'1 | ' + b'a ' * words, 1)\n"
        "assert chunk.block.X.data.tolist() == [float(words)]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("parser", [Svmlight(), VW(bits=32)], ids=["svmlight", "vw"])
def test_rows_of_any_length_in_any_order_fit(parser):
    head = b"1 " if isinstance(parser, Svmlight) else b"1 | "
    lengths = [3, 5000, 1, 20_000, 1024, 1025, 0, 7]
    rows = [head + b" ".join(b"%d:%d" % (i, i % 9 + 1) for i in range(n)) + b"\n" for n in lengths]
    chunk = parser.parse(b"\n\n".join(rows), 1)
    assert np.diff(chunk.block.X.indptr).tolist() == lengths
    assert chunk.block.X.indices.tolist() == [i for n in lengths for i in range(n)]
    assert chunk.block.X.data.tolist() == [float(i % 9 + 1) for n in lengths for i in range(n)]


# Wide lines.


def test_twenty_thousand_columns(tmp_path):
    rng = np.random.default_rng(2)
    values = rng.integers(0, 100, size=(5, 20_000))
    names = [f"feature_{j}" for j in range(20_000)]
    header = ",".join(names)
    assert len(header) > 1 << 17
    rows = [",".join(map(str, row)) for row in values.tolist()]
    (tmp_path / "w.csv").write_text("\n".join([header + ",y", *(f"{row},{i % 2}" for i, row in enumerate(rows))]))
    records = ({**dict(zip(names, row, strict=True)), "y": i % 2} for i, row in enumerate(values.tolist()))
    (tmp_path / "w.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
    for name in ("w.csv", "w.jsonl"):
        found = list(read_stream(tmp_path / name, "y"))
        X = np.concatenate([sparse.csr_matrix((b.X.data, b.X.indices, b.X.indptr), b.X.shape).toarray() for b in found])
        assert np.array_equal(X, values)
        assert np.concatenate([block.y for block in found]).tolist() == [0, 1, 0, 1, 0]


def test_a_header_that_is_too_long_is_a_sentence():
    with pytest.raises(DataError, match="line 1: it is longer than 1 MiB"):
        lines_of(b"a," * MIB + b"y\n" + b"1," * MIB + b"0\n", max_line=1)
    field = b'"' + b"x, y" * 50_000 + b'"'  # more than the csv module takes by itself
    good, bad = lines_of(b"a;text;y\n" + b"".join(b"%d;%s;%d\n" % (i, field, i % 2) for i in range(4)))
    assert (good, bad) == ([2, 3, 4, 5], [])


def test_a_first_record_above_the_limit_does_not_decide_the_types():
    good, bad = lines_of(HEADER + b"x" * 2 * MIB + b"\n" + b"".join(records(50)), max_line=1)
    assert good == list(range(3, 53))
    assert [line for line, _ in bad] == [2]


# Cut and damaged archives.

PACKERS = {
    ".gz": gzip.compress,
    ".bz2": lambda data: bz2.compress(data, 1),
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


def decodable(packed, suffix):
    """All that a decompressor gives, asked for one byte after the other."""
    if suffix == ".zst":
        stream, found = pa.CompressedInputStream(pa.BufferReader(packed), "zstd"), b""
        try:
            while more := stream.read(1):
                found += more
        except OSError:
            pass
        return found
    made = {".gz": lambda: zlib.decompressobj(31), ".bz2": bz2.BZ2Decompressor, ".xz": lzma.LZMADecompressor}[suffix]()
    found = []
    try:
        for i in range(len(packed)):
            data = packed[i : i + 1]
            while True:
                found.append(made.decompress(data, 1))
                data = getattr(made, "unconsumed_tail", b"")
                if not found[-1]:
                    break
    except (zlib.error, OSError, lzma.LZMAError, EOFError):
        pass
    return b"".join(found)


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("harm", ["cut", "damaged"])
def test_all_that_can_be_decompressed_is_given_before_the_error(suffix, harm):
    packed = PACKERS[suffix](b"".join(svmlight(12_000)))
    middle = 5 * len(packed) // 8
    hurt = packed[:middle] if harm == "cut" else packed[:middle] + bytes(32) + packed[middle + 32 :]
    wanted = decodable(hurt, suffix)
    assert len(wanted) > 60_000
    for size in (1000, 2**22):
        file, found = Unpacked(io.BytesIO(hurt), suffix), []
        with pytest.raises(OSError, match="."):
            while True:
                found.append(file.read(size))
                assert found[-1]
        found = b"".join(found)
        assert found == wanted[: len(found)]
        assert len(wanted) - len(found) <= 4 * (harm == "damaged")  # the decompressor may see a little ahead
        with pytest.raises(OSError, match="."):
            file.read(1)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_members_one_after_the_other_and_what_does_not_belong_there(suffix):
    pack, parts = PACKERS[suffix], [b"one\n" * 5, b"two\n" * 99_999, b"three\n"]
    whole = b"".join(map(pack, parts))
    file = Unpacked(io.BytesIO(whole), suffix)
    assert file.read(10**9) == b"".join(parts)
    assert file.read(1) == b""
    file.seek(7)
    assert file.read(13) == b"".join(parts)[7:20]
    file = Unpacked(io.BytesIO(whole + b"garbage that is not compressed"), suffix)
    assert file.read(10**9) == b"".join(parts)
    with pytest.raises(OSError, match="."):
        file.read(1)
    if suffix in (".gz", ".xz"):
        assert Unpacked(io.BytesIO(whole + bytes(512)), suffix).read(10**9) == b"".join(parts)


@pytest.mark.parametrize("name", ["x.svm.gz", "x.csv.bz2", "x.jsonl.xz", "x.csv.zst", "x.vw.gz"])
def test_a_cut_archive_is_learnt_as_far_as_it_can_be_read(name, tmp_path, inside, monkeypatch):
    monkeypatch.chdir(tmp_path)
    form, suffix = name.split(".")[1], "." + name.split(".")[2]
    rows = MAKERS[{"svm": "svmlight"}.get(form, form)](12_000)
    text = b"".join([HEADER] * (form == "csv") + rows)
    packed = PACKERS[suffix](text)[: 5 * len(PACKERS[suffix](text)) // 8]
    (tmp_path / name).write_bytes(packed)
    lines = decodable(packed, suffix).count(b"\n")
    target = [] if form in ("svm", "vw") else ["--target", "y"]
    made = ["--model", "m.rue", "--report", "r.json", "--predictions", "p.csv", "-q"]
    said = inside("learn", name, *target, *made, ok=1).err
    assert f"{name}: reading stops after line {lines:,}, byte" in said
    assert "an unfinished line included" in said
    examples = lines - (form == "csv")
    assert 1000 < examples == read(tmp_path / "r.json")["examples"]
    assert len((tmp_path / "p.csv").read_text().splitlines()) == examples + 1
    assert rue.load(tmp_path / "m.rue").learner is not None


# Quotes.


def stray(at, count=400, quote=b'0.5,0.5,"w1,no\n'):
    rows = records(count)
    rows[at] = quote
    return rows


@pytest.mark.parametrize("block", [40, 1000, 2**22])
@pytest.mark.parametrize("later", [b"", b'0.5,0.25,"w2, or so",yes\n', b'0.5,0.25,5",yes\n'])
def test_a_stray_quote_costs_its_own_line(block, later):
    rows = stray(100)
    if later:  # a quote in it would close the stray one
        rows[300] = later
    good, bad = lines_of(HEADER + b"".join(rows), block=block)
    assert good == [line for line in range(2, 402) if line != 102]
    assert [line for line, _ in bad] == [102]
    assert "the lines after it look like records" in bad[0][1]


@pytest.mark.parametrize("block", [64, 2**22])
@pytest.mark.parametrize("distance", [1, 5, 16, 17, 40])
def test_two_stray_quotes_cost_two_lines(block, distance):
    rows = stray(100)
    rows[100 + distance] = b'0.5,0.5,"w2,yes\n'
    good, bad = lines_of(HEADER + b"".join(rows), block=block)
    assert [line for line, _ in bad] == [102, 102 + distance]
    assert len(good) == 398


@pytest.mark.parametrize("block", [64, 3000, 2**22])
@pytest.mark.parametrize("length", [2, 16, 17, 18, 200])
def test_long_text_with_line_ends_is_a_field(block, length):
    poem = "\n".join(f"line {i}, of a poem" if i % 3 else "" for i in range(length)).encode()
    rows = records(60)
    rows[30] = b'0.5,0.25,"' + poem + b'",yes\n'
    good, bad = lines_of(HEADER + b"".join(rows), block=block)
    assert bad == []
    assert good == [*range(2, 33), *range(32 + length, 32 + length + 29)]


def test_lines_of_the_right_number_of_fields_but_other_types_are_text():
    rows = records(60)
    rows[30] = b'0.5,0.25,"' + b"so, it, goes, on\n" * 40 + b'",yes\n'
    assert lines_of(HEADER + b"".join(rows))[1] == []
    text = b"n,text\n1,x\n2,y\n" + b'3,"' + b"one comma, not a number\n" * 40 + b'"\n4,z\n'
    assert lines_of(text, target="n")[1] == []


def test_the_rule_for_quotes_does_not_depend_on_pieces():
    rng = np.random.default_rng(3)
    odd = [b'1,2,"open,no\n', b'1,2,"two\nlines",no\n', b'"', b'1,"2\n', b'"x" y,"z\n', b"\n", b'1,2,"w""w",yes\n']
    for _ in range(25):
        rows = records(120, seed=int(rng.integers(100)))
        for at in rng.integers(0, 120, size=4).tolist():
            rows[at] = odd[rng.integers(len(odd))]
        text = HEADER + records(1)[0] + b"".join(rows)
        columns, found = None, []
        for block in (2**22, 17, 300, 5000):
            table = open_table(io.BytesIO(text), "csv", separator=",", block=block)
            whole = open_table(io.BytesIO(text), "csv", separator=",")
            table.schema = whole.schema  # told by the first piece
            columns = plan(whole.schema, target="y", category=["a", "b"])
            chunks = [table.chunk(piece, columns) for piece in table.pieces()]
            found.append(
                (
                    [int(line) for chunk in chunks for line in chunk.lines],
                    [(row.line, row.why) for chunk in chunks for row in chunk.bad],
                )
            )
        assert found[1:] == found[:1] * 3, text


def test_skipping_a_stray_quote_learns_all_the_other_rows(tmp_path, inside, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").write_bytes(HEADER + b"".join(stray(700, 1000)))
    report = ["--target", "y", "-q", "--report", "r.json"]
    inside("learn", "s.csv", *report, "--bad", "skip")
    assert (read("r.json")["examples"], read("r.json")["skipped"]) == (999, 1)
    said = inside("learn", "s.csv", *report, ok=1).err
    assert "s.csv, line 702: a quote is opened" in said
    assert read("r.json")["examples"] == 700


# Pipes.


def through(path, data):
    """Write to a FIFO as soon as it is read."""

    def write():
        with open(path, "wb") as file:
            file.write(data)

    os.mkfifo(path)
    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def soon(function):
    """What a function returns or raises, unless it hangs."""
    found = queue.Queue()

    def call():
        try:
            found.put((function(), None))
        except Exception as error:
            found.put((None, error))

    threading.Thread(target=call, daemon=True).start()
    result, error = found.get(timeout=120)
    if error is not None:
        raise error
    return result


@pytest.mark.parametrize("name", ["f.svm", "f.vw", "f.csv", "f.jsonl", "f.svm.gz", "f.csv.zst", "f.arrow"])
def test_a_fifo_is_read_once_and_as_the_file(name, tmp_path):
    form = name.split(".")[1]
    table = pa.table({"a": np.arange(50.0), "y": np.arange(50) % 2})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    made = {"svm": svmlight, "csv": lambda n: [HEADER, *records(n)]}.get(form) or MAKERS.get(form)
    data = sink.getvalue().to_pybytes() if form == "arrow" else b"".join(made(50))
    if name.count(".") == 2:
        data = PACKERS["." + name.split(".")[2]](data)
    target = {} if form in ("svm", "vw") else {"target": "y"}
    (tmp_path / f"file_{name}").write_bytes(data)
    writer = through(tmp_path / name, data)
    stream = read_stream(tmp_path / name, **target)
    from_pipe, from_file = soon(lambda: list(stream)), list(read_stream(tmp_path / f"file_{name}", **target))
    writer.join(timeout=60)
    assert sum(map(len, from_pipe)) == 50
    for one, other in ((from_pipe, from_file),):
        assert np.concatenate([b.X.data for b in one]).tolist() == np.concatenate([b.X.data for b in other]).tolist()
        assert np.concatenate([b.y for b in one]).tolist() == np.concatenate([b.y for b in other]).tolist()
    with pytest.raises(DataError, match="a pipe can be read only once"):
        soon(lambda: list(stream))


def test_commands_read_fifos_and_process_substitutions(tmp_path):
    (tmp_path / "x.svm").write_bytes(b"".join(svmlight(300)))
    script = 'rue() { "$PYTHON" -m rue "$@"; }; cd "$1"; mkfifo f; cat x.svm > f & '
    script += (
        "rue learn f --format svmlight -q --report r.json && rue learn <(cat x.svm) <(cat x.svm) --format svmlight"
    )
    script += " -q --report s.json && rue learn <(cat x.svm) --format svmlight --passes 2 -q; echo code $?; "
    script += "rue learn <(cat x.svm) --format parquet --target y; echo code $?"
    done = subprocess.run(
        ["bash", "-c", script, "bash", tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHON": sys.executable},
    )
    assert read(tmp_path / "r.json")["examples"] == 300
    assert read(tmp_path / "s.json")["examples"] == 600
    assert done.stdout.count("code 1") == 2
    assert "a pipe can be read only once" in done.stderr
    assert "Parquet is read from its end" in done.stderr


def test_a_fifo_to_be_tried_on_is_opened_once(tmp_path):
    (tmp_path / "x.svm").write_bytes(b"".join(svmlight(300)))
    writer = through(tmp_path / "f", (tmp_path / "x.svm").read_bytes())
    how = ["--format", "svmlight", "--learner", "perceptron", "-q", "--report", tmp_path / "r.json"]
    command = [sys.executable, "-m", "rue", "learn", tmp_path / "x.svm", "--test", tmp_path / "f", *how]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    writer.join(timeout=60)
    assert read(tmp_path / "r.json")["test"]["examples"] == 300


# Text that no encoder takes.

HALVES = {
    "value": r'{"a": 1, "w": "\ud800", "y": 1}',
    "low half": r'{"a": 1, "w": "q\udc00z", "y": 1}',
    "key": r'{"a": 1, "w": "x", "y": 1, "\uD800": 2}',
    "unknown column": r'{"a": 1, "w": "x", "y": 1, "z": "\udfff"}',
    "number": r'{"a": "\ud800", "w": "x", "y": 1}',
    "label": r'{"a": 1, "w": "x", "y": "\ud800"}',
    "list": r'{"a": ["\ud800"], "w": "x", "y": 1}',
}


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("at", [0, 10])
def test_half_a_character_in_json_is_a_bad_row(half, at):
    rows = [json.dumps({"a": i, "w": f"w{i % 3}", "y": i % 2}) for i in range(20)]
    rows[5] = r'{"a": 5, "w": "\ud83d\ude00", "y": 1}'  # both halves are one character
    rows.insert(at, HALVES[half])
    good, bad = lines_of(("\n".join(rows) + "\n").encode(), "jsonl")
    assert good == [line for line in range(1, 22) if line != at + 1]
    assert [line for line, _ in bad] == [at + 1]
    assert "lone surrogate" in bad[0][1]
    bad[0][1].encode()


def test_all_labels_and_all_names_of_halves(tmp_path, inside, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.jsonl").write_text(r'{"a": 1, "y": "\ud800"}' + "\n")
    for target in ("y", "\udcff"):
        said = inside("learn", "s.jsonl", "--target", target, "--bad", "skip", ok=1).err
        assert "s.jsonl: the first lines hold no JSON object" in said


def invalid(words):
    """An array of strings whose bytes are not checked, as a damaged file has them."""
    offsets = np.cumsum([0, *map(len, words)]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(words), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(words))]
    )


def test_tables_whose_text_is_not_utf8(tmp_path):
    path = tmp_path / "t.arrow"
    words = invalid([b"one", b"t\xffo", b"three", b"four"])
    pyarrow.feather.write_feather(pa.table({"w": words, "y": [0, 1, 0, 1]}), path, compression="uncompressed")
    run_ = rue.learn(path, "y")
    assert r"w=t\xffo" in run_.names.values()
    pyarrow.feather.write_feather(pa.table({"x": [1, 2, 3, 4], "y": words}), path, compression="uncompressed")
    assert rue.learn(path, "y", bad="skip").skipped == 1
    with pytest.raises(DataError, match=r"line 2, column y: 't\\\\xffo' is not text in UTF-8"):
        rue.learn(path, "y")


@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.parametrize("column", ["w", "y"])
def test_rows_of_frames_with_half_a_character_are_bad(column, categorical):
    words = [*"abcbacbaba"] * 3
    frame = pandas.DataFrame({"w": words, "v": words, "y": [*"nyynnyyyny"] * 3}).astype(object)
    broken = frame.copy()
    broken.loc[[4, 17], column] = ["b\ud800", "\udcff"]
    broken.loc[17, "v"] = "\ud800"  # two in one row are one bad row
    if categorical:
        codes, known = pandas.factorize(broken[column].to_numpy())
        broken[column] = pandas.Categorical.from_codes(codes, categories=pandas.Index(known, dtype=object))
    run_ = rue.learn(broken, "y", bad="skip")
    clean = rue.learn(frame.drop([4, 17]), "y")
    assert run_.skipped == 2
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(run_.predictions)), [4, 17])
    np.testing.assert_array_equal(np.delete(run_.predictions, [4, 17]), clean.predictions)
    with pytest.raises(BadExample, match=rf"row 4 .*: 'b\\ud800' has half a character.*column {column}\."):
        rue.learn(broken, "y")
    with pytest.raises(DataError, match="the name of a column, .*lone surrogate"):
        rue.learn(frame.set_axis(pandas.Index(["w\ud800", "v", "y"], dtype=object), axis=1), "y")


def test_names_and_labels_of_the_library_may_be_halves(tmp_path):
    learner = rue.Mixture()
    learner.update({"a\ud800": 1.0}, 1.0)
    rue.save(learner, tmp_path / "m.rue")
    assert rue.load(tmp_path / "m.rue").learner.predict({"a\ud800": 1.0}) == learner.predict({"a\ud800": 1.0})


def test_closed_input_is_a_sentence(tmp_path):
    done = subprocess.run(
        ["bash", "-c", '"$0" -m rue learn - --format csv --target y <&-', sys.executable],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "standard input is closed" in done.stderr
    assert "- --max-line" not in run("learn", "--help").stdout
