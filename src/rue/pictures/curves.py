"""What pictures show, as numbers: regret, certificate and bounds of every prefix of a run or a game.

Rounds are those that count: scored, and of weight above 0. `at` holds the rounds t, from 1, that are looked at.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from rue.audit import Audit
from rue.compiled import kernel
from rue.errors import RueError
from rue.games import Game
from rue.learners import Learner
from rue.regret.bounds.trace import Trace
from rue.regret.bounds.upper import regret_bounds
from rue.regret.certificates.evidence import open_evidence
from rue.regret.hindsight.comparator import best_in_hindsight, hindsight_path
from rue.regret.risk.bounds import risk_always
from rue.regret.risk.ranges import loss_range
from rue.runs.evaluation import score
from rue.runs.replay import trace
from rue.runs.run import Run
from rue.streams import Block

__all__ = [
    "AuditCurves",
    "GameCurves",
    "Rounds",
    "best_constant",
    "bounds_at",
    "loss_per_mistake",
    "range_of",
    "risk_bounds_at",
    "times",
]

QUICK = 1_000_000
"""Up to so many numbers in the stream, the best in hindsight of a smooth loss takes a fraction of a second."""


FAR = 2.0**60
"""How far out, in units of the largest label, the best constant is looked for."""


def times(T: int, count: int) -> Any:
    """At most `count` rounds between 1 and T, evenly spread on a logarithmic axis."""
    return np.unique(np.rint(np.geomspace(1.0, T, count)).astype(np.int64))


@dataclasses.dataclass(frozen=True, eq=False)
class Rounds:
    """The rounds of a run that count."""

    losses: Any
    """ℓ(p_t, y_t), without weight."""
    weights: Any
    labels: Any
    predictions: Any

    @classmethod
    def of(cls, run: Run) -> Rounds:
        weights = np.ones(run.y.size) if run.weights is None else run.weights.astype(np.float64)
        counts = run.scored
        return cls(run.losses[counts], weights[counts], run.y[counts], run.predictions[counts])

    @property
    def T(self) -> int:
        return int(self.losses.size)

    @property
    def risks(self) -> Any:
        """The sequential risk Σ weight·ℓ / Σ weight after every round (Q1)."""
        return np.cumsum(self.weights * self.losses) / np.cumsum(self.weights)

    def recent(self, at: Any, share: float, least: int) -> Any:
        """The same of the last `share` of the rounds up to t, of at least so many if there are."""
        sums = np.concatenate([[0.0], np.cumsum(self.weights * self.losses)])
        masses = np.concatenate([[0.0], np.cumsum(self.weights)])
        begin = np.maximum(0, at - np.maximum(least, np.rint(share * at).astype(np.int64)))
        return (sums[at] - sums[begin]) / (masses[at] - masses[begin])

    @property
    def mistakes(self) -> Any:
        """M_t (Q4)."""
        return np.cumsum(self.labels * self.predictions <= 0.0)


# The best constant answer.


@kernel
def _slope(loss: Any, p: Any, y: Any, weights: Any) -> Any:
    total = 0.0
    for i in range(y.size):
        total += weights[i] * loss.slope(p, y[i])
    return total


def best_constant(loss: Any, y: Any, weights: Any) -> float | None:
    """inf over numbers c of Σ weight·ℓ(c, y), by bisection of its slope; None if there is none."""
    values, places = np.unique(y, return_inverse=True)
    values, masses = values.astype(np.float64), np.bincount(places, weights)
    if loss.task == "multiclass":  # the frequencies
        return float(masses @ np.log(masses.sum() / masses))
    size = max(1.0, float(np.abs(values).max()))
    low, high = -size, size
    while _slope(loss, low, values, masses) > 0.0 and low > -FAR * size:
        low *= 2.0
    while _slope(loss, high, values, masses) < 0.0 and high < FAR * size:
        high *= 2.0
    ended = max(-low, high) < FAR * size
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if _slope(loss, middle, values, masses) < 0.0 else (low, middle)
    out, totals = np.empty(values.size), []
    for c in (low, high):
        score(loss, np.full(values.size, c), values, out)
        totals.append(float(masses @ out))
    least = min(totals)
    return least if math.isfinite(least) and (ended or loss.nonnegative) else None


def loss_per_mistake(loss: Any) -> float | None:
    """The c with 1{y·p ≤ 0} ≤ ℓ/c, where there is one."""
    return None if loss.per_mistake is None else float(loss.per_mistake)


# Risk.


def range_of(source: Run | Audit) -> float | None:
    """B, the range of the loss, where it is known: of an audit, or from the features' magnitudes if they were kept."""
    if isinstance(source, Audit):
        return next((bound.range for bound in source.risk_bounds if bound.theorem == "B14"), None)
    scales = source.evidence.scales() if source.learner.scales is None else source.learner.scales
    if scales is None or not source.learner.domain.bounded:
        return None
    loss, X = source.learner.loss, float(np.linalg.norm(scales))
    ends = (
        {} if loss.task == "classify" else {"y_low": float(np.nanmin(source.y)), "y_high": float(np.nanmax(source.y))}
    )
    try:
        B = loss_range(loss, source.learner.domain, X, d=source.learner.coordinates, **ends)
    except RueError:
        return None
    return B if math.isfinite(B) else None


