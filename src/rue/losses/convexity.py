"""Numerical tests of a user's own loss and set, before anything is learnt with them or claimed about them.

A certificate is only as true as the facts it rests on. So whatever a class from outside the package declares is tried
on some predictions, labels and points; a counterexample is refused in words. It takes some milliseconds, once for each
object (`once`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rue.compiled import foreign
from rue.domains import Ball, Box, Domain, L1Ball, Reals, Simplex
from rue.errors import SettingsError
from rue.losses import Loss

__all__ = ["once", "require_convex", "require_set"]

_PASSED: dict[tuple[Any, Any], None] = {}
"""Tests and the objects that have passed them, in order."""
_REMEMBERED = 256
"""So many of them; then all are forgotten, so that memory does not grow in a program that makes losses in a loop."""


def once(test: Callable[[Any], None], subject: Any) -> None:
    """`test(subject)`, unless an equal object has passed before; what cannot be hashed is tested every time."""
    try:
        passed = (test, subject) in _PASSED
    except TypeError:
        test(subject)
        return
    if not passed:
        test(subject)
        if len(_PASSED) >= _REMEMBERED:
            _PASSED.clear()
        _PASSED[test, subject] = None


def require_convex(loss: Loss) -> None:
    """Refuse, with the counterexample, a loss that is not convex in p or whose slope is no subgradient.

    Tries predictions from −30 to 30 and some from −1000 to 1000, at labels the loss accepts. The tangent at each of
    them must lie below the loss at all the others.
    """
    name = type(loss).__name__
    for y in _accepted_labels(loss):
        value, slope = _sampled(loss, y)
        _require_tangents_below(loss, y, value, slope)
        least, worst = min(value.values()), max(abs(v) for v in slope.values())
        if loss.nonnegative and least < 0.0:
            raise SettingsError(
                f"{name}: is {least:g} at y = {y:g}, but says it is never negative: say nonnegative = False."
            )
        if loss.lipschitz is not None and worst > loss.lipschitz * (1.0 + 1e-9):
            raise SettingsError(f"{name}: has a slope of {worst:g}, more than its lipschitz = {loss.lipschitz:g}.")
        _require_facts(loss, y, value, slope)


def _accepted_labels(loss: Loss) -> list[float]:
    """Some labels that the loss accepts."""
    name = type(loss).__name__
    try:
        labels = [y for y in (-1.0, 1.0, 0.0, 3.0, 0.37, -2.6) if loss.accepts(y)]
    except TypeError as error:
        raise SettingsError(
            f"{name}: accepts(y) must take a label and say whether it can be learnt; {error}."
        ) from error
    if not labels:
        raise SettingsError(f"{name}: accepts() refuses every label tried; it must accept some number.")
    return labels


def _sampled(loss: Loss, y: float) -> tuple[dict[float, float], dict[float, float]]:
    """Values and slopes by prediction: from −30 to 30, and farther out as far as they are finite."""
    name = type(loss).__name__
    rng = np.random.default_rng(1)
    grid = [float(p) for p in np.concatenate([np.arange(-30.0, 31.0), rng.normal(0.0, 3.0, 40)])]
    try:
        value = {p: float(loss.value(p, y)) for p in grid}
        slope = {p: float(loss.slope(p, y)) for p in grid}
    except Exception as error:
        raise SettingsError(f"{name}: value(p, y) and slope(p, y) must be numbers; {error!r} at y = {y}.") from error
    if any(math.isnan(v) for v in [*value.values(), *slope.values()]):
        raise SettingsError(f"{name}: value or slope is NaN for a prediction between −30 and 30 at y = {y}.")
    far = _far(loss, y)
    return {**value, **far[0]}, {**slope, **far[1]}


def _require_tangents_below(loss: Loss, y: float, value: dict[float, float], slope: dict[float, float]) -> None:
    """Refuse a loss of which a tangent, value + slope·(q − p), lies above it at another prediction q."""
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
            f"{type(loss).__name__}: {why}: at y = {y:g} the tangent at p = {at[i]:g} is {tangent[i, j]:g} at "
            f"p = {at[j]:g}, above the loss {height[j]:g} there."
        )


# What the facts that state a whole formula say the value and the slope at (p, y) are.
_FORMULAS: dict[str, tuple[str, Callable[[float, float], tuple[float, float]]]] = {
    "quadratic": ("(p − y)²", lambda p, y: ((p - y) ** 2, 2.0 * (p - y))),
    "log_odds": ("ln(1 + e^(−y·p))", lambda p, y: (float(np.logaddexp(0.0, -y * p)), -y * _chance(-y * p))),
    "log_mean": ("e^p − y·p", lambda p, y: (_exp(p) - y * p, _exp(p) - y)),
    "linear": ("y·p", lambda p, y: (y * p, y)),
    "rosenblatt": ("[−y·p]₊", lambda p, y: (max(0.0, -y * p), -y if y * p <= 0.0 else 0.0)),
}


def _exp(p: float) -> float:
    """e^p, +∞ where Python's own would raise an error."""
    return math.exp(p) if p < 709.0 else math.inf


