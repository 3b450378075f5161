"""Functions for kernels and `@lanes`: exp and log without branches and without calls, choices, roots, bits.

Numba compiles `math.exp` to a call of the system's library, one number at a time. These are polynomials after the usual
reduction of the argument, so that a loop over many members is a few vector instructions: exact to two units in the last
place (tested against `math`), and the same bits on every machine. Those called `_roughly` have half as many terms, for
a step whose error the next one corrects. Terms are added up in pairs (Estrin's scheme), which need not wait for each
other: eight to sixteen members are too few to hide a chain of thirteen additions.

They take numbers, arrays where nothing is compiled, and the traced numbers of `@lanes`.

>>> exp(1.0), log(10.0)
(np.float64(2.718281828459045), np.float64(2.302585092994046))
>>> choose(1.0, 2.0, "smaller", "not smaller")
'smaller'
"""

from __future__ import annotations

from typing import Any

from rue.compiled.kernels import inline
from rue.compiled.llvm import LANES
from rue.compiled.tracing import bits, choose, from_bits, higher, lanes, lower, root

__all__ = [
    "bits",
    "choose",
    "exp",
    "exp_roughly",
    "from_bits",
    "higher",
    "log",
    "log1p",
    "logistic",
    "lower",
    "root",
]

_PER_OCTAVE = 1.4426950408889634  # 1/ln 2
_HIGH, _LOW = 0.6931471805582987, 1.6465949582897082e-12  # ln 2 in two parts, the first with zeros at its end
_OCTAVE = 0.6931471805599453
_ROUND = 6755399441055744.0  # 1.5·2⁵²: adding it rounds to a whole number, which is left in the lowest bits
_MANTISSA, _ROOT = 0xFFFFFFFFFFFFF, 0x3FE6A09E667F3BCD  # the last: the bits of √½
_NEAR = 0.41421356237309503  # √2 − 1


@inline
def exp(x: Any) -> Any:
    """e^x for any x; below −708 it is e^−708, above 709 e^709."""
    x = lower(higher(x, -708.0), 709.0)
    shifted = x * _PER_OCTAVE + _ROUND
    octaves = shifted - _ROUND  # x = octaves·ln 2 + r with |r| ≤ ½ ln 2
    r = (x - octaves * _HIGH) - octaves * _LOW
    q = r * r
    q2, low, high = q * q, 1.0 + r, 1.0 / 40320.0 + r * (1.0 / 362880.0)
    low = low + q * (0.5 + r * (1.0 / 6.0))
    high = high + q * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))
    middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + q * (1.0 / 720.0 + r * (1.0 / 5040.0))
    high = high + q2 * (1.0 / 479001600.0 + r * (1.0 / 6227020800.0))
    s = low + (q2 * middle + (q2 * q2) * high)  # Σ rᵏ/k! for k ≤ 13
    return s * from_bits((bits(shifted) + 1023) << 52)  # 2^octaves: its exponent alone, written into the bits


@inline
def log(x: Any) -> Any:
    """ln x for x between 1e−300 and 1e300."""
    n = bits(x)
    above = n - _ROOT  # so that the mantissa comes to lie between √½ and √2
    octaves = above >> 52
    m = from_bits((above & _MANTISSA) + _ROOT)
    return _log_of((m - 1.0) / (m + 1.0), from_bits(octaves + 0x4338000000000000) - _ROUND)


@inline
def log1p(x: Any) -> Any:
    """ln(1 + x) for x between 0 and 1."""
    near, far = x / (x + 2.0), (x - 1.0) / (x + 3.0)  # from 1 and from 2
    return _log_of(choose(x, _NEAR, near, far), choose(x, _NEAR, 0.0, 1.0))


@inline
def _log_of(s: Any, octaves: Any) -> Any:
    """ln of 2^octaves·(1 + s)/(1 − s) = octaves·ln 2 + 2(s + s³/3 + s⁵/5 + …), for (1 + s)/(1 − s) from √½ to √2."""
    q = s * s
    q2 = q * q
    low = (1.0 / 3.0 + q * (1.0 / 5.0)) + q2 * (1.0 / 7.0 + q * (1.0 / 9.0))
    middle = (1.0 / 11.0 + q * (1.0 / 13.0)) + q2 * (1.0 / 15.0 + q * (1.0 / 17.0))
    high = (1.0 / 19.0 + q * (1.0 / 21.0)) + q2 * (1.0 / 23.0)
    q4 = q2 * q2
    t = low + (q4 * middle + (q4 * q4) * high)
    return octaves * _HIGH + (2.0 * s + (2.0 * s * q * t + octaves * _LOW))


@inline
def exp_roughly(x: Any) -> Any:
    """e^x to one part in five million, for any x."""
    x = lower(higher(x, -708.0), 709.0)
    shifted = x * _PER_OCTAVE + _ROUND
    r = x - (shifted - _ROUND) * _OCTAVE
    q = r * r
    s = (1.0 + r) + q * ((0.5 + r * (1.0 / 6.0)) + q * (1.0 / 24.0 + r * (1.0 / 120.0) + q * (1.0 / 720.0)))
    return s * from_bits((bits(shifted) + 1023) << 52)


@lanes(2, abreast=LANES)
def logistic(p: Any, y: Any) -> Any:
    """ln(1 + e^{−yp}) and its slope in p."""
    z = y * p
    e = exp(lower(z, -z))
    return higher(-z, 0.0) + log1p(e), -y * choose(z, 0.0, 1.0, e) / (1.0 + e)
