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

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from rue import losses, steps
from rue.compiled import is_parameter
from rue.domains import Intersection, intersection, sets, simplex
from rue.errors import DataError, SettingsError
from rue.learners import adaptive, average, gradient, leader
from rue.learners.mixture import committee, mixture
from rue.learners.softmax import multiclass

__all__ = ["from_json", "plain_json", "read_json", "rebuilt", "to_json", "write_json"]

_LEARNERS = (average, gradient, adaptive, leader, mixture, committee, multiclass)
_MODULES = (losses, sets, simplex, intersection, steps, *_LEARNERS)
_OWN: dict[str, type] = {
    name: found
    for module in _MODULES
    for name in module.__all__
    if isinstance(found := getattr(module, name), type) and "Twin" in vars(found)
}


def to_json(setting: Any) -> Any:
    """A parameter, with the parameters inside it, as plain JSON."""
    if type(setting) is Intersection:
        return {"Intersection": [to_json(member) for member in setting.members]}
    if is_parameter(setting):
        name = type(setting).__name__
        if isinstance(setting, Intersection):
            raise SettingsError(f"your class {name} cannot be saved: derive it from rue.Domain, not rue.Intersection.")
        if _OWN.get(name, type(setting)) is not type(setting):
            raise SettingsError(f"your class {name} cannot be saved, because rue has a {name} too: rename it.")
        fields = [field.name for field in dataclasses.fields(type(setting))]  # type: ignore[arg-type]  # it is one
        return {name: {field: to_json(getattr(setting, field)) for field in fields}}
    if isinstance(setting, np.ndarray | list | tuple):
        return [to_json(member) for member in (setting.tolist() if isinstance(setting, np.ndarray) else setting)]
    if isinstance(setting, np.generic):
        return setting.item()
    if setting is None or isinstance(setting, str | bool | int | float):
        return setting
    raise SettingsError(f"a setting of type {type(setting).__name__} cannot be saved: numbers, words and lists can.")


def from_json(value: Any, known: Iterable[type] = ()) -> Any:
    """The parameter that `to_json` wrote; `known` are classes from outside the package that may occur."""
    return _built(value, {**{cls.__name__: cls for cls in known}, **_OWN})


def _built(value: Any, classes: dict[str, type]) -> Any:
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
    if isinstance(arguments, list):
        return Intersection(*_built(arguments, classes)) if name == "Intersection" else _refuse(name)
    if not isinstance(arguments, dict) or name == "Intersection":
        return _refuse(name)
    return classes[name](**{field: _built(argument, classes) for field, argument in arguments.items()})


def _refuse(name: str) -> Any:
    raise DataError(f"the arguments of the setting {name!r} make no sense.")


def rebuilt(setting: Any) -> Any:
    """`setting` as JSON, after making sure that it can be read back."""
    written = to_json(setting)
    try:
        again = from_json(written, _classes(setting))
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"{setting!r} cannot be saved, because it cannot be built from its fields: {error}"
        ) from error
    if again != setting:
        raise SettingsError(f"{setting!r} cannot be saved: built from its fields it is {again!r}.")
    return written


def _classes(setting: Any) -> set[type]:
    if type(setting) is Intersection:
        setting = setting.members
    if isinstance(setting, tuple | list):
        return set().union(*map(_classes, setting))
    if not is_parameter(setting):
        return set()
    inside = (_classes(getattr(setting, field.name)) for field in dataclasses.fields(setting))
    return {type(setting)}.union(*inside)


def plain_json(value: Any, where: str) -> Any:
    """`value` made of dicts with text for keys, lists, text, numbers, booleans and None; refuses anything else."""
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
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found