def _chance(z: float) -> float:
    """1/(1 + e^−z), without overflow for any z."""
    return math.exp(min(z, 0.0)) / (1.0 + math.exp(-abs(z)))


def _require_facts(loss: Loss, y: float, value: dict[float, float], slope: dict[float, float]) -> None:
    """Refuse a declared fact that is not so at label y, for one of the predictions whose value and slope are given."""
    at = np.sort(np.array(list(value)))
    heights, tilts = np.array([value[p] for p in at]), np.array([slope[p] for p in at])
    _require_formulas(loss, y, at, heights, tilts)
    _require_shape(loss, y, at, heights, tilts)
    _require_curvature(loss, y, at, tilts)
    _require_prox(loss, y)
    _require_dual_facts(loss, y, at, heights, tilts)
    _require_at_once(loss, y, at, heights, tilts)


def _refusal(loss: Loss, fact: str, p: float, y: float, actual: float, wanted: float) -> SettingsError:
    return SettingsError(
        f"{type(loss).__name__}: declares {fact}, which is not so: at p = {p:g}, y = {y:g} it is {actual:g}, not "
        f"{wanted:g}."
    )


def _require_formulas(loss: Loss, y: float, at: Any, heights: Any, tilts: Any) -> None:
    """Refuse a loss that declares to have a formula and has other values or slopes."""
    for fact, (words, formula) in _FORMULAS.items():
        if getattr(loss, fact):
            for p, height, tilt in zip(at.tolist(), heights.tolist(), tilts.tolist(), strict=True):
                wanted = formula(p, y)
                for actual, right in ((height, wanted[0]), (tilt, wanted[1])):
                    if abs(actual - right) > 1e-9 * (1.0 + abs(right)):
                        raise _refusal(loss, f"{fact}, that it is {words}", p, y, actual, right)


def _require_shape(loss: Loss, y: float, at: Any, heights: Any, tilts: Any) -> None:
    """Refuse `depends_on`, `per_mistake` and `highest` where they are not so."""
    slack = 1e-9 * (1.0 + np.abs(heights))  # what rounding in a user's formula may amount to
    if loss.depends_on:
        others = [(-p, -y) if loss.depends_on == "margin" else (p - y, 0.0) for p in at.tolist()]
        for height, allowed, other in zip(heights.tolist(), slack.tolist(), others, strict=True):
            if loss.accepts(other[1]) and abs(loss.value(*other) - height) > allowed:
                raise _refusal(loss, f"depends_on = {loss.depends_on!r}", other[0], y, loss.value(*other), height)
        if loss.depends_on == "margin" and np.any(tilts * y > 1e-9):
            raise SettingsError(
                f"{type(loss).__name__}: declares depends_on = 'margin', but it rises with y·p at y = {y:g}."
            )
    if loss.per_mistake is not None and np.any(short := (at * y <= 0.0) & (heights < loss.per_mistake - slack)):
        fact = f"per_mistake = {loss.per_mistake:g}"
        raise _refusal(loss, fact, at[short][0], y, heights[short][0], loss.per_mistake)
    if loss.highest is not None and np.any(heights > loss.highest + slack):
        raise _refusal(loss, f"highest = {loss.highest:g}", at[heights.argmax()], y, heights.max(), loss.highest)


