"""The windows of a run as a part of its report: for JSON, as CSV, and in words."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rue.domains import Domain
from rue.outputs import write_file
from rue.regret.certificates.certificate import Certificate
from rue.regret.certificates.evidence import Evidence
from rue.regret.certificates.windows import (
    ChangingModels,
    Windows,
    certificate_of_window,
    changing_models,
    windows_of,
)
from rue.runs.certifying import certificate_of, changing_models_of
from rue.runs.driver import Driver

if TYPE_CHECKING:
    from rue.runs.run import Run

__all__ = ["windows_in_words", "windows_of_predictions", "windows_report", "write_windows_csv"]

CHANGES = (0, 1, 3, 7, 15, 31)
"""For how many changes the report says what a model that changes so often must lose."""
COLUMNS = (
    "first",
    "last",
    "examples",
    "weight",
    "loss",
    "risk",
    "mistakes",
    "best_constant",
    "slope_times_prediction",
    "slope_norm",
    "gap",
    "comparator_loss_at_least",
)


def windows_report(driver: Driver | Run, radius: float | None = None) -> dict[str, Any] | None:
    """Every window with its loss and what no linear model of the radius could have beaten there; D7; ready for JSON."""
    evidence, learner = driver.evidence, driver.learner
    if evidence is None or not driver.examples:
        return None
    # Sorted once: every certificate of a window looks at all columns.
    ledger = evidence.ledger
    evidence = dataclasses.replace(evidence, ledger=ledger._replace(windows=ledger.windows.in_order()))
    scales = learner.scales_in_places() if evidence.numbering is learner.numbering else None
    windows = windows_of(evidence, learner.intercept, scales)
    if learner.loss.task == "multiclass" or not len(windows):
        return _listed(windows, None, None)
    whole = certificate_of(learner, evidence, radius=radius, window=(1, driver.examples))
    if whole.radius is None:
        return _listed(windows, None, None)
    ask = functools.partial(certificate_of, learner, evidence, radius=whole.radius, units=whole.units)
    models = changing_models_of(learner, evidence, whole.radius, whole.units)
    return _listed(windows, whole.radius, lambda window: ask(window=window), models)


def windows_of_predictions(evidence: Evidence, domain: Domain, units: str, intercept: bool) -> dict[str, Any]:
    """The same of predictions of any model, which were certified."""
    windows, radius = windows_of(evidence, intercept), domain.centred_radius
    if radius is None or not len(windows):
        return _listed(windows, radius, None)

    def ask(window: Any) -> Certificate:
        return certificate_of_window(evidence, window, lambda part: part.certificate(domain, units))

    return _listed(windows, radius, ask, changing_models(evidence, domain, units))


def _listed(
    windows: Windows,
    radius: float | None,
    ask: Callable[[Any], Certificate] | None,
    models: ChangingModels | None = None,
) -> dict[str, Any]:
    """All windows, the certificates of them that `ask` gives, and what models that change must lose."""
    listed, changes = [], []
    for window in windows:
        row = {name: getattr(window, name) for name in COLUMNS[:-1]}
        found = None if ask is None else ask((window.first, window.last))
        row["comparator_loss_at_least"] = None if found is None else found.comparator_loss_at_least
        listed.append({name: _plain(value) for name, value in row.items()})
    for k in CHANGES:
        if models is None or k >= len(windows):
            break
        found = models.certificate(k)
        share = found.comparator_loss_at_least / found.loss_total if found.loss_total > 0.0 else math.nan
        least = _plain(found.comparator_loss_at_least)
        changes.append({"changes": k, "comparator_loss_at_least": least, "share": _plain(share)})
    proved = [
        row["comparator_loss_at_least"] > row["loss"] for row in listed if row["comparator_loss_at_least"] is not None
    ]
    sizes = {"length": windows.length, "most": windows.most, "unmatched": sum(proved) if proved else None}
    return {"radius": radius, **sizes, "listed": listed, "changes": changes}


def windows_in_words(report: dict[str, Any] | None) -> list[str]:
    """A few lines: the worst window, the last one, how many no model matches, what models that change must lose."""
    if report is None or len(report["listed"]) < 3:
        return []
    long = [row for row in report["listed"] if 2 * row["examples"] >= report["length"]] or report["listed"]
    known = [row for row in long if row["risk"] is not None]
    if not known:
        return []
    last = report["listed"][-1] if report["listed"][-1] in long else long[-1]
    lines = ["", _line("worst window", max(known, key=lambda row: row["risk"]), report["radius"])]
    lines.append(_line("last window", last, report["radius"]))
    if report["unmatched"]:
        where = f"{report['unmatched']} of {len(report['listed'])} windows"
        lines.append(f"in {where} no linear model of norm ≤ {report['radius']:.4g} could have matched this learner")
    shares = [(row["changes"], row["share"]) for row in report["changes"] if row["share"] is not None]
    if any(share > 0.0 for _, share in shares):
        several = ", ".join(f"{math.floor(100.0 * share):,} % with {k}" for k, share in shares)
        models = f"a linear model of norm ≤ {report['radius']:.4g} that changes now and then"
        lines.append(f"{models} must lose at least this part of the loss above: {several} changes")
    return lines


def _line(name: str, row: dict[str, Any], radius: float | None) -> str:
    text = f"{name:<13}{row['risk']:.4g} on rounds {row['first']:,} to {row['last']:,}"
    others = [] if row["best_constant"] is None else [f"best constant {row['best_constant'] / row['weight']:.4g}"]
    if row["comparator_loss_at_least"] and radius is not None:
        least = row["comparator_loss_at_least"] / row["weight"]
        others.append(f"linear models of norm ≤ {radius:.4g} at least {math.floor(1e4 * least) / 1e4:.4g}")
    return text + (f" ({', '.join(others)})" if others else "")


def write_windows_csv(report: dict[str, Any] | None, path: str | None) -> None:
    """The windows as CSV, whole or not at all; an empty field is not known."""
    if path is None:
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in [] if report is None else report["listed"]:
        writer.writerow({name: "" if row[name] is None else row[name] for name in COLUMNS})
    write_file(path, text.getvalue().encode())


def _plain(value: Any) -> Any:
    """A number for JSON, which knows neither infinity nor NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
