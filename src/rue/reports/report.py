"""The report of a run: a dictionary for programs, whose fields are never renamed, and a page for people."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rue import ledger as accounts
from rue.audit import Audit
from rue.learners.ensemble import EnsembleStanding
from rue.learners.mixture.standing import Stages, Standing, stages, standing
from rue.outputs import write_file
from rue.regret.bounds.statement import Bound
from rue.regret.certificates.certificate import Certificate, rounded_down
from rue.reports.explaining import features_in_use, name_of
from rue.reports.scoring import baselines_in_words, evaluation_report, metrics_in_words, metrics_report
from rue.reports.watching import watched_in_words
from rue.reports.windows import windows_in_words, windows_report
from rue.runs.calibration import calibration_of, calibration_words
from rue.runs.certifying import certificate_of, mapped_certificate
from rue.runs.class_weights import BALANCED
from rue.runs.driver import NO_CERTIFICATE, Driver
from rue.runs.evaluation import Evaluation
from rue.streams.labels import plain
from rue.streams.tables.columns import Columns
from rue.version import __version__

if TYPE_CHECKING:
    from rue.runs.run import Run

__all__ = [
    "Report",
    "certificate_fields",
    "certificate_report",
    "certified",
    "list_kinds",
    "pace",
    "page",
    "report",
    "report_of_run",
    "write_report",
]


def certified(driver: Driver | Run, radius: float | None = None, thorough: bool = True) -> Certificate | None:
    """The certificate of a run as far as it has come; None before its first example, or for more than two classes.

    Without `thorough` only what takes no search, which may prove less.
    """
    if driver.evidence is None or not driver.examples or driver.learner.loss.task == "multiclass":
        return None
    left_out = driver.refused + driver.skipped
    return certificate_of(driver.learner, driver.evidence, left_out, radius, thorough=thorough)


@dataclasses.dataclass(frozen=True, repr=False)
class Report:
    """The report of a run: printed, what `rue learn` prints.

    >>> import rue
    >>> print(rue.learn([[0.0], [1.0]], [0, 1], learner=rue.Perceptron()).report())  # doctest: +ELLIPSIS
    examples     2
    ...
    """

    fields: dict[str, Any]
    """What `rue learn --report` writes as JSON."""

    def __repr__(self) -> str:
        return page(self.fields)


def report_of_run(run: Run, radius: float | None = None) -> Report:
    """The report of a run that has ended."""
    stored = run.features.get("columns")
    columns = None if stored is None else Columns.from_dict(stored)
    known: dict[str, Any] = {"columns": columns, "names": run.names, "holdout": run.holdout, "test": run.test}
    return Report(report(run, radius=radius, total=run.waiting + run.seconds, **known))


def report(
    driver: Driver | Run,
    *,
    radius: float | None = None,
    audit: Audit | None = None,
    total: float = 0.0,
    compiling: float = 0.0,
    holdout: Evaluation | None = None,
    test: Evaluation | None = None,
    columns: Columns | None = None,
    names: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    """The report of a run, ready for JSON; a number that does not exist, or is not finite, is None.

    `features` counts those with a weight other than 0; `total` is how many seconds everything took, and
    `compiling` how many of them kernels were compiled; `holdout` and
    `test` are of examples that were not learnt; `columns` are those of a table: the report says which of them are
    dates, and which are text; `names` are what features are called.
    """
    learner, evidence = driver.learner, driver.evidence
    known = learner is not None and evidence is not None
    called = names or {} if learner is None else learner.called(names or {})
    sums = evidence.ledger.sums if evidence is not None else np.zeros(5)
    loss, mass, examples = float(sums[accounts.LOSS]), float(sums[accounts.WEIGHT]), driver.examples
    classes = driver.labels is not None and driver.labels.task != "regress"
    mistakes = int(sums[accounts.MISTAKES]) if classes else None
    certificate = (audit.certificate if audit is not None else certified(driver, radius)) if known else None
    return {
        "rue": __version__,
        "examples": examples,
        "skipped": driver.skipped,
        "refused": driver.refused,
        "unlabelled": driver.unlabelled,
        "missing": driver.missing,
        "features": features_in_use(learner) if known else 0,
        "columns": None if columns is None else {"dates": list(columns.dates), "text": list(columns.texts)},
        "loss_total": loss,
        "risk": loss / mass if mass else None,
        "frozen_risk": _number(learner.frozen().risk) if known and driver.ensemble is None else None,
        "mistakes": mistakes,
        "error_rate": mistakes / examples if mistakes is not None and examples else None,
        "weight_total": mass,
        "metrics": metrics_report(driver.metrics, driver.labels),
        "holdout": evaluation_report(holdout),
        "test": evaluation_report(test),
        "best_constant": _number(driver.baselines.best_constant(learner.loss)) if known else None,
        "no_change": _number(driver.baselines.no_change(learner.loss)) if known else None,
        "lags": None if not known or learner.lags is None else list(learner.lags.back),
        "learner": repr(learner) if known else None,
        "loss": repr(learner.loss) if known else None,
        "domain": repr(learner.domain) if known else None,
        "step": learner.explain() if known else None,
        "labels": _classes(driver),
        "class_weight": _class_weight(driver),
        "notes": list(driver.notes),
        **driver.watch.report(lambda feature: name_of(feature, called)),
        "certificate": None if certificate is None else certificate_fields(certificate),
        "certificates": _at_witnesses(driver),
        "windows": windows_report(driver, radius) if known else None,
        "calibration": _calibration(driver, names) if known else None,
        "mixture": _mixture(standing(learner)) if known else None,
        "stages": _stages(stages(learner), mass) if known else None,
        "mapped_certificate": _mapped(driver, radius) if known else None,
        "experts": None if driver.ensemble is None else _experts(driver.ensemble.standing()),
        "no_certificate": NO_CERTIFICATE if known and learner.loss.task == "multiclass" else None,
        "bound": None if audit is None or audit.bound is None else _bound(audit.bound),
        "audit": None if audit is None else _audit(audit),
        "seconds": {"read": driver.waiting, "learn": driver.seconds, "total": total, "compile": compiling},
    }


def _audit(audit: Audit) -> dict[str, Any]:
    """The regret as an interval, and every inequality that was looked at."""
    return {
        "comparator_loss": list(map(_number, audit.comparator_loss)),
        "regret": list(map(_number, audit.regret)),
        "passed": bool(audit.passed),
        "checks": [
            {
                "name": check.name,
                "left": _number(check.left),
                "right": _number(check.right),
                "holds": bool(check.holds),
            }
            for check in audit.checks
        ],
    }


def _calibration(driver: Driver | Run, names: Mapping[int, str] | None) -> dict[str, Any] | None:
    """What was predicted on average and what came; the ten groups with the largest gaps (E3)."""
    assert driver.evidence is not None
    found = calibration_of(driver.learner, driver.evidence, driver.metrics, names)
    if found is None or not math.isfinite(found.says):
        return None
    listed = dataclasses.asdict(dataclasses.replace(found, groups=found.groups[:10]))
    return {**listed, "gap": found.gap, "error": found.error, "words": str(found)}


def _at_witnesses(driver: Driver | Run) -> list[dict[str, Any]] | None:
    """The certificates at the witnesses' own radii; None where there are no witnesses."""
    if driver.evidence is None or driver.evidence.pool is None or not driver.examples:
        return None
    certificates = (certified(driver, float(radius)) for radius in np.unique(driver.evidence.pool.radii))
    return [certificate_fields(certificate) for certificate in certificates if certificate is not None]


