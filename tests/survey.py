"""Measures the house: `python tests/survey.py [FOLDER …]` prints a table, a column for each checkout."""

import ast
import io
import statistics
import sys
import tokenize
import tomllib
from pathlib import Path

LONG = 40
FAMILIES = {"Algorithm", "Average", "ClassLearner", "CountLoss", "Domain", "Learner", "Loss", "MarginLoss", "Step"}
"""Classes that stand for a whole kind, so that asking for one of them is no test of a concrete type."""


class Module:
    """One source file, and what its lines are."""

    def __init__(self, path):
        self.path = path
        text = path.read_text()
        self.tree = ast.parse(text)
        lines = text.splitlines()
        documented = [node for node in ast.walk(self.tree) if isinstance(node, ast.Expr) and _is_text(node.value)]
        self.docstrings = {at for node in documented for at in range(node.lineno, node.end_lineno + 1)}
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        self.comments = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
        alone = {at for at in self.comments if lines[at - 1].lstrip().startswith("#")}
        blank = {at for at, line in enumerate(lines, 1) if not line.strip()}
        self.length = len(lines)
        self.code = set(range(1, len(lines) + 1)) - self.docstrings - alone - blank

    def long_functions(self):
        """(name, lines of code) of each function with more than 40 of them."""
        functions = (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        sizes = ((node.name, len(self.code & set(range(node.lineno, node.end_lineno + 1)))) for node in functions)
        return [(name, size) for name, size in sizes if size > LONG]

    def classes(self):
        """The names of the classes in it."""
        return {node.name for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)}

    def type_tests(self, concrete):
        """The lines that ask for one of these classes."""
        return [
            node.lineno
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call)
            and getattr(node.func, "id", "") in ("isinstance", "issubclass")
            and concrete & {getattr(name, "id", "") for name in ast.walk(node.args[1])}
        ]


def _is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def survey(root):
    """The measures of a checkout, by name, and its functions over 40 lines."""
    top = root / "src" / "rue"
    modules = [Module(path) for path in sorted(top.rglob("*.py"))]
    rooms = [module for module in modules if module.path.parent == top and not module.path.stem.startswith("_")]
    kinds = [m for m in modules if m.path.relative_to(top).parts[0] in ("losses", "domains", "steps", "learners")]
    concrete = set().union(*(module.classes() for module in kinds)) - FAMILIES
    layers = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    lines = sum(module.length for module in modules)
    long = [(m.path.relative_to(top), *function) for m in modules for function in m.long_functions()]
    tests = [(m.path.relative_to(top), line) for m in modules for line in m.type_tests(concrete)]
    return {
        "modules at the top": len(rooms),
        "layers": len(layers),
        "files": len(modules),
        "median length of a file": round(statistics.median(module.length for module in modules)),
        "lines": lines,
        "lines of code": sum(len(module.code) for module in modules),
        "docstrings, % of the lines": round(100 * sum(len(module.docstrings) for module in modules) / lines, 1),
        "comments, % of the lines": round(100 * sum(len(module.comments) for module in modules) / lines, 1),
        "tests of concrete types": len(tests),
        f"functions over {LONG} lines": len(long),
    }, [*long, *tests]


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "--list"]
    surveys = [survey(Path(folder)) for folder in given or [Path(__file__).parents[1]]]
    for name in surveys[0][0]:
        print(f"| {name} |", " | ".join(f"{measures[name]:,}" for measures, _ in surveys), "|")
    if "--list" in sys.argv:
        for row in surveys[-1][1]:
            print(*row)
