"""What a model has learnt: its weights by the names of features, and one prediction as a sum over features.

Weights are for features as the data has them. A learner that keeps an average predicts by it, so its weights are the
average's. The weights of a mixture are the posterior mean of its members' weights. A mixture mixes predictions, not
weights, so these weights come near to its prediction, and `Explanation.rest` is what they miss.
"""

from __future__ import annotations

import dataclasses
import io
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rue.errors import DataError, SettingsError, shown
from rue.learners import Learner
from rue.learners.one_example import dense_row, sparse_row
from rue.models.file import Model, load_model, model_of
from rue.outputs import write_file
from rue.reports.effects import Effects, effects_of_model, shapley
from rue.runs.predicting import is_series
from rue.streams import Block, read_like
from rue.streams.block import csr_view, is_readable
from rue.streams.labels import plain

__all__ = ["Explanation", "Part", "Weights", "effects_of", "explain", "features_in_use", "weights_of"]

ROUNDING = 1e-9
"""A smaller part than this of a prediction, which no weights explain, is rounding."""


@dataclasses.dataclass(frozen=True, eq=False)
class Weights:
    """The weights that are not 0, the intercept's first; `rue.weights_of` makes it.

    To iterate over it gives pairs of name and weight. With more than two classes a feature has a weight for each, and
    it gives triples of name, class and weight.

    >>> import rue
    >>> weights = rue.weights_of(rue.learn([[1.0, 2.0], [3.0, -1.0]], [1, -1], learner=rue.Perceptron()))
    >>> len(weights), dict(weights.largest(1))
    (2, {'feature 1': 3.0})
    """

    indices: Any
    """The number of each weight's feature, −1 for the intercept."""
    values: Any
    """The weights."""
    places: Any
    """The place of each weight's class in `classes`."""
    classes: tuple[Any, ...]
    """More than two classes; otherwise nothing."""
    names: Mapping[int, str]
    """What features are called, as far as that is known."""

    def __len__(self) -> int:
        return int(self.values.size)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        columns = [self.features, self.values.tolist()]
        if self.classes:
            columns.insert(1, [self.classes[place] for place in self.places.tolist()])
        return zip(*columns, strict=True)

    @property
    def features(self) -> list[str]:
        """The name of each weight's feature."""
        return [name_of(j, self.names) for j in self.indices.tolist()]

    def largest(self, most: int = 10) -> Weights:
        """The `most` largest by magnitude, the largest first."""
        order = np.argsort(-np.abs(self.values), kind="stable")[:most]
        return dataclasses.replace(
            self, indices=self.indices[order], values=self.values[order], places=self.places[order]
        )

    def table(self) -> Any:
        """As an Arrow table: feature, index (null for the intercept), class if there are more than two, weight.

        >>> import rue
        >>> run = rue.learn([[1.0, 2.0], [3.0, -1.0]], [1, -1], learner=rue.Perceptron())
        >>> rue.weights_of(run).table().column_names
        ['feature', 'index', 'weight']
        """
        import pyarrow as pa

        columns = {
            "feature": pa.array(map(_encodable, self.features), pa.string()),
            "index": pa.array(self.indices, pa.int64(), mask=self.indices < 0),
        }
        if self.classes:
            columns["class"] = pa.array([_encodable(str(plain(self.classes[place]))) for place in self.places.tolist()])
        return pa.table({**columns, "weight": pa.array(self.values, pa.float64())})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV or Parquet, by the suffix of `path`; weights keep every bit.

        >>> import os, rue, tempfile
        >>> run = rue.learn([[1.0, 2.0], [3.0, -1.0]], [1, -1], learner=rue.Perceptron())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rue.weights_of(run).save(os.path.join(folder, "weights.csv"))
        ...     print(Path(folder, "weights.csv").read_text().splitlines()[0])
        "feature","index","weight"
        """
        import pyarrow.csv
        import pyarrow.parquet

        suffix, content = Path(path).suffix.lower(), io.BytesIO()
        writers = {".csv": pyarrow.csv.write_csv, ".parquet": pyarrow.parquet.write_table}
        if suffix not in writers:
            raise SettingsError(f"{path}: weights are written as .csv or .parquet.")
        writers[suffix](self.table(), content)
        write_file(path, content.getvalue())

    def __str__(self) -> str:
        return "\n".join(f"{weight:>12.6g}  {' for '.join(map(str, name))}" for *name, weight in self.largest(20))


def _encodable(name: str) -> str:
    """A name with half a character, as dicts may have, as reports write it."""
    return name.encode("utf-8", "backslashreplace").decode()


@dataclasses.dataclass(frozen=True)
class Part:
    """What one feature adds to a prediction."""

    feature: str
    value: float
    weight: float
    part: float | None = None
    """What it adds where that is no weight times a value: of a learner over maps."""

    @property
    def contribution(self) -> float:
        return self.weight * self.value if self.part is None else self.part


@dataclasses.dataclass(frozen=True)
class Explanation:
    """One prediction as a sum over features, p = Σ weight·value + rest; `str()` is a table. `rue.explain` makes it.

    >>> import rue
    >>> run = rue.learn([[1.0, 2.0], [3.0, -1.0]], [1, -1], learner=rue.Perceptron())
    >>> explained = rue.explain(run, [1.0, 1.0])
    >>> explained.prediction, [part.contribution for part in explained.parts]
    (1.0, [3.0, -2.0])
    """

    prediction: float
    """What the model predicts: a number, or a score; of more than two classes ln of the probability of `label`."""
    linear: float
    """What the weights say: Σ contributions; of more than two classes that, less ln Σ exp of all classes' sums."""
    parts: tuple[Part, ...]
    """By magnitude, the largest first; features without a weight are left out."""
    label: Any = None
    """The class that the prediction speaks for."""

    @property
    def rest(self) -> float:
        """What the weights do not explain: 0 but for rounding, unless the learner is a mixture."""
        return self.prediction - self.linear

    def __str__(self) -> str:
        head = f"prediction {self.prediction:.6g}" + (f" for {plain(self.label)!r}" if self.label is not None else "")
        lines = [f"{part.contribution:>+12.6g}  {part.feature} = {part.value:g}" for part in self.parts]
        largest = max([abs(self.prediction), *(abs(part.contribution) for part in self.parts)])
        rest = self.rest if abs(self.rest) > ROUNDING * largest else 0.0
        return "\n".join([head, *lines, f"{rest:>+12.6g}  what no weights explain"])


