"""The only room that knows how Numba is used: parameters, their methods, kernels and the disk cache.

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
import contextlib
import dataclasses
import functools
import hashlib
import inspect
import math
import operator
import os
import pickle
import sys
import tempfile
import typing
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Annotated, Any, TypeVar, dataclass_transform

import numba
import numpy as np
from numba.core import caching, compiler, config, serialize, types
from numba.core.errors import NumbaError
from numba.core.typing import templates
from numba.extending import overload

from rue.errors import SettingsError

__all__ = ["Kernel", "Strided", "Vector", "cache_folder", "foreign", "kernel", "parameter", "plain", "twin", "values"]

Vector = Annotated[Any, "vector"]
"""A field that holds numbers: whatever is given becomes a read-only float64 array."""

C = TypeVar("C")
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
# Methods are inlined, because a call hands over every array of every argument (30 ns, as much as a short row takes);
# not these, which go over the whole point, where a call costs nothing and inlining doubles the time to compile.
_CALLED = frozenset({"onto", "lowest", "sweep", "farthest", "multiply_out", "forget"})


# Parameters: coerced at the door, so that Ball(10) and Ball(10.0) are one type and compile once.


@dataclass_transform(frozen_default=True)
def parameter(cls: type[C]) -> type[C]:
    """A frozen dataclass whose fields are coerced and whose methods kernels may call.

    Fields are coerced to what they are annotated with: `float`, `int`, `bool`, or `Vector`. Two parameters are equal
    when their classes and fields are.
    """
    own = cls.__dict__.get("__post_init__")

    def __post_init__(self: Any) -> None:
        for name, kind in _kinds(type(self)).items():
            object.__setattr__(self, name, _coerce(type(self), name, kind, getattr(self, name)))
        if own is not None:
            own(self)

    cls.__post_init__ = __post_init__  # type: ignore[attr-defined]  # it is what dataclass looks for
    made = dataclasses.dataclass(frozen=True, eq=False)(cls)
    made.__eq__ = lambda self, other: (  # type: ignore[assignment, method-assign]  # arrays compare by content
        type(self) is type(other) and _content(self) == _content(other)
    )
    made.__hash__ = lambda self: hash((type(self), _content(self)))  # type: ignore[assignment, method-assign]
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
    return hasattr(type(obj), "Twin")


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
    module = type(obj).__module__
    outside = not (module == "rue" or module.startswith("rue."))
    return outside or any(foreign(getattr(obj, field.name)) for field in dataclasses.fields(obj))


@functools.cache
def _kinds(cls: type) -> dict[str, Any]:
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
        raise SettingsError(f"{cls.__name__}: {name} must be {wanted}, not {value!r}.") from error


def _content(obj: Any) -> tuple[Any, ...]:
    fields = (getattr(obj, field.name) for field in dataclasses.fields(obj))
    return tuple(field.tobytes() if isinstance(field, np.ndarray) else field for field in fields)


# Methods: one attribute template for each method name, which answers for our tuples only.

_owners: dict[type, type] = {}
_bridges: dict[str, int] = {}


def _adopt(tuple_class: type, owner: type) -> None:
    _owners[tuple_class] = owner
    for name in dir(owner):
        method = inspect.getattr_static(owner, name)
        if isinstance(method, FunctionType) and not name.startswith("_"):
            _bridge(name, method)


class _Method(templates._OverloadMethodTemplate):  # type: ignore[misc]  # Numba carries no types
    """Numba's own method template, silent about every named tuple that is not one of ours."""

    def _resolve(self, typ: Any, attr: str) -> Any:
        owner = _owners.get(getattr(typ, "instance_class", None))  # type: ignore[arg-type]
        if attr != self._attr or owner is None or attr in typ.fields or not hasattr(owner, attr):
            return None
        taken = getattr(owner, attr).__code__.co_argcount
        if taken != _bridges[attr]:
            raise SettingsError(
                f"{owner.__name__}.{attr} takes {taken - 1} arguments where rue's {attr} takes {_bridges[attr] - 1}: "
                "give it the same arguments, or another name."
            )
        return super()._resolve(typ, attr)


