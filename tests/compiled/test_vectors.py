"""Vector instructions for text and short rows against loops of plain Python."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.utils import murmurhash3_32

from rue.compiled import kernel
from rue.compiled.intrinsics import BYTES, HASHED, QUAD, WORD_LANES, count_smaller, ends_among, hash_words
from rue.streams.formats import vw
from rue.streams.names import NOTHING_NEW
from rue.streams.text.csr import LONG, SHORT, open_csr
from rue.streams.text.hashing import Hasher
from rue.streams.text.interactions import open_interactions
from rue.streams.text.lines import count_lines, read_lines
from rue.streams.text.numbers import as_text


@kernel
def ends(data, out):
    for k in range(out.size):
        out[k] = ends_among(data, np.uint64(k))


@given(st.binary(min_size=BYTES, max_size=3 * BYTES))
@example(bytes(range(256)))
@example(b"x" * BYTES)
def test_the_ends_of_names(text):
    data = np.frombuffer(text, dtype=np.uint8)
    for run in (ends, ends.function):
        out = np.empty(len(text) - BYTES + 1, dtype=np.uint64)
        run(data, out)
        for k, bits in enumerate(out.tolist()):
            assert bits == sum((c <= 32 or c in b":|") << i for i, c in enumerate(text[k : k + BYTES]))


@kernel
def hashes(data, starts, stops, seeds, many, mask, slots):
    hash_words(data, starts, stops, seeds, np.uint64(0), many, mask, slots)


WORDS = st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 2**32 - 1), st.booleans()), max_size=3 * WORD_LANES)


@given(WORDS, st.sampled_from([2**32 - 1, 2**18 - 1]))
@example([(b"x" * n, n, False) for n in range(34)], 2**32 - 1)
@example([(b"x" * 16 * n, n, False) for n in range(8)], 2**32 - 1)
def test_hashes_of_words(words, mask):
    text = b"".join(word for word, _, _ in words) + bytes(QUAD)
    room = len(words) + WORD_LANES
    stops = np.zeros(room, dtype=np.uint64)
    stops[: len(words)] = np.cumsum([len(word) for word, _, _ in words], dtype=np.uint64)
    starts = np.zeros(room, dtype=np.uint64)
    starts[1 : len(words)] = stops[: max(len(words) - 1, 0)]
    seeds = np.zeros(room, dtype=np.uint64)
    seeds[: len(words)] = [seed | done << HASHED for _, seed, done in words]
    wanted = [seed if done else murmurhash3_32(word, seed, positive=True) & mask for word, seed, done in words]
    data = np.frombuffer(text, dtype=np.uint8)
    for run in (hashes, hashes.function):
        slots = np.empty(room, dtype=np.uint32)
        run(data, starts, stops, seeds, np.uint64(len(words)), np.uint64(mask), slots)
        assert slots[: len(words)].tolist() == wanted


@kernel
def ranks_of(slots, many, ranks):
    count_smaller(slots, many, ranks)


@given(
    st.lists(st.one_of(st.integers(0, 5), st.integers(2**31 - 2, 2**31 + 1), st.integers(0, 2**32 - 1)), max_size=60)
)
@example([2**32 - 1] * 19)
def test_ranks(keys):
    wanted = np.empty(len(keys), dtype=np.int64)
    wanted[np.argsort(keys, kind="stable")] = np.arange(len(keys))
    for run in (ranks_of, ranks_of.function):
        slots, ranks = (
            np.full(len(keys) + WORD_LANES, 2**32 - 1, dtype=np.uint32),
            np.zeros(len(keys) + WORD_LANES, np.uint32),
        )
        slots[: len(keys)] = keys
        run(slots, np.uint64(len(keys)), ranks)
        assert ranks[: len(keys)].tolist() == wanted.tolist()


@kernel
def arranged(csr, lo, hi):
    csr.state[0] = csr.arrange(lo, hi)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 23, 40, int(SHORT), int(SHORT) + 1, 500, LONG])
@pytest.mark.parametrize("most", [1, 50, 2**32])
@pytest.mark.parametrize("level", [False, True])
def test_rows_are_put_in_order(n, most, level):
    rng = np.random.default_rng(n)
    keys, values = rng.integers(0, most, n), np.ones(n) if level else rng.normal(size=n)
    lo, order = 3, np.argsort(keys, kind="stable")
    again = [i for i in range(1, n) if keys[order][i] == keys[order][i - 1]]
    for run in (arranged, arranged.function) if n < 200 else (arranged,):
        csr = open_csr(1, n + 10)
        csr.slots[:n], csr.values[lo : lo + n] = keys, values
        run(csr, np.uint64(lo), np.uint64(lo + n))
        assert csr.state[0] == lo + (again[-1] if again else n)
        assert csr.indices[lo : lo + n].tolist() == keys[order].tolist()
        assert csr.values[lo : lo + n].tolist() == values[order].tolist()


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for a page that must not be read")
def test_nothing_behind_the_text_is_read():
    page, libc = mmap.PAGESIZE, ctypes.CDLL(None, use_errno=True)
    room = mmap.mmap(-1, 3 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(room))
    guards = [ctypes.c_void_p(address), ctypes.c_void_p(address + 2 * page)]
    assert all(libc.mprotect(guard, page, 0) == 0 for guard in guards)
    line = b"1 |a user=u25892 hour=14:2 12:3 a_word_of_more_than_sixteen_letters |b sjtnhy pjytg " + b"x" * 90
    whole = np.frombuffer(room, dtype=np.uint8)
    for size in range(1, len(line)):
        for text in (line[:size], b"1 | a\n" + line[-size:], line[:size] + b"\n"):
            wanted = vw.VW(18).parse(text, 1)
            for begin in (page, 2 * page - len(text)):
                whole[begin : begin + len(text)] = np.frombuffer(text, dtype=np.uint8)
                lines = as_text(whole[begin : begin + len(text)])
                csr = open_csr(count_lines(text), len(text))
                new = np.empty(csr.labels.size), np.empty((csr.labels.size, 2), dtype=np.uint64), NOTHING_NEW
                words = vw.Words(lines, Hasher(lines), np.zeros(8, dtype=np.uint64))
                none = open_interactions(())
                csr, bad = read_lines(vw._read, (words, np.uint64(2**18 - 1), *new, none), csr, text, 1, vw._complaint)
                assert [row.why for row in bad] == [row.why for row in wanted.bad]
                assert csr.matrix(2**18).indices.tolist() == wanted.block.X.indices.tolist()
    assert all(libc.mprotect(guard, page, mmap.PROT_READ | mmap.PROT_WRITE) == 0 for guard in guards)