def name_of(index: int, names: Mapping[int, str]) -> str:
    """What a feature is called; −1 is the intercept."""
    return "intercept" if index < 0 else names.get(index, f"feature {index}")


def weights_of(what: Any) -> Weights:
    """The weights of a run or whatever else holds a learner, by the names of features.

    Of a pipeline that ends with such an estimator, the weights have the names that the steps before it give
    (scikit-learn's `get_feature_names_out`), those of a ColumnTransformer too.

    `what` is a run, a learner, a model, a model file, or an estimator of `rue.sklearn` or `rue.river`.

    >>> import rue
    >>> run = rue.learn([[1.0, 2.0], [3.0, -1.0]], [1, -1], learner=rue.Perceptron())
    >>> list(weights_of(run))
    [('feature 0', -2.0), ('feature 1', 3.0)]
    """
    model = _model(what)
    point, shift = _point(model.learner), int(model.learner.intercept)
    many = max(1, 1 if point.ndim == 1 else point.shape[1])
    used = np.flatnonzero(point)
    coordinates = used // many
    if (of_places := model.learner.coordinates_of_places()) is not None:
        order = np.argsort(of_places[coordinates], kind="stable")
        used, coordinates = used[order], of_places[coordinates[order]]
    return Weights(
        coordinates - shift,
        point.reshape(-1)[used],
        used % many,
        _classes(model),
        _names(model),
    )


