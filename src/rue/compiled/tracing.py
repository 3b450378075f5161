"""`@lanes`: a loop over arrays in vector instructions, written as arithmetic on one number.

Not compiled, such a function is given whole arrays and NumPy does the loop. To compile it, it is called once with
`_Traced` numbers, which write each operation done to them as an LLVM instruction on several numbers at once; and once
more for a single number, for the elements that are left over at the end.

Numba's own loops become vector instructions only behind a test whether any two of the arrays overlap, which took longer
than the loops themselves, of eight or sixteen rounds each.
"""

from __future__ import annotations

import functools
import inspect
import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import overload

from rue.compiled.backend import INLINED
from rue.compiled.llvm import LANES, broadcast, instructions_of, vector_pointer

__all__ = ["bits", "choose", "from_bits", "higher", "lanes", "lower", "root"]


class _Traced:
    """A number, or a vector of them, that writes the operations done to it as instructions."""

    __array_ufunc__ = None  # so that NumPy's numbers leave the arithmetic to it

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def operand(self, x: Any) -> Any:
        """The other side of an operation, in its own type: a traced number, or a constant in every lane."""
        if isinstance(x, _Traced):
            return x.value
        kind = self.value.type
        return ir.Constant(kind, [x] * kind.count) if isinstance(kind, ir.VectorType) else ir.Constant(kind, x)

    def apply(self, instruction: str, *values: Any) -> _Traced:
        return _Traced(self.builder, getattr(self.builder, instruction)(*values))

    def as_type(self, element: Any) -> _Traced:
        """The same bits as another type."""
        kind = self.value.type
        return self.apply(
            "bitcast", self.value, ir.VectorType(element, kind.count) if kind is not _lane_type(kind) else element
        )

    def below(self, x: Any) -> Any:
        return self.builder.fcmp_ordered("<", self.value, self.operand(x))

    def is_whole(self) -> bool:
        return isinstance(_lane_type(self.value.type), ir.IntType)

    def __neg__(self) -> _Traced:
        return self.apply("fneg", self.value)

    def __add__(self, x: Any) -> _Traced:
        return self.apply("add" if self.is_whole() else "fadd", self.value, self.operand(x))

    def __radd__(self, x: Any) -> _Traced:
        return self.apply("fadd", self.operand(x), self.value)

    def __sub__(self, x: Any) -> _Traced:
        return self.apply("sub" if self.is_whole() else "fsub", self.value, self.operand(x))

    def __rsub__(self, x: Any) -> _Traced:
        return self.apply("fsub", self.operand(x), self.value)

    def __mul__(self, x: Any) -> _Traced:
        return self.apply("fmul", self.value, self.operand(x))

    def __rmul__(self, x: Any) -> _Traced:
        return self.apply("fmul", self.operand(x), self.value)

    def __truediv__(self, x: Any) -> _Traced:
        return self.apply("fdiv", self.value, self.operand(x))

    def __rtruediv__(self, x: Any) -> _Traced:
        return self.apply("fdiv", self.operand(x), self.value)

    def __and__(self, x: Any) -> _Traced:
        return self.apply("and_", self.value, self.operand(x))

    def __lshift__(self, x: Any) -> _Traced:
        return self.apply("shl", self.value, self.operand(x))

    def __rshift__(self, x: Any) -> _Traced:
        return self.apply("ashr", self.value, self.operand(x))


def _lane_type(kind: Any) -> Any:
    """The type of one lane of a vector, or of a number."""
    return kind.element if isinstance(kind, ir.VectorType) else kind


# Functions of numbers, arrays and traced numbers, for what Python has no operator that all three share.


def choose(a: Any, b: Any, x: Any, y: Any) -> Any:
    """x where a < b, y elsewhere: without a branch."""
    if isinstance(a, _Traced):
        return a.apply("select", a.below(b), a.operand(x), a.operand(y))
    return np.where(a < b, x, y) if isinstance(a, np.ndarray) else x if a < b else y


def lower(a: Any, b: Any) -> Any:
    """The smaller one; b if they cannot be compared."""
    return choose(a, b, a, b)


