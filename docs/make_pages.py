"""Writes what is generated among the docs; a test checks that it has been run.

    python docs/make_pages.py                 everything below but the last
    python docs/make_pages.py --text          the generated pages, in seconds (`make pages`)
    python docs/make_pages.py --pictures      the pictures, for which the census is learnt (`make pictures`)
    python docs/make_pages.py docs/start.md   what the code of some pages prints, filled in

`reference.md` lists every public name with the first sentence of its docstring; `theorems.md` every theorem with its
source and the notes' misprints, `notes.md` the notes in their own order with what runs each item; `report.svg` shows
what `make run` prints; `regret.svg`, `risk.svg` and `certificate.svg` are pictures of runs on the census.
"""

from __future__ import annotations

import argparse
import html
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import make_notes
import make_tour
from make_reference import anchor, group, pages
from snippets import Page, filled

import rue
from rue.pictures.figures import save
from rue.registry import registered

DOCS = Path(__file__).parent


def sentence(thing: object) -> str:
    """The first paragraph of a docstring, on one line, fit for a table."""
    paragraph = (inspect.getdoc(thing) or "").split("\n\n")[0]
    return " ".join(paragraph.split()).replace("|", "\\|")


def reference() -> str:
    """Every public name, by what it is."""
    kinds = {
        "Learners": lambda thing: thing in registered("learner").values() or thing is rue.Learner,
        "Losses": lambda thing: _is(thing, rue.Loss) or thing in (rue.Regularised, rue.Indicator),
        "Domains": lambda thing: _is(thing, rue.Domain) or thing is rue.Interval,
        "Steps": lambda thing: _is(thing, rue.Step),
        "Averages": lambda thing: _is(thing, rue.Average),
        "Errors": lambda thing: _is(thing, rue.RueError),
    }
    left = [name for name in rue.__all__ if name != "__version__"]
    parts = ["# Reference", "", "Every public name; each leads to its formula, its parameters and an example.", ""]
    for title, belongs in {**kinds, "Everything else": lambda thing: True}.items():
        here = [name for name in left if belongs(getattr(rue, name))]
        left = [name for name in left if name not in here]
        parts += [f"## {title}", "", "| name | what it is |", "|---|---|"]
        parts += [
            f"| [`{_signature(name)}`](api/{group(name)}.md#{anchor(name)}) "
            f"| {_value(name) or sentence(getattr(rue, name))} |"
            for name in here
        ]
        parts.append("")
    parts += ["## Specs", "", "Wherever an object is wanted, a string will do.", "", "| kind | names |", "|---|---|"]
    for kind in ("learner", "loss", "domain", "step", "map", "average", "opponent"):
        parts.append(f"| {kind} | {', '.join(f'`{name}`' for name in sorted(registered(kind)))} |")
    return "\n".join(parts) + "\n"


def _is(thing: object, cls: type) -> bool:
    return isinstance(thing, type) and issubclass(thing, cls)


def _value(name: str) -> str:
    return (
        "A field that holds numbers: whatever is given becomes a read-only float64 array." if name == "Vector" else ""
    )


def _signature(name: str) -> str:
    thing = getattr(rue, name)
    if not callable(thing) or name == "Vector" or _is(thing, rue.RueError):
        return name
    try:
        names = [p.name for p in inspect.signature(thing).parameters.values() if p.name != "self"]
    except ValueError:
        return name
    return f"{name}({', '.join(names)})"


def theorems() -> str:
    """Every identifier of docs/theory.md: its statement, where the lecture notes have it, and what they misprint."""
    kinds = {
        "Q": "The protocol",
        "V": "Convexity",
        "A": "Algorithms",
        "B": "Upper bounds",
        "C": "Opponents",
        "D": "Certificates",
        "E": "Coverage and calibration",
        "P": "Steps of proofs",
        "M": "Maps",
    }
    parts = [
        "# Theorems",
        "",
        "Everything rue computes rests on these; [Theory](theory.md) has them in full. Each can be tested by a run: it",
        "makes data, runs the library on them, and says what was claimed, what was observed, and whether it holds.",
        "`notes 000` to `notes 004` are the lecture notes from which rue began, [line by line](notes.md) on a page of",
        "their own. They are not part of rue, and nothing here needs them. Where they misprint something that a number",
        "can refute, the run shows that the printed version fails and the right one holds.",
        "",
        "```python",
        "import rue",
        "",
        'proof = rue.theorems()["B10"].run()',
        "assert proof.holds",
        "print(proof)  # what was done, and every comparison",
        "print(rue.theorems())  # all of them",
        "```",
        "",
    ]
    listed = rue.theorems()
    for letter, title in kinds.items():
        parts += [f"## {title}", "", "| id | statement | source | misprint |", "|---|---|---|---|"]
        parts += [
            f'| {one.id} | <a id="{one.id.lower()}"></a>{_cell(one.statement)} | {_cell(one.source)} '
            f"| {_cell(one.misprint)} |"
            for one in listed
            if one.id[0] == letter
        ]
        parts.append("")
    return "\n".join(parts[:-1]) + "\n"


