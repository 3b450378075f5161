"""The best point in hindsight: its total loss, and a certified lower bound on any point's (docs/theory.md, D5)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from rue.domains import Ball, Domain, Reals
from rue.errors import DataError, SettingsError, shown
from rue.learners.gradient import require_loss
from rue.losses import Loss
from rue.losses.wrappers import unregularised
from rue.registry import make
from rue.regret.certificates.certificate import require_domain
from rue.regret.hindsight.descent import by_accelerated_gradients, by_subgradients
from rue.regret.hindsight.program import Hindsight, read_stream
from rue.regret.hindsight.solvers import STRICT, Best, by_interior_points, by_newton, suits

__all__ = ["Comparator", "best_in_hindsight", "hindsight_path"]

FAR_FROM_1 = 64
"""Columns whose largest magnitude is beyond 2^±64 are multiplied by a power of two before the search."""


@dataclasses.dataclass(frozen=True)
class Comparator:
    """The best point of a domain for a stored stream, and an interval that holds the least total loss.

    `value` is F(u) = Σ weight·[ℓ(⟨u, x_t⟩, y_t) + (λ/2)‖u‖²] at the point; `at_least` is proved by duality
    (docs/theory.md, D5). `best_in_hindsight` makes it.

    >>> best = best_in_hindsight([[1.0], [-1.0]], [2.0, 0.0], loss="square", radius=10.0)
    >>> best.point.round(6), best.gap < 1e-5
    (array([1., 1.]), True)
    """

    domain: Domain
    loss: Loss
    lambda_: float
    """λ of the regulariser (λ/2)‖u‖², 0 where there is none."""
    point: Any
    """The best point found, the intercept's coordinate first. It lies in the domain up to rounding; in an intersection,
    within 1e-12·(1 + ‖u‖) of every one of the sets, or else `note` says within what."""
    value: float
    """Its total loss Σ weight·[ℓ + (λ/2)‖u‖²]: the interval's upper end."""
    at_least: float
    """What every point of the domain loses at least: the interval's lower end."""
    attained: bool = True
    """False when no point of the domain reaches the infimum."""
    note: str = ""
    """Words for what the numbers do not say."""

    @property
    def interval(self) -> tuple[float, float]:
        """(at_least, value): the infimum lies between."""
        return self.at_least, self.value

    @property
    def gap(self) -> float:
        """value − at_least."""
        return self.value - self.at_least

    def __str__(self) -> str:
        radius = self.domain.centred_radius
        which = f"of norm ≤ {radius:g}" if radius is not None else f"in {self.domain!r}"
        end = f": {self.note}" if self.note else ""
        if self.at_least == -math.inf:
            return f"the best linear model {which} loses at most {self.value:,.6g} on this stream{end}."
        return (
            f"the best linear model {which} loses {self.value:,.10g} on this stream, "
            f"at most {max(self.gap, 0.0):.2g} from the least possible{end}."
        )


def best_in_hindsight(
    X: Any,
    y: Any = None,
    *,
    loss: Any = "logistic",
    radius: float | None = None,
    domain: Any = None,
    lambda_: float = 0.0,
    weights: Any = None,
    intercept: bool = True,
    tolerance: float = 1e-6,
    start: Any = None,
) -> Comparator:
    """Minimise the stream's total loss Σ weight·[ℓ(⟨u,x⟩, y) + (λ/2)‖u‖²] over a ball, or a domain, or without either.

    This is what regret compares with (docs/theory.md, Q2); the interval is proved by duality (D5). Labels are as the
    loss takes them. The search ends when the certified gap is `tolerance` times the loss. If it ends earlier, the
    interval is wider, still true, and `note` says so. `start` is a point to begin at.

    X and `y` are the stream; `lambda_` adds (λ/2)‖u‖² to every round, and `weights` multiply the rounds.

    >>> import numpy as np
    >>> best = best_in_hindsight(np.eye(2), [1, -1], loss="hinge", radius=1, intercept=False)
    >>> best.point.round(3), round(best.value, 4)
    (array([ 0.707, -0.707]), 0.5858)
    """
    settings = _Settings(loss, lambda_, intercept, tolerance)
    if radius is not None and domain is not None:
        raise SettingsError("best_in_hindsight: give a radius or a domain, not both.")
    K = Ball(radius) if radius is not None else require_domain(make("domain", "reals" if domain is None else domain))
    stream = read_stream(X, y, weights, settings.loss)
    return _solved(stream, settings, K, start)


