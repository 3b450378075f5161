"""From data in any form to the predictions of a model that is left alone: scores, probabilities, or labels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rue.errors import DataError, SettingsError, shown
from rue.learners import ClassLearner, Learner
from rue.learners.one_example import is_number
from rue.runs.advice import Advised
from rue.runs.watching import Watch
from rue.streams import Block, Labels, Stream, read_like
from rue.streams.block import csr_view, is_readable
from rue.streams.chunk import Chunk
from rue.streams.labels import plain
from rue.streams.stream import Arrays
from rue.streams.tables.columns import require_columns
from rue.streams.tables.dicts import are_dicts, table_of

__all__ = [
    "READINGS",
    "is_series",
    "predict",
    "predict_interval",
    "probabilities",
    "read_as",
    "require_reading",
    "sparse_matrix",
]

READINGS = ("score", "probability", "label")
"""What `as_` (on the command line `--as`) may ask for."""


def predict(
    learner: Learner,
    X: Any,
    *,
    labels: Labels | None = None,
    features: Mapping[str, Any] | None = None,
    names: Mapping[int, str] | None = None,
    as_: str = "score",
    experts: Advised | None = None,
) -> Any:
    """Predictions for one example or many, in any form that fits what was learnt; see `Run.predict`.

    `labels`, `features` and `names` are those of a run or a model: what the numbers that were learnt stand for, how
    tables become features, and what features are called. `experts` are those that the learner is mixed with.
    """
    require_reading(as_)
    one, stream = _opened(learner, dict(features or {}), names or {}, X)
    model, parts = learner.frozen(), []  # which weights answer: those of the model that stays when learning stops
    chunks: Iterable[Chunk] = stream.reads(labelled=False)
    for chunk in chunks if experts is None else experts.attached(chunks):
        if chunk.first_bad:
            raise chunk.error(chunk.first_bad)
        own = model.predict_many(chunk.block)
        parts.append(own if experts is None or not len(chunk.block) else experts.predict(own, chunk))
    p = np.concatenate(parts) if parts else _no_scores(learner)
    answer = read_as(learner, labels, p, as_)
    if not one:
        return answer
    return answer[0].item() if isinstance(answer[0], np.generic) else answer[0]


def predict_interval(
    learner: Learner, watch: Watch, X: Any, *, features: Mapping[str, Any], names: Mapping[int, str]
) -> Any:
    """Lower and upper ends for one example or many, in any form that fits what was learnt, or sets of classes.

    See `Run.predict_interval`.
    """
    one, stream = _opened(learner, dict(features), names, X)
    model, parts = learner.frozen(), []
    for chunk in stream.reads(labelled=False):
        if chunk.first_bad:
            raise chunk.error(chunk.first_bad)
        block = learner.with_last_labels(chunk.block)
        parts.append(watch.predict(learner.loss, block, model.predict_many(block)))
    if not parts:
        raise DataError("predict_interval: there are no examples.")
    if not isinstance(parts[0], tuple):
        sets = np.concatenate(parts)
        return sets[0] if one else sets
    lower, upper = (np.concatenate([part[i] for part in parts]) for i in range(2))
    return (lower[0], upper[0]) if one else (lower, upper)


def require_reading(as_: str) -> None:
    """Refuse what no predictions can be read as."""
    if as_ not in READINGS:
        raise SettingsError(f"as_ is {', '.join(map(repr, READINGS[:-1]))} or {READINGS[-1]!r}, not {shown(as_)}.")


def read_as(learner: Learner, labels: Labels | None, p: Any, as_: str) -> Any:
    """Scores, as `Frozen.predict_many` gives them, read as probabilities or labels.

    A probability is that of the class that scores above 0 mean; of more than two classes there is a column for each.
    """
    if as_ == "score":
        return p
    loss = learner.loss
    if loss.task == "regress":
        raise SettingsError(f"as_={as_!r} is for classes: this model predicts numbers.")
    if loss.task == "multiclass":
        classes = labels.classes if labels is not None else tuple(range(1, p.shape[1]))
        chances = np.zeros((len(p), len(classes)))
        chances[:, : p.shape[1] - 1] = p[:, 1:]
        if as_ == "probability":
            return chances
        if not classes:
            raise DataError("the model has learnt no class yet.")
        return _array(classes)[chances.argmax(axis=1)]
    if as_ == "label":
        pair = (-1, 1) if labels is None else (labels.negative, labels.positive)
        return _array(pair)[(p > 0.0).astype(np.int64)]
    if not loss.log_odds:
        raise SettingsError(f"as_='probability' needs logistic loss: this model was learnt with {loss!r}.")
    return probabilities(p)


def probabilities(p: Any) -> Any:
    """1 / (1 + e^−p), of log-odds p."""
    return 1.0 / (1.0 + np.exp(-np.clip(p, -700.0, 700.0)))


def _array(classes: Sequence[Any]) -> Any:
    """The names of classes, as they are: NumPy would make words of numbers among words."""
    shown = list(map(plain, classes))
    return np.array(shown, dtype=None if len(set(map(type, shown))) == 1 else object)


def _no_scores(learner: Learner) -> Any:
    return np.empty((0, 1 + learner.classes)) if isinstance(learner, ClassLearner) else np.empty(0)


# The forms that examples come in.


def _opened(learner: Learner, features: dict[str, Any], names: Mapping[int, str], X: Any) -> tuple[bool, Stream]:
    """The examples as a stream, and whether there is a single one that is in no list."""
    by_name = features or learner.names.places or names
    if is_series(X):
        X = X.to_dict() if by_name else np.asarray(X)
    if isinstance(X, Mapping):
        return True, _of_dicts(learner, features, names, [X])
    if isinstance(X, list | tuple) and X:
        if are_dicts(X):
            return False, _of_dicts(learner, features, names, X)
        if is_number(X[0]):
            return True, read_like(features, [X])
    if getattr(X, "ndim", None) == 1:
        return True, read_like(features, X.reshape(1, -1))
    if by_name and not features and is_readable(X) and not isinstance(X, str | os.PathLike | list | tuple):
        return False, _of_frame(learner, names, X)
    return False, read_like(features, X)


def is_series(X: Any) -> bool:
    """Whether it is like one row of a pandas DataFrame, with the names of its columns."""
    return getattr(X, "ndim", None) == 1 and hasattr(X, "to_dict") and hasattr(X, "index")


def _of_dicts(learner: Learner, features: dict[str, Any], names: Mapping[int, str], rows: Sequence[Any]) -> Stream:
    """Examples by name: read as a table where the model has learnt one, by the learner's own names, or by `names`."""
    if features.get("columns") is not None:
        return read_like(features, table_of(rows))
    if learner.names.places or not (learner.d or learner.t):
        return _stream(learner.names.known(row) for row in rows)
    if not names:
        raise DataError("the model was learnt from rows by position: it knows no names of features.")
    if own := _every_name(learner, names):
        for row in rows:
            require_columns(own, list(map(str, row)))
        by_text = ({str(name): value for name, value in row.items()} for row in rows)
        return read_like({}, [[row[name] for name in own] for row in by_text])
    places = {name: j for j, name in names.items()}
    known = [sorted((places[str(name)], float(row[name])) for name in row if str(name) in places) for row in rows]
    return _stream((np.array([j for j, _ in row]), np.array([value for _, value in row])) for row in known)


