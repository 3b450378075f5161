"""`Trace`: every round of one run, which is what the theorems look at; `rue.trace` makes it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import kernel, noinline, values
from rue.errors import SettingsError
from rue.learners import Learner
from rue.learners.points import GRADIENTS, LARGEST, MASS, T
from rue.regret.bounds.mistakes import MistakeProof
from rue.regret.bounds.perceptron import stacked
from rue.regret.bounds.telescope import Telescope
from rue.steps import Seen
from rue.streams import Block

__all__ = ["Recording", "Trace", "is_perceptron"]

P, Y, WEIGHT, SLOPE, LOSS, SQUARE, SIZE, TIME, MASSES, LARGESTS, SUMS = range(11)
COLUMNS = 11


@values
class _Elsewhere(NamedTuple):
    """Stands for a point that has no ‖w‖² at hand."""

    memory: Any

    def norm_square(self) -> Any:
        return 0.0


@values
class _Recorder(NamedTuple):
    """A ledger that writes down every round; `cursor` holds the next row of the table and ‖w_t‖²."""

    point: Any
    regularised: Any
    table: Any
    cursor: Any

    def room(self, size: Any) -> Any:
        return True

    def next_row(self, loss: Any, rows: Any, i: Any, scored: Any) -> None:
        pass

    @noinline
    def close(self, loss: Any, rows: Any, end: Any) -> None:
        pass

    def enter(self, loss: Any, row: Any, p: Any, y: Any, weight: Any) -> None:
        k, m, table = int(self.cursor[0]), self.point.memory, self.table
        table[k, P], table[k, Y], table[k, WEIGHT], table[k, SLOPE] = p, y, weight, loss.slope(p, y)
        table[k, LOSS], table[k, SQUARE], table[k, SIZE] = loss.value(p, y), row.square(), self.cursor[1]
        table[k, TIME], table[k, MASSES], table[k, LARGESTS], table[k, SUMS] = m[T], m[MASS], m[LARGEST], m[GRADIENTS]
        self.cursor[0] += 1.0
        if self.regularised:
            self.cursor[1] = self.point.norm_square()


@kernel
def _etas(step: Any, table: Any, out: Any) -> None:
    """η_t from the very numbers the rule gave the step."""
    for k in range(out.size):
        out[k] = step.eta(table[k, TIME], Seen(table[k, MASSES], table[k, LARGESTS], table[k, SUMS]))


@dataclasses.dataclass(frozen=True, eq=False)
class Trace:
    """One run, round by round: arrays of length T, without the examples that were refused or had weight 0.

    Round t's loss is α_t·(ℓ(⟨w, x_t⟩, y_t) + (λ/2)‖w‖²), where α_t is the example's weight (times t for A6). The upper
    bounds of docs/theory.md, section 4, are computed from it.

    >>> import rue
    >>> X, y = rue.census()
    >>> trace = rue.audit(rue.OGD("hinge", "ball:10"), X[:50], y[:50]).trace
    >>> trace.T, bool((trace.etas[1:] <= trace.etas[:-1]).all())  # the steps never rise
    (50, True)
    """

    algorithm: Any
    """The learner's description: its name, loss, domain, and what else it has."""
    step: Any
    """The step as resolved, or None for a learner that has none."""
    coordinates: int
    """The number of coordinates, the intercept's included."""
    start: Any
    """w_1, the point before the first round."""
    before: int
    """Rounds the learner had learnt before this run."""
    predictions: Any
    """p_t, made before each update."""
    labels: Any
    """y_t, as the loss takes them."""
    weights: Any
    """The examples' weights."""
    losses: Any
    """ℓ(p_t, y_t), without weight and regulariser."""
    slopes: Any
    """g_t: weight times the loss's slope at p_t."""
    norms: Any
    """‖x_t‖, the intercept's 1 included."""
    alphas: Any
    """α_t, how much each round counts."""
    gradient_squares: Any
    """‖∇‖² of the round's loss at w_t, with α_t and the regulariser."""
    etas: Any
    """η_t as used; NaN for a learner that has none."""
    lambda_: float = 0.0
    """λ of the regulariser (λ/2)‖w‖², 0 where there is none."""
    point_squares: Any = None
    """‖w_t‖², for regularised losses."""
    coordinate_squares: Any = None
    """Σ_t g_{t,j}² for each coordinate, for AdaGrad."""
    residual: float = 0.0
    """The worst distance to the domain that a projection left."""
    features: Any = None
    """The rows x_t themselves, where a theorem asks for them: the Perceptron's speaks of every u, B10 of x = 1."""
    points: Any = None
    """w_1, …, w_{T+1}, as rows, where they were asked for (`rue.trace` with `points=True`)."""

    @property
    def T(self) -> int:
        """How many rounds there were."""
        return int(self.predictions.size)

    @property
    def loss(self) -> Any:
        """The loss that was learnt with."""
        return self.algorithm.loss

    @property
    def domain(self) -> Any:
        """The set K in which the points lie."""
        return self.algorithm.domain

    @property
    def sigmas(self) -> Any:
        """σ_t, the strong convexity of each round: from the regulariser, and in one coordinate from the loss."""
        curved = self.loss.strongly_convex * self.norms**2 if self.coordinates == 1 else 0.0
        return self.alphas * (self.lambda_ + curved)

    @property
    def mistakes(self) -> int:
        """M_T (Q4)."""
        return int(np.count_nonzero(self.labels * self.predictions <= 0.0))

    def telescope(self, u: Any = None) -> Telescope:
        """The proof of a regret bound on this run, term by term; needs `points=True` (docs/theory.md, P1 to P3).

        `u` is any point of the domain, the intercept's weight first if there is one; by default the best in hindsight.

        >>> import rue
        >>> trace = rue.trace(rue.OGD("hinge", "ball:1", intercept=False), [[1.0]] * 3, [1, 1, 1], points=True)
        >>> trace.telescope([1.0]).holds
        True
        """
        return Telescope.of(self, u)

    def mistake_proof(self, u: Any = None) -> MistakeProof:
        """The proof of the Perceptron's mistake bound on this run; needs `points=True` (docs/theory.md, P4 and P5).

        `u` is any point, the intercept's weight first if there is one; by default the one that makes B1 smallest.

        >>> import rue
        >>> trace = rue.trace(rue.Perceptron(intercept=False), [[1.0]], [1], points=True)
        >>> trace.mistake_proof([1.0]).holds
        True
        """
        if not is_perceptron(self.algorithm):
            raise SettingsError(f"mistake_proof: it is about the Perceptron, not about {self.algorithm.name}.")
        return MistakeProof.of(self, u)

    def tolerance(self, U: float) -> float:
        """What rounding may add to a regret against points of norm ≤ U (docs/theory.md, end of section 6).

        Where U is infinite, the minimiser of regularised rounds has norm ≤ max‖g_t‖/λ.

        >>> import rue
        >>> X, y = rue.census()
        >>> 0.0 < rue.trace(rue.OGD("hinge", "ball:1"), X[:50], y[:50]).tolerance(1.0) < 1e-9
        True
        """
        data = np.abs(self.slopes) / self.weights  # without weight
        if not math.isfinite(U):
            U = float(np.max(data * self.norms, initial=0.0)) / self.lambda_ if self.lambda_ else 0.0
        sizes = 2.0 * np.abs(self.losses) + data * (np.abs(self.predictions) + self.norms * U)
        sizes += self.labels**2 if self.loss.quadratic else np.abs(self.labels)
        if self.lambda_:
            sizes += self.lambda_ * (self.point_squares + U * U)
        return float((self.T + 10) * 4e-16 * np.sum(self.alphas * sizes))


