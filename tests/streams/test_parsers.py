"""Numbers against Python's float, svmlight against scikit-learn, VW against VW itself, and hostile lines."""

import io
import lzma
import math
import os
import random
import struct
import subprocess
import sys
import threading
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file
from sklearn.utils import murmurhash3_32

import fuzzing
from conftest import ROOT, many
from fuzzing import in_pieces, rows
from rue.errors import SettingsError
from rue.streams.formats.svmlight import Svmlight
from rue.streams.formats.vw import VW
from rue.streams.names import ROOM, Names
from rue.streams.text.hashing import hash_texts, murmur3
from rue.streams.text.numbers import as_text

DATA = ROOT.parent / "shared" / "data"


# Numbers: the same bits as Python's float.


def read(words):
    """The words as values of svmlight, NaN for those refused."""
    chunk = Svmlight().parse("".join(f"0 1:{word}\n" for word in words).encode(), 1)
    values = np.full(len(words), np.nan)
    values[chunk.lines - 1] = chunk.block.X.data
    return values


def agree(words):
    expected = np.array([float(word) for word in words])
    expected[~np.isfinite(expected)] = np.nan
    found = read(words)
    different = np.flatnonzero(found.view(np.uint64) != expected.view(np.uint64))
    assert not different.size, [(words[i], found[i], expected[i]) for i in different[:3]]


def doubles(rng, count, bits=64):
    """Doubles with random bits; with fewer bits than 52, subnormal ones."""
    drawn = (struct.unpack("d", struct.pack("Q", rng.getrandbits(bits)))[0] for _ in range(count))
    return [x if math.isfinite(x) else 1.0 for x in drawn]


def halfway(rng, x):
    """The point between a double and the next one, exactly, or a trifle beside it."""
    x = min(abs(x), 1.7e308)
    with localcontext(prec=1200):
        middle = (Decimal(x) + Decimal(math.nextafter(x, math.inf))) / 2
        digits, _, power = f"{middle:e}".partition("e")
    digits += "" if "." in digits else "."
    less = digits.rstrip("0.")
    less = less[:-1] + str(int(less[-1]) - 1) + "9" * rng.randrange(1, 60) if less else digits
    return rng.choice([digits, digits + "0" * rng.randrange(60) + "1", less]) + f"e{power or 0}"


@pytest.mark.soak
@pytest.mark.parametrize("form", [repr, "{:.17g}".format, "{:.6g}".format, "{:.6f}".format, "{:.30e}".format])
def test_random_doubles_are_read_to_the_same_bits(form):
    rng = random.Random(1)
    agree([form(x) for x in doubles(rng, many(40_000, 2_000_000))])
    agree([form(x) for x in doubles(rng, many(10_000, 500_000), bits=rng.randrange(1, 53))])
    agree([form(rng.random() * 10.0 ** rng.randrange(-6, 6)) for _ in range(many(20_000, 500_000))])


@pytest.mark.soak
def test_halfway_cases_and_long_digits_are_read_to_the_same_bits():
    rng = random.Random(2)
    agree([halfway(rng, x) for x in doubles(rng, many(6_000, 300_000))])
    agree([halfway(rng, x) for x in doubles(rng, many(1_000, 30_000), bits=40)])
    whole = [str(rng.getrandbits(rng.randrange(1, 1200))) for _ in range(many(5_000, 200_000))]
    agree(whole)
    agree([f"{word[:9]}.{word[9:]}e{rng.randrange(-340, 320)}" for word in whole])
    agree([f"{m}e{e}" for e in range(-360, 320) for m in (1, 9, 2**53 + 1, 2**64 - 1, 10**19 - 1)])