def _mixture(mixture: Standing | None) -> dict[str, Any] | None:
    """The members of a mixture and the price of mixing (docs/theory.md, B12 and B15)."""
    if mixture is None:
        return None
    members = [{**dataclasses.asdict(member), "loss": _number(member.loss)} for member in mixture.members]
    return {
        "members": members,
        "best": members[mixture.members.index(mixture.best)],
        "loss": _number(mixture.loss),
        "price": _number(mixture.price),
        "price_at_most": _number(mixture.price_at_most),
        "bytes_per_feature": mixture.bytes_per_feature,
        "theorem": mixture.theorem,
        "words": str(mixture),
    }


def _mapped(driver: Driver | Run, radius: float | None) -> dict[str, Any] | None:
    """The certificate over the features of maps too; None where there are no maps, or what they saw is not known."""
    learner, evidence = driver.learner, driver.evidence
    assert evidence is not None
    known = (
        bool(driver.examples) and driver.ensemble is None and learner.t == int(evidence.ledger.sums[accounts.EXAMPLES])
    )
    if not known or stages(learner) is None or learner.loss.task == "multiclass":
        return None
    return certificate_fields(mapped_certificate(learner, evidence, driver.refused + driver.skipped, radius))


def _stages(found: Stages | None, mass: float) -> dict[str, Any] | None:
    """The stages of the default learner, and what they have gained over the linear one (docs/theory.md, M1)."""
    if found is None:
        return None
    members = [{**dataclasses.asdict(member), "loss": _number(member.loss)} for member in found.members]
    return {
        "stages": members,
        "gain": _number(found.gain),
        "price_at_most": _number(found.price_at_most),
        "theorem": "M1",
        "words": str(found),
        "lines": found.lines(mass) if mass else [],
    }


