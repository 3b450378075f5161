"""Who plays a game: one of rue's learners, or a learner of one's own, behind the same few methods.

A learner of one's own is an object with `predict(x)` and `update(x, y)`, or with `point` and `update(part)`, or a plain
function of the past. One that knows neither T nor G and halves its step whenever it has paid:

>>> import numpy as np
>>> from rue.games import play
>>> class Halving:
...     def begin(self, setting):  # optional: told the domain, d, the loss, the number of rounds, and lots to draw
...         self.domain, self.point, self.eta = setting.domain, np.zeros(setting.d), 1.0
...     def update(self, part):  # the round, after the point was played
...         self.eta *= 0.5 if part.value(self.point) > 0.0 else 1.0
...         self.point = self.domain.project(self.point - self.eta * part.subgradient(self.point))
>>> play(Halving(), "orthogonal:2", 100, domain="ball:1").holds
True

The leader for linear losses, as a function of the past:

>>> def leader(past):
...     S = sum((part.g for part in past), np.zeros(2))
...     return -S / max(np.linalg.norm(S), 1e-300)
>>> play(leader, "orthogonal:2", 100, domain="ball:1").holds
True
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rue.domains import Domain, Reals
from rue.errors import DataError, SettingsError, shown
from rue.games.curved import Curvatures
from rue.games.opponents import ConvexRound, LinearRound, Opponent, Setting
from rue.learners import Learner
from rue.losses import Hinge, Linear, Loss
from rue.registry import make

__all__ = ["Guest", "Native", "Player", "player_of"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ExampleLoss:
    """The round of an example as a function of the point, ℓ(⟨w, x⟩, y), for a learner that plays points."""

    loss: Loss
    x: Any
    y: float

    def value(self, w: Any) -> float:
        return float(self.loss.value(float(np.dot(self.x, w)), self.y))

    def subgradient(self, w: Any) -> Any:
        return self.loss.slope(float(np.dot(self.x, w)), self.y) * self.x


class Player:
    """What `play` asks of either kind of learner."""

    name: str
    """What it is called in sentences."""
    learner: Any
    """The learner itself, a copy of the one given."""
    domain: Domain
    d: int
    loss: Any
    """The loss of the examples; the linear loss where rounds are functions of the point."""
    leads = False
    """Whether it is the leader, who plays rounds with a closed form only."""

    def begin(self, setting: Setting) -> None:
        """Prepare for the first round."""

    def point(self, t: int) -> Any:
        """w_t; NaN for a learner that predicts without one."""
        raise NotImplementedError

    def predict(self, x: Any) -> float:
        """Its prediction for x in this round, the same whenever it is asked."""
        raise NotImplementedError

    def learn_example(self, x: Any, y: float) -> None:
        """End the round with an example."""
        raise NotImplementedError

    def learn_round(self, part: Any, g: Any) -> None:
        """End the round with a function of the point, whose subgradient at the point played is g."""
        raise NotImplementedError


class Native(Player):
    """One of rue's learners: a subgradient g at w_t is the example x = g, y = 1 under the linear loss."""

    def __init__(self, learner: Learner) -> None:
        self.learner, self.name = learner, str(learner.algorithm.name)
        self.domain, self.d, self.loss = learner.domain, learner.d, learner.loss
        self.leads = learner.algorithm.family == "leader"
        self.curvatures = Curvatures(getattr(learner.algorithm, "step", None))
        self.predict = learner.predict  # type: ignore[method-assign]  # asked several times a round

    def point(self, t: int) -> Any:
        return self.learner.point

    def learn_example(self, x: Any, y: float) -> None:
        self.learner.update(x, y)

    def learn_round(self, part: Any, g: Any) -> None:
        self.learner.update(self.curvatures.factor(part) * g, 1.0)


