"""Everything that knows Numba: parameters, kernels, and loops in vector instructions."""

from rue.compiled.bridge import Vector, parameter, values

__all__ = ["Vector", "parameter", "values"]
