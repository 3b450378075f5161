"""The Numba layer: no other package imports Numba.

A *parameter* is a frozen dataclass whose plain methods kernels may call; a *kernel* is a plain function, compiled for
the types of its arguments when it is first called:

>>> import numpy as np
>>> from rue.compiled import kernel, parameter
>>> @parameter
... class Discount:
...     rate: float
...     def apply(self, total, x):
...         return self.rate * total + x
>>> @kernel
... def discounted(discount, values):
...     total = 0.0
...     for k in range(values.size):
...         total = discount.apply(total, values[k])
...     return total
>>> float(discounted(Discount(0.5), np.array([4.0, 2.0, 1.0])))
3.0

What each name is for:

- `parameter`, `Vector`: a class of settings, and the annotation of a field with several numbers; `optional`: a field
  that is written only where it is not its default (`written_fields`);
- `values`: a named tuple of arrays and numbers with methods (a row, a point);
- `kernel`, `parser`: compile a function; a parser goes through text and gets a second LLVM pass (fast back
  end only). Both make a `Kernel`;
- `inline`: a function that kernels may call; `noinline`: a method that kernels call instead of inlining it;
- `lanes`: a loop over arrays in vector instructions, written as arithmetic on one number;
- `twin`: the named-tuple form of a parameter that is passed to Numba; it and `Strided` are for callers of
  `Kernel.resolve`, which hands out a kernel's machine code;
- `is_parameter`, `require_parameter`: whether kernels can take an object; `foreign`: whether a user's class takes part;
- `on_long_compilation`, `compile_seconds`: let the command line say that a kernel is being compiled, and for how long.

Two libraries hold the functions that kernels may call: `rue.compiled.arithmetic` (exp, log, choose, …) and
`rue.compiled.intrinsics` (prefetching, gathering rows, hashing words, …). The other modules are private to this package
(an import contract in pyproject.toml); only `rue.cli.prebuild`, which fills the store of compiled kernels, imports
`rue.compiled.cache`.
"""

from rue.compiled.kernels import Kernel, Strided, inline, kernel, parser
from rue.compiled.notices import compile_seconds, on_long_compilation
from rue.compiled.parameters import (
    Vector,
    foreign,
    is_parameter,
    noinline,
    optional,
    parameter,
    require_parameter,
    twin,
    values,
    written_fields,
)
from rue.compiled.tracing import lanes

__all__ = [
    "Kernel",
    "Strided",
    "Vector",
    "compile_seconds",
    "foreign",
    "inline",
    "is_parameter",
    "kernel",
    "lanes",
    "noinline",
    "on_long_compilation",
    "optional",
    "parameter",
    "parser",
    "require_parameter",
    "twin",
    "values",
    "written_fields",
]
