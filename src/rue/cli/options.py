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
from rue.learners.lags import FARTHEST, lags_of
from rue.losses import Loss
from rue.outputs import require_distinct, require_writable
from rue.pictures.figures import require_picture
from rue.registry import make, registered, usages
from rue.runs.advice import READINGS, Advice, advice_in
from rue.runs.driver import Driver, default_name
from rue.streams.data import Data
from rue.streams.files.cutting import MAX_LINE
from rue.streams.formats import formats
from rue.streams.stream import date_order

__all__ = [
    "DataOptions",
    "DataPaths",
    "LearnerOptions",
    "Outside",
    "Quiet",
    "Radius",
    "ReportPath",
    "WindowsPath",
    "changed",
    "command",
    "listed",
    "require_outputs",
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


def require_outputs(outputs: dict[str, str | None]) -> None:
    """Refuse at the start what could not be written at the end; `outputs` maps options to paths, None if not given."""
    require_writable(*outputs.values())
    require_distinct(outputs)
    if (plot := outputs.get("--plot")) is not None:
        require_picture(plot)


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


BINS = 64
"""Into how many bins a column is put if no number is given."""


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
    word_pairs: Annotated[
        bool, _data("--word-pairs", help="Make features of two words in a row of a text, besides the words.")
    ] = False
    expert_column: Annotated[
        str, _data(help="Columns with predictions of other models, separated by commas; they are no features.")
    ] = ""
    cross: Annotated[
        list[str] | None,
        _data(metavar="A,B", help="Columns whose values together are a category; may be given several times."),
    ] = None
    bins: Annotated[
        list[str] | None,
        _data(
            metavar="COL:N,…",
            help="Put columns of numbers into N bins by rank, as more features: price:64; 64 if no number is given.",
        ),
    ] = None
    interact: Annotated[
        str,
        _data(
            metavar="AB,…",
            help="Multiply the features of namespaces of VW text, named by their first letters; : is any, :: are all.",
        ),
    ] = ""
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

    @property
    def experts(self) -> tuple[str, ...]:
        """The columns with predictions of other models."""
        return tuple(filter(None, self.expert_column.split(",")))

    @property
    def crosses(self) -> tuple[tuple[str, ...], ...]:
        """The columns whose values together are a category."""
        return tuple(tuple(filter(None, one.split(","))) for one in self.cross or ())

    @property
    def binned(self) -> tuple[tuple[str, int], ...]:
        """The columns to put into bins, and into how many."""
        found = []
        for part in filter(None, ",".join(self.bins or ()).split(",")):
            name, colon, count = part.rpartition(":")
            if colon and not count.isdecimal():
                raise SettingsError(
                    f"--bins takes columns and numbers of bins, such as price:64,age:16, not {shown(part)}."
                )
            found.append((name, int(count)) if colon else (part, BINS))
        return tuple(found)

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
            experts=self.experts,
            crosses=self.crosses,
            bins=self.binned,
            word_pairs=self.word_pairs,
            interact=tuple(filter(None, [self.interact])),
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
            help="Bytes a feature may take in the default learner: fewer bytes, fewer rates side by side.",
        ),
    ] = None
    linear: Annotated[
        bool, _learner("--linear", help="Learn over the features as they are, without bins, pairs and random trees.")
    ] = False
    maps: Annotated[
        bool, _learner("--maps", help="Learn over bins, pairs and random trees for more than two classes too.")
    ] = False
    lags: Annotated[
        str | None,
        _learner(
            metavar="K,K,…",
            help="Make features of the last labels: the k-th last, and above 1 the mean of about k; such as 1,2,24.",
        ),
    ] = None
    no_intercept: Annotated[bool, _learner("--no-intercept", help="Leave out the feature that is always 1.")] = False

    @property
    def intercept(self) -> bool:
        return not self.no_intercept

    def chosen_lags(self) -> tuple[int, ...] | None:
        """The lags as numbers; None if there are none."""
        if self.lags is None:
            return None
        try:
            return lags_of([int(part) for part in self.lags.split(",")])
        except (ValueError, SettingsError):
            raise SettingsError(
                f"--lags takes whole numbers from 1 to {FARTHEST:,}, such as 1,2,24, not {shown(self.lags)}."
            ) from None

    def make(self) -> tuple[Learner | None, str]:
        """The learner, None for the default one, and the task that an explicit loss decides, else `auto`."""
        given: dict[str, Any] = {"loss": self.loss, "domain": self.domain, "step": self.step}
        settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        task = "auto"
        if self.loss is not None:
            loss = make("loss", self.loss)
            task = loss.task if isinstance(loss, Loss) else "auto"
        for option, wanted in (("--linear", self.linear), ("--maps", self.maps)):
            if self.learner is not None and wanted:
                raise SettingsError(f"{option} is about the default learner: leave it out, or --learner.")
        if self.linear and self.maps:
            raise SettingsError("--linear and --maps are opposites: leave one out.")
        if self.learner is None and not settings:
            return None, task
        if self.budget is not None:
            settings["budget"] = self.budget
        spec = self.learner or default_name(settings, self.linear)
        try:
            return make("learner", spec, intercept=self.intercept, **settings), task
        except SettingsError as error:
            for name in settings:
                if f"argument '{name}'" in str(error):
                    raise SettingsError(f"the learner {spec.split(':')[0]!r} takes no --{name}.") from None
            raise

    def drive(self, data: DataOptions, keep: Callable[[Learner | None], dict[str, Any]] = lambda learner: {}) -> Driver:
        """A driver for such data; `keep` says what it is to keep for the certificate, as `Driver` takes it."""
        learner, task = self.make()
        return Driver(
            learner,
            task=task if task != "auto" else data.task,
            bad=data.bad,
            intercept=self.intercept,
            budget=self.budget,
            maps=None if self.linear else "auto" if self.maps else "default",
            lags=self.chosen_lags(),
            positive=data.positive,
            class_weight=data.class_weight,
            **keep(learner),
        )


