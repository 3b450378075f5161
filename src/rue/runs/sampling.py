"""Stochastic optimisation: a stored set of examples, of which each round draws one (docs/theory.md, B11, B20)."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from rue.errors import DataError, SettingsError, shown
from rue.learners import OGD
from rue.losses import Loss
from rue.registry import make
from rue.regret import Comparator, best_in_hindsight
from rue.runs.evaluation import score
from rue.runs.learn import learn
from rue.runs.run import Run
from rue.steps import Fixed, Sqrt
from rue.streams import Labels

__all__ = ["Minimisation", "minimise"]


@dataclasses.dataclass(frozen=True, eq=False)
class Minimisation:
    """What `minimise` found: a point, its mean loss over the stored set X, and what theory says of it.

    `sample` says whether examples were drawn; if not, nothing is claimed.

    >>> import numpy as np, rue
    >>> found = rue.minimise(np.eye(2), [1, -1], loss="hinge", rounds=400)
    >>> found.value <= found.bound, found.regularised.point.round(2)
    (True, array([ 1., -1.]))

    docs/theory.md, B20.
    """

    X: Any = dataclasses.field(repr=False)
    y: Any = dataclasses.field(repr=False)
    """The labels as the loss takes them."""
    run: Run = dataclasses.field(repr=False)
    """The pass over the examples drawn."""
    drawn: Any = dataclasses.field(repr=False)
    """Which example each round had."""
    R: float
    """The largest norm of an example, with the intercept's feature if there is one."""
    etas: Any = dataclasses.field(repr=False)
    """η_t, the steps; in the notes' words with α_t = η_t and step 1, or α_t = 1 and step η."""
    sample: bool

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.drawn)

    @property
    def point(self) -> Any:
        """Ση_t w_t / Ση_t, over the points played; the intercept's weight is the first, if there is one."""
        return self.run.learner.average

    @functools.cached_property
    def value(self) -> float:
        """F at the point."""
        p = self.run.learner.predict_many(self.X, average=True)
        losses = np.empty(self.y.size)
        score(self.run.learner.loss, p, self.y, losses)
        return float(losses.mean())

    @functools.cached_property
    def regularised(self) -> Comparator:
        """The minimum of F(u) + ‖u‖²/(2Ση_t), which the value converges to; of sums over the set, not of means.

        With the fixed step 1/(R√T) it is F(u) + R‖u‖²/(2√T). It exists where F itself has no minimum, as on separable
        sets under logistic loss.
        """
        loss, intercept = self.run.learner.loss, self.run.learner.intercept
        lambda_ = 1.0 / float(self.etas.sum())
        return best_in_hindsight(self.X, self.y, loss=loss, lambda_=lambda_, intercept=intercept)

    @property
    def squares(self) -> float:
        """Σ‖g_t‖² as it was seen, g_t the subgradient of round t's loss η_t·ℓ."""
        slope, x = self.run.learner.loss.slope, _squares(self.X, self.run.learner.intercept)[self.drawn]
        pairs = zip(self.run.predictions.tolist(), self.run.y.tolist(), strict=True)
        slopes = np.array([slope(p, y) for p, y in pairs])
        return float(((self.etas * slopes) ** 2 * x).sum())

    @property
    def seen(self) -> float:
        """min_u F(u) + (‖u‖² + Σ‖g_t‖²)/(2Ση_t): E F(point) is at most the expectation of this."""
        return float(self.regularised.value / self.y.size + self.squares / (2.0 * self.etas.sum()))

    @property
    def bound(self) -> float:
        """The same with ‖g_t‖ ≤ η_t·L·R, L the loss's Lipschitz constant: E F(point) is at most this.

        With the fixed step and L = 1 it is min_u F(u) + R‖u‖²/(2√T) + R/(2√T). NaN without `sample`: nothing is claimed
        of examples that are not drawn.
        """
        slope = self.run.learner.loss.lipschitz
        if not self.sample or slope is None:
            return math.nan
        spent = (slope * self.R) ** 2 * float((self.etas**2).sum())
        return float(self.regularised.value / self.y.size + spent / (2.0 * self.etas.sum()))

    def __str__(self) -> str:
        least = self.regularised.value / self.y.size
        sentence = (
            f"{self.rounds:,} rounds over {self.y.size:,} examples: the average of the points has a mean loss of "
            f"{self.value:.6g}; the least of F(u) + ‖u‖²/(2Ση_t) is {least:.6g}."
        )
        if math.isnan(self.bound):
            return sentence + " Nothing is claimed of examples that are not drawn independently."
        return sentence + f" In expectation it is at most {self.bound:.6g} (B20)."


