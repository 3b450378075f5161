"""`Advice`: what outside experts predict for the rows of a stream, from arrays, files, or columns of a table."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from rue.errors import DataError, SettingsError, shown
from rue.learners.ensemble import HIGHEST, Ensemble
from rue.streams.block import as_array
from rue.streams.chunk import Chunk
from rue.streams.predictions import EACH, read_predictions

__all__ = [
    "READINGS",
    "Advice",
    "Advised",
    "advice_in",
    "columns_of_experts",
    "experts_in",
    "experts_of",
    "require_experts",
    "require_no_ensemble",
]

READINGS = ("probability", "score")
"""What the experts' numbers may be where the loss is logistic."""
LARGEST = 1e75
"""No prediction may be larger: its square must be a number with room to spare."""


@dataclasses.dataclass(frozen=True)
class Advice:
    """Names of experts, their predictions for each row, and what these numbers are.

    >>> import rue
    >>> advice = Advice(("lightgbm",), np.array([[0.5], [0.75]]))
    >>> advice.scores(Ensemble(["lightgbm"], rue.Logistic()), advice.columns).ravel().round(4)
    array([0.    , 1.0986])
    """

    names: tuple[str, ...]
    columns: Any
    """A row for each row of the data, those that are unusable among them; a column for each expert; NaN where one has
    no prediction. None where the data's own columns have them all."""
    reading: str | None = None
    """Of logistic loss: whether they are probabilities of the class that is +1, or scores (log-odds); None if nothing
    was asked for."""
    own: tuple[str, ...] = ()
    """The columns of the data that hold predictions: these experts come first."""
    calibrate: bool = False
    """Whether the learner's probabilities are to be corrected, which needs no expert."""

    @property
    def experts(self) -> tuple[str, ...]:
        """The names of all, those in the data first."""
        return (*self.own, *self.names)

    def attached(self, chunks: Iterable[Chunk], before: int = 0, *, whole: bool = True) -> Iterator[Chunk]:
        """The chunks of a stream, each with the experts' predictions; `before` is how many rows came before them.

        Every row that was read counts, the unusable ones too. If the stream is `whole`, its end must be theirs.
        """
        if self.columns is None:
            yield from chunks
            return
        many = len(self.columns)
        for chunk in chunks:
            rows = len(chunk.block) + len(chunk.bad)
            part = self.columns[before : before + rows]
            if len(part) < rows:
                raise DataError(f"{self._called} {many:,} predictions, but there are more rows{EACH}.")
            before += rows
            part = np.delete(part, [row.place + i for i, row in enumerate(chunk.bad)], axis=0)
            advice = part if chunk.advice is None else np.column_stack([chunk.advice, part])
            yield dataclasses.replace(chunk, advice=advice)
        if whole and before < many:
            raise DataError(f"{self._called} {many:,} predictions, but there are {before:,} rows{EACH}.")

    @property
    def _called(self) -> str:
        plural = len(self.names) > 1
        return f"the expert{'s' * plural} {', '.join(self.names)} {'have' if plural else 'has'}"

    def ensemble(self, loss: Any) -> Ensemble:
        """An ensemble of a learner with a loss and these experts."""
        return Ensemble(self.experts, loss, self.reading or READINGS[0], self.calibrate)

    def of(self, chunk_advice: Any, rows: int) -> Any:
        """What experts predict for so many rows, as a chunk has it; without experts a matrix without columns."""
        if chunk_advice is None and not self.experts:
            return np.empty((rows, 0))
        if chunk_advice is None:
            raise DataError("the rows come without the predictions of the outside experts.")
        return chunk_advice

    def scores(self, ensemble: Ensemble, advice: Any) -> Any:
        """Some rows of predictions as the ensemble's loss takes them; NaN where there is none."""
        if np.isinf(advice).any() or (np.abs(np.nan_to_num(advice)) > LARGEST).any():
            raise DataError(f"experts: predictions must be finite and no larger than {LARGEST:g}.")
        if not ensemble.loss.log_odds or ensemble.reading == "score":
            return advice
        outside = (advice < 0.0) | (advice > 1.0)
        if outside.any():
            row, k = np.argwhere(outside)[0]
            raise DataError(
                f"the expert {self.experts[k]} predicts {advice[row, k]:g}, which is no probability: if these are "
                'log-odds, say --expert-as score (in Python experts_as="score").'
            )
        with np.errstate(divide="ignore"):
            return np.clip(np.log(advice) - np.log1p(-advice), -HIGHEST, HIGHEST)


