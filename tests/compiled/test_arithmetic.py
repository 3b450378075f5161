"""exp and log of our own against the system's."""

from __future__ import annotations

import math
import os
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rue
from rue.compiled import arithmetic, kernel
from rue.compiled import lanes as traced
from rue.compiled.arithmetic import bits, choose, from_bits, higher, lower, root
from rue.compiled.intrinsics import (
    EIGHT,
    as_columns,
    as_rows,
    collect_lanes,
    gather_rows,
    lowest_bit,
    move_lanes,
    move_rows,
    number_at,
    whole_at,
)
from rue.memory import aligned, aligned_zeros


@kernel
def both(x, out):
    for i in range(x.size):
        out[0, i] = arithmetic.exp(x[i])
        out[1, i] = arithmetic.log(out[0, i])


def test_they_agree_with_the_system_to_two_units_in_the_last_place():
    x = np.concatenate([np.linspace(-690.0, 690.0, 20_011), np.linspace(-1e-3, 1e-3, 2_001)])
    out = np.empty((2, x.size))
    both(x, out)
    for mine, theirs in zip(out[0].tolist(), map(math.exp, x.tolist()), strict=True):
        assert abs(mine - theirs) <= 2 * math.ulp(theirs)
    for mine, theirs in zip(out[1].tolist(), map(math.log, out[0].tolist()), strict=True):
        assert abs(mine - theirs) <= 2 * math.ulp(theirs) + 1e-16


@kernel
def log1ps(x, out):
    for i in range(x.size):
        out[i] = arithmetic.log1p(x[i])


def test_log1p_agrees_with_the_system_to_two_units_in_the_last_place():
    x = np.concatenate([np.linspace(0.0, 1.0, 20_011), 10.0 ** np.linspace(-300, 0, 601), [0.41421356237309503]])
    out = np.empty(x.size)
    log1ps(x, out)
    for mine, theirs in zip(out.tolist(), map(math.log1p, x.tolist()), strict=True):
        assert abs(mine - theirs) <= 2 * math.ulp(theirs)


@kernel
def roughly(x, out):
    for i in range(x.size):
        out[i] = arithmetic.exp_roughly(x[i])


def test_the_rough_exponential_is_as_near_as_it_says():
    x = np.concatenate([np.linspace(-690.0, 690.0, 20_011), np.linspace(-1e-3, 1e-3, 2_001)])
    out = np.empty(x.size)
    roughly(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=2e-7)


@given(st.floats(-708.0, 709.0))
def test_compiled_and_interpreted_are_the_same_bits(x):
    out = np.empty((2, 1))
    both(np.array([x]), out)
    assert out[0, 0] == arithmetic.exp(np.float64(x))
    if 1e-300 < out[0, 0] < 1e300:
        assert out[1, 0] == arithmetic.log(out[0, 0])


@pytest.mark.parametrize(("x", "end"), [(-1e300, -708.0), (1e300, 709.0), (-math.inf, -708.0)])
def test_far_out_it_stays_at_the_ends(x, end):
    assert arithmetic.exp(x) == pytest.approx(math.exp(end), rel=1e-14)


@given(st.floats(allow_nan=False))
def test_bits_come_back(x):
    assert from_bits(bits(x)) == x


@kernel
def lanes(table, sums, steps):
    collect_lanes(sums, 1, table, 3, 0.7)
    move_lanes(table, 2, steps, 1, 0.3)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_lanes_are_four_numbers_at_a_time(kind):
    rng = np.random.default_rng(0)
    table, sums, steps = rng.normal(size=(2, 5)).astype(kind), rng.normal(size=6), rng.normal(size=6)
    wanted_sums, flat = sums.copy(), table.copy().reshape(-1)
    wanted_sums[1:5] += flat[3:7].astype(np.float64) * 0.7
    flat[2:6] = flat[2:6].astype(np.float64) - steps[1:5] * 0.3
    plain = table.copy(), sums.copy()
    lanes(table, sums, steps)
    lanes.function(*plain, steps)
    for found_table, found_sums in ((table, sums), plain):
        assert np.array_equal(found_sums, wanted_sums)
        assert np.array_equal(found_table.reshape(-1), flat)


@kernel
def lowest(n, out):
    for i in range(n.size):
        out[i] = lowest_bit(n[i])