def risk_bounds_at(rounds: Rounds, at: Any, B: float, delta: float) -> Any:
    """B14 after each of some rounds."""
    weights, top = rounds.weights, float(rounds.weights.max())
    return np.array(
        [risk_always(rounds.losses[:t], B, delta, weights=weights[:t], largest_weight=top).value for t in at]
    )


# Regret.


def bounds_at(traced: Trace, at: Any, radius: float | None = None) -> dict[tuple[str, str], Any]:
    """For every theorem on regret and form of it, its value after each of some rounds; NaN where it is not met."""
    values_of: dict[tuple[str, str], Any] = {}
    for i, t in enumerate(at):
        if traced.coordinate_squares is not None and t < traced.T:  # AdaGrad's Σg_j² are known at the end only
            continue
        for bound in regret_bounds(_first(traced, int(t)), radius=radius):
            values = values_of.setdefault((bound.theorem, bound.form), np.full(len(at), np.nan))
            if bound.met and math.isfinite(bound.value):
                values[i] = bound.value
    return values_of


def _first(traced: Trace, t: int) -> Trace:
    """The trace of the first t rounds."""
    fields = [
        "predictions",
        "labels",
        "weights",
        "losses",
        "slopes",
        "norms",
        "alphas",
        "gradient_squares",
        "etas",
        "point_squares",
        "features",
    ]
    values = {name: getattr(traced, name) for name in fields}
    cut: dict[str, Any] = {name: None if value is None else value[:t] for name, value in values.items()}
    return dataclasses.replace(traced, **cut)


class AuditCurves:
    """The prefixes of an audited run."""

    def __init__(self, audit: Audit) -> None:
        self.audit, self.run = audit, audit.run
        self.rounds = Rounds.of(audit.run)
        self.T = self.rounds.T
        assert audit.stored is not None
        self.X = audit.stored.X

    @functools.cached_property
    def penalties(self) -> Any:
        """Σ weight·(λ/2)‖w_i‖² after every round; None where the points played are not known."""
        lambda_, traced = self.run.evidence.lambda_, self.audit.trace
        if lambda_ == 0.0:
            return np.zeros(self.T)
        return None if traced is None else np.cumsum(0.5 * lambda_ * self.rounds.weights * traced.point_squares)

    @functools.cached_property
    def regrets(self) -> Any:
        """R_t(u*) after every round, u* the best in hindsight of the whole stream; None where penalties are not."""
        if self.penalties is None:
            return None
        learner, rounds, u = self.run.learner, self.rounds, self.audit.comparator.point
        p = self.X @ u[int(learner.intercept) :] + (u[0] if learner.intercept else 0.0)
        theirs = np.empty(self.T)
        score(learner.loss, p, rounds.labels, theirs)
        theirs += 0.5 * self.run.evidence.lambda_ * float(u @ u)
        return np.cumsum(rounds.weights * (rounds.losses - theirs)) + self.penalties

    def certificates(self, at: Any) -> Any:
        """D1, or D2, after each of some rounds, of the learner alone; None where penalties are not known."""
        if self.penalties is None:
            return None
        evidence = open_evidence(self.run.learner.loss, lambda_=self.run.evidence.lambda_, domain=self.audit.domain)
        evidence.widen(self.run.learner.coordinates)
        before, values = 0, []
        for t in at:
            block = self.between(before, int(t))
            evidence.enter(block, self.rounds.predictions[before:t], self.run.learner.intercept, before)
            evidence.penalty = float(self.penalties[t - 1])
            values.append(evidence.certificate(self.audit.domain).alone)
            before = int(t)
        return np.array(values)

    def between(self, begin: int, end: int) -> Block:
        """The rounds after `begin` and up to `end`."""
        return Block(self.X[begin:end], self.rounds.labels[begin:end], self.rounds.weights[begin:end])

    @functools.cached_property
    def quick(self) -> bool:
        """Whether the best in hindsight is found in a moment."""
        return self.run.learner.loss.smooth is not None and int(self.X.size) <= QUICK

    def best_regrets(self, at: Any) -> Any:
        """The regret after each of some rounds against the best in hindsight of the rounds so far."""
        if self.penalties is None:
            return None
        own = np.cumsum(self.rounds.weights * self.rounds.losses) + self.penalties
        values = []
        for t in at:
            best = best_in_hindsight(
                self.between(0, int(t)),
                loss=self.run.learner.loss,
                domain=self.audit.domain,
                lambda_=self.run.evidence.lambda_,
                intercept=self.run.learner.intercept,
                tolerance=1e-3,
            )
            values.append(float(own[t - 1]) - best.value)
        return np.array(values)

    def bounds(self, at: Any) -> dict[tuple[str, str], Any]:
        """The theorems that speak of this regret, after each of some rounds."""
        traced, K = self.audit.trace, self.audit.domain
        speak = {(bound.theorem, bound.form) for bound in self.audit.bounds if bound.holds is not None}
        if traced is None or not speak or np.any(traced.alphas != traced.weights):  # A6's are on the losses t·ℓ_t
            return {}
        ball = K.as_ball(traced.coordinates)
        radius = ball[1] if ball is not None and not self.run.learner.domain.bounded else None
        return {name: values for name, values in bounds_at(traced, at, radius).items() if name in speak}

    def mistake_bounds(self) -> dict[str, Any]:
        """B1 with its u, and B2, after every round."""
        traced, values_of = self.audit.trace, {}
        for bound in self.audit.mistake_bounds:
            if traced is None or not bound.met:
                continue
            largest = np.maximum.accumulate(traced.norms)
            a = float(np.linalg.norm(bound.comparator)) * largest
            H = np.cumsum(np.maximum(0.0, 1.0 - traced.labels * (traced.features @ bound.comparator)))
            values = a * a if bound.theorem == "B2" else H + a * a / 2.0 + a * np.sqrt(H + a * a / 4.0)
            values_of[bound.theorem] = np.floor(values + 1e-9 * (1.0 + values))
        return values_of

    def path(self, radii: Any) -> Any:
        """The least loss in hindsight on the balls of some radii."""
        best = hindsight_path(
            self.between(0, self.T),
            None,
            radii,
            loss=self.run.learner.loss,
            lambda_=self.run.evidence.lambda_,
            intercept=self.run.learner.intercept,
            tolerance=1e-3,
        )
        return np.array([comparator.value for comparator in best])