def hindsight_path(
    X: Any,
    y: Any = None,
    radii: Iterable[float] = (),
    *,
    loss: Any = "logistic",
    lambda_: float = 0.0,
    weights: Any = None,
    intercept: bool = True,
    tolerance: float = 1e-6,
    start: Any = None,
) -> list[Comparator]:
    """`best_in_hindsight` on the balls of several radii, each begun where the next smaller one ended.

    `radii` are those of the balls; `start` is a point to begin the first search at. X, `y`, `loss`, `lambda_`,
    `weights`, `intercept` and `tolerance` are as for `best_in_hindsight`.

    >>> import numpy as np
    >>> [round(best.value, 3) for best in hindsight_path(np.eye(2), [1, -1], [1, 2], loss="hinge", intercept=False)]
    [0.586, 0.0]

    docs/theory.md, D5.
    """
    settings = _Settings(loss, lambda_, intercept, tolerance)
    balls = [Ball(radius) for radius in radii]
    if not balls:
        raise SettingsError("hindsight_path: give the radii, a list of positive numbers.")
    stream = read_stream(X, y, weights, settings.loss)
    best_by_radius: dict[float, Comparator] = {}
    for ball in sorted(balls, key=lambda ball: ball.radius):
        if ball.radius not in best_by_radius:
            best_by_radius[ball.radius] = _solved(stream, settings, ball, start)
            start = best_by_radius[ball.radius].point
    floor = -math.inf
    for radius in sorted(best_by_radius, reverse=True):  # what a larger ball cannot do, a smaller one cannot
        floor = max(floor, best_by_radius[radius].at_least)
        best_by_radius[radius] = dataclasses.replace(best_by_radius[radius], at_least=floor)
    return [best_by_radius[ball.radius] for ball in balls]


class _Settings:
    """The arguments that both functions share, checked."""

    def __init__(self, loss: Any, lambda_: Any, intercept: Any, tolerance: Any) -> None:
        given = loss
        loss, own = unregularised(given)
        try:
            self.lambda_, self.tolerance = float(lambda_), float(tolerance)
        except (TypeError, ValueError) as error:
            raise SettingsError("hindsight: lambda_ and tolerance must be numbers.") from error
        if own and self.lambda_:
            raise SettingsError(f"hindsight: {make('loss', given)!r} has a λ of its own: leave lambda_ out.")
        self.lambda_ = self.lambda_ or own
        require_loss(loss, "hindsight")
        if not 0.0 <= self.lambda_ < math.inf:
            raise SettingsError(f"hindsight: lambda_ must be ≥ 0 and finite, not {shown(lambda_)}.")
        if not 0.0 < self.tolerance < 1.0:
            raise SettingsError(f"hindsight: tolerance must lie between 0 and 1, not be {shown(tolerance)}.")
        if not isinstance(intercept, int | np.bool_) or intercept not in (0, 1):
            raise SettingsError(f"hindsight: intercept must be True or False, not {shown(intercept)}.")
        self.loss: Loss = loss
        self.intercept = bool(intercept)


@np.errstate(all="ignore")
def _solved(stream: tuple[Any, Any, Any], settings: _Settings, K: Domain, start: Any) -> Comparator:
    units = _units(*stream[:2], settings, K)
    if units is not None:
        best = units.solved(*stream, settings, K, start)
        if np.isfinite(best.point).all() and math.isfinite(best.value):
            return best
    best = _solved_as_given(stream, settings, K, start, settings.lambda_)
    X = stream[0]
    if not K.whole_space and not settings.lambda_ and X.size and _magnitudes(X).max() > 2.0**FAR_FROM_1:
        free = _solved(stream, settings, Reals(), None)  # weights of huge columns are tiny, so it may well be in K
        if K.contains(free.point, 0.0) and free.gap < best.gap:
            return dataclasses.replace(free, domain=K)
    return best


@dataclasses.dataclass(frozen=True)
class _Units:
    """Powers of two in which the same problem has numbers near 1.

    With u_j = 2^(m + k_j)·v_j the columns 2^k_j·x_j predict 2^-m times as much: (p − y)² is 2^2m times that of labels
    2^-m·y. Newton's and interior point methods square features, and their tolerances are relative to 1, so that beyond
    about 2^±100 they stood still.
    """

    columns: Any
    """k_j, one for each feature."""
    labels: int
    """m; 0 unless the loss is a square."""

    def solved(self, X: Any, y: Any, weights: Any, settings: _Settings, K: Domain, start: Any) -> Comparator:
        """The problem in these units, and the answer in the given ones."""
        common, m = int(self.columns[0]) if self.columns.size else 0, self.labels
        shift = np.concatenate([np.zeros(int(settings.intercept), dtype=np.int64), self.columns]) + m
        ball = K if K.whole_space else Ball(math.ldexp(K.centred_radius or 0.0, -common - m))
        begin = None if start is None else np.asarray(start, dtype=np.float64)
        if begin is not None and begin.shape == shift.shape:
            begin = np.ldexp(begin, -shift)
        stream = _times(X, self.columns), np.ldexp(y, -m), weights
        lambda_ = math.ldexp(settings.lambda_, 2 * common) if settings.lambda_ else 0.0
        best = _solved_as_given(stream, settings, ball, begin, lambda_)
        return dataclasses.replace(
            best,
            domain=K,
            lambda_=settings.lambda_,
            point=np.ldexp(best.point, shift),
            value=_ldexp(best.value, 2 * m),
            at_least=_ldexp(best.at_least, 2 * m),
        )


