"""The fast back end: makes Numba compile rue's kernels in a third of the time.

Numba optimises every method by itself and makes machine code of it, and does so again, with all that it calls, at every
level up to the kernel, though nothing but the kernel is ever run. Here what a kernel calls stays LLVM code, which is
linked into the kernel and optimised once, there. Besides, our own sources need only half of Numba's passes.

How: two subclasses of Numba's code library (`_Callee`, `_Kernel`) and of its compiler, handed over through the option
`pipeline_class` of `njit` and `overload`. Nothing of Numba is replaced, so other code in the process is compiled as
ever (tested: tests/compiled/test_backends.py). But these classes are not part of Numba's documented interface, so
this module is imported only with the versions it was tested on (`rue.compiled.backend.TESTED_WITH`).
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]  # it carries no types
from numba.core import codegen, compiler, typed_passes, untyped_passes
from numba.core.compiler_machinery import PassManager, _pass_registry
from numba.core.environment import lookup_environment

__all__ = ["FOREIGN", "OPTIONS", "OURS", "KernelCompiler", "ParserCompiler", "set_environments"]

OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
"""What kernels and callees are compiled with."""


# Code libraries: what Numba puts a compiled function's LLVM code into.


class _NoEnvironments:
    """Stands for the code generator where Numba asks it to write to the variables of machine code."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: there is no machine code yet. `set_environments` does it for the kernel."""


class _Callee(codegen.JITCodeLibrary):  # type: ignore[misc]  # Numba carries no types
    """The LLVM code of a function that becomes part of kernels: neither optimised nor made machine code by itself."""

    noinline = False

    @property
    def codegen(self) -> Any:
        return _NoEnvironments()

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"  # may be part of several modules, and dropped when inlined
                function.add_function_attribute("noinline" if self.noinline else "alwaysinline")
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        return self._final_module

    def get_pointer_to_function(self, name: str) -> int:
        """No address: nothing calls it from outside a kernel."""
        self._ensure_finalized()
        return 0


class _Kernel(codegen.JITCodeLibrary):  # type: ignore[misc]  # as above
    """The code of a kernel, with all that it calls."""

    twice = False
    """Whether Numba's cheap passes go before the full ones: it makes parsers a tenth faster and learners slower."""

    def finalize(self) -> None:
        self._linking_libraries = list(_needed(self, {}))
        super().finalize()

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if function.linkage == llvm.Linkage.linkonce_odr:
                # It is called from nowhere else, so LLVM may drop arguments that it does not use.
                function.linkage = "internal"
        if self.twice:
            super()._optimize_final_module()
        else:
            passes, builder = self._codegen._module_pass_manager()
            passes.run(self._final_module, builder)


def _needed(library: Any, found: dict[Any, None]) -> dict[Any, None]:
    """The libraries that a library calls, and those that these call, in the order in which they are found."""
    for called in library._linking_libraries:
        if called not in found:
            found[called] = None
            if isinstance(called, _Callee):
                _needed(called, found)
    return found


# Compilers.


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
"""Numba's passes without those for closures, `with`, None, literals and array expressions, which kernels do not use."""


class _Passes(PassManager):  # type: ignore[misc]  # as above
    """Numba's passes, run without announcing, timing and checking each."""

    def run(self, state: Any) -> None:
        for each, _ in self.passes:
            work = _pass_registry.get(each).pass_inst
            work.analysis = self._analysis
            work.run_initialization(state)
            work.run_pass(state)
            work.run_finalizer(state)


class _OurCompiler(compiler.CompilerBase):  # type: ignore[misc]  # as above
    """Numba's compiler with as few passes as our own sources need."""

    def define_pipelines(self) -> list[Any]:
        passes = _Passes("rue")
        for each in _PASSES:
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


def _callee(base: type, noinline: bool) -> dict[str, Any]:
    """The options with which functions are compiled that only kernels call.

    They are inlined by an attribute of LLVM's. Numba's own flag `forceinline` makes for another signature, and what
    both kinds of functions call would be compiled twice.
    """

    class Callee(base):  # type: ignore[misc]
        def __init__(self, typing: Any, target: Any, *others: Any) -> None:
            super().__init__(typing, target, *others)
            self.state.library = _Callee(target.codegen(), "callee")
            self.state.library.noinline = noinline

    return {**OPTIONS, "pipeline_class": Callee}


OURS = {noinline: _callee(_OurCompiler, noinline) for noinline in (False, True)}
"""The options for methods of our own classes, by whether they are `@noinline`."""
FOREIGN = {noinline: _callee(compiler.Compiler, noinline) for noinline in (False, True)}
"""The same for users' classes, which may use all that Numba knows."""


class KernelCompiler(_OurCompiler):
    """Compiles kernels."""

    twice = False

    def __init__(self, typing: Any, target: Any, *others: Any) -> None:
        super().__init__(typing, target, *others)
        self.state.library = _Kernel(target.codegen(), "kernel")
        self.state.library.twice = self.twice
        self.state.library.enable_object_caching()


class ParserCompiler(KernelCompiler):
    """Compiles kernels that go through text, which are optimised twice."""

    twice = True


def set_environments(compiled: Any) -> None:
    """Write the addresses of the Python objects that a kernel refers to into its variables.

    Numba does this for each function that becomes machine code; ours become part of a kernel. Without it a method that
    prints would hang.
    """
    engine = compiled.codegen._engine
    for variable in compiled.library._final_module.global_variables:
        environment = lookup_environment(variable.name)
        address = engine.get_global_value_address(variable.name) if environment is not None else 0
        if address:
            ctypes.c_void_p.from_address(address).value = id(environment)
