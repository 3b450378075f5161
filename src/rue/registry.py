"""Names for losses, domains, steps and learners, and the little language `"ball:10"`.

A spec is a name, then after a colon its arguments, separated by commas; an argument is a number, a word,
or `key=value`. Registering a class here is all it takes for the library, the checks and the tests to know it.

>>> import rue
>>> rue.make("domain", "ball:10")
Ball(radius=10.0)
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from rue.errors import SettingsError, UnknownName

__all__ = ["make", "names", "register", "registered"]

Made = TypeVar("Made", bound=Callable[..., Any])

_known: dict[str, dict[str, Callable[..., Any]]] = {}


def register(kind: str, name: str) -> Callable[[Made], Made]:
    """Give a class, or a function that makes an object, a name among its kind."""

    def enter(made: Made) -> Made:
        _known.setdefault(kind, {})[name] = made
        return made

    return enter


def names(kind: str) -> list[str]:
    """The names registered for a kind (`"loss"`, `"domain"`, `"step"`, `"average"`, `"learner"`), sorted."""
    return sorted(_known.get(kind, {}))


def registered(kind: str) -> dict[str, Callable[..., Any]]:
    """Name → class for a kind."""
    return dict(_known.get(kind, {}))


def make(kind: str, spec: object, **defaults: Any) -> Any:
    """The object a spec stands for; anything that is not a string is returned as it is.

    `defaults` are keyword arguments that the spec may override.
    """
    if not isinstance(spec, str):
        return spec
    name, _, rest = spec.strip().partition(":")
    if kind not in _known:
        raise UnknownName(f"there is no kind {kind!r} of object: the kinds are {', '.join(sorted(_known))}.")
    known = _known[kind]
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UnknownName(f"there is no {kind} named {name!r}: {hint}the names are {', '.join(names(kind))}.")
    positional, named = _arguments(rest)
    arguments = {**defaults, **named}
    takes = inspect.signature(known[name])
    try:
        takes.bind(*positional, **arguments)
    except TypeError as error:
        raise SettingsError(f"the {kind} {spec!r} cannot be built ({error}): {name} takes {_listed(takes)}.") from error
    return known[name](*positional, **arguments)


def _listed(takes: inspect.Signature) -> str:
    """The arguments of a signature as one would type them."""
    listed = [
        parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default!r}"
        for parameter in takes.parameters.values()
    ]
    return ", ".join(listed) or "no arguments"


def _arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
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
    if word in ("true", "false"):
        return word == "true"
    try:
        return int(word)
    except ValueError:
        pass
    try:
        return float(word)
    except ValueError:
        return word