class Recording:
    """Accounts of every round, for a driver that replays a run (`rue.trace`); `trace` puts them together."""

    def __init__(self, learner: Learner, points: bool = False) -> None:
        """`points` has the features kept whatever the theorems ask for, since a proof's terms need them too."""
        self._before = learner.t
        self._start, self._sums = learner.point, _sums(learner)
        self._tables: list[Any] = []
        self._features: list[tuple[Block, Any]] = []
        squares = learner.algorithm.family == "leader" and learner.loss.quadratic
        self._keeps_features = points or squares or is_perceptron(learner.algorithm)
        self._cursor = np.zeros(2)

    def ledger(self, learner: Learner, block: Block) -> Any:
        """A ledger with a row for each example of the block."""
        if not self._tables:  # now that the learner knows how many coordinates there are
            self._start, self._sums = learner.point, _sums(learner)
            self._cursor[1] = float(self._start @ self._start)
        self._cursor[0] = 0.0
        self._tables.append(np.empty((len(block), COLUMNS)))
        state: Any = learner._point
        point = state if learner.algorithm.family == "descent" else _Elsewhere(state.memory)
        regularised = learner.algorithm.regulariser > 0.0
        return _Recorder(point, regularised, self._tables[-1], self._cursor)

    def enter(self, learner: Learner, block: Block, predictions: Any) -> None:
        """Keep the rounds that were written down: not those of refused and skipped rows."""
        self._tables[-1] = self._tables[-1][: int(self._cursor[0])]

    def add_features(self, block: Block, predictions: Any) -> None:
        """Keep a block's rows, as they were read, where a theorem asks for them."""
        if self._keeps_features:
            weighty = True if block.weights is None else block.weights > 0
            self._features.append((block, np.isfinite(predictions) & weighty))

    def wait(self) -> None:
        """Nothing is left to other threads."""

    def trace(self, learner: Learner) -> Trace:
        """What was recorded, once the learner has learnt it all."""
        table = np.concatenate(self._tables) if self._tables else np.empty((0, COLUMNS))
        width = learner.coordinates
        rows = stacked(self._features, learner.intercept, width) if self._keeps_features else None
        return _assembled(learner, table, _padded(self._start, width), self._before, self._sums, rows)


