"""What a served model is made of: learn's options as JSON, and the driver that they describe."""

from __future__ import annotations

from typing import Any

import msgspec

from rue.domains import Ball
from rue.errors import DataError, SettingsError
from rue.losses import Loss
from rue.registry import make
from rue.runs.driver import default_name
from rue.runs.watching import Watch
from rue.serve.driver import ServedDriver
from rue.serve.examples import DECLARED

__all__ = ["RADII", "Settings", "settings_of"]

RADII = (1.0, 10.0, 100.0)
"""Radii of the witnesses of a mixture's certificate, if no radius is given."""


class Settings(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """The options of `rue learn` that make sense for a stream of requests; all may be left out."""

    task: str = "auto"
    positive: str | float | bool | None = None
    class_weight: str | None = None
    learner: str | None = None
    loss: str | None = None
    domain: str | None = None
    step: str | None = None
    budget: int | None = None
    maps: bool = False
    """Asks for stages, for more than two classes too."""
    linear: bool = False
    """Asks for none."""
    stages: bool = False
    """Whether two classes and numbers are learnt in stages. It is written into the log when a model is created
    (`dated`): models of logs that are older than stages have no such word there, and stay linear."""
    lags: list[int] | None = None
    intercept: bool = True
    interval: list[float] | float | None = None
    side: str = "both"
    alarm: float | None = None
    radius: float | None = None
    bits: int = 20
    columns: dict[str, str] = {}
    """Columns by name and kind; all others are settled by the first examples."""
    category: list[str] = []
    text: list[str] = []
    drop: list[str] = []
    order: str = ""
    """How dates are written: day-first, month-first, or by ISO 8601."""

    def require(self) -> None:
        """Refuse what no model can be made of."""
        if self.task not in ("auto", "classify", "multiclass", "regress"):
            raise SettingsError(f"task is auto, classify, multiclass or regress, not {self.task!r}.")
        for name, kind in self.columns.items():
            if kind not in DECLARED:
                raise SettingsError(f"the column {name!r} is one of {', '.join(DECLARED)}, not {kind!r}.")
        if self.order not in ("", "day-first", "month-first"):
            raise SettingsError(f"order is day-first or month-first, not {self.order!r}.")
        if not 1 <= self.bits <= 24:
            raise SettingsError(f"bits is a whole number from 1 to 24 here, not {self.bits}.")
        for name, given in (("linear", self.linear), ("maps", self.maps)):
            if self.learner is not None and given:
                raise SettingsError(f"{name} is about the default learner: leave it out, or learner.")
        if self.linear and self.maps:
            raise SettingsError("linear and maps are opposites: leave one out.")
        if self.radius is not None:
            Ball(self.radius)
        self.driver()

    def driver(self) -> ServedDriver:
        """A driver that has learnt nothing."""
        learner, task = self._learner()
        quick = learner is None or learner.algorithm.proves_more
        witnesses: Any = RADII if self.radius is None else self.radius
        return ServedDriver(
            learner,
            task=task if task != "auto" else self.task,
            bad="skip",
            intercept=self.intercept,
            budget=self.budget,
            maps="auto" if self.maps else "default" if self.stages else None,
            lags=self.lags,
            positive=self.positive,
            class_weight=self.class_weight,
            watch=Watch(self.interval, self.side, self.alarm),
            **({"units": "largest", "witnesses": witnesses, "quick": True} if quick else {}),
        )

    def _learner(self) -> tuple[Any, str]:
        """The learner, None for the default one, and the task that an explicit loss decides."""
        given = {"loss": self.loss, "domain": self.domain, "step": self.step}
        settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        loss = None if self.loss is None else make("loss", self.loss)
        task = loss.task if isinstance(loss, Loss) else "auto"
        if self.learner is None and not settings:
            return None, task
        if self.budget is not None:
            settings["budget"] = self.budget
        spec = self.learner or default_name(settings, not (self.maps or self.stages))
        try:
            return make("learner", spec, intercept=self.intercept, **settings), task
        except SettingsError as error:
            for name in settings:
                if f"argument '{name}'" in str(error):
                    raise SettingsError(f"the learner {spec.split(':')[0]!r} takes no {name}.") from None
            raise

    def dated(self) -> Settings:
        """What a model that is created now is created with."""
        own = self.learner or self.linear or self.maps or self.domain or self.step
        return self if own else msgspec.structs.replace(self, stages=True)

    def to_json(self) -> dict[str, Any]:
        """Those that are not at their defaults."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def settings_of(content: Any) -> Settings:
    """Settings from what JSON has; refuses unknown ones and those that no model can be made of."""
    try:
        settings = msgspec.convert(content, Settings)
    except msgspec.ValidationError as error:
        listed = ", ".join(sorted(set(Settings.__struct_fields__) - {"stages"}))
        raise DataError(
            f"{str(error).replace('`', chr(39)).rstrip('.')}: of the options of rue learn a model here takes {listed}."
        ) from None
    settings.require()
    return settings