class Guest(Player):
    """A learner of one's own. In a round the first answer stands, so that the coins of a randomised one fall once."""

    def __init__(self, learner: Any, name: str, domain: Domain, d: int, loss: Any) -> None:
        self.learner, self.name, self.domain, self.d, self.loss = learner, name, domain, d, loss
        self.t, self.w = 0, np.full(d, math.nan)
        self.answers: dict[bytes, float] = {}

    def point(self, t: int) -> Any:
        self.t, self.answers = t, {}
        self.w = self.play_point()
        return self.w.copy()

    def predict(self, x: Any) -> float:
        key = np.asarray(x, dtype=np.float64).tobytes()
        if key not in self.answers:
            self.answers[key] = self.answer(np.array(x, dtype=np.float64))
        return self.answers[key]

    def play_point(self) -> Any:
        """w_t, as this kind of guest plays it."""
        return np.full(self.d, math.nan)

    def answer(self, x: Any) -> float:
        """The prediction for x: ⟨w_t, x⟩ for a learner that plays points."""
        return float(np.dot(x, self.w))

    def require_point(self, w: Any) -> Any:
        """The point a learner gives as an array, refused unless it is one of d finite numbers, in the domain."""
        try:
            array = np.atleast_1d(np.array(w, dtype=np.float64))
        except (TypeError, ValueError):
            array = np.empty(0)
        if array.shape != (self.d,) or not np.isfinite(array).all():
            raise DataError(
                f"round {self.t}: the point of {self.name} must be {self.d} finite numbers, not {shown(w)}."
            )
        if not self.domain.contains(array):
            raise DataError(
                f"round {self.t}: {self.name} plays {shown(array.tolist())}, which is not in {self.domain!r}: project "
                "the point, or play with another domain=."
            )
        return array

    def require_number(self, p: Any) -> float:
        """The prediction a learner gives as a number, refused if it is not finite."""
        try:
            number = float(p) if np.ndim(p) == 0 else math.nan
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise DataError(f"round {self.t}: the prediction of {self.name} must be a finite number, not {shown(p)}.")
        return number


class _Predictor(Guest):
    """An object with predict(x) and update(x, y)."""

    def begin(self, setting: Setting) -> None:
        _begin(self.learner, setting)

    def answer(self, x: Any) -> float:
        return self.require_number(self.learner.predict(x))

    def learn_example(self, x: Any, y: float) -> None:
        self.learner.update(x.copy(), y)


class _Pointer(Guest):
    """An object with a point, an attribute or a method, and update(part)."""

    def begin(self, setting: Setting) -> None:
        _begin(self.learner, setting)

    def play_point(self) -> Any:
        if not hasattr(self.learner, "point"):
            raise DataError(
                f"round {self.t}: {self.name} has no point: set one in begin(setting), and in update(part)."
            )
        w = self.learner.point
        return self.require_point(w() if callable(w) else w)

    def learn_example(self, x: Any, y: float) -> None:
        self.learner.update(ExampleLoss(self.loss, x.copy(), y))

    def learn_round(self, part: Any, g: Any) -> None:
        self.learner.update(_lent(part))


class _Function(Guest):
    """A function of the past, and of x where it predicts; `rng` is handed to one that asks for it."""

    def __init__(self, learner: Any, name: str, domain: Domain, d: int, loss: Any, kind: _Signature) -> None:
        super().__init__(learner, name, domain, d, loss)
        self.kind, self.lots = kind, dict[str, Any]()
        self.past: list[Any] = []

    def begin(self, setting: Setting) -> None:
        self.lots = {"rng": setting.rng} if self.kind.draws else {}

    def play_point(self) -> Any:
        if self.kind.predicts:
            return super().play_point()
        return self.require_point(self.learner(self.past, **self.lots))

    def answer(self, x: Any) -> float:
        if self.kind.predicts:
            return self.require_number(self.learner(self.past, x, **self.lots))
        return super().answer(x)

    def learn_example(self, x: Any, y: float) -> None:
        self.past.append((x.copy(), y) if self.kind.predicts else ExampleLoss(self.loss, x.copy(), y))

    def learn_round(self, part: Any, g: Any) -> None:
        self.past.append(_lent(part))