def test_the_lowest_bit():
    n = np.array([1, 2, 3, 12, 2**63, 2**40 + 2**39], dtype=np.uint64)
    out = np.empty(n.size)
    lowest(n, out)
    assert out.tolist() == [0, 1, 0, 2, 63, 39] == [lowest_bit(k) for k in n.tolist()]


@pytest.mark.parametrize("shape", [(), (0,), (3,), (5, 8), (100_001, 3)])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_aligned_zeros_begin_with_a_line(shape, kind):
    zeros = aligned_zeros(shape, kind)
    assert zeros.shape == shape
    assert zeros.dtype == kind
    assert not zeros.any()
    assert zeros.flags.c_contiguous
    assert zeros.flags.writeable
    assert aligned(zeros)
    assert not zeros.size or zeros.ctypes.data % 64 == 0
    assert not aligned(np.zeros(2_001, dtype=np.uint8)[1:].repeat(4)[1:])


@kernel
def _read_at(address, i):
    return number_at(address, i), whole_at(address, i)


@pytest.mark.parametrize("shift", [0, 1, 5])
def test_numbers_at_an_address_even_one_that_no_array_would_have(shift):
    room = np.random.default_rng(0).integers(0, 255, 80, dtype=np.uint8)
    content = room[shift : shift + 72].tobytes()
    address = np.uint64(room.__array_interface__["data"][0] + shift)
    for i in range(9):
        number, whole = _read_at(address, i)
        assert whole == np.frombuffer(content, np.int64)[i]
        assert struct.pack("<d", number) == content[8 * i : 8 * i + 8]


@kernel
def rows_of(table, spots, x, sums, steps, many, r):
    gather_rows(sums, 2, table, spots, 4, x, many, r)
    move_rows(table, spots, 4, steps, 1, x, many, r)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("length", "many"), [(4, 0), (4, 3), (8, 7), (24, 5), (64, 2)])
def test_rows_are_gathered_and_moved(kind, length, many):
    rng = np.random.default_rng(length + many)
    table, spots = rng.normal(size=(9, 4 + length)).astype(kind), rng.permutation(9)[:many].astype(np.int64)
    x, sums, steps = rng.normal(size=9), rng.normal(size=2 + length), rng.normal(size=1 + length)
    wanted_sums, wanted = sums.copy(), table.copy()
    for k, j in enumerate(spots.tolist()):
        wanted_sums[2:] += table[j, 4:].astype(np.float64) * x[k]
        wanted[j, 4:] = wanted[j, 4:].astype(np.float64) - steps[1:] * x[k]
    plain = table.copy(), sums.copy()
    rows_of(table, spots, x, sums, steps, many, (0,) * length)
    rows_of.function(plain[0], spots, x, plain[1], steps, many, (0,) * length)
    for found_table, found_sums in ((table, sums), plain):
        assert np.array_equal(found_sums, wanted_sums)
        assert np.array_equal(found_table, wanted)


@kernel
def turned(columns, table, spots, many):
    as_columns(columns, 1, table, spots, many)


@kernel
def turned_back(columns, table, spots, many):
    as_rows(table, spots, columns, 1, many)


@pytest.mark.parametrize("many", [0, 1, 3, 7, 8, 9, 15, 16, 17, 24])
def test_rows_become_columns_and_columns_rows(many):
    rng = np.random.default_rng(many)
    spots = np.zeros(24, dtype=np.int64)
    spots[:many] = rng.permutation(30)[:many]
    for run, back in ((turned, turned_back), (turned.function, turned_back.function)):
        table, columns = rng.normal(size=(30, EIGHT)), np.full((1 + EIGHT, 24), 5.0)
        run(columns, table, spots, many)
        assert np.array_equal(columns[1:, :many], table[spots[:many]].T)
        assert (columns[0] == 5.0).all()
        columns[1:] = rng.normal(size=(EIGHT, 24))
        wanted = table.copy()
        wanted[spots[:many]] = columns[1:, :many].T
        back(columns, table, spots, many)
        assert np.array_equal(table, wanted)


@traced(results=2)
def quotient_and_root(x, y, scale):
    low, high = lower(x, y), higher(x, y)
    return scale * low / (1.0 + root(high * high)) - 3.0, choose(x, 0.0, -x, 2.0 - x)


