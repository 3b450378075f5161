"""What a model says of itself: the report of `rue learn` with what a service adds, a certificate, weights, parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from rue import ledger as accounts
from rue.errors import DataError
from rue.reports.explaining import explain, weights_of
from rue.reports.report import certificate_fields, certified, report
from rue.runs.certifying import certificate_of
from rue.serve.model import ServedModel
from rue.serve.race import Race
from rue.serve.snapshots import model_file

__all__ = ["certificate", "explanation", "glance", "report_of", "weights"]

MOST_WEIGHTS = 10_000


def report_of(model: ServedModel, race: Race | None = None) -> dict[str, Any]:
    """The report of `rue learn`, of the predictions that were served, and what has become of them."""
    reading = model.reading
    found = report(model.driver, radius=model.settings.radius, columns=reading.columns, names=reading.names.of)
    found.pop("seconds")  # a replay has all else
    return {**found, "service": {**served(model), "challenger": None if race is None else race.figures()}}


def served(model: ServedModel) -> dict[str, Any]:
    """What a service counts besides the loss: predictions that wait, late labels, and what was left out."""
    labels, milliseconds, examples, longest, most = model.late.tolist()
    return {
        "model": model.name,
        "record": model.seq,
        "at": model.at,
        "t": model.t,
        "predicted": model.predicted,
        "pending": len(model.pending),
        "early": len(model.early),
        "held": len(model.held),
        "expired": model.expired,
        "forgotten": model.forgotten,
        "bad": model.bad,
        "unknown_features": dict(model.reading.unknown),
        "past": model.past,
        "late": {
            "labels": int(labels),
            "seconds": {"mean": milliseconds / labels / 1000 if labels else None, "largest": longest / 1000},
            "examples": {"mean": examples / labels if labels else None, "largest": int(most), "total": int(examples)},
        },
    }


def glance(model: ServedModel) -> dict[str, Any]:
    """What changes with every example, without a search: for events."""
    driver = model.driver
    sums = None if driver.accounts is None else driver.evidence.ledger.sums  # type: ignore[union-attr]
    proved = certified(driver, model.settings.radius, thorough=False)
    mass = 0.0 if sums is None else float(sums[accounts.WEIGHT])
    return {
        "examples": driver.examples,
        "risk": None if not mass else float(sums[accounts.LOSS]) / mass,  # type: ignore[index]
        "regret_at_most": None if proved is None else proved.regret_at_most,
        **served(model),
    }


def certificate(model: ServedModel, radius: float | None, window: str | None) -> dict[str, Any]:
    """The certificate of the predictions that were served (D1 to D6)."""
    driver = model.driver
    if driver.evidence is None or not driver.examples:
        raise DataError("nothing has been learnt yet, so there is no certificate.")
    asked: Any = window
    if window is not None and not window.startswith("last:"):
        parts = window.split(",")
        if len(parts) != 2 or not all(part.strip().isdigit() for part in parts):
            raise DataError("window is two numbers of rounds such as 1,1000, or last:1000.")
        asked = int(parts[0]), int(parts[1])
    left_out = driver.refused + driver.skipped
    found = certificate_of(driver.learner, driver.evidence, left_out, radius, window=asked)
    return {**certificate_fields(found), "loss_total": found.loss_total, "window": found.window}


def weights(model: ServedModel, top: int) -> dict[str, Any]:
    """The largest weights by the names of features."""
    stored = model_file(model, copied=False)
    if stored is None:
        raise DataError("nothing has been learnt yet, so there are no weights.")
    listed = weights_of(stored).largest(min(top, MOST_WEIGHTS))
    return {"weights": [list(weight) for weight in listed]}


def explanation(model: ServedModel, features: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of one prediction."""
    stored = model_file(model, copied=False)
    if stored is None:
        raise DataError("nothing has been learnt yet, so there is nothing to explain.")
    complaint = model.reading.complaint(features)
    if complaint:
        raise DataError(complaint)
    assert model.reading.columns is not None
    row = {name: None for name, _ in model.reading.columns.plan} | dict(features)
    found = explain(stored, row)
    parts = [dict(dataclasses.asdict(part), contribution=part.contribution) for part in found.parts]
    return {
        "prediction": found.prediction,
        "label": found.label,
        "rest": found.rest,
        "parts": parts,
        "words": str(found),
    }