def minimise(
    X: Any,
    y: Any,
    *,
    loss: Any = "hinge",
    rounds: int | None = None,
    weighting: str = "uniform",
    sample: bool = True,
    seed: int = 0,
    intercept: bool = False,
) -> Minimisation:
    """Minimise F(u) = (1/N) Σ ℓ(⟨u, x_i⟩, y_i) by online subgradient descent on examples drawn uniformly, from w_1 = 0.

    With R = max ‖x_i‖, weighting "uniform" takes the fixed step 1/(R√T) and the mean of the points, "steps" the steps
    1/(R√t) and the mean weighted by them: in both E F(w̄) ≤ F(u) + (‖u‖² + E Σ‖g_t‖²)/(2Ση_t) for every u (B20). The
    draws are `numpy.random.default_rng(seed).integers(N, size=rounds)`; with sample=False the examples come in their
    order, again and again, of which nothing is claimed. N rounds unless `rounds` says otherwise; with an `intercept` u
    has a weight for a feature that is always 1.

    >>> import rue
    >>> X, y = rue.census()
    >>> found = rue.minimise(X[:500], y[:500], loss="logistic", rounds=5000)
    >>> found.value <= found.bound
    True

    Online to batch; docs/theory.md, B11 and B20.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise SettingsError(f"minimise: seed must be a whole number ≥ 0, not {shown(seed)}.")
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    chosen = make("loss", loss)
    if not isinstance(chosen, Loss) or chosen.lipschitz is None:
        raise SettingsError(
            f"minimise: the loss must be Lipschitz, as hinge, logistic and absolute loss are, not {shown(loss)}: the "
            "step 1/(R√T) is made for such."
        )
    labels = Labels.under(chosen, y).encode(np.asarray(y))
    squares = _squares(X, intercept)
    if squares.size != labels.size or not squares.size:
        raise DataError(f"minimise: there are {squares.size} rows and {labels.size} labels: one label a row.")
    T = squares.size if rounds is None else rounds
    if isinstance(T, bool) or not isinstance(T, int | np.integer) or T < 1:
        raise SettingsError(f"minimise: rounds must be a whole number, at least 1, not {shown(rounds)}.")
    if weighting not in ("uniform", "steps"):
        raise SettingsError(f"minimise: weighting must be 'uniform' or 'steps', not {shown(weighting)}.")
    R = math.sqrt(float(squares.max()))
    if not 0.0 < R < math.inf:
        raise DataError("minimise: the rows must be finite, and not all of them 0.")
    uniform, t = weighting == "uniform", np.arange(1.0, T + 1.0)
    step: Any = Fixed(1.0 / (R * math.sqrt(T))) if uniform else Sqrt(1.0 / R)
    learner = OGD(chosen, "reals", step, average=weighting, intercept=intercept)
    drawn = np.random.default_rng(seed).integers(squares.size, size=T) if sample else np.arange(T) % squares.size
    rows = X if hasattr(X, "tocsr") else X.astype(np.float64)
    run = learn(rows[drawn], labels[drawn], learner=learner)
    etas = np.full(T, step.value) if uniform else step.value / np.sqrt(t)
    return Minimisation(rows, labels, run, drawn, R, etas, bool(sample))


def _squares(X: Any, intercept: bool) -> Any:
    """‖x_i‖² of every row, the intercept's feature 1 among them if there is one."""
    try:
        squares = np.asarray(X.multiply(X).sum(axis=1) if hasattr(X, "multiply") else (np.asarray(X) ** 2).sum(axis=1))
    except (TypeError, ValueError) as error:
        raise DataError("minimise: X must be a matrix of numbers, one row an example.") from error
    return squares.reshape(-1).astype(np.float64) + float(intercept)