def _of_frame(learner: Learner, names: Mapping[int, str], X: Any) -> Stream:
    """A frame for a model that was not learnt from one, but knows its features by name."""
    import pyarrow as pa

    table = pa.table(X)
    if learner.names.places:
        return _of_dicts(learner, {}, names, table.to_pylist())
    own = _every_name(learner, names)
    if not own:
        return read_like({}, X)  # which says why not
    require_columns(own, table.column_names)
    return read_like({}, np.column_stack([table.column(name).to_numpy() for name in own]))


def _every_name(learner: Learner, names: Mapping[int, str]) -> list[str]:
    """The names of all features in order; [] if some have none, as hashed ones."""
    own = range(learner.own_features)
    return [names[j] for j in own] if all(j in names for j in own) else []


def _stream(rows: Iterable[tuple[Any, Any]]) -> Stream:
    return Arrays(Block(sparse_matrix(rows)), None, None)


def sparse_matrix(rows: Iterable[tuple[Any, Any]], width: int | None = None) -> Any:
    """Rows given by sorted indices and values, as a block takes them; by default as wide as the largest index asks."""
    pairs = list(rows)
    indptr = np.cumsum([0, *(indices.size for indices, _ in pairs)])
    indices = np.concatenate([np.empty(0, np.uint32), *(indices for indices, _ in pairs)]).astype(np.uint32)
    values = np.concatenate([np.empty(0), *(values for _, values in pairs)])
    if width is None:
        width = int(indices.max()) + 1 if indices.size else 0
    return csr_view(indptr, indices, values, width)
