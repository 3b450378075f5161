"""A numerical look at a user's own loss before anything is learnt with it."""

from __future__ import annotations

import math

import numpy as np

from rue.errors import SettingsError
from rue.losses import Loss

__all__ = ["require_convex"]


def require_convex(loss: Loss) -> None:
    """Refuse, with the counterexample, a loss that is not convex in p or whose slope is no subgradient.

    Looks at 61 predictions from −30 to 30, at random ones, and at labels the loss accepts; a few milliseconds.
    """
    name = type(loss).__name__
    rng = np.random.default_rng(1)
    grid = [float(p) for p in np.concatenate([np.arange(-30.0, 31.0), rng.normal(0.0, 3.0, 40)])]
    try:
        labels = [y for y in (-1.0, 1.0, 0.0, 3.0, 0.37, -2.6) if loss.accepts(y)]
    except TypeError as error:
        raise SettingsError(
            f"{name}: accepts(y) must take a label and say whether it can be learnt; {error}."
        ) from error
    if not labels:
        raise SettingsError(f"{name}: accepts() refuses every label tried; it must accept some number.")
    for y in labels:
        try:
            value = {p: float(loss.value(p, y)) for p in grid}
            slope = {p: float(loss.slope(p, y)) for p in grid}
        except (ArithmeticError, NotImplementedError, TypeError, ValueError) as error:
            raise SettingsError(
                f"{name}: value(p, y) and slope(p, y) must be numbers; {error!r} at y = {y}."
            ) from error
        if any(math.isnan(v) for v in [*value.values(), *slope.values()]):
            raise SettingsError(f"{name}: value or slope is NaN for a prediction between −30 and 30 at y = {y}.")
        for p in grid:
            for q in grid:
                line = value[p] + slope[p] * (q - p)
                slack = 1e-9 * (1.0 + abs(value[p]) + abs(value[q]) + abs(slope[p] * (q - p)))
                if value[q] < line - slack:
                    why = "it is not convex" if _bends(loss, p, q, y) else "its slope is not a subgradient of its value"
                    raise SettingsError(
                        f"{name}: {why}: at y = {y:g} the tangent at p = {p:g} is {line:g} at p = {q:g}, "
                        f"above the loss {value[q]:g} there."
                    )


def _bends(loss: Loss, p: float, q: float, y: float) -> bool:
    """Whether the loss lies above its chord somewhere between p and q, which a convex function never does."""
    a, b = loss.value(p, y), loss.value(q, y)
    for share in np.linspace(0.0, 1.0, 33)[1:-1]:
        chord = (1.0 - share) * a + share * b
        if loss.value((1.0 - share) * p + share * q, y) > chord + 1e-9 * (1.0 + abs(a) + abs(b)):
            return True
    return False