def _cell(text: str) -> str:
    """Fit for a table of Markdown."""
    return re.sub(r"([|*_\\])", r"\\\1", html.escape(text, quote=False))


def decisions() -> str:
    """The pages of decisions, by their titles."""
    lines = ["# Decisions", "", "One page for each choice that someone may want to reverse.", ""]
    for path in sorted((DOCS / "decisions").glob("0*.md")):
        title = path.read_text().splitlines()[0].removeprefix("# ")
        lines.append(f"- {path.name[:4]} [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def picture(text: str) -> str:
    """A terminal's text as an SVG."""
    lines = [
        piece for line in text.splitlines() for piece in (textwrap.wrap(line, 108, subsequent_indent="    ") or [""])
    ]
    height = 22 * len(lines) + 60
    rows = "".join(
        f'<text x="24" y="{64 + 22 * i}" xml:space="preserve">{html.escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    dots = "".join(
        f'<circle cx="{24 + 20 * i}" cy="22" r="6" fill="{c}"/>' for i, c in enumerate(("#f66", "#fb4", "#4c6"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 980 {height}" font-family="ui-monospace, Menlo, '
        f'DejaVu Sans Mono, monospace" font-size="14.5">'
        f'<rect width="980" height="{height}" rx="10" fill="#1b1f27"/>{dots}'
        f'<text x="100" y="27" fill="#8b95a5">make run</text><g fill="#e6e9ef">{rows}</g></svg>\n'
    )


def masked(text: str) -> str:
    """The report without its time, which differs from run to run."""
    return re.sub(r"in \d+\.\d+ s", "in 1.30 s", text)


def write_text() -> None:
    """The reference, the theorems, the map of the notes, the list of decisions and the pages of the API."""
    (DOCS / "reference.md").write_text(reference())
    (DOCS / "theorems.md").write_text(theorems())
    (DOCS / "notes.md").write_text(make_notes.page())
    (DOCS / "decisions" / "index.md").write_text(decisions())
    for name, text in pages():
        (DOCS / "api" / f"{name}.md").write_text(text)


def write_pictures() -> None:
    """Runs on the census, and what `make run` prints."""
    pictures(DOCS)
    command = [sys.executable, DOCS.parent / "examples" / "first_run.py"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (DOCS / "report.svg").write_text(picture(masked(printed)))


def pictures(folder: Path) -> None:
    """Three pictures of runs on the census."""
    X, y = rue.census()
    audited = rue.audit(rue.OGD("hinge", "ball:10"), X, y)
    run = rue.learn(X, y, units="largest", witnesses=[1, 10])
    drawn = {
        "regret": rue.plot_regret(audited),
        "risk": rue.plot_risk(audited),
        "certificate": rue.plot_certificate(run),
    }
    for name, ax in drawn.items():
        save(ax.figure, folder / f"{name}.svg")


def fill(path: Path) -> None:
    """Run a page and write what its code prints into it."""
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder, name) for name in ("page", "bin")]
        for place in places:
            place.mkdir()
        path.write_text(filled(Page(path, *places)))
        if path.name == "tour.md":
            make_tour.make(path, places[1])
        if path.name == "start.md":
            shutil.copy(places[0] / "visits.svg", DOCS / "start.svg")
        if path.name == "change.md":
            shutil.copy(places[0] / "windows.svg", DOCS / "jobs" / "change.svg")
        if path.name == "sure.md":
            shutil.copy(places[0] / "sure.svg", DOCS / "jobs" / "sure.svg")


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    parser = argparse.ArgumentParser(description="Write what is generated among the docs.")
    parser.add_argument("--text", action="store_true", help="the generated pages")
    parser.add_argument("--pictures", action="store_true", help="the pictures")
    parser.add_argument("pages", nargs="*", type=Path, help="pages whose code is to be run and its output filled in")
    asked = parser.parse_args()
    everything = not (asked.text or asked.pictures or asked.pages)
    if asked.text or everything:
        write_text()
    if asked.pictures or everything:
        write_pictures()
    for page in asked.pages:
        fill(page.resolve())
