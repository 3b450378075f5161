"""What Numba's compiler is spared while it works on a kernel: what nobody sees, and questions answered before."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.core import compiler, errors, types
from numba.core.registry import cpu_target

__all__ = ["glance", "undisturbed"]

_ALIKE = frozenset({float, bool, np.float64, np.int64, np.uint64})
"""Classes all of whose instances have one and the same type."""


def glance(arg: Any, typeof: Callable[[Any], Any]) -> Any:
    """What tells an argument of a kernel from those of other types, seen at once; by `typeof` where it cannot be."""
    if type(arg) is np.ndarray:
        flags = arg.flags
        return arg.dtype, arg.ndim, flags.c_contiguous, flags.f_contiguous, flags.aligned
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        return type(arg), *(glance(field, typeof) for field in arg)
    return type(arg) if type(arg) in _ALIKE else typeof(arg)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let the compiler do its work and no more; afterwards Numba is as it was."""
    with _no_search_for_garbage(), contextlib.ExitStack() as patches:
        for owner, name, shortcut in _shortcuts():
            patches.callback(_put, owner, name, vars(owner).get(name))
            setattr(owner, name, shortcut)
        yield


def _put(owner: Any, name: str, before: Any) -> None:
    if before is None:
        delattr(owner, name)
    else:
        setattr(owner, name, before)


@contextlib.contextmanager
def _no_search_for_garbage() -> Iterator[None]:
    """The compiler makes many objects, hardly any of them unreachable."""
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            gc.enable()


def _shortcuts() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    colours: Any = errors.termcolor()
    yield colours, "_markup", lambda message, *_: message  # of thousands of errors that are raised and caught
    yield types.Function, "get_call_type", _remembering(types.Function.get_call_type)
    yield compiler.Flags, "__eq__", _same_flags
    for context in (cpu_target.typing_context, cpu_target.target_context):
        yield context, "refresh", _refreshing(context)


_SIMPLE = (types.Number, types.Boolean, types.Array, types.Literal)


def _remembering(ask: Callable[..., Any]) -> Callable[..., Any]:
    """What a function makes of numbers and arrays, asked once: the operators have up to sixty templates each."""
    known: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(isinstance(arg, _SIMPLE) for arg in args):
            return ask(self, context, args, kws)
        question = self, args
        if question not in known:
            known[question] = ask(self, context, args, kws)
        return known[question]

    return get_call_type


def _same_flags(self: Any, other: Any) -> bool:
    """Whether two sets of options agree: those that were set, before all of them with their defaults."""
    return bool(self._values == other._values or self.values() == other.values())


def _refreshing(context: Any) -> Callable[[], None]:
    """Look through the registries for what is new only when they have grown."""
    refresh, seen = context.refresh, [-1]

    def size() -> int:
        kept = (each for registry in list(context._registries) for each in vars(registry).values())
        return sum(len(each) for each in kept if isinstance(each, list))

    def refresh_if_grown() -> None:
        if size() != seen[0]:
            refresh()
            seen[0] = size()

    return refresh_if_grown
