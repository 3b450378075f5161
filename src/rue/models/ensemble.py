"""What a model file has of an ensemble: the learner and its outside experts, mixed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.learners.ensemble import MOST_EXPERTS, Ensemble
from rue.models.arrays import Reader, typed
from rue.models.learner import read_learner, write_learner
from rue.runs.advice import READINGS

__all__ = ["read_ensemble", "write_ensemble"]

STACK = "ensemble.stack."


def write_ensemble(ensemble: Ensemble | None, arrays: dict[str, Any]) -> dict[str, Any] | None:
    """An ensemble as JSON, its arrays entered; None if there is none."""
    if ensemble is None:
        return None
    stack: dict[str, Any] = {}
    head: dict[str, Any] = {
        "names": list(ensemble.names),
        "reading": ensemble.reading,
        "stack": write_learner(ensemble.stack, stack),
    }
    head["calibrate"] = ensemble.calibrate
    arrays |= {f"{STACK}{name}": array for name, array in stack.items()}
    arrays |= {"ensemble.members": ensemble.members, "ensemble.memory": ensemble.memory}
    return head


def read_ensemble(reader: Reader, head: Any, known: Iterable[type], version: int, loss: Any) -> Ensemble | None:
    """The ensemble that was written, for a learner with a loss; DataError for anything else."""
    if head is None:
        return None
    names = [typed(name, str) for name in typed(head["names"], list)]
    calibrate = typed(head.get("calibrate", False), bool)  # older files have none
    if not 1 - calibrate <= len(names) <= MOST_EXPERTS or len(set(names)) < len(names) or loss.task == "multiclass":
        raise DataError("its experts are impossible")
    if head["reading"] not in READINGS or (calibrate and not loss.log_odds):
        raise DataError("its experts are impossible")
    ensemble = Ensemble(names, loss, head["reading"], calibrate)
    own = Reader({name[len(STACK) :]: array for name, array in reader.arrays.items() if name.startswith(STACK)})
    for name in own.arrays:
        del reader.arrays[f"{STACK}{name}"]
    stack = read_learner(own, head["stack"], known, version)
    own.require_end()
    if stack.algorithm != ensemble.stack.algorithm or stack.d not in (0, ensemble.width):
        raise DataError("its experts were mixed with another loss")
    ensemble.stack = stack
    reader.fill("ensemble.members", ensemble.members)
    reader.fill("ensemble.memory", ensemble.memory)
    if not np.isfinite(ensemble.members).all():
        raise DataError("the losses of its experts are impossible")
    ensemble.require_sane()
    return ensemble
