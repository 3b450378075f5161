"""Writing LLVM instructions by hand: what the intrinsics and `@lanes` share.

`builder` is llvmlite's, which appends instructions to the code that Numba is generating; `context` is Numba's, which
knows how a tuple or an array is laid out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic, overload

from rue.compiled.backend import INLINED

__all__ = ["LANES", "broadcast", "data_pointer", "instructions_of", "vector_pointer"]

LANES = 4
"""How many floats the vector instructions of the learners work on at once: 256 bits, which AVX2 has."""


def instructions_of(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Decorate what writes the instructions that compiled code runs where it calls `function`.

    What is decorated is one of Numba's intrinsics: it is given the types of the arguments, and returns the signature
    and a function that writes the instructions. Not compiled, `function` itself runs.
    """

    def register(typed: Any) -> Any:
        # Numba wants functions with the very arguments, hence `exec`.
        arguments = ", ".join(list(inspect.signature(typed).parameters)[1:])
        scope: dict[str, Any] = {"instructions": intrinsic(typed)}
        exec(f"def compiled({arguments}):\n    return lambda {arguments}: instructions({arguments})", scope)
        overload(function, strict=False, jit_options=INLINED)(scope["compiled"])
        return typed

    return register


def data_pointer(context: Any, builder: Any, signature: Any, args: Any, n: int) -> Any:
    """A pointer to the elements of the n-th argument, an array."""
    return context.make_array(signature.args[n])(context, builder, args[n]).data


def vector_pointer(builder: Any, pointer: Any, k: Any, count: int) -> Any:
    """A pointer to a vector of `count` elements, from the k-th after `pointer` on."""
    return builder.bitcast(builder.gep(pointer, [k]), ir.VectorType(pointer.type.pointee, count).as_pointer())


def broadcast(builder: Any, x: Any, count: int) -> Any:
    """A vector with x in each of `count` lanes."""
    whole = ir.IntType(32)
    one = builder.insert_element(ir.Constant(ir.VectorType(x.type, count), ir.Undefined), x, ir.Constant(whole, 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(whole, count), [0] * count))
