"""The report of a fleet: a dictionary for programs, a page for people, and a table with a row for each key."""

from __future__ import annotations

import dataclasses
import io
import math
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from rue import ledger as accounts
from rue.errors import DataError, SettingsError, shown
from rue.fleets import Fleet
from rue.fleets.table import columns_of, radius_of
from rue.outputs import write_file
from rue.regret.certificates.certificate import rounded_down
from rue.reports.report import pace
from rue.streams.labels import plain
from rue.version import __version__

__all__ = ["FleetReport", "describe_fleet", "fleet_page", "report_of_fleet", "require_table", "write_table"]

LISTED = 3
"""How many keys are listed as the worst, the best and the largest."""
ENOUGH = 30
"""Keys with fewer examples than this are neither the worst nor the best, unless all have fewer: it would be chance."""


@dataclasses.dataclass(frozen=True, repr=False)
class FleetReport:
    """The report of a fleet: printed, what `rue learn --by` prints.

    >>> import rue
    >>> print(rue.fleet([[1.0], [2.0]], [1, -1], by=["a", "b"], learner="ogd").report())  # doctest: +ELLIPSIS
    keys         2, a model for each
    ...
    """

    fields: dict[str, Any]
    """What `rue learn --by --report` writes as JSON."""

    def __repr__(self) -> str:
        return fleet_page(self.fields)


def report_of_fleet(
    fleet: Fleet, radius: float | None = None, total: float | None = None, compiling: float = 0.0
) -> FleetReport:
    """The report; `total` is how many seconds everything took, and `compiling` in how many kernels were compiled."""
    radius, sums = radius_of(fleet, radius), fleet.sums
    lost, mass, examples = (float(sums[:, i].sum()) for i in (accounts.LOSS, accounts.WEIGHT, accounts.EXAMPLES))
    classes = fleet.labels.task != "regress"
    mistakes = int(sums[:, accounts.MISTAKES].sum()) if classes else None
    labels, columns = fleet.labels, columns_of(fleet, radius)
    return FleetReport(
        {
            "rue": __version__,
            "keys": len(fleet),
            "by": fleet.by,
            "examples": int(examples),
            **fleet.counts,
            "loss_total": lost,
            "weight_total": mass,
            "risk": lost / mass if mass else None,
            "mistakes": mistakes,
            "error_rate": mistakes / examples if mistakes is not None and examples else None,
            **_by_key(columns),
            "certificates": _certificates(fleet, columns, radius, mass),
            "learner": repr(fleet.learner),
            "labels": {"-1": plain(labels.negative), "+1": plain(labels.positive)} if classes else None,
            "bytes_per_key": fleet.bytes_per_key,
            "notes": list(fleet.notes),
            "seconds": {
                "read": fleet.waiting,
                "learn": fleet.seconds,
                "total": fleet.waiting + fleet.seconds if total is None else total,
                "compile": compiling,
            },
        }
    )


def _by_key(columns: dict[str, Any]) -> dict[str, Any]:
    """How risk and examples are spread over the keys, and the keys with the most and the least of them."""
    each, risks = columns["examples"], columns["risk"]
    scored = np.flatnonzero(each > 0)
    # The risk of a key with few examples is mostly luck: such keys are listed only where there are no others.
    enough = np.flatnonzero(each >= ENOUGH) if (each >= ENOUGH).any() else scored
    order = enough[np.argsort(risks[enough], kind="stable")]
    largest = scored[np.argsort(-each[scored], kind="stable")]

    def listed(numbers: Any) -> list[dict[str, Any]]:
        return [{name: _number(column[number]) for name, column in columns.items()} for number in numbers[:LISTED]]

    spread = np.quantile(risks[scored], (0.0, 0.5, 1.0)).tolist() if scored.size else [None] * 3
    of_examples = np.quantile(each, (0.0, 0.5, 1.0), method="nearest").tolist() if each.size else [None] * 3
    return {
        "risk_by_key": dict(zip(("least", "median", "most"), map(_number, spread), strict=True)),
        "examples_by_key": dict(zip(("least", "median", "most"), of_examples, strict=True)),
        "worst": listed(order[::-1]),
        "best": listed(order),
        "largest": listed(largest),
    }


def _certificates(fleet: Fleet, columns: dict[str, Any], radius: float, mass: float) -> dict[str, Any]:
    """For how many keys something is proved, and the mean of it over all rows (D1, D2)."""
    scored = np.flatnonzero(columns["examples"] > 0)
    proved, weights = columns["risk_at_least"][scored], columns["weight"][scored]
    some = proved > 0.0 if fleet.learner.loss.nonnegative else np.isfinite(proved)
    total = float(np.nansum(np.where(np.isfinite(proved), proved, 0.0) * weights))
    return {
        "radius": radius,
        "keys": int(some.sum()),
        "risk_at_least": _number(total / mass) if mass else None,
        "theorem": "D2" if fleet.learner.algorithm.regulariser > 0.0 else "D1",
    }