@traced(fold="sum")
def squares(x, by):
    return x * x * by


@traced(2, abreast=4)
def four_at_once(x, y):
    return lower(x, y) * 0.5, higher(x, y) + x


@traced(fold="least")
def least(x):
    return x


@traced(results=2, whole=True)
def twice_and_less(x, by):
    return 2.0 * x, x - by


@kernel
def whole_lanes(many, x, a, b):
    twice_and_less(0, many, a, b, x, 3.0)


@pytest.mark.parametrize("many", [0, 1, 7, 8, 9, 16, 23])
def test_whole_lanes_go_on_to_the_next_eight(many):
    x, end = np.arange(32.0), -(-many // 8) * 8
    for run in (whole_lanes, whole_lanes.function):
        a, b = np.full(32, 100.0), np.full(32, 200.0)
        run(many, x, a, b)
        assert np.array_equal(a, np.where(x < end, 2.0 * x, 100.0))
        assert np.array_equal(b, np.where(x < end, x - 3.0, 200.0))


@kernel
def all_lanes(first, many, x, y, a, b, out):
    quotient_and_root(first, many, a, b, x, y, 0.5)
    out[0], out[1] = squares(first, many, x, 2.0), least(first, many, x)


@kernel
def narrow_lanes(first, many, x, y, a, b):
    four_at_once(first, many, a, b, x, y)


@given(st.integers(0, 5), st.integers(0, 45), st.integers(0, 1000))
def test_a_function_of_numbers_becomes_one_of_arrays(first, many, seed):
    """Against NumPy, compiled and interpreted to the same bits; what lies outside is left alone."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 60))
    part = slice(first, first + many)
    low, high, inside = np.minimum(x, y), np.maximum(x, y), np.arange(60) - first
    wanted = [0.5 * low / (1.0 + np.sqrt(high * high)) - 3.0, np.where(x < 0.0, -x, 2.0 - x)]
    found = []
    for run in (all_lanes, all_lanes.function):
        a, b, out = np.full(60, 7.0), np.full(60, 8.0), np.empty(2)
        run(first, many, x, y, a, b, out)
        for got, right, untouched in ((a, wanted[0], 7.0), (b, wanted[1], 8.0)):
            assert np.array_equal(got[part], right[part])
            assert (got[(inside < 0) | (inside >= many)] == untouched).all()
        assert out[0] == pytest.approx(float(2.0 * (x[part] ** 2).sum()), rel=1e-13, abs=1e-13)
        assert out[1] == (x[part].min() if many else math.inf)
        found.append(out)
    assert np.array_equal(*found)


@given(st.integers(0, 5), st.integers(0, 22), st.integers(0, 1000))
def test_fewer_lanes_make_no_difference(first, many, seed):
    x, y = np.random.default_rng(seed).normal(size=(2, 30))
    part = slice(first, first + many)
    for run in (narrow_lanes, narrow_lanes.function):
        a, b = np.full(30, 7.0), np.full(30, 7.0)
        run(first, many, x, y, a, b)
        wanted = np.full((2, 30), 7.0)
        wanted[:, part] = np.minimum(x, y)[part] * 0.5, np.maximum(x, y)[part] + x[part]
        assert np.array_equal([a, b], wanted)


def test_traced_arithmetic_is_that_of_numbers():
    """exp and log in lanes, in what is left over, and one by one: the same bits."""
    x = np.linspace(-700.0, 700.0, 1_003)
    lanes_, single = np.empty((2, x.size)), np.empty((2, x.size))
    both_in_lanes(x, lanes_)
    both(x, single)
    assert np.array_equal(lanes_, single)


@traced()
def exp_of(x):
    return arithmetic.exp(x)


@traced()
def log_of(x):
    return arithmetic.log(x)


@kernel
def both_in_lanes(x, out):
    exp_of(0, x.size, out[0], x)
    log_of(0, x.size, out[1], out[0])


@kernel
def strided(x, out):
    exp_of(0, out.size, out, x)


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="nothing is compiled")
def test_only_rows_of_floats_that_lie_side_by_side_are_taken():
    for x in (np.zeros(8)[::2], np.zeros(4, dtype=np.float32), np.zeros((2, 2))):
        with pytest.raises(rue.SettingsError, match="could not be compiled"):
            strided(x, np.zeros(4))
