"""Mutated lines for the parsers of text: `python fuzzing.py ROUNDS SECONDS SEED`, best with NUMBA_BOUNDSCHECK=1."""

import io
import random
import re
import sys
import time

import numpy as np

from rue.errors import DataError
from rue.streams.formats.svmlight import Svmlight
from rue.streams.formats.vw import VW
from rue.streams.names import Names
from rue.streams.tables.columns import plan
from rue.streams.tables.spelling import ORDERS
from tables import open_table

SVMLIGHT = [
    b"+1 3:1 11:1 14:0.25 19:1e-3 39:1 42:-1.5 # comment",
    b"-1 qid:3 22219:1 26382:2 60775:12 4294967295:.5",
    b"-1 5:1 7:1 14:1 19:1 39:1 40:1 51:1 63:1 67:1 73:1 74:1 76:1 80:1 83:1",
    b"0.5 7:3.9656971e-02 5:123456789012345678901234567890 1:1e308",
    b"# only a comment",
    b"",
]
WORDS = [
    b"1 2.0 'tag|text this is:2 a:0.5 text:red |size:2.5 width:1.5e-3 5 :7 17:2",
    b"-1 | 13:3.9656971e-02 24:3.4714505e-02 1000000000000:1",
    b"1 1.0 0 tag| a b c a b:1e5 longer_names_are_hashed_in_words:0.25|b c",
    b"|x y z",
    b"",
]
JUNK = [b":", b"|", b" ", b"\t", b"\n", b"\r\n", b"\r", b"#", b"'", b"\0", b"\xff\xfe", b"-", b"+", b".", b"e", b"e400"]
JUNK += [
    b"nan",
    b"inf",
    b"0" * 30,
    b"9" * 25,
    b"1:1 ",
    b" 3:3",
    b"4294967296:1",
    b"qid:",
    b",",
    b"\xc3\xa9",
    b"1" * 900,
]

NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


def mutated(lines, rng, junk=JUNK):
    """A few of the lines, some of them damaged."""
    parts = []
    for _ in range(rng.randint(1, 8)):
        line = bytearray(rng.choice(lines))
        for _ in range(rng.choice([0, 0, 1, 1, 2, 5])):
            at = rng.randint(0, len(line))
            what = rng.randrange(4)
            if what == 0:
                line[at:at] = rng.choice(junk)
            elif what == 1:
                del line[at : at + rng.randint(1, 6)]
            elif what == 2 and at < len(line):
                line[at] = rng.randrange(256)
            else:
                line[at:at] = line[rng.randint(0, len(line)) :][: rng.randint(1, 12)]
        parts.append(bytes(line))
    return rng.choice([b"\n", b"\n", b"\r\n"]).join(parts) + rng.choice([b"", b"\n"])


def svmlight_line(line):
    """A line of svmlight in plain Python: None if it is blank, False if it is bad, else label and sorted features."""
    words = re.split(rb"[ \t\v\f\r]+", line.partition(b"#")[0].strip(b" \t\v\f\r"))
    if words == [b""]:
        return None
    if not finite(words[0]):
        return False
    if len(words) > 1 and re.fullmatch(rb"qid:[0-9]+", words[1]):
        del words[1]
    found = {}
    for word in words[1:]:
        index, colon, value = word.partition(b":")
        if not (colon and re.fullmatch(rb"[0-9]{1,19}", index) and int(index) < 2**32 and finite(value)):
            return False
        if int(index) in found:
            return False
        found[int(index)] = float(value)
    return float(words[0]), sorted(found.items())


def finite(word):
    return bool(re.fullmatch(NUMBER, word)) and abs(float(word)) < float("inf")