def test_numbers_at_the_edges():
    agree(["0", "-0", "+0.0", ".5", "5.", "-.5e1", "1E5", "1e+5", "1e-400", "1e400", "-1e400", "1e308", "4.9e-324"])
    agree(["1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "17976931348623159e292"])
    agree(["2.47e-324", "2.4703282292062327208e-324", "2.4703282292062328e-324", "2.2250738585072011e-308"])
    agree(["0" * 1000 + "1", "0." + "0" * 400 + "1e400", "1" + "0" * 400 + "e-400", "0." + "0" * 5000 + "1e5001"])
    agree(["9" * 1000 + "e-900", "1e99999999999999999999", "1e-99999999999999999999", "0e999999999999", "0.000e-5"])
    agree(["9007199254740993", "9007199254740992.5", "9007199254740993" + "0" * 900 + "e-900", "1e22", "1e23"])
    agree(["9007199254740993." + "0" * 900 + "1", "1." + "0" * 30, "1" + "0" * 30, "0" * 30 + ".25"])
    agree(["2" * 10_000, "2" * 10_000 + "e-9990", "0." + "3" * 100_000])


NOT_NUMBERS = ["", ".", "+", "-", "e5", ".e5", "1e", "1e+", "1e-", "0x10", "1_000", "١", "1..2", "1.2.3", "--1", "1d5"]
NOT_NUMBERS += ["+-1", "1,5", "1f", "1e5.0", "1e5e5", "½", "1:2", "True", "0 x", "nan0", "1e 5"]


@pytest.mark.parametrize("word", NOT_NUMBERS)
def test_what_is_no_number_is_refused_in_words(word):
    chunk = Svmlight().parse(f"1 3:{word}\n1 3:4\n".encode(), 1)
    assert chunk.lines.tolist() == [2]
    assert [bad.line for bad in chunk.bad] == [1]
    if word and " " not in word:
        assert chunk.bad[0].why == f"the value {word!r} is no number"


@pytest.mark.parametrize("word", ["nan", "NaN", "-nan", "inf", "+INF", "-Infinity"])
def test_nan_and_infinity_are_refused(word):
    for parser, line in ((Svmlight(), f"1 3:{word}\n"), (VW(), f"1 | 3:{word} 4\n")):
        assert [bad.why for bad in parser.parse(line.encode(), 1).bad] == [f"the value {word!r} is not finite"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_comes_back(x):
    assert struct.pack("d", read([repr(x)])[0]) == struct.pack("d", x)


# Hashes.


@given(st.binary(max_size=40), st.integers(0, 2**32 - 1))
def test_murmur3_is_what_scikit_learn_computes(data, seed):
    assert murmur3(data, seed) == murmurhash3_32(data, seed, positive=True)


def test_many_texts_are_hashed_at_once():
    texts = [b"", b"a", b"ab", b"abc", b"abcd", b"abcdefghijklm", "é".encode()]
    offsets = np.cumsum([0, *map(len, texts)])
    assert hash_texts(b"".join(texts), offsets).tolist() == [murmurhash3_32(text, 0, positive=True) for text in texts]
    assert hash_texts(b"", [0]).size == 0
    with pytest.raises(ValueError, match="outside"):
        hash_texts(b"abc", [0, 4])


# svmlight against scikit-learn.


def real(name, size):
    path = DATA / f"{name}.svm.xz"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    with lzma.open(path) as file:
        text = file.read(size)
    return text[: text.rfind(b"\n") + 1]


def same_as_scikit_learn(text):
    chunk = Svmlight().parse(text, 1)
    X, y = load_svmlight_file(io.BytesIO(text), zero_based=True)
    X.sort_indices()
    assert not chunk.bad
    assert chunk.block.y.tolist() == y.tolist()
    assert chunk.block.X.indptr.tolist() == X.indptr.tolist()
    assert chunk.block.X.indices.tolist() == X.indices.tolist()
    assert chunk.block.X.data.tobytes() == X.data.tobytes()
    assert chunk.block.width == X.shape[1]
    return chunk


@pytest.mark.parametrize("name", ["a9a", "toxicity"])
def test_real_files_as_scikit_learn_reads_them(name):
    same_as_scikit_learn(real(name, many(2_000_000, 100_000_000)))


def generated(rng, count, ordered=True):
    lines = []
    for _ in range(count):
        indices = rng.sample(range(100_000), rng.choice([0, 1, 5, 30, 200]))
        indices = sorted(indices) if ordered else indices
        values = (rng.choice([f"{rng.gauss(0, 1):.6f}", repr(rng.gauss(0, 1)), "1", "-2", "1e-7"]) for _ in indices)
        features = " ".join(f"{i}:{value}" for i, value in zip(indices, values, strict=True))
        lines.append(f"{rng.choice(['1', '-1', '+1', '0.25', '3e2'])}{rng.choice(['', ' qid:7'])} {features}")
    return lines


def test_generated_files_as_scikit_learn_reads_them():
    rng = random.Random(3)
    lines = generated(rng, 300)
    endings = [rng.choice(["\n", "\r\n", " \n", "\t\r\n", "\n\n", "\n# remark 1:2\n", " # 3:4\n"]) for _ in lines]
    chunk = same_as_scikit_learn("".join(map("".join, zip(lines, endings, strict=True))).encode())
    expected, line = [], 1
    for ending in endings:
        expected.append(line)
        line += ending.count("\n")
    assert chunk.lines.tolist() == expected
    same_as_scikit_learn("\n".join(lines).encode())  # the last line lacks its end


def test_features_in_any_order_are_sorted():
    for line in generated(random.Random(4), 200, ordered=False):
        good, _ = rows(Svmlight().parse(line.encode(), 1))
        words = [word.split(":") for word in line.split()[1:] if not word.startswith("qid")]
        assert good[0][4] == sorted((int(i), float(value)) for i, value in words)


def test_a_mark_at_the_start_of_a_file_is_passed_over():
    marked = b"\xef\xbb\xbf1 | 2:3\n"
    assert VW().parse(marked, 1).block.X.indices.tolist() == [2]
    assert VW().parse(marked, 2).tags is None
    assert Svmlight().parse(b"\xef\xbb\xbf1 2:3\n", 1).bad == ()
    assert len(Svmlight().parse(b"\xef\xbb\xbf1 2:3\n", 2).bad) == 1


# VW against VW.


@pytest.fixture(scope="module")
def reference():
    """VW's own reading of a line: label, weight, tag and features, those of one slot added up."""
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    workspaces = {bits: vowpalwabbit.Workspace(f"--quiet --noconstant -b {bits}") for bits in (5, 18, 20)}

    def read_line(line, bits=20):
        example = workspaces[bits].parse(line)
        found = {}
        for slot, value in example.iter_features():
            slot %= 2**bits
            found[slot] = found.get(slot, 0.0) + value
        label = example.get_simplelabel_label()
        answer = (label, example.get_simplelabel_weight(), example.get_tag(), sorted(found.items()))
        workspaces[bits].finish_example(example)
        return answer

    yield read_line
    for workspace in workspaces.values():
        workspace.finish()


UNLABELLED = 3.4028234663852886e38  # which VW marks a missing label with


def same_as_vw(line, reference, bits=20):
    good, bad = rows(VW(bits).parse(line.encode(), 1))
    assert not bad, (line, bad)
    _, y, weight, tag, features = good[0]
    label, expected_weight, expected_tag, expected = reference(line, bits)
    assert float(y) == pytest.approx(label, rel=1e-6) or (math.isnan(float(y)) and label == UNLABELLED), line
    assert weight == pytest.approx(expected_weight, rel=1e-6), line
    assert tag == expected_tag, line
    ours, theirs = dict(features), dict(expected)
    for slot in sorted(ours | theirs):  # VW leaves zeros out, and its sums are of single precision: they may cancel
        assert ours.get(slot, 0.0) == pytest.approx(theirs.get(slot, 0.0), rel=1e-5, abs=3e-6), (line, slot)


LINES = """\
1 2 0.0 'tag|a 1:0.5 x y:2 |b:2 3 -3 007 +5 9999999 99999999999999999999 :3 :4 k:v
1 t| a
1 't | a
1 2 'tag | a
1 2| a
1| a
't| a
'| a
-1 | 1:0.5
| 5 |ns 5
abc| b
1 | a:0 b:1e3 c:+2 d:.5 e:-1.5e-2 f:1e+3
1 | a| b|c
1 |a|b|c d
||| a
1 ||a
  1   2  | 4
1'tag| a
1 2'tag| a
1 1.0 | 5  6
1 |a\tb\tc:2\t
1 | -5 --5 5a 0 00 1.5 1e5
1 |5 7
1 |5a 7
1 | 5:red red:red :red
1 |n:0.5 5:red red:2 other
|99999999999 x 3
1 | x|
1 | a a a a:2 b
1 |a b
0 |été naïve:2 日本語:3
1 |user age:25 city=NYC:1 ^x:2 "q":3 a,b;c (d) #hash:1
2.5 0 zero|f:0 a b c
1 |longnamespace averyverylongfeaturename12345:0.125 abcdefgh abcdefg abcdefghi"""


@pytest.mark.parametrize("line", LINES.splitlines())
def test_lines_as_vw_reads_them(line, reference):
    for bits in (5, 18, 20):
        same_as_vw(line, reference, bits)


def test_a_line_of_dos_as_vw_reads_it(reference):
    assert rows(VW().parse(b"1 |a b\r\n\r\n-1 |a b:2\r", 1)) == rows(VW().parse(b"1 |a b\n\n-1 |a b:2", 1))


def random_vw_line(rng):
    def name():
        word = "".join(rng.choice("abcXYZ019_-=é.^") for _ in range(rng.choice([1, 2, 3, 4, 5, 8, 17])))
        return rng.choice([word, str(rng.randrange(10 ** rng.randrange(1, 12)))])

    def value():
        kinds = ["", "", f":{rng.gauss(0, 1):.4f}", f":{rng.randrange(9)}", f":{rng.random():.3e}", ":word"]
        return rng.choice(kinds)

    head = rng.choice(["", "1", "-1", "1 2.5", "0.5 3 0", "1 0.25"])
    tag = rng.choice(["", " ", f" 'tag{name()}", f" '{name()} ", f" t{name()}"])
    head += tag or " "
    line = head if head.strip() else ""
    for _ in range(rng.randrange(1, 4)):
        space = rng.choice(["", name(), f"{name()}:{rng.choice(['2', '0.5', '-1.25'])}"])
        line += f"|{space} " + rng.choice([" ", "  "]).join(name() + value() for _ in range(rng.randrange(12))) + " "
    return line


@pytest.mark.soak
def test_random_lines_as_vw_reads_them(reference):
    rng = random.Random(5)
    for _ in range(many(3_000, 200_000)):
        same_as_vw(random_vw_line(rng), reference, rng.choice([5, 18, 20]))


@pytest.mark.parametrize("name", ["a9a", "toxicity"])
def test_real_files_give_the_same_in_both_formats(name, reference):
    text = real(name, many(300_000, 10_000_000))
    lines = [line.replace(" ", " | ", 1) for line in text.decode().splitlines()]
    one, other = Svmlight().parse(text, 1), VW().parse("\n".join(lines).encode(), 1)
    assert one.block.y.tobytes() == other.block.y.tobytes()
    for array in ("indptr", "indices", "data"):
        assert getattr(one.block.X, array).tobytes() == getattr(other.block.X, array).tobytes()
    assert other.block.width == 2**20
    for line in lines[:200]:
        same_as_vw(line, reference)


def test_values_of_one_slot_are_added_up_in_the_order_they_come():
    chunk = VW(bits=2).parse(b"1 | 0:1e16 5:2 4:1 8:-1e16 1:3\n", 1)
    assert rows(chunk)[0][0][4] == [(0, 1e16 + 1 - 1e16), (1, 5.0)]


def test_bits_are_between_1_and_32():
    assert VW(bits=32).parse(b"| a", 1).block.X.indices[0] == murmurhash3_32(b"a", 0, positive=True)
    for bits in (0, 33):
        with pytest.raises(SettingsError, match=f"bits must lie between 1 and 32, not {bits}"):
            VW(bits)


# Names.


def test_names_are_those_of_features_that_are_new():
    names = Names()
    first = VW().parse(b"1 | a b:2 7 |text a:red 7 :3\n| a:nan", 1, names)
    slots = {name: slot for slot, name in first.names}
    assert list(slots) == ["a", "b", "text^a^red", "text^7"]
    assert slots["a"] == murmur3(b"a") & 0xFFFFF
    names.add(first.names)
    assert names.of[slots["text^7"]] == "text^7"
    assert [name for _, name in VW().parse(b"| a c", 3, names).names] == ["c"]
    assert VW().parse(b"| a c", 3).names == ()
    assert {slot for slot, _ in first.names} <= set(first.block.X.indices.tolist())


def test_names_are_kept_up_to_the_room_there_is_however_the_stream_is_cut():
    words = [f"w{i}" for i in range(ROOM + 5_000)]
    kept = []
    for size in (len(words), 20_000, 7_001):
        names = Names()
        for i in range(0, len(words), size):
            names.add(VW(bits=32).parse(f"| {' '.join(words[i : i + size])}".encode(), 1, names).names)
        kept.append(names.of)
    assert kept[0] == kept[1] == kept[2]
    assert len(kept[0]) == ROOM
    assert names.full()
    assert kept[0][murmur3(b"w0")] == "w0"


# Pieces, threads, and the same code not compiled.


@pytest.mark.parametrize("parser", [Svmlight(), VW()], ids=["svmlight", "vw"])
def test_pieces_cut_at_any_line_give_what_the_whole_gives(parser):
    text = b"1 |a b\n\nbad\n-1 't| 1:2 3\r\n# remark\n1 3:4 2:1\n2 | 5:nan\n1 |x y"
    whole = rows(parser.parse(text, 1))
    assert all(whole)
    for cut in range(len(text) + 1):
        assert in_pieces(parser, text, [cut]) == whole
    assert in_pieces(parser, text, range(len(text))) == whole


def test_nothing_gives_nothing():
    for parser in (Svmlight(), VW()):
        for text in (b"", b"\n", b" \n\r\n"):
            chunk = parser.parse(text, 1)
            assert (len(chunk.block), len(chunk.lines), chunk.bad) == (0, 0, ())


def test_two_threads_do_not_disturb_each_other():
    rng = random.Random(6)
    texts = ["\n".join(halfway(rng, x) + " 1:" + halfway(rng, x) for x in doubles(rng, 500)).encode() for _ in range(8)]
    expected, found = [rows(Svmlight().parse(text, 1)) for text in texts], {}

    def work(part):
        for i in part:
            found[i] = rows(Svmlight().parse(texts[i], 1))

    threads = [threading.Thread(target=work, args=(range(start, 8, 2),)) for start in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(8)] == expected


def test_compiled_and_interpreted_read_the_same(monkeypatch):
    from rue.compiled import Kernel

    rng = random.Random(7)
    texts = [(parser, fuzzing.mutated(lines, rng)) for _ in range(60) for parser, lines in PARSERS]
    compiled = [rows(parser.parse(text, 1, *more)) for (parser, more), text in texts]
    monkeypatch.setattr(Kernel, "resolve", lambda kernel, *args: kernel.interpreted)
    assert [rows(parser.parse(text, 1, *more)) for (parser, more), text in texts] == compiled


PARSERS = [((Svmlight(), ()), fuzzing.SVMLIGHT), ((VW(), (Names(),)), fuzzing.WORDS)]


# Bad lines.

BAD = {
    "1 3:nan": "the value 'nan' is not finite",
    "inf 3:1": "the label 'inf' is not finite",
    "1 3:1e999": "the value '1e999' is too large",
    "1 3:1 2:1 3:2": "index 3 occurs twice",
    "1 4294967296:1": "the index '4294967296' is not below 2³²",
    "1 99999999999999999999999:1": "the index '99999999999999999999999' is not below 2³²",
    "1 -3:1": "the index '-3' is no whole number from 0 on",
    "1 1.5:1": "the index '1.5' is no whole number from 0 on",
    "1 :1": "the index '' is no whole number from 0 on",
    "1 3": "'3' is no feature: index:value is wanted",
    "1 3:": "the value is missing",
    "1 3 :4": "'3' is no feature: index:value is wanted",
    "1,2 3:1": "there are several labels, '1,2', where one is wanted",
    "spam 3:1": "the label 'spam' is no number",
    "3:1": "the label '3:1' is no number",
    "1 qid:x 3:1": "the index 'qid' is no whole number from 0 on",
    "1 3:1 qid:4": "the index 'qid' is no whole number from 0 on",
    "1 q": "'q' is no feature: index:value is wanted",
    "1 qid": "'qid' is no feature: index:value is wanted",
    "1 2:\0 3:1": "the value '\\x00' is no number",
    "\0\1\2\3": "the label '\\x00\\x01\\x02\\x03' is no number",
    "1 " + "x" * 100: "'" + "x" * 39 + "…' is no feature: index:value is wanted",
}

BAD_WORDS = {
    "1 | x:1e999": "the value '1e999' is too large",
    "1 | x:": "the value is missing",
    "1 | x: 5": "the value is missing",
    "1 | x:1.5y": "the value '1.5y' is no number",
    "1 | x:1:2": "the value '1:2' is no number",
    "1 | x:-": "the value '-' is no number",
    "1 | x:red|b c": "the value 'red' is no number",
    "nan | x": "the label 'nan' is not finite",
    "spam | x": "the label 'spam' is no number",
    "1 x | y": "the weight 'x' is no number",
    "1 -2 | y": "the weight '-2' is negative",
    "1 inf | y": "the weight 'inf' is not finite",
    "1 1 0.5 | y": "the base '0.5' is not 0: rue has no initial predictions",
    "1 1 x | y": "the base 'x' is no number",
    "1 2 0 3 | a": "'3' is one word too many: label, weight and tag go before the first |",
    "1 2 0 3 4 5| a": "'4' is one word too many: label, weight and tag go before the first |",
    "1\t| a": "there is a tab before the first |, where VW wants spaces",
    "1 |a b\0c": "there is a control character, '\\x00'",
    "1 |a b\rc": "there is a control character, '\\r'",
    "1 \2| a": "there is a control character, '\\x02'",
    "1 3:4": "there is no | before the features",
    "1 |: a": "a namespace has a weight but no name",
    "1 |a: b": "the namespace's weight is missing",
    "1 |a:x b": "the namespace's weight 'x' is no number",
    "1 |a:1e200 b:1e200": "the value of 'b:1e200' is too large",
    "1 | a:1e308 a:1e308": "the values of one slot add up to more than a number can hold",
}


@pytest.mark.parametrize(("line", "why"), BAD.items(), ids=map(str, range(len(BAD))))
def test_bad_lines_of_svmlight(line, why):
    chunk = Svmlight().parse(f"1 1:1\n{line}\n-1 2:2\n".encode(), 10)
    assert [(bad.place, bad.line, bad.column, bad.why) for bad in chunk.bad] == [(1, 11, "", why)]
    assert [row[0] for row in rows(chunk)[0]] == [10, 12]
    assert chunk.block.X.indices.tolist() == [1, 2]


@pytest.mark.parametrize(("line", "why"), BAD_WORDS.items(), ids=map(str, range(len(BAD_WORDS))))
def test_bad_lines_of_vw(line, why):
    chunk = VW().parse(f"1 | 1\n{line}\n-1 | 2\n".encode(), 10)
    assert [(bad.place, bad.line, bad.column, bad.why) for bad in chunk.bad] == [(1, 11, "", why)]
    assert [row[0] for row in rows(chunk)[0]] == [10, 12]
    assert chunk.block.X.indices.tolist() == [1, 2]


def test_bytes_that_are_no_text():
    assert Svmlight().parse(b"\xff\xfe 1:1\n1 \xc3\x28:1\n", 1).bad[1].why == (
        "the index '\\\\xc3(' is no whole number from 0 on"
    )
    chunk = VW().parse(b"1 't\xff|\xfe a\xc3\x28:2\n", 1, Names())
    assert chunk.tags == ("t\\xff",)
    assert chunk.names[0][1] == "\\xfe^a\\xc3("
    assert chunk.block.X.indices[0] == murmur3(b"a\xc3\x28", murmur3(b"\xfe")) & 0xFFFFF
    for parser in (Svmlight(), VW()):
        junk = np.random.default_rng(8).bytes(300_000)
        chunk = parser.parse(junk, 1)
        assert len(chunk.bad) + len(chunk.block) > 1000


def test_a_very_long_line():
    words = " ".join(f"{i}:1.5" for i in range(10**6))
    assert len(words) > 10**7
    for parser, head in ((Svmlight(), "1 "), (VW(bits=32), "1 | ")):
        assert rows(parser.parse((head + words).encode(), 1))[0][0][4][-1] == (10**6 - 1, 1.5)
        for line in (head + "x" * 10**7, "x" * 10**7, head + words + " 5:nan", head + "1:" + "2" * 10**6):
            assert len(parser.parse((line + "\n" + head + "1:1").encode(), 1).block) in (1, 2)
    shuffled = " ".join(f"{i}:1" for i in np.random.default_rng(9).permutation(10**5))
    assert rows(Svmlight().parse(b"1 " + shuffled.encode(), 1))[0][0][4] == [(i, 1.0) for i in range(10**5)]


def test_text_ends_in_newlines():
    text = as_text(b"ab")
    assert [int(text.at(np.uint64(k))) for k in range(4)] == [97, 98, 10, 10]


@pytest.mark.soak
def test_mutated_lines_with_bounds_checked():
    """No crash, no hang, no read outside the buffer, and svmlight as a few lines of Python read it."""
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
    rounds, seconds, seed = many((300, 0, 0), (1250, 600, 1))
    command = [sys.executable, ROOT / "tests/fuzzing.py", str(rounds), str(seconds), str(seed)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=many(1200, 3000))
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) >= 4 * rounds