def explain(what: Any, x: Any, label: Any = None) -> Explanation:
    """One prediction of whatever `weights_of` takes, as a sum over features.

    x is one example: a dict of names, a pandas Series, a dense row, a pair (indices, values), or a sparse matrix of one
    row; for a model of tables a dict or a Series of columns, or a table of one row. Of more than two classes `label`
    says which is to be explained, by default the most probable.

    >>> import rue
    >>> run = rue.learn([[1.0, 2.0], [3.0, -1.0]], [1, -1], learner=rue.Perceptron())
    >>> print(explain(run, [1.0, 1.0]))
    prediction 1 for 1
              +3  feature 1 = 1
              -2  feature 0 = 1
              +0  what no weights explain
    """
    if hasattr(what, "steps"):
        raise SettingsError(
            "explain: of a pipeline give the last step, and the row as it gets it: "
            "rue.explain(pipeline[-1], pipeline[:-1].transform(rows)[0])."
        )
    model = _model(what)
    learner = model.learner
    indices, values = _row(model, x)
    with_intercept = np.concatenate(([1.0] * learner.intercept, values))
    if learner.bins is not None:
        indices, values = learner.bins.before(indices.astype(np.uint32), values)
        indices = indices.astype(np.int64)
        with_intercept = np.concatenate(([1.0] * learner.intercept, values))
    if learner.lags is not None:
        indices, values = learner.lags.before(indices.astype(np.uint32), values)
        indices = indices.astype(np.int64)
        with_intercept = np.concatenate(([1.0] * learner.intercept, values))
    places = np.concatenate(([0] * learner.intercept, indices + int(learner.intercept))).astype(np.int64)
    point, block = _point(learner)[_in_point(learner, places)], _block(indices, values, learner)
    predicted = learner.frozen().predict_many(block)[0]
    if model.background is not None and model.background.rows and learner.loss.task != "multiclass":
        return _by_columns(model, indices, values, float(predicted), label)
    if learner.loss.task == "multiclass":
        classes = _classes(model)
        c = _class_to_explain(classes, predicted, label)
        sums = with_intercept @ point
        top = float(sums.max())
        linear = float(sums[c]) - top - float(np.log(np.exp(sums - top).sum()))
        prediction, point, label = float(np.log(max(predicted[1 + c], 1e-300))), point[:, c], classes[c]
    else:
        if label is not None:
            raise SettingsError("explain: label is for more than two classes; here there is one score.")
        prediction, linear = float(predicted), float(with_intercept @ point)
        if model.labels is not None and model.labels.task == "classify":
            label = model.labels.positive
    names = _names(model)
    parts = [
        Part(name_of(j - int(learner.intercept), names), float(value), float(weight))
        for j, value, weight in zip(places.tolist(), with_intercept, point, strict=True)
        if weight != 0.0 and value != 0.0
    ]
    return Explanation(prediction, linear, tuple(sorted(parts, key=lambda part: -abs(part.contribution))), label)


def _class_to_explain(classes: Any, predicted: Any, label: Any) -> int:
    """The place among the classes of the one that is asked for, or else of the most probable one."""
    if not classes:
        raise DataError("the model has learnt no class yet: there is nothing to explain.")
    if label is not None and label not in classes:
        raise DataError(f"the label {shown(label)} is none of the classes {shown(list(classes))}.")
    # Column 0 of the probabilities is that of a class never seen.
    return int(predicted[1:].argmax()) if label is None else int(classes.index(label))


def _by_columns(model: Model, indices: Any, values: Any, prediction: float, label: Any) -> Explanation:
    """A prediction of a learner over maps as a sum over columns: Shapley values, on rows that it has learnt."""
    if label is not None:
        raise SettingsError("explain: label is for more than two classes; here there is one score.")
    there = values != 0.0
    base, found, shown_as = shapley(model, indices[there], values[there])
    parts = [Part("mean of rows learnt", 1.0, base)]
    for name, contribution in found.items():
        text = shown_as[name]
        try:
            value = float(text)
        except ValueError:
            value, name = 1.0, f"{name}={text}"
        if contribution != 0.0:
            parts.append(Part(name, value, contribution / value if value else math.nan, contribution))
    ordered = tuple(sorted(parts, key=lambda part: -abs(part.contribution)))
    named = None if model.labels is None or model.labels.task != "classify" else model.labels.positive
    return Explanation(prediction, math.fsum(part.contribution for part in parts), ordered, named)


def effects_of(what: Any, frozen: bool = False) -> Effects:
    """What moves the predictions of a learner over maps: the curves of columns, and the tables of pairs.

    `what` is a run, a model, or a model file, learnt with maps; weights tell what a linear one has learnt. A curve is
    the mean prediction on at most 96 of the rows learnt, with one value after another in a column (partial dependence).
    Predictions are those of the learner as it stands, which the next row would get; with `frozen` those of the model
    that stays when learning stops, as `Run.predict` and `explain` have it: where the stream changes, it may be simpler.

    >>> import numpy as np, rue
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> run = rue.learn(X, np.sign(X[:, 0] * X[:, 1]), maps="auto")
    >>> effects_of(run).pairs[0].strength > 0.1
    True
    """
    return effects_of_model(_model(what), frozen)


def _model(what: Any) -> Model:
    """Whatever `weights_of` and `explain` take, as a model."""
    what = getattr(what, "best_estimator_", what)  # of a search over parameters
    if isinstance(what, str | os.PathLike):
        return load_model(what)
    return _last_step(what) if hasattr(what, "steps") else model_of(what)


