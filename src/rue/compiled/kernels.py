"""Kernels: plain functions compiled by Numba, and how the methods of their arguments are compiled with them.

A kernel is a plain function that is given parameters, named tuples, arrays and numbers, and calls their methods. For
these, overloads (one per `_MethodKind`) hand Numba the class's own method to compile, so that a user's loss is compiled
into the same loop as ours (the measurements are in docs/decisions/0002). With `NUMBA_DISABLE_JIT=1` nothing is
compiled and the very same functions run on the objects themselves.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numba.core import caching, config
from numba.core.errors import NumbaError
from numba.core.typing import templates
from numba.extending import overload, overload_method

from rue.compiled.backend import INLINED, finish, jit, method_options
from rue.compiled.cache import DiskCache
from rue.compiled.notices import long_compilation
from rue.compiled.parameters import OWNERS, foreign, from_twin, is_foreign_class, is_noinline, is_parameter, twin
from rue.errors import SettingsError

__all__ = ["Kernel", "Strided", "inline", "kernel", "parser"]

F = TypeVar("F", bound=Callable[..., Any])


class _MethodKind(NamedTuple):
    """There is one overload per (name, arity, noinline, user-defined), shared by the methods of all classes."""

    name: str
    arguments: int
    noinline: bool
    foreign: bool


_overloads: dict[_MethodKind, str] = {}
"""The attribute under which Numba finds the methods of a kind."""


@templates.infer_getattr
class _Methods(templates.AttributeTemplate):  # type: ignore[misc]  # Numba carries no types
    """Lets kernels call the methods of our named tuples; other named tuples are left to Numba."""

    key = numba.types.BaseNamedTuple

    def resolve(self, typ: Any, attr: str) -> Any:
        owner = OWNERS.get(getattr(typ, "instance_class", None))  # type: ignore[arg-type]
        method = getattr(owner, attr, None)
        if owner is None or attr in typ.fields or attr.startswith("_") or not isinstance(method, FunctionType):
            return None
        kind = _MethodKind(attr, method.__code__.co_argcount, is_noinline(owner, attr), is_foreign_class(owner))
        if kind not in _overloads:
            _overloads[kind] = _register(kind, method)
            self.context.refresh()
        return self.context.resolve_getattr(typ, _overloads[kind])


def _register(kind: _MethodKind, method: FunctionType) -> str:
    """Register an overload for all methods of a kind; returns the attribute that it answers to.

    Numba wants a function with the method's own arguments that returns the function to compile, hence `exec`.
    """
    arguments = method.__code__.co_varnames[: kind.arguments]
    scope: dict[str, Any] = {"owners": OWNERS}
    listed = ", ".join(arguments)
    exec(f"def method_of({listed}):\n    return owners[{arguments[0]}.instance_class].{kind.name}", scope)
    attribute = "rue." + "/".join(map(str, kind))  # a dot makes the name unreachable by attribute syntax
    options = method_options(kind.noinline, kind.foreign)
    overload_method(numba.types.BaseNamedTuple, attribute, strict=False, jit_options=options)(scope["method_of"])
    return attribute


def inline(function: F) -> F:
    """A plain function that kernels may call, and that is inlined where they do."""
    scope: dict[str, Any] = {"function": function}
    exec(f"def overload_impl({', '.join(inspect.signature(function).parameters)}):\n    return function", scope)
    overload(function, strict=False, jit_options=INLINED)(scope["overload_impl"])
    return function


def kernel(function: Callable[..., Any]) -> Kernel:
    """Make a kernel of a plain function; nothing is compiled before its first call.

    >>> import numpy as np
    >>> @kernel
    ... def total(v):
    ...     sum = 0.0
    ...     for x in v:
    ...         sum += x
    ...     return sum
    >>> float(total(np.arange(4.0)))
    6.0
    """
    return Kernel(function)


def parser(function: Callable[..., Any]) -> Kernel:
    """A kernel that goes through text: the fast back end optimises it twice, which makes parsers a tenth faster."""
    return Kernel(function, parser=True)


_compiling = threading.RLock()
"""Held while a kernel is compiled: files are parsed in several threads."""


class Kernel:
    """A function compiled once for each combination of argument types, and stored on disk between processes."""

    def __init__(self, function: Callable[..., Any], parser: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.function, self.parser = function, parser
        self.entries: dict[Any, Callable[..., Any]] = {}

    @functools.cached_property
    def dispatchers(self) -> tuple[Any, Any]:
        """Two of Numba's dispatchers: one whose code is stored on disk, and one for classes from outside the package.

        They are created when first needed, since a process calls few of the kernels.
        """
        if config.DISABLE_JIT:
            return None, None
        return jit(self.function, self.parser), jit(self.function, self.parser)

    def __call__(self, *args: Any) -> Any:
        twins = [twin(arg) for arg in args]
        types = tuple(map(_quick_type, twins))
        if (entry := self.entries.get(types)) is None:
            entry = self.entries[types] = self.resolve(*args)
        return entry(*twins)

    def resolve(self, *args: Any) -> Callable[..., Any]:
        """The compiled code for arguments of these types, to be called with `twin`s of such arguments.

        It is the machine code's own entry point: Numba's dispatcher, which looks at every field of every argument,
        takes 1 to 4 µs a call. Nothing checks the types after this; the caller must pass the same ones.
        """
        cached, uncached = self.dispatchers
        if cached is None:
            return self.interpreted
        dispatcher = uncached if any(map(foreign, args)) else cached
        if dispatcher is cached and isinstance(dispatcher._cache, caching.NullCache):
            dispatcher._cache = DiskCache(self.function)
        signature = tuple(_typeof(twin(arg)) for arg in args)
        if signature not in dispatcher.overloads:
            with _compiling, long_compilation():
                try:
                    dispatcher.compile(signature)
                    finish(dispatcher.overloads[signature])
                except (NumbaError, TypeError) as error:
                    raise SettingsError(_explain(error, args)) from error
        entry: Callable[..., Any] = dispatcher.overloads[signature].entry_point
        return entry

    def compiled(self) -> int:
        """How many combinations of types this process has compiled, those read from disk not counted."""
        cached, uncached = self.dispatchers
        if cached is None:
            return 0
        loaded: int = sum(cached.stats.cache_hits.values())
        return len(cached.overloads) + len(uncached.overloads) - loaded

    def interpreted(self, *args: Any) -> Any:
        """The pure-Python fallback; takes twins too."""
        with np.errstate(all="ignore"):
            return self.function(*map(from_twin, args))


_ALIKE = frozenset({float, bool, np.float64, np.int64, np.uint64})
"""Classes all of whose instances have the same Numba type."""


def _quick_type(arg: Any) -> Any:
    """A cheap cache key for the Numba type: ten times as fast as asking Numba."""
    if type(arg) is np.ndarray:
        flags = arg.flags
        return arg.dtype, arg.ndim, flags.c_contiguous, flags.f_contiguous, flags.aligned
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        return type(arg), *map(_quick_type, arg)
    return type(arg) if type(arg) in _ALIKE else _typeof(arg)


class Strided:
    """Tells `Kernel.resolve` to compile for arrays of any stride, not only for ones laid out like this array."""

    def __init__(self, array: Any) -> None:
        self.array = array


def _typeof(arg: Any) -> Any:
    """Numba's type, with read-only arrays typed as writable, so that both kinds share one compiled version.

    Nothing checks this afterwards: callers must not pass a read-only array where the kernel writes.
    """
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        return numba.types.NamedTuple([_typeof(field) for field in arg], type(arg))
    if isinstance(arg, Strided):
        return _typeof(arg.array).copy(layout="A")
    if type(arg) is tuple:  # so that what is in a tuple has the types that it has elsewhere, and the same code
        return numba.types.BaseTuple.from_types([_typeof(element) for element in arg])
    kind = numba.typeof(arg)
    if isinstance(kind, numba.types.Array) and not kind.mutable:
        return kind.copy(readonly=False)
    return kind


# The lines of Numba's long messages that say what it did not understand.
_CAUSE = re.compile(
    r"^.*?((No implementation of function|Unknown attribute|Untyped global|Use of unsupported|Unsupported|Cannot"
    r"|Invalid|NameError|NRT required|Unable to|No conversion|Failed to|name ').*)$"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _explain(error: Exception, args: tuple[Any, ...]) -> str:
    """One sentence of what Numba says: which of the user's classes it cannot compile, and why."""

    def classes(obj: Any) -> list[str]:
        if not is_parameter(obj):
            return []
        inner = [name for field in dataclasses.fields(obj) for name in classes(getattr(obj, field.name))]
        return ([type(obj).__name__] if is_foreign_class(type(obj)) else []) + inner

    culprits = ", ".join(dict.fromkeys(name for arg in args for name in classes(arg))) or "rue itself"
    lines = [line.strip() for line in _COLOUR.sub("", str(error)).splitlines() if _CAUSE.search(line)]
    detail = _CAUSE.sub(r"\1", lines[-1]) if lines else "see the error above this one"
    return (
        f"the methods of {culprits} could not be compiled: {detail[:200]} "
        "(use plain arithmetic on floats, math functions and loops; no allocation, no Python objects)."
    )
