"""Contracts in code: what every loss, set, step, map, learner and opponent must keep. Public, for your own classes too.

Each check raises `CheckFailed` with a counterexample. They exist because each of these has been broken, silently, in a
respected library.

>>> import rue
>>> rue.checks.check_loss(rue.Hinge())
>>> rue.checks.check_domain(rue.Ball(2), d=5)
>>> rue.checks.check_learner(rue.OGD("hinge", "ball:2"))
>>> rue.checks.check_opponent(rue.OrthogonalAdversary(3))
"""

from __future__ import annotations

import copy
import inspect
import math
import pickle
from typing import Any

import numpy as np

from rue.domains import Domain
from rue.errors import CheckFailed, SettingsError
from rue.games import Opponent, play
from rue.learners import OGD, Learner
from rue.learners.points import TOTAL
from rue.losses import Loss
from rue.losses.convexity import require_convex
from rue.maps import Map
from rue.maps.choice import require_possible
from rue.registry import registered
from rue.steps import Seen, Step
from rue.streams import Block

__all__ = [
    "check_domain",
    "check_learner",
    "check_loss",
    "check_map",
    "check_opponent",
    "check_step",
    "examples",
    "sample",
]


def examples(kind: str) -> dict[str, Any]:
    """One object of every class registered for a kind, by name: built without arguments, or with 1 for each it needs.

    So a new class is checked without a line in any test.

    >>> examples("step")["sqrt"]
    Sqrt(value=1.0)
    """
    objects = {}
    for name, build in registered(kind).items():
        parameters = inspect.signature(build).parameters.values()
        needed = [one for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
        objects[name] = build(*(1 for _ in needed))
    return objects


def check_loss(loss: Loss) -> None:
    """Refuse a loss whose slope contradicts its value, a regression loss not smallest at p = y, and a false constant.

    On a grid of predictions at every label the loss accepts: convexity, the subgradient inequality by finite
    differences, `nonnegative`, `lipschitz`, `smooth`, `strongly_convex`, `exp_concave`.

    >>> import rue
    >>> check_loss(rue.Quantile(0.9))

    docs/theory.md, section 2.
    """
    name = repr(loss)
    labels = [y for y in (-1.0, 1.0, 0.0, 2.0, 0.3) if loss.accepts(y)]
    if loss.accepts(math.nan) or loss.accepts(math.inf):
        raise CheckFailed(f"{name}: accepts NaN or infinity as a label.")
    if not loss.convex:
        return
    try:
        require_convex(loss)
    except SettingsError as error:
        raise CheckFailed(str(error)) from error
    grid = np.linspace(-8.0, 8.0, 321)
    for y in labels:
        values = np.array([loss.value(float(p), y) for p in grid])
        slopes = np.array([loss.slope(float(p), y) for p in grid])
        chords = np.diff(values) / np.diff(grid)
        if np.any(chords < slopes[:-1] - 1e-6) or np.any(chords > slopes[1:] + 1e-6):
            raise CheckFailed(f"{name}: at y = {y:g} finite differences leave the range of the slopes beside them.")
        if loss.nonnegative and loss.task == "regress" and loss.value(y, y) > values.min() + 1e-9:
            raise CheckFailed(f"{name}: at p = y = {y:g} it is {loss.value(y, y):g}, and {values.min():g} elsewhere.")
        if loss.nonnegative and values.min() < 0.0:
            raise CheckFailed(f"{name}: says it is never negative, but is {values.min():g} at y = {y:g}.")
        if loss.lipschitz is not None and np.abs(slopes).max() > loss.lipschitz * (1.0 + 1e-12):
            raise CheckFailed(f"{name}: a slope of {np.abs(slopes).max():g} exceeds lipschitz = {loss.lipschitz:g}.")
        bends = np.diff(slopes) / np.diff(grid)
        if loss.smooth is not None and bends.max() > loss.smooth * (1.0 + 1e-9) + 1e-9:
            raise CheckFailed(f"{name}: the slope changes at rate {bends.max():g}, more than smooth = {loss.smooth:g}.")
        if bends.min() < loss.strongly_convex * (1.0 - 1e-9) - 1e-9:
            raise CheckFailed(
                f"{name}: bends by {bends.min():g}, less than {loss.strongly_convex:g} (strongly_convex)."
            )
        rate = loss.exp_concave(-2.0, 2.0)
        if rate is not None and abs(y) <= 2.0:
            inner = values[np.abs(grid) <= 2.0]
            curve = np.diff(np.exp(-rate * inner), 2)
            if curve.max() > 1e-12:
                raise CheckFailed(f"{name}: e^(−{rate:g}·ℓ) is not concave on [−2, 2] at y = {y:g}.")


def check_domain(domain: Domain, d: int = 6) -> None:
    """Refuse a `domain` whose projection leaves the set, moves points of it, or measures only some of the coordinates.

    On random points near and far, in `d` coordinates: Πw lies in K, ΠΠw = Πw, ⟨w − Πw, u − Πw⟩ ≤ 0 for u in K, no two
    points move away from each other; `support` and `diameter` are large enough.

    >>> import rue
    >>> check_domain(rue.Intersection("ball:1", "orthant"))

    docs/theory.md, section 3.
    """
    d = domain.dimension or d
    rng = np.random.default_rng(2)
    far = 10.0 if domain.scratch_rows else 1e6  # iterative projections are for points near the set
    points = [rng.normal(size=d) * scale for scale in (1e-9, 0.1, 0.3, 1.0, 10.0, far) for _ in range(6)]
    shadows = [domain.project(w) for w in points]
    tolerance = 1e-8
    start = domain.start(d)
    if not domain.contains(start):
        raise CheckFailed(f"{domain!r}: w_1 = {start} is not in the set.")
    for w, shadow in zip(points, shadows, strict=True):
        size = 1.0 + float(np.linalg.norm(w))
        if not domain.contains(shadow, tolerance):
            raise CheckFailed(f"{domain!r}: the projection {shadow} of {w} is not in the set.")
        if np.linalg.norm(domain.project(shadow) - shadow) > tolerance * size:
            raise CheckFailed(f"{domain!r}: projecting twice moves {w} twice.")
        for u in [start, *shadows]:
            if (w - shadow) @ (u - shadow) > tolerance * size * (size + np.linalg.norm(u)):
                raise CheckFailed(f"{domain!r}: {shadow} is not the nearest point to {w}; {u} pulls further.")
        other = points[0]
        if np.linalg.norm(shadow - shadows[0]) > np.linalg.norm(w - other) * (1 + tolerance) + tolerance * size:
            raise CheckFailed(f"{domain!r}: projecting {w} and {other} moves them apart.")
    reach = domain.diameter(d)
    for u in shadows:
        for w in points[:12]:
            if float(w @ u) > domain.support(w) + tolerance * (1.0 + abs(float(w @ u))):
                raise CheckFailed(f"{domain!r}: support({w}) is smaller than ⟨v, u⟩ for {u} in the set.")
        if np.linalg.norm(u - start) > reach * (1.0 + 1e-9):
            raise CheckFailed(f"{domain!r}: two points are farther apart than diameter({d}) = {reach:g}.")
    if domain.bounded != math.isfinite(reach):
        raise CheckFailed(f"{domain!r}: bounded is {domain.bounded}, but diameter({d}) is {reach:g}.")


def check_step(step: Step) -> None:
    """Refuse a step that is negative, infinite, or that grows. Concrete steps only: resolve `theory` first.

    >>> import rue
    >>> check_step(rue.Sqrt(0.5))

    docs/theory.md, A3.
    """
    last = math.inf
    for t in (1.0, 2.0, 3.0, 10.0, 100.0, 1e6):
        eta = float(step.eta(t, Seen(t, 2.0, 3.0 * t)))
        if not 0.0 <= eta < math.inf:
            raise CheckFailed(f"{step!r}: η at t = {t:g} is {eta}, not a finite number ≥ 0.")
        if eta > last:
            raise CheckFailed(f"{step!r}: η grows to {eta:g} at t = {t:g}; theory asks for non-increasing steps.")
        last = eta


def check_map(map_: Map) -> None:
    """Refuse a map whose features are out of bounds, or depend on anything but the table, or that changes it.

    It is tried in plain Python on 150 rows of three columns. Compiled code does not look where it writes, so maps of
    your own are tried like this before a learner takes them.

    >>> import rue
    >>> check_map(rue.Pairs())

    docs/theory.md, section 12.
    """
    require_possible(map_)


def check_opponent(opponent: Opponent, rounds: int = 60) -> None:
    """Refuse an opponent whose game its seed does not repeat, or contradicts what the opponent says it forces.

    `play` itself refuses rounds whose subgradients are none. Gradient descent plays, on [−1, 1] in every coordinate.

    >>> import rue
    >>> check_opponent(rue.RandomSigns())

    docs/theory.md, section 5.
    """
    learner = OGD(domain="box:-1,1", intercept=False)
    first, again = (play(learner, opponent, rounds, seed=7) for _ in range(2))
    if not (_equal(first.points, again.points) and _equal(first.losses, again.losses)):
        raise CheckFailed(f"{opponent!r}: the same seed gives another game: draw lots from setting.rng alone.")
    for game in (first, play(learner, opponent, rounds, seed=8)):
        if game.holds is False:
            raise CheckFailed(f"{opponent!r}: {game.forced.words if game.forced else ''}, but not so in {game!r}.")


def sample(learner: Learner, rows: int = 120, width: int | None = None, seed: int = 0) -> tuple[Any, Any, Any]:
    """A random stream that a learner can take: features with zeros in them, labels of its loss's set, weights.

    The same `seed` gives the same stream.

    >>> import rue
    >>> X, y, weights = sample(rue.OGD("hinge"), rows=5, width=3)
    >>> X.shape, set(y) <= {-1.0, 1.0}
    ((5, 3), True)
    """
    rng = np.random.default_rng(seed)
    fixed = learner.domain.dimension
    d = width if fixed is None else fixed - int(learner.intercept)
    if d is None:
        d = learner.d or 6
    X = rng.normal(size=(rows, d)) * (rng.random((rows, d)) < 0.7)
    y = X.sum(axis=1) + rng.normal(size=rows)
    if learner.loss.task == "classify":
        y = np.where(y > 0.0, 1.0, -1.0)
    elif not learner.loss.accepts(-1.0):
        y = np.round(np.abs(y))
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], rows)