class GameCurves:
    """The prefixes of a game."""

    def __init__(self, game: Game) -> None:
        self.game, self.T = game, game.T

    @functools.cached_property
    def trace(self) -> Trace | None:
        """The game as a run of examples: a round with subgradient g is x = g, y = 1 under the linear loss."""
        game = self.game
        if game.algorithm is None:
            return None
        learner = Learner(game.algorithm, intercept=False, d=game.points.shape[1])
        try:
            if game.loss_named is None:
                return trace(learner, game.gradients, np.ones(game.T))
            return trace(learner, np.array([part.x for part in game.rounds]), game.labels)
        except RueError:
            return None

    @functools.cached_property
    def regrets(self) -> Any:
        """Against the best for the rounds so far; without a closed form against one point that is good for them all."""
        game, loss = self.game, self.game.loss_named
        if not np.isnan(game.regrets).all():
            return game.regrets
        if loss is None:
            u = min(game._candidates(), key=game.loss_of)
            return np.cumsum(game.losses - [part.value(u) for part in game.rounds])
        X, theirs = np.array([part.x for part in game.rounds]), np.empty(game.T)
        best = best_in_hindsight(X, game.labels, loss=loss, domain=game.domain, intercept=False, tolerance=1e-3)
        score(loss, X @ best.point, game.labels, theirs)
        return np.cumsum(game.losses - theirs)

    @property
    def closed(self) -> bool:
        """Whether `regrets` compares with the best for the rounds so far."""
        return not np.isnan(self.game.regrets).all()

    def certificates(self, at: Any) -> Any:
        """D1 after each of some rounds."""
        A, S = np.cumsum(self.game.products), np.cumsum(self.game.gradients, axis=0)
        return np.array([A[t - 1] + self.game.domain.support(-S[t - 1]) for t in at])

    def bounds(self, at: Any) -> dict[tuple[str, str], Any]:
        """The theorems about this learner, after each of some rounds."""
        return {} if self.trace is None else bounds_at(self.trace, at)

    def forced(self, at: Any, quantity: str) -> Any:
        """What the opponent has to force, after each of some rounds; None where its theorem is about something else."""
        claim = self.game.forced
        if claim is None:
            return None
        claims = [self._first(int(t)).forced for t in at]
        values = np.array([np.nan if claim is None else claim.value for claim in claims])
        if claim.quantity == quantity:
            return values
        u = self.game.witness
        if claim.quantity == "loss" and quantity == "regret" and u is not None and self.game.loss_of(u) == 0.0:
            return values
        return None

    def _first(self, t: int) -> Game:
        names = ("rounds", "points", "losses", "gradients", "products", "predictions", "labels")
        values = {name: getattr(self.game, name) for name in names}
        cut: dict[str, Any] = {name: None if value is None else value[:t] for name, value in values.items()}
        return dataclasses.replace(self.game, **cut)
