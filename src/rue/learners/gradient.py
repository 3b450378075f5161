"""Gradient descent in all the forms of the notes: OGD and its subgradient version, the Perceptron, the SVM.

They are one rule, w_{t+1} = Π_K(w_t − η_t α_t (g_t x_t + λ w_t)), with different losses, sets, steps and weights α_t of
the rounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.compiled import foreign, inline, parameter, require_parameter
from rue.domains import Ball, Domain, Reals
from rue.errors import SettingsError, shown
from rue.learners.algorithm import Algorithm
from rue.learners.average import Average
from rue.learners.learner import Learner
from rue.learners.points import GRADIENTS, LARGEST, MASS, MEMORY, PENALTY, SCALE, Coordinate, Dense, Scaled, T
from rue.ledger import overflows
from rue.losses import Hinge, Indicator, Loss, PerceptronLoss, Regularised
from rue.losses.convexity import once, require_convex, require_set
from rue.losses.wrappers import unregularised
from rue.norms import LEAST_SQUARE
from rue.registry import make, register
from rue.steps import Adaptive, Fixed, Seen, Step, Strong, require_step
from rue.streams import numbering

__all__ = ["OGD", "SVM", "AdaptiveOGD", "Gradient", "Perceptron", "point_on", "require_loss"]

HUGE = 1e100
"""Beyond this a prediction, a slope or a weight makes us look whether the loss itself is still finite."""
RADII = 1e-140, 1e140
"""Balls whose radius has a square."""


@inline
def underflows(row: Any, square: Any, alpha: Any, gradients: Any) -> Any:
    """Whether ‖x‖², or Σ‖g_i‖² because of weights, would be 0 although the features and weights are not."""
    if square < LEAST_SQUARE:
        return row.largest() > 0.0
    return gradients < LEAST_SQUARE and alpha * (alpha * square) < LEAST_SQUARE


@parameter
class GradientRule:
    """One round of gradient descent, compiled for its loss, domain, step and average."""

    loss: Any
    domain: Any
    step: Any
    average: Any
    lambda_: float
    by_time: bool

    def learn(self, point: Any, row: Any, y: Any, weight: Any) -> Any:
        """The prediction, and whether all was finite; if not, or without a weight, nothing has changed."""
        m, lambda_ = point.memory, self.lambda_
        p, square = point.dot_and_square(row)
        if weight == 0.0:
            return p, math.isfinite(p)
        slope = self.loss.slope(p, y)
        if not (abs(p) <= HUGE and abs(slope) <= HUGE and weight <= HUGE) and overflows(self.loss, p, y, weight, slope):
            return p, False
        t = m[T] + 1.0
        alpha = weight * t if self.by_time else weight
        g = alpha * slope
        moving = g != 0.0 or lambda_ > 0.0
        gradient = g * (g * square) if g != 0.0 else 0.0
        size = 0.0
        if lambda_ > 0.0:
            size = point.norm_square()
            gradient += alpha * lambda_ * (2.0 * g * p + alpha * lambda_ * size)
        mass, gradients = m[MASS] + alpha, m[GRADIENTS] + gradient
        largest = max(m[LARGEST], self.step.measure(alpha, square))
        if not (math.isfinite(gradients) and math.isfinite(largest)):
            return p, False
        if (square < LEAST_SQUARE or gradients < LEAST_SQUARE) and underflows(row, square, alpha, gradients):
            return p, False
        eta = self.step.eta(t, Seen(mass, largest, gradients))
        played = weight * self.average.alpha(t, eta)
        if moving and eta > 0.0:
            shrink = 1.0 - eta * alpha * lambda_
            if not point.move(self.domain, row, shrink, -eta * g, p, square, played):
                return p, False
        else:
            point.play(played)
        m[T], m[MASS], m[LARGEST], m[GRADIENTS] = t, mass, largest, gradients
        m[PENALTY] += weight * 0.5 * lambda_ * size
        return p, True


@register("algorithm", "gradient")
@parameter
class Gradient(Algorithm):
    """The algorithm behind `OGD`, `Perceptron`, `SVM` and `AdaptiveOGD`: refuses nonsense, makes the rule and w_1."""

    name: Any
    loss: Any
    domain: Any
    step: Any
    average: Any
    lambda_: float = 0.0
    by_time: bool = False

    family = "descent"

    def __post_init__(self) -> None:
        require_loss(self.loss, self.name)
        for kind, wanted, given in (
            ("domain", Domain, self.domain),
            ("step", Step, self.step),
            ("average", Average, self.average),
        ):
            if not isinstance(given, wanted):
                must = f"must be a rue.{wanted.__name__} or a spec"
                raise SettingsError(f"{self.name}: {kind} {must}, not {shown(given)}.")
            require_parameter(given)
        require_set(self.domain)
        if foreign(self.step):
            require_step(self.step)
        if not 0.0 <= self.lambda_ < math.inf:
            raise SettingsError(f"{self.name}: lambda_ must be ≥ 0 and finite, not {self.lambda_}.")
        self.step.refuse(self.loss, self.domain, self.lambda_)
        strong = self.step.rule in ("strong", "theory")
        if self.lambda_ > 0.0 and strong and self.loss.lipschitz is None and not self.domain.bounded:
            raise SettingsError(
                f"{self.name}: with the step 1/(σt), {self.loss!r} plus (λ/2)‖w‖² can explode on an unbounded domain, "
                "because its slope is unbounded: project, for example domain='ball:10' (A4)."
            )

    @property
    def averaging(self) -> bool:
        return bool(self.average.keeps)

    @property
    def regulariser(self) -> float:
        return self.lambda_

    @property
    def own_loss(self) -> bool:
        return self.name in ("Perceptron", "SVM")

    def step_in(self, size: int) -> Step:
        return self.step.resolve(self.loss, self.domain, self.lambda_, size)[0]  # type: ignore[no-any-return]

    def round_weights(self, weights: Any, t: Any) -> Any:
        return weights * t if self.by_time else weights

    def describe(self) -> str:
        loss = Regularised(self.loss, self.lambda_) if self.lambda_ else self.loss
        average = f", average={self.average!r}" if self.averaging else ""
        return f"loss={loss!r}, domain={self.domain!r}, step={self.step!r}{average}"

    def explain(self, size: int) -> str:
        words: str = self.step.resolve(self.loss, self.domain, self.lambda_, size)[1]
        return words

    @property
    def wide(self) -> int | None:
        return numbering.WIDE if self.domain.grows and self.domain.keeps_zeros else None

    @property
    def bytes_per_coordinate(self) -> int:
        scratch = 0 if self.domain.kind != "dense" else self.domain.scratch_rows
        return 8 * (1 + int(self.averaging) + int(scratch))

    def start(self, size: int, first: Any = None, room: int | None = None) -> tuple[GradientRule, Any]:
        self.domain.require(size)
        rule = GradientRule(self.loss, self.domain, self.step_in(size), self.average, self.lambda_, self.by_time)
        size = size if room is None else room
        return rule, point_on(self.domain, size, first, averaging=self.averaging, shrinks=self.lambda_ > 0.0)


def point_on(domain: Domain, size: int, first: Any = None, *, averaging: bool = False, shrinks: bool = False) -> Any:
    """w_1 in `size` coordinates, stored so that a step and its projection cost as little as the domain allows.

    `averaging` if the points played are to be averaged, `shrinks` if the point is multiplied in the rounds.
    """
    memory = np.zeros(len(MEMORY))
    memory[SCALE] = 1.0
    room = max(size, 1) if domain.grows else size  # an empty array means: no average
    r = np.zeros(room if averaging else 0)
    ball = domain.as_ball(size)
    centre = np.empty(0) if ball is None or domain.grows else ball[0]
    radius = math.inf if ball is None else ball[1]
    extreme = ball is not None and not RADII[0] <= radius <= RADII[1]  # ‖w‖² would not be a number
    if (ball is not None or domain.whole_space) and not (shrinks and centre.any()) and not extreme:
        return Scaled(np.zeros(room), r, np.array(centre), memory, radius)
    w = (first or domain.start)(room)
    if domain.kind == "coordinate" and not shrinks:
        return Coordinate(w, r, memory)
    return Dense(w, r, memory, np.zeros((domain.scratch_rows, size)))


def require_loss(loss: Any, name: str) -> None:
    """Refuse what cannot be learnt with."""
    if not isinstance(loss, Loss):
        if isinstance(loss, Indicator):
            raise SettingsError(
                f"{name}: the indicator of a set is a constraint: give the set as domain={loss.domain!r}."
            )
        raise SettingsError(f"{name}: loss must be a rue.Loss or a spec, not {shown(loss)}.")
    require_parameter(loss)
    if not loss.convex:
        raise SettingsError(
            f"{name}: {loss!r} is not convex: it can be measured, not learnt with; hinge and logistic loss bound it."
        )
    if foreign(loss):
        once(require_convex, loss)


@register("learner", "ogd")
def OGD(
    loss: Any = "logistic",
    domain: Any = "ball:10",
    step: Any = "theory",
    *,
    average: Any = "none",
    intercept: bool = True,
    d: int | None = None,
) -> Learner:
    """Projected online (sub)gradient descent (docs/theory.md: A2, A3; with a `Regularised` loss A4).

    w_{t+1} = Π_K(w_t − η_t g_t x_t), where g_t is the slope of the loss at p_t = ⟨w_t, x_t⟩ and K the domain. On a ball
    of radius U, with gradients of at most G, its regret is at most UG√(8T) (Zinkevich 2003; B3).

    Settings are strings or objects: `"hinge"` or `rue.Hinge()`, `"ball:10"` or `rue.Ball(10)`, `"sqrt:0.5"` or
    `rue.Sqrt(0.5)`. `step="theory"` is the step of the theorem for this loss and domain (A9); `average` is "none",
    "uniform", "t" or "steps", for `predict(x, average=True)`. With an `intercept` there is one more feature that
    is always 1; `d` fixes the number of features, which otherwise the data decide.

    >>> learner = OGD(loss="hinge", domain="ball:10")
    >>> learner.run([[1.0, 2.0], [3.0, -1.0]], [1, -1]).round(4)
    array([0.    , 8.165])
    """
    plain, lambda_ = unregularised(loss)
    algorithm = Gradient(
        "OGD", plain, make("domain", domain), make("step", step), make("average", average or "none"), lambda_
    )
    return Learner(algorithm, intercept=intercept, d=d)


@register("learner", "perceptron")
def Perceptron(eta: float = 1.0, *, average: Any = "none", intercept: bool = True, d: int | None = None) -> Learner:
    """Rosenblatt's Perceptron (docs/theory.md, A1): w ← w + η·y·x after every mistake; a zero margin is a mistake.

    It is gradient descent on the perceptron loss max(0, −y·p) with a fixed step; the signs of its predictions, and so
    its mistakes, do not depend on η. If some u has all margins y⟨u, x⟩ ≥ 1, and ‖x‖ ≤ X, it makes at most (‖u‖X)²
    mistakes (Novikoff 1962; B2).

    `eta` is η; `average`, `intercept` and `d` are as for `OGD`. The average of its points, the *averaged Perceptron*,
    often predicts better than the last one (Freund and Schapire 1999).

    >>> Perceptron().run([[1.0, 2.0], [3.0, -1.0]], [1, -1])
    array([0., 2.])
    """
    algorithm = Gradient("Perceptron", PerceptronLoss(), Reals(), Fixed(eta), make("average", average or "none"))
    return Learner(algorithm, intercept=intercept, d=d)


@register("learner", "svm")
def SVM(
    lambda_: float = 0.01,
    weighting: str = "uniform",
    *,
    project: bool = False,
    average: Any = None,
    intercept: bool = True,
    d: int | None = None,
) -> Learner:
    """The support vector machine by descent on (λ/2)‖w‖² + max(0, 1 − y⟨w, x⟩), with the step 1/(λt).

    A5 of docs/theory.md, and A6 with `weighting="t"`, where round t counts t times. With gradients of at most G its
    regret is at most (G²/(2λ))(1 + ln T) (Hazan, Agarwal, Kale 2007; B8).

    `project=True` adds the ball of radius 1/√λ, which contains the minimiser. Its average is the one its theorem
    is about: uniform for A5, weighted by t for A6; `predict(x, average=True)` uses it.

    `lambda_` is λ; `average`, if given, replaces that average; `intercept` and `d` are as for `OGD`. The intercept is
    regularised like every other weight.

    >>> SVM(0.1).run([[1.0, 2.0], [3.0, -1.0]], [1, -1])
    array([ 0., 20.])
    """
    if weighting not in ("uniform", "t"):
        raise SettingsError(f"SVM: weighting must be 'uniform' (A5) or 't' (A6), not {shown(weighting)}.")
    lambda_ = Regularised(Hinge(), lambda_).lambda_
    domain = Ball(1.0 / math.sqrt(lambda_)) if project else Reals()
    averaged = make("average", weighting if average is None else average)
    algorithm = Gradient("SVM", Hinge(), domain, Strong(lambda_), averaged, lambda_, weighting == "t")
    return Learner(algorithm, intercept=intercept, d=d)


@register("learner", "adaptive")
def AdaptiveOGD(
    loss: Any = "logistic",
    domain: Any = "ball:10",
    *,
    factor: float = 1.0,
    average: Any = "none",
    intercept: bool = True,
    d: int | None = None,
) -> Learner:
    """OGD with the step η_t = factor·D/√(2 Σ_{i≤t}‖g_i‖²), which needs no bound on the gradients (docs/theory.md, A8).

    D is the domain's diameter, so the domain must be bounded. With factor 1 its regret is at most √2·D·√Σ‖g_t‖² (B9).

    `loss`, `domain`, `average`, `intercept` and `d` are as for `OGD`; with another factor
    c the same proof gives (c + 1/c)/2 times that bound.

    >>> AdaptiveOGD("hinge", "ball:1", intercept=False).run([[3.0, 4.0], [3.0, 4.0]], [1, 1])
    array([0., 5.])
    """
    plain, lambda_ = unregularised(loss)
    algorithm = Gradient(
        "AdaptiveOGD", plain, make("domain", domain), Adaptive(factor), make("average", average or "none"), lambda_
    )
    return Learner(algorithm, intercept=intercept, d=d)