def check_learner(learner: Learner, width: int | None = None) -> None:
    """Refuse a learner that depends on how it is run, or in which a refused example leaves a trace.

    Dense and sparse rows that differ; blocks whose size shows in the result; a state that does not survive a copy; a
    `predict` that learns; an average of the wrong points; weight 0 that is not nothing; a point outside the domain; one
    NaN that poisons the model.

    `width` is the number of features to try it with, where the learner does not fix it.

    >>> import rue
    >>> check_learner(rue.SVM(0.1))
    """
    from scipy.sparse import csr_matrix

    X, y, weights = sample(learner, width=width)
    whole = learner.copy()
    predictions = whole.run(X, y, weights)
    _same_ways(learner, whole, X, y, weights, predictions)

    other = learner.copy()
    sparse = other.run(csr_matrix(X), y, weights)
    _near(sparse, predictions, f"{learner!r}: sparse rows and dense rows differ")

    counted = weights > 0.0
    without = learner.copy()
    rest = without.run(X[counted], y[counted], weights[counted])
    if not _equal(rest, predictions[counted]) or without != whole:
        raise CheckFailed(f"{learner!r}: leaving out the examples of weight 0 changes something.")
    if not whole.domain.contains(whole.point, 1e-6):
        raise CheckFailed(f"{learner!r}: the point left the domain: {whole.point}.")
    if learner.algorithm.averaging:
        _check_average(learner, X, y, weights)
    _check_bad_input(whole, X[0], y[0])