def _experts(found: EnsembleStanding) -> dict[str, Any]:
    """The learner alone, the outside experts and the mixture over all, and the price of mixing them (M1)."""
    members = [{**dataclasses.asdict(member), "loss": _number(member.loss)} for member in found.members]
    return {
        "members": members,
        "best": members[found.members.index(found.best)],
        "loss": _number(found.loss),
        "price": _number(found.price),
        "price_at_most": _number(found.price_at_most),
        "theorem": "M1",
        "words": str(found),
    }


def certificate_report(certificate: Certificate, examples: int, skipped: int, mass: float, loss: str) -> dict[str, Any]:
    """The report of a model that was only certified."""
    return {
        "rue": __version__,
        "examples": examples,
        "skipped": skipped,
        "loss_total": certificate.loss_total,
        "risk": certificate.loss_total / mass if mass else None,
        "loss": loss,
        "certificate": certificate_fields(certificate),
    }


def _number(value: float) -> float | None:
    """A number for JSON, which knows neither infinity nor NaN."""
    return float(value) if math.isfinite(value) else None


def _classes(driver: Driver | Run) -> dict[str, Any] | None:
    """By the number that stands for it, what each class is called in the data."""
    labels = driver.labels
    if labels is None or labels.task == "regress":
        return None
    if labels.task == "multiclass":
        return {str(1 + i): name for i, name in enumerate(labels.classes)}
    return {"-1": plain(labels.negative), "+1": plain(labels.positive)}


def _class_weight(driver: Driver | Run) -> dict[str, Any] | None:
    """The rule of class weights, and what an example of each class weighs in the end."""
    weights = driver.class_weights
    if weights is None or driver.labels is None:
        return None
    return {"rule": weights.rule, "now": weights.now(driver.labels)}


def certificate_fields(certificate: Certificate) -> dict[str, Any]:
    """A certificate as the report has it."""
    return {
        "radius": certificate.radius,
        "domain": repr(certificate.domain),
        "regret_at_most": _number(certificate.regret_at_most),
        "alone": _number(certificate.alone),
        "comparator_loss_at_least": _number(certificate.comparator_loss_at_least),
        "slope_times_prediction": _number(certificate.slope_times_prediction),
        "slope_norm": _number(certificate.slope_norm),
        "units": certificate.units,
        "witnesses": certificate.witnesses,
        "theorem": certificate.theorem,
        "within": None if certificate.within is None else _number(certificate.within),
        "words": certificate.words,
        "sentence": str(certificate),
    }


def _bound(bound: Bound) -> dict[str, Any]:
    return {
        "theorem": bound.theorem,
        "form": bound.form,
        "value": _number(bound.value),
        "holds": None if bound.holds is None else bool(bound.holds),
        "assumptions": [
            {
                "name": assumption.name,
                "assumed": _plain(assumption.assumed),
                "observed": _plain(assumption.observed),
                "met": bool(assumption.met),
            }
            for assumption in bound.assumptions
        ],
        "words": bound.words,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, str | bool | int):
        return value
    return _number(float(value))


def write_report(summary: dict[str, Any], path: str | None) -> None:
    """The JSON, whole or not at all; half a surrogate pair, which UTF-8 cannot encode, becomes its JSON escape."""
    if path is not None:
        text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
        write_file(path, text.encode("utf-8", "backslashreplace"))


def _mean(total: float | None, scale: float) -> str:
    """A baseline's mean loss; one that is not finite was left out of the report."""
    if total is None:
        return "infinite"
    mean = total * scale
    return f"{mean if abs(mean) > 1e-15 else 0.0:.6g}"  # with one class alone the least loss, 0, is never reached


