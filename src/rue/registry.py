"""Names for losses, domains, steps, maps, learners and opponents, and the little language `"ball:10"`.

A spec is a name, then after a colon its arguments, separated by commas; an argument is a number, a word,
or `key=value`.

Registering a class is all it takes for rue to know it: the library and the command line build it from its spec, model
files may name it, `rue.checks` and the tests run on it. A class of rue's own is public as well. Its file lies in the
folder of its kind, whose modules are all imported, so that a new file needs no line anywhere else.

>>> import rue
>>> rue.make("domain", "ball:10")
Ball(radius=10.0)
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from rue.errors import SettingsError, UnknownName, shown

__all__ = ["import_modules", "is_own", "make", "names", "own_classes", "publish", "register", "registered", "usages"]

Registered = TypeVar("Registered")

PUBLIC = ("loss", "domain", "step", "map", "learner", "opponent")
"""The kinds whose members rue offers under their own names, as `rue.Hinge`."""

_known: dict[str, dict[str, Any]] = {}
"""Kind → name → class or function."""


def register(kind: str, name: str) -> Callable[[Registered], Registered]:
    """Give a class, or a function that makes an object, a name among its kind.

    The kinds are `"loss"`, `"domain"`, `"step"`, `"map"`, `"average"`, `"learner"`, `"opponent"` and `"format"`; an
    `"algorithm"` is the description that a learner is saved as, a `"part"` a class that occurs only inside the settings
    of others.
    """

    def enter(entry: Registered) -> Registered:
        taken = _known.setdefault(kind, {}).get(name, entry)
        if _origin(taken) != _origin(entry):  # a notebook's cell that is run again defines the same class anew
            raise SettingsError(f"the {kind} {name!r} is {'.'.join(_origin(taken))} already: choose another name.")
        _known[kind][name] = entry
        return entry

    return enter


def names(kind: str) -> list[str]:
    """The names registered for a kind (`"loss"`, `"domain"`, `"step"`, `"average"`, `"learner"`), sorted.

    >>> names("average")
    ['none', 'steps', 't', 'uniform']
    """
    return sorted(_known.get(kind, {}))


def registered(kind: str) -> dict[str, Any]:
    """Name → class for a kind."""
    return dict(_known.get(kind, {}))


def usages(kind: str) -> list[str]:
    """What to type for each entry of a kind: its name, then the arguments that it needs, or may have, as a number.

    >>> usages("average"), [usage for usage in usages("loss") if "[" in usage][:2]
    (['none', 'uniform', 't', 'steps'], ['hinge[:at_kink]', 'perceptron[:at_kink]'])
    >>> usages("domain")[:3]
    ['reals', 'ball:radius', 'box:lower,upper']
    """
    return [name + _argument_names(inspect.signature(entry)) for name, entry in registered(kind).items()]


def _argument_names(takes: inspect.Signature) -> str:
    """`:a,b` for the arguments that must be given; if there are none, `[:a]` where the first one is a number."""
    parameters = list(takes.parameters.values())
    needed = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    if needed:
        return ":" + ",".join(needed)
    if parameters and isinstance(parameters[0].default, int | float):
        return f"[:{parameters[0].name.rstrip('_')}]"
    return ""


def own_classes(*kinds: str) -> dict[str, type]:
    """The classes of rue's own that are registered for some kinds, by the names of the classes.

    >>> own_classes("average")["ByTime"]
    <class 'rue.learners.average.ByTime'>
    """
    entries = [entry for kind in kinds for entry in registered(kind).values() if is_own(entry)]
    return {entry.__name__: entry for entry in entries if isinstance(entry, type)}


def import_modules(package: str, folders: Iterable[str]) -> None:
    """Import every module of a package in the order of their names, so that what they register is known.

    A package ends its `__init__.py` with `import_modules(__name__, __path__)`.
    """
    for name in sorted(module.name for module in pkgutil.iter_modules(folders) if not module.ispkg):
        importlib.import_module(f"{package}.{name}")


def publish(namespace: dict[str, Any], listed: list[str]) -> None:
    """Add what is registered of rue's own to a module's names and to its `__all__`, where it is not there yet."""
    for kind in PUBLIC:
        for entry in filter(is_own, registered(kind).values()):
            name = entry.__name__
            if namespace.setdefault(name, entry) is not entry:
                raise SettingsError(f"the {kind} {'.'.join(_origin(entry))} needs another name: there is a rue.{name}.")
            if name not in listed:
                listed.append(name)


def _origin(entry: Any) -> tuple[str, str]:
    return entry.__module__, getattr(entry, "__qualname__", type(entry).__qualname__)


def is_own(entry: Any) -> bool:
    """Whether a class or function is part of rue, not of a user's program."""
    return bool(entry.__module__.partition(".")[0] == "rue")


def make(kind: str, spec: object, **defaults: Any) -> Any:
    """The object a spec stands for; anything that is not a string is returned as it is.

    `defaults` are keyword arguments that the spec may override.

    `kind` is one of those of `register`; the spec is a name, followed by a colon and its arguments where it has some.

    >>> make("step", "sqrt:0.5"), make("loss", "quantile:tau=0.9")
    (Sqrt(value=0.5), Quantile(tau=0.9))
    """
    if not isinstance(spec, str):
        return spec
    name, _, rest = spec.strip().partition(":")
    if kind not in _known:
        raise UnknownName(f"there is no kind {shown(kind)} of object: the kinds are {', '.join(sorted(_known))}.")
    known = _known[kind]
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UnknownName(f"there is no {kind} named {shown(name)}: {hint}the names are {', '.join(names(kind))}.")
    positional, named = _arguments(rest)
    arguments = {**defaults, **named}
    takes = inspect.signature(known[name])
    try:
        takes.bind(*positional, **arguments)
    except TypeError as error:
        why = f"{error}): {name} takes {_listed(takes)}"
        raise SettingsError(f"the {kind} {shown(spec)} cannot be built ({why}.") from error
    return known[name](*positional, **arguments)


def _listed(takes: inspect.Signature) -> str:
    """The arguments of a signature as one would type them."""
    listed = [
        parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default!r}"
        for parameter in takes.parameters.values()
    ]
    return ", ".join(listed) or "no arguments"


def _arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """What stands after the colon of a spec: arguments by position, and by name."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = part.partition("=")
        if equals:
            named[key.strip()] = _literal(value.strip())
        else:
            positional.append(_literal(part))
    return positional, named


def _literal(word: str) -> Any:
    """A word of a spec as a boolean, a whole number, a float, or else itself."""
    if word in ("true", "false"):
        return word == "true"
    for number in (int, float):
        try:
            return number(word)
        except ValueError:
            pass
    return word