def _same_ways(learner: Learner, whole: Learner, X: Any, y: Any, weights: Any, predictions: Any) -> None:
    """One by one, in blocks, and with a pickle in the middle: identical bits."""
    one = learner.copy()
    for i in range(len(y)):
        p = one.predict(X[i])
        if p != predictions[i] and not math.isnan(predictions[i]):  # NaN: refused
            raise CheckFailed(f"{learner!r}: one by one, prediction {i} is {p!r}; in one block {predictions[i]!r}.")
        one.update(X[i], y[i], weights[i])
    if one != whole:
        raise CheckFailed(f"{learner!r}: one by one ends in another state than one block.")
    for size in (1, 7):
        cut = learner.copy()
        parts = (slice(k, k + size) for k in range(0, len(y), size))
        if not _equal(cut.run(Block(X[s], y[s], weights[s]) for s in parts), predictions) or cut != whole:
            raise CheckFailed(f"{learner!r}: blocks of {size} rows give other bits than one block.")
    half = len(y) // 2
    resumed = learner.copy()
    resumed.run(X[:half], y[:half], weights[:half])
    for again in (pickle.loads(pickle.dumps(resumed)), copy.deepcopy(resumed)):
        if again != resumed:
            raise CheckFailed(f"{learner!r}: a pickle or a copy is not equal to the original.")
        rest = again.run(X[half:], y[half:], weights[half:])
        if not _equal(rest, predictions[half:]) or again != whole:
            raise CheckFailed(f"{learner!r}: resuming from a pickle or a copy gives other bits.")


