"""A numerical look at a user's own loss before anything is learnt with it."""

from __future__ import annotations

import math

import numpy as np

from rue.errors import SettingsError
from rue.losses import Loss

__all__ = ["require_convex"]


def require_convex(loss: Loss) -> None:
    """Refuse, with the counterexample, a loss that is not convex in p or whose slope is no subgradient.

    Looks at predictions from −30 to 30 and some from −1000 to 1000, at labels the loss accepts; some milliseconds.
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
        except Exception as error:
            raise SettingsError(
                f"{name}: value(p, y) and slope(p, y) must be numbers; {error!r} at y = {y}."
            ) from error
        if any(math.isnan(v) for v in [*value.values(), *slope.values()]):
            raise SettingsError(f"{name}: value or slope is NaN for a prediction between −30 and 30 at y = {y}.")
        far = _far(loss, y)
        value, slope = {**value, **far[0]}, {**slope, **far[1]}
        at, height, tilt = np.array(list(value)), np.array(list(value.values())), np.array(list(slope.values()))
        rise = tilt[:, None] * (at[None, :] - at[:, None])
        tangent = height[:, None] + rise
        slack = 1e-9 * (1.0 + np.abs(height)[:, None] + np.abs(height)[None, :] + np.abs(rise))
        above = tangent - slack > height[None, :]
        if above.any():
            i, j = np.unravel_index(int(np.argmax(above)), above.shape)
            bends = _bends(loss, float(at[i]), float(at[j]), y)
            why = "it is not convex" if bends else "its slope is not a subgradient of its value"
            raise SettingsError(
                f"{name}: {why}: at y = {y:g} the tangent at p = {at[i]:g} is {tangent[i, j]:g} at p = {at[j]:g}, "
                f"above the loss {height[j]:g} there."
            )
        worst = max(abs(v) for v in slope.values())
        if loss.nonnegative and min(value.values()) < 0.0:
            least = min(value.values())
            raise SettingsError(
                f"{name}: is {least:g} at y = {y:g}, but says it is never negative: say nonnegative = False."
            )
        if loss.lipschitz is not None and worst > loss.lipschitz * (1.0 + 1e-9):
            raise SettingsError(f"{name}: has a slope of {worst:g}, more than its lipschitz = {loss.lipschitz:g}.")


def _far(loss: Loss, y: float) -> tuple[dict[float, float], dict[float, float]]:
    """Values and slopes far out, as far as they are finite."""
    values, slopes = {}, {}
    for p in (-1000.0, -300.0, -100.0, 100.0, 300.0, 1000.0):
        try:
            found = float(loss.value(p, y)), float(loss.slope(p, y))
        except ArithmeticError:
            continue
        if all(map(math.isfinite, found)):
            values[p], slopes[p] = found
    return values, slopes


def _bends(loss: Loss, p: float, q: float, y: float) -> bool:
    """Whether the loss lies above its chord somewhere between p and q, which a convex function never does."""
    a, b = loss.value(p, y), loss.value(q, y)
    for share in np.linspace(0.0, 1.0, 33)[1:-1]:
        chord = (1.0 - share) * a + share * b
        if loss.value((1.0 - share) * p + share * q, y) > chord + 1e-9 * (1.0 + abs(a) + abs(b)):
            return True
    return False
