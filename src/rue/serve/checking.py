"""What a line may do to a model, and what one is answered whose id has occurred before."""

from __future__ import annotations

from typing import Any

from rue.errors import DataError
from rue.serve.log import Log
from rue.serve.model import Answer, ServedModel
from rue.serve.records import LABEL, LEARN, PREDICT, Line, Record, decode, own_id

__all__ = ["checked"]


def checked(log: Log, model: ServedModel, line: Line, most: int) -> Answer | None:
    """The answer to a line that needs no record, because it has been answered before; None for any other.

    Refuses what the model could not take; an example has `most` features at most.
    """
    if line.kind != LABEL:
        assert line.features is not None
        if len(line.features) > most:
            raise DataError(f"there are {len(line.features):,} features, more than {most:,}.")
        wrong = model.reading.complaint(line.features)
        if wrong:
            raise DataError(wrong)
    if line.kind != PREDICT:
        wrong = model.problem(line.label) or model.cannot_settle(_features_of(model, line))
        if wrong:
            raise DataError(wrong)
    return None if line.id is None else _repeated(log, model, line, line.id)


def _features_of(model: ServedModel, line: Line) -> dict[str, Any]:
    """The features of a line that is to be learnt, {} if they are not there yet."""
    waiting = model.pending.get(line.id or "")
    found = line.features if waiting is None or line.features is not None else decode(waiting.body).features
    return found or {}


def _repeated(log: Log, model: ServedModel, line: Line, id_: str) -> Answer | None:
    """What an id is answered that may have occurred before."""
    waiting = model.pending.get(id_)
    if line.kind == LABEL:
        if waiting is not None:
            return None
        if id_ in model.early:
            same = _is_same_label(decode(model.early[id_].body), line)
            return Answer(202, {"learnt": False, "duplicate": True}) if same else _contradiction(id_)
    elif waiting is not None:
        if line.kind == PREDICT and decode(waiting.body).features == line.features:
            return Answer(200, {"id": id_, **waiting.content, "t": waiting.t, "duplicate": True})
        return _contradiction(id_)
    return _remembered(model, line, id_, log.find(model.number, id_))


def _remembered(model: ServedModel, line: Line, id_: str, found: list[Record]) -> Answer | None:
    """What an id is answered that waits for nothing, and which these records have; None if it is new."""
    if line.kind == LABEL and own_id(id_) is not None and not found:
        return Answer(404, {"error": f"there was no prediction {id_}."})
    predicted = next((record for record in found if record.kind == PREDICT), None)
    labels = [record for record in found if record.kind in (LABEL, LEARN)]
    # A label whose prediction never came has been forgotten, and does not count.
    learnt = labels if predicted is not None or any(record.kind == LEARN for record in labels) else []
    if line.kind == PREDICT:
        return None if predicted is None and not learnt else _over(id_, line, predicted, bool(learnt))
    if line.kind == LEARN and not learnt:
        return None if predicted is None and not labels else _contradiction(id_)
    if not learnt:
        return None if predicted is None else _expired(id_)
    first = decode(learnt[0].body)
    if not (_is_same_label(first, line) and (line.kind == LABEL or first.features == line.features)):
        return _contradiction(id_)
    return Answer(200, {"learnt": True, "duplicate": True, "t": model.t})


def _over(id_: str, line: Line, predicted: Record | None, learnt: bool) -> Answer:
    """The answer to a prediction that was made before and waits no more."""
    if predicted is None or decode(predicted.body).features != line.features:
        return _contradiction(id_)
    if learnt:
        return Answer(409, {"error": f"the prediction {id_!r} has been made, and its label has been learnt."})
    return _expired(id_)


def _expired(id_: str) -> Answer:
    return Answer(410, {"error": f"the prediction {id_!r} has expired: its label came too late."})


def _is_same_label(first: Line, second: Line) -> bool:
    return first.label == second.label and first.weight == second.weight


def _contradiction(id_: str) -> Answer:
    return Answer(
        409, {"error": f"the id {id_!r} has been used with something else: give each example an id of its own."}
    )
