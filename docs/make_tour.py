"""The tour as a notebook: `tour.ipynb` and the pictures in `tour/`, from `tour.md`, whose code is run.

Its code cells are the `python` blocks; a `text` block and a picture right after one are what the cell gives.
"""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

from snippets import Block, Page, blocks_of

from rue.pictures.figures import save

__all__ = ["cells_of", "figure_of", "make"]

PICTURE = re.compile(r"\n*!\[[^\]]*\]\((tour/[\w-]+\.svg)\)\n")


def cells_of(text: str) -> list[tuple[str, str, str, str]]:
    """Of each cell: its kind, its source, the text it prints and the name of its picture."""
    found: list[tuple[str, str, str, str]] = []
    at = 0
    blocks = blocks_of(text)
    for i, block in enumerate(blocks):
        start, end = text.rindex("```python", 0, block.span[0] + 1) if block.language == "python" else -1, block.span[1]
        if start < 0:
            continue
        if text[at:start].strip():
            found.append(("markdown", text[at:start].strip(), "", ""))
        at, printed = end + 4, ""
        if i + 1 < len(blocks) and blocks[i + 1].language == "text" and blocks[i + 1].after:
            printed, at = blocks[i + 1].body, blocks[i + 1].span[1] + 4
        picture = PICTURE.match(text, at)
        found.append(("code", block.body.strip(), printed, picture[1] if picture else ""))
        at = picture.end() if picture else at
    return [*found, ("markdown", text[at:].strip(), "", "")]


def figure_of(page: Page, source: str) -> tuple[str, Any]:
    """What a cell prints and the figure it leaves behind, if any."""
    import matplotlib.pyplot as plt

    printed = page.python(Block("python", source, 0))
    value = page.scope["_"]
    figure = value if hasattr(value, "savefig") else plt.gcf() if plt.get_fignums() else None
    plt.close("all")
    return printed, figure


def make(path: Path, folder: Path) -> None:
    """Run the tour; write its pictures and the notebook."""
    page = Page(path, folder, folder)
    cells = []
    for number, (kind, source, printed, picture) in enumerate(cells_of(path.read_text())):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
        if kind == "code":
            _, figure = figure_of(page, source)
            outputs: list[Any] = []
            if printed:
                lines = printed.splitlines(keepends=True)
                outputs.append({"name": "stdout", "output_type": "stream", "text": lines})
            if picture:
                save(figure, path.parent / picture)
                outputs.append({"data": _image(figure), "metadata": {}, "output_type": "display_data"})
            cell |= {"execution_count": None, "outputs": outputs}
        cells.append({**cell, "source": source.splitlines(keepends=True)})
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    made = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    path.with_suffix(".ipynb").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")


def _image(figure: Any) -> dict[str, str]:
    with io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=80, metadata={"Software": None})
        return {"image/png": base64.b64encode(file.getvalue()).decode() + "\n", "text/plain": ["<Figure>"]}
