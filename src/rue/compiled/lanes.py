"""Loops over members in vector instructions: plain arithmetic on numbers, made a function of arrays by `@lanes`.

Interpreted, such a function is given its arrays as they are. Compiled, it is run once, on numbers that write down what
is done to them as LLVM's instructions, for eight at once and, for what is left over, for one. Numba's own loops become
vector instructions only behind a question whether any two of the arrays overlap, which took longer than the loops, of
eight or sixteen rounds each.
"""

from __future__ import annotations

import functools
import inspect
import math
import struct
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

from rue.compiled.backend import INLINED
from rue.compiled.intrinsics import LANES, several, spread

__all__ = ["bits", "choose", "from_bits", "higher", "lanes", "lower", "root"]


class _Traced:
    """A number, or LANES of them, on its way through a function that is being written down."""

    __array_ufunc__ = None  # so that NumPy's numbers leave the arithmetic to it

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def other(self, x: Any) -> Any:
        """What stands beside it in an operation, in its own type."""
        if isinstance(x, _Traced):
            return x.value
        kind = self.value.type
        return ir.Constant(kind, [x] * kind.count) if isinstance(kind, ir.VectorType) else ir.Constant(kind, x)

    def does(self, instruction: str, *values: Any) -> _Traced:
        return _Traced(self.builder, getattr(self.builder, instruction)(*values))

    def as_type(self, element: Any) -> _Traced:
        """The same bits as another type."""
        kind = self.value.type
        return self.does(
            "bitcast", self.value, ir.VectorType(element, kind.count) if kind is not _one(kind) else element
        )

    def below(self, x: Any) -> Any:
        return self.builder.fcmp_ordered("<", self.value, self.other(x))

    def __neg__(self) -> _Traced:
        return self.does("fneg", self.value)

    def __add__(self, x: Any) -> _Traced:
        return self.does("add" if self.whole() else "fadd", self.value, self.other(x))

    def __radd__(self, x: Any) -> _Traced:
        return self.does("fadd", self.other(x), self.value)

    def __sub__(self, x: Any) -> _Traced:
        return self.does("sub" if self.whole() else "fsub", self.value, self.other(x))

    def __rsub__(self, x: Any) -> _Traced:
        return self.does("fsub", self.other(x), self.value)

    def __mul__(self, x: Any) -> _Traced:
        return self.does("fmul", self.value, self.other(x))

    def __rmul__(self, x: Any) -> _Traced:
        return self.does("fmul", self.other(x), self.value)

    def __truediv__(self, x: Any) -> _Traced:
        return self.does("fdiv", self.value, self.other(x))

    def __rtruediv__(self, x: Any) -> _Traced:
        return self.does("fdiv", self.other(x), self.value)

    def __and__(self, x: Any) -> _Traced:
        return self.does("and_", self.value, self.other(x))

    def __lshift__(self, x: Any) -> _Traced:
        return self.does("shl", self.value, self.other(x))

    def __rshift__(self, x: Any) -> _Traced:
        return self.does("ashr", self.value, self.other(x))

    def whole(self) -> bool:
        return isinstance(_one(self.value.type), ir.IntType)


def _one(kind: Any) -> Any:
    """The type of one lane."""
    return kind.element if isinstance(kind, ir.VectorType) else kind


# What numbers, arrays of them and traced ones have in common beside arithmetic.


def choose(a: Any, b: Any, x: Any, y: Any) -> Any:
    """x where a < b, y elsewhere."""
    if isinstance(a, _Traced):
        return a.does("select", a.below(b), a.other(x), a.other(y))
    return np.where(a < b, x, y) if isinstance(a, np.ndarray) else x if a < b else y


def lower(a: Any, b: Any) -> Any:
    """The smaller one; b if they cannot be compared."""
    return choose(a, b, a, b)


def higher(a: Any, b: Any) -> Any:
    """The larger one; b if they cannot be compared."""
    if isinstance(a, _Traced):
        return a.does("select", a.builder.fcmp_ordered(">", a.value, a.other(b)), a.value, a.other(b))
    return np.where(a > b, a, b) if isinstance(a, np.ndarray) else a if a > b else b