def _require_curvature(loss: Loss, y: float, at: Any, tilts: Any) -> None:
    """Refuse `smooth`, `strongly_convex` and `exp_concave` where the loss bends more, or less, than they say."""
    name, gaps = type(loss).__name__, np.diff(at)
    bends = np.diff(tilts)[gaps > 1e-6] / gaps[gaps > 1e-6]
    if loss.smooth is not None and bends.max() > loss.smooth * (1.0 + 1e-6) + 1e-6:
        raise SettingsError(f"{name}: its slope changes at rate {bends.max():g}, more than smooth = {loss.smooth:g}.")
    if bends.min() < loss.strongly_convex * (1.0 - 1e-6) - 1e-6:
        raise SettingsError(f"{name}: bends by {bends.min():g}, less than strongly_convex = {loss.strongly_convex:g}.")
    for low, high in ((-2.0, 2.0), (-0.5, 1.0)):
        rate = loss.exp_concave(low, high)
        if rate is not None and math.isfinite(rate) and (low <= y <= high or loss.task == "classify"):
            inside = np.array([loss.value(float(p), y) for p in np.linspace(low, high, 41)])
            if np.diff(np.exp(-rate * (inside - inside.min())), 2).max() > 1e-9:
                raise SettingsError(f"{name}: e^(−{rate:g}·ℓ) is not concave on [{low:g}, {high:g}] at y = {y:g}.")


def _require_prox(loss: Loss, y: float) -> None:
    """Refuse a `prox` that is not where a·ℓ(p, y) + ½(p − q)² is least: near it that is lower."""
    if not loss.declares("prox"):
        return
    for q, a in ((0.3, 0.5), (-1.7, 2.0), (2.2, 0.1)):
        there, h = float(loss.prox(q, y, a)), 1e-4
        cost = [a * loss.value(p, y) + 0.5 * (p - q) ** 2 for p in (there - h, there, there + h)]
        if cost[1] > min(cost) + 1e-7 * (1.0 + abs(cost[1])):
            raise SettingsError(
                f"{type(loss).__name__}: prox({q:g}, {y:g}, {a:g}) = {there:g} is not where that step arrives."
            )


def _require_dual_facts(loss: Loss, y: float, at: Any, heights: Any, tilts: Any) -> None:
    """Refuse a conjugate that is too small somewhere, a range that slopes leave, and pieces that are not the loss."""
    name, labels = type(loss).__name__, np.full(at.size, y)
    inner = np.abs(at) <= 30.0
    if loss.declares("conjugate") or loss.declares("slope_range"):
        low, high = (np.broadcast_to(end, at.shape) for end in loss.slope_range(labels))
        if np.any(tilts < low - 1e-9) or np.any(tilts > high + 1e-9):
            raise SettingsError(f"{name}: at y = {y:g} its slopes leave slope_range, [{low[0]:g}, {high[0]:g}].")
    if loss.declares("conjugate"):
        g = np.unique(np.clip(np.concatenate([tilts[inner], np.linspace(-3.0, 3.0, 61)]), low[0], high[0]))
        starred = np.asarray(loss.conjugate(g, np.full(g.size, y)), dtype=np.float64)
        products = g[:, None] * at[inner]
        lines = products - heights[inner]
        if np.any(lines > starred[:, None] + 1e-9 * (1.0 + np.abs(products) + np.abs(heights[inner]))):
            worst = int(np.argmax((lines - starred[:, None]).max(axis=1)))
            raise SettingsError(
                f"{name}: conjugate({g[worst]:g}) at y = {y:g} is {starred[worst]:g}, but g·p − ℓ(p, y) reaches "
                f"{lines[worst].max():g}."
            )
    pieces = loss.pieces(labels)
    if pieces is not None:
        orientation, lows, width, kinks, gamma = pieces
        total = np.zeros(at.size)
        for low, kink in zip(lows, kinks, strict=True):
            m = orientation * at - kink
            best = np.where(m > 0.0, low + width, low) if gamma == 0.0 else np.clip(m / gamma, low, low + width)
            total += best * m - 0.5 * gamma * best * best
        if not np.allclose(total, heights, rtol=1e-9, atol=1e-9):
            raise SettingsError(f"{name}: its pieces do not add up to the loss at y = {y:g}.")


