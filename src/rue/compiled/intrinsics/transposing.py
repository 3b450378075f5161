"""Rows of a table turned into columns and back, eight at a time.

What is known of a feature stands side by side in one line of the cache, so that it is fetched at once; arithmetic wants
the same thing of many features side by side.
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
    """Eight vectors of eight as their columns: blocks of one, two and four change places, each in one instruction."""
    for apart in (1, 2, 4):
        low = [k if k & apart == 0 else k - apart + EIGHT for k in range(EIGHT)]
        high = [k + apart for k in low]
        turned = list(rows)
        for k in range(EIGHT):
            if k & apart == 0:
                for at, order in ((k, low), (k + apart, high)):
                    mask = ir.Constant(ir.VectorType(ir.IntType(32), EIGHT), order)
                    turned[at] = builder.shuffle_vector(rows[k], rows[k + apart], mask)
        rows = turned
    return rows


def _column(context: Any, builder: Any, signature: Any, args: Any, n: int, i: int, k: Any) -> Any:
    """A pointer to EIGHT numbers of column first + i, from the k-th on; the columns are the n-th argument."""
    shape = context.make_array(signature.args[n])(context, builder, args[n]).shape
    line = builder.mul(builder.add(args[n + 1], ir.Constant(args[n + 1].type, i)), builder.extract_value(shape, 1))
    return vector_pointer(builder, data_pointer(context, builder, signature, args, n), builder.add(line, k), EIGHT)


def _line(context: Any, builder: Any, signature: Any, args: Any, n: int, k: Any) -> Any:
    """A pointer to the row of the table, the n-th argument, that belongs to the k-th of the spots that follow it."""
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
            found = [_column(context, builder, signature, args, 2, i, k) for i in range(EIGHT)]
            rows = _turned(builder, [builder.load(pointer, align=8) for pointer in found])
            left = builder.sub(args[4], k)
            with builder.if_else(builder.icmp_signed(">=", left, ir.Constant(kind, EIGHT))) as (all_, some):
                with all_:
                    for i, row in enumerate(rows):
                        at = builder.add(k, ir.Constant(kind, i))
                        builder.store(row, _line(context, builder, signature, args, 0, at), align=8)
                with some:
                    for i, row in enumerate(rows):
                        builder.store(row, builder.gep(room, [ir.Constant(kind, i)]))
                    with cgutils.for_range(builder, left, intp=kind) as loop:
                        row = builder.load(builder.gep(room, [loop.index]))
                        at = builder.add(k, loop.index)
                        builder.store(row, _line(context, builder, signature, args, 0, at), align=8)
        return context.get_dummy_value()

    return numba.types.void(table, spots, columns, whole, whole), generate