def _bridge(name: str, method: FunctionType) -> None:
    """Let kernels call `anything.name(...)`; Numba wants a function with the method's own arguments, hence `exec`."""
    if name in _bridges:
        return
    code = method.__code__
    _bridges[name] = code.co_argcount
    arguments = ", ".join(code.co_varnames[: code.co_argcount])
    receiver = code.co_varnames[0]
    scope: dict[str, Any] = {"owners": _owners}
    exec(f"def bridge({arguments}):\n    return owners[{receiver}.instance_class].{name}", scope)
    bridge = scope["bridge"]
    template = templates.make_overload_attribute_template(
        types.BaseNamedTuple, name, bridge, base=_Method, strict=False
    )
    templates.infer_getattr(template)
    overload(bridge, strict=False, jit_options={**_OPTIONS, "forceinline": name not in _CALLED})(bridge)


# Kernels.


def kernel(function: Callable[..., Any]) -> Kernel:
    """Make a kernel of a plain function; nothing is compiled before its first call."""
    return Kernel(function)


class Kernel:
    """A function compiled once for each combination of types, kept on disk between processes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.kept = numba.njit(nogil=True, **_OPTIONS)(function) if not config.DISABLE_JIT else None
        self.unkept = numba.njit(nogil=True, **_OPTIONS)(function) if not config.DISABLE_JIT else None

    def __call__(self, *args: Any) -> Any:
        return self.resolve(*args)(*map(twin, args))

    def resolve(self, *args: Any) -> Callable[..., Any]:
        """The compiled code for arguments of these types, to be called with `twin`s of such arguments.

        It is the machine code's own entry point: Numba's dispatcher, which looks at every field of every argument,
        takes 1 to 4 µs a call. So the caller answers for the types.
        """
        if self.kept is None:
            return self._interpreted
        dispatcher = self.unkept if any(map(foreign, args)) else self.kept
        if dispatcher is self.kept and isinstance(dispatcher._cache, caching.NullCache):
            dispatcher._cache = _DiskCache(self.function)
        signature = tuple(_typeof(twin(arg)) for arg in args)
        if signature not in dispatcher.overloads:
            try:
                dispatcher.compile(signature)
            except NumbaError as error:
                raise SettingsError(_explain(error, args)) from error
        return dispatcher.overloads[signature].entry_point  # type: ignore[no-any-return]

    def compiled(self) -> int:
        """How many combinations of types this process has compiled, those read from disk not counted."""
        if self.kept is None:
            return 0
        read = sum(self.kept.stats.cache_hits.values())
        return len(self.kept.overloads) + len(self.unkept.overloads) - read

    def _interpreted(self, *args: Any) -> Any:
        with np.errstate(all="ignore"):
            return self.function(*map(_untwin, args))


def _untwin(arg: Any) -> Any:
    owner = _owners.get(type(arg))
    if owner is None or owner is type(arg):
        return arg
    fresh = object.__new__(owner)
    for name, field in zip(type(arg)._fields, arg, strict=True):
        object.__setattr__(fresh, name, _untwin(field))
    return fresh


class Strided:
    """Stands for an array of any stride in `Kernel.resolve`."""

    def __init__(self, array: Any) -> None:
        self.array = array


def _typeof(arg: Any) -> Any:
    """Numba's type, with read-only arrays counted as ordinary ones: kernels never write to what they are lent."""
    if isinstance(arg, tuple):
        return types.NamedTuple([_typeof(field) for field in arg], type(arg))
    if isinstance(arg, Strided):
        return _typeof(arg.array).copy(layout="A")
    found = numba.typeof(arg)
    if isinstance(found, types.Array) and not found.mutable:
        return found.copy(readonly=False)
    return found


