"""Output folded to the width of a terminal; elsewhere lines stay whole, for programs that read them."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from typing import TextIO

import typer

from rue.cli.standard import writing_stdout

__all__ = ["columns", "cut", "folded", "say"]

WIDEST = 110
"""Where text is wrapped if no terminal says otherwise."""
_HANG = re.compile(r" *(?:\S+(?: \S+)* {2,})?")
"""The start of a line that its continuations leave free: the name in front of a text, or how far it is indented."""


def columns() -> int:
    """How wide stdout is."""
    return shutil.get_terminal_size((WIDEST, 24)).columns


def say(text: str) -> None:
    """Print to stdout."""
    with writing_stdout():
        typer.echo(folded(text, columns()) if sys.stdout.isatty() else text)


def folded(text: str, width: int) -> str:
    """Lines broken between words where they are too long, each continuation under the text of its line.

    >>> print(folded("members      48 members, most weight: second order", 34))
    members      48 members, most
                 weight: second order
    """
    return "\n".join(part for line in text.split("\n") for part in _folded(line, max(20, width)))


def _folded(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    start = _HANG.match(line)
    hang = start.end() if start is not None else 0
    if hang > width - 12:
        hang = 2
    return textwrap.wrap(line, width, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False) or [
        line
    ]


def cut(line: str, to: TextIO) -> str:
    """As much of a line as a terminal shows in one: a line that rewrites itself must not be longer."""
    try:
        width = os.get_terminal_size(to.fileno()).columns
    except (OSError, ValueError):
        return line
    return line if not width or len(line) < width else f"{line[: width - 2]}…"