def root(x: Any) -> Any:
    """√x."""
    if isinstance(x, _Traced):
        kind = x.value.type
        name = "llvm.sqrt.f64" if kind is _one(kind) else f"llvm.sqrt.v{kind.count}f64"
        return x.does(
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


@overload(choose, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]  # Numba carries no types
def _choose(a: Any, b: Any, x: Any, y: Any) -> Any:
    return lambda a, b, x, y: x if a < b else y


@overload(lower, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _lower(a: Any, b: Any) -> Any:
    return lambda a, b: a if a < b else b


@overload(higher, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _higher(a: Any, b: Any) -> Any:
    return lambda a, b: a if a > b else b


@intrinsic  # type: ignore[untyped-decorator]
def _bits(_: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return numba.types.int64(numba.types.float64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _from_bits(_: Any, n: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return numba.types.float64(numba.types.int64), generate


@overload(bits, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _bits_of(x: Any) -> Any:
    return lambda x: _bits(x)


@overload(from_bits, strict=False, jit_options=INLINED)  # type: ignore[untyped-decorator]
def _float_of(n: Any) -> Any:
    return lambda n: _from_bits(n)


# Functions of arrays.


def lanes(results: int = 1, fold: str = "", abreast: int = 2 * LANES, whole: bool = False) -> Callable[[Any], Any]:
    """Make a function of numbers one of arrays: `made(first, many, *results, *arguments)`.

    It goes over the elements from `first` on, `many` of them, `abreast` at once. An argument is an array or one number
    for all; each result is written to an array. With `fold`, "sum" or "least", nothing is written and it returns that
    of the results, LANES at once. With `whole` it goes on to a whole number of `abreast`: the arrays must have room,
    for numbers that mean nothing.
    """

    def make(body: Callable[..., Any]) -> Any:
        @functools.wraps(body)
        def made(first: Any, many: Any, *args: Any) -> Any:
            part = slice(int(first), int(first) + (-(-int(many) // abreast) * abreast if whole else int(many)))
            given = [arg[part] if isinstance(arg, np.ndarray) else arg for arg in args]
            outs, inputs = (given[:results], given[results:]) if not fold else ([], given)
            made = body(*inputs)
            if fold:
                return _folded(made, fold)
            for out, result in zip(outs, made if results > 1 else (made,), strict=True):
                out[:] = result
            return None

        _compile(made, body, results, fold, LANES if fold else abreast, whole)
        return made

    return make


def _folded(values: Any, fold: str) -> Any:
    """The sum, in the order in which it is compiled, or the least."""
    start, join = _FOLDS[fold]
    whole = values.size // LANES * LANES
    total = np.full(LANES, start)
    for k in range(0, whole, LANES):
        total = join(total, values[k : k + LANES])
    found = join(join(total[0], total[1]), join(total[2], total[3]))
    for value in values[whole:]:
        found = join(found, value)
    return np.float64(found)


_FOLDS: dict[str, tuple[float, Callable[[Any, Any], Any]]] = {
    "sum": (0.0, lambda total, value: total + value),
    "least": (math.inf, lambda least, value: lower(value, least)),
}


_COLUMN = numba.types.float64[::1]


def _compile(made: Any, body: Any, results: int, fold: str, abreast: int, wide: bool) -> None:
    """Tell Numba how `made` is compiled; it wants functions with the very arguments, hence `exec`."""
    taken = list(inspect.signature(body).parameters)
    names = ["first", "many", *([] if fold else [f"out_{k}" for k in range(results)]), *taken]

    def typed(_: Any, *args: Any) -> Any:
        kinds = [arg if isinstance(arg, numba.types.Array) else numba.types.float64 for arg in args[2:]]
        if any(isinstance(kind, numba.types.Array) and kind.copy(readonly=False) != _COLUMN for kind in kinds):
            raise TypingError(f"{made.__name__} takes rows of floats that lie side by side, not {kinds}")
        whole, back = numba.types.int64, numba.types.float64 if fold else numba.types.void
        kept = 0 if fold else results
        return back(whole, whole, *kinds), functools.partial(_write_down, body, kept, fold, abreast, wide)

    listed = ", ".join(names)
    scope: dict[str, Any] = {"typed": typed}
    exec(f"def written(context, {listed}):\n    return typed(context, {listed})", scope)
    scope["called"] = intrinsic(scope["written"])
    exec(f"def compiled({listed}):\n    return lambda {listed}: called({listed})", scope)
    overload(made, strict=False, jit_options=INLINED)(scope["compiled"])


def _write_down(
    body: Any, results: int, fold: str, abreast: int, wide: bool, context: Any, builder: Any, signature: Any, args: Any
) -> Any:
    """The instructions: a loop over several at a time, then one over those that are left."""
    given = []
    for kind, arg in zip(signature.args[2:], args[2:], strict=True):
        array = isinstance(kind, numba.types.Array)
        given.append((array, context.make_array(kind)(context, builder, arg).data if array else arg))
    first, many = args[0], args[1]
    begin, totals = first, list[Any]()
    if wide:
        many = builder.add(many, ir.Constant(many.type, abreast - 1))
    for count in (abreast,) if wide else (abreast, 1):
        end = builder.add(first, builder.and_(many, ir.Constant(many.type, -count)))
        total = _total(builder, fold, count, totals)
        one = ir.Constant(many.type, count)
        with cgutils.for_range_slice(builder, begin, end, one, intp=many.type) as (k, _):
            read = [_read(builder, array, arg, k, count) for array, arg in given[results:]]
            found = body(*(_Traced(builder, value) for value in read))
            if fold:
                so_far = _Traced(builder, builder.load(total))
                builder.store(_FOLDS[fold][1](so_far, found).value, total)
            for (_, data), result in zip(given[:results], found if results > 1 else (found,), strict=False):
                builder.store(result.value, _pointer(builder, data, k, count), align=8)
        totals.append(total)
        begin = end
    return builder.load(totals[-1]) if fold else context.get_dummy_value()


def _total(builder: Any, fold: str, count: int, before: list[Any]) -> Any:
    """Where a fold is gathered: LANES of its start, then one number, what those have made."""
    if not fold:
        return None
    start, join = _FOLDS[fold]
    if count > 1:
        kind = ir.VectorType(ir.DoubleType(), count)
        return cgutils.alloca_once_value(builder, ir.Constant(kind, [start] * count))
    vector, whole = builder.load(before[0]), ir.IntType(32)
    a, b, c, e = (_Traced(builder, builder.extract_element(vector, ir.Constant(whole, lane))) for lane in range(LANES))
    place = cgutils.alloca_once(builder, ir.DoubleType())
    builder.store(join(join(a, b), join(c, e)).value, place)
    return place


def _pointer(builder: Any, data: Any, k: Any, count: int) -> Any:
    return builder.gep(data, [k]) if count == 1 else several(builder, data, k, count)


def _read(builder: Any, array: bool, arg: Any, k: Any, count: int) -> Any:
    if array:
        return builder.load(_pointer(builder, arg, k, count), align=8)
    return arg if count == 1 else spread(builder, arg, count)
