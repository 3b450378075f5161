"""The reference, page by page, from the docstrings: signatures, what each name is, its methods, its examples."""

from __future__ import annotations

import dataclasses
import functools
import html
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import rue
from rue.registry import registered

__all__ = ["GROUPS", "anchor", "group", "page", "pages"]

GROUPS = {
    "learners": "Learners",
    "losses": "Losses",
    "domains": "Domains",
    "steps": "Steps and averages",
    "learning": "Learning and data",
    "regret": "Regret",
    "games": "Games",
    "pictures": "Pictures",
    "other": "Errors, checks, names",
}
MODULES = {
    "rue.regret": "regret",
    "rue.audit": "regret",
    "rue.proofs": "regret",
    "rue.games": "games",
    "rue.pictures.calibrations": "pictures",
    "rue.pictures.intervals": "pictures",
    "rue.pictures.lectures": "pictures",
    "rue.pictures.plots": "pictures",
    "rue.pictures.proofs": "pictures",
    "rue.pictures.races": "pictures",
    "rue.pictures.windows": "pictures",
    "rue.learners": "learners",
    "rue.losses.functions": "losses",
    "rue.runs.calibration": "learning",
    "rue.runs.learn": "learning",
    "rue.runs.run": "learning",
    "rue.intervals": "learning",
    "rue.runs.replay": "regret",
    "rue.runs.sampling": "learning",
    "rue.streams": "learning",
    "rue.models.file": "learning",
    "rue.fleets": "learning",
    "rue.race.race": "learning",
    "rue.race.entries": "learning",
}


def group(name: str) -> str:
    """The page of a public name."""
    thing = getattr(rue, name)
    if thing in registered("learner").values():
        return "learners"
    kinds = {rue.Loss: "losses", rue.Domain: "domains", rue.Step: "steps", rue.Average: "steps"}
    for base, where in kinds.items():
        if isinstance(thing, type) and issubclass(thing, base):
            return where
    if thing in (rue.Regularised, rue.Indicator):
        return "losses"
    if thing is rue.Interval:
        return "domains"
    module = getattr(thing, "__module__", "")
    return next((where for start, where in MODULES.items() if f"{module}.".startswith(f"{start}.")), "other")


def anchor(name: str) -> str:
    """Where its page has it: `audit`, but the function that has a class of its name is `audit-function`."""
    twin = any(other != name and other.lower() == name for other in rue.__all__)
    return f"{name}-function" if twin else name.lower()


def page(which: str) -> str:
    """One page of the reference."""
    names = [name for name in rue.__all__ if name != "__version__" and group(name) == which]
    parts = [f"# {GROUPS[which]}", ""]
    for name in names:
        thing = getattr(rue, name)
        mark = "" if anchor(name) == name.lower() else f" {{ #{anchor(name)} }}"
        parts += [f"## {name}{mark}", "", *_entry(name, thing)]
        if inspect.ismodule(thing):
            for inner in thing.__all__:
                parts += [f"### {name}.{inner}", "", *_entry(f"{name}.{inner}", getattr(thing, inner))]
    return "\n".join(parts).rstrip() + "\n"


def _entry(name: str, thing: Any) -> list[str]:
    """The call, the docstring, and of a class its members."""
    parts = [*_signature(name, thing), *_text(_doc(name, thing))]
    if isinstance(thing, type) and not issubclass(thing, Exception):
        parts += _members(thing)
    return parts


def pages() -> Iterator[tuple[str, str]]:
    """Every page: its name and its text."""
    for which in GROUPS:
        yield which, page(which)


def _doc(name: str, thing: object) -> str:
    if name == "Vector":
        return "A field that holds numbers: whatever is given becomes a read-only float64 array."
    return inspect.getdoc(thing) or ""


def _signature(name: str, thing: Any) -> list[str]:
    if not callable(thing) or name == "Vector" or (isinstance(thing, type) and issubclass(thing, Exception)):
        return []
    return ["```text", _call(f"rue.{name}", thing), "```", ""]


def _call(name: str, thing: Callable[..., Any]) -> str:
    """A call as one would write it, on several lines if it is long."""
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return name
    given = [
        one for one in signature.parameters.values() if one.name not in ("self", "cls") and not one.name.startswith("_")
    ]
    words, starred = [], False
    for one in given:
        if one.kind is one.KEYWORD_ONLY and not starred:
            words, starred = [*words, "*"], True
        starred = starred or one.kind is one.VAR_POSITIONAL
        words.append(_parameter(one))
    line = f"{name}({', '.join(words)})"
    return line if len(line) <= 100 else f"{name}(\n    " + ",\n    ".join(words) + ",\n)"


