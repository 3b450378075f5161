"""What Numba has no word for: fetching ahead, numbers at an address, and four numbers at a time.

Each is a plain function, which runs where nothing is compiled, with an instruction or two for compiled code beside it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils
from numba.extending import intrinsic, overload

from rue.compiled.backend import INLINED

__all__ = [
    "LANES",
    "aligned",
    "aligned_zeros",
    "collect_lanes",
    "data_of",
    "fetch",
    "gather_rows",
    "lowest_bit",
    "move_lanes",
    "move_rows",
    "number_at",
    "several",
    "spread",
    "whole_at",
]


LINE = 64
"""How many bytes a line of the cache has."""


def aligned_zeros(shape: Any, dtype: Any = np.float64) -> Any:
    """An array of zeros that begins with a line of the cache: a row of 64 bytes is then one access to memory, not two.

    NumPy puts a large array 16 bytes behind the beginning of a page.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.zeros(size + LINE, dtype=np.uint8)
    begin = -room.__array_interface__["data"][0] % LINE
    return room[begin : begin + size].view(dtype).reshape(shape)


def aligned(array: Any) -> bool:
    """Whether an array begins with a line, or is so short that it does not matter."""
    return bool(array.nbytes < 4096 or array.__array_interface__["data"][0] % LINE == 0)


def fetch(array: Any, k: Any) -> None:
    """Ask the processor to bring array[k] into its cache: nothing depends on it, and k may lie outside the array."""