def _last_step(pipeline: Any, names: Any = None) -> Model:
    """The model at the end of a pipeline of scikit-learn or River, with the names that the steps before it give.

    `names` are those of the pipeline's own input, where they are known.
    """
    if isinstance(pipeline.steps, Mapping):  # River's, in which features have their names everywhere
        last = list(pipeline.steps.values())[-1]
        return _last_step(last) if hasattr(last, "steps") else model_of(last)
    last = pipeline.steps[-1][1]
    try:
        names = pipeline[:-1].get_feature_names_out(names) if len(pipeline.steps) > 1 else names
    except (AttributeError, ValueError):  # a step does not say what it makes of the features
        names = None
    if hasattr(last, "steps"):
        return _last_step(last, names)
    model = model_of(last)
    if names is None or len(names) != model.learner.own_features:
        return model
    return dataclasses.replace(model, names=dict(enumerate(map(str, names))))


def _point(learner: Learner) -> Any:
    """The weights that predictions go by, of the coordinates that have a place."""
    return learner.frozen().point_in_places()


def _in_point(learner: Learner, coordinates: Any) -> Any:
    """The places of coordinates; one that has none gets one whose weight is 0."""
    if learner.numbering is None:
        return coordinates
    shift = int(learner.intercept)
    places = np.zeros(coordinates.size, dtype=np.int64)
    features = coordinates >= shift
    places[features] = learner.numbering.places_of(coordinates[features] - shift).astype(np.int64) + shift
    return places


def features_in_use(learner: Learner) -> int:
    """How many features have a weight other than 0 in a model: those that `weights_of` lists."""
    used = (_point(learner)[int(learner.intercept) :] != 0.0) if learner.t else np.zeros(0, dtype=bool)
    return int(np.count_nonzero(used if used.ndim == 1 else used.any(axis=1)))


def _names(model: Model) -> Mapping[int, str]:
    """The names of features: those of dicts that the learner saw, and those of the data."""
    return model.learner.called(model.names)


def _classes(model: Model) -> tuple[Any, ...]:
    """More than two classes by name, or by number where the name is not known; () for one score."""
    learner: Any = model.learner
    if learner.loss.task != "multiclass":
        return ()
    known = () if model.labels is None else model.labels.classes
    return tuple(known[c] if c < len(known) else c + 1 for c in range(learner.classes))


def _row(model: Model, x: Any) -> tuple[Any, Any]:
    """Indices and values of one example, those features alone that the model knows."""
    learner = model.learner
    if is_series(x):
        x = x.to_dict() if model.features or learner.names.places or model.names else np.asarray(x)
    if model.features.get("columns") is not None and (isinstance(x, Mapping) or is_readable(x)):
        return _table_row(model, x)
    pair = None
    if isinstance(x, Mapping):
        pair = learner.names.known(x) if learner.names.places or not learner.d else _by_name(model, x)
    elif (pair := sparse_row(x)) is None:
        row = dense_row(x)
        if row.size != learner.own_features:
            raise DataError(f"the example has {row.size} features, but the learner has {learner.own_features}.")
        pair = np.arange(row.size), row
    inside = pair[0] < learner.own_features
    return pair[0][inside].astype(np.int64), pair[1][inside]


def _by_name(model: Model, x: Mapping[Any, Any]) -> tuple[Any, Any]:
    """Indices and values of an example given by names; names that the model does not know are left out."""
    if not model.names:
        raise DataError("the model was learnt from rows by position: it knows no names of features.")
    places = {name: j for j, name in model.names.items()}
    known = sorted((places[str(name)], float(value)) for name, value in x.items() if str(name) in places)
    return np.array([j for j, _ in known], dtype=np.int64), np.array([value for _, value in known])


def _table_row(model: Model, x: Any) -> tuple[Any, Any]:
    """Indices and values of a row of a table, read as the model's own data were."""
    if isinstance(x, Mapping):
        import pyarrow as pa

        x = pa.Table.from_pylist([dict(x)])
    chunks = list(read_like(model.features, x).reads(labelled=False))
    bad = [(chunk, row) for chunk in chunks for row in chunk.bad]
    if bad:
        raise bad[0][0].error(bad[0][1])
    rows = [chunk.block for chunk in chunks if len(chunk.block)]
    if sum(map(len, rows)) != 1:
        raise DataError(f"explain takes one example at a time, not {sum(map(len, rows))}.")
    X = rows[0].in_order().X
    inside = X.indices < model.learner.own_features
    return X.indices[inside].astype(np.int64), X.data[inside]


def _block(indices: Any, values: Any, learner: Learner) -> Block:
    row = csr_view(np.array([0, indices.size]), indices, values, learner.d, bins=())
    return Block(row, lagged=learner.d - learner.own_features)