def _parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    if one.default is one.empty:
        return f"{stars}{one.name}"
    shown = "…" if "factory" in repr(one.default) or "object at" in repr(one.default) else repr(one.default)
    return f"{one.name}={shown}"


def _members(cls: type) -> list[str]:
    """Its fields, properties and methods that have a docstring of their own."""
    fields = _field_docs(cls)
    rows = []
    for name, value in sorted(vars(cls).items()):
        if name.startswith("_") or name in fields:
            continue
        target = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        written = target.fget if isinstance(target, property) else target
        doc = written.__doc__ if inspect.isfunction(written) else None
        if doc:
            call = f".{name}" if isinstance(target, property) else _call(f".{name}", target).replace("\n", " ")
            rows.append((re.sub(r"\( +", "(", re.sub(r",? +\)", ")", re.sub(" +", " ", call))), doc))
    rows = [(f".{name}", doc) for name, doc in fields.items()] + rows
    if not rows:
        return []
    table = [f"| `{call}` | {_cell(doc)} |" for call, doc in rows]
    return ["| has | which is |", "|---|---|", *table, ""]


def _field_docs(cls: type) -> dict[str, str]:
    """The sentences that stand below the fields of a dataclass."""
    if not dataclasses.is_dataclass(cls):
        return {}
    try:
        source = inspect.getsource(cls)
    except OSError:
        return {}
    names = {field.name for field in dataclasses.fields(cls)}
    documented = re.findall(r'^    (\w+)(?:: [^\n]+)\n    """(.*?)"""', source, re.M | re.S)
    return {name: doc for name, doc in documented if name in names}


def _cell(doc: str) -> str:
    """The first paragraph, fit for a table."""
    return _escaped(" ".join(inspect.cleandoc(doc).split("\n\n")[0].split())).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Text in which nothing is taken for Markdown, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if i % 2 else _linked(re.sub(r"([*_\[\]])", r"\\\1", html.escape(part, quote=False)))
        for i, part in enumerate(parts)
    )


@functools.cache
def _sections() -> dict[str, str]:
    """The anchors of the sections of theory.md, by their numbers."""
    titles = re.findall(r"^## ((\d+)\..*)", (Path(__file__).parent / "theory.md").read_text(), re.M)
    return {number: re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title, number in titles}


def _linked(text: str) -> str:
    """Text in which identifiers such as B3 and sections of docs/theory.md lead to that page."""

    def section(match: re.Match[str]) -> str:
        return f"[{match[0]}](../theory.md#{_sections()[match[1]]})"

    def identifier(match: re.Match[str]) -> str:
        known = match[0] in rue.theorems().ids
        return (
            f"[{match[0]}](../theory.md#{_sections()[_SECTION_OF.get(match[0], _SECTION_OF[match[0][0]])]})"
            if known
            else match[0]
        )

    text = re.sub(r"docs/theory\.md, (?:end of )?section (\d+)", section, text)
    text = re.sub(r"docs/theory\.md(?!,? ?(?:end of )?section|\])", "[docs/theory.md](../theory.md)", text)
    return re.sub(r"(?<![\w/\[])[QVABCDEPM]\d+\b(?!\])", identifier, text)


_SECTION_OF = {
    "Q": "1",
    "V": "2",
    "A": "3",
    "B": "4",
    "C": "5",
    "D": "6",
    "P": "9",
    "B17": "10",
    "D6": "10",
    "D7": "10",
    "E": "11",
    "M": "12",
}
"""Where docs/theory.md has the identifiers of each letter, or one by itself."""


def _text(doc: str) -> list[str]:
    """A docstring as Markdown: paragraphs, examples, and what is indented as it stands."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", doc):
        if block.lstrip().startswith(">>>"):
            lines += ["```pycon", *inspect.cleandoc(block).splitlines(), "```", ""]
        elif block.startswith("    "):
            lines += ["```text", *inspect.cleandoc(block).splitlines(), "```", ""]
        else:
            lines += [*map(_escaped, block.splitlines()), ""]
    return lines
