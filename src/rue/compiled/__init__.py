"""Everything that knows Numba: parameters, kernels, and loops in vector instructions."""
