"""Parameters: plain classes whose objects cross into compiled code.

A loss, domain, step or algorithm is a *parameter*: a frozen dataclass with plain Python methods. Kernels cannot take
Python objects, so each parameter has a *twin*, a named tuple of its fields, whose methods Numba compiles from the
class's own (`rue.compiled.kernels`).
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import operator
import typing
from collections.abc import Callable
from types import FunctionType
from typing import Annotated, Any, TypeVar, dataclass_transform

import numpy as np

from rue.errors import SettingsError, shown

__all__ = [
    "OWNERS",
    "Vector",
    "foreign",
    "from_twin",
    "is_foreign_class",
    "is_noinline",
    "is_parameter",
    "noinline",
    "optional",
    "parameter",
    "require_parameter",
    "twin",
    "values",
    "written_fields",
]

Vector = Annotated[Any, "vector"]
"""The annotation of a field that holds several numbers: what is given becomes a read-only float64 array."""

OWNERS: dict[type, type] = {}
"""Named-tuple class → class that defines its methods, for all that kernels take."""

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass_transform(frozen_default=True)
def parameter(cls: type[C]) -> type[C]:
    """A frozen dataclass whose fields are coerced and whose methods kernels may call.

    Fields annotated `float`, `int`, `bool` or `Vector` are coerced to that type, so that `Ball(10)` and `Ball(10.0)`
    are one type for Numba and are compiled once. Two parameters are equal when their classes and fields are. A method
    may read the fields, do arithmetic, call `math`, loop over arrays and call other methods; it may not allocate
    (docs/decisions/0002). A subclass needs the decorator too.

    >>> @parameter
    ... class Cap:
    ...     height: float
    ...
    ...     def cut(self, x):
    ...         return min(x, self.height)
    >>> Cap(3)
    Cap(height=3.0)
    >>> Cap(3) == Cap(3.0), Cap(3).cut(5.0)
    (True, 3.0)
    """
    own = cls.__dict__.get("__post_init__") or getattr(cls, "_own_post_init", None)
    # Annotations are looked up when the first object is made, because they may name classes defined later.
    kinds = functools.cache(lambda: _coerced_fields(cls))

    def post_init(self: Any) -> None:
        for name, kind in kinds().items():
            object.__setattr__(self, name, _coerce(type(self), name, kind, getattr(self, name)))
        if own is not None:
            own(self)

    cls.__post_init__ = post_init  # type: ignore[attr-defined]  # the hook that dataclass calls
    cls._own_post_init = own  # type: ignore[attr-defined]  # so that a subclass checks what its parent does
    if "__repr__" not in cls.__dict__:
        cls.__repr__ = _written  # type: ignore[method-assign]  # long arrays are shortened
    frozen = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    frozen.__eq__ = lambda self, other: (  # type: ignore[method-assign]  # arrays compare by content
        type(self) is type(other) and _content(self) == _content(other)
    )
    frozen.__setstate__ = _restore  # type: ignore[attr-defined]
    frozen.__hash__ = lambda self: hash((type(self), _content(self)))  # type: ignore[method-assign]
    # Numba cannot call methods on an empty tuple, so a dummy field is added.
    fields = [field.name for field in dataclasses.fields(frozen)] or ["nothing"]  # type: ignore[arg-type]
    Twin = collections.namedtuple("Twin", fields)  # type: ignore[misc]
    Twin.__name__, Twin.__qualname__ = frozen.__name__, f"{frozen.__qualname__}.Twin"
    Twin.__module__ = frozen.__module__
    frozen.Twin = Twin  # type: ignore[attr-defined]
    _register_methods(Twin, frozen)
    return frozen


def values(cls: type[C]) -> type[C]:
    """A named tuple of arrays and numbers (a row, a point) whose methods kernels may call.

    >>> from typing import Any, NamedTuple
    >>> @values
    ... class Pair(NamedTuple):
    ...     a: Any
    ...     b: Any
    ...     def total(self):
    ...         return self.a + self.b
    >>> Pair(1.0, 2.0).total()
    3.0
    """
    _register_methods(cls, cls)
    return cls


def noinline(method: F) -> F:
    """Have kernels call this method; without it methods are inlined. Overrides in subclasses are not inlined either.

    A call hands over every array of every argument, some 30 ns, as much as a short row takes: hence inlining. For a
    method that goes over a whole point, or is rarely needed, a call costs nothing, and inlining it would double the
    time to compile.
    """
    method._noinline = True  # type: ignore[attr-defined]
    return method


def is_noinline(owner: type, name: str) -> bool:
    """Whether a class, or one that it inherits from, declares its method `name` with `@noinline`."""
    return any(getattr(base.__dict__.get(name), "_noinline", False) for base in owner.__mro__)


def optional(default: Any) -> Any:
    """The default of a field that is written, in `repr` and in model files, only where it differs from it.

    For a field that came later than the class: files of before and after are then the same.

    >>> @parameter
    ... class Cup:
    ...     size: float
    ...     handle: float = optional(1.0)
    >>> Cup(3), Cup(3, 2)
    (Cup(size=3.0), Cup(size=3.0, handle=2.0))
    """
    return dataclasses.field(default=default, metadata={"optional": True})


def written_fields(obj: Any) -> dict[str, Any]:
    """The fields of a parameter by name, without those that are `optional` and have their default."""
    return {
        field.name: getattr(obj, field.name)
        for field in dataclasses.fields(obj)
        if not (field.metadata.get("optional") and getattr(obj, field.name) == field.default)
    }


def is_parameter(obj: Any) -> bool:
    """Whether the class of `obj` itself, not only one it inherits from, has the decorator `@parameter`."""
    return "Twin" in type(obj).__dict__


def require_parameter(obj: Any) -> None:
    """Refuse an object of a class that lacks the decorator: kernels could not take it."""
    if not is_parameter(obj):
        name = type(obj).__name__
        raise SettingsError(f"{name} is a plain class: put @rue.parameter above it, so that it can be compiled.")


def twin(obj: Any) -> Any:
    """What crosses into a compiled kernel: parameters as named tuples of their fields, everything else as it is.

    Never expose twins: named tuples of different classes with equal fields compare equal, as those of `Square()` and
    `Absolute()` do.
    """
    if is_parameter(obj):
        fields = (getattr(obj, name, 0) for name in type(obj).Twin._fields)
        return type(obj).Twin(*(twin(field) for field in fields))
    return obj


def from_twin(arg: Any) -> Any:
    """The parameter that a twin stands for, for kernels that are not compiled; everything else as it is."""
    owner = OWNERS.get(type(arg))
    if owner is None or owner is type(arg):
        return arg
    obj: Any = object.__new__(owner)
    for name, field in zip(type(arg)._fields, arg, strict=True):
        object.__setattr__(obj, name, from_twin(field))
    return obj


def foreign(obj: Any) -> bool:
    """Whether `obj` is a parameter of a class from outside the package, or has a field that is.

    Kernels with such arguments are never written to the disk cache, where a later process without the class, or with
    another one of the same name, would find them.
    """
    if not is_parameter(obj):
        return False
    return is_foreign_class(type(obj)) or any(foreign(getattr(obj, field.name)) for field in dataclasses.fields(obj))


def is_foreign_class(cls: Any) -> bool:
    """Whether a class is defined outside the package."""
    return str(cls.__module__).split(".")[0] != "rue"


# Coercion of fields.


def _coerced_fields(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if hints[field.name] in _COERCIONS}


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
        raise SettingsError(f"{cls.__name__}: {name} must be {wanted}, not {shown(value)}.") from error


def _written(self: Any) -> str:
    """As dataclasses write an object, but with no more than a few numbers of a vector."""
    shown_too = {field.name for field in dataclasses.fields(self) if field.repr}
    fields = {name: field for name, field in written_fields(self).items() if name in shown_too}
    texts = {
        name: f"array({shown(field.tolist())})" if isinstance(field, np.ndarray) and field.size > 6 else repr(field)
        for name, field in fields.items()
    }
    return f"{type(self).__qualname__}({', '.join(f'{name}={text}' for name, text in texts.items())})"


def _content(obj: Any) -> tuple[Any, ...]:
    fields = (getattr(obj, field.name) for field in dataclasses.fields(obj))
    return tuple(field.tobytes() if isinstance(field, np.ndarray) else field for field in fields)


def _restore(self: Any, state: dict[str, Any]) -> None:
    """Unpickle: arrays come back writable and are made read-only again."""
    for name, field in state.items():
        if isinstance(field, np.ndarray):
            field.setflags(write=False)
        object.__setattr__(self, name, field)


# Methods.


def _register_methods(tuple_class: type, owner: type) -> None:
    """Let kernels call the methods of `owner` on tuples of a class, which may be `owner` itself."""
    OWNERS[tuple_class] = owner
    members = {name: member for base in reversed(owner.__mro__) for name, member in vars(base).items()}
    for name, method in members.items():
        if isinstance(method, FunctionType) and not name.startswith("_"):
            _require_arguments(owner, name, method)


def _require_arguments(owner: type, name: str, method: FunctionType) -> None:
    """Refuse a method that takes another number of arguments than the one it replaces."""
    for base in owner.__mro__[1:]:
        replaced = base.__dict__.get(name)
        taken, wanted = (getattr(getattr(f, "__code__", None), "co_argcount", 0) for f in (method, replaced))
        if isinstance(replaced, FunctionType) and taken != wanted:
            raise SettingsError(
                f"{owner.__name__}.{name} takes {taken - 1} arguments where {base.__name__}.{name} takes {wanted - 1}: "
                "give it the same ones."
            )
