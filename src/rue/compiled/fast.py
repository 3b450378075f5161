"""How kernels and what they call are compiled: callees to plain LLVM code, which is optimised once, in the kernel.

Numba would optimise every method by itself and make machine code of it, and do so again with all that it calls at every
level up to the kernel, though nothing but the kernel is ever run. That was half the time of a first call.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]  # it carries no types
from numba.core import codegen, compiler, typed_passes, untyped_passes
from numba.core.compiler_machinery import PassManager, _pass_registry
from numba.core.environment import lookup_environment

__all__ = [
    "CALLED",
    "INLINED",
    "OPTIONS",
    "KernelCompiler",
    "ParserCompiler",
    "options",
    "set_environments",
]

OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
"""What kernels and callees are compiled with."""


class _NoEnvironments:
    """Stands for the code generator where Numba asks it to write to the variables of machine code."""

    def set_env(self, name: str, environment: Any) -> None:
        """Leave it to `set_environments`: there is no machine code yet."""


class _Callee(codegen.JITCodeLibrary):  # type: ignore[misc]  # Numba carries no types
    """Code that becomes part of kernels."""

    inlined = False

    @property
    def codegen(self) -> Any:
        return _NoEnvironments()

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"  # may be part of several modules, and dropped when inlined
                function.add_function_attribute("alwaysinline" if self.inlined else "noinline")
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        return self._final_module

    def get_pointer_to_function(self, name: str) -> int:
        """No address: what is never assembled is never called from outside."""
        self._ensure_finalized()
        return 0


class _Kernel(codegen.JITCodeLibrary):  # type: ignore[misc]  # as above
    """Code that is run, with all that it calls."""

    twice = False
    """Whether Numba's cheap passes go before the full ones; parsers are a tenth faster for it, learners slower."""

    def finalize(self) -> None:
        self._linking_libraries = list(dict.fromkeys(_needed(self)))
        super().finalize()

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = "internal"  # called from nowhere else: what it does not use need not be handed over
        if self.twice:
            super()._optimize_final_module()
        else:
            passes, builder = self._codegen._module_pass_manager()
            passes.run(self._final_module, builder)


def _needed(library: Any) -> Iterator[Any]:
    for called in library._linking_libraries:
        yield called
        if isinstance(called, _Callee):
            yield from _needed(called)


_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.IRLegalization,
    typed_passes.AnnotateTypes,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)
"""What is left of Numba's passes without those for closures, `with`, None, literals, and expressions of arrays."""


class _Passes(PassManager):  # type: ignore[misc]  # as above
    """Numba's passes, run without announcing, timing and checking each."""

    def run(self, state: Any) -> None:
        for each, _ in self.passes:
            work = _pass_registry.get(each).pass_inst
            work.analysis = self._analysis
            work.run_initialization(state)
            work.run_pass(state)
            work.run_finalizer(state)


class _OursCompiler(compiler.CompilerBase):  # type: ignore[misc]  # as above
    """Numba's compiler with as few passes as our own sources need."""

    def define_pipelines(self) -> list[Any]:
        passes = _Passes("rue")
        for each in _PASSES:
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


def _callee(base: type, inlined: bool) -> dict[str, Any]:
    """The options with which methods and functions are compiled that only kernels call.

    (Were they inlined by Numba's flag for it, whatever both kinds call would be compiled twice.)
    """

    class Callee(base):  # type: ignore[misc]
        def __init__(self, typing: Any, target: Any, *others: Any) -> None:
            super().__init__(typing, target, *others)
            self.state.library = _Callee(target.codegen(), "callee")
            self.state.library.inlined = inlined

    return {**OPTIONS, "pipeline_class": Callee}


CALLED, INLINED = _callee(_OursCompiler, False), _callee(_OursCompiler, True)
_THEIR_CALLED, _THEIR_INLINED = _callee(compiler.Compiler, False), _callee(compiler.Compiler, True)


def options(called: bool, ours: bool) -> dict[str, Any]:
    """The options for a method, of a class of ours or of the user's, which may use all that Numba knows."""
    if ours:
        return CALLED if called else INLINED
    return _THEIR_CALLED if called else _THEIR_INLINED


class KernelCompiler(_OursCompiler):
    """Numba's compiler, for kernels."""

    twice = False

    def __init__(self, typing: Any, target: Any, *others: Any) -> None:
        _without_linear_algebra()
        super().__init__(typing, target, *others)
        self.state.library = _Kernel(target.codegen(), "kernel")
        self.state.library.twice = self.twice
        self.state.library.enable_object_caching()


class ParserCompiler(KernelCompiler):
    """The same, for kernels that are optimised twice."""

    twice = True


def set_environments(compiled: Any) -> None:
    """Give a kernel what Numba gives each callee that is machine code: the Python objects it refers to."""
    engine = compiled.codegen._engine
    for variable in compiled.library._final_module.global_variables:
        environment = lookup_environment(variable.name)
        address = engine.get_global_value_address(variable.name) if environment is not None else 0
        if address:
            ctypes.c_void_p.from_address(address).value = id(environment)


def _without_linear_algebra() -> None:
    """Import what Numba compiles arrays with, but for SciPy's linear algebra.

    It would import that to see whether it is there, a quarter of a second; it looks again should anybody want it.
    """
    if "numba.np.arraymath" not in sys.modules:
        linalg: Any = importlib.import_module("numba.np.linalg")
        search, linalg.ensure_blas = linalg.ensure_blas, lambda: None
        importlib.import_module("numba.np.arraymath")
        linalg.ensure_blas = search
