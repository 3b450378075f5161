"""One instruction each: prefetching, the lowest bit, and numbers at an address."""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

from rue.compiled.llvm import data_pointer, instructions_of

__all__ = ["fetch", "lowest_bit", "number_at", "whole_at"]


def fetch(array: Any, k: Any) -> None:
    """Ask the processor to bring array[k] into its cache: nothing depends on it, and k may lie outside the array."""


@instructions_of(fetch)
def _fetch(_: Any, array: Any, k: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = data_pointer(context, builder, signature, args, 0)
        wanted = ir.FunctionType(ir.VoidType(), [byte, whole, whole, whole])
        instruction = cgutils.get_or_insert_function(builder.module, wanted, "llvm.prefetch.p0")
        reading, all_caches, of_data = (ir.Constant(whole, flag) for flag in (0, 3, 1))
        builder.call(instruction, [builder.bitcast(builder.gep(data, [args[1]]), byte), reading, all_caches, of_data])
        return context.get_dummy_value()

    return numba.types.void(array, k), generate


def lowest_bit(n: Any) -> Any:
    """The place of the lowest bit that is 1; 64 for 0.

    >>> int(lowest_bit(0b1000))
    3
    """
    n = int(n)
    return np.uint64((n & -n).bit_length() - 1 if n else 64)


@instructions_of(lowest_bit)
def _lowest_bit(_: Any, n: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return numba.types.uint64(numba.types.uint64), generate


# A table's columns are arrays of pyarrow's, each of its own type; addresses let one kernel take any number of them.


def number_at(address: Any, i: Any) -> Any:
    """The i-th float of an array of 64-bit ones that begins at an address."""
    return np.float64(ctypes.c_double.from_address(int(address) + 8 * int(i)).value)


def whole_at(address: Any, i: Any) -> Any:
    """The i-th whole number of an array of 64-bit ones that begins at an address."""
    return np.int64(ctypes.c_int64.from_address(int(address) + 8 * int(i)).value)


def _load(builder: Any, kind: Any, args: Any) -> Any:
    return builder.load(builder.gep(builder.inttoptr(args[0], kind.as_pointer()), [args[1]]), align=1)


@instructions_of(number_at)
def _number_at(_: Any, address: Any, i: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(builder, ir.DoubleType(), args)

    return numba.types.float64(numba.types.uint64, numba.types.int64), generate


@instructions_of(whole_at)
def _whole_at(_: Any, address: Any, i: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(builder, ir.IntType(64), args)

    return numba.types.int64(numba.types.uint64, numba.types.int64), generate