def higher(a: Any, b: Any) -> Any:
    """The larger one; b if they cannot be compared."""
    if isinstance(a, _Traced):
        return a.apply("select", a.builder.fcmp_ordered(">", a.value, a.operand(b)), a.value, a.operand(b))
    return np.where(a > b, a, b) if isinstance(a, np.ndarray) else a if a > b else b


def root(x: Any) -> Any:
    """√x."""
    if isinstance(x, _Traced):
        kind = x.value.type
        name = "llvm.sqrt.f64" if kind is _lane_type(kind) else f"llvm.sqrt.v{kind.count}f64"
        return x.apply(
            "call", cgutils.get_or_insert_function(x.builder.module, ir.FunctionType(kind, [kind]), name), [x.value]
        )
    return np.sqrt(x)


def bits(x: Any) -> Any:
    """The 64 bits of a number as a whole number."""
    if isinstance(x, _Traced):
        return x.as_type(ir.IntType(64))
    return x.view(np.int64) if isinstance(x, np.ndarray) else struct.unpack("<q", struct.pack("<d", x))[0]


def from_bits(n: Any) -> Any:
    """The number that has these bits; more than 64 are cut off on the left."""
    if isinstance(n, _Traced):
        return n.as_type(ir.DoubleType())
    if isinstance(n, np.ndarray):
        return n.view(np.float64)
    return np.float64(struct.unpack("<d", struct.pack("<Q", n & 2**64 - 1))[0])


# The same where a kernel calls them with single numbers.


@overload(choose, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]  # Numba carries no types
def _choose(a: Any, b: Any, x: Any, y: Any) -> Any:
    return lambda a, b, x, y: x if a < b else y


