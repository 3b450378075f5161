"""Runs the code of a page: the tests do it, and `make_pages` to fill in what the pages show as printed.

The blocks of a page share a namespace and a folder, which is empty at first. A `python` block is executed; a `text`
block right after it is what it prints. In a `console` block every line that begins with `$ ` is a command and what
follows is what it prints, on stdout, or on stderr too if it fails. An `sh` block is a script. Two comments are heard:

    <!-- not run: the reason -->    before a block that is shown only
    <!-- exit 1 -->                 before a console block whose commands must leave with this code
    <!-- first: … -->               Python that makes what the page takes for granted

Printed numbers may differ by a thousandth, times and rates by anything, and `...` stands for any text.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import glob
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["Block", "Page", "blocks_of", "differs", "filled"]

RUN, SHOWN = ("python", "console", "sh"), ("text", "pycon", "bibtex")
FENCE = re.compile(
    r"^<!-- first:\n(?P<first>.*?)^-->$"
    r"|^(?P<indent> *)```(?P<language>[a-z]*)[^\n]*\n(?P<body>.*?)^(?P=indent)```$",
    re.M | re.S,
)
NUMBER = re.compile(r"(?<![\w.])[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
TIMES = re.compile(
    r"\d[\d,.]* s in all, .* examples a second"  # which says so where kernels had to be compiled
    r"|\d[\d,.]*(?= s\b| examples a second)"
    r"|\d{4}-\d\d-\d\dT[\d:]+(?:\+\d\d:\d\d)?"
    r"|(?<=  )\d+\.\d\d(?=$|  )",  # the column of seconds in a race
    re.M,
)


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of code, or of what the one before prints."""

    language: str
    body: str
    line: int
    reason: str = ""
    """Why it is not run."""
    code: int = 0
    """What its commands must leave with."""
    span: tuple[int, int] = (0, 0)
    """Where its body stands in the page."""
    after: bool = False
    """Whether nothing stands between it and the block before."""


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page of Markdown."""
    found, end = [], 0
    for match in FENCE.finditer(text):
        before = text[end : match.start()]
        said = re.search(r"<!-- (?:not run: (.+)|exit (\d+)) -->\s*\Z", before)
        name = "body" if match["first"] is None else "first"
        indent = match["indent"] or ""
        body = "".join(line.removeprefix(indent) for line in match[name].splitlines(keepends=True))
        found.append(
            Block(
                "python" if name == "first" else match["language"],
                body,
                text.count("\n", 0, match.start()) + 1,
                (said and said[1]) or "",
                int((said and said[2]) or 0),
                match.span(name),
                not before.strip(),
            )
        )
        end = match.end()
    return found


def differs(wanted: str, printed: str) -> str:
    """What is wrong with what was printed; nothing if it is as the page shows it."""
    wanted, printed = (" ".join(TIMES.sub("_", text).split()) for text in (wanted, printed))
    parts, numbers, at = [], [], 0
    for match in re.finditer(rf"\.\.\.|{NUMBER.pattern}", wanted):
        parts.append(re.escape(wanted[at : match.start()]))
        parts.append(".*?" if match[0] == "..." else f"({NUMBER.pattern})")
        numbers += [] if match[0] == "..." else [match[0]]
        at = match.end()
    parts.append(re.escape(wanted[at:]))
    found = re.fullmatch("".join(parts), printed, re.S)
    if found is None:
        return f"the page shows\n{wanted}\nand this was printed\n{printed}"
    for one, other in zip(numbers, found.groups(), strict=True):
        a, b = (float(text.replace(",", "").replace("−", "-")) for text in (one, other))
        if abs(a - b) > max(1e-3 * max(abs(a), abs(b)), _last_place(one)):
            return f"the page shows {one} and {other} was printed, in\n{printed}"
    return ""


def _last_place(number: str) -> float:
    """One unit of the last decimal shown: a page that shows 0.56 does not claim the third decimal."""
    decimals = re.search(r"\.(\d+)$", number)
    return 1.001 * 10.0 ** -len(decimals[1]) if decimals else 0.0  # 1.001: 0.57 - 0.56 is more than 0.01


@dataclasses.dataclass
class Page:
    """A page at work: its namespace, its folder, and the folder with the commands it may call."""

    path: Path
    folder: Path
    commands: Path
    scope: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scope["__name__"] = self.path.stem
        for name, module in (("rue", "rue"), ("vw", "vowpalwabbit")):
            launcher = self.commands / name
            launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n')
            launcher.chmod(0o755)

    def outputs(self) -> Iterator[tuple[Block, str, str, tuple[int, int]]]:
        """Runs the page; of every output it shows: the block, what is shown, what was printed, and where it stands."""
        printed = ""
        with contextlib.chdir(self.folder):
            for block in blocks_of(self.path.read_text()):
                where = f"{self.path.name}, line {block.line}"
                if block.language not in RUN + SHOWN:
                    raise AssertionError(f"{where}: say what it is, one of {', '.join(RUN + SHOWN)}")
                if block.reason or block.language == "pycon":
                    printed = ""
                elif block.language == "python":
                    printed = self.python(block)
                elif block.language == "sh":
                    printed = self.shell(block.body, block.code, where)
                elif block.language == "console":
                    for command, shown, span in sessions(block):
                        printed = self.command(command, block.code, where)
                        if shown.strip():
                            yield block, shown, printed, span
                elif block.after and printed:
                    yield block, block.body, printed, block.span

    def python(self, block: Block) -> str:
        """What a block prints; the value of its last line, if it is an expression, is kept in `scope["_"]`."""
        tree = ast.parse("\n" * block.line + block.body, str(self.path))
        last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
        with io.StringIO() as out, contextlib.redirect_stdout(out):
            exec(compile(tree, str(self.path), "exec"), self.scope)
            self.scope["_"] = last and eval(compile(last, str(self.path), "eval"), self.scope)
            return out.getvalue()

    def command(self, line: str, code: int, where: str) -> str:
        """What a command prints; `rue` alone runs in this process, which saves the start of another."""
        words = [name for word in shlex.split(line) for name in (sorted(glob.glob(word)) if "*" in word else [word])]
        if words[0] != "rue" or any(mark in line for mark in "|<>;&$\\"):
            return self.shell(line, code, where)
        from rue.cli.app import main

        streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
        left: Any = 0
        before, sys.argv = sys.argv, words
        try:
            with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
                main()
        except SystemExit as leaving:
            left = leaving.code
        finally:
            sys.argv = before
        out, err = (stream.buffer.getvalue().decode() for stream in streams)
        return checked(out, err, left or 0, code, f"{where}: {line}")

    def shell(self, script: str, code: int, where: str) -> str:
        """What a script prints."""
        path = f"{self.commands}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": path},
            timeout=600,
        )
        return checked(done.stdout, done.stderr, done.returncode, code, f"{where}: {script}")


def sessions(block: Block) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """The commands of a console block, what it shows of each, and where that stands in the page."""
    found = list(re.finditer(r"^\$ ((?:.*\\\n)*.*)\n", block.body, re.M))
    ends = [match.start() for match in found[1:]] + [len(block.body)]
    for match, end in zip(found, ends, strict=True):
        start = block.span[0]
        yield match[1], block.body[match.end() : end], (start + match.end(), start + end)


def checked(out: str, err: str, left: int, code: int, where: str) -> str:
    """What was printed, if the command left as it should."""
    if left != code:
        raise AssertionError(f"{where}: it left with {left}, not {code}:\n{out}{err}")
    return out if code == 0 else out + err


def filled(page: Page) -> str:
    """The page with what its code prints now, where that differs from what it shows."""
    text, shift = page.path.read_text(), 0
    for _, shown, printed, (start, end) in page.outputs():
        if differs(shown, printed):
            new = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines()) + "\n"
            text = text[: start + shift] + new + text[end + shift :]
            shift += len(new) - (end - start)
    return text