def _require_at_once(loss: Loss, y: float, at: Any, heights: Any, tilts: Any) -> None:
    """Refuse vector code that disagrees with `value` and `slope`."""
    if not loss.declares("at_once"):
        return
    values, slopes = np.empty(at.size), np.empty(at.size)
    with np.errstate(all="ignore"):
        loss.at_once(0, at.size, values, slopes, at, np.full(at.size, y))
    if not (np.allclose(values, heights, rtol=1e-9, atol=1e-9) and np.allclose(slopes, tilts, rtol=1e-9, atol=1e-9)):
        raise SettingsError(f"{type(loss).__name__}: at_once gives other values or slopes than value and slope.")


def require_set(domain: Domain) -> None:
    """Refuse a set of the user's own whose facts contradict its projection, tried on some points; some milliseconds."""
    for part in domain.parts:
        if foreign(part):
            once(_require_facts_of_set, part)


def _require_facts_of_set(domain: Domain) -> None:
    """Refuse a set whose declared facts contradict its projection.

    Everything runs interpreted: compiling takes a second, and compiled code does not notice an index beyond an array.
    """
    name, d, rng = type(domain).__name__, domain.dimension or 4, np.random.default_rng(2)
    points = [np.zeros(d), *(rng.normal(size=d) * size for size in (0.1, 1.0, 1.0, 3.0, 3.0, 10.0, 10.0))]

    def project(w: Any) -> Any:
        point = w.copy()
        domain.onto(point, np.empty((domain.scratch_rows, d)))
        return point

    try:
        with np.errstate(all="ignore"):
            shadows = [project(w) for w in points]  # where the points are projected to
            start = np.asarray(domain.start(d), dtype=np.float64) if domain.declares("start") else shadows[0]
            inside = [start, *shadows]
            again = [project(u) for u in inside]
            reach, heights = float(domain.diameter(d)), [float(domain.support(v)) for v in points]
            others = _claimed(domain, points)
            lowest = _lowest(domain, points, start)
    except Exception as error:
        raise SettingsError(
            f"{name}: its methods fail in {d} coordinates, {error!r} (a set of fixed width needs a `dimension`)."
        ) from error
    if not np.isfinite(inside).all():
        raise SettingsError(f"{name}: onto gives points that are not finite numbers.")
    slack = 1e-7 * (1.0 + max(float(np.linalg.norm(u)) for u in inside))
    _require_nearest(name, points, shadows, list(zip(inside, again, strict=True)), slack)
    if domain.bounded != math.isfinite(reach):
        raise SettingsError(
            f"{name}: bounded is {domain.bounded}, but diameter({d}) is {reach:g} (a class that replaces methods of "
            "another declares both anew)."
        )
    if any(np.linalg.norm(u - start) > reach + slack for u in inside):
        raise SettingsError(f"{name}: two of its points are farther apart than diameter({d}) = {reach:g}.")
    for v, h in zip(points, heights, strict=True):
        highest = max(float(v @ u) for u in inside)
        if highest > h + slack * (1.0 + float(np.linalg.norm(v))):
            raise SettingsError(
                f"{name}: support({_shown(v)}) is {h:g}, but ⟨v, u⟩ is {highest:g} for a point u of it."
            )
        if domain.exact_support and domain.bounded and h > float(v @ project(1e6 * v)) + 1e-3 * (1.0 + abs(h)):
            raise SettingsError(f"{name}: declares exact_support, but support({_shown(v)}) = {h:g} is too large.")
    for fact, claimed in others:
        for w, u, shape in zip(points, shadows, claimed, strict=True):
            if not np.linalg.norm(shape - u) <= slack:
                raise SettingsError(f"{name}: declares {fact}, but onto moves {_shown(w)} to {_shown(u)}.")
    for theta, w in lowest:
        best = min(float(theta @ u) for u in inside)
        if np.linalg.norm(project(w) - w) > slack or float(theta @ w) > best + slack * (1.0 + abs(best)):
            raise SettingsError(f"{name}: lowest({_shown(theta)}) is {_shown(w)}, which is not its lowest point.")


