"""With which options Numba compiles kernels and what they call: the plain back end, or the fast one.

The plain one is Numba's documented interface (and `_nrt`, see docs/decisions/0002). The fast one, `fast.py`, takes a
third of the time to compile by subclassing parts of Numba's compiler that may change in any release; it is used
only with the versions it was tested on. Both make code that computes the same bits. `RUE_COMPILER=plain` asks for the
plain one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numba

__all__ = ["BACK_END", "INLINED", "finish", "jit", "method_options"]

TESTED_WITH = ("0.68",)
"""The minor versions of Numba whose compiler the fast back end knows."""

_known = ".".join(numba.__version__.split(".")[:2]) in TESTED_WITH
BACK_END = "fast" if _known and os.environ.get("RUE_COMPILER") != "plain" else "plain"
FAST = BACK_END == "fast"

_PLAIN: dict[str, Any] = {"error_model": "numpy", "_nrt": False}

if FAST:
    from rue.compiled import fast as _fast

INLINED: dict[str, Any] = _fast.INLINED if FAST else {**_PLAIN, "forceinline": True}
"""The options for functions that are inlined where a kernel calls them."""


def method_options(called: bool, ours: bool) -> dict[str, Any]:
    """The options for a method that kernels call or, if not `called`, inline; `ours` for rue's own classes."""
    if FAST:
        return _fast.options(called, ours)
    return _PLAIN if called else INLINED


def jit(function: Callable[..., Any], parser: bool) -> Any:
    """Numba's dispatcher for a kernel; `parser` for kernels that go through text."""
    if FAST:
        compiler = _fast.ParserCompiler if parser else _fast.KernelCompiler
        return numba.njit(nogil=True, pipeline_class=compiler, **_fast.OPTIONS)(function)
    return numba.njit(nogil=True, **_PLAIN)(function)


def finish(compiled: Any) -> None:
    """What is left to do after Numba has compiled a kernel, or loaded it."""
    if FAST:
        _fast.set_environments(compiled)