def _units(X: Any, y: Any, settings: _Settings, K: Domain) -> _Units | None:
    """In which units to solve a problem whose numbers are far from 1; None where it would not stay the same.

    Over the whole space every column may have a power of its own; a ball stays a ball, and the regulariser a multiple
    of ‖v‖², only if all have the same one, which the intercept's must not have.
    """
    if not X.shape[0] or not (K.whole_space or K.centred_radius):
        return None
    columns, m = _powers(X, settings, K), 0
    if settings.loss.quadratic and abs(m := int(np.frexp(np.abs(y).max())[1])) <= FAR_FROM_1:
        m = 0
    common = int(columns[0]) if columns.size else 0
    radius, lambda_ = _ldexp(K.centred_radius or 1.0, -common - m), _ldexp(settings.lambda_, 2 * common)
    fits = 0.0 < radius < math.inf and lambda_ < math.inf and (lambda_ > 0.0) == (settings.lambda_ > 0.0)
    if not fits or not (m or columns.any()):
        return None
    exact = np.array_equal(np.ldexp(np.ldexp(y, -m), m), y) and _same(_times(_times(X, columns), -columns), X)
    return _Units(columns, m) if exact else None  # elsewhere something underflows


def _powers(X: Any, settings: _Settings, K: Domain) -> Any:
    """By which powers of two to multiply columns that are far from 1."""
    none = np.zeros(X.shape[1], dtype=np.int64)
    if not X.shape[1]:
        return none
    largest = _magnitudes(X)
    if K.whole_space and settings.lambda_ == 0.0:
        exponents = np.frexp(largest)[1].astype(np.int64)  # 0 for a column of zeros
        return np.where(np.abs(exponents) > FAR_FROM_1, -exponents, 0)
    top = int(np.frexp(largest.max())[1])
    return none if settings.intercept or abs(top) <= FAR_FROM_1 else none - top


def _magnitudes(X: Any) -> Any:
    """The largest magnitude of each column."""
    largest = abs(X).max(axis=0)
    return np.asarray(largest if isinstance(X, np.ndarray) else largest.todense()).ravel()


def _ldexp(value: float, power: int) -> float:
    return float(np.ldexp(value, power))


def _times(X: Any, powers: Any) -> Any:
    """The columns times powers of two."""
    if isinstance(X, np.ndarray):
        return np.ldexp(X, powers)
    scaled = X.copy()
    scaled.data = np.ldexp(X.data, powers[X.indices])
    return scaled


def _same(X: Any, Z: Any) -> bool:
    return np.array_equal(X, Z) if isinstance(X, np.ndarray) else np.array_equal(X.data, Z.data)


def _solved_as_given(
    stream: tuple[Any, Any, Any], settings: _Settings, K: Domain, start: Any, lambda_: float
) -> Comparator:
    problem = Hindsight(*stream, settings.loss, lambda_, K, settings.intercept)
    K.require(problem.d)
    if K.simplex_total is not None and problem.d == 0:
        raise DataError("a simplex without coordinates has no points: give it features or an intercept.")
    best = Best(problem, settings.tolerance)
    best.offer(K.project(np.zeros(problem.d)))
    begin = None
    if start is not None:
        begin = np.asarray(start, dtype=np.float64)
        if begin.shape != (problem.d,) or not np.isfinite(begin).all():
            raise DataError(f"start must be {problem.d} finite numbers, one a coordinate, the intercept's first.")
        begin = K.project(begin)
        best.offer(begin)
    attained, note = _search(problem, best, begin)
    if best.within > STRICT:
        note = "; ".join(filter(None, [note, f"the point may lie {best.within:g} outside of some of the sets"]))
    return Comparator(K, settings.loss, lambda_, best.point, best.value, min(best.at_least, best.value), attained, note)