def rows(chunk):
    """What a chunk holds, as plain Python: (line, label, weight, tag, features) of each row, then the bad ones."""
    X, weights = chunk.block.X, chunk.block.weights
    good = [
        (
            int(chunk.lines[i]),
            repr(float(chunk.block.y[i])),
            1.0 if weights is None else float(weights[i]),
            chunk.tags[i] if chunk.tags else "",
            list(zip(X.indices[lo:hi].tolist(), X.data[lo:hi].tolist(), strict=True)),
        )
        for i, (lo, hi) in enumerate(zip(X.indptr[:-1], X.indptr[1:], strict=True))
    ]
    return good, [(bad.line, bad.why) for bad in chunk.bad]


def in_pieces(parser, text, cuts):
    """The rows of a text that is parsed in pieces, each cut back to whole lines."""
    good, bad, line, start = [], [], 1, 0
    for cut in sorted({text.rfind(b"\n", 0, cut) + 1 for cut in cuts} | {len(text)}):
        if cut > start or len(text) == 0:
            more, worse = rows(parser.parse(text[start:cut], line))
            good, bad = good + more, bad + worse
            line, start = line + text[start:cut].count(b"\n"), cut
    return good, bad


def check_chunk(text, chunk, width):
    """What must hold whatever the text is."""
    X = chunk.block.X
    assert X.indptr[0] == 0
    assert X.indptr[-1] == len(X.indices) == len(X.data)
    assert np.isfinite(X.data).all()
    lines = [bad.line for bad in chunk.bad] + chunk.lines.tolist()
    assert len(set(lines)) == len(lines)
    assert all(1 <= line <= text.count(b"\n") + 1 for line in lines)
    for lo, hi in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        assert (np.diff(X.indices[lo:hi].astype(np.int64)) > 0).all()
        assert lo == hi or X.indices[hi - 1] < width
    places = [bad.place for bad in chunk.bad]
    assert all(place == sum(chunk.lines < bad.line) for place, bad in zip(places, chunk.bad, strict=True))
    assert all(0 < len(bad.why) < 140 for bad in chunk.bad)


def fuzz_once(rng):
    text = mutated(SVMLIGHT, rng)
    chunk = Svmlight().parse(text, 1)
    check_chunk(text, chunk, 2**32)
    good, bad = rows(chunk)
    expected = [svmlight_line(line) for line in text.split(b"\n")]
    assert [(line, y, x) for line, y, _, _, x in good] == [
        (i + 1, repr(found[0]), found[1]) for i, found in enumerate(expected) if found
    ], text
    assert [line for line, _ in bad] == [i + 1 for i, found in enumerate(expected) if found is False], text
    assert in_pieces(Svmlight(), text, [rng.randint(0, len(text)) for _ in range(3)]) == (good, bad), text

    text = mutated(WORDS, rng)
    bits = rng.choice([3, 18, 32])
    chunk = VW(bits).parse(text, 1, rng.choice([None, Names()]))
    check_chunk(text, chunk, 2**bits)
    assert all(0 <= slot < 2**bits for slot, _ in chunk.names)
    assert in_pieces(VW(bits), text, [rng.randint(0, len(text)) for _ in range(3)]) == rows(chunk), text

    fuzz_table(rng, CSV, "csv")
    fuzz_table(rng, JSON, "jsonl")


# Tables of text.