def _require_nearest(name: str, points: list[Any], shadows: list[Any], inside: list[Any], slack: float) -> None:
    """Refuse projections that are not the nearest points, ⟨w − Πw, u − Πw⟩ ≤ 0 for u in the set, or that move again.

    `inside` are pairs of a point of the set and of where its projection is.
    """
    for u, moved in inside:
        if np.linalg.norm(moved - u) > slack:
            raise SettingsError(f"{name}: {_shown(u)} is its start or a projection, but onto moves it once more.")
    for w, u in zip(points, shadows, strict=True):
        if any(float((w - u) @ (v - u)) > slack * (1.0 + float(np.linalg.norm(w))) for v, _ in inside):
            raise SettingsError(f"{name}: onto moves {_shown(w)} to {_shown(u)}, which is not its nearest point.")


def _claimed(domain: Domain, points: list[Any]) -> list[tuple[str, list[Any]]]:
    """Where the shapes that a set declares to have would move some points."""
    d, claims = points[0].size, list[tuple[str, list[Any]]]()
    ball, box = domain.as_ball(d), domain.sides(d)
    shapes: list[tuple[str, Domain]] = [("whole_space", Reals())] if domain.whole_space else []
    if ball is not None:
        shapes.append(("as_ball", Ball(ball[1], ball[0])))
    if domain.centred_radius is not None:
        shapes.append(("centred_radius", Ball(domain.centred_radius)))
    if box is not None:
        shapes.append(("sides", Box(*box)))
    if domain.simplex_total is not None:
        shapes.append(("simplex_total", Simplex(domain.simplex_total)))
    if domain.l1_radius is not None:
        shapes.append(("l1_radius", L1Ball(domain.l1_radius)))
    for fact, shape in shapes:
        copies = [w.copy() for w in points]
        for w in copies:
            shape.onto(w, np.empty((0, d)))
        claims.append((fact, copies))
    if domain.kind == "coordinate":
        clip: Any = domain.clip  # type: ignore[attr-defined]  # which sets of this kind have
        claims.append(("kind = 'coordinate'", [np.array([clip(j, w[j]) for j in range(d)]) for w in points]))
    return claims


def _lowest(domain: Domain, points: list[Any], start: Any) -> list[tuple[Any, Any]]:
    """Pairs of a direction θ and the point that `lowest` finds there."""
    pairs = []
    for theta in points if domain.declares("lowest") and domain.bounded else []:
        w = start.copy()
        if domain.lowest(theta, w):
            pairs.append((theta, w))
    return pairs


def _shown(w: Any) -> str:
    """A point for an error message."""
    return str(np.round(w, 3).tolist())


def _far(loss: Loss, y: float) -> tuple[dict[float, float], dict[float, float]]:
    """Values and slopes far out, as far as they are finite."""
    values, slopes = {}, {}
    for p in (-1000.0, -300.0, -100.0, 100.0, 300.0, 1000.0):
        try:
            both = float(loss.value(p, y)), float(loss.slope(p, y))
        except ArithmeticError:
            continue
        if all(map(math.isfinite, both)):
            values[p], slopes[p] = both
    return values, slopes


def _bends(loss: Loss, p: float, q: float, y: float) -> bool:
    """Whether the loss lies above its chord somewhere between p and q, which a convex function never does."""
    a, b = loss.value(p, y), loss.value(q, y)
    for share in np.linspace(0.0, 1.0, 33)[1:-1]:
        chord = (1.0 - share) * a + share * b
        if loss.value((1.0 - share) * p + share * q, y) > chord + 1e-9 * (1.0 + abs(a) + abs(b)):
            return True
    return False
