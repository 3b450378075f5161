"""How kernels and what they call are compiled: callees to plain LLVM code, which is optimised once, in the kernel.

Numba would optimise every method by itself and make machine code of it, and do so again with all that it calls at every
level up to the kernel, though nothing but the kernel is ever run. That was half the time of a first call.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
from numba.core import codegen, compiler
from numba.core.environment import lookup_environment

__all__ = ["CALLED", "INLINED", "OPTIONS", "KernelCompiler", "set_environments", "without_collection"]

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
                if self.inlined:
                    function.add_function_attribute("alwaysinline")
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        return self._final_module

    def get_pointer_to_function(self, name: str) -> int:
        """No address: what is never assembled is never called from outside."""
        self._ensure_finalized()
        return 0


class _Kernel(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Code that is run, with all that it calls."""

    def finalize(self) -> None:
        self._linking_libraries = list(dict.fromkeys(_needed(self)))
        super().finalize()


def _needed(library: Any) -> Iterator[Any]:
    for called in library._linking_libraries:
        yield called
        if isinstance(called, _Callee):
            yield from _needed(called)


class _CalleeCompiler(compiler.Compiler):  # type: ignore[misc]
    """Numba's compiler, for methods and functions that only kernels call."""

    inlines = False

    def __init__(self, typing: Any, target: Any, *others: Any) -> None:
        super().__init__(typing, target, *others)
        self.state.library = _Callee(target.codegen(), "callee")
        self.state.library.inlined = self.inlines


class _InlineCompiler(_CalleeCompiler):
    """The same for what is to be inlined. (By Numba's flag for it, whatever both kinds call is compiled twice.)"""

    inlines = True


CALLED: dict[str, Any] = {**OPTIONS, "pipeline_class": _CalleeCompiler}
INLINED: dict[str, Any] = {**OPTIONS, "pipeline_class": _InlineCompiler}


class KernelCompiler(compiler.Compiler):  # type: ignore[misc]
    """Numba's compiler, for kernels."""

    def __init__(self, typing: Any, target: Any, *others: Any) -> None:
        super().__init__(typing, target, *others)
        self.state.library = _Kernel(target.codegen(), "kernel")
        self.state.library.enable_object_caching()


def set_environments(compiled: Any) -> None:
    """Give a kernel what Numba gives each callee that is machine code: the Python objects it refers to."""
    engine = compiled.codegen._engine
    for variable in compiled.library._final_module.global_variables:
        environment = lookup_environment(variable.name)
        address = engine.get_global_value_address(variable.name) if environment is not None else 0
        if address:
            ctypes.c_void_p.from_address(address).value = id(environment)


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Compiling makes many objects, hardly any of them unreachable: looking for those takes a tenth of the time."""
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            gc.enable()
