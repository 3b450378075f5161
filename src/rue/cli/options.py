"""Options that several commands share, and what they make."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rue.errors import SettingsError
from rue.learners import Learner
from rue.losses import Loss
from rue.registry import make
from rue.streams.data import Data
from rue.streams.formats import formats

__all__ = [
    "Bad",
    "Bits",
    "Budget",
    "Category",
    "DataPaths",
    "DomainSpec",
    "Drop",
    "Format",
    "LearnerSpec",
    "LossSpec",
    "MaxLine",
    "NoIntercept",
    "Quiet",
    "Radius",
    "ReportPath",
    "Separator",
    "StepSpec",
    "Target",
    "Task",
    "WeightColumn",
    "learner_from",
    "open_data",
]

_DATA, _LEARNER = "Data", "Learner"

DataPaths = Annotated[
    list[str], typer.Argument(metavar="DATA...", help="Files or folders, one stream in this order; - is a pipe.")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help=f"{' or '.join(', '.join(formats()).rsplit(', ', 1))}, if no suffix tells.",
        rich_help_panel=_DATA,
    ),
]
Target = Annotated[
    str | None, typer.Option(help="The column to predict, by name or position (-1 is the last).", rich_help_panel=_DATA)
]
Task = Annotated[str, typer.Option(help="auto, classify, multiclass or regress.", rich_help_panel=_DATA)]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", help="The column with the examples' weights.", rich_help_panel=_DATA)
]
Drop = Annotated[str, typer.Option(help="Columns to leave out, separated by commas.", rich_help_panel=_DATA)]
Category = Annotated[
    str, typer.Option(help="Columns of numbers that are categories, separated by commas.", rich_help_panel=_DATA)
]
Separator = Annotated[
    str | None,
    typer.Option(help="What separates the columns of a CSV; seen by itself if not given.", rich_help_panel=_DATA),
]
Bits = Annotated[int, typer.Option(min=1, max=31, help="Words are hashed into 2^bits slots.", rich_help_panel=_DATA)]
MaxLine = Annotated[
    int,
    typer.Option(
        "--max-line", metavar="MIB", min=1, max=1024, help="A longer line of text is unusable.", rich_help_panel=_DATA
    ),
]
Bad = Annotated[str, typer.Option(help="An unusable example: stop there, or skip and count it.", rich_help_panel=_DATA)]
LearnerSpec = Annotated[
    str | None,
    typer.Option(
        "--learner", help="ogd, perceptron, svm:0.01, leader, adaptive, adagrad, mixture.", rich_help_panel=_LEARNER
    ),
]
LossSpec = Annotated[
    str | None,
    typer.Option("--loss", help="logistic, hinge, square, absolute, quantile:0.9, …", rich_help_panel=_LEARNER),
]
DomainSpec = Annotated[
    str | None,
    typer.Option("--domain", help="ball:10, box:-1,1, simplex, reals, …", rich_help_panel=_LEARNER),
]
StepSpec = Annotated[
    str | None,
    typer.Option("--step", help="theory, sqrt:0.5, fixed:0.1, strong:0.01, adaptive.", rich_help_panel=_LEARNER),
]
Budget = Annotated[
    int | None,
    typer.Option(
        metavar="BYTES",
        help="Bytes a feature may take in the default learner, the mixture: fewer bytes, fewer rates side by side.",
        rich_help_panel=_LEARNER,
    ),
]
NoIntercept = Annotated[
    bool, typer.Option("--no-intercept", help="Leave out the feature that is always 1.", rich_help_panel=_LEARNER)
]
Radius = Annotated[float | None, typer.Option(help="Certify against every linear model of this norm at most.")]
ReportPath = Annotated[str | None, typer.Option("--report", metavar="OUT.json", help="Write the report as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]


def learner_from(
    spec: str | None,
    loss: str | None,
    domain: str | None,
    step: str | None,
    intercept: bool,
    budget: int | None = None,
) -> tuple[Learner | None, str]:
    """The learner that options describe, None for the default one, and the task that an explicit loss decides."""
    given: dict[str, Any] = {"loss": loss, "domain": domain, "step": step}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    task = "auto"
    if loss is not None:
        made = make("loss", loss)
        task = made.task if isinstance(made, Loss) else "auto"
    if spec is None and not settings:
        return None, task
    if budget is not None:
        settings["budget"] = budget
    if spec is None:
        spec = "ogd" if domain or step else "mixture"
    try:
        return make("learner", spec, intercept=intercept, **settings), task
    except SettingsError as error:
        for name in settings:
            if f"argument '{name}'" in str(error):
                raise SettingsError(f"the learner {spec.split(':')[0]!r} takes no --{name}.") from None
        raise


def open_data(
    paths: list[str],
    told: str | None,
    target: str | None,
    weight: str | None,
    drop: str,
    category: str,
    separator: str | None,
    bits: int,
    max_line: int,
) -> Data:
    """The stream that options describe."""
    return Data(
        tuple(paths),
        format_name=told,
        target=target,
        weight=weight,
        drop=tuple(filter(None, drop.split(","))),
        category=tuple(filter(None, category.split(","))),
        separator=separator,
        bits=bits,
        max_line=max_line,
    )