def page(summary: dict[str, Any], stopped: str = "", width: int = 110) -> str:
    """The report for people: a few lines, wrapped to a width; `stopped` says why the run ended early, if it did."""
    lines = []
    if stopped:
        lines += [stopped, ""]
    left_out = [f"{summary[key]:,} {key}" for key in ("skipped", "refused", "unlabelled") if summary[key]]
    left_out += [f"{summary['missing']:,} values missing"] if summary["missing"] else []
    lines.append(_row("examples", f"{summary['examples']:,}" + (f" ({', '.join(left_out)})" if left_out else "")))
    if not summary["examples"]:
        return "\n".join([*lines, "nothing was learnt."])
    scale = summary["risk"] / summary["loss_total"] if summary["loss_total"] else 1.0 / summary["examples"]
    lines += [*_about(summary), *_scores(summary, scale), *_evaluated(summary, width), *_proofs(summary, scale, width)]
    if "cluster" in summary:
        lines += ["", _row("shards", summary["cluster"]["words"])]
    return "\n".join([*lines, "", pace(summary["seconds"], summary["examples"])])


def pace(seconds: dict[str, float], examples: int) -> str:
    """How long a run took; kernels are compiled once for a machine, so that time is left out of its speed."""
    compiling = seconds.get("compile", 0.0)
    rest = seconds["total"] - compiling
    rate = f"{examples / rest if rest > 0.0 else 0.0:,.0f} examples a second"
    if compiling >= 1.0:
        took = f"{seconds['total']:.2f} s in all, {compiling:.2f} s of it compiling, once for this machine"
        return f"{took}; without that {rate}"
    return f"{seconds['total']:.2f} s in all, {seconds['learn']:.2f} s of it learning, {rate}"


def _about(summary: dict[str, Any]) -> list[str]:
    """The lines about the model and its data."""
    lines = [_row("features", f"{summary['features']:,} with a weight")]
    if any((summary["columns"] or {}).values()):
        lines.append(_row("columns", list_kinds(summary["columns"])))
    lines.append(_row("learner", summary["learner"]))
    if summary["labels"]:
        lines.append(_row("classes", _list_classes(summary["labels"])))
    if summary["class_weight"]:
        lines.append(_row("weighted", _list_class_weights(summary["class_weight"])))
    return [*lines, *(_row("note", note) for note in summary["notes"])]


def _scores(summary: dict[str, Any], scale: float) -> list[str]:
    """The lines about how well it went, each example scored before it was learnt; `scale` makes a mean of a sum."""
    constant, again = (_mean(summary[key], scale) for key in ("best_constant", "no_change"))
    baselines = f"best constant {constant}, saying the last label again {again}"
    lines = [_row("risk", f"{summary['risk']:.6g}, the mean loss before each update ({baselines})")]
    if _behind_the_last_label(summary):
        lines.append(
            _row("", "saying the last label again lost less: --lags 1 (in Python lags=1) makes a feature of it")
        )
    if summary["frozen_risk"] is not None:
        lines.append(_row("", _if_frozen(summary)))
    if summary["mistakes"] is not None:
        once = " of the examples, each counted once whatever its weight" * (
            summary["weight_total"] != summary["examples"]
        )
        lines.append(_row("mistakes", f"{summary['mistakes']:,}, or {summary['error_rate']:.2%}{once}"))
    return lines + [_row(*row) for row in _metrics(summary)]


def _proofs(summary: dict[str, Any], scale: float, width: int) -> list[str]:
    """The lines about intervals, alarms, calibration, members, certificates, bounds and checks."""
    lines = [_row(*row) for row in watched_in_words(summary)]
    if summary["calibration"]:
        lines.append(_row("calibrated", calibration_words(summary["calibration"])))
    if summary["experts"]:
        lost, price = summary["experts"]["words"].split("\n")
        name = "experts" if len(summary["experts"]["members"]) > 2 else "corrected"
        lines += [_wrapped_row(name, lost, width), _row("", price)]
    if summary["stages"]:
        running, gain = summary["stages"]["words"].split("\n")
        lines += [_row("stages", running), _row("", gain), *(_row("", stage) for stage in summary["stages"]["lines"])]
    if summary["mixture"]:
        members, price = summary["mixture"]["words"].split("\n")
        lines += [_row("members", members), _row("", price)]
    if summary["no_certificate"]:
        lines += ["", f"{summary['no_certificate']}."]
    if summary["certificate"]:
        lines += ["", _wrap(f"{summary['certificate']['words']}.", width)]
        lines += [_briefly(certificate, scale) for certificate in summary["certificates"] or []]
    if summary["mapped_certificate"]:
        lines += ["", _wrap(f"{summary['mapped_certificate']['words']}.", width)]
    lines += [_wrap(line, width) for line in windows_in_words(summary["windows"])]
    if summary["audit"]:
        low, high = summary["audit"]["regret"]
        shown = " and ".join("unbounded" if end is None else f"{end:+,.6g}" for end in (low, high))
        lines += ["", f"regret       between {shown}"]
    if summary["bound"]:
        lines.append(_wrap(f"{summary['bound']['theorem']}: {summary['bound']['words']}", width))
    if summary["audit"]:
        lines += [f"{'PASS' if check['holds'] else 'FAIL'}  {check['name']}" for check in summary["audit"]["checks"]]
    return lines