@dataclasses.dataclass(frozen=True)
class Outside:
    """Other models, of which the predictions are known."""

    expert: Annotated[
        list[str] | None,
        typer.Option(
            "--expert",
            metavar="NAME=FILE",
            help="Mix with another model's predictions, each made before the row's label was known: a CSV with a "
            "column `prediction`, or one number a line, for each row of the data. May be given several times.",
        ),
    ] = None
    expert_as: Annotated[
        str | None,
        typer.Option(
            "--expert-as",
            metavar="probability|score",
            help="What experts' numbers are where classes are learnt; probability if not given.",
        ),
    ] = None

    @property
    def files(self) -> dict[str, str]:
        """The files by the names of experts."""
        files: dict[str, str] = {}
        for given in self.expert or ():
            name, _, path = given.partition("=")
            if not name or not path:
                raise SettingsError(f"--expert takes NAME=FILE, such as lightgbm=predictions.csv, not {shown(given)}.")
            if name in files:
                raise SettingsError(f"--expert {name} is there twice: each expert needs a name of its own.")
            files[name] = path
        return files

    def advice(self, own: tuple[str, ...] = (), calibrate: bool = False) -> Advice | None:
        """What the experts predict, those in columns of the data first; None if there are none."""
        if self.expert_as not in (None, *READINGS):
            raise SettingsError(f"--expert-as is {' or '.join(READINGS)}, not {shown(self.expert_as)}.")
        return advice_in(self.files, self.expert_as, own, calibrate)


Radius = Annotated[float | None, typer.Option(help="Certify against every linear model of this norm at most.")]
IntervalLevels = Annotated[
    str | None,
    typer.Option(
        "--interval",
        metavar="LEVEL",
        help="Prediction intervals that hold this share of the labels, such as 0.9, or several: 0.5,0.9; for classes "
        "sets of classes. What was promised and what was observed is in the report.",
    ),
]
IntervalSide = Annotated[str, typer.Option("--side", help="Intervals with both ends, or with one: upper or lower.")]
AlarmRounds = Annotated[
    float | None,
    typer.Option(
        "--alarm",
        metavar="ROUNDS",
        help="Say when the loss has risen; while it does not, at most once in so many rounds on average, such as 1e6.",
    ),
]


def levels_in(text: str | None) -> list[float] | None:
    """The levels that `--interval` names.

    >>> levels_in("0.5,0.9")
    [0.5, 0.9]
    """
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise SettingsError(f"--interval takes a share such as 0.9, or several: 0.5,0.9; not {shown(text)}.") from None


ReportPath = Annotated[str | None, typer.Option("--report", metavar="OUT.json", help="Write the report as JSON.")]
WindowsPath = Annotated[
    str | None,
    typer.Option("--windows", metavar="OUT.csv", help="Write loss and certificate of each of up to 32 windows."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