def _check_average(learner: Learner, X: Any, y: Any, weights: Any) -> None:
    """The average, which is updated lazily, equals the brute-force average of the points played."""
    player = learner.copy()
    total, mass, played = np.zeros(0), 0.0, 0
    average = getattr(player.algorithm, "average", None)
    for i in range(len(y)):
        if weights[i] == 0.0:
            continue
        if player._point is None:
            player.widen(Block(X))
        w = player.point
        before, rounds = float(player._point.memory[TOTAL]), player.t
        player.update(X[i], y[i], weights[i])
        if player.t == rounds:
            continue  # refused: a count (Poisson) on an unbounded set may have a loss that is not finite
        alpha = float(player._point.memory[TOTAL]) - before
        played += 1
        total = alpha * w if total.size == 0 else total + alpha * w
        mass += alpha
        wanted = {"Uniform": weights[i], "ByTime": weights[i] * played}.get(type(average).__name__)
        if wanted is not None and abs(alpha - wanted) > 1e-9 * wanted:
            raise CheckFailed(f"{learner!r}: example {i} counts {alpha:g} in the average instead of {wanted:g}.")
    if mass > 0.0:
        _near(player.average, total / mass, f"{learner!r}: the average is not that of the points played")


def _check_bad_input(learner: Learner, x: Any, y: float) -> None:
    """NaN, infinity, a wrong label or weight are refused and change nothing; so are features of 1e300."""
    before = learner.copy()
    bad = np.full(x.size, math.nan)
    attempts: list[tuple[Any, float, float]] = [(x, math.nan, 1.0), (x, y, -1.0), (x, y, math.nan), (x, y, math.inf)]
    if x.size:
        attempts += [(bad, y, 1.0), (np.full(x.size, math.inf), y, 1.0)]
    for features, label, weight in attempts:
        try:
            learner.update(features, label, weight)
        except ValueError:
            pass
        else:
            raise CheckFailed(f"{learner!r}: x = {features}, y = {label}, weight = {weight} was learnt.")
        if learner != before:
            raise CheckFailed(f"{learner!r}: refusing x = {features}, y = {label}, weight = {weight} left a trace.")
    learner.update(np.full(x.size, 1e300), y)
    if not np.isfinite(learner.point).all():
        raise CheckFailed(f"{learner!r}: features of 1e300 poison the point: {learner.point}.")


def _equal(actual: Any, wanted: Any) -> bool:
    """Whether two arrays have the same bits; NaN, which stands for a refused example, equals NaN."""
    return bool(np.array_equal(actual, wanted, equal_nan=True))


def _near(actual: Any, wanted: Any, what: str, tolerance: float = 1e-9) -> None:
    """Refuse predictions that differ by more than rounding: sums of dense and of sparse rows round differently."""
    if not _equal(np.isnan(actual), np.isnan(wanted)):
        raise CheckFailed(f"{what}: they do not refuse the same examples.")
    actual, wanted = np.asarray(actual)[~np.isnan(actual)], wanted[~np.isnan(wanted)]
    scale = 1.0 + float(np.max(np.abs(wanted), initial=0.0))
    far = float(np.max(np.abs(actual - wanted), initial=0.0))
    if not far <= tolerance * scale:
        raise CheckFailed(f"{what}: by {far:g}, where the largest is {scale - 1.0:g}.")