def _behind_the_last_label(summary: dict[str, Any]) -> bool:
    """Whether the last label alone did better than a learner that does not see it, of two classes or of numbers."""
    again, blind = summary["no_change"], summary["lags"] is None and summary["experts"] is None
    return blind and again is not None and again < summary["loss_total"] and len(summary["labels"] or {}) <= 2


def _if_frozen(summary: dict[str, Any]) -> str:
    """What the model that stays is expected to lose."""
    return f"about {summary['frozen_risk']:.4g} if it is frozen now and left alone for as long again (tried on the way)"


def _metrics(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The lines about metrics; they are younger than the run where a model of an older version was resumed."""
    rows = metrics_in_words(summary["metrics"])
    if rows and summary["metrics"]["examples"] < summary["examples"]:
        heading, words = rows[0]
        rows[0] = heading, f"{words}; of the last {summary['metrics']['examples']:,} examples"
    return rows


def _evaluated(summary: dict[str, Any], width: int) -> list[str]:
    """The lines about examples that were not learnt."""
    lines = []
    for name, of in (("holdout", "the last {:,} rows, which were not learnt"), ("test", "the {:,} rows of the test")):
        found = summary[name]
        if found is None:
            continue
        if not found["examples"]:
            lines.append(_row(name, "there is no row with a label"))
            continue
        rows = of.format(found["examples"])
        lines.append(_row(name, f"{found['risk']:.6g}, the mean loss of the finished model on {rows}"))
        lines.append(_row("", f"({baselines_in_words(found)})"))
        lines += [_row("", text) for heading, text in metrics_in_words(found["metrics"]) if heading != "confusion"]
        lines += [_wrap(f"warning: {found['warning']}", width)] if found["warning"] else []
    return lines


def _briefly(certificate: dict[str, Any], scale: float) -> str:
    """One line about the certificate at a witness's radius; `scale` makes a mean of a sum."""
    least, name = certificate["comparator_loss_at_least"], f"norm ≤ {certificate['radius']:,.7g}"
    if least is None or certificate["within"] is None:
        return _row(name, "nothing is proved")
    return _row(name, f"no mean loss below {rounded_down(least * scale)}")


def _list_classes(labels: dict[str, Any]) -> str:
    """The classes on one line, the first eight if there are many."""
    if "-1" in labels:
        return f"−1 is {labels['-1']!r}, +1 is {labels['+1']!r}"
    few = list(map(repr, labels.values()))[:8]
    return f"{len(labels):,}: {', '.join(few)}{', …' * (len(labels) > len(few))}"


def _list_class_weights(weights: dict[str, Any]) -> str:
    """What examples weigh by class, on one line, the first eight if there are many."""
    now = [f"{name!r} {weight:.4g}" for name, weight in weights["now"].items()]
    rule = "balanced by the counts so far; at the end" if weights["rule"] == BALANCED else "as given"
    return f"by class, {rule}: {', '.join(now[:8])}{', …' * (len(now) > 8)}; risk and baselines are weighted"


def list_kinds(columns: Mapping[str, Sequence[str]], most: int = 10) -> str:
    """Which columns are of which kind, in words.

    >>> list_kinds({"dates": ["day"], "text": ["title", "review"]})
    'dates: day; text: title, review'
    """
    kinds = []
    for kind, names in columns.items():
        shown = [name if name.isprintable() else repr(name) for name in names[:most]]
        more = f" and {len(names) - most} more" if len(names) > most else ""
        kinds += [f"{kind}: {', '.join(shown)}{more}"] if names else []
    return "; ".join(kinds)


def _row(name: str, text: str) -> str:
    return f"{name:12} {text}"


def _wrapped_row(name: str, text: str, width: int) -> str:
    """A row whose text goes on below itself."""
    return _wrap(_row(name, text), width).replace("\n", "\n" + _row("", ""))


def _wrap(text: str, width: int) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, max(20, min(110, width))))