@intrinsic  # type: ignore[untyped-decorator]  # Numba carries no types
def _prefetch(_: Any, array: Any, k: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        wanted = ir.FunctionType(ir.VoidType(), [byte, whole, whole, whole])
        instruction = cgutils.get_or_insert_function(builder.module, wanted, "llvm.prefetch.p0")
        reading, keep, of_data = (ir.Constant(whole, flag) for flag in (0, 3, 1))
        builder.call(instruction, [builder.bitcast(builder.gep(data, [args[1]]), byte), reading, keep, of_data])
        return context.get_dummy_value()

    return numba.types.void(array, k), generate


@overload(fetch, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _fetch(array: Any, k: Any) -> Any:
    def implementation(array: Any, k: Any) -> Any:
        return _prefetch(array, k)

    return implementation


def lowest_bit(n: Any) -> Any:
    """The place of the lowest bit that is 1; 64 for 0."""
    n = int(n)
    return np.uint64((n & -n).bit_length() - 1 if n else 64)


@intrinsic  # type: ignore[untyped-decorator]
def _lowest_bit(_: Any, n: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return numba.types.uint64(numba.types.uint64), generate


@overload(lowest_bit, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _lowest_bit_of(n: Any) -> Any:
    return lambda n: _lowest_bit(n)


def number_at(address: Any, i: Any) -> Any:
    """The i-th float of an array of 64-bit ones that begins at an address."""
    return np.float64(ctypes.c_double.from_address(int(address) + 8 * int(i)).value)


def whole_at(address: Any, i: Any) -> Any:
    """The i-th whole number of an array of 64-bit ones that begins at an address."""
    return np.int64(ctypes.c_int64.from_address(int(address) + 8 * int(i)).value)


def _load(builder: Any, kind: Any, args: Any) -> Any:
    return builder.load(builder.gep(builder.inttoptr(args[0], kind.as_pointer()), [args[1]]), align=1)


@intrinsic  # type: ignore[untyped-decorator]
def _number_at(_: Any, address: Any, i: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(builder, ir.DoubleType(), args)

    return numba.types.float64(numba.types.uint64, numba.types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _whole_at(_: Any, address: Any, i: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(builder, ir.IntType(64), args)

    return numba.types.int64(numba.types.uint64, numba.types.int64), generate


@overload(number_at, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _number_there(address: Any, i: Any) -> Any:
    return lambda address, i: _number_at(address, i)


@overload(whole_at, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _whole_there(address: Any, i: Any) -> Any:
    return lambda address, i: _whole_at(address, i)


LANES = 4
"""How many numbers `collect_lanes` and `move_lanes` work on at once."""


def collect_lanes(sums: Any, at: Any, table: Any, place: Any, x: Any) -> None:
    """sums[at + i] += x·table[place + i] for i < LANES, `table` (contiguous, float32 or 64) counted as if it were flat.

    In vector instructions, which Numba's loops become only where it can prove that the arrays are not one.
    """
    flat = table.reshape(-1)
    for i in range(LANES):
        sums[int(at) + i] += np.float64(flat[int(place) + i]) * x


def move_lanes(table: Any, place: Any, steps: Any, at: Any, f: Any) -> None:
    """table[place + i] −= f·steps[at + i] for i < LANES, rounded to what the table holds."""
    flat = table.reshape(-1)
    for i in range(LANES):
        flat[int(place) + i] = np.float64(flat[int(place) + i]) - steps[int(at) + i] * f


def several(builder: Any, pointer: Any, k: Any, count: int) -> Any:
    """A pointer to so many numbers, from the k-th on."""
    return builder.bitcast(builder.gep(pointer, [k]), ir.VectorType(pointer.type.pointee, count).as_pointer())


def spread(builder: Any, x: Any, count: int) -> Any:
    """A vector with x in each of so many lanes."""
    whole = ir.IntType(32)
    one = builder.insert_element(ir.Constant(ir.VectorType(x.type, count), ir.Undefined), x, ir.Constant(whole, 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(whole, count), [0] * count))


@intrinsic  # type: ignore[untyped-decorator]
def _collect_lanes(_: Any, sums: Any, at: Any, table: Any, place: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        doubles = ir.VectorType(ir.DoubleType(), LANES)
        into = several(builder, data_of(context, builder, signature, args, 0), args[1], LANES)
        table = data_of(context, builder, signature, args, 2)
        weights = builder.load(several(builder, table, args[3], LANES), align=4)
        if signature.args[2].dtype != numba.types.float64:
            weights = builder.fpext(weights, doubles)
        product = builder.fmul(weights, spread(builder, args[4], LANES))
        builder.store(builder.fadd(builder.load(into, align=8), product), into, align=8)
        return context.get_dummy_value()

    return numba.types.void(sums, at, table, place, x), generate


@intrinsic  # type: ignore[untyped-decorator]
def _move_lanes(_: Any, table: Any, place: Any, steps: Any, at: Any, f: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        doubles = ir.VectorType(ir.DoubleType(), LANES)
        into = several(builder, data_of(context, builder, signature, args, 0), args[1], LANES)
        steps = data_of(context, builder, signature, args, 2)
        step = builder.load(several(builder, steps, args[3], LANES), align=8)
        before, single = builder.load(into, align=4), signature.args[0].dtype != numba.types.float64
        if single:
            before = builder.fpext(before, doubles)
        after = builder.fsub(before, builder.fmul(step, spread(builder, args[4], LANES)))
        if single:
            after = builder.fptrunc(after, ir.VectorType(ir.FloatType(), LANES))
        builder.store(after, into, align=4)
        return context.get_dummy_value()

    return numba.types.void(table, place, steps, at, f), generate


@overload(collect_lanes, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _collecting(sums: Any, at: Any, table: Any, place: Any, x: Any) -> Any:
    return lambda sums, at, table, place, x: _collect_lanes(sums, at, table, place, x)


@overload(move_lanes, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _moving(table: Any, place: Any, steps: Any, at: Any, f: Any) -> Any:
    return lambda table, place, steps, at, f: _move_lanes(table, place, steps, at, f)


def gather_rows(sums: Any, at: Any, table: Any, spots: Any, column: Any, x: Any, many: Any, r: Any) -> None:
    """sums[at + i] += Σ x[k]·table[spots[k], column + i] over k < many, for i < len(r).

    The sums stay in registers, in the order of k; `r` is a tuple, so that their number is known.
    """
    for k in range(int(many)):
        for i in range(len(r)):
            sums[int(at) + i] += np.float64(table[spots[k], int(column) + i]) * x[k]


def move_rows(table: Any, spots: Any, column: Any, steps: Any, at: Any, f: Any, many: Any, r: Any) -> None:
    """table[spots[k], column + i] −= f[k]·steps[at + i] for k < many and i < len(r), rounded to the table's numbers."""
    for k in range(int(many)):
        for i in range(len(r)):
            place = spots[k], int(column) + i
            table[place] = np.float64(table[place]) - steps[int(at) + i] * f[k]


_MOST = 4 * LANES
"""How many numbers are kept in registers."""


def _parts(r: Any) -> list[tuple[int, int]]:
    """Where the parts of a row begin that fit into registers, and how long they are."""
    return [(begin, min(_MOST, len(r) - begin)) for begin in range(0, len(r), _MOST)]


@intrinsic  # type: ignore[untyped-decorator]
def _gather_rows(_: Any, sums: Any, at: Any, table: Any, spots: Any, column: Any, x: Any, many: Any, r: Any) -> Any:
    whole = numba.types.int64

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        into, rows, factors = (data_of(context, builder, signature, args, n) for n in (0, 2, 5))
        for begin, count in _parts(signature.args[7]):
            own = several(builder, into, builder.add(args[1], ir.Constant(args[1].type, begin)), count)
            total = cgutils.alloca_once_value(builder, builder.load(own, align=8))
            with cgutils.for_range(builder, args[6], intp=args[6].type) as loop:
                place = _place(context, builder, signature, args, 2, loop.index, begin)
                weights = builder.load(several(builder, rows, place, count), align=4)
                if signature.args[2].dtype != numba.types.float64:
                    weights = builder.fpext(weights, ir.VectorType(ir.DoubleType(), count))
                factor = builder.load(builder.gep(factors, [loop.index]))
                product = builder.fmul(weights, spread(builder, factor, count))
                builder.store(builder.fadd(builder.load(total), product), total)
            builder.store(builder.load(total), own, align=8)
        return context.get_dummy_value()

    return numba.types.void(sums, whole, table, spots, whole, x, whole, r), generate


@intrinsic  # type: ignore[untyped-decorator]
def _move_rows(_: Any, table: Any, spots: Any, column: Any, steps: Any, at: Any, f: Any, many: Any, r: Any) -> Any:
    whole = numba.types.int64

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, own, factors = (data_of(context, builder, signature, args, n) for n in (0, 3, 5))
        single = signature.args[0].dtype != numba.types.float64
        for begin, count in _parts(signature.args[7]):
            begins = builder.add(args[4], ir.Constant(args[4].type, begin))
            step = builder.load(several(builder, own, begins, count), align=8)
            with cgutils.for_range(builder, args[6], intp=args[6].type) as loop:
                place = _place(context, builder, signature, args, 0, loop.index, begin)
                into = several(builder, rows, place, count)
                before = builder.load(into, align=4)
                if single:
                    before = builder.fpext(before, ir.VectorType(ir.DoubleType(), count))
                factor = builder.load(builder.gep(factors, [loop.index]))
                after = builder.fsub(before, builder.fmul(step, spread(builder, factor, count)))
                if single:
                    after = builder.fptrunc(after, ir.VectorType(ir.FloatType(), count))
                builder.store(after, into, align=4)
        return context.get_dummy_value()

    return numba.types.void(table, spots, whole, steps, whole, f, whole, r), generate


def data_of(context: Any, builder: Any, signature: Any, args: Any, n: int) -> Any:
    """A pointer to what the n-th argument, an array, holds."""
    return context.make_array(signature.args[n])(context, builder, args[n]).data


def _place(context: Any, builder: Any, signature: Any, args: Any, n: int, k: Any, begin: int) -> Any:
    """Where in the table, the n-th argument, what belongs to the k-th spot begins; spots and column follow it."""
    shape = context.make_array(signature.args[n])(context, builder, args[n]).shape
    spot = builder.load(builder.gep(data_of(context, builder, signature, args, n + 1), [k]))
    line = builder.mul(spot, builder.extract_value(shape, 1))
    return builder.add(line, builder.add(args[n + 2], ir.Constant(args[n + 2].type, begin)))


@overload(gather_rows, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _gathering(sums: Any, at: Any, table: Any, spots: Any, column: Any, x: Any, many: Any, r: Any) -> Any:
    return lambda sums, at, table, spots, column, x, many, r: _gather_rows(sums, at, table, spots, column, x, many, r)


@overload(move_rows, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _moving_rows(table: Any, spots: Any, column: Any, steps: Any, at: Any, f: Any, many: Any, r: Any) -> Any:
    return lambda table, spots, column, steps, at, f, many, r: _move_rows(table, spots, column, steps, at, f, many, r)
