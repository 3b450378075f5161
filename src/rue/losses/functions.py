"""Is it convex, and how strongly? Answers for any function, tried on many pairs of points.

What is refused of a user's loss (`rue.losses.convexity`) is refused with a counterexample. Here the question is open:
the largest μ that no pair of points refutes, for any norm.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rue.domains import Domain
from rue.errors import SettingsError, shown
from rue.losses.base import Loss
from rue.registry import make

__all__ = ["Convexity", "convexity"]

ROUNDING = 1e-12
"""How much of the numbers compared rounding may take."""


@dataclasses.dataclass(frozen=True, eq=False)
class Convexity:
    """What `convexity` found: whether any pair of points refutes convexity, and the largest modulus that none does.

    For each pair it has by how much the inequality holds, and ‖x − y‖² in the `norm` that was asked for.

    >>> import rue
    >>> found = rue.convexity(rue.Square())
    >>> found.convex, round(found.modulus, 6), found.strongly(2.0), found.strongly(2.01)
    (True, 2.0, True, False)

    docs/theory.md, V2, V3 and V6.
    """

    gaps: Any = dataclasses.field(repr=False)
    """By how much each inequality holds with μ = 0."""
    sizes: Any = dataclasses.field(repr=False)
    """What μ is multiplied by in each: ½‖x − y‖² of a tangent, ½λ(1 − λ)‖x − y‖² of a chord."""
    rooms: Any = dataclasses.field(repr=False)
    """What rounding may amount to in each."""
    pairs: Any = dataclasses.field(repr=False)
    """The points x and y of each."""
    norm: float

    @property
    def convex(self) -> bool:
        """Whether no pair refutes convexity."""
        return self.strongly(0.0)

    @property
    def modulus(self) -> float:
        """The largest μ for which no pair refutes strong convexity; negative if even convexity is refuted."""
        return float(np.min((self.gaps + self.rooms) / self.sizes))

    @property
    def counterexample(self) -> tuple[Any, Any] | None:
        """The pair x, y that refutes convexity most clearly; None if none does."""
        if self.convex:
            return None
        x, y = self.pairs[int(np.argmin((self.gaps + self.rooms) / self.sizes))]
        return x, y

    def strongly(self, mu: float) -> bool:
        """Whether no pair refutes strong convexity with modulus `mu`, in the norm that was asked for."""
        return bool(np.all(self.gaps + self.rooms >= mu * self.sizes))

    def __str__(self) -> str:
        if not self.convex:
            x, y = (shown(np.ravel(point).tolist()) for point in self.counterexample or ())
            return f"not convex: the inequality fails between {x} and {y}."
        norm = f"‖·‖_{'∞' if self.norm == math.inf else f'{self.norm:g}'}"
        found = max(self.modulus, 0.0)
        if found <= 1e-9:
            return f"convex as far as {len(self.gaps):,} inequalities tell, and not strongly."
        return (
            f"convex as far as {len(self.gaps):,} inequalities tell, and strongly with μ up to {found:.6g} with "
            f"respect to {norm}."
        )


def convexity(
    f: Loss | str | Callable[[Any], float],
    subgradient: Callable[[Any], Any] | None = None,
    *,
    d: int = 1,
    domain: Any = "reals",
    less: float = 0.0,
    norm: float = 2.0,
    trials: int = 400,
    seed: int = 0,
) -> Convexity:
    """Try the inequalities of convexity and of strong convexity on random pairs of points x, y of a set V.

    Chords: f(λx + (1 − λ)y) ≤ λf(x) + (1 − λ)f(y) − (μ/2)λ(1 − λ)‖x − y‖². With a subgradient g(x) also tangents:
    f(y) ≥ f(x) + ⟨g(x), y − x⟩ + (μ/2)‖x − y‖². Both for a function of an array of `d` numbers; f may be +∞. Of a loss,
    or its spec, it is the function of p, at every label tried, with its slope.

    `less` = α asks about f − (α/2)‖x‖² instead: that is convex just when f is α-strongly convex in the Euclidean norm.
    `norm` is 1, 2, math.inf or any p ≥ 1, `domain` the set V, `trials` the number of pairs, drawn with `seed`. A "yes"
    is as good as the pairs tried, a "no" is a proof.

    >>> import numpy as np, rue
    >>> print(rue.convexity(lambda w: w @ w / 2, lambda w: w, d=3))
    convex as far as 800 inequalities tell, and strongly with μ up to 1 with respect to ‖·‖_2.
    >>> rue.convexity(rue.Logistic(), less=0.1).convex, rue.convexity(lambda w: float(np.sin(w[0]))).convex
    (False, False)

    docs/theory.md, V2, V3 and V6.
    """
    K = make("domain", domain)
    if not isinstance(K, Domain):
        raise SettingsError(f"convexity: domain must be a set such as rue.Ball(1), or a spec, not {shown(domain)}.")
    if not (isinstance(norm, int | float) and norm >= 1.0):
        raise SettingsError(f"convexity: norm must be a number p ≥ 1, or math.inf, not {shown(norm)}.")
    d = _settings(K, d, less, trials, seed)
    rng = np.random.default_rng(seed)
    found = _Tried(float(less), float(norm))
    f = make("loss", f) if isinstance(f, str) else f
    if isinstance(f, Loss):
        for y in _labels(f):
            value, slope = _in_p(f, y)
            found.enter(value, slope, *_points(rng, K, K.dimension or 1, trials), rng.random(trials))
    else:
        if not callable(f) or isinstance(f, type):
            raise SettingsError(f"convexity: f must be a rue.Loss or a function of the point, not {shown(f)}.")
        if subgradient is not None and not callable(subgradient):
            raise SettingsError(f"convexity: subgradient must be a function of the point, not {shown(subgradient)}.")
        found.enter(f, subgradient, *_points(rng, K, d, trials), rng.random(trials))
    return found.convexity()


def _settings(K: Domain, d: Any, less: Any, trials: Any, seed: Any) -> int:
    """The number of coordinates, once the numbers given make sense."""
    for name, value, least in (("d", d, 1), ("trials", trials, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise SettingsError(f"convexity: {name} must be a whole number ≥ {least}, not {shown(value)}.")
    if not isinstance(less, int | float | np.number) or not math.isfinite(less):
        raise SettingsError(f"convexity: less must be a finite number, not {shown(less)}.")
    if K.dimension not in (None, d) and d != 1:
        raise SettingsError(f"convexity: {K!r} has {K.dimension} coordinates, not {d}.")
    return K.dimension or int(d)


def _labels(loss: Loss) -> list[float]:
    return [y for y in (-1.0, 1.0, 0.0, 3.0) if loss.accepts(y)]


def _in_p(loss: Loss, y: float) -> tuple[Callable[[Any], float], Callable[[Any], Any] | None]:
    """A loss at one label, and its slope, as functions of arrays of one number."""
    slope = (lambda p: [loss.slope(float(p[0]), y)]) if loss.convex else None
    return lambda p: loss.value(float(p[0]), y), slope


def _points(rng: np.random.Generator, K: Domain, d: int, trials: int) -> tuple[Any, Any]:
    """Pairs of points of K: near 0 and far out, far from each other, near each other, and along one axis."""

    def inside(w: Any) -> Any:
        point = w.copy()
        K.onto(point, np.empty((K.scratch_rows, d)))
        return point

    scale = 10.0 ** rng.uniform(-1.0, 1.0, size=(trials, 1))
    x = scale * rng.normal(size=(trials, d))
    other = scale * rng.normal(size=(trials, d))
    step = 0.1 * scale * np.where(rng.random((trials, 1)) < 0.5, rng.normal(size=(trials, d)), 0.0)
    step[np.arange(trials), rng.integers(d, size=trials)] += 0.1 * scale[:, 0]
    y = np.where(rng.random((trials, 1)) < 0.5, other, x + step)
    return np.array([inside(w) for w in x]), np.array([inside(w) for w in y])


class _Tried:
    """The inequalities tried so far."""

    def __init__(self, less: float, norm: float) -> None:
        self.less, self.norm = less, norm
        self.gaps: list[float] = []
        self.sizes: list[float] = []
        self.rooms: list[float] = []
        self.pairs: list[tuple[Any, Any]] = []

    def enter(self, f: Callable[[Any], float], g: Callable[[Any], Any] | None, X: Any, Y: Any, shares: Any) -> None:
        for x, y, share in zip(X, Y, 0.05 + 0.9 * shares, strict=True):
            size = 0.5 * float(np.linalg.norm(x - y, self.norm)) ** 2
            if size <= 1e-12:
                continue
            at_x, at_y = self.value(f, x), self.value(f, y)
            middle = self.value(f, share * x + (1.0 - share) * y)
            chord = share * at_x + (1.0 - share) * at_y
            if math.isinf(chord):
                continue  # nothing is asked where an end lies outside the function's domain
            self.add(chord - middle, share * (1.0 - share) * size, abs(at_x) + abs(at_y) + abs(middle), x, y)
            if g is not None:
                rise = float((self.gradient(g, x) - self.less * x) @ (y - x))
                self.add(at_y - at_x - rise, size, abs(at_x) + abs(at_y) + abs(rise), x, y)

    def value(self, f: Callable[[Any], float], x: Any) -> float:
        given = f(x.copy())  # f may change what it is given
        try:
            value = float(given) - 0.5 * self.less * float(x @ x)
        except (TypeError, ValueError) as error:
            raise SettingsError(f"convexity: f must return one number, not {shown(given)}.") from error
        if math.isnan(value) or value == -math.inf:
            raise SettingsError(f"convexity: f is {value:g} at {shown(x.tolist())}; it must be a number, or +∞.")
        return value

    def gradient(self, g: Callable[[Any], Any], x: Any) -> Any:
        given = g(x.copy())
        try:
            found = np.array(given, dtype=np.float64).reshape(x.shape if x.size == 1 else -1)
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.shape != x.shape or not np.isfinite(found).all():
            raise SettingsError(
                f"convexity: subgradient must return {x.size} finite numbers; at {shown(x.tolist())} it is "
                f"{shown(given)}."
            )
        return found

    def add(self, gap: float, size: float, terms: float, x: Any, y: Any) -> None:
        self.gaps.append(gap)
        self.sizes.append(size)
        self.rooms.append(ROUNDING * (1.0 + terms) if math.isfinite(terms) else 0.0)
        self.pairs.append((x, y))

    def convexity(self) -> Convexity:
        if not self.gaps:
            raise SettingsError(
                "convexity: f is +∞ wherever it was tried, or the set a single point, so nothing can be said: give a "
                "domain in which f is finite."
            )
        return Convexity(np.array(self.gaps), np.array(self.sizes), np.array(self.rooms), self.pairs, self.norm)
