"""What the compiler is spared must not show: not in Numba afterwards, and not in what kernels compute."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core import compiler, config, errors, types
from numba.core.registry import cpu_target

import rue
from rue._shortcuts import undisturbed

compiling = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")


def _numbas_own() -> list[object]:
    own = [vars(types.Function).get("get_call_type"), vars(compiler.Flags).get("__eq__")]
    contexts = cpu_target.typing_context, cpu_target.target_context, errors.termcolor()
    return own + [sorted(vars(context)) for context in contexts] + [gc.isenabled()]


def test_numba_is_as_it_was_afterwards():
    before = _numbas_own()
    with undisturbed():
        assert _numbas_own() != before
    assert _numbas_own() == before


def test_numba_is_as_it_was_after_an_error():
    before = _numbas_own()
    with pytest.raises(ZeroDivisionError), undisturbed():
        raise ZeroDivisionError
    assert _numbas_own() == before


def test_garbage_stays_uncollected_where_the_user_wants_it_so():
    gc.disable()
    try:
        with undisturbed():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@compiling
def test_what_the_user_compiles_before_during_and_after_is_numbas_affair():
    @numba.njit
    def mean(x):
        return x.sum() / x.size

    assert mean(np.arange(5.0)) == 2.0
    with undisturbed():
        assert mean(np.arange(5)) == 2.0
    assert mean(np.arange(5, dtype=np.float32)) == 2.0


@compiling
@pytest.mark.parametrize("learner", ["mixture", "ogd:hinge", "adagrad:logistic"])
def test_a_kernel_compiled_without_them_gives_the_same_bits(learner, tmp_path):
    code = (
        "import contextlib, sys, numpy as np, rue, rue._jit\n"
        "if sys.argv[1] == 'without':\n"
        "    rue._jit.undisturbed = contextlib.nullcontext\n"
        "X = np.random.default_rng(3).normal(size=(300, 5))\n"
        f"run = rue.learn(X, np.sign(X[:, 0] - X[:, 1] * X[:, 2]), learner={learner!r})\n"
        "print(run.risk.hex(), run.learner.predict_many(X).tobytes().hex())\n"
    )
    seen = set()
    for how in ("with", "without"):
        env = {**os.environ, "RUE_CACHE_DIR": str(tmp_path / how)}
        seen.add(subprocess.run([sys.executable, "-c", code, how], env=env, capture_output=True, check=True).stdout)
    assert len(seen) == 1
    assert len(seen.pop()) > 100


@compiling
def test_a_users_class_may_use_what_numba_knows_of_arrays():
    @rue.parameter
    class Clipped(rue.Loss):
        lipschitz = 1.0

        def value(self, p, y):
            return np.minimum(np.abs(p - y), np.abs(p - y))

        def slope(self, p, y):
            return np.sign(p - y)

    X = np.random.default_rng(0).normal(size=(50, 3))
    own, known = (rue.OGD(loss, domain="ball:1").run(X, X[:, 0]) for loss in (Clipped(), "absolute"))
    np.testing.assert_array_equal(own, known)
