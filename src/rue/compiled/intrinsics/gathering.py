"""Sums over rows of a table and steps along them, in vector instructions.

Numba's loops become vector instructions only behind a test whether the arrays overlap, which took longer than the
loops themselves, of four to sixteen numbers each.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

from rue.compiled.llvm import LANES, broadcast, data_pointer, instructions_of, vector_pointer

__all__ = ["collect_lanes", "gather_rows", "move_lanes", "move_rows"]


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


@instructions_of(collect_lanes)
def _collect_lanes(_: Any, sums: Any, at: Any, table: Any, place: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        doubles = ir.VectorType(ir.DoubleType(), LANES)
        into = vector_pointer(builder, data_pointer(context, builder, signature, args, 0), args[1], LANES)
        table = data_pointer(context, builder, signature, args, 2)
        weights = builder.load(vector_pointer(builder, table, args[3], LANES), align=4)
        if signature.args[2].dtype != numba.types.float64:
            weights = builder.fpext(weights, doubles)
        product = builder.fmul(weights, broadcast(builder, args[4], LANES))
        builder.store(builder.fadd(builder.load(into, align=8), product), into, align=8)
        return context.get_dummy_value()

    return numba.types.void(sums, at, table, place, x), generate


@instructions_of(move_lanes)
def _move_lanes(_: Any, table: Any, place: Any, steps: Any, at: Any, f: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        doubles = ir.VectorType(ir.DoubleType(), LANES)
        into = vector_pointer(builder, data_pointer(context, builder, signature, args, 0), args[1], LANES)
        steps = data_pointer(context, builder, signature, args, 2)
        step = builder.load(vector_pointer(builder, steps, args[3], LANES), align=8)
        before, single = builder.load(into, align=4), signature.args[0].dtype != numba.types.float64
        if single:
            before = builder.fpext(before, doubles)
        after = builder.fsub(before, builder.fmul(step, broadcast(builder, args[4], LANES)))
        if single:
            after = builder.fptrunc(after, ir.VectorType(ir.FloatType(), LANES))
        builder.store(after, into, align=4)
        return context.get_dummy_value()

    return numba.types.void(table, place, steps, at, f), generate


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


@instructions_of(gather_rows)
def _gather_rows(_: Any, sums: Any, at: Any, table: Any, spots: Any, column: Any, x: Any, many: Any, r: Any) -> Any:
    whole = numba.types.int64

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        into, rows, factors = (data_pointer(context, builder, signature, args, n) for n in (0, 2, 5))
        for begin, count in _parts(signature.args[7]):
            own = vector_pointer(builder, into, builder.add(args[1], ir.Constant(args[1].type, begin)), count)
            total = cgutils.alloca_once_value(builder, builder.load(own, align=8))
            with cgutils.for_range(builder, args[6], intp=args[6].type) as loop:
                place = _place(context, builder, signature, args, 2, loop.index, begin)
                weights = builder.load(vector_pointer(builder, rows, place, count), align=4)
                if signature.args[2].dtype != numba.types.float64:
                    weights = builder.fpext(weights, ir.VectorType(ir.DoubleType(), count))
                factor = builder.load(builder.gep(factors, [loop.index]))
                product = builder.fmul(weights, broadcast(builder, factor, count))
                builder.store(builder.fadd(builder.load(total), product), total)
            builder.store(builder.load(total), own, align=8)
        return context.get_dummy_value()

    return numba.types.void(sums, whole, table, spots, whole, x, whole, r), generate


@instructions_of(move_rows)
def _move_rows(_: Any, table: Any, spots: Any, column: Any, steps: Any, at: Any, f: Any, many: Any, r: Any) -> Any:
    whole = numba.types.int64

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, own, factors = (data_pointer(context, builder, signature, args, n) for n in (0, 3, 5))
        single = signature.args[0].dtype != numba.types.float64
        for begin, count in _parts(signature.args[7]):
            begins = builder.add(args[4], ir.Constant(args[4].type, begin))
            step = builder.load(vector_pointer(builder, own, begins, count), align=8)
            with cgutils.for_range(builder, args[6], intp=args[6].type) as loop:
                place = _place(context, builder, signature, args, 0, loop.index, begin)
                into = vector_pointer(builder, rows, place, count)
                before = builder.load(into, align=4)
                if single:
                    before = builder.fpext(before, ir.VectorType(ir.DoubleType(), count))
                factor = builder.load(builder.gep(factors, [loop.index]))
                after = builder.fsub(before, builder.fmul(step, broadcast(builder, factor, count)))
                if single:
                    after = builder.fptrunc(after, ir.VectorType(ir.FloatType(), count))
                builder.store(after, into, align=4)
        return context.get_dummy_value()

    return numba.types.void(table, spots, whole, steps, whole, f, whole, r), generate


def _place(context: Any, builder: Any, signature: Any, args: Any, n: int, k: Any, begin: int) -> Any:
    """Where in the table, the n-th argument, what belongs to the k-th spot begins; spots and column follow it."""
    shape = context.make_array(signature.args[n])(context, builder, args[n]).shape
    spot = builder.load(builder.gep(data_pointer(context, builder, signature, args, n + 1), [k]))
    line = builder.mul(spot, builder.extract_value(shape, 1))
    return builder.add(line, builder.add(args[n + 2], ir.Constant(args[n + 2].type, begin)))
