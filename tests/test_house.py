"""What holds for the tree as a whole: public names, docs that are up to date, links that lead somewhere."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import narrow
import rue

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "rue").rglob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def modules():
    return [path for path in SOURCES if path.name != "__init__.py"]


def test_all_is_sorted_and_equals_the_public_names():
    tree = ast.parse((ROOT / "src/rue/__init__.py").read_text())
    names = [node.names for node in tree.body if isinstance(node, ast.ImportFrom)]
    imported = {alias.asname or alias.name for aliases in names for alias in aliases}
    assert set(rue.__all__) == {name for name in imported if not name.startswith("_")} | {"__version__"}
    assert len(rue.__all__) == len(set(rue.__all__))
    for name in rue.__all__:
        assert getattr(rue, name) is not None


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.stem)
def test_every_module_lists_what_it_offers(path):
    tree = ast.parse(path.read_text())
    lists = [
        node for node in tree.body if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    ]
    assert len(lists) == 1
    offered = {element.value for element in lists[0].value.elts}
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assigned = {
        name.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    room = f"rue.{path.parent.name}."
    handed_on = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(room)
        for alias in node.names
    }
    assert offered <= defined | assigned | handed_on
    assert ast.get_docstring(tree)


def test_the_docstring_of_a_folder_lists_files_that_exist():
    for path in SOURCES:
        if path.name == "__init__.py":
            listed = re.findall(r"^- ((?:`\w+`(?:, )?)+): ", ast.get_docstring(ast.parse(path.read_text())), re.M)
            for name in re.findall(r"`(\w+)`", " ".join(listed)) if path.parent.name != "compiled" else []:
                assert (path.parent / f"{name}.py").exists(), f"{path.parent.name}: {name}"


def test_every_public_name_is_in_the_docs_and_they_are_up_to_date():
    sys.path.insert(0, str(ROOT / "docs"))
    import make_pages

    text = (ROOT / "docs/reference.md").read_text()
    assert text == make_pages.reference(), "run: make pages"
    for name in set(rue.__all__) - {"__version__"}:
        assert re.search(rf"`{name}\b", text), name


def public_callables():
    """Every public class and function, and each public method where it is first declared: name, it, its class."""
    offered = {name: getattr(rue, name) for name in rue.__all__ if name not in ("__version__", "Vector")}
    for name in [name for name, thing in offered.items() if inspect.ismodule(thing)]:
        module = offered.pop(name)
        offered |= {f"{name}.{inner}": getattr(module, inner) for inner in module.__all__}
    for name, thing in offered.items():
        yield name, thing, None
        if not isinstance(thing, type):
            continue
        inherited = {attribute for base in thing.__mro__[1:] for attribute in vars(base)}
        for attribute, value in vars(thing).items():
            method = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if inspect.isfunction(method) and not attribute.startswith("_") and attribute not in inherited:
                yield f"{name}.{attribute}", method, thing


PUBLIC = {name: (thing, owner) for name, thing, owner in public_callables()}
GREEK = {
    "alphas": "α",
    "delta": "δ",
    "epsilon": "ε",
    "eta": "η",
    "lambda_": "λ",
    "sigma": "σ",
    "tau": "τ",
    "theta": "θ",
}


def parameters_of(thing):
    if isinstance(thing, type) and issubclass(thing, Exception):
        return []
    kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    given = inspect.signature(thing).parameters.values()
    return [one.name for one in given if one.kind not in kinds and one.name not in ("self", "cls")]


def documented_fields(cls):
    """The names of fields that have a sentence below them."""
    source = inspect.getsource(cls) if isinstance(cls, type) and cls.__module__.startswith("rue") else ""
    return set(re.findall(r'^    (\w+)(?:: [^\n]+)\n    """', source, re.M))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_class_function_and_method_has_an_example(name):
    thing, owner = PUBLIC[name]
    own, around = thing.__doc__ or "", (owner.__doc__ or "") if owner is not None else ""
    calls = re.search(rf"^ *(>>>|\.\.\.) .*\b{name.split('.')[-1]}\(", around, re.M)
    assert ">>>" in own or calls, "show in the docstring how it is used"


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_of_what_is_public_is_mentioned(name):
    thing, owner = PUBLIC[name]
    text = "\n".join(one.__doc__ or "" for one in (thing, owner) if one is not None)
    words = set(re.findall(r"\w+", text)) | documented_fields(thing)
    missing = [
        one for one in parameters_of(thing) if not {one, GREEK.get(one)} & words and one.rstrip("_") not in words
    ]
    assert not missing, "say in the docstring what these are"


def test_the_reference_links_what_it_cites():
    import make_reference

    text = "".join(text for _, text in make_reference.pages())
    bare = re.sub(r"```.*?```|`[^`]*`|\[[^\]]*\]\(\.\./theory\.md#?[^)]*\)", "", text, flags=re.S)
    assert not [name for name in rue.theorems().ids if re.search(rf"(?<![\w\\]){name}(?!\w)", bare)]
    assert "docs/theory.md" not in bare
    assert "[B3](../theory.md#4-upper-bounds" in text


def test_the_reference_has_the_functions_of_public_modules():
    import make_reference

    text = "".join(text for _, text in make_reference.pages())
    inside = [name for name in PUBLIC if name.split(".")[0] in ("checks", "cluster") and PUBLIC[name][1] is None]
    assert {"checks.check_map", "cluster.advance"} <= set(inside)
    for name in inside:
        assert f"### {name}\n\n```text\nrue.{name}(" in text, name


def test_the_table_of_theorems_is_up_to_date():
    import make_pages

    text = (ROOT / "docs/theorems.md").read_text()
    assert text == make_pages.theorems(), "run: make pages"
    by_letter = sorted(rue.theorems().ids, key=lambda name: "QVABCDEPM".index(name[0]))
    assert re.findall(r"^\| ([A-Z]\d+) \|", text, re.M) == by_letter


def test_the_picture_shows_what_make_run_prints():
    import html

    from snippets import differs

    printed = subprocess.run(
        [sys.executable, ROOT / "examples/first_run.py"], capture_output=True, text=True, check=True
    ).stdout
    shown = html.unescape(
        "\n".join(re.findall(r"<text[^>]*preserve\">(.*?)</text>", (ROOT / "docs/report.svg").read_text()))
    )
    assert not differs(shown, printed), "run: make pictures"
    assert "no linear model of norm ≤ 10" in shown


def test_the_pages_are_run_as_on_an_old_processor_too():
    planned = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.search(r"tests/narrow\.py .*tests/test_docs\.py", planned)
    code = (
        "import numpy\n"
        "from numba.core.registry import cpu_target\n"
        "print(cpu_target.target_context.codegen().magic_tuple()[1])\n"
        "print(*numpy.show_config(mode='dicts')['SIMD Extensions'].get('found', []))\n"
    )
    env = {**os.environ, **narrow.settings()}
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == ["generic", ""]


def test_links_between_the_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", rue.__version__)
