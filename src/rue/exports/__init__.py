"""Models that leave the house: the frozen model as JSON, as plain Python, as SQL, as ONNX.

`document` says everything that a frozen model is in JSON; `standalone` computes it without any package, and is the
program of an export to Python; `sql` and `onnx` write linear models for databases and for runtimes of ONNX; `export`
is what users call.
"""

from __future__ import annotations

from rue.exports.export import FORMS, export, exported

__all__ = ["FORMS", "export", "exported"]