@overload(lower, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _lower(a: Any, b: Any) -> Any:
    return lambda a, b: a if a < b else b


@overload(higher, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _higher(a: Any, b: Any) -> Any:
    return lambda a, b: a if a > b else b


@instructions_of(bits)
def _bits(_: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return numba.types.int64(numba.types.float64), generate


@instructions_of(from_bits)
def _from_bits(_: Any, n: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return numba.types.float64(numba.types.int64), generate


# Functions of arrays.


class _Loop(NamedTuple):
    """What `@lanes` makes of a function of numbers."""

    body: Callable[..., Any]
    results: int
    """How many arrays it writes."""
    fold: str
    width: int
    """How many elements it works on at once."""
    padded: bool


def lanes(results: int = 1, fold: str = "", abreast: int = 2 * LANES, whole: bool = False) -> Callable[[Any], Any]:
    """Make a function of numbers one of arrays: `f(first, many, *results, *arguments)`.

    It goes over the elements from `first` on, `many` of them, `abreast` at once. An argument is an array or one number
    for all; each result is written to an array. With `fold`, "sum" or "least", nothing is written and it returns that
    of the results, LANES at once. With `whole` it goes on to a whole number of `abreast`: the arrays must have room
    for numbers that mean nothing.

    >>> @lanes()
    ... def scaled(x, factor):
    ...     return factor * x
    >>> x, out = np.arange(5.0), np.zeros(5)
    >>> scaled(1, 3, out, x, 10.0)
    >>> out.tolist()
    [0.0, 10.0, 20.0, 30.0, 0.0]
    """

    def decorate(body: Callable[..., Any]) -> Any:
        @functools.wraps(body)
        def over_arrays(first: Any, many: Any, *args: Any) -> Any:
            part = slice(int(first), int(first) + (-(-int(many) // abreast) * abreast if whole else int(many)))
            given = [arg[part] if isinstance(arg, np.ndarray) else arg for arg in args]
            outs, inputs = (given[:results], given[results:]) if not fold else ([], given)
            computed = body(*inputs)
            if fold:
                return _folded(computed, fold)
            for out, result in zip(outs, computed if results > 1 else (computed,), strict=True):
                out[:] = result
            return None

        _compile(over_arrays, _Loop(body, 0 if fold else results, fold, LANES if fold else abreast, whole))
        return over_arrays

    return decorate


def _folded(values: Any, fold: str) -> Any:
    """The sum or the least, in the order of the compiled code: LANES running ones, joined in pairs, then the rest."""
    start, join = _FOLDS[fold]
    whole = values.size // LANES * LANES
    running = np.full(LANES, start)
    for k in range(0, whole, LANES):
        running = join(running, values[k : k + LANES])
    total = join(join(running[0], running[1]), join(running[2], running[3]))
    for value in values[whole:]:
        total = join(total, value)
    return np.float64(total)


_FOLDS: dict[str, tuple[float, Callable[[Any, Any], Any]]] = {
    "sum": (0.0, lambda total, value: total + value),
    "least": (math.inf, lambda least, value: lower(value, least)),
}


_COLUMN = numba.types.float64[::1]


def _compile(function: Any, loop: _Loop) -> None:
    """Register the instructions of a function of arrays; Numba wants functions with the very arguments: `exec`."""

    def typed(_: Any, *args: Any) -> Any:
        kinds = [arg if isinstance(arg, numba.types.Array) else numba.types.float64 for arg in args[2:]]
        if any(isinstance(kind, numba.types.Array) and kind.copy(readonly=False) != _COLUMN for kind in kinds):
            raise TypingError(f"{function.__name__} takes rows of floats that lie side by side, not {kinds}")
        whole, returned = numba.types.int64, numba.types.float64 if loop.fold else numba.types.void
        return returned(whole, whole, *kinds), functools.partial(_write_loops, loop)

    results = [f"out_{k}" for k in range(loop.results)]
    arguments = ", ".join(["first", "many", *results, *inspect.signature(loop.body).parameters])
    scope: dict[str, Any] = {"typed": typed}
    exec(f"def with_arguments(context, {arguments}):\n    return typed(context, {arguments})", scope)
    instructions_of(function)(scope["with_arguments"])


def _write_loops(loop: _Loop, context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Write a loop over `loop.width` elements at a time, then one over those that are left."""
    given = []
    for kind, arg in zip(signature.args[2:], args[2:], strict=True):
        is_array = isinstance(kind, numba.types.Array)
        given.append((is_array, context.make_array(kind)(context, builder, arg).data if is_array else arg))
    first, many = args[0], args[1]
    begin, totals = first, list[Any]()
    if loop.padded:
        many = builder.add(many, ir.Constant(many.type, loop.width - 1))
    for count in (loop.width,) if loop.padded else (loop.width, 1):
        end = builder.add(first, builder.and_(many, ir.Constant(many.type, -count)))
        total = _total(builder, loop.fold, count, totals)
        step = ir.Constant(many.type, count)
        with cgutils.for_range_slice(builder, begin, end, step, intp=many.type) as (k, _):
            read = [_read(builder, is_array, arg, k, count) for is_array, arg in given[loop.results :]]
            computed = loop.body(*(_Traced(builder, value) for value in read))
            if loop.fold:
                so_far = _Traced(builder, builder.load(total))
                builder.store(_FOLDS[loop.fold][1](so_far, computed).value, total)
            outs = given[: loop.results]
            for (_, data), result in zip(outs, computed if loop.results > 1 else (computed,), strict=False):
                builder.store(result.value, _pointer(builder, data, k, count), align=8)
        totals.append(total)
        begin = end
    return builder.load(totals[-1]) if loop.fold else context.get_dummy_value()


def _total(builder: Any, fold: str, count: int, before: list[Any]) -> Any:
    """The variable in which a fold is gathered: LANES of its start, then one number, those joined."""
    if not fold:
        return None
    start, join = _FOLDS[fold]
    if count > 1:
        kind = ir.VectorType(ir.DoubleType(), count)
        return cgutils.alloca_once_value(builder, ir.Constant(kind, [start] * count))
    vector, whole = builder.load(before[0]), ir.IntType(32)
    a, b, c, e = (_Traced(builder, builder.extract_element(vector, ir.Constant(whole, lane))) for lane in range(LANES))
    variable = cgutils.alloca_once(builder, ir.DoubleType())
    builder.store(join(join(a, b), join(c, e)).value, variable)
    return variable


def _pointer(builder: Any, data: Any, k: Any, count: int) -> Any:
    return builder.gep(data, [k]) if count == 1 else vector_pointer(builder, data, k, count)


def _read(builder: Any, is_array: bool, arg: Any, k: Any, count: int) -> Any:
    if is_array:
        return builder.load(_pointer(builder, arg, k, count), align=8)
    return arg if count == 1 else broadcast(builder, arg, count)