class Advised(NamedTuple):
    """The ensemble that a model was learnt with, and what its experts predict for other rows."""

    ensemble: Ensemble
    advice: Advice

    def attached(self, chunks: Iterable[Chunk], before: int = 0, *, whole: bool = True) -> Iterator[Chunk]:
        """As `Advice.attached`."""
        return self.advice.attached(chunks, before, whole=whole)

    def predict(self, own: Any, chunk: Chunk) -> Any:
        """The predictions of all together, when nothing is learnt any more, from those of the learner."""
        advice = self.advice.of(chunk.advice, len(chunk.block))
        return self.ensemble.predict(own, self.advice.scores(self.ensemble, advice))


def experts_of(ensemble: Ensemble | None, advice: Advice | None) -> Advised | None:
    """A model's ensemble with predictions of its experts for other rows; refuses any others."""
    if ensemble is None:
        if advice is not None and advice.names:
            raise SettingsError("experts: the model was learnt without outside experts: leave them out.")
        return None
    require_experts(ensemble, advice)
    return Advised(ensemble, advice or Advice((), None))


def require_experts(ensemble: Ensemble, advice: Advice | None) -> None:
    """Refuse experts other than an ensemble's own, or numbers of another meaning."""
    ensemble.require_names(() if advice is None else advice.experts)
    if advice is not None and advice.reading not in (None, ensemble.reading):
        raise SettingsError(f"experts: the model has learnt that they give a {ensemble.reading}: leave experts_as out.")
    if advice is not None and advice.calibrate and not ensemble.calibrate:
        raise SettingsError("calibrate contradicts the model, which was learnt without it: leave it out.")


def advice_in(
    experts: Mapping[str, Any] | None, reading: str | None = None, own: Iterable[str] = (), calibrate: bool = False
) -> Advice | None:
    """Arrays or paths of files by the names of experts, and columns of the data, as advice; None if there are none.

    With `calibrate` and no experts it is an `Advice` without columns.

    >>> advice_in({"a": [0.5, 0.25], "b": [0.1, 0.2]}).columns.shape
    (2, 2)
    """
    own = tuple(own)
    if reading not in (None, *READINGS):
        raise SettingsError(f"experts_as is 'probability' or 'score', not {shown(reading)}.")
    if experts is not None and not isinstance(experts, Mapping):
        raise SettingsError('experts: give a dictionary such as {"lightgbm": predictions}, or of paths of files.')
    if not experts and not own and not calibrate:
        return None
    names: list[str] = []
    columns: list[Any] = []
    for name, given in (experts or {}).items():
        if not isinstance(name, str) or not name or name in own:
            raise SettingsError(f"experts: each needs a name of its own, as text, not {shown(name)}.")
        path = isinstance(given, str | os.PathLike)
        column = read_predictions(os.fspath(given)) if path else _numbers(name, given)
        if columns and len(column) != len(columns[0]):
            raise DataError(
                f"the expert {name} has {len(column):,} predictions and {names[0]} has {len(columns[0]):,}{EACH}."
            )
        names.append(name)
        columns.append(column)
    return Advice(tuple(names), np.column_stack(columns) if columns else None, reading, own, calibrate)


def _numbers(name: str, given: Any) -> Any:
    """An array of predictions, None standing for a missing one."""
    what = f"predictions of the expert {name}"
    try:
        column = np.asarray(as_array(given, what), dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"the {what} must be numbers, one for each row.") from None
    if column.ndim != 1:
        raise DataError(f"the {what} have shape {column.shape}: one number for each row is wanted.")
    return column


def experts_in(features: Mapping[str, Any]) -> tuple[str, ...]:
    """Which columns of a model's data hold predictions of outside experts."""
    return tuple((features.get("columns") or {}).get("experts", ()))


def columns_of_experts(how: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns that options of reading name as those of experts."""
    given = how.get("expert_column", ())
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise SettingsError(f"expert_column: name the columns, as text, not {shown(given)}.")
    return names


def require_no_ensemble(what: str, ensemble: Ensemble | None) -> None:
    """Refuse what is not there for a run with outside experts."""
    if ensemble is not None:
        raise SettingsError(
            f"{what}: it is not there for a run with outside experts (experts=, --expert), or with calibrate."
        )