CSV = [
    b"day,period,price,demand,when,sold,up",
    b"tue,0.0,0.056443,0.439155,2011-01-01,true,1",
    b"wed,0.021277,0.051699,,2011-01-02,false,0",
    b'"thu, ""or so""",-1.5e-3,NA,0.414912,2011-01-03,true,1',
    "größe,1,2,3,2011-01-04,false,0".encode(),
]
JSON = [
    b'{"day": "tue", "period": 0.0, "price": 0.056443, "when": "2011-01-01", "sold": true, "up": 1}',
    b'{"day": "wed", "period": 0.021277, "price": null, "when": "2011-01-02", "sold": false, "up": 0}',
    b'{"up": 1, "day": "thu, \\"or so\\"", "price": -1.5e-3, "sold": true}',
    '{"day": "größe", "period": 1, "up": 0, "when": "2011-01-04"}'.encode(),
]
LETTERS = [
    b",",
    b'"',
    b"\n",
    b"\r\n",
    b"\r",
    b"\0",
    b"\xff",
    b";",
    b"\t",
    b"{",
    b"}",
    b"[",
    b":",
    b"null",
    b"nan",
    b"1e999",
]
LETTERS += [
    b"inf",
    b"-",
    b"x",
    b"0x10",
    b"1_0",
    b'""',
    b"\\",
    b"\\u00e9",
    b"\xef\xbb\xbf",
    b"true",
    b"2011-13-01",
    b"9" * 400,
    b"\\ud800",
    b'"\\udc00"',
    b"\\ud83d\\ude00",
    b',"',
    b'",',
    b"\n" * 20,
]


def fuzz_table(rng, lines, named):
    """A mutated table gives chunks that fit together, or one sentence; in smaller pieces, the same rows."""
    head = [lines[0]] if named == "csv" else []
    text = b"\n".join(head) + b"\n" * len(head) + mutated(lines, rng, LETTERS)
    if rng.random() < 0.3:  # so many lines that an open quote runs over them
        text += b"\n" + b"\n".join(rng.choice(lines[1:]) for _ in range(40)) + b"\n" + mutated(lines, rng, LETTERS)
    text = mutated([text], rng, LETTERS) if rng.random() < 0.2 else text
    try:
        table = open_table(io.BytesIO(text), named, separator=rng.choice([None, ","]) if named == "csv" else None)
        spelling = {"decimal": rng.choice(".,"), "order": rng.choice(ORDERS)}
        columns = plan(table.schema, target=-1, first=table.first, **spelling)
        chunks = [table.chunk(piece, columns, labels=True, names=Names()) for piece in table.pieces()]
    except DataError:
        return
    for chunk in chunks:
        check_table(text, chunk, columns)
    separator = table.separator if named == "csv" else None
    try:
        again = open_table(io.BytesIO(text), named, separator=separator, block=rng.randint(1, 200))
    except DataError:  # its first lines hold nothing
        return
    if again.schema == table.schema:
        pieces = [again.chunk(piece, columns) for piece in again.pieces()]
        assert plainly(pieces) == plainly(chunks), text


def check_table(text, chunk, columns):
    X = chunk.block.X
    assert X.indptr[0] == 0, text
    assert X.indptr[-1] == len(X.indices) == len(X.data), text
    assert np.isfinite(X.data).all(), text
    assert X.shape[1] in (columns.width, columns.full_width), text
    assert not len(X.indices) or X.indices.max() < X.shape[1], text
    lines = [bad.line for bad in chunk.bad] + list(chunk.lines)
    assert len(set(lines)) == len(lines), text
    assert all(1 <= line <= text.count(b"\n") + 1 for line in lines), text
    assert all(bad.place == sum(chunk.lines < bad.line) and bad.why for bad in chunk.bad), text


def plainly(chunks):
    good, bad = [], []
    for chunk in chunks:
        X = chunk.block.X
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        for line, label, (lo, hi) in zip(chunk.lines, chunk.block.y, ends, strict=True):
            good.append(
                (
                    int(line),
                    "" if label is None or label != label else str(label),
                    X.indices[lo:hi].tolist(),
                    X.data[lo:hi].tolist(),
                )
            )
        bad += [row.line for row in chunk.bad]
    return good, bad


def fuzz(rounds, seconds, seed):
    """Parse mutated lines, four texts a round, for at least so many rounds and seconds: how many texts that were."""
    rng, done = random.Random(seed), 0
    end = time.monotonic() + seconds
    while done < rounds or time.monotonic() < end:
        fuzz_once(rng)
        done += 1
    return 4 * done


if __name__ == "__main__":
    print(fuzz(*map(int, sys.argv[1:])))
