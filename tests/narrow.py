"""Runs pytest as on an old processor: `python tests/narrow.py`, followed by arguments of pytest.

With narrower vectors, or without fused multiplications and additions, sums are added up in another order and the last
digits of a result differ; so must no page and no test depend on them. The libraries read these settings when they are
loaded, hence the new process.
"""

import os
import platform
import sys

import numpy as np

__all__ = ["settings"]

FEATURES = ("AVX", "AVX2", "AVX512F", "FMA", "FMA4")
"""What the C library's mathematics chooses by."""


def settings():
    """The environment in which Numba, NumPy, BLAS, Arrow and the C library use what every processor of the kind has."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    disabled = os.environ.get("NPY_DISABLE_CPU_FEATURES", "").split()
    narrow = {
        "NUMBA_CPU_NAME": "generic",
        "NPY_DISABLE_CPU_FEATURES": " ".join([*disabled, *found]),
        "ARROW_USER_SIMD_LEVEL": "NONE",
    }
    if platform.machine().lower() in ("x86_64", "amd64"):
        narrow["OPENBLAS_CORETYPE"] = "Prescott"
        narrow["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=" + ",".join(f"-{name}" for name in FEATURES)
    return narrow


if __name__ == "__main__":
    os.execve(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]], {**os.environ, **settings()})
