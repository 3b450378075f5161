"""The empirical-Bernstein mixture behind B14: how far a sum may stray at any time, given its variance so far.

With rounds x_i in [0, 1], x̂_t = (½ + Σ_{i<t} x_i)/t and V_t = Σ (x_i − x̂_i)², the sum of the rounds' conditional means
exceeds Σ x_i by S_t or more at some t with probability at most δ, where Σ_k π_k e^{λ_k S_t − ψ(λ_k) V_t} = 1/δ, ψ(λ) =
−ln(1−λ) − λ (Howard, Ramdas, McAuliffe and Sekhon 2021, Theorem 4).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["deviation", "variances"]

_K = np.arange(1.0, 41.0)
_LAMBDA = 2.0 ** (-_K / 2.0)
_PSI = -np.log1p(-_LAMBDA) - _LAMBDA
_LOG_PI = -np.log(_K * (_K + 1.0))


def variances(x: Any) -> Any:
    """V_t for rounds x in [0, 1], along the last axis."""
    t = np.arange(1.0, x.shape[-1] + 1.0)
    guesses = (0.5 + np.cumsum(x, axis=-1) - x) / t
    return np.cumsum((x - guesses) ** 2, axis=-1)


def deviation(V: Any, delta: float) -> Any:
    """S with Σ_k π_k e^{λ_k S − ψ_k V} = 1/δ, for each V.

    The logarithm of the sum is convex and increasing in S, so Newton's steps from above stay above: wherever they end,
    the bound is valid.
    """
    V = np.asarray(V, dtype=np.float64)
    S = np.empty(V.shape)
    flat, out, wanted = V.reshape(-1), S.reshape(-1), -math.log(delta)
    for begin in range(0, flat.size, 4096):  # 40 numbers each: a million at once would take gigabytes
        fixed = _LOG_PI - _PSI * flat[begin : begin + 4096, None]
        s = np.min((wanted - fixed) / _LAMBDA, axis=1)
        for _ in range(60):
            terms = fixed + _LAMBDA * s[:, None]
            top = terms.max(axis=1)
            e = np.exp(terms - top[:, None])
            mass = e.sum(axis=1)
            step = (top + np.log(mass) - wanted) * mass / (e @ _LAMBDA)
            s = s - np.maximum(step, 0.0)
            if np.all(step <= 1e-14 * s):
                break
        out[begin : begin + 4096] = s
    return S
