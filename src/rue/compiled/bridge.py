"""Parameters, their methods, and kernels: how plain classes and functions reach Numba.

A loss, domain, step or algorithm is a *parameter*: a frozen dataclass with plain Python methods. A *kernel* is a
plain function that calls those methods. Before a kernel runs, each parameter is turned into a named tuple of its
fields (its `Twin`), and one generic overload hands Numba the class's own method to compile. With
`NUMBA_DISABLE_JIT=1` nothing is compiled and the very same functions run on the dataclasses themselves.

Compiled methods may read their fields, do arithmetic, call `math`, loop over arrays and call each other; they may not
allocate, because kernels are compiled without Numba's reference counting (it cost a factor 2.7, see
docs/decisions/0002).
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import inspect
import math
import operator
import re
import threading
import typing
from collections.abc import Callable
from types import FunctionType
from typing import Annotated, Any, TypeVar, dataclass_transform

import numba
import numpy as np
from numba.core import caching, config
from numba.core.errors import NumbaError
from numba.core.typing import templates
from numba.extending import overload, overload_method

from rue.compiled.backend import INLINED, finish, jit, method_options
from rue.compiled.cache import DiskCache
from rue.compiled.notices import long_compilation
from rue.errors import SettingsError

__all__ = [
    "Kernel",
    "Strided",
    "Vector",
    "foreign",
    "inline",
    "kernel",
    "parameter",
    "parser",
    "plain",
    "require_parameter",
    "twin",
    "values",
]

Vector = Annotated[Any, "vector"]
"""A field that holds numbers: whatever is given becomes a read-only float64 array."""

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])
# Methods are inlined, because a call hands over every array of every argument (30 ns, as much as a short row takes);
# not these, which go over the whole point or are rare: a call costs nothing there, inlining doubles the compiling.
_CALLED = frozenset({"onto", "approach", "lowest", "sweep", "farthest", "multiply_out", "forget", "settle"})
_CALLED |= {"nearest", "exactly", "times", "ending", "arrange", "teach", "tell"}
_CALLED |= {"multiply", "turn", "choose_steps", "claim", "retire_some", "retire", "mix_loss", "close", "take_down"}
_CALLED |= {"last_ends", "hash_one", "plain", "hash_row", "rank_many"}


# Parameters: coerced at the door, so that Ball(10) and Ball(10.0) are one type and compile once.


@dataclass_transform(frozen_default=True)
def parameter(cls: type[C]) -> type[C]:
    """A frozen dataclass whose fields are coerced and whose methods kernels may call.

    Fields are coerced to what they are annotated with: `float`, `int`, `bool`, or `Vector`. Two parameters are equal
    when their classes and fields are.
    """
    own = cls.__dict__.get("__post_init__") or getattr(cls, "_own_post_init", None)
    kinds = functools.cache(lambda: _kinds(cls))  # when the first one is made: annotations may name later classes

    def post_init(self: Any) -> None:
        for name, kind in kinds().items():
            object.__setattr__(self, name, _coerce(type(self), name, kind, getattr(self, name)))
        if own is not None:
            own(self)

    cls.__post_init__ = post_init  # type: ignore[attr-defined]  # it is what dataclass looks for
    cls._own_post_init = own  # type: ignore[attr-defined]  # a subclass is held to it too
    made = dataclasses.dataclass(frozen=True, eq=False)(cls)
    # What is set on the class from here on, mypy cannot know: hence the ignores.
    made.__eq__ = lambda self, other: (  # type: ignore[method-assign]  # arrays compare by content
        type(self) is type(other) and _content(self) == _content(other)
    )
    made.__setstate__ = _restore  # type: ignore[attr-defined]
    made.__hash__ = lambda self: hash((type(self), _content(self)))  # type: ignore[method-assign]
    # Numba takes an empty tuple for a missing receiver, so a class without fields gets one.
    fields = [field.name for field in dataclasses.fields(made)] or ["nothing"]  # type: ignore[arg-type]
    Twin = collections.namedtuple("Twin", fields)  # type: ignore[misc]
    Twin.__name__, Twin.__qualname__ = made.__name__, f"{made.__qualname__}.Twin"
    Twin.__module__ = made.__module__
    made.Twin = Twin  # type: ignore[attr-defined]
    _adopt(Twin, made)
    return made


def values(cls: type[C]) -> type[C]:
    """A named tuple of arrays and numbers (a row, a point) whose methods kernels may call."""
    _adopt(cls, cls)
    return cls


def plain(obj: Any) -> bool:
    """Whether `obj` is a parameter, that is, made by `@parameter`."""
    return "Twin" in type(obj).__dict__  # a subclass needs the decorator too


def require_parameter(obj: Any) -> None:
    """Refuse an object of a class that lacks the decorator: kernels could not take it."""
    if not plain(obj):
        name = type(obj).__name__
        raise SettingsError(f"{name} is a plain class: put @rue.parameter above it, so that it can be compiled.")


def twin(obj: Any) -> Any:
    """What crosses into a compiled kernel: parameters as named tuples, everything else as it is."""
    if plain(obj):
        fields = (getattr(obj, name, 0) for name in type(obj).Twin._fields)
        return type(obj).Twin(*(twin(field) for field in fields))
    return obj


def foreign(obj: Any) -> bool:
    """Whether a class from outside the package takes part; such kernels are never written to the disk cache."""
    if not plain(obj):
        return False
    return _outside(type(obj)) or any(foreign(getattr(obj, field.name)) for field in dataclasses.fields(obj))


def _outside(cls: Any) -> bool:
    module = cls.__module__
    return not (module == "rue" or module.startswith("rue."))


def _kinds(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if hints[field.name] in _COERCIONS}


def _restore(self: Any, state: dict[str, Any]) -> None:
    """Unpickle; arrays come back writable and must not stay so."""
    for name, field in state.items():
        if isinstance(field, np.ndarray):
            field.setflags(write=False)
        object.__setattr__(self, name, field)


def _number(value: Any) -> float:
    number = float(value)
    if math.isnan(number):
        raise ValueError("not a number")
    return number


def _vector(value: Any) -> Any:
    array = np.array(value, dtype=np.float64, ndmin=1)
    if array.ndim != 1 or np.isnan(array).any():
        raise ValueError("not a list of numbers")
    array.setflags(write=False)
    return array


_COERCIONS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    float: (_number, "a number"),
    int: (operator.index, "a whole number"),
    bool: (bool, "true or false"),
    Vector: (_vector, "a number or a list of numbers"),
}


def _coerce(cls: type, name: str, kind: Any, value: Any) -> Any:
    make, wanted = _COERCIONS[kind]
    try:
        return make(value)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{cls.__name__}: {name} must be {wanted}, not {value!r}.") from error


def _content(obj: Any) -> tuple[Any, ...]:
    fields = (getattr(obj, field.name) for field in dataclasses.fields(obj))
    return tuple(field.tobytes() if isinstance(field, np.ndarray) else field for field in fields)


# Methods: one attribute template answers for all methods of our tuples, and for nothing else.

_owners: dict[type, type] = {}
_bridges: dict[tuple[str, int, bool], Any] = {}


def _adopt(tuple_class: type, owner: type) -> None:
    _owners[tuple_class] = owner
    found = {name: member for base in reversed(owner.__mro__) for name, member in vars(base).items()}
    for name, method in found.items():
        if isinstance(method, FunctionType) and not name.startswith("_"):
            _require_arguments(owner, name, method)


def _require_arguments(owner: type, name: str, method: FunctionType) -> None:
    """Refuse a method that takes other arguments than the one it replaces."""
    for base in owner.__mro__[1:]:
        replaced = base.__dict__.get(name)
        taken, wanted = (getattr(getattr(f, "__code__", None), "co_argcount", 0) for f in (method, replaced))
        if isinstance(replaced, FunctionType) and taken != wanted:
            raise SettingsError(
                f"{owner.__name__}.{name} takes {taken - 1} arguments where {base.__name__}.{name} takes {wanted - 1}: "
                "give it the same ones."
            )


@templates.infer_getattr
class _Methods(templates.AttributeTemplate):  # type: ignore[misc]  # Numba carries no types
    """Lets kernels call the methods of named tuples of ours."""

    key = numba.types.BaseNamedTuple

    def resolve(self, typ: Any, attr: str) -> Any:
        owner = _owners.get(getattr(typ, "instance_class", None))  # type: ignore[arg-type]
        method = getattr(owner, attr, None)
        if attr in typ.fields or attr.startswith("_") or not isinstance(method, FunctionType):
            return None
        called = attr, method.__code__.co_argcount, not _outside(owner)
        if called not in _bridges:
            _bridges[called] = _bridge(called, method)
            self.context.refresh()
        return self.context.resolve_getattr(typ, _bridges[called])


_compiling = threading.RLock()
"""Held while a kernel is compiled: files are parsed in several threads."""


def _bridge(called: tuple[str, int, bool], method: FunctionType) -> Any:
    """The template of every method called so; Numba wants a function with the method's own arguments, hence `exec`."""
    name, code = called[0], method.__code__
    arguments = ", ".join(code.co_varnames[: code.co_argcount])
    scope: dict[str, Any] = {"owners": _owners}
    exec(f"def bridge({arguments}):\n    return owners[{code.co_varnames[0]}.instance_class].{name}", scope)
    bridge = scope["bridge"]
    key = f"rue.{name}/{code.co_argcount}/{called[2]}"  # no attribute that other code could ask for
    how = method_options(name in _CALLED, called[2])
    overload_method(numba.types.BaseNamedTuple, key, strict=False, jit_options=how)(bridge)
    return key


