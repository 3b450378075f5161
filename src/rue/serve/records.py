"""What happens to a service, as records of its log, and the JSON in which they come."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec

from rue.errors import DataError, shown

__all__ = [
    "CHALLENGE",
    "CREATE",
    "EXPIRE",
    "FORGET",
    "KINDS",
    "LABEL",
    "LEARN",
    "PREDICT",
    "PROMOTE",
    "ROLLBACK",
    "Line",
    "Record",
    "decode",
    "own_id",
    "require_label",
    "require_line",
]

CREATE, PREDICT, LABEL, LEARN, EXPIRE, FORGET, CHALLENGE, PROMOTE, ROLLBACK = range(1, 10)
KINDS = {
    CREATE: "create",
    PREDICT: "predict",
    LABEL: "label",
    LEARN: "learn",
    EXPIRE: "expire",
    FORGET: "forget",
    CHALLENGE: "challenge",
    PROMOTE: "promote",
    ROLLBACK: "rollback",
}
"""A model is created; an example is predicted; its label comes; an example with its label; predictions up to a number
have waited too long for their label; so have labels for their prediction; a challenger begins, or takes the place of
its model; a model goes back to a snapshot."""
LONGEST_ID = 256

Value = str | float | int | bool | None


class Line(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An example, its label, or both, as they come in a request or in a line of a batch."""

    features: dict[str, Value] | None = None
    id: str | None = None
    label: Value = None
    weight: float = 1.0

    @property
    def kind(self) -> int:
        """What it asks for."""
        if self.features is None:
            return LABEL
        return PREDICT if self.label is None else LEARN


class Record(NamedTuple):
    """A line of the log."""

    seq: int
    """Its number; the log has all of them, from 1 on."""
    at: int
    """When it was written, in milliseconds since 1970; never less than in the record before."""
    model: int
    kind: int
    id: str | None
    body: bytes
    """JSON: a `Line`, or what the kind needs."""


_decoder = msgspec.json.Decoder(Line)


def decode(body: bytes) -> Line:
    """A line of JSON; a `DataError` says what is wrong with it."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{_in_words(error)}.") from None


def _in_words(error: Exception) -> str:
    text = str(error).rstrip(".").replace("`", "'")
    if "surrogate" in text.lower() or isinstance(error, UnicodeDecodeError):
        return "the request is not text in UTF-8"
    if isinstance(error, msgspec.ValidationError):
        return (
            f"{text}: an example has 'features' (names with numbers, words, true, false or null), 'label', 'id' and "
            "'weight'"
        )
    return f"this is not JSON: {text}"


def require_line(line: Line, wanted: int | None = None) -> None:
    """Refuse a line that says nothing, or something else than its route is for."""
    if line.id is not None and not _is_usable(line.id, line.features is None):
        raise DataError(
            f"the id {shown(line.id)} cannot be used: give 1 to {LONGEST_ID} printable characters, the first not #."
        )
    if line.features is None and line.label is None:
        raise DataError("there are neither features nor a label: give at least one of them.")
    if wanted == PREDICT and (line.features is None or line.label is not None):
        raise DataError("predict takes features and no label: POST an example with its label to learn.")
    if wanted == LEARN and (line.features is None or line.label is None):
        raise DataError("learn takes features and a label: POST features alone to predict, a label alone to label.")
    if wanted == LABEL and line.features is not None:
        raise DataError("label takes an id and a label: POST features with their label to learn.")
    if line.features is None and line.id is None:
        raise DataError("a label needs the id of its prediction.")
    if not (math.isfinite(line.weight) and line.weight >= 0.0):
        raise DataError(f"the weight {line.weight!r} is not a finite number ≥ 0.")
    if line.features is not None:
        for name, value in line.features.items():
            if type(value) is float and not math.isfinite(value):
                raise DataError(f"the feature {shown(name)} is {value!r}: features must be finite numbers.")
            if type(value) is int and abs(value) > 2**1000:
                raise DataError(f"the feature {shown(name)} is too large a number.")
    if line.label is not None:
        require_label(line.label)


def _is_usable(id_: str, of_label: bool) -> bool:
    """Whether an id may be given; those with # are the service's own, and only labels may name them."""
    if id_[:1] == "#":
        return of_label and own_id(id_) is not None
    return 0 < len(id_) <= LONGEST_ID and id_.isprintable()


def require_label(label: Any) -> None:
    """Refuse what is no label at all."""
    if isinstance(label, str) and not label:
        raise DataError("the label is empty: give a number, a word, true or false.")
    try:
        if not isinstance(label, str) and not math.isfinite(label):
            raise OverflowError
    except OverflowError:
        raise DataError(f"the label {shown(label)} is no finite number.") from None


def own_id(id_: str) -> int | None:
    """The number of the record that an id made by the service stands for; None for any other id.

    >>> own_id("#17"), own_id("order 17")
    (17, None)
    """
    digits = id_[1:]
    return int(digits) if id_[:1] == "#" and digits.isascii() and digits.isdigit() and len(digits) < 19 else None
