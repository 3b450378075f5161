"""Rows of a table turned into columns and back, eight at a time.

The statistics of a feature lie side by side in one cache line, so that one access to memory fetches them all; vector
arithmetic wants the same statistic of many features side by side. Transposing eight rows of eight between the two is
24 shuffles of registers.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

from rue.compiled.llvm import data_pointer, instructions_of, vector_pointer

__all__ = ["EIGHT", "as_columns", "as_rows"]


EIGHT = 8
"""How many rows of a table are turned into columns at once, and how long they are."""


def as_columns(columns: Any, first: Any, table: Any, spots: Any, many: Any) -> None:
    """columns[first + i, k] = table[spots[k], i] for k < many and i < EIGHT.

    Compiled, it goes on to a whole number of EIGHT: there must be room, and spots that lie inside the table.
    """
    for k in range(int(many)):
        for i in range(EIGHT):
            columns[int(first) + i, k] = table[spots[k], i]


def as_rows(table: Any, spots: Any, columns: Any, first: Any, many: Any) -> None:
    """table[spots[k], i] = columns[first + i, k] for k < many and i < EIGHT."""
    for k in range(int(many)):
        for i in range(EIGHT):
            table[spots[k], i] = columns[int(first) + i, k]


def _turned(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of eight vectors of eight: blocks of one, two and four change places, two shuffles for each pair."""
    for block in (1, 2, 4):
        low = [k if k & block == 0 else k - block + EIGHT for k in range(EIGHT)]
        high = [k + block for k in low]
        turned = list(rows)
        for k in range(EIGHT):
            if k & block == 0:
                for at, order in ((k, low), (k + block, high)):
                    mask = ir.Constant(ir.VectorType(ir.IntType(32), EIGHT), order)
                    turned[at] = builder.shuffle_vector(rows[k], rows[k + block], mask)
        rows = turned
    return rows


def _column(context: Any, builder: Any, signature: Any, args: Any, n: int, i: int, k: Any) -> Any:
    """A pointer to EIGHT numbers of column first + i, from the k-th on; the columns are the n-th argument."""
    shape = context.make_array(signature.args[n])(context, builder, args[n]).shape
    line = builder.mul(builder.add(args[n + 1], ir.Constant(args[n + 1].type, i)), builder.extract_value(shape, 1))
    return vector_pointer(builder, data_pointer(context, builder, signature, args, n), builder.add(line, k), EIGHT)


def _line(context: Any, builder: Any, signature: Any, args: Any, n: int, k: Any) -> Any:
    """A pointer to the row table[spots[k]]: the table is the n-th argument, the spots are the next one."""
    spot = builder.load(builder.gep(data_pointer(context, builder, signature, args, n + 1), [k]))
    place = builder.mul(spot, ir.Constant(spot.type, EIGHT))
    return vector_pointer(builder, data_pointer(context, builder, signature, args, n), place, EIGHT)


@instructions_of(as_columns)
def _as_columns(_: Any, columns: Any, first: Any, table: Any, spots: Any, many: Any) -> Any:
    whole = numba.types.int64

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        step = ir.Constant(args[4].type, EIGHT)
        with cgutils.for_range_slice(builder, ir.Constant(args[4].type, 0), args[4], step, intp=args[4].type) as (k, _):
            places = [builder.add(k, ir.Constant(k.type, i)) for i in range(EIGHT)]
            rows = [builder.load(_line(context, builder, signature, args, 2, at), align=8) for at in places]
            for i, column in enumerate(_turned(builder, rows)):
                builder.store(column, _column(context, builder, signature, args, 0, i, k), align=8)
        return context.get_dummy_value()

    return numba.types.void(columns, whole, table, spots, whole), generate


@instructions_of(as_rows)
def _as_rows(_: Any, table: Any, spots: Any, columns: Any, first: Any, many: Any) -> Any:
    whole = numba.types.int64

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, zero = args[4].type, ir.Constant(args[4].type, 0)
        room = cgutils.alloca_once(builder, ir.VectorType(ir.DoubleType(), EIGHT), EIGHT)
        with cgutils.for_range_slice(builder, zero, args[4], ir.Constant(kind, EIGHT), intp=kind) as (k, _):
            pointers = [_column(context, builder, signature, args, 2, i, k) for i in range(EIGHT)]
            rows = _turned(builder, [builder.load(pointer, align=8) for pointer in pointers])
            left = builder.sub(args[4], k)
            with builder.if_else(builder.icmp_signed(">=", left, ir.Constant(kind, EIGHT))) as (all_, some):
                with all_:
                    for i, row in enumerate(rows):
                        at = builder.add(k, ir.Constant(kind, i))
                        builder.store(row, _line(context, builder, signature, args, 0, at), align=8)
                with some:  # the last rows, fewer than EIGHT: by way of the stack, to be indexed one by one
                    for i, row in enumerate(rows):
                        builder.store(row, builder.gep(room, [ir.Constant(kind, i)]))
                    with cgutils.for_range(builder, left, intp=kind) as loop:
                        row = builder.load(builder.gep(room, [loop.index]))
                        at = builder.add(k, loop.index)
                        builder.store(row, _line(context, builder, signature, args, 0, at), align=8)
        return context.get_dummy_value()

    return numba.types.void(table, spots, columns, whole, whole), generate