# Kernels.


def inline(function: F) -> F:
    """A plain function that kernels may call, and that is inlined where they do."""
    overload(function, strict=False, jit_options=INLINED)(_hand_over(function))
    return function


def _hand_over(function: Any) -> Any:
    """Numba asks for a function with the same arguments that returns what is to be compiled, hence `exec`."""
    arguments = ", ".join(inspect.signature(function).parameters)
    scope: dict[str, Any] = {"function": function}
    exec(f"def hand_over({arguments}):\n    return function", scope)
    return scope["hand_over"]


def kernel(function: Callable[..., Any]) -> Kernel:
    """Make a kernel of a plain function; nothing is compiled before its first call."""
    return Kernel(function)


def parser(function: Callable[..., Any]) -> Kernel:
    """A kernel that goes through text."""
    return Kernel(function, parser=True)


class Kernel:
    """A function compiled once for each combination of types, kept on disk between processes."""

    def __init__(self, function: Callable[..., Any], parser: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.function, self.parser = function, parser
        self.entries: dict[Any, Callable[..., Any]] = {}

    @functools.cached_property
    def dispatchers(self) -> tuple[Any, Any]:
        """Numba's, of code that is kept on disk and of code that is not; made when asked for, as few kernels are."""
        if config.DISABLE_JIT:
            return None, None
        return jit(self.function, self.parser), jit(self.function, self.parser)

    def __call__(self, *args: Any) -> Any:
        twins = [twin(arg) for arg in args]
        seen = tuple(map(_quick_type, twins))
        if (entry := self.entries.get(seen)) is None:
            entry = self.entries[seen] = self.resolve(*args)
        return entry(*twins)

    def resolve(self, *args: Any) -> Callable[..., Any]:
        """The compiled code for arguments of these types, to be called with `twin`s of such arguments.

        It is the machine code's own entry point: Numba's dispatcher, which looks at every field of every argument,
        takes 1 to 4 µs a call. So the caller answers for the types.
        """
        kept, unkept = self.dispatchers
        if kept is None:
            return self.interpreted
        dispatcher = unkept if any(map(foreign, args)) else kept
        if dispatcher is kept and isinstance(dispatcher._cache, caching.NullCache):
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
        kept, unkept = self.dispatchers
        return 0 if kept is None else len(kept.overloads) + len(unkept.overloads) - sum(kept.stats.cache_hits.values())

    def interpreted(self, *args: Any) -> Any:
        """The same function, not compiled, on the same twins."""
        with np.errstate(all="ignore"):
            return self.function(*map(_untwin, args))


def _untwin(arg: Any) -> Any:
    owner = _owners.get(type(arg))
    if owner is None or owner is type(arg):
        return arg
    fresh: Any = object.__new__(owner)
    for name, field in zip(type(arg)._fields, arg, strict=True):
        object.__setattr__(fresh, name, _untwin(field))
    return fresh


_ALIKE = frozenset({float, bool, np.float64, np.int64, np.uint64})
"""Classes all of whose instances have the same Numba type."""


def _quick_type(arg: Any) -> Any:
    """What tells an argument from those of other Numba types; ten times as fast as asking Numba."""
    if type(arg) is np.ndarray:
        flags = arg.flags
        return arg.dtype, arg.ndim, flags.c_contiguous, flags.f_contiguous, flags.aligned
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        return type(arg), *map(_quick_type, arg)
    return type(arg) if type(arg) in _ALIKE else _typeof(arg)


class Strided:
    """Stands for an array of any stride in `Kernel.resolve`."""

    def __init__(self, array: Any) -> None:
        self.array = array


def _typeof(arg: Any) -> Any:
    """Numba's type, with read-only arrays counted as ordinary ones: kernels never write to what they are lent."""
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        return numba.types.NamedTuple([_typeof(field) for field in arg], type(arg))
    if isinstance(arg, Strided):
        return _typeof(arg.array).copy(layout="A")
    found = numba.typeof(arg)
    if isinstance(found, numba.types.Array) and not found.mutable:
        return found.copy(readonly=False)
    return found


# The lines of Numba's long messages that say what it did not understand.
_TELLING = re.compile(
    r"^.*?((No implementation of function|Unknown attribute|Untyped global|Use of unsupported|Unsupported|Cannot"
    r"|Invalid|NameError|NRT required|Unable to|No conversion|Failed to|name ').*)$"
)


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _explain(error: Exception, args: tuple[Any, ...]) -> str:
    def classes(obj: Any) -> list[str]:
        if not plain(obj):
            return []
        inner = [name for field in dataclasses.fields(obj) for name in classes(getattr(obj, field.name))]
        return ([type(obj).__name__] if _outside(type(obj)) else []) + inner

    culprits = ", ".join(dict.fromkeys(name for arg in args for name in classes(arg))) or "rue itself"
    lines = [line.strip() for line in _COLOUR.sub("", str(error)).splitlines() if _TELLING.search(line)]
    detail = _TELLING.sub(r"\1", lines[-1]) if lines else "see the error above this one"
    return (
        f"the methods of {culprits} could not be compiled: {detail[:200]} "
        "(use plain arithmetic on floats, math functions and loops; no allocation, no Python objects)."
    )
