"""How what kernels call is compiled: to plain LLVM code, which is optimised once, in the kernel it becomes part of.

Numba would optimise every method by itself and make machine code of it, and do so again with all that it calls at every
level up to the kernel, though nothing but the kernel is ever run. That was half the time of a first call.
"""

from __future__ import annotations

import ctypes
from typing import Any

from numba.core import codegen, compiler
from numba.core.environment import lookup_environment

__all__ = ["Callee", "set_environments"]


class _NoEnvironments:
    """Stands for the code generator where Numba asks it to write to the variables of machine code."""

    def set_env(self, name: str, environment: Any) -> None:
        """Leave it to `set_environments`: there is no machine code yet."""


class _Library(codegen.JITCodeLibrary):  # type: ignore[misc]  # Numba carries no types
    """Code to be linked into a kernel's."""

    @property
    def codegen(self) -> Any:
        return _NoEnvironments()

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """No address: what is never assembled is never called from outside."""
        self._ensure_finalized()
        return 0


class Callee(compiler.Compiler):  # type: ignore[misc]
    """Numba's compiler, for methods and functions that only kernels call."""

    def __init__(self, typing: Any, target: Any, *others: Any) -> None:
        super().__init__(typing, target, *others)
        self.state.library = _Library(target.codegen(), "callee")


def set_environments(compiled: Any) -> None:
    """Give a kernel what Numba gives each callee that is machine code: the Python objects it refers to."""
    engine = compiled.codegen._engine
    for variable in compiled.library._final_module.global_variables:
        environment = lookup_environment(variable.name)
        address = engine.get_global_value_address(variable.name) if environment is not None else 0
        if address:
            ctypes.c_void_p.from_address(address).value = id(environment)
