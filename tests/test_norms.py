"""Norms: against Python's own, and the same whatever the number of BLAS's threads."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from rue.norms import PIECE, norm


@pytest.mark.parametrize("size", [0, 1, 5, PIECE, PIECE + 1, 3 * PIECE + 17])
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_a_norm_is_that_of_the_standard_library(size, scale):
    v = np.random.default_rng(size).normal(size=size) * scale
    assert norm(v) == pytest.approx(math.hypot(*v), rel=1e-13)


def test_a_norm_does_not_depend_on_the_threads_of_blas():
    """A service and the replay of its log report the same bits, though they may run with other settings."""
    code = "import numpy as np; from rue.norms import norm; print(norm(np.random.default_rng(0).normal(size=500_003)))"
    environments = [{**os.environ, "OPENBLAS_NUM_THREADS": threads} for threads in ("1", "2")]
    printed = [subprocess.run([sys.executable, "-c", code], env=env, capture_output=True) for env in environments]
    assert printed[0].stdout
    assert printed[0].stdout == printed[1].stdout
