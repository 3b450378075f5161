"""What moves a prediction: the curve of a column, the table of a pair, and each column's part in one prediction.

A model over maps has no weights of columns. What it says is tried instead, on rows that it has learnt (`Background`): a
column is given one value after another in all of these rows, and the mean prediction
is its curve (partial dependence; Friedman 2001). A pair is given all pairs of values. How much a column moves the
prediction is the root of the mean squared change when it takes the value of another row, so a column that matters only
together with another one counts too.

The parts of one prediction are Shapley values, by sampling (Štrumbelj and Kononenko 2014): the row is reached from
others, one column after the other in random order, and a column's part is the mean change when its turn comes. They
add up to the prediction exactly.

A column is a feature, or all features `column=…` of a category together.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from rue.errors import SettingsError
from rue.models.file import Model
from rue.runs.background import block_of
from rue.streams.labels import plain

__all__ = ["Curve", "Effects", "PairTable", "effects_of_model", "shapley", "variable_of"]

State = tuple[tuple[int, float], ...]
"""What a column is in a row: its features that are not 0, and their values."""
POINTS, FEW = 24, 24
"""At most so many values of a number in a curve, and of a category."""
CELLS, TRIES = 8, 6000
"""At most so many values of a number in the table of a pair, and about how many predictions it takes."""
TRIED, MOST, PAIRED = 512, 12, 6
"""How many columns are tried; how many of them have their effects in the report; and how many pairs of these."""
PATHS = 32
"""How many rows a row is reached from, each twice, to tell parts of its prediction."""


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """How a prediction goes with one column."""

    name: str
    spread: float
    """The root mean square change of the prediction when the column takes the value of another row."""
    points: tuple[Any, ...]
    """Values of the column, in order; of words the most frequent."""
    effect: Any
    """The mean prediction with that value everywhere, less the mean of all these."""
    share: Any
    """How large a part of the rows has the value, or one that this stands for."""

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return all(isinstance(point, float) for point in self.points)

    def __str__(self) -> str:
        low, high = int(np.argmin(self.effect)), int(np.argmax(self.effect))
        ends = (f"{self.effect[i]:+.4g} at {_shown(self.points[i])}" for i in (low, high))
        return f"{self.spread:>10.4g}  {self.name}: {', '.join(ends)}"


@dataclasses.dataclass(frozen=True, eq=False)
class PairTable:
    """How a prediction goes with two columns together."""

    names: tuple[str, str]
    strength: float
    """The root mean square of what both together change beyond the sum of what each changes alone."""
    points: tuple[tuple[Any, ...], tuple[Any, ...]]
    """The values of the first column, then those of the second."""
    effect: Any
    """The mean prediction, a row for each value of the first column, less the mean of the table."""

    def __str__(self) -> str:
        return f"{self.strength:>10.4g}  {' × '.join(self.names)}"


@dataclasses.dataclass(frozen=True, eq=False)
class Effects:
    """The curves of columns and the tables of pairs; `str()` lists those that matter most. `rue.effects_of` makes it.

    >>> import numpy as np, rue
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> effects = rue.effects_of(rue.learn(X, np.sign(X[:, 0] * X[:, 1]), maps="auto"))
    >>> sorted(effects.pairs[0].names)
    ['feature 0', 'feature 1']
    """

    curves: tuple[Curve, ...]
    """Those of the columns, what moves the prediction most first."""
    pairs: tuple[PairTable, ...]
    """Those of pairs among the first columns, likewise."""
    mean: float
    """The mean prediction of the rows."""
    rows: int
    """On how many rows predictions were tried."""
    unit: str
    """What predictions are."""

    def __str__(self) -> str:
        lines = [f"what moves the prediction ({self.unit}), tried on {self.rows:,} of the rows learnt, and its ends"]
        lines += [str(curve) for curve in self.curves[:12]]
        pairs = [pair for pair in self.pairs if self.curves and pair.strength > 0.02 * self.curves[0].spread]
        lines += ["pairs, and how much they are more than the sum of two"] if pairs else []
        return "\n".join(lines + [str(pair) for pair in pairs[:6]])


def variable_of(name: str) -> str:
    """The column that a feature belongs to: `colour` of `colour=red`."""
    return name.split("=", 1)[0]


class Trial:
    """A model that stands still, and rows to try it on, taken apart by columns."""

    def __init__(self, model: Model, frozen: bool) -> None:
        background, learner = model.background, model.learner
        if background is None or not background.rows or not learner.t:
            raise SettingsError(
                "effects: the model has no rows to try predictions on: it is linear (weights_of tells all of it), or "
                "was not learnt by rue.learn or the command line."
            )
        if learner.loss.task == "multiclass":
            raise SettingsError("effects: with more than two classes there are none yet.")
        self.learner, self.predictor = learner, learner.frozen() if frozen else learner
        self.dense = background.dense and learner.numbering is None
        self.called = learner.called(model.names)
        self.rows = [self.parted(*row) for row in background.rows]
        found = {name: None for row in self.rows for name in row}
        self.names = list(found)
        """The columns."""
        self.numbers = {self.called.get(j, f"feature {j}") for row in background.rows for j in row[0].tolist()}
        """The features, among them the columns that are numbers."""
        regress = model.labels is None or model.labels.task == "regress"
        self.unit = "in units of the label" if regress else f"log-odds of {plain(model.labels.positive)!r}"  # type: ignore[union-attr]
        if not regress and not learner.loss.log_odds:
            self.unit = f"score of {plain(model.labels.positive)!r}"  # type: ignore[union-attr]

    def parted(self, indices: Any, values: Any) -> dict[str, State]:
        """A row by columns."""
        parts: dict[str, list[tuple[int, float]]] = {}
        for j, value in zip(indices.tolist(), values.tolist(), strict=True):
            parts.setdefault(variable_of(self.called.get(j, f"feature {j}")), []).append((j, value))
        return {name: tuple(part) for name, part in parts.items()}

    def predictions(self, rows: list[dict[str, State]]) -> Any:
        """What the model says of rows."""
        listed = []
        for row in rows:
            pairs = sorted(pair for state in row.values() for pair in state)
            listed.append((np.array([j for j, _ in pairs], np.int64), np.array([value for _, value in pairs])))
        lagged = self.learner.d - self.learner.own_features
        return self.predictor.predict_many(block_of(listed, self.learner.d, lagged, self.dense))

    def states(self, name: str, most_numbers: int, most_words: int) -> tuple[list[State], list[Any], Any]:
        """Values that a column takes, what they are called, and how large a part of the rows each stands for."""
        taken = [row.get(name, ()) for row in self.rows]
        distinct = list(dict.fromkeys(taken))
        if all(len(state) == 0 or (len(state) == 1 and not self._word(state)) for state in distinct):
            numbers = np.array([state[0][1] if state else 0.0 for state in taken])
            index = next(state[0][0] for state in distinct if state)
            values, counts = np.unique(numbers, return_counts=True)
            if values.size > most_numbers:
                values = np.unique(np.quantile(numbers, np.linspace(0.0, 1.0, most_numbers), method="nearest"))
                nearest = np.abs(numbers[:, None] - values).argmin(axis=1)
                counts = np.bincount(nearest, minlength=values.size)
            states: list[State] = [((index, value),) if value else () for value in values.tolist()]
            return states, values.tolist(), counts / len(taken)
        counted = sorted(distinct, key=lambda state: -taken.count(state))[:most_words]
        counted.sort(key=lambda state: _in_order(self._text(name, state)))
        shares = np.array([taken.count(state) for state in counted]) / len(taken)
        return counted, [self._text(name, state) for state in counted], shares

    def _word(self, state: State) -> bool:
        return "=" in self.called.get(state[0][0], "")

    def _text(self, name: str, state: State) -> str:
        """What a value of a column is called."""
        words = []
        for j, value in state:
            feature = self.called.get(j, f"feature {j}")
            words.append(feature[len(name) + 1 :] if "=" in feature else f"{value:g}")
        return " ".join(words) if words else "0" if name in self.numbers else "(none)"


def effects_of_model(model: Model, frozen: bool = False) -> Effects:
    """The effects of the columns of a model that was learnt over maps."""
    trial = Trial(model, frozen)
    rows, own = trial.rows, trial.predictions(trial.rows)
    others = [rows[i - 1 - i % 7] for i in range(len(rows))]

    def changes(*names: str) -> Any:
        """What the prediction of each row changes by when these columns take the values of another one."""
        pairs = zip(rows, others, strict=True)
        moved = [{**row, **{name: other.get(name, ()) for name in names}} for row, other in pairs]
        return trial.predictions(moved) - own

    shifted = {name: changes(name) for name in trial.names[:TRIED]}
    spread = {name: float(np.sqrt(np.mean(change**2))) for name, change in shifted.items()}
    first = sorted(spread, key=lambda name: -spread[name])[:MOST]
    curves = []
    for name in first:
        states, points, share = trial.states(name, POINTS, FEW)
        means = _means(trial, rows[:96], [{name: state} for state in states])
        curves.append(Curve(name, spread[name], tuple(points), means - means @ share / share.sum(), share))
    listed = [(one, other) for k, one in enumerate(first) for other in first[k + 1 :]]
    beyond = {pair: np.mean((changes(*pair) - shifted[pair[0]] - shifted[pair[1]]) ** 2) for pair in listed}
    strongest = sorted(beyond, key=lambda pair: -beyond[pair])[:PAIRED]
    # Of an effect of both together, four independent draws are added here, so half the root is its own.
    pairs = [_pair(trial, *pair, strength=0.5 * float(np.sqrt(beyond[pair]))) for pair in strongest]
    return Effects(tuple(curves), tuple(pairs), float(own.mean()), len(rows), trial.unit)


def _means(trial: Trial, rows: list[dict[str, State]], changes: list[dict[str, State]]) -> Any:
    """The mean prediction over rows for each of some changes to all of them."""
    changed = [{**row, **change} for change in changes for row in rows]
    return trial.predictions(changed).reshape(len(changes), len(rows)).mean(axis=1)


def _pair(trial: Trial, one: str, other: str, strength: float) -> PairTable:
    (a, of_a, share_a), (b, of_b, share_b) = (trial.states(name, CELLS, FEW) for name in (one, other))
    changes = [{one: x, other: z} for x in a for z in b]
    table = _means(trial, trial.rows[: max(16, TRIES // len(changes))], changes).reshape(len(a), len(b))
    p, q = share_a / share_a.sum(), share_b / share_b.sum()
    return PairTable((one, other), strength, (tuple(of_a), tuple(of_b)), table - p @ table @ q)


def shapley(model: Model, indices: Any, values: Any) -> tuple[float, dict[str, float], dict[str, str]]:
    """The mean prediction of the rows that a row was reached from, each column's part, and what its value is called."""
    trial = Trial(model, frozen=True)
    x, rng = trial.parted(indices, values), np.random.default_rng(0)
    chosen = trial.rows[:PATHS]
    names = sorted({*x, *(name for row in chosen for name in row)})
    path: list[dict[str, State]] = []
    steps: list[tuple[int, str]] = []
    for begin in chosen:
        differing = [name for name in names if begin.get(name, ()) != x.get(name, ())]
        order = [differing[i] for i in rng.permutation(len(differing))]
        for turn in (order, order[::-1]):
            row = dict(begin)
            path.append(dict(row))
            for name in turn:
                row[name] = x.get(name, ())
                steps.append((len(path), name))
                path.append(dict(row))
    p = trial.predictions(path)
    parts = dict.fromkeys(names, 0.0)
    for i, name in steps:
        parts[name] += float(p[i] - p[i - 1]) / (2 * len(chosen))
    base = float(trial.predictions(chosen).mean())
    return base, parts, {name: trial._text(name, x.get(name, ())) for name in names}


def _in_order(text: str) -> list[Any]:
    """By which words are sorted: h2 before h10."""
    parts = re.split(r"([0-9]+)", text)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _shown(point: Any) -> str:
    return f"{point:.4g}" if isinstance(point, float) else str(point)
