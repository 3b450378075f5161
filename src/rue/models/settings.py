"""Settings as JSON and back: `Ball(10)` is `{"Ball": {"radius": 10.0, "centre": []}}`.

Reading builds classes of rue's own, and those a caller hands over, and nothing else: a name is looked up, never
imported. Numbers keep their bits, infinities included.

>>> import rue
>>> to_json(rue.Ball(10))
{'Ball': {'radius': 10.0, 'centre': []}}
>>> from_json({"Ball": {"radius": 10.0, "centre": []}})
Ball(radius=10.0)
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from rue.compiled import is_parameter, written_fields
from rue.errors import DataError, SettingsError
from rue.registry import is_own, own_classes

__all__ = ["from_json", "plain_json", "read_json", "readable", "rebuilt", "to_json", "write_json"]


def readable() -> dict[str, type]:
    """The classes of rue's own that a model file may name: those registered as what settings are made of."""
    return own_classes("algorithm", "average", "domain", "loss", "map", "part", "step")


def to_json(setting: Any) -> Any:
    """A parameter, with the parameters inside it, as plain JSON."""
    if is_parameter(setting):
        cls, name = type(setting), type(setting).__name__
        if readable().get(name, cls) is not cls:
            raise SettingsError(f"your class {name} cannot be saved, because rue has a {name} too: rename it.")
        arguments = _arguments(setting)
        if isinstance(arguments, dict):
            return {name: {field: to_json(value) for field, value in arguments.items()}}
        return {name: to_json(arguments)}
    if isinstance(setting, np.ndarray | list | tuple):
        return [to_json(member) for member in (setting.tolist() if isinstance(setting, np.ndarray) else setting)]
    if isinstance(setting, np.generic):
        return setting.item()
    if setting is None or isinstance(setting, str | bool | int | float):
        return setting
    raise SettingsError(f"a setting of type {type(setting).__name__} cannot be saved: numbers, words and lists can.")


def _arguments(setting: Any) -> Any:
    """What a parameter is built from: its fields by name, or a list where it says so in `built_from`."""
    if not hasattr(setting, "built_from"):
        return written_fields(setting)
    if not _takes_list(type(setting)):  # what a subclass is built from may be something else
        base = next(base for base in type(setting).__mro__ if _takes_list(base))
        raise SettingsError(
            f"your class {type(setting).__name__} cannot be saved: derive it from rue.Domain, not rue.{base.__name__}."
        )
    return list(setting.built_from())


def _takes_list(cls: type) -> bool:
    """Whether a class, not merely a base of it, is built from a list."""
    return "built_from" in vars(cls)


def from_json(value: Any, known: Iterable[type] = ()) -> Any:
    """The parameter that `to_json` wrote; `known` are classes from outside the package that may occur."""
    return _built(value, {**{cls.__name__: cls for cls in known}, **readable()})


def _built(value: Any, classes: dict[str, type]) -> Any:
    """The setting that some JSON stands for, made of these classes and no others."""
    if isinstance(value, list):
        return [_built(member, classes) for member in value]
    if not isinstance(value, dict):
        if isinstance(value, int) and abs(value) >= 2**63:
            raise DataError("a setting is a number too large.")
        return value
    if len(value) != 1:
        raise DataError("a setting is not one name with its arguments.")
    ((name, arguments),) = value.items()
    if name not in classes:
        raise DataError(
            f"the settings name {name[:40]!r}, which this rue does not have; if the class is yours, hand it over: "
            "rue.load(path, known=[…])."
        )
    if not isinstance(arguments, list if _takes_list(classes[name]) else dict):
        raise DataError(f"the arguments of the setting {name!r} make no sense.")
    if isinstance(arguments, list):
        return classes[name](*_built(arguments, classes))
    return classes[name](**{field: _built(argument, classes) for field, argument in arguments.items()})


def rebuilt(setting: Any) -> Any:
    """`setting` as JSON, after making sure that it can be read back, by rue and the user's own classes alone."""
    written = to_json(setting)
    try:
        again = from_json(written, (cls for cls in _classes(setting) if not is_own(cls)))
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"{setting!r} cannot be saved, because it cannot be built from its fields: {error}"
        ) from error
    if again != setting:
        raise SettingsError(f"{setting!r} cannot be saved: built from its fields it is {again!r}.")
    return written


def _classes(setting: Any) -> set[type]:
    """The classes of a setting and of those inside it."""
    if isinstance(setting, tuple | list):
        return set().union(*map(_classes, setting))
    if not is_parameter(setting):
        return set()
    arguments = _arguments(setting)
    return {type(setting)} | _classes(list(arguments.values()) if isinstance(arguments, dict) else arguments)


def plain_json(value: Any, where: str) -> Any:
    """`value` as dicts with text for keys, lists, text, numbers, booleans and None; refuses anything else."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise SettingsError(f"{where}: the keys of what is saved must be text.")
        return {str(key): plain_json(member, where) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(member, where) for member in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise SettingsError(f"{where}: a {type(value).__name__} cannot be saved: numbers, text, lists and dicts can.")


def write_json(value: Any) -> str:
    """JSON in ASCII, numbers with all their bits; infinities and NaN as JavaScript writes them."""
    return json.dumps(value, separators=(",", ":"))


def read_json(text: str | bytes) -> Any:
    """What `write_json` wrote; DataError if it is anything else, a name given twice included."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (RecursionError, ValueError) as error:
        raise DataError(f"its settings cannot be read ({str(error)[:80]}).") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; refuses one in which a name occurs twice, of which Python would take the last."""
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a name occurs twice")
    return read
