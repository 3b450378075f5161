"""The docs run: every block of every page, the notebook, and the site builds without a warning."""

import inspect
import json
import re
import subprocess
import sys

import make_reference
import pytest
from make_tour import cells_of, figure_of
from snippets import Page, blocks_of, differs

from conftest import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TOUR = ROOT / "docs/tour.md"
GENERATED = {ROOT / f"docs/api/{name}.md" for name in make_reference.GROUPS}
"""From docstrings, whose examples are doctests."""
WITH_CODE = [
    page
    for page in PAGES
    if page != TOUR and page not in GENERATED and any(not block.reason for block in blocks_of(page.read_text()))
]


def options(page):
    """What stands in the first column of the tables of a page about a peer, piece by piece."""
    rows = re.findall(r"^\| (?!vw |River |scikit-learn |---)([^|]+?) \|", page.read_text(), re.M)
    return [piece for row in rows for piece in re.findall(r"`([^`]+)`", row)]


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_of_the_docs_runs_and_prints_what_it_shows(path, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("MPLBACKEND", "agg")
    folder, commands = tmp_path / "page", tmp_path / "bin"
    folder.mkdir()
    commands.mkdir()
    for block, shown, printed, _ in Page(path, folder, commands).outputs():
        command = f"python docs/make_pages.py {path.relative_to(ROOT)}"
        assert not differs(shown, printed), f"{path.name}, line {block.line}: run {command}"


def test_the_notebook_runs_from_top_to_bottom_and_is_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = json.loads((ROOT / "docs/tour.ipynb").read_text())["cells"]
    wanted = [(kind, source) for kind, source, _, _ in cells_of(TOUR.read_text())]
    cells_there = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    assert cells_there == wanted, "run python docs/make_pages.py docs/tour.md"
    page = Page(TOUR, tmp_path, tmp_path)
    for cell in cells:
        if cell["cell_type"] == "markdown":
            continue
        source, outputs = "".join(cell["source"]), cell["outputs"]
        printed, figure = figure_of(page, source)
        shown = "".join(line for out in outputs for line in out.get("text", ()))
        assert not differs(shown, printed), f"run python docs/make_pages.py docs/tour.md\n{source}"
        assert (figure is not None) == any("data" in out for out in outputs), source
    for _, _, _, picture in cells_of(TOUR.read_text()):
        assert not picture or (ROOT / "docs" / picture).stat().st_size > 5000


def test_the_site_builds_without_a_warning(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for page in ("index", "start", "jobs/certify", "api/learners", "decisions/index", "changes"):
        text = (tmp_path / "site" / f"{page}.html").read_text()
        assert "--8&lt;--" not in text
        assert "<h1" in text


@pytest.mark.parametrize("which", make_reference.GROUPS)
def test_the_reference_is_up_to_date(which):
    kept = (ROOT / f"docs/api/{which}.md").read_text()
    assert kept == make_reference.page(which), "run: make pages"


def test_every_decision_is_listed():
    import make_pages

    assert (ROOT / "docs/decisions/index.md").read_text() == make_pages.decisions(), "run: make pages"


def test_options_of_vowpal_wabbit_exist():
    said = subprocess.run([sys.executable, "-m", "vowpalwabbit", "--help"], capture_output=True, text=True).stdout
    flags = {word for option in options(ROOT / "docs/from/vw.md") for word in re.findall(r"(?<!\w)--?\w+", option)}
    assert len(flags) > 40
    for flag in flags:
        assert re.search(rf"(?:^|[\s,]){re.escape(flag)}(?=[\s,])", said), flag


def test_parameters_of_scikit_learn_exist():
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    known = {name for cls in (SGDClassifier, SGDRegressor) for name in inspect.signature(cls).parameters}
    text = (ROOT / "docs/from/sklearn.md").read_text()
    named = {
        piece.split("=")[0] for piece in options(ROOT / "docs/from/sklearn.md") if re.match(r"[a-z]\w*(=|$)", piece)
    }
    elsewhere = {"sample_weight", "coef_", "intercept_", "classes_", "cross_val_score", "train_test_split"}
    elsewhere |= {"confusion_matrix", "f1_score", "get_feature_names_out", "mean_absolute_error", "roc_auc_score"}
    assert named - elsewhere <= known, named - elsewhere - known
    for name in known - {"verbose"}:
        assert f"`{name}" in text, f"{name} has no row"


def test_names_of_river_exist():
    import river.compose
    import river.evaluate
    import river.feature_extraction
    import river.linear_model
    import river.optim
    import river.preprocessing

    dotted = [piece.split("(")[0] for piece in options(ROOT / "docs/from/river.md") if "." in piece]
    assert len(dotted) > 10
    for name in dotted:
        if name.startswith(("copy.", "pickle")):
            continue
        thing = river
        for part in name.split("."):
            thing = getattr(thing, part)


def test_a_page_that_shows_something_else_is_noticed(tmp_path):
    assert not differs("risk 0.3292, in 1.2 s\n", "risk 0.3293,  in 99 s\n")
    assert not differs("a ... d", "a b c d")
    assert differs("risk 0.3292", "risk 0.3312")
    assert not differs("below 0.56...", "below 0.5644 of it")
    assert differs("below 0.56...", "below 0.5744 of it")
    assert differs("56 rows", "57 rows")
    assert differs("yes", "no")
    assert differs("a ... d", "a b c")
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one\ntwo\n```\n\n```python\nprint(3)\n```\n\n```text\n4\n```\n")
    found = [differs(shown, printed) for _, shown, printed, _ in Page(page, tmp_path, tmp_path).outputs()]
    assert len(found) == 2
    assert all(found)
    page.write_text("```console\n$ false\n```\n")
    with pytest.raises(AssertionError, match="it left with 1, not 0"):
        list(Page(page, tmp_path, tmp_path).outputs())
    page.write_text("```fortran\n      END\n```\n")
    with pytest.raises(AssertionError, match="say what it is"):
        list(Page(page, tmp_path, tmp_path).outputs())