def _explain(error: Exception, args: tuple[Any, ...]) -> str:
    def classes(obj: Any) -> list[str]:
        if not plain(obj):
            return []
        inner = [name for field in dataclasses.fields(obj) for name in classes(getattr(obj, field.name))]
        return ([type(obj).__name__] if foreign(obj) else []) + inner

    culprits = ", ".join(dict.fromkeys(name for arg in args for name in classes(arg))) or "rue itself"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    detail = next((line for line in reversed(lines) if not line.startswith(("During", "raised", "^", "<source"))), "")
    return (
        f"the methods of {culprits} could not be compiled: {detail[:200]} "
        "(use plain arithmetic on floats, math functions and loops; no allocation, no Python objects)."
    )


# The disk cache: one file for each kernel and signature, named by what it was made from and written by renaming, so
# that processes cannot mix up each other's code (Numba's own index can: two writers number their files alike).


class _DiskCache(caching._Cache):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        folder = cache_folder()
        return str(folder) if folder else None

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        folder = cache_folder()
        for file in folder.glob(f"{self._name}-*") if folder else ():
            file.unlink(missing_ok=True)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        file = self._file(sig, target_context.codegen())
        if file is None or not self._enabled:
            return None
        target_context.refresh()
        try:
            return compiler.CompileResult._rebuild(target_context, *pickle.loads(file.read_bytes()))
        except Exception:  # a missing, cut or foreign file only means that the kernel is compiled again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        file = self._file(sig, data.codegen)
        if file is None or not self._enabled:
            return
        payload = serialize.dumps(data._reduce())
        # A cache that cannot be written is a slower start, not an error.
        with contextlib.suppress(OSError):
            handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".writing-")
            with os.fdopen(handle, "wb") as out:
                out.write(payload)
            os.replace(temporary, file)

    def _file(self, sig: Any, codegen: Any) -> Path | None:
        folder = cache_folder()
        if folder is None:
            return None
        key = repr((self._name, str(sig), codegen.magic_tuple(), config.BOUNDSCHECK, config.OPT))
        return folder / f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}"


@functools.cache
def cache_folder() -> Path | None:
    """Where compiled kernels are kept, or None when no place can be written.

    The folder is named by a digest of every source file of the package, of Numba's version and of Python's, so an
    edited `losses.py` never meets machine code made from the old one. `RUE_CACHE_DIR` chooses the place; otherwise it
    is the user's cache folder, and where that cannot be written a folder of the user's own among the temporary files.
    """
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    root = Path(__file__).parent
    for source in sorted(root.rglob("*.py")):
        digest.update(source.relative_to(root).as_posix().encode() + b"\0" + source.read_bytes())
    name = f"kernels-{digest.hexdigest()[:16]}"
    for place in _places():
        folder = place / name
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if hasattr(os, "getuid") and place.stat().st_uid != os.getuid():
                continue  # compiled code is read back from here: never from a folder of someone else's
            folder.mkdir(mode=0o700, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        _forget_old(place, keep=8)
        return folder
    return None


def _places() -> list[Path]:
    if chosen := os.environ.get("RUE_CACHE_DIR"):
        return [Path(chosen)]
    user = os.getuid() if hasattr(os, "getuid") else "user"
    places = [Path(tempfile.gettempdir()) / f"rue-{user}"]
    with contextlib.suppress(RuntimeError):  # no home directory
        cache = os.environ.get("XDG_CACHE_HOME")
        places.insert(0, (Path(cache) if cache else Path.home() / ".cache") / "rue")
    return places


def _forget_old(place: Path, keep: int) -> None:
    """Remove the kernels of all but the latest few versions of the sources."""
    with contextlib.suppress(OSError):
        folders = sorted(place.glob("kernels-*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
        for folder in folders[keep:]:
            for file in folder.iterdir():
                file.unlink(missing_ok=True)
            folder.rmdir()