def _search(problem: Hindsight, best: Best, start: Any) -> tuple[bool, str]:
    """Solve by the method that suits; whether the infimum is attained, and words."""
    if problem.y.size == 0:
        best.offer_bound(0.0)
        return True, "every example has weight 0"
    if problem.d == 0:  # the only point there is
        best.offer_bound(best.value)
        return True, ""
    if problem.loss.linear:
        return _linear(problem, best)
    if suits(problem):
        (by_newton if problem.terms is None else by_interior_points)(problem, best, start)
    if not best.done:
        _offer_scaled(problem, best)
    if not best.over and not _escapes(problem, best):
        rounds = int(min(3000, max(300, 4e9 / (10.0 * problem.X.size + problem.d))))
        if len(problem.domain.parts) > 1:  # every projection is a search of its own
            rounds = min(rounds, 600)
        begin = best.point if start is None else start
        smooth = problem.known or problem.loss.smooth is not None
        (by_accelerated_gradients if smooth else by_subgradients)(problem, best, begin, rounds)
    best.sharpen()
    if _escapes(problem, best):
        return False, "the infimum is approached by ever larger points and attained by none"
    if best.at_least == -math.inf:
        return True, "nothing is certified from below on this unbounded domain"
    if not best.done and best.over:
        return True, f"rounding leaves a gap of {best.gap:.2g}, more than was asked for: columns differ much in size"
    if not best.done:
        return True, f"the search ended with a gap of {best.gap:.2g}, more than was asked for"
    return True, ""


def _linear(problem: Hindsight, best: Best) -> tuple[bool, str]:
    """⟨S, u⟩ + (λΣweight/2)‖u‖²: a closed form, or no bound at all."""
    g = problem.slopes(np.zeros(problem.y.size))
    S, K = problem.pull(g), problem.domain
    if problem.ridge > 0.0:
        lowest = -S / problem.ridge
        if np.isfinite(lowest).all():
            best.offer(K.project(lowest))
    elif (ends := K.sides(problem.d)) is not None:
        corner = np.where(S > 0.0, ends[0], np.where(S < 0.0, ends[1], best.point))
        if np.isfinite(corner).all():
            best.offer(corner)
    elif K.declares("lowest"):
        corner = best.point.copy()
        if K.lowest(S, corner) and np.isfinite(corner).all():
            best.offer(K.project(corner))
    best.offer_bound(problem.lower(g, S, best.point))
    if K.bounded and not best.done:  # no closed form, or a projection that was not done
        by_accelerated_gradients(problem, best, best.point, 300)
        best.offer_bound(problem.lower(g, S, best.point))
    if best.at_least == -math.inf and K.sides(problem.d) is not None:
        return False, "the total loss has no lower bound: there are points with losses as negative as one likes"
    if best.at_least == -math.inf:
        return True, "nothing is certified from below on this unbounded domain"
    if not best.done:
        return True, f"the search ended with a gap of {best.gap:.2g}, more than was asked for"
    return True, ""


def _offer_scaled(problem: Hindsight, best: Best) -> None:
    """Where every margin is positive a multiple of the point has no hinge loss at all."""
    loss = problem.loss
    if loss.task == "classify" and loss.value(1.0, 1.0) == loss.value(-1.0, -1.0) == 0.0 and problem.ridge == 0.0:
        margin = float(np.min(problem.y * problem.predict(best.point)))
        if margin > 0.0:
            larger = best.point * (1.0 + 1e-12) / margin
            if np.isfinite(larger).all() and problem.domain.contains(larger, 0.0):
                best.offer(larger)


def _escapes(problem: Hindsight, best: Best) -> bool:
    """Whether some direction of the domain lowers the loss for ever without ending: then nothing attains the infimum.

    It is a linear program, tried only where predictions have gone far.
    """
    ends, logistic = problem.domain.sides(problem.d), problem.loss.log_odds
    if not problem.unbounded or ends is None or not (logistic or problem.loss.log_mean):
        return False
    p = problem.predict(best.point)
    sign = problem.y if logistic else -np.ones_like(problem.y)
    still = np.zeros(p.size, dtype=bool) if logistic else problem.y > 0.0
    if not (sign * p)[~still].max(initial=-math.inf) > 8.0:
        return False
    from scipy import sparse
    from scipy.optimize import linprog

    X: Any = problem.X
    if problem.intercept:
        ones: Any = np.ones((p.size, 1))
        X = sparse.hstack([ones, X], format="csr") if problem.sparse else np.hstack([ones, X])
    scale: Any = sparse.diags_array(sign / np.maximum(problem.norms, 1e-300))
    X = scale @ X
    program: Any = linprog(
        -np.asarray(X[~still].sum(axis=0)).ravel(),
        A_ub=-X[~still],
        b_ub=np.zeros(int((~still).sum())),
        A_eq=X[still],
        b_eq=np.zeros(int(still.sum())),
        bounds=[(-1.0 if math.isinf(a) else 0.0, 1.0 if math.isinf(b) else 0.0) for a, b in zip(*ends, strict=True)],
    )
    return bool(program.status == 0 and -program.fun > 1e-6)