def fleet_page(summary: dict[str, Any], stopped: str = "") -> str:
    """The report for people; `stopped` says why the run ended early, if it did."""
    left_out = [
        f"{summary[name]:,} {words}"
        for name, words in (
            ("keyless", "without a key"),
            ("skipped", "skipped"),
            ("refused", "refused"),
            ("unlabelled", "unlabelled"),
            ("missing", "values missing"),
        )
        if summary[name]
    ]
    most = summary["examples_by_key"]
    by = "" if summary["by"] is None else f" in the column {shown(summary['by'])}"
    lines = [stopped, ""] if stopped else []
    lines.append(_row("keys", f"{summary['keys']:,}{by}, a model for each"))
    lines.append(_row("examples", f"{summary['examples']:,}" + (f" ({', '.join(left_out)})" if left_out else "")))
    if not summary["examples"]:
        return "\n".join([*lines, "nothing was learnt."])
    lines.append(_row("", f"of a key {most['least']:,} to {most['most']:,}, the median {most['median']:,}"))
    lines.append(_row("learner", summary["learner"]))
    if summary["labels"]:
        lines.append(_row("classes", f"−1 is {summary['labels']['-1']!r}, +1 is {summary['labels']['+1']!r}"))
    lines += [_row("note", note) for note in summary["notes"]]
    each = summary["risk_by_key"]
    lines.append(_row("risk", f"{summary['risk']:.6g}, the mean loss before each update, over all keys"))
    lines.append(_row("", f"of a key {each['least']:.4g} to {each['most']:.4g}, the median {each['median']:.4g}"))
    if summary["mistakes"] is not None:
        lines.append(_row("mistakes", f"{summary['mistakes']:,}, or {summary['error_rate']:.2%}"))
    for name in ("worst", "best", "largest"):
        lines.append(_row(name, "; ".join(_in_brief(one) for one in summary[name])))
    proved = summary["certificates"]
    lines += ["", _proof(summary, proved)]
    lines += [
        "",
        _row("memory", f"{summary['bytes_per_key']:,.0f} bytes a key"),
        pace(summary["seconds"], summary["examples"]),
    ]
    return "\n".join(lines)


def _proof(summary: dict[str, Any], proved: dict[str, Any]) -> str:
    """What is proved, in words."""
    keys, radius = summary["keys"], proved["radius"]
    if not proved["keys"] or proved["risk_at_least"] is None:
        return f"For no key is anything proved about linear models of norm at most {radius:g}."
    words = (
        f"Proved ({proved['theorem']}): on the rows of its own key no linear model of norm at most {radius:g} loses "
        f"less than the certificate of that key says, which is more than nothing for {proved['keys']:,} of {keys:,} "
        f"keys. So models for every key that are chosen in hindsight have a mean loss of at least "
        f"{rounded_down(proved['risk_at_least'])}."
    )
    return textwrap.fill(words, 110)


def _in_brief(one: dict[str, Any]) -> str:
    risk = "no loss" if one["risk"] is None else f"{one['risk']:.4g}"
    return f"{one['key']} ({risk}, {one['examples']:,} example{'s' * (one['examples'] != 1)})"


def describe_fleet(fleet: Fleet) -> str:
    """What a fleet is, on a page."""
    page = fleet_page({**report_of_fleet(fleet).fields, "notes": []})
    past = [
        f"  {event.get('date', '')}  {event.get('examples', 0):,} examples of {event.get('data', '')}"
        for event in fleet.history
    ]
    lines = page.split("\n")[:-1]  # without the seconds
    return "\n".join([*lines, "", "history", *past])


def require_table(path: str | None) -> None:
    """Refuse at the start a name whose suffix tells no format."""
    if path is not None and Path(path).suffix.lower() not in (".parquet", ".csv"):
        raise SettingsError(f"--report-by writes .parquet or .csv, not {shown(path)}.")


def write_table(fleet: Fleet, path: str | None, radius: float | None = None) -> None:
    """The report of each key as Parquet or CSV, whole or not at all."""
    if path is None:
        return
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    table, out = fleet.table(radius), io.BytesIO()
    try:
        if Path(path).suffix.lower() == ".parquet":
            pyarrow.parquet.write_table(table, out)
        else:
            pyarrow.csv.write_csv(table, out)
    except pa.ArrowException as error:
        raise DataError(f"{path} cannot be written: {error}.") from error
    write_file(path, out.getvalue())


def _number(value: Any) -> Any:
    """A number for JSON, which knows neither infinity nor NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _row(name: str, text: str) -> str:
    return f"{name:12} {text}"
