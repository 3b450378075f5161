"""The two back ends: the options with which Numba compiles kernels and what they call.

The *plain* back end uses Numba's documented options (and `_nrt`, see docs/decisions/0002) and works with every Numba
that rue can be installed with. The *fast* one (`rue.compiled.fast`) compiles in a third of the time by subclassing
parts of Numba's compiler that may change in any release, so it is used only with the versions it was tested on. Their
code computes the same. `RUE_COMPILER=plain` asks for the plain one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numba

__all__ = ["BACK_END", "FAST", "INLINED", "finish", "jit", "method_options"]

TESTED_WITH = ("0.68",)
"""The minor versions of Numba whose compiler the fast back end knows."""

_VERSION = ".".join(numba.__version__.split(".")[:2])
FAST = _VERSION in TESTED_WITH and os.environ.get("RUE_COMPILER") != "plain"
"""Whether the fast back end is used."""
BACK_END = "fast" if FAST else "plain"
"""Its name, which is part of the names of stored kernels: the two do not load each other's code."""

# NumPy's error model divides by zero without a test and an exception, which is what arithmetic on floats means here.
_PLAIN: dict[str, Any] = {"error_model": "numpy", "_nrt": False}

if FAST:
    from rue.compiled import fast as _fast

INLINED: dict[str, Any] = _fast.OURS[False] if FAST else {**_PLAIN, "forceinline": True}
"""The options for functions that are inlined where a kernel calls them."""


def method_options(noinline: bool, foreign: bool) -> dict[str, Any]:
    """The options for a method; `foreign` for classes from outside the package."""
    if FAST:
        return (_fast.FOREIGN if foreign else _fast.OURS)[noinline]
    return _PLAIN if noinline else INLINED


def jit(function: Callable[..., Any], parser: bool) -> Any:
    """Numba's dispatcher for a kernel; `parser` for kernels that go through text."""
    if FAST:
        compiler = _fast.ParserCompiler if parser else _fast.KernelCompiler
        return numba.njit(nogil=True, pipeline_class=compiler, **_fast.OPTIONS)(function)
    return numba.njit(nogil=True, **_PLAIN)(function)


def finish(compiled: Any) -> None:
    """What is left to do after Numba has compiled a kernel or loaded it from disk."""
    if FAST:
        _fast.set_environments(compiled)