def _assembled(learner: Learner, table: Any, start: Any, before: int, sums: Any, features: Any) -> Trace:
    algorithm = learner.algorithm
    descends = algorithm.family == "descent"
    lambda_ = algorithm.regulariser if descends else 0.0
    weights = table[:, WEIGHT]
    alphas = algorithm.round_weights(weights, table[:, TIME]) if descends else weights
    step, etas = algorithm.step_in(learner.coordinates) if descends else None, np.full(len(table), np.nan)
    if step is not None:
        _etas(step, table, etas)
    p, slope, size = table[:, P], table[:, SLOPE], table[:, SIZE]
    gradients = slope * (slope * table[:, SQUARE]) + lambda_ * (2.0 * slope * p + lambda_ * size)
    after = _sums(learner)
    return Trace(
        algorithm,
        step,
        learner.coordinates,
        start,
        before,
        p,
        table[:, Y],
        weights,
        table[:, LOSS],
        weights * slope,
        np.sqrt(table[:, SQUARE]),
        alphas,
        np.maximum(0.0, alphas * (alphas * gradients)),
        etas,
        lambda_,
        size if lambda_ > 0.0 else None,
        None if after is None else after - _padded(sums, learner.coordinates),
        learner.residual,
        features,
    )


def _sums(learner: Learner) -> Any:
    """Σg_j² of each coordinate as the learner has it now; None if it keeps no such sums."""
    if learner._point is None:
        return np.zeros(learner.coordinates) if learner.algorithm.family == "diagonal" else None
    sums = learner.algorithm.coordinate_squares(learner._point)
    return None if sums is None else sums[: learner.coordinates]


def _padded(array: Any, size: int) -> Any:
    return np.concatenate([array, np.zeros(size - array.size)])


def is_perceptron(algorithm: Any) -> bool:
    """Whether it is A1, under whatever name."""
    return algorithm.family == "descent" and bool(
        algorithm.loss.rosenblatt
        and algorithm.domain.whole_space
        and algorithm.step.rule == "fixed"
        and algorithm.lambda_ == 0.0
    )
