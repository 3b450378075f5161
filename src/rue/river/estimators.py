"""`RueClassifier` and `RueRegressor` for River."""

from __future__ import annotations

import math
import pickle
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from river import base
from rue.errors import DataError, SettingsError, shown
from rue.learners import Learner
from rue.learners.one_example import one_row
from rue.models.file import Model
from rue.reports.explaining import explain
from rue.runs.accounts import NoAccounts
from rue.runs.driver import Driver, default_learner
from rue.runs.predicting import sparse_matrix
from rue.runs.resuming import history_entry
from rue.runs.watching import Watch
from rue.streams import Block, Labels

__all__ = ["RueClassifier", "RueRegressor"]


def _frame(learner: Learner, X: Any, new: bool) -> Any:
    """A data frame as the rows of dicts would be read; with `new`, names never seen get places."""
    from scipy.sparse import csr_matrix

    names, columns = learner.names, list(X.columns)
    if _has_words(X):
        pairs = [names.learnt(row) if new else names.known(row) for row in X.to_dict("records")]
        return sparse_matrix(pairs, max((names.width(indices) for indices, _ in pairs), default=0))
    if new:
        known, indices = columns, names.learn(columns)
    else:
        known = [column for column in columns if names.has_index(column)]
        indices = names.indices_of(known)
        inside = indices < learner.own_features
        known, indices = [known[k] for k in np.flatnonzero(inside)], indices[inside]
    order = np.argsort(indices, kind="stable")
    values = np.ascontiguousarray(X[known].to_numpy(dtype=np.float64)[:, order])
    rows, ends = len(values), np.arange(len(values) + 1) * len(known)
    indices = indices[order]
    shape = rows, names.width(indices)
    matrix = csr_matrix((values.reshape(-1), np.tile(indices.astype(np.int64), rows), ends), shape=shape)
    matrix.sum_duplicates()
    return matrix


def _has_words(X: Any) -> bool:
    """Whether a data frame has words, or missing values, or other things than numbers."""
    return any(getattr(dtype, "kind", "O") not in "biuf" for dtype in X.dtypes) or bool(X.isna().to_numpy().any())


class _Named:
    """What both estimators share: a learner of features by name."""

    budget: int | None
    intercept: bool
    _learner: Any
    _watch: Watch

    @property
    def learner(self) -> Any:
        """The learner; of a classifier None, until the first label tells what it must be."""
        return self._learner

    def _learnt_as(self) -> Labels:
        return Labels("regress")

    @property
    def model_(self) -> Model:
        """The learner with its labels, as `rue.save` takes it and `rue.reports.explaining` explains it."""
        if self._learner is None:
            raise DataError("nothing has been learnt yet.")
        history = [history_entry(self._learner.t)]
        return Model(self._learner, labels=self._learnt_as(), history=history, watch=self._watch)

    @property
    def interval_summary(self) -> Any:
        """What intervals, or sets, have covered and what is promised, as `rue.Run.interval` has it; None without."""
        if self._watch.intervals is None:
            return None
        found = self._watch.intervals.summaries()
        return found[0] if len(found) == 1 else found

    def _row(self, x: Mapping[Hashable, Any], new: bool) -> Block:
        """One example as a block; with `new`, all its names have places."""
        pair = self._learner.names.learnt(x) if new else self._learner.names.known(x)
        return one_row(pair, int(pair[0][-1]) + 1 if pair[0].size else 0)

    def debug_one(self, x: Mapping[Hashable, Any]) -> str:
        """The parts of one prediction."""
        return "" if self._learner is None else str(explain(self, x))

    @property
    def _raw_memory_usage(self) -> int:
        """The bytes of the model: River counts all it can reach, by way of compiled code the whole compiler."""
        return len(pickle.dumps(self))

    def _run(self, X: Any, y: Any, weights: Any) -> None:
        """Learn the rows of a data frame in order, as if they came one by one."""
        names = self._learner.names
        known = len(names.places)
        try:
            block = Block(_frame(self._learner, X, True), y, weights)
            self._learner.widen(block)
        except DataError:
            names.forget_from(known)
            raise
        driver = Driver.bare(self._learner, NoAccounts())
        driver.watch = self._watch
        driver.learn_all([block])

    def _predicted(self, X: Any) -> Any:
        return self._learner.predict_many(_frame(self._learner, X, False))


def _weights(w: Any, rows: int) -> Any:
    """One weight a row."""
    return np.full(rows, float(w)) if isinstance(w, int | float) else np.asarray(w, dtype=np.float64)


def _chances(p: float) -> tuple[float, float]:
    """The probabilities of no and yes that log-odds stand for."""
    e = math.exp(-abs(p))
    likely, other = 1.0 / (1.0 + e), e / (1.0 + e)
    return (other, likely) if p > 0.0 else (likely, other)


