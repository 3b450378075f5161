"""`rue.export`: a frozen model in a form that others read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rue.errors import SettingsError, shown
from rue.exports import standalone
from rue.exports.document import document_of
from rue.models.file import load_model, model_of
from rue.outputs import write_file
from rue.version import __version__

__all__ = ["FORMS", "export", "exported"]


def as_json(document: dict[str, Any], table: str) -> bytes:
    """The document itself."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    return text.encode("utf-8", "backslashreplace") + b"\n"  # \ud800 is what JSON calls half a character too


def as_python(document: dict[str, Any], table: str) -> bytes:
    """A program: `rue.exports.standalone` and the document."""
    source = Path(standalone.__file__).read_text(encoding="utf-8")
    text = json.dumps(document, allow_nan=False)
    return f"""{source}

# What follows was made by rue {__version__}; what is above reads it.

MODEL = Model(json.loads({text!r}))
score, predict = MODEL.score, MODEL.predict

if __name__ == "__main__":
    serve(MODEL)
""".encode()


def as_sql(document: dict[str, Any], table: str) -> bytes:
    """A script for SQLite and DuckDB."""
    from rue.exports.sql import script

    return script(document, table).encode()


def as_onnx(document: dict[str, Any], table: str) -> bytes:
    """A graph."""
    from rue.exports.onnx import graph

    return graph(document)


FORMS: dict[str, tuple[str, Callable[[dict[str, Any], str], bytes]]] = {
    "json": (".json", as_json),
    "onnx": (".onnx", as_onnx),
    "python": (".py", as_python),
    "sql": (".sql", as_sql),
}
"""What a model may be exported to: the suffix of such files, and what writes them."""


def export(what: Any, path: str | os.PathLike[str], to: str | None = None, *, table: str = "examples") -> None:
    """Write the frozen model of a run, a model, a model file, a learner or an estimator for use without rue.

    score = clip(Σ w_j·x_j + b), to 1e-9 what `rue predict` writes. Staged models are written as Python and JSON only.

    Parameters
    ----------
    what
        As for `rue.weights_of`.
    path
        Where to.
    to
        "onnx", "json", "sql" or "python"; by default the suffix of `path` says it (.py is Python).
    table
        What the view of an SQL script reads.

    >>> import os, rue, tempfile
    >>> run = rue.learn([[1.0, 2.0], [3.0, -1.0]], [1, -1], learner=rue.Perceptron(intercept=False))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rue.export(run, os.path.join(folder, "model.json"))
    ...     "weights" in Path(folder, "model.json").read_text()
    True

    docs/jobs/export.md.

    """
    write_file(path, exported(what, form_of(path, to), table))


def exported(what: Any, to: str, table: str = "examples") -> bytes:
    """What `export` writes."""
    model = load_model(what) if isinstance(what, str | os.PathLike) else model_of(what)
    return FORMS[to][1](document_of(model), table)


def form_of(path: str | os.PathLike[str] | None, to: str | None) -> str:
    """What to export to: as asked for, or by the suffix of a file.

    >>> form_of("model.py", None), form_of("model", "sql")
    ('python', 'sql')
    """
    suffix = "" if path is None else Path(path).suffix.lower()
    found = to if to is not None else next((form for form, (own, _) in FORMS.items() if own == suffix), None)
    if found not in FORMS:
        given = "" if to is None else f", not {shown(to)}"
        raise SettingsError(f"export: say what to export to, {', '.join(list(FORMS)[:-1])} or sql (--to){given}.")
    return found
