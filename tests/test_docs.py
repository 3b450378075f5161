"""The docs run: every block of every page, the notebook, and the site builds without a warning."""

import re
import subprocess
import sys

import pytest
from snippets import Page, blocks_of, differs

from conftest import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if any(not block.reason for block in blocks_of(page.read_text()))]


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_of_the_docs_runs_and_prints_what_it_shows(path, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("MPLBACKEND", "agg")
    folder, commands = tmp_path / "page", tmp_path / "bin"
    folder.mkdir()
    commands.mkdir()
    for block, shown, printed, _ in Page(path, folder, commands).outputs():
        assert not differs(shown, printed), f"{path.name}, line {block.line}: run python docs/make_pages.py"