class RueRegressor(_Named, base.MiniBatchRegressor):
    """A regressor with no learning rate to choose: `rue.Staged` (docs/theory.md, B12 and M1).

    Features need no scaling. With maps=None the model is linear (`rue.Mixture`). `budget` is the number of
    bytes a feature may take. For Poisson loss the prediction is the mean e^p. With `interval`, a share such as 0.9 or
    several, `predict_interval` gives the ends for the example that comes next: if each is asked for before
    `learn_one`, nearly that share of the labels lies inside on any stream (E2).

    >>> model = RueRegressor()
    >>> model.learn_one({"size": 2.0}, 10.0)
    >>> print(model.predict_one({"size": 2.0}) > 0.0)
    True
    """

    def __init__(
        self,
        loss: Any = "square",
        budget: int | None = None,
        intercept: bool = True,
        maps: Any = "default",
        interval: Any = None,
    ) -> None:
        self.loss, self.budget, self.intercept, self.maps, self.interval = loss, budget, intercept, maps, interval
        self._watch = Watch(interval)
        self._learner = default_learner("regress", loss=loss, budget=budget, intercept=intercept, maps=maps)
        self._counts = self._learner.loss.log_mean
        if self._learner.loss.task != "regress":
            raise SettingsError(f"RueRegressor: {self._learner.loss!r} is for classes, not for numbers.")

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one example."""
        if self.interval is None:
            self._learner.update(x, y, w)
            return
        p, t = self.predict_one(x), self._learner.t
        self._learner.update(x, y, w)
        if self._learner.t > t:
            self._watch.begin(self._learner.loss)
            self._watch.intervals.enter(self._row(x, True), np.array([p]), np.array([float(y)]), np.array([float(w)]))

    def predict_interval(self, x: dict[Any, Any]) -> tuple[Any, Any]:
        """The lower and the upper end for one example, if it is the next one learnt."""
        self._watch.begin(self._learner.loss)
        if self._watch.intervals is None:
            raise SettingsError("predict_interval: build the model with a level: RueRegressor(interval=0.9).")
        lower, upper = self._watch.intervals.predict(self._row(x, False), np.array([self.predict_one(x)]))
        return (lower.item(), upper.item()) if lower.ndim == 1 else (lower[0], upper[0])

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Predict one example."""
        p: float = self._learner.predict(x)
        return math.exp(min(p, 700.0)) if self._counts else p

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn the rows of a pandas DataFrame in order."""
        self._run(X, np.asarray(y, dtype=np.float64), _weights(w, len(X)))

    def predict_many(self, X: Any) -> Any:
        """Predict the rows of a pandas DataFrame."""
        import pandas as pd

        p = self._predicted(X)
        return pd.Series(np.exp(np.minimum(p, 700.0)) if self._counts else p, index=X.index)


class RueClassifier(_Named, base.MiniBatchClassifier):
    """A classifier with no learning rate to choose (docs/theory.md, B12).

    Labels True and False are learnt by `rue.Staged` (with maps=None by `rue.Mixture`), others by
    `rue.SoftmaxMixture` (with maps="auto" by `rue.StagedSoftmax`), whose classes may come at any time;
    `classes=(0, 1)` says beforehand that there are these two, the second the one that scores above 0 mean. Features
    need no scaling. `budget` is the number of bytes a feature may take (for each class, if there are more). With
    `interval`, a share such as 0.9, `predict_interval` gives a set of classes for the example that comes next, which
    holds the right one nearly that often or more, if asked for before each `learn_one` (E2).

    >>> model = RueClassifier()
    >>> model.learn_one({"rain": 1.0}, "umbrella")
    >>> model.learn_one({"rain": 0.0}, "hat")
    >>> sorted(model.predict_proba_one({"rain": 1.0}))
    ['hat', 'umbrella']
    """

    def __init__(
        self,
        classes: tuple[Any, Any] | None = None,
        budget: int | None = None,
        intercept: bool = True,
        maps: Any = "default",
        interval: float | None = None,
    ) -> None:
        self.classes, self.budget, self.intercept, self.maps = classes, budget, intercept, maps
        self.interval, self._watch = interval, Watch(interval)
        self._learner = None
        self._numbers: dict[Any, float] = {}
        """The classes seen, and what stands for them."""
        self._pair: tuple[Any, Any] = (False, True)
        if classes is not None:
            if not isinstance(classes, list | tuple) or len(set(classes)) != 2:
                given = shown(classes)
                raise SettingsError(f"RueClassifier: classes are the two there will be, or left out, not {given}.")
            self._learn_two(tuple(classes))

    @property
    def _multiclass(self) -> bool:
        return True

    def _learn_two(self, pair: Any) -> None:
        self._pair = pair
        settings = {"budget": self.budget, "intercept": self.intercept, "maps": self.maps}
        self._learner = default_learner("classify", **settings)
        self._numbers = {pair[0]: -1.0, pair[1]: 1.0}

    @property
    def _two(self) -> bool:
        return self._learner is None or self._learner.loss.task != "multiclass"

    def _learnt_as(self) -> Labels:
        return Labels("classify", *self._pair) if self._two else Labels("multiclass", classes=tuple(self._numbers))

    def _admit(self, y: Any) -> float:
        """What stands for a class never seen before."""
        if self._learner is None and isinstance(y, bool | np.bool_):
            self._learn_two((False, True))
        elif self._learner is None:
            settings = {"budget": self.budget, "intercept": self.intercept, "maps": self.maps}
            self._learner = default_learner("multiclass", **settings)
        elif self._two:
            raise DataError(f"the label {shown(y)} is neither {shown(self._pair[0])} nor {shown(self._pair[1])}.")
        return self._numbers.setdefault(y, 1.0 + len(self._numbers))

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one example."""
        number = self._numbers.get(y)
        if w == 0.0:
            return
        if self.interval is not None:
            self._learn_and_watch(x, y, w)
            return
        if number is not None:
            self._learner.update(x, number, w)
        else:
            number = self._admit(y)
            try:
                self._learner.update(x, number, w)
            except DataError:
                if not self._two:
                    del self._numbers[y]
                raise

    def _learn_and_watch(self, x: dict[Any, Any], y: Any, w: float) -> None:
        """Learn one example, and whether its label was in the set made before."""
        chances = self._row_of_chances(x) if self._learner is not None else np.empty((1, 0))
        t = 0 if self._learner is None else self._learner.t
        interval, self.interval = self.interval, None
        try:
            self.learn_one(x, y, w)
        finally:
            self.interval = interval
        if self._learner.t > t:
            if self._two and not chances.size:
                chances = np.array([[0.5, 0.5]])  # what it says before the first example
            self._watch.begin(self._learner.loss)
            number = int(self._numbers[y] > 0.0) if self._two else int(self._numbers[y]) - 1
            self._watch.intervals.enter(self._row(x, True), chances, np.array([number]))

    def _row_of_chances(self, x: dict[Any, Any]) -> Any:
        """The probabilities of one example as a row, in the order of the classes' numbers."""
        p = self._learner.predict(x)
        return np.array([_chances(p)]) if self._two else p[None, 1:]

    def predict_interval(self, x: dict[Any, Any]) -> set[Any]:
        """The set of classes for one example, if it is the next one learnt; empty before the first."""
        if self.interval is None:
            raise SettingsError("predict_interval: build the model with a level: RueClassifier(interval=0.9).")
        if self._learner is None:
            return set()
        self._watch.begin(self._learner.loss)
        chosen = self._watch.intervals.predict(self._row_of_chances(x))[0].tolist()
        named = self._pair if self._two else list(self._numbers)
        return {name for name, inside in zip(named, chosen, strict=False) if inside}

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The probability of each class; nothing before the first example."""
        if self._learner is None:
            return {}
        p = self._learner.predict(x)
        if self._two:
            return dict(zip(self._pair, _chances(p), strict=True))
        chances = p[1:] / p[1:].sum() if p.size > 1 else p[1:]
        return dict(zip(self._numbers, chances.tolist(), strict=False))

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The most probable class; None before the first example."""
        if self._learner is None:
            return None
        p = self._learner.predict(x)
        if self._two:
            return self._pair[p > 0.0]
        return list(self._numbers)[int(p[1:].argmax())] if p.size > 1 else None

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn the rows of a pandas DataFrame in order."""
        weights = _weights(w, len(X))
        used = weights != 0.0
        if not used.all():
            X, y, weights = X[used], y[used], weights[used]
        if len(X):
            numbers = np.array([self._numbers.get(label) or self._admit(label) for label in y.tolist()])
            self._run(X, numbers, weights)

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of the classes, a row for each row of a pandas DataFrame."""
        import pandas as pd

        if self._learner is None:
            return pd.DataFrame(index=X.index)
        p = self._predicted(X)
        if self._two:
            return pd.DataFrame(list(map(_chances, p.tolist())), index=X.index, columns=list(self._pair))
        chances = p[:, 1:] / p[:, 1:].sum(axis=1, keepdims=True)
        return pd.DataFrame(chances, index=X.index, columns=list(self._numbers)[: chances.shape[1]])

    def predict_many(self, X: Any) -> Any:
        """The most probable class for each row of a pandas DataFrame."""
        import pandas as pd

        if self._learner is None:
            return pd.Series([None] * len(X), index=X.index, dtype=object)
        p = self._predicted(X)
        places = (p > 0.0).astype(int) if self._two else p[:, 1:].argmax(axis=1)
        named = list(self._pair) if self._two else list(self._numbers)
        return pd.Series([named[place] for place in places.tolist()], index=X.index)
