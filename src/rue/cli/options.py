"""Options that several commands share: each group is one dataclass, which a command takes as one parameter.

Typer reads a command's options from the parameters of its function. `command` lets a parameter stand for a whole
group: it replaces it by the group's fields, in their place, and hands the function the filled-in object.

    @command
    def audit(paths: o.DataPaths, data: o.DataOptions, learner: o.LearnerOptions, quiet: o.Quiet = False) -> int:
        stream = data.open(paths)

A command that has some of the options, or lists them in another order, names them:
`data: Annotated[o.DataOptions, "format separator max_line bad"]`; the others are not offered by that command, and the
object has their defaults.

To add an option about data, change these places: the field of `DataOptions` and its use in `open`; the names listed in
commands that list them (`learn`, `certify`, `predict`); `Data` (rue.streams.data); `ReadOptions` (rue.streams.stream),
which offers it in Python. If it may differ from the data that a model was learnt from: `open_like` and `Data.like`, and
`FREE` in rue.cli.commands.learn.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from rue.cli.app import app
from rue.errors import SettingsError, shown
from rue.learners import Learner
from rue.losses import Loss
from rue.registry import make, registered, usages
from rue.streams.data import Data
from rue.streams.files.cutting import MAX_LINE
from rue.streams.formats import formats
from rue.streams.stream import date_order

__all__ = [
    "DataOptions",
    "DataPaths",
    "LearnerOptions",
    "Quiet",
    "Radius",
    "ReportPath",
    "changed",
    "command",
    "listed",
]


def command(function: Callable[..., int] | None = None, *, epilog: str | None = None) -> Callable[..., Any]:
    """Enter a function as a command of `rue`, with the groups among its parameters spelled out as options."""
    if function is None:
        return functools.partial(command, epilog=epilog)
    hints = get_type_hints(function, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        group, chosen = getattr(hint, "__origin__", hint), getattr(hint, "__metadata__", ())
        if not dataclasses.is_dataclass(group):
            parameters.append(parameter.replace(annotation=hint))
            continue
        fields = {field.name: field for field in dataclasses.fields(group)}
        names = chosen[0].split() if chosen else list(fields)
        groups[parameter.name] = group, names
        own = get_type_hints(group, include_extras=True)
        for name in names:
            options = {"annotation": own[name], "default": fields[name].default}
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, **options))

    @functools.wraps(function)
    def call(**given: Any) -> int:
        for parameter, (group, names) in groups.items():
            given[parameter] = group(**{name: given.pop(name) for name in names})
        return function(**given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([parameter.replace(kind=keyword) for parameter in parameters])
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app.command(epilog=epilog)(call)
    return call


def changed(options: Any) -> dict[str, Any]:
    """The options of a group that are not at their defaults: `--name`, value."""
    values = ((field, getattr(options, field.name)) for field in dataclasses.fields(options))
    return {f"--{field.name.replace('_', '-')}": value for field, value in values if value != field.default}


def _option(*names: str, panel: str | None = None, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **settings)


_data = functools.partial(_option, panel="Data")
_learner = functools.partial(_option, panel="Learner")


def listed(kind: str, example: str) -> str:
    """All that is registered of a kind, as one types it, for a help text."""
    typed = zip(usages(kind), registered(kind).values(), strict=True)
    return f"{', '.join(usage for usage, entry in typed if getattr(entry, 'convex', True))}; for example {example}."


_FORMATS = " or ".join(", ".join(formats()).rsplit(", ", 1))

DataPaths = Annotated[
    list[str], typer.Argument(metavar="DATA...", help="Files or folders, one stream in this order; - is a pipe.")
]


@dataclasses.dataclass(frozen=True)
class DataOptions:
    """How the data are read, what they are for, and what an unusable example does."""

    target: Annotated[str | None, _data(help="The column to predict, by name or position (-1 is the last).")] = None
    task: Annotated[str, _data(help="auto, classify, multiclass or regress.")] = "auto"
    positive: Annotated[
        str | None,
        _data(metavar="CLASS", help="Which of two classes is +1; else the last in sorted order, or yes, true, 1."),
    ] = None
    class_weight: Annotated[
        str | None,
        _data(metavar="WEIGHTS", help="yes=5,no=1, or balanced: by the counts of the classes so far."),
    ] = None
    format: Annotated[str | None, _data(help=f"{_FORMATS}, if no suffix tells.")] = None
    bits: Annotated[int | None, _data(min=1, max=31, help="Words are hashed into 2^bits slots; 20 if not given.")] = (
        None
    )
    weight: Annotated[str | None, _data(help="The column with the examples' weights.")] = None
    drop: Annotated[str, _data(help="Columns to leave out, separated by commas.")] = ""
    category: Annotated[str, _data(help="Columns whose values are categories, separated by commas.")] = ""
    text: Annotated[str, _data(help="Columns of text that become words, separated by commas.")] = ""
    id: Annotated[
        str | None, _data(help="A column that tells rows apart: no feature, carried along to the predictions.")
    ] = None
    separator: Annotated[
        str | None, _data(help="What separates the columns of a CSV; detected automatically if not given.")
    ] = None
    decimal: Annotated[str, _data(metavar=".|,", help="What numbers have before their fraction.")] = "."
    day_first: Annotated[bool, _data("--day-first", help="Dates are written as 31.12.2026.")] = False
    month_first: Annotated[bool, _data("--month-first", help="Dates are written as 12/31/2026.")] = False
    max_line: Annotated[
        int, _data("--max-line", metavar="MIB", min=1, max=1024, help="A longer line of text is unusable.")
    ] = MAX_LINE
    bad: Annotated[str, _data(help="An unusable example: stop there, or skip and count it.")] = "stop"

    def require_task(self) -> None:
        """Refuse a task that is none."""
        if self.task not in ("auto", "classify", "multiclass", "regress"):
            raise SettingsError(f"--task is auto, classify, multiclass or regress, not {shown(self.task)}.")

    def open(self, paths: list[str]) -> Data:
        """The stream that the options describe."""
        return Data(
            tuple(paths),
            self.format,
            target=self.target,
            weight=self.weight,
            drop=tuple(filter(None, self.drop.split(","))),
            category=tuple(filter(None, self.category.split(","))),
            text=tuple(filter(None, self.text.split(","))),
            id=self.id,
            separator=self.separator,
            decimal=self.decimal,
            order=date_order(self.day_first, self.month_first),
            bits=20 if self.bits is None else self.bits,
            max_line=self.max_line,
        )

    def open_like(self, features: dict[str, Any], paths: list[str], names: dict[int, str] | None = None) -> Data:
        """Other data read in the way that a model was learnt, which decides all but these four options."""
        return Data.like(features, tuple(paths), self.format, self.separator, names, self.max_line, self.id)


@dataclasses.dataclass(frozen=True)
class LearnerOptions:
    """Which learner; the default one if nothing is given."""

    learner: Annotated[str | None, _learner(help=listed("learner", "svm:0.01"))] = None
    loss: Annotated[str | None, _learner(help=listed("loss", "quantile:0.9"))] = None
    domain: Annotated[str | None, _learner(help=listed("domain", "ball:10"))] = None
    step: Annotated[str | None, _learner(help=listed("step", "sqrt:0.5"))] = None
    budget: Annotated[
        int | None,
        _learner(
            metavar="BYTES",
            help="Bytes a feature may take in the default learner, the mixture: fewer bytes, fewer rates side by side.",
        ),
    ] = None
    no_intercept: Annotated[bool, _learner("--no-intercept", help="Leave out the feature that is always 1.")] = False

    @property
    def intercept(self) -> bool:
        return not self.no_intercept

    def make(self) -> tuple[Learner | None, str]:
        """The learner, None for the default one, and the task that an explicit loss decides, else `auto`."""
        given: dict[str, Any] = {"loss": self.loss, "domain": self.domain, "step": self.step}
        settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        task = "auto"
        if self.loss is not None:
            loss = make("loss", self.loss)
            task = loss.task if isinstance(loss, Loss) else "auto"
        if self.learner is None and not settings:
            return None, task
        if self.budget is not None:
            settings["budget"] = self.budget
        spec = self.learner or ("ogd" if self.domain or self.step else "mixture")
        try:
            return make("learner", spec, intercept=self.intercept, **settings), task
        except SettingsError as error:
            for name in settings:
                if f"argument '{name}'" in str(error):
                    raise SettingsError(f"the learner {spec.split(':')[0]!r} takes no --{name}.") from None
            raise


Radius = Annotated[float | None, typer.Option(help="Certify against every linear model of this norm at most.")]
ReportPath = Annotated[str | None, typer.Option("--report", metavar="OUT.json", help="Write the report as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