@dataclasses.dataclass(frozen=True)
class _Signature:
    """What a function of the past asks for."""

    predicts: bool
    """Whether it takes x too, and returns a prediction; else it returns a point."""
    draws: bool
    """Whether it takes `rng`."""

    @classmethod
    def of(cls, function: Callable[..., Any], name: str) -> _Signature:
        try:
            takes = inspect.signature(function).parameters
        except (TypeError, ValueError):
            takes = {}  # type: ignore[assignment]  # a function in C need not say
        needed = [one for one in takes.values() if one.default is one.empty and one.name != "rng"]
        plain = [one for one in needed if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        if len(plain) != len(needed) or len(plain) not in (1, 2) or "rng" in list(takes)[: len(plain)]:
            raise SettingsError(
                f"play: {name} must take (past) and return a point, or (past, x) and return a prediction; with rng as "
                "a further argument it may draw lots."
            )
        return cls(len(plain) == 2, "rng" in takes)


def player_of(learner: Any, opponent: Opponent, domain: Any, loss: Any) -> Player:
    """A learner of one's own as a player, a copy of it; refused in a sentence if it cannot play this opponent."""
    name = _name(learner)
    if isinstance(learner, type):
        raise SettingsError(f"play: {name} is a class: give an object of it, {name}().")
    learns = callable(getattr(learner, "update", None))
    predicts, points = learns and callable(getattr(learner, "predict", None)), learns and hasattr(learner, "point")
    points = points or (learns and callable(getattr(learner, "begin", None)))  # `begin` may set it
    kind = _Signature.of(learner, name) if callable(learner) and not (predicts or points) else None
    if kind is None and not (predicts or points):
        for learn, predict in (("learn_one", "predict_one"), ("partial_fit", "predict")):
            if callable(getattr(learner, learn, None)):
                raise SettingsError(
                    f"play: {name} learns by {learn}: wrap it in an object of your own, whose predict(x) returns a "
                    f"number made of its {predict} and whose update(x, y) calls its {learn}, x being an array."
                )
        raise SettingsError(
            "play: learner must be a learner such as rue.OGD(), a spec, an object of your own with predict(x) and "
            f"update(x, y) or with point and update(part), or a function of the past, not {shown(learner)}."
        )
    K, d, scored = _terms(learner, name, opponent, domain, loss)
    functions = opponent.loss is None
    if functions and (not points if kind is None else kind.predicts):
        raise SettingsError(
            f"{name} against {opponent!r}: the rounds are functions of the point, and {name} only predicts: give it a "
            f"point and update(part), or a function that takes (past) and returns the point."
        )
    own = _copied(learner, name)
    if kind is not None:
        return _Function(own, name, K, d, scored, kind)
    return (_Predictor if predicts and not functions else _Pointer)(own, name, K, d, scored)


def _terms(learner: Any, name: str, opponent: Opponent, domain: Any, loss: Any) -> tuple[Domain, int, Any]:
    """The set, the number of coordinates and the loss that a learner of one's own plays with."""
    functions, against = opponent.loss is None, f"{name} against {opponent!r}"
    given = getattr(learner, "domain", None) if domain is None else domain
    K = Reals() if given is None and not functions else make("domain", given)
    if not isinstance(K, Domain):
        raise SettingsError(f"{against}: say which set the points are chosen from, such as domain='ball:1'.")
    d = opponent.d if opponent.d is not None else (K.dimension or 1)
    if K.dimension not in (None, d):
        raise SettingsError(f"{against}: {K!r} has {K.dimension} coordinates and the game {d}: choose the same number.")
    if functions:
        return K, d, Linear()
    if opponent.loss != "own":
        return K, d, make("loss", opponent.loss)
    chosen = getattr(learner, "loss", None) if loss is None else loss
    if chosen is None and opponent.counts_mistakes:
        chosen = Hinge()  # what counts is the mistakes, which do not depend on it
    scored = make("loss", chosen)
    if not isinstance(scored, Loss):
        raise SettingsError(f"{against}: say which loss its predictions are scored by, such as loss='square'.")
    return K, d, scored


def _lent(part: Any) -> Any:
    """A round to learn from; a learner that changes its arrays changes neither the record nor the opponent."""
    if isinstance(part, LinearRound):
        return LinearRound(np.array(part.g, dtype=np.float64))
    if isinstance(part, ConvexRound):
        return dataclasses.replace(part, subgradient=lambda w: np.array(part.subgradient(w), dtype=np.float64))
    return part


def _name(learner: Any) -> str:
    named = getattr(learner, "__name__", None)
    return "a function" if named == "<lambda>" else named if isinstance(named, str) else type(learner).__name__


def _copied(learner: Any, name: str) -> Any:
    try:
        return copy.deepcopy(learner)
    except Exception as error:
        raise SettingsError(
            f"play: {name} cannot be copied ({error}), and the learner given must stay as it is: make it one that "
            "copy.deepcopy copies, or give a function of the past."
        ) from error


def _begin(learner: Any, setting: Setting) -> None:
    """Tell an object what is agreed, if it asks."""
    begin = getattr(learner, "begin", None)
    if callable(begin):
        begin(setting)
